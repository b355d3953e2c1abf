# SPDX-License-Identifier: Apache-2.0
"""Manual pages (--man) and completion for bash (--completion): they contain every command and option
of --help."""
import re
import shutil
import subprocess

import support

PROGRAMS = ("shardload", "shardquery")


def output(program, *words):
    return subprocess.run([support.program(program), *words], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=support.LIMIT).stdout


def commands_of(program):
    part = output(program, "--help").split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in part.splitlines()]


def options_of(program, command):
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", output(program, command, "--help"), re.M))


class Pages(support.Case):
    def test_the_manual_has_every_command_and_option_and_groff_reports_no_error(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for program in PROGRAMS:
            page = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-c"],
                                  input=output(program, "--man"), capture_output=True, text=True,
                                  check=True, timeout=support.LIMIT)
            self.assertEqual(page.stderr, "")
            text = re.sub(".\b", "", page.stdout)
            for command in commands_of(program):
                self.assertIn(f"\n   {command}\n", text)
                for option in options_of(program, command) - {"--help", "--version"}:
                    self.assertRegex(text, rf"\n +(-\w, )?{re.escape(option)}\b", program)

    def completed(self, program, *words):
        """The words that bash offers to complete the last word."""
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

    def test_completion_offers_exactly_the_options_of_the_command(self):
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
