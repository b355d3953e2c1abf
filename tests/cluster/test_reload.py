# SPDX-License-Identifier: Apache-2.0
"""`shardload reload`: drills with all of the data and with a sample, their reports, and the collections
they leave. The accuracy of predictions is measured by tools/bench; here only their consistency is
tested."""
import json
import re
import signal

import reload_case
import support
from reload_case import PHASES


class Standalone(reload_case.ReloadCase, support.ClusterCase, server="mongod"):
    # All of the data

    def test_a_drill_with_all_of_the_data(self):
        path, answers = self.data(5000, 61)
        report = self.scratch / "copy.json"
        outcome, record, work = self.reload(
            "--answers", answers, "--objective", "10h", "--index", '{"v": 1}', "--report", report,
            "--html", "drill.html", path)
        self.assert_page("drill.html", "good", "The recovery time objective of 10 h 00 min is met: the reload with "
                                               "all of the data took ")
        self.assertEqual(self.database.t.count_documents({}), 5000)
        self.assertIs(record["ended"], True)
        self.assertEqual(record["objectiveMet"], "yes")
        self.assertEqual(record["objectiveSeconds"], 36000)
        self.assertEqual(record["accounting"]["inserted"], 5000)
        self.assertIs(record["answersChecked"], True)
        self.assertEqual({query["answer"] for query in record["queries"]}, {"ok"})
        self.assertEqual(len(record["queries"]), 4)
        self.assertEqual(record["load"], support.run_record(work))
        self.assertEqual(json.loads(report.read_text()), record)
        # The first correct query comes after all phases.
        total = sum(phase["seconds"] for phase in record["phases"])
        self.assertLessEqual(total, record["firstCorrectQuerySeconds"] + 0.01)
        self.assertNotIn("predicted", record)
        self.assertIn("first correct query: after", outcome.text)
        self.assertIn("is met", outcome.text)
        self.assertIn("v_1", self.database.t.index_information())

    def test_an_existing_collection_is_refused_without_drop(self):
        path, answers = self.data(2000, 62)
        self.database.t.insert_one({"_id": "here before"})
        self.refused(path, message="--drop")
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.reload("--drop", "--answers", answers, path)
        self.assertEqual(self.database.t.count_documents({}), 2000)

    def test_a_missed_objective_is_reported(self):
        path, answers = self.data(6000, 63)
        outcome, record, _ = self.reload("--answers", answers, "--objective", "1s", "--rate-limit",
                                         2000, path, code=support.EXIT_VERIFICATION)
        self.assertEqual(record["objectiveMet"], "no")
        self.assertGreater(record["firstCorrectQuerySeconds"], 1)
        self.assertIn("NOT met", outcome.err)
        # 6,000 documents at 2,000 a second, of which the first batch of 200 is not delayed.
        load = next(p["seconds"] for p in record["phases"] if p["name"] == "load")
        self.assertGreaterEqual(load, 5700 / 2000)
        self.assertGreater(record["load"]["workerSeconds"]["rateLimit"], 1)

    def test_a_wrong_answer_is_reported_and_does_not_miss_the_objective(self):
        path, file = self.data(3000, 64)
        answers = json.loads(file.read_text())
        del answers["answers"]["worst-models"]
        answers["answers"]["green-ness"][0]["count"] += 1
        file.write_text(json.dumps(answers))
        outcome, record, _ = self.reload("--answers", file, "--objective", "10h", "--html",
                                         "drill.html", path, code=support.EXIT_VERIFICATION)
        self.assert_page("drill.html", "bad",
                         "1 of 4 answers is WRONG. The recovery time objective of 10 h 00 min is met: ")
        found = {query["name"]: query["answer"] for query in record["queries"]}
        self.assertEqual(found, {"green-ness": "WRONG", "pass-rate-by-age": "ok", "makes": "ok",
                                 "worst-models": "not checked"})
        # The second query is the first correct one.
        self.assertGreaterEqual(record["firstCorrectQuerySeconds"] * 1000,
                                sum(q["timingsMs"][0] for q in record["queries"][:2]))
        self.assertEqual(record["objectiveMet"], "yes")
        self.assertRegex(outcome.err, r"green-ness: .*count")

    def test_without_a_right_answer_the_objective_is_missed(self):
        path, file = self.data(2000, 65)
        file.write_text(json.dumps({"answers": {name: [{"_id": "nobody"}] for name in (
            "green-ness", "pass-rate-by-age", "makes", "worst-models")}}))
        outcome, record, _ = self.reload("--answers", file, "--objective", "10h", path,
                                         code=support.EXIT_VERIFICATION)
        self.assertNotIn("firstCorrectQuerySeconds", record)
        self.assertEqual(record["objectiveMet"], "no")
        self.assertIn("no query gave the expected answer", outcome.err)

    def test_without_expected_answers_the_time_of_the_first_query_counts(self):
        path, _ = self.data(2000, 66)
        outcome, record, _ = self.reload("--objective", "10h", path)
        self.assertIs(record["answersChecked"], False)
        self.assertNotIn("firstCorrectQuerySeconds", record)
        self.assertGreater(record["firstQuerySeconds"], 0)
        self.assertEqual(record["objectiveMet"], "yes")
        self.assertIn("not checked", outcome.text)

    def test_an_interrupted_drill_can_be_completed_with_load_resume(self):
        path = self.file("year.txt", support.wide_text(15))
        running = self.start("shardload", *self.reload_words(
            "work", "--rate-limit", 250, "--objective", "10h", "--html", "drill.html", path))
        self.wait_for_documents(running, 20)
        outcome = running.interrupt()
        self.assertRegex(outcome.err, r"`shardload load` .* --resume --work-dir work")
        record = json.loads((self.scratch / "work/reload.json").read_text())
        self.assertEqual(record["exitCode"], support.EXIT_INTERRUPTED)
        self.assertIs(record["ended"], False)
        self.assertNotIn("objectiveMet", record)
        self.assert_page("drill.html", "bad", "Interrupted: the reload with all of the data did not "
                                              "complete, so it does not show whether the recovery time objective of ")
        self.assertLess(self.database.t.count_documents({}), 1500)
        self.shardload(*self.load_words("work", "--resume", path))
        self.assertEqual(self.database.t.count_documents({}), 1500)

    # A sample

    def assert_predicted(self, record, documents):
        predicted = record["predicted"]
        self.assertEqual([phase["name"] for phase in predicted["phases"]], PHASES)
        for entry in [predicted, *predicted["phases"], *predicted["queries"]]:
            self.assertLessEqual(entry["low"], entry["seconds"] + 0.001, entry)
            self.assertLessEqual(entry["seconds"], entry["high"] + 0.001, entry)
        self.assertAlmostEqual(sum(phase["seconds"] for phase in predicted["phases"]),
                               predicted["seconds"], delta=0.01)
        self.assertAlmostEqual(predicted["documents"] / documents, 1, delta=0.02)
        load = next(p for p in predicted["phases"] if p["name"] == "load")
        measured = next(p for p in record["phases"] if p["name"] == "load")
        self.assertGreater(load["high"], measured["seconds"])
        return predicted

    def test_a_sample(self):
        path = self.file("year.txt", support.wide_text(20, rows=1000))
        _, answers = self.data(100, 71)
        self.database.t.insert_one({"_id": "here before"})
        outcome, record, work = self.reload("--sample", "30%", "--sample-runs", 3, "--answers", answers, "--index",
                                            '{"v": 1}', "--objective", "1000h", path)
        self.assertEqual(self.collections(), ["t"], "a collection besides the target is left")
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.assertEqual(record["sample"], 0.3)
        self.assertIs(record["load"]["sources"][0]["splittable"], True)
        self.assert_predicted(record, 20000)
        shares = [step["share"] for step in record["steps"]]
        self.assertEqual(shares, [0.3 / 16] + [0.3 / 4, 0.3] * 3)
        documents = [step["documents"] for step in record["steps"]]
        self.assertEqual(documents[1:], documents[1:3] * 3)
        self.assertEqual(documents[:3], sorted(documents[:3]))
        self.assertGreater(record["predicted"]["runVariation"], 0)
        self.assertIn("(standard deviation of 6 runs)", outcome.text)
        self.assertRegex((work / "shardload.log").read_text(),
                         rf"30 % of the blocks, {documents[-1]:,} documents, .*load \d")
        self.assertAlmostEqual(documents[-1] / 20000, 0.3, delta=0.1)
        self.assertEqual(record["objectiveMet"], "yes")
        self.assertNotIn("firstCorrectQuerySeconds", record)
        self.assertEqual({query["answer"] for query in record["queries"]}, {"not checked"})
        self.assertEqual({len(query["timingsMs"]) for query in record["queries"]}, {3})
        for folder in ("warm-up", "small-1", "sample-1", "small-3", "sample-3"):
            self.assertTrue((work / folder / "run.json").exists())
        self.assertIn("give a larger --sample" if "may or may not be met" in outcome.text else "is met", outcome.text)
        self.assertTrue(any("may not represent all data" in note for note in record["predicted"]["notes"]))

    def test_a_sample_of_generated_records(self):
        outcome = self.shardload(
            "reload", *self.target(), "--suite", "ycsb", "--work-dir", "w", "--progress", "none",
            "--sample", "0.2", "--format", "ycsb", "--records", 60000, "--field-length", 10)
        record = json.loads((self.scratch / "w/reload.json").read_text())
        self.assertEqual(self.collections(), [], outcome.text)
        self.assertEqual(record["predicted"]["documents"], 60000)
        self.assertEqual(len(record["steps"]), 7, "to warm up, and the sample and a quarter of it three times")

    def test_a_sample_of_compressed_text(self):
        path = self.zipped("year.txt.gz", support.unlike_text(15, 1000, 72))
        _, record, _ = self.reload("--sample", "50%", path)
        self.assertTrue(any("compressed" in note for note in record["predicted"]["notes"]))
        load = next(p for p in record["predicted"]["phases"] if p["name"] == "load")
        self.assertLess(load["low"], load["high"])

    def test_few_blocks_of_compressed_text(self):
        """With two or three blocks the share of the stored bytes is not used as the sample's share."""
        path = self.zipped("year.txt.gz", support.unlike_text(15, 1000, 82))
        _, record, _ = self.reload("--sample", "15%", path)
        self.assertEqual(len(record["steps"]), 5)
        source = record["load"]["sources"][0]
        self.assertIs(source["splittable"], False)
        share = record["accounting"]["inserted"] / 0.15
        self.assertAlmostEqual(record["predicted"]["documents"] / share, 1, places=3)
        self.assertLess(source["storedBytes"] / record["accounting"]["textBytes"] * 0.15, 0.5)

    def test_a_sample_that_misses_the_objective(self):
        path = self.file("year.txt", support.wide_text(15))
        outcome, record, _ = self.reload("--sample", "30%", "--rate-limit", 150, "--objective",
                                         "1s", "--html", "drill.html", path,
                                         code=support.EXIT_VERIFICATION)
        self.assertEqual(record["objectiveMet"], "no")
        self.assertIn("NOT met", outcome.err)
        self.assert_page("drill.html", "bad", "The recovery time objective of 1.0 s is NOT met: the reload with 30.0 % "
                                              "of the data took ")
        self.assertTrue(any("--rate-limit" in note for note in record["predicted"]["notes"]))
        self.assertEqual(self.collections(), [])

    def test_a_sample_without_documents_gives_no_verdict_on_the_objective(self):
        path = self.file("none.txt", support.HEADER + "\n")
        self.refused("--sample", "50%", "--objective", "10h", path, code=support.EXIT_SOURCE,
                     message="the sources hold no documents")
        self.assertEqual(self.collections(), [])

    def test_a_query_that_fails_is_reported(self):
        path, _ = self.data(2000, 84)
        suite = self.file("suite.yaml", "name: mine\nqueries:\n"
                          "  - name: good\n    pipeline: |\n      [{\"$count\": \"n\"}]\n"
                          "  - name: bad\n    pipeline: |\n      [{\"$noSuchStage\": {}}]\n")
        work = self.scratch / "failing"
        self.shardload("reload", *self.target(), "--suite", suite, "--work-dir", work, "--progress",
                       "none", "--objective", "10h", "--html", "drill.html", path,
                       code=support.EXIT_CLUSTER)
        record = json.loads((work / "reload.json").read_text("utf-8"))
        self.assertEqual([query["answer"] for query in record["queries"]], ["not checked", "FAILED"])
        self.assertEqual((record["objectiveMet"], record["ended"]), ("yes", True))
        self.assert_page("drill.html", "bad",
                         "1 of 2 queries FAILED. The recovery time objective of 10 h 00 min is met: ")

    def test_without_an_answer_nothing_is_said_about_the_objective(self):
        path, _ = self.data(2000, 85)
        suite = self.file("suite.yaml", "name: mine\nqueries:\n  - name: bad\n"
                          "    pipeline: |\n      [{\"$noSuchStage\": {}}]\n")
        for number, words in enumerate(([], ["--sample", "50%", "--sample-runs", 2])):
            work = self.scratch / f"unanswered-{number}"
            outcome = self.shardload("reload", *self.target(), "--suite", suite, "--work-dir", work, "--progress",
                                     "none", "--objective", "10h", "--html", "drill.html", *words, path,
                                     code=support.EXIT_CLUSTER)
            record = json.loads((work / "reload.json").read_text("utf-8"))
            self.assertEqual(record["objectiveMet"], "not shown")
            self.assertNotIn("predicted", record)
            self.assertIn("no query was answered", outcome.err)
            self.assertIn("does not show whether the recovery time objective of 10 h 00 min is met", outcome.err)
            for words in ("is met", "first query"):
                self.assertNotIn(words, outcome.err.replace("of 10 h 00 min is met", ""))
            self.assert_page("drill.html", "bad", "1 of 1 queries FAILED. The recovery time "
                             "objective of 10 h 00 min is not judged")

    def test_a_source_without_documents_recovers_nothing(self):
        path = self.file("none.txt", support.HEADER + "\n")
        self.database.t.insert_many([{"_id": n} for n in range(1000)])
        outcome = self.refused("--drop", "--objective", "10h", path, code=support.EXIT_SOURCE,
                               message="the sources hold no documents")
        self.assertNotIn("is met", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 1000)

    def test_a_sample_of_100_percent_is_refused(self):
        """A sample never changes the target, not even one of nearly all data."""
        path, _ = self.data(3000, 80)
        self.database.t.insert_one({"_id": "here before"})
        for share in ("100%", "1", "99.99999999999999999999%"):
            self.refused("--drop", "--sample", share, path, message="to load everything, leave --sample out")
            self.assertEqual(self.database.t.count_documents({}), 1)
        _, record, _ = self.reload("--drop", "--sample", "99.999%", path)
        self.assertEqual(self.collections(), ["t"])
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.assertEqual(record["accounting"]["inserted"], 3000)

    def test_a_sample_is_loaded_without_adaptation(self):
        """The steps of a sample are compared, and so must have the same settings."""
        path = self.file("year.txt", support.wide_text(6))
        _, record, _ = self.reload("--sample", "50%", path)
        self.assertNotIn("adaptation", record["load"])
        _, record, _ = self.reload(path)
        self.assertIn("adaptation", record["load"])

    def begin_drill(self, path, *words):
        """Starts a drill with a sample, and waits until its first documents are stored."""
        running = self.start("shardload", *self.reload_words(
            "work", "--sample", "90%", "--rate-limit", 40, *words, path))
        self.wait_for(lambda: not running.running() or any(
            self.database[name].estimated_document_count() > 0 for name in self.drills()
            if not name.endswith(".sources")), "the first documents")
        self.assertTrue(running.running(), f"ended too soon: {running.text()}")
        return running

    def test_ctrl_c_leaves_nothing(self):
        path = self.file("year.txt", support.wide_text(15))
        for signals in (1, 2):
            with self.subTest(signals=signals):
                running = self.begin_drill(path)
                for _ in range(signals):
                    running.signal(signal.SIGINT)
                outcome = running.wait().expect(support.EXIT_INTERRUPTED)
                self.assertEqual(self.collections(), [], outcome.text)

    def test_collections_of_a_killed_drill_are_removed_by_the_next(self):
        path = self.file("year.txt", support.wide_text(15))
        running = self.begin_drill(path)
        running.kill()
        left = [name for name in self.drills() if not name.endswith(".sources")]
        self.assertEqual(len(left), 1)
        foreign = "t.drill.another-host.1.2.1"
        self.database[foreign].insert_one({})
        self.database["t.drill.mine"].insert_one({})
        outcome, _, _ = self.reload("--sample", "10%", path)
        self.assertRegex(outcome.err, f"dropping {re.escape(f'{self.database_name}.{left[0]}')}")
        self.assertRegex(outcome.err, rf"{re.escape(foreign)} was created by process 1 o[fn] another-host")
        self.assertEqual(self.drills(), [foreign, "t.drill.mine"])

    def test_collections_of_a_running_drill_are_not_removed(self):
        path = self.file("year.txt", support.wide_text(15))
        running = self.begin_drill(path)
        outcome, _, _ = self.reload("--sample", "10%", path)
        self.assertNotIn("dropping", outcome.text)
        self.assertTrue(running.running(), running.text())
        self.wait_for(self.drills, "the reload's next collection")
        for name in self.drills():
            self.assertIn(f".{running.process.pid}.", name)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.wait().code, support.EXIT_INTERRUPTED)
        self.assertEqual(self.collections(), [])

    def test_a_pipe_is_refused(self):
        self.refused("--sample", "5%", "-", message="pipe")
        self.assertEqual(self.collections(), [])

    # Errors reported before anything is created

    def test_answers_without_a_query_are_refused(self):
        path, _ = self.data(100, 87)
        cases = [({"makse": []}, "the suite mot has no query makse"),
                 ({"makes": {"count": 1}}, "the answer of makes is not an array of documents"),
                 ({"makes": [], "green-nes": []}, "the suite mot has no query green-nes"),
                 ({}, "it contains no answer")]
        for answers, message in cases:
            with self.subTest(message):
                file = self.file("odd.json", json.dumps({"answers": answers}))
                self.refused("--answers", file, path, message=f"--answers: {message}")
                self.assertFalse((self.scratch / "w").exists())
        self.assertEqual(self.collections(), [])

    def test_a_suite_that_only_writes_is_refused(self):
        """A drill must leave the data as they were loaded."""
        path, _ = self.data(100, 88)
        suite = self.file("writes.yaml", "name: writes\nqueries:\n  - name: set\n    operation: update\n"
                          "    filter: '{}'\n    update: '{\"$set\": {\"k\": 1}}'\n")
        for command in (["reload", "--suite", suite], ["tune", "--suite", suite, "--try-compressors", "none,zstd"]):
            with self.subTest(command[0]):
                self.shardload(*command, *self.target(), "--work-dir", "w", path,
                               code=support.EXIT_USAGE, message="all queries of writes change documents")
        self.assertEqual(self.collections(), [])

    def test_wrong_options(self):
        path, _ = self.data(100, 78)
        answers = self.file("odd.json", "{}")
        self.shardload("reload", "--uri", self.uri, "-d", self.database_name, "--answers", answers,
                       "--compare", "nowhere.json", path, code=support.EXIT_USAGE,
                       message=("--suite is missing", "--collection is missing",
                                "--answers: it contains no object", "--compare: "))
        self.refused("--drop", "--shard-key", '{"k": -1}', path,
                     message='--shard-key: {"k": -1} cannot be a shard key')
        self.refused("--objective", "0s", path, message="--objective")
        self.refused("--sample", "5%", "--sample-runs", 1, path, message="--sample-runs")
        for share in ("0", "101%", "100%", "1", "5 %", "x", "-1%"):
            self.refused(f"--sample={share}", path, message="is not a share")
        self.refused("--suite", "ycsb", path, message="one suite")
        self.refused("--compare", answers, path, code=support.EXIT_SOURCE, message="not the record of a reload")
        empty = self.file("empty.json", json.dumps({"command": "reload", "accounting": {
            "inserted": 0, "alreadyStored": 0}}))
        self.refused("--compare", empty, path, code=support.EXIT_SOURCE,
                     message="the earlier reload loaded no document")
        self.assertEqual(self.collections(), [])


class Sharded(Standalone, server="cluster"):
    def test_the_balancer_is_restarted(self):
        path = self.file("year.txt", support.wide_text(15))
        self.clear_balancer()
        self.addCleanup(self.clear_balancer)
        for signals in (0, 1, 2):
            running = self.begin_drill(path) if signals else None
            for _ in range(signals):
                running.signal(signal.SIGINT)
            if running:
                running.wait()
            else:
                self.reload("--sample", "10%", path)
            self.assertEqual(self.balancer_mode(), "full", f"after {signals} signals")
