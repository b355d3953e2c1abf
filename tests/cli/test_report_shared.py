# SPDX-License-Identifier: Apache-2.0
"""`shardload report` of loaders that share one load by --part or --only-shards: their records are one
load on one page. What is missing, or counted twice, is in the first sentence."""
import record_maker
import support
from test_report import ReportCase


def parts(*numbers, of=4, **more):
    return {f"part-{number}": record_maker.load(60, **{"part": f"{number}/{of}"}, **more)
            for number in numbers}


class Shared(ReportCase):
    def pages(self, records, code=support.EXIT_OK):
        paths = [self.record(name, record) for name, record in records.items()]
        text = self.shardload("report", *paths, code=code).out
        return self.page(*paths), " ".join(text.split())

    def documents(self, records):
        return sum(record["accounting"]["inserted"] for record in records.values())

    def test_four_parts_are_one_load(self):
        records = parts(1, 2, 3, 4)
        for number, record in enumerate(records.values()):
            record["startedAt"] = {"$date": f"2026-03-01T09:30:{10 * number:02}Z"}
        page, text = self.pages(records)
        self.assertIn("Load by 4 loaders", page.text)
        self.assertNotIn("side by side", page.text)
        for shown in (page.text, text):
            self.assertIn("Everything was loaded: 4 loaders stored", shown)
            self.assertIn("The totals of all loaders add up.", shown)
            self.assertIn("The counts of the ranges on the cluster are right.", shown)
            self.assertNotIn("No record for", shown)
            for name in records:
                self.assertIn(name, shown)
        inserted = self.documents(records)
        self.assertRegex(page.text, rf"= inserted {inserted:,}")
        # The last loader began 30 s after the first one, and all phases of one take 76.3 s.
        self.assertRegex(page.text, r"documents in 1 min 46 s at")

    def test_missing_parts_are_named(self):
        page, text = self.pages(parts(1, 3))
        for shown in (page.text, text):
            self.assertIn("Records of some loaders are missing", shown)
            self.assertIn("No record for part 2/4, 4/4.", shown)

    def test_one_loader_of_several_is_not_everything(self):
        for option, share in (("part", "2/4"), ("only-shards", "s0,s1")):
            page, text = self.pages({option: record_maker.load(60, **{option: share})})
            for shown in (page.text, text):
                self.assertIn(f"This loader's share ({share}) was loaded: ", shown)
                self.assertNotIn("Everything was loaded", shown)

    def test_parts_are_compared_as_numbers(self):
        records = {name: record_maker.load(60, part=name.replace("-", "/")) for name in ("01-2", "2-2")}
        page, _ = self.pages(records)
        self.assertIn("Everything was loaded: 2 loaders stored", page.text)
        self.assertNotIn("No record for", page.text)
        page, _ = self.pages({**records, "again": record_maker.load(60, part="1/2")})
        self.assertIn("Several records belong to 1/2, so the sums below", page.text)

    def test_a_part_that_is_given_twice_is_reported(self):
        records = parts(1, 2, of=2)
        records["copy"] = records["part-2"]
        page, _ = self.pages(records)
        self.assertIn("Several records belong to 2/2, so the sums below count some documents twice", page.text)

    def test_loaders_for_shards(self):
        records = {name: record_maker.load(60, **{"only-shards": name}) for name in ("s0", "s1")}
        page, _ = self.pages(records)
        self.assertIn("Everything was loaded: 2 loaders stored", page.text)
        page, _ = self.pages({"s0": records["s0"], "s0-again": records["s0"]})
        self.assertIn("Several records belong to s0", page.text)
        self.assertIn("No record for shard s1.", page.text)

    def test_a_loader_that_failed_or_was_interrupted_or_miscounted(self):
        for changes, words in (({"exitCode": 4}, "A loader has failed"),
                               ({"exitCode": 130}, "A loader was interrupted, to be resumed"),
                               ({"exitCode": 5, "verification": {"ok": False}},
                                "THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG")):
            records = parts(1, 2, of=2)
            records["part-2"].update(changes)
            page, _ = self.pages(records)
            self.assertIn(words, page.text)
        records = parts(1, 2, of=2)
        records["part-1"]["accounting"]["holds"] = False
        page, _ = self.pages(records)
        self.assertIn("The totals of a loader DO NOT ADD UP", page.text)

    def test_documents_of_a_resumed_run_count_but_not_for_the_rate(self):
        records = parts(1, 2, of=2)
        plain, _ = self.pages(records)
        account = records["part-2"]["accounting"]
        account["ofThoseByEarlierRuns"] = {"inserted": account["inserted"]}
        page, _ = self.pages(records)

        def rate(one):
            return one.text.split(" per second. The totals")[0].rpartition(" at ")[2]

        self.assertNotEqual(rate(plain), rate(page))
        self.assertIn(f"= inserted {self.documents(records):,}", page.text)

    def test_loads_that_do_not_belong_together_are_side_by_side(self):
        for changes in ({"part": "2/3"}, {"part": None}, {"collection": "other"}, {"db": "other"}):
            records = parts(1, 2, of=2)
            records["part-2"]["options"].update(changes)
            page, _ = self.pages(records)
            self.assertIn("Load: 2 side by side", page.text, changes)
        records = parts(1, 2, of=2)
        records["part-1"]["sources"][0]["fingerprint"] = "a"
        records["part-2"]["sources"][0]["fingerprint"] = "b"
        self.assertIn("Load: 2 side by side", self.pages(records)[0].text)

    def test_hundreds_of_loaders_and_absurd_values(self):
        records = parts(*range(1, 217), of=9999)
        page, _ = self.pages(records)
        self.assertIn("216 loaders", page.text)
        self.assertIn("and 16 more", page.text)
        self.assertIn("and more.", page.text)
        broken = parts(1, 2, of=2)
        broken["part-1"].update(phases=[{"seconds": -1}, 3, {"name": 7}], startedAt=None, shards=[{}])
        broken["part-2"]["accounting"] = {"a.b": 1, "inserted": "x"}
        self.pages(broken)
