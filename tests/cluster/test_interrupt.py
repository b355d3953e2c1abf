# SPDX-License-Identifier: Apache-2.0
"""Loads that are stopped by Ctrl-C or killed: the stored documents, the balancer and the next load.

The tests do not depend on the speed of a load: a rate limit makes it long, the signal is sent when
the first documents are stored, and a load from a pipe runs as long as the pipe is open."""
import signal
import socket

import mot_reader
import support

ROWS = 3 * support.WIDE_ROWS          # in three blocks; an interrupted load completes its block
SLOW = ["-j", 1, "--batch-size", 5, "--rate-limit", 60]


class InterruptCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.clear_balancer()
        self.addCleanup(self.clear_balancer)

    def begin(self, *words, stdin=support.subprocess.DEVNULL):
        """Starts a load, and waits until its first documents are stored."""
        running = self.start("shardload", "load", *self.target(), "--work-dir", "work",
                             "--progress", "plain", *words, stdin=stdin)
        self.wait_for_documents(running, 20)
        return running

    def big_file(self):
        return self.file("year.txt", support.wide_text(3, first=10000))

    def assert_complete(self, path):
        raw = self.stored()
        number = support.key_of(raw[0]) >> 40
        self.assert_documents(raw, mot_reader.read(path, number=number).documents)

    def load_from_open_pipe(self, collection):
        """Starts a load that runs until its pipe is closed. Returns (Running, the pipe)."""
        running, feed = self.start_with_pipe(
            "shardload", *self.load_words(collection, "-j", 1, "--batch-size", 10, "-", collection=collection),
            text=support.wide_text(3).encode())
        self.wait_for_documents(running, 1, collection)
        return running, feed


class Together(InterruptCase):
    """Several loads share one cluster and its balancer."""

    def test_the_last_load_restarts_the_balancer(self):
        first, first_input = self.load_from_open_pipe("a")
        second, second_input = self.load_from_open_pipe("b")
        self.assertEqual(self.balancer_mode(), "off")
        first_input.close()
        self.assertEqual(first.wait().code, support.EXIT_OK, first.text())
        self.assertEqual(self.balancer_mode(), "off", "the second load is still running")
        second_input.close()
        self.assertEqual(second.wait().code, support.EXIT_OK, second.text())
        self.assertEqual(self.balancer_mode(), "full")

    def test_two_loads_into_one_collection(self):
        path = self.big_file()
        running, feed = self.load_from_open_pipe("t")
        self.load(path)
        feed.close()
        running.wait().expect(support.EXIT_OK)
        self.assertEqual(self.database.t.count_documents({}),
                         3 * support.WIDE_ROWS + len(mot_reader.read(path).documents))
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_file_loaded_twice_at_the_same_time_is_stored_once(self):
        # Both loads may send it, or the second one may refuse.
        path = self.big_file()
        running = self.begin(*SLOW, path)
        other, _ = self.load(path, code=None)
        self.assertIn(other.code, (support.EXIT_OK, support.EXIT_SOURCE), other.text)
        self.assertEqual(running.wait().code, support.EXIT_OK)
        self.assert_complete(path)


class CtrlC(InterruptCase):
    def test_once_ends_the_load_with_its_record_and_the_balancer_restarted(self):
        path = self.big_file()
        running = self.begin(*SLOW, path)
        self.assertEqual(self.balancer_mode(), "off")
        outcome = running.interrupt()
        self.assertEqual(self.balancer_mode(), "full")
        stored = self.database.t.count_documents({})
        self.assertLess(stored, ROWS)
        self.assert_accounting(self.scratch / "work", inserted=stored)
        record = support.run_record(self.scratch / "work")
        self.assertEqual(record["exitCode"], support.EXIT_INTERRUPTED)
        self.assertRegex(outcome.err, "(?i)interrupt|stopped")

    def test_the_next_load_keeps_the_stored_documents_and_adds_the_missing_ones(self):
        path = self.big_file()
        running = self.begin(*SLOW, path)
        running.signal(signal.SIGINT)
        running.wait()
        stored = self.database.t.count_documents({})
        _, work = self.load(path)
        self.assert_complete(path)
        self.assert_accounting(work, alreadyStored=stored)
        self.assertEqual(self.balancer_mode(), "full")

    def test_while_the_load_waits_for_its_input(self):
        running, _ = self.start_with_pipe("shardload", *self.load_words("work", "-"),
                                          text=support.wide_text(3).encode())
        self.wait_for(lambda: not running.running() or self.balancer_mode() == "off",
                      "the load to prepare the cluster")
        running.interrupt(limit=30)
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_load_from_a_pipe_is_resumed_with_the_same_text_only(self):
        text = support.wide_text(6).encode()
        command = self.load_words("pipe", "-j", 1, "--batch-size", 5)
        running, _ = self.start_with_pipe("shardload", *command, "-", text=text[:3 << 20])
        self.wait_for_documents(running, 1)
        running.interrupt("--resume")
        stored = self.database.t.estimated_document_count()
        self.assertTrue(0 < stored < 6 * support.WIDE_ROWS, stored)

        other = text.replace(b"|FORD|", b"|FRDO|", 1)
        self.assertTrue(other != text)
        self.shardload(*command, "--resume", "-", stdin=other, code=support.EXIT_SOURCE,
                       message="differs from that of the earlier run")
        self.shardload(*command, "--resume", "-", stdin=text)
        path = self.file("same.txt", text.decode())
        self.assert_complete(path)

    def test_while_the_load_connects_to_the_server(self):
        with socket.socket() as silent:
            silent.bind((support.HOST, 0))
            silent.listen(16)
            running = self.start(
                "shardload", "load", "--uri", f"mongodb://127.0.0.1:{silent.getsockname()[1]}/",
                "-d", "x", "-c", "y", "--work-dir", "work",
                self.file("year.txt", support.mot_text([1])))
            connection, _ = silent.accept()
            with connection:
                running.interrupt(limit=30)

    def test_a_balancer_that_was_off_stays_off(self):
        self.client.admin.command("balancerStop")
        running = self.begin(*SLOW, self.big_file())
        running.interrupt()
        self.assertEqual(self.balancer_mode(), "off")


class Killed(InterruptCase):
    def test_the_next_run_completes_the_load_and_restarts_the_balancer(self):
        path = self.big_file()
        running = self.begin(*SLOW, path)
        running.kill()
        stored = self.database.t.count_documents({})
        self.assertTrue(0 < stored < ROWS)
        outcome, work = self.load(path)
        self.assert_complete(path)
        # The last batch may have arrived after the count was taken.
        figures = support.run_record(work)["accounting"]
        self.assertTrue(stored <= figures["alreadyStored"] <= stored + 5, figures)
        self.assert_accounting(work, records=figures["inserted"] + figures["alreadyStored"])
        self.assertEqual(self.balancer_mode(), "full", outcome.text)

    def test_a_balancer_that_was_off_is_not_started_by_the_next_run(self):
        self.client.admin.command("balancerStop")
        path = self.big_file()
        running = self.begin(*SLOW, path)
        running.kill()
        self.load(path)
        self.assertEqual(self.balancer_mode(), "off")
