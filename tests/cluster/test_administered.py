# SPDX-License-Identifier: Apache-2.0
"""What administrators do to a cluster before or during a load. A real mongos only."""
import json
import os

import servers
import support
from support import bson


class Administered(support.ClusterCase):
    """What administrators do to a cluster before or during a load."""

    @classmethod
    def setUpClass(cls):
        if os.environ.get(servers.PROGRAMS_USED) != "mongos":
            raise support.unittest.SkipTest("needs a real mongos: tools/test --servers mongos")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.admin, self.namespace = self.client.admin, f"{self.database_name}.t"
        self.addCleanup(self.admin.command, "balancerStart")
        self.addCleanup(self.client.shardload.balancer.delete_many, {})

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
                self.assert_accounting(work, inserted=0, alreadyStored=2000)
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

    def test_reads_from_secondaries_that_lag(self):
        """A URI for reads from secondaries: what a load or a verification relies on is read from primaries."""
        cluster = servers.Servers(self.scratch / "cluster", "--shards", 2, "--replicas", 3, *servers.SAVING)
        self.addCleanup(cluster.down)
        for name in sorted(self.shard_hosts()):
            members = [support.pymongo.MongoClient("127.0.0.1", entry["port"], directConnection=True)
                       for entry in cluster.processes() if entry["name"].startswith(name)]
            lagging = next(one for one in members if support.hello(one)["secondary"])
            lagging.admin.command("fsync", lock=True)
            self.addCleanup(lagging.admin.command, "fsyncUnlock")
        path = self.file("year.txt", support.mot_text(range(5000)))
        target = ["--uri", f"{cluster.uri}?readPreference=secondary", "-d", self.database_name, "-c", "t"]
        for route in ("mongos", "direct"):
            load = ["load", *target, "--route", route, "--id-field", "test_id", path, "--work-dir"]
            self.shardload(*load, self.scratch / f"{route}-1", "--drop")
            self.shardload(*load, self.scratch / f"{route}-2", "--again")
            self.shardload("verify", *target, "--content", "--id-field", "test_id", path)

    def test_ten_thousand_chunks(self):
        """Of a hashed key, pre-split by the owner of the collection."""
        path = self.file("own.json", "".join(json.dumps({"_id": n, "n": n}) + "\n" for n in range(5000)))
        self.shard({"n": "hashed"}, numInitialChunks=10000)
        self.load_in_parts(path)

    def test_ten_thousand_chunks_of_ids(self):
        """In the ids of the load, each on another shard than the next: a zone for each chunk makes them."""
        path = self.file("year.txt", support.mot_text(range(5000)))
        bounds = [{"_id": bson.Int64(1 << 40 | n * 40)} for n in range(9999)]
        for number in (0, 1):
            self.admin.command("addShardToZone", f"s{number}", zone=f"z{number}")
            self.addCleanup(self.admin.command, "removeShardFromZone", f"s{number}", zone=f"z{number}")
        for route in ("mongos", "direct"):
            self.client.drop_database(self.database_name)
            self.client.config.tags.insert_many(
                [{"_id": {"ns": self.namespace, "min": bound}, "ns": self.namespace, "min": bound,
                  "max": bounds[n + 1], "tag": f"z{n % 2}"} for n, bound in enumerate(bounds[:-1])])
            self.shard({"_id": 1})
            self.client.config.tags.delete_many({})
            before = [(chunk["min"], chunk["shard"]) for chunk in self.chunks()]
            self.load_in_parts(path, "--route", route)
            after = [(chunk["min"], chunk["shard"]) for chunk in self.chunks()]
            self.assertTrue(after[:9999] == before[:9999], "chunks were moved")

    def load_in_parts(self, path, *more):
        """Loads 5,000 records with a kill and a resume, and verifies them, in little memory."""
        self.assertEqual(len(self.chunks()), 10000)
        self.assert_frugal("plan", *self.target(), path)
        words = self.load_words(self.scratch / f"work{more}", "-j", 1, "--batch-size", 100, *more, path)
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
