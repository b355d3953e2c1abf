# SPDX-License-Identifier: Apache-2.0
"""The functions that every row uses: rounds, loads by the loader and by the yardstick, queries."""
import datetime
import json
import shutil
import sys
from typing import NamedTuple

from . import machine
from .data import DataSets
from .process import Failure, rate, run, run_together
from .servers import COLLECTION, DATABASE, Servers

BATCH_DOCUMENTS, BATCH_BYTES = 10000, 16 << 20  # for comparisons with the yardstick and other loaders
BATCH_BEGINS = 20000  # initial documents per batch of `--batch-size auto`
EXIT_OK, EXIT_REJECTS = 0, 1


def load_span(record):
    """Beginning and end of the load phase of a run.json, as time.time() counts."""
    begin = datetime.datetime.fromisoformat(
        record["startedAt"]["$date"].replace("Z", "+00:00")).timestamp()
    for phase in record["phases"]:
        end = begin + phase["seconds"]
        if phase["name"] == "load":
            break
        begin = end
    return begin, end


def run_queries(programs, uri, database, collection, *words):
    """Runs `shardquery run` with files in `programs.folder`. Returns the queries of its report."""
    file = programs.folder / "queries.json"
    run([programs.bin / "shardquery", "run", "--uri", uri, "--db", database, "--collection", collection,
         "--quiet", "--report", file, *words])
    return json.loads(file.read_text("utf-8"))["queries"]


class Loaded(NamedTuple):
    """A completed load: measurements of its process, and figures of its run.json."""

    process: object      # process.Finished
    documents: int
    seconds: float       # of the load phase
    batches: int
    text_bytes: int = 0
    bson_bytes: int = 0
    span: tuple = ()     # start and end of the load phase, as time.time() counts
    settings: tuple = () # final threads and documents per batch of an adapting load
    settled: bool = False

    @property
    def rate(self):
        return rate(self.documents, self.seconds)

    @property
    def cpu_per_million(self):
        return self.process.cpu / self.documents * 1e6

    # Rates of loads into the null sink: by the wall time of the process.

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
        self.threads = 2 * machine.cores()  # initial threads of `--threads auto`
        self.driver = None   # versions of the C driver and the loader; set by the first load
        self.version = None
        self.doing = ""      # name of the current row, set by the caller

    def scaled(self, count, least=1000):
        return max(int(count * self.scale), least)

    def say(self, text):
        print(f"bench: {self.doing}: {text}", file=sys.stderr, flush=True)

    def rounds(self, most=None, what=""):
        """Yields the numbers of the rounds, and prints each. `most`: the maximum number of rounds,
        for rows with many variants."""
        runs = min(self.runs, most or self.runs)
        for number in range(1, runs + 1):
            self.say(f"{what + ', ' if what else ''}round {number} of {runs}")
            yield number

    def has_format(self, name):
        """True if this build of the loader has the format."""
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
        seconds = next(phase["seconds"] for phase in record["phases"] if phase["name"] == "load")
        found = record.get("adaptation", {})
        return Loaded(process, figures["inserted"], seconds, figures["batches"],
                      figures["textBytes"], figures["bsonBytes"], load_span(record),
                      (found.get("threads"), found.get("batchSize")),
                      "settledAfterSeconds" in found)

    def parse(self, *words, threads=1):
        """A load into the null sink: parsing and encoding only."""
        work = self.folder / "work"
        process = run(self._load_words(work, ["--sink", "null", "--threads", threads, *words]),
                      (EXIT_OK, EXIT_REJECTS))
        return self._loaded(work, process)

    def parse_twice(self, *words):
        """Two loads into the null sink at once, one thread each. Returns the longer wall time."""
        works = [self.folder / f"work-{i}" for i in range(2)]
        commands = [self._load_words(work, ["--sink", "null", "--threads", 1, *words])
                    for work in works]
        ended = run_together(commands, (EXIT_OK, EXIT_REJECTS))
        for work in works:
            shutil.rmtree(work)
        return max(one.wall for one in ended)

    def load(self, deployment, data, *words, **more):
        """A load by the loader into an emptied database; checks the number of documents."""
        return self.load_together(deployment, data, [words], **more)[0]

    def load_together(self, deployment, data, loaders, threads=None, uri=None, clustered=True,
                      batch=BATCH_DOCUMENTS, database=DATABASE):
        """A load into the emptied database by several loaders at once, each with its own words of
        `loaders` and with its share of `threads`, if that is a number. Returns a Loaded for each."""
        deployment.empty(database)
        works = [self.folder / f"work-{i}" for i in range(len(loaders))]
        threads = threads or self.threads
        each = threads if threads == "auto" else max(threads // len(loaders), 1)
        more = ["--clustered"] if clustered else []
        processes = run_together([self._load_words(
            work, ["--uri", uri or deployment.uri, "--db", database, "--collection", COLLECTION,
                   "--threads", each, "--batch-size", batch, *more, *words, data.path])
            for work, words in zip(works, loaders)], (EXIT_OK, EXIT_REJECTS))
        loaded = [self._loaded(work, process) for work, process in zip(works, processes)]
        deployment.expect(sum(one.documents for one in loaded), database)
        return loaded

    def command(self, name, deployment, data, *words):
        """Runs `shardload NAME` on an emptied deployment. Returns its record."""
        deployment.empty()
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        run([self.bin / "shardload", name, "--uri", deployment.uri, "--db", DATABASE, "--collection",
             COLLECTION, "--work-dir", work, "--clustered", *words, data.path], (EXIT_OK, EXIT_REJECTS))
        record = json.loads((work / f"{'run' if name == 'load' else name}.json").read_text("utf-8"))
        shutil.rmtree(work)
        return record

    def query(self, deployment, *names, suite="mot", repeat=5):
        """Runs queries of a suite on the loaded documents. Returns the queries of the report."""
        words = [word for name in names for word in ("--query", name)]
        return run_queries(self, deployment.uri, DATABASE, COLLECTION, "--repeat", repeat, *words, suite)

    def yardstick(self, deployment, data, layout=(), threads=None, uri=None, clustered=True,
                  batch=BATCH_DOCUMENTS):
        """Loads the same documents by the yardstick, with the same layout, threads and batches."""
        dump = self.data.dump(data)
        deployment.empty()
        options = {"clusteredIndex": {"key": {"_id": 1}, "unique": True}} if clustered else {}
        deployment.lay_out(layout, **options)
        splits = [word for lower, _, _ in layout[1:] for word in ("--split", lower["_id"])]
        room = BATCH_BYTES
        if layout:  # the loader divides a worker's buffer among the shards
            shards = len({shard for _, _, shard in layout})
            room = min(room, max(2 * BATCH_BYTES // shards, 1 << 20))
        process = run([self.bin / "shardload-yardstick", "--uri", uri or deployment.plain_uri,
                       "--db", DATABASE, "--collection", COLLECTION,
                       "--threads", threads or self.threads, "--batch-size", batch,
                       "--batch-bytes", room, "--write-concern", json.dumps(deployment.durable),
                       *splits, dump])
        figures = json.loads(process.output)
        deployment.expect(figures["documents"])
        return Loaded(process, figures["documents"], figures["seconds"], figures["batches"])

    def same_documents(self, deployment, data):
        """Checks that the documents of a load have the ids of the yardstick's dump."""
        with open(self.data.dump(data), "rb") as dump:
            first = int.from_bytes(dump.read(17)[9:], "little", signed=True)
        if deployment.smallest_id() != first:
            raise Failure("the ids of the yardstick's dump differ from those of the load")
