# SPDX-License-Identifier: Apache-2.0
"""tools/mutants draws mistakes that change code, and nothing else."""
import pathlib
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


def listed(*words):
    done = subprocess.run([sys.executable, TOP / "tools" / "mutants", "--list", *words],
                          capture_output=True, text=True, check=True)
    return re.findall(r"(\S+):(\d+)\n- (.*)\n\+ (.*)", done.stdout)


class Mutants(unittest.TestCase):
    def test_each_mistake_changes_one_line_of_code(self):
        drawn = listed("--count", "300", "--seed", "1")
        self.assertEqual(len({(file, line) for file, line, _, _ in drawn}), 300)
        for file, line, old, new in drawn:
            self.assertEqual((TOP / file).read_text("utf-8").split("\n")[int(line) - 1].strip(), old)
            self.assertNotEqual(old, new)
            for kept in re.findall(r"/\*.*?\*/|'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"", old):
                self.assertTrue(new == ";" or kept in new or "(" in kept, (file, line, old, new))

    def test_a_seed_draws_the_same_mistakes_again(self):
        self.assertEqual(listed("--count", "20", "--seed", "5"), listed("--count", "20", "--seed", "5"))
        self.assertNotEqual(listed("--count", "20", "--seed", "5"), listed("--count", "20", "--seed", "6"))

    def test_a_folder_limits_the_draw(self):
        self.assertEqual({pathlib.Path(file).parent.name for file, *_ in
                          listed("--count", "50", "--under", "src/ledger")}, {"ledger"})
