# SPDX-License-Identifier: Apache-2.0
"""The data generator's ISD records follow the published layout.

An independent reader, written here from the published layout, parses every record to its last byte. It
shares nothing with the generator and with the reader of the loader's tests, so that no mistake can be in
both.
"""
import datetime
import gzip
import math
import pathlib
import re
from collections import Counter

from test_datagen import DatagenCase

TOP = pathlib.Path(__file__).resolve().parents[2]
TAGS = ("ADD", "REM", "EQD", "QNN")
TYPES = {"FM-12", "FM-15", "FM-16", "SAO", "SY-SA", "SOD", "SOM"}

# Published shares of records, in percent (counted over 119,511 records).
GROUPS = {"GF1": 79, "MA1": 65, "GD1": 44, "GA1": 41, "AA1": 31, "MD1": 29, "MW1": 26, "GD2": 16,
          "GE1": 15, "GD3": 11, "AG1": 11, "GA2": 9, "KA1": 9, "AY1": 9, "AW1": 8, "AU1": 7,
          "KA2": 7, "SA1": 6, "GD4": 6, "OC1": 4, "AY2": 4, "GA3": 4, "AA2": 2, "MW2": 2,
          "AZ1": 1.5, "AZ2": 1.5, "OD1": 1, "GA4": 1, "OA1": 1, "AJ1": 1}
SECTIONS = {"ADD": 94, "REM": 75.1, "EQD": 11.2, "QNN": 7.3}
MISSING = {"pressure": 43, "ceiling": 33, "unlimited": 42, "dew point": 24, "visibility": 19,
           "temperature": 13}


# The first and the last id of each group, and the bytes after its id.
PUBLISHED = [line.split("\t")[:3] for line in (TOP / "tests/data/isd-widths.tsv").read_text().splitlines()
             if not line.startswith("#")]
FAMILIES = [first for first, _, _ in PUBLISHED]
WIDTHS = {f"{first[:2]}{digit}": int(width) for first, last, width in PUBLISHED
          for digit in range(int(first[2]), int(last[2]) + 1)}
WIDTHS.update(AW5=3, AW6=3)  # in published records, but not in the documentation


# The independent reader

class Wrong(Exception):
    """Why a record must be rejected: a column, or None for the whole line."""

    def __init__(self, column=None):
        super().__init__(column)
        self.column = column


class Record:
    """A record, parsed by its lengths to the end. `odd` lists its irregularities."""

    def __init__(self, line):
        if len(line) < 105:
            raise Wrong()
        self.ts = self.time(line[15:27])
        self.late = line[23:27] == "2400"
        usaf, wban, place = line[4:10], line[10:15], line[28:41]
        self.st = "u" + usaf if usaf != "999999" else \
            "w" + wban if wban != "99999" else "x" + place
        self.position = None
        if place[6:] != "+999999":
            self.position = int(place[:6]) / 1e3, int(place[6:]) / 1e3
        self.type = line[41:46].strip()
        self.temperature = None if line[87:92] == "+9999" else int(line[87:92])
        self.missing = [name for name, found in (
            ("pressure", line[99:104] == "99999"), ("ceiling", line[70:75] == "99999"),
            ("unlimited", line[70:75] == "22000"), ("dew point", line[93:98] == "+9999"),
            ("visibility", line[78:84] == "999999"), ("temperature", self.temperature is None),
        ) if found]
        self.odd, self.groups, self.sections, self.remarks, self.entries = set(), [], [], [], []
        if int(line[:4]) + 105 != len(line):
            self.odd.add("length")
        self.walk(line)

    @staticmethod
    def time(digits):
        if not re.fullmatch("[0-9]{12}", digits):
            raise Wrong("date and time")
        try:
            day = datetime.datetime.strptime(digits[:8], "%Y%m%d")
        except ValueError:
            raise Wrong("date and time") from None
        hours, minutes = int(digits[8:10]), int(digits[10:])
        if minutes > 59 or hours * 60 + minutes > 1440:
            raise Wrong("date and time")
        return day + datetime.timedelta(hours=hours, minutes=minutes)

    def walk(self, line):
        at = 105
        while at < len(line):
            tag = line[at:at + 3]
            assert tag in TAGS, f"no section at {at} of {line}"
            assert not self.sections or TAGS.index(tag) > TAGS.index(self.sections[-1]), line
            self.sections.append(tag)
            at = getattr(self, "walk_" + tag)(line, at + 3)
            if at is None:
                return
        assert at == len(line), f"walked to {at} of {len(line)}: {line}"

    def walk_ADD(self, line, at):
        while at < len(line) and line[at:at + 3] not in TAGS:
            group = line[at:at + 3]
            if group not in WIDTHS:
                self.odd.add("unknown group")
                return None
            if group in ("AW5", "AW6"):
                self.odd.add(group)
            self.groups.append((group, line[at + 3:at + 3 + WIDTHS[group]]))
            at += 3 + WIDTHS[group]
        return at

    def walk_REM(self, line, at):
        while at < len(line) and line[at:at + 3] not in TAGS:
            kind, length = line[at:at + 3], int(line[at + 3:at + 6])
            assert kind in ("SYN", "AWY", "MET", "SOD", "SOM"), line
            self.remarks.append((kind, line[at + 6:at + 6 + length]))
            at += 6 + length
        return at

    def walk_EQD(self, line, at):
        while at < len(line) and line[at:at + 3] != "QNN":
            assert re.fullmatch("[QPRCDN][0-9]{2}.{13}", line[at:at + 16]), line
            self.entries.append(line[at:at + 16])
            at += 16
        return at

    @staticmethod
    def walk_QNN(line, at):
        while at < len(line):
            assert re.fullmatch("[A-Y].{4}[ -][0-9]{5}", line[at:at + 11]), line
            at += 11
        return at


class Reading:
    """Files read back: records, and (line, offset, column) of each reject."""

    def __init__(self, data):
        self.records, self.rejects, self.lines = [], [], data.count(b"\n")
        offset = 0
        assert data == b"" or data.endswith(b"\n"), "the last line does not end"
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                self.records.append(Record(line.decode("ascii")))
            except Wrong as wrong:
                self.rejects.append((number, offset, wrong.column))
            offset += len(line) + 1


# The tests

class IsdCase(DatagenCase):
    def make(self, *words, name="made"):
        return self.generate("--format", "isd", *words, name=name)

    def make_folder(self, *words):
        """Returns the text of each file by its name."""
        self.generate("--format", "isd", *words, name="folder/")
        return {path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                for path in (self.scratch / "folder").iterdir()}


class SameSeed(IsdCase):
    def test_the_bytes_are_the_same_on_every_machine(self):
        # Lines of seed 1, unchanged since the first version. They change only with the tables or the
        # order of the draws.
        data = self.make("--rows", "2", "--dirt", "none")
        self.assertEqual(data.decode().split("\n"), GOLDEN)


GOLDEN = [
    "0157722540139042014010101537+30596-098142FM-15+0104KVTC V0202105N004152200059N0160005N5+"
    "01235+00775999999ADDGA1045+015005999GD12995+0150059GF199999999999999999995995MA110138510"
    "0145REMMET073METAR KVTC 010153Z 21007KT 10SM BKN250 12/08 A2993 RMK AO2 T01230077 TSNO",
    "0178722540139042014010102537+30596-098142FM-15+0104KVTC V0202205N004152200059N0160005N5+"
    "01205+00845101235ADDAA101000095GA1045+015005999GD12995+0150059GF107995999999999999995045"
    "MA1101235099995MW1025MW2105REMMET071METAR KVTC 010253Z 22007KT 10SM BKN250 12/08 A2989 R"
    "MK AO2 SLP123 58015",
    ""]


class CompleteRecords(IsdCase):
    """The lengths in each record and the layout of its lines are right."""

    def test_the_lengths_in_every_record_are_consistent(self):
        data = self.make("--rows", "40k", "--stations", "40", "--dirt", "none")
        reading = Reading(data)
        self.assertEqual((len(reading.records), reading.rejects), (40000, []))
        self.assertEqual({record.type for record in reading.records}, TYPES)
        most = 0
        for record in reading.records:
            ids = [group for group, _ in record.groups]
            self.assertEqual(ids, sorted(set(ids)), "ascending, none twice")
            for group in ids:
                before = f"{group[:2]}{int(group[2]) - 1}"
                self.assertTrue(before not in WIDTHS or before in ids, f"{group} without {before}")
            self.assertEqual(record.odd, set())
            self.assertFalse(record.late)
            most = max(most, len(ids))
        self.assertLessEqual(most, 28)
        self.assertGreater(most, 20)

    def test_lines_follow_the_published_layout(self):
        data = self.make("--rows", "5k", "--stations", "20", "--dirt", "none")
        fixed = re.compile(
            r"\d{4}[0-9A-Z]\d{5}\d{5}20\d{10}[1-9A-O][+-]\d{5}[+-]\d{6}[A-Z0-9-]{2,5} *"
            r"[+-]\d{4}[A-Z0-9]{3,5} *V0[23]0\d{3}[0-9A-Z][CN9]\d{4}[0-9A-Z]\d{5}\d[M9][N9]\d{6}\d"
            r"[N9]\d[+-]\d{4}[0-9A-Z][+-]\d{4}[0-9A-Z]\d{5}\d")
        for line in data.decode().splitlines():
            self.assertRegex(line[:105], fixed)
            self.assertEqual(len(fixed.match(line[:105]).group()), 105)
            temperature, dew_point = int(line[87:92]), int(line[93:98])
            if 9999 not in (temperature, dew_point):
                self.assertLessEqual(dew_point, temperature)
            self.assertEqual(line[60:63] == "999", line[64] in "C9", "a calm has no direction")

    def test_records_are_in_order_of_time(self):
        texts = self.make_folder("--rows", "20k", "--stations", "8", "--dirt", "heavy")
        for name, data in texts.items():
            times = [record.ts for record in Reading(data).records]
            self.assertEqual(times, sorted(times), name)

    def test_every_group_of_the_table_occurs(self):
        data = self.make("--rows", "120k", "--stations", "60")
        found = set(re.findall(rb"[A-Z]{2}[1-9]", b"".join(
            group.encode() for record in Reading(data).records for group, _ in record.groups)))
        self.assertEqual({family.encode() for family in FAMILIES} - found, set())


class Frequencies(IsdCase):
    """Groups and sections are as frequent as in published records, so that rates are realistic."""

    def test_shares_are_near_the_published_ones(self):
        data = self.make("--rows", "100k", "--stations", "400")
        records = Reading(data).records
        seen = Counter()
        for record in records:
            seen.update(group for group, _ in record.groups)
            seen.update(record.sections)
            seen.update(record.missing)
        for name, percent in {**GROUPS, **SECTIONS, **MISSING}.items():
            self.assertLess(abs(100 * seen[name] / len(records) - percent),
                            max(.7, percent * .1), f"{name}: {seen[name]} of {len(records)}")
        mean = len(data) / len(records)
        self.assertTrue(230 < mean < 280, f"{mean} bytes a record, not 257")
        groups = sum(len(record.groups) for record in records) / len(records)
        self.assertTrue(4.3 < groups < 5, f"{groups} groups a record, not 4.6")

    def test_remarks_contain_text_that_looks_like_groups_and_sections(self):
        data = self.make("--rows", "30k")
        texts = [text for record in Reading(data).records for _, text in record.remarks]
        for lookalike in ("SCT2", "INCREMENTAL", "EQDD07+000000ADE726", "MW1"):
            self.assertTrue(any(lookalike in text for text in texts), lookalike)

    def test_element_quality_in_both_forms(self):
        data = self.make("--rows", "30k")
        entries = [entry for record in Reading(data).records for entry in record.entries]
        self.assertTrue(any(re.fullmatch(r"Q\d\d\+0000.2SCOTCV", entry) for entry in entries))
        self.assertTrue(any(re.fullmatch(r"Q\d\d\..3APC3      ", entry) for entry in entries))
        self.assertTrue(any(entry.startswith("Q02") for entry in entries))


class Years(IsdCase):
    def records(self, *words):
        reading = Reading(self.make("--rows", "24k", *words))
        self.assertEqual((reading.rejects, len(reading.records)), ([], 24000))
        return reading.records

    def test_stations_without_a_position_or_known_by_another_number(self):
        records = self.records("--dirt", "heavy", "--stations", "60", "--seed", "3")
        self.assertTrue(any(record.position is None for record in records))
        self.assertEqual({record.st[0] for record in records}, {"u", "w"})

    def test_a_leap_year(self):
        records = self.records("--year", "2016", "--stations", "30", "--dirt", "heavy")
        self.assertTrue(any(record.ts.day == 29 and record.ts.month == 2 for record in records))

    def test_midnights_of_the_day_before_and_of_the_decade_before(self):
        records = self.records("--year", "2019", "--stations", "40", "--dirt", "heavy")
        late = [record for record in records if record.late]
        self.assertGreater(len(late), 20)
        self.assertTrue(all((record.ts.hour, record.ts.minute) == (0, 0) for record in late))
        self.assertEqual({record.ts.year for record in records}, {2019, 2020})

    def test_early_years(self):
        self.records("--year", "1901", "--stations", "5")

    def test_stations_near_the_point_of_the_query_have_records_in_january(self):
        for year in ("2013", "2014"):
            records = Reading(self.make("--rows", "9k", "--year", year, "--dirt", "none")).records
            self.assertTrue(any(record.position and record.ts.month == 1 and record.ts.year == int(year) and
                                math.dist(record.position, (30.3, -97.7)) < 0.8 for record in records))

    def test_no_records_at_all(self):
        self.assertEqual(self.make("--rows", "0"), b"")


class Dirt(IsdCase):
    def odd(self, level):
        data = self.make("--rows", "40k", "--stations", "20", "--dirt", level)
        records = Reading(data).records
        return {oddity for record in records for oddity in record.odd} | \
            {"2400" for record in records if record.late}

    def test_heavy_dirt_has_every_kind_and_clean_records_none(self):
        self.assertEqual(self.odd("heavy"), {"length", "unknown group", "AW5", "AW6", "2400"})
        self.assertEqual(self.odd("none"), set())

    def test_a_wrong_length_is_too_long_and_the_line_is_complete(self):
        data = self.make("--rows", "20k", "--stations", "10", "--dirt", "heavy")
        wrong = 0
        for line in data.decode().splitlines():
            beyond = int(line[:4]) + 105 - len(line)
            self.assertIn(beyond, (0, 26))
            wrong += beyond > 0
        self.assertGreater(wrong, 50)


class Files(IsdCase):
    WORDS = ("--rows", "12k", "--stations", "30")

    def test_a_folder_has_a_file_for_each_station_and_year(self):
        texts = self.make_folder(*self.WORDS, "--gzip", "--year", "2010")
        self.assertEqual(len(texts), 30)
        for name, data in texts.items():
            for line in data.decode().splitlines():
                self.assertEqual(f"{line[4:10]}-{line[10:15]}-2010.gz", name)
            reading = Reading(data)
            self.assertGreaterEqual(reading.lines, 2)
            self.assertEqual(reading.lines, len(reading.records))
        self.assertEqual(sum(data.count(b"\n") for data in texts.values()), 12000)

    def test_one_file_contains_the_stations_of_the_folder(self):
        texts, whole = self.make_folder(*self.WORDS), self.make(*self.WORDS)
        names = list(dict.fromkeys(f"{line[4:10]}-{line[10:15]}-2014" for line in whole.decode().splitlines()))
        self.assertEqual(b"".join(texts[name] for name in names), whole)

    def test_an_existing_folder_needs_no_slash(self):
        (self.scratch / "there").mkdir()
        outcome = self.run_program("shardload-datagen", "--format", "isd", "--rows", "900",
                                   "--stations", "3", "there")
        self.assertEqual(outcome.code, 0, outcome.text)
        self.assertEqual(len(list((self.scratch / "there").iterdir())), 3)


class WrongOptions(IsdCase):
    def refused(self, *words):
        outcome = self.run_program("shardload-datagen", *words)
        self.assertEqual(outcome.code, 2, outcome.text)
        return outcome.err

    def test_all_wrong_options_are_reported_together(self):
        message = self.refused("--format", "isd", "--dialect", "B", "--rows", "20", "--stations", "9",
                            "--bad", "6", "--files", "2", f"{self.scratch}/")
        for problem in ("no dialects", "too few for 9 stations", "no bad records",
                        "a file for each station"):
            self.assertIn(problem, message)

    def test_options_of_the_other_format(self):
        message = self.refused("--stations", "9", "--year", "1901", "x")
        self.assertIn("--stations is for format isd", message)
        self.assertIn("--year must be 1970 or later", message)

    def test_a_folder_that_cannot_be_created(self):
        outcome = self.run_program("shardload-datagen", "--format", "isd", "no/such/folder/")
        self.assertEqual(outcome.code, 1)
        self.assertIn("cannot make no/such/folder/", outcome.err)
