# SPDX-License-Identifier: Apache-2.0
"""The start of a command: a host that is wrong, a format that is unknown, a mistyped shard key; and
what a start that failed leaves behind."""
import gzip
import os
import re
import signal
import socket
import struct
import threading
import time
import zlib

import archive_making as making
import support
from support import EXIT_CLUSTER, EXIT_INTERRUPTED, EXIT_SOURCE, EXIT_USAGE
from test_errors import ErrorCase

TABLE = "id,make,model\n" + "".join(f"{n},FORD,KA\n" for n in range(1, 50))


class StartCase(ErrorCase):
    def setUp(self):
        super().setUp()
        self.good = self.file("good.csv", TABLE)

    def load(self, uri, *words, code=EXIT_CLUSTER):
        return self.fails(code, "load", "--uri", uri, "-d", "x", "-c", "y", *words, self.good, limit=15)

    def mute(self, answer=None, pause=None):
        """The port of a program that accepts connections; it sends `answer`, or nothing. With `pause`, it
        sends one byte after the other, with this pause in seconds between them."""
        listener = socket.create_server((support.HOST, 0))
        held = []

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                threading.Thread(target=reply, args=[connection], daemon=True).start()

        def reply(connection):
            try:
                if answer:
                    connection.recv(1)
                for at in range(0, len(answer or b""), 1 if pause else len(answer)):
                    connection.sendall(answer[at:at + 1] if pause else answer)
                    time.sleep(pause or 0)
            except OSError:
                pass                     # the client has closed the connection

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()

        def close():
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()
            for connection in held:
                connection.close()

        self.addCleanup(close)
        return listener.getsockname()[1]

    def folders(self):
        return sorted(path.name for path in self.scratch.iterdir() if path.is_dir())

    def await_text(self, running, text):
        self.wait_for(lambda: text in running.text() or not running.running(), text)
        self.assertTrue(running.running(), running.text())


class WrongHosts(StartCase):
    def test_each_host_is_named_with_its_reason(self):
        port = support.free_port()
        outcome = self.load(f"mongodb://127.0.0.1:{port},no-such-host.invalid:27017/")
        self.assertIn(f"127.0.0.1:{port}: no server listens there (connection refused)", outcome.err)
        self.assertRegex(outcome.err, r"no-such-host.invalid:27017: (DNS|the name)")
        self.assertIn("--wait 60s", outcome.err)
        self.assertNotIn("connecting:", outcome.text, "it must not be tried again")

    def test_the_driver_prints_nothing(self):
        """It warns if a killed process of the same number has left its file of counters."""
        occupy = 'ln -sf /dev/null /dev/shm/mongoc-$$; echo $$ > pid; unset MONGOC_DISABLE_SHM; exec "$0" "$@"'
        self.fails(EXIT_CLUSTER, "load", "--uri", "mongodb://127.0.0.1:1/", "-d", "x", "-c", "y", self.good,
                   through=("sh", "-c", occupy))
        os.unlink("/dev/shm/mongoc-" + (self.scratch / "pid").read_text().strip())

    def test_a_domain_that_dns_does_not_know_is_an_error_of_dns(self):
        outcome = self.load("mongodb+srv://cluster0.example.invalid/")
        self.assertIn("DNS has no list of servers for cluster0.example.invalid", outcome.err)
        self.assertIn("_mongodb._tcp.cluster0.example.invalid", outcome.err)
        self.assertIn("mongodb://HOST:PORT", outcome.err)

    def test_a_srv_uri_with_a_port_is_explained(self):
        outcome = self.load("mongodb+srv://cluster0.example.net:27017/", code=EXIT_USAGE)
        self.assertIn("no port", outcome.err)

    def test_a_program_that_is_no_server_is_recognised(self):
        port = self.mute(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        outcome = self.load(f"mongodb://127.0.0.1:{port}/")
        self.assertIn("the program that answers there is not a MongoDB server", outcome.err)

    def test_a_tls_server_that_sends_no_handshake_is_recognised(self):
        outcome = self.load(f"mongodb://127.0.0.1:{self.mute(b'garbage')}/?tls=true")
        self.assertIn("the TLS handshake fails (wrong version number)", outcome.err)
        alert = self.mute(b"\x15\x03\x03\0\2\2\xc8")     # of an unknown number
        self.assertIn("ends the connection (unknown reason)", self.load(f"mongodb://127.0.0.1:{alert}/?tls=true").err)

    def test_a_tls_server_that_sends_single_bytes_is_not_read_without_end(self):
        """They begin a handshake message of 16 KiB; none is later than the timeout of a read."""
        port = self.mute(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xf0" + bytes(16375), pause=0.2)
        self.fails(EXIT_CLUSTER, "load", "--uri", f"mongodb://127.0.0.1:{port}/?tls=true", "-d", "x", "-c",
                   "y", self.good, limit=60)

    def test_a_server_that_does_not_answer_is_reported_while_it_is_asked(self):
        port = self.mute()
        outcome = self.load(f"mongodb://127.0.0.1:{port}/")
        self.assertRegex(outcome.err, rf"connecting: asking 127.0.0.1:{port}, [\d.]+ s so far")
        self.assertIn("it does not answer", outcome.err)

    def test_a_socket_that_does_not_exist(self):
        path = str(self.scratch / "none.sock").replace("/", "%2F")
        self.assertIn("no such socket", self.load(f"mongodb://{path}/").err)

    def test_wait_tries_again(self):
        outcome = self.load(f"mongodb://127.0.0.1:{support.free_port()}/", "--wait", "4s")
        self.assertRegex(outcome.err, r"connecting: asking .* of at most .*--wait\); the last attempt: "
                                      r".*connection refused")
        self.assertIn("(tried for 4 s, --wait)", outcome.err)

    def test_ctrl_c_while_connecting_ends_the_program_and_leaves_no_folder(self):
        for command, more in (("load", ["--work-dir", "w"]), ("reload", ["--suite", "mot"]),
                              ("tune", []), ("verify", []), ("plan", [])):
            with self.subTest(command):
                uri = f"mongodb://127.0.0.1:{self.mute()}/"
                running = self.start("shardload", command, "--uri", uri, "-d", "x", "-c", "y",
                                     "--wait", "1h", *more, self.good)
                self.await_text(running, "connecting:")
                running.signal(signal.SIGINT)
                code = running.wait().code
                self.assertIn(code, (EXIT_INTERRUPTED, -signal.SIGINT), running.text())
                self.assertEqual(self.folders(), [])


class FailedStarts(StartCase):
    def failing(self, *words):
        return self.load(f"mongodb://127.0.0.1:{support.free_port()}/", *words)

    def test_a_failed_start_leaves_no_folder(self):
        self.failing()
        self.failing("--work-dir", "w")
        self.assertEqual(self.folders(), [])
        self.shardload("load", "--uri", "mongodb://h:1/", "-d", "x", "-c", "y", "--work-dir", "w",
                       "nowhere.csv", code=EXIT_SOURCE)
        self.shardload("load", "--uri", "nonsense", "-d", "x", "-c", "y", "--work-dir", "w", self.good, code=EXIT_USAGE)
        self.assertEqual(self.folders(), [])

    def test_the_longest_name_of_a_work_directory(self):
        longest = "./" * 255 + "w"
        self.failing("--work-dir", longest)
        self.assertEqual(self.folders(), [])
        load = "load", "--sink", "null", self.good, "--work-dir"
        self.shardload(*load, longest)
        self.shardload(*load, "short")
        self.assertEqual(self.names("w"), self.names("short"))
        self.assertIn("--work-dir: longer than 511 bytes", self.shardload(*load, f"{longest}w", code=EXIT_USAGE).err)

    def test_an_empty_folder_stays_empty(self):
        (self.scratch / "w").mkdir()
        self.failing("--work-dir", "w")
        self.assertEqual(list((self.scratch / "w").iterdir()), [])

    def test_a_work_directory_keeps_its_files(self):
        log = self.file("u/shardload.log", "an earlier load\n")
        kept = self.file("u/notes.txt", "mine")
        record = self.file("u/run.json", '{"exitCode": 0}')
        self.failing("--work-dir", "u")
        self.assertEqual(kept.read_text(), "mine")
        self.assertEqual(record.read_text(), '{"exitCode": 0}', "the record of an earlier load")
        self.failing("--work-dir", "u")
        self.assertTrue(log.read_text().startswith("an earlier load\n"))

    def content(self, name):
        """Names, modes and bytes of the files of a folder."""
        return {path.name: (path.stat().st_mode, path.read_bytes()) for path in (self.scratch / name).iterdir()}

    def names(self, name):
        """The names of a folder's files, but not of a status.json that is being written."""
        return {path.name for path in (self.scratch / name).iterdir() if not path.name.startswith("status.json.")}

    def test_a_folder_with_files_of_a_user_is_refused_unchanged(self):
        for name in ("status.json", "journal", "run.json", "notes.txt"):
            self.file("mine/" + name, f"my {name}").chmod(0o644)
        before = self.content("mine")
        uri = f"mongodb://127.0.0.1:{support.free_port()}/"
        for words in ([], ["--sink", "null"], ["--sink", f"bson:{self.scratch}/x"], ["--resume"]):
            with self.subTest(words):
                to = [] if "--sink" in words else ["--uri", uri, "-d", "x", "-c", "y"]
                outcome = self.shardload("load", *to, *words, "--work-dir", "mine", self.good, code=EXIT_USAGE)
                self.assertIn("--work-dir: mine holds files, such as ", outcome.err)
                self.assertIn("Nothing has been changed; name a new or an empty folder", outcome.err)
                self.assertEqual(self.content("mine"), before)
        self.assertEqual(self.folders(), ["mine"])

    def test_a_work_directory_without_its_log_is_one(self):
        """A log may be deleted: the journal shows what the folder is."""
        first = struct.pack("<II", 20, 3)
        payload = b"shardloadjournal" + struct.pack("<I", 2)
        self.file("w/journal", first + struct.pack("<I", zlib.crc32(payload, zlib.crc32(first))) + payload)
        self.assertIn("no server listens", self.failing("--work-dir", "w").err)

    def test_a_sink_that_cannot_be_opened_leaves_no_folder(self):
        for words in ([], ["--work-dir", "w"]):
            outcome = self.shardload("load", "--sink", "bson:nowhere/x.bson", *words, self.good, code=EXIT_USAGE)
            self.assertIn("cannot open nowhere/x.bson", outcome.err)
            self.assertNotIn("incomplete", outcome.text)
            self.assertEqual(self.folders(), [])

    def test_only_the_load_that_holds_the_lock_removes_files(self):
        """The second load of a work directory fails; the first one's files stay, and it goes on."""
        uri = f"mongodb://127.0.0.1:{self.mute()}/"
        for sink in (["--uri", uri, "--wait", "1h", "-d", "x", "-c", "y"],
                     ["--sink", "null", "--rate-limit", "1"]):
            with self.subTest(sink):
                running = self.start("shardload", "load", *sink, "--work-dir", "w", self.good)
                self.await_text(running, "connecting:" if "--uri" in sink else "types inferred")
                while not (self.scratch / "w/status.json").exists():
                    self.assertTrue(running.running(), running.text())
                files = self.names("w")
                log = (self.scratch / "w/shardload.log").read_bytes()
                for more in (["--sink", "null"], sink, ["--sink", "bson:nowhere/x"]):
                    outcome = self.shardload("load", *more, "--work-dir", "w", self.good, code=EXIT_USAGE)
                    self.assertIn("another command is using this work directory", outcome.err)
                    self.assertLessEqual(files, self.names("w"))
                self.assertTrue(running.running(), running.text())
                self.assertTrue((self.scratch / "w/shardload.log").read_bytes().startswith(log))
                self.assertNotIn(b"another command", (self.scratch / "w/shardload.log").read_bytes())
                running.stop()
                for path in (self.scratch / "w").iterdir():
                    path.unlink()
                (self.scratch / "w").rmdir()

    def test_a_file_system_without_locks(self):
        environment = support.preloaded("no_locks")
        (self.scratch / "empty").mkdir()
        for name, exists in (("new", False), ("empty", True)):
            with self.subTest(name):
                outcome = self.shardload("load", "--sink", "null", "--work-dir", name, self.good,
                                         code=EXIT_USAGE, environment=environment)
                self.assertIn("its files cannot be locked: No locks available; name a work "
                              "directory on a local disk", outcome.err)
                self.assertEqual((self.scratch / name).exists(), exists)
        self.assertEqual(list((self.scratch / "empty").iterdir()), [])

    def test_a_folder_that_has_taken_the_name_keeps_its_files(self):
        """The work directory is renamed while the load connects, and another one gets its name."""
        running = self.start("shardload", "load", "--uri", f"mongodb://127.0.0.1:{self.mute()}/",
                             "--wait", "1h", "-d", "x", "-c", "y", "--work-dir", "w", self.good)
        self.await_text(running, "connecting:")
        (self.scratch / "w").rename(self.scratch / "renamed")
        self.file("w/shardload.log", "of another load")
        self.file("w/journal", "of another load")
        before = self.content("w")
        before.pop("status.json", None)  # the running load writes it by name, four times a second
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait().code, EXIT_INTERRUPTED)
        self.assertLessEqual(before.items(), self.content("w").items())

    def test_loads_that_start_at_once_in_a_new_folder(self):
        """Each fails because no server answers, or because another load uses the folder, and removes
        only its own files: none is left. The folder is left, empty, if the load that has created
        it was not the first to lock it."""
        uri = f"mongodb://127.0.0.1:{support.free_port()}/"
        for _ in range(10):
            loads = [self.start("shardload", "load", "--uri", uri, "-d", "x", "-c", "y", "--work-dir",
                                "w", self.good) for _ in range(6)]
            for one in loads:
                outcome = one.wait()
                text = {EXIT_CLUSTER: "no server listens", EXIT_USAGE: "another command is using"}
                self.assertIn(text.get(outcome.code, "?"), outcome.err, outcome.text)
            self.assertEqual(list((self.scratch / "w").glob("*")), [])
            if self.folders():
                (self.scratch / "w").rmdir()

    def test_a_report_is_written_all_the_same(self):
        self.failing("--report", "r.json")
        self.assertIn('"exitCode": 4', (self.scratch / "r.json").read_text())
        self.assertEqual(self.folders(), [])


class UnknownFormats(StartCase):
    def order(self, name, content):
        """The formats in the order of the message's reasons."""
        err = self.shardload("inspect", self.file(name, content), code=EXIT_SOURCE).err
        others = re.search(r"Nor is it one of these \(--format NAME shows why\): (.*)\n", err).group(1)
        self.assertLessEqual(err.count("no table at all"), 1, err)
        return re.findall(r"^  ([a-z-]+): \S", err, re.M) + others.split(", ")

    def test_the_likeliest_format_is_the_first(self):
        text = "no table at all\n\x01\x02\n" * 40
        self.assertEqual(self.order("a.csv", text), ["delimited", "bson", "mot", "isd", "isd-lite", "isd-csv", "json"])
        self.assertEqual(self.order("a.json", text)[0], "json")
        self.assertEqual(self.order("test_result_2013.txt", text)[0], "mot")
        self.assertEqual(self.order("unnamed", b"\0\1\2\3" * 5000)[:2], ["bson", "delimited"])
        self.assertEqual(self.order("packed.json.gz", gzip.compress(text.encode()))[0], "json")


class ShardKeys(StartCase):
    def plan(self, key, *sources, code):
        return self.shardload("plan", "--shards", 2, "--shard-key", key, *sources, code=code)

    def test_a_mistyped_field_is_refused_with_similar_names(self):
        path = self.file("t.csv", "station,state,stamp\n" + "A,B,2020-01-01\n" * 20)
        err = self.plan('{"statoin": 1, "_id": 1}', path, code=EXIT_USAGE).err
        self.assertRegex(err, 'none of the 20 documents sampled has a field "statoin"; similar ' 'names: station')

    def test_names_differ_by_case_and_by_path(self):
        path = self.file("t.json", '{"place": {"Code": 1}, "a": 2}\n' * 5)
        self.assertIn("similar names: place.Code", self.plan('{"code": 1}', path, code=EXIT_USAGE).err)
        self.assertIn("they have _id, place", self.plan('{"zzzzzzz": 1}', path, code=EXIT_USAGE).err)

    def test_fields_that_exist_are_accepted(self):
        path = self.file("t.json", '{"place": {"code": 1}, "a": 2}\n' * 5 + '{"rare": 1}\n')
        for key in ('{"place.code": 1}', '{"a": "hashed"}', '{"rare": 1, "a": 1}', '{"_id": 1}'):
            self.plan(key, path, code=0)
        packed = self.zipped("t2.json.gz", '{"b": 1}\n' * 5)
        self.plan('{"b": 1}', packed, code=0)
        self.plan('{"c": 1}', packed, code=EXIT_USAGE)

    def test_a_field_that_comes_late_in_an_archive_or_a_compressed_file_is_found(self):
        entries = [("a.json", '{"a": 1}\n' * 5), ("b.json", '{"k": 1}\n' * 5)]
        self.plan('{"k": 1}', self.file("two.zip", making.zip_of(entries)), code=0)
        late = '{"a": "' + "x" * 1000 + '"}\n'
        self.plan('{"k": 1}', self.zipped("late.json.gz", late * 3000 + '{"k": 1}\n'), code=0)

    def test_a_field_that_is_not_in_the_beginning_of_a_large_compressed_file_is_a_warning(self):
        wide = '{"a": "' + "x" * 100000 + '"}\n'
        outcome = self.plan('{"k": 1}', self.zipped("t.json.gz", wide * 700), code=0)
        self.assertRegex(outcome.err, 'none of the first [0-9]+ documents sampled has a field "k"')

    def test_generated_records(self):
        words = ["--format", "ycsb", "--records", "1000"]
        self.plan('{"n0": 1}', *words, code=0)
        self.assertIn("similar names: n0", self.plan('{"N0x": 1}', *words, code=EXIT_USAGE).err)
