# SPDX-License-Identifier: Apache-2.0
"""Errors: the exit code, a message that names the remedy and no internals of the program or its
libraries, no endless wait, and no password in the output."""
import gzip
import os
import re
import socket
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
import support
from support import HEADER, ROW

# Internals that must not occur in messages.
INTERNALS = re.compile(r"mongoc|libbson|bson_|\bhello\b|ismaster|topology|serverSelectionT|"
                   r"\.c\b|\.h\b|errno|assert|0x[0-9a-f]{6,}|\(null\)", re.IGNORECASE)
SECRET = "pa55-w0rd"


class ErrorCase(support.Case):
    def setUp(self):
        super().setUp()
        self.good = self.file("good.txt", HEADER + "\n" + ROW.format(id=1) + "\n")

    def fails(self, code, *words, limit=30, **more):
        """The program ends with this code and a message without internals."""
        outcome = self.shardload(*words, code=code, limit=limit, **more)
        self.assertTrue(outcome.err.strip(), "no message")
        self.assertNotRegex(outcome.text, INTERNALS)
        return outcome


class WrongOptions(ErrorCase):
    def test_no_command_and_a_wrong_command(self):
        self.fails(support.EXIT_USAGE)
        self.assertIn("lode", self.fails(support.EXIT_USAGE, "lode", self.good).err)

    def test_an_unknown_option_is_named(self):
        outcome = self.fails(support.EXIT_USAGE, "load", "--sink", "null", "--frobnicate",
                             self.good)
        self.assertIn("--frobnicate", outcome.err)

    def test_all_wrong_options_are_reported_together(self):
        outcome = self.fails(support.EXIT_USAGE, "load", "--threads", "many", "--names", "medium",
                             "--compressor", "lz5", "--no-such-thing", "--shard-key", "{x",
                             "--max-rejects", "-4", self.good)
        for word in ("threads", "many", "names", "medium", "compressor", "lz5", "no-such-thing",
                     "shard-key", "max-rejects"):
            self.assertIn(word, outcome.err)

    def test_no_source(self):
        self.fails(support.EXIT_USAGE, "load", "--sink", "null")

    def test_databases_of_the_server_are_refused(self):
        for command in ("load", "plan", "tune", "reload", "verify"):
            for database in ("admin", "config", "local", "Config"):
                outcome = self.fails(support.EXIT_USAGE, command, "--uri", "mongodb://127.0.0.1:1/",
                                     "-d", database, "-c", "x", self.good)
                self.assertIn(f'"{database}" is a database of the server', outcome.err)
        outcome = self.fails(support.EXIT_USAGE, "load", "--drop", "-d", "x", "-c", "system.users",
                             self.good)
        self.assertIn("system.", outcome.err)
        outcome = self.fails(support.EXIT_USAGE, "load", "--drop", "-d", "shardload", "-c",
                             "balancer", self.good)
        self.assertIn("shardload.balancer", outcome.err)

    def test_no_target(self):
        outcome = self.fails(support.EXIT_USAGE, "load", "--uri", "mongodb://127.0.0.1:1/",
                             self.good)
        self.assertRegex(outcome.err, "--db")
        self.assertRegex(outcome.err, "--collection")

    def test_a_percentage_has_a_number(self):
        self.fails(support.EXIT_USAGE, "load", "--sink", "null", "--max-rejects", "P%", self.good)

    def test_invalid_database_and_collection_names(self):
        for words in (["-d", "a b", "-c", "t"], ["-d", "a.b", "-c", "t"], ["-d", "x", "-c", "$t"],
                      ["-d", "x", "-c", ""]):
            with self.subTest(words):
                self.fails(support.EXIT_USAGE, "load", "--uri", "mongodb://127.0.0.1:1/", *words,
                           self.good)

    def test_a_wrong_uri(self):
        for uri in ("localhost:27017", "http://localhost/", "mongodb://", "mongodb://a:b:c@x/"):
            with self.subTest(uri):
                self.fails(support.EXIT_USAGE, "load", "--uri", uri, "-d", "x", "-c", "y",
                           self.good)

    def test_unknown_wire_compressions(self):
        target = ["-d", "x", "-c", "y"]
        outcome = self.fails(support.EXIT_USAGE, "load", "--uri",
                             "mongodb://127.0.0.1:1/?compressors=lzo&w=1", *target, self.good)
        self.assertIn("cannot compress a connection with lzo", outcome.err)
        self.assertIn("snappy, zlib and zstd", outcome.err)
        outcome = self.fails(support.EXIT_USAGE, "load", "--wire-compression", "lzo", *target,
                             self.good)
        self.assertIn("none|snappy|zlib|zstd", outcome.err)
        outcome = self.fails(support.EXIT_USAGE, "load", "--uri",
                             "mongodb://127.0.0.1:1/?compressors=zlib", "--wire-compression", "zstd",
                             *target, self.good)
        self.assertIn("--wire-compression zstd: --uri already has compressors=zlib", outcome.err)

    def test_wrong_index_specifications(self):
        for spec in ("{t", "[]", '"t"', "{}", '{"t": "sideways"}'):
            with self.subTest(spec):
                outcome = self.fails(support.EXIT_USAGE, "load", "--uri", "mongodb://127.0.0.1:1/",
                                     "-d", "x", "-c", "y", "--index", spec, self.good)
                self.assertIn("index", outcome.err)

    def test_help_is_printed_to_standard_output_with_exit_code_0(self):
        for words in (["--help"], ["load", "--help"], ["inspect", "--help"]):
            with self.subTest(words):
                outcome = self.shardload(*words)
                self.assertIn("shardload", outcome.out)
                self.assertEqual(outcome.err, "")


class WrongSources(ErrorCase):
    def load(self, code, *words, **more):
        return self.fails(code, "load", "--sink", "null", "--work-dir", "w", *words, **more)

    def test_missing_file(self):
        outcome = self.load(support.EXIT_SOURCE, self.good, "nowhere.txt")
        self.assertIn("nowhere.txt", outcome.err)

    def test_several_missing_files_are_all_named(self):
        outcome = self.load(support.EXIT_SOURCE, "one.txt", "two.txt")
        self.assertIn("one.txt", outcome.err)
        self.assertIn("two.txt", outcome.err)

    def test_empty_file(self):
        self.assertIn("nothing.txt", self.load(support.EXIT_SOURCE,
                                               self.file("nothing.txt", b"")).err)

    def test_empty_gzip_file(self):
        self.load(support.EXIT_SOURCE, self.zipped("nothing.gz", b""))

    def test_binary_file(self):
        path = self.file("picture.bin", bytes(range(256)) * 4096)
        self.assertIn("picture.bin", self.load(support.EXIT_SOURCE, path).err)

    def test_a_file_of_zeros(self):
        self.load(support.EXIT_SOURCE, self.file("zeros.bin", bytes(1 << 20)))

    def test_truncated_gzip(self):
        data = (HEADER + "\n" + "".join(ROW.format(id=n) + "\n" for n in range(1, 60000))).encode()
        complete = gzip.compress(data)
        for share in (20, len(complete) // 2, len(complete) - 4):
            with self.subTest(share):
                path = self.file("cut.gz", complete[:share])
                outcome = self.load(support.EXIT_SOURCE, path)
                self.assertIn("cut.gz", outcome.err)

    def test_damaged_gzip(self):
        data = (HEADER + "\n" + "".join(ROW.format(id=n) + "\n" for n in range(1, 60000))).encode()
        complete = bytearray(gzip.compress(data))
        complete[len(complete) // 2] ^= 0x55
        path = self.file("bad.gz", bytes(complete))
        self.assertIn("bad.gz", self.load(support.EXIT_SOURCE, path).err)

    def test_data_after_the_end_of_gzip_data_is_an_error(self):
        data = gzip.compress((HEADER + "\n" + ROW.format(id=1) + "\n").encode())
        outcome = self.shardload("load", "--sink", "null", "--work-dir", "w",
                                 self.file("tail.gz", data + b"rubbish at the end"),
                                 code=support.EXIT_SOURCE)
        self.assertIn("tail.gz: the gzip data ends at byte", outcome.text)

    def test_folder_without_readable_files(self):
        (self.scratch / "empty").mkdir()
        self.file("noise/readme.md", "no data here\n")
        self.file("noise/.hidden.txt", self.good.read_bytes())
        for folder in ("empty", "noise"):
            with self.subTest(folder):
                self.assertIn(folder, self.load(support.EXIT_SOURCE, folder).err)

    def test_include_that_matches_nothing(self):
        self.file("in/a.txt", self.good.read_bytes())
        self.assertIn("*.csv", self.load(support.EXIT_SOURCE, "--include", "*.csv", "in").err)

    def test_results_and_items_named_together(self):
        items = self.file("items.txt", "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n"
                          "1|8394|A|7|\n")
        outcome = self.load(support.EXIT_SOURCE, self.good, items)
        self.assertRegex(outcome.err, r"(?s)result.*item|item.*result")

    def test_the_same_file_twice_is_loaded_once(self):
        os.symlink("good.txt", self.scratch / "link.txt")
        for second in ("good.txt", "./good.txt", "link.txt"):
            with self.subTest(second):
                outcome = self.shardload("load", "--sink", "null", "--work-dir", "w", self.good,
                                         second)
                self.assert_accounting(self.scratch / "w", inserted=1)
                self.assertIn(second, outcome.err)

    def test_unreadable_file(self):
        self.good.chmod(0)
        self.assertIn("good.txt", self.load(support.EXIT_SOURCE, self.good,
                                                unprivileged=True).err)

    def test_an_unreadable_folder(self):
        self.file("in/a.txt", self.good.read_bytes())
        (self.scratch / "in").chmod(0)
        self.assertIn("in", self.load(support.EXIT_SOURCE, "in", unprivileged=True).err)

    def test_a_loop_of_links_named_as_source(self):
        os.symlink("b", self.scratch / "a")
        os.symlink("a", self.scratch / "b")
        self.load(support.EXIT_SOURCE, "a")

    def test_names_with_odd_characters_are_shown_safely(self):
        outcome = self.load(support.EXIT_SOURCE, self.file("x\x1b[31mred\n.txt", b""))
        self.assertNotIn("\x1b", outcome.text)


class WrongOutputs(ErrorCase):
    def test_work_directory_below_a_file(self):
        outcome = self.fails(support.EXIT_USAGE, "load", "--sink", "null", "--work-dir",
                             "good.txt/w", self.good)
        self.assertIn("good.txt/w", outcome.err)

    def test_unwritable_work_directory(self):
        (self.scratch / "locked").mkdir(mode=0o555)
        outcome = self.fails(support.EXIT_USAGE, "load", "--sink", "null", "--work-dir",
                             "locked/w", self.good, unprivileged=True)
        self.assertIn("locked", outcome.err)

    def test_dump_into_a_missing_folder(self):
        outcome = self.fails(None, "load", "--sink", "bson:nowhere/x.bson", "--work-dir", "w",
                             self.good)
        self.assertIn(outcome.code, (support.EXIT_USAGE, support.EXIT_SOURCE))
        self.assertIn("nowhere/x.bson", outcome.err)

    def test_an_impossible_report_is_refused_before_the_load(self):
        self.file("folder/x", "")
        for report in ("nowhere/r.json", "/dev/null", "folder"):
            with self.subTest(report):
                outcome = self.fails(support.EXIT_USAGE, "load", "--sink", "bson:x.bson",
                                     "--work-dir", "w", "--report", report, self.good)
                self.assertEqual(outcome.err.count(report), 1, outcome.err)
                self.assertFalse((self.scratch / "x.bson").exists(), "documents were written before the error")

    def test_a_report_within_the_new_work_directory(self):
        self.shardload("load", "--sink", "null", "--work-dir", "w", "--report", "w/report.json",
                       self.good)
        self.assertTrue((self.scratch / "w" / "report.json").exists())

    def test_a_work_directory_with_a_long_path_is_not_cut(self):
        deep = "/".join(["x" * 60] * 10)
        (self.scratch / deep).parent.mkdir(parents=True)
        outcome = self.fails(support.EXIT_USAGE, "load", "--sink", "null", "--work-dir", deep,
                             self.good)
        self.assertIn("--work-dir", outcome.err)
        self.assertEqual([path for path in self.scratch.rglob("run.json")], [])

    def closed(self, redirection, *words):
        """The exit code of shardload when a shell starts it with this redirection."""
        return subprocess.run(
            ["sh", "-c", f'"$0" "$@" {redirection}', support.program("shardload"),
             *map(str, words)], cwd=self.scratch, stdin=subprocess.DEVNULL, timeout=30,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            env=support.clean_environment()).returncode

    def test_a_dump_into_a_closed_standard_output_is_written_to_no_other_file(self):
        code = self.closed(">&-", "load", "--sink", "bson:-", "--work-dir", "w", self.good)
        self.assertEqual(code, support.EXIT_USAGE)
        self.assertNotIn(b"FIESTA", (self.scratch / "w" / "shardload.log").read_bytes())

    def test_messages_to_a_closed_standard_error_are_written_to_no_other_file(self):
        self.assertEqual(self.closed("2>&-", "load", "--sink", "bson:x.bson", "--work-dir", "w",
                                     self.good), support.EXIT_OK)
        self.assertNotIn(b"inserted", (self.scratch / "x.bson").read_bytes())

    def test_output_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.assertEqual(self.closed(">/dev/full", "inspect", self.good), support.EXIT_RESOURCES)

    def test_a_failed_sink_ends_a_load_that_waits_for_input(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, write_end)  # the input stays open: more data could follow
        running = self.start("shardload", "load", "--sink", "bson:/dev/full", "-j", 2,
                             "--batch-size", 1000, "--work-dir", "w", "-", stdin=read_end)
        os.close(read_end)
        data = (HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, 20000))).encode()
        try:
            while data:
                data = data[os.write(write_end, data):]
        except BrokenPipeError:
            pass  # the load has ended
        self.assertEqual(running.wait(30).code, support.EXIT_RESOURCES)

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        rows = "".join(ROW.format(id=n) + "\n" for n in range(1, 20000))
        path = self.file("many.txt", HEADER + "\n" + rows)
        outcome = self.fails(None, "load", "--sink", "bson:/dev/full", "--work-dir", "w", path)
        self.assertNotIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS))
        self.assertIn("/dev/full", outcome.err)


class NoServer(ErrorCase):
    """Hosts without a server, and servers that do not answer."""

    def unreachable(self, uri, *words, limit=15):
        outcome = self.fails(support.EXIT_CLUSTER, "load", "--uri", uri, "-d", "x", "-c", "y",
                             "--work-dir", "w", *words, self.good, limit=limit)
        return outcome

    def test_a_port_without_a_server(self):
        port = support.free_port()
        outcome = self.unreachable(f"mongodb://127.0.0.1:{port}/")
        self.assertIn(str(port), outcome.err)

    def test_a_host_that_does_not_exist(self):
        outcome = self.unreachable("mongodb://no-such-host.invalid:27017/")
        self.assertIn("no-such-host.invalid", outcome.err)

    def test_a_server_that_does_not_answer(self):
        with socket.socket() as mute:
            mute.bind((support.HOST, 0))
            mute.listen(16)
            self.unreachable(f"mongodb://127.0.0.1:{mute.getsockname()[1]}/")

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
        for uri in (f"mongodb://somebody:{SECRET}@", f"mongodb://somebody:{SECRET}@h:x/",
                    f"http://somebody:{SECRET}@host/", f"mongodb://somebody:{SECRET}@h/?a"):
            with self.subTest(uri.replace(SECRET, "...")):
                outcome = self.fails(support.EXIT_USAGE, "load", "--uri", uri, "-d", "x", "-c", "y",
                                     self.good)
                self.assertNotIn(SECRET, outcome.text)

    def test_the_password_in_a_uri_without_an_at_sign_is_not_shown(self):
        for uri in (f"mongodb://somebody:{SECRET}", f"mongodb://somebody:{SECRET}#127.0.0.1:1/",
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
        name = self.file("a:b@c.txt", HEADER + "\n" + ROW.format(id=1) + "\n")
        self.shardload("inspect", name, code=0)  # the name of a file is a source

    def test_plain_without_tls(self):
        uri = f"mongodb://somebody:{SECRET}@127.0.0.1:{support.free_port()}/?authMechanism=PLAIN"
        outcome = self.fails(support.EXIT_USAGE, "load", "--uri", uri, "-d", "x", "-c", "y", self.good)
        self.assertIn("--plain-without-tls", outcome.err)
        self.assertNotIn(SECRET, outcome.text)


class PinnedPackages(support.Case):
    def test_a_driver_package_with_another_hash_is_refused(self):
        """setup.sh installs only wheels with the listed hashes, and reports a different hash."""
        folder = os.path.join(self.scratch, "folder")
        os.mkdir(folder)
        version = "4.10.1" if sys.version_info < (3, 14) else "4.20.0"
        with zipfile.ZipFile(os.path.join(folder, f"pymongo-{version}-py3-none-any.whl"), "w") as wheel:
            wheel.writestr("pymongo/__init__.py", f"version = '{version}'\n")
            wheel.writestr(f"pymongo-{version}.dist-info/METADATA",
                           f"Metadata-Version: 2.1\nName: pymongo\nVersion: {version}\n")
            wheel.writestr(f"pymongo-{version}.dist-info/WHEEL",
                           "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"pymongo-{version}.dist-info/RECORD", "")
        environment = dict(os.environ, SHARDLOAD_CACHE=os.path.join(self.scratch, "cache"),
                           PIP_NO_INDEX="1", PIP_FIND_LINKS=folder)
        done = subprocess.run(
            ["bash", "-euc", '. "$0"; python_with_driver', os.path.join(HERE, "../../tools/setup.sh")],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "HASHES|hash")
        self.assertIn("tools/python-driver.txt", done.stderr)
