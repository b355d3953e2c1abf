# SPDX-License-Identifier: Apache-2.0
"""Loads whose _id comes from columns (--id-field): into every kind of deployment, with duplicates in
the file, loaded again, resumed, and verified."""
import gzip

import support
from own_ids_making import table_documents as documents
from own_ids_making import table_rows, text_of
from support import bson

COUNT = 20000


def rows(first=0, count=COUNT):
    return table_rows(first, count)


class Standalone(support.ClusterCase, server="mongod"):
    def verify(self, source, *words, code=0, key="id"):
        work = self.scratch / f"verify-{next(self._counter)}"
        return self.shardload("verify", *self.target(), "--progress", "none", "--work-dir", work,
                              "--id-field", key, *words, source, code=code)

    def test_a_table(self):
        source = self.file("a.csv", text_of(rows()))
        outcome, work = self.load("--id-field", "id", "-j", 3, "--batch-size", 700, source)
        self.assert_accounting(work, records=COUNT, inserted=COUNT, identicalDuplicates=0)
        self.check_stored(documents(rows()))
        self.assertNotIn("WARNING", outcome.text)
        for words in ([], ["--content"]):
            self.verify(source, *words)
        self.database.t.update_one({"_id": 77}, {"$set": {"t": "changed"}})
        self.verify(source, "--content", code=support.EXIT_VERIFICATION)

    def test_a_corrected_column_after_a_load_that_stored_nothing(self):
        """The first load names an empty column, and rejects everything. The corrected command is
        not refused because earlier loads had another _id; later loads are."""
        source = self.file("a.csv", "a,b\n,1\n,2\n")
        self.load("--id-field", "a", source, code=support.EXIT_SOURCE)
        self.load("--id-field", "b", source)
        self.assertEqual(self.database.t.distinct("_id"), [1, 2])
        outcome, _ = self.load("--id-field", "a", self.file("b.csv", "a,b\n3,1\n"), code=support.EXIT_SOURCE)
        self.assertIn("from --id-field b, and this load", outcome.err)

    def test_several_columns(self):
        source = self.file("a.csv", text_of(rows()))
        self.load("--id-field", "k,id", source)
        found = self.database.t.find_one({"_id": bson.SON([("k", 5), ("id", 5)])})
        self.assertEqual(found["t"], "text 5")
        self.verify(source, "--content", key="k,id")

    def test_duplicates_in_the_file(self):
        """The first record is stored and later ones are rejects; rejects with the same content are
        counted."""
        lines = [*rows(count=3000), "7,0,text 7", "8,1,another", "7,0,text 7"]
        source = self.file("a.csv", text_of(lines))
        outcome, work = self.load("--id-field", "id", "--batch-size", 100, source, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3003, inserted=3000, rejectedByServer=3, identicalDuplicates=2)
        found = support.reject_rows(work)
        starts = [len(text_of([*rows(count=3000), *more])) for more in
                  ([], ["7,0,text 7"], ["7,0,text 7", "8,1,another"])]
        self.assertEqual(sorted(int(row["offset"]) for row in found), starts)
        self.assertIn("another document has this _id: ", " ".join(row["reason"] for row in found))

    def test_another_version_of_the_stored_documents(self):
        """The advised mode stores it."""
        lines = [*rows(count=100)]
        self.load("--id-field", "id", self.file("a.csv", text_of(lines)))
        changed = ["7,0,changed" if line.startswith("7,") else line for line in lines]
        newer = self.file("b.csv", text_of([*changed, "100,1,new"]))
        self.load("--id-field", "id", newer, code=support.EXIT_REJECTS, message="load them with --mode upsert, which")
        self.load("--id-field", "id", "--mode", "upsert", newer)
        self.assertEqual([self.database.t.find_one({"_id": key})["t"] for key in (7, 100)], ["changed", "new"])

    def test_loaded_again(self):
        source = self.file("a.csv", text_of(rows()))
        self.load("--id-field", "id", source)
        self.database.t.delete_many({"_id": {"$lt": 100}})
        _, work = self.load("--id-field", "id", "--again", source)
        self.assert_accounting(work, records=COUNT, inserted=100, alreadyStored=COUNT - 100)

    def test_resumed_only_with_the_same_fields(self):
        source = self.file("a.csv", text_of(rows()))
        work = self.scratch / "work"
        words = self.load_words(work, "--rate-limit", 20000, source)
        running = self.start("shardload", *words, "--id-field", "id")
        self.wait_for(lambda: (work / "journal").exists() and
                      self.database.t.estimated_document_count() > 0, "documents")
        running.kill()
        self.shardload(*words, "--resume", "--id-field", "id,k", code=support.EXIT_USAGE,
                       message='--id-field was "id" and is "id,k"')
        self.shardload(*words, "--resume", code=support.EXIT_USAGE, message='--id-field was "id" and is not given')
        self.shardload(*words, "--resume", "--id-field", "id")
        self.assert_accounting(work, records=COUNT, rejectedByServer=0)
        self.check_stored(documents(rows()))

    def test_json(self):
        text = b"".join(b'{"n":%d,"key":"k%d"}\n' % (n, n) for n in range(5000))
        source = self.file("a.json", text)
        self.load("--id-field", "key", source)
        self.check_stored([{"_id": f"k{n}", "n": n} for n in range(5000)])

    def test_verify_needs_the_option(self):
        """Otherwise all documents would be reported as missing, and as extra."""
        for name, text in ("a.json", '{"k":1,"n":5}\n{"k":2,"n":5}\n'), ("a.csv", "k,n\n1,5\n2,5\n"):
            words = "verify", *self.target(name[2:]), "--progress", "none", "--content", self.file(name, text)
            self.load("--id-field", "k", words[-1], collection=name[2:])
            self.shardload(*words, code=support.EXIT_SOURCE, message="--id-field k; give the same option")
            self.shardload(*words, "--id-field", "k")


class Sharded(Standalone, server="cluster"):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear_balancer)

    def test_sharded_by_its_hash(self):
        source = self.file("a.csv", text_of(rows()))
        self.load("--id-field", "id", source)
        self.assertEqual(self.shard_key(), {"_id": "hashed"})
        counts = self.counts_by_shard()
        self.assertGreater(min(counts.values()), COUNT / len(counts) / 2, counts)

    def test_a_range_is_split_at_quantiles(self):
        """Also where the _ids are far from evenly distributed, and of several types."""
        lines = [f"{number ** 3},1,t" for number in range(COUNT)]
        for name, text in (("a.csv", text_of(lines)),
                           ("a.json", b"".join(b'{"id":"k%06d"}\n{"id":%d}\n' % (n, n)
                                               for n in range(COUNT // 2)))):
            outcome, work = self.load("--id-field", "id", "--drop", "--shard-key", '{"_id": 1}', self.file(name, text))
            self.assert_accounting(work, records=COUNT, inserted=COUNT)
            counts = self.counts_by_shard()
            self.assertEqual(len(self.chunks()), len(counts))
            self.assertGreater(min(counts.values()), COUNT / len(counts) * 0.8, counts)
            self.assertIn("at quantiles of a sample", outcome.text)

    def test_every_ranged_key_is_split_and_a_pipe_is_not(self):
        lines = [f"{number},{number % 97},{'x' * 200}" for number in range(COUNT)]
        text = text_of(lines)
        dump = b"".join(support.bson.encode({"_id": n, "k": n % 97, "t": "x"}) for n in range(COUNT))
        for words, key, path in (
                (["--id-field", "id"], {"_id": 1}, self.file("a.csv.gz", gzip.compress(text))),
                ([], {"k": 1}, self.file("b.csv", text)),
                (["--id-field", "id"], {"k": 1, "_id": 1}, self.file("c.csv", text)),
                ([], {"k": 1, "t": 1, "id": 1}, self.file("d.csv.gz", gzip.compress(text))),
                ([], {"_id": 1}, self.file("e.bson", dump)),
                ([], {"k": 1}, self.file("f.bson.gz", gzip.compress(dump)))):
            for route in ("mongos", "direct"):
                with self.subTest(path=path.name, route=route):
                    outcome, work = self.load(*words, "--drop", "--shard-key",
                                              support.json.dumps(key), "--route", route, path)
                    self.assert_accounting(work, records=COUNT, inserted=COUNT)
                    self.assertEqual(self.shard_key(), key)
                    counts = self.counts_by_shard()
                    self.assertEqual(len(self.chunks()), len(counts))
                    self.assertGreater(min(counts.values()), COUNT / len(counts) * 0.7, counts)
                    self.assertIn("at quantiles of a sample", outcome.text)
        outcome, _ = self.load("--id-field", "id", "--drop", "--shard-key", '{"_id": 1}', "-", stdin=text)
        self.assertIn("is one range on one shard", outcome.text)
        self.assertEqual(len(self.chunks()), 1)

    def test_a_field_of_the_shard_key_is_refused(self):
        """It would become the _id, and the documents would lack their shard key."""
        source = self.file("a.csv", b"region,nr,o.k\nwest,1,5\neast,2,6\n")
        lines = self.file("a.json", b'{"o":{"k":5},"n":1}\n')
        other = self.file("b.csv", b"k,t\n1,x\n2,y\n")
        self.shard({"region": 1, "nr": 1})
        before = self.collections()
        for words, path in ((["--id-field", "nr"], source), (["--id-field", "region,nr", "--mode", "upsert"], source),
                            (["--id-field", "o", "--shard-key", '{"o.k": "hashed"}', "--drop"], lines)):
            field = words[1].split(",")[0]
            for command in "load", "plan":
                outcome = self.shardload(command, *self.target(), *words, path, code=support.EXIT_USAGE)
                self.assertIn(f"--id-field makes {field} the _id, so the documents would lack a field of the shard key",
                              outcome.text)
        self.assertEqual((self.collections(), self.database.t.count_documents({})), (before, 0))
        self.shardload("plan", "--id-field", "k", "--shard-key", '{"k": 1}', other, code=support.EXIT_USAGE,
                       message="makes k the _id")

    def test_an_id_that_two_shards_may_store(self):
        """Each shard compares an _id with its own documents only."""
        source = self.file("a.csv", text_of(f"{n // 2},{n},t" for n in range(200)))
        for key, warns in (({"k": 1}, True), ({"k": 1, "_id": 1}, True), ({"_id": 1, "k": 1}, False),
                           ({"_id": "hashed"}, False), ({"k": "hashed"}, True)):
            words = ["--id-field", "id", "--drop", "--shard-key", support.json.dumps(key), source]
            for shown in (self.shardload("plan", *self.target(), *words),
                          self.load(*words, code=support.EXIT_REJECTS)[0]):
                self.assertEqual(shown.text.count("a shard compares the _id"), warns, (key, shown.text))
        self.assertGreater(self.database.t.count_documents({}), len(self.database.t.distinct("_id")))

    def test_plan(self):
        source = self.file("a.csv", text_of(rows()))
        outcome = self.shardload("plan", *self.target(), "--id-field", "id", source)
        self.assertIn('sharded by { "_id" : "hashed" }: the server distributes it', outcome.text)
