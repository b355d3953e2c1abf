# SPDX-License-Identifier: Apache-2.0
"""Servers that are connected and say nothing. Every command has a deadline: those that are answered
at once by --timeout, and those that may take long by the server's silence on other connections."""
import os
import signal
import sys
import threading

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import proxy  # noqa: E402
import support  # noqa: E402
from support import HEADER, ROW  # noqa: E402

ROWS = 2000
PATIENCE = "--timeout", 2
LIMIT = 300     # nothing here waits for as long as this; a load that hangs does


class Freezing(proxy.Proxy):
    """From the first command of this name on, the server hangs: its connections stay open, new ones
    are accepted, and nothing is answered, greetings included."""

    def __init__(self, target, name):
        self.name, self.frozen, self.thaw = name, threading.Event(), threading.Event()
        super().__init__(target)
        self.change_request = self.look

    def look(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.frozen.set()
        if self.frozen.is_set():
            self.thaw.wait()
        return message

    def close(self):
        self.thaw.set()
        super().close()


class Deaf(proxy.Proxy):
    """Commands of this name are never answered; all else is, greetings included."""

    def __init__(self, target, name):
        self.name, self.struck = name, 0
        super().__init__(target)

    def action_for(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.struck += 1
            return proxy.lose_request()
        return super().action_for(message)


class Slow(proxy.Proxy):
    """Commands of this name are answered only after the client has made so many connections more."""

    def __init__(self, target, name, connections=3):
        self.name, self.more, self.held = name, connections, 0
        super().__init__(target)

    def action_for(self, message):
        if proxy.command_of(message)[0] != self.name:
            return super().action_for(message)
        self.held += 1
        self.until, self.enough = len(self.links) + self.more, threading.Event()
        return proxy.delay_reply(self.enough)

    def take(self, listener):
        class Watched:
            @staticmethod
            def accept():
                if self.held and len(self.links) >= self.until:
                    self.enough.set()
                return listener.accept()
        super().take(Watched)


class SilentCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("year.txt", HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, ROWS + 1)))
        self.server = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        if self.sharded:
            self.client.shardload.balancer.delete_many({})
            self.client.admin.command("balancerStart")
            self.addCleanup(self.client.admin.command, "balancerStart")
            self.addCleanup(self.client.shardload.balancer.delete_many, {})

    def through(self, server, collection="t"):
        self.addCleanup(server.close)
        return ["--uri", f"mongodb://{support.HOST}:{server.port}/?serverSelectionTimeoutMS=1500", "-d", self.database_name, "-c",
                collection, *PATIENCE]

    def begin(self, kind, name, command="load", *words):
        """A command through a server of this kind. Returns what is to be waited for."""
        server = kind(self.server, name)
        collection = f"t{next(self._counter)}"
        if command == "load":
            words = ("--work-dir", collection, "--progress", "none", "--retry-timeout", 3, *words)
        return server, self.start("shardload", command, *self.through(server, collection), *words,
                                  self.path)

    def assert_all_give_up(self, begun):
        for name, server, running in begun:
            outcome = running.wait(LIMIT)
            self.assertEqual(outcome.code, support.EXIT_CLUSTER, f"{name}: {outcome.text}")
            self.assertNotIn("Sanitizer", outcome.err)
            struck = server.frozen.is_set() if isinstance(server, Freezing) else server.struck
            self.assertTrue(struck, f"{name} was never sent")

    def assert_it_waits(self, name, *words):
        server = Slow(self.server, name)
        outcome = self.shardload("load", *self.through(server), "--work-dir", "work", "--progress",
                                 "none", *words, self.path, limit=LIMIT)
        self.assertGreater(server.held, 0)
        self.assertEqual(self.database.t.count_documents({}), ROWS, outcome.text)


class Standalone(SilentCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"
    sharded = False

    def content(self, message, server):
        """A server that hangs when the documents of `t` are read."""
        name, value = proxy.command_of(message)
        if name == "find" and proxy.collection_of(value) == "t":
            server.frozen.set()
        return Freezing.look(server, message)

    def test_all_that_meets_a_server_that_hangs(self):
        """All at once, since each of them waits for nearly all of its time."""
        words = "--index", '{"v": 1}'
        self.load(self.path)
        server = Freezing(self.server, "no such command")
        server.change_request = lambda message: self.content(message, server)
        begun = [("verify --content", server, self.start(
            "shardload", "verify", "--content", *self.through(server), self.path))]
        begun += [(name, *self.begin(Freezing, name, "load", *words, *more)) for name, *more in (
            ("buildInfo",), ("listCollections",), ("create",), ("findAndModify",), ("insert",),
            ("createIndexes",), ("aggregate",), ("drop", "--drop"))]
        begun += [(name, *self.begin(Freezing, name, command)) for command, name in (
            ("plan", "listCollections"), ("verify", "find"))]
        self.assert_all_give_up(begun)

    def test_all_whose_commands_are_lost(self):
        begun = [(name, *self.begin(Deaf, name)) for name in (
            "buildInfo", "listCollections", "create", "findAndModify", "find", "insert")]
        begun += [(command, *self.begin(Deaf, "find", command)) for command in ("plan", "verify")]
        self.assert_all_give_up(begun)
        told = {name: running.text() for name, _, running in begun}
        self.assertIn("has not answered for 2 s (--timeout)", told["listCollections"])
        self.assertIn("listCollections on database", told["listCollections"])

    def query(self, server, code):
        suite = self.file("suite.yaml", "name: s\nqueries:\n  - name: q\n    pipeline: |\n"
                                        "      [{\"$count\": \"n\"}]\n")
        running = self.start("shardquery", "run", *self.through(server), "--repeat", 1, "--warm-up",
                             0, suite)
        outcome = running.wait(LIMIT)
        self.assertEqual(outcome.code, code, outcome.text)
        return outcome

    def test_queries(self):
        self.load(self.path)
        outcome = self.query(Freezing(self.server, "aggregate"), support.EXIT_CLUSTER)
        self.assertIn("timed out", outcome.text)
        # One that only takes long is waited for, several times --timeout.
        outcome = self.query(Slow(self.server, "aggregate"), support.EXIT_OK)
        self.assertIn("2,000", outcome.out)

    def test_what_takes_long_is_waited_for(self):
        self.assert_it_waits("createIndexes", "--index", '{"v": 1}')


class Sharded(SilentCase):
    sharded = True

    def test_a_load_that_meets_a_router_that_hangs(self):
        self.assert_all_give_up([(name, *self.begin(Freezing, name)) for name in (
            "balancerStop", "enableSharding", "shardCollection", "split", "moveChunk")])

    def test_the_balancer_cannot_be_put_back(self):
        server, running = self.begin(Freezing, "balancerStart")
        self.assert_all_give_up([("balancerStart", server, running)])
        self.assertIn("cannot restore the balancer", running.text())
        self.assertIn("sh.startBalancer()", running.text())
        self.assertEqual(self.balancer_mode(), "off")
        self.load(self.path)     # the next load does
        self.assertEqual(self.balancer_mode(), "full")

    def test_the_state_of_the_balancer_cannot_be_read(self):
        self.assert_all_give_up([("load", *self.begin(Deaf, "balancerStatus")),
                                 ("plan", *self.begin(Deaf, "balancerStatus", "plan"))])

    def test_moves_that_take_long_are_waited_for(self):
        self.assert_it_waits("moveChunk")

    def test_a_router_that_hangs_for_a_while(self):
        """Nothing is lost, and the signs of life of the load do not end it."""
        path, _ = self.generate("B", 40000, "--seed", 5)
        server = Freezing(self.server, "no such command")
        running = self.start("shardload", "load", *self.through(server), "--work-dir", "work",
                             "--progress", "none", "-j", 2, "--batch-size", 100, *path)
        self.wait_for(lambda: not running.running() or
                      self.database.t.estimated_document_count() > 500, "documents")
        server.frozen.set()
        links = len(server.links)
        self.wait_for(lambda: len(server.links) > links or not running.running(),
                      "another connection")    # after --timeout
        server.frozen.clear()
        server.thaw.set()
        outcome = running.wait(LIMIT)
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 40000)
        self.assertEqual(self.balancer_mode(), "full")

    def test_ctrl_c_twice_while_it_hangs(self):
        server, running = self.begin(Freezing, "shardCollection")
        self.wait_for(server.frozen.is_set, "the command")
        running.signal(signal.SIGINT)
        self.wait_for(lambda: "stopping after" in running.text() or not running.running(), "a word")
        running.signal(signal.SIGINT)
        outcome = running.wait(LIMIT)
        self.assertIn(outcome.code, (support.EXIT_INTERRUPTED, support.EXIT_CLUSTER), outcome.text)


if __name__ == "__main__":
    import tap
    tap.main()
