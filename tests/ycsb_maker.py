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
BLOCK = 1 << 20
BLOCK_BSON = 16 << 20  # documents of one block, at most


class Options(NamedTuple):
    seed: int = 1
    field_count: int = 8
    field_length: int = 100
    integer_count: int = 8
    skew: float = 0.99
    document_size: int = 0  # if given, field_length is not

    def words(self):
        return [word for name, value in self._asdict().items()
                if name != ("field_length" if self.document_size else "document_size")
                for word in ("--" + name.replace("_", "-"), value)]

    def lengths(self):
        """The lengths of the fields of bytes."""
        if not self.document_size:
            return [self.field_length] * self.field_count
        space = self.document_size - len(encoded(
            self._replace(document_size=0, field_length=0), 0, step=256))
        each, more = divmod(space, self.field_count)
        return [each] * (self.field_count - 1) + [each + more]

    def step(self):
        """Bytes between the offsets of consecutive records."""
        return step_of(self)


@functools.lru_cache(maxsize=None)
def step_of(options):
    size = options.document_size or len(encoded(options, 0, step=256))
    step = 256
    while BLOCK // step * size > BLOCK_BSON:
        step *= 2
    return step


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
    lengths = options.lengths()
    at = record * (sum(-(-length // 8) for length in lengths) + options.integer_count)
    result = {}
    for field, length in enumerate(lengths):
        count = -(-length // 8)
        words = [random_word(options.seed, at + i).to_bytes(8, "little") for i in range(count)]
        result[f"f{field}"] = b"".join(words)[:length]
        at += count
    for field in range(options.integer_count):
        word = random_word(options.seed, at)
        threshold, alias = table(options.skew)[word >> 48]
        result[f"n{field}"] = word >> 48 if word & (SLOT - 1) < threshold else alias
        at += 1
    return result


def document(options, record, number=1, first=0, step=None):
    """The document of a record. `number`: of its source; `first`: the first record of its source."""
    key = document_id(number, (record - first) * (step or options.step()))
    return {"_id": bson.int64.Int64(key), **fields(options, record)}


def encoded(options, record, number=1, first=0, step=None):
    return support.encoded(document(options, record, number, first, step))
