# SPDX-License-Identifier: Apache-2.0
"""Files and entries of archives that are not recognised: they are listed, and end the load with exit
code 3 unless --skip-other is given."""
import gzip
import re
import subprocess
import tarfile
import unittest
import zipfile

import bson

import archive_making as making
import support
from support import HEADER, ROW

RESULTS = "".join([HEADER, "\n", *(ROW.format(id=n) + "\n" for n in range(1, 4))]).encode()
ITEMS = b"test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n1|8394|A|7|\n"
ENTRIES = [("results.csv", RESULTS), (".hidden.csv", RESULTS), ("__MACOSX/x.csv", RESULTS),
           ("empty.csv", b""), ("items.csv", ITEMS), ("readme.txt", b"Read me. This is no data.\n"),
           ("guide.pdf", b"%PDF-1.4"), ("more.csv", RESULTS)]
NOT_LOADED = {"items.csv": "holds test items, not test results", "readme.txt": "", "guide.pdf": "PDF"}


class Case(support.Case):
    def archives(self):
        tar = making.tar(ENTRIES)
        return [self.file("a.zip", making.zip_of(ENTRIES)), self.file("a.tar", tar), self.zipped("a.tar.gz", tar)]


class Tables(Case):
    """Different tables of delimited text in a folder or an archive."""
    customers, orders = b"Kunden-Nr.;Name;PLZ\n1;Ann;01067\n", b"Nr;Kunden-Nr.;Betrag;Tag\n7;1;3;1\n"
    message = ("another table than {}: its columns are Nr, Kunden-Nr., Betrag, Tag, and those of the other are "
               "Kunden-Nr., Name, PLZ. Load each table into a separate collection")

    def setUp(self):
        super().setUp()
        (self.scratch / "f").mkdir()
        self.paths = [self.file("f/a.csv", self.customers), self.file("f/b.csv", self.orders)]

    def test_a_folder_is_refused(self):
        for words in ([], ["--skip-other"]):
            for command in ("load", "--sink", "null"), ("inspect",):
                self.shardload(*command, "f", *(words if command[0] == "load" else []), code=support.EXIT_SOURCE,
                               message="f/b.csv: " + self.message.format("f/a.csv"))
        _, work = self.dump("--include", "a*", "f")
        self.assert_accounting(work, records=1)

    def test_named_files_are_loaded_together(self):
        outcome = self.shardload("load", "--sink", "null", "--work-dir", "w", *self.paths)
        self.assertIn("both are loaded into one collection", outcome.err)
        self.assert_accounting(self.scratch / "w", records=2)

    def test_an_entry_of_an_archive_is_not_loaded(self):
        path = self.file("a.tar", making.tar([("a.csv", self.customers), ("b.csv", self.orders)]))
        for words, code in (([], support.EXIT_SOURCE), (["--skip-other"], support.EXIT_OK)):
            outcome = self.shardload("load", "--sink", "null", "--work-dir", f"w{len(words)}", *words, path, code=code)
            self.assertIn("a.tar: b.csv: not loaded: " + self.message.format(f"{path}: a.csv"), outcome.err)
            self.assert_accounting(self.scratch / f"w{len(words)}", records=1)

    def test_common_columns(self):
        """More than two thirds are one table: tables of all kinds have a key and a name. A count of columns without
        names is another table's."""
        schema = self.file("s.yaml", "name: s\ncolumns: [{name: Kunden-Nr.}, {name: Name}, {name: PLZ}]\n")
        for text, words in ((b"Name;Kunden-Nr.;PLZ;Ort\nB;2;1;X\n", ()), (self.orders, ("--schema", schema))):
            self.file("f/b.csv", text)
            self.assert_accounting(self.dump(*words, "f")[1], records=2)
        for a, b in ((self.customers, b"Kunden-Nr.;Name\n1;B\n"), (self.customers, b"Name;Kunden-Nr.;Preis\nB;2;1.5\n"),
                     (b"1;a\n2;b\n", b"1;2;a\n3;4;b\n")):
            for name, text in ("a", a), ("b", b):
                self.file(f"f/{name}.csv", text)
            self.shardload("inspect", "f", code=support.EXIT_SOURCE, message="f/b.csv: another table than f/a.csv: ")

    def test_a_renamed_column(self):
        """Queries for one name do not find the other; columns that were only added are no such sign."""
        for last, warns in ("Umsatz", True), ("Betrag;Ort", False):
            for name, columns in ("a", "Betrag"), ("b", last):
                self.file(f"f/{name}.csv", f"Nr;Name;Tag;{columns}\n1;A;2;3{';X' * columns.count(';')}\n")
            outcome = self.shardload("inspect", "f")
            self.assertEqual("f/b.csv has other columns than f/a.csv: new: Umsatz; missing: Betrag. If a column was"
                             in outcome.err, warns, outcome.err)


class Archives(Case):
    def assert_listed(self, outcome, work, path):
        self.assert_accounting(work, inserted=6)
        found = support.run_record(work)["notLoaded"]
        self.assertEqual(found["count"], len(NOT_LOADED))
        self.assertEqual(sorted((item["path"], item["entry"]) for item in found["items"]),
                         sorted((str(path), name) for name in NOT_LOADED))
        for item in found["items"]:
            self.assertIn(NOT_LOADED[item["entry"]], item["reason"])
            self.assertIn(f"{path}: {item['entry']}: not loaded: ", outcome.err)
        self.assertEqual(outcome.err.count(f"{path}: empty.csv: empty; nothing to load"), 1)
        self.assertRegex(outcome.text, r"files and entries not loaded +3\n")
        log = (work / "shardload.log").read_text()
        for name in (".hidden.csv", "__MACOSX/x.csv"):
            self.assertIn(f"{name}: hidden; skipped", log)
            self.assertNotIn(name, outcome.text)

    def test_entries_that_are_not_loaded(self):
        for path in self.archives():
            for threads in (1, 3):
                with self.subTest(path.name, threads=threads):
                    outcome, work = self.parse("-j", threads, path, code=support.EXIT_SOURCE)
                    self.assert_listed(outcome, work, path)
                    self.assertRegex(outcome.err, r"items.csv: not loaded: .*\n(?s:.*)"
                                     r"3 files or archive entries are not loaded.*--skip-other")
                    self.assertEqual(support.run_record(work)["exitCode"], support.EXIT_SOURCE)
                    outcome, work = self.parse("-j", threads, "--skip-other", path)
                    self.assert_listed(outcome, work, path)

    def test_entries_beside_json(self):
        for other in (b"a,b\n1,2\n" * 300000, b"[1,2]\n", b"\x0c\0\0\0\x10a\0\x01\0\0\0\0"):
            path = self.file("json.zip", making.zip_of([
                ("1.json", b'{"a":1}\n{"a":2}\n'), ("x", other), ("2.json", b'[{"a":3},{"a":\n4}]')]))
            self.parse(path, code=support.EXIT_SOURCE, message="x: not loaded: this is not JSON")
            _, work = self.parse("--skip-other", path)
            self.assert_accounting(work, inserted=4)

    def test_archives_from_a_pipe(self):
        for path in self.archives():
            with self.subTest(path.name):
                for words, code in (([], support.EXIT_SOURCE), (["--skip-other"], support.EXIT_OK)):
                    outcome, work = self.parse(*words, "-", code=code, stdin=path.read_bytes())
                    self.assert_listed(outcome, work, "-")

    def test_entries_before_the_first_loaded_entry(self):
        path = self.file("front.zip", making.zip_of([("0.pdf", b"%PDF-1.4"), ("1.csv", RESULTS)]))
        for words in ([path], ["-"]):
            outcome, _ = self.parse(*words, code=support.EXIT_SOURCE, stdin=path.read_bytes())
            self.assertEqual(outcome.err.count("0.pdf: not loaded"), 1, outcome.err)

    def test_text_before_the_first_loaded_entry(self):
        """A readme at the beginning made the archive one of an unknown format, which no option loaded."""
        rows = "".join(f"{n};{n},5\n" for n in range(100)).encode()
        entries = [("LIESMICH.txt", b"Hinweise zum Datensatz\nStand 2025\n"), ("notes.md", b"# Notes\n" * 9),
                   ("1.csv", b"id;wert\n" + rows), ("2.csv", b"id;wert\n" + rows)]
        tar = making.tar(entries)
        for path in (self.file("a.zip", making.zip_of(entries)), self.file("a.tar", tar), self.zipped("a.tar.gz", tar)):
            with self.subTest(path.name):
                _, work = self.parse(path, code=support.EXIT_SOURCE,
                                     message=("LIESMICH.txt: not loaded: ", "notes.md: not loaded: "))
                self.assert_accounting(work, inserted=200)
                outcome, work = self.parse("--skip-other", path)
                self.assertIn("types inferred from 200 sampled records: 2 numbers", outcome.err)
                self.assertIn("not loaded: LIESMICH.txt", self.shardload("inspect", path).out)
                outcome, _ = self.parse("-", stdin=path.read_bytes(), code=support.EXIT_SOURCE)
                self.assertIn("Name the archive as a file; --include PATTERN", outcome.err)
                self.parse("--include", "*.csv", "-", stdin=path.read_bytes())
        path = self.file("b.zip", making.zip_of(entries[:2]))
        self.parse(path, code=support.EXIT_SOURCE, message="the format of none of its first entries is recognised")

    def test_include_selects_entries(self):
        for path in self.archives():
            self.parse("--include", "[rm]*e*s*.csv", path)

    def test_a_hard_link_to_an_entry_that_is_not_loaded(self):
        """The content of a hard link is stored under its first name only."""
        for target in ("one.csv", ".hidden/one.csv", "gone.csv"):
            path = self.file("links.tar", making.tar([("one.csv", RESULTS), (".hidden/one.csv", RESULTS),
                                                      ("p/x.dat", RESULTS)]))
            with tarfile.open(path, "a") as archive:
                entry = tarfile.TarInfo("two_files.dat")
                entry.type, entry.linkname = tarfile.LNKTYPE, target
                archive.addfile(entry)
            loaded = target == "one.csv"
            for words, found in (["--include", "*.dat"], True), (["--include", "*.csv"], False), ([], not loaded):
                outcome, work = self.parse(*words, path, code=support.EXIT_SOURCE if found else support.EXIT_OK)
                self.assertEqual("two_files.dat: not loaded: this is a hard link to an entry" in outcome.err, found)
                self.assert_accounting(work, inserted=3 if words else 6)

    def test_links_in_a_zip_are_skipped(self):
        path = self.scratch / "links.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("1.csv", RESULTS)
            link = zipfile.ZipInfo("link.csv")
            link.create_system, link.external_attr = 3, 0o120777 << 16
            archive.writestr(link, "1.csv")
        _, work = self.parse(path)
        self.assert_accounting(work, inserted=3)

    def test_inspect_and_plan_list_entries_that_are_not_loaded(self):
        for path in self.archives():
            outcome = self.shardload("inspect", path)
            for name, reason in NOT_LOADED.items():
                self.assertRegex(outcome.out, rf"(?m)^  not loaded: {name}: .*{reason}")
            outcome = self.shardload("plan", path, code=support.EXIT_SOURCE)
            self.assertIn("a load would refuse to start: 3 files or archive entries", outcome.err)
            self.shardload("plan", "--skip-other", path)

    def test_of_1200_entries_20_are_shown_and_all_are_counted(self):
        path = self.file("many.zip", making.zip_of([("0.csv", RESULTS)] + [(f"n{n}.txt", b"no\n")
                                                                           for n in range(1, 1201)]))
        outcome, work = self.parse(path, code=support.EXIT_SOURCE)
        found = support.run_record(work)["notLoaded"]
        self.assertEqual((found["count"], len(found["items"])), (1200, 1000))
        self.assertEqual(outcome.err.count("not loaded: "), 20)
        self.assertEqual((work / "shardload.log").read_text().count("not loaded: "), 1200)


class Folders(Case):
    def test_a_file_that_is_not_recognised_ends_the_load_at_the_start(self):
        folder = self.file("in/1.csv", RESULTS).parent
        self.file("in/empty.csv", b"")
        self.file("in/.hidden", RESULTS)
        self.parse(folder)
        self.file("in/readme.md", b"Notes.\n")
        self.file("in/x.pdf", b"%PDF-1.4")
        outcome, work = self.parse(folder, code=support.EXIT_SOURCE)
        self.assertFalse(work.exists())
        lines = [line for line in outcome.err.splitlines() if "empty" not in line]     # one for each file
        self.assertEqual(len(lines), 3, outcome.err)
        self.assertRegex(lines[0], f"{folder}/readme.md: not loaded: its format is not recognised; `shardload")
        self.assertRegex(lines[1], f"{folder}/x.pdf: not loaded: this is a PDF document")
        self.assertRegex(lines[2], "2 files or archive entries are not loaded.*--skip-other")
        outcome, work = self.parse("--skip-other", folder)
        self.assert_accounting(work, inserted=3)
        self.assertEqual([item["path"] for item in support.run_record(work)["notLoaded"]["items"]],
                         [f"{folder}/readme.md", f"{folder}/x.pdf"])
        self.assertIn(".hidden: hidden; skipped", (work / "shardload.log").read_text())
        self.parse("--include", "*.csv", folder)
        outcome = self.shardload("inspect", folder)
        self.assertRegex(outcome.out, rf"{folder}/readme.md\n  not loaded: its format is not recognised")


class Memory(Case):
    @unittest.skipIf("address" in str(support.os.environ.get("SHARDLOAD_BUILD")),
                     "sanitizers keep freed memory")
    def test_memory_does_not_grow_with_the_number_of_entries(self):
        text = b"id|name\n1|x\n2|y\n"
        few, many = {}, {}
        for count, peaks in ((20_000, few), (200_000, many)):
            making.write_many(self.scratch / "a.tar", self.scratch / "a.zip", count, text)
            for name in ("a.tar", "a.zip"):
                peaks[name], _ = self.peak(self.scratch / name)
        for name, peak in few.items():
            self.assertLess(many[name] - peak, 12 << 20, f"{name}: {peak} bytes, then {many[name]}")


class Binary(Case):
    """A binary file may contain a CR before its first LF, which ends a load of text."""

    PICTURE = b"\x00\x01PICT\rure\x00" * 9

    def test_in_a_folder_and_in_an_archive(self):
        folder = self.file("folder/a.csv", RESULTS).parent
        self.file("folder/b.bin", self.PICTURE)
        path = self.file("a.tar", making.tar([("a.csv", RESULTS), ("b.bin", self.PICTURE)]))
        for source in (folder, path):
            with self.subTest(source.name):
                self.parse(source, code=support.EXIT_SOURCE, message="b.bin: not loaded: ")
                _, work = self.parse("--skip-other", source)
                self.assert_accounting(work, inserted=3)
                self.assertEqual(support.run_record(work)["notLoaded"]["count"], 1)

    def test_text_is_not_skipped(self):
        self.file("folder/a.csv", RESULTS)
        self.file("folder/b.csv", RESULTS.replace(b"\n", b"\r", 1))
        self.parse("--skip-other", "folder", code=support.EXIT_SOURCE, message="carriage return")


class WorkDirectories(Case):
    def test_files_of_a_work_directory_below_a_source_are_not_loaded(self):
        folder = self.file("folder/a.csv", RESULTS + b"a line|of two_files fields\n").parent
        first = ["load", "--sink", "null", "--progress", "none", "--work-dir", folder / "run", folder]
        self.shardload(*first, code=support.EXIT_REJECTS)
        own = {path.name for path in (folder / "run").iterdir()}
        self.assertEqual(own, {"rejected", "rejects.tsv", "run.json", "shardload.log", "status.json"})
        self.file("folder/run/b.csv", RESULTS)  # not written by the load: a source
        outcome, work = self.parse(folder, code=support.EXIT_REJECTS)
        self.assertIn(f"{folder}/run: the work directory of a load; ", outcome.err)
        self.assertEqual([source["path"] for source in support.run_record(work)["sources"]],
                         [f"{folder}/a.csv", f"{folder}/run/b.csv"])


class Copies(Case):
    def two_files(self, change):
        """Two files with equal name and size, larger than the bytes that a fingerprint covers. With
        `change` they differ in the middle."""
        lines = [ROW.format(id=n) + "\n" for n in range(1, 4001)]
        texts = [HEADER + "\n" + "".join(lines)]
        middle = len(lines) // 2
        lines[middle] = lines[middle].replace("SILVER", "YELLOW") if change else lines[middle]
        texts.append(HEADER + "\n" + "".join(lines))
        assert len(texts[0]) == len(texts[1]) > 256 << 10 and (texts[0] == texts[1]) != change
        return [self.file(f"{folder}/results.csv", text) for folder, text in zip("ab", texts)]

    def test_files_of_the_same_name_and_content_are_all_loaded(self):
        """The parts of a partitioned data set may be equal: day=1/part.csv, day=2/part.csv."""
        first, second = self.two_files(change=False)
        third = self.file("c/results.csv", first.read_bytes())
        outcome, work = self.parse(self.scratch)
        for path in (second, third):
            self.assertIn(f"{path} is a copy of {first}, with the same name and content: both are loaded", outcome.err)
        self.assert_accounting(work, inserted=12000)
        sources = support.run_record(work)["sources"]
        self.assertEqual(len({source["fingerprint"] for source in sources}), 3)
        documents = self.dump("a", "b", "c")[0]
        self.assertEqual(len({bson.decode(document)["_id"] for document in documents}), 12000)

    def test_the_same_text_under_other_names_is_reported(self):
        """Compressed copies, backups and older versions. Texts that are only a header are not."""
        long = HEADER + "\n" + "".join(ROW.format(id=n) + "\n" for n in range(4000))
        files = {"x.csv": HEADER + "\n", "y.csv": HEADER + "\n", "z.csv": RESULTS}
        files |= {"in/a.csv": long, "in/a.csv.bak": long, "in/a.csv.gz": gzip.compress(long.encode()),
                  "in/old.csv": long[:long.index("\n", 100000) + 1]}
        outcome, work = self.parse(*(self.file(name, content) for name, content in files.items()))
        warned = re.findall(r"in/(\S+) begins with the same text as \S+in/(\S+)\. If", outcome.err)
        self.assertEqual(sorted(warned), [(name, "a.csv") for name in ("a.csv.bak", "a.csv.gz", "old.csv")])
        self.assertNotIn("the same name and content", outcome.err)

    def test_only_the_first_copies_are_listed(self):
        for number in range(9):
            self.file(f"day={number}/part.csv", RESULTS)
        outcome, work = self.parse(self.scratch)
        self.assert_accounting(work, inserted=27)
        self.assertEqual(outcome.err.count(" is a copy of "), 5)
        self.assertIn("8 files are copies of others, ", outcome.err)

    def test_one_file_with_several_paths_is_loaded_once(self):
        path = self.file("in/results.csv", RESULTS)
        (self.scratch / "in/hard.csv").hardlink_to(path)
        (self.scratch / "in/soft.csv").symlink_to("results.csv")
        (self.scratch / "in/z").mkdir()
        (self.scratch / "in/z/results.csv").hardlink_to(path)
        for words, others in ([["in"], 3], [["in", "in/results.csv"], 4], [[path, path], 1]):
            outcome, work = self.parse(*words)
            self.assert_accounting(work, inserted=3)
            self.assertEqual(outcome.err.count(" is the same file as "), others)

    def test_different_files_of_the_same_name_size_and_ends_are_refused(self):
        first, second = self.two_files(change=True)
        offset = next(i for i, (x, y) in enumerate(zip(first.read_bytes(), second.read_bytes())) if x != y)
        for words in ([self.scratch / "a", self.scratch / "b"], [first, second]):
            self.parse(*words, code=support.EXIT_SOURCE,
                       message=(f"{first} and {second} have the same name, size, ", f"differ at byte {offset}: "))

    def test_a_file_that_is_also_standard_input(self):
        path = self.file("results.csv", RESULTS)
        for words in ([path, "-"], ["-", path], ["-", self.scratch]):
            with open(path, "rb") as stdin:
                done = subprocess.run([support.program("shardload"), "load", "--sink", "null", *words],
                                      stdin=stdin, capture_output=True, text=True,
                                      timeout=support.LIMIT)
            self.assertEqual(done.returncode, support.EXIT_SOURCE, done.stderr)
            self.assertIn(f"standard input is the file {path}, ", done.stderr)
