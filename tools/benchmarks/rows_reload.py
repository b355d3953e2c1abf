# SPDX-License-Identifier: Apache-2.0
"""The rows of predictions: times that `shardload reload` predicts from a sample, and `shardload plan`
from the record of an earlier load, against those of the full reloads and loads."""
import json
from statistics import mean

from .bench import COLLECTION, DATABASE
from .figures import at_least, at_most
from .process import run
from .servers import NAMES

SAMPLE = 10  # percent
FEW = 3      # rounds
INDEX = ("--index", '{"v": 1}')


def drill(bench, deployment, data, *words):
    """Runs `shardload reload` on an emptied deployment. Returns its record."""
    return bench.command("reload", deployment, data, "--progress", "none", "--suite", "mot",
                         *INDEX, *words)


def phase(phases, name):
    return next(entry["seconds"] for entry in phases if entry["name"] == name)


# A sample that fits into the servers' caches cannot predict a load that does not. (deployment, GB of
# cache per server, name, whether there is a target); all sources are about 1.2 GB of documents.
CASES = [("mongod", 4, "mongod, all within its cache", True),
         ("mongod", 0.25, "mongod, a sample as large as its cache", True),
         ("mongod", 1, "mongod, only the sample within its cache", False),
         ("cluster", 4, f"{NAMES['cluster']}, all within their caches", True)]


def reload(bench, result):
    """Compares each full reload with the prediction before it, as a user would, and with the mean of
    the predictions before and after it, because a machine's speed changes during a full reload."""
    data = bench.data.mot(bench.scaled(8_000_000))

    def sampled():
        return drill(bench, deployment, data, "--sample", f"{SAMPLE}%")["predicted"]

    for kind, cache, name, has_target in CASES:
        deployment = bench.servers.start(kind, "--cache", cache)
        whole = result.compare(f"{name}: predicted from {SAMPLE} %, before and after, s",
                               f"{name}: full reload, s", f"{name}: predicted against measured")
        error = result.line(f"{name}: error, %", at_most(10) if has_target else None)
        alone = result.line(f"{name}: error of the prediction before it, %",
                            at_most(10) if has_target else None)
        inside = result.line(f"{name}: within the predicted range, 1 or 0")
        above = result.line(f"{name}: the range ends above the prediction by, %")
        below = result.line(f"{name}: the range starts below the prediction by, %")
        parts = {part: result.line(f"{name}: {part}, predicted against measured")
                 for part in ("load", "indexes", "verify", "query")}
        # Warm-up: the servers allocate the memory for a full reload from the system.
        drill(bench, deployment, data)
        after = sampled()
        for _ in bench.rounds(FEW, what=name):
            before = after
            record = drill(bench, deployment, data)
            after = sampled()
            measured = record["firstQuerySeconds"]
            seconds = mean([before["seconds"], after["seconds"]])
            whole.add(seconds, measured)
            error.add(abs(seconds / measured - 1) * 100)
            alone.add(abs(before["seconds"] / measured - 1) * 100)
            inside.add(int(before["low"] <= measured <= before["high"]))
            above.add((before["high"] / before["seconds"] - 1) * 100)
            below.add((1 - before["low"] / before["seconds"]) * 100)
            for part, line in parts.items():
                took = phase(record["phases"], part)
                if took > 0:
                    line.add(mean(phase(made["phases"], part) for made in (before, after)) / took)
    result.note("one index, clustered collection; time until the first query of the suite `mot` has "
                "ended; predictions and full reloads alternate, after one full reload as warm-up")


PLANNED = ("prepare", "load", "indexes", "verify")  # the phases in the total of `plan`


def plan(bench, result):
    """Loads a fifth of the records and all records in turn. The time of each load of all records is
    predicted from the load of the fifth before it, and from the load of all records before that."""
    data, fifth = (bench.data.mot(bench.scaled(count)) for count in (6_000_000, 1_200_000))
    record_file, plan_file = bench.folder / "earlier.json", bench.folder / "plan.json"

    def planned(record):
        record_file.write_text(json.dumps(record), "utf-8")
        run([bench.bin / "shardload", "plan", "--uri", deployment.uri, "--db", DATABASE, "--collection",
             COLLECTION, "--clustered", *INDEX, "--from", record_file, "--report", plan_file, data.path])
        return json.loads(plan_file.read_text("utf-8"))["predicted"]

    for kind in ("mongod", "cluster"):
        deployment = bench.servers.start(kind, "--cache", 4)
        earlier = {"a fifth": None, "all records": bench.command("load", deployment, data, *INDEX)}
        lines = {origin: [result.line(f"{NAMES[kind]}, from a load of {origin}: {figure}", target)
                          for figure, target in (("error, %", at_most(20)), ("the range ends above by, %", None),
                                                 ("the range starts below by, %", None))]
                 for origin in earlier}
        inside = []
        for _ in bench.rounds(what=NAMES[kind]):
            earlier["a fifth"] = bench.command("load", deployment, fifth, *INDEX)
            deployment.empty()
            found = {origin: planned(record) for origin, record in earlier.items()}
            record = earlier["all records"] = bench.command("load", deployment, data, *INDEX)
            took = sum(phase(record["phases"], name) for name in PLANNED)
            for origin, predicted in found.items():
                error, above, below = lines[origin]
                error.add(abs(predicted["seconds"] / took - 1) * 100)
                above.add((predicted["high"] / predicted["seconds"] - 1) * 100)
                below.add((1 - predicted["low"] / predicted["seconds"]) * 100)
                inside.append(predicted["low"] <= took <= predicted["high"])
        result.line(f"{NAMES[kind]}: loads within the predicted range, share", at_least(0.9)).add(mean(inside))
    result.note("one index, clustered collection; the total of preparation, load, index and verification")


ROWS = [
    ("reload", f"times predicted from {SAMPLE} % of the sources against a full reload", reload),
    ("plan", "times predicted from the record of an earlier load against a load", plan),
]
