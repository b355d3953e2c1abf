# SPDX-License-Identifier: Apache-2.0
"""Columns with `invalid: missing`: the values left out add up, also of a load that is killed and resumed,
and of records that are embedded; and points can be indexed and found."""

import support

ROWS = 9000
PAD = "x" * 700                     # about six blocks
SCHEMA = """name: s
delimiter: comma
header: true
columns:
  - {name: key, type: int}
  - {name: n, type: int, invalid: missing}
  - {name: lat, type: latitude, point: at, invalid: missing}
  - {name: lon, type: longitude, point: at}
  - {name: pad}
"""


class Standalone(support.ClusterCase, server="mongod"):
    def setUp(self):
        super().setUp()
        self.path = self.file("t.csv", "key,n,lat,lon,pad\n" + "".join(
            f"{row},{'?' if row % 3 == 0 else row},{91 if row % 7 == 0 else 45.5},{row % 180},{PAD}\n"
            for row in range(ROWS)))
        self.options = ["--schema", self.file("s.yaml", SCHEMA)]
        self.expected = {"n": ROWS // 3, "lat": len(range(0, ROWS, 7))}

    def columns(self, accounting):
        return {one["column"]: one["values"] for one in accounting.get("leftOutByColumn", [])}

    def check_stored(self):
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assertEqual(self.database.t.count_documents({"n": {"$exists": False}}), self.expected["n"])
        self.assertEqual(self.database.t.count_documents({"at": {"$exists": False}}), self.expected["lat"])

    def test_points_are_indexed_and_found(self):
        _, work = self.load(*self.options, "--index", '{"at": "2dsphere"}', self.path)
        self.check_stored()
        accounting = support.run_record(work)["accounting"]
        self.assertEqual(self.columns(accounting), self.expected)
        self.assertEqual(accounting["malformedFields"], sum(self.expected.values()))
        near = self.database.t.find_one({"at": {"$near": {"$geometry": {
            "type": "Point", "coordinates": [100.2, 45.6]}}}})
        self.assertEqual(near["at"], {"type": "Point", "coordinates": [100.0, 45.5]})
        self.shardload("verify", *self.target(), "--content", "--progress", "none", *self.options, self.path)

    def test_a_load_that_is_killed_and_resumed(self):
        work = self.scratch / "work"
        words = self.load_words(work, "--batch-size", 50, "-j", 2, *self.options)
        running = self.start("shardload", *words, "--rate-limit", 2500, self.path)
        self.wait_for_documents(running, 4000)
        running.kill()
        self.clear_balancer()
        outcome = self.shardload(*words, "--resume", self.path)
        self.check_stored()
        accounting = support.run_record(work)["accounting"]
        total = sum(self.expected.values())
        here = self.columns(accounting)
        self.assertEqual(accounting["malformedFields"], total)
        for name, values in here.items():
            self.assertLessEqual(values, self.expected[name])
        if sum(here.values()) < total:
            self.assertRegex(outcome.text, r"left out in earlier runs +\d")

    def test_values_of_embedded_records(self):
        orders = self.file("orders.csv", "key,v\n" + "".join(f"{row},{row % 9}\n" for row in range(0, ROWS, 2)))
        outcome, work = self.load("--embed", f"items={self.path}", "--on", "key", "--embed-schema",
                                  self.file("s.yaml", SCHEMA), orders, code=support.EXIT_REJECTS)
        record = support.run_record(work)
        total = sum(self.expected.values())
        self.assertEqual(record["embed"]["valuesLeftOut"], total)
        self.assertEqual(record["accounting"]["malformedFields"], 0)
        self.assertRegex(outcome.text, rf"values left out of records to embed +{total:,}")
        stored = self.database.t.find_one({"key": 42})["items"][0]
        self.assertEqual((stored.get("n"), stored.get("at")), (None, None))


class Sharded(Standalone, server="cluster"):
    pass
