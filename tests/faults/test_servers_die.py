# SPDX-License-Identifier: Apache-2.0
"""Servers that die while they are loaded into, and come back, or leave the work to others. The load
goes on by itself, and in the end the source is there, once, with nobody's help.

The moment of the fault is a batch, by its number, where a proxy can count them; and else a number
of documents that have arrived. So it is in the middle on any machine."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from fault_case import ROUNDS  # noqa: E402

SOME = None                   # how much had arrived of what was sent again depends on the moment


class Survives(fault_case.ProxyCase):
    """What is behind the proxy dies in front of a batch, or with it in its hands."""

    def assert_survives(self, again=0):
        outcome = self.begin().wait()
        self.assertEqual(self.proxy.unused(), [], "a fault did not strike: " + outcome.text)
        return self.assert_nothing_lost(outcome, again)


class LoneServer(Survives):
    shape = "--standalone",

    def test_killed_before_a_batch_and_started_again(self):
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill_and_start_again("server")))
        self.assertGreater(self.assert_survives()["retries"], 0)

    def test_killed_with_a_batch_in_its_hands_again_and_again(self):
        for number in range(10, 70, max(60 // (2 + ROUNDS), 2)):
            self.proxy.on_batch(number, proxy.call_after(
                lambda: self.servers.kill_and_start_again("server")))
        self.assert_survives(again=SOME)

    def test_gone_for_longer_than_is_tried_again(self):
        """The load gives up, says how to go on, and does."""
        words = "--retry-timeout", 2, "--uri", self.through + "?serverSelectionTimeoutMS=1000"
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill("server")))
        outcome = self.begin(*words).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("gave up", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.servers.start_again()
        self.assert_nothing_lost(self.begin("--resume", *words).wait(), again=SOME)

    def test_interrupted_while_nothing_can_be_delivered(self):
        """Ctrl-C ends the retries: it was the user who stopped it, and he can go on."""
        words = "--uri", self.through + "?serverSelectionTimeoutMS=1000"
        self.proxy.on_batch(20, proxy.call(lambda: self.servers.kill("server")))
        running = self.begin(*words)
        self.wait_for_word(running, "trying again")
        running.signal(signal.SIGINT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertIn("--resume", outcome.err)
        self.servers.start_again()
        self.assert_nothing_lost(self.begin("--resume", *words).wait(), again=SOME)


class Figures(fault_case.FaultCase):
    """A server that was killed has wrong figures of how many documents it holds: the shard table
    shows how many there are."""

    def figures(self, name):
        """Loads two files, with a crash in between; returns what the shard table shows of each."""
        self.assertEqual(self.begin().wait().code, support.EXIT_REJECTS)
        (more,), _ = self.generate("B", 2000, "--seed", 88)
        self.servers.kill_and_start_again(name)
        self.wait_for(self.answers, "the servers")
        work = self.scratch / "more"
        outcome = self.shardload(
            "load", "--uri", self.uri, "-d", self.database_name, "-c", "t", "--work-dir", work,
            "--progress", "none", more)
        shards = support.run_record(work)["shards"]
        for shard in shards:
            self.assertIn(f"{shard['documents']:,}", outcome.err)
            self.assertIs(shard.get("exact", True), True)
        return {shard["shard"]: shard["documents"] for shard in shards}

    def answers(self):
        try:
            return self.database.t.find_one() is not None
        except support.pymongo.errors.PyMongoError:
            return False


class FiguresOfAServer(Figures):
    shape = "--standalone",

    def test_after_a_crash(self):
        shown = self.figures("server")
        self.assertEqual(sum(shown.values()), len(self.stored()))


class FiguresOfShards(Figures):
    shape = "--shards", 2

    def test_after_a_crash(self):
        shown = self.figures("s0-0")
        for name in ("s0", "s1"):
            with self.servers.member(f"{name}-0") as client:
                there = len(list(client[self.database_name].t.find({}, {"_id": 1})))
            self.assertEqual(shown[name], there, shown)


class ReplicaSet(fault_case.FaultCase):
    """Drivers speak to the members directly, each by its own address: no proxy can stand there. So
    the batches are small, and the fault comes when some of them have arrived."""

    shape = "--shards", 0, "--replicas", 3

    def begun(self, *more, threads=1):
        running = self.begin(*more, size=10, threads=threads)
        self.wait_for_documents(running, 500)
        return running

    def test_primary_steps_down(self):
        running = self.begun()
        old = self.servers.primary_of("rs0", 3)
        self.servers.step_down(old)
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_primary_steps_down_while_threads_adapt(self):
        """The workers that wait are none of those who try again, and nothing is lost with them."""
        running = self.begun(threads="auto")
        old = self.servers.primary_of("rs0", 3)
        self.servers.step_down(old)
        outcome = running.wait()
        self.assert_nothing_lost(outcome, again=SOME)
        self.assertIn("adaptation", support.run_record(self.work))

    def test_primary_is_killed(self):
        running = self.begun()
        old = self.servers.primary_of("rs0", 3)
        self.servers.kill(old)
        outcome = running.wait()
        self.assertNotEqual(self.servers.primary_of("rs0", 3), old)
        # What was acknowledged by a majority must be there without the dead one as well.
        self.assert_nothing_lost(outcome, again=SOME)
        self.servers.start_again()

    def test_primary_freezes_and_thaws(self):
        """It neither answers nor breaks its connections; and when it is back, it has to undo what
        it had taken while the others had elected another one."""
        running = self.begun("--timeout", 2)
        old = self.servers.primary_of("rs0", 3)
        self.servers.signal(old, signal.SIGSTOP)
        try:
            self.wait_for_word(running, "trying again")
            self.assertNotEqual(self.servers.primary_of("rs0", 3), old)
        finally:
            self.servers.signal(old, signal.SIGCONT)
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_all_members_are_killed_and_started_again(self):
        running = self.begun()
        for member in range(3):
            self.servers.kill(f"rs0-{member}")
        self.servers.start_again()
        self.assert_nothing_lost(running.wait(), again=SOME)


class ShardedCluster(Survives):
    shape = "--shards", 2, "--replicas", 3
    rows = 36000              # in four blocks, two on each shard

    # Whether the loader notices depends on the moment: servers that route wait for an election.

    def primaries(self):
        return [self.servers.primary_of(shard, 3) for shard in ("s0", "s1")]

    def assert_others_than(self, old):
        self.assertFalse(set(self.primaries()) & set(old), "no other primary was elected")

    def test_the_primaries_of_the_shards_step_down(self):
        old = self.primaries()
        self.proxy.on_batch(20, proxy.call_after(
            lambda: [self.servers.step_down(member) for member in old]))
        self.assert_survives(again=SOME)
        self.assert_others_than(old)

    def test_the_primaries_of_the_shards_are_killed(self):
        old = self.primaries()
        self.proxy.on_batch(20, proxy.call_after(
            lambda: [self.servers.kill(member) for member in old]))
        self.assert_survives(again=SOME)
        self.assert_others_than(old)
        self.servers.start_again()

    def test_the_router_is_killed_and_started_again(self):
        for number in range(10, 310, max(300 // (1 + ROUNDS), 2)):
            self.proxy.on_batch(number, proxy.call_after(
                lambda: self.servers.kill_and_start_again("router")))
        self.assert_survives(again=SOME)

    def test_one_of_two_routers_dies_for_good(self):
        port = support.free_port()
        address = f"{support.HOST}:{port}"
        second = self.start("shardload-router", "--listen", address, "--config-server",
                            f"cfg/{support.HOST}:{self.servers.port('cfg-0')}")
        self.wait_for_word(second, "listening on")
        running = self.begin(uri=f"{self.through[:-1]},{address}/", size=20)
        self.wait_for_documents(running, 500)
        second.stop()
        self.assert_nothing_lost(running.wait(), again=SOME)


if __name__ == "__main__":
    import tap
    tap.main()
