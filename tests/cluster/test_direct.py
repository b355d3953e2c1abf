# SPDX-License-Identifier: Apache-2.0
"""`--route direct`: batches go straight to the shards, the router finds every document, and the loader
refuses the route where it cannot guarantee that."""

import proxy
import support
from support import bson, pymongo

DIRECT = "--route", "direct"
NOWHERE = b"127.0.0.9"        # a loopback address at which no server of the tests listens


class Direct(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.proxy = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(self.proxy.close)
        self.through = self.proxy_uri(self.proxy)

    def target(self, collection="t", through=None):
        return super().target(collection, through or self.proxy)

    def isd(self):
        return support.isd_samples("010010-99999-1988", "722540-13904-2014", "722874-93134-2007.gz")

    def shards_of(self, client):
        return sorted(shard["_id"] for shard in client.config.shards.find())

    def assert_loaded(self, work, *sources):
        """`verify --content` through the router finds every document of the sources."""
        record = support.run_record(work)
        self.assertIs(record["accounting"]["addsUp"], True)
        self.assertIs(record["verification"]["ok"], True)
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "-c", "t",
                       "--content", "--progress", "none", *sources)
        return record["accounting"]

    def test_by_id_no_batch_passes_the_router(self):
        sources = self.generate("B", 60000, "--seed", 5)
        _, work = self.load(*DIRECT, "-j", 3, "--batch-size", 500, *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual(figures["inserted"], 60000)
        self.assertEqual(self.proxy.batches, 0)
        self.assertGreater(figures["batches"], 100)
        self.assertEqual(len(support.run_record(work)["shards"]), len(self.shards_of(self.client)))
        self.assertEqual(self.balancer_mode(), "full")

    def test_without_the_option_all_batches_pass_the_router(self):
        """The proxy counts every batch here, so the 0 above shows that none passed the router."""
        sources = self.generate("B", 2000, "--seed", 5)
        _, work = self.load("-j", 3, "--batch-size", 500, *sources)
        self.assertEqual(self.proxy.batches, support.run_record(work)["accounting"]["batches"])

    def test_weather_by_hashed_station(self):
        sources = self.isd()
        _, work = self.load(*DIRECT, "--shard-key", '{"st": "hashed"}', "--batch-size", 700, *sources)
        self.assert_loaded(work, *sources)
        self.assertEqual(self.proxy.batches, 0)

    def test_documents_whose_owner_the_loader_cannot_compute_go_through_the_router(self):
        # The loader does not compute the hash of a sub-document.
        sources = self.isd()
        _, work = self.load(*DIRECT, "--shard-key", '{"position": "hashed"}', *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual(self.proxy.batches, figures["batches"])

    def test_a_block_that_lies_on_two_shards(self):
        """The loader ends chunks at stripes; a user may split them elsewhere."""
        sources = self.generate("B", 30000, "--seed", 6)
        self.load(*DIRECT, *sources)
        namespace = f"{self.database_name}.t"
        ids = [document["_id"] for document in self.database.t.find({}, {"_id": 1}).sort("_id", 1)]
        middle = ids[4000]
        self.assertEqual(ids[0] >> 20, middle >> 20, "one block")
        self.client.admin.command("balancerStop")
        self.addCleanup(self.client.admin.command, "balancerStart")
        self.client.admin.command("split", namespace, middle={"_id": middle})
        (chunk,) = [chunk for chunk in self.chunks() if chunk["min"]["_id"] == middle]
        other = next(name for name in self.shards_of(self.client) if name != chunk["shard"])
        self.client.admin.command("moveChunk", namespace, bounds=[chunk["min"], chunk["max"]], to=other)
        # With some documents left, the load does not move the chunks back.
        self.database.t.delete_many({"_id": {"$nin": [ids[0], middle, ids[-1]]}})
        self.proxy.counts["batch"] = 0
        _, work = self.load(*DIRECT, "--again", "-j", 2, "--batch-size", 500, *sources)
        figures = self.assert_loaded(work, *sources)
        self.assertEqual((figures["inserted"], figures["alreadyStored"]), (29997, 3))
        self.assertGreater(self.proxy.batches, 0, "no batch of the divided block passed the router")
        self.assertLess(self.proxy.batches, figures["batches"])

    # Refusals

    def refused(self, code, *words, uri=None):
        """Loads one row, which fails with `code`. Returns standard error."""
        outcome = self.shardload(
            "load", "--uri", uri or self.through, "-d", self.database_name, "-c", "t",
            "--work-dir", self.scratch / f"work-{next(self._counter)}", "--progress", "none",
            *DIRECT, *words, self.file("t.txt", support.mot_text([1])), code=code)
        return outcome.err

    def test_options_that_exclude_the_route_are_refused(self):
        errors = self.refused(support.EXIT_USAGE, "--sink", "null", "--shard-key", "none")
        self.assertIn("--route direct is for loads into a cluster", errors)
        self.assertIn("--route direct needs a sharded collection", errors)

    def test_a_server_without_shards_is_refused(self):
        errors = self.refused(support.EXIT_USAGE, uri=support.cluster_uri("SHARDLOAD_TEST_STANDALONE_URI"))
        self.assertRegex(errors, "--route direct needs a sharded cluster, and .* is a standalone")

    def test_a_shard_that_the_loader_cannot_reach_is_named(self):
        shard = self.client.config.shards.find_one({}, sort=[("_id", -1)])
        host = shard["host"].encode()
        unreachable = host.replace(b"127.0.0.1", NOWHERE)
        self.proxy.change_reply = lambda message: message.replace(host, unreachable)
        errors = self.refused(support.EXIT_CLUSTER, uri=self.through + "?serverSelectionTimeoutMS=1000")
        self.assertIn(f"shard {shard['_id']} ({unreachable.decode()}) cannot be used directly", errors)
        self.assertIn("make these reachable from this host, or use --route mongos", errors)
        self.assertNotIn("--uri right", errors)
        self.assertEqual(self.database.list_collection_names(), [])
        self.assertEqual(self.balancer_mode(), "full")

    def test_chunk_bounds_that_only_the_router_can_compare_are_refused(self):
        namespace = f"{self.database_name}.t"
        self.shard({"k": 1})
        self.client.admin.command("split", namespace, middle={"k": {"an": "object"}})
        errors = self.refused(support.EXIT_USAGE, "--shard-key", '{"k": 1}')
        self.assertIn("only the router can find the shards of documents", errors)
        self.assertEqual(self.database.t.count_documents({}), 0)


class NotAllowed(support.Case):
    """A shard that refuses direct connections, as MongoDB 8.0 does for users without the role for
    them; here a failpoint fails the loader's finds on one shard."""

    def test_a_shard_that_refuses_direct_connections_is_named_with_the_missing_role(self):
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
            source = self.file("t.txt", support.mot_text([1]))
            self.shardload("load", "--uri", servers.uri, "-d", "d", "-c", "t", "--progress", "none",
                           *DIRECT, source, code=support.EXIT_CLUSTER,
                           message=("shard s0 (", "the role directShardOperations"))
            self.assertNotIn("d", client.list_database_names())
