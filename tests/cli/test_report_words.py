# SPDX-License-Identifier: Apache-2.0
"""The text of a page: target and date in the title, the verdict of a comparison with its uncertainty, no
percentile of too few samples, only relevant options, rejects by reason, only settings that were
tried."""
import json
import re

import record_maker
import support
from test_report import ReportCase


class Words(ReportCase):
    def title(self, page):
        return re.search("<title>(.*?)</title>", page.source, re.DOTALL)[1]

    def test_target_and_date_are_in_the_title(self):
        record = record_maker.load(5)
        record["options"].update(db="mot", collection="tests")
        record["startedAt"] = {"$date": "2026-03-04T05:06:07Z"}
        path = self.record("one", record)
        self.assertEqual(self.title(self.page(path)), "Load: mot.tests, 2026-03-04 05:06 - one")
        page = self.page(path, self.record("two", record))
        self.assertEqual(self.title(page), "Load: 2 records, mot.tests, until 2026-03-04 05:06")

    def test_the_verdict_of_a_comparison_has_an_uncertainty(self):
        paths = [self.record(name, record_maker.load(seconds)) for name, seconds in
                 (("first", 60), ("second", 60), ("short", 2))]
        page = self.page(paths[0], paths[1])
        self.assertRegex(page.text, r"second loaded .*rate of the first run \(95 %: [\d.]+ to [\d.]+\)")
        self.assertIn("does not differ significantly", page.text)
        self.assertRegex(self.text(paths[0], paths[1]), r"second loaded at a rate")
        self.assertIn("too short to estimate the uncertainty", self.page(paths[0], paths[2]).text)

    def test_a_faster_load_is_faster(self):
        slow, fast = record_maker.load(60), record_maker.load(60)
        for record, factor in ((slow, 1), (fast, 3)):
            for key in ("records", "inserted"):
                record["accounting"][key] *= factor
            for number, point in enumerate(record["series"]):
                point["documents"] = number * 100_000 * factor
        page = self.page(self.record("slow", slow), self.record("fast", fast))
        self.assertRegex(page.text, r"fast loaded faster: 3\.0\d times")

    def test_words_follow_the_mode(self):
        record = record_maker.load(5)
        totals = record["accounting"]
        totals.update(mode="delete", changed=totals["inserted"] - 12, alreadyThere=12, inserted=0)
        page = self.page(self.record("load", record))
        deleted = f"{totals['changed']:,}"
        for words in (f"Everything was deleted: {deleted} deleted, 12 not found in", "documents/s while deleting",
                      f"= deleted {deleted} ", "+ not found 12 ", "deleted or not found"):
            self.assertIn(words, page.text)
        for words in ("Everything was loaded", "already stored", "inserted"):
            self.assertNotIn(words, page.text)
        record["exitCode"] = 1
        self.assertIn("Deleted, with rejects", self.text(self.record("load", record)))
        totals.update(mode="upsert", inserted=5)
        page = self.page(self.record("load", record))
        for words in ("= inserted 5 ", f"+ modified {deleted} ", "+ unchanged 12 "):
            self.assertIn(words, page.text)

    def test_stages_have_the_same_words_with_every_key(self):
        record = record_maker.load(5)
        before = self.page(self.record("load", record)).source
        text = json.dumps(record).replace('"the server"', '"server"')
        self.assertEqual(self.page(self.record("load", json.loads(text))).source, before)

    def test_percentiles_need_samples(self):
        record = record_maker.load(5)
        for batches, shown, missing in ((3, [], ["half of the batches", "90 %", "99 %", "99.9 %"]),
                                        (50, ["half of the batches", "90 %"], ["99 %", "99.9 %"]),
                                        (5000, ["90 %", "99 %", "99.9 %"], [])):
            record["batchMilliseconds"]["batches"] = batches
            text = self.page(self.record("load", record)).text
            latencies = text[text.index("Latency of batches"):text.index("Totals")]
            for words in shown + ["the slowest"]:
                self.assertIn(f" {words} ", latencies)
            for words in missing:
                self.assertNotIn(f" {words} ", latencies)

    def test_irrelevant_options_are_left_out(self):
        record = record_maker.load(5)
        record["options"].update({"skew": "0.99", "missing": "omit", "types": "auto", "names": "short",
                                  "html": "page.html", "work-dir": "secret", "threads": "auto"})
        record["sources"][0]["format"] = "delimited"
        settings = self.page(self.record("load", record)).text.split("Settings")[1]
        for name in ("types", "threads"):
            self.assertIn(f" {name} ", settings)
        for name in ("skew", "missing", "names", "html", "work-dir"):
            self.assertNotIn(f" {name} ", settings)

    def test_rejects_by_reason(self):
        path = self.file("year.txt", support.mot_text(range(1, 50)) + "x|y\n" * 3 + "x|y|z\n"
                         + support.mot_text([7]).splitlines()[1].replace("|49828|", "|abc|") + "\n")
        outcome, work = self.parse("--html", "p.html", path, code=support.EXIT_REJECTS)
        rejects = support.run_record(work)["rejects"]
        self.assertEqual([kind["count"] for kind in rejects["kinds"]], [4, 1])
        self.assertEqual(sum(kind["count"] for kind in rejects["kinds"]), 5)
        page = (self.scratch / "p.html").read_text("utf-8")
        for words in ("too few fields: N of N", "year.txt, line 51", "too few fields: 2 of 14",
                      "test_mileage", "year.txt, line 55"):
            self.assertIn(words, outcome.err)
            self.assertIn(words, page)

    def test_settings_that_were_not_tried_are_not_among_the_fastest(self):
        record = record_maker.tune()
        one = record["settings"][1]
        one.update(threads=77, rate=None, trials=[])
        text = self.page(self.record("tune", record)).text
        fastest = text[text.index("The fastest"):]
        self.assertNotIn(" 77 ", fastest)
