# SPDX-License-Identifier: Apache-2.0
"""What commands print: results on standard output, progress and warnings on standard error, only errors
with --quiet, and few lines if the command soon ends."""

import re

import support

ROWS = "a,b\n" + "".join(f"{number},x{number}\n" for number in range(500))
SHORT = {key: value for key, value in support.clean_environment().items() if key != "SHARDLOAD_VERBOSE"}


class Said(support.ClusterCase, server="mongod"):
    def setUp(self):
        super().setUp()
        self.source = self.file("t.csv", ROWS.encode())

    def run_short(self, command, *words, code=0):
        return self.run_program("shardload", command, *words, environment=SHORT).expect(code)

    def test_a_small_load_prints_three_lines(self):
        outcome = self.run_short("load", *self.target(), self.source)
        self.assertEqual(len(outcome.text.splitlines()), 3, outcome.text)
        line, record = outcome.out.splitlines()
        self.assertRegex(line, rf"^{self.database_name}\.t: 500 records in \d.*s: 500 inserted$")
        self.assertRegex(record, "^run record: .*/run.json$")
        self.assertRegex(outcome.err, "^types inferred from 500 sampled records: 1 number, 1 text\n$")

    def test_the_status_of_a_finished_load_has_no_error(self):
        """The collection is in a new database, which the server does not know before the load."""
        target = ["--uri", self.uri, "-d", self.database_name + "n", "-c", "t"]
        self.addCleanup(self.client.drop_database, self.database_name + "n")
        self.run_short("load", *target, "--work-dir", "w", self.source)
        outcome = self.run_short("status", "w")
        self.assertIn(": finished", outcome.out)
        self.assertNotIn("find on database", outcome.text)

    def test_resume_is_advised_only_where_it_can_work(self):
        """Such a load needs another option or file, so that it is another load."""
        rows = ROWS * 20 + '7,"two\nlines"\n'
        outcome = self.run_short("load", *self.target(), "--types", "text", self.file("q.csv", rows.encode()),
                                 "--work-dir", "w", code=support.EXIT_SOURCE)
        self.assertIn("--resume cannot complete this load", outcome.err)
        self.assertNotIn("to complete this load", outcome.err)
        self.assertNotIn("--resume", self.run_short("status", "w").out)
        dump = self.file("d.sql", "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE a (x int);\n"
                                  "INSERT INTO a VALUES (1);\n"
                                  "CREATE TABLE b (x int);\nINSERT INTO b VALUES (2);\nCOMMIT;\n")
        words = "load", "--uri", self.uri, "-d", self.database_name, dump
        self.run_short(*words)
        outcome = self.run_short(*words, code=support.EXIT_SOURCE)
        self.assertIn("--resume cannot complete this load", outcome.err)
        self.assertNotIn("to complete this load", outcome.err)

    def test_a_resumed_load_separates_the_earlier_runs(self):
        second = self.file("u.csv", ROWS.encode() + b"x\n")
        words = "load", *self.target(), "-j", 1, "--batch-size", 100, "--work-dir", "w", self.source, second
        self.run_short(*words, "--max-rejects", 0, code=support.EXIT_SOURCE)
        outcome = self.run_short(*words, "--max-rejects", 1, "--resume", code=support.EXIT_REJECTS)
        self.assertRegex(outcome.out, r": 1,001 records in \d.*s, 500 of them in earlier runs: 600 inserted, "
                                      "400 already stored, 1 rejected")
        shown = self.run_short("report", "w/run.json").out
        self.assertIn("(500 of the records in earlier runs)", " ".join(shown.split()))

    def test_advice_to_drop_says_what_is_lost(self):
        self.run_short("load", *self.target(), self.source)
        outcome = self.run_short("load", *self.target(), "--clustered", self.file("u.csv", b"a,b\n1,x\n"),
                                 code=support.EXIT_CLUSTER)
        self.assertIn("use --drop to create it again\n", outcome.err)
        self.assertIn(f"--drop removes all documents of {self.database_name}.t, also those of other loads", outcome.err)

    def test_the_line_has_all_counts(self):
        self.run_short("load", *self.target(), "--id-field", "a", self.source)
        mixed = self.file("m.csv", b"a,b\n1,x1\n\n2,new\n900,y\n901\n")
        outcome = self.run_short("load", *self.target(), "--id-field", "a", "--mode", "upsert", mixed,
                                 code=support.EXIT_REJECTS)
        self.assertRegex(outcome.out, ": 4 records in .*: 1 inserted, 1 modified, 1 unchanged, "
                                      "1 rejected by the parser, 1 blank line skipped\n")
        self.assertIn("m.csv, line 6", outcome.out)     # the rejects by reason

    def test_verbose_prints_the_tables(self):
        outcome = self.run_short("load", *self.target(), "--verbose", self.source)
        for words in ("  = inserted  ", "  phase  ", "  shard  "):
            self.assertIn(words, outcome.out)
        self.assertIn("server", outcome.err)

    def test_quiet_prints_errors_only(self):
        """Each command, with the words that it needs."""
        target = self.target()
        work = self.scratch / "w"
        suite = self.file("q.yaml", b"name: q\nqueries:\n  - name: one\n    operation: count\n    filter: '{}'\n")
        self.run_short("load", "--sink", f"bson:{self.scratch}/d.bson", "--work-dir", "wb", self.source)
        commands = {
            "load": [*target, "--work-dir", work, self.source], "inspect": [self.source],
            "verify": [*target, self.source], "plan": [*target, "--again", self.source],
            "status": [work], "report": [work / "run.json"], "doctor": target[:2],
            "restore": [*self.target("r"), self.scratch / "d.bson"],
            "reload": [*self.target("d"), "--suite", suite, self.source],
            "tune": [*self.target("u"), "--max-trials", 1, self.source],
            "forget": [*target, work]}
        known = re.findall(r"^  ([a-z]+) {2,}", self.run_short("--help").out, re.M)
        self.assertEqual(set(commands), set(known))
        for command, words in commands.items():
            with self.subTest(command):
                loud = command in ("inspect", "verify", "plan", "status", "report", "doctor")
                if loud:
                    self.assertTrue(self.run_short(command, *words, code=None).out)
                outcome = self.run_short(command, "--quiet", *words, code=None)
                self.assertEqual(outcome.text, "" if outcome.code == 0 else
                                 f"shardload: exit code {outcome.code}, which docs/exit-codes.md explains: "
                                 "the same command without --quiet prints the reason\n", command)
        bad = self.scratch / "bad.csv"
        bad.write_text("id,at\n1,2025-01-01\n2,2025-01-02\n3,never\n")
        outcome = self.run_short("load", *self.target("bad"), "--quiet", "--types", "at=date:%Y-%m-%d", bad,
                                 "--work-dir", self.scratch / "bad", code=support.EXIT_REJECTS)
        self.assertEqual(outcome.text, f"shardload: 1 of 3 records rejected: see {self.scratch}/bad/rejects.tsv\n")
        outcome = self.run_short("load", *target, "--quiet", self.scratch / "none.csv",
                                 code=support.EXIT_SOURCE)
        self.assertIn("none.csv", outcome.err)
        outcome = self.run_program("shardquery", "run", *target, "--quiet", suite, environment=SHORT)
        self.assertEqual(outcome.expect(0).text, "")

    def test_results_are_on_standard_output(self):
        self.run_short("load", *self.target(), self.source)
        for command, words, result in (
                ("verify", self.target(), "has the number of documents that its sources have"),
                ("plan", [*self.target(), "--again"], "No time is predicted"),
                ("tune", [*self.target("u"), "--max-trials", 1], "record of the tuning")):
            with self.subTest(command):
                outcome = self.run_short(command, *words, self.source)
                self.assertIn(result, outcome.out)
                self.assertNotIn(result, outcome.err)
