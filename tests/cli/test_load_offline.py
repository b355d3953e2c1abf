# SPDX-License-Identifier: Apache-2.0
"""Loads of MOT files without a server: records and the bytes of their documents."""
import datetime
import gzip
import os
import random
import re
import resource
import signal
import stat
import threading

import mot_reader
import support
from support import HEADER, ROW

DIALECTS = ["A", "B", "C1", "C2", "D", "E", "F", "G1", "G2", "tab"]


class TheReader(support.Case):
    """The independent reader itself is right about files whose content is known."""

    ROWS = {
        "test_result_2005_2016_pipe_header.txt": 15, "test_result_2005_2013_original_style.txt": 13,
        "test_result_2018_2020_comma.csv": 15, "test_result_2021_quoted.csv": 87,
        "test_result_2021_quoted_joined_a.csv": 50, "test_result_2022_2023_pipe.csv": 12,
        "dirty_verbatim_2015_extra_pipe.txt": 1, "test_item_2005_pipe_header.txt": 5,
        "test_item_2023_pipe.csv": 5, "constructed_dirty_comma_backslash.csv": 10,
        "constructed_dirty_pipe.csv": 5, "item_detail_pre2018.txt": 10343,
        "item_group_pre2018.txt": 2134, "mdr_fuel_types.csv": 14, "mdr_test_outcome.csv": 7,
        "mdr_test_type.csv": 6, "mdr_rfr_location_partial.csv": 9,
    }

    def test_every_sample_has_its_published_number_of_rows(self):
        for name, rows in self.ROWS.items():
            with self.subTest(name):
                reading = mot_reader.read(support.mot_sample(name))
                self.assertEqual((len(reading.documents), len(reading.rejects)), (rows, 0))

    def test_the_real_line_with_pipes_in_its_model(self):
        reading = mot_reader.read(support.mot_sample("dirty_verbatim_2015_extra_pipe.txt"), names="long")
        document = reading.documents[0]
        self.assertEqual((document["make"], document["model"], document["colour"]), ("TOYOTA", "Estima ||", "SILVER"))

    def test_the_constructed_comma_file_has_quotes_commas_and_odd_years(self):
        reading = mot_reader.read(support.mot_sample("constructed_dirty_comma_backslash.csv"))
        models = [document["o"] for document in reading.documents]
        self.assertIn('STREETZONE 50 2T 12"', models)
        self.assertIn("SERIES 1, 80 INCH", models)
        self.assertEqual(reading.repeated_headers, 1)
        self.assertEqual({1, 2913} & {document["i"].year for document in reading.documents
                                      if "i" in document}, {1, 2913})

    def test_ids_contain_source_and_offset(self):
        self.assertEqual(mot_reader.document_id(1, 0), 1 << 40)
        self.assertEqual(mot_reader.document_id(1, 1 << 20), (1 << 40) + (128 << 32))
        self.assertEqual(mot_reader.document_id(3, (256 << 20) + 5), (3 << 40) + (1 << 20) + 5)


class Samples(support.Case):
    """Published files load without options: no record is lost, every value is right."""

    def test_every_sample(self):
        for sample in [*support.MOT_TESTS, *support.MOT_ITEMS, *support.MOT_LOOKUPS]:
            path = support.mot_sample(sample)
            for style in ("short", "long"):
                with self.subTest(sample, names=style):
                    raw, work = self.dump("--names", style, path)
                    reading = mot_reader.read(path, names=style)
                    self.assert_reading(raw, work, reading, sample)
                    self.assert_accounting(work, rejectedByParser=0, transcoded=0)


class Generated(support.Case):
    """Generated files of every dialect, with its irregularities and with bad records."""

    ROWS, BAD = 20000, 40

    def test_every_dialect(self):
        for dialect in DIALECTS:
            (path,) = self.generate(dialect, self.ROWS, "--dirt", "heavy", "--bad", self.BAD, "--seed", 11)
            reading = mot_reader.read(path)
            for threads in (1, 4):
                with self.subTest(dialect, threads=threads):
                    raw, work = self.dump("-j", threads, path, code=support.EXIT_REJECTS)
                    self.assert_reading(raw, work, reading, dialect)
                    self.assertEqual((len(raw), len(reading.rejects)), (self.ROWS - self.BAD, self.BAD))

    def test_small_batches_lose_nothing(self):
        (path,) = self.generate("G1", 5000, "--dirt", "heavy", "--seed", 3)
        whole, _ = self.dump(path)
        small, _ = self.dump("--batch-size", 7, "-j", 3, path)
        self.assertEqual(sorted(whole), sorted(small))

    def test_several_files_are_numbered_in_order(self):
        paths = self.generate("B", 6000, "--files", 3, "--seed", 4)
        self.assertEqual(len(paths), 3)
        raw, _ = self.dump("-j", 4, *paths)
        expected = [document for number, path in enumerate(paths, 1)
                    for document in mot_reader.read(path, number=number).documents]
        self.assertEqual(len(expected), 6000)
        self.assert_documents(raw, expected)

    def test_a_gzip_file_gives_the_documents_of_the_plain_one(self):
        (plain,) = self.generate("D", 8000, "--dirt", "heavy", "--seed", 5)
        zipped = self.zipped("same.gz", plain.read_bytes())
        without_name = self.zipped("no-suffix", plain.read_bytes())
        expected, _ = self.dump(plain)
        for path in (zipped, without_name):
            raw, _ = self.dump("-j", 2, path)
            self.assertEqual(sorted(raw), sorted(expected), path.name)

    def test_generated_gzip_files(self):
        paths = self.generate("E", 4000, "--files", 2, "--gzip", "--seed", 6)
        self.assertTrue(all(path.read_bytes()[:2] == b"\x1f\x8b" for path in paths))
        raw, _ = self.dump(*paths)
        self.assertEqual(len(raw), 4000)


class Mutated(support.Case):
    """Text with random damage: the loader rejects the same records as the reader."""

    BYTES = b'|,"\\\t \r0129A-\x00\xff\xc3\xa9\x80NUL'

    def damaged(self, line, dice):
        line = bytearray(line)
        for _ in range(dice.choice([0, 0, 0, 1, 1, 1, 2, 3])):
            at, byte = dice.randrange(len(line)), dice.choice(self.BYTES)
            kind = dice.randrange(4)
            if kind == 0:
                line[at] = byte
            elif kind == 1:
                line.insert(at, byte)
            elif kind == 2 and len(line) > 1:
                del line[at]
            else:  # beside a separator
                separators = [i for i, other in enumerate(line) if other in b"|,\t"]
                line.insert(dice.choice(separators or [at]) + dice.randrange(2), byte)
        return bytes(line)

    def test_loader_and_reader_agree_on_damaged_text(self):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                (path,) = self.generate(dialect, 3000, "--dirt", "heavy", "--seed", 61)
                dice = random.Random(f"damage {dialect}")
                head, *lines = path.read_bytes().splitlines()
                text = b"\n".join([head] + [self.damaged(line, dice) for line in lines])
                damaged = self.file(f"damaged-{dialect}.txt", text)
                for encoding in ("utf-8", "latin-1"):
                    for trim in ([], ["--trim"]):
                        reading = mot_reader.read(damaged, encoding=encoding, trim=bool(trim))
                        raw, work = self.dump("--encoding", encoding, *trim, damaged, code=support.EXIT_REJECTS)
                        self.assert_reading(raw, work, reading, dialect)


class OddText(support.Case):
    """Unusual but valid text, and invalid text."""

    def agrees(self, content, *options, code=support.EXIT_OK, name="data.txt", **reading):
        """The loader and the reader agree about the text. Returns (the reader's result, work)."""
        path = self.file(name, content)
        expected = mot_reader.read(path, **reading)
        raw, work = self.dump(path, *options, code=code)
        self.assert_reading(raw, work, expected)
        return expected, work

    def test_unusual_text_without_rejects(self):
        """Texts, and for each document some of its fields; None: it has no such field."""
        capitals = ",".join(f'"{name.upper()}"' for name in HEADER.split("|")) + "\n"
        three, letters = support.mot_text([1, 2, 3]), "\x01\t\x1a\x1f"
        used = datetime.datetime(2005, 10, 17)
        for what, text, *expected in (
                ("no line end at the end", three[:-1], {}, {}, {}),
                ("Windows line ends and a byte order mark", "\ufeff" + three.replace("\n", "\r\n"),
                 {"i": used}, {}, {}),
                ("a header without records", HEADER + "\n"),
                ("an unknown column", HEADER + "|site_id\n" + ROW.format(id=5) + "|007\n", {"site_id": "007"}),
                ("a header in capitals and quotes", capitals + ROW.format(id=1).replace("|", ",") + "\n", {}),
                ("numbers above 32 bits", HEADER + "\n" + "".join(
                    ROW.format(id=n).replace(f"700{n}", str(n)) + "\n"
                    for n in (2147483647, 2147483648, 9999999999)), {}, {}, {}),
                ("a class that is not a number", support.mot_text([1]).replace("|4|", "|4A|"), {"c": "4A"}),
                ("missing values", HEADER + "\n9|8|2015-11-20|4|NT|P||UB|FORD|FIESTA|SILVER|||\n",
                 {"m": None, "e": None, "i": None, "f": None}),
                ("an original file with zeros and trailing blanks",
                 "9|8|NULL|4 |N|P|0|UB| FORD  |FIESTA |SILVER|P|0|NULL\n", {"m": 0, "e": 0, "k": " FORD", "c": 4}),
                ("control bytes", "".join([HEADER + "\n", *(
                    ROW.format(id=1).replace("FIESTA", f"Z{letter}R") + "\n" for letter in letters)]),
                 *({"o": f"Z{letter}R"} for letter in letters)),
                ("original items with seven columns and no header", "12|8394|F|N|F|L|D\n13|8394|A||||\n",
                 {"g": True}, {}),
                ("tabs without a header", "".join(three.splitlines(True)[1:]).replace("|", "\t")
                 .replace("FIESTA", "FIESTA |  "), {"o": "FIESTA |"}, {}, {})):
            with self.subTest(what):
                reading, _ = self.agrees(text)
                self.assertEqual([{name: document.get(name) for name in fields} for document, fields in
                                  zip(reading.documents, expected, strict=True)], expected)

    def test_columns_are_bound_by_name(self):
        order = [0, 13, 12, 1, 8, 9, 2, 3, 4, 5, 6, 7, 10, 11]
        lines = [line.split("|") for line in (HEADER, ROW.format(id=5))]
        reading, _ = self.agrees("".join("|".join(line[i] for i in order) + "\n" for line in lines))
        self.assertEqual(list(reading.documents[0])[:3], ["_id", "t", "i"])

    def test_blank_lines_are_counted_and_dropped(self):
        reading, _ = self.agrees(HEADER + "\n\n" + support.mot_text([1, 2])[len(HEADER) + 1:] + "\n\n" +
                                 ROW.format(id=1) + "\n\n")
        self.assertEqual((len(reading.documents), reading.blank_lines), (3, 4))

    def test_later_files_keep_blanks_unless_trimmed(self):
        text = HEADER + "\n" + ROW.format(id=1).replace("FIESTA", " FIESTA ") + "\n"
        reading, _ = self.agrees(text)
        self.assertEqual(reading.documents[0]["o"], " FIESTA ")
        reading, _ = self.agrees(text, "--trim", trim=True)
        self.assertEqual(reading.documents[0]["o"], "FIESTA")

    def test_a_cut_line_of_comma_text_does_not_swallow_the_next(self):
        rows = [ROW.format(id=n).replace("|", ",") for n in (1, 2, 3)]
        rows[1] = rows[1].replace("FIESTA", '"FIESTA')
        reading, _ = self.agrees(HEADER.replace("|", ",") + "\n" + "\n".join(rows) + "\n",
                                 code=support.EXIT_REJECTS, name="data.csv")
        self.assertEqual((len(reading.documents), reading.rejects[0].line), (2, 3))

    def test_bad_fields_are_named(self):
        fields, good = ROW.format(id=1).split("|"), support.mot_text(range(2, 20))
        bad = [(0, "x1", "test_id"), (0, "", "test_id"), (0, "12345678901", "test_id"), (1, "-5", "vehicle_id"),
               (2, "2015-02-29", "test_date"), (2, "20151120", "test_date"),
               (2, "2015-13-01", "test_date"), (6, "12.5", "test_mileage"),
               (6, "99999999999999999999", "test_mileage"),
               (12, "1242cc", "cylinder_capacity"), (13, "2005-10-32", "first_use_date"),
               (13, "2005-1-1", "first_use_date")]
        reading, work = self.agrees(good + "".join(
            "|".join(fields[:index] + [value] + fields[index + 1:]) + "\n" for index, value, _ in bad),
            code=support.EXIT_REJECTS)
        self.assertEqual([reject.column for reject in reading.rejects], [column for _, _, column in bad])
        self.assertTrue(all(row["reason"] for row in support.reject_rows(work)))

    def test_too_few_fields(self):
        self.agrees(HEADER + "\n" + ROW.format(id=1) + "\n1|2|3\n", code=support.EXIT_REJECTS)

    def test_too_many_commas_are_not_repaired(self):
        rows = [ROW.format(id=n).replace("|", ",") for n in (1, 2)]
        reading, _ = self.agrees(
            HEADER.replace("|", ",") + "\n" + rows[0].replace("FIESTA", "FI,ESTA") + "\n" +
            rows[1] + "\n", code=support.EXIT_REJECTS, name="data.csv")
        self.assertEqual(len(reading.documents), 1)

    def test_bytes_that_are_not_utf8(self):
        text = (HEADER + "\n" + ROW.format(id=1) + "\n").encode()
        text += ROW.format(id=2).encode().replace(b"FIESTA", b"CAF\xe9 \x80") + b"\n"
        reading, _ = self.agrees(text, code=support.EXIT_REJECTS)
        self.assertEqual(reading.rejects[0].column, "model")
        reading, _ = self.agrees(text, "--encoding", "latin-1", encoding="latin-1")
        self.assertEqual((reading.documents[1]["o"], reading.transcoded), ("CAFé €", 1))

    def test_every_broken_kind_of_utf8_is_caught(self):
        broken = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80",
                  b"\xf8\x88\x80\x80\x80")
        rows = [ROW.format(id=1).encode().replace(b"FIESTA", b"A" + one + b"B") + b"\n" for one in broken]
        reading, _ = self.agrees(support.mot_text(range(2, 20)).encode() + b"".join(rows), code=support.EXIT_REJECTS)
        self.assertEqual(len(reading.rejects), len(broken))

    def test_the_column_completed_date_since_2024(self):
        stamps = ["2024-03-05 10:11:12", "2024-03-05T10:11:12", "2024-03-05T10:11:12.345Z", "2024-03-05 10:11:12.5", ""]
        rows = [ROW.format(id=n) + "|" + stamp for n, stamp in enumerate(stamps, 1)]
        text = "\n".join([HEADER + "|completed_date", *rows, ""]).replace("|", ",")
        reading, _ = self.agrees(text, "--names", "long", names="long", name="data.csv")
        self.assertEqual(len(reading.documents), len(stamps))
        self.assertNotIn("completed_date", reading.documents[-1])

    def test_items_of_2024_have_a_longer_name_for_their_location(self):
        reading, _ = self.agrees(
            "test_id,rfr_id,rfr_type_code,mot_test_rfr_location_type_id,dangerous_mark,"
            "completed_date\n1,40668,F,17,D,2024-03-05 10:11:12\n2,8394,A,,,\n",
            name="items.csv", names="short")
        self.assertEqual((reading.documents[0]["l"], reading.documents[0]["g"]), (17, True))

    def test_a_mark_that_is_neither_dangerous_nor_empty(self):
        self.agrees("test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n"
                    "12|8394|F|7|D\n13|8394|F|7|X\n", code=support.EXIT_REJECTS)

    def test_a_line_longer_than_any_block(self):
        long = ROW.format(id=2).replace("FIESTA", "F" * (3 << 20))
        text = HEADER + "\n" + ROW.format(id=1) + "\n" + long + "\n" + ROW.format(id=3) + "\n"
        path = self.file("long.txt", text)
        raw, work = self.dump(path, code=None)
        kept = {support.bson.decode(document)["t"] for document in raw}
        self.assertLessEqual({1, 3}, kept)
        self.assertEqual(support.run_record(work)["accounting"]["records"], 3)

    def test_block_boundaries_at_every_byte_of_a_record(self):
        # The boundary between two blocks of 1 MiB is at each byte of a record in turn.
        def row_of(length, id):
            row = ROW.format(id=id) + "\r\n"
            return row.replace("FIESTA", "F" * (length - len(row) + len("FIESTA")))

        header, short = HEADER + "\r\n", ROW.format(id=1) + "\r\n"
        for shift in range(len(short) + 2):
            left = (1 << 20) - shift - len(header)
            body = header + row_of(4096, 2) * (left // 4096 - 1)
            body += row_of(4096 + left % 4096, 3)
            self.assertEqual(len(body), (1 << 20) - shift)
            path = self.file("border.txt", body + short * 3)
            raw, _ = self.dump("-j", 1 + shift % 3, path)
            self.assert_documents(raw, mot_reader.read(path).documents, f"shift {shift}")


class Rejects(support.Case):
    """Rejects are listed with their position and reason, and can be corrected and loaded."""

    def setUp(self):
        super().setUp()
        bad = ROW.format(id=2).replace("49828", "4\t982\x018")
        self.lines = [HEADER, ROW.format(id=1), bad, ROW.format(id=3),
                      ROW.format(id=4).replace("2015-11-20", "20-11-2015")]
        self.source = self.file("year.txt", "\n".join(self.lines) + "\n")

    def test_the_table_shows_position_column_reason_and_record(self):
        _, work = self.dump(self.source, code=support.EXIT_REJECTS)
        first, second = support.reject_rows(work)
        self.assertEqual(list(first), ["source", "line", "offset", "column", "reason", "record"])
        self.assertEqual((first["line"], first["column"]), ("3", "test_mileage"))
        self.assertEqual((second["line"], second["column"]), ("5", "test_date"))
        self.assertIn("20-11-2015", second["record"])
        self.assertTrue(first["source"].endswith("year.txt"))
        for row in (first, second):
            data = self.source.read_bytes()[int(row["offset"]):]
            self.assertTrue(data.startswith(self.lines[int(row["line"]) - 1].encode()))
            self.assertTrue(all(character.isprintable() for character in row["record"]))

    def test_raw_records_can_be_corrected_and_loaded(self):
        _, work = self.dump(self.source, code=support.EXIT_REJECTS)
        (kept,) = (work / "rejected").iterdir()
        self.assertEqual(kept.read_text().split("\n"), [HEADER, self.lines[2], self.lines[4], ""])
        again, _ = self.dump(kept, code=support.EXIT_SOURCE)  # all records are rejected
        self.assertEqual(again, [])
        kept.write_text(kept.read_text().replace("4\t982\x018", "49828") .replace("20-11-2015", "2015-11-20"))
        mended, _ = self.dump(kept)
        self.assertEqual(len(mended), 2)

    def test_more_files_with_rejects_than_the_limit_of_open_files(self):
        for n in range(300):
            self.file(f"in/{n}.txt", f"{HEADER}\n{ROW.format(id=n + 1)}\nbad|{n}\n")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
        try:
            raw, work = self.dump("in", code=support.EXIT_REJECTS)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        self.assertEqual((len(raw), len(list((work / "rejected").iterdir()))), (300, 300))

    def test_a_source_with_the_longest_possible_name(self):
        source = self.file("n" * 251 + ".txt", self.source.read_bytes())
        _, work = self.dump(source, code=support.EXIT_REJECTS)
        self.assertEqual(len(list((work / "rejected").iterdir())), 1)

    def test_rejects_are_in_order_with_any_number_of_threads(self):
        (path,) = self.generate("F", 40000, "--bad", 200, "--seed", 8)
        _, work = self.dump("-j", 4, path, code=support.EXIT_REJECTS)
        offsets = [int(row["offset"]) for row in support.reject_rows(work)]
        self.assertEqual((len(offsets), offsets), (200, sorted(offsets)))

    def test_a_clean_load_leaves_no_rejected_records(self):
        _, work = self.dump(self.file("good.txt", HEADER + "\n" + ROW.format(id=1) + "\n"))
        self.assertEqual(support.reject_rows(work), [])

    def test_other_users_cannot_read_the_work_directory(self):
        _, work = self.dump(self.source, code=support.EXIT_REJECTS)
        for path, _ in support.every_text_in(work):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)

    def test_too_many_rejects_end_the_load(self):
        outcome, _ = self.parse("--max-rejects", 1, self.source, code=support.EXIT_SOURCE)
        self.assertIn("2 of 4 records rejected, more than --max-rejects 1 allows; see the first ones "
                      "above", outcome.err)
        self.assertIn(f"{self.source}, byte ", outcome.err)
        self.assertIn("; rejected", outcome.err)

    def test_rejects_up_to_the_limit_are_accepted(self):
        for limit in ("2", "50%"):
            with self.subTest(limit):
                self.dump("--max-rejects", limit, self.source, code=support.EXIT_REJECTS)

    def test_a_share_of_rejects_as_limit(self):
        self.parse("--max-rejects", "10%", self.source, code=support.EXIT_SOURCE)


class Sinks(support.Case):
    def test_totals_of_a_load_into_the_null_sink(self):
        (path,) = self.generate("B", 5000, "--dirt", "heavy", "--bad", 9, "--seed", 2)
        _, work = self.parse(path, "--report", "r.json", code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=5000 - 9, rejectedByParser=9, repeatedHeaders=0)
        self.assertEqual(support.run_record(work)["exitCode"], support.EXIT_REJECTS)
        text = (work / "run.json").read_text()
        self.assertEqual((self.scratch / "r.json").read_text(), text)
        self.assertTrue(text.startswith('{\n  "program": "shardload",\n'), text[:60])

    def test_a_dump_can_be_decoded_by_the_python_driver(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        raw, _ = self.dump(path)
        read = list(support.bson.decode_iter(b"".join(raw)))
        self.assertEqual(len(read), 87)
        self.assertEqual(list(read[0])[:3], ["_id", "t", "v"])

    def test_the_default_work_directory_is_printed(self):
        outcome = self.shardload("load", "--sink", "bson:x.bson", support.mot_sample("test_result_2021_quoted.csv"))
        (made,) = [path for path in self.scratch.iterdir() if path.is_dir()]
        self.assertIn(made.name, outcome.text)
        self.assertTrue((made / "run.json").exists())

    def test_loads_started_in_one_second_have_different_work_directories(self):
        source = support.mot_sample("test_result_2021_quoted.csv")
        running = [self.start("shardload", "load", "--sink", f"bson:{n}.bson", source) for n in range(4)]
        for one in running:
            self.assertEqual(one.wait().code, support.EXIT_OK)
        self.assertEqual(len([path for path in self.scratch.iterdir() if path.is_dir()]), 4)

    def test_threads_without_work_do_not_lower_the_rate(self):
        (path,) = self.generate("B", 30000, "--seed", 10)
        outcome, work = self.parse("-j", 64, path)
        rate = int(re.search(r"([\d,]+) documents/s", outcome.text)[1].replace(",", ""))
        record = support.run_record(work)
        (seconds,) = [phase["seconds"] for phase in record["phases"] if phase["name"] == "load"]
        self.assertLess(rate * seconds, 5 * record["accounting"]["inserted"])

    def test_a_load_under_nohup_ignores_a_hangup(self):
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "wb") as feed:
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
            try:
                running = self.start("shardload", "load", "--sink", "bson:x.bson", "--work-dir",
                                     "w", "-", stdin=read_end)
            finally:
                signal.signal(signal.SIGHUP, before)
            os.close(read_end)
            feed.write(support.mot_text(range(1, 10000)).encode())
            feed.flush()
            self.wait_for(lambda: not running.running() or (self.scratch / "x.bson").exists(), "documents")
            running.signal(signal.SIGHUP)
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())

    def test_a_load_into_the_null_sink_writes_no_file(self):
        self.shardload("load", "--sink", "null", support.mot_sample("test_result_2021_quoted.csv"))
        self.assertEqual(list(self.scratch.iterdir()), [])


class Folders(support.Case):
    """A folder as source: its data files are loaded."""

    def loaded_tests(self, raw):
        return sorted((support.key_of(document) >> 40, support.bson.decode(document)["t"]) for document in raw)

    def test_files_are_numbered_by_path_and_hidden_files_are_skipped(self):
        self.file("in/b.txt", support.mot_text([3]))
        self.file("in/a/2.txt", support.mot_text([2]))
        self.zipped("in/a/10.txt.gz", support.mot_text([1]))
        self.file("in/.hidden.txt", support.mot_text([90]))
        self.file("in/.cache/x.txt", support.mot_text([91]))
        self.file("in/__MACOSX/b.txt", support.mot_text([92]))
        raw, _ = self.dump("in")
        self.assertEqual(self.loaded_tests(raw), [(1, 1), (2, 2), (3, 3)])

    def test_files_of_no_known_format_are_skipped_with_a_warning_each(self):
        self.file("in/a.txt", support.mot_text([1]))
        self.file("in/readme.md", "Notes about the data.\n")
        self.file("in/picture.jpg", bytes(range(256)) * 64)
        self.file("in/nothing.txt", b"")
        outcome, work = self.parse("--skip-other", "in")
        self.assert_accounting(work, inserted=1)
        log = (work / "shardload.log").read_text()
        for name in ("readme.md", "picture.jpg"):
            self.assertIn(name, outcome.err)
            self.assertIn(name, log)

    def test_a_pipe_in_a_folder_is_not_opened(self):
        self.file("in/a.txt", support.mot_text([1]))
        os.mkfifo(self.scratch / "in" / "pipe.txt")
        raw, _ = self.dump("--skip-other", "in", limit=30)
        self.assertEqual(len(raw), 1)

    def test_results_and_items_in_one_folder_are_refused(self):
        self.file("in/results.txt", support.mot_text([1]))
        self.file("in/items.txt", support.mot_sample(support.MOT_ITEMS[0]).read_bytes())
        outcome, _ = self.parse("in", code=support.EXIT_SOURCE, message="--include")
        self.assertRegex(outcome.err, "result")
        self.assertRegex(outcome.err, "item")
        raw, _ = self.dump("--include", "res*.txt", "in")
        self.assertEqual(len(raw), 1)

    def test_a_loop_of_links_in_a_folder(self):
        self.file("in/a/data.txt", support.mot_text([1, 2]))
        os.symlink("..", self.scratch / "in" / "a" / "up")
        os.symlink("a", self.scratch / "in" / "b")
        raw, _ = self.dump("in")
        self.assertEqual([test for _, test in self.loaded_tests(raw)], [1, 2])

    def test_a_link_to_a_file_is_loaded_as_the_file(self):
        target = self.file("data.txt", support.mot_text([1]))
        os.symlink(target, self.scratch / "link")
        raw, _ = self.dump("link")
        self.assertEqual(len(raw), 1)


class StandardInput(support.Case):
    def test_plain_and_gzip(self):
        (path,) = self.generate("B", 30000, "--dirt", "heavy", "--seed", 9)
        expected = mot_reader.read(path).documents
        for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
            raw, _ = self.dump("-", "-j", 2, stdin=data)
            self.assert_documents(raw, expected)

    def test_a_named_pipe_is_read_as_a_stream(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        os.mkfifo(self.scratch / "pipe")
        feeder = threading.Thread(target=(self.scratch / "pipe").write_bytes, args=(path.read_bytes(),))
        feeder.start()
        raw, _ = self.dump("pipe")
        feeder.join()
        self.assert_documents(raw, mot_reader.read(path).documents)

    def test_empty_input(self):
        self.shardload("load", "--sink", "null", "-", code=support.EXIT_SOURCE, message="empty")
