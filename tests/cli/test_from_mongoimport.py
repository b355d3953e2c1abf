# SPDX-License-Identifier: Apache-2.0
"""Tables as mongoimport reads them: arrays by index, types in the header, a schema with an _id."""
import support


class Tables(support.Case):
    def documents_of(self, text, *words, code=support.EXIT_OK):
        raw, _ = self.dump("--format", "delimited", *words, self.file("t.csv", text), code=code)
        return [support.bson.decode(one) for one in raw]

    def without_ids(self, text, *words):
        return [{key: value for key, value in one.items() if key != "_id"}
                for one in self.documents_of(text, *words)]

    def test_indices_after_a_dot_are_elements_of_arrays(self):
        text = "n,tags.0,tags.1,b.list.0.x,b.list.1.x\n5,x,z,1,2\n6,y,w,3,4\n"
        self.assertEqual(self.without_ids(text),
                         [{"n": 5, "tags": ["x", "z"], "b": {"list": [{"x": 1}, {"x": 2}]}},
                          {"n": 6, "tags": ["y", "w"], "b": {"list": [{"x": 3}, {"x": 4}]}}])

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
        words = "--schema", self.scratch / "s.yaml"
        self.assertEqual(self.documents_of(path.read_text(), "--id-field", "_id", *words),
                         [{"_id": 5, "a": "x"}, {"_id": 6, "a": "y"}])
        outcome, _ = self.parse("--format", "delimited", *words, path, code=support.EXIT_SOURCE)
        self.assertIn("make it the _id with --id-field _id", outcome.err)

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
        text = "i,f,h,b,c\n-5,ja,00ff,AQID,AEBAG===\n9223372036854775807,nein,,,MFRGGZDF\n"
        found = self.without_ids(text, *words)
        self.assertEqual(found, [{"i": -5, "f": True, "h": b"\x00\xff", "b": b"\1\2\3", "c": b"\1\2\3"},
                                 {"i": (1 << 63) - 1, "f": False, "c": b"abcde"}])
        self.assertIsInstance(found[0]["i"], support.bson.Int64)
        for wrong in ("1.5,ja,,,", "9223372036854775808,ja,,,", "1,yes,,,", "1,ja,0g,,", "1,ja,,AQI,", "1,ja,,,AEBAG==",
                      "1,ja,,,aebag===", "1,ja,,,A=EBAG==", "1,ja,,,AE=====A"):
            path = self.file("t.csv", f"i,f,h,b,c\n{wrong}\n1,ja,,,\n")
            outcome, _ = self.parse(*words, path, code=support.EXIT_REJECTS)
            self.assertRegex(outcome.text, r"rejected by the parser +1\n")
