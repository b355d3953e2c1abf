# SPDX-License-Identifier: Apache-2.0
"""`--only-shards`: one load, shared by loaders of which each takes what lies on its own shards.
Together they bring exactly the sources, and each brings its documents to its shards alone."""
import gzip
import io
import os
import signal
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402
from support import pymongo  # noqa: E402

DIRECT = "--route", "direct"


class OnlyShardsCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.hosts = {shard["_id"]: shard["host"].rpartition("/")[2].split(",")[0]
                      for shard in self.client.config.shards.find()}
        self.first, self.second = sorted(self.hosts)

    def only(self, names, *words, **more):
        """Loads what belongs to these shards. Returns (outcome, work directory)."""
        return self.load("--only-shards", names, *words, **more)

    def begin(self, names, *words):
        work = self.scratch / f"only-{names}"
        return work, self.start(
            "shardload", "load", *self.target(), "--work-dir", work, "--progress", "none",
            "--only-shards", names, "--batch-size", 200, *words)

    def stored_on(self, shard):
        """How many documents a shard has, by what it says itself."""
        with pymongo.MongoClient(f"mongodb://{self.hosts[shard]}/",
                                 directConnection=True) as client:
            return client[self.database_name].t.count_documents({})

    def stored_by_shard(self):
        return {shard: self.stored_on(shard) for shard in self.hosts}

    def registered(self):
        return {source["name"]: source for source in self.database["t.sources"].find()
                if "name" in source}

    def states(self):
        return {source["state"] for source in self.registered().values()}

    def figures(self, work):
        record = support.run_record(work)
        self.assertIs(record["accounting"]["holds"], True)
        self.assertIs(record["verification"]["ok"], True)
        return record["accounting"]

    def assert_whole(self, *sources, documents):
        self.shardload("verify", *self.target(), "--content", "--progress", "none", *sources)
        self.assertEqual(self.database.t.count_documents({}), documents)
        found = self.registered().values()
        self.assertEqual({source["state"] for source in found}, {"loaded"})
        self.assertEqual(sum(source["documents"] for source in found), documents)
        self.assertEqual(self.balancer_mode(), "full")

    def assert_one_by_one(self, *words, documents, others=()):
        """A loader for each shard, one after the other: each brings to its own shard alone."""
        stored = dict.fromkeys(self.hosts, 0)
        for name in (self.second, self.first):
            outcome, work = self.only(name, *others, *words)
            figures = self.figures(work)
            self.assertGreater(figures["inserted"], 0)
            self.assertEqual(figures["alreadyThere"], 0)
            self.assertEqual(support.run_record(work)["options"]["only-shards"], name)
            stored[name] += figures["inserted"]
            self.assertEqual(self.stored_by_shard(), stored)
            for one in support.run_record(work)["verification"]["ranges"]:
                self.assertEqual((one["shard"], one["expected"]), (name, one["found"]))
            self.assertEqual(self.states(), {"loaded"} if name == self.first else {"started"})
        self.assertIn("all 2 shards are loaded", outcome.err)
        self.assert_whole(*words, documents=documents)

    def assert_at_once(self, *words, documents, others=()):
        running = {name: self.begin(name, *others, *words) for name in self.hosts}
        said = ""
        for _, process in running.values():
            outcome = process.wait()
            self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
            said += outcome.err
        inserted = {name: self.figures(work)["inserted"] for name, (work, _) in running.items()}
        self.assertEqual(self.stored_by_shard(), inserted)
        self.assertEqual(sum(inserted.values()), documents)
        self.assertGreater(min(inserted.values()), 0)
        # Both say so when they end at the same moment.
        self.assertIn(said.count("all 2 shards are loaded"), (1, 2), said)
        self.assert_whole(*words, documents=documents)

    def small_files(self, count=40):
        """A folder of so many that runs of whole files go to a shard. Returns (it, documents)."""
        folder = self.scratch / "years"
        folder.mkdir()
        for number in range(count):
            rows = "\n".join(support.ROW.format(id=1000 * number + i) for i in range(100 + number))
            content = f"{support.HEADER}\n{rows}\n".encode()
            name = f"y{number:03}.txt"
            if number % 3 == 0:
                (folder / (name + ".gz")).write_bytes(gzip.compress(content, mtime=0))
            else:
                (folder / name).write_bytes(content)
        return folder, sum(100 + number for number in range(count))


class Together(OnlyShardsCase):
    def large_files(self):
        """Of all kinds. Returns (their paths, documents)."""
        plain, _ = self.generate("B", 60000, "--seed", 9)
        packed, _ = self.generate("B", 50000, "--seed", 5, "--gzip")
        return [*plain, *packed], 110000

    def test_large_files_one_by_one(self):
        sources, documents = self.large_files()
        self.assert_one_by_one(*sources, documents=documents)

    def test_large_files_straight_to_the_shards(self):
        sources, documents = self.large_files()
        self.assert_one_by_one(*sources, documents=documents, others=DIRECT)

    def test_large_files_at_once(self):
        sources, documents = self.large_files()
        self.assert_at_once(*sources, documents=documents)

    def test_large_files_at_once_straight_to_the_shards(self):
        sources, documents = self.large_files()
        self.assert_at_once(*sources, documents=documents, others=DIRECT)

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
                (path,), _ = self.generate("B", 5000 + 500 * number, "--seed", number)
                archive.write(path, f"part-{number}.txt")
        source = self.file("years.zip", packed.getvalue())
        self.assert_one_by_one(source, documents=sum(5000 + 500 * n for n in range(12)))

    def test_made_up_records(self):
        self.assert_one_by_one("--format", "ycsb", "--records", 40000, "--field-count", 1,
                               documents=40000)

    def test_one_loader_for_both_shards_brings_all(self):
        sources, documents = self.large_files()
        outcome, work = self.only(f"{self.second},{self.first}", *sources)
        self.assertEqual(self.figures(work)["inserted"], documents)
        self.assertIn("all 2 shards are loaded: 110,000 documents in total", outcome.err)
        stored = self.stored_by_shard()
        self.assertGreater(min(stored.values()), 0)
        # The parts are kept apart: what the registry has of each is what is on its shard.
        parts = [source["parts"]["shards"] for source in self.registered().values()]
        self.assertEqual([sum(one[str(i + 1)] for one in parts) for i in range(2)],
                         [stored[name] for name in sorted(stored)])
        self.assert_whole(*sources, documents=documents)
        # So a shard may be loaded again by itself, and the sums still hold.
        for name in (self.first, self.second):
            _, work = self.only(name, "--again", *sources)
            figures = self.figures(work)
            self.assertEqual((figures["inserted"], figures["alreadyThere"]), (0, stored[name]))
        self.assert_whole(*sources, documents=documents)


class Agreement(OnlyShardsCase):
    def setUp(self):
        super().setUp()
        (self.source,), _ = self.generate("B", 60000, "--seed", 9)

    def test_a_shard_that_is_missing_is_missed(self):
        outcome, work = self.only(self.first, self.source)
        self.assertIn(f"shards {self.first} are loaded; 1 of 1 sources wait", outcome.err)
        self.assertLess(self.figures(work)["records"], 60000)
        outcome = self.shardload("verify", *self.target(), "--progress", "none", self.source,
                                 code=support.EXIT_VERIFICATION)
        self.assertIn("began and has not finished", outcome.err)

    def test_other_sources_in_the_command_change_nothing(self):
        # Alone the file is cut for both shards; among many it would go to one of them as a whole.
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

    def test_chunks_that_have_moved_change_nothing(self):
        _, work = self.only(self.first, self.source)
        loaded = self.figures(work)["inserted"]
        bounds = support.run_record(work)["verification"]["ranges"][0]
        self.client.admin.command(
            "moveChunk", f"{self.database_name}.t",
            find={"_id": support.bson.int64.Int64(bounds["minimum"])}, to=self.second)
        outcome, work = self.only(self.first, "--again", self.source)
        self.assertIn("are on other shards", outcome.err)
        self.assertEqual(self.figures(work)["alreadyThere"], loaded)
        _, work = self.only(self.second, self.source)
        self.assertEqual(self.figures(work)["inserted"], 60000 - loaded)
        self.assert_whole(self.source, documents=60000)

    def test_other_shards_than_those_of_the_first_loader_are_refused(self):
        self.only(self.first, self.source)
        there = self.database.t.count_documents({})
        layout = self.registered()[str(self.source)]["layout"]
        for change in ({"shards": layout["shards"] + 1}, {"shardNames": layout["shardNames"] ^ 1}):
            self.database["t.sources"].update_one({"name": str(self.source)},
                                                  {"$set": {"layout": {**layout, **change}}})
            outcome, _ = self.only(self.second, self.source, code=support.EXIT_CLUSTER)
            self.assertIn(f"not the shards that the cluster has now ({self.first}, {self.second})",
                          outcome.err)
        self.assertEqual(self.database.t.count_documents({}), there)
        self.assertEqual(self.states(), {"started"})
        # What the message says to do.
        _, work = self.load(self.source)
        self.assertEqual(self.figures(work)["alreadyThere"], there)
        self.assert_whole(self.source, documents=60000)

    def test_parts_of_the_same_number_are_others(self):
        self.load("--part", "1/2", self.source)
        outcome, _ = self.only(self.second, self.source)
        self.assertIn("1 of 1 sources wait for other shards", outcome.err)
        self.load("--part", "2/2", self.source)
        self.assert_whole(self.source, documents=60000)

    def test_a_shard_is_loaded_once(self):
        _, first = self.only(self.first, self.source)
        both = f"{self.first},{self.second}"
        for names in (self.first, both):
            outcome, _ = self.only(names, self.source, code=support.EXIT_SOURCE)
            self.assertIn("this part of it", outcome.err)
        _, work = self.only(both, "--again", self.source)
        self.assertEqual(self.figures(work)["alreadyThere"], self.figures(first)["inserted"])
        self.assert_whole(self.source, documents=60000)

    def test_what_was_removed_is_missed_by_the_last_loader(self):
        self.only(self.first, self.source)
        self.database.t.delete_one({"_id": self.database.t.find_one({})["_id"]})
        outcome, _ = self.only(self.second, self.source, code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.err, "2 parts have loaded 60000 documents, and 59999 are")
        self.assertEqual(self.states(), {"started"})

    def test_a_loader_that_was_killed_is_resumed_for_the_same_shards(self):
        self.only(self.first, self.source)
        there = self.database.t.count_documents({})
        work, running = self.begin(self.second, "-j", 1, self.source)
        self.wait_for(lambda: not running.running() or
                      self.database.t.estimated_document_count() > there + 500, "documents")
        running.signal(signal.SIGKILL)
        running.wait()
        self.assertEqual(self.states(), {"started"})
        words = ["load", *self.target(), "--work-dir", work, "--progress", "none", "--resume",
                 self.source]
        for other in (["--only-shards", self.first], []):
            outcome = self.shardload(*words, *other, code=support.EXIT_USAGE)
            self.assertIn(f"--only-shards was \"{self.second}\"", outcome.err)
        self.shardload(*words, "--only-shards", self.second)
        self.assert_whole(self.source, documents=60000)


class Refusals(OnlyShardsCase):
    def setUp(self):
        super().setUp()
        self.source = self.file("t.txt", f"{support.HEADER}\n{support.ROW.format(id=1)}\n")

    def test_what_makes_no_sense(self):
        for words, code, said in (
                (["--part", "1/2"], support.EXIT_USAGE, "choose one of them"),
                (["--drop"], support.EXIT_USAGE, "--drop with --only-shards would drop"),
                (["--shard-key", '{"_id": "hashed"}'], support.EXIT_USAGE, "with --part"),
                (["--shard-key", '{"v": 1}'], support.EXIT_USAGE, "with --part"),
                (["--shard-key", "none"], support.EXIT_USAGE, "with --part")):
            outcome, _ = self.only(self.first, *words, self.source, code=code)
            self.assertIn(said, outcome.err)
        outcome, _ = self.only(self.first, "-", stdin=self.source.read_bytes(),
                               code=support.EXIT_USAGE)
        self.assertIn("a pipe cannot be shared by several loaders; --only-shards is", outcome.err)
        outcome = self.shardload("load", "--sink", "null", "--only-shards", self.first, self.source,
                                 code=support.EXIT_USAGE)
        self.assertIn("--only-shards is for loads into a cluster", outcome.err)
        self.assertEqual(self.database.list_collection_names(), [])

    def test_names(self):
        for names in ("", ",", f"{self.first},"):
            outcome, _ = self.load(f"--only-shards={names}", self.source, code=support.EXIT_USAGE)
            self.assertIn("contains an empty shard name", outcome.err)
        for names in ("nobody", f"{self.first},nobody", f"nobody,{self.first}"):
            outcome, _ = self.only(names, self.source, code=support.EXIT_USAGE)
            self.assertIn(f"no shard \"nobody\"; it has {self.first}, {self.second}", outcome.err)
        self.assertEqual(self.database.list_collection_names(), [])

    def test_a_deployment_without_shards(self):
        for variable, what in (("SHARDLOAD_TEST_STANDALONE_URI", "mongod"),
                               ("SHARDLOAD_TEST_REPLICA_URI", "replica set")):
            with self.subTest(what):
                outcome = self.shardload(
                    "load", "--uri", support.cluster_uri(variable), "-d", self.database_name,
                    "-c", "t", "--progress", "none", "--only-shards", "s0", self.source,
                    code=support.EXIT_USAGE)
                self.assertIn("--only-shards needs a sharded cluster", outcome.err)
                self.assertIn("--part", outcome.err)


if __name__ == "__main__":
    import tap
    tap.main()
