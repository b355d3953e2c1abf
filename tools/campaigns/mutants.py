# SPDX-License-Identifier: Apache-2.0
"""Reads the mistakes (tools/mutants.d/*.txt) and plants them in a copy of the tree."""
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from .common import TREE, Failure, run_test, servers

LISTS = TREE / "tools" / "mutants.d"
FIELDS = ("file", "loss", "tests")
LIMIT = 400                   # seconds; a test that takes longer counts as failed


class Mistake(NamedTuple):
    name: str                 # list name and entry name: delivery/majority-dropped
    where: str                # file and line of the entry in its list
    file: str                 # the source file that is changed
    loss: str                 # the damage to a user of the changed program
    tests: tuple
    old: str
    new: str

    def problem(self, tree=TREE):
        """Returns why the mistake cannot be planted, or None."""
        path = tree / self.file
        count = path.read_text("utf-8").count(self.old) if path.is_file() else 0
        if count != 1:
            return f"{self.where}: {self.name}: its old text occurs {count} times in {self.file}, not once"
        if self.old == self.new:
            return f"{self.where}: {self.name}: the old and the new text are the same"
        for test in self.tests:
            name, _, case = test.partition(":")
            file = tree / "tests" / (name + (".c" if name.startswith("unit/") else ".py"))
            if not file.is_file() or case.rpartition(".")[2] not in file.read_text("utf-8"):
                return f"{self.where}: {self.name}: there is no test {test}"
        return None


def read_list(path):
    """Yields the entries of a list; `tools/mutants --help` describes their format."""
    lines = path.read_text("utf-8").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("== ")]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        where = f"{path.name}:{start + 1}"
        part = lines[start + 1:end]
        try:
            old, new = part.index("--- old"), part.index("--- new")
        except ValueError:
            raise Failure(f"{where}: the entry lacks '--- old' or '--- new'") from None
        fields = dict(line.split(": ", 1) for line in part[:old] if line.strip())
        if sorted(fields) != sorted(FIELDS):
            raise Failure(f"{where}: an entry needs the fields {', '.join(FIELDS)} and no other")
        yield Mistake(f"{path.stem}/{lines[start][3:].strip()}", where, fields["file"], fields["loss"],
                      tuple(fields["tests"].split()), "\n".join(part[old + 1:new]),
                      "\n".join(part[new + 1:]).rstrip("\n"))


def read_lists():
    mistakes = [one for path in sorted(LISTS.glob("*.txt")) for one in read_list(path)]
    names = [one.name for one in mistakes]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise Failure(f"names that are used twice: {', '.join(twice)}")
    return mistakes


def cost(mistake):
    """Sort key: mistakes whose first test is fast come first (no servers, servers, fault tests)."""
    first = mistake.tests[0]
    return [first.startswith(kind) for kind in ("faults/", "cluster/", "cli/")]


# ---- results ----

class Results:
    """A file with one JSON line per result. The key is a hash of the entry, its source file and its
    tests: a mistake is tried again when one of them has changed."""

    def __init__(self, path):
        self.path, self.found = path, {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                one = json.loads(line)
                self.found[one["key"]] = one

    @staticmethod
    def key(mistake):
        hashed = hashlib.sha256(repr(mistake._replace(where="")).encode())
        hashed.update((TREE / mistake.file).read_bytes())
        for test in mistake.tests:
            path = test.partition(":")[0]
            for file in sorted((TREE / "tests").glob(path + ".*")):
                hashed.update(file.read_bytes())
        return hashed.hexdigest()[:16]

    def add(self, key, mistake, state, by, seconds):
        one = {"key": key, "name": mistake.name, "state": state, "by": by,
               "seconds": round(seconds, 1)}
        self.found[key] = one
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")
        return one


# ---- the copy of the tree ----

class TreeCopy:
    """A copy of the tree with its own build folder and servers. Unchanged files are not written, so
    that a build compiles only what has changed."""

    PROGRAMS = ["shardload", "shardquery", "decoded"]    # rebuilt for each mistake
    TEST_TOOLS = ["shardload-datagen", "shardload-router", "shardload-clusterctl", "router_client",
                  "clock_back", "record_writes"]

    def __init__(self, folder, tests):
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.targets = sorted({*self.PROGRAMS, *self.TEST_TOOLS,
                               *(target for test in tests for target in self.targets_of(test))})
        self.passing = {}         # test -> it passes in the unchanged tree

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.update()
        if not (self.build / "CMakeCache.txt").exists():
            # -O1: compile time matters more here than the programs' speed.
            words = ["cmake", "-S", self.tree, "-B", self.build, "-DSHARDLOAD_TESTS=ON",
                     "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O1"]
            if shutil.which("ninja"):
                words.append("-GNinja")
            if shutil.which("ccache"):
                words.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
            self.run(*words)
        self.compile_unchanged(self.targets)
        os.environ.setdefault("SHARDLOAD_BUILD", str(self.build))
        return self

    def __exit__(self, *unused):
        servers.stop_all(self.folder / "servers")

    def update(self):
        """Makes the copy equal to the tree, without the files that git ignores."""
        listed = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard"],
                                stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        files = {name for name in listed if name and (TREE / name).is_file()}
        for name in files:
            to = self.tree / name
            content = (TREE / name).read_bytes()
            if not to.exists() or to.read_bytes() != content:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TREE / name, to)
        for path in self.tree.rglob("*"):
            if path.is_file() and str(path.relative_to(self.tree)) not in files:
                path.unlink()

    @staticmethod
    def run(*words):
        done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"{words[0]} failed: {done.stdout[-2000:]}")

    def compile(self, targets):
        """Returns None, or the first error of the build."""
        done = subprocess.run(["cmake", "--build", self.build, "-j2", "--target", *targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode == 0:
            return None
        errors = [line for line in done.stdout.splitlines() if "error" in line]
        return errors[0] if errors else done.stdout[-500:]

    def compile_unchanged(self, targets):
        problem = self.compile(targets)
        if problem:
            raise Failure(f"the tree does not build without any mistake: {problem}")

    def targets_of(self, test):
        if test.startswith("unit/"):
            return ["unit_tests"]
        return self.PROGRAMS

    def try_test(self, test):
        return run_test(test, self.tree, self.build, self.folder / "servers", LIMIT)

    def passes_without(self, test):
        """True if the test passes in the unchanged tree. A test that fails there is not used."""
        if test not in self.passing:
            self.compile_unchanged(self.targets_of(test))    # removes an earlier mistake
            unchanged = self.try_test(test)
            self.passing[test] = unchanged.state == "passed"
            if not self.passing[test]:
                print(f"   {test} {unchanged.state} without any mistake, so it is not used\n"
                      + (unchanged.output + unchanged.errors)[-1500:], flush=True)
        return self.passing[test]

    def plant(self, mistake):
        """Runs the tests of a mistake until one fails. Returns (state, the test that failed or the
        problem)."""
        path = self.tree / mistake.file
        before = path.read_text("utf-8")
        state = "untested", "none of its tests passes without the mistake"
        for test in mistake.tests:
            if not self.passes_without(test):
                continue
            try:
                path.write_text(before.replace(mistake.old, mistake.new), "utf-8")
                problem = self.compile(self.targets_of(test))
                if problem:
                    return "unbuildable", problem
                if self.try_test(test).state == "failed":
                    return "noticed", test
            finally:
                path.write_text(before, "utf-8")
            state = "MISSED", ""
        return state


def default_folder():
    home = os.environ.get("SHARDLOAD_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardload"
    return Path(home) / "mutants"
