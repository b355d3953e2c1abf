# SPDX-License-Identifier: Apache-2.0
"""The rows of tools/bench that have servers, which they start themselves: small, to see that they
compare what they say they compare. How fast anything is, is never tested.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import support  # noqa: E402

BENCH = support.TREE / "tools" / "bench"


class Rows(support.Case):
    """The rows with servers, which they start themselves."""

    def setUp(self):
        super().setUp()
        support.need_driver()
        support.program("shardload-yardstick")
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir()

    def measure(self, *rows):
        file = self.scratch / "b.json"
        environment = support.clean_environment(
            SHARDLOAD_BUILD=os.environ["SHARDLOAD_BUILD"], TMPDIR=str(self.temporary))
        done = subprocess.run(
            [sys.executable, BENCH, "--scale", "0.002", "--runs", "2", "--json", file, *rows],
            env=environment, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [], "it has left data behind")
        self.assertEqual(servers_in(self.temporary), [], "it has left servers behind")
        found = json.loads(file.read_text("utf-8"))
        self.assertTrue(found["machine"]["server"])
        return {row["row"]: row for row in found["rows"]}

    def test_loader_and_yardstick_take_turns(self):
        rows = self.measure("load-mongod", "load-cluster")
        for name in ("load-mongod", "load-cluster"):
            lines = {line["title"]: line for line in rows[name]["lines"]}
            ours, plain = lines["loader, docs/s"], lines["yardstick, docs/s"]
            ratio = lines["loader against yardstick"]
            self.assertEqual(ratio["values"], [a / b for a, b in zip(ours["values"],
                                                                     plain["values"])])
            self.assertEqual(len(ratio["values"]), 2)
            self.assertIn(ratio["met"], (True, False))

    def test_the_python_driver_loads_the_same_number_of_documents(self):
        """Else the row would carry a note, and its times would not compare."""
        row = self.measure("python-driver")["python-driver"]
        self.assertEqual([note for note in row["notes"] if "has inserted" in note], [])
        self.assertEqual(row["state"], "measured")


def servers_in(folder):
    """Processes whose command line names that folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words and entry.parent.name != str(os.getpid()):
            found.append(words)
    return found


if __name__ == "__main__":
    import tap
    tap.main()
