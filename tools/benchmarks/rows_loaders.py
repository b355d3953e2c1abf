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


def timed(loaded):
    """Seconds from the start of the first process to the end of the last one, of that the seconds from
    the start of the first load phase to the end of the last one, and CPU seconds per million documents."""
    begins, ends = zip(*(one.span for one in loaded))
    return (max(one.process.wall for one in loaded), max(ends) - min(begins),
            sum(one.process.cpu for one in loaded) / sum(one.documents for one in loaded) * 1e6)


def many_loaders(bench, result):
    """All ways have the same number of threads in total. Each round begins with another way."""
    data = bench.data.mot(bench.scaled(1_000_000))
    deployment = bench.servers.start("cluster")
    compared = ways(sorted(shard["_id"] for shard in deployment.client.config.shards.find()))
    lines = {name: [result.line(f"{name}, {unit}") for unit in ("s", "s of loading",
                                                                "CPU s per million")]
             for name, _ in compared}
    ratios = {name: [result.line(f"{name}: {what}") for what in ("time", "time of loading",
                                                                 "CPU time")]
              for name, _ in compared[1:]}
    bench.load(deployment, data)  # warm-up
    for number in bench.rounds():
        first = (number - 1) % len(compared)
        found = {name: timed(bench.load_together(deployment, data, loaders))
                 for name, loaders in compared[first:] + compared[:first]}
        for name, _ in compared:
            for line, figure in zip(lines[name], found[name]):
                line.add(figure)
        for name, _ in compared[1:]:
            for line, figure, reference in zip(ratios[name], found[name], found[compared[0][0]]):
                line.add(figure / reference)
    result.note(f"{data.records:,} MOT documents, clustered collection, {bench.threads} threads in all "
                "loaders of a load together; seconds of all processes, with preparation and verification; "
                "the ratios are to `one loader` in the same round; all loaders and servers share this "
                "machine")


ROWS = [
    ("many-loaders", "one load into two shards by several loaders at once against one loader",
     many_loaders),
]
