# SPDX-License-Identifier: Apache-2.0
"""Loads of documents with an _id of their own that are killed and resumed, and whose servers are
killed: every record is stored once, and nothing else is. Two records with the same _id remain one
document and one reject."""
import collections
import gzip
import signal

import fault_case
import own_ids_making as making
import proxy
import resume_case
import support

COUNT = 6000
SOME = None


class OwnIds(resume_case.ResumeCase):
    packed = False
    batch_size = fault_case.BATCH

    @classmethod
    def make_source(cls, folder):
        cls.made = making.documents(COUNT, pad=900)    # six blocks
        data = making.dump(cls.made)
        path = folder / ("a.bson.gz" if cls.packed else "a.bson")
        path.write_bytes(gzip.compress(data, 1) if cls.packed else data)
        return path, []

    def assert_content(self, expected=None):
        found = collections.Counter(making.found(self.stored(), self.made))
        wanted = collections.Counter(making.as_stored(one) for one in self.made)
        self.assertEqual(len(found - wanted), 0, "documents that are not expected")
        self.assertEqual(len(wanted - found), 0, "documents are missing")

    def assert_nothing_lost(self, outcome, again=0, expected=None):
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        self.assertNotIn("Sanitizer", outcome.text)
        self.assert_content()
        self.assert_accounting(self.work, records=COUNT, rejectedByParser=0, rejectedByServer=0, undelivered=0)
        figures = support.run_record(self.work)["accounting"]
        total = support.run_record(self.work)["verification"]
        self.assertEqual((total["documentsBefore"], total["documentsAfter"], total["ok"]), (0, COUNT, True))
        if again is not SOME:
            self.assertEqual(figures["alreadyStored"], again, figures)
        self.assert_balancer()
        return figures

    def kill_at(self, batch, *more, **where):
        outcome = self.load_with_fault(lambda running: running.signal(signal.SIGKILL), *more, batch=batch, **where)
        self.assertNotIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS), outcome.text)
        self.proxy.clear_faults()


class Standalone(OwnIds, server="mongod"):
    def test_killed_several_times_and_resumed(self):
        for number, batch in enumerate((7, 15, 10, 12)):
            self.kill_at(batch, *(["--resume"] if number else []), threads=2)
        figures = self.assert_nothing_lost(self.begin("--resume", threads=2).wait(), again=SOME)
        self.assertGreater(figures["alreadyStored"], 0)

    def test_resumed_without_the_no_verify_of_the_first_run(self):
        """The stored documents of the first run would be said to be missing."""
        self.load_killed_between_inserts("--no-verify")
        self.resume().expect(support.EXIT_OK, "not verified: the first run of this load has not counted")
        self.assert_content()

    def test_a_lost_reply_is_no_duplicate(self):
        self.proxy.on_batch(20, proxy.cut_reply(0))
        figures = self.assert_nothing_lost(self.begin().wait(), again=SOME)
        self.assertGreater(figures["alreadyStored"], 0)

    def test_duplicates_in_a_batch_whose_reply_is_lost(self):
        """The batch is sent again; of two equal records one counts as stored, the other is a
        reject, as without the fault."""
        twins = self.made[:50]
        source = self.file("twins.bson", making.dump([*twins, *twins]))
        self.proxy.on_batch(1, proxy.cut_reply(0))
        self.begin(source=source, size=1000).wait().expect(support.EXIT_REJECTS)
        with_id = sum("_id" in one for one in twins)
        self.assert_accounting(self.work, records=100, rejectedByServer=with_id, identicalDuplicates=with_id)
        self.assertEqual(self.database.t.count_documents({}), 100 - with_id)

    def test_a_document_that_is_changed_between_the_runs_is_noticed(self):
        """It was inserted by the run that was killed: the count shows that another program has
        changed it."""
        self.kill_at(25)
        stored = self.database.t.find_one({"_id": {"$in": [one["_id"] for one in self.made[:2000] if "_id" in one]}})
        self.database.t.update_one({"_id": stored["_id"]}, {"$set": {"text": "changed"}})
        outcome = self.begin("--resume").wait()
        figures = support.run_record(self.work)["accounting"]
        if figures["rejectedByServer"] == 0:    # its block was completed before the kill
            self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
            return
        self.assertIn("another document has this _id", support.reject_rows(self.work)[-1]["reason"])
        outcome.expect(support.EXIT_VERIFICATION, "1 document is too many")
        self.begin("--resume", "--allow-other-writers").wait().expect(support.EXIT_REJECTS)

    def test_deleted_between_the_runs_of_an_upsert(self):
        """Also if some records have the same _id."""
        twins = [one for one in self.made if "_id" in one]
        source = self.file("twins.bson", making.dump([*twins, *twins[1000:1100]]))
        self.load_killed_between_inserts("--mode", "upsert", batch=25, source=source)
        self.assertGreater(self.database.t.delete_many({"n": {"$lt": 90}}).deleted_count, 50)
        outcome = self.resume("--mode", "upsert", source=source)
        outcome.expect(support.EXIT_VERIFICATION, "documents are missing")

    def delete_of_the_first_block(self):
        """Documents of a block that is in the journal."""
        self.assertEqual(self.database.t.delete_many({"n": {"$lt": 50}}).deleted_count, 50)

    def test_deleted_between_the_runs(self):
        """They do not hide behind the documents of the killed run that are not in the journal."""
        self.load_killed_between_inserts(batch=25)
        self.delete_of_the_first_block()
        for _ in range(2):
            outcome = self.resume()
            outcome.expect(support.EXIT_VERIFICATION)
            self.assertIn("50 documents are missing", outcome.err)
            self.assertGreater(support.run_record(self.work)["accounting"]["alreadyStored"], 50)

    def test_deleted_from_a_collection_with_other_documents(self):
        """The documents found stored may have been stored before the load."""
        self.database.t.insert_one({"_id": "other"})
        self.load_killed_between_inserts(batch=25)
        self.delete_of_the_first_block()
        outcome = self.resume().expect(support.EXIT_OK)
        self.assertIn("or 50 documents are missing: shardload verify --content", outcome.err)

    def test_equal_ids_of_different_types_are_not_missing(self):
        twins = [{"_id": kind(n), "n": n, "pad": "x" * 900} for kind in (int, float) for n in range(4000)]
        source = self.file("equal.bson", making.dump(twins))
        self.load_killed_between_inserts("--mode", "upsert", batch=25, source=source)
        self.resume("--mode", "upsert", source=source).expect(support.EXIT_OK)

    def test_ids_that_a_collation_calls_equal_are_not_missing(self):
        self.database.create_collection("t", collation={"locale": "en", "strength": 2})
        twins = [{"_id": f"{letter}{n}", "n": n, "pad": "x" * 900} for letter in "aA" for n in range(4000)]
        source = self.file("letters.bson", making.dump(twins))
        self.load_killed_between_inserts("--mode", "upsert", batch=25, source=source)
        outcome = self.resume("--mode", "upsert", source=source)
        self.assertIn("compares texts by its collation (locale en)", outcome.err)
        self.assertNotIn("are missing", outcome.err)

    def test_records_that_repeat_are_not_missing(self):
        twins = [one for one in self.made if "_id" in one]
        source = self.file("twins.bson", making.dump([*twins, *twins]))
        self.load_killed_between_inserts(batch=25, source=source)
        outcome = self.resume(source=source).expect(support.EXIT_OK)
        self.assertIn(f"{len(twins):,} of the documents that were already stored are identical", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), len(twins))


class Packed(Standalone):
    packed = True


class Sharded(OwnIds):
    def test_killed_several_times_and_resumed(self):
        for number, batch in enumerate((7, 15, 10)):
            self.kill_at(batch, *(["--resume"] if number else []), threads=2)
        self.assert_nothing_lost(self.begin("--resume", threads=2).wait(), again=SOME)

    def test_sharded_by_another_key(self):
        words = "--shard-key", '{"n": "hashed"}'
        self.kill_at(15, *words)
        self.assert_nothing_lost(self.begin("--resume", *words).wait(), again=SOME)


class ServerDies(OwnIds):
    shape = "--standalone",

    def test_killed_just_after_batches_were_sent(self):
        for number in (10, 30):
            self.proxy.on_batch(number, proxy.call_after(lambda: self.servers.kill_and_start_again("server")))
        self.assert_nothing_lost(self.begin().wait(), again=SOME)
        self.assertEqual(self.proxy.unused(), [])
