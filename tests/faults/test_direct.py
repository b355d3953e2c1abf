# SPDX-License-Identifier: Apache-2.0
"""`--route direct` when something happens to the shards: what was sent to one that did not own it any
more is not believed to be there, and elections are waited for as on any other way."""
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import support  # noqa: E402

DIRECT = "--route", "direct"
SOME = None                   # how much was there already depends on the moment


class Halting(fault_case.FaultCase):
    """Loads that are stopped in the middle, so that there is time to move chunks."""

    rows = 36000              # in four blocks, two on each shard

    def words(self, *more, **where):
        return super().words(*DIRECT, *more, **{"size": 20, **where})

    def halted(self):
        """A load that has been stopped in the middle; it goes on when it is told to."""
        running = self.begin()
        self.wait_for_documents(running, 500)
        running.signal(signal.SIGSTOP)
        self.addCleanup(running.signal, signal.SIGCONT)
        return running

    def chunk(self, filled=True):
        """Bounds of the chunk that is being filled, its shard, and the other shard; or the same of a
        chunk of this load on the other shard, which is filled later."""
        namespace = f"{self.database_name}.t"
        entry = self.client.config.collections.find_one({"_id": namespace})
        first = self.database.t.find_one({}, {"_id": 1})["_id"]
        chunks = list(self.client.config.chunks.find({"uuid": entry["uuid"]}))
        chunk = next(chunk for chunk in chunks
                     if chunk["min"]["_id"] <= first < chunk["max"]["_id"])
        if not filled:
            low, high = first >> 40 << 40, (first >> 40) + 1 << 40
            chunk = next(one for one in chunks if one["shard"] != chunk["shard"] and
                         one["min"]["_id"] < high and one["max"]["_id"] > low)
        shards = [shard["_id"] for shard in self.client.config.shards.find()]
        other = next(shard for shard in shards if shard != chunk["shard"])
        return [chunk["min"], chunk["max"]], chunk["shard"], other

    def move(self, chunk):
        bounds, _, other = chunk
        self.client.admin.command("moveChunk", f"{self.database_name}.t", bounds=bounds, to=other)


class ChunksMove(Halting):
    def test_a_chunk_that_is_moved_is_noticed_and_resume_mends(self):
        running = self.halted()
        self.move(self.chunk())
        running.signal(signal.SIGCONT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("were moved to other shards", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.assert_balancer()
        # What went astray is what makes this necessary.
        inserted = support.run_record(self.work)["accounting"]["inserted"]
        self.assertLess(self.database.t.count_documents({}), inserted)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_chunk_that_is_moved_away_from_the_other_shard(self):
        running = self.halted()
        self.move(self.chunk(filled=False))
        running.signal(signal.SIGCONT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("were moved to other shards", outcome.err)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_the_other_way_mends_too(self):
        running = self.halted()
        self.move(self.chunk())
        running.signal(signal.SIGCONT)
        self.assertEqual(running.wait().code, support.EXIT_CLUSTER)
        self.assert_nothing_lost(self.begin("--resume", "--route", "mongos").wait(), again=SOME)

    def test_a_chunk_that_is_split_has_not_moved(self):
        running = self.halted()
        filled = self.database.t.find_one({}, {"_id": 1})["_id"]
        self.client.admin.command("split", f"{self.database_name}.t", middle={"_id": filled})
        running.signal(signal.SIGCONT)
        self.assert_nothing_lost(running.wait())

    def test_a_collection_that_is_dropped_is_noticed(self):
        running = self.halted()
        self.database.t.drop()
        running.signal(signal.SIGCONT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)

    def test_killed_and_resumed(self):
        running = self.halted()
        running.signal(signal.SIGKILL)
        running.wait()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class InTheMiddleOfAMove(Halting):
    """A migration hangs between the last document that it copies and its commit. What is sent to the
    shard meanwhile is lost, and the version of the chunk map does not say so yet."""

    shape = ("--shards", 2, "--mongod-option=--setParameter=enableTestCommands=1")

    def failpoint(self, member, name, mode):
        with self.servers.member(member) as client:
            return client.admin.command("configureFailPoint", name, mode=mode)

    def begin_move(self, hang, filled=True):
        """The load goes on, and has found out. Returns it, how to let the move go on as well, which
        hangs at that failpoint, and what has become of the move in the end."""
        running = self.halted()
        chunk = self.chunk(filled)
        member = self.servers.primary_of(chunk[1], 1)
        before = self.failpoint(member, hang, "alwaysOn")["count"]
        self.addCleanup(self.failpoint, member, hang, "off")
        outcome = []
        thread = threading.Thread(target=self.try_move, args=[chunk, outcome])
        thread.start()
        self.addCleanup(thread.join)
        with self.servers.member(member) as client:
            client.admin.command("waitForFailPoint", hang, timesEntered=before + 1,
                                 maxTimeMS=support.LIMIT * 1000)
        running.signal(signal.SIGCONT)
        self.wait_for_word(running, f"shard {chunk[1]} is moving chunks")

        def go_on():
            self.failpoint(member, hang, "off")
            thread.join()
            return outcome
        return running, go_on

    def sent(self):
        """The _ids of all documents that any shard stores, whether it owns them or not."""
        found = set()
        for shard in ("s0", "s1"):
            with self.servers.member(self.servers.primary_of(shard, 1)) as client:
                found |= {one["_id"] for one in client[self.database_name].t.find({}, {"_id": 1})}
        return found

    def try_move(self, chunk, outcome):
        try:
            self.move(chunk)
            outcome.append("moved")
        except support.pymongo.errors.PyMongoError as error:
            outcome.append(str(error))

    def test_nothing_is_believed_before_it_is_decided(self):
        self.assert_nothing_is_believed(filled=True)

    def test_nothing_is_believed_when_the_other_shard_gives_away(self):
        self.assert_nothing_is_believed(filled=False)

    def test_the_journal_does_not_grow_before_it_is_decided(self):
        """Even when all documents have been sent."""
        running, go_on = self.begin_move("moveChunkHangAtStep4")
        journal = (self.work / "journal").read_bytes()
        self.wait_for(lambda: not running.running() or len(self.sent()) == self.rows, "documents")
        reports = len(running.progress())
        self.wait_for(lambda: not running.running() or len(running.progress()) > reports + 2,
                      "further reports of progress")
        self.assertTrue(running.running(), running.text())
        self.assertEqual((self.work / "journal").read_bytes(), journal)
        self.assertEqual(go_on(), ["moved"])
        self.assertEqual(running.wait().code, support.EXIT_CLUSTER)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def assert_nothing_is_believed(self, filled):
        running, go_on = self.begin_move("moveChunkHangAtStep5", filled)
        self.assertEqual(go_on(), ["moved"])
        ended = running.wait()
        self.assertEqual(ended.code, support.EXIT_CLUSTER, ended.text)
        self.assertIn("were moved to other shards", ended.err)
        inserted = support.run_record(self.work)["accounting"]["inserted"]
        if filled:
            self.assertLess(self.database.t.count_documents({}), inserted, "nothing went astray")
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_move_that_fails_does_no_harm(self):
        running, go_on = self.begin_move("moveChunkHangAtStep4")
        for shard in ("s0", "s1"):
            member = self.servers.primary_of(shard, 1)
            self.failpoint(member, "failMigrationCommit", "alwaysOn")
            self.addCleanup(self.failpoint, member, "failMigrationCommit", "off")
        self.assertNotEqual(go_on(), ["moved"])
        self.assert_nothing_lost(running.wait())


class Elections(fault_case.FaultCase):
    shape = "--shards", 2, "--replicas", 3
    rows = 36000

    def begun(self):
        running = self.begin(*DIRECT, size=20)
        self.wait_for_documents(running, 500)
        return running

    def primaries(self):
        return [self.servers.primary_of(shard, 3) for shard in ("s0", "s1")]

    def test_the_primaries_are_killed(self):
        old = self.primaries()
        running = self.begun()
        for member in old:
            self.servers.kill(member)
        outcome = running.wait()
        self.assertFalse(set(self.primaries()) & set(old), "no other primary was elected")
        figures = self.assert_nothing_lost(outcome, again=SOME)
        self.assertGreater(figures["retries"], 0)
        self.servers.start_again()

    def test_the_primaries_step_down(self):
        old = self.primaries()
        running = self.begun()
        for member in old:
            self.servers.step_down(member)
        self.assert_nothing_lost(running.wait(), again=SOME)


if __name__ == "__main__":
    import tap
    tap.main()
