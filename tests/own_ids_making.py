# SPDX-License-Identifier: Apache-2.0
"""Documents with _ids of many types, and BSON files of them."""
import random

from support import bson


def id_of(number):
    """A different _id of another type for each number."""
    kinds = [
        lambda: bson.ObjectId(f"{number:024x}"), lambda: number, lambda: f"id {number}",
        lambda: {"n": number, "t": "x"}, lambda: number + 0.5,
        lambda: bson.Binary(number.to_bytes(16, "big"), 4),
        lambda: bson.int64.Int64(number << 33),
        lambda: bson.DatetimeMS(number), lambda: bson.Decimal128(f"{number}.25"),
    ]
    return kinds[number % len(kinds)]()


def documents(count, first=0, pad=0):
    """Two of three documents have an _id, some of them not as the first field."""
    draw = random.Random(first)
    made = []
    for number in range(first, first + count):
        one = {"n": number, "text": "x" * (pad + draw.randrange(30))}
        if number % 3 == 0:
            one = {"_id": id_of(number), **one}
        elif number % 3 == 1:
            one["_id"] = id_of(number)
        made.append(one)
    return made


def dump(made):
    return b"".join(bson.encode(one) for one in made)


def as_stored(one):
    """A document as the server stores it, as bytes, without the _id that a loader gives it."""
    fields = {key: value for key, value in one.items() if key != "_id"}
    if "_id" in one:
        fields = {"_id": one["_id"], **fields}
    return bson.encode(fields)


def found(raw, made):
    """The stored documents, of those that were made without an _id without that of the loader."""
    without = {one["n"] for one in made if "_id" not in one}
    result = []
    for one in raw:
        document = bson.decode(one, bson.CodecOptions(
            datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_MS))
        if document["n"] in without:
            assert isinstance(document.pop("_id"), bson.int64.Int64)
            result.append(bson.encode(document))
        else:
            result.append(bytes(one))
    return result


# Tables whose first column becomes the _id

def table_rows(first, count, word="text"):
    return [f"{number},{number % 7},{word} {number}" for number in range(first, first + count)]


def text_of(rows):
    return "\n".join(["id,k,t", *rows, ""]).encode()


def table_documents(rows):
    return [{"_id": int(number), "k": int(k), "t": t}
            for number, k, t in (row.split(",") for row in rows)]
