# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md, the workflow files and the changelog describe the tree as it is. The two worked
examples are carried out in a copy of src/: the format `lines` and the option --line-limit."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import support

PAGE = (support.TREE / "CONTRIBUTING.md").read_text("utf-8")
VERSION = re.search(r"project\(shardload VERSION (\S+)", (support.TREE / "CMakeLists.txt").read_text("utf-8"))[1]
def example(beginning):
    """The code block of the page whose text begins with `beginning`."""
    blocks = re.findall(r"```c\n(.*?)```", PAGE, re.S)
    return next(block.strip() for block in blocks if block.strip().startswith(beginning))


def insert(path, anchor, text):
    """Inserts the text before the line that contains `anchor`, which occurs once."""
    content = path.read_text("utf-8")
    if content.count(anchor) != 1:
        raise AssertionError(f"{anchor} occurs {content.count(anchor)} times in {path}")
    start = content.rindex("\n", 0, content.index(anchor)) + 1
    path.write_text(content[:start] + text + "\n" + content[start:], "utf-8")


class Examples(support.Case):
    @classmethod
    def setUpClass(cls):
        if not os.environ.get("SHARDLOAD_BUILD"):
            raise unittest.SkipTest("SHARDLOAD_BUILD is not set")
        cls.tests = pathlib.Path(os.environ["SHARDLOAD_BUILD"], "tests")

    def run_words(self, words):
        done = subprocess.run([str(word) for word in words], cwd=self.tests, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")

    def compile(self, source):
        """Compiles a file as the unit tests are compiled, with the copy's headers; returns the
        object. Existing objects fit to it, because new fields are at the end of their structs."""
        commands = json.loads((self.tests.parent / "compile_commands.json").read_text("utf-8"))
        words = shlex.split(next(entry["command"] for entry in commands if "/tests/unit/test_" in entry["file"]))
        words = [word for word in words[:words.index("-o")] if "ccache" not in word]
        made = self.scratch / f"{source.stem}.o"
        self.run_words([words[0], f"-I{self.scratch}/src", f"-I{support.TREE}/tests/unit", *words[1:],
                        f'-DSHARDLOAD_VERSION="{VERSION}"', "-o", made, "-c", source])
        return made

    def link(self, objects, program):
        """Links the objects before the libraries, in the place of the files of unit tests."""
        words = shlex.split((self.tests / "CMakeFiles/unit_tests.dir/link.txt").read_text())
        main = next(word for word in words if word.endswith("/unit.c.o"))
        first = next(index for index, word in enumerate(words) if word.endswith(".o"))
        self.run_words([*words[:first], main, *objects, "-o", program, *words[words.index("-o") + 2:]])

    def test_the_examples_build_and_work(self):
        src = self.scratch / "src"
        shutil.copytree(support.TREE / "src", src)
        lines = src / "format/lines.c"
        shutil.copy(support.TREE / "tests/data/format_lines.c", lines)
        insert(src / "format/format.h", 'row(ycsb, "ycsb"', example("row(lines") + " \\")
        insert(src / "format/format.h", "} sl_format_options;", example("uint64_t line_limit;"))
        insert(src / "cli/load_options.c", '{.name = "schema"', example('{.name = "line-limit"'))
        insert(src / "cli/load_setup.c", ".schema_name = sl_option_string", example(".line_limit = "))
        text = lines.read_text("utf-8")
        default = "(*plan)->line_limit = SL_BLOCK_BYTES;"
        self.assertIn(default, text)
        lines.write_text(text.replace(default, example("(*plan)->line_limit")), "utf-8")
        test = self.scratch / "test_lines"
        self.compile(src / "cli/load_setup.c")
        self.link([self.compile(path) for path in (
            support.TREE / "tests/data/test_lines.c", lines, src / "format/format.c",
            src / "cli/load_options.c")], test)
        self.run_words([test])


class Pages(unittest.TestCase):
    def test_typical_changes_touch_at_most_five_files_that_contain_what_is_named(self):
        section = PAGE[PAGE.index("## Ten typical changes"):PAGE.index("## Add a format")]
        rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", section, re.M)[2:]
        self.assertEqual(len(rows), 10)
        places = []
        for change, files in rows:
            named = re.findall(r"`(\w+)` in `([\w/.]+)`", files)
            self.assertLessEqual(len(named) + files.count("the format that counts"), 5, change)
            self.assertEqual([path for path in re.findall(r"`((?:src|cmake)/[\w/.]+)`", files)
                              if path not in dict(map(reversed, named))], [], change)
            places += named
        self.assertGreater(len(places), 20)
        for name, path in places:
            self.assertRegex((support.TREE / path).read_text("utf-8"), rf"\b{name}", path)

    def test_commands_of_the_page_exist(self):
        commands = re.findall(r"^    ((?:tools|build/bin)/\S+)((?: --[\w-]+)*)", PAGE, re.M)
        self.assertGreaterEqual(len(commands), 8)
        for command, options in commands:
            if command.startswith("build/bin/"):
                path = support.program(pathlib.Path(command).name)
            else:
                path = support.TREE / command
                self.assertTrue(os.access(path, os.X_OK), command)
            if options:
                shown = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
                for option in options.split():
                    self.assertIn(option, shown, command)

    def test_ctest_runs_every_unit_test_without_servers(self):
        build = os.environ.get("SHARDLOAD_BUILD")
        if not build:
            self.skipTest("SHARDLOAD_BUILD is not set")
        done = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True)
        listed = set(re.findall(r"Test +#\d+: (\S+)", done.stdout))
        files = {path.stem for path in (support.TREE / "tests/unit").glob("test_*.c")}
        self.assertEqual(listed, {name for name in files if not name.startswith("test_cluster")})
        self.assertIn("All other tests: tools/test", done.stdout + done.stderr)

    def test_the_version_is_in_one_place(self):
        for program in ("shardload", "shardquery"):
            for option in ("--version", "--man"):
                shown = subprocess.run([support.program(program), option], capture_output=True,
                                       text=True, check=True).stdout
                self.assertIn(f"{program} {VERSION}", shown.replace('"', ""), option)
        quoted = [str(path.relative_to(support.TREE)) for folder in ("src", "include", "docs", "cmake")
                  for path in (support.TREE / folder).rglob("*")
                  if path.is_file() and VERSION in path.read_text("utf-8")]
        self.assertEqual(quoted, [])

    def test_the_changelog_has_the_version_and_an_unreleased_section(self):
        titles = re.findall(r"^## (.*)$", (support.TREE / "CHANGELOG.md").read_text("utf-8"), re.M)
        self.assertEqual(titles[0], "Unreleased")
        self.assertTrue(any(title.split(",")[0] == VERSION for title in titles), titles)

    def test_the_workflow_runs_the_same_as_continuous_integration(self):
        workflow = (support.TREE / ".github/workflows/ci.yml").read_text("utf-8")
        self.assertIn("run: .ci/run\n", workflow)
        for action in re.findall(r"uses: (\S+)", workflow):
            self.assertRegex(action, r"@v\d+$")

    def test_links_lead_to_files_and_headings(self):
        done = subprocess.run([sys.executable, support.TREE / "tools/checks/links.py", support.TREE],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout + done.stderr, "")
