# SPDX-License-Identifier: Apache-2.0
"""The exit codes in the code, in the documentation and in --help are the same."""
import re

import support


class ExitCodes(support.Case):
    def test_each_code_is_documented(self):
        header = (support.TREE / "src/util/error.h").read_text()
        codes = [int(code) for code in re.findall(r"^    SL_EXIT_\w+ = (\d+),", header, re.M)]
        table = (support.TREE / "docs/exit-codes.md").read_text()
        self.assertEqual([int(code) for code in re.findall(r"^\| (\d+) \|", table, re.M)], codes)
        shown = " ".join(self.shardload("--help").out.split())
        epilogue = shown[shown.index("Exit codes:"):]
        self.assertEqual([int(code) for code in re.findall(r"(?:: |; )(\d+) ", epilogue)], codes)
