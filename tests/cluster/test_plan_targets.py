# SPDX-License-Identifier: Apache-2.0
"""Random targets and options: `shardload plan` refuses what `load` refuses, with the same words, and what it
announces is what the load then does. SHARDLOAD_TARGETS sets their number, SHARDLOAD_SEED the first one."""
import json
import os
import random
import re

import support

COUNT, SEED = int(os.environ.get("SHARDLOAD_TARGETS", "30")), int(os.environ.get("SHARDLOAD_SEED", "1"))

# What the collection is before the load. `key`: it is sharded by this key.
UNSHARDED = {
    "new": None,
    "empty": {},
    "filled": {"documents": 50},
    "capped": {"options": {"capped": True, "size": 1 << 20}, "documents": 5},
    "view": {"options": {"viewOn": "other", "pipeline": []}},
    "time series": {"options": {"timeseries": {"timeField": "at"}}},
    "collation": {"options": {"collation": {"locale": "de"}}, "documents": 5},
    "validator": {"options": {"validator": {"c": {"$exists": True}}}, "documents": 5},
    "clustered": {"options": {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}, "documents": 5},
    "unique": {"index": {"key": {"b": 1}, "name": "b_1", "unique": True, "sparse": True}},
    "unique by the key": {"index": {"key": {"a": 1, "b": 1}, "name": "x", "unique": True}},
    "foreign index": {"index": {"key": {"b": 1}, "name": "a_1"}, "documents": 5},
    "sparse index": {"index": {"key": {"a": 1}, "name": "a_1", "sparse": True}, "documents": 5},
    "loaded": {"loaded": True},
}
SHARDED = {
    "by _id": {"key": {"_id": 1}},
    "by hashed _id": {"key": {"_id": "hashed"}, "documents": 50},
    "by a": {"key": {"a": 1}, "documents": 50, "split": {"a": 300}},
    "by hashed a": {"key": {"a": "hashed"}, "documents": 50},
    "compound": {"key": {"b": 1, "a": 1}},
    "zones": {"key": {"a": 1}, "documents": 50, "zone": True},
}
OPTIONS = [["--shard-existing"], ["--index", '{"a": 1}'], ["--index", '{"key": {"b": 1}, "unique": true}'],
           ["--clustered"], ["--compressor", "zlib"], ["--id-field", "a"], ["--drop"], ["--again"],
           ["--mode", "upsert", "--match-fields", "a"], ["--no-verify"],
           ["--shard-key", "none"], ["--shard-key", '{"_id": 1}'], ["--shard-key", '{"a": 1}'],
           ["--shard-key", '{"a": "hashed"}'], ["--shard-key", '{"b": 1, "a": 1}']]


class AnyServer:
    def make(self, kind):
        """Makes the collection. False: this server cannot have it."""
        target = {**UNSHARDED, **SHARDED}[kind]
        if target is None:
            return True
        if target.get("loaded"):
            self.load(self.path)
            return True
        options = target.get("options", {})
        if not self.is_at_least("5.3") and {"timeseries", "clusteredIndex"} & set(options):
            return False
        if "key" in target:
            self.shard(target["key"])
            if "split" in target:
                self.client.admin.command("split", f"{self.database_name}.t", middle=target["split"])
        else:
            self.database.create_collection("t", **options)
        if "index" in target:
            self.database.command("createIndexes", "t", indexes=[target["index"]])
        if "documents" in target:
            self.database.t.insert_many([{"a": 1000 + n, "b": 1000 + n, "c": "x"} for n in range(target["documents"])])
        if target.get("zone"):
            shard = self.client.config.shards.find_one()["_id"]
            self.client.admin.command("addShardToZone", shard, zone="z")
            self.client.admin.command("updateZoneKeyRange", f"{self.database_name}.t", min={"a": 0},
                                      max={"a": 200}, zone="z")
        return True

    def draw(self, chance):
        kind = chance.choice([*UNSHARDED, *(SHARDED if self.sharded else ())])
        words, names = [], set()
        for option in chance.sample(OPTIONS, chance.choice((0, 1, 1, 2, 2, 3))):
            if option[0] not in names:
                names.add(option[0])
                words += option
        return kind, words

    def keys_and_names(self):
        return [([list(field) for field in index["key"]], index.get("unique", False))
                for index in self.database.t.index_information().values()]

    def compare(self, plan, planned, loaded, work, words):
        self.assertEqual(planned.code, loaded.code, f"plan printed:\n{planned.text}\nload printed:\n{loaded.text}")
        if loaded.code != support.EXIT_OK:
            said, heard = (re.sub(r" on shard \w+", "", " ".join(text.split())) for text in
                           (plan["refused"] if plan else planned.err, loaded.err))
            self.assertIn(said[:120], heard)
            return
        layout, record = plan["layout"], support.run_record(work)
        self.assertEqual([source["number"] for source in plan["sources"]],
                         [source["number"] for source in record["sources"]])
        entry = support.catalog_entry(self.client, f"{self.database_name}.t")
        self.assertEqual(entry is not None, self.sharded and layout["kind"] != "unsharded", layout)
        if entry:
            self.assertEqual(entry["key"], layout["shardKey"])
        if layout["kind"] == "ranges":
            self.assertEqual(record["distribution"]["steps"], layout["splits"] + layout["moves"])
        for place, word in enumerate(words):
            if word == "--index":
                wanted = json.loads(words[place + 1])
                key = [list(item) for item in wanted.get("key", wanted).items()]
                self.assertTrue(any(found == key and unique >= wanted.get("unique", False)
                                    for found, unique in self.keys_and_names()), wanted)

    def test_a_load_does_what_its_plan_says(self):
        self.path = self.file("t.csv", "a,b,c\n" + "".join(f"{n},{n},text {n}\n" for n in range(600)))
        outcomes = {}
        for number in range(SEED, SEED + COUNT):
            kind, words = self.draw(random.Random(number))
            self.client.drop_database(self.database_name)
            if not self.make(kind):
                continue
            with self.subTest(number=number, kind=kind, words=words):
                report = self.scratch / f"plan-{number}.json"
                planned = self.shardload("plan", *self.target(), "--report", report,
                                         *[w for w in words if w != "--no-verify"], self.path, code=None)
                plan = json.loads(report.read_text("utf-8")) if report.exists() else None
                loaded, work = self.load(*words, self.path, code=None)
                self.compare(plan, planned, loaded, work, words)
                outcomes[loaded.code] = outcomes.get(loaded.code, 0) + 1
                if self.sharded:
                    self.assertEqual(self.balancer_mode(), self.mode)
        print(f"# {sum(outcomes.values())} targets; loads by exit code: {outcomes}")


class Sharded(AnyServer, support.ClusterCase):
    sharded = True

    def setUp(self):
        super().setUp()
        self.mode = self.balancer_mode()


class ReplicaSet(AnyServer, support.ClusterCase, server="replica"):
    sharded = False
