# SPDX-License-Identifier: Apache-2.0
"""Errors: the exit code, a message that names the remedy and no internals of the program or its
libraries, no endless wait, and no password in the output."""
import gzip
import os
import re
import subprocess
import sys
import zipfile

import support

# Internals that must not occur in messages.
INTERNALS = re.compile(r"mongoc|libbson|bson_|\bhello\b|ismaster|topology|serverSelectionT|"
                   r"\.c\b|\.h\b|errno|assert|0x[0-9a-f]{6,}|\(null\)", re.IGNORECASE)
SECRET = "pa55-w0rd"
URI = "mongodb://127.0.0.1:1/"


class ErrorCase(support.Case):
    def setUp(self):
        super().setUp()
        self.good = self.file("good.txt", support.mot_text([1]))

    def fails(self, code, *words, limit=30, **more):
        """The program ends with this code and a message without internals."""
        outcome = self.shardload(*words, code=code, limit=limit, **more)
        self.assertTrue(outcome.err.strip(), "no message")
        self.assertNotRegex(outcome.text, INTERNALS)
        return outcome

    def refused(self, *words, **more):
        """The message about wrong options of a load of good.txt."""
        return self.fails(support.EXIT_USAGE, "load", *words, self.good, **more).err


class WrongOptions(ErrorCase):
    def test_no_command_and_a_wrong_command(self):
        self.fails(support.EXIT_USAGE)
        self.assertIn("lode", self.fails(support.EXIT_USAGE, "lode", self.good).err)

    def test_an_unknown_option_is_named(self):
        self.assertIn("--frobnicate", self.refused("--sink", "null", "--frobnicate"))

    def test_all_wrong_options_are_reported_together(self):
        err = self.refused("--threads", "many", "--names", "medium", "--compressor", "lz5", "--no-such-thing",
                           "--shard-key", "{x", "--max-rejects", "-4")
        for word in ("threads", "many", "names", "medium", "compressor", "lz5", "no-such-thing",
                     "shard-key", "max-rejects"):
            self.assertIn(word, err)

    def test_no_source(self):
        self.fails(support.EXIT_USAGE, "load", "--sink", "null")

    def test_databases_of_the_server_are_refused(self):
        for command in ("load", "plan", "tune", "reload", "verify"):
            for database in ("admin", "config", "local", "Config"):
                outcome = self.fails(support.EXIT_USAGE, command, "--uri", URI, "-d", database, "-c", "x", self.good)
                self.assertIn(f'"{database}" is a database of the server', outcome.err)

    def test_wrong_words(self):
        """Options, and what the message contains."""
        target, to = ["-d", "x", "-c", "y"], ["--uri", URI, "-d", "x", "-c", "y"]
        for words, *messages in (
                (["--drop", "-d", "x", "-c", "system.users"], "system."),
                (["--drop", "-d", "shardload", "-c", "balancer"], "shardload.balancer"),
                (["--uri", URI], "--db"),
                (["--sink", "null", "--max-rejects", "P%"],),
                (["--uri", URI, "-d", "a b", "-c", "t"],), (["--uri", URI, "-d", "a.b", "-c", "t"],),
                (["--uri", URI, "-d", "x", "-c", "$t"],), (["--uri", URI, "-d", "x", "-c", ""],),
                *((["--uri", uri, *target],) for uri in
                  ("localhost:27017", "http://localhost/", "mongodb://", "mongodb://a:b:c@x/")),
                (["--uri", URI + "?compressors=lzo&w=1", *target],
                 "cannot compress a connection with lzo", "snappy, zlib and zstd"),
                (["--wire-compression", "lzo", *target], "none|snappy|zlib|zstd"),
                (["--uri", URI + "?compressors=zlib", "--wire-compression", "zstd", *target],
                 "--wire-compression zstd: --uri already has compressors=zlib"),
                *(([*to, "--index", spec], "index") for spec in
                  ("{t", "[]", '"t"', "{}", '{"t": "sideways"}'))):
            with self.subTest(words):
                err = self.refused(*words)
                for message in messages:
                    self.assertIn(message, err)

    def test_help_is_printed_to_standard_output_with_exit_code_0(self):
        for words in (["--help"], ["load", "--help"], ["inspect", "--help"]):
            with self.subTest(words):
                outcome = self.shardload(*words)
                self.assertIn("shardload", outcome.out)
                self.assertEqual(outcome.err, "")


class WrongSources(ErrorCase):
    def load(self, code, *words, **more):
        return self.fails(code, "load", "--sink", "null", "--work-dir", "w", *words, **more)

    def test_sources_that_cannot_be_loaded(self):
        """Sources, and what the message contains."""
        complete = gzip.compress(support.mot_text(range(1, 60000)).encode())
        damaged = bytearray(complete)
        damaged[len(complete) // 2] ^= 0x55
        for name, content in (
                ("nothing.txt", b""), ("nothing.gz", gzip.compress(b"")), ("zeros.bin", bytes(1 << 20)),
                ("picture.bin", bytes(range(256)) * 4096), ("bad.gz", bytes(damaged)),
                ("tail.gz", complete + b"rubbish at the end"),
                *((f"cut-{cut}.gz", complete[:cut]) for cut in (20, len(complete) // 2, len(complete) - 4))):
            with self.subTest(name):
                self.assertIn(name, self.load(support.EXIT_SOURCE, self.file(name, content)).err)
        (self.scratch / "empty").mkdir()
        self.file("noise/readme.md", "no data here\n")
        self.file("noise/.hidden.txt", self.good.read_bytes())
        self.file("in/a.txt", self.good.read_bytes())
        self.file("items.txt", "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n1|8394|A|7|\n")
        os.symlink("b", self.scratch / "a")
        os.symlink("a", self.scratch / "b")
        for words, *messages in (
                ([self.good, "nowhere.txt"], "nowhere.txt"), (["one.txt", "two.txt"], "one.txt", "two.txt"),
                (["empty"], "empty"), (["noise"], "noise"), (["--include", "*.csv", "in"], "*.csv"),
                ([self.good, "items.txt"], "result", "item"), (["a"],)):
            with self.subTest(words):
                err = self.load(support.EXIT_SOURCE, *words).err
                for message in messages:
                    self.assertIn(message, err)

    def test_options_that_would_be_ignored_are_refused(self):
        """Records that an option should have left out were loaded; a reload failed after all data was loaded."""
        words = "--uri", "mongodb://127.0.0.1:1/", "-d", "d", "-c", "c"
        self.shardload("load", "--sink", "null", "--include", "*2013*", self.good, code=support.EXIT_USAGE,
                       message="no source is one of these")
        self.parse("--include", "g*", self.scratch)
        self.shardload("verify", "--dump", "D", "--include", "x*", "--types", "text", "--on", "a",
                       code=support.EXIT_USAGE, message=("--include is for sources", "--types is for", "--on is for"))
        self.shardload("verify", *words, "--no-index-restore", self.good, code=support.EXIT_USAGE,
                       message="--no-index-restore is for --dump only")
        suite = self.file("s.yaml", "name: s\nqueries:\n  - {name: q, operation: find, "
                          "limit: '{\"$parameter\": \"limit\"}'}\n")
        for command in ["reload"], ["tune", "--try-compressors", "none,zstd"]:
            self.shardload(*command, *words, "--suite", suite, self.good, code=support.EXIT_USAGE,
                           message="q uses the parameter \"limit\": set `limit` under `defaults`")

    def test_the_same_file_twice_is_loaded_once(self):
        os.symlink("good.txt", self.scratch / "link.txt")
        for second in ("good.txt", "./good.txt", "link.txt"):
            with self.subTest(second):
                outcome = self.shardload("load", "--sink", "null", "--work-dir", "w", self.good, second)
                self.assert_accounting(self.scratch / "w", inserted=1)
                self.assertIn(second, outcome.err)

    def test_unreadable_file(self):
        self.good.chmod(0)
        self.assertIn("good.txt", self.load(support.EXIT_SOURCE, self.good, unprivileged=True).err)

    def test_an_unreadable_folder(self):
        self.file("in/a.txt", self.good.read_bytes())
        (self.scratch / "in").chmod(0)
        self.assertIn("in", self.load(support.EXIT_SOURCE, "in", unprivileged=True).err)

    def test_names_with_odd_characters_are_shown_safely(self):
        outcome = self.load(support.EXIT_SOURCE, self.file("x\x1b[31mred\n.txt", b""))
        self.assertNotIn("\x1b", outcome.text)


class WrongOutputs(ErrorCase):
    def test_work_directory_below_a_file(self):
        self.assertIn("good.txt/w", self.refused("--sink", "null", "--work-dir", "good.txt/w"))

    def test_unwritable_work_directory(self):
        (self.scratch / "locked").mkdir(mode=0o555)
        self.assertIn("locked", self.refused("--sink", "null", "--work-dir", "locked/w", unprivileged=True))

    def test_dump_into_a_missing_folder(self):
        outcome = self.fails(None, "load", "--sink", "bson:nowhere/x.bson", "--work-dir", "w", self.good)
        self.assertIn(outcome.code, (support.EXIT_USAGE, support.EXIT_SOURCE))
        self.assertIn("nowhere/x.bson", outcome.err)

    def test_an_impossible_report_is_refused_before_the_load(self):
        self.file("folder/x", "")
        for report in ("nowhere/r.json", "/dev/null", "folder"):
            with self.subTest(report):
                err = self.refused("--sink", "bson:x.bson", "--work-dir", "w", "--report", report)
                self.assertEqual(err.count(report), 1, err)
                self.assertFalse((self.scratch / "x.bson").exists(), "documents were written before the error")

    def test_a_report_within_the_new_work_directory(self):
        self.shardload("load", "--sink", "null", "--work-dir", "w", "--report", "w/report.json", self.good)
        self.assertTrue((self.scratch / "w" / "report.json").exists())

    def test_a_work_directory_with_a_long_path_is_not_cut(self):
        deep = "/".join(["x" * 60] * 10)
        (self.scratch / deep).parent.mkdir(parents=True)
        self.assertIn("--work-dir", self.refused("--sink", "null", "--work-dir", deep))
        self.assertEqual([path for path in self.scratch.rglob("run.json")], [])

    def closed(self, redirection, *words):
        """The exit code of shardload when a shell starts it with this redirection."""
        return self.run_program("shardload", *words, limit=30,
                                through=["sh", "-c", f'"$0" "$@" {redirection}']).code

    def test_a_dump_into_a_closed_standard_output_is_written_to_no_other_file(self):
        code = self.closed(">&-", "load", "--sink", "bson:-", "--work-dir", "w", self.good)
        self.assertEqual(code, support.EXIT_USAGE)
        for path in self.scratch.rglob("*"):
            if path != self.good and path.is_file():
                self.assertNotIn(b"FIESTA", path.read_bytes(), path)

    def test_messages_to_a_closed_standard_error_are_written_to_no_other_file(self):
        self.assertEqual(self.closed("2>&-", "load", "--sink", "bson:x.bson", "--work-dir", "w",
                                     self.good), support.EXIT_OK)
        self.assertNotIn(b"inserted", (self.scratch / "x.bson").read_bytes())

    def test_output_that_cannot_be_written_is_an_error(self):
        self.assertEqual(self.closed(">/dev/full", "inspect", self.good), support.EXIT_RESOURCES)

    def test_a_failed_sink_ends_a_load_that_waits_for_input(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, write_end)  # the input stays open: more data could follow
        running = support.Running(
            self, ["sh", "-c", 'exec "$0" load --sink bson:- -j 2 --batch-size 1000 --work-dir w - '
                   ">/dev/full", support.program("shardload")], self.scratch, read_end)
        os.close(read_end)
        data = support.mot_text(range(1, 20000)).encode()
        try:
            while data:
                data = data[os.write(write_end, data):]
        except BrokenPipeError:
            pass  # the load has ended
        self.assertEqual(running.wait(30).code, support.EXIT_RESOURCES)

    def test_a_full_disk_is_an_error(self):
        path = self.file("many.txt", support.mot_text(range(1, 20000)))
        self.assertEqual(self.closed(">/dev/full", "load", "--sink", "bson:-", "--work-dir", "w", path),
                         support.EXIT_RESOURCES)
        self.assertIn("No space left on device", (self.scratch / "w/shardload.log").read_text())


class NoServer(ErrorCase):
    """Hosts without a server, and servers that do not answer."""

    def test_the_temporary_folder_may_have_a_long_name(self):
        folder = self.scratch / ("x" * 200) / ("y" * 200)
        folder.mkdir(parents=True)
        side = f"--uri mongodb://{support.HOST}:{support.free_port()}/ -d d -c c"
        words = ["compare", "--ab", "--runs", 1, "--a", side, "--b", side, "mot"]
        self.run_program("shardquery", *words, environment=support.clean_environment(TMPDIR=str(folder))).expect(
            support.EXIT_CLUSTER, "failed; its message is above")
        self.assertEqual(os.listdir(folder), [])
        self.run_program("shardquery", *words, environment=support.clean_environment(TMPDIR="nowhere")).expect(
            support.EXIT_USAGE, "set TMPDIR to another folder: cannot open nowhere/")

    def unreachable(self, uri):
        return self.fails(support.EXIT_CLUSTER, "load", "--uri", uri, "-d", "x", "-c", "y",
                          "--work-dir", "w", self.good, limit=15)

    def test_a_replica_set_without_a_server(self):
        self.unreachable(f"mongodb://127.0.0.1:{support.free_port()}/?replicaSet=rs0")

    def test_the_password_is_not_shown_and_not_written(self):
        port = support.free_port()
        uri = f"mongodb://somebody:{SECRET}@127.0.0.1:{port}/"
        outcome = self.unreachable(uri)
        self.assertNotIn(SECRET, outcome.text)
        outcome = self.fails(support.EXIT_CLUSTER, "load", "-d", "x", "-c", "y", "--work-dir", "w2",
                             self.good,
                             environment=support.clean_environment(SHARDLOAD_URI=uri))
        self.assertNotIn(SECRET, outcome.text)
        for path, content in support.every_text_in(self.scratch):
            self.assertNotIn(SECRET.encode(), content, path)

    def test_the_password_in_a_wrong_uri_is_not_shown(self):
        """Also without an at sign."""
        for uri in (f"mongodb://somebody:{SECRET}@", f"mongodb://somebody:{SECRET}@h:x/",
                    f"http://somebody:{SECRET}@host/", f"mongodb://somebody:{SECRET}@h/?a",
                    f"mongodb://somebody:{SECRET}", f"mongodb://somebody:{SECRET}#127.0.0.1:1/",
                    f"mongodb://somebody:{SECRET}%40127.0.0.1:1/", f"mongodb:somebody:{SECRET}@h",
                    f"mongodb:/somebody:{SECRET}@h/", f"somebody:{SECRET}"):
            with self.subTest(uri.replace(SECRET, "...")):
                outcome = self.fails(support.EXIT_USAGE, "load", "--uri", uri, "-d", "x", "-c", "y",
                                     "--work-dir", "w3", self.good)
                self.assertNotIn(SECRET, outcome.text)
        for path, content in support.every_text_in(self.scratch):
            self.assertNotIn(SECRET.encode(), content, path)

    def test_credentials_given_outside_of_the_option_uri_are_not_shown(self):
        """Given as a source, a command, the value or the name of an option, or a key of --config."""
        uris = (f"mongodb://somebody:{SECRET}@h/", f"MONGODB://somebody:{SECRET}@h/",
                f"mongodb+srv://somebody:{SECRET}@h/", f"postgres://somebody:{SECRET}@h/",
                f"mongodb:somebody:{SECRET}@h")
        for uri in uris:
            config = self.file("c.yaml", f'"{uri}": 1\n')
            for words in (["load", "--sink", "null", uri], ["load", "--sink", "null", "--", uri],
                          ["load", "--sink", "null", self.good, uri], [uri], [uri, self.good],
                          ["load", "--sink", "null", "-d", uri, self.good],
                          ["load", "--sink", "null", "--threads", uri, self.good],
                          ["load", "--sink", "null", "--config", config, self.good],
                          ["load", "--sink", "null", "--config", uri, self.good],
                          ["load", "--" + uri, self.good], ["inspect", uri], ["report", uri],
                          ["load", "--sink", "null", "--ur", uri, self.good]):
                with self.subTest([str(word).replace(SECRET, "...") for word in words]):
                    self.assertNotIn(SECRET, self.fails(support.EXIT_USAGE, *words).text)
            with self.subTest("shardquery"):
                for words in (["run", uri], ["compare", uri, uri], [uri]):
                    outcome = self.run_program("shardquery", *words)
                    self.assertEqual(outcome.code, support.EXIT_USAGE)
                    self.assertNotIn(SECRET, outcome.text)

    def test_credentials_without_a_scheme_are_not_a_source(self):
        outcome = self.fails(support.EXIT_USAGE, "inspect", f"somebody:{SECRET}@host/db")
        self.assertNotIn(SECRET, outcome.text)
        self.assertIn("--uri", outcome.err)
        name = self.file("a:b@c.txt", support.mot_text([1]))
        self.shardload("inspect", name, code=0)  # the name of a file is a source

    def test_plain_without_tls(self):
        uri = f"mongodb://somebody:{SECRET}@127.0.0.1:{support.free_port()}/?authMechanism=PLAIN"
        err = self.refused("--uri", uri, "-d", "x", "-c", "y")
        self.assertIn("--plain-without-tls", err)
        self.assertNotIn(SECRET, err)


class PinnedPackages(support.Case):
    def test_a_driver_package_with_another_hash_is_refused(self):
        """setup.sh installs only wheels with the listed hashes, and reports a different hash."""
        version = "4.10.1" if sys.version_info < (3, 14) else "4.20.0"
        with zipfile.ZipFile(self.scratch / f"pymongo-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("pymongo/__init__.py", f"version = '{version}'\n")
            wheel.writestr(f"pymongo-{version}.dist-info/METADATA",
                           f"Metadata-Version: 2.1\nName: pymongo\nVersion: {version}\n")
            wheel.writestr(f"pymongo-{version}.dist-info/WHEEL",
                           "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"pymongo-{version}.dist-info/RECORD", "")
        environment = dict(os.environ, SHARDLOAD_CACHE=str(self.scratch / "cache"), PIP_NO_INDEX="1",
                           PIP_FIND_LINKS=str(self.scratch))
        done = subprocess.run(
            ["bash", "-euc", '. "$0"; python_with_driver', support.TREE / "tools/setup.sh"],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "HASHES|hash")
        self.assertIn("tools/python-driver.txt", done.stderr)


class OtherWords(support.Case):
    """Words of other programs are answered with those of this one."""

    def test_options_of_the_pages_for_users_of_other_tools(self):
        for page, command in (("from-mongoimport", "load"), ("from-mongorestore", "restore")):
            text = (support.TREE / f"docs/{page}.md").read_text("utf-8")
            cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")]
            words = {word for cell in cells for word in re.findall(r"--\w+", cell)}
            self.assertGreater(len(words), 20)
            for word in sorted(words - {"--help", "--version", "--config"}):
                outcome = self.shardload(command, "--uri", "x", word, "y", code=None)
                if f"{word}: there is no such option" in outcome.err:
                    with self.subTest(word):
                        self.assertIn(f"{word}: there is no such option; ", outcome.err)

    def test_a_host(self):
        """`-h HOST` is no request for help, which would end with exit code 0."""
        for words in (["load", "-h", "h", "-d", "x"], ["restore", "-hh"], ["load", "-h=h"]):
            self.assertIn("-h: there is no such option; did you mean --uri mongodb://HOST/, or --help?",
                          self.shardload(*words, "f", code=support.EXIT_USAGE).err)
        for words in (["load", "-h"], ["-h", "load"], ["load", "-h", "-d", "x"], ["load", "f", "-h"]):
            self.assertIn("shardload load ", self.shardload(*words).out)

    def test_mistyped_environment_variables(self):
        """A password with a mistyped name was ignored without a word; the variables of tests are no options."""
        others = ["REAL", "SAMPLES", "BUILD", "CACHE", "CLUSTER", "TESTS", "SIMD", "SOURCE", "MONGOD", "RATE_LIMIT"]
        names = {"PASS_WORD": "password", "URL": "uri", "BATCHSIZE": "batch-size", **dict.fromkeys(others)}
        outcome = self.parse(self.file("v.csv", "a,b\n1,2\n"), environment=support.clean_environment(
            **{f"SHARDLOAD_{name}": "1000" if name == "RATE_LIMIT" else "" for name in names}))[0]
        for name, option in names.items():
            said = f"SHARDLOAD_{name} has no effect; did you mean that of --{option}?"
            self.assertEqual(f"SHARDLOAD_{name} " in outcome.err, option is not None, name)
            self.assertEqual(said in outcome.err, option is not None, name)

    def test_commands_and_values(self):
        self.assertIn('there is no command "import"; did you mean load?',
                      self.shardload("import", code=support.EXIT_USAGE).err)
        err = self.shardload("load", "--type", "csv", "--headerline", "--host", "h", "--file", "f.csv",
                             "--fields=a,b", code=support.EXIT_USAGE).err
        for words in ("--type: there is no such option; it is not needed", "--headerline: there is no such",
                      "--uri mongodb://HOST/", "name the file as an argument", "did you mean --columns?"):
            self.assertIn(words, err)
        self.assertIn("no source is given", self.shardload("load", "--sink", "null", code=support.EXIT_USAGE).err)
