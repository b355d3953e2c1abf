# SPDX-License-Identifier: Apache-2.0
"""Base classes of the tests of the local cluster's router: a database of the test's own in the shared
cluster, and a socket that sends any bytes.
"""
import os
import socket
import struct

import real_servers
import servers
import support
from support import bson, pymongo

OP_MSG, OP_QUERY = 2013, 2004
CHECKSUM, MORE_TO_COME, EXHAUST = 1, 2, 1 << 16
PATIENCE = 60  # seconds within which a reply must arrive


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def message(command, sequences=(), flags=0, request=7, body_last=False):
    """An OP_MSG with a command and document sequences, each as (name, encoded documents)."""
    parts = [b"\0" + bson.encode(command)]
    for name, documents in sequences:
        content = name.encode() + b"\0" + b"".join(documents)
        parts.append(b"\1" + struct.pack("<i", 4 + len(content)) + content)
    if body_last:
        parts.append(parts.pop(0))
    content = struct.pack("<I", flags) + b"".join(parts)
    length = 16 + len(content) + (4 if flags & CHECKSUM else 0)
    data = struct.pack("<iiii", length, request, 0, OP_MSG) + content
    if flags & CHECKSUM:
        data += struct.pack("<I", crc32c(data))
    return data


class Wire:
    """A connection that sends any bytes, and reads replies."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise EOFError("the router closed the connection")
            data += part
        return data

    def reply(self):
        length, _, self.answered, _ = struct.unpack("<iiii", self.receive(16))
        data = self.receive(length - 16)
        assert data[4] == 0, "a reply is one document"
        return bson.decode(data[5:-4] if data[0] & CHECKSUM else data[5:])

    def send(self, data):
        self.socket.sendall(data)

    def run(self, command, *arguments, **more):
        self.send(message(command, *arguments, **more))
        return self.reply()

    def is_closed(self):
        """Waits until the peer closes the connection or sends data. True: it has closed."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class ClusterCase(support.ClusterCase):
    """Tests with the shared sharded cluster, its `admin` database and the address of its router."""

    @classmethod
    def setUpClass(cls):
        if os.environ.get(servers.PROGRAMS_USED) == "mongos" and not issubclass(cls, real_servers.RouterCase):
            raise support.unittest.SkipTest("the router of this project; the classes Real... test a mongos")
        super().setUpClass()
        cls.admin = cls.client.admin
        # Not client.address: that is None until the driver has found the router.
        cls.address = pymongo.uri_parser.parse_uri(cls.uri)["nodelist"][0]
        cls.is_at_least_5 = cls.client.server_info()["versionArray"][0] >= 5
        cls.shards = sorted(shard["_id"] for shard in cls.admin.command("listShards")["shards"])

    def namespace(self, collection):
        return f"{self.database_name}.{collection}"

    def shard_collection(self, namespace, **more):
        if not self.is_at_least_5:                    # server 5.0 creates the database
            self.admin.command("enableSharding", self.database_name)
        self.admin.command("shardCollection", namespace, **more)

    def shard_by_range(self, collection, *bounds, key="_id"):
        """Shards the collection by range, splits it at the bounds, and places the chunks on the
        shards in turn."""
        namespace = self.namespace(collection)
        self.shard_collection(namespace, key={key: 1})
        for bound in bounds:
            self.admin.command("split", namespace, middle={key: bound})
        for i, low in enumerate((bson.MinKey(),) + bounds):
            high = (bounds + (bson.MaxKey(),))[i]
            self.admin.command(
                "moveChunk", namespace, bounds=[{key: low}, {key: high}],
                to=self.shards[i % len(self.shards)])

    def counts(self, collection):
        """Shard -> number of documents, by the shards' own counts."""
        stages = [{"$collStats": {"count": {}}}]
        return {row["shard"]: row["count"] for row in self.database[collection].aggregate(stages)}

    def chunks(self, collection):
        return [(chunk["min"], chunk["max"], chunk["shard"]) for chunk in
                self.client.config.chunks.find(self.in_catalog(collection)).sort("min")]

    def in_catalog(self, collection):
        """The filter of the collection's chunks in config.chunks."""
        namespace = self.namespace(collection)
        entry = self.client.config.collections.find_one({"_id": namespace})
        return {"uuid": entry["uuid"]} if "timestamp" in entry else {"ns": namespace}

    @staticmethod
    def explained_shards(cursor):
        """The shards on which a find runs: the keys of `shards` from the project's router, a list from mongos."""
        plan = cursor.explain()
        return sorted(plan["shards"] if "shards" in plan else
                      [one["shardName"] for one in plan["queryPlanner"]["winningPlan"]["shards"]])

    def assert_code(self, code, run, *arguments, **more):
        with self.assertRaises(pymongo.errors.OperationFailure) as caught:
            run(*arguments, **more)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception
