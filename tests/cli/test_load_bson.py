# SPDX-License-Identifier: Apache-2.0
"""The format bson without a server: what --sink bson:FILE writes is read back, from every kind of
source, and damaged files lose no other document."""
import random

import bson

import archive_making as making
import support


def documents(count, seed=1):
    draw = random.Random(seed)
    made = []
    for number in range(count):
        one = {"n": number, "text": "x" * draw.randrange(40), "in": {"a": [{"b": 1}, {}]}}
        if number % 3:
            one["_id"] = draw.choice([bson.ObjectId(), f"id {number}", number, {"k": number}])
        made.append(one)
    return made


def encoded(made):
    return b"".join(bson.encode(one) for one in made)


class Case(support.Case):
    def load(self, *words, code=0, stdin=b""):
        """Loads into a BSON file. Returns the outcome, the work directory, and the documents by
        their field n."""
        number = next(self._counter)
        out = self.scratch / f"out-{number}.bson"
        outcome, work = self.parse("--sink", f"bson:{out}", *words, code=code, stdin=stdin)
        found = bson.decode_all(out.read_bytes()) if out.exists() else []
        return outcome, work, sorted(found, key=lambda one: one["n"])


class Reading(Case):
    def check(self, made, found):
        self.assertEqual(len(found), len(made))
        for one, other in zip(made, found):
            self.assertEqual(next(iter(other)), "_id")
            self.assertEqual({key: other[key] for key in one}, one)

    def test_every_kind_of_source_gives_the_same_documents(self):
        made = documents(40000)
        data = encoded(made)
        self.assertGreater(len(data), 3 << 20)
        tar = making.tar([("a.bson", encoded(made[:15000])), ("b.bson", encoded(made[15000:]))])
        sources = [self.file("plain.bson", data), self.file("no-name", data),
                   self.zipped("packed.bson.gz", data), self.file("dump.tar", tar)]
        first = None
        for source in sources:
            for threads in (1, 3):
                with self.subTest(source.name, threads=threads):
                    _, work, found = self.load("-j", threads, source)
                    self.check(made, found)
                    self.assert_accounting(work, inserted=len(made))
                    if source.name != "dump.tar":  # positions in the stream are the same otherwise
                        self.assertEqual(found, first or found)
                        first = found
        _, _, found = self.load("-", stdin=data)
        self.assertEqual(found, first)

    def test_a_written_file_is_read_back_unchanged(self):
        _, work, _ = self.load("-j", 1, self.file("a.bson", encoded(documents(3000))))
        written = next(self.scratch.glob("out-*.bson"))
        before = written.read_bytes()
        _, _, _ = self.load("-j", 1, written)
        outs = sorted(self.scratch.glob("out-*.bson"))
        self.assertEqual([one.read_bytes() == before for one in outs], [True, True])

    def test_an_empty_dump_has_no_documents(self):
        outcome, work, found = self.load(self.file("empty.bson", b""))
        self.assertEqual(found, [])
        self.assertIn("no records", outcome.err)
        self.assert_accounting(work, inserted=0)

    def test_a_large_document(self):
        made = [{"n": 0, "_id": 0, "big": "x" * ((16 << 20) - 60)}, {"n": 1, "_id": 1}]
        _, _, found = self.load(self.file("a.bson", encoded(made)))
        self.check(made, found)

    def test_an_archive_of_mongodump_is_refused_with_advice(self):
        path = self.file("dump.archive", b"\x6d\xe2\x99\x81" + encoded(documents(2)))
        outcome, _, _ = self.load(path, code=support.EXIT_SOURCE)
        self.assertIn("mongodump archive", outcome.err)

    def test_a_folder_of_documents_and_metadata_is_not_mixed(self):
        self.file("dump/c.bson", encoded(documents(5)))
        self.file("dump/c.metadata.json", '{"options": {}, "indexes": []}')
        outcome, _, _ = self.load("dump", code=support.EXIT_SOURCE)
        self.assertIn("c.metadata.json", outcome.err)


class Damage(Case):
    def rejected(self, work):
        return [path.read_bytes() for path in sorted((work / "rejected").glob("*"))]

    def test_damaged_bytes_are_reported_and_kept(self):
        made = documents(200)
        parts = [bson.encode(one) for one in made]
        parts[50] = b"\xff" + parts[50][1:]         # no document begins where the length points to
        broken = bytearray(parts[120])
        broken[4] = 0x40                            # an unknown type
        parts[120] = bytes(broken)
        source = self.file("a.bson", b"".join(parts))
        outcome, work, found = self.load(source, code=support.EXIT_REJECTS)
        self.assertEqual([one["n"] for one in found],
                         [n for n in range(200) if n not in (50, 120)])
        self.assert_accounting(work, inserted=198, rejectedByParser=2)
        self.assertEqual(self.rejected(work), [parts[50] + parts[120]])
        rows = support.reject_rows(work)
        self.assertEqual([int(row["offset"]) for row in rows],
                         [len(b"".join(parts[:n])) for n in (50, 120)])
        self.assertEqual([row["line"] for row in rows], ["", ""])
        self.assertIn("damaged", rows[0]["reason"])

    def test_a_truncated_dump_ends_with_a_reject(self):
        data = encoded(documents(20))
        for cut in (1, 3, 20):
            with self.subTest(cut=cut):
                source = self.file("a.bson", data[:-cut])
                outcome, work, found = self.load(source, code=support.EXIT_REJECTS)
                self.assertEqual(len(found), 19)
                self.assertIn("truncated", outcome.err)

    def test_a_hole_of_zeros_is_rejected_in_pieces(self):
        data = encoded(documents(20))
        source = self.file("a.bson", data + bytes(3 << 20) + data)
        _, work, found = self.load(source, code=support.EXIT_REJECTS)
        self.assertEqual(len(found), 40)
        self.assertEqual(b"".join(self.rejected(work)), bytes(3 << 20))
