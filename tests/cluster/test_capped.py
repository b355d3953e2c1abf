# SPDX-License-Identifier: Apache-2.0
"""A load into a capped collection that is too small, and an interrupt while records of --embed are read:
the messages name the cause and what to do."""
import signal

import support


class Messages(support.ClusterCase, server="mongod"):
    def test_a_full_capped_collection_is_named(self):
        self.database.create_collection("t", capped=True, size=1 << 20, max=700)
        path = self.file("t.csv", "a,b\n" + "".join(f"{n},text {n}\n" for n in range(3000)))
        for words in ([], ["--id-field", "a"]):
            outcome, _ = self.load("-j", 1, *words, path, code=support.EXIT_VERIFICATION)
            self.assertIn("is a capped collection of at most 1.0 MB and 700 documents", outcome.err)
            self.assertIn("the server removes the oldest documents", outcome.err)
            self.database.drop_collection("t.sources")
        self.database.drop_collection("t")
        self.load("--no-verify", path)

    def test_a_ttl_index_is_named(self):
        self.database.t.create_index("seen.at", expireAfterSeconds=864000)
        path = self.file("t.csv", "n,seen.at\n" + "".join(
            f"{n},{2000 if n < 30 else 2999}-01-01T00:00:00Z\n" for n in range(100)))
        outcome, _ = self.load(path)
        self.assertIn("has the TTL index seen.at_1: servers delete documents whose field seen.at "
                      "has a date older than 864000 seconds, also those of this load; 30 of the "
                      "100 records", outcome.err)
        self.assertEqual(outcome.err.count("TTL"), 1)
        self.database.t.drop_indexes()
        self.database.t.create_index("seen.at", expireAfterSeconds=864000,
                                     partialFilterExpression={"n": {"$gt": 1000}})
        self.assertIn("864000 seconds and which match its partialFilterExpression, also",
                      self.load("--again", path)[0].err)

    def test_a_ttl_index_that_the_load_builds_is_named(self):
        path = self.file("t.csv", "n,at\n" + "".join(
            f"{n},{2000 if n < 30 else 2999}-01-01T00:00:00Z\n" for n in range(100)))
        index = '{"key": {"at": 1}, "expireAfterSeconds": 3600}'
        said = "the TTL index at: servers delete documents whose field at has a date older than " \
            "3600 seconds, also those of this load; 30 of the 100 records at the beginning of the " \
            "sources have such a date already. To keep them, leave expireAfterSeconds of --index out"
        self.assertIn(f"{self.database_name}.t gets {said}", self.load("--index", index, path)[0].err)
        self.assertEqual(self.load("--index", index, "--again", path)[0].err.count("TTL"), 1)

    def interrupted(self, work, items, path):
        """Interrupts a load while records to embed are read. None: it came too late."""
        running = self.start("shardload", *self.load_words(
            work, "-j", 1, "--embed", f"items={items}", "--on", "key", path))
        self.wait_for(lambda: (work / "embed/records").exists() or not running.running(),
                      "the folder of records")
        running.signal(signal.SIGINT)
        outcome = running.wait()
        return outcome if outcome.code == support.EXIT_INTERRUPTED and not any(
            self.stored()) else None

    def test_an_interrupt_while_records_to_embed_are_read(self):
        items = self.file("items.csv", b"key,n\n" + b"1,2\n" * 8000000)
        path = self.file("t.csv", "key,b\n1,x\n2,y\n")
        for attempt in range(5):
            work = self.scratch / f"work-{attempt}"
            outcome = self.interrupted(work, items, path)
            if outcome and f"{work}/embed/records holds the records of --embed" in outcome.err:
                break
        self.assertIn("interrupted before anything was loaded", outcome.err)
        records = self.file("records.csv", "key,n\n1,2\n1,3\n")
        self.shardload(*self.load_words(work, "--embed", f"items={records}", "--on", "key", path))
        self.assertEqual(self.database.t.find_one({"key": 1})["items"], [{"n": 2}, {"n": 3}])
