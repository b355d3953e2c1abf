# SPDX-License-Identifier: Apache-2.0
"""Zip archives packed with Deflate64, as Windows writes them for large files: read from files and
pipes; damage never changes a record without an error."""
import random
import shutil
import stat
import subprocess
import unittest
import zipfile

import deflate64_making
import support
from deflate64_making import balanced, skewed

SEVEN_ZIP = shutil.which("7zz") or shutil.which("7z")


def table(rows, seed=1):
    draw = random.Random(seed)
    return ("key,text\n" + "".join(f"k{i},{draw.randbytes(draw.randrange(30)).hex()}\n" for i in range(rows))).encode()


def random_symbols(draw, before, count):
    """Literals and matches after `before` bytes."""
    symbols, known = [], before
    for _ in range(count):
        if known == 0 or draw.random() < 0.5:
            symbols.append(draw.choice(b"abc,\n\xc3\xa9"))
            known += 1
            continue
        length = draw.choice((3, 4, 10, 11, 257, 258, 259, 300, draw.randrange(3, 5000)))
        distance = draw.choice((1, 2, known, draw.randrange(known) + 1))
        symbols.append((length, min(distance, 65536), draw.random() < 0.3))
        known += length
    return symbols


class Deflate64(support.Case):
    def contents(self, source, stdin=b""):
        """The documents without their _id, the reasons of rejects, and the size of the text."""
        raw, work = self.dump("--types", "text", "--header", "yes", "--format", "delimited",
                              "--ragged", "pad", "--max-rejects", "100%", "-j", 2, source,
                              code=None, stdin=stdin)
        return (sorted(document[17:] for document in raw),
                sorted(row["reason"] for row in support.reject_rows(work)),
                support.run_record(work)["accounting"]["textBytes"])

    def loaded(self, source, text, stdin=b"", size=None):
        """The archive and `text` as a plain file give the same."""
        found, expected = self.contents(source, stdin), self.contents(self.file("p.csv", text))
        self.assertTrue(found[:2] == expected[:2], "the contents differ")
        self.assertEqual(found[2], size or len(text))

    def archive(self, entries, **more):
        return self.file("a.zip", deflate64_making.zip_of(entries, **more))

    def refused(self, path, *parts, **more):
        outcome, _ = self.parse("--types", "text", path, code=support.EXIT_SOURCE, **more)
        for part in parts:
            self.assertIn(part, outcome.err)

    def every_kind(self):
        """Contents and data with blocks of each kind, all codes of lengths and distances, and code
        words of up to 15 bits."""
        text, bits = table(2600), deflate64_making.Bits()
        deflate64_making.stored(bits, text[:65535])
        deflate64_making.stored(bits, text[65535:])
        deflate64_making.stored(bits, b"")
        for shape in (None, balanced, skewed):
            symbols = [ord("\n"), ord("x"), ord(",")]
            symbols += [(base + more, 40) for base, extra in deflate64_making.LENGTHS for more in (0, (1 << extra) - 1)]
            symbols += [(4, base + more) for base, extra in deflate64_making.DISTANCES
                        for more in (0, (1 << extra) - 1)]
            symbols += [(65538, 65536), (3, 1, True), (258, 65536, True), (65538, 1), ord("\n")]
            deflate64_making.block(bits, symbols, shape=shape)
            text = deflate64_making.unpacked(text, symbols)
        deflate64_making.block(bits, [], last=True)
        return text, bits.bytes()

    def test_blocks_of_each_kind_from_files_and_pipes(self):
        text, data = self.every_kind()
        for descriptors in (False, True):
            path = self.archive([("a.csv", text, data)], descriptors=descriptors)
            self.loaded(path, text)
            self.loaded("-", text, stdin=path.read_bytes())

    def test_random_symbols(self):
        draw = random.Random(64)
        for turn in range(6):
            text, bits = b"key,text\n", deflate64_making.Bits()
            deflate64_making.stored(bits, text)
            for shape in (None, balanced, skewed):
                symbols = random_symbols(draw, len(text), draw.randrange(300))
                deflate64_making.block(bits, symbols, shape=shape)
                text = deflate64_making.unpacked(text, symbols)
            deflate64_making.block(bits, [10], last=True, shape=balanced)
            path = self.archive([("a.csv", text + b"\n", bits.bytes())], descriptors=turn % 2)
            with self.subTest(turn):
                self.loaded(path, text + b"\n")

    def test_entries_before_and_behind(self):
        text, data = self.every_kind()
        other = b"key,text\n1,2\n"
        for descriptors in (False, True):
            path = self.archive([("0.csv", other, None), ("1.csv", text, data),
                                 ("__MACOSX/2.csv", text, data), ("3.csv", other, None),
                                 ("4.csv", text, data)], descriptors=descriptors)
            with zipfile.ZipFile(self.scratch / "stored.zip", "w") as stored:
                for name, contents in (("0.csv", other), ("1.csv", text), ("3.csv", other),
                                       ("4.csv", text)):
                    stored.writestr(name, contents)
            expected = self.contents(self.scratch / "stored.zip")
            self.assertEqual(expected[2], 2 * len(other) + 2 * len(text))
            self.assertTrue(self.contents(path) == expected)
            self.assertTrue(self.contents("-", path.read_bytes()) == expected)

    def test_damage_is_found(self):
        text = table(40)
        bits = deflate64_making.Bits()
        deflate64_making.stored(bits, text[:100])
        rest = [*text[100:], (100, len(text) - 100)]
        deflate64_making.block(bits, rest, last=True, shape=skewed)
        text, data = deflate64_making.unpacked(text[:100], rest), bits.bytes()
        good = deflate64_making.zip_of([("a.csv", text, data)])
        first = 30 + len("a.csv")
        path = self.scratch / "b.zip"
        draw = random.Random(1)
        for at in sorted(draw.sample(range(len(data) * 8), 30)):
            bad = bytearray(good)
            bad[first + at // 8] ^= 1 << at % 8
            path.write_bytes(bad)
            with self.subTest(at):
                self.refused(path, "b.zip: a.csv: ", " again")
        path.write_bytes(good[:first + 500])
        self.refused(path, "truncated")
        self.refused("-", f"end early at byte {first + 500} of the archive", stdin=path.read_bytes())
        for field, size, why in ((14, 4, "checksum"), (22, 4, "size")):
            bad = bytearray(good)
            for start in (field, good.index(b"PK\1\2") + field + 2):
                bad[start:start + size] = b"\1\1\0\0"
            path.write_bytes(bad)
            self.refused(path, f"the {why} of the contents differs")

    def test_data_that_end_before_the_next_entry_are_refused(self):
        bits = deflate64_making.Bits()
        deflate64_making.stored(bits, b"a,b\n1,2\n", last=True)
        path = self.archive([("a.csv", b"a,b\n1,2\n", bits.bytes() + bytes(9))])
        self.refused(path, "a.csv", "the size of the contents differs")
        path = self.archive([("a.csv", b"a,b\n1,2\n", bits.bytes() + bytes(9))], descriptors=True)
        self.refused(path, "a.csv", "checksum or size after the data differs")

    def test_an_archive_that_also_has_links(self):
        bits = deflate64_making.Bits()
        deflate64_making.stored(bits, b"a,b\n1,2\n", last=True)
        path = self.archive([("a.csv", b"a,b\n1,2\n", bits.bytes())])
        link = zipfile.ZipInfo("link")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(link, "a.csv")
        self.refused(path, "a.csv: packed with Deflate64", "7z x -so")

    @unittest.skipUnless(SEVEN_ZIP, "7-Zip is not installed")
    def test_archives_of_7_zip(self):
        draw = random.Random(7)
        rows = [f"{draw.randrange(10 ** 9)},{draw.choice('abc') * draw.randrange(300)}\n" for _ in range(3000)]
        texts = {"random.csv": table(20000), "zeros.csv": b"key,text\n" + b"1,0\n" * 100000,
                 "far.csv": ("key,text\n" + "".join(rows * 3)).encode(),
                 "short.csv": b"key,text\n1,2\n"}
        for name, text in texts.items():
            (self.scratch / name).write_bytes(text)
        for level in (1, 9):
            archive = self.scratch / f"level{level}.zip"
            subprocess.run([SEVEN_ZIP, "a", "-tzip", "-mm=Deflate64", f"-mx={level}", archive,
                            *texts], cwd=self.scratch, check=True, stdout=subprocess.DEVNULL)
            self.assertIn(9, {one.compress_type for one in zipfile.ZipFile(archive).infolist()})
            expected = b"key,text\n" + b"".join(text[9:] for text in texts.values())
            size = sum(map(len, texts.values()))
            with self.subTest(level):
                self.loaded(archive, expected, size=size)
                self.loaded("-", expected, archive.read_bytes(), size)
