# SPDX-License-Identifier: Apache-2.0
"""Control characters, marks of text direction and line ends in names, data and configuration are
escaped on the terminal, in the log and in reports. One test for each kind of text."""
import json
import tarfile

import archive_making as making
import support
from shown import ACTING, FORGED, HOSTILE, QUOTED, ShownCase


class Shown(ShownCase, support.Case):
    def load(self, *words, **more):
        number = next(self._counter)
        return self.show("load", "--sink", "null", "--work-dir", self.scratch / f"work-{number}",
                         "--progress", "plain", "--html", self.scratch / f"w{number}-page.html",
                         *words, **more)

    # Names

    def test_names_of_files_and_folders(self):
        folder = self.scratch / HOSTILE.replace("/", "")
        path = self.file(folder / (HOSTILE + ".csv"), "a,b\n1,2\n3\n")
        self.load(path)
        self.load(folder)
        self.load(path, path)
        self.show("inspect", path)
        self.show("plan", path)
        self.file(folder / "binary", b"\x00\x01" + ACTING.encode() + b"\n")
        self.load(folder)
        for words in (["load", "--sink", "null"], ["inspect"], ["report"], ["plan"]):
            self.show(*words, HOSTILE)

    def test_names_of_archive_entries(self):
        path = self.file("a.tar", making.tar([(HOSTILE + "1.csv", "a,b\n1,2\n3\n"), (HOSTILE + "2.txt", "\x00?")],
                                             format=tarfile.PAX_FORMAT))
        self.load(path)
        self.show("inspect", path, expect=False)

    def test_headers_and_fields(self):
        header = f"a{ACTING.replace(chr(13), '')},b\n"
        path = self.file("f.csv", header + f"1,2\n3\n4,x{ACTING.replace(chr(13), '')}\n")
        self.load(path, expect=False)
        self.show("inspect", path)
        self.show("inspect", self.file("g.csv", ACTING.replace(chr(13), "") + "\nx\n"))
        schema = self.file("s.yaml", f"name: s\ncolumns:\n- {{name: {QUOTED}, type: int}}\n- {{name: b}}\n")
        self.load("--format", "delimited", "--schema", schema,
                  self.file("t.csv", f"1,2\n{ACTING.replace(chr(13), '')},3\n"))
        self.load("--format", "mot", self.file(
            "m.txt", support.HEADER + "\n" + support.ROW.format(id="\x1b[2J\u202e") + "\n"))
        self.load(self.file("q.csv", 'a,b\n1,"\x1b[2J\u202e\n2,3\n'))

    # Configuration

    def test_names_in_a_schema_that_is_written(self):
        """It names the same columns: what controls text or its direction is escaped."""
        names = ["a\x1b[31m", "b\u202ec", "d\u2066", "e\x9b", "f\u2028", "\ufeffg", "h\\", "i\U0001f600", "z"]
        path = self.file("odd.csv", ",".join(["k", *names]) + "\n1" + ",2" * len(names) + "\n")
        schema = self.scratch / "odd.yaml"
        self.shardload("inspect", "--write-schema", schema, path)
        self.assertNotRegex(schema.read_text("utf-8"), "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufeff]")
        self.assertEqual(*(self.dump("--format", "delimited", *words, path)[0] for words in ((), ("--schema", schema))))

    def test_schemas(self):
        good = self.file("f.csv", "a,b\n1,2\n")
        for text in (f"name: {QUOTED}\ncolumns:\n- {{name: a}}\n- {{name: {QUOTED}}}\n",
                     f"name: {QUOTED}\ncolumns:\n- {{name: a}}\n- {{name: {QUOTED}, required: true}}\n",
                     f"{QUOTED}: 1\n", f"name: s\nkind: {QUOTED}\ncolumns: {QUOTED}\n",
                     f"name: s\ncolumns:\n- {{name: a, type: {QUOTED}}}\n", HOSTILE,
                     f"name: s\ndelimiter: {QUOTED}\ncolumns: []\n"):
            self.load("--format", "delimited", "--schema", self.file("s.yaml", text), good,
                      expect=text is not HOSTILE)
        self.load("--format", "delimited", "--schema", self.scratch / HOSTILE, good)
        kind = f"name: s\nkind: {QUOTED}\ncolumns: [{{name: a}}, {{name: b}}]\n"
        self.load("--format", "delimited", "--schema", self.file("k.yaml", kind), good)
        self.load("--format", "isd", "--schema", self.file("n.yaml", f"{QUOTED}: {QUOTED}\n"), good)

    def test_options_and_configuration_files(self):
        good = self.file("f.csv", "a,b\n1,2\n")
        for words in (["--" + HOSTILE], ["--threads", HOSTILE], ["--db", HOSTILE], ["--index", HOSTILE],
                      ["--format", HOSTILE], ["--include", HOSTILE], ["--config", HOSTILE],
                      ["--max-rejects", HOSTILE], ["--shard-key", json.dumps({HOSTILE: 2})]):
            self.load(*words, good, expect=words[0] != "--include")
        for text in (f"{QUOTED}: 1\n", f"threads: {QUOTED}\n", f"include: {{{QUOTED}: 1}}\n"):
            self.load("--config", self.file("c.yaml", text), good, expect="include" not in text)
        self.show(HOSTILE)
        self.load(good, environment=support.clean_environment(SHARDLOAD_THREADS=HOSTILE))

    def test_capacity_models(self):
        base = (support.TREE / "models/isd-one-server.yaml").read_text()
        for text in (f"title: {QUOTED}\nanswer: a\nresults: {{a: {{work: [{QUOTED}]}}}}\n",
                     base.replace('note: "10 Gb/s"', f"note: {QUOTED}"),
                     base.replace("unit: dollars}", f"unit: dollars, note: {QUOTED}}}")):
            self.show("plan", "--model", self.file("m.yaml", text))
        self.show("plan", "--model", self.scratch / HOSTILE)
        self.show("plan", "--model", HOSTILE)
        title = [line for line in base.splitlines() if line.startswith("title:")][0]
        self.show("plan", "--model", self.file("t.yaml", base.replace(title, f"title: {QUOTED}")))

    def test_suites(self):
        suite = "name: {0}\ndescription: {0}\nqueries:\n- name: {0}\n  description: {0}\n  pipeline: |\n    [{1}]\n"
        words = ["run", "--uri", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100", "-d", "x",
                 "-c", "y"]
        for text in (suite.format(QUOTED, ""), suite.format(QUOTED, QUOTED), f"{QUOTED}: 1\n", HOSTILE,
                     f"name: s\nqueries:\n- {{name: q, {QUOTED}: 1}}\n",
                     f"name: s\nqueries:\n- name: q\n  pipeline: |\n    [\x41{ACTING[:4]}]\n"):
            self.show(*words, self.file("s.yaml", text), program="shardquery", expect=False)
        self.show(*words, self.scratch / HOSTILE, program="shardquery")
        self.show(HOSTILE, program="shardquery")

    # Records of earlier runs

    def test_reports_of_manipulated_records(self):
        good = self.file("f.csv", "a,b\n1,2\n3\n")
        _, work = self.parse(good, code=support.EXIT_REJECTS)

        def manipulated(value):
            if isinstance(value, dict):
                return {key: manipulated(one) for key, one in value.items()}
            if isinstance(value, list):
                return [manipulated(one) for one in value]
            return value + HOSTILE if isinstance(value, str) else value

        record = support.run_record(work)
        keep = {key: record[key] for key in ("program", "command") if key in record}
        path = self.file("bad.json", json.dumps(manipulated(record) | keep))
        self.show("report", path)
        self.show("report", path, path)
        self.show("report", "--html", "-", path)
        self.show("report", "--html", self.scratch / "page.html", path)
        self.show("plan", "--from", path, good, expect=False)
        self.show("compare", path, path, program="shardquery", expect=False)
        timing = {"suite": HOSTILE, "name": HOSTILE, "pipeline": [], "medianMs": 2.5}
        path = self.file("q.json", json.dumps({"program": "shardquery", "queries": [timing]}))
        self.show("compare", path, path, program="shardquery")


class Forged(support.Case):
    def test_a_file_name_cannot_forge_a_line_of_the_log(self):
        path = self.file("x\n2026-01-01T00:00:00.000Z info " + FORGED + ".csv", "a,b\n1,2\n3\n")
        _, work = self.parse(path, code=support.EXIT_REJECTS)
        for line in (work / "shardload.log").read_text().splitlines():
            self.assertNotRegex(line, "^2026-01-01T00:00:00.000Z info " + FORGED)
