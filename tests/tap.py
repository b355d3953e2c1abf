# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of the main module and prints their results as TAP.

    if __name__ == "__main__":
        import tap
        tap.main()

Arguments on the command line choose the cases whose full name contains any of them. The exit status
is 1 when a case fails, or when there is none to run.
"""

import sys
import time
import traceback
import unittest


def one_line(text):
    """A description for a TAP line: without newlines, and with `#`, which begins a directive,
    escaped."""
    return " ".join(str(text).split()).replace("#", "\\#")


def name_of(test):
    """The class and method of the case, and the first line of its docstring."""
    name = ".".join(test.id().split(".")[-2:]) if hasattr(test, "id") else str(test)
    description = test.shortDescription()
    return one_line(f"{name}: {description}" if description else name)


class TapResult(unittest.TestResult):
    """Prints a TAP line for each result."""

    def __init__(self, output):
        super().__init__()
        self.output = output
        self.count = 0
        self.failed_subtests = set()

    def line(self, good, test, directive=""):
        self.count += 1
        mark = "ok" if good else "not ok"
        print(f"{mark} {self.count} - {name_of(test)}{directive}", file=self.output, flush=True)

    def diagnose(self, error):
        for line in "".join(traceback.format_exception(*error)).splitlines():
            print(f"# {line}", file=self.output)
        self.output.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        # unittest also reports a case with failed subtests as a success.
        if test not in self.failed_subtests:
            self.line(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(False, test)
        self.diagnose(err)

    def addError(self, test, err):
        super().addError(test, err)
        self.line(False, test)
        self.diagnose(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed_subtests.add(test)
            self.line(False, subtest)
            self.diagnose(err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line(True, test, f" # SKIP {one_line(reason)}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.line(True, test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.line(False, test)
        print("# expected to fail, and succeeded", file=self.output, flush=True)


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def main(module="__main__"):
    """Runs the cases of `module`, and exits with 0 if all succeeded, with 1 otherwise."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    filters = sys.argv[1:]
    if filters:
        suite = unittest.TestSuite(
            case for case in cases_of(suite) if any(word in case.id() for word in filters)
        )
    # Standard output is for TAP only; what a test prints goes to standard error.
    output = sys.stdout
    sys.stdout = sys.stderr
    result = TapResult(output)
    began = time.monotonic()
    suite.run(result)
    print(f"1..{result.count}", file=output)
    print(f"# {result.count} results in {time.monotonic() - began:.1f} s", file=output, flush=True)
    sys.exit(0 if result.wasSuccessful() and result.count else 1)
