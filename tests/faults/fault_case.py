# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: servers of their own that can be killed, loads that are in the middle
when something happens to them, and the proof that nothing was lost.

The proof trusts nothing of the product: the documents that the cluster holds are compared, byte by
byte, with those of a second reading of the same file by another program (tests/mot_reader.py), the
rejects with that reading's rejects, and the figures of run.json with both."""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[up]) for up in (0, 1)]
import mot_reader  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from support import pymongo  # noqa: E402

LOCALCLUSTER = support.TREE / "tools" / "localcluster"
ROUNDS = int(os.environ.get("SHARDLOAD_FAULT_ROUNDS") or 1)   # more of the same at other moments
BATCH = 100


class Servers:
    """A cluster of the test's own: its members may be killed, and come back on the same port."""

    def __init__(self, folder, *shape):
        self.folder = folder
        self.uri = self.tool("up", *shape, "--cache", "0.25")

    def tool(self, verb, *words):
        done = subprocess.run(
            [sys.executable, LOCALCLUSTER, verb, "--dir", self.folder, *map(str, words)],
            capture_output=True, text=True, timeout=support.LIMIT, check=False)
        if done.returncode != 0:
            raise AssertionError(f"localcluster {verb} failed: {done.stderr}")
        return done.stdout.strip()

    def process(self, name):
        state = json.loads((self.folder / "cluster.json").read_text("utf-8"))
        return next(entry for entry in state["processes"] if entry["name"] == name)

    def names(self):
        state = json.loads((self.folder / "cluster.json").read_text("utf-8"))
        return [entry["name"] for entry in state["processes"]]

    def port(self, name):
        return self.process(name)["port"]

    def signal(self, name, number):
        os.kill(self.process(name)["pid"], number)

    def kill(self, name):
        """Returns when the process is gone."""
        handle = os.pidfd_open(self.process(name)["pid"])
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not select.select([handle], [], [], support.LIMIT)[0]:
                raise AssertionError(f"{name} does not end")
        finally:
            os.close(handle)

    def start_again(self):
        """Returns when everything that had died accepts connections again."""
        self.tool("up")

    def kill_and_start_again(self, name):
        self.kill(name)
        self.start_again()

    def address(self, name):
        return f"mongodb://{support.HOST}:{self.port(name)}/?directConnection=true"

    def member(self, name):
        """A client of that member alone."""
        return pymongo.MongoClient(self.address(name), serverSelectionTimeoutMS=20000)

    def primary_of(self, name, members):
        """Which of the members name-0, name-1, ... is the primary, waited for."""
        for attempt in range(600):
            member = f"{name}-{attempt % members}"
            try:
                with pymongo.MongoClient(self.address(member),
                                         serverSelectionTimeoutMS=500) as client:
                    if client.admin.command("hello")["isWritablePrimary"]:
                        return member
            except pymongo.errors.PyMongoError:
                continue
        raise AssertionError(f"{name} has no primary")

    def step_down(self, member):
        with self.member(member) as client:
            client.admin.command("replSetStepDown", 30, force=True)


PLACE = (1 << 40) - 1         # of an _id: where in its source a document stands


def without_number(raw):
    """A document with the number of its source taken out of its _id."""
    place = support.key_of(raw) & PLACE
    return raw[:9] + place.to_bytes(8, "little") + raw[17:]


class Expected:
    """What a source must become: `documents` by their place, as bytes without the source's number;
    of each file or member, the rejects' places as (line, offset, column)."""

    def __init__(self, name):
        self.name = name
        self.documents, self.rejects = {}, {}
        self.end = 0

    def add(self, name, text):
        """All of a file, or the next member of an archive; they follow each other."""
        reading = mot_reader.read_bytes(text, number=0)
        for document in reading.documents:
            place = mot_reader.document_id(0, self.end + self.offset_of(document["_id"]))
            self.documents[place] = support.encoded({**document, "_id": place})
        self.rejects[name] = [(reject.line, self.end + reject.offset, reject.column)
                              for reject in reading.rejects]
        self.end += len(text)
        return self

    @staticmethod
    def offset_of(place):
        stripe = int(format(place >> 32 & 0xFF, "08b")[::-1], 2)
        return (place >> 20 & 0xFFF) << 28 | stripe << 20 | place & 0xFFFFF

    @property
    def records(self):
        return len(self.documents) + self.rejected

    @property
    def rejected(self):
        return sum(map(len, self.rejects.values()))


def expected_of(path):
    return Expected(path.name).add(path.name, mot_reader.content(path))


class FaultCase(support.ClusterCase):
    """`shape` starts servers for this class alone; without it, those of the whole run are used.
    `source` is what most tests load, and `expected` what must become of it."""

    shape = None
    rows = 8000               # in one block of a MiB, and so on one shard

    @classmethod
    def setUpClass(cls):
        if cls.shape is None:
            super().setUpClass()
        else:
            cls.start_servers()
        cls.source, cls.expected = cls.make_source(cls.class_folder())

    @classmethod
    def class_folder(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="shardload-faults-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @classmethod
    def start_servers(cls):
        support.need_driver()
        support.program("shardload-router")
        cls.servers = Servers(cls.class_folder() / "servers", *cls.shape)
        cls.addClassCleanup(cls.servers.tool, "down")
        cls.uri = cls.servers.uri
        cls.client = pymongo.MongoClient(cls.uri, serverSelectionTimeoutMS=60000)
        cls.addClassCleanup(cls.client.close)

    @classmethod
    def make_source(cls, folder):
        """A made-up file with every oddity, and some records that must be rejected. Returns what to
        load, and what to expect."""
        path = folder / "year.txt"
        words = ["--rows", cls.rows, "--dirt", "heavy", "--bad", 7, path]
        subprocess.run([support.program("shardload-datagen"), *map(str, words)], check=True,
                       env=support.clean_environment())
        return path, [expected_of(path)]

    def setUp(self):
        super().setUp()
        self.work = self.scratch / "work"

    # Loads

    def words(self, *more, uri=None, source=None, size=BATCH, threads=1):
        return ["load", "--uri", uri or self.uri, "-d", self.database_name, "-c", "t",
                "--work-dir", self.work, "--progress", "json", "-j", threads,
                "--batch-size", size, *more, source or self.source]

    def begin(self, *more, **where):
        return self.start("shardload", *self.words(*more, **where))

    def wait_for_documents(self, running, count):
        """Until so many documents are there, by the server's own word; the load must go on then."""
        def there():
            try:
                return self.database.t.estimated_document_count() >= count
            except pymongo.errors.PyMongoError:
                return False
        self.wait_for(lambda: not running.running() or there(), f"{count} documents")
        self.assertTrue(running.running(), f"ended too soon: {running.text()}")

    def wait_for_word(self, running, word):
        self.wait_for(lambda: not running.running() or word in running.text(), f"'{word}'")
        self.assertIn(word, running.text())

    # The proof

    def assert_content(self, expected=None):
        """The collection holds exactly these sources, each under a number of its own."""
        found = {}
        for raw in self.stored():
            raw, number = without_number(raw), support.key_of(raw) >> 40
            documents = found.setdefault(number, {})
            self.assertNotIn(support.key_of(raw), documents, "an _id comes twice")
            documents[support.key_of(raw)] = raw
        left = list(expected or self.expected)
        for number, documents in sorted(found.items()):
            self.assertTrue(left, f"number {number} belongs to no source")
            source = max(left, key=lambda s: len(s.documents.items() & documents.items()))
            left.remove(source)
            for what, some in (("missing", source.documents.keys() - documents.keys()),
                               ("too many", documents.keys() - source.documents.keys())):
                if some:
                    self.fail(f"{source.name}: {len(some)} documents are {what}, as that at byte "
                              f"{Expected.offset_of(min(some))}")
            for place, raw in source.documents.items():
                if documents[place] != raw:
                    self.fail(f"{source.name}, byte {Expected.offset_of(place)}:\n  loaded   "
                              f"{support.readable(documents[place])}\n  expected "
                              f"{support.readable(raw)}")
        self.assertEqual([source.name for source in left], [], "nothing of these is there")

    def assert_nothing_lost(self, outcome, again=0, expected=None):
        """Exactly the sources are there, the figures say so, and the balancer is as it was.
        `again`: how many documents were there already; None where that depends on the moment."""
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertNotIn("Sanitizer", outcome.err)   # their exit code is the same
        expected = expected or self.expected
        self.assert_content(expected)
        self.assert_accounting(
            self.work, records=sum(source.records for source in expected),
            rejectedByParser=sum(source.rejected for source in expected), rejectedByServer=0,
            undelivered=0)
        for source in expected:
            for name, rejects in source.rejects.items():
                self.assert_rejects(self.work, name, rejects)
        figures = support.run_record(self.work)["accounting"]
        if again is not None:
            self.assertEqual(figures["alreadyThere"], again, figures)
        self.assert_balancer()
        return figures

    def assert_balancer(self):
        if self.client.admin.command("hello").get("msg") == "isdbgrid":
            self.assertEqual(self.balancer_mode(), "full")


class ProxyCase(FaultCase):
    """The loader speaks to the lone server, or to the router, through a proxy."""

    def setUp(self):
        super().setUp()
        port = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        self.proxy = proxy.Proxy(port)
        self.addCleanup(self.proxy.close)
        self.through = f"mongodb://{support.HOST}:{self.proxy.port}/"

    def words(self, *more, **where):
        return super().words(*more, **{"uri": self.through, **where})
