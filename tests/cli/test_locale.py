# SPDX-License-Identifier: Apache-2.0
"""A process whose locale has a decimal comma: the same numbers are read from each format, and the same
are written. The programs begin in the locale of their process by a preloaded library (comma_locale.c),
as in a program that calls the public library after setlocale."""
import json
import re

import record_maker
import support

NUMBERS = ["0.123", "1e-7", "1.75", "-2.5", "3.141592653589793238462643383", "9007199254740993.5",
           "123456789012345678901234567890.25", "5e-324", "7", ""]
SUITE = {"program": "shardquery", "command": "run", "queries": []}


class CommaLocale(support.Case):
    def setUp(self):
        super().setUp()
        self.comma = support.comma_environment(self.scratch)

    def sources(self):
        """The words of a load for each format."""
        rows = [f"{n},{number},name {n}" for n, number in enumerate(NUMBERS)]
        yield "delimited", [self.file("t.csv", "\n".join(["id,value,text", *rows]) + "\n")]
        yield "json", [self.file("t.jsonl", "".join(
            json.dumps({"value": float(n or 0), "exact": {"$numberDouble": n or "0.5"},
                        "decimal": {"$numberDecimal": n[:30] or "1.50"}}) + "\n" for n in NUMBERS))]
        yield "bson", [self.file("t.bson", b"".join(
            support.encoded({"_id": n, "value": float(number or 0)}) for n, number in enumerate(NUMBERS)))]
        yield "ycsb", ["--format", "ycsb", "--records", "50", "--skew", "0.5"]
        yield "mot", [support.mot_sample("test_result_2018_2020_comma.csv")]
        for name in ("066600-99999-2010-first50", "010060-99999-2014"):
            yield name, [support.sample("isd", name)]
        lite = support.sample("isd", "isd-lite")
        yield "isd-lite", ["--include", "*.gz", "--skip-other", lite]

    def loaded(self, words, environment=None):
        """(the documents of a load, its totals, what inspect prints)."""
        raw, work = self.dump("-j", 1, *words, code=None, environment=environment)
        record = support.run_record(work)
        self.assertGreater(record["accounting"].pop("loadSeconds"), 0)
        shown = self.shardload("inspect", *words, code=None, environment=environment).out
        return raw, record["accounting"], shown

    def test_each_format_has_the_same_documents(self):
        for name, words in self.sources():
            with self.subTest(name):
                expected = self.loaded(words)
                self.assertGreater(len(expected[0]), 0)
                found = self.loaded(words, self.comma)
                self.assertEqual(found, expected)

    def same_output(self, name, *words, code=support.EXIT_OK, file=None):
        """Both runs print the same, and write the same file."""
        outputs = []
        for environment in (None, self.comma):
            outcome = self.run_program(name, *words, environment=environment).expect(code)
            written = (self.scratch / file).read_text("utf-8") if file else ""
            outputs.append(re.sub(r'"date": \{[^}]*\}', "", outcome.out + outcome.err + written))
        self.assertRegex(outputs[0], r"\d\.\d")  # there are decimal points to print
        self.assertEqual(outputs[1], outputs[0])

    def test_each_output_has_decimal_points(self):
        run = self.file("run.json", json.dumps(record_maker.load(3)))
        tune = self.file("tune.json", json.dumps(record_maker.tune()))
        self.same_output("shardload", "report", run)
        self.same_output("shardload", "report", "--html", "-", run)
        self.same_output("shardload", "report", "--html", "-", tune)
        self.same_output("shardload", "plan", "--model", support.TREE / "models/petabyte.yaml")
        self.same_output("shardload", "plan", "--format", "ycsb", "--records", "100000", "--shards", "3", "--from", run)
        for side, factor in (("old", 1), ("new", 1.25)):
            for n in range(5):
                entry = {"suite": "s", "name": "q", "medianMs": factor * (1.5 + n / 64)}
                (self.scratch / side).mkdir(exist_ok=True)
                (self.scratch / side / f"{n}.json").write_text(json.dumps({**SUITE, "queries": [entry]}), "utf-8")
        self.same_output("shardquery", "compare", "--threshold", "12.5%", "--report", "c.json", "old", "new",
                         code=support.EXIT_REJECTS, file="c.json")
