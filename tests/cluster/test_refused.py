# SPDX-License-Identifier: Apache-2.0
"""Documents that a real server refuses. Each error code that the loader treats as an error of one
document is provoked on a server, and the good documents of the same batch are stored; through the
loader such records become rejects."""
import json
import re
import shlex

import support
from support import bson, pymongo


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


class Codes:
    """Each row: the collection, an index (keys, options) or None, a document, and its error code."""

    rows = [
        ("validated", None, {"a": 9}, 121),
        ("unique", ([("a", 1)], {"unique": True}), {"a": 1}, 11000),
        ("sphere", ([("a", "2dsphere")], {}), {"a": {"type": "Point", "coordinates": [999, 9]}}, 16755),
        ("flat", ([("a", "2d")], {}), {"a": [1, "x"]}, 13026),
        ("flat", ([("a", "2d")], {}), {"a": [999, 999]}, 13027),
        ("flat", ([("a", "2d")], {}), {"a": [1]}, 13068),
        ("hashed", ([("a", "hashed")], {}), {"a": [1]}, 16766),
        ("words", ([("a", "text")], {}), {"a": "x", "language": 5}, 17261),
        ("words", ([("a", "text")], {}), {"a": "x", "language": "klingon"}, 17262),
        ("parallel", ([("a", 1), ("b", 1)], {}), {"a": [1, 2], "b": [1, 2]}, 171),
        ("plain", None, {"a": nested(190)}, 15),
        ("plain", None, {"_id": [1]}, 53),
        ("plain", None, {"_id": {"$a": 1}}, 52),
    ]

    def provoke(self, name, document, code):
        """Inserts the document between two good ones: only the document is refused, with `code`."""
        collection = self.database[name]
        before = collection.count_documents({})
        good = [{"_id": bson.int64.Int64(before + i), "a2": 1} for i in (1000, 1001)]
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            collection.insert_many([good[0], document, good[1]], ordered=False)
        errors = [(one["index"], one["code"]) for one in caught.exception.details["writeErrors"]]
        self.assertEqual(errors, [(1, code)], name)
        self.assertEqual(collection.count_documents({}), before + 2, name)

    def test_each_code_of_the_loaders_table_is_an_error_of_one_document(self):
        self.database.create_collection("validated", validator={"a": {"$not": {"$gt": 5}}})
        self.database.unique.insert_one({"_id": 0, "a": 1})
        provoked, older = set(), {53: 2} if not self.is_at_least("5.0") else {}
        for name, index, document, code in self.rows:
            if index and name not in self.database.list_collection_names():
                self.database[name].create_index(index[0], **index[1])
            if name == "unique":
                self.database[name].create_index("a", unique=True, sparse=True)
            self.provoke(name, dict(document), older.get(code, code))
            provoked.add(code)
        self.assertEqual(provoked | self.by_shard_key(), set(support.reply_codes("COMPLETE")))


class LoneServer(Codes, support.ClusterCase, server="mongod"):
    def by_shard_key(self):
        return {61}           # provoked in Cluster


class ReplicaSet(LoneServer, server="replica"):
    pass


class Cluster(Codes, support.ClusterCase):
    def by_shard_key(self):
        for name, key in (("by_hash", {"a": "hashed"}), ("by_range", {"a": 1})):
            self.shard(key, name)
            if self.is_at_least("5.0"):
                self.provoke(name, {"a": [1]}, 61)
                continue
            with self.assertRaises(pymongo.errors.OperationFailure) as caught:      # of the command
                self.database[name].insert_one({"a": [1]})
            self.assertEqual(caught.exception.code, 61)
        return {61}

    def test_documents_whose_shard_the_router_cannot_find_are_rejects(self):
        """A real router refuses the command, of which they are the only documents."""
        for name, key in (("hashed", {"v": "hashed"}), ("range", {"v": 1})):
            self.shard(key, name)
            for count, code in ((3, support.EXIT_REJECTS), (0, support.EXIT_SOURCE)):
                with self.subTest(key=key, count=count):
                    lines = [{"_id": f"{count} {n}", "v": n} for n in range(count)] + [{"_id": count, "v": [1]}]
                    path = self.file(f"{name}{count}.json", "".join(json.dumps(one) + "\n" for one in lines))
                    _, work = self.load("--shard-key", json.dumps(key), "--retry-timeout", 20, path,
                                        collection=name, code=code)
                    self.assert_accounting(work, inserted=count, rejectedByServer=1)
                    (row,) = support.reject_rows(work)
                    self.assertIn("(code 61)", row["reason"])

    def test_documents_that_this_server_refuses_are_rejects(self):
        self.needs_before("5.0", "code 2 for a document with a key that begins with $")
        lines = [json.dumps({"_id": number, **({"$set": 1} if number % 50 == 0 else {"n": number})})
                 for number in range(1, 201)]
        path = self.file("keys.json", "\n".join(lines) + "\n")
        for route in ("mongos", "direct"):
            with self.subTest(route=route):
                self.database.drop_collection("t")
                self.database.drop_collection("t.sources")
                _, work = self.load("--route", route, path, code=support.EXIT_REJECTS)
                self.assert_accounting(work, inserted=196, rejectedByServer=4)
                rows = support.reject_rows(work)
                self.assertEqual(len(rows), 4)
                for row in rows:
                    self.assertIn("$set", row["reason"])
                self.assertEqual(self.database.t.count_documents({}), 196)


class Rejects(support.ClusterCase, server="mongod"):
    """A refused record is a reject with the server's code and message."""

    def check(self, bad, code, message, *more):
        path = self.file("mixed.csv", f"a,b,language\n1,1,english\n{bad}\n3,3,english\n")
        _, work = self.load("--format", "delimited", "--types", "text", path, *more, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3, inserted=2, rejectedByServer=1, retries=0)
        (row,) = support.reject_rows(work)
        self.assertIn(f"(code {code})", row["reason"])
        self.assertIn(message, row["reason"])

    def test_a_validator(self):
        self.database.create_collection("t", validator={"a": {"$ne": "9"}})
        self.check("9,2,english", 121, "failed validation")

    def test_another_unique_index(self):
        self.database.t.create_index("a", unique=True)
        self.check("1,2,english", 11000, "a_1")

    def test_a_geometry(self):
        self.database.t.create_index([("where", "2dsphere")])
        path = self.file("mixed.csv", "a,where\n1,\nhere,there\n3,\n")
        _, work = self.load("--format", "delimited", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3, inserted=2, rejectedByServer=1)
        self.assertIn("(code 16755)", support.reject_rows(work)[0]["reason"])

    def test_an_update_whose_result_would_be_too_large(self):
        """With one document in the command, code 10334 is about the document, not about their number."""
        self.database.t.insert_many([{"_id": n, "a": "x" * (15 << 20 if n == 7 else 10)} for n in range(20)])
        path = self.file("more.json", "".join(f'{{"_id": {n}, "b": "{"y" * (2 << 20)}"}}\n' for n in (6, 7, 8)))
        _, work = self.load("--format", "json", "--mode", "merge", path, code=support.EXIT_REJECTS)
        # A document that the refused command has changed counts as already stored when it is sent again.
        self.assert_accounting(work, records=3, rejectedByServer=1, undelivered=0)
        (row,) = support.reject_rows(work)
        self.assertIn("(code 10334)", row["reason"])
        self.assertEqual(sorted(one["_id"] for one in self.database.t.find({"b": {"$exists": 1}})), [6, 8])

    def test_a_language(self):
        self.database.t.create_index([("b", "text")])
        self.check("2,2,klingon", 17262, "language override unsupported")


class LargeRepliesOfACluster(support.ClusterCase):
    """Validators whose explanations make the reply to a batch larger than a server can build."""

    def load_against(self, description, rows, size):
        self.needs("6.0", "explanations of a validator that make the reply too large")
        self.database.create_collection("t", validator={"$jsonSchema": {
            "description": "x" * description, "properties": {"m": {"enum": ["good"]}}}})
        path = self.file("much.csv", "k,m\n" + "".join(f"{i},{'good' if i % 2 else 'bad'}\n" for i in range(rows)))
        outcome, work = self.load("--format", "delimited", "--shard-key", "none", "-j", 1,
                                  "--batch-size", size, path, code=support.EXIT_REJECTS)
        self.assertEqual(sorted(int(document["k"]) for document in self.database.t.find()), list(range(1, rows, 2)))
        figures = support.run_record(work)["accounting"]
        self.assertEqual((figures["records"], figures["rejectedByServer"],
                          figures["inserted"] + figures["alreadyStored"]),
                         (rows, rows // 2, rows // 2), figures)
        self.assertGreater(figures["retries"], 0, "the reply was not too large")
        for row in support.reject_rows(work):
            self.assertIn("(code 121)", row["reason"])
        return outcome

    def test_the_load_completes_when_the_server_reports_the_size(self):
        outcome = self.load_against(400_000, 400, 400)
        self.assertIn("(code 13548)", outcome.err)

    def test_the_load_completes_when_the_server_closes_the_connection(self):
        outcome = self.load_against(70_000, 1000, 1000)
        self.assertNotIn("(code 13548)", outcome.text)

    def test_the_load_completes_when_only_batches_of_one_document_get_a_reply(self):
        self.load_against(10_000_000, 12, 12)


class LargeRepliesOfALoneServer(LargeRepliesOfACluster, server="mongod"):
    pass


class IdsOnALoneServer(support.ClusterCase, server="mongod"):
    """To a server 5, 5.0 and Decimal128 5 are the same _id."""

    def check(self, *words):
        """Loads a file of which three _ids are stored as other numeric types, in place of documents of
        the first load."""
        kinds = (float, lambda value: bson.decimal128.Decimal128(str(value)),
                 lambda value: bson.decimal128.Decimal128(f"{value}.00"))
        path = self.file("year.txt", support.mot_text(range(1, 8)))
        self.load(*words, path)
        first = 1 << 40       # the first source of a collection has the number 1
        text = path.read_bytes()
        for number, kind in enumerate(kinds, 2):
            taken = first + text.index(f"\n{number}|".encode()) + 1
            self.assertEqual(self.database.t.delete_one({"_id": taken}).deleted_count, 1)
            self.database.t.insert_one({"_id": kind(taken), "note": "mine"})
        _, work = self.load("--again", "--retry-timeout", 5, *words, path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, retries=0, alreadyStored=7 - len(kinds), rejectedByServer=len(kinds))
        for row in support.reject_rows(work):
            self.assertIn("another document has this _id: _id is", row["reason"])
        self.assertEqual(self.database.t.count_documents({"note": "mine"}), len(kinds))
        outcome = self.shardload("verify", *self.target(), "--content", path, code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.text, rf"total +7 +7 +0 +0 +{len(kinds)}\n")

    def test_an_id_of_another_numeric_type_rejects_the_record_of_a_second_load(self):
        self.check()

    def test_an_id_of_another_numeric_type_refuses_the_first_load(self):
        path = self.file("year.txt", support.mot_text(range(1, 8)))
        self.database.t.insert_one({"_id": float((1 << 40) + 200), "note": "mine"})
        _, work = self.load("--no-verify", path, code=support.EXIT_CLUSTER)
        self.assertIn("which its registry", (work / "shardload.log").read_text("utf-8"))
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.database.t.delete_many({})
        self.database.t.insert_one({"_id": float((1 << 40) - 1), "note": "mine"})    # below the range
        self.load("--no-verify", path)
        self.assertEqual(self.database.t.count_documents({}), 8)

    def test_json_without_ids_after_the_registry_was_lost(self):
        """Its records get such _ids, too; documents with _ids of their own are not concerned."""
        self.load(self.file("a.json", '[{"n": 1}, {"n": 2}]'))
        self.database["t.sources"].drop()
        self.load(self.file("b.json", '[{"n": 3}, {"n": 4}]'), code=support.EXIT_CLUSTER, message="which its registry")
        self.load(self.file("c.json", '[{"_id": 1, "n": 3}]'))
        self.assertEqual(self.database.t.count_documents({}), 3)


class IdsOnACluster(IdsOnALoneServer, server="cluster"):
    def test_an_id_of_another_numeric_type_rejects_the_record_with_a_hashed_key(self):
        """With a hashed shard key, shards may store documents with equal _ids."""
        self.check("--shard-key", '{"_id": "hashed"}')


class AllRejected(support.ClusterCase, server="mongod"):
    """A load whose records were all rejected fails, and names the likely cause."""

    def test_by_the_server(self):
        """The message quotes the server's reason and names the validator."""
        self.database.create_collection("t", validator={"a": {"$lt": 0}})
        path = self.file("some.csv", "a,b\n1,1\n2,2\n3,3\n")
        outcome, work = self.load("--format", "delimited", path, code=support.EXIT_SOURCE)
        self.assertIn("all records were rejected", outcome.err)
        why = r": .*\$lt.*" if self.is_at_least("5.0") else r" by the collection's validator .*\$lt.*"
        why = rf"3 like some.csv, line 2: .*Document failed validation{why} \(code 121\)"
        self.assertRegex(outcome.err.split("all records")[1], why)
        self.assertIn("validator", outcome.err)
        self.assertNotIn("--resume", outcome.text)
        self.assert_accounting(work, records=3, inserted=0, rejectedByServer=3)
        again = self.shardload(*self.load_words(work, "--resume", "--format", "delimited", path),
                               code=support.EXIT_SOURCE, message="so there is nothing to complete")
        self.assertIn("it cannot be resumed", self.shardload("status", work).out)
        self.assertNotIn("--resume --work-dir", again.err)
        self.database.command("collMod", "t", validator={})
        self.shardload(*self.load_words(work, "--format", "delimited", path))
        self.assertEqual(self.database.t.count_documents({}), 3)

    def test_a_pipe(self):
        """Neither the work directory nor the registry advises to resume it."""
        words = self.load_words(self.scratch / "work", "-")
        self.database.create_collection("t", validator={"a": {"$lt": 0}})
        self.shardload(*words, stdin=b"a,b\n1,1\n2,2\n", code=support.EXIT_SOURCE)
        self.database.command("collMod", "t", validator={})
        self.shardload(*words, stdin=b"a,b\n1,1\n2,2\n")
        self.assertEqual(self.database.t.count_documents({}), 2)

    def test_lines_of_compressed_files(self):
        """Rejects have the line, whether their batch was sent while their block was parsed, or later."""
        self.database.create_collection("t", validator={"a": {"$nin": [5, 40000, 99999]}})
        text = "a,b\n" + "".join(f"{n},{'x' * 20}\n" for n in range(100000))
        _, work = self.load("--format", "delimited", "--batch-size", "7000", self.zipped("lines.csv.gz", text),
                            code=support.EXIT_REJECTS)
        self.assertEqual({row["line"] for row in support.reject_rows(work)}, {"7", "40002", "100001"})
        self.assertEqual((work / "rejected/000001-lines.csv.gz").read_text().replace("x", ""),
                         "a,b\n5,\n40000,\n99999,\n")

    def test_their_text_is_corrected_and_loaded(self):
        """By the command of the summary, as that of the parser's rejects; `verify` does not miss them."""
        first, last = '{"k": 1,\n "n": 6}', '{"k": "}", "n": 8}'
        sources = {"a.csv": ('k,n\n"x\ny",7\nz,1\n"q""q",x\n"r",9\r\n', 'k,n\n"q""q",x\n"x\ny",7\n"r",9\n'),
                   "b.csv": ("k,n\n" + "a,1\n" * 5000 + "b,7", "k,n\nb,7\n"),
                   "c.json": (f'[{first}, {{"k": 2, "n": 2}} ,{last}]', f"{first}\n{last}\n"),
                   "d.json": ('{"n":7} {"n":1}\n {"n":8}\n', '{"n":7}\n{"n":8}\n'),
                   "e.csv": ("k;n\r1;1\r2;7\r", "k;n\n2;7\n")}
        for number, (name, (text, rejected)) in enumerate(sources.items()):
            with self.subTest(name):
                where = {"collection": f"c{number}"}
                types = ("--types", "k=text,n=int") if name == "a.csv" else ()
                self.database.create_collection(where["collection"], validator={"n": {"$lt": 5}})
                path = self.file(name, text)
                outcome, work = self.load(*types, "--batch-size", 2000, path, code=support.EXIT_REJECTS, **where)
                file = work / f"rejected/000001-{name}"
                self.assertEqual(file.read_bytes().decode(), rejected)
                self.assertIn(f"{file}; correct them there, and load them:", outcome.out)
                for words in (), ("--content",):
                    seen = self.shardload("verify", *self.target(**where), "--progress", "none", *types, *words, path)
                    self.assertIn("expected to be missing", seen.out)
                file.write_bytes(re.sub(rb"[6789x](\r?\n|}|$)", rb"3\1", file.read_bytes()))
                command = re.search("load them:\n    shardload (.*)", outcome.out)[1]
                self.shardload(*shlex.split(command), "--work-dir", self.scratch / f"again-{number}")
                stored = self.database[where["collection"]].count_documents({})
                self.assertEqual(stored, support.run_record(work)["accounting"]["records"])

    def test_records_without_text(self):
        """Of a dump no text is kept: the summary shows what to do."""
        path = self.file("t.bson", b"".join(support.bson.encode({"_id": n, "n": n}) for n in range(9)))
        self.database.create_collection("t", validator={"n": {"$lt": 5}})
        outcome, work = self.load(path, code=support.EXIT_REJECTS)
        self.assertIn("the text of 4 refused records was not kept", outcome.out)
        self.assertFalse((work / "rejected").exists())
        self.database.command("collMod", "t", validator={})
        self.load("--again", path)
        self.assertEqual(self.database.t.count_documents({}), 9)

    def test_drop_keeps_the_documents_if_the_sample_holds_only_rejects(self):
        """A nightly load with --drop left an empty collection, and did not say so."""
        self.load(self.file("night.csv", "k,n\n" + "1,2\n" * 99))
        drop = "--drop", "--header", "yes", "--types", "n=int"
        for text in ("k,n\n" + "1,x\n" * 99, 'k,n\n1,2\n3,"4\n'):
            for command in "load", "plan":
                self.shardload(command, *self.target(), *drop, self.file("bad.csv", text), code=support.EXIT_SOURCE,
                               message="bad.csv, line ")
            self.assertEqual(self.database.t.count_documents({}), 99)
        self.load(*drop, self.file("good.csv", "k,n\n1,2\n"), self.file("bad.csv", "k,n\n1,x\n"),
                  code=support.EXIT_REJECTS)
        message = "--drop has removed 1 document of "
        self.assertIn(message, self.load(*drop, "-", stdin=b"k,n\n1,x\n", code=support.EXIT_SOURCE)[0].err)
        self.assertEqual(self.database.t.count_documents({}), 0)

    def test_by_the_parser(self):
        """The message names --schema; the same reason with another value is shown once, with its count."""
        path = self.file("some.txt", support.HEADER + "\nx|y\nz\n")
        bad = self.file("bad.csv", "k,n\n" + "1,x\n2,yy\n3,z\n4,5,6\n")
        outcome, _ = self.load("--types", "k=int,n=int", bad, code=support.EXIT_SOURCE)
        self.assertIn(': 3 like bad.csv, line 2, n: "x" is not a whole number; 1 like bad.csv, line 5', outcome.err)
        self.assertEqual(outcome.err.count("; rejected\n"), 2)
        _, work = self.load("--format", "mot", path, code=support.EXIT_SOURCE,
                            message=("all records were rejected", "--schema"))
        self.assert_accounting(work, records=2, inserted=0, rejectedByParser=2)
        _, work = self.load("--format", "mot", "--sink", "null", path, code=support.EXIT_SOURCE)
        self.assert_accounting(work, records=2, inserted=0, rejectedByParser=2)

    def test_a_load_with_one_good_record_does_not_fail(self):
        path = self.file("some.txt", support.HEADER + "\nx|y\nz\n" + support.ROW.format(id=1) + "\n")
        self.load("--format", "mot", path, code=support.EXIT_REJECTS)

    def test_a_load_without_records_does_not_fail(self):
        self.load("--format", "mot", self.file("some.txt", support.HEADER + "\n"))


class EarlyEnds(support.ClusterCase, server="mongod"):
    """After an early end the totals are right, and the summary shows what ended the load."""

    def source(self):
        rows = [support.ROW.format(id=i) for i in range(1, 60001)]
        for i in range(0, 60000, 100):
            rows[i] = "short"
        return self.file("year.txt", "\n".join([support.HEADER, *rows]) + "\n")

    def test_by_max_rejects(self):
        for limit in ("10", "0.5%"):
            with self.subTest(limit):
                source = self.source()
                outcome, work = self.load("-j", 2, "--max-rejects", limit, "--batch-size", 500,
                                          "--drop", source, code=support.EXIT_SOURCE)
                self.assertIn(f"--max-rejects {limit}", outcome.err)
                self.assertIn("with a higher --max-rejects and --resume", outcome.err)
                self.assertRegex(outcome.text, rf"ended by --max-rejects +{limit}\n")
                self.assert_accounting(work, endedByMaxRejects=limit)
                self.shardload(*self.load_words(work, "--resume", source), code=support.EXIT_REJECTS)
                self.assert_accounting(work, records=60000, rejectedByParser=600, undelivered=0)
                self.assertNotIn("endedByMaxRejects", support.run_record(work)["accounting"])
                self.assertEqual(self.database.t.count_documents({}), 59400)

    def test_by_ctrl_c(self):
        source, work = self.source(), self.scratch / "work"
        running = self.start("shardload", *self.load_words(work, "-j", 2, "--rate-limit", 4000, source))
        self.wait_for_documents(running, 1000)
        outcome = running.interrupt()
        self.assert_accounting(work, undelivered=0)
        figures = support.run_record(work)["accounting"]
        self.assertLess(figures["records"], 60000)
        self.assertGreater(figures["notReached"]["records"], 0)
        self.assertRegex(outcome.text, r"records not read \(estimate\) +[1-9]")
        self.assertEqual(self.database.t.count_documents({}), figures["inserted"])

    def test_the_summary_shows_the_number_of_records_not_reached(self):
        """Exact for generated records; for a file, estimated by the bytes that were not read."""
        self.database.create_collection("t", validator={"no such field": 1})
        words = "--format", "ycsb", "--records", 400000, "-j", 1, "--max-rejects", 10
        outcome, work = self.load(*words, code=support.EXIT_SOURCE)
        figures = support.run_record(work)["accounting"]
        self.assert_accounting(work, inserted=0)
        self.assertEqual(figures["records"] + figures["notReached"]["records"], 400000, figures)
        self.assertIn("records not read", outcome.text)
        outcome, work = self.load("--max-rejects", 10, "-j", 1, self.source(), code=support.EXIT_SOURCE)
        missed = support.run_record(work)["accounting"]["notReached"]
        self.assertTrue(0 < missed["storedBytes"] and 0 < missed["records"] < 60000, missed)
        self.assertIn("records not read (estimate)", outcome.text)
