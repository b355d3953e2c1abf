# SPDX-License-Identifier: Apache-2.0
"""--mode upsert, merge, replace and delete: what each does to the stored documents, what is counted,
and what is refused before anything is sent."""

import re
import subprocess

import proxy
import support
from own_ids_making import table_documents as documents
from own_ids_making import table_rows, text_of
from support import bson

COUNT = 9000


def rows(first=0, count=COUNT, word="text"):
    return table_rows(first, count, word)


class Modes:
    by_id = ("--id-field", "id")

    def store(self, lines=None):
        """Loads the lines (the file of yesterday)."""
        return self.load(*self.by_id, self.file("old.csv", text_of(lines or rows())))

    def run_mode(self, mode, lines, *words, code=0):
        words = words or self.by_id
        name = f"new-{next(self._counter)}.csv"
        return self.load("--mode", mode, *words, "-j", 3, "--batch-size", 700,
                         self.file(name, text_of(lines)), code=code)

    def test_upsert(self):
        self.store()
        changed = [*rows(100, 50, "new"), *rows(150, COUNT)]
        outcome, work = self.run_mode("upsert", changed)
        self.assert_accounting(work, records=COUNT + 50, inserted=150, changed=50,
                               alreadyStored=COUNT - 150, rejectedByServer=0, mode="upsert")
        self.assertRegex(outcome.text, r"= inserted +150\n.*\+ modified +50\n.*\+ unchanged +8,850\n")
        self.check_stored(documents([*rows(0, 100), *changed]))
        total = support.run_record(work)["verification"]
        self.assertEqual((total["documentsBefore"], total["documentsAfter"], total["ok"]), (COUNT, COUNT + 150, True))

    def test_the_daily_append(self):
        """Yesterday's file, one line longer (docs/modes.md)."""
        path = self.file("log.csv", text_of(rows()))
        self.load("--mode", "upsert", *self.by_id, path)
        path.write_bytes(text_of(rows(0, COUNT + 1)))
        outcome, work = self.load("--mode", "upsert", *self.by_id, path)
        self.assert_accounting(work, records=COUNT + 1, inserted=1, changed=0, alreadyStored=COUNT)
        self.assertNotIn("warning", outcome.text.lower())
        self.check_stored(documents(rows(0, COUNT + 1)))
        self.shardload("verify", *self.target(), "--progress", "none", *self.by_id, "--content",
                       "--work-dir", self.scratch / "verify", path)
        # The same file once more is no error, and changes nothing.
        _, work = self.load("--mode", "upsert", *self.by_id, path)
        self.assert_accounting(work, inserted=0, changed=0, alreadyStored=COUNT + 1)

    def test_upsert_into_a_new_collection(self):
        _, work = self.run_mode("upsert", rows())
        self.assert_accounting(work, inserted=COUNT, changed=0, alreadyStored=0)
        self.check_stored(documents(rows()))

    def test_merge(self):
        self.store()
        self.database.t.update_many({"_id": {"$lt": 10}}, {"$set": {"more": 1}})
        lines = [f"{number},,new" for number in (3, 4, 20)] + ["100000,5,added", "100001,,", "6,,"]
        outcome, work = self.run_mode("merge", [*lines, "5,5,text 5"])
        self.assertRegex(outcome.text, r"= inserted with the record's fields only +2\n")
        self.assert_accounting(work, inserted=2, changed=3, alreadyStored=2)
        stored = {number: self.database.t.find_one({"_id": number}) for number in (3, 5, 20, 100000, 100001)}
        self.assertEqual(stored, {3: {"_id": 3, "k": 3, "t": "new", "more": 1},
                                  5: {"_id": 5, "k": 5, "t": "text 5", "more": 1},
                                  20: {"_id": 20, "k": 6, "t": "new"},
                                  100000: {"_id": 100000, "k": 5, "t": "added"}, 100001: {"_id": 100001}})

    def test_update(self):
        """As merge, without documents that hold only the fields of a file with changes. The refusal of the same file
        in another mode says what it did."""
        self.store()
        outcome, work = self.run_mode("update", ["3,,new", "100000,5,added", "5,5,text 5"], code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, changed=1, alreadyStored=1, rejectedByServer=1)
        self.assertIn("no stored document matches; --mode upsert or merge inserts such records", outcome.text)
        self.assertEqual(self.database.t.find_one({"_id": 3}), {"_id": 3, "k": 3, "t": "new"})
        self.assertEqual(self.database.t.count_documents({}), COUNT)
        again, _ = self.load(*self.by_id, self.scratch / f"new-{next(self._counter) - 2}.csv", code=support.EXIT_SOURCE)
        self.assertIn(": 0 stored, 2 matched a stored document, 1 rejected", again.err)

    def test_records_that_match_none_are_inserted(self):
        """From their file in rejected/. Inserting their source again would store matched documents twice."""
        self.database.t.insert_many([{"k": n} for n in range(5)])
        path = self.file("a.csv", "k,n\n" + "".join(f"{n},1\n" for n in range(6)))
        outcome, work = self.load("--mode", "update", "--match-fields", "k", path, code=support.EXIT_REJECTS)
        self.assertIn("with --mode insert instead of --mode update and --match-fields", outcome.out)
        for words in (), ("--again",):
            again, _ = self.load(*words, path, code=support.EXIT_SOURCE)
            self.assertRegex(again.err, f"5 of its records have matched .* beside .* rejected/ in .*{work}")
        self.load(work / "rejected/000001-a.csv")
        self.assertEqual(sorted((one["k"], one["n"]) for one in self.database.t.find()), [(n, 1) for n in range(6)])

    def test_a_column_with_a_dot_changes_one_field(self):
        """The fields beside it, which the table does not have, stay."""
        self.database.t.insert_many([{"_id": n, "k": {"nr": n, "plz": "old", "more": {"x": n}}} for n in range(300)]
                                    + [{"_id": 300, "k": 5}])
        lines = "id,k.plz,k.more.y,k.tags[0]\n" + "".join(f"{n},new,{n},t\n" for n in range(302))
        path = self.file("p.csv", lines)
        words = "--id-field", "id", "--types", "k.more.y=int"
        outcome, work = self.load("--mode", "update", *words, path, code=support.EXIT_REJECTS)
        self.assertNotIn("as a unit", outcome.err)
        self.assert_accounting(work, inserted=0, changed=300, rejectedByServer=2)
        self.assertRegex(outcome.text, "Cannot create field '.*' in element {k: 5}")
        _, work = self.load("--mode", "merge", *words, path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=1, changed=0, alreadyStored=300, rejectedByServer=1)
        changed = [{"_id": n, "k": {"nr": n, "plz": "new", "more": {"x": n, "y": n}, "tags": ["t"]}}
                   for n in range(300)]
        added = {"_id": 301, "k": {"plz": "new", "more": {"y": 301}, "tags": ["t"]}}
        self.assertEqual(list(self.database.t.find({"_id": {"$ne": 300}}).sort("_id")), [*changed, added])

    def test_match_fields_with_dots(self):
        self.database.t.insert_many([{"_id": n, "k": {"nr": n, "plz": "old"}} for n in range(9)])
        path = self.file("p.csv", "id,k.nr,k.new\n3,3,1\n4,5,1\n5,5,1\n5,5,2\n")
        outcome, work = self.load("--mode", "update", "--id-field", "id", "--match-fields", "_id,k.nr", path,
                                  code=support.EXIT_REJECTS)
        self.assert_accounting(work, changed=3, alreadyStored=0, rejectedByServer=1)
        self.assertRegex(outcome.err, '1 record of this run has the same match fields .* "k.nr" : 5')
        self.assertEqual(self.database.t.find_one({"_id": 3}), {"_id": 3, "k": {"nr": 3, "plz": "old", "new": 1}})

    def test_a_merge_into_embedded_documents_is_announced(self):
        self.database.t.insert_one({"_id": 1, "price": {"net": 1.5, "currency": "EUR"}})
        path = self.file("p.json", '{"_id": 1, "price": {"net": 9.5}}')
        warning = "replaces the embedded document price as a unit: stored fields that it does not have"
        outcome, _ = self.load("--mode", "replace", path)
        self.assertNotIn(warning, outcome.err)
        self.load("--mode", "merge", "--again", path, message=f"--mode merge {warning}")

    def test_replace(self):
        self.store()
        lines = [*rows(0, 500, "new"), *rows(COUNT - 5, 10, "other"), *rows(1000, 100)]
        outcome, work = self.run_mode("replace", lines, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, changed=505, alreadyStored=100, rejectedByServer=5)
        self.check_stored(documents([*rows(0, 500, "new"), *rows(500, COUNT - 505), *rows(COUNT - 5, 5, "other")]))
        found = support.reject_rows(work)
        starts = [len(text_of(lines[:505 + number])) for number in range(5)]
        self.assertEqual(sorted(int(row["offset"]) for row in found), starts)
        self.assertIn("no stored document matches", found[0]["reason"])
        self.assertRegex(outcome.text, r"= modified +505\n")
        outcome, _ = self.run_mode("replace", rows(COUNT, 5), code=support.EXIT_SOURCE)
        self.assertIn("Check --id-field or --match-fields, and the types of these fields", outcome.err)
        self.assertNotIn("validator", outcome.err)
        self.assertRegex(outcome.text, r"5  no stored document matches; .*\n +new-\d+\.csv, line 2\n")

    def test_delete(self):
        self.store()
        outcome, work = self.run_mode("delete", [*rows(0, 3000), *rows(COUNT, 7)])
        self.assert_accounting(work, inserted=0, changed=3000, alreadyStored=7, rejectedByServer=0)
        self.assertRegex(outcome.text, r"= deleted +3,000\n.*\+ not found +7\n")
        self.check_stored(documents(rows(3000, COUNT - 3000)))
        _, work = self.run_mode("delete", [*rows(0, 3000), *rows(COUNT, 7)])
        self.assert_accounting(work, changed=0, alreadyStored=3007)

    def test_values_are_no_operators(self):
        """A record whose _id looks like a query matches nothing but itself."""
        self.store(rows(0, 50))
        source = self.file("a.json", b'{"_id":{"$gt":0}}\n{"_id":{"a":{"b":0}}}\n'
                                     b'{"_id":{"$regex":"t","$options":""}}\n{"_id":null}\n{"n":1}\n')
        _, work = self.load("--mode", "delete", source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=5, changed=0, alreadyStored=1, rejectedByParser=4)
        self.assertEqual(self.database.t.count_documents({}), 50)

    def test_names_that_are_operators_or_paths(self):
        self.store(rows(0, 5))
        source = self.file("a.json", b'{"_id":1,"$set":{"t":5}}\n{"_id":2,"a.b":1}\n{"_id":3,"":1}\n')
        outcome, work = self.load("--mode", "merge", source, code=support.EXIT_SOURCE)
        self.assert_accounting(work, records=3, rejectedByParser=3)
        self.check_stored(documents(rows(0, 5)))
        self.assertIn("upsert and replace store the name as it is, but remove all other", outcome.err)

    def test_types_of_ids_are_kept(self):
        values = [5, 5.5, "x", bson.Int64(1 << 40), b"\1\2", bson.Decimal128("1.5"), {"a": 1, "b": 2}, bson.ObjectId()]
        made = [{"_id": one, "n": number} for number, one in enumerate(values)]
        source = self.file("a.bson", b"".join(bson.encode(one) for one in made))
        self.load("--mode", "upsert", source)
        self.check_stored(made)
        for number, one in enumerate(made):
            one["n"] = number + 100
        source.write_bytes(b"".join(bson.encode(one) for one in made))
        _, work = self.load("--mode", "upsert", source)
        self.assert_accounting(work, inserted=0, changed=len(made))
        self.check_stored(made)
        _, work = self.load("--mode", "delete", source)
        self.assert_accounting(work, changed=len(made))
        self.check_stored([])

    def test_fields_that_identify_no_document(self):
        self.store(rows(0, 50))
        before = sorted(self.stored())
        outcome, _ = self.run_mode("upsert", rows(0, 5), "--match-fields", "k", code=support.EXIT_USAGE)
        self.assertRegex(outcome.err, "has no unique index|is sharded by a key with")
        outcome, _ = self.run_mode("upsert", rows(0, 5), "--types", "auto", code=support.EXIT_USAGE)
        self.assertIn("name the columns with --id-field", outcome.err)
        self.assertEqual(sorted(self.stored()), before)

    def test_a_collection_that_does_not_exist(self):
        for mode in ("replace", "delete"):
            outcome, _ = self.run_mode(mode, rows(0, 5), code=support.EXIT_USAGE)
            self.assertIn("does not exist: there are no documents to match", outcome.err)
        self.assertNotIn("t", self.database.list_collection_names())

    def test_options_that_exclude_each_other(self):
        for words, message in ((["--mode", "upsert", "--route", "direct"], "goes through the rout"),
                               (["--mode", "delete", "--drop"], "leave out --drop"),
                               (["--match-fields", "k"], "not for --mode insert"),
                               (["--mode", "upsert", "--match-fields", "id"], "match by _id"),
                               (["--mode", "merge", "--sink", "null"], "into a cluster")):
            self.load(*self.by_id, *words, self.file("a.csv", text_of(rows(0, 3))),
                      code=support.EXIT_USAGE, message=message)

    def test_a_validator_refuses(self):
        self.store(rows(0, 50))
        self.database.command("collMod", "t", validator={"t": {"$ne": "bad"}})
        _, work = self.run_mode("upsert", [*rows(0, 20), "21,1,bad", "1000,1,bad"], code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, changed=0, alreadyStored=20, rejectedByServer=2)
        found = support.reject_rows(work)
        self.assertIn("code 121", found[0]["reason"])
        self.assertEqual([row["line"] for row in found], ["22", "23"])

    def test_the_rule_of_a_validator(self):
        """The reject has the line, and what the validator demands."""
        self.database.create_collection("t", validator={"$jsonSchema": {"properties": {"k": {"maximum": 6}}}})
        for mode in ("insert", "upsert"):
            source = self.file(f"{mode}.csv", text_of([*rows(0, 500), "9001,7,x", *rows(600, 5), "9002,8,y"]))
            outcome, work = self.load("--mode", mode, *self.by_id, source, code=support.EXIT_REJECTS)
            found = support.reject_rows(work)
            self.assertEqual([row["line"] for row in found], ["502", "508"])
            if self.is_at_least("5.0"):      # which explains why a document violates a validator
                self.assertIn('"propertyName" : "k"', found[0]["reason"])
                self.assertIn('"maximum" : 6', found[0]["reason"])
            self.assertIn(f"{source.name}, line 502", outcome.text)
            self.database.t.delete_many({})

    def test_records_of_the_same_document(self):
        """One of them remains; which one is not defined, and each record is counted."""
        self.store(rows(0, 10))
        lines = [f"5,1,version {number}" for number in range(3000)]
        outcome, work = self.run_mode("upsert", lines)
        self.assertIn('2,999 records of this run have the same match fields as another record, but other values, such '
                      'as { "_id" : 5 }. It is not defined which of them is stored', outcome.err)
        figures = support.run_record(work)["accounting"]
        self.assertEqual((figures["records"], figures["inserted"]), (3000, 0))
        self.assertRegex(self.database.t.find_one({"_id": 5})["t"], "^version")
        equal = self.file("equal.json", b'{"_id":7,"t":1}\n{"_id":7.0,"t":2}\n'
                          b'{"_id":0.5}\n{"_id":{"$numberDecimal":"0.50"},"t":3}\n')
        outcome, _ = self.load("--mode", "upsert", equal)
        self.assertIn("2 records of this run have the same match fields", outcome.err)
        lines = [f"{1000 + number % 3},1,new" for number in range(6000)]
        outcome, work = self.run_mode("upsert", lines)
        self.assertNotIn("not defined", outcome.err)
        self.assert_accounting(work, records=6000, inserted=3, rejectedByServer=0)


class Standalone(Modes, support.ClusterCase, server="mongod"):
    def test_a_unique_index(self):
        self.database.t.create_index([("k", 1), ("id", 1)], unique=True)
        words = "--match-fields", "id,k"
        _, work = self.run_mode("upsert", rows(), *words)
        self.assert_accounting(work, inserted=COUNT)
        _, work = self.run_mode("upsert", [*rows(0, 10, "new"), *rows(10)], *words)
        # A server that matches by other fields than _id does not notice that nothing changes.
        self.assert_accounting(work, inserted=10, changed=COUNT, alreadyStored=0)
        self.assertEqual(self.database.t.count_documents({}), COUNT + 10)
        self.assertEqual(self.database.t.find_one({"id": 3})["t"], "new 3")
        self.assertIsInstance(self.database.t.find_one({"id": 3})["_id"], bson.ObjectId)
        _, work = self.run_mode("merge", ["3,3,merged", "50000,1,x"], *words)
        self.assert_accounting(work, inserted=1, changed=1)
        _, work = self.run_mode("delete", rows(0, 4), *words)
        self.assert_accounting(work, changed=4)

    def test_every_other_record_matches(self):
        """The rejects of a batch are found by one more command."""
        def updates():
            return self.client.admin.command("serverStatus")["metrics"]["commands"]["update"]["total"]
        self.store(rows(0, COUNT)[::2])
        before = updates()
        _, work = self.run_mode("replace", rows(0, COUNT, "new"), code=support.EXIT_REJECTS)
        self.assert_accounting(work, changed=COUNT // 2, rejectedByServer=COUNT // 2)
        self.assertLess(updates() - before, 100)
        self.assertEqual([int(row["line"]) for row in support.reject_rows(work)], list(range(3, COUNT + 2, 2)))
        self.check_stored(documents(rows(0, COUNT, "new")[::2]))

    def test_another_id_of_the_stored_document(self):
        self.database.t.create_index("k", unique=True)
        self.database.t.insert_one({"_id": 1, "k": 5})
        source = self.file("a.json", b'{"_id":2,"k":5,"n":1}\n{"_id":3,"k":6}\n')
        _, work = self.load("--mode", "upsert", "--match-fields", "k", source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=1, rejectedByServer=1)
        self.assertIn("code 66", support.reject_rows(work)[0]["reason"])

    def test_another_unique_index_is_in_the_way(self):
        self.store(rows(0, 10))
        self.database.t.create_index("t", unique=True)
        _, work = self.run_mode("upsert", ["100,1,text 5", "101,1,free", "3,3,text 4"], code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=1, rejectedByServer=2)
        self.assertIn("code 11000", support.reject_rows(work)[0]["reason"])

    def test_a_name_with_a_dot_matches_no_embedded_field(self):
        """A replaced document would not be found again."""
        self.database.t.create_index("a.b", unique=True)
        self.database.t.insert_one({"_id": 1, "a": {"b": 5}})
        source = self.file("a.json", b'{"a.b":5,"a":{"b":5}}\n{"a.b":5}\n{"a":{"b":6}}\n')
        for mode in "upsert", "delete":
            _, work = self.load("--mode", mode, "--match-fields", "a.b", source, code=support.EXIT_REJECTS)
            self.assert_accounting(work, rejectedByParser=2)
        self.check_stored([{"_id": 1, "a": {"b": 5}}])

    def test_a_match_field_has_one_key_in_all_files(self):
        """A name is not nested in a file whose names contradict it; a record without the field would match any
        document. Texts in archives are read later."""
        self.database.t.create_index("k.id", unique=True)
        self.database.t.insert_many([{"k": {"id": n}} for n in (1, 2, 9)])
        nested, flat = self.file("a.csv", b"k.id,v,w\n1,a,\n"), self.file("b.csv", b"k.id,v,w,v.y\n3,c,,1\n")
        pack = self.scratch / "p.tar"
        subprocess.run(["tar", "cf", pack, "-C", self.scratch, "a.csv", "b.csv"], check=True)
        for sources, code in (([nested, flat], support.EXIT_USAGE), ([flat, nested], support.EXIT_USAGE),
                              ([pack], support.EXIT_SOURCE)):
            for mode in "delete", "merge":
                self.load("--mode", mode, "--match-fields", "k.id", *sources, code=code,
                          message="stores k.id as the field k")
        self.assertEqual(self.database.t.count_documents({"k.id": {"$in": [2, 9]}, "v": {"$exists": False}}), 2)

    def test_a_partial_index_identifies_no_document(self):
        self.database.t.create_index("id", unique=True, partialFilterExpression={"id": {"$gt": 5}})
        outcome, _ = self.run_mode("upsert", rows(0, 5), "--match-fields", "id", code=support.EXIT_USAGE)
        self.assertIn("has no unique index of these fields", outcome.err)

    def test_a_key_that_some_documents_lack_and_that_has_an_index(self):
        """The messages lead to a load that leaves the index as it is."""
        self.database.t.create_index("sku")
        self.database.t.insert_many([{"other": 1}, {"other": 2}, {"sku": None}, {"sku": "a", "n": 1}])
        words = "--mode", "merge", "--match-fields", "sku"
        path = self.file("a.csv", "sku,n\na,2\nb,3\n")
        outcome, _ = self.load(*words, path, code=support.EXIT_USAGE)
        self.assertNotIn("Drop", outcome.err)
        index = support.json.loads(re.search("Add --index '([^']+)'", outcome.err.replace("\n", " "))[1])
        self.load(*words, "--index", support.json.dumps(index), path, code=support.EXIT_CLUSTER,
                  message='if they lack the fields, add "sparse": true')
        self.database.t.delete_one({"sku": None})
        _, work = self.load(*words, "--index", support.json.dumps({**index, "sparse": True}), path)
        self.assert_accounting(work, inserted=1, changed=1)
        self.assertEqual(self.database.t.index_information()["sku_1"]["key"], [("sku", 1)])
        self.assertEqual(sorted(one["n"] for one in self.database.t.find({"sku": {"$in": ["a", "b"]}})), [2, 3])

    def test_an_index_with_another_collation_identifies_no_document(self):
        """Abc would match abc and ABC, which are different to the index."""
        collation = {"locale": "en", "strength": 2}
        self.database.drop_collection("t")
        self.database.create_collection("t", collation=collation)
        self.database.t.create_index("k", unique=True, collation={"locale": "simple"})
        self.database.t.insert_many([{"k": "abc"}, {"k": "ABC"}])
        self.run_mode("delete", ["1,Abc,x"], "--match-fields", "k", code=support.EXIT_SOURCE)
        self.assertEqual(self.database.t.count_documents({}), 2)
        simple = '{"key": {"k": 1}, "unique": true, "name": "simple", "collation": {"locale": "simple"}}'
        outcome, _ = self.run_mode("upsert", ["1,Abc,x"], "--match-fields", "k", "--index", simple,
                                   code=support.EXIT_USAGE)
        self.assertIn("has no unique index of these fields", outcome.err)
        self.database.t.delete_many({})
        self.database.t.create_index("k", name="same", unique=True)
        self.database.t.insert_one({"k": "abc"})
        self.run_mode("delete", ["1,Abc,x"], "--match-fields", "k")
        self.assertEqual(self.database.t.count_documents({}), 0)


    def test_a_unique_index_of_the_load(self):
        """Updates by a business key: the message gives the option that is missing."""
        old = self.file("old.json", b'{"sku":"a","n":1}\n{"sku":"b","n":2}\n')
        words = "--mode", "upsert", "--match-fields", "sku"
        outcome, _ = self.load(*words, old, code=support.EXIT_USAGE)
        index = re.search("Add --index '([^']+)'", outcome.err.replace("\n", " "))[1]
        self.assertNotIn("match by _id", outcome.text)
        self.load(*words, "--index", index, old)
        self.assertTrue(self.database.t.index_information()["sku_1"]["unique"])
        new = self.file("new.csv", b"sku,n\nb,5\nc,6\n")
        _, work = self.load(*words, new)
        self.assert_accounting(work, inserted=1, changed=1, rejectedByServer=0)
        self.assertEqual({one["sku"]: one["n"] for one in self.database.t.find()}, {"a": 1, "b": 5, "c": 6})
        changed = self.file("changed.csv", b"sku,n\nb,7\n")
        self.load("--mode", "update", "--match-fields", "sku", changed)
        for path in new, changed:
            outcome = self.shardload("verify", *self.target(), "--progress", "none", path, code=support.EXIT_SOURCE)
            self.assertIn("have other _ids than the positions of the records", outcome.err)
            self.assertIn("other than _id cannot be verified", outcome.err)

    def test_verify_after_duplicates_were_merged(self):
        """Documents of another program are not reported as extra, and those that they replace not as missing."""
        self.database.t.create_index("sku", unique=True)
        self.database.t.insert_many([{"sku": n} for n in range(20)])
        path = self.file("a.csv", "sku,v\n" + "".join(f"{n},1\n" for n in range(10, 30)))
        self.load(path, code=support.EXIT_REJECTS)
        self.load("--mode", "merge", "--match-fields", "sku", path)
        for words in (), ("--content",):
            self.shardload("verify", *self.target(), "--progress", "none", *words, path,
                           code=support.EXIT_VERIFICATION, message="10 of its 20 documents")

    def test_a_unique_index_rejects_duplicates(self):
        source = self.file("a.json", b'{"_id":1,"k":5}\n{"_id":2,"k":5}\n{"_id":3,"k":6}\n')
        _, work = self.load("--index", '{"key": {"k": 1}, "unique": true, "name": "by k"}',
                            "--index", '{"key": {"n": 1}, "sparse": true, "expireAfterSeconds": 60}',
                            source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=2, rejectedByServer=1)
        found = self.database.t.index_information()
        self.assertTrue(found["by k"]["unique"])
        self.assertEqual((found["n_1"]["sparse"], found["n_1"]["expireAfterSeconds"]), (True, 60))

    def test_the_unique_index_is_dropped_during_the_load(self):
        """Then two upserts at the same time can insert two documents, which no count shows."""
        self.database.t.create_index("id", unique=True)
        between = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(between.close)
        between.on_batch(2, proxy.call(lambda: self.database.t.drop_index("id_1")))
        words = ("--mode", "upsert", "--match-fields", "id", "-j", 1, "--batch-size", 10,
                 self.file("a.csv", text_of(rows(0, 50))))
        _, work = self.load(*words, through=between, code=support.EXIT_VERIFICATION,
                            message="t has no unique index, of its collation, of the match fields, id: if another")
        self.database.t.create_index("id", unique=True)
        self.shardload(*self.load_words(work, "--resume", *words))
        self.assertEqual(self.database.t.count_documents({}), 50)

    def test_a_unique_index_that_stored_documents_do_not_allow(self):
        self.database.t.insert_many([{"w": 1}, {"w": 1}])
        outcome, _ = self.load("--index", '{"key": {"w": 1}, "unique": true}', "--mode", "merge", "--match-fields", "w",
                               self.file("x.csv", "w,v\n1,1\n"), code=support.EXIT_CLUSTER,
                               message=("have the same value of the key, so no unique index of it is possible",
                                        "--resume cannot complete this load"))
        self.assertNotIn("give the same command", outcome.err)


class ReplicaSet(Standalone, server="replica"):
    def test_ids_of_another_type(self):
        """Another program has stored the text "17": records match it if their type is inferred."""
        self.database.t.insert_many([{"_id": str(n)} for n in range(20)])
        words = "--mode", "delete"
        table, lines = self.file("t.csv", "id,v\n17,1\n18,2\n"), self.file("t.json", '{"_id": 17}\n')
        message = "the field _id of .* has the type string, and that of the records has the type number"
        self.database.other.insert_one({"_id": bson.ObjectId()})
        values = {"5f0a00000000000000000000": "--types id=objectid", "x17": "such as x17 cannot be read as objectId",
                  "0": "such as 0 cannot be read as objectId"}
        for mode in ("delete", "replace", "upsert", "merge"):
            for value, advice in values.items():
                outcome, _ = self.load("--mode", mode, "--id-field", "id", self.file("o.csv", f"id,v\n{value},1\n"),
                                       collection="other", code=support.EXIT_SOURCE)
                self.assertRegex(outcome.err.replace("\n", " "), f"has the type objectId, .*{advice}")
        self.assertEqual(self.database.other.count_documents({}), 1)
        exported = self.file("e.csv", "id,v\nObjectId(5f0a00000000000000000000),1\n")
        self.load("--mode", "upsert", "--id-field", "id", "--types", "text", exported, collection="other",
                  code=support.EXIT_SOURCE, message="--types id=objectid")
        self.load("--mode", "upsert", "--id-field", "id", "--types", "v=int", self.file("o.csv", "id,v\n0,1\n"),
                  collection="other", code=support.EXIT_SOURCE, message="such as 0 cannot be read as objectId")
        self.load("--mode", "merge", "--id-field", "id", exported, collection="other")
        self.assertEqual(self.database.other.count_documents({"_id": {"$type": "objectId"}}), 2)
        self.database.other.delete_one({"v": 1})
        self.load("--mode", "upsert", "--id-field", "id", "--types", "id=int", self.file("o.csv", "id,v\n0,1\n"),
                  collection="other", message="has the type objectId")
        outcome, work = self.load(*words, lines, code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err.replace("\n", " "), message)
        self.assertNotIn("--resume", outcome.err)
        self.assert_accounting(work, alreadyStored=1)
        self.assertEqual(self.database.t.count_documents({}), 20)
        self.load("--mode", "replace", "--id-field", "id", table)
        self.load(*words, "--id-field", "id", table)
        self.assertEqual(self.database.t.count_documents({}), 18)
        self.load("--mode", "upsert", self.file("new.json", '{"_id": 17}\n'), message="has the type number")
        self.load(*words, lines, message="has the type string: these do not match the records, which have the")
        self.assertEqual(self.database.t.count_documents({}), 18)

    def test_ids_of_another_type_after_an_empty_file(self):
        """A folder of Spark begins with the empty file _SUCCESS: the refusal is the same as without it, and no record
        is stored a second time."""
        self.database.t.insert_one({"_id": bson.ObjectId("5f0a00000000000000000000")})
        self.file("spark/_SUCCESS", "")
        folder = self.file("spark/part-0.csv", "id,v\n5f0a00000000000000000000,1\n").parent
        self.load("--mode", "upsert", "--id-field", "id", folder, code=support.EXIT_SOURCE,
                  message="Declare the stored type: --types id=objectid")
        self.assertEqual(self.database.t.count_documents({}), 1)


class Sharded(Modes, support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear_balancer)

    def test_the_filter_contains_the_shard_key(self):
        source = self.file("a.csv", text_of(rows()))
        self.load(*self.by_id, "--shard-key", '{"k": 1}', source)
        outcome, _ = self.run_mode("upsert", rows(0, 5), code=support.EXIT_USAGE)
        self.assertIn("is sharded by a key with k, which is not among the fields that match, _id", outcome.err)
        self.assertIn("--match-fields _id,k", outcome.err)
        for mode in ("merge", "upsert"):
            _, work = self.run_mode(mode, [*rows(0, 10, mode), *rows(10)], *self.by_id, "--match-fields", "_id,k")
            self.assert_accounting(work, changed=10, rejectedByServer=0)
        self.check_stored(documents([*rows(0, 10, "upsert"), *rows(10)]))

    def test_a_shard_key_that_is_not_unique(self):
        """The messages lead to a load that works."""
        old = self.file("old.csv", b"nr,region,x\n1,w,a\n2,e,b\n")
        new = self.file("new.csv", b"nr,region,x\n1,w,c\n3,e,b\n")
        key, unique = '{"region": 1, "nr": 1}', '{"key": {"region": 1, "nr": 1}, "unique": true}'
        words = "--mode", "upsert", "--match-fields", "nr,region"
        refused = {"code": support.EXIT_USAGE}
        before = self.collections()
        self.load(*words, "--shard-key", key, "--index", unique, old, message="the shard key can be unique", **refused)
        outcome, _ = self.load(*words, "--shard-key", key, old, **refused)
        found = re.search("Give --shard-key '([^']+)'", outcome.err)[1]
        self.assertEqual((support.json.loads(found), self.collections()), (support.json.loads(unique), before))
        self.load(*words, "--shard-key", found, old)
        self.load("--drop", "--shard-key", key, old)
        self.load(*words, "--shard-key", unique, new, code=support.EXIT_CLUSTER, message='leave "unique" out')
        outcome, _ = self.load(*words, new, **refused)
        self.assertNotIn("Drop", outcome.err)
        _, work = self.load(*words, "--index", re.search("--index '([^']+)'", outcome.err)[1], new)
        self.assert_accounting(work, inserted=1, changed=1)
        outcome, _ = self.load(*words, "--drop", "--shard-key", '{"region": 1}', old, **refused)
        _, work = self.load(*words, "--drop", "--shard-key", '{"region": 1}', "--index",
                            re.search("Add --index '([^']+)'", outcome.err)[1], old)
        self.assert_accounting(work, inserted=2)

    def test_a_key_of_another_program_without_a_unique_index(self):
        """Its documents are updated and deleted, and its index stays; a record that several of them match changes
        none, and the message for modes that insert leads to a load, too."""
        text = "land,nr,v\n" + "".join(f"DE,{n},new\n" for n in range(1201))
        words = ("--match-fields", "land,nr", "--types", "land=text,nr=int", "--batch-size", 700, "--again",
                 self.file("a.csv", text))
        for key in None, {"land": 1, "nr": 1}, {"land": "hashed"}:
            self.database.drop_collection("t")
            if key:
                self.shard(key)
            self.database.t.create_index([("land", 1), ("nr", 1)])
            self.database.t.insert_many([{"land": "DE", "nr": n, "v": "old"} for n in range(1200)])
            self.database.t.insert_many([{"land": "DE", "v": "none"}, {"land": "DE", "v": "none"},
                                         {"land": "DE", "nr": 5.0, "v": "twice"}])
            if not key:
                self.database.t.insert_one({"land": ["DE", "AT"], "nr": 7, "v": "twice"})
            indexes, doubtful = self.database.t.index_information(), [5] if key else [5, 7]
            for mode, other in ("merge", "update"), ("upsert", "replace"):
                outcome, _ = self.load("--mode", mode, *words, code=support.EXIT_USAGE)
                self.assertIn(f"give --mode {other}:", outcome.err)
            for changed in 1200 - len(doubtful), 0:
                outcome, work = self.load("--mode", "update", *words,
                                          code=support.EXIT_REJECTS)
                self.assert_accounting(work, changed=changed, rejectedByServer=1 + len(doubtful))
                self.assertIn("a.csv, line 7: several stored documents match", outcome.err)
                self.assertEqual([one["nr"] for one in self.database.t.find({"v": "old"}).sort("nr")], doubtful)
            between = proxy.Proxy(support.port_of(self.uri))
            self.addCleanup(between.close)
            between.on_batch(1, proxy.cut_reply(8))
            self.load("--mode", "delete", *words, through=between,
                      code=support.EXIT_REJECTS)
            self.assertEqual(self.database.t.count_documents({"v": "new"}), 0)
            self.assertEqual(self.database.t.count_documents({}), 2 + 2 * len(doubtful))
            self.assertEqual(self.database.t.index_information(), indexes)

    def test_a_unique_index_that_one_shard_lacks(self):
        """A build that duplicates on one shard prevent leaves no index on the others, and an index of some shards
        does not identify a document."""
        self.shard({"k": "hashed"})
        self.database.t.insert_many([{"k": n} for n in (*range(100), 1)])
        source = self.file("new.csv", b"k,n\n1,5\n")
        words = "--mode", "merge", "--match-fields", "k"
        self.load(*words, "--index", '{"key": {"k": 1}, "unique": true}', source, code=support.EXIT_CLUSTER,
                  message="index k_1 is removed from the shards that could build it")
        shards = [client[self.database_name].t for client in self.shard_clients().values()]
        self.assertEqual([shard.name for shard in shards if "k_1" in shard.index_information()], [])
        self.database.t.delete_one({"k": 1})
        for shard in shards:
            shard.create_index("k", unique=True)
            outcome, _ = self.load(*words, source, code=support.EXIT_USAGE)
            self.assertRegex(outcome.err, "has its unique index k_1 on some shards only|has no unique index")
            shard.drop_index("k_1")
        index = re.search("Add --index '([^']+)'", outcome.err)[1]
        self.load(*words, "--index", index, source)
        server = proxy.Refusing(support.port_of(self.uri), "$indexStats", executed=False)
        _, work = self.load(*words, "--again", source, through=server, message="its unique index k_1 is not known")
        self.assert_accounting(work, alreadyStored=1)

    def test_a_business_key(self):
        source = self.file("a.json", b'{"sku":"a","n":1}\n{"sku":"b","n":2}\n')
        words = "--mode", "upsert", "--match-fields", "sku"
        outcome, _ = self.load(*words, source, code=support.EXIT_USAGE, message="would be sharded by a key with _id")
        key = re.search("--shard-key '([^']+)'", outcome.err.replace("\n", " "))[1]
        self.assertNotIn("--match-fields sku,_id", outcome.text)
        self.load(*words, "--index", key, source, code=support.EXIT_USAGE, message="sharded by a key with _id")
        self.load("--index", key, source, code=support.EXIT_USAGE, message="begins with the fields of the shard key")
        self.load(*words, "--shard-key", key, source)
        _, work = self.load(*words, self.file("new.csv", b"sku,n\nb,5\nc,6\n"))
        self.assert_accounting(work, inserted=1, changed=1, rejectedByServer=0)
        outcome, _ = self.load("--mode", "upsert", "--match-fields", "n", source, code=support.EXIT_USAGE)
        self.assertIn("--match-fields n,sku", outcome.err)
        self.load("--mode", "upsert", "--id-field", "sku", source, code=support.EXIT_USAGE,
                  message="leave out --id-field; modes other than insert then match with --match-fields sku")
