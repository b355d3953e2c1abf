# SPDX-License-Identifier: Apache-2.0
"""Rows that repeat published experiments on loading and querying such data sets.

Methods to compute a sum, in documents per millisecond; block compressors; point queries on a secondary
during a load. `bench shards` (shards.py) repeats another published experiment.
"""
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from .process import Failure, end, rate, run, start
from .servers import COLLECTION, DATABASE, NAMES

HERE = Path(__file__).resolve().parent
METHODS = {"pipeline": "pipeline", "map-reduce": "mapReduce", "documents": "client, documents",
        "projection": "client, two fields"}
COMPRESSORS = ("none", "snappy", "zlib", "zstd")
QUERY = "green-ness"
READS, READERS = 100, 8  # reads per second; threads that read
AT_REST = 10    # seconds of reads without a load
PERCENTILES = (50, 95, 99)
OTHER = f"{DATABASE}_beside"  # the database that is loaded while DATABASE is read


# Methods to compute a sum

def sums(bench, result):
    data = bench.data.mot(bench.scaled(500_000))
    speeds, answers = {}, {}
    for kind, methods in (("mongod", METHODS), ("cluster", ("pipeline",))):
        deployment = bench.servers.start(kind)
        documents = bench.load(deployment, data, clustered=False).documents
        deployment.write_out()
        lines = {method: result.line(f"{NAMES[kind]}, {METHODS[method]}, docs/ms")
                 for method in methods}
        ratios = {method: result.line(f"{METHODS[method]} against pipeline") for method in methods
                  if method != "pipeline"}
        sum_up(deployment, "pipeline")  # fills the cache
        for _ in bench.rounds(what=NAMES[kind]):
            for method, line in lines.items():
                output = sum_up(deployment, method)
                answers[kind, method] = output["answer"]
                if output["answer"] != answers["mongod", "pipeline"]:
                    raise Failure(f"{NAMES[kind]}, {METHODS[method]}: the answer differs from that of "
                                  "the pipeline on mongod")
                speeds[method] = rate(documents, output["seconds"]) / 1e3
                line.add(speeds[method])
            for method, line in ratios.items():
                line.add(speeds[method] / speeds["pipeline"])
    counted = sum(tests for tests, _ in answers["mongod", "pipeline"].values())
    if counted != documents:
        raise Failure(f"the sums count {counted} documents instead of {documents}")
    result.note(f"tests and miles of each fuel type, over {documents:,} MOT tests, everything in "
                "the cache; all methods give the same answer; the project's router does not support "
                "mapReduce, so two shards have only the pipeline")


def sum_up(deployment, method):
    done = run([sys.executable, HERE / "sums.py", deployment.uri, DATABASE, COLLECTION, method])
    return json.loads(done.output)


# Block compressors

def compressors(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000))
    deployment = bench.servers.start("mongod")
    titles = (("rate", "docs/s"), ("ratio", "data against its files"),
              ("bytes", "bytes of files per document"), ("query", f"{QUERY}, ms"))
    lines = {kind: {key: result.line(f"{kind}, {title}") for key, title in titles}
             for kind in COMPRESSORS}
    against = {(kind, key): result.line(f"{kind} against none, {what}")
               for kind in COMPRESSORS[1:] for key, what in (("rate", "rate"),
                                                             ("query", "query time"))}
    bench.load(deployment, data)
    for _ in bench.rounds():
        found = {kind: compressed(bench, deployment, data, kind) for kind in COMPRESSORS}
        for kind, figures in found.items():
            for key, line in lines[kind].items():
                line.add(figures[key])
        for (kind, key), line in against.items():
            line.add(found[kind][key] / found["none"][key])
    result.note("clustered collections; data: bytes of BSON; files: their size after a flush; queries "
                "read uncompressed blocks of the cache if the collection fits into it")


def compressed(bench, deployment, data, kind):
    loaded = bench.load(deployment, data, "--compressor", kind)
    deployment.write_out()
    documents, size, stored, _ = deployment.stored()
    [entry] = bench.query(deployment, QUERY, repeat=3)
    return {"rate": loaded.rate, "ratio": size / stored, "bytes": stored / documents,
            "query": entry["medianMs"]}


# Point queries on a secondary

def secondary_reads(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000, least=20_000))
    deployment = bench.servers.start("replica")
    bench.load(deployment, data, clustered=False)
    wait_for_secondaries(deployment)
    pairs = {percent: result.compare(f"while loading, {percent} %, ms", f"at rest, {percent} %, ms",
                                     f"loading against rest, {percent} %")
             for percent in PERCENTILES}
    most = result.compare("while loading, slowest, ms", "at rest, slowest, ms",
                          "loading against rest, slowest")
    alone = result.line("loader, docs/s, without reads")
    rates = result.line("loader, docs/s, with reads")
    counts = []
    for _ in bench.rounds(3):
        with reading(deployment) as reads:
            time.sleep(max(AT_REST * min(bench.scale, 1), 0.5))
        rest = sorted(latency for _, latency in reads)
        alone.add(bench.load(deployment, data, clustered=False, database=OTHER).rate)
        wait_for_secondaries(deployment)
        with reading(deployment) as reads:
            loaded = bench.load(deployment, data, clustered=False, database=OTHER)
        begin, until = loaded.span
        busy = sorted(latency for due, latency in reads if begin <= due < until)
        wait_for_secondaries(deployment)
        if not rest or not busy:
            raise Failure("too little data to measure: use a larger --scale")
        for percent, pair in pairs.items():
            pair.add(quantile(busy, percent), quantile(rest, percent))
        most.add(busy[-1], rest[-1])
        rates.add(loaded.rate)
        counts.append((len(rest), len(busy)))
    result.note(f"{READS} reads per second by _id, by {READERS} threads, of another collection than "
                "the loaded one; latencies count from the time at which a read was due; reads per "
                "round, at rest and while loading: " +
                ", ".join(f"{a:,} and {b:,}" for a, b in counts))


@contextmanager
def reading(deployment):
    """Reads from secondaries during the `with`; at its end the list has a (due time, ms) per read."""
    uri = deployment.uri + "&readPreference=secondary"
    process = start([sys.executable, HERE / "point_reads.py", uri, DATABASE, COLLECTION, READS,
                     READERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    reads = []
    try:
        if process.stdout.readline() != b"reading\n":
            raise Failure("point_reads.py did not start to read from a secondary")
        yield reads
        process.stdin.close()
        reads += map(json.loads, process.stdout)
        if process.wait() != 0:
            raise Failure("point_reads.py failed to read from a secondary")
    finally:
        end(process)
        process.stdin.close()
        process.stdout.close()


def quantile(ordered, percent):
    """The value that `percent` of the values do not exceed."""
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def wait_for_secondaries(deployment, patience=120):
    """Waits until every member has applied the primary's operations."""
    deadline = time.monotonic() + patience
    while True:
        members = deployment.client.admin.command("replSetGetStatus")["members"]
        times = [member["optime"]["ts"] for member in members]
        first = next(member["optime"]["ts"] for member in members
                     if member["stateStr"] == "PRIMARY")
        if all(each >= first for each in times):
            return
        if time.monotonic() > deadline:
            raise Failure(f"the secondaries have not caught up within {patience} s")
        time.sleep(0.2)


ROWS = [
    ("queries", "one sum over all documents: pipeline, mapReduce, client", sums),
    ("compressors", "block compressors: load rate, disk space, query time", compressors),
    ("secondary-reads", "point queries on a secondary, during a load and at rest",
     secondary_reads),
]
