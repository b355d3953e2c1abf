# SPDX-License-Identifier: Apache-2.0
"""`bench shards`: the same data on more and more shards of one machine.

A mongod uses several cores for one load, but only one for one aggregation. Cut into shards, the
same data is aggregated by as many servers at once; what that costs at loading, on the disk and in
memory is what is measured here. The caches of all shards together are the same for any number of
shards, else more shards would simply be given more memory.
"""
import datetime
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path

from . import machine, report, shards_report
from .bench import Bench
from .figures import Line, Skip
from .process import Failure, remove_folder, run, with_signals_held
from .shards_options import GIB, read_options, size_text

SERVER_MEMORY = 250 << 20  # bytes that a server takes besides its cache: a cautious guess
FAST_ENOUGH = 500_000      # records from which starting and ending weighs less than the work


class Row:
    """A case and what was found of it, a value per round."""

    # Lines of a row: (attribute, what it is).
    LINES = (("rate", "documents/s of the loading alone"),
             ("seconds", "seconds of the loading alone"),
             ("whole", "seconds of the whole load, with laying out and verifying"),
             ("ratio", "rate against the first number of shards, round by round"),
             ("loader_cpu", "CPU seconds of the loader per million documents"),
             ("server_cpu", "CPU seconds of all servers per million documents, loading"),
             ("others", "share of the machine that other programs took, loading"),
             ("stored", "bytes of the files of the collection and of its indexes"),
             ("indexes", "of these, of the indexes"),
             ("files", "bytes of all files of the shards"),
             ("journal", "of these, of the journals"),
             ("memory", "bytes of memory, the shards' peaks together"))

    def __init__(self, case, queries):
        self.case = case
        for name, title in self.LINES:
            setattr(self, name, Line(title))
        self.load_cpu, self.query_cpu = [], []  # shares of the machine, one dictionary a round
        self.queries = {name: Line(name) for name in queries}        # milliseconds
        self.query_ratios = {name: Line(name) for name in queries}   # baseline's time / this one's

    def add(self, figures, load_cpu, query_cpu, times):
        """One measurement, which has come to its end."""
        for name, value in figures.items():
            getattr(self, name).add(value)
        self.load_cpu.append(load_cpu)
        self.query_cpu.append(query_cpu)
        for name, milliseconds in times.items():
            self.queries[name].add(milliseconds)


class Experiment:
    """Set at creation: the options, what rounds and servers come from, and the rows."""

    def __init__(self, options, bench):
        self.options = options
        self.bench = bench
        self.rows = [Row(case, options.queries) for case in options.cases]
        self.answers = {}  # of each query: the first one, which all others must be like
        self.loaded = None

    def check_memory(self):
        """Eight servers that do not fit into memory measure the disk."""
        wanted = max(case.cache + (case.shards + 1) * SERVER_MEMORY for case in self.options.cases)
        there = machine.memory_available()
        if there is not None and wanted > there:
            raise Failure(f"{max(self.options.counts)} shards may take {size_text(wanted)} of "
                          f"memory, and {size_text(there)} are free: choose fewer --shards, or "
                          "less --cache")

    def run(self):
        self.check_memory()
        data = self.bench.data.mot(self.options.records)
        for number in self.bench.rounds():
            # There and back, so that what changes slowly falls on both ends alike.
            rows = self.rows if number % 2 else self.rows[::-1]
            for row in rows:
                self.bench.say(row.case.text())
                self.measure(row, data)
            for row in self.rows:
                self.compare(row)

    def baseline(self, row):
        """The row that one is held against: one shard, or else the fewest."""
        peers = [other for other in self.rows if other.case.peers == row.case.peers]
        return min(peers, key=lambda other: (other.case.shards != 1, other.case.shards))

    def compare(self, row):
        base = self.baseline(row)
        row.ratio.add(row.rate.values[-1] / base.rate.values[-1])
        for name, line in row.queries.items():
            row.query_ratios[name].add(base.queries[name].values[-1] / line.values[-1])

    def measure(self, row, data):
        case = row.case
        words = ["--shards", case.shards, "--cache", f"{case.shard_cache / GIB:.4f}",
                 *(f"--mongod-option={word}" for word in case.engine.words)]
        deployment = self.bench.servers.start("cluster" if case.shards else "mongod", *words)
        figures, load_cpu = self.load(deployment, data)
        deployment.write_out()
        documents, _, stored, indexes = deployment.stored()
        if documents != self.loaded.documents:
            raise Failure(f"{case.text()}: the shards hold {documents} documents, not "
                          f"{self.loaded.documents}")
        times, query_cpu = self.query(case, deployment)
        files, journal = deployment.file_bytes()
        figures.update(stored=stored + indexes, indexes=indexes, files=files, journal=journal,
                       memory=deployment.peak_memory())
        row.add(figures, load_cpu, query_cpu, times)
        with_signals_held(self.bench.servers.stop)

    def load(self, deployment, data):
        """The figures of a load, and what the processors did during its load phase."""
        before, own = deployment.cpu_seconds(), time.process_time()
        with machine.CpuWatch() as watch:
            loaded = self.bench.load(deployment, data, *self.options.load_option, clustered=False)
        if self.loaded and loaded.documents != self.loaded.documents:
            raise Failure(f"this load has inserted {loaded.documents} documents, and another one "
                          f"{self.loaded.documents}")
        self.loaded = loaded
        server_cpu = deployment.cpu_seconds() - before
        busy, there = watch.busy()
        others = busy - server_cpu - loaded.process.cpu - (time.process_time() - own)
        figures = dict(rate=loaded.rate, seconds=loaded.seconds, whole=loaded.process.wall,
                       loader_cpu=loaded.cpu_per_million,
                       server_cpu=server_cpu / loaded.documents * 1e6,
                       others=max(others, 0) / there)
        return figures, watch.shares(*loaded.span)

    def query(self, case, deployment):
        """The milliseconds of each query, and what the processors did during all of them."""
        with machine.CpuWatch() as watch:
            entries = self.bench.query(deployment, *self.options.queries,
                                       repeat=self.options.repeat)
        for entry in entries:
            answer = rounded(entry["results"])
            if self.answers.setdefault(entry["name"], answer) != answer:
                raise Failure(f"{case.text()}: {entry['name']} has another answer than before")
        return {entry["name"]: entry["medianMs"] for entry in entries}, watch.shares()

    def warnings(self, facts):
        found = machine.warnings(facts)
        if self.options.records < FAST_ENOUGH:
            found.append(f"{self.options.records:,} records are so few that starting and ending "
                         "weighs more than the work: do not quote these figures")
        most = max((value for row in self.rows for value in row.others.values), default=0)
        if most > machine.FOREIGN:
            found.append(f"up to {100 * most:.0f} % of the machine went to other programs while "
                         "loading: do not quote these figures; many shards get more of a busy "
                         "machine than few")
        return found


def rounded(value):
    """An answer without the last digits of its fractions, which depend on the order of addition."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def attempt(experiment):
    """Runs it. The exit status, and the reason if it is not 0; what was measured stays."""
    try:
        experiment.run()
        return 0, ""
    except KeyboardInterrupt:
        return 130, "interrupted: these are the rounds that had ended"
    except (Failure, Skip) as failure:
        return 1, str(failure)
    except Exception as error:  # a server's trouble is told, and what was measured too
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {str(error)[:200]}"


def now():
    moment = datetime.datetime.now(datetime.timezone.utc)
    return {"$date": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def main(words, prepare):
    """`prepare` builds what is missing and gives the build folder. Returns the exit status."""
    options = read_options(words)
    options.scale = 1.0
    build = prepare()
    if options.html and not can_make_pages(build):
        print("bench: --html: this build of shardload has no command `report`, which makes the "
              "page; without --html the same is shown as bars", file=sys.stderr)
        return 1
    if options.records >= FAST_ENOUGH:  # else the figures are not to be quoted anyway
        machine.wait_for_rest(180)
    folder = Path(tempfile.mkdtemp(prefix="shardload-bench-"))
    facts, started = {**machine.describe(build), "runs": options.runs}, now()
    bench = Bench(options, folder, build)
    bench.doing = "shards"
    try:
        experiment = Experiment(options, bench)
        ticks, stolen = machine.cpu_ticks()
        code, why = attempt(experiment)
        ticks_now, stolen_now = machine.cpu_ticks()
        facts.update(server=bench.servers.version, driver=bench.driver,
                     stolenShare=(stolen_now - stolen) / max(ticks_now - ticks, 1))
        told = shards_report.Told(experiment, facts, experiment.warnings(facts), why)
        record = told.as_json(started, now(), code)
        print(told.table() + "\n" + told.bars(), end="")
        if options.json:
            report.write(options.json, json.dumps(record, indent=2) + "\n")
        if options.markdown:
            report.write(options.markdown, told.markdown())
        if options.html:
            code = write_page(bench, options.html, record) or code
    finally:
        with_signals_held(lambda: clean_up(bench, folder))
    if why:
        print(f"bench: {why}", file=sys.stderr)
    return code


def can_make_pages(build):
    return run([build / "bin" / "shardload", "report", "--help"], range(256)).code == 0


def write_page(bench, page, record):
    """Has shardload make a page of the record. Returns an exit status."""
    file = bench.folder / "shards.json"
    file.write_text(json.dumps(record), encoding="utf-8")
    try:
        run([bench.bin / "shardload", "report", "--html", page, file])
    except Failure as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    print(f"bench: written: {page}", file=sys.stderr)
    return 0


def clean_up(bench, folder):
    try:
        bench.servers.stop()
    except Failure as failure:
        bench.say(f"stopping the servers: {failure}")
    remove_folder(folder)
