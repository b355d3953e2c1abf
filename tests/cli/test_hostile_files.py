# SPDX-License-Identifier: Apache-2.0
"""Special and changing files, hostile file names, and a work directory that is full or contains
files of another user. docs/hostile-input.md lists the cases."""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import zipfile

import archive_making as making
import support

HEADER = "test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n"
ROW = "{}|8394|A|7|\n"
GOOD = HEADER + ROW.format(1)
BAD = HEADER + "x|8394|A|7|\n"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def many(count, row=ROW):
    return HEADER + "".join(row.format(n) for n in range(count))


class Pipes(support.Case):
    def test_two_pipes_opened_at_the_same_time_are_two_sources(self):
        texts = {"one": many(10), "two": many(25)}
        for name in texts:
            os.mkfifo(self.scratch / name)
        running = self.start("shardload", "load", "--sink", "null", "--work-dir", "w", *texts)
        for name, text in texts.items():
            with open(self.scratch / name, "w", encoding="utf-8") as pipe:
                pipe.write(text)
        running.wait().expect(support.EXIT_OK)
        self.assertEqual(support.run_record(self.scratch / "w")["accounting"]["records"], 35)


class WhileItIsRead(support.Case):
    """One thread reads a pipe first. Until the pipe ends, only the beginning of the second source, a
    file, is read."""

    def change(self, path, change, sink):
        """Loads the pipe and the file, and changes the file before the pipe ends."""
        pipe_path = self.scratch / f"pipe-{next(self._counter)}"
        os.mkfifo(pipe_path)
        running = self.start("shardload", "load", "--sink", sink, "--work-dir", "w", "-j", 1, pipe_path, path)
        with open(pipe_path, "wb") as pipe:
            pipe.write(many(8000).encode())  # more than the format detection reads
            pipe.flush()
            self.wait_for(lambda: "2 sources" in running.text(), "the sources")
            change(path)
        outcome = running.wait().expect(support.EXIT_SOURCE)
        self.assertIn("while it was being read", outcome.err)
        return outcome

    @staticmethod
    def replace(path):
        beside = path.with_name("beside.part")
        beside.write_bytes(path.read_bytes())
        os.replace(beside, path)

    @staticmethod
    def append(path):
        """The old end may be in the middle of a line, and half a line can look like a record."""
        with open(path, "ab") as file:
            file.write(gzip.compress(ROW.format(7).encode()) if path.suffix == ".gz" else b"7|1")

    @staticmethod
    def rewrite_with_its_old_time(path):
        facts = path.stat()
        while path.stat().st_ctime_ns == facts.st_ctime_ns:  # file times are coarse
            with open(path, "r+b") as file:
                file.seek(facts.st_size // 2)
                file.write(b"9")
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def test_a_file_that_changes_ends_the_load(self):
        text = many(200000).encode()
        kinds = {"changing.txt": text, "changing.gz": gzip.compress(text),
                 "changing.tar": making.tar([("inner.txt", text)]),
                 "changing.zip": making.zip_of([("inner.txt", text)], zipfile.ZIP_STORED)}
        changes = {self.replace: "was replaced by another file",
                   self.append: "has grown from {size} to [0-9]+ bytes",
                   lambda path: os.truncate(path, path.stat().st_size // 2):
                       "has shrunk from {size} to [0-9]+ bytes",
                   self.rewrite_with_its_old_time: "had its status changed at",
                   pathlib.Path.unlink: "was removed or renamed"}
        for number, (name, content) in enumerate(kinds.items()):
            for change, message in changes.items():
                with self.subTest(name=name, message=message):
                    sink = ("null", f"bson:{self.scratch / 'dump.bson'}")[number % 2]
                    outcome = self.change(self.file(name, content), change, sink)
                    self.assertRegex(outcome.err, f"{name}: {message.format(size=len(content))}")
                    if sink != "null":
                        self.assertIn("the BSON dump is incomplete", outcome.err)

    def test_a_file_that_changes_ends_an_inspection(self):
        """The loader opens the pipe after it has found all files."""
        path = self.file("changing.txt", many(200000))
        os.mkfifo(self.scratch / "pipe")
        running = self.start("shardload", "inspect", path, "pipe")
        with open(self.scratch / "pipe", "wb") as pipe:
            self.replace(path)
            pipe.write(GOOD.encode())
        outcome = running.wait().expect(support.EXIT_SOURCE)
        self.assertIn("was replaced by another file", outcome.err)


class OddFiles(support.Case):
    def test_a_folder_with_every_type_of_file(self):
        self.file("in/good.txt", GOOD)
        os.mkfifo(self.scratch / "in/pipe.txt")
        os.symlink(".", self.scratch / "in/here")
        os.symlink("nowhere", self.scratch / "in/dangling.txt")
        os.symlink("loop-b.txt", self.scratch / "in/loop-a.txt")
        os.symlink("loop-a.txt", self.scratch / "in/loop-b.txt")
        os.symlink("/dev/zero", self.scratch / "in/zeros.txt")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(self.scratch / "in/socket.txt"))
            self.listed("in", {"pipe.txt": "named pipe", "dangling.txt": "does not exist",
                               "loop-a.txt": "does not exist", "loop-b.txt": "does not exist",
                               "zeros.txt": "device", "socket.txt": "socket"})
        _, work = self.parse("--include", "g*.txt", "in")
        self.assert_accounting(work, records=1, inserted=1)

    def test_a_dangling_link_with_control_bytes_in_its_name(self):
        self.file("in/good.txt", GOOD)
        os.symlink("nowhere", self.scratch / "in/a\nb\x1b[2J.txt")
        self.listed("in", {r"a\x0ab\x1b[2J.txt": "does not exist"})

    def listed(self, folder, reasons):
        """What cannot be read in a folder ends the load, before it begins; --skip-other skips it."""
        outcome, _ = self.parse(folder, code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, f"{len(reasons)} files? or archive entr(y is|ies are) not loaded")
        outcome, work = self.parse("--skip-other", folder)
        self.assert_accounting(work, records=1, inserted=1)
        items = support.run_record(work)["notLoaded"]["items"]
        self.assertEqual({item["path"] for item in items}, {f"{folder}/{name}" for name in reasons})
        for item in items:
            self.assertIn(reasons[item["path"].removeprefix(f"{folder}/")], item["reason"])
        for name, reason in reasons.items():
            self.assertRegex(outcome.err, f"{re.escape(name)}: not loaded: .*{reason}")

    def test_a_file_without_permission_in_a_folder_ends_the_load(self):
        self.file("in/good.txt", GOOD)
        self.file("in/secret.txt", GOOD).chmod(0)
        outcome, _ = self.parse("in", code=support.EXIT_SOURCE, unprivileged=True)
        self.assertRegex(outcome.err, "in/secret.txt: Permission denied")

    def test_sockets_are_refused_by_name(self):
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(self.scratch / "socket"))
            outcome, _ = self.parse("socket", code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, "socket: this is a socket; only files, folders and pipes")

    def test_devices_and_files_whose_size_is_not_true(self):
        """Files of /proc state a size of 0, those of /sys that of a page."""
        for path, message in (("/dev/zero", "binary file"), ("/dev/null", ""),
                              ("/proc/version", "holds more than the 0 bytes"),
                              ("/sys/devices/system/cpu/online", "cannot be read after byte|No such file")):
            for quoted in ("auto", "yes"):
                with self.subTest(path=path, quoted=quoted):
                    outcome, _ = self.parse("--format", "delimited", "--header", "no", "--quoted-lines", quoted,
                                            path, code=support.EXIT_SOURCE)
                    self.assertRegex(outcome.err, f"(?s){path}.*{message}")

    def test_a_load_that_waits_for_a_pipe_can_be_interrupted(self):
        os.mkfifo(self.scratch / "pipe")
        running = self.start("shardload", "load", "--sink", "null", "--work-dir", "w", "pipe")
        interrupt = 1 << (signal.SIGINT - 1)
        status = pathlib.Path(f"/proc/{running.process.pid}/status")
        self.wait_for(lambda: int(re.search(r"SigBlk:\s*(\w+)", status.read_text())[1], 16) & interrupt,
                      "the loader to block SIGINT")
        running.signal(signal.SIGINT)
        self.assertEqual(running.wait(20).code, support.EXIT_INTERRUPTED)

    def test_a_hundred_thousand_files_in_a_folder(self):
        folder = self.scratch / "in"
        folder.mkdir()
        for number in range(100000):
            os.close(os.open(folder / f"{number:06}.log", os.O_CREAT | os.O_WRONLY, 0o600))
        for number in (1, 50000, 99999):
            self.file(f"in/{number:06}.txt", HEADER + ROW.format(number))
        outcome, work = self.parse("--include", "*.txt", "in")
        self.assert_accounting(work, records=3, inserted=3)
        self.assertIn("3 sources", outcome.err)


class Names(support.Case):
    NAMES = [b"two\nshardload: lines.txt", b"tab\there.txt", b"\x1b[2J\x1b]0;x\x07.txt",
             b"latin-\xe9\xff.txt", b"\xc2\x9b31m.txt", b"-rf", b"quote\"'\\.txt", b" .txt"]

    def setUp(self):
        super().setUp()
        (self.scratch / "in").mkdir()
        for number, name in enumerate(self.NAMES):
            with open(os.path.join(os.fsencode(self.scratch / "in"), name), "wb") as file:
                file.write(BAD.encode() + ROW.format(number).encode())

    def assert_escaped(self, text):
        self.assertNotRegex(text, CONTROLS)
        self.assertNotRegex(text, r"(?m)^shardload: lines")

    def test_names_are_escaped_in_messages_tables_and_records(self):
        outcome, work = self.parse("in", code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=16, inserted=8, rejectedByParser=8)
        for text in (outcome.text, (work / "shardload.log").read_text("utf-8")):
            self.assert_escaped(text)
        table = (work / "rejects.tsv").read_bytes().decode("utf-8")
        self.assertEqual({line.count("\t") for line in table.splitlines()}, {5})
        self.assertNotRegex(table, CONTROLS)
        self.assertEqual(len(support.reject_rows(work)), 8)
        paths = [source["path"] for source in support.run_record(work)["sources"]]
        self.assertIn("in/latin-\\xe9\\xff.txt", paths)
        self.assertIn("in/two\\x0ashardload: lines.txt", paths)
        self.assertEqual(len(list((work / "rejected").iterdir())), 8)

    def test_names_are_escaped_in_errors(self):
        for name in self.NAMES:
            with self.subTest(name):
                with open(os.path.join(os.fsencode(self.scratch / "in"), name), "wb") as file:
                    file.write(b"\0" * 100)
                words = [support.program("shardload"), "load", "--sink", "null", "--", b"in/" + name, b"gone/" + name]
                done = subprocess.run(words, cwd=self.scratch, capture_output=True, check=False,
                                      env=support.clean_environment(), timeout=support.LIMIT)
                self.assertEqual(done.returncode, support.EXIT_SOURCE)
                self.assert_escaped(done.stderr.decode("utf-8"))  # fails if bytes are not escaped
                os.unlink(os.path.join(os.fsencode(self.scratch / "in"), name))

    def test_names_are_escaped_by_inspect(self):
        self.assert_escaped(self.shardload("inspect", "in").text)

    def test_the_message_of_a_very_long_path_contains_the_reason(self):
        path = self.file("/".join(letter * 200 for letter in "abcdefghijklmno") + "/last.bin", b"\0" * 100)
        self.parse(path, code=support.EXIT_SOURCE, message=("o/last.bin", "binary file"))

    def test_a_work_directory_whose_name_is_not_utf8_has_a_record(self):
        work = os.fsencode(self.scratch) + b"/w\xff"
        self.shardload("load", "--sink", "null", "--work-dir", work, self.file("good.txt", GOOD))
        with open(work + b"/run.json", encoding="utf-8") as file:
            record = json.load(file)
        self.assertTrue(record["options"]["work-dir"].endswith("/w\\xff"))


class HostileText(support.Case):
    """Configuration files and reports with hostile text."""

    def test_a_configuration_file_cannot_write_to_the_terminal(self):
        config = self.file("c.yaml", '"threads\\e[2J\\x07": 4\nprogress: "\\e]0;x"\n')
        outcome, _ = self.parse("--config", config, self.file("good.txt", GOOD), code=support.EXIT_USAGE)
        self.assertRegex(outcome.err, r"c\.yaml:1: threads.*is not an option")
        self.assertNotRegex(outcome.text, CONTROLS)

    def test_a_report_cannot_write_to_the_terminal(self):
        query = {"suite": "s\x1b[2J", "name": "q\n\x9b", "pipeline": [], "documents": 3, "medianMs": 2}
        old = self.file("old.json", json.dumps({"queries": [query]}))
        new = self.file("new.json", json.dumps({"queries": [{**query, "documents": 4}, {**query, "name": "\x1bnew"}]}))
        outcome = self.run_program("shardquery", "compare", old, new)
        self.assertEqual(outcome.code, 0, outcome.text)
        self.assertIn("s\\x1b[2J/q\\x0a", outcome.out)
        self.assertNotRegex(outcome.text, CONTROLS)

    def test_files_that_are_not_reports_are_refused(self):
        for content in ("", "{", "[1]", '{"queries": [{"timingsMs": [-1]}]}', "\0" * 50,
                        '{"queries": ' + "[" * 300 + "]" * 300 + "}"):
            with self.subTest(content[:30]):
                outcome = self.run_program("shardquery", "compare", self.file("a.json", content),
                                           self.file("b.json", content))
                self.assertEqual(outcome.code, support.EXIT_SOURCE, outcome.text)
                self.assertRegex(outcome.err, "not a JSON document|not a report")


class ManyColumns(support.Case):
    """Files with different columns were compared each with each: the work grew with the square of their number or
    faster, and took minutes. Now it takes about a second."""

    IN_TIME = ["sh", "-c", 'ulimit -t 20; exec "$0" "$@"']  # of the processor

    def folder(self, texts):
        folder = self.scratch / f"many-{next(self._counter)}"
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{number:05}.csv").write_text(text)
        return folder

    def test_many_sets_of_columns(self):
        folder = self.folder(f"id,b,c,a{n}\n1,2,3,4\n" for n in range(3000))
        schema = self.scratch / "all.yaml"
        self.shardload("inspect", "--write-schema", schema, folder, through=self.IN_TIME)
        self.assertEqual(schema.read_text().count("  - {name: "), 3003)

    def test_texts_that_show_how_values_are_written_beside_others(self):
        texts = [f"id,c,d,a{n}\n1,2,3,\\N\n" for n in range(1600)] + [f"id,c,d,b{n}\n1,2,3,4\n" for n in range(1600)]
        self.parse(self.folder(texts), through=self.IN_TIME)

    def test_a_schema_with_many_names_and_words(self):
        columns = "".join(f"- {{name: c{n}, type: int, aliases: [{', '.join(f'b{n * 90 + k}' for k in range(90))}]}}\n"
                          for n in range(1000))
        words = ", ".join(f"w{n}" for n in range(1000))
        schema = self.file("names.yaml", f"name: t\nheader: true\nmissing: [{words}]\ncolumns:\n{columns}")
        texts = [",".join(["B5", *(f"x{n}{k:03}" for k in range(1000))]) + f"\n{n}{',' * 1000}\n" for n in range(20)]
        self.parse("--schema", schema, self.folder(texts), through=self.IN_TIME)

    def test_columns_are_limited(self):
        """Each needs up to 3 KiB of memory."""
        for count, code in ((98, support.EXIT_OK), (391, support.EXIT_SOURCE)):
            folder = self.folder(",".join(f"{'a' if k < 700 else n}c{k}" for k in range(1024)) + "\n"
                                 for n in range(count))
            outcome, _ = self.parse(folder, code=code)
            self.assertEqual("more than 400000 columns in all" in outcome.err, code != 0)


class FullDisk(support.Case):
    """The work directory is on a small file system in memory, mounted for the loader only."""

    def on_disk_of(self, size, *words):
        """Runs the load in a namespace with `disk` mounted; afterwards `left` is a copy of it."""
        (self.scratch / "disk").mkdir()
        script = ('mount -t tmpfs -o "size=$1" none disk || exit 99; shift; "$@"; code=$?;'
                  "cp -r disk left; exit $code")
        outcome = self.run_program("shardload", "load", "--progress", "none", "--work-dir", "disk/w", *words,
                                   through=["unshare", "-rm", "sh", "-c", script, "sh", size])
        if outcome.code == 99 or "unshare" in outcome.err:
            self.skipTest("no file system can be mounted here (unshare -rm)")
        self.assertEqual(outcome.code, support.EXIT_RESOURCES, outcome.err)
        return outcome.text

    def setUp(self):
        super().setUp()
        self.bad = self.file("bad.txt", many(100000, "x{}|8394|A|7|\n"))

    def test_a_full_disk_is_reported_before_the_load(self):
        err = self.on_disk_of("4k", "--sink", f"bson:{self.scratch}/out.bson", self.file("good.txt", GOOD))
        self.assertRegex(err, r"cannot write disk/w/rejects\.tsv: No space left on device; "
                         "free space on the disk, or name another --work-dir")
        self.assertFalse((self.scratch / "out.bson").exists())

    def test_rejects_that_cannot_be_written_end_the_load(self):
        err = self.on_disk_of("512k", "--sink", "null", "-j", "2", self.bad)
        self.assertRegex(err, "cannot write (rejects.tsv|the raw rejects): No space left on device; free space")
        self.assertRegex(err, "rejected by the parser +[0-9]")
        kept = (self.scratch / "left/w/rejects.tsv").read_text("utf-8").splitlines()
        self.assertGreater(len(kept), 1000, "written rejects are kept")
        self.assertEqual(kept[1].split("\t")[1:3], ["2", str(len(HEADER))])

    def test_a_limit_on_file_sizes_is_an_error(self):
        self.parse(self.bad, code=support.EXIT_RESOURCES,
                   through=["sh", "-c", 'ulimit -f 64; exec "$0" "$@"'], message="File too large")


class PlantedFiles(support.Case):
    """The work directory contains files and links that another user created."""

    def setUp(self):
        super().setUp()
        self.bad = self.file("bad.txt", BAD)
        self.victim = self.file("victim", "precious")
        self.work = self.scratch / "w"
        self.work.mkdir()

    def load_there(self, code, *words):
        if not os.path.lexists(self.work / "shardload.log"):
            self.file("w/shardload.log", "an earlier load\n") # otherwise it is no work directory
        return self.shardload("load", "--sink", "null", "--work-dir", "w", *words, self.bad, code=code, limit=30)

    def test_links_are_not_followed(self):
        for name in ("rejects.tsv", "run.json", "shardload.log"):
            with self.subTest(name):
                os.symlink("../victim", self.work / name)
                outcome = self.load_there(support.EXIT_USAGE)
                self.assertIn(f"w/{name}", outcome.err)
                self.assertEqual(self.victim.read_text(), "precious")
                shutil.rmtree(self.work)
                self.work.mkdir()

    def test_a_link_as_report_is_not_followed(self):
        os.symlink("victim", self.scratch / "report.json")
        outcome = self.load_there(support.EXIT_USAGE, "--report", "report.json")
        self.assertIn("report.json", outcome.err)
        self.assertEqual(self.victim.read_text(), "precious")

    def test_a_link_as_folder_of_rejected_records_is_not_followed(self):
        (self.scratch / "elsewhere").mkdir()
        os.symlink("../elsewhere", self.work / "rejected")
        outcome = self.load_there(support.EXIT_RESOURCES)
        self.assertIn("w/rejected", outcome.err)
        self.assertEqual(os.listdir(self.scratch / "elsewhere"), [])

    def test_hard_links_pipes_and_folders_are_refused_without_waiting(self):
        def hard_link(path):
            os.link(self.victim, path)
        for plant in (hard_link, os.mkfifo, os.mkdir):
            with self.subTest(plant):
                plant(self.work / "rejects.tsv")
                outcome = self.load_there(support.EXIT_USAGE)
                self.assertIn("w/rejects.tsv", outcome.err)
                self.assertEqual(self.victim.read_text(), "precious")
                (os.rmdir if plant is os.mkdir else os.unlink)(self.work / "rejects.tsv")

    def test_special_files_as_sink_are_refused_without_waiting(self):
        for plant in (lambda path: os.symlink("victim", path), lambda path: os.link(self.victim, path),
                      os.mkfifo, os.mkdir):
            plant(self.scratch / "x.bson")
            self.shardload("load", "--sink", "bson:x.bson", "--work-dir", "new", self.bad,
                           code=support.EXIT_USAGE, limit=30, message="x.bson")
            self.assertEqual(self.victim.read_text(), "precious")
            (shutil.rmtree if plant is os.mkdir else os.unlink)(self.scratch / "x.bson")

    def test_a_link_as_work_directory_is_refused(self):
        self.file("real/shardload.log", "an earlier load\n")
        os.symlink("real", self.scratch / "link")
        os.symlink("nowhere", self.scratch / "dangling")
        for folder in ("link", "link/", "dangling"):
            outcome = self.shardload("load", "--sink", "null", "--work-dir", folder, self.bad, code=support.EXIT_USAGE)
            self.assertIn("it is a symbolic link; name another --work-dir", outcome.err)
        self.assertEqual((self.scratch / "real/shardload.log").read_text(), "an earlier load\n")
        os.symlink(".", self.scratch / "here")  # a link above it is the user's business
        self.shardload("load", "--sink", "null", "--work-dir", "here/real", self.bad, code=support.EXIT_SOURCE)
        os.symlink("loop", self.scratch / "loop")
        outcome = self.shardload("load", "--sink", "null", "--work-dir", "loop/w", self.bad, code=support.EXIT_USAGE)
        self.assertIn("Too many levels of symbolic links", outcome.err)

    # What another user owns. The tests of this section need root.

    def give(self, *names, mode=None):
        if os.geteuid() != 0:
            self.skipTest("only root can create files of another user")
        for name in names:
            os.chown(self.scratch / name, support.NOBODY, support.NOBODY, follow_symlinks=False)
            if mode is not None:
                (self.scratch / name).chmod(mode)

    def test_a_work_directory_of_another_user_is_refused(self):
        self.file("w/shardload.log", "an earlier load\n")
        (self.scratch / "empty").mkdir()
        self.give("w", "empty", mode=0o777)
        for folder in ("w", "empty"):
            outcome = self.shardload("load", "--sink", "null", "--work-dir", folder, self.bad, code=support.EXIT_USAGE)
            self.assertIn("this folder belongs to another user, who could replace the files in it; run "
                          "the command as that user, or name another --work-dir", outcome.err)
        self.assertEqual(os.listdir(self.work), ["shardload.log"])
        self.assertEqual(os.listdir(self.scratch / "empty"), [])

    def test_a_user_may_work_in_a_folder_of_root(self):
        """Volumes of containers often belong to root."""
        self.give("bad.txt")
        self.work.chmod(0o777)
        self.shardload("load", "--sink", "null", "--work-dir", "w", self.bad, code=support.EXIT_SOURCE,
                       unprivileged=True)
        self.assertEqual((self.work / "rejects.tsv").stat().st_uid, support.NOBODY)

    def test_files_of_another_user_are_not_written(self):
        for name in ("w/rejects.tsv", "w/shardload.log", "x.bson"):
            with self.subTest(name):
                path = self.file(name, "theirs")
                self.give(name, mode=0o666)
                outcome = self.load_there(support.EXIT_USAGE, "--sink", "bson:x.bson")
                self.assertIn(f"{name}: it belongs to another user", outcome.err)
                self.assertEqual((path.read_text(), path.stat().st_mode & 0o777), ("theirs", 0o666))
                path.unlink()
        self.file("w/rejected/other", "theirs")
        self.give("w/rejected")
        self.assertIn("w/rejected: this folder belongs to another user", self.load_there(support.EXIT_RESOURCES).err)

    def test_a_link_of_another_user_leads_to_no_output(self):
        (self.scratch / "target").mkdir()
        for name in ("theirs", "ours"):
            os.symlink("target", self.scratch / name)
        self.give("theirs")
        for option, value in (("--report", "theirs/r.json"), ("--sink", "bson:theirs/x.bson")):
            outcome = self.load_there(support.EXIT_USAGE, option, value)
            self.assertIn("a symbolic link in this path belongs to another user", outcome.err)
        self.run_program("shardquery", "compare", "--ab", "--a", "-d a", "--b", "-d b", "mot",
                         environment=support.clean_environment(TMPDIR="theirs")).expect(
                             support.EXIT_USAGE, "a symbolic link in this path belongs to another user")
        os.symlink("theirs", self.scratch / "chain")
        (self.scratch / "target/w").mkdir(mode=0o700)
        for folder in ("theirs/w", f"{self.scratch}/theirs/./w", "chain/w", "chain/new"):
            outcome = self.shardload("load", "--sink", "null", "--work-dir", folder, self.bad, code=support.EXIT_USAGE)
            self.assertIn("a symbolic link in this path belongs to another user", outcome.err)
        self.assertEqual(os.listdir(self.scratch / "target/w"), [])
        os.rmdir(self.scratch / "target/w")
        self.assertEqual(os.listdir(self.scratch / "target"), [])
        self.load_there(support.EXIT_SOURCE, "--report", "ours/r.json")
        self.assertEqual(os.listdir(self.scratch / "target"), ["r.json"])

    # Permissions

    def test_every_file_has_its_mode_with_any_umask_and_any_earlier_mode(self):
        outputs = {"--report": "r.json", "--html": "r.html", "--metrics-file": "r.prom", "--sink": "bson:x.bson"}
        modes = {name: 0o600 for name in ("r.json", "r.html", "x.bson", "page.html", "types.yaml", "plan.json")}
        modes |= {f"w/{name}": 0o600 for name in ("rejects.tsv", "run.json", "shardload.log", "status.json",
                                                  "rejected/000001-bad.txt")}
        modes |= {"r.prom": 0o644, "w": 0o700, "w/rejected": 0o700}
        os.rmdir(self.work)
        table = self.file("t.csv", "a,b\n1,x\n")
        for umask in ("0", "077", "0777"):
            with self.subTest(umask):
                for command, *words in (
                        ("load", *[word for pair in outputs.items() for word in pair], "--work-dir", "w", self.bad),
                        ("report", "--html", "page.html", "w/run.json"),
                        ("plan", "--report", "plan.json", "--shards", "2", "--rate", "1k", table),
                        ("inspect", "--write-schema", "types.yaml", table)):
                    self.run_program("shardload", command, *words,
                                     through=["sh", "-c", f'umask {umask}; exec "$0" "$@"'])
                modes["w/rejected"] = 0o700 & ~int(umask, 8)    # each load creates it
                self.assertEqual({name: oct((self.scratch / name).stat().st_mode & 0o777) for name in modes},
                                 {name: oct(mode) for name, mode in modes.items()})
                shutil.rmtree(self.work / "rejected-1", ignore_errors=True)     # of the load before
                found = {str(path.relative_to(self.scratch)) for path in self.work.rglob("*")}
                self.assertEqual(found, {name for name in modes if name.startswith("w/")})
            for name in modes:
                if (self.scratch / name).is_file():
                    (self.scratch / name).chmod(0o666)
            self.work.chmod(0o722)  # others may not write there afterwards

    def test_password_files_that_others_may_read_cause_a_warning(self):
        path = self.file("secret", "word\n")
        config = self.file("c.yaml", "username: me\npassword: word\n")
        link = self.scratch / "link"
        link.symlink_to(path)
        readers, foreign = "contains a password and can be read by other users", "and belongs to another user"
        cases = [(0o600, 0, None), (0o400, 0, None), (0o640, 0, readers), (0o620, 0, readers),
                 (0o610, 0, readers), (0o604, 0, readers), (0o602, 0, readers), (0o601, 0, readers)]
        if os.geteuid() == 0:
            cases += [(0o600, support.NOBODY, foreign), (0o604, support.NOBODY, readers)]
        for mode, owner, warning in cases:
            for words in (["-u", "me", "--password-file", path], ["-u", "me", "--password-file", link],
                          ["--config", config]):
                with self.subTest(mode=oct(mode), owner=owner, words=words):
                    file = config if words[-1] == config else path
                    file.chmod(mode)
                    if os.geteuid() == 0:
                        os.chown(file, owner, owner)
                    err = self.shardload("load", "--uri", "mongodb://127.0.0.1:1/", "-d", "d", "-c", "c",
                                         *words, self.bad, code=support.EXIT_CLUSTER).err
                    self.assertEqual("contains a password" in err, warning is not None, err)
                    self.assertIn(warning or "", err)
