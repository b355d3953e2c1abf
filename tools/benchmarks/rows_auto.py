# SPDX-License-Identifier: Apache-2.0
"""Rows about --threads auto --batch-size auto, against fixed settings.

First each setting of a grid is measured by one short load. Then auto, its initial setting, and the
BEST fastest settings of the grid run alternately, in loads that are long enough for auto to change
its setting. The best fixed setting is the one with the best median of these rounds: it is chosen
after the measurement, which favours it over auto."""
from .bench import BATCH_BEGINS
from .figures import at_least, threads_of
from .rows_server import relayed
from .servers import NAMES

NEAR = [(threads, batch) for threads in (1, 2, 4, 8) for batch in (1000, 10_000, 20_000, 50_000)]
DISTANT = [(threads, batch) for threads in (4, 8, 16) for batch in (10_000, 20_000, 50_000, 100_000)]
BEST = 2      # fastest settings of the grid that are used in the rounds
FEW = 3       # rounds: each has several loads of almost a minute
SCAN = 0.2    # share of the records in a load of the grid
# Millions of records, for loads of almost a minute on two cores.
MILLIONS = {"mongod": 24, "cluster": 9, "replica": 6}
DISTANT_MILLIONS = 14
DISTANT_MS = 50  # delay in each direction, as to another continent


def shown(setting):
    threads, batch = setting
    return f"{threads_of(threads)} x {batch:,}"


def against_grid(bench, result, deployment, grid, millions, uri=None):
    data = bench.data.mot(bench.scaled(int(millions * 1e6)))
    sample = bench.data.mot(bench.scaled(int(millions * 1e6 * SCAN)))
    begins = (bench.threads, BATCH_BEGINS)

    def fixed(setting, of=data):
        threads, batch = setting
        return bench.load(deployment, of, threads=threads, batch=batch, uri=uri).rate

    found, seconds = [], []
    auto_line = result.line("auto, docs/s")
    ratio = result.line("auto against the best fixed setting", at_least(0.9))
    begin_ratio = result.line("auto against its initial setting")
    fixed(begins, sample)  # warm-up
    bench.say(f"a grid of {len(grid)} settings")
    scan = {setting: fixed(setting, sample) for setting in grid}
    best = sorted(scan, key=scan.get, reverse=True)[:BEST]
    if begins not in best:
        best.append(begins)
    lines = {setting: result.line(f"{shown(setting)}, docs/s") for setting in best}
    fixed(begins)  # warm-up: the first long load has to extend the servers' files
    for _ in bench.rounds(FEW):
        run = bench.load(deployment, data, threads="auto", batch="auto", uri=uri)
        seconds.append(run.seconds)
        auto_line.add(run.rate)
        found.append(f"{shown(run.settings)}" + ("" if run.settled else " (not settled)"))
        for setting, line in lines.items():
            line.add(fixed(setting))
    winner = max(lines, key=lambda setting: lines[setting].median)
    for rate, fast, began in zip(auto_line.values, lines[winner].values, lines[begins].values):
        ratio.add(rate / fast)
        begin_ratio.add(rate / began)
    result.note(f"the best fixed setting: {shown(winner)}; auto begins with {shown(begins)} and ended "
                "with " + ", ".join(found))
    result.note(f"the loads with auto took {min(seconds):.0f} to {max(seconds):.0f} s, those of the "
                f"grid about {SCAN:.0%} of that")
    result.note("the grid, one load each, docs/s: " +
                "; ".join(f"{shown(setting)} {rate:,.0f}" for setting, rate in scan.items()))


def near(kind):
    def row(bench, result):
        against_grid(bench, result, bench.servers.start(kind), NEAR, MILLIONS[kind])
    return row


def distant(bench, result):
    deployment = bench.servers.start("mongod")
    with relayed(deployment.plain_uri, DISTANT_MS) as later:
        against_grid(bench, result, deployment, DISTANT, DISTANT_MILLIONS, uri=later)
    result.note(f"a relay adds {DISTANT_MS} ms each way")


ROWS = [(f"auto-{kind}", f"automatic threads and batch size, into {NAMES[kind]}", near(kind))
        for kind in MILLIONS] + [
    ("auto-distant", "automatic threads and batch size, into one mongod that is "
     f"{DISTANT_MS} ms away", distant),
]
