# SPDX-License-Identifier: Apache-2.0
"""A second Ctrl-C in a trial: its throw-away collection is gone for good. A load that has been told to
stop still has batches in hand, and an insert that comes behind the drop makes the collection again."""
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "faults")]
import proxy  # noqa: E402
import support  # noqa: E402

ROWS = 300000
BATCHES_BEFORE = 40     # that have gone by when a signal or a fault strikes
SETTLED = 1.0           # seconds in which whatever was under way has come in
TRIALS = {
    "tune": ["--try-threads", 8, "--try-batch-sizes", 100, "--search", "grid", "--repeats", 20,
             "--trial-bytes", "1GiB"],
    "reload": ["--threads", 8, "--batch-size", 100, "--sample", "90%", "--suite", "mot",
               "--progress", "none"],
}


def is_thrown_away(name):
    return (".tune." in name or ".drill." in name) and not name.endswith(".sources")


class SecondCtrlC:
    def setUp(self):
        super().setUp()
        host, port = self.uri.split("://")[1].split("/")[0].rsplit(":", 1)
        self.proxy = proxy.Proxy(int(port), is_thrown_away)
        self.addCleanup(self.proxy.close)
        self.through = f"mongodb://{host}:{self.proxy.port}/"
        (self.path,), _ = self.generate("B", ROWS)

    def started(self, command):
        """A trial through the proxy."""
        return self.start("shardload", command, "--uri", self.through, "-d", self.database_name, "-c",
                          "t", "--work-dir", f"work-{next(self._counter)}", *TRIALS[command],
                          self.path)

    def collections(self):
        time.sleep(SETTLED)
        return sorted(self.database.list_collection_names())

    def assert_nothing_left(self, running, what):
        outcome = running.wait(60)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, f"{what}: {outcome.text}")
        self.assertEqual(self.collections(), [], f"{what}: {outcome.text}")
        self.assertNotIn("is left", outcome.err)

    def test_while_eight_threads_send(self):
        """At any distance from the first: each thread has the rest of a MiB to send then."""
        for command in TRIALS:
            for gap in (0.0, 0.1, 0.3):
                with self.subTest(command=command, gap=gap):
                    before = self.proxy.batches
                    running = self.started(command)
                    self.wait_for(lambda: not running.running() or
                                  self.proxy.batches > before + BATCHES_BEFORE, "batches")
                    running.signal(signal.SIGINT)
                    time.sleep(gap)
                    running.signal(signal.SIGTERM)  # two of a kind may be taken for one
                    self.assert_nothing_left(running, f"{command}, {gap} s")

    def held_up(self, command, release):
        """A trial one of whose batches is on its way until `release` is set, or for a time, when both
        signals have come. Returns it and the batch's fault."""
        held = threading.Event()

        def hold():
            held.set()
            release.wait(60)

        action = self.proxy.on_batch(BATCHES_BEFORE, proxy.call(hold))
        running = self.started(command)
        self.wait_for(lambda: not running.running() or held.is_set(), "a batch that is held up")
        running.signal(signal.SIGINT)
        time.sleep(0.05)
        running.signal(signal.SIGTERM)
        return running, action

    def test_a_batch_that_comes_late_is_waited_for(self):
        for command in TRIALS:
            with self.subTest(command=command):
                release = threading.Event()
                running, action = self.held_up(command, release)
                time.sleep(0.2)
                sent = self.proxy.batches
                time.sleep(1.3)
                self.assertTrue(running.running(), running.text())
                release.set()
                self.assertTrue(action.arrived.wait(support.LIMIT))
                self.assert_nothing_left(running, command)
                self.assertEqual(self.proxy.batches, sent, "a batch was begun after the second signal")

    def test_a_batch_that_does_not_come_is_told_of(self):
        release = threading.Event()
        self.addCleanup(release.set)
        begun = time.monotonic()
        running, _ = self.held_up("tune", release)
        outcome = running.wait(60)
        self.assertLess(time.monotonic() - begun, 45)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertIn("is left: an insert that the server has not answered", outcome.err)
        self.assertRegex(outcome.err, r'db\.getSiblingDB\("\w+"\)\.getCollection\("t\.tune\.')

    def test_a_load_does_not_wait_for_anything(self):
        """A load that is no trial stops at once, whatever is on its way (docs/delivery.md)."""
        self.proxy.is_counted = "t".__eq__
        held, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def hold():
            held.set()
            release.wait(60)

        self.proxy.on_batch(5, proxy.call(hold))
        running = self.start("shardload", "load", "--uri", self.through, "-d", self.database_name,
                             "-c", "t", "--work-dir", "work", "--progress", "none", "-j", 8,
                             "--batch-size", 100, self.path)
        self.wait_for(lambda: not running.running() or held.is_set(), "a batch that is held up")
        running.signal(signal.SIGINT)
        time.sleep(0.1)
        begun = time.monotonic()
        running.signal(signal.SIGINT)
        outcome = running.wait(60)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertLess(time.monotonic() - begun, 3)


class OneServer(SecondCtrlC, support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"


class TwoShards(SecondCtrlC, support.ClusterCase):
    variable = "SHARDLOAD_TEST_URI"

    def setUp(self):
        super().setUp()
        self.client.admin.command("balancerStart")
        self.addCleanup(self.client.admin.command, "balancerStart")
        self.addCleanup(self.client.shardload.balancer.delete_many, {})


if __name__ == "__main__":
    import tap
    tap.main()
