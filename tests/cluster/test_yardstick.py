# SPDX-License-Identifier: Apache-2.0
"""The yardstick of tools/bench. The loader's speed is reported as a share of the yardstick's, so the
yardstick must send every document, in the same batches, and report failures.
"""
import json

import support

ROWS = 3000


class YardstickCase(support.ClusterCase, server="mongod"):
    def setUp(self):
        super().setUp()
        (source,) = self.generate("B", ROWS)
        self.documents, _ = self.dump(source)
        self.file = self.file("documents.bson", b"".join(self.documents))
        self.ids = sorted(map(support.key_of, self.documents))

    def yardstick(self, *words, uri=None, dump=None, code=0):
        done = self.run_program("shardload-yardstick", "--uri", uri or self.uri, "--db",
                                self.database_name, "--collection", "t", *words, dump or self.file)
        self.assertEqual(done.code, code, done.text)
        return json.loads(done.out) if code == 0 else done.err


class OneServer(YardstickCase):
    def test_every_document_is_stored_unchanged(self):
        report = self.yardstick("--threads", 3, "--batch-size", 100, "--write-concern", '{"w": 1, "j": true}')
        self.assertEqual((report["documents"], report["batches"], report["threads"]), (ROWS, ROWS // 100, 3))
        self.assertEqual(report["bytes"], sum(map(len, self.documents)))
        self.assertGreater(report["seconds"], 0)
        self.assertEqual(sorted(self.stored()), sorted(self.documents))

    def test_batches_end_by_bytes_too(self):
        room = 20_000
        report = self.yardstick("--batch-bytes", room)
        batches, used = 1, 0
        for document in self.documents:
            if used + len(document) > room:
                batches, used = batches + 1, 0
            used += len(document)
        self.assertEqual(report["batches"], batches)
        self.assertEqual(sorted(self.stored()), sorted(self.documents))

    def test_no_batch_crosses_a_split(self):
        """The documents of two ranges alternate in the dump; each range has its own batches."""
        half = len(self.documents) // 2
        ordered = sorted(self.documents, key=support.key_of)
        mixed = [document for pair in zip(ordered, ordered[half:]) for document in pair]
        dump = self.scratch / "mixed.bson"
        dump.write_bytes(b"".join(mixed))
        report = self.yardstick("--batch-size", 1000, "--split", self.ids[half], dump=dump)
        self.assertEqual(report["batches"], 4)  # 1000 and 500 documents of each range
        self.assertEqual(sorted(self.stored()), sorted(self.documents))

    def test_documents_that_are_already_stored_are_a_failure(self):
        self.database.t.insert_one({"_id": support.bson.int64.Int64(self.ids[-1])})
        self.assertIn("documents were refused", self.yardstick(code=1))

    def test_a_command_that_the_server_refuses_is_a_failure(self):
        self.assertIn("the insert failed", self.yardstick("--write-concern", '{"w": "nonsense"}', code=1))

    def test_a_damaged_or_missing_dump_an_absent_server_and_wrong_options_are_reported(self):
        damaged = self.scratch / "damaged.bson"
        damaged.write_bytes(b"".join(self.documents)[:-3])
        self.assertIn("the dump is damaged at byte", self.yardstick(dump=damaged, code=1))
        missing = self.scratch / "missing.bson"
        self.assertIn("No such file", self.yardstick(dump=missing, code=1))
        absent = f"mongodb://{support.HOST}:{support.free_port()}/"
        self.assertIn("refused", self.yardstick("--threads", 3, uri=absent, code=1))
        for wrong in (["--threads", 0], ["--batch-size", "x"], ["--split", 5, "--split", 5],
                      ["--uri", "postgres://here/"]):
            with self.subTest(wrong=wrong):
                self.yardstick(*wrong, code=2)


class TwoShards(YardstickCase, server="cluster"):
    def test_every_document_is_stored_on_its_shard(self):
        middle = self.ids[len(self.ids) // 2]
        admin, name = self.client.admin, f"{self.database_name}.t"
        shards = [shard["_id"] for shard in self.client.config.shards.find()]
        self.shard({"_id": 1})
        admin.command("split", name, middle={"_id": support.bson.int64.Int64(middle)})
        admin.command("moveChunk", name, find={"_id": support.bson.int64.Int64(middle)},
                      to=next(shard for shard in shards if shard != self.primary()))
        self.yardstick("--threads", 2, "--split", middle)
        self.assertEqual(sorted(self.stored()), sorted(self.documents))
        self.assertEqual(list(self.counts_by_shard().values()), [ROWS // 2, ROWS // 2])

    def primary(self):
        return self.client.config.databases.find_one({"_id": self.database_name})["primary"]
