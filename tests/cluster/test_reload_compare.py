# SPDX-License-Identifier: Apache-2.0
"""`shardload reload --compare`: a drill is compared with an earlier one."""
import json

import reload_case
import support


class Standalone(reload_case.ReloadCase, support.ClusterCase, server="mongod"):
    def test_times_and_differences_to_the_earlier_drill_are_shown(self):
        path, answers = self.data(4000, 77)
        _, record, work = self.reload("--answers", answers, path)
        last = work / "reload.json"
        outcome, _, _ = self.reload("--drop", "--compare", last, path)
        self.assertIn("compared with the earlier reload: 4,000 documents, now 4,000", outcome.text)
        self.assertNotIn("not comparable", outcome.text)
        self.assertNotIn("per document", outcome.text)
        self.assertRegex(outcome.text, r"\n  total +[0-9.]+ s +[0-9.]+ s +[0-9.]+ ")
        self.assertNotIn("all data ", outcome.text)
        self.assertIn("--drop differs: off, now true", outcome.text)
        self.assertRegex(outcome.text, r"--answers differs: .*answers-77\.json, now off")
        for name in ("work-dir", "compare", "suite", "threads"):
            self.assertNotIn(f"--{name} differs", outcome.text)
        record["server"]["version"] = "4.4.1"
        record["load"]["topology"] *= 3
        record["accounting"]["inserted"] = 2000
        for phase in record["phases"]:
            phase["seconds"] = 3600
        last.write_text(json.dumps(record))
        outcome, _, _ = self.reload("--drop", "--compare", last, path)
        for text in ("different server version: 4.4.1, now", "different number of shards: ",
                     "faster, per document", "2,000 documents, now 4,000"):
            self.assertIn(text, outcome.text)
        self.assertNotIn("different sample", outcome.text)
        # Four of the ten phases of an hour grow with the documents: 14 hours are comparable.
        self.assertRegex(outcome.text, r"\n  total +10 h 00 min +\S.* 0\.00\d +faster, per document")

    def test_an_earlier_drill_that_was_interrupted_or_failed_is_refused(self):
        path, answers = self.data(3000, 85)
        _, record, work = self.reload("--answers", answers, path)
        last = work / "reload.json"
        for changed in ({"ended": False, "exitCode": 130}, {"ended": False, "exitCode": 5},
                        {"ended": None, "exitCode": 4}):
            last.write_text(json.dumps({**record, **changed}))
            self.refused("--drop", "--compare", last, path, code=support.EXIT_SOURCE, message=
                         f"the earlier reload did not complete (exit code {changed['exitCode']})")
            self.assertEqual(self.database.t.count_documents({}), 3000, "the collection was dropped")
        last.write_text(json.dumps({**record, "exitCode": 4}))
        outcome, _, _ = self.reload("--drop", "--compare", last, path)
        self.assertIn("not comparable: a query of the earlier reload failed", outcome.text)
        last.write_text(json.dumps(record))
        outcome, _, _ = self.reload("--drop", "--compare", last, "--max-rejects", 0,
                                    self.file("bad.txt", f"{support.HEADER}\nnothing\n"),
                                    code=support.EXIT_SOURCE)
        self.assertNotIn("compared with the earlier reload", outcome.text)

    def test_samples_are_compared_by_their_predictions(self):
        path = self.file("year.txt", support.wide_text(6))
        _, record, work = self.reload("--sample", "50%", path)
        last = work / "reload.json"
        outcome, _, _ = self.reload("--sample", "50%", "--compare", last, path)
        self.assertRegex(outcome.text, r"\n  total +\S")
        self.assertRegex(outcome.text, r"\n  all data +\S.* \d\.\d{3} ")
        for phase in record["predicted"]["phases"]:
            phase["seconds"] = 3600
        record["predicted"].update(seconds=36000, low=35000, high=37000)
        last.write_text(json.dumps(record))
        outcome, _, _ = self.reload("--sample", "50%", "--compare", last, path)
        self.assertRegex(outcome.text, r"\n  all data +10 h 00 min +\S.* 0\.00\d +faster\n")
        record["predicted"].update(low=0)
        last.write_text(json.dumps(record))
        outcome, _, _ = self.reload("--sample", "50%", "--compare", last, path)
        self.assertRegex(outcome.text, r"\n  all data .*within the error of the prediction\n")


class Sharded(Standalone, server="cluster"):
    pass
