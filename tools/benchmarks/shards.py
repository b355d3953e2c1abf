# SPDX-License-Identifier: Apache-2.0
"""`bench shards`: the same data on 1, 2, 4, ... shards of one machine.

A mongod uses several cores for a load, but only one for an aggregation. Divided into shards, the data
is aggregated by several servers at once. This measures the gain, and the cost in load rate, disk space
and memory. The sum of the caches is the same for any number of shards, because otherwise more shards
would have more memory.
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
from .process import Failure, remove_folder, with_signals_held
from .shards_options import GIB, read_options, size_text

SERVER_MEMORY = 250 << 20  # estimate of a server's memory without its cache, in bytes
FAST_ENOUGH = 500_000      # records; with fewer, start and end take longer than the work


class Row:
    """A case and its figures, with a value per round."""

    # (attribute, title)
    LINES = (("rate", "documents/s of the load phase"),
             ("seconds", "seconds of the load phase"),
             ("whole", "seconds of all phases of the load"),
             ("ratio", "rate against the first number of shards, round by round"),
             ("loader_cpu", "CPU seconds of the loader per million documents"),
             ("server_cpu", "CPU seconds of all servers per million documents, loading"),
             ("others", "share of the machine that other programs used during the load"),
             ("stored", "bytes of the files of the collection and of its indexes"),
             ("indexes", "bytes of the indexes' files"),
             ("files", "bytes of all files of the shards"),
             ("journal", "bytes of the journals"),
             ("memory", "bytes: sum of the shards' peak memories"))

    def __init__(self, case, queries):
        self.case = case
        for name, title in self.LINES:
            setattr(self, name, Line(title))
        self.load_cpu, self.query_cpu = [], []  # CpuWatch.shares of each round
        self.queries = {name: Line(name) for name in queries}        # milliseconds
        self.query_ratios = {name: Line(name) for name in queries}   # baseline's time / this one's

    def add(self, figures, load_cpu, query_cpu, times):
        """Adds the figures of one measurement."""
        for name, value in figures.items():
            getattr(self, name).add(value)
        self.load_cpu.append(load_cpu)
        self.query_cpu.append(query_cpu)
        for name, milliseconds in times.items():
            self.queries[name].add(milliseconds)


class Experiment:
    """Measures all cases, in rounds."""

    def __init__(self, options, bench):
        self.options = options
        self.bench = bench
        self.rows = [Row(case, options.queries) for case in options.cases]
        self.answers = {}  # query -> its first answer, which all later answers must equal
        self.loaded = None

    def check_memory(self):
        """Fails if the servers need more memory than is free: the disk would be measured instead."""
        needed = max(case.cache + (case.shards + 1) * SERVER_MEMORY for case in self.options.cases)
        free = machine.memory_available()
        if free is not None and needed > free:
            raise Failure(f"{max(self.options.counts)} shards may need {size_text(needed)} of "
                          f"memory, but {size_text(free)} are free: choose fewer --shards, or a "
                          "smaller --cache")

    def run(self):
        self.check_memory()
        data = self.bench.data.mot(self.options.records)
        for number in self.bench.rounds():
            # Alternating order, so that a slow change of the machine affects all rows equally.
            rows = self.rows if number % 2 else self.rows[::-1]
            for row in rows:
                self.bench.say(row.case.text())
                self.measure(row, data)
            for row in self.rows:
                self.compare(row)

    def baseline(self, row):
        """The row that `row` is compared with: one shard or, without such a row, the fewest."""
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
            raise Failure(f"{case.text()}: the shards store {documents} documents, not "
                          f"{self.loaded.documents}")
        times, query_cpu = self.query(case, deployment)
        files, journal = deployment.file_bytes()
        figures.update(stored=stored + indexes, indexes=indexes, files=files, journal=journal,
                       memory=deployment.peak_memory())
        row.add(figures, load_cpu, query_cpu, times)
        with_signals_held(self.bench.servers.stop)

    def load(self, deployment, data):
        """Returns the figures of a load, and the processors' shares during its load phase."""
        before, own = deployment.cpu_seconds(), time.process_time()
        with machine.CpuWatch() as watch:
            loaded = self.bench.load(deployment, data, *self.options.load_option, clustered=False)
        if self.loaded and loaded.documents != self.loaded.documents:
            raise Failure(f"this load inserted {loaded.documents} documents, the previous one "
                          f"{self.loaded.documents}")
        self.loaded = loaded
        server_cpu = deployment.cpu_seconds() - before
        busy, available = watch.busy()
        others = busy - server_cpu - loaded.process.cpu - (time.process_time() - own)
        figures = dict(rate=loaded.rate, seconds=loaded.seconds, whole=loaded.process.wall,
                       loader_cpu=loaded.cpu_per_million,
                       server_cpu=server_cpu / loaded.documents * 1e6,
                       others=max(others, 0) / available)
        return figures, watch.shares(*loaded.span)

    def query(self, case, deployment):
        """Returns the milliseconds of each query, and the processors' shares during all of them."""
        with machine.CpuWatch() as watch:
            entries = self.bench.query(deployment, *self.options.queries,
                                       repeat=self.options.repeat)
        for entry in entries:
            answer = rounded(entry["results"])
            if self.answers.setdefault(entry["name"], answer) != answer:
                raise Failure(f"{case.text()}: the answer to {entry['name']} differs from the first one")
        return {entry["name"]: entry["medianMs"] for entry in entries}, watch.shares()

    def warnings(self, facts):
        found = machine.warnings(facts)
        if self.options.records < FAST_ENOUGH:
            found.append(f"with {self.options.records:,} records the programs take longer to start and end "
                         "than for the measured work: do not quote these figures")
        most = max((value for row in self.rows for value in row.others.values), default=0)
        if most > machine.FOREIGN:
            found.append(f"other programs used up to {100 * most:.0f} % of the machine during a load: "
                         "do not quote these figures; on a busy machine many shards get a larger share "
                         "than few")
        return found


def rounded(value):
    """The answer with numbers rounded to nine digits: further digits depend on the order of addition."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def attempt(experiment):
    """Runs the experiment. Returns (exit status, reason if not 0); measured values are kept."""
    try:
        experiment.run()
        return 0, ""
    except KeyboardInterrupt:
        return 130, "interrupted: only completed rounds are shown"
    except (Failure, Skip) as failure:
        return 1, str(failure)
    except Exception as error:  # noqa: BLE001 (measured values are still printed)
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {str(error)[:200]}"


def now():
    moment = datetime.datetime.now(datetime.timezone.utc)
    return {"$date": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def main(words, prepare):
    """`prepare` builds missing programs and returns the build folder. Returns the exit status."""
    options = read_options(words)
    options.scale = 1.0
    build = prepare()
    if options.records >= FAST_ENOUGH:  # figures of fewer records must not be quoted
        machine.wait_for_rest(180)
    folder = Path(tempfile.mkdtemp(prefix="shardload-bench-"))
    facts, started = {**machine.describe(build), "runs": options.runs}, now()
    bench = Bench(options, folder, build)
    bench.doing = "shards"
    try:
        experiment = Experiment(options, bench)
        ticks = machine.cpu_states()
        code, why = attempt(experiment)
        facts.update(server=bench.servers.version, driver=bench.driver,
                     stolenShare=machine.stolen_share(ticks))
        output = shards_report.Report(experiment, facts, experiment.warnings(facts), why)
        record = output.as_json(started, now(), code)
        print(output.table() + "\n" + output.bars(), end="")
        if options.json:
            report.write(options.json, json.dumps(record, indent=2) + "\n")
        if options.markdown:
            report.write(options.markdown, output.markdown())
    finally:
        with_signals_held(lambda: clean_up(bench, folder))
    if why:
        print(f"bench: {why}", file=sys.stderr)
    return code


def clean_up(bench, folder):
    try:
        bench.servers.stop()
    except Failure as failure:
        bench.say(f"stopping the servers: {failure}")
    remove_folder(folder)
