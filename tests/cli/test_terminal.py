# SPDX-License-Identifier: Apache-2.0
"""What a load prints on terminals of several widths."""
import support


class Terminal(support.Case):
    def shown(self, columns):
        """All that a load writes to a terminal of this width, without control sequences."""
        path = self.file("t.csv", support.mot_text(range(5000)))
        code, text = support.on_terminal("shardload", "load", "--sink", "null", "--work-dir",
                                         self.scratch / f"work-{columns}", path, columns=columns)
        self.assertEqual(code, support.EXIT_OK, text)
        return text.replace("\x1b[K", "")

    def test_the_summary_fits(self):
        for columns, label in ((80, 38), (54, 38), (40, 24), (30, 14)):
            with self.subTest(columns=columns):
                lines = self.shown(columns).replace("\r", "\n").split("\n")
                rows = [line for line in lines if line.startswith("  ") and line.endswith(" 5,000")]
                self.assertEqual(rows, [f"  {name:<{label}} {'5,000':>12}"
                                        for name in ("records", "= inserted")])
                self.assertLess(max(map(len, rows)), columns)
