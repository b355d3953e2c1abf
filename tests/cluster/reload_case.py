# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests of `shardload reload`."""
import html
import json
import re

import answers
import support

PHASES = ["start", "sources", "connect", "prepare", "load", "indexes", "balancer", "verify", "other", "query"]


class ReloadCase:
    def data(self, rows, seed):
        """Generates an MOT file. Returns (path, the path of its expected answers)."""
        (path,) = self.generate("B", rows, "--seed", seed)
        return path, self.file(f"answers-{seed}.json", json.dumps(answers.of("mot", [path])))

    def reload_words(self, work, *words):
        return ["reload", *self.target(), "--suite", "mot", "--work-dir", work, "--progress", "none", *words]

    def refused(self, *words, message, code=support.EXIT_USAGE):
        """A drill that ends with this message before it has a record."""
        return self.shardload(*self.reload_words("w", *words), code=code, message=message)

    def reload(self, *words, code=support.EXIT_OK):
        """Returns (outcome, reload.json, work directory). A sample is loaded twice unless the words
        say otherwise, to save time."""
        if "--sample" in words and "--sample-runs" not in words:
            words = ("--sample-runs", 2, *words)
        work = self.scratch / f"reload-{next(self._counter)}"
        outcome = self.shardload(*self.reload_words(work, *words), code=code)
        record = json.loads((work / "reload.json").read_text("utf-8"))
        self.assertEqual((record["program"], record["command"], record["exitCode"]), ("shardload", "reload", code))
        self.assertEqual([phase["name"] for phase in record["phases"]], PHASES)
        return outcome, record, work

    def assert_page(self, name, tone, text):
        """The verdict of an HTML page: its colour (CSS class), and the beginning of its text."""
        source = (self.scratch / name).read_text("utf-8")
        self.assertIn("</html>", source)
        verdict = re.search(r'<p class="verdict ?(\w*)">([^<]*)<', source)
        self.assertEqual(verdict[1], tone, verdict[2])
        self.assertTrue(html.unescape(verdict[2]).startswith(text), verdict[2])

    def drills(self):
        return [name for name in self.collections() if ".drill." in name]
