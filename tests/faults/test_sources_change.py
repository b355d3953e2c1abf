# SPDX-License-Identifier: Apache-2.0
"""A source that is replaced, appended to, truncated, rewritten or removed during its load, or before
--resume: the load ends with exit code 3, and the stored documents are those of the unchanged file.
Each change is made to each kind of source: to plain files during loads into a cluster, to the other
kinds during loads into a mongod, which need less processor time."""
import gzip
import io
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
import zipfile

import proxy
import resume_case
import support
from fault_case import Expected, expected_of, without_number
from resume_case import ResumeCase

ENDS = 1 << 17                # more bytes at each end of a file than a fingerprint reads
BLOCKS = 6
TIME = 1_700_000_000_123_456_789


def other_text(text):
    """A text of the same length, with its rows at the same offsets and the same ends."""
    return text[:ENDS] + text[ENDS:-ENDS].replace(b"SILVER", b"GOLDEN") + text[-ENDS:]


# Kinds of sources. The text is stored uncompressed, so that other_text() yields a file of equal size.

def plain(text):
    return text


def gzipped(text):
    return gzip.compress(text, 0, mtime=0)


def tarred(text):
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        info = tarfile.TarInfo("inner.txt")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return result.getvalue()


def zipped(text):
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("inner.txt"), text)
    return result.getvalue()


# Changes of a source: functions of its path and of other content of the same size.

def write_until_the_time_changes(path, write):
    """Repeats the write until the file's ctime has changed: the clock of a file system is coarse."""
    before = path.stat().st_ctime_ns
    while True:
        write()
        if path.stat().st_ctime_ns != before:
            return
        time.sleep(0.001)


def overwrite(path, content):
    with open(path, "r+b") as file:
        file.write(content)


def rewrite(path, other):
    write_until_the_time_changes(path, lambda: overwrite(path, other))


def rewrite_with_its_old_time(path, other):
    facts = path.stat()
    rewrite(path, other)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace(path, other):
    new = path.with_name("new.part")
    new.write_bytes(other)
    os.replace(new, path)


def append(path, _):
    with open(path, "ab") as file:
        file.write(support.ROW.format(id=7).encode() + b"\n")


def truncate(path, _):
    os.truncate(path, path.stat().st_size - 100)


def remove(path, _):
    path.unlink()


CHANGES = {rewrite: "was modified at", rewrite_with_its_old_time: "had its status changed at",
           replace: "was replaced by another file", append: "has grown from",
           truncate: "has shrunk from", remove: "was removed or renamed"}


class Change(ResumeCase):
    name = None
    batch = 12                # of 30: some blocks of the file have been completed by then

    @classmethod
    def make_source(cls, folder):
        """Only the contents; each test writes its own file."""
        if cls is Change:
            return None, None
        cls.text = resume_case.wide_text("a", BLOCKS)
        cls.good, cls.other = cls.wrap(cls.text), cls.wrap(other_text(cls.text))
        assert len(cls.good) == len(cls.other) and cls.good != cls.other
        return None, [Expected(cls.name).add(
            "inner.txt" if cls.wrap in (tarred, zipped) else cls.name, cls.text)]

    def setUp(self):
        super().setUp()
        self.path = self.scratch / "source" / self.name
        self.path.parent.mkdir()
        self.source = self.path
        self.put_back()

    def put_back(self):
        shutil.rmtree(self.path.parent)
        self.path.parent.mkdir()
        self.path.write_bytes(self.good)
        os.utime(self.path, ns=(TIME, TIME))

    def assert_only_original_documents(self):
        """Documents are stored, and each of them is of the unchanged text."""
        known = {raw for source in self.expected for raw in source.documents.values()}
        stored = {without_number(raw) for raw in self.stored()}
        self.assertGreater(len(stored), 0)
        self.assertLessEqual(stored, known)

    def start_over(self):
        self.client.drop_database(self.database_name)
        shutil.rmtree(self.work)
        self.put_back()


class EachChange:
    """Tests for each kind of source."""

    def assert_resume_refused(self):
        """--resume refuses the changed source, and stores nothing."""
        before = sorted(self.stored())
        outcome = self.resume().expect(support.EXIT_SOURCE)
        self.assertRegex(outcome.err, self.name + "|there are 1 sources, but the earlier run had 2")
        self.assertEqual(sorted(self.stored()), before)

    def load_and_change(self, change, batch):
        """A load during which the source is changed, which ends the load."""
        outcome = self.load_with_fault(lambda _: change(self.path, self.other), batch=batch)
        outcome.expect(support.EXIT_SOURCE, "restore the original source")
        self.assertRegex(outcome.err,
                         f"{self.name}: {CHANGES[change]}.*while it was being read")

    def test_a_source_changed_during_its_load_ends_the_load(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                self.load_and_change(change, self.batch)
                self.assert_only_original_documents()
                self.assertEqual(set(self.source_states()), {"started"})
                self.assertEqual(support.run_record(self.work)["exitCode"], support.EXIT_SOURCE)
                self.assert_resume_refused()
                self.put_back()
                self.assert_completed(self.resume())
            self.start_over()

    def test_a_source_changed_before_the_resume_is_refused(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                self.load_killed_between_inserts(batch=self.batch)
                change(self.path, self.other)
                self.assert_resume_refused()
                self.put_back()
                self.assert_completed(self.resume())
            self.start_over()


class Plain(EachChange, Change):
    name, wrap = "year.txt", staticmethod(plain)

    def test_a_resume_does_not_read_completed_blocks_of_an_unchanged_file(self):
        self.load_killed_between_inserts(batch=12)
        outcome = self.resume()
        self.assert_completed(outcome)
        self.assertNotIn("compared", outcome.text)

    def test_a_resume_accepts_a_copy_and_another_file_mode(self):
        def copy():
            shutil.copy2(self.path, self.path.with_name("copy"))
            os.replace(self.path.with_name("copy"), self.path)

        def protect():
            write_until_the_time_changes(self.path, lambda: self.path.chmod(0o400))
        for harmless in (copy, protect):
            with self.subTest(change=harmless.__name__):
                self.load_killed_between_inserts(batch=12)
                harmless()
                outcome = self.resume()
                self.assert_completed(outcome)
                self.assertIn("1 of the sources has been copied or moved", outcome.err)
            self.start_over()

    def test_a_resume_refuses_another_modification_time_and_prints_how_to_restore_it(self):
        self.load_killed_between_inserts(batch=12)
        os.utime(self.path)
        before = sorted(self.stored())
        outcome = self.resume().expect(support.EXIT_SOURCE)
        self.assertEqual(sorted(self.stored()), before)
        printed = re.search("touch -d ([0-9TZ:.-]+)", outcome.err).group(1)
        subprocess.run(["touch", "-d", printed, self.path], check=True)
        self.assertEqual(self.path.stat().st_mtime_ns, TIME)
        outcome = self.resume()
        self.assert_completed(outcome)
        self.assertIn("read again and compared", outcome.err)

    def test_a_resume_refuses_other_text_in_a_block_that_was_sent_in_part(self):
        """The journal has no entry of the block; the loader compares it with the stored documents."""
        self.load_with_fault(lambda running: running.signal(signal.SIGKILL), batch=4)
        self.assert_only_original_documents()
        rewrite_with_its_old_time(self.path, self.other)
        for more in ([], ["--no-verify"]):
            outcome = self.resume(*more).expect(support.EXIT_SOURCE)
            self.assertRegex(outcome.err, "year.txt: the text after byte [0-9]+ differs from")

    def test_a_file_replaced_before_the_last_batch_ends_the_load(self):
        """The loader has read the complete file by then."""
        self.load_with_fault(lambda _: replace(self.path, self.other), batch=30).expect(
            support.EXIT_SOURCE, "was replaced by another file")
        self.assertEqual(self.source_states(), ["started"])

    def test_a_file_changed_while_it_is_verified_ends_the_verification(self):
        self.assert_completed(self.begin().wait())
        for more in ([], ["--content"]):
            with self.subTest(words=more):
                self.put_back()
                # verify has read the file's identity before it sends the first command.
                self.proxy.on_command(1, proxy.call(lambda: rewrite(self.path, self.other)))
                running = self.start("shardload", "verify", "--uri", self.through, "-d",
                                     self.database_name, "-c", "t", "-j", 1, *more, self.path)
                outcome = running.wait()
                self.proxy.clear_faults()
                outcome.expect(support.EXIT_SOURCE, "was modified at")


class OfAServer(EachChange):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"


class Gzip(OfAServer, Change):
    name, wrap = "year.txt.gz", staticmethod(gzipped)


class Tar(OfAServer, Change):
    name, wrap = "years.tar", staticmethod(tarred)


class Zip(OfAServer, Change):
    name, wrap = "years.zip", staticmethod(zipped)


class Folder(OfAServer, Change):
    """The changed file is the second of two."""
    name, wrap = "b.txt", staticmethod(plain)
    batch = 34                # of 45; the first 15 are of the first file

    def test_a_file_changed_before_the_load_opens_it_ends_the_load(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                self.load_and_change(change, batch=5)
                self.put_back()
                self.assert_completed(self.resume())
            self.start_over()

    def test_a_file_added_during_the_load_ends_the_load(self):
        late = self.path.with_name("c.txt")
        self.load_with_fault(lambda _: late.write_bytes(self.other), batch=5).expect(
            support.EXIT_SOURCE, "c.txt: was added to a folder of the sources after the command began")
        self.assertEqual(set(self.source_states()), {"started"})
        late.unlink()
        self.assert_completed(self.resume())

    @classmethod
    def make_source(cls, folder):
        _, expected = super().make_source(folder)
        first = folder / "a.txt"
        first.write_bytes(resume_case.wide_text("z", 3))
        cls.first = first
        return None, [*expected, expected_of(first)]

    def setUp(self):
        super().setUp()
        self.source = self.path.parent

    def put_back(self):
        super().put_back()
        shutil.copy2(self.first, self.path.with_name("a.txt"))
