# SPDX-License-Identifier: Apache-2.0
"""An independent reader of ISD and ISD-Lite files, with which the loader's documents are compared.

It was written from the published layouts alone, without the C parser, and to be obviously right
rather than fast. It shares one table with the loader, schemas/isd-groups.tsv, which the tests compare
with the published list of fields.

Where the layouts are ambiguous, both follow the same rules. A record whose length differs from its
length field is rejected if its columns are shifted as well: no sign, or no section, at a fixed offset
that requires one. Sections occur in their order, each once. An empty section, a repeated group that
may not be repeated, and an entry of the wrong kind end the parsing of groups, up to the next valid
section; so does a group after which no other group can begin, and that group is not used. The bytes
that were not parsed are kept in `unparsed`, with the tag of a section of which nothing was parsed.
Parts from several offsets, and bytes after the end given by the length field, are joined by newlines.

    reading = read("010010-99999-1988.gz", missing="omit", number=1)
    reading.documents      -> [{"_id": ..., "st": ..., "ts": ..., ...}, ...]   in file order
    reading.rejects        -> [Reject(offset, line, column, why, raw), ...]

Numbers with a divisor come out as floats, others as ints, and dates as naive UTC datetimes.
"""
import csv
import datetime
import pathlib
import re
from typing import List, NamedTuple

from mot_reader import Bad, Reading, Reject, content, document_id, split_lines

TABLE = pathlib.Path(__file__).resolve().parent.parent / "schemas" / "isd-groups.tsv"
NUMBERS = "nsm"


class Field(NamedTuple):
    path: str            # in the sub-document, dots between levels
    width: int
    kind: str            # n s m: numbers; c q f d t: text
    divisor: float = 1   # 0.1 multiplies by ten
    missing: str = None  # the published mark of a missing value


class Group(NamedTuple):
    key: str
    array: bool
    fields: List[Field]

    @property
    def width(self):
        return sum(part.width for part in self.fields)


# Bytes 61 to 105, as paths in the whole document.
MANDATORY = [
    Field("wind.direction.angle", 3, "n", 1, "999"), Field("wind.direction.quality", 1, "q"),
    Field("wind.type", 1, "c", 1, "9"),
    Field("wind.speed.rate", 4, "n", 10, "9999"), Field("wind.speed.quality", 1, "q"),
    Field("skyCondition.ceilingHeight.value", 5, "n", 1, "99999"),
    Field("skyCondition.ceilingHeight.quality", 1, "q"),
    Field("skyCondition.ceilingHeight.determination", 1, "c", 1, "9"),
    Field("skyCondition.cavok", 1, "c", 1, "9"),
    Field("visibility.distance.value", 6, "n", 1, "999999"),
    Field("visibility.distance.quality", 1, "q"),
    Field("visibility.variability.value", 1, "c", 1, "9"),
    Field("visibility.variability.quality", 1, "q"),
    Field("airTemperature.value", 5, "s", 10, "+9999"), Field("airTemperature.quality", 1, "q"),
    Field("dewPoint.value", 5, "s", 10, "+9999"), Field("dewPoint.quality", 1, "q"),
    Field("pressure.value", 5, "n", 10, "99999"), Field("pressure.quality", 1, "q"),
]
MANDATORY_ORDER = ["airTemperature", "dewPoint", "pressure", "wind", "visibility", "skyCondition"]
NUMBER_FORM = {"n": re.compile(rb"\d+\Z"), "s": re.compile(rb"[+-]\d+\Z"), "m": re.compile(rb"-?\d+\Z")}

# The sections in their order, and the bytes at which a walk may resume after an invalid section.
SECTIONS = {b"ADD": re.compile(rb"(?!)"),
            b"REM": re.compile(rb"REM(?:SYN|AWY|MET|SOD|SOM|HPD)\d{3}"),
            b"EQD": re.compile(rb"EQD[QPRCDN]\d\d"), b"QNN": re.compile(rb"QNN[A-Y]")}
REMARK = re.compile(rb"(SYN|AWY|MET|SOD|SOM|HPD)(\d{3})")


def published_table(path):
    """{id: Group} from the list of fields that has a row for each of them."""
    rows = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.reader((line for line in file if not line.startswith("#")), delimiter="\t"):
            first, last, key, _, _, name, _, width, kind, divisor, _, marker, _ = row
            group = rows.setdefault((first, last), Group(key, first != last, []))
            group.fields.append(Field(name, int(width), kind, float(divisor or 1), marker or None))
    return _by_id(rows)


def table(path=TABLE):
    """{id: Group} from the table of this project, which has one line per group."""
    rows = {}
    for line in path.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        first, last, key, layout = line.split("\t")
        group = rows[first, last] = Group(key, first != last, [])
        for text in layout.split(", "):
            name, kind, width, scale, by, marker = re.match(
                r"(\S+) ([nsmcqfdt])(\d+)(?:([/*])(\d+))?(?:=(\S+))?( |\Z)", text).groups()[:6]
            divisor = 1 if not by else int(by) if scale == "/" else 1 / int(by)
            if kind in "nmd":
                marker = "9" * int(width)
            elif kind == "s":
                marker = "+" + "9" * (int(width) - 1)
            group.fields.append(Field(name, int(width), kind, divisor, marker))
    return _by_id(rows)


def _by_id(rows):
    """A family of groups has all ids from its first digit to 9, even undocumented ones."""
    return {first[:2] + str(digit): group for (first, last), group in rows.items()
            for digit in range(int(first[2]), 10 if first != last else int(first[2]) + 1)}


class _Lost(Exception):
    """The record has no valid section or group at this offset."""


PRINTABLE = bytes(range(0x20, 0x7F))
BLANKED = bytes(0x20 if byte < 0x20 or byte == 0x7F else byte for byte in range(256))


def text_of(value):
    """Bytes as text: control characters become blanks, other bytes are Latin-1."""
    return value.translate(BLANKED).decode("latin-1")


def station(usaf, wban, elsewhere=None):
    if usaf != "999999":
        return "u" + usaf
    return "w" + wban if wban != "99999" else elsewhere


def head(key, usaf, wban, moment, elsewhere=None):
    """The first fields of a document."""
    document = {"_id": key, "st": station(usaf, wban, elsewhere), "ts": moment}
    if usaf != "999999":
        document["usaf"] = usaf
    if wban != "99999":
        document["wban"] = wban
    return document


def nothing_found():
    """Empty containers for the sections of a record."""
    return {"sections": [], "groups": {}, "remarks": {}, "elementQuality": [], "originalObservation": [],
            "unparsed": []}


def add_group(found, name, group, value):
    found["sections"].append(name)
    if group.array:
        found["groups"].setdefault(group.key, []).append(value)
    else:
        found["groups"][group.key] = value


def put(document, path, value):
    *parents, last = path.split(".")
    for name in parents:
        document = document.setdefault(name, {})
    document[last] = value


def rename(document, names, above=""):
    """`names`: {path of a key: its new name}."""
    if isinstance(document, list):
        return [rename(item, names, above) for item in document]
    if not isinstance(document, dict):
        return document
    return {names.get(above + key, key): rename(value, names, above + key + ".") for key, value in document.items()}


class _Record:
    """One record of packed ASCII."""

    def __init__(self, raw, groups, missing, reading):
        self.raw, self.groups, self.reading = raw, groups, reading
        self.keep = missing == "raw"
        self.end = len(raw)

    # Fields

    def number(self, raw, form):
        """An unscaled number; None if the field is not a number."""
        if not NUMBER_FORM[form].match(raw):
            self.reading.malformed_fields += 1
            return None
        return int(raw)

    def value(self, raw, part):
        """A field's value; None if it is missing."""
        if part.missing is not None and not self.keep and raw == part.missing.encode():
            return None
        if part.kind not in NUMBERS:
            text = text_of(raw)
            return text.rstrip(" ") if part.kind == "t" else text
        number = self.number(raw, part.kind)
        if number is None or part.divisor == 1:
            return number
        return int(number / part.divisor) if part.divisor < 1 else number / part.divisor

    def fields(self, at, parts):
        """The sub-document of these fields, which begin at byte `at`."""
        raws = []
        for part in parts:
            raws.append(self.raw[at:at + part.width])
            at += part.width
        return self.values(raws, parts)

    def values(self, raws, parts):
        """The sub-document of fields that are not adjacent."""
        document, absent = {}, None
        for raw, part in zip(raws, parts):
            value, parent = self.value(raw, part), part.path.rpartition(".")[0]
            if part.kind in "qf" and raw == b"9" and absent == parent and not self.keep:
                value = None
            absent = parent if value is None else None
            if value is not None:
                put(document, part.path, value)
        return document

    # Sections

    def document(self, number, offset, ends_text):
        raw = self.raw
        if len(raw) < 105:
            raise Bad(f"{len(raw)} bytes, a record has 105 at least")
        if len(raw) > 105 + 9999:
            raise Bad(f"{len(raw)} bytes, a record has 10104 at most")
        moment = self.time(raw[15:27])
        if raw[:4].isdigit():
            self.end = min(len(raw), 105 + int(raw[:4]))
        if raw[:4].isdigit() and 105 < len(raw) < 105 + int(raw[:4]) and ends_text:
            raise Bad("the text ends within it")
        if not raw[:4].isdigit() or len(raw) != 105 + int(raw[:4]):
            tag = raw[105:self.end][:3]
            if any(raw[at:at + 1] not in (b"+", b"-") for at in (28, 34, 46, 87, 93)) or \
                    not any(name.startswith(tag) for name in SECTIONS):
                raise Bad("its length differs from the declared one, and its columns are shifted")
            self.reading.length_mismatches += 1
        document = self.control(document_id(number, offset), moment)
        mandatory = self.fields(60, MANDATORY)
        document.update((key, mandatory[key]) for key in MANDATORY_ORDER if key in mandatory)
        self.variable(document)
        return document

    def control(self, key, moment):
        raw = self.raw
        document = head(key, text_of(raw[4:10]), text_of(raw[10:15]), moment, "x" + text_of(raw[28:41]))
        latitude = longitude = None
        if raw[28:34] != b"+99999":
            latitude = self.number(raw[28:34], "s")
        if raw[34:41] != b"+999999":
            longitude = self.number(raw[34:41], "s")
        if latitude is not None and longitude is not None and \
                abs(latitude) <= 90000 and abs(longitude) <= 180000:
            document["position"] = {"type": "Point", "coordinates": [longitude / 1000, latitude / 1000]}
        document.update(self.fields(46, [Field("elevation", 5, "s", 1, "+9999"),
                                         Field("callLetters", 5, "t", 1, "99999"),
                                         Field("qualityControlProcess", 4, "c")]))
        document.update(self.fields(27, [Field("dataSource", 1, "c", 1, "9")]))
        document.update(self.fields(41, [Field("type", 5, "t", 1, "99999")]))
        return document

    @staticmethod
    def time(raw):
        if not raw.isdigit():
            raise Bad("not digits", "date and time")
        hour, minute = int(raw[8:10]), int(raw[10:])
        try:
            day = datetime.datetime(int(raw[:4]), int(raw[4:6]), int(raw[6:8]))
        except ValueError as error:
            raise Bad(str(error), "date and time") from None
        if minute > 59 or hour > 24 or (hour == 24 and minute > 0):
            raise Bad("no such time", "date and time")
        return day + datetime.timedelta(hours=hour, minutes=minute)

    def variable(self, document):
        """The sections after byte 105."""
        found = nothing_found()
        self.sections(found)
        if self.end < len(self.raw):
            found["unparsed"].append(text_of(self.raw[self.end:]))
        self.finish(document, found)

    def sections(self, found):
        at, order = 105, list(SECTIONS)
        while at < self.end:
            try:
                at = self.section(at, order, found)
            except _Lost as lost:
                lost = lost.args[0]
                at = next((i for i in range(lost, self.end) if self.walks(i, order)), self.end)
                found["unparsed"].append(text_of(self.raw[lost:at]))

    def finish(self, document, found):
        self.reading.unknown_groups += bool(found["unparsed"])
        if found["sections"]:
            document["sections"] = found["sections"]
        document.update((key, value) for key, value in found["groups"].items() if value != {})
        for key in ("remarks", "elementQuality", "originalObservation"):
            if found[key]:
                document[key] = found[key]
        if found["unparsed"]:
            document["unparsed"] = "\n".join(found["unparsed"])

    def section(self, at, order, found):
        """Reads the section at `at`, and returns its end. `order`: the sections that may follow;
        unless the section is empty, those that may not follow it are removed."""
        tag = self.raw[at:min(at + 3, self.end)]
        if tag not in order:
            raise _Lost(at)
        read = {b"ADD": self.additional, b"REM": self.remark, b"EQD": self.element_quality, b"QNN": self.original}[tag]
        begin, at = at, at + 3
        while at < self.end and (at == begin + 3 or self.raw[at:at + 3] not in SECTIONS):
            try:
                at = read(at, found)
            except _Lost as lost:
                raise _Lost(begin if lost.args[0] == begin + 3 else lost.args[0]) from None
            if tag in order:
                del order[:order.index(tag) + 1]
        if at == begin + 3:         # only a tag, at the end
            raise _Lost(begin)
        return at

    def take(self, at, length):
        if at + length > self.end:
            raise _Lost(at)
        return self.raw[at:at + length]

    def additional(self, at, found):
        """Reads all groups."""
        places, keys = [], set()
        while at < self.end and self.raw[at:at + 3] not in SECTIONS:
            name = text_of(self.raw[at:at + 3])
            group = self.groups.get(name)
            if not group or at + 3 + group.width > self.end or \
                    (group.key in keys and not group.array):
                break
            places.append((at, name, group))
            keys.add(group.key)
            at += 3 + group.width
        next_tag = self.raw[at:min(at + 3, self.end)]
        lost = next_tag and (next_tag not in list(SECTIONS)[1:] or not places)
        if lost and places and not re.match(rb"[A-Z]([A-Z](\d|\Z)|\Z)", next_tag):
            at = places.pop()[0]
        for place, name, group in places:
            add_group(found, name, group, self.fields(place + 3, group.fields))
        if lost:
            raise _Lost(at)
        return at

    def remark(self, at, found):
        head = REMARK.match(self.take(at, 6))
        if not head:
            raise _Lost(at)
        kind, length = head[1].decode().lower(), int(head[2])
        text = text_of(self.take(at, 6 + length)[6:])
        before = found["remarks"].get(kind)
        found["remarks"][kind] = text if before is None else before + "\n" + text
        return at + 6 + length

    def element_quality(self, at, found):
        entry = self.take(at, 16)
        value, reason, parameter = entry[3:9], entry[9:10], entry[10:]
        name = text_of(entry[:3])
        if not re.match(rb"[QPRCDN]\d\d", entry):
            raise _Lost(at)
        if re.match(rb"[\d+ -]{6}\Z", value) and re.match(rb"[0-9A-R]", reason) and \
                re.match(rb"[A-Za-z]| {6}", parameter):
            found["elementQuality"].append({
                "id": name, "value": text_of(value).rstrip(" "), "reason": text_of(reason),
                "parameter": text_of(parameter).rstrip(" ")})
        else:
            found["elementQuality"].append({"id": name, "raw": text_of(entry[3:])})
        return at + 16

    def original(self, at, found):
        entry = self.take(at, 11)
        if not b"A" <= entry[:1] <= b"Y":
            raise _Lost(at)
        found["originalObservation"].append({
            "element": text_of(entry[:1]), "flags": text_of(entry[1:5]),
            "value": text_of(entry[5:])})
        return at + 11

    def walks(self, at, order):
        """Whether a section begins here from which a walk ends exactly at the end of the record."""
        order = list(order)
        begin = SECTIONS.get(self.raw[at:at + 3])
        if not begin or not begin.match(self.raw[:self.end], at):
            return False
        try:
            while at < self.end:
                at = self.section(at, order, nothing_found())
        except _Lost:
            return False
        return True


def read(path, missing="omit", number=1):
    """Reads a file of packed ASCII. `missing`: "omit", or "raw" to keep the published marks.
    `number`: of the source, for `_id`."""
    return read_bytes(content(path), missing, number)


def read_bytes(data, missing="omit", number=1):
    groups, result = table(), Reading()

    def parse(offset, text):
        return _Record(text, groups, missing, result).document(number, offset, offset + len(text) == len(data))
    return _each_line(data, parse, result)


def _each_line(data, parse, result):
    for offset, line, text in split_lines(data):
        if not text.strip(b" "):
            result.blank_lines += 1
            continue
        try:
            document = parse(offset, text)
        except Bad as bad:
            result.rejects.append(Reject(offset, line, bad.column))
            continue
        result.transcoded += bool(text.translate(None, PRINTABLE))
        result.documents.append(document)
    return result


# Global-hourly tables

PLAIN = {"STATION", "DATE", "SOURCE", "LATITUDE", "LONGITUDE", "ELEVATION", "NAME", "REPORT_TYPE",
         "CALL_SIGN", "QUALITY_CONTROL", "REM", "EQD"}
PACKS = {"WND": 0, "CIG": 5, "VIS": 9, "TMP": 13, "DEW": 15, "SLP": 17, "end": 19}


def read_csv(path, missing="omit", number=1):
    """Reads a table. The station's name is the last field of a document; a position of 0 / 0 is
    missing; cells in a wrong format are kept as `NAME=cell; NAME=cell`; an unknown
    qualityControlProcess is stored as blanks, since packed records always have one."""
    groups, result, header = table(), Reading(), None

    def parse(offset, text):
        try:
            cells = next(csv.reader([text.decode("latin-1")], strict=True))
        except csv.Error as error:
            raise Bad(str(error)) from None
        if len(cells) != len(header):
            raise Bad(f"{len(cells)} cells")
        row = dict(zip(header, cells))
        return _Row(groups, missing, result).document(row, document_id(number, offset))
    data = content(path)
    first = data[:data.index(b"\n")].rstrip(b"\r")
    header = next(csv.reader([first.decode()]))
    # The header and its repetitions become blank lines, so that offsets and line numbers stay.
    _each_line(data.replace(first, b" " * len(first)), parse, result)
    result.repeated_headers = data.count(first) - 1
    result.blank_lines -= data.count(first)
    return result


class _Row(_Record):
    """One row of a table."""

    def __init__(self, groups, missing, reading):
        super().__init__(b"", groups, missing, reading)
        self.misfits = []

    def misfit(self, name, text):
        self.misfits.append(text_of(f"{name}={text}".encode("latin-1")))

    def cell(self, row, name, parts):
        """The sub-document of a cell; None if the cell is empty or in a wrong format."""
        text = row.get(name, "")
        if not text:
            return None
        raws = [raw.encode("latin-1") for raw in text.split(",")]
        fits = len(raws) == len(parts) and all(raws)
        for i, (raw, part) in enumerate(zip(raws, parts)):
            if part.kind == "t" or part.width >= 4 and part.kind not in NUMBERS:
                raws[i] = raw.ljust(part.width)
            elif part.kind in NUMBERS and len(raw) < part.width:
                sign = raw[:1] if raw[:1] in (b"+", b"-") else b""
                digits = raw[len(sign):]
                if re.match(rb"[0-9]+\Z", digits) and \
                        (part.kind == "m" or bool(sign) == (part.kind == "s")):
                    raws[i] = sign + digits.rjust(part.width - len(sign), b"0")
            fits = fits and len(raws[i]) == part.width
        if fits:
            return self.values(raws, parts)
        self.misfit(name, text)
        return None

    def number_of(self, row, name, limit):
        """A decimal number; None if the cell is empty, no number, or beyond the limit."""
        text = row.get(name, "")
        if re.match(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", text, re.ASCII) and \
                abs(float(text)) <= limit:
            return float(text)
        if text:
            self.misfit(name, text)
        return None

    def document(self, row, key):
        found, numbers, cells = nothing_found(), {}, {}
        one = {"CALL_SIGN": Field("callLetters", 5, "t", 1, "99999"),
               "QUALITY_CONTROL": Field("qualityControlProcess", 4, "c"),
               "SOURCE": Field("dataSource", 1, "c", 1, "9"),
               "REPORT_TYPE": Field("type", 5, "t", 1, "99999")}
        packs = list(PACKS.items())
        parts = {name: MANDATORY[first:behind] for (name, first), (_, behind) in zip(packs, packs[1:])}
        limits = {"LATITUDE": 90, "LONGITUDE": 180, "ELEVATION": 9998.4999}
        for name in row:
            if name == "STATION" and len(row[name]) != 11:
                raise Bad("no station", name)
            if name == "DATE":
                moment = self.moment(row[name])
            elif name in limits:
                numbers[name] = self.number_of(row, name, limits[name])
            elif name in one or name in parts:
                cells[name] = self.cell(row, name, parts.get(name) or [one[name]])
            elif name in self.groups:
                value = self.cell(row, name, self.groups[name].fields)
                if value is not None:
                    add_group(found, name, self.groups[name], value)
            elif name not in PLAIN and row[name]:
                self.misfit(name, row[name])
        name = text_of(row["STATION"].encode("latin-1"))
        document = head(key, name[:6], name[6:11], moment)
        place = [numbers.get("LONGITUDE"), numbers.get("LATITUDE")]
        if None not in place and place != [0, 0]:
            document["position"] = {"type": "Point", "coordinates": place}
        if place.count(None) == 1:
            alone = "LATITUDE" if place[0] is None else "LONGITUDE"
            self.misfit(alone, row[alone])
        if numbers.get("ELEVATION") is not None:
            whole = int(numbers["ELEVATION"])
            document["elevation"] = whole if whole == numbers["ELEVATION"] else numbers["ELEVATION"]
        for name in one:
            unknown = {"qualityControlProcess": "    "} if name == "QUALITY_CONTROL" else {}
            document.update(cells.get(name) or unknown)
        mandatory = {}
        for name in parts:
            for outer, value in (cells.get(name) or {}).items():
                mandatory.setdefault(outer, {}).update(value)
        document.update((name, mandatory[name]) for name in MANDATORY_ORDER if name in mandatory)
        self.raw = b" " * 105 + b"".join(
            tag.encode() + row[tag].encode("latin-1") for tag in ("REM", "EQD") if row.get(tag))
        self.end = len(self.raw)
        self.sections(found)
        if self.misfits:
            found["unparsed"].append("; ".join(self.misfits))
        self.finish(document, found)
        if row.get("NAME"):
            document["name"] = text_of(row["NAME"].encode("latin-1"))
        return document

    @staticmethod
    def moment(text):
        match = re.match(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)\Z", text, re.ASCII)
        try:
            return datetime.datetime(*map(int, match.groups()))
        except (AttributeError, ValueError):
            raise Bad("no date and time", "DATE") from None


# ISD-Lite

LITE = [("airTemperature.value", 10), ("dewPoint.value", 10), ("pressure.value", 10),
        ("wind.direction.angle", 1), ("wind.speed.rate", 10), ("skyCover.code", 1)]


def read_lite(path, missing="omit", number=1):
    """Reads an ISD-Lite file. Its name contains the station."""
    st = station(*pathlib.Path(path).name.split("-")[:2])

    def parse(offset, text):
        return lite_document(text, st, missing, document_id(number, offset))
    return _each_line(content(path), parse, Reading())


def lite_document(text, st, missing, key):
    text = text.rstrip(b" ")
    if len(text) != 61:
        raise Bad(f"{len(text)} bytes instead of 61")
    if not re.match(rb"\d{4} \d\d \d\d \d\d", text):
        raise Bad("not digits", "date and hour")
    try:
        moment = datetime.datetime(*map(int, text[:13].split()))
    except ValueError as error:
        raise Bad(str(error), "date and hour") from None
    document = {"_id": key, "st": st, "ts": moment}
    values = []
    for column in (text[i:i + 6] for i in range(13, 61, 6)):
        number = int(column) if re.match(rb" *-?\d+\Z", column) else None
        values.append(None if number == -9999 and missing != "raw" else number)
    for (path, divisor), value in zip(LITE, values):
        if value is not None:
            put(document, path, value if divisor == 1 else value / divisor)
    rain = []
    for period, value in zip((1, 6), values[6:]):
        if value == -1:
            rain.append({"period": period, "depth": 0.0, "condition": "2"})
        elif value is not None:
            rain.append({"period": period, "depth": value / 10})
    if rain:
        document["liquidPrecipitation"] = rain
    return document
