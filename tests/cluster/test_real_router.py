# SPDX-License-Identifier: Apache-2.0
"""A sharded cluster of server 4.4 behind a real mongos. SHARDLOAD_REAL names a folder with 4.4/bin/mongod and
4.4/bin/mongos; the tests skip without it."""
import json

import real_servers
import support
from support import bson


class RealRouter(real_servers.RouterCase):
    def test_a_load_is_complete_and_equal(self):
        path = self.file("year.txt", support.mot_text(range(1, 3001)))
        _, work = self.load(path)
        self.assert_accounting(work, inserted=3000)
        self.assertEqual(self.database.t.count_documents({}), 3000)
        self.shardload("verify", *self.target(), "--content", path)
        shards = {chunk["shard"] for chunk in self.client.config.chunks.find(
            {"ns": f"{self.database_name}.t"})}
        self.assertEqual(len(shards), 2)

    def test_documents_that_this_server_refuses_are_rejects(self):
        """Until server 5.0 a key of a stored document may not begin with $: code 2, for one document."""
        lines = [json.dumps({"_id": number, **({"$set": 1} if number % 50 == 0 else {"n": number})})
                 for number in range(1, 201)]
        path = self.file("keys.json", "\n".join(lines) + "\n")
        for route in ("mongos", "direct"):
            with self.subTest(route=route):
                self.database.drop_collection("t")
                self.database.drop_collection("t.sources")
                _, work = self.load("--route", route, path, code=support.EXIT_REJECTS)
                self.assert_accounting(work, inserted=196, rejectedByServer=4)
                rows = support.reject_rows(work)
                self.assertEqual(len(rows), 4)
                for row in rows:
                    self.assertIn("$set", row["reason"])
                self.assertEqual(self.database.t.count_documents({}), 196)

    def test_documents_whose_shard_the_router_cannot_find_are_rejects(self):
        """The router refuses the command, of which they are the only documents."""
        admin = self.client.admin
        admin.command("enableSharding", self.database_name)
        for name, key in (("hashed", {"v": "hashed"}), ("range", {"v": 1})):
            admin.command("shardCollection", f"{self.database_name}.{name}", key=key)
            for count, code in ((3, support.EXIT_REJECTS), (0, support.EXIT_SOURCE)):
                with self.subTest(key=key, count=count):
                    lines = [{"_id": f"{count} {n}", "v": n} for n in range(count)] + [{"_id": count, "v": [1]}]
                    path = self.file(f"{name}{count}.json", "".join(json.dumps(one) + "\n" for one in lines))
                    _, work = self.load("--shard-key", json.dumps(key), "--retry-timeout", 20, path,
                                        collection=name, code=code)
                    self.assert_accounting(work, inserted=count, rejectedByServer=1)
                    (row,) = support.reject_rows(work)
                    self.assertIn("(code 61)", row["reason"])

    def test_a_shard_of_the_cluster_is_not_loaded(self):
        path = self.file("year.txt", support.mot_text(range(1, 30)))
        shard = f"mongodb://{support.HOST}:{self.cluster.port('s0-0')}/"
        self.shardload("load", "--uri", shard, "-d", self.database_name, "-c", "t", "--work-dir",
                       self.scratch / "work", path, code=support.EXIT_USAGE, message="router")
        self.assertEqual(self.database.list_collection_names(), [])


class Administered(real_servers.RouterCase):
    """What administrators do to a cluster before or during a load."""

    def setUp(self):
        super().setUp()
        self.admin, self.namespace = self.client.admin, f"{self.database_name}.t"
        self.addCleanup(self.admin.command, "balancerStart")
        self.addCleanup(self.client.shardload.balancer.delete_many, {})

    def chunks(self, collection="t"):
        return list(self.client.config.chunks.find({"ns": f"{self.database_name}.{collection}"}).sort("min"))

    def shard(self, key, **more):
        self.admin.command("enableSharding", self.database_name)
        self.admin.command("shardCollection", self.namespace, key=key, **more)

    def test_a_shard_that_is_being_removed_gets_no_ranges(self):
        path = self.file("year.txt", support.wide_text(4, rows=1000))
        shards = self.client.config.shards
        for name in sorted(self.shard_hosts()):
            for words in ([], ["--id-field", "test_id", "--shard-key", '{"_id": 1}'], ["--only-shards", "s0,s1"]):
                with self.subTest(draining=name, words=words):
                    self.client.drop_database(self.database_name)
                    self.admin.command("enableSharding", self.database_name)
                    entry = self.client.config.databases.find_one({"_id": self.database_name})
                    other = next(shard for shard in sorted(self.shard_hosts()) if shard != name)
                    if entry["primary"] == name:
                        self.admin.command("movePrimary", self.database_name, to=other)
                    shards.update_one({"_id": name}, {"$set": {"draining": True}})
                    try:
                        _, work = self.load(*words, path)
                    finally:
                        shards.update_one({"_id": name}, {"$unset": {"draining": ""}})
                    self.assert_accounting(work, inserted=4000)
                    self.assertEqual({chunk["shard"] for chunk in self.chunks()}, {other})
                    self.assertEqual(self.balancer_mode(), "full")

    def test_ranges_that_a_zone_keeps_on_a_shard(self):
        self.admin.command("addShardToZone", "s0", zone="z")
        self.addCleanup(self.admin.command, "removeShardFromZone", "s0", zone="z")
        self.addCleanup(self.client.config.tags.delete_many, {})
        path = self.file("year.txt", support.wide_text(4, rows=1000))
        for words in ([], ["--id-field", "test_id", "--shard-key", '{"_id": 1}']):
            with self.subTest(words=words):
                self.client.drop_database(self.database_name)
                self.client.config.tags.delete_many({})
                self.shard({"_id": 1})
                self.admin.command("updateZoneKeyRange", self.namespace, zone="z",
                                   min={"_id": bson.MinKey()}, max={"_id": bson.MaxKey()})
                for chunk in self.chunks():
                    self.admin.command("moveChunk", self.namespace, bounds=[chunk["min"], chunk["max"]], to="s0")
                _, work = self.load(*words, path)
                self.assert_accounting(work, inserted=4000)
                self.assertEqual({chunk["shard"] for chunk in self.chunks()}, {"s0"})

    def test_an_unsharded_collection_that_movePrimary_copies_during_the_load(self):
        """Its copy has another UUID: the load ends, and another one with --again completes it."""
        path = self.file("own.json", "".join(json.dumps({"_id": n, "s": "x" * 500}) + "\n" for n in range(4000)))
        words = ["--shard-key", "none", "--batch-size", 50, path]
        running = self.start("shardload", *self.load_words("first", "--rate-limit", 500, *words))
        self.wait_for_documents(running, 300)
        home = self.client.config.databases.find_one({"_id": self.database_name})["primary"]
        self.admin.command("movePrimary", self.database_name, to="s1" if home == "s0" else "s0")
        running.wait().expect(support.EXIT_CLUSTER, "or movePrimary", "--again")
        self.shardload(*self.load_words("first", "--resume", *words), code=support.EXIT_CLUSTER,
                       message=("copied by movePrimary", "--again"))
        _, work = self.load("--again", *words)
        self.assertEqual(support.run_record(work)["accounting"]["rejectedByServer"], 0)
        self.check_stored({"_id": n, "s": "x" * 500} for n in range(4000))

    def test_orphans_are_neither_verified_nor_counted(self):
        """Documents on a shard that does not own them, as after an aborted migration."""
        path = self.file("own.json", "".join(json.dumps({"_id": n, "n": n}) + "\n" for n in range(2000)))
        for key in ({"_id": 1}, {"n": 1}, {"_id": "hashed"}):
            with self.subTest(key=key):
                self.database.drop_collection("t")
                self.database.drop_collection("t.sources")
                words = ["--shard-key", json.dumps(key), path]
                self.load(*words)
                shards = self.shard_clients()
                held = {name: list(shard[self.database_name].t.find()) for name, shard in shards.items()}
                self.assertGreater(min(map(len, held.values())), 0)
                for (name, documents), other in zip(held.items(), reversed(shards.values())):
                    other[self.database_name].t.insert_many(documents[:50])
                    changed = [{**one, "changed": name} for one in documents[50:60]]
                    other[self.database_name].t.insert_many(changed)
                self.shardload("verify", *self.target(), "--content", "--progress", "none", path)
                _, work = self.load("--again", *words)
                self.assert_accounting(work, inserted=0, alreadyThere=2000)
                more = self.file("more.json", "".join(json.dumps({"_id": n, "n": n}) + "\n"
                                                      for n in range(2000, 2500)))
                _, work = self.load("--shard-key", json.dumps(key), more)
                self.assert_accounting(work, inserted=500)
                self.assertEqual(support.run_record(work)["verification"]["documentsAfter"], 2500)

    def test_jumbo_chunks_of_an_owner(self):
        """Ranges of the load are split off a chunk that is too large to be moved."""
        self.shard({"_id": 1})
        self.database.t.insert_many([{"_id": f"mine {n}", "s": "x" * 10000} for n in range(200)])
        self.client.config.chunks.update_many({"ns": self.namespace}, {"$set": {"jumbo": True}})
        path = self.file("year.txt", support.wide_text(4, rows=1000))
        _, work = self.load(path)
        self.assert_accounting(work, inserted=4000)
        self.assertEqual(len({chunk["shard"] for chunk in self.chunks()}), 2)
        self.assertEqual(self.database.t.count_documents({}), 4200)

    def test_ten_thousand_chunks(self):
        """Of a hashed key, pre-split by the owner of the collection."""
        path = self.file("own.json", "".join(json.dumps({"_id": n, "n": n}) + "\n" for n in range(5000)))
        self.shard({"n": "hashed"}, numInitialChunks=10000)
        self.assertEqual(len(self.chunks()), 10000)
        self.assert_frugal("plan", *self.target(), path)
        words = self.load_words(self.scratch / "work", "-j", 1, "--batch-size", 100, path)
        running = self.start("shardload", *words, "--rate-limit", 2500)
        self.wait_for_documents(running, 500)
        running.kill()
        self.assert_frugal(*words, "--resume")
        self.assert_frugal("verify", *self.target(), "--content", path)
        self.assertEqual(self.database.t.count_documents({}), 5000)

    def assert_frugal(self, *words):
        """Runs the command, which must need less memory than 128 MiB."""
        outcome = self.shardload(*words, through=self.MEASURED)
        self.assertLess(int(outcome.out.splitlines()[-1]), 128 << 10, outcome.text)
