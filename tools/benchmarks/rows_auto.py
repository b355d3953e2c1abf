# SPDX-License-Identifier: Apache-2.0
"""Rows about what the loader finds by itself: --threads auto --batch-size auto against settings that
stay.

First each setting of a grid has one load. The few that were fastest then take turns with auto, and
with what auto begins with, for all rounds; the best of them is the one with the best median, so it is
chosen with the knowledge of all rounds, which auto has not."""
from .figures import at_least, threads_of
from .rows_server import RELAY_MS, relayed
from .servers import NAMES

THREADS = (1, 2, 4, 8)
BATCHES = (1000, 10_000, 50_000)
BEST = 3      # of the grid, in the rounds
# Millions of records: loads of more than ten seconds on two cores.
MILLIONS = {"mongod": 10, "cluster": 4, "replica": 1.5}


def shown(setting):
    threads, batch = setting
    return f"{threads_of(threads)} x {batch:,}"


def against_grid(bench, result, deployment, data, uri=None):
    grid = [(threads, batch) for threads in THREADS for batch in BATCHES]
    begins = (bench.threads, 10_000)

    def fixed(setting):
        threads, batch = setting
        return bench.load(deployment, data, threads=threads, batch=batch, uri=uri).rate

    found = []
    auto_line = result.line("auto, docs/s")
    ratio = result.line("auto against the best that stays", at_least(0.9))
    begin_ratio = result.line("auto against what it begins with")
    fixed(begins)  # does not count
    bench.say(f"a grid of {len(grid)} settings")
    scan = {setting: fixed(setting) for setting in grid}
    best = sorted(scan, key=scan.get, reverse=True)[:BEST]
    if begins not in best:
        best.append(begins)
    lines = {setting: result.line(f"{shown(setting)}, docs/s") for setting in best}
    for _ in bench.rounds():
        run = bench.load(deployment, data, threads="auto", batch="auto", uri=uri)
        auto_line.add(run.rate)
        found.append(f"{shown(run.settings)}" + ("" if run.settled else " (not settled)"))
        for setting, line in lines.items():
            line.add(fixed(setting))
    winner = max(lines, key=lambda setting: lines[setting].median)
    for rate, fast, began in zip(auto_line.values, lines[winner].values, lines[begins].values):
        ratio.add(rate / fast)
        begin_ratio.add(rate / began)
    result.note(f"the best that stays: {shown(winner)}; auto begins with {shown(begins)} and came to "
                + ", ".join(found))
    result.note("the grid, one load each, docs/s: " +
                "; ".join(f"{shown(setting)} {rate:,.0f}" for setting, rate in scan.items()))


def near(kind):
    def row(bench, result):
        data = bench.data.mot(bench.scaled(int(MILLIONS[kind] * 1e6)))
        against_grid(bench, result, bench.servers.start(kind), data)
    return row


def distant(bench, result):
    data = bench.data.mot(bench.scaled(8_000_000))
    deployment = bench.servers.start("mongod")
    with relayed(deployment.plain_uri, RELAY_MS) as later:
        against_grid(bench, result, deployment, data, uri=later)
    result.note(f"a relay adds {RELAY_MS} ms each way")


ROWS = [(f"auto-{kind}", f"threads and batches that adapt, into {NAMES[kind]}", near(kind))
        for kind in MILLIONS] + [
    ("auto-distant", "the same into one mongod that is 5 ms away", distant),
]
