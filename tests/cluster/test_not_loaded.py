# SPDX-License-Identifier: Apache-2.0
"""An archive with entries that are not loaded (another format, documentation): the load fails, its
source does not count as loaded, and --skip-other completes it."""

import archive_making as making
import support

RESULTS = [support.mot_text(range(first, first + 100)) for first in (1, 1001)]
ITEMS = "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n1|8394|A|7|\n"


class Sharded(support.ClusterCase):
    def archive(self):
        path = self.scratch / "year.zip"
        path.write_bytes(making.zip_of([("results.csv", RESULTS[0].encode()),
                                        ("items.csv", ITEMS.encode()),
                                        ("more.csv", RESULTS[1].encode())]))
        return path

    def test_test_items_beside_test_results_fail_the_load_until_they_are_skipped(self):
        path = self.archive()
        _, work = self.load(path, code=support.EXIT_SOURCE,
                            message=(f"{path}: items.csv: not loaded: holds ",
                                     "the same command with --skip-other --resume --work-dir"))
        record = support.run_record(work)
        self.assertEqual(record["exitCode"], support.EXIT_SOURCE)
        self.assertEqual([item["entry"] for item in record["notLoaded"]["items"]], ["items.csv"])
        self.assertNotIn("loaded", self.source_states())
        words = ["load", *self.target(), "--work-dir", work, "--progress", "none", "--resume"]
        self.shardload(*words, path, code=support.EXIT_SOURCE)
        self.assertNotIn("loaded", self.source_states())
        self.shardload(*words, "--skip-other", path)
        self.assertEqual(self.source_states(), ["loaded"])
        self.assertEqual(self.database.t.count_documents({}), 200)
        self.load("--skip-other", path, code=support.EXIT_SOURCE, message="loaded into")

    def test_an_entry_that_two_passes_read_is_counted_once(self):
        """A mode that matches reads the source before the load, up to a record that is no reject."""
        schema = self.scratch / "schema.yaml"
        schema.write_text("{name: s, header: true, columns: [{name: k}, {name: v, type: int}]}")
        first, path = self.file("k.csv", "k,v\n1,2\n"), self.scratch / "k.zip"
        path.write_bytes(making.zip_of([("k.csv", b"k,v\n1,a\n"), ("readme.txt", b"Dear all,\nregards\n")]))
        words = "--mode", "upsert", "--id-field", "k", "--schema", schema, "--skip-other"
        self.load(*words, first)
        outcome, work = self.load(*words, path, code=support.EXIT_SOURCE)
        self.assertEqual(outcome.err.count("readme.txt: not loaded"), 1, outcome.err)
        self.assertEqual(support.run_record(work)["notLoaded"]["count"], 1)

    def test_verify_reports_entries_that_are_not_loaded(self):
        path = self.archive()
        self.load("--skip-other", path)
        for words in ([], ["--content"]):
            outcome = self.shardload("verify", *self.target(), *words, "--work-dir",
                                     self.scratch / "verify", path, code=support.EXIT_SOURCE)
            self.assertIn(f"{path}: items.csv: not loaded: holds ", outcome.err)
            record = support.json.loads((self.scratch / "verify" / "verify.json").read_text())
            self.assertEqual(record["notLoaded"]["count"], 1)
            self.assertIs(record["verification"]["ok"], True)
            self.assertEqual(record["exitCode"], support.EXIT_SOURCE)
            self.shardload("verify", *self.target(), *words, "--skip-other", path)

    def test_a_folder_is_refused_before_anything_is_dropped(self):
        folder = self.scratch / "in"
        folder.mkdir()
        (folder / "1.csv").write_text(RESULTS[0])
        self.load(folder)
        (folder / "readme.md").write_text("Notes.\n")
        _, work = self.load("--drop", folder, code=support.EXIT_SOURCE, message="readme.md")
        self.assertFalse(work.exists())
        self.assertEqual(self.database.t.count_documents({}), 100)
        self.load("--drop", "--skip-other", folder)
        self.assertEqual(self.database.t.count_documents({}), 100)

    def test_files_of_the_same_name_and_content_are_sources_of_their_own(self):
        """The files of one load are all loaded, in any order of their names; a copy that a later load
        brings is refused, because it may be the same file on another machine."""
        parts = []
        for day in (1, 2, 3):
            parts.append(self.scratch / f"day={day}" / "part.csv")
            parts[-1].parent.mkdir()
            parts[-1].write_text(RESULTS[0])
        self.load(*parts[:2])
        self.assertEqual(self.database.t.count_documents({}), 200)
        self.assertEqual(self.source_states(), ["loaded", "loaded"])
        self.shardload("verify", *self.target(), "--content", parts[1], parts[0])
        self.load(parts[2], code=support.EXIT_SOURCE, message=("loaded into", "rename the files"))
        self.load(*reversed(parts), "--again")
        self.assertEqual(self.database.t.count_documents({}), 300)


class Standalone(Sharded, server="mongod"):
    pass
