# SPDX-License-Identifier: Apache-2.0
"""A second Ctrl-C during a trial removes its temporary collection for good. Batches sent before the
signal may still arrive, and an insert after the drop would create the collection again."""
import random
import signal
import socket
import threading
import time

import fault_case
import proxy
import support

ROWS = 300000
BATCHES_BEFORE = 40     # number of batches before the signal or the fault
TCP_CLOSE = 7           # state of a connection that the server has closed, too
TRIALS = {
    "tune": ["--try-threads", 8, "--try-batch-sizes", 100, "--search", "grid", "--repeats", 20,
             "--trial-bytes", "1GiB"],
    "reload": ["--threads", 8, "--batch-size", 100, "--sample", "90%", "--suite", "mot",
               "--progress", "none"],
}


def is_thrown_away(name):
    return (".tune." in name or ".drill." in name) and not name.endswith(".sources")


def is_closed_by_the_server(link):
    """The server closes the connection after the last request on it."""
    return link.server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE


class Down(proxy.Proxy):
    """After the first batch it replies to `drop` as a router does while a shard is down."""

    def action_for(self, message):
        action = super().action_for(message)
        if self.batches and proxy.command_of(message)[0] == "drop":
            return proxy.answer(lambda _: {"ok": 0.0, "code": 6, "errmsg": "no primary"})
        return action


class SecondCtrlC:
    def setUp(self):
        super().setUp()
        self.proxy = proxy.Proxy(support.port_of(self.uri), is_thrown_away)
        self.addCleanup(self.proxy.close)
        self.through = self.proxy_uri(self.proxy)
        (self.path,) = self.generate("B", ROWS)

    def start_trial(self, command):
        """Starts a trial through the proxy."""
        return self.start("shardload", command, "--uri", self.through, "-d", self.database_name, "-c",
                          "t", "--work-dir", f"work-{next(self._counter)}", *TRIALS[command],
                          self.path)

    def is_working(self, server):
        """Is an operation running in the test's database?"""
        names = {"$regex": f"^{self.database_name}[.]"}
        return bool(server.admin.command("currentOp", ns=names)["inprog"])

    def collections(self):
        """The collections, once no batch of the ended program is on its way any more."""
        self.wait_for(lambda: all(map(is_closed_by_the_server, self.proxy.links)),
                      "the end of the connections")
        self.wait_for(lambda: not any(map(self.is_working, self.servers())),
                      "the end of the operations")
        return super().collections()

    def assert_nothing_left(self, running, description):
        outcome = running.wait(60)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, f"{description}: {outcome.text}")
        self.assertEqual(self.collections(), [], f"{description}: {outcome.text}")
        self.assertNotIn("is left", outcome.text)

    def test_nothing_is_left_when_eight_threads_are_sending(self):
        """At different times after the first signal, while each thread sends the rest of its MiB."""
        for command in TRIALS:
            for gap in (0.0, 0.1, 0.3):
                with self.subTest(command=command, gap=gap):
                    before = self.proxy.batches
                    running = self.start_trial(command)
                    self.wait_for(lambda: not running.running() or
                                  self.proxy.batches > before + BATCHES_BEFORE, "batches")
                    running.signal(signal.SIGINT)
                    time.sleep(gap)
                    running.signal(signal.SIGTERM)  # two SIGINTs may be merged into one
                    self.assert_nothing_left(running, f"{command}, {gap} s")

    def hold_batch(self, number, release):
        """Holds this batch until `release` is set, for 60 s at most. Returns (an event that is set
        once the batch is held, its action)."""
        held = threading.Event()

        def hold():
            held.set()
            release.wait(60)
        return held, self.proxy.on_batch(number, proxy.call(hold))

    def stop_trial_with_held_batch(self, command, release):
        """Starts a trial, and sends it both signals while one of its batches is held. Returns
        (the trial, the batch's action)."""
        held, action = self.hold_batch(BATCHES_BEFORE, release)
        running = self.start_trial(command)
        self.wait_for(lambda: not running.running() or held.is_set(), "a held batch")
        running.signal(signal.SIGINT)
        time.sleep(0.05)
        running.signal(signal.SIGTERM)
        return running, action

    def test_a_late_batch_is_waited_for(self):
        for command in TRIALS:
            with self.subTest(command=command):
                release = threading.Event()
                running, action = self.stop_trial_with_held_batch(command, release)
                time.sleep(0.2)
                sent = self.proxy.batches
                time.sleep(1.3)
                self.assertTrue(running.running(), running.text())
                release.set()
                self.assertTrue(action.arrived.wait(support.LIMIT))
                self.assert_nothing_left(running, command)
                self.assertEqual(self.proxy.batches, sent, "a batch was sent after the second signal")

    def test_a_batch_without_a_reply_is_reported(self):
        release = threading.Event()
        self.addCleanup(release.set)
        running, _ = self.stop_trial_with_held_batch("tune", release)
        outcome = running.wait(45).expect(support.EXIT_INTERRUPTED,
                                          "is left: an insert that the server has not answered")
        self.assertRegex(outcome.err, r"db\.getSiblingDB\('\w+'\)\.getCollection\('t\.tune\.")

    def test_a_drop_that_cannot_reach_its_shard_is_not_repeated_for_ever(self):
        """Without a second signal the drop is repeated for the time of --retry-timeout (300 s)."""
        for command in TRIALS:
            with self.subTest(command=command):
                down = Down(support.port_of(self.uri), is_thrown_away)
                self.addCleanup(down.close)
                self.through = self.proxy_uri(down)
                running = self.start_trial(command)
                self.wait_for(lambda: not running.running() or down.batches > 0, "a batch")
                running.signal(signal.SIGINT)
                time.sleep(0.5)
                running.signal(signal.SIGTERM)
                outcome = running.wait(60).expect(support.EXIT_INTERRUPTED, "is left", "no primary")
                self.assertRegex(outcome.err, r"db\.getSiblingDB\('\w+'\)\.getCollection\('t\.")

    def test_a_second_ctrl_c_ends_a_load_while_a_batch_has_no_reply(self):
        """A load that is not a trial does not wait for its batches (docs/resume.md)."""
        self.proxy.is_counted = "t".__eq__
        release = threading.Event()
        self.addCleanup(release.set)
        held, _ = self.hold_batch(5, release)
        running = self.start("shardload", "load", "--uri", self.through, "-d", self.database_name,
                             "-c", "t", "--work-dir", "work", "--progress", "none", "-j", 8,
                             "--batch-size", 100, self.path)
        self.wait_for(lambda: not running.running() or held.is_set(), "a held batch")
        running.signal(signal.SIGINT)
        time.sleep(0.1)
        begun = time.monotonic()
        running.interrupt()
        # A trial would wait for 5 s.
        self.assertLess(time.monotonic() - begun, 4)


class OneServer(SecondCtrlC, support.ClusterCase, server="mongod"):
    def servers(self):
        return [self.client]


class TwoShards(SecondCtrlC, support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.clear_balancer()
        self.addCleanup(self.clear_balancer)
        self.shards = self.shard_clients()

    def servers(self):
        return self.shards.values()

    def test_killed_at_any_moment(self):
        """`forget` removes what is left: also the registry, and the balancer's mark."""
        moments = random.Random(7)
        for command in TRIALS:
            for number in range(4 * fault_case.ROUNDS):
                running = self.start_trial(command)
                time.sleep(moments.uniform(0, 4))
                running.signal(signal.SIGKILL)
                running.wait(60)
                self.wait_for(lambda: not any(map(self.is_working, self.servers())), "the end of the operations")
                self.shardload("forget", "--uri", self.uri, "-d", self.database_name, "-c", "t")
                self.assertEqual(self.collections(), [], f"{command}, kill {number}")
                self.assertEqual(self.client.admin.command("balancerStatus")["mode"], "full")
