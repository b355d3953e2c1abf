# SPDX-License-Identifier: Apache-2.0
"""The replay of oplogs, compared with the real mongorestore --oplogReplay and with the servers from which the
real mongodump --oplog dumped during writes. SHARDLOAD_REAL names a folder with tools/bin/mongodump and
mongorestore, and mongod of server 4.4, 5.0 and 6.0; the tests skip without it."""
import os
import subprocess

import busy_writer
import dump_making as making
import oplog_making as oplogs
import servers
import support
from real_servers import REAL
from restore_case import Restoring
from support import bson

ROUNDS = 60
DEFAULTS = {"validationLevel": "strict", "validationAction": "error"}


def raw_documents(collection):
    raw = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    return sorted(bytes(one.raw) for one in collection.with_options(codec_options=raw).find())


class RealOplog(Restoring):
    version = None

    @classmethod
    def setUpClass(cls):
        mongod = REAL / cls.version / "bin" / "mongod"
        if not (REAL / "tools" / "bin" / "mongorestore").exists() or not mongod.exists():
            raise support.unittest.SkipTest(f"SHARDLOAD_REAL does not name a folder with tools and {cls.version}")
        folder = support.tempfile.mkdtemp(prefix="shardload-oplog-")
        cls.addClassCleanup(support.shutil.rmtree, folder, ignore_errors=True)
        cls.server = servers.Servers(f"{folder}/server", "--shards", "0", "--replicas", "1", "--mongod", mongod,
                                     *servers.SAVING)
        cls.addClassCleanup(cls.server.down)
        cls.variable = "SHARDLOAD_TEST_REAL_URI"
        os.environ[cls.variable] = cls.server.uri
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.drop)

    def tool(self, name, *words):
        done = subprocess.run([REAL / "tools" / "bin" / name, "--uri", self.uri, *map(str, words)], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=support.LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr[-900:])

    def drop(self):
        for name in self.databases():
            self.client.drop_database(name)

    def databases(self):
        return [name for name in self.client.list_database_names() if name.startswith(self.db)]

    def content(self):
        """Type, options, indexes and documents of each namespace."""
        found = {}
        for name in self.databases():
            database = self.client[name]
            for one in database.list_collections():
                if one["name"] == "system.views":
                    continue
                options = one["options"]
                if "validator" in options:
                    options = {**DEFAULTS, **options}
                view = one["type"] == "view"
                indexes = [] if view else [dict(index) for index in database[one["name"]].list_indexes()]
                found[f"{name}.{one['name']}"] = (
                    one["type"], options, sorted(indexes, key=lambda index: index["name"]),
                    [] if view else raw_documents(database[one["name"]]))
        return found

    def assert_content(self, expected, found):
        self.assertEqual(sorted(expected), sorted(found))
        for name, facts in expected.items():
            for number, part in enumerate(facts):
                self.assertEqual(part, found[name][number], name)

    # ---- cases of entries ----

    def compare(self, namespaces, entries):
        """Restores with both programs."""
        dump = making.folder(self.scratch / f"dump-{next(self._counter)}", namespaces)
        (dump / "oplog.bson").write_bytes(oplogs.written(entries))
        self.tool("mongorestore", "--oplogReplay", dump)
        expected = self.content()
        self.drop()
        self.restore(dump, "--oplog-replay")
        self.assert_content(expected, self.content())
        self.drop()

    def replayed(self, cases):
        """The cases that the server of this version can replay."""
        return [case for case in cases.values() if self.version != "4.4" or not oplogs.has_diff(case[1])]

    def test_operations_on_documents(self):
        cases = self.replayed(oplogs.DOCUMENTS)
        self.compare([making.Namespace(f"{self.db}_{n}", "t", case[0]) for n, case in enumerate(cases)],
                     oplogs.entries_of(cases, self.db))

    def test_commands(self):
        cases = self.replayed(oplogs.COMMANDS)
        self.compare([making.Namespace(f"{self.db}_{n}", "t", [{"_id": 1, "a": 1}], indexes=case[0])
                      for n, case in enumerate(cases)], oplogs.entries_of(cases, self.db))

    def test_operations_on_users_and_roles(self):
        """Of a server that has none of them, as after a disaster."""
        users, admin = [f"{self.db}.{name}" for name in "abc"], self.client.admin
        self.database.command("createRole", "role", privileges=[], roles=[])
        for name in "abc":
            self.database.command("createUser", name, pwd="x", roles=["role"], mechanisms=["SCRAM-SHA-256"])
        a, b, c = (admin["system.users"].find_one({"_id": name}) for name in users)
        roles = list(admin["system.roles"].find())

        def clear():
            found = {name: raw_documents(admin[f"system.{name}"]) for name in ("users", "roles")}
            self.database.command("dropAllUsersFromDatabase")
            self.database.command("dropAllRolesFromDatabase")
            self.drop()
            return found
        clear()
        new_role = {**roles[0], "_id": f"{self.db}.new", "role": "new"}
        change = oplogs.modify if self.version == "4.4" else lambda key, on, set: oplogs.diff(key, on, i=set)
        entries = oplogs.at(self.db, [
            oplogs.NO_OP, oplogs.insert(c, "admin.system.users"), oplogs.insert(new_role, "admin.system.roles"),
            change(users[0], "admin.system.users", set={"customData": {"changed": True}}),
            oplogs.delete(users[1], "admin.system.users"), oplogs.insert({"_id": 2})])
        dump = making.folder(self.scratch / "users", [
            making.Namespace(self.db, "t", [{"_id": 1}]), making.Namespace("admin", "system.users", [a, b]),
            making.Namespace("admin", "system.roles", roles),
            making.Namespace("admin", "system.version", list(admin["system.version"].find()))])
        (dump / "oplog.bson").write_bytes(oplogs.written(entries))
        for words in ([], ["--drop"]):
            self.tool("mongorestore", "--oplogReplay", *words, dump)
            expected = clear()
            self.restore(dump, "--oplog-replay", *words)
            self.assertEqual(clear(), expected)
            self.assertEqual([len(one) for one in expected.values()], [2, 2])

    # ---- dumps of a server that is written to ----

    def busy_dump(self):
        """An archive that mongodump writes during writes of every kind. Nothing reads the archive while the writer
        makes its rounds, so all its writes are in the time of the dump. Returns path and final content."""
        writer = busy_writer.Writer(self.client, self.db, self.version != "4.4")
        writer.prepare()
        writer.start()
        path = self.scratch / "dump.archive"
        with open(path, "wb") as archive, subprocess.Popen(
                [REAL / "tools" / "bin" / "mongodump", "--uri", self.uri, "--oplog", "--archive"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as dumping:
            archive.write(dumping.stdout.read(1 << 20))
            last = writer.round + ROUNDS
            self.wait_for(lambda: writer.round >= last or writer.failure, "the rounds of the writer")
            writer.stop()
            archive.write(dumping.stdout.read())
        self.assertEqual(dumping.returncode, 0)
        return path, self.content()

    def test_a_dump_during_writes_becomes_the_content_at_its_end(self):
        archive, expected = self.busy_dump()
        self.drop()
        outcome, _ = self.restore(archive, "--oplog-replay")
        self.assertRegex(outcome.err, r"oplog: \d,\d+ operations are replayed")
        self.assert_content(expected, self.content())
        self.drop()

    def test_folders_and_compressed_folders(self):
        writer = busy_writer.Writer(self.client, self.db, self.version != "4.4")
        writer.prepare()
        writer.start()
        dumps = [self.scratch / "plain", self.scratch / "zipped"]
        for dump, more in zip(dumps, ([], ["--gzip"])):
            self.tool("mongodump", "--oplog", "--out", dump, *more)
        writer.stop()
        for dump, more in zip(dumps, ([], ["--gzip"])):
            self.drop()
            self.restore(dump, "--oplog-replay")
            found = self.content()
            self.drop()
            self.tool("mongorestore", "--oplogReplay", *more, dump)
            self.assert_content(self.content(), found)


class RealOplog44(RealOplog):
    version = "4.4"


class RealOplog50(RealOplog):
    version = "5.0"


class RealOplog60(RealOplog):
    version = "6.0"


del RealOplog       # the runner takes each class for tests to run
