# SPDX-License-Identifier: Apache-2.0
"""A source that is replaced, appended to, cut, rewritten or removed while it is loaded, or between a
run and its --resume: the load ends with exit 3, and what the servers hold is text of the file as it
was. Each change is made to each kind of source, in the middle of a load into a real cluster."""
import gzip
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proxy  # noqa: E402
import resume_case  # noqa: E402
import support  # noqa: E402
from fault_case import Expected, expected_of, without_number  # noqa: E402
from resume_case import ResumeCase  # noqa: E402

ENDS = 1 << 17                # what a fingerprint looks at is less
BLOCKS = 6
TIME = 1_700_000_000_123_456_789


def other_text(text):
    """As long, with the same rows in the same places, and the same ends."""
    return text[:ENDS] + text[ENDS:-ENDS].replace(b"SILVER", b"GOLDEN") + text[-ENDS:]


# Each stores a text without packing it: so a change in its middle leaves its size as it is.

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


# Each change is given the path and other bytes of the same size.

def until_later(path, write):
    """The clock of a file system is coarse: writes again until the file has another time."""
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
    until_later(path, lambda: overwrite(path, other))


def rewrite_with_its_old_time(path, other):
    facts = path.stat()
    rewrite(path, other)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def replace(path, other):
    beside = path.with_name("beside.part")
    beside.write_bytes(other)
    os.replace(beside, path)


def append(path, _):
    with open(path, "ab") as file:
        file.write(support.ROW.format(id=7).encode() + b"\n")


def cut(path, _):
    os.truncate(path, path.stat().st_size - 100)


def remove(path, _):
    path.unlink()


CHANGES = {rewrite: "was modified at", rewrite_with_its_old_time: "had its status changed at",
           replace: "was replaced by another file", append: "has grown from",
           cut: "has shrunk from", remove: "was removed or renamed"}


class Change(ResumeCase):
    name = None
    batch = 12                # of 30, when some blocks of the file have been completed

    @classmethod
    def make_source(cls, folder):
        """The file that the tests change is made anew for each of them."""
        if cls is Change:
            return None, None
        cls.text = resume_case.wide_text("a", BLOCKS)
        cls.good, cls.other = cls.stored_as(cls.text), cls.stored_as(other_text(cls.text))
        assert len(cls.good) == len(cls.other) and cls.good != cls.other
        return None, [Expected(cls.name).add(
            "inner.txt" if cls.stored_as in (tarred, zipped) else cls.name, cls.text)]

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

    def only_of_the_old_text(self):
        """Each document that is there is one of the text as it was; returns how many there are."""
        stored = self.stored()
        for raw in stored:
            raw = without_number(raw)
            self.assertEqual(self.expected[0].documents.get(support.key_of(raw)), raw)
        return len(stored)

    def states(self):
        return [entry["state"] for entry in self.database["t.sources"].find({"state": {"$exists": 1}})]

    def forget(self):
        self.client.drop_database(self.database_name)
        shutil.rmtree(self.work)
        self.put_back()


class EachChange:
    """What holds for each kind of source."""

    def assert_resume_refused(self):
        """As it is now it is not the source of the journal."""
        before = sorted(self.stored())
        outcome = self.resume()
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertRegex(outcome.err, self.name + "|there are 1 sources, and were 2")
        self.assertEqual(sorted(self.stored()), before)

    def test_while_it_is_loaded(self):
        for change, said in CHANGES.items():
            with self.subTest(change=change.__name__):
                outcome = self.struck(lambda _, change=change: change(self.path, self.other),
                                      batch=self.batch)
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
                self.assertRegex(outcome.err, f"{self.name}: {said}.*while it was being read")
                self.assertIn("put the source back as it was", outcome.err)
                self.assertGreater(self.only_of_the_old_text(), 0)
                self.assertEqual(self.states(), ["started"])
                self.assertEqual(support.run_record(self.work)["exitCode"], support.EXIT_SOURCE)
                self.assert_resume_refused()
                self.put_back()
                self.assert_completed(self.resume())
            self.forget()

    def test_between_the_kill_and_the_resume(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                self.interrupted(batch=self.batch)
                change(self.path, self.other)
                self.assert_resume_refused()
                self.put_back()
                self.assert_completed(self.resume())
            self.forget()


class Plain(EachChange, Change):
    name, stored_as = "year.txt", staticmethod(plain)

    def test_a_resume_knows_an_unchanged_file_and_does_not_read_it_again(self):
        self.interrupted(batch=12)
        outcome = self.resume()
        self.assert_completed(outcome)
        self.assertNotIn("compared", outcome.err)

    def test_a_resume_accepts_a_copy_and_a_changed_status_of_the_same_text(self):
        def copy():
            shutil.copy2(self.path, self.path.with_name("copy"))
            os.replace(self.path.with_name("copy"), self.path)

        def protect():
            until_later(self.path, lambda: self.path.chmod(0o400))
        for harmless in (copy, protect):
            with self.subTest(change=harmless.__name__):
                self.interrupted(batch=12)
                harmless()
                outcome = self.resume()
                self.assert_completed(outcome)
                self.assertIn("1 of the sources has been copied or moved", outcome.err)
            self.forget()

    def test_a_resume_refuses_another_time_until_it_is_given_back(self):
        self.interrupted(batch=12)
        os.utime(self.path)
        before = sorted(self.stored())
        outcome = self.resume()
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertEqual(sorted(self.stored()), before)
        told = re.search("touch -d ([0-9TZ:.-]+)", outcome.err).group(1)
        subprocess.run(["touch", "-d", told, self.path], check=True)
        self.assertEqual(self.path.stat().st_mtime_ns, TIME)
        outcome = self.resume()
        self.assert_completed(outcome)
        self.assertIn("read again and compared", outcome.err)

    def test_other_text_in_blocks_that_were_sent_and_not_completed(self):
        """Nothing of them is in the journal; the stored documents show it."""
        self.struck(lambda running: running.signal(signal.SIGKILL), batch=4)
        self.assertGreater(self.only_of_the_old_text(), 0)
        rewrite_with_its_old_time(self.path, self.other)
        for more in ([], ["--no-verify"]):
            outcome = self.resume(*more)
            self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
            self.assertRegex(outcome.err, "year.txt: the text behind byte [0-9]+ differs from")

    def test_behind_the_last_block(self):
        """All is read and all but the last batch stored: the file must still be there."""
        outcome = self.struck(lambda _: replace(self.path, self.other), batch=30)
        self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
        self.assertIn("was replaced by another file", outcome.err)
        self.assertEqual(self.states(), ["started"])

    def test_while_it_is_verified(self):
        self.assert_completed(self.begin().wait())
        for more in ([], ["--content"]):
            with self.subTest(words=more):
                self.put_back()
                # Sources have been looked at before the first command is sent.
                self.proxy.on_command(1, proxy.call(lambda: rewrite(self.path, self.other)))
                running = self.start("shardload", "verify", "--uri", self.through, "-d",
                                     self.database_name, "-c", "t", "-j", 1, *more, self.path)
                outcome = running.wait()
                self.proxy.forget()
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
                self.assertIn("was modified at", outcome.err)


class Gzip(EachChange, Change):
    name, stored_as = "year.txt.gz", staticmethod(gzipped)


class Tar(EachChange, Change):
    name, stored_as = "years.tar", staticmethod(tarred)


class Zip(EachChange, Change):
    name, stored_as = "years.zip", staticmethod(zipped)


class Folder(EachChange, Change):
    """The changed file is the second of two."""
    name, stored_as = "b.txt", staticmethod(plain)
    batch = 34                # of 45, the first 15 of which are of the first file

    def test_before_it_is_opened_to_be_loaded(self):
        for change, said in CHANGES.items():
            with self.subTest(change=change.__name__):
                outcome = self.struck(lambda _, change=change: change(self.path, self.other),
                                      batch=5)
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
                self.assertRegex(outcome.err, f"{self.name}: {said}.*while it was being read")
                self.put_back()
                self.assert_completed(self.resume())
            self.forget()

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

    def only_of_the_old_text(self):
        known = {raw for source in self.expected for raw in source.documents.values()}
        stored = [without_number(raw) for raw in self.stored()]
        self.assertLessEqual(set(stored), known)
        return len(stored)

    def states(self):
        return sorted(set(super().states()))


if __name__ == "__main__":
    import tap
    tap.main()
