# SPDX-License-Identifier: Apache-2.0
"""Writes oplogs as mongodump --oplog does, and cases of their entries. Names of databases in entries are
DB; `at` replaces it."""
import datetime
import itertools

import bson
import dump_making as making
from bson import Binary, Code, Int64, ObjectId, Regex, Timestamp

ID_INDEX = {"v": 2, "key": {"_id": 1}, "name": "_id_"}
SECONDS = 1700000000


def written(entries, first=1):
    """Entry n has the timestamp SECONDS:n."""
    return b"".join(bson.encode({"ts": Timestamp(SECONDS, first + n), "t": Int64(1), "v": Int64(2),
                                 "wall": datetime.datetime(2024, 1, 1), **entry})
                    for n, entry in enumerate(entries))


def at(database, value):
    """The value with this database in place of DB."""
    if isinstance(value, str):
        return database + value[2:] if value.startswith("DB.") else value
    if isinstance(value, list):
        return [at(database, one) for one in value]
    if type(value) is dict:
        return {key: at(database, one) for key, one in value.items()}
    return value


def has_diff(value):
    """Has it an update that only servers since 5.0 apply?"""
    if isinstance(value, dict):
        return value.get("$v") == 2 or any(map(has_diff, value.values()))
    return isinstance(value, list) and any(map(has_diff, value))


# ---- entries ----

NO_OP = {"op": "n", "ns": "", "o": {"msg": "periodic noop"}}


def insert(document, on="DB.t", **more):
    return {"op": "i", "ns": on, "o": document, "o2": {"_id": document["_id"]}, **more}


def update(key, change, on="DB.t", **more):
    return {"op": "u", "ns": on, "o2": {"_id": key}, "o": change, **more}


def modify(key, on="DB.t", **modifiers):
    return update(key, {"$v": 1, **{"$" + name: value for name, value in modifiers.items()}}, on)


def diff(key, on="DB.t", **parts):
    return update(key, {"$v": 2, "diff": parts}, on)


def delete(key, on="DB.t"):
    return {"op": "d", "ns": on, "o": {"_id": key}}


def command(name, value, /, **fields):
    return {"op": "c", "ns": "DB.$cmd", "o": {name: value, **fields}}


def create(name, **options):
    return command("create", name, **options, idIndex=ID_INDEX)


def rename(name, to, of=None, **fields):
    """`of`: the name that the collection has in the dump."""
    return {**command("renameCollection", f"DB.{name}", to=f"DB.{to}", **fields),
            "ui": Binary(making.uuid_of(of or name), 4)}


def apply_ops(operations, **fields):
    return {**command("applyOps", operations, **fields), "ns": "admin.$cmd"}


def transaction(number, entry, first=True):
    before = (Timestamp(0, 0), -1) if first else (Timestamp(SECONDS, 1), 1)
    return {**entry, "ns": "admin.$cmd", "lsid": {"id": Binary(b"s" * 16, 4), "uid": b"u" * 32},
            "txnNumber": Int64(number), "prevOpTime": {"ts": before[0], "t": Int64(before[1])}}


def committed(number):
    return transaction(number, command("commitTransaction", 1, commitTimestamp=Timestamp(SECONDS, 2)), False)


# ---- cases: documents before in collection t, and entries ----

A = {"_id": 1, "a": 1, "b": {"c": 1, "d": [1, 2, 3]}, "e": [{"x": 1}, {"y": 2}, 3], "f": "text"}
KEYS = [{"a": 1}, "x", None, 1.5]

DOCUMENTS = {
    "insert": ([], [insert({"_id": 1, "a": 1}), insert({"_id": 2}), insert({"_id": 1, "a": 2})]),
    "insert_stored": ([{"_id": 1, "z": 1}], [insert({"_id": 1, "a": 1}), insert({"_id": 2})]),
    "delete": ([A, {"_id": 2}], [delete(1), delete(7)]),
    "insert_again": ([A], [delete(1), insert({"_id": 1, "n": 1}), modify(1, set={"m": 2})]),
    "replace": ([A], [update(1, {"_id": 1, "new": True})]),
    "replace_missing": ([], [update(1, {"_id": 1, "a": 1}), update(2, {"_id": 2}, b=True)]),
    "set": ([A], [modify(1, set={"a": 2, "b.c": {"q": 1}, "g": None, "h.i.j": 1})]),
    "unset": ([A], [modify(1, unset={"a": True, "b.c": True, "nothing": 1, "e.1": 1, "b.d.0": 1})]),
    "set_and_unset": ([A], [modify(1, set={"a": 5}, unset={"f": ""}), update(1, {"$set": {"a": 9}})]),
    "set_array": ([A], [modify(1, set={"b.d.1": "two", "b.d.6": 7, "e.0.x": 2, "e.0.z": 3, "e.7.k": 1})]),
    "set_blocked": ([A], [modify(1, set={"a.x": 1, "f.g.h": 2, "b.d.name": 3, "e.2.q": 1})]),
    "set_often": ([A], [modify(1, set={"a": n}) for n in range(50)]),
    "diff_u": ([A], [diff(1, u={"a": [1], "zz": 1})]),
    "diff_i": ([A], [diff(1, i={"n": 1, "m": {"x": 1}}), diff(1, i={"a": 7, "q": 8})]),
    "diff_d": ([A], [diff(1, d={"a": False, "nothing": False})]),
    "diff_all": ([A], [diff(1, d={"a": False}, u={"f": 1}, i={"k": 2}, sb={"u": {"c": 2}})]),
    "diff_sub": ([A], [diff(1, sb={"i": {"new": 1}, "sd": {"a": True, "u1": 20}}, sq={"u": {"x": 1}})]),
    "diff_array": ([A], [diff(1, se={"a": True, "s0": {"u": {"x": 2}}, "u2": {"three": 3}})]),
    "diff_array_grows": ([A], [diff(1, sb={"sd": {"a": True, "u3": 4, "u4": 5}}),
                               diff(1, sb={"sd": {"a": True, "u7": 6}})]),
    "diff_array_cut": ([A], [diff(1, sb={"sd": {"a": True, "l": 2, "u0": "x"}}, se={"a": True, "l": 1})]),
    "diff_array_length": ([A], [diff(1, sb={"sd": {"a": True, "l": 6, "u4": "x"}})]),
    "diff_array_gap": ([A], [diff(1, se={"a": True, "s6": {"u": {"x": 2}}})]),
    "diff_other_types": ([A], [diff(1, sa={"u": {"x": 1}}, sb={"a": True, "u0": 1}, se={"u": {"q": 1}},
                                    sf={"a": True, "l": 0})]),
    "diff_other_elements": ([A], [diff(1, se={"a": True, "s0": {"a": True, "u0": 1}, "s2": {"u": {"x": 2}}})]),
    "diff_names": ([{"_id": 1, "s": 1, "a.b": 1, "u": {"u": {"i": 1}}, "": {"x": 1}}],
                   [diff(1, u={"a.b": 2}, i={"c.d": 1}, su={"su": {"d": {"i": False}}}, s={"u": {"x": 5}})]),
    "diff_values": ([A], [diff(1, u={"a": Int64(5), "f": Timestamp(0, 0)}, i={
        "r": Regex("x", "mi"), "t": Timestamp(0, 0), "bin": Binary(b"12", 2), "code": Code("x", {"a": 1}),
        "date": datetime.datetime(2020, 1, 1), "n": None, "id": ObjectId(b"i" * 12)})]),
    "empty_timestamp": ([], [insert({"_id": 1, "t": Timestamp(0, 0)})]),
    "keys": ([{"_id": key, "v": 1} for key in KEYS],
             [modify(KEYS[0], set={"v": 2}), delete("x"), update(None, {"$set": {"v": 3}}),
              insert({"_id": 1.5, "v": 4}), insert({"_id": True})]),
    "many": ([{"_id": n, "v": 0} for n in range(1500)],
             [modify(n % 1500, set={"v": n}) for n in range(1700)] + [delete(n) for n in range(100, 300)]),
    "retryable": ([A], [{**transaction(3, modify(1, set={"a": 5})), "ns": "DB.t", "stmtId": 0}]),
    "migrated": ([A], [insert({"_id": 4}, fromMigrate=True),
                       insert({"_id": 5}, ui=Binary(making.uuid_of("t"), 4), h=Int64(3))]),
}

# ---- cases of commands: indexes of collection t, and entries ----

INDEX = {"v": 2, "key": {"a": 1}, "name": "a_1"}
COLLATION = {"locale": "de", "caseLevel": False, "caseFirst": "off", "strength": 2,
             "numericOrdering": False, "alternate": "non-ignorable", "maxVariable": "punct",
             "normalization": False, "backwards": False, "version": "57.1"}
BUILT = [{"v": 2, "key": {"c": 1}, "name": "c_1"}, {"v": 2, "key": {"d": "hashed"}, "name": "d_h"}]
BUILD = {"indexBuildUUID": Binary(b"3" * 16, 4), "indexes": BUILT}
UNIQUE = {**INDEX, "unique": True}
EXPIRING = {**INDEX, "expireAfterSeconds": 100}
LATER = {"expireAfterSeconds": Int64(10 ** 8)}


def index(name, **fields):
    return command("createIndexes", "t", v=2, key={name: 1}, name=name, **fields)


def view(match, op="i"):
    document = {"_id": "DB.v", "viewOn": "t", "pipeline": [{"$match": {"a": match}}]}
    return insert(document, "DB.system.views") if op == "i" else update("DB.v", document, "DB.system.views")


VIEWS = command("create", "system.views", idIndex=ID_INDEX)
INDEXED = [INDEX]

COMMANDS = {
    "create": ([], [create("n"), insert({"_id": 1}, "DB.n")]),
    "create_existing": (INDEXED, [create("t", capped=True, size=4096), insert({"_id": 2})]),
    "create_capped": ([], [create("n", capped=True, size=8192, max=Int64(3))] +
                      [insert({"_id": n}, "DB.n") for n in range(5)]),
    "create_collated": ([], [command("create", "n", collation=COLLATION, idIndex={**ID_INDEX, "collation": COLLATION}),
                             command("createIndexes", "n", v=2, key={"b": 1}, name="b_1"),
                             insert({"_id": "x"}, "DB.n")]),
    "create_validated": ([], [create("n", validator={"a": {"$gt": 0}}, validationLevel="moderate",
                                     validationAction="warn"), insert({"_id": 1}, "DB.n")]),
    "drop": (INDEXED, [command("drop", "t"), command("drop", "unknown")]),
    "drop_and_create": (INDEXED, [command("drop", "t"), create("t"), insert({"_id": 5})]),
    "indexes": (INDEXED, [index("b", unique=True), command("createIndexes", "t", **INDEX),
                          index("p", partialFilterExpression={"c": 1}), index("e", **LATER)]),
    "index_build": (INDEXED, [command("startIndexBuild", "t", **BUILD), command("commitIndexBuild", "t", **BUILD)]),
    "index_build_aborted": (INDEXED, [command("startIndexBuild", "t", **BUILD),
                                      command("abortIndexBuild", "t", **BUILD, cause={"ok": False})]),
    "drop_index": (INDEXED, [command("dropIndexes", "t", index="a_1"), command("dropIndexes", "t", index="unknown")]),
    "drop_unique": ([UNIQUE], [command("dropIndexes", "t", index="a_1"), insert({"_id": 2, "a": 1})]),
    "unique_moves": ([UNIQUE], [insert({"_id": 2, "a": 2}), modify(1, set={"a": 0}), modify(2, set={"a": 1}),
                                modify(1, set={"a": 2})]),
    "modify_expiry": ([EXPIRING], [command("collMod", "t", index={"name": "a_1", **LATER})]),
    "modify_by_key": ([EXPIRING], [command("collMod", "t", index={"keyPattern": {"a": 1}, **LATER})]),
    "modify_hidden": (INDEXED, [command("collMod", "t", index={"name": "a_1", "hidden": True})]),
    "modify_validator": (INDEXED, [command("collMod", "t", validator={"a": {"$gt": 5}}, validationLevel="strict",
                                           validationAction="error"), insert({"_id": 3, "a": 7})]),
    "drop_database": (INDEXED, [command("drop", "t"), command("dropDatabase", 1), create("z"),
                                insert({"_id": 1}, "DB.z")]),
    "drop_only_database": (INDEXED, [command("dropDatabase", 1)]),
    "apply_ops": (INDEXED, [apply_ops([insert({"_id": 3}), delete(1), apply_ops([insert({"_id": 4})])])]),
    "apply_ops_creates": ([], [apply_ops([create("n"), insert({"_id": 3}, "DB.n"),
                                          command("createIndexes", "n", **INDEX)])]),
    "transaction": (INDEXED, [transaction(1, apply_ops([insert({"_id": 3}), modify(1, set={"a": 5})]))]),
    "transaction_in_parts": (INDEXED, [
        transaction(2, apply_ops([insert({"_id": 3})], partialTxn=True)), insert({"_id": 4}),
        transaction(2, apply_ops([delete(4)], partialTxn=True), False),
        transaction(2, apply_ops([insert({"_id": 6})], count=Int64(3)), False)]),
    "transaction_prepared": (INDEXED, [transaction(3, apply_ops([insert({"_id": 3}), delete(1)], prepare=True)),
                                       insert({"_id": 1, "later": 1}), committed(3)]),
    "transaction_prepared_in_parts": (INDEXED, [
        transaction(4, apply_ops([insert({"_id": 3})], partialTxn=True)),
        transaction(4, apply_ops([delete(1)], prepare=True, count=Int64(2)), False), committed(4)]),
    "transaction_aborted": (INDEXED, [transaction(5, apply_ops([insert({"_id": 3})], prepare=True)),
                                      transaction(5, command("abortTransaction", 1), False)]),
    "transaction_open": (INDEXED, [transaction(6, apply_ops([insert({"_id": 3})], partialTxn=True)),
                                   insert({"_id": 4})]),
    "view": (INDEXED, [VIEWS, view(1)]),
    "view_changed": (INDEXED, [VIEWS, view(1), view(2, "u")]),
    "view_dropped": (INDEXED, [VIEWS, view(1), delete("DB.v", "DB.system.views")]),
    "other_databases": (INDEXED, [insert({"_id": 1}, "config.transactions"),
                                  insert({"_id": 1}, "config.image_collection"),
                                  {**command("create", "x"), "ns": "config.$cmd"}]),
}


def entries_of(cases, database):
    """The entries of all cases, each in a database of its own: `database`, an underscore and a number."""
    return [NO_OP, *itertools.chain.from_iterable(
        at(f"{database}_{n}", entries) for n, (_, entries) in enumerate(cases))]
