# SPDX-License-Identifier: Apache-2.0
"""A server whose messages crash the driver, or make it compute or collect without end: at the handshake,
in the replies to commands, and in the batches of a cursor. Each is refused with the name of the server
and the reason, and the program ends with an error instead of a signal."""
import struct
import zlib

import fault_case
import proxy
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


def hello_of(message):
    """The reply to a hello as a dictionary; None if the message is another one."""
    start = 36 if struct.unpack_from("<i", message, 12)[0] == OP_REPLY else 21
    body = bson.decode(message[start:])
    return body if "maxWireVersion" in body else None


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


class HostileServer(fault_case.ProxyCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"
    rows = 2000

    def refused(self, *reasons, through=None, userinfo="", more=()):
        """A load ends with an error that contains the server and the reasons."""
        through = through or self.proxy
        uri = f"mongodb://{userinfo}127.0.0.1:{through.port}/?serverSelectionTimeoutMS=300"
        outcome = self.begin("--retry-timeout", 1, *more, uri=uri).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        for reason in (f"127.0.0.1:{through.port}", *reasons):
            self.assertIn(reason, outcome.err)

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
                (lambda m, h: m[:12] + struct.pack("<i", 77) + m[16:], "of the unknown kind 77"),
                (lambda m, h: compressed(m, 1 << 30), "declares a length of 1073741824 bytes"),
                (lambda m, h: compressed(m, 900), "does not have the declared 900 bytes")):
            with self.subTest(reason):
                self.answer_hello(change)
                self.refused("is refused: ", reason)

    def test_forged_properties_of_the_server(self):
        for name, value in (
                ("maxWriteBatchSize", 0), ("maxWriteBatchSize", -5), ("maxBsonObjectSize", 0),
                ("maxBsonObjectSize", 2 ** 31 - 1), ("maxBsonObjectSize", "16"),
                ("maxMessageSizeBytes", 100), ("maxMessageSizeBytes", -1), ("maxWireVersion", -1),
                ("logicalSessionTimeoutMinutes", 0), ("setName", "a\x1b[31m"), ("setName", ""),
                ("hosts", ["a:1/?tlsInsecure=true"]), ("hosts", "a:1"), ("hosts", [5])):
            with self.subTest(f"{name}={value}"):
                self.answer_hello(lambda m, h, to=(name, value): with_body(m, {**h, to[0]: to[1]}))
                self.refused("is refused: its " + name)

    def test_compressed_and_unusual_replies_that_are_valid_are_accepted(self):
        """Also a compressed reply that was not requested."""
        def compress(message):
            return message if hello_of(message) else compressed(message)
        self.proxy.change_reply = compress
        self.assert_nothing_lost(self.begin().wait())
        self.proxy.change_reply = lambda message: message
        self.answer_hello(lambda m, h: with_body(
            m, {**h, "maxWriteBatchSize": 150, "localTime": "never", "more": {"a": [{"b": None}]}}))
        self.work = self.scratch / "again"
        self.assert_nothing_lost(self.begin("--drop").wait())

    def test_a_server_that_demands_endless_hashing(self):
        """The iterations of SCRAM, in the reply to the handshake or to saslStart."""
        def start(message):
            nonce = bytes(message["payload"]).rpartition(b"r=")[2] + b"server"
            return {"conversationId": 1, "done": False, "ok": 1.0,
                    "payload": b"r=" + nonce + b",s=" + b"QUFBQUFBQUFBQUFBQUFBQQ==" + b",i=2147483647"}
        hostile = Commands(support.port_of(self.uri), saslStart=start)
        self.addCleanup(hostile.close)
        for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
            self.refused("more than 1000000 SCRAM iterations", through=hostile, userinfo="a:b@",
                         more=["--authenticationMechanism", mechanism])

    def test_an_error_without_a_reason(self):
        silent = Commands(support.port_of(self.uri),
                          hello=lambda command: {"ok": 0.0, "errmsg": "", "code": 8000})
        self.addCleanup(silent.close)
        self.refused("connecting: the server gives no reason (code 8000)", through=silent)

    def cursors(self, batch):
        """A server whose every cursor is followed by this batch for ever."""
        def reply(field):
            return lambda command: {"ok": 1.0, "cursor": {
                "id": bson.int64.Int64(77), "ns": f"{self.database_name}.t", field: batch}}
        hostile = Commands(support.port_of(self.uri), find=reply("firstBatch"),
                           getMore=reply("nextBatch"))
        self.addCleanup(hostile.close)
        return hostile

    def test_a_cursor_without_end(self):
        self.refused("sent more than 256 MiB", through=self.cursors(
            [{"_id": number, "pad": "x" * MIB} for number in range(15)]))

    def test_a_cursor_of_empty_batches(self):
        self.refused("successive batches without a document", through=self.cursors([]))

    def test_malformed_batches_of_a_cursor(self):
        for body in ({"ok": 1.0, "cursor": 5}, {"ok": 1.0, "cursor": {"id": "x", "firstBatch": []}},
                     bytes(85)):
            hostile = Commands(support.port_of(self.uri), find=lambda command, body=body: body)
            self.addCleanup(hostile.close)
            self.refused("is refused: ", through=hostile)


if __name__ == "__main__":
    support.main()
