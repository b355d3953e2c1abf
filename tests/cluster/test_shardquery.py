# SPDX-License-Identifier: Apache-2.0
"""shardquery against real servers: right answers, a description of each wrong answer, and a complete
report. The expected answers are computed in Python (answers.py) from the documents that the tests insert."""
import datetime
import json
import random
import re
import stat

import support
from answers import SUITES

QUERIES = ["green-ness", "pass-rate-by-age", "makes", "worst-models"]
LONG = {"t": "test_id", "v": "vehicle_id", "d": "test_date", "c": "test_class_id", "y": "test_type",
        "r": "test_result", "m": "test_mileage", "s": "postcode_area", "k": "make", "o": "model",
        "u": "colour", "f": "fuel_type", "e": "cylinder_capacity", "i": "first_use_date"}


def tests(count):
    """Documents of MOT tests, with missing values, zeros, old and new codes."""
    chance = random.Random(8)
    for number in range(count):
        document = {
            "_id": number, "t": number, "v": number // 2,
            "d": datetime.datetime(2005 + chance.randrange(9), 1 + chance.randrange(12), 3),
            "c": chance.choice([4, 4, 4, 7]), "y": chance.choice(["N", "NT", "NT", "RT"]),
            "r": chance.choice(["P", "P", "P", "PRS", "F", "ABA"]),
            "s": "XX", "k": chance.choice(["FORD", "BMW", "ŠKODA"]),
            "o": chance.choice(["A", "B"]), "u": "RED", "f": chance.choice(["D", "DI", "P", "PE"]),
        }
        if chance.random() < .9:
            document["m"] = chance.choice([0, chance.randrange(1000000)])
        if chance.random() < .9:
            document["e"] = chance.choice([0, 1000, 800, 1333, 2000, chance.randrange(6000)])
        if chance.random() < .9:
            document["i"] = datetime.datetime(1995 + chance.randrange(18), 5, 6)
        yield document


def answers_for(documents):
    return {name: query(documents) for name, query in SUITES["mot"][1].items()}


WRITING_SUITE = """\
name: writes
queries:
  - name: write
    operation: update
    filter: '{"_id": 1}'
    update: '{"$set": {"written": true}}'
  - name: read
    operation: count
mix: {write: 1, read: 1}
"""


class AnyServer:
    """Tests for each kind of deployment."""

    count = 1500

    def fill(self, documents):
        self.database.t.insert_many(documents)

    def setUp(self):
        super().setUp()
        self.documents = list(tests(self.count))
        self.fill(self.documents)

    def answers(self, answers):
        return self.file("answers.json", json.dumps({"answers": answers}))

    def query(self, *words, code=support.EXIT_OK, collection="t"):
        return self.run_program("shardquery", "run", *self.target(collection), "--report",
                                "report.json", *words).expect(code)

    def report(self):
        """The report of the last query."""
        return json.loads((self.scratch / "report.json").read_text("utf-8"))

    def suite(self, text):
        return self.file("own.yaml", text)

    def test_right_answers(self):
        answers = answers_for(self.documents)
        self.assertTrue(all(answers[name] for name in QUERIES), "a query has no answer in the data")
        outcome = self.query("--answers", self.answers(answers), "mot")
        table = outcome.out[outcome.out.rindex("query "):].splitlines()[2:]
        self.assertEqual([line.split()[0] for line in table], QUERIES)
        for line in table:
            self.assertTrue(line.endswith(" ok"), line)
            self.assertEqual(line.split()[1], "1,500")
        self.assertEqual(stat.S_IMODE((self.scratch / "report.json").stat().st_mode), 0o600)
        written = self.report()
        self.assertIs(written["complete"], True)
        self.assertEqual(written["server"]["version"], self.client.server_info()["version"])
        self.assertEqual([entry["name"] for entry in written["queries"]], QUERIES)
        for entry in written["queries"]:
            self.assertEqual(entry["answer"], "ok")
            self.assertEqual(entry["documents"], self.count)
            self.assertEqual(entry["resultCount"], len(answers[entry["name"]]))
            self.assertEqual([row["_id"] for row in entry["results"]], [row["_id"] for row in answers[entry["name"]]])
            timings = sorted(entry["timingsMs"])
            self.assertEqual(len(timings), 5)
            self.assertEqual([entry["minMs"], entry["medianMs"], entry["maxMs"]],
                             [timings[0], timings[2], timings[4]])
            self.assertAlmostEqual(entry["documentsPerMs"], self.count / timings[2])

    def test_a_locale_with_a_decimal_comma_changes_no_query(self):
        comma = support.comma_environment(self.scratch)
        self.database.numbers.insert_many({"v": n / 8} for n in range(40))
        suite = self.suite('''name: numbers
queries:
  - name: below
    pipeline: '[{"$match": {"v": {"$lt": 1.75}}}, {"$group": {"_id": 0.5, "n": {"$sum": 1}, "last": {"$max": "$v"}}}]'
''')
        answers = self.answers({"below": [{"_id": 0.5, "n": 14, "last": 1.625}]})
        self.run_program("shardquery", "run", *self.target("numbers"), "--answers", answers, "--report", "report.json",
                         suite, environment=comma).expect(support.EXIT_OK)
        (entry,) = self.report()["queries"]
        self.assertEqual((entry["answer"], entry["results"]), ("ok", [{"_id": 0.5, "n": 14, "last": 1.625}]))

    def test_long_names_give_the_same_answers(self):
        self.database.long.insert_many(
            {LONG.get(key, key): value for key, value in document.items()}
            for document in self.documents)
        answers = self.answers(answers_for(self.documents))
        self.query("--answers", answers, "--repeat", 1, "mot-long", collection="long")

    def test_the_differences_of_a_wrong_answer_are_described(self):
        answers = answers_for(self.documents)
        answers["makes"][1]["tests"] += 1
        answers["makes"][2]["failRate"] *= 1.0001
        del answers["green-ness"][-1]
        outcome = self.query("--answers", self.answers(answers), "mot", code=support.EXIT_VERIFICATION)
        expected = answers["makes"][1]["tests"]
        self.assertIn("The answer of makes is wrong:\n"
                      f"  row 2, tests: expected {expected}, got {expected - 1}\n"
                      "  row 3, failRate: expected ", outcome.out)
        self.assertIn("  got 1 row too many, the first of them row 12: {\"_id\": 10.5, ", outcome.out)
        self.assertNotIn("The answer of worst-models", outcome.out)
        verdicts = {entry["name"]: entry["answer"] for entry in self.report()["queries"]}
        self.assertEqual(verdicts, {"green-ness": "WRONG", "pass-rate-by-age": "ok",
                                    "makes": "WRONG", "worst-models": "ok"})

    def test_five_differences_of_an_answer_are_shown(self):
        for count in (5, 6):
            answers = answers_for(self.documents)
            for number in range(count):
                answers["makes"][number // 2][("tests", "failRate")[number % 2]] += 1
            outcome = self.query("--answers", self.answers(answers), "mot", code=support.EXIT_VERIFICATION)
            self.assertEqual(outcome.out.count(": expected "), 5)
            self.assertEqual(re.findall(r"  and .* more", outcome.out), ["  and 1 more"] * (count - 5))

    def test_every_document_of_every_batch_is_read(self):
        suite = self.suite("name: own\nqueries:\n"
                           "  - {name: all, pipeline: '[{\"$sort\": {\"_id\": 1}}]'}\n")
        plain = self.uri
        for self.uri in (plain, f"{plain}{'&' if '?' in plain else '?'}compressors=zlib"):
            outcome = self.query("--repeat", 2, "--rows", 2, suite)
            self.assertIn("1,500 documents, the first ones shown", outcome.out)
            entry = self.report()["queries"][0]
            self.assertEqual([row["_id"] for row in entry["results"]], list(range(self.count)))

    def test_the_other_queries_run_when_one_fails(self):
        suite = self.suite(
            "name: own\nqueries:\n"
            "  - {name: bad, pipeline: '[{\"$project\": {\"x\": {\"$nothing\": 1}}}]'}\n"
            "  - {name: good, pipeline: '[{\"$count\": \"n\"}]', expect: '[{\"n\": 1500}]'}\n")
        outcome = self.query(suite, code=support.EXIT_CLUSTER)
        self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
        self.assertIn("bad: ", outcome.err)
        self.assertIn("$nothing", outcome.err)
        bad, good = self.report()["queries"]
        self.assertEqual((bad["answer"], bad["timingsMs"]), ("FAILED", []))
        self.assertIn("$nothing", bad["error"])
        self.assertEqual((good["answer"], len(good["timingsMs"])), ("ok", 5))

    def test_only_the_given_queries_are_run(self):
        outcome = self.query("--query", "makes", "--query", "green-ness", "--rows", 0, "mot")
        self.assertEqual(self.report()["options"]["query"], ["makes", "green-ness"])
        table = outcome.out[outcome.out.rindex("query "):].splitlines()[2:]
        self.assertEqual([line.split()[0] for line in table], ["green-ness", "makes"])
        outcome = self.query("--query", "speed", "mot", code=support.EXIT_USAGE)
        self.assertIn("speed", outcome.err)
        self.assertIn("green-ness, pass-rate-by-age, makes, worst-models", outcome.err)

    def test_a_collection_that_is_not_there(self):
        outcome = self.query("mot", collection="missing", code=support.EXIT_CLUSTER)
        self.assertEqual(outcome.err, "shardquery: there is no collection "
                         f"{self.database_name}.missing\n")

    def test_a_collection_of_other_documents_is_reported(self):
        self.assertNotIn("returned no document", self.query("mot", "--repeat", 1).err)
        self.database.t.update_many({}, {"$rename": {"r": "result", "k": "make", "d": "date", "c": "class"}})
        self.assertIn("queries returned no document", self.query("mot", "--repeat", 1).err)

    def test_queries_that_write_run_only_when_they_are_named(self):
        path = self.file("writes.yaml", WRITING_SUITE)
        outcome = self.query(path)
        written = self.report()
        self.assertEqual([entry["name"] for entry in written["queries"]], ["read"])
        self.assertIn("left out (1)", outcome.err)
        self.assertEqual(self.database.t.count_documents({"written": True}), 0)
        outcome = self.query("--query", "write", "--repeat", 1, path)
        self.assertNotIn("left out", outcome.text)
        self.assertEqual(self.database.t.count_documents({"written": True}), 1)

    def test_two_reports_compared(self):
        for name in ("old.json", "new.json"):
            self.query("--report", self.scratch / name, "--quiet", "mot")
        outcome = self.run_program("shardquery", "compare", "old.json", "new.json").expect(0)
        rows = [line for line in outcome.out.splitlines() if line.startswith("mot/")]
        self.assertEqual([row.split()[0] for row in rows], [f"mot/{name}" for name in QUERIES])
        for row in rows:     # one run a side, however many repeats it had
            self.assertTrue(row.endswith("too few runs to tell"), row)
        new = json.loads((self.scratch / "new.json").read_text("utf-8"))
        new["queries"][0]["body"] = {"filter": {}}
        new["queries"][3]["documents"] = 7
        self.file("new.json", json.dumps(new))
        outcome = self.run_program("shardquery", "compare", "old.json", "new.json")
        self.assertIn("mot/green-ness: the query is not the same on both sides", outcome.out)
        self.assertIn("mot/worst-models: the collections had 1500 (old) and 7 (new) documents", outcome.out)


class OnOneServer(AnyServer, support.ClusterCase, server="mongod"):
    def test_each_repeat_and_warm_up_is_run_on_the_server(self):
        self.database.command("profile", 2)
        self.query("--repeat", 3, "--warm-up", 2, "--query", "makes", "mot")
        self.database.command("profile", 0)
        runs = self.database["system.profile"].count_documents(
            {"command.aggregate": "t", "command.pipeline.0.$group._id": "$k"})
        self.assertEqual(runs, 5)

    def test_options_of_a_query_reach_the_server(self):
        self.database.t.create_index("m")
        self.database.command("profile", 2)
        self.query(self.suite("name: own\nqueries:\n"
                              "  - name: hinted\n"
                              "    options: {hint: '{\"m\": 1}', maxTimeMS: 7000, "
                              "allowDiskUse: true, readPreference: primaryPreferred}\n"
                              "    pipeline: |\n"
                              "      [{\"$match\": {\"m\": {\"$gt\": 5}}}, {\"$count\": \"n\"}]\n"))
        self.database.command("profile", 0)
        profiled = self.database["system.profile"].find_one({"command.pipeline.1.$count": "n"})
        self.assertEqual(profiled["command"]["hint"], {"m": 1})
        self.assertEqual(profiled["command"]["maxTimeMS"], 7000)
        self.assertIs(profiled["command"]["allowDiskUse"], True)
        self.assertIn("{ m: 1 }", profiled["planSummary"])

    def test_the_plan(self):
        outcome = self.query("--explain", "--query", "makes", "mot")
        self.assertIn("  plan: COLLSCAN -> ", outcome.out)
        explain = self.report()["queries"][0]["explain"]
        self.assertIs(explain["split"], False)

    def test_a_view_is_measured(self):
        self.database.create_collection("v", viewOn="t", pipeline=[{"$match": {"c": 4}}])
        outcome = self.query("--query", "makes", "mot", collection="v")
        row = outcome.out.splitlines()[-1].split()
        self.assertEqual((row[0], row[1]), ("makes", "1,500"))     # by its plan

    def test_a_report_is_refused_before_anything_runs(self):
        self.file("precious", "kept")
        (self.scratch / "link.json").symlink_to("precious")
        outcome = self.query("--report", "link.json", "mot", code=support.EXIT_USAGE)
        self.assertIn("link.json", outcome.err)
        self.assertEqual(outcome.out, "")
        self.assertEqual((self.scratch / "precious").read_text(), "kept")

    def test_a_password_is_never_shown(self):
        uri = self.uri.replace("mongodb://", "mongodb://joe:sesame@")
        outcome = self.run_program("shardquery", "run", "--uri", uri, "-d", "d", "-c", "c", "mot")
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertNotIn("sesame", outcome.text)


class OnShards(AnyServer, support.ClusterCase):
    def fill(self, documents):
        self.shard({"_id": "hashed"}, numInitialChunks=4)
        super().fill(documents)

    def test_the_plan(self):
        outcome = self.query("--explain", "--query", "makes", "mot")
        self.assertIn("the pipeline is split", outcome.out)
        explain = self.report()["queries"][0]["explain"]
        self.assertIs(explain["split"], True)
        self.assertEqual(len({plan["shard"] for plan in explain["plans"]}), 2, explain)


class WithoutServer(support.Case):
    def fails(self, code, *words):
        outcome = self.run_program("shardquery", "run", *words).expect(code)
        self.assertEqual(outcome.out, "")
        return outcome.err

    def test_what_is_built_in(self):
        outcome = self.run_program("shardquery", "list").expect(0)
        for name in ["mot\n", "mot-long\n", *QUERIES]:
            self.assertIn(name, outcome.out)

    def test_wrong_options(self):
        self.assertIn("suite", self.fails(support.EXIT_USAGE, "-d", "d", "-c", "c"))
        self.assertIn("--db", self.fails(support.EXIT_USAGE, "-c", "c", "mot"))
        self.assertIn("repeat", self.fails(support.EXIT_USAGE, "--repeat", "0", "mot"))
        self.run_program("shardquery", "compare", "only-one.json").expect(support.EXIT_USAGE)
        self.run_program("shardquery", "compare", "--a", "x", "--runs", 3, "a", "b").expect(
            support.EXIT_USAGE, "--a is for --ab", "--runs is for --ab")
        self.assertIn('no query uses the parameter "limit"',
                      self.fails(support.EXIT_USAGE, "-d", "d", "-c", "c", "--limit", "1,10", "mot"))

    def test_wrong_files(self):
        target = ["-d", "d", "-c", "c"]
        self.assertIn("nosuite.yaml", self.fails(support.EXIT_SOURCE, *target, "nosuite.yaml"))
        self.file("bad.yaml", "name: bad\nqueries:\n  - name: q\n    pipeline: |\n      [{]\n")
        self.assertIn("bad.yaml:5:", self.fails(support.EXIT_SOURCE, *target, "bad.yaml"))
        self.file("answers.json", "{\"results\": {}}")
        self.assertIn("\"answers\"", self.fails(support.EXIT_SOURCE, *target, "--answers", "answers.json", "mot"))
        self.file("report.json", "{\"queries\": [{\"name\": \"x\"}]}")
        self.run_program("shardquery", "compare", "report.json", "report.json").expect(
            support.EXIT_SOURCE, "is not a report of shardquery run")

    def test_answers_of_unknown_queries_are_refused(self):
        """A mistyped name would leave its query unchecked."""
        for answers, message in (({"makse": []}, "the suite mot has no query makse"),
                                 ({"makes": 3}, "the answer of makes is not an array"),
                                 ({}, "it contains no answer")):
            with self.subTest(message):
                self.file("answers.json", json.dumps({"answers": answers}))
                errors = self.fails(support.EXIT_SOURCE, "-d", "d", "-c", "c", "--answers", "answers.json", "mot")
                self.assertIn(f"answers.json: {message}", errors)

    def test_a_suite_that_only_writes_runs_nothing_by_default(self):
        path = self.file("writes.yaml", WRITING_SUITE.partition("  - name: read")[0])
        errors = self.fails(support.EXIT_USAGE, "-d", "d", "-c", "c", path)
        self.assertIn("all queries of the suite writes change documents", errors)
        self.assertIn("--query", errors)

    def test_an_absent_server_is_reported_in_one_line_without_the_password(self):
        uri = f"mongodb://joe:sesame@{support.HOST}:{support.free_port()}/" \
              "?serverSelectionTimeoutMS=500"
        message = self.fails(support.EXIT_CLUSTER, "--uri", uri, "-d", "d", "-c", "c", "mot")
        self.assertEqual(len(message.splitlines()), 1, message)
        self.assertNotIn("sesame", message)
        self.assertNotIn("socketTimeoutMS", message, "an option that the user did not give")
