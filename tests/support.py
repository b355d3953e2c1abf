# SPDX-License-Identifier: Apache-2.0
"""Base classes and helpers of the Python tests: they find the programs, run them with a time limit,
read the files that they write, and compare documents byte by byte.

Expected documents are encoded with the Python driver's own BSON library and compared as bytes, so
that a wrong type, a wrong order of keys or a duplicate key fails as well as a wrong value.
"""
import collections
import contextlib
import csv
import fcntl
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from typing import NamedTuple

import bson
import bson.int64
import bson.json_util
import bson.raw_bson
import pymongo

import servers

TREE = pathlib.Path(__file__).resolve().parent.parent
REAL_SAMPLES = pathlib.Path(os.environ.get("SHARDLOAD_SAMPLES") or TREE.parent / "shared" / "data")
# Without the real sample files, tools/test makes files of the same names and layouts (stand_ins.py).
SAMPLES = REAL_SAMPLES if REAL_SAMPLES.is_dir() else pathlib.Path(os.environ.get("SHARDLOAD_STAND_INS", REAL_SAMPLES))
LIMIT = 120          # seconds after which a test kills a program and fails
HOST = "127.0.0.1"
NOBODY = 65534       # user and group without rights

EXIT_OK, EXIT_REJECTS, EXIT_USAGE, EXIT_SOURCE, EXIT_CLUSTER = 0, 1, 2, 3, 4
EXIT_VERIFICATION, EXIT_RESOURCES, EXIT_INTERRUPTED = 5, 6, 130

# The MOT files among the samples: published records, and records written in a published dialect.
MOT_TESTS = [
    "test_result_2005_2013_original_style.txt", "test_result_2005_2016_pipe_header.txt",
    "test_result_2018_2020_comma.csv", "test_result_2021_quoted.csv",
    "test_result_2021_quoted_joined_a.csv", "test_result_2022_2023_pipe.csv",
    "dirty_verbatim_2015_extra_pipe.txt", "constructed_dirty_comma_backslash.csv",
    "constructed_dirty_pipe.csv",
]
MOT_ITEMS = ["test_item_2005_pipe_header.txt", "test_item_2023_pipe.csv"]
MOT_LOOKUPS = ["item_detail_pre2018.txt", "item_group_pre2018.txt", "mdr_fuel_types.csv",
               "mdr_rfr_location_partial.csv", "mdr_test_outcome.csv", "mdr_test_type.csv"]

HEADER = ("test_id|vehicle_id|test_date|test_class_id|test_type|test_result|test_mileage|"
          "postcode_area|make|model|colour|fuel_type|cylinder_capacity|first_use_date")
ROW = "{id}|700{id}|2015-11-20|4|NT|P|49828|UB|FORD|FIESTA|SILVER|PE|1242|2005-10-17"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float

    @property
    def text(self):
        return self.out + self.err

    def expect(self, code, *messages):
        """Fails unless the exit code is this one (None: any) and standard error contains the messages; after a
        success they may also be among the results. Returns the outcome."""
        if code not in (None, self.code):
            raise AssertionError(f"exit code {self.code}, not {code}; it printed:\n{self.text}")
        for message in messages:
            if message not in (self.text if self.code in (EXIT_OK, EXIT_REJECTS) else self.err):
                raise AssertionError(f"standard error lacks '{message}':\n{self.text}")
        return self


def program(name):
    """The path of one of the project's programs; skips the test when it has not been built."""
    build = os.environ.get("SHARDLOAD_BUILD")
    if not build:
        raise unittest.SkipTest("SHARDLOAD_BUILD is not set")
    path = pathlib.Path(build) / "bin" / name
    if not path.exists():
        raise unittest.SkipTest(f"{name} has not been built")
    return str(path)


def sample(folder, name):
    path = SAMPLES / folder / name
    if not path.exists():
        raise unittest.SkipTest(f"no sample file {name}: set SHARDLOAD_SAMPLES")
    return path


def published():
    """Skips a test that compares figures or records of the published files."""
    if SAMPLES != REAL_SAMPLES:
        raise unittest.SkipTest("the sample files are generated: set SHARDLOAD_SAMPLES to the real ones")


def mot_sample(name):
    return sample("mot", name)


def isd_samples(*names):
    return [sample("isd", name) for name in names]


def cluster_uri(variable):
    uri = servers.shared_uri(variable)
    if not uri:
        raise unittest.SkipTest(f"neither {variable} nor {servers.FOLDER} is set: no such cluster was "
                                "started")
    return uri


# ---- facts on which versions of servers differ ----

def connect(uri, **more):
    """A client. Before server 5.0 the default write concern is 1: reads of the majority, with which the programs
    verify, might not see a write yet that has been acknowledged."""
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=60000, w="majority", **more)


def hello(client):
    """The reply to `hello`, under its older name: a mongos of 4.4.0 does not know the new one. The client may still
    believe that a router which was killed is there."""
    try:
        return client.admin.command("isMaster")
    except pymongo.errors.AutoReconnect:
        return client.admin.command("isMaster")


def shard_collection(client, namespace, **options):
    """Shards a collection. Before server 6.0 the database must be enabled first."""
    client.admin.command("enableSharding", namespace.partition(".")[0])
    client.admin.command("shardCollection", namespace, **options)


def catalog_entry(client, namespace):
    """The entry of config.collections; None if the collection is not sharded. Before server 5.0 dropped collections
    have entries too."""
    return client.config.collections.find_one({"_id": namespace, "dropped": {"$ne": True}})


def chunks_of(client, namespace):
    """The documents of config.chunks, in order. They name the collection by its UUID, before server 5.0 by its
    namespace."""
    entry = catalog_entry(client, namespace)
    return list(client.config.chunks.find({"$or": [{"uuid": entry["uuid"]}, {"ns": namespace}]}).sort("min")) \
        if entry else []


def port_of(uri):
    """The port of the first host of a connection string."""
    return int(uri.split("://")[1].partition("/")[0].split(",")[0].rpartition(":")[2])


def mot_text(ids):
    """An MOT file with one row for each of these test_ids."""
    return HEADER + "\n" + "".join(ROW.format(id=n) + "\n" for n in ids)


WIDE_ROWS = 100      # of wide_text() in a block


def wide_text(blocks, first=1, rows=WIDE_ROWS):
    """An MOT file of so many blocks of 1 MiB with that many rows each: for tests that need blocks, of
    which a server stores the few documents quickly."""
    count = blocks * rows
    return mot_text(range(first, first + count)).replace("FIESTA", "F" * ((1 << 20) // rows - 72))


def unlike_text(blocks, rows, seed):
    """As wide_text(), with different models in all rows, which gzip makes about four times shorter."""
    draw, quarter = random.Random(seed), ((1 << 20) // rows - 72) // 4
    lines = (ROW.format(id=n).replace("FIESTA", 2 * draw.randbytes(quarter).hex())
             for n in range(1, blocks * rows + 1))
    return HEADER + "\n" + "".join(line + "\n" for line in lines)


def reply_codes(verdict):
    """The server's error codes that src/send/reply.c lists with this verdict."""
    text = (TREE / "src" / "send" / "reply.c").read_text("utf-8")
    return [int(code) for code in re.findall(r"\{(\d+), SL_REPLY_" + verdict + r"\}", text)]


def clean_environment(**more):
    """The environment without settings that would change what the program does. The loads of tests are
    short; tests see the tables that such a load does not print (cluster/test_said.py does not)."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SHARDLOAD_")}
    kept.update({"LC_ALL": "C.UTF-8", "TERM": "dumb", "SHARDLOAD_VERBOSE": "yes"}, **more)
    return kept


def on_terminal(name, *words, columns=80):
    """Runs a program on a terminal of this width. Returns its exit code, and all that it writes there."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    text = b""
    with subprocess.Popen([program(name), *map(str, words)], stdout=theirs, stderr=theirs,
                          stdin=subprocess.DEVNULL, env=clean_environment()) as running:
        os.close(theirs)
        with contextlib.suppress(OSError):  # the last writer has closed the terminal
            while more := os.read(ours, 65536):
                text += more
    os.close(ours)
    return running.returncode, text.decode("utf-8")


def preloaded(name, **more):
    """The environment in which programs begin with the library NAME.so of the tests, whose C file describes
    its other variables. Skips the test if it has not been built."""
    library = pathlib.Path(program("shardload")).parent / "tests" / f"{name}.so"
    if not library.exists():
        raise unittest.SkipTest(f"{name}.so has not been built")
    # gcc's AddressSanitizer refuses to start behind another library unless it is asked not to compare.
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return clean_environment(LD_PRELOAD=str(library), ASAN_OPTIONS=options, **more)


def comma_environment(folder):
    """The environment in which programs begin in a locale with a decimal comma, which is made in `folder`
    (comma_locale.c). Skips the test if the locale cannot be made."""
    if not shutil.which("localedef"):
        raise unittest.SkipTest("there is no localedef to make a locale with a decimal comma")
    if not (folder / "de_DE.UTF-8").exists():
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise unittest.SkipTest(f"localedef cannot make the locale de_DE.UTF-8: {made.stderr}")
    return {**preloaded("comma_locale", LOCPATH=str(folder)), "LC_ALL": "de_DE.UTF-8"}


def bson_documents(data):
    """The documents of a BSON dump, as bytes."""
    documents, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "little")
        if length < 5 or at + length > len(data) or data[at + length - 1] != 0:
            raise AssertionError(f"invalid BSON dump at byte {at}")
        documents.append(data[at:at + length])
        at += length
    return documents


def encoded(document):
    """A document of an independent reader as the BSON that the loader must write."""
    return bson.encode({**document, "_id": bson.int64.Int64(document["_id"])})


def code_in_scopes(levels):
    """A document of code whose scope is a document of code, and so on: recursion overflows the stack."""
    sizes = [5 + 17 * level for level in range(levels, 0, -1)]
    return b"".join(struct.pack("<i3siiB", size, b"\x0fa\0", size - 8, 1, 0) for size in sizes) \
        + b"\5\0\0\0\0" + bytes(levels)


def readable(raw):
    try:
        return repr(bson.decode(raw))
    except bson.errors.BSONError as error:
        return f"{raw!r} ({error})"


def free_port():
    """A port on which no program listens."""
    import socket
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Running:
    """A program in the background. It is killed when the test ends."""

    def __init__(self, case, words, folder, stdin=subprocess.DEVNULL, environment=None):
        self.folder = folder
        self.out = open(folder / f"stdout-{time.monotonic_ns()}", "w+b")
        self.err = open(folder / f"stderr-{time.monotonic_ns()}", "w+b")
        self.process = subprocess.Popen(
            words, cwd=folder, stdin=stdin, stdout=self.out, stderr=self.err,
            env=environment or clean_environment())
        case.addCleanup(self.stop)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """Kills the program, and waits until it has ended."""
        self.process.kill()
        return self.wait()

    def interrupt(self, *messages, limit=LIMIT):
        """Ends the program by Ctrl-C; it must report these messages. Returns the outcome."""
        self.signal(signal.SIGINT)
        return self.wait(limit).expect(EXIT_INTERRUPTED, *messages)

    def running(self):
        return self.process.poll() is None

    def wait(self, limit=LIMIT):
        begun = time.monotonic()
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.process.args[:2]} did not end within {limit} s: {self.text()}") from None
        return Outcome(code, self._read(self.out), self._read(self.err), time.monotonic() - begun)

    def text(self):
        return self._read(self.out) + self._read(self.err)

    def progress(self):
        """The reports of `--progress json` so far, without the line that is being written."""
        complete = self._read(self.out).rpartition("\n")[0]
        return [json.loads(line) for line in complete.splitlines()]

    def stop(self):
        if self.running():
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.out.close()
        self.err.close()

    @staticmethod
    def _read(file):
        return os.pread(file.fileno(), 1 << 24, 0).decode("utf-8", "backslashreplace")


class Case(unittest.TestCase):
    """A test with its own scratch folder, the current directory of every program that it runs."""

    maxDiff = None

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="shardload-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self._counter = itertools.count(1)

    # Programs

    def start(self, name, *words, stdin=subprocess.DEVNULL, environment=None):
        return Running(self, [program(name), *map(str, words)], self.scratch, stdin, environment)

    def start_with_pipe(self, name, *words, text=b""):
        """As start(), with a pipe as standard input, which gets this text. Returns the program and the
        end of the pipe for writing, which is closed at the end of the test."""
        reading, writing = os.pipe()
        feed = os.fdopen(writing, "wb")

        def close():
            with contextlib.suppress(BrokenPipeError):
                feed.close()
        self.addCleanup(close)
        running = self.start(name, *words, stdin=reading)
        os.close(reading)
        feed.write(text)
        feed.flush()
        return running, feed

    def run_program(self, name, *words, stdin=b"", environment=None, limit=LIMIT, unprivileged=False, through=()):
        """Runs a program to its end; fails after `limit` seconds. `unprivileged`: as a user to whom
        file permissions apply, even when the tests run as root. `through`: a command that runs the
        command after it."""
        begun = time.monotonic()
        more = {}
        if unprivileged and os.geteuid() == 0:
            os.chown(self.scratch, NOBODY, NOBODY)
            more = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            words = [word if isinstance(word, bytes) else str(word) for word in words]
            done = subprocess.run([*through, program(name), *words], cwd=self.scratch, input=stdin,
                                  capture_output=True, timeout=limit, check=False,
                                  env=environment or clean_environment(), **more)
        except PermissionError:
            raise unittest.SkipTest(f"an ordinary user may not run {name}") from None
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{name} {words} did not end within {limit} s; its output: "
                                 f"{late.stdout} {late.stderr}") from None
        return Outcome(done.returncode, done.stdout.decode("utf-8", "backslashreplace"),
                       done.stderr.decode("utf-8", "backslashreplace"), time.monotonic() - begun)

    @staticmethod
    def wait_for(condition, description, limit=LIMIT):
        """Waits until `condition()` is true; fails after `limit` seconds."""
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {limit} s in vain for {description}")
            time.sleep(0.02)

    def shardload(self, *words, code=EXIT_OK, message=(), **more):
        """Runs shardload, which must end with this code (None: any) and print the message, or each
        message of a tuple, on standard error."""
        messages = (message,) if isinstance(message, str) else message
        return self.run_program("shardload", *words, **more).expect(code, *messages)

    def parse(self, *words, code=EXIT_OK, **more):
        """Loads into the null sink. Returns (outcome, work directory)."""
        work = self.scratch / f"work-{next(self._counter)}"
        return self.shardload("load", "--sink", "null", "--work-dir", work, "--progress", "none",
                              *words, code=code, **more), work

    # Prints the peak memory of a command in KiB. The peak of a child process is at least that of the
    # process that forked it, so the command is started by a small process.
    MEASURED = [sys.executable, "-c",
                "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"]

    def peak(self, *words, code=EXIT_OK):
        """As parse(), but returns (peak memory in bytes, work directory)."""
        outcome, work = self.parse("-j", 2, *words, code=code, limit=300, through=self.MEASURED)
        return int(outcome.out.splitlines()[-1]) << 10, work

    def dump(self, *words, code=EXIT_OK, **more):
        """Loads into a BSON dump. Returns (documents as bytes, work directory)."""
        number = next(self._counter)
        file, work = self.scratch / f"dump-{number}.bson", self.scratch / f"work-{number}"
        self.shardload("load", "--sink", f"bson:{file}", "--work-dir", work, "--progress", "none",
                       *words, code=code, **more)
        return bson_documents(file.read_bytes()), work

    def dump_decoded(self, *words, **more):
        """As dump(), with decoded documents without their _id."""
        raw, work = self.dump(*words, **more)
        return [{key: value for key, value in bson.decode(one).items() if key != "_id"} for one in raw], work

    def generate(self, dialect, rows, *more):
        """Generates MOT files. Returns their paths in order."""
        name, suffix = f"{dialect}-{next(self._counter)}", ".txt.gz" if "--gzip" in more else ".txt"
        outcome = self.run_program("shardload-datagen", "--dialect", dialect, "--rows", rows, *more, name + suffix)
        self.assertEqual(outcome.code, 0, outcome.text)
        several = "--files" in more
        return sorted(self.scratch.glob(name + "-*" * several + suffix))

    # Files

    def file(self, name, content):
        path = self.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def zipped(self, name, content):
        return self.file(name, gzip.compress(
            content if isinstance(content, bytes) else content.encode("utf-8"), mtime=0))

    def small_files(self, count=40):
        """A folder of plain and gzip files; with 40 of them, complete files are dealt to the shards of a cluster.
        Returns (folder, documents)."""
        for number in range(count):
            rows = "\n".join(ROW.format(id=1000 * number + i) for i in range(100 + number))
            write, suffix = (self.zipped, ".txt.gz") if number % 3 == 0 else (self.file, ".txt")
            write(f"years/y{number:03}{suffix}", f"{HEADER}\n{rows}\n")
        return self.scratch / "years", sum(100 + number for number in range(count))

    # Comparisons

    def assert_documents(self, raw, expected, message=""):
        """`raw`: the loaded documents as bytes, in any order. `expected`: the documents of an
        independent reader."""
        actual = {key_of(document): document for document in raw}
        self.assertEqual(len(actual), len(raw), f"{message}: an _id occurs twice")
        expected = {document["_id"]: encoded(document) for document in expected}
        missing = sorted(expected.keys() - actual.keys())
        surplus = sorted(actual.keys() - expected.keys())
        self.assertFalse(missing, f"{message}: {len(missing)} documents are missing, first "
                         f"{readable(expected[missing[0]]) if missing else ''}")
        self.assertFalse(surplus, f"{message}: {len(surplus)} documents too many, first "
                         f"{readable(actual[surplus[0]]) if surplus else ''}")
        for key in sorted(expected):
            if actual[key] != expected[key]:
                self.fail(f"{message}: document {key} differs\n  loaded   {readable(actual[key])}"
                          f"\n  expected {readable(expected[key])}")

    def assert_accounting(self, work, **expected):
        """run.json has these totals, and records = inserted + already stored + rejected +
        undelivered."""
        figures = run_record(work)["accounting"]
        self.assertEqual(
            figures["records"], figures["inserted"] + figures["alreadyStored"] +
            figures.get("changed", 0) +
            figures["rejectedByParser"] + figures["rejectedByServer"] + figures["undelivered"],
            figures)
        self.assertIs(figures["addsUp"], True)
        for name, value in expected.items():
            self.assertEqual(figures[name], value, f"{name} in {figures}")

    def assert_reading(self, raw, work, reading, message=""):
        """The documents, the rejects and the totals of a load are those of an independent reader."""
        self.assert_documents(raw, reading.documents, message)
        self.assert_rejects(work, "", [reject.place for reject in reading.rejects])
        self.assert_accounting(
            work, records=reading.records, inserted=len(raw), alreadyStored=0,
            rejectedByParser=len(reading.rejects), repeatedHeaders=reading.repeated_headers,
            blankLines=reading.blank_lines, repaired=reading.repaired, transcoded=reading.transcoded,
            lengthMismatches=reading.length_mismatches, malformedFields=reading.malformed_fields,
            unknownGroups=reading.unknown_groups)

    def assert_rejects(self, work, source, expected):
        """The reject file lists these (line, offset, column or None), in this order."""
        rejects = [row for row in reject_rows(work) if row["source"].endswith(source)]
        self.assertEqual(
            [(int(row["line"]), int(row["offset"]), row["column"] or None) for row in rejects],
            list(expected), rejects[:5])


def key_of(raw):
    """The 64-bit `_id`, which must be the first field."""
    if raw[4:9] != b"\x12_id\x00":
        raise AssertionError(f"the first field is no 64-bit _id: {readable(raw)}")
    return int.from_bytes(raw[9:17], "little", signed=True)


def run_record(work):
    return json.loads((pathlib.Path(work) / "run.json").read_text("utf-8"))


def reject_rows(work):
    with open(pathlib.Path(work) / "rejects.tsv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def every_text_in(folder):
    """(path, bytes) of every file below a folder."""
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


class ClusterCase(Case):
    """A test with a client of a cluster and a database of its own, which is dropped at its end. A class with
    `server` uses another kind of servers.DEPLOYMENTS."""

    variable = "SHARDLOAD_TEST_URI"

    def __init_subclass__(cls, server=None, **more):
        super().__init_subclass__(**more)
        if server:
            cls.variable = servers.DEPLOYMENTS[server][0]

    @classmethod
    def setUpClass(cls):
        cls.uri = cluster_uri(cls.variable)
        cls.client = connect(cls.uri)
        cls.addClassCleanup(cls.client.close)

    _names = itertools.count(1)

    def setUp(self):
        super().setUp()
        self.database_name = f"sl_{os.getpid()}_{next(ClusterCase._names)}"
        self.database = self.client[self.database_name]
        self.addCleanup(self.client.drop_database, self.database_name)

    def is_at_least(self, version):
        """Is the server of this version, such as "5.0", or newer?"""
        return self.client.server_info()["versionArray"][:2] >= list(map(int, version.split(".")))

    def needs(self, version, what):
        """Skips the test on servers before this version, which do not have `what`."""
        if not self.is_at_least(version):
            self.skipTest(f"needs server {version}: {what}")

    def needs_before(self, version, what):
        """Skips the test on servers from this version on, which do not have `what`."""
        if self.is_at_least(version):
            self.skipTest(f"needs a server before {version}: {what}")

    def target(self, collection="t", through=None):
        """The options that name a collection of the test's database; `through`: a proxy in front of
        the server, which is closed at the end of the test."""
        uri = self.uri
        if through:
            self.addCleanup(through.close)
            uri = self.proxy_uri(through)
        return ["--uri", uri, "-d", self.database_name, "-c", collection]

    @staticmethod
    def proxy_uri(server):
        return f"mongodb://{HOST}:{server.port}/"

    def load(self, *words, collection="t", through=None, code=EXIT_OK, **more):
        """Loads into the test's database. Returns (outcome, work directory)."""
        work = self.scratch / f"work-{next(self._counter)}"
        command = self.load_words(work, *words, collection=collection, through=through)
        return self.shardload(*command, code=code, **more), work

    def load_words(self, work, *words, collection="t", through=None):
        """The words of a load into the test's database with this work directory."""
        return ["load", *self.target(collection, through), "--work-dir", work, "--progress", "none", *words]

    def stored(self, collection="t"):
        """The stored documents, as bytes."""
        options = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
        documents = self.database.get_collection(collection, codec_options=options).find({})
        return [bytes(document.raw) for document in documents]  # newer drivers: a memoryview

    def check_stored(self, expected, collection="t"):
        """The collection holds exactly these documents, each given as a dictionary or as BSON."""
        self.assertEqual(collections.Counter(self.stored(collection)), collections.Counter(
            one if isinstance(one, bytes) else bson.encode(one) for one in expected))

    def collections(self):
        return sorted(self.database.list_collection_names())

    def source_states(self):
        """The state of each source in the registry of collection t: started, loaded ..."""
        return [entry["state"] for entry in
                self.database["t.sources"].find({"state": {"$exists": True}})]

    def assert_all_loaded(self, *sources, documents):
        """All of the sources are loaded, whichever loads have loaded them."""
        self.shardload("verify", *self.target(), "--content", "--progress", "none", *sources)
        self.assertEqual(self.database.t.count_documents({}), documents)
        registered = [source for source in self.database["t.sources"].find() if "name" in source]
        self.assertEqual({source["state"] for source in registered}, {"loaded"})
        self.assertEqual(sum(source["documents"] for source in registered), documents)
        self.assertEqual(self.balancer_mode(), "full")

    def wait_for_documents(self, running, count, collection="t"):
        """Waits until the server holds `count` documents; the program must still be running then."""
        def stored():
            try:
                return self.database[collection].estimated_document_count() >= count
            except pymongo.errors.PyMongoError:
                return False
        self.wait_for(lambda: not running.running() or stored(), f"{count} documents")
        self.assertTrue(running.running(), f"ended too soon: {running.text()}")

    def is_sharded(self):
        return hello(self.client).get("msg") == "isdbgrid"

    def clear_balancer(self):
        """Starts the balancer, and removes the entries of loads that were killed, which would keep
        it stopped after the next load."""
        self.client.shardload.balancer.delete_many({})
        if self.is_sharded():
            self.client.admin.command("balancerStart")

    def shard_key(self, collection="t"):
        """The shard key; None if the collection is not sharded."""
        entry = catalog_entry(self.client, f"{self.database_name}.{collection}")
        return entry and dict(entry["key"])

    def shard(self, key, collection="t", **options):
        """Shards a collection of the test's database by the key."""
        shard_collection(self.client, f"{self.database_name}.{collection}", key=key, **options)

    def chunks(self, collection="t"):
        """The documents of config.chunks, in order; none if the collection is not sharded."""
        return chunks_of(self.client, f"{self.database_name}.{collection}")

    def shard_hosts(self):
        """Shard -> "host:port" of its first member."""
        return {shard["_id"]: shard["host"].rpartition("/")[2].split(",")[0]
                for shard in self.client.config.shards.find().sort("_id")}

    def shard_clients(self):
        """Shard -> a client connected to its first member."""
        return {name: self.enterContext(pymongo.MongoClient(f"mongodb://{host}/",
                                                            directConnection=True))
                for name, host in self.shard_hosts().items()}

    def counts_by_shard(self):
        """Shard -> its number of documents in the collection t, counted by the shard itself."""
        return {name: client[self.database_name].t.count_documents({})
                for name, client in self.shard_clients().items()}

    def balancer_mode(self):
        """Read from the collection: unlike a command, pymongo repeats a read when a router was killed."""
        entry = self.client.config.settings.find_one({"_id": "balancer"}) or {}
        return "off" if entry.get("stopped") else entry.get("mode", "full")


