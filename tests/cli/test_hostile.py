# SPDX-License-Identifier: Apache-2.0
"""Hostile text: good records are loaded, bad records are rejected with position and reason, memory
is limited, and the totals add up. docs/hostile-input.md lists the cases."""
import gzip
import io
import os
import tarfile
import zlib

import archive_making as making
import support

HEADER = "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n"
ROW = "{}|8394|A|7|\n"
MIB = 1 << 20
DOCUMENT_MAX = 16 * MIB
MEMORY_MAX = 200 * MIB  # of a load with two threads, whatever the input
SANITIZED = os.environ.get("SHARDLOAD_BUILD", "").endswith(("-address", "-thread"))


def rows(*numbers):
    return "".join(ROW.format(n) for n in numbers).encode()


def gzip_member(chunk, times):
    """A gzip member of `chunk`, repeated `times` times, compressed without the text in memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(chunk) for _ in range(times)] + [packer.flush()])


class HostileCase(support.Case):
    def ids(self, *words, **more):
        """The test ids of the loaded documents, in order, and the work directory."""
        raw, work = self.dump("-j", 2, *words, **more)
        return sorted(support.bson.decode(document)["t"] for document in raw), work

    def refused(self, *words, contains=()):
        """The load ends with the exit code for sources, and its message contains these texts."""
        outcome, _ = self.parse(*words, code=support.EXIT_SOURCE)
        for text in contains:
            self.assertIn(text, outcome.err)
        return outcome

    def totals_within_memory(self, path, code=support.EXIT_REJECTS, **expected):
        """A load of the file needs little memory and has these totals. Returns its work directory."""
        bytes_used, work = self.peak(path, code=code)
        if not SANITIZED:
            self.assertLess(bytes_used, MEMORY_MAX)
        self.assert_accounting(work, **expected)
        return work


class LongLines(HostileCase):
    LONG = 100 * MIB

    def content(self):
        return HEADER.encode() + rows(1) + b"x" * self.LONG + b"\n" + rows(2, "three", 4)

    def check(self, path):
        work = self.totals_within_memory(path, records=5, inserted=3, rejectedByParser=2)
        long, bad = support.reject_rows(work)
        self.assertEqual((long["line"], long["offset"]), ("3", str(len(HEADER) + len(ROW) - 1)))
        self.assertRegex(long["reason"], r"bytes or more is too large for a document")
        self.assertEqual(bad["line"], "5", "the lines after the long one are counted")
        self.assertEqual(bad["record"], "three|8394|A|7|")
        self.assertLess((work / "rejects.tsv").stat().st_size, MIB)

    def test_a_line_of_100_mib_is_one_reject(self):
        self.check(self.file("long.txt", self.content()))

    def test_a_line_of_100_mib_in_gzip_is_one_reject(self):
        self.check(self.zipped("long.gz", self.content()))

    def test_a_line_of_100_mib_without_an_end(self):
        path = self.file("long.txt", HEADER.encode() + rows(1) + b"x" * self.LONG)
        self.totals_within_memory(path, records=2, inserted=1, rejectedByParser=1)

    def test_the_longest_record_that_fits_and_the_shortest_that_does_not(self):
        for size, fits in ((DOCUMENT_MAX - 4096, True), (DOCUMENT_MAX, False)):
            with self.subTest(size):
                path = self.file("edge.txt", b"a|b\n1|2\n" + b"y|" + b"z" * (size - 2) + b"\n3|4\n")
                raw, work = self.dump(path, code=support.EXIT_OK if fits else support.EXIT_REJECTS)
                self.assertEqual(len(raw), 2 + fits)
                self.assertLessEqual(max(map(len, raw)), DOCUMENT_MAX)
                self.assertEqual([row["line"] for row in support.reject_rows(work)], [] if fits else ["3"])


class OddBytes(HostileCase):
    def test_line_ends_of_every_kind_in_one_file(self):
        text = HEADER.encode() + rows(1).replace(b"\n", b"\r\n") + b"\n\r\n" + rows(2)[:-1]
        ids, work = self.ids(self.file("ends.txt", text))
        self.assertEqual(ids, [1, 2])
        self.assert_accounting(work, blankLines=2)

    def test_each_line_may_be_in_another_encoding(self):
        header = "name|town\n".encode()
        lines = ["Żółć|Łódź".encode(), "Zoë|Köln".encode("latin-1"),
                 "a|b".encode("utf-16-le"), b"\xed\xa0\x80|surrogate", b"\xc0\xaf|overlong",
                 b"plain|ascii"]
        path = self.file("mixed.txt", header + b"\n".join(lines) + b"\n")
        raw, work = self.dump("--format", "delimited", path, code=support.EXIT_REJECTS)
        self.assertEqual(len(raw), 2)
        found = support.reject_rows(work)
        self.assertEqual([row["line"] for row in found], ["3", "4", "5", "6"])
        self.assertEqual([row["column"] for row in found], ["name"] * 4)
        for row in found:
            self.assertRegex(row["reason"], r"byte 0x[0-9a-f]{2} at offset \d+")
        raw, work = self.dump("--format", "delimited", "--encoding", "latin-1", path, code=support.EXIT_REJECTS)
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["4"], "NUL is no text in any encoding")

    def test_nul_bytes_reject_their_own_record_only(self):
        text = (HEADER.encode() + rows(1) + b"\0|8394|A|7|\n" + rows(2) + b"\0" * 5000 + b"\n" + rows(3))
        ids, work = self.ids(self.file("nul.txt", text), code=support.EXIT_REJECTS)
        self.assertEqual(ids, [1, 2, 3])
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["3", "5"])
        self.assertNotIn(b"\0", (work / "rejects.tsv").read_bytes())

    def test_byte_order_marks(self):
        mark = b"\xef\xbb\xbf"
        path = self.file("bom.txt", mark + HEADER.encode() + rows(1) + mark + rows(2))
        ids, work = self.ids(path, code=support.EXIT_REJECTS)
        self.assertEqual(ids, [1])
        self.assert_rejects(work, "bom.txt", [(3, 3 + len(HEADER) + len(rows(1)), "test_id")])

    def test_utf16_is_converted(self):
        for encoding in ("utf-16-le", "utf-16-be"):
            with self.subTest(encoding):
                text = ("\ufeff" + HEADER + "".join(ROW.format(i) for i in range(40000)))
                ids, _ = self.ids(self.file("wide.txt", text.encode(encoding)))
                self.assertEqual(ids, list(range(40000)))
                short = "\ufeffa,b\n1,\U0001f697\u00e9\u20ac\n"
                path = self.file("w.csv", short.encode(encoding))
                raw, _ = self.dump("--format", "delimited", path)
                self.assertEqual(support.bson.decode(raw[0])["b"], "\U0001f697\u00e9\u20ac")
                self.refused(self.file("wide.txt", text.encode(encoding)[:-1]), contains=["wide.txt", "truncated"])

    def test_a_lone_surrogate_rejects_its_record_only(self):
        text = ("\ufeffa,b\n1,x\n2,\ud83dx\n3,y\n4,\ude00\n").encode("utf-16-le", "surrogatepass")
        _, work = self.dump("--format", "delimited", self.file("s.csv", text), code=support.EXIT_REJECTS)
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["3", "5"])

    def test_utf16_within_gzip_is_refused_with_a_remedy(self):
        text = ("\ufeff" + HEADER + ROW.format(1)).encode("utf-16-le")
        self.refused(self.zipped("wide.gz", text), contains=["wide.gz", "UTF-16", "iconv"])

    def test_control_bytes_of_records_are_not_printed(self):
        text = HEADER.encode() + b"\x1b]0;owned\x07\x1b[2J|1|A|7|\n" + b"\xc2\x9b31m|1|A|7|\n"
        path = self.file("escape.txt", text)
        outcome, work = self.parse(path, code=support.EXIT_SOURCE)
        shown = self.shardload("inspect", path)
        for text in (outcome.text, shown.text, (work / "rejects.tsv").read_text("utf-8"),
                     (work / "shardload.log").read_text("utf-8")):
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertIn("\\x1b", outcome.err)

    def test_headers_with_control_bytes_are_escaped_in_the_table_of_rejects(self):
        schema = self.file("s.yaml", "name: s\n" 'columns: [{name: "a\\tb\\e[1m", type: int}, {name: c}]\n')
        path = self.file("odd.csv", b"x,y\n")
        _, work = self.parse("--format", "delimited", "--schema", schema, path, code=support.EXIT_SOURCE)
        (row,) = support.reject_rows(work)
        self.assertEqual((row["column"], row["record"]), ("a\\x09b\\x1b[1m", "x,y"))

    def test_a_large_file_given_as_schema_is_not_read_to_its_end(self):
        schema = self.file("s.yaml", b"name: x\n" * (1 << 18))
        self.parse("--format", "delimited", "--schema", schema,
                   self.file("a.csv", "a,b\n1,2\n"), code=support.EXIT_USAGE, message="larger than 1 MiB")


class Bombs(HostileCase):
    def test_two_gib_of_zeros(self):
        """A line of zeros that is several hundred times as long as its gzip file is one reject."""
        zeros = gzip_member(bytes(MIB), 64)
        path = self.file("zeros.gz", gzip.compress(HEADER.encode() + rows(1)) + zeros * 32 +
                         gzip.compress(b"\n" + rows(2)))
        self.assertLess(path.stat().st_size, 4 * MIB)
        self.totals_within_memory(path, records=3, inserted=2, rejectedByParser=1)

    def test_a_gib_of_rows(self):
        chunk = rows(7) * 100000
        path = self.file("rows.gz", gzip.compress(HEADER.encode()) + gzip_member(chunk, 75) * 10)
        self.assertLess(path.stat().st_size, 8 * MIB)
        self.totals_within_memory(path, code=support.EXIT_OK, records=75000000, inserted=75000000)

    def test_the_files_of_rejects_are_limited(self):
        """35 kB of gzip hold 70 MB of records that are all rejected, and as much again in rejects.tsv."""
        rows = b"a,b\n" + b"1,2\n" * 30000 + (b"x" * 1000 + b"\n") * 70000
        path = self.zipped("bomb.csv.gz", rows)
        self.assertLess(path.stat().st_size, 200 << 10)
        words = ["--format", "delimited", "--header", "yes", path]
        outcome, work = self.parse(*words, code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, r"the rejects are larger than .*: 64 MiB and four times(?s:.*)--max-rejects")
        size = sum(file.stat().st_size for file in work.rglob("*") if file.is_file())
        self.assertIn(size >> 20, range(60, 68))
        self.assertEqual(support.run_record(work)["exitCode"], support.EXIT_SOURCE)
        for limit in ("unlimited", "90%"):
            _, work = self.parse("--max-rejects", limit, *words, code=support.EXIT_REJECTS)
            self.assert_accounting(work, inserted=30000, rejectedByParser=70000)
            self.assertGreater((work / "rejects.tsv").stat().st_size, 64 << 20)

    def test_the_limit_of_rejects_grows_with_the_sources(self):
        """The rejects of a plain file, each a few times its own size, are not limited."""
        path = self.file("bad.csv", b"a,b\n1,2\n" + (b"x" * 1000 + b"\n") * 70000)
        _, work = self.parse("--format", "delimited", "--header", "yes", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=1, rejectedByParser=70000)

    def test_a_file_that_begins_with_zeros_is_refused_at_once(self):
        self.refused(self.file("zeros.gz", gzip_member(bytes(MIB), 1024)), contains=["zeros.gz", "binary file"])

    def test_gzip_in_gzip_is_decompressed_once(self):
        """A file is decompressed once; the result must be text."""
        twice = gzip.compress(gzip.compress(HEADER.encode() + rows(1), mtime=0))
        self.refused(self.file("twice.gz", twice), contains=["twice.gz", "gzip-compressed"])

    def test_holes_of_sparse_files_in_a_tar(self):
        """3 kB may declare a file of 2^62 bytes, which would be read for 146 years."""
        text = b"1\n0\n%d\n" % len(HEADER + ROW.format(1))
        text = text.ljust(512, b"\0") + (HEADER + ROW.format(1)).encode()
        for sizes, code in (([1 << 62], support.EXIT_SOURCE), ([1 << 22, 1 << 40], support.EXIT_SOURCE),
                            ([1 << 22] * 2, support.EXIT_REJECTS)):
            path = self.scratch / "sparse.tar"
            with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
                for number, size in enumerate(sizes):
                    entry = tarfile.TarInfo(f"{number}.txt")
                    entry.size, entry.pax_headers = len(text), {"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                                                "GNU.sparse.realsize": str(size)}
                    archive.addfile(entry, io.BytesIO(text))
            with self.subTest(sizes):
                outcome, _ = self.parse(path, code=code)
                self.assertEqual("holes of more than 1 TiB" in outcome.err, code == support.EXIT_SOURCE, outcome.err)

    def test_overlapping_entries_of_a_zip(self):
        """A central directory with many entries for the same bytes is refused."""
        whole = making.zip_of([("0", HEADER.encode() + rows(1) * (4 * MIB // len(rows(1))))])
        table = whole.rindex(b"PK\1\2")
        end = whole.rindex(b"PK\5\6")
        entries = whole[table:end] * 100
        tail = bytearray(whole[end:])
        tail[8:12] = (100).to_bytes(2, "little") * 2
        tail[12:16] = len(entries).to_bytes(4, "little")
        path = self.file("overlap.zip", whole[:table] + entries + tail)
        self.refused(path, contains=["overlap.zip", "the table of contents at byte", "100 entries"])


class Packed(HostileCase):
    def members(self):
        return [gzip.compress(HEADER.encode() + rows(*range(5000)), mtime=0),
                gzip.compress(b"", mtime=0),
                gzip.compress(rows(*range(5000, 10000)), mtime=0)]

    def test_consecutive_gzip_members_are_one_file(self):
        ids, _ = self.ids(self.file("joined.gz", b"".join(self.members())))
        self.assertEqual(ids, list(range(10000)))

    def test_a_record_may_span_two_members(self):
        whole = HEADER.encode() + rows(1, 2)
        path = self.file("split.gz", gzip.compress(whole[:70]) + gzip.compress(whole[70:]))
        self.assertEqual(self.ids(path)[0], [1, 2])

    def test_a_truncated_gzip_member_ends_the_load_with_its_position(self):
        first, empty, second = self.members()
        for cut in (len(first) - 3, len(first) + 7, len(first + empty) + 5, len(first + empty + second) - 1):
            with self.subTest(cut):
                path = self.file("cut.gz", (first + empty + second)[:cut])
                self.refused(path, contains=["cut.gz", f"byte {cut}", "truncated", "fetch it again"])

    def test_a_changed_byte_in_any_gzip_member_ends_the_load(self):
        whole = b"".join(self.members())
        first = len(self.members()[0])
        for offset in (first // 2, first - 6, len(whole) - 200, len(whole) - 2):
            with self.subTest(offset):
                bad = bytearray(whole)
                bad[offset] ^= 0x10
                outcome = self.refused(self.file("bad.gz", bytes(bad)), contains=["bad.gz", "byte"])
                self.assertRegex(outcome.err, "damaged|truncated")

    def test_only_zeros_may_follow_gzip_data(self):
        data = b"".join(self.members())
        self.refused(self.file("tail.gz", data + b"trailing rubbish"),
                     contains=["tail.gz", f"ends at byte {len(data)}", "head -c"])
        self.assertEqual(len(self.ids(self.file("padded.gz", data + bytes(512)))[0]), 10000)

    def test_entries_of_an_archive_are_not_written_to_the_disk(self):
        own = self.scratch.name
        names = [f"../{own}.a", f"{self.scratch}.b", f"x/../../{own}.c", "c\\..\\d.txt"]
        entries = [(name, HEADER + ROW.format(number)) for number, name in enumerate(names)]
        self.file("up.zip", making.zip_of(entries))
        with tarfile.open(self.file("up.tar", making.tar(entries)), "a") as archive:
            link = tarfile.TarInfo("link.txt")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        before = sorted(os.listdir(self.scratch))
        for archive in ("up.zip", "up.tar"):
            with self.subTest(archive):
                outcome = self.shardload("load", "--sink", "null", self.scratch / archive)
                self.assertRegex(outcome.text, r"= inserted +4\b")
        self.assertEqual(sorted(os.listdir(self.scratch)), before)
        self.assertEqual(list(self.scratch.parent.glob(f"{own}.*")), [])

    def test_names_of_entries_are_shown_safely(self):
        path = self.file("odd.zip", making.zip_of([("a\nb\x1b[31m\t.txt", HEADER + "x|1|A|7|\n")]))
        outcome, work = self.parse(path, code=support.EXIT_SOURCE)
        (row,) = support.reject_rows(work)
        self.assertTrue(row["source"].endswith("odd.zip: a\\x0ab\\x1b[31m\\x09.txt"), row)
        self.assertNotIn("\x1b", outcome.text)
        self.assertNotIn("\nb", outcome.text)

    def test_an_archive_in_an_archive_is_not_loaded(self):
        inner = making.zip_of([("x.txt", HEADER + ROW.format(1))])
        path = self.file("nested.zip", making.zip_of([("inner.zip", inner), ("good.txt", HEADER + ROW.format(2))]))
        for words, code in ((["--skip-other"], support.EXIT_OK), ([], support.EXIT_SOURCE)):
            outcome, work = self.parse(*words, path, code=code)
            self.assert_accounting(work, inserted=1)
            self.assertRegex(outcome.err, r"inner\.zip: not loaded: .*archive within the archive")
