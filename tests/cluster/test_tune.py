# SPDX-License-Identifier: Apache-2.0
"""`shardload tune` with small trials: the record agrees with the loads that were run, nothing is left
on the servers, and a load accepts the recommendation. Which setting is recommended depends on the
machine, and is not tested."""
import json
import math
import re
import signal
import time

import proxy
import support

ROWS = 6000          # of a kilobyte: a server stores 60,000 short ones in ten times the time
DIMENSIONS = ["threads", "batchSize", "compressor", "clustered", "writeConcern", "route", "wireCompression"]
SMALL = ["--try-threads", "1,2", "--try-batch-sizes", "20,200", "--trial-bytes", "4600KiB"]


class FullDisk(proxy.Proxy):
    """All servers report a disk that is nearly full."""

    def action_for(self, message):
        if proxy.command_of(message)[0] != "dbStats":
            return super().action_for(message)
        full = {"fsTotalSize": 1e9, "fsUsedSize": 0.96e9}
        return proxy.change_reply(lambda reply: {**reply, "raw": {
            shard: {**one, **full} for shard, one in reply["raw"].items()}})


class TuneCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("year.txt", support.wide_text(6, rows=ROWS // 6))
        self.work = self.scratch / "tuning"

    def words(self, *words):
        return ["tune", *self.target(), "--work-dir", self.work, *words]

    def tune(self, *words, **more):
        return self.shardload(*self.words(*words, self.path), **more)

    def record(self):
        return json.loads((self.work / "tune.json").read_text("utf-8"))

    def loads(self):
        """The run.json of each load of the tuning, in the order in which they ran."""
        folders = sorted(self.work.glob("probe-*")) + sorted(self.work.glob("trial-*"))
        return [support.run_record(folder) for folder in folders]

    def start_proxy(self):
        """Starts a proxy that counts the batches of trials. Returns (proxy, its URI)."""
        server = proxy.Proxy(support.port_of(self.uri), lambda name: ".tune." in name and not name.endswith(".sources"))
        self.addCleanup(server.close)
        return server, self.proxy_uri(server)

    def assert_counts(self, record):
        """The figures agree with each other, and there is one load for each trial."""
        self.assertEqual(list(record["dimensions"]), DIMENSIONS)
        cells = 1
        for values in record["dimensions"].values():
            cells *= len(values)
        settings = record["settings"]
        self.assertEqual(len(settings), cells)
        trials = [trial for setting in settings for trial in setting["trials"]]
        self.assertEqual(len(trials), record["trials"])
        left = [trial["secondsLeft"] for trial in sorted(trials, key=lambda trial: trial["afterSeconds"])]
        self.assertTrue(all(seconds > 0 for seconds in left[:-1]), left)
        for setting in settings:
            for trial in setting["trials"]:
                self.assertEqual(trial["documents"], record["sample"]["records"])
                self.assertTrue(0 < trial["batchMilliseconds"]["p50"] <= trial["batchMilliseconds"]["p99"])
                self.assertAlmostEqual(trial["rate"], trial["documents"] / trial["seconds"], delta=0.01 * trial["rate"])
            rates = [trial["rate"] for trial in setting["trials"]]
            if rates:
                self.assertLessEqual(min(rates), setting["rate"])
                self.assertLessEqual(setting["rate"], max(rates))
                self.assertIs("low" in setting, record["noiseMeasured"] and len(rates) > 1)
                self.assertLess(setting.get("low", 0), setting["rate"])
                self.assertLess(setting["rate"], setting.get("high", math.inf))
        for name in ("best", "recommended"):
            self.assertTrue(settings[record[name]]["trials"], name)
        logs = [[math.log(trial["rate"]) for trial in setting["trials"]] for setting in settings]
        freedom = sum(len(rates) - 1 for rates in logs if rates)
        self.assertIs(record["noiseMeasured"], freedom >= 8)
        if freedom >= 8:
            squares = sum((rate - sum(rates) / len(rates)) ** 2 for rates in logs for rate in rates)
            self.assertAlmostEqual(record["noise"], max((squares / freedom) ** 0.5, 0.001), delta=2e-4)
        loads = sorted(self.work.glob("trial-*"))
        self.assertEqual(len(loads), record["trials"] + 2 + len(record.get("storage", [])),
                         "one load for each trial, two to warm up, one for each storage figure")
        return settings


class OneServer(TuneCase, server="mongod"):
    def test_a_small_tuning(self):
        """The record agrees with the loads, the trial collections are removed, and the saved
        recommendation is a configuration file of `shardload load`."""
        self.database.t.insert_one({"_id": "mine"})
        outcome = self.tune(*SMALL, "--save", self.scratch / "fast.yaml", "--report",
                            self.scratch / "report.json", "--html", self.scratch / "tune.html")
        record = self.record()
        settings = self.assert_counts(record)
        self.assertEqual(self.collections(), ["t"])
        self.assertEqual(list(self.database.t.find()), [{"_id": "mine"}])
        self.assertEqual(record["command"], "tune")
        self.assertEqual(record["exitCode"], 0)
        self.assertEqual(record["dimensions"]["threads"], [1, 2])
        self.assertEqual(record["dimensions"]["batchSize"], [20, 200])
        self.assertEqual(record["gridTrials"], 12)
        self.assertLessEqual(record["trials"], 8)
        self.assertNotIn("storage", record)
        self.assertEqual(json.loads((self.scratch / "report.json").read_text("utf-8")), record)
        self.assertIn("recommended: ", outcome.out)
        self.assertNotIn("which settings the target supports", outcome.text)  # there is one of each
        fast = self.scratch / "fast.yaml"
        self.assertIn(f"shardload load --config {fast} ...", outcome.out)
        self.assertIn(f"shardload load --config {fast} -j auto --batch-size auto ...", outcome.out)
        self.assertIn("<svg", (self.scratch / "tune.html").read_text("utf-8"))

        chosen = settings[record["recommended"]]
        first = support.run_record(self.work / "trial-001")
        self.assertEqual(first["server"]["deployment"], "standalone")
        _, work = self.load("--config", self.scratch / "fast.yaml", self.path, collection="loaded")
        options = support.run_record(work)["options"]
        self.assertEqual(int(options["threads"]), chosen["threads"])
        self.assertEqual(int(options["batch-size"]), chosen["batchSize"])
        self.assertEqual(self.database.loaded.estimated_document_count(), ROWS)

    def test_each_trial_has_the_recorded_setting_and_documents(self):
        self.tune(*SMALL, "--search", "grid", "--repeats", 1)
        record = self.record()
        settings = self.assert_counts(record)
        self.assertEqual([len(setting["trials"]) for setting in settings], [1] * 4)
        begun, left = zip(*sorted((trial["afterSeconds"], trial["secondsLeft"])
                                  for setting in settings for trial in setting["trials"]))
        self.assertEqual(left[3], 0)
        self.assertLessEqual(left[0], 3 * (begun[1] - begun[0]) + 0.01)
        counted = {}
        sources = set()
        for folder in sorted(self.work.glob("trial-*"))[2:]:
            run = support.run_record(folder)
            key = (run["options"]["threads"], run["options"]["batch-size"])
            counted[key] = run["accounting"]["batches"]
            sources.add(run["accounting"]["bsonBytes"])
            self.assertEqual(run["exitCode"], 0)
        self.assertEqual(set(counted), {(1, 20), (1, 200), (2, 20), (2, 200)})
        self.assertGreater(counted[1, 20], 5 * counted[1, 200])
        self.assertEqual(sources, {record["sample"]["bsonBytes"]}, "not the same blocks")

    def test_each_setting_is_shown_with_the_spread_of_its_trials(self):
        outcome = self.tune(*SMALL, "--search", "grid", "--repeats", 3)
        settings = self.assert_counts(self.record())
        shown = re.findall(r"^  (\d+) threads?, ([\d,]+) per batch +(\d+) +([\d,]+) +([\d,]+) \.\. "
                           r"([\d,]+) +([\d,]+) \.\. ([\d,]+) +[\d.]+ \.\. [\d.]+ +-$", outcome.out, re.M)
        rows = [[int(figure.replace(",", "")) for figure in row] for row in shown]
        self.assertEqual([row[3] for row in rows], sorted((row[3] for row in rows), reverse=True))
        rows = {(row[0], row[1]): row[2:] for row in rows}
        self.assertEqual(len(rows), len(settings), outcome.out)
        for setting in settings:
            rates = [trial["rate"] for trial in setting["trials"]]
            expected = [len(rates), setting["rate"], min(rates), max(rates), setting["low"], setting["high"]]
            found = rows[setting["threads"], setting["batchSize"]]
            self.assertLess(max(abs(a - b) for a, b in zip(found, expected)), 1.2, (found, expected))

    def test_compressors_are_compared(self):
        outcome = self.tune("--try-threads", 2, "--try-batch-sizes", 1000, "--trial-bytes", "3MiB",
                            "--try-compressors", "none,snappy,zstd", "--suite", "mot",
                            "--index", '{"v": 1}')
        record = self.record()
        self.assert_counts(record)
        storage = {row["compressor"]: row for row in record["storage"]}
        self.assertEqual(list(storage), ["none", "snappy", "zstd"])
        for row in storage.values():
            self.assertEqual(row["documents"], record["sample"]["records"])
            self.assertGreater(row["indexBytes"], 0)
            self.assertEqual(len(row["queries"]), 4)
            self.assertTrue(all(query["medianMilliseconds"] > 0 for query in row["queries"]))
            self.assertAlmostEqual(row["ratio"], row["dataBytes"] / row["storageBytes"], delta=0.01)
        self.assertGreater(storage["none"]["storageBytes"], storage["snappy"]["storageBytes"])
        self.assertGreater(storage["snappy"]["storageBytes"], storage["zstd"]["storageBytes"])
        self.assertIn("ratio", outcome.out)
        self.assertEqual(self.collections(), [])

    def test_layouts_and_write_concerns(self):
        self.tune("--threads", 2, "--batch-size", 200, "--trial-bytes", "2MiB", "--try-clustered",
                  "--try-write-concerns", "1,majority", "--try-wire-compression", "none,zlib",
                  "--search", "grid", "--repeats", 1)
        settings = self.assert_counts(self.record())
        self.assertEqual({(s["clustered"], s["writeConcern"], s["wireCompression"])
                          for s in settings},
                         {(c, w, z) for c in (False, True) for w in ("1", "majority")
                          for z in ("none", "zlib")})
        self.assertEqual({s["threads"] for s in settings}, {2})

    def test_the_server_gets_the_layout_and_the_write_concern_of_each_trial(self):
        """Compared with the commands that the server's profiler recorded."""
        self.needs("5.3", "clustered collections")
        self.database.create_collection("system.profile", capped=True, size=64 << 20)
        self.database.command("profile", 2)
        self.tune("--threads", 2, "--batch-size", 200, "--trial-bytes", "2MiB", "--try-clustered",
                  "--try-write-concerns", "1,majority", "--try-compressors", "none,zstd", "--search",
                  "grid", "--repeats", 1)
        self.database.command("profile", 0)
        profiled = []
        for entry in self.database["system.profile"].find().sort("$natural", 1):
            command = entry.get("command", {})
            name = str(command.get("create") or command.get("insert"))
            if ".tune." not in name or name.endswith(".sources"):
                continue
            if "create" in command:
                engine = command.get("storageEngine", {}).get("wiredTiger", {})
                profiled.append({"clustered": "clusteredIndex" in command, "journaled": set(),
                                 "compressor": engine.get("configString", "").split("=")[-1],
                                 "largest": 0})
            else:
                profiled[-1]["journaled"].add(bool(command["writeConcern"].get("j")))
                profiled[-1]["largest"] = max(profiled[-1]["largest"], entry["ninserted"])
        # On a standalone server, majority means journaled.
        expected = [{"clustered": options["clustered"], "compressor": options["compressor"],
                     "journaled": {options["write-concern"] == "majority"},
                     "largest": options["batch-size"]}
                    for options in (load["options"] for load in self.loads())]
        self.assertEqual(profiled, expected)
        self.assertEqual(len({str(load) for load in expected}), 8, "not all settings were tried")

    def test_trials_with_wire_compression_send_compressed_messages(self):
        before = self.unpacked("zlib")
        self.tune("--threads", 2, "--batch-size", 200, "--trial-bytes", "2MiB",
                  "--try-wire-compression", "none,zlib", "--search", "grid", "--repeats", 2)
        sent = {"none": 0, "zlib": 0}
        for load in self.loads():
            sent[load["options"]["wire-compression"]] += load["accounting"]["bsonBytes"]
        unpacked = self.unpacked("zlib") - before
        self.assertGreater(unpacked, sent["zlib"])
        self.assertLess(unpacked, sent["zlib"] + 0.3 * sent["none"])

    def unpacked(self, compressor):
        """The uncompressed bytes of all messages that the server received with this compression."""
        network = self.client.admin.command("serverStatus")["network"]["compression"]
        return network[compressor]["decompressor"]["bytesOut"]

    def test_a_load_uses_the_recommended_wire_compression(self):
        fast = self.scratch / "fast.yaml"
        self.tune("--try-threads", 2, "--try-batch-sizes", 1000, "--trial-bytes", "2MiB",
                  "--try-wire-compression", "zlib", "--max-trials", 1, "--save", fast)
        self.assertIn("\nwire-compression: zlib\n", fast.read_text("utf-8"))
        before = self.unpacked("zlib")
        _, work = self.load("--config", fast, self.path, collection="loaded")
        record = support.run_record(work)
        self.assertEqual(record["options"]["wire-compression"], "zlib")
        self.assertGreater(self.unpacked("zlib") - before, record["accounting"]["bsonBytes"])

    def test_a_given_wire_compression_is_used_in_all_trials(self):
        before = self.unpacked("snappy")
        self.tune("--try-threads", 2, "--try-batch-sizes", 1000, "--trial-bytes", "2MiB",
                  "--wire-compression", "snappy", "--max-trials", 1)
        record = self.record()
        self.assertEqual(record["dimensions"]["wireCompression"], ["snappy"])
        run = (self.work / "trial-001/run.json").read_text("utf-8")
        self.assertEqual(run.count('"wire-compression"'), 2)
        self.assertGreater(self.unpacked("snappy") - before, record["sample"]["bsonBytes"])
        self.tune("--wire-compression", "snappy", "--try-wire-compression", "none,zlib",
                  code=support.EXIT_USAGE, message="exclude each other")

    def test_interrupted(self):
        """No collection is left, and the figures of the completed trials are recorded."""
        running = self.start("shardload", *self.words(*SMALL, "--search", "grid", "--repeats", 20, self.path))
        self.wait_for(lambda: not running.running() or "trial 2 of" in running.text(), "a trial")
        outcome = running.interrupt()
        self.assertEqual(self.collections(), [])
        record = self.record()
        self.assertEqual(record["exitCode"], support.EXIT_INTERRUPTED)
        self.assertGreater(record["trials"], 0)
        self.assertNotIn("shardload load --config", outcome.out)

    def test_collections_of_a_killed_tuning_are_removed_by_the_next(self):
        running = self.start("shardload", *self.words(*SMALL, "--search", "grid", "--repeats", 20, self.path))
        self.wait_for(lambda: not running.running() or self.collections(), "a collection")
        running.kill()
        left = self.collections()
        self.assertTrue(left)
        self.assertTrue(all(name.startswith("t.tune.") for name in left), left)
        # Similar names, of the user's own collections or of another host, are not removed.
        self.database["t.tune.mine"].insert_one({})
        self.database["t.tune.elsewhere.1.2.3"].insert_one({})
        # A host with a similar name: the pid is of a process on that host.
        host, pid, start, number = left[0].removeprefix("t.tune.").removesuffix(".sources").split(".")
        twin = "t.tune." + ".".join([host[:-1] + ("0" if host[-1] != "0" else "1"), pid, start, number])
        self.database[twin].insert_one({})
        self.tune(*SMALL, "--max-trials", 2, message=("dropping", "elsewhere"))
        self.assertEqual(self.collections(), sorted(["t.tune.elsewhere.1.2.3", "t.tune.mine", twin]))

    def test_interrupted_twice(self):
        """The thread that handles the second signal removes the collection."""
        running = self.start("shardload", *self.words(
            "--try-threads", 1, "--try-batch-sizes", 100, "--search", "grid", "--repeats", 20,
            "--trial-bytes", "1GiB", self.path))
        self.wait_for(lambda: not running.running() or "trial 1 of" in running.text(), "a trial")
        self.wait_for(lambda: not running.running() or self.collections(), "its collection")
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)
        running.wait().expect(support.EXIT_INTERRUPTED)
        self.assertEqual(self.collections(), [])

    def test_values_that_the_target_refuses_are_left_out(self):
        """Among them the first value, to which others are compared: a mongod has no three members."""
        self.tune("--try-threads", 1, "--try-batch-sizes", "20,200", "--trial-bytes", "4600KiB",
                  "--try-write-concerns", "3,1,2", "--search", "grid", "--repeats", 1,
                  message=("left out: --write-concern 3", "left out: --write-concern 2"))
        record = self.record()
        for setting in self.assert_counts(record):
            refused = setting["writeConcern"] != "1"
            self.assertEqual(setting["stopped"], "refused" if refused else "")
            self.assertEqual(len(setting["trials"]), 0 if refused else 1)
        self.assertEqual(record["gridTrials"], 2)
        self.assertEqual(record["exitCode"], 0)

    def test_a_target_that_refuses_every_value_ends_the_tuning(self):
        outcome = self.tune(*SMALL, "--try-write-concerns", "2,3", code=support.EXIT_CLUSTER)
        self.assertNotIn("left out", outcome.text)
        self.assertEqual(self.collections(), [])

    def test_a_local_error_ends_the_tuning_and_leaves_no_setting_out(self):
        """The folder of a trial cannot be created."""
        self.work.mkdir(mode=0o700)
        (self.work / "trial-004").write_text("in the way")
        outcome = self.tune(*SMALL, "--search", "grid", "--try-write-concerns", "1,majority", code=support.EXIT_USAGE)
        self.assertNotIn("left out", outcome.text)
        self.assertIn("trial-004", outcome.err)
        self.assertEqual(self.record()["trials"], 1)
        self.assertEqual(self.collections(), [])

    def test_a_query_that_fails_is_reported_without_a_figure(self):
        suite = self.file("suite.yaml", """name: two
queries:
  - name: count
    pipeline: '[{"$count": "n"}]'
  - name: broken
    pipeline: '[{"$noSuchStage": {}}]'
""")
        fast = self.scratch / "fast one.yaml"
        outcome = self.tune("--try-threads", 1, "--try-batch-sizes", 1000, "--trial-bytes", "2MiB",
                            "--try-compressors", "none,zstd", "--suite", suite, "--save", fast)
        record = self.record()
        self.assertEqual([row["compressor"] for row in record["storage"]], ["none", "zstd"])
        for row in record["storage"]:
            count, broken = row["queries"]
            self.assertGreater(count["medianMilliseconds"], 0)
            self.assertEqual(broken, {"name": "broken"})
        self.assertIn("broken was not timed", outcome.err)
        self.assertEqual(record["exitCode"], 0)
        self.assertEqual(fast.stat().st_mode & 0o777, 0o600)
        self.assertLess(outcome.out.index("saved in"), outcome.out.index("ratio"))
        self.assertEqual(outcome.out.count(f"shardload load --config '{fast}'"), 2)

    def test_threads_and_batch_size_auto_are_dimensions_of_the_search(self):
        self.tune("--threads", "auto", "--batch-size", "auto", "--trial-bytes", "2MiB", "--max-trials", 1)
        dimensions = self.record()["dimensions"]
        self.assertGreater(len(dimensions["threads"]), 1)
        self.assertGreater(len(dimensions["batchSize"]), 1)

    def test_max_time_ends_the_search_with_a_recommendation(self):
        outcome = self.tune("--threads", 2, "--try-threads", "1,2,3",
                            "--try-batch-sizes", "20,30,40,50,60,70,80,90,100,200",
                            "--trial-bytes", "4600KiB", "--search", "grid", "--repeats", 20,
                            "--max-time", "6s")
        self.assertIn("--max-time", outcome.err)
        self.assertIn("recommended: ", outcome.out)
        self.assertGreater(self.record()["trials"], 0)
        self.assertLess(self.record()["trials"], 600)
        self.assertEqual(int(support.run_record(self.work / "trial-001")["options"]["threads"]), 2)
        self.assertEqual(self.collections(), [])

    def test_a_max_time_too_short_for_a_trial_fails_without_a_recommendation(self):
        fast = self.scratch / "fast.yaml"
        self.shardload(*self.words("--format", "ycsb", "--records", "100k", "--try-threads", 1,
                                   "--try-batch-sizes", 100, "--trial-bytes", "16MiB",
                                   "--max-time", "1s", "--save", fast),
                       code=support.EXIT_USAGE,
                       message=("no trial fits into --max-time (1.0 s)", "give more time"))
        self.assertFalse(fast.exists())
        self.assertEqual((self.record()["trials"], self.record()["exitCode"]), (0, support.EXIT_USAGE))
        self.assertEqual(self.collections(), [])

    def test_settings_that_the_sample_is_too_small_for_are_left_out(self):
        outcome = self.tune("--try-threads", "1,64", "--try-batch-sizes", "100,100k",
                            "--trial-bytes", "2MiB", message="left out")
        stopped = {(s["threads"], s["batchSize"]): s["stopped"] for s in self.record()["settings"]}
        self.assertEqual(stopped[64, 100], "left out")
        self.assertEqual(stopped[64, 100000], "left out")
        self.assertNotEqual(stopped[1, 100], "left out")
        self.assertIn("give a larger --trial-bytes to include them", outcome.err)

    def test_a_source_that_each_trial_loads_completely(self):
        """It can only be read from its beginning, and is not compressed."""
        self.path = self.file("q.csv", "n,text\n" + '1,"a ""b"" c"\n' * 2000)
        outcome = self.tune("--try-threads", "1", "--try-batch-sizes", "100", message="the result is not reliable")
        self.assertNotIn("reads", outcome.err)

    def left_out(self):
        return {(s["threads"], s["batchSize"]) for s in self.record()["settings"] if s["stopped"] == "left out"}

    def test_each_small_file_counts_as_a_block(self):
        """Forty files of few MiB in total are enough blocks for eight threads."""
        header, *rows = self.path.read_text("utf-8").splitlines(keepends=True)
        for number in range(40):
            self.file(f"many/{number:02}.txt", header + "".join(rows[number::40]))
        outcome = self.shardload("tune", *self.target(), "--work-dir", self.work, "--try-threads",
                                 "1,8,64", "--try-batch-sizes", "100", "--trial-bytes", "1GiB",
                                 "--max-trials", 2, self.scratch / "many")
        self.assertEqual(self.left_out(), {(64, 100)})
        self.assertEqual(self.record()["sample"]["records"], ROWS)
        self.assertIn("give larger sources to include them", outcome.err)
        self.assertNotIn("a larger --trial-bytes", outcome.text)
        self.assertNotIn("compressed sources", outcome.text)

    def test_the_sample_is_sized_by_the_batch_bytes(self):
        """64 documents of a kilobyte fill a batch of 64 KiB, whatever --batch-size is."""
        self.shardload("tune", *self.target(), "--work-dir", self.work, "--format", "ycsb",
                       "--records", "40k", "--trial-bytes", "4600KiB", "--batch-bytes", "64KiB",
                       "--try-threads", "1,2", "--try-batch-sizes", "100,50k", "--max-trials", 2)
        self.assertLess(self.record()["sample"]["records"], 2 * 50000)
        self.assertEqual(self.left_out(), set())

    def test_a_slow_first_load_does_not_make_the_trials_too_short(self):
        server, uri = self.start_proxy()
        server.on_batch(1, proxy.call(lambda: time.sleep(4)))
        self.shardload("tune", "--uri", uri, "-d", self.database_name, "-c", "t", "--work-dir",
                       self.work, "--format", "ycsb", "--records", "3M", "--try-threads", 2,
                       "--try-batch-sizes", 1000, "--max-trials", 1)
        loads = [support.run_record(folder)["accounting"]["inserted"] for folder in sorted(self.work.glob("trial-*"))]
        record = self.record()
        self.assertEqual(len(loads), record["trials"] + 3)
        self.assertGreater(loads[2], loads[1])
        self.assertEqual(loads[2:], [record["sample"]["records"]] * (len(loads) - 2))

    def test_generated_records(self):
        self.shardload(*self.words("--format", "ycsb", "--records", "40k", *SMALL, "--max-trials", 4))
        self.assert_counts(self.record())
        self.assertEqual(self.collections(), [])


class Refused(TuneCase, server="mongod"):
    def test_all_wrong_options_are_reported_at_once(self):
        self.tune("--try-threads", "1,zero", "--try-compressors", "gzip", "--try-write-concerns",
                  "all", code=support.EXIT_USAGE,
                  message=("--try-threads", "zero", "--try-compressors", "gzip", "zstd",
                           "--try-write-concerns", "majority"))
        self.tune("--suite", "mot", "--search", "grid", "--max-trials", 3, code=support.EXIT_USAGE,
                  message=("--try-compressors", "--max-trials"))
        outcome = self.tune("--rate-limit", 5, "--no-verify", "--progress", "none", code=support.EXIT_USAGE)
        for option in ("--rate-limit", "--no-verify", "--progress"):
            self.assertIn(f"{option} does not belong to", outcome.err)
        self.tune("--index", '{"v": 1}', "--suite", "mot", code=support.EXIT_USAGE,
                  message=("--index needs --try-compressors", "--suite "))
        self.assertFalse(self.work.exists())

    def test_too_many_settings_are_refused_before_anything_is_loaded(self):
        many = ",".join(str(n) for n in range(1, 33))
        self.tune("--try-threads", many, "--try-batch-sizes", many, "--try-clustered",
                  "--try-compressors", "none,snappy,zlib,zstd", code=support.EXIT_USAGE, message="4096")
        self.assertFalse(self.work.exists())

    def test_the_recommendation_is_not_written_through_a_link(self):
        link = self.scratch / "fast.yaml"
        link.symlink_to(self.scratch / "elsewhere")
        self.tune(*SMALL, "--save", link, code=support.EXIT_USAGE, message="fast.yaml")
        self.assertFalse((self.scratch / "elsewhere").exists())
        self.assertEqual(self.collections(), [])

    def test_routes_on_a_server_without_shards_are_refused(self):
        self.tune("--try-routes", "mongos,direct", code=support.EXIT_USAGE, message="--try-routes")
        self.assertEqual(self.collections(), [])

    def test_a_pipe_is_refused(self):
        self.shardload("tune", *self.target(), "-", code=support.EXIT_SOURCE, stdin=b"anything", message="only once")
        self.assertEqual(self.collections(), [])

    def test_a_source_without_documents_is_refused(self):
        path = self.file("header.txt", support.HEADER + "\n")
        self.shardload(*self.words(path), code=support.EXIT_SOURCE, message="no documents")
        self.assertEqual(self.collections(), [])

    def test_a_missing_suite_is_reported(self):
        outcome = self.tune("--try-compressors", "none,zlib", "--suite", "nowhere.yaml", code=None)
        self.assertIn(outcome.code, (support.EXIT_USAGE, support.EXIT_SOURCE))
        self.assertIn("nowhere.yaml", outcome.err)
        self.assertFalse(self.work.exists())


class TwoShards(TuneCase):
    def use_few_documents(self):
        self.path = self.file("wide.txt", support.wide_text(5))

    def test_trials_of_the_direct_route_do_not_pass_the_router(self):
        self.use_few_documents()
        server, uri = self.start_proxy()
        self.shardload("tune", "--uri", uri, "-d", self.database_name, "-c", "t", "--work-dir",
                       self.work, "-j", 2, "--batch-size", 20, "--trial-bytes", "2MiB",
                       "--try-routes", "mongos,direct", "--search", "grid", "--repeats", 2, self.path)
        batches = {"mongos": 0, "direct": 0}
        for load in self.loads():
            batches[load["options"]["route"]] += load["accounting"]["batches"]
        self.assertGreater(batches["direct"], 0)
        self.assertEqual(server.batches, batches["mongos"])

    def test_each_thread_fills_a_batch_for_each_shard(self):
        outcome = self.tune("--try-threads", "1,2", "--try-batch-sizes", "100,1000", "--trial-bytes",
                            "4600KiB", "--max-trials", 2)
        record = self.record()
        documents = record["sample"]["records"]
        self.assertTrue(2 * 1000 * 2 <= documents < 2 * 1000 * 2 * 2, documents)
        self.assertEqual({(s["threads"], s["batchSize"]) for s in record["settings"]
                          if s["stopped"] == "left out"}, {(2, 1000)})
        self.assertIn("one for each shard", outcome.err)
        self.assertEqual(self.collections(), [])

    def test_trials_are_sharded_as_the_load_would_be(self):
        self.use_few_documents()
        small = ("-j", 2, "--batch-size", 20, "--trial-bytes", "4600KiB", "--max-trials", 1)
        self.database.t.insert_one({"_id": "here before"})
        self.tune(*small)
        self.assertEqual({"shardKey" in load for load in self.loads()}, {False})
        self.database.t.drop()
        self.shard({"v": "hashed"})
        self.work = self.scratch / "sharded"
        self.tune(*small)
        self.assertEqual({str(load.get("shardKey")) for load in self.loads()}, {"{'v': 'hashed'}"})

    def test_a_target_that_a_load_would_refuse_is_refused(self):
        self.use_few_documents()
        self.database.create_collection("t", viewOn="other", pipeline=[])
        for command, *words in (("tune",), ("reload", "--suite", "mot", "--sample", "50%")):
            self.shardload(command, *self.target(), "--work-dir", self.work, *words, self.path,
                           code=support.EXIT_CLUSTER, message="is a view, not a collection")
        self.assertEqual(self.collections(), ["system.views", "t"])

    def test_no_trial_fills_a_disk(self):
        self.use_few_documents()
        server = FullDisk(support.port_of(self.uri))
        self.addCleanup(server.close)
        for command, *words in (("tune",), ("reload", "--suite", "mot", "--sample", "50%")):
            self.shardload(command, "--uri", self.proxy_uri(server), "-d", self.database_name, "-c", "t", "--work-dir",
                           self.scratch / command, *words, self.path, code=support.EXIT_CLUSTER,
                           message=("the disk of", "40.0 MB free of 1.0 GB", "a full disk ends the server"))
        self.assertEqual(self.collections(), [])

    def test_trials_are_spread_over_the_shards_and_the_balancer_is_restored(self):
        self.use_few_documents()
        self.client.admin.command("balancerStart")
        self.tune("-j", 2, "--batch-size", 20, "--trial-bytes", "4600KiB", "--try-routes",
                  "mongos,direct", "--search", "grid", "--repeats", 2)
        record = self.record()
        self.assert_counts(record)
        self.assertEqual([(s["route"], len(s["trials"])) for s in record["settings"]], [("mongos", 2), ("direct", 2)])
        self.assertEqual(record["server"]["deployment"], "sharded cluster")
        for folder in self.work.glob("trial-*"):
            shards = support.run_record(folder)["topology"]
            self.assertGreaterEqual(len(shards), 2)
        self.assertEqual(self.collections(), [])
        self.assertEqual(self.balancer_mode(), "full")
        left = [entry["_id"] for entry in self.client.config.collections.find()
                if entry["_id"].startswith(self.database_name)]
        self.assertEqual([name for name in left if support.catalog_entry(self.client, name)], [])

    def test_interrupted(self):
        self.use_few_documents()
        self.client.admin.command("balancerStart")
        running = self.start("shardload", *self.words(
            "-j", 2, "--try-batch-sizes", "10,20", "--trial-bytes", "4600KiB", "--search", "grid",
            "--repeats", 20, self.path))
        self.wait_for(lambda: not running.running() or "trial 1 of" in running.text(), "a trial")
        running.signal(signal.SIGTERM)
        running.wait().expect(support.EXIT_INTERRUPTED)
        self.assertEqual(self.collections(), [])
        self.assertEqual(self.balancer_mode(), "full")
