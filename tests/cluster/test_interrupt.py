# SPDX-License-Identifier: Apache-2.0
"""Loads that do not come to their end: Ctrl-C, a kill, and what the user finds afterwards.

Nothing here depends on how fast a load is: small batches make it long, the signal is sent when the
first documents have been seen, and a load from a pipe goes on for as long as the pipe is open."""
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import mot_reader  # noqa: E402
import support  # noqa: E402
from support import HEADER, ROW  # noqa: E402

ROWS = 60000
SLOW = ["-j", 1, "--batch-size", 5]


class InterruptCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.client.admin.command("balancerStart")
        # What killed loads of other tests have left would count for more than that.
        self.client.shardload.balancer.delete_many({})
        self.addCleanup(self.client.admin.command, "balancerStart")

    def begun(self, *words, stdin=support.subprocess.DEVNULL):
        """A load that has brought its first documents into the cluster."""
        running = self.start("shardload", "load", *self.target(), "--work-dir", "work",
                             "--progress", "plain", *words, stdin=stdin)
        self.wait_for(lambda: not running.running() or
                      self.database.t.estimated_document_count() > 20, "the first documents")
        self.assertTrue(running.running(), f"ended too soon: {running.text()}")
        return running

    def big_file(self, seed):
        (path,), _ = self.generate("B", ROWS, "--dirt", "heavy", "--seed", seed)
        return path

    def assert_complete(self, path):
        raw = self.stored()
        number = support.key_of(raw[0]) >> 40
        self.assert_documents(raw, mot_reader.read(path, number=number).documents)

    def open_ended(self, collection):
        """A load into a collection that goes on until its input, which is returned, is closed."""
        read_end, write_end = os.pipe()
        feed = os.fdopen(write_end, "wb")
        self.addCleanup(feed.close)
        running = self.start("shardload", "load", *self.target(collection), "--work-dir",
                             collection, "--progress", "none", "-j", 1, "--batch-size", 10, "-",
                             stdin=read_end)
        os.close(read_end)
        feed.write((HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, 30000))).encode())
        feed.flush()
        self.wait_for(lambda: not running.running() or
                      self.database[collection].estimated_document_count() > 0,
                      "the first documents")
        self.assertTrue(running.running(), running.text())
        return running, feed


class Together(InterruptCase):
    """Several loads share one cluster, and one balancer."""

    def test_the_last_one_puts_the_balancer_back(self):
        first, first_input = self.open_ended("a")
        second, second_input = self.open_ended("b")
        self.assertEqual(self.balancer_mode(), "off")
        first_input.close()
        self.assertEqual(first.wait().code, support.EXIT_OK, first.text())
        self.assertEqual(self.balancer_mode(), "off", "the second load is still under way")
        second_input.close()
        self.assertEqual(second.wait().code, support.EXIT_OK, second.text())
        self.assertEqual(self.balancer_mode(), "full")

    def test_two_loads_into_one_collection(self):
        path = self.big_file(48)
        running, feed = self.open_ended("t")
        self.load(path)
        feed.close()
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        self.assertEqual(self.database.t.count_documents({}),
                         29999 + len(mot_reader.read(path).documents))
        self.assertEqual(self.balancer_mode(), "full")

    def test_the_same_file_at_the_same_time(self):
        # Both may send it, or one may refuse; what is there in the end is the file, once.
        path = self.big_file(49)
        running = self.begun(*SLOW, path)
        other, _ = self.load(path, code=None)
        self.assertIn(other.code, (support.EXIT_OK, support.EXIT_SOURCE), other.text)
        self.assertEqual(running.wait().code, support.EXIT_OK)
        self.assert_complete(path)


class CtrlC(InterruptCase):
    def test_once_ends_in_good_order(self):
        path = self.big_file(41)
        running = self.begun(*SLOW, path)
        self.assertEqual(self.balancer_mode(), "off")
        running.signal(signal.SIGINT)
        outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertEqual(self.balancer_mode(), "full")
        stored = self.database.t.count_documents({})
        self.assertLess(stored, ROWS)
        self.assert_accounting(self.scratch / "work", inserted=stored)
        record = support.run_record(self.scratch / "work")
        self.assertEqual(record["exitCode"], support.EXIT_INTERRUPTED)
        self.assertRegex(outcome.err, "(?i)interrupt|stopped")

    def test_what_was_loaded_is_kept_and_the_rest_added(self):
        path = self.big_file(42)
        running = self.begun(*SLOW, path)
        running.signal(signal.SIGINT)
        running.wait()
        stored = self.database.t.count_documents({})
        _, work = self.load(path)
        self.assert_complete(path)
        self.assert_accounting(work, alreadyThere=stored)
        self.assertEqual(self.balancer_mode(), "full")

    def test_twice_stops_at_once(self):
        running = self.begun(*SLOW, self.big_file(43))
        running.signal(signal.SIGINT)
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait().code, support.EXIT_INTERRUPTED)
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_polite_kill_is_the_same(self):
        running = self.begun(*SLOW, self.big_file(44))
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait().code, support.EXIT_INTERRUPTED)
        self.assertEqual(self.balancer_mode(), "full")

    def test_while_it_waits_for_its_input(self):
        read_end, write_end = os.pipe()
        feed = os.fdopen(write_end, "wb")
        self.addCleanup(feed.close)
        running = self.start("shardload", "load", *self.target(), "--work-dir", "work", "-",
                             stdin=read_end)
        os.close(read_end)
        feed.write((HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, 40000))).encode())
        feed.flush()
        self.wait_for(lambda: not running.running() or self.balancer_mode() == "off",
                      "the load to prepare the cluster")
        running.signal(signal.SIGINT)
        outcome = running.wait(30)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_pipe_is_completed_when_it_brings_the_same_again(self):
        text = (HEADER + "\n" + "".join(ROW.format(id=n) + "\n" for n in range(1, 60000))).encode()
        work = self.scratch / "pipe"
        command = ["shardload", "load", *self.target(), "--work-dir", work, "--progress", "none",
                   "-j", 1, "--batch-size", 500, "-"]
        read_end, write_end = os.pipe()
        running = self.start(*command, stdin=read_end)
        os.close(read_end)
        with os.fdopen(write_end, "wb") as feed:
            feed.write(text[:3 << 20])
            feed.flush()
            self.wait_for(lambda: not running.running() or
                          self.database.t.estimated_document_count() > 0, "the first documents")
            running.signal(signal.SIGINT)
            outcome = running.wait()
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertIn("--resume", outcome.err)
        there = self.database.t.estimated_document_count()
        self.assertTrue(0 < there < 59999, there)

        other = text.replace(b"|FORD|", b"|FRDO|", 1)
        self.assertTrue(other != text)
        outcome = self.shardload(*command[1:-1], "--resume", "-", stdin=other,
                                 code=support.EXIT_SOURCE)
        self.assertIn("differs from that of the run that is resumed", outcome.err)
        outcome = self.shardload(*command[1:-1], "--resume", "-", stdin=text)
        path = self.file("same.txt", text.decode())
        self.assert_complete(path)

    def test_while_it_looks_for_the_server(self):
        with socket.socket() as mute:
            mute.bind((support.HOST, 0))
            mute.listen(16)
            running = self.start(
                "shardload", "load", "--uri", f"mongodb://127.0.0.1:{mute.getsockname()[1]}/",
                "-d", "x", "-c", "y", "--work-dir", "work",
                self.file("year.txt", HEADER + "\n" + ROW.format(id=1) + "\n"))
            connection, _ = mute.accept()
            with connection:
                running.signal(signal.SIGINT)
                self.assertEqual(running.wait(30).code, support.EXIT_INTERRUPTED)

    def test_a_balancer_that_was_off_stays_off(self):
        self.client.admin.command("balancerStop")
        running = self.begun(*SLOW, self.big_file(45))
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait().code, support.EXIT_INTERRUPTED)
        self.assertEqual(self.balancer_mode(), "off")


class Killed(InterruptCase):
    def test_the_next_run_completes_the_load_and_puts_the_balancer_back(self):
        path = self.big_file(46)
        running = self.begun(*SLOW, path)
        running.signal(signal.SIGKILL)
        running.wait()
        stored = self.database.t.count_documents({})
        self.assertTrue(0 < stored < ROWS)
        outcome, work = self.load(path)
        self.assert_complete(path)
        # The last batch may have arrived after the count was taken.
        figures = support.run_record(work)["accounting"]
        self.assertTrue(stored <= figures["alreadyThere"] <= stored + 5, figures)
        self.assert_accounting(work, records=figures["inserted"] + figures["alreadyThere"])
        self.assertEqual(self.balancer_mode(), "full", outcome.text)

    def test_a_balancer_that_was_off_is_not_started_by_the_next_run(self):
        self.client.admin.command("balancerStop")
        path = self.big_file(47)
        running = self.begun(*SLOW, path)
        running.signal(signal.SIGKILL)
        running.wait()
        self.load(path)
        self.assertEqual(self.balancer_mode(), "off")


if __name__ == "__main__":
    import tap
    tap.main()
