# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests of --resume: a source that is loaded quickly and still has many blocks, as
a plain file, gzip file, folder or archive, and loads that are killed at a known batch.

A block is 1 MiB of text, and the journal has one entry per block. The rows are about 10 KB wide, so
that a block holds only some 100 documents."""
import contextlib
import ctypes
import gzip
import io
import os
import select
import signal
import tarfile
import time
import zipfile

import fault_case
import proxy
import support
from fault_case import Expected, expected_of

BLOCKS = 12
BATCH = 20
IN_MODIFY, IN_CREATE = 2, 0x100       # of <sys/inotify.h>


def wide_text(seed, blocks=BLOCKS):
    """`blocks` blocks of different rows of about 10 KB; a few of the rows must be rejected."""
    lines, size, row = [support.HEADER], 0, 0
    while size < (blocks << 20) - 30000:
        row += 1
        model = f"{seed}-{row} " * (10000 // len(f"{seed}-{row} "))
        line = support.ROW.format(id=row).replace("FIESTA", model)
        if row % 331 == 5:
            line = line.replace("|49828|", "|49 828|")
        lines.append(line)
        size += len(line) + 1
    return ("\n".join(lines) + "\n").encode()


# Kinds of sources. Each function stores the texts, and returns (the source, its [Expected]).

def plain(folder, texts):
    path = folder / "year.txt"
    path.write_bytes(b"".join(texts[:1]))
    return path, [expected_of(path)]


def gzipped(folder, texts):
    path = folder / "year.txt.gz"
    path.write_bytes(gzip.compress(texts[0], 1))
    return path, [expected_of(path)]


def several(folder, texts):
    """A folder of files, plain and gzipped."""
    source = folder / "years"
    source.mkdir()
    paths = [source / "2014.txt", source / "2015.txt.gz", source / "2016.txt"]
    for path, text in zip(paths, texts):
        path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    return source, [expected_of(path) for path in paths]


def tarred(folder, texts):
    path = folder / "years.tar.gz"
    expected = Expected(path.name)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number, text in enumerate(texts):
            info = tarfile.TarInfo(f"201{number}.txt")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
            expected.add(info.name, text)
    return path, [expected]


def zipped(folder, texts):
    path = folder / "years.zip"
    expected = Expected(path.name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"201{number}.txt", text)
            expected.add(f"201{number}.txt", text)
    return path, [expected]


@contextlib.contextmanager
def changes_of(folder):
    """Yields a function that waits until a file of the folder is written, or for so many seconds: as
    prompt as polling without a pause, but without its processor time. While the folder does not
    exist, it returns after some milliseconds."""
    libc = ctypes.CDLL(None, use_errno=True)
    notices = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if notices < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")

    watched = False

    def wait(seconds):
        nonlocal watched
        if watched:
            if select.select([notices], [], [], max(seconds, 0))[0]:
                os.read(notices, 1 << 16)
        elif libc.inotify_add_watch(notices, os.fsencode(folder), IN_MODIFY | IN_CREATE) < 0:
            time.sleep(min(max(seconds, 0), 0.005))
        else:
            watched = True    # the caller looks again: an earlier change was not noticed
    try:
        wait(0)
        yield wait
    finally:
        os.close(notices)


class ResumeCase(fault_case.ProxyCase):
    """`blocks` and `batch_size` give the number of batches of a load, some 60."""

    blocks, batch_size = BLOCKS, BATCH

    @classmethod
    def make_source(cls, folder, wrapping=plain):
        texts = [wide_text(seed, cls.blocks // 3) for seed in "abc"]
        if wrapping in (plain, gzipped):
            texts = [wide_text("a", cls.blocks)]
        return wrapping(folder, texts)

    def words(self, *more, **where):
        return super().words(*more, **{"size": self.batch_size, **where})

    # Interrupted loads

    def journal(self):
        try:
            return (self.work / "journal").read_bytes()
        except FileNotFoundError:
            return b""

    def wait_for_journal(self, limit=10):
        """Waits until the journal grows, about a second after a block was completed. On a busy
        machine that entry may have been written before: then this returns after `limit` seconds."""
        end = time.monotonic() + limit
        with changes_of(self.work) as wait_for_change:
            before = len(self.journal())
            while len(self.journal()) <= before and time.monotonic() < end:
                wait_for_change(end - time.monotonic())

    def load_with_fault(self, *arguments, **where):
        outcome = super().load_with_fault(*arguments, **where)
        self.proxy.clear_faults()    # one that was not reached must not hit the resumed load
        return outcome

    def killed_load(self, *more, batch=30, **where):
        """Kills a load at this batch, once its journal holds the completed blocks."""
        def kill(running):
            self.wait_for_journal()
            running.signal(signal.SIGKILL)
        outcome = self.load_with_fault(kill, *more, batch=batch, **where)
        self.assertNotIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS), outcome.text)
        return outcome

    def load_killed_between_inserts(self, *more, **where):
        """killed_load() with one thread, whose last batch does not reach the server: no insert is
        running when it returns, and the collection does not change any more."""
        return self.killed_load(*more, threads=1,
                                action=lambda kill: proxy.cut_request(0, before=kill), **where)

    def read_other_collections(self):
        """The documents of the collections beside the target: name -> documents."""
        return {name: list(self.database[name].find())
                for name in self.database.list_collection_names() if name != "t"}

    def resume(self, *more, **where):
        return self.begin("--resume", *more, **where).wait()

    def count_batches(self, action):
        """Returns (the action's result, the number of batches that the loader sent)."""
        before = self.proxy.batches
        result = action()
        return result, self.proxy.batches - before

    def assert_completed(self, outcome):
        """A resumed load has stored the complete source, and its totals are those of the source."""
        self.assert_nothing_lost(outcome, again=None)
        kept = [path.read_bytes().splitlines()[1:] for path in (self.work / "rejected").iterdir()]
        self.assertEqual(sorted(map(len, kept)), sorted(len(rejects) for source in self.expected
                                                        for rejects in source.rejects.values()))
