# SPDX-License-Identifier: Apache-2.0
"""What every row works with: rounds, loads by the loader and by the yardstick, servers, data."""
import datetime
import json
import shutil
import sys
from typing import NamedTuple

from . import machine
from .data import DataSets
from .process import Failure, rate, run, run_together
from .servers import COLLECTION, DATABASE, Servers

BATCH_DOCUMENTS, BATCH_BYTES = 10000, 16 << 20  # of loads that are compared with others
BATCH_BEGINS = 20000  # what a load begins with when it is left to itself
EXIT_OK, EXIT_REJECTS = 0, 1


class Loaded(NamedTuple):
    """A load that has ended: the system's account of the process, the program's of its phases."""

    process: object      # process.Finished
    documents: int
    seconds: float       # the loading alone
    batches: int
    text_bytes: int = 0
    bson_bytes: int = 0
    span: tuple = ()     # of the loading alone: from, to, as time.time() counts
    settings: tuple = ()   # threads and documents per batch that an adapting load came to
    settled: bool = False

    @property
    def rate(self):
        return rate(self.documents, self.seconds)

    @property
    def cpu_per_million(self):
        return self.process.cpu / self.documents * 1e6

    # Of null sinks: by the whole process, whose end is not the program's own claim.

    @property
    def text_rate(self):
        return rate(self.text_bytes, self.process.wall)

    @property
    def bson_rate(self):
        return rate(self.bson_bytes, self.process.wall)


class Bench:
    """Set at creation: `runs`, `scale`, `folder`, `build`. One per invocation."""

    def __init__(self, options, folder, build):
        self.runs = options.runs
        self.scale = options.scale
        self.folder = folder
        self.bin = build / "bin"
        self.data = DataSets(folder, self.bin)
        self.servers = Servers(folder)
        self.threads = 2 * machine.cores()  # what a load begins with when it is left to itself
        self.driver = None   # these two are known once something has been loaded
        self.version = None
        self.doing = ""  # the row, set by who runs it

    def scaled(self, count, least=1000):
        return max(int(count * self.scale), least)

    def say(self, text):
        print(f"bench: {self.doing}: {text}", file=sys.stderr, flush=True)

    def rounds(self, most=None, what=""):
        """The numbers of the rounds, said as they begin. `most`: rows with many variants take
        fewer rounds."""
        runs = min(self.runs, most or self.runs)
        for number in range(1, runs + 1):
            self.say(f"{what + ', ' if what else ''}round {number} of {runs}")
            yield number

    def has_format(self, name):
        """Does this build's loader know that format?"""
        work = self.folder / "work"
        done = run(self._load_words(work, ["--sink", "null", "--format", name, "--records", 1]),
                   allowed=range(256))
        shutil.rmtree(work, ignore_errors=True)
        return done.code == EXIT_OK

    # Loads

    def _load_words(self, work, words):
        shutil.rmtree(work, ignore_errors=True)
        return [self.bin / "shardload", "load", "--progress", "none", "--work-dir", work, *words]

    def _loaded(self, work, process):
        record = json.loads((work / "run.json").read_text("utf-8"))
        shutil.rmtree(work)
        figures = record["accounting"]
        self.driver = record["driver"]
        self.version = record["version"]
        began = datetime.datetime.fromisoformat(
            record["startedAt"]["$date"].replace("Z", "+00:00")).timestamp()
        for phase in record["phases"]:
            seconds = phase["seconds"]
            if phase["name"] == "load":
                break
            began += seconds
        found = record.get("adaptation", {})
        return Loaded(process, figures["inserted"], seconds, figures["batches"],
                      figures["textBytes"], figures["bsonBytes"], (began, began + seconds),
                      (found.get("threads"), found.get("batchSize")),
                      "settledAfterSeconds" in found)

    def parse(self, *words, threads=1):
        """A load that goes nowhere: parsing and encoding alone."""
        work = self.folder / "work"
        process = run(self._load_words(work, ["--sink", "null", "--threads", threads, *words]),
                      (EXIT_OK, EXIT_REJECTS))
        return self._loaded(work, process)

    def parse_twice(self, *words):
        """Two processes at once, with one thread each: the later one's wall seconds."""
        works = [self.folder / f"work-{i}" for i in range(2)]
        commands = [self._load_words(work, ["--sink", "null", "--threads", 1, *words])
                    for work in works]
        ended = run_together(commands, (EXIT_OK, EXIT_REJECTS))
        for work in works:
            shutil.rmtree(work)
        return max(one.wall for one in ended)

    def load(self, deployment, data, *words, threads=None, uri=None, clustered=True,
             batch=BATCH_DOCUMENTS, database=DATABASE):
        """A load by the loader into a database that is emptied before. Its documents are there
        afterwards."""
        deployment.empty(database)
        work = self.folder / "work"
        more = ["--clustered"] if clustered else []
        process = run(self._load_words(
            work, ["--uri", uri or deployment.uri, "--db", database, "--collection", COLLECTION,
                   "--threads", threads or self.threads, "--batch-size", batch, *more, *words,
                   data.path]), (EXIT_OK, EXIT_REJECTS))
        loaded = self._loaded(work, process)
        deployment.expect(loaded.documents, database)
        return loaded

    def query(self, deployment, *names, suite="mot", repeat=5):
        """Runs queries of a suite over what was loaded: shardquery's entries of its report."""
        file = self.folder / "queries.json"
        words = [word for name in names for word in ("--query", name)]
        run([self.bin / "shardquery", "run", "--uri", deployment.uri, "--db", DATABASE,
             "--collection", COLLECTION, "--repeat", repeat, "--quiet", "--report", file, *words,
             suite])
        return json.loads(file.read_text("utf-8"))["queries"]

    def yardstick(self, deployment, data, layout=(), threads=None, uri=None, clustered=True,
                  batch=BATCH_DOCUMENTS):
        """The same documents by the yardstick: the same layout, threads and batches."""
        dump = self.data.dump(data)
        deployment.empty()
        options = {"clusteredIndex": {"key": {"_id": 1}, "unique": True}} if clustered else {}
        deployment.lay_out(layout, **options)
        splits = [word for lower, _, _ in layout[1:] for word in ("--split", lower["_id"])]
        room = BATCH_BYTES
        if layout:  # as the loader shares a worker's room among the shards
            shards = len({shard for _, _, shard in layout})
            room = min(room, max(2 * BATCH_BYTES // shards, 1 << 20))
        process = run([self.bin / "shardload-yardstick", "--uri", uri or deployment.plain_uri,
                       "--db", DATABASE, "--collection", COLLECTION,
                       "--threads", threads or self.threads, "--batch-size", batch,
                       "--batch-bytes", room, "--write-concern", json.dumps(deployment.durable),
                       *splits, dump])
        said = json.loads(process.output)
        deployment.expect(said["documents"])
        return Loaded(process, said["documents"], said["seconds"], said["batches"])

    def same_documents(self, deployment, data):
        """Asks whether a load has given the ids that the dump has: else it is no comparison."""
        with open(self.data.dump(data), "rb") as dump:
            first = int.from_bytes(dump.read(17)[9:], "little", signed=True)
        if deployment.smallest_id() != first:
            raise Failure("the dump has other ids than the load")
