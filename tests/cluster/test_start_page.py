# SPDX-License-Identifier: Apache-2.0
"""docs/start.md: its commands run on a real cluster, and print what the page shows."""
import os
import pathlib
import re
import subprocess

import support

PAGE = (support.TREE / "docs/start.md").read_text("utf-8")
COMMAND = re.compile(r"(export|cat|sed|shardload|shardload-localcluster) ")


def blocks():
    """The code blocks of the page: (is it a block of commands, text)."""
    for block in re.findall(r"(?:^(?:    .*)?\n)+", PAGE, re.M):
        text = re.sub(r"^    ", "", block, flags=re.M).strip("\n")
        if text and not text.startswith("#"):
            yield bool(COMMAND.match(text)), text


def masked(text):
    """The lines of a text without their numbers, sizes, times and blanks."""
    for line in text.splitlines():
        words = re.sub(r"[\d,.]+( (B|kB|MB|%|s)\b)?", "#", line).split()
        if words and not line.startswith(("hash", "s0 ", "s1 ")):
            yield " ".join(words)


class StartPage(support.ClusterCase):
    def test_the_commands_work_and_print_what_the_page_shows(self):
        programs = self.scratch / "bin"
        programs.mkdir()
        for name in ("shardload", "shardquery"):
            (programs / name).symlink_to(support.program(name))
        # The cluster of the tests, instead of another one.
        starter = programs / "shardload-localcluster"
        starter.write_text('#!/bin/sh\n[ "$1" = up ] && echo "$CLUSTER"\nexit 0\n', "utf-8")
        starter.chmod(0o755)
        script = "\n".join(text for command, text in blocks() if command)
        self.assertGreater(script.count("shardload load"), 2)
        # Another database, because tests share the cluster.
        script = script.replace("-d test ", f"-d {self.database_name} ")
        environment = support.clean_environment(CLUSTER=self.uri)
        environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euxc", script], cwd=self.scratch, capture_output=True,
                              text=True, timeout=5 * support.LIMIT, check=False, env=environment)
        printed = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, printed)
        printed = set(masked(printed.replace(self.database_name, "test")))
        for command, text in blocks():
            if not command:
                self.assertEqual([line for line in masked(text) if line not in printed], [], printed)
        documents = list(self.database.people.find().sort("_id"))
        self.assertEqual([document["_id"] for document in documents], [1, 2, 3, 4, 5])
        self.assertNotIn("score", documents[3])
        (rejects,) = [path for path in self.scratch.glob("shardload-*/rejected/*people.csv")]
        self.assertIn("4,Dan,1971-01-30,London,unknown", pathlib.Path(rejects).read_text("utf-8"))
