# SPDX-License-Identifier: Apache-2.0
"""Servers that know isMaster instead of hello (before 4.4.2), that are older or newer than those which shardload was
tested with, and that refuse all but the Stable API, or what a user may not do: a real server behind a proxy that
changes these messages."""
import json
import struct

import proxy
import support
from restore_case import Restoring, documents

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
        if self.version and proxy.command_of(message)[0] == "buildInfo":
            return proxy.change_reply(lambda reply: {**reply, "version": self.version})
        return super().action_for(message)


def strict(message):
    """For Proxy.change_request: makes the server refuse all but the Stable API."""
    if proxy.command_of(message)[0] is None:
        return message
    length = struct.unpack_from("<i", message, proxy.BODY)[0]
    body = support.bson.encode({**proxy.body_of(message), "apiVersion": "1", "apiStrict": True})
    changed = message[:proxy.BODY] + body + message[proxy.BODY + length:]
    return struct.pack("<i", len(changed)) + changed[4:]


class Restricted(proxy.Proxy):
    """Refuses the commands on all databases but one, as for a user who has the role readWrite there."""

    def __init__(self, target, database, code):
        self.database, self.code = database, code
        super().__init__(target)

    def action_for(self, message):
        name = proxy.command_of(message)[0]
        if name in (None, "hello", "isMaster", "ping", "buildInfo", "endSessions", "killCursors"):
            return super().action_for(message)
        database = proxy.body_of(message)["$db"]
        if database == self.database:
            return super().action_for(message)
        return proxy.answer(lambda _: {
            "ok": 0.0, "code": self.code, "errmsg": f"not authorized on {database} to execute command {{ {name}: 1 }}"})


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

    def load_mot(self, **expected):
        self.path = self.file("year.txt", support.mot_text(range(1, ROWS + 1)))
        return self.shardload("load", *self.words(), "--progress", "none", "--work-dir", self.scratch / "work",
                              self.path, **expected)

    def test_a_server_that_is_too_old_is_refused(self):
        self.old.version = "4.2.24"
        self.load_mot(code=support.EXIT_CLUSTER,
                      message="this is server 4.2.24, and shardload needs 4.4 or later")
        self.assertEqual(self.collections(), [])

    def test_a_newer_server_is_used_and_one_line_says_so(self):
        self.old.version = "9.1.0"
        outcome = self.load_mot()
        line = "server 9.1.0 is newer than 6.0, the newest with which shardload was tested"
        self.assertEqual(outcome.err.count(line), 1)
        self.assertEqual(self.database.t.count_documents({}), ROWS)

    def test_what_the_server_is_too_old_for_changes_nothing(self):
        self.old.version = "4.4.2"
        self.database.t.insert_one({"_id": 1})
        path = self.file("people.csv", "name,age\nAnn,31\n")
        outcome = self.shardload("load", *self.words(), "--clustered", "--drop", "--progress", "none",
                                 "--work-dir", self.scratch / "work", path, code=support.EXIT_CLUSTER)
        self.assertIn("--clustered needs server 5.3 or later, and this is 4.4.2", outcome.err)
        dump = self.dump_folder(self.namespace("t", documents(3)), self.namespace(
            "series", documents(3), options={"timeseries": {"timeField": "t", "metaField": "m"}}))
        self.shardload("restore", "--uri", self.through, "--drop", "--progress", "none",
                       "--work-dir", self.scratch / "restored", dump, code=support.EXIT_CLUSTER,
                       message="series is a time-series collection, which needs server 5.0 or later, and this is 4.4.2")
        left = [name for name in self.database.list_collection_names() if not name.startswith("system.")]
        self.assertEqual(left, ["t"])
        self.assertEqual(list(self.database.t.find()), [{"_id": 1}])


class Standalone(Both, Restoring, server="mongod"):
    def test_doctor_examines_the_server(self):
        outcome = self.shardload("doctor", "--uri", self.through, "--json", code=None)
        found = {finding["check"]: finding for finding in json.loads(outcome.out)["checks"]}
        (server,) = found["versions"]["values"]["servers"]
        self.assertEqual(server["role"], "primary")
        self.assertGreater(self.old.refused, 0)


class Sharded(Both, Restoring, server="cluster"):
    def test_a_user_who_may_only_write_to_the_database_loads_and_verifies(self):
        for code in (13, 8000):
            with self.subTest(code=code):
                self.client.drop_database(self.database_name)
                server = Restricted(support.port_of(self.uri), self.database_name, code)
                self.addCleanup(server.close)
                self.through = self.proxy_uri(server)
                support.shutil.rmtree(self.scratch / "work", ignore_errors=True)
                self.load_mot(message="the shards are not known: ")
                self.assertEqual(self.database.t.count_documents({}), ROWS)
                self.assertIsNone(self.shard_key())
                self.assertEqual(self.balancer_mode(), "full")
                self.shardload("verify", *self.words(), "--content", self.path)
                self.shardload("load", *self.words(), "--route", "direct", "--again", self.path,
                               code=support.EXIT_USAGE, message="is a cluster with hidden shards")

    def test_such_a_user_loads_into_a_sharded_collection(self):
        self.shard({"_id": "hashed"})
        server = Restricted(support.port_of(self.uri), self.database_name, 13)
        self.addCleanup(server.close)
        self.through = self.proxy_uri(server)
        self.load_mot(message="the shards are not known: ")
        self.assertEqual(sum(self.counts_by_shard().values()), ROWS)
        self.shardload("verify", *self.words(), "--content", self.path)


class StableApi(Both, Restoring, server="replica"):
    def test_a_server_that_refuses_all_but_the_stable_api_is_loaded(self):
        self.needs("5.0", "the Stable API")
        self.old.change_request = strict
        self.old.change_reply = lambda message: message
        self.load_mot()
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.shardload("verify", *self.words(), "--content", self.path)
