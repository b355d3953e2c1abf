# SPDX-License-Identifier: Apache-2.0
"""Loads with --mode upsert, merge, replace and delete that are killed and resumed, and whose
connections and answers are lost or wrong: the collection is that of an undisturbed load, and each
record is counted once."""
import collections

import proxy
import resume_case
import support
from support import bson

COUNT = 500
PAD = "x" * 9900    # five blocks


def document(number, word):
    return {"_id": number, "k": number % 7, "t": f"{word} {number} {PAD}"}


def text_of(numbers, word):
    rows = (f"{number},{number % 7},{word} {number} {PAD}" for number in numbers)
    return "\n".join(["id,k,t", *rows, ""]).encode()


# The documents that are stored before the load: the first half of the records, and others.
BEFORE = [*range(COUNT // 2), *range(2 * COUNT, 2 * COUNT + 100)]


class Standalone(resume_case.ResumeCase, server="mongod"):
    @classmethod
    def make_source(cls, folder):
        path = folder / "new.csv"
        path.write_bytes(text_of(range(COUNT), "new"))
        return path, []

    def setUp(self):
        super().setUp()
        self.store_old()

    def store_old(self):
        """Replaces all documents by the old ones. The loader does it, so that the collection is sharded."""
        self.database.t.delete_many({})
        self.load("--id-field", "id", "--again", self.file("old.csv", text_of(BEFORE, "old")))
        self.proxy.clear_faults()

    def words(self, *more, mode="upsert", **where):
        return super().words("--mode", mode, "--id-field", "id", *more, **{"size": 10, **where})

    def result_of(self, mode):
        stored = {number: document(number, "old") for number in BEFORE}
        for number in range(COUNT):
            if mode in ("upsert", "merge") or (mode in ("replace", "update") and number in stored):
                stored[number] = document(number, "new")
            if mode == "delete":
                stored.pop(number, None)
        return stored.values()

    def assert_result(self, outcome, mode, exact=False):
        rejects = COUNT - COUNT // 2 if mode in ("replace", "update") else 0
        self.assertEqual(outcome.code, support.EXIT_REJECTS if rejects else 0, outcome.text)
        expected = collections.Counter(bson.encode(one) for one in self.result_of(mode))
        self.assertEqual(collections.Counter(self.stored()) - expected, {}, "not expected")
        self.assertEqual(expected - collections.Counter(self.stored()), {}, "missing")
        self.assert_accounting(self.work, records=COUNT, rejectedByServer=rejects, undelivered=0)
        figures = support.run_record(self.work)["accounting"]
        if exact:
            half = COUNT // 2
            self.assertEqual((figures["inserted"], figures["changed"], figures["alreadyStored"]),
                             {"upsert": (half, half, 0), "merge": (half, half, 0),
                              "update": (0, half, 0),
                              "replace": (0, half, 0), "delete": (0, half, half)}[mode])
        self.assertTrue(support.run_record(self.work)["verification"]["ok"])
        return figures

    def test_killed_and_resumed(self):
        for mode in ("upsert", "merge", "update", "replace", "delete"):
            with self.subTest(mode):
                self.work = self.scratch / mode
                self.store_old()
                self.killed_load(batch=30, mode=mode, threads=2)
                self.killed_load("--resume", batch=8, mode=mode, threads=2)
                figures = self.assert_result(self.begin("--resume", mode=mode, threads=2).wait(),
                                             mode)
                self.assertGreater(figures["earlierRuns"]["records"], 0)

    def test_without_a_fault(self):
        self.assert_result(self.begin(mode="upsert").wait(), "upsert", exact=True)

    def test_lost_requests_and_replies(self):
        for mode in ("upsert", "delete"):
            with self.subTest(mode):
                self.proxy.on_batch(5, proxy.cut_reply(0))
                self.proxy.on_batch(9, proxy.cut_request(0))
                self.proxy.on_batch(14, proxy.cut_request(300))
                self.assert_result(self.begin(mode=mode).wait(), mode)
                self.assertEqual(self.proxy.unused(), [])
                self.work = self.scratch / "again"
                self.store_old()

    def change_once(self, change, **where):
        """Runs a load, one answer of which is changed."""
        self.proxy.on_batch(6, proxy.change_reply(lambda body: change(body) or body))
        outcome = self.begin(mode="upsert", **where).wait()
        self.assertEqual(self.proxy.unused(), [])
        return outcome

    def test_an_answer_that_does_not_add_up(self):
        for change in (lambda body: body.update(n=body["n"] - 1, nModified=0),
                       lambda body: body.update(nModified=body["n"] + 1),
                       lambda body: body.pop("n")):
            outcome = self.change_once(change)
            self.assertIn("trying again", outcome.err)
            self.assert_result(outcome, "upsert")
            self.work = self.scratch / f"work-{next(self._counter)}"

    def test_a_write_concern_that_is_not_satisfied(self):
        outcome = self.change_once(lambda body: body.update(
            writeConcernError={"code": 64, "errmsg": "waiting for replication timed out"}))
        self.assertIn("the write concern was not satisfied", outcome.err)
        self.assert_result(outcome, "upsert")

    def test_a_duplicate_is_sent_once_more(self):
        """As after two upserts of one document at the same time."""
        def refuse(body):
            body["n"] -= 1
            body["nModified"] = min(body["nModified"], body["n"])
            body["writeErrors"] = [{"index": 0, "code": 11000, "errmsg": "E11000 duplicate key"}]
        figures = self.assert_result(self.change_once(refuse, threads=1), "upsert")
        self.assertEqual((figures["rejectedByServer"], figures["retries"]), (0, 0))


class Sharded(Standalone, server="cluster"):
    pass
