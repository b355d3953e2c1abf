# SPDX-License-Identifier: Apache-2.0
"""Runs the fault tests repeatedly, several at once, to find tests that fail only sometimes."""
import collections
import threading
import time

from .common import TREE, Failure, Servers, build_folder, run_test

LIMIT = 1800                  # seconds that one test file may take on a busy machine


def files_of(words):
    found = sorted(path.stem for path in (TREE / "tests" / "faults").glob("test_*.py"))
    chosen = [name for name in found if not words or any(word in name for word in words)]
    if not chosen:
        raise Failure(f"no fault test's name contains {' or '.join(words)}; "
                      f"the fault tests are: {' '.join(found)}")
    return [f"faults/{name}" for name in chosen]


def show(files, counts, seconds):
    for name in files:
        passed = counts[name, "passed"]
        runs = sum(count for (file, _), count in counts.items() if file == name)
        print(f"{name:32} {passed:4} of {runs:4} passed, {seconds[name] / max(runs, 1):6.1f} s each")


def run(options, folder):
    files = files_of(options.names)
    queue = [name for _ in range(options.runs) for name in files]
    counts, seconds, failures = collections.Counter(), collections.Counter(), []
    lock = threading.Lock()
    begun = time.monotonic()

    def work(number):
        try:
            # Tests change the balancer's state, so each thread needs its own servers.
            with Servers(folder / f"servers-{number}") as servers:
                while True:
                    with lock:
                        if not queue:
                            return
                        name = queue.pop(0)
                    ran = run_test(name, TREE, build_folder(), servers.environment, LIMIT)
                    with lock:
                        counts[name, ran.state] += 1
                        seconds[name] += ran.seconds
                        if ran.state != "passed":
                            log = folder / f"{name.replace('/', '-')}-{len(failures) + 1}.log"
                            log.write_text(ran.output, "utf-8")
                            failures.append((name, ran.state, log))
                            print(f"{ran.state.upper()} {name}: {log}", flush=True)
                        done = sum(counts.values())
                        if done % len(files) == 0:
                            print(f"... {done} of {total} files", flush=True)
        except (Failure, OSError) as failure:
            with lock:
                failures.append(("servers", str(failure), ""))
                print(f"FAILED {failure}", flush=True)

    total = len(queue)
    threads = [threading.Thread(target=work, args=[number], daemon=True)
               for number in range(options.at_once)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:                  # after an interruption the files that are running are completed
        with lock:
            queue.clear()
        for thread in threads:
            thread.join()
        show(files, counts, seconds)
        print(f"{sum(counts.values()) / len(files):.1f} of {options.runs} runs, {options.at_once} "
              f"at once, {len(failures)} failures, {time.monotonic() - begun:.0f} s")
    return not failures
