# SPDX-License-Identifier: Apache-2.0
"""Damaged compressed files and archives: no text of them is lost without an error.

The class Mutants decodes mutated files of every kind, and compares the text with that of an
independent decoder. The class Known contains single cases."""
import bz2
import gzip
import hashlib
import lzma
import os
import random
import subprocess
import zipfile

import archive_making as making
import support
from archive_making import Refused

ROUNDS = int(os.environ.get("SHARDLOAD_FAULT_ROUNDS") or 1)
MUTANTS = 250 * ROUNDS
unzstd, unlz4 = making.tool("zstd", "-dcq"), making.tool("lz4", "-dc")
zstd, lz4 = making.tool("zstd", "-cq"), making.tool("lz4", "-c")
uncompress = making.tool("gzip", "-dc")


def text_of(seed, lines=60):
    """Lines that compress moderately."""
    draw = random.Random(seed)
    return "".join(f"{seed},{i},{draw.getrandbits(40):x},{draw.choice(['FORD', 'FIAT', 'BMW'])}\n"
                   for i in range(lines)).encode()


PARTS = [text_of(n) for n in range(3)]
TEXT = b"".join(PARTS)
ENTRIES = [(f"part-{n}.csv", part) for n, part in enumerate(PARTS)]
SKIPPABLE = b"\x52\x2A\x4D\x18\x05\0\0\0other"


def long_header():
    """A gzip member whose header has all optional fields, three of them 64 KiB long."""
    packed = gzip.compress(PARTS[0], mtime=0)
    header = packed[:3] + bytes([2 | 4 | 8 | 16]) + packed[4:10]
    header += (65535).to_bytes(2, "little") + b"x" * 65535 + b"n" * 65536 + b"\0" + b"c" * 65536 + b"\0"
    return header + (making.zlib.crc32(header) & 0xFFFF).to_bytes(2, "little") + packed[10:]


class Decoder:
    """Decodes a file by the loader's own code: (exit code, length, MD5, error message)."""

    def __init__(self):
        self.process = subprocess.Popen([support.program("tests/decoded")], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, path, how="file"):
        self.process.stdin.write(f"{how} {path}\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().rstrip("\n").split(" ", 3)
        return int(words[0]), int(words[1]), words[2], words[3]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait() == 0


class Case(support.Case):
    def setUp(self):
        super().setUp()
        self.decode = Decoder()
        self.addCleanup(self.decode.close)

    def decoded(self, data, how="file"):
        return self.decode(self.file("source", data), how)

    def assert_text(self, data, text, how="file"):
        code, length, digest, message = self.decoded(data, how)
        self.assertEqual((code, message), (0, ""))
        self.assertEqual((length, digest), (len(text), hashlib.md5(text).hexdigest()))

    def assert_refused(self, data, *words, how="file", where=r"byte \d+"):
        code, _, _, message = self.decoded(data, how)
        self.assertEqual(code, support.EXIT_SOURCE, "decoded without an error")
        self.assertRegex(message, where)
        for word in words:
            self.assertIn(word, message)


# ---- mutants ----

def mutants(data, draw):
    """Endless damaged versions of a file, as (description of the damage, bytes)."""
    size = len(data)
    while True:
        kind = draw.randrange(9)
        at = draw.randrange(size)
        length = min(draw.choice([1, 2, 3, 4, 7, 16, 64, 512, 1024]), size - at)
        if kind == 0:
            mutant = bytearray(data)
            mutant[at] ^= 1 << draw.randrange(8)
            yield f"bit of byte {at}", bytes(mutant)
        elif kind == 1:
            yield f"cut to {at}", data[:at]
        elif kind == 2:
            yield f"{length} zeros inserted at {at}", data[:at] + bytes(length) + data[at:]
        elif kind == 3:
            yield f"{length} bytes at {at} removed", data[:at] + data[at + length:]
        elif kind == 4:
            yield f"{length} bytes at {at} zeroed", data[:at] + bytes(length) + data[at + length:]
        elif kind == 5:
            yield f"its own end appended, from {at}", data + data[at if draw.random() < .7 else 0:]
        elif kind == 6:
            yield f"rotated by {at}", data[at:] + data[:at]
        elif kind == 7:
            yield f"{length} bytes at {at} repeated", data[:at + length] + data[at:]
        else:
            end = draw.choice([b"x", b"\0x", b"\0\0\0\0", bytes(512), b"\x1f\x8b", b"PK\3\4",
                               bytes(511), b"more,text\n", data[:draw.randrange(1, 40)]])
            yield f"{len(end)} bytes appended", data + end


def structured(streams, draw):
    """Mutants of a file of several streams: streams swapped or removed, bytes between them, or a
    damaged magic number."""
    while True:
        order = list(streams)
        draw.shuffle(order)
        yield "swapped", b"".join(order)
        between = draw.choice([b"\0", bytes(4), bytes(3), bytes(512), b"x"])
        yield f"{len(between)} bytes between streams", between.join(streams)
        which = draw.randrange(1, len(streams))
        damaged = bytearray(streams[which])
        damaged[draw.randrange(min(12, len(damaged)))] ^= 1 << draw.randrange(8)
        yield f"header of stream {which}", b"".join([*streams[:which], bytes(damaged), *streams[which + 1:]])
        yield f"without stream {which}", b"".join(s for i, s in enumerate(streams) if i != which)


class Mutants(Case):
    """One test per kind of file (see KINDS); its name in the output is the summary of its mutants."""
    shown = ""  # the summary

    def shortDescription(self):
        return self.shown or super().shortDescription()

    def compare(self, data, reader, how="file"):
        """`data`: bytes, or a list of streams that are one file."""
        streams = data if isinstance(data, list) else None
        data = b"".join(streams or [data])
        self.assertEqual(reader(data), TEXT)
        self.assert_text(data, TEXT, how)
        draw = random.Random(len(data))
        source, apart = mutants(data, draw), structured(streams, draw) if streams else None
        accepted = changed = plain = 0
        for n in range(MUTANTS):
            what, mutant = next(apart if apart and n % 3 == 0 else source)
            code, length, digest, message = self.decoded(mutant, how)
            if code != 0:
                self.assertEqual(code, support.EXIT_SOURCE, f"{n}, {what}: {message}")
                self.assertTrue(message, what)
                continue
            if digest == hashlib.md5(mutant).hexdigest():  # without its magic number it is text
                plain += 1
                if plain <= 3:
                    self.shardload("load", "--sink", "null", self.scratch / "source", code=support.EXIT_SOURCE)
                continue
            accepted += 1
            try:
                expected = reader(mutant)
            except Refused as error:
                self.assertEqual(digest, hashlib.md5(TEXT).hexdigest(),
                                 f"{n}, {what}: decoded to a different text of {length} bytes, but "
                                 f"refused by the other decoder: {error}")
                continue
            # From a pipe a zip is decoded by its local headers, which have their own sizes and
            # checksums; the other decoder uses the central directory at the end.
            if how == "pipe" and digest == hashlib.md5(TEXT).hexdigest():
                continue
            self.assertEqual((length, digest), (len(expected), hashlib.md5(expected).hexdigest()),
                             f"{n}, {what}: {length} bytes instead of {len(expected)}")
            changed += expected != TEXT
        self.shown = (f"{MUTANTS} mutants: {MUTANTS - accepted - plain} refused, {plain} without a "
                      f"magic number, {accepted - changed} decoded to the original text, {changed} "
                      f"to a different text, the same as by the other decoder")


# Kind of file: a function that returns the data, its independent reader, and how the loader reads it.
KINDS = {
    "gzip": (lambda: gzip.compress(TEXT, mtime=0), making.ungzip),
    "gzip_members": (lambda: [gzip.compress(part, mtime=0) for part in PARTS], making.ungzip),
    "gzip_in_a_pipe": (lambda: [gzip.compress(part, mtime=0) for part in PARTS], making.ungzip, "7"),
    "bzip2": (lambda: [bz2.compress(part) for part in PARTS], making.unbzip2),
    "xz": (lambda: [lzma.compress(part) for part in PARTS], making.unxz),
    "zstd": (lambda: [zstd(PARTS[0]), SKIPPABLE, zstd(PARTS[1]), zstd(PARTS[2])], unzstd),
    "lz4": (lambda: [lz4(PARTS[0]), SKIPPABLE, lz4(PARTS[1]), lz4(PARTS[2])], unlz4),
    "lzip": (lambda: [making.lzip(part) for part in PARTS], making.unlzip),
    "compress": (lambda: making.compress(TEXT), uncompress),
    "tar": (lambda: making.tar(ENTRIES), making.untar),
    "tar_gz": (lambda: gzip.compress(making.tar(ENTRIES), mtime=0),
               lambda data: making.untar(making.ungzip(data))),
    "tar_xz": (lambda: lzma.compress(making.tar(ENTRIES)), lambda data: making.untar(making.unxz(data))),
    "tar_in_a_pipe": (lambda: making.tar(ENTRIES), making.untar, "pipe"),
    "zip_stored": (lambda: making.zip_of(ENTRIES, zipfile.ZIP_STORED), making.unzip),
    **{f"{name}{end}": (make, making.unzip, how) for end, how in (("", "file"), ("_in_a_pipe", "pipe"))
       for name, make in {
           "zip": lambda: making.zip_of(ENTRIES),
           "zip_with_descriptors": lambda: making.zip_of(ENTRIES, descriptors=True),
           "zip64": lambda: making.zip64_ended(making.zip_of(ENTRIES, zip64=True))}.items()},
}
for _kind, (_make, *_more) in KINDS.items():
    setattr(Mutants, f"test_{_kind}", lambda self, make=_make, more=_more: self.compare(make(), *more))


class Known(Case):
    """Damage that must be reported, and unusual forms that must be accepted."""

    GZIP = [gzip.compress(part, mtime=0) for part in PARTS]
    TAR = making.tar(ENTRIES)

    def test_streams_after_a_damaged_magic_number(self):
        for name, streams in (("gzip", self.GZIP), ("bzip2", [bz2.compress(p) for p in PARTS]),
                              ("xz", [lzma.compress(p) for p in PARTS]),
                              ("zstd", [zstd(p) for p in PARTS]), ("lz4", [lz4(p) for p in PARTS]),
                              ("lzip", [making.lzip(p) for p in PARTS])):
            with self.subTest(name):
                self.assert_text(b"".join(streams), TEXT)
                second = bytes([streams[1][0] ^ 1]) + streams[1][1:]
                self.assert_refused(streams[0] + second + streams[2], name,
                                    f"ends at byte {len(streams[0])}", "head -c")
                self.assert_refused(b"".join(streams) + b"what is this?\n", name, "head -c")
                self.assert_refused(streams[0] + b"\0" + streams[1], f"byte {len(streams[0])}")

    def test_a_load_ends_with_exit_code_3(self):
        lines = b"id,name\n" + b"".join(b"%d,x\n" % n for n in range(1000))
        path = self.file("two.csv.gz", gzip.compress(lines) + b"\0" + gzip.compress(lines))
        self.parse(path, code=support.EXIT_SOURCE, message="two.csv.gz: the gzip data ends at byte")

    def test_zeros_are_padding(self):
        for data in (gzip.compress(TEXT), bz2.compress(TEXT), zstd(TEXT), lz4(TEXT),
                     making.lzip(TEXT), self.TAR, gzip.compress(self.TAR + bytes(4096)),
                     making.zip_of(ENTRIES)):
            for zeros in (1, 511, 100_000 if data[:2] != b"PK" else 900):
                for how in ("file", "pipe"):
                    self.assert_text(data + bytes(zeros), TEXT, how)

    def test_checksums_of_data_stored_uncompressed(self):
        """A changed byte of data stored uncompressed is detected by the checksum only."""
        text = random.Random(1).randbytes(3000)
        for name, pack in (("gzip", gzip.compress), ("xz", lzma.compress), ("zstd", zstd),
                           ("lz4", lz4)):
            with self.subTest(name):
                packed = pack(text)
                self.assert_text(packed, text)
                changed = bytearray(packed)
                changed[packed.index(text[1000:1020])] ^= 1
                self.assert_refused(bytes(changed), f"the {name} data is damaged")

    def test_padding_of_xz_is_a_multiple_of_four_bytes(self):
        one, two = lzma.compress(PARTS[0]), lzma.compress(PARTS[1])
        self.assert_text(one + bytes(8) + two + bytes(4), PARTS[0] + PARTS[1])
        self.assert_refused(one + bytes(6) + two)
        self.assert_refused(one + two + bytes(3))

    def test_forms_of_other_compressors_are_accepted(self):
        block = making.zlib.compressobj(6, making.zlib.DEFLATED, -15)
        raw = block.compress(PARTS[0]) + block.flush(making.zlib.Z_SYNC_FLUSH) + block.flush()
        rest = raw + making.struct.pack("<II", making.zlib.crc32(PARTS[0]), len(PARTS[0]))
        size = (len(raw) + 25).to_bytes(2, "little")
        end = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
        for extra in (b"BC\2\0" + size, b"ZZ\1\0xBC\2\0" + size, b"BC\2\0" + size + b"ZZ\0\0"):
            bgzip = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + len(extra).to_bytes(2, "little") + extra + rest
            self.assert_text(bgzip + self.GZIP[1] + end, PARTS[0] + PARTS[1])
            self.assert_text(bgzip + end + self.GZIP[1], PARTS[0] + PARTS[1])
            for begin in (b"", self.GZIP[1]):
                self.assert_refused(begin + bgzip, "the bgzip data ends at byte", "without its end marker")
        self.assert_text(SKIPPABLE + zstd(TEXT) + SKIPPABLE, TEXT)  # as pzstd and seekable zstd write
        self.assert_text(lz4(PARTS[0]) + SKIPPABLE + lz4(PARTS[1]), PARTS[0] + PARTS[1])

    def test_long_gzip_headers_and_small_reads(self):
        """Headers of 192 KiB with a checksum, and reads of 1 to 3 bytes."""
        header = long_header()
        self.assertEqual(making.ungzip(header), PARTS[0])
        for how in ("file", "pipe", "1000"):
            self.assert_text(header + self.GZIP[1] + header, PARTS[0] + PARTS[1] + PARTS[0], how)
        wrong = bytearray(header)
        wrong[20] ^= 1
        self.assert_refused(bytes(wrong), "damaged")
        short = gzip.compress(PARTS[0], mtime=0)
        short = (short[:3] + bytes([4 | 8 | 16]) + short[4:10] + b"\3\0abcname\0comment\0" + short[10:])
        for how in "123":
            self.assert_text(short + self.GZIP[1], PARTS[0] + PARTS[1], how)

    def test_data_after_the_end_of_a_tar(self):
        other = making.tar([("other.csv", text_of(7))])
        middle = bytearray(self.TAR)
        at = self.TAR.index(b"part-1.csv")
        middle[at:at + 512] = bytes(512)
        for name, tar in (("two", self.TAR + other), ("zeroed header", bytes(middle)),
                          ("a byte", self.TAR + b"x")):
            for how in ("file", "pipe", "7"):
                with self.subTest(name, how=how):
                    self.assert_refused(tar, "tar archive ends at byte", "tar -xif", how=how)
            with self.subTest(name, how="packed"):
                self.assert_refused(gzip.compress(tar), "tar archive ends at byte")
                self.assert_refused(lzma.compress(tar), "tar archive ends at byte")

    def test_a_tar_without_its_end(self):
        """Also within complete compressed data, as `tar -c | gzip` leaves it if tar is killed."""
        end = len(self.TAR.rstrip(b"\0")) // 512 * 512 + 512
        for name, tar in (("before a header", self.TAR[:self.TAR.index(b"part-1.csv")]),
                          ("after the last entry", self.TAR[:end])):
            for packed, pack in (("plain", bytes), ("gzip", gzip.compress), ("zstd", zstd)):
                for how in ("file", "pipe"):
                    with self.subTest(name, packed=packed, how=how):
                        self.assert_refused(pack(tar), "without an end-of-archive marker", how=how)

    def test_a_damaged_header_of_a_gnu_tar_is_no_text(self):
        data = making.tar(ENTRIES, format=making.tarfile.GNU_FORMAT)
        self.assert_text(data, TEXT)
        self.assert_refused(data.replace(b"part-0", b"part-7", 1), "tar")

    def test_zip_entries_missing_from_the_central_directory(self):
        for more in ({}, {"descriptors": True}, {"method": zipfile.ZIP_STORED}):
            data = making.zip_of(ENTRIES, **more)
            second, table = data.index(b"PK\3\4", 10), data.index(b"PK\1\2")
            lost = data[:second] + b"XX" + data[second + 2:]
            record = data[table + 46:].index(b"PK\1\2") + 46
            end = bytearray(data[data.index(b"PK\5\6"):])
            end[8] = end[10] = 2
            end[12:16] = (int.from_bytes(end[12:16], "little") - record).to_bytes(4, "little")
            shorter = data[:table] + data[table + record:data.index(b"PK\5\6")] + bytes(end)
            renamed = data[:table] + data[table:].replace(b"part-1", b"part-7")
            for name, mutant in (("a damaged header", lost), ("not listed", shorter),
                                 ("in front", data + data), ("behind", data + b"more")):
                for how in ("file", "pipe"):
                    with self.subTest(name, how=how, **more):
                        self.assert_refused(mutant, "zip", how=how)
            self.assert_refused(renamed, "disagree (its name)")

    def test_a_size_of_4_gib_in_a_zip_without_a_zip64_field(self):
        """Without the field it is the size; a field that is too short for it is damage."""
        data = making.zip_of(ENTRIES)
        table, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
        large = data[:table + 24] + b"\xff" * 4 + data[table + 28:]
        self.assert_refused(large, "disagree (its size or checksum)")
        at = table + 46 + len(ENTRIES[0][0])
        size = int.from_bytes(data[end + 12:end + 16], "little") + 5
        short = bytearray(large[:at] + b"\1\0\1\0x" + large[at:end + 12] + size.to_bytes(4, "little") + data[end + 16:])
        short[table + 30] = 5
        self.assert_refused(bytes(short), "(a size is missing)")

    def test_zips_with_comments_are_accepted(self):
        for length in (0, 10, 20_000, 65_535):
            comment = b"PK\5\6 " * 20 if length > 1000 else b""
            comment += b"c" * (length - len(comment))
            for how in ("file", "pipe"):
                self.assert_text(making.zip_of(ENTRIES, comment=comment), TEXT, how)
        self.assert_text(making.zip64_ended(making.zip_of(ENTRIES, zip64=True, comment=b"c")), TEXT)

    def test_memory_for_one_source_is_limited(self):
        """A dictionary of 3 GiB and a window of 2 GiB are refused before memory is allocated."""
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 3 << 20}]
        self.assert_text(lzma.compress(TEXT, filters=filters), TEXT)
        filters[0]["dict_size"] = 192 << 20
        small = bytearray(lzma.compress(TEXT, filters=filters, check=lzma.CHECK_CRC32))
        self.assert_text(bytes(small), TEXT)
        at = small.index(b"\x21\x01") + 2
        small[at] = 39  # the code of 3 GiB
        small[20:24] = making.struct.pack("<I", making.zlib.crc32(bytes(small[12:20])))
        self.assert_refused(bytes(small), "xz -dc", where="takes 3.2 GB, more than 256 MiB .*limit for one source")
        # Magic, descriptor, window: exponent 21, so 2 GiB; then a raw, last block.
        frame = zstd(TEXT)[:4] + b"\0" + bytes([21 << 3]) + (len(TEXT) << 3 | 1).to_bytes(3, "little") + TEXT
        self.assert_refused(frame, "zstd -dc --long=31", where="256 MiB .*limit for one source")
        self.assert_text(frame[:5] + bytes([18 << 3]) + frame[6:], TEXT)
