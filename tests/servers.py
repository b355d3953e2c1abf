# SPDX-License-Identifier: Apache-2.0
"""The servers of tests and campaigns, which tools/localcluster starts and stops.

Test files share one deployment of each kind. It starts when a test first needs it, in a folder below
$SHARDLOAD_TEST_SERVERS, and runs until `stop_all`. Their programs are those of tools/localcluster, or of
`tools/test --servers`: `use_programs`."""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import unittest

LOCALCLUSTER = pathlib.Path(__file__).resolve().parent.parent / "tools" / "localcluster"
REAL = pathlib.Path(os.environ.get("SHARDLOAD_REAL") or "/nowhere")
LIMIT = 120          # seconds within which a killed server must end
FOLDER = "SHARDLOAD_TEST_SERVERS"

# Kind: the variable from which tests read the URI, and options of `localcluster up`.
DEPLOYMENTS = {
    "mongod": ("SHARDLOAD_TEST_STANDALONE_URI", ["--standalone"]),
    "replica": ("SHARDLOAD_TEST_REPLICA_URI", ["--shards", "0", "--replicas", "3"]),
    "cluster": ("SHARDLOAD_TEST_URI", ["--shards", "2"]),
}

# `tools/test --servers NAME`: the folder of its mongod below SHARDLOAD_REAL, and its deployments. Only `mongos` uses
# the mongos of that folder, which is of the same version; the project's router needs server 6.0.
PROGRAMS = {
    "4.4": ("4.4", ("mongod", "replica")),
    "5.0": ("5.0", ("mongod", "replica")),
    "6.0": ("6.0", ("mongod", "replica", "cluster")),
    "mongos": ("4.4", ("cluster",)),
}
PROGRAMS_USED = "SHARDLOAD_TEST_PROGRAMS"      # a name of PROGRAMS

# Options of all servers that tests start. The journal is written every 500 ms instead of every 100,
# which is most of the processor time of an idle server; a write that waits for the journal still has it
# written at once. WiredTiger's log files have 4 MiB instead of 100: a server that was killed reads all
# of them at its next start.
SAVING = ["--mongod-option=--journalCommitInterval=500",
          "--mongod-option=--wiredTigerEngineConfigString=log=(file_max=4MB)"]


def localcluster(verb, folder, *words):
    """Runs tools/localcluster and returns its standard output; an AssertionError if it fails."""
    done = subprocess.run([sys.executable, LOCALCLUSTER, verb, "--dir", folder, *map(str, words)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"localcluster {verb} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def use_programs(name):
    """Makes tools/localcluster start the programs with this name of PROGRAMS. An AssertionError if they are
    missing."""
    folder = REAL / PROGRAMS[name][0] / "bin"
    os.environ[PROGRAMS_USED] = name
    for variable, program in (("SHARDLOAD_MONGOD", "mongod"), ("SHARDLOAD_MONGOS", "mongos")):
        if name == "mongos" or program == "mongod":
            os.environ[variable] = str(folder / program)
            if not (folder / program).exists():
                raise AssertionError(f"SHARDLOAD_REAL does not name a folder with {folder.parent.name}/bin/{program}")


def kinds():
    """The deployments of the programs in use."""
    name = os.environ.get(PROGRAMS_USED)
    return PROGRAMS[name][1] if name else tuple(DEPLOYMENTS)


def need_deployment(kind):
    """Skips a test that needs a deployment which the programs in use do not make."""
    if kind not in kinds():
        raise unittest.SkipTest(f"--servers {os.environ[PROGRAMS_USED]} has no deployment of this kind: {kind}")


def kind_of(options):
    """The kind of deployment that `localcluster up` starts with these options."""
    words = list(map(str, options))
    if "--standalone" in words:
        return "mongod"
    return "replica" if ("--shards", "0") in zip(words, words[1:]) else "cluster"


class Servers:
    """One deployment. `options`: of `localcluster up`."""

    def __init__(self, folder, *options):
        if "--mongod" not in options:
            need_deployment(kind_of(options))
        self.folder = pathlib.Path(folder)
        self.uri = localcluster("up", folder, *options)

    def processes(self):
        return json.loads((self.folder / "cluster.json").read_text("utf-8"))["processes"]

    def process(self, name):
        return next(entry for entry in self.processes() if entry["name"] == name)

    def names(self):
        return [entry["name"] for entry in self.processes()]

    def port(self, name):
        return self.process(name)["port"]

    def signal(self, name, number):
        os.kill(self.process(name)["pid"], number)

    def kill(self, name):
        """Kills the process, and waits until it has ended."""
        handle = os.pidfd_open(self.process(name)["pid"])
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            if not select.select([handle], [], [], LIMIT)[0]:
                raise AssertionError(f"{name} does not end")
        finally:
            os.close(handle)

    def start_again(self):
        """Starts the servers that have ended, and waits until they accept connections."""
        localcluster("up", self.folder)

    def kill_and_start_again(self, name):
        self.kill(name)
        self.start_again()

    def down(self):
        localcluster("down", self.folder)


# ---- shared deployments ----

def start(kind, folder, *options):
    """Starts the shared deployment of this kind below `folder`, unless it runs. Returns its URI."""
    path = pathlib.Path(folder) / kind
    path.parent.mkdir(parents=True, exist_ok=True)
    return localcluster("up", path, *DEPLOYMENTS[kind][1], *SAVING, *options)


def shared_uri(variable):
    """The URI in the variable, or that of a shared deployment; None if there is neither."""
    if not os.environ.get(variable) and os.environ.get(FOLDER):
        (kind,) = [kind for kind, (name, _) in DEPLOYMENTS.items() if name == variable]
        need_deployment(kind)
        os.environ[variable] = start(kind, os.environ[FOLDER])
    return os.environ.get(variable)


def stop_all(folder):
    """Stops every shared deployment below `folder`."""
    for path in sorted(pathlib.Path(folder).glob("*")):
        localcluster("down", path)


def processor_seconds(folder):
    """{process id and start: seconds of processor time} of the deployments below `folder`."""
    found = {}
    for path in pathlib.Path(folder).glob("*/cluster.json"):
        for entry in json.loads(path.read_text("utf-8"))["processes"]:
            try:
                stat = pathlib.Path(f"/proc/{entry['pid']}/stat").read_text("utf-8")
            except OSError:      # the process has ended
                continue
            ticks = stat.rpartition(")")[2].split()[11:13]
            found[entry["pid"], entry["start"]] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return found
