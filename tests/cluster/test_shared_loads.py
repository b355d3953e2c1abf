# SPDX-License-Identifier: Apache-2.0
"""Several loaders share a load, and one of them is killed and resumed: the collection is complete, and
`shardload report` shows the loaders' records as one load."""

import support

ROWS = 1200


class SharedLoads(support.ClusterCase):
    def begin(self, name, *words):
        work = self.scratch / name
        return work, self.load_words(work, "--batch-size", 10, "-j", 1, *words)

    def kill_and_resume(self, shares, source, *words):
        """`shares`: the options of each loader. Kills the first one, and resumes it when the others
        have ended. Returns the work directories."""
        loaders = [self.begin(f"loader-{i}", *share, *words, source) for i, share in enumerate(shares)]
        work, first = loaders[0]
        killed = self.start("shardload", *first, "--rate-limit", 40)
        self.wait_for_documents(killed, 20)
        others = [self.start("shardload", *other) for _, other in loaders[1:]]
        killed.kill()
        for other in others:
            other.wait().expect(support.EXIT_OK)
        self.assertFalse((work / "run.json").exists() and self.complete(work), "the load was too short")
        self.assertLess(self.database.t.count_documents({}), ROWS)
        # The record of the killed loader is missing, and the page says so.
        if len(loaders) > 2:
            self.assertIn("Records of some loaders are missing", self.report([work for work, _ in loaders[1:]]))
        self.shardload(*first, "--resume")
        return [work for work, _ in loaders]

    def complete(self, work):
        return support.run_record(work).get("exitCode") == support.EXIT_OK

    def report(self, works):
        done = self.shardload("report", *[work / "run.json" for work in works])
        return " ".join(done.out.split())

    def assert_one_load(self, works, source):
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.shardload("verify", *self.target(), "--content", "--progress", "none", source)
        records = [support.run_record(work) for work in works]
        self.assertEqual(sum(record["accounting"]["inserted"] for record in records) +
                         sum(record["accounting"]["alreadyStored"] for record in records), ROWS)
        shown = self.report(works)
        self.assertIn(f"Load by {len(works)} loaders", shown)
        self.assertIn(f"{len(works)} loaders stored {ROWS:,} documents", shown)
        self.assertIn("The totals of all loaders add up.", shown)
        self.assertNotIn("No record for", shown)
        page = self.scratch / "page.html"
        self.shardload("report", "--html", page, *[work / "run.json" for work in works])
        self.assertIn("Everything was loaded", page.read_text("utf-8"))

    def source(self):
        return self.file("wide.txt", support.wide_text(ROWS // support.WIDE_ROWS))

    def test_one_of_four_parts_is_killed_and_resumed(self):
        source = self.source()
        works = self.kill_and_resume([["--part", f"{k}/4"] for k in (1, 2, 3, 4)], source)
        self.assert_one_load(works, source)

    def test_one_of_the_loaders_for_shards_is_killed_and_resumed(self):
        source = self.source()
        shards = sorted(shard["_id"] for shard in self.client.config.shards.find())
        works = self.kill_and_resume([["--only-shards", name] for name in shards], source,
                                     "--route", "direct")
        self.assert_one_load(works, source)
