# SPDX-License-Identifier: Apache-2.0
"""`shardload forget`: what loads leave is removed, and nothing else."""
import fcntl
import os
import subprocess

import support

ROWS = "a,b\n" + "".join(f"{number},x{number}\n" for number in range(500))


class Forget(support.ClusterCase, server="mongod"):
    def setUp(self):
        super().setUp()
        self.source = self.file("t.csv", ROWS + "no\n")

    def forget(self, *words, code=support.EXIT_OK):
        return self.shardload("forget", *words, code=code)

    def test_the_registry_and_the_work_directory(self):
        _, work = self.load(self.source, code=support.EXIT_REJECTS)
        (work / "mine.txt").write_text("mine")
        self.assertIn("t.sources", self.database.list_collection_names())
        outcome = self.forget(*self.target(), work)
        self.assertIn("t: its registry of 1 source is removed; its documents stay", outcome.out)
        self.assertIn("files that are not of loads stay", outcome.out)
        self.assertEqual(self.database.list_collection_names(), ["t"])
        self.assertEqual(self.database.t.count_documents({}), 500)
        self.assertEqual([path.name for path in work.iterdir()], ["mine.txt"])
        self.assertIn("t: no source is registered: nothing is left of its registry", self.forget(*self.target()).out)

    def test_a_collection_of_the_environment_is_not_meant(self):
        _, work = self.load(self.source, code=support.EXIT_REJECTS)
        names = {"SHARDLOAD_URI": self.uri, "SHARDLOAD_DB": self.database_name, "SHARDLOAD_COLLECTION": "t"}
        self.shardload("forget", work, environment=support.clean_environment(**names))
        self.assertFalse(work.exists())
        self.assertIn("t.sources", self.database.list_collection_names())

    def test_work_directories_of_other_commands(self):
        self.dump("--work-dir", "wl", self.source, code=support.EXIT_REJECTS)
        self.shardload("tune", *self.target(), "--max-trials", 1, "--work-dir", "wt", self.file("u.csv", ROWS))
        self.shardload("restore", *self.target("r"), "--work-dir", "wr",
                       self.file("d.bson", support.bson.encode({"_id": 1})))
        self.shardload("verify", "--uri", self.uri, "--work-dir", "wv", "-d", self.database_name, "-c", "r", "--dump",
                       "d.bson")
        self.file(f"wr/admin.system.users-{0:016x}/merged", "shardload-restore-1")
        self.assertIn("admin.shardload-restore-1 may hold users", self.forget("wl", "wt", "wr", "wv").err)
        self.assertEqual([name for name in ("wl", "wt", "wr", "wv") if (self.scratch / name).exists()], [])

    def test_a_restore_that_drops(self):
        dump = self.file("d.bson", support.bson.encode({"_id": 1}))
        for words in ((), ("--drop",)):
            self.shardload("restore", *self.target("r"), "--work-dir", f"w{len(words)}", *words, dump)
        self.forget("w0", "w1")
        self.assertEqual([name for name in ("w0", "w1") if (self.scratch / name).exists()], [])

    def test_files_of_the_user_stay(self):
        """Also those whose names begin like that of a file of a load."""
        _, work = self.load(self.source, code=support.EXIT_REJECTS)
        (work / "journal.~a1b2c3").write_text("a temporary file")
        names = ["journal.backup", "rejected.tar.gz", "registry.sqlite", "rejects.tsv.mysave", "rejected/fixed.csv",
                 "embed/mine.csv", "mine/rejected/x", "restore/precious"]
        for name in names:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text("mine")
        self.forget(work)
        self.assertEqual(sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file()),
                         sorted(names))

    def test_a_log_that_no_load_wrote(self):
        """The output of a load in the file shardload.log makes no work directory of its folder."""
        folder = self.scratch / "data"
        (folder / "rejected").mkdir(parents=True)
        (folder / "rejected" / "000001-mine").write_text("mine")
        for text in ("", "types inferred from 3 sampled records\n"):
            (folder / "shardload.log").write_text(text)
            self.assertIn("this is no work directory", self.forget(folder, code=support.EXIT_USAGE).err)
            self.assertTrue((folder / "rejected" / "000001-mine").exists())

    def test_deep_folders_and_links(self):
        _, work = self.load(self.source, code=support.EXIT_REJECTS)
        outside = self.file("outside/000001-mine", "mine").parent
        (work / "embed").symlink_to(outside)
        descriptor = os.open(work / "rejected", os.O_RDONLY)
        for _ in range(1900):       # deeper than a stack of 8 MB has room for two paths per level
            os.mkdir("a", dir_fd=descriptor)
            below = os.open("a", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        os.close(descriptor)
        self.addCleanup(subprocess.run, ["rm", "-rf", work], check=False)
        self.forget(work)
        self.assertTrue((outside / "000001-mine").exists())
        os.symlink(work, self.scratch / "link")
        (work / "tune.json").write_text('{\n  "program": "shardload"')
        self.assertIn("it is a symbolic link", self.forget("link", code=support.EXIT_USAGE).err)

    def test_what_is_not_removed(self):
        folder = self.file("in/mine.csv", ROWS).parent
        self.assertIn("this is no work directory", self.forget(folder, code=support.EXIT_USAGE).err)
        self.assertTrue((folder / "mine.csv").exists())
        _, work = self.load(self.source, code=support.EXIT_REJECTS)
        with open(work / "shardload.log", "a", encoding="utf-8") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            outcome = self.forget(work, code=support.EXIT_USAGE)
        self.assertIn("a command is using this work directory", outcome.err)
        self.assertTrue((work / "run.json").exists())
        self.database["u.sources"].insert_one({"mine": 1})
        self.forget(*self.target("u"), code=support.EXIT_USAGE)
        self.assertEqual(self.database["u.sources"].count_documents({}), 1)
        self.assertIn("--db is missing", self.forget(code=support.EXIT_USAGE).err)


class Sharded(support.ClusterCase):
    def test_the_balancer_of_a_killed_load(self):
        self.addCleanup(self.clear_balancer)
        source = self.file("t.csv", ROWS)
        running = self.start("shardload", "load", *self.target(), "-j", 1, "--batch-size", 100,
                             "--rate-limit", 50, "--work-dir", "w", source)
        self.wait_for(lambda: self.database.t.count_documents({}) > 0, "documents")
        self.shardload("forget", *self.target(), code=support.EXIT_USAGE, message="loads are running")
        running.kill()
        outcome = self.shardload("forget", *self.target(), "w")
        self.assertIn("the balancer, which 1 load left stopped, is restored", outcome.out)
        self.assertEqual(self.client.admin.command("balancerStatus")["mode"], "full")
        self.assertFalse((self.scratch / "w").exists())
