# SPDX-License-Identifier: Apache-2.0
"""docs/scale.md: its figures are those that the program prints, its tables list the program's inputs
and models."""
import json
import re
import shlex

import support

PAGE = support.TREE / "docs/scale.md"


def hours_in_words(hours):
    seconds = round(hours * 3600)
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds // 60 % 60:02d} min"
    return f"{seconds // 60} min {seconds % 60:02d} s"


class Scale(support.Case):
    def setUp(self):
        super().setUp()
        self.text = PAGE.read_text("utf-8")

    def commands(self):
        """Yields (command, the output that the page shows after it)."""
        found, lines = [], None
        for line in self.text.splitlines():
            if line.startswith("    $ shardload "):
                lines = []
                found.append((line[6:], lines))
            elif lines is not None and (line.startswith("    ") or not line):
                lines.append(line[4:])
            else:
                lines = None
        return found

    def test_the_output_of_each_command_is_on_the_page(self):
        commands = self.commands()
        self.assertGreater(len(commands), 6)
        for command, shown in commands:
            with self.subTest(command):
                printed = self.shardload(*shlex.split(command)[1:]).out.splitlines()
                printed = [line.rstrip() for line in printed]
                while shown and not shown[-1]:
                    shown.pop()
                if shown[0].strip() == "...":
                    printed = printed[-len(shown) + 1:]
                    shown = shown[1:]
                self.assertEqual(shown, printed)

    def test_the_table_of_results(self):
        rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| [^|]+ \|$",
                          self.text, re.M)
        self.assertEqual([row[0] for row in rows],
                         ["isd-one-server", "isd-hundred-shards", "petabyte"])
        for name, *figures, bottleneck in rows:
            report = self.scratch / "r.json"
            self.shardload("plan", "--model", name, "--report", report)
            capacity = json.loads(report.read_text("utf-8"))["capacity"]
            self.assertEqual(figures, [hours_in_words(capacity["hours"][key])
                                       for key in ("value", "low", "high")], name)
            self.assertEqual(bottleneck, capacity["bottleneck"])

    def test_every_input_is_listed(self):
        listed = set(re.findall(r"^\| `([a-z-]+)` \| [^|]*\| [^|]*\| [^|]*\|$", self.text, re.M))
        output = self.shardload("plan", "--model", "petabyte", "--set", "nothing=1",
                              code=support.EXIT_USAGE).err
        known = set(re.search(r"its inputs are (.*)", output).group(1).split(", "))
        self.assertEqual(listed, known)
        self.assertGreater(len(known), 20)

    def test_every_built_in_model_is_in_the_help(self):
        models = {path.stem for path in (support.TREE / "models").glob("*.yaml")}
        output = " ".join(self.shardload("plan", "--help").out.split())
        self.assertEqual([name for name in models if name not in output], [])
        self.assertEqual([name for name in models if name not in self.text], [])


if __name__ == "__main__":
    import tap
    tap.main()
