# SPDX-License-Identifier: Apache-2.0
"""The rows of tools/bench that start servers, with little data: each row compares what its title says.
Speeds are never tested.
"""
import json
import os
import pathlib
import subprocess
import sys

import support

BENCH = support.TREE / "tools" / "bench"


class ToolCase(support.Case):
    """Runs a tool that starts servers, with a folder of its own for temporary files."""

    def setUp(self):
        super().setUp()
        support.program("shardload-yardstick")
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir()
        self.environment = support.clean_environment(
            SHARDLOAD_BUILD=os.environ["SHARDLOAD_BUILD"], TMPDIR=str(self.temporary))

    def assert_nothing_left(self):
        self.assertEqual(list(self.temporary.iterdir()), [], "files were left")
        self.assertEqual(servers_in(self.temporary), [], "servers were left")


class Rows(ToolCase):
    """Rows that start servers."""

    def measure(self, *rows):
        file = self.scratch / "b.json"
        done = subprocess.run(
            [sys.executable, BENCH, "--scale", "0.002", "--runs", "2", "--json", file, *rows],
            env=self.environment, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_nothing_left()
        report = json.loads(file.read_text("utf-8"))
        self.assertTrue(report["machine"]["server"])
        return {row["row"]: row for row in report["rows"]}

    def assert_ratio(self, ratio, ours, others):
        """A ratio for each of the two runs."""
        self.assertEqual(ratio, [a / b for a, b in zip(ours, others)])
        self.assertEqual(len(ratio), 2)

    def test_loader_and_yardstick_take_turns(self):
        rows = self.measure("load-mongod", "load-cluster")
        for name in ("load-mongod", "load-cluster"):
            lines = {line["title"]: line for line in rows[name]["lines"]}
            ours, plain = lines["loader, docs/s"], lines["yardstick, docs/s"]
            ratio = lines["loader against yardstick"]
            self.assert_ratio(ratio["values"], ours["values"], plain["values"])
            self.assertIn(ratio["met"], (True, False))

    def test_both_routes_take_turns(self):
        lines = {line["title"]: line for line in self.measure("direct")["direct"]["lines"]}
        for key in ('{"_id": 1}', '{"v": "hashed"}'):
            straight, routed, ratio = (lines[f"{key}, {title}"]["values"] for title in (
                "straight to the shards, docs/s", "through the router, docs/s",
                "straight against router"))
            self.assert_ratio(ratio, straight, routed)

    def test_several_loaders_are_compared_with_one_in_the_same_round(self):
        row = self.measure("many-loaders")["many-loaders"]
        lines = {line["title"]: line["values"] for line in row["lines"]}
        for name in ("4 loaders, --part", "2 loaders, --only-shards", "one loader, --route direct",
                     "2 loaders, --only-shards, direct"):
            for ratio, unit in (("time", "s"), ("time of loading", "s of loading"),
                                ("CPU time", "CPU s per million")):
                self.assert_ratio(lines[f"{name}: {ratio}"], lines[f"{name}, {unit}"],
                                  lines[f"one loader, {unit}"])

    def test_auto_is_compared_with_the_best_that_stays(self):
        row = self.measure("auto-mongod")["auto-mongod"]
        lines = {line["title"]: line for line in row["lines"]}
        ours, ratio = lines["auto, docs/s"], lines["auto against the best fixed setting"]
        fixed = [line for title, line in lines.items() if " x " in title]
        best = max(fixed, key=lambda line: line["median"])
        self.assert_ratio(ratio["values"], ours["values"], best["values"])
        self.assertTrue(any("auto begins with" in note for note in row["notes"]), row["notes"])

    def test_the_python_driver_loads_the_same_number_of_documents(self):
        """Otherwise the row would have a note, and its times could not be compared."""
        row = self.measure("python-driver")["python-driver"]
        self.assertEqual([note for note in row["notes"] if "has inserted" in note], [])
        self.assertEqual(row["state"], "measured")

    def test_the_setting_that_a_search_finds_is_rated_by_the_grid(self):
        row = self.measure("tune")["tune"]
        lines = {line["title"].split(",")[0]: line["values"] for line in row["lines"]}
        share = lines["recommended settings with at least 0.95 of the rate of the grid's best"]
        self.assertEqual(len(share), 1)
        self.assertTrue(all(0 < value <= 1 for value in share + lines["trials of the search / trials of the grid"]))


def servers_in(folder):
    """The command lines of all other processes that contain the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words and entry.parent.name != str(os.getpid()):
            found.append(words)
    return found
