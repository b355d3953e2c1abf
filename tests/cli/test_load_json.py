# SPDX-License-Identifier: Apache-2.0
"""JSON files of every layout, plain, compressed, in archives and on standard input: the documents
that an independent reader finds, with the same _ids from every kind of source; and texts that must
not be loaded silently."""
import functools
import gzip
import itertools
import json
import lzma
import subprocess

import archive_making as making
import support
from support import bson

MIB = 1 << 20
MARK = "\ufeff"


def record(number, size):
    return {"n": number, "text": f'"}}{{][,\\ \u00fc {number}\n' + "x" * size, "list": [1.5, None, {"a": [number]}]}


def records(total):
    """Documents of 100 bytes to 3 MiB, together about `total` bytes."""
    made, size = [], 0
    while size < total:
        number = len(made)
        made.append(record(number, 3 * MIB if number % 400 == 7 else 37 * number % 9000))
        size += len(made[-1]["text"]) + 80
    return made


def layouts(documents):
    """(name, text) of each layout of the same documents."""
    lines = [json.dumps(one, ensure_ascii=False) for one in documents]
    yield "lines", "\n".join(lines) + "\n"
    yield "windows-lines", MARK + "\r\n".join(lines) + "\r\n\r\n"
    yield "array", "[" + ",".join(lines) + "]"
    yield "pretty-array", json.dumps(documents, indent=2)
    yield "pretty", "\n".join(json.dumps(one, indent=1) for one in documents)
    yield "concatenated", "".join(lines)
    half = len(lines) // 2
    yield "files-with-marks", (MARK + "{\n" + lines[0][1:] + "".join(lines[1:half]) + MARK + "\n" +
                               "\n\n".join(lines[half:]))


class Documents(support.Case):
    def assert_same(self, raw, documents, message):
        found = {}
        for one in raw:
            document = bson.decode(one)
            found[document["n"]] = (document.pop("_id"), document)
        self.assertEqual(len(raw), len(documents), message)
        for number, expected in enumerate(documents):
            self.assertTrue(found[number][1] == expected, f"{message}: document {number} differs")
        return [found[number][0] for number in range(len(documents))]

    def test_every_layout_from_every_source(self):
        documents = records(7 * MIB)
        for name, text in layouts(documents):
            data = text.encode()
            with self.subTest(name):
                raw, work = self.dump("-j", 4, self.file(f"{name}.json", data))
                self.assert_accounting(work, records=len(documents), rejectedByParser=0)
                ids = self.assert_same(raw, documents, "plain")
                for number in (0, 8, len(documents) - 1): # the _id is the position
                    self.assertEqual(data[offset_of(ids[number])], ord("{"))
                raw, _ = self.dump("-j", 1, self.file(f"{name}.json.gz", gzip.compress(data, 1)))
                self.assertEqual(self.assert_same(raw, documents, "gzip"), ids)
                raw, _ = self.dump("-j", 3, "-", stdin=data)
                self.assertEqual(self.assert_same(raw, documents, "pipe"), ids)

    def test_an_archive_of_every_layout(self):
        documents = records(2 * MIB)
        packed = making.tar([(f"{name}.json", text.replace('"n": ', f'"part": {number}, "n": '))
                             for number, (name, text) in enumerate(layouts(documents))])
        raw, work = self.dump("-j", 3, self.file("all.tar.xz", lzma.compress(packed, preset=0)))
        parts = sum(1 for _ in layouts(documents))
        self.assert_accounting(work, records=parts * len(documents), rejectedByParser=0)
        self.assertEqual(len({support.key_of(one) for one in raw}), parts * len(documents))
        kept = {(one["part"], one["n"]): one for one in map(bson.decode, raw)}
        for number, expected in enumerate(documents):
            for part in range(parts):
                found = kept[part, number]
                del found["_id"], found["part"]
                self.assertTrue(found == expected, f"document {number} of part {part} differs")

    def test_documents_with_an_id_keep_it_as_first_field(self):
        ids = [1, "x", None, 2.5, True, {"a": 1}, bson.ObjectId("5f0a00000000bcdeff000001"),
               bson.int64.Int64(5), b"\x01"]
        expected = [bson.encode({"_id": one, "a": number, "b": {"_id": 7}}) for number, one in enumerate(ids)]
        dumps = functools.partial(bson.json_util.dumps, json_options=bson.json_util.CANONICAL_JSON_OPTIONS)
        text = "\n".join(f'{{"a":{number},"_id":{dumps(one)},"b":{{"_id":7}}}}' if number % 2 else
                         f'{{"_id":{dumps(one)},"a":{number},"b":{{"_id":7}}}}'
                         for number, one in enumerate(ids))
        raw, _ = self.dump("-j", 1, self.file("ids.json", text))
        self.assertEqual(raw, expected)


def offset_of(key):
    """The position in the source of the document with this _id (src/util/document_id.h)."""
    stripe = int(f"{key >> 32 & 255:08b}"[::-1], 2)
    return (((key >> 20 & 0xFFF) << 8 | stripe) << 20) | (key & 0xFFFFF)


class Invalid(support.Case):
    def fails(self, text, *messages):
        path = self.file("bad.json", text)
        outcome, _ = self.parse(path, code=support.EXIT_SOURCE)
        for message in messages:
            self.assertIn(message, outcome.err)

    def test_a_text_that_ends_early_or_goes_on_is_an_error(self):
        one = '{"a":\n1}'
        self.fails(f"[{one},{one}", "bad.json, byte 18: ", "its ] is missing")
        self.fails(f"[{one},{one},", "its ] is missing")
        self.fails(f"[{one},]", "bad.json, byte 10: ", "after a comma of the array")
        self.fails(f"[{one}] {one}", "text after the ]")
        self.fails(f"[{one},5]", "a document is expected")
        self.fails(f"{one}{one[:-1]}", "the text ends within a document")
        self.fails(f"{one}\n{{\"b\":\"x\"y\"}}\n{one}")
        self.fails(f"{one}\n{{\"b\":}}\n{one}", "bad.json, line 3, byte 9: ",
                   "a value is expected", "the load ends here")
        self.fails(one * 3 + "x" * 100, "text between documents")

    def test_every_line_invalid_fails(self):
        self.fails('{"a":1\n{"b":1\n{"c":1\n')

    def test_text_in_another_encoding_is_converted_first(self):
        """--encoding was accepted, without effect, and advised."""
        path = self.file("l.json", b'{"b": "\xfc"}\n' * 9)
        outcome, _ = self.parse("--encoding", "utf8", path, code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, "not UTF-8: .*iconv -f ENCODING -t UTF-8.*; nothing.*; check --format\n")
        outcome, _ = self.parse("--encoding", "cp1252", path, code=support.EXIT_USAGE)
        self.assertIn("otherwise convert it: iconv -f cp1252 -t UTF-8 FILE |", outcome.err)

    def test_a_compressed_file_that_is_cut_is_an_error(self):
        data = gzip.compress(json.dumps([{"a": n} for n in range(100000)], indent=1).encode())
        self.parse(self.file("cut.json.gz", data[:len(data) // 2]), code=support.EXIT_SOURCE)

    def test_rejects_have_their_lines(self):
        text = ('{"a":\n1}\n' * 30000 + '{"a":1,\n"a":2}{"b":1}\n\n{"c":{"$oid":\n"5"}}' '{"a":\n1}')
        _, work = self.dump("-j", 2, self.file("lines.json", text * 5), code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=5 * 30004, rejectedByParser=10)
        part = len(text)
        lines = text.count("\n")
        first, second = text.index('{"a":1,\n"a"'), text.index('{"c"')
        self.assert_rejects(work, "lines.json", [
            (at * lines + text[:where].count("\n") + 1, at * part + where, None)
            for at in range(5) for where in (first, second)])

    def test_the_rejected_text_can_be_loaded_when_it_is_corrected(self):
        path = self.file("some.json", '{\n"a":1}\n{"b":\n1,"b":2}\n{"c":{"$date":\n"no"}}')
        _, work = self.dump(path, code=support.EXIT_REJECTS)
        kept = b"".join(data for _, data in support.every_text_in(work / "rejected"))
        raw, _ = self.dump(self.file("again.json", kept.replace(b'1,"b":2', b'1,"d":2') .replace(b'"no"', b"5")))
        self.assertEqual(len(raw), 2, kept)

    def test_the_estimates_of_a_file_with_a_long_line(self):
        path = self.file("long.json", '{"a":"' + "x" * 4_000_000 + '"}\n' + '{"a":1}\n' * 1_000_000)
        outcome = self.shardload("inspect", path)
        self.assertRegex(outcome.out, r"in all about [0-9,]+ documents, 12\.0 MB of text")

    def test_declared_types_of_fields_that_no_document_has(self):
        """A typing mistake in --types left the dates texts, without a word."""
        path = self.file("t.json", '{"a":{"on":"2024-01-03"},"items":[{"n":"7"}]}\n{"b":"x"}\n')
        for types, said in (("created=date", True), ("A.on=date", True), ("on=date", True), ("b=int", False),
                            ("a.on=date,items.n=int", False)):
            outcome, _ = self.parse("--types", types, path, code=None)
            shown = 'none of the [12] documents sampled has a field "' + types.split("=")[0] + '"'
            (self.assertRegex if said else self.assertNotRegex)(outcome.err, shown)
        self.assertIn("similar names: a.on", self.parse("--types", "on=date", path)[0].err)

    def test_a_document_that_holds_the_records_is_announced(self):
        items = [{"id": (1 << 60) + n} for n in range(10)]
        for indent, (document, advice) in itertools.product((None, 1), (
                ({"total": 10, "items": items}, "an array of 10 documents; to store each one"),
                ({f"k{n}": one for n, one in enumerate(items)}, "consists of 10 documents; to store each one"),
                ({"items": items[1:]}, ""), ({"items": items, "note": "x" * 999}, ""))):
            text = json.dumps(document, indent=indent)
            outcome, _ = self.parse(self.file("one.json", text))
            self.assertIn(advice, outcome.err)
            self.assertEqual("to store each one" in outcome.err, bool(advice), outcome.text)
            if advice:
                command = outcome.err.partition("load the output of: ")[2].splitlines()[0].replace("FILE", "one.json")
                printed = subprocess.run(command, shell=True, cwd=self.scratch, check=True, stdout=subprocess.PIPE)
                raw, _ = self.dump("-", stdin=printed.stdout)
                self.assertEqual([bson.decode(one)["id"] for one in raw], [one["id"] for one in items])
            outcome, _ = self.parse(self.file("one.json", text + "\n" + text))
            self.assertNotIn("to store each one", outcome.text)

    def test_the_reasons_why_no_format_fits_are_lines(self):
        self.parse(self.file("empty.json", ""), code=support.EXIT_SOURCE, message="no document\nNor is it one of")

    def test_other_text_that_begins_with_a_bracket_is_not_json(self):
        for text in ("{id},name\n1,2\n", "[id],name\n1,2\n", "[1,2]\n[3,4]\n"):
            path = self.file("other.json", text)
            outcome = self.shardload("inspect", path, code=None)
            self.assertIn("this is not JSON: it begins with", outcome.err)
