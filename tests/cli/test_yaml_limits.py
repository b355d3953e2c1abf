# SPDX-License-Identifier: Apache-2.0
"""YAML beyond the limits is refused by all its readers: schemas, name maps, suites, configurations and
models. Nesting, anchors and values are counted before libyaml builds the document, which takes time
quadratic in the first two; aliases are followed before a reader copies what they refer to."""

import support

MANY = 100000
DEPTH = 64
KIB = "x" * 1024
LIST = "[" + "x, " * 9 + "x]"


def laughs(levels):
    """Each list has ten aliases of the list above it: ten times as many values."""
    lines = [f"- &a0 {LIST}\n"]
    for i in range(1, levels):
        lines.append(f"- &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]\n")
    return "a:\n" + "".join(lines)


# Refused texts, and the line in the message.
REFUSED = {
    "brackets": ("a: " + "[" * MANY, 1),
    "braces": ("a: " + "{a: " * MANY, 1),
    "brackets on lines": ("a: " + "[\n" * MANY, DEPTH),
    "indentation": ("".join(" " * i + "a:\n" for i in range(1000)), DEPTH + 1),
    "dashes": ("\n" + "- " * 1000, 2),
    "one too many": ("\n\na: " + "[" * DEPTH + "]" * DEPTH, 3),
    "anchors": ("a:\n" + "".join(f"- &a{i} x\n" for i in range(20000)), 1002),
    "values": ("a: [" + "x, " * MANY + "x]", 1),
    "billion laughs": (laughs(10), 2),
    "aliases of a long text": (f"a:\n- &a {KIB}\n" + "- *a\n" * 1100, 2),
    "an alias within its value": ("a:\n- &a [*a]\n", 2),
    "an alias as key": ("a:\n- &a {x: *a}\n", 2),
    "aliases that nest": ("a:\n- &a0 []\n" + "".join(
        f"- &a{i} [*a{i - 1}]\n" for i in range(1, 100)), 2),
}
# Texts within the limits, which each reader checks by its own rules.
WITHIN = {
    "nesting": "a: " + "[" * (DEPTH - 1) + "]" * (DEPTH - 1),
    "brackets in a text": "a: |\n  " + "[" * MANY + "\n",
    "laughs": laughs(4),
    "aliases": f"a:\n- &a {KIB}\n" + "- *a\n" * 1000,
    "long texts": f"a: [{', '.join([KIB] * 1000)}]",
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

    def test_text_beyond_the_limits_is_refused_with_file_and_line(self):
        for name, (text, line) in REFUSED.items():
            path = self.file("deep.yaml", text)
            for program, words, code in self.readers(path):
                with self.subTest(f"{name}: {program} {words[0]} {words[-2]}"):
                    outcome = self.run_program(program, *words)
                    self.assertEqual(outcome.code, code, outcome.text)
                    self.assertRegex(outcome.err, rf"deep\.yaml:{line}: (more than (64|1,000|100,000) |"
                                                  "its aliases stand for too much)")

    def test_text_within_the_limits_is_read(self):
        for name, text in WITHIN.items():
            path = self.file("deep.yaml", text)
            for program, words, _ in self.readers(path):
                with self.subTest(f"{name}: {program} {words[0]} {words[-2]}"):
                    self.assertNotRegex(self.run_program(program, *words).err, "more than|stand for too much")

    def test_lists_of_words_are_limited(self):
        """Each value may be compared with each word."""
        for count, code in ((1000, support.EXIT_OK), (1001, support.EXIT_USAGE)):
            words = ", ".join(f"w{number}" for number in range(count))
            path = self.file("words.yaml", f"name: t\nmissing: [{words}]\ncolumns:\n"
                             "- {name: a, type: int}\n- {name: b, type: int}\n")
            outcome = self.shardload("load", "--sink", "null", "--format", "delimited", "--schema", path, self.good,
                                     code=code)
            self.assertEqual("words.yaml:2:10: expected a list of at most 1000 words" in outcome.err, code != 0)

    def test_a_file_has_at_most_1_mib(self):
        path = self.file("large.yaml", "# " + "x" * (1 << 20) + "\nquiet: true\n")
        for program, words, code in self.readers(path):
            if program == "shardload":      # a suite may be larger
                self.assertIn("1 MiB", self.shardload(*words, code=code).err)
