# SPDX-License-Identifier: Apache-2.0
"""tools/reproduce: its tables have the figures of its runs beside those that were published, and it
leaves nothing behind. Speeds are never tested."""
import json
import re
import signal
import subprocess
import sys
import unittest

import support
from test_bench_rows import ToolCase, servers_in

sys.path.insert(0, str(support.TREE / "tools"))
from reproductions import pages, zipf
from reproductions.__main__ import EXPERIMENTS
from reproductions.experiment import Outcome

TOOL = support.TREE / "tools" / "reproduce"
DOCS = support.TREE / "docs" / "reproduce.md"


class Experiments(unittest.TestCase):
    """The published figures, without running anything."""

    def test_each_has_its_texts_and_figures(self):
        self.assertEqual(sorted(EXPERIMENTS), ["compression", "mot-microshards", "petabyte",
                                               "secondary-reads", "statistics", "weather"])
        for one in EXPERIMENTS.values():
            for text in (one.title, one.published, one.full, one.differs):
                self.assertGreater(len(text), 20, one.name)
            names = [figure.name for figure in one.figures]
            self.assertEqual(len(names), len(set(names)), one.name)
            self.assertGreater(len(names), 5, one.name)

    def test_a_table_shows_exactly_the_published_figures_of_its_module(self):
        for one in EXPERIMENTS.values():
            outcome = Outcome(one)
            outcome.measure(one.figures[0].name, 7.0, "a note")
            rows = pages.comparison(outcome)
            self.assertEqual([row[0] for row in rows], [figure.title for figure in one.figures])
            self.assertEqual([row[1] for row in rows],
                             [figure.published or pages.cell(figure.value) for figure in one.figures])
            self.assertEqual([row[2] for row in rows], ["7.00"] + ["-"] * (len(rows) - 1))
            self.assertEqual(rows[0][4], "a note")

    def test_a_figure_that_was_not_published_cannot_be_measured(self):
        with self.assertRaises(KeyError):
            Outcome(EXPERIMENTS["petabyte"]).measure("nothing", 1)

    def test_the_ratio_is_ours_to_the_published_figure(self):
        outcome = Outcome(EXPERIMENTS["petabyte"])
        outcome.measure("find-one", 1600.0)
        [row] = [row for row in outcome.rows if row.figure.name == "find-one"]
        self.assertEqual((row.figure.value, row.value, row.ratio), (800, 1600.0, 2.0))

    def test_the_documentation_has_each_experiment_and_each_published_figure(self):
        text, figures = DOCS.read_text("utf-8"), DOCS.with_suffix(".txt").read_text("utf-8")
        for one in EXPERIMENTS.values():
            self.assertIn(f"tools/reproduce {one.name}\n", text)
            for part in (one.published, one.full, one.differs):
                self.assertIn(part.strip(), text, f"{one.name}: write docs/reproduce.md again")
            for figure in one.figures:
                published = figure.published or pages.cell(figure.value)
                self.assertRegex(figures, rf"(?m)^{re.escape(figure.title)}  +{re.escape(published)}  ")

    def test_names_are_checked_before_anything_is_built(self):
        done = subprocess.run([TOOL, "--list"], capture_output=True, text=True, check=True)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], list(EXPERIMENTS))


class Zipf(unittest.TestCase):
    def counts(self, total, change=lambda value, share: share):
        return {value: round(change(value, share) * total)
                for value, share in enumerate(zipf.shares()) if round(change(value, share) * total)}

    def test_counts_by_the_law_are_accepted_and_others_are_not(self):
        _, degrees, p = zipf.chi_squared(self.counts(10_000_000))
        self.assertGreater(degrees, 100)
        self.assertGreater(p, 0.5)
        # As in the published generator: 2 and 5 never occur.
        _, _, p = zipf.chi_squared(self.counts(100_000, lambda value, share: share * (value not in (2, 5))))
        self.assertLess(p, 1e-6)


class Runs(ToolCase):
    """Small runs of two experiments, in one invocation."""

    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(support.TREE / "tools")

    def reproduce(self, *words, code=0, **more):
        environment = {**self.environment, **more}
        done = subprocess.run([sys.executable, "-m", "reproductions", *map(str, words)], env=environment,
                              cwd=self.scratch, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assert_nothing_left()
        return done

    def test_two_experiments_from_start_to_end(self):
        file, text, folder = self.scratch / "r.json", self.scratch / "r.md", self.scratch / "pages"
        done = self.reproduce("petabyte", "statistics", "--scale", "0.01", "--json", file, "--markdown",
                              text, "--pages", folder)
        found = {each["experiment"]: each for each in
                 json.loads(file.read_text("utf-8"))["experiments"]}
        self.assertEqual(set(found), {"petabyte", "statistics"})
        for name, one in found.items():
            self.assertEqual(one["why"], "")
            published = {figure.name: figure.value for figure in EXPERIMENTS[name].figures}
            self.assertEqual({row["name"]: row["published"] for row in one["figures"]}, published)
            page = (folder / f"{name}.html").read_text("utf-8")
            for row in one["figures"]:
                if row["measured"] is not None:
                    if row["published"]:
                        self.assertEqual(row["ratio"], row["measured"] / row["published"])
                    shown = pages.cell(row["measured"])
                    self.assertRegex(done.stdout, rf"{re.escape(row['title'])} .* {re.escape(shown)}")
                    self.assertIn(f"<td>{shown}</td>", page)
                    self.assertRegex(text.with_suffix(".txt").read_text("utf-8"),
                                     rf"(?m)^{re.escape(row['title'])}  .* {re.escape(shown)}  +")
        self.check_petabyte(found["petabyte"])
        measured = [row for row in found["statistics"]["figures"] if row["measured"] is not None]
        self.assertTrue(all(row["measured"] > 0 for row in measured))
        # 1,300 documents: all methods over 1, 10, 100 and 1,000 of them, and three other figures.
        self.assertEqual(len(measured), 4 * 4 + 3)
        self.assertIn("reproduce: ", done.stderr)  # progress
        shared = (folder / "petabyte-shards.html").read_text("utf-8")
        self.assertIn("Everything was loaded: 4 loaders stored 256 documents", shared)

    def check_petabyte(self, one):
        """What does not depend on speed."""
        rows = {row["name"]: row for row in one["figures"]}
        self.assertEqual(rows["size"]["measured"], 147_439)
        self.assertEqual(rows["missing"]["measured"], 0)
        self.assertTrue(30_000 < rows["rare"]["measured"] < 40_000)
        loaders, _, integers = one["tables"]
        self.assertEqual([row[1] for row in loaders["rows"]], [256, 256, 256])
        law = zipf.shares()
        for value, count, expected in integers["rows"]:
            self.assertEqual(expected, round(law[int(value)] * 256 * 8, 1))
            self.assertLess(abs(count - expected), 6 * expected ** 0.5 + 3)
        self.assertTrue(any("no difference from Zipf's law shown" in note for note in one["notes"]))

    def test_a_failure_is_reported_and_nothing_is_left(self):
        """No server can be started."""
        done = self.reproduce("statistics", "--scale", "0.01", code=1, SHARDLOAD_MONGOD="/bin/false")
        self.assertIn("FAILED: localcluster", done.stdout)

    def test_an_interrupted_run_leaves_nothing(self):
        """Also of servers that tools/bench has started for it."""
        running = subprocess.Popen(
            [sys.executable, "-m", "reproductions", "mot-microshards", "--scale", "0.02"],
            env=self.environment, cwd=self.scratch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.terminate)
        self.wait_for(lambda: running.poll() is not None or any(
            b"--dbpath" in words for words in servers_in(self.temporary)), "servers")
        self.assertIsNone(running.poll(), "it has ended before servers were started")
        running.send_signal(signal.SIGTERM)
        text, _ = running.communicate(timeout=support.LIMIT)
        self.assertEqual(running.returncode, 130, text)
        self.assert_nothing_left()

    def test_unknown_experiments_are_refused(self):
        done = self.reproduce("petabytes", code=2)
        self.assertIn("no such experiment: petabytes", done.stderr)
