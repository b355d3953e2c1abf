# SPDX-License-Identifier: Apache-2.0
"""`--drop` drops nothing before the loader has checked everything that could refuse the load. When
another program has dropped the collection and left its registry, the loader reports it."""
import json
import re
import struct

import dump_making as making
import proxy
import support
from support import pymongo

BAD_KEYS = ['{"k": -1}', '{"k": 2}', '{"k": "text"}', '{"k": "2d"}', '{"k": "2dsphere"}',
            '{"k": "hashed", "v": "hashed"}', '{"k": 1, "v": -1}', '{"a..b": 1}', '{"a.$x": 1}']
GOOD_KEYS = ['{"k": 1.0}', '{"k": 1, "v": "hashed", "_id": 1}', '{"k.x": 1}']


class Standalone(support.ClusterCase, server="mongod"):
    def source(self, rows=300, seed=91):
        (path,) = self.generate("B", rows, "--seed", seed)
        return path

    def plan(self, *words, code):
        return self.shardload("plan", *self.target(), *words, code=code)

    def test_collections_are_dropped_by_a_load_of_several_tables(self):
        """On servers without the command hello it ended with exit code 4, when all was stored."""
        paths = self.file("a.csv", "id,n\n1,1\n"), self.file("b.csv", "id,n\n1,1\n2,2\n")
        for _ in range(2):
            self.shardload("load", "--uri", self.uri, "-d", self.database_name, "--drop", *paths)
        self.assertEqual([self.database[name].count_documents({}) for name in "ab"], [1, 2])

    # Loads that are refused before the drop

    def test_a_batch_size_too_large_for_the_server_drops_nothing(self):
        path = self.source()
        self.load(path)
        server = proxy.Proxy(support.port_of(self.uri))
        key = b"\x10maxWriteBatchSize\0"
        server.change_reply = lambda message: message.replace(key + struct.pack("<i", 100000),
                                                              key + struct.pack("<i", 1000))
        self.load("--drop", "--batch-size", 2000, path, through=server, code=support.EXIT_USAGE,
                  message="--batch-size 2000 is more than the server accepts (1000 documents)")
        self.assertEqual(self.database.t.count_documents({}), 300)

    def test_what_other_programs_have_set_up_is_not_dropped_unnamed(self):
        """A validator, options and indexes of an administrator were gone after a reload, with exit code 0."""
        path = self.source()
        for options, shown in (({"validator": {"a": {"$ne": 9}}}, "the option validator"),
                               ({"capped": True, "size": 4096}, "the option capped"), ({}, "this")):
            self.database.drop_collection("t")
            self.database.drop_collection("t.sources")
            self.database.create_collection("t", **options)
            self.database.t.create_index("v")
            for command in "load", "plan":
                outcome = self.shardload(command, *self.target(), "--drop", path, code=support.EXIT_USAGE)
                for part in (f"--drop would remove {self.database_name}.t, which other programs have set up", shown,
                             "--index ", '"v"', f"getSiblingDB('{self.database_name}')"):
                    self.assertIn(part, outcome.text)
            self.assertEqual(set(self.database.t.index_information()), {"_id_", "v_1"})
        self.load("--again", path)              # it stays what others have set up
        for words in ("--drop",), ("--drop", "--again"):
            self.load(*words, path, code=support.EXIT_USAGE, message="which other programs have set up")
        self.load("--drop", "--index", '{"v": 1}', path)
        outcome, _ = self.load("--drop", path)  # a load has created it now
        self.assertRegex(outcome.err,
                         "with indexes that this command does not name; to have them again, give\n.* --index ")
        self.assertNotIn("--drop removes", self.load("--drop", path)[0].err)
        self.database.command("collMod", "t", validator={"a": {"$ne": 9}})
        self.load("--drop", path, code=support.EXIT_USAGE, message="the option validator")

    def test_options_of_indexes_are_kept_by_the_advice(self):
        """An index that was named by its key alone was no longer unique, and documents no longer expired, with exit
        code 0; and --index did not accept the options that the advice had."""
        path = self.file("a.csv", "id,n\n1,1\n")
        made = (({"email": 1}, {"unique": True}), ({"at": 1}, {"expireAfterSeconds": 0}), ({"loc": "2dsphere"}, {}),
                ({"place": "2d"}, {"min": -10.0, "max": 10.0}), ({"name": 1}, {"collation": {"locale": "de"}}),
                ({"v": 1}, {"partialFilterExpression": {"v": {"$gt": 5.0}}}))
        for key, options in made:
            self.database.t.create_index(list(key.items()), **options)
        before = self.database.t.index_information()
        words = ["--drop", "--shard-key", "none"]
        given = {tuple(key): json.dumps(key) for key, _ in made}

        def load(**more):
            return self.load(*words, *(word for text in given.values() for word in ("--index", text)), path, **more)[0]
        advised = re.findall("--index '([^']+)'", load(code=support.EXIT_USAGE, message=" and 1 that getIndexes()").err)
        self.assertEqual(len(advised), 4)
        for text in (*advised, '{"key": {"name": 1}, "collation": {"locale": "de"}}'):
            load(code=support.EXIT_USAGE)
            given[tuple(json.loads(text)["key"])] = text
        self.assertNotIn("--drop removes", load().err)
        self.assertEqual(self.database.t.index_information(), before)

    def test_all_dropped_indexes_are_listed(self):
        """The list ended in the middle, and the definitions of the others were nowhere."""
        path = self.source()
        self.load(path)
        for number in range(40):
            self.database.t.create_index([(f"field_{number}", 1), ("another_field_of_the_index", -1)])
        self.database.t.create_index("v", partialFilterExpression={"a" * 1000 + "z": 1})
        outcome, _ = self.load("--drop", path)
        for part in (*(f'"field_{number}" : 1,' for number in range(40)), 'az" : 1 }'):
            self.assertIn(part, outcome.err)

    # A resumed load

    def failing(self, command, path):
        """A load with --drop in which this command is refused, before the first document."""
        self.load("--drop", "--work-dir", self.scratch / "work", path, code=support.EXIT_CLUSTER,
                  through=proxy.Refusing(support.port_of(self.uri), command, executed=False))

    def resume(self, path):
        self.load("--drop", "--resume", "--work-dir", self.scratch / "work", path)

    def test_a_collection_that_was_created_after_the_drop_is_not_dropped(self):
        path = self.source()
        self.database.t.insert_one({"_id": "old"})
        self.failing("create", path)
        self.assertNotIn("t", self.collections())
        theirs = [{"_id": f"theirs {n}"} for n in range(500)]
        self.database.t.insert_many(theirs)
        self.resume(path)
        self.assertEqual(self.database.t.count_documents({"_id": {"$type": "string"}}), 500)
        self.assertEqual(self.database.t.count_documents({}), 800)

    def test_a_collection_that_the_first_run_has_created_is_not_dropped(self):
        path = self.source()
        self.database.t.insert_one({"_id": "old"})
        self.failing("insert", path)    # into the registry
        self.database.t.insert_one({"_id": "theirs"})
        self.resume(path)
        self.assertEqual(self.database.t.count_documents({"_id": "theirs"}), 1)
        self.assertEqual(self.database.t.count_documents({}), 301)

    def test_a_collection_that_was_not_dropped_yet_is_dropped(self):
        path = self.source()
        self.database.t.insert_one({"_id": "old"})
        self.failing("drop", path)
        self.assertEqual(self.database.t.count_documents({}), 1)
        self.resume(path)
        self.assertEqual(self.database.t.count_documents({"_id": "old"}), 0)
        self.assertEqual(self.database.t.count_documents({}), 300)

    # The name of the registry

    def test_a_collection_of_the_user_is_not_taken_for_a_registry(self):
        mine = [{"_id": n, "v": "mine"} for n in range(500)]
        self.database["t.sources"].insert_many(mine)
        message = f"{self.database_name}.t.sources holds other documents than a registry of sources"
        for words in ([], ["--drop"]):
            self.load(*words, self.source(), code=support.EXIT_USAGE, message=message)
            self.assertIn(message, self.plan(*words, self.source(), code=support.EXIT_USAGE).err)
        self.assertEqual(list(self.database["t.sources"].find()), mine)
        self.assertEqual(self.collections(), ["t.sources"])

    def test_a_registry_is_no_target(self):
        self.load(self.source())
        before = list(self.database["t.sources"].find())
        for words in ([], ["--drop"]):
            outcome = self.shardload("load", "--uri", self.uri, "-d", self.database_name, "-c",
                                     "t.sources", *words, self.source(), code=support.EXIT_USAGE)
            self.assertIn("t.sources is the registry of sources of the collection t", outcome.err)
        self.assertEqual(list(self.database["t.sources"].find()), before)

    def test_a_collection_that_was_renamed_without_its_registry(self):
        first, second = self.source(), self.source(200, seed=92)
        self.load(first)

        def rename(old, new):
            self.client.admin.command("renameCollection", f"{self.database_name}.{old}",
                                      to=f"{self.database_name}.{new}")
        rename("t.sources", "u.elsewhere")
        for _ in range(2):       # a refusal uses up no number
            outcome, _ = self.load(second, code=support.EXIT_CLUSTER, message=(
                f"{self.database_name}.t holds documents with the _ids of source number 1",
                "renamed, copied or restored without its registry, or `shardload forget` has removed",
                f"{self.database_name}.t.sources", "--drop"))
            self.assertNotIn("--resume", outcome.err)
            self.assertEqual(self.database.t.count_documents({}), 300)
        self.database.drop_collection("t.sources")
        rename("u.elsewhere", "t.sources")
        self.load(second)
        self.assertEqual(self.database.t.count_documents({}), 500)
        self.shardload("verify", *self.target(), "--content", first, second)

    # A collection that was dropped without its registry

    def test_what_was_loaded_before_the_drop_is_loaded_again(self):
        """A file was "loaded before" into a collection that another program had dropped, or had made anew."""
        path = self.source()
        self.load(path)
        before = sorted(self.stored())
        for theirs in [], [{"_id": "theirs"}]:
            self.database.t.drop()
            if theirs:
                self.database.t.insert_many(theirs)
            message = ("is another collection than before" if theirs else "does not exist any more",
                       f": the documents of the sources that its registry {self.database_name}.t.sources lists no")
            self.assertIn(message[0], self.plan(path, code=0).text)
            self.shardload("verify", *self.target(), path, code=support.EXIT_SOURCE)
            _, work = self.load(path, message=message)
            self.assertEqual([one for one in sorted(self.stored()) if b"theirs" not in one], before)
            self.assert_accounting(work, records=300, inserted=300)
            outcome, _ = self.load(path, code=support.EXIT_SOURCE, message="has been loaded into")
            self.assertNotIn("longer exist", outcome.text)
        self.database.t.drop()
        self.load(self.source(200, 92), message="does not exist any more")
        self.assertEqual(self.database.t.count_documents({}), 200)

    def test_no_warning_when_the_registry_is_dropped_as_well(self):
        path = self.source()
        self.load(path)
        self.database.t.drop()
        outcome, _ = self.load("--drop", path)
        self.assertNotIn("does not exist", outcome.text)
        self.database.t.drop()
        self.database["t.sources"].drop()
        outcome, _ = self.load(path)
        self.assertNotIn("does not exist", outcome.text)
        self.assertEqual(self.database.t.count_documents({}), 300)

    def test_a_view_is_not_reported_as_a_dropped_collection(self):
        path = self.source()
        self.load(path)
        self.database.t.drop()
        self.database.create_collection("t", viewOn="others", pipeline=[])
        self.load(path, code=support.EXIT_CLUSTER, message="is a view")


class Renamed(support.ClusterCase, server="mongod"):
    """A registry belongs to the collection, not to its name."""

    def rename(self, old, new, drop=False):
        self.client.admin.command("renameCollection", f"{self.database_name}.{old}",
                                  to=f"{self.database_name}.{new}", dropTarget=drop)

    def into(self, name, *words, code=0, message=()):
        outcome = self.shardload("load", "--uri", self.uri, "-d", self.database_name, "-c", name, *words, code=code)
        for part in [message] if isinstance(message, str) else message:
            self.assertIn(part, outcome.err)
        return self.database[name].count_documents({})

    def as_advised(self, name, *words):
        """A load is refused; then the command that its message names is given."""
        before = self.registries()
        outcome = self.shardload("load", "--uri", self.uri, "-d", self.database_name, "-c", name, *words,
                                 code=support.EXIT_CLUSTER)
        self.assertNotIn("--resume", outcome.err)
        self.assertEqual(self.registries(), before)
        (one,) = re.findall(r"renameCollection: '(\S+)', to: '(\S+)'(, dropTarget: true)?}", outcome.err)
        old, new = (part.partition(".")[2] for part in one[:2])
        self.rename(old, new, drop=bool(one[2]))
        return outcome.err

    def registries(self):
        return {name: sorted(self.database[name].find(), key=str) for name in self.database.list_collection_names()
                if name.endswith(".sources")}

    def test_a_new_collection_that_is_renamed_each_night(self):
        """The next load into its first name ended with "loaded before", or needed a command between the nights."""
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        self.into("live", other)                # of earlier nights
        self.into("new", path)
        for words in (), ("--drop",), ():
            self.rename("new", "live", drop=True)
            self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "-c", "new", path,
                           code=support.EXIT_SOURCE)
            self.assertEqual(self.into("new", *words, path, message="had this name: it becomes that of the new"), 300)
        outcome = self.shardload("load", "--uri", self.uri, "-d", self.database_name, "-c", "live", other,
                                 code=support.EXIT_CLUSTER)  # it has documents, and no registry any more
        self.assertNotIn("has been loaded into", outcome.err)
        self.assertEqual(self.database.live.count_documents({}), 300)
        names = self.file("n.csv", "id,n\n1,1\n2,2\n")
        for night in range(3):                  # each day, changes are loaded into the renamed one
            self.into("night", "--id-field", "id", names)
            self.rename("night", "day", drop=True)
            self.into("day", "--mode", "upsert", "--id-field", "id", self.file("m.csv", f"id,n\n3,{night}\n"),
                      message="they are not known here")
            self.assertEqual(self.database.day.count_documents({}), 3)

    def test_a_registry_is_renamed_as_its_collection_was(self):
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        self.into("t", other)
        self.rename("t", "live")
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "-c", "live", "--content", other)
        self.as_advised("live", other)
        self.into("live", other, code=support.EXIT_SOURCE, message="has been loaded into")
        self.assertEqual(self.into("live", path), 500)
        self.assertEqual(self.into("t", other), 200)

    def test_the_names_of_two_collections_are_exchanged(self):
        """--drop of one destroyed the registry of the other, whose file was stored a second time."""
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        self.into("t", path)
        self.into("u", other)
        before = self.registries()
        for old, new in ("t", "x"), ("u", "t"), ("x", "u"):
            self.rename(old, new)
        for words in (), ("--drop",):
            self.into("t", *words, path, code=support.EXIT_CLUSTER, message="rename both")
        self.assertEqual(self.registries(), before)
        for old, new in ("t", "x"), ("u", "t"), ("x", "u"):
            self.rename(f"{old}.sources", f"{new}.sources")
        self.into("u", path, code=support.EXIT_SOURCE, message="has been loaded into")
        self.assertEqual(self.into("t", "--drop", path), 300)
        self.into("u", path, code=support.EXIT_SOURCE, message="has been loaded into")

    def test_a_collection_restored_beside_its_renamed_predecessor(self):
        """Its registry was moved away, and moved again after it had been put back."""
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        self.into("t", path)
        self.rename("t", "bad")
        self.database.bad.aggregate([{"$out": "t"}])
        outcome = self.shardload("load", *self.target(), other, code=support.EXIT_CLUSTER)
        (one,) = re.findall(r"getCollection\('(\S+)'\).aggregate\(\[{\$out: '(\S+)'}", outcome.err)
        self.database[one[0]].aggregate([{"$out": one[1]}])
        self.into("t", path, code=support.EXIT_SOURCE, message="has been loaded into")
        self.assertEqual(self.into("t", other), 500)
        self.into("bad", path, code=support.EXIT_SOURCE, message="has been loaded into")
        self.assertEqual(self.into("bad", other), 500)

    def test_an_older_state_restored_by_another_program(self):
        """Sources that were loaded after it counted as loaded, although none of their documents was stored."""
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        self.into("t", path)
        older = list(self.database.t.find())
        self.into("t", other)
        self.database.t.drop()
        self.database.t.insert_many(older)
        message = "has another UUID than the collection whose sources", "300 documents, and their loads have stored 500"
        self.into("t", other, code=support.EXIT_CLUSTER, message=message)
        self.assertEqual(self.into("t", "--again", other), 500)
        self.into("t", other, code=support.EXIT_SOURCE, message="has been loaded into")

    def test_what_a_program_made_anew_is_not_dropped(self):
        """The registry of the dropped predecessor made it a collection of loads: its documents were lost."""
        path = self.file("n.csv", "id,n\n1,1\n2,2\n")
        self.into("t", "--id-field", "id", path)
        self.database.t.drop()
        self.database.t.create_index("n", unique=True)
        self.database.t.insert_one({"_id": "theirs"})
        self.into("t", "--drop", path, code=support.EXIT_USAGE, message="which other programs have set up")

    def test_forget_removes_no_registry_of_another_collection(self):
        """The registry of a renamed collection was removed by its old name, and not by its new one."""
        path = self.generate("B", 300, "--seed", 91)[0]
        self.into("t", path)
        self.rename("t", "u")
        before = self.registries()
        for name in "t", "u":
            self.assertIn("which was renamed", self.shardload("forget", "--uri", self.uri, "-d", self.database_name,
                                                              "-c", name, code=support.EXIT_CLUSTER).err)
        self.assertEqual(self.registries(), before)
        self.as_advised("u", path)
        self.assertIn("its registry of 1 source is removed", self.shardload(
            "forget", "--uri", self.uri, "-d", self.database_name, "-c", "u").out)

    def test_types_of_embedded_records_are_not_those_of_a_dropped_collection(self):
        """A column of texts was refused, as it had been one of numbers in the predecessor."""
        path, numbers = self.file("n.csv", "id,n\n1,1\n2,2\n"), self.file("l.csv", "id,code\n1,5\n2,6\n")
        texts = self.file("m.csv", "id,code\n1,a\n2,b\n")
        self.into("t", "--embed", f"lines={numbers}", "--on", "id", path)
        self.database.t.drop()
        self.database.create_collection("t")
        outcome = self.shardload("load", *self.target(), "--embed", f"lines={texts}", "--on", "id", path)
        self.assertEqual(outcome.err.count("is another collection than before"), 1, outcome.err)
        self.assertEqual(self.database.t.find_one({"id": 2})["lines"][0]["code"], "b")

    def test_a_part_that_is_loaded_stays_registered(self):
        """Without a UUID in the registry, as of an earlier version, the other part removed its record."""
        path = self.file("n.csv", "id,n\n" + "".join(f"{n},{n}\n" for n in range(20000)))
        self.into("t", "--id-field", "id", "--part", "1/2", path)
        self.database["t.sources"].update_many({}, {"$unset": {"collection": ""}})
        self.assertEqual(self.into("t", "--id-field", "id", "--part", "2/2", path), 20000)
        self.assertEqual(self.database["t.sources"].find_one({"number": 1})["state"], "loaded")

    def test_a_copy_of_the_documents_is_the_same_collection(self):
        """A collection that was restored, resharded or converted has another UUID."""
        path, other = self.generate("B", 300, "--seed", 91) + self.generate("B", 200, "--seed", 92)
        names = self.file("n.csv", "id,n\n1,1\n2,2\n"), self.file("o.csv", "id,n\n3,3\n")
        for words, first, second in ((), path, other), (("--id-field", "id"), *names):
            self.database.t.drop()
            before = self.into("t", *words, first)
            for renamed in True, False:
                self.database.t.aggregate([{"$out": "copy"}])
                self.rename("copy", "t", drop=True)
                if words:
                    self.into("t", *words, second, code=support.EXIT_CLUSTER, message="give --again once")
                    self.into("t", "--again", *words, second)
                self.into("t", *words, first, code=support.EXIT_SOURCE, message="has been loaded into")
                self.into("t", *words, second, code=None if renamed else support.EXIT_SOURCE)
            self.assertGreater(self.database.t.count_documents({}), before)
            self.shardload("verify", *self.target(), "--content", *words, first, second)


class Sharded(Standalone, server="cluster"):
    def test_an_invalid_shard_key_drops_nothing(self):
        path = self.source()
        self.load(path)
        for key in BAD_KEYS:
            with self.subTest(key):
                outcome, _ = self.load("--drop", "--shard-key", key, path, code=support.EXIT_USAGE)
                self.assertIn(f"--shard-key: {key} cannot be a shard key: ", outcome.err)
                self.assertEqual(self.database.t.count_documents({}), 300)

    def test_the_loader_and_the_server_accept_the_same_shard_keys(self):
        self.client.admin.command("enableSharding", self.database_name)
        for number, key in enumerate(BAD_KEYS):
            with self.subTest(key), self.assertRaises(pymongo.errors.OperationFailure):
                self.client.admin.command("shardCollection", f"{self.database_name}.bad{number}",
                                          key=support.json.loads(key))
        path = self.file("t.json", "".join(f'{{"k": {{"x": {n}}}, "v": {n}}}\n' for n in range(300)))
        for key in GOOD_KEYS:
            with self.subTest(key):
                self.load("--drop", "--shard-key", key, path)
                self.assertEqual(self.shard_key(), support.json.loads(key))

    def test_a_router_that_refuses_enableSharding_drops_nothing(self):
        path = self.source()
        self.load(path)
        server = proxy.Refusing(support.port_of(self.uri), "enableSharding")
        self.load("--drop", path, through=server, code=support.EXIT_CLUSTER,
                  message=(f"cannot create database {self.database_name}", "not authorized for this"))
        self.assertEqual(self.database.t.count_documents({}), 300)
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_unique_shard_key_stays_unique(self):
        """The advised --shard-key made it a key that is not unique, with exit code 0."""
        path = self.file("a.csv", "id,n\n1,1\n")
        self.client.admin.command("enableSharding", self.database_name)
        self.client.admin.command("shardCollection", f"{self.database_name}.t", key={"id": 1}, unique=True)
        key = '{ "key" : { "id" : 1 }, "unique" : true }'
        for words in (), ("--shard-key", '{"id": 1}'):
            self.load("--drop", *words, path, code=support.EXIT_USAGE, message=f"--shard-key '{key}'")
        self.assertNotIn("--drop removes", self.load("--drop", "--shard-key", key, path)[0].err)
        self.assertTrue(self.database.t.index_information()["id_1"]["unique"])

    def test_zones_are_not_dropped(self):
        """The documents of one zone were on the shards of another one after a nightly reload, with exit code 0."""
        path, key = self.file("a.csv", "plz,n\n01067,1\n20095,2\n"), ("--shard-key", '{"plz": 1}')
        shard = self.client.config.shards.find_one()["_id"]
        self.load(*key, path)
        self.client.admin.command("addShardToZone", shard, zone="Ost")
        self.addCleanup(self.client.admin.command, "removeShardFromZone", shard, zone="Ost")
        self.client.admin.command("updateZoneKeyRange", f"{self.database_name}.t", min={"plz": "0"}, max={"plz": "1"},
                                  zone="Ost")
        for more in (), ("--again",):
            self.load("--drop", *key, *more, path, code=support.EXIT_USAGE, message="its ranges in zones, such as Ost")
        self.assertEqual(self.client.config.tags.count_documents({"ns": f"{self.database_name}.t"}), 1)
        dump = making.folder(self.scratch / "dump", [making.Namespace(self.database_name, "t", [{"_id": 1}])], False)
        self.shardload("restore", "--uri", self.uri, "--drop", "--work-dir", "restored", dump,
                       message="--drop removes its ranges in zones, such as Ost")

    def test_a_dropped_shard_key_is_announced(self):
        path, key = self.file("a.csv", "plz,n\n01067,1\n20095,2\n"), '{ "plz" : 1 }'
        self.load("--shard-key", key, path)
        for words, announced in ((("--shard-key", key), False), ((), True), ((), False)):
            outcome, _ = self.load("--drop", *words, path)
            self.assertEqual("another shard key, with its zones, options and indexes; to have them again, give\n"
                             in outcome.err and f"--shard-key '{key}'" in outcome.err, announced, outcome.err)
        self.database["t.sources"].drop()
        self.load("--drop", "--shard-key", key, path)
        self.database["t.sources"].drop()
        self.load("--drop", path, code=support.EXIT_USAGE, message=f"--shard-key '{key}'")
