# SPDX-License-Identifier: Apache-2.0
"""Delimiters and quotes other than a comma and a double quote. A quote that is not understood is
stored in values, and moves fields to other columns."""
import csv
import io
import random
import re
import shutil
import subprocess

import bson

import archive_making as making
import support

WORDS = ["plain", "a,b", "a;b", "a\tb", "a|b", 'say "hi"', "it's", "two\nlines", "", "1.5", "x\x01y", "~"]


def table(rows, seed, **dialect):
    """A CSV text in which all fields are quoted, by Python's csv module, and its documents."""
    draw = random.Random(seed)
    made = [["id", "text", "more"]]
    made += [[str(n), draw.choice(WORDS), draw.choice(WORDS)] for n in range(rows)]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL, **dialect).writerows(made)
    names = made[0]  # an empty field is a missing value
    return out.getvalue(), [{k: v for k, v in zip(names, row) if v} for row in made[1:]]


class Delimiters(support.Case):
    def documents(self, path, *words):
        rows, _ = self.dump_decoded("--types", "text", "-j", 3, *words, path)
        return sorted(rows, key=lambda row: int(row["id"]))

    def test_quotes_beyond_the_sample_are_reported(self):
        """Quotes that begin in a part of the text that no sample has were stored without a word."""
        for end, delimiter in ("tsv", "\t"), ("csv", ","):
            rows = [delimiter.join((str(n), "name", "x" * 60)) for n in range(500_000)]
            rows[250_000:250_020] = [delimiter.join((str(n), "'a b'", '"late 1"')) for n in range(20)]
            path = self.file("late." + end, delimiter.join(("id", "name", "note")) + "\n" + "\n".join(rows) + "\n")
            outcome, _ = self.parse(path)
            self.assertRegex(outcome.err, f"late.{end}, line 250002, byte .*: this value has quotes, which are kept")
            if delimiter == ",":   # in a quoted field, they are text; nor do they hide other warnings
                rows[100_000:100_100] = [f"{n},\"in ('a','b','c')\",x" for n in range(100)]
                rows[10] = '10,"two\nlines",x'
                rows[-9:] = ['1,"open,x', *(f"{n},b,x" for n in range(7)), '9,27",x']
                err = self.parse(self.file("lists.csv", "id,name,note\n" + "\n".join(rows) + "\n"), code=None)[0].err
                self.assertEqual(len(re.findall("line 250003, .*has quotes, which are kept", err)), 1, err)
                self.assertIn("is a quote not closed?", err)
            for quote in "none", "'":
                self.assertNotIn("has quotes", self.parse("--quote", quote, path, code=None)[0].err)

    def test_other_dialects_are_read_as_by_another_reader(self):
        for number, (delimiter, quote, words) in enumerate([
                ("\t", '"', []), ("|", '"', []), (",", "'", []), (";", "'", []),
                ("\x01", '"', ["--delimiter", "\\x01"]), ("^", "~", ["--delimiter", "^", "--quote", "~"]),
                ("|", "'", ["--quote", "'"])]):
            with self.subTest(delimiter=delimiter, quote=quote):
                text, rows = table(60000, number, delimiter=delimiter, quotechar=quote)
                self.assertGreater(len(text), 1 << 20)  # several blocks
                path = self.file(f"{number}.csv", text)
                self.assertTrue(self.documents(path, *words) == rows)
                schema = self.scratch / f"{number}.yaml"
                self.shardload("inspect", "--write-schema", schema, "--types", "auto", *words, path)
                found, _ = self.dump("--schema", schema, path)
                self.assertEqual(len(found), len(rows))

    def test_the_delimiter_of_hive_in_a_text_without_quotes(self):
        path, schema = self.file("000000_0", "1\x01\"a\n2\x01b\n"), self.scratch / "hive.yaml"
        self.shardload("inspect", "--write-schema", schema, "--delimiter", "\\x01", "--quote", "none", path)
        self.assertEqual(self.dump_decoded("--schema", schema, path)[0][0]["column2"], '"a')

    def test_a_delimiter_that_fits_worse_than_another_one(self):
        for given, text, shown in ((",", "a;b,u;c\n1;2,5;3\n4;5,5;6\n",
                                    "into 2 columns, and ; would divide it evenly into 3"),
                                   ("|", "a\tb\n1\t2\n3\t4\n", "into 1 column, and tab would divide it evenly into 2"),
                                   (";", "a;b,c,d\n1;2,3,4\n5;6,7,8\n", "into 2 columns, and , would")):
            path = self.file("w.csv", text)
            words = "load", "--sink", "null", "--header", "yes", path
            outcome = self.shardload(*words, "--delimiter", given)
            self.assertIn(f"w.csv: --delimiter {given} divides this text {shown}", outcome.err)
            self.assertNotIn("would divide", self.shardload(*words).err)
        for given, text in ((";", "a;b\n1;2,5\n4;x\n"), (",", "a,b,c\n1;2,x,y\n3;4,x,y\n"), ("|", "a|b\n1|2\n")):
            path = self.file("r.csv", text)
            self.assertNotIn("would divide", self.shardload("load", "--sink", "null", "--delimiter", given, path).err)

    def test_titles_are_counted_and_name_no_column(self):
        """Two titles and a line of units: the advised --skip-lines names the columns, not one column by a title."""
        path = self.file("o.csv", "Rhein\n2024\n\nZeit;Pegel\n[UTC];[cm]\n" + "2024-01-01;5\n" * 30)
        for skipped in ("0", "1"):
            self.shardload("inspect", "--skip-lines", skipped, path, code=support.EXIT_SOURCE, message="--skip-lines 3")
        self.assertIn("--delimiter ; would divide it evenly into 2", self.parse("--header", "yes", path)[0].err)
        words = "--skip-lines", "1", self.file("n.csv", "Liste\nid\n1, A\n2, B\n")
        self.shardload("inspect", *words, code=support.EXIT_SOURCE, message="one column, --delimiter tab")
        self.assertEqual(self.dump_decoded("--delimiter", "tab", *words)[0][1]["id"], "2, B")

    def test_quotes_that_are_data(self):
        path = self.file("t.tsv", 'id\tsize\n1\t"5" disk"\n2\t"x"\n')
        self.assertEqual(self.documents(path), [{"id": "1", "size": '"5" disk"'}, {"id": "2", "size": '"x"'}])
        self.assertIn("quotes are kept", self.shardload("inspect", path).out)
        load = "load", "--sink", "null", path
        self.assertIn("t.tsv, line 2: values have quotes, which are kept: --quote '\"'", self.shardload(*load).err)
        self.assertNotIn("warning", self.shardload(*load, "--quote", "none").err)
        path = self.file("t.csv", 'id,size\n1,"\xe4,"\n2,\xfc 5"" x\n'.encode("latin-1"))
        self.assertEqual(self.documents(path, "--encoding", "latin-1"),
                         [{"id": "1", "size": "\xe4,"}, {"id": "2", "size": '\xfc 5"" x'}])
        path = self.file("t.csv", 'id,size\n1,"5"\n')
        self.assertEqual(self.documents(path, "--quote", "none"), [{"id": "1", "size": '"5"'}])

    def test_quotes_after_the_first_lines(self):
        """Quotes that only later lines have are recognised if two of these show that they quote, and are never kept
        without a warning."""
        for late, found, said in (({5001: '"He said ""hi"""', 5002: '"x"', 5003: '"a|b"'},
                                   ['He said "hi"', "x", "a|b"], None),
                                  ({5001: '"a\nb"', 5002: '"c\nd"'}, ["a\nb", "c\nd"], None),
                                  ({5001: '"He said ""hi"""', 5002: '"x"'}, ['"He said ""hi"""', '"x"'], 5001),
                                  ({5001: '"Smith, John"'}, ['"Smith, John"'], 5001),
                                  ({80: '"x"'}, ['"x"'], 80), ({5001: '""x""', 5002: '"y"'}, ['""x""', '"y"'], 5001),
                                  ({5001: '"He said ""hi"""', 5002: '"5" disk'},
                                   ['"He said ""hi"""', '"5" disk'], 5001),
                                  ({5001: '"abc', 5002: 'def"', 5003: '"z"'}, ['"abc', 'def"', '"z"'], 5003)):
            text = "".join(f"{line}|{late.get(line, 'plain text')}\n" for line in range(1, 6000))
            path = self.file("q.psv", text)
            rows = sorted(self.dump_decoded(path)[0], key=lambda row: int(row["column1"]))
            self.assertEqual([row["column2"] for row in rows if row["column2"] != "plain text"], found)
            shown = self.shardload("load", "--sink", "null", path).err
            self.assertEqual(f"q.psv, line {said}: values have quotes, which are kept" in shown, said is not None)
            self.assertEqual("warning" in shown, said is not None)
        text = "".join(f"{line}|plain text\n" for line in range(1, 6000)) + '6000|"a|b"\n'
        archive = self.file("q.tar", making.tar([("q.psv", text)]))     # no entry is read again
        outcome = self.shardload("load", "--sink", "null", archive, code=1)
        self.assertIn("values have quotes, which are kept", outcome.err)

    def test_escapes_after_the_first_lines(self):
        """A warning names the dialect of an export whose first 64 KiB do not show it."""
        said = "t.tsv, line {}: values have backslashes as exports of databases have them"
        for names, value, dialect in (("", "C:\\\\x", "postgres (COPY) or mysql"), ("", "a\\\nb", "postgres"),
                                      ("", "a\\nb", "postgres"), ("", "C:\\Users\\new", None),
                                      ("id\tt\n", "C:\\\\x\\ny", "mysql-batch"), ("id\tt\n", "C:\\new", None)):
            path = self.file("t.tsv", names + "".join(
                f"{line}\t{value if line == 5000 else 'plain text'}\n" for line in range(1, 6000)))
            shown = self.shardload("load", "--sink", "null", path, code=None).err
            self.assertEqual(said.format(5000 + bool(names)) in shown, dialect is not None, shown)
            self.assertIn(f"--dialect {dialect}" if dialect else "", shown)
            outcome = self.shardload("load", "--sink", "null", "--dialect", "csv", path, code=None)
            self.assertNotIn("backslashes", outcome.err)

    def test_files_of_one_table_share_their_quotes(self):
        """A file that does not show its quotes is read with those of the other files."""
        names = "id\ttext\n"
        numbers, kept = names + "1\t5\n2\t6\n", names + '3\t"x"\n4\ty\n5\t"007"\n'
        quoted = names + '6\t"a\tb"\n7\t"6"\n'
        rows = {1: "5", 2: "6", 3: "x", 4: "y", 5: "007", 6: "a\tb", 7: "6"}
        for order in ((numbers, kept, quoted), (quoted, kept, numbers)):
            for number, text in enumerate(order):
                self.file(f"f/{number}.tsv", text)
            self.zipped("f/1.tsv.gz", order[1])
            self.scratch.joinpath("f/1.tsv").unlink()
            self.assertEqual({int(d["id"]): d["text"] for d in self.documents("f")}, rows)
            shown, _ = self.dump_decoded("f")  # also with types
            self.assertEqual({d["id"]: str(d["text"]) for d in shown}, rows)
            archive = self.file("a.tar", making.tar([(str(n), text) for n, text in enumerate(order)]))
            if order[0] == quoted:  # later entries are read with these quotes
                self.assertEqual({int(d["id"]): d["text"] for d in self.documents(archive)}, rows)
            else:                   # earlier entries cannot be read again
                self.assertIn("give --quote with", self.shardload(
                    "load", "--sink", "null", archive, code=support.EXIT_SOURCE).err)
            found = self.documents(archive, "--quote", '"')
            self.assertEqual({int(d["id"]): d["text"] for d in found}, rows)

    def test_backslashes_that_the_dialect_of_another_file_does_not_write(self):
        """A file is not read with the escapes of its table if these would drop its backslashes."""
        shows, data = "id\tt\n1\tNULL\n2\tx\n", "id\tt\n3\tD:\\Data\\n\n4\ty\n"
        for order in ((shows, data), (data, shows)):
            for number, text in enumerate(order):
                self.file(f"f/{number}.tsv", text)
            self.assertIn("D:\\Data\\n", [d.get("t") for d in self.documents("f")])
            self.assertIn(f"f/{order.index(data)}.tsv: \\D is no escape of the dialect mysql-batch, which "
                          f"f/{order.index(shows)}.tsv of", self.shardload("load", "--sink", "null", "f").err)

    def test_standard_input_cannot_be_read_again(self):
        quoted, plain = "id\ttext\n1\t'a\tb'\n2\t'c'\n", b"id\ttext\n3\tx\n4\ty\n"
        path = self.file("q.tsv", quoted)
        self.assertIn("give --quote", self.shardload("load", "--sink", "null", "-", path, stdin=plain,
                                                     code=support.EXIT_SOURCE).err)
        self.shardload("load", "--sink", "null", "--quote", "'", "-", path, stdin=plain)
        self.shardload("load", "--sink", "null", path, "-", stdin=plain)  # the quotes are known in time

    def test_quotes_and_delimiters_that_differ_are_reported(self):
        stray = 'id\ttext\n1\t"5" disk"\n2\t"x\n'
        self.file("f/1.tsv", stray)
        self.file("f/2.tsv", 'id\ttext\n3\t"a\tb"\n4\t"y"\n')
        self.file("f/3.csv", "id,text\n5,z\n")
        rows = self.documents("f")
        self.assertEqual([d["text"] for d in rows], ['"5" disk"', '"x', "a\tb", "y", "z"])
        outcome = self.shardload("load", "--sink", "null", "f")
        self.assertRegex(outcome.err, r"1.tsv: the fields of f/2.tsv, .*are kept as data")
        self.assertRegex(outcome.err, r"2.tsv and f/3.csv have the same columns, but not the same delimiter|"
                                      r"1.tsv and f/3.csv have the same columns, but not the same delimiter")
        self.file("f/1.tsv", "id\ttext\n1\t'a\tb'\n2\t'x'\n")
        outcome = self.shardload("load", "--sink", "null", "f", "--include", "*.tsv")
        self.assertIn("but their fields are quoted by ' and \"", outcome.err)
        self.file("f/1.tsv", "id\ttext\n1\tx\n")
        self.assertNotIn("warning", self.shardload("load", "--sink", "null", "f", "--include", "*.tsv").err)

    def test_values_that_are_no_delimiter_or_quote(self):
        path = self.file("t.csv", "a,b\n1,2\n")
        for words, message in ((["--delimiter", '"'], "is not a delimiter"),
                               (["--delimiter", ",,"], "is not a delimiter"),
                               (["--delimiter", "\\x80"], "is not a delimiter"),
                               (["--delimiter", "\\x"], "is not a delimiter"),
                               (["--quote", "\\"], "is not a quote"), (["--quote", "''"], "is not a quote"),
                               (["--quote", ";", "--delimiter", ";"], "cannot be both"),
                               (["--quote", "'", "--schema", path], "--quote is for text without --schema")):
            with self.subTest(words=words):
                self.assertIn(message, self.shardload("inspect", *words, path, code=support.EXIT_USAGE).err)

    def test_a_line_of_dashes_below_the_names_is_no_record(self):
        schema = self.file("s.yaml", "name: s\ncolumns:\n- {name: id, type: text}\n- {name: name, type: text}\n")
        for names, line, rows in (("id,name", "--,------", "1,a\n"), ("id\tname", "--\t---", "1\ta\n"),
                                  ("| id | name |", "|---:|------|", "| 1 | a |\n"),
                                  ("id   name", "---- -----", "1    a\n2    b\n"), ("id;name", "---;---", "1;a\n")):
            path = self.file("t.csv", f"{names}\r\n{line}\r\n{rows}")
            outcome = self.shardload("inspect", "--null", "NULL", path, code=support.EXIT_SOURCE)
            shown = line.replace("\t", "\\x09")
            self.assertIn(f"t.csv: line 2, `{shown}`, is no record, but a line below the names: remove it, from a "
                          "plain file with sed 2d FILE", outcome.err)
            self.shardload("inspect", "-", stdin=f"{names}\r\n{rows}".encode())
        rows = "1,a\n2,b\n3,c\n"
        for line in ("-,-", "--,--", "---", "1,---", ",---", '"---","---\n"'):
            path = self.file("t.csv", f"id,name\n{line}\n{rows}")
            self.assertNotIn("is no record", self.parse(path, code=None)[0].err)
        path = self.file("t.csv", f"id,name\n---,---\n{rows}")
        for words, count in (["--schema", schema], 4), (["--null", "---"], 4), (["--columns", "a,b"], 5):
            self.assert_accounting(self.parse(*words, path)[1], inserted=count)
        for words in (["--header", "no", self.file("one.txt", "hello\n-----\nx\n")],
                      [self.file("t.sql", "CREATE TABLE t (a text, b text);\nINSERT INTO t VALUES ('---', '---');\n")]):
            self.parse(*words)

    def test_a_database_of_sqlite_is_named_and_its_export_loaded(self):
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed")
        path = self.scratch / "shop.db"
        subprocess.run(["sqlite3", path, "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x,\"y'), (2, NULL)"],
                       check=True)
        self.assertIn("sqlite3 FILE .dump | shardload load",
                      self.shardload("inspect", path, code=support.EXIT_SOURCE).err)
        exported, dump = (subprocess.run(["sqlite3", *words], check=True, stdout=subprocess.PIPE).stdout for words in
                          (["-csv", "-header", path, "SELECT * FROM t"], [path, ".dump"]))
        stored = self.scratch / "t.bson"
        self.shardload("load", "--sink", f"bson:{stored}", "--work-dir", self.scratch / "w", "-", stdin=exported)
        documents = [bson.decode(one) for one in support.bson_documents(stored.read_bytes())]
        self.assertEqual([(one["a"], one.get("b")) for one in documents], [(1, 'x,"y'), (2, None)])
        self.assertIn("1 table with rows", self.shardload("inspect", self.file("shop.sql", dump)).text)

    def test_files_of_other_programs_are_named(self):
        books = [(f"{first[:2]}.xlsx", making.zip_of([(first, "<a/>"), ("z.xml", "<a/>")]), "spreadsheet") for first in
                 ("[Content_Types].xml", "_rels/.rels", "docProps/app.xml", "xl/workbook.xml")]
        for name, data, message in (*books,
                                    ("t.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + bytes(500), "spreadsheet"),
                                    ("t.parquet", b"PAR1\x15\x04" + bytes(500), "Parquet"),
                                    ("t.json", b'\x1e{"k":1}\n\x1e{"k":2}\n', "tr -d '\\036'"),
                                    ("t.avro", b"Obj\x01" + bytes(500), "Avro"),
                                    ("t.db", b"SQLite format 3\0" + bytes(500), "sqlite3 FILE .dump"),
                                    ("t.dump", b"PGDMP" + bytes(500), "an archive of pg_dump"),
                                    ("dump.tar", making.tar([("toc.dat", b"PGDMP" + bytes(500)), ("1.dat", "1\tx\n"),
                                                             ("restore.sql", "SELECT 1;\n")]), "pg_restore -f - FILE"),
                                    ("f/toc.dat", b"PGDMP" + bytes(500), f"pg_restore -f - {self.scratch}/f/ |"),
                                    ("t.sql", b"--\n-- PostgreSQL database dump\n--\n", "it is cut off"),
                                    ("m.sql", b"-- MySQL dump 10.13  Distrib 8.0\n", "it is cut off"),
                                    ("n.sql", b"/*M!999999\\- enable the sandbox mode */ \n", "no table with rows")):
            with self.subTest(name):
                self.assertIn(message, self.shardload("inspect", self.file(name, data), code=support.EXIT_SOURCE).err)
        self.file("f/1.dat", "1\tx\n")      # beside toc.dat: no table of a collection
        self.parse("--skip-other", self.scratch / "f", code=support.EXIT_SOURCE)
