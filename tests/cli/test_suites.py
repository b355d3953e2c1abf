# SPDX-License-Identifier: Apache-2.0
"""docs/suite.schema.json and the program accept the same suites: the built-in suites, the examples of
docs/suites.md, broken suites, and the keys of each mapping. The program accepts a suite when it tries
to connect (exit code 4, because no server listens at the port), and refuses it with exit code 3."""
import json
import re

import json_schema
import support

SCHEMA = json.loads((support.TREE / "docs/suite.schema.json").read_text("utf-8"))
PAGE = (support.TREE / "docs/suites.md").read_text("utf-8")


def suite(query, head="", tail=""):
    """A suite with one query."""
    return f"name: s\n{head}queries:\n  - {{name: q, {query}}}\n{tail}"


# Suites with one mistake each.
BROKEN = {
    "no queries": "name: s\nqueries: []\n",
    "no name": "queries:\n  - {name: q, pipeline: '[]'}\n",
    "an unknown key": suite("pipeline: '[]'", "query: 1\n"),
    "a pipeline of a find": suite("operation: find, pipeline: '[]'"),
    "no pipeline": "name: s\nqueries:\n  - {name: q}\n",
    "a filter that is an array": suite("operation: find, filter: '[]'"),
    "a filter in YAML": suite("operation: find, filter: {a: 1}"),
    "an unknown operation": suite("operation: delete"),
    "findOne with a limit": suite("operation: findOne, limit: 3"),
    "a negative skip": suite("operation: find, skip: -1"),
    "distinct without a key": suite("operation: distinct"),
    "mapReduce without reduce": suite("operation: mapReduce, map: m"),
    "an update without update": suite("operation: update"),
    "an insert without a document": suite("operation: insert"),
    "repeat 0": suite("pipeline: '[]'", "defaults: {repeat: 0}\n"),
    "agree 1": suite("pipeline: '[]'", "defaults: {agree: 1}\n"),
    "an empty mix": suite("pipeline: '[]'", tail="mix: {}\n"),
    "a weight of 0": suite("pipeline: '[]'", tail="mix: {q: 0}\n"),
    "a statistic without a field": suite("operation: find, statistic: {threads: 2}"),
    "65 threads": suite("operation: find, sort: '{\"_id\": 1}', statistic: {field: f, threads: 65}"),
    "threads without an order, whose parts overlap": suite("operation: find, statistic: {field: f, threads: 2}"),
    "threads with a skip, which was ignored": suite(
        "operation: find, sort: '{\"_id\": 1}', skip: 5, statistic: {field: f, threads: 2}"),
    "a parameter with a range and a sequence": suite(
        "operation: count, parameters: {p: {range: [1, 2], sequence: {}}}"),
    "a parameter without values": suite("operation: count, parameters: {p: {}}"),
    "a range of three": suite("operation: count, parameters: {p: {range: [1, 2, 3]}}"),
    "a skew of 0": suite("operation: count, parameters: {p: {zipf: {count: 9, skew: 0}}}"),
    "a parameter limit": suite("operation: count, parameters: {limit: {range: [1, 2]}}"),
    "an unknown option": suite("operation: count, options: {slow: true}"),
    "an unknown mode": suite("operation: count, options: {readPreference: any}"),
}

# For each mapping a suite with the key @ in it.
MAPPINGS = {
    "": "@: 1\n",
    "defaults": "defaults: {@: 1}\n",
    "query": "queries:\n  - {@: 1}\n",
    "statistic": "queries:\n  - {statistic: {@: 1}}\n",
    "parameter": "queries:\n  - {parameters: {p: {@: 1}}}\n",
    "zipf": "queries:\n  - {parameters: {p: {zipf: {@: 1}}}}\n",
    "sequence": "queries:\n  - {parameters: {p: {sequence: {@: 1}}}}\n",
    "sample": "queries:\n  - {parameters: {p: {sample: {@: 1}}}}\n",
    "options": "queries:\n  - {options: {@: 1}}\n",
}


def examples():
    """Yields each YAML block of docs/suites.md: (line, text)."""
    for block in re.finditer(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S):
        yield PAGE.count("\n", 0, block.start()) + 2, block.group(1)


class Suites(support.Case):
    def run_suite(self, text):
        port = support.free_port()
        outcome = self.run_program("shardquery", "run", "--uri", f"mongodb://{support.HOST}:{port}/"
                                   "?serverSelectionTimeoutMS=100", "-d", "d", "-c", "c",
                                   self.file("suite.yaml", text))
        self.assertIn(outcome.code, (support.EXIT_SOURCE, support.EXIT_CLUSTER), outcome.text)
        return outcome

    def assert_accepted(self, text, accepted=True):
        """By the schema and by the program."""
        self.assertEqual(json_schema.accepts(SCHEMA, text), accepted, "suite.schema.json")
        outcome = self.run_suite(text)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER if accepted else support.EXIT_SOURCE, outcome.text)

    def test_built_in_suites(self):
        suites = sorted((support.TREE / "queries").glob("*.yaml"))
        self.assertGreaterEqual(len(suites), 5)
        for path in suites:
            with self.subTest(path.name):
                self.assert_accepted(path.read_text("utf-8"))

    def test_examples_of_the_documentation(self):
        found = list(examples())
        self.assertGreaterEqual(len(found), 6)
        for line, text in found:
            with self.subTest(f"docs/suites.md, line {line}"):
                self.assert_accepted(text)

    def test_broken_suites(self):
        for name, text in BROKEN.items():
            with self.subTest(name):
                self.assert_accepted(text, False)

    def test_keys_of_each_mapping(self):
        for name, text in MAPPINGS.items():
            with self.subTest(name or "suite"):
                outcome = self.run_suite(text.replace("@", "no-such-key"))
                listed = re.search(r"expected one of the keys (.*), found \"no-such-key\"",
                                   outcome.text)
                self.assertTrue(listed, outcome.text)
                schema = SCHEMA["$defs"][name] if name else SCHEMA
                self.assertEqual(set(listed.group(1).split(", ")), set(schema["properties"]))
                for key in schema["properties"]:
                    self.assertIn(f"`{key}`", PAGE)
