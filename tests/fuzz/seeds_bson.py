# SPDX-License-Identifier: Apache-2.0
"""Seeds of the fuzz targets that read BSON: documents from servers, journals and clients."""
import struct
import zlib

MIN, MAX, OID = object(), object(), object()


class Timestamp(int):
    """Seconds of a BSON timestamp."""


class Date(int):
    """Milliseconds since 1970."""


def element(name, value):
    """One BSON element. Bytes become a UUID; integers become int32 if they fit, else int64."""
    key = name.encode() + b"\0"
    if value is MIN or value is MAX:
        return (b"\xff" if value is MIN else b"\x7f") + key
    if value is OID:
        return b"\x07" + key + bytes(range(12))
    if value is None:
        return b"\x0a" + key
    if isinstance(value, bool):
        return b"\x08" + key + bytes([value])
    if isinstance(value, Timestamp):
        return b"\x11" + key + struct.pack("<II", 1, value)
    if isinstance(value, Date):
        return b"\x09" + key + struct.pack("<q", value)
    if isinstance(value, int):
        small = -2**31 <= value < 2**31
        return (b"\x10" if small else b"\x12") + key + struct.pack("<i" if small else "<q", value)
    if isinstance(value, float):
        return b"\x01" + key + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"\x02" + key + struct.pack("<i", len(text)) + text
    if isinstance(value, bytes):
        return b"\x05" + key + struct.pack("<i", len(value)) + b"\x04" + value
    if isinstance(value, dict):
        return b"\x03" + key + bson(value)
    return b"\x04" + key + array(value)


def bson(document):
    body = b"".join(element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def array(values):
    return bson({str(index): value for index, value in enumerate(values)})


def fuzz_input(flags, *documents):
    """An input as tests/fuzz/documents.h reads it: a byte of flags, then documents."""
    return bytes([flags]) + b"".join(array(one) if isinstance(one, list) else bson(one) for one in documents)


def batch(*documents, cursor=0):
    return {"cursor": {"firstBatch": list(documents), "id": cursor, "ns": "d.c"}, "ok": 1.0}


def nested(depth, name, *outer_names):
    """`depth` nested documents, each the field `name` of the next outer one, and around them a
    document for each of the `outer_names`."""
    key = b"\x03" + name.encode() + b"\0"
    sizes = (5 + (depth - level) * (len(key) + 5) for level in range(depth))
    document = (b"".join(struct.pack("<i", size) + key for size in sizes) + struct.pack("<i", 5) +
                b"\0" * (depth + 1))
    for outer in outer_names:
        body = b"\x03" + outer.encode() + b"\0" + document
        document = struct.pack("<i", len(body) + 5) + body + b"\0"
    return document


# ---- dumps: two bytes that select block and reading sizes, then documents ----

SCATTERED = [{"a": 1, "_id": "x", "in": {"_id": 2, "b": [True, None, 1.5]}},
             {"_id": OID, "when": Date(5), "many": [{"x": 1}, {}], "last": {"y": 2**40}},
             {"none": None, "min": MIN, "max": MAX, "t": Timestamp(0)},
             {"_id": {"k": 1, "l": [1]}, "text": "Gr\u00fc\u00dfe \u20ac" * 9}, {}]
DUMP = b"".join(bson(one) for one in SCATTERED)
DUMPS = [b"\0\0" + DUMP, b"\2\5" + DUMP[:90] + DUMP[91:], b"\1\x40" + DUMP[:-30],
         b"\0\7" + DUMP[:60] + bytes(40) + DUMP[60:], b"\0\3" + nested(102, "a")]

END = b"\xff" * 4
NAMED = {"db": "d", "collection": "c", "metadata": "{}", "size": 9, "type": "collection"}
EMPTY = bson({**NAMED, "EOF": True, "CRC": 0}).replace(b"\x10CRC" + bytes(5), b"\x12CRC" + bytes(9))
EMPTY = struct.pack("<i", len(EMPTY)) + EMPTY[4:]
ARCHIVE = (b"\x6d\xe2\x99\x81" + bson({"version": "0.1", "concurrent_collections": 4}) +
            bson(NAMED) + END + bson({"db": "d", "collection": "c", "EOF": False, "CRC": 0}) + DUMP +
            END)
ARCHIVES = [b"\0" + ARCHIVE, b"\x40" + ARCHIVE[:-70], b"\5" + ARCHIVE[:150] + END + EMPTY + END]

# ---- the registry ----

REGISTERED = [{"_id": "a", "number": 1, "state": "loaded", "documents": 5,
               "loadedAt": Date(1600000000000), "name": "a.txt", "size": 99,
               "parts": {"3": {"1": 2, "2": 3, "3": None}},
               "layout": {"shards": 2, "shardNames": 2**40, "pieces": 2, "leading": 1}},
              {"_id": "b", "number": 8388607, "state": "started", "parts": {}},
              {"_id": "counter", "last": 2}]

# ---- chunks ----

SHARDS = [{"_id": "s0", "host": "s0/127.0.0.1:1,[::1]:2"}, {"_id": "s1", "host": "h:1"}]
UUID = bytes(range(16))


def collection(key, **more):
    return {"_id": "d.c", "uuid": UUID, "key": key, "timestamp": Timestamp(5), "lastmodEpoch": OID, **more}


def chunks(*bounds):
    return [{"min": low, "max": high, "shard": f"s{index % 2}"}
            for index, (low, high) in enumerate(zip(bounds, bounds[1:]))]


def by_id(*ids):
    return chunks({"_id": MIN}, *({"_id": one} for one in ids), {"_id": MAX})


IDS = struct.pack("<qqq", 0, 1 << 40, -1)
COMPOUND = chunks({"st": MIN, "ts": MIN}, {"st": 5, "ts": Date(7)}, {"st": 2.5e9, "ts": "x"}, {"st": MAX, "ts": MAX})
ROUTED = [{"_id": 1, "st": 5, "ts": Date(8)}, {"_id": 2, "st": "029070", "a": {"b": 1}}]

# ---- statistics, plans, answers ----

ROWS = batch({"shard": "s1", "documents": 5, "data": 500, "storage": 4096, "index": 8192},
             {"shard": "s0", "documents": 2**33, "data": 1.5, "storage": -1})
STATUS = {"storageEngine": {"name": "wiredTiger"}, "wiredTiger": {"cache": {"maximum bytes configured": 2**31}}}
REFUSED = (b"not authorized on d to execute command { insert: \"c\", ordered: false, " b"$db: \"d\" }")
PLAN = {"stages": [{"$cursor": {"queryPlanner": {"winningPlan": {
    "stage": "FETCH", "inputStage": {"stage": "IXSCAN", "indexName": "t_1"}}}}},
    {"$group": {"_id": 1}}], "ok": 1.0}
SPLIT = {"splitPipeline": {"shardsPart": []},
         "shards": {"s0": {"queryPlanner": {"winningPlan": {"queryPlan": {
             "stage": "OR", "inputStages": [{"stage": "IXSCAN", "indexName": "x"}]}}}},
             "s1": {"queryPlanner": {}}}}
ANSWER = [{"_id": {"m": "FORD", "y": 2015}, "n": 12, "share": 0.25, "list": [1, None, {"a": 2}]},
          {"_id": None, "n": 2**40, "at": Date(0)}]
OTHER = [{"_id": {"m": "FORD", "y": 2015.0}, "n": 13, "list": [1, 2]}, {"_id": "x\x1b[2Jy"}]

# ---- comparison: the first expected id, the number of documents, the steps between their ids ----

EXPECTED = b"\x05\x03\x01\x02\x03"
FOUND = [{"_id": 5, "m": 1, "s": "text", "w": {"t": 0.1}}, {"_id": 7.0, "m": 2, "x": True},
         {"_id": "other"}, {"_id": 10, "w": {"t": 0.3}, "s": "text", "m": 3}]

# ---- a message from a server: the reply to request 1 ----


def reply(document):
    """`document`: a mapping, or the bytes of one."""
    encoded = document if isinstance(document, bytes) else bson(document)
    body = struct.pack("<IB", 0, 0) + encoded
    return struct.pack("<iiii", 16 + len(body), 99, 1, 2013) + body


def compressed(compressor):
    """A reply that is compressed with none, snappy (a literal, a copy), zlib or zstd (a raw block)."""
    plain = reply({"ok": 1.0, "a": "aaaaaaaaaaaaaaaa"})[16:]
    at = plain.index(b"aaaaaaaaaaaaaaaa") + 1
    end = plain[at + 15:]
    size = len(plain)
    data = [plain,
            bytes([size, (at - 1) << 2]) + plain[:at] + bytes([14 << 2 | 2, 1, 0, (len(end) - 1) << 2])
            + end,
            zlib.compress(plain),
            b"\x28\xb5\x2f\xfd\x20" + bytes([size]) + struct.pack("<I", size << 3 | 1)[:3] + plain]
    return struct.pack("<iiiiiiB", 25 + len(data[compressor]), 99, 1, 2012, 2013, size, compressor) + data[compressor]


# ---- a journal: the kinds of records that `compose` in fuzz_resume.c distinguishes ----

BLOCKS = b"".join(bytes([2, source, sequence, 0, 9, 8, 1, 2]) for source, sequence in
                  [(0, 0), (0, 1), (1, 0), (0, 1)])
CHANGED = {"sources": [{"path": "source 0", "fingerprint": "print 0", "storedBytes": 5,
                        "leftOut": False}, 7, {"fingerprint": "pipe "}],
           "options": {"db": "other"}}

# ---- commands to the router, and the replies of servers ----

OK = {"ok": 1.0}
FOUND_COLLECTION = batch(collection({"_id": 1}))
OWNERS = batch({"_id": "s0", "version": Timestamp(3), "chunks": 2},
               {"_id": "s1", "version": Timestamp(4), "chunks": 1})
FOUND_DATABASE = batch({"_id": "d", "primary": "s1", "version": {"uuid": UUID, "lastMod": 1}})
CHUNK = batch({"min": {"_id": MIN}, "max": {"_id": 9}, "shard": "s1"})
STALE = {"ok": 0.0, "code": 13388, "errmsg": "stale"}

OLD = {"_id": 1, "a": 1, "b": {"c": 1, "d": [1, 2, 3]}, "e": [{"x": 1}, {"y": 2}, 3], "f": "text"}
UPDATES = [{"_id": 1, "new": True}, {"$v": 1, "$set": {"a": 2, "b.c": {"q": 1}, "b.d.5": 1, "h.i.j": 1}},
           {"$set": {"e.0.x": 2}, "$unset": {"f": True, "e.1": 1}},
           {"$v": 2, "diff": {"d": {"a": False}, "u": {"f": 1}, "i": {"k": 2}, "sb": {"u": {"c": 2}}}},
           {"$v": 2, "diff": {"sb": {"sd": {"a": True, "l": 6, "u4": "x"}},
                              "se": {"a": True, "s0": {"u": {"x": 2}}}}}]

SEEDS = {
    "fuzz_registry": [fuzz_input(2, batch(*REGISTERED), REGISTERED),
                      fuzz_input(0, batch({"_id": "d", "number": 0}), []),
                      fuzz_input(1, batch(*REGISTERED[:2]))],
    "fuzz_chunks": [
        fuzz_input(0, SHARDS, collection({"_id": 1}), by_id(0, 1 << 40)) + IDS,
        fuzz_input(0, SHARDS, collection({"_id": 1}), by_id(-2.5, 7, 2**63 - 1)) + IDS,
        fuzz_input(0, SHARDS, collection({"st": 1, "ts": 1}), COMPOUND, *ROUTED),
        fuzz_input(0, SHARDS, collection({"st": "hashed"}),
              chunks({"st": MIN}, {"st": -2**62}, {"st": 2**62}, {"st": MAX}), *ROUTED),
        fuzz_input(1, SHARDS, collection({"_id": 1}, dropped=True), by_id()),
    ],
    "fuzz_statistics": [fuzz_input(0, ROWS, STATUS) + REFUSED,
                        fuzz_input(1, batch({"documents": "x"}), {}) + b"requires authentication"],
    "fuzz_explain": [fuzz_input(0, PLAN), fuzz_input(0, SPLIT), fuzz_input(1, {"shards": {}}),
                     b"\0" + nested(9, "inputStage", "winningPlan")],
    "fuzz_answer": [fuzz_input(0, ANSWER, ANSWER), fuzz_input(0, ANSWER, OTHER), fuzz_input(1, OTHER, [])],
    "fuzz_compare": [b"\0" + EXPECTED + b"".join(map(bson, FOUND)),
                     b"\2" + EXPECTED + b"\1\0\1" + bson(FOUND[1]), b"\4" + EXPECTED],
    "fuzz_oplog": [fuzz_input(0, OLD, *UPDATES), fuzz_input(0, UPDATES[0], OLD, *UPDATES)],
    "fuzz_message": [reply({"ok": 1.0}), reply(batch(*ANSWER)), *map(compressed, range(4)), reply(
        {"ok": 0.0, "code": 50, "writeErrors": [{"index": 0, "code": 9, "errmsg": "x"}],
         "writeConcernError": {"code": 64, "errmsg": "y"}, "errorLabels": ["z"]}),
        reply({"maxWireVersion": 17, "maxBsonObjectSize": 1 << 24, "maxWriteBatchSize": 100000,
               "hosts": ["a:1", "[::1]:2"], "setName": "rs0", "ok": 1.0,
               "speculativeAuthenticate": {"payload": b"r=a,s=b,i=15000", "conversationId": 1}})],
    "fuzz_resume": [b"\0\0\1" + BLOCKS, b"\4\0\1" + BLOCKS,
                    b"\0\3" + bson(CHANGED) + b"\1" + BLOCKS,
                    b"\0\0\1" + BLOCKS + b"\4" + bson({"finished": Date(1), "rejects": 2}),
                    b"\0\0\4" + bson({"target": "x", "numbers": [1, 2]}) + b"\5" + bytes(160)],
    "fuzz_router": [
        fuzz_input(0, {"insert": "c", "documents": [{"_id": 1}], "lsid": {"id": UUID}, "txnNumber": 1},
              OK),
        fuzz_input(0, {"count": "c", "query": {"a": 1}, "limit": -3}, batch({"_id": None, "n": 3})),
        fuzz_input(0, {"distinct": "c", "key": "a.b"}, batch({"values": [1, 2]})),
        fuzz_input(0, {"distinct": "c", "key": "[a"}, OK), fuzz_input(0, {"distinct": "c", "key": "}"}, OK),
        fuzz_input(0, {"explain": {"find": "c", "filter": {"a": 1}, "limit": 5}}, FOUND_COLLECTION,
              OWNERS, PLAN),
        fuzz_input(0, {"findAndModify": "c", "query": {"_id": 1}, "update": {}}, FOUND_COLLECTION,
              OWNERS, {"shards": {"s0": {}}, "ok": 1.0}, STALE, OK, FOUND_COLLECTION, OWNERS,
              {"shards": {"s1": {}}, "ok": 1.0}, {"value": None, "ok": 1.0}),
        fuzz_input(0, {"split": "d.c", "middle": {"_id": 5}, "$db": "admin"}, FOUND_COLLECTION, OWNERS,
              CHUNK, OK),
        fuzz_input(0, {"split": "d.c", "find": {"_id": 5}}, FOUND_COLLECTION, OWNERS, CHUNK,
              {"splitKeys": [{"_id": 3}], "ok": 1.0}, OK),
        fuzz_input(0, {"moveChunk": "d.c", "bounds": [{"_id": MIN}, {"_id": 9}], "to": "s0"},
              FOUND_COLLECTION, OWNERS, CHUNK, OK),
        fuzz_input(0, {"moveRange": "d.c", "min": {"_id": 3}, "toShard": "s1"}, FOUND_COLLECTION,
              OWNERS, OK),
        fuzz_input(0, {"shardCollection": "d.c", "key": {"_id": "hashed"}}, FOUND_DATABASE, OK),
        fuzz_input(0, {"createIndexes": "c", "indexes": []}, FOUND_COLLECTION, OWNERS, OK, STALE),
        fuzz_input(0, {"listIndexes": "c"}, FOUND_COLLECTION, OWNERS, OK),
        fuzz_input(0, {"collStats": "c", "scale": 1024}, FOUND_COLLECTION, OWNERS,
              {"count": 5, "size": 2**40, "nindexes": 2, "ok": 1.0}, {"count": 2, "ok": 1.0}),
        fuzz_input(0, {"dbStats": 1}, {"objects": 5, "dataSize": 9, "ok": 1.0}, OK),
        fuzz_input(0, {"listDatabases": 1}, {"databases": [{"name": "admin", "sizeOnDisk": 3}],
                                        "ok": 1.0},
              {"databases": [{"name": "d", "sizeOnDisk": 3}], "ok": 1.0}, OK),
        fuzz_input(0, {"drop": "c"}, FOUND_DATABASE, OK),
        fuzz_input(0, {"dropDatabase": 1}, FOUND_DATABASE, OK),
        fuzz_input(0, {"renameCollection": "d.c", "to": "d.e"}, FOUND_DATABASE, OK),
        fuzz_input(0, {"balancerStatus": 1}, {"mode": "full", "ok": 1.0}),
        fuzz_input(0, {"listCommands": 1}), fuzz_input(0, {"hello": 1, "helloOk": True}),
        fuzz_input(4, {"find": "c", "readConcern": {"level": "majority", "afterClusterTime": 1}},
              batch({"_id": 1}, cursor=7), {"getMore": 2**40, "collection": "c"}, OK,
              {"killCursors": "c", "cursors": [7]}, OK),
    ],
}

# ---- long inputs ----

DEEP = 100000  # recursion this deep overflows the stack

LONG_SEEDS = {
    "fuzz_registry": [fuzz_input(0, batch(*({"_id": f"f{n}", "number": n + 1, "state": "loaded"}
                                       for n in range(20000))))],
    "fuzz_chunks": [fuzz_input(0, SHARDS, collection({"_id": 1}),
                          by_id(*(n << 20 for n in range(20000)))) + IDS],
    "fuzz_statistics": [fuzz_input(0, batch(*({"shard": f"s{n}", "documents": n, "data": 9}
                                         for n in range(400))), STATUS),
                        fuzz_input(0, batch(*({},) * 60000), STATUS)],
    "fuzz_explain": [fuzz_input(0, {"shards": {f"s{n}": PLAN for n in range(2000)}}),
                     b"\0" + nested(DEEP, "inputStage", "winningPlan"),
                     b"\0" + nested(DEEP, "a")],
    "fuzz_answer": [fuzz_input(0, ANSWER * 1000, ANSWER * 999 + OTHER),
                    b"\0" + nested(DEEP, "a", "0") * 2, b"\0" + nested(DEEP, "", "0") * 2],
    "fuzz_compare": [b"\0" + EXPECTED + b"".join(map(bson, FOUND)) * 400,
                     b"\0" + EXPECTED + bson({"_id": 7, "t": "x" * (3 << 20)})],
    "fuzz_resume": [b"\0\0\1" + BLOCKS * 90,
                    b"\0\3" + bson({"sources": [{"path": "x" * (1 << 20)}]}) + b"\1" + BLOCKS,
                    b"\0\4" + nested(DEEP, "a", "begun")],
}

