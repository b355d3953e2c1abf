# SPDX-License-Identifier: Apache-2.0
"""Writes compressed files and archives for tests, and reads them independently of the loader.

A reader gets the bytes of a file and returns its text, or raises Refused. Formats without a Python
module are read by their command line tools or, where the code is short, decoded here.
"""
import bz2
import gzip
import io
import lzma
import shutil
import struct
import subprocess
import tarfile
import unittest
import zipfile
import zlib


class Refused(Exception):
    """The independent reader rejects the file."""


def tool(name, *words):
    """A function that passes bytes through a command line tool."""
    def run(data):
        if not shutil.which(name):
            raise unittest.SkipTest(f"{name} is not installed")
        done = subprocess.run([name, *words], input=data, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise Refused(done.stderr.decode(errors="replace"))
        return done.stdout
    return run


# ---- lzip: raw LZMA between a header of 6 bytes and a trailer of 20 ----

def lzip(text):
    filters = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16}]
    packed = lzma.compress(text, format=lzma.FORMAT_ALONE, filters=filters)[13:]
    size = 6 + len(packed) + 20
    return (b"LZIP\x01\x10" + packed + struct.pack("<IQQ", zlib.crc32(text), len(text), size))


def unlzip(data):
    text = b""
    while data and data.strip(b"\0"):
        if data[:5] != b"LZIP\x01" or len(data) < 26:
            raise Refused("no lzip header")
        bits, fraction = data[5] & 0x1F, data[5] >> 5
        size = (1 << bits) - (fraction << bits - 4 if bits >= 4 else 0)
        if not 12 <= bits <= 29:
            raise Refused("dictionary")
        coder = lzma.LZMADecompressor(lzma.FORMAT_ALONE)
        try:
            part = coder.decompress(b"\x5d" + struct.pack("<I", size) + b"\xff" * 8 + data[6:])
        except lzma.LZMAError as error:
            raise Refused(error) from error
        remaining = coder.unused_data
        length = len(data) - len(remaining)
        if not coder.eof or remaining[:20] != struct.pack("<IQQ", zlib.crc32(part), len(part), length + 20):
            raise Refused("trailer")
        text += part
        data = remaining[20:]
    return text


# ---- compress: LZW with codes of 9 to 16 bits ----

def compress(text, bits_max=16):
    table = {bytes([i]): i for i in range(256)}
    width, group = 9, []
    out = bytearray(b"\x1f\x9d" + bytes([0x80 | bits_max]))

    def flush(full):
        """Writes the codes collected so far: eight codes of one width take `width` bytes."""
        number = 0
        for i, code in enumerate(group):
            number |= code << i * width
        count = width if full else (len(group) * width + 7) // 8
        out.extend(number.to_bytes(count, "little"))
        group.clear()

    free, word = 257, b""
    for byte in text:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        group.append(table[word])
        if len(group) == 8:
            flush(True)
        if free < 1 << bits_max:
            table[longer] = free
            free += 1
            if free > 1 << width and width < bits_max:
                if group:
                    flush(True)
                width += 1
        word = bytes([byte])
    if word:
        group.append(table[word])
    flush(False)
    return bytes(out)


# ---- formats with a Python module ----

def ungzip(data):
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise Refused(error) from error


def unbzip2(data):
    text = b""
    while data.strip(b"\0") or not text: # bz2.decompress() ignores trailing data silently
        coder = bz2.BZ2Decompressor()
        try:
            text += coder.decompress(data)
        except (OSError, ValueError, EOFError) as error:
            raise Refused(error) from error
        if not coder.eof:
            raise Refused("truncated")
        data = coder.unused_data
    return text


def unxz(data):
    text = b""
    while data:
        coder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        try:
            text += coder.decompress(data)
        except lzma.LZMAError as error:
            raise Refused(error) from error
        if not coder.eof:
            raise Refused("truncated")
        data = coder.unused_data.lstrip(b"\0")
        if (len(coder.unused_data) - len(data)) % 4:
            raise Refused("padding")
    return text


# ---- archives ----

def is_hidden(name):
    return any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in name.split("/"))


def joined(entries):
    """The text of an archive: the texts of its entries in order, each ended by a newline."""
    return b"".join(text if text.endswith(b"\n") else text + b"\n"
                    for name, text in entries if text and not is_hidden(name))


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


def tar(entries, **more):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **more) as archive:
        for name, text in entries:
            info = tarfile.TarInfo(name)
            info.size = len(as_bytes(text))
            archive.addfile(info, io.BytesIO(as_bytes(text)))
    return out.getvalue()


def untar(data):
    entries = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive:
                if info.isreg() or info.type not in tarfile.SUPPORTED_TYPES:
                    entries.append((info.name, archive.extractfile(info).read()))
                    if len(entries[-1][1]) != info.size:
                        raise Refused("truncated")
            if data[archive.offset:].strip(b"\0"): # tarfile stops at a bad header silently
                raise Refused("data after the end")
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise Refused(error) from error
    return joined(entries)


def write_many(tar_path, zip_path, count, text):
    """Writes a tar and a zip archive of `count` entries, all with this text. tarfile and zipfile
    would take too long for a million entries."""
    names = [b"a-folder/with/a/long/name/entry-number-%07d.csv" % n for n in range(count)]
    info = tarfile.TarInfo(names[0].decode())
    info.size = len(text)
    head = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    head[148:156] = b" " * 8
    with open(tar_path, "wb") as file:
        for name in names:
            head[:len(name)] = name
            head[148:156] = b" " * 8
            head[148:156] = b"%06o\0 " % sum(head)
            file.write(head + text + bytes(-len(text) % 512))
        file.write(bytes(1024))
    crc, at, table = zlib.crc32(text), 0, []
    with open(zip_path, "wb") as file:
        for name in names:
            # The fields that the local header and the entry in the central directory share.
            shared = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, crc, len(text), len(text), len(name), 0)
            file.write(b"PK\3\4" + shared + name + text)
            table.append(b"PK\1\2\x14\0" + shared + struct.pack("<HHHII", 0, 0, 0, 0, at) + name)
            at += 30 + len(name) + len(text)
        table = b"".join(table)
        end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0, 0, len(table), at, 0)
        file.write(zip64_ended(table + end, count, at))


class Unseekable(io.RawIOBase):
    """A file that zipfile writes sequentially: sizes follow the data, in data descriptors."""

    def __init__(self):
        super().__init__()
        self.written = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.written += data
        return len(data)


def zip_of(entries, method=zipfile.ZIP_DEFLATED, descriptors=False, zip64=False, comment=b""):
    out = Unseekable() if descriptors else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, text in entries:
            with archive.open(name, "w", force_zip64=zip64) as file:
                file.write(as_bytes(text))
        archive.comment = comment
    return bytes(out.written) if descriptors else out.getvalue()


def zip_of_one(name, text, packed, method, flags=0):
    """A zip file of one entry that is packed by the caller."""
    common = struct.pack("<HHHHHIIIHH", 63, flags, method, 0, 33, zlib.crc32(text), len(packed), len(text),
                         len(name), 0)
    local = b"PK\3\4" + common + name.encode() + packed
    record = b"PK\1\2" + struct.pack("<H", 63) + common + bytes(14) + name.encode()
    return local + record + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(record), len(local), 0)


def zip_lzma(text, dictionary, end_marker=True):
    """The data of a zip entry packed with LZMA (method 14). Without end marker: only literals."""
    if end_marker:
        filters = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 20, "preset": 1}]
        packed = lzma.compress(text, lzma.FORMAT_ALONE, filters=filters)
        properties, packed = packed[:1], packed[13:]
    else:
        properties, packed = b"\0", lzma_literals(text)
    return b"\x09\x04\x05\0" + properties + struct.pack("<I", dictionary) + packed


def lzma_literals(text):
    """LZMA data without matches and end marker, with lc = lp = pb = 0."""
    low, width, cache, pending, out = 0, (1 << 32) - 1, 0, 1, bytearray()
    match, literals = [1024], [1024] * 256

    def shift():
        nonlocal low, cache, pending
        if low < 0xFF000000 or low >> 32:
            out.append(cache + (low >> 32) & 0xFF)
            out.extend([0xFF + (low >> 32) & 0xFF] * (pending - 1))
            cache, pending = low >> 24 & 0xFF, 0
        pending += 1
        low = (low & 0x00FFFFFF) << 8

    def put(chances, index, bit):
        nonlocal low, width
        bound = (width >> 11) * chances[index]
        if bit:
            low, width = low + bound, width - bound
            chances[index] -= chances[index] >> 5
        else:
            width = bound
            chances[index] += 2048 - chances[index] >> 5
        while width < 1 << 24:
            width = width << 8 & 0xFFFFFFFF
            shift()

    for byte in text:
        put(match, 0, 0)
        node = 1
        for place in range(7, -1, -1):
            put(literals, node, byte >> place & 1)
            node = node << 1 | byte >> place & 1
    for _ in range(5):
        shift()
    return bytes(out)


def zip64_ended(data, entries=None, before=0):
    """A zip file whose end is in the zip64 format of large archives. `entries`: the number of
    entries, if it exceeds the old format. `data` may lack the first `before` bytes of the file."""
    at = data.rindex(b"PK\5\6")
    count, size, offset = struct.unpack("<HII", data[at + 10:at + 20])
    count = entries or count
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + before, 1)
    moved = struct.pack("<HHII", 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    end = data[at:at + 8] + moved + data[at + 20:]
    return data[:at] + end64 + locator + end


def unzip(data):
    entries = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in sorted(archive.infolist(), key=lambda one: one.header_offset):
                if not info.is_dir():
                    entries.append((info.filename, archive.read(info)))
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, zlib.error, struct.error,
            NotImplementedError, RuntimeError, OverflowError, UnicodeError, IndexError) as error:
        raise Refused(error) from error
    return joined(entries)
