# SPDX-License-Identifier: Apache-2.0
"""MOT files are loaded into a standalone server, a replica set and a cluster, and read with the Python
driver."""

import mot_reader
import support
from support import mot_text


class AnyServer:
    """Tests for each kind of deployment."""

    def source_number(self, raw):
        numbers = {support.key_of(document) >> 40 for document in raw}
        self.assertEqual(len(numbers), 1, "one file has one source number")
        return numbers.pop()

    def assert_holds(self, path, names="short", collection="t"):
        raw = self.stored(collection)
        reading = mot_reader.read(path, names, self.source_number(raw))
        self.assert_documents(raw, reading.documents, path.name)
        return reading

    def creation_strings(self, collection="t"):
        """WiredTiger's creation string of the collection, for each shard."""
        stats = self.database.command("collStats", collection)
        parts = stats["shards"].values() if "shards" in stats else [stats]
        return [part["wiredTiger"]["creationString"] for part in parts]

    # Documents

    def test_every_sample_is_stored_as_the_independent_reader_reads_it(self):
        for sample in support.MOT_TESTS + support.MOT_ITEMS:
            with self.subTest(sample):
                path, name = support.mot_sample(sample), sample.split(".")[0]
                _, work = self.load(path, collection=name)
                reading = self.assert_holds(path, collection=name)
                self.assert_accounting(work, records=reading.records, inserted=len(reading.documents))

    def test_a_collection_whose_name_has_a_slash(self):
        """The work directory could not be created, or was created elsewhere."""
        source = self.file("one.txt", support.mot_text([1]))
        self.shardload("load", *self.target("/a/b"), "--progress", "none", source)
        (work,) = self.scratch.glob(f"shardload-{self.database_name}.-a-b-*")
        self.assertEqual(self.database["/a/b"].count_documents({}), 1)
        self.assertTrue((work / "journal").exists())

    def test_long_names(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        self.load("--names", "long", path)
        # A forgotten --names: one collection had two sets of names, without a word
        for words, seen in ((), True), (("--names", "long"), False):
            outcome = self.load(*words, self.file(f"{seen}.txt", mot_text([4, 5 + seen])))[0]
            self.assertEqual("other fields than the documents in" in outcome.err, seen, outcome.err)
        self.database.t.delete_many({"_id": {"$gte": 2 << 40}})
        self.assert_holds(path, "long")

    def test_dirty_data_with_many_threads(self):
        (path,) = self.generate("G1", 30000, "--dirt", "heavy", "--bad", 25, "--seed", 21)
        _, work = self.load("-j", 4, "--batch-size", 500, path, code=support.EXIT_REJECTS)
        reading = self.assert_holds(path)
        self.assert_rejects(work, path.name, [reject.place for reject in reading.rejects])
        self.assert_accounting(work, records=reading.records, rejectedByParser=25,
                               inserted=30000 - 25, rejectedByServer=0,
                               alreadyStored=0)
        record = support.run_record(work)
        self.assertIs(record["verification"]["ok"], True)
        self.assertEqual(record["exitCode"], support.EXIT_REJECTS)

    def test_standard_input(self):
        path = support.mot_sample("test_result_2022_2023_pipe.csv")
        self.load("-", stdin=path.read_bytes())
        self.assert_holds(path)

    def test_all_documents_of_several_files(self):
        paths = self.generate("B", 9000, "--files", 3, "--gzip", "--seed", 22)
        self.load(*paths)
        raw = self.stored()
        by_source = {}
        for document in raw:
            by_source.setdefault(support.key_of(document) >> 40, []).append(document)
        self.assertEqual(len(by_source), 3)
        tests = sorted(support.bson.decode(document)["t"] for document in raw)
        expected = sorted(document["t"] for path in paths for document in mot_reader.read(path).documents)
        self.assertEqual(tests, expected)
        self.assertEqual(len(raw), 9000)

    # Loading again

    def test_the_same_file_twice_is_refused(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path)
        before = sorted(self.stored())
        outcome, _ = self.load(path, code=support.EXIT_SOURCE, message=("year.txt", "--again"))
        self.assertRegex(outcome.err, r"20\d\d-\d\d-\d\d")
        self.assertEqual(sorted(self.stored()), before)

    def test_again_stores_no_document_of_the_same_file_twice(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path)
        before = sorted(self.stored())
        _, work = self.load("--again", path)
        self.assertEqual(sorted(self.stored()), before)
        self.assert_accounting(work, records=3, inserted=0, alreadyStored=3)

    def test_a_file_of_the_same_name_with_other_content_is_another_file(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        outcome, _ = self.load(path)
        self.assertNotIn("twice", outcome.text)
        outcome, _ = self.load(self.file("year.txt", mot_text([4, 5, 6, 7])))
        self.assertIn("twice", outcome.text)    # it may be an export of all records
        outcome, _ = self.load(self.file("other/year.txt", mot_text([8])))
        self.assertNotIn("twice", outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 8)

    def test_drop_replaces_the_collection(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(self.file("other.txt", mot_text([7])), path)
        self.load("--drop", path)
        self.assertEqual(sorted(document["t"] for document in self.database.t.find()), [1, 2, 3])

    def test_a_file_may_be_loaded_into_two_collections(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path, collection="a")
        self.load(path, collection="b")
        self.assertEqual(self.database.b.count_documents({}), 3)

    # Layout

    def test_indexes_are_built(self):
        _, work = self.load("--index", '{"t": 1}', "--index", '{"k": 1, "o": -1}', "--index",
                            '{"v": 1}', self.file("year.txt", mot_text([1, 2, 3])))
        self.assertEqual(support.run_record(work)["options"]["index"], ['{"t": 1}', '{"k": 1, "o": -1}', '{"v": 1}'])
        keys = [dict(index["key"]) for index in self.database.t.list_indexes()]
        self.assertIn({"t": 1}, keys)
        self.assertIn({"k": 1, "o": -1}, keys)

    def test_the_collection_has_the_requested_compressor(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        for compressor in ("none", "zstd", "zlib"):
            with self.subTest(compressor):
                self.load("--compressor", compressor, path, collection=compressor)
                for text in self.creation_strings(compressor):
                    self.assertIn(f"block_compressor={compressor},", text)

    def test_a_clustered_collection(self):
        self.needs("5.3", "clustered collections")
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load("--clustered", path)
        (listed,) = [entry for entry in self.database.list_collections() if entry["name"] == "t"]
        self.assertEqual(listed["options"]["clusteredIndex"]["key"], {"_id": 1})
        self.assert_holds(path)

    # Refused documents

    def test_documents_that_the_server_refuses_are_rejects_with_its_reason(self):
        self.database.create_collection("t", validator={"m": {"$lt": 49000}})
        rows = mot_text([1, 2, 3]).splitlines()
        rows[2] = rows[2].replace("49828", "100")
        path = self.file("year.txt", "\n".join(rows) + "\n")
        _, work = self.load("--shard-key", "none", path, code=support.EXIT_REJECTS)
        self.assertEqual([document["t"] for document in self.database.t.find()], [2])
        self.assert_accounting(work, records=3, inserted=1, rejectedByServer=2, rejectedByParser=0)
        listed = support.reject_rows(work)
        self.assertEqual([row["offset"] for row in listed],
                         [str(path.read_bytes().index(b"\n1|") + 1),
                          str(path.read_bytes().index(b"\n3|") + 1)])
        for row in listed:
            self.assertIn("121", row["reason"])

    def test_too_many_refused_documents_end_the_load_early(self):
        self.database.create_collection("t", validator={"m": {"$lt": 0}})
        path = self.file("year.txt", mot_text(range(1, 60000)))
        _, work = self.load("--shard-key", "none", "-j", 1, "--max-rejects", 10, path, code=support.EXIT_SOURCE)
        figures = support.run_record(work)["accounting"]
        self.assertTrue(10 < figures["rejectedByServer"] < 40000, figures)

    def test_a_duplicate_in_another_unique_index_is_a_reject(self):
        # Only a duplicate _id means that the document is already stored.
        self.database.t.create_index("t", unique=True)
        self.database.t.insert_one({"_id": "mine", "t": 2})
        path = self.file("year.txt", mot_text([1, 2, 3]))
        _, work = self.load("--shard-key", "none", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3, inserted=2, alreadyStored=0, rejectedByServer=1)
        (row,) = support.reject_rows(work)
        self.assertIn("11000", row["reason"])

    def test_another_document_under_the_same_id_is_a_reject_and_stays(self):
        path = self.file("year.txt", mot_text([1, 2, 3, 4, 5]))
        self.load(path)
        ids = {document["t"]: document["_id"] for document in self.database.t.find()}
        self.database.t.update_one({"_id": ids[2]}, {"$set": {"m": 7}})
        self.database.t.update_one({"_id": ids[4]}, {"$unset": {"o": 1}, "$set": {"note": "mine"}})
        self.database.t.delete_one({"_id": ids[3]})
        _, work = self.load("--again", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=5, inserted=1, alreadyStored=2, rejectedByServer=2, rejectedByParser=0)
        rows = support.reject_rows(work)
        text = path.read_bytes()
        self.assertEqual([row["offset"] for row in rows], [str(text.index(b"\n2|") + 1), str(text.index(b"\n4|") + 1)])
        for row, difference in zip(rows, ["m is 7, not 49828", "o is missing; note is not expected"]):
            self.assertIn("11000", row["reason"])
            self.assertIn("another document has this _id: " + difference, row["reason"])
        # The stored document is unchanged, and the counts match.
        self.assertEqual(self.database.t.find_one({"_id": ids[2]})["m"], 7)
        self.assertIs(support.run_record(work)["verification"]["ok"], True)

    def test_documents_stored_with_other_names_or_types_are_rejects(self):
        path = self.file("year.txt", mot_text(range(1, 3001)))
        self.load(path)
        outcome, work = self.load("--again", "--names", "long", path, code=support.EXIT_SOURCE)
        self.assertIn("--names", outcome.err.split("all records were rejected")[-1])
        self.assert_accounting(work, records=3000, inserted=0, alreadyStored=0, rejectedByServer=3000)
        self.database.t.update_many({}, [{"$set": {"m": {"$toLong": "$m"}}}])
        _, work = self.load("--again", path, code=support.EXIT_SOURCE)
        self.assert_accounting(work, alreadyStored=0, rejectedByServer=3000)
        self.assertIn("m is 49828 as int64, not as int32", support.reject_rows(work)[0]["reason"])

    def test_an_id_stored_as_another_numeric_type_is_a_reject(self):
        # To the server 5.0 and 5 are the same _id.
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path)
        taken = self.database.t.find_one({"t": 2})["_id"]
        self.database.t.delete_one({"_id": taken})
        self.database.t.insert_one({"_id": float(taken)})
        _, work = self.load("--again", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, alreadyStored=2, rejectedByServer=1)

    def test_a_view_cannot_be_loaded_into(self):
        self.database.create_collection("v", viewOn="t", pipeline=[])
        self.load(self.file("year.txt", mot_text([1])), collection="v", code=support.EXIT_CLUSTER, message="view")

    def test_a_write_concern_that_cannot_be_met_is_an_error(self):
        # Documents without the requested safety are not counted as loaded, not even when a second
        # attempt finds them stored.
        outcome, work = self.load("--write-concern", 7, self.file("year.txt", mot_text([1, 2, 3])),
                                  code=support.EXIT_CLUSTER)
        self.assertNotIn("E11000", outcome.text)
        figures = support.run_record(work)["accounting"]
        self.assertEqual((figures["inserted"], figures["alreadyStored"]), (0, 0))

    def test_documents_removed_during_the_load_are_noticed(self):
        running, feed = self.start_with_pipe(
            "shardload", *self.load_words("w", "-j", 1, "--batch-size", 5, "-"),
            text=support.wide_text(3).encode())
        self.wait_for_documents(running, 50)
        gone = [document["_id"] for document in self.database.t.find({}, {"_id": 1}).limit(7)]
        self.database.t.delete_many({"_id": {"$in": gone}})
        feed.close()
        running.wait().expect(support.EXIT_VERIFICATION)
        self.assertIs(support.run_record(self.scratch / "w")["verification"]["ok"], False)

    # The record of the run

    def test_the_run_record_is_complete(self):
        (path,) = self.generate("B", 3000, "--seed", 23)
        self.load("--report", "report.json", path)
        record = support.json.loads((self.scratch / "report.json").read_text())
        for name in ("accounting", "phases", "topology", "server", "options", "series",
                     "verification", "exitCode"):
            self.assertIn(name, record)
        for phase in record["phases"]:
            self.assertGreaterEqual(phase["seconds"], 0, phase)
        inserted = record["accounting"]["inserted"]
        for side in ("expected", "found"):
            self.assertEqual(sum(entry[side] for entry in record["verification"]["ranges"]), inserted)

    def test_the_last_json_progress_line_has_the_total(self):
        (path,) = self.generate("B", 3000, "--seed", 24)
        outcome = self.shardload("load", *self.target(), "--work-dir", "w", "--progress", "json", path)
        lines = outcome.out.splitlines()
        self.assertTrue(lines, outcome.err)
        self.assertEqual(support.json.loads(lines[-1])["documents"], 3000)

    def test_weaker_write_concern(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load("--write-concern", 1, path)
        self.assert_holds(path)


class Standalone(AnyServer, support.ClusterCase, server="mongod"):
    def test_a_password_is_in_no_output_and_no_file(self):
        secret = "s3cret-w0rd"
        self.database.command("createUser", "loader", pwd=secret, roles=["readWrite", "dbAdmin"])
        self.addCleanup(self.database.command, "dropUser", "loader")
        address = self.uri.split("://", 1)[1].rstrip("/").split("/")[0]
        uri = f"mongodb://loader:{secret}@{address}/?authSource={self.database_name}"
        path = self.file("year.txt", mot_text([1, 2]))
        outcome = self.shardload("load", "--uri", uri, "-d", self.database_name, "-c", "t",
                                 "--work-dir", "w", "--report", "r.json", "--progress", "plain",
                                 path)
        self.assertEqual(self.database.t.count_documents({}), 2)
        self.assertNotIn(secret, outcome.text)
        for file, content in support.every_text_in(self.scratch):
            self.assertNotIn(secret.encode(), content, file)


class ReplicaSet(AnyServer, support.ClusterCase, server="replica"):
    def test_the_default_waits_for_the_majority(self):
        _, work = self.load(self.file("year.txt", mot_text([1])))
        self.assertIn("majority", str(support.run_record(work)["options"]))


class Sharded(AnyServer, support.ClusterCase):
    def test_each_shard_gets_about_half_of_the_documents(self):
        total = 16 * support.WIDE_ROWS
        outcome, work = self.load("-j", 2, "--verbose", self.file("year.txt", support.wide_text(16)))
        counts = self.counts_by_shard()
        self.assertEqual((len(counts), sum(counts.values())), (2, total))
        listed = {entry["shard"]: entry["documents"] for entry in support.run_record(work)["shards"]}
        self.assertEqual(listed, counts)
        for shard, count in counts.items():
            self.assertGreater(count, total * 0.4, counts)
            self.assertRegex(outcome.out, rf"\n +{shard} +{count:,} +{100 * count / total:.1f} %")
        self.assertEqual(self.shard_key(), {"_id": 1})

    def test_a_second_file_is_spread_over_the_shards(self):
        self.load(self.file("first.txt", support.wide_text(8)))
        before = self.counts_by_shard()
        self.load(self.file("second.txt", support.wide_text(8, 10000)))
        grown = {shard: count - before[shard] for shard, count in self.counts_by_shard().items()}
        for count in grown.values():
            self.assertGreater(count, 8 * support.WIDE_ROWS * 0.35, grown)

    def test_a_hashed_key(self):
        (path,) = self.generate("B", 20000, "--seed", 28)
        self.load("--shard-key", '{"t": "hashed"}', path)
        self.assert_holds(path)
        self.assertEqual(self.shard_key(), {"t": "hashed"})
        for count in self.counts_by_shard().values():
            self.assertGreater(count, 8000)

    def test_a_key_of_the_data(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        self.load("--shard-key", '{"k": 1, "_id": 1}', path)
        self.assert_holds(path)
        self.assertEqual(self.shard_key(), {"k": 1, "_id": 1})

    def test_shard_key_none_does_not_shard(self):
        path = self.file("year.txt", mot_text([1, 2]))
        self.load("--shard-key", "none", path)
        self.assertIsNone(self.shard_key())
        self.assert_holds(path)

    def test_clustered_on_every_shard_and_sharded(self):
        self.needs("5.3", "clustered collections")
        self.load("--clustered", self.file("year.txt", support.wide_text(4)))
        self.assertEqual(self.shard_key(), {"_id": 1})
        self.assertGreater(min(self.counts_by_shard().values()), 0)
        for index in self.database.t.list_indexes():
            self.assertTrue(index.get("clustered"), index)

    def test_indexes_on_every_shard(self):
        self.load("--index", '{"t": 1}', self.file("year.txt", support.wide_text(4)))
        shards = [entry["shard"] for entry in self.database.t.aggregate(
            [{"$indexStats": {}}, {"$match": {"name": "t_1"}}])]
        self.assertEqual(len(shards), 2)

    def test_the_balancer_is_restored_after_a_load(self):
        self.addCleanup(self.client.admin.command, "balancerStart")
        for number, before, command in ((1, "full", "balancerStart"), (2, "off", "balancerStop")):
            with self.subTest(before):
                self.client.admin.command(command)
                self.assertEqual(self.balancer_mode(), before)
                _, work = self.load(self.file(f"{before}.txt", mot_text([number, number + 1])))
                self.assertEqual(self.balancer_mode(), before)
                self.assertEqual(support.run_record(work)["balancer"]["after"],
                                 support.run_record(work)["balancer"]["before"])

    def test_the_balancer_is_restored_after_a_failed_load(self):
        self.client.admin.command("balancerStart")
        bad = mot_text([1, 2]).replace("49828", "many")
        outcome, _ = self.load("--max-rejects", 0, self.file("bad.txt", bad), code=None)
        self.assertGreater(outcome.code, support.EXIT_REJECTS)
        self.assertEqual(self.balancer_mode(), "full")

    def test_queries_by_id_through_the_router_find_the_documents(self):
        # The router sends such a query only to the shard that owns the _id.
        (path,) = self.generate("B", 30000, "--seed", 31)
        self.load(path)
        reading = mot_reader.read(path, number=self.source_number(self.stored()))
        for document in reading.documents[::3000]:
            self.assertEqual(self.database.t.find_one({"_id": document["_id"]})["t"], document["t"])
