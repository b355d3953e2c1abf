# SPDX-License-Identifier: Apache-2.0
"""Loads that change their numbers of threads and their batch size while they run store every document.
A load from a pipe gets rows until the changes have been reported, so the tests do not depend on the
speed of the machine."""
import os

import mot_reader
import support
from support import HEADER, ROW

START = 2 * os.cpu_count()


class Adapting(support.ClusterCase):
    def begin(self, *words):
        """Starts a load from a pipe, whose end for writing is self.feed."""
        self.rows, self.text = 0, [HEADER + "\n"]
        running, self.feed = self.start_with_pipe(
            "shardload", *self.load_words("work", *words, "--progress", "json", "-"),
            text=self.text[0].encode())
        return running

    def write_rows(self, count):
        rows = "".join(ROW.format(id=n) + "\n" for n in range(self.rows + 1, self.rows + count + 1))
        self.rows += count
        self.text.append(rows)
        self.feed.write(rows.encode())
        self.feed.flush()

    def feed_until_threads_grew_and_shrank(self, running):
        """Writes rows until the progress has reported more threads and then fewer."""
        def has_shrunk():
            threads = [0] + [report["threads"] for report in running.progress()]
            return max(threads) > START and threads[-1] < max(threads)

        def feed():
            if running.running() and not has_shrunk():
                self.write_rows(800)
            return not running.running() or has_shrunk()
        self.wait_for(feed, "the number of threads to grow and to shrink")
        self.assertTrue(running.running(), running.text())

    def assert_complete(self):
        path = self.file("text.txt", "".join(self.text))
        raw = self.stored()
        self.assert_documents(raw, mot_reader.read(
            path, number=support.key_of(raw[0]) >> 40).documents)

    def test_every_document_is_stored_when_the_number_of_threads_changes(self):
        running = self.begin("--batch-size", 100)
        self.feed_until_threads_grew_and_shrank(running)
        self.feed.close()
        outcome = running.wait().expect(support.EXIT_OK)
        self.assert_complete()
        self.assert_accounting(self.scratch / "work", inserted=self.rows)
        record = support.run_record(self.scratch / "work")["adaptation"]
        self.assertGreater(record["threadsMost"], START)
        self.assertEqual(record["batchSize"], 100)
        self.assertGreater(len({step["threads"] for step in record["steps"]}), 1)
        self.assertTrue(all(step["rate"] > 0 for step in record["steps"]), record)
        self.assertEqual({step["batchSize"] for step in record["steps"]}, {100})
        self.assertRegex(outcome.text, r"settled on \d+ thread|too short to compare")

    def test_ctrl_c_stops_all_threads_and_the_load_can_be_resumed(self):
        running = self.begin("--batch-size", 100)
        self.feed_until_threads_grew_and_shrank(running)
        running.interrupt()
        stored = self.database.t.count_documents({})
        self.assert_accounting(self.scratch / "work", inserted=stored)
        self.assertEqual(self.balancer_mode(), "full")

        self.shardload(*self.load_words("work", "--batch-size", 100, "--resume", "-"),
                       stdin="".join(self.text).encode())
        self.assert_complete()

    def test_given_threads_and_batch_size_do_not_change(self):
        (path,) = self.generate("B", 20000)
        outcome, work = self.load("-j", 3, "--batch-size", 700, path)
        self.assertNotIn("adaptation", support.run_record(work))
        self.assertNotRegex(outcome.text, "settled|too short to compare")
        self.assertIn("3 threads", outcome.text)

    def test_auto_begins_with_the_values_of_the_configuration_file(self):
        (path,) = self.generate("B", 2000)
        tuned = self.file("fast.yaml", "threads: 3\nbatch-size: 700\n")
        _, work = self.load("--config", tuned, path)
        self.assertNotIn("adaptation", support.run_record(work))
        outcome, work = self.load("--config", tuned, "-j", "auto", "--batch-size", "auto", "--again",
                                  path)
        record = support.run_record(work)["adaptation"]
        self.assertEqual((record["threads"], record["batchSize"]), (3, 700))
        self.assertIn("3 threads, batches of 700", outcome.text)

    def test_a_load_too_short_to_adapt_is_reported_as_such(self):
        (path,) = self.generate("B", 2000)
        outcome, work = self.load(path)
        record = support.run_record(work)["adaptation"]
        self.assertEqual((record["threads"], record["batchSize"]), (START, 20000))
        self.assertNotIn("settledAfterSeconds", record)
        self.assertIn("too short to compare", outcome.text)
