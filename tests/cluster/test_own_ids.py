# SPDX-License-Identifier: Apache-2.0
"""Loads of documents that bring an _id of their own: of any type, with duplicates in the source and
on the server, into every kind of deployment; and their verification."""
import collections

import own_ids_making as making
import support


class Standalone(support.ClusterCase, server="mongod"):
    def check_stored(self, made, message=""):
        found = collections.Counter(making.found(self.stored(), made))
        expected = collections.Counter(making.as_stored(one) for one in made)
        self.assertEqual(found - expected, {}, f"{message}: not expected")
        self.assertEqual(expected - found, {}, f"{message}: missing")

    def total(self, work):
        return support.run_record(work)["verification"]

    def verify(self, source, *words, code=0):
        work = self.scratch / f"verify-{next(self._counter)}"
        return self.shardload("verify", *self.target(), "--progress", "none", "--work-dir", work,
                              *words, source, code=code)

    def test_ids_of_every_type_are_kept(self):
        made = making.documents(30000)
        source = self.file("a.bson", making.dump(made))
        outcome, work = self.load("-j", 3, "--batch-size", 700, source)
        self.assert_accounting(work, records=30000, inserted=30000, identicalDuplicates=0)
        self.check_stored(made)
        total = self.total(work)
        self.assertEqual((total["documentsBefore"], total["documentsAfter"], total["ok"]), (0, 30000, True))
        self.assertNotIn("WARNING", outcome.text)
        for words in ([], ["--content"]):
            self.verify(source, *words)

    def test_duplicates_in_the_source_are_rejects(self):
        made = making.documents(3000)
        twin, other = made[300], {**made[600], "text": "another"}
        source = self.file("a.bson", making.dump([*made, twin, other, twin]))
        outcome, work = self.load("-j", 2, "--batch-size", 100, source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3003, inserted=3000, alreadyStored=0,
                               rejectedByServer=3, identicalDuplicates=2)
        self.assertRegex(outcome.text, r"of these, identical duplicates +2\n")
        rows = support.reject_rows(work)
        # All records are in one block, so one thread has sent them in order.
        self.assertEqual(sorted(int(row["offset"]) for row in rows),
                         [len(making.dump([*made, *more])) for more in ([], [twin], [twin, other])])
        reasons = " ".join(row["reason"] for row in rows)
        self.assertIn("an identical document is stored", reasons)
        self.assertIn("or another loader stores the same sources now", reasons)
        self.assertIn("another document has this _id", reasons)
        self.assertEqual(self.database.t.count_documents({}), 3000)

    def test_duplicates_in_one_batch(self):
        made = making.documents(60)
        source = self.file("a.bson", making.dump([*made, *made]))
        _, work = self.load("-j", 1, source, code=support.EXIT_REJECTS)
        with_id = sum("_id" in one for one in made)
        self.assert_accounting(work, records=120, inserted=120 - with_id, rejectedByServer=with_id,
                               identicalDuplicates=with_id)

    def test_a_document_in_the_way(self):
        made = making.documents(1000)
        self.database.t.insert_one({"_id": made[3]["_id"], "foreign": True})
        self.database.t.insert_one({"_id": float(made[10]["_id"]) if isinstance(
            made[10]["_id"], (int, float)) else made[10]["_id"], "foreign": True})
        source = self.file("a.bson", making.dump(made))
        _, work = self.load(source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=1000, inserted=998, rejectedByServer=2, identicalDuplicates=0)
        for row in support.reject_rows(work):
            self.assertIn("another document has this _id: ", row["reason"])
        self.assertEqual(self.total(work)["documentsBefore"], 2)
        outcome = self.verify(source, "--content", code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.text, r"different")

    def test_an_id_of_another_numeric_type_is_the_same_id(self):
        self.database.t.insert_one({"_id": 5.0})
        source = self.file("a.bson", making.dump([{"_id": 5}, {"_id": 6}]))
        _, work = self.load(source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=1, rejectedByServer=1, identicalDuplicates=0)

    def test_loading_again_finds_the_documents(self):
        made = making.documents(5000)
        source = self.file("a.bson", making.dump(made))
        self.load(source)
        outcome, _ = self.load(source, code=None)
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("--again", outcome.err)
        _, work = self.load("--again", source)
        self.assert_accounting(work, records=5000, inserted=0, alreadyStored=5000)
        self.check_stored(made)

    def test_the_origin_of_the_ids_is_remembered(self):
        number = 0

        def load(*words, again=False, json=False, code=0):
            nonlocal number
            number += 1
            path = self.file(f"{number}.json", b'{"_id":%d}\n' % number) if json else self.file(
                f"{number}.csv", f"id,k\n{number},{number + 1}\n")
            before = self.database.t.count_documents({})
            if code and not again:
                self.shardload("plan", *self.target(), *words, path, code=code)
            outcome, _ = self.load(*words, *["--again"] * again, path, code=code)
            if code:
                self.assertEqual(self.database.t.count_documents({}), before)
            return outcome.err.replace("\n", " ")

        refused = support.EXIT_SOURCE
        load("--id-field", "id")
        message = load(code=refused)
        self.assertIn("have taken the _id from --id-field id, and this load takes it from the position of the record",
                      message)
        self.assertIn("Give --id-field id. For records that are not stored yet, --again loads them", message)
        for mode in "insert", "upsert", "delete":
            self.assertIn("this load takes it from --id-field k:",
                          load("--mode", mode, "--id-field", "k", code=refused))
        load(json=True)                          # their _id may be the same field
        load("--mode", "merge", "--id-field", "id")
        self.load("--mode", "merge", "--id-field", "ID", self.file("capitals.csv", "ID,k\n1,5\n"))
        load(again=True)
        load()                                   # both are known now
        load("--id-field", "id,k", code=refused)
        load("--drop")
        self.assertIn("Leave out --id-field. For", load("--id-field", "id", code=refused))
        self.assertIn("Give --match-fields id instead. For", load("--mode", "merge", "--id-field", "id", code=refused))
        load("--mode", "upsert", json=True)      # of documents that were exported
        load(json=True, code=refused)
        self.database["t.sources"].update_one({"_id": "counter"}, {"$unset": {"ids": 1}})
        load("--id-field", "id")                 # a registry that is older than the list
        load()

    def test_ids_that_no_server_stores(self):
        # Some of these _ids cannot be a value in a filter, so they must not be searched for.
        source = self.file("a.json", b"".join(b'{"_id":%s}\n' % one for one in (
            b'1', b'{"$a":1}', b'{"$ref":"c"}', b'{"$ref":"c","$id":1}', b'[1]', b'"text"',
            b'{"$undefined":true}', b'{"$regex":"t","$options":""}')))
        _, work = self.load(source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=8, inserted=3, rejectedByServer=5)
        _, work = self.load("--again", source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=8, inserted=0, alreadyStored=3, rejectedByServer=5)
        outcome = self.verify(source, "--content")  # the load has named these
        self.assertRegex(outcome.text, r"total +8 +3 +5 +0 +0")

    def test_foreign_documents_end_in_exit_5(self):
        made = making.documents(20000)
        source = self.file("a.bson", making.dump(made))
        running = self.start("shardload", *self.load_words("work", "--rate-limit", 9000, "--batch-size", 100, source))
        self.wait_for_documents(running, 500)
        self.database.t.insert_one({"_id": "foreign"})
        running.wait().expect(support.EXIT_VERIFICATION, "1 document is too many")

    def test_a_load_is_not_divided_by_shards(self):
        source = self.file("a.bson", making.dump(making.documents(5)))
        outcome, _ = self.load("--only-shards", "shard0", source, code=support.EXIT_USAGE)
        self.assertIn("divide these sources with --part", outcome.err)

    def test_verify_finds_differences(self):
        made = making.documents(2000)
        source = self.file("a.bson", making.dump(made))
        self.load(source)
        self.database.t.update_one({"_id": made[0]["_id"]}, {"$set": {"text": "changed"}})
        self.verify(source)
        outcome = self.verify(source, "--content", code=support.EXIT_VERIFICATION)
        self.assertIn("byte 0", outcome.text)
        self.assertIn("different", outcome.text)
        self.database.t.delete_one({"_id": made[3]["_id"]})
        for words in ([], ["--content"]):
            outcome = self.verify(source, *words, code=support.EXIT_VERIFICATION)
        self.assertIn("missing", outcome.text)
        self.database.t.insert_many([{"_id": "extra 1"}, {"_id": "extra 2"}])
        for words in ([], ["--content"]):
            self.verify(source, *words, code=support.EXIT_VERIFICATION)

    def test_verify_finds_strays_beside_the_documents_of_other_sources(self):
        made = making.documents(3000)
        first, second, third = (self.file(f"{n}.bson", making.dump(made[n * 1000:n * 1000 + 1000])) for n in range(3))
        self.load(first, second)
        for words in ([], ["--content"]):
            outcome = self.verify(first, *words)
            self.assertNotIn("documents more than these sources", outcome.err)
        self.database.t.insert_many([{"_id": "stray 1"}, {"_id": "stray 2"}])
        for words in ([], ["--content"]):
            outcome = self.verify(first, *words, code=support.EXIT_VERIFICATION)
            self.assertIn("holds 2 documents that no record of the sources has, in addition to "
                          "those of the other registered sources", outcome.err)
        # The total of a source whose load has not ended is not known.
        self.load(third, code=None)
        self.database["t.sources"].update_one({"name": {"$regex": "2.bson"}}, {"$set": {"state": "started"}})
        outcome = self.verify(first, "--content")
        self.assertRegex(outcome.err, "[0-9]{4} documents more than these sources; they may belong to the other")
        self.database.t.delete_many({"_id": {"$regex": "stray"}})
        self.database["t.sources"].update_one({"name": {"$regex": "0.bson"}}, {"$set": {"state": "started"}})
        for words in ([], ["--content"]):  # right documents were called extra
            self.verify(first, *words)
        for part in "1/2", "2/2":          # as were those that an upsert in parts had found stored
            self.shardload("load", *self.target(), "--mode", "upsert", "--again", "--part", part, first, code=None)
        self.verify(first, "--content")

    def test_repeated_records_do_not_hide_a_stray(self):
        """Beside another source they did: a sum over _ids may have one of its _ids in place of the repeated one."""
        made = making.documents(3000)
        large = {"_id": "large", "text": "x" * (2 << 20)}  # records after it are in another block
        source = self.file("a.bson", making.dump([*made, large, *made[:300]]))
        self.load(source, code=support.EXIT_REJECTS)
        for words, found in (([], "3,101"), (["--content"], "3,301")):
            outcome = self.verify(source, *words)
            self.assertRegex(outcome.text, f"total +3,301 +{found} +200 +0 +[-0]")
        self.assertIn("200 records are missing: another record of the sources has an identical document", outcome.err)
        for other in (False, True):
            if other:
                self.load(self.file("b.bson", making.dump([{"_id": n} for n in range(10 ** 6, 1060000)])))
            self.database.t.insert_one({"_id": "stray"})
            outcome = self.verify(source, "--content", code=support.EXIT_VERIFICATION)
            self.assertIn("holds 1 document that no record of the sources has", outcome.err)
            self.database.t.delete_one({"_id": "stray"})

    def test_stored_documents_that_a_mode_matches_are_those_of_its_source(self):
        """`verify` would accept as many unknown documents as an upsert had found stored, and after a
        second upsert of one file find documents without record when another one is verified."""
        lines = [[f"{number},{number % 7}" for number in range(first, first + 60)] for first in (100, 200)]
        a, b = (self.file(f"{name}.csv", "\n".join(["id,n", *of, ""])) for name, of in zip("ab", lines))
        made = [{"_id": int(one[:3]), "n": int(one[4:])} for one in [*lines[0], *lines[1]]]
        data, others = self.database.t, [{"_id": number} for number in range(3)]

        def check():
            for words in ([a], [b], [a, b], ["--content", a], ["--content", b], ["--content", a, b]):
                outcome = self.verify(words[-1], "--id-field", "id", *words[:-1])
                self.assertIn("3 documents are from other programs", outcome.text)
                self.assertNotIn("warning", outcome.err)
                data.insert_many([{"_id": number} for number in range(10, 15)])
                outcome = self.verify(words[-1], "--id-field", "id", *words[:-1], code=support.EXIT_VERIFICATION)
                self.assertIn("holds 5 documents that no record of the sources has", outcome.err)
                data.delete_many({"_id": {"$gte": 10, "$lt": 15}})

        for mode, before, loads in (("upsert", 0, [[a], [b], [a]]), ("upsert", 90, [[a, b], [a, b]]),
                                    ("upsert", 90, [[b], [a]]), ("merge", 120, [[a, b]]), ("update", 120, [[b], [a]])):
            with self.subTest(mode=mode, before=before, loads=len(loads)):
                data.drop()
                self.database["t.sources"].drop()
                data.insert_many([*others, *made[:before]])
                for sources in loads:
                    self.load("--mode", mode, "--id-field", "id", *sources)
                check()

    def test_a_table_and_json_one_after_the_other(self):
        table, documents = self.file("a.csv", "id,n\n1,x\n2,y\n"), self.file("b.json", '{"id": 3}\n{"id": 4}\n')
        for source in (table, documents):
            self.load("--id-field", "id", source)
        for source in (table, documents):
            outcome = self.verify("--content", "--id-field", "id", source)
            self.assertIn("1 other source of the collection was not named", outcome.text)
            self.assertNotIn("warning", outcome.err)
        self.shardload("verify", *self.target(), "--id-field", "id", table, documents,
                       code=support.EXIT_SOURCE, message="Load and verify each kind by its own command")


class ReplicaSet(Standalone, server="replica"):
    pass


class Sharded(Standalone, server="cluster"):
    def test_all_shards_are_busy_by_the_hash_of_the_id(self):
        made = making.documents(20000)
        source = self.file("a.bson", making.dump(made))
        outcome, work = self.load("-j", 2, source)
        self.assertEqual(self.shard_key(), {"_id": "hashed"})
        counts = self.counts_by_shard()
        self.assertEqual(sum(counts.values()), 20000)
        self.assertGreater(min(counts.values()), 20000 / len(counts) / 2, counts)
        self.assertIn("the loader finds each document's shard", outcome.text)

    def test_a_key_given_by_the_user(self):
        made = making.documents(4000)
        source = self.file("a.bson", making.dump(made))
        for key, expected in (('{"_id": 1}', {"_id": 1}), ('{"n": "hashed"}', {"n": "hashed"})):
            with self.subTest(key):
                self.load("--drop", "--shard-key", key, source)
                self.assertEqual(self.shard_key(), expected)
                self.check_stored(made)
                self.verify(source, "--content")

    def test_the_direct_route(self):
        made = making.documents(8000)
        source = self.file("a.bson", making.dump(made))
        _, work = self.load("--route", "direct", "-j", 2, source)
        self.assert_accounting(work, inserted=8000)
        self.check_stored(made)

    def test_plan_shows_the_hashed_key(self):
        source = self.file("a.bson", making.dump(making.documents(2000)))
        outcome = self.shardload("plan", *self.target(), source)
        self.assertIn('sharded by { "_id" : "hashed" }: the server distributes it', outcome.text)
        self.assertRegex(outcome.text, r"a\.bson +bson .* 2,000 +exactly")
