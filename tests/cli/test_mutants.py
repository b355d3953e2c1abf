# SPDX-License-Identifier: Apache-2.0
"""The lists of mistakes for tools/mutants match the current code."""
import pathlib
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


class Mutants(unittest.TestCase):
    def test_every_mistake_can_still_be_planted(self):
        """The old text occurs exactly once in its file, and the tests exist."""
        done = subprocess.run([sys.executable, TOP / "tools" / "mutants", "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_there_are_at_least_sixty(self):
        done = subprocess.run([sys.executable, TOP / "tools" / "mutants", "--list"],
                              capture_output=True, text=True, check=True)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 60)
