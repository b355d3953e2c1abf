# SPDX-License-Identifier: Apache-2.0
"""tools/bench, the source of every figure in the docs: its statistics are right, its reports name
what was measured and the machine, and an interrupted run keeps its results. Speed is not tested.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import support

sys.path.insert(0, str(support.TREE / "tools"))
from benchmarks import figures, machine, process, report

BENCH = support.TREE / "tools" / "bench"
RELAY = support.TREE / "tools" / "benchmarks" / "relay.py"
FACTS = {"date": "2020-02-02", "cores": 2, "processor": "P", "memoryBytes": 1 << 30, "kernel": "K",
         "build": "Release", "loadAtStart": 0.0, "runs": 3, "scale": 1.0}


def line_of(values, target=None):
    line = figures.Line("a line", target)
    for value in values:
        line.add(value)
    return line


class Figures(unittest.TestCase):
    """The statistics of a row, and the table of rows."""

    def test_median_and_range_are_over_all_rounds(self):
        found = line_of([5.0, 1.0, 3.0, 2.0]).as_json()
        self.assertEqual((found["median"], found["minimum"], found["maximum"]), (2.5, 1.0, 5.0))
        self.assertEqual(found["values"], [5.0, 1.0, 3.0, 2.0])

    def test_the_ratio_is_computed_per_round(self):
        """A round in which the machine was slow halves both sides, and does not change their ratio;
        the ratio of the medians would be 100/50."""
        result = figures.Result("row", "")
        pair = result.compare("left", "right", "ratio")
        for left, right in ((100, 100), (50, 50), (200, 40)):
            pair.add(left, right)
        self.assertEqual(pair.ratio.values, [1.0, 1.0, 5.0])
        self.assertEqual(pair.ratio.median, 1.0)
        self.assertEqual([line.title for line in result.lines], ["left", "right", "ratio"])

    def test_verdicts_name_the_distance_from_the_target(self):
        cases = [
            ([0.9, 0.9, 0.9], figures.at_least(1.0), False, "10 % short"),
            ([0.96, 0.98], figures.at_least(1.0), False, "3.0 % short"),
            ([0.5, 0.5, 9.0], figures.at_most(0.25), False, "100 % over"),
            ([1.0, 1.2, 1.1], figures.at_least(1.0), True, "met"),
            ([0.9, 1.2, 1.1], figures.at_least(1.0), True, "met in the median"),
            ([0.2, 0.2, 0.3], figures.at_most(0.25), True, "met in the median"),
            ([1.0], None, None, ""),
            ([], figures.at_least(1.0), None, ""),
        ]
        for values, target, met, verdict in cases:
            with self.subTest(values=values, target=target):
                line = line_of(values, target)
                self.assertIs(line.met(), met)
                self.assertEqual(line.verdict(), verdict)

    def test_the_table_fits_and_lists_failed_rows(self):
        """A row that failed or was skipped is in the table, with the reason."""
        good = figures.Result("good", "a row")
        good.line("g" * 43, figures.at_least(0.95)).add(1234567.8)
        good.state = "measured"
        bad = figures.Result("bad", "another row")
        bad.line("nothing measured")
        bad.note("word " * 60)
        bad.state, bad.why = "failed", "the reason " * 20
        text = report.table(FACTS, [good, bad])
        self.assertLessEqual(max(map(len, text.splitlines())), report.WIDTH)
        self.assertIn("1,234,568", text)
        self.assertIn("failed: the reason", text)
        self.assertIn("1 targets met, 0 not met, 1 rows failed", text)
        self.assertNotIn("WARNING", text)

    def test_the_speed_of_memory_and_disk_is_part_of_the_conditions(self):
        facts = {**FACTS, "copyBytesPerSecond": machine.copy_rate(), "syncSeconds": machine.sync_seconds()}
        self.assertGreater(facts["copyBytesPerSecond"], 1e6)
        self.assertGreater(facts["syncSeconds"], 0)
        text = " ".join(report.markdown(facts, []).split())
        self.assertIn(f"memory copied at {facts['copyBytesPerSecond'] / 1e9:.1f} GB/s, a disk write "
                      "synced in ", text)

    def test_figures_of_a_busy_machine_carry_a_warning(self):
        busy = {**FACTS, "loadAtStart": 2.0}
        for make in (report.table, report.markdown):
            self.assertIn("busy", make(busy, []))
        self.assertEqual(len(report.as_json(busy, [])["warnings"]), 1)


class Resources(unittest.TestCase):
    """CPU time and memory come from the operating system."""

    def test_cpu_and_memory_of_a_program(self):
        burn = "x = bytearray(200 << 20)\nimport time\nwhile time.process_time() < 0.3: pass"
        done = process.run([sys.executable, "-c", burn])
        self.assertGreaterEqual(done.cpu, 0.3)
        self.assertGreaterEqual(done.peak, 200 << 20)
        self.assertLess(process.run([sys.executable, "-c", ""]).peak, 200 << 20)

    def test_cpu_of_child_processes_is_included(self):
        """The peer program in Python uses child processes."""
        burn = "import time\nwhile time.process_time() < 0.3: pass"
        words = [sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"]
        self.assertGreaterEqual(process.run(words).cpu, 0.3)

    def test_a_program_that_fails_raises_an_error(self):
        with self.assertRaisesRegex(process.Failure, "exit status 3: because"):
            process.run([sys.executable, "-c", "import sys; print('because', file=sys.stderr); sys.exit(3)"])


class Relay(support.Case):
    """The relay delays data and must not change it: a lost or reordered byte would make a correct load
    fail."""

    def test_data_arrives_complete_in_order_and_delayed(self):
        self.assertGreaterEqual(self.echo_seconds(5_000_000, "20"), 0.04)

    def test_the_rate_is_limited(self):
        """400 KB at 200 KB/s in each direction: not before two seconds, whatever else the machine does."""
        self.assertGreaterEqual(self.echo_seconds(400_000, "0", "200000"), 1.9)

    def echo_seconds(self, size, *words):
        """Seconds until `size` bytes through the relay have come back; checks them."""
        server = socket.create_server((support.HOST, 0))
        self.addCleanup(server.close)

        def echo():
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    connection.sendall(data)

        threading.Thread(target=echo, daemon=True).start()
        relay = subprocess.Popen([sys.executable, RELAY, "%s:%d" % server.getsockname(), *words],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(relay.stdout.close)
        self.addCleanup(relay.wait)
        self.addCleanup(relay.stdin.close)
        sent = os.urandom(size)
        start = time.monotonic()
        with socket.create_connection((support.HOST, int(relay.stdout.readline()))) as client:
            threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
            client.settimeout(support.LIMIT)
            received = bytearray()
            while len(received) < len(sent):
                data = client.recv(1 << 20)
                self.assertTrue(data, "the relay closed the connection")
                received += data
        self.assertEqual(bytes(received), sent)
        return time.monotonic() - start


class Bench(support.Case):
    def setUp(self):
        super().setUp()
        for name in ("shardload", "shardload-datagen", "shardload-yardstick", "shardload-router"):
            support.program(name)
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir()
        self.environment = support.clean_environment(
            SHARDLOAD_BUILD=os.environ["SHARDLOAD_BUILD"], TMPDIR=str(self.temporary))

    def bench(self, *words, code=0):
        done = subprocess.run([sys.executable, BENCH, *map(str, words)], env=self.environment,
                              cwd=self.scratch, capture_output=True, text=True,
                              timeout=support.LIMIT, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [], "temporary data was not deleted")
        return done

    def test_results_are_in_the_table_the_json_and_the_markdown(self):
        file, page = self.scratch / "b.json", self.scratch / "b.md"
        done = self.bench("--scale", 0.1, "--runs", 3, "--rows", "mot-parse,isd-parse",
                          "--json", file, "--markdown", page)
        found = json.loads(file.read_text("utf-8"))
        self.assertEqual([row["row"] for row in found["rows"]], ["mot-parse", "isd-parse"])
        for row in found["rows"]:
            self.assertEqual(row["state"], "measured")
            for line in row["lines"]:
                self.assertEqual(len(line["values"]), 3, line)
                self.assertGreater(line["minimum"], 0, line)
                self.assertLessEqual(line["minimum"], line["median"], line)
                self.assertLessEqual(line["median"], line["maximum"], line)
                self.assertIn(line["title"], done.stdout)
                self.assertIn(line["title"], page.read_text("utf-8"))
        self.assertEqual(found["rows"][0]["lines"][0]["target"], ">= 1")
        for key in ("cores", "processor", "memoryBytes", "kernel", "build", "date", "driver"):
            self.assertTrue(found["machine"][key], key)
        self.assertIn("do not quote", "".join(found["warnings"]), "a small run gives no figures")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), report.WIDTH)

    def test_every_row_is_documented_and_an_unknown_one_is_refused(self):
        names = [line.split()[0] for line in self.bench("--list").stdout.splitlines()]
        docs = (support.TREE / "docs/internals/performance.md").read_text("utf-8")
        self.assertEqual([name for name in names if f"`{name}`" not in docs], [],
                         "rows that docs/internals/performance.md does not explain")
        done = self.bench("mot-parse", "no-such-row", code=2)
        self.assertIn("no such row: no-such-row", done.stderr)

    def test_peer_programs_that_are_not_installed_are_named(self):
        """A comparison that could not be measured is reported."""
        self.environment["PATH"] = "/nowhere"
        done = self.bench("--quick", "mongoimport", "mongorestore")
        self.assertIn("mongoimport is not installed", done.stdout)
        self.assertIn("2 rows skipped", done.stdout)

    def test_other_rows_run_when_one_fails(self):
        """No server can be started."""
        self.environment["SHARDLOAD_MONGOD"] = "/bin/false"
        done = self.bench("--quick", "load-mongod", "many-threads", code=1)
        self.assertIn("failed: localcluster", done.stdout)
        self.assertIn("1 rows failed", done.stdout)
        self.assertRegex(done.stdout, r"1 thread, GB/s of text +[0-9]")

    def test_an_interrupted_run_prints_its_results(self):
        process_ = subprocess.Popen(
            [sys.executable, BENCH, "--scale", "0.002", "--runs", "100000", "many-threads"],
            env=self.environment, cwd=self.scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(process_.stderr.close)
        self.addCleanup(process_.stdout.close)
        for line in process_.stderr:
            if "round 3 of" in line:
                process_.send_signal(signal.SIGINT)
                break
        out, err = process_.communicate(timeout=support.LIMIT)
        self.assertEqual(process_.returncode, 130, out + err)
        self.assertRegex(out, r"1 thread, GB/s of text +[0-9]")
        self.assertIn("1 rows interrupted", out)
        self.assertEqual(list(self.temporary.iterdir()), [], "temporary data was not deleted")
