# SPDX-License-Identifier: Apache-2.0
"""Starts of a load that need a server: one that is still starting, sources that were loaded before,
also under another name, a mistyped shard key, and hosts in --uri that are not the routers of one
cluster."""

import collections
import fnmatch
import gzip
import json
import re
import shlex

import archive_making as making
import proxy
import servers
import support
from support import EXIT_SOURCE, EXIT_USAGE

TABLE = "id,make,model\n" + "".join(f"{n},FORD,KA{n}\n" for n in range(1, 50))


class LoadedBefore(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.first = self.file("first.csv", TABLE)
        self.second = self.file("second.csv", TABLE)

    def count(self, collection="t"):
        return self.database[collection].count_documents({})

    def test_a_source_that_is_loaded_again_needs_no_resume_and_leaves_no_folder(self):
        _, work = self.load(self.first)
        before = (work / "run.json").read_bytes()
        outcome, again = self.load(self.first, code=EXIT_SOURCE, message="--again")
        self.assertNotIn("--resume", outcome.text)
        self.assertFalse(again.exists())
        self.shardload("load", *self.target(), "--work-dir", work, self.first, code=EXIT_SOURCE)
        self.assertEqual(before, (work / "run.json").read_bytes(), "the record of the completed load")

    def test_the_same_content_under_another_name_is_refused(self):
        self.load(self.first)
        outcome, again = self.load(self.second, code=EXIT_SOURCE)
        self.assertRegex(outcome.err, r"second.csv: as \S*first.csv, on 20\d\d-")
        self.assertIn("--again", outcome.err)
        self.assertFalse(again.exists())
        self.assertEqual(self.count(), 49)
        self.load("--again", self.second)
        self.assertEqual(self.count(), 98)

    def test_the_registry_knows_the_content_without_records_of_earlier_loads(self):
        """Another machine has loaded the file, or a load of it has been killed."""
        _, work = self.load(self.first)
        support.shutil.rmtree(work)
        for state, shown in (({}, r"as \S*first.csv, on 20\d\d-"),
                             ({"$set": {"documents": 0, "inRange": None}}, "as "),  # a later --mode
                             ({"$set": {"state": "started"}, "$unset": {"loadedAt": 1}},
                              r"as \S*first.csv, whose load has not ended")):
            with self.subTest(shown):
                if state:
                    self.database["t.sources"].update_one({"state": "loaded"}, state)
                outcome, again = self.load(self.second, code=EXIT_SOURCE, message="--again")
                self.assertRegex(outcome.err, "second.csv: " + shown)
                self.assertFalse(again.exists())
                self.assertEqual(self.count(), 49)
        self.load("--again", self.second, message=("warning", "under other names"))
        self.assertEqual(self.count(), 98)
        self.load("--drop", self.file("third.csv", TABLE))
        self.assertEqual(self.count(), 49)

    def test_the_same_text_twice_in_one_load_is_refused(self):
        """Also packed. A longer text, and one that differs at its end, are loaded."""
        packed = self.zipped("packed.csv.gz", TABLE)
        archive = self.file("two.zip", making.zip_of([("a.csv", TABLE), ("b.csv", TABLE)]))
        for words in ([self.first, self.second], [packed, self.first], ["--drop", packed, self.first]):
            with self.subTest(words):
                outcome, work = self.load(*words, code=EXIT_SOURCE, message=("would be stored twice", "--again"))
                self.assertIn(f"\n  {words[-1]}: as {words[-2]}\n", outcome.err)
                self.assertFalse(work.exists())
                self.assertEqual(self.count(), 0)
        outcome = self.shardload("plan", *self.target(), packed, self.first, code=EXIT_SOURCE)
        self.assertIn("would be stored twice", outcome.text)
        self.load("--again", packed, self.first)
        self.assertEqual(self.count(), 98)
        self.load("--id-field", "id", packed, self.first, collection="ids", code=None)
        self.assertEqual(self.count("ids"), 49)
        long = TABLE * 160
        others = [long, long + "1,FORD,KA\n", long[:-3] + "XY\n"]
        paths = [self.file(f"long{n}.csv", text) for n, text in enumerate(others)]
        outcome, _ = self.load(*paths, archive, self.first, collection="longs", code=None)
        self.assertNotIn("would be stored twice", outcome.text)
        self.assertGreater(self.count("longs"), 3 * 49 * 160)

    def test_copies_of_json_are_refused_unless_the_documents_have_an_id(self):
        lines = "".join(f'{{"n":{n},"make":"FORD"}}\n' for n in range(1, 50))
        for own, text in ((False, lines), (True, lines.replace('"n"', '"_id"'))):
            first, second = (self.file(f"{name}{own}.json", text) for name in ("first", "second"))
            packed = self.zipped(f"packed{own}.json.gz", text)
            name = f"own{own}"
            self.load(first, collection=name)
            for copy in (second, packed):
                with self.subTest(own=own, copy=copy.name):
                    outcome, _ = self.load(copy, collection=name, code=None)
                    self.assertEqual(f"{copy.name}: as " in outcome.err, not own)
                    self.assertEqual(self.count(name), 49)
            outcome, _ = self.load(first, packed, collection=name + "2", code=None)
            self.assertEqual("would be stored twice" in outcome.err, not own)
            self.assertEqual(self.count(name + "2"), 49 if own else 0)
            self.file(first.name, text + '{"make":"OPEL"}\n')
            outcome, _ = self.load("--again", first, collection=name, code=None)
            self.assertEqual("have changed since they were loaded" in outcome.err, not own)

    def test_a_text_that_was_loaded_from_a_packed_file_is_refused(self):
        """Either of them first; also of a pipe. A longer text causes a warning only."""
        packed = self.zipped("packed.csv.gz", TABLE)
        archive = self.file("archive.zip", making.zip_of([("a.csv", TABLE)]))
        for number, (first, second) in enumerate([(packed, self.first), (self.first, packed), (packed, archive)]):
            with self.subTest(first.name):
                self.load(first, collection=f"p{number}")
                outcome, work = self.load(second, collection=f"p{number}", code=EXIT_SOURCE, message="--again")
                self.assertRegex(outcome.err, rf"{second.name}: as \S*{first.name}, on 20\d\d-")
                self.assertFalse(work.exists())
                self.assertEqual(self.count(f"p{number}"), 49)
        outcome = self.shardload("plan", *self.target("p0"), self.first, code=EXIT_SOURCE)
        self.assertIn("texts with the beginning and size of these sources", outcome.text)
        self.load("--again", self.first, collection="p0")
        self.assertEqual(self.count("p0"), 98)
        self.load("-", collection="piped", stdin=TABLE.encode())
        self.load(packed, collection="piped", code=EXIT_SOURCE, message=": as -, on 20")
        outcome, _ = self.load("-", collection="piped", stdin=TABLE.encode())
        self.assertRegex(outcome.err, "- begins with the text of -, on 20")
        lines = TABLE * 160    # more than 64 KiB
        self.load(self.file("long.csv", lines), collection="long", code=None)
        longer = self.zipped("longer.csv.gz", lines + "50,FORD,KA50\n")
        outcome, _ = self.load(longer, collection="long", code=None)
        self.assertRegex(outcome.err, "longer.csv.gz begins with the text of .*long.csv, on 20")
        self.assertEqual(self.count("long"), 2 * 49 * 160 + 1)

    def test_another_version_of_a_file_is_named_in_one_warning(self):
        """Also one of similar size in another folder. The advice for one that differs only in its middle is right."""
        lines = TABLE * 320     # 200 kB
        middle = lines[:100000] + lines[100000:].replace("KA2\n", "KB2\n", 1)
        first, folder = self.file("t.csv", lines), self.scratch / "new"
        folder.mkdir()
        self.load(first, code=None)
        count = self.count()
        for name, text, how in (("old", lines.replace("KA1\n", "KB1\n", 1),
                                 ", [\\d,]+ bytes, has the name of a file of [\\d,]+ bytes:"),
                                ("older", lines + "50,FORD,KA50\n", " begins with the text of")):
            outcome, _ = self.load(self.file(f"{name}/t.csv", text), code=None)
            self.assertRegex(outcome.err, rf"{name}/t.csv{how} \S*t.csv, on 20\d\d-\S+, 15,680 documents\n")
            kept = "31,360" if self.count() > 3 * 15680 else "15,680"
            self.assertRegex(outcome.err, f"the {kept} documents of these sources are kept. .* --drop.* --mode upsert")
            self.assertEqual((outcome.err.count("warning:"), self.count() > count), (1, True), outcome.err)
            count = self.count()
        (self.scratch / "february").mkdir()
        month = self.file("february/t.csv", TABLE.replace("KA", "KC") * 100)
        self.assertNotIn("warning:", self.load(month, code=None)[0].err)
        (self.scratch / "other").mkdir()  # --again mentions versions, too
        again, _ = self.load("--again", self.file("other/t.csv", lines.replace("KA3\n", "KD3\n", 1)), code=None)
        self.assertRegex(again.err, r"other/t.csv, [\d,]+ bytes, has the name of a file of [\d,]+ bytes: ")
        self.file("new/t.csv", middle)
        self.load(folder / "t.csv", code=EXIT_SOURCE, message="load all files of the collection with --drop")
        self.load("--drop", "--id-field", "id,make", first, code=None)
        self.load("--id-field", "id,make", folder / "t.csv", code=EXIT_SOURCE,
                  message="--mode upsert replaces its documents")

    def test_a_corrected_or_longer_file_of_the_same_path_is_refused(self):
        """Its records were stored a second time, with a warning that the next month's file got as well."""
        self.load(self.first)
        for text in (TABLE.replace("KA30\n", "KB30\n"), TABLE.replace("KA2\n", "KA two\n"), TABLE + "50,FORD,KA50\n"):
            self.file(self.first.name, text)
            for command in "load", "plan":
                outcome = self.shardload(command, *self.target(), self.first, code=EXIT_SOURCE)
                self.assertIn("these files have changed since they were loaded into", outcome.text)
                self.assertNotIn("--again: ", outcome.text)
            self.assertEqual(self.count(), 49)
        self.load("--mode", "upsert", "--id-field", "id", self.first, collection="ids")
        self.file(self.first.name, TABLE.replace("KA30\n", "KB30\n"))
        self.load("--mode", "upsert", "--id-field", "id", self.first, collection="ids")
        self.assertEqual(self.count("ids"), 50)

    def test_a_loaded_file_that_was_overwritten_with_other_first_records_is_named(self):
        """An export, newest first, was stored twice without a word. A daily file of one name is loaded."""
        lines = "".join(f'{{"n":{n}}}\n' for n in range(50, 99))
        for name, text, pack in (("t.csv", TABLE, bytes), ("t.csv.gz", TABLE, gzip.compress), ("t.json", lines, bytes),
                                 ("t.zip", TABLE, lambda one: making.zip_of([("t.csv", one.decode())]))):
            head, *rows = text.splitlines(True)
            said = rf"{name}, \d+ bytes, has the name of a file of \d+ bytes: \S*{name}, on \S+, 4\d documents\n"
            for records, times in ((rows, 0), (rows[::-1], 1)):
                folder = self.file(f"f{name}/{name}", pack((head + "".join(records)).encode())).parent
                err = self.load(folder, collection=f"c{name}")[0].err
                self.assertEqual(len(re.findall(said + ".*--drop.*--id-field.*--mode upsert", err)), times, err)

    def test_a_file_under_another_name_that_begins_with_the_same_records_is_named(self):
        """A corrected or cumulative export: its records are stored twice, which nothing said."""
        self.load(self.first)
        for name, text, said in (("corrected.csv", TABLE.replace("KA30\n", "KB30\n"), True),
                                 ("packed.csv", TABLE + "50,FORD,KA50\n", True),
                                 ("february.csv", TABLE.replace("KA", "KC"), False)):
            outcome, _ = self.load(self.file(name, text))
            self.assertEqual(bool(re.search(rf"{name} begins with the records of \S*{self.first.name}, on 20\d\d-\S+, "
                                            "49 documents\n", outcome.err)), said, outcome.err)
            self.assertEqual(outcome.err.count("warning:"), said, outcome.err)

    def test_json_of_a_pipe_that_is_loaded_again_is_reported(self):
        for text in (b'{"a":1}\n{"a":2}\n', b'[{"a":3},{"a":4}]'):
            self.load("-", stdin=text)
            outcome, _ = self.load("-", stdin=text)
            self.assertRegex(outcome.err, "- begins with the text of -, on 20")
            self.assertIn("documents without an _id of their own are stored twice", outcome.err)

    def test_a_file_of_which_a_part_was_loaded_is_refused(self):
        """A packed file that was cut off, and has been copied again."""
        data = gzip.compress("".join(f"{n},{hash(str(n))}\n" for n in range(300000)).encode())
        path = self.file("copied.csv.gz", data[:-len(data) // 3])
        self.load("--batch-size", 1000, path, code=EXIT_SOURCE)
        stored = self.count()
        self.assertGreater(stored, 0)
        path.write_bytes(data)
        self.load(path, code=EXIT_SOURCE, message=f"copied.csv.gz: {stored:,} documents; db.")
        self.load("--again", path, message="its records are stored twice")
        self.assertEqual(self.count(), 300000 + stored)
        self.load("--drop", path)
        self.assertEqual(self.count(), 300000)

    def test_a_file_that_was_corrected_after_its_load_failed(self):
        """With the same beginning or another one; the printed commands lead to a right collection."""
        text = "[" + ",".join(f'{{"n":{n}}}' for n in range(200000)) + "]"
        path = self.file("t.json", text[:-1] + ";]")
        outcome, work = self.load("--batch-size", 1000, path, code=EXIT_SOURCE, message="a comma or ] is expected")
        self.assertRegex(" ".join(outcome.err.split()),
                         "--resume cannot complete this load.* If a source changes, first remove the documents")
        self.assertNotIn("give the same command", outcome.err)
        stored = self.count()
        self.assertGreater(stored, 0)
        for corrected in (text, text.replace("0", "7", 1)):
            path.write_text(corrected)
            self.shardload(*self.load_words(work, "--resume", path), code=EXIT_SOURCE,
                           message="Restore the sources of that run, or load without --resume")
            outcome, _ = self.load(path, code=EXIT_SOURCE, message=f"t.json: {stored:,} documents; db.")
            self.assertEqual(self.count(), stored)
        first, end = re.search(r"deleteMany\(\{_id: \{\$gte: NumberLong\('(\d+)'\), \$lt: NumberLong\('(\d+)'\)\}",
                               outcome.err).groups()
        (self.scratch / "new").mkdir()
        outcome, _ = self.load(self.file("new/t.json", corrected))
        self.assertIn(f"the {stored:,} documents of these sources are kept", outcome.err)
        self.database.t.delete_many({"_id": {"$gte": int(first), "$lt": int(end)}})
        self.assertEqual(self.count(), 200000)
        path.write_text(text)
        self.load(path)
        self.assertEqual(self.count(), 400000)
        self.shardload("verify", *self.target(), "--content", path)

    def three(self):
        """Archives with three files, and a dump with three tables: a, b and c."""
        files = [(f"{m}.csv", "m,n\n" + "".join(f"{m},{n}\n" for n in range(99))) for m in "abc"]
        dump = "".join(f"CREATE TABLE {m} (m text, n int);\n" + "".join(f"INSERT INTO {m} VALUES ('{m}',{n});\n"
                                                                        for n in range(99)) for m in "abc")
        return [self.file(*one) for one in (("m.zip", making.zip_of(files)), ("m.sql", dump),
                                            ("m.tgz", gzip.compress(making.tar(files))))]

    def test_selections_that_overlap(self):
        """Some entries of an archive, or tables of a dump, and then others, or all: with the same first one, they were
        stored twice, or rejected, and verify called them equal. Months of one archive are loaded one by one."""
        for path in self.three():
            stored, here = collections.Counter(), {"collection": path.name}
            for include in ("b*", "a*", "[ac]*", "[ab]*", "[ba]*", None):
                words = ["--include", include, path] if include else [path]
                if stored:
                    self.load(*words, code=EXIT_SOURCE, message=" --include 'b*', on 20", **here)
                    self.shardload("verify", *self.target(path.name), *words, code=EXIT_SOURCE,
                                   message=("never been loaded", " --include 'b*', on 20"))
                self.assertEqual("are stored twice" in self.load("--again", *words, **here)[0].err, bool(stored))
                stored.update(m for m in "abc" for _ in range(99) if fnmatch.fnmatch(m, include or "*"))
                self.load(*words, code=EXIT_SOURCE, message="been loaded into", **here)
                self.load("--again", *words, **here)
                self.assertEqual(collections.Counter(one["m"] for one in self.database[path.name].find()), stored)
                self.shardload("verify", "--content", *self.target(path.name), *words)
            at_once = [self.start("shardload", *self.load_words(f"{path}.{m}", "--again", "--include", f"{m}*", path,
                                                                collection=path.suffix[1:])) for m in "ab"]
            self.assertEqual([one.wait().code for one in at_once], [0, 0])
            self.assertEqual(self.count(path.suffix[1:]), 198)

    def test_a_killed_load_of_a_selection(self):
        """Then a load of all: the records of one were taken for those of the other, without --again."""
        for path in self.three():
            here, work = self.database[path.name], f"{path}.killed"
            words = ["--include", "b*", "--rate-limit", 20, "--batch-size", 5, path]
            running = self.start("shardload", *self.load_words(work, *words, collection=path.name))
            self.wait_for(lambda here=here: here.find_one(), "the first document")
            running.kill()
            self.assertIn(stored := here.count_documents({}), range(1, 99))
            self.load(path, collection=path.name, code=EXIT_SOURCE, message="--include 'b*', whose load has not ended")
            self.assertEqual(here.count_documents({}), stored)
            self.shardload(*self.load_words(work, "--resume", *words, collection=path.name))
            self.assertEqual([one["m"] for one in here.find()], ["b"] * 99)

    def test_a_selection_that_an_earlier_version_has_loaded(self):
        """Its registry has the fingerprint of the file, and not --include: the same selection begins with the same
        text and is as large."""
        for path in self.three()[:2]:
            for words, count in ([], 297), (["--include", "b*"], 99):
                here, kept = f"{path.name}{count}", self.database[f"{path.name}{count}.sources"]
                _, work = self.load(*words, path, collection=here)
                one = kept.find_one_and_delete({"number": 1})
                self.assertEqual(one.pop("include"), words[-1] if words else "")
                kept.insert_one(one | {"_id": json.loads((work / "run.json").read_text())["sources"][0]["fingerprint"]})
                self.load(path, collection=here, code=EXIT_SOURCE,
                          message="with another --include" if words else "been loaded into")
                for _ in range(2):
                    self.shardload("verify", "--content", *self.target(here), *words, path)
                    self.load(*words, "--again", path, collection=here)
                self.assertEqual(self.count(here), count)

    def test_two_loads_of_copies_that_start_at_once(self):
        for n in range(3):
            words = [(self.scratch / f"race{n}-{name.name}", name) for name in (self.first, self.second)]
            racing = [self.start("shardload", *self.load_words(work, path, collection=f"t{n}"))
                      for work, path in words]
            codes = [one.wait().code for one in racing]
            self.assertIn(EXIT_SOURCE, codes)
            for code, (work, path) in sorted(zip(codes, words, strict=True)):
                with self.subTest(code, path=path):
                    more = ["--resume"] if (work / "journal").exists() else []
                    outcome = self.shardload(*self.load_words(work, path, *more, collection=f"t{n}"),
                                             code=None)
                    self.assertIn(outcome.code, (0, EXIT_SOURCE))
            self.assertEqual(self.count(f"t{n}"), 49)

    def test_copies_of_started_sources(self):
        """A load of the copy was refused, or killed before its first document."""
        self.load(self.first)
        entry = self.database["t.sources"].find_one({"number": 1})
        work = self.scratch / "killed"
        running = self.start("shardload", *self.load_words(work, "--again", "--rate-limit", 1,
                                                           "--batch-size", 1, self.second))
        self.wait_for(lambda: self.database["t.sources"].find_one({"number": 2}), "the start")
        running.kill()
        stored = self.count()
        resumed = self.load_words(work, "--resume", self.second)
        for words in (self.load_words(self.scratch / "other", self.second), resumed):
            self.shardload(*words, code=EXIT_SOURCE, message="--again")
            self.assertEqual(self.count(), stored)
        self.shardload(*resumed, "--again")
        self.assertEqual(self.count(), 98)
        self.assertEqual(self.database["t.sources"].find_one({"number": 1}), entry)

    def test_files_without_records_may_have_the_same_content(self):
        header = TABLE.split("\n", maxsplit=1)[0] + "\n"
        for name in ("one.csv", "two.csv"):
            _, work = self.load("--header", "yes", self.file(name, header))
            support.shutil.rmtree(work)

    def test_nothing_is_said_where_nothing_is_stored_twice(self):
        self.load(self.first)
        for words, collection in ((["--drop"], "t"), ([], "u"), (["--id-field", "id"], "v")):
            with self.subTest(words):
                outcome, _ = self.load(*words, self.second, collection=collection)
                self.assertNotIn(self.first.name, outcome.text)
                self.assertEqual(self.count(collection), 49)
        outcome, _ = self.load("--id-field", "id", self.first, collection="v", code=None)
        self.assertIn("identical duplicates", outcome.text)
        self.assertEqual(self.count("v"), 49)

    def test_a_dropped_collection_and_another_content_are_no_matter(self):
        self.load(self.first)
        self.database.t.drop()
        self.database["t.sources"].drop()
        outcome, _ = self.load(self.second)
        self.assertEqual(self.count(), 49)
        outcome, _ = self.load(self.file("third.csv", TABLE.replace("KA7", "KB7")))
        self.assertNotIn("under another name", outcome.text)
        self.assertEqual(self.count(), 98)


class Corrected(support.ClusterCase, server="mongod"):
    """Rejects that were corrected are stored once, whichever file is loaded."""

    def setUp(self):
        super().setUp()
        self.schema = self.file("s.yaml", "name: s\ncolumns: [{name: id, type: int}, {name: n, type: int}]\n")
        self.words = "--schema", self.schema
        self.text = "id,n\n" + "".join(f"{n},{'x' if n % 10 == 0 else ''}{n}\n" for n in range(500))
        self.path = self.file("a.csv", self.text)
        _, self.work = self.load(*self.words, self.path, code=support.EXIT_REJECTS)
        self.assertEqual(self.database.t.count_documents({}), 450)

    def test_the_file_of_rejects_is_loaded_and_then_the_source_again(self):
        rejected = next((self.work / "rejected").iterdir())
        rejected.write_text(rejected.read_text("utf-8").replace("x", ""), "utf-8")
        self.load(*self.words, rejected)
        _, work = self.load(*self.words, "--again", self.path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, alreadyStored=450, rejectedByParser=50)
        self.assertEqual(len(self.database.t.distinct("id")), 500)
        other = self.file("b.csv", "id,n\n900,1\nx901,2\n")  # says so each time, and offers only the other file's
        for sources, offered in (([self.path], []), ([self.path, other], ["000002-*"])):
            again, work = self.load(*self.words, "--again", *sources, code=support.EXIT_REJECTS)
            self.assertRegex(again.text, r"a\.csv: 50 rejected, corrected and loaded on 20\d\d-")
            self.assertEqual(re.findall(r"/rejected/([^\s:;,]+)$", again.text, re.M), offered)
            self.assertEqual("load them:" in again.text, bool(offered))
        self.load(*self.words, self.path, code=support.EXIT_SOURCE, message="50 rejected, corrected and loaded on")
        self.database.t.delete_one({"id": 900})
        self.assertEqual(self.database.t.count_documents({}), 500)

    def test_a_load_that_ends_before_it_begins_is_not_the_completed_one_of_its_work_directory(self):
        """--resume said that a load was completed: it was that of the day before, and not one record was stored."""
        work = self.scratch / "nightly"
        words = self.load_words(work, "--drop", self.file("n.csv", "id\n1\n2\n"), collection="n")
        self.shardload(*words)
        self.shardload(*words, "--resume", message="this load has been completed")
        self.database.n.update_many({}, {"$set": {"id": 7}})
        self.shardload(*words[:-1], self.scratch / "none.csv", code=support.EXIT_SOURCE)
        self.shardload("status", work, code=support.EXIT_USAGE, message="its load was refused before it began")
        self.shardload(*words, "--uri", "mongodb://127.0.0.1:1/", code=support.EXIT_CLUSTER)
        self.shardload(*words, "--resume")
        self.assertEqual(sorted(one["id"] for one in self.database.n.find()), [1, 2])

    def load_and_reject(self, collection, *sources):
        words = self.load_words(self.scratch / "work", "--types", "id=int", *sources, collection=collection)
        return self.shardload(*words, code=support.EXIT_REJECTS)

    def load_corrected(self, outcome, name):
        """Corrects the rejects, and runs the command that the load has printed."""
        for path in (self.scratch / "work" / "rejected").iterdir():
            path.write_text(path.read_text("utf-8").replace("x", ""), "utf-8")
        command = re.search(r"load them:\n +shardload (.*)\n", outcome.text)[1]
        self.shardload(*shlex.split(command), "--progress", "none", "--work-dir", self.scratch / name)

    def test_rejects_of_archive_entries_with_another_order_of_columns(self):
        """The columns of corrected records are those of their own entry, not those of the first one."""
        texts = ("1.csv", "id,a,b\n1,a1,b1\nx2,a2,b2\n"), ("2.csv", "id,b,a\n3,b3,a3\nx4,b4,a4\nx5,b5,a5\n")
        outcome = self.load_and_reject("e", self.file("e.zip", making.zip_of(texts)))
        self.assertIn(f"the rejected records are in {self.scratch / 'work' / 'rejected'};", outcome.text)
        self.load_corrected(outcome, "again")
        self.assertEqual([(one["a"], one["b"]) for one in self.database.e.find(sort=[("id", 1)])],
                         [(f"a{n}", f"b{n}") for n in range(1, 6)])

    def test_rejects_of_an_earlier_load_in_the_work_directory(self):
        """The command for the rejects of a load loads only these: a load into another collection had left its own in
        the same work directory."""
        for n, (collection, names) in enumerate((("a", "1"), ("b", "23"), ("b", "4"))):
            sources = [self.file(f"{name}.csv", f"id,n\n{name},1\nx9{name},1\n") for name in names]
            self.load_corrected(self.load_and_reject(collection, *sources), f"again{n}")
        work = self.scratch / "work"
        self.assertEqual(self.database.a.distinct("id"), [1, 91])
        self.assertEqual(self.database.b.distinct("id"), [2, 3, 4, 92, 93, 94])
        # They are kept, are no sources, and are forgotten with the work directory.
        self.assertEqual((work / "rejected-1" / "000001-1.csv").read_text("utf-8"), "id,n\n91,1\n")
        self.assertEqual(len(list((work / "rejected-2").iterdir())), 2)
        self.file("5.csv", "id,n\n5,1\n")
        self.load("--types", "id=int", "--include", "*[15].csv", self.scratch, collection="c",
                  code=support.EXIT_REJECTS)
        self.assertEqual(self.database.c.distinct("id"), [1, 5])
        self.shardload("forget", work)
        self.assertFalse(work.exists())

    def test_a_source_in_which_rejects_were_corrected_is_refused(self):
        """Also if its path is given relative to another folder: its 450 stored records would be stored twice."""
        self.path.write_text(self.text.replace("x", ""), "utf-8")
        for command, path in ("load", self.path), ("plan", self.path), ("load", f"../{self.scratch.name}/a.csv"):
            outcome = self.shardload(command, *self.target(), *self.words, "--again", path, code=support.EXIT_SOURCE)
            self.assertIn("--again: these files have changed since they were loaded into", outcome.text)
            self.assertRegex(outcome.text, f"{re.escape(str(path))}: {len(self.text)} bytes were loaded on [-0-9]+.*, "
                                           f"and it has {len(self.text) - 50}, of another text")
            self.assertIn("rejected/", outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 450)
        self.load(*self.words, "--again", self.file("other/a.csv", self.text.replace("x", "") + "500,1\n"))
        self.assertEqual(self.database.t.count_documents({}), 951)
        self.load(*self.words, "--drop", self.path)
        self.assertEqual(self.database.t.count_documents({}), 500)


class ShardKeys(support.ClusterCase):
    def test_a_mistyped_field_is_refused_before_anything_is_created(self):
        path = self.file("first.csv", TABLE)
        outcome, work = self.load("--shard-key", '{"maek": 1}', path, code=EXIT_USAGE)
        self.assertIn('has a field "maek"; similar names: make', outcome.err)
        self.assertFalse(work.exists())
        self.assertEqual(self.database.list_collection_names(), [])
        self.load("--shard-key", '{"make": 1, "id": 1}', path)
        self.assertEqual(self.shard_key(), {"make": 1, "id": 1})


class StartingServer(support.Case):
    def test_wait_loads_as_soon_as_the_server_has_started(self):
        server = servers.Servers(self.scratch / "server", "--standalone", "--cache", "0.25")
        self.addCleanup(server.down)
        (name,) = server.names()
        server.kill(name)
        running = self.start("shardload", "load", "--uri", server.uri, "-d", "x", "-c", "t",
                             "--wait", "1h", "--work-dir", "w", self.file("first.csv", TABLE))
        self.wait_for(lambda: "connecting:" in running.text(), "the first attempt")
        self.assertIn("connection refused", running.text())
        server.start_again()
        self.assertEqual(running.wait().code, 0, running.text())
        self.assert_accounting(self.scratch / "w", inserted=49)


class HostsOfTheUri(support.ClusterCase):
    """What is written must go through the routers of one cluster, or into one replica set."""

    def setUp(self):
        super().setUp()
        self.source = self.file("table.csv", TABLE)

    def words(self, command, uri):
        """The words of a command that writes, or predicts a load, and would succeed."""
        sources = {"restore": self.scratch}.get(command, self.source)
        work = [] if command == "plan" else ["--work-dir", self.scratch / "work"]
        target = [] if command == "restore" else ["-d", self.database_name, "-c", "t"]
        suite = ["--suite", "mot"] if command == "reload" else []
        return [command, "--uri", uri, *target, *suite, *work, sources]

    def test_a_server_of_a_cluster_is_refused_by_all_commands_that_write(self):
        (self.scratch / "d").mkdir()
        (self.scratch / "d" / "t.bson").write_bytes(support.bson.encode({"_id": 1}))
        shard = self.shard_clients()["s0"]
        state = shard.admin.command("shardingState")
        config = state["configServer"].partition("/")[2]
        for host, what in ((self.shard_hosts()["s0"], "is shard s0 of the cluster with the config "
                                                      f"servers {state['configServer']}"),
                           (config, "is a config server of a sharded cluster")):
            for command in ("load", "restore", "tune", "reload", "plan"):
                with self.subTest(command, host=host):
                    outcome = self.shardload(*self.words(command, f"mongodb://{host}/"),
                                             code=EXIT_USAGE, message=what)
                    self.assertIn("name the routers", outcome.err)
        self.assertNotIn(self.database_name, shard.list_database_names())
        self.assertNotIn("d", shard.list_database_names())

    def test_a_server_of_a_cluster_can_be_read(self):
        self.load(self.source)
        outcome = self.shardload("verify", "--uri", f"mongodb://{self.shard_hosts()['s0']}/", "-d",
                                 self.database_name, "-c", "t", self.source, code=None)
        self.assertNotEqual(outcome.code, EXIT_USAGE, outcome.text)

    def test_a_server_for_a_cluster_that_it_has_not_joined_is_loaded(self):
        alone = servers.Servers(self.scratch / "alone", "--shards", 0, "--cache", "0.25",
                                "--mongod-option=--shardsvr", *servers.SAVING)
        self.addCleanup(alone.down)
        self.shardload(*self.words("load", alone.uri))

    # Several hosts

    def router(self, change=None):
        """The address of a proxy before the router. `change`: of the replies to a find in
        config.version."""
        class Router(proxy.Proxy):
            def action_for(self, message):
                command, value = proxy.command_of(message)
                if change and command == "find" and proxy.collection_of(value) == "version":
                    return proxy.change_reply(change)
                return super().action_for(message)
        made = Router(support.port_of(self.uri))
        self.addCleanup(made.close)
        return f"{support.HOST}:{made.port}"

    def load_into(self, *hosts, **expected):
        return self.shardload(*self.words("load", f"mongodb://{','.join(hosts)}/"), **expected)

    def test_routers_of_two_clusters_are_refused(self):
        def change(reply):
            reply["cursor"]["firstBatch"][0]["clusterId"] = support.bson.ObjectId()
            return reply
        hosts = self.router(), self.router(change)
        outcome = self.load_into(*hosts, code=EXIT_USAGE, message="do not belong together")
        for host in hosts:
            self.assertIn(f"{host} is a router of the cluster ", outcome.err)
        self.assertEqual(self.database.list_collection_names(), [])

    def test_routers_of_one_cluster_are_used(self):
        self.load_into(self.router(), self.router())
        self.assertEqual(self.database.t.count_documents({}), 49)

    def test_a_router_whose_cluster_cannot_be_read_is_used(self):
        self.load_into(self.router(), self.router(lambda _: {"ok": 0.0, "code": 13, "errmsg": "no"}))

    def test_a_router_and_a_shard_are_refused(self):
        """Which of the reasons is found first depends on the host that answers the driver first."""
        outcome = self.load_into(self.router(), self.shard_hosts()["s0"], code=EXIT_USAGE)
        self.assertRegex(outcome.err, "is a member of the replica set s0|this server is shard s0 of the cluster")

    def test_members_of_two_replica_sets_are_refused(self):
        self.load_into(*self.shard_hosts().values(), code=EXIT_USAGE,
                       message="do not belong together")
