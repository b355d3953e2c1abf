# SPDX-License-Identifier: Apache-2.0
"""The results as a table for a terminal, as Markdown for the docs, and as JSON."""
import sys
import textwrap
from pathlib import Path

from . import machine
from .figures import number

WIDTH = 100
FORM = "{:<43}{:>10}{:>10}{:>10}  {:<8}{}"


def ends(line):
    """Median, minimum, maximum as text."""
    if not line.values:
        return "-", "-", "-"
    return tuple(map(number, (line.median, min(line.values), max(line.values))))


def about(facts):
    """The machine and the versions, in sentences."""
    memory = facts["memoryBytes"]
    parts = [f"{facts['date']}", f"{facts['cores']} cores of {facts['processor']}"]
    if memory:
        parts.append(f"{memory / 2 ** 30:.0f} GiB")
    parts += [facts["kernel"], f"build {facts['build']}"]
    if facts.get("server"):
        parts.append(f"mongod {facts['server']}")
    if facts.get("driver"):
        parts.append(f"C driver {facts['driver']}")
    parts.append(f"{facts['runs']} round{'s' * (facts['runs'] > 1)}")
    if "scale" in facts:
        parts.append(f"scale {facts['scale']:g}")
    return ", ".join(parts)


def count(results):
    """How many targets were met, in one line."""
    verdicts = [line.met() for result in results for line in result.lines]
    states = [result.state for result in results]
    text = f"{verdicts.count(True)} targets met, {verdicts.count(False)} not met"
    for state in ("skipped", "failed", "interrupted"):
        if state in states:
            text += f", {states.count(state)} rows {state}"
    return text


def table(facts, results):
    lines = textwrap.wrap(about(facts), WIDTH)
    for text in machine.warnings(facts):
        lines += textwrap.wrap(f"WARNING: {text}", WIDTH)
    lines += ["", FORM.format("", "median", "least", "most", "target", "").rstrip(), "-" * WIDTH]
    for result in results:
        lines += textwrap.wrap(f"{result.name}: {result.summary}", WIDTH)
        for line in result.lines:
            target = line.target.text() if line.target else ""
            lines.append(FORM.format("  " + line.title, *ends(line), target,
                                     line.verdict()).rstrip())
        for text in result.notes:
            lines += textwrap.wrap(text, WIDTH, initial_indent="  * ", subsequent_indent="    ")
        if result.state != "measured":
            lines += textwrap.wrap(f"{result.state}: {result.why}", WIDTH, initial_indent="  ",
                                   subsequent_indent="    ")
        lines.append("")
    lines.append(count(results))
    return "\n".join(lines) + "\n"


def markdown(facts, results):
    lines = ["<!-- made by tools/bench --markdown; do not edit by hand -->", ""]
    lines += textwrap.wrap("Measured " + about(facts) + ".", WIDTH)
    for text in machine.warnings(facts):
        lines += ["", f"**{text[0].upper()}{text[1:]}.**"]
    lines += ["", "| figure | median | least | most | target | |", "|---|--:|--:|--:|---|---|"]
    for result in results:
        lines.append(f"| **{result.name}**: {result.summary} | | | | | "
                     f"{'' if result.state == 'measured' else result.state + ': ' + result.why} |")
        for line in result.lines:
            target = line.target.text() if line.target else ""
            lines.append(f"| {line.title} | " + " | ".join(ends(line)) +
                         f" | {target} | {line.verdict()} |")
    notes = [(result.name, text) for result in results for text in result.notes]
    if notes:
        lines += [""] + [f"- {name}: {text}" for name, text in notes]
    lines += ["", count(results) + "."]
    return "\n".join(lines) + "\n"


def write(path, text):
    Path(path).write_text(text, encoding="utf-8")
    print(f"bench: written: {path}", file=sys.stderr)


def as_json(facts, results):
    return {"machine": facts, "warnings": machine.warnings(facts),
            "rows": [result.as_json() for result in results]}
