# SPDX-License-Identifier: Apache-2.0
"""The data generator's ISD records follow the published layout: an independent reader (isd_reader.py) parses
every record to its last byte."""
import gzip
import math
import re
from collections import Counter

import isd_reader
from test_datagen import DatagenCase

TABLE = isd_reader.table()
TYPES = {"FM-12", "FM-15", "FM-16", "SAO", "SY-SA", "SOD", "SOM"}

# Published shares of records, in percent (counted over 119,511 records).
GROUPS = {"GF1": 79, "MA1": 65, "GD1": 44, "GA1": 41, "AA1": 31, "MD1": 29, "MW1": 26, "GD2": 16,
          "GE1": 15, "GD3": 11, "AG1": 11, "GA2": 9, "KA1": 9, "AY1": 9, "AW1": 8, "AU1": 7,
          "KA2": 7, "SA1": 6, "GD4": 6, "OC1": 4, "AY2": 4, "GA3": 4, "AA2": 2, "MW2": 2,
          "AZ1": 1.5, "AZ2": 1.5, "OD1": 1, "GA4": 1, "OA1": 1, "AJ1": 1}
SECTIONS = {"ADD": 94, "REM": 75.1, "EQD": 11.2, "QNN": 7.3}
MISSING = {"pressure": 43, "ceiling": 33, "unlimited": 42, "dew point": 24, "visibility": 19, "temperature": 13}


class Record:
    """A line and its document. `odd` lists its irregularities."""

    def __init__(self, line, document):
        self.line, self.ts = line, document["ts"]
        self.late = line[23:27] == "2400"
        self.groups = document.get("sections", [])
        self.remarks = document.get("remarks", {}).values()
        self.entries = document.get("elementQuality", [])
        self.document = document
        self.odd = {name for name, found in (
            ("length", int(line[:4]) + 105 != len(line)), ("unknown group", "unparsed" in document),
            ("AW5", "AW5" in self.groups), ("AW6", "AW6" in self.groups)) if found}

    def counted(self):
        """What GROUPS, SECTIONS and MISSING count."""
        ceiling = self.document.get("skyCondition", {}).get("ceilingHeight", {}).get("value")
        return [*self.groups, *(name for name, found in (
            ("ADD", self.groups), ("REM", self.remarks), ("EQD", self.entries),
            ("QNN", "originalObservation" in self.document),
            ("pressure", "value" not in self.document.get("pressure", {})),
            ("dew point", "value" not in self.document.get("dewPoint", {})),
            ("temperature", "value" not in self.document.get("airTemperature", {})),
            ("visibility", "value" not in self.document.get("visibility", {}).get("distance", {})),
            ("ceiling", ceiling is None), ("unlimited", ceiling == 22000)) if found)]


class IsdCase(DatagenCase):
    def make(self, *words, name="made"):
        return self.generate("--format", "isd", *words, name=name)

    def make_folder(self, *words):
        """Returns the text of each file by its name."""
        self.generate("--format", "isd", *words, name="folder/")
        return {path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                for path in (self.scratch / "folder").iterdir()}

    def records_in(self, data):
        """Every line is a record of printable ASCII, whose numbers are numbers."""
        lines = data.decode("ascii").splitlines()
        reading = isd_reader.read_bytes(data)
        self.assertEqual((reading.rejects, reading.blank_lines, reading.transcoded, reading.malformed_fields),
                         ([], 0, 0, 0))
        self.assertTrue(data.endswith(b"\n"), "the last line does not end")
        return [Record(line, document) for line, document in zip(lines, reading.documents, strict=True)]


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
        records = self.records_in(self.make("--rows", "10k", "--stations", "40", "--dirt", "none"))
        self.assertEqual(len(records), 10000)
        self.assertEqual({record.document["type"] for record in records}, TYPES)
        for record in records:
            ids = record.groups
            self.assertEqual(ids, sorted(set(ids)), "ascending, none twice")
            for group in ids:
                before = f"{group[:2]}{int(group[2]) - 1}"
                self.assertTrue(before not in TABLE or before in ids, f"{group} without {before}")
            self.assertEqual((record.odd, record.late), (set(), False))
        self.assertIn(max(len(record.groups) for record in records), range(21, 29))

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
        texts = self.make_folder("--rows", "8k", "--stations", "8", "--dirt", "heavy")
        for name, data in texts.items():
            times = [record.ts for record in self.records_in(data)]
            self.assertEqual(times, sorted(times), name)


class Frequencies(IsdCase):
    """Groups and sections are as frequent as in published records, so that rates are realistic."""

    def test_records_are_like_published_ones(self):
        data = self.make("--rows", "100k", "--stations", "400")
        records = self.records_in(b"".join(data.splitlines(keepends=True)[::4]))
        seen = Counter(name for record in records for name in record.counted())
        for name, percent in {**GROUPS, **SECTIONS, **MISSING}.items():
            self.assertLess(abs(100 * seen[name] / len(records) - percent),
                            max(.7, percent * .1), f"{name}: {seen[name]} of {len(records)}")
        self.assertIn(len(data) // 100_000, range(230, 280), "bytes a record, not 257")
        groups = sum(len(record.groups) for record in records) / len(records)
        self.assertTrue(4.3 < groups < 5, f"{groups} groups a record, not 4.6")
        # Remarks contain text that looks like groups and sections.
        texts = [text for record in records for text in record.remarks]
        for lookalike in ("SCT2", "INCREMENTAL", "EQDD07+000000ADE726", "MW1"):
            self.assertTrue(any(lookalike in text for text in texts), lookalike)
        # Element quality in both forms.
        entries = {tuple(entry.values()) for record in records for entry in record.entries}
        self.assertTrue(any(re.fullmatch(r"Q\d\d\|\+0000.\|2\|SCOTCV", "|".join(entry)) for entry in entries))
        self.assertTrue(any(re.fullmatch(r"Q\d\d\|\..3APC3      ", "|".join(entry)) for entry in entries))
        self.assertTrue(any(entry[0] == "Q02" for entry in entries))

    def test_every_group_of_the_table_occurs(self):
        left = {line.split("\t")[0] for line in isd_reader.TABLE.read_text("utf-8").splitlines()
                if line and not line.startswith("#")}
        for line in self.make("--rows", "120k", "--stations", "60").splitlines(keepends=True):
            if any(group.encode() in line for group in left):
                left -= set(self.records_in(line)[0].groups)
        self.assertEqual(left, set())


class Years(IsdCase):
    def records(self, *words):
        records = self.records_in(self.make("--rows", "12k", *words))
        self.assertEqual(len(records), 12000)
        return records

    def test_stations_without_a_position_or_known_by_another_number(self):
        records = self.records("--dirt", "heavy", "--stations", "60", "--seed", "3")
        self.assertTrue(any("position" not in record.document for record in records))
        self.assertEqual({record.document["st"][0] for record in records}, {"u", "w"})

    def test_a_leap_year(self):
        records = self.records("--year", "2016", "--stations", "30", "--dirt", "heavy")
        self.assertTrue(any(record.ts.day == 29 and record.ts.month == 2 for record in records))

    def test_midnights_of_the_day_before_and_of_the_decade_before(self):
        records = self.records("--year", "2019", "--stations", "40", "--dirt", "heavy")
        late = [record for record in records if record.late]
        self.assertGreater(len(late), 10)
        self.assertTrue(all((record.ts.hour, record.ts.minute) == (0, 0) for record in late))
        self.assertEqual({record.ts.year for record in records}, {2019, 2020})

    def test_early_years(self):
        self.records("--year", "1901", "--stations", "5")

    def test_stations_near_the_point_of_the_query_have_records_in_january(self):
        for year in ("2013", "2014"):
            records = self.records_in(self.make("--rows", "9k", "--year", year, "--dirt", "none"))
            self.assertTrue(any(
                "position" in record.document and (record.ts.year, record.ts.month) == (int(year), 1) and
                math.dist(record.document["position"]["coordinates"], (-97.7, 30.3)) < 0.8 for record in records))

    def test_no_records_at_all(self):
        self.assertEqual(self.make("--rows", "0"), b"")


class Dirt(IsdCase):
    def odd(self, level):
        records = self.records_in(self.make("--rows", "20k", "--stations", "20", "--dirt", level))
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
            self.assertGreaterEqual(len(self.records_in(data)), 2)
        self.assertEqual(sum(data.count(b"\n") for data in texts.values()), 12000)

    def test_one_file_contains_the_stations_of_the_folder(self):
        texts, whole = self.make_folder(*self.WORDS), self.make(*self.WORDS)
        names = list(dict.fromkeys(f"{line[4:10]}-{line[10:15]}-2014" for line in whole.decode().splitlines()))
        self.assertEqual(b"".join(texts[name] for name in names), whole)

    def test_an_existing_folder_needs_no_slash(self):
        (self.scratch / "there").mkdir()
        outcome = self.run_program("shardload-datagen", "--format", "isd", "--rows", "900", "--stations", "3", "there")
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
