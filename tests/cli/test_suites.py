# SPDX-License-Identifier: Apache-2.0
"""docs/suite.schema.json and the program accept the same suites: the built-in suites, the examples of
docs/suites.md, broken suites, and the keys of each mapping. The program accepts a suite when it tries
to connect (exit code 4, because no server listens at the port), and refuses it with exit code 3."""
import json
import re
import subprocess

import json_schema
import support

SCHEMA = json.loads((support.TREE / "docs/suite.schema.json").read_text("utf-8"))
VALID = json_schema.validator(SCHEMA)

# Suites with one mistake each.
BROKEN = {
    "no queries": "name: s\nqueries: []\n",
    "no name": "queries:\n  - {name: q, pipeline: '[]'}\n",
    "an unknown key": "name: s\nquery: 1\nqueries:\n  - {name: q, pipeline: '[]'}\n",
    "a pipeline of a find": "name: s\nqueries:\n  - {name: q, operation: find, pipeline: '[]'}\n",
    "no pipeline": "name: s\nqueries:\n  - {name: q}\n",
    "a filter that is an array": "name: s\nqueries:\n  - {name: q, operation: find, filter: '[]'}\n",
    "a filter in YAML": "name: s\nqueries:\n  - {name: q, operation: find, filter: {a: 1}}\n",
    "an unknown operation": "name: s\nqueries:\n  - {name: q, operation: delete}\n",
    "findOne with a limit": "name: s\nqueries:\n  - {name: q, operation: findOne, limit: 3}\n",
    "a negative skip": "name: s\nqueries:\n  - {name: q, operation: find, skip: -1}\n",
    "distinct without a key": "name: s\nqueries:\n  - {name: q, operation: distinct}\n",
    "mapReduce without reduce": "name: s\nqueries:\n  - {name: q, operation: mapReduce, map: m}\n",
    "an update without update": "name: s\nqueries:\n  - {name: q, operation: update}\n",
    "an insert without a document": "name: s\nqueries:\n  - {name: q, operation: insert}\n",
    "repeat 0": "name: s\ndefaults: {repeat: 0}\nqueries:\n  - {name: q, pipeline: '[]'}\n",
    "agree 1": "name: s\ndefaults: {agree: 1}\nqueries:\n  - {name: q, pipeline: '[]'}\n",
    "an empty mix": "name: s\nqueries:\n  - {name: q, pipeline: '[]'}\nmix: {}\n",
    "a weight of 0": "name: s\nqueries:\n  - {name: q, pipeline: '[]'}\nmix: {q: 0}\n",
    "a statistic without a field": "name: s\nqueries:\n"
                                   "  - {name: q, operation: find, statistic: {threads: 2}}\n",
    "65 threads": "name: s\nqueries:\n"
                  "  - {name: q, operation: find, statistic: {field: f, threads: 65}}\n",
    "a parameter with a range and a sequence": "name: s\nqueries:\n  - {name: q, operation: count, "
                        "parameters: {p: {range: [1, 2], sequence: {}}}}\n",
    "a parameter without values": "name: s\nqueries:\n  - {name: q, operation: count, parameters: {p: {}}}\n",
    "a range of three": "name: s\nqueries:\n"
                        "  - {name: q, operation: count, parameters: {p: {range: [1, 2, 3]}}}\n",
    "a skew of 0": "name: s\nqueries:\n  - {name: q, operation: count, "
                   "parameters: {p: {zipf: {count: 9, skew: 0}}}}\n",
    "a parameter limit": "name: s\nqueries:\n"
                         "  - {name: q, operation: count, parameters: {limit: {range: [1, 2]}}}\n",
    "an unknown option": "name: s\nqueries:\n  - {name: q, operation: count, options: {slow: true}}\n",
    "an unknown mode": "name: s\nqueries:\n"
                       "  - {name: q, operation: count, options: {readPreference: any}}\n",
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
    text = (support.TREE / "docs/suites.md").read_text("utf-8")
    for block in re.finditer(r"^```yaml\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, block.start()) + 2, block.group(1)


class Suites(support.Case):
    def schema_accepts(self, text):
        done = subprocess.run([support.program("tests/yaml_json")], input=text.encode("utf-8"),
                              capture_output=True, check=False, timeout=support.LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return VALID(json.loads(done.stdout))

    def run_suite(self, text):
        port = support.free_port()
        outcome = self.run_program("shardquery", "run", "--uri", f"mongodb://{support.HOST}:{port}/"
                                   "?serverSelectionTimeoutMS=100", "-d", "d", "-c", "c",
                                   self.file("suite.yaml", text))
        self.assertIn(outcome.code, (support.EXIT_SOURCE, support.EXIT_CLUSTER), outcome.text)
        return outcome

    def assert_accepted(self, text):
        self.assertTrue(self.schema_accepts(text), "refused by suite.schema.json")
        outcome = self.run_suite(text)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)

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
                self.assertFalse(self.schema_accepts(text), "accepted by suite.schema.json")
                outcome = self.run_suite(text)
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)

    def test_keys_of_each_mapping(self):
        for name, text in MAPPINGS.items():
            with self.subTest(name or "suite"):
                outcome = self.run_suite(text.replace("@", "no-such-key"))
                listed = re.search(r"expected one of the keys (.*), found \"no-such-key\"",
                                   outcome.text)
                self.assertTrue(listed, outcome.text)
                schema = SCHEMA["$defs"][name] if name else SCHEMA
                self.assertEqual(set(listed.group(1).split(", ")), set(schema["properties"]))

    def test_the_documentation_names_every_key(self):
        text = (support.TREE / "docs/suites.md").read_text("utf-8")
        for name in MAPPINGS:
            schema = SCHEMA["$defs"][name] if name else SCHEMA
            for key in schema["properties"]:
                self.assertIn(f"`{key}`", text)
