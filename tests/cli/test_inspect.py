# SPDX-License-Identifier: Apache-2.0
"""`shardload inspect`: shows the format and the first documents of a file, without a server."""
import json

import mot_reader
import support
from support import HEADER, ROW


def documents_in(text):
    """The Extended JSON documents in an output that also contains other lines."""
    found, at = [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, length = json.JSONDecoder().raw_decode(text[at:])
        except ValueError:
            at += 1
            continue
        found.append(support.bson.json_util.loads(json.dumps(document)))
        at += length
    return found


class Inspect(support.Case):
    def assert_shows(self, outcome, expected):
        shown = documents_in(outcome.out)
        self.assertEqual(len(shown), len(expected), outcome.out)
        for left, right in zip(shown, expected):
            self.assertEqual(list(left), list(right))
            for key, value in right.items():
                if hasattr(value, "year"):
                    self.assertEqual(left[key].replace(tzinfo=None), value, key)
                else:
                    self.assertEqual(left[key], value, key)

    def test_the_first_documents_of_every_sample(self):
        for sample in support.MOT_TESTS + support.MOT_ITEMS:
            with self.subTest(sample):
                path = support.mot_sample(sample)
                outcome = self.shardload("inspect", path)
                self.assert_shows(outcome, mot_reader.read(path).documents[:3])
                self.assertIn("mot", outcome.out.lower())

    def test_number_of_documents_and_long_names(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        outcome = self.shardload("inspect", "--documents", 7, "--names", "long", path)
        self.assert_shows(outcome, mot_reader.read(path, names="long").documents[:7])
        outcome = self.shardload("inspect", "--documents", 0, path)
        self.assert_shows(outcome, [])

    def test_dialects_are_distinguished(self):
        def described(name):
            text = self.shardload("inspect", "--documents", 0, support.mot_sample(name)).out
            return text.replace(str(support.SAMPLES), "").replace(name, "")
        seen = {described(name) for name in (
            "test_result_2005_2013_original_style.txt", "test_result_2005_2016_pipe_header.txt",
            "test_result_2018_2020_comma.csv", "test_item_2005_pipe_header.txt")}
        self.assertEqual(len(seen), 4)

    def test_gzip_files(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        zipped = self.zipped("data", path.read_bytes())
        self.assert_shows(self.shardload("inspect", zipped), mot_reader.read(path).documents[:3])

    def test_standard_input(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        outcome = self.shardload("inspect", "-", stdin=path.read_bytes())
        self.assert_shows(outcome, mot_reader.read(path).documents[:3])

    def test_bad_records_are_shown_with_line_column_and_reason(self):
        path = self.file("bad.txt", "\n".join([
            HEADER, ROW.format(id=1), ROW.format(id=2).replace("49828", "4982B"),
            ROW.format(id=3), ""]))
        outcome = self.shardload("inspect", path, code=None)
        self.assertIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS))
        self.assertIn("test_mileage", outcome.out)
        self.assertIn("4982B", outcome.out)
        self.assertRegex(outcome.out, r"\b3\b")

    def test_a_file_of_no_known_format_is_refused(self):
        path = self.file("letter.txt", "Dear reader,\nthis is no table.\n")
        self.shardload("inspect", "--format", "mot", path, code=support.EXIT_SOURCE, message="letter.txt")

    def test_a_schema_needs_no_format(self):
        path = self.file("table.csv", "a,b\n1,2\n")
        schema = self.file("s.yaml", "name: mine\ncolumns:\n- {name: a, type: int}\n- {name: b}\n")
        outcome = self.shardload("inspect", "--schema", schema, path)
        self.assertIn("delimited: mine: commas, header, 2 columns", outcome.out)
        for name in ("bson", "json", "ycsb"):
            records = ["--records", 1] if name == "ycsb" else [path]
            outcome = self.shardload("inspect", "--format", name, "--schema", schema, *records, code=support.EXIT_USAGE)
            self.assertIn(f"--format {name} takes no --schema", outcome.err)

    def test_no_file_is_written(self):
        path = self.file("data.txt", HEADER + "\n" + ROW.format(id=1) + "\n")
        self.shardload("inspect", path)
        self.assertEqual([found.name for found in self.scratch.iterdir()], ["data.txt"])

    def test_several_sources(self):
        names = ["test_result_2021_quoted.csv", "test_result_2022_2023_pipe.csv"]
        paths = [support.mot_sample(name) for name in names]
        outcome = self.shardload("inspect", "--documents", 1, *paths)
        for name in names:
            self.assertIn(name, outcome.out)
        self.assertEqual([document["t"] for document in documents_in(outcome.out)],
                         [mot_reader.read(path).documents[0]["t"] for path in paths])
