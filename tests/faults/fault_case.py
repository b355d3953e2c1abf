# SPDX-License-Identifier: Apache-2.0
"""Base classes of the fault tests: servers that a test can kill, loads that are running when a fault
occurs, and the check that nothing was lost.

The check is independent of the loader: tests/mot_reader.py reads the same source, and its documents
are compared with those on the cluster byte by byte, its rejects with the reject files, and both with
the figures of run.json."""
import os
import signal
import subprocess
import threading

import mot_reader
import proxy
import secure_servers
import servers
import support
from support import pymongo

ROUNDS = int(os.environ.get("SHARDLOAD_FAULT_ROUNDS") or 1)   # multiplies the random fault times
BATCH = 100


class Servers(servers.Servers):
    """A cluster for one test class."""

    def __init__(self, folder, *shape):
        super().__init__(folder, *shape, "--cache", "0.25", *servers.SAVING)

    def address(self, name):
        return f"mongodb://{support.HOST}:{self.port(name)}/?directConnection=true"

    def member(self, name):
        """A client that connects to this server only."""
        return pymongo.MongoClient(self.address(name), serverSelectionTimeoutMS=20000)

    def primary_of(self, name, members):
        """Waits until one of the servers name-0, name-1, ... is primary, and returns its name."""
        for attempt in range(600):
            member = f"{name}-{attempt % members}"
            try:
                with pymongo.MongoClient(self.address(member),
                                         serverSelectionTimeoutMS=500) as client:
                    if support.hello(client)["ismaster"]:
                        return member
            except pymongo.errors.PyMongoError:
                continue
        raise AssertionError(f"{name} has no primary")

    def step_down(self, member):
        with self.member(member) as client:
            client.admin.command("replSetStepDown", 30, force=True)


POSITION = (1 << 40) - 1      # the bits of an _id below the source's number: the record's position


def without_number(raw):
    """The document with 0 as the number of the source in its _id."""
    position = support.key_of(raw) & POSITION
    return raw[:9] + position.to_bytes(8, "little") + raw[17:]


class Expected:
    """The expected result of loading one source. `documents`: position -> BSON with 0 as the number
    of the source. `rejects`: name of a file or archive entry -> (line, offset, column) of each."""

    def __init__(self, name):
        self.name = name
        self.documents, self.rejects = {}, {}
        self.end = 0

    def add(self, name, text):
        """Adds the text of the file, or of the next entry of the archive."""
        reading = mot_reader.read_bytes(text, number=0)
        for document in reading.documents:
            position = mot_reader.document_id(0, self.end + self.offset_of(document["_id"]))
            self.documents[position] = support.encoded({**document, "_id": position})
        self.rejects[name] = [(reject.line, self.end + reject.offset, reject.column)
                              for reject in reading.rejects]
        self.end += len(text)
        return self

    @staticmethod
    def offset_of(position):
        """The byte offset in the source (document_id.h)."""
        stripe = int(format(position >> 32 & 0xFF, "08b")[::-1], 2)
        return (position >> 20 & 0xFFF) << 28 | stripe << 20 | position & 0xFFFFF

    @property
    def records(self):
        return len(self.documents) + self.rejected

    @property
    def rejected(self):
        return sum(map(len, self.rejects.values()))


def expected_of(path):
    return Expected(path.name).add(path.name, mot_reader.content(path))


class FaultCase(support.ClusterCase):
    """Loads `source`, and compares the collection with `expected`, a list of Expected. `shape`:
    arguments of tools/localcluster for servers of this class alone; None: the shared servers."""

    shape = None
    rows = 8000               # in one block of 1 MiB, and so on one shard

    @classmethod
    def setUpClass(cls):
        if cls.shape is None:
            super().setUpClass()
        else:
            cls.start_servers()
        cls.source, cls.expected = cls.make_source(secure_servers.folder_of_tests(cls))

    @classmethod
    def start_servers(cls):
        support.program("shardload-router")
        cls.servers = Servers(secure_servers.folder_of_tests(cls) / "servers", *cls.shape)
        cls.addClassCleanup(cls.servers.down)
        cls.uri = cls.servers.uri
        cls.client = support.connect(cls.uri)
        cls.addClassCleanup(cls.client.close)

    @classmethod
    def make_source(cls, folder):
        """Generates a file in which 7 records must be rejected. Returns (path, its [Expected])."""
        path = folder / "year.txt"
        words = ["--rows", cls.rows, "--dirt", "heavy", "--bad", 7, path]
        subprocess.run([support.program("shardload-datagen"), *map(str, words)], check=True,
                       env=support.clean_environment())
        return path, [expected_of(path)]

    def setUp(self):
        super().setUp()
        self.work = self.scratch / "work"
        self.addCleanup(self.clear_balancer)

    # Loads

    def words(self, *more, uri=None, source=None, size=BATCH, threads=1):
        return ["load", "--uri", uri or self.uri, "-d", self.database_name, "-c", "t",
                "--work-dir", self.work, "--progress", "json", "-j", threads,
                "--batch-size", size, *more, source or self.source]

    def begin(self, *more, **where):
        return self.start("shardload", *self.words(*more, **where))

    def stop_load(self, running, count):
        """Stops the load with SIGSTOP once the server holds `count` documents. Returns the load."""
        self.wait_for_documents(running, count)
        running.signal(signal.SIGSTOP)
        self.addCleanup(running.signal, signal.SIGCONT)
        return running

    def continue_load(self, running):
        """Continues a stopped load, and returns its outcome."""
        running.signal(signal.SIGCONT)
        return running.wait()

    def wait_for_word(self, running, word):
        self.wait_for(lambda: not running.running() or word in running.text(), f"'{word}'")
        self.assertIn(word, running.text())

    # Nothing is lost

    def assert_content(self, expected=None):
        """The collection holds exactly the documents of these sources, each source under its own
        number."""
        by_number = {}
        for raw in self.stored():
            raw, number = without_number(raw), support.key_of(raw) >> 40
            documents = by_number.setdefault(number, {})
            self.assertNotIn(support.key_of(raw), documents, "an _id occurs twice")
            documents[support.key_of(raw)] = raw
        missing = list(expected or self.expected)
        for number, documents in sorted(by_number.items()):
            self.assertTrue(missing, f"number {number} belongs to no source")
            source = max(missing, key=lambda s: len(s.documents.items() & documents.items()))
            missing.remove(source)
            for problem, positions in (("missing", source.documents.keys() - documents.keys()),
                                       ("too many", documents.keys() - source.documents.keys())):
                if positions:
                    self.fail(f"{source.name}: {len(positions)} documents are {problem}, the first "
                              f"of them at byte {Expected.offset_of(min(positions))}")
            for position, raw in source.documents.items():
                if documents[position] != raw:
                    self.fail(f"{source.name}, byte {Expected.offset_of(position)}:\n  loaded   "
                              f"{support.readable(documents[position])}\n  expected "
                              f"{support.readable(raw)}")
        self.assertEqual([source.name for source in missing], [], "sources without a document")

    def assert_nothing_lost(self, outcome, again=0, expected=None):
        """The collection holds exactly the sources, the figures and rejects are right, and the
        balancer runs. `again`: the number of documents that the load found already stored; None
        where it depends on the time of the fault."""
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertNotIn("Sanitizer", outcome.text)   # sanitizers exit with the same code
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
            self.assertEqual(figures["alreadyStored"], again, figures)
        self.assert_balancer()
        return figures

    def primaries(self):
        """The primaries of two shards with three members each."""
        return [self.servers.primary_of(shard, 3) for shard in ("s0", "s1")]

    def assert_new_primaries(self, old):
        self.assertFalse(set(self.primaries()) & set(old), "no other primary was elected")

    def assert_balancer(self):
        if self.is_sharded():
            self.assertEqual(self.balancer_mode(), "full")


class ProxyCase(FaultCase):
    """The loader connects to the standalone server, or to the router, through a proxy."""

    def setUp(self):
        super().setUp()
        self.proxy = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(self.proxy.close)
        self.through = self.proxy_uri(self.proxy)

    def words(self, *more, **where):
        return super().words(*more, **{"uri": self.through, **where})

    def load_with_fault(self, fault, *more, batch=None, command=None, action=proxy.call, **where):
        """Loads, and calls `fault(running)` at the batch or command of this number, counted from
        the start of the load. `action`: makes the proxy's action from a function without arguments.
        Returns the outcome."""
        started = threading.Event()

        def call_fault():
            started.wait()
            fault(running)
        if batch:
            self.proxy.on_batch(batch, action(call_fault))
        else:
            self.proxy.on_command(command, action(call_fault))
        running = self.begin(*more, **where)
        started.set()
        return running.wait()
