# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md, the workflow files and the changelog describe the tree as it is. The two worked
examples are carried out in a copy of the tree: the format `lines` and the option --line-limit."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support  # noqa: E402

PAGE = (support.TREE / "CONTRIBUTING.md").read_text("utf-8")
VERSION = re.search(r"project\(shardload VERSION (\S+)",
                    (support.TREE / "CMakeLists.txt").read_text("utf-8"))[1]
# What the build of the program reads.
BUILT_FROM = ("CMakeLists.txt", "cmake", "src", "include", "schemas", "queries", "models")


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

    def build(self):
        """Builds the copy of the tree; returns the path of shardload."""
        build = self.scratch / "build"
        log = subprocess.run(
            ["sh", "-c", 'cmake -S "$0" -B "$1" -DCMAKE_BUILD_TYPE=None -DSHARDLOAD_WERROR=ON '
             '-DSHARDLOAD_TESTS=OFF -DSHARDLOAD_TOOLS=OFF && '
             f'cmake --build "$1" --target shardload -j {os.cpu_count()}', self.scratch, build],
            capture_output=True, text=True, check=False)
        self.assertEqual(log.returncode, 0, log.stdout[-3000:] + log.stderr[-3000:])
        return build / "bin/shardload"

    def test_the_examples_build_and_work(self):
        for name in BUILT_FROM:
            source = support.TREE / name
            if source.is_dir():
                shutil.copytree(source, self.scratch / name)
            elif source.exists():
                shutil.copy(source, self.scratch / name)
        src = self.scratch / "src"
        lines = src / "format/lines.c"
        shutil.copy(support.TREE / "tests/data/format_lines.c", lines)
        insert(src / "format/format.h", 'row(ycsb, "ycsb"', example("row(lines") + " \\")
        insert(src / "format/format.h", "} sl_format_options;", example("uint64_t line_limit;"))
        insert(src / "cli/load_options.c", '{.name = "schema"', example('{.name = "line-limit"'))
        insert(src / "cli/load_setup.c", ".schema_name = sl_option_string",
               example(".line_limit = "))
        text = lines.read_text("utf-8")
        default = "(*plan)->line_limit = SL_BLOCK_BYTES;"
        self.assertIn(default, text)
        lines.write_text(text.replace(default, example("(*plan)->line_limit")), "utf-8")
        shardload = self.build()

        data = self.file("data.txt", "a line\n" + 20 * "x" + "\nthe end")
        dump = self.scratch / "dump.bson"
        done = subprocess.run(
            [shardload, "load", "--format", "lines", "--line-limit", "10", "--sink", f"bson:{dump}",
             "--work-dir", self.scratch / "work", "--progress", "none", data],
            capture_output=True, text=True, check=False, env=support.clean_environment())
        self.assertEqual(done.returncode, support.EXIT_REJECTS, done.stdout + done.stderr)
        documents = support.bson_documents(dump.read_bytes())
        self.assertEqual([raw[17:-1] for raw in documents],
                         [b"\x02line\0" + bytes([len(t) + 1, 0, 0, 0]) + t + b"\0"
                          for t in (b"a line", b"the end")])
        self.assert_rejects(self.scratch / "work", "data.txt", [(2, 7, "line")])
        shown = subprocess.run([shardload, "load", "--help"], capture_output=True, text=True,
                               check=True).stdout
        self.assertIn("--line-limit", shown)
        self.assertIn("lines: any text; each line becomes a document.", re.sub(r"\s+", " ", shown))


class Pages(unittest.TestCase):
    def test_commands_of_the_page_exist(self):
        commands = re.findall(r"^    ((?:tools|build/bin)/\S+)((?: --[\w-]+)*)", PAGE, re.M)
        self.assertGreater(len(commands), 10)
        for command, options in commands:
            if command.startswith("build/bin/"):
                path = support.program(pathlib.Path(command).name)
            else:
                path = support.TREE / command
                self.assertTrue(os.access(path, os.X_OK), command)
            if options:
                shown = subprocess.run([path, "--help"], capture_output=True, text=True,
                                       check=True).stdout
                for option in options.split():
                    self.assertIn(option, shown, command)

    def test_ctest_runs_every_unit_test_without_servers(self):
        build = os.environ.get("SHARDLOAD_BUILD")
        if not build:
            self.skipTest("SHARDLOAD_BUILD is not set")
        done = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True,
                              check=True)
        listed = set(re.findall(r"Test +#\d+: (\S+)", done.stdout))
        built = {path.name for path in pathlib.Path(build, "bin/tests").glob("test_*")}
        self.assertEqual(listed, {name for name in built if not name.startswith("test_cluster")})
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


if __name__ == "__main__":
    import tap
    tap.main()
