# SPDX-License-Identifier: Apache-2.0
"""ISD, ISD-Lite and global-hourly tables without a server: records and the bytes of their
documents."""
import datetime
import functools
import gzip
import random

import isd_reader
import stand_ins
import support

# The number of records of each sample file, from its publisher's notes.
PACKED = {
    "010010-99999-1988": 2907, "010060-99999-2014": 2816, "011490-99999-1986.gz": 1328,
    "024130-99999-2016.gz": 2601, "035480-99999-1943-jul-sep": 2205,
    "066600-99999-2010-first50": 50, "1901.gz": 6565, "720538-00164-2020.gz": 24252,
    "722540-13904-2014": 4237, "722874-93134-2007.gz": 11107, "725300-94846-1983-jan-jun": 4344,
    "hadoop-book-sample-1949-1950.txt": 5, "quoted-records-a.txt": 15,
}
TABLE = "global-hourly-csv/00702699999-2017.csv.gz"
LITE = {"isd-lite/029070-99999-1901.gz": 1095, "isd-lite/318010-99999-2016.gz": 2916}

FIXED = (b"010010999991988013112004+70933-008667FM-12+0009ENJA V0203181N0061100450" b"1CN0100001V5-00671-00801101231")


def sample(name):
    return support.sample("isd", name)


@functools.lru_cache(maxsize=None)
def reading_of(name, missing):
    read = isd_reader.read_lite if name in LITE else isd_reader.read_csv if name == TABLE else isd_reader.read
    return read(sample(name), missing=missing)


def documents_of(name, names=None, number=1):
    """The documents of a sample. `names`: {path of a key: its new name}. `number`: of the source."""
    documents = reading_of(name, "omit").documents
    if number > 1:
        documents = [{**document, "_id": document["_id"] + (number - 1 << 40)} for document in documents]
    return [isd_reader.rename(document, names) for document in documents] if names else documents


def record(sections=b"", fixed=FIXED):
    return b"%04d" % len(sections) + fixed + sections


def at(moment):
    """The fixed fields of a record at this time."""
    return FIXED[:11] + moment + FIXED[23:]


REMARK = b"METAR ADDREM EQDQ01 QNN SCT200  "
# Peculiarities of published records: a record, and fields of its document; None: there is no such field.
DESCRIBED = [
    ("24:00 at the end of a month", record(fixed=at(b"194307312400")), {"ts": datetime.datetime(1943, 8, 1)}),
    ("24:00 at the end of a year", record(fixed=at(b"194312312400")), {"ts": datetime.datetime(1944, 1, 1)}),
    ("24:00 in a leap year", record(fixed=at(b"194402282400")), {"ts": datetime.datetime(1944, 2, 29)}),
    ("24:00 in 2000, a leap year", record(fixed=at(b"200002282400")), {"ts": datetime.datetime(2000, 2, 29)}),
    ("24:00 in 1900, no leap year", record(fixed=at(b"190002282400")), {"ts": datetime.datetime(1900, 3, 1)}),
    ("a station by USAF", record(), {"st": "u010010", "usaf": "010010", "wban": None}),
    ("a station by WBAN", record(fixed=b"99999913904" + FIXED[11:]), {"st": "w13904", "wban": "13904", "usaf": None}),
    ("a station with a letter", record(fixed=b"A0735500182" + FIXED[11:]),
     {"st": "uA07355", "usaf": "A07355", "wban": "00182"}),
    ("a station by position", record(fixed=b"99999999999" + FIXED[11:]), {"st": "x+70933-008667"}),
    *(("no position", record(fixed=FIXED[:24] + place + FIXED[37:]), {"position": None})
      for place in (b"+70933+999999", b"+99999-008667", b"+90001-008667", b"+70933-180001", b"+70933+180001")),
    ("the last position", record(fixed=FIXED[:24] + b"-90000+180000" + FIXED[37:]),
     {"position": {"type": "Point", "coordinates": [180.0, -90.0]}}),
    ("the equator", record(fixed=FIXED[:24] + b"+00000+000000" + FIXED[37:]),
     {"position": {"type": "Point", "coordinates": [0.0, 0.0]}}),
    ("no mandatory values", record(fixed=FIXED[:56] + b"999999999999999999999999999+99999+99999999999"),
     dict.fromkeys(["wind", "visibility", "skyCondition", "airTemperature", "dewPoint", "pressure"])),
    ("undocumented instances of a family", record(b"ADDAW1101AW2102AW3103AW4104AW5105AW6106"),
     {"presentWeatherObservation": [{"condition": "10", "quality": str(n)} for n in range(1, 7)],
      "sections": [f"AW{n}" for n in range(1, 7)]}),
    ("two ids of one family", record(b"ADDAH1005001013112001AI1060012013112002"),
     {"liquidPrecipitationMaxShortDurationMonthly": [
         {"period": period, "depth": depth, "condition": "1", "endingDateTime": "311200", "quality": quality}
         for period, depth, quality in ((5, 1.0, "1"), (60, 12.0, "2"))]}),
    ("tens of degrees and hundredths", record(b"ADDED127L12341OE1124012342700915" + b"5"),
     {"runwayVisualRange": {"angle": 270, "designator": "L", "visibility": 1234, "quality": "1"},
      "summaryOfDayWind": [{"type": "1", "period": 24, "speed": 12.34, "direction": 270,
                            "timeOfOccurrence": "0915", "quality": "5"}]}),
    ("the declared length of a remark is its length",
     record(b"REMMET%03d" % len(REMARK) + REMARK + b"SYN003a; EQDQ01  04070PRCP06"),
     {"remarks": {"met": REMARK.decode(), "syn": "a; "},
      "elementQuality": [{"id": "Q01", "value": "  0407", "reason": "0", "parameter": "PRCP06"}]}),
    ("two remarks of a kind", record(b"REMSYN003abcSYN002de"), {"remarks": {"syn": "abc\nde"}}),
    ("a shifted entry", record(b"EQDQ01.23APC3      "),
     {"elementQuality": [{"id": "Q01", "raw": ".23APC3      "}]}),
    ("original observations", record(b"QNNK11 1 00021E11 1 00099E    -00099"),
     {"originalObservation": [{"element": "K", "flags": "11 1", "value": " 00021"},
                              {"element": "E", "flags": "11 1", "value": " 00099"},
                              {"element": "E", "flags": "    ", "value": "-00099"}]}),
    ("after an unknown group its section is text", record(b"ADDAW1101BA1REMSYN001xMA1102341099905REMSYN003abc"),
     {"sections": ["AW1"], "unparsed": "BA1REMSYN001xMA1102341099905", "remarks": {"syn": "abc"}}),
    ("invalid numbers", record(b"ADDAA1 6000091KA1120M+01X81OC100675"),
     {"liquidPrecipitation": [{"depth": 0.0, "condition": "9", "quality": "1"}],
      "extremeAirTemperature": [{"period": 12.0, "code": "M", "quality": "1"}],
      "windGust": {"speed": 6.7, "quality": "5"}}),
]


class TheReader(support.Case):
    """The independent reader itself is right about files whose content is known."""

    def test_every_sample_has_its_published_number_of_records(self):
        for name, records in {**PACKED, **LITE}.items():
            with self.subTest(name):
                reading = reading_of(name, "omit")
                self.assertEqual((len(reading.documents), len(reading.rejects)), (records, 0))
                self.assertEqual(reading.unknown_groups, 0)
                self.assertEqual(reading.malformed_fields, 0)
        self.assertEqual(sum(PACKED.values()), 62432)

    def test_the_table_is_the_published_list_of_fields(self):
        """A width that is wrong by one byte shifts all following fields of a record."""
        ours = isd_reader.table()
        groups, widths = ([line.split("\t") for line in path.read_text("utf-8").splitlines()
                           if line and not line.startswith("#")]
                          for path in (isd_reader.TABLE, support.TREE / "tests/data/isd-widths.tsv"))
        groups = [(first, last, ours[first]) for first, last, _, _ in groups]
        self.assertCountEqual([[first, last, " ".join(
            f"{one.width}" + (f"/{one.divisor:g}" if one.divisor > 1 else f"*{1 / one.divisor:g}" * (one.divisor < 1))
            for one in group.fields)] for first, last, group in groups], widths)
        self.assertEqual(sum(len(group.fields) for _, _, group in groups), 505)
        published = support.REAL_SAMPLES.parent / "formats" / "isd-groups.tsv"
        if not published.exists():
            self.skipTest("the published list of fields is not beside the samples")
        self.assertEqual(ours, isd_reader.published_table(published))

    def test_a_record_decoded_by_hand(self):
        support.published()
        document = documents_of("010010-99999-1988")[0]
        self.assertEqual(list(document.items()), [
            ("_id", 1 << 40), ("st", "u010010"), ("ts", datetime.datetime(1988, 1, 1)),
            ("usaf", "010010"),
            ("position", {"type": "Point", "coordinates": [-8.667, 70.933]}),
            ("elevation", 9), ("callLetters", "ENJA"), ("qualityControlProcess", "V020"),
            ("dataSource", "4"), ("type", "FM-12"),
            ("airTemperature", {"value": -20.1, "quality": "1"}),
            ("dewPoint", {"value": -22.1, "quality": "1"}),
            ("pressure", {"value": 1002.1, "quality": "1"}),
            ("wind", {"direction": {"angle": 330, "quality": "1"}, "type": "N",
                      "speed": {"rate": 18.5, "quality": "1"}}),
            ("visibility", {"distance": {"value": 3000, "quality": "1"},
                            "variability": {"value": "N", "quality": "9"}}),
            ("skyCondition", {"ceilingHeight": {"value": 22000, "quality": "1",
                                                "determination": "C"}, "cavok": "N"}),
            ("sections", ["AA1", "AG1", "AY1", "AY2", "GF1", "MD1", "MW1", "OA1"]),
            ("liquidPrecipitation", [{"period": 6, "depth": 0.0, "condition": "9",
                                      "quality": "1"}]),
            ("precipitationEstimatedObservation", {"discrepancy": "4",
                                                   "estimatedWaterDepth": 0}),
            ("pastWeatherObservationManual", [
                {"atmosphericCondition": {"value": "3", "quality": "1"},
                 "period": {"value": 6, "quality": "1"}},
                {"atmosphericCondition": {"value": "2", "quality": "1"},
                 "period": {"value": 6, "quality": "1"}}]),
            ("skyConditionObservation", {
                "totalCoverage": {"value": "02", "opaque": "99", "quality": "1"},
                "lowestCloudCoverage": {"value": "02", "quality": "1"},
                "lowCloudGenus": {"value": "05", "quality": "1"},
                "lowestCloudBaseHeight": {"value": 800, "quality": "1"},
                "midCloudGenus": {"value": "00", "quality": "1"},
                "highCloudGenus": {"value": "00", "quality": "1"}}),
            ("atmosphericPressureChange", {
                "tendency": {"code": "7", "quality": "1"},
                "quantity3Hours": {"value": 1.4, "quality": "1"}}),
            ("presentWeatherObservationManual", [{"condition": "38", "quality": "1"}]),
            ("supplementaryWind", [{"type": "4", "speed": 26.3, "quality": "1"}]),
            ("remarks", {"syn": "333   91151"}),
        ])

    def test_a_station_in_both_formats_has_the_same_hours(self):
        hours = {(document["st"], document["ts"]): document for document in documents_of("1901.gz")}
        for document in documents_of("isd-lite/029070-99999-1901.gz"):
            whole = hours[document["st"], document["ts"]]
            for key in ("airTemperature", "pressure"):
                self.assertEqual(document.get(key, {}).get("value"), whole.get(key, {}).get("value"))


class Samples(support.Case):
    """Published files load without options: no record is lost, every field is right."""

    def other_packing(self, path):
        """The same text compressed, or uncompressed, under a name that contains the station."""
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            return self.file(path.name.removesuffix(".gz"), gzip.decompress(data))
        return self.zipped(path.name + ".gz", data)

    def loads(self, names, missing):
        """Compares the documents of one thread with the reader's, and those of four threads, from text
        that is packed in the other way, with the documents of one thread."""
        for name in names:
            reading = reading_of(name, missing)
            loaded = None
            for threads, path in ((1, sample(name)), (4, self.other_packing(sample(name)))):
                with self.subTest(path.name, threads=threads):
                    raw, work = self.dump("-j", threads, "--missing", missing, path)
                    if loaded is None:
                        self.assert_reading(raw, work, reading, name)
                        loaded = sorted(raw)
                    self.assertTrue(sorted(raw) == loaded, "the documents differ")
                    self.assert_accounting(work, records=reading.records, inserted=len(raw), alreadyStored=0,
                                           rejectedByParser=0, transcoded=0, malformedFields=0,
                                           unknownGroups=0, lengthMismatches=reading.length_mismatches)

    def test_records(self):
        self.loads({**PACKED, **LITE}, "omit")

    def test_records_with_raw_missing_values(self):
        """Without the two largest files, whose records need more time than all others."""
        self.loads([name for name, records in {**PACKED, **LITE}.items() if records < 10000], "raw")

    def test_several_files_are_numbered_in_order(self):
        names = list(PACKED)[:6]
        raw, _ = self.dump("-j", 4, *map(sample, names))
        self.assert_documents(raw, [document for number, name in enumerate(names, 1)
                                    for document in documents_of(name, number=number)])

    def test_standard_input(self):
        name = "quoted-records-a.txt"
        raw, _ = self.dump("-", stdin=sample(name).read_bytes())
        self.assert_documents(raw, documents_of(name))

    def test_a_folder_of_small_files(self):
        lines = sample("066600-99999-2010-first50").read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines):
            self.zipped(f"noaa/{number // 10}/066600-99999-{1950 + number}.gz", line)
        found, work = self.dump_decoded("-j", 3, "noaa")
        self.assertEqual(len(found), 50)
        expected = [{key: value for key, value in document.items() if key != "_id"}
                    for document in documents_of("066600-99999-2010-first50")]
        self.assertEqual(sorted(map(repr, found)), sorted(map(repr, expected)))
        self.assert_accounting(work, records=50, inserted=50)


class Names(support.Case):
    """Keys of documents: long names, and names of a schema."""

    def renamed(self, names, format_name, name, schema=None):
        schema = schema or self.file("names.yaml", "name: test\nnames:\n" + "".join(
            f"  {old}: {new}\n" for old, new in names.items()))
        raw, _ = self.dump("--format", format_name, "--schema", schema, sample(name))
        self.assert_documents(raw, documents_of(name, names))
        return support.bson.decode(raw[0])

    def test_the_names_of_the_published_articles(self):
        for format_name, name in (("isd", "722540-13904-2014"), ("isd-csv", TABLE)):
            document = self.renamed({"pressure": "atmosphericPressure", "skyCondition": "sky condition"},
                                    format_name, name, support.TREE / "schemas/isd-names-blog.yaml")
            self.assertIn("sky condition", document)

    def test_any_key_at_any_depth(self):
        document = self.renamed(
            {"st": "station", "wind.speed.rate": "mps", "skyCoverSummationState": "sky",
             "skyCoverSummationState.height.value": "metres", "remarks.syn": "synop",
             "elementQuality.id": "name", "originalObservation": "was"},
            "isd", "725300-94846-1983-jan-jun")
        self.assertIn("mps", document["wind"]["speed"])
        self.assertTrue(all("metres" in layer.get("height", {"metres": 0}) for layer in document["sky"]))

    def test_lite(self):
        self.renamed({"wind.speed.rate": "mps", "liquidPrecipitation.depth": "mm",
                      "skyCover": "okta"}, "isd-lite", "isd-lite/318010-99999-2016.gz")

    def test_an_unknown_path_in_a_schema_is_refused_with_its_line(self):
        schema = self.file("names.yaml", "name: test\nnames:\n  presure: p\n")
        self.shardload("inspect", "--format", "isd", "--schema", schema,
                       sample("quoted-records-a.txt"), code=support.EXIT_USAGE, message=("names.yaml:3", "presure"))


class Described(support.Case):
    """Peculiarities of published records."""

    def loads(self, text, code=support.EXIT_OK):
        """Loads text and compares it with the reader. Returns (documents, the reader's result)."""
        path = self.file(f"records-{next(self._counter)}.txt", text)
        raw, work = self.dump("--format", "isd", path, code=code)
        reading = isd_reader.read(path)
        self.assert_reading(raw, work, reading)
        documents = sorted(map(support.bson.decode, raw), key=lambda document: document["_id"])
        return documents, reading

    def test_records(self):
        text = b"\n".join(line for _, line, _ in DESCRIBED)
        documents, _ = self.loads(text)
        for (what, _, fields), document in zip(DESCRIBED, documents, strict=True):
            self.assertEqual({name: document.get(name) for name in fields}, fields, what)

    def test_times_that_do_not_exist_are_rejects(self):
        good = record() + b"\n"
        bad = [b"194302291200", b"194313011200", b"194301001200", b"194301012401", b"194301011260",
               b"19430101 200", b"190002290000", b"194308012500", b"194300010000", b"194308320000", b"1943 8010000"]
        text = good * 12 + b"".join(record(fixed=at(moment)) + b"\n" for moment in bad)
        documents, reading = self.loads(text, code=support.EXIT_REJECTS)
        self.assertEqual((len(documents), len(reading.rejects)), (12, len(bad)))

    def test_text_that_is_not_ascii(self):
        text = b"a\0b\x07c\x7fd\xe9\xff"
        documents, reading = self.loads(record(b"REMSOM%03d" % len(text) + text) + b"\n")
        self.assertEqual(documents[0]["remarks"]["som"], "a b c d\u00e9\u00ff")
        self.assertEqual(reading.transcoded, 1)

    def test_lines_of_other_systems(self):
        documents, reading = self.loads(b"\r\n".join([record(b"REMSYN002; "), b"", record()]))
        self.assertEqual((len(documents), reading.blank_lines), (2, 1))
        self.assertEqual(documents[0]["remarks"], {"syn": "; "})

    def test_too_short_and_too_long(self):
        text = b"\n".join([record(), record()[:104], record(b"REMSYN" + b"x" * 10000), record()])
        documents, reading = self.loads(text, code=support.EXIT_REJECTS)
        self.assertEqual((len(documents), len(reading.rejects)), (2, 2))


class Damaged(support.Case):
    """Damaged records: the loader agrees with the reader about values, text and rejects."""

    BYTES = b" 09+-AZ\x00\x07\x7f\x80\xe9\xff~9R"

    @classmethod
    def setUpClass(cls):
        cls.dice = random.Random(1901)
        cls.records = []
        for name in PACKED:
            lines = isd_reader.content(sample(name)).splitlines()
            cls.records += cls.dice.sample(lines, min(len(lines), 60))

    def agree(self, lines, code=None):
        path = self.file(f"damaged-{next(self._counter)}.txt", b"\n".join(lines) + b"\n")
        for missing in ("omit", "raw"):
            raw, work = self.dump("--format", "isd", "-j", 2, "--missing", missing, path, code=code)
            reading = isd_reader.read(path, missing=missing)
            self.assert_reading(raw, work, reading, missing)
        return reading

    @staticmethod
    def with_its_length(line):
        return b"%04d" % (len(line) - 105) + line[4:]

    def test_a_changed_byte(self):
        lines = []
        for line in self.records:
            for _ in range(5):
                line = bytearray(line)
                for _ in range(self.dice.choice([1, 1, 2, 3])):
                    line[self.dice.randrange(4, len(line))] = self.dice.choice(self.BYTES)
                lines.append(bytes(line))
        reading = self.agree(lines)
        self.assertGreater(reading.malformed_fields, 100)

    def test_truncated_lines(self):
        line = max(self.records, key=len)
        cuts = self.records[:100] + [line[:length] for length in range(1, len(line))]
        cuts += [line[:self.dice.randrange(105, len(line) + 1)] for line in self.records]
        self.agree(cuts)
        self.agree([self.with_its_length(cut) for cut in cuts if len(cut) >= 105])

    def test_wrong_lengths(self):
        lines = [b"%04d" % (int(line[:4]) + by) + line[4:]
                 for line in self.records[::3] for by in (-16, -3, -1, 1, 2, 20) if int(line[:4]) + by >= 0]
        reading = self.agree(lines)
        self.assertEqual(reading.length_mismatches + len(reading.rejects), len(lines))

    def test_removed_or_inserted_bytes(self):
        lines = []
        for line in self.records:
            short, long = bytearray(line), bytearray(line)
            del short[self.dice.randrange(4, len(line))]
            long.insert(self.dice.randrange(4, len(line)), self.dice.choice(self.BYTES))
            for changed in (short, long):
                lines += [bytes(changed), self.with_its_length(bytes(changed))]
        self.agree([line for line in lines if len(line) >= 105])

    def test_changed_group_ids(self):
        groups, lines = isd_reader.table(), []
        for line in self.records[::2]:
            at = 108
            while line[105:108] == b"ADD" and (group := groups.get(line[at:at + 3].decode())):
                for other in (b"X" + line[at + 1:at + 3], self.dice.choice(
                        [b"ZZ9", b"REM", b"EQD", b"QNN", b"AA1", b"GF1", b"MW9", b"AW6", b"CO5",
                         b"AA0", b"KB4"])):
                    lines.append(line[:at] + other + line[at + 3:])
                at += 3 + group.width
        self.assertGreater(self.agree(lines).unknown_groups, 1000)


class Lite(support.Case):
    HOUR = b"1901 01 01 06   -78  -103 10200   270   159     8    12    -1\n"

    def test_hours_good_and_bad(self):
        bad = [self.HOUR.replace(b"01 01 06", moment) for moment in
               (b"02 29 06", b"01 01 24", b"13 01 06", b"01 0x 06", b"01-01 06", b"01 01-06", b"01 01  6")] + [
                   self.HOUR[:50] + b"\n", self.HOUR[:-1] + b" 7\n", self.HOUR.replace(b" ", b"-", 1)]
        odd = [self.HOUR.replace(b"  -103", column) for column in
               (b"  -1x3", b" - 103", b"      ", b"-10 33", b"-99999", b" -10.3", b"-103  ", b"     -")]
        path = self.file("029070-99999-1901", self.HOUR * 10 + b"".join(bad) + b"\n" + b"".join(odd) + self.HOUR[:-1])
        for missing in ("omit", "raw"):
            raw, work = self.dump("--missing", missing, path, code=support.EXIT_REJECTS)
            reading = isd_reader.read_lite(path, missing=missing)
            self.assertEqual((len(reading.documents), len(reading.rejects)), (19, len(bad)))
            self.assert_documents(raw, reading.documents)
            self.assert_rejects(work, path.name, [reject.place for reject in reading.rejects])

    def test_a_trace_of_rain(self):
        raw, _ = self.dump(self.file("029070-99999-1901", self.HOUR))
        self.assertEqual(support.bson.decode(raw[0])["liquidPrecipitation"], [
            {"period": 1, "depth": 1.2}, {"period": 6, "depth": 0.0, "condition": "2"}])

    def test_a_file_without_a_station_in_its_name_is_refused(self):
        for source, text in (("-", self.HOUR), (self.file("hours.txt", self.HOUR), b"")):
            self.shardload("load", "--format", "isd-lite", "--sink", "null",
                           "--work-dir", "w", source, stdin=text,
                           code=support.EXIT_SOURCE, message="USAF-WBAN-YEAR")


class Table(support.Case):
    """Global-hourly tables: the same documents from comma-separated cells."""

    def test_the_sample(self):
        path = sample(TABLE)
        plain = self.file("00702699999.csv", gzip.decompress(path.read_bytes()))
        for missing in ("omit", "raw"):
            reading = reading_of(TABLE, missing)
            self.assertEqual(len(reading.documents), 6843)
            for threads, source in ((1, path), (4, plain)):
                raw, work = self.dump("-j", threads, "--missing", missing, source)
                self.assert_reading(raw, work, reading, missing)
                self.assert_accounting(work, records=6843, rejectedByParser=0, unknownGroups=0,
                                       malformedFields=0, repeatedHeaders=0)
        self.assertNotIn("position", reading.documents[0])
        self.assertEqual(reading.documents[0]["name"], "WXPOD 7026, AF")

    def test_a_table_of_packed_records_gives_their_documents(self):
        """72 groups at once, which no single real table has."""
        name, groups = "722540-13904-2014", isd_reader.table()
        rows = [stand_ins.table_row(line, groups) for line in sample(name).read_bytes().splitlines()]
        self.assertGreater(len({column for row in rows for column in row} & groups.keys()), 60)
        path = self.file("table.csv", stand_ins.table_text(rows, groups).encode("latin-1"))
        raw, _ = self.dump("-j", 2, path)
        offsets = [offset for offset, _, _ in isd_reader.split_lines(path.read_bytes())][1:]
        self.assert_documents(raw, [
            {**packed, "_id": isd_reader.document_id(1, offset), "name": 'A "PLACE", US'}
            for offset, packed in zip(offsets, documents_of(name))])

    def test_unknown_cells_are_kept_and_bad_rows_rejected(self):
        columns = ["STATION", "DATE", "LATITUDE", "LONGITUDE", "ELEVATION", "NAME", "CALL_SIGN",
                   "QUALITY_CONTROL", "SOURCE", "REPORT_TYPE", "WND", "TMP", "GF1", "XX1", "REM"]
        good = ["72505394728", "2020-01-01T00:51:00", "40.77898", "-73.96925", "42.7",
                "NY CITY", "KNYC", "V030", "7", "FM-15", "270,5,N,0031,5", "+0056,5",
                "04,99,1,04,1,99,9,01000,1,99,9,99,9", "", "MET003a\"b"]
        rows = [good]
        for column, cell in (("WND", "270,5,N,0031"), ("TMP", "+56,5"), ("TMP", "+000056,5"),
                             ("GF1", "04,99"), ("XX1", "1,2"), ("STATION", "7250539472"),
                             ("DATE", "2020-02-30T00:51:00"), ("LATITUDE", ""),
                             ("CALL_SIGN", "TOOLONG"), ("TMP", ""), ("REM", "")):
            rows.append([cell if name == column else value for name, value in zip(columns, good)])
        header = stand_ins.quoted(columns)
        text = header + "".join(map(stand_ins.quoted, rows)) + header + stand_ins.quoted(good[1:]) + \
            stand_ins.quoted(good).replace('"FM-15"', '"FM-15') + "\r\n" + stand_ins.quoted(good)
        path = self.file("table.csv", text)
        raw, work = self.dump(path, code=support.EXIT_REJECTS)
        reading = isd_reader.read_csv(path)
        self.assert_reading(raw, work, reading)
        loaded = sorted(map(support.bson.decode, raw), key=lambda document: document["_id"])
        self.assertEqual(loaded[0]["position"]["coordinates"], [-73.96925, 40.77898])
        self.assertEqual(loaded[0]["elevation"], 42.7)
        self.assertEqual(loaded[0]["remarks"], {"met": 'a"b'})
        self.assertEqual(loaded[1]["unparsed"], "WND=270,5,N,0031")
        self.assertEqual([reject.column for reject in reading.rejects], ["STATION", "DATE", None, None])
        self.assert_accounting(work, inserted=11, rejectedByParser=4, repeatedHeaders=1, unknownGroups=6)

    @staticmethod
    def has_open_quote(line):
        """Is a quoted field still open at the end of the line?"""
        at = 0
        while at < len(line):
            if line[at:at + 1] == b'"':
                at += 1
                while (at := line.find(b'"', at)) >= 0 and line[at + 1:at + 2] == b'"':
                    at += 2
                if at < 0:
                    return True
            at = line.find(b",", at) + 1
            if at == 0:
                break
        return False

    def test_loader_and_reader_agree_on_damaged_rows(self):
        dice, lines = random.Random(2017), isd_reader.content(sample(TABLE)).splitlines()
        damaged = lines[:60]
        for line in dice.sample(lines[1:], 2000):
            line = bytearray(line)
            for _ in range(dice.choice([0, 1, 1, 2, 4])):
                at, byte = dice.randrange(len(line)), dice.choice(b'",09 +-xA\x00\xff\xe9\\')
                kind = dice.randrange(3)
                line[at:at + (kind > 0)] = [byte] if kind < 2 else []
            # A quoted field that is open at the end of its line ends the load (test_line_ends.py).
            damaged.append(b"damaged" if self.has_open_quote(bytes(line)) else bytes(line))
        path = self.file("damaged.csv", b"\n".join(damaged))
        raw, work = self.dump("-j", 2, path, code=support.EXIT_REJECTS)
        reading = isd_reader.read_csv(path)
        self.assertGreater(reading.unknown_groups, 300)
        self.assert_documents(raw, reading.documents)
        self.assert_rejects(work, path.name, [reject.place for reject in reading.rejects])
        self.assert_accounting(work, records=2059, rejectedByParser=len(reading.rejects),
                               unknownGroups=reading.unknown_groups,
                               malformedFields=reading.malformed_fields)

    def test_other_tables_of_the_publisher_are_not_taken_for_it(self):
        path = self.file("daily.csv", '"STATION","DATE","LATITUDE","NAME","TEMP","DEWP","SLP"\n'
                         '"72505394728","2020-01-01","40.77898","NY","  39.7","  25.6","1005.0"\n')
        outcome = self.shardload("inspect", path)
        self.assertIn("delimited", outcome.out)
        self.shardload("inspect", "--format", "isd-csv", path, code=support.EXIT_SOURCE, message="WND")


class Inspect(support.Case):
    def test_the_first_documents_of_every_sample(self):
        from test_inspect import documents_in
        for name in {**PACKED, **LITE}:
            with self.subTest(name):
                outcome = self.shardload("inspect", "--documents", 2, sample(name))
                shown = documents_in(outcome.out)
                for document in shown:
                    document["ts"] = document["ts"].replace(tzinfo=None)
                self.assertEqual(shown, documents_of(name)[:2])

    def test_it_says_what_it_sees(self):
        outcome = self.shardload("inspect", sample("722874-93134-2007.gz"))
        self.assertIn("722874-93134", outcome.out)
        self.assertRegex(outcome.out, r"\bisd\b")
