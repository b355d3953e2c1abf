# SPDX-License-Identifier: Apache-2.0
"""Servers that crash, step down or hang during a load, and come back or are replaced by others. The
load completes without intervention, and stores each document of the source once.

The fault occurs at a batch of a known number where the loader goes through the proxy, and otherwise
once a number of documents is stored: during the load on any machine."""
import signal

import fault_case
import proxy
import resume_case
import support
from fault_case import ROUNDS

SOME = None                   # the number of documents found already stored depends on timing


class Survives(fault_case.ProxyCase):
    """Servers behind the proxy are killed before a batch is forwarded, or just after."""

    def assert_survives(self, again=0):
        outcome = self.begin().wait()
        self.assertEqual(self.proxy.unused(), [], "faults were not reached: " + outcome.text)
        return self.assert_nothing_lost(outcome, again)


class LoneServer(Survives):
    shape = "--standalone",

    def test_killed_before_a_batch_and_started_again(self):
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill_and_start_again("server")))
        self.assertGreater(self.assert_survives()["retries"], 0)

    def test_killed_several_times_just_after_a_batch_was_sent(self):
        for number in range(10, 70, max(60 // (2 + ROUNDS), 2)):
            self.proxy.on_batch(number, proxy.call_after(lambda: self.servers.kill_and_start_again("server")))
        self.assert_survives(again=SOME)

    def test_down_for_longer_than_the_retry_limit_the_load_ends_and_can_be_resumed(self):
        words = "--retry-timeout", 2, "--uri", self.through + "?serverSelectionTimeoutMS=1000"
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill("server")))
        self.begin(*words).wait().expect(support.EXIT_CLUSTER, "gave up", "--resume")
        self.servers.start_again()
        self.assert_nothing_lost(self.begin("--resume", *words).wait(), again=SOME)

    def test_ctrl_c_ends_the_retries_and_the_load_can_be_resumed(self):
        words = "--uri", self.through + "?serverSelectionTimeoutMS=1000"
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill("server")))
        running = self.begin(*words)
        self.wait_for_word(running, "trying again")
        running.interrupt("--resume")
        self.servers.start_again()
        self.assert_nothing_lost(self.begin("--resume", *words).wait(), again=SOME)


class Figures(fault_case.FaultCase):
    """After a crash a server's collection statistics are wrong; the shard table shows the counted
    documents."""

    def figures(self, name):
        """Loads two files, and kills this server in between. Returns the shard table: shard ->
        documents."""
        self.assertEqual(self.begin().wait().code, support.EXIT_REJECTS)
        (more,) = self.generate("B", 2000, "--seed", 88)
        self.servers.kill_and_start_again(name)
        self.wait_for(self.answers, "the servers")
        work = self.scratch / "more"
        outcome = self.shardload(
            "load", "--uri", self.uri, "-d", self.database_name, "-c", "t", "--work-dir", work,
            "--progress", "none", more)
        shards = support.run_record(work)["shards"]
        for shard in shards:
            self.assertIn(f"{shard['documents']:,}", outcome.text)
            self.assertIs(shard.get("exact", True), True)
        return {shard["shard"]: shard["documents"] for shard in shards}

    def answers(self):
        try:
            return self.database.t.find_one() is not None
        except support.pymongo.errors.PyMongoError:
            return False


class FiguresOfAServer(Figures):
    shape = "--standalone",

    def test_the_number_of_documents_is_right_after_a_crash(self):
        figures = self.figures("server")
        self.assertEqual(sum(figures.values()), len(self.stored()))


class FiguresOfShards(Figures):
    shape = "--shards", 2

    def test_the_numbers_of_documents_are_right_after_a_crash(self):
        figures = self.figures("s0-0")
        for name in ("s0", "s1"):
            with self.servers.member(f"{name}-0") as client:
                stored = len(list(client[self.database_name].t.find({}, {"_id": 1})))
            self.assertEqual(figures[name], stored, figures)


class DeadShard(fault_case.FaultCase):
    """One shard does not answer: plan, tune, reload and load say so before anything is created."""

    shape = "--shards", 2

    def test_a_new_collection_is_not_begun(self):
        self.servers.kill("s1-0")
        (path,) = self.generate("B", 500, "--seed", 89)
        uri = self.uri + "?serverSelectionTimeoutMS=1000"
        for command, *words in (("plan",), ("tune", "--work-dir", "tuning"), ("load", "--work-dir", "work"),
                                ("reload", "--suite", "mot", "--work-dir", "drill")):
            self.shardload(command, "--uri", uri, "-d", self.database_name, "-c", "t2", *words, path,
                           code=support.EXIT_CLUSTER, message="not every shard of the cluster answers")
        self.servers.start_again()
        self.assertEqual([name for name in self.database.list_collection_names() if "t2" in name], [])


class ReplicaSet(fault_case.FaultCase):
    """The driver connects to each member by its own address, without a proxy. So the batches are
    small, and the fault occurs once some of them are stored."""

    shape = "--shards", 0, "--replicas", 3
    rows = 4000

    def begin_and_wait(self, *more, threads=1):
        running = self.begin(*more, size=10, threads=threads)
        self.wait_for_documents(running, 500)
        return running

    def test_primary_steps_down(self):
        running = self.begin_and_wait()
        old = self.servers.primary_of("rs0", 3)
        self.servers.step_down(old)
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_primary_steps_down_while_threads_adapt(self):
        """With -j auto some workers are idle; the batches of the others are sent again."""
        running = self.begin_and_wait(threads="auto")
        old = self.servers.primary_of("rs0", 3)
        self.servers.step_down(old)
        outcome = running.wait()
        self.assert_nothing_lost(outcome, again=SOME)
        self.assertIn("adaptation", support.run_record(self.work))

    def test_primary_is_killed(self):
        running = self.begin_and_wait()
        old = self.servers.primary_of("rs0", 3)
        self.servers.kill(old)
        outcome = running.wait()
        self.assertNotEqual(self.servers.primary_of("rs0", 3), old)
        # Documents acknowledged by a majority must be stored without the killed server, too.
        self.assert_nothing_lost(outcome, again=SOME)
        self.servers.start_again()

    def test_primary_hangs_and_comes_back(self):
        """Its connections stay open; when it comes back, it rolls back the writes that it took
        before the others elected a primary."""
        running = self.begin_and_wait("--timeout", 2)
        old = self.servers.primary_of("rs0", 3)
        self.servers.signal(old, signal.SIGSTOP)
        try:
            self.wait_for_word(running, "trying again")
            self.assertNotEqual(self.servers.primary_of("rs0", 3), old)
        finally:
            self.servers.signal(old, signal.SIGCONT)
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_all_members_are_killed_and_started_again(self):
        running = self.begin_and_wait()
        for member in range(3):
            self.servers.kill(f"rs0-{member}")
        self.servers.start_again()
        self.assert_nothing_lost(running.wait(), again=SOME)


class ShardedCluster(Survives):
    shape = "--shards", 2, "--replicas", 3, "--routers", 2

    @classmethod
    def make_source(cls, folder):
        """Four blocks of 100 documents, two on each shard."""
        return resume_case.plain(folder, [resume_case.wide_text("a", 4)])

    def words(self, *more, **where):
        return super().words(*more, **{"size": 1, **where})

    # The router waits for an election; whether the loader sees an error depends on timing.

    def test_the_primaries_of_the_shards_step_down(self):
        old = self.primaries()
        self.proxy.on_batch(20, proxy.call_after(lambda: [self.servers.step_down(member) for member in old]))
        self.assert_survives(again=SOME)
        self.assert_new_primaries(old)

    def test_shards_that_hang_are_named(self):
        """The progress and `status` name the shard that has not answered for five seconds."""
        members = [f"{shard}-{member}" for shard in ("s0", "s1") for member in range(3)]
        self.proxy.on_batch(20, proxy.call(
            lambda: [self.servers.signal(member, signal.SIGSTOP) for member in members]))
        running = self.begin()
        try:
            self.wait_for_word(running, '"silent"')
            shown = self.shardload("status", self.work).text
        finally:
            for member in members:
                self.servers.signal(member, signal.SIGCONT)
        self.assertRegex(running.text(), r'"silent" : { "shard" : "s[01]", "seconds" : ')
        self.assertRegex(shown, r"no answer +from s[01] for \d")
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_the_primaries_of_the_shards_are_killed(self):
        old = self.primaries()
        self.proxy.on_batch(20, proxy.call_after(lambda: [self.servers.kill(member) for member in old]))
        self.assert_survives(again=SOME)
        self.assert_new_primaries(old)
        self.servers.start_again()

    def test_the_router_is_killed_and_started_again(self):
        for number in range(10, 310, max(300 // (1 + ROUNDS), 2)):
            self.proxy.on_batch(number, proxy.call_after(lambda: self.servers.kill_and_start_again("router")))
        self.assert_survives(again=SOME)

    def test_one_of_two_routers_is_killed_and_stays_down(self):
        second = f"{support.HOST}:{self.servers.port('router-1')}"
        running = self.begin("--rate-limit", 100, uri=f"{self.through[:-1]},{second}/")
        self.wait_for_documents(running, 30)
        self.servers.kill("router-1")
        self.assert_nothing_lost(running.wait(), again=SOME)
        self.servers.start_again()
