# SPDX-License-Identifier: Apache-2.0
"""`shardload plan` changes nothing on the servers, and a load that follows has the planned source
numbers, ranges, splits and moves."""
import json

import support

# Collections that the servers change by themselves; of "config" also what concerns SESSIONS.
SESSIONS = "config.system.sessions"
VOLATILE = {"changelog", "lockpings", "mongos", "actionlog", "transactions", "system.sessions", "locks",
            "placementHistory", "rangeDeletions", "image_collection"}


class AnyServer:
    """Tests for each kind of deployment."""

    def everything(self):
        """The documents and indexes of all collections, and the state of the balancer."""
        found = {}
        sessions = self.client.config.collections.find_one({"_id": SESSIONS}) or {}
        others = {"_id": {"$ne": SESSIONS}, "ns": {"$ne": SESSIONS}, "uuid": {"$ne": sessions.get("uuid", 0)}}
        for name in self.client.list_database_names():
            if name in ("local", "admin"):
                continue
            database = self.client[name]
            for collection in database.list_collection_names():
                if name == "config" and (collection in VOLATILE or collection.startswith("cache.")):
                    continue
                documents = database[collection].find(others if name == "config" else {})
                found[name, collection] = (
                    sorted(map(repr, documents)),
                    sorted(database[collection].index_information()) if name != "config" else None)
        found["balancer"] = self.balancer_mode() if self.sharded else None
        return found

    def plan(self, *words, code=support.EXIT_OK, collection="t"):
        report = self.scratch / f"plan-{next(self._counter)}.json"
        before = self.everything()
        outcome = self.shardload("plan", *self.target(collection), "--report", report, *words, code=code)
        after = self.everything()
        for name in before.keys() | after.keys():
            self.assertEqual(after.get(name), before.get(name), f"plan has changed {name}")
        return json.loads(report.read_text("utf-8")), outcome

    def numbers(self, work):
        return [source["number"] for source in support.run_record(work)["sources"]]

    def test_a_load_into_a_new_collection_follows_its_plan(self):
        paths = self.generate("B", 60000, "--files", 3, "--seed", 61)
        plan, _ = self.plan(*paths)
        self.assertFalse(plan["layout"]["collectionExists"])
        _, work = self.load(*paths)
        self.assert_as_planned(plan, work)
        accounting = support.run_record(work)["accounting"]
        estimate = plan["estimate"]
        self.assertEqual(estimate["documents"], accounting["inserted"])
        self.assertEqual(estimate["bsonBytes"], accounting["bsonBytes"])
        self.assertEqual(estimate["textBytes"], accounting["textBytes"])

    def test_a_load_into_an_existing_collection_follows_its_plan(self):
        first = self.generate("B", 30000, "--files", 2, "--seed", 62)
        more = self.generate("B", 40000, "--files", 2, "--seed", 63)
        self.load(*first)
        plan, _ = self.plan(*more)
        self.assertTrue(plan["layout"]["collectionExists"])
        _, work = self.load(*more)
        self.assert_as_planned(plan, work)

    def test_drop_is_planned_and_not_done(self):
        (path,) = self.generate("B", 5000, "--seed", 64)
        self.load(path)
        plan, outcome = self.plan("--drop", path)
        self.assertFalse(plan["layout"]["collectionExists"])
        self.assertIn("is dropped, if it exists, and created", outcome.out)
        self.assertEqual(self.database["t"].count_documents({}), 5000)
        _, work = self.load("--drop", path)
        self.assert_as_planned(plan, work)

    def test_plan_refuses_what_a_load_would_refuse(self):
        (path,) = self.generate("B", 2000, "--seed", 65)
        _, work = self.load(path)
        plan, outcome = self.plan(path, code=support.EXIT_SOURCE)
        self.assertIn("has been loaded into", outcome.err)
        self.assertIn("has been loaded into", plan["refused"])
        self.assertEqual([source["number"] for source in plan["sources"]], self.numbers(work))
        plan, _ = self.plan("--again", path)
        self.assertNotIn("refused", plan)
        _, outcome = self.plan("--again", "--clustered", path, code=support.EXIT_CLUSTER)
        self.assertIn("is not clustered" if self.is_at_least("5.3") else "needs server 5.3 or later", outcome.err)
        self.shardload("load", *self.target(), "--again", "--clustered", path, code=support.EXIT_CLUSTER)

    def test_times_are_predicted_from_the_record_of_a_load(self):
        (path,) = self.generate("B", 40000, "--seed", 66)
        _, work = self.load("--index", '{"v": 1}', path)
        plan, _ = self.plan("--from", work / "run.json", "--index", '{"v": 1}', "--drop", path)
        phases = {phase["name"]: phase for phase in plan["predicted"]["phases"]}
        record = {phase["name"]: phase["seconds"] for phase in support.run_record(work)["phases"]}
        self.assertEqual(set(phases), {"prepare", "load", "indexes", "verify"})
        for name in ("load", "indexes", "verify"): # the same load: the same times
            self.assertAlmostEqual(phases[name]["seconds"], record[name], delta=0.01 * record[name])
            self.assertLessEqual(phases[name]["low"], record[name] * 1.01)
            self.assertGreaterEqual(phases[name]["high"], record[name] * 0.99)
        computed = self.scratch / "computed.json"
        for shards, alike, places in (None, self.assertAlmostEqual, 3), (1000, self.assertGreater, None):
            self.shardload("plan", "--model", "cluster", "--from", work / "run.json", "--report", computed,
                           *(["--set", f"shards={shards}"] if shards else []))
            results = json.loads(computed.read_text("utf-8"))["capacity"]["results"]
            times = {row["name"]: row["value"] for row in results}
            alike(record["load"], times["shards-time"], places)
            alike(record["indexes"], times["index"], places)
        # A reload has the figures of its load inside: its shards were not found, and taken for one.
        run = {**support.run_record(work), "shards": [{"id": "s0"}, {"id": "s1"}]}
        found = []
        for name, record in ("run.json", run), ("reload.json", {**run, "command": "reload", "shards": [], "load": run}):
            self.shardload("plan", "--model", "cluster", "--from", self.file(name, json.dumps(record)), "--report",
                           computed)
            found.append(json.loads(computed.read_text("utf-8"))["capacity"]["results"])
        self.assertEqual(*found)
        self.shardload("plan", "--model", "petabyte", "--from", work / "run.json", code=support.EXIT_USAGE,
                       message="such as the model cluster")

    def test_rates_of_other_conditions_are_named(self):
        (path,) = self.generate("B", 4000, "--seed", 70)
        _, work = self.load(path)
        record = support.run_record(work)
        _, outcome = self.plan("--from", work / "run.json", "--drop", path)
        self.assertNotIn(" hold", outcome.err)
        for section, key, value, words in (
                ("server", "deployment", "replica set", "measured on a replica set with write concern majority"),
                ("options", "write-concern", "1", "with write concern 1, and this load is for a")):
            changed = {**record, section: {**record[section], key: value}}
            _, outcome = self.plan("--from", self.file("other.json", json.dumps(changed)), "--drop", path)
            self.assertIn(words, outcome.err)
            self.assertIn("do not hold", outcome.err)
        for name, value in (("rate-limit", "5000"), ("part", "1/2"), ("only-shards", "s0")):
            changed = {**record, "options": {**record["options"], name: value}}
            _, outcome = self.plan("--from", self.file("other.json", json.dumps(changed)), "--drop", path)
            self.assertIn(f"other.json: the load had --{name} {value}; the predicted times hold", outcome.err)


class Sharded(AnyServer, support.ClusterCase):
    sharded = True

    def owner(self, chunks, identity):
        for chunk in chunks:
            low, high = chunk["min"]["_id"], chunk["max"]["_id"]
            if ((not isinstance(low, int) or low <= identity) and (not isinstance(high, int) or identity < high)):
                return chunk["shard"]
        self.fail(f"no chunk holds {identity}")

    def assert_as_planned(self, plan, work):
        """The load has the planned source numbers, ranges, splits and moves."""
        self.assertEqual([source["number"] for source in plan["sources"]], self.numbers(work))
        chunks = self.chunks()
        per_shard = {}
        for planned in plan["ranges"]:
            for identity in (planned["minimum"], planned["maximum"] - 1,
                             (planned["minimum"] + planned["maximum"]) // 2):
                self.assertEqual(self.owner(chunks, identity), planned["shard"], planned)
            found = self.database["t"].count_documents({"_id": {"$gte": planned["minimum"], "$lt": planned["maximum"]}})
            self.assertAlmostEqual(found, planned["documents"], delta=0.1 * found + 1)
            per_shard[planned["shard"]] = per_shard.get(planned["shard"], 0) + found
        placing = support.run_record(work)["distribution"]
        self.assertEqual(placing["ranges"], len(plan["ranges"]))
        self.assertEqual(placing["steps"], plan["layout"]["splits"] + plan["layout"]["moves"])
        for shard in plan["shards"]:
            found = per_shard.get(shard["shard"], 0)
            self.assertAlmostEqual(found, shard["documents"], delta=0.1 * found + 1)

    def test_the_share_of_each_shard_by_a_hashed_key(self):
        first = self.generate("B", 20000, "--seed", 67)
        more = self.generate("B", 20000, "--seed", 68)
        key = ("--shard-key", '{"v": "hashed"}')
        plan, _ = self.plan(*key, *first)
        self.assertEqual(plan["layout"]["kind"], "hashed")
        self.load(*key, *first)
        plan, _ = self.plan(*key, *more)
        self.assertEqual(plan["layout"]["kind"], "key")
        for shard in plan["shards"]:
            self.assertGreater(shard["share"], 0.3) # two chunks a shard, or one
        _, work = self.load(*key, *more)
        found = {shard["shard"]: shard["documents"] for shard in support.run_record(work)["shards"]}
        for shard in plan["shards"]:
            self.assertAlmostEqual(found[shard["shard"]] / sum(found.values()), shard["share"], delta=0.02)

    def test_documents_on_another_shard_stay(self):
        (path,) = self.generate("B", 30000, "--seed", 69)
        self.load(path)
        namespace = f"{self.database_name}.t"
        chunks = self.chunks()
        filled = [chunk for chunk in chunks if isinstance(chunk["min"]["_id"], int) and
                  isinstance(chunk["max"]["_id"], int)]
        shards = [shard["_id"] for shard in self.client.config.shards.find()]
        other = next(name for name in shards if name != filled[0]["shard"])
        self.client.admin.command("moveChunk", namespace, bounds=[filled[0]["min"], filled[0]["max"]], to=other)
        plan, outcome = self.plan("--again", path)
        staying = [planned for planned in plan["ranges"] if planned.get("unchanged")]
        self.assertEqual([planned["minimum"] for planned in staying], [filled[0]["min"]["_id"]])
        self.assertEqual(plan["layout"]["occupied"], 1)
        self.assertIn("are not moved (=): they hold documents on another shard", outcome.out)
        shares = {shard["shard"]: shard["share"] for shard in plan["shards"]}
        self.assertEqual(shares[other], 1)


class Standalone(AnyServer, support.ClusterCase, server="mongod"):
    sharded = False

    def assert_as_planned(self, plan, work):
        self.assertEqual([source["number"] for source in plan["sources"]], self.numbers(work))
        self.assertEqual(plan["layout"]["kind"], "unsharded")
        self.assertEqual(plan["layout"]["moves"], 0)
