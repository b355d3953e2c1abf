# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completion: what the installed programs say of themselves, beside --help. Both are
written from the table of options, so what is tested is that nothing of it gets lost on the way."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402

PROGRAMS = ("shardload", "shardquery")


def said(program, *words):
    return subprocess.run([support.program(program), *words], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=support.LIMIT).stdout


def commands_of(program):
    part = said(program, "--help").split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in part.splitlines()]


def options_of(program, command):
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", said(program, command, "--help"), re.M))


class Pages(support.Case):
    def test_the_manual_has_every_command_and_option_and_renders_without_complaint(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for program in PROGRAMS:
            page = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-c"],
                                  input=said(program, "--man"), capture_output=True, text=True,
                                  check=True, timeout=support.LIMIT)
            self.assertEqual(page.stderr, "")
            text = re.sub(".\b", "", page.stdout)
            for command in commands_of(program):
                self.assertIn(f"\n   {command}\n", text)
                for option in options_of(program, command) - {"--help", "--version"}:
                    self.assertRegex(text, rf"\n +(-\w, )?{re.escape(option)}\b", program)

    def completed(self, program, *words):
        """What bash would offer behind these words, the last of which is being written."""
        script = (f'source <({support.program(program)} --completion)\n'
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
                  f'_{program}\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-euc", script, "bash", program, *words],
                              capture_output=True, text=True, check=False, timeout=support.LIMIT)
        self.assertEqual(done.stderr, "")
        return [line for line in done.stdout.splitlines() if line]

    def test_completion_offers_commands(self):
        for program in PROGRAMS:
            offered = self.completed(program, "")
            self.assertEqual(set(offered), {*commands_of(program), "--help", "--version"})
        self.assertEqual(self.completed("shardload", "ver"), ["verify"])

    def test_completion_offers_the_options_that_the_command_takes_and_no_others(self):
        for program in PROGRAMS:
            for command in commands_of(program):
                offered = set(self.completed(program, command, "--"))
                self.assertEqual(offered, options_of(program, command) - {"--version"})

    def test_completion_offers_the_words_of_a_choice(self):
        self.assertEqual(self.completed("shardload", "load", "--compressor", ""),
                         ["none", "snappy", "zlib", "zstd"])
        self.assertEqual(self.completed("shardload", "load", "--names", "lo"), ["long"])
        self.assertEqual(self.completed("shardload", "load", "-j", "a"), ["auto"])

    def test_completion_leaves_files_to_the_shell(self):
        self.assertEqual(self.completed("shardload", "load", "--schema", ""), [])
        self.assertEqual(self.completed("shardload", "load", "some"), [])


if __name__ == "__main__":
    import tap
    tap.main()
