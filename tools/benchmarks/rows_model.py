# SPDX-License-Identifier: Apache-2.0
"""The row of the capacity model: what `shardload plan --model cluster` predicts from small set-ups,
against measured loads of larger ones. Every prediction is shown, good or bad."""
import json
from statistics import median

from .figures import at_most
from .process import run
from .rows_loaders import parts
from .rows_server import relayed

FEW = 3                       # rounds
NETWORKS = (10e6, 40e6)       # bytes/s
# What a case does not limit. Loads of the bench build no index and are timed without preparation.
FREE = {"fixed": 0, "shards": 1, "loaders": 1, "members": 1, "indexes": 0, "loader-rate": "1P",
        "shard-rate": "1P", "network": "1P", "loader-contention": 0, "shard-contention": 0,
        "loader-coherency": 0, "shard-coherency": 0}


def predicted(bench, **inputs):
    """The seconds of the load by the model, with these inputs (`_` in a name for `-`)."""
    given = {**FREE, **{name.replace("_", "-"): value for name, value in inputs.items()}}
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    file = bench.folder / "model.json"
    run([bench.bin / "shardload", "plan", "--model", "cluster", "--report", file, *words])
    results = json.loads(file.read_text("utf-8"))["capacity"]["results"]
    return next(one["value"] for one in results if one["name"] == "load")


def scaling_law(one, two):
    """(contention, coherency) from the times of the same work on one and two units. Two units that
    are slower than one have a coherency; none are more than twice as fast."""
    contention = min(max(2 * two / one - 1, 0), 1)
    return contention, max(two / one - 1, 0)


def timed(bench, deployment, data, what, load=None):
    """The seconds of several loads, after one that does not count."""
    load = load or (lambda: bench.load(deployment, data).seconds)
    load()
    return [load() for _ in bench.rounds(FEW, what=what)]


class Cases:
    def __init__(self, result):
        self.result = result
        self.quotients = []

    def add(self, name, seconds, measured):
        pair = self.result.compare(f"{name}: predicted, s", f"{name}: measured, s",
                                   f"{name}: predicted against measured")
        for one in measured:
            pair.add(seconds, one)
        error = self.result.line(f"{name}: error, %", at_most(20))
        error.add(abs(pair.ratio.median - 1) * 100)
        self.quotients.append(pair.ratio.median)


def measured_on(bench, data, kinds, what):
    """The times of the load into each of the deployments, {number of its `what`: kind}."""
    return {count: timed(bench, bench.servers.start(kind), data, f"{count} {what}")
            for count, kind in kinds.items()}


def scaled_up(bench, cases, data, times, unit):
    """Predicts the loads by 3 and 4 units ("shard" or "loader") from those by 1 and 2."""
    one, two = median(times[1]), median(times[2])
    contention, coherency = scaling_law(one, two)
    for count in (3, 4):
        cases.add(f"{count} {unit}s, from 1 and 2", predicted(
            bench, documents=data.records, **{
                f"{unit}s": count, f"{unit}_rate": data.records / one,
                f"{unit}_contention": contention, f"{unit}_coherency": coherency}), times[count])


def by_shards(bench, cases, data):
    times = measured_on(bench, data, {1: "cluster1", 2: "cluster", 3: "cluster3", 4: "cluster4"},
                        "shards")
    scaled_up(bench, cases, data, times, "shard")


def by_members(bench, cases, data):
    times = measured_on(bench, data, {1: "replica1", 2: "replica2", 3: "replica"}, "members")
    one, two = median(times[1]), median(times[2])
    cases.add("3 members, from 1 and 2", predicted(
        bench, documents=data.records, shard_rate=data.records / one, members=3,
        member_cost=max(two / one - 1, 0)), times[3])


def load_by_parts(bench, deployment, data, count):
    """The seconds of the slowest of several loaders with two threads each."""
    return max(one.seconds for one in bench.load_together(
        deployment, data, parts(count), threads=2 * count, clustered=False))


def by_loaders(bench, cases, deployment, data):
    times = {count: timed(bench, deployment, data, f"{count} loaders",
                          lambda count=count: load_by_parts(bench, deployment, data, count))
             for count in (1, 2, 3, 4)}
    scaled_up(bench, cases, data, times, "loader")


def by_data_and_network(bench, cases, deployment):
    """From a twentieth and a tenth of the data: all of them, and others through a limited network."""
    data, more, little = (bench.data.mot(bench.scaled(count))
                          for count in (4_000_000, 400_000, 200_000))
    short = median(timed(bench, deployment, little, "a twentieth of the data"))
    tenth = bench.load(deployment, more)
    long = median(timed(bench, deployment, more, "a tenth of the data"))
    documents = more.records - little.records
    rate = documents / max(long - short, 1e-3)
    fixed = max(long - more.records / rate, 0)
    found = {"documents": data.records, "shard_rate": rate, "fixed": fixed}
    cases.add("ten times the data, from a tenth and a twentieth", predicted(bench, **found),
              timed(bench, deployment, data, "all data"))
    data = bench.data.mot(bench.scaled(800_000))
    found["documents"] = data.records
    for limit in NETWORKS:
        with relayed(deployment.plain_uri, 0, limit) as uri:
            cases.add(f"network of {limit / 1e6:.0f} MB/s, from loads without a limit", predicted(
                bench, network=limit, document_bytes=tenth.bson_bytes / tenth.documents, **found),
                timed(bench, deployment, data, f"{limit / 1e6:.0f} MB/s",
                      lambda uri=uri: bench.load(deployment, data, uri=uri).seconds))


def model(bench, result):
    cases = Cases(result)
    deployment = bench.servers.start("mongod")
    by_data_and_network(bench, cases, deployment)
    data = bench.data.mot(bench.scaled(1_500_000))
    by_loaders(bench, cases, deployment, data)
    by_shards(bench, cases, data)
    by_members(bench, cases, bench.data.mot(bench.scaled(300_000)))
    good = sum(abs(quotient - 1) <= 0.2 for quotient in cases.quotients)
    result.line(f"predictions within 20 %, of {len(cases.quotients)}").add(good)
    result.note("predictions are those of `shardload plan --model cluster`; loaders, shards and members "
                "share this machine's cores; the limited network is a relay")


ROWS = [
    ("model", "the capacity model's predictions from small set-ups against larger loads", model),
]
