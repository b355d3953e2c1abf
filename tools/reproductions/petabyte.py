# SPDX-License-Identifier: Apache-2.0
"""Key-value records of 147 KB, a loader beside each shard (2014)."""
from benchmarks.bench import load_span

from .experiment import Experiment, Figure
from .programs import documents, per_second, shards_sum
from .zipf import chi_squared, shares

PUBLISHED_DOCUMENTS = 7_170_648_489
DOCUMENT_BYTES = 147_439
INDEX_BYTES = 0.65e12
RECORDS = 3_000
SHARDS = 4
FOUND, RARE = 30_747, 17_000  # documents with fieldInt0 = 17000
INTEGERS = [f"n{i}" for i in range(8)]

SUITE = """
name: petabyte
queries:
  - name: find
    operation: find
    filter: '{{"n0": {value}}}'
    projection: '{{"_id": 0, "n0": 1, "n1": 1}}'
  - name: top-five
    pipeline: |
      [{{"$match": {{"n0": {value}}}}}, {{"$group": {{"_id": "$n1", "sum": {{"$sum": "$n2"}}}}}},
       {{"$sort": {{"sum": -1, "_id": 1}}}}, {{"$limit": 5}}]
  - name: find-one
    operation: findOne
    filter: '{{"n0": {{"$parameter": "value"}}}}'
    parameters: {{value: {{sample: {{field: n0, count: 10000}}}}}}
  - name: integers
    pipeline: |
      [{{"$project": {{"n": [{fields}]}}}}, {{"$unwind": "$n"}},
       {{"$group": {{"_id": "$n", "count": {{"$sum": 1}}}}}}]
"""


def combined(records):
    """(documents, documents/s) of loaders that work at the same time, from the beginning of the first
    load phase to the end of the last one."""
    count = sum(map(documents, records))
    spans = [load_span(record) for record in records]
    return count, per_second(count, max(end for _, end in spans) - min(begin for begin, _ in spans))


def run(programs, outcome):
    records = programs.scaled(RECORDS, 256)
    size = ["--document-size", DOCUMENT_BYTES]
    source = ["--format", "ycsb", "--records", records, *size, "--threads", 1, "--batch-size", 100]
    with programs.cluster("--shards", SHARDS) as uri:
        programs.say(f"one loader, {records:,} documents of {DOCUMENT_BYTES:,} bytes; twice, the first time "
                     "to warm the servers up")
        programs.load(uri, "warm-up", *source, "--threads", programs.threads)
        single = programs.load(uri, "single", *source, "--threads", programs.threads)
        names = [each["shard"] for each in single["topology"]]
        sharded = len(names) > 1 or names[0] != "standalone"
        rows = [["1, all shards, through the router", *rates([single])]]
        parts = [["--part", f"{k}/4", *source] for k in range(1, 5)]
        programs.say("four loaders with --part")
        shared = programs.loads(uri, "parts", parts)
        rows.append(["4, --part, through the router", *rates(shared)])
        programs.page(outcome, "Four loaders with --part as one load", "parts", *shared)
        if sharded and len(names) > 1:
            programs.say(f"{len(names)} loaders with --only-shards, straight to the shards")
            loads = programs.loads(uri, "kv", [
                ["--only-shards", name, "--route", "direct", "--index", '{"n0": 1}', *source]
                for name in names])
            rows.append([f"{len(names)}, --only-shards, --route direct", *rates(loads)])
            programs.page(outcome, "A loader for each shard as one load", "shards", *loads)
        else:
            loads = [programs.load(uri, "kv", "--index", '{"n0": 1}', *source)]
        for row in rows:
            row.append(row[2] / rows[0][2])
        outcome.table("Loaders", ["loaders", "documents", "documents/s", "MB/s", "against one"], rows)
        count, rate = combined(loads)
        last = max(loads, key=lambda each: each["endedAt"]["$date"])
        sent = sum(each["accounting"]["bsonBytes"] for each in loads)
        outcome.measure("size", sent / count)
        outcome.measure("first-rate", rate * sent / count / 1e6, "all servers and loaders on one machine")
        outcome.measure("mean-rate", rate * sent / count / 1e6, "the same rate")
        outcome.measure("indexes", shards_sum(last, "indexBytes") / count,
                        "small indexes; pages are not full")
        query(programs, outcome, uri)


def rates(records):
    count, rate = combined(records)
    sent = sum(each["accounting"]["bsonBytes"] for each in records)
    return [count, rate, rate * sent / count / 1e6]


def query(programs, outcome, uri):
    suite = programs.folder / "petabyte.yaml"
    fields = ", ".join(f'"${name}"' for name in INTEGERS)
    suite.write_text(SUITE.format(value=1, fields=fields), "utf-8")
    words = [word for name in ("find", "top-five", "integers") for word in ("--query", name)]
    programs.say("find and aggregations")
    found = {each["name"]: each for each in
             programs.query(uri, "kv", *words, "--repeat", 3, suite)}
    seconds = found["find"]["medianMs"] / 1e3
    rows = len(found["find"]["results"])
    outcome.measure("find-rate", per_second(rows, seconds),
                    f"n0 = 1: {rows:,} documents in {seconds * 1e3:.1f} ms")
    outcome.table("The aggregation: documents with n0 = 1, grouped by n1, five largest sums of n2",
                  ["n1", "sum of n2"],
                  [[each["_id"], each["sum"]] for each in found["top-five"]["results"]])
    outcome.note(f"the aggregation took {found['top-five']['medianMs']:.1f} ms")
    integers(outcome, {each["_id"]: each["count"] for each in found["integers"]["results"]})
    programs.say("findOne by 8 clients")
    [one] = programs.query(uri, "kv", "--query", "find-one", "--clients", 8, "--duration",
                           f"{max(round(4 * min(programs.scale, 1)), 2)}s", suite)
    outcome.measure("find-one", one["operationsPerSecond"], "8 clients, closed loop; an index on n0")


def integers(outcome, counts):
    statistic, degrees, p = chi_squared(counts)
    total, law = sum(counts.values()), shares()
    outcome.table("Integers of all documents against Zipf's law (exponent 0.99, 65,536 values)",
                  ["value", "found", "expected"],
                  [[str(value), counts.get(value, 0), round(law[value] * total, 1)]
                   for value in (0, 1, 2, 3, 4, 5, 10, 100)])
    outcome.note(f"chi-squared of {total:,} integers: {statistic:.1f} with {degrees} degrees of freedom, "
                 f"p = {p:.3f}: " + ("no difference from Zipf's law shown" if p > 0.001 else
                                     "NOT distributed by Zipf's law"))
    outcome.measure("rare", law[RARE] * PUBLISHED_DOCUMENTS,
                    "expected in the published number of documents, by the law of the generator")
    outcome.measure("missing", sum(value not in counts for value in (2, 5)), "of the values 2 and 5")


EXPERIMENT = Experiment(
    name="petabyte",
    title="A petabyte of key-value records",
    published="""
In November 2014 (server 2.6), a modified YCSB stored 7,170,648,489 documents of 147,439 bytes, 1.057 PB, on 216
shards, four on each server, with a loader process beside each shard. The collection was split beforehand by ranges of
`_id`, and the balancer was off. The loads took 17 to 22 hours, because some loader processes ended early without a
message. The generator never produced the values 2 and 5.
""",
    full="""
You need 54 servers with 24 disks of 2 TB and four shards on each (`scale.md` has other numbers), and config servers
and a router on machines of their own. On each server, start one loader for each of its shards, all at the same time:

    shardload load --uri mongodb://router1/ -d kv -c records --format ycsb --records 7170648489 \\
        --document-size 147439 --only-shards shard-$K --route direct --work-dir shard-$K

When all have ended, build the index in mongosh (`db.getSiblingDB("kv").records.createIndex({n0: 1})`), and query:

    shardquery run --uri mongodb://router1/ -d kv -c records --query indexed-find --query top-five ycsb
""",
    differs="""
- All four shards are on one machine of two processors, with one member each and all data in memory. So one loader that
  uses all processors can be as fast as four.
- The published `find` searched for the integer 17,000, which is rare in a few thousand documents; this one searches
  for the integer 1.
""",
    figures=(
        Figure("size", "bytes per document", DOCUMENT_BYTES),
        Figure("first-rate", "MB/s into a server, at the beginning", 844),
        Figure("mean-rate", "MB/s into a server, mean of 19.5 h on 54 servers", 279),
        Figure("indexes", "bytes of both indexes per document", INDEX_BYTES / PUBLISHED_DOCUMENTS,
               f"{INDEX_BYTES / PUBLISHED_DOCUMENTS:.0f} (0.65 TB)"),
        Figure("find-rate", "find on the indexed integer, documents/s", FOUND / 2.7,
               f"{FOUND / 2.7:,.0f} ({FOUND:,} in 2.7 s)"),
        Figure("rare", "documents with the integer 17,000", FOUND),
        Figure("missing", "integers that the generator never gives", 2, "2 (2 and 5)"),
        Figure("find-one", "findOne/s by the indexed integer", 800),
    ),
    run=run)
