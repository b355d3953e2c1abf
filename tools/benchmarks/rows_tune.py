# SPDX-License-Identifier: Apache-2.0
"""The row of `shardload tune`: its adaptive search against its grid search."""
from statistics import mean, median

from .figures import at_least, at_most
from .servers import NAMES

THREADS, BATCHES = "1,2,4,8", "1000,5000,20000"  # 12 settings, three trials each
TRIAL_BYTES = 30 << 20
CASES = [(kind, deployment) for deployment in ("cluster", "replica") for kind in ("mot", "csv")]
SEARCHES = 3   # in each case
CLOSE = 0.95   # a recommended setting is right if it has this share of the rate of the grid's best
LOADS = 5      # of each setting that was recommended or is the grid's best
ANNOUNCED = 3  # the time of a search is predicted after this trial


def tuned(bench, deployment, data, *words):
    """Runs `shardload tune` over threads and batch sizes. Returns its record."""
    return bench.command("tune", deployment, data, "--try-threads", THREADS, "--try-batch-sizes",
                         BATCHES, "--trial-bytes", bench.scaled(TRIAL_BYTES, 1 << 20), *words)


def name_of(record, index):
    setting = record["settings"][index]
    return setting["threads"], setting["batchSize"]


def middle(setting):
    return median(trial["documents"] / trial["seconds"] for trial in setting["trials"])


def ending_predicted(record):
    """The time left as predicted after the first trials against the real one, without the last trial."""
    trials = sorted((trial["afterSeconds"], trial["secondsLeft"])
                    for setting in record["settings"] for trial in setting["trials"])
    left, real = len(trials) - ANNOUNCED, trials[-1][0] - trials[ANNOUNCED][0]
    return trials[ANNOUNCED - 1][1] * (left - 1) / left / real


def tune(bench, result):
    """Searches, and loads all records in turn with each setting that a search recommended or that the
    grid found best. Trials of one setting differ more than the best settings do, so the rates of the
    grid do not decide."""
    small = bench.scale < 1
    cases, searches, loads = (CASES[:1], 1, 2) if small else (CASES, SEARCHES, LOADS)
    right = result.line(f"recommended settings with at least {CLOSE} of the rate of the grid's best, share",
                        None if small else at_least(0.9))
    covered = result.line("intervals that contain the median of the grid, share", at_least(0.8))
    ending = result.line(f"time left, predicted after {ANNOUNCED} trials, against the real time")
    error = result.line("error of this prediction, %", at_most(20))
    cost = result.line("trials of the search / trials of the grid", None if small else at_most(0.25))
    shares, inside = [], []
    for kind, where in cases:
        what = f"{kind}, {NAMES[where]}"
        data = bench.data.mot(bench.scaled(1_000_000)) if kind == "mot" else bench.data.csv(
            "flights", bench.scaled(100 << 20))
        deployment = bench.servers.start(where)
        bench.say(f"{what}: the grid")
        grid = tuned(bench, deployment, data, "--search", "grid")
        medians = {name_of(grid, at): middle(setting)
                   for at, setting in enumerate(grid["settings"]) if setting["trials"]}
        best = max(medians, key=medians.get)
        found = []
        for number in range(1, searches + 1):
            bench.say(f"{what}: search {number} of {searches}")
            record = tuned(bench, deployment, data)
            found.append(name_of(record, record["recommended"]))
            cost.add(record["trials"] / record["gridTrials"])
            if record["trials"] > ANNOUNCED + 1:
                ending.add(ending_predicted(record))
                error.add(abs(ending.values[-1] - 1) * 100)
            inside += [setting["low"] <= medians[name_of(record, at)] <= setting["high"]
                       for at, setting in enumerate(record["settings"]) if setting.get("low")]
        rates = {setting: [] for setting in {best, *found}}
        for number in range(1, loads + 1):
            bench.say(f"{what}: loads with {len(rates)} settings, round {number} of {loads}")
            for (threads, batch), line in rates.items():
                line.append(bench.load(deployment, data, threads=threads, batch=batch).rate)
        each = [median(rates[setting]) / median(rates[best]) for setting in found]
        shares += each
        result.note(f"{what}: the grid's best is {best[0]} x {best[1]:,}; recommended: " + ", ".join(
            f"{threads} x {batch:,} ({share:.3f} of its rate)" for (threads, batch), share in zip(found, each)))
    right.add(mean(share >= CLOSE for share in shares))
    if inside:
        covered.add(mean(inside))
    result.note(f"a grid of {grid['gridTrials']} trials; {len(inside)} intervals were printed")


ROWS = [("tune", "adaptive search for threads and batch size against a grid search", tune)]
