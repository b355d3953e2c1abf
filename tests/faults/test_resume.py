# SPDX-License-Identifier: Apache-2.0
"""--resume completes a load however it was stopped, sends no completed block again, and refuses
sources, options or a target other than those of the first run."""
import gzip
import os
import random
import signal
import struct
import subprocess
import threading

import fault_case
import journal_reader
import proxy
import resume_case
import support

BATCHES = 70                  # a complete load has fewer


class ResumeCase(resume_case.ResumeCase):
    blocks, batch_size = 6, 10


class Stopped(ResumeCase):
    """A stopped load is completed by --resume."""

    def assert_resumes(self, *more):
        outcome, batches = self.count_batches(lambda: self.resume(*more))
        self.assert_completed(outcome)
        self.assertLess(batches, BATCHES * 2 // 3, "completed blocks were sent again")

    def stopped_by(self, *numbers):
        def send(running):
            if len(numbers) > 1:
                self.wait_for_journal()      # the second signal ends the load without a last entry
            for number in numbers:
                running.signal(number)
        self.load_with_fault(send, batch=40).expect(support.EXIT_INTERRUPTED, "--resume")
        self.assert_balancer()

    def test_by_signals(self):
        for numbers in ([signal.SIGINT], [signal.SIGINT] * 2, [signal.SIGTERM], [signal.SIGHUP]):
            with self.subTest(numbers):
                self.work = self.scratch / f"work-{next(self._counter)}"
                self.client.drop_database(self.database_name)
                self.stopped_by(*numbers)
                self.assert_resumes()

    def test_by_a_kill(self):
        self.killed_load(batch=40)
        self.assert_resumes()

    def test_the_text_of_refused_records_is_written_once(self):
        """Neither twice nor not at all, of a plain and of a compressed file."""
        lines = [f"{n},{'x' * 9000}\n" for n in range(1200)]
        for name, pack in ("wide.csv", bytes), ("wide.csv.gz", gzip.compress):
            with self.subTest(name):
                self.client.drop_database(self.database_name)
                self.database.create_collection("t", validator={"n": {"$not": {"$mod": [7, 0]}}})
                self.source = self.scratch / name
                self.source.write_bytes(pack("".join(["n,t\n", *lines]).encode()))
                self.work = self.scratch / f"work-{name}"
                self.killed_load(batch=40)
                self.resume().expect(support.EXIT_REJECTS)
                kept = (self.work / "rejected" / f"000001-{name}").read_text().splitlines(True)
                self.assertEqual((kept[0], sorted(kept[1:])), ("n,t\n", sorted(lines[::7])))

    def test_by_too_many_rejects(self):
        self.begin("--max-rejects", 1).wait().expect(support.EXIT_SOURCE, "--max-rejects", "--resume")
        self.assert_completed(self.resume("--max-rejects", 100))

    def test_by_a_closed_standard_output(self):
        """`shardload load ... | head -1` completes, or can be resumed."""
        words = [support.program("shardload"), *map(str, self.words())]
        loader = subprocess.Popen(words, cwd=self.scratch, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=support.clean_environment())
        self.assertTrue(loader.stdout.readline())
        loader.stdout.close()
        if loader.wait(support.LIMIT) not in (support.EXIT_OK, support.EXIT_REJECTS):
            self.assert_completed(self.resume())
        self.assert_content()
        self.assert_accounting(self.work, records=self.expected[0].records)

    def test_with_other_threads_and_batches(self):
        self.killed_load(batch=40)
        self.assert_completed(self.resume(threads=3, size=7))

    def test_after_a_first_run_with_drop(self):
        self.database.t.insert_one({"_id": 1})
        self.killed_load("--drop", batch=40)
        self.assert_resumes("--drop")

    def test_before_anything_was_loaded(self):
        self.load_with_fault(lambda running: running.signal(signal.SIGKILL), command=8)
        self.assert_completed(self.resume())

    def test_within_a_resume(self):
        self.killed_load(batch=20)
        self.killed_load("--resume", batch=20)
        self.assert_completed(self.resume())


class Finished(ResumeCase):
    def test_resuming_a_completed_load_sends_nothing_and_reports_it(self):
        self.assert_completed(self.begin().wait())
        rejects = support.run_record(self.work)["accounting"]["rejectedByParser"]
        self.assertGreater(rejects, 0)
        outcome, batches = self.count_batches(self.resume)
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(batches, 0)
        self.assertIn("nothing to resume", outcome.text)
        self.assert_content()
        self.assert_accounting(self.work, records=self.expected[0].records)

    def test_a_refused_resume_keeps_run_json(self):
        self.assert_completed(self.begin().wait())
        record = (self.work / "run.json").read_bytes()
        self.resume("--trim").expect(support.EXIT_USAGE, "--trim was not given")
        for message in ("no longer exists", "dropped and created again"):
            with self.subTest(message):
                self.database.drop_collection("t")
                if "again" in message:
                    self.database.t.insert_one({"_id": 1})
                self.resume().expect(support.EXIT_CLUSTER, message)
        self.assertEqual((self.work / "run.json").read_bytes(), record)


class Refused(ResumeCase):
    """--resume with another source, option or target is refused, and sends nothing."""

    def setUp(self):
        super().setUp()
        self.path = self.scratch / "2015.txt"
        self.path.write_bytes(self.source.read_bytes())
        self.load_killed_between_inserts(source=self.path)
        self.before = sorted(self.stored())

    def assert_refuses(self, *words, message, code=support.EXIT_USAGE, **where):
        outcome, batches = self.count_batches(lambda: self.resume(*words, **{"source": self.path, **where}))
        self.assertEqual(outcome.code, code, outcome.text)
        self.assertIn(message, outcome.err)
        self.assertEqual(batches, 0)
        self.assertEqual(sorted(self.stored()), self.before)

    def assert_still_resumes(self):
        self.assert_completed(self.resume(source=self.path))

    def assert_completed(self, outcome):
        self.assert_nothing_lost(outcome, again=None, expected=[resume_case.expected_of(self.path)])

    def test_a_source_that_has_grown(self):
        before, facts = self.path.read_bytes(), self.path.stat()
        self.path.write_bytes(before + support.ROW.format(id=9).encode() + b"\n")
        self.assert_refuses(message=self.path.name, code=support.EXIT_SOURCE)
        self.path.write_bytes(before)
        os.utime(self.path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        self.assert_still_resumes()

    def test_a_source_that_has_changed_at_the_same_length(self):
        text = bytearray(self.path.read_bytes())
        text[-100:-90] = b"X" * 10
        self.path.write_bytes(text)
        self.assert_refuses(message=self.path.name, code=support.EXIT_SOURCE)

    def test_another_source(self):
        other = self.file("2016.txt", resume_case.wide_text("z", 1))
        self.assert_refuses(other, message="sources", code=support.EXIT_SOURCE)
        self.assert_still_resumes()

    def test_a_source_that_is_not_given_again(self):
        other = self.file("2016.txt", resume_case.wide_text("z", 1))
        self.assert_refuses(source=other, message="source 1 is", code=support.EXIT_SOURCE)

    def test_options_that_change_documents(self):
        for words in (["--names", "long"], ["--encoding", "latin-1"], ["--trim"]):
            with self.subTest(words=words):
                value = [*words, "yes"][1]
                self.assert_refuses(*words, message=f'{words[0]} was not given and is "{value}"')
        self.assert_still_resumes()

    def test_another_collection(self):
        self.assert_refuses("-c", "u", message='--collection was "t" and is "u"')
        self.assert_still_resumes()

    def test_another_database(self):
        self.assert_refuses("-d", self.database_name + "x", message=self.database_name)

    def test_another_cluster(self):
        self.assert_refuses(uri=support.cluster_uri("SHARDLOAD_TEST_STANDALONE_URI"),
                            code=support.EXIT_CLUSTER, message="belongs to a different load")

    def test_a_collection_that_was_dropped_meanwhile(self):
        self.database.drop_collection("t")
        self.before = []
        self.assert_refuses(code=support.EXIT_CLUSTER, message="no longer exists")
        self.assertNotIn("t", self.database.list_collection_names())

    def test_a_collection_that_was_dropped_and_created_again(self):
        self.database.drop_collection("t")
        self.database.t.insert_one({"_id": 1})
        self.database.t.delete_one({"_id": 1})
        self.before = []
        self.assert_refuses(code=support.EXIT_CLUSTER, message="dropped")

    def test_without_resume_the_work_directory_of_an_incomplete_load_is_refused(self):
        journal = (self.work / "journal").read_bytes()
        self.begin(source=self.path).wait().expect(support.EXIT_USAGE, "complete it with --resume")
        self.assertEqual((self.work / "journal").read_bytes(), journal)

    def test_a_work_directory_without_a_journal(self):
        self.work = self.scratch / "elsewhere"
        self.assert_refuses(message=f"cannot use the work directory {self.work}")
        self.work.mkdir()
        self.assert_refuses(message=f"--resume: {self.work} holds no journal of a load")


class RejectsGone(ResumeCase):
    """The reject files of the killed run were removed or truncated. They cannot be written again
    without reading the sources, so the resume sends nothing until they are restored."""

    FILES = "rejects.tsv", "rejected/000001-year.txt"

    def setUp(self):
        super().setUp()
        self.load_killed_between_inserts(batch=40)
        self.before = sorted(self.stored())

    def assert_refused_after(self, damage, name, message):
        path = self.work / name
        content = path.read_bytes()
        self.assertGreater(len(content), 0)
        damage(path)
        outcome, batches = self.count_batches(self.resume)
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertRegex(outcome.err, f"{name}: {message}, but the interrupted run has written")
        self.assertIn("restore the file", outcome.err)
        self.assertEqual(batches, 0)
        self.assertEqual(sorted(self.stored()), self.before)
        path.write_bytes(content)

    def test_a_removed_reject_file_is_asked_for(self):
        for name in self.FILES:
            with self.subTest(file=name):
                self.assert_refused_after(lambda path: path.unlink(), name, "was removed or moved")
        self.assert_completed(self.resume())

    def test_records_that_were_corrected_and_are_longer(self):
        for name in self.FILES:
            with self.subTest(file=name):
                self.assert_refused_after(lambda path: path.write_bytes(path.read_bytes().replace(b"|", b"| ")),
                                          name, "was changed")
        self.assert_completed(self.resume())

    def test_a_truncated_reject_file_is_asked_for(self):
        for name in self.FILES:
            with self.subTest(file=name):
                self.assert_refused_after(lambda path: os.truncate(path, 10), name, "holds 10 bytes")
        self.assert_completed(self.resume())


class TwoAtOnce(ResumeCase):
    def test_the_second_loader_on_a_work_directory_is_refused(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.proxy.on_batch(10, proxy.call(gate.wait))
        first = self.begin()
        self.wait_for(lambda: self.proxy.batches >= 10, "the tenth batch")
        for more in ([], ["--resume"]):
            self.begin(*more, uri=self.uri).wait().expect(support.EXIT_USAGE, "another command")
            self.assertFalse((self.work / "run.json").exists(), "written by the second loader")
        gate.set()
        self.assert_nothing_lost(first.wait())


class ClockSetBack(ResumeCase):
    """The wall clock is set back by a day, or by years, during a load or before its resume."""

    def environment(self, after, days):
        return support.preloaded("clock_back", CLOCK_BACK_AFTER=str(after), CLOCK_BACK_SECONDS=str(days * 86400))

    def test_during_the_load(self):
        outcome = self.start("shardload", *self.words(), environment=self.environment(after=12, days=1)).wait()
        self.assert_nothing_lost(outcome)

    def test_between_the_kill_and_the_resume(self):
        self.killed_load(batch=40)
        outcome = self.start("shardload", *self.words("--resume"),
                             environment=self.environment(after=0, days=4000)).wait()
        self.assert_completed(outcome)


class DiskFull(ResumeCase, server="mongod"):
    """The disk of the work directory becomes full during the load, gets free space, and the load is
    resumed."""

    SCRIPT = r"""
        set -e
        mount -t tmpfs -o size=96k none "$1"
        mkdir "$1/lost+found"
        head -c "$2" /dev/zero >"$1/lost+found/filler"
        shift 2
        status=0
        "$@" 2>first.err || status=$?
        echo $status >first.code
        rm -r "$WORK/lost+found"
        mount -o remount,size=64m "$WORK"
        if [ $status -gt 1 ]; then
            status=0
            "$@" --resume 2>second.err || status=$?
            if grep -q "no journal" second.err; then
                status=0
                "$@" 2>second.err || status=$?
            fi
        fi
        echo $status >second.code
        mkdir copy
        cp -r "$WORK/." copy
        umount "$WORK"
    """

    def test_full_after_any_number_of_pages_the_load_can_be_resumed(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
            self.skipTest("this user may not mount anything, even in a namespace of its own")
        failed = 0
        for free in (0, 1, 2, 4, 7, 10, 14, 18):
            with self.subTest(pages_free=free):
                failed += self.fill((24 - free) << 12, f"{free}")
        self.assertGreater(failed, 3, "the disk was never full")

    def fill(self, used, name):
        self.client.drop_database(self.database_name)
        folder = self.scratch / f"run-{name}"
        folder.mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        words = [support.program("shardload"), *self.words()]
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", self.SCRIPT, "sh", self.work, str(used),
             *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=support.LIMIT,
            env=support.clean_environment(WORK=str(self.work)), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        code, code_of_resume = (int((folder / f"{which}.code").read_text()) for which in ("first", "second"))
        errors = (folder / "first.err").read_text()
        if code > 1:
            self.assertRegex(errors, "(?i)no space left|disk")
            errors += (folder / "second.err").read_text()
        self.work = folder / "copy"
        self.assert_completed(support.Outcome(code_of_resume, "", errors, 0))
        return code > 1


class DamagedJournal(ResumeCase, server="mongod"):
    """A journal that was truncated by a crash, or damaged on disk. Blocks without a valid entry are
    sent again; no block counts as completed that was not."""

    def setUp(self):
        super().setUp()
        self.killed_load(batch=40)
        self.good = self.journal()
        self.stored_ids = [support.key_of(raw) for raw in self.stored()]
        self.other_collections = self.read_other_collections()

    def resume_from(self, journal):
        """Restores the state after the kill, and resumes with this journal."""
        self.database.t.delete_many({"_id": {"$nin": self.stored_ids}})
        for name, documents in self.other_collections.items():
            self.database[name].delete_many({})
            self.database[name].insert_many(documents)
        (self.work / "journal").write_bytes(journal)
        return self.resume()

    def test_truncated_in_its_last_entries(self):
        step = max(17 // fault_case.ROUNDS, 1)
        for cut in range(len(self.good) - 1, len(self.good) - 300, -step):
            with self.subTest(cut=cut, of=len(self.good)):
                self.assert_completed(self.resume_from(self.good[:cut]))

    def test_zeros_after_its_end(self):
        """A file system leaves them when it has extended a file, but not yet written the data."""
        self.assert_completed(self.resume_from(self.good + bytes(500)))

    def test_a_flipped_bit(self):
        draw = random.Random(7)
        for _ in range(15 * fault_case.ROUNDS):
            bit = draw.randrange(len(self.good) * 8)
            with self.subTest(byte=bit // 8, bit=bit % 8, of=len(self.good)):
                damaged = bytearray(self.good)
                damaged[bit // 8] ^= 1 << bit % 8
                outcome = self.resume_from(damaged)
                if bit // 8 < self.end_of_begun():
                    outcome.expect(support.EXIT_USAGE, "journal")
                else:
                    self.assert_completed(outcome)

    def end_of_begun(self):
        first = len(journal_reader.format_record())
        return first + 12 + int.from_bytes(self.good[first:first + 4], "little")


class ImpossibleBlock(ResumeCase, server="mongod"):
    """The number of a block in a damaged journal does not decide how much memory a resume needs. In a
    compressed source a block may be short, so the offset permits any number."""

    @classmethod
    def make_source(cls, folder):
        return super().make_source(folder, resume_case.gzipped)

    def test_a_block_beyond_all_sources_is_refused(self):
        self.killed_load(batch=40)
        good = self.journal()
        last = journal_reader.Journal(good).entries[-1]
        for number in 1 << 27, (1 << 28) - 1, 1 << 28, (1 << 40) - 1:
            entry = last._replace(sequence=number, offset=(1 << 40) - 1)
            (self.work / "journal").write_bytes(good + journal_reader.record(
                journal_reader.ENTRY, struct.pack(f"<{len(entry)}Q", *entry)))
            self.resume().expect(support.EXIT_USAGE, "names a block that the sources cannot have")
        (self.work / "journal").write_bytes(good)
        self.assert_completed(self.resume())


class LargeJournal(support.Case):
    """A journal decides how much memory a resume needs only by the records that it has, not by its
    length, nor by the numbers in it. These loads end before they connect."""

    def setUp(self):
        super().setUp()
        self.sources = [self.file(f"{n}.txt", support.mot_text([n])) for n in range(2)]
        self.target = ["--uri", f"mongodb://{support.HOST}:{support.free_port()}/", "-d", "d", "-c",
                       "t", "--work-dir", "work", "--progress", "none"]
        self.work = self.scratch / "work"
        self.work.mkdir()
        (self.work / "shardload.log").touch()
        version = self.shardload("--version").out.split()[1]
        recorded = journal_reader.Journal((journal_reader.RECORDING / "journal").read_bytes())
        begun = {**recorded.documents["begun"], "version": version, "options": {"db": "d", "collection": "t"}}
        self.good = journal_reader.encode({"begun": begun}, [])

    def resume(self, length, code, message):
        """Resumes from the good journal, which has been extended to this length without using disk
        space. Returns the peak memory in bytes."""
        (self.work / "journal").write_bytes(self.good)
        os.truncate(self.work / "journal", length)
        outcome = self.shardload("load", *self.target, "--resume", *self.sources, code=code,
                                 message=message, through=self.MEASURED)
        return int(outcome.out) << 10

    def test_the_end_of_the_file_is_not_read(self):
        least = self.resume(len(self.good), support.EXIT_SOURCE, "source 1 is")
        most = self.resume(2 << 30, support.EXIT_SOURCE, "source 1 is")
        self.assertLess(most, least + (20 << 20))

    def test_a_file_beyond_the_limit_is_refused(self):
        self.resume(4 << 30, support.EXIT_SOURCE, "source 1 is")
        peak = self.resume((4 << 30) + 1, support.EXIT_USAGE, "and a journal has at most 4294967296")
        self.assertLess(peak, 60 << 20)
