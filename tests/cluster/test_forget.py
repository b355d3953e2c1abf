# SPDX-License-Identifier: Apache-2.0
"""`shardload forget`: what loads leave is removed, and nothing else."""
import fcntl

import support

ROWS = "a,b\n" + "".join(f"{number},x{number}\n" for number in range(500))


class Forget(support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

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
        self.assertIn("its registry of 0 sources", self.forget(*self.target()).out)     # again

    def test_work_directories_of_other_commands(self):
        self.dump("--work-dir", "wl", self.source, code=support.EXIT_REJECTS)
        self.shardload("tune", *self.target(), "--max-trials", 1, "--work-dir", "wt", self.file("u.csv", ROWS))
        self.shardload("restore", *self.target("r"), "--work-dir", "wr",
                       self.file("d.bson", support.bson.encode({"_id": 1})))
        self.forget("wl", "wt", "wr")
        self.assertEqual([name for name in ("wl", "wt", "wr") if (self.scratch / name).exists()], [])

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
        refused = self.shardload("forget", *self.target(), code=support.EXIT_USAGE)
        self.assertIn("loads are running", refused.err)
        running.kill()
        outcome = self.shardload("forget", *self.target(), "w")
        self.assertIn("the balancer, which 1 load left stopped, is restored", outcome.out)
        self.assertEqual(self.client.admin.command("balancerStatus")["mode"], "full")
        self.assertFalse((self.scratch / "w").exists())
