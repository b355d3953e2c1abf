# SPDX-License-Identifier: Apache-2.0
"""Delimiters and quotes other than a comma and a double quote. A quote that is not understood is
stored in values, and moves fields to other columns."""
import csv
import io
import random

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

    def test_quotes_that_are_data(self):
        path = self.file("t.tsv", 'id\tsize\n1\t"5" disk"\n2\t"x"\n')
        self.assertEqual(self.documents(path), [{"id": "1", "size": '"5" disk"'}, {"id": "2", "size": '"x"'}])
        self.assertIn("quotes are kept", self.shardload("inspect", path).out)
        path = self.file("t.csv", 'id,size\n1,"5"\n')
        self.assertEqual(self.documents(path, "--quote", "none"), [{"id": "1", "size": '"5"'}])

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

    def test_files_of_other_programs_are_named(self):
        book = making.zip_of([("[Content_Types].xml", "<Types/>"), ("xl/workbook.xml", "<workbook/>")])
        for name, data, message in (("t.xlsx", book, "spreadsheet"),
                                    ("t.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + bytes(500), "spreadsheet"),
                                    ("t.parquet", b"PAR1\x15\x04" + bytes(500), "Parquet"),
                                    ("t.avro", b"Obj\x01" + bytes(500), "Avro"),
                                    ("t.db", b"SQLite format 3\0" + bytes(500), "SQLite")):
            with self.subTest(name):
                self.assertIn(message, self.shardload("inspect", self.file(name, data),
                                                      code=support.EXIT_SOURCE).err)
