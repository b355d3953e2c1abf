# SPDX-License-Identifier: Apache-2.0
"""Measured values: lines with one value per round, their medians, spreads and targets.

A comparison is not a quotient of two medians: the two sides run alternately, and each round gives one
ratio, so that a temporary slowdown of the machine affects both sides of the ratio.
"""
import statistics
from typing import NamedTuple


class Target(NamedTuple):
    """The limit for a line's median; `sense` is ">=" or "<="."""

    sense: str
    limit: float

    def met_by(self, value):
        return value >= self.limit if self.sense == ">=" else value <= self.limit

    def missed_by(self, value):
        """By how many percent of the limit a value misses it."""
        return abs(value - self.limit) / self.limit * 100

    def text(self):
        return f"{self.sense} {self.limit:g}"


def at_least(limit):
    return Target(">=", limit)


def at_most(limit):
    return Target("<=", limit)


def number(value):
    """A figure with about three digits."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 or value == 0 else f"{value:.3f}"


def threads_of(count):
    return f"{count} thread{'s' if count > 1 else ''}"


class Line:
    """One figure: its title with the unit, a value per round, and an optional target."""

    def __init__(self, title, target=None):
        self.title = title
        self.target = target
        self.values = []

    def add(self, value):
        self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    def met(self):
        """True or False; None without a target or a value."""
        return self.target.met_by(self.median) if self.target and self.values else None

    def verdict(self):
        if self.met() is None:
            return ""
        if not self.met():
            side = "short" if self.target.sense == ">=" else "over"
            missed = self.target.missed_by(self.median)
            return f"{missed:.{0 if missed > 9.95 else 1}f} % {side}"
        always = all(self.target.met_by(value) for value in self.values)
        return "met" if always else "met in the median"

    def as_json(self):
        found = {"title": self.title, "values": self.values}
        if self.values:
            found.update(median=self.median, minimum=min(self.values), maximum=max(self.values))
        if self.target:
            found.update(target=self.target.text(), met=self.met(), verdict=self.verdict())
        return found


class Comparison:
    """Two sides that run alternately, and their ratio in each round."""

    def __init__(self, left, right, ratio):
        self.left, self.right, self.ratio = left, right, ratio

    def add(self, left, right):
        self.left.add(left)
        self.right.add(right)
        self.ratio.add(left / right)


class Skip(Exception):
    """A row cannot be measured here; the text is the reason."""


class Result:
    """The result of a row: its lines, notes, and final state."""

    def __init__(self, name, summary):
        self.name = name
        self.summary = summary
        self.lines = []
        self.notes = []
        self.state = "running"  # then: measured, skipped, failed or interrupted
        self.why = ""

    def line(self, title, target=None):
        made = Line(title, target)
        self.lines.append(made)
        return made

    def compare(self, left, right, ratio, target=None):
        return Comparison(self.line(left), self.line(right), self.line(ratio, target))

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def as_json(self):
        return {"row": self.name, "summary": self.summary, "state": self.state, "why": self.why,
                "lines": [line.as_json() for line in self.lines], "notes": self.notes}
