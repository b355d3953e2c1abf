# SPDX-License-Identifier: Apache-2.0
"""Rows about the limits of the server: rates by layout, compressor, batch size and shards.

They use the loader, which is almost as fast as the yardstick and has options for these layouts. The
variants of a row run alternately in each round.
"""
from .servers import NAMES

COMPRESSORS = ("none", "snappy", "zlib", "zstd")
FEW = 3  # rounds: each has many variants
BATCHES = (100, 1000, 10_000, 50_000)


def data_for(bench):
    return bench.data.mot(bench.scaled(1_000_000))


def layouts(bench, result):
    data = data_for(bench)
    deployment = bench.servers.start("mongod")
    cases = [(clustered, compressor) for clustered in (True, False) for compressor in COMPRESSORS]
    lines = {(clustered, compressor): result.line(
        f"{'clustered' if clustered else '_id index'}, {compressor}, docs/s")
        for clustered, compressor in cases}
    bench.load(deployment, data)
    for _ in bench.rounds(FEW):
        for clustered, compressor in cases:
            run = bench.load(deployment, data, "--compressor", compressor, clustered=clustered)
            lines[clustered, compressor].add(run.rate)


def batch_sizes(bench, result):
    data = data_for(bench)
    deployment = bench.servers.start("mongod")
    lines = {batch: result.line(f"{batch:,} per batch, docs/s")
             for batch in BATCHES}
    bench.load(deployment, data)
    for _ in bench.rounds(FEW):
        for batch, line in lines.items():
            line.add(bench.load(deployment, data, batch=batch).rate)


def shards(bench, result):
    data = data_for(bench)
    for kind in ("cluster1", "cluster", "cluster4"):
        deployment = bench.servers.start(kind)
        line = result.line(f"{NAMES[kind]}, docs/s")
        bench.load(deployment, data)
        for _ in bench.rounds(FEW, what=NAMES[kind]):
            line.add(bench.load(deployment, data).rate)
    result.note("all shards share this machine's cores and disk, so more shards are not faster here")


ROWS = [
    ("limits-layout", "one mongod by kind of collection and block compressor", layouts),
    ("limits-batch", "one mongod by batch size", batch_sizes),
    ("limits-shards", "clusters by number of shards, on one machine", shards),
]
