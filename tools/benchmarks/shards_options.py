# SPDX-License-Identifier: Apache-2.0
"""The options of `bench shards`. Every combination of the numbers of shards, engine options and cache
sizes is measured."""
import argparse
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from . import machine
from .process import without_folder

GIB = 1 << 30
LEAST_CACHE = GIB // 4      # the smallest cache that mongod accepts
MOST_SHARDS = 99            # the maximum of tools/localcluster
SUITE = Path(__file__).resolve().parents[2] / "queries" / "mot.yaml"
QUICK_RECORDS, RECORDS = 20_000, 1_000_000

# Predefined sets of mongod options.
ENGINES = {
    "default": "",
    **{name: f"--wiredTigerCollectionBlockCompressor={name} --wiredTigerJournalCompressor={name}"
       for name in ("none", "snappy", "zlib", "zstd")},
    "directories": "--directoryperdb --wiredTigerDirectoryForIndexes",
    "no-prefixes": "--wiredTigerIndexPrefixCompression=false",
}


class Engine(NamedTuple):
    name: str
    options: str  # words of mongod's command line

    @property
    def words(self):
        return shlex.split(self.options)


class Case(NamedTuple):
    """One combination. `cache`: bytes, divided evenly among the shards."""

    shards: int
    engine: Engine
    cache: int

    @property
    def shard_cache(self):
        return self.cache // max(self.shards, 1)

    @property
    def peers(self):
        """Equal for cases that differ only in the number of shards."""
        return (self.engine, self.cache)

    def text(self):
        return f"{shards_text(self.shards)}, {self.engine.name}, {size_text(self.cache)} cache"


def shards_text(count):
    return f"{count} shard{'s' * (count > 1)}" if count else "mongod"


def size_text(size):
    for unit, name in ((GIB, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def default_shards(cores):
    """1, 2, 4, ... up to twice the cores, but to 8 in any case, and to 32 at most."""
    return [1 << i for i in range(6) if 1 << i <= max(2 * cores, 8)]


def shard_count(text):
    value = int(text)
    if not 0 <= value <= MOST_SHARDS:
        raise ValueError(text)
    return value


def cache_size(text):
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([GM])i?B", text.strip(), re.I)
    if not found or not float(found.group(1)):
        raise ValueError(text)
    return int(float(found.group(1)) * (GIB if found.group(2).upper() == "G" else 1 << 20))


def engine(text):
    name, equals, options = text.partition("=")
    if not equals and name in ENGINES:
        return Engine(name, ENGINES[name])
    if not equals or not name.strip() or name.startswith("-"):
        raise ValueError(text)
    shlex.split(options)  # raises ValueError for an open quote
    return Engine(name.strip(), options.strip())


def query_names():
    return re.findall(r"^  - name: (\S+)", SUITE.read_text("utf-8"), re.M)


def query(text):
    if text not in query_names():
        raise ValueError(text)
    return text


def read_each(option, texts, read, expected, problems):
    """The distinct values of a list option; an invalid value is added to `problems`."""
    values = []
    for text in texts:
        try:
            value = read(text)
            if value not in values:
                values.append(value)
        except ValueError:
            problems.append(f"{option}: {text!r} is not {expected}")
    return values


def parser_of():
    parser = argparse.ArgumentParser(
        prog="bench shards",
        description="Loads the same MOT tests into 1, 2, 4, ... shards on this machine, each with its "
        "own mongod, and runs an aggregation over all of them. Measures load rate, disk space, query "
        "time, and the states of the processors. Each measurement uses a new cluster. "
        "docs/micro-shards.md explains the results.",
        epilog="Example: bench shards --shards 1,2,4 --engine snappy --engine zstd "
        "--engine 'no-journal-packing=--wiredTigerJournalCompressor=none' --cache 1GB,2GB. "
        "Exit status: 0 measured; 1 a measurement failed; 2 usage; 130 interrupted. With 1 and 130 "
        "the completed measurements are printed.")
    parser.add_argument("--shards", metavar="N,...",
                        help="numbers of shards; 0 is a standalone mongod without a router (default: "
                        "powers of two up to twice the number of cores, at least up to 8, at most "
                        "up to 32)")
    parser.add_argument("--engine", action="append", default=[], metavar="NAME[=OPTIONS]",
                        help="a name and options for every mongod, or one of these predefined "
                        "names: " + ", ".join(ENGINES) + "; may be given several times (default: default)")
    parser.add_argument("--cache", metavar="SIZE,...",
                        help="total cache of all shards, such as 2GB or 512MB (powers of 1024, as "
                        "for mongod), divided evenly among them (default: 0.25 GB, mongod's minimum, "
                        "times the largest number of shards)")
    parser.add_argument("--records", metavar="N", help=f"MOT tests (default: {RECORDS})")
    parser.add_argument("--runs", metavar="N", help="rounds (default: 3)")
    parser.add_argument("--query", action="append", default=[], metavar="NAME",
                        help="query of the suite mot; may be given several times (default: "
                        "green-ness)")
    parser.add_argument("--repeat", metavar="N",
                        help="timed runs of a query per round (default: 5)")
    parser.add_argument("--load-option", action="append", default=[], metavar="WORD",
                        help="argument for shardload load, such as --load-option=--clustered")
    parser.add_argument("--quick", action="store_true",
                        help=f"1 and 2 shards, {QUICK_RECORDS} records, 2 rounds, as a test")
    for name, content in (("json", "all measured values"), ("markdown", "the table for docs")):
        parser.add_argument(f"--{name}", metavar="FILE", help=f"write {content}")
    return parser


def read_options(words):
    """Returns the options and the cases to measure; reports all wrong options at once and exits."""
    parser, problems = parser_of(), []
    options = parser.parse_args(words)

    def whole(name, text, default):
        if text is None:
            return default
        if not re.fullmatch(r"[1-9]\d*", text):
            problems.append(f"--{name}: {text!r} is not a whole number above 0")
            return default
        return int(text)

    counts = [1, 2] if options.quick else default_shards(machine.cores())
    if options.shards is not None:
        counts = read_each("--shards", options.shards.split(","), shard_count,
                           f"a number of shards, 0 to {MOST_SHARDS}", problems)
    options.engines = read_each("--engine", options.engine or ["default"], engine,
                                "NAME=OPTIONS, nor one of " + ", ".join(ENGINES), problems)
    names = [one.name for one in options.engines]
    problems += [f"--engine: the name {name} is used twice"
                 for name in sorted(set(names)) if names.count(name) > 1]
    most = max([*counts, 1])
    options.caches = [most * LEAST_CACHE]
    if options.cache is not None:
        options.caches = read_each("--cache", options.cache.split(","), cache_size,
                                   "a size such as 2GB or 512MB", problems)
    problems += [f"--cache: {size_text(size)} are too little for {shards_text(most)}: a mongod needs "
                 f"at least {size_text(LEAST_CACHE)}, all shards {size_text(most * LEAST_CACHE)}"
                 for size in options.caches if size < most * LEAST_CACHE]
    options.records = whole("records", options.records, QUICK_RECORDS if options.quick else RECORDS)
    options.runs = whole("runs", options.runs, 2 if options.quick else 3)
    options.repeat = whole("repeat", options.repeat, 5)
    options.queries = read_each("--query", options.query or ["green-ness"], query,
                                "one of " + ", ".join(query_names()), problems)
    problems += without_folder(options.json, options.markdown)
    if problems:
        parser.error("\n  ".join(["", *problems]) if len(problems) > 1 else problems[0])
    options.counts = sorted(counts)
    options.cases = [Case(count, one, size) for one in options.engines for size in options.caches
                     for count in options.counts]
    return options
