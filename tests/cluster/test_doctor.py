# SPDX-License-Identifier: Apache-2.0
"""`shardload doctor` on real servers: standalone, replica set, cluster; with a user who may do little, a
member that does not answer, a secondary that lags, and locked writes."""
import json
import re
import signal

import secure_servers
import servers
import support
from support import EXIT_CLUSTER, EXIT_OK, EXIT_USAGE, EXIT_VERIFICATION, TREE
from test_privileges import documented_roles

ALWAYS = {"deployment", "versions", "compatibility", "members", "disk room", "cache", "operations", "connections",
          "leftovers", "privileges", "latency", "bandwidth", "compression", "clock"}
REPLICATED = {"replication lag", "oplog", "flow control"}
SHARDED = {"balancer", "shards"}


class DoctorCase:
    """For classes with `uri`."""

    def doctor(self, *words, uri=None, **more):
        """Runs doctor. Returns {check: its findings}; checks the exit code against the verdicts."""
        outcome = self.shardload("doctor", "--uri", uri or self.uri, "--json", *words, code=None, **more)
        self.assertIn(outcome.code, (EXIT_OK, EXIT_VERIFICATION), outcome.text)
        record = json.loads(outcome.out)
        verdicts = [finding["verdict"] for finding in record["checks"]]
        self.assertEqual(outcome.code, EXIT_VERIFICATION if "problem" in verdicts else EXIT_OK)
        self.assertEqual(record["exitCode"], outcome.code)
        self.assertEqual(record["verdicts"], {"ok": verdicts.count("ok"),
                                              "warnings": verdicts.count("warning"),
                                              "problems": verdicts.count("problem"),
                                              "unknown": verdicts.count("unknown")})
        found = {}
        for finding in record["checks"]:
            self.assertTrue(finding["figure"], finding)
            found.setdefault(finding["check"], []).append(finding)
        return found

    def verdict(self, found, check):
        """The verdict of a check with one finding."""
        (finding,) = found[check]
        return finding["verdict"]


class Standalone(DoctorCase, support.ClusterCase, server="mongod"):
    def test_each_check_has_a_figure(self):
        found = self.doctor("-d", self.database_name, "-c", "t")
        self.assertEqual(set(found), ALWAYS)
        self.assertIn("without authentication", found["privileges"][0]["figure"])
        self.assertEqual(self.database.list_collection_names(), [], "it only reads")
        values = found["latency"][0]["values"]
        self.assertLessEqual(values["medianMs"], values["p95Ms"])
        self.assertGreater(found["bandwidth"][0]["values"]["bytesPerSecond"], 0)
        (server,) = found["versions"][0]["values"]["servers"]
        self.assertEqual((server["role"], server["version"]), ("primary", self.client.server_info()["version"]))

    def test_the_page_fits_80_columns_and_sums_up(self):
        outcome = self.shardload("doctor", "--uri", self.uri, code=None)
        lines = outcome.out.splitlines()
        self.assertEqual([line for line in lines[1:] if len(line) > 79], [])
        self.assertRegex(lines[0], r"^mongodb://\S+: standalone, server [\d.]+$")
        self.assertRegex(lines[-1], r"^\d+ problems?, \d+ warnings?, \d+ unknown, \d+ ok$")
        self.assertRegex(outcome.out, r"(?m)^  (ok|warning) +latency +median [\d.]+ ms, 95th percentile")

    def test_the_room_on_the_disk_is_compared_with_the_sources(self):
        found = self.doctor(self.file("t.csv", "id,name\n" + "1,x\n" * 1000))
        values = found["disk room"][0]["values"]
        self.assertLess(0, values["addedBytesLow"])
        self.assertLess(values["addedBytesLow"], values["addedBytesHigh"])
        huge = self.doctor("--format", "ycsb", "--records", "100G", "--document-size", "2KB", "--blocks", 4)
        self.assertEqual(self.verdict(huge, "disk room"), "problem")
        self.assertIn("full disk", huge["disk room"][0]["meaning"])

    def test_with_write_documents_are_inserted_and_dropped_again(self):
        found = self.doctor("--write", "-d", self.database_name)
        self.assertEqual(self.verdict(found, "inserts"), "ok")
        self.assertEqual(self.database.list_collection_names(), [])
        self.assertIn("--db", self.shardload("doctor", "--uri", self.uri, "--write", code=EXIT_USAGE).err)

    def test_what_ended_commands_have_left_is_listed(self):
        database = self.client[self.database_name]
        words = ["-d", self.database_name]
        self.assertEqual(self.verdict(self.doctor(*words), "leftovers"), "ok")
        left = ["shardload-restore-0123456789abcdef", "t.drill.host-1.12.345.1",
                "t.tune.host-1.12.345.1", "shardload.doctor.7"]
        for name in [*left, "shardload-restore-notes", "t.sources", "u.sources", "v", "v.sources", "drill.1"]:
            database[name].insert_one({"_id": "counter" if name in ("t.sources", "v.sources") else 1, "last": 3})
        finding = self.doctor(*words)["leftovers"][0]
        self.assertEqual(finding["verdict"], "warning")
        self.assertEqual(sorted(finding["values"]["collections"]),
                         sorted(f"{self.database_name}.{name}" for name in left))
        everywhere = self.doctor()["leftovers"][0]["values"]["collections"]
        self.assertLessEqual(set(finding["values"]["collections"]), set(everywhere))

    def test_the_registry_of_a_renamed_collection_is_to_be_kept(self):
        """doctor advised to drop it. Then no load into the collection was possible any more."""
        for name in ("renamed", "dropped"):
            self.load(self.file("t.csv", "id,v\n1,2\n"), collection=name)
        self.database.renamed.rename("live")
        self.database.drop_collection("dropped")
        (finding,) = self.doctor("-d", self.database_name)["leftovers"]
        self.assertEqual((finding["verdict"], finding["figure"]), (
            "warning", f"{self.database_name}.renamed.sources is the registry of live, which was renamed; mongosh: "
            f"db.adminCommand({{renameCollection: '{self.database_name}.renamed.sources', "
            f"to: '{self.database_name}.live.sources'}})"))
        self.assertIn("do not drop", finding["meaning"])

    def test_an_upgrade_that_is_not_complete_is_a_warning(self):
        def change(version):
            more = {} if self.client.server_info()["versionArray"][0] < 7 else {"confirm": True}
            self.client.admin.command("setFeatureCompatibilityVersion", version, **more)
        now = self.client.admin.command(
            "getParameter", featureCompatibilityVersion=1)["featureCompatibilityVersion"]["version"]
        (finding,) = self.doctor()["compatibility"]
        self.assertEqual((finding["verdict"], finding["values"]["version"]), ("ok", now))
        self.addCleanup(change, now)
        before = {"4.4": "4.2", "5.0": "4.4"}.get(now, f"{int(now.partition('.')[0]) - 1}.0")
        change(before)
        (finding,) = self.doctor()["compatibility"]
        self.assertEqual((finding["verdict"], finding["values"]["version"]), ("warning", before))
        self.assertIn("setFeatureCompatibilityVersion", finding["meaning"])

    def test_a_server_that_cannot_be_reached_is_an_error(self):
        uri = f"mongodb://{support.HOST}:{support.free_port()}/"
        self.shardload("doctor", "--uri", uri, code=EXIT_CLUSTER, message="connection refused")


class ReplicaSet(DoctorCase, support.ClusterCase, server="replica"):
    def test_members_and_their_lag_are_shown(self):
        found = self.doctor()
        self.assertEqual(set(found), ALWAYS | REPLICATED)
        self.assertEqual(found["members"][0]["values"]["members"], 3)
        self.assertTrue(found["members"][0]["values"]["primary"])
        roles = sorted(server["role"] for server in found["versions"][0]["values"]["servers"])
        self.assertEqual(roles, ["primary", "secondary", "secondary"])
        self.assertGreaterEqual(found["replication lag"][0]["values"]["lagSeconds"], 0)

    def test_the_window_of_the_oplog_is_compared_with_the_load(self):
        """Exact figures: the size of the oplog, and what the planned load writes into it."""
        (plain,) = self.doctor()["oplog"]
        size = self.client.local.command("collStats", "oplog.rs")["maxSize"]
        self.assertEqual(plain["values"]["sizeBytes"], size)
        oplog = self.client.local["oplog.rs"]
        first, last = (next(oplog.find().sort("$natural", order).limit(1))["ts"].time for order in (1, -1))
        self.assertAlmostEqual(plain["values"]["windowSeconds"], last - first, delta=60)
        self.assertIn(f": {plain['values']['windowSeconds'] / 3600:.1f} hours,", plain["figure"])
        large = ["--format", "ycsb", "--records", "100G", "--document-size", "2KB", "--blocks", 4]
        (over,) = self.doctor(*large)["oplog"]
        self.assertEqual(over["verdict"], "warning")
        self.assertIn("% of the load", over["meaning"])
        self.assertGreater(over["values"]["addedBytes"], size)
        (slow,) = self.doctor(*large, "--rate-limit", 1)["oplog"]
        self.assertEqual(slow["verdict"], "ok")
        (fast,) = self.doctor(*large, "--rate-limit", "100k")["oplog"]
        self.assertEqual(fast["verdict"], "warning")
        self.assertIn("at the planned rate it holds the last", fast["meaning"])
        self.assertAlmostEqual(slow["values"]["windowInLoadSeconds"],
                               1e5 * fast["values"]["windowInLoadSeconds"], delta=1)
        self.assertAlmostEqual(slow["values"]["windowInLoadSeconds"], size / 2000, delta=size / 20000)


class Cluster(DoctorCase, support.ClusterCase):
    def test_routers_and_shards_are_examined(self):
        self.clear_balancer()
        found = self.doctor("-d", self.database_name, "-c", "t")
        self.assertLessEqual(ALWAYS | SHARDED, set(found))
        self.assertEqual({finding["values"]["shard"] for finding in found["members"]
                          if "values" in finding}, {"s0", "s1"})
        for check in ("cache", "oplog", "compatibility"):
            self.assertEqual({finding["values"]["shard"] for finding in found[check]}, {"s0", "s1"})
        self.assertEqual(found["shards"][0]["values"], {"count": 2, "draining": ""})
        self.assertEqual(found["balancer"][0]["values"]["mode"], "full")

    def test_a_server_of_a_cluster_is_a_problem(self):
        self.assertEqual(self.verdict(self.doctor(), "deployment"), "ok")
        found = self.doctor(uri=f"mongodb://{self.shard_hosts()['s0']}/")
        self.assertEqual(self.verdict(found, "deployment"), "problem")
        self.assertIn("is shard s0 of the cluster", found["deployment"][0]["figure"])

    def test_the_balancers_window_and_its_holders_are_shown(self):
        settings = self.client.config.settings
        self.clear_balancer()
        self.addCleanup(settings.update_one, {"_id": "balancer"}, {"$unset": {"activeWindow": 1}})
        settings.update_one({"_id": "balancer"},
                            {"$set": {"activeWindow": {"start": "22:00", "stop": "05:00"}}},
                            upsert=True)
        found = self.doctor()
        self.assertIn("window 22:00 to 05:00", found["balancer"][0]["figure"])


class RestrictedUser(DoctorCase, support.Case):
    PASSWORD = "Xyzzy7"

    @classmethod
    def setUpClass(cls):
        support.program("shardload")
        secure_servers.start_for_class(cls)
        cls.uri = cls.server.uri

    def user(self, *roles):
        name = f"user{next(self._counter)}{self.id().rpartition('.')[2]}"
        self.root.admin.command("createUser", name, pwd=self.PASSWORD, roles=list(roles))
        return ["-u", name, "-p", self.PASSWORD, "-d", "mot", "-c", "tests"]

    def test_what_is_not_permitted_is_unknown_with_the_privilege(self):
        found = self.doctor(*self.user())
        self.assertEqual(self.verdict(found, "deployment"), "unknown")
        for check, privilege in (("cache", "serverStatus on the cluster"),
                                 ("operations", "inprog on the cluster"),
                                 ("compatibility", "getParameter on admin"),
                                 ("leftovers", "listCollections on database mot"),
                                 ("disk room", "dbStats on admin")):
            with self.subTest(check):
                self.assertEqual(self.verdict(found, check), "unknown")
                self.assertIn("lacks the privilege " + privilege, found[check][0]["figure"])
        self.assertEqual(self.verdict(found, "latency"), "ok")
        load = found["privileges"][0]
        self.assertEqual(load["verdict"], "problem")
        self.assertEqual(sorted(load["values"]["lacking"]), sorted(
            f"{action} on {'.'.join(filter(None, privilege['resource'].values()))}"
            for privilege in documented_roles()["shardloadLoad"]["privileges"] for action in privilege["actions"]))

    def test_the_documented_roles_are_recognised(self):
        roles = documented_roles()
        for name in ("shardloadLoad", "shardloadPrepare"):
            self.root.admin.command(roles[name])
            self.addCleanup(self.root.admin.command, "dropRole", name)
        load, prepare = self.doctor(*self.user("shardloadLoad"))["privileges"]
        self.assertEqual((load["verdict"], prepare["verdict"]), ("ok", "warning"))
        self.assertIn("dropCollection on mot.tests", prepare["values"]["lacking"])
        load, prepare = self.doctor(*self.user("shardloadPrepare"))["privileges"]
        self.assertEqual((load["verdict"], prepare["verdict"]), ("ok", "ok"))
        load, prepare = self.doctor(*self.user("root"))["privileges"]
        self.assertEqual((load["verdict"], prepare["verdict"]), ("ok", "ok"))

    def test_the_role_cluster_monitor_shows_everything(self):
        found = self.doctor(*self.user("clusterMonitor", {"role": "read", "db": "mot"}))
        self.assertEqual([check for check, findings in found.items() if findings[0]["verdict"] == "unknown"], [])


class Disturbed(DoctorCase, support.Case):
    """A replica set of its own, whose members are stopped."""

    @classmethod
    def setUpClass(cls):
        support.program("shardload")
        folder = secure_servers.folder_of_tests(cls)
        cls.server = servers.Servers(
            folder / "server", "--shards", "0", "--replicas", "3", "--cache", "0.25",
            "--mongod-option=--setParameter=enableTestCommands=1")
        cls.addClassCleanup(cls.server.down)
        cls.uri = cls.server.uri
        cls.client = support.pymongo.MongoClient(cls.uri)
        cls.addClassCleanup(cls.client.close)

    def secondary(self):
        """The name of a secondary's process, and a client connected to it."""
        hosts = support.hello(self.client)
        host = next(host for host in hosts["hosts"] if host != hosts["primary"])
        name = next(name for name in self.server.names() if self.server.port(name) == int(host.rpartition(":")[2]))
        client = support.pymongo.MongoClient(f"mongodb://{host}/", directConnection=True)
        self.addCleanup(client.close)
        return name, client

    def await_verdict(self, check, verdict):
        found = []

        def is_found():
            self.client.test.t.insert_one({})
            found[:] = self.doctor("--timeout", 3)[check]
            return len(found) == 1 and found[0]["verdict"] == verdict
        self.wait_for(is_found, f"{check}: {verdict}")
        return found[0]

    def test_locked_writes_are_a_problem(self):
        self.client.admin.command("fsync", lock=True)
        self.addCleanup(self.client.admin.command, "fsyncUnlock")
        finding = self.await_verdict_without_writes("operations")
        self.assertIn("WRITES ARE LOCKED", finding["figure"])
        self.assertIn("fsyncUnlock", finding["meaning"])

    def await_verdict_without_writes(self, check):
        found = self.doctor("--timeout", 5)
        self.assertEqual(self.verdict(found, check), "problem", found)
        return found[check][0]

    def test_a_member_that_does_not_answer_is_a_warning(self):
        name, _ = self.secondary()
        self.server.signal(name, signal.SIGSTOP)
        self.addCleanup(self.server.signal, name, signal.SIGCONT)
        found = self.doctor("--timeout", 2)
        self.assertEqual(self.verdict(found, "members"), "warning")
        self.assertIn(str(self.server.port(name)), found["members"][0]["figure"])

    def test_a_secondary_that_lags_is_a_warning(self):
        """`tune` shows the lag after each trial."""
        _, client = self.secondary()
        fail = {"configureFailPoint": "rsSyncApplyStop"}
        client.admin.command({**fail, "mode": "alwaysOn"})
        self.addCleanup(client.admin.command, {**fail, "mode": "off"})
        finding = self.await_verdict("replication lag", "warning")
        self.assertGreaterEqual(finding["values"]["lagSeconds"], 10)
        source = self.file("wide.txt", support.wide_text(5))
        outcome = self.shardload("tune", "--uri", self.uri, "-d", "test", "-c", "tuned", "-j", 2,
                                 "--batch-size", 20, "--trial-bytes", "4600KiB", "--max-trials", 1,
                                 "--work-dir", self.scratch / "tune", source)
        (setting,) = json.loads((self.scratch / "tune/tune.json").read_text())["settings"]
        lag = setting["trials"][0]["replicationLagSeconds"]
        self.assertGreaterEqual(lag, 10)
        self.assertRegex(outcome.out, rf" {lag:.0f}\n")


class Documentation(support.Case):
    def test_each_check_is_in_the_table_of_the_page(self):
        page = (TREE / "docs/doctor.md").read_text().partition("## The checks")[2]
        checks = re.findall(r'\{"([^"]+)", \.(?:all|each) =', (TREE / "src/doctor/checks.c").read_text())
        self.assertEqual(re.findall(r"^\| ([a-z ]+) \| ", page, re.M)[1:], checks)
