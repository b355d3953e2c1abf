# SPDX-License-Identifier: Apache-2.0
"""`--part K/N` with documents that have an _id of their own, in every mode: several loaders at the same
time store together what one loader stores, also if one of them is killed and resumed."""
import collections
import gzip

import own_ids_making as making
import support

COUNT, PARTS = 4000, 3
PAD = "x" * 2000                    # so that the file has about eight blocks
BY_ID = ("--id-field", "id")


def lines(first=0, count=COUNT, word="text"):
    return [f"{number},{word} {number} {PAD}" for number in range(first, first + count)]


def documents(rows):
    return [{"_id": int(number), "t": t} for number, t in (row.split(",") for row in rows)]


class Standalone(support.ClusterCase, server="mongod"):
    def source(self, rows, zipped=False):
        text = "\n".join(["id,t", *rows, ""]).encode()
        name = f"{next(self._counter)}.csv"
        return self.file(name + ".gz", gzip.compress(text, 1)) if zipped else self.file(name, text)

    def begin(self, number, *words):
        work = self.scratch / f"part-{next(self._counter)}"
        return work, self.start("shardload", *self.load_words(
            work, "--batch-size", 50, "--part", f"{number}/{PARTS}", *words))

    def load_parts(self, *words, code=0):
        """Loads all parts at the same time; returns the sums of their totals."""
        begun = [self.begin(number, *words) for number in range(1, PARTS + 1)]
        sums = collections.Counter()
        for work, running in begun:
            outcome = running.wait().expect(code)
            self.assertNotIn(" 0 documents in total", outcome.text)  # they were changed
            accounting = support.run_record(work)["accounting"]
            self.assertTrue(accounting["addsUp"])
            self.assertGreater(accounting["records"], 0)
            sums.update({name: accounting.get(name, 0) for name in (
                "records", "inserted", "alreadyStored", "changed", "rejectedByServer")})
        return dict(sums)

    def test_the_documents_of_another_part_are_gone(self):
        """The last part does not call the source loaded after somebody has dropped the collection, and warns if
        documents were removed."""
        source = self.source(lines(count=2000))

        def part(number, collection="t"):
            return self.load("--part", f"{number}/2", *BY_ID, source, collection=collection)[0]
        part(1)
        self.database.t.drop()
        self.assertIn("part 2 of 2 is loaded; 1 of 1 sources wait", part(2).text)
        self.assertIn("all 2 parts are loaded: 2,000 documents", part(1).text)
        part(1, "u")
        self.database.u.delete_many({})
        self.assertIn("documents, but its parts have stored 2,000: unless _ids are repeated", part(2, "u").err)

    def states(self):
        return [one["state"] for one in self.database["t.sources"].find() if "name" in one]

    def test_insert_by_id_field(self):
        for zipped in (False, True):
            self.database.drop_collection("t")
            self.database.drop_collection("t.sources")
            rows = lines()
            source = self.source([*rows, rows[5], rows[7]], zipped)
            begun = [self.begin(number, *BY_ID, source) for number in range(1, PARTS + 1)]
            outcomes = [(work, running.wait()) for work, running in begun]
            accounts = [support.run_record(work)["accounting"] for work, _ in outcomes]
            self.assertEqual(sum(one["records"] for one in accounts), COUNT + 2)
            self.assertEqual(sum(one["inserted"] for one in accounts), COUNT)
            self.assertEqual(sum(one["identicalDuplicates"] for one in accounts), 2)
            self.assertIn(support.EXIT_REJECTS, [outcome.code for _, outcome in outcomes])
            self.check_stored(documents(rows))
            self.assertEqual(self.states(), ["loaded"])
            errors = "".join(outcome.text for _, outcome in outcomes)
            self.assertIn("all 3 parts are loaded", errors)
            outcome, _ = self.load("--part", f"1/{PARTS}", *BY_ID, source, code=support.EXIT_SOURCE, message="before")

    def test_bson_documents_with_and_without_ids(self):
        made = making.documents(COUNT, pad=2000)
        source = self.file("a.bson", making.dump(made))
        sums = self.load_parts(source)
        self.assertEqual((sums["records"], sums["inserted"]), (COUNT, COUNT))
        self.assertEqual(collections.Counter(making.found(self.stored(), made)),
                         collections.Counter(making.as_stored(one) for one in made))
        self.shardload("verify", *self.target(), "--content", "--progress", "none", source)

    def test_every_mode(self):
        self.load(*BY_ID, self.source(lines(0, 1000)))
        new = lines(500, COUNT, "new")
        sums = self.load_parts("--mode", "upsert", *BY_ID, self.source(new))
        self.assertEqual((sums["records"], sums["inserted"], sums["changed"]), (COUNT, COUNT - 500, 500))
        self.check_stored(documents([*lines(0, 500), *new]))
        newer = lines(0, 3000, "newer")
        sums = self.load_parts("--mode", "replace", *BY_ID, self.source(newer))
        self.assertEqual((sums["records"], sums["changed"]), (3000, 3000))
        merged = lines(2000, 3000, "merged")
        sums = self.load_parts("--mode", "merge", *BY_ID, self.source(merged))
        self.assertEqual((sums["changed"], sums["inserted"]), (2500, 500))
        self.check_stored(documents([*newer[:2000], *merged]))
        sums = self.load_parts("--mode", "delete", *BY_ID, self.source(lines(100, COUNT)))
        self.assertEqual((sums["changed"], sums["alreadyStored"]), (4000, 0))
        self.check_stored(documents([*newer[:100], *merged[2100:]]))

    def test_a_part_is_killed_and_resumed_while_the_others_load(self):
        self.load(*BY_ID, self.source(lines(0, 300)))
        rows = lines(0, COUNT, "new")
        source = self.source(rows)
        words = ["--mode", "upsert", *BY_ID, "--rate-limit", 1500, source]
        begun = [self.begin(number, *words) for number in range(1, PARTS + 1)]
        work, killed = begun[0]
        self.wait_for(lambda: self.database.t.count_documents({"t": {"$gt": "new", "$lt": "o"}}) > 300, "documents")
        killed.kill()
        self.shardload(*self.load_words(work, "--part", f"1/{PARTS}", "--mode", "upsert", *BY_ID, "--resume", source))
        for _, running in begun[1:]:
            running.wait().expect(0)
        self.clear_balancer()
        self.check_stored(documents(rows))
        total = sum(support.run_record(one)["accounting"]["records"] for one, _ in begun)
        self.assertEqual(total, COUNT)

    def test_lost_documents_end_in_exit_5(self):
        source = self.source(lines())
        _, running = self.begin(1, *BY_ID, "--rate-limit", 600, source)
        self.wait_for_documents(running, 200)
        self.database.t.delete_many({})
        running.wait().expect(support.EXIT_VERIFICATION, "documents are missing")


class Sharded(Standalone, server="cluster"):
    def test_into_a_collection_by_ranges_of_id(self):
        rows = lines()
        for route in ("mongos", "direct"):
            self.database.drop_collection("t")
            self.database.drop_collection("t.sources")
            sums = self.load_parts("--shard-key", '{"_id": 1}', "--route", route, *BY_ID, self.source(rows))
            self.assertEqual(sums["inserted"], COUNT)
            self.check_stored(documents(rows))
        self.load_parts("--mode", "upsert", *BY_ID, self.source(lines(5, COUNT)))
        self.assertEqual(self.shard_key(), {"_id": 1})
