# SPDX-License-Identifier: Apache-2.0
"""Runs programs and measures their time and memory.

CPU seconds and peak memory are those of wait4: of the process with all its threads, and of the
children that it waited for.

A process inherits the peak memory of its parent, this program, so smaller peaks cannot be measured.
This program therefore holds no large data; `floor` returns its peak.
"""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from functools import partial
from typing import NamedTuple


class Failure(Exception):
    """The reason why a program failed, as a message for the user."""


class Finished(NamedTuple):
    """Measurements of a program that has ended."""

    code: int
    output: str
    wall: float      # seconds, from before its start to after its end
    user: float      # CPU seconds
    system: float    # CPU seconds
    peak: int        # bytes of memory
    switches: int    # voluntary context switches: how often a thread waited

    @property
    def cpu(self):
        return self.user + self.system


def environment():
    """The caller's environment, without the variables that set options of the loader."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SHARDLOAD_")}
    for key in ("SHARDLOAD_BUILD", "SHARDLOAD_MONGOD", "SHARDLOAD_MONGOS"):
        if key in os.environ:
            kept[key] = os.environ[key]
    # A killed process would leave the driver's counters in shared memory.
    kept["MONGOC_DISABLE_SHM"] = "1"
    return kept


def start(words, **more):
    """Starts a program in a new session: it does not receive the terminal's Ctrl-C, and `end` can
    kill its children, too."""
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(list(map(str, words)), env=environment(), start_new_session=True,
                            **more)


def end(process):
    """Ends a program and its children, if it still runs."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Interruption:
    """SIGINT and SIGTERM raise an exception at once or, while `held`, afterwards. The signals are
    not blocked by the system's mask, because started programs would inherit the mask."""

    held = False
    waiting = False

    @classmethod
    def listen(cls):
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # a shell's background job ignores SIGINT
                signal.signal(number, cls.arrive)

    @classmethod
    def arrive(cls, _number, _frame):
        if not cls.held:
            raise KeyboardInterrupt
        cls.waiting = True


def with_signals_held(function):
    """Calls a function that must not be interrupted: stopping servers, deleting data, starting a
    program that is not yet in the list of processes."""
    outermost, Interruption.held = not Interruption.held, True
    try:
        return function()
    finally:
        if outermost:
            Interruption.held = False
            if Interruption.waiting:
                Interruption.waiting = False
                raise KeyboardInterrupt


def remove_folder(folder):
    """Deletes a folder, even if a server that is ending still writes into it."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


def without_folder(*paths):
    """Messages about the paths (None: not given) that are in no existing folder."""
    return [f"{path}: its folder does not exist" for path in filter(None, paths)
            if not os.path.isdir(os.path.dirname(os.path.abspath(path)))]


def floor():
    """The smallest peak memory that can be measured, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rate(amount, seconds):
    """Amount per second; a Failure if the time is too short to measure."""
    if seconds <= 0:
        raise Failure("too little data to measure: use a larger --scale")
    return amount / seconds


def run_together(commands, allowed=(0,)):
    """Starts all commands at once and waits for them. A Failure has their standard error."""
    with tempfile.TemporaryFile() as errors:
        outputs = [tempfile.TemporaryFile() for _ in commands]
        begun = time.monotonic()
        processes, ended = [], []

        def begin(words, output):
            processes.append(start(words, stdout=output, stderr=errors))

        try:
            for words, output in zip(commands, outputs):
                with_signals_held(partial(begin, words, output))
            for process, output in zip(processes, outputs):
                _, status, used = os.wait4(process.pid, 0)
                wall = time.monotonic() - begun
                process.returncode = os.waitstatus_to_exitcode(status)
                output.seek(0)
                ended.append(Finished(process.returncode, output.read().decode("utf-8", "replace"),
                                      wall, used.ru_utime, used.ru_stime, used.ru_maxrss * 1024,
                                      used.ru_nvcsw))
        finally:
            for process in processes:
                end(process)
            for output in outputs:
                output.close()
        for words, one in zip(commands, ended):
            if one.code not in allowed:
                errors.seek(0)
                message = errors.read()[-2000:].decode("utf-8", "replace").strip()
                raise Failure(f"{os.path.basename(str(words[0]))}: exit status {one.code}: {message}")
        return ended


def run(words, allowed=(0,)):
    return run_together([words], allowed)[0]
