# SPDX-License-Identifier: Apache-2.0
"""Writes dumps as mongodump does, from the published layout: folders and archives."""
import gzip
import hashlib
import struct

from bson import Int64, encode, json_util

CANONICAL = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL)
ID_INDEX = {"v": 2, "key": {"_id": 1}, "name": "_id_"}


def uuid_of(collection):
    return hashlib.sha256(collection.encode()).digest()[:16]


class Namespace:
    """`documents`: dicts or bytes; None: no data file. `options`: those of listCollections."""

    def __init__(self, database, collection, documents=(), options=None, indexes=(), kind=None, metadata=True):
        self.database, self.collection = database, collection
        self.options, self.indexes = options or {}, [ID_INDEX, *indexes]
        view = "viewOn" in self.options
        self.kind = kind or ("view" if view else "timeseries" if "timeseries" in self.options else "collection")
        self.has_metadata = metadata
        self.data = None if view or documents is None else b"".join(
            one if isinstance(one, bytes) else encode(one) for one in documents)

    @property
    def stored_as(self):
        """The collection whose documents are dumped."""
        return ("system.buckets." if self.kind == "timeseries" else "") + self.collection

    def metadata(self):
        return json_util.dumps(
            {"indexes": [] if self.kind == "view" else self.indexes,
             "uuid": uuid_of(self.collection).hex(), "collectionName": self.collection, "type": self.kind,
             "options": self.options}, json_options=CANONICAL)


def document(elements):
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def text(value):
    return struct.pack("<i", len(value) + 1) + value + b"\0"


def escaped(name):
    return "".join(c if c.isalnum() or c in "._-$" else "".join(f"%{b:02X}" for b in c.encode()) for c in name)


def folder(path, namespaces, zipped=False):
    """Writes a dump folder; returns its path."""
    path.mkdir(parents=True, exist_ok=True)
    for one in namespaces:
        at = path / one.database
        at.mkdir(exist_ok=True)
        files = []
        if one.data is not None:
            files.append((f"{escaped(one.stored_as)}.bson", one.data))
        if one.has_metadata:
            files.append((f"{escaped(one.collection)}.metadata.json", one.metadata().encode()))
        for name, data in files:
            if zipped:
                (at / (name + ".gz")).write_bytes(gzip.compress(data, 1, mtime=0))
            else:
                (at / name).write_bytes(data)
    return path


# ---- archives ----

MAGIC = struct.pack("<I", 0x8199E26D)
TERMINATOR = b"\xff\xff\xff\xff"
_POLYNOMIAL = 0xC96C5795D7870F42


def _table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (_POLYNOMIAL if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def crc64(data):
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFFFFFFFFFF
    return crc - (1 << 64) if crc >> 63 else crc


def split(data):
    """The documents of BSON data."""
    at = 0
    while at < len(data):
        length = struct.unpack_from("<i", data, at)[0]
        yield data[at:at + length]
        at += length


def header(one, end=False, crc=0):
    return encode({"db": one.database, "collection": one.stored_as, "EOF": end, "CRC": Int64(crc)})


def archive(namespaces, chunk=3):
    """An archive with the documents of the namespaces interleaved, `chunk` at a time."""
    out = [MAGIC, encode({"concurrent_collections": 4, "version": "0.1", "server_version": "6.0.5",
                          "tool_version": "100.9.0"})]
    for one in namespaces:
        out.append(encode({"db": one.database, "collection": one.collection,
                           "metadata": one.metadata() if one.has_metadata else "",
                           "size": len(one.data or b""), "type": one.kind}))
    out.append(TERMINATOR)
    left = [(one, list(split(one.data))) for one in namespaces if one.data is not None]
    while left:
        again = []
        for one, documents in left:
            now, later = documents[:chunk], documents[chunk:]
            if now:
                out += [header(one), *now, TERMINATOR]
            if later:
                again.append((one, later))
            else:
                out += [header(one, True, crc64(one.data)), TERMINATOR]
        left = again
    return b"".join(out)
