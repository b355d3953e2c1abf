# SPDX-License-Identifier: Apache-2.0
"""Loads of MOT files without a server: records and the bytes of their documents."""
import gzip
import os
import random
import re
import resource
import signal
import stat
import threading
import time

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
        reading = mot_reader.read(support.mot_sample("dirty_verbatim_2015_extra_pipe.txt"),
                                  names="long")
        document = reading.documents[0]
        self.assertEqual((document["make"], document["model"], document["colour"]),
                         ("TOYOTA", "Estima ||", "SILVER"))

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

    def loads(self, names):
        for sample in names:
            path = support.mot_sample(sample)
            for style in ("short", "long"):
                with self.subTest(sample, names=style):
                    raw, work = self.dump("--names", style, path)
                    reading = mot_reader.read(path, names=style)
                    self.assert_documents(raw, reading.documents, sample)
                    self.assert_accounting(
                        work, records=reading.records, inserted=len(raw), alreadyThere=0,
                        rejectedByParser=0, repeatedHeaders=reading.repeated_headers,
                        repaired=reading.repaired, transcoded=0)

    def test_test_results(self):
        self.loads(support.MOT_TESTS)

    def test_test_items(self):
        self.loads(support.MOT_ITEMS)

    def test_lookup_tables(self):
        self.loads(support.MOT_LOOKUPS)


class Generated(support.Case):
    """Generated files of every dialect, with its irregularities and with bad records."""

    ROWS, BAD = 20000, 40

    def every_dialect_agrees(self, threads):
        for dialect in DIALECTS:
            with self.subTest(dialect):
                (path,), answers = self.generate(dialect, self.ROWS, "--dirt", "heavy",
                                                 "--bad", self.BAD, "--seed", 11)
                reading = mot_reader.read(path)
                raw, work = self.dump("-j", threads, path, code=support.EXIT_REJECTS)
                self.assert_documents(raw, reading.documents, dialect)
                bad = [(entry["line"], entry["offset"], entry["column"])
                       for entry in answers["bad"]]
                self.assertEqual([reject.place for reject in reading.rejects], bad)
                self.assert_rejects(work, path.name, bad)
                self.assert_accounting(work, records=reading.records, inserted=len(raw),
                                       rejectedByParser=len(reading.rejects),
                                       repeatedHeaders=reading.repeated_headers,
                                       repaired=reading.repaired)
                totals = answers["totals"]
                self.assertEqual((len(raw), len(reading.rejects), reading.repeated_headers),
                                 (totals["documents"], totals["rejects"],
                                  totals["repeatedHeaders"]))
                self.assertEqual(totals["rejects"], self.BAD)

    def test_one_thread(self):
        self.every_dialect_agrees(1)

    def test_four_threads(self):
        self.every_dialect_agrees(4)

    def test_small_batches_lose_nothing(self):
        (path,), _ = self.generate("G1", 5000, "--dirt", "heavy", "--seed", 3)
        whole, _ = self.dump(path)
        small, _ = self.dump("--batch-size", 7, "-j", 3, path)
        self.assertEqual(sorted(whole), sorted(small))

    def test_several_files_are_numbered_in_order(self):
        paths, answers = self.generate("B", 6000, "--files", 3, "--seed", 4)
        self.assertEqual(len(paths), 3)
        raw, _ = self.dump("-j", 4, *paths)
        expected = [document for number, path in enumerate(paths, 1)
                    for document in mot_reader.read(path, number=number).documents]
        self.assertEqual(len(expected), answers["totals"]["documents"])
        self.assert_documents(raw, expected)

    def test_a_gzip_file_gives_the_documents_of_the_plain_one(self):
        (plain,), _ = self.generate("D", 8000, "--dirt", "heavy", "--seed", 5)
        zipped = self.zipped("same.gz", plain.read_bytes())
        without_name = self.zipped("no-suffix", plain.read_bytes())
        expected, _ = self.dump(plain)
        for path in (zipped, without_name):
            raw, _ = self.dump("-j", 2, path)
            self.assertEqual(sorted(raw), sorted(expected), path.name)

    def test_generated_gzip_files(self):
        paths, answers = self.generate("E", 4000, "--files", 2, "--gzip", "--seed", 6)
        self.assertTrue(all(path.read_bytes()[:2] == b"\x1f\x8b" for path in paths))
        raw, _ = self.dump(*paths)
        self.assertEqual(len(raw), answers["totals"]["documents"])

    def test_gzip_in_several_members(self):
        (plain,), _ = self.generate("B", 4000, "--seed", 7)
        data = plain.read_bytes()
        pieces = [data[:1000], data[1000:1001], b"", data[1001:200000], data[200000:]]
        path = self.file("members.gz", b"".join(gzip.compress(piece) for piece in pieces))
        raw, _ = self.dump(path)
        self.assert_documents(raw, mot_reader.read(plain).documents)


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
                (path,), _ = self.generate(dialect, 3000, "--dirt", "heavy", "--seed", 61)
                dice = random.Random(f"damage {dialect}")
                head, *lines = path.read_bytes().splitlines()
                text = b"\n".join([head] + [self.damaged(line, dice) for line in lines])
                damaged = self.file(f"damaged-{dialect}.txt", text)
                for encoding in ("utf-8", "latin-1"):
                    for trim in ([], ["--trim"]):
                        reading = mot_reader.read(damaged, encoding=encoding, trim=bool(trim))
                        raw, work = self.dump("--encoding", encoding, *trim, damaged,
                                              code=support.EXIT_REJECTS)
                        self.assert_documents(raw, reading.documents, dialect)
                        self.assert_rejects(work, damaged.name,
                                            [reject.place for reject in reading.rejects])
                        self.assert_accounting(work, repaired=reading.repaired,
                                               transcoded=reading.transcoded)


class OddText(support.Case):
    """Unusual but valid text, and invalid text."""

    def agrees(self, content, *options, code=support.EXIT_OK, name="data.txt", **reading):
        """The loader and the reader agree about the text. Returns (the reader's result, work)."""
        path = self.file(name, content)
        expected = mot_reader.read(path, **reading)
        raw, work = self.dump(path, *options, code=code)
        self.assert_documents(raw, expected.documents)
        self.assert_rejects(work, name, [reject.place for reject in expected.rejects])
        self.assert_accounting(work, records=expected.records, repaired=expected.repaired,
                               transcoded=expected.transcoded, blankLines=expected.blank_lines,
                               repeatedHeaders=expected.repeated_headers)
        return expected, work

    def rows(self, count):
        return "".join(ROW.format(id=id) + "\n" for id in range(1, count + 1))

    def test_no_line_end_at_the_end(self):
        reading, _ = self.agrees(HEADER + "\n" + self.rows(3).rstrip("\n"))
        self.assertEqual(len(reading.documents), 3)

    def test_windows_line_ends_and_byte_order_mark(self):
        reading, _ = self.agrees(("\ufeff" + HEADER + "\n" + self.rows(3)).replace("\n", "\r\n"))
        self.assertEqual(reading.documents[0]["i"].year, 2005)

    def test_blank_lines_are_counted_and_dropped(self):
        reading, _ = self.agrees(HEADER + "\n\n" + self.rows(2) + "\n\n" + self.rows(1) + "\n")
        self.assertEqual((len(reading.documents), reading.blank_lines), (3, 4))

    def test_a_header_without_records(self):
        reading, _ = self.agrees(HEADER + "\n")
        self.assertEqual(reading.documents, [])

    def test_columns_are_bound_by_name(self):
        header, row = HEADER.split("|"), ROW.format(id=5).split("|")
        order = [0, 13, 12, 1, 8, 9, 2, 3, 4, 5, 6, 7, 10, 11]
        reading, _ = self.agrees("|".join(header[i] for i in order) + "\n" +
                                 "|".join(row[i] for i in order) + "\n")
        self.assertEqual(list(reading.documents[0])[:3], ["_id", "t", "i"])

    def test_unknown_columns_are_stored_as_text_under_their_own_names(self):
        reading, _ = self.agrees(HEADER + "|site_id\n" + ROW.format(id=5) + "|007\n")
        self.assertEqual(reading.documents[0]["site_id"], "007")

    def test_headers_in_capitals_and_quotes(self):
        quoted = ",".join(f'"{name.upper()}"' for name in HEADER.split("|"))
        self.agrees(quoted + "\n" + ROW.format(id=1).replace("|", ",") + "\n", name="data.csv")

    def test_numbers_above_32_bits_become_64_bits(self):
        row = "{0}|{0}|2015-11-20|4|NT|P|49828|UB|FORD|FIESTA|SILVER|PE|1242|2005-10-17\n"
        reading, _ = self.agrees(HEADER + "\n" + "".join(
            row.format(id) for id in (2147483647, 2147483648, 9999999999)))
        self.assertEqual(len(reading.documents), 3)

    def test_a_class_that_is_not_a_number_is_text(self):
        reading, _ = self.agrees(HEADER + "\n" + ROW.format(id=1).replace("|4|", "|4A|") + "\n")
        self.assertEqual(reading.documents[0]["c"], "4A")

    def test_missing_values_have_no_key(self):
        row = "9|8|2015-11-20|4|NT|P||UB|FORD|FIESTA|SILVER|||"
        reading, _ = self.agrees(HEADER + "\n" + row + "\n")
        self.assertFalse({"m", "e", "i", "f"} & reading.documents[0].keys())

    def test_original_files_keep_zeros_and_lose_trailing_blanks(self):
        row = "9|8|NULL|4 |N|P|0|UB|FORD  |FIESTA |SILVER|P|0|NULL"
        reading, _ = self.agrees(row + "\n")
        document = reading.documents[0]
        self.assertEqual((document["m"], document["e"], document["k"], document["c"]),
                         (0, 0, "FORD", 4))

    def test_later_files_keep_blanks_unless_trimmed(self):
        text = HEADER + "\n" + ROW.format(id=1).replace("FIESTA", " FIESTA ") + "\n"
        reading, _ = self.agrees(text)
        self.assertEqual(reading.documents[0]["o"], " FIESTA ")
        reading, _ = self.agrees(text, "--trim", trim=True)
        self.assertEqual(reading.documents[0]["o"], "FIESTA")

    def test_control_bytes_are_stored(self):
        reading, _ = self.agrees(HEADER + "\n" + "".join(
            ROW.format(id=n).replace("FIESTA", f"Z{chr(n)}R") + "\n" for n in (1, 9, 26, 31)))
        self.assertEqual([document["o"] for document in reading.documents],
                         ["Z\x01R", "Z\tR", "Z\x1aR", "Z\x1fR"])

    def test_a_cut_line_of_comma_text_does_not_swallow_the_next(self):
        rows = [ROW.format(id=n).replace("|", ",") for n in (1, 2, 3)]
        rows[1] = rows[1].replace("FIESTA", '"FIESTA')
        reading, _ = self.agrees(HEADER.replace("|", ",") + "\n" + "\n".join(rows) + "\n",
                                 code=support.EXIT_REJECTS, name="data.csv")
        self.assertEqual((len(reading.documents), reading.rejects[0].line), (2, 3))

    def test_bad_fields_are_named(self):
        fields = ROW.format(id=1).split("|")
        for index, value, column in [
                (0, "x1", "test_id"), (0, "", "test_id"), (1, "-5", "vehicle_id"),
                (2, "2015-02-29", "test_date"), (2, "20151120", "test_date"),
                (2, "2015-13-01", "test_date"), (6, "12.5", "test_mileage"),
                (6, "99999999999999999999", "test_mileage"),
                (12, "1242cc", "cylinder_capacity"), (13, "2005-10-32", "first_use_date"),
                (13, "2005-1-1", "first_use_date")]:
            with self.subTest(column, value=value):
                bad = fields[:index] + [value] + fields[index + 1:]
                reading, work = self.agrees(
                    HEADER + "\n" + ROW.format(id=2) + "\n" + "|".join(bad) + "\n",
                    code=support.EXIT_REJECTS)
                self.assertEqual(reading.rejects[0].column, column)
                (row,) = support.reject_rows(work)
                self.assertTrue(row["reason"])

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
        for broken in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82",
                       b"\x80", b"\xf8\x88\x80\x80\x80"):
            with self.subTest(broken):
                text = HEADER.encode() + b"\n" + ROW.format(id=1).encode() + b"\n" + \
                    ROW.format(id=2).encode().replace(b"FIESTA", b"A" + broken + b"B") + b"\n"
                reading, _ = self.agrees(text, code=support.EXIT_REJECTS)
                self.assertEqual(len(reading.rejects), 1)

    def test_the_column_completed_date_since_2024(self):
        stamps = ["2024-03-05 10:11:12", "2024-03-05T10:11:12", "2024-03-05T10:11:12.345Z",
                  "2024-03-05 10:11:12.5", ""]
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

    def test_the_original_items_have_seven_columns_and_no_header(self):
        reading, _ = self.agrees("12|8394|F|N|F|L|D\n13|8394|A||||\n")
        self.assertEqual((reading.kind, reading.documents[0]["g"]), ("item", True))

    def test_a_mark_that_is_neither_dangerous_nor_empty(self):
        self.agrees("test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n"
                    "12|8394|F|7|D\n13|8394|F|7|X\n", code=support.EXIT_REJECTS)

    def test_tabs_without_a_header(self):
        rows = self.rows(3).replace("|", "\t")
        reading, _ = self.agrees(rows.replace("FIESTA", "FIESTA |  "))
        self.assertEqual(reading.documents[0]["o"], "FIESTA |")

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
        self.assertEqual(kept.read_text().split("\n"),
                         [HEADER, self.lines[2], self.lines[4], ""])
        again, _ = self.dump(kept, code=support.EXIT_SOURCE)  # all records are rejected
        self.assertEqual(again, [])
        kept.write_text(kept.read_text().replace("4\t982\x018", "49828")
                        .replace("20-11-2015", "2015-11-20"))
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
        (path,), _ = self.generate("F", 40000, "--bad", 200, "--seed", 8)
        _, work = self.dump("-j", 4, path, code=support.EXIT_REJECTS)
        offsets = [int(row["offset"]) for row in support.reject_rows(work)]
        self.assertEqual((len(offsets), offsets), (200, sorted(offsets)))

    def test_a_clean_load_leaves_no_rejected_records(self):
        _, work = self.dump(self.file("good.txt", HEADER + "\n" + ROW.format(id=1) + "\n"))
        self.assertEqual(support.reject_rows(work) if (work / "rejects.tsv").exists() else [], [])

    def test_other_users_cannot_read_the_work_directory(self):
        _, work = self.dump(self.source, code=support.EXIT_REJECTS)
        for path, _ in support.every_text_in(work):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)

    def test_too_many_rejects_end_the_load(self):
        outcome = self.shardload("load", "--sink", "null", "--max-rejects", 1, "--work-dir", "w",
                                 self.source, code=support.EXIT_SOURCE)
        self.assertIn("2 of 4 records rejected, more than --max-rejects 1 allows; see the first ones "
                      "above", outcome.err)
        self.assertIn(f"{self.source}, byte ", outcome.err)
        self.assertIn("; rejected", outcome.err)

    def test_rejects_up_to_the_limit_are_accepted(self):
        for limit in ("2", "50%"):
            with self.subTest(limit):
                self.dump("--max-rejects", limit, self.source, code=support.EXIT_REJECTS)

    def test_a_share_of_rejects_as_limit(self):
        self.shardload("load", "--sink", "null", "--max-rejects", "10%", "--work-dir", "w",
                       self.source, code=support.EXIT_SOURCE)


class Sinks(support.Case):
    def test_totals_of_a_load_into_the_null_sink(self):
        (path,), answers = self.generate("B", 5000, "--dirt", "heavy", "--bad", 9, "--seed", 2)
        self.shardload("load", "--sink", "null", "--work-dir", "w", path, "--report", "r.json",
                       code=support.EXIT_REJECTS)
        totals = answers["totals"]
        self.assert_accounting(self.scratch / "w", inserted=totals["documents"],
                               rejectedByParser=totals["rejects"],
                               repeatedHeaders=totals["repeatedHeaders"])
        record = support.run_record(self.scratch / "w")
        self.assertEqual(record["exitCode"], support.EXIT_REJECTS)
        self.assertEqual(self.file("r.json", (self.scratch / "r.json").read_bytes()).read_text(),
                         (self.scratch / "w" / "run.json").read_text())

    def test_a_dump_can_be_decoded_by_the_python_driver(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        raw, _ = self.dump(path)
        read = list(support.bson.decode_iter(b"".join(raw)))
        self.assertEqual(len(read), 87)
        self.assertEqual(list(read[0])[:3], ["_id", "t", "v"])

    def test_the_default_work_directory_is_printed(self):
        outcome = self.shardload("load", "--sink", "bson:x.bson",
                                 support.mot_sample("test_result_2021_quoted.csv"))
        (made,) = [path for path in self.scratch.iterdir() if path.is_dir()]
        self.assertIn(made.name, outcome.text)
        self.assertTrue((made / "run.json").exists())

    def test_loads_started_in_one_second_have_different_work_directories(self):
        source = support.mot_sample("test_result_2021_quoted.csv")
        running = [self.start("shardload", "load", "--sink", f"bson:{n}.bson", source)
                   for n in range(4)]
        for one in running:
            self.assertEqual(one.wait().code, support.EXIT_OK)
        self.assertEqual(len([path for path in self.scratch.iterdir() if path.is_dir()]), 4)

    def test_threads_without_work_do_not_lower_the_rate(self):
        (path,), _ = self.generate("B", 30000, "--seed", 10)
        outcome = self.shardload("load", "--sink", "null", "-j", 64, "--work-dir", "w", path)
        rate = int(re.search(r"([\d,]+) documents/s", outcome.err)[1].replace(",", ""))
        record = support.run_record(self.scratch / "w")
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
            feed.write((HEADER + "\n" + "".join(
                ROW.format(id=n) + "\n" for n in range(1, 10000))).encode())
            feed.flush()
            while running.running() and not (self.scratch / "x.bson").exists():
                time.sleep(0.01)
            running.signal(signal.SIGHUP)
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())

    def test_a_load_into_the_null_sink_writes_no_file(self):
        self.shardload("load", "--sink", "null", support.mot_sample("test_result_2021_quoted.csv"))
        self.assertEqual(list(self.scratch.iterdir()), [])


class Folders(support.Case):
    """A folder as source: its data files are loaded."""

    def rows(self, *ids):
        return HEADER + "\n" + "".join(ROW.format(id=id) + "\n" for id in ids)

    def loaded_tests(self, raw):
        return sorted((support.key_of(document) >> 40, support.bson.decode(document)["t"])
                      for document in raw)

    def test_files_are_numbered_by_path_and_hidden_files_are_skipped(self):
        self.file("in/b.txt", self.rows(3))
        self.file("in/a/2.txt", self.rows(2))
        self.zipped("in/a/10.txt.gz", self.rows(1))
        self.file("in/.hidden.txt", self.rows(90))
        self.file("in/.cache/x.txt", self.rows(91))
        self.file("in/__MACOSX/b.txt", self.rows(92))
        raw, _ = self.dump("in")
        self.assertEqual(self.loaded_tests(raw), [(1, 1), (2, 2), (3, 3)])

    def test_files_of_no_known_format_are_skipped_with_a_warning_each(self):
        self.file("in/a.txt", self.rows(1))
        self.file("in/readme.md", "Notes about the data.\n")
        self.file("in/picture.jpg", bytes(range(256)) * 64)
        self.file("in/nothing.txt", b"")
        outcome = self.shardload("load", "--sink", "null", "--work-dir", "w", "--skip-other", "in")
        self.assert_accounting(self.scratch / "w", inserted=1)
        log = (self.scratch / "w" / "shardload.log").read_text()
        for name in ("readme.md", "picture.jpg"):
            self.assertIn(name, outcome.err)
            self.assertIn(name, log)

    def test_a_pipe_in_a_folder_is_not_opened(self):
        self.file("in/a.txt", self.rows(1))
        os.mkfifo(self.scratch / "in" / "pipe.txt")
        raw, _ = self.dump("in", limit=30)
        self.assertEqual(len(raw), 1)

    def test_results_and_items_in_one_folder_are_refused(self):
        self.file("in/results.txt", self.rows(1))
        self.file("in/items.txt", support.mot_sample(support.MOT_ITEMS[0]).read_bytes())
        outcome = self.shardload("load", "--sink", "null", "in", code=support.EXIT_SOURCE)
        self.assertIn("--include", outcome.err)
        self.assertRegex(outcome.err, "result")
        self.assertRegex(outcome.err, "item")
        raw, _ = self.dump("--include", "res*.txt", "in")
        self.assertEqual(len(raw), 1)

    def test_a_loop_of_links_in_a_folder(self):
        self.file("in/a/data.txt", self.rows(1, 2))
        os.symlink("..", self.scratch / "in" / "a" / "up")
        os.symlink("a", self.scratch / "in" / "b")
        raw, _ = self.dump("in")
        self.assertEqual([test for _, test in self.loaded_tests(raw)], [1, 2])

    def test_a_link_to_a_file_is_loaded_as_the_file(self):
        target = self.file("data.txt", self.rows(1))
        os.symlink(target, self.scratch / "link")
        raw, _ = self.dump("link")
        self.assertEqual(len(raw), 1)


class StandardInput(support.Case):
    def test_plain_and_gzip(self):
        (path,), _ = self.generate("B", 30000, "--dirt", "heavy", "--seed", 9)
        expected = mot_reader.read(path).documents
        for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
            raw, _ = self.dump("-", "-j", 2, stdin=data)
            self.assert_documents(raw, expected)

    def test_a_named_pipe_is_read_as_a_stream(self):
        path = support.mot_sample("test_result_2021_quoted.csv")
        os.mkfifo(self.scratch / "pipe")
        feeder = threading.Thread(target=(self.scratch / "pipe").write_bytes,
                                  args=(path.read_bytes(),))
        feeder.start()
        raw, _ = self.dump("pipe")
        feeder.join()
        self.assert_documents(raw, mot_reader.read(path).documents)

    def test_empty_input(self):
        outcome = self.shardload("load", "--sink", "null", "-", code=support.EXIT_SOURCE)
        self.assertIn("empty", outcome.err)
