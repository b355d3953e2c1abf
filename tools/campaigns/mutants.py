# SPDX-License-Identifier: Apache-2.0
"""The list of mistakes (tools/mutants.d/*.txt), and a copy of the tree that they are planted in."""
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from .ground import NEEDS_SERVERS, TREE, Failure, Servers, run_test

LISTS = TREE / "tools" / "mutants.d"
FIELDS = ("file", "loss", "tests")
LIMIT = 400                   # seconds; a test that takes longer has noticed


class Mistake(NamedTuple):
    name: str                 # the list's and its own: delivery/majority-dropped
    where: str                # the list's file and line
    file: str
    loss: str                 # what a user would lose
    tests: tuple
    old: str
    new: str

    def problem(self, tree=TREE):
        """Why it cannot be planted; None when it can."""
        path = tree / self.file
        count = path.read_text("utf-8").count(self.old) if path.is_file() else 0
        if count != 1:
            return f"{self.where}: {self.name}: its text stands {count} times in {self.file}"
        if self.old == self.new:
            return f"{self.where}: {self.name}: changes nothing"
        for test in self.tests:
            name, _, case = test.partition(":")
            file = tree / "tests" / (name + (".c" if name.startswith("unit/") else ".py"))
            if not file.is_file() or case.rpartition(".")[2] not in file.read_text("utf-8"):
                return f"{self.where}: {self.name}: there is no test {test}"
        return None


def read_list(path):
    """Entries are `== name`, `field: value` lines, and two texts behind `--- old` and `--- new`."""
    lines = path.read_text("utf-8").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("== ")]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        where = f"{path.name}:{start + 1}"
        part = lines[start + 1:end]
        try:
            old, new = part.index("--- old"), part.index("--- new")
        except ValueError:
            raise Failure(f"{where}: an entry has '--- old' and '--- new'") from None
        fields = dict(line.split(": ", 1) for line in part[:old] if line.strip())
        if sorted(fields) != sorted(FIELDS):
            raise Failure(f"{where}: an entry has the fields {', '.join(FIELDS)}")
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
    """Of the first test, roughly: without servers, with them, with faults."""
    first = mistake.tests[0]
    return first.startswith("faults/"), bool(NEEDS_SERVERS.match(first)), first.startswith("cli/")


# ---- results ----

class Results:
    """One JSON line per mistake that was tried. It is known by all that its outcome depends on, so
    that what has changed is tried again."""

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


# ---- a place to plant them ----

class Garden:
    """A copy of the tree with a build folder and servers of its own. Files keep their times unless
    they change, so that a build compiles little."""

    PROGRAMS = ["shardload", "shardquery", "decoded"]    # that mistakes are planted in
    OTHERS = ["shardload-datagen", "shardload-router", "shardload-clusterctl", "router_client",
              "clock_back", "record_writes"]

    def __init__(self, folder, tests):
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.units = sorted({test.removeprefix("unit/") for test in tests
                             if test.startswith("unit/")})
        self.servers = Servers(folder / "servers") if any(map(NEEDS_SERVERS.match, tests)) else None
        self.passing = {}

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.update()
        if not (self.build / "CMakeCache.txt").exists():
            words = ["cmake", "-S", self.tree, "-B", self.build, "-DSHARDLOAD_TESTS=ON",
                     "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O1"]    # it is built often
            if shutil.which("ninja"):
                words.append("-GNinja")
            if shutil.which("ccache"):
                words.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
            self.run(*words)
        problem = self.compile(self.PROGRAMS + self.OTHERS + self.units)
        if problem:
            raise Failure(f"the tree itself does not build: {problem}")
        if self.servers:
            os.environ.setdefault("SHARDLOAD_BUILD", str(self.build))
            self.servers.__enter__()
        return self

    def __exit__(self, *unused):
        if self.servers:
            self.servers.__exit__()

    def update(self):
        """Makes the copy the same as the tree, as far as git knows its files."""
        listed = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard"],
                                stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        wanted = {name for name in listed if name and (TREE / name).is_file()}
        for name in wanted:
            to = self.tree / name
            content = (TREE / name).read_bytes()
            if not to.exists() or to.read_bytes() != content:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TREE / name, to)
        for path in self.tree.rglob("*"):
            if path.is_file() and str(path.relative_to(self.tree)) not in wanted:
                path.unlink()

    @staticmethod
    def run(*words):
        done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"{words[0]} failed: {done.stdout[-2000:]}")

    def compile(self, targets):
        """None, or the compiler's first complaint."""
        done = subprocess.run(["cmake", "--build", self.build, "-j2", "--target", *targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode == 0:
            return None
        errors = [line for line in done.stdout.splitlines() if "error" in line]
        return errors[0] if errors else done.stdout[-500:]

    def targets_of(self, test):
        if test.startswith("unit/"):
            return [test.removeprefix("unit/")]
        return self.PROGRAMS

    def try_test(self, test):
        environment = self.servers.environment if self.servers else {}
        return run_test(test, self.tree, self.build, environment, LIMIT)

    def passes_without(self, test):
        """A test that fails anyway would notice everything."""
        if test not in self.passing:
            problem = self.compile(self.targets_of(test))    # an earlier mistake may be built in
            if problem:
                raise Failure(f"the tree itself does not build: {problem}")
            ran = self.try_test(test)
            self.passing[test] = ran.state == "passed"
            if not self.passing[test]:
                print(f"   {test} {ran.state} without any mistake, so it is not asked\n"
                      + ran.output[-1500:], flush=True)
        return self.passing[test]

    def plant(self, mistake):
        """(state, the test that noticed or the problem). One test after the other, so that those
        behind the one that notices need not be run without the mistake either."""
        path = self.tree / mistake.file
        before = path.read_text("utf-8")
        state = "untested", "none of its tests passes without it"
        for test in mistake.tests:
            if not self.passes_without(test):
                continue
            try:
                path.write_text(before.replace(mistake.old, mistake.new), "utf-8")
                problem = self.compile(self.targets_of(test))
                if problem:
                    return "unbuildable", problem
                if self.try_test(test).state in ("failed", "hung"):
                    return "noticed", test
            finally:
                path.write_text(before, "utf-8")
            state = "MISSED", ""
        return state


def default_folder():
    home = os.environ.get("SHARDLOAD_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardload"
    return Path(home) / "mutants"
