# SPDX-License-Identifier: Apache-2.0
"""The data generator: its files follow the published layouts, and its answers are right.

Generated files must be the same on every machine, resemble the published files, and come with right
answers. An independent reader (mot_reader.py) reads each dialect back, and the answers of the four
queries are computed again.
"""
import gzip
import json
import math
import re
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


# The queries, over rows

def percent(part, whole):
    return 100 * (part / whole)


def green_ness(rows):
    bands = defaultdict(lambda: [0, 0])
    for row in rows:
        size = row["cylinder_capacity"] or 0
        band = 1 + sum(size > end for end in (1000, 1200, 1600, 2000, 2500, 3500))
        band *= 1.5 if row["fuel_type"] in ("D", "DI") else 1
        bands[band][0] += 1
        bands[band][1] += row["test_mileage"] or 0
    return [{"_id": band, "count": count, "miles": miles}
            for band, (count, miles) in sorted(bands.items())]


def first_tests_of_cars(rows):
    return [row for row in rows if row["test_class_id"] == 4 and row["test_type"] in ("N", "NT")]


def pass_rate_by_age(rows):
    ages = defaultdict(lambda: [0, 0])
    for row in first_tests_of_cars(rows):
        if row["first_use_date"] and row["test_date"]:
            age = ages[row["test_date"].year - row["first_use_date"].year]
            age[0] += 1
            age[1] += row["test_result"] in ("P", "PRS")
    return [{"_id": age, "tests": tests, "passed": passed, "passRate": percent(passed, tests)}
            for age, (tests, passed) in sorted(ages.items())]


def makes(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row["make"]].append(row)
    result = []
    for make, group in groups.items():
        miles = [row["test_mileage"] for row in group if row["test_mileage"] is not None]
        result.append({"_id": make, "tests": len(group),
                       "meanMiles": sum(miles) / len(miles) if miles else None,
                       "failRate": percent(sum(row["test_result"] == "F" for row in group),
                                           len(group))})
    result.sort(key=lambda one: (-one["tests"], one["_id"].encode()))
    return result[:20]


def worst_models(rows):
    groups = defaultdict(list)
    for row in first_tests_of_cars(rows):
        groups[row["make"], row["model"]].append(row["test_result"] == "F")
    result = [{"_id": {"make": make, "model": model}, "tests": len(group),
               "failRate": percent(sum(group), len(group))}
              for (make, model), group in groups.items() if len(group) >= 100]
    result.sort(key=lambda one: (-one["failRate"], -one["tests"], one["_id"]["make"].encode(),
                                 one["_id"]["model"].encode()))
    return result[:20]


QUERIES = {"green-ness": green_ness, "pass-rate-by-age": pass_rate_by_age, "makes": makes,
           "worst-models": worst_models}


# The tests

class DatagenCase(support.Case):
    def generate(self, *words, name="made.txt"):
        """Runs the generator; returns the bytes of the one file and the answers."""
        answers = self.scratch / (name + ".json")
        outcome = self.run_program("shardload-datagen", *words, "--answers", answers,
                                   self.scratch / name)
        self.assertEqual((outcome.code, outcome.text), (0, ""))
        return (self.scratch / name).read_bytes(), json.loads(answers.read_text("utf-8"))

    def assert_close(self, ours, theirs, where):
        """Equal, numbers to one part in a thousand million."""
        if isinstance(ours, dict):
            self.assertEqual(list(ours), list(theirs), where)
            for key in ours:
                self.assert_close(ours[key], theirs[key], f"{where}.{key}")
        elif isinstance(ours, list):
            self.assertEqual(len(ours), len(theirs), where)
            for index, (one, other) in enumerate(zip(ours, theirs)):
                self.assert_close(one, other, f"{where}[{index}]")
        elif isinstance(ours, float):
            self.assertTrue(math.isclose(ours, theirs, rel_tol=1e-9), f"{where}: {ours} {theirs}")
        else:
            self.assertEqual(ours, theirs, where)


class SameSeed(DatagenCase):
    def test_the_same_options_give_the_same_bytes(self):
        for words in (["--dialect", "A"], ["--dialect", "E"], [*ISD, "--stations", "20", "--ships"]):
            made = [self.generate(*words, "--rows", "5k", "--seed", seed) for seed in ("7", "7", "8")]
            self.assertEqual(made[0], made[1])
            self.assertNotEqual(made[0][0], made[2][0])

    def test_answers_do_not_change_the_file(self):
        for words in ([], [*ISD, "--bad", "9"]):
            words = [*words, "--rows", "5k", "--dirt", "heavy"]
            with_answers, _ = self.generate(*words)
            self.run_program("shardload-datagen", *words, self.scratch / "bare.txt")
            self.assertEqual((self.scratch / "bare.txt").read_bytes(), with_answers)

    def test_the_bytes_are_the_same_on_every_machine(self):
        # Lines of seed 1, unchanged since the first version. They change only with the tables or the
        # order of the draws.
        plain, _ = self.generate("--dialect", "A", "--rows", "2", "--dirt", "none")
        self.assertEqual(plain.decode().split("\n"), [
            "846153224|847826528|2013-11-11|4|N|F|97218|M|HONDA|CIVIC I-VTEC SE|WHITE|D|2000|"
            "1999-03-29",
            "63214694|847826528|2013-11-17|4|RT|P|97239|M|HONDA|CIVIC I-VTEC SE|WHITE|D|2000|"
            "1999-03-29", ""])


class Answers(DatagenCase):
    """The generator's answers are compared with those computed from its files."""

    def check(self, dialect, rows, dirt):
        data, report = self.generate("--dialect", dialect, "--rows", rows, "--dirt", dirt,
                                     name=f"{dialect}.txt")
        rows_read, reading = read(data)
        self.assertEqual(reading.rejects, [])
        for name, query in QUERIES.items():
            self.assertTrue(report["answers"][name], f"{name}: nothing to compare")
            self.assert_close(query(rows_read), report["answers"][name], f"{dialect} {name}")
        self.assertEqual(list(report["answers"]), list(QUERIES))
        expected = {"bytes": len(data), "rows": rows, "documents": rows,
                    "repeatedHeaders": reading.repeated_headers, "rejects": 0}
        self.assertEqual(len(rows_read), rows)
        self.assertEqual(report["totals"], expected)
        self.assertEqual(report["files"], [{"path": str(self.scratch / f"{dialect}.txt"),
                                            **expected}])
        generator = report["generator"]
        self.assertEqual((generator["format"], generator["dialect"], generator["rows"],
                          generator["seed"], generator["dirt"]), ("mot", dialect, rows, 1, dirt))

    def test_every_dialect_with_heavy_dirt(self):
        for dialect in DIALECTS:
            with self.subTest(dialect=dialect):
                # Dialect A has longer model names: more records until a model has a hundred tests.
                self.check(dialect, 60000 if dialect == "A" else 20000, "heavy")

    def test_without_dirt(self):
        self.check("D", 20000, "none")

    def test_no_records_at_all(self):
        data, report = self.generate("--rows", "0")
        self.assertEqual(data.decode(), "|".join(COLUMNS[:14]) + "\n")
        self.assertEqual(report["answers"], {name: [] for name in QUERIES})
        self.assertEqual(report["totals"]["documents"], 0)


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
            data, _ = self.generate("--dialect", dialect, "--rows", "40k", "--dirt", "heavy")
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
                self.assertEqual(any(row["test_mileage"] == 0 for row in rows),
                                 dialect == "A")
                self.assertEqual(any(row["test_mileage"] is None for row in rows),
                                 dialect != "A")
                self.assertEqual(any("|" in row["model"] for row in rows),
                                 dialect in ("B", "tab"))
                self.assertEqual(any(row["test_date"] is None for row in rows),
                                 dialect == "A")

    def test_missing_dates_of_the_quoted_dialect_in_both_spellings(self):
        data, _ = self.generate("--dialect", "E", "--rows", "20k", "--dirt", "heavy")
        self.assertRegex(data, rb',""\n')
        self.assertRegex(data, rb",\n")

    def test_no_dirt(self):
        for dialect in ("B", "E"):
            data, _ = self.generate("--dialect", dialect, "--rows", "40k", "--dirt", "none")
            self.assertNotRegex(data.split(b"\n", 1)[1], rb"[a-z\\\x80-\xff]|  ")
            for row in read(data)[0]:
                self.assertIsNotNone(row["test_mileage"])
                self.assertIsNotNone(row["first_use_date"])
                if row["cylinder_capacity"] is None:
                    self.assertEqual(row["fuel_type"], "EL")


class BadRecords(DatagenCase):
    KINDS = {"bad date", "letters in an integer", "missing test_id", "too few fields",
             "invalid UTF-8"}

    def test_bad_records_are_exactly_those_listed_in_the_answers(self):
        for dialect in DIALECTS:
            data, report = self.generate("--dialect", dialect, "--rows", "3000", "--bad", "42",
                                         "--dirt", "heavy", name=f"{dialect}.txt")
            rows, reading = read(data)
            with self.subTest(dialect=dialect):
                path = str(self.scratch / f"{dialect}.txt")
                self.assertEqual({bad["file"] for bad in report["bad"]}, {path})
                self.assertEqual([(bad["line"], bad["offset"], bad["column"])
                                  for bad in report["bad"]], [reject.place for reject in reading.rejects])
                self.assertEqual(len(reading.rejects), 42)
                kinds = self.KINDS | ({"too many fields"} if dialect in COMMA else set())
                self.assertEqual({bad["kind"] for bad in report["bad"]}, kinds)
                totals = report["totals"]
                self.assertEqual((totals["rows"], totals["documents"], totals["rejects"]),
                                 (3000, 2958, 42))
                self.assert_close(makes(rows), report["answers"]["makes"], dialect)
                # Each tenth of the file contains bad records.
                lines = data.count(b"\n")
                tenths = {bad["line"] * 10 // (lines + 1) for bad in report["bad"]}
                self.assertEqual(tenths, set(range(10)))

    def test_the_first_record_of_a_file_is_good(self):
        answers = self.scratch / "answers.json"
        outcome = self.run_program("shardload-datagen", "--dialect", "A", "--rows", "40", "--bad",
                                   "20", "--files", "20", "--answers", answers,
                                   self.scratch / "part.txt")
        self.assertEqual(outcome.code, 0, outcome.text)
        report = json.loads(answers.read_text())
        self.assertEqual(len(report["bad"]), 20)
        self.assertEqual({bad["line"] for bad in report["bad"]}, {2})


class Files(DatagenCase):
    def test_several_files_contain_the_records_of_one(self):
        whole, _ = self.generate("--rows", "10001", "--dirt", "heavy", "--dialect", "G1")
        answers = self.scratch / "answers.json"
        self.run_program("shardload-datagen", "--rows", "10001", "--dirt", "heavy", "--dialect",
                         "G1", "--files", "12", "--answers", answers, self.scratch / "p.csv.x")
        report = json.loads(answers.read_text("utf-8"))
        paths = [str(self.scratch / f"p-{number:02}.csv.x") for number in range(1, 13)]
        self.assertEqual([file["path"] for file in report["files"]], paths)
        joined = []
        for file in report["files"]:
            with open(file["path"], "rb") as stream:
                data = stream.read()
            header, rest = data.split(b"\n", 1)
            self.assertEqual(header.decode(), ",".join(COLUMNS))
            joined.append(rest)
            rows, reading = read(data)
            self.assertEqual((file["bytes"], file["rows"], file["repeatedHeaders"]),
                             (len(data), len(rows), reading.repeated_headers))
            self.assertIn(file["rows"], (833, 834))
        self.assertEqual(b"".join(joined), whole.split(b"\n", 1)[1])
        for count in ("bytes", "rows", "documents", "repeatedHeaders"):
            self.assertEqual(report["totals"][count],
                             sum(file[count] for file in report["files"]))

    def test_gzip_contains_the_same_text(self):
        plain, report = self.generate("--rows", "20k", "--bad", "5")
        packed, packed_report = self.generate("--rows", "20k", "--bad", "5", "--gzip",
                                              name="made.txt.gz")
        small, _ = self.generate("--rows", "20k", "--bad", "5", "--gzip-level", "9",
                                 name="small.gz")
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertEqual(gzip.decompress(small), plain)
        self.assertLess(len(small), len(packed))
        # Offsets are those of the uncompressed text.
        self.assertEqual([bad["offset"] for bad in report["bad"]],
                         [bad["offset"] for bad in packed_report["bad"]])
        self.assertEqual(packed_report["totals"], report["totals"])

    def test_standard_output(self):
        for words in ([], ISD):
            data, _ = self.generate(*words, "--rows", "300")
            outcome = self.run_program("shardload-datagen", *words, "--rows", "300", "-")
            self.assertEqual(outcome.out, data.decode())

    def test_a_full_disk_is_an_error(self):
        outcome = self.run_program("shardload-datagen", "--rows", "100k", "/dev/full")
        self.assertEqual(outcome.code, 1)
        self.assertIn("/dev/full", outcome.err)
        outcome = self.run_program("shardload-datagen", self.scratch / "no" / "folder.txt")
        self.assertEqual(outcome.code, 1)
        self.assertIn("folder.txt", outcome.err)


class Likeness(DatagenCase):
    """Generated data has the distributions of the published data."""

    def made(self, dialect):
        data, _ = self.generate("--dialect", dialect, "--rows", "200k")
        return data, read(data)[0]

    def assert_shares(self, found, total, published, tolerance):
        """Shares in per cent, each within the tolerance of the published one."""
        for value, share in published.items():
            self.assertAlmostEqual(100 * found[value] / total, share, delta=share * tolerance + .1,
                                   msg=value)

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
        self.assert_shares(Counter(row["test_type"] for row in rows), len(rows),
                           {"NT": 82.7, "RT": 17.3}, 0.03)
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
        self.assert_shares(missing, len(rows),
                           {"test_mileage": 0.75, "cylinder_capacity": 0.24}, 0.1)
        miles = sorted(row["test_mileage"] for row in rows if row["test_mileage"] is not None)
        for share, mileage in ((.05, 14512), (.25, 37676), (.5, 65725), (.75, 100920),
                               (.95, 161815)):
            self.assertAlmostEqual(miles[int(len(miles) * share)] / mileage, 1, delta=0.12)
        days = Counter(row["test_date"] for row in rows)
        self.assertIn(len(days), range(359, 365))
        self.check_relations(rows)

    def test_lines_of_the_second_publication_are_as_long_as_the_real_ones(self):
        data, _ = self.generate("--rows", "50k")
        self.assertAlmostEqual(len(data) / 50001, 85, delta=2)


class Options(DatagenCase):
    def test_all_wrong_options_are_reported_at_once(self):
        outcome = self.run_program(
            "shardload-datagen", "--rows", "many", "--seed=-1", "--dialect", "H", "--files", "0",
            "--gzip-level", "11", "--dirt", "some", "--bad", "3x", "--year", "13", "--gzip=9",
            "--format", "xml", "--frobnicate", "-q", "one.txt", "two.txt", "--answers")
        self.assertEqual(outcome.code, 2)
        for word in ("rows", "many", "seed", "'H'", "files", "gzip-level", "11", "some", "3x",
                     "year", "--gzip takes no value", "xml", "frobnicate", "-q", "two.txt",
                     "--answers needs a value"):
            self.assertIn(word, outcome.err)
        self.assertEqual(list(self.scratch.glob("*.txt")), [], "something was written")

    def test_options_that_exclude_each_other(self):
        for words, word in ((["--files", "2", "-"], "standard output"),
                            (["--rows", "10", "--bad", "6", "x"], "--bad"),
                            (["--answers", "same", "same"], "both 'same'"),
                            ([], "OUTPUT")):
            outcome = self.run_program("shardload-datagen", *words)
            self.assertEqual(outcome.code, 2)
            self.assertIn(word, outcome.err)

    def test_help_explains_the_options(self):
        outcome = self.run_program("shardload-datagen", "--help")
        self.assertEqual((outcome.code, outcome.err), (0, ""))
        for word in ("--rows", "--dialect", "--answers", "Examples", "Exit status", *DIALECTS):
            self.assertIn(word, outcome.out)

    def test_year_of_the_data(self):
        data, _ = self.generate("--rows", "2000", "--year", "2008", "--dirt", "none")
        self.assertEqual({row["test_date"].year for row in read(data)[0]}, {2008})
