# SPDX-License-Identifier: Apache-2.0
"""What both programs stand on: a built tree, servers of their own, and one test run among them."""
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

# Deployments, the variables that tests find them by, and what tools/localcluster makes of them.
DEPLOYMENTS = {
    "mongod": ("SHARDLOAD_TEST_STANDALONE_URI", ["--standalone"]),
    "replica": ("SHARDLOAD_TEST_REPLICA_URI", ["--shards", "0", "--replicas", "3"]),
    "cluster": ("SHARDLOAD_TEST_URI", ["--shards", "2"]),
}
NEEDS_SERVERS = re.compile(r"^(cluster|faults)/|^unit/test_(cluster|load)|^cli/test_(errors|load)")


class Failure(Exception):
    """Said to the user in one line."""


def with_driver():
    """Starts the program again in the Python environment of the tests, if it does not run there."""
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
    """SIGTERM and SIGHUP end the program as Ctrl-C does: servers are stopped on the way out."""
    def end(number, frame):
        raise KeyboardInterrupt
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


class Servers:
    """One of each deployment, stopped at the end of a `with`."""

    def __init__(self, folder, kinds=tuple(DEPLOYMENTS), more=()):
        self.folder, self.kinds, self.more = folder, kinds, more
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
                self.localcluster("up", kind, *DEPLOYMENTS[kind][1], *self.more)
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


class Ran(NamedTuple):
    state: str                # passed, failed, skipped, hung
    seconds: float
    output: str


def run_test(name, tree, build, environment, limit):
    """One test: `unit/test_x`, `cli/test_x`, `faults/test_x:Case.test_y` and so on."""
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
    return Ran(state, time.monotonic() - begun, output)
