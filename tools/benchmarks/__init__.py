# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/bench. Published experiments are repeated by tools/reproduce.

    figures.py         measured values: their medians, spreads and targets
    process.py         runs programs and measures their time and memory
    machine.py         describes the machine and its load
    servers.py         starts one deployment at a time, by tools/localcluster
    data.py            generated data
    bench.py           for every row: rounds, loads, the yardstick
    rows_client.py     rows without a server
    rows_server.py     rows with a server, against the yardstick
    rows_peers.py      rows against other loaders
    rows_limits.py     rows about the limits of the server
    rows_query.py      the query runner against plain sockets
    rows_tune.py       `shardload tune` against its grid search
    rows_auto.py       automatic threads and batch sizes against fixed ones
    rows_reload.py     predictions of `shardload reload` and `plan` against reloads and loads
    rows_loaders.py    several loaders at once against one
    rows_model.py      predictions of the capacity model `cluster` against larger loads
    report.py          tables and JSON
    shards.py          `bench shards`: the same data on 1, 2, 4, ... shards of one machine
    shards_options.py  its options
    shards_report.py   its tables, bars and JSON
    relay.py           a program: TCP with a delay and a limited rate
    python_load.py     a program: a load through the Python driver
"""
