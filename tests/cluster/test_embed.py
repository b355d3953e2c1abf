# SPDX-License-Identifier: Apache-2.0
"""--embed into a cluster: the stored documents have their records, also after kills; resumed loads
report the same records without a document; and verify compares the embedded records, too."""
import random
import shutil
import signal

import support

ORDERS = 30000
PAD = "x" * 300          # the orders have ten blocks


class Embedding(support.ClusterCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        keys = draw.sample(range(10 ** 6), ORDERS)
        owners = [key for key in keys for _ in range(draw.choice([0, 1, 3]))] + [-1, -2, -2]
        draw.shuffle(owners)
        self.items = {}
        for number, key in enumerate(owners):
            self.items.setdefault(key, []).append({"n": number})
        self.orders = self.file("orders.csv", "key,v,pad\n" + "".join(f"{k},{k % 9},{PAD}\n" for k in keys))
        self.records = self.file("items.csv", "key,n\n" + "".join(
            f"{key},{number}\n" for number, key in enumerate(owners)))
        self.work = self.scratch / "work"
        self.options = ["--embed", f"items={self.records}", "--on", "key"]

    def assert_stored(self, orders=ORDERS):
        """Every stored document is right, and all are there."""
        count = 0
        for document in self.database["t"].find({}, {"_id": 0}):
            count += 1
            expected = {"key": document["key"], "v": document["key"] % 9, "pad": PAD}
            if document["key"] in self.items:
                expected["items"] = self.items[document["key"]]
            self.assertEqual(document, expected)
        self.assertEqual(count, orders)

    def words(self, *more):
        return ["load", *self.target(), "--work-dir", self.work, "--progress", "json", *self.options,
                *more, self.orders]

    def verify(self, *more, code):
        return self.shardload("verify", *self.target(), "--work-dir", self.work, *self.options,
                              *more, self.orders, code=code)

    def test_load_and_verify_by_shard_key(self):
        self.shardload(*self.words("--shard-key", '{"key": "hashed"}'), code=support.EXIT_REJECTS)
        self.assert_stored()
        self.assertEqual(support.run_record(self.work)["embed"]["inNoDocument"], 3)
        again = self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS)
        self.assertIn("nothing to resume", again.text)
        self.verify("--content", code=support.EXIT_OK)
        outcome = self.shardload("verify", *self.target(), "--work-dir", self.work, "--embed",
                                 f"other={self.records}", "--on", "key", self.orders,
                                 code=support.EXIT_USAGE)
        self.assertIn("has the records of another --embed", outcome.err)
        shutil.rmtree(self.work / "embed")          # verify makes it again
        self.verify("--content", code=support.EXIT_OK)
        key = next(key for key in self.items if key >= 0)
        self.database["t"].update_one({"key": key}, {"$set": {"items.0.n": -1}})
        outcome = self.verify("--content", code=support.EXIT_VERIFICATION)
        self.assertIn("1", outcome.text)

    def test_killed_loads_are_completed(self):
        """A kill while the records are read, while they are stored, and while documents are sent:
        by the number of documents that are stored then."""
        for stored in (None, 1, ORDERS // 3, ORDERS * 2 // 3):
            resume = ["--resume"] if (self.work / "journal").exists() else []
            running = self.start("shardload", *self.words("-j", 1, "--batch-size", 100,
                                                          "--rate-limit", 8000, *resume))
            if stored is None:
                self.wait_for(lambda: (self.work / "embed/records").exists(), "records on disk")
            else:
                self.wait_for(lambda least=stored: not running.running() or self.database[
                    "t"].estimated_document_count() >= least, "documents")
                self.assertTrue(running.running(), "the load has ended before the kill")
            running.signal(signal.SIGKILL)
            running.wait()
        self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS)
        self.assert_stored()
        figures = support.run_record(self.work)["embed"]
        self.assertEqual((figures["inNoDocument"], figures["records"]),
                         (3, sum(map(len, self.items.values()))))
        self.assertEqual(len((self.work / "embed/orphans.json").read_text().splitlines()), 2)

    def test_other_records_are_no_resume(self):
        running = self.start("shardload", *self.words("-j", 1, "--batch-size", 100,
                                                      "--rate-limit", 8000))
        self.wait_for(lambda: self.database["t"].estimated_document_count() > 0, "documents")
        begun = (self.work / "journal").stat().st_size
        self.wait_for(lambda: (self.work / "journal").stat().st_size > begun, "a completed block")
        running.signal(signal.SIGKILL)
        running.wait()
        kept = self.records.read_text()
        self.records.write_text(kept + "5,5\n")
        outcome = self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE)
        self.assertIn("has changed since the load began", outcome.err)
        self.records.write_text(kept)
        outcome = self.shardload(*self.words("--resume", "--on", "v"), code=support.EXIT_USAGE)
        shutil.rmtree(self.work / "embed")
        outcome = self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE)
        self.assertIn("are no longer in the work directory", outcome.err)


if __name__ == "__main__":
    import tap
    tap.main()
