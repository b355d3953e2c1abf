# SPDX-License-Identifier: Apache-2.0
"""CSV files whose quoted fields contain line ends: every field is what Python's csv module reads,
whatever the position of a quote in a block, the number of threads and the kind of source."""
import csv
import io
import random
import re

import archive_making as making
import support

MIB = 1 << 20
csv.field_size_limit(64 * MIB)
HEADER = "n,a,b,c\n"


def table(seed, size, line_end="\n"):
    """A CSV text of about `size` characters. Column n numbers the rows."""
    draw = random.Random(seed)
    pieces = ["x", "yz", '"', '""', ",", "\n", "\r\n", " ", "\\", "\u00fc", "long " * 8]
    out = io.StringIO()
    out.write(HEADER.replace("\n", line_end))
    writer = csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(["0", "quoted, from the start", "", ""])
    number = 1
    while out.tell() < size:
        cells = ["".join(draw.choices(pieces, k=draw.choice((0, 1, 2, 6)))).strip(" \r") for _ in range(3)]
        writer.writerow([str(number), *cells])
        number += 1
    return out.getvalue()


def expected(text):
    """The documents without _id, by row number. Empty fields are missing."""
    rows = csv.reader(io.StringIO(text, newline=""))
    names = next(rows)
    return {int(row[0]): {name: cell for name, cell in zip(names, row) if cell} for row in rows}


class QuotedLinesCase(support.Case):
    def loaded(self, *words, types="text", **more):
        raw, _ = self.dump(*words, "--format", "delimited", "--types", types, **more)
        self.assertEqual(len(set(map(support.key_of, raw))), len(raw))
        return [{key: value for key, value in support.bson.decode(one).items() if key != "_id"} for one in raw]

    def assert_same(self, documents, text):
        found = {int(document["n"]): document for document in documents}
        self.assertEqual(len(found), len(documents))
        rows = expected(text)
        wrong = [n for n in sorted({*found, *rows}) if found.get(n) != rows.get(n)]
        self.assertFalse(wrong, f"{len(wrong)} rows, the first: {found.get(wrong[0])}, "
                                f"not {rows.get(wrong[0])}" if wrong else "")


class LineNumbers(QuotedLinesCase):
    def test_the_lines_of_rejects_are_those_of_the_file(self):
        for dialect, delimiter, cell in (("csv", ",", '"x\ny"'), ("postgres", "\t", "x\\\ny")):
            rows = [f"{n}{delimiter}{cell}\n" if n % 7 else "bad\n" for n in range(1, 200)]
            path = self.file("a.txt", "".join([f"n{delimiter}text\n", *rows]))
            self.shardload("load", "--sink", "null", "--dialect", dialect, "--header", "yes", "--work-dir",
                           dialect, path, code=support.EXIT_REJECTS)
            self.assertEqual([int(row["line"]) for row in support.reject_rows(self.scratch / dialect)],
                             [13 * n + 1 for n in range(1, 29)], dialect)


class LargeRecords(QuotedLinesCase):
    def test_the_rest_of_a_record_that_is_too_large_is_no_record(self):
        for size in 20, 40:
            text = '"x\ny",1,2\nxy,1,2\n' + "Z" * (size * MIB) + ',7,8\nok,3,4\nbad\n'
            path = self.zipped("large.csv.gz", "a,b,c\n" + text)
            raw, work = self.dump("--format", "delimited", path, code=support.EXIT_REJECTS)
            self.assertEqual({support.bson.decode(one)["a"] for one in raw}, {"x\ny", "xy", "ok"})
            self.assertEqual([int(row["line"]) for row in support.reject_rows(work)], [5, 7])


class HiddenRecords(QuotedLinesCase):
    """An unclosed quote and a later inch mark are valid CSV: one field with many records."""

    def swallowing(self, first, last, before=0):
        rows = [f'{n},name{n},x,{n}\n' for n in range(before + 200)]
        rows[0] = '0,"name0",x,0\n'
        rows[before + first] = f'{before + first},"name,x,0\n'
        rows[before + last] = f'{before + last},disk 5",x,0\n'
        return "id,name,c,d\n" + "".join(rows)

    def test_hidden_records_are_reported_with_file_and_line(self):
        for first, last, before, hidden in ((100, 151, 0, 50), (100, 102, 0, 1), (1, 199, 90000, 197)):
            text = self.swallowing(first, last, before)
            line = before + first + 2
            self.file("s.csv", text)
            self.zipped("z.csv.gz", text)
            for name, place in (("s.csv", f"s.csv, line {line}, byte "), ("z.csv.gz", "z.csv.gz, ")):
                for words in ([], ["--trim"], ["--escape", "backslash"]):
                    outcome = self.shardload("load", "--sink", "null", *words, name)
                    self.assertEqual(outcome.err.count("warning"), 1, (hidden, words))
                    self.assertIn(place, outcome.err)
                    self.assertIn(f"contains {hidden} line{'s' * (hidden > 1)} with as many fields", outcome.err)
                    self.assertIn("is a quote not closed? Correct it", outcome.err)
        rows = re.sub(r",(name\d+),x,(?!1101)", r',"\1\n",x,', self.swallowing(100, 102, 1000))  # line ends in all
        self.assertIn("contains 1 line with", self.shardload("load", "--sink", "null", self.file("q.csv", rows)).err)
        self.file("s.csv", self.swallowing(100, 151))
        self.assertIn("s.csv, line 102, byte", self.shardload("inspect", "s.csv").err)

    def test_ordinary_line_ends_are_not_reported(self):
        letters = "".join(f'{n},"Dear you,\nHello, x, y\nbye, z, w, v",x,{n}\n' for n in range(99))
        tables = "".join(f'{n},"a,b,c,d\n1,2,3,4\n",x,{n}\n' for n in range(99))
        pairs = "id,text\n" + "".join(f'{n},"Dear, you\nHello, x\nbye, z"\n' for n in range(99))
        for text in ("id,text,c,d\n" + letters, "id,text,c,d\n" + tables, pairs):
            outcome = self.shardload("load", "--sink", "null", self.file("o.csv", text))
            self.assertNotIn("warning", outcome.text)


class LateLineEnds(QuotedLinesCase):
    def rows(self, late):
        lines = [f"{n},text {n},x,\n" for n in range(12000)]
        lines[9000] = f"9000,{late},x,\n"
        return HEADER + "".join(lines)

    def test_the_sample_shows_line_ends_after_the_first_text(self):
        """The first quoted field comes after 64 KiB: no option is needed."""
        text = self.rows('"two\nlines, and ""quotes"""')
        for threads in (1, 4):
            documents = self.loaded("-j", threads, self.file("late.csv", text), types="auto")
            self.assertEqual({row["n"]: row["a"] for row in documents},
                             {n: row["a"] for n, row in expected(text).items()})

    def test_a_quote_that_is_never_closed_is_no_line_end(self):
        outcome, _ = self.parse(self.file("inch.csv", self.rows('"5 inch')), code=support.EXIT_SOURCE)
        self.assertIn("inch.csv, line 9002, ", outcome.err)


class EveryField(QuotedLinesCase):
    def test_random_tables(self):
        for seed, line_end in ((1, "\n"), (2, "\r\n")):
            text = table(seed, 2 * MIB, line_end)
            path = self.file("q.csv", text)
            for threads in ("1", "4"):
                with self.subTest(seed=seed, threads=threads):
                    self.assert_same(self.loaded("-j", threads, path), text)

    def test_every_instruction_set(self):
        text = table(3, 300_000)
        path = self.file("q.csv", text)
        for name in ("portable", "sse2", "avx2", "neon"):
            environment = support.clean_environment(SHARDLOAD_SIMD=name)
            if self.run_program("shardload", "inspect", path, environment=environment).code:
                continue  # not built, or not supported by this processor
            with self.subTest(name):
                self.assert_same(self.loaded(path, environment=environment), text)

    def test_every_kind_of_source(self):
        text, other = table(4, 2 * MIB), table(5, 300_000)
        self.assert_same(self.loaded(self.zipped("q.csv.gz", text)), text)
        self.assert_same(self.loaded("-", stdin=text.encode()), text)
        archive = self.file("q.zip", making.zip_of([("one.csv", text), ("two.csv", other)]))
        documents = self.loaded(archive)
        self.assertEqual(len(documents), len(expected(text)) + len(expected(other)))
        self.assert_same(self.loaded(self.file("folder/one.csv", text).parent), text)

    def test_at_every_position_around_the_border_of_a_block(self):
        quoted = '7,"x\n8,""y"",9,9\n","a\r\nb",z\n'
        first = HEADER + '1,"quoted",,\n'
        row = "{},bb,cc,dd\n"
        for at in range(-len(quoted) - 1, 3, 2):
            filler = MIB + at - len(first)
            rows, number = [], 10
            while filler > 60:
                rows.append(row.format(number))
                filler -= len(rows[-1])
                number += 1
            rows.append(f"{number},{'p' * (filler - len(str(number)) - 4)},,\n")
            text = first + "".join(rows) + quoted + row.format(5000000) * 1
            self.assertEqual(text.index(quoted), MIB + at)
            path = self.file("q.csv", text)
            with self.subTest(at=at):
                self.assert_same(self.loaded("-j", "3", path), text)

    def test_a_record_larger_than_a_block(self):
        big = "line of a large field\n" * 150_000
        text = HEADER + f'1,"{big}",b,c\n2,"x\ny",b,c\n'
        self.assert_same(self.loaded(self.file("q.csv", text)), text)

    def test_parts_and_blocks_that_are_read_again(self):
        """Both parts of a file together hold each record once."""
        text = table(6, 4 * MIB)
        path = self.file("q.csv", text)
        documents = self.loaded("--part", "1/2", path) + self.loaded("--part", "2/2", path)
        self.assert_same(documents, text)

    def test_types_are_inferred_from_records(self):
        """Pieces of quoted fields that look like records do not count."""
        rows = [(i, f"text\n{i},5,2\nx" + "\ny" * (i % 40), i / 4) for i in range(15_000)]
        text = "id,text,v\n" + "".join(f'{i},"{t}",{v}\n' for i, t, v in rows)
        path = self.file("t.csv", text)
        archive = self.file("t.zip", making.zip_of([("t.csv", text)]))
        for source in (path, self.zipped("t.csv.gz", text), archive):
            with self.subTest(str(source)):
                found = [(d["id"], d["text"], d["v"]) for d in self.loaded(source, types="auto")]
                self.assertEqual(sorted(found), rows)
        utf16 = self.scratch / "u.csv"
        utf16.write_bytes(text.encode("utf-16"))
        self.assertEqual(self.loaded(utf16, "--ragged", "pad", types="auto")[7]["id"], 7)

    def test_names_with_quotes_and_delimiters(self):
        path = self.file("n.csv", '"a ""x, y""","""b""","c ""","",""""\n1,2,3,4,5\n6,7,8,9,10\n')
        names = ['a "x, y"', '"b"', 'c "', "column4", '"']
        self.assertEqual([list(d) for d in self.loaded(path)], [names, names])
        schema = self.scratch / "n.yaml"
        self.shardload("inspect", "--write-schema", schema, path)
        documents, _ = self.dump("--format", "delimited", "--schema", schema, path)
        self.assertEqual([list(support.bson.decode(d))[1:] for d in documents], [names, names])

    def test_a_header_with_line_ends(self):
        """Also repeated, as in joined files, and of a later entry; whether fields are quoted or not."""
        header = 'id,"na\nme"\n'
        for line_end in ("\n", "\r\n"):
            for row in ('"x\ny"', '"x"', "x"):
                text = f"{header}1,{row}\n2,{row}\n3\n{header}4,{row}\n".replace("\n", line_end)
                path = self.file("h.csv", text)
                value = row.strip('"').replace("\n", line_end)
                for threads in (1, 4):
                    with self.subTest(row, line_end=line_end, threads=threads):
                        raw, work = self.dump("--format", "delimited", "-j", threads, path, code=1)
                        found = [support.bson.decode(one) for one in raw]
                        self.assertEqual([(one["id"], one["na me"]) for one in found],
                                         [(1, value), (2, value), (4, value)])
                        (reject,) = support.reject_rows(work)
                        self.assertEqual(reject["line"], str(5 + 2 * row.count("\n")))
        for first in ('id,p,q,"na\nme"\n3,1,1,"x\ny"\n', 'id,p,q,name\n3,1,1,"x\ny"\n'):
            archive = self.file("w.zip", making.zip_of([
                ("1.csv", first), ("2.csv", 'id,p,q,"na\nme"\n4,1,1,"x\ny"\n5,1,1,z\n')]))
            self.assertEqual(sorted(one["id"] for one in self.loaded(archive, types="auto")), [3, 4, 5])

    def test_records_without_header(self):
        rows = [(i, "text,\n" * (i % 4) + "end", i / 4 + 0.25) for i in range(3000)]
        text = "".join(f'{i},"{t}",{v}\n' for i, t, v in rows)
        for head in ("", "\ufeff", "\n\n"):
            with self.subTest(head):
                path = self.file("r.csv", head + text)
                found = [tuple(one.values()) for one in self.loaded("-j", 2, path, types="auto")]
                self.assertEqual(sorted(found), rows)

    def test_escapes(self):
        text = 'a,b\n1,"x \\"y\\"\n,z"\n2,"c:\\\\"\n'
        documents = self.loaded("--escape", "backslash", self.file("e.csv", text))
        self.assertEqual([d["b"] for d in documents], ['x "y"\n,z', "c:\\"])
        text = 'a,b\n1,"c:\\"\n2,"x\ny"\n'
        documents = self.loaded(self.file("n.csv", text))
        self.assertEqual([d["b"] for d in documents], ["c:\\", "x\ny"])
        outcome = self.shardload("inspect", "--escape", ",", self.file("n.csv", text), code=2)
        self.assertIn("not an escape character", outcome.err)


class WrongQuotes(QuotedLinesCase):
    """A quote that is not closed could hide records: the load ends, and says where."""

    def refused(self, text, *more):
        return self.parse(*more, self.file("w.csv", text), code=support.EXIT_SOURCE, limit=60)[0].err

    def test_a_field_that_is_never_closed(self):
        rows = "1,x,y,z\n" * 10
        self.assertRegex(self.refused(HEADER + rows + '2,"open,y,z\n' + rows),
                         r"w\.csv, line 12, byte 88: a quoted field is not closed before the end")
        self.assertRegex(self.refused(HEADER + '1,"q",y,z\n' + '2,"open' + "\n" * (20 * MIB)),
                         r"line 3, byte 18: a quoted field is not closed")

    def test_a_stray_quote_that_joins_lines(self):
        err = self.refused(HEADER + '1,"q",y,z\n2,"5 inch,y,z\n3,x,y,z\n4,x,"three",z\n')
        self.assertRegex(err, r"line 3, byte 18: a quoted field with line ends.* is followed by other text")
        self.assertIn("quotes: false", err)

    def test_a_quote_before_the_table(self):
        title = '"Report of stuff\nid,name\n' + "1,x\n" * 9
        self.assertIn("a header, and lines before it, must not have line ends in quotes",
                      self.refused(title, "--skip-lines", "1", "--quoted-lines", "yes"))

    def test_wrong_number_of_fields_rejects_one_record(self):
        text = HEADER + '1,"a\nb",y,z\n2,"c\nd",y\n3,"e\nf",y,z\n'
        documents = self.loaded(self.file("w.csv", text), code=1)
        self.assertEqual([d["a"] for d in documents], ["a\nb", "e\nf"])

    def test_first_quote_after_the_head(self):
        """Without a sample of the types, such a file needs an option, which the message names."""
        text = HEADER + "1,x,y,z\n" * 20_000 + '2,"a\nb",y,z\n'
        self.assertIn("--quoted-lines yes", self.refused(text, "--types", "text"))
        documents = self.loaded("--quoted-lines", "yes", self.file("w.csv", text))
        self.assertEqual(len(documents), 20_001)
