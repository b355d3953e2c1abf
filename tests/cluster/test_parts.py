# SPDX-License-Identifier: Apache-2.0
"""`--part K/N`: several loaders that do not communicate share one load. Together they store exactly
the sources, and each block is loaded by one of them."""
import os

import journal_reader
import support
from support import bson


class Parts(support.ClusterCase):
    def part(self, number, of, *words, **more):
        """Loads a part. Returns (outcome, work directory)."""
        return self.load("--part", f"{number}/{of}", *words, **more)

    def begin(self, number, of, *words):
        work = self.scratch / f"part-{number}-of-{of}"
        return work, self.start("shardload", *self.load_words(
            work, "--part", f"{number}/{of}", "--batch-size", 10, *words))

    def wide(self, documents):
        """A source of WIDE_ROWS documents in each block."""
        return self.file(f"{documents}.txt", support.wide_text(documents // support.WIDE_ROWS))

    def registered(self):
        return [source for source in self.database["t.sources"].find() if "name" in source]

    def figures(self, *works):
        """The sums of the totals of these loads."""
        sums = {}
        for work in works:
            accounting = support.run_record(work)["accounting"]
            self.assertIs(accounting["addsUp"], True)
            for name in ("records", "inserted", "alreadyStored", "rejectedByParser"):
                sums[name] = sums.get(name, 0) + accounting[name]
        return sums

    def journal(self, work):
        """The blocks in a load's journal: (source, sequence) of each."""
        entries = journal_reader.Journal((work / "journal").read_bytes()).entries
        return [(entry.source, entry.sequence) for entry in entries]

    def test_parts_with_different_inferred_types(self):
        """The types of a.csv depend on the other sources with its columns."""
        numbers = self.file("a.csv", "k,v\n" + "".join(f"{n},{n}\n" for n in range(3000)))
        words = self.file("c.csv", "k,v\n" + "".join(f"{n},word\n" for n in range(3000)))
        halves = self.file("d.csv", "k,v\n" + "".join(f"{n},{n}.5\n" for n in range(3000)))
        self.part(1, 2, numbers)
        self.part(2, 2, numbers, halves, code=support.EXIT_USAGE,
                  message="a.csv: another loader has started its part with other types of its columns")
        self.part(2, 2, numbers, words, code=support.EXIT_SOURCE,
                  message='a.csv: column v: int in the collection, text here, as "word"')
        self.part(2, 2, numbers)
        self.assertEqual(self.database.t.count_documents({"v": {"$not": {"$type": "int"}}}), 0)
        self.assertEqual(self.database.t.count_documents({}), 3000)

    def assert_two_at_once(self, *words, documents=1200):
        sources = [self.wide(documents)]
        running = [self.begin(number, 2, *words, *sources) for number in (1, 2)]
        outcomes = [process.wait() for _, process in running]
        for outcome in outcomes:
            self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        sums = self.figures(*[work for work, _ in running])
        self.assertEqual((sums["records"], sums["inserted"]), (documents, documents))
        # Each loader has loaded a share of each range.
        for work, _ in running:
            record = support.run_record(work)
            self.assertGreater(record["accounting"]["inserted"], documents / 5)
            for one in record["verification"]["ranges"]:
                self.assertGreater(one["expected"], 0)
        # Each block is in one journal.
        blocks = [block for work, _ in running for block in self.journal(work)]
        self.assertEqual(sorted(blocks), [(0, number) for number in range(len(blocks))])
        errors = "".join(outcome.text for outcome in outcomes)    # of both, if they end at the same moment
        self.assertIn("all 2 parts are loaded: 1,200 documents in total", errors)
        self.assert_all_loaded(*sources, documents=documents)

    def test_two_at_once_into_a_new_collection(self):
        self.assert_two_at_once()

    def test_two_at_once_by_the_direct_route(self):
        self.assert_two_at_once("--route", "direct")

    def test_two_at_once_by_a_hashed_key(self):
        sources = [self.wide(600)]
        words = ["--shard-key", '{"v": "hashed"}', "--route", "direct", *sources]
        running = [self.begin(number, 2, *words) for number in (1, 2)]
        for _, process in running:
            process.wait().expect(support.EXIT_OK)
        self.assertEqual(self.figures(*[work for work, _ in running])["inserted"], 600)
        self.assert_all_loaded(*sources, documents=600)

    def test_many_small_files_of_all_kinds_in_three_parts(self):
        folder, documents = self.small_files(12)
        works = []
        for number in (2, 3, 1):
            outcome, work = self.part(number, 3, folder)
            works.append(work)
            states = {source["state"] for source in self.registered()}
            self.assertEqual(states, {"loaded"} if number == 1 else {"started"})
            self.assertIn("all 3 parts are loaded" if number == 1 else
                          f"part {number} of 3 is loaded; 12 of 12 sources wait", outcome.text)
        self.assertEqual(self.figures(*works)["inserted"], documents)
        self.assert_all_loaded(folder, documents=documents)

    def test_the_order_of_sources_and_an_additional_file_do_not_matter(self):
        sources = [self.wide(300)]
        more = self.generate("A", 30000, "--seed", 4)
        additional = self.file("0-notes.csv", support.mot_text([1]))
        _, work_1 = self.part(1, 2, *sources, *more)
        _, work_2 = self.part(2, 2, additional, *more, *sources)
        sums = self.figures(work_1, work_2)
        self.assertEqual(sums["alreadyStored"], 0)
        self.shardload("verify", *self.target(), "--content", "--progress", "none", *sources, *more)
        states = {source["name"]: source["state"] for source in self.registered()}
        self.assertEqual([states[str(path)] for path in [*sources, *more]], ["loaded", "loaded"])
        self.assertEqual(states[str(additional)], "started")

    def test_a_source_is_not_loaded_before_it_is_counted(self):
        sources = [self.wide(600)]
        self.part(1, 2, *sources)
        gone = [one["_id"] for one in self.database.t.find({}, {"_id": 1}).limit(10)]
        self.database.t.delete_many({"_id": {"$in": gone}})
        _, work = self.part(2, 2, *sources, code=support.EXIT_VERIFICATION)
        self.assertEqual([source["state"] for source in self.registered()], ["started"])

        self.part(1, 2, "--again", *sources)
        self.assertEqual([source["state"] for source in self.registered()], ["loaded"])
        self.assert_all_loaded(*sources, documents=600)

    def test_generated_records(self):
        words = ["--format", "ycsb", "--records", 20000, "--field-count", 1]
        works = [self.part(number, 4, *words)[1] for number in (1, 2, 3, 4)]
        sums = self.figures(*works)
        self.assertEqual((sums["inserted"], sums["alreadyStored"]), (20000, 0))
        self.assert_all_loaded(*words, documents=20000)

    def test_a_part_is_loaded_once(self):
        sources = [self.wide(300)]
        _, first = self.part(1, 2, *sources)
        self.part(1, 2, *sources, code=support.EXIT_SOURCE, message="this part of it")
        loaded = self.figures(first)["inserted"]
        _, again = self.part(1, 2, "--again", *sources)
        self.assertEqual(self.figures(again)["alreadyStored"], loaded)
        self.assertEqual(self.figures(again)["inserted"], 0)
        # Parts of another division do not complete this one.
        _, third = self.part(1, 3, *sources)
        _, second = self.part(2, 2, *sources)
        self.assertGreater(self.figures(second)["inserted"], 0)
        self.assert_all_loaded(*sources, documents=300)
        self.part(2, 2, *sources, code=support.EXIT_SOURCE, message="been loaded into")
        self.assertGreater(self.figures(third)["records"], 0)

    def test_a_second_round_of_upserts_needs_all_parts(self):
        sources = [self.file("t.csv", "_id,v\n" + "".join(f"{n},{'x' * 100}\n" for n in range(12000)))]
        words = "--mode", "upsert", "--id-field", "_id", *sources
        for number in (1, 2):
            self.part(number, 2, *words)
        self.database.t.delete_many({})
        self.part(1, 2, *words, message="part 1 of 2 is loaded; 1 of 1 sources wait")
        self.assertEqual({one["state"] for one in self.registered()}, {"started"})
        self.part(2, 2, *words, message="all 2 parts are loaded")
        self.assertEqual(self.database.t.count_documents({}), 12000)

    def test_the_last_part_notices_a_missing_document_of_another_part(self):
        sources = [self.wide(300)]
        self.part(1, 2, *sources)
        lost = self.database.t.find_one({})["_id"]
        self.database.t.delete_one({"_id": lost})
        # The document's range holds more documents than the second part's own: only the sum shows it.
        outcome, _ = self.part(2, 2, *sources, code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.err, "2 parts have loaded 300 documents, and 299 are")

    def test_a_part_that_was_killed_is_resumed_as_the_same_part(self):
        sources = [self.wide(600)]
        self.part(1, 2, *sources)
        before = self.database.t.count_documents({})
        work, running = self.begin(2, 2, "-j", 1, "--rate-limit", 100, *sources)
        self.wait_for_documents(running, before + 20)
        running.kill()
        self.assertEqual({source["state"] for source in self.registered()}, {"started"})
        words = self.load_words(work, "--resume", *sources)
        for other in (["--part", "1/2"], []):
            self.shardload(*words, *other, code=support.EXIT_USAGE, message="--part was \"2/2\"")
        self.shardload(*words, "--part", "2/2")
        self.assert_all_loaded(*sources, documents=600)

    def test_a_part_without_the_last_block_is_resumed(self):
        source = self.file("t.csv", "id,v\n" + "".join(f"{n},{'x' * 100}\n" for n in range(12000)))
        for number in (1, 2):
            words = ["--part", f"{number}/2", "--index", '{"v": "2dsphere"}', source]
            _, work = self.load(*words, code=support.EXIT_CLUSTER)
            self.shardload(*self.load_words(work, "--resume", *words), code=support.EXIT_CLUSTER,
                           message="2dsphere")

    def test_each_reject_is_listed_once_and_with_its_line_only_where_it_is_known(self):
        sources = self.generate("B", 40000, "--seed", 4, "--bad", 40)
        undivided = self.scratch / "undivided"
        self.shardload("load", "--sink", "null", "--work-dir", undivided, "--progress", "none",
                       *sources, code=support.EXIT_REJECTS)
        lines = {row["offset"]: row["line"] for row in support.reject_rows(undivided)}
        works = [self.part(number, 3, *sources, code=None)[1] for number in (1, 2, 3)]
        rows = [row for work in works for row in support.reject_rows(work)]
        self.assertEqual(sorted(row["offset"] for row in rows), sorted(lines))
        with_line = [row for row in rows if row["line"]]
        self.assertTrue(with_line and len(with_line) < len(rows), "only one kind of reject")
        for row in with_line:
            self.assertEqual(row["line"], lines[row["offset"]])
        self.assertEqual(self.figures(*works)["rejectedByParser"], len(lines))

    def test_parts_with_other_options_are_refused(self):
        sources = self.generate("B", 9000, "--seed", 8)
        schema = self.file("schema.yaml", "columns:\n  - {name: test_id, type: int}\n")
        for words in (["--part"], ["--only-shards"]):
            self.client.drop_database(self.database_name)
            first, second = (("1/2", "2/2") if words == ["--part"] else ("s0", "s1"))
            self.load(*words, first, *sources)
            before = self.database.t.count_documents({})
            for option, value in (("names", "long"), ("encoding", "latin-1"), ("missing", "raw"),
                                  ("trim", None), ("format", "mot")):
                self.load(*words, second, f"--{option}", *([value] if value else []), *sources,
                          code=support.EXIT_USAGE, message=f"started its part with --{option} ")
            self.load(*words, second, "--include", "*.csv", *sources, code=support.EXIT_USAGE,
                      message="no source is one of these: leave it out")
            outcome, _ = self.load(*words, second, "--format", "delimited", "--schema", schema,
                                   *sources, code=support.EXIT_USAGE)
            self.assertEqual(self.database.t.count_documents({}), before)
            self.load(*words, second, *sources)
            self.assert_all_loaded(*sources, documents=9000)
            # A second load with --again may have other options.
            self.load(*words, first, "--again", "--names", "long", *sources, code=None)
            outcome, _ = self.load(*words, second, "--again", *sources, code=support.EXIT_USAGE)
            self.assertIn('--names "long", and this loader has "(not given)"', outcome.err)
            self.load(*words, second, "--again", "--names", "long", *sources, code=None)
            self.assertEqual({source["state"] for source in self.registered()}, {"loaded"})

    def test_of_two_at_once_with_other_options_one_is_refused(self):
        sources = [self.wide(600)]
        running = [self.begin(1, 2, *sources), self.begin(2, 2, "--names", "long", *sources)]
        codes = sorted(process.wait().code for _, process in running)
        self.assertEqual(codes, [support.EXIT_OK, support.EXIT_USAGE],
                         [process.text() for _, process in running])
        self.assertEqual({source["state"] for source in self.registered()}, {"started"})
        long = self.database.t.count_documents({"vehicle_id": {"$exists": True}})
        self.assertIn(long, (0, self.database.t.count_documents({})))

    def test_numbers_of_sources_run_out(self):
        small = [self.file(f"{n}.txt", support.mot_text([n])) for n in (1, 2, 3)]
        last = 8388606
        self.load(self.file("0.txt", support.mot_text([0])))
        self.database["t.sources"].update_one({"_id": "counter"}, {"$set": {"last": last - 2}})
        self.load("--again", *small, code=support.EXIT_CLUSTER, message=f"has no 3 source numbers left of its {last}")
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.shardload("plan", *self.target(), *small, code=support.EXIT_CLUSTER, message="no source numbers left")
        # The last two numbers can be used.
        _, work = self.load(*small[:2])
        self.assert_accounting(work, inserted=2)
        self.assertEqual([source["number"] for source in support.run_record(work)["sources"]],
                         [last - 1, last])
        self.shardload("verify", *self.target(), "--content", "--progress", "none", *small[:2])

    def assert_changed_between_parts(self, path, change, parts):
        time = path.stat().st_mtime
        self.load(*parts[0], path, code=None)
        before = path.read_bytes()
        path.write_bytes(change(before))
        self.assertEqual(path.stat().st_size, len(before))
        os.utime(path, (time, time))
        outcome, work = self.load(*parts[1], path, code=support.EXIT_SOURCE,
                                  message="parts were not read from the same text")
        self.assertNotIn("to complete this load", outcome.err)
        self.assertEqual({source["state"] for source in self.registered()}, {"started"})
        self.shardload(*self.load_words(work, "--resume", *parts[1], path), code=support.EXIT_SOURCE,
                       message="parts were not read from the same text")
        self.client.drop_database(self.database_name)

    def test_a_source_that_changes_between_its_parts(self):
        halves = [["--part", "1/2"], ["--part", "2/2"]]
        shards = [["--only-shards", "s0"], ["--only-shards", "s1"]]

        def records_moved(text):
            lines = text.splitlines(keepends=True)
            return b"".join(lines[:60] + lines[62:280] + lines[60:62] + lines[280:])

        for parts in (halves, shards):
            self.assert_changed_between_parts(self.wide(320), records_moved, parts)

        def record(n, text="t"):
            return bson.encode({"_id": n, "text": text * 30000})
        path = self.scratch / "t.bson"
        path.write_bytes(b"".join(record(n) for n in range(300)))
        self.assert_changed_between_parts(
            path, lambda text: b"".join(record(n) for n in [*range(60), *range(62, 250), 60, 61, *range(250, 300)]),
            halves)

    def test_a_line_that_spans_several_parts(self):
        lines = support.mot_text(range(1, 30000)).splitlines(keepends=True)
        path = self.file("long.txt", "".join(lines[:9000]) + "x" * (20 << 20) + "\n" + "".join(lines[9000:]))
        for number in (1, 2, 3):
            self.part(number, 3, path, code=None)
        self.assertEqual([source["state"] for source in self.registered()], ["loaded"])
        self.assertEqual(self.database.t.count_documents({}), 29999)

    # Refusals

    def test_refusals(self):
        source = self.file("t.txt", support.mot_text([1]))
        for text in ("0/2", "3/2", "1", "1/", "1/2/3", "a/b", "1/0", "-1/2"):
            outcome, _ = self.load(f"--part={text}", source, code=support.EXIT_USAGE)
            self.assertIn(f"\"{text}\" is not a part; write it like 2/4", outcome.err)
        self.part(1, 2, "--drop", source, code=support.EXIT_USAGE, message="--drop with --part would drop")
        self.part(1, 2, "-", stdin=source.read_bytes(), code=support.EXIT_USAGE, message="a pipe cannot be shared")
        self.assertEqual(self.database.list_collection_names(), [])
