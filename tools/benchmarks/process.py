# SPDX-License-Identifier: Apache-2.0
"""Programs run to their end, with the operating system's account of them.

CPU seconds and the peak of memory are wait4's: of the whole process, its threads, and the children
that it waited for, whatever the program itself claims.

The peak has a floor: a process is born with the peak of the one that started it, which is this one.
So nothing large is ever held here, and `floor` says how much it is.
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
    """A program that did not do what it was started for, in words."""


class Finished(NamedTuple):
    """A program that has ended."""

    code: int
    output: str
    wall: float      # seconds, from before its start to after its end
    user: float      # CPU seconds
    system: float    # CPU seconds
    peak: int        # bytes of memory
    switches: int    # times a thread waited: voluntary context switches

    @property
    def cpu(self):
        return self.user + self.system


def environment():
    """The caller's, without settings that change what the loader does."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SHARDLOAD_")}
    for key in ("SHARDLOAD_BUILD", "SHARDLOAD_MONGOD", "SHARDLOAD_MONGOS"):
        if key in os.environ:
            kept[key] = os.environ[key]
    # Counters in shared memory, which a process that is killed leaves behind.
    kept["MONGOC_DISABLE_SHM"] = "1"
    return kept


def start(words, **more):
    """A program in a session of its own: Ctrl-C at the terminal is this program's business, and
    `end` reaches the children as well."""
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(list(map(str, words)), env=environment(), start_new_session=True,
                            **more)


def end(process):
    """Ends a program and its children, if it still runs."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Interruption:
    """SIGINT and SIGTERM: an exception at once, or after what must not be cut in two. Held here and
    not by the system, whose mask a program that is started meanwhile would keep."""

    held = False
    waiting = False

    @classmethod
    def listen(cls):
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell's background jobs have it
                signal.signal(number, cls.arrive)

    @classmethod
    def arrive(cls, _number, _frame):
        if not cls.held:
            raise KeyboardInterrupt
        cls.waiting = True


def with_signals_held(function):
    """What must not be cut in two: servers that are being stopped, data that is being deleted, a
    program that has been started and is not known yet."""
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
    """Deletes it, also when a server that is just ending still writes into it."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


def floor():
    """The least peak of memory that can be seen, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rate(amount, seconds):
    """Per second; a Failure where there was nothing to measure."""
    if seconds <= 0:
        raise Failure("too little data for a figure: a larger --scale is needed")
    return amount / seconds


def run_together(commands, allowed=(0,)):
    """Starts all commands at once and waits for all. Their errors go into the Failure."""
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
                said = errors.read()[-2000:].decode("utf-8", "replace").strip()
                raise Failure(f"{os.path.basename(str(words[0]))} ended with {one.code}: {said}")
        return ended


def run(words, allowed=(0,)):
    return run_together([words], allowed)[0]
