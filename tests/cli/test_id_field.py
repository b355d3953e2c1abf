# SPDX-License-Identifier: Apache-2.0
"""--id-field without a server: columns and fields that become the _id."""

import bson

import archive_making as making
import support


ISD_FIXED = (b"010010999991988013112004+70933-008667FM-12+0009ENJA V0203181N0061100450"
             b"1CN0100001V5-00671-00801101231")


class IdField(support.Case):
    def load(self, name, text, *words, code=support.EXIT_OK):
        """Loads a text. Returns the documents and the reject rows."""
        raw, work = self.dump("-j", 1, *words, self.file(name, text), code=code)
        return [bson.decode(one) for one in raw], support.reject_rows(work)

    def refused(self, name, text, *words, code=support.EXIT_USAGE):
        return self.parse(*words, self.file(name, text), code=code)[0].err

    def test_a_column(self):
        found, _ = self.load("a.csv", "n,id,t\n1,7,x\n2,99999999999,y\n", "--id-field", "id")
        self.assertEqual([list(one.items()) for one in found],
                         [[("_id", 7), ("n", 1), ("t", "x")],
                          [("_id", 99999999999), ("n", 2), ("t", "y")]])

    def test_a_column_whose_name_ends_with_a_point(self):
        found, _ = self.load("a.csv", "Nr.,t\n7,x\n", "--id-field", "Nr.")
        self.assertEqual(found, [{"_id": 7, "t": "x"}])

    def test_texts_keep_their_zeros(self):
        found, _ = self.load("a.csv", "id,t\n00501,x\n501,y\n", "--id-field", "id")
        self.assertEqual([one["_id"] for one in found], ["00501", "501"])

    def test_several_columns_in_the_named_order(self):
        found, _ = self.load("a.csv", "a,b,c\n1,x,5\n2,y,6\n", "--id-field", "c,a")
        self.assertEqual([list(one["_id"].items()) for one in found], [[("c", 5), ("a", 1)], [("c", 6), ("a", 2)]])
        self.assertEqual(list(found[0]), ["_id", "b"])

    def test_a_record_without_the_field_is_a_reject(self):
        found, rows = self.load("a.csv", "id,t\n1,x\n,y\n3,z\n", "--id-field", "id", code=support.EXIT_REJECTS)
        self.assertEqual([one["_id"] for one in found], [1, 3])
        self.assertEqual([(row["line"], row["offset"], row["column"]) for row in rows], [("3", "9", "id")])
        self.assertIn("the field is missing", rows[0]["reason"])

    def test_a_column_called_id(self):
        text = "_id,t\n5,x\n"
        self.assertIn("--id-field _id", self.refused("a.csv", text, "--format", "delimited", code=support.EXIT_SOURCE))
        found, _ = self.load("a.csv", text, "--id-field", "_id")
        self.assertEqual([list(one.items()) for one in found], [[("_id", 5), ("t", "x")]])

    def test_nested_columns(self):
        text = "n,place.code,place.name\n1,AB,x\n2,CD,y\n"
        found, _ = self.load("a.csv", text, "--id-field", "place.code")
        self.assertEqual(found, [{"_id": "AB", "n": 1, "place": {"name": "x"}},
                                 {"_id": "CD", "n": 2, "place": {"name": "y"}}])
        found, _ = self.load("a.csv", "n,a.b.c,a.d\n1,AB,\n2,CD,5\n", "--id-field", "a.b.c")
        self.assertEqual(found, [{"_id": "AB", "n": 1}, {"_id": "CD", "n": 2, "a": {"d": 5}}])

    def test_quoted_fields_with_line_ends(self):
        text = 'id,t\n"k\n1","x\ny"\n"k\n2",z\n'
        found, _ = self.load("a.csv", text, "--id-field", "id")
        self.assertEqual(found, [{"_id": "k\n1", "t": "x\ny"}, {"_id": "k\n2", "t": "z"}])

    def test_a_schema_names_the_column_in_three_ways(self):
        schema = self.file("s.yaml", "name: s\nkind: things\ncolumns:\n"
                           "  - {name: number, short: nr, aliases: [Number], type: int}\n"
                           "  - {name: text}\n")
        for name in ("number", "nr", "Number"):
            found, _ = self.load("a.csv", "Number,text\n5,x\n", "--schema", schema,
                                 "--format", "delimited", "--id-field", name)
            self.assertEqual(found, [{"_id": 5, "text": "x"}])

    def test_a_coordinate_identifies_no_document(self):
        schema = self.file("s.yaml", "name: s\nkind: places\ncolumns:\n"
                           "  - {name: lon, short: \"at[0]\", type: double}\n"
                           "  - {name: lat, short: \"at[1]\", type: double}\n  - {name: id}\n")
        for fields in ("lat", "id,lon", "at[0]"):
            err = self.refused("a.csv", "lat,lon,id\n52.5,13.4,x\n", "--schema", schema,
                               "--format", "delimited", "--id-field", fields)
            self.assertRegex(err, "--id-field: the column (lat|lon) is stored in an array, " r"as at\[[01]\]")
        found, _ = self.load("a.csv", "lat,lon,id\n52.5,13.4,x\n", "--schema", schema,
                             "--format", "delimited", "--id-field", "id")
        self.assertEqual(found, [{"_id": "x", "at": [13.4, 52.5]}])

    def test_a_column_that_does_not_exist(self):
        self.assertIn("has no column key, which --id-field names",
                      self.refused("a.csv", "id,t\n1,x\n", "--id-field", "key"))

    def test_a_column_that_one_entry_of_an_archive_does_not_have(self):
        for names, code in (("key,t,u,v", support.EXIT_OK), ("id,t,u,v", support.EXIT_SOURCE)):
            for types in ("auto", "text"):  # with and without a sample of the entries
                archive = self.file("a.tar", making.tar([("1.csv", "key,t,u,v\n1,x,,\n"),
                                                          ("2.csv", f"{names}\n2,y,,\n")]))
                outcome = self.shardload("load", "--sink", "null", "--types", types, "--id-field", "key", archive,
                                         code=code)
        self.assertIn("a.tar: 2.csv has no column key, which --id-field names", outcome.err)

    def test_json(self):
        text = ('{"n":1,"k":{"a":5,"b":6}}\n{"n":2,"k":{"a":{"$oid":"0123456789abcdef01234567"}}}\n'
                '{"n":3,"k":{"a":null}}\n{"n":4}\n{"n":5,"k":{"a":""}}\n{"n":6,"k":{"a":[1]}}\n'
                '{"_id":7,"n":7,"k":{"a":1}}\n{"n":8,"k":{"a":{"$gt":1}}}\n')
        found, rows = self.load("a.json", text, "--id-field", "k.a", code=support.EXIT_REJECTS)
        self.assertEqual(found, [{"_id": 5, "n": 1, "k": {"b": 6}},
                                 {"_id": bson.ObjectId("0123456789abcdef01234567"), "n": 2,
                                  "k": {}}])
        self.assertEqual([row["line"] for row in rows], ["3", "4", "5", "6", "7", "8"])
        for row, words in zip(rows, ("has no value", "is missing", "is empty", "an array",
                                     "already has an _id", "begins with $")):
            self.assertIn(words, row["reason"])

    def test_json_documents_must_have_an_id(self):
        found, rows = self.load("a.json", '{"_id":1}\n{"n":2}\n', "--id-field", "_id", code=support.EXIT_REJECTS)
        self.assertEqual((found, len(rows)), ([{"_id": 1}], 1))

    def test_bson(self):
        values = [5, 5.5, "x", bson.Int64(7), b"\1\2", True, bson.Decimal128("1.5"),
                  bson.DatetimeMS(3), bson.Code("f"), bson.MinKey(), bson.Timestamp(1, 2),
                  {"a": [1, {"b": 2}]}, bson.Regex("^a")]
        made = [{"n": number, "k": one, "t": "x"} for number, one in enumerate(values)]
        text = b"".join(bson.encode(one) for one in made)
        found, rows = self.load("a.bson", text, "--id-field", "k", code=support.EXIT_REJECTS)
        expected = [bson.encode({"_id": one["k"], "n": one["n"], "t": "x"}) for one in made[:-1]]
        self.assertEqual([bson.encode(one) for one in found], [bson.encode(bson.decode(one)) for one in expected])
        self.assertEqual(len(rows), 1)
        found, _ = self.load("a.bson", text, "--id-field", "n,k", code=support.EXIT_REJECTS)
        self.assertEqual(list(found[11]["_id"].items()), [("n", 11), ("k", {"a": [1, {"b": 2}]})])

    def test_a_long_value_is_a_reject(self):
        text = '{"k":"' + "x" * 5000 + '"}\n{"k":"' + "x" * 900 + '"}\n'
        found, rows = self.load("a.json", text, "--id-field", "k", code=support.EXIT_REJECTS)
        self.assertEqual(len(found), 1)
        self.assertIn("too long for an _id", rows[0]["reason"])

    def test_the_formats_of_isd(self):
        found, _ = self.load("a.isd", b"0000" + ISD_FIXED + b"\n", "--id-field", "st,ts")
        self.assertEqual((list(found[0]["_id"]), found[0]["_id"]["st"]), (["st", "ts"], "u010010"))
        self.assertNotIn("st", found[0])
        found, _ = self.load("01001-99999-1988", b"0000" + ISD_FIXED + b"\n", "--id-field", "ts")
        self.assertIn("st", found[0])

    def test_mot(self):
        found, _ = self.load("a.txt", support.mot_text([5, 6]), "--id-field", "test_id")
        self.assertEqual([one["_id"] for one in found], [5, 6])

    def test_generated_records_have_no_such_column(self):
        self.shardload("inspect", "--format", "ycsb", "--records", 5, "--id-field", "f0",
                       code=support.EXIT_USAGE, message="--id-field: generated records")

    def test_a_field_inside_another_one(self):
        text = '{"a": {"b": "%s"}}\n' % ("x" * 470)
        for words in ("a,a.b", "a.b,a", "c,a.b.d,a.b"):
            self.assertIn("a field is part of another field", self.refused("a.json", text * 40000, "--id-field", words))
        found, _ = self.load("a.json", '{"a": {"b": 1}, "ab": 2}\n', "--id-field", "ab,a")
        self.assertEqual(found, [{"_id": {"ab": 2, "a": {"b": 1}}}])

    def test_two_names_of_one_key(self):
        schema = self.file("keys.yaml", "name: s\nkind: things\ncolumns:\n"
                           "  - {name: n, short: k, type: int}\n"
                           "  - {name: t, short: v.k, type: int}\n")
        for words in ("n,t", "n,k"):
            self.assertIn("the same key", self.refused("a.csv", "n,t\n1,2\n", "--schema", schema, "--id-field", words))

    def test_every_option_takes_the_name_in_the_header_and_the_stored_name(self):
        """Two columns that are both called so are refused; other letters are used only if no name is equal."""
        text = "Nr. Kd.;Geb.Tag;$x;3.5mm;ID;id\n1;2;3;4;5;6\n"
        for number, names in enumerate((("Nr. Kd.", "Nr Kd"), ("Geb.Tag", "geb.tag"), ("$x", "x"), ("3.5mm", "3_5mm"),
                                        ("ID",), ("id",)), 1):
            path, types = self.file("n.csv", text), set()
            for name in names:
                found, _ = self.load("n.csv", text, "--id-field", name)
                self.assertEqual(found[0]["_id"], number, name)
                documents, _ = self.dump_decoded("--types", f"{name}=text", path)
                types.add(repr(documents[0]))
            self.assertEqual(len(types), 1)
            self.assertIn(f"'{number}'", types.pop())
        schema = self.file("s.yaml", "name: s\ncolumns: [{name: x, short: y}, {name: y, short: z}]\n")
        for words in (("--id-field", "Id", self.file("n.csv", text)),
                      ("--schema", schema, "--id-field", "y", self.file("o.csv", "x,y\n1,2\n"))):
            outcome = self.shardload("load", "--sink", "null", *words, code=support.EXIT_USAGE)
            self.assertRegex(outcome.err, "--id-field: columns . and . are both called (Id|y), in the header or as")
        self.shardload("load", "--sink", "null", "--id-field", "$x", self.file("n.json", '{"x": 1}\n'),
                       code=support.EXIT_USAGE, message="--id-field: the name of a field begins with $")

    def test_lists_of_names(self):
        for words, message in (("a,,b", "a name is empty"), ("a,a", "a name is given twice"),
                               ("_id.x", "a part of an _id"), ("$a", "has no column $a"),
                               ("a,_id", "cannot be one of several"), ("a,b.a", "the same key")):
            self.assertIn(message, self.refused("a.csv", "a,b\n1,2\n", "--id-field", words))
