# SPDX-License-Identifier: Apache-2.0
"""What the tests of --resume share: a source of many blocks that is small enough to be loaded
often, in every wrapping, and loads to which something happens at a known place.

A block is a MiB of text, and what a journal is about. The rows are made wide, so that a block holds
few of them, and a load of a few thousand documents has many blocks."""
import gzip
import io
import os
import signal
import sys
import tarfile
import threading
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from fault_case import Expected, expected_of  # noqa: E402

BLOCKS = 12
ROWS_PER_BLOCK = 100
BATCH = 20


def wide_text(seed, blocks=BLOCKS):
    """So many blocks of rows of about 10 KB, each unlike the others; a few must be rejected."""
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


# How a text can be wrapped: each returns the source to load, and what must become of it.

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
    place = folder / "years"
    place.mkdir()
    paths = [place / "2014.txt", place / "2015.txt.gz", place / "2016.txt"]
    for path, text in zip(paths, texts):
        path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    return place, [expected_of(path) for path in paths]


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


class ResumeCase(fault_case.ProxyCase):
    wrapping = staticmethod(plain)

    @classmethod
    def make_source(cls, folder):
        texts = [wide_text(seed, BLOCKS // 3) for seed in "abc"]
        if cls.wrapping in (plain, gzipped):
            texts = [wide_text("a")]
        return cls.wrapping(folder, texts)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear_balancer)

    def words(self, *more, **where):
        return super().words(*more, **{"size": BATCH, **where})

    def clear_balancer(self):
        """What loads that were killed have left would count for those of the next test."""
        self.client.shardload.balancer.delete_many({})
        if self.client.admin.command("hello").get("msg") == "isdbgrid":
            self.client.admin.command("balancerStart")

    # A load that something happens to

    def journal(self):
        try:
            return (self.work / "journal").read_bytes()
        except FileNotFoundError:
            return b""

    def wait_for_journal(self, limit=10):
        """Until it grows, which takes a second or so if some block has just been finished; on a busy
        machine that may have been written already, and then it does not grow any more."""
        before, end = len(self.journal()), time.monotonic() + limit
        while len(self.journal()) <= before and time.monotonic() < end:
            time.sleep(0.0005)

    def struck(self, strike, *more, batch=None, command=None, action=proxy.call, **where):
        """A load to which `strike(running)` is done at that batch or command, counted from its
        start. `action` makes the proxy's action of a function. Returns the outcome."""
        begun = threading.Event()

        def do():
            begun.wait()
            strike(running)
        action = action(do)
        if batch:
            self.proxy.on_batch(batch, action)
        else:
            self.proxy.on_command(command, action)
        running = self.begin(*more, **where)
        begun.set()
        outcome = running.wait()
        self.proxy.forget()
        return outcome

    def interrupted(self, *more, batch=30, **where):
        """A load that was killed at that batch, when its journal held all that was finished."""
        def kill(running):
            self.wait_for_journal()
            running.signal(signal.SIGKILL)
        outcome = self.struck(kill, *more, batch=batch, **where)
        self.assertNotIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS), outcome.text)
        return outcome

    def interrupted_between_inserts(self, *more, **where):
        """The same with one thread, whose last batch does not reach the server: no insert is under
        way any more, so that the collection stays as it is."""
        return self.interrupted(*more, threads=1,
                                action=lambda kill: proxy.cut_request(0, before=kill), **where)

    def resume(self, *more, **where):
        return self.begin("--resume", *more, **where).wait()

    def sent(self, action):
        """How many batches an action sends."""
        before = self.proxy.batches
        result = action()
        return result, self.proxy.batches - before

    def assert_completed(self, outcome):
        """A resumed load has brought everything there, and its account is that of the source."""
        self.assert_nothing_lost(outcome, again=None)
