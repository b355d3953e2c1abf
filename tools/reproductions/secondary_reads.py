# SPDX-License-Identifier: Apache-2.0
"""Reads on secondaries while the primary is written to (2018)."""
import shlex

from .experiment import Experiment, Figure
from .programs import documents, load_rate

RECORDS = 200_000
CLIENTS = (8, 16, 32, 64)
OLD = (1, 2, 3, 5)
SNAPSHOTS = (0, 1, 1, 0)
SECONDS = 5       # of a measurement
WRITES = 10_000   # documents/s
SIZE = ["--format", "ycsb", "--field-count", 2, "--field-length", 50, "--integer-count", 4]

SUITE = """
name: reads
queries:
  - name: read
    operation: findOne
    filter: '{"_id": {"$parameter": "id"}}'
    parameters: {id: {sample: {field: _id, count: 5000}}}
"""


def run(programs, outcome):
    suite = programs.folder / "reads.yaml"
    suite.write_text(SUITE, "utf-8")
    seconds = max(round(SECONDS * min(programs.scale, 1)), 1)
    clients = CLIENTS if programs.scale >= 0.1 else CLIENTS[:2]
    # The load is longer than the measurements, each with a second to warm up.
    length = len(clients) * (seconds + 1) + 10
    work = programs.work("beside")
    with programs.cluster("--shards", 0, "--replicas", 3) as uri:
        programs.say("loading the documents that are read")
        programs.load(uri, "read", "--records", programs.scaled(RECORDS), *SIZE)
        writing = programs.loader("load", work, uri, "written", "--records", WRITES * length, "--seed", 2,
                                  "--rate-limit", WRITES, "--retry-timeout", 30, *SIZE)
        programs.say(f"reads on secondaries by {', '.join(map(str, clients))} clients before, during and "
                     "after a load")
        entries = programs.query(
            uri, "read", "--clients", ",".join(map(str, clients)), "--duration", f"{seconds}s",
            "--warm-up-time", "1s", "--read-preference", "secondary", "--during",
            shlex.join(map(str, writing)), suite)
        beside = programs.record(work / "run.json")
    found = {(each["phase"], each["clients"]): each for each in entries}
    for count, entry in ((count, found["during", count]) for count in clients):
        p95 = entry["latencyMs"].get("p95")
        for kind in ("old", "snapshots"):
            outcome.measure(f"{kind}-{count}", p95, "" if p95 else "too few reads")
    outcome.table("95th percentile, ms, and reads/s",
                  ["clients", "before", "during", "after", "reads/s before", "reads/s during",
                   "reads/s after"],
                  [[str(count), *(found[when, count]["latencyMs"].get("p95")
                                  for when in ("before", "during", "after")),
                    *(found[when, count]["operationsPerSecond"]
                      for when in ("before", "during", "after"))] for count in clients])
    lag = max((member["maxSeconds"] for each in entries if each["phase"] == "during"
               for member in each.get("replicationLag", [])), default=None)
    outcome.note(f"{documents(beside):,} documents were written at {load_rate(beside):,.0f}/s meanwhile" +
                 ("" if lag is None else f"; a secondary was at most {lag:.1f} s behind"))
    programs.page(outcome, "The load beside the reads", "load", beside)


EXPERIMENT = Experiment(
    name="secondary-reads",
    title="Reads on secondaries under write load",
    published="""
In 2018, 8 to 64 threads read documents on secondaries while the primary received writes. Up to server 3.6, reads
waited while a secondary applied a batch of the oplog. Since 4.0 they read from a snapshot.
""",
    full="""
You need a replica set of three members and the client on machines of their own:

    shardload load --uri "$URI" -d kv -c read --format ycsb --records 10M
    shardquery run --uri "$URI" -d kv -c read --read-preference secondary --clients 8,16,32,64 --duration 30s \\
        --query by-id --html reads.html \\
        --during "shardload load --uri '$URI' -d kv -c written --drop --format ycsb --records 100M" ycsb
""",
    differs="""
- Three members, the loader and up to 64 clients share two processors, so a read also waits for a processor.
- The writes have a fixed rate (10,000 documents/s). Server 6.0 always reads from snapshots; both published rows are
  compared with it.
""",
    figures=tuple(
        Figure(f"{kind}-{count}", f"{title}, {count} threads, 95 %, ms", value, str(value))
        for kind, title, values in (("old", "reads wait for batches (3.6)", OLD),
                                    ("snapshots", "reads from snapshots (4.0)", SNAPSHOTS))
        for count, value in zip(CLIENTS, values)),
    run=run)
