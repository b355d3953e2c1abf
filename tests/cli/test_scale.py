# SPDX-License-Identifier: Apache-2.0
"""docs/scale.md: its outputs are those that the program prints, and it names every built-in model."""
import shlex

import support

PAGE = (support.TREE / "docs/scale.md").read_text("utf-8")


class Scale(support.Case):
    def commands(self):
        """Yields (command, the output that the page shows after it; "..." for lines left out)."""
        found, lines = [], None
        for line in PAGE.splitlines():
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
        self.assertGreater(len(commands), 2)
        for command, shown in commands:
            with self.subTest(command):
                printed = self.shardload(*shlex.split(command)[1:]).out.splitlines()
                printed = "\n".join(line.rstrip() for line in printed)
                parts = "\n".join(shown).strip("\n").split("  ...\n")
                for part in parts:
                    self.assertIn(part.rstrip("\n"), printed)
                self.assertGreater(len(parts[-1].splitlines()), 5)

    def test_every_built_in_model_is_in_the_help(self):
        models = {path.stem for path in (support.TREE / "models").glob("*.yaml")}
        output = " ".join(self.shardload("plan", "--help", "all").out.split())
        self.assertEqual([name for name in models if name not in output], [])
        self.assertEqual([name for name in models if name not in PAGE], [])
