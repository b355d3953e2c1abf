# SPDX-License-Identifier: Apache-2.0
"""The row of `shardload tune`: its adaptive search against its grid search."""
from .figures import at_least, at_most

THREADS = "1,2,3,4,6,8"
BATCHES = "100,300,1000,3000,10000,20000"
TRIAL_BYTES = 30 << 20
LEAST_SCALE = 0.5  # below it the sample is too small for most of these settings
SMALL = ("1,2", "100,300,1000", 5 << 20)
FEW = 3  # rounds: each is a complete search


def tuned(bench, deployment, data, *words):
    """Runs `shardload tune` over threads and batch sizes. Returns its record."""
    threads, batches, trial = ((THREADS, BATCHES, bench.scaled(TRIAL_BYTES))
                               if bench.scale >= LEAST_SCALE else SMALL)
    return bench.command("tune", deployment, data, "--try-threads", threads, "--try-batch-sizes",
                         batches, "--trial-bytes", trial, *words)


def tune(bench, result):
    """Runs a grid search once, then adaptive searches. The rate of a recommended setting is the one
    that the grid search measured."""
    data = bench.data.mot(bench.scaled(1_000_000, 80_000))
    deployment = bench.servers.start("mongod")
    share = result.line("rate of the recommended setting / grid's best", at_least(0.95))
    cost = result.line("trials of the search / trials of the grid",
                       at_most(0.25) if bench.scale >= LEAST_SCALE else None)
    bench.say("the grid search")
    grid = tuned(bench, deployment, data, "--search", "grid")
    rates = [setting.get("rate", 0) for setting in grid["settings"]]
    for _ in bench.rounds(FEW):
        found = tuned(bench, deployment, data)
        share.add(rates[found["recommended"]] / max(rates))
        cost.add(found["trials"] / found["gridTrials"])
    result.note(f"a grid of {grid['gridTrials']} trials; trials of one setting differ by "
                f"{100 * grid['noise']:.0f} %; its best setting has {max(rates):,.0f} docs/s, its worst "
                f"{min(rate for rate in rates if rate):,.0f}")


ROWS = [
    ("tune", "adaptive search for threads and batch size against a grid search", tune),
]
