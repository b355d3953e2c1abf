# SPDX-License-Identifier: Apache-2.0
"""Restores of dumps into a mongod and a sharded cluster: options, indexes, views, capped, clustered
and time-series collections, renaming, --drop, kills, damage and duplicates."""
import datetime
import json
import pathlib
import re

import dump_making as making
import proxy
import support
from oplog_making import COLLATION
from restore_case import INDEXES, SERIES, VALIDATOR, Restoring, documents
from support import bson


class Standalone(Restoring, server="mongod"):
    def test_options_indexes_and_documents(self):
        made = documents(3000)
        for zipped in (False, True):
            dump = self.dump_folder(
                self.namespace("orders", made, options=VALIDATOR, indexes=INDEXES),
                self.namespace("empty", [], indexes=INDEXES[:1]),
                self.namespace("odd/name %25", made[:3]), zipped=zipped)
            outcome, rows = self.restore(dump, "--drop")
            self.check("orders", made)
            self.check("odd/name %25", made[:3])
            kind, options, indexes = self.facts("orders")
            self.assertEqual((kind, options), ("collection", VALIDATOR))
            for one in INDEXES:
                self.assertEqual({**one, **indexes[one["name"]]}, indexes[one["name"]])
            self.assertEqual(set(indexes), {"_id_", *(one["name"] for one in INDEXES)})
            self.assertEqual(set(self.facts("empty")[2]), {"_id_", "n_1__id_1"})
            self.assertEqual((rows["orders"]["inserted"], rows["orders"]["indexes"]), (3000, len(INDEXES)))
            self.assertRegex(outcome.text, r"total +3,003 +3,003 +0 +0 +6 ")
        # The registries of the loads have been dropped.
        self.assertEqual(set(self.database.list_collection_names()), {"orders", "empty", "odd/name %25"})

    def test_a_default_collation_and_simple_indexes(self):
        dump = self.dump_folder(self.namespace(
            "t", documents(10), options={"collation": COLLATION},
            indexes=[{"v": 2, "key": {"s": 1}, "name": "simple"},
                     {"v": 2, "key": {"s": 1, "n": 1}, "name": "own", "collation": COLLATION}]))
        self.restore(dump)
        _, options, indexes = self.facts("t")
        self.assertEqual(options["collation"]["locale"], "de")
        self.assertNotIn("collation", indexes["simple"])
        self.assertEqual(indexes["own"]["collation"]["locale"], "de")

    def test_views_come_last_and_renamed_collections_are_reported(self):
        view = {"viewOn": "t", "pipeline": [{"$match": {"n": {"$lt": 3}}}]}
        dump = self.dump_folder(self.namespace("a_view", options=view), self.namespace("t", documents(10)))
        self.restore(dump)
        self.assertEqual(self.facts("a_view")[:2], ("view", view))
        self.assertEqual(self.database.a_view.count_documents({}), 3)
        outcome, _ = self.restore(dump, "--drop", "--ns-from", "*.t", "--ns-to", "*.u")
        self.assertIn(f"is restored as {self.db}.u", outcome.err)

    def test_capped_collections_keep_their_order(self):
        made = [{"_id": n * 7919 % 2003, "n": n} for n in range(2003)]
        dump = self.dump_folder(self.namespace("t", made, options={"capped": True, "size": 1 << 20, "max": 5000}))
        self.restore(dump, "-j", 4, "--batch-size", 100)
        self.assertEqual(self.facts("t")[1], {"capped": True, "size": 1 << 20, "max": 5000})
        self.assertEqual([one["n"] for one in self.database.t.find().sort("$natural", 1)], list(range(2003)))

    def test_a_full_capped_collection_is_the_cause_of_missing_documents(self):
        self.database.create_collection("t", capped=True, size=1 << 20, max=700)
        dump = self.dump_folder(self.namespace(
            "t", documents(2000), options={"capped": True, "size": 1 << 20, "max": 5000}))
        outcome, _ = self.restore(dump, code=support.EXIT_VERIFICATION)
        self.assertIn("is a capped collection of at most 1.0 MB and 700 documents", outcome.err)
        self.assertIn("the server removes the oldest documents", outcome.err)
        self.assertNotIn("Another program has written", outcome.text)
        self.restore(dump, "--drop")
        self.check("t", documents(2000))

    def test_clustered_collections(self):
        self.needs("5.3", "clustered collections")
        clustered = {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True}
        dump = self.dump_folder(self.namespace(
            "t", documents(100), options={"clusteredIndex": clustered},
            indexes=[{**clustered, "clustered": True}]))
        self.restore(dump)
        self.assertEqual(self.facts("t")[1], {"clusteredIndex": clustered})
        self.check("t", documents(100))

    def test_time_series_collections(self):
        made = self.buckets()
        options = {**SERIES, "expireAfterSeconds": 10 ** 9}
        dump = self.dump_folder(self.namespace(
            "t", made, options=options, indexes=[{"v": 2, "key": {"m": 1, "t": 1}, "name": "mt"}]))
        outcome, rows = self.restore(dump)
        self.assertEqual(self.facts("t")[:2], ("timeseries", options), outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 200)
        self.assertEqual(sum(one["v"] for one in self.database.t.find()), 199 * 100)
        self.check("system.buckets.t", made)
        self.assertIn("mt", self.facts("t")[2])
        self.assertEqual(rows["t"]["records"], len(made))

    def test_a_time_series_collection_that_exists_and_reads_buckets_in_another_way(self):
        made = self.buckets()
        for granularity, seconds, existing, code in (
                ("seconds", 3600, {"metaField": "m", "granularity": "hours"}, support.EXIT_OK),
                ("hours", 2592000, {"metaField": "m"}, support.EXIT_CLUSTER),
                ("seconds", 3600, {"metaField": "n"}, support.EXIT_CLUSTER),
                ("seconds", 3600, {}, support.EXIT_CLUSTER),
                ("seconds", 3600, {"metaField": "m", "timeField": "n"}, support.EXIT_CLUSTER)):
            with self.subTest(granularity=granularity, existing=existing):
                options = {**SERIES["timeseries"], "granularity": granularity, "bucketMaxSpanSeconds": seconds}
                self.database.drop_collection("t")
                self.database.create_collection("t", timeseries={"timeField": "t", **existing})
                dump = self.dump_folder(self.namespace("t", made, options={"timeseries": options}))
                outcome, _ = self.restore(dump, code=code)
                self.assertIn("another definition" if code else "other options", outcome.err)
                self.assertEqual(self.database.t.count_documents({}), 0 if code else 200)

    def test_a_collection_that_another_program_creates_after_the_drop_lacks_options(self):
        dump = self.dump_folder(self.namespace("t", documents(3), options={"collation": COLLATION}))
        self.database.t.insert_one({})
        between = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(between.close)
        between.change_request = lambda message: (
            proxy.command_of(message)[0] == "create" and self.database.t.create_index("n"), message)[1]
        work = self.scratch / "work"
        for words, others in (([], 0), (["--resume"], 0), (["--resume"], 2)):
            for n in range(others):
                self.database.t.insert_one({"_id": n})
            self.restore(dump, "--drop", "--uri", self.proxy_uri(between), *words, work=work,
                         code=support.EXIT_CLUSTER, message="t was created without its options, or dropped")
            self.assertEqual(self.database.t.count_documents({}), others)
        self.restore(dump, "--drop")
        self.assertEqual(self.facts("t")[1], {"collation": COLLATION})

    def test_no_document_can_expire_before_all_are_loaded(self):
        """`expireAfterSeconds` of a collection is not in `create`, and that of an index is not built,
        before the last insert; after the restore, both are set."""
        self.needs("5.3", "clustered collections")
        clustered = {"clusteredIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True},
                     "expireAfterSeconds": 3600}
        past = datetime.datetime(2001, 1, 1)
        old = [{"_id": past + datetime.timedelta(seconds=n), "when": past} for n in range(3000)]
        dump = self.dump_folder(
            self.namespace("clustered", old, options=clustered),
            self.namespace("series", self.buckets(), options={**SERIES, "expireAfterSeconds": 60}),
            self.namespace("indexed", old, indexes=[
                {"v": 2, "key": {"when": 1}, "name": "ttl", "expireAfterSeconds": 60}]))
        recorder = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(recorder.close)
        recorder.recorded = []
        outcome, rows = self.restore(dump, "--uri", self.proxy_uri(recorder), "--batch-size", 500)
        for name, row in rows.items():
            self.assertEqual(row["inserted"], row["records"], (name, outcome.text))
        self.assertIn("indexed gets the TTL index ttl: servers delete", outcome.err)
        self.assertIn("also those of this load; 3,000 of the 3,000 records", outcome.err)
        self.assertIn("To keep them, restore with --no-index-restore, and build", outcome.err)
        for name, setter in (("clustered", "collMod"), ("series", "collMod"), ("indexed", "createIndexes")):
            with self.subTest(name):
                self.check_expiry(recorder.recorded, name, setter)

    def check_expiry(self, recorded, name, setter):
        """Only the command `setter`, after the last insert, has `expireAfterSeconds`."""
        commands = []
        for message in recorded:
            command, value = proxy.command_of(message)
            if command in ("create", "insert", "collMod", "createIndexes") and proxy.collection_of(
                    value).removeprefix("system.buckets.") == name:
                commands.append((command, "expireAfterSeconds" in str(proxy.body_of(message))))
        self.assertIn(("create", False), commands)
        self.assertIn(("insert", False), commands)
        last = max(i for i, (command, _) in enumerate(commands) if command == "insert")
        self.assertEqual([command for command, expires in commands[:last] if expires], [], commands)
        self.assertIn((setter, True), commands[last:])

    def test_names_are_chosen_and_changed(self):
        dump = self.dump_folder(*(self.namespace(name, documents(2)) for name in ("a", "a.b", "b", "c")))
        self.restore(dump, "--ns-include", "*.a*", "--ns-include", "*.c", "--ns-exclude", "*.a.b",
                     "--ns-from", f"{self.db}.$name$", "--ns-to", f"{self.db}.new.$name$")
        self.assertEqual(set(self.database.list_collection_names()), {"new.a", "new.c"})
        self.check("new.a", documents(2))

    def test_an_existing_collection(self):
        made = documents(500)
        dump = self.dump_folder(self.namespace("t", made, options=VALIDATOR))
        self.database.t.insert_many([*made[:200], {"_id": "own"}])
        outcome, rows = self.restore(dump)
        self.assertEqual((rows["t"]["inserted"], rows["t"]["alreadyStored"], rows["t"]["existed"]), (300, 200, True))
        self.assertIn("exists with other options than in the dump, which are not set: validator; set them by collMod",
                      outcome.err)
        self.assertEqual(self.facts("t")[1], {})
        self.database.t.update_one({"_id": made[3]["_id"]}, {"$set": {"s": "changed"}})
        outcome, rows = self.restore(dump, code=support.EXIT_REJECTS)
        self.assertEqual((rows["t"]["alreadyStored"], rows["t"]["rejected"]), (499, 1))
        self.database["t.sources"].insert_one({"_id": "a collection of the user"})
        self.restore(dump, "--drop")
        self.check("t", made)
        self.assertEqual(self.facts("t")[1], VALIDATOR)
        self.assertEqual(self.database["t.sources"].count_documents({}), 1)
        self.database.drop_collection("t")
        self.database.command("create", "t", viewOn="x", pipeline=[])
        self.restore(dump, code=support.EXIT_CLUSTER, message="exists and is a view")

    def test_a_collection_beside_the_registry_of_its_namesake(self):
        dump = self.dump_folder(self.namespace("t", documents(5)), self.namespace("t.sources", documents(3)))
        for words in ([], ["--drop"]):
            self.restore(dump, *words)
            self.check("t", documents(5))
            self.check("t.sources", documents(3))

    def test_a_collection_of_which_all_documents_are_rejected(self):
        """A restore into a living database, whose `counters` has one document: its indexes are built like those of
        others, and the oplog is replayed."""
        dump = self.dump_folder(*(self.namespace(name, [{"_id": n, "a": 1} for n in range(count)], indexes=INDEXES[:1])
                                  for name, count in (("one", 1), ("two", 2))))
        for name in ("one", "two"):
            self.database[name].insert_one({"_id": 0, "a": 2})
        _, rows = self.restore(dump, code=support.EXIT_REJECTS)
        self.assertEqual([(row["rejected"], row["exitCode"]) for row in rows.values()], [(1, support.EXIT_REJECTS)] * 2)
        for name in ("one", "two"):
            self.assertIn(INDEXES[0]["name"], self.facts(name)[2])

    def test_a_document_that_occurs_twice(self):
        """Near the first one, in the same batch, and far from it; also in a collection that is restored at once."""
        made = documents(3000)
        dump = self.dump_folder(self.namespace("near", [*made[:9], *made], indexes=INDEXES[:1]),
                                self.namespace("far", [*made, made[0]], indexes=INDEXES[:1]),
                                self.namespace("few", [*made[:9], made[0]]))
        outcome, rows = self.restore(dump)
        self.assertEqual({name: (row["inserted"], row["alreadyStored"]) for name, row in rows.items()},
                         {"near": (3000, 9), "far": (3000, 1), "few": (9, 1)})
        self.assertNotIn("missing", outcome.err)
        self.verify(dump, "--content")
        self.database.far.insert_one({})
        self.assertIn("far: differs", self.verify(dump, "--content", code=support.EXIT_VERIFICATION).out)

    def test_an_index_that_cannot_be_built(self):
        made = documents(50)
        dump = self.dump_folder(
            self.namespace("t", made, indexes=[
                INDEXES[1], {"v": 2, "key": {"when": -1, "_id": 1}, "name": "fine"},
                {"v": 2, "key": {"when": 1, "s2": 1}, "name": "twice", "unique": True}]),
            self.namespace("u", made))
        work = self.scratch / "work"
        outcome, rows = self.restore(dump, code=support.EXIT_CLUSTER, work=work, message="twice")
        self.assertEqual(set(self.facts("t")[2]), {"_id_", "ttl", "fine"})
        self.check("t", made)
        self.check("u", made)
        self.assertRegex(outcome.text, r"\.t .*incomplete")
        self.assertIn(f"are corrected, --resume --work-dir {work} builds it", outcome.err)
        self.assertIn("--resume alone cannot complete this restore", outcome.err)
        self.assertNotIn("to complete", outcome.err + self.shardload("status", work).out)
        self.restore(dump, "--no-index-restore")
        self.database.t.delete_many({"n": {"$gt": 0}})
        outcome, rows = self.restore(dump, "--resume", work=work)
        self.assertIn("twice", self.facts("t")[2])
        self.assertEqual((rows["t"]["inserted"], rows["u"]["inserted"]), (50, 50))

    def test_duplicates_and_damage(self):
        made = documents(1000)
        data = b"".join(map(bson.encode, made))
        one = len(bson.encode(made[0]))
        damaged = bytearray(data)
        damaged[one:one + 4] = b"\xff\xff\xff\x7f"
        dump = self.dump_folder(
            self.namespace("damaged", [bytes(damaged)]), self.namespace("cut", [data[:-5]]),
            self.namespace("twice", [data, {**made[7], "s": "another"}]))
        work = self.scratch / "work"
        outcome, rows = self.restore(dump, code=support.EXIT_REJECTS, work=work)
        self.assertEqual([(rows[name]["inserted"], rows[name]["rejected"])
                          for name in ("damaged", "cut", "twice")],
                         [(999, 1), (999, 1), (1000, 1)])
        self.assertEqual(self.database.damaged.count_documents({}), 999)
        rejects = {folder.name.partition(".")[2].rpartition("-")[0]: support.reject_rows(folder)
                   for folder in work.iterdir() if folder.is_dir()}
        named = re.findall(r"\.(\w+): 1 document rejected, with the reasons in (\S+)/rejects.tsv", outcome.err)
        self.assertEqual({name: support.reject_rows(pathlib.Path(folder)) for name, folder in named}, rejects)
        self.assertEqual([(int(row["offset"])) for row in rejects["damaged"]], [one])
        self.assertEqual([(int(row["offset"])) for row in rejects["twice"]], [len(data)])
        for words in ([], ["--content"]): # what cannot be read is not shown to be equal
            outcome = self.verify(dump, *words, "--ns-exclude", "*.twice", code=support.EXIT_SOURCE)
            for name, why in (("damaged", "damaged: "), ("cut", "truncated: ")):
                self.assertRegex(outcome.err, rf"/{name}.bson, byte \d+: rejected: {why}")
                self.assertIn(f".{name}: 1 record of the dump cannot be read or stored, and was not compared",
                              outcome.err)
            self.assertIn("0 of 2 namespaces are equal to the dump", outcome.out)

    def test_killed_and_resumed(self):
        made = {name: documents(4000, 10 ** 5 * number) for number, name in enumerate(("a", "b", "c"))}
        dump = self.dump_folder(*(self.namespace(name, some, options=VALIDATOR,
                                                 indexes=INDEXES[:2])
                                  for name, some in made.items()),
                                self.namespace("z", options={"viewOn": "a", "pipeline": []}))
        work = self.scratch / "work"
        words = ["--drop", "--rate-limit", 8000, "--batch-size", 50, "-j", 2, "--collections-at-once", 1]
        resume = []
        for name, above in (("a", 500), ("b", 100), ("b", 2000), ("c", 1000)):
            running = self.begin(dump, *words, *resume)
            self.wait_for_documents(running, above, name)
            running.kill()
            resume = ["--resume"]
        self.clear_balancer()
        outcome, rows = self.restore(dump, *words, *resume, work=work)
        for name, some in made.items():
            self.check(name, some)
            self.assertEqual(self.facts(name)[1], VALIDATOR)
            self.assertEqual(set(self.facts(name)[2]), {"_id_", "n_1__id_1", "ttl"})
            self.assertEqual(rows[name]["inserted"] + rows[name]["alreadyStored"], 4000)
        self.assertEqual(set(self.database.list_collection_names()) - {"system.views"}, {*made, "z"})
        self.assertRegex(outcome.text, r"\.a .*earlier run")
        outcome, _ = self.restore(dump, *words, "--resume", work=work)
        self.assertRegex(outcome.text, r"\.c .*earlier run")
        self.restore(dump, *words, work=work, code=support.EXIT_USAGE, message="--resume")

    def test_a_resumed_restore_drops_no_collection_that_it_has_loaded_into(self):
        self.database.a.insert_one({"_id": "own"})
        dump = self.dump_folder(self.namespace("a", documents(4000)))
        work = self.scratch / "work"
        running = self.begin(dump, "--rate-limit", 3000, "--batch-size", 50)
        self.wait_for_documents(running, 500, "a")
        running.kill()
        self.clear_balancer()
        self.restore(dump, "--resume", "--drop", work=work, code=support.EXIT_USAGE,
                     message='--drop was "no" and is "yes"')
        self.restore(dump, "--resume", work=work)
        self.assertEqual(self.database.a.count_documents({}), 4001)

    def failing(self, command, dump):
        """A restore with --drop in which the server refuses this command."""
        server = proxy.Refusing(support.port_of(self.uri), command, executed=False)
        self.addCleanup(server.close)
        self.shardload("restore", "--uri", f"mongodb://{support.HOST}:{server.port}/", "--work-dir",
                       self.scratch / "work", "--progress", "none", "--drop", dump,
                       code=support.EXIT_CLUSTER)

    def test_a_resumed_restore_does_not_drop_a_collection_created_after_its_drop(self):
        """The first run ends after its drop, before it has recorded that it creates the
        collection."""
        dump = self.dump_folder(self.namespace("a", documents(300)))
        self.database.a.insert_one({"_id": "old"})
        self.failing("drop", dump)
        self.database.drop_collection("a")    # as if only the reply had been lost
        self.database.a.insert_many([{"_id": f"theirs {n}"} for n in range(50)])
        outcome, _ = self.restore(dump, "--resume", "--drop", work=self.scratch / "work")
        self.assertIn("an earlier run of this restore has dropped the collection", outcome.err)
        self.assertEqual(self.database.a.count_documents({"_id": {"$type": "string"}}), 50)
        self.assertEqual(self.database.a.count_documents({}), 350)

    def test_a_resumed_restore_drops_what_the_first_run_has_not_dropped(self):
        dump = self.dump_folder(self.namespace("a", documents(300)))
        self.database.a.insert_one({"_id": "old"})
        self.failing("drop", dump)
        self.assertEqual(self.database.a.count_documents({}), 1)
        self.restore(dump, "--resume", work=self.scratch / "work", code=support.EXIT_USAGE,
                     message='--drop was "yes" and is "no"')
        self.restore(dump, "--resume", "--drop", work=self.scratch / "work")
        self.check("a", documents(300))

    def test_a_resumed_restore_needs_the_options_of_the_first_run(self):
        """Options that change what is restored, in both directions."""
        dump = self.dump_folder(self.namespace("a", documents(30)), self.namespace("b", documents(30)))
        keys = self.file("keys.yaml", f"{self.db}.a: {{key: {{n: 1}}}}\n")
        cases = [(["--ns-include", "*.a"], '--ns-include was "*.a"'),
                 (["--ns-exclude", "*.a", "--ns-exclude", "*.z"], '--ns-exclude was "*.a", "*.z"'),
                 (["--ns-from", "*.a", "--ns-to", "*.c"], '--ns-from was "*.a"'),
                 (["-d", self.db, "-c", "a"], '--db was "')]
        if self.variable == Sharded.variable:
            cases.append((["--shard-keys", keys], "--shard-keys was"))
        for words, shown in cases:
            with self.subTest(words=words):
                work = self.scratch / f"work-{next(self._counter)}"
                self.restore(dump, *words, work=work)
                before = sorted(self.database.list_collection_names())
                self.restore(dump, "--resume", work=work, code=support.EXIT_USAGE, message=(shown, "and is not given"))
                self.assertEqual(sorted(self.database.list_collection_names()), before)
                self.restore(dump, "--resume", *words, "-j", 1, work=work)
                for name in before:
                    self.database.drop_collection(name)
        work = self.scratch / "all"
        self.restore(dump, work=work)
        self.restore(dump, "--resume", "--ns-include", "*.a", work=work,
                     code=support.EXIT_USAGE, message='--ns-include was not given and is "*.a"')

    def test_a_compressed_file_that_breaks_off(self):
        made = [{**one, "s": f"{one['n']} " * 60} for one in documents(20000)]
        twice = {"v": 2, "key": {"when": 1, "s2": 1}, "name": "twice", "unique": True}
        dump = self.dump_folder(self.namespace("a", made, indexes=[INDEXES[0], twice]),
                                self.namespace("b", made[:10]), zipped=True)
        path = dump / self.db / "a.bson.gz"
        path.write_bytes(path.read_bytes()[:-20000])
        outcome, rows = self.restore(dump, "--batch-size", 100, code=support.EXIT_SOURCE,
                                     message=("ends early at byte", "twice"))
        self.assertGreater(rows["a"]["inserted"], 0)
        self.assertRegex(outcome.text, r"\.a .*incomplete")
        self.assertIn("n_1__id_1", self.facts("a")[2])
        self.assertEqual(self.database.a.count_documents({}), rows["a"]["inserted"])
        self.check("b", made[:10])

    def test_a_resumed_restore_must_find_what_was_restored(self):
        made = documents(100)
        dump = self.dump_folder(self.namespace("a", made), self.namespace("b", made),
                                self.namespace("v", options={"viewOn": "a", "pipeline": []}))
        work = self.scratch / "work"
        self.restore(dump, work=work)
        self.restore(dump, "--resume", work=work)
        self.restore(dump, "--resume", "--ns-from", "*.b", "--ns-to", "*.c", work=work, code=support.EXIT_USAGE)
        self.assertNotIn("c", self.database.list_collection_names())
        self.database.drop_collection("v")
        self.restore(dump, "--resume", work=work, code=support.EXIT_CLUSTER, message="this server does not have it")
        self.database.drop_collection("b")
        self.database.b.insert_one({})
        self.restore(dump, "--resume", work=work, code=support.EXIT_CLUSTER, message="another collection of this name")

    def test_one_restore_at_a_time_uses_a_work_directory(self):
        dump = self.dump_folder(self.namespace("a", documents(4000)))
        work = self.scratch / "work"
        running = self.begin(dump, "--rate-limit", 300, "--batch-size", 50)
        self.wait_for_documents(running, 100, "a")
        outcome, _ = self.restore(dump, "--resume", work=work, code=support.EXIT_USAGE)
        self.assertIn("another command is using this work directory", outcome.err)
        self.shardload("load", *self.target(), "--work-dir", work,
                       self.file("year.txt", support.mot_text(range(1, 20))),
                       code=support.EXIT_USAGE, message="another command is using this work directory")
        self.shardload("status", work, "--rate-limit", "unlimited")
        self.assertEqual(running.wait().code, 0)
        self.check("a", documents(4000))

    def test_a_start_that_fails_leaves_no_files(self):
        dump = self.dump_folder(self.namespace("a", documents(4)))
        (self.scratch / "empty").mkdir()
        self.shardload("restore", "--uri", self.uri, "--work-dir", "new", "--report",
                       "nowhere/r.json", dump, code=support.EXIT_USAGE)
        self.shardload("restore", "--uri", self.uri, "--work-dir", "empty", "--resume", dump, code=support.EXIT_USAGE)
        self.shardload("restore", "--uri", self.uri, "--work-dir", "new", self.file("x", b"no archive"),
                       code=support.EXIT_SOURCE)
        archive = self.archive(self.namespace("a", documents(4)))
        for source in (dump, archive):
            self.shardload("verify", "--uri", f"mongodb://127.0.0.1:{support.free_port()}/",
                           "--work-dir", "new", "--dump", source, code=support.EXIT_CLUSTER)
        self.shardload("verify", "--uri", self.uri, "--work-dir", "new", "--ns-include", "other.*",
                       "--dump", archive, code=support.EXIT_SOURCE)
        zipped = self.archive(self.namespace("a", documents(4000)), zipped=True)
        zipped.write_bytes(zipped.read_bytes()[:-1000])
        self.shardload("verify", "--uri", self.uri, "--work-dir", "new", "--dump", zipped, code=support.EXIT_SOURCE)
        self.assertFalse((self.scratch / "new").exists())
        self.assertEqual(list((self.scratch / "empty").iterdir()), [])

    def test_a_work_directory_in_the_folder_of_the_dump(self):
        dump = self.dump_folder(self.namespace("a", documents(10)))
        self.restore(dump, work=dump / "work")
        outcome, _ = self.restore(dump, "--resume", work=dump / "work")
        self.assertIn("work (the work directory of a load or restore)", outcome.out.splitlines()[-1])
        (dump / self.db / "shardload.log").write_text("no work directory")
        outcome, _ = self.restore(dump, "--drop", code=support.EXIT_SOURCE)
        self.check("a", documents(10))
        self.assertRegex(outcome.out, r"(?m)^not restored: .*shardload\.log \(no \.bson and no \.metadata")

    def test_a_record_that_cannot_be_written_is_an_error(self):
        """The journals of these collections are smaller than the record of all of them."""
        dump = self.dump_folder(*(self.namespace(f"c{n}", [{"_id": n}]) for n in range(30)))
        outcome = self.run_program("shardload", "restore", "--uri", self.uri, "--work-dir", "w", "--progress", "none",
                                   dump, through=["sh", "-c", 'ulimit -f 16; exec "$0" "$@"'])
        self.assertEqual((outcome.code, self.database.c29.count_documents({})), (support.EXIT_RESOURCES, 1),
                         outcome.text)
        self.assertRegex(outcome.err, r"w/restore\.json: .*File too large")

    def test_a_second_restore_adds_nothing(self):
        """Not a document that violates the validator, which the server refuses before it finds that it is stored.
        Options whose fields have another order, and defaults, are no difference."""
        made = documents(300)
        validator = {"validator": {"n": {"$gte": 100}, "s": {"$exists": True}}}
        dump = self.dump_folder(self.namespace("t", made, options=validator, indexes=INDEXES))
        self.restore(dump)
        self.database.command("collMod", "t", validator=dict(reversed(validator["validator"].items())))
        self.database.t.drop_index("ttl")
        outcome, rows = self.restore(dump)
        self.assertIn("t: building missing indexes, if there are any\n", outcome.text)
        self.assertIn("ttl", self.database.t.index_information())
        self.assertEqual((rows["t"]["alreadyStored"], rows["t"]["rejected"]), (300, 0))
        self.assertNotIn("other options", outcome.text)
        self.shardload("verify", "--uri", self.uri, "--content", "--dump", dump)
        file = dump / self.database_name / "t.bson"  # as a source, it was never loaded
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "-c", "t", file,
                       code=support.EXIT_SOURCE, message=f"options of the connection: shardload verify --dump {file}\n")
        self.shardload("verify", "--uri", self.uri, "--dump", file)
        self.database.t.update_one({"_id": made[3]["_id"]}, {"$set": {"s": "changed"}},
                                   bypass_document_validation=True)
        self.database.t.delete_one({"_id": made[4]["_id"]})
        _, rows = self.restore(dump, code=support.EXIT_REJECTS)
        self.assertEqual((rows["t"]["alreadyStored"], rows["t"]["rejected"]), (298, 2))
        outcome = self.shardload("verify", "--uri", self.uri, "--dump", dump, "--report", "v.json",
                                 code=support.EXIT_VERIFICATION)
        self.assertRegex(outcome.text, r" 300 +299 +1 ")
        report = support.json.loads((self.scratch / "v.json").read_text("utf-8"))
        self.assertIn(False, [one["equal"] for one in report["namespaces"]])

    def test_options_and_indexes_are_left_out_on_request(self):
        dump = self.dump_folder(
            self.namespace("t", documents(3), options={**VALIDATOR, "capped": True, "size": 4096}, indexes=INDEXES),
            self.namespace("v", options={"viewOn": "t", "pipeline": []}))
        words = ("--no-options-restore", "--no-index-restore")
        _, rows = self.restore(dump, *words)
        self.assertEqual((self.facts("t")[1], set(self.facts("t")[2]), self.facts("v")[0]), ({}, {"_id_"}, "view"))
        self.assertEqual(rows["t"]["indexes"], 0)
        self.shardload("verify", "--uri", self.uri, *words, "--content", "--dump", dump)

    def test_buckets_with_metadata_of_their_own_become_a_time_series_collection(self):
        made = self.buckets()
        dump = self.dump_folder(self.namespace(
            "system.buckets.t", made, kind="collection", indexes=[{"v": 2, "key": {"meta": 1}, "name": "m"}],
            options={**SERIES, "clusteredIndex": True, "validator": {"meta": 1}}))
        outcome, _ = self.restore(dump)
        self.assertEqual(self.facts("t")[:2], ("timeseries", SERIES))
        self.check("system.buckets.t", made)
        self.assertIn("converted for current servers: its indexes, of buckets, left out", outcome.err)

    def test_documents_that_a_server_stores_are_restored_byte_for_byte(self):
        """Keys and strings that are not UTF-8, 180 levels, old binary data with a wrong length, Timestamp(0, 0), which
        the server would replace. What the server refuses is a reject."""
        def nested(levels):
            document = bson.encode({})
            for _ in range(levels - 2):
                document = making.document(b"\x03a\0" + document)
            return making.document(b"\x10_id\0\1\0\0\0\x03a\0" + document)
        broken = [making.document(b"\x02_id\0" + making.text(b"caf\xe9")),
                  making.document(b"\x10_id\0\2\0\0\0\x02\xa3\0" + making.text(b"\xff\xfe") + b"\x0br\0\xff\0\0"),
                  nested(180),
                  *(making.document(b"\x10_id\0" + bytes([n, 0, 0, 0]) + b"\5b\0" + raw + b"\x10n\0\1\0\0\0")
                    for n, raw in ((5, b"\6\0\0\0\2\x09\0\0\0ab"), (6, b"\2\0\0\0\2ab"))),
                  bson.encode({"_id": 7, "t": bson.Timestamp(0, 0), "n": 1})]
        dump = self.dump_folder(self.namespace("t", broken), self.namespace("deep", [nested(190), {"_id": 2}]))
        _, rows = self.restore(dump, code=support.EXIT_REJECTS)
        self.check("t", broken)
        self.assertEqual((rows["t"]["inserted"], rows["t"]["rejected"], rows["t"]["exitCode"]), (len(broken), 0, 0))
        self.assertEqual((rows["deep"]["inserted"], rows["deep"]["rejected"]), (1, 1))
        self.shardload("verify", "--uri", self.uri, "--content", "--ns-include", "*.t", "--dump", dump)

    def test_documents_with_an_empty_timestamp(self):
        """Alone in their collection; stored before, equal and different; resumed."""
        made = [{"_id": n, "t": bson.Timestamp(0, 0), "n": n} for n in range(3)]
        many = [{"_id": n, "t": bson.Timestamp(0, n % 9), "pad": "x" * 1000} for n in range(3000)]
        dump = self.dump_folder(self.namespace("many", many))       # of several blocks
        self.restore(dump)
        self.shardload("verify", "--uri", self.uri, "--content", "--dump", dump, "-j", 1)
        dump = self.dump_folder(self.namespace("t", made))
        work = self.scratch / "work"
        keys = self.file("keys.yaml", f"{self.db}.t: {{key: {{n: hashed}}}}\n")
        self.restore(dump, "--shard-keys", keys, work=work)
        self.check("t", made)
        self.restore(dump, "--resume", "--shard-keys", keys, work=work)
        self.restore(dump, "--drop")
        self.check("t", made)
        self.database.t.update_one({"_id": 1}, {"$set": {"n": "changed"}})
        _, rows = self.restore(dump, code=support.EXIT_REJECTS)
        self.assertEqual((rows["t"]["alreadyStored"], rows["t"]["rejected"]), (2, 1))
        self.assertEqual(self.database.t.find_one({"_id": 1})["n"], "changed")
        self.shardload("verify", "--uri", self.uri, "--content", "--dump", dump, code=support.EXIT_VERIFICATION)

    def test_what_sink_bson_wrote(self):
        made = documents(300)
        source = self.file("a.bson", b"".join(map(bson.encode, made)))
        folder = self.scratch / "dump" / self.db
        folder.mkdir(parents=True)
        self.shardload("load", "--sink", f"bson:{folder / 't.bson'}", "--progress", "none",
                       "--work-dir", self.scratch / "sunk", source)
        self.restore(self.scratch / "dump")
        self.check("t", made)

    def archive(self, *namespaces, zipped=False):
        data = making.archive(namespaces, 100)
        return (self.zipped if zipped else self.file)(f"a-{next(self._counter)}", data)

    def test_archives(self):
        made, buckets = documents(3000), self.buckets()
        namespaces = (self.namespace("orders", made, options=VALIDATOR, indexes=INDEXES),
                      self.namespace("a_view", options={"viewOn": "orders", "pipeline": []}),
                      self.namespace("empty", []), self.namespace("few", made[:30]),
                      self.namespace("series", buckets, options=SERIES))
        plain, zipped = self.archive(*namespaces), self.archive(*namespaces, zipped=True)
        for source, stdin in ((plain, b""), (zipped, b""), ("-", zipped.read_bytes())):
            work = self.scratch / f"work-{next(self._counter)}"
            _, rows = self.restore(source, "--drop", stdin=stdin, work=work,
                                   through=["sh", "-c", 'umask 0; exec "$0" "$@"'])
            self.assertEqual([path for path in [work, *work.rglob("*")] if path.stat().st_mode & 0o077], [])
            self.check("orders", made)
            self.check("few", made[:30])
            self.check("system.buckets.series", buckets)
            self.assertEqual(self.facts("orders")[1], VALIDATOR)
            self.assertEqual(set(self.facts("orders")[2]), {"_id_", *(one["name"] for one in INDEXES)})
            self.assertEqual(self.database.a_view.count_documents({}), 3000)
            self.assertEqual(self.database.series.count_documents({}), 200)
            self.assertIn("empty", self.database.list_collection_names())
            self.assertEqual(rows["orders"]["records"], 3000)
            self.assertEqual([path.name for path in (work / "unpacked").iterdir()], ["list.bson"])
        self.restore(plain, "--drop", "--ns-include", "*.few")

    def test_damaged_archives(self):
        made = documents(3000)
        namespaces = (self.namespace("a", made), self.namespace("b", made[:2000]))
        data = making.archive(namespaces, 100)
        flipped = bytearray(data)
        at = data.index(bson.encode(made[2500]))
        flipped[at + 24] ^= 1            # another number: only the CRC shows it
        broken = bytearray(data)
        broken[at:at + 4] = b"\xff\xff\xff\x7f"
        for damaged, counts, skipped, messages in (
                (data[:len(data) * 2 // 3], None, (), ["lacks the end of this collection"]),
                (bytes(flipped), (3000, 2000), (), ["do not match the CRC"]),
                (bytes(broken), (2900, 2000), ["--skip-other"],
                 [f"byte {at} of the uncompressed archive, {self.db}.a", "do not match the CRC"])):
            damaged = self.file("damaged", damaged)
            before = [self.database[name].insert_one({}) and self.database[name].count_documents({}) for name in "ab"]
            work = self.scratch / f"work-{next(self._counter)}"
            outcome, _ = self.restore(damaged, "--drop", work=work, code=support.EXIT_SOURCE,
                                      message="--drop is refused, and nothing was changed")
            self.assertEqual([self.database[name].count_documents({}) for name in "ab"], before)
            for message in messages:
                self.assertIn(message, outcome.err)
            _, rows = self.restore(damaged, "--drop", "--resume", "--skip-other", work=work)
            stored = [self.database[name].count_documents({}) for name in "ab"]
            if counts:
                self.assertEqual(stored, list(counts))
                verified = self.verify(damaged, "--content", "--skip-other", "--work-dir", self.scratch / "compared")
                self.assertIn(f"{self.db}.b: equal to the dump\n", verified.out)
                self.assertIn("1 of 2 namespaces are equal", verified.out)
                self.restore(damaged, "--drop", "--ns-exclude", f"{self.db}.a", *skipped)
            else:
                self.assertGreater(min(stored), 1500)
                self.assertEqual(stored, [rows[name]["inserted"] for name in "ab"])
            outcome = self.verify(damaged, "--content", "--work-dir", self.scratch / "verified",
                                  code=support.EXIT_SOURCE)
            self.assertIn(f"{self.db}.a: not compared completely", outcome.out)
            self.restore(damaged, code=support.EXIT_SOURCE)
        listed = bson.encode({"db": self.db, "collection": "b",
                              "metadata": namespaces[1].metadata(),
                              "size": len(namespaces[1].data), "type": "collection"})
        self.assertIn(listed, data)
        self.restore(self.file("unlisted", data.replace(listed, b"")), "--drop",
                     code=support.EXIT_SOURCE,
                     message=f"{self.db}.b: documents of a collection that the archive does not list")

    def test_nothing_is_dropped_for_documents_that_cannot_be_read(self):
        """A nightly copy by a pipe whose first program fails; a dump written by another user."""
        for name in ("a", "b"):
            self.database[name].insert_one({"_id": "kept"})
        to_a = ("--drop", "-d", self.db, "-c", "a")
        for words in (to_a, to_a[1:]):
            self.restore("-", *words, code=support.EXIT_SOURCE, stdin=b"",
                         message="has the program that writes them failed")
        dump = self.dump_folder(self.namespace("a", documents(3)), self.namespace("b", documents(3)), zipped=True)
        (dump / self.db / "b.bson.gz").write_bytes(b"\x1f\x8b\x08garbage" + bytes(30))
        work = self.scratch / "work"
        for words in ([], ["--dry-run"]):
            self.restore(dump, "--drop", *words, code=support.EXIT_SOURCE, work=work,
                         message=f"{self.db}.b cannot be read, so --drop is refused")
        self.assertFalse(work.exists())
        for name in ("a", "b"):
            self.check(name, [{"_id": "kept"}])
        self.restore("-", *to_a, "--skip-other", stdin=b"")
        self.assertEqual(self.database.a.count_documents({}), 0)
        empty = self.dump_folder(self.namespace("b", []))
        self.restore(empty, "--drop")  # a folder's file without documents is a dump of none
        self.assertEqual(self.database.b.count_documents({}), 0)

    def test_a_killed_restore_of_a_pipe_needs_no_pipe_to_be_resumed(self):
        made = documents(4000)
        data = making.archive((self.namespace("a", made), self.namespace("b", made)), 100)
        work = self.scratch / "work"
        words = ["--batch-size", 50, "-j", 2]
        source = self.file("archive", data)
        with open(source, "rb") as pipe:
            running = self.begin("-", "--rate-limit", 4000, *words, stdin=pipe)
            self.wait_for_documents(running, 500, "a")
            running.kill()
        self.clear_balancer()
        self.restore("-", *words, "--resume", work=work, code=support.EXIT_SOURCE, stdin=data.replace(b"a", b"b"),
                     message="- is not the archive that was unpacked into")
        self.restore("-", *words, "--resume", work=work, code=support.EXIT_SOURCE, stdin=b"", message="- is empty, not")
        for more in {"stdin": data}, {"through": ("sh", "-c", 'exec "$@" </dev/null', "sh")}:
            self.restore("-", *words, "--resume", work=work, **more)
        self.check("a", made)
        self.check("b", made)

    def verify(self, dump, *words, **more):
        return self.shardload("verify", "--uri", self.uri, "--progress", "none", *words, "--dump",
                              dump, **more)

    def test_a_dump_is_verified(self):
        made, buckets = documents(500), self.buckets()
        namespaces = (
            self.namespace("t", made, options=VALIDATOR, indexes=INDEXES),
            self.namespace("empty", []), self.namespace("t.sources", documents(3)),
            self.namespace("v", options={"viewOn": "t", "pipeline": [{"$match": {"n": 1}}]}),
            self.namespace("c", made, options={"collation": COLLATION},
                           indexes=[{"v": 2, "key": {"s": 1}, "name": "s"}]),
            self.namespace("series", buckets, options=SERIES))
        dump = self.dump_folder(*namespaces)
        archive = self.archive(*namespaces, zipped=True)
        self.restore(dump)
        for words in ([], ["--content"]):
            outcome = self.verify(dump, *words)
            self.assertIn("6 of 6 namespaces are equal to the dump", outcome.out)
            self.assertNotIn("its sources", outcome.text)
        work = self.scratch / "verified"
        outcome = self.verify(archive, "--content", "--work-dir", work)
        self.assertIn("6 of 6 namespaces", outcome.out)
        self.assertFalse((work / "unpacked").exists())
        records = [json.loads(path.read_text()) for path in work.rglob("verify.json")]
        self.assertEqual({one["verification"]["otherSources"] for one in records}, {0})     # it was -1
        admin = making.Namespace("admin", "system.roles", [])
        self.verify(self.archive(admin, namespaces[1]), "--content", "--work-dir", work)
        changes = (
            (lambda: self.database.t.update_one({"n": 3}, {"$set": {"s": "new"}},
                                                bypass_document_validation=True),
             ["--content"], "different"),
            (lambda: self.database.c.delete_one({"n": 5}), [], "missing"),
            (lambda: self.database.empty.insert_one({}), [], "empty"),
            (lambda: self.database.t.drop_index("partial"), [], "index partial: in the dump one"),
            (lambda: self.database.command("collMod", "t", validator={}), [],
             'option validator: in the dump {"n": {"$gte": 100}}, on the server none'),
            (lambda: self.database.command("collMod", "v", viewOn="c", pipeline=[]), [], "option viewOn: in the dump"),
            (lambda: self.database.drop_collection("series"), [], "kind: in the dump timeseries"),
        )
        # Numbers as old clients sent them, which old servers keep, are those of newer servers.
        for seconds, code in ((1e8, 0), (1e8 + 1, support.EXIT_VERIFICATION)):
            old = {**INDEXES[1], "key": {"when": 1.0}, "expireAfterSeconds": seconds}
            self.verify(self.dump_folder(self.namespace("t", made, options=VALIDATOR, indexes=[old])), code=code)
        for change, words, message in changes:
            change()
            outcome = self.verify(dump, *words, code=support.EXIT_VERIFICATION)
            self.assertIn(message, outcome.text)
        outcome = self.verify(dump, "--content", "--ns-include", "*.t.sources")
        self.assertIn("1 of 1 namespaces", outcome.out)
        self.database["t.sources"].rename("moved")
        self.restore(archive, "--ns-include", "*.empty", work=work)
        self.verify(archive, "--work-dir", work, code=support.EXIT_USAGE, message="the work directory of a restore")
        self.verify(dump, "--ns-include", "*.t.sources", "--ns-from", "*.t.sources", "--ns-to", "*.moved")

    def test_the_log_shows_the_differences_of_all_namespaces(self):
        dump = self.dump_folder(self.namespace("a", documents(3)), self.namespace("b", documents(3), indexes=INDEXES))
        self.restore(dump)
        self.database.b.drop_indexes()
        outcome = self.verify(dump, "--work-dir", "verified", code=support.EXIT_VERIFICATION)
        self.assertEqual(re.findall(r"(?m)^\w+\.([ab]: .*)", outcome.out), ["a: equal to the dump", "b: differs"])
        differences = re.findall(rf"warning: ({self.database_name}\.b: .*)", outcome.err)
        self.assertEqual(len(differences), len(INDEXES), outcome.text)
        log = (self.scratch / "verified/shardload.log").read_text("utf-8")
        for one in differences:
            self.assertIn(one, log)

    def test_one_verification_at_a_time_uses_a_work_directory(self):
        """A second one would replace the files that the first has unpacked."""
        archive = self.archive(self.namespace("t", documents(3)))
        self.restore(archive)
        work = self.scratch / "verified"
        first, pipe = self.start_with_pipe("shardload", "verify", "--uri", self.uri, "--dump", "-", "--work-dir", work)
        self.wait_for((work / "unpacked").exists, "the first verification")
        self.verify(archive, "--work-dir", work, code=support.EXIT_USAGE,
                    message="another command is using this work directory")
        with pipe:
            pipe.write(archive.read_bytes())
        self.assertIn("1 of 1 namespaces are equal to the dump", first.wait().out)

    def test_interrupted_while_an_archive_is_unpacked(self):
        """A program waits for the end of a pipe. After Ctrl-C a restore can be resumed; verify has
        removed what it had unpacked."""
        made = documents(20000)
        archive = self.archive(self.namespace("t", made))
        for command, words in (("restore", ["-"]), ("verify", ["--dump", "-"])):
            work = self.scratch / command
            running, _ = self.start_with_pipe(
                "shardload", command, "--uri", self.uri, "--progress", "none", "--work-dir", work,
                *words, text=archive.read_bytes()[:-1000])
            self.wait_for(lambda: list(work.glob("unpacked/*")), "an unpacked file")
            outcome = running.interrupt("interrupted while the archive was unpacked")
            self.assertEqual("--resume --work-dir" in outcome.err, command == "restore")
            self.assertEqual(work.exists(), command == "restore")
        self.assertEqual(self.database.list_collection_names(), [])
        self.restore("-", "--resume", work=self.scratch / "restore", stdin=archive.read_bytes())
        self.check("t", made)

    def test_wrong_options_of_verify(self):
        dump = self.dump_folder(self.namespace("t", []))
        for words, message in ((["-c", "x"], "--collection needs --db"), (["x.bson"], "leave the sources out")):
            self.verify(dump, *words, code=support.EXIT_USAGE, message=message)
        self.verify(self.archive(self.namespace("t", [])), code=support.EXIT_USAGE, message="--work-dir")
        self.verify("missing/", code=support.EXIT_SOURCE, message="--dump missing/: No such file or directory")
        self.shardload("verify", "-d", "a", "-c", "b", "--ns-include", "x", "x.bson",
                       code=support.EXIT_USAGE, message="--ns-include is for --dump only")


class Sharded(Standalone, server="cluster"):
    def keys(self, text):
        return ["--shard-keys", self.file(f"keys-{next(self._counter)}.yaml", text.replace("DB", self.db))]

    def test_an_index_that_cannot_support_the_shard_key_keeps_its_name(self):
        made, own = documents(50), {"v": 2, "key": {"s": 1}, "name": "s_1", "collation": COLLATION}
        dump = self.dump_folder(self.namespace("t", made, indexes=[own]))
        self.restore(dump, *self.keys("DB.t: {key: {s: 1}}\n"))
        self.check("t", made)
        indexes = self.facts("t")[2]
        self.assertEqual((indexes["s_1"]["collation"]["locale"], indexes["shard_key"]["key"]), ("de", {"s": 1}))

    def test_shard_keys(self):
        made = documents(4000)
        by_number = {"v": 2, "key": {"n": 1}, "name": "of the dump", "unique": True}
        keys = self.keys("DB.t: {key: {n: 1}, unique: true}\nDB.h: {key: {_id: hashed}}\n"
                         "DB.i: {key: {s: 1, _id: 1}}\n")
        dump = self.dump_folder(
            self.namespace("t", made, indexes=[by_number]), self.namespace("h", made),
            self.namespace("i", made, options={"collation": COLLATION}),
            self.namespace("u", made), self.namespace("u.sources", made[:1]), zipped=True)
        outcome, _ = self.restore(dump, *keys)
        self.assertIn(f"each on one shard, unless it exists sharded: {self.db}.u; --shard-keys FILE shards",
                      outcome.text)
        for name, key in (("t", {"n": 1}), ("h", {"_id": "hashed"}), ("i", {"s": 1, "_id": 1}), ("u", None)):
            self.check(name, made)
            self.assertEqual(self.shard_key(name), key)
        self.assertEqual(self.facts("t")[2]["of the dump"]["unique"], True)
        for name in ("t", "i"):
            chunks = self.chunks(name)
            self.assertEqual(len(chunks), 8)
            self.assertEqual({chunk["shard"] for chunk in chunks},
                             {shard["_id"] for shard in self.client.config.shards.find()})
        bounds = [chunk["min"]["n"] for chunk in self.chunks("t")[1:]]
        self.assertEqual(bounds, sorted(bounds))
        for number, bound in enumerate(bounds, 1):      # all documents are in the sample
            self.assertEqual(bound, 4000 * number // 8)
        counts = self.counts_by_shard()
        self.assertEqual(set(counts.values()), {2000})
        # Into the sharded collection again, and into a new one.
        _, rows = self.restore(dump, *keys)
        self.assertEqual(rows["t"]["alreadyStored"], 4000)
        self.restore(dump, "--drop", *keys, "--route", "direct", "--ns-exclude", "*.u")
        self.check("t", made)
        self.restore(dump, "--ns-include", "*.u", *self.keys("DB.u: {key: {n: 1}}"),
                     code=support.EXIT_CLUSTER, message="exists with documents and is not sharded")
        outcome, _ = self.restore(dump, "--drop", "--ns-include", "*.i")
        self.assertIn(f'{self.db}.i is sharded, and is replaced by an unsharded collection', outcome.err)
        self.assertIn(f'`{self.db}.i: {{key: {{ "s" : 1, "_id" : 1 }}}}`', outcome.err)
        self.assertNotIn("unless it exists sharded", outcome.err)
        self.assertIsNone(self.shard_key("i"))

    def test_a_sharded_time_series_collection(self):
        made = self.buckets()
        dump = self.dump_folder(self.namespace("t", made, options=SERIES))
        keys = self.keys("DB.t: {key: {m: 1}}")
        outcome, rows = self.restore(dump, *keys)
        self.assertEqual(self.facts("t")[:2], ("timeseries", SERIES), outcome.text)
        self.assertEqual(self.shard_key("system.buckets.t"), {"meta": 1})
        self.assertEqual(rows["t"]["inserted"], len(made))
        self.check("system.buckets.t", made)
        self.assertEqual(self.database.t.count_documents({}), 200)
        self.assertEqual(sum(one["v"] for one in self.database.t.find()), 199 * 100)
        self.restore(dump, "--drop", *keys)
        self.check("system.buckets.t", made)
        outcome, rows = self.restore(dump, *keys)
        self.assertEqual(rows["t"]["alreadyStored"], len(made))

    def test_a_unique_index_without_the_shard_key_is_named(self):
        made = documents(100)
        dump = self.dump_folder(self.namespace("t", made, indexes=[
            {"v": 2, "key": {"s": 1}, "name": "only s", "unique": True}, INDEXES[1]]))
        outcome, _ = self.restore(dump, *self.keys("DB.t: {key: {n: 1}}"), code=support.EXIT_CLUSTER, message="only s")
        self.assertIn("A unique index must have the fields of the shard key", outcome.err)
        self.assertNotIn("contradict", outcome.err)
        self.assertIn("ttl", self.facts("t")[2])
        self.check("t", made)
