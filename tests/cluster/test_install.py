# SPDX-License-Identifier: Apache-2.0
"""The installed library: the example is built against it with pkg-config, and loads a file."""
import json
import os
import pathlib
import shutil
import subprocess

import support

ROWS = 3000
LIBRARY = ["context.h", "error.h", "load.h", "plan.h", "query.h", "report.h", "version.h"]


class Install(support.ClusterCase):
    def command(self, *words, code=0, **more):
        done = subprocess.run([str(word) for word in words], cwd=self.scratch, check=False,
                              capture_output=True, text=True, timeout=support.LIMIT, **more)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def install(self):
        """Installs the build in another folder than was configured. Returns (prefix, environment of
        pkg-config)."""
        build = os.environ.get("SHARDLOAD_BUILD")
        support.program("shardload")
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text("utf-8")
        if any(line.startswith("SHARDLOAD_SANITIZE") and line.partition("=")[2]
               for line in cache.splitlines()) or "SHARDLOAD_COVERAGE:BOOL=ON" in cache:
            self.skipTest("the library is built with sanitizers or for coverage")
        if not shutil.which("cc") or not shutil.which("pkg-config"):
            self.skipTest("no C compiler or no pkg-config")
        prefix = self.scratch / "installed"
        self.command("cmake", "--install", build, "--prefix", prefix, umask=0)
        self.assertEqual([path for path in prefix.rglob("*")
                          if path.lstat().st_mode & 0o22 and not path.is_symlink()], [])
        (found,) = prefix.rglob("shardload.pc")
        return prefix, {**os.environ, "PKG_CONFIG_PATH": str(found.parent)}

    def test_the_example_is_built_with_the_installed_files_and_loads_a_file(self):
        prefix, environment = self.install()
        self.assertEqual(sorted(path.name for path in (prefix / "include").rglob("*.h")), LIBRARY)
        flags = self.command("pkg-config", "--cflags", "--libs", "shardload",
                             env=environment).stdout.split()
        version = self.command("pkg-config", "--modversion", "shardload",
                               env=environment).stdout.strip()
        self.assertEqual(self.shardload("--version").out.split()[1], version)
        example = self.scratch / "load_and_query"
        self.command("cc", "-std=c11", "-Wall", "-Wextra", "-Werror",
                     support.TREE / "examples/load_and_query.c", *flags, "-o", example)
        path = self.file("people.csv", "name,age\n" + "".join(
            f"person {n},{n % 90}\n" for n in range(ROWS)))

        done = self.command(example, self.uri, self.database_name, "t", path)
        report = json.loads(done.stdout)
        (query,) = report["queries"]
        self.assertEqual(query["resultCount"], 1)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assertEqual(int(self.database.t.find_one({"name": "person 7"})["age"]), 7)
        self.assertRegex(done.stderr, r"progress: \{.*\"documents\" : 3000")
        self.assertRegex(done.stderr, "info: .*: 3,000 records in ")
        pages = prefix / "share/doc/shardload/docs"     # which messages and --help name
        self.assertEqual([name for name in ("exit-codes.md", "security.md", "restore.md", "remains.md")
                          if not (pages / name).is_file()], [])

        failed = self.command(example, self.uri, self.database_name, "t", "no-such-file.csv",
                              code=support.EXIT_SOURCE)
        self.assertIn("failed with code 3: no-such-file.csv: No such file", failed.stderr)
        self.assertEqual(self.database.t.count_documents({}), ROWS)

    def test_the_headers_are_valid_cpp(self):
        if not shutil.which("c++"):
            self.skipTest("no C++ compiler")
        for name in LIBRARY:
            self.command("c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++",
                         f"-I{support.TREE}/include", "-include", f"shardload/{name}", "/dev/null")
