# SPDX-License-Identifier: Apache-2.0
"""Rows with a server: the loader against the yardstick, which only sends batches."""
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from .figures import Skip, at_least, at_most, threads_of
from .process import end, rate, start
from .servers import NAMES, REAL

RELAY = Path(__file__).resolve().parent / "relay.py"
RELAY_MS = 5
FEW = 3  # rounds of rows with many variants
THREADS = (1, 2, 4, 8)


def mot_for_servers(bench):
    return bench.data.mot(bench.scaled(2_000_000))


def against_yardstick(kind, whole_target=None):
    def row(bench, result):
        if kind in REAL and "SHARDLOAD_REAL" not in os.environ:
            raise Skip("SHARDLOAD_REAL does not name real servers")
        data = mot_for_servers(bench)
        bench.data.dump(data)
        deployment = bench.servers.start(kind)
        rates = result.compare("loader, docs/s", "yardstick, docs/s",
                               "loader against yardstick", at_least(0.95))
        whole = result.compare("yardstick, seconds of its load", "loader, seconds of its process",
                               "loader's whole process against yardstick", whole_target)
        cpu = result.compare("loader, CPU s per million", "yardstick, CPU s per million",
                             "CPU, loader against yardstick")
        batches = []
        kind_of = {"clustered": deployment.clustered}
        bench.load(deployment, data, **kind_of)  # warm-up: new files and cold caches
        bench.same_documents(deployment, data)
        for _ in bench.rounds():
            ours = bench.load(deployment, data, **kind_of)
            plain = bench.yardstick(deployment, data, deployment.layout(), **kind_of)
            rates.add(ours.rate, plain.rate)
            whole.add(plain.seconds, ours.process.wall)
            cpu.add(ours.cpu_per_million, plain.cpu_per_million)
            batches.append((ours.batches, plain.batches))
        result.note(f"documents/s of the loading alone; {bench.threads} threads, write concern "
                    f"{json.dumps(deployment.durable)}, {'' if deployment.clustered else 'not '}clustered "
                    f"collection; batches of loader and yardstick: {batches[-1][0]} and {batches[-1][1]}")
        result.note("the loader's process also prepares and verifies; its CPU time includes parsing, "
                    "the yardstick's includes reading the dump")
    return row


def client_cpu(bench, result):
    data = mot_for_servers(bench)
    for kind in ("mongod", "cluster"):
        deployment = bench.servers.start(kind)
        line = result.line(f"{NAMES[kind]}, CPU s per million", at_most(0.25))
        kernel = result.line(f"{NAMES[kind]}, kernel CPU s per million")
        for _ in bench.rounds(what=NAMES[kind]):
            run = bench.load(deployment, data)
            line.add(run.cpu_per_million)
            kernel.add(run.process.system / run.documents * 1e6)


def scaling(bench, result):
    data = bench.data.mot(bench.scaled(10_000_000))
    lines = {n: result.line(f"null sink, {threads_of(n)}, million docs/s") for n in THREADS}
    for _ in bench.rounds(what="null sink"):
        for threads, line in lines.items():
            run = bench.parse(data.path, threads=threads)
            line.add(rate(run.documents, run.process.wall) / 1e6)
    data = bench.data.mot(bench.scaled(1_000_000))
    for kind in ("mongod", "cluster"):
        deployment = bench.servers.start(kind)
        lines = {n: result.line(f"{NAMES[kind]}, {threads_of(n)}, docs/s") for n in THREADS}
        bench.load(deployment, data)
        for _ in bench.rounds(what=NAMES[kind]):
            for threads, line in lines.items():
                line.add(bench.load(deployment, data, threads=threads).rate)


@contextmanager
def relayed(uri, milliseconds, rate=0):
    """Starts a relay to the server that delays every byte in both directions, and passes on `rate`
    bytes per second at most (0: no limit); yields its URI."""
    host, port = re.match(r"mongodb://([^:/]+):(\d+)", uri).groups()
    process = start([sys.executable, RELAY, f"{host}:{port}", milliseconds, rate],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield f"mongodb://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        end(process)
        process.stdin.close()
        process.stdout.close()


def round_trip(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000))
    bench.data.dump(data)
    deployment = bench.servers.start("mongod")
    near = result.line(f"no delay, {bench.threads} threads, docs/s")
    rates, shares, ratios = {}, {}, {}
    for threads in (1, 2, 4, 8, 16):
        rates[threads] = result.line(f"{threads_of(threads)}, docs/s")
        shares[threads] = result.line(f"{threads_of(threads)}, against no delay")
        ratios[threads] = result.line(f"{threads_of(threads)}, against the yardstick")
    with relayed(deployment.plain_uri, 0) as at_once, \
            relayed(deployment.plain_uri, RELAY_MS) as later:
        bench.load(deployment, data, uri=at_once)
        for _ in bench.rounds(FEW):
            base = bench.load(deployment, data, uri=at_once).rate
            near.add(base)
            for threads, line in rates.items():
                ours = bench.load(deployment, data, uri=later, threads=threads).rate
                plain = bench.yardstick(deployment, data, uri=later, threads=threads).rate
                line.add(ours)
                shares[threads].add(ours / base)
                ratios[threads].add(ours / plain)
    result.note(f"a relay delays both directions by {RELAY_MS} ms; 'no delay' uses the relay too, "
                "because the relay also uses the machine; batches of 10,000")


def durability(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000))
    for kind in ("mongod", "replica", "cluster"):
        deployment = bench.servers.start(kind)
        pair = result.compare(f"{NAMES[kind]}, majority, docs/s",
                              f"{NAMES[kind]}, w: 1, docs/s",
                              f"{NAMES[kind]}, majority against w: 1")
        bench.load(deployment, data)
        for _ in bench.rounds(what=NAMES[kind]):
            safe = bench.load(deployment, data).rate
            pair.add(safe, bench.load(deployment, data, "--write-concern", 1).rate)
    result.note("majority: journaled on a majority of members; on a standalone mongod the loader uses "
                "w: 1, j: true")


def direct(bench, result):
    data = mot_for_servers(bench)
    deployment = bench.servers.start("cluster")
    for key in ('{"_id": 1}', '{"v": "hashed"}'):
        # Only a collection whose shard key is _id can be clustered by _id.
        more = {"clustered": key == '{"_id": 1}'}
        rates = result.compare(f"{key}, straight to the shards, docs/s",
                               f"{key}, through the router, docs/s",
                               f"{key}, straight against router")
        cpu = result.compare(f"{key}, straight, CPU s per million",
                             f"{key}, router, CPU s per million",
                             f"{key}, CPU, straight against router")
        bench.load(deployment, data, "--shard-key", key, **more)
        for _ in bench.rounds(what=key):
            runs = [bench.load(deployment, data, "--shard-key", key, "--route", route, **more)
                    for route in ("direct", "mongos")]
            rates.add(*[run.rate for run in runs])
            cpu.add(*[run.cpu_per_million for run in runs])
    result.note("two shards and one router share this machine; the direct route saves the router's CPU "
                "time and one copy of the documents")


def wire_compression(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000))
    deployment = bench.servers.start("mongod")
    kinds = ("none", "snappy", "zlib", "zstd")
    rates = {kind: result.line(f"{kind}, docs/s") for kind in kinds}
    ratios = {kind: result.line(f"{kind} against none") for kind in kinds[1:]}
    cpu = {kind: result.line(f"{kind}, client CPU s per million") for kind in kinds}
    bench.load(deployment, data)
    for _ in bench.rounds():
        found = {}
        for kind in kinds:
            more = "" if kind == "none" else f"?compressors={kind}"
            run = bench.load(deployment, data, uri=deployment.plain_uri + more)
            found[kind] = run.rate
            rates[kind].add(run.rate)
            cpu[kind].add(run.cpu_per_million)
        for kind, line in ratios.items():
            line.add(found[kind] / found["none"])
    result.note("on loopback compression only costs CPU time; over a slow network it saves time")


ROWS = [
    ("load-mongod", "MOT into one mongod, loader against yardstick",
     against_yardstick("mongod")),
    ("load-replica", "MOT into a replica set of three, loader against yardstick",
     against_yardstick("replica")),
    ("load-cluster", "MOT into two shards, loader against yardstick",
     against_yardstick("cluster")),
    ("load-mongos", "MOT through a real mongos into two shards, loader against yardstick",
     against_yardstick("mongos", at_least(0.9))),
    ("load-two-mongos", "MOT through two real mongos into two shards, loader against yardstick",
     against_yardstick("mongos2", at_least(0.9))),
    ("client-cpu", "the loader's CPU time, parsing and sending, MOT", client_cpu),
    ("scaling", "the loader with 1, 2, 4 and 8 threads, MOT", scaling),
    ("round-trip", f"a server {RELAY_MS} ms away, by number of threads", round_trip),
    ("durability", "write concern majority against w: 1", durability),
    ("direct", "--route direct against the router", direct),
    ("wire-compression", "compressors in the URI, into one mongod", wire_compression),
]
