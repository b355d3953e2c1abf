# SPDX-License-Identifier: Apache-2.0
"""A restore is resumed only with the dump with which it began: another dump at the same path, a
collection that is missing or new, and changed files are refused before anything is changed."""
import os
import pathlib
import shutil

import dump_making as making
import support
from restore_case import INDEXES, Restoring, documents
from support import bson

NAMES = "abcdef"
NOT_THE_SAME = "this dump is not that of the interrupted restore"


class Standalone(Restoring, server="mongod"):
    def setUp(self):
        super().setUp()
        self.work = self.scratch / "work"
        self.made = {name: [{"_id": n, "of": name, "s": f"{n:07}" * 70} for n in range(1000)] for name in NAMES}

    def folder(self, change=None, zipped=False):
        """A dump at the same path each time. `change`: of the documents of c."""
        made = {**self.made, **(change or {})}
        return making.folder(self.scratch / "dump", [
            *(self.namespace(name, some, indexes=INDEXES[:1]) for name, some in made.items()),
            self.namespace("v", options={"viewOn": "a", "pipeline": []})], zipped)

    def interrupted(self, **more):
        """A restore without c, which exists as a view. The view is dropped afterwards."""
        dump = self.folder(**more)
        self.database.command("create", "c", viewOn="x", pipeline=[])
        self.restore(dump, work=self.work, code=support.EXIT_CLUSTER, message="exists and is a view")
        self.database.drop_collection("c")
        return dump

    def refused(self, dump, *said, code=support.EXIT_SOURCE, words=()):
        """Nothing is changed on the server."""
        before = self.there()
        outcome, _ = self.restore(dump, "--resume", *words, work=self.work, code=code)
        for text in said:
            self.assertIn(text, outcome.err)
        self.assertEqual(self.there(), before)

    def there(self):
        return {name: self.database[name].count_documents({}) for name in self.database.list_collection_names()}

    def resumed(self, dump, *words):
        outcome, _ = self.restore(dump, "--resume", *words, work=self.work)
        for name, some in self.made.items():
            self.check(name, some)
        self.assertEqual(self.database.v.count_documents({}), len(self.made["a"]))
        return outcome

    def test_a_newer_dump_at_the_same_path_is_refused(self):
        dump = self.interrupted()
        kept = dump.rename(self.scratch / "kept")
        self.folder({name: documents(1200) for name in NAMES})
        self.refused(dump, NOT_THE_SAME, f"{self.db}/a.bson has", "--work-dir and --drop",
                     "give it the same dump again")
        self.assertNotIn("c", self.there())
        # The same sizes, with other content.
        shutil.rmtree(dump)
        self.folder({name: [{**one, "_id": -one["_id"]} for one in self.made[name]] for name in NAMES})
        self.refused(dump, NOT_THE_SAME, f"{self.db}/a.bson has the same size", "other content")
        shutil.rmtree(dump)
        kept.rename(dump)
        self.resumed(dump)

    def test_a_missing_and_a_new_collection_are_refused(self):
        dump = self.interrupted()
        files = list((dump / self.db).glob("c.*"))
        self.assertEqual(len(files), 2)
        for path in files:
            path.rename(self.scratch / path.name)
        self.refused(dump, NOT_THE_SAME, f"{self.db}/c.bson is missing")
        (self.scratch / "c.bson").rename(dump / self.db / "c.bson")
        self.refused(dump, NOT_THE_SAME, f"{self.db}/c.metadata.json is missing")
        (self.scratch / "c.metadata.json").rename(dump / self.db / "c.metadata.json")
        (dump / self.db / "v.metadata.json").rename(self.scratch / "v.metadata.json")
        self.refused(dump, NOT_THE_SAME, f"{self.db}/v.metadata.json is missing")
        (self.scratch / "v.metadata.json").rename(dump / self.db / "v.metadata.json")
        new = dump / self.db / "g.bson"
        new.write_bytes(bson.encode({"_id": 1}))
        self.refused(dump, NOT_THE_SAME, f"{self.db}/g.bson is of a collection that was not")
        new.unlink()
        self.resumed(dump)

    def test_changed_metadata_are_refused(self):
        for zipped in (False, True):
            with self.subTest(zipped=zipped):
                dump = self.interrupted(zipped=zipped)
                name = "c.metadata.json" + (".gz" if zipped else "")
                kept = (dump / self.db / name).read_bytes()
                making.folder(dump, [self.namespace("c", None, indexes=INDEXES[:2])], zipped)
                self.refused(dump, NOT_THE_SAME, f"{self.db}/{name} has other content")
                (dump / self.db / name).write_bytes(kept)   # other times, the same content
                self.resumed(dump)
                for name in (*NAMES, "v"):
                    self.database.drop_collection(name)
                shutil.rmtree(dump)
                shutil.rmtree(self.work)

    def test_a_changed_middle_is_refused(self):
        """The size and the ends of the file are the same, and it is not read as a whole."""
        self.made["a"] = [{"_id": n, "s": f"{n:07}" * 70} for n in range(3000)]
        dump = self.interrupted()
        path = dump / self.db / "a.bson"
        facts, data = path.stat(), path.read_bytes()
        self.assertGreater(len(data), 1 << 20)
        path.write_bytes(data.replace(b"0000500" * 70, b"0000999" * 70))
        self.refused(dump, NOT_THE_SAME, f"{self.db}/a.bson was modified at", "touch -d")
        # With the time restored, what was restored is compared.
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        self.refused(dump, NOT_THE_SAME, f"{self.db}/a.bson has another text after byte 0")
        path.write_bytes(data)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        self.assertIn("has been copied or moved", self.resumed(dump).err)

    def test_a_copy_of_collections_restored_at_once(self):
        """Without a unique index they have no journal. The unchanged copy is accepted, also of
        files of some hundred KiB; one whose middle was changed is refused."""
        made = [self.namespace(name, self.made[name]) for name in "abc"]
        dump = making.folder(self.scratch / "dump", made)
        self.database.command("create", "c", viewOn="x", pipeline=[])
        self.restore(dump, work=self.work, code=support.EXIT_CLUSTER)
        self.database.drop_collection("c")
        path = dump / self.db / "a.bson"
        facts, data = path.stat(), path.read_bytes()
        path.write_bytes(data.replace(b"0000500" * 70, b"0000999" * 70))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        self.refused(dump, NOT_THE_SAME, f"{self.db}/a.bson")
        path.write_bytes(data)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        outcome, _ = self.restore(dump, "--resume", work=self.work)
        self.assertIn("been copied or moved", outcome.err)
        for name in "abc":
            self.check(name, self.made[name])

    def test_a_copy_of_the_dump_is_accepted(self):
        for zipped in (False, True):
            with self.subTest(zipped=zipped):
                dump = self.interrupted(zipped=zipped)
                kept = dump.rename(self.scratch / "kept")
                dump = shutil.copytree(kept, self.scratch / "elsewhere")  # with the times of the files
                self.assertIn("6 of the files of the dump have been copied", self.resumed(dump).err)
                for name in (*NAMES, "v"):
                    self.database.drop_collection(name)
                for path in (dump, kept, self.work):
                    shutil.rmtree(path)

    def test_a_copy_is_compared_with_an_interrupted_load(self):
        made = [{"_id": n, "s": f"{n:07}" * 100} for n in range(20000)]
        dump = making.folder(self.scratch / "dump", [self.namespace("t", made)])
        running = self.begin(dump, "--rate-limit", 4000, "-j", 1)
        self.wait_for_documents(running, 6000)
        running.interrupt()
        path = dump / self.db / "t.bson"
        facts, data = path.stat(), path.read_bytes()
        for middle in (data.replace(b"0000200" * 100, b"0000999" * 100), data):
            path.write_bytes(middle)
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            if middle != data:
                self.refused(dump, NOT_THE_SAME, "has another text after byte 0")
        self.restore(dump, "--resume", work=self.work)
        self.check("t", made)

    def test_an_empty_and_a_damaged_collection_are_accepted(self):
        data = b"".join(map(bson.encode, self.made["a"]))
        dump = making.folder(self.scratch / "dump", [
            self.namespace("e", []), self.namespace("d", [data[:-5]], metadata=False)], True)
        self.restore(dump, work=self.work, code=support.EXIT_REJECTS)
        self.restore(dump, "--resume", work=self.work, code=support.EXIT_REJECTS)
        kept = dump.rename(self.scratch / "kept")
        shutil.copytree(kept, dump)
        self.restore(dump, "--resume", work=self.work, code=support.EXIT_REJECTS)

    def test_other_collections_are_not_compared(self):
        dump = self.folder()
        words = ["--ns-exclude", "*.b"]
        self.restore(dump, *words, work=self.work)
        making.folder(dump, [self.namespace("b", documents(3))])
        self.restore(dump, "--resume", *words, work=self.work)
        self.refused(dump, '--ns-exclude was "*.b" and is not given', code=support.EXIT_USAGE)
        self.assertNotIn("b", self.there())

    def test_a_work_directory_without_the_list_is_refused(self):
        dump = self.interrupted()
        (self.work / "dump-files.bson").rename(self.scratch / "list")
        self.refused(dump, "dump-files.bson cannot be read", "--work-dir and --drop")
        (self.work / "dump-files.bson").write_bytes(b"damaged")
        self.refused(dump, "dump-files.bson cannot be read")
        (self.work / "dump-files.bson").write_bytes(support.code_in_scopes(400000))
        self.refused(dump, "dump-files.bson cannot be read")
        (self.scratch / "list").rename(self.work / "dump-files.bson")
        kept = dump.rename(self.scratch / "kept")
        dump.write_bytes(making.archive([self.namespace("c", documents(3))]))
        self.refused(dump, "is a restore of a folder")
        dump.unlink()
        kept.rename(dump)
        self.resumed(dump)

    def test_the_list_of_unpacked_files_leads_to_no_other_folder(self):
        """The files of the list are loaded, and then removed."""
        archive = self.scratch / "dump.archive"
        archive.write_bytes(making.archive([self.namespace(name, some) for name, some in self.made.items()]))
        self.database.command("create", "c", viewOn="x", pipeline=[])
        self.restore(archive, work=self.work, code=support.EXIT_CLUSTER)
        self.database.drop_collection("c")
        path = self.work / "unpacked" / "list.bson"
        written = bson.decode(path.read_bytes())
        (item,) = [item for item in written["items"] if item["collection"] == "c"]
        for name in ("precious.txt", "000009.bson"):
            precious = self.scratch / name
            precious.write_bytes(pathlib.Path(item["data"]).read_bytes())
            path.write_bytes(bson.encode({**written, "items": [
                {**one, "data": str(precious)} if one is item else one for one in written["items"]]}))
            self.restore(archive, "--resume", work=self.work, code=support.EXIT_SOURCE, message=name)
            self.assertTrue(precious.exists())
        path.write_bytes(bson.encode({**written, "items": [
            {**item, "db": "config", "collection": "settings", "metadata": ""}]}))
        self.restore(archive, "--resume", work=self.work, code=support.EXIT_SOURCE, message="names config.settings")
        path.write_bytes(support.code_in_scopes(400000))
        self.restore(archive, "--resume", work=self.work, code=support.EXIT_SOURCE, message="list.bson cannot be read")
        path.write_bytes(bson.encode(written))
        self.restore(archive, "--resume", work=self.work)
        self.check("c", self.made["c"])

    def test_a_file_that_is_replaced_during_the_restore(self):
        dump = self.folder()
        running = self.begin(dump, "--rate-limit", 300, "--batch-size", 50, "--collections-at-once",
                             1, "--ns-include", "*.a", "--ns-include", "*.b")
        self.wait_for_documents(running, 50, "a")
        making.folder(dump, [self.namespace("b", documents(3))])
        self.shardload("status", self.work, "--rate-limit", "unlimited")
        running.wait().expect(support.EXIT_SOURCE, "b.bson: was replaced or changed after the restore began")
        self.check("a", self.made["a"])
        self.check("b", [])

    def test_a_snapshot_links_a_file_during_the_restore(self):
        """It was said that only a new restore could complete it."""
        dump, words = self.folder(), ["--ns-include", "*.a", "--ns-include", "*.b", "--collections-at-once", 1]
        running = self.begin(dump, "--rate-limit", 300, "--batch-size", 50, *words)
        self.wait_for_documents(running, 50, "a")
        os.link(dump / self.db / "b.bson", self.scratch / "snapshot.bson")
        self.shardload("status", self.work, "--rate-limit", "unlimited")
        running.wait().expect(support.EXIT_SOURCE, "links were changed after", "give the same command with --resume")
        self.restore(dump, "--resume", *words, work=self.work)
        self.check("b", self.made["b"])
