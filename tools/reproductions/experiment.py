# SPDX-License-Identifier: Apache-2.0
"""What an experiment is, and what it measures.

A module of an experiment has one object EXPERIMENT. Its published figures are rows of a table, written
down once; `run` measures them by name, so that a result cannot show a published figure that is not in
the table. Figures without a published counterpart go into tables of their own.
"""
from dataclasses import dataclass, field
from typing import Callable, NamedTuple


class Figure(NamedTuple):
    """A published figure. `value` is None where only a picture, or nothing, was published."""

    name: str        # by which `run` measures it
    title: str       # with the unit
    value: float = None
    published: str = ""  # as the text has it, if that is not the value itself


class Table(NamedTuple):
    """A table beside the comparison. `heat`: the cells after the first column are coloured by value."""

    title: str
    heads: list
    rows: list
    heat: bool = False


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    published: str   # what was published, as Markdown
    full: str        # how to run it at full scale, as Markdown
    differs: str     # what differs here, and why, as Markdown
    figures: tuple
    run: Callable    # run(programs, outcome)


class Measured(NamedTuple):
    figure: Figure
    value: float
    note: str

    @property
    def ratio(self):
        """Ours against the published figure; None where one of them is missing or zero."""
        if self.value is None or not self.figure.value:
            return None
        return self.value / self.figure.value


@dataclass
class Outcome:
    """The results of one run of an experiment."""

    experiment: Experiment
    values: dict = field(default_factory=dict)   # name of a figure -> (value, note)
    tables: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    pages: list = field(default_factory=list)    # (title, file) of pages of shardload report
    seconds: float = 0
    why: str = ""                                # the reason if it failed

    def measure(self, name, value, note=""):
        if name not in {figure.name for figure in self.experiment.figures}:
            raise KeyError(f"{self.experiment.name} has no published figure {name}")
        self.values[name] = (value, note)

    def table(self, title, heads, rows, heat=False):
        self.tables.append(Table(title, list(heads), [list(row) for row in rows], heat))

    def note(self, text):
        self.notes.append(text)

    @property
    def rows(self):
        """All published figures in their order, with the measured ones."""
        return [Measured(figure, *self.values.get(figure.name, (None, "not measured here")))
                for figure in self.experiment.figures]

    def as_json(self):
        return {
            "experiment": self.experiment.name, "title": self.experiment.title,
            "seconds": self.seconds, "why": self.why,
            "figures": [{"name": row.figure.name, "title": row.figure.title,
                         "published": row.figure.value, "measured": row.value,
                         "ratio": row.ratio, "note": row.note} for row in self.rows],
            "tables": [table._asdict() for table in self.tables],
            "notes": self.notes,
        }
