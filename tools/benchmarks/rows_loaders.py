# SPDX-License-Identifier: Apache-2.0
"""The row of loads that several loaders share, against the same load by one loader."""

LOADERS = 4
DIRECT = "--route", "direct"


def parts(count):
    """The options of each of `count` loaders."""
    return [["--part", f"{part}/{count}"] for part in range(1, count + 1)]


def ways(shards):
    """[(name, the options of each loader)]. The first one is the reference."""
    each = [["--only-shards", name] for name in shards]
    return [("one loader", [[]]),
            (f"{LOADERS} loaders, --part", parts(LOADERS)),
            (f"{len(each)} loaders, --only-shards", each),
            ("one loader, --route direct", [[*DIRECT]]),
            (f"{len(each)} loaders, --only-shards, direct", [[*words, *DIRECT] for words in each])]


def many_loaders(bench, result):
    """All ways have the same number of threads in total. Each round begins with another way."""
    data = bench.data.mot(bench.scaled(1_000_000))
    deployment = bench.servers.start("cluster")
    compared = ways(sorted(shard["_id"] for shard in deployment.client.config.shards.find()))
    lines = [(result.line(f"{name}, s"), result.line(f"{name}, CPU s per million"))
             for name, _ in compared]
    ratios = [(result.line(f"{name}: time"), result.line(f"{name}: CPU time"))
              for name, _ in compared[1:]]
    bench.load(deployment, data)  # warm-up
    for number in bench.rounds():
        found = [None] * len(compared)
        for i in range(len(compared)):
            way = (i + number - 1) % len(compared)
            loaded = bench.load_together(deployment, data, compared[way][1])
            cpu = sum(one.process.cpu for one in loaded)
            found[way] = (max(one.process.wall for one in loaded),
                          cpu / sum(one.documents for one in loaded) * 1e6)
        for pair, figures in zip(lines, found):
            for line, figure in zip(pair, figures):
                line.add(figure)
        for pair, figures in zip(ratios, found[1:]):
            for line, figure, reference in zip(pair, figures, found[0]):
                line.add(figure / reference)
    result.note(f"{data.records:,} MOT documents, clustered collection, {bench.threads} threads in all "
                "loaders of a load together; seconds from the start of the first process to the end of "
                "the last one, with preparation and verification; the ratios are to `one loader` in the "
                "same round; all loaders and servers share this machine")


ROWS = [
    ("many-loaders", "one load into two shards by several loaders at once against one loader",
     many_loaders),
]
