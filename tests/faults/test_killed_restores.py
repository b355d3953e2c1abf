# SPDX-License-Identifier: Apache-2.0
"""A restore that is killed at any of its commands and resumed leaves what a restore leaves that was not killed, and
nothing else. tools/campaign restores does the same at random times with dumps of the vendor's mongodump."""
import itertools
import pathlib
import signal

import dump_making as making
import oplog_making as oplogs
import proxy
import real_servers
import support
from fault_case import ROUNDS
from restore_case import INDEXES, SERIES, VALIDATOR, Restoring, documents
from support import bson

KILLS = 8 * ROUNDS


class KilledRestores(Restoring, server="mongod"):
    def users(self):
        """A role and a user of the database, as they are dumped."""
        self.database.command("createRole", "role", privileges=[], roles=[])
        self.database.command("createUser", "user", pwd="x", roles=["role"], mechanisms=["SCRAM-SHA-256"])
        self.addCleanup(self.database.command, "dropAllUsersFromDatabase")
        self.addCleanup(self.database.command, "dropAllRolesFromDatabase")
        return [self.namespace(f"$admin.system.{name}", list(self.client.admin[f"system.{name}"].find(
            {"db": self.db})), metadata=False) for name in ("roles", "users")]

    def small(self, more=()):
        """A collection that is restored without a load."""
        return self.namespace("small", [*documents(50), *more], indexes=[{"v": 2, "key": {"n": 1}, "name": "n"}])

    def namespaces(self):
        buckets = self.buckets()
        clustered = self.namespace("clustered", [{"_id": n} for n in range(20)], options={
            "clusteredIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True}})
        return [self.namespace("a", documents(600), options=VALIDATOR, indexes=INDEXES[:2]),
                self.namespace("capped", [{"_id": n} for n in range(40)],
                               options={"capped": True, "size": 8192, "max": 50}),
                *([clustered] if self.is_at_least("5.3") else []),
                self.namespace("empty"), self.namespace("series", buckets, options=SERIES), self.small(),
                self.namespace("t", [{"_id": n, "v": -1} for n in range(300)],
                               indexes=[{"v": 2, "key": {"v": 1, "_id": 1}, "name": "v", "unique": True}]),
                self.namespace("view", options={"viewOn": "a", "pipeline": []}), *self.users()]

    def changes(self):
        """Operations of the oplog."""
        entries = [oplogs.modify(n % 300, set={"v": n}) for n in range(1200)]
        entries[600:0] = [oplogs.create("new"), oplogs.insert({"_id": 1}, "DB.new"), oplogs.command("drop", "empty"),
                          oplogs.command("createIndexes", "new", **oplogs.INDEX), *(
                              oplogs.insert({"_id": 1000 + n}, "DB.capped") for n in range(9))]
        return oplogs.written(oplogs.at(self.db, [oplogs.NO_OP, *entries]))

    def put_before(self):
        """What a restore with --drop replaces, and what it keeps."""
        self.client.drop_database(self.db)
        self.database.a.insert_one({"_id": 1})
        self.database.create_collection("view", capped=True, size=4096)
        self.database.mine.insert_one({"_id": 1})
        self.database.command("updateUser", "user", customData={"changed": True})
        self.database.command("createUser", "other", pwd="x", roles=[])

    def run_through(self, between, work, *words):
        return self.start("shardload", "restore", "--uri", self.proxy_uri(between), "--work-dir", work, "--progress",
                          "none", "-d", self.db, "--restore-db-users-and-roles", "--drop", "-j", 1, "--batch-size", 100,
                          "--collections-at-once", 1, *words)

    def result(self, work):
        """All that the server has of this database, and the names of the files in the work directory."""
        found = {key: value for key, value in real_servers.state(self.client).items()
                 if key[0].startswith((self.db, "admin.system."))}
        self.assertIn((f"{self.db}.mine", "documents"), found)
        files = {name for name in real_servers.work_files(work) if ".small-" not in name}   # resumed, it has a load
        return {**found, "files": files}

    def check_kills(self, *words):
        self.put_before()
        between = proxy.Proxy(support.port_of(self.uri))
        self.run_through(between, "whole", *words).wait().expect(0)
        commands, expected = between.counts["command"], self.result(self.scratch / "whole")
        between.close()
        for number, action in zip(range(KILLS), itertools.cycle([proxy.call, proxy.call_after])):
            at = 1 + (2 * number + 1) * commands // (2 * KILLS)
            with self.subTest(command=at, of=commands, action=action.__name__):
                self.put_before()
                work = self.scratch / f"killed-{next(self._counter)}"
                between = proxy.Proxy(support.port_of(self.uri))
                running = self.run_through(between, work, *words)
                between.on_command(at, action(running.kill))
                self.assertEqual(running.wait().code, -signal.SIGKILL)
                resume = ["--resume"] if pathlib.Path(work, "restore").exists() else []
                self.run_through(between, work, *resume, *words).wait().expect(0)
                between.close()
                found = self.result(work)
                for key in expected.keys() | found.keys():
                    self.assertEqual(found.get(key), expected.get(key), key)

    def test_a_folder_with_its_oplog(self):
        dump = self.dump_folder(*self.namespaces())
        (dump / "oplog.bson").write_bytes(self.changes())
        self.check_kills("--oplog-replay", dump)

    def test_interrupted_between_documents_with_an_empty_timestamp(self):
        """These are stored after the load, which is complete by then."""
        made = [{"_id": n, "t": bson.Timestamp(0, 0)} for n in range(9)]
        dump = self.dump_folder(self.namespace("t", made))
        (dump / "oplog.bson").write_bytes(oplogs.written([oplogs.NO_OP]))
        between = proxy.Proxy(support.port_of(self.uri))
        self.addCleanup(between.close)

        def interrupt():
            running.signal(signal.SIGINT)
            self.wait_for(lambda: "stopping after" in running.text(), "the signal")
        between.on_batch(1, proxy.call(interrupt))
        running = self.run_through(between, "work", "--oplog-replay", dump)
        running.wait().expect(support.EXIT_INTERRUPTED)
        self.assertEqual(between.batches, 1)
        self.run_through(between, "work", "--resume", "--oplog-replay", dump).wait().expect(0)
        self.check("t", made)

    def test_an_archive(self):
        self.check_kills(self.file("dump.archive", making.archive(self.namespaces())))

    def test_a_load_that_was_killed_when_it_had_just_created_its_journal(self):
        dump = self.dump_folder(*self.namespaces())
        self.put_before()
        between = proxy.Proxy(support.port_of(self.uri), "a")
        running = self.run_through(between, "killed", dump)
        between.on_batch(1, proxy.call(running.kill))
        running.wait()
        between.close()
        (folder,) = (self.scratch / "killed").glob("*.a-*")
        (folder / "journal").write_bytes(b"")
        self.database.a.delete_many({})
        self.shardload("restore", "--uri", self.uri, "--work-dir", "killed", "--resume", "--progress", "none", "-d",
                       self.db, "--restore-db-users-and-roles", "--drop", dump)
        self.check("a", documents(600))

    def test_no_document_is_sent_again_to_a_capped_collection(self):
        """Servers before 6.0 remove the oldest document of a full one even when they refuse an insert."""
        dump = self.dump_folder(self.namespace("capped", [{"_id": n} for n in range(40)],
                                               options={"capped": True, "size": 8192, "max": 40}))
        between = proxy.Proxy(support.port_of(self.uri), "capped")
        running = self.run_through(between, "killed", dump)
        between.on_batch(1, proxy.call_after(running.kill))
        running.wait()
        self.wait_for(lambda: self.database.capped.count_documents({}) == 40, "the batch")
        between.recorded = []
        outcome = self.run_through(between, "killed", "--resume", dump).wait().expect(0)
        self.assertRegex(outcome.out, r"capped +40 +0 +40 +0")
        commands = [proxy.command_of(message) for message in between.recorded]
        self.assertNotIn("capped", [proxy.collection_of(value) for name, value in commands if name == "insert"])
        self.check("capped", [{"_id": n} for n in range(40)])
        between.close()

    def restore_small(self, action=None, code=0, more=(), work="work", words=()):
        """Restores a small collection through a proxy, which does this with its first insert."""
        between = proxy.Proxy(support.port_of(self.uri), "small")
        self.addCleanup(between.close)
        if action:
            between.on_batch(1, action)
        dump = self.dump_folder(self.small(more)) if not words else words[-1]
        outcome = self.run_through(between, work, *words[:-1], dump).wait().expect(code)
        return dump, outcome

    def test_a_small_collection_whose_insert_is_not_acknowledged(self):
        for number, action in enumerate([proxy.cut_request(100), proxy.cut_reply(10), proxy.error_reply(8000, "odd"),
                                         proxy.change_reply(lambda reply: {**reply, "n": 49})]):
            with self.subTest(number=number):
                _, outcome = self.restore_small(action, work=f"work-{number}")
                self.assertRegex(outcome.out, r"small +50 +(50 +0|49 +1|0 +50) +0 +1 ")
                self.check("small", documents(50))

    def test_a_small_collection_with_documents_that_are_refused(self):
        twice = {**documents(1)[0], "s": "another"}
        _, outcome = self.restore_small(code=support.EXIT_REJECTS, more=[twice, {"_id": [1]}])
        self.assertRegex(outcome.out, r"small +52 +50 +0 +2 +1 ")
        self.check("small", documents(50))

    def test_a_small_collection_that_is_dropped_before_its_documents_arrive(self):
        """The insert would create a collection without indexes."""
        dump, outcome = self.restore_small(proxy.call(self.database.small.drop), code=support.EXIT_CLUSTER)
        self.assertIn("small was dropped while it was restored", outcome.err)
        self.restore_small(words=("--resume", dump))
        self.check("small", documents(50))
        self.assertEqual(self.facts("small")[2]["n"]["key"], {"n": 1})
