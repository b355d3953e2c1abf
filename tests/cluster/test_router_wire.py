# SPDX-License-Identifier: Apache-2.0
"""The local cluster's router gets messages from sockets that no driver would send.

A router that crashes on an odd message, leaks the resources of a closed connection, or forwards
fields that abort a server would end a load of another test.
"""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile

import real_servers
import support
from router_case import (
    CHECKSUM, EXHAUST, OP_MSG, OP_QUERY, PATIENCE, ClusterCase, Wire, message)
from support import bson


class OnTheWire(ClusterCase):
    """Sockets connected to a router of this class alone, so that its threads can be counted."""

    real = False              # of a subclass: the router is a mongos

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.real:
            return
        servers = cls.admin.command("getShardMap")["map"]["config"]
        cls.folder = tempfile.TemporaryDirectory()
        cls.log = os.path.join(cls.folder.name, "router.log")
        cls.router, cls.address = cls.start_router(servers, cls.log)
        cls.idle_resources = cls.resources(cls.router)

    @classmethod
    def start_router(cls, servers, log):
        router = subprocess.Popen([support.program("shardload-router"), "--config-server", servers,
                                   "--listen", "127.0.0.1:0", "--log", log])

        def text():
            with open(log, encoding="utf-8") as file:
                return file.read()
        cls.wait_for(lambda: router.poll() is not None or
                     (os.path.exists(log) and "listening on" in text()), "the router listens")
        assert router.poll() is None, text()
        port = int(text().split("listening on ")[1].split(",")[0].rpartition(":")[2])
        return router, ("127.0.0.1", port)

    @classmethod
    def tearDownClass(cls):
        if cls.real:
            return
        cls.router.terminate()
        status = cls.router.wait(PATIENCE)
        cls.folder.cleanup()
        super().tearDownClass()
        assert status == 0, f"the router ended with {status}"

    def wire(self):
        wire = Wire(self.address)
        self.addCleanup(wire.socket.close)
        return wire

    @staticmethod
    def resources(router):
        """A router's (number of threads for clients, number of open files)."""
        threads = 0
        for task in pathlib.Path(f"/proc/{router.pid}/task").iterdir():
            try:
                threads += (task / "comm").read_text(encoding="ascii") == "client\n"
            except OSError:  # the thread has just ended
                continue
        return threads, len(os.listdir(f"/proc/{router.pid}/fd"))

    def assert_alive(self):
        with Wire(self.address) as wire:
            self.assertEqual(wire.run({"ping": 1, "$db": "admin"})["ok"], 1.0)
            self.assertEqual(wire.run({"buildInfo": 1, "$db": "admin"})["ok"], 1.0)

    def insert(self, wire, documents, **more):
        return wire.run({"insert": "c", "$db": self.database_name, **more},
                        [("documents", [bson.encode(d) for d in documents])])

    def test_fields_of_sessions_are_not_forwarded_to_the_server(self):
        """A transaction number would abort mongod."""
        wire = self.wire()
        session = {
            "lsid": {"id": bson.Binary(os.urandom(16), 4)}, "txnNumber": bson.Int64(1),
            "stmtIds": [0], "$clusterTime": {"clusterTime": bson.Timestamp(2**31 - 1, 1),
                                             "signature": {"hash": bytes(20), "keyId": 0}},
            "apiVersion": "1", "apiStrict": True}
        self.assertEqual(self.insert(wire, [{"_id": 1}], **session)["n"], 1)
        for command in ({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]},
                        {"find": "c", "readConcern": {"afterClusterTime": bson.Timestamp(1, 1)}},
                        {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"x": 1}}},
                        {"aggregate": "c", "pipeline": [], "cursor": {}},
                        {"count": "c"}, {"distinct": "c", "key": "x"},
                        {"explain": {"find": "c", **session}},
                        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
                        {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
                        {"endSessions": [session["lsid"]]}):
            with self.subTest(next(iter(command))):
                reply = wire.run({**command, "$db": self.database_name, **session})
                self.assertEqual(reply["ok"], 1.0, reply)
        self.assertEqual(self.database.c.count_documents({}), 0)

    def test_a_transaction_is_refused(self):
        reply = self.insert(self.wire(), [{"_id": 1}], txnNumber=bson.Int64(1), autocommit=False, startTransaction=True)
        self.assertEqual((reply["ok"], reply["code"]), (0.0, 20))
        self.assertEqual(self.database.c.count_documents({}), 0)

    def test_a_message_of_40_megabytes(self):
        documents = [bson.encode({"_id": i, "x": "y" * 99_000}) for i in range(404)]
        reply = self.wire().run({"insert": "c", "$db": self.database_name, "ordered": False},
                                [("documents", documents)])
        self.assertEqual((reply["ok"], reply["n"]), (1.0, 404), reply)
        self.assertEqual(self.database.c.count_documents({}), 404)

    def test_the_longest_message_a_client_may_send(self):
        limit = self.wire().run({"isMaster": 1, "$db": "admin"})["maxMessageSizeBytes"]
        command = {"insert": "c", "$db": self.database_name}
        documents = [bson.encode({"_id": i, "x": b"y" * 15_000_000}) for i in range(3)]
        missing = limit - len(message(command, [("documents", documents)]))
        documents.append(bson.encode({"_id": 3, "x": b""}))
        missing -= len(documents[-1])
        documents[-1] = bson.encode({"_id": 3, "x": b"y" * missing})
        whole = message(command, [("documents", documents)])
        self.assertEqual(len(whole), limit)
        wire = self.wire()
        wire.send(whole)
        self.assertEqual(wire.reply()["n"], 4)

    def test_the_command_may_follow_its_documents(self):
        wire = self.wire()
        reply = wire.run({"insert": "c", "$db": self.database_name},
                         [("documents", [bson.encode({"_id": 1})])], body_last=True, request=4711)
        self.assertEqual((reply["n"], wire.answered), (1, 4711))
        self.assertEqual(self.database.c.find_one(), {"_id": 1})

    def test_a_checksum_is_checked(self):
        wire = self.wire()
        self.assertEqual(wire.run({"ping": 1, "$db": "admin"}, flags=CHECKSUM)["ok"], 1.0)
        found = wire.run({"find": "c", "$db": self.database_name}, flags=CHECKSUM)
        self.assertEqual(found["ok"], 1.0)
        damaged = bytearray(message({"ping": 1, "$db": "admin"}, flags=CHECKSUM))
        damaged[-1] ^= 1
        wire.send(damaged)
        self.assertTrue(wire.is_closed())

    def test_an_exhaust_cursor_gets_one_batch_per_request(self):
        wire = self.wire()
        self.insert(wire, [{"_id": i} for i in range(10)])
        first = wire.run({"find": "c", "$db": self.database_name, "batchSize": 2}, flags=EXHAUST)
        self.assertEqual(len(first["cursor"]["firstBatch"]), 2)
        self.assertEqual(wire.run({"ping": 1, "$db": "admin"})["ok"], 1.0)
        more = wire.run({"getMore": first["cursor"]["id"], "collection": "c", "$db": self.database_name})
        self.assertEqual(len(more["cursor"]["nextBatch"]), 8)

    def test_a_cursor_can_be_continued_on_another_connection(self):
        wires = [self.wire() for _ in range(3)]
        self.insert(wires[0], [{"_id": i} for i in range(30)])
        for opened in ({"find": "c", "sort": {"_id": 1}, "batchSize": 5},
                       {"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}],
                        "cursor": {"batchSize": 5}}):
            cursor = wires[0].run({**opened, "$db": self.database_name})["cursor"]
            documents = cursor["firstBatch"]
            turn = 0
            while cursor["id"]:
                turn += 1
                cursor = wires[turn % 3].run({"getMore": cursor["id"], "collection": "c",
                                              "batchSize": 4, "$db": self.database_name})["cursor"]
                documents += cursor["nextBatch"]
            self.assertEqual(documents, [{"_id": i} for i in range(30)])

    def test_a_list_of_collections_has_a_cursor_too(self):
        for i in range(9):
            self.database[f"c{i}"].insert_one({})
        wires = [self.wire() for _ in range(2)]
        cursor = wires[0].run({"listCollections": 1, "cursor": {"batchSize": 4}, "nameOnly": True,
                               "$db": self.database_name})["cursor"]
        more = wires[1].run({"getMore": cursor["id"], "collection": "$cmd.listCollections",
                             "$db": self.database_name})["cursor"]
        names = {c["name"] for c in cursor["firstBatch"] + more["nextBatch"]}
        self.assertEqual(names, {f"c{i}" for i in range(9)})

    def test_a_killed_cursor_is_gone_from_the_server(self):
        wires = [self.wire() for _ in range(2)]
        self.insert(wires[0], [{"_id": i} for i in range(30)])
        opened = self.count_open_cursors()
        cursor = wires[0].run({"find": "c", "batchSize": 5, "$db": self.database_name})["cursor"]["id"]
        self.assertGreater(self.count_open_cursors(), opened)
        reply = wires[1].run({"killCursors": "c", "cursors": [cursor, bson.Int64(12345)], "$db": self.database_name})
        self.assertEqual((reply["cursorsKilled"], reply["cursorsNotFound"]), ([cursor], [12345]))
        reply = wires[0].run({"getMore": cursor, "collection": "c", "$db": self.database_name})
        self.assertEqual((reply["ok"], reply["code"]), (0.0, 43))
        self.wait_for(lambda: self.count_open_cursors() == opened, "the shards close their cursors")

    def count_open_cursors(self):
        """The number of idle cursors on the shards for this test's collection."""
        stages = [{"$currentOp": {"idleCursors": True, "allUsers": True}},
                  {"$match": {"type": "idleCursor", "ns": f"{self.database_name}.c"}}]
        return len(list(self.admin.aggregate(stages)))

    def test_malformed_messages_end_their_own_connection_only(self):
        good = message({"ping": 1, "$db": "admin"})
        body = bson.encode({"ping": 1, "$db": "admin"})

        def with_length(length):
            return struct.pack("<i", length) + good[4:]

        def sections(content, flags=0):
            return struct.pack("<iiiiI", 20 + len(content), 1, 0, OP_MSG, flags) + content
        for description, data in {
            "a length shorter than a header": with_length(15),
            "a negative length": with_length(-1),
            "a length beyond the limit": with_length(48_000_001),
            "an unknown operation": struct.pack("<iiii", 16, 1, 0, 1234),
            "an old insert": struct.pack("<iiii", 16, 1, 0, 2002),
            "no section": sections(b""),
            "no command": sections(b"\1" + struct.pack("<i", 6) + b"x\0"),
            "two commands": sections(b"\0" + body + b"\0" + body),
            "an unknown section": sections(b"\7" + body),
            "an unknown flag": sections(b"\0" + body, 4),
            "a document that is too long": sections(b"\0" + struct.pack("<i", 99) + body[4:]),
            "a document without an end": sections(b"\0" + body[:-1] + b"\1"),
            "an element that does not fit": sections(
                b"\0" + struct.pack("<i", 14) + b"\2a\0" + struct.pack("<i", 77) + b"xx\0"),
            "a sequence that does not fit": sections(
                b"\0" + body + b"\1" + struct.pack("<i", 999) + b"x\0"),
            "a sequence without a name": sections(
                b"\0" + body + b"\1" + struct.pack("<i", 6) + b"xx"),
            "an old query that ends too soon":
                struct.pack("<iiiii", 24, 1, 0, OP_QUERY, 0) + b"a\0\0\0",
            "noise": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        }.items():
            with self.subTest(description):
                other = self.wire()
                with Wire(self.address) as wire:
                    wire.send(data)
                    self.assertTrue(wire.is_closed() or self.real)      # mongos may reply with an error
                self.assertEqual(other.run({"ping": 1, "$db": "admin"})["ok"], 1.0)
        self.assert_alive()

    def test_invalid_commands_get_an_error_and_the_connection_stays_open(self):
        wire = self.wire()
        for command, code, of_mongos in (
                ({}, 9, 40571), ({"ping": 1}, 9, 40571), ({"ping": 1, "$db": 7}, 9, 13111),
                ({"getMore": 1, "$db": "x"}, 14, 14),
                ({"getMore": bson.Int64(99), "collection": "c", "$db": "x"}, 43, 43),
                ({"killCursors": "c", "$db": "x"}, 14, 9), ({"count": 7, "$db": "x"}, 73, 73),
                ({"explain": 1, "$db": "x"}, 9, 9), ({"shardCollection": "a.b", "$db": "admin"}, 14, 40414)):
            with self.subTest(str(command)):
                reply = wire.run(command)
                self.assertEqual((reply["ok"], reply["code"]), (0.0, of_mongos if self.real else code), reply)
        self.assertEqual(wire.run({"ping": 1, "$db": "admin"})["ok"], 1.0)

    def test_the_handshake_by_OP_QUERY(self):
        def query(command):
            content = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1)
            content += bson.encode(command)
            return struct.pack("<iiii", 16 + len(content), 5, 0, OP_QUERY) + content

        def answer(command):
            wire.send(query(command))
            length, _, answered, opcode = struct.unpack("<iiii", wire.receive(16))
            self.assertEqual((answered, opcode), (5, 1))
            return bson.decode(wire.receive(length - 16)[20:])
        wire = self.wire()
        reply = answer({"isMaster": 1, "helloOk": True})
        self.assertEqual((reply["ismaster"], reply["msg"]), (True, "isdbgrid"))
        self.assertEqual(reply.get("helloOk", False), not self.real)     # since server 4.4.2
        if not self.real:                                                 # server 4.4 still executes it
            self.assertEqual(answer({"find": "c"})["code"], 352)

    def test_closed_connections_release_their_threads_and_files(self):
        self.assert_alive()
        self.wait_for(lambda: self.resources(self.router) == self.idle_resources, "earlier connections are closed")
        slow = {"aggregate": "c", "cursor": {}, "$db": self.database_name,
                "pipeline": [{"$match": {"$expr": {"$function": {
                    "body": "function() { sleep(600000); }", "args": [], "lang": "js"}}}}]}
        with Wire(self.address) as wire:
            self.insert(wire, [{"_id": 1}])
        for data in (b"", message({"ping": 1, "$db": "admin"})[:9],
                     message({"ping": 1, "$db": "admin"})[:30],
                     struct.pack("<iiii", 40_000_000, 1, 0, OP_MSG) + bytes(1000), message(slow)):
            with Wire(self.address) as wire:
                wire.send(data)
                self.wait_for(lambda: self.resources(self.router) > self.idle_resources, "the connection is accepted")
        self.wait_for(lambda: self.resources(self.router) == self.idle_resources, "the threads and files are released")
        self.assert_alive()

    def test_sigterm_closes_idle_and_busy_connections(self):
        servers = self.admin.command("getShardMap")["map"]["config"]
        log = os.path.join(self.folder.name, "stopped.log")
        router, address = self.start_router(servers, log)
        self.addCleanup(router.kill)
        with Wire(address) as idle, Wire(address) as busy:
            idle.run({"buildInfo": 1, "$db": "admin"})
            busy.run({"insert": "c", "documents": [{"_id": 1}], "$db": self.database_name})
            busy.send(message({"find": "c", "filter": {"$where": "sleep(600000)"}, "$db": self.database_name}))
            router.send_signal(signal.SIGTERM)
            self.assertEqual(router.wait(PATIENCE), 0)
            self.assertTrue(idle.is_closed())
            self.assertTrue(busy.is_closed())

    def test_a_port_that_is_in_use_is_reported(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = subprocess.run(
                [support.program("shardload-router"), "--config-server", "127.0.0.1:1", "--listen",
                 f"127.0.0.1:{port}"],
                capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Address already in use", result.stderr)


class RealOnTheWire(real_servers.RouterCase, OnTheWire):
    """The same of a mongos, except what docs/localcluster.md lists."""

    real = True
    # It has sessions and transactions; these tests start a router of the project's own, or count its threads.
    test_fields_of_sessions_are_not_forwarded_to_the_server = None
    test_a_transaction_is_refused = None
    test_closed_connections_release_their_threads_and_files = None
    test_sigterm_closes_idle_and_busy_connections = None
    test_a_port_that_is_in_use_is_reported = None
