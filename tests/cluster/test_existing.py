# SPDX-License-Identifier: Apache-2.0
"""What a load changes of a collection that exists: only what the user asked for, and exactly what
`plan` has shown before."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402
from support import HEADER, ROW  # noqa: E402

ROWS = 300


class Existing(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("year.txt", HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, ROWS + 1)))

    def make(self, documents=5):
        """The collection as somebody else made it: not sharded."""
        self.database.create_collection("t")
        if documents:
            self.database.t.insert_many([{"_id": f"mine-{n}", "v": n} for n in range(documents)])

    def namespace(self):
        return f"{self.database_name}.t"

    def shard_key(self):
        """None where the collection is not sharded."""
        entry = self.client.config.collections.find_one({"_id": self.namespace()})
        return entry and dict(entry["key"])

    def state(self):
        """All that a load may change of the collection beside its documents."""
        entry = self.client.config.collections.find_one({"_id": self.namespace()})
        chunks = self.client.config.chunks.find({"uuid": entry["uuid"]}) if entry else ()
        return {"key": self.shard_key(),
                "chunks": sorted((repr(c["min"]), repr(c["max"]), c["shard"]) for c in chunks),
                "indexes": sorted(self.database.t.index_information()),
                "balancer": self.balancer_mode()}

    def plan(self, *words, code=support.EXIT_OK):
        before, report = self.state(), self.scratch / f"plan-{next(self._counter)}.json"
        outcome = self.shardload("plan", *self.target(), "--report", report, *words, self.path,
                                 code=code)
        self.assertEqual(self.state(), before, "the plan has changed something")
        return json.loads(report.read_text("utf-8")), outcome

    def refused_alike(self, *words):
        """Plan and load refuse it with the same words, and nothing is changed."""
        before, count = self.state(), self.database.t.count_documents({})
        plan, outcome = self.plan(*words, code=support.EXIT_USAGE)
        loaded, _ = self.load(*words, self.path, code=support.EXIT_USAGE)
        self.assertIn(plan["refused"], loaded.err)
        self.assertEqual(self.state(), before)
        self.assertEqual(self.database.t.count_documents({}), count)
        self.assertNotIn("t.sources", self.database.list_collection_names())
        return outcome

    def test_it_is_loaded_as_it_is(self):
        for documents in (5, 0):
            with self.subTest(documents=documents):
                self.client.drop_database(self.database_name)
                self.make(documents)
                before = self.state()
                plan, shown = self.plan()
                self.assertEqual(plan["layout"]["sharding"], "left")
                self.assertEqual(plan["layout"]["kind"], "unsharded")
                self.assertIn("--shard-existing would shard it", shown.out)
                outcome, work = self.load(self.path)
                self.assertIn("exists and is not sharded: it is loaded as it is", outcome.err)
                self.assertEqual(self.state(), before)
                self.assertEqual(self.database.t.count_documents({}), ROWS + documents)
                self.assert_accounting(work, inserted=ROWS)

    def test_a_key_that_is_given_is_refused(self):
        self.make()
        for key in ('{"_id": 1}', '{"v": "hashed"}'):
            outcome = self.refused_alike("--shard-key", key)
            self.assertIn("--shard-existing", outcome.err)
            self.assertIn("leave --shard-key out", outcome.err)

    def test_only_shards_has_no_shards_there(self):
        self.make()
        outcome, _ = self.load("--only-shards", "s0", self.path, code=support.EXIT_USAGE)
        self.assertIn("--shard-existing", outcome.err)

    def test_it_is_sharded_when_that_is_asked_for(self):
        for words, key in (((), {"_id": 1}), (("--shard-key", '{"v": "hashed"}'), {"v": "hashed"})):
            with self.subTest(key=key):
                self.client.drop_database(self.database_name)
                self.make()
                plan, shown = self.plan("--shard-existing", *words)
                self.assertEqual(plan["layout"]["sharding"], "existing")
                self.assertIn("SHARDS IT by", shown.out)
                outcome, work = self.load("--shard-existing", *words, self.path)
                self.assertIn("--shard-existing shards it now", outcome.err)
                self.assertEqual(self.shard_key(), key)
                self.assertEqual(self.database.t.count_documents({}), ROWS + 5)
                if key == {"_id": 1}:
                    steps = support.run_record(work)["placing"]["steps"]
                    self.assertEqual(steps, plan["layout"]["splits"] + plan["layout"]["moves"])

    def test_none_leaves_it_alone(self):
        self.make()
        before = self.state()
        for words in ((), ("--shard-existing",)):
            self.load("--again", "--shard-key", "none", *words, self.path)
            self.assertEqual(self.state(), before)

    def test_what_is_sharded_stays_so(self):
        self.load(self.path)
        self.assertEqual(self.shard_key(), {"_id": 1})
        for words in ((), ("--shard-key", '{"_id": 1}'), ("--shard-existing",)):
            plan, _ = self.plan("--again", *words)
            self.assertEqual(plan["layout"]["sharding"], "as it is")
            self.load("--again", *words, self.path)

    def test_indexes_are_planned_and_built(self):
        self.make()
        self.database.t.create_index("v")
        words = "--index", '{"v": 1}', "--index", '{"m": 1, "v": -1}'
        _, shown = self.plan(*words)
        before = set(self.state()["indexes"])
        self.load(*words, self.path)
        added = set(self.state()["indexes"]) - before
        self.assertEqual(added, {"m_1_v_-1"})
        self.assertIn('index { "m" : 1, "v" : -1 } is built', shown.out)

    def test_a_creation_cut_short_is_completed(self):
        """A loader died after it had created the collection, and before it had sharded it."""
        self.make(documents=0)
        self.database["t.sources"].insert_one({"_id": "creating"})
        plan, _ = self.plan()
        self.assertEqual(plan["layout"]["sharding"], "new")
        self.load(self.path)
        self.assertEqual(self.shard_key(), {"_id": 1})
        self.assertIsNone(self.database["t.sources"].find_one({"_id": "creating"}))

    def test_an_old_mark_does_not_shard_documents(self):
        self.make()
        self.database["t.sources"].insert_one({"_id": "creating"})
        self.load(self.path)
        self.assertIsNone(self.shard_key())


class Unsharded(support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def test_without_shards_nothing_is_decided(self):
        path = self.file("year.txt", HEADER + "\n" + ROW.format(id=1) + "\n")
        self.database.t.insert_one({"_id": "mine"})
        self.load("--shard-key", '{"_id": 1}', path)
        self.assertEqual(self.database.t.count_documents({}), 2)


if __name__ == "__main__":
    import tap
    tap.main()
