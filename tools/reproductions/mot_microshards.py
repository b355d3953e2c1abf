# SPDX-License-Identifier: Apache-2.0
"""Vehicle tests on several shards of one machine (2015)."""
from benchmarks import machine
from benchmarks.shards import SERVER_MEMORY

from .experiment import Experiment, Figure
from .programs import load_rate, per_second, shards_sum

DOCUMENTS = 580_650_946
RECORDS = 400_000
CACHE = 1 << 28  # of each server, the least that mongod accepts

# As published: name, title, shards, engine that stands for it here, disk GB, minutes of the load,
# seconds of the query, processors' idle time in percent.
RUNS = [
    ("mmap", "mmap", 0, "", 169, 120, 2927, 95),
    ("plain-1", "mmap, no padding; here none", 1, "none", 127, 105, 2297, 95),
    ("plain-2", "mmap, no padding, 2 shards; here none", 2, "none", 127, 89, 1544, 90),
    ("plain-4", "mmap, no padding, 4 shards; here none", 4, "none", 127, 90, 1545, 85),
    ("zlib-1", "zlib", 1, "zlib", 28.5, 88, 1392, 74),
    ("zlib-2", "zlib, 2 shards", 2, "zlib", 28.5, 68, 931, 88),
    ("zlib-4", "zlib, 4 shards", 4, "zlib", None, 68, 512, 75),
    ("zlib-8", "zlib, 8 shards", 8, "zlib", None, 67, 276, 50),
    ("zlib-16", "zlib, 16 shards", 16, "zlib", 28.5, 66, 215, 0),
]


def figures():
    for name, title, _, engine, disk, minutes, seconds, idle in RUNS:
        yield Figure(f"{name}-load", f"{title}: load, documents/s", DOCUMENTS / minutes / 60,
                     f"{DOCUMENTS / minutes / 60:,.0f} ({minutes} min)")
        yield Figure(f"{name}-query", f"{title}: query, documents/s", DOCUMENTS / seconds,
                     f"{DOCUMENTS / seconds:,.0f} ({seconds // 60}:{seconds % 60:02} min)")
        if disk and engine:
            yield Figure(f"{name}-disk", f"{title}: disk, bytes per document",
                         disk * 1e9 / DOCUMENTS, f"{disk * 1e9 / DOCUMENTS:.0f} ({disk} GB)")
        yield Figure(f"{name}-idle", f"{title}: processors idle during the query, %", idle)
    yield Figure("speed-up", "zlib: query on 16 shards against one", 1392 / 215,
                 f"{1392 / 215:.2f}")


def run(programs, outcome):
    records = programs.scaled(RECORDS)
    if programs.given_uri:
        run_on_given(programs, outcome, records)
        return
    free = machine.memory_available()
    for engine in ("none", "zlib"):
        counts = [each[2] for each in RUNS if each[3] == engine]
        if programs.scale < 0.1:  # a test
            counts = counts[:2]
        fitting = [n for n in counts if not free or (n + 1) * SERVER_MEMORY + n * CACHE < free]
        if fitting != counts:
            outcome.note(f"{engine}: up to {fitting[-1]} shards fit into this machine's memory")
        programs.say(f"{engine}: the same {records:,} tests on {', '.join(map(str, fitting))} shards")
        record = programs.bench_shards(
            "--shards", ",".join(map(str, fitting)), "--engine", engine, "--records", records,
            "--runs", 1, "--repeat", 3)
        programs.server = record["server"]["version"]
        measure(outcome, engine, record)
        programs.page(outcome, f"All figures of {engine}", engine, record)
    outcome.note("the storage engine mmap no longer exists; its row has no counterpart")
    outcome.note(f"{record['documents']:,} documents; the caches of all shards together have the same size")


def measure(outcome, engine, record):
    table, queries = [], {}
    for row in record["rows"]:
        query = row["queries"][0]
        name = f"{'plain' if engine == 'none' else engine}-{row['shards']}"
        queries[row["shards"]] = query["milliseconds"]
        outcome.measure(f"{name}-load", row["rate"], f"{row['loadSeconds']:.1f} s")
        outcome.measure(f"{name}-query", query["documentsPerMillisecond"] * 1e3,
                        f"{query['milliseconds'] / 1e3:.2f} s")
        outcome.measure(f"{name}-idle", 100 * row["queryCpu"].get("idle", 0))
        if f"{name}-disk" in {figure.name for figure in outcome.experiment.figures}:
            outcome.measure(f"{name}-disk", row["storageBytes"] / record["documents"],
                            "collection and indexes")
        table.append([row["shards"], row["rate"], query["documentsPerMillisecond"],
                      *(100 * row["queryCpu"].get(state, 0)
                        for state in ("user", "system", "wait", "idle"))])
    outcome.table(f"{engine}: load and query", ["shards", "load, documents/s", "query, documents/ms",
                  "user %", "system %", "wait %", "idle %"], table)
    if engine == "zlib" and 1 in queries and max(queries) > 1:
        most = max(queries)
        outcome.measure("speed-up", queries[1] / queries[most], f"{most} shards")


def run_on_given(programs, outcome, records):
    """One load and one query on the cluster of --uri, whatever its shards."""
    text = programs.generate("mot.txt", records, "mot")
    with programs.cluster() as uri:
        programs.say("loading")
        record = programs.load(uri, "mot", "--compressor", "zlib", text)
        programs.say("querying")
        [query] = programs.query(uri, "mot", "--query", "green-ness", "mot")
    count = len(record["topology"])
    names = [each[0] for each in RUNS if each[3] == "zlib" and each[2] == count]
    for name in names:
        outcome.measure(f"{name}-load", load_rate(record))
        outcome.measure(f"{name}-query", per_second(record["accounting"]["inserted"],
                                                    query["medianMs"] / 1e3))
    outcome.table("The given cluster, zlib", ["shards", "load, documents/s", "query, ms", "bytes on disk"],
                  [[count, load_rate(record), query["medianMs"],
                    shards_sum(record, "storageBytes") + shards_sum(record, "indexBytes")]])


EXPERIMENT = Experiment(
    name="mot-microshards",
    title="Vehicle tests on micro-shards",
    published="""
In July 2015 (server 3.0.4), 580,650,946 MOT test results (56 GB of text) were loaded into one machine with 16 virtual
processors and 30 GB of memory, with both storage engines and 1 to 16 shards of one mongod each. Then one aggregation
over all documents computed the "green-ness" of the cars, by bands of engine size and fuel. With 16 shards it was 6.5
times as fast as with one.
""",
    full="""
You need one machine with 16 processors and 32 GB of memory, and the files `test_result_2005.txt` to
`test_result_2016.txt` of the MOT history in `mot/`; or generated tests, by `--scale 1450`:

    tools/localcluster up --shards 16 --cache 0.25 --mongod-option=--wiredTigerCollectionBlockCompressor=zlib
    shardload load --uri "$URI" -d mot -c tests --work-dir run mot/
    shardquery run --uri "$URI" -d mot -c tests --query green-ness --repeat 3 mot
""",
    differs="""
- mmap no longer exists. Its counterpart is WiredTiger without a compressor, whose bytes on disk cannot be compared
  with padded files.
- The caches of all shards together have the same size (`micro-shards.md`); the published ones had 2 MB for 4 shards
  and more, which current servers refuse.
- A current server uses several processors for a load, so a second shard makes the load only a little faster. An
  aggregation still uses one processor for each shard.
- All generated tests fit into memory. The published data did not, and with mmap the disk (60 MB/s) was a limit.
""",
    figures=tuple(figures()),
    run=run)
