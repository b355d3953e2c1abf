# SPDX-License-Identifier: Apache-2.0
"""Programs that are killed and resumed until they end; a campaign of many of them.

The campaign `kills`: loads of every kind of source into every deployment, many loads at once.

Each load goes into its own database. The loader is killed (SIGKILL) at a random time, resumed,
killed again, and resumed until it ends. Then the documents of the collection must be identical, byte
for byte, to those that an independent reader finds in the source, and the rejects must be complete.
Meanwhile servers are killed and restarted; this happens during most loads."""
import collections
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from .common import TREE, Failure, build_folder, servers

sys.path.insert(0, str(TREE / "tests" / "faults"))    # common.py has added tests

SOURCES = ["plain", "gzip", "zip", "tar", "folder", "pipe", "ycsb", "isd", "json", "bson", "upsert"]
DEPLOYMENTS = {"mongod": "mongod", "replica": "replica", "cluster": "cluster", "direct": "cluster"}
BLOCKS = 6
OWN_IDS = 6000                # documents of about 1 KB
SECONDS = 2.5                 # duration of a load that is not killed, by --rate-limit
KILLS_EACH = 2
TRIES = 40                    # runs of one load; after that it has failed
LIMIT = 180                   # seconds that one run may take
READS = 20                    # attempts to read a collection while servers are killed
SERVER_PAUSE = 6.0            # seconds between kills of servers
NOTHING_TO_RESUME = ("no journal", "cannot use the work directory", "is not the work directory of a restore")


class Source(NamedTuple):
    """A source and its expected documents and rejects."""
    words: list               # arguments of `shardload load` that name the source
    pipe: Path                # file for standard input, or None
    expected: list            # a fault_case.Expected for each source number
    documents: int            # expected documents
    batches: list             # values of --batch-size to draw from


# ---- sources ----

def text_source(kind, folder):
    import resume_case
    wrap = {"plain": resume_case.plain, "gzip": resume_case.gzipped, "zip": resume_case.zipped,
            "tar": resume_case.tarred, "folder": resume_case.several,
            "pipe": resume_case.plain}[kind]
    alone = kind in ("plain", "gzip", "pipe")
    texts = [resume_case.wide_text(seed, BLOCKS if alone else BLOCKS // 3)
             for seed in ("a" if alone else "abc")]
    path, expected = wrap(folder, texts)
    count = sum(len(one.documents) for one in expected)
    if kind == "pipe":
        return Source(["-"], path, expected, count, [7, 20, 60])
    return Source([path], None, expected, count, [7, 20, 60])


def ycsb_source():
    import fault_case
    import ycsb_maker
    records = 3 * 4096
    options = ycsb_maker.Options(field_count=2, field_length=20, integer_count=1)
    expected = fault_case.Expected("ycsb")
    for record in range(records):
        document = ycsb_maker.document(options, record, number=0)
        expected.documents[int(document["_id"])] = fault_case.support.encoded(document)
    return Source(["--format", "ycsb", "--records", records, *options.words()], None, [expected],
                  records, [100, 400])


def isd_source(folder):
    import fault_case
    import isd_reader
    path = folder / "weather"
    subprocess.run([build_folder() / "bin" / "shardload-datagen", "--format", "isd", "--rows",
                    "9000", "--stations", "1", path], check=True)
    expected = fault_case.Expected(path.name)
    reading = isd_reader.read(path, number=0)
    for document in reading.documents:
        expected.documents[document["_id"]] = fault_case.support.encoded(document)
    expected.rejects[path.name] = [(one.line, one.offset, one.column) for one in reading.rejects]
    return Source(["--format", "isd", path], None, [expected], len(expected.documents), [100, 400])


def own_ids_source(kind, folder):
    """Documents with an _id of their own, as JSON lines or BSON; also with --mode upsert."""
    import bson
    import fault_case
    expected = fault_case.Expected(kind)
    lines = []
    for n in range(OWN_IDS):
        document = {"_id": bson.Int64(n), "n": n, "text": f"{n} " * (900 // len(f"{n} "))}
        expected.documents[n] = bson.encode(document)
        lines.append(b'{"_id":{"$numberLong":"%d"},"n":%d,"text":"%s"}\n'
                     % (n, n, document["text"].encode()))
    path = folder / f"own-ids.{kind}"
    path.write_bytes(b"".join(lines if kind == "json" else expected.documents.values()))
    form = "json" if kind == "json" else "bson"
    mode = ["--mode", "upsert"] if kind == "upsert" else []
    return Source(["--format", form, *mode, path], None, [expected], OWN_IDS, [20, 100, 400])


def make_source(kind, folder):
    folder.mkdir(parents=True)
    if kind == "ycsb":
        return ycsb_source()
    if kind in ("json", "bson", "upsert"):
        return own_ids_source(kind, folder)
    return isd_source(folder) if kind == "isd" else text_source(kind, folder)


# ---- one load: killed, resumed, compared ----

class Run:
    """A program that is killed and resumed until it ends. Subclasses have

    words(resume)    the command line; drawn anew for each run
    progress()       changes when the program has recorded progress
    compare()        None, or how the result differs from the expected one
    clear()          removes the result from the servers"""

    kills_each, seconds = KILLS_EACH, 1.3 * SECONDS    # seconds: those within which a run is killed
    pipe = None                                        # a file for standard input

    def __init__(self, campaign, number, kind, deployment):
        self.campaign, self.kind, self.deployment = campaign, kind, deployment
        self.draw = random.Random(f"{campaign.seed}-{number}")
        self.name = f"kills_{os.getpid()}_{number}"
        self.folder = campaign.folder / self.name
        self.work = self.folder / "work"
        self.kills = self.runs = 0
        self.outputs = []         # one text per run

    def one_run(self, resume, kill):
        """Returns the exit status, -9 if it was killed, or "hung"."""
        self.runs += 1
        log = self.folder / f"run-{self.runs}"
        feeder = None
        if self.pipe:
            feeder = subprocess.Popen(["cat", self.pipe], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        with open(log, "wb") as output:
            loader = subprocess.Popen(
                list(map(str, self.words(resume))), stdout=output, stderr=output, cwd=self.folder,
                stdin=feeder.stdout if feeder else subprocess.DEVNULL,
                env={**os.environ, "MONGOC_DISABLE_SHM": "1"})
        try:
            if feeder:
                feeder.stdout.close()
            if kill:
                self.wait_before_kill(loader)
                loader.kill()
            code = loader.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = "hung"
        finally:
            loader.kill()
            loader.wait()
            if feeder:
                feeder.wait()
        self.outputs.append(log.read_text("utf-8", "backslashreplace"))
        if code == -signal.SIGKILL:
            self.kills += 1
            self.campaign.count_kill(self)
        return code

    def wait_before_kill(self, loader):
        """Waits until a random time of the run or, in 4 of 10 runs, until just after the progress that
        follows that time."""
        until = time.monotonic() + self.draw.uniform(0, self.seconds)
        after_progress = self.draw.random() < 0.4
        while loader.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        before = self.progress()
        while after_progress and loader.poll() is None and before == self.progress():
            time.sleep(0.001)
        if after_progress:
            time.sleep(self.draw.choice([0, 0.001, 0.005]))

    def may_stop(self):
        """Whether the run that has ended with exit status 4 is to be resumed."""
        return self.campaign.kills_servers

    def run_to_the_end(self):
        """Returns None, or the error: a wrong exit status or a wrong result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        resume = False
        for _ in range(TRIES):
            code = self.one_run(resume, self.kills < self.kills_each)
            if code in (0, 1):
                return self.compare()
            if resume and code == 2 and any(word in self.outputs[-1] for word in NOTHING_TO_RESUME):
                resume = False           # killed before it wrote a journal
            elif code == -signal.SIGKILL or (code == 4 and self.may_stop()):
                resume = True
            else:
                return f"exit status {code}"
        return f"not complete after {TRIES} runs"


class Load(Run):
    def __init__(self, campaign, number, kind, deployment):
        super().__init__(campaign, number, kind, deployment)
        self.source = campaign.sources[kind]
        self.pipe = self.source.pipe

    @property
    def client(self):
        return self.campaign.clients[self.campaign.servers_of[self.deployment]]

    def words(self, resume):
        """The command line. Threads, batch size and rate are drawn anew for each run."""
        rate = self.source.documents / SECONDS * self.draw.uniform(0.7, 2)
        more = ["--route", "direct"] if self.deployment == "direct" else []
        if resume:
            more.append("--resume")
        return [build_folder() / "bin" / "shardload", "load",
                "--uri", self.campaign.servers[DEPLOYMENTS[self.deployment]].uri,
                "-d", self.name, "-c", "t", "--work-dir", self.work, "--progress", "none",
                "-j", self.draw.randint(1, 3), "--batch-size", self.draw.choice(self.source.batches),
                "--rate-limit", int(rate), "--retry-timeout", LIMIT, *more, *self.source.words]

    def progress(self):
        try:
            return (self.work / "journal").stat().st_size
        except FileNotFoundError:
            return 0

    def clear(self):
        self.client.drop_database(self.name)

    def stored(self):
        """All documents of the collection. If a server is killed during the read, reads again."""
        import pymongo
        from bson import CodecOptions, raw_bson
        collection = self.client[self.name].get_collection(
            "t", codec_options=CodecOptions(document_class=raw_bson.RawBSONDocument))
        for _ in range(READS):
            try:
                return list(collection.find({}))
            except pymongo.errors.PyMongoError as error:
                problem = error
                time.sleep(1)
        raise Failure(f"the collection cannot be read: {problem}")

    def compare(self):
        return self.compare_documents() or self.compare_rejects()

    def compare_documents(self):
        import fault_case
        support = fault_case.support
        found = {}
        for document in self.stored():
            number = support.key_of(document.raw) >> 40
            raw = fault_case.without_number(document.raw)
            documents = found.setdefault(number, {})
            if support.key_of(raw) in documents:
                return "two documents of one source have the same _id"
            documents[support.key_of(raw)] = raw
        left = sorted((one.documents for one in self.source.expected), key=len)
        for documents in found.values():
            if documents not in left:
                return self.difference(documents, left)
            left.remove(documents)
        if left:
            return f"{len(left)} sources have no documents in the collection"
        return None

    @staticmethod
    def difference(documents, expected):
        """How documents differ from those of the source in `expected` that has most of their ids."""
        if not expected:
            return f"{len(documents)} documents of no source"
        near = max(expected, key=lambda one: len(one.keys() & documents.keys()))
        missing, extra = near.keys() - documents.keys(), documents.keys() - near.keys()
        changed = [key for key in near.keys() & documents.keys() if near[key] != documents[key]]
        return f"{len(missing)} missing, {len(extra)} too many, {len(changed)} changed"

    def compare_rejects(self):
        import support
        expected = collections.Counter((offset, column) for one in self.source.expected
                                       for rejects in one.rejects.values()
                                       for _, offset, column in rejects)
        actual = collections.Counter((int(row["offset"]), row["column"] or None)
                                     for row in support.reject_rows(self.work))
        if actual == expected:
            return None
        return (f"{sum(actual.values())} rejects, expected {sum(expected.values())}: "
                f"{sum((expected - actual).values())} missing, {sum((actual - expected).values())} too many")


# ---- the campaign ----

class Campaign:
    """`lanes`: iterators of (kind, deployment), one for each thread. Subclasses have make() of a Run."""
    servers_of = DEPLOYMENTS      # deployment: the key of its servers in `running`
    kills_servers = True          # one may be unreachable for too long: exit status 4

    def __init__(self, options, running, folder, lanes):
        self.seed, self.kills_to_do, self.lanes = options.seed, options.count, lanes
        self.servers, self.folder = running, folder   # kind: servers.Servers
        self.lock = threading.Lock()
        # These three count by (kind of source, deployment).
        self.kills = collections.Counter()           # kills of the loader
        self.loads = collections.Counter()           # loads that were compared
        self.with_server_kill = collections.Counter()    # ... during which a server was killed
        self.failures = []
        self.server_kills = collections.Counter()    # by deployment
        self.begun = 0
        self.over = threading.Event()
        import pymongo
        self.clients = {name: pymongo.MongoClient(one.uri, serverSelectionTimeoutMS=LIMIT * 1000)
                        for name, one in running.items()}

    def enough(self):
        return sum(self.kills.values()) >= self.kills_to_do

    def count_kill(self, load):
        with self.lock:
            self.kills[load.kind, load.deployment] += 1

    def next_load(self, lane):
        with self.lock:
            if self.enough() or self.over.is_set():
                return None
            self.begun += 1
            return self.make(self.begun, *next(lane))

    def run_loads(self, lane):
        """Body of a thread: runs one load after the other."""
        while (load := self.next_load(lane)) is not None:
            kind = self.servers_of[load.deployment]
            kills_before = self.server_kills[kind]
            try:
                problem = load.run_to_the_end()
            except Exception as error:  # noqa: BLE001 (an exception is a failure of this load only)
                problem = f"{type(error).__name__}: {error}"
            with self.lock:
                pair = load.kind, load.deployment
                self.loads[pair] += 1
                self.with_server_kill[pair] += self.server_kills[kind] > kills_before
                if problem:
                    self.failures.append((pair, problem, load.folder))
                    print(f"FAILED {load.kind} into {load.deployment}: {problem}; "
                          f"see {load.folder}", flush=True)
            try:
                load.clear()
            except Exception:  # noqa: BLE001 (a killed server: the database is not dropped)
                pass
            if not problem:
                shutil.rmtree(load.folder, ignore_errors=True)

    def kill_servers(self):
        """Body of a thread: kills and restarts one server at a time."""
        draw = random.Random(self.seed)
        while not self.over.wait(draw.uniform(0.5, 1.5) * SERVER_PAUSE):
            kind = draw.choice(list(self.servers))
            running = self.servers[kind]
            running.kill(draw.choice([one["name"] for one in running.processes()
                                      if one["role"] == "server"]))
            with self.lock:
                self.server_kills[kind] += 1
            running.start_again()

    def run(self, kill_servers):
        threads = [threading.Thread(target=self.run_loads, args=[lane], daemon=True) for lane in self.lanes]
        killer = threading.Thread(target=self.kill_servers, daemon=True)
        for thread in threads:
            thread.start()
        if kill_servers:
            killer.start()
        try:
            printed = time.monotonic()
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.2)
                if time.monotonic() - printed > 30:
                    printed = time.monotonic()
                    print(f"... {sum(self.kills.values())} of {self.kills_to_do} kills, "
                          f"{sum(self.loads.values())} loads compared", flush=True)
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
            if kill_servers:
                killer.join()

    def table(self):
        columns = sorted({deployment for _, deployment in self.loads})
        lines = [f"{'kills/loads/failed':20}" + "".join(f"{column:>16}" for column in columns)]
        failed = collections.Counter(pair for pair, _, _ in self.failures)
        for kind in sorted({kind for kind, _ in self.loads}):
            lines.append(f"{kind:20}" + "".join(
                f"{self.kills[pair]}/{self.loads[pair]}/{failed[pair]}".rjust(16)
                for pair in ((kind, column) for column in columns)))
        by_deployment = ", ".join(f"{name} {kills}" for name, kills in self.server_kills.items())
        lines.append(f"{sum(self.kills.values())} kills of loaders, "
                     f"{sum(self.server_kills.values())} kills of servers "
                     f"({by_deployment or 'none'}); {sum(self.loads.values())} loads compared, "
                     f"{sum(self.with_server_kill.values())} of them with a server killed during "
                     f"the load, {len(self.failures)} failed")
        return "\n".join(lines)


class Loads(Campaign):
    def __init__(self, options, running, folder):
        kinds = options.sources or SOURCES
        pairs = [(kind, deployment) for kind in kinds for deployment in options.deployments or list(DEPLOYMENTS)
                 if (kind, deployment) != ("upsert", "direct")]    # which load refuses
        random.Random(options.seed).shuffle(pairs)       # so that a short campaign covers all kinds
        super().__init__(options, running, folder, [itertools.cycle(pairs)] * options.at_once)
        self.sources = {kind: make_source(kind, folder / "sources" / kind) for kind in kinds}

    def make(self, *words):
        return Load(self, *words)


def run(options, folder):
    kinds = {DEPLOYMENTS[name] for name in options.deployments or DEPLOYMENTS}
    campaign = Loads(options, {kind: servers.Servers(
        folder / "servers" / kind, *servers.DEPLOYMENTS[kind][1], "--cache", "0.25")
        for kind in sorted(kinds)}, folder)
    campaign.run(options.servers)
    print(campaign.table())
    print(f"{options.at_once} at once, seed {options.seed}")
    return not campaign.failures
