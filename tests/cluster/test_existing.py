# SPDX-License-Identifier: Apache-2.0
"""A load into an existing collection changes only what the user asked for, and exactly what `plan`
has shown before."""
import json

import support

ROWS = 300


class Existing(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("year.txt", support.mot_text(range(1, ROWS + 1)))

    def create_unsharded(self, documents=5):
        """Creates the collection as another program would, with documents of its own."""
        self.database.create_collection("t")
        if documents:
            self.database.t.insert_many([{"_id": f"mine-{n}", "v": n} for n in range(documents)])

    def state(self):
        """The properties of the collection that a load may change, besides its documents."""
        return {"key": self.shard_key(),
                "chunks": [(c["min"], c["max"], c["shard"]) for c in self.chunks()],
                "indexes": sorted(self.database.t.index_information()),
                "balancer": self.balancer_mode()}

    def plan(self, *words, code=support.EXIT_OK):
        before, report = self.state(), self.scratch / f"plan-{next(self._counter)}.json"
        outcome = self.shardload("plan", *self.target(), "--report", report, *words, self.path,
                                 code=code)
        self.assertEqual(self.state(), before, "plan has changed the collection")
        return json.loads(report.read_text("utf-8")), outcome

    def assert_refused(self, *words):
        """plan and load refuse the options with the same message, and change nothing."""
        before, count = self.state(), self.database.t.count_documents({})
        plan, outcome = self.plan(*words, code=support.EXIT_USAGE)
        self.load(*words, self.path, code=support.EXIT_USAGE, message=plan["refused"])
        self.assertEqual(self.state(), before)
        self.assertEqual(self.database.t.count_documents({}), count)
        self.assertNotIn("t.sources", self.database.list_collection_names())
        return outcome

    def test_an_unsharded_collection_is_loaded_and_not_sharded(self):
        for documents in (5, 0):
            with self.subTest(documents=documents):
                self.client.drop_database(self.database_name)
                self.create_unsharded(documents)
                before = self.state()
                plan, shown = self.plan()
                self.assertEqual(plan["layout"]["sharding"], "left")
                self.assertEqual(plan["layout"]["kind"], "unsharded")
                self.assertIn("--shard-existing would shard it", shown.out)
                outcome, work = self.load(self.path)
                self.assertIn("exists and is not sharded: it stays unsharded", outcome.err)
                self.assertEqual(self.state(), before)
                self.assertEqual(self.database.t.count_documents({}), ROWS + documents)
                self.assert_accounting(work, inserted=ROWS)

    def test_a_shard_key_alone_is_refused(self):
        self.create_unsharded()
        for key in ('{"_id": 1}', '{"v": "hashed"}'):
            outcome = self.assert_refused("--shard-key", key)
            self.assertIn("--shard-existing", outcome.err)
            self.assertIn("leave --shard-key out", outcome.err)

    def test_only_shards_is_refused(self):
        self.create_unsharded()
        self.load("--only-shards", "s0", self.path, code=support.EXIT_USAGE, message="--shard-existing")

    def test_shard_existing_shards_the_collection(self):
        for words, key in (((), {"_id": 1}), (("--shard-key", '{"v": "hashed"}'), {"v": "hashed"})):
            with self.subTest(key=key):
                self.client.drop_database(self.database_name)
                self.create_unsharded()
                plan, shown = self.plan("--shard-existing", *words)
                self.assertEqual(plan["layout"]["sharding"], "existing")
                self.assertIn("SHARDS IT by", shown.out)
                outcome, work = self.load("--shard-existing", *words, self.path)
                self.assertIn("--shard-existing shards it now", outcome.err)
                self.assertEqual(self.shard_key(), key)
                self.assertEqual(self.database.t.count_documents({}), ROWS + 5)
                if key == {"_id": 1}:
                    steps = support.run_record(work)["distribution"]["steps"]
                    self.assertEqual(steps, plan["layout"]["splits"] + plan["layout"]["moves"])

    def test_without_an_index_of_the_key_nothing_is_loaded(self):
        self.create_unsharded()
        self.database.t.insert_one({"m": [1], "v": [1]})      # no index can contain both arrays
        before = self.state()
        self.load("--shard-existing", "--shard-key", '{"m": 1, "v": 1}', self.path, code=support.EXIT_CLUSTER,
                  message="cannot build index m_1_v_1")
        self.assertEqual(self.state(), before)
        self.assertEqual(self.database.t.count_documents({}), 6)

    def test_shard_key_none_changes_nothing(self):
        self.create_unsharded()
        before = self.state()
        for words in ((), ("--shard-existing",)):
            self.load("--again", "--shard-key", "none", *words, self.path)
            self.assertEqual(self.state(), before)

    def test_a_sharded_collection_keeps_its_key(self):
        self.load(self.path)
        self.assertEqual(self.shard_key(), {"_id": 1})
        for words in ((), ("--shard-key", '{"_id": 1}'), ("--shard-existing",)):
            plan, _ = self.plan("--again", *words)
            self.assertEqual(plan["layout"]["sharding"], "as it is")
            self.load("--again", *words, self.path)

    def test_the_key_of_an_earlier_owner_is_kept(self):
        """Without --shard-key, with any format; another --shard-key is refused with both keys."""
        own_ids = self.file("own.json", "".join(f'{{"_id": "j{n}", "v": {n}}}\n' for n in range(ROWS)))
        for key in ({"v": 1}, {"v": "hashed"}, {"m": 1, "_id": "hashed"}, {"_id": "hashed"}, {"_id": 1}):
            for path, other in ((self.path, '{"k": 1}'), (own_ids, '{"k": "hashed"}')):
                with self.subTest(key=key, path=path.name):
                    self.client.drop_database(self.database_name)
                    self.shard(key)
                    self.database.t.insert_many([{"_id": f"mine-{n}", "v": n} for n in range(5)])
                    shown = json.dumps(key).replace("{", "{ ").replace("}", " }").replace(":", " :")
                    self.load("--shard-key", other, path, code=support.EXIT_CLUSTER,
                              message=f"is sharded by {shown}, and --shard-key")
                    report = self.scratch / f"plan-{next(self._counter)}.json"
                    plan = self.shardload("plan", *self.target(), "--report", report, path)
                    self.assertIn(f"sharded by {shown}: ", plan.out)
                    self.assertEqual(json.loads(report.read_text("utf-8"))["layout"]["shardKey"], key)
                    outcome, work = self.load(path)
                    self.assertNotIn("was given", outcome.text)
                    self.assertIn(f"sharded by {shown}", outcome.err)
                    self.assertEqual('sampled has a field "m"' in outcome.err,
                                     "m" in key and path == own_ids)
                    self.assertEqual(support.run_record(work)["shardKey"], key)
                    self.assertEqual(self.shard_key(), key)
                    self.assertEqual(self.database.t.count_documents({}), ROWS + 5)
                    self.database.t.delete_many({"_id": {"$regex": "^mine"}})
                    self.shardload("verify", *self.target(), "--content", path)

    def test_only_missing_indexes_are_built(self):
        self.create_unsharded()
        self.database.t.create_index("v")
        words = "--index", '{"v": 1}', "--index", '{"m": 1, "v": -1}'
        _, shown = self.plan(*words)
        before = set(self.state()["indexes"])
        self.load(*words, self.path)
        added = set(self.state()["indexes"]) - before
        self.assertEqual(added, {"m_1_v_-1"})
        self.assertIn('index { "m" : 1, "v" : -1 } is built', shown.out)

    def test_a_collection_that_a_killed_loader_had_not_yet_sharded_is_sharded(self):
        self.create_unsharded(documents=0)
        self.database["t.sources"].insert_one({"_id": "creating"})
        plan, _ = self.plan()
        self.assertEqual(plan["layout"]["sharding"], "new")
        self.load(self.path)
        self.assertEqual(self.shard_key(), {"_id": 1})
        self.assertIsNone(self.database["t.sources"].find_one({"_id": "creating"}))

    def test_an_old_creation_mark_does_not_shard_a_collection_with_documents(self):
        self.create_unsharded()
        self.database["t.sources"].insert_one({"_id": "creating"})
        self.load(self.path)
        self.assertIsNone(self.shard_key())


class Unsharded(support.ClusterCase, server="mongod"):
    def test_a_shard_key_is_ignored_on_a_server_without_shards(self):
        path = self.file("year.txt", support.mot_text([1]))
        self.database.t.insert_one({"_id": "mine"})
        self.load("--shard-key", '{"_id": 1}', path)
        self.assertEqual(self.database.t.count_documents({}), 2)
