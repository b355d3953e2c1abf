# SPDX-License-Identifier: Apache-2.0
"""Block compressors on six kinds of data (2015)."""
import json
from typing import NamedTuple

from benchmarks.process import run as run_program

from .experiment import Experiment, Figure

KINDS = ("none", "snappy", "zlib", "zstd")


class DataSet(NamedTuple):
    name: str       # the format of the generator
    title: str
    records: int
    index: str      # besides that on _id
    pipeline: list  # a query over all documents
    file: str


def grouped(by, total):
    return [{"$group": {"_id": by, "count": {"$sum": 1}, "total": {"$sum": total}}},
            {"$sort": {"_id": 1}}, {"$limit": 20}]


DATA = (
    DataSet("mot", "vehicle tests (text with pipes)", 150_000, "v", grouped("$f", "$m"), "mot.txt"),
    DataSet("isd", "weather records (packed text)", 15_000, "ts", grouped("$st", 1), "isd.txt"),
    DataSet("emails", "e-mails (BSON dump)", 12_000, "mailbox", grouped("$mailbox", {"$strLenBytes": "$body"}),
            "emails.bson"),
    DataSet("flights", "flights (CSV with nested names)", 60_000, "flight.number",
            grouped("$carrier.code", "$delay.arrival"), "flights.csv"),
    DataSet("orders", "orders with line items (two tables joined)", 25_000, "o_custkey",
            grouped("$o_orderpriority", "$o_totalprice"), "orders.tbl"),
    DataSet("tweets", "tweets (JSON lines)", 15_000, "user.screen_name", grouped("$lang", "$retweet_count"),
            "tweets.json"),
)


def embedded(programs, one, records):
    """Orders with their line items, as a BSON file, by --embed."""
    orders = programs.generate("orders.csv", records, one.name)
    items = programs.generate("lineitems.csv", records, "lineitems")
    path = programs.folder / "orders.bson"
    programs.say("embedding line items into orders")
    run_program([programs.bin / "shardload", "load", "--sink", f"bson:{path}", "--progress", "none",
                 "--work-dir", programs.work("embed"), "--embed",
                 f"items={items}", "--on", "o_orderkey=l_orderkey", orders])
    return path


def sources(programs, one):
    records = programs.scaled(one.records, 200)
    if one.name == "orders":
        return [embedded(programs, one, records)], "generated"
    if one.name == "isd":
        real = programs.sample("isd/010010-99999-1988", "isd/010060-99999-2014",
                               "isd/722540-13904-2014", "isd/725300-94846-1983-jan-jun")
        if real:
            return real, "real samples"
    return [programs.generate(one.file, records, one.name)], "generated"


def run(programs, outcome):
    rows = []
    with programs.cluster("--standalone") as uri:
        for one in DATA:
            paths, origin = sources(programs, one)
            suite = programs.folder / f"{one.name}.yaml"
            suite.write_text(json.dumps({"name": one.name, "defaults": {"repeat": 3, "warm-up": 1},
                                         "queries": [{"name": "scan", "pipeline": json.dumps(one.pipeline)}]}),
                             "utf-8")
            programs.say(f"{one.title}, {origin}: none, snappy, zlib, zstd")
            record = programs.tune(
                uri, one.name, "--threads", 2, "--batch-size", 1000, "--try-compressors", ",".join(KINDS),
                "--max-trials", 1, "--trial-bytes", "1T", "--index", json.dumps({one.index: 1}),
                "--suite", suite, *paths)
            programs.server = record["server"]["version"]
            add(outcome, rows, one, record)
            programs.page(outcome, one.title, one.name, record)
    outcome.table("Data and indexes of each compressor",
                  ["data set", "compressor", "documents", "BSON, MB", "data, MB", "indexes, MB",
                   "BSON / (data + indexes)", "load, documents/s", "query, ms"], rows)


def add(outcome, rows, one, record):
    plain = None
    for each in record["storage"]:
        files = each["storageBytes"] + each["indexBytes"]
        plain = plain or files
        rows.append([one.title, each["compressor"], each["documents"], each["dataBytes"] / 1e6,
                     each["storageBytes"] / 1e6, each["indexBytes"] / 1e6, each["dataBytes"] / files,
                     each["rate"], each["queries"][0].get("medianMilliseconds")])
        if each["compressor"] != "none":
            outcome.measure(f"{one.name}-{each['compressor']}", plain / files)


EXPERIMENT = Experiment(
    name="compression",
    title="Compressors on six kinds of data",
    published="""
In 2015 (server 3.0), the size of data and indexes was measured with the compressors none, snappy and zlib, for
e-mails, flights, the `config` database of a cluster, TPC-H orders with embedded line items, and tweets. The ratios
were published only as pictures. Here, MOT tests and weather records replace `config`, and zstd is measured too.
""",
    full="""
You need one server. `shardload tune` loads a source once with each compressor and measures the sizes:

    options='--try-compressors none,snappy,zlib,zstd --max-trials 1 --trial-bytes 1T'
    shardload tune -d c -c emails $options --index '{"mailbox": 1}' enron/messages.bson
    shardload tune -d c -c flights $options flights.csv
    shardload load --sink bson:orders.bson --embed items=lineitem.csv --on o_orderkey=l_orderkey orders.csv
    shardload tune -d c -c orders $options orders.bson

Or use more generated data, by `--scale 40`.
""",
    differs="""
- The published files are not available. `tools/datagen` generates data of the same structure with similar repetition;
  real e-mails have other ratios.
- The ratio is the size of the files without a compressor divided by their size with it, data and indexes together.
""",
    figures=tuple(Figure(f"{one.name}-{kind}", f"{one.title}: {kind} against none", None, "picture only")
                  for one in DATA for kind in KINDS[1:]),
    run=run)
