# SPDX-License-Identifier: Apache-2.0
"""Manual pages (--man) and completions (--completion SHELL) for bash, zsh and fish: they contain every
command and option of --help."""
import os
import pty
import re
import select
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
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", output(program, command, "--help", "all"), re.M))


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

    def test_the_help_of_a_command_is_short_and_names_the_full_one(self):
        for program in PROGRAMS:
            for command in commands_of(program):
                short, full = (output(program, command, "--help", *words) for words in ((), ("all",)))
                self.assertLessEqual(short.count("\n"), 110, command)
                if short != full:
                    options = len(options_of(program, command) - {"--config", "--help", "--version"})
                    self.assertIn(f"`{program} {command} --help all` explains all {options} options.", short)

    def test_completions_of_unknown_shells_are_refused(self):
        self.assertEqual(output("shardload", "--completion"), output("shardload", "--completion", "bash"))
        outcome = self.run_program("shardload", "--completion", "csh")
        self.assertEqual((outcome.code, outcome.out), (support.EXIT_USAGE, ""))


class Completion(support.Case):
    """What the shells themselves offer. Each test is run for every shell that is installed."""

    def by_bash(self, program, words):
        script = (f'source <({support.program(program)} --completion bash)\n'
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
                  f'_{program}\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-euc", script, "bash", program, *words],
                              capture_output=True, text=True, check=False, timeout=support.LIMIT)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def by_fish(self, program, words):
        script = self.scratch / f"{program}.fish"
        script.write_text(output(program, "--completion", "fish"), "utf-8")
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{' '.join([program, *words])}'"],
            capture_output=True, text=True, check=False, timeout=support.LIMIT, cwd=self.scratch,
            env={**os.environ, "HOME": str(self.scratch)})
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0] for line in done.stdout.splitlines() if not line.endswith(".fish")]

    def by_zsh(self, program, words):
        """Presses Tab in an interactive zsh on a pseudo-terminal. The function `compadd` writes the
        matches that it is given to a file."""
        folder = self.scratch / "zsh"
        folder.mkdir(exist_ok=True)
        (folder / f"_{program}").write_text(output(program, "--completion", "zsh"), "utf-8")
        (folder / ".zshrc").write_text(f"""
            fpath=({folder} $fpath); PS1= LISTMAX=100000
            autoload -Uz compinit; compinit -u -d {folder}/dump
            compadd() {{
                if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
                local -a hits; builtin compadd -O hits "$@"
                print -rl -- $hits >> {folder}/hits
                builtin compadd "$@"
            }}
            finish() {{ : > {folder}/done; zle kill-whole-line }}
            zle -N finish; bindkey '^G' finish; bindkey '^I' list-choices
            : > {folder}/ready
        """, "utf-8")
        for name in ("hits", "done", "ready"):
            (folder / name).unlink(missing_ok=True)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-i"], {**os.environ, "ZDOTDIR": str(folder), "TERM": "dumb"})
        try:
            self.wait_for(folder / "ready", terminal)
            os.write(terminal, (" ".join([program, *words]) + "\t\x07").encode())
            self.wait_for(folder / "done", terminal)
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os.close(terminal)
        hits = folder / "hits"
        found = hits.read_text("utf-8").split() if hits.exists() else []
        return [word.rstrip("=") for word in found if word.startswith(words[-1])]

    def wait_for(self, path, terminal):
        """Reads the terminal, so that the shell can write to it, until the file exists."""
        shown, tries = b"", 0
        while not path.exists():
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536)
            tries += 1
            self.assertLess(tries, 20 * support.LIMIT, f"{path.name}: {shown!r}")

    def completed(self, program, *words):
        """The words that each installed shell offers to complete the last word, by shell."""
        shells = {name: getattr(self, f"by_{name}") for name in ("bash", "zsh", "fish") if shutil.which(name)}
        return {name: {line for line in complete(program, words) if line} for name, complete in shells.items()}

    def offers(self, expected, program, *words):
        for shell, offered in self.completed(program, *words).items():
            self.assertEqual(offered, set(expected), f"{shell}: {program} {words}")

    def test_commands(self):
        for program in PROGRAMS:
            for shell, offered in self.completed(program, "").items():
                self.assertEqual(offered - {"--help", "--version"}, set(commands_of(program)), shell)
        self.offers(["verify"], "shardload", "ver")

    def test_the_scripts_name_every_option(self):
        """Also those of shells that are not installed."""
        for program in PROGRAMS:
            for shell, prefix in (("bash", "--"), ("zsh", "--"), ("fish", "-l ")):
                script = output(program, "--completion", shell)
                for command in commands_of(program):
                    for option in options_of(program, command):
                        self.assertRegex(script, rf"{prefix}{option[2:]}\b", (shell, command))

    def test_exactly_the_options_of_the_command(self):
        for program in PROGRAMS:
            for command in commands_of(program):
                self.offers(options_of(program, command) - {"--version"}, program, command, "--")

    def test_the_words_of_a_choice(self):
        self.offers(["none", "snappy", "zlib", "zstd"], "shardload", "load", "--compressor", "")
        self.offers(["long"], "shardload", "load", "--names", "lo")
        self.offers(["auto"], "shardload", "load", "-j", "a")

    def test_files_where_a_file_can_be_named(self):
        """bash completes file names itself when the function returns nothing."""
        (self.scratch / "here.csv").touch()
        folder = self.scratch / "zsh"
        folder.mkdir()
        (folder / "here.csv").touch()
        for words in (["load", "--schema", "he"], ["load", "he"]):
            for shell, offered in self.completed("shardload", *words).items():
                self.assertEqual(offered, set() if shell == "bash" else {"here.csv"}, (shell, words))
