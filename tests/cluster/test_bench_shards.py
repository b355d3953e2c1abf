# SPDX-License-Identifier: Apache-2.0
"""`tools/bench shards` with little data: its figures are consistent, engine options reach the servers,
and it leaves no files and no servers. Speeds are never tested.
"""
import json
import signal
import subprocess
import sys
import unittest

import support
from test_bench_rows import ToolCase

sys.path.insert(0, str(support.TREE / "tools"))
from benchmarks import machine, shards, shards_options, shards_report

BENCH = support.TREE / "tools" / "bench"


class Processors(unittest.TestCase):
    """The shares of processor time, from the kernel's counters."""

    def watch(self, *samples):
        watch = machine.CpuWatch()
        watch.samples = list(samples)
        return watch

    def test_the_shares_of_a_part_of_the_recording(self):
        """The recording has a second of user time, a second of waiting and an idle second."""
        watch = self.watch((10.0, [0, 0, 0, 0, 0]), (11.0, [100, 0, 0, 0, 0]),
                           (12.0, [100, 0, 100, 0, 0]), (13.0, [100, 0, 100, 100, 0]))
        self.assertEqual(watch.shares(10.0, 11.0)["user"], 1.0)
        self.assertEqual(watch.shares(11.0, 12.0)["wait"], 1.0)
        self.assertEqual(watch.shares(10.5, 11.5), {"user": 0.5, "system": 0.0, "wait": 0.5, "idle": 0.0})
        self.assertAlmostEqual(sum(watch.shares().values()), 1.0)
        busy, total = watch.busy()
        self.assertAlmostEqual(busy / total, 1 / 3)

    def test_stolen_time_is_reported_if_there_is_any(self):
        watch = self.watch((1.0, [0, 0, 0, 0, 0]), (2.0, [50, 0, 0, 0, 150]))
        self.assertEqual(watch.shares()["steal"], 0.75)

    def test_the_counters_of_this_machine_are_all_counted(self):
        states = machine.cpu_states()
        ticks = list(map(int, machine.first_match("/proc/stat", r"^cpu (.*)$").split()[:8]))
        self.assertLess(abs(sum(states) - sum(ticks)), 0.01 * sum(ticks) + 100)
        self.assertLess(abs(states[machine.STATES.index("steal")] - ticks[7]), 100)

    def test_a_loop_counts_as_user_time(self):
        with machine.CpuWatch() as watch:
            sum(range(3_000_000))
        shares = watch.shares()
        self.assertGreater(shares["user"], 0)
        self.assertAlmostEqual(sum(shares.values()), 1.0)


class Options(unittest.TestCase):
    def test_the_list_of_shards_grows_with_the_cores(self):
        self.assertEqual(shards_options.default_shards(1), [1, 2, 4, 8])
        self.assertEqual(shards_options.default_shards(2), [1, 2, 4, 8])
        self.assertEqual(shards_options.default_shards(8), [1, 2, 4, 8, 16])
        self.assertEqual(shards_options.default_shards(64), [1, 2, 4, 8, 16, 32])

    def test_every_combination_is_measured_with_the_same_cache_in_all(self):
        options = shards_options.read_options(
            ["--shards", "4,1,2,2", "--engine", "zstd", "--engine", "mine=--a 'b c'", "--cache",
             "1GB,2048MB"])
        self.assertEqual(len(options.cases), 3 * 2 * 2)
        self.assertEqual({case.shard_cache * case.shards for case in options.cases}, {1 << 30, 2 << 30})
        self.assertEqual([case.shards for case in options.cases][:3], [1, 2, 4])
        self.assertEqual(options.cases[-1].engine.words, ["--a", "b c"])

    def test_answers_that_differ_in_rounding_alone_are_the_same(self):
        self.assertEqual(shards.rounded([{"_id": "A", "mean": 0.1 + 0.2}]), shards.rounded([{"_id": "A", "mean": 0.3}]))
        self.assertNotEqual(shards.rounded([{"n": 1}]), shards.rounded([{"n": 2}]))

    def test_shares_of_several_rounds_still_sum_up_to_1(self):
        mean = shards_report.mean_shares([{"user": 0.5, "system": 0.5, "wait": 0, "idle": 0},
                                          {"user": 0.1, "system": 0.2, "wait": 0.3, "idle": 0.3,
                                           "steal": 0.1}])
        self.assertAlmostEqual(sum(mean.values()), 1.0)
        self.assertAlmostEqual(mean["steal"], 0.05)


class Shards(ToolCase):
    def start(self, *words):
        process = subprocess.Popen(
            [sys.executable, BENCH, "shards", *map(str, words)], env=self.environment,
            cwd=self.scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def end(self, process, code):
        out, err = process.communicate(timeout=240)
        self.assertEqual(process.returncode, code, out + err)
        self.assert_nothing_left()
        return out, err

    def shards(self, *words, code=0):
        """Returns (standard output, standard error, the JSON report)."""
        file = self.scratch / "shards.json"
        out, err = self.end(self.start("--json", file, *words), code)
        return out, err, json.loads(file.read_text("utf-8"))

    def test_the_figures_of_one_and_two_shards_agree_with_each_other(self):
        page = self.scratch / "shards.md"
        out, _, found = self.shards("--shards", "2,1", "--records", 5000, "--runs", 2, "--repeat",
                                    2, "--query", "green-ness", "--query", "makes", "--markdown",
                                    page)
        self.assertEqual((found["program"], found["command"], found["exitCode"]), ("bench", "shards", 0))
        self.assertEqual(found["documents"], 5000)
        self.assertEqual([row["shards"] for row in found["rows"]], [1, 2])
        for row in found["rows"]:
            with self.subTest(shards=row["shards"]):
                rounds = row["rounds"]
                self.assertEqual({len(values) for values in rounds.values()}, {2})
                self.assertEqual((row["low"], row["high"]), (min(rounds["rate"]), max(rounds["rate"])))
                self.assertLessEqual(row["low"], row["rate"])
                self.assertLessEqual(row["rate"], row["high"])
                for rate, seconds, whole in zip(rounds["rate"], rounds["seconds"], rounds["whole"]):
                    self.assertAlmostEqual(rate * seconds, 5000, delta=1)
                    self.assertLess(seconds, whole)
                for cpu in (row["cpu"], row["queryCpu"]):
                    self.assertAlmostEqual(sum(cpu.values()), 1.0, places=9)
                    self.assertLessEqual({"user", "system", "wait", "idle"}, set(cpu))
                self.assertEqual([query["name"] for query in row["queries"]], ["green-ness", "makes"])
                for query in row["queries"]:
                    self.assertAlmostEqual(query["documentsPerMillisecond"] * query["milliseconds"], 5000, places=3)
                    self.assertEqual(len(query["rounds"]), 2)
                self.assertEqual(row["cacheBytes"], row["shards"] * row["shardCacheBytes"])
                self.assertGreater(row["fileBytes"], row["journalBytes"] + row["storageBytes"])
                self.assertGreater(row["storageBytes"], row["indexBytes"])
                self.assertGreater(row["memoryBytes"], 0)
                self.assertEqual(row["ratioTo"], 1)
                self.assertLess(max(rounds["others"]), 1.0)
                self.assertGreaterEqual(min(rounds["others"]), 0.0)
        one, two = found["rows"]
        self.assertEqual(one["rounds"]["ratio"], [1.0, 1.0])
        self.assertEqual(two["rounds"]["ratio"], [b / a for a, b in zip(one["rounds"]["rate"], two["rounds"]["rate"])])
        self.assertIn("green-ness, milliseconds\n  1 shard,", out)
        self.assertIn("do not quote", "".join(found["warnings"]), "a small run gives no figures")
        self.assertEqual(
            max(max(row["rounds"]["others"]) for row in found["rows"]) > machine.FOREIGN,
            "other programs used up to" in "".join(found["warnings"]))
        self.assertEqual(len([line for line in page.read_text("utf-8").splitlines()
                              if line.startswith(("| 1 |", "| 2 |"))]), 2 + 4)

    def test_engine_options_reach_the_servers(self):
        """Without compression the same documents take more space."""
        _, _, found = self.shards("--shards", 0, "--engine", "none", "--engine",
                                  "mine=--wiredTigerCollectionBlockCompressor zstd", "--records",
                                  20000, "--runs", 1, "--repeat", 1)
        plain, packed = found["rows"]
        self.assertEqual((plain["engineName"], packed["engineName"]), ("none", "mine"))
        self.assertIn("BlockCompressor zstd", packed["engine"])
        self.assertGreater(plain["storageBytes"], 1.5 * packed["storageBytes"])
        self.assertEqual(plain["shards"], 0)

    def test_all_wrong_options_are_reported_at_once(self):
        _, err = self.end(self.start("--shards", "1,x", "--cache", "1MB,much", "--engine", "foo",
                                     "--engine", "a=--x", "--engine", "a=--y", "--records", "0",
                                     "--query", "no", "--json", "/nowhere/x.json"), 2)
        for words in ("--shards: 'x'", "1 MiB are too little for 1 shard", "--cache: 'much'",
                      "--engine: 'foo'", "the name a is used twice", "--records: '0'",
                      "--query: 'no' is not one of green-ness", "/nowhere/x.json"):
            self.assertIn(words, err)

    def test_caches_beyond_the_memory_are_refused_before_anything_is_started(self):
        _, err, found = self.shards("--shards", "2,1", "--cache", "4000000GB", "--records", 1000, code=1)
        self.assertIn("2 shards may need", err)
        self.assertNotIn("round 1", err)
        self.assertEqual(found["rows"], [])

    def test_a_server_that_does_not_start_is_reported_with_its_own_message(self):
        _, err, found = self.shards("--shards", 0, "--records", 1000, "--engine", "odd=--no-such-option", code=1)
        self.assertIn("no-such-option", err)
        self.assertEqual((found["rows"], found["exitCode"]), ([], 1))
        self.assertIn("no-such-option", found["why"])

    def test_an_interrupted_run_stops_its_servers_and_reports_its_figures(self):
        file = self.scratch / "shards.json"
        process = self.start("--shards", "0", "--records", 1000, "--runs", 1000, "--json", file)
        for line in process.stderr:
            if "round 2 of" in line:
                process.send_signal(signal.SIGINT)
                break
        out, _ = self.end(process, 130)
        found = json.loads(file.read_text("utf-8"))
        self.assertEqual(found["exitCode"], 130)
        self.assertIn("interrupted", found["why"])
        self.assertGreaterEqual(len(found["rows"][0]["rounds"]["rate"]), 1)
        self.assertIn("mongod, default,", out)
