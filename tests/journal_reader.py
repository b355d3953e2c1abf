# SPDX-License-Identifier: Apache-2.0
"""An independent reader and writer of the journal of a load. The fields of an entry are those of the
table in docs/internals/delivery.md, so the tests that read a journal also check that page."""
import collections
import re
import struct
import zlib

import support
from support import bson

PAGE = support.TREE / "docs" / "internals" / "delivery.md"
FIELDS = re.findall(r"^\| \d+ \| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
Entry = collections.namedtuple("Entry", FIELDS)
DOCUMENT, ENTRY, FORMAT = 1, 2, 3
MAGIC = b"shardloadjournal"
VERSION = 2
RECORDING = support.TREE / "tests" / "data" / "journal"


def record(kind, payload):
    head = struct.pack("<2I", len(payload), kind)
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


def format_record(version=VERSION):
    return record(FORMAT, MAGIC + struct.pack("<I", version))


def encode(documents, entries):
    """A journal of the documents `begun`, `target` and perhaps `finished`, and of these entries."""
    def encoded(*names):
        return b"".join(record(DOCUMENT, bson.encode(documents[name]))
                        for name in names if name in documents)
    blocks = b"".join(record(ENTRY, struct.pack(f"<{len(FIELDS)}Q", *entry)) for entry in entries)
    return format_record() + encoded("begun", "target") + blocks + encoded("finished")


class Journal:
    """The documents by their first field, and the entries, up to the first invalid record. `end`: the
    position after the last valid record."""

    def __init__(self, data):
        self.documents, self.entries, self.end = {}, [], 0
        if not data.startswith(format_record()):
            return
        at = len(format_record())
        while at + 12 <= len(data):
            self.end = at
            length, kind, check = struct.unpack_from("<3I", data, at)
            payload = data[at + 12:at + 12 + length]
            if len(payload) < length or zlib.crc32(payload, zlib.crc32(data[at:at + 8])) != check:
                return
            if kind == DOCUMENT:
                document = bson.decode(payload)
                self.documents[next(iter(document))] = document
            else:
                fields = struct.unpack(f"<{length // 8}Q", payload) + (0,) * len(FIELDS)
                self.entries.append(Entry(*fields[:len(FIELDS)]))
            at += 12 + length
        self.end = at
