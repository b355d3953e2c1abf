# SPDX-License-Identifier: Apache-2.0
"""Rows about experiments made of loads: what they say against what is so."""
import json
import shutil
from statistics import mean

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
    """Each whole is held against the drill before it, as a user would, and against the mean of that one
    and the one after it: machines get faster and slower from minute to minute, and a whole takes more
    than one of them."""
    data = bench.data.mot(bench.scaled(8_000_000))

    def sampled():
        return drill(bench, deployment, data, "--sample", f"{SAMPLE}%")["predicted"]

    for kind, cache, name, judged in CASES:
        deployment = bench.servers.start(kind, "--cache", cache)
        whole = result.compare(f"{name}: predicted from {SAMPLE} %, before and after, s",
                               f"{name}: the whole took, s", f"{name}: predicted against measured")
        error = result.line(f"{name}: off by, %", at_most(10) if judged else None)
        alone = result.line(f"{name}: the drill before it alone: off by, %",
                            at_most(10) if judged else None)
        inside = result.line(f"{name}: within the range that it predicted, 1 or 0")
        above = result.line(f"{name}: that range reaches above the prediction by, %")
        below = result.line(f"{name}: and below it by, %")
        parts = {part: result.line(f"{name}: {part}, predicted against measured")
                 for part in ("load", "indexes", "verify", "query")}
        # Does not count: servers take the memory for the whole from the system, here and not later.
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
    result.note("one index, clustered collection; the way to the first query of the suite `mot`; drills "
                "on samples and wholes in turn, on servers that have held the whole once")


ROWS = [
    ("reload", f"a drill on {SAMPLE} % of the sources against a reload of the whole", reload),
]
