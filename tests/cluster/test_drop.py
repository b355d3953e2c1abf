# SPDX-License-Identifier: Apache-2.0
"""`--drop` drops nothing before it is known that the load can go on, as far as that can be known; and
a collection that somebody else has dropped, while its registry is left, is not taken for one that was
never there."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "faults")]
import proxy  # noqa: E402
import support  # noqa: E402
from support import bson, pymongo  # noqa: E402

BAD_KEYS = ['{"k": -1}', '{"k": 2}', '{"k": "text"}', '{"k": "2d"}', '{"k": "2dsphere"}',
            '{"k": "hashed", "v": "hashed"}', '{"k": 1, "v": -1}', '{"a..b": 1}', '{"a.$x": 1}']
GOOD_KEYS = ['{"k": 1.0}', '{"k": 1, "v": "hashed", "_id": 1}', '{"k.x": 1}']


class Refusing(proxy.Proxy):
    """To one command the answer is no, whatever the server has done."""

    def __init__(self, target, name):
        self.name, self.asked = name, set()
        super().__init__(target)
        self.change = self.deny

    def action_for(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.asked.add(struct.unpack_from("<i", message, 4)[0])
        return super().action_for(message)

    def deny(self, message):
        if struct.unpack_from("<i", message, 8)[0] not in self.asked:
            return message
        answer = bson.encode({"ok": 0.0, "code": 13, "errmsg": "not authorized for this"})
        return struct.pack("<i", 21 + len(answer)) + message[4:21] + answer


class DropCase:
    def source(self, rows=300, seed=91):
        (path,), _ = self.generate("B", rows, "--seed", seed)
        return path

    def collections(self):
        return sorted(self.database.list_collection_names())

    def plan(self, *words, code):
        return self.shardload("plan", *self.target(), *words, code=code)

    # Before anything is lost

    def through(self, server):
        """As target(), but through this proxy."""
        self.addCleanup(server.close)
        return ["--uri", f"mongodb://{support.HOST}:{server.port}/", "-d", self.database_name,
                "-c", "t", "--work-dir", self.scratch / f"work-{next(self._counter)}",
                "--progress", "none"]

    def port(self):
        return int(self.uri.split("://")[1].split("/")[0].rsplit(":", 1)[1])

    def test_batches_that_are_too_large_for_the_server(self):
        path = self.source()
        self.load(path)
        between = proxy.Proxy(self.port())
        key = b"\x10maxWriteBatchSize\0"
        between.change = lambda message: message.replace(key + struct.pack("<i", 100000),
                                                         key + struct.pack("<i", 1000))
        outcome = self.shardload("load", *self.through(between), "--drop", "--batch-size", 2000,
                                 path, code=support.EXIT_USAGE)
        self.assertIn("--batch-size 2000 is more than the server accepts (1000 documents)", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 300)

    # A collection that is gone, and its registry

    def test_what_was_loaded_before_it_was_dropped(self):
        path = self.source()
        self.load(path)
        before = sorted(self.stored())
        self.database.t.drop()
        gone = f"{self.database_name}.t is gone, but its registry {self.database_name}.t.sources is left"
        for _ in range(2):
            outcome, _ = self.load(path, code=support.EXIT_SOURCE)
            self.assertIn(gone, outcome.err)
            self.assertIn("--again loads them anew", outcome.err)
            self.assertIn("; --drop removes the registry as well", outcome.err)
            self.assertEqual(self.collections(), ["t.sources"], "something was made")
        self.assertIn(gone, self.plan(path, code=support.EXIT_SOURCE).err)
        outcome, _ = self.load("--part", "1/2", path, code=support.EXIT_SOURCE)
        self.assertIn(gone, outcome.err)
        self.assertNotIn("--drop", outcome.err)
        outcome, work = self.load("--again", path)
        self.assertIn(gone, outcome.err)
        self.assertEqual(sorted(self.stored()), before)
        self.assert_accounting(work, records=300, inserted=300)
        self.shardload("verify", *self.target(), "--content", path)
        outcome, _ = self.load(path, code=support.EXIT_SOURCE)
        self.assertIn("has been loaded into", outcome.err)
        self.assertNotIn("is gone", outcome.err)

    def test_other_sources_into_what_was_dropped(self):
        self.load(self.source())
        self.database.t.drop()
        outcome, _ = self.load(self.source(200, 92))
        self.assertRegex(outcome.err, "is gone, but its registry .* is left: the documents of the 1 "
                                      "source that it lists are gone, too; .*; --drop")
        self.assertEqual(self.database.t.count_documents({}), 200)

    def test_dropped_with_its_registry(self):
        path = self.source()
        self.load(path)
        self.database.t.drop()
        outcome, _ = self.load("--drop", path)
        self.assertNotIn("is gone", outcome.err)
        self.database.t.drop()
        self.database["t.sources"].drop()
        outcome, _ = self.load(path)
        self.assertNotIn("is gone", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 300)

    def test_a_view_is_not_taken_for_a_collection_that_is_gone(self):
        path = self.source()
        self.load(path)
        self.database.t.drop()
        self.database.create_collection("t", viewOn="others", pipeline=[])
        outcome, _ = self.load(path, code=support.EXIT_CLUSTER)
        self.assertIn("is a view", outcome.err)


class Standalone(DropCase, support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"


class Sharded(DropCase, support.ClusterCase):
    variable = "SHARDLOAD_TEST_URI"

    def test_what_is_no_shard_key(self):
        path = self.source()
        self.load(path)
        for key in BAD_KEYS:
            with self.subTest(key):
                outcome, _ = self.load("--drop", "--shard-key", key, path, code=support.EXIT_USAGE)
                self.assertIn(f"--shard-key: {key} cannot be a shard key: ", outcome.err)
                self.assertEqual(self.database.t.count_documents({}), 300)

    def test_what_is_a_shard_key_is_for_the_server_to_say(self):
        self.client.admin.command("enableSharding", self.database_name)
        for number, key in enumerate(BAD_KEYS):
            with self.subTest(key), self.assertRaises(pymongo.errors.OperationFailure):
                self.client.admin.command("shardCollection", f"{self.database_name}.bad{number}",
                                          key=support.json.loads(key))
        path = self.source()
        for key in GOOD_KEYS:
            with self.subTest(key):
                self.load("--drop", "--shard-key", key, path)
                entry = self.client.config.collections.find_one({"_id": f"{self.database_name}.t"})
                self.assertEqual(dict(entry["key"]), support.json.loads(key))

    def test_a_router_that_refuses_to_shard(self):
        path = self.source()
        self.load(path)
        outcome = self.shardload("load", *self.through(Refusing(self.port(), "enableSharding")),
                                 "--drop", path, code=support.EXIT_CLUSTER)
        self.assertIn(f"cannot make database {self.database_name}", outcome.err)
        self.assertIn("not authorized for this", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 300)
        self.assertEqual(self.balancer_mode(), "full")


if __name__ == "__main__":
    import tap
    tap.main()
