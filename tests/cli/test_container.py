# SPDX-License-Identifier: Apache-2.0
"""Dockerfile and compose.yaml, as far as they can be checked without an image registry."""
import json
import re
import subprocess
import unittest

import support

DOCKERFILE = (support.TREE / "Dockerfile").read_text("utf-8")


class Dockerfile(unittest.TestCase):
    def test_every_instruction_is_one(self):
        text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.M).replace("\\\n", " ")
        words = {line.split()[0] for line in text.splitlines() if line.strip()}
        self.assertEqual(words - {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}, set())

    def test_copied_files_exist_and_are_enough(self):
        copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
        names = {name for line in copied for name in line.split()}
        self.assertEqual({name for name in names if not (support.TREE / name).exists()}, set())
        build = (support.TREE / "CMakeLists.txt").read_text("utf-8")
        needed = {path.name for path in support.TREE.iterdir()
                  if path.is_dir() and not path.name.startswith("build") and path.name in build}
        self.assertEqual(needed - names - {"tests"}, set())

    def test_it_installs_the_packages_of_the_build(self):
        setup = '. "$1/tools/setup.sh" && printf "%s\\n" "${build_packages[@]}"'
        packages = subprocess.run(["bash", "-c", setup, "bash", support.TREE], capture_output=True,
                                  text=True, check=True).stdout.split()
        installed = re.search(r"install -y --no-install-recommends((?: +\\\n| *[a-z0-9-]+)+)", DOCKERFILE)[1]
        self.assertEqual(set(packages) - set(installed.split()), set())


    def test_the_programs_do_not_run_as_root(self):
        last = DOCKERFILE.rpartition("FROM ")[2]
        user = re.search(r"^USER (\S+)$", last, re.M)[1]
        self.assertRegex(last, rf"useradd --uid [1-9]\d+ [^\n]* {user} ")
        self.assertLess(last.index("USER "), last.index("ENTRYPOINT"))


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The project's own reader of YAML knows no anchors, so these are replaced here."""
        text = (support.TREE / "compose.yaml").read_text("utf-8")
        cls.text = text
        cls.services = dict(re.findall(r"^  (\w+):\n((?:(?:    .*)?\n)+)", text[text.index("services:"):], re.M))

    def test_services(self):
        self.assertEqual(set(self.services), {"config", "s0", "s1", "mongos", "loader"})
        for name, text in self.services.items():
            for other in re.findall(r"^      (\w+): \{condition: service_healthy\}", text, re.M):
                self.assertIn("healthcheck", self.services[other], name)

    def test_names_of_replica_sets_are_those_of_the_hosts(self):
        for name in ("config", "s0", "s1"):
            command = json.loads(re.search(r"command: (\[.*\])", self.services[name])[1])
            self.assertEqual(command[command.index("--replSet") + 1], name)
        command = json.loads(re.search(r"command: (\[.*\])", self.services["mongos"])[1])
        self.assertEqual(command[command.index("--configdb") + 1], "config/config:27017")
        self.assertIn('["s0", "s1"]', self.services["mongos"])

    def test_anchors_are_defined(self):
        self.assertEqual(set(re.findall(r"\*(\w+)$", self.text, re.M)), set(re.findall(r"&(\w+)", self.text)))
