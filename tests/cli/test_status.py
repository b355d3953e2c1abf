# SPDX-License-Identifier: Apache-2.0
"""`shardload status`, --metrics-file and --progress json, of loads without a server: a running load is
shown and its rate limit changed, also by root; a killed one is recognised."""
import json
import os
import re
import shlex
import signal
import threading
import time

import support

GENERATED = ["--sink", "null", "--format", "ycsb", "--progress", "none", "-j", 2]
SAMPLE = re.compile(r"(shardload_[a-z_]+)(\{[^}]*\})? (\S+)")


class Status(support.Case):
    def begin(self, *words, records="2M", work="work"):
        """Starts a load that would take hours, and waits until it has loaded documents."""
        running = self.start("shardload", "load", *GENERATED, "--records", records, "--rate-limit",
                             2000, "--work-dir", work, *words)
        self.wait_for(lambda: not running.running() or self.figures(work).get("documents", 0) > 0,
                      "the first documents")
        self.assertTrue(running.running(), running.text())
        return running

    def status_file(self, work="work"):
        try:
            return json.loads((self.scratch / work / "status.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}

    def figures(self, work="work"):
        return self.status_file(work).get("load", {})

    def status(self, *words, work="work", code=support.EXIT_OK, **more):
        return self.shardload("status", *words, work, code=code, **more)

    # Running loads

    def test_a_running_load_is_shown(self):
        running = self.begin()
        # The first status may precede the first wait for the limit.
        self.wait_for(lambda: self.figures().get("documents", 0) > 2000, "a second of the load")
        shown = self.status().out
        for words in ("load: running", f"process        {running.process.pid} on ", "phase          load",
                      "rate limit     2,000 documents/s", "waits for      the rate limit", "time left",
                      "batches of 200 documents", "%"):
            self.assertIn(words, shown)
        self.assertLessEqual(max(map(len, shown.splitlines())), 100)
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait().code, support.EXIT_INTERRUPTED)
        self.assertIn("load: interrupted", self.status().out)
        self.assertEqual(self.status_file()["exitCode"], support.EXIT_INTERRUPTED)

    def test_the_keys_of_the_json(self):
        running = self.begin()
        one = json.loads(self.status("--json").out)
        self.assertEqual(one["state"], "running")
        self.assertEqual(one["statusVersion"], 1)
        self.assertEqual(one["process"]["pid"], running.process.pid)
        self.assertEqual(one["limit"]["documentsPerSecond"], 2000)
        self.assertEqual(one["workDirectory"], str((self.scratch / "work").resolve()))
        load = one["load"]
        self.assertGreater(load["documents"], 0)
        self.assertLess(load["share"], 0.5)
        self.assertEqual(load["rateLimit"], 2000)
        self.assertEqual(set(load["waitsFor"]), {"reading", "unpacking", "parsing", "rateLimit", "server"})
        documented = (support.TREE / "docs/status.md").read_text("utf-8")

        def check(document, path):
            for key, value in document.items():
                self.assertNotIn(" ", key)
                if path != ["load", "shards"]:
                    self.assertIn(f"`{key}`", documented)
                if isinstance(value, dict):
                    check(value, path + [key])
        check(one, [])

    def test_the_rate_limit_of_a_running_load_is_changed_and_removed(self):
        running = self.begin(records="300k")
        shown = self.status("--rate-limit", "3k").out
        self.assertIn("rate limit     3,000 documents/s", shown)
        self.assertEqual(self.figures()["rateLimit"], 3000)
        self.assertTrue(running.running())
        # Without a limit this load takes a few seconds; with it, minutes.
        self.assertIn("rate limit     none", self.status("--rate-limit", "unlimited").out)
        outcome = running.wait().expect(support.EXIT_OK)
        self.assertIn("rate limit changed to 3000 documents/s", outcome.err)
        self.assertIn("rate limit removed", outcome.err)
        self.assert_accounting(self.scratch / "work", inserted=300000)
        self.assertFalse((self.scratch / "work/control.json").exists())
        self.assertIn("load: finished", self.status().out)
        refused = self.status("--rate-limit", 5, code=support.EXIT_USAGE)
        self.assertIn("the load has ended", refused.err)

    def test_a_limit_can_be_set_that_was_not_there(self):
        """Threads that already hold full batches are slowed down, and woken again."""
        read_end, write_end = os.pipe()
        row = (support.ROW + "\n").format(id=7).encode() * 2000
        with os.fdopen(write_end, "wb") as feed:
            running = self.start("shardload", "load", "--sink", "null", "--progress", "none", "-j", 2,
                                 "--work-dir", "work", "-", stdin=read_end)
            os.close(read_end)
            feed.write((support.HEADER + "\n").encode() + row)
            feed.flush()
            self.wait_for(lambda: self.status_file().get("phase") == "load", "the load")
            self.status("--rate-limit", 1)
            self.assertEqual(self.status_file()["limit"]["documentsPerSecond"], 1)
            writer = threading.Thread(target=lambda: feed.write(20 * row))
            writer.start()
            self.wait_for(lambda: self.figures().get("waitsMostFor") == "rateLimit", "the limit")
            self.status("--rate-limit", "unlimited")
            writer.join()
        running.wait().expect(support.EXIT_OK)
        self.assert_accounting(self.scratch / "work", records=42000)

    def test_the_environment_of_loads_changes_no_limit(self):
        running = self.begin()
        shown = self.status(environment=support.clean_environment(SHARDLOAD_RATE_LIMIT="77")).out
        self.assertIn("rate limit     2,000", shown)
        running.stop()

    def test_a_request_that_is_none_is_removed(self):
        running = self.begin()
        control = self.scratch / "work/control.json"
        for text in ("", "{", "[]", '{"request": "x"}', '{"request": "x", "rateLimit": -5}',
                     '{"request": "x", "rateLimit": 1.5}', '{"request": "", "rateLimit": 5}',
                     '{"request": "%s", "rateLimit": 5}' % ("x" * 60), "x" * 9000):
            with self.subTest(text[:40]):
                temporary = self.file("work/.new", text)
                temporary.rename(control)
                self.wait_for(lambda: not control.exists(), "the removal")
        self.wait_for(lambda: "not a request" in running.text(), "a warning")
        self.assertEqual(self.figures()["rateLimit"], 2000)
        os.mkfifo(control)
        before = self.status_file()["heartbeatMilliseconds"]
        self.wait_for(lambda: self.status_file()["heartbeatMilliseconds"] > before + 1500, "a heartbeat")
        running.stop()

    def test_the_path_of_the_work_directory_may_be_long(self):
        above = self.scratch.joinpath("d" * 200, "d" * 200)  # 599 bytes of the path name a folder, too
        deep = above / ("d" * (598 - len(str(above)))) / ("d" * 200)
        deep.mkdir(parents=True)
        running = support.Running(self, [support.program("shardload"), "load", *map(str, GENERATED), "--records",
                                         "2M", "--rate-limit", "2000", "--work-dir", "w"], deep)
        self.wait_for(lambda: self.figures(deep / "w").get("documents", 0) > 0, "the first documents")
        self.assertIn("3,000 documents/s", self.status("--rate-limit", "3000", work=deep / "w").out)
        running.stop()

    def test_root_may_ask_the_load_of_another_user(self):
        """The request belongs to that user. A link that the user has prepared is not followed."""
        if os.geteuid() != 0:
            self.skipTest("only root can run a load as another user")
        os.chown(self.scratch, support.NOBODY, support.NOBODY)
        running = support.Running(
            self, ["setpriv", f"--reuid={support.NOBODY}", f"--regid={support.NOBODY}", "--clear-groups",
                   support.program("shardload"), "load", *map(str, GENERATED), "--records", "2M",
                   "--rate-limit", "2000", "--work-dir", "work"], self.scratch)
        self.wait_for(lambda: not running.running() or self.figures().get("documents", 0) > 0, "documents")
        if "ermission denied" in running.text():
            self.skipTest("an ordinary user may not run shardload")
        self.assertIn("3,000 documents/s", self.status("--rate-limit", "3000").out)
        running.signal(signal.SIGSTOP)
        victim = self.file("victim", "precious")
        victim.chmod(0o600)
        control = self.scratch / "work/control.json"
        control.symlink_to(victim)
        self.assertIn("not a regular file", self.status("--rate-limit", "4000", code=support.EXIT_USAGE).err)
        control.unlink()
        os.link(victim, control)
        request = self.start("shardload", "status", "--rate-limit", "4000", "work")
        self.wait_for(lambda: control.stat().st_uid == support.NOBODY, "the request")
        self.assertEqual((control.stat().st_mode & 0o777, control.stat().st_nlink), (0o600, 1))
        self.assertEqual((victim.stat().st_uid, victim.read_text()), (0, "precious"))
        running.signal(signal.SIGCONT)
        self.assertEqual(request.wait().code, support.EXIT_OK)
        running.stop()

    def test_files_that_are_no_status_are_refused_without_waiting(self):
        path = self.file("outside.json", '{"statusVersion": 1, "state": "finished"}')
        for plant in (os.mkfifo, lambda name: os.symlink(path, name), os.mkdir):
            folder = self.scratch / f"planted-{next(self._counter)}"
            folder.mkdir()
            plant(folder / "status.json")
            self.assertIn("status.json", self.status(work=folder, code=support.EXIT_USAGE, limit=30).err)
        self.file("good/status.json", path.read_text())
        os.symlink("good", self.scratch / "latest")
        self.assertIn("finished", self.status(work="latest").out)

    # Loads that died

    def test_a_killed_load_is_recognised(self):
        running = self.begin()
        running.signal(signal.SIGKILL)
        running.wait()
        outcome = self.status(code=support.EXIT_INTERRUPTED)
        self.assertIn("load: dead", outcome.out)
        self.assertIn(f"process {running.process.pid} ended without finishing", outcome.out)
        self.assertIn("it cannot be resumed", outcome.out)  # nothing was sent to a cluster
        self.assertEqual(json.loads(self.status("--json", code=None).out)["state"], "dead")
        refused = self.status("--rate-limit", 5, code=support.EXIT_USAGE)
        self.assertIn("the load died", refused.err)
        self.assertFalse((self.scratch / "work/control.json").exists())

    def change_status(self, **changes):
        path = self.scratch / "work/status.json"
        document = json.loads(path.read_text("utf-8"))
        for key, value in changes.items():
            section = document
            *above, last = key.split("__")
            for name in above:
                section = section[name]
            section[last] = value
        path.write_text(json.dumps(document), "utf-8")

    def test_the_file_of_another_user_gives_no_command_and_no_line_of_its_own(self):
        self.begin().stop()
        folder = "/tmp/x; echo $(id) 'y'"
        self.change_status(state="failed", message="a disk\nto complete it, give it away\n", resumable=True,
                           resumeCommand="`id`", resumeWorkDirectory=folder)
        shown = self.status().out
        self.assertIn("\n  a disk\n  to complete it, give it away\n", shown)
        advice = shown.split("\nto complete it, give the same command with\n")[1]
        self.assertEqual(shlex.split(advice), ["--resume", "--work-dir", folder])
        self.assertNotIn("`", shown)

    def test_another_process_with_the_same_pid_is_not_the_load(self):
        self.begin().stop()
        mine = os.getpid()
        self.change_status(process__pid=mine)
        self.assertIn("load: dead", self.status(code=support.EXIT_INTERRUPTED).out)

    def test_a_load_on_another_host_is_judged_by_the_age_of_its_file(self):
        self.begin().stop()
        self.change_status(process__hostIdentity="other-0123456789ab", process__host="other",
                           heartbeatMilliseconds=int(time.time() * 1000))
        self.assertIn("load: running", self.status().out)
        for heartbeat in (int(time.time() * 1000) - 600_000, -2 ** 63):  # the last is damage
            self.change_status(heartbeatMilliseconds=heartbeat)
            shown = self.status().out
            self.assertIn("load: unknown", shown)
            self.assertIn("check on other whether process", shown)

    def test_a_stopped_process_is_silent(self):
        running = self.begin()
        running.signal(signal.SIGSTOP)
        self.change_status(heartbeatMilliseconds=int(time.time() * 1000) - 20_000)
        self.assertIn("load: silent", self.status().out)
        running.signal(signal.SIGCONT)
        running.stop()

    def test_what_is_no_work_directory(self):
        self.file("plain", "")
        (self.scratch / "empty").mkdir()
        for work, why in (("missing", "No such file"), ("plain", "is a file"), ("empty", "has no status.json")):
            self.assertIn(why, self.status(work=work, code=support.EXIT_USAGE).err)
        self.assertIn("name one work directory", self.shardload("status", code=support.EXIT_USAGE).err)
        self.file("empty/status.json", '{"statusVersion": 99}')
        self.assertIn("version 99", self.status(work="empty", code=support.EXIT_USAGE).err)
        self.file("empty/status.json", "{")
        self.status(work="empty", code=support.EXIT_SOURCE)
        self.file("empty/status.json", '{"statusVersion": 1, "load": 7, "state": [], "process": 1}')
        self.status(work="empty", code=None)

    # Metrics

    def metrics(self, text):
        """The samples, after a check that each has its HELP and TYPE before it."""
        types, samples = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, types)
                self.assertIn(f"# HELP {name} ", text)
                types[name] = kind
            elif not line.startswith("# HELP "):
                found = SAMPLE.fullmatch(line)
                self.assertTrue(found, line)
                self.assertIn(found[1], types)
                self.assertNotIn(found[1] + (found[2] or ""), samples)
                samples[found[1] + (found[2] or "")] = float(found[3])
        for name, kind in types.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        return samples

    def test_metrics(self):
        path = self.scratch / "load.prom"
        running = self.begin("--metrics-file", path, records="40k")
        self.wait_for(lambda: 'phase="load"' in path.read_text("utf-8"), "the metrics, which follow the status")
        text = path.read_text("utf-8")
        self.assertEqual(path.stat().st_mode & 0o777, 0o644)
        samples = self.metrics(text)
        self.assertEqual(samples["shardload_running"], 1)
        self.assertEqual(samples['shardload_phase{phase="load"}'], 1)
        self.assertEqual(samples["shardload_rate_limit_documents_per_second"], 2000)
        self.assertNotIn("shardload_exit_code", samples)
        documented = (support.TREE / "docs/status.md").read_text("utf-8")
        for name in set(re.findall("(\\w+){", text)):
            self.assertIn(f"`{name}`", documented)
        self.status("--rate-limit", "unlimited")
        self.assertEqual(running.wait().code, 0)
        samples = self.metrics(path.read_text("utf-8"))
        self.assertEqual(samples["shardload_running"], 0)
        self.assertEqual(samples["shardload_exit_code"], 0)
        self.assertEqual(samples["shardload_documents_total"], 40000)
        self.assertEqual(samples["shardload_rate_limit_documents_per_second"], 0)
        self.assertEqual([p.name for p in self.scratch.glob("load.prom*")], ["load.prom"])

    def test_metrics_and_run_record_agree(self):
        path = self.file("mot.txt", support.mot_text(range(1, 500)) + "no record\n" * 3)
        _, work = self.parse("--metrics-file", "m.prom", path, code=support.EXIT_REJECTS)
        samples = self.metrics((self.scratch / "m.prom").read_text("utf-8"))
        figures = support.run_record(work)["accounting"]
        status = self.figures(work)
        for metric, key, count in (("records_total", "records", figures["records"]),
                                   ("documents_total", "documents", figures["inserted"]),
                                   ("rejects_total", "rejects", figures["rejectedByParser"]),
                                   ("text_bytes_total", "textBytes", figures["textBytes"]),
                                   ("bson_bytes_total", "bsonBytes", figures["bsonBytes"])):
            self.assertEqual(samples[f"shardload_{metric}"], count)
            self.assertEqual(status[key], count)
        self.assertEqual(samples["shardload_exit_code"], support.EXIT_REJECTS)
        self.assertIn(f"see {work.resolve()}/rejects.tsv", self.status(work=work).out)

    def test_a_work_directory_in_a_source_folder_adds_no_source(self):
        self.file("data/year.txt", support.mot_text(range(1, 20)))
        self.shardload("load", "--sink", "null", "--work-dir", "data/run", "data")
        for name in ("status.json.~a1B2c3", "control.json", "run.json.~Zz9Yx8"):
            self.file(f"data/run/{name}", "{}\n")
        self.assertTrue((self.scratch / "data/run/status.json").exists())
        _, work = self.parse("data")
        self.assertEqual([source["path"] for source in support.run_record(work)["sources"]], ["data/year.txt"])

    def test_a_refused_load_keeps_the_records_of_an_earlier_one(self):
        path = self.file("year.txt", support.mot_text(range(1, 20)))
        words = ["--work-dir", "w", "--report", "r.json", "--html", "r.html"]
        self.shardload("load", "--sink", "null", *words, path)
        kept = {name: (self.scratch / name).read_bytes()
                for name in ("r.json", "r.html", "w/run.json", "w/status.json")}
        outcome = self.shardload("load", "--sink", "null", *words, "missing.txt", code=support.EXIT_SOURCE)
        self.assertIn("r.json is kept", outcome.err)
        for name, content in kept.items():
            self.assertEqual((self.scratch / name).read_bytes(), content, name)

    # Progress as JSON

    def test_progress_json_is_alone_on_standard_output(self):
        path = self.file("year.txt", support.mot_text(range(1, 500)) + "no record\n")
        outcome = self.shardload("load", "--sink", "null", "--progress", "json", path, code=support.EXIT_REJECTS)
        lines = [json.loads(line) for line in outcome.out.splitlines()]
        self.assertEqual(lines[-1]["documents"], 499)
        self.assertEqual(lines[-1]["records"], 500)
        self.assertEqual(lines[-1]["rejects"], 1)
        self.assertEqual(lines[-1]["share"], 1)
        self.assertNotIn("{", outcome.err)
        self.assertIn("= inserted", outcome.text)
        for line in lines:
            self.assertNotRegex(json.dumps([*line, *line["waitsFor"]]), r'"[^"]* [^"]*"[,\]]')
        refused = self.shardload("load", "--sink", "bson:-", "--progress", "json", path, code=support.EXIT_USAGE)
        self.assertIn("both write to standard output", refused.err)
