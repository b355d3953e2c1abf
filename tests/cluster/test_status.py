# SPDX-License-Identifier: Apache-2.0
"""`shardload status` of loads into a cluster, and of a restore: a load that died is completed by the
advice it shows; a changed limit applies to the whole restore; documents on one shard are a warning."""
import json
import os
import pathlib
import re
import shlex
import signal

import dump_making as making
import support


class Status(support.ClusterCase):
    def status(self, work, *words, code=support.EXIT_OK):
        return self.shardload("status", *words, work, code=code)

    def json(self, work):
        return json.loads(self.status(work, "--json", code=None).out)

    def test_a_killed_load_is_completed_by_the_advice(self):
        source = self.file("year.txt", support.wide_text(6))
        work = self.scratch / "work"
        words = ["load", *self.target(), "--progress", "none", "-j", 2, "--rate-limit", 50, source]
        running = self.start("shardload", *words, "--work-dir", work)
        self.wait_for_documents(running, 50)
        self.wait_for(lambda: self.json(work).get("load", {}).get("waitsMostFor") == "rateLimit",
                      "figures in the status")
        shown = self.status(work).out
        self.assertIn(f"load into {self.database_name}.t: running", shown)
        self.assertIn("waits for      the rate limit", shown)
        running.kill()
        shown = self.status(work, code=support.EXIT_INTERRUPTED).out
        self.assertIn(": dead", shown)
        found = re.search("to complete it, give the same command with\n(.*)", shown, re.DOTALL)
        resume = shlex.split(found[1])
        self.assertEqual(resume, ["--resume", "--work-dir", str(work.resolve())])
        before = self.database.t.count_documents({})
        running = self.start("shardload", *words, *resume)
        self.wait_for(lambda: not running.running()
                      or self.json(work).get("load", {}).get("documents", 0) > before,
                      "documents of the second run")
        self.status(work, "--rate-limit", "unlimited")
        outcome = running.wait()
        self.clear_balancer()
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 600)
        one = self.json(work)
        self.assertEqual((one["state"], one["resumable"]), ("finished", False))
        figures = support.run_record(work)["accounting"]
        self.assertEqual(one["load"]["documents"], figures["inserted"] + figures["alreadyStored"])
        self.assertEqual(one["load"]["records"], figures["records"])

    def stop_twice(self, running):
        """Two signals; the second one must find the load still at work."""
        running.signal(signal.SIGINT)
        self.wait_for(lambda: "press Ctrl-C again" in running.text(), "the first request")
        running.interrupt("to complete this")

    def assert_interrupted(self, work):
        shown = self.status(work).out
        self.assertIn(": interrupted", shown)
        self.assertIn("interrupted by the user", shown)
        self.assertIn("to complete it, give the same command with\n  --resume --work-dir ", shown)
        one = self.json(work)
        self.assertEqual((one["state"], one["exitCode"], one["resumable"]),
                         ("interrupted", support.EXIT_INTERRUPTED, True))

    def load_that_is_stopped(self, work):
        """Stops a load of 600 documents by two signals, and returns its command without its rate."""
        source = self.file("year.txt", support.wide_text(6))
        words = ["load", *self.target(), "--progress", "none", "--work-dir", work, source]
        running = self.start("shardload", *words, "-j", 1, "--batch-size", 100, "--rate-limit", 1)
        self.wait_for_documents(running, 1)
        self.stop_twice(running)
        return words

    def interrupt_while_it_connects(self, work, *words):
        before = self.json(work)["startedMilliseconds"]
        nowhere = ["--uri", f"mongodb://127.0.0.1:{support.free_port()}/", "--wait", "1h"]
        running = self.start("shardload", *words, *nowhere)
        self.wait_for(lambda: self.json(work)["startedMilliseconds"] > before, "the second run")
        self.wait_for(lambda: "connecting:" in running.text(), "the attempt to connect")
        running.interrupt()

    def assert_resume_completes(self, words):
        self.shardload(*words, "--resume")
        self.clear_balancer()
        self.assertEqual(self.database.t.count_documents({}), 600)

    def test_a_load_that_is_stopped_at_once_was_interrupted_and_can_be_resumed(self):
        work = self.scratch / "work"
        words = self.load_that_is_stopped(work)
        self.assert_interrupted(work)
        self.assert_resume_completes(words)

    def test_a_resumed_load_that_is_interrupted_while_it_connects(self):
        work = self.scratch / "work"
        words = self.load_that_is_stopped(work)
        self.interrupt_while_it_connects(work, *words, "--resume")
        self.assert_interrupted(work)
        self.assert_resume_completes(words)

    def test_a_resumed_load_that_cannot_connect_can_still_be_resumed(self):
        work = self.scratch / "work"
        words = self.load_that_is_stopped(work)
        nowhere = ["--uri", f"mongodb://127.0.0.1:{support.free_port()}/"]
        self.shardload(*words, *nowhere, "--resume", code=support.EXIT_CLUSTER)
        shown = self.status(work).out
        self.assertIn(": failed", shown)
        self.assertIn("to complete it, give the same command with\n  --resume --work-dir ", shown)
        self.assertTrue(self.json(work)["resumable"])
        self.assert_resume_completes(words)

    def test_a_new_load_in_the_folder_of_a_completed_one_that_is_interrupted_cannot_be_resumed(self):
        work = self.scratch / "work"
        words = self.load_words(work, self.file("year.txt", support.mot_text(range(1, 20))))
        self.shardload(*words)
        self.clear_balancer()
        self.interrupt_while_it_connects(work, *words, "--drop")
        one = self.json(work)
        self.assertEqual((one["state"], one["resumable"]), ("interrupted", False))

    def test_a_restore_that_is_stopped_at_once(self):
        documents = [{"_id": n, "s": "x" * 100} for n in range(3000)]
        making.folder(self.scratch / "dump", [making.Namespace(self.database_name, "a", documents)])
        work = self.scratch / "work"
        words = ["restore", "--uri", self.uri, "--progress", "none", "--work-dir", work,
                 self.scratch / "dump"]
        running = self.start("shardload", *words, "-j", 1, "--batch-size", 100, "--rate-limit", 1)
        self.wait_for_documents(running, 1, "a")
        self.stop_twice(running)
        self.assert_interrupted(work)
        self.shardload(*words, "--resume")
        self.assertEqual(self.database.a.count_documents({}), 3000)

    def test_a_failed_load_shows_its_message(self):
        source = self.file("year.txt", support.mot_text(range(1, 20)) + "bad\n" * 9)
        work = self.scratch / "work"
        self.shardload("load", *self.target(), "--work-dir", work, "--max-rejects", 3, source,
                       code=support.EXIT_SOURCE)
        shown = self.status(work).out
        self.assertIn(": failed", shown)
        self.assertIn("exit code      3", shown)
        self.assertIn("more than --max-rejects 3 allows", shown)
        self.assertIn("--resume --work-dir", shown)

    def test_a_folder_whose_name_is_not_utf_8(self):
        work = self.scratch / os.fsdecode(b"work-\xe9")
        self.shardload(*self.load_words(work, self.file("year.txt", support.mot_text(range(1, 20)))))
        self.clear_balancer()
        self.assertIn(": finished", self.status(work).out)
        self.assertEqual(self.json(work)["state"], "finished")

    def test_a_restore(self):
        made = {name: [{"_id": n, "s": "x" * 100} for n in range(4000)] for name in ("a", "b")}
        making.folder(self.scratch / "dump", [making.Namespace(self.database_name, name, documents)
                                              for name, documents in made.items()])
        work = self.scratch / "work"
        words = ["restore", "--uri", self.uri, "--progress", "none", "--rate-limit", 500, "-j", 2,
                 "--metrics-file", self.scratch / "m.prom", self.scratch / "dump"]
        running = self.start("shardload", *words, "--work-dir", work)
        self.wait_for_documents(running, 100, "a")
        self.wait_for(lambda: len(self.json(work).get("namespaces", {"running": ""})["running"]) == 2,
                      "both namespaces in the status")
        shown = self.status(work).out
        self.assertRegex(shown, r"restore of .*: running")
        self.assertIn("0 of 2 completed", shown)
        self.assertIn(f"{self.database_name}.a, ", shown)
        one = self.json(work)
        self.assertLess(one["share"], 0.5)
        (part,) = [row["workDirectory"] for row in one["namespaces"]["running"]
                   if row["name"] == f"{self.database_name}.a"]
        self.assertIn(f"load into {self.database_name}.a: running", self.status(part).out)
        self.assertIn("rate limit     400 documents/s", self.status(part, "--rate-limit", 400).out)
        self.wait_for(lambda: self.json(work)["limit"]["documentsPerSecond"] == 400, "the limit")
        running.kill()
        for folder in (work, part):
            shown = self.status(folder, code=support.EXIT_INTERRUPTED).out
            self.assertIn(f"\n  --resume --work-dir {work.resolve()}\n", shown)
        running = self.start("shardload", *words, "--work-dir", work, "--resume")
        self.wait_for(lambda: self.json(work)["state"] == "running", "the second run")
        self.status(work, "--rate-limit", "unlimited")
        outcome = running.wait()
        self.clear_balancer()
        self.assertEqual(outcome.code, support.EXIT_OK, outcome.text)
        self.assertIn("restore of", self.status(work).out)
        one = self.json(work)
        self.assertEqual((one["state"], one["share"], one["documents"]), ("finished", 1, 8000))
        metrics = (self.scratch / "m.prom").read_text("utf-8")
        self.assertIn('shardload_info{command="restore"', metrics)
        self.assertIn("shardload_documents_total 8000\n", metrics)

    def folder_of_two(self, documents, **more):
        return making.folder(self.scratch / "dump", [
            making.Namespace(self.database_name, "a", documents, **more),
            making.Namespace(self.database_name, "b", documents)])

    def test_an_interrupted_restore_has_completed_nothing(self):
        dump = self.folder_of_two([{"_id": n, "s": "x" * 1000} for n in range(8000)])
        work = self.scratch / "work"
        running = self.start("shardload", "restore", "--uri", self.uri, "--work-dir", work.name,
                             "-j", 1, "--progress", "none", "--rate-limit", 500, dump)
        self.wait_for(lambda: all(self.database[name].estimated_document_count() > 50
                                  for name in "ab"), "documents")
        self.wait_for(lambda: self.json(work)["namespaces"]["running"], "the namespaces")
        for row in self.json(work)["namespaces"]["running"]:
            self.assertEqual(pathlib.Path(row["workDirectory"]).parent, work.resolve())
        running.signal(signal.SIGINT)
        outcome = running.wait()
        self.clear_balancer()
        self.assertEqual(outcome.code, support.EXIT_INTERRUPTED, outcome.text)
        self.assertIn("0 of 2 completed", self.status(work).out)
        one = self.json(work)
        self.assertEqual(one["state"], "interrupted")
        self.assertLess(one["share"], 0.9)
        self.assertLess(one["sourceBytes"], one["sourceBytesTotal"])

    def test_a_resumed_restore_expects_its_own_rate(self):
        dump = self.folder_of_two([{"_id": n, "s": "x" * 3000} for n in range(1000)])
        work = self.scratch / "work"
        words = ["restore", "--uri", self.uri, "--work-dir", work, "--progress", "none", "-j", 1,
                 "--collections-at-once", 1]
        running = self.start("shardload", *words, "--rate-limit", 150, dump)
        self.wait_for_documents(running, 50, "b")
        running.kill()
        self.clear_balancer()
        running = self.start("shardload", *words, "--rate-limit", 2, "--resume", dump)
        self.wait_for(lambda: self.json(work)["process"]["pid"] == running.process.pid
                      and self.json(work)["elapsedSeconds"] > 2
                      and self.json(work).get("documents", 0) > 1000, "the second run")
        one = self.json(work)
        self.assertGreaterEqual(one["share"], 0.5)
        # It has completed no block of b yet; that a was there is no sign of its speed.
        self.assertGreater(one.get("secondsLeft", 600), 60)
        self.assertIn("1 of 2 completed", self.status(work).out)
        running.kill()
        self.clear_balancer()

    def test_documents_of_a_restore_that_lacks_only_an_index(self):
        dump = self.folder_of_two([{"_id": n, "n": 1} for n in range(300)],
                                  indexes=[{"v": 2, "key": {"n": 1}, "name": "n", "unique": True}])
        work = self.scratch / "work"
        words = ["restore", "--uri", self.uri, "--work-dir", work, "--progress", "none", dump]
        for more in ([], ["--resume"]):
            self.shardload(*words, *more, code=support.EXIT_CLUSTER)
            self.assertIn("1 of 2 completed", self.status(work).out)
            one = self.json(work)
            self.assertEqual((one["state"], one["documents"], one["records"]), ("failed", 600, 600))
            self.assertIn("indexes could not be built", one["message"])

    def test_all_documents_on_one_shard_are_a_warning(self):
        if not self.is_sharded() or self.client.config.shards.count_documents({}) < 2:
            self.skipTest("needs several shards")
        source = self.file("year.txt", support.mot_text(range(1, 200)))
        self.load("--shard-key", '{"d": 1}', source,
                  message=("all documents are on shard", "hashed"))
        other, _ = self.load("--shard-key", '{"_id": "hashed"}', source, collection="u")
        again, _ = self.load("--again", source)  # an existing collection, whose owner chose the key
        self.assertNotIn("all documents are on shard", other.text + again.text)
