# SPDX-License-Identifier: Apache-2.0
"""run.json and the lines of --progress json are valid by their JSON Schemas (docs/run-record.md), in
loads that succeed, reject, fail or are resumed."""
import json
import re

import json_schema
import support

DOCS = support.TREE / "docs"


def schema(name):
    return json.loads((DOCS / name).read_text("utf-8"))


class RunRecord(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.is_record = json_schema.validator(schema("run-record-2.schema.json"))
        self.is_progress = json_schema.validator(schema("progress-1.schema.json"))

    def load(self, *words, code=support.EXIT_OK):
        outcome = self.shardload("load", *self.target(), "--progress", "json", "--work-dir", "run", *words, code=code)
        record = json.loads((self.scratch / "run/run.json").read_text("utf-8"))
        self.assertTrue(self.is_record(record), record)
        lines = [json.loads(line) for line in outcome.text.splitlines() if line.startswith("{")]
        for line in lines:
            self.assertTrue(self.is_progress(line), line)
        self.assertEqual(record["exitCode"], code)
        self.assertTrue(record["accounting"]["addsUp"])
        return record, lines

    def test_a_load(self):
        record, lines = self.load(self.file("tests.txt", support.mot_text(range(1, 5001))))
        self.assertEqual(lines[-1]["documents"], 5000)
        self.assertEqual(lines[-1]["share"], 1)
        self.assertEqual(sum(shard["documents"] for shard in record["shards"]), 5000)
        self.assertEqual(sum(lines[-1]["shards"].values()), 5000)
        # Every key of the record that is always there is described.
        described = schema("run-record-2.schema.json")["properties"]
        page = (DOCS / "run-record.md").read_text("utf-8")
        self.assertEqual([key for key in record if key not in described and not re.search(rf"`{key}`", page)], [])

    def test_a_load_with_rejects(self):
        path = self.file("tests.txt", support.mot_text(range(1, 11)) + "broken line\n")
        self.load(path, code=support.EXIT_REJECTS)

    def test_generated_records(self):
        _, lines = self.load("--format", "ycsb", "--records", "1000")
        self.assertIn("bsonBytesPerSecond", lines[-1])

    def test_upserts(self):
        path = self.file("people.csv", "id,name\n1,Ann\n2,Bob\n")
        for _ in range(2):
            record, _ = self.load("--id-field", "id", "--mode", "upsert", path)
        self.assertEqual(record["accounting"]["mode"], "upsert")

    def test_a_load_that_max_rejects_ends_and_its_resumption(self):
        path = self.file("tests.txt", support.mot_text(range(1, 11)) + "broken line\n")
        outcome = self.shardload("load", *self.target(), "--work-dir", "run", "--max-rejects", 0, path, code=None)
        self.assertNotIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS))
        record = json.loads((self.scratch / "run/run.json").read_text("utf-8"))
        self.assertTrue(self.is_record(record), record)
        self.load("--resume", path, code=support.EXIT_REJECTS)

    def test_the_schemas_notice_mistakes(self):
        record, lines = self.load(self.file("tests.txt", support.mot_text(range(1, 11))))
        self.assertFalse(self.is_record({**record, "schema": 1}))
        self.assertFalse(self.is_record({key: record[key] for key in record if key != "accounting"}))
        self.assertFalse(self.is_progress({**lines[-1], "share": 1.5}))
        self.assertFalse(self.is_progress({**lines[-1], "documents": -1}))


class Shards(support.ClusterCase):
    def test_the_shards_of_a_collection_into_which_another_load_writes(self):
        """Their counts do not belong together, so they are not exact."""
        def exact(work):
            shards = support.run_record(work)["shards"]
            self.assertGreater(len(shards), 1)
            return {shard["exact"] for shard in shards}

        self.clear_balancer()
        words = "--progress", "none", "-j", 1, "--batch-size", 100
        running, feed = self.start_with_pipe("shardload", *self.load_words("slow", *words, "-"),
                                             text=support.mot_text(range(1, 20000)).encode())
        self.wait_for_documents(running, 100)
        path = self.file("year.txt", support.mot_text(range(20000, 40000)))
        outcome, work = self.load(*words, path)
        self.assertEqual(exact(work), {False})
        self.assertIn("while another load runs", outcome.text)
        feed.close()
        running.wait().expect(support.EXIT_OK)
        _, work = self.load(*words, "--again", path)
        self.assertEqual(exact(work), {True})
