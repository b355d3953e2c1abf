# SPDX-License-Identifier: Apache-2.0
"""Servers that know isMaster instead of hello (before 4.2.11), and that add `ns` to each index (before 4.4): a
real server behind a proxy that changes these messages."""
import json

import proxy
import support
from restore_case import INDEXES, Restoring, documents

ROWS = 1200


class OldServer(proxy.Proxy):
    def __init__(self, target):
        super().__init__(target)
        self.refused = 0                       # commands hello
        self.version = None                    # what buildInfo reports; None: the server's version
        self.change_request = self.without_hello
        # The driver then says isMaster.
        self.change_reply = lambda message: message.replace(b"helloOk\0", b"unknown\0")

    def without_hello(self, message):
        self.refused += proxy.command_of(message)[0] == "hello"
        return proxy.unknown_command("hello")(message)

    def action_for(self, message):
        if proxy.command_of(message)[0] == "listIndexes":
            return proxy.change_reply(self.with_namespace)
        if self.version and proxy.command_of(message)[0] == "buildInfo":
            return proxy.change_reply(lambda reply: {**reply, "version": self.version})
        return super().action_for(message)

    @staticmethod
    def with_namespace(reply):
        for index in reply.get("cursor", {}).get("firstBatch", []):
            index["ns"] = "database.collection"
        return reply


class Both:
    def setUp(self):
        super().setUp()
        self.old = OldServer(support.port_of(self.uri))
        self.addCleanup(self.old.close)
        self.through = self.proxy_uri(self.old)

    def words(self):
        return ["--uri", self.through, "-d", self.database_name, "-c", "t"]

    def test_a_load_is_verified_and_queried(self):
        path = self.file("year.txt", support.mot_text(range(1, ROWS + 1)))
        self.shardload("load", *self.words(), "--progress", "none", "--work-dir", self.scratch / "work", path)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.shardload("verify", *self.words(), "--work-dir", self.scratch / "work", path)
        self.run_program("shardquery", "run", *self.words(), "mot").expect(support.EXIT_OK)
        self.assertGreater(self.old.refused, 0)

    def test_a_restored_dump_is_equal(self):
        dump = self.dump_folder(self.namespace("t", documents(300), indexes=INDEXES))
        for command in ("restore", "verify"):
            before = self.old.refused
            self.shardload(command, "--uri", self.through, "--work-dir", self.scratch / command,
                           *(["--progress", "none", dump] if command == "restore" else ["--dump", dump]))
            self.assertGreater(self.old.refused, before)

    def test_what_the_server_is_too_old_for_changes_nothing(self):
        self.old.version = "4.4.2"
        self.database.t.insert_one({"_id": 1})
        path = self.file("people.csv", "name,age\nAnn,31\n")
        outcome = self.shardload("load", *self.words(), "--clustered", "--drop", "--progress", "none",
                                 "--work-dir", self.scratch / "work", path, code=support.EXIT_CLUSTER)
        self.assertIn("--clustered needs server 5.3 or later, and this is 4.4.2", outcome.err)
        dump = self.dump_folder(self.namespace("t", documents(3)), self.namespace(
            "series", documents(3), options={"timeseries": {"timeField": "t", "metaField": "m"}}))
        outcome = self.shardload("restore", "--uri", self.through, "--drop", "--progress", "none",
                                 "--work-dir", self.scratch / "restored", dump, code=support.EXIT_CLUSTER)
        self.assertIn("series is a time-series collection, which needs server 5.0 or later, and this is 4.4.2",
                      outcome.err)
        left = [name for name in self.database.list_collection_names() if not name.startswith("system.")]
        self.assertEqual(left, ["t"])
        self.assertEqual(list(self.database.t.find()), [{"_id": 1}])


class Standalone(Both, Restoring):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def test_doctor_examines_the_server(self):
        outcome = self.shardload("doctor", "--uri", self.through, "--json", code=None)
        found = {finding["check"]: finding for finding in json.loads(outcome.out)["checks"]}
        (server,) = found["versions"]["values"]["servers"]
        self.assertEqual(server["role"], "primary")
        self.assertGreater(self.old.refused, 0)


class Sharded(Both, Restoring):
    variable = "SHARDLOAD_TEST_URI"
