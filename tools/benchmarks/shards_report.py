# SPDX-License-Identifier: Apache-2.0
"""The results of `bench shards` as a table and bars for a terminal, as Markdown, and as JSON."""
import os
import platform
import textwrap

from .figures import number
from .machine import STATES, about
from .report import WIDTH, markdown_head, text_head
from .shards_options import size_text

BAR = 50  # characters of the longest bar


def percent(shares, state):
    return f"{100 * shares.get(state, 0):.0f}"


def mean_shares(rounds):
    """The mean of several rounds' shares. The sum of means is 1; that of medians need not be."""
    states = [state for state in STATES if any(state in one for one in rounds)]
    return {state: sum(one.get(state, 0) for one in rounds) / len(rounds) for state in states}


def camel_case(name):
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def spread(line):
    """The range of the values, if there are several."""
    return f"{number(min(line.values))}-{number(max(line.values))}" if len(line.values) > 1 else ""


class Report:
    """The results of an experiment that has ended; `why`: the reason if it failed, else ""."""

    def __init__(self, experiment, facts, warnings, why):
        self.experiment = experiment
        self.facts = facts
        self.warnings = warnings
        self.why = why
        self.rows = [row for row in experiment.rows if row.rate.values]
        self.documents = experiment.loaded.documents if experiment.loaded else 0

    # As text

    def conditions(self):
        """The machine, the versions and the method, in sentences."""
        options = self.experiment.options
        return (f"{about(self.facts)}, {options.records:,} records. Each measurement uses a new "
                "cluster, each shard one mongod (a replica set with one member); the cache is the "
                f"sum of all shards' caches. Queries: median of {options.repeat} runs.")

    def tables(self):
        """[(title, rows of cells, the first with the column headings)]: loads, queries."""
        loads = [["shards", "engine", "cache", "seconds", "docs/s", "least-most", "ratio", "data",
                  "files", "memory", "us/sy/wa/id %"]]
        queries = [["shards", "engine", "cache", "query", "ms", "least-most", "docs/ms", "ratio",
                    "us/sy/wa/id %"]]
        for row in self.rows:
            case = row.case
            name = [str(case.shards or "mongod"), case.engine.name, size_text(case.cache)]
            loads.append(name + [
                number(row.seconds.median), number(row.rate.median), spread(row.rate),
                self.ratio(row.ratio), size_text(row.stored.median),
                size_text(row.files.median), size_text(row.memory.median),
                self.processors(row.load_cpu)])
            queries += [name + [
                query, number(line.median), spread(line), number(self.documents / line.median),
                self.ratio(row.query_ratios[query]), self.processors(row.query_cpu)]
                for query, line in row.queries.items()]
        return [("Loading", loads), ("Querying", queries)]

    @staticmethod
    def ratio(line):
        return f"{line.median:.2f}" if line.values else "-"

    @staticmethod
    def processors(rounds):
        shares = mean_shares(rounds)
        text = "/".join(percent(shares, state) for state in STATES[:4])
        return text + (f" (stolen {percent(shares, 'steal')})" if shares.get("steal", 0) > 0.005
                       else "")

    def base(self):
        counts = self.experiment.options.counts
        least = 1 if 1 in counts else min(counts)
        return {0: "a standalone mongod", 1: "one shard"}.get(least, f"{least} shards")

    def notes(self):
        return [f"ratio: how many times as fast as {self.base()}, median of the rounds",
                "data: files of the collection and of its indexes; files: all files of the shards' "
                "data directories, with journals and oplogs; memory: sum of the peak memories of the "
                "shards' servers",
                "us/sy/wa/id: shares of the machine in user mode, in the kernel, waiting for the "
                "disk, idle"]

    def table(self):
        """For a terminal."""
        lines = text_head(self.conditions(), self.warnings)
        for title, table in self.tables() if self.rows else ():
            widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
            lines += ["", title]
            lines += ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)).rstrip()
                      for row in table]
        lines += [""]
        for text in self.notes():
            lines += textwrap.wrap(text, WIDTH, initial_indent="* ", subsequent_indent="  ")
        return "\n".join(lines + ["", self.why] * bool(self.why)) + "\n"

    def bars(self):
        """Bar charts of the medians, for a terminal."""
        if not self.rows:
            return ""
        pictures = [("documents/s, loading", [row.rate.median for row in self.rows])]
        pictures += [(f"{name}, milliseconds", [row.queries[name].median for row in self.rows])
                     for name in self.experiment.options.queries]
        names = [row.case.text() for row in self.rows]
        width = max(map(len, names))
        lines = []
        for title, values in pictures:
            lines.append(title)
            most = max(values)
            lines += [f"  {name:<{width}}  {'#' * max(round(BAR * value / most), 1)} "
                      f"{number(value)}" for name, value in zip(names, values)]
            lines.append("")
        return "\n".join(lines)

    def markdown(self):
        lines = markdown_head("tools/bench shards", f"Measured {self.conditions()}", self.warnings)
        for title, (heads, *rows) in self.tables():
            lines += ["", f"{title}:", "", "| " + " | ".join(heads) + " |",
                      "|" + "--:|" * len(heads)]
            lines += ["| " + " | ".join(cells) + " |" for cells in rows]
        lines += ["", *(f"- {text}." for text in self.notes())]
        engines = [one for one in self.experiment.options.engines if one.options]
        lines += [f"- {one.name}: `{one.options}`." for one in engines]
        return "\n".join(lines + [""] * bool(self.why) + [f"{self.why}."] * bool(self.why)) + "\n"

    # As JSON

    def as_json(self, started, ended, code):
        options, bench = self.experiment.options, self.experiment.bench
        machine = os.uname()
        loaded = self.experiment.loaded
        return {
            "program": "bench",
            "version": bench.version,
            "command": "shards",
            "startedAt": started,
            "client": {"host": machine.nodename, "system": platform.system(),
                       "release": machine.release, "cores": self.facts["cores"]},
            "options": {"shards": options.counts,
                        "engines": {one.name: one.options for one in options.engines},
                        "caches": options.caches, "records": options.records,
                        "runs": options.runs, "queries": options.queries,
                        "repeat": options.repeat, "loadOptions": options.load_option},
            "server": {"version": bench.servers.version, "deployment": "sharded cluster"},
            "machine": self.facts,
            "warnings": self.warnings,
            "documents": self.documents,
            "textBytes": loaded.text_bytes if loaded else 0,
            "bsonBytes": loaded.bson_bytes if loaded else 0,
            "rows": [self.row_as_json(row) for row in self.rows],
            "why": self.why,
            "endedAt": ended,
            "exitCode": code,
        }

    def row_as_json(self, row):
        """Figures are medians of the rounds, shares of the machine are means; `rounds` has the
        values of all rounds."""
        case = row.case
        found = {
            "shards": case.shards,
            "engine": case.engine.options or case.engine.name,
            "engineName": case.engine.name,
            "cacheBytes": case.cache,
            "shardCacheBytes": case.shard_cache,
            "loadSeconds": row.seconds.median,
            "wholeSeconds": row.whole.median,
            "rate": row.rate.median,
            "low": min(row.rate.values),
            "high": max(row.rate.values),
            "loaderCpuPerMillion": row.loader_cpu.median,
            "serverCpuPerMillion": row.server_cpu.median,
            "others": row.others.median,
            "storageBytes": row.stored.median,
            "indexBytes": row.indexes.median,
            "fileBytes": row.files.median,
            "journalBytes": row.journal.median,
            "memoryBytes": row.memory.median,
            "queries": [self.query_as_json(row, name) for name in row.queries],
            "cpu": mean_shares(row.load_cpu),
            "queryCpu": mean_shares(row.query_cpu),
            "rounds": {camel_case(name): getattr(row, name).values for name, _ in row.LINES},
        }
        if row.ratio.values:
            found["ratio"] = row.ratio.median
            found["ratioTo"] = self.experiment.baseline(row).case.shards
        return found

    def query_as_json(self, row, name):
        line, ratios = row.queries[name], row.query_ratios[name]
        found = {"name": name, "milliseconds": line.median, "low": min(line.values),
                 "high": max(line.values),
                 "documentsPerMillisecond": self.documents / line.median, "rounds": line.values}
        if ratios.values:
            found["ratio"] = ratios.median
        return found
