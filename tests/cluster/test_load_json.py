# SPDX-License-Identifier: Apache-2.0
"""JSON in a sharded cluster: documents of every type come back identical from every layout of the
text, a load that was killed is completed, and the sources can be verified afterwards."""
import datetime
import json
import signal
import uuid

import support
from support import bson

MIB = 1 << 20
HEAD = 4 + len(b"\x12_id\x00") + 8  # a document's length and its _id


def every_type(number):
    """A document with every type that a collection stores, without _id."""
    moment = datetime.datetime(2015, 12, 31, 23, 59, 59, 123000)
    return {
        "n": number, "int64": bson.int64.Int64(1 << 40), "double": 0.1 + number, "zero": -0.0,
        "infinite": float("inf"), "decimal": bson.decimal128.Decimal128("1.50E+3"),
        "text": "Zürich \u0000 \"\\ 😀\n", "true": True, "null": None,
        "oid": bson.ObjectId("5f0a00000000bcdeff000001"), "date": moment,
        "old": datetime.datetime(1931, 1, 1), "binary": b"\x00\xff\x10",
        "user": bson.binary.Binary(b"abc", 128), "before": bson.binary.Binary(b"abcd", 2),
        "uuid": bson.binary.Binary.from_uuid(uuid.UUID(int=7)),
        "regex": bson.regex.Regex("^a/b\"", "imx"), "code": bson.code.Code("return 1"),
        "scoped": bson.code.Code("f(x)", {"x": [1, {"y": moment}]}),
        "timestamp": bson.timestamp.Timestamp(4294967295, 7), "min": bson.min_key.MinKey(),
        "max": bson.max_key.MaxKey(), "list": [1, [2, {"three": 3.0}], {}, []],
        "dotted.key": {"$gt": 1}, "": {"": ""},
        "ref": bson.dbref.DBRef("c", bson.ObjectId("5f0a00000000bcdeff000002"), "d"),
    }


def texts(documents):
    """(name, text) for each layout, and each form of Extended JSON."""
    modes = bson.json_util
    forms = {"canonical": modes.CANONICAL_JSON_OPTIONS, "relaxed": modes.RELAXED_JSON_OPTIONS}
    for name, options in forms.items():
        lines = [modes.dumps(one, json_options=options) for one in documents]
        yield f"{name}-lines.json", "\n".join(lines) + "\n"
        yield f"{name}-array.json", "\ufeff[" + ",\n".join(lines) + "]\n"
        yield f"{name}-pretty.json", "".join(
            modes.dumps(one, json_options=options, indent=2) + "\n" for one in documents)
        yield f"{name}-concatenated.json", "".join(lines)


def pretty_text(blocks):
    """Documents that span lines, of very different sizes; two are longer than a block."""
    parts, size, number = [], 0, 0
    while size < blocks * MIB:
        fields = 60000 if number in (5, 90) else 50 + number % 700
        text = json.dumps({"n": number, "list": [f'{k} }}{{ "' for k in range(fields)]}, indent=1)
        parts.append(text)
        size += len(text) + 1
        number += 1
    return "\n".join(parts), number


class Json(support.ClusterCase):
    def without_ids(self, collection):
        """The stored documents without their _ids, in the order of the field n."""
        found = [raw[HEAD:] for raw in self.stored(collection) if support.key_of(raw)]
        return sorted(found, key=lambda raw: bson.decode((len(raw) + 4).to_bytes(4, "little") + raw)["n"])

    def test_every_type_comes_back_identical_from_every_layout(self):
        documents = [every_type(number) for number in range(50)]
        expected = [bson.encode(one)[4:] for one in documents]
        for number, (name, text) in enumerate(texts(documents)):
            with self.subTest(name):
                collection = f"c{number}"
                _, work = self.load(self.file(name, text), collection=collection)
                self.assertEqual(self.without_ids(collection), expected)
                self.assert_accounting(work, records=50, inserted=50)
                self.assertIs(support.run_record(work)["verification"]["ok"], True)

    def test_a_killed_load_of_documents_over_many_lines_is_completed_and_verified(self):
        text, count = pretty_text(8)
        path = self.file("pretty.json", text)
        words = self.load_words(self.scratch / "work", "-j", 2, "--batch-size", 20)
        running = self.start("shardload", *words, "--rate-limit", 800, path)
        journal = self.scratch / "work" / "journal"
        self.wait_for(lambda: self.database.t.count_documents({}) > count // 4
                      and journal.stat().st_size > 0, "documents")
        running.signal(signal.SIGKILL)
        self.assertEqual(running.wait().code, -signal.SIGKILL)
        self.clear_balancer()
        self.assertLess(self.database.t.count_documents({}), count)
        self.shardload(*words, "--resume", path)
        self.assertEqual([one["n"] for one in self.database.t.find({}, {"n": 1}).sort("n")], list(range(count)))
        largest = self.database.t.find_one({"n": 90})
        self.assertEqual(largest["list"], [f'{k} }}{{ "' for k in range(60000)])
        self.shardload("verify", "--content", *self.target(), path)
        self.database.t.delete_one({"_id": largest["_id"]})
        self.shardload("verify", "--content", *self.target(), path, code=support.EXIT_VERIFICATION)

    def test_a_document_of_nearly_16_mib(self):
        long = "x" * (16 * MIB - 100)
        path = self.file("long.json", f'{{"n":1}}\n{{"n":2,"x":"{long}"}}\n{{"n":3}}\n'
                         f'{{"n":4,"x":"{long + 100 * "y"}"}}\n{{"n":5}}\n')
        _, work = self.load(path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=5, inserted=4, rejectedByParser=1)
        self.assertEqual(len(self.database.t.find_one({"n": 2})["x"]), len(long))

    def test_invalid_lines_are_rejects_and_can_be_loaded_later(self):
        path = self.file("bad.json", '{"n":1}\n{"n":}\n{"n":3,"n":4}\n{"n":5')
        _, work = self.load(path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=4, inserted=1, rejectedByParser=3)
        self.assert_rejects(work, "bad.json", [(2, 8, None), (3, 15, None), (4, 29, None)])

    def test_text_that_ends_early_fails(self):
        for name, text in (("cut.json", '[{"n":1},\n{"n":2}'), ("open.json", '{"n":\n1}\n{"n":2')):
            self.load(self.file(name, text), code=support.EXIT_SOURCE, message="the text ends within")
