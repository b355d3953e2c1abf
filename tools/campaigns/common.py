# SPDX-License-Identifier: Apache-2.0
"""Shared by tools/mutants and tools/campaign: the build folder, test servers, running one test."""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).resolve().parent.parent
TREE = TOOLS.parent
READY = "SHARDLOAD_CAMPAIGN_READY"    # set once the program runs with the Python driver

# deployment: (variable from which the tests read its URI, options of `tools/localcluster up`)
DEPLOYMENTS = {
    "mongod": ("SHARDLOAD_TEST_STANDALONE_URI", ["--standalone"]),
    "replica": ("SHARDLOAD_TEST_REPLICA_URI", ["--shards", "0", "--replicas", "3"]),
    "cluster": ("SHARDLOAD_TEST_URI", ["--shards", "2"]),
}
NEEDS_SERVERS = re.compile(r"^(cluster|faults)/|^unit/test_(cluster|load)|^cli/test_(errors|load)")


class Failure(Exception):
    """An error that the program prints as one line, without a traceback."""


def ensure_driver():
    """Restarts the program in the tests' Python environment if it does not run in it yet."""
    if os.environ.get(READY):
        return
    done = subprocess.run(["bash", "-c", f". '{TOOLS}/setup.sh' && python_with_driver"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(2)
    os.environ[READY] = "1"
    python = done.stdout.strip()
    os.execv(python, [python, *sys.argv])


def build_folder():
    return Path(os.environ.get("SHARDLOAD_BUILD") or TREE / "build")


def stop_on_signals():
    """Makes SIGTERM and SIGHUP end the program like Ctrl-C, so that its servers are stopped."""
    def end(number, frame):
        raise KeyboardInterrupt
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


class Servers:
    """One deployment of each of `kinds`, started and stopped by a `with` statement.
    `options` are passed to `tools/localcluster up`."""

    def __init__(self, folder, kinds=tuple(DEPLOYMENTS), options=()):
        self.folder, self.kinds, self.options = folder, kinds, options
        self.uris = {}

    def localcluster(self, verb, kind, *words):
        done = subprocess.run([sys.executable, TOOLS / "localcluster", verb, "--dir",
                               self.folder / kind, *words], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 and verb != "down":
            raise Failure(f"localcluster {verb} {kind}: {done.stderr.strip()}")
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            for kind in self.kinds:
                self.localcluster("up", kind, *DEPLOYMENTS[kind][1], *self.options)
                self.uris[kind] = self.localcluster("uri", kind)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for kind in self.kinds:
            if (self.folder / kind).exists():
                self.localcluster("down", kind)

    @property
    def environment(self):
        return {DEPLOYMENTS[kind][0]: uri for kind, uri in self.uris.items()}


class TestRun(NamedTuple):
    state: str                # passed, failed, skipped, hung
    seconds: float
    output: str


def run_test(name, tree, build, environment, limit):
    """Runs one test: `unit/test_x`, `cli/test_x`, `faults/test_x:Case.test_y`; a test that takes
    longer than `limit` seconds is killed ("hung")."""
    path, _, case = name.partition(":")
    if path.startswith("unit/"):
        words = [build / "bin" / "tests" / path.removeprefix("unit/")]
    else:
        words = [sys.executable, tree / "tests" / f"{path}.py", *filter(None, [case])]
    environment = {**os.environ, "SHARDLOAD_BUILD": str(build), "PYTHONPATH": str(tree / "tests"),
                   "PYTHONDONTWRITEBYTECODE": "1", "CMOCKA_MESSAGE_OUTPUT": "TAP",
                   "MONGOC_DISABLE_SHM": "1", **environment}
    begun = time.monotonic()
    process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="backslashreplace", env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        state = "passed" if process.returncode == 0 else "failed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        state = "hung"
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    # cmocka reports a skipped test as "not ok ... # SKIP".
    if state == "passed" and not re.search(r"^ok (?!.*# *SKIP)", output, re.M | re.I):
        state = "skipped"
    return TestRun(state, time.monotonic() - begun, output)
