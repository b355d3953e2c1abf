# SPDX-License-Identifier: Apache-2.0
"""`shardload plan` without a cluster: the ranges of sampled estimates contain the figures of a real
load; layouts, predictions, capacity models, and messages about wrong options."""
import gzip
import json
import tarfile

import support


class Plan(support.Case):
    def plan(self, *words, code=support.EXIT_OK):
        """Returns (plan.json, the output)."""
        report = self.scratch / f"plan-{next(self._counter)}.json"
        outcome = self.shardload("plan", "--report", report, *words, code=code)
        return json.loads(report.read_text("utf-8")), outcome.out

    def refused(self, *words, contains, code=support.EXIT_USAGE, **more):
        """The command ends with this exit code, and its message contains these texts."""
        err = self.shardload("plan", *words, code=code, **more).err
        for problem in contains:
            self.assertIn(problem, err)

    def loaded(self, *words):
        """The accounting of a load of the same sources into the null sink."""
        return support.run_record(self.parse(*words, code=None)[1])["accounting"]

    def assert_within(self, estimate, accounting, most):
        """Each figure is within its range, and no range is wider than `most` to each side."""
        for name, true in (("records", accounting["records"]),
                           ("documents", accounting["inserted"]),
                           ("textBytes", accounting["textBytes"]),
                           ("bsonBytes", accounting["bsonBytes"])):
            low, value, high = estimate[f"{name}Low"], estimate[name], estimate[f"{name}High"]
            self.assertLessEqual(low, true, f"{name} in {estimate}")
            self.assertLessEqual(true, high, f"{name} in {estimate}")
            self.assertLessEqual(low, value)
            self.assertLessEqual(value, high)
            if true:
                self.assertLessEqual(high / value, 1 + most, name)
                self.assertGreaterEqual(low / value, 1 - most, name)

    def isd(self, rows, *more):
        folder = self.scratch / f"isd-{next(self._counter)}"
        folder.mkdir()
        outcome = self.run_program("shardload-datagen", "--format", "isd", "--rows", rows, *more, f"{folder}/")
        self.assertEqual(outcome.code, 0, outcome.text)
        return folder

    # Estimates

    def test_a_sample_of_a_plain_file(self):
        for dialect, seed in (("B", 41), ("E", 42), ("A", 43)):
            with self.subTest(dialect):
                (path,) = self.generate(dialect, 400000, "--seed", seed)
                plan, _ = self.plan("--blocks", 8, path)
                self.assertEqual(plan["estimate"]["blocksRead"], 8)
                self.assertGreater(plan["estimate"]["blocks"], 20)
                self.assert_within(plan["estimate"], self.loaded(path), 0.05)

    def test_rejects_are_estimated_too(self):
        (path,) = self.generate("G1", 300000, "--bad", 30000, "--seed", 44)
        accounting = self.loaded(path)
        plan, _ = self.plan("--blocks", 8, path)
        self.assert_within(plan["estimate"], accounting, 0.1)
        share = accounting["rejectedByParser"] / accounting["records"]
        self.assertGreater(share, 0.05)
        self.assertAlmostEqual(plan["estimate"]["rejectsShare"], share, delta=0.02)

    def test_a_compressed_file_is_estimated_by_its_beginning(self):
        (path,) = self.generate("B", 600000, "--gzip", "--seed", 45)
        plan, _ = self.plan("--blocks", 12, path)
        self.assertLess(plan["estimate"]["blocksRead"], 20)
        self.assert_within(plan["estimate"], self.loaded(path), 0.6)

    def test_an_archive_of_compressed_members(self):
        paths = self.generate("B", 300000, "--files", 6, "--seed", 46)
        archive = self.scratch / "all.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for path in paths:
                tar.add(path, path.name)
        plan, _ = self.plan("--blocks", 8, archive)
        self.assertLess(plan["estimate"]["blocksRead"], 20)
        self.assert_within(plan["estimate"], self.loaded(archive), 0.8)

    def test_weather_records(self):
        folder = self.isd(120000, "--stations", 3, "--seed", 47)
        plan, _ = self.plan("--blocks", 12, folder)
        self.assertLess(plan["estimate"]["blocksRead"], plan["estimate"]["blocks"])
        self.assert_within(plan["estimate"], self.loaded(folder), 0.5)

    def test_some_of_many_files(self):
        folder = self.isd(120000, "--stations", 60, "--seed", 48)
        count = sum(1 for _ in folder.iterdir())
        plan, text = self.plan("--blocks", 40, folder)
        looked_at = sum(source["sampled"] for source in plan["sources"])
        self.assertEqual(len(plan["sources"]), count)
        self.assertGreater(looked_at, 5)
        self.assertLess(looked_at, count)
        self.assertIn(f"from {looked_at} of the sources", text)
        self.assert_within(plan["estimate"], self.loaded(folder), 1)

    def test_sources_that_are_read_completely_are_exact(self):
        (path,) = self.generate("B", 30000, "--gzip", "--seed", 49)
        folder = self.isd(9000, "--stations", 4)
        for source in (path, folder):
            plan, text = self.plan(source)
            self.assert_within(plan["estimate"], self.loaded(source), 0)
            self.assertIn("exactly", text)

    def test_generated_records(self):
        words = ("--format", "ycsb", "--records", 300000, "--field-length", "20")
        plan, _ = self.plan("--blocks", 8, *words)
        self.assertEqual(plan["estimate"]["blocksRead"], 8)
        self.assert_within(plan["estimate"], self.loaded(*words), 0)
        self.assertNotIn("storedBytes", plan["sources"][0])

    def test_an_empty_file_and_a_file_of_a_header_only(self):
        path = self.file("t.txt", support.HEADER + "\n")
        plan, _ = self.plan(path)
        self.assert_within(plan["estimate"], self.loaded(path), 0)

    # Layout

    def test_shards_get_about_equal_shares(self):
        (path,) = self.generate("B", 300000, "--seed", 50)
        for shards in (1, 2, 3, 7):
            plan, text = self.plan("--shards", shards, "--blocks", 4, path)
            shares = [shard["share"] for shard in plan["shards"]]
            self.assertEqual(len(shares), shards)
            self.assertAlmostEqual(sum(shares), 1)
            self.assertLess(max(shares) - min(shares), 4 / plan["estimate"]["blocks"])
            self.assertEqual(len(plan["ranges"]), shards)
            self.assertEqual(sum(r["documents"] for r in plan["ranges"]) // 100, plan["estimate"]["documents"] // 100)
            moved = [r for r in plan["ranges"] if r["shard"] != 0]
            self.assertEqual(plan["layout"]["moves"], len(moved))
            self.assertEqual(plan["layout"]["kind"], "ranges")
            if shards > 1:
                bar = text.split("#1")[1].split("|")[1]
                self.assertEqual(len(bar), 64)
                self.assertEqual(set(bar), set("0123456"[:shards]))

    def test_layouts_of_other_shard_keys(self):
        (path,) = self.generate("B", 1000)
        plan, text = self.plan("--shards", 3, "--shard-key", '{"v": 1}', path)
        self.assertEqual(plan["layout"]["kind"], "quantiles")
        for shard in plan["shards"]:
            self.assertAlmostEqual(shard["share"], 1 / 3)
        self.assertIn("at quantiles of a sample of the key", text)
        plan, _ = self.plan("--shards", 3, "--shard-key", '{"v": "hashed"}', path)
        self.assertEqual(plan["layout"]["kind"], "hashed")
        plan, _ = self.plan("--shards", 3, "--shard-key", "none", path)
        self.assertEqual(plan["layout"]["kind"], "unsharded")

    # Times

    def record(self, **more):
        """A record of a load whose rate fell from 300 to 100 documents/s."""
        series = [{"seconds": s, "documents": d, "bsonBytes": 200 * d}
                  for s, d in ((10, 3000), (20, 5500), (30, 7500), (40, 9000), (50, 10000))]
        record = {"program": "shardload", "command": "load", "exitCode": 0,
                  "client": {"host": "elsewhere"},
                  "options": {"sink": "cluster", "index": ["{}", "{}"], "no-verify": "false"},
                  "accounting": {"inserted": 10000, "bsonBytes": 2000000},
                  "distribution": {"ranges": 3, "steps": 4, "seconds": 2.0},
                  "phases": [{"name": "connect", "seconds": 0.5}, {"name": "prepare", "seconds": 3},
                             {"name": "load", "seconds": 50}, {"name": "indexes", "seconds": 8},
                             {"name": "verify", "seconds": 2}],
                  "series": series}
        record.update(more)
        return self.file(f"run-{next(self._counter)}.json", json.dumps(record))

    def phases(self, plan):
        return {phase["name"]: phase for phase in plan["predicted"]["phases"]}

    def test_times_by_an_earlier_load(self):
        words = ("--format", "ycsb", "--records", 50000)
        plan, text = self.plan("--from", self.record(), "--shards", 3, "--index", '{"n0": 1}', *words)
        phases = self.phases(plan)
        steps = plan["layout"]["splits"] + plan["layout"]["moves"]
        self.assertAlmostEqual(phases["prepare"]["seconds"], 0.5 + 1 + steps * 0.5)
        by_documents = 50000 / 200
        by_bytes = plan["estimate"]["bsonBytes"] / 40000
        load = phases["load"]
        self.assertAlmostEqual(load["seconds"], (by_documents + by_bytes) / 2)
        self.assertAlmostEqual(load["low"], min(50000 / 300, by_bytes * 200 / 300))
        self.assertAlmostEqual(load["high"], max(50000 / 100, by_bytes * 200 / 100))
        self.assertAlmostEqual(phases["indexes"]["seconds"], 50000 * 8 / 2 / 10000)
        self.assertAlmostEqual(phases["verify"]["seconds"], 50000 * 2 / 10000)
        self.assertAlmostEqual(plan["predicted"]["seconds"], sum(phase["seconds"] for phase in phases.values()))
        self.assertIn("elsewhere", plan["predicted"]["from"])
        self.assertIn("total", text)
        plan, _ = self.plan("--from", self.record(), "--no-verify", *words)
        self.assertEqual(set(self.phases(plan)), {"prepare", "load"})

    def test_times_by_an_earlier_load_of_updates(self):
        """All its documents count, not only the inserted ones."""
        words = ("--format", "ycsb", "--records", 50000)
        plan, _ = self.plan("--from", self.record(), *words)
        record = json.loads(self.record().read_text())["accounting"]
        updates = {**record, "inserted": 10, "changed": record["inserted"] - 10}
        again, _ = self.plan("--from", self.record(accounting=updates), *words)
        self.assertEqual(again["predicted"]["seconds"], plan["predicted"]["seconds"])

    def test_times_by_a_reload_and_a_tune(self):
        words = ("--format", "ycsb", "--records", 50000)
        load = json.loads(self.record().read_text())
        reload = self.record(command="reload", load=load, accounting={}, series=[])
        direct, _ = self.plan("--from", self.record(), *words)
        plan, _ = self.plan("--from", reload, *words)
        self.assertEqual(plan["predicted"]["phases"], direct["predicted"]["phases"])
        tune = self.record(command="tune", recommended=1, best=0, settings=[
            {"rate": 900, "low": 800, "high": 990}, {"rate": 500, "low": 400, "high": 625}])
        plan, text = self.plan("--from", tune, *words)
        self.assertAlmostEqual(self.phases(plan)["load"]["seconds"], 100)
        self.assertAlmostEqual(self.phases(plan)["load"]["low"], 80)
        self.assertAlmostEqual(self.phases(plan)["load"]["high"], 125)
        self.assertIn("unknownBecause", self.phases(plan)["verify"])
        self.assertIn("verify     unknown: ", text)

    def test_impossible_rates_are_refused(self):
        words = ("--format", "ycsb", "--records", 50000)
        setting = {"rate": 500, "low": 400, "high": 625}
        for more in ({"distribution": {"ranges": 3, "steps": 4, "seconds": -2.0}},
                     {"accounting": {"inserted": 10000, "bsonBytes": 0}},
                     {"command": "tune", "recommended": 0, "settings": [{**setting, "low": 0}]},
                     {"command": "tune", "recommended": 0, "settings": [{**setting, "low": -9}]}):
            with self.subTest(more):
                outcome = self.shardload("plan", "--from", self.record(**more), *words, code=support.EXIT_USAGE)
                self.assertIn("it has a rate or a time that is zero or negative", outcome.err)

    def test_times_by_a_given_rate(self):
        plan, _ = self.plan("--rate", "1k", "--format", "ycsb", "--records", 50000)
        self.assertAlmostEqual(self.phases(plan)["load"]["seconds"], 50)
        self.assertEqual((plan["exitCode"], plan["predicted"]["from"]), (0, "--rate, which has no range"))

    def test_a_plan_reports_whether_it_is_complete(self):
        words = ("--format", "ycsb", "--records", 50000)
        plan, _ = self.plan("--from", self.record(), *words)
        self.assertIs(plan["predicted"]["complete"], True)
        plan, text = self.plan("--rate", "1k", *words)
        self.assertIs(plan["predicted"]["complete"], False)
        self.assertIn("without the phases of unknown time", text)

    def test_a_record_cannot_write_to_the_terminal(self):
        path = self.record(client={"host": "else\x1b[31mwhere"})
        plan, text = self.plan("--from", path, "--format", "ycsb", "--records", 500)
        self.assertNotIn("\x1b", text)
        self.assertIn("from else\\x1b[31mwhere", plan["predicted"]["from"])

    def test_names_are_cut_between_characters(self):
        record = json.loads(self.record().read_text())
        for begin in ("", "a"):
            name = begin + "\u00e9" * 100
            for client in ({"host": name}, {}):
                path = self.file(f"{name}.json", json.dumps({**record, "client": client}))
                plan, _ = self.plan("--from", path.name, "--format", "ycsb", "--records", 500)
                self.assertIn("\u00e9...", plan["predicted"]["from"])
            path = self.file(f"{name}.yaml", self.MODEL)
            plan, _ = self.plan("--model", path.name)
            self.assertEqual((plan["exitCode"], plan["capacity"]["model"][-4:]), (0, "\u00e9..."))

    def test_without_a_rate_no_time_is_predicted(self):
        plan, text = self.plan("--format", "ycsb", "--records", 50000)
        self.assertNotIn("predicted", plan)
        self.assertIn("No time is predicted", text)
        self.assertIn("shardload tune", text)

    def test_records_without_a_rate_are_refused(self):
        for more, why in (({"exitCode": 4}, "did not complete"),
                          ({"accounting": {"inserted": 0}}, "contains no load"),
                          ({"options": {"sink": "null"}}, "did not write to a cluster"),
                          ({"command": "verify"}, "another command"),
                          ({"command": "tune", "settings": []}, "recommends no setting"),
                          ({"command": "tune", "exitCode": 130, "recommended": 0,
                            "settings": [{"rate": 900, "low": 800, "high": 990}]},
                           "did not complete"),
                          ({"command": "reload"}, "contains no load"),
                          ({"accounting": {"inserted": 5, "alreadyStored": 6, "bsonBytes": 5}}, "stored before"),
                          ({"accounting": {"inserted": 5, "bsonBytes": 5,
                                           "earlierRuns": {"inserted": 3}}}, "--resume")):
            self.refused("--from", self.record(**more), "--format", "ycsb", "--records", 5, contains=[why])

    # Wrong options

    def test_all_wrong_options_are_reported_together(self):
        self.refused("--set", "shards=3", "--from", "a", "--rate", 5,
                     contains=["--set is for --model", "exclude each other", "no source is given"])
        self.refused("--model", "nothing-like-it", "--shards", 3, "--sweep", "a=1",
                     contains=["not a built-in model (cluster, isd-", "--shards has no effect"])
        self.refused("--model", "petabyte", "--db", "d", "--drop", "--no-verify", "--index", '{"v": 1}',
                     "--compressor", "zstd", "--username", "me", "--blocks", 3, "--trim",
                     contains=[*(f"--{name} has no effect" for name in
                                 ("db", "drop", "no-verify", "index", "compressor", "username")),
                               "--blocks describes sources", "--trim describes sources"])
        for name in ("--threads=3", "--work-dir=w", "--progress=none"):
            self.refused(name, "x", contains=[name.split("=")[0]])
        self.refused("--uri", "mongodb://127.0.0.1:1", "--shards", 2, "x",
                     contains=["--db is missing", "--collection is missing", "without --uri"])

    def test_options_of_a_cluster_need_a_uri(self):
        self.refused("-d", "mot", "-c", "tests", "--tls", "--wait", "5s", "--shard-existing", "x",
                     contains=["--db needs --uri", "--collection needs", "--tls needs", "--wait needs",
                               "--shard-existing needs"])

        source = self.file("t.csv", "a,b\n1,x\n")  # a file with options serves all commands
        self.plan("--config", self.file("c.yaml", "db: d\ncollection: c\ntls: on\nshards: 3\n"), source)

    def test_a_plan_waits_for_a_server(self):
        self.refused("--uri", "mongodb://127.0.0.1:1", "-d", "a", "-c", "b", "--wait", "1s",
                     "--format", "ycsb", "--records", 5, code=support.EXIT_CLUSTER,
                     contains=["--wait)"])

    def test_a_pipe_is_refused(self):
        self.refused("-", stdin=(support.HEADER + "\n").encode(), code=support.EXIT_SOURCE, contains=["name files"])

    def test_a_damaged_file_is_reported(self):
        whole = gzip.compress(support.mot_text(range(20000)).encode())
        self.refused(self.file("t.txt.gz", whole[:len(whole) // 2]), code=support.EXIT_SOURCE, contains=["t.txt.gz"])

    # Capacity models

    MODEL = ("title: mine\nanswer: load\ninputs:\n"
             "  documents: {value: 36M, from: published}\n"
             "  document-bytes: {value: 100, from: published}\n"
             "  shards: {value: 1, from: assumed}\n"
             "  shard-rate: {value: 1k, low: 500, from: measured, note: at home}\n"
             "  router-rate: {value: 9k, from: assumed}\n"
             "results:\n"
             "  bytes: {work: [documents, document-bytes], unit: bytes}\n"
             "  shards-time: {work: [documents], rate: [shards, shard-rate], unit: s}\n"
             "  router-time: {work: [documents], rate: [router-rate], unit: s}\n"
             "  load: {slowest: [shards-time, router-time], unit: s, published: 40k}\n")

    def result(self, plan, name="load"):
        return next(one for one in plan["capacity"]["results"] if one["name"] == name)

    def test_a_model_from_a_file_with_set_and_sweep(self):
        path = self.file("mine.yaml", self.MODEL)
        plan, text = self.plan("--model", path)
        load = self.result(plan)
        self.assertEqual((load["value"], load["high"]), (36000, 72000))
        self.assertEqual(load["decidedBy"], "shards-time")
        self.assertEqual((load["published"], load["quotient"], load["how"]), (40000, 0.9, "predicted"))
        self.assertEqual(self.result(plan, "bytes")["value"], 3.6e9)
        self.assertIn("load is 10 h 00 min (10 h 00 min to 20 h 00 min)", text)
        self.assertRegex(text, r"shard-rate +1,000 .*measured +at home")
        plan, text = self.plan("--model", path, "--set", "shards=3", "--set", "router-rate=2k",
                               "--sweep", "shards=1,2,5,100")
        self.assertEqual(self.result(plan)["decidedBy"], "router-time")
        rows = plan["capacity"]["sweep"]["rows"]
        self.assertEqual([(row["input"], row["value"]) for row in rows],
                         [(1, 36000), (2, 18000), (5, 18000), (100, 18000)])
        self.assertEqual([line.split()[0] for line in text.splitlines()[-4:]], ["1", "2", "5", "100"])

    def test_points_of_a_model(self):
        path = self.file("mine.yaml", self.MODEL + "points:\n  - {name: nine shards, set: {shards: 9}, "
                         "published: {load: 5k}}\n  - {name: two, set: {shards: 2}, fitted: {load: 9k}}\n")
        plan, text = self.plan("--model", path)
        nine, two = plan["capacity"]["points"]
        self.assertEqual((nine["value"], nine["quotient"], nine["how"]), (4000, 0.8, "predicted"))
        self.assertEqual((two["value"], two["how"]), (18000, "fitted"))
        self.assertRegex(text, r"nine shards .* 0\.80 +predicted")

    def test_a_model_cannot_write_to_the_terminal(self):
        nasty = r'"a\e[31mb\e]0;c\ad"'
        path = self.file("mine.yaml", f"about: {nasty}\n" +
                         self.MODEL.replace("mine", nasty).replace("at home", nasty))
        _, text = self.plan("--model", path)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\a", text)
        self.assertEqual(text.count("a\\x1b[31mb"), 3)

    def test_a_model_with_sources(self):
        (path,) = self.generate("B", 50000)
        plan, _ = self.plan("--model", self.file("mine.yaml", self.MODEL), path)
        inputs = {one["name"]: one for one in plan["capacity"]["inputs"]}
        self.assertEqual(inputs["documents"]["value"], 50000)
        self.assertEqual(inputs["documents"]["from"], "measured")
        self.assertNotIn("published", self.result(plan), "a figure for other data")
        self.refused("--model", "isd-hundred-shards", path, contains=["this model does not have both"])

    def test_a_model_takes_the_options_of_its_sources(self):
        model = self.file("mine.yaml", self.MODEL)
        source = self.file("t.csv", "k,v\n" + "1,2016-01-02\n" * 500)
        size = {}
        for types in ("text", "auto"):
            plan, _ = self.plan("--model", model, "--types", types, source)
            inputs = {one["name"]: one for one in plan["capacity"]["inputs"]}
            size[types] = inputs["document-bytes"]["value"]
        self.assertNotEqual(size["text"], size["auto"])
        plan, _ = self.plan("--model", model, "--id-field", "k", "--ragged", "pad", source)
        self.assertEqual(plan["capacity"]["inputs"][0]["from"], "measured")
        self.refused("--model", model, "--types", "text", contains=["--types describes sources"])

    def test_a_published_figure_is_compared_with_its_own_data_only(self):
        path = self.file("mine.yaml", self.MODEL)
        self.assertIn("published", self.result(self.plan("--model", path, "--set", "shards=3")[0]))
        for change in ("documents=3M", "document-bytes=90"):
            plan, _ = self.plan("--model", path, "--set", change)
            self.assertNotIn("published", self.result(plan))
            self.assertEqual(self.result(plan)["how"], "computed")

    def test_a_wrong_model_is_reported_with_its_line(self):
        path = self.file("wrong.yaml", "inputs:\n  documents: {value: lots}\n")
        self.refused("--model", path, contains=["wrong.yaml:2:22: expected a number"])
        path = self.file("mine.yaml", self.MODEL)
        self.refused("--model", path, "--set", "sahrds=3", "--sweep", "shards=0",
                     contains=['no input "sahrds"; its inputs are documents, document-bytes'])
        self.refused("--model", path, "--sweep", "shards=1,0", contains=["contains 0"])
        self.refused("--model", path, "--sweep", "shards=-3", contains=["--sweep shards=-3: not NAME=VALUE"])
        self.assertEqual(self.shardload("plan", "--model", path, "--quiet").out, "")
