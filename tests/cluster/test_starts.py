# SPDX-License-Identifier: Apache-2.0
"""Starts of a load that need a server: one that is still starting, sources that were loaded before,
also under another name, and a mistyped shard key."""

import servers
import support
from support import EXIT_SOURCE, EXIT_USAGE

TABLE = "id,make,model\n" + "".join(f"{n},FORD,KA{n}\n" for n in range(1, 50))


class LoadedBefore(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.first = self.file("first.csv", TABLE)
        self.second = self.file("second.csv", TABLE)

    def count(self, collection="t"):
        return self.database[collection].count_documents({})

    def test_a_source_that_is_loaded_again_needs_no_resume_and_leaves_no_folder(self):
        _, work = self.load(self.first)
        before = (work / "journal").read_bytes(), (work / "run.json").read_bytes()
        outcome, again = self.load(self.first, code=EXIT_SOURCE, message="--again")
        self.assertNotIn("--resume", outcome.err)
        self.assertFalse(again.exists())
        self.shardload("load", *self.target(), "--work-dir", work, self.first, code=EXIT_SOURCE)
        self.assertEqual(before, ((work / "journal").read_bytes(), (work / "run.json").read_bytes()),
                         "the record of the completed load")

    def test_the_same_content_under_another_name_is_refused(self):
        _, work = self.load(self.first)
        outcome, again = self.load(self.second, code=EXIT_SOURCE)
        self.assertRegex(outcome.err, rf"second.csv: as \S*first.csv, into {self.database_name}.t on "
                                      rf"20\d\d-\S+ \({work}\)")
        self.assertIn("--again", outcome.err)
        self.assertFalse(again.exists())
        self.assertEqual(self.count(), 49)
        self.load("--again", self.second)
        self.assertEqual(self.count(), 98)

    def test_it_is_only_reported_where_nothing_is_stored_twice(self):
        self.load(self.first)
        text = "loaded before, under another name:"
        for words, collection in ((["--drop"], "t"), ([], "u"), (["--id-field", "id"], "v")):
            with self.subTest(words):
                self.load(*words, self.second, collection=collection, message=text)
                self.assertEqual(self.count(collection), 49)
        self.load("--id-field", "id", self.first, collection="v", code=None,
                  message=(text, "identical duplicates"))
        self.assertEqual(self.count("v"), 49)

    def test_a_dropped_collection_and_another_content_are_no_matter(self):
        self.load(self.first)
        self.database.t.drop()
        self.database["t.sources"].drop()
        outcome, _ = self.load(self.second)
        self.assertEqual(self.count(), 49)
        outcome, _ = self.load(self.file("third.csv", TABLE.replace("KA7", "KB7")))
        self.assertNotIn("under another name", outcome.err)
        self.assertEqual(self.count(), 98)


class ShardKeys(support.ClusterCase):
    def test_a_mistyped_field_is_refused_before_anything_is_created(self):
        path = self.file("first.csv", TABLE)
        outcome, work = self.load("--shard-key", '{"maek": 1}', path, code=EXIT_USAGE)
        self.assertIn('has a field "maek"; similar names: make', outcome.err)
        self.assertFalse(work.exists())
        self.assertEqual(self.database.list_collection_names(), [])
        self.load("--shard-key", '{"make": 1, "id": 1}', path)
        self.assertEqual(self.shard_key(), {"make": 1, "id": 1})


class StartingServer(support.Case):
    def test_wait_loads_as_soon_as_the_server_has_started(self):
        server = servers.Servers(self.scratch / "server", "--standalone", "--cache", "0.25")
        self.addCleanup(server.down)
        (name,) = server.names()
        server.kill(name)
        running = self.start("shardload", "load", "--uri", server.uri, "-d", "x", "-c", "t",
                             "--wait", "1h", "--work-dir", "w", self.file("first.csv", TABLE))
        self.wait_for(lambda: "connecting:" in running.text(), "the first attempt")
        self.assertIn("connection refused", running.text())
        server.start_again()
        self.assertEqual(running.wait().code, 0, running.text())
        self.assert_accounting(self.scratch / "w", inserted=49)
