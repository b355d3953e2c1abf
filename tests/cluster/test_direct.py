# SPDX-License-Identifier: Apache-2.0
"""`--route direct`: batches straight to the shards, documents where routers look for them, and a
clear refusal wherever that cannot be promised."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "faults")]
import proxy  # noqa: E402
import support  # noqa: E402
from support import bson, pymongo  # noqa: E402

DIRECT = "--route", "direct"
NOWHERE = b"127.0.0.9"        # on loopback, where no server of the tests listens


class Direct(support.ClusterCase):
    def setUp(self):
        super().setUp()
        host, port = self.uri.split("://")[1].split("/")[0].rsplit(":", 1)
        self.proxy = proxy.Proxy(int(port))
        self.addCleanup(self.proxy.close)
        self.through = f"mongodb://{host}:{self.proxy.port}/"

    def target(self, collection="t"):
        return ["--uri", self.through, "-d", self.database_name, "-c", collection]

    def isd(self):
        names = ["010010-99999-1988", "722540-13904-2014", "722874-93134-2007.gz"]
        paths = [support.SAMPLES / "isd" / name for name in names]
        for path in paths:
            if not path.exists():
                self.skipTest(f"no sample file {path.name}: set SHARDLOAD_SAMPLES")
        return paths

    def shards_of(self, client):
        return sorted(shard["_id"] for shard in client.config.shards.find())

    def assert_loaded(self, work, *sources):
        """All of it, to the byte, as a router shows it."""
        record = support.run_record(work)
        self.assertIs(record["accounting"]["holds"], True)
        self.assertIs(record["verification"]["ok"], True)
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "-c", "t",
                       "--content", "--progress", "none", *sources)
        return record["accounting"]

    def test_by_id_nothing_passes_the_router(self):
        sources, answers = self.generate("B", 60000, "--seed", 5)
        _, work = self.load(*DIRECT, "-j", 3, "--batch-size", 500, *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual(figures["inserted"], 60000, answers)
        self.assertEqual(self.proxy.batches, 0)
        self.assertGreater(figures["batches"], 100)
        self.assertEqual(len(support.run_record(work)["shards"]), len(self.shards_of(self.client)))
        self.assertEqual(self.balancer_mode(), "full")

    def test_through_the_router_all_batches_pass_it(self):
        # That the count of the test above means something.
        sources, _ = self.generate("B", 2000, "--seed", 5)
        _, work = self.load("-j", 3, "--batch-size", 500, *sources)
        self.assertEqual(self.proxy.batches, support.run_record(work)["accounting"]["batches"])

    def test_weather_by_hashed_station(self):
        sources = self.isd()
        _, work = self.load(*DIRECT, "--shard-key", '{"st": "hashed"}', "--batch-size", 700,
                            *sources)
        self.assert_loaded(work, *sources)
        self.assertEqual(self.proxy.batches, 0)

    def test_what_the_loader_cannot_place_goes_through_the_router(self):
        # The hash of a whole document is not computed by the loader.
        sources = self.isd()
        _, work = self.load(*DIRECT, "--shard-key", '{"position": "hashed"}', *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual(self.proxy.batches, figures["batches"])

    def test_a_block_that_lies_on_two_shards(self):
        """The chunks of a load end at stripes, unless somebody has split them elsewhere."""
        sources, _ = self.generate("B", 30000, "--seed", 6)
        self.load(*DIRECT, *sources)
        namespace = f"{self.database_name}.t"
        ids = [document["_id"] for document in self.database.t.find({}, {"_id": 1}).sort("_id", 1)]
        middle = ids[4000]
        self.assertEqual(ids[0] >> 20, middle >> 20, "one block")
        self.client.admin.command("balancerStop")
        self.addCleanup(self.client.admin.command, "balancerStart")
        self.client.admin.command("split", namespace, middle={"_id": middle})
        entry = self.client.config.collections.find_one({"_id": namespace})
        chunk = self.client.config.chunks.find_one({"uuid": entry["uuid"], "min._id": middle})
        other = next(name for name in self.shards_of(self.client) if name != chunk["shard"])
        self.client.admin.command("moveChunk", namespace, bounds=[chunk["min"], chunk["max"]],
                                  to=other)
        # Some stay, so that the load leaves the chunks where they are.
        self.database.t.delete_many({"_id": {"$nin": [ids[0], middle, ids[-1]]}})
        self.proxy.counts["batch"] = 0
        _, work = self.load(*DIRECT, "--again", "-j", 2, "--batch-size", 500, *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual((figures["inserted"], figures["alreadyThere"]), (29997, 3))
        self.assertGreater(self.proxy.batches, 0, "nothing of the block in the middle was seen")
        self.assertLess(self.proxy.batches, figures["batches"])

    # Refusals

    def one_row(self):
        return self.file("t.txt", f"{support.HEADER}\n{support.ROW.format(id=1)}\n")

    def refused(self, code, *words, uri=None):
        """Before anything is made. Returns what was said."""
        outcome = self.shardload(
            "load", "--uri", uri or self.through, "-d", self.database_name, "-c", "t",
            "--work-dir", self.scratch / f"work-{next(self._counter)}", "--progress", "none",
            *DIRECT, *words, self.one_row(), code=code)
        return outcome.err

    def assert_nothing_made(self):
        self.assertEqual(self.database.list_collection_names(), [])
        self.assertEqual(self.balancer_mode(), "full")

    def test_options_that_do_not_go_together(self):
        said = self.refused(support.EXIT_USAGE, "--sink", "null", "--shard-key", "none")
        self.assertIn("--route direct is for loads into a cluster", said)
        self.assertIn("--route direct needs a sharded collection", said)

    def test_a_lone_server_has_no_shards(self):
        said = self.refused(support.EXIT_USAGE,
                            uri=support.cluster_uri("SHARDLOAD_TEST_STANDALONE_URI"))
        self.assertRegex(said, "--route direct needs a sharded cluster, and .* is a standalone")

    def test_a_shard_that_cannot_be_reached_from_here(self):
        shard = self.client.config.shards.find_one({}, sort=[("_id", -1)])
        host = shard["host"].encode()
        self.proxy.change = lambda message: message.replace(host, host.replace(b"127.0.0.1",
                                                                               NOWHERE))
        said = self.refused(support.EXIT_CLUSTER,
                            uri=self.through + "?serverSelectionTimeoutMS=1000")
        self.assertIn(f"shard {shard['_id']} ({host.replace(b'127.0.0.1', NOWHERE).decode()}) "
                      "cannot be used directly", said)
        self.assertIn("make these reachable from here, or use --route mongos", said)
        self.assertNotIn("--uri right", said)
        self.assert_nothing_made()

    def test_a_key_that_only_the_router_follows(self):
        namespace = f"{self.database_name}.t"
        self.client.admin.command("enableSharding", self.database_name)
        self.client.admin.command("shardCollection", namespace, key={"k": 1})
        self.client.admin.command("split", namespace, middle={"k": {"an": "object"}})
        said = self.refused(support.EXIT_USAGE, "--shard-key", '{"k": 1}')
        self.assertIn("only the router can find the shards of documents", said)
        self.assertEqual(self.database.t.count_documents({}), 0)


class NotAllowed(support.Case):
    """A server that lets nobody but routers in, as 8.0 does with users without a role for it: here by
    a failpoint, which fails the finds of the loader's own connections to one shard."""

    def test_a_shard_that_refuses(self):
        support.need_driver()
        import secure_servers
        servers = secure_servers.Server(
            self.scratch / "servers", ["--shards", "1", "--cache", "0.25"],
            ["--setParameter=enableTestCommands=1"])
        self.addCleanup(servers.down)
        with pymongo.MongoClient(servers.uri) as client:
            host = client.config.shards.find_one()["host"].split("/")[1]
            with pymongo.MongoClient(f"mongodb://{host}/?directConnection=true") as shard:
                shard.admin.command({
                    "configureFailPoint": "failCommand", "mode": "alwaysOn",
                    "data": bson.SON([("failCommands", ["find"]), ("errorCode", 13),
                                      ("appName", "shardload")])})
            source = self.file("t.txt", f"{support.HEADER}\n{support.ROW.format(id=1)}\n")
            outcome = self.shardload("load", "--uri", servers.uri, "-d", "d", "-c", "t",
                                     "--progress", "none", *DIRECT, source,
                                     code=support.EXIT_CLUSTER)
            self.assertIn("shard s0 (", outcome.err)
            self.assertIn("the role directShardOperations", outcome.err)
            self.assertNotIn("d", client.list_database_names())


if __name__ == "__main__":
    import tap
    tap.main()
