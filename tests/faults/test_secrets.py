# SPDX-License-Identifier: Apache-2.0
"""The memory of a loader at work holds its password only where the driver keeps it.

The driver keeps the connection string, and in it the password, for as long as its pool lives, to
log in on each new connection, and frees copies without overwriting them. All of these are on the
heap. On the stack of the main thread, in the command line, in the environment and in static data
everything is the program's own, and must be gone. (That the options' own copies on the heap are
overwritten is tested in tests/unit/test_connection_string.c.)"""
import os
import pathlib
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proxy  # noqa: E402
import resume_case  # noqa: E402
import support  # noqa: E402

USER = "loader"
PASSWORD = "wiped-0f-a11-c0pies"
# The stack holds the command line and the environment, too.
OWN = re.compile(r"\[stack\]|/bin/shardload")


class Memory(resume_case.ResumeCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root may read the memory of a loader")
        self.database.command("createUser", USER, pwd=PASSWORD, roles=["readWrite", "dbAdmin"])
        self.addCleanup(self.database.command, "dropUser", USER)
        secret = self.scratch / "secret"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o600)
        self.secret = secret
        plain = f"{self.through}?authSource={self.database_name}"
        self.ways = {
            "file": (["--uri", plain, "-u", USER, "--password-file", secret], {}),
            "command line": (["--uri", plain, "-u", USER, "-p", PASSWORD], {}),
            "environment": (["--uri", plain, "-u", USER], {"SHARDLOAD_PASSWORD": PASSWORD}),
            "URI": (["--uri", plain.replace("://", f"://{USER}:{PASSWORD}@")], {}),
        }

    def found_in(self, process):
        """(the part of the memory, address) of each place where the password stands."""
        found = []
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
                found += [((name or ["anonymous"])[0], begin + match.start())
                          for match in re.finditer(PASSWORD.encode(), content)]
        return found

    def copies(self, words, more):
        """Where the password is while the tenth batch is on its way."""
        gate, found = threading.Event(), []
        self.addCleanup(gate.set)

        def look():
            found.extend(self.found_in(running.process.pid))
            gate.set()
        self.proxy.on_batch(10, proxy.call(look))
        running = self.start("shardload", *self.words(*words, "--drop"),
                             environment=support.clean_environment(**more))
        outcome = running.wait()
        self.assertTrue(gate.is_set(), outcome.text)
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        return found

    def test_only_the_driver_holds_the_password(self):
        for name, (words, more) in self.ways.items():
            with self.subTest(name):
                self.work = self.scratch / f"work-{name}"
                found = self.copies(words, more)
                self.assertTrue(found, "the driver must hold it: the search does not work")
                self.assertEqual([place for place in found if OWN.search(place[0])], [])


if __name__ == "__main__":
    import tap
    tap.main()
