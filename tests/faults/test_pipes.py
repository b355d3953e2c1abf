# SPDX-License-Identifier: Apache-2.0
"""Pipes: their text comes once, and no fingerprint tells it from another one. A load that was killed
is completed by --resume with the same text; text that ends too soon is refused, and so is a new load
that would store the same text beside what the killed one has left."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proxy  # noqa: E402
import resume_case  # noqa: E402
import support  # noqa: E402
from fault_case import Expected  # noqa: E402
from resume_case import ResumeCase  # noqa: E402

BLOCKS = 6


class PipeCase(ResumeCase):
    @classmethod
    def make_source(cls, folder):
        cls.text = resume_case.wide_text("a", BLOCKS)
        cls.file = folder / "year.txt"
        cls.file.write_bytes(cls.text)
        return "-", [Expected("-").add("-", cls.text)]

    def begin(self, *more, count=None, **where):
        """Loads the text, or its first `count` bytes, from a pipe."""
        words = ["head", "-c", str(count if count is not None else len(self.text)), self.file]
        writer = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        running = self.start("shardload", *self.words(*more, **where), stdin=writer.stdout)
        writer.stdout.close()
        self.addCleanup(writer.wait)
        return running

    def fed(self, *more):
        """A load whose pipe stays open: returns it and the pipe's end. It has stored documents."""
        reading, writing = os.pipe()
        self.addCleanup(lambda: os.path.exists(f"/proc/self/fd/{writing}") and os.close(writing))
        running = self.start("shardload", *self.words(*more), stdin=reading)
        os.close(reading)
        with open(writing, "wb", closefd=False) as pipe:
            pipe.write(self.text[:len(self.text) // 2])
        return running, writing

    def numbers(self):
        return {support.key_of(raw) >> 40 for raw in self.stored()}


class Resumed(PipeCase):
    def test_with_the_same_text_it_is_completed(self):
        self.interrupted(batch=20)
        self.assert_completed(self.resume())
        self.assertEqual(len(self.numbers()), 1)

    def test_text_that_ends_too_soon_is_refused(self):
        self.interrupted(batch=20)
        before = sorted(self.stored())
        # Within the first block, at its end, and within the next one: all of them were done.
        block = self.text.index(b"\n", (1 << 20) - 1) + 1
        for count in (70000, block - 1, block, block + 70000):
            with self.subTest(count=count):
                outcome = self.begin("--resume", count=count).wait()
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
                self.assertRegex(outcome.err, f"-: ended at byte {count}, but the run that is "
                                 r"resumed had read up to byte \d+")
                self.assertEqual(sorted(self.stored()), before)
        self.assert_completed(self.resume())

    def test_other_text_is_refused(self):
        self.interrupted(batch=20)
        before = sorted(self.stored())
        good = self.text
        self.file.write_bytes(good[:200000] + good[200000:].replace(b"SILVER", b"GOLDEN"))
        self.addCleanup(self.file.write_bytes, good)
        outcome = self.resume()
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertIn("the text at byte 0 differs from", outcome.err)
        self.assertEqual(sorted(self.stored()), before)
        self.file.write_bytes(good)
        self.assert_completed(self.resume())


class Repeated(PipeCase):
    """The same command again, without --resume."""

    def elsewhere(self):
        self.first_work, self.work = self.work, self.scratch / "other-work"

    def assert_refused(self, *more):
        before = sorted(self.stored())
        outcome, batches = self.sent(lambda: self.begin(*more).wait())
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertIn("1 pipe whose load was not completed", outcome.err)
        self.assertIn(f"--resume --work-dir {self.first_work.resolve()}", outcome.err)
        self.assertIn("--another-pipe", outcome.err)
        self.assertEqual(batches, 0)
        self.assertEqual(sorted(self.stored()), before)

    def test_into_the_same_work_directory_it_is_refused(self):
        self.interrupted(batch=20)
        before = sorted(self.stored())
        outcome = self.begin().wait()
        self.assertEqual(outcome.code, support.EXIT_USAGE, outcome.text)
        self.assertIn("complete it with --resume", outcome.err)
        self.assertEqual(sorted(self.stored()), before)

    def test_into_another_work_directory_it_is_refused(self):
        self.interrupted(batch=20)
        self.elsewhere()
        self.assert_refused()
        self.assert_refused("--again")
        self.work = self.first_work
        self.assert_completed(self.resume())
        self.assertEqual(len(self.numbers()), 1)

    def test_beside_it_a_pipe_is_loaded_where_that_is_asked_for(self):
        self.interrupted(batch=20)
        had = len(self.stored())
        self.elsewhere()
        outcome = self.begin("--another-pipe").wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(len(self.numbers()), 2)
        self.assertEqual(len(self.stored()), had + len(self.expected[0].documents))

    def test_with_drop_it_begins_anew(self):
        self.interrupted(batch=20)
        self.elsewhere()
        self.assert_nothing_lost(self.begin("--drop").wait())

    def test_after_one_that_was_completed_another_pipe_is_loaded(self):
        self.interrupted(batch=20)
        self.assert_completed(self.resume())
        self.elsewhere()
        outcome = self.begin().wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(len(self.numbers()), 2)

    def test_beside_one_that_was_stopped_by_ctrl_c(self):
        outcome = self.struck(lambda running: running.signal(signal.SIGINT), batch=20)
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.elsewhere()
        self.assert_refused()

    def test_files_may_be_loaded_beside_it(self):
        self.interrupted(batch=20)
        self.elsewhere()
        outcome = self.start("shardload", *self.words(source=self.file)).wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)


class AtOnce(PipeCase):
    def test_a_second_pipe_must_be_asked_for_and_then_both_are_loaded(self):
        """Whether the first loader still runs, perhaps on another host, the second cannot know."""
        first, end = self.fed()
        self.wait_for(lambda: self.database.t.estimated_document_count() > 0, "documents")
        self.first_work, self.work = self.work, self.scratch / "other-work"
        outcome = self.begin().wait()
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertIn("or that load still runs", outcome.err)
        self.work = self.scratch / "third-work"
        second = self.begin("--another-pipe").wait()
        self.assertEqual(second.code, support.EXIT_REJECTS, second.text)
        with open(end, "wb") as pipe:
            pipe.write(self.text[len(self.text) // 2:])
        outcome = first.wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(len(self.numbers()), 2)
        self.assertEqual(len(self.stored()), 2 * len(self.expected[0].documents))


if __name__ == "__main__":
    import tap
    tap.main()
