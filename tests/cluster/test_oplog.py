# SPDX-License-Identifier: Apache-2.0
"""restore --oplog-replay: order, names, limits, what is refused, damage, kills at any command, and the replay
through a router."""
import gzip
import itertools
import os
import random
import signal

import dump_making as making
import oplog_making as oplogs
import proxy
import support
from fault_case import ROUNDS
from oplog_making import (A, INDEX, apply_ops, command, create, delete, diff, insert, modify, rename,
                          transaction, update)
from restore_case import Restoring, documents

KILLS = 20 * ROUNDS
COMMANDS = 800     # a restore of `everything` sends about as many


class Oplogs(Restoring):
    def dump(self, *namespaces, oplog=(), raw=None):
        dump = self.dump_folder(*namespaces)
        entries = oplogs.at(self.db, [oplogs.NO_OP, *oplog])
        (dump / "oplog.bson").write_bytes(oplogs.written(entries) if raw is None else raw)
        return dump

    def replay(self, dump, *words, **more):
        return self.restore(dump, "--oplog-replay", *words, **more)

    def names(self):
        return set(self.database.list_collection_names()) - {"system.views"}


class Standalone(Oplogs, server="mongod"):
    def test_indexes_and_options_follow_the_replay(self):
        options = {"validator": {"a": {"$gt": 0}}, "validationLevel": "strict", "validationAction": "error"}
        dump = self.dump(
            self.namespace("t", [A], options=options, indexes=[{**INDEX, "unique": True}]),
            oplog=[insert({"_id": 2, "a": 1}), insert({"_id": 3, "a": 0}), modify(2, set={"a": 5}),
                   command("createIndexes", "t", v=2, key={"f": 1}, name="f_1")])
        outcome, rows = self.replay(dump)
        self.check("t", [A, {"_id": 2, "a": 5}, {"_id": 3, "a": 0}])
        _, found, indexes = self.facts("t")
        self.assertEqual(found, options)
        self.assertEqual(set(indexes), {"_id_", "a_1", "f_1"})
        self.assertEqual(rows["t"]["indexes"], 2)
        self.assertIn(f"oplog: 4 operations are replayed, up to timestamp {oplogs.SECONDS}:5", outcome.err)
        self.assertEqual(self.names(), {"t"})

    def test_options_and_indexes_that_are_left_out(self):
        """Those of the oplog were restored nevertheless."""
        dump = self.dump(self.namespace("t", [A]), oplog=[
            command("collMod", "t", validator={"a": 1}), command("createIndexes", "t", **INDEX), create(
                "n", collation=oplogs.COLLATION, validator={"a": 1}), insert({"_id": 2}, "DB.n")])
        self.replay(dump, "--no-options-restore", "--no-index-restore")
        for name in ("t", "n"):
            kind, options, indexes = self.facts(name)
            self.assertEqual((kind, options, set(indexes)), ("collection", {}, {"_id_"}))

    def test_without_the_option_the_oplog_is_reported(self):
        dump = self.dump(self.namespace("t", [A]), oplog=[delete(1)])
        self.restore(dump, code=support.EXIT_SOURCE, message="--oplog-replay replays them")
        self.check("t", [A])

    def test_renamed_collections_keep_their_indexes(self):
        dump = self.dump(self.namespace("t", [A], indexes=[INDEX]), self.namespace("r", [{"_id": 7}]), oplog=[
            rename("t", "r", dropTarget=True), insert({"_id": 2}, "DB.r"),
            create("t"), insert({"_id": 3}), rename("t", "q"),
            insert({"_id": 4}, "DB.implicit"), command("drop", "implicit"), insert({"_id": 5}, "DB.implicit")])
        outcome, _ = self.replay(dump)
        self.check("r", [A, {"_id": 2}])
        self.check("q", [{"_id": 3}])
        self.check("implicit", [{"_id": 5}])
        self.assertEqual(self.names(), {"r", "q", "implicit"})
        self.assertEqual(set(self.facts("r")[2]), {"_id_", "a_1"})
        self.assertIn("total", outcome.text)

    def test_updates_of_documents_that_do_not_exist_have_no_effect(self):
        dump = self.dump(self.namespace("t", [A]), oplog=[modify(8, set={"a": 1}), diff(9, u={"a": 1})])
        outcome, _ = self.replay(dump)
        self.assertIn("oplog: 2 updates of documents that did not exist", outcome.err)
        self.check("t", [A])

    def test_a_drop_of_the_database_leaves_other_collections(self):
        self.database.other.insert_one({"_id": "mine"})
        self.replay(self.dump(self.namespace("t", [A]), oplog=[command("dropDatabase", 1)]))
        self.assertEqual(self.names(), {"other"})

    def test_a_collection_that_exists_is_not_dropped_or_renamed(self):
        for name, entries in (("t", [command("drop", "t")]), ("t", [rename("t", "q")]),
                              ("r", [create("r"), insert({"_id": 2}, "DB.r")]),
                              ("r", [rename("t", "r")]),
                              ("r", [create("r"), insert({"_id": 2}, "DB.r"), command("drop", "r")])):
            with self.subTest(oplog=entries):
                for other in self.names():
                    self.database.drop_collection(other)
                self.database[name].insert_one({"_id": "mine"})
                dump, work = self.dump(self.namespace("t", [A]), oplog=entries), self.scratch / f"w{id(entries)}"
                for words in ([], ["--resume"]):
                    self.replay(dump, *words, work=work, code=support.EXIT_CLUSTER,
                                message=f"{name} exists, and the oplog creates, drops or renames it")
                    self.assertIn({"_id": "mine"}, list(self.database[name].find()))
                self.replay(dump, "--drop")
                self.assertNotIn({"_id": "mine"}, list(self.database[name].find()))

    def test_a_collection_that_is_in_the_oplog_only_is_not_changed(self):
        """An oplog of all databases beside a dump of one: what it does not create existed before it."""
        index = command("createIndexes", "other", v=2, key={"f": 1}, name="f_1")
        new = insert({"_id": 2}, "DB.other")
        for entries in ([new], [index], [delete("mine", "DB.other"), new]):
            self.database.other.drop()
            self.database.other.insert_one({"_id": "mine"})
            for words in ([], ["--drop"]):
                self.database.t.replace_one({"_id": "theirs"}, {}, upsert=True)
                self.replay(self.dump(self.namespace("t", [A]), oplog=entries), *words, code=support.EXIT_CLUSTER,
                            message="other exists and is not in the dump")
                self.assertEqual(self.database.t.count_documents({"_id": "theirs"}), 1)     # not dropped
                self.assertEqual(list(self.database.other.find()), [{"_id": "mine"}])
            self.replay(self.dump(self.namespace("t", [A]), oplog=entries), "--drop", "--ns-exclude",
                        f"{self.db}.other")
        other = self.client[f"{self.db}_other"]
        self.addCleanup(self.client.drop_database, other)
        other.t.insert_one({"_id": "mine"})
        ns = other.name
        renamed, *made = [{"op": "c", "ns": f"{ns}.$cmd", "o": fields} for fields in (
            {"renameCollection": f"{ns}.n", "to": f"{ns}.t", "dropTarget": True}, {"create": "n"}, {"create": "t"})]
        added = insert({"_id": "mine", "old": True}, f"{ns}.t")
        for entries in ([made[1], added], [made[0], renamed]):
            for words in ([], ["--drop"]):
                self.replay(self.dump(self.namespace("t", [A]), oplog=entries), *words, code=support.EXIT_CLUSTER,
                            message=f"{ns}.t exists and is not in the dump")
                self.assertEqual(list(other.t.find()), [{"_id": "mine"}])
        other.t.drop()
        self.replay(self.dump(self.namespace("t", [A]), oplog=[*made, added]), "--drop")
        self.assertEqual(other.t.count_documents({}), 1)
        self.database.other.drop()
        outcome, _ = self.replay(self.dump(self.namespace("t", [A]), oplog=[new]), "--drop")
        self.assertIn("other is not in the dump, and the oplog does not create it", outcome.err)

    def test_renames_of_other_collections_than_those_of_the_dump(self):
        """An oplog that begins before the dump: the logs were rotated in between. The new log replaced the old one."""
        new, old, index = {"_id": "new"}, {"_id": "old"}, command("createIndexes", "tmp", **INDEX)
        both = self.namespace("log", [new]), self.namespace("log_1", [old])
        none = making.Namespace(self.db, "log", [new], metadata=False)
        cases = [(both, [rename("log", "log_1", "log_1"), create("log"), insert(new, "DB.log")], "another UUID"),
                 (both, [rename("log", "log_1")], "the dump has both"),
                 ((none,), [rename("log", "log_1")], "no UUID in the dump"),
                 *[(both[1:], [*before, rename("tmp", "log_1", dropTarget=True)], "the dump does not have the renamed")
                   for before in ([], [insert(new, "DB.tmp")], [index])]]
        for namespaces, entries, message in cases:
            with self.subTest(oplog=entries):
                dump = self.dump(*namespaces, oplog=entries)
                outcome, _ = self.replay(dump, "--drop", code=support.EXIT_CLUSTER, message=message)
                self.assertIn("(--oplog-limit 1700000000:", outcome.err)
                self.assertEqual(self.names(), set())
        changed = {**delete("new", "DB.log"), "ui": oplogs.Binary(b"2" * 16, 4)}
        self.replay(self.dump(*both, oplog=[changed]), code=support.EXIT_CLUSTER, message="with another UUID")
        self.replay(self.dump(*both, oplog=[changed, command("drop", "log"), create("log")]))
        self.assertEqual(len(list(self.stored("log_1"))), 1)
        self.database.client.drop_database(self.db)
        excluded = [word for name in ("log", "log_1") for word in ("--ns-exclude", f"{self.db}.{name}")]
        self.replay(self.dump(*both, self.namespace("t", [A]), oplog=cases[0][1]), *excluded)
        self.assertEqual(self.names(), {"t"})

    def test_a_view_that_becomes_a_collection(self):
        """Its documents were left out."""
        document = {"viewOn": "t", "pipeline": []}
        made, dropped = insert({"_id": "DB.v", **document}, "DB.system.views"), delete("DB.v", "DB.system.views")
        new, added = create("v"), insert({"_id": 1}, "DB.v")
        t, view, table = self.namespace("t", [A]), self.namespace("v", options=document), self.namespace("v", [A])
        for items, entries in (([view], [dropped, new, added]), ([table], [command("drop", "v"), made]),
                               ([], [new, added, command("drop", "v"), made])):
            dump = self.dump(t, *items, oplog=entries)
            self.replay(dump, code=support.EXIT_CLUSTER, message=f"creates {self.db}.v as a ")
            self.assertNotIn("v", self.names())
            self.replay(dump, "--ns-exclude", f"{self.db}.v")
        self.replay(self.dump(t, view, oplog=[new, dropped, made]))
        self.assertEqual(self.facts("v")[:2], ("view", document))

    def test_patterns_select_and_rename_operations(self):
        def made():
            return self.dump(self.namespace("t", [A]), self.namespace("u", [A]), oplog=[
                modify(1, set={"a": 2}), delete(1, "DB.u"), insert({"_id": 5}, "DB.new"), create("made"),
                command("createIndexes", "t", **INDEX)])
        self.replay(made(), "--ns-exclude", "*.u", "--ns-exclude", "*.made", "--ns-from", "*.t", "--ns-to", "*.v")
        self.check("v", [{**A, "a": 2}])
        self.assertEqual(set(self.facts("v")[2]), {"_id_", "a_1"})
        self.check("new", [{"_id": 5}])
        self.assertEqual(self.names(), {"v", "new"})
        dump = self.dump(self.namespace("t", [A]), oplog=[rename("t", "x")])
        self.replay(dump, "--ns-exclude", "*.x", code=support.EXIT_USAGE,
                    message=f"renames {self.db}.t to {self.db}.x, but only one of them is selected")

    def roles(self, *names):
        """The documents of new roles, which are removed again."""
        for name in names:
            self.database.command("createRole", name, privileges=[], roles=[])
        self.addCleanup(self.database.command, "dropAllRolesFromDatabase")
        found = list(self.client.admin["system.roles"].find({"db": self.db}))
        self.database.command("dropAllRolesFromDatabase")
        return found

    def stored_roles(self):
        return sorted((one["role"], len(one["privileges"]))
                      for one in self.client.admin["system.roles"].find({"db": self.db}))

    def test_operations_on_users_and_roles(self):
        a, b, c = self.roles("a", "b", "c")
        everything = {"resource": {"db": "", "collection": ""}, "actions": ["find"]}
        on, commands = "admin.system.roles", [
            {**command(name, "system.roles", **more), "ns": "admin.$cmd"}
            for name, more in (("create", {}), ("createIndexes", INDEX), ("drop", {}))]
        entries = [*commands[:2], insert(c, on), modify(a["_id"], on, set={"privileges": [everything]}),
                   delete(b["_id"], on)]
        role_dump = making.Namespace("admin", "system.roles", [a, b])
        self.replay(self.dump(self.namespace("t", [A]), role_dump, oplog=entries))
        self.assertEqual(self.stored_roles(), [("a", 1), ("c", 0)])
        self.assertEqual([name for name in self.client.admin.list_collection_names() if "shardload" in name], [])
        self.database.command("dropAllRolesFromDatabase")
        self.database.drop_collection("t")
        for words, found in ((["--ns-exclude", "admin.*"], []), ([], [("c", 0)])):
            self.replay(self.dump(self.namespace("t", [A]), oplog=entries), *words)    # without roles in the dump
            self.assertEqual(self.stored_roles(), found)
        self.database.command("dropRole", "c")
        self.database.command("createRole", "mine", privileges=[], roles=[])
        self.replay(self.dump(self.namespace("t", [A]), oplog=entries), "--drop")
        self.assertEqual(self.stored_roles(), [("c", 0), ("mine", 0)])    # it was removed
        self.replay(self.dump(self.namespace("t", [A]), role_dump, oplog=[commands[2]]), code=support.EXIT_SOURCE,
                    message="the command drop of the users in admin.$cmd is not replayed")

    def test_a_forged_name_of_the_collection_of_roles(self):
        """A resume drops this collection."""
        dump, work = self.dump_folder(making.Namespace("admin", "system.roles", self.roles("a"))), self.scratch / "work"
        self.restore(dump, work=work)
        (name,) = work.glob("admin.system.roles-*/merged")
        precious, written = self.client.admin[self.db], name.read_text()
        precious.insert_one({})
        self.addCleanup(precious.drop)
        for forged in (self.db, written + "0", written[:-1] + "x"):
            name.write_text(forged)
            self.restore(dump, "--resume", work=work, code=support.EXIT_USAGE, message="merged is damaged")
        self.assertEqual(precious.count_documents({}), 1)
        name.write_text(written)
        self.restore(dump, "--resume", work=work)

    def test_collections_are_found_beside_views_and_users(self):
        views = [self.namespace(name, options={"viewOn": "z", "pipeline": []}) for name in "abcde"]
        dump = self.dump(self.namespace("z", [A]), *views, making.Namespace("admin", "system.roles", self.roles("a")),
                         oplog=[insert({"_id": 2}, "DB.z")])
        self.replay(dump)
        self.check("z", [A, {"_id": 2}])

    def test_limits(self):
        dump = self.dump(self.namespace("t", [A]), oplog=[insert({"_id": n}) for n in range(2, 7)])
        for limit, count in ((f"{oplogs.SECONDS}:4", 3), (f"{oplogs.SECONDS}:", 1), (str(oplogs.SECONDS + 1), 6)):
            self.database.drop_collection("t")
            self.replay(dump, "--oplog-limit", limit)
            self.assertEqual(self.database.t.count_documents({}), count)
        for wrong in ("0", "x", "1:2:3", "1:x", "", "99999999999", "-5"):
            self.replay(dump, f"--oplog-limit={wrong}", code=support.EXIT_USAGE)
        self.restore(dump, "--oplog-limit", "5", code=support.EXIT_USAGE, message="is for --oplog-replay only")

    def test_another_file(self):
        dump = self.dump_folder(self.namespace("t", [A]))
        path = self.file("changes.bson.gz", gzip.compress(oplogs.written(oplogs.at(self.db, [delete(1)]))))
        self.replay(dump, code=support.EXIT_SOURCE, message="the dump has no oplog")
        self.replay(dump, "--oplog-file", path)
        self.check("t", [])
        self.replay(self.dump(self.namespace("t", [A])), "--oplog-file", path, code=support.EXIT_USAGE,
                    message="remove")

    def test_an_oplog_that_can_be_read_only_once(self):
        """The plan read the pipe; the replay found it empty, and the restore ended without the writes, with exit
        code 0. A named pipe was waited for without end."""
        dump, fifo = self.dump_folder(self.namespace("t", [A])), self.scratch / "fifo"
        os.mkfifo(fifo)
        for path in ("/dev/stdin", "-", fifo, self.scratch):
            running, feed = self.start_with_pipe(
                "shardload", "restore", "--uri", self.uri, "--work-dir", f"w{next(self._counter)}", "--oplog-replay",
                "--oplog-file", path, dump, text=oplogs.written(oplogs.at(self.db, [delete(1)])))
            feed.close()
            running.wait().expect(support.EXIT_USAGE, "save it to a file first")
            self.assertEqual(self.names(), set())

    def test_an_oplog_without_entries(self):
        """Truncated to nothing by a full disk: "0 operations are replayed", with exit code 0."""
        dump, empty = self.dump(self.namespace("t", [A]), raw=b""), self.file("none.bson.gz", b"")
        for one, words in ((dump, []), (self.dump_folder(self.namespace("t", [A])), ["--oplog-file", empty])):
            self.replay(one, *words, code=support.EXIT_SOURCE, message="has no entries")
            self.assertEqual(self.names(), set())
        self.restore(dump, "--skip-other")

    def test_archives(self):
        entries = oplogs.written(oplogs.at(self.db, [insert({"_id": n}) for n in range(10)]))
        archive = self.file("dump.archive", making.archive([
            self.namespace("t", [A]), making.Namespace("", "oplog", [entries], metadata=False)]))
        self.replay(archive)
        self.assertEqual(self.database.t.count_documents({}), 10)
        self.shardload("restore", "--dry-run", "--oplog-replay", archive,
                       message="a dry run does not read the oplog of an archive")
        self.restore(archive, "--drop", code=support.EXIT_SOURCE, message="--oplog-replay replays them")

    def test_what_is_not_replayed_is_refused_before_anything_is_changed(self):
        part = transaction(2, apply_ops([delete(1)], partialTxn=True), False)
        many = {f"k{n}": 1 for n in range(1002)}
        cases = [({"op": "zz", "ns": "DB.t", "o": {}}, 'the operation "zz"'),
                 (command("frobnicate", "t"), "the command frobnicate"),
                 (command("convertToCapped", "t", size=4096), "the command convertToCapped is not replayed: which"),
                 (update(1, {"$v": 1, "$inc": {"a": 1}}), 'the field "$inc"'),
                 (diff(1, b={"x": 1}), 'the part "b"'),
                 (update(1, {"$v": 3}), "unknown version"),
                 ({"op": "d", "ns": "DB.t", "o": {}}, "without _id"),
                 (insert({"_id": 1}, "nodot"), 'the namespace "nodot"'),
                 (insert({"_id": 1}, "DB.t\0x"), 'the namespace ""'),
                 (create("n", **{"$db": "other"}), "$db is not an option of collections"),
                 (command("applyOps", "x"), "applyOps has no array of operations"),
                 (command("commitIndexBuild", "t", indexes=[{"key": {"a": 1}, "name": f"a{n}"} for n in range(1001)]),
                  "a collection has more than 1000 indexes"),
                 (command("createIndexes", "t", name="w", key={f"f{n}": 1 for n in range(101)}),
                  "an index of more than 100 fields"),
                 *[(command("collMod", "t", **fields), "collMod with more than 1000 options")
                   for fields in (many, {"index": {"name": "a", **many}})],
                 (part, "the beginning of this transaction is not in the oplog. Dump the oplog from an earlier time"),
                 (oplogs.committed(7), "the beginning of this transaction is not in the oplog"),
                 (apply_ops([command("frobnicate", "t")]), "the command frobnicate"),
                 (rename("t", "t", dropTarget=True), "to itself")]    # it crashed
        for entry, message in cases:
            with self.subTest(message):
                dump = self.dump(self.namespace("t", [A]), oplog=[insert({"_id": 5}), entry])
                outcome, _ = self.replay(dump, code=support.EXIT_SOURCE, message=message)
                self.assertIn(f"(timestamp {oplogs.SECONDS}:3)", outcome.err)
                self.assertEqual(self.names(), set())

    def test_no_operation_changes_what_is_never_restored(self):
        """Its object may name another collection than the operation does."""
        mark = f"{self.db}_mark"
        view = {"viewOn": "t", "pipeline": []}
        cases = [({"op": "c", "ns": "DB.$cmd", "o": {"renameCollection": "DB.t", "to": f"{place}.{mark}",
                                                     "dropTarget": True}}, place) for place in ("config", "local")]
        cases += [({"op": "c", "ns": "DB.$cmd", "o": {"renameCollection": "DB.t", "to": "shardload.balancer"}},
                   "shardload.balancer"),
                  (insert({"_id": f"config.{mark}", **view}, "DB.system.views"), "config"),
                  (insert({"_id": 1, "ns": f"config.{mark}", "key": {"a": 1}, "name": "a_1"}, "DB.system.indexes"),
                   "config"),
                  (apply_ops([{"op": "c", "ns": "DB.$cmd", "o": {"renameCollection": "DB.t",
                                                                 "to": f"local.{mark}"}}]), "local")]
        for entry, place in cases:
            with self.subTest(entry=entry):
                dump = self.dump(self.namespace("t", [A]), oplog=[insert({"_id": 5}), entry])
                self.replay(dump, code=support.EXIT_SOURCE, message=f"an operation that would change {place}")
                self.assertEqual(self.names(), set())
                for database in ("config", "local"):
                    self.assertNotIn(mark, self.client[database].list_collection_names())

    def test_fields_of_messages_are_no_options(self):
        """They would create or change a collection of another database."""
        other = self.client[f"{self.db}_other"]
        self.addCleanup(self.client.drop_database, other)
        other.create_collection("t")
        dump = self.dump(self.namespace("t", [A]), oplog=[
            command("collMod", "t", validator={"a": 1}, **{"$db": other.name})])
        self.replay(dump, code=support.EXIT_SOURCE, message="$db is not an option of collections")
        for folder in (self.dump_folder(self.namespace("n", [A], options={"$db": other.name})),
                       self.file("a", making.archive([self.namespace("n", [A], options={"$db": other.name})]))):
            self.restore(folder, code=support.EXIT_SOURCE, message=": $db is not an option of collections")
        self.assertEqual([one["options"] for one in other.list_collections()], [{}])

    def test_small_dumps_do_not_need_any_amount_of_memory(self):
        """Open transactions, and options and indexes, which are in memory until the end."""
        large = "x" * (15 << 20)
        part = [transaction(1, apply_ops([insert({"_id": 1, "s": large})], partialTxn=True))]
        part += [transaction(1, apply_ops([insert({"_id": n, "s": large})], partialTxn=True), False)
                 for n in range(2, 20)]
        build = [command("createIndexes", "t", v=2, key={f"k{n}": 1}, name=f"k{n}",
                         partialFilterExpression={"s": large}) for n in range(19)]
        for entries, message in ((part, "256 MiB. --oplog-limit"), (build, "more than 256 MiB of names")):
            with self.subTest(message):
                dump = self.dump(self.namespace("t", [A]), oplog=entries)
                self.replay(dump, code=support.EXIT_SOURCE, message=message)
                self.assertEqual(self.names(), set())
        wide = [self.namespace(f"c{n}", options={"validator": {"s": large}}) for n in range(10)]
        self.restore(self.file("wide", making.archive(wide)), code=support.EXIT_SOURCE,
                     message="more than 256 MiB of names")
        self.restore(self.dump_folder(*wide, *[self.namespace(f"d{n}", options=wide[0].options) for n in range(9)],
                                      zipped=True), code=support.EXIT_SOURCE, message="more than 256 MiB of names")

    def test_very_many_open_transactions(self):
        """Each entry was compared with all of them. A session's next transaction ends its earlier one."""
        part, session = transaction(1, apply_ops([insert({"_id": 7})], partialTxn=True)), b"s" * 16
        head, _, tail = oplogs.written(oplogs.at(self.db, [part])).partition(session)
        others = b"".join(head + n.to_bytes(16, "big") + tail for n in range(200_000))
        last = [transaction(1, apply_ops([insert({"_id": 8})]), False),
                transaction(2, apply_ops([insert({"_id": 9})], partialTxn=True)),
                transaction(3, apply_ops([insert({"_id": 10})], partialTxn=True)),
                transaction(3, apply_ops([insert({"_id": 11})]), False)]
        raw = head + session + tail + others + oplogs.written(oplogs.at(self.db, last), first=2)
        outcome, _ = self.replay(self.dump(self.namespace("t", [A]), raw=raw))
        self.assertIn("oplog: 200,000 transactions that do not end in the oplog are not", outcome.err)
        self.check("t", [A, *({"_id": n} for n in (7, 8, 10, 11))])

    def test_damage(self):
        good = oplogs.written(oplogs.at(self.db, [insert({"_id": n}) for n in range(5)]))
        size = len(good) // 5
        damaged = [good[:-3], good[:size * 2] + b"\xff\xff\xff\x7f" + good[size * 2 + 4:],
                   good[:size * 2] + good[size * 2:size * 2 + 4] + b"\x99" + good[size * 2 + 5:], good + b"\x01\0"]
        for raw, at in zip(damaged, (4, 2, 2, 5)):
            with self.subTest(at=at):
                dump = self.dump(self.namespace("t", [A]), raw=raw)
                outcome, _ = self.replay(dump, code=support.EXIT_SOURCE, message="the entry is damaged")
                self.assertIn(f"oplog.bson, byte {at * size} ", outcome.err)
                self.assertEqual(self.names(), set())
        self.replay(dump, "--oplog-limit", f"{oplogs.SECONDS}:4")
        self.assertEqual(self.database.t.count_documents({}), 3)    # of _id 0, 1, 2

    def test_large_and_deep_entries(self):
        deep = {}
        for _ in range(97):
            deep = {"a": deep}
        large = {"_id": 2, "s": "x" * ((16 << 20) - 30)}
        self.replay(self.dump(self.namespace("t", [A]), oplog=[
            apply_ops([insert({"_id": 1, "deep": deep})]), insert(large), modify(2, set={"s": "short"}),
            insert({**large, "_id": 3})]))
        self.check("t", [{"_id": 1, "deep": deep}, {"_id": 2, "s": "short"}, {**large, "_id": 3}])

    def test_collections_that_exist_with_a_unique_index(self):
        self.database.t.create_index("a", unique=True)
        self.database.t.insert_one({"_id": 9, "a": 9})
        self.replay(self.dump(self.namespace("t", [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]), oplog=[
            modify(1, set={"a": 0}), modify(2, set={"a": 1}), modify(1, set={"a": 2})]))
        self.check("t", [{"_id": 9, "a": 9}, {"_id": 1, "a": 2}, {"_id": 2, "a": 1}])

    def test_a_failed_namespace_stops_before_the_replay(self):
        dump = self.dump(self.namespace("a", documents(3)), self.namespace("t", [A]), oplog=[delete(1)])
        (dump / self.db / "a.bson").rename(dump / self.db / "a.bson.gz")
        whole = gzip.compress((dump / self.db / "a.bson.gz").read_bytes())
        (dump / self.db / "a.bson.gz").write_bytes(whole[:-5])
        outcome, _ = self.replay(dump, code=support.EXIT_SOURCE)
        self.assertIn("the oplog is not replayed, because not all namespaces are restored", outcome.err)
        self.check("t", [A])

    # ---- kills ----

    def everything(self):
        """A dump whose restore and replay use each kind of command."""
        one = ({"_id": n, "v": 0} for n in itertools.count(1000))
        changes = itertools.chain.from_iterable(
            [modify(n % 300, set={"v": n}), insert(next(one)), delete(n % 400), diff(n % 300, u={"w": [n]}),
             modify(n % 7, "DB.u", set={"v": n})] for n in range(600))
        capped = [insert({"_id": n}, "DB.c") for n in range(12)]
        views = [insert({"_id": "DB.w", "viewOn": "t", "pipeline": []}, "DB.system.views"),
                 delete("DB.v", "DB.system.views")]
        renamed = [create("r"), insert({"_id": 1}, "DB.r"), rename("r", "s"),
                   create("r"), insert({"_id": 2}, "DB.r"), rename("r", "s"),
                   command("drop", "gone"), create("gone"), insert({"_id": 3}, "DB.gone")]
        indexes = [command("createIndexes", "t", **INDEX), command("dropIndexes", "u", index="a_1"),
                   transaction(1, apply_ops([insert({"_id": "in"})], partialTxn=True)),
                   transaction(1, apply_ops([insert({"_id": "out"})]), False)]
        entries = list(changes)
        for more in (capped, views, renamed, indexes):
            entries[len(entries) // 2:0] = more
        return self.dump(self.namespace("t", [{"_id": n, "v": -1} for n in range(500)]),
                         self.namespace("u", [{"_id": n, "v": -1} for n in range(5)], indexes=[INDEX]),
                         self.namespace("gone", [{"_id": 1}], indexes=[INDEX]),
                         self.namespace("c", options={"capped": True, "size": 8192, "max": 7}),
                         self.namespace("v", options={"viewOn": "t", "pipeline": []}), oplog=entries)

    def content(self):
        return {name: (self.facts(name), [] if self.facts(name)[0] == "view" else sorted(self.stored(name)))
                for name in self.names()}

    def test_killed_at_random_commands_and_resumed(self):
        dump, draw = self.everything(), random.Random("oplog")
        self.replay(dump)
        expected = self.content()
        self.assertEqual(set(expected), {"t", "u", "s", "gone", "c", "w"})
        kills = 0
        while kills < KILLS:
            self.client.drop_database(self.database_name)
            work, resume, code = f"killed-{next(self._counter)}", [], -signal.SIGKILL
            while code == -signal.SIGKILL:
                code = self.run_and_kill(dump, draw, work, *resume)
                resume = ["--resume"]
                kills += code == -signal.SIGKILL
            self.assertEqual(code, 0)
            self.assertEqual(self.content(), expected)

    def wait_for_last_command(self):
        """Waits until the server has executed the last command of the killed program, and ended its connections. A
        write that the server still executes could otherwise follow those of the resumed replay."""
        stages = [{"$currentOp": {"allUsers": True, "idleConnections": True}},
                  {"$match": {"appName": {"$regex": "^shardload"}}}]
        self.wait_for(lambda: not list(self.client.admin.aggregate(stages)), "the end of all connections")

    def run_and_kill(self, dump, draw, work, *more):
        """Runs until a command is sent, or until the restore ends before that."""
        between = proxy.Proxy(support.port_of(self.uri))
        running = self.begin(dump, "--oplog-replay", *more, "--uri", self.proxy_uri(between), "-j", 1, work=work)
        action = draw.choice([proxy.call, proxy.call_after])
        between.on_command(draw.randrange(10, COMMANDS), action(running.kill))
        outcome = running.wait()
        between.close()
        self.wait_for_last_command()
        return outcome.code

    def test_a_resume_needs_the_same_options_and_a_position(self):
        dump = self.everything()
        between = proxy.Proxy(support.port_of(self.uri))
        running = self.begin(dump, "--oplog-replay", "--uri", self.proxy_uri(between), "-j", 1)
        self.wait_for(lambda: not running.running() or (self.scratch / "work" / "oplog-position").exists(), "replay")
        running.kill()
        between.close()
        self.wait_for_last_command()
        position = self.scratch / "work" / "oplog-position"
        right = position.read_bytes()
        position.write_bytes(bytes(65 << 20))
        self.replay(dump, "--resume", work=self.scratch / "work", code=support.EXIT_SOURCE,
                    message="larger than 64 MiB")
        position.write_bytes(right)
        self.restore(dump, "--resume", work=self.scratch / "work", code=support.EXIT_USAGE)
        self.replay(dump, "--resume", work=self.scratch / "work")

    def test_an_oplog_that_changes_during_the_restore(self):
        dump = self.dump(self.namespace("t", [A]), oplog=[delete(1)])
        path, work, between = dump / "oplog.bson", self.scratch / "work", proxy.Proxy(support.port_of(self.uri))
        raw, other = path.read_bytes(), oplogs.written(oplogs.at(self.db, [create("new")]))
        between.on_command(1, proxy.call(lambda: path.write_bytes(other)))
        running = self.begin(dump, "--oplog-replay", "--uri", self.proxy_uri(between))
        running.wait().expect(support.EXIT_SOURCE, "oplog.bson: was replaced or changed after the restore began")
        between.close()
        self.replay(dump, "--resume", work=work, code=support.EXIT_SOURCE,
                    message="is not the oplog with which this restore began")
        path.write_bytes(raw)
        self.replay(dump, "--resume", work=work)
        self.check("t", [])

    def test_an_oplog_beside_an_archive_that_changes_before_the_resume(self):
        dump = self.file("a.archive", making.archive([self.namespace("t", [A])]))
        path, between = self.file("oplog.bson", oplogs.written(oplogs.at(self.db, [delete(1)]))), proxy.Proxy(
            support.port_of(self.uri), "t")
        words = ["--oplog-replay", "--oplog-file", path]
        running = self.begin(dump, *words, "--uri", self.proxy_uri(between))
        between.on_batch(1, proxy.call(running.kill))
        running.wait()
        between.close()
        path.write_bytes(oplogs.written(oplogs.at(self.db, [create("new")])))
        self.replay(dump, "--resume", *words[1:], work=self.scratch / "work", code=support.EXIT_SOURCE,
                    message="is not the oplog with which this restore began")


class Sharded(Oplogs, server="cluster"):
    def test_documents_of_sharded_collections(self):
        keys = self.file("keys.yaml", f"{self.db}.t: {{key: {{k: 1}}}}\n{self.db}.h: {{key: {{_id: hashed}}}}\n")
        made = [{"_id": n, "k": n * 37 % 200, "v": 0} for n in range(200)]
        moved = [modify(n, set={"k": 199 - n * 37 % 200}) for n in range(50, 100)]
        dump = self.dump(
            self.namespace("t", made), self.namespace("h", made), self.namespace("plain", made),
            oplog=[modify(n, f"DB.{name}", set={"v": n}) for n in range(100) for name in ("t", "h", "plain")] +
            [delete(n, f"DB.{name}") for n in range(150, 170) for name in ("t", "h", "plain")] + moved +
            [diff(n, u={"w": 1}) for n in range(40, 60)] + [insert({"_id": 500, "k": 3}), insert({"_id": 501}),
             update(502, {"_id": 502, "k": 4}), modify(501, set={"k": 150}), insert({"_id": 1}, "DB.new")])
        self.replay(dump, "--shard-keys", keys)
        plain = {one["_id"]: dict(one) for one in made if not 150 <= one["_id"] < 170}
        for n in range(100):
            plain[n]["v"] = n
        self.check("h", plain.values())
        self.check("plain", plain.values())
        for n in range(50, 100):
            plain[n]["k"] = 199 - n * 37 % 200
        for n in range(40, 60):
            plain[n]["w"] = 1
        plain.update({500: {"_id": 500, "k": 3}, 501: {"_id": 501, "k": 150}, 502: {"_id": 502, "k": 4}})
        self.check("t", plain.values())
        self.assertEqual(self.names(), {"t", "h", "plain", "new"})
        counts = self.counts_by_shard().values()
        self.assertEqual((len(counts), sum(counts)), (2, len(plain)))
        self.assertGreater(min(counts), 0)


del Oplogs   # not a test itself
