# SPDX-License-Identifier: Apache-2.0
"""The memory of a running loader contains its password only in the driver's copies.

The driver keeps the connection string with the password as long as its pool exists, and frees copies
of it without overwriting them; all these copies are on the heap. Copies on the stack of the main
thread, in the command line, in the environment and in static data are the loader's own, and must have
been overwritten. (tests/unit/test_connection_string.c tests the loader's copies on the heap.)"""
import os
import pathlib
import re

import resume_case
import support

USER = "loader"
PASSWORD = "wiped-0f-a11-c0pies"
# The command line and the environment are on the stack, too.
OWN = re.compile(r"\[stack\]|/bin/shardload")


class Memory(resume_case.ResumeCase, server="mongod"):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may read the memory of a loader")
        self.database.command("createUser", USER, pwd=PASSWORD, roles=["readWrite", "dbAdmin"])
        self.addCleanup(self.database.command, "dropUser", USER)
        secret = self.scratch / "secret"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o600)
        plain = f"{self.through}?authSource={self.database_name}"
        self.options = {                     # where the password is given: (options, environment)
            "file": (["--uri", plain, "-u", USER, "--password-file", secret], {}),
            "command line": (["--uri", plain, "-u", USER, "-p", PASSWORD], {}),
            "environment": (["--uri", plain, "-u", USER], {"SHARDLOAD_PASSWORD": PASSWORD}),
            "URI": (["--uri", plain.replace("://", f"://{USER}:{PASSWORD}@")], {}),
        }

    def copies_in(self, process):
        """(memory mapping, address) of each copy of the password."""
        copies = []
        with open(f"/proc/{process}/mem", "rb", 0) as memory:
            for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines():
                span, rights, _, _, _, *name = line.split(maxsplit=5)
                if "r" not in rights or name in (["[vvar]"], ["[vsyscall]"]):
                    continue
                begin, end = (int(part, 16) for part in span.split("-"))
                try:
                    memory.seek(begin)
                    content = memory.read(end - begin)
                except OSError:
                    continue
                copies += [((name or ["anonymous"])[0], begin + match.start())
                           for match in re.finditer(PASSWORD.encode(), content)]
        return copies

    def begin(self, *more, environment, **where):
        return self.start("shardload", *self.words(*more, **where),
                          environment=support.clean_environment(**environment))

    def test_only_the_driver_holds_the_password(self):
        for name, (options, environment) in self.options.items():
            with self.subTest(name):
                self.work = self.scratch / f"work-{name}"
                copies = []
                self.load_with_fault(
                    lambda running: copies.extend(self.copies_in(running.process.pid)),
                    *options, "--drop", batch=10, environment=environment).expect(support.EXIT_REJECTS)
                self.assertTrue(copies, "not even the driver's copies were found")
                self.assertEqual([copy for copy in copies if OWN.search(copy[0])], [])
