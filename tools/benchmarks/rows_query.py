# SPDX-License-Identifier: Apache-2.0
"""The row of shardquery: its reads against those of plain sockets and of the Python driver."""
import json
import re
import sys

from .bench import run_queries
from .figures import at_least, at_most
from .process import run
from .servers import COLLECTION, DATABASE

SECONDS = 4
CLIENTS = (1, 8, 64)
DOCUMENTS = 100_000

SUITE = """
name: bench
queries:
  - name: read
    operation: findOne
    filter: '{"_id": {"$parameter": "id"}}'
    parameters: {id: {range: [0, %d]}}
"""


def clients_of(count):
    return f"{count} client{'s' if count > 1 else ''}"


def point_reads(bench, result):
    """findOne by _id in a closed loop, against a plain-socket program that sends the same messages."""
    deployment = bench.servers.start("mongod")
    deployment.collection.insert_many({"_id": i, "n": i} for i in range(DOCUMENTS))
    suite = bench.folder / "reads.yaml"
    suite.write_text(SUITE % (DOCUMENTS - 1), "utf-8")
    rates = {n: result.compare(f"{clients_of(n)}, shardquery, reads/s",
                               f"{clients_of(n)}, plain sockets, reads/s",
                               f"{clients_of(n)}, shardquery against plain sockets", at_least(0.9))
             for n in CLIENTS}
    added = result.line("1 client, median latency above plain sockets, microseconds", at_most(10))
    driver = result.line("1 client, shardquery against the Python driver")
    read_by_shardquery(bench, deployment, suite, 8)  # fills the cache
    for _ in bench.rounds():
        for clients in CLIENTS:
            plain = read_by_sockets(bench, deployment, clients)
            ours = read_by_shardquery(bench, deployment, suite, clients)
            rates[clients].add(ours["operationsPerSecond"], plain["operations"] / plain["seconds"])
            if clients == 1:
                added.add(ours["latencyMs"]["p50"] * 1e3 - plain["p50Us"])
                driver.add(ours["operationsPerSecond"] / read_by_driver(deployment))
    result.note(f"{DOCUMENTS:,} small documents in the cache; {SECONDS} s per measurement, the "
                "programs alternate; clients and server share the machine")


def read_by_sockets(bench, deployment, clients):
    host, port = re.match(r"mongodb://([^:/]+):(\d+)", deployment.plain_uri).groups()
    done = run([bench.bin / "shardload-yardstick-reads", host, port, DATABASE, COLLECTION, 0,
                DOCUMENTS, clients, SECONDS])
    return json.loads(done.output)


def read_by_shardquery(bench, deployment, suite, clients):
    [query] = run_queries(bench, deployment.uri, DATABASE, COLLECTION, "--clients", clients, "--duration",
                          f"{SECONDS}s", suite)
    return query


def read_by_driver(deployment):
    """Reads per second of one thread in Python."""
    done = run([sys.executable, "-c", DRIVER, deployment.plain_uri, DATABASE, COLLECTION, DOCUMENTS,
                SECONDS])
    return float(done.output)


DRIVER = """
import random, sys, time
import pymongo
uri, database, collection, count, seconds = sys.argv[1:]
documents = pymongo.MongoClient(uri)[database][collection]
documents.find_one({"_id": 0})
begun, reads = time.perf_counter(), 0
while time.perf_counter() - begun < float(seconds):
    assert documents.find_one({"_id": random.randrange(int(count))})
    reads += 1
print(reads / (time.perf_counter() - begun))
"""

ROWS = [
    ("point-reads", "shardquery's findOne in a closed loop against plain sockets", point_reads),
]
