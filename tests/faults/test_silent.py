# SPDX-License-Identifier: Apache-2.0
"""Servers that accept connections and do not reply. No command waits for ever: a command that a
server answers quickly fails after --timeout, and one that may take long fails when the server does
not answer on other connections either."""
import signal
import socket
import threading

import proxy
import support

ROWS = 2000
LIMIT = 300     # seconds; longer than any deadline under test


class Freezing(proxy.Proxy):
    """From the first command of this name on, the server hangs: connections stay open, new ones are
    accepted, and no command is answered, not even hello."""

    def __init__(self, target, name):
        self.name, self.frozen, self.thaw = name, threading.Event(), threading.Event()
        super().__init__(target)
        self.change_request = self.hold_request

    def hold_request(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.frozen.set()
        if self.frozen.is_set():
            self.thaw.wait()
        return message

    def close(self):
        self.thaw.set()
        super().close()


class Losing(proxy.Proxy):
    """Commands of this name are lost; all others are answered."""

    def __init__(self, target, name):
        self.name, self.lost = name, 0
        super().__init__(target)

    def action_for(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.lost += 1
            return proxy.lose_request()
        return super().action_for(message)


class Slow(proxy.Proxy):
    """Commands of this name are answered once the client has opened `connections` further ones."""

    def __init__(self, target, name, connections=3):
        self.name, self.more, self.held = name, connections, 0
        super().__init__(target)

    def action_for(self, message):
        if proxy.command_of(message)[0] != self.name:
            return super().action_for(message)
        self.held += 1
        self.until, self.enough = len(self.links) + self.more, threading.Event()
        return proxy.delay_reply(self.enough)

    def accept_from(self, listener):
        class Counted:
            @staticmethod
            def accept():
                if self.held and len(self.links) >= self.until:
                    self.enough.set()
                return listener.accept()
        super().accept_from(Counted)


class SilentCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("year.txt", support.mot_text(range(1, ROWS + 1)))
        self.port = support.port_of(self.uri)
        self.clear_balancer()
        self.addCleanup(self.clear_balancer)

    @staticmethod
    def proxy_uri(server):
        return support.ClusterCase.proxy_uri(server) + "?serverSelectionTimeoutMS=1500"

    def through(self, server, collection="t"):
        return [*self.target(collection, server), "--timeout", 2]

    def begin(self, kind, name, command="load", *words):
        """Starts a shardload command through a proxy of this class. Returns (proxy, Running)."""
        server = kind(self.port, name)
        collection = f"t{next(self._counter)}"
        if command == "load":
            words = ("--work-dir", collection, "--progress", "none", "--retry-timeout", 3, *words)
        return server, self.start("shardload", command, *self.through(server, collection), *words, self.path)

    def assert_all_give_up(self, started):
        """`started`: (description, proxy, Running) of each program."""
        for name, server, running in started:
            outcome = running.wait(LIMIT)
            self.assertEqual(outcome.code, support.EXIT_CLUSTER, f"{name}: {outcome.text}")
            self.assertNotIn("Sanitizer", outcome.text)
            reached = server.frozen.is_set() if isinstance(server, Freezing) else server.lost
            self.assertTrue(reached, f"{name} was never sent")

    def assert_it_waits(self, name, *words):
        server = Slow(self.port, name)
        outcome = self.shardload("load", *self.through(server), "--work-dir", "work", "--progress",
                                 "none", *words, self.path, limit=LIMIT)
        self.assertGreater(server.held, 0)
        self.assertEqual(self.database.t.count_documents({}), ROWS, outcome.text)


class Standalone(SilentCase, server="mongod"):
    at_once = True

    def hold_content(self, message, server):
        """Makes the server hang at the first find of the collection t."""
        name, value = proxy.command_of(message)
        if name == "find" and proxy.collection_of(value) == "t":
            server.frozen.set()
        return server.hold_request(message)

    def test_load_plan_and_verify_give_up_when_the_server_hangs(self):
        """The programs run at the same time, because each spends nearly all of its time waiting."""
        words = "--index", '{"v": 1}'
        self.load(self.path)
        server = Freezing(self.port, "no such command")
        server.change_request = lambda message: self.hold_content(message, server)
        started = [("verify --content", server, self.start(
            "shardload", "verify", "--content", *self.through(server), self.path))]
        started += [(name, *self.begin(Freezing, name, "load", *words, *more)) for name, *more in (
            ("buildInfo",), ("listCollections",), ("create",), ("findAndModify",), ("insert",),
            ("createIndexes",), ("aggregate",), ("drop", "--drop"))]
        started += [(name, *self.begin(Freezing, name, command)) for command, name in (
            ("plan", "listCollections"), ("verify", "find"))]
        self.assert_all_give_up(started)

    def test_load_plan_and_verify_give_up_when_a_command_is_lost(self):
        started = [(name, *self.begin(Losing, name)) for name in (
            "buildInfo", "listCollections", "create", "findAndModify", "find", "insert")]
        started += [(command, *self.begin(Losing, "find", command)) for command in ("plan", "verify")]
        self.assert_all_give_up(started)
        output = {name: running.text() for name, _, running in started}
        self.assertIn("has not answered for 2 s (--timeout)", output["listCollections"])
        self.assertIn("listCollections on database", output["listCollections"])

    def query(self, server, code):
        suite = self.file("suite.yaml", "name: s\nqueries:\n  - name: q\n    pipeline: |\n"
                                        "      [{\"$count\": \"n\"}]\n")
        running = self.start("shardquery", "run", *self.through(server), "--repeat", 1, "--warm-up", 0, suite)
        return running.wait(LIMIT).expect(code)

    def test_a_query_fails_when_the_server_hangs_and_completes_when_it_is_slow(self):
        self.load(self.path)
        outcome = self.query(Freezing(self.port, "aggregate"), support.EXIT_CLUSTER)
        self.assertIn("timed out", outcome.text)
        # The slow query takes several times --timeout.
        outcome = self.query(Slow(self.port, "aggregate"), support.EXIT_OK)
        self.assertIn("2,000", outcome.out)

    def test_a_slow_index_build_is_waited_for(self):
        self.assert_it_waits("createIndexes", "--index", '{"v": 1}')


class Sharded(SilentCase):
    def test_a_load_gives_up_when_the_router_hangs(self):
        self.assert_all_give_up([(name, *self.begin(Freezing, name)) for name in (
            "balancerStop", "enableSharding", "shardCollection", "split", "moveChunk")])

    def test_a_load_that_cannot_restart_the_balancer_fails_and_prints_the_command(self):
        server, running = self.begin(Freezing, "balancerStart")
        self.assert_all_give_up([("balancerStart", server, running)])
        self.assertIn("cannot restore the balancer", running.text())
        self.assertIn("sh.startBalancer()", running.text())
        self.assertEqual(self.balancer_mode(), "off")
        self.load(self.path)     # the next load restarts it
        self.assertEqual(self.balancer_mode(), "full")

    def test_load_and_plan_give_up_when_balancerStatus_is_lost(self):
        self.assert_all_give_up([("load", *self.begin(Losing, "balancerStatus")),
                                 ("plan", *self.begin(Losing, "balancerStatus", "plan"))])

    def test_slow_chunk_moves_are_waited_for(self):
        self.assert_it_waits("moveChunk")

    def test_a_load_completes_after_the_router_has_hung_for_a_while(self):
        """The load's updates of its balancer entry fail meanwhile, and do not end the load."""
        path = self.file("wide.txt", support.wide_text(8))
        server = Freezing(self.port, "no such command")
        running = self.start("shardload", "load", *self.through(server), "--work-dir", "work",
                             "--progress", "none", "-j", 2, "--batch-size", 5, path)
        self.wait_for_documents(running, 50)
        server.frozen.set()
        links = len(server.links)
        self.wait_for(lambda: len(server.links) > links or not running.running(),
                      "another connection")    # after --timeout
        server.frozen.clear()
        server.thaw.set()
        running.wait(LIMIT).expect(support.EXIT_OK)
        self.assertEqual(self.database.t.count_documents({}), 8 * support.WIDE_ROWS)
        self.assertEqual(self.balancer_mode(), "full")

    def test_threads_do_not_each_wait_for_a_router_that_hangs(self):
        """One of them asks it, and the others pass it over; the other router gets the documents."""
        asked = []
        silent = socket.create_server((support.HOST, 0), backlog=64)

        def accept():
            while True:
                try:
                    asked.append(silent.accept()[0])
                except OSError:
                    return
        waiting = threading.Thread(target=accept)
        waiting.start()
        self.addCleanup(waiting.join)
        self.addCleanup(lambda: [one.close() for one in asked])
        self.addCleanup(silent.close)
        self.addCleanup(silent.shutdown, socket.SHUT_RDWR)
        self.shardload(
            "load", "--uri", f"mongodb://{support.HOST}:{self.port},{support.HOST}:"
            f"{silent.getsockname()[1]}/?connectTimeoutMS=500", "-d", self.database_name, "-c", "t",
            "--progress", "none", "-j", 16, "--batch-size", 100,
            self.file("wide.txt", support.wide_text(16)), limit=LIMIT)
        self.assertEqual(self.database.t.count_documents({}), 16 * support.WIDE_ROWS)
        self.assertGreater(len(asked), 0)
        self.assertLess(len(asked), 8)

    def test_ctrl_c_twice_ends_a_load_while_the_server_hangs(self):
        server, running = self.begin(Freezing, "shardCollection")
        self.wait_for(server.frozen.is_set, "the command")
        running.signal(signal.SIGINT)
        self.wait_for(lambda: "stopping after" in running.text() or not running.running(), "the message")
        running.signal(signal.SIGINT)
        outcome = running.wait(LIMIT)
        self.assertIn(outcome.code, (support.EXIT_INTERRUPTED, support.EXIT_CLUSTER), outcome.text)
