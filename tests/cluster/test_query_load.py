# SPDX-License-Identifier: Apache-2.0
"""shardquery under load, with sweeps and comparisons, against real servers: the figures contain every
operation that was due, a server that stalls shows in the latencies, all methods of a statistic give
the same answer, and a comparison reports a difference only where there is one."""
import csv
import json
import pathlib
import re
import signal
import threading

import fault_case
import secure_servers
import support
from support import pymongo

SUITE = """
name: own
queries:
  - name: read
    operation: findOne
    filter: '{"_id": {"$parameter": "id"}}'
    parameters: {id: {range: [0, 999]}}
  - name: write
    operation: update
    filter: '{"_id": {"$parameter": "id"}}'
    update: '{"$inc": {"n": 1}}'
    parameters: {id: {range: [0, 999]}}
mix: {read: 3, write: 1}
"""
BOTH = "--query", "read", "--query", "write"     # a query that writes must be named


class QueryCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.fill()

    def fill(self):
        self.database.t.insert_many({"_id": i, "n": 0, "rpm": i * 1.5} for i in range(1000))

    def query(self, *words, code=support.EXIT_OK):
        return self.run_program("shardquery", *words).expect(code)

    def measure(self, *words, suite=SUITE, code=support.EXIT_OK):
        """Runs the suite, and returns the entries of its report."""
        report = self.scratch / "report.json"
        path = self.file("own.yaml", suite) if suite else "own.yaml"
        self.query("run", *self.target("t"), "--report", report, *words, path, code=code)
        entries = json.loads(report.read_text("utf-8"))["queries"]
        for entry in entries:
            if "mode" in entry:
                self.assert_consistent(entry)
        return entries

    def read_json(self, name):
        return json.loads((self.scratch / name).read_text("utf-8"))

    def assert_consistent(self, entry):
        """attempted = succeeded + failed + skipped, in total and for each operation."""
        for figures in (entry, *entry["operations"]):
            self.assertEqual(figures["attempted"], figures["succeeded"] + figures["failed"]
                             + figures["skipped"], figures)
        for name in ("attempted", "succeeded", "failed", "skipped"):
            self.assertEqual(entry[name], sum(one[name] for one in entry["operations"]))
            if name != "attempted":
                self.assertEqual(entry[name], sum(entry["overTime"][name]))
        self.assertEqual(entry.get("latencyMs", {"count": 0})["count"], entry["succeeded"])


class AnyServer:
    def test_each_number_of_clients_runs_the_mix_of_operations(self):
        entries = self.measure("--clients", "1,4", "--operations", 400, "--warm-up-time", "0s")
        self.assertEqual([entry["clients"] for entry in entries if entry["client"]["processorSeconds"] > 0], [1, 4])
        for entry in entries:
            self.assertEqual(entry["succeeded"], 400)
            read, write = entry["operations"]
            self.assertEqual((read["name"], write["name"]), ("read", "write"))
            self.assertEqual(read["documentsReturned"], read["succeeded"])
            self.assertTrue(60 <= write["attempted"] <= 140, write)   # drawn; 100 on average
            self.assertGreater(min(entry["server"][name] for name in ("reads", "writes", "readMs", "writeMs")), 0)
        added = sum(document["n"] for document in self.database.t.find())
        self.assertEqual(added, sum(entry["operations"][1]["succeeded"] for entry in entries))

    def test_percentiles_are_reported_only_for_enough_operations(self):
        few, = self.measure("--query", "read", "--clients", 2, "--operations", 150, "--warm-up-time", "0s")
        self.assertEqual({"p50", "p90"}, {name for name in few["latencyMs"] if name[0] == "p"})
        self.assertLessEqual(few["latencyMs"]["p50"], few["latencyMs"]["max"] * 1.004)

    def test_with_a_rate_every_due_operation_is_counted(self):
        entry, = self.measure("--rate", 300, "--duration", "1s", "--warm-up-time", "0s")
        self.assertEqual((entry["mode"], entry["attempted"]), ("open loop", 300))
        self.assertEqual(entry["lagMs"]["count"], entry["succeeded"] + entry["failed"])

    def test_failed_operations_are_counted_with_their_message(self):
        suite = SUITE.replace('{"$inc": {"n": 1}}', '{"$inc": {"_id": 1}}')
        outcome = self.query("run", *self.target("t"), "--clients", 1, "--operations", 200,
                             "--report", "r.json", self.file("own.yaml", suite), code=support.EXIT_CLUSTER)
        entry, = self.read_json("r.json")["queries"]
        self.assert_consistent(entry)
        self.assertGreater(entry["failed"], 0)
        self.assertEqual(entry["failures"][0]["count"], entry["failed"])
        self.assertIn("_id", entry["failures"][0]["message"])
        self.assertIn("operations failed: ", outcome.out)

    def test_each_read_that_the_server_refuses_is_counted_once(self):
        suite = """
name: own
queries:
  - name: divide
    operation: findOne
    filter: '{"_id": {"$parameter": "id"}, "$expr": {"$gte": [{"$divide": [1, "$_id"]}, 0]}}'
    parameters: {id: {sequence: {from: 0}}}
"""
        entry, = self.measure("--clients", 1, "--operations", 1000, "--warm-up-time", "0s", suite=suite)
        self.assertEqual((entry["succeeded"], entry["failed"]), (999, 1))
        self.assertIn("divide", entry["failures"][0]["message"])

    def test_all_methods_of_a_statistic_give_the_same_answer(self):
        if self.client.server_info()["javascriptEngine"] == "none":
            self.skipTest("this router was built without server-side JavaScript")
        report = self.scratch / "report.json"
        self.query("run", *self.target("t"), "--limit", "1,10,1000", "--repeat", 2, "--report", report, "statistics")
        entries = json.loads(report.read_text("utf-8"))["queries"]
        self.assertEqual(len(entries), 21)
        for entry in entries:
            expected = "not supported here" if entry["name"] == "mapReduce" and not self.javascript \
                else "ok"
            self.assertEqual(entry["answer"], expected, entry["name"])
            if entry["answer"] == "ok":
                self.assertEqual(entry["examined"], entry["limit"])
                answer = entry["results"][0]
                answer = answer.get("value", answer)
                rpm = [i * 1.5 for i in range(entry["limit"])]
                self.assertEqual((answer["min"], answer["max"], answer["sum"], answer["count"]),
                                 (min(rpm), max(rpm), sum(rpm), len(rpm)))

    def test_all_methods_of_a_statistic_ignore_a_field_that_is_no_number(self):
        self.database.t.update_many({}, {"$set": {"rpm": "fast"}})
        report = self.scratch / "report.json"
        self.query("run", *self.target("t"), "--limit", "10,1000", "--repeat", 1, "--report", report, "statistics")
        entries = json.loads(report.read_text("utf-8"))["queries"]
        self.assertEqual({entry["answer"] for entry in entries} - {"not supported here"}, {"ok"})
        self.assertEqual({len(entry["results"]) for entry in entries}, {0})

    def test_methods_with_different_answers_are_reported(self):
        suite = """
name: own
defaults: {agree: true}
queries:
  - {name: one, operation: count}
  - {name: other, operation: count, filter: '{"_id": {"$lt": 999}}'}
"""
        entries = self.measure(suite=suite, code=support.EXIT_VERIFICATION)
        self.assertEqual([entry["answer"] for entry in entries], ["ok", "WRONG"])
        # A first answer that is wrong became "ok", because the second one was compared with it.
        suite = suite.replace("one, operation: count}", "one, operation: count, expect: '[{\"n\": 9}]'}")
        entries = self.measure(suite=suite, code=support.EXIT_VERIFICATION)
        self.assertEqual([entry["answer"] for entry in entries], ["WRONG", "not checked"])

    def test_a_keyed_lookup_examines_one_document(self):
        """With a parameter the number is unknown: that of one plan was divided by the times of other values."""
        drawn, fixed = (self.measure("--query", "read", suite=suite)[0]
                        for suite in (SUITE, SUITE.replace('{"$parameter": "id"}', "7", 1).replace(
                            "    parameters: {id: {range: [0, 999]}}\n", "", 1)))
        if self.explains:
            self.assertEqual(fixed["examined"], 1)
        self.assertNotEqual(fixed.get("examined"), 1000)
        self.assertNotIn("examined", drawn)

    def test_sampled_values_are_drawn_when_queries_are_repeated(self):
        suite = """
name: own
queries:
  - name: read
    operation: findOne
    filter: '{"_id": {"$parameter": "id"}}'
    parameters: {id: {sample: {field: _id, count: 100}}}
"""
        entry, = self.measure("--repeat", 3, suite=suite)
        self.assertEqual((len(entry["timingsMs"]), entry["resultCount"]), (3, 1))
        nowhere = suite.replace("field: _id", "field: nowhere")
        entry, = self.measure(suite=nowhere, code=support.EXIT_CLUSTER)
        self.assertIn("no document of", entry["error"])
        self.assertIn("has the field nowhere", entry["error"])

    def test_each_limit_is_measured_under_load(self):
        suite = """
name: own
queries:
  - {name: first, operation: find, limit: '{"$parameter": "limit"}'}
"""
        entries = self.measure("--limit", "1,5", "--clients", "1,2", "--operations", 20,
                               "--warm-up-time", "0s", suite=suite)
        self.assertEqual([(entry["limit"], entry["clients"], entry["documentsReturned"])
                          for entry in entries], [(1, 1, 20), (1, 2, 20), (5, 1, 100), (5, 2, 100)])

    def test_a_pipeline_given_on_the_command_line(self):
        outcome = self.query("run", *self.target("t"), "--pipeline",
                             "[{\"$match\": {\"n\": 0}}, {\"$count\": \"it's\"}]")
        self.assertIn("1000", outcome.out.replace(",", ""))

    def test_figures_are_written_as_csv_and_as_html(self):
        self.measure("--clients", "1,2", "--operations", 100, "--csv", "f.csv", "--html", "f.html")
        with open(self.scratch / "f.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["clients"], row["succeeded"]) for row in rows], [("1", "100"), ("2", "100")])
        page = (self.scratch / "f.html").read_text("utf-8")
        self.assertIn("Operations under load", page)
        outcome = self.run_program("shardload", "report", "report.json").expect(0)
        self.assertIn("Latency by percentile", outcome.out)
        self.measure("--query", "read", "--repeat", 7)
        outcome = self.run_program("shardload", "report", "report.json")
        self.assertRegex(outcome.out, r"\n  read +\S+ +7 ")

    def test_during_measures_before_during_and_after_the_command(self):
        entries = self.measure("--query", "read", "--clients", "1,2", "--duration", "1s",
                               "--warm-up-time", "0s", "--during", "sleep 4; echo done")
        self.assertEqual([(entry["phase"], entry["clients"]) for entry in entries],
                         [(phase, clients) for phase in ("before", "during", "after")
                          for clients in (1, 2)])
        during = ["--clients", 1, "--operations", 9, "--warm-up-time", "0s", "--during"]
        for words, code in (during, support.EXIT_USAGE), (["--cold"], support.EXIT_CLUSTER):
            for through in ((), ("env", "--ignore-signal=SIGCHLD")):  # as some supervisors start commands
                self.run_program("shardquery", "run", *self.target("t"), "--query", "read", *words, "exit 7",
                                 "own.yaml", through=through).expect(code, "status")

    def test_an_interrupted_run_writes_an_incomplete_report(self):
        running = self.start("shardquery", "run", *self.target("t"), "--clients", 1, "--duration",
                             "600s", "--warm-up-time", "0s", "--report", self.scratch / "r.json",
                             self.file("own.yaml", SUITE))
        self.wait_for(lambda: self.database.t.find_one({"n": {"$gt": 0}}), "the first update")
        outcome = running.interrupt()
        self.assertIn("mix ", outcome.out)
        report = self.read_json("r.json")
        self.assertIs(report["complete"], False)
        self.assertLess(report["startedAt"]["$date"], report["date"]["$date"])
        self.assertGreater(report["queries"][0]["succeeded"], 0)


class OnOneServer(AnyServer, QueryCase, server="mongod"):
    javascript = explains = True

    def test_commands_stay_out_of_reports_and_inherit_the_environment(self):
        """Nor are they in the list of processes. A command may contain a password anywhere, and may need
        those of the environment."""
        canary = "c4nary-in-the-mine"
        uri = f"mongodb://ann:{canary}@127.0.0.1:1/"
        for name, words in (("cold", ["--repeat", 1, "--warm-up", 0]),
                            ("during", ["--clients", 1, "--operations", 5, "--warm-up-time", "0s"])):
            seen = self.scratch / f"seen-{name}"
            command = f'echo "$SHARDLOAD_PASSWORD $SHARDLOAD_URI" >{seen}; : -p {canary}; ' \
                      f'env >{seen}.env; cat /proc/[0-9]*/cmdline >{seen}.processes 2>/dev/null; true'
            outcome = self.run_program(
                "shardquery", "run", *self.target("t"), "--query", "read", *words, f"--{name}", command,
                "--report", "r.json", "--html", "r.html", self.file("own.yaml", SUITE),
                environment=support.clean_environment(SHARDLOAD_PASSWORD=canary, SHARDLOAD_URI=uri))
            outcome.expect(support.EXIT_OK)
            self.assertEqual(seen.read_text(), f"{canary} {uri}\n")
            processes = pathlib.Path(f"{seen}.processes").read_bytes()
            self.assertIn(b"shardquery", processes)
            self.assertNotIn(canary.encode(), processes)
            self.assertNotIn("-p " + canary, pathlib.Path(f"{seen}.env").read_text("utf-8"))
            self.assertEqual(self.read_json("r.json")["options"][name], "***")
            self.assertNotIn(canary, outcome.text + (self.scratch / "r.json").read_text("utf-8")
                             + (self.scratch / "r.html").read_text("utf-8"))

    def test_text_in_csv_is_not_a_formula(self):
        names = ["=1+1", "+1", "-1", "@x", "=a,\"b\"", "a=b"]
        queries = "".join(f"  - name: '{name}'\n    operation: findOne\n    filter: '{{}}'\n" for name in names)
        self.measure("--repeat", 1, "--csv", "f.csv", suite=f"name: own\nqueries:\n{queries}")
        with open(self.scratch / "f.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["name"] for row in rows], [f"'{name}" for name in names[:-1]] + names[-1:])
        self.assertGreater(min(float(row["medianMs"]) for row in rows), 0)

    def test_a_suite_on_standard_input(self):
        words = ["run", *self.target("t"), "--rows", 0, "-"]
        outcome = self.run_program("shardquery", *words, stdin=SUITE.replace("mix:", "# mix:").encode())
        self.assertEqual(outcome.code, 0, outcome.text)
        self.assertIn("read ", outcome.out)

    def test_progress_is_shown_on_a_terminal_without_quiet(self):
        run = ["run", *self.target("t"), "--query", "read"]
        for words in (["--repeat", 2], ["--clients", 1, "--operations", 20]):
            for quiet in ([], ["--quiet"]):
                with self.subTest(words, quiet=quiet):
                    command = [*run, *words, *quiet, self.file("own.yaml", SUITE)]
                    code, text = support.on_terminal("shardquery", *command)
                    self.assertEqual((code, "\x1b[K" in text), (support.EXIT_OK, not quiet), text)
                    self.assertNotIn("\x1b", self.query(*command).text)

    def side(self, *words):
        """The value of --a or --b: options of one side, quoted for the shell."""
        return " ".join(f"'{word}'" for word in (*self.target("t"), *words))

    def test_compare_ab_finds_a_large_difference(self):
        # 50 ms, many times the other query's time, even on a machine that is busy.
        pause = {"body": "function() { sleep(50); return true; }", "args": [], "lang": "js"}
        stages = [{"$match": {"_id": 1, "$expr": {"$function": pause}}}]
        self.file("slow.yaml", "name: own\nqueries:\n  - name: q\n    pipeline: "
                  f"'{json.dumps(stages)}'\n")
        self.file("fast.yaml", "name: own\nqueries:\n  - name: q\n    operation: findOne\n    "
                  "filter: '{\"_id\": 1}'\n")
        words = ["compare", "--ab", "--runs", 8, "--report", "c.json"]
        outcome = self.query(*words, "--a", self.side("fast.yaml"), "--b", self.side("slow.yaml"),
                             code=support.EXIT_REJECTS)
        row, = self.read_json("c.json")["rows"]
        self.assertEqual(row["verdict"], "slower", outcome.text)
        self.assertGreater(row["low"], 1)
        self.assertAlmostEqual(row["new"] / row["old"], row["ratio"], 9)
        self.query("compare", "--ab", "--a", "own.yaml", code=support.EXIT_USAGE)

    def test_compare_exits_with_1_when_the_new_side_is_slower(self):
        for number in range(4):
            for side, timings in (("old", [1, 1.1, 1.2]), ("new", [2, 2.1, 2.2])):
                folder = self.scratch / side
                folder.mkdir(exist_ok=True)
                report = {"program": "shardquery", "date": {"$date": {"$numberLong": str(number)}},
                          "queries": [{"suite": "s", "name": "q", "timingsMs": timings,
                                       "medianMs": timings[1] * (1 + number / 100)}]}
                (folder / f"{number}.json").write_text(json.dumps(report), "utf-8")
        outcome = self.query("compare", "old", "new", code=support.EXIT_REJECTS)
        self.assertIn("slower", outcome.out)
        self.assertIn("1.909", outcome.out)      # 2.1 / 1.1
        self.assertIn("faster", self.query("compare", "new", "old").out)
        self.query("compare", "old", "new", "--threshold", "95%")
        single = self.query("compare", "old/0.json", "new/0.json")
        self.assertIn("too few runs to tell", single.out)

    def test_every_field_of_the_reports_is_documented(self):
        """The fields within queries, options and answers are the user's own."""
        users_own = {"body", "pipeline", "options", "results"}
        page = (support.TREE / "docs/query-report.md").read_text("utf-8")

        def names(value):
            if isinstance(value, list):
                return set().union(*map(names, value)) if value else set()
            if not isinstance(value, dict):
                return set()
            return set(value).union(*(names(inner) for key, inner in value.items() if key not in users_own))
        suite = SUITE + "    expect: '[]'\n"
        suite = suite.replace("mix: {read: 3, write: 1}\n    expect", "    expect")
        self.measure("--explain", *BOTH, suite=suite, code=support.EXIT_VERIFICATION)
        found = names(self.read_json("report.json"))
        self.measure("--rate", 100, "--duration", "1s", "--warm-up-time", "0s", "--during", "sleep 2",
                     "--read-preference", "nearest")
        found |= names(self.read_json("report.json"))
        report = self.read_json("report.json")
        for failed, code in ((700, support.EXIT_VERIFICATION), (0, support.EXIT_OK)):
            for entry in report["queries"]:
                entry["failed"] = failed
            self.file("r.json", json.dumps(report))
            self.query("compare", "--report", "c.json", "r.json", "r.json", code=code)
            found |= names(self.read_json("c.json"))
        self.assertGreater(len(found), 70)
        self.assertEqual({name for name in found if not name.startswith("$") and
                          not re.search(rf"[`.]{name}[`.]", page)}, set())

    def test_each_read_preference_is_compared_and_unknown_counts_are_not(self):
        self.file("old.json", json.dumps({"queries": [
            {"suite": "s", "name": "q", "readPreference": mode, "medianMs": time, "documents": 5}
            for mode, time in (("primary", 1), ("secondary", 2))]}))
        self.file("new.json", json.dumps({"queries": [
            {"suite": "s", "name": "q", "readPreference": mode, "medianMs": time}
            for mode, time in (("primary", 3), ("secondary", 8))]}))
        outcome = self.query("compare", "--report", "c.json", "old.json", "new.json")
        rows = self.read_json("c.json")["rows"]
        self.assertEqual([(row["query"], round(row["ratio"], 6)) for row in rows],
                         [("s/q, primary", 3), ("s/q, secondary", 4)])
        self.assertNotIn("-1", outcome.out)
        # With one preference on each side, both are rows of the same query.
        for name, mode in (("a,1.json", "primary"), ("b.json", "secondary")):
            self.file(name, json.dumps({"queries": [
                {"suite": "s", "name": "q", "readPreference": mode, "medianMs": 1}]}))
        self.assertIn("s/q  ", self.query("compare", "a,1.json", "b.json").out)

    def test_compare_ab_of_the_same_options_reports_no_difference(self):
        self.file("own.yaml", SUITE)
        outcome = self.query("compare", "--ab", "--runs", 6, "--report", "c.json",
                             "--a", self.side("--repeat", "2", *BOTH),
                             "--b", self.side("--repeat", "2", *BOTH),
                             "--threshold", "100%", "own.yaml")
        rows = self.read_json("c.json")["rows"]
        self.assertEqual([(row["oldRuns"], row["newRuns"]) for row in rows], [(6, 6)] * 2)
        self.assertIn("permutation test over pairs of runs", outcome.out)
        self.assertEqual(sum(document["n"] for document in self.database.t.find()), 6 * 2 * 3)


class OnASet(QueryCase, server="replica"):
    def commands(self, *words, options=""):
        """Measures 500 reads. Returns the commands as the server profiled them."""
        suite = f"""
name: own
queries:
  - name: read
    operation: findOne
    filter: '{{"_id": 5}}'
    options: {{comment: a read{options}}}
"""
        self.database.command("profile", 2)
        self.measure("--clients", 1, "--operations", 500, "--warm-up-time", "0s", *words, suite=suite)
        self.database.command("profile", 0)
        found = [entry["command"] for entry in self.database["system.profile"].find({"command.comment": "a read"})]
        self.database.drop_collection("system.profile")
        return found

    def test_reads_without_the_driver_send_what_the_driver_sends(self):
        """The driver alone adds the field $clusterTime."""
        separator = "&" if "?" in self.uri else "/?"
        for words, options in (
                ((), ""),
                ((), ", readConcern: majority, maxTimeMS: 5000"),
                (("--read-preference", "primaryPreferred"), ""),
                (("--uri", f"{self.uri}{separator}readConcernLevel=majority&readPreference=primaryPreferred"
                           "&readPreferenceTags=place:here&readPreferenceTags="
                           "&maxStalenessSeconds=90"), ""),
                (("--uri", f"{self.uri}{separator}readConcernLevel=majority"),
                 ", readConcern: local")):
            with self.subTest(words=words, options=options):
                found = self.commands(*words, options=options)
                self.assertEqual(len(found), 500)
                timed = sum(command.pop("$clusterTime", None) is not None for command in found)
                self.assertTrue(1 <= timed < 250, timed)
                self.assertEqual({json.dumps(command, sort_keys=True, default=str)
                                  for command in found},
                                 {json.dumps(found[0], sort_keys=True, default=str)})


class OnShards(AnyServer, QueryCase):
    javascript = explains = False      # the tests' own router has neither; mongos has both

    def fill(self):
        self.shard({"_id": "hashed"})
        super().fill()


class AServerThatStalls(support.Case):
    """A server that is stopped for two seconds while operations are due at a constant rate."""

    @classmethod
    def setUpClass(cls):
        folder = secure_servers.folder_of_tests(cls)
        cls.servers = fault_case.Servers(folder / "servers", "--standalone")
        cls.addClassCleanup(cls.servers.down)
        with pymongo.MongoClient(cls.servers.uri) as client:
            client.d.t.insert_many({"_id": i, "n": 0} for i in range(1000))

    def measure_stall(self, *words):
        """Runs for four seconds, and stops the server for two of them once operations have begun.
        Returns the entry of the report."""
        path = self.file("own.yaml", SUITE)
        running = self.start("shardquery", "run", "--uri", self.servers.uri, "-d", "d", "-c", "t",
                             "--rate", 200, "--duration", "4s", "--warm-up-time", "0s", "--report",
                             self.scratch / "r.json", *words, path)
        with pymongo.MongoClient(self.servers.uri) as client:
            before = client.admin.command("serverStatus")["opcounters"]["query"]
            self.wait_for(lambda: client.admin.command("serverStatus")["opcounters"]["query"]
                          > before + 50, "operations")
        (name,) = self.servers.names()
        self.servers.signal(name, signal.SIGSTOP)
        threading.Timer(2, self.servers.signal, (name, signal.SIGCONT)).start()
        running.wait().expect(0)
        return json.loads((self.scratch / "r.json").read_text("utf-8"))["queries"][0]

    def test_the_stall_shows_in_the_latencies_and_no_operation_is_left_out(self):
        entry = self.measure_stall("--max-lag", "60s")
        self.assertEqual(entry["attempted"], 800)
        self.assertEqual(entry["succeeded"], 800)
        self.assertGreater(entry["latencyMs"]["max"], 1900)
        # 400 operations were due during the stall. Half of them, a quarter of all, waited for more
        # than a second.
        self.assertGreater(entry["latencyMs"]["p90"], 900)
        self.assertGreater(entry["lagMs"]["max"], 500)

    def test_operations_that_are_too_late_are_skipped_and_counted(self):
        entry = self.measure_stall("--max-lag", "1s")
        self.assertEqual(entry["attempted"], 800)
        self.assertGreater(entry["skipped"], 0)
        self.assertEqual(entry["attempted"], entry["succeeded"] + entry["failed"] + entry["skipped"])
