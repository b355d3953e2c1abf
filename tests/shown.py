# SPDX-License-Identifier: Apache-2.0
"""Text that would control a terminal or forge lines of output, and checks that no output of the
programs contains it unescaped."""
import json
import os
import re

# A window title, colours by ESC and by C1, bidirectional override, isolate and marks, line and
# paragraph separators, a byte order mark, a tag, an invisible space, DEL, CR, backspace.
ACTING = "\x1b]0;t\x07\x1b[31m\u009b7m\u202eabc\u2066d\u200f\u061c\u2028\u2029\ufeff\U000e0041\u200b\x7f\r\x08"
FORGED = "forged: all is well"
HOSTILE = f"h{ACTING}\n{FORGED}"


def quoted(value):
    """The value as JSON that is YAML, too, which has no pairs of surrogates."""
    return json.dumps(value).replace("\\udb40\\udc41", "\U000e0041")


QUOTED = quoted(HOSTILE)

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
                 "\U000e0000-\U000e0fff]")


def problem_in(text, where, tabs=False):
    """Describes a control character or a forged line in the text of an output; None: it has none."""
    found = RAW.search(text)
    if found:
        return f"{where}: raw {found.group()!r} in {text[max(0, found.start() - 60):found.end()]!r}"
    if not tabs and "\t" in text:
        return f"{where}: a tab"
    if any(line.startswith(FORGED) for line in text.splitlines()):
        return f"{where}: a forged line in {text!r}"
    return None


class ShownCase:
    """For a support.Case: runs programs that may fail, but must escape hostile text in all of their
    output."""

    escaped = 0  # outputs in which hostile text was escaped

    def check_text(self, text, where, tabs=False):
        self.assertIsNone(problem_in(text, where, tabs))
        self.escaped += any(mark in text for mark in ("\\x1b", "\\u001b", "\\xe2\\x80\\xae"))

    def show(self, *words, program="shardload", codes=(0, 1, 2, 3, 4, 5), expect=True, **more):
        """Runs a program and checks its output and the files that it has written. `expect`: some of
        them must contain hostile text, escaped."""
        before = self.escaped
        outcome = self.run_program(program, *words, **more)
        self.assertIn(outcome.code, codes, outcome.text)
        self.check_text(outcome.out, "standard output")
        self.check_text(outcome.err, "standard error")
        for folder, _, names in os.walk(self.scratch):
            for name in names:
                if name in ("shardload.log", "rejects.tsv", "problems.tsv", "run.json", "page.html"):
                    with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as file:
                        self.check_text(file.read(), name, tabs=True)
        if expect:
            self.assertGreater(self.escaped, before, f"no escaped text in the output: {outcome.text}")
        return outcome
