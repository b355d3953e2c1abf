# SPDX-License-Identifier: Apache-2.0
"""Every parser of untrusted bytes under the sanitizers, with thousands of generated inputs and a few
long ones. The inputs are the same in each run; `tools/fuzz` makes longer runs."""
import os
import subprocess
import sys
import unittest

import support

sys.path.insert(0, str(support.TREE / "tests/fuzz"))
import seeds

RUNS = 4000
TARGETS = sorted(path.stem for path in (support.TREE / "tests/fuzz").glob("fuzz_*.c"))


def clang():
    """The clang with libFuzzer that tools/fuzz uses, or nothing."""
    done = subprocess.run(["bash", "-c", '. "$0"; clang_of', support.TREE / "tools/setup.sh"],
                          capture_output=True, check=False)
    return done.stdout.strip()


class Fuzzers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.environ.get("SHARDLOAD_BUILD"):
            raise unittest.SkipTest("SHARDLOAD_BUILD is not set")
        if not clang():
            raise unittest.SkipTest("no clang with libFuzzer (on Debian: clang-14)")

        cls.done = subprocess.run([support.TREE / "tools/fuzz", "--runs", str(RUNS)],
                                  capture_output=True, text=True, errors="backslashreplace",
                                  check=False)

    def fuzz(self, target):
        failure = self.done.stdout.find(f"not ok {target}")
        self.assertEqual(failure, -1, self.done.stdout[failure:failure + 5000])
        self.assertRegex(self.done.stdout, rf"(?m)^ok {target}: \d+ runs", self.done.stderr)

    def test_every_target_has_seeds(self):
        self.assertEqual(sorted(seeds.SEEDS), TARGETS)
        self.assertLessEqual(set(seeds.long_seeds()), set(TARGETS))

    def test_long_inputs_are_run(self):
        for target in seeds.long_seeds():
            self.assertRegex(self.done.stdout, rf"(?m)^ok {target}: .*, long: [1-9]\d* runs")


def test_of(target):
    def test(self):
        self.fuzz(target)
    return test


for _target in TARGETS:
    setattr(Fuzzers, f"test_{_target}", test_of(_target))
