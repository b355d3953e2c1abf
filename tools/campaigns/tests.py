# SPDX-License-Identifier: Apache-2.0
"""The part of tools/test that runs test files, several at once, and prints their results.

Each job is a process with shared servers of its own (tests/servers.py). It adopts the processes that
its tests leave behind, so that the processor time of a file includes that of every program and server
that it starts, and no server survives the job."""
import argparse
import contextlib
import ctypes
import multiprocessing
import os
import queue as queues
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from .common import (TREE, Failure, TestRun, build_folder, run_test, servers, source_of,
                     stop_on_signals)

PR_SET_CHILD_SUBREAPER = 36
JOB_BYTES = 1.5e9             # memory of the servers of one job
LIMITS = {"unit": 300}        # seconds that a test file may take, by kind
LIMIT = 900                   # ... in Python
SLOWEST = 10
MOST_RETRIED = 3              # files that --retry repeats; more than these do not fail by chance
KINDS = ("faults", "cluster", "cli", "unit")      # the slowest kind first
LONG = {"cli/test_fuzz", "faults/test_silent"}    # short files that run for long


class Result(NamedTuple):
    name: str
    run: TestRun
    processor: float          # seconds of processor time
    left: list                # names of programs that it left running


# ---- the files ----

def label_of(name):
    """The path of a test within the tree; NAMEs are looked up in it."""
    return str(source_of(name).relative_to(TREE)) + "".join(name.partition(":")[1:])


def all_tests():
    return [f"{kind}/{path.stem}" for kind in KINDS for path in (TREE / "tests" / kind).glob("test_*.*")
            if path.suffix == (".c" if kind == "unit" else ".py")]


def select(words, programs=None):
    """The tests whose label contains one of the words, all if there is none; slow ones first, so that
    no long test is started last, and fault tests, which mostly wait, beside others. A word may end in
    ":CASE". With --servers: those that use the shared servers."""
    chosen = set()
    tests = [name for name in all_tests() if not programs or (uses_servers(name) and "/test_real_" not in name)]
    for word in words or [""]:
        part, colon, case = word.partition(":")
        found = {name + colon + case for name in tests if part in label_of(name)}
        if not found:
            raise Failure(f"no test file's path contains: {part}")
        chosen |= found
    order = sorted(chosen, key=lambda name: (KINDS.index(name.partition("/")[0]), name not in LONG,
                                             -source_of(name).stat().st_size))
    faults = sum(name.startswith("faults/") for name in order)
    return [name for pair in zip_longest(order[:faults], order[faults:]) for name in pair if name]


def uses_servers(name):
    return name.startswith(("cluster/", "faults/")) or "cluster_fixture.h" in source_of(name).read_text()


# ---- one job ----

def wait_and_adopt(process, limit):
    """Waits for the process, and for adopted ones that end meanwhile, so that none of them stays a
    zombie. Kills its session after `limit` seconds. Returns the exit status."""
    end = time.monotonic() + limit
    late = ""
    try:
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == process.pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return late or process.returncode
            if ended == 0:
                if time.monotonic() > end and not late:
                    late = f"killed after {limit} s"
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.02)
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def end_adopted(folder):
    """Kills the adopted processes that are no shared servers. Returns their names."""
    shared = {pid for pid, _ in servers.processor_seconds(folder)}
    names = []
    for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split():
        if int(word) not in shared:
            names.append(Path(f"/proc/{word}/comm").read_text("utf-8").strip())
            os.kill(int(word), signal.SIGKILL)
            os.waitpid(int(word), 0)
    return names


def processor_time(folder):
    """Seconds of processor time: of this process's children that have ended, and of the shared servers
    that run. A server that ends moves from the second sum to the first."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + sum(servers.processor_seconds(folder).values())


def run_one(name, folder, rounds):
    before = processor_time(folder)
    limit = LIMITS.get(name.partition("/")[0], LIMIT * rounds)
    run = run_test(name, TREE, build_folder(), folder, limit, wait_and_adopt)
    left = end_adopted(folder)
    return Result(name, run, processor_time(folder) - before, left)


def work(folder, queue, position, results, rounds):
    """Body of a job's process: runs tests of the queue until there are none left."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The main process ends the jobs. Not SIG_IGN, which the tests' programs would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        while True:
            with position.get_lock():
                number = position.value
                position.value += 1
            if number >= len(queue):
                break
            if not uses_servers(queue[number]):
                servers.stop_all(folder)             # idle servers need processor time
            results.put(run_one(queue[number], folder, rounds))
    except KeyboardInterrupt:
        pass
    except BaseException:  # noqa: BLE001 (reported by the main process)
        results.put(traceback.format_exc())
    finally:
        servers.stop_all(folder)
        end_adopted(folder)


# ---- all jobs ----

def default_jobs():
    """Two jobs for each processor, or fewer when memory is short: tests with servers wait half of the
    time, most fault tests longer."""
    free = int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text("ascii"))[1]) * 1024
    return max(1, min(2 * len(os.sched_getaffinity(0)), int(free / JOB_BYTES)))


def results_of(jobs, results):
    """Yields the results until all jobs have ended."""
    while True:
        ended = not any(job.is_alive() for job in jobs)
        try:
            yield results.get(timeout=0.2)
        except queues.Empty:
            if ended:
                return


def show(result):
    run = result.run
    print(f"{label_of(result.name):44} {run.passed:4} passed {run.failed:3} failed "
          f"{run.skipped:3} skipped {run.seconds:4.0f} s {result.processor:4.0f} s processor time")
    lines = [line for line in run.output.splitlines() if re.search(r"^(not )?ok .*# *SKIP", line, re.I)]
    if run.failed:
        lines += [line for line in run.output.splitlines() if not line.startswith("ok ")][-200:]
        lines += [f"| {line}" for line in run.errors.splitlines()[-60:]]
    if result.left:
        lines.append(f"# left running, killed: {' '.join(result.left)}")
    print("".join(f"    {line}\n" for line in lines), end="", flush=True)


def show_sums(done, repeated):
    if repeated:
        for name in sorted({result.name for result in done}):
            states = [result.run.state for result in done if result.name == name]
            print(f"{label_of(name):44} {states.count('passed'):4} of {len(states):4} runs passed")
    slowest = sorted(done, key=lambda result: -result.processor)[:SLOWEST]
    if len(done) > SLOWEST:
        print(f"processor time of all files: {sum(result.processor for result in done):.0f} s; most:")
        for result in slowest:
            print(f"{result.processor:8.0f} s {label_of(result.name)}")


def run_all(queue, jobs, folder, stop=False):
    """Runs the files, `jobs` at a time, and prints each result, with `stop` until one fails. Returns
    the results."""
    fork = multiprocessing.get_context("fork")
    results, position = fork.Queue(), fork.Value("i", 0)
    rounds = int(os.environ.get("SHARDLOAD_FAULT_ROUNDS") or 1)
    folders = [folder / f"servers-{number}" for number in range(jobs)]
    if any(map(uses_servers, queue)) and "mongod" in servers.kinds():
        # The first start downloads the server program, which may take longer than a test may.
        servers.start("mongod", folders[0])
    workers = [fork.Process(target=work, args=(path, queue, position, results, rounds))
               for path in folders]
    done, broken = [], 0
    for worker in workers:
        worker.start()
    try:
        for result in results_of(workers, results):
            if isinstance(result, str):
                broken += 1
                print(result, file=sys.stderr)
            else:
                done.append(result)
                show(result)
                if stop and result.run.failed:
                    return done
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    if broken or len(done) < len(queue):
        raise Failure(f"only {len(done)} of {len(queue)} test files were completed")
    return done


def retried(done, folder):
    """Runs the files that failed again, one at a time. Returns the results with those of the second
    runs in place of the first, and the names of the files that passed the second time."""
    failed = [result.name for result in done if result.run.failed]
    if not 0 < len(failed) <= MOST_RETRIED:
        return done, []
    print(f"== again, one at a time: {' '.join(map(label_of, failed))}", flush=True)
    second = run_all(failed, 1, folder)
    return ([result for result in done if not result.run.failed] + second,
            [result.name for result in second if not result.run.failed])


def run(queue, jobs, folder, options):
    """Returns the number of failed tests."""
    done, unstable = run_all(queue, jobs, folder, options.stop), []
    if options.retry:
        done, unstable = retried(done, folder)
    show_sums(done, options.repeat > 1)
    for name in unstable:
        print(f"UNSTABLE, failed beside other tests and passed alone: {label_of(name)}")
    for name in sorted({result.name for result in done if result.run.failed}):
        print(f"FAILED: {label_of(name)}")
    passed, failed, skipped = (sum(getattr(result.run, name) for result in done)
                               for name in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed


def provide_samples(folder):
    """Without the real sample files, tests read generated ones of the same names and layouts."""
    samples = os.environ.get("SHARDLOAD_SAMPLES") or TREE.parent / "shared" / "data"
    if not Path(samples).is_dir():
        print(f"== no sample data at {samples}: the tests read generated files", file=sys.stderr)
        subprocess.run([sys.executable, TREE / "tests" / "stand_ins.py",
                        build_folder() / "bin" / "shardload-datagen", folder], check=True)
        os.environ["SHARDLOAD_STAND_INS"] = str(folder)


def main():
    parser = argparse.ArgumentParser(prog="test")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--servers", choices=servers.PROGRAMS)
    parser.add_argument("--stop", action="store_true")    # files in the order of names, until one fails
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    stop_on_signals()
    folder = Path(tempfile.mkdtemp(prefix="shardload-tests-"))
    try:
        if options.servers:
            servers.use_programs(options.servers)
        queue = options.names if options.stop else select(options.names, options.servers) * options.repeat
        provide_samples(folder / "samples")
        jobs = max(1, min(options.jobs, len(queue)))
        print(f"== running {len(queue)} test files, {jobs} at a time", file=sys.stderr)
        return 1 if run(queue, jobs, folder, options) else 0
    except (Failure, AssertionError) as failure:
        print(f"test: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        servers.stop_all(folder / "servers-0")    # of a run that ended before its jobs began
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
