# SPDX-License-Identifier: Apache-2.0
"""No output of a command replaces an input of the same command, or another output. The check comes before a
server is contacted, so none is needed."""
import os
import shutil
import subprocess

import support

NOWHERE = "mongodb://127.0.0.1:1/"


class Outputs(support.Case):
    def setUp(self):
        super().setUp()
        self.table = self.file("t.csv", "a,b\n1,x\n2,y\n")
        self.items = self.file("items.csv", "a,c\n1,z\n")
        self.file("s.yaml", "name: t\ncolumns: [{name: a}, {name: b}]\n")
        self.file("config.yaml", "types: text\n")
        self.file("suite.yaml", "name: s\nqueries:\n  - {name: q, pipeline: []}\n")
        self.file("answers.json", '{"answers": {}}\n')
        self.file("secret", "word\n")
        self.file("key.pem", "key\n")
        self.file("folder/t.csv", "a,b\n1,x\n")
        for side in ("old", "new"):
            self.file(f"{side}/{side}.json", "{}\n")
        os.link(self.table, self.scratch / "hard.csv")
        os.symlink(self.scratch, self.scratch / "here")
        os.symlink("t.csv", self.scratch / "link.csv")
        self.shardload("load", "--sink", "null", "--work-dir", "done", self.table)

    def contents(self):
        return {path: path.read_bytes() for path in self.scratch.rglob("*")
                if path.is_file() and not path.name.startswith("std")}

    def refused(self, program, *words, message):
        before = self.contents()
        outcome = self.run_program(program, *words, limit=30).expect(support.EXIT_USAGE)
        self.assertIn(message, outcome.err)
        self.assertEqual(self.contents(), before)

    def all_refused(self, program, command, outputs, inputs):
        """Each output option of a command, given each of its inputs. The words of an input name it last."""
        for option in outputs:
            prefix = "bson:" if option == "--sink" else ""
            for words in inputs:
                path = words[-1].partition("items=")[2] or words[-1]
                with self.subTest(command=command, output=option, input=words):
                    self.refused(program, command, option, prefix + path, *words,
                                 message="which would be replaced: name another file")

    def test_a_work_directory_with_the_name_of_standard_output_is_a_folder(self):
        self.shardload("load", "--sink", "null", "--work-dir", "-", "t.csv")
        self.assertTrue((self.scratch / "-/run.json").exists())
        self.refused("shardload", "load", "--sink", "null", "--work-dir", "-", "--metrics-file",
                     "-/run.json", "t.csv", message="a file of the work directory")

    def test_an_output_named_as_standard_output_is_refused(self):
        """It became a file with the name -, beside the message of success."""
        for program, words in (("shardload", ["load", "--sink", "null", "--html"]),
                               ("shardload", ["load", "--sink", "null", "--metrics-file"]),
                               ("shardload", ["tune", "-d", "d", "-c", "c", "--save"]),
                               ("shardload", ["plan", "--report"]), ("shardload", ["inspect", "--write-schema"]),
                               *(("shardquery", ["run", "-d", "d", "-c", "c", name])
                                 for name in ("--csv", "--html", "--report"))):
            with self.subTest(words=words):
                self.refused(program, *words, "-", "t.csv", message=f"{words[-1]} -: this command prints its results")

    def test_a_dump_on_standard_output_is_alone_there(self):
        path = self.file("t.csv", "a,b\n1,x\n2,y\n")
        self.shardload("load", "--sink", "bson:t.bson", "--work-dir", "w1", path)
        for number, words in enumerate((["--verbose"], [], ["--progress", "plain"], ["--quiet"])):
            done = subprocess.run([support.program("shardload"), "load", "--sink", "bson:-", "--work-dir", f"v{number}",
                                   *words, path], cwd=self.scratch, capture_output=True, check=True)
            self.assertEqual(done.stdout, (self.scratch / "t.bson").read_bytes())

    def test_standard_output_is_in_no_source_folder(self):
        for name, below in (("-", False), ("x.bson", True)):
            done = self.run_program("shardload", "load", "--sink", f"bson:{name}", "--work-dir", "../none", ".")
            self.assertEqual("lies in the source folder" in done.err, below, done.err)

    def test_no_output_of_a_load_replaces_an_input(self):
        fixed = ["--uri", NOWHERE, "-d", "d", "-c", "c", "t.csv"]
        for command, outputs in (("load", ["--report", "--html", "--metrics-file"]), ("verify", ["--report"]),
                                 ("tune", ["--report", "--html", "--save"]), ("reload", ["--report", "--html"])):
            embeds = [[*fixed, "--on", "a", "--embed", "items=items.csv"],
                      [*fixed, "--on", "a", "--embed", "items=items.csv", "--embed-schema", "s.yaml"]]
            suites = [[*fixed, "--suite", "suite.yaml"]]
            self.all_refused("shardload", command, outputs, [
                fixed, [*fixed, "--schema", "s.yaml"], [*fixed, "--config", "config.yaml"],
                [*fixed, "-u", "me", "--password-file", "secret"], [*fixed, "--tlsCAFile", "key.pem"],
                [*fixed, "--tlsCertificateKeyFile", "key.pem"],
                *(embeds if command in ("load", "verify") else suites)])
        self.all_refused("shardload", "reload", ["--report", "--html"], [
            [*fixed, "--suite", "suite.yaml", "--answers", "answers.json"],
            [*fixed, "--suite", "suite.yaml", "--compare", "done/run.json"]])

    def test_a_sink_truncates_no_input(self):
        self.all_refused("shardload", "load", ["--sink"], [
            ["t.csv"], ["t.csv", "--schema", "s.yaml"], ["t.csv", "--config", "config.yaml"],
            ["t.csv", "--on", "a", "--embed", "items=items.csv"]])
        for other in ("./t.csv", "folder/../t.csv", "here/t.csv", "hard.csv", "link.csv"):
            with self.subTest(other):
                self.refused("shardload", "load", "--sink", f"bson:{other}", "t.csv",
                             message="is the input t.csv, which would be replaced")
        os.link(self.table, self.scratch / "folder/hard.csv")
        self.refused("shardload", "load", "--sink", "bson:t.csv", "folder",
                     message="is a file of the source folder folder")

    def test_standard_input_and_output_are_files_too(self):
        for words, redirection, message in (
                ("--sink bson:t.csv -", "<t.csv", "is the input -, which would be replaced"),
                ("--report t.csv -", "<t.csv", "is the input -, which would be replaced"),
                ("--sink bson:- t.csv", ">>t.csv", "is the input t.csv, which would be replaced")):
            with self.subTest(words):
                outcome = self.run_program("shardload", "load", *words.split(), "--work-dir", "w", through=[
                    "sh", "-c", f'"$0" "$@" {redirection}']).expect(support.EXIT_USAGE)
                self.assertIn(message, outcome.err)
                self.assertEqual(self.table.read_text(), "a,b\n1,x\n2,y\n")

    def redirected(self, words, redirection):
        self.table.write_text("a,b\n1,x\n2,y\n")
        return self.run_program("shardload", *words.split(), through=["sh", "-c", f'"$0" "$@" {redirection}'])

    def test_standard_output_and_error_are_not_redirected_to_an_input(self):
        """The output could be read as records, or replace some."""
        load = "load --sink null --work-dir w"
        for words, redirection, message in (
                (f"{load} --progress json -", "<t.csv 1<>t.csv", "standard output is the input -, which would"),
                (f"{load} t.csv", ">>t.csv", "standard output is the input t.csv"),
                (f"{load} --schema s.yaml t.csv", ">>s.yaml", "standard output is the input s.yaml"),
                ("inspect hard.csv", ">>t.csv", "standard output is the input hard.csv")):
            with self.subTest(words):
                before = self.contents()
                self.assertIn(message, self.redirected(words, redirection).expect(support.EXIT_USAGE).err)
                self.assertEqual(self.contents(), before)
        self.redirected(f"{load} t.csv", "2>>t.csv").expect(support.EXIT_USAGE)
        self.assertIn("standard error is the input t.csv", self.table.read_text())

    def test_standard_output_and_error_may_be_any_other_file(self):
        for redirection in (">>items.csv 2>>items.csv <t.csv", ">/dev/null 2>&1 <t.csv", ">folder/log <t.csv"):
            with self.subTest(redirection):
                self.redirected("load --sink null --work-dir w t.csv", redirection).expect(support.EXIT_OK)

    def test_no_output_of_the_other_commands_replaces_an_input(self):
        self.all_refused("shardload", "inspect", ["--write-schema"], [
            ["t.csv"], ["t.csv", "--schema", "s.yaml"], ["t.csv", "--config", "config.yaml"]])
        self.all_refused("shardload", "report", ["--html"], [["done/run.json"]])
        self.all_refused("shardload", "plan", ["--report"], [
            ["t.csv"], ["t.csv", "--from", "done/run.json"], ["--model", "s.yaml"]])
        fixed = ["--uri", NOWHERE]
        self.all_refused("shardload", "restore", ["--report", "--metrics-file"], [
            [*fixed, "key.pem"], [*fixed, "--archive", "key.pem"], [*fixed, "folder", "--shard-keys", "s.yaml"]])
        self.all_refused("shardload", "verify", ["--report"], [[*fixed, "--dump", "key.pem"]])
        self.all_refused("shardquery", "run", ["--report", "--html", "--csv"], [
            ["suite.yaml"], ["suite.yaml", "--answers", "answers.json"],
            ["suite.yaml", "-u", "me", "--password-file", "secret"]])
        self.all_refused("shardquery", "compare", ["--report"], [["old/old.json", "new/new.json"]])
        self.refused("shardquery", "compare", "--report", "new/new.json", "old/old.json,new/new.json", "old",
                     message="is the input new/new.json")
        self.refused("shardquery", "compare", "--report", "new/new.json", "old", "new",
                     message="lies in the source folder new")
        self.refused("shardquery", "compare", "--ab", "--a", "suite.yaml -d a", "--b", "suite.yaml -d b",
                     "--report", "suite.yaml", message="is the file of --a")

    def test_files_in_a_connection_string_are_inputs(self):
        for name in ("tlsCAFile=key.pem", "w=1&tlscertificatekeyfile=%6bey.pem"):
            self.refused("shardload", "load", "--uri", f"{NOWHERE}?{name}", "-d", "d", "-c", "c", "--report",
                         "key.pem", "t.csv", message="is the file of --uri")

    def test_nothing_is_written_into_a_source_folder(self):
        for option, value in (("--report", "folder/new.csv"), ("--sink", "bson:folder/new.bson")):
            self.refused("shardload", "load", option, value, "folder", message="lies in the source folder folder")

    def test_outputs_do_not_replace_each_other(self):
        self.file("existing", "{}\n")
        os.link(self.scratch / "existing", self.scratch / "the-same")
        for one, other in (("a", "./a"), ("existing", "the-same")):
            self.refused("shardload", "load", "--report", one, "--metrics-file", other, "t.csv",
                         message="is the file of --metrics-file")
            self.refused("shardquery", "run", "--csv", one, "--html", other, "suite.yaml",
                         message="is the file of --html")

    def test_outputs_do_not_replace_files_of_the_work_directory(self):
        for folder in ("done", "unused", "unused/"):
            for option, name in (("--report", "journal"), ("--metrics-file", "status.json"),
                                 ("--sink", "rejects.tsv")):
                value = ("bson:" if option == "--sink" else "") + f"{folder.rstrip('/')}/{name}"
                self.refused("shardload", "load", "--work-dir", folder, option, value, "t.csv",
                             message="a file of the work directory")
        self.assertFalse((self.scratch / "unused").exists())

    def test_inputs_in_the_work_directory_are_kept(self):
        for name in ("status.json", "control.json", "shardload.log", "journal", "run.json", "rejected/1-t.csv"):
            with self.subTest(name):
                path = self.file(f"used/{name}", self.table.read_text())
                self.file("used/shardload.log", "a,b\n1,x\n")
                self.refused("shardload", "load", "--sink", "null", "--work-dir", "used", path,
                             message="this command would replace by its own: name another directory")
                os.link(path, self.scratch / "a-link.csv")
                self.refused("shardload", "load", "--sink", "null", "--work-dir", "used", "a-link.csv",
                             message="this command would replace by its own: name another directory")
                self.parse(path, "--format", "delimited")
                shutil.rmtree(self.scratch / "used")
                os.unlink(self.scratch / "a-link.csv")

    def test_other_files_may_be_written(self):
        """Again and again, beside the inputs, and into a work directory."""
        for _ in range(2):
            self.shardload("load", "--sink", "bson:t.bson", "--work-dir", "w", "--report", "t.json", "--html",
                           "w/page.html", "--metrics-file", "t.prom", "--schema", "s.yaml", "t.csv")
            self.parse("--include", "*.csv", "--report", "folder/report.json", "folder")
            self.shardload("report", "--html", "done/page.html", "done/run.json")
            self.shardload("inspect", "--write-schema", "types.yaml", "t.csv")
        self.shardload("load", "--sink", "null", "--work-dir", "w2", "--report", "w2/run.json", "t.csv")
        self.assertEqual(self.table.read_text(), "a,b\n1,x\n2,y\n")
        for name in ("t.bson", "t.json", "w/page.html", "t.prom", "folder/report.json", "types.yaml"):
            self.assertGreater((self.scratch / name).stat().st_size, 0, name)
