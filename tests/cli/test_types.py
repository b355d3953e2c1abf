# SPDX-License-Identifier: Apache-2.0
"""Types of delimited text without a schema: what is inferred, that nothing is changed, and what
happens to values that do not fit."""
import csv
import datetime
import decimal
import itertools
import random
import re
import shlex

import archive_making as making
import support

MIB = 1 << 20


def day(*numbers):
    return datetime.datetime(*numbers, tzinfo=datetime.timezone.utc)


class Types(support.Case):
    def documents(self, *words, **more):
        raw, work = self.dump("--format", "delimited", "-j", 1, *words, **more)
        options = support.bson.codec_options.CodecOptions(tz_aware=True)
        documents = [support.bson.decode(one, options) for one in raw]
        for document in documents:
            del document["_id"]
        return documents, work

    def tar(self, texts):
        """A tar archive of the files 00.csv, 01.csv ..."""
        return self.file("a.tar", making.tar([(f"{number:02}.csv", text) for number, text in enumerate(texts)]))

    def types_of(self, work):
        return [dict(zip(one["columns"], one["types"])) for one in support.run_record(work)["types"]]

    def test_every_type(self):
        path = self.file("all.csv", (
            "zip,phone,n,x,on,day,at,zoned,logged,us,note,none\n"
            "00501,+49,1,1.5,true,2016-01-15,2016-01-15 10:37:31,2016-01-15T10:37:31+01:00,"
            "15-Jan-2016 10:37:31.084,1/31/2016,-,-\n"
            "10001,5,-,-2,false,NA,,2016-01-15T10:37:31Z,-,2/1/2016,word,\n"))
        documents, work = self.documents(path)
        self.assertEqual(documents, [
            {"zip": "00501", "phone": "+49", "n": 1, "x": 1.5, "on": True, "day": day(2016, 1, 15),
             "at": day(2016, 1, 15, 10, 37, 31), "zoned": day(2016, 1, 15, 9, 37, 31),
             "logged": day(2016, 1, 15, 10, 37, 31, 84000), "us": day(2016, 1, 31), "note": "-"},
            {"zip": "10001", "phone": "5", "x": -2.0, "on": False,
             "zoned": day(2016, 1, 15, 10, 37, 31), "us": day(2016, 2, 1), "note": "word"}])
        self.assertEqual(self.types_of(work), [{
            "zip": "text", "phone": "text", "n": "int", "x": "double", "on": "flag true false",
            "day": "date", "at": "datetime", "zoned": "datetime with offset",
            "logged": "datetime %d-%b-%Y %H:%M:%S", "us": "date %m/%d/%Y", "note": "text",
            "none": "empty"}])
        log = (work / "shardload.log").read_text("utf-8")
        shown = self.shardload("inspect", path).out
        for text in (log, shown):
            self.assertIn("types inferred from 2 sampled records: 2 numbers, 5 dates, 1 flag, "
                          "3 texts, 1 empty", text)
        self.assertRegex(shown, r"logged +datetime %d-%b-%Y")

    def test_an_option_in_a_message_is_one_word_of_the_shell_whatever_the_header_is(self):
        path = self.file("a.csv", "id,it's $(id)\n" + "1,2024-01-01 00:00:00.123456\n" * 2)
        warning = self.parse(path)[0].err.partition("loaded as text: ")[2].partition(" cuts them")[0]
        options = shlex.split(warning)
        self.assertEqual(options, ["--types", "it's $(id)=datetime"])
        self.assertNotIn("more digits", self.parse(path, *options)[0].err)

    def test_advice_for_dates_that_would_be_cut_is_a_complete_option(self):
        """It ended within a name after 300 bytes, and had names with commas, which --types does not take."""
        names = [*(f"measurement_time_{n}" for n in range(20)), '"Time, UTC"']
        path = self.file("w.csv", ",".join(names) + "\n" + (",".join(["2024-01-01 00:00:00.123456"] * 21) + "\n") * 2)
        warning = self.parse(path)[0].err.partition("loaded as text: ")[2]
        options, _, more = warning.partition(" cuts them")
        self.assertRegex(more, "^; for all, write a schema .inspect --write-schema FILE., and declare them "
                               ".type: datetime, lossless: false.")
        self.assertNotIn("measurement_time_0", self.parse(path, *shlex.split(options))[0].err)

    def test_points_between_groups_of_digits(self):
        """12.500 is twelve and a half, or twelve thousand five hundred where 2,75 is a number. Beside 900 it is read
        so; otherwise it may be a code, so it is a text."""
        rows = "id;price;n;x\n1;1,50;1.000;0.125\n2;2,75;12.500;1.250\n"
        documents, _ = self.documents(self.file("commas.csv", rows))
        self.assertEqual(documents, [{"id": 1, "price": 1.5, "n": "1.000", "x": 0.125},
                                     {"id": 2, "price": 2.75, "n": "12.500", "x": 1.25}])
        documents, _ = self.documents(self.file("points.csv", rows.replace(",", ".")))
        self.assertEqual(documents[1], {"id": 2, "price": 2.75, "n": 12.5, "x": 1.25})
        for price in ("2,50", "0,101"):     # 0,101 has no group of digits
            for whole in ("0", "900", "-120", "12"):
                for values in (["12.500", "1.250", whole], [whole, "12.500", "1.250"]):
                    path = self.file("w.csv", "n;p\n" + "".join(f"{value};{price}\n" for value in values))
                    documents, work = self.documents(path)
                    read = values if len(whole) < 3 else [int(value.replace(".", "")) for value in values]
                    self.assertEqual([one["n"] for one in documents], read)
                    self.assertEqual("'n=int:1.234,5'" in (work / "shardload.log").read_text("utf-8"), len(whole) < 3)
        for amount, comma in (("2,5 %", True), ("1.112,50 €", True), ("EUR 2,50-", True), ("2.5 %", False),
                              ("5,250 %", False), ("(1,25)", False), ("LOT 1,2", False), ("§ 1,2", False)):
            path = self.file("amounts.csv", f'n,p\n331.885,10 %\n126.329,"{amount}"\n')
            documents, _ = self.documents(path)
            self.assertEqual(documents[1], {"n": "126.329" if comma else 126.329, "p": amount})

    def test_blanks_around_values_are_named(self):
        """Of columns that are text for no other reason; the advised option works."""
        path = self.file("p.csv", "n;price;word;none\n1; 2,50;x ; \n2;3,25;y;\n3;4,75 ;z; \n")
        outcome, _ = self.parse(path)
        self.assertIn("only the blanks around values make 1 column text: price. With --trim,", outcome.err)
        documents, work = self.documents("--trim", path)
        self.assertEqual([one["price"] for one in documents], [2.5, 3.25, 4.75])
        self.assertNotIn("blanks around", (work / "shardload.log").read_text("utf-8"))

    def test_a_few_values_that_make_a_column_text(self):
        """They are counted, the first one is shown with its line, and the advised option works."""
        numbers, days = [str(n) for n in range(300)], [f"{n % 28 + 1:02}.12.2015" for n in range(300)]

        def bad(values, *changed):
            return [dict(changed).get(n, value) for n, value in enumerate(values)]

        rows = (
            (bad(numbers, (15, "n/a?")), 'n: 1 of 300 sampled values is no int, the first "n/a?"', 17),
            (bad(numbers, (0, "m/s")), 'n: 1 of 300 sampled values is no int, the first "m/s"', 2),
            (bad(numbers, (299, "1,234"), (9, "x")), 'n: 2 of 300 sampled values are no int, the first "x"', 11),
            ([f"{n},5" for n in range(12)] + ["?"], 'n: 1 of 13 sampled values is no double 1234,5, the first "?"', 14),
            (bad(days, (3, "soon")), 'n: 1 of 300 sampled values is no date %d.%m.%Y, the first "soon"', 5),
            (["true"] * 99 + ["maybe"], 'n: 1 of 100 sampled values is no flag true false, the first "maybe"', 101),
            (bad(numbers, *((n, "x") for n in range(14))), 'n: 14 of 300 sampled values are no int, the first "x"', 2),
            (bad(numbers, (15, "007")), None, 0),
            (bad(numbers, *((n, f"x{n}") for n in range(16))), None, 0),
            (bad(numbers, *((n, "k.A.") for n in range(90))),
             'n: 90 of 300 sampled values are no int, the first "k.A."', 2),
            (numbers[:7] + ["x"], None, 0), ([f"w{n}" for n in range(99)] + ["1"], None, 0))
        for values, few, line in rows:
            path = self.file("x.csv", "n;t\n" + "".join(f"{value};a\n" for value in values))
            outcomes = [self.shardload("inspect", path), self.shardload("load", "--sink", "null", path)]
            for outcome in outcomes:
                self.assertEqual("some values make" in outcome.err, few is not None, values[:20])
                self.assertRegex(outcome.err, re.escape(f"{few} in {path}, line {line}") + "[;\n]" if few else ".*")
            if few:
                advice = shlex.split(outcomes[0].err.split("load with ")[1].split(". To keep")[0])
                outcome = self.shardload("load", "--sink", "null", *advice, path, code=support.EXIT_REJECTS)
                self.assertIn(f"x.csv, line {line}, n: ", outcome.err)

    def test_an_impossible_date_among_dates_in_two_formats(self):
        values = [f"{n % 28 + 1:02}.12.2015" if n % 2 else f"2015-12-{n % 28 + 1:02}" for n in range(60)]
        values[40] = "31.02.2015"
        path = self.file("x.csv", "n;d\n" + "".join(f"1;{value}\n" for value in values))
        self.assertIn('d: 1 of 60 sampled values is no date (in a schema, type: date, format: ["%Y-%m-%d", '
                      f'"%d.%m.%Y"]), the first "31.02.2015" in {path}, line 42\n', self.shardload("inspect", path).err)

    def test_values_with_several_readings_are_shown_with_types_that_can_be_copied(self):
        rows = ((("1'234'567", "2'345", "5"), ["n=int:1'234,5"], 1234567),
                (("1 234 567", "12"), ["n=int:1 234,5"], 1234567),
                (("1,234", "2,345"), ["n=double:1234,5", "n=int:1,234.5"], 1.234),
                (("1.234", "2.345"), ["n=double", "n=int:1.234,5"], 1.234),
                (("01/02/2024", "03/04/2024"), ["n=date:%d/%m/%Y", "n=date:%m/%d/%Y"], day(2024, 2, 1)),
                (("31.12.24", "1.1.24"), ["n=date:%d.%m.%y"], day(2024, 12, 31)),
                (("1/15/24", "1/3/24"), ["n=date:%m/%d/%y"], day(2024, 1, 15)),
                (("31-Dec-99", "1-Jan-95"), ["n=date:%d-%b-%y"], day(1999, 12, 31)),
                (("007", "123"), [], "007"), (("030 123 456", "151 234 567"), [], "030 123 456"),
                (("1.2.3", "10.0.1"), [], "1.2.3"))
        for values, types, first in rows:
            path = self.file("x.csv", "n;t\n" + "".join(f"{value};a\n" for value in values))
            err = self.shardload("inspect", path).err
            second = self.file("y.csv", path.read_text("utf-8").replace("n;t", "u;n"))  # is named once
            self.assertEqual(self.shardload("inspect", path, second).err.count(" --types "), len(types))
            shown = [one for one in shlex.split(err.partition("declare the type:")[2]) if "=" in one]
            becomes = f"{first:%Y-%m-%d}" if isinstance(first, datetime.datetime) else first
            self.assertTrue(not types or re.search(rf"\(as {re.escape(str(becomes))}[;)]", err), err)
            self.assertEqual(sorted(shown), types, err)
            words = ("--types", types[0]) if types else ()
            self.assertEqual(self.documents(*words, path)[0][0]["n"], first, values)

    def test_points_that_may_separate_groups_of_digits(self):
        """Only where semicolons separate fields, and no number has a decimal point for certain."""
        for text in ("n;m\n1.234;2.5\n2.345;3.5\n", "n,m\n1.234,2\n2.345,3\n", "n;m\n1.234;2\n0.345;3\n",
                     "n;m\n1.234;2\n1000.345;3\n"):
            self.assertEqual(self.documents(self.file("x.csv", text))[0][0]["n"], 1.234, text)

    def test_thousands_beside_commas_with_three_decimals(self):
        """1,500 or 1.234,500 in the first record hid the decimal commas: between tabs, 12.001 was a double."""
        for price in ("1,500", "1.234,500", "0,250"):
            for values, read in ((["12.001", "5"], ["12.001", "5"]), (["12.000", "505"], [12000, 505]),
                                 (["505", "1.234.567"], [505, 1234567]),
                                 (["1.234.567", "1200"], ["1.234.567", "1200"])):
                for line in "{}\t{}\n", "{}|{}\n", '{},"{}"\n':
                    text = "".join(line.format(*row) for row in [("n", "p"), *zip(values, (price, "2,75"))])
                    self.assertEqual([one["n"] for one in self.documents(self.file("x.txt", text))[0]], read, text)

    def test_thousands_in_text_without_semicolons(self):
        """Exports between tabs have them too: 12.500 beside 5 is not stored as twelve and a half."""
        for values, types in ((["1.234", "12.500", "500", "-17"], "text"), (["1.234", "12.500", "5000"], "double"),
                              (["1.234", "12.500", "3.000"], "double"), (["1.234", "12.5", "500"], "double"),
                              (["1.234", "12.505", "500"], "double"), (["0.250", "12.500", "500"], "double")):
            for delimiter in "\t,":
                table = self.file("n.txt", "".join(f"a{delimiter}{value}\n" for value in ("n", *values)))
                for more in ([], [self.file("m.txt", f"a{delimiter}price\nx{delimiter}2.75\n")]):
                    inspected = self.shardload("inspect", table, *more)
                    self.assertRegex(inspected.out, r"\bn +" + ("double" if more else types))
                    self.assertEqual("'n=int:1.234,5' (as 1234) or --types 'n=double'" in inspected.err,
                                     types == "text" and not more)

    def test_numbers_that_may_be_codes(self):
        """Chapters 3.1 and 3.10 became one number; they are text unless declared. Not so numbers with a fixed number
        of digits, or without zeros at the end."""
        for values, types in ((["3.1", "3.9", "3.10"], "text"), (["3.10", "3.20", "4.25"], "double"),
                              (["3.1", "3.25", "4.0"], "double"), (["1.5", "2.505"], "double"),
                              (["3.12", "9.90", "12.3", "0.450", "105"], "double"),
                              (["3.1", "8.10", "8.5417"], "double")):
            path = self.file("k.csv", "k,n\n" + "".join(f"{value},1\n" for value in values))
            inspected = self.shardload("inspect", path)
            self.assertRegex(inspected.out, r"\bk +" + types)
            self.assertEqual("--types 'k=double' (as 3.1)" in inspected.err, types == "text")
        self.assertEqual(self.documents("--types", "k=double", self.file("k.csv", "k,n\n3.1,1\n3.10,1\n"))[0],
                         [{"k": 3.1, "n": 1}] * 2)

    def test_the_order_of_files_does_not_change_their_numbers(self):
        """12.250 was stored as 12.25, 12250 or text, whichever file came first."""
        for first, second, third in (("1.2345", "1.500", "1,5"), ("1,234.50", "12.250", "1,5"),
                                     ("2,345.75", "2,750", "1,5")):
            texts = f'id,v\n1,"{first}"\n', f"id;v;a\n2;{second};x\n", f"id;v;b\n3;{third};y\n"
            files = [self.file(f"{number}.csv", text) for number, text in enumerate(texts)]
            found = [sorted((one["id"], one["v"]) for one in self.documents(*order)[0])
                     for order in itertools.permutations(files)]
            self.assertEqual(found, found[:1] * 6)
            self.assertEqual({type(value) for _, value in found[0]}, {float})

    def test_groups_of_digits_beside_a_decimal_comma(self):
        """A schema of January has 1234,5; in February there are amounts above a thousand."""
        rows = "n;x\n1.100,50;1\n2'200,5;1\n3 300,5;1\n1234,5;1\n4.400;1\n"
        documents, work = self.documents("--types", "n=double:1234,5", self.file("n.csv", rows),
                                         code=support.EXIT_REJECTS)
        self.assertEqual([one["n"] for one in documents], [1100.5, 2200.5, 3300.5, 1234.5])
        self.assertIn("4.400", support.reject_rows(work)[0]["reason"])

    def test_a_minus_at_the_end(self):
        """SAP writes 4.324,35- for a negative amount: it was text, and a reject of each type of numbers."""
        rows = "nr;a;b;c;n\n1;4.324,35-;1.50-;20,00 ;7-\n2;6,00;2,250.25;3,00-;8\n"
        documents, _ = self.documents("--trim", "--types", "n=int:1234,5", self.file("sap.csv", rows))
        self.assertEqual([[one[k] for k in "abcn"] for one in documents],
                         [[-4324.35, -1.5, 20, -7], [6, 2250.25, -3, 8]])
        inspected = self.shardload("inspect", self.file("sap.csv", rows))
        self.assertIn("""make 1 column text: c. With --trim""", inspected.err)
        self.assertIn("\"7-\": --types 'n=int:1234,5' (as -7)", inspected.err)

    def test_advised_types_can_be_given(self):
        """A decimal comma that no value has was advised for -0; a long name was cut, and a tab was \\x09."""
        path = self.file("z.csv", "eur;n\n" + "1.234,50;-0\n3,10;1\n" * 20)
        self.assertIn("\"-0\": --types 'n=double' (as -0)\n", self.shardload("inspect", path).err)
        for name, advice in ("x" * 330, "declared types."), ("a\tb", "--types 'a b=int'."):
            path = self.file("n.csv", f'id,"{name}"\n' + "1,2\n" * 30 + "2,bad\n")
            self.assertIn(f"load with {advice}", self.shardload("inspect", path).err)

    def test_types_that_are_given_several_times(self):
        path = self.file("x.csv", "n;d\n" + "1'234;31.12.24\n" * 3)
        documents, _ = self.documents("--types", "n=int:1'234,5", "--types", "d=date:%d.%m.%y", path)
        self.assertEqual(documents, [{"n": 1234, "d": day(2024, 12, 31)}] * 3)

    def test_a_bad_value_does_not_hide_decimal_commas(self):
        """12.500 is then text, as without the bad value."""
        rows = "price;n\nfree;12.500\n" + "2,75;1.250\n" * 30
        documents, _ = self.documents(self.file("commas.csv", rows))
        self.assertEqual(documents[:2], [{"price": "free", "n": "12.500"}, {"price": "2,75", "n": "1.250"}])

    def test_a_few_values_of_a_column_in_two_sets_of_columns(self):
        paths = [self.file("a.csv", "n,t\n" + "".join(f"{n},a\n" for n in range(50)) + "Total,a\n"),
                 self.file("b.csv", "n,t,u\n" + "".join(f"{n},a,b\n" for n in range(50)) + "Sum,a,b\n")]
        err = self.shardload("inspect", *paths).err
        self.assertIn(f'n: 2 of 102 sampled values are no int, the first "Total" in {paths[0]}, line 52', err)
        self.assertEqual(err.count("n: "), 1)

    def test_names_and_values_in_windows_1252(self):
        path = self.file("latin.csv", "Gr\xf6\xdfe;Preis\n1;\xfc\n2;5\n".encode("cp1252"))
        documents, _ = self.documents("--encoding", "latin-1", path)
        self.assertEqual(documents, [{"Gr\xf6\xdfe": 1, "Preis": "\xfc"}, {"Gr\xf6\xdfe": 2, "Preis": "5"}])
        for words in ((), ("--format", "delimited")):
            outcome = self.shardload("inspect", *words, path, code=support.EXIT_SOURCE)
            self.assertIn("column 1 of the header is not UTF-8; give --encoding: windows-1252 for \"Größe\", "
                          "windows-1250 for \"Größe\", windows-1251 for \"GrцЯe\"", outcome.text)
            self.assertNotIn("isd", outcome.text)

    def test_one_column_of_texts_below_its_name(self):
        """In a .csv file, if the name differs from all lines below: it then is no record."""
        for text, values in (("mail\r\na@x.de\r\nb@x.de\r\n", ["a@x.de", "b@x.de"]),
                             ("code\n01067\n\n20095", ["01067", "20095"])):
            path = self.file("one.csv", text)
            documents, _ = self.documents(path)
            self.assertEqual(documents, [{text.split()[0]: value} for value in values])
            self.assertIn("the first line names the column", self.shardload("inspect", path).out)
        for name, text in (("one.csv", "name\nAnn\nBob\n"), ("one.csv", "K1\nK2\nK3\n"), ("one.csv", "mail\na@x\n"),
                           ("one.txt", "mail\na@x\nb@x\n"), ("one.csv", "mail\na@x\nb|2\n")):
            path = self.file(name, text)
            outcome = self.shardload("inspect", path, code=support.EXIT_SOURCE)
            self.assertIn("For a single column give --header yes, or --columns NAME if its first line is a value",
                          outcome.err)
        documents, _ = self.documents("--columns", "key", self.file("one.txt", "K1\nK2\nK3\n"))
        self.assertEqual(documents, [{"key": "K1"}, {"key": "K2"}, {"key": "K3"}])

    def test_decimal_commas_in_columns_between_blanks(self):
        """If blanks divide also the line of names, which has no comma."""
        for text, first in (("Nr   Name      Saldo\n1    Bank      12,50\n2    Kasse A   -1.234,00\n",
                             {"Nr": 1, "Name": "Bank", "Saldo": 12.5}),
                            ("x y\n1,5 2,5\n3,5 4,5\n", {"x": 1.5, "y": 2.5}),
                            ("x y\n1,5 2\n3,5 4\n", {"x": 1.5, "y": 2}),
                            ("Messung A\n1,2\n3,4\n", {"column1": 1, "column2": 2}),
                            ("Export 2024\n1,5 kg\n2,7 kg\n", {"column1": 1, "column2": "5 kg"}),
                            ("An Port\n10.0.0.1,5 a\n10.0.0.2,6 b\n", {"column1": "10.0.0.1", "column2": "5 a"}),
                            ("Ort Datum\n2024-01-01,5 a\n2024-01-02,6 b\n",
                             {"column1": day(2024, 1, 1), "column2": "5 a"}),
                            ("von bis\n2024-01-01 10:00,5\n2024-01-02 10:00,6\n",
                             {"column1": day(2024, 1, 1, 10), "column2": 5})):
            documents, _ = self.documents(self.file("t.txt", text))
            self.assertEqual(documents[0], first)

    def test_text_in_a_declared_encoding(self):
        """A byte that the encoding does not define is a reject with its position."""
        rows = "имя;n\nеё;1\nКиїв;2\n"
        for encoding, last in (("koi8-u", "Київ"), ("windows-1251", "Київ")):
            path = self.file(f"{encoding}.csv", rows.encode(encoding))
            documents, _ = self.documents("--encoding", encoding, path)
            self.assertEqual(documents, [{"имя": "её", "n": 1}, {"имя": last, "n": 2}])
        for encoding in ("utf-8-sig", "utf-16"):  # the byte order mark says more than --encoding
            paths = [self.file("a.csv", rows.encode("koi8-r", "replace")), self.file("b.csv", rows.encode(encoding))]
            documents, _ = self.documents("--encoding", "koi8-r", *paths)
            self.assertCountEqual([document["имя"] for document in documents], ["её", "Ки?в", "её", "Київ"])
        path = self.file("bad.csv", rows.encode("cp1251") + b"a\x98;3\n")
        outcome = self.shardload("load", "--sink", "null", "--format", "delimited", "--encoding",
                                 "cp1251", path, code=support.EXIT_REJECTS)
        self.assertIn("byte 0x98 at offset 1 of the field \"a\\x98\" is undefined in cp1251", outcome.err)
        outcome = self.shardload("load", "--sink", "null", "--encoding", "utf-16", path, code=support.EXIT_USAGE)
        self.assertIn("iconv -f utf-16 -t UTF-8 FILE | shardload load ... -", outcome.err)

    def test_a_header_with_more_columns_than_most_lines(self):
        rows = "id,name,note\n" + "".join(f"{n},n{n}\n" for n in range(9)) + "9,n9,full\n"
        documents, _ = self.documents("--ragged", "pad", self.file("short.csv", rows))
        self.assertEqual((documents[0], documents[9]), ({"id": 0, "name": "n0"},
                                                        {"id": 9, "name": "n9", "note": "full"}))

    def test_pieces_of_one_file(self):
        """Without its header, a piece would lose a record as names of columns."""
        rows = [f"a{n},b{n},c{n}\n" for n in range(40)]
        first = self.file("part-0.csv", "name,street,town\n" + "".join(rows[:20]))
        second = self.file("part-1.csv", "".join(rows[20:]))
        numbers = self.file("part-2.csv", "".join(f"{n},b{n},{n}\n" for n in range(40)))
        for other in (second, numbers):
            self.shardload("load", "--sink", "null", "--format", "delimited", first, other,
                           code=support.EXIT_SOURCE,
                           message=("are they pieces of one file", "cat FIRST SECOND | shardload load"))
        with_headers, _ = self.documents("--header", "yes", first, second)
        self.assertEqual(len(with_headers), 39)
        without, _ = self.documents("--header", "no", first, second)
        self.assertEqual(len(without), 41)
        joined = self.shardload("load", "--sink", "null", "--format", "delimited", "-",
                                stdin=first.read_bytes() + second.read_bytes())
        self.assertRegex(joined.text, r"records +40\n")

    def test_lines_that_are_replaced_or_skipped_are_compared(self):
        """A record of each piece without header was lost, and values of columns in another order were exchanged."""
        head, piece = self.file("p/1.csv", "id,name\n1,a\n2,b\n"), self.file("p/2.csv", "3,c\n4,d\n")
        other = self.file("name.csv", "name,id\na,1\n")
        capitals = self.file("capitals.csv", "\ufeff\"ID\", NAME\n5,e\n")
        schema = self.file("s.yaml", 'name: t\nheader: false\nskip_lines: 1\ndelimiter: ","\ncolumns:\n'
                                     "  - {name: id, type: int}\n  - {name: name, type: text}\n")
        named = ["--columns", "nr,person"]
        for words in (["--header", "yes", *named], ["--skip-lines", 1, *named], ["--skip-lines", 1, "--header", "no"],
                      ["--schema", schema]):
            archive = self.tar([head.read_text(), piece.read_text()])
            for sources in ([head, piece], [head.parent], [archive], [head, other]):
                self.shardload("load", "--sink", "null", *words, *sources,
                               code=support.EXIT_SOURCE if words[1] == "yes" else None,
                               message="the lines before the records differ: `id,name`")
            self.shardload("load", "--sink", "null", *words, head, capitals)
        self.shardload("load", "--sink", "null", *named, other,
                       message="the first line is loaded as a record, as --columns is given")

    def test_pieces_of_one_file_beside_other_tables_and_in_archives(self):
        """Each text, a file or an entry, is compared with all others, not only with the first one."""
        rows = [f"a{n},b{n},c{n}\n" for n in range(40)]
        pieces = ["name,street,town\n" + "".join(rows[:20]), "".join(rows[20:])]
        others = ["name,street,town,value\na,b,c,2\n", "name,street,town,zip\na,x,y,2\n"]
        for name, text in zip(("1", "2", "8", "9"), (others[0], *pieces, others[1])):
            self.file(f"f/{name}.csv", text)
        for entries, words in (([], ["f"]), ([others[0], *pieces], []), (pieces, ["--types", "text"]),
                               (pieces, ["f/1.csv"]), (pieces[:1], ["f/8.csv"])):
            archive = [self.tar(entries)] if entries else []
            outcome = self.shardload("load", "--sink", "null", "--format", "delimited", *archive, *words,
                                     code=support.EXIT_SOURCE, message="are they pieces of one file, with one header?")
        self.assertIn("unpack the archives, and load the files joined", outcome.err)
        self.assertEqual(len(self.documents("f", "--include", "[129].csv")[0]), 22)  # no pieces
        self.assertEqual(len(self.documents(self.tar([others[0], pieces[0], others[1]]))[0]), 22)

    def test_names_in_another_case(self):
        """They would be two fields."""
        texts = "Code,Land\nC1,AT\nC2,DE\n", "CODE,LAND\nC3,CH\n"
        paths = [self.file(f"{n}.csv", text) for n, text in enumerate(texts)]
        for words in ((), ("--header", "yes")):
            self.shardload("inspect", *words, *paths, code=support.EXIT_SOURCE,
                           message="0.csv has the names of these columns in another case, so they would be two fields: "
                                   "CODE (Code), LAND (Land). Name the columns as it does: by --columns, with "
                                   "--skip-lines 1 for the header")
        documents, _ = self.documents("--columns", "Code,Land", "--skip-lines", "1", *paths)
        self.assertEqual([document["Code"] for document in documents], ["C1", "C2", "C3"])
        documents, _ = self.documents(self.file("all.csv", "".join(texts)))     # CODE,LAND may be a record
        self.assertEqual(len(documents), 4)

    def test_pieces_with_a_schema(self):
        """A line that names no column of the schema is a record, never a header."""
        pieces = ["name,town\n" + "".join(f"a{n},b{n}\n" for n in range(9)), "c1,d1\nc2,d2\n"]
        for number, text in enumerate(pieces):
            self.file(f"f/{number}.csv", text)
        for columns, header, message in (
                ("name town", "", ""), ("name town", "header: true\n", "names no column of the schema"),
                ("town name", "", "names the columns in another order than the schema")):
            schema = self.file("s.yaml", f"name: s\nkind: records\n{header}columns:\n" + "".join(
                f"  - {{name: {column}}}\n" for column in columns.split()))
            for path in ("f", self.tar(pieces)):
                words = ("--format", "delimited", "--schema", schema, path)
                if message:
                    self.shardload("load", "--sink", "null", *words, code=support.EXIT_SOURCE, message=message)
                else:
                    documents, _ = self.documents(*words)
                    self.assertEqual(documents[-3:], [{"name": "a8", "town": "b8"}, {"name": "c1", "town": "d1"},
                                                      {"name": "c2", "town": "d2"}])

    def test_a_repeated_header_whose_names_fit_the_types(self):
        """Years as columns, with a schema: in joined files and in entries of an archive."""
        texts = ["land,2019,2020\nDE,10,20\nFR,30,40\n", "land,2019,2020\nIT,11,21\n"]
        schema = self.file("s.yaml", "name: s\ncolumns: [{name: land}, {name: '2019', type: int}, "
                           "{name: '2020', type: int}]\n")
        for path in self.file("joined.csv", "".join(texts)), self.tar(texts):
            documents, _ = self.documents("--schema", schema, path)
            self.assertEqual([one["land"] for one in documents], ["DE", "FR", "IT"])
        self.shardload("load", "--sink", "null", "--schema", schema,
                       self.file("o.csv", texts[0] + "land,2020,2019\nIT,21,11\n"),
                       code=support.EXIT_SOURCE, message="names of the header in another order")

    def test_types_text_loads_text(self):
        documents, work = self.documents("--types", "text", self.file("a.csv", "a,b\n1,-\n"))
        self.assertEqual(documents, [{"a": "1", "b": "-"}])
        self.assertNotIn("types", support.run_record(work))

    def test_a_column_whose_name_begins_with_text_is_declared_alone(self):
        documents, _ = self.documents("--types", "text_id=text", self.file("t.csv", "text_id,n\n1,2\n3,4\n"))
        self.assertEqual(documents, [{"text_id": "1", "n": 2}, {"text_id": "3", "n": 4}])

    def test_columns_of_one_name_have_one_type(self):
        self.file("f/1.csv", "a,b\n1,2\n")
        self.file("f/2.csv", "b,a\n3,007\n")      # the same columns in another order
        self.file("f/3.csv", "a,c\n5,6\n")        # other columns
        self.file("g/1.csv", "a,b,c\nx,1,2\n")    # more columns
        self.file("g/2.csv", "a,b\n7,8\n")
        documents, _ = self.documents("g/1.csv", "g/2.csv")
        self.assertEqual(documents, [{"a": "x", "b": 1, "c": 2}, {"a": "7", "b": 8}])
        documents, _ = self.documents("f/1.csv", "f/2.csv", "f/3.csv")
        self.assertEqual(documents, [{"a": "1", "b": 2}, {"b": 3, "a": "007"}, {"a": "5", "c": 6}])

    def test_the_middle_of_a_large_file_is_in_the_sample(self):
        row = "12345678,some words to fill the line\n"
        rows = [row] * (9 * MIB // len(row))
        half = len(rows) // 2
        rows[half:] = [line.replace("12345678", "00012345") for line in rows[half:]]
        _, work = self.documents(self.file("large.csv", "code,text\n" + "".join(rows)))
        self.assertEqual(self.types_of(work), [{"code": "text", "text": "text"}])

    def test_a_value_that_does_not_fit_is_a_reject_that_names_the_remedy(self):
        row = "12345678,2016-01-15,some words to fill the line\n"
        rows = [row] * (6 * MIB // len(row)) + ["00501,2016-01-15,x\n", "1,15.1.2016,y\n", row]
        text = "code,day,text\n" + "".join(rows)
        path = self.zipped("late.csv.gz", text)
        _, work = self.documents(path, code=support.EXIT_REJECTS)
        zip_code, other_day = support.reject_rows(work)
        self.assertEqual((zip_code["column"], other_day["column"]), ("code", "day"))
        self.assertEqual(zip_code["reason"],
                         '"00501" would be changed by the type int, which was inferred for the '
                         "column code: load all files again with --drop and --types 'code=text', or with a "
                         "--schema (inspect --write-schema)")
        self.assertIn('"15.1.2016" does not fit the type date, which was', other_day["reason"])
        self.assert_accounting(work, records=len(rows), rejectedByParser=2)
        for name, advice in (("the code", "--types 'the code=text', or with a"),
                             ("a=b", "--types 'a=b=text', or with a"), ("\"a,b\"", "a")):
            path = self.zipped("names.csv.gz", text.replace("code", name, 1))
            _, work = self.parse(path, code=support.EXIT_REJECTS)
            reason = support.reject_rows(work)[0]["reason"]
            self.assertIn(f"column {name.strip(chr(34))}: load all files again with --drop and {advice} --schema",
                          reason)

    def test_later_entries_of_an_archive(self):
        texts = ["a,b,d\n1,2,\n"] * 12
        texts[1], texts[10] = "b,d,a\n3,,004\n", "c,b,a,d\n007,5,8,\n"
        documents, work = self.documents(self.tar(texts))
        self.assertEqual(documents[:2], [{"a": "1", "b": 2}, {"b": 3, "a": "004"}])
        self.assertEqual(documents[10], {"c": "007", "b": 5, "a": "8"})
        self.assert_accounting(work, records=12, inserted=12)
        self.assertIn("10.csv: its columns that were not in the sample", (work / "shardload.log").read_text("utf-8"))

    def test_a_later_entry_of_an_archive_with_one_column_more(self):
        """Its other columns have the types that they have in the other entries."""
        texts = ["a,b,n\n" + f"1,{'x' * 1000},5\n" * 5000, "a,b,n,shop\n2,y,3,7\n"]
        documents, work = self.documents(self.tar(texts))
        self.assertEqual(documents[-1], {"a": 2, "b": "y", "n": 3, "shop": "7"})
        self.assertIn("1.csv: its columns that were not in the sample", (work / "shardload.log").read_text("utf-8"))

    def test_text_after_a_json_value(self):
        """It is a reject: a form's `"x","role":"admin"` adds no field to a record, and no _id that damages it."""
        def text(value):
            return '"' + value.replace('"', '""') + '"'

        good = ('{"a": [1, {}]}', "[]", '"x"', " 7 ", "null", "1.5", '{"$oid": "0123456789abcdef01234567"}')
        for more in ('"role":"admin"', '"n":7', '"_id":2', '"_id":"abc"', '"":1'):
            for value in good:
                self.parse("--types", "j=json", self.file("j.csv", f"n,j,k\n1,{text(value)},z\n"))
                for kind in ("json", "array") if value == "[]" else ("json",):
                    bad = f"{value},{more}"
                    path = self.file("j.csv", f"n,j,k\n1,[],z\n2,{text(bad)},z\n3,[],z\n")
                    with self.subTest(bad, kind=kind):
                        found, _ = self.dump_decoded("--types", f"j={kind}", path, code=support.EXIT_REJECTS)
                        self.assertEqual(found, [{"n": n, "j": [], "k": "z"} for n in (1, 3)])
                lines = [support.json.dumps({"n": n, "j": j}) + "\n" for n, j in enumerate(("{}", bad, "{}"))]
                path = self.file("j.json", "".join(lines))
                found, _ = self.dump_decoded("--types", "j=json", "--id-field", "n", path, code=support.EXIT_REJECTS)
                self.assertEqual(found, [{"j": {}}, {"j": {}}])

    def test_declared_elements_of_json_arrays(self):
        """[1,"x"] was stored as such in a column of arrays of dates."""
        for words, values, wrong, found in (
                ("date", '["2024-01-01", null]', '["x"]', [day(2024, 1, 1), None]), ("int", "[1,-3]", "[3.7]", [1, -3]),
                ("double", "[ 1 ,2.5e3]", "[1,{}]", [1.0, 2500.0]),
                ("text", "[[],[true,1.10]]", "['x']", [[], ["true", "1.10"]]),
                ("text", '"[""a"",""b""]"', '"[ISODate(""x"")]"', ["a", "b"]),
                ("text", r'["\u00e4\ud83d\ude00,\"]\n", 7]', '[ISODate("2024-01-01")]', ["ä😀,\"]\n", "7"])):
            path = self.file("j.tsv", f"id\tj\n1\t{values}\n2\t{wrong}\n")
            documents, _ = self.documents("--types", f"j=array:{words}", path, code=support.EXIT_REJECTS)
            self.assertEqual([(one["j"], [type(value) for value in one["j"]]) for one in documents],
                             [(found, [type(value) for value in found])])

    def test_nan_is_a_value_of_a_declared_double(self):
        path = self.file("n.csv", "k,v\na,1.5\nb,NaN\nc,NA\n")
        for words in ((), ("--types", "v=double"), ("--types", "v=decimal128")):
            self.assertEqual([str(one.get("v")).lower() for one in self.documents(*words, path)[0]],
                             ["1.5", "nan", "none"])

    def test_entries_with_lines_before_the_table(self):
        documents, work = self.documents(self.tar([
            "p,q,a,b\n0,0,1,x\n", "Title of " + "a" * 99 + "\n\np,q,a,b\n0,0,2,y\n",
            "p,q," + "c" * 99 + ",b\n0,0,3,z\n", "Title, too\n\n\np,q,a,b,c\n0,0,4,5,6\n"]))
        self.assertEqual(documents, [{"p": 0, "q": 0, **rest} for rest in (
            {"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"c" * 99: 3, "b": "z"}, {"a": 4, "b": "5", "c": 6})])
        self.assert_accounting(work, records=4, rejectedByParser=0)

    def test_an_assumed_header_is_shown(self):
        """It may be a record."""
        words = "load", "--sink", "null", self.file("f.csv", "Ann,Paris\nBob,Rome\n")
        self.assertIn("f.csv: the first line is assumed to be a header: `Ann,Paris`; if it is a record, give "
                      "--header no", self.shardload(*words).err)
        for given in (("--quiet",), ("--header", "yes"), ("--header", "no")):
            self.assertNotIn("assumed", self.shardload(*words, *given).err)

    def test_rows_without_values_are_blank_lines(self):
        """Spreadsheets write them after the table. NULLs, and missing words, are values."""
        for text, words, count in (("a;b;c\n1;2;3\n;;\n4;5;6\n;;\n", (), 2),
                                   ("a,b\n1,2\n,\n", ("--null-as", "null"), 2),
                                   ('a;b.c;d\n1;"x;y";3\n;;\n;;4\n', (), 2), ("a,b\n1,2\nNA,\n", (), 2),
                                   ("a;b\n1;\xe4\n;\n".encode("latin-1"), ("--encoding", "latin-1"), 1)):
            documents, work = self.documents(*words, self.file("x.csv", text))
            self.assertEqual(len(documents), count, text)
            self.assert_accounting(work, records=count, rejectedByParser=0)

    def test_lines_before_the_table_are_shown(self):
        """They may be records, in any file and any entry."""
        text = "name,n,m\nx,1,2\ny,3,4\n"
        self.file("f/1.csv", text)
        self.file("f/2.csv", "Ann,Bob\n" + text)
        for path in ("f", self.tar([text, "Ann,Bob\n" + text])):
            for types in ("auto", "text"):
                outcome = self.shardload("load", "--sink", "null", "--types", types, path)
                self.assertEqual(outcome.err.count("warning"), 1)
                self.assertRegex(outcome.err, r"(2|01).csv: 1 line before the table not loaded: `Ann,Bob")
        declared = self.shardload("load", "--sink", "null", "--skip-lines", "1", "f/2.csv")
        self.assertNotIn("warning", declared.err)
        path = self.file("t.csv", "wert\n12,5\n3,75\n")
        advice = "one column with decimal commas, give --delimiter ';' --header yes"
        self.assertIn(advice, self.shardload("inspect", path).err)
        documents, _ = self.documents("--delimiter", ";", "--header", "yes", path)
        self.assertEqual(documents, [{"wert": 12.5}, {"wert": 3.75}])
        self.assertNotIn(advice, self.shardload("inspect", self.file("t.csv", "title\nx,y\n1,2\n3,4\n")).err)
        advice = "the records, whose values may hold the delimiter (12,50): export them in quotes"
        for text, names in (("a,b\nx,1,50\ny,2,5\n", True), ("t\na,b\nx,1,50\ny,2,5\n", True),
                            ("a\nx,1,50\ny,2,5\n", False), ("a,b\n\nx,1,50\ny,2,5\n", False)):
            shown = self.shardload("inspect", self.file("t.csv", text)).err
            self.assertEqual((advice in shown, "before the table not loaded" in shown), (names, True), text)

    def test_repeated_names_are_said(self):
        """The second column of a name was renamed without a word."""
        outcome, _ = self.parse(self.file("r.csv", "ID;Wert;Einheit;Wert;Einheit\n1;2,5;kg;3,5;m\n2;4,5;kg;5,5;m\n"))
        self.assertIn("r.csv: a name occurs several times in the header: later columns are stored with a number, as "
                      "Wert_2", outcome.err)
        outcome, _ = self.parse(self.file("s.csv", "ID;Wert\n1;2,5\n2;4,5\n"))
        self.assertNotIn("several times", outcome.err)

    def test_a_load_without_header_says_so(self):
        """The first line may be the header, and would be a record."""
        path = self.file("h.csv", "geo\t2020 \t2021 \nDE\t1 p\t2\nFR\t: \t4 e\n")
        said = "h.csv: no header is found, so the columns are named column1, column2, ...; if the first line names"
        self.assertIn(said, self.shardload("load", "--sink", "null", path).err)
        for words in (["no"], ["yes"], ["no", "--columns", "a,b,c"]):
            self.assertNotIn(said, self.shardload("load", "--sink", "null", "--header", *words, path).err)
        documents, _ = self.documents("--header", "yes", path)
        self.assertEqual(documents[0], {"geo": "DE", "2020": "1 p", "2021": "2"})
        rows = "".join(f"|A{n}|{n}.03.2024|{n},50|\n" for n in range(10, 29))  # a list of SAP, below its title
        path = self.file("list.txt", f"List of 1.3.2024\n\n-------\n|Nr |Date|Amount|\n-------\n{rows}")
        advice = "if line 4 names them, give --skip-lines 3 --header yes\n"
        self.assertIn(advice, self.shardload("load", "--sink", "null", path, code=support.EXIT_REJECTS).err)
        documents, _ = self.documents("--trim", "--skip-lines", 3, "--header", "yes", path, code=support.EXIT_REJECTS)
        self.assertEqual(documents[0], {"Nr": "A10", "Date": day(2024, 3, 10), "Amount": 10.5})

    def test_lines_without_their_last_fields(self):
        """Programs that leave out empty fields at the end: the messages name the option that loads such lines."""
        rows = "".join(f"{n};x{n};1{(';y;z', ';y', '')[n % 3]}\n" for n in range(60))
        path = self.file("r.csv", "id;name;n;a;b\n" + rows)
        self.assertIn("if lines lack their last fields --ragged pad",
                      self.shardload("inspect", path, code=support.EXIT_SOURCE).err)
        self.assertIn("40 of 60 sampled lines have too few fields, and are rejected: if their last values are missing, "
                      "--ragged pad loads them", self.shardload("inspect", "--header", "yes", path).err)
        documents, _ = self.documents("--ragged", "pad", path)
        self.assertEqual((len(documents), documents[1:3]),
                         (60, [{"id": 1, "name": "x1", "n": 1, "a": "y"}, {"id": 2, "name": "x2", "n": 1}]))
        few = self.file("few.csv", "a;b\n" + "1;2\n" * 40 + "Total\n" * 3)
        self.assertNotIn("--ragged", self.shardload("inspect", few).err)

    def test_lines_are_shown_in_the_encoding_of_the_text(self):
        path = self.file("t.csv", "Ums\xe4tze 2024\n\nNr;Wert\n1;2\n3;4\n".encode("cp1252"))
        outcome = self.shardload("inspect", "--encoding", "cp1252", path)
        self.assertEqual(outcome.text.count("table not loaded: `Ums\u00e4tze 2024`"), 1)
        self.assertEqual(outcome.text.count("table skipped: `Ums\u00e4tze 2024`"), 1)
        path = self.file("u.csv", b"Gr\xf6\xdfe;Art\na;b\nc;d\n")
        self.shardload("inspect", "--encoding", "cp1252", path, message="to be a header: `Gr\u00f6\u00dfe;Art`")
        for name, text, stored in (("w.csv", "Nr;x\n1;2\n".encode("utf-16"), "UTF-16"), ("p.csv", b"N;x\n1;2\n", None)):
            text = self.shardload("inspect", self.file(name, text)).out.splitlines()[0]
            self.assertRegex(text, rf"\(\d+ B, {stored}\)$" if stored else r"\(\d+ B\)$")

    def test_a_line_that_names_the_delimiter_is_no_header(self):
        for mark, end, rows in (("", "\n", "2,5;3"), ("\ufeff", "\r\n", '2,5;"3"'),
                                ("\ufeff\ufeff", "\n", "2,5;3")):
            text = mark + end.join(("sep=;", "id;x", "1,5;2", rows, ""))
            path = self.file("s.csv", text.encode())
            documents, _ = self.documents(path)
            self.assertEqual(documents, [{"id": 1.5, "x": 2}, {"id": 2.5, "x": 3}])
            schema = self.scratch / "s.yaml"
            self.shardload("inspect", "--write-schema", schema, path)
            self.assertEqual(self.documents("--format", "delimited", "--schema", schema, path)[0], documents)
        documents, _ = self.documents(self.file("t.csv", "sep=;\n1;2.5\n3;4.5\n"))
        self.assertEqual(documents, [{"column1": 1, "column2": 2.5}, {"column1": 3, "column2": 4.5}])

    def test_byte_order_marks_of_entries_and_of_joined_files(self):
        """A mark before a header is no part of a record, wherever the header is."""
        mark, rows = "\ufeff", ["a,b\n1,x\n", "a,b\n2,y\n", "\n\na,b\n3,z\n", "4,w,1\n5,w,2\n"]
        documents, work = self.documents(self.tar([mark + text for text in rows[:3]]))
        self.assertEqual(documents, [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}])
        self.assert_accounting(work, records=3, rejectedByParser=0)
        documents, work = self.documents(self.tar([mark + rows[3]]))
        self.assertEqual(documents, [{"column1": 4, "column2": "w", "column3": 1},
                                     {"column1": 5, "column2": "w", "column3": 2}])
        self.assert_accounting(work, records=2, rejectedByParser=0)
        for end in ("", '5,"v"\n'):  # with and without quotes
            joined = self.file("j.csv", mark + rows[0] + end + mark + rows[1] + end)
            documents, _ = self.documents(joined)
            self.assertEqual([d["a"] for d in documents], [1, 5, 2, 5] if end else [1, 2])

    def test_standard_input_and_compressed_files_have_the_same_types(self):
        text = b"a,b\n1,x\n2,y\n"
        expected = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
        self.assertEqual(self.documents("-", stdin=text)[0], expected)
        self.assertEqual(self.documents(self.zipped("a.csv.gz", text))[0], expected)

    def test_dates_in_several_formats_are_listed(self):
        """The column is text; inspect, the load and the written schema say how to load dates."""
        path = self.file("d.csv", "n,day,made\n1,31.01.2015,\xfc\n2,2015-02-01,x\n3,1/31/2015,y\n".encode("latin-1"))
        declared = 'type: date, format: ["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y"]'
        words = path, "--encoding", "latin1"
        self.shardload("inspect", "--write-schema", "d.yaml", *words, message=f"text; for dates declare {declared}")
        outcome, _ = self.parse(*words)
        self.assertIn(f"dates of day have several formats, so they are loaded as text; to load dates, write a schema "
                      f"(inspect --write-schema FILE), and declare there {declared}", outcome.err)
        schema = (self.scratch / "d.yaml").read_text("utf-8")
        self.assertIn("encoding: \"latin1\"", schema)
        self.file("d.yaml", schema.replace(f", missing: []}}  # dates: {declared}", f", {declared}}}"))
        documents, _ = self.dump_decoded("--schema", self.scratch / "d.yaml", *words)
        self.assertEqual([one["day"].day for one in documents], [31, 1, 31])
        for dates, listed in ((("31.01.2015", "2015-02-01", "1/31/2015", "31-Jan-2015"),
                               '["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y", "%d-%b-%Y"]'),
                              (("31.01.2015", "2015-02-01", "1/2/2015", "31.01.15"),
                               '["%d.%m.%Y", "%Y-%m-%d", "%d/%m/%Y" or "%m/%d/%Y", "%d.%m.%y"]')):
            path = self.file("e.csv", "n,day\n" + "".join(f"{n},{date}\n" for n, date in enumerate(dates)))
            self.assertIn(f"dates declare type: date, format: {listed}\n", self.shardload("inspect", path).text)

    def test_formats_that_read_a_text_as_different_values_are_not_listed_together(self):
        for year, one, two, text in ((2024, "%d/%m/%Y", "%m/%d/%Y", "03/02/2001"),
                                     (24, "%d/%m/%y", "%m/%d/%y", "03/02/01")):
            rows = f"1,31/01/{year}\n2,05/02/{year}\n", f"3,01/31/{year}\n4,02/05/{year}\n"
            paths = [self.file(f"{k}.csv", "n,day\n" + text) for k, text in enumerate(rows)]
            declared = f'type: date, format: "{one}" or "{two}", but never both in one schema: {text} is another date'
            self.assertIn(declared, self.shardload("inspect", "--write-schema", "m.yaml", *paths).text)
            self.assertIn(declared, (self.scratch / "m.yaml").read_text("utf-8"))
            self.assertIn(declared, self.parse(*paths)[0].err)
        paths = self.file("de.csv", 'n;x\n1;1.000,50\n2;1.000\n'), self.file("en.csv", 'n;x\n3;1,000.50\n4;2.5\n')
        declared = 'type: double, format: "1.234,5" or "1,234.5", one of them in each schema: 1,234 is another number'
        self.assertIn(declared, self.shardload("inspect", "--write-schema", "m.yaml", *paths).text)
        self.assertIn(f"# numbers: {declared}", (self.scratch / "m.yaml").read_text("utf-8"))
        self.assertIn("the numbers of x have several formats", self.parse(*paths)[0].err)
        for codes in ("n;x\n1;1.000,50\n2;1.5\n3;x1\n", "n;x\n1;1,000\n2;1.000\n"):
            self.assertNotIn("several formats", self.parse(self.file("c.csv", codes))[0].err)
        schema = self.file("both.yaml", 'name: t\nheader: true\ncolumns: [{name: n, type: int}, {name: day, '
                                        'type: date, format: ["%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d"]}]\n')
        path = self.file("b.csv", "n,day\n1,31/01/2024\n2,05/02/2024\n3,01/31/2024\n4,03/03/2024\n5,2024/01/05\n")
        documents, work = self.dump_decoded("--schema", schema, path, code=support.EXIT_REJECTS)
        self.assertEqual([one["n"] for one in documents], [1, 3, 4, 5])
        reason, = (row["reason"] for row in support.reject_rows(work))
        self.assertIn('two formats of the column read "05/02/2024" as different dates', reason)

    def test_an_empty_field_among_quoted_ones(self):
        """If a column of quoted numbers or dates has "", this is no empty text beside NULL."""
        rows = ['"Nr";"Name";"Wert";"Datum"', '"0";"N0";"";""', '"1";"";"1,5";"02.03.2024"',
                '"2";"N2";"2,5";"31.03.2024"']
        types = {"Nr": "int", "Name": "text", "Wert": "double 1234,5", "Datum": "date %d.%m.%Y"}
        for more, records in (('"3";"N3";;', 4), (";;;", 3)):
            text = "\n".join([*rows, more, ""])
            _, work = self.documents(self.file("q.csv", text))
            self.assertEqual(self.types_of(work), [types])
            self.assert_accounting(work, records=records, blankLines=1 if records == 3 else 0)
        for text in ('"n";"a"\n"1";""\n"2";\n"3";"x"\n', 'n;a\n1;""\n2;\n3;7\n'):  # of PostgreSQL
            documents, _ = self.documents(self.file("p.csv", text))
            self.assertEqual(documents[:2], [{"n": 1, "a": ""}, {"n": 2}])

    def test_the_century_of_two_digits_is_named(self):
        """The value of the latest year is shown: it may be a date of birth in the last century."""
        paths = [self.file(f"{k}.csv", text) for k, text in enumerate((
            "n;born\n1;21.04.85\n2;30.12.61\n3;13.03.45\n", "n;born\n4;13.03.75\n"))]
        for path, advice in ((paths, '"30.12.61": --types \'born=date:%d.%m.%y\' (as 2061-12-30; '),
                             (paths[1:], '"13.03.75": --types \'born=date:%d.%m.%y\' (as 1975-03-13; ')):
            outcome, _ = self.parse(*path)
            self.assertIn(f"{advice}years 69 to 99 are 19xx, others 20xx)", outcome.err)

    def test_words_that_are_missing_only_in_some_columns(self):
        path = self.file("m.csv", "id,name,x,of\n1,NULL,NULL,a\n2,Bob,2.5,NA\n3,Al,NA,-\n")
        words = path, "--id-field", "id"
        outcome, _ = self.parse(*words)
        self.assertIn("NA, NULL: no value in columns of numbers, dates or flags, but a text in name, of. If it is no "
                      "value there either, give --null NA --null NULL\n", outcome.err)
        outcome, _ = self.parse(*words, "--null", "NA", "--null", "NULL")
        self.assertNotIn("--null", outcome.err)
        documents, _ = self.documents(*words, "--null", "NA", "--null", "NULL")
        self.assertEqual([sorted(one) for one in documents], [["of"], ["name", "x"], ["name", "of"]])
        self.assertNotIn("--null", self.parse(self.file("t.csv", "a,b\nNULL,1\nx,2\n"))[0].err)

    def test_a_title_before_a_table_of_texts(self):
        path = self.file("t.csv", "Customers of May\nname;city\nAnna;Ulm\nBert;Bonn\n")
        self.shardload("inspect", path, code=support.EXIT_SOURCE,
                       message="If a table of texts begins in line 2, give --skip-lines 1")
        self.assertEqual(self.documents("--skip-lines", 1, path)[0][0], {"name": "Anna", "city": "Ulm"})

    def test_ids_of_mongoexport(self):
        one, other = "5f0a00000000000000000001", "5f0a0000000000000000000A"
        path = self.file("o.csv", f"_id,of,code,bad\nObjectId({one}),ObjectId({other}),{one},ObjectId({one})\n"
                                  f"ObjectId({other}),,{other},ObjectId(17)\n")
        text = self.shardload("inspect", "--id-field", "_id", path).text
        for column, stored in (("_id", "objectid"), ("of", "objectid"), ("code", "text"), ("bad", "text")):
            self.assertRegex(text, rf"\n +{column} +{stored}\n")
        self.written_schema(path, "--id-field", "_id")

    def test_a_record_like_the_header_is_not_dropped(self):
        """Only a line that equals the header is a repeated header."""
        rows = "".join(f"name{i},{i}\n" for i in range(60000))
        text = "name,n\n" + rows * 6 + "name,unknown\nname,n\nx,1\n"
        _, work = self.documents(self.zipped("r.csv.gz", text), code=support.EXIT_REJECTS)
        self.assert_accounting(work, repeatedHeaders=1, rejectedByParser=1)
        schema = self.file("h.yaml", "name: t\ncolumns: [{name: State}, {name: n, type: int}]\n")
        _, work = self.parse("--schema", schema, self.file("h.csv", "state,n\nok,1\nSTATE,x\nstate,N\n"),
                             code=support.EXIT_REJECTS)
        self.assert_accounting(work, repeatedHeaders=1, rejectedByParser=1)

    def test_a_header_in_another_order_ends_the_load(self):
        """Else the records of the second of two joined files would be stored in the wrong columns."""
        rows = "Anna;Ulm;rot\n" * 5000
        plain, quoted = "kunde;ort;farbe\n", '"kunde";"ort";"farbe"\n'
        for first, second, code in ((plain, "farbe;kunde;ort\n", 3), (plain, '"ort";"farbe";"kunde"\n', 3),
                                    (quoted, "farbe;kunde;ort\n", 3), (plain, "\ufefffarbe;kunde;ort\r\n", 3),
                                    (plain, quoted, 0), (quoted, plain, 0), (plain, "farbe;kunde;rot\n", 0),
                                    (plain, "ort;ort;kundenr\n", 0)):
            text = first + rows + second + "rot;Anna;Ulm\n"
            for words in (("-",), (self.file("j.csv", text),)):
                outcome, work = self.parse(*words, stdin=text.encode(), code=code)
                if code:
                    self.assertRegex(outcome.err, "line 5002, byte [0-9]+: the line has the names of the header in "
                                     "another order, so the records .* load the files that were joined here one by one")
                else:
                    repeated = second in (plain, quoted)
                    self.assert_accounting(work, records=5002 - repeated, repeatedHeaders=int(repeated))
        path = self.file("r.csv", "from,to\nx,y\nto,from\n")  # a record, after all
        self.shardload("inspect", path, code=support.EXIT_SOURCE, message="has `header: false` and `skip_lines: 1`")
        schema = self.file("r.yaml", "name: r\nheader: false\nskip_lines: 1\ncolumns: [{name: from}, {name: to}]\n")
        documents, _ = self.documents("--format", "delimited", "--schema", schema, path)
        self.assertEqual(documents, [{"from": "x", "to": "y"}, {"from": "to", "to": "from"}])

    def written_schema(self, path, *words):
        """Writes a schema, with which the file has the same documents. Returns (schema, work directory)."""
        schema = path.with_suffix(".yaml")
        self.shardload("inspect", *words, "--write-schema", schema, path)
        inferred, _ = self.dump("--format", "delimited", *words, path)
        declared, work = self.dump("--format", "delimited", "--schema", schema, path)
        self.assertEqual(inferred, declared)
        return schema, work

    def test_a_written_schema_gives_the_same_documents(self):
        text = ('"a ""b""\t: #",x,day,at,on,none,n\n'
                "1,1.5,31/1/2016,2016-01-15T10:37:31Z,TRUE,-,9\n00,2,1/2/2016,NA,FALSE,,-\n")
        path = self.file("s.csv", text.replace('"a ""b""\t: #"', "a: {x} #\u00b0"))
        schema, _ = self.written_schema(path)
        self.assertIn("# no values in the sample", schema.read_text("utf-8"))
        outcome = self.shardload("inspect", "--types", "text", "--write-schema", schema, path, code=support.EXIT_USAGE)
        self.assertIn("--types text", outcome.err)

    def test_a_written_schema_reads_as_the_options_that_wrote_it(self):
        """It refused what --types loads, a header with a line end in quotes, and words with quotes."""
        numbers = "007.50,12345678901234567890"
        for types, text in (("ts=datetime,n=decimal,x=double", f"ts,n,x\n2024-01-01 10:00:00.123456,{numbers}\n"),
                            ("", 'id,"a\nb",c\n1,2,3\n'), ("", '"a\nb",c\n1,2\n'), ("", "Id,ID\n1,x\n2,y\n"),
                            ("f=flag:J\"a:N'", "id,f\n1,J\"a\n2,N'\n"), ("f=flag:Ja:", "id,f\n1,Ja\n2,\n"),
                            ("--columns", "id,amt\n1,2\n2,3\n")):
            words = ("--columns", "id,amount", "--header", "yes") if types == "--columns" else ("--types", types)
            path = self.file("t.csv", text)
            words = words if types else ()
            self.shardload("inspect", *words, "--write-schema", "w.yaml", path)
            written, _ = self.documents("--schema", self.scratch / "w.yaml", path)
            self.assertEqual(written, self.documents(*words, path)[0])
            (self.scratch / "w.yaml").unlink()

    def test_a_column_has_its_own_choice(self):
        """`lossless: false` and `trim: false` of a column were ignored beside `true` for all."""
        schema = self.file("s.yaml", "{name: t, lossless: true, trim: true, columns: [{name: a, type: int, "
                                     "lossless: false}, {name: b, trim: false}, {name: c}]}\n")
        self.assertEqual(self.documents("--schema", schema, self.file("t.csv", "a,b,c\n007, x , y \n"))[0],
                         [{"a": 7, "b": " x ", "c": "y"}])

    def test_a_written_schema_has_the_columns_of_all_files(self):
        """Files of one table may have other columns; the commands of the README work for them."""
        paths = self.file("1.csv", "id;day;x\n1;2.1.2020;1,5\n"), self.file("2.csv", "vat;id;day\n9;2;31.1.2020\n")
        self.shardload("inspect", "--write-schema", "s.yaml", *paths)
        inferred, _ = self.dump(*paths)
        declared, _ = self.dump("--format", "delimited", "--schema", self.scratch / "s.yaml", *paths)
        self.assertEqual(sorted(inferred), sorted(declared))
        self.assertEqual((self.scratch / "s.yaml").read_text("utf-8").count("name: \"id\""), 1)
        self.assertIn("3 numbers, 1 date (of 2", self.shardload("inspect", *paths).text)
        for other, words in (("id,z\n1,2\n", "its delimiter, quotes or lines before the table differ"),
                             ("id\tb\n1\tC:\\new\n2\t\\N\n", "its dialect differs from that of the first source"),
                             ("3;4\n5;6\n", "its columns differ from those of the first source, and without a "
                                             "header nothing names them: give --columns")):
            path = self.file("3.csv", other)
            text = "id\ta\n1\tC:\\new\n2\ty\n" if "\t" in other else "3;4;1\n5;6;1\n"
            first = paths[0] if "," in other else self.file("4.csv", text)
            outcome = self.shardload("inspect", "--write-schema", "t.yaml", first, path, code=support.EXIT_USAGE)
            self.assertIn(f"--write-schema: {path}: {words}", outcome.err)

    def test_a_written_schema_has_the_options_of_the_source(self):
        """With it, the file has the same documents without the options. Other options contradict it."""
        later = "".join(f"{n},x,y\n" for n in range(20000)) + '7,"a\nb",z\n'  # a line end after the first 64 KiB
        for text, words, other in (("id,a\n1,\xe9\n2,y\n".encode("latin-1"), ["--encoding", "cp1252"], "koi8-r"),
                                   ("id,a\n1,x\n2,y\n", ["--id-field", "id"], "a"),
                                   ("id,a\n1,x\n2,y\n", ["--id-field", "a,id"], "id"),
                                   ('id,a\n1,"x\\"y"\n2,"z,z"\n', ["--escape", "backslash"], "^"),
                                   ("id,a,b\n1,x,y\n2,z\n3,u,v\n", ["--ragged", "pad"], "reject"),
                                   ("id,a,b\n1,?,y\n2,z,\n3,u,?\n", ["--null", "?"], "-"),
                                   ("id,a,b\n1,x,\n2,,y\n", ["--null-as", "null"], "missing"),
                                   ("id,a,b\n" + later, ["--quoted-lines", "yes"], "auto")):
            with self.subTest(words):
                path = self.file("o.csv", text)
                schema, _ = self.written_schema(path, *words)
                loaded, _ = self.dump("--schema", schema, path)
                if words[0] != "--quoted-lines":  # the sample shows these line ends
                    self.assertNotEqual(self.dump("--format", "delimited", path, code=None)[0], loaded)
                outcome, _ = self.parse("--schema", schema, words[0], other, path, code=support.EXIT_USAGE)
                self.assertRegex(outcome.err, rf"{words[0]} .*the schema \S*o.yaml")
                if words[0] == "--encoding":
                    self.parse("--schema", schema, "--encoding", "Latin-1", path)
        broken = self.file("b.yaml", "name: t\nragged: maybe\ncolumns: [{name: a}]\n")
        outcome, _ = self.parse("--schema", broken, path, code=support.EXIT_USAGE)
        self.assertIn('b.yaml: ragged: "maybe" is not one of reject|pad', outcome.err)

    def test_a_written_schema_of_an_odd_table(self):
        """Lines before it, no header, blanks as delimiter, repeated names."""
        for name, text in (("before", "Title\nof it\n\n1;x;007\n2;y;008\n"),
                           ("blanks", "id    name  n\n1     a b   5\n2     c     7\n"),
                           ("repeated", "a,,a\n1,2,3\n"), ("nested", "a.b,a.c[0],x\n1,2,3\n")):
            with self.subTest(name):
                _, work = self.written_schema(self.file(f"{name}.txt", text))
                self.assert_accounting(work, rejectedByParser=0)

    def test_a_written_schema_trims_as_the_inspection_did(self):
        self.written_schema(self.file("t.csv", "a,b\n 1 , x \n2,y\n"), "--trim")

    WORDS = ["-", "NA", "N/A", "null", "NULL", "NaN", "x", "true", "True", "FALSE", "false", "yes",
             "1E5", "1.0E5", "0x1F", "+49", "007", "-0", "-0.0", "12%", "$5", "1.5.2", "10:37",
             "5.", ".5", "9007199254740993", "9223372036854775808", "0.10000000000000001", "inf",
             "1_0", "2016-02-30", "2016-01-15T10:37:31Z", "2016-01-15 10:37:31.1234", "13/12/2015",
             "\u221e", "12/13/2015", "1/2/2015", "15-Jan-2016 10:37:31.084", "20150101",
             "9.019607543945313", "6.6666669845581055", "1e400", "-1.50", " 5", "1 000",
             "1453456251084", "31.12.2015"]

    def assert_same(self, text, stored):
        """The stored value is that of the text, by Python's own conversions."""
        kind = type(stored)
        if kind not in (str, type(None)) and set(text) <= set("-0123456789., "):  # 1.234,5 and 1 000
            comma = text.rfind(",") > text.rfind(".") and text.count(",") == 1
            text = text.replace(" ", "").replace("." if comma else ",", "").replace(",", ".")
        if stored is None:
            self.assertIn(text, ("", "-", "NA", "N/A", "null", "NULL", "NaN"))
        elif kind is str:
            self.assertEqual(stored, text)
        elif kind is support.bson.Decimal128:
            self.assertEqual(str(stored.to_decimal().normalize()), str(decimal.Decimal(text).normalize()))
        elif kind is bool:
            self.assertEqual(str(stored).lower(), text.lower())
        elif kind in (int, support.bson.int64.Int64):
            self.assertEqual(str(int(stored)), text)
        elif kind is float and stored != stored:
            self.assertEqual(text, "NaN")
        elif kind is float:
            self.assertEqual(float(text.replace("\u221e", "inf")), stored)
            digits = text.lstrip("-").replace(".", "").lower().split("e")[0].strip("0")
            shown = repr(stored).lstrip("-").replace(".", "").lower().split("e")[0].strip("0")
            self.assertTrue(digits == shown or not digits.isdigit() or
                            (len(digits) >= 16 and digits[:15] == shown[:15] and
                             len(digits) == len(shown)), (text, stored))
        else:
            forms = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%b-%Y %H:%M:%S.%f"]
            instants = []
            for form in forms:
                try:
                    instant = datetime.datetime.strptime(text, form)
                except ValueError:
                    continue
                instants.append(instant if instant.tzinfo else instant.replace(tzinfo=datetime.timezone.utc))
            self.assertIn(stored, instants, text)

    def test_no_value_of_any_table_is_changed(self):
        """Tables of tricky values: each column from a few of them, so that all types occur."""
        values = random.Random(7)
        typed = 0
        for number in range(30):
            few = [values.sample(self.WORDS, values.randint(1, 3)) for _ in range(60)]
            rows = [[values.choice(words) for words in few] for _ in range(values.randint(3, 40))]
            names = [f"name{i}" for i in range(60)]
            text = "\n".join(";".join(row) for row in [names, *rows]) + "\n"
            documents, work = self.documents("--header", "yes", self.file(f"r{number}.csv", text))
            self.assertEqual(len(documents), len(rows))
            self.assert_accounting(work, rejectedByParser=0)
            for document, row in zip(documents, rows, strict=True):
                for name, value in zip(names, row, strict=True):
                    self.assert_same(value, document.get(name))
            typed += sum(kind not in ("text", "empty") for kind in self.types_of(work)[0].values())
        self.assertGreater(typed, 300)

    def test_a_sensor_log(self):
        path = support.sample("obd", "torque_23col_2014.csv")
        documents, work = self.documents(path)
        self.assertIn("12 numbers, 1 date, 10 empty", (work / "shardload.log").read_text("utf-8"))
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        names = [name.strip() for name in rows[0]]
        for document, row in zip(documents, rows[1:], strict=True):
            for name, value in zip(names, row, strict=True):
                stored = document.get(name)
                if value == "-":
                    self.assertIsNone(stored)
                elif name == "Device Time":
                    form = "%d-%b-%Y %H:%M:%S.%f%z"
                    self.assertEqual(stored, datetime.datetime.strptime(value + "+0000", form))
                else:
                    self.assertIsInstance(stored, float)
                    self.assertEqual(stored, float(value))


class AsMongoimport(support.Case):
    """Arrays by index, types in the header, a schema with an _id."""

    def documents_of(self, text, *words, code=support.EXIT_OK):
        raw, _ = self.dump("--format", "delimited", *words, self.file("t.csv", text), code=code)
        return [support.bson.decode(one) for one in raw]

    def without_ids(self, text, *words):
        return [{key: value for key, value in one.items() if key != "_id"} for one in self.documents_of(text, *words)]

    def test_indices_after_a_dot_are_elements_of_arrays(self):
        text = "n,tags.0,tags.1,b.list.0.x,b.list.1.x\n5,x,z,1,2\n6,y,w,3,4\n"
        self.assertEqual(self.without_ids(text),
                         [{"n": 5, "tags": ["x", "z"], "b": {"list": [{"x": 1}, {"x": 2}]}},
                          {"n": 6, "tags": ["y", "w"], "b": {"list": [{"x": 3}, {"x": 4}]}}])

    def test_elements_of_an_array_have_one_type(self):
        """Documents held the postcodes 50667 and "01067" in one array. A declared type counts for all elements."""
        first, second = "n,p.0.plz,p.1.plz\n5,50667,01067\n", "n,p.0.plz,p.1.plz,p.2.plz\n5,1,2,3\n"
        for words, texts, plz in (((), [first], ["50667", "01067"]), ((), [second, first], ["1", "2", "3"]),
                                  (("--types", "p.0.plz=text"), [second], ["1", "2", "3"]),
                                  ((), [first.replace("p.0", "p[0]").replace("p.1", "p[1]")], ["50667", "01067"])):
            raw, _ = self.dump("-j", 1, *words, *(self.file(f"{n}.csv", text) for n, text in enumerate(texts)))
            self.assertEqual([one["plz"] for one in support.bson.decode(raw[0])["p"]], plz)

    def test_numbers_in_names_are_no_indices_without_a_first_element(self):
        self.assertEqual(self.without_ids("v3.5,a.b\nx,1\ny,2\n"),
                         [{"v3_5": "x", "a": {"b": 1}}, {"v3_5": "y", "a": {"b": 2}}])

    def test_types_in_the_header_are_refused(self):
        for header in ("n.int32(),zip.string()", "n,when.date(2006-01-02)", "n,b.binary(hex)"):
            path = self.file("t.csv", f"{header}\n5,01234\n6,04444\n")
            outcome, _ = self.parse("--format", "delimited", path, code=support.EXIT_SOURCE)
            self.assertIn("has a type in its name, as for mongoimport --columnsHaveTypes", outcome.err)
        self.assertEqual(len(self.documents_of("n,size (mm)\n5,1\n6,2\n")), 2)

    def test_a_schema_with_an_id(self):
        """inspect writes it, so it can be read."""
        path = self.file("t.csv", "_id,a\n5,x\n6,y\n")
        self.shardload("inspect", "--id-field", "_id", "--write-schema", "s.yaml", path)
        for words in ((), ("--id-field", "_id")):
            self.assertEqual(self.documents_of(path.read_text(), *words, "--schema", self.scratch / "s.yaml"),
                             [{"_id": 5, "a": "x"}, {"_id": 6, "a": "y"}])
        outcome, _ = self.parse(path, code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, r"\A\S+ \S+t.csv: a column is called _id: --id-field _id makes it the .*\n\Z")

    def test_declared_integers_words_and_binary_data(self):
        schema = self.file("s.yaml", """name: t
columns:
- {name: i, type: int64}
- {name: f, type: flag, "yes": ja, "no": nein}
- {name: h, type: hex}
- {name: b, type: base64}
- {name: c, type: base32}
""")
        words = "--schema", schema
        text = "i,f,h,b,c\n-5,ja,00ff,AQID,AEBAG===\n9223372036854775807,nein,,,ME53ENI=\n"
        found = self.without_ids(text, *words)
        self.assertEqual(found, [{"i": -5, "f": True, "h": b"\x00\xff", "b": b"\1\2\3", "c": b"\1\2\3"},
                                 {"i": (1 << 63) - 1, "f": False, "c": b"a;\xb25"}])
        self.assertIsInstance(found[0]["i"], support.bson.Int64)
        for wrong in ("1.5,ja,,,", "9223372036854775808,ja,,,", "1,yes,,,", "1,ja,0g,,", "1,ja,,AQI,", "1,ja,,,AEBAG==",
                      "1,ja,,,aebag===", "1,ja,,,A=EBAG==", "1,ja,,,AE=====A"):
            path = self.file("t.csv", f"i,f,h,b,c\n{wrong}\n1,ja,,,\n")
            outcome, _ = self.parse(*words, path, code=support.EXIT_REJECTS)
            self.assertRegex(outcome.text, r"rejected by the parser +1\n")
