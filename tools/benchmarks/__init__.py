# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/bench.

    figures.py      what was measured: lines of values, their medians, spreads and targets
    process.py      programs run to their end, with the operating system's account of them
    machine.py      what the figures were measured on
    servers.py      one deployment at a time, made by tools/localcluster
    data.py         generated data, made once
    bench.py        what every row works with: rounds, loads, the yardstick
    rows_client.py  rows without a server
    rows_server.py  rows with one, against the yardstick
    rows_peers.py   rows against other loaders
    rows_limits.py  rows about what the server itself can take
    rows_query.py      the query runner against plain sockets
    rows_published.py  rows after experiments that others have published
    rows_trial.py   rows about the experiments that the loader makes itself
    report.py       tables and JSON
    shards.py       `bench shards`: the same data on more and more shards of one machine
    shards_options.py, shards_report.py    what it is asked for; its tables, bars and JSON
    relay.py        a program: TCP with a delay
    python_load.py  a program: a load through the Python driver
    sums.py         a program: one sum over all documents, by a pipeline, map-reduce, or itself
    point_reads.py  a program: documents read by key, on schedule, from a secondary
"""
