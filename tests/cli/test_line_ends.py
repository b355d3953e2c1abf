# SPDX-License-Identifier: Apache-2.0
"""Line ends that would be misread: CR alone, and line ends in quoted fields of a source whose first
quoted field comes late (test_quoted_lines.py has the sources whose quoted line ends are read). A
file with such a line end anywhere is refused, because the text after it may look like a good
record."""
import bson

import archive_making as making
import support

MIB = 1 << 20
HEADER = "a,b,c\n"
# The second line is a good record by itself.
SPLIT = '1,"x\n7,8,9\ny",2\n'
ISD_HEADER = "STATION,DATE,WND,TMP,NAME\n"


class LineEndCase(support.Case):
    def load(self, *words, code=support.EXIT_SOURCE, **more):
        return self.parse(*words, code=code, limit=60, **more)[0].err

    def inspect(self, path, command="inspect", *words):
        return self.shardload(command, *words, path, code=support.EXIT_SOURCE).err


class LastLines(LineEndCase):
    def test_a_pipe_without_a_line_end_may_have_been_cut_off(self):
        for text, warned in (("a,b\n1,two\n3,fou", True), ("a,b\n1,two\n3,four\n", False),
                             ('{"a":1}\n{"a":2}', False)):
            err = self.load("-", stdin=text.encode(), code=support.EXIT_OK)
            self.assertEqual("-: the last line has no line end" in err, warned, err)
            err = self.load(self.file("f.csv", text), code=support.EXIT_OK)
            self.assertNotIn("looks cut off", err)
            self.assertEqual("f.csv: the last line has no line end; is the file complete?" in err, warned, err)

    def test_a_file_that_looks_cut_off_within_its_last_value_is_warned_of(self):
        """104 of 1045,50 was stored without a word."""
        rows = "n;wert\n" + "".join(f"{n};{10 * n},50\n" for n in range(10, 50))
        page = "a,b\n" + "x,y\n" * 1022
        for text, warned in ((rows + "50;104", 1), (rows + "50;1045,5", 1), (rows + "50;7,25", 0), (page + "x,yz", 1),
                             (page + "x,y", 0), ("a,b\n" + "7,9\n7,10\n" * 9 + "7,1", 0)):
            err = self.load(self.file("f.csv", text), code=support.EXIT_OK)
            self.assertEqual(err.count("looks cut off: if the program that wrote or copied the file"), warned, text)

    def test_ctrl_z_ends_a_text_of_dos(self):
        """It was a record, and often a reject; within a line it is a byte of its value."""
        many = "".join(f"{n}\r\n" for n in range(30000))
        for end, values in (("\x1a", []), ("7\x1a", [7]), ("\x1a\x1a\r\n", []), ("7\x1a\r\nx", ["7\x1a", "x"])):
            for text in (end, many + end):
                found, _ = self.dump_decoded("-j", 1, "--header", "yes", self.file("f.csv", "a\r\n" + text))
                last = [one["a"] for one in found][text.count("\r\n") - end.count("\r\n"):]
                self.assertEqual([str(one) for one in last], [str(one) for one in values], end)
            err = self.load("--header", "yes", "-", stdin=("a\r\n" + end).encode(), code=None)
            self.assertEqual("ends with Ctrl-Z" in err, "x" not in end)
            self.assertEqual("no line end" in err, "x" in end)

    def test_a_total_in_the_last_line_is_named(self):
        for text, word in (("ort;art;n\nB;x;1\nSumme;;3\n", "summe"), ('a;n\nB;1\n"Total";2', "total"),
                           (";a;n\n1;B;1\n;;Итого\n", "Итого"), ("a,n\nB,1\nGRAND TOTAL,1\n", "grand total"),
                           ("a;n\nB;1\nTotal;2\n\n \r\n", "total"), ("a;n\nB;1\nTotal SA;2\n", None),
                           ("a;n\nB;1\nTotal général;2\n", "total général"),
                           ("a;n\nSumme;2\nB;1\n", None),
                           ('{"a":1}\nSumme', None)):
            err = self.load("-", stdin=text.encode(), code=None)
            self.assertEqual("-: the last record begins with the word" in err, word is not None, err)
            self.assertIn(f"the word {word}: if it is a total" if word else "", err)


class QuotedLineEnds(LineEndCase):
    def test_in_the_header_of_a_file_with_a_schema(self):
        path = self.file("q.csv", 'a,"b\nb",c\n1,2,3\n')
        schema = self.file("q.yaml", "name: q\nheader: true\ncolumns: [{name: a}, {name: c}]\n")
        dump = self.scratch / "dump.bson"
        self.shardload("load", "--sink", f"bson:{dump}", "--format", "delimited", "--schema", schema, path)
        self.assertIn(b"b b", dump.read_bytes())

    def test_isd_tables(self):
        row = '01001099999,2016-01-01T00:00:00,"010,1,N,0030,1","+0010,1","A\n{}"\n'
        err = self.load(self.file("i.csv", ISD_HEADER + row.format("B")))
        self.assertIn("line 2", err)

    def test_at_every_position_around_the_border_of_a_block(self):
        row = "10,20,30\n"
        for at in range(-len(SPLIT) - 1, 3):
            start = MIB + at  # the offset of the record with quotes
            rows, rest = divmod(start - len(HEADER), len(row))
            filler = HEADER + row * (rows - 1) + "1" * rest + row
            text = filler + SPLIT + row * 200000
            self.assertEqual(len(filler), start)
            path = self.file("q.csv", text)
            for threads in ("1", "4"):
                with self.subTest(at=at, threads=threads):
                    err = self.load("-j", threads, "--types", "text", path)
                    self.assertIn(f"line {rows + 2}, byte {start}: a quoted field", err)
            with self.subTest(at=at, source="pipe"):
                self.assertIn(f"byte {start}: a quoted field", self.load("-", stdin=text.encode()))

    def test_in_a_later_block_of_gzip_and_for_inspect(self):
        row = "10,20,30\n"
        text = HEADER + row * 300000 + SPLIT + row * 100000
        packed = self.zipped("q.csv.gz", text)
        self.assertIn(f"byte {len(HEADER) + 2700000}: a quoted field", self.load("--types", "text", packed))
        path = self.file("q.csv", HEADER + row * 10000 + SPLIT)
        self.assertIn("line 10002", self.inspect(path, "inspect", "--types", "text"))
        self.assertIn("line 10002", self.inspect(path, "plan", "--types", "text"))

    def test_quotes_that_are_closed_or_text(self):
        """Quotes that are closed, or part of the text, are accepted."""
        for name, text, code in (
                ("closed", 'a,b\n1,"x"\n"2","y""z"\n3,"say ""hi"""\n', 0),
                ("a trailing backslash", 'a,b\n1,2\n3,"c:\\"\n', 0),
                ("text behind a quote", 'a,b\n1,"A" COUPE\n2,3\n', 1),
                ("within a field", 'a,b\n1,5" disk\n2,3\n', 0), ("tabs", 'a\tb\n1\t"x\n2\t3\n', 0)):
            with self.subTest(name):
                self.load(self.file("q.csv", text), code=code)
        schema = self.file("s.yaml", "name: s\nquotes: false\ncolumns:\n- {name: a}\n- {name: b}\n")
        documents, _ = self.dump("--format", "delimited", "--schema", schema,
                                 self.file("inch.csv", 'a,b\n1,"5 inch\n2,3\n'))
        self.assertEqual(len(documents), 2)

    def test_mot_data_has_stray_quotes(self):
        """A stray quote rejects its own line only."""
        lines = support.mot_text([1, 2, 3]).replace("|", ",").splitlines(True)
        lines[2] = lines[2].replace("FIESTA", '"5')
        documents, _ = self.dump("--format", "mot", self.file("m.csv", "".join(lines)), code=1)
        self.assertEqual(len(documents), 2)


class CarriageReturns(LineEndCase):
    def test_as_the_only_line_ends(self):
        """Files whose lines end in CR alone are read, at any position of the block borders."""
        header, row = support.HEADER, support.ROW
        lite = "2016 01 01 00    12    34  9999   180    50     8     0     0"
        rows = "".join(f"{i},{'x' * (i % 300)}\r" for i in range(20000))
        for name, text, count in (
                ("delimited", "a,b\r1,2\r3,4\r", 2), ("no end", "a,b\r1,2", 1),
                ("blocks", "a,b\r" + rows, 20000),
                ("mot", f"{header}\r{row.format(id=1)}\r{row.format(id=2)}\r", 2),
                ("isd-lite", f"{lite}\r{lite.replace(' 00 ', ' 01 ')}\r", 2)):
            with self.subTest(name):
                plain = self.file("f.csv", text.encode())
                for path in (plain, self.zipped("f.csv.gz", text.encode())):
                    if name == "isd-lite":
                        path = path.rename(self.scratch / ("999999-14850-2016" + path.suffix))
                    documents, _ = self.dump(path)
                    self.assertEqual(len(documents), count)
                if name != "isd-lite":     # whose file name matters
                    documents, _ = self.dump("-", stdin=text.encode())
                    self.assertEqual(len(documents), count)
        entries = [("a.csv", b"a,b\r1,2\r"), ("b.csv", b'a,b\r\n3,"x\r\ny"\r\n')]
        self.shardload("load", "--sink", "null", "-", stdin=making.tar(entries), code=support.EXIT_SOURCE)
        text = "a,b\r" + rows * 2 + '1,"2\r3"\r'
        self.assertIn("line 40002", self.load(self.file("q.csv", text.encode())))

    def test_in_a_binary_file_they_are_data(self):
        """Also in one without any LF."""
        made = [{"_id": number, "t": "a\rb"} for number in (1, 2)]
        data = b"".join(map(bson.encode, made))
        self.assertNotIn(b"\n", data)
        for path in (self.file("a.bson", data), self.zipped("a.bson.gz", data),
                     self.file("a.tar", making.tar([("a.bson", data)]))):
            documents, _ = self.dump("--types", "text", path)
            self.assertEqual([bson.decode(one) for one in documents], made)

    def test_in_files_that_are_not_loaded(self):
        """--skip-other leaves out a binary file, whatever bytes it has, but no text."""
        self.file("in/a.csv", "a,b\n1,2\n")
        for other, code in ((b"\0\r\1\r", 0), (b"\0\n\r\r\n", 0), (b"x\r\r\ny\n", support.EXIT_SOURCE)):
            with self.subTest(other):
                self.file("in/other", other)
                self.assertIn("other", self.load("--skip-other", self.scratch / "in", code=code))
                self.assertIn("other", self.load(self.scratch / "in"))

    def test_as_line_ends(self):
        header, row = support.HEADER, support.ROW.format(id=1)
        for name, text in (("after LF", "a,b\n1,2\r3,4\r5,6\r"),
                           ("mixed", "a,b\n1,2\n3,4\r5,6\n7,8\n"), ("CR CR LF", "a,b\r\r\n1,2\r\r\n"),
                           ("CR CR LF later", "a,b\r\n1,2\r\r\n3,4\r\n"),
                           ("mot, LF", f"{header}\n{row}\r{row}\n")):
            with self.subTest(name):
                path = self.file(f"{name}/f.csv", text)
                for source in (path, path.parent):
                    err = self.load(source)
                    self.assertIn("carriage return", err)
                    self.assertIn("tr '\\r' '\\n'", err)
                self.inspect(path)

    def test_a_model_with_extra_pipes_contains_no_second_record(self):
        """A second record on the same line, after a CR, is not read as a long model."""
        row = support.ROW.format(id=1)
        text = support.HEADER + "\n" + (row + "\n") * 2000 + row + "\r" + row + "\n"
        documents, work = self.dump("--format", "mot", self.file("m.txt", text), code=1)
        self.assertEqual(len(documents), 2000)
        self.assertIn("carriage returns", (work / "rejects.tsv").read_text("utf-8"))

    def test_mixed_line_ends_that_are_accepted(self):
        documents, _ = self.dump(self.file("m.csv", "a,b\r\n1,2\n3,4\r\n\n5,x\ry\n7,8"))
        self.assertEqual(len(documents), 4)

    def test_a_header_alone(self):
        for text in ("a,b\n", "a,b\r\n", "a,b", "a,b\n\n", support.HEADER + "\n"):
            with self.subTest(text=text):
                path = self.file("h.csv", text)
                self.assertIn("no records", self.load(path, code=0))
                self.assertIn("no records", self.shardload("inspect", path).out)
