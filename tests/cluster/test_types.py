# SPDX-License-Identifier: Apache-2.0
"""Inferred types on a cluster: a load that is resumed, and a verification, use the same types."""
import re
import shlex
import uuid

import proxy
import support
from support import bson


class Types(support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def text(self):
        """Types int, double and date; values that do not fit begin after the sample."""
        row = "{},{}.5,2016-01-15," + "x" * 200 + "\n"
        rows = [row.format(i, i) for i in range(40000)]
        rows[35000:35010] = [f"{i},word,2016-01-15,y\n" for i in range(35000, 35010)]
        return ("n,x,day,note\n" + "".join(rows)).encode()

    def test_the_command_for_corrected_rejects(self):
        """It is shown quoted for a shell, has all options that the records need, and works."""
        good = "".join(f"{n}\tM\xfcller\t{n},5\t1.2.2015\n" for n in range(30))
        for header, text, more in (("Nr\tName\tPreis\tseit\n", good, ["--id-field", "Nr"]),
                                   ("title\n\nNr\tName\tPreis\tseit\n", good, ["--skip-lines", 2]), ("", good, [])):
            names = ["Preis", "seit"] if header else ["column3", "column4"]
            path = self.file("o'neil 1.csv", (header + text + "30\tGr\xf6\xdfe\tviel\t2.2.2015\n").encode("cp1252"))
            types = f"{names[0]}=double:1234,5,{names[1]}=date:%d.%m.%Y"
            outcome, work = self.load("--drop", "--types", types, "--encoding", "cp1252", *more, path,
                                      code=support.EXIT_REJECTS)
            rejected = work / "rejected/000001-o'neil 1.csv"
            rejected.write_bytes(rejected.read_bytes().replace(b"viel", b"77,5"))
            words = shlex.split(outcome.out.split("load them:\n")[1].split("\n")[0])
            self.assertEqual((words[0], words[-1]), ("shardload", str(rejected)))
            self.shardload(*words[1:], "--work-dir", self.scratch / f"corrected-{next(self._counter)}")
            self.assertEqual(self.database.t.count_documents({names[0]: {"$type": "double"}}), 31)
            found = self.database.t.find_one({names[0]: 77.5, names[1]: {"$type": "date"}})
            self.assertIn("Gr\xf6\xdfe", found.values())
        flags = self.file("flags.yaml", "trim: yes\ntls: off\nno-verify: 0\n")
        path = self.file("c.csv", "a,b\n1,1\n2, 2 \nx,3\n")
        outcome, work = self.load("--drop", "--config", flags, "--types", "a=int", path, code=support.EXIT_REJECTS)
        words = shlex.split(outcome.out.split("load them:\n")[1].split("\n")[0])
        self.assertRegex(words[words.index("--trim") + 1], "^-")
        self.assertNotIn("--tls", words)
        options = support.run_record(work)["options"]
        self.assertEqual([options[name] for name in ("trim", "tls", "no-verify")], ["true", "false", "false"])
        columns = [f"column{n}" for n in range(60)]  # a command that would lack its --types is not shown
        path = self.file("wide.csv", ",".join(columns) + "\n" + "1," * 59 + "x\n" + "1," * 59 + "1\n")
        outcome, _ = self.load("--drop", "--types", "=int,".join(columns) + "=int", path,
                               code=support.EXIT_REJECTS)
        self.assertNotIn("load them:", outcome.out)

    def test_the_commands_for_corrected_rejects_of_several_dialects(self):
        """One command with the delimiter of the first file made each record of the others one column."""
        files = [self.file(f"c {n}.csv", f"n{c}x\n{2 * n}{c}1\n!{2 * n + 1}{c}2\n") for n, c in enumerate(",;;")]
        outcome, work = self.load("--types", "n=int", *files, code=support.EXIT_REJECTS)
        for path in (work / "rejected").iterdir():
            path.write_text(path.read_text().replace("!", ""))
        for line in re.findall("    shardload (load .*)\n", outcome.out):
            self.shardload(through=["sh", "-c", f"exec {support.program('shardload')} {line}"])
        self.assertEqual(sorted(one["n"] for one in self.database.t.find()), list(range(6)))

    def test_a_load_that_rejected_most_records(self):
        """Its repetition shows what it stored and rejected, and how to complete it."""
        days = [self.file(f"day{day}.csv", "id,qty\n" + "".join(f"{day}{n},{n} pcs\n" for n in range(9)) + f"{day}9,\n")
                for day in range(2)]
        self.load("--types", "qty=text", days[0])
        outcome, work = self.load("--types", "qty=int", days[1], code=support.EXIT_REJECTS)
        self.assertIn("most records were rejected: 9 of 10. If a type or another option is wrong", outcome.err)
        outcome, _ = self.load("--types", "qty=int", days[1], code=support.EXIT_SOURCE)
        for part in ("1 stored, 9 rejected, see ", f":{work.resolve()}\n", "rejected/", "add --again",
                     "--drop would also remove 10 documents of other sources"):
            self.assertIn(part, outcome.err)
        _, work = self.load("--types", "qty=text", "--again", days[1])
        self.assert_accounting(work, inserted=9, alreadyStored=1)
        outcome, _ = self.load("--types", "qty=text", days[1], code=support.EXIT_SOURCE)
        self.assertIn(": 10 stored\n--again sends them again", outcome.err)

    def test_a_resumed_load_has_the_types_of_its_journal(self):
        path = self.zipped("t.csv.gz", self.text())
        work = self.scratch / "work"
        words = ["--format", "delimited", "--work-dir", work, "--progress", "none", "-j", 1, path]
        stopped = self.shardload("load", *self.target(), "--max-rejects", 3, *words, code=None)
        self.assertNotEqual(stopped.code, support.EXIT_OK)
        self.shardload("load", *self.target(), "--max-rejects", 3, "--resume", "--types", "text",
                       *words, code=support.EXIT_USAGE)
        self.shardload("load", *self.target(), "--resume", *words, code=support.EXIT_REJECTS)
        counts = [self.database.t.count_documents({key: {"$type": kind}})
                  for key, kind in (("n", "int"), ("x", "double"), ("day", "date"),
                                    ("note", "string"))]
        self.assertEqual(counts, [39990] * 4)
        self.shardload("verify", "--content", *self.target(), "--format", "delimited", path)
        self.shardload("verify", "--content", *self.target(), "--format", "delimited", "--types",
                       "text", path, code=support.EXIT_VERIFICATION)


class Remembered(support.ClusterCase):
    """The types of a collection's columns hold for later loads of delimited text."""
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def csv(self, *rows, header="plz,n,day"):
        return self.file(f"{next(self._counter)}.csv", "\n".join((header, *rows)) + "\n")

    def types(self, field):
        """The types of a field -> number of documents."""
        found = self.database.t.aggregate([{"$group": {"_id": {"$type": f"${field}"}, "n": {"$sum": 1}}}])
        return {one["_id"]: one["n"] for one in found}

    def remembered(self):
        counter = self.database["t.sources"].find_one({"_id": "counter"})
        return [(one["column"], one["type"]) for one in counter["types"]]

    def test_more_columns_than_the_registry_lists(self):
        """Each was compared with each, and then the list was written that no load accepts."""
        folder = self.scratch / "many"
        folder.mkdir()
        for n in range(100):
            (folder / f"{n}.csv").write_text(",".join(f"{'a' if k < 700 else n}c{k}" for k in range(1024)) + "\n1\n")
        self.shardload("load", *self.target(), "--types", "text", "--ragged", "pad", folder, code=support.EXIT_SOURCE,
                       message="its list types would have more than 10000 entries",
                       through=["sh", "-c", 'ulimit -t 20; exec "$0" "$@"'])
        self.shardload("load", *self.target(), self.csv("1,2,3"))

    def assert_refused(self, path, *lines, words=()):
        """load and plan refuse the file alike, and change nothing."""
        before = self.database.t.count_documents({}), list(self.database["t.sources"].find())
        for command in "load", "plan":
            outcome = self.shardload(command, *self.target(), *words, path, code=support.EXIT_SOURCE)
            for line in (*lines, "--schema", "--types text"):
                self.assertIn(line, outcome.text)
        self.assertEqual((self.database.t.count_documents({}), list(self.database["t.sources"].find())), before)

    def test_a_file_that_contradicts_the_types_is_refused(self):
        self.load(self.csv("20095,1,2016-01-15", "70173,2.5,"))
        self.assertEqual(self.remembered(), [("day", "date"), ("n", "double"), ("plz", "int")])
        second = self.csv("01067,x,15", "20095,7,2016")
        self.assert_refused(second, 'column plz: int in the collection, text here, as "01067"',
                            f'{second.name}: column n: double in the collection, text here, as "x"',
                            'column day: date in the collection, int here')
        # The two ways on, and what then holds: a column of two types has to be declared.
        schema = self.scratch / "schema.yaml"
        self.shardload("inspect", "--write-schema", schema, second)
        outcome, _ = self.load("--schema", schema, second)
        self.assertIn("have another type in 3 columns: plz, n, day. A query", outcome.err)
        self.assertEqual(self.types("plz"), {"int": 2, "string": 2})
        third = self.csv("20097,8,2016-01-16")
        self.assert_refused(third, "column plz: int and text in the collection, int here")
        self.load("--types", "text", third)
        self.assertEqual(self.types("n"), {"double": 2, "string": 3})
        self.shardload("verify", *self.target(), "--content", "--types", "text", third)

    def test_a_key_of_another_type_finds_no_document(self):
        """Keys with leading zeros were to be declared as text, which stored each document twice."""
        key, zeros = ("--id-field", "plz"), self.csv("0301,7,", "0302,8,")
        self.load(*key, self.csv("301,1,", "302,2,"))
        for mode in "upsert", "delete":
            outcome, _ = self.load(*key, "--mode", mode, zeros, code=support.EXIT_SOURCE)
            self.assertRegex(outcome.err, r"\nA key of another type is another key: declare it: --types 'plz=int' \(")
        self.load(*key, "--mode", "upsert", "--types", "plz=int", zeros)
        self.assertEqual((self.types("_id"), self.database.t.count_documents({"n": {"$gt": 6}})), ({"int": 2}, 2))

    def test_the_types_of_the_collection_are_used(self):
        first = self.csv("01067,1.5,15.01.2016")
        self.load(first)
        # These files alone would be int, int, text (no day above 12), and text of empty values.
        second, third = self.csv("20095,2,01.02.2016"), self.csv(",,", "20097,,")
        outcome, work = self.load(second)
        self.assertIn("column plz: text, as in the collection; of this load's values alone it would be int",
                      outcome.err)
        self.shardload("plan", *self.target(), "--again", third,
                       message=("column plz: text, as in the collection", "1 number, 1 date, 1 text"))
        self.load(third)
        self.assertEqual((self.types("plz"), self.types("n"), self.types("day")),
                         ({"string": 3}, {"double": 2, "missing": 1}, {"date": 2, "missing": 1}))
        self.assertEqual(support.run_record(work)["types"][0]["types"], ["date %d.%m.%Y", "double", "text"])
        for path in (first, second, third):
            self.shardload("verify", *self.target(), "--content", path)

    def test_the_types_of_a_collection_of_another_program(self):
        """A sample of its documents shows them; from then on they are remembered."""
        stored = [{"_id": f"0{n}", "plz": "01067", "at": {"n": n}, "n": n, "x": 1.5, "day": None} for n in range(300)]
        self.database.t.insert_many(stored)
        outcome, _ = self.load("--id-field", "id", self.csv("20,20095,1,7,2,b", header="id,plz,at.n,n,x,day"))
        self.assertIn("column plz: text, as in the collection", outcome.err)
        self.assertEqual(self.database.t.find_one({"_id": "20"}),
                         {"_id": "20", "plz": "20095", "at": {"n": 1}, "n": 7, "x": 2, "day": "b"})
        self.assertEqual(self.types("x"), {"double": 301})
        contradicting = self.csv("21,a,01,2016-01-15", header="id,at.n,n,x")
        self.assert_refused(contradicting, 'column n: int in the collection, text here, as "01"',
                            'column at.n: int in the collection, text here, as "a"',
                            "column x: double in the collection, date here", words=("--id-field", "id"))
        self.load("--id-field", "id", "--types", "n=text,at.n=text,x=text", contradicting)
        self.assert_refused(self.csv("22,5", header="id,n"), "column n: int and text in the collection, int here",
                            words=("--id-field", "id"))
        self.database.other.insert_many([{"n": "01"}, {"n": 5}])  # declared types do not hide the stored ones
        target = self.target("other")
        outcome = self.shardload("plan", *target, self.csv("5,1", header="n,k"), code=support.EXIT_SOURCE)
        self.assertIn("For one type in all documents, load into another collection. To store both", outcome.err)
        self.shardload("load", *target, "--types", "n=int", self.csv("5,1", header="n,k"))
        self.database.slow.insert_one({"n": "01"})
        slow = proxy.Refusing(support.port_of(self.uri), "$sample", code=50, executed=False)
        self.load(self.csv("5,1", header="n,k"), collection="slow", through=slow, message="took too long")
        outcome = self.shardload("load", *target, self.csv("6,2", header="n,k"), code=support.EXIT_SOURCE)
        self.assertIn("text and int in the collection, int here", outcome.err)

    def test_fields_in_arrays(self):
        """They have the type of the stored elements, whatever the position, also for later files."""
        self.database.t.insert_one({"_id": 1, "pos": [{"plz": "01067"}, {"plz": "50667"}]})
        rows = [self.csv(f"{n},5000{n},50003", header="id,pos.0.plz,pos.1.plz") for n in range(2, 5)]
        schema = self.file("s.yaml", "name: t\ncolumns: [{name: id, type: int}, {name: pos.0.plz}, {name: pos.1.plz}]")
        for words, path, said in (((), rows[0], 1), ((), rows[1], 1), (("--schema", schema), rows[2], 0)):
            outcome, _ = self.load("--id-field", "id", *words, path)
            self.assertEqual(outcome.err.count("column pos.plz: text, as in the collection"), said)
            self.assertNotIn("other columns", outcome.err)
        self.assertEqual(self.database.t.count_documents({"pos.plz": {"$type": "int"}}), 0)
        self.assertEqual(self.remembered(), [("id", "int"), ("pos.plz", "text")])
        self.shardload("verify", "--content", *self.target(), "--id-field", "id", rows[0])

    def test_names_that_look_like_those_of_earlier_loads(self):
        """The same field is not "missing"; another spelling that cannot be seen is named as such."""
        rows = [f"{n},{n}" for n in range(5)]
        self.load(self.csv(*rows, header="Rechnungs-Nr.,Gr\u00f6\u00dfe"))
        outcome, _ = self.load(self.csv(*rows, header="Rechnungs-Nr,Gro\u0308\u00dfe"))
        said = "new: Gro\u0308\u00dfe; missing: Gr\u00f6\u00dfe. These look like missing ones: Gro\u0308\u00dfe; but"
        self.assertIn(said, outcome.err)
        self.assertEqual(self.database.t.count_documents({"Rechnungs-Nr": {"$exists": True}}), 10)
        self.load(self.csv(*rows, header="Kunde,Mass"), collection="other")
        outcome, _ = self.load(self.csv(*rows, header="Kunde\u00a0,M\u00e4ss"), collection="other")
        self.assertIn("These look like missing ones: Kunde\u00a0; but", outcome.err)

    def test_keys_with_blanks_at_their_ends(self):
        """Columns of fixed width, such as CHAR(10): merge inserts a second document for each, so a warning names
        --trim."""
        said = "values of nr, by which documents are identified, have blanks at their ends"
        self.load("--id-field", "nr", self.csv("A1,a", "A2,a", header="nr,v"))
        padded = self.csv("A1  ,b ", "A2  ,b ", header="nr,v")
        words = "load", *self.target(), "--mode", "merge", "--id-field", "nr"
        self.assertNotIn(said, self.shardload(*words, "--trim", padded).err)
        self.assertEqual([one["v"] for one in self.database.t.find()], ["b", "b"])
        self.assertIn(said, self.shardload(*words, "--types", "nr=text", padded).err)
        self.assertNotIn(said, self.shardload(*words, self.csv("A3,b ", header="nr,v")).err)
        for value in "A4\u00a0", "\u202fA5", "A6\u202f ":
            self.shardload(*words, self.csv(value + ",b", header="nr,v"),
                           message=said.replace("blanks", "no-break spaces"))
        self.assertNotIn("no-break", self.shardload(*words, self.csv("\u00e0\u00a0b\u00e0,\u00a0", header="nr,v")).err)

    def test_a_column_with_the_name_of_a_field_in_another_case(self):
        """Headers of spreadsheets begin with capitals: they are not stored as second fields beside those of an
        application, and not matched with fields that no document has; the message names the ways on, which work."""
        self.database.t.insert_many([{"_id": n, "nr": n, "plz": "01067", "at": {"x": 1}} for n in range(9)])
        self.database.t.create_index("nr", unique=True)
        path = self.csv("1,20095,2,a", "2,01067,2,b", header="Nr,PLZ,At.x,new")
        words = "--mode", "merge", "--match-fields", "nr"
        for command in (("load", *words), ("plan", *words), ("load",)):
            self.shardload(*command, *self.target("t"), path, code=support.EXIT_SOURCE,
                           message="they would be two fields: At.x (at.x), Nr (nr), PLZ (plz). Name")
        self.assertEqual(self.database.t.count_documents({"PLZ": {"$exists": True}}), 0)
        self.load(*words, "--columns", "nr,plz,at.x,new", "--skip-lines", 1, path)
        self.assertEqual(self.database.t.find_one({"_id": 1}),
                         {"_id": 1, "nr": 1, "plz": "20095", "at": {"x": 2}, "new": "a"})
        self.load("--mode", "delete", "--match-fields", "nr", self.csv("1,a", header="nr,NEW"))
        self.assertIsNone(self.database.t.find_one({"_id": 1}))
        self.database.t.drop_index("nr_1")
        copy = self.file("copy.csv", path.read_bytes())
        self.load("--types", "Nr=int,PLZ=text,At.x=int", "--again", copy)  # from now on the collection has both
        self.load(self.csv("3,3,3", header="Nr,PLZ,At.x"))

    def test_the_types_of_an_application_and_a_table_with_decimal_commas(self):
        """Its prices are decimals and its flags booleans: the prices become decimals too, and the message names the
        option for the flags, and the one for a column in which it has stored two types."""
        decimal = bson.decimal128.Decimal128
        self.database.t.insert_many([{"_id": n, "p": decimal(f"{n}.50"), "on": True, "m": n or "x"} for n in range(50)])
        path = self.csv("1;2,05;ja;7", "2;1.000,10;nein;8", header="id;p;on;m")
        words = "--mode", "merge", "--id-field", "id"
        outcome = self.shardload("load", *self.target("t"), *words, path, code=support.EXIT_SOURCE)
        self.assertIn("column p: decimal128 1.234,5, as in the collection", outcome.err)
        self.assertIn("choose --types 'on=flag:YES:NO' with the words for true and false", outcome.err)
        self.assertRegex(outcome.err, "To store both, give --types 'm=int,on=text', declare types with --schema")
        self.load(*words, "--types", "m=int", "--types", "on=flag:ja:nein", path)
        self.assertEqual(list(self.database.t.find({"_id": {"$in": [1, 2]}}, sort=[("_id", 1)])),
                         [{"_id": 1, "p": decimal("2.05"), "on": True, "m": 7},
                          {"_id": 2, "p": decimal("1000.10"), "on": False, "m": 8}])
        self.load(*words, self.csv("3;2,5", header="id;p"))
        self.assertEqual(self.database.t.find_one(3)["p"], decimal("2.5"))
        new = self.csv("100;3,50", header="id;p")
        self.load("--id-field", "id", new)
        self.shardload("verify", "--content", *self.target("t"), "--id-field", "id", new)

    def test_values_that_only_declared_types_store(self):
        """Texts do not replace them; what mongoexport wrote of them does, with the types in the message."""
        stored = [{"_id": n, "ref": bson.ObjectId(), "list": [1, n], "part": {"a": n}, "key": uuid.uuid4(),
                   "raw": b"a%d" % n, "name": "a"} for n in range(20)]
        documents = self.database.get_collection("t", codec_options=bson.codec_options.CodecOptions(
            uuid_representation=bson.binary.UuidRepresentation.STANDARD))
        documents.insert_many(stored)
        rows = [f'{n},ObjectId({one["ref"]}),"[1,{n}]","{{""a"":{n}}}",{one["key"].hex.upper()},{one["raw"].hex()},b'
                for n, one in enumerate(stored)]
        path = self.csv(*rows, header="_id,ref,list,part,key,raw,name")
        words = "load", *self.target("t"), "--mode", "merge", "--id-field", "_id"
        outcome = self.shardload(*words, path, code=support.EXIT_SOURCE)
        self.assertIn("column list: json in the collection, text here", outcome.err)
        advised = re.search(r"--types '(.*?)'", outcome.err)[1]
        self.assertEqual(advised, "key=uuid,list=json,part=json,raw=hex")  # ObjectId(...) is recognised
        self.assertEqual(list(documents.find(sort=[("_id", 1)])), stored)
        self.shardload(*words, "--types", advised, path)
        self.assertEqual(list(documents.find(sort=[("_id", 1)])), [{**one, "name": "b"} for one in stored])

    def test_files_with_other_forms_of_dates_and_numbers(self):
        """Values that mean another date or number in each form are refused."""
        for first, second, third, types in (
                (["01/25/2024"], ["25/01/2024"], "05/02/2024", "k=date:%d/%m/%Y"),
                (["1.234,50", "2,5"], ["1,234.50", "2.5"], "1.301", "k=double:1,234.5")):
            name = self.target(types[2:5])
            for values in (first, [third], second):
                loaded = self.csv(*(f'1;{value}' for value in values * 20), header="n;k")
                self.shardload("load", *name, loaded)
                self.shardload("verify", "--content", *name, loaded)
            path = self.csv(*[f"3;{third}"] * 20, header="n;k")
            outcome = self.shardload("load", *name, path, code=support.EXIT_SOURCE)
            self.assertRegex(outcome.err, f'column k: d.* and d.* in the collection, .* here, as "{third}"')
            self.shardload("load", *name, "--types", types, path)
            self.shardload("load", *name, self.csv(*[f"2;{second[0]}"] * 20, header="n;k"))

    def values(self, name, field="x"):
        return [one[field] for one in self.database[name].find(sort=[("_id", 1)]) if field in one]

    def test_a_decimal_point_between_commas(self):
        """1.696 of a comma-separated file stays 1.696, whatever form of numbers earlier files had, in one command or
        in several ones; where it may be 1696, both readings are named."""
        german, comma = self.csv("1;5,75", header="n;x"), self.csv("2,1.696", header="n,x")
        said = "column x: double here, double 1234,5 in earlier loads: each file is read in its own form"
        whole = self.csv("1;5", header="n;x")
        for name, first, words in (("k1", german, ()), ("k2", whole, ("--types", "x=int:1.234,5"))):
            self.shardload("load", *self.target(name), *words, first)
            outcome = self.shardload("load", *self.target(name), comma)
            self.assertIn(said.replace("double 1234,5", "int 1.234,5") if words else said, outcome.err)
            self.assertEqual(self.values(name)[1], 1.696)
            self.shardload("verify", "--content", *self.target(name), comma)
        for n, text in enumerate(("n\tx\n1\t1.696\n", "n|x\n1|1.696\n", 'n,x\n"1","1.696"\n')):
            path = self.file(f"other{n}.csv", text)
            outcome = self.shardload("load", *self.target("k1"), path, code=support.EXIT_SOURCE)
            self.assertIn("--types x=int:1.234,5 (as 1696) or --types x=double (as 1.696)",
                          outcome.err.replace("'", ""))
            self.shardload("load", *self.target("k1"), "--types", "x=double", path)
        for paths in ((german, comma), (comma, german)):
            outcome, work = self.load("--drop", *paths)
            self.assertRegex(outcome.err, "column x: double.* in files with .* columns, double.* in others: each")
            self.assertEqual(sorted(self.values("t")), [1.696, 5.75])
            self.shardload("verify", "--content", *self.target(), *paths)
            self.assertEqual(sorted(one["types"][1] for one in support.run_record(work)["types"]),
                             ["double", "double 1234,5"])

    def test_both_forms_of_numbers(self):
        """A file that may have either is refused, with both readings."""
        for value in ("2;2.5", "1;5,75"):
            self.load(self.csv(value, header="n;x"))
        for header, row, one, two in (("n,x", '3,"1,125"', "1.125", "1125"), ("n;x", "3;1.000", "1000", "1")):
            path = self.csv(row, header=header)
            outcome = self.shardload("load", *self.target(), path, code=support.EXIT_SOURCE)
            self.assertRegex(outcome.err, rf"double and double 1234,5 in the collection, .*--types .*\(as {one}\) or "
                             rf"--types .*\(as {two}\)")
        self.load(self.csv("4,1.125", header="n,x"))
        self.assertEqual(self.values("t"), [2.5, 5.75, 1.125])

    def test_decimals_in_both_forms(self):
        """Decimals that another program has stored are updated from files with commas and with points."""
        decimal = bson.decimal128.Decimal128
        self.database.t.insert_many([{"_id": n, "x": decimal("1.50")} for n in range(5)])
        words = "--mode", "update", "--id-field", "n"
        for row in ("1;5,75", "2;5.99", "3;6,25"):
            self.load(*words, self.csv(row, header="n;x"))
        self.assertEqual(self.values("t")[1:4], [decimal(text) for text in ("5.75", "5.99", "6.25")])
        outcome = self.shardload("load", *self.target(), *words, self.csv("4;1.250", header="n;x"),
                                 code=support.EXIT_SOURCE)
        self.assertIn("--types x=decimal128:1.234,5 (as 1250) or --types x=decimal128 (as 1.25)",
                      outcome.err.replace("'", ""))

    def test_wider_numbers_of_another_program(self):
        """Whole numbers become long or double where its documents have only that, as its validator may demand; the
        server's words are types."""
        long = bson.int64.Int64
        self.database.t.insert_many([{"_id": n, "l": long(n), "d": float(n), "i": n, "m": n if n % 2 else long(n)}
                                     for n in range(10)])
        rows = self.csv("10,10,10,10,10", header="id,l,d,i,m")
        outcome, _ = self.load("--id-field", "id", rows)
        self.assertIn("column l: int64, as in the collection; of this load's values alone it would be int", outcome.err)
        self.assertIn("column d: double, as in the collection; of", outcome.err)
        self.assertNotIn("column i:", outcome.err)
        self.load("--id-field", "id", self.csv("11,11,11,11,11", header="id,l,d,i,m"))
        for n in (10, 11):
            self.assertEqual(self.database.t.count_documents(
                {"_id": n, "l": {"$type": "long"}, "d": {"$type": "double"}, "i": {"$type": "int"},
                 "m": {"$type": "int"}}), 1)
        self.shardload("verify", "--content", *self.target(), "--id-field", "id", rows)
        self.load("--types", "a=long,b=boolean,c=string", self.csv("1,true,2", header="a,b,c"), collection="words")
        self.assertEqual(self.database.words.count_documents({"a": {"$type": "long"}, "b": True, "c": "2"}), 1)

    def test_a_form_of_numbers_that_no_earlier_load_had(self):
        said = "column k: double 1.234,5 here, double in earlier loads: each file is read in its own form"
        for value, shown in (("12.500", False), ("1.301,5", True), ("2.301,5", False)):
            outcome = self.shardload("load", *self.target("forms"), self.csv(f'1,"{value}"', header="n,k"))
            self.assertEqual(said in outcome.err, shown, value)
        for value in ("7", "2,5"):
            outcome = self.shardload("load", *self.target("whole"), self.csv(f'1,"{value}"', header="n,k"))
            self.assertNotIn("in its own form", outcome.err)

    def test_plan_after_another_program_has_dropped_the_collection(self):
        self.load(self.csv("1,1,2016-01-15"))
        self.database.t.drop()
        plan = self.shardload("plan", *self.target(), self.csv("a,b", header="n,more"))
        self.assertNotIn("other columns", plan.text)

    def test_documents_are_not_searched_for_columns_without_values(self):
        self.database.t.insert_many([{"_id": n, "n": n} for n in range(300)])
        self.database.command("profile", 2)
        self.load("--id-field", "id", self.csv("900,1,,x", header="id,n,none,new"))
        asked = [list(one)[0] for found in self.database.system.profile.find({"command.filter.$or": {"$exists": True}})
                 for one in found["command"]["filter"]["$or"]]
        self.assertEqual(set(asked), {"new"})

    def test_a_field_that_few_documents_have(self):
        """A random sample misses it."""
        self.database.t.insert_many([{"_id": n, "sku": n, **({"gtin": f"400{n}", "rare": 1} if n == 2500 else {})}
                                     for n in range(5000)])
        path = self.csv(*(f"{n},{n},400{n},1" for n in range(5000)), header="id,sku,gtin,rare")
        for _ in range(3):
            outcome = self.shardload("plan", *self.target("t"), "--mode", "merge", "--id-field", "id", path)
            self.assertIn("column gtin: text, as in the collection", outcome.err)
        self.load("--mode", "merge", "--id-field", "id", path)
        self.assertEqual(self.database.t.find_one({"_id": 2500})["gtin"], "4002500")

    def test_json_is_compared(self):
        """Numbers are comparable with numbers; a text beside numbers is a warning."""
        self.load(self.csv("20095,1,2016-01-15"))
        outcome, _ = self.load(self.file("a.json", '{"plz": 1.5, "n": 7, "day": null, "new": "x"}\n'))
        self.assertNotIn("other types", outcome.err)
        path = self.file("b.json", '{"plz": "01067", "n": 1, "day": "2016-01-15"}\n')
        outcome, _ = self.load(path)
        for part in ("have other types in these fields", 'plz: int in the collection, text here, as "01067"',
                     'day: date in the collection, text here, as "2016-01-15"', "--types 'plz=int,day=date'"):
            self.assertIn(part, outcome.err)
        self.assertNotIn(" n: ", outcome.err)
        outcome, _ = self.load("--again", "--types", "day=date,plz=int",
                               self.file("c.json", '{"plz": "7", "day": "2016-01-15"}\n'))
        self.assertNotIn("other types", outcome.err)
        self.database.other.insert_one({"plz": "01067"})
        outcome, _ = self.load(self.file("d.json", '{"plz": 1067}\n'), collection="other")
        self.assertIn("plz: text in the collection, int here, as 1067", outcome.err)

    def test_values_that_can_be_read_in_several_ways(self):
        """The form of the collection is used; if it proves nothing, both readings are named, and what they give."""
        points = self.csv("1;12.500", "2;13.500", header="n;x")
        for first in ("1;1234,50", "1;1.234,50"):
            self.load("--drop", self.csv(first, "2;3,25", header="n;x"))
            outcome, _ = self.load(points)
            self.assertNotIn("loaded as text", outcome.err)
            self.assertEqual(self.database.t.count_documents({"x": 12500}), 1)
            self.shardload("verify", *self.target(), "--content", points)
        self.load("--drop", self.csv("1;1.25", "2;3.5", header="n;x"))
        self.assert_refused(points, 'double in the collection, text here, as "12.500"; choose --types '
                            "'x=int:1.234,5' (as 12500) or --types 'x=double' (as 12.5)\n")
        self.load("--types", "x=double", points)
        self.assertEqual(self.database.t.count_documents({"x": 12.5}), 1)
        total = self.csv(*(f"{n};2.5" for n in range(30)), "Summe;75.5", header="n;x")
        self.assert_refused(total, 'column n: int in the collection, text here, as "Summe"',
                            "declare those of the collection: --types 'n=int' (other values are then rejected); or ")
        self.load("--types", "n=int", total, code=support.EXIT_REJECTS)

    def test_a_verification_uses_the_declared_types_of_the_load(self):
        path = self.csv(*(f"00{n},{n},507f1f77bcf86cd79943901{n},J,0{n}.02.2020" for n in range(1, 7)),
                        header="k,n,id,f,day")
        for types in ("k=int,day=date:%m.%d.%Y", "k=decimal128,n=int64,id=objectid", "k=text,n=double"):
            self.load("--drop", "--types", types, path)
            self.shardload("verify", *self.target(), "--content", path)
        self.load("--drop", "--types", "f=flag:J:N", path)
        other = self.csv("7,N", header="k,f")
        self.shardload("load", *self.target(), other, code=support.EXIT_SOURCE, message="choose --types 'f=flag:J:N'\n")
        self.load("--types", "f=flag:J:N", other)
        outcome = self.shardload("verify", *self.target(), "--content", path, other, code=support.EXIT_VERIFICATION)
        self.assertEqual(outcome.err.count("column f: a load"), 1)
        self.assertIn("column f: a load declared the type flag J N; to compare its values, give --types 'f=flag:J:N'",
                      outcome.err)
        quoted = self.csv(*(f"{n},J" for n in range(1, 7)), header="k,it's")
        self.load("--types", "it's=flag:J:N", quoted, collection="quoted")
        self.shardload("load", *self.target("quoted"), self.csv("7,N", header="k,it's"), code=support.EXIT_SOURCE,
                       message="choose --types 'it'\\''s=flag:J:N'\n")
        cut = self.csv("1,2024-01-01 00:00:00.123456", header="k,u")  # it is a date there, so the advice is wrong
        self.load("--drop", "--types", "u=datetime", cut, collection="cut")
        self.assertNotIn("more digits", self.shardload("verify", *self.target("cut"), "--content", cut).text)
        hint = "verify needs the options of the load that change values: --schema, --types, --encoding, --trim"
        self.assertIn(hint, outcome.text)
        self.shardload("verify", *self.target(), "--content", "--types", "f=flag:J:N", path)
        path = self.file("latin.csv", b"n,v\n1,\xfc\n")
        self.load("--drop", "--encoding", "latin1", path)
        self.assertIn(hint, self.shardload("verify", *self.target(), "--content", path, code=None).text)

    def test_files_loaded_one_by_one_are_equal_to_what_is_stored(self):
        """`verify` said of the second file that it differs from its sources, right after the load."""
        for first, second, *types in (
                (("10", "20"), ("1.5", "2.75")), (("2020-01-01",), ("2020-02-01 10:00:00",)),
                (("true",), ("FALSE",)), (("2020-01-01T10:00:00",), ("2020-01-01T10:00:00Z",)),
                (("2020-01-01T00:00:00Z", "2021-05-01T12:00:00"), ("7",), "--types", "p=datetime")):
            paths = [self.csv(*(f"{n},{value}" for n, value in enumerate(values)), header="k,p")
                     for values in (first, second)]
            self.load("--drop", *types, paths[0])
            if not types:
                self.load(paths[1])
            self.shardload("verify", *self.target(), "--content", paths[0 if types else 1])
            if len(first) == 2 and not types:  # one command infers one type for both
                outcome = self.shardload("verify", *self.target(), "--content", *paths, code=support.EXIT_VERIFICATION)
                self.assertIn("files that separate commands have loaded are verified one by one", outcome.text)

    def test_files_after_documents_of_another_program_have_one_type(self):
        """The first file was stored as int, the second one as double, and `verify` of the first failed."""
        self.database.t.insert_many([{"k": 100 + n, "p": 7.0} for n in range(50)])
        for values in (7, 8), (9, 10):
            path = self.csv(*(f"{value},{value}" for value in values), header="k,p")
            self.load(path)
            self.shardload("verify", *self.target(), "--content", path)
        self.assertEqual(self.types("p"), {"double": 54})

    def test_a_reject_names_the_origin_of_the_type(self):
        self.load(self.csv("1.5,x", header="n,note"))
        rows = ["7," + "x" * 200] * 30000
        rows[29000] = "9007199254740993,y"
        path = self.zipped("late.csv.gz", ("n,note\n" + "\n".join(rows) + "\n").encode())
        _, work = self.load("-j", 1, path, code=support.EXIT_REJECTS)
        self.assertIn("would be changed by the type double, which the column n has in the collection: ",
                      support.reject_rows(work)[0]["reason"])

    def test_new_and_empty_columns_get_their_types_later(self):
        self.load(self.csv("1,", header="plz,n"))
        self.assertEqual(self.remembered(), [("plz", "int")])
        self.load(self.csv("x,2,3.5", header="n,plz,later"))
        self.assertEqual(self.remembered(), [("plz", "int"), ("later", "double"), ("n", "text")])
        # Other numbers, and other forms of dates and booleans, are values of the same kind.
        self.load(self.csv("1.5,7,x,true,2016-01-15", header="plz,later,n,ok,day"))
        self.load(self.csv("2,7.5,x,True,15.01.2016", header="plz,later,n,ok,day"))
        self.assertEqual((self.types("ok"), self.types("day")), ({"missing": 2, "bool": 2}, {"missing": 2, "date": 2}))
        self.assert_refused(self.csv("2,7,x,yes,2016", header="plz,later,n,ok,day"),
                            "column ok: flag true false in the collection, text here")

    def test_a_second_file_without_header(self):
        """Its records were stored with the fields column1 and so on, beside those of the first file."""
        self.load(self.csv("1,a,5.5", "2,b,7.5", header="nr,name,betrag"))
        second, names = self.file("second.csv", "3,c,8.5\n4,d,9.5\n"), "--columns nr,name,betrag. "
        for command in "load", "plan":
            for words in ((), ("--types", "text"), ("--header", "no")):
                outcome = self.shardload(command, *self.target(), *words, second, code=support.EXIT_SOURCE)
                self.assertIn("no header is found, and its 3 columns would be stored as column1", outcome.text)
                self.assertIn(names, outcome.text)
        self.shardload("load", *self.target(), self.file("two.csv", "3,8.5\n4,9.5\n"), code=support.EXIT_SOURCE,
                       message="its 2 columns would be stored as column1 and so on, but earlier loads into "
                               f"{self.database_name}.t have named their columns. Give the names in the order of the "
                               "file, as the documents do: --columns NAME,...")
        self.load(*names.rstrip(". ").split(), second)
        self.assertEqual(self.database.t.count_documents({"name": {"$exists": True}}), 4)
        self.load("--columns", "column1,column2,column3", self.file("third.csv", "5,e,8.5\n6,f,9.5\n"))
        self.load(self.file("fourth.csv", "7,g,8.5\n8,h,9.5\n"))  # the collection has such columns now

    def test_a_later_piece_whose_first_record_may_be_a_header(self):
        """The record was lost, and the others had its values as names."""
        piece = self.file("piece.csv", "C3,Wien\nC4,Graz\nC5,Bern\n")
        self.load(self.csv("C1,Bonn", "C2,Kiel", header="code,ort"))
        for command in "load", "plan":
            self.shardload(command, *self.target(), piece, code=support.EXIT_SOURCE,
                           message="named their columns otherwise (are they pieces of one file, with one header?). "
                                   "Give the names in the order of the file, if it is that of the stored documents: "
                                   "--columns code,ort. If the first line names them, give --header yes")
        self.load("--columns", "code,ort", piece)
        self.assertEqual(self.database.t.count_documents({"code": {"$exists": True}}), 5)
        self.load("--header", "yes", self.file("other.csv", "wort,sinn\na,b\nc,d\n"))

    def test_new_and_missing_columns_are_reported_once(self):
        """For a renamed column, the schema of the message stores one field."""
        def differs(*words):
            plan = self.shardload("plan", *self.target(), *words)  # which stores nothing
            planned, found = (re.search(r"earlier loads into \S+: (.*?)\. If", err)
                              for err in (plan.err, self.load(*words)[0].err))
            self.assertEqual(planned and planned[1], found and found[1])
            return found and found[1]

        old, new = self.csv("1,a", header="n,name"), self.csv("2,b,7", header="n,title,vat")
        self.assertIsNone(differs(old, self.csv("5,w", header="n,note")))  # one load
        self.assertEqual(differs(new, self.csv("3,c,7", header="n,title,vat")), "new: title, vat; missing: name, note")
        self.assertIsNone(differs(self.csv("4,d,7", header="n,title,vat")))
        self.assertEqual(differs("--types", "text", self.csv("1" + ",x" * 7, header="n,a,b,c,d,e,f,g")),
                         "new: a, b, c, d, e ...; missing: title, vat")
        part = self.csv("1,b,7", header="n,title,tax")
        self.load("--drop", "--id-field", "n", old)
        for _ in range(2):
            outcome, _ = self.load("--mode", "upsert", "--id-field", "n", self.csv("1,7", header="n,tax"))
            self.assertIn("missing: name. --mode upsert removes the missing fields from the documents that match: "
                          "--mode merge keeps them. If", outcome.err)
        self.load("--drop", "--id-field", "n", old)
        self.assertEqual(differs("--mode", "merge", "--id-field", "n", part), "new: tax, title")
        schema = self.scratch / "s.yaml"
        self.shardload("inspect", "--write-schema", schema, old)
        text = schema.read_text("utf-8")
        schema.write_text(text.replace('{name: "name"', '{name: "name", aliases: [title]'), "utf-8")
        self.load("--drop", "--schema", schema, old)
        self.assertEqual(differs("--schema", schema, new), "new: vat")
        self.assertEqual(self.types("name"), {"string": 2})

    def test_columns_of_one_name_have_one_type_within_a_load(self):
        paths = self.csv("20095,1", header="plz,a"), self.csv("01067,1", header="plz,b")
        self.load(*paths)
        self.assertEqual(self.types("plz"), {"string": 2})

    def test_a_new_collection_has_no_types(self):
        self.load(self.csv("1,1,1"))
        self.load("--drop", self.csv("01,01,01"))
        self.assertEqual(self.types("plz"), {"string": 1})
        self.database.t.drop()  # but not its registry
        self.load("--again", self.csv("2,2,2"))
        self.assertEqual(self.remembered(), [("day", "int"), ("n", "int"), ("plz", "int")])

    def test_a_load_that_stored_nothing_leaves_no_types(self):
        """The first load has the wrong --types, and rejects everything: the corrected one is not
        refused because of them, nor adopts them. A load that has begun meanwhile keeps them."""
        wrong, right = ("--types", "plz=int"), self.csv("a,1,1", "b,2,2")
        self.load(*wrong, right, code=support.EXIT_SOURCE)
        self.assertEqual(self.remembered(), [])
        ended, work = self.load(*wrong, "--again", "--max-rejects", 0, right, code=None)
        self.assertEqual((ended.code != 0, self.remembered()), (True, []))
        self.shardload(*self.load_words(work, *wrong, "--again", "--max-rejects", 9, "--resume", right),
                       code=support.EXIT_SOURCE)
        self.assertEqual(self.remembered(), [])
        running, feed = self.start_with_pipe("shardload", "load", *self.target(), *wrong, "--work-dir", "w", "-",
                                             text=b"plz,n,day\n" + b"a,1,1\n" * 20000)
        self.wait_for(lambda: ("plz", "int") in self.remembered(), "types of the pipe")
        self.load(*wrong, self.csv("7,1,1"))
        feed.close()
        running.wait().expect(support.EXIT_SOURCE, "all records were rejected: 20,000 like")
        self.assertIn(("plz", "int"), self.remembered())
        self.load(right, code=support.EXIT_SOURCE, message="differ from those of the documents")
        self.load("--drop", right)
        self.load(self.csv("c,1,1"))
        self.assertEqual(self.types("plz"), {"string": 3})

    def test_a_load_without_values_leaves_a_list_that_later_loads_extend(self):
        """Into a collection that a user empties each night."""
        self.load(self.csv("1,1,1"))
        for rows in ((), ("2,2,2",)):
            self.database.t.delete_many({})
            self.load(self.csv(*rows))
        self.assertEqual(self.remembered(), [("day", "int"), ("n", "int"), ("plz", "int")])

    def test_deletes_match_by_the_types_of_the_collection(self):
        path = self.csv("a,0123,1", "b,45,2", header="name,code,n")
        self.load("--id-field", "code", path)
        self.load("--mode", "delete", "--id-field", "code", self.csv("45,1", header="code,x"))
        self.assertEqual([one["_id"] for one in self.database.t.find()], ["0123"])

    def test_loads_that_begin_at_the_same_time(self):
        """Whichever adds its types first: the others use these types, or store nothing."""
        for _ in range(4):
            self.client.drop_database(self.database_name)
            files = [self.csv("20095,1,1"), self.csv("01067,1,1"), self.csv("x,1,1")]
            running = [self.start("shardload", "load", *self.target(), "--work-dir", f"w{path.name}", path)
                       for path in files]
            codes = [one.wait().code for one in running]
            self.assertEqual([set(codes) - {support.EXIT_OK, support.EXIT_SOURCE}], [set()], codes)
            self.assertEqual(len(self.types("plz")), 1, codes)
            self.assertEqual(sum(self.types("plz").values()), codes.count(support.EXIT_OK))

    def test_resume_takes_the_types_of_its_journal(self):
        row = "{},{}.5," + "x" * 200
        self.load(self.csv("1,2,3", header="plz,n,day"))
        rows = [row.format(i, i) for i in range(40000)]
        rows[35000:35010] = ["0,word,y"] * 10
        path = self.zipped("t.csv.gz", ("plz,n,note\n" + "\n".join(rows) + "\n").encode())
        words = ["--format", "delimited", "--work-dir", self.scratch / "w", "-j", 1, path]
        self.shardload("load", *self.target(), "--max-rejects", 3, *words, code=None)
        self.load(self.csv("2,3,01", header="plz,n,other"))
        self.shardload("load", *self.target(), "--resume", *words, code=support.EXIT_REJECTS)
        self.assertEqual(self.types("plz"), {"int": 39992})


class Names(support.ClusterCase):
    """Columns whose names no query could reach are stored under names that queries reach."""
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def test_queries_and_indexes_reach_every_column(self):
        path = self.file("a.csv", "Kunden-Nr.;Tel.;$id;No. of items;3.5mm;a..b;origin.name;.\n1;2;3;4;5;6;7;8\n")
        outcome, _ = self.load("--index", '{"Kunden-Nr": 1}', path)
        self.assertIn('7 columns are stored under another name, without dots, $ and line breaks, because no query or '
                      'index could reach it: "Kunden-Nr." as "Kunden-Nr", "Tel." as "Tel", "$id" as "id"', outcome.err)
        self.assertIn('1 column is stored in an embedded document, because the name has a dot: "origin.name" as '
                      '{origin: {name: ...}}', outcome.err)
        more = self.file("b.csv", path.read_text().replace("1;", "9;"))
        self.assertNotIn("under another name", "".join(self.shardload(*words, more).text for words in (
            ("inspect",), ("load", *self.target(), "--work-dir", self.scratch / "b"), ("verify", *self.target()))))
        self.database.t.delete_one({"Kunden-Nr": 9})
        expected = {"Kunden-Nr": 1, "Tel": 2, "id": 3, "No of items": 4, "3_5mm": 5, "a__b": 6, "origin.name": 7,
                    "column8": 8}
        self.assertEqual(self.database.t.count_documents(expected), 1)
        self.assertEqual(self.database.t.find(expected).hint("Kunden-Nr_1").to_list(), list(self.database.t.find()))
        shown = self.shardload("inspect", path)
        self.assertRegex(shown.out, r"Kunden-Nr\. +int, stored as Kunden-Nr\n")
        schema = self.scratch / "s.yaml"
        self.shardload("inspect", "--write-schema", schema, path)
        self.load("--schema", schema, "--again", path)
        self.shardload("verify", *self.target(), "--content", "--schema", schema, path)
        self.assertEqual(self.database.t.count_documents({}), 1)

    def test_line_breaks_in_names(self):
        """A heading on two lines is stored with a blank, which is said; options take either name."""
        path = self.file("a.csv", '"Nr";"Umsatz\nin \u20ac";"at.Haupt-\r\n sitz\n"\n1;1.234;x\n2;2.500;y\n')
        outcome, _ = self.load(path)
        self.assertIn('"Umsatz\\x0ain \u20ac" as "Umsatz in \u20ac", ', outcome.err)
        advised = re.search(r"--types '(Umsatz in \u20ac=int:1.234,5)'", outcome.err)[1]
        for types, code in ((advised, support.EXIT_OK), (advised.replace(" in", "\nin"), support.EXIT_OK)):
            self.load("--drop", "--types", types, "--id-field", "Umsatz in \u20ac", path, code=code)
            self.assertEqual(list(self.database.t.find()), [{"_id": 1234, "Nr": 1, "at_Haupt- sitz": "x"},
                                                            {"_id": 2500, "Nr": 2, "at_Haupt- sitz": "y"}])
        self.shardload("verify", "--content", *self.target(), "--types", types, "--id-field", "Umsatz\nin \u20ac", path)

    def test_an_id_by_the_name_of_the_field(self):
        path = self.file("a.csv", "Kunden-Nr.;Name\n1;Ann\n")
        self.load("--id-field", "Kunden-Nr", "--mode", "upsert", path)
        self.assertEqual(list(self.database.t.find()), [{"_id": 1, "Name": "Ann"}])

    def test_two_columns_of_one_name_are_refused(self):
        for header in "No;No.", "$a;a", "_id.;b":
            self.load(self.file("a.csv", f"{header}\n1;2\n"), code=support.EXIT_SOURCE,
                      message="_id" if "_id" in header else "two columns of the header would have the key")
