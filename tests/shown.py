# SPDX-License-Identifier: Apache-2.0
"""Text that would act on a terminal or forge lines, and the search for it in what programs leave."""
import os
import re

# A window title, colours by ESC and by C1, an override, an isolate, marks, separators, DEL, CR.
ACTING = "\x1b]0;t\x07\x1b[31m\u009b7m\u202eabc\u2066d\u200f\u061c\u2028\u2029\x7f\r\x08"
FORGED = "forged: all is well"
HOSTILE = f"h{ACTING}\n{FORGED}"

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def wrong_with(text, where, tabs=False):
    """What must not be in a text that a person reads, or None."""
    found = RAW.search(text)
    if found:
        return f"{where}: raw {found.group()!r} in {text[max(0, found.start() - 60):found.end()]!r}"
    if not tabs and "\t" in text:
        return f"{where}: a tab"
    if any(line.startswith(FORGED) for line in text.splitlines()):
        return f"{where}: a forged line in {text!r}"
    return None


class ShownCase:
    """Of a support.Case: programs that may fail, but show nothing raw."""

    shown = 0  # how often something hostile was met, made harmless

    def look(self, text, where, tabs=False):
        self.assertIsNone(wrong_with(text, where, tabs))
        self.shown += any(mark in text for mark in ("\\x1b", "\\u001b", "\\xe2\\x80\\xae"))

    def show(self, *words, program="shardload", codes=(0, 1, 2, 3, 4, 5), expect=True, **more):
        """Runs it; `expect`: hostile text is there, made harmless."""
        before = self.shown
        outcome = self.run_program(program, *words, **more)
        self.assertIn(outcome.code, codes, outcome.text)
        self.look(outcome.out, "standard output")
        self.look(outcome.err, "standard error")
        for folder, _, names in os.walk(self.scratch):
            for name in names:
                if name in ("shardload.log", "rejects.tsv", "problems.tsv", "run.json", "page.html"):
                    with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as file:
                        self.look(file.read(), name, tabs=True)
        if expect:
            self.assertGreater(self.shown, before, f"nothing hostile was shown: {outcome.text}")
        return outcome
