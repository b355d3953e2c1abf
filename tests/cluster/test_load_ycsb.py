# SPDX-License-Identifier: Apache-2.0
"""Generated records in a sharded cluster: every record is stored as documented, each shard has its
share, the same records are not loaded twice, loaders with different seeds run side by side, and the
answers of the suite `ycsb` are right."""
import collections
import json

import support
import ycsb_maker
from support import bson
from ycsb_maker import Options

SMALL = Options(field_count=2, field_length=10, integer_count=2)
RECORDS = 16 * 4096  # sixteen blocks: eight for each of two shards


def words(options=SMALL, records=RECORDS):
    return ["--format", "ycsb", "--records", records, *options.words(), "-j", 2]


def expected_answers(documents):
    """The answers of the queries in queries/ycsb.yaml."""
    first = 1 << 40
    groups = collections.defaultdict(list)
    for one in documents:
        groups[one["n0"]].append(one["n1"])
    top = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))[:20]
    return {
        "one-document": [{"_id": one["_id"], "n0": one["n0"], "n1": one["n1"]}
                         for one in documents if one["_id"] == first],
        "key-range": [{"documents": sum(first <= one["_id"] < first + (1 << 32)
                                        for one in documents)}],
        "most-frequent-value": [{"documents": len(groups[0])}],
        "value-range": [{"documents": sum(len(group) for value, group in groups.items()
                                          if 1000 <= value < 2000)}],
        "top-values": [{"_id": value, "documents": len(group), "meanNext": sum(group) / len(group)}
                       for value, group in top],
        "every-byte": [{"_id": None, "documents": len(documents),
                        "bytes": sum(len(one["f0"]) for one in documents)}],
    }


class Generated(support.ClusterCase):
    def test_every_record_is_stored_and_each_shard_has_its_share(self):
        _, work = self.load(*words())
        expected = {one["_id"]: support.encoded(one) for one in
                    (ycsb_maker.document(SMALL, i) for i in range(RECORDS))}
        stored = {support.key_of(raw): raw for raw in self.stored()}
        self.assertEqual(len(stored), RECORDS)
        self.assertTrue(stored == expected, "the documents differ from those documented")
        self.assertEqual(list(self.counts_by_shard().values()), [RECORDS // 2] * 2)
        self.assert_accounting(work, records=RECORDS, inserted=RECORDS, rejectedByServer=0)
        self.assertIs(support.run_record(work)["verification"]["ok"], True)

    def test_the_same_records_twice_are_refused(self):
        self.load(*words())
        self.load(*words(), code=support.EXIT_SOURCE,
                  message=("has been loaded", f"ycsb records 0 to {RECORDS - 1} of seed 1"))
        _, work = self.load("--again", *words())
        self.assert_accounting(work, records=RECORDS, inserted=0, alreadyStored=RECORDS)
        self.load(*words(SMALL._replace(seed=2)))
        self.assertEqual(self.database.t.count_documents({}), 2 * RECORDS)

    def test_documents_of_147_kb_and_of_16_mib(self):
        """Both shards receive documents; a repeated load and verify find each of them."""
        for number, (size, records) in enumerate(((147_000, 300), (16 << 20, 5)), 1):
            with self.subTest(size):
                options = Options(field_count=2, integer_count=1, seed=number, document_size=size)
                command = words(options, records)
                _, work = self.load(*command)
                self.assert_accounting(work, records=records, inserted=records,
                                       bsonBytes=records * size)
                stored = {bytes(one["f1"][-8:]): one for one in
                          self.database.t.find({"_id": {"$gte": number << 40}})}
                self.assertEqual(len(stored), records)
                for record in (0, records - 1):
                    expected = ycsb_maker.document(options, record, number)
                    self.assertEqual(stored[expected["f1"][-8:]], expected)
                _, work = self.load("--again", *command)
                self.assert_accounting(work, inserted=0, alreadyStored=records)
        self.assertGreater(min(self.counts_by_shard().values()), 100)
        self.run_program("shardload", "verify", "--content", *self.target(), *command).expect(0)
        self.database.t.update_one({"_id": 2 << 40}, {"$set": {"n0": -1}})
        outcome = self.shardload("verify", "--content", *self.target(), *command,
                                 code=support.EXIT_VERIFICATION)
        self.assertIn("record 0", outcome.text)

    def test_again_stores_a_missing_record(self):
        self.load(*words())
        lost = self.database.t.find_one({"n0": 0}, sort=[("_id", 1)])
        self.database.t.delete_one({"_id": lost["_id"]})
        _, work = self.load("--again", *words())
        self.assert_accounting(work, inserted=1, alreadyStored=RECORDS - 1)
        self.assertEqual(self.database.t.find_one({"_id": lost["_id"]}), lost)

    def test_loaders_with_different_seeds_run_side_by_side(self):
        loaders = [self.start("shardload", *self.load_words(
            f"seed-{seed}", *words(SMALL._replace(seed=seed)))) for seed in (1, 2, 3)]
        for loader in loaders:
            loader.wait().expect(0)
        expected = {bytes(document["f0"]) for seed in (1, 2, 3) for document in
                    (ycsb_maker.fields(SMALL._replace(seed=seed), i) for i in range(RECORDS))}
        stored = {bytes(document["f0"]) for document in self.database.t.find({}, {"f0": 1})}
        self.assertTrue(stored == expected)
        self.assertEqual(self.database.t.count_documents({}), 3 * RECORDS)
        self.assertEqual(list(self.counts_by_shard().values()), [3 * RECORDS // 2] * 2)

    def test_the_answers_of_the_suite_ycsb(self):
        self.load("--index", '{"n0": 1}', *words())
        answers = expected_answers([ycsb_maker.document(SMALL, i) for i in range(RECORDS)])
        self.assertEqual(answers["key-range"], [{"documents": 4096}])
        path = self.file("answers.json", bson.json_util.dumps({"answers": answers}))
        self.run_program("shardquery", "run", *self.target(), "--answers", path,
                         "--repeat", 1, "--report", "report.json", "ycsb").expect(0)
        report = json.loads((self.scratch / "report.json").read_text())
        found = {entry["name"]: entry["answer"] for entry in report["queries"]}
        self.assertEqual({name: found.get(name) for name in answers}, dict.fromkeys(answers, "ok"))
