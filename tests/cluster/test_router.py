# SPDX-License-Identifier: Apache-2.0
"""The local cluster's router, tested with the Python driver and the C driver.

A router that loses a document, sends it to the wrong shard or mixes up two replies would make all
other tests with a cluster worthless.
"""
import subprocess
import threading

import fault_case
import real_servers
import support
from router_case import ClusterCase, Wire
from support import bson, pymongo


class ThroughDriver(ClusterCase):
    of_members = 59           # the code for commands of members of a replica set

    def test_a_driver_detects_a_sharded_cluster(self):
        hello = self.admin.command("hello" if self.is_at_least_5 else "isMaster")
        self.assertEqual(hello["msg"], "isdbgrid")
        self.assertEqual(self.client.topology_description.topology_type_name, "Sharded")
        for absent in ("setName", "hosts", "primary", "me", "compression"):
            self.assertNotIn(absent, hello)
        self.assertGreaterEqual(hello["maxWireVersion"], 13 if self.is_at_least_5 else 9)
        self.assertGreater(hello["maxMessageSizeBytes"], 47_000_000)

    def test_a_cursor_of_many_batches_returns_every_document(self):
        self.shard_by_range("c", 500)
        documents = [{"_id": i, "text": "x" * (i % 50)} for i in range(1000)]
        self.database.c.insert_many(documents, ordered=False)
        found = list(self.database.c.find(batch_size=7).sort("_id", 1))
        self.assertEqual(found, documents)
        self.assertEqual(self.counts("c"), {self.shards[0]: 500, self.shards[1]: 500})

    def test_two_cursors_do_not_mix(self):
        self.database.a.insert_many([{"_id": i} for i in range(300)])
        self.database.b.insert_many([{"_id": -i} for i in range(300)])
        pairs = zip(self.database.a.find(batch_size=3).sort("_id", 1),
                    self.database.b.find(batch_size=5).sort("_id", -1))
        self.assertEqual([(a["_id"], b["_id"]) for a, b in pairs], [(i, -i) for i in range(300)])

    def test_duplicates_are_reported_by_their_position_in_the_batch(self):
        self.shard_by_range("c", 10)
        self.database.c.insert_many([{"_id": i} for i in (3, 12)])
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            self.database.c.insert_many([{"_id": i} for i in range(20)], ordered=False)
        errors = caught.exception.details["writeErrors"]
        self.assertEqual(sorted((e["index"], e["code"]) for e in errors), [(3, 11000), (12, 11000)])
        self.assertEqual(caught.exception.details["nInserted"], 18)
        self.assertEqual(self.database.c.count_documents({}), 20)

    def test_an_ordered_batch_ends_at_its_first_error(self):
        self.database.c.insert_one({"_id": 2})
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            self.database.c.insert_many([{"_id": i} for i in range(5)], ordered=True)
        self.assertEqual(caught.exception.details["nInserted"], 2)
        self.assertEqual(self.database.c.count_documents({}), 3)

    def test_a_group_is_split_over_the_shards_and_merged(self):
        self.shard_by_range("c", 500)
        self.database.c.insert_many([{"_id": i, "k": i % 4} for i in range(1000)])
        stages = [{"$group": {"_id": "$k", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]
        self.assertEqual(list(self.database.c.aggregate(stages)), [{"_id": k, "n": 250} for k in range(4)])
        plan = self.database.command("aggregate", "c", pipeline=stages, explain=True)
        self.assertIn("shardsPart", plan["splitPipeline"])
        self.assertEqual(sorted(plan["shards"]), self.shards)

    def test_explain_names_the_shards_of_a_find(self):
        self.shard_by_range("c", 500)
        self.assertEqual(self.explained_shards(self.database.c.find({"_id": 7})), [self.shards[0]])
        self.assertEqual(self.explained_shards(self.database.c.find({"x": 7})), self.shards)
        self.database.plain.insert_one({"_id": 1})
        self.assertIn("queryPlanner", self.database.plain.find({"_id": 1}).explain())

    def test_updates_and_deletes_reach_every_shard(self):
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i} for i in range(100)])
        self.assertEqual(self.database.c.update_many({}, {"$set": {"x": 1}}).modified_count, 100)
        updated = self.database.c.update_one({"_id": 70}, {"$inc": {"x": 1}})
        self.assertEqual(updated.matched_count, 1)
        self.assertEqual(self.database.c.replace_one({"_id": 3}, {"y": 1}).matched_count, 1)
        self.assertEqual(self.database.c.delete_many({"x": 1}).deleted_count, 98)
        self.assertEqual([d["_id"] for d in self.database.c.find().sort("_id", 1)], [3, 70])

    def test_counts(self):
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i, "k": i % 10} for i in range(100)])
        self.assertEqual(self.database.c.estimated_document_count(), 100)
        self.assertEqual(self.database.c.count_documents({"k": 3}), 10)
        self.assertEqual(self.database.command("count", "c", query={"k": 3})["n"], 10)
        self.assertEqual(self.database.command("count", "c", query={}, skip=90)["n"], 10)
        self.assertEqual(self.database.command("count", "c", query={}, limit=-4)["n"], 4)
        self.assertEqual(self.database.command("count", "nothing")["n"], 0)

    def test_distinct_reads_values_in_arrays_and_subdocuments(self):
        self.shard_by_range("c", 2)
        self.database.c.insert_many([
            {"_id": 1, "a": [1, 2], "b": {"c": 5}}, {"_id": 2, "a": 2, "b": [{"c": 6}, {"c": 7}]},
            {"_id": 3, "a": None}, {"_id": 4}, {"_id": 5, "a": []}])
        self.assertEqual(self.database.c.distinct("a"), [None, 1, 2])
        self.assertEqual(self.database.c.distinct("b.c"), [5, 6, 7])
        self.assertEqual(self.database.c.distinct("a", {"_id": 2}), [2])
        self.assertEqual(self.database.nothing.distinct("a"), [])

    def test_distinct_takes_names_with_brackets(self):
        self.database.b.insert_one({"_id": 1, "[a": 5, "}": 6})
        self.assertEqual(self.database.b.distinct("[a"), [5])
        self.assertEqual(self.database.b.distinct("}"), [6])

    def test_concurrent_findAndModify_on_a_counter_returns_each_number_once(self):
        """The registry of sources allocates numbers like this."""
        numbers, failures = [], []

        def draw():
            try:
                for _ in range(25):
                    entry = self.database.registry.find_one_and_update(
                        {"_id": "counter"}, {"$inc": {"n": 1}}, upsert=True, return_document=True)
                    numbers.append(entry["n"])
            except pymongo.errors.PyMongoError as error:
                failures.append(error)

        self.database.registry.insert_one({"_id": "counter", "n": 0})
        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(sorted(numbers), list(range(1, 101)))

    def test_find_and_modify_may_be_the_first_command_in_a_database(self):
        entry = self.database.r.find_one_and_update({"_id": "x"}, {"$inc": {"n": 1}}, upsert=True, return_document=True)
        self.assertEqual(entry, {"_id": "x", "n": 1})

    def test_find_and_modify_goes_by_the_shard_key(self):
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i} for i in range(100)])
        for key in (7, 77):
            changed = self.database.c.find_one_and_update({"_id": key}, {"$set": {"x": key}}, return_document=True)
            self.assertEqual(changed, {"_id": key, "x": key})
        self.assert_code(61, self.database.c.find_one_and_update, {"x": 7}, {"$set": {"y": 1}})
        self.shard_collection(self.namespace("h"), key={"k": "hashed"})
        self.database.h.insert_many([{"_id": i, "k": i} for i in range(20)])
        removed = [self.database.h.find_one_and_delete({"k": i})["_id"] for i in range(20)]
        self.assertEqual(removed, list(range(20)))
        self.assertEqual(self.database.h.count_documents({}), 0)

    def test_indexes_are_built_on_every_shard_with_documents(self):
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i, "k": i} for i in range(100)])
        self.assertEqual(self.database.c.create_index("k"), "k_1")
        self.assertEqual(sorted(self.database.c.index_information()), ["_id_", "k_1"])
        stats = self.database.command("collStats", "c")["shards"]
        self.assertEqual({shard: sorted(s["indexSizes"]) for shard, s in stats.items()},
                         {shard: ["_id_", "k_1"] for shard in self.shards})
        self.database.c.drop_index("k_1")
        self.assertEqual(list(self.database.c.index_information()), ["_id_"])

    def test_an_index_of_an_unsharded_collection_stays_on_one_shard(self):
        self.database.u.create_index("k")
        self.database.u.insert_one({"k": 1})
        self.assertEqual(sorted(self.database.u.index_information()), ["_id_", "k_1"])
        self.assertEqual(len(self.counts("u")), 1)

    def test_create_keeps_its_options_on_every_shard(self):
        self.database.create_collection(
            "c", clusteredIndex={"key": {"_id": 1}, "unique": True},
            storageEngine={"wiredTiger": {"configString": "block_compressor=zstd"}})
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i} for i in range(100)])
        (listed,) = self.database.list_collections(filter={"name": "c"})
        self.assertIn("clusteredIndex", listed["options"])
        for stats in self.database.command("collStats", "c")["shards"].values():
            self.assertIn("block_compressor=zstd", stats["wiredTiger"]["creationString"])
            self.assertEqual(stats["count"], 50)

    def test_collections_and_databases_are_listed_renamed_and_dropped(self):
        self.database.a.insert_one({"_id": 1})
        self.shard_by_range("b", 5)
        self.assertEqual(sorted(self.database.list_collection_names()), ["a", "b"])
        self.assertIn(self.database_name, self.client.list_database_names())
        self.database.a.rename("c")
        self.database.b.drop()
        self.database.never_was.drop()
        self.assertEqual(self.database.list_collection_names(), ["c"])
        self.assertEqual(self.database.c.find_one(), {"_id": 1})
        self.assertIsNone(self.client.config.collections.find_one(
            {"_id": self.namespace("b"), "dropped": {"$ne": True}}))
        self.assertEqual(self.database.command("dbStats")["objects"], 1)
        self.client.drop_database(self.database_name)
        self.assertNotIn(self.database_name, self.client.list_database_names())
        self.database.a.insert_one({"_id": 2})
        self.assertEqual(self.database.a.find_one(), {"_id": 2})

    def test_a_validator_is_set_on_every_shard(self):
        self.shard_by_range("c", 50)
        self.database.command("collMod", "c", validator={"x": {"$gt": 0}})
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            self.database.c.insert_many([{"_id": i, "x": i % 2} for i in range(100)], ordered=False)
        errors = caught.exception.details["writeErrors"]
        self.assertEqual(sorted(e["index"] for e in errors), list(range(0, 100, 2)))
        self.assertEqual({e["code"] for e in errors}, {121})
        self.database.validate_collection("c")

    def test_a_pipeline_with_out_writes_its_collection(self):
        self.shard_by_range("c", 50)
        self.database.c.insert_many([{"_id": i} for i in range(100)])
        self.database.c.aggregate([{"$match": {"_id": {"$gte": 40}}}, {"$out": "o"}])
        self.assertEqual(self.database.o.count_documents({}), 60)

    def test_unacknowledged_writes_are_executed_and_do_not_shift_later_replies(self):
        client = pymongo.MongoClient(self.uri, maxPoolSize=1)
        self.addCleanup(client.close)
        unacknowledged = client[self.database_name].get_collection("c", write_concern=pymongo.WriteConcern(w=0))
        for i in range(50):
            unacknowledged.insert_one({"_id": i})
            self.assertEqual(client.admin.command("ping")["ok"], 1.0)
        self.assertEqual(client[self.database_name].c.count_documents({}), 50)

    def test_write_concern_and_read_concern_majority_are_accepted(self):
        collection = self.database.get_collection(
            "c", write_concern=pymongo.WriteConcern("majority"),
            read_concern=pymongo.read_concern.ReadConcern("majority"))
        collection.insert_one({"_id": 1})
        self.assertEqual(collection.find_one(), {"_id": 1})

    def test_unknown_commands_are_refused_as_a_server_does(self):
        error = self.assert_code(59, self.admin.command, "noSuchCommand")
        self.assertEqual(error.details["codeName"], "CommandNotFound")
        self.assert_code(self.of_members, self.admin.command, "replSetGetStatus")

    def test_a_driver_knows_that_the_router_has_no_sessions(self):
        client = pymongo.MongoClient(self.uri, retryWrites=True)
        self.addCleanup(client.close)
        client[self.database_name].c.insert_one({"_id": 1})
        with self.assertRaises(pymongo.errors.ConfigurationError):
            with client.start_session() as session:
                client[self.database_name].c.insert_one({"_id": 2}, session=session)
        self.assertEqual(client[self.database_name].c.count_documents({}), 1)

    def test_the_c_driver(self):
        result = subprocess.run(
            [support.program("router_client"), self.uri, self.database_name], text=True,
            capture_output=True, timeout=support.LIMIT, check=False)
        lines = [line for line in result.stdout.splitlines() if line.startswith(("ok", "not ok"))]
        for line in lines:
            with self.subTest(line):
                self.assertTrue(line.startswith("ok"), result.stdout + result.stderr)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"1..{len(lines)}", result.stdout)


class RealThroughDriver(real_servers.RouterCase, ThroughDriver):
    """What is tested of the project's router is true of a real one, except what docs/localcluster.md lists."""

    of_members = None
    test_a_driver_knows_that_the_router_has_no_sessions = None
    test_create_keeps_its_options_on_every_shard = None       # clustered collections: server 5.3


class Sharding(ClusterCase):
    no_key, no_chunk = 61, 2  # the codes for a query without the shard key, and without or of no chunk

    def test_split_and_move_with_each_option_that_names_a_chunk(self):
        namespace = self.namespace("c")
        low, high = {"_id": bson.MinKey()}, {"_id": bson.MaxKey()}
        first, second = self.shards[:2]
        self.shard_collection(namespace, key={"_id": 1})
        self.database.c.insert_many([{"_id": bson.Int64(i)} for i in range(1000)])
        self.admin.command("split", namespace, middle={"_id": bson.Int64(500)})
        self.admin.command("moveChunk", namespace, bounds=[low, {"_id": 500}], to=first)
        self.admin.command("moveChunk", namespace, find={"_id": 777}, to=second)
        self.assertEqual(self.chunks("c"), [(low, {"_id": 500}, first), ({"_id": 500}, high, second)])
        self.wait_for(lambda: self.counts("c") == {first: 500, second: 500}, "documents have moved")
        self.admin.command("split", namespace, find={"_id": 100})
        self.admin.command("split", namespace, bounds=[{"_id": 500}, high])
        keys = [chunk[0]["_id"] for chunk in self.chunks("c")[1:]]
        self.assertEqual(len(keys), 3)
        self.assertTrue(0 < keys[0] < 500 and keys[1] == 500 and 500 < keys[2] < 1000, keys)
        if not self.is_at_least_5:
            self.assert_code(59, self.admin.command, "moveRange", namespace, min={"_id": 900}, toShard=first)
            return
        self.admin.command("moveRange", namespace, min={"_id": 900}, toShard=first)
        self.assertEqual(self.database.c.count_documents({}), 1000)
        self.assertEqual(self.explained_shards(self.database.c.find({"_id": 950})), [first])

    def test_a_hashed_key_is_presplit_and_spread(self):
        namespace = self.namespace("h")
        self.shard_collection(namespace, key={"st": "hashed"}, numInitialChunks=8)
        self.assertEqual(len(self.chunks("h")), 8)
        self.assertEqual({chunk[2] for chunk in self.chunks("h")}, set(self.shards))
        self.database.h.insert_many([{"_id": i, "st": i} for i in range(2000)])
        counts = self.counts("h")
        self.assertEqual(sum(counts.values()), 2000)
        self.assertTrue(all(count > 400 for count in counts.values()), counts)
        # Move the chunk of the value 42 to the other shard.
        (home,) = self.explained_shards(self.database.h.find({"st": 42}))
        (other,) = [shard for shard in self.shards[:2] if shard != home]
        self.admin.command("moveChunk", namespace, find={"st": 42}, to=other)
        self.assertEqual(self.explained_shards(self.database.h.find({"st": 42})), [other])
        self.assertEqual(self.database.h.count_documents({"st": 42}), 1)

    def test_a_unique_compound_key(self):
        namespace = self.namespace("c")
        self.shard_collection(namespace, key={"a": 1, "b": 1}, unique=True)
        self.admin.command("split", namespace, middle={"a": 5, "b": 0})
        self.admin.command("moveChunk", namespace, find={"a": 9, "b": 9}, to=self.shards[1])
        self.database.c.insert_many([{"a": i, "b": j} for i in range(10) for j in range(10)])
        self.assertEqual(self.database.c.count_documents({}), 100)
        self.assertTrue(self.database.c.index_information()["a_1_b_1"]["unique"])
        with self.assertRaises(pymongo.errors.DuplicateKeyError):
            self.database.c.insert_one({"a": 3, "b": 3})

    def test_each_connection_follows_a_moved_chunk(self):
        """Each connection has its own copy of the chunk map, which becomes outdated."""
        namespace = self.namespace("c")
        self.shard_by_range("c", 50)
        wires = [Wire(self.address) for _ in range(4)]
        for wire in wires:
            self.addCleanup(wire.socket.close)
        for turn in range(3):
            self.admin.command("moveChunk", namespace, find={"_id": 0}, to=self.shards[turn % 2])
            for i, wire in enumerate(wires):
                key = turn * 4 + i
                reply = wire.run({"insert": "c", "$db": self.database_name,
                                  "documents": [{"_id": key}, {"_id": 100 + key}]})
                self.assertEqual((reply["ok"], reply["n"]), (1.0, 2), reply)
                found = wire.run({"find": "c", "$db": self.database_name, "filter": {"_id": key}})
                self.assertEqual(found["cursor"]["firstBatch"], [{"_id": key}])
        self.assertEqual(self.database.c.count_documents({}), 24)

    def test_the_balancer_is_stopped_and_started(self):
        mode = self.admin.command("balancerStatus")["mode"]
        self.addCleanup(self.admin.command, "balancerStop" if mode == "off" else "balancerStart")
        self.admin.command("balancerStop")
        self.assertEqual(self.admin.command("balancerStatus")["mode"], "off")
        self.assertTrue(self.client.config.settings.find_one({"_id": "balancer"})["stopped"])
        self.admin.command("balancerStart")
        self.assertEqual(self.admin.command("balancerStatus")["mode"], "full")

    def test_config_can_be_read(self):
        self.shard_by_range("c", 10, 20)
        entry = self.client.config.collections.find_one({"_id": self.namespace("c")})
        self.assertEqual(entry["key"], {"_id": 1})
        chunks = self.in_catalog("c")
        self.assertEqual(self.client.config.chunks.count_documents(chunks), 3)
        self.assertEqual(sorted(s["_id"] for s in self.client.config.shards.find()), self.shards)
        grouped = self.client.config.chunks.aggregate([{"$match": chunks}, {"$group": {"_id": "$shard"}}])
        self.assertEqual(sorted(row["_id"] for row in grouped), self.shards[:2])

    def test_zones_place_chunks(self):
        self.admin.command("addShardToZone", self.shards[0], zone="z")
        self.addCleanup(self.admin.command, "removeShardFromZone", self.shards[0], zone="z")
        self.admin.command("updateZoneKeyRange", self.namespace("c"), min={"_id": 0}, max={"_id": 10}, zone="z")
        self.shard_collection(self.namespace("c"), key={"_id": 1})
        self.assertIn(({"_id": 0}, {"_id": 10}, self.shards[0]), self.chunks("c"))
        self.admin.command("updateZoneKeyRange", self.namespace("c"), min={"_id": 0}, max={"_id": 10}, zone=None)

    def test_wrong_requests_get_the_codes_of_a_real_router(self):
        self.database.u.insert_one({"_id": 1})
        self.shard_by_range("c", 10)
        namespace, plain = self.namespace("c"), self.namespace("u")
        run = self.admin.command
        self.assert_code(118, run, "split", plain, middle={"_id": 1})
        self.assert_code(118, run, "moveChunk", plain, find={"_id": 1}, to=self.shards[0])
        self.assert_code(70, run, "moveChunk", namespace, find={"_id": 1}, to="nowhere")
        self.assert_code(73, run, "shardCollection", "nodot", key={"_id": 1})
        self.assert_code(self.no_key, run, "moveChunk", namespace, find={"x": 1}, to=self.shards[0])
        self.assert_code(self.no_chunk, run, "moveChunk", namespace, bounds=[{"_id": 3}, {"_id": 4}], to=self.shards[0])
        self.assert_code(self.no_chunk, run, "split", namespace)


class RealSharding(real_servers.RouterCase, Sharding):
    no_key = no_chunk = None


# Codes of errors after which a write may be retried; None: a connection error.
TRY_AGAIN = (None, 6, 91, 133, 189, 10107, 11600, 11602)


class Failover(support.Case):
    """A shard that is a replica set: the router finds its primary."""

    def test_the_router_finds_the_new_primary_after_an_election(self):
        support.program("shardload-router")
        cluster = fault_case.Servers(self.scratch / "cluster", "--shards", 1, "--replicas", 3)
        self.addCleanup(cluster.down)
        client = self.enterContext(pymongo.MongoClient(cluster.uri, retryWrites=True))
        # By default a write waits for the majority, as with a real mongos: acknowledged writes
        # survive the loss of the primary.
        if client.server_info()["versionArray"][0] < 5:
            self.skipTest("needs server 5.0: the default write concern is majority")
        client.f.c.insert_many([{"_id": i} for i in range(100)])
        cluster.kill(cluster.primary_of("s0", 3))
        # A write during the election may fail with an error after which it may be retried.
        for _ in range(5):
            try:
                client.f.c.update_one({"_id": 100}, {"$set": {"x": 1}}, upsert=True)
                break
            except pymongo.errors.PyMongoError as error:
                self.assertIn(getattr(error, "code", None), TRY_AGAIN)
        self.assertEqual(client.f.c.find_one({"_id": 100}), {"_id": 100, "x": 1})
        self.assertEqual(client.f.c.count_documents({}), 101)
