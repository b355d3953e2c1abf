# SPDX-License-Identifier: Apache-2.0
"""`--route direct` during chunk migrations and elections: documents sent to a shard that no longer
owned their chunk are not counted as delivered, and the load goes on after an election."""
import signal
import threading

import fault_case
import resume_case
import support

DIRECT = "--route", "direct", "--rate-limit", 100
ENOUGH = 30                   # documents stored when the fault occurs, of 100 in the first block
SOME = None                   # the number of documents found already stored depends on timing


class DirectCase(fault_case.FaultCase):
    @classmethod
    def make_source(cls, folder):
        """Four blocks of 100 documents, two on each shard."""
        return resume_case.plain(folder, [resume_case.wide_text("a", 4)])

    def words(self, *more, **where):
        return super().words(*DIRECT, *more, **{"size": 2, **where})


class StoppedLoads(DirectCase):
    """Loads that are stopped with SIGSTOP, so that a test can move chunks meanwhile."""

    def stopped_load(self):
        """Starts a load, and stops it with SIGSTOP after some documents are stored."""
        return self.stop_load(self.begin(), ENOUGH)

    def chunk(self, filled=True):
        """The chunk that is being filled; with filled=False a chunk of this load on the other shard,
        which is filled later. Returns (its bounds, its shard, the other shard)."""
        first = self.database.t.find_one({}, {"_id": 1})["_id"]
        chunks = self.chunks()
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


class ChunksMove(StoppedLoads):
    def test_a_chunk_that_is_moved_is_noticed_and_resume_completes_the_load(self):
        running = self.stopped_load()
        self.move(self.chunk())
        self.continue_load(running).expect(support.EXIT_CLUSTER, "were moved to other shards", "--resume")
        self.assert_balancer()
        # Documents were stored on the wrong shard, where the router does not find them.
        inserted = support.run_record(self.work)["accounting"]["inserted"]
        self.assertLess(self.database.t.count_documents({}), inserted)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_chunk_moved_away_from_the_other_shard_is_noticed(self):
        running = self.stopped_load()
        self.move(self.chunk(filled=False))
        self.continue_load(running).expect(support.EXIT_CLUSTER, "were moved to other shards")
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_resume_through_the_routers_completes_the_load(self):
        running = self.stopped_load()
        self.move(self.chunk())
        self.continue_load(running).expect(support.EXIT_CLUSTER)
        self.assert_nothing_lost(self.begin("--resume", "--route", "mongos").wait(), again=SOME)

    def test_a_split_chunk_does_not_disturb_the_load(self):
        running = self.stopped_load()
        filled = self.database.t.find_one({}, {"_id": 1})["_id"]
        self.client.admin.command("split", f"{self.database_name}.t", middle={"_id": filled})
        self.assert_nothing_lost(self.continue_load(running))

    def test_a_collection_that_is_dropped_is_noticed(self):
        running = self.stopped_load()
        self.database.t.drop()
        self.continue_load(running).expect(support.EXIT_CLUSTER)

    def test_killed_and_resumed(self):
        running = self.stopped_load()
        running.kill()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class InTheMiddleOfAMove(StoppedLoads):
    """A failpoint holds a migration after it has copied the last document and before its commit.
    Documents sent to the shard meanwhile are lost, and the version of the chunk map is still the old
    one."""

    shape = ("--shards", 2, "--mongod-option=--setParameter=enableTestCommands=1")

    def failpoint(self, member, name, mode):
        with self.servers.member(member) as client:
            return client.admin.command("configureFailPoint", name, mode=mode)

    def begin_move(self, hang, filled=True):
        """Starts a move that is held at the failpoint `hang`, and continues the load until it
        reports the move. Returns (the load, a function that releases the move and returns its
        outcome in a list)."""
        running = self.stopped_load()
        chunk = self.chunk(filled)
        member = self.servers.primary_of(chunk[1], 1)
        before = self.failpoint(member, hang, "alwaysOn")["count"]
        outcome = []
        thread = threading.Thread(target=self.try_move, args=[chunk, outcome])
        thread.start()
        self.addCleanup(thread.join)        # after the failpoint is off: the last cleanup runs first
        self.addCleanup(self.failpoint, member, hang, "off")
        with self.servers.member(member) as client:
            client.admin.command("waitForFailPoint", hang, timesEntered=before + 1,
                                 maxTimeMS=support.LIMIT * 1000)
        running.signal(signal.SIGCONT)
        self.wait_for_word(running, f"shard {chunk[1]} is moving chunks")

        def release():
            self.failpoint(member, hang, "off")
            thread.join()
            return outcome
        return running, release

    def try_move(self, chunk, outcome):
        try:
            self.move(chunk)
            outcome.append("moved")
        except support.pymongo.errors.PyMongoError as error:
            outcome.append(str(error))

    def test_blocks_sent_during_a_move_are_not_counted_as_delivered(self):
        self.assert_move_noticed(filled=True)

    def test_a_move_from_the_other_shard_is_noticed(self):
        self.assert_move_noticed(filled=False)

    def test_no_block_is_journaled_while_a_move_is_undecided(self):
        """The load sends all documents, waits for the move in vain, and ends to be resumed."""
        running, release = self.begin_move("moveChunkHangAtStep4")
        journal = (self.work / "journal").read_bytes()
        running.wait().expect(support.EXIT_CLUSTER, "could not be confirmed")
        inserted = support.run_record(self.work)["accounting"]["inserted"]
        self.assertEqual(inserted, sum(len(source.documents) for source in self.expected))
        self.assertEqual((self.work / "journal").read_bytes(), journal)
        self.assertEqual(release(), ["moved"])
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def assert_move_noticed(self, filled):
        running, release = self.begin_move("moveChunkHangAtStep5", filled)
        self.assertEqual(release(), ["moved"])
        running.wait().expect(support.EXIT_CLUSTER, "were moved to other shards")
        inserted = support.run_record(self.work)["accounting"]["inserted"]
        if filled:
            self.assertLess(self.database.t.count_documents({}), inserted, "no document was lost")
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_move_that_fails_does_not_disturb_the_load(self):
        running, release = self.begin_move("moveChunkHangAtStep4")
        for shard in ("s0", "s1"):
            member = self.servers.primary_of(shard, 1)
            self.failpoint(member, "failMigrationCommit", "alwaysOn")
            self.addCleanup(self.failpoint, member, "failMigrationCommit", "off")
        self.assertNotEqual(release(), ["moved"])
        self.assert_nothing_lost(running.wait())


class Elections(DirectCase):
    shape = "--shards", 2, "--replicas", 3

    def begin_and_wait(self):
        running = self.begin()
        self.wait_for_documents(running, ENOUGH)
        return running

    def test_the_primaries_are_killed(self):
        old = self.primaries()
        running = self.begin_and_wait()
        for member in old:
            self.servers.kill(member)
        outcome = running.wait()
        self.assert_new_primaries(old)
        figures = self.assert_nothing_lost(outcome, again=SOME)
        self.assertGreater(figures["retries"], 0)
        self.servers.start_again()

    def test_the_primaries_step_down(self):
        old = self.primaries()
        running = self.begin_and_wait()
        for member in old:
            self.servers.step_down(member)
        self.assert_nothing_lost(running.wait(), again=SOME)
