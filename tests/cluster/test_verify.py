# SPDX-License-Identifier: Apache-2.0
"""`shardload verify`: what was loaded is what the sources say, and whatever is done to it by hand
afterwards is found, and named by its place in the source."""
import csv
import os
import signal
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402
from support import HEADER, ROW, bson  # noqa: E402


class AnyServer:
    def rows(self, *ids):
        return HEADER + "\n" + "".join(ROW.format(id=id) + "\n" for id in ids)

    def verify(self, *words, collection="t", code=support.EXIT_OK):
        """Returns (what it said, the section of its report, the rows of problems.tsv)."""
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

    def spoiled(self, problems):
        """What the table says, short: {(problem, offset or _id)}."""
        return sorted((row["problem"], row["offset"] or row["_id"]) for row in problems)

    # All is well

    def test_what_was_loaded_is_equal(self):
        (path,), answers = self.generate("G1", 60000, "--dirt", "heavy", "--bad", 25, "--seed", 51)
        self.load(path, code=support.EXIT_REJECTS)
        found = self.assert_equal_to(path, documents=answers["totals"]["documents"])
        self.assertEqual(found["rejectedByParser"], 25)

    def test_several_files_in_long_names(self):
        paths, answers = self.generate("B", 9000, "--files", 3, "--gzip", "--seed", 52)
        self.load("--names", "long", *paths)
        self.assert_equal_to(*paths, documents=answers["totals"]["documents"],
                             options=["--names", "long"])

    def test_weather_by_station(self):
        paths = [support.SAMPLES / "isd" / name for name in ("1901.gz", "011490-99999-1986.gz")]
        if not all(path.exists() for path in paths):
            self.skipTest("no ISD samples: set SHARDLOAD_SAMPLES")
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
        # Small members share a MiB of ids; what lies in one of them is no surplus of another.
        path = self.scratch / "year.zip"
        members = {f"month-{n}.csv": self.rows(*range(n * 1000, n * 1000 + 50))
                   for n in range(1, 13)}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in members.items():
                archive.writestr(name, text)
        self.load(path)
        self.assert_equal_to(path, documents=600)
        gone = self.database.t.find_one({"t": 7010})["_id"]
        self.database.t.delete_one({"_id": gone})
        outcome, _, (row,) = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        before = sum(len(members[f"month-{n}.csv"]) for n in range(1, 7))
        place = before + members["month-7.csv"].index("\n7010|") + 1
        self.assertEqual(row, {"problem": "missing", "source": f"{path}: month-7.csv",
                               "offset": str(place), "_id": str(gone), "detail": ""})
        self.assertIn(f"{path}: month-7.csv, byte {place}, _id {gone}: missing", outcome.err)

    def test_made_up_records_larger_than_a_slice(self):
        # A block of them has 33 MB, and is compared in parts: none may be left out or seen twice.
        options = ["--format", "ycsb", "--records", 6000, "--field-length", 1000]
        self.load(*options)
        self.assert_equal_to(documents=6000, options=options)
        ids = [entry["_id"] for entry in self.database.t.find({}, {"_id": 1}).sort("_id", 1)]
        for place in (0, 1990, 4095):
            self.database.t.delete_one({"_id": ids[place]})
            self.database.t.insert_one({"_id": bson.int64.Int64(ids[place] + 1)})
        outcome, _, problems = self.verify("--content", *options, code=support.EXIT_VERIFICATION)
        self.assertEqual([row["problem"] for row in problems], ["missing", "extra"] * 3)
        self.assertEqual([int(row["_id"]) for row in problems],
                         [ids[place] + more for place in (0, 1990, 4095) for more in (0, 1)])
        self.assertEqual([row["offset"] for row in problems if row["problem"] == "missing"],
                         ["0", "1990", "4095"])
        self.assertIn(f", record 1990, _id {ids[1990]}: missing", outcome.err)

    # What was done by hand is found

    def spoil(self):
        """Loads a file of several MiB and does something of every kind to what is there. Returns
        (its path, what --content must find, how many documents there are less and more)."""
        path = self.file("year.txt", self.rows(*range(1, 40001)))
        text = path.read_bytes()
        self.load(path)
        data = self.database.t
        ids = {t: data.find_one({"t": t})["_id"] for t in (5, 6, 7, 39000)}
        offsets = {t: text.index(b"\n%d|" % t) + 1 for t in ids}
        base = min(ids.values()) >> 40 << 40
        data.delete_one({"_id": ids[5]})
        data.delete_one({"_id": ids[39000]})
        data.update_one({"_id": ids[6]}, {"$set": {"k": "AUDI"}})
        behind = 2 ** 30 + 17  # no byte of the file
        number = (behind >> 20) & 0xFF
        stripe = int(f"{number:08b}"[::-1], 2)
        foreign = bson.int64.Int64(base + (stripe << 32) + (behind >> 28 << 20) + 17)
        data.insert_many([
            {"_id": bson.int64.Int64(ids[7] + 1), "note": "inside of a record"},
            {"_id": foreign, "note": "behind the end of the file"},
            {"_id": bson.int64.Int64(4711 << 40), "note": "of a source that nobody loaded"},
            {"_id": -1}, {"_id": "a name"}, {"_id": bson.ObjectId("0123456789abcdef01234567")},
            {"_id": ids[7] + 0.5}, {"_id": float("nan")}, {"_id": None}])
        return path, sorted([
            ("missing", str(offsets[5])), ("missing", str(offsets[39000])),
            ("different", str(offsets[6])), ("extra", str(offsets[7] + 1)),
            ("extra", str(behind)), ("extra", str(4711 << 40)), ("extra", "-1"),
            ("extra", '"a name"'), ("extra", '{"$oid": "0123456789abcdef01234567"}'),
            ("extra", repr(ids[7] + 0.5)), ("extra", '{"$numberDouble": "NaN"}'),
            ("extra", "null")])

    def test_everything_that_was_done_by_hand_is_found_and_named(self):
        path, expected = self.spoil()
        outcome, found, problems = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(self.spoiled(problems), expected)
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
        self.assertIn("refused", outcome.err)

    def test_counts_find_what_is_missing_and_not_what_is_changed(self):
        path = self.file("year.txt", self.rows(*range(1, 2001)))
        self.load(path)
        document = self.database.t.find_one({"t": 6})
        self.database.t.update_one({"_id": document["_id"]}, {"$set": {"m": 1}})
        outcome, found, _ = self.verify(path)
        self.assertIs(found["ok"], True)
        self.assertIn("counted only", outcome.err)
        self.assertNotIn("different", found)
        self.database.t.delete_one({"_id": document["_id"]})
        _, found, problems = self.verify(path, code=support.EXIT_VERIFICATION)
        self.assertEqual((found["missing"], found["extra"]), (1, 0))
        self.database.t.insert_one({"_id": "a name"})
        _, found, problems = self.verify(path, code=support.EXIT_VERIFICATION)
        self.assertEqual((found["missing"], found["extra"]), (1, 1))
        self.assertEqual(self.spoiled(problems), [("extra", '"a name"')])

    def test_all_gone(self):
        path = self.file("year.txt", self.rows(*range(1, 3001)))
        self.load(path)
        self.database.t.delete_many({})
        outcome, found, problems = self.verify("--content", "--max-problems", 5, path,
                                               code=support.EXIT_VERIFICATION)
        self.assertEqual((found["missing"], found["found"]), (3000, 0))
        self.assertEqual(len(problems), 3000)
        self.assertEqual(outcome.err.count(": missing"), 5)

    def test_other_names_are_other_documents(self):
        path = self.file("year.txt", self.rows(1, 2, 3))
        self.load(path)
        _, found, problems = self.verify("--content", "--names", "long", path,
                                         code=support.EXIT_VERIFICATION)
        self.assertEqual(found["different"], 3)
        self.assertIn("test_mileage is missing", problems[0]["detail"])

    def test_what_the_server_refused_is_missing(self):
        self.database.create_collection("t", validator={"m": {"$lt": 49000}})
        text = self.rows(1, 2, 3).replace("|7002|2015-11-20|4|NT|P|49828",
                                          "|7002|2015-11-20|4|NT|P|1")
        path = self.file("year.txt", text)
        self.load("--shard-key", "none", path, code=support.EXIT_REJECTS)
        outcome, found, _ = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(found["missing"], 2)
        self.assertIn("the missing documents include those that the server refused", outcome.err)

    # Which sources

    def test_other_sources_of_the_collection_are_left_alone(self):
        first, second = (self.file(name, self.rows(*ids)) for name, ids in
                         (("a.txt", range(1, 100)), ("b.txt", range(200, 500))))
        self.load(first, second)
        self.database.t.delete_one({"_id": self.database.t.find_one({"t": 300})["_id"]})
        for words in ([], ["--content"]):
            outcome, found, problems = self.verify(*words, first)
            self.assertEqual((found["found"], found["otherSources"], problems), (99, 1, []))
            self.assertIn("1 other sources", outcome.err)
        self.verify(second, code=support.EXIT_VERIFICATION)

    def test_a_source_that_was_never_loaded_or_has_changed(self):
        path = self.file("year.txt", self.rows(1, 2, 3))
        outcome = self.shardload("verify", *self.target(), path, code=support.EXIT_SOURCE)
        self.assertIn("never been loaded", outcome.err)
        self.load(path)
        path.write_text(self.rows(1, 2, 4))
        outcome = self.shardload("verify", *self.target(), path, code=support.EXIT_SOURCE)
        self.assertIn("year.txt", outcome.err)

    def test_a_pipe_cannot_be_verified(self):
        outcome = self.shardload("verify", *self.target(), "-", code=support.EXIT_SOURCE)
        self.assertIn("standard input", outcome.err)

    def test_nothing_is_changed(self):
        path = self.file("year.txt", self.rows(1, 2, 3))
        self.load(path)
        before = (sorted(self.stored()), sorted(self.stored("t.sources")))
        self.verify("--content", path)
        other = self.file("other.txt", self.rows(4))
        self.shardload("verify", *self.target(), other, code=support.EXIT_SOURCE)
        self.assertEqual((sorted(self.stored()), sorted(self.stored("t.sources"))), before)

    def test_interrupted(self):
        (path,), _ = self.generate("B", 150000, "--seed", 53)
        self.load(path)
        running = self.start("shardload", "verify", *self.target(), "--content", "-j", 1,
                             "--progress", "none", path)
        self.wait_for(lambda: "server 6" in running.text() or not running.running(), "a start")
        running.signal(signal.SIGINT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertIn("interrupted", outcome.err)


class Standalone(AnyServer, support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def test_a_clustered_collection(self):
        path = self.file("year.txt", self.rows(1, 2, 3))
        self.load("--clustered", path)
        self.assert_equal_to(path, documents=3)
        self.database.t.insert_one({"_id": "a name"})
        _, _, problems = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual(self.spoiled(problems), [("extra", '"a name"')])


class Sharded(AnyServer, support.ClusterCase):
    variable = "SHARDLOAD_TEST_URI"

    def test_ranges_name_their_shards(self):
        (path,), _ = self.generate("B", 60000, "--seed", 54)
        self.load(path)
        _, found, _ = self.verify(path)
        shards = {entry["_id"] for entry in self.client.config.shards.find()}
        self.assertEqual({entry["shard"] for entry in found["ranges"]}, shards)

    def test_a_second_document_of_one_id_on_another_shard(self):
        # An _id is unique on each shard only, unless it is the shard key.
        path = self.file("year.txt", self.rows(*range(1, 200)))
        self.load("--shard-key", '{"v": "hashed"}', path)
        self.assert_equal_to(path, documents=199)
        one = self.database.t.find_one({"t": 50})
        for vehicle in range(100):  # half of all vehicles live on the other shard
            try:
                self.database.t.insert_one({**one, "v": vehicle})
                break
            except support.pymongo.errors.DuplicateKeyError:
                pass
        self.assertEqual(self.database.t.count_documents({"_id": one["_id"]}), 2)
        _, found, (row,) = self.verify("--content", path, code=support.EXIT_VERIFICATION)
        self.assertEqual((row["problem"], row["_id"]), ("extra", str(one["_id"])))
        self.assertEqual((found["missing"], found["different"]), (0, 0))


if __name__ == "__main__":
    import tap
    tap.main()
