# SPDX-License-Identifier: Apache-2.0
"""Makes Deflate64 data and zip archives with them, for tests: blocks of each kind, written symbol by
symbol, so that a test chooses every length and distance."""
import struct
import zlib

LENGTHS = [(3 + i, 0) for i in range(8)]
for extra in range(1, 6):
    LENGTHS += [((4 + i << extra) + 3, extra) for i in range(4)]
LENGTHS.append((3, 16))  # the code 285; Deflate has 258 and no extra bits
DISTANCES = [(1, 0), (2, 0), (3, 0), (4, 0)]
for extra in range(1, 15):
    DISTANCES += [((2 + i << extra) + 1, extra) for i in range(2)]
END = 256
ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)


class Bits:
    def __init__(self):
        self.value = self.count = 0

    def put(self, value, count):
        self.value |= value << self.count
        self.count += count

    def code(self, codes, symbol):
        word, length = codes[symbol]
        self.put(int(f"{word:0{length}b}"[::-1], 2), length)

    def align(self):
        self.count += -self.count % 8

    def bytes(self):
        return self.value.to_bytes((self.count + 7) // 8, "little")


def codes_of(lengths):
    """The canonical code: {symbol: (word, length)}."""
    codes, word = {}, 0
    for length in range(1, 16):
        for symbol in sorted(s for s, one in lengths.items() if one == length):
            codes[symbol] = (word, length)
            word += 1
        word <<= 1
    return codes


def balanced(symbols, above=0):
    """Lengths of a complete code in which they differ by one at most."""
    most = (len(symbols) - 1).bit_length()
    shorter = (1 << most) - len(symbols)
    return {symbol: above + most - (i < shorter) for i, symbol in enumerate(symbols)}


def skewed(symbols):
    """Lengths of a complete code with words of up to 15 bits."""
    some = max(0, min(len(symbols) - 2, 15 - (len(symbols) - 1).bit_length()))
    lengths = {symbol: i + 1 for i, symbol in enumerate(symbols[:some])}
    return {**lengths, **balanced(symbols[some:], some)}


FIXED = {symbol: 8 if symbol < 144 else 9 if symbol < 256 else 7 if symbol < 280 else 8 for symbol in range(288)}


def code_of(table, value, start=0):
    """The last code of a table that can express the value: (code, extra value, extra bits)."""
    for code in reversed(range(len(table))):
        base, extra = table[code]
        if base <= value < base + (1 << extra):
            return start + code, value - base, extra
    raise ValueError(value)


def length_code(length, long=False):
    """`long`: the code 285 also for lengths that have another one."""
    table = LENGTHS if long or length > 257 else LENGTHS[:-1]
    return code_of(table, length, 257)


def stored(bits, data, last=False):
    bits.put(last, 1)
    bits.put(0, 2)
    bits.align()
    bits.put(len(data), 16)
    bits.put(len(data) ^ 0xFFFF, 16)
    bits.put(int.from_bytes(data, "little"), 8 * len(data))


def describe_codes(bits, literals, distances):
    """Writes the lengths of two codes, with repetitions."""
    count = max(literals) + 1
    distance_count = max(distances, default=0) + 1
    row = ([literals.get(i, 0) for i in range(count)] + [distances.get(i, 0) for i in range(distance_count)])
    pieces, at = [], 0
    while at < len(row):
        run = 1
        while at + run < len(row) and row[at + run] == row[at]:
            run += 1
        if row[at] == 0 and run >= 3:
            run = min(run, 138)
            pieces.append((17, run - 3, 3) if run <= 10 else (18, run - 11, 7))
        elif at > 0 and row[at] == row[at - 1] and run >= 3:
            run = min(run, 6)
            pieces.append((16, run - 3, 2))
        else:
            run = 1
            pieces.append((row[at], 0, 0))
        at += run
    lengths = balanced(sorted({piece for piece, _, _ in pieces} | {0, 18}))
    codes = codes_of(lengths)
    bits.put(count - 257, 5)
    bits.put(distance_count - 1, 5)
    bits.put(len(ORDER) - 4, 4)
    for piece in ORDER:
        bits.put(lengths.get(piece, 0), 3)
    for piece, more, extra in pieces:
        bits.code(codes, piece)
        bits.put(more, extra)


def block(bits, symbols, last=False, shape=None):
    """Writes literals (integers) and matches (length, distance[, long]). `shape`: of the codes of a
    dynamic block, `balanced` or `skewed`; None: a block with the fixed codes."""
    items = [one if isinstance(one, int) else
             (length_code(one[0], *one[2:]), code_of(DISTANCES, one[1])) for one in symbols]
    bits.put(last, 1)
    bits.put(2 if shape else 1, 2)
    literals, distances = FIXED, {i: 5 for i in range(32)}
    if shape:
        used = sorted({one if isinstance(one, int) else one[0][0] for one in items} | {END, 0})
        far = sorted({one[1][0] for one in items if not isinstance(one, int)})
        literals = shape(used)
        distances = shape(far) if len(far) > 1 else dict.fromkeys(far, 1)
        describe_codes(bits, literals, distances)
    literal_codes, distance_codes = codes_of(literals), codes_of(distances)
    for one in [*items, END]:
        if isinstance(one, int):
            bits.code(literal_codes, one)
            continue
        for codes, (code, more, extra) in zip((literal_codes, distance_codes), one):
            bits.code(codes, code)
            bits.put(more, extra)


def unpacked(data, symbols):
    """What the symbols append to `data`."""
    data = bytearray(data)
    for one in symbols:
        if isinstance(one, int):
            data.append(one)
            continue
        length, distance = one[:2]
        start = len(data) - distance
        piece = data[start:start + min(length, distance)]
        data += (piece * (length // len(piece) + 1))[:length]
    return bytes(data)


def zip_of(entries, descriptors=False):
    """A zip archive. Entries: (name, contents, Deflate64 data; None: they are stored)."""
    out, table = b"", b""
    for name, text, packed in entries:
        name = name.encode()
        method, data = (0, text) if packed is None else (9, packed)
        described = descriptors and packed is not None
        facts = struct.pack("<III", zlib.crc32(text), len(data), len(text))
        start = struct.pack("<HHHHH", 21, 8 if described else 0, method, 0, 0x21)
        sizes = struct.pack("<HH", len(name), 0)
        table += (b"PK\1\2" + struct.pack("<H", 21) + start + facts + sizes +
                  struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name)
        out += (b"PK\3\4" + start + (bytes(12) if described else facts) + sizes + name + data +
                (b"PK\7\10" + facts if described else b""))
    count = len(entries)
    return out + table + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(table), len(out), 0)
