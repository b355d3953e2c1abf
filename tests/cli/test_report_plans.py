# SPDX-License-Identifier: Apache-2.0
"""`shardload report` of plans, capacity models and measurements of shards on one machine: the page
contains the limits of the figures."""

import record_maker
from test_report import ReportCase


class Plans(ReportCase):
    def test_what_a_plan_cannot_predict_is_at_the_top(self):
        record = record_maker.plan()
        page = self.page(self.record("plan", record))
        self.assertNotIn("whose time is unknown", page.text)
        record["predicted"]["phases"] += [{"name": name, "unknownBecause": "nobody did"}
                                          for name in ("verify", "queries")]
        for complete in (False, None):  # older plans have no "complete"
            if complete is not None:
                record["predicted"]["complete"] = complete
            else:
                del record["predicted"]["complete"]
            path = self.record("plan", record)
            page = self.page(path)
            self.assertIn('class="verdict warning">Predicted: 300,000,000 records; 14 min 00 s '
                          "(13 min 00 s to 17 min 00 s), WITHOUT verify, queries, whose time is "
                          "unknown.", page.source)
            for text in (page.text, self.text(path)):
                self.assertIn("total, without the unknown phases", text)


class CapacityModels(ReportCase):
    def test_a_capacity_model(self):
        path = self.scratch / "model.json"
        self.shardload("plan", "--model", "isd-hundred-shards", "--report", path)
        page = self.page(path)
        for words in ("Computed, not measured: load is 3 h 02 min", "Decided by: network-time.",
                      "index 4 min 36 s 5 min 00 s 0.92 predicted", "router-rate"):
            self.assertIn(words, page.text)
        self.assertIn("svg", page.elements)

    def test_every_part_of_a_capacity_model(self):
        path = self.record("model", record_maker.model())
        page = self.page(path)
        for text in (page.text, " ".join(self.text(path).split())):
            for words in ("load is 2 h 00 min (1 h 36 min to 3 h 00 min). Decided by: routers-time.",
                          "It has two machines.", "load by replicas"):
                self.assertIn(words, text)
        for words in ("as many as it should be", "2 h 30 min 0.80 fitted",
                      "load two shards 1 min 00 s 50 s 1.20 predicted", "2.5 2 h 30 min", "2 bytes/s"):
            self.assertIn(words, page.text)


class Shards(ReportCase):
    def test_shards_on_one_machine(self):
        page = self.page(self.record("shards", record_maker.shards()))
        self.assertIn("Fastest to load 10,000,000 documents: 8 shards", page.text)
        for words in ("Query makes", "CPU wait", "1 shard,", "spread of the rounds",
                      "All files of the shards", "Memory of the shards' servers",
                      "processors while loading", "processors while querying"):
            self.assertIn(words, page.text)
        # A row of each table: 8 shards, the larger cache.
        row = "8 shards cache 250000000 B each, snappy 2.0 GB"
        self.assertIn(f"{row} 15 s 660,000 2.20 628.0 MB 3.4 GB 1.6 GB 500 ms 12.0 ms 60.0 %",
                      page.text)
        self.assertIn(f"{row} makes 500 ms 450 ms 600 ms 20,000 8.00 95.0 % 0.6 % 0.0 % 4.4 %",
                      page.text)
        record = record_maker.shards()
        for one in record["rows"]:
            for key in ("fileBytes", "memoryBytes", "queryCpu", "ratio"):
                del one[key]
        page = self.page(self.record("older", record))
        for words in ("All files of the shards", "Memory of", "while querying", "nan"):
            self.assertNotIn(words, page.text)
        self.assertEqual(page.source.count('class="verdict'), 1)
        record = {**record_maker.shards(), "warnings": ["the machine was busy"],
                  "why": "interrupted"}
        page = self.page(self.record("shards", record))
        self.assertEqual(page.source.count('class="verdict'), 3)
        self.assertIn("the machine was busy", page.text)
        self.assertIn("interrupted", page.text)
