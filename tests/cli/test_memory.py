# SPDX-License-Identifier: Apache-2.0
"""Failed allocations: each ends a command with exit code 6 and a message, or changes nothing.

A preloaded library (failing_memory.c) lets the Nth allocation fail, or all from the Nth on. N is
drawn evenly from all allocations of an undisturbed run, more from its beginning, where the options
are read.
"""
import json
import os
import pathlib
import random
import time

import support

SAMPLES = int(os.environ.get("SHARDLOAD_MEMORY_SAMPLES", 120))  # per command and kind of failure
SECONDS = 3 if SAMPLES <= 120 else 3600  # per command; on a busy machine fewer runs are made
LEAST = 20
FOR_EVER = 10 ** 9
TIMES = {"date", "seconds", "loadSeconds", "startedAt", "endedAt", "started", "ended"}


def require_own_allocator():
    text = pathlib.Path(support.program("shardload")).read_bytes()
    if b"__asan_init" in text or b"__tsan_init" in text:
        raise support.unittest.SkipTest("a sanitizer has its own allocator")


class FailedAllocations(support.Case):
    def setUp(self):
        super().setUp()
        require_own_allocator()
        self.file("t.txt", support.mot_text(range(1, 400)))
        rows = "\n".join(f"{n},{n / 4},name {n}" for n in range(300))
        self.zipped("d.csv.gz", "number,quarter,text\n" + rows + "\n")

    def run_failing(self, words, at=None, length=1):
        """Runs shardload; the allocation `at` and the next ones fail. Returns (outcome, number of
        allocations)."""
        count = self.scratch / "count"
        count.unlink(missing_ok=True)
        more = {"FAIL_COUNT": str(count)}
        if at:
            more.update(FAIL_AT=str(at), FAIL_LENGTH=str(length))
        outcome = self.run_program("shardload", *words, limit=60,
                                   environment=support.preloaded("failing_memory", **more))
        return outcome, int(count.read_text("utf-8")) if count.exists() else 0

    def check(self, words, result):
        """`result(outcome)`: what the command is for, in a form that can be compared."""
        outcome, allocations = self.run_failing(words)
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        normal = result(outcome)
        self.assertGreater(allocations, 20)
        drawn = random.Random(14)
        some = min(SAMPLES, allocations)
        chosen = set(drawn.sample(range(1, allocations + 1), some // 2))
        chosen.update(drawn.sample(range(1, min(allocations, 4 * some) + 1), some - some // 2))
        runs = [(at, length) for at in sorted(chosen) for length in (1, FOR_EVER)]
        drawn.shuffle(runs)
        failed = done = 0
        end = time.monotonic() + SECONDS
        for at, length in runs:
            if time.monotonic() > end and done >= LEAST:
                break
            done += 1
            outcome, _ = self.run_failing(words, at, length)
            where = f"allocation {at} of {allocations}, {length} fail: {outcome.text[-1500:]}"
            if outcome.code == support.EXIT_OK:
                self.assertEqual(result(outcome), normal, where)
            else:
                failed += 1
                self.assertEqual(outcome.code, support.EXIT_RESOURCES, where)
                self.assertRegex(outcome.err, "memory|thread", where)
        self.assertGreater(failed, done // 2)  # the library did its work

    def without_times(self, value):
        if isinstance(value, dict):
            return {key: self.without_times(one) for key, one in value.items() if key not in TIMES}
        return [self.without_times(one) for one in value] if isinstance(value, list) else value

    def record(self, name):
        """The record, without times. It is removed for the next run."""
        path = self.scratch / name
        record = json.loads(path.read_text("utf-8"))
        path.unlink()
        record["options"].pop("uri")  # its text for records needs memory; otherwise it is "***"
        return self.without_times(record)

    def accounting(self, _):
        record = self.record("r.json")
        return record["accounting"], record["options"]

    def test_inspect(self):
        for source in ("t.txt", "d.csv.gz"):
            with self.subTest(source):
                self.check(["inspect", source], lambda outcome: outcome.out)

    def test_plan(self):
        self.check(["plan", "--shards", 2, "--index", '{"v": 1}', "--index", '{"d": 1}',
                    "--report", "p.json", "t.txt"],
                   lambda outcome: (outcome.out, self.record("p.json")))

    def test_report(self):
        self.shardload("load", "--sink", "null", "--report", "old.json", "--progress", "none",
                       "t.txt")
        for words in (["--ascii", "old.json"], ["--html", "-", "old.json"]):
            with self.subTest(words):
                self.check(["report", *words], lambda outcome: outcome.out)

    def test_load(self):
        for words in (["-j", 1, "t.txt"], ["-j", 2, "--batch-size", 100, "d.csv.gz"]):
            with self.subTest(words):
                self.check(["load", "--sink", "null", "--report", "r.json", "--progress", "none",
                            *words], self.accounting)

    def test_a_dump_has_all_documents(self):
        def result(outcome):
            self.accounting(outcome)
            return (self.scratch / "x.bson").read_bytes()
        self.check(["load", "--sink", "bson:x.bson", "--report", "r.json", "--progress", "none",
                    "--format", "ycsb", "--records", 3000, "-j", 1], result)
