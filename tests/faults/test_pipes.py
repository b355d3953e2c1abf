# SPDX-License-Identifier: Apache-2.0
"""A pipe has no fingerprint, and its text can be read only once. --resume with the same text
completes a killed load, and refuses text that ends too early or differs. A new load that could store
the text of a killed load twice is refused."""
import os
import signal
import subprocess

import journal_reader
import resume_case
import support
from fault_case import Expected
from resume_case import ResumeCase

BLOCKS = 6


class PipeCase(ResumeCase):
    @classmethod
    def make_source(cls, folder):
        cls.text = resume_case.wide_text("a", BLOCKS)
        cls.file = folder / "year.txt"
        cls.file.write_bytes(cls.text)
        return "-", [Expected("-").add("-", cls.text)]

    def begin(self, *more, count=None, **where):
        """Starts a load of the text, or of its first `count` bytes, from a pipe."""
        words = ["head", "-c", str(count if count is not None else len(self.text)), self.file]
        writer = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        running = self.start("shardload", *self.words(*more, **where), stdin=writer.stdout)
        writer.stdout.close()
        self.addCleanup(writer.wait)
        return running

    def begin_with_open_pipe(self, *more):
        """Starts a load of half the text from a pipe that stays open. Returns (Running, the pipe's
        end for writing)."""
        return self.start_with_pipe("shardload", *self.words(*more),
                                    text=self.text[:len(self.text) // 2])

    def numbers(self):
        return {support.key_of(raw) >> 40 for raw in self.stored()}


class Resumed(PipeCase):
    def test_the_same_text_completes_the_load(self):
        self.load_killed_between_inserts(batch=20)
        self.assert_completed(self.resume())
        self.assertEqual(len(self.numbers()), 1)

    def test_text_that_ends_too_early_is_refused(self):
        self.load_killed_between_inserts(batch=20)
        before = sorted(self.stored())
        # In the first block, at its end, and in the second block; both blocks were completed.
        block = self.text.index(b"\n", (1 << 20) - 1) + 1
        for count in (70000, block - 1, block, block + 70000):
            with self.subTest(count=count):
                outcome = self.begin("--resume", count=count).wait().expect(support.EXIT_SOURCE)
                self.assertRegex(outcome.err, f"-: ended at byte {count}, but the interrupted "
                                 r"run had read up to byte \d+")
                self.assertEqual(sorted(self.stored()), before)
        self.assert_completed(self.resume())

    def test_the_text_of_a_completed_load_is_compared(self):
        """Another day's text, given with --resume, was called completed, and not one record of it was stored."""
        self.begin().wait().expect(support.EXIT_REJECTS)
        good, line = self.text, self.text[:self.text.index(b"\n") + 1]
        self.addCleanup(self.file.write_bytes, good)
        late, block = good[-400000:].replace(b"SILVER", b"GOLDEN", 1), good.index(b"\n", (1 << 20) - 1) + 1
        for text, message in ((good, None), (good.replace(b"SILVER", b"GOLDEN"), "the text at byte 0 differs from"),
                              (good[:-400000] + late, "differs from that"), (good + line, "differs from that"),
                              (good + good[len(line):], "differs from that"),
                              (good[:len(good) // 2], "differs from that"),
                              (good[:block], "ended before the text of the completed load")):
            self.file.write_bytes(text)
            outcome = self.begin("--resume", count=len(text)).wait()
            outcome.expect(support.EXIT_SOURCE if message else support.EXIT_REJECTS, message or "has been completed")
            self.assertTrue((self.work / "journal").exists())
        self.file.write_bytes(good)
        self.assert_completed(self.resume())

    def test_other_text_is_refused(self):
        self.load_killed_between_inserts(batch=20)
        before = sorted(self.stored())
        good = self.text
        self.file.write_bytes(good[:200000] + good[200000:].replace(b"SILVER", b"GOLDEN"))
        self.addCleanup(self.file.write_bytes, good)
        self.resume().expect(support.EXIT_SOURCE, "the text at byte 0 differs from")
        self.assertEqual(sorted(self.stored()), before)
        self.file.write_bytes(good)
        self.assert_completed(self.resume())


    def test_no_block_is_sent_before_all_in_the_journal_are_compared(self):
        """Blocks of several threads are completed in any order: here the journal lacks the first one."""
        self.load_killed_between_inserts(batch=20)
        before = sorted(self.stored())
        own = journal_reader.Journal(self.journal())
        (self.work / "journal").write_bytes(journal_reader.encode(
            own.documents, [entry for entry in own.entries if entry.sequence > 0 and entry.entry_start < 2]))
        good = self.text
        self.file.write_bytes(good.replace(b"SILVER", b"GOLDEN"))
        self.addCleanup(self.file.write_bytes, good)
        for threads in (1, 4):
            outcome, batches = self.count_batches(self.begin("--resume", threads=threads).wait)
            outcome.expect(support.EXIT_SOURCE, "differs from that of the earlier run")
            self.assertEqual((batches, sorted(self.stored())), (0, before))
        self.file.write_bytes(good)
        self.resume(threads=4)
        self.assert_content()

    def test_other_text_in_a_block_that_was_not_completed(self):
        """The journal lists the blocks that were read, without their outcome."""
        self.load_killed_between_inserts(batch=20)
        before = sorted(self.stored())
        own = journal_reader.Journal(self.journal())
        (self.work / "journal").write_bytes(journal_reader.encode(
            own.documents, [entry for entry in own.entries if entry.entry_start == 2]))
        good = self.text
        self.file.write_bytes(good[:200000] + good[200000:].replace(b"SILVER", b"GOLDEN", 1))
        self.addCleanup(self.file.write_bytes, good)
        outcome, batches = self.count_batches(self.begin("--resume").wait)
        outcome.expect(support.EXIT_SOURCE, "differs from that of the earlier run")
        self.assertEqual((batches, sorted(self.stored())), (0, before))
        self.file.write_bytes(good)
        end_of_block = good.index(b"\n", (1 << 20) - 1) + 1
        self.begin("--resume", count=end_of_block).wait().expect(support.EXIT_SOURCE, "-: ended before the text that")
        self.assertEqual(sorted(self.stored()), before)
        self.resume()
        self.assert_content()


class Repeated(PipeCase):
    """The killed load is started again without --resume."""

    def use_another_work_directory(self):
        self.first_work, self.work = self.work, self.scratch / "other-work"

    def assert_refused(self, *more):
        before = sorted(self.stored())
        outcome, batches = self.count_batches(lambda: self.begin(*more).wait())
        outcome.expect(support.EXIT_SOURCE, "1 pipe whose load was not completed", "--another-pipe",
                       f"--resume --work-dir {self.first_work.resolve()}")
        self.assertEqual(batches, 0)
        self.assertEqual(sorted(self.stored()), before)

    def test_with_the_same_work_directory_it_is_refused(self):
        self.load_killed_between_inserts(batch=20)
        before = sorted(self.stored())
        self.begin().wait().expect(support.EXIT_USAGE, "complete it with --resume")
        self.assertEqual(sorted(self.stored()), before)

    def test_with_another_work_directory_it_is_refused(self):
        """The message has the complete path of the first one, which the command named from its folder."""
        words = self.words
        self.words = lambda *more, **where: [os.path.relpath(word, self.scratch) if word == self.work else word
                                             for word in words(*more, **where)]
        self.load_killed_between_inserts(batch=20)
        self.words = words
        self.use_another_work_directory()
        self.assert_refused()
        self.assert_refused("--again")
        self.work = self.first_work
        self.assert_completed(self.resume())
        self.assertEqual(len(self.numbers()), 1)

    def test_with_another_pipe_option_the_pipe_is_loaded(self):
        self.load_killed_between_inserts(batch=20)
        before = len(self.stored())
        self.use_another_work_directory()
        self.begin("--another-pipe").wait().expect(support.EXIT_REJECTS)
        self.assertEqual(len(self.numbers()), 2)
        self.assertEqual(len(self.stored()), before + len(self.expected[0].documents))

    def test_with_drop_the_pipe_is_loaded(self):
        self.load_killed_between_inserts(batch=20)
        self.use_another_work_directory()
        self.assert_nothing_lost(self.begin("--drop").wait())

    def test_after_a_completed_load_another_pipe_is_loaded(self):
        self.load_killed_between_inserts(batch=20)
        self.assert_completed(self.resume())
        self.use_another_work_directory()
        self.begin().wait().expect(support.EXIT_REJECTS)
        self.assertEqual(len(self.numbers()), 2)

    def test_after_ctrl_c_it_is_refused(self):
        outcome = self.load_with_fault(lambda running: running.signal(signal.SIGINT), batch=20)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.use_another_work_directory()
        self.assert_refused()

    def test_after_the_kill_a_file_is_loaded(self):
        self.load_killed_between_inserts(batch=20)
        self.use_another_work_directory()
        self.start("shardload", *self.words(source=self.file)).wait().expect(
            support.EXIT_SOURCE, "year.txt: as -, whose load has not ended")
        self.start("shardload", *self.words("--again", source=self.file)).wait().expect(support.EXIT_REJECTS)


class TwoLoaders(PipeCase):
    def test_a_second_pipe_needs_another_pipe_option_and_then_both_are_loaded(self):
        """The second loader cannot know whether the first one still runs, perhaps on another host."""
        first, end = self.begin_with_open_pipe()
        self.wait_for_documents(first, 1)
        self.first_work, self.work = self.work, self.scratch / "other-work"
        self.begin().wait().expect(support.EXIT_SOURCE, "For other data give --another-pipe")
        self.work = self.scratch / "third-work"
        self.begin("--another-pipe").wait().expect(support.EXIT_REJECTS)
        with end:
            end.write(self.text[len(self.text) // 2:])
        first.wait().expect(support.EXIT_REJECTS)
        self.assertEqual(len(self.numbers()), 2)
        self.assertEqual(len(self.stored()), 2 * len(self.expected[0].documents))
