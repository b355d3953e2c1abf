# SPDX-License-Identifier: Apache-2.0
"""A server whose messages crash the driver, or make it compute or collect without end: at the handshake,
in the replies to commands, and in the batches of a cursor. Each is refused with the name of the server
and the reason, and the program ends with an error instead of a signal."""
import select
import socket
import ssl
import struct
import threading
import time
import zlib

import fault_case
import proxy
import secure_servers
import support
from support import bson

OP_REPLY, OP_COMPRESSED, OP_MSG = 1, 2012, 2013
MIB = 1 << 20


def with_body(message, body):
    """The message with another body, a dictionary or bytes."""
    start = 36 if struct.unpack_from("<i", message, 12)[0] == OP_REPLY else 21
    body = body if isinstance(body, bytes) else bson.encode(body)
    return struct.pack("<i", start + len(body)) + message[4:start] + body


def compressed(message, size=None, compressor=2):
    """The message, compressed with zlib; `size`: a false one."""
    size = len(message) - 16 if size is None else size
    data = zlib.compress(message[16:])
    return struct.pack("<iiiiiiB", 25 + len(data), *struct.unpack_from("<ii", message, 4),
                       OP_COMPRESSED, struct.unpack_from("<i", message, 12)[0], size,
                       compressor) + data


def as_op_reply(message):
    """The body of the message as that of an OP_REPLY, in whose numbers an OP_MSG would have a pointer."""
    return struct.pack("<iiiiiqii", len(message) + 15, *struct.unpack_from("<ii", message, 4), OP_REPLY, 8, 0,
                       0x41414141, 1) + message[21:]


def to_another_request(message):
    return message[:8] + struct.pack("<i", struct.unpack_from("<i", message, 8)[0] + 1) + message[12:]


def hello_of(message):
    """The reply to a hello as a dictionary; None if the message is another one."""
    start = 36 if struct.unpack_from("<i", message, 12)[0] == OP_REPLY else 21
    body = bson.decode(message[start:])
    return body if "maxWireVersion" in body else None


def scram_of(iterations):
    """Replies to saslStart with this number of iterations."""
    return lambda message: {
        "conversationId": 1, "done": False, "ok": 1.0,
        "payload": b"r=%sserver,s=QUFBQUFBQUFBQUFBQUFBQQ==,i=%d" % (
            bytes(message["payload"]).rpartition(b"r=")[2], iterations)}


class Commands(proxy.Proxy):
    """Replies to the commands of some names with what a function returns, a body."""

    def __init__(self, target, **replies):
        self.replies_to = replies
        super().__init__(target)

    def action_for(self, message):
        action = super().action_for(message)
        name = proxy.command_of(message)[0]
        if name not in self.replies_to:
            return action
        return proxy.answer(lambda _: self.replies_to[name](proxy.body_of(message)))


class HostileServer(fault_case.ProxyCase, server="mongod"):
    rows = 2000

    def refused(self, *reasons, through=None, userinfo="", options="", more=()):
        """A load ends with an error that contains the server and the reasons."""
        through = through or self.proxy
        uri = f"mongodb://{userinfo}127.0.0.1:{through.port}/?serverSelectionTimeoutMS=1500{options}"
        self.begin("--retry-timeout", 1, *more, uri=uri).wait().expect(
            support.EXIT_CLUSTER, f"127.0.0.1:{through.port}", *reasons)

    def replying(self, **replies):
        hostile = Commands(support.port_of(self.uri), **replies)
        self.addCleanup(hostile.close)
        return hostile

    def queried(self, query, **replies):
        """Of such a server. Returns the outcome."""
        suite = self.file("own.yaml", f"name: own\nqueries:\n  - name: q\n    operation: {query}\n")
        return self.run_program("shardquery", "run", "--query", "q", "-d", self.database_name, "-c", "c", "--uri",
                                f"mongodb://127.0.0.1:{self.replying(**replies).port}/", suite)

    def answer_hello(self, change):
        """Replaces each reply to a hello of the driver, after the first one of the loader itself, by
        what the function makes of message and body."""
        asked = []

        def changed(message):
            hello = hello_of(message)
            if hello is None or not asked:
                asked.append(message)
                return message
            return change(message, hello)
        self.proxy.change_reply = changed

    def test_malformed_replies_to_the_handshake(self):
        for change, reason in (
                (lambda m, h: with_body(m, bytes(85)), "declares a wrong length"),
                (lambda m, h: with_body(m, b"\xff\xff\xff\xff\0"), "declares a wrong length"),
                (lambda m, h: struct.pack("<i", -1) + m[4:], "it declares a length of -1 bytes"),
                (lambda m, h: with_body(m, {**h, "speculativeAuthenticate": 5}),
                 "speculativeAuthenticate is not a document"),
                (lambda m, h: m[:12] + struct.pack("<i", 77) + m[16:], "of the unknown kind 77"),
                (lambda m, h: compressed(m, 1 << 30), "declares a length of 1073741824 bytes"),
                (lambda m, h: compressed(m, 900), "does not have the declared 900 bytes")):
            with self.subTest(reason):
                self.answer_hello(change)
                self.refused("is refused: ", reason)

    def answer_writes(self, change):
        def changed(message):
            is_write = message[12] == OP_MSG & 0xFF and "n" in bson.decode(message[21:])
            return change(message) if is_write else message
        self.proxy.change_reply = changed

    def test_messages_that_are_no_reply_to_the_request(self):
        """Of the kind that belongs to another kind of request, or with the number of another request."""
        for change, reason in ((as_op_reply, "it is of the kind 1 for request"),
                               (to_another_request, "not of the kind 2013 for request")):
            with self.subTest(change):
                self.answer_writes(change)
                self.refused("is refused: ", reason, more=["--drop"])

    def test_replies_that_are_sent_twice(self):
        """The second one is no reply to the next request."""
        self.answer_writes(lambda message: message * 2)
        outcome = self.begin("--batch-size", 100, "--retry-timeout", 30).wait()
        self.assert_nothing_lost(outcome, again=None)
        self.assertIn("not of the kind 2013 for request", outcome.err)

    def test_forged_properties_of_the_server(self):
        for name, value in (
                ("maxWriteBatchSize", 0), ("maxWriteBatchSize", -5), ("maxBsonObjectSize", 0),
                ("maxBsonObjectSize", 2 ** 31 - 1), ("maxBsonObjectSize", "16"),
                ("maxMessageSizeBytes", 100), ("maxMessageSizeBytes", -1), ("maxWireVersion", -1),
                ("logicalSessionTimeoutMinutes", 0), ("setName", "a\x1b[31m"), ("setName", ""),
                ("hosts", ["a:1/?tlsInsecure=true"]), ("hosts", "a:1"), ("hosts", [5]),
                ("hosts", ["a:1,b:1"]), ("passives", ["[" + 300 * ":" + "]:1"]), ("arbiters", ["a" * 254]),
                ("compression", [5])):
            with self.subTest(f"{name}={value}"):
                self.answer_hello(lambda m, h, to=(name, value): with_body(m, {**h, to[0]: to[1]}))
                self.refused("is refused: its " + name)

    def test_members_with_names_that_crash_the_driver(self):
        """Only a driver that looks for a replica set takes its members."""
        for host in ("[" + 300 * ":" + "]:1", "[" + 252 * ":" + "]:1", 300 * "a" + ":1"):
            more = {"setName": "rs", "me": host, "primary": host, "hosts": [f"127.0.0.1:{self.proxy.port}", host]}
            self.answer_hello(lambda m, h, more=more: with_body(m, {**h, **more}))
            self.refused("is refused: its hosts", options="&replicaSet=rs")

    def test_more_members_than_a_replica_set_has(self):
        """The driver asks each member that a server names for more members, in the same search, and keeps all."""
        own = f"127.0.0.1:{self.proxy.port}"
        lists = {name: [f"127.{number}.{n >> 8}.{n & 255}:1" for n in range(400)]
                 for number, name in enumerate(("hosts", "passives", "arbiters"), 1)}
        self.answer_hello(lambda m, h: with_body(m, {**h, **lists, "setName": "rs", "me": own}))
        self.refused("its replica set names more than 1000 members, or some again", options="&replicaSet=rs")
        known = bson.encode({"hosts": [own] * 1000, "setName": "rs", "me": own})[4:-1]

        def repeat(message, hello):
            """Each name is compared with those that are known, also a repeated one."""
            fields = bson.encode(hello)[4:-1] + 4 * known + b"\0"
            return with_body(message, struct.pack("<i", 4 + len(fields)) + fields)
        self.answer_hello(repeat)
        self.refused("its replica set names more than 1000 members, or some again", options="&replicaSet=rs")

    def test_members_that_are_silent(self):
        """The driver connects to one after another: 64 of them are waited for, and later ones are not asked."""
        def listener():
            return self.enterContext(socket.create_server(("0.0.0.0", 0), backlog=0))
        silent, early, late = listener(), listener(), listener()
        for _ in range(3):  # more connections than the listener's queue has room for: it answers no other one
            full = self.enterContext(socket.socket())
            full.setblocking(False)
            full.connect_ex(silent.getsockname())
        names = [f"127.9.{n >> 8}.{n & 255}:{silent.getsockname()[1]}" for n in range(1, 400)]
        own, first, last = (f"127.0.0.1:{port}" for port in (
            self.proxy.port, early.getsockname()[1], late.getsockname()[1]))
        members = [*names[:20], first, *names[20:], last]
        self.answer_hello(lambda m, h: with_body(m, {**h, "hosts": members, "setName": "rs", "me": own}))
        outcome = self.begin("--retry-timeout", 1, uri=f"mongodb://{own}/?replicaSet=rs&connectTimeoutMS=50"
                                                       "&serverSelectionTimeoutMS=500").wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        asked = [bool(select.select([each], [], [], 0)[0]) for each in (early, late)]
        self.assertEqual(asked, [True, False])

    def doctor(self, shards, **replies):
        """Examines the server as a router whose cluster has these shards. `shards` may be a function of its port."""
        def find(command):
            rows = shards(router.port) if callable(shards) else shards
            return {"ok": 1.0, "cursor": {"id": 0, "ns": "config.shards",
                                          "firstBatch": rows if command["find"] == "shards" else []}}
        router = self.replying(**{"find": find, **replies})
        router.change_reply = lambda m: m if hello_of(m) is None else with_body(
            m, {**hello_of(m), "msg": "isdbgrid"})
        return self.shardload("doctor", "--json", "--timeout", 1, "--uri", f"mongodb://127.0.0.1:{router.port}/",
                              code=None)

    def test_doctor_does_not_wait_for_each_of_many_silent_members(self):
        """16 are asked at once; each takes a second, and after ten no other one is asked."""
        silent = self.enterContext(socket.create_server(("0.0.0.0", 0), backlog=500))
        members = [f"127.9.{n >> 8}.{n & 255}:{silent.getsockname()[1]}" for n in range(1, 400)]
        shards = [{"_id": "s", "host": "s/" + ",".join(members[:-1])}, {"_id": "t", "host": "t/" + members[-1]}]
        self.assertIn(f"{members[-1]} (not asked: the other servers took 10 s)", self.doctor(shards).out)

    def test_more_shards_and_members_than_doctor_compares(self):
        outcome = self.doctor([{"_id": str(n), "host": "s/127.9.0.1:1"} for n in range(10_001)])
        self.assertIn("config.shards has more than 10000 shards", outcome.out)
        names = ",".join(f"127.9.{n >> 8}.{n & 255}:1" for n in range(1, 10_001))
        self.assertIn("the target has more than 10000 servers", self.doctor([{"_id": "s", "host": "s/" + names}]).text)

    def test_doctor_reads_more_shards_than_a_reply_has_by_default(self):
        """It did not see a draining shard after the first 101, nor that a reply did not hold all collections."""
        rows = [{"_id": str(n), "host": "s/127.9.0.1:1", "draining": n == 101} for n in range(102)]
        found = self.doctor([], find=lambda command: {"ok": 1.0, "cursor": {
            "id": 0, "ns": "config.shards",
            "firstBatch": rows[:command.get("batchSize", 101)] if command["find"] == "shards" else []}},
            listDatabases=lambda _: {"ok": 1.0, "databases": [{"name": "d"}]},
            listCollections=lambda _: {"ok": 1.0, "cursor": {
                "id": bson.int64.Int64(1 << 62), "ns": "d.$cmd.listCollections", "firstBatch": []}}).out
        self.assertIn("102, draining: 101", found)
        self.assertIn("d has more collections with such names than one reply holds", found)

    def test_long_answers_of_many_servers(self):
        """They were all kept: 4 MB of compressed replies of 20 servers took 4 GB of memory."""
        names = [f"{'LOCALHOST'[:n]}{'localhost'[n:]}" for n in range(9)]  # one server by nine names
        long = bson.encode({"ok": 1.0, "pad": bytes(40 * MIB)})
        found = self.doctor(lambda port: [{"_id": name, "host": f"{name}:{port}"} for name in names],
                            serverStatus=lambda _: long)
        self.assertIn("the answers of all servers have more than 256 MiB", found.out)

    def test_a_server_that_lists_databases_without_end(self):
        """doctor looked for leftovers in each of them, and in each collection that looked like a registry."""
        names = bson.encode({"ok": 1.0, "databases": [{"name": f"d{n}"} for n in range(10**5)]})
        found = self.doctor([], listDatabases=lambda _: names, listCollections=lambda _: {"ok": 1.0, "cursor": {
            "id": 0, "ns": "d.$cmd.listCollections", "firstBatch": [{"name": "c.sources"}]}})
        self.assertIn("looking up the listed names took more than 10 s", found.out)

    def test_replies_to_queries_that_contain_no_answer(self):
        """They counted as answers without documents, or as the document of an insert."""
        self.database.c.insert_one({"a": 1})
        for words in ("find\n    filter: '{}'", "count\n    filter: '{}'", "distinct\n    key: a",
                      "insert\n    document: '{\"a\": 1}'"):
            name = words.partition("\n")[0]
            for number in (-1, 1.5) if name == "count" else (-1, 0, 1.5, 7):
                for reply in {"ok": 1.0}, {"ok": 1.0, "cursor": {}, "n": number, "values": 5}:
                    with self.subTest(name, reply=reply):
                        self.assertIn("q: the server's reply contains no answer", self.queried(
                            words, **{name: lambda _, reply=reply: reply}).expect(support.EXIT_CLUSTER).err)

    def test_a_sample_of_a_parameter_that_does_not_end(self):
        """All values were kept: the process grew until it was killed."""
        cursor = {"id": bson.int64.Int64(77), "ns": f"{self.database_name}.c"}
        counted = {"ok": 1.0, "cursor": {"id": 0, "ns": cursor["ns"], "firstBatch": [{"n": 1}]}}
        begun = {"ok": 1.0, "cursor": {**cursor, "firstBatch": []}}
        for count, value, code in (5, 1, support.EXIT_OK), (500, "x" * MIB, support.EXIT_CLUSTER):
            batch = {"ok": 1.0, "cursor": {**cursor, "nextBatch": [{"v": value}] * 4}}
            outcome = self.queried(
                "find\n    filter: '{\"v\": {\"$parameter\": \"p\"}}'\n    parameters: {p: {sample: {field: v, "
                f"count: {count}}}}}}}", getMore=lambda _, batch=batch: batch,
                aggregate=lambda command: begun if "$sample" in command["pipeline"][0] else counted).expect(code)
            self.assertEqual("more than 64 MiB: give the sample" in outcome.err, code != support.EXIT_OK)

    def test_an_insert_of_doctor_that_is_not_stored_or_not_dropped(self):
        """The verdict was "ok", without a message of the server, and after an error nothing said what is left."""
        for reply, drop, shown in (
                ({"writeErrors": [{"index": 0, "code": 11000, "errmsg": "x"}]}, {"ok": 1.0}, "problem +inserts "),
                ({"writeConcernError": {"code": 64}}, {"ok": 1.0}, "problem +inserts "),
                ({"ok": 0.0, "code": 50}, {"ok": 0.0, "code": 13}, r"AND\s+COULD\s+NOT\s+BE\s+DROPPED")):
            hostile = self.replying(drop=lambda _, drop=drop: drop,
                                    insert=lambda _, reply=reply: {"ok": 1.0, "n": 200, **reply})
            self.assertRegex(self.shardload("doctor", "--write", "-d", self.database_name, "--uri",
                                            f"mongodb://127.0.0.1:{hostile.port}/", code=None).out, shown)

    def test_a_number_of_documents_that_is_not_one(self):
        """It was shown as 18,446,744,073,709,551,615 documents, and rates were computed from it."""
        for number in (-1, float("nan"), 1e300):
            reply = {"ok": 1.0, "cursor": {"id": 0, "ns": "a.b", "firstBatch": [{"n": number}]}}
            self.assertIn(".c, ? documents, ", self.queried("find\n    filter: '{}'", aggregate=lambda _, reply=reply:
                                                            reply).expect(support.EXIT_OK).out)

    def test_fields_of_hello_that_the_driver_refuses(self):
        for name in ("lastWrite", "me", "electionId", "tags"):
            with self.subTest(name):
                self.answer_hello(lambda m, h, name=name: with_body(m, {**h, name: 5}))
                self.refused("is the reply to hello malformed?")

    def test_a_field_that_is_repeated_with_a_forged_value(self):
        """The driver reads the last one."""
        forged = bson.encode({"maxMessageSizeBytes": 100})[4:]
        for first in (False, True):
            with self.subTest(first=first):
                def repeat(message, hello, first=first):
                    fields = bson.encode(hello)[4:-1]
                    both = forged[:-1] + fields + b"\0" if first else fields + forged
                    return with_body(message, struct.pack("<i", 4 + len(both)) + both)
                self.answer_hello(repeat)
                self.refused("is refused: its maxMessageSizeBytes")

    def test_a_reply_to_hello_that_lacks_fields(self):
        """The loader reads these fields also from a reply without wire versions."""
        for name, value in (("maxWriteBatchSize", 0), ("maxWriteBatchSize", -5),
                            ("maxMessageSizeBytes", 100), ("setName", "a b"),
                            ("hosts", ["a:1/?tlsInsecure=true"])):
            with self.subTest(f"{name}={value}"):
                hostile = self.replying(hello=lambda command, to=(name, value): {
                    "ok": 1.0, "isWritablePrimary": True, to[0]: to[1]})
                self.refused("is refused: its " + name, through=hostile)

    def test_the_reason_of_a_refused_message_is_not_that_of_a_later_error(self):
        """The server sends a malformed reply, and is then gone."""
        def vanish(_):
            self.proxy.refuse()
            return bytes(85)
        self.proxy.on_batch(3, proxy.change_reply(vanish))
        outcome = self.begin("--retry-timeout", 1, uri=f"{self.through}?serverSelectionTimeoutMS=300").wait().expect(
            support.EXIT_CLUSTER, "connection refused")
        last = [line for line in outcome.err.splitlines() if line.startswith("shardload: ")][-1]
        self.assertIn("connection refused", last)
        self.assertNotIn("is refused:", last)

    def test_compressed_and_unusual_replies_that_are_valid_are_accepted(self):
        """Also a compressed reply that was not requested."""
        self.proxy.change_reply = lambda message: message if hello_of(message) else compressed(message)
        self.assert_nothing_lost(self.begin().wait())
        self.proxy.change_reply = lambda message: message
        self.answer_hello(lambda m, h: with_body(
            m, {**h, "maxWriteBatchSize": 150, "localTime": "never", "more": {"a": [{"b": None}]}}))
        self.work = self.scratch / "again"
        self.assert_nothing_lost(self.begin("--drop").wait())

    def test_fields_of_replies_on_which_the_driver_aborts(self):
        """Also a speculativeAuthenticate that was not requested; and a $clusterTime that it would send with each
        later command."""
        for body in ({"ok": 1.0, "speculativeAuthenticate": 5}, {"ok": 1.0, "speculativeAuthenticate": []},
                     {"ok": 1.0, "$clusterTime": {"pad": "x" * 5000}}, {"ok": 1.0, "$clusterTime": 5},
                     {"ok": 0.0, "code": float("nan")}, {"ok": 0.0, "code": 0.5}, {"code": 0}, {"ok": 1.0, "code": 0},
                     {"ok": 0.0, "code": bson.int64.Int64(1 << 32)}, {"ok": 0.0}):
            with self.subTest(body):
                self.refused("is refused: ", through=self.replying(buildInfo=lambda command, body=body: body))

    def test_a_server_that_demands_endless_hashing(self):
        """The iterations of SCRAM, in the reply to the handshake or to saslStart."""
        hostile = self.replying(saslStart=scram_of(2147483647))
        for mechanism in "SCRAM-SHA-1", "SCRAM-SHA-256":
            self.refused("more than 1000000 SCRAM iterations", through=hostile, userinfo="a:b@",
                         more=["--authenticationMechanism", mechanism])

    def test_a_payload_that_ends_in_an_attribute_without_a_value(self):
        """Of the length of the client's payload without its final "=": the driver found this one after the end of
        its buffer's new text, and read on until the process crashed."""
        hostile = self.replying(saslStart=scram_of(4096), saslContinue=lambda message: {
            "conversationId": 1, "done": True, "ok": 1.0,
            "payload": b"v=" + b"A" * (len(message["payload"]) - 5) + b",v"})
        self.refused("ends in an attribute without a value", through=hostile, userinfo="a:b@",
                     more=["--authenticationMechanism", "SCRAM-SHA-1"])

    def test_an_error_without_a_reason(self):
        self.refused("connecting: the server gives no reason (code 8000)", through=self.replying(
            hello=lambda command: {"ok": 0.0, "errmsg": "", "code": 8000}))

    def cursors(self, batch):
        """A server whose every cursor is followed by this batch for ever. Finds of one document end."""
        def reply(field):
            return lambda command: {"ok": 1.0, "cursor": {
                "id": bson.int64.Int64(0 if command.get("singleBatch") else 77), "ns": f"{self.database_name}.t",
                field: [] if command.get("singleBatch") else batch}}
        return self.replying(find=reply("firstBatch"), getMore=reply("nextBatch"))

    def test_a_cursor_without_end(self):
        self.refused("sent more than 256 MiB", through=self.cursors(
            [{"_id": number, "pad": "x" * MIB} for number in range(15)]))

    def test_a_cursor_of_empty_batches(self):
        self.refused("successive batches without a document", through=self.cursors([]))

    def drip(self, is_slow):
        def observe(link, kind, message):
            for byte in message if kind == "reply" and is_slow(message) else b"":
                link.client.send(bytes([byte]))
                time.sleep(0.2)
        self.proxy.observe = observe

    def test_a_reply_whose_bytes_arrive_one_after_the_other(self):
        """Each byte arrives in time, the reply does not: --timeout is the time of a reply, or of 64 KiB of it."""
        self.drip(lambda message: self.proxy.batches and b"\x10n\0" in message)
        self.refused("timeout", more=["--drop", "--timeout", 1])

    def test_the_reply_to_a_long_command_whose_bytes_arrive_one_after_the_other(self):
        """Such a reply may begin after hours, but then it has --timeout too. The load waited without end."""
        self.drip(lambda message: b"numIndexesBefore" in message)
        self.refused("createIndexes", more=["--drop", "--timeout", 1, "--index", '{"make": 1}'])

    def test_the_end_of_a_load_does_not_wait_for_the_server(self):
        """After the summary, the load waited for the reply to the last command of each of its clients."""
        asked = []

        class Silent(proxy.Proxy):
            def action_for(self, message):
                action = super().action_for(message)
                if proxy.command_of(message)[0] != "endSessions":
                    return action
                asked.append(message)
                return proxy.lose_reply()

        silent = Silent(support.port_of(self.uri))
        self.addCleanup(silent.close)
        self.assert_nothing_lost(self.begin("--timeout", 1000, uri=self.proxy_uri(silent)).wait())
        self.assertGreater(len(asked), 0)

    def test_documents_in_the_scopes_of_code_in_documents(self):
        self.refused("nested deeper than 250 levels", through=self.replying(find=lambda command: bson.encode(
            {"ok": 1.0, "cursor": {"id": bson.int64.Int64(0), "ns": "a.b", "firstBatch": [
                bson.raw_bson.RawBSONDocument(support.code_in_scopes(800000))]}})))

    def test_malformed_batches_of_a_cursor(self):
        for body in ({"ok": 1.0, "cursor": 5}, {"ok": 1.0, "cursor": {"id": "x", "firstBatch": []}},
                     {"ok": 1.0, "cursor": {"id": bson.int64.Int64(0), "ns": 5, "firstBatch": []}},
                     {"ok": 1.0, "cursor": {"id": bson.int64.Int64(7), "ns": "a", "firstBatch": []}},
                     {"ok": 1.0, "cursor": {"id": bson.int64.Int64(0), "ns": "a.b", "firstBatch": [5]}},
                     bytes(85)):
            self.refused("is refused: ", through=self.replying(find=lambda command, body=body: body))

    def test_bytes_of_tls_that_arrive_one_after_the_other(self):
        """Within a record of TLS each byte renewed the timeout: in a reply, and in the handshake."""
        secure_servers.need_openssl()
        authority = secure_servers.Authority(secure_servers.folder_of_tests(type(self)) / "slow", "ours")
        relay = Relay(authority.issue("server", "/CN=x", "IP:127.0.0.1"), self.proxy.port)
        self.addCleanup(relay.close)
        for slow in (lambda front: front.connections > 1, lambda front: self.proxy.batches > 0):
            front = Relay(None, relay.port, slow)
            self.addCleanup(front.close)
            self.refused(through=front, options="&connectTimeoutMS=1000", more=[
                "--drop", "--timeout", 1, "--tlsCAFile", authority.certificate])

    def test_the_responder_that_a_certificate_names_is_not_asked(self):
        """It is asked in clear text, so the network can answer without end."""
        secure_servers.need_openssl()
        authority = secure_servers.Authority(secure_servers.folder_of_tests(type(self)) / "ours", "ours")
        with socket.create_server((support.HOST, 0)) as responder:
            responder.setblocking(False)
            relay = Relay(authority.issue("server", "/CN=x", "IP:127.0.0.1\nauthorityInfoAccess = "
                                          f"OCSP;URI:http://127.0.0.1:{responder.getsockname()[1]}/"),
                          self.proxy.port)
            self.addCleanup(relay.close)
            self.assert_nothing_lost(self.begin("--tlsCAFile", authority.certificate,
                                                uri=f"mongodb://{support.HOST}:{relay.port}/").wait())
            self.assertRaises(BlockingIOError, responder.accept)


class Relay:
    """Receives TLS connections with this certificate, and forwards what they contain to a port; without a
    certificate, bytes. `received`: how many bytes clients have sent. While `slow`, each byte to them is
    sent alone, and in time."""

    def __init__(self, certificate, target, slow=lambda relay: False):
        self.context = certificate and ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if certificate:
            self.context.load_cert_chain(certificate)
        self.slow = slow
        self.target, self.received, self.connections = target, 0, 0
        self.listener = socket.create_server((support.HOST, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.forward, args=[client], daemon=True).start()

    def forward(self, client):
        """One thread for both directions, because they share the state of TLS."""
        self.connections += 1
        try:
            with self.context.wrap_socket(client, server_side=True) if self.context else client as inside, \
                    socket.create_connection((support.HOST, self.target)) as outside:
                while True:
                    pending = self.context and inside.pending()
                    for side in [inside] if pending else select.select([inside, outside], [], [])[0]:
                        data = side.recv(1 << 16)
                        if not data:
                            return
                        self.received += len(data) if side is inside else 0
                        while side is outside and data and self.slow(self):
                            inside.sendall(data[:1])
                            data = data[1:]
                            time.sleep(0.2)
                        (outside if side is inside else inside).sendall(data)
        except OSError:
            client.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Redirected(fault_case.FaultCase):
    """The hosts of the shards, which the loader reads from the router for --route direct. Router and
    shards are reached by TLS; an impostor has a certificate of another authority, and would forward
    everything to the rightful shard."""

    rows = 2000

    @classmethod
    def setUpClass(cls):
        secure_servers.need_openssl()
        super().setUpClass()
        folder = secure_servers.folder_of_tests(cls)
        cls.ours, other = (secure_servers.Authority(folder / name, name) for name in ("ours", "other"))
        cls.rightful, cls.forged = (authority.issue("server", "/CN=127.0.0.1", "IP:127.0.0.1")
                                    for authority in (cls.ours, other))

    def closed_later(self, one):
        self.addCleanup(one.close)
        return one

    def relays(self, certificate):
        """For each shard, "set/host:port" and a relay to it, which the shard names as its host."""
        found = {}
        for shard in self.client.config.shards.find():
            name, _, host = shard["host"].partition("/")
            plain = self.closed_later(proxy.Proxy(int(host.rpartition(":")[2])))
            relay = self.closed_later(Relay(certificate, plain.port))
            address = f"{support.HOST}:{relay.port}"

            def own_name(message, address=address):
                hello = hello_of(message)
                return message if hello is None else with_body(
                    message, {**hello, "hosts": [address], "me": address, "primary": address})
            plain.change_reply = own_name
            found[shard["_id"]] = f"{name}/{address}", relay
        return found

    def load_to(self, hosts):
        """Loads with --route direct through a router that reports these hosts of the shards."""
        def change(reply):
            for shard in reply["cursor"].get("firstBatch", []):
                shard["host"] = hosts[shard["_id"]]
            return reply

        class Router(proxy.Proxy):
            def action_for(self, message):
                action = super().action_for(message)
                name, value = proxy.command_of(message)
                shards = name == "find" and proxy.body_of(message)["$db"] == "config" \
                    and proxy.collection_of(value) == "shards"
                return proxy.change_reply(change) if shards else action

        router = self.closed_later(Router(support.port_of(self.uri)))
        relay = self.closed_later(Relay(self.rightful, router.port))
        return self.begin("--route", "direct", "--tlsCAFile", self.ours.certificate, "--retry-timeout", 1,
                          uri=f"mongodb://{support.HOST}:{relay.port}/?serverSelectionTimeoutMS=2000").wait()

    def test_a_lock_of_the_balancer_without_a_holder(self):
        """The load asked for it again without end."""
        class Router(proxy.Proxy):
            def action_for(self, message):
                action = super().action_for(message)
                lock = proxy.command_of(message)[0] == "findAndModify" \
                    and proxy.body_of(message)["query"] == {"_id": "lock"}
                return proxy.answer(lambda _: {"ok": 1.0, "value": {"_id": "lock"}}) if lock else action

        router = self.closed_later(Router(support.port_of(self.uri)))
        self.begin(uri=f"mongodb://{support.HOST}:{router.port}/").wait().expect(
            support.EXIT_CLUSTER, "the lock of the balancer has no holder")

    def test_documents_reach_the_rightful_shards(self):
        relays = self.relays(self.rightful)
        self.assert_nothing_lost(self.load_to({name: host for name, (host, _) in relays.items()}))
        self.assertGreater(sum(relay.received for _, relay in relays.values()), 100000)

    def test_exchanged_hosts_of_shards_with_one_certificate(self):
        """The certificate is right, the shard is not: the load does not say that all is well."""
        relays = self.relays(self.rightful)
        names = list(relays)
        self.load_to({name: relays[names[n - 1]][0] for n, name in enumerate(names)}).expect(
            support.EXIT_VERIFICATION, "documents are missing")

    def test_nothing_reaches_a_host_that_turns_off_the_check_of_its_certificate(self):
        relays = self.relays(self.forged)
        for more in ("", "/?tlsInsecure=true", "/?tls=false", "/?tlsAllowInvalidCertificates=true&x=",
                     "&tlsInsecure=true"):
            with self.subTest(more):
                self.load_to({name: host + more for name, (host, _) in relays.items()}).expect(
                    support.EXIT_CLUSTER, "does not have the form" if more else "certificate")
                self.assertEqual([relay.received for _, relay in relays.values()], [0] * len(relays))


if __name__ == "__main__":
    support.main()
