# SPDX-License-Identifier: Apache-2.0
"""--embed into a cluster: the stored documents have their records, also after kills; resumed loads
report the same records without a document; and verify compares the embedded records, too."""
import json
import os
import random
import shutil

import archive_making as making
import bson
import support

ORDERS = 30000
PAD = "x" * 300          # the orders have ten blocks


class Embedding(support.ClusterCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        keys = draw.sample(range(10 ** 6), ORDERS)
        owners = [key for key in keys for _ in range(draw.choice([0, 1, 3]))] + [-1, -2, -2]
        draw.shuffle(owners)
        self.items = {}
        for number, key in enumerate(owners):
            self.items.setdefault(key, []).append({"n": number})
        self.orders = self.file("orders.csv", "key,v,pad\n" + "".join(f"{k},{k % 9},{PAD}\n" for k in keys))
        self.records = self.file("items.csv", "key,n\n" + "".join(
            f"{key},{number}\n" for number, key in enumerate(owners)))
        self.work = self.scratch / "work"
        self.options = ["--embed", f"items={self.records}", "--on", "key"]

    def assert_stored(self, orders=ORDERS):
        """Every stored document is right, and all are there."""
        count = 0
        for document in self.database["t"].find({}, {"_id": 0}):
            count += 1
            expected = {"key": document["key"], "v": document["key"] % 9, "pad": PAD}
            if document["key"] in self.items:
                expected["items"] = self.items[document["key"]]
            self.assertEqual(document, expected)
        self.assertEqual(count, orders)

    def words(self, *more):
        return ["load", *self.target(), "--work-dir", self.work, "--progress", "json", *self.options,
                *more, self.orders]

    def verify(self, *more, code):
        return self.shardload("verify", *self.target(), "--work-dir", self.work, *self.options,
                              *more, self.orders, code=code)

    def test_a_refusal_after_the_second_source_is_no_change(self):
        outcome = self.shardload(*self.words("--shard-key", '{"nothing": 1}'), code=support.EXIT_USAGE)
        self.assertIn(f"{self.work}/embed/records holds the records of --embed", outcome.err)
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        self.assert_stored()

    def test_records_with_text_that_is_not_utf_8(self):
        """They ended a loaded file with "out of memory", again after each --resume; inspect ended so, too."""
        bad = bson.encode({"k": 2, "s": "ab", "d": {"a": ["cd"], "r": 1}})
        for text, put in ((b"ab", b"\xff\n"), (b"cd", b"\xe9c"), (b"r\0", b"\xfc\0")):
            bad = bad.replace(text, put)
        records = self.file("r.bson", bson.encode({"k": 1, "s": "é"}) + bad)
        _, work = self.load("--embed", f"items={records}", "--on", "k", self.file("m.csv", "k,x\n1,2\n"),
                            code=support.EXIT_REJECTS, message="is in no document")
        self.assertEqual(json.loads((work / "embed/unmatched.json").read_text()), {"k": 2, "items": [
            {"s": "\x1a\n", "d": {"a": ["\x1ac"], "\x1a": 1}}]})
        self.assertIn('"s" : "\\u001a\\n"', self.shardload("inspect", records).out)

    def test_documents_that_a_sample_has_read_are_counted_once(self):
        """A sample for the shard key, or for the _ids of JSON, was counted as loaded documents."""
        documents = self.file("d.json", "".join(f'{{"key": {number}}}\n' for number in range(1000)))
        records = self.file("r.csv", "key,n\n" + "".join(f"{number},1\n" for number in range(500)))
        _, work = self.load("--embed", f"items={records}", "--on", "key", "--shard-key", '{"key": 1}', documents)
        figures = support.run_record(work)["embed"]
        names = "documentsWith", "embedded", "documentsWithoutKey"
        self.assertEqual([figures[name] for name in names], [500, 500, 0])

    def test_a_failed_export_of_the_second_source_removes_no_arrays(self):
        """An upsert removed those of all documents: the source had only a header, and no message named it."""
        orders, words = self.file("o.csv", "key,v\n1,2\n"), ["--id-field", "key", "--on", "key"]
        self.load(*words, "--embed", f"items={self.file('r.csv', 'key,n' + chr(10) + '1,5')}", orders)
        empty = ["--again", *words, "--embed", f"items={self.file('none.csv', 'key,n' + chr(10))}"]
        for more, code, seen in ((["--mode", "upsert"], 3, "only headers and blank lines; to remove items"),
                                 (["--drop"], 3, "only headers and blank lines; to remove items"),
                                 (["--mode", "merge"], 0, "no record in it, so no document has items")):
            outcome = self.load(*empty, *more, orders, code=code)[0]
            self.assertIn(f"none.csv: there is {'no record in it, ' * (code > 0)}{seen}", outcome.err)
            self.assertEqual(self.database.t.find_one(), {"_id": 1, "v": 2, "items": [{"n": 5}]})

    def test_load_and_verify_by_shard_key(self):
        self.shardload(*self.words("--shard-key", '{"key": "hashed"}'), code=support.EXIT_REJECTS)
        self.assert_stored()
        self.assertEqual(support.run_record(self.work)["embed"]["unmatched"], 3)
        self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS, message="nothing to resume")
        self.verify("--content", code=support.EXIT_OK)
        self.shardload("verify", *self.target(), "--work-dir", self.work, "--embed",
                       f"other={self.records}", "--on", "key", self.orders, code=support.EXIT_USAGE,
                       message="has the records of another --embed")
        shutil.rmtree(self.work / "embed")          # verify makes it again
        self.verify("--content", code=support.EXIT_OK)
        key = next(key for key in self.items if key >= 0)
        self.database["t"].update_one({"key": key}, {"$set": {"items.0.n": -1}})
        outcome = self.verify("--content", code=support.EXIT_VERIFICATION)
        self.assertIn("1", outcome.text)

    def test_killed_loads_are_completed(self):
        """A kill while the records are read, while they are stored, and while documents are sent:
        by the number of documents that are stored then."""
        for stored in (None, 1, ORDERS // 3, ORDERS * 2 // 3):
            resume = ["--resume"] if (self.work / "journal").exists() else []
            running = self.start("shardload", *self.words("-j", 1, "--batch-size", 100,
                                                          "--rate-limit", 8000, *resume))
            if stored is None:
                self.wait_for(lambda: (self.work / "embed/records").exists(), "records on disk")
            else:
                self.wait_for(lambda least=stored: not running.running() or self.database[
                    "t"].estimated_document_count() >= least, "documents")
                self.assertTrue(running.running(), "the load has ended before the kill")
            running.kill()
        self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS)
        self.assert_stored()
        figures = support.run_record(self.work)["embed"]
        self.assertEqual((figures["unmatched"], figures["records"]), (3, sum(map(len, self.items.values()))))
        self.assertEqual(len((self.work / "embed/unmatched.json").read_text().splitlines()), 2)

    def test_other_records_are_no_resume(self):
        running = self.start("shardload", *self.words("-j", 1, "--batch-size", 100, "--rate-limit", 8000))
        self.wait_for(lambda: self.database["t"].estimated_document_count() > 0, "documents")
        begun = (self.work / "journal").stat().st_size
        self.wait_for(lambda: (self.work / "journal").stat().st_size > begun, "a completed block")
        running.kill()
        kept = self.records.read_text()
        self.records.write_text(kept + "5,5\n")
        self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE, message="has changed since the load began")
        self.records.write_text(kept)
        options = self.options
        other = ["v" if word == "key" else word for word in options]
        for self.options, message in ((other, '--on was "key" and is "v"'),
                                      ([], '--embed was "items" and is not given')):
            self.shardload(*self.words("--resume"), code=support.EXIT_USAGE, message=message)
        self.options = options
        shutil.rmtree(self.work / "embed")
        self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE, message="are no longer in the work directory")

    def test_other_records_whose_store_was_made_again_are_no_resume(self):
        """The store was removed before a block was completed."""
        running = self.start("shardload", *self.words("-j", 1, "--batch-size", 10, "--rate-limit", 20))
        self.wait_for(lambda: self.database["t"].estimated_document_count() > 0, "documents")
        running.kill()
        kept = self.records.read_bytes(), self.records.stat().st_mtime_ns
        self.change_middle()
        shutil.rmtree(self.work / "embed")
        outcome = self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE)
        self.assertIn("the records of --embed have changed since", outcome.err)
        self.records.write_bytes(kept[0])
        os.utime(self.records, ns=(kept[1], kept[1]))
        shutil.rmtree(self.work / "embed")
        self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS)

    def change_middle(self):
        """Changes a record in the middle of the second source, which keeps its size."""
        lines = self.records.read_text().splitlines(keepends=True)
        at = next(at for at in range(len(lines) // 2, len(lines)) if lines[at][0] != "-")
        key, number = lines[at].rstrip().split(",")
        other = ("8" if number[0] == "9" else "9") + number[1:]
        lines[at] = f"{key},{other}\n"
        self.records.write_text("".join(lines))
        for item in self.items[int(key)]:
            item["n"] = int(other) if item["n"] == int(number) else item["n"]

    def test_records_that_were_changed_after_the_load(self):
        """The fingerprint is that of the first and last 64 KiB, which the change does not affect."""
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        self.change_middle()
        outcome = self.verify("--content", code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, "items.csv has changed since its records were stored in the "
                         "work directory: .*items.csv was modified at .*name another --work-dir")
        outcome = self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE)
        self.assertRegex(outcome.err, "items.csv has changed since the load began: .*items.csv was "
                         "modified at .*touch -d .*--drop and another --work-dir")
        self.shardload("verify", *self.target(), "--work-dir", self.scratch / "other", "--content",
                       *self.options, self.orders, code=support.EXIT_VERIFICATION)
        self.shardload(*self.words("--drop"), code=support.EXIT_REJECTS)
        self.assert_stored()
        self.verify("--content", code=support.EXIT_OK)

    def test_records_that_were_changed_before_anything_was_sent(self):
        self.shardload(*self.words("--shard-key", '{"nothing": 1}'), code=support.EXIT_USAGE)
        self.assertTrue((self.work / "embed/complete").exists())
        self.change_middle()
        self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE, message="has changed since the load began")
        self.assertEqual(self.database["t"].count_documents({}), 0)
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        self.assert_stored()

    def test_records_that_were_copied_are_compared(self):
        """As for the main sources: another inode or ctime is no difference if all text is equal."""
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        copy = self.scratch / "copy"
        shutil.copy2(self.records, copy)
        copy.rename(self.records)
        outcome = self.verify("--content", code=support.EXIT_OK)
        self.assertIn("is read again and compared", outcome.err)
        self.assertIn("nothing to resume", self.shardload(*self.words("--resume"), code=support.EXIT_REJECTS).text)
        facts = self.records.stat()
        self.change_middle()
        os.utime(self.records, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        for outcome in (self.verify("--content", code=support.EXIT_SOURCE),
                        self.shardload(*self.words("--resume"), code=support.EXIT_SOURCE)):
            self.assertRegex(outcome.err, "items.csv has changed since .*its text is not the same")
        self.shardload(*self.words("--drop"), code=support.EXIT_REJECTS)
        self.assert_stored()

    def test_copies_of_all_kinds_of_sources_are_compared(self):
        """The hash of the text does not depend on the threads, nor on how the text is packed."""
        lines = [f"{line},{PAD}" for line in self.records.read_text().splitlines()]
        table = "\n".join([lines[0].replace(PAD, "text"), *lines[1:]]) + "\n"
        rows = [line.split(",") for line in lines[1:]]
        folder = self.scratch / "folder"
        for part in (0, 1):
            self.file(f"folder/{part}.json", "[" + ",\n".join(
                json.dumps({"key": int(key), "n": int(n), "text": {"of": text}}, indent=1)
                for key, n, text in rows[part::2]) + "]")
        two = self.file("two.zip", making.zip_of([("a.csv", table), ("b.csv", table)]))
        for source in (self.zipped("items.csv.gz", table), two, folder):
            self.work = self.scratch / f"work-{source.name}"
            self.options = ["--embed", f"items={source}", "--on", "key"]
            self.shardload(*self.words("--drop", "-j", 4), code=support.EXIT_REJECTS)
            moved = self.scratch / "moved"
            source.rename(moved)
            (shutil.copytree if moved.is_dir() else shutil.copy2)(moved, source)
            (shutil.rmtree if moved.is_dir() else os.unlink)(moved)
            outcome = self.verify("--content", "-j", 1, code=support.EXIT_OK)
            self.assertIn("is read again and compared", outcome.err, source)

    def test_the_store_depends_on_the_options_that_the_records_are_read_with(self):
        """--trim is for both, and --header is for the documents only: verify does not refuse it."""
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        self.verify("--trim", code=support.EXIT_USAGE).expect(
            support.EXIT_USAGE, "has the records of another --embed")
        for words in (["--header", "yes"], ["--format", "delimited"]):
            with self.subTest(words=words):
                self.verify(*words, code=support.EXIT_OK)

    def test_a_store_without_skipped_entries_is_complete_only_with_skip_other(self):
        source = self.file("items.zip", making.zip_of([
            ("items.csv", self.records.read_text()),
            ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)]))
        self.options = ["--embed", f"items={source}", "--on", "key"]
        self.shardload(*self.words(), code=support.EXIT_SOURCE, message="--skip-other")
        shutil.rmtree(self.work)
        self.shardload(*self.words("--skip-other"), code=support.EXIT_REJECTS)
        self.assert_stored()
        self.verify("--content", code=support.EXIT_SOURCE).expect(
            support.EXIT_SOURCE, "1 file or archive entry of", "--skip-other skips them")
        self.verify("--content", "--skip-other", code=support.EXIT_OK)

    def test_a_store_of_an_earlier_version_is_not_used(self):
        """It has no identity of its sources."""
        self.shardload(*self.words(), code=support.EXIT_REJECTS)
        complete = self.work / "embed/complete"
        present = json.loads(complete.read_text())["format"]
        complete.write_text(json.dumps({**json.loads(complete.read_text()), "format": present - 1}))
        (self.work / "embed/sources").unlink()
        for outcome in (self.verify(code=support.EXIT_USAGE),
                        self.shardload(*self.words("--resume"), code=support.EXIT_USAGE)):
            self.assertIn("was written by another version of shardload", outcome.err)
        self.shardload(*self.words("--drop"), code=support.EXIT_REJECTS)
        self.assertEqual(json.loads(complete.read_text())["format"], present)
        self.assert_stored()
        self.verify("--content", code=support.EXIT_OK)


class Types(support.ClusterCase):
    """A load of the next month: the records in the arrays keep their types, or the load is refused."""

    def files(self, first, plz, count=50):
        keys = range(first, first + count)
        orders = self.file(f"orders{first}.csv", "key,v\n" + "".join(f"A{n},{PAD}\n" for n in keys))
        items = self.file(f"items{first}.csv", "key,plz,no.\n" + "".join(f"A{n},{plz},7\n" for n in keys))
        return [*self.target(), "--work-dir", self.scratch / f"work{first}", "--embed", f"items={items}",
                "--on", "key", orders]

    def month(self, first, plz, *more, **options):
        words = self.files(first, plz)
        return self.shardload("load", *words, *more, **options), words

    def stored(self, first):
        return self.database.t.find_one({"key": f"A{first}"})["items"][0]

    def types(self):
        return {(row["column"], row["type"])
                for row in self.database["t.sources"].find_one({"_id": "counter"})["types"]}

    def test_columns_keep_the_types_of_the_collection(self):
        """A postcode that was a number in January is not a text in February, beside it."""
        self.month(0, "50667")
        both = {("key", "text"), ("v", "text"), ("items.plz", "int"), ("items.no", "int")}
        self.assertEqual(self.types(), both)
        outcome, _ = self.month(100, "01067", code=support.EXIT_SOURCE)
        for part in ('items100.csv: column items.plz: int in the collection, text here, as "01067"',
                     "--embed-schema"):
            self.assertIn(part, outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 50)
        self.month(200, "")
        self.assertEqual(self.types(), both)
        self.month(300, "01067", "--types", "text")
        self.assertEqual(self.stored(300), {"plz": "01067", "no": "7"})
        schema = self.file("s.yaml", "name: s\ncolumns:\n  - {name: key}\n"
                                     "  - {name: plz}\n  - {name: no., type: int}\n")
        self.month(400, "01067", "--embed-schema", schema)
        self.assertEqual(self.stored(400), {"plz": "01067", "no": 7})
        self.assertIn(("items.plz", "text"), self.types())

    def test_columns_take_the_type_of_the_collection(self):
        """Also of documents that another program has stored, and of a table with a column of that path."""
        self.database.t.insert_many([{"key": f"B{n}", "items": [{"plz": "01067"}]} for n in range(20)])
        outcome, words = self.month(0, "50667")
        self.assertIn("column items.plz: text, as in the collection", outcome.err)
        self.assertEqual(self.stored(0), {"plz": "50667", "no": 7})
        self.shardload("verify", "--content", *words)
        shutil.rmtree(words[words.index("--work-dir") + 1] / "embed")      # made again, with these types
        self.shardload("verify", "--content", *words)
        table = self.file("table.csv", "key,items.plz\n" + "".join(f"C{n},1067\n" for n in range(20)))
        self.shardload("load", *self.target(), "--work-dir", self.scratch / "table", table)
        self.assertEqual(self.database.t.find_one({"key": "C1"})["items"], {"plz": "1067"})
        self.month(100, "1067", "--drop")
        self.assertEqual(self.stored(100), {"plz": 1067, "no": 7})

    def test_a_resumed_load_keeps_them(self):
        """Also if its collection has lost its documents and its list of types meanwhile."""
        self.month(0, "01067")
        words = self.files(100, "50667", 8000)
        running = self.start("shardload", "load", *words, "-j", 1, "--batch-size", 100, "--rate-limit", 4000)
        self.wait_for_documents(running, 1000)
        running.kill()
        self.database["t.sources"].update_one({"_id": "counter"}, {"$unset": {"types": ""}})
        self.shardload("load", *words, "--resume")
        self.assertEqual(self.database.t.count_documents({"items.plz": {"$type": "string"}}), 8050)
        self.assertIn(("items.plz", "text"), self.types())
        self.shardload("verify", "--content", *words)
