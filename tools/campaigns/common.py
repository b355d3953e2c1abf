# SPDX-License-Identifier: Apache-2.0
"""Shared by tools/test, tools/mutants and tools/campaign: the build folder, running one test file."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).resolve().parent.parent
TREE = TOOLS.parent
READY = "SHARDLOAD_CAMPAIGN_READY"    # set once the program runs with the Python driver

sys.path.insert(0, str(TREE / "tests"))
import servers


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


class TestRun(NamedTuple):
    """The result of a test file. A file that crashes or runs fewer tests than planned has failed."""
    passed: int
    failed: int
    skipped: int
    seconds: float
    output: str               # TAP
    errors: str               # standard error

    @property
    def state(self):
        return "failed" if self.failed else "passed" if self.passed else "skipped"


def source_of(name, tree=TREE):
    """The file of a test: `unit/test_x`, `unit/test_x:case`, `cli/test_x`, `faults/test_x:Case.test_y`."""
    path = name.partition(":")[0]
    return tree / "tests" / (path + (".c" if path.startswith("unit/") else ".py"))


def command_of(name, tree, build):
    path, _, case = name.partition(":")
    if path.startswith("unit/"):
        return [str(build / "bin" / "tests" / "unit_tests"), path.removeprefix("unit/"),
                *filter(None, [case])]
    return [sys.executable, str(tree / "tests/tap.py"), str(source_of(name, tree)), *filter(None, [case])]


def environment_of(name, tree, build, folder):
    """The environment of a test. `folder`: of the shared servers. A test in Python starts those it
    needs; a test in C finds all of them in its environment, if it includes cluster_fixture.h."""
    path = [str(tree / "tests" / name) for name in ("", "cluster", "faults")]
    found = {**os.environ, "SHARDLOAD_BUILD": str(build), "PYTHONPATH": os.pathsep.join(path),
             "PYTHONDONTWRITEBYTECODE": "1", "CMOCKA_MESSAGE_OUTPUT": "TAP", servers.FOLDER: str(folder),
             # The driver of a killed program leaves its counters in shared memory, and a later
             # process with the same process id prints a warning about them.
             "MONGOC_DISABLE_SHM": "1"}
    if name.startswith("unit/") and "cluster_fixture.h" in source_of(name, tree).read_text("utf-8"):
        for kind in servers.kinds():
            found[servers.DEPLOYMENTS[kind][0]] = servers.start(kind, folder)
    return found


def wait_for(process, limit):
    """Waits for the process; kills its session after `limit` seconds. Returns its exit status."""
    try:
        return process.wait(limit)
    except BaseException as problem:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(problem, subprocess.TimeoutExpired):
            raise
        return f"killed after {limit} s"


def run_test(name, tree, build, folder, limit, wait=wait_for):
    """Runs one test file or case (see source_of) with the shared servers in `folder`."""
    environment = environment_of(name, tree, build, folder)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command_of(name, tree, build), stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=errors, env=environment,
                                   start_new_session=True)
        status = wait(process, limit)
        seconds = time.monotonic() - begun
        output, errors = (os.pread(file.fileno(), 1 << 26, 0).decode("utf-8", "backslashreplace")
                          for file in (output, errors))
    # cmocka reports a skipped test as "not ok ... # SKIP".
    skipped = len(re.findall(r"^(?:not )?ok .*# *SKIP", output, re.M | re.I))
    passed = len(re.findall(r"^ok (?!.*# *SKIP)", output, re.M | re.I))
    failed = len(re.findall(r"^not ok (?!.*# *SKIP)", output, re.M | re.I))
    planned = sum(map(int, re.findall(r"^1\.\.(\d+)", output, re.M)))
    ran = passed + failed + skipped
    if (status != 0 and not failed) or ran < planned or ran == 0:
        failed += 1
        output += f"# exit status {status}, {ran} of {planned} tests run\n"
    return TestRun(passed, failed, skipped, seconds, output, errors)
