# SPDX-License-Identifier: Apache-2.0
"""An independent generator of the format `ycsb`, written from docs/ycsb.md alone. It must produce the
same bytes as the loader."""
import functools
from typing import NamedTuple

import support
from support import bson

MASK = (1 << 64) - 1
VALUES = 1 << 16
SLOT = 1 << 48
STEP = 256  # bytes between the offsets of consecutive records


class Options(NamedTuple):
    seed: int = 1
    field_count: int = 8
    field_length: int = 100
    integer_count: int = 8
    skew: float = 0.99

    def words(self):
        names = {"seed": "--seed", "field_count": "--field-count", "skew": "--skew",
                 "field_length": "--field-length", "integer_count": "--integer-count"}
        return [word for name, value in self._asdict().items() for word in (names[name], value)]


def random_word(seed, index):
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


@functools.lru_cache(maxsize=None)
def table(skew):
    weights = [float(k + 1) ** -skew for k in range(VALUES)]
    total = 0.0
    for weight in reversed(weights):
        total += weight
    shares = [int(weight / total * 2.0 ** 64) for weight in weights]
    shares[0] = (1 << 64) - sum(shares[1:])
    slots = [(0, k) for k in range(VALUES)]
    small = [k for k in range(VALUES) if shares[k] < SLOT]
    large = [k for k in range(VALUES) if shares[k] >= SLOT]
    while small:
        needy, rich = small.pop(), large[-1]
        slots[needy] = (shares[needy], rich)
        shares[rich] -= SLOT - shares[needy]
        if shares[rich] < SLOT:
            small.append(large.pop())
    return slots


def document_id(number, offset):
    block, within = offset >> 20, offset & 0xFFFFF
    stripe = int(f"{block & 0xFF:08b}"[::-1], 2)
    return number << 40 | stripe << 32 | block >> 8 << 20 | within


def fields(options, record):
    """The fields of a record, in order, without its _id."""
    per_field = -(-options.field_length // 8)
    at = record * (options.field_count * per_field + options.integer_count)
    result = {}
    for field in range(options.field_count):
        words = [random_word(options.seed, at + i).to_bytes(8, "little") for i in range(per_field)]
        result[f"f{field}"] = b"".join(words)[:options.field_length]
        at += per_field
    for field in range(options.integer_count):
        word = random_word(options.seed, at)
        threshold, alias = table(options.skew)[word >> 48]
        result[f"n{field}"] = word >> 48 if word & (SLOT - 1) < threshold else alias
        at += 1
    return result


def document(options, record, number=1, first=0):
    """The document of a record. `number`: of its source; `first`: the first record of its source."""
    key = document_id(number, (record - first) * STEP)
    return {"_id": bson.int64.Int64(key), **fields(options, record)}


def encoded(options, record, number=1, first=0):
    return support.encoded(document(options, record, number, first))
