# SPDX-License-Identifier: Apache-2.0
"""Rows about experiments made of loads: what they say against what is so."""
import json
import shutil

from .bench import EXIT_OK, EXIT_REJECTS
from .figures import at_most
from .process import run
from .servers import COLLECTION, DATABASE, NAMES

SAMPLE = 10  # percent
FEW = 3      # rounds


def drill(bench, deployment, data, *words):
    """A drill on a deployment that is emptied before; its record."""
    deployment.empty()
    work = bench.folder / "drill"
    shutil.rmtree(work, ignore_errors=True)
    run([bench.bin / "shardload", "reload", "--progress", "none", "--work-dir", work, "--uri",
         deployment.uri, "--db", DATABASE, "--collection", COLLECTION, "--clustered", "--suite",
         "mot", "--index", '{"v": 1}', *words, data.path], (EXIT_OK, EXIT_REJECTS))
    record = json.loads((work / "reload.json").read_text("utf-8"))
    shutil.rmtree(work)
    return record


def phase(phases, name):
    return next(entry["seconds"] for entry in phases if entry["name"] == name)


# What the servers can keep in memory decides what a load meets: a sample says nothing of the far side
# of that line. GB of cache of each server, against about 1.2 GB of documents in the whole.
CASES = [("mongod", 4, "mongod, all within its cache", True),
         ("mongod", 0.25, "mongod, a sample as large as its cache", True),
         ("mongod", 1, "mongod, only the sample within its cache", False),
         ("cluster", 4, f"{NAMES['cluster']}, all within their caches", True)]


def reload(bench, result):
    data = bench.data.mot(bench.scaled(8_000_000))
    for kind, cache, name, judged in CASES:
        deployment = bench.servers.start(kind, "--cache", cache)
        whole = result.compare(f"{name}: predicted from {SAMPLE} %, s", f"{name}: the whole took, s",
                               f"{name}: predicted against measured")
        error = result.line(f"{name}: off by, %", at_most(10) if judged else None)
        inside = result.line(f"{name}: within the predicted range, 1 or 0")
        above = result.line(f"{name}: the range reaches above the prediction by, %")
        below = result.line(f"{name}: and below it by, %")
        parts = {part: result.line(f"{name}: {part}, predicted against measured")
                 for part in ("load", "indexes", "verify", "query")}
        drill(bench, deployment, data, "--sample", f"{SAMPLE}%")  # does not count: the first touch
        for _ in bench.rounds(FEW, what=name):
            predicted = drill(bench, deployment, data, "--sample", f"{SAMPLE}%")["predicted"]
            record = drill(bench, deployment, data)
            measured = record["firstQuerySeconds"]
            seconds = predicted["seconds"]
            whole.add(seconds, measured)
            error.add(abs(seconds / measured - 1) * 100)
            inside.add(int(predicted["low"] <= measured <= predicted["high"]))
            above.add((predicted["high"] / seconds - 1) * 100)
            below.add((1 - predicted["low"] / seconds) * 100)
            for part, line in parts.items():
                took = phase(record["phases"], part)
                if took > 0:
                    line.add(phase(predicted["phases"], part) / took)
    result.note("one index, clustered collection; the way to the first query of the suite `mot`; the "
                "sampled drill loads its throw-away collections right before the whole is loaded")


ROWS = [
    ("reload", f"a drill on {SAMPLE} % of the sources against a reload of the whole", reload),
]
