# SPDX-License-Identifier: Apache-2.0
"""No secret in the list of processes, on the screen or in files, whichever option it was given to: a
password is typed where it should not be, too, such as in the options of `shardquery compare --ab`."""
import os
import pathlib
import re
import signal
import subprocess

import support

CANARY = "c4nary-in-the-mine"
# 127.0.0.1:1: no server listens there.
URI = f"mongodb://ann:{CANARY}@127.0.0.1:1/"
OTHER_URI = f"mongodb://127.0.0.1:1/?tlsCertificateKeyFilePassword=a?b;c@{CANARY}"
# What a user may type for each option: alone, within a longer text, and without an "@".
VALUES = [URI, f"x {URI} y", f"x={OTHER_URI}"]
COMMAND = f"-u ann -p {CANARY} --uri {URI}"
SECRET = {"uri": [URI, OTHER_URI, f"ann:{CANARY}"], "password": [CANARY],
          "tlsCertificateKeyFilePassword": [CANARY],
          "a": [COMMAND], "b": [COMMAND], "during": [COMMAND], "cold": [COMMAND]}
COMMANDS = {"shardload": ["load", "restore", "reload", "tune", "verify", "inspect", "plan", "doctor",
                          "report", "status", "forget"],
            "shardquery": ["run", "compare"]}


class Secrecy(support.Case):
    def options(self):
        """(program, command, option, values) for each option that takes a text; each option once, with
        the first command that has it."""
        for program, commands in COMMANDS.items():
            seen = {"config"}
            for command in commands:
                page = self.run_program(program, command, "--help", "all").out
                for name in re.findall(r"^ +(?:-\w, )?--([\w-]+)[ =][^ ]", page, re.M):
                    if name not in seen:
                        seen.add(name)
                        yield program, command, name, SECRET.get(name, VALUES)
            self.assertLessEqual({"uri", "password", "report"}, seen, "the options of --help")
            self.assertGreater(len(seen), 30, "the options of --help")

    def begin(self, program, *words, **environment):
        """Starts a program, which waits for its configuration to be written. Returns its process."""
        pipe = self.scratch / "config"
        if not pipe.exists():
            os.mkfifo(pipe)
        running = self.start(program, *words, environment=support.clean_environment(**environment))
        return running.process.pid

    def listed(self, process):
        """The command line of a process, as soon as it has one."""
        path = pathlib.Path(f"/proc/{process}/cmdline")
        self.wait_for(path.read_bytes, "a command line")
        return path.read_text(errors="replace")

    def wiped(self, process):
        """The command line, when the canary is no longer in it."""
        self.wait_for(lambda: CANARY not in self.listed(process), "wiping", limit=20)
        return self.listed(process)

    def test_the_list_of_processes_shows_no_secret(self):
        lines = {}
        for program, command, name, values in self.options():
            words = lines.setdefault((program, command), [])
            for value in values:
                words += [f"--{name}", value, f"--{name}={value}"]
        for (program, command), words in lines.items():
            with self.subTest(f"{program} {command}"):
                shown = self.wiped(self.begin(program, command, "--config", "config", *words))
                self.assertEqual([word.partition("=")[0] for word in words if word.startswith("--")],
                                 [word.partition("=")[0] for word in shown.split("\0")
                                  if word.startswith("--") and word != "--config"])

    def test_no_output_and_no_file_shows_a_secret(self):
        for program, command, name, values in self.options():
            for value in values:
                with self.subTest(f"{program} {command} --{name} {value}"):
                    outcome = self.run_program(program, command, f"--{name}", value)
                    self.assertNotEqual(outcome.code, support.EXIT_OK)
                    self.assertNotIn(CANARY, outcome.text)
                    if name not in SECRET:
                        self.assertIn("its value contains a connection string", outcome.err)
        for path in self.scratch.rglob("*"):
            self.assertNotIn(CANARY, str(path))
            if path.is_file():
                self.assertNotIn(CANARY.encode(), path.read_bytes(), path)

    def test_arguments_configurations_and_mistyped_options_are_not_repeated(self):
        config = self.file("c.yaml", f"shcema: {URI}\nschema: 'x {URI}'\nindex: ['{{}} {URI}']\n")
        for words in (["load", f"x {URI}"], ["load", URI], ["load", f"ann:{CANARY}@h"],
                      [URI], [f"--uri={URI}"], ["load", f"--ury={URI}"],
                      ["load", "--config", config], ["load", "--config", URI]):
            with self.subTest(words):
                outcome = self.run_program("shardload", *words)
                self.assertEqual(outcome.code, support.EXIT_USAGE)
                self.assertNotIn(CANARY, outcome.text)

    def test_text_without_credentials_is_used_unchanged(self):
        table = self.file("t.csv", "a@b,http://c\n1,2\n")
        outcome = self.shardload("inspect", "--columns", "a@b,c", "--header", "yes", table)
        self.assertIn('"a@b"', outcome.out)

    def test_every_process_is_closed_to_its_user_from_its_start(self):
        """Root owns the files in /proc of a process that makes no core file, and whose memory other
        processes of the user cannot read."""
        os.mkfifo(self.scratch / "config", 0o666)
        more = {}
        if os.geteuid() == 0:
            os.chown(self.scratch, support.NOBODY, support.NOBODY)
            more = {"user": support.NOBODY, "group": support.NOBODY, "extra_groups": []}
        for program, words in (("shardload", ["load", "--uri", OTHER_URI]), ("shardload", ["inspect"]),
                               ("shardquery", ["compare"])):
            with self.subTest(program):
                try:
                    process = subprocess.Popen([support.program(program), *words, "--config", "config"],
                                               cwd=self.scratch, **more)
                except PermissionError:
                    self.skipTest(f"an ordinary user may not run {program}")
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                self.wait_for(lambda pid=process.pid: os.stat(f"/proc/{pid}/environ").st_uid == 0,
                              "root as owner", limit=20)
                self.assertIsNone(process.poll(), "it has ended")

    def test_runs_of_a_comparison_get_secrets_from_the_environment(self):
        """Their command lines never contain one, not even when they begin."""
        options = f"--config config -d t -c c -p {CANARY} --uri={URI} -uann"
        parent = self.begin("shardquery", "compare", "--ab", "--runs", 1, "--a", options, "--b", options, "mot")
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
        self.wait_for(lambda: children.read_text().split(), "a run")
        child = children.read_text().split()[0]
        self.addCleanup(os.kill, int(child), signal.SIGKILL)
        self.wait_for(lambda: "\0run\0" in self.listed(child), "a run")
        self.assertNotIn(CANARY, self.wiped(parent))
        self.assertEqual(self.listed(child).rstrip("\0").split("\0")[:8],
                         ["shardquery", "run", "--config", "config", "-d", "t", "-c", "c"])
        self.assertNotIn("mongodb", self.listed(child))
        if os.geteuid() == 0:
            environment = pathlib.Path(f"/proc/{child}/environ").read_text().split("\0")
            self.assertLessEqual({f"SHARDLOAD_PASSWORD={CANARY}", f"SHARDLOAD_URI={URI}"}, set(environment))
