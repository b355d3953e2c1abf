# SPDX-License-Identifier: Apache-2.0
"""YAML that nests too deeply, or has too many anchors, is refused before libyaml, whose time grows
with the square of both, gets to build it: schemas, name maps, suites, configurations and models."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402

MANY = 100000
DEPTH = 64

# What is refused, with the line that the message names.
TOO_MUCH = {
    "brackets": ("a: " + "[" * MANY, 1),
    "braces": ("a: " + "{a: " * MANY, 1),
    "brackets on lines": ("a: " + "[\n" * MANY, DEPTH),
    "indentation": ("".join(" " * i + "a:\n" for i in range(1000)), DEPTH + 1),
    "dashes": ("\n" + "- " * 1000, 2),
    "one too many": ("\n\na: " + "[" * DEPTH + "]" * DEPTH, 3),
    "anchors": ("a:\n" + "".join(f"- &a{i} x\n" for i in range(20000)), 1002),
}
# What is read as far as the reader's own rules.
ENOUGH = {
    "nesting": "a: " + "[" * (DEPTH - 1) + "]" * (DEPTH - 1),
    "brackets in a text": "a: |\n  " + "[" * MANY + "\n",
    "brackets in a comment": "# " + "[" * MANY + "\na: 1\n",
}


class YamlLimits(support.Case):
    def setUp(self):
        super().setUp()
        self.good = self.file("good.csv", "a,b\n1,2\n")

    def readers(self, path):
        """Every reader of YAML, as (program, words, exit code for a bad file)."""
        load = ["load", "--sink", "null", "--progress", "none"]
        return [
            ("shardload", [*load, "--format", "delimited", "--schema", path, self.good],
             support.EXIT_USAGE),
            ("shardload", [*load, "--config", path, self.good], support.EXIT_USAGE),
            ("shardload", [*load, "--format", "isd", "--schema", path, self.good],
             support.EXIT_USAGE),
            ("shardload", ["plan", "--model", path], support.EXIT_USAGE),
            ("shardquery", ["run", "--uri", "mongodb://127.0.0.1:1/", "-d", "x", "-c", "y", path],
             support.EXIT_SOURCE),
        ]

    def test_too_much_is_refused_with_file_and_line(self):
        for name, (text, line) in TOO_MUCH.items():
            path = self.file("deep.yaml", text)
            for program, words, code in self.readers(path):
                with self.subTest(f"{name}: {program} {words[0]} {words[-2]}"):
                    outcome = self.run_program(program, *words)
                    self.assertEqual(outcome.code, code, outcome.text)
                    self.assertRegex(outcome.err, rf"deep\.yaml:{line}: more than (64|1,000) ")

    def test_what_is_within_the_limits_is_read(self):
        for name, text in ENOUGH.items():
            path = self.file("deep.yaml", text)
            for program, words, _ in self.readers(path):
                with self.subTest(f"{name}: {program} {words[0]} {words[-2]}"):
                    self.assertNotIn("more than", self.run_program(program, *words).err)

    def test_a_configuration_of_any_size_is_not_read(self):
        path = self.file("large.yaml", "# " + "x" * (1 << 20) + "\nquiet: true\n")
        outcome = self.shardload("load", "--sink", "null", "--config", path, self.good,
                                 code=support.EXIT_USAGE)
        self.assertIn("1 MiB", outcome.err)


if __name__ == "__main__":
    import tap
    tap.main()
