# SPDX-License-Identifier: Apache-2.0
"""The generated data sets of tools/reproduce: e-mails, flights, orders and line items, tweets, a sensor
log. Each loads without rejects, is the same on every run, and repeats itself as real data does."""
import csv
import datetime
import gzip
import io
import json
import zlib

import support

EXTENSIONS = {"emails": "bson", "flights": "csv", "orders": "csv", "lineitems": "csv", "tweets": "json",
              "sensors": "csv"}
FORMATS = {"emails": "bson", "flights": "delimited", "orders": "delimited", "lineitems": "delimited",
           "tweets": "json", "sensors": "delimited"}


class Rows(support.Case):
    def data(self, name, rows, *words):
        path = self.scratch / f"{name}-{rows}-{len(words)}.{EXTENSIONS[name]}"
        done = self.run_program("shardload-datagen", "--format", name, "--rows", rows, *words, path)
        self.assertEqual(done.code, 0, done.text)
        return path

    def table(self, name, rows, delimiter=","):
        return list(csv.DictReader(io.StringIO(self.data(name, rows).read_text("utf-8")),
                                   delimiter=delimiter))

    def test_each_loads_without_rejects(self):
        for name, kind in FORMATS.items():
            path = self.data(name, 3000)
            record = support.run_record(self.parse(path)[1])
            self.assertEqual([source["format"] for source in record["sources"]], [kind])
            expected = path.read_text("utf-8").count("\n") - 1 if name == "lineitems" else 3000
            self.assertEqual(record["accounting"]["inserted"], expected, name)

    def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones(self):
        for name in FORMATS:
            first = self.data(name, 500).read_bytes()
            self.assertEqual(self.data(name, 500, "--seed", 1).read_bytes(), first)
            self.assertNotEqual(self.data(name, 500, "--seed", 2, "--files", 1).read_bytes(), first)
            packed = self.data(name, 500, "--gzip")
            self.assertEqual(gzip.decompress(packed.read_bytes()), first)
            # The first records do not depend on the number of records.
            self.assertTrue(self.data(name, 900).read_bytes().startswith(first), name)

    def test_texts_repeat_themselves_but_not_only(self):
        for name in FORMATS:
            text = self.data(name, 3000).read_bytes()
            ratio = len(text) / len(zlib.compress(text))
            self.assertTrue(2 < ratio < 15, f"{name}: {ratio}")

    def test_line_items_belong_to_orders(self):
        orders = {row["o_orderkey"]: row for row in self.table("orders", 1000, "|")}
        items = self.table("lineitems", 1000, "|")
        self.assertEqual(len(orders), 1000)
        self.assertEqual({row["l_orderkey"] for row in items}, set(orders))
        for row in items:
            self.assertLess(orders[row["l_orderkey"]]["o_orderdate"], row["l_shipdate"])
            self.assertLess(row["l_shipdate"], row["l_receiptdate"])
        numbers = {}
        for row in items:
            numbers.setdefault(row["l_orderkey"], []).append(int(row["l_linenumber"]))
        self.assertEqual({tuple(lines) for lines in numbers.values()},
                         {tuple(range(1, count + 1)) for count in range(1, 8)})

    def test_orders_with_line_items_become_one_document(self):
        orders, items = self.data("orders", 400), self.data("lineitems", 400)
        raw, _ = self.dump("--embed", f"items={items}", "--on", "o_orderkey=l_orderkey", orders)
        self.assertEqual(len(raw), 400)

    def test_the_delay_of_a_flight_is_the_time_between_its_scheduled_and_actual_departure(self):
        flown = [row for row in self.table("flights", 2000) if row["cancelled"] == "false"]
        for row in flown:
            scheduled, actual = (datetime.datetime.fromisoformat(row[f"departure.{kind}"].rstrip("Z"))
                                 for kind in ("scheduled", "actual"))
            self.assertEqual((actual - scheduled).total_seconds() / 60, int(row["delay.departure"]), row)
        self.assertTrue(any(int(row["delay.departure"]) < 0 for row in flown))

    def test_the_log_has_the_columns_of_its_schema(self):
        rows = self.table("sensors", 100)
        self.assertEqual(len(rows[0]), 40)
        for name in ("Device Time", "Engine RPM(rpm)", "Engine Load(%)", "Intake Manifold Pressure(kPa)"):
            self.assertNotEqual(rows[0][name], "-")
        self.assertEqual(rows[0]["Longitude"], "-")

    def test_tweets_of_a_user_have_the_same_description(self):
        tweets = [json.loads(line) for line in self.data("tweets", 3000).read_text("utf-8").splitlines()]
        described = {}
        for tweet in tweets:
            described.setdefault(tweet["user"]["id"], set()).add(tweet["user"]["description"])
        self.assertEqual({len(texts) for texts in described.values()}, {1})
        self.assertLess(len(described), 2500)
        self.assertEqual(len({tweet["id"] for tweet in tweets}), 3000)

    def test_options_that_do_not_apply_are_refused(self):
        for words in (["--bad", 3], ["--dialect", "B"], ["--year", 2014], ["--stations", 4],
                      ["--answers", self.scratch / "a.json"], ["--dirt", "heavy"],
                      ["--dirt", "published"]):
            for name in FORMATS:
                done = self.run_program("shardload-datagen", "--format", name, *words,
                                        self.scratch / "t")
                self.assertEqual(done.code, 2, done.text)
                self.assertIn(str(words[0]), done.err)
                self.assertFalse((self.scratch / "t").exists())

    def test_no_irregularities_may_be_asked_for(self):
        plain = self.data("tweets", 50).read_bytes()
        self.assertEqual(self.data("tweets", 50, "--dirt", "none").read_bytes(), plain)
