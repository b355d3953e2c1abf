# SPDX-License-Identifier: Apache-2.0
"""`shardload verify` accepts what was loaded, and finds documents that were removed, changed or added
afterwards, and names each by its offset in the source."""
import csv

import archive_making as making
import support
from support import bson, mot_text


class AnyServer:
    def verify(self, *words, collection="t", code=support.EXIT_OK):
        """Returns (outcome, the section `verification` of its report, the rows of problems.tsv)."""
        work = self.scratch / f"verify-{next(self._counter)}"
        outcome = self.shardload("verify", *self.target(collection), "--work-dir", work,
                                 "--progress", "none", *words, code=code)
        record = support.json.loads((work / "verify.json").read_text())
        self.assertEqual(record["exitCode"], code)
        with open(work / "problems.tsv", newline="", encoding="utf-8") as file:
            problems = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        return outcome, record.get("verification"), problems

    def assert_equal_to(self, *paths, documents, options=(), collection="t"):
        for words in ([], ["--content"], ["--content", "-j", 1]):
            _, found, problems = self.verify(*words, *options, *paths, collection=collection)
            self.assertIs(found["ok"], True)
            self.assertEqual(problems, [])
            self.assertEqual((found["expected"], found["found"]), (documents, documents))
            self.assertEqual(sum(entry["expected"] for entry in found["ranges"]), documents)
        self.assertEqual(found["foundHash"], found["expectedHash"])
        return found

    def summary(self, problems):
        """The rows of problems.tsv as sorted pairs: (problem, offset or _id)."""
        return sorted((row["problem"], row["offset"] or row["_id"]) for row in problems)

    # Unchanged collections

    def test_a_loaded_file_is_equal(self):
        (path,) = self.generate("G1", 60000, "--dirt", "heavy", "--bad", 25, "--seed", 51)
        self.load(path, code=support.EXIT_REJECTS)
        found = self.assert_equal_to(path, documents=60000 - 25)
        self.assertEqual(found["rejectedByParser"], 25)

    def test_several_files_in_long_names(self):
        paths = self.generate("B", 9000, "--files", 3, "--gzip", "--seed", 52)
        self.load("--names", "long", *paths)
        self.assert_equal_to(*paths, documents=9000, options=["--names", "long"])

    def test_weather_by_station(self):
        paths = support.isd_samples("1901.gz", "011490-99999-1986.gz")
        self.load("--shard-key", '{"st": "hashed"}', *paths)
        count = self.database.t.count_documents({})
        self.assert_equal_to(*paths, documents=count)
        document = self.database.t.find_one({"st": "u029070"})
        key = {"_id": document["_id"], "st": "u029070"}
        self.database.t.update_one(key, {"$set": {"airTemperature.value": 99.5}})
        _, _, problems = self.verify("--content", *paths, code=support.EXIT_VERIFICATION)
        (row,) = problems
        self.assertEqual(row["problem"], "different")
        self.assertTrue(row["source"].endswith("1901.gz"))
        self.assertRegex(row["detail"], r"^airTemperature\.value is 99\.5, not -?[0-9.]+$")

    def test_an_archive(self):
        # Small entries share a MiB of _ids: documents of one entry are not extra in another.
        entries = {f"month-{n}.csv": mot_text(range(n * 1000, n * 1000 + 50)) for n in range(1, 13)}
        path = self.file("year.zip", making.zip_of(entries.items()))
        self.load(path)
        self.assert_equal_to(path, documents=600)
        gone = self.database.t.find_one({"t": 7010})["_id"]
        self.database.t.delete_one({"_id": gone})
        outcome, _, (row,) = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        before = sum(len(entries[f"month-{n}.csv"]) for n in range(1, 7))
        offset = before + entries["month-7.csv"].index("\n7010|") + 1
        self.assertEqual(row, {"problem": "missing", "source": f"{path}: month-7.csv",
                               "offset": str(offset), "_id": str(gone), "detail": ""})
        self.assertIn(f"{path}: month-7.csv, byte {offset}, _id {gone}: missing", outcome.err)

    def test_large_blocks_of_generated_records(self):
        # A block has 2,048 records, 17 MB: none may be left out or compared twice.
        options = ["--format", "ycsb", "--records", 6000, "--field-length", 1000]
        self.load(*options)
        self.assert_equal_to(documents=6000, options=options)
        ids = [entry["_id"] for entry in self.database.t.find({}, {"_id": 1}).sort("_id", 1)]
        for record in (0, 1990, 2047):
            self.database.t.delete_one({"_id": ids[record]})
            self.database.t.insert_one({"_id": bson.int64.Int64(ids[record] + 1)})
        outcome, _, problems = self.verify("--content", *options, code=support.EXIT_VERIFICATION)
        self.assertEqual([row["problem"] for row in problems], ["missing", "extra"] * 3)
        self.assertEqual([int(row["_id"]) for row in problems],
                         [ids[record] + more for record in (0, 1990, 2047) for more in (0, 1)])
        self.assertEqual([row["offset"] for row in problems if row["problem"] == "missing"], ["0", "1990", "2047"])
        self.assertIn(f", record 1990, _id {ids[1990]}: missing", outcome.err)

    # Changed collections

    def load_and_change(self):
        """Loads a file of several MiB, and removes, changes and adds documents of every kind.
        Returns (its path, the problems that --content must find)."""
        path = self.file("year.txt", mot_text(range(1, 40001)))
        text = path.read_bytes()
        self.load(path)
        data = self.database.t
        ids = {t: data.find_one({"t": t})["_id"] for t in (5, 6, 7, 39000)}
        offsets = {t: text.index(b"\n%d|" % t) + 1 for t in ids}
        base = min(ids.values()) >> 40 << 40
        data.delete_one({"_id": ids[5]})
        data.delete_one({"_id": ids[39000]})
        data.update_one({"_id": ids[6]}, {"$set": {"k": "AUDI"}})
        beyond = 2 ** 30 + 17  # an offset beyond the end of the file
        number = (beyond >> 20) & 0xFF
        stripe = int(f"{number:08b}"[::-1], 2)
        foreign = bson.int64.Int64(base + (stripe << 32) + (beyond >> 28 << 20) + 17)
        data.insert_many([
            {"_id": bson.int64.Int64(ids[7] + 1), "note": "within a record"},
            {"_id": foreign, "note": "beyond the end of the file"},
            {"_id": bson.int64.Int64(4711 << 40), "note": "of a source that was never loaded"},
            {"_id": -1}, {"_id": "a name"}, {"_id": bson.ObjectId("0123456789abcdef01234567")},
            {"_id": ids[7] + 0.5}, {"_id": float("nan")}, {"_id": None}])
        return path, sorted([
            ("missing", str(offsets[5])), ("missing", str(offsets[39000])),
            ("different", str(offsets[6])), ("extra", str(offsets[7] + 1)),
            ("extra", str(beyond)), ("extra", str(4711 << 40)), ("extra", "-1"),
            ("extra", '"a name"'), ("extra", '{"$oid": "0123456789abcdef01234567"}'),
            ("extra", repr(ids[7] + 0.5)), ("extra", '{"$numberDouble": "NaN"}'),
            ("extra", "null")])

    def test_content_finds_every_removed_changed_and_added_document(self):
        path, expected = self.load_and_change()
        outcome, found, problems = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(self.summary(problems), expected)
        by_problem = {row["offset"]: row for row in problems}
        for row in problems:
            self.assertIn(row["source"], ("", str(path)))
        different = next(row for row in problems if row["problem"] == "different")
        self.assertEqual(different["detail"], 'k is "AUDI", not "FORD"')
        self.assertIn("no record begins at that byte", by_problem[str(2 ** 30 + 17)]["detail"])
        self.assertEqual((found["missing"], found["different"], found["extra"]), (2, 1, 9))
        self.assertEqual(found["found"], 40000 - 2 + 9)
        self.assertEqual(found["found"], self.database.t.count_documents({}))
        self.assertNotEqual(found["foundHash"], found["expectedHash"])
        self.assertIs(found["ok"], False)
        self.assertNotIn("rejected", outcome.text)

    def test_counts_find_missing_and_extra_documents_and_no_changed_ones(self):
        path = self.file("year.txt", mot_text(range(1, 2001)))
        self.load(path)
        document = self.database.t.find_one({"t": 6})
        self.database.t.update_one({"_id": document["_id"]}, {"$set": {"m": 1}})
        outcome, found, _ = self.verify(path)
        self.assertIs(found["ok"], True)
        self.assertIn("counted only", outcome.text)
        self.assertNotIn("different", found)
        self.database.t.delete_one({"_id": document["_id"]})
        _, found, problems = self.verify(path, code=support.EXIT_VERIFICATION)
        self.assertEqual((found["missing"], found["extra"]), (1, 0))
        self.database.t.insert_one({"_id": "a name"})
        outcome, found, problems = self.verify(path, code=support.EXIT_VERIFICATION)
        self.assertIn("extra documents outside all ranges: 1; other programs may have stored them", outcome.text)
        self.assertEqual((found["missing"], found["extra"]), (1, 1))
        self.assertEqual(self.summary(problems), [("extra", '"a name"')])

    def test_an_emptied_collection(self):
        path = self.file("year.txt", mot_text(range(1, 3001)))
        self.load(path)
        self.database.t.delete_many({})
        for shown, words in (10, ()), (5, ("--max-problems", 5)):
            outcome, found, problems = self.verify("--content", *words, path, code=support.EXIT_VERIFICATION)
            self.assertEqual((found["missing"], found["found"]), (3000, 0))
            self.assertEqual(len(problems), 3000)
            self.assertEqual(outcome.err.count(": missing"), shown)
            self.assertIn("further problems are in problems.tsv in the work directory", outcome.err)
        outcome = self.shardload("verify", *self.target(), "--content", path, code=support.EXIT_VERIFICATION)
        self.assertIn("only counted; with --work-dir DIR, DIR/problems.tsv lists them", outcome.err)

    def test_documents_with_other_field_names_are_different(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path)
        _, found, problems = self.verify("--content", "--names", "long", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(found["different"], 3)
        self.assertIn("test_mileage is missing", problems[0]["detail"])

    def test_records_that_the_parser_rejected_with_other_options(self):
        path = self.file("t.csv", "a,b\n1,2\nx,3\ny,4\n")
        self.load("--types", "a=flag:1:0", path, code=support.EXIT_REJECTS)
        outcome, found, _ = self.verify("--types", "a=flag:1:0", path)
        self.assertNotIn("the load rejected", outcome.text)
        outcome, found, _ = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertGreaterEqual(found["missing"], 2)
        self.assertRegex(outcome.text, r"load rejected 2 of these records: .* missing; see rejects.tsv in \S+:/")

    def test_documents_that_the_server_refused_are_missing(self):
        self.database.create_collection("t", validator={"m": {"$lt": 49000}})
        text = mot_text([1, 2, 3]).replace("|7002|2015-11-20|4|NT|P|49828", "|7002|2015-11-20|4|NT|P|1")
        path = self.file("year.txt", text)
        self.load("--shard-key", "none", path, code=support.EXIT_REJECTS)
        outcome, found, _ = self.verify("--content", path)
        self.assertEqual(found["missing"], 2)
        self.assertIn("load rejected 2 of these records: their documents are expected to be missing", outcome.text)
        self.database.t.delete_one({})
        outcome, found, _ = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertIn("the load rejected 2 of these records: their documents are missing", outcome.text)

    def test_a_lost_document_is_not_one_that_was_refused_and_corrected(self):
        """Others that somebody deleted were excused by refused records, which were loaded later by their _ids."""
        self.database.create_collection("t", validator={"a": {"$gte": 3}})
        own = "--id-field", "i"
        path = self.file("y.csv", "i,a\n" + "".join(f"{n},{n}\n" for n in range(1, 9)) + "8,8\n")
        work = self.load(*own, path, code=support.EXIT_REJECTS)[1]
        for words in ([], ["--content"]):
            self.assertIn("rejected 3 of these records: their documents are expected to be missing",
                          self.verify(*own, *words, path)[0].text)
        self.database.command("collMod", "t", validator={})
        (work / "rejected/000001-y.csv").write_text("i,a\n1,1\n2,2\n")
        self.load(*own, work / "rejected/000001-y.csv")
        self.database.t.delete_many({"_id": {"$in": [5, 6]}})
        outcome = self.verify(*own, "--content", path, code=support.EXIT_VERIFICATION)[0]
        self.assertIn("the load rejected 3 of these records, and documents of others are missing", outcome.text)

    def test_documents_that_two_sources_have_are_not_missing(self):
        """By counts, a source with a reject was said to lack documents that it shares with another source."""
        self.database.create_collection("t", validator={"a": {"$lt": 100}})
        rows = [f"{n},{n}\n" for n in range(50)]
        paths = [self.file(f"{name}.csv", "i,a\n" + "".join(lines)) for name, lines in
                 (("a", rows), ("b", [*rows, "1000,500\n"]))]
        self.load("--id-field", "i", paths[0])
        self.load("--id-field", "i", "--again", paths[1], code=support.EXIT_REJECTS)
        for words in ([], ["--content"]):
            self.assertIn("rejected 1 of these records", self.verify("--id-field", "i", *words, paths[1])[0].text)

    def test_why_a_record_differs_whose_id_another_record_has(self):
        """The load had rejected it, and `verify` asked for the options of --mode merge."""
        path = self.file("y.csv", "i,a\n1,1\n2,2\n1,3\n")
        self.load("--id-field", "i", path, code=support.EXIT_REJECTS)
        outcome = self.verify("--content", "--id-field", "i", path, code=support.EXIT_VERIFICATION)[0]
        self.assertIn("rejected 1 of these records: the stored documents with their _ids are those of", outcome.text)
        self.assertNotIn("--mode merge", outcome.text)

    def test_documents_that_were_refused_for_another_version_and_are_lost(self):
        """Those that an application had changed, and somebody deleted after a refused reload, were called expected."""
        path = self.file("t.csv", "k,v\n" + "".join(f"{n},{n}\n" for n in range(20)))
        self.load(path)
        changed = [one["_id"] for one in self.database.t.find().limit(3)]
        self.database.t.update_many({"_id": {"$in": changed}}, {"$set": {"v": -1}})
        outcome, _ = self.load("--again", path, code=support.EXIT_REJECTS)
        self.assertNotIn("correct them there", outcome.text)  # they would be stored beside the changed ones
        self.database.t.delete_many({"_id": {"$in": changed}})
        for words in ([], ["--content"]):
            outcome, found, _ = self.verify(*words, path, code=support.EXIT_VERIFICATION)
            self.assertEqual(found["missing"], 3)

    # Sources

    def test_other_sources_of_the_collection_are_not_checked(self):
        first, second = (self.file(name, mot_text(ids)) for name, ids in
                         (("a.txt", range(1, 100)), ("b.txt", range(200, 500))))
        self.load(first, second)
        self.database.t.delete_one({"_id": self.database.t.find_one({"t": 300})["_id"]})
        for words in ([], ["--content"]):
            outcome, found, problems = self.verify(*words, first)
            self.assertEqual((found["found"], found["otherSources"], problems), (99, 1, []))
            self.assertIn("1 other source of the collection was not named", outcome.text)
        self.verify(second, code=support.EXIT_VERIFICATION)

    def test_strays_under_the_ids_of_a_source_that_was_not_named(self):
        """The registry lists how many documents a load has left under the _ids of a source, also
        documents of others that rejected its records."""
        first, second = (self.file(name, mot_text(ids)) for name, ids in
                         (("a.txt", range(1, 100)), ("b.txt", range(200, 500))))
        self.load(first)
        (number,) = self.database["t.sources"].find({"number": {"$exists": True}})
        self.load(second)
        taken = (number["number"] + 1 << 40) + second.read_bytes().index(b"\n300|") + 1
        self.assertEqual(self.database.t.delete_one({"_id": taken}).deleted_count, 1)
        self.database.t.insert_one({"_id": float(taken), "note": "mine"})
        self.load("--again", second, code=support.EXIT_REJECTS)
        self.verify("--content", first)       # a document of its own is no stray
        stray = (number["number"] + 1 << 40) + 5
        self.database.t.insert_many([{"_id": support.bson.Int64(stray + n)} for n in range(3)])
        for words, extra in (([], 0), (["--content"], 3)):
            outcome, found, _ = self.verify(*words, first, code=support.EXIT_VERIFICATION if extra else 0)
            self.assertEqual((found["extra"], found["missing"]), (extra, 0))
        self.assertRegex(outcome.text, "b.txt, which was not named: 303 documents .* has left 300")
        ((name, counts),) = [(row["name"], (row["expected"], row["found"])) for row in found["otherSourcesWithExtra"]]
        self.assertTrue(name.endswith("b.txt"))
        self.assertEqual(counts, (300, 303))
        # An incomplete source may hold any number; so may one that another mode has changed.
        self.database["t.sources"].update_one({"number": number["number"] + 1}, {"$set": {"state": "started"}})
        self.verify("--content", first)

    def test_documents_of_other_programs_are_not_extra(self):
        data = self.database.t
        data.insert_many([{"_id": "mine"}, {"_id": -1}, {"_id": bson.ObjectId()}])
        table, more = (self.file(name, mot_text(ids)) for name, ids in
                       (("a.txt", range(1, 100)), ("b.txt", range(200, 230))))
        json = self.file("c.json", '{"_id": "c1"}\n{"_id": "c2"}\n')
        self.load(table)

        def check(*, extra=0, others=3, source=table, expected=99):
            for words in ([], ["--content"]):
                outcome, found, problems = self.verify(*words, source, code=support.EXIT_VERIFICATION if extra else 0)
                self.assertEqual((found["expected"], found["missing"], found["extra"],
                                  found["otherPrograms"]), (expected, 0, extra, others))
                self.assertIn(f"{others} documents are from other programs", outcome.text)
            return problems

        self.assertEqual(check(), [])
        # A record that is stored twice, anywhere, is found.
        one = data.find_one({"t": 5})
        for place in ("again", bson.ObjectId(), bson.int64.Int64(4711 << 40), 0.5, float("inf")):
            data.insert_one({**one, "_id": place})
            self.assertEqual(len(check(extra=1)), 4)
            data.delete_one({"_id": place})
        data.insert_one({**one, "_id": bson.int64.Int64(one["_id"] + 1)})
        _, found, _ = self.verify("--content", table, code=support.EXIT_VERIFICATION)
        self.assertEqual((found["extra"], found["otherPrograms"]), (1, 3))
        data.delete_one({"_id": one["_id"] + 1})
        # The documents of further loads are no others.
        self.load("--again", json)
        self.load(more)
        for source, expected in ((table, 99), (json, 2), (more, 30)):
            self.assertEqual(check(source=source, expected=expected), [])
        # What was stored after the load is extra; fewer are no finding.
        data.insert_one({"_id": "later"})
        for source, expected in ((table, 99), (json, 2)):
            check(extra=1, source=source, expected=expected)
        outcome, _, _ = self.verify(table, code=support.EXIT_VERIFICATION)
        self.assertIn("the _ids of 6 documents belong to no source; 5 are from other programs", outcome.text)
        self.assertIn("extra documents outside all ranges: 1;", outcome.text)
        data.delete_many({"_id": {"$in": ["later", "mine"]}})
        check(others=2)

    def test_a_source_that_was_never_loaded_or_has_changed(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.shardload("verify", *self.target(), path, code=support.EXIT_SOURCE, message="never been loaded")
        self.load(path)
        path.write_text(mot_text([1, 2, 4]))
        self.shardload("verify", *self.target(), path, code=support.EXIT_SOURCE, message="year.txt")

    def test_a_pipe_cannot_be_verified(self):
        self.shardload("verify", *self.target(), "-", code=support.EXIT_SOURCE, message="standard input")

    def test_verify_changes_nothing(self):
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load(path)
        before = (sorted(self.stored()), sorted(self.stored("t.sources")))
        self.verify("--content", path)
        other = self.file("other.txt", mot_text([4]))
        self.shardload("verify", *self.target(), other, code=support.EXIT_SOURCE)
        self.assertEqual((sorted(self.stored()), sorted(self.stored("t.sources"))), before)

    def test_interrupted(self):
        (path,) = self.generate("B", 150000, "--seed", 53)
        self.load(path)
        running = self.start("shardload", "verify", *self.target(), "--content", "-j", 1, "--progress", "none", path)
        self.wait_for(lambda: "server " in running.text() or not running.running(), "a start")
        running.interrupt("interrupted")


class Standalone(AnyServer, support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def test_the_list_of_problems_is_limited(self):
        """A server may send extra documents without end."""
        name = "/".join("n" * 200 for _ in range(5)) + "/long.csv"      # in each line of the list
        path = self.file(name, "a,b\n" + "".join(f"{number},x\n" for number in range(70000)))
        self.load(path)
        self.database.t.delete_many({})
        outcome, found, _ = self.verify("--content", "--max-problems", 1, path, code=support.EXIT_VERIFICATION)
        self.assertIn("problems.tsv has 64 MiB: further problems are only counted", outcome.err)
        self.assertEqual(found["expected"], 70000)
        (table,) = self.scratch.glob("verify-*/problems.tsv")
        self.assertLessEqual(table.stat().st_size, (64 << 20) + 100)

    def test_a_clustered_collection(self):
        self.needs("5.3", "clustered collections")
        path = self.file("year.txt", mot_text([1, 2, 3]))
        self.load("--clustered", path)
        self.assert_equal_to(path, documents=3)
        self.database.t.insert_one({"_id": "a name"})
        _, _, problems = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(self.summary(problems), [("extra", '"a name"')])


class Sharded(AnyServer, support.ClusterCase):
    def test_ranges_name_their_shards(self):
        path = self.file("year.txt", support.wide_text(4))
        self.load(path)
        _, found, _ = self.verify(path)
        shards = {entry["_id"] for entry in self.client.config.shards.find()}
        self.assertEqual({entry["shard"] for entry in found["ranges"]}, shards)

    def test_a_second_document_with_the_same_id_on_another_shard_is_extra(self):
        # Unless _id is the shard key, it is unique only on each shard.
        path = self.file("year.txt", mot_text(range(1, 200)))
        self.load("--shard-key", '{"v": "hashed"}', path)
        self.assert_equal_to(path, documents=199)
        one = self.database.t.find_one({"t": 50})
        for vehicle in range(100):  # half of all values of v belong to the other shard
            try:
                self.database.t.insert_one({**one, "v": vehicle})
                break
            except support.pymongo.errors.DuplicateKeyError:
                pass
        self.assertEqual(self.database.t.count_documents({"_id": one["_id"]}), 2)
        _, found, (row,) = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual((row["problem"], row["_id"]), ("extra", str(one["_id"])))
        self.assertEqual((found["missing"], found["different"]), (0, 0))
