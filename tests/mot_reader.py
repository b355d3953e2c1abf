# SPDX-License-Identifier: Apache-2.0
"""An independent reader of MOT files, with which the loader's documents are compared.

It was written from the published layouts alone, without the C parser, and to be obviously right
rather than fast: one record at a time, plain Python, no shared tables. Where the two differ, one of
them is wrong.

Where the layouts are ambiguous, both follow the same rules: a number has at most ten digits; ids,
class, type and result of a test are never missing; a surplus separator in a file with pipes or tabs
belongs to the model, one in a file with commas is an error; text contains no NUL byte.

    reading = read("test_result_2015.txt.gz", names="short", number=1)
    reading.documents      -> [{"_id": ..., "t": ..., ...}, ...]   in file order
    reading.rejects        -> [Reject(offset, line, column), ...]

Integers come out as Python ints and dates as naive UTC datetimes. Only `_id` is always 64 bits
wide; any other integer is as wide as its value needs.
"""
import datetime
import gzip
import re
from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional

UINT, TEXT, CODE, DATE, MOMENT, MARK = "uint", "text", "code", "date", "moment", "mark"


class Column(NamedTuple):
    name: str            # as in the header of the file, and the long key
    short: str           # the short key
    kind: str
    required: bool = False


RESULT = [
    Column("test_id", "t", UINT, True),
    Column("vehicle_id", "v", UINT, True),
    Column("test_date", "d", DATE),
    Column("test_class_id", "c", CODE, True),
    Column("test_type", "y", TEXT, True),
    Column("test_result", "r", TEXT, True),
    Column("test_mileage", "m", UINT),
    Column("postcode_area", "s", TEXT),
    Column("make", "k", TEXT),
    Column("model", "o", TEXT),
    Column("colour", "u", TEXT),
    Column("fuel_type", "f", TEXT),
    Column("cylinder_capacity", "e", UINT),
    Column("first_use_date", "i", DATE),
]
COMPLETED = Column("completed_date", "completed_date", MOMENT)
ITEM = [
    Column("test_id", "t", UINT, True),
    Column("rfr_id", "q", UINT, True),
    Column("rfr_type_code", "a", TEXT),
    Column("location_id", "l", UINT),
    Column("dangerous_mark", "g", MARK),
]
# The 2012 layout: three locations of one character each.
ITEM_2012 = [
    Column("test_id", "t", UINT, True),
    Column("rfr_id", "q", UINT, True),
    Column("rfr_type_code", "a", TEXT),
    Column("lat_location_id", "lat_location_id", TEXT),
    Column("long_location_id", "long_location_id", TEXT),
    Column("vert_location_id", "vert_location_id", TEXT),
    Column("dangerous_mark", "g", MARK),
]
# Names of the first columns of the lookup tables, and of their columns with numbers.
LOOKUP_FIRST = {"rfr_id", "test_item_id", "id", "type_code", "result_code"}
LOOKUP_NUMBERS = {"rfr_id", "test_item_id", "id", "parent_id", "test_item_set_section_id"}
RENAMED = {"mot_test_rfr_location_type_id": "location_id"}

DATE_FORM = re.compile(rb"(\d{4})-(\d{2})-(\d{2})\Z")
MOMENT_FORM = re.compile(rb"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?Z?)?\Z")


class Reject(NamedTuple):
    offset: int          # of the record's first byte in the uncompressed stream
    line: int            # 1-based
    column: Optional[str]

    @property
    def place(self):
        return self.line, self.offset, self.column


class NotMot(Exception):
    """The file is not MOT data."""


class Bad(Exception):
    """The record is a reject."""

    def __init__(self, why, column=None):
        super().__init__(why)
        self.column = column


@dataclass
class Reading:
    """The content of a file, and the counts that run.json has of it."""
    documents: List[Dict] = field(default_factory=list)
    rejects: List[Reject] = field(default_factory=list)
    repeated_headers: int = 0
    blank_lines: int = 0
    repaired: int = 0
    transcoded: int = 0           # records that were not UTF-8, or in ISD not printable ASCII
    length_mismatches: int = 0    # records whose length differs from the one in their first field
    malformed_fields: int = 0
    unknown_groups: int = 0

    @property
    def records(self):
        """Every line that is neither blank nor a header."""
        return len(self.documents) + len(self.rejects)


def document_id(number, offset):
    """The _id of the record at `offset` of source `number`: 0 | 23 bits source | 8 bits stripe (the
    block's low byte, mirrored) | 12 bits row | 20 bits offset in the block of 1 MiB."""
    block, within = divmod(offset, 1 << 20)
    row, low = divmod(block, 256)
    stripe = int(format(low, "08b")[::-1], 2)
    return number << 40 | stripe << 32 | row << 20 | within


def content(path):
    """The uncompressed bytes of a plain or gzip file."""
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def split_lines(data):
    """Yields (offset, line number, bytes without line end)."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    line = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            end = len(data)
        line += 1
        text = data[start:end]
        yield start, line, text[:-1] if text.endswith(b"\r") else text
        start = end + 1


# A quoted field, in which a backslash or a second quote escapes a quote; and a pair of both characters.
QUOTED = re.compile(rb'"((?:[^"\\]|\\["\\]|""|\\(?!["\\]))*)"(?!")')
ESCAPED = re.compile(rb'\\["\\]|""')


def split_fields(record, delimiter):
    """The fields of a record. Only files with commas have quoted fields, which must be closed before the
    line ends."""
    if delimiter != b"," or b'"' not in record:
        return record.split(delimiter)
    fields, at = [], 0
    while True:
        if record[at:at + 1] == b'"':
            quoted = QUOTED.match(record, at)
            if not quoted:
                raise Bad("quote not closed", len(fields))
            at = quoted.end()
            if record[at:at + 1] not in (b"", b","):
                raise Bad("text after closing quote", len(fields))
            fields.append(ESCAPED.sub(lambda pair: pair[0][1:], quoted[1]))
        else:
            stop = record.find(b",", at)
            stop = len(record) if stop < 0 else stop
            fields.append(record[at:stop])
            at = stop
        if at >= len(record):
            return fields
        at += 1                                   # past the comma; an empty field may follow


def sniff(first):
    """(delimiter, header names or None) of a file with this first line."""
    if re.match(rb"\d+[|\t]", first):
        return (b"|" if first.count(b"|") >= first.count(b"\t") else b"\t"), None
    delimiter = max(b"|", b",", b"\t", key=first.count)
    try:
        names = [name.decode().strip().lower() for name in split_fields(first, delimiter)]
    except (Bad, UnicodeDecodeError):
        raise NotMot("first line is no header") from None
    if names[0] == "test_id" or (names[0] in LOOKUP_FIRST and delimiter == b"|"):
        return delimiter, names
    raise NotMot("first line is no header")


def bind(names, fields):
    """The columns by header names, or by the number of fields of a headerless record."""
    if names is None:
        if fields >= len(RESULT):
            return RESULT
        if fields == len(ITEM_2012):
            return ITEM_2012
        raise NotMot(f"{fields} columns without a header")
    names = [RENAMED.get(name, name) for name in names]
    if names[0] != "test_id":
        return [Column(name, name, UINT if name in LOOKUP_NUMBERS else
                       CODE if name == "test_class_id" else TEXT) for name in names]
    if not {"vehicle_id", "rfr_id"} & set(names):
        raise NotMot("neither results nor items")
    known = RESULT if "vehicle_id" in names else ITEM
    by_name = {column.name: column for column in [*known, COMPLETED]}
    return [by_name.get(name, Column(name, name, TEXT)) for name in names]


def to_date(value):
    match = DATE_FORM.match(value)
    if not match:
        raise ValueError("not a date")
    return datetime.datetime(*map(int, match.groups()))


def to_moment(value):
    match = MOMENT_FORM.match(value)
    if not match:
        raise ValueError("not a date and time")
    *parts, fraction = match.groups()
    thousandths = int((fraction or b"0").ljust(3, b"0")[:3])
    return datetime.datetime(*(int(part or 0) for part in parts), thousandths * 1000)


def convert(column, value, encoding):
    """(value or None when missing, transcoded?)."""
    if column.kind == MARK:
        if value not in (b"", b"D"):
            raise ValueError("not D")
        return (True if value == b"D" else None), False
    if value == b"" or (value == b"NULL" and column.kind in (DATE, MOMENT)):
        if column.required:
            raise ValueError("missing")
        return None, False
    if column.kind == UINT:
        if not re.fullmatch(rb"\d{1,10}", value):
            raise ValueError("not a whole number of at most ten digits")
        return int(value), False
    if column.kind == DATE:
        return to_date(value), False
    if column.kind == MOMENT:
        return to_moment(value), False
    if b"\0" in value:
        raise ValueError("a NUL byte")
    if column.kind == CODE and re.fullmatch(rb"0|[1-9]\d{0,8}", value):
        return int(value), False
    try:
        return value.decode("utf-8"), False
    except UnicodeDecodeError:
        if encoding != "latin-1":
            raise ValueError("not UTF-8") from None
        # The five bytes that windows-1252 does not define are read as Latin-1.
        return "".join(bytes([b]).decode("cp1252") if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
                       else chr(b) for b in value), True


def read(path, names="short", number=1, encoding="utf-8", trim=False):
    """Reads a file. `names`: "short" or "long" keys. `number`: of the source, for `_id`. `encoding`:
    "utf-8", where other bytes are an error, or "latin-1", where they are read as windows-1252.
    `trim`: removes blanks from both ends of every field, in every dialect."""
    return read_bytes(content(path), names, number, encoding, trim)


def read_bytes(data, names="short", number=1, encoding="utf-8", trim=False):
    lines = list(split_lines(data))
    first = next((text for _, _, text in lines if text), None)
    if first is None:
        raise NotMot("no data")
    delimiter, header = sniff(first)
    columns = bind(header, len(split_fields(first, delimiter)))
    result = Reading()
    names_of_columns = b"" if header is None else delimiter.join(name.encode() for name in header).lower()
    model = next((i for i, column in enumerate(columns) if column.name == "model"), None)
    seen_header = header is None
    for offset, line, text in lines:
        if not text:
            result.blank_lines += 1
            continue
        if header and text.replace(b'"', b"").lower() == names_of_columns:
            result.repeated_headers += seen_header
            seen_header = True
            continue
        document, odd = {"_id": document_id(number, offset)}, False
        try:
            fields = split_fields(text, delimiter)
            surplus = len(fields) - len(columns)
            if surplus > 0 and delimiter != b"," and model is not None:
                middle = delimiter.join(fields[model:model + surplus + 1])
                fields[model:model + surplus + 1] = [middle]
            elif surplus:
                raise Bad(f"{len(fields)} fields, not {len(columns)}")
            for column, value in zip(columns, fields):
                if trim:
                    value = value.strip(b" ")
                elif header is None:      # dialect A
                    value = value.rstrip(b" ")
                try:
                    value, transcoded = convert(column, value, encoding)
                except ValueError as error:
                    raise Bad(str(error), column.name) from None
                odd |= transcoded
                if value is not None:
                    document[column.short if names == "short" else column.name] = value
        except Bad as bad:
            column = bad.column
            if isinstance(column, int):
                column = columns[column].name if column < len(columns) else None
            result.rejects.append(Reject(offset, line, column))
            continue
        result.repaired += surplus > 0
        result.transcoded += odd
        result.documents.append(document)
    return result
