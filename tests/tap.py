# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of a file and prints their results as TAP.

    python3 tests/tap.py tests/cli/test_x.py [WORD...]

The WORDs choose the cases whose class and method contain any of them. The exit status is 1 when a case fails,
or when there is none to run.

The tests of a class with the attribute `at_once = True` run at the same time, and beside those of other
classes. This is for tests that wait most of the time and do not change the same objects.
"""
import importlib
import pathlib
import sys
import threading
import time
import traceback
import unittest


def one_line(text):
    """A description for a TAP line: without newlines, and with `#`, which begins a directive,
    escaped."""
    return " ".join(str(text).split()).replace("#", "\\#")


def method_of(test):
    """The class and method of the case."""
    return ".".join(test.id().split(".")[-2:]) if hasattr(test, "id") else str(test)


def name_of(test):
    """The class and method of the case, and the first line of its docstring."""
    name = method_of(test)
    description = test.shortDescription()
    return one_line(f"{name}: {description}" if description else name)


class TapResult(unittest.TestResult):
    """Prints a TAP line for each result. Several threads may report results."""

    def __init__(self, output):
        super().__init__()
        self.output = output
        self.count = 0
        self.failed_subtests = set()
        self.lock = threading.Lock()

    def line(self, good, test, directive="", notes=""):
        mark = "ok" if good else "not ok"
        with self.lock:
            self.count += 1
            print(f"{mark} {self.count} - {name_of(test)}{directive}", file=self.output)
            for note in notes.splitlines():
                print(f"# {note}", file=self.output)
            self.output.flush()

    def failed(self, test, error):
        self.line(False, test, notes="".join(traceback.format_exception(*error)))

    def addSuccess(self, test):
        super().addSuccess(test)
        # unittest also reports a case with failed subtests as a success.
        if test not in self.failed_subtests:
            self.line(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed_subtests.add(test)
            self.failed(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line(True, test, f" # SKIP {one_line(reason)}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.line(True, test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.line(False, test, notes="expected to fail, and succeeded")


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def run_at_once(kind, cases, result):
    """Runs the cases of a class, each in a thread. Returns the threads."""
    try:
        kind.setUpClass()
    except unittest.SkipTest as skip:
        for case in cases:
            result.addSkip(case, skip)
        return []
    threads = [threading.Thread(target=case.run, args=[result]) for case in cases]
    for thread in threads:
        thread.start()
    return threads


def main(module="__main__"):
    """Runs the cases of `module`, and exits with 0 if all succeeded, with 1 otherwise."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))
    filters = sys.argv[1:]
    cases = [case for case in cases_of(suite)
             if not filters or any(word in method_of(case) for word in filters)]
    at_once = {type(case) for case in cases if getattr(case, "at_once", False)}
    # Standard output is for TAP only; what a test prints goes to standard error.
    output = sys.stdout
    sys.stdout = sys.stderr
    result = TapResult(output)
    began = time.monotonic()
    threads = [thread for kind in at_once
               for thread in run_at_once(kind, [case for case in cases if type(case) is kind], result)]
    unittest.TestSuite(case for case in cases if type(case) not in at_once).run(result)
    for thread in threads:
        thread.join()
    for kind in at_once:
        kind.doClassCleanups()
    print(f"1..{result.count}", file=output)
    print(f"# {result.count} results in {time.monotonic() - began:.1f} s", file=output, flush=True)
    sys.exit(0 if result.wasSuccessful() and result.count else 1)


if __name__ == "__main__":
    path = pathlib.Path(sys.argv.pop(1))
    sys.path.insert(0, str(path.parent))
    main(path.stem)
