# SPDX-License-Identifier: Apache-2.0
"""The data generators: the files of shardload-datagen follow the published layouts, are the same on every
machine, and resemble the published files. An independent reader (mot_reader.py) reads each dialect back."""
import csv
import datetime
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import zlib
from collections import Counter, defaultdict

import mot_reader
import support

COLUMNS = ["test_id", "vehicle_id", "test_date", "test_class_id", "test_type", "test_result",
           "test_mileage", "postcode_area", "make", "model", "colour", "fuel_type",
           "cylinder_capacity", "first_use_date", "completed_date"]
DIALECTS = ["A", "B", "C1", "C2", "D", "E", "F", "G1", "G2", "tab"]
ISD = ["--format", "isd"]
COMMA = ["C1", "D", "E", "G1", "G2"]


def read(data):
    """A generated file: its rows as dictionaries, with None for a missing value, and its reading."""
    assert data.endswith(b"\n"), "the last line does not end"
    reading = mot_reader.read_bytes(data, names="long")
    assert reading.blank_lines == 0 and not data.startswith(b"\xef\xbb\xbf"), "a blank line, or a BOM"
    assert all(isinstance(row["test_class_id"], int) for row in reading.documents), "a class is no number"
    return [{**dict.fromkeys(COLUMNS), **document} for document in reading.documents], reading


def first_tests_of_cars(rows):
    return [row for row in rows if row["test_class_id"] == 4 and row["test_type"] in ("N", "NT")]


class DatagenCase(support.Case):
    def generate(self, *words, name="made.txt"):
        """Runs the generator; returns the bytes of the file, unless there are several."""
        outcome = self.run_program("shardload-datagen", *words, f"{self.scratch}/{name}")
        self.assertEqual((outcome.code, outcome.text), (0, ""))
        path = self.scratch / name
        return path.read_bytes() if path.is_file() else None


class SameSeed(DatagenCase):
    def test_the_same_options_give_the_same_bytes(self):
        for words in (["--dialect", "A"], ["--dialect", "E"], [*ISD, "--stations", "20"]):
            made = [self.generate(*words, "--rows", "5k", "--seed", seed) for seed in ("7", "7", "8")]
            self.assertEqual(made[0], made[1])
            self.assertNotEqual(made[0], made[2])

    def test_the_bytes_are_the_same_on_every_machine(self):
        # Lines of seed 1. They change only with the tables or the
        # order of the draws.
        plain = self.generate("--dialect", "A", "--rows", "2", "--dirt", "none")
        self.assertEqual(plain.decode().split("\n"), [
            "846153224|847826528|2013-11-11|4|N|F|97218|M|HONDA|CIVIC I-VTEC SE|WHITE|D|2199|"
            "1999-03-29",
            "63214694|847826528|2013-11-17|4|RT|P|97239|M|HONDA|CIVIC I-VTEC SE|WHITE|D|2199|"
            "1999-03-29", ""])


class Records(DatagenCase):
    """Every generated record is read back."""

    def check(self, dialect, rows, dirt):
        rows_read, reading = read(self.generate("--dialect", dialect, "--rows", rows, "--dirt", dirt))
        self.assertEqual((reading.rejects, len(rows_read)), ([], rows))

    def test_every_dialect_with_heavy_dirt(self):
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                self.check(dialect, 20000, "heavy")

    def test_without_dirt(self):
        self.check("D", 20000, "none")

    def test_no_records_at_all(self):
        self.assertEqual(self.generate("--rows", "0").decode(), "|".join(COLUMNS[:14]) + "\n")


class Dirt(DatagenCase):
    """Irregular but valid records: each kind occurs, in its dialects only."""

    SEEN = {
        "escaped quote": (rb'\\"', ["C1", "D", "E", "G1", "G2"]),
        "bare quote": (rb'[|][^|]*"', ["F"]),
        "comma in a name": (rb'(CEE,D|, 80 INCH)', ["C1", "D", "E", "F", "G1", "G2"]),
        "tab": (rb"\t", ["B", "C1", "C2", "D", "E", "F", "G1", "G2"]),
        "0x1A": (rb"\x1a", [d for d in DIALECTS if d != "A"]),
        "UTF-8": (rb"[\x80-\xff]", [d for d in DIALECTS if d != "A"]),
        "lower case": (rb"[|,\t\"][A-Z]?[a-z]{3}", [d for d in DIALECTS if d != "A"]),
        "double blank": (rb"  ", [d for d in DIALECTS if d != "A"]),
        "leading blank": (rb'[|,\t"] [A-Z]', [d for d in DIALECTS if d != "A"]),
        "trailing blank": (rb'[A-Z] [|,\t"]', [d for d in DIALECTS if d != "A"]),
        "no first use": (rb"([|,\t]|\"\")(,2...-..-..T.*)?$", [d for d in DIALECTS if d != "A"]),
        "NULL": (rb"\|NULL", ["A"]),
        "year 2913": (rb"2913-02-06", [d for d in DIALECTS if d != "A"]),
        "year 1": (rb"0001-01-01", [d for d in DIALECTS if d != "A"]),
        "fuel in words": (rb"HYBRID ELECTRIC \(CLEAN\)", ["G2"]),
    }

    def test_heavy_dirt_has_every_kind_in_its_dialects_only(self):
        for dialect in DIALECTS:
            data = self.generate("--dialect", dialect, "--rows", "40k", "--dirt", "heavy")
            rows, reading = read(data)
            lines = [line for line in data.split(b"\n") if b"test_id" not in line]
            with self.subTest(dialect=dialect):
                for kind, (pattern, dialects) in self.SEEN.items():
                    if dialect == "tab" and kind == "tab":
                        continue  # a tab is the delimiter of this dialect
                    pattern = re.compile(pattern)
                    found = any(map(pattern.search, lines))
                    self.assertEqual(found, dialect in dialects, kind)
                self.assertEqual(reading.repeated_headers > 0, dialect == "G1")
                self.assertEqual(any(row["test_mileage"] == 0 for row in rows), dialect == "A")
                self.assertEqual(any(row["test_mileage"] is None for row in rows), dialect != "A")
                self.assertEqual(any("|" in row["model"] for row in rows), dialect in ("B", "tab"))
                self.assertEqual(any(row["test_date"] is None for row in rows), dialect == "A")

    def test_missing_dates_of_the_quoted_dialect_in_both_spellings(self):
        data = self.generate("--dialect", "E", "--rows", "20k", "--dirt", "heavy")
        self.assertRegex(data, rb',""\n')
        self.assertRegex(data, rb",\n")

    def test_no_dirt(self):
        for dialect in ("B", "E"):
            data = self.generate("--dialect", dialect, "--rows", "40k", "--dirt", "none")
            self.assertNotRegex(data.split(b"\n", 1)[1], rb"[a-z\\\x80-\xff]|  ")
            for row in read(data)[0]:
                self.assertIsNotNone(row["test_mileage"])
                self.assertIsNotNone(row["first_use_date"])
                if row["cylinder_capacity"] is None:
                    self.assertEqual(row["fuel_type"], "EL")


class BadRecords(DatagenCase):
    COLUMNS = {"test_date", "first_use_date", "test_mileage", "test_id", "vehicle_id", "cylinder_capacity", "make",
               "model", None}

    def test_bad_records_are_of_all_kinds_and_in_all_parts_of_the_file(self):
        for dialect in DIALECTS:
            data = self.generate("--dialect", dialect, "--rows", "3000", "--bad", "42", "--dirt", "heavy")
            rows, reading = read(data)
            with self.subTest(dialect=dialect):
                self.assertEqual((len(rows), len(reading.rejects)), (2958, 42))
                self.assertEqual({reject.column for reject in reading.rejects}, self.COLUMNS)
                lines = data.splitlines()
                delimiter, _ = mot_reader.sniff(lines[0])
                fields = {len(mot_reader.split_fields(lines[reject.line - 1], delimiter))
                          for reject in reading.rejects if reject.column is None}
                columns = len(COLUMNS) - (dialect[0] != "G")
                self.assertEqual(fields, {columns - 3, columns - 9} | ({columns + 1} if dialect in COMMA else set()))
                # Each tenth of the file contains bad records.
                self.assertEqual({reject.line * 10 // (len(lines) + 1) for reject in reading.rejects}, set(range(10)))

    def test_the_first_record_of_a_file_is_good(self):
        self.generate("--dialect", "A", "--rows", "40", "--bad", "20", "--files", "20", name="part")
        readings = [mot_reader.read(path) for path in sorted(self.scratch.glob("part-*"))]
        self.assertEqual([[reject.line for reject in reading.rejects] for reading in readings], [[2]] * 20)


class Files(DatagenCase):
    def test_several_files_contain_the_records_of_one(self):
        words = ["--rows", "10001", "--dirt", "heavy", "--dialect", "G1"]
        whole = self.generate(*words)
        self.generate(*words, "--files", "12", name="p.csv.x")
        joined = []
        for number in range(1, 13):
            data = (self.scratch / f"p-{number:02}.csv.x").read_bytes()
            header, rest = data.split(b"\n", 1)
            self.assertEqual(header.decode(), ",".join(COLUMNS))
            joined.append(rest)
            self.assertIn(len(read(data)[0]), (833, 834))
        self.assertEqual(b"".join(joined), whole.split(b"\n", 1)[1])

    def test_gzip_contains_the_same_text(self):
        words = ["--rows", "20k", "--bad", "5"]
        plain = self.generate(*words)
        packed = self.generate(*words, "--gzip", name="made.txt.gz")
        small = self.generate(*words, "--gzip-level", "9", name="small.gz")
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertEqual(gzip.decompress(small), plain)
        self.assertLess(len(small), len(packed))

    def test_standard_output(self):
        for words in ([], ISD):
            data = self.generate(*words, "--rows", "300")
            outcome = self.run_program("shardload-datagen", *words, "--rows", "300", "-")
            self.assertEqual(outcome.out, data.decode())

    def test_a_full_disk_is_an_error(self):
        for words in ([], ["--gzip"]):
            outcome = self.run_program("shardload-datagen", *words, "--rows", "100k", "/dev/full")
            self.assertEqual(outcome.code, 1)
            self.assertIn("/dev/full: No space left on device", outcome.err)
        outcome = self.run_program("shardload-datagen", self.scratch / "no" / "folder.txt")
        self.assertEqual(outcome.code, 1)
        self.assertIn("folder.txt", outcome.err)


class Likeness(DatagenCase):
    """Generated data has the distributions of the published data."""

    def made(self, dialect):
        data = self.generate("--dialect", dialect, "--rows", "200k")
        return data, read(data)[0]

    def assert_shares(self, found, total, published, tolerance):
        """Shares in per cent, each within the tolerance of the published one."""
        for value, share in published.items():
            self.assertAlmostEqual(100 * found[value] / total, share, delta=share * tolerance + .1, msg=value)

    def check_relations(self, rows):
        """Relations between columns that are known from the published data."""
        first = first_tests_of_cars(rows)
        by_age = defaultdict(list)
        for row in first:
            if row["first_use_date"]:
                age = row["test_date"] - row["first_use_date"]
                by_age[int(age.days // 365.25)].append(row)

        def pass_share(group):
            return sum(row["test_result"] in ("P", "PRS") for row in group) / len(group)

        def mean(values):
            values = [value for value in values if value]
            return sum(values) / len(values)

        shares = [pass_share(by_age[age]) for age in (3, 6, 9, 12)]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertGreater(shares[0] - shares[-1], 0.2)
        miles = [mean(row["test_mileage"] for row in by_age[age]) for age in (3, 6, 9, 12)]
        self.assertEqual(miles, sorted(miles))
        self.assertGreater(miles[-1], 1.5 * miles[0])
        driven = [row for row in first if row["test_mileage"]]
        little = [row for row in driven if row["test_mileage"] < 20000]
        much = [row for row in driven if row["test_mileage"] > 120000]
        self.assertGreater(pass_share(little) - pass_share(much), 0.2)
        petrol = mean(row["cylinder_capacity"] for row in first if row["fuel_type"][0] == "P")
        diesel = mean(row["cylinder_capacity"] for row in first if row["fuel_type"][0] == "D")
        self.assertGreater(diesel, petrol + 200)
        for row in rows:
            if row["test_class_id"] == 1 and row["cylinder_capacity"]:
                self.assertLessEqual(row["cylinder_capacity"], 200)

        self.assertEqual(len({row["test_id"] for row in rows}), len(rows))
        self.assertGreater(max(row["test_id"] for row in rows), 1_990_000_000)
        self.assertLess(max(row["test_id"] for row in rows), 2_000_000_000)
        self.assertLess(max(row["vehicle_id"] for row in rows), 1_500_000_000)
        vehicles = {row["vehicle_id"]: row for row in rows if row["test_type"] in ("N", "NT")}
        retests = [row for row in rows if row["test_type"] == "RT"]
        for row in retests:
            before = vehicles[row["vehicle_id"]]
            self.assertEqual(row["colour"], before["colour"])
            if row["test_date"] and before["test_date"]:
                self.assertGreaterEqual(row["test_date"], before["test_date"])

    def test_the_files_as_first_published(self):
        data, rows = self.made("A")
        self.assertAlmostEqual(len(data) / len(rows), 96, delta=3)
        first = first_tests_of_cars(rows)
        self.assert_shares(Counter(row["colour"] for row in first), len(first),
                           {"SILVER": 23.5, "BLUE": 23.1, "RED": 13.2, "BLACK": 12.5, "GREEN": 8.9,
                            "GREY": 7.5, "WHITE": 7.4}, 0.05)
        self.assert_shares(Counter(row["make"] for row in first), len(first),
                           {"FORD": 16.3, "VAUXHALL": 12.4, "VOLKSWAGEN": 7.4, "PEUGEOT": 6.8,
                            "RENAULT": 6.2, "TOYOTA": 4.4, "NISSAN": 4.1, "CITROEN": 3.9,
                            "BMW": 3.5, "MERCEDES": 3.1, "HONDA": 3.0, "FIAT": 2.9}, 0.06)
        self.assert_shares({"first": len(first), "zero": sum(not row["test_mileage"]
                                                             for row in rows)},
                           len(rows), {"first": 73.9, "zero": 1.2}, 0.05)
        self.check_relations(rows)

    def test_the_files_of_2021(self):
        _, rows = self.made("E")
        self.assert_shares(Counter(row["test_class_id"] for row in rows), len(rows),
                           {4: 94.49, 7: 2.78, 2: 1.95, 1: 0.62, 5: 0.13}, 0.05)
        self.assert_shares(Counter(row["test_type"] for row in rows), len(rows), {"NT": 82.7, "RT": 17.3}, 0.03)
        self.assert_shares(Counter(row["test_result"] for row in rows), len(rows),
                           {"P": 75.30, "F": 18.97, "PRS": 5.16, "ABR": 0.5, "ABA": 0.06}, 0.1)
        self.assert_shares(Counter(row["colour"] for row in rows), len(rows),
                           {"BLACK": 19.2, "WHITE": 18.1, "SILVER": 17.4, "BLUE": 15.9,
                            "GREY": 13.4, "RED": 10.1, "GREEN": 2.1}, 0.05)
        self.assert_shares(Counter(row["make"].upper() for row in rows), len(rows),
                           {"FORD": 14.5, "VAUXHALL": 10.1, "VOLKSWAGEN": 8.9, "BMW": 5.1,
                            "MERCEDES-BENZ": 5.0, "NISSAN": 4.7, "PEUGEOT": 4.7, "AUDI": 4.5,
                            "TOYOTA": 4.5, "RENAULT": 3.6, "HONDA": 3.4}, 0.1)
        self.assert_shares(Counter(row["cylinder_capacity"] for row in rows), len(rows),
                           {1598: 8.0, 1968: 4.8, 998: 4.2, 1560: 4.2, 1995: 3.9, 1242: 3.4},
                           0.15)
        self.assert_shares(Counter(row["postcode_area"] for row in rows), len(rows),
                           {"B": 2.9, "S": 2.2, "NG": 1.9, "BS": 1.9, "PE": 1.8, "LE": 1.7}, 0.05)
        missing = Counter({column: sum(row[column] is None for row in rows)
                           for column in ("test_mileage", "cylinder_capacity")})
        self.assert_shares(missing, len(rows), {"test_mileage": 0.75, "cylinder_capacity": 0.24}, 0.1)
        miles = sorted(row["test_mileage"] for row in rows if row["test_mileage"] is not None)
        for share, mileage in ((.05, 14512), (.25, 37676), (.5, 65725), (.75, 100920),
                               (.95, 161815)):
            self.assertAlmostEqual(miles[int(len(miles) * share)] / mileage, 1, delta=0.12)
        days = Counter(row["test_date"] for row in rows)
        self.assertIn(len(days), range(359, 365))
        self.check_relations(rows)

    def test_lines_of_the_second_publication_are_as_long_as_the_real_ones(self):
        data = self.generate("--rows", "50k")
        self.assertAlmostEqual(len(data) / 50001, 85, delta=2)


class Options(DatagenCase):
    def test_all_wrong_options_are_reported_at_once(self):
        outcome = self.run_program(
            "shardload-datagen", "--rows", "many", "--seed=-1", "--dialect", "H", "--files", "0",
            "--gzip-level", "11", "--dirt", "some", "--bad", "3x", "--year", "13", "--gzip=9",
            "--format", "xml", "--frobnicate", "-q", "one.txt", "two.txt", "--rows")
        self.assertEqual(outcome.code, 2)
        for word in ("rows", "many", "seed", "'H'", "files", "gzip-level", "11", "some", "3x",
                     "year", "'--gzip' doesn't allow an argument", "xml", "frobnicate", "'q'", "two.txt",
                     "'--rows' requires an argument"):
            self.assertIn(word, outcome.err)
        self.assertEqual(list(self.scratch.glob("*.txt")), [], "something was written")

    def test_options_that_exclude_each_other(self):
        for words, word in ((["--files", "2", "-"], "standard output"),
                            (["--rows", "10", "--bad", "6", "x"], "--bad"),
                            ([], "OUTPUT")):
            outcome = self.run_program("shardload-datagen", *words)
            self.assertEqual(outcome.code, 2)
            self.assertIn(word, outcome.err)

    def test_help_explains_the_options(self):
        outcome = self.run_program("shardload-datagen", "--help")
        self.assertEqual((outcome.code, outcome.err), (0, ""))
        for word in ("--rows", "--dialect", "Examples", "Exit status", *DIALECTS):
            self.assertIn(word, outcome.out)

    def test_year_of_the_data(self):
        data = self.generate("--rows", "2000", "--year", "2008", "--dirt", "none")
        self.assertEqual({row["test_date"].year for row in read(data)[0]}, {2008})


# rows.py

EXTENSIONS = {"emails": "bson", "flights": "csv", "orders": "csv", "lineitems": "csv", "tweets": "json",
              "sensors": "csv"}
FORMATS = {"emails": "bson", "flights": "delimited", "orders": "delimited", "lineitems": "delimited",
           "tweets": "json", "sensors": "delimited"}

DIGESTS = {"emails": "e695f4e4df9aed9afb276cc2e282c5e0",
           "flights": "8a878f0e5cf07bbb27f8dde4c0b47399",
           "orders": "a79775e32206d83af8d33d7a35ff84de",
           "lineitems": "993ee6a2e703115df4beb5b53cb2b618",
           "tweets": "d6f900d3869b02ceec1f4165053fc8fb",
           "sensors": "a384d31a1346ad99ce14b9bae77982d4"}


class Rows(support.Case):
    """rows.py, the data sets of tools/reproduce: each loads without rejects, is the same on every run, and
    repeats itself as real data does."""

    def data(self, name, rows, *words):
        path = self.scratch / f"{name}-{rows}-{len(words)}.{EXTENSIONS[name]}"
        subprocess.run([sys.executable, support.TREE / "tools/datagen/rows.py", name, "--rows", str(rows), *words,
                        path], check=True)
        return path

    def table(self, name, rows, delimiter=","):
        return list(csv.DictReader(io.StringIO(self.data(name, rows).read_text("utf-8")), delimiter=delimiter))

    def test_each_loads_without_rejects(self):
        for name, kind in FORMATS.items():
            path = self.data(name, 1000)
            record = support.run_record(self.parse(path)[1])
            self.assertEqual([source["format"] for source in record["sources"]], [kind])
            expected = path.read_text("utf-8").count("\n") - 1 if name == "lineitems" else 1000
            self.assertEqual(record["accounting"]["inserted"], expected, name)

    def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones(self):
        for name in FORMATS:
            first = self.data(name, 500).read_bytes()
            self.assertEqual(self.data(name, 500, "--seed=1").read_bytes(), first)
            self.assertNotEqual(self.data(name, 500, "--seed", "2").read_bytes(), first)
            # The first records do not depend on the number of records.
            self.assertTrue(self.data(name, 900).read_bytes().startswith(first), name)

    def test_texts_repeat_themselves_but_not_only(self):
        for name in FORMATS:
            text = self.data(name, 1000).read_bytes()
            ratio = len(text) / len(zlib.compress(text))
            self.assertTrue(2 < ratio < 15, f"{name}: {ratio}")

    def test_line_items_belong_to_orders(self):
        orders = {row["o_orderkey"]: row for row in self.table("orders", 1000, "|")}
        items = self.table("lineitems", 1000, "|")
        self.assertEqual(len(orders), 1000)
        self.assertEqual({row["l_orderkey"] for row in items}, set(orders))
        for row in items:
            self.assertLess(orders[row["l_orderkey"]]["o_orderdate"], row["l_shipdate"])
            self.assertLess(row["l_shipdate"], row["l_receiptdate"])
        numbers = {}
        for row in items:
            numbers.setdefault(row["l_orderkey"], []).append(int(row["l_linenumber"]))
        self.assertEqual({tuple(lines) for lines in numbers.values()},
                         {tuple(range(1, count + 1)) for count in range(1, 8)})

    def test_orders_with_line_items_become_one_document(self):
        orders, items = self.data("orders", 400), self.data("lineitems", 400)
        raw, _ = self.dump("--embed", f"items={items}", "--on", "o_orderkey=l_orderkey", orders)
        self.assertEqual(len(raw), 400)

    def test_the_delay_of_a_flight_is_the_time_between_its_scheduled_and_actual_departure(self):
        flown = [row for row in self.table("flights", 2000) if row["cancelled"] == "false"]
        for row in flown:
            scheduled, actual = (datetime.datetime.fromisoformat(row[f"departure.{kind}"].rstrip("Z"))
                                 for kind in ("scheduled", "actual"))
            self.assertEqual((actual - scheduled).total_seconds() / 60, int(row["delay.departure"]), row)
        self.assertTrue(any(int(row["delay.departure"]) < 0 for row in flown))

    def test_the_log_has_the_columns_of_its_schema(self):
        rows = self.table("sensors", 100)
        self.assertEqual(len(rows[0]), 40)
        for name in ("Device Time", "Engine RPM(rpm)", "Engine Load(%)", "Intake Manifold Pressure(kPa)"):
            self.assertNotEqual(rows[0][name], "-")
        self.assertEqual(rows[0]["Longitude"], "-")

    def test_tweets_of_a_user_have_the_same_description(self):
        tweets = [json.loads(line) for line in self.data("tweets", 3000).read_text("utf-8").splitlines()]
        described = {}
        for tweet in tweets:
            described.setdefault(tweet["user"]["id"], set()).add(tweet["user"]["description"])
        self.assertEqual({len(texts) for texts in described.values()}, {1})
        self.assertLess(len(described), 2500)
        self.assertEqual(len({tweet["id"] for tweet in tweets}), 3000)

    def test_the_bytes_are_those_of_the_published_measurements(self):
        """Digests of seed 1, unchanged since the first version."""
        for name, digest in DIGESTS.items():
            self.assertEqual(hashlib.md5(self.data(name, 2000).read_bytes()).hexdigest(), digest, name)
