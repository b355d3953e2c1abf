# SPDX-License-Identifier: Apache-2.0
"""`--only-shards`: several loaders share one load, and each loads the documents of its own shards.
Together they store exactly the sources, and each writes to its shards only."""
import io
import zipfile

import support

DIRECT = "--route", "direct"


class OnlyShardsCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.shards = sorted(shard["_id"] for shard in self.client.config.shards.find())
        self.first, self.second = self.shards

    def only(self, names, *words, **more):
        """Loads the documents of these shards. Returns (outcome, work directory)."""
        return self.load("--only-shards", names, *words, **more)

    def begin(self, names, *words):
        work = self.scratch / f"only-{names}"
        return work, self.start("shardload", *self.load_words(
            work, "--only-shards", names, "--batch-size", 200, *words))

    def registered(self):
        return {source["name"]: source for source in self.database["t.sources"].find()
                if "name" in source}

    def states(self):
        return {source["state"] for source in self.registered().values()}

    def figures(self, work):
        record = support.run_record(work)
        self.assertIs(record["accounting"]["addsUp"], True)
        self.assertIs(record["verification"]["ok"], True)
        return record["accounting"]

    def assert_one_by_one(self, *words, documents, route=()):
        """Runs a loader for each shard, one after the other; each writes to its own shard only."""
        stored = dict.fromkeys(self.shards, 0)
        for name in (self.second, self.first):
            outcome, work = self.only(name, *route, *words)
            figures = self.figures(work)
            self.assertGreater(figures["inserted"], 0)
            self.assertEqual(figures["alreadyStored"], 0)
            self.assertEqual(support.run_record(work)["options"]["only-shards"], name)
            stored[name] += figures["inserted"]
            self.assertEqual(self.counts_by_shard(), stored)
            for one in support.run_record(work)["verification"]["ranges"]:
                self.assertEqual((one["shard"], one["expected"]), (name, one["found"]))
            self.assertEqual(self.states(), {"loaded"} if name == self.first else {"started"})
        self.assertIn("all 2 shards are loaded", outcome.text)
        self.assert_all_loaded(*words, documents=documents)

    def assert_at_once(self, *words, documents, route=()):
        running = {name: self.begin(name, *route, *words) for name in self.shards}
        errors = ""
        for _, process in running.values():
            outcome = process.wait().expect(support.EXIT_OK)
            errors += outcome.text
        inserted = {name: self.figures(work)["inserted"] for name, (work, _) in running.items()}
        self.assertEqual(self.counts_by_shard(), inserted)
        self.assertEqual(sum(inserted.values()), documents)
        self.assertGreater(min(inserted.values()), 0)
        # Both loaders report it if they end at the same time.
        self.assertIn(errors.count("all 2 shards are loaded"), (1, 2), errors)
        self.assert_all_loaded(*words, documents=documents)


class Together(OnlyShardsCase):
    def large_files(self):
        """A plain and a gzip file. Returns (their paths, documents)."""
        return [self.file("plain.txt", support.wide_text(6, rows=1000)),
                self.zipped("packed.txt.gz", support.unlike_text(5, 1000, 5))], 11000

    def test_large_files_one_by_one(self):
        sources, documents = self.large_files()
        self.assert_one_by_one(*sources, documents=documents)

    def test_large_files_by_the_direct_route(self):
        sources, documents = self.large_files()
        self.assert_one_by_one(*sources, documents=documents, route=DIRECT)

    def test_large_files_at_once(self):
        sources, documents = self.large_files()
        self.assert_at_once(*sources, documents=documents)

    def test_large_files_at_once_by_the_direct_route(self):
        sources, documents = self.large_files()
        self.assert_at_once(*sources, documents=documents, route=DIRECT)

    def test_small_files_one_by_one(self):
        folder, documents = self.small_files()
        self.assert_one_by_one(folder, documents=documents)

    def test_small_files_at_once(self):
        folder, documents = self.small_files()
        self.assert_at_once(folder, documents=documents)

    def test_an_archive_whose_blocks_are_shorter_than_their_mebibytes(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(12):
                lines = support.unlike_text(2, 1000, number).splitlines(keepends=True)
                archive.writestr(f"part-{number}.txt", "".join(lines[:501 + 50 * number]))
        source = self.file("years.zip", packed.getvalue())
        self.assert_one_by_one(source, documents=sum(500 + 50 * n for n in range(12)))

    def test_generated_records(self):
        self.assert_one_by_one("--format", "ycsb", "--records", 40000, "--field-count", 1,
                               documents=40000)

    def test_one_loader_for_both_shards_loads_all_documents(self):
        sources, documents = self.large_files()
        outcome, work = self.only(f"{self.second},{self.first}", *sources)
        self.assertEqual(self.figures(work)["inserted"], documents)
        self.assertIn("all 2 shards are loaded: 11,000 documents in total", outcome.text)
        stored = self.counts_by_shard()
        self.assertGreater(min(stored.values()), 0)
        # The registry counts the documents of each shard separately.
        parts = [source["parts"]["shards"] for source in self.registered().values()]
        self.assertEqual([sum(one[str(i + 1)] for one in parts) for i in range(2)],
                         [stored[name] for name in sorted(stored)])
        self.assert_all_loaded(*sources, documents=documents)
        # So a single shard may be loaded again, and the sums stay right.
        for name in (self.first, self.second):
            _, work = self.only(name, "--again", *sources)
            figures = self.figures(work)
            self.assertEqual((figures["inserted"], figures["alreadyStored"]), (0, stored[name]))
        self.assert_all_loaded(*sources, documents=documents)


class Agreement(OnlyShardsCase):
    def setUp(self):
        super().setUp()
        self.source = self.file("year.txt", support.wide_text(6, rows=1000))

    def test_a_shard_that_is_not_loaded_yet_is_reported(self):
        _, work = self.only(self.first, self.source, message=f"shards ({self.first}) are loaded; 1 of 1 sources wait")
        self.assertLess(self.figures(work)["records"], 6000)
        self.shardload("verify", *self.target(), "--progress", "none", self.source,
                       code=support.EXIT_VERIFICATION, message="began and has not finished")

    def test_other_sources_in_the_command_do_not_change_the_layout_of_a_file(self):
        # A single file is split over both shards; one of many files would go to one shard.
        self.only(self.first, self.source)
        folder, _ = self.small_files()
        _, work = self.only(self.second, folder, self.source)
        self.assertGreater(self.figures(work)["inserted"], 1000)
        self.shardload("verify", *self.target(), "--content", "--progress", "none", self.source)
        states = {name: source["state"] for name, source in self.registered().items()}
        self.assertEqual(states.pop(str(self.source)), "loaded")
        self.assertEqual(set(states.values()), {"started"})
        self.only(self.first, folder)
        self.assertEqual(self.states(), {"loaded"})
        self.shardload("verify", *self.target(), "--content", "--progress", "none", self.source,
                       folder)

    def test_moved_chunks_do_not_change_which_loader_loads_a_document(self):
        _, work = self.only(self.first, self.source)
        loaded = self.figures(work)["inserted"]
        bounds = support.run_record(work)["verification"]["ranges"][0]
        self.client.admin.command(
            "moveChunk", f"{self.database_name}.t",
            find={"_id": support.bson.int64.Int64(bounds["minimum"])}, to=self.second)
        _, work = self.only(self.first, "--again", self.source, message="are on other shards")
        self.assertEqual(self.figures(work)["alreadyStored"], loaded)
        _, work = self.only(self.second, self.source)
        self.assertEqual(self.figures(work)["inserted"], 6000 - loaded)
        self.assert_all_loaded(self.source, documents=6000)

    def test_other_shards_than_those_of_the_first_loader_are_refused(self):
        self.only(self.first, self.source)
        before = self.database.t.count_documents({})
        layout = self.registered()[str(self.source)]["layout"]
        for change in ({"shards": layout["shards"] + 1}, {"shardNames": layout["shardNames"] ^ 1}):
            self.database["t.sources"].update_one({"name": str(self.source)},
                                                  {"$set": {"layout": {**layout, **change}}})
            self.only(self.second, self.source, code=support.EXIT_CLUSTER,
                      message=f"the cluster now has other shards ({self.first}, {self.second})")
        self.assertEqual(self.database.t.count_documents({}), before)
        self.assertEqual(self.states(), {"started"})
        # The message advises a load without --only-shards.
        _, work = self.load(self.source)
        self.assertEqual(self.figures(work)["alreadyStored"], before)
        self.assert_all_loaded(self.source, documents=6000)

    def test_parts_by_part_do_not_count_as_parts_by_only_shards(self):
        self.load("--part", "1/2", self.source)
        self.only(self.second, self.source, message="1 of 1 sources wait for other shards")
        self.load("--part", "2/2", self.source)
        self.assert_all_loaded(self.source, documents=6000)

    def test_a_shard_is_loaded_once(self):
        _, first = self.only(self.first, self.source)
        both = f"{self.first},{self.second}"
        for names in (self.first, both):
            self.only(names, self.source, code=support.EXIT_SOURCE, message="this part of it")
        _, work = self.only(both, "--again", self.source)
        self.assertEqual(self.figures(work)["alreadyStored"], self.figures(first)["inserted"])
        self.assert_all_loaded(self.source, documents=6000)

    def test_the_last_loader_notices_a_removed_document(self):
        self.only(self.first, self.source)
        self.database.t.delete_one({"_id": self.database.t.find_one({})["_id"]})
        outcome, _ = self.only(self.second, self.source, code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.err, "2 parts have loaded 6,000 documents, and 5,999 are")
        self.assertEqual(self.states(), {"started"})

    def test_a_loader_that_was_killed_is_resumed_for_the_same_shards(self):
        self.only(self.first, self.source)
        before = self.database.t.count_documents({})
        work, running = self.begin(self.second, "-j", 1, "--rate-limit", 2000, self.source)
        self.wait_for_documents(running, before + 500)
        running.kill()
        self.assertEqual(self.states(), {"started"})
        words = self.load_words(work, "--resume", self.source)
        for other in (["--only-shards", self.first], []):
            self.shardload(*words, *other, code=support.EXIT_USAGE, message=f"--only-shards was \"{self.second}\"")
        self.shardload(*words, "--only-shards", self.second)
        self.assert_all_loaded(self.source, documents=6000)


class Refusals(OnlyShardsCase):
    def setUp(self):
        super().setUp()
        self.source = self.file("t.txt", support.mot_text([1]))

    def test_options_that_exclude_only_shards_are_refused(self):
        for words, code, message in (
                (["--part", "1/2"], support.EXIT_USAGE, "choose one of them"),
                (["--drop"], support.EXIT_USAGE, "--drop with --only-shards would drop"),
                (["--shard-key", '{"_id": "hashed"}'], support.EXIT_USAGE, "with --part"),
                (["--shard-key", '{"v": 1}'], support.EXIT_USAGE, "with --part"),
                (["--shard-key", "none"], support.EXIT_USAGE, "with --part")):
            self.only(self.first, *words, self.source, code=code, message=message)
        self.only(self.first, "-", stdin=self.source.read_bytes(), code=support.EXIT_USAGE,
                  message="a pipe cannot be shared by several loaders; --only-shards is")
        self.shardload("load", "--sink", "null", "--only-shards", self.first, self.source,
                       code=support.EXIT_USAGE, message="--only-shards is for loads into a cluster")
        self.assertEqual(self.database.list_collection_names(), [])

    def test_missing_and_unknown_names_of_shards_are_refused(self):
        for names in ("", ",", f"{self.first},"):
            outcome, _ = self.load(f"--only-shards={names}", self.source, code=support.EXIT_USAGE)
            self.assertIn("contains an empty shard name", outcome.err)
        for names in ("nobody", f"{self.first},nobody", f"nobody,{self.first}"):
            outcome, _ = self.only(names, self.source, code=support.EXIT_USAGE)
            self.assertIn(f"no shard \"nobody\"; it has {self.first}, {self.second}", outcome.err)
        self.assertEqual(self.database.list_collection_names(), [])

    def test_a_deployment_without_shards_is_refused(self):
        for variable, deployment in (("SHARDLOAD_TEST_STANDALONE_URI", "mongod"),
                                     ("SHARDLOAD_TEST_REPLICA_URI", "replica set")):
            with self.subTest(deployment):
                self.shardload("load", "--uri", support.cluster_uri(variable), "-d",
                               self.database_name, "-c", "t", "--progress", "none", "--only-shards",
                               "s0", self.source, code=support.EXIT_USAGE,
                               message=("--only-shards needs a sharded cluster", "--part"))
