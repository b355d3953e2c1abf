# SPDX-License-Identifier: Apache-2.0
"""docs/schemas.md, schemas/schema.json and the program agree: the schemas of the project, the examples
of the page, broken schemas, the keys of each mapping, every type."""
import json
import re

import json_schema
import support

SCHEMA = json.loads((support.TREE / "schemas/schema.json").read_text("utf-8"))
PAGE = (support.TREE / "docs/schemas.md").read_text("utf-8")

# Columns with one mistake each.
BROKEN = ("{}", "{name: a, type: float}", "{name: a, type: flag}", "{name: a, format: '%Y-%m-%d'}",
          "{name: a, type: date, format: '%d/%m'}", "{name: a, invalid: never}",
          "{name: a, invalid: missing, required: true}", "{name: a, point: at}",
          "{name: a, type: longitude}", "{name: a, type: latitude, point: at, short: b}",
          "{name: a, type: latitude, point: at, invalid: text}",
          "{name: a, missing: x}", "{name: a, lossless: maybe}", "{name: a, minimum: x}",
          "{name: a, type: int64, minimum: 0}", "{name: a, type: double, maximum: 1}", "{name: a, offset: true}",
          "{name: a, type: bool, no: n}", "{name: a, key: b}", "{name: a, aliases: [[]]}", "{name: ''}", "[a]", "a")


def fences(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


class Schemas(support.Case):
    def schema(self, *columns, head="name: s\ndelimiter: comma\nheader: true\n"):
        return self.file("s.yaml", head + "columns:\n" + "".join(f"  - {one}\n" for one in columns))

    def documents(self, text, *columns, code=support.EXIT_OK):
        return self.dump_decoded("--schema", self.schema(*columns), self.file("t.csv", text), code=code)

    def refused(self, schema, *words, text="a,b\n1,2\n", code=support.EXIT_USAGE):
        """The message when a file with this text is inspected with the schema."""
        return self.shardload("inspect", *words, "--schema", schema, self.file("t.csv", text), code=code).err

    def test_schemas_of_the_project(self):
        paths = sorted((support.TREE / "schemas").glob("*.yaml"))
        self.assertGreaterEqual(len(paths), 11)
        for path in paths:
            with self.subTest(path.name):
                self.assertTrue(json_schema.accepts(SCHEMA, path.read_text("utf-8")))

    def test_examples_of_the_page(self):
        texts, schemas, expected = fences("csv"), fences("yaml"), fences("json")
        self.assertEqual((len(texts), len(schemas), len(expected)), (5, 5, 5))
        for text, schema, lines in zip(texts, schemas, expected):
            with self.subTest(schema.splitlines()[0]):
                self.assertTrue(json_schema.accepts(SCHEMA, schema))
                found, _ = self.dump_decoded("--schema", self.file("s.yaml", schema), self.file("t.csv", text))
                self.assertEqual([support.bson.encode(one) for one in found],
                                 [support.bson.encode(support.bson.json_util.loads(line))
                                  for line in lines.splitlines()])

    def test_broken_schemas(self):
        for column in BROKEN:
            with self.subTest(column):
                schema = self.schema(column)
                self.assertFalse(json_schema.accepts(SCHEMA, schema.read_text()), "accepted by schema.json")
                self.assertIn("s.yaml:", self.refused(schema))

    def test_rejects_of_a_text_with_lines_before_the_table(self):
        """They are loaded by the schema of the text, which skips lines."""
        for header in ("a,b\n", ""):
            schema = self.schema("{name: a, type: int}", "{name: b}",
                                 head=f"name: s\nskip_lines: 2\nheader: {str(header != '').lower()}\n")
            _, work = self.dump("--schema", schema, self.file("t.csv", f"title\n\n{header}1,x\ny,z\n"),
                                code=support.EXIT_REJECTS)
            (rejected,) = (work / "rejected").iterdir()
            rejected.write_text(rejected.read_text().replace("y", "2"))
            self.assertEqual(self.dump_decoded("--schema", schema, rejected)[0], [{"a": 2, "b": "z"}])

    def test_a_file_may_lack_the_lines_that_the_schema_skips(self):
        """Columns are found by their names then, in any order; values are never read as a header."""
        schema = self.schema("{name: a}", "{name: b}", head="name: s\nskip_lines: 2\nheader: true\n")
        for text in ("title\n\na,b\n1,x\n", "title\nb,a\nx,1\n", "b,a\nx,1\n", "a,b\n1,x\n", "a\nB\nb,a\nx,1\n"):
            found, _ = self.dump_decoded("--schema", schema, self.file("t.csv", text))
            self.assertEqual(found, [{"a": "1", "b": "x"}], text)
        found, _ = self.dump_decoded("--schema", schema, self.file("t.csv", "a,b\n1,x\n2,a\n3,a\n"))
        self.assertEqual(found, [{"a": "1", "b": "x"}, {"a": "2", "b": "a"}, {"a": "3", "b": "a"}])
        for text in ("a,c\n\n1,x\n2,y\n", "title\n\n1,x\n", "b\nmore\n\nq,r\n1,x\n"):
            err = self.parse("--schema", schema, self.file("t.csv", text), code=support.EXIT_SOURCE)[0].err
            self.assertRegex(err, "names no column of the schema.*the header comes later, correct `skip_lines`")

    def test_columns_that_the_schema_does_not_have_are_named(self):
        schema = self.schema("{name: a}", "{name: wert, type: int}")
        for text, expected in (("a,Werte,b\nx,1,2\n", "warning: t.csv: not in the schema, loaded as text: Werte, b; in "
                                "the schema, but not in this text: wert. "),
                               ("a,b,WERT\nx,1,2\n", "t.csv: not in the schema, loaded as text: b\n"),
                               ("a\nx\n", "")):
            path = self.file("t.csv", text)
            err = self.shardload("load", "--sink", "null", "--schema", schema, path).err.replace(f"{path}", "t.csv")
            self.assertTrue(any(line.startswith(expected) for line in err.splitlines(True)), err)
            self.assertEqual("not in the schema" in err, expected != "", err)

    def test_keys_of_each_mapping(self):
        for name, text in (("table", "no-such-key: 1\n"),
                           ("column", "name: a\ncolumns:\n  - {no-such-key: 1}\n")):
            err = self.refused(self.file("s.yaml", text))
            listed = re.search(r"expected one of the keys (.*), found \"no-such-key\"", err)
            self.assertTrue(listed, err)
            keys = listed.group(1).split(", ")
            self.assertEqual(sorted(keys), sorted(SCHEMA["$defs"][name]["properties"]))
            for key in keys:
                self.assertRegex(PAGE, rf"(?m)^\| .*`{key}`", key)

    def test_every_type_is_known_to_the_program_and_on_the_page(self):
        err = self.refused(self.schema("{name: a, type: x}"))
        listed = re.search(r"expected a type: (.*), found", err).group(1)
        types = re.split(", | or ", listed)
        self.assertEqual(types, SCHEMA["$defs"]["column"]["properties"]["type"]["enum"])
        for name in types:
            self.assertRegex(PAGE, rf"(?m)^\| `{name}` \|", name)

    # Values

    def test_a_code_keeps_leading_zeros(self):
        found, _ = self.documents("c,d\n00501,x\n0,x\n10,x\n007,x\n-1,x\n1234567890,x\n0x1F,\n",
                                  "{name: c, type: code}", "{name: d}")
        self.assertEqual([one["c"] for one in found], ["00501", 0, 10, "007", "-1", 1234567890, "0x1F"])
        found, _ = self.documents("c,d\n00501,x\n0,x\n99,x\n", "{name: c, type: code, missing: [99]}", "{name: d}")
        self.assertEqual([one.get("c") for one in found], ["00501", 0, None])

    def check(self, kind, good, bad, more=""):
        """`good`: texts and their values; `bad`: texts that are rejected, or text with invalid."""
        rows = "".join(f"{text},x\n" for text in [*good, *bad])
        column = f"name: a, type: {kind}{more}"
        found, work = self.documents("a,b\n" + rows, f"{{{column}}}",
                                     code=support.EXIT_REJECTS if bad else support.EXIT_OK)
        self.assertEqual([one["a"] for one in found], list(good.values()))
        rejects = support.reject_rows(work) if bad else []
        self.assertEqual([int(row["line"]) for row in rejects], list(range(len(good) + 2, len(good) + 2 + len(bad))))
        for row, text in zip(rejects, bad):
            self.assertIn(f"\"{text}\" does not fit the type", row["reason"])
        found, _ = self.documents("a,b\n" + rows, f"{{{column}, invalid: text}}")
        self.assertEqual([one["a"] for one in found], [*good.values(), *bad])
        nested, _ = self.documents("a.x,b\n" + rows, f"{{{column.replace('a,', 'a.x,', 1)}, " "invalid: text}")
        self.assertEqual([one["a"]["x"] for one in nested], [*good.values(), *bad])

    def test_decimal128(self):
        texts = ("0", "-0.00", "19.90", "1E+3", "+5", ".5", "9" * 34, "1e-6176", "NaN", "Infinity", "-Infinity")
        self.check("decimal128", {text: support.bson.Decimal128(text) for text in texts},
                   ["nan", "inf", "x", "1x", "9" * 35, "0x1", "1E", "-", "1 2", "--1"])

    def test_exponents_of_decimal128(self):
        """An exponent is read from the text only, and has no overflow."""
        bad = ["1e", "1e+", "1e99999999999999999999", "1e4294967297", "0e99999999999999999999",
               "1e6145", "1e-6177", "1e 5", "e5", ".", "1.2.3"]
        self.check("decimal128", {text: support.bson.Decimal128(text)
                                  for text in ("1e0000000000000005", "1e-0003", "1.e2")}, bad)
        # the next record begins with digits, which sscanf would read as the exponent
        found, _ = self.documents("a,b\n7,1e\n19,5\n", "{name: a, type: int}",
                                  "{name: b, type: decimal128}", code=support.EXIT_REJECTS)
        self.assertEqual([one["a"] for one in found], [19])

    def test_object_id_and_uuid(self):
        text = "507f1f77bcf86cd799439011"
        identity = support.bson.ObjectId(text)
        self.check("objectid", {text: identity, text.upper(): identity, f"ObjectId({text})": identity},
                   [text[1:], text + "0", text[:-1] + "g", text[:-1] + "-", f"ObjectId({text[1:]})",
                    f"ObjectId({text}", f"bjectId({text})", "ObjectId()"])
        text = "c8edabc3-f738-4ca3-b68d-ab92a91478a3"
        binary = support.bson.Binary(bytes.fromhex(text.replace("-", "")), 4)
        digits = text.replace("-", "")
        self.check("uuid", {text: binary, text.upper(): binary, digits: binary},
                   [digits[1:], digits[1:] + "x", "{" + text[1:], text[:-1] + "x", text + "0",
                    text.replace("-", "_")])

    def test_epochs(self):
        import datetime

        def at(milliseconds):
            return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds))
        self.check("datetime", {"0": at(0), "-1": at(-1000), "1453456251.084": at(1453456251084),
                                "1453456251.5": at(1453456251500), "7.1230": at(7123),
                                "-1.25": at(-1250)},
                   ["1453456251084", "1.", "x", "1.2345", "1e3", "+1", "-", "99999999999999999999"],
                   ", format: epoch")
        self.check("datetime", {"0": at(0), "1453456251084": at(1453456251084), "-7": at(-7)},
                   ["1.5", "99999999999999999999", "x"], ", format: epoch-ms")

    def test_a_date_with_a_format_has_no_time(self):
        import datetime
        day = datetime.datetime(2016, 1, 22)
        self.check("date", {"0": datetime.datetime(1970, 1, 1), "1453420800": day,
                            "1453420800.000": day, "-86400": datetime.datetime(1969, 12, 31)},
                   ["1453456251", "1453420800.5", "-1", "86399"], ", format: epoch")
        self.check("date", {"1453420800000": day}, ["1453420800001", "1453456251084"], ", format: epoch-ms")
        self.check("date", {"22/01/2016 00:00": day}, ["22/01/2016 13:30"], ', format: "%d/%m/%Y %H:%M"')

    def test_a_tiny_number_does_not_become_0(self):
        tiny = ["1e-400", "-0.5e-999", "0." + "0" * 40 + "1e-300"]
        found, work = self.documents("a,b\n" + "".join(f"{one},x\n" for one in [*tiny, "1e400"]) +
                                     "0e-999,x\n0.0,x\n4e-320,x\n", "{name: a, type: double}",
                                     code=support.EXIT_REJECTS)
        self.assertEqual([one["a"] for one in found], [0.0, 0.0, 4e-320])
        reasons = [row["reason"] for row in support.reject_rows(work)]
        self.assertEqual(len(reasons), 4)
        for reason in reasons[:3]:
            self.assertIn("too close to 0 for a double", reason)
        self.assertIn("too large for a double", reasons[3])
        found, _ = self.documents("a,b\n" + "".join(f"{one},x\n" for one in tiny),
                                  "{name: a, type: double, invalid: text}")
        self.assertEqual([one["a"] for one in found], tiny)

    def test_a_column_with_a_tiny_number_is_decimal(self):
        found, _ = self.dump_decoded("--format", "delimited", self.file("t.csv", "a,b\n0.5,x\n1e-400,x\n2.5,x\n"))
        self.assertEqual([one["a"] for one in found],
                         [support.bson.Decimal128(text) for text in ("0.5", "1e-400", "2.5")])

    def test_iso_dates_by_offset_and_digits(self):
        import datetime
        noon = datetime.datetime(2016, 1, 15, 12, 30, 5)
        plain = {"2016-01-15T12:30:05": noon, "2016-01-15 12:30:05": noon,
                 "2016-01-15T12:30": noon.replace(second=0),
                 "2016-01-15T12:30:05.125": noon.replace(microsecond=125000),
                 "2016-01-15T12:30:05.1250000": noon.replace(microsecond=125000)}
        zoned = {text + zone: value for text, value in plain.items() for zone in ("Z", "+00:00")}
        zoned["2016-01-15T12:30:05-01:00"] = noon.replace(hour=13)
        wrong = ["2016-01-15T12:30:05.1234", "2016-02-30T12:30:05", "2016-01-15T24:30:05",
                 "2016-01-15T12:30:05.123456789"]
        self.check("datetime", zoned, [*plain, *(one + "Z" for one in wrong)], ", offset: true, lossless: true")
        self.check("datetime", plain, [*zoned, *wrong], ", offset: false, lossless: true")
        self.check("datetime", {**plain, **zoned}, wrong, ", lossless: true")

    def test_a_required_column_may_have_invalid_values_as_text(self):
        found, work = self.documents("a,b\nx,1\n,2\n5,3\n", "{name: a, type: int, required: true, "
                                     "invalid: text}", code=support.EXIT_REJECTS)
        self.assertEqual([one["a"] for one in found], ["x", 5])
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["3"])

    def test_invalid_values_that_are_not_text_are_rejected(self):
        _, work = self.documents(b"a,b\n\xff,1\n5,3\n", "{name: a, type: int, invalid: text}",
                                 code=support.EXIT_REJECTS)
        (row,) = support.reject_rows(work)
        self.assertIn("0xff", row["reason"])

    # Values that are left out

    def test_values_that_do_not_fit_are_left_out_and_counted_by_column(self):
        rows = ["1,2024-01-01,t", "x,2024-01-02,t", "3,never,t", "y,z,t", ",,t", "a,b,c", "-,5,t"]
        for last in ("{name: c}", "{name: c, short: n.c}"):
            found, work = self.documents("a,b,c\n" + "\n".join(rows) + "\n",
                                         "{name: a, type: int, invalid: missing, missing: ['-']}",
                                         "{name: b, type: date, invalid: missing}", last)
            self.assertEqual([(one.get("a"), "b" in one) for one in found],
                             [(1, True), (None, True), (3, False), (None, False), (None, False),
                              (None, False)])
            accounting = support.run_record(work)["accounting"]
            self.assertEqual((accounting["records"], accounting["rejectedByParser"]), (6, 0))
            self.assertEqual(accounting["repeatedHeaders"], 1)
            self.assertEqual(accounting["malformedFields"], 5)
            self.assertEqual({one["column"]: one["values"] for one in accounting["leftOutByColumn"]}, {"a": 2, "b": 3})
            self.assertRegex((work / "shardload.log").read_text(), r"left out in column b +3\n")

    def test_values_of_rejected_records_are_not_counted(self):
        found, work = self.documents(
            "a,b\nx,1\ny,z\n", "{name: a, type: int, invalid: missing}", "{name: b, type: int}",
            code=support.EXIT_REJECTS)
        self.assertEqual(found, [{"b": 1}])
        accounting = support.run_record(work)["accounting"]
        self.assertEqual((accounting["malformedFields"], accounting["rejectedByParser"]), (1, 1))
        self.assertEqual(accounting["leftOutByColumn"], [{"column": "a", "values": 1}])

    def test_text_that_is_not_utf8_is_left_out(self):
        found, work = self.documents(b"a,b\n\xff,1\n\xc3\xa9,2\nok,3\n",
                                     "{name: a, invalid: missing}", "{name: b, type: int}")
        self.assertEqual(found, [{"b": 1}, {"a": "é", "b": 2}, {"a": "ok", "b": 3}])
        self.assertEqual(support.run_record(work)["accounting"]["malformedFields"], 1)

    # Points

    LON, LAT = "{name: lon, type: longitude, point: at", "{name: lat, type: latitude, point: at"

    def test_points(self):
        text = "lon,x,lat\n180,1,-90\n-180,2,90\n0.5,3,\n,4,7\n1e1,5,2\n181,6,0\n0,7,90.5\nNaN,8,1\n"
        found, work = self.documents(text, self.LAT + "}", self.LON + "}", "{name: x, type: int}",
                                     code=support.EXIT_REJECTS)

        def point(*pair):
            return {"type": "Point", "coordinates": list(pair)}
        self.assertEqual(found, [{"at": point(180.0, -90.0), "x": 1}, {"at": point(-180.0, 90.0), "x": 2},
                                 {"x": 3}, {"x": 4}, {"at": point(10.0, 2.0), "x": 5}])
        self.assertEqual([row["column"] for row in support.reject_rows(work)], ["lon", "lat", "lon"])
        found, work = self.documents(text, self.LAT + ", invalid: missing}",
                                     self.LON + ", invalid: missing}", "{name: x, type: int}")
        self.assertEqual([one["x"] for one in found if "at" in one], [1, 2, 5])
        self.assertEqual({one["column"]: one["values"] for one in
                          support.run_record(work)["accounting"]["leftOutByColumn"]},
                         {"lon": 2, "lat": 1})
        nested = [one.replace("point: at", "point: place.at") for one in (self.LAT, self.LON)]
        found, _ = self.documents("lat,lon,name\n1,2,x\n", *(one + "}" for one in nested),
                                  "{name: name, short: place.name}")
        self.assertEqual(found, [{"place": {"at": point(2.0, 1.0), "name": "x"}}])

    def test_points_that_cannot_be_made(self):
        for header, *columns in (
                ("lon,b", self.LON + "}"),
                ("lon,lat,c", self.LON + "}", self.LAT + "}", "{name: c, short: at.type}"),
                ("lon,lat,c", self.LON + "}", self.LAT + "}", "{name: c, short: at}"),
                ("lon,lat,at.type", self.LON + "}", self.LAT + "}"),
                ("lon,lat,at", self.LON + "}", self.LAT + "}"),
                ("lon,lat,c", self.LON + "}", self.LAT + "}", "{name: c, short: 'at.coordinates[2]'}"),
                ("lon,lat", self.LON.replace("point: at", "point: a b") + "}",
                 self.LAT.replace("point: at", "point: a b") + "}"),
                ("lon,lat", self.LON.replace("point: at", "point: _id") + "}",
                 self.LAT.replace("point: at", "point: _id") + "}"),
                ("lon,lat,x,x.y", self.LON + "}", self.LAT + "}", "{name: x}", "{name: x.y}")):
            with self.subTest(header=header, columns=columns):
                self.assertIn("the point ", self.refused(
                    self.schema(*columns), text=f"{header}\n1,2,3,4\n", code=support.EXIT_SOURCE))
        two = self.schema(self.LON + "}", self.LON.replace("lon,", "lon2,") + "}", self.LAT + "}")
        self.assertIn("no other column has", self.refused(two, text="lon,lon2,lat\n1,2,3\n"))
        self.assertIn("cannot identify a document", self.refused(
            self.schema(self.LON + "}", self.LAT + "}"), "--id-field", "lon", text="lon,lat\n1,2\n"))
