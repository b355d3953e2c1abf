# SPDX-License-Identifier: Apache-2.0
"""The row of `shardload reload`: times predicted from a sample, against those of full reloads."""
from statistics import mean

from .figures import at_most
from .servers import NAMES

SAMPLE = 10  # percent
FEW = 3      # rounds


def drill(bench, deployment, data, *words):
    """Runs `shardload reload` on an emptied deployment. Returns its record."""
    return bench.command("reload", deployment, data, "--progress", "none", "--suite", "mot",
                         "--index", '{"v": 1}', *words)


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


ROWS = [
    ("reload", f"times predicted from {SAMPLE} % of the sources against a full reload", reload),
]
