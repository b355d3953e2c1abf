# SPDX-License-Identifier: Apache-2.0
"""Loads that are killed and resumed, many at once, of every kind of source into every deployment.

A story is one source that is loaded into a database of its own. Its loader is killed with SIGKILL
at a random moment, resumed, killed again, and resumed until it ends by itself. Then the collection
must hold exactly what an independent reader finds in the source, to the byte, and the rejects must
be complete. Meanwhile servers are killed and started again, so that most stories meet that too."""
import collections
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from .ground import TREE, Failure, Servers, build_folder

sys.path[:0] = [str(TREE / "tests"), str(TREE / "tests" / "faults")]

SOURCES = ["plain", "gzip", "zip", "tar", "folder", "pipe", "ycsb", "isd"]
DEPLOYMENTS = {"mongod": "mongod", "replica": "replica", "cluster": "cluster", "direct": "cluster"}
BLOCKS = 6
SECONDS = 2.5                 # that a load takes which is not killed; the rate is limited to that
KILLS_EACH = 2
TRIES = 40                    # runs of one story before it counts as endless
LIMIT = 180                   # seconds that one run may take
READS = 20                    # attempts to read a collection while servers are killed
SERVER_PAUSE = 6.0            # seconds between kills of servers
NOTHING_TO_RESUME = ("no journal", "cannot use the work directory")


class Wanted(NamedTuple):
    """A source, and what must become of it."""
    words: list               # of the command line, in place of the source's name
    pipe: Path                # goes to standard input
    expected: list            # of fault_case.Expected
    documents: int
    batches: list


# ---- sources ----

def of_texts(kind, folder):
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
        return Wanted(["-"], path, expected, count, [7, 20, 60])
    return Wanted([path], None, expected, count, [7, 20, 60])


def of_ycsb(folder):
    import fault_case
    import ycsb_maker
    records = 3 * 4096
    options = ycsb_maker.Options(field_count=2, field_length=20, integer_count=1)
    made = fault_case.Expected("ycsb")
    for record in range(records):
        document = ycsb_maker.document(options, record, number=0)
        made.documents[int(document["_id"])] = fault_case.support.encoded(document)
    return Wanted(["--format", "ycsb", "--records", records, *options.words()], None, [made],
                  records, [100, 400])


def of_isd(folder):
    import fault_case
    import isd_reader
    path = folder / "weather"
    subprocess.run([build_folder() / "bin" / "shardload-datagen", "--format", "isd", "--rows",
                    "9000", "--stations", "1", path], check=True)
    made = fault_case.Expected(path.name)
    reading = isd_reader.read(path, number=0)
    for document in reading.documents:
        made.documents[document["_id"]] = fault_case.support.encoded(document)
    made.rejects[path.name] = [(one.line, one.offset, one.column) for one in reading.rejects]
    return Wanted(["--format", "isd", path], None, [made], len(made.documents), [100, 400])


def make_source(kind, folder):
    folder.mkdir(parents=True)
    if kind == "ycsb":
        return of_ycsb(folder)
    return of_isd(folder) if kind == "isd" else of_texts(kind, folder)


# ---- one story ----

class Story:
    def __init__(self, campaign, number, kind, deployment):
        self.campaign, self.kind, self.deployment = campaign, kind, deployment
        self.draw = random.Random(f"{campaign.seed}-{number}")
        self.wanted = campaign.sources[kind]
        self.name = f"kills_{os.getpid()}_{number}"
        self.folder = campaign.folder / self.name
        self.work = self.folder / "work"
        self.kills = self.runs = 0
        self.said = []

    def words(self, resume):
        """Threads, batches and the rate may differ from run to run."""
        rate = self.wanted.documents / SECONDS * self.draw.uniform(0.7, 2)
        more = ["--route", "direct"] if self.deployment == "direct" else []
        if resume:
            more.append("--resume")
        return [build_folder() / "bin" / "shardload", "load",
                "--uri", self.campaign.servers.uris[DEPLOYMENTS[self.deployment]],
                "-d", self.name, "-c", "t", "--work-dir", self.work, "--progress", "none",
                "-j", self.draw.randint(1, 3), "--batch-size", self.draw.choice(self.wanted.batches),
                "--rate-limit", int(rate), "--retry-timeout", LIMIT, *more, *self.wanted.words]

    def one_run(self, resume, kill):
        """The exit status; -9 when it was killed."""
        self.runs += 1
        log = self.folder / f"run-{self.runs}"
        feeder = None
        if self.wanted.pipe:
            feeder = subprocess.Popen(["cat", self.wanted.pipe], stdout=subprocess.PIPE,
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
                self.wait_for_moment(loader)
                loader.kill()
            code = loader.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = "hung"
        finally:
            loader.kill()
            loader.wait()
            if feeder:
                feeder.wait()
        self.said.append(log.read_text("utf-8", "backslashreplace"))
        if code == -signal.SIGKILL:
            self.kills += 1
            self.campaign.count_kill(self)
        return code

    def wait_for_moment(self, loader):
        """Any moment of the load; or just after the journal has grown."""
        until = time.monotonic() + self.draw.uniform(0, SECONDS * 1.3)
        after_journal = self.draw.random() < 0.4
        size = self.journal_size()
        while loader.poll() is None and time.monotonic() < until:
            time.sleep(0.002 if after_journal else 0.02)
            if after_journal and size != self.journal_size():
                time.sleep(self.draw.choice([0, 0.001, 0.005]))
                return

    def journal_size(self):
        try:
            return (self.work / "journal").stat().st_size
        except FileNotFoundError:
            return 0

    def tell(self):
        """None, or what is wrong at the end."""
        self.folder.mkdir(parents=True)
        resume = False
        for _ in range(TRIES):
            code = self.one_run(resume, self.kills < KILLS_EACH)
            if code in (0, 1):
                return self.compare()
            if resume and code == 2 and any(word in self.said[-1] for word in NOTHING_TO_RESUME):
                resume = False           # killed before it had begun
            elif code in (-signal.SIGKILL, 4):   # 4: a server was away for too long
                resume = True
            else:
                return f"exit status {code}"
        return f"no end after {TRIES} runs"

    def stored(self):
        """All documents. Read again when a server is killed in the middle of it."""
        import pymongo
        from bson import CodecOptions, raw_bson
        client = self.campaign.clients[DEPLOYMENTS[self.deployment]]
        collection = client[self.name].get_collection(
            "t", codec_options=CodecOptions(document_class=raw_bson.RawBSONDocument))
        for _ in range(READS):
            try:
                return list(collection.find({}))
            except pymongo.errors.PyMongoError as error:
                problem = error
                time.sleep(1)
        raise Failure(f"the collection cannot be read: {problem}")

    def compare(self):
        import fault_case
        support = fault_case.support
        found = {}
        for document in self.stored():
            number = support.key_of(document.raw) >> 40
            raw = fault_case.without_number(document.raw)
            documents = found.setdefault(number, {})
            if support.key_of(raw) in documents:
                return "an _id comes twice"
            documents[support.key_of(raw)] = raw
        left = sorted((one.documents for one in self.wanted.expected), key=len)
        for documents in found.values():
            if documents not in left:
                return self.difference(documents, left)
            left.remove(documents)
        if left:
            return f"nothing is there of {len(left)} sources"
        return self.compare_rejects(support)

    @staticmethod
    def difference(documents, left):
        if not left:
            return f"{len(documents)} documents of no source"
        near = max(left, key=lambda one: len(one.keys() & documents.keys()))
        missing, extra = near.keys() - documents.keys(), documents.keys() - near.keys()
        changed = [key for key in near.keys() & documents.keys() if near[key] != documents[key]]
        return f"{len(missing)} missing, {len(extra)} too many, {len(changed)} changed"

    def compare_rejects(self, support):
        wanted = collections.Counter((offset, column) for one in self.wanted.expected
                                     for rejects in one.rejects.values()
                                     for _, offset, column in rejects)
        got = collections.Counter((int(row["offset"]), row["column"] or None)
                                  for row in support.reject_rows(self.work))
        return None if got == wanted else f"rejects: {sum(got.values())}, not {sum(wanted.values())}"


# ---- all of them ----

class Campaign:
    def __init__(self, options, servers, folder):
        self.seed, self.wanted = options.seed, options.count
        self.servers, self.folder = servers, folder
        self.lock = threading.Lock()
        self.kills = collections.Counter()           # (kind, deployment) -> kills of the loader
        self.stories = collections.Counter()
        self.met = collections.Counter()             # stories in which a server was killed too
        self.failures = []
        self.server_kills = collections.Counter()
        self.begun = 0
        self.over = threading.Event()
        kinds, places = options.sources or SOURCES, options.deployments or list(DEPLOYMENTS)
        self.pairs = [(kind, place) for kind in kinds for place in places]
        random.Random(self.seed).shuffle(self.pairs)     # a short campaign meets all kinds, too
        self.sources = {kind: make_source(kind, folder / "sources" / kind) for kind in kinds}
        import pymongo
        self.clients = {name: pymongo.MongoClient(uri, serverSelectionTimeoutMS=LIMIT * 1000)
                        for name, uri in servers.uris.items()}

    def count_kill(self, story):
        with self.lock:
            self.kills[story.kind, story.deployment] += 1

    def next_story(self):
        with self.lock:
            if sum(self.kills.values()) >= self.wanted or self.over.is_set():
                return None
            self.begun += 1
            return Story(self, self.begun, *self.pairs[self.begun % len(self.pairs)])

    def tell_stories(self):
        while (story := self.next_story()) is not None:
            place = DEPLOYMENTS[story.deployment]
            servers_before = self.server_kills[place]
            try:
                problem = story.tell()
            except Exception as error:  # noqa: BLE001 (a story that cannot be told has failed)
                problem = f"{type(error).__name__}: {error}"
            with self.lock:
                pair = story.kind, story.deployment
                self.stories[pair] += 1
                self.met[pair] += self.server_kills[place] > servers_before
                if problem:
                    self.failures.append((pair, problem, story.folder))
                    print(f"FAILED {story.kind} into {story.deployment}: {problem}; "
                          f"see {story.folder}", flush=True)
            try:
                self.clients[place].drop_database(story.name)
            except Exception:  # noqa: BLE001 (its servers may just be away; the folder goes anyway)
                pass
            if not problem:
                shutil.rmtree(story.folder, ignore_errors=True)

    def kill_servers(self):
        """One at a time, and at once started again."""
        draw = random.Random(self.seed)
        while not self.over.wait(draw.uniform(0.5, 1.5) * SERVER_PAUSE):
            place = draw.choice(list(self.servers.uris))
            state = json.loads((self.servers.folder / place / "cluster.json").read_text("utf-8"))
            victims = [one for one in state["processes"] if one["role"] == "server"]
            victim = draw.choice(victims)
            try:
                handle = os.pidfd_open(victim["pid"])
            except ProcessLookupError:
                continue
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], 30)
            os.close(handle)
            with self.lock:
                self.server_kills[place] += 1
            self.servers.localcluster("up", place)

    def run(self, at_once, kill_servers):
        threads = [threading.Thread(target=self.tell_stories, daemon=True) for _ in range(at_once)]
        killer = threading.Thread(target=self.kill_servers, daemon=True)
        for thread in threads:
            thread.start()
        if kill_servers:
            killer.start()
        try:
            shown = time.monotonic()
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.2)
                if time.monotonic() - shown > 30:
                    shown = time.monotonic()
                    print(f"... {sum(self.kills.values())} of {self.wanted} kills, "
                          f"{sum(self.stories.values())} loads compared", flush=True)
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
            if kill_servers:
                killer.join()

    def table(self):
        places = sorted({place for _, place in self.pairs})
        lines = [f"{'kills/loads/failed':20}" + "".join(f"{place:>16}" for place in places)]
        failed = collections.Counter(pair for pair, _, _ in self.failures)
        for kind in sorted({kind for kind, _ in self.pairs}):
            lines.append(f"{kind:20}" + "".join(
                f"{self.kills[kind, place]:>8}/{self.stories[kind, place]}/{failed[kind, place]}"
                .rjust(16) for place in places))
        lines.append(f"{sum(self.kills.values())} kills of loaders, "
                     f"{sum(self.server_kills.values())} of servers "
                     f"({', '.join(f'{n} {c}' for n, c in self.server_kills.items()) or 'none'}); "
                     f"{sum(self.stories.values())} loads compared, {sum(self.met.values())} of "
                     f"them with a server killed too, {len(self.failures)} failed")
        return "\n".join(lines)


def run(options, folder):
    places = {DEPLOYMENTS[name] for name in options.deployments or DEPLOYMENTS}
    if not (build_folder() / "bin" / "shardload").exists():
        raise Failure(f"there is no program in {build_folder()}: build first, or set SHARDLOAD_BUILD")
    begun = time.monotonic()
    with Servers(folder / "servers", sorted(places), ["--cache", "0.25"]) as servers:
        campaign = Campaign(options, servers, folder)
        campaign.run(options.at_once, options.servers)
        print(campaign.table())
        print(f"{time.monotonic() - begun:.0f} s, {options.at_once} at once, seed {options.seed}")
    return not campaign.failures
