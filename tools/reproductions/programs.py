# SPDX-License-Identifier: Apache-2.0
"""Starts clusters and runs the programs. Everything that an experiment measures comes from the JSON
records that the programs write."""
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks import machine
from benchmarks.bench import run_queries
from benchmarks.process import Failure, run, run_together, start, with_signals_held
from benchmarks.process import rate as per_second

TOOLS = Path(__file__).resolve().parents[1]
DATABASE = "shardload_reproduce"
EXIT_OK, EXIT_REJECTS = 0, 1


class Programs:
    """Set at creation: `scale`, `folder` (deleted at the end), `pages` (kept), `given_uri`, `bin`."""

    def __init__(self, options, folder, build):
        self.scale = options.scale
        self.given_uri = options.uri
        self.folder = folder
        self.pages = options.pages
        self.bin = build / "bin"
        self.samples = Path(os.environ.get("SHARDLOAD_SAMPLES", ""))
        self.threads = 2 * machine.cores()
        self.server = self.driver = None  # versions
        self.doing = ""
        self.cluster_folder = None
        self.begun = time.monotonic()

    def say(self, text):
        print(f"reproduce: {time.monotonic() - self.begun:4.0f} s: {self.doing}: {text}",
              file=sys.stderr, flush=True)

    def scaled(self, count, least=1000):
        return max(int(count * self.scale), least)

    # Clusters

    @contextmanager
    def cluster(self, *words):
        """A new cluster of tools/localcluster, or the one of --uri. Yields the URI."""
        if self.given_uri:
            self.drop(self.given_uri)
            try:
                yield self.given_uri
            finally:
                with_signals_held(lambda: self.drop(self.given_uri))
            return
        self.say(f"starting servers: {' '.join(map(str, words))}")
        self.cluster_folder = self.folder / "cluster"
        try:
            yield run([TOOLS / "localcluster", "up", "--dir", self.cluster_folder,
                       *words]).output.split()[-1]
        finally:
            with_signals_held(self.stop)

    def stop(self):
        if self.cluster_folder:
            folder, self.cluster_folder = self.cluster_folder, None
            run([TOOLS / "localcluster", "down", "--dir", folder], (0, 1))

    @staticmethod
    def drop(uri):
        """Drops the database of the experiments on a cluster that is not ours."""
        import pymongo
        with pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000) as client:
            client.drop_database(DATABASE)

    # Data

    def sample(self, *names):
        """The existing files of the real samples, below SHARDLOAD_SAMPLES."""
        return [path for name in names for path in sorted(self.samples.glob(name))
                if path.is_file()]

    def generate(self, name, rows, kind):
        """Generates a file of this format from a fixed seed."""
        path = self.folder / name
        if not path.exists():
            self.say(f"generating {name} of {rows:,} records")
            program = [self.bin / "shardload-datagen", "--format"] if kind in ("mot", "isd") else \
                [sys.executable, TOOLS / "datagen" / "rows.py"]
            run([*program, kind, "--rows", rows, path])
        return path

    # Programs

    def work(self, name):
        work = self.folder / name
        shutil.rmtree(work, ignore_errors=True)
        return work

    @staticmethod
    def record(path):
        return json.loads(Path(path).read_text("utf-8"))

    def loader(self, command, work, uri, collection, *words):
        quiet = ["--progress", "none"] if command == "load" else []
        return [self.bin / "shardload", command, "--uri", uri, "--db", DATABASE, "--collection",
                collection, *quiet, "--work-dir", work, *words]

    def load(self, uri, collection, *words):
        """A load. Returns its record."""
        return self.loads(uri, collection, [words])[0]

    def loads(self, uri, collection, each):
        """Loads that run at the same time, one for each list of words. Returns their records."""
        works = [self.work(f"load-{i}") for i in range(len(each))]
        run_together([self.loader("load", work, uri, collection, *words)
                      for work, words in zip(works, each)], (EXIT_OK, EXIT_REJECTS))
        records = [self.record(work / "run.json") for work in works]
        for record in records:
            if not record["accounting"]["addsUp"]:
                raise Failure("the totals of a load do not add up")
        self.server, self.driver = records[0]["server"]["version"], records[0]["driver"]
        return records

    def tune(self, uri, collection, *words):
        work = self.work("tune")
        run(self.loader("tune", work, uri, collection, *words))
        return self.record(work / "tune.json")

    def drill(self, name, uri, collection, *words):
        work = self.work(name)
        run(self.loader("reload", work, uri, collection, *words), (EXIT_OK, EXIT_REJECTS))
        return self.record(work / "reload.json")

    def query(self, uri, collection, *words):
        """Runs queries. Returns the list of the report."""
        return run_queries(self, uri, DATABASE, collection, *words)

    def bench_shards(self, *words):
        """`tools/bench shards`, which starts its own clusters. Returns its record."""
        file = self.folder / "shards.json"
        bench = start([TOOLS / "bench", "shards", "--json", file, *words], stdout=subprocess.DEVNULL)
        try:
            code = bench.wait()  # its standard error, with its progress, is ours
        except BaseException:
            bench.terminate()  # it stops its servers itself
            with_signals_held(bench.wait)
            raise
        if code != EXIT_OK:
            raise Failure(f"tools/bench shards: exit status {code}: its reason is on standard error")
        return self.record(file)

    def page(self, outcome, title, name, *records):
        """Draws records by `shardload report`; links the page from that of the experiment."""
        file = self.pages / f"{outcome.experiment.name}-{name}.html"
        paths = []
        for i, record in enumerate(records):
            paths.append(self.folder / f"{name}-{i + 1}.json")
            paths[-1].write_text(json.dumps(record), "utf-8")
        run([self.bin / "shardload", "report", "--title", title, "--html", file, *paths])
        outcome.pages.append((title, file.name))


# Figures of records

def phase(record, name):
    """Seconds of all phases of that name; 0 if there is none."""
    return sum(each["seconds"] for each in record["phases"] if each["name"] == name)


def all_phases(record):
    return sum(each["seconds"] for each in record["phases"])


def documents(record):
    return record["accounting"]["inserted"]


def load_rate(record):
    return per_second(documents(record), phase(record, "load"))


def shards_sum(record, key):
    return sum(each[key] for each in record["shards"])
