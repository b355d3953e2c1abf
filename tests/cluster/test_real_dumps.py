# SPDX-License-Identifier: Apache-2.0
"""Dumps by the vendor's mongodump, restored by both programs: the server then holds the same. SHARDLOAD_REAL names
a folder with VERSION/bin/mongod of three versions and tools/bin; the tests skip without it."""
import pathlib
import re

import bson
import pymongo

import dump_making as making
import real_servers
import support
from real_servers import REAL, SERVERS, clear, fill, fill_users, state, vendor

# Form: the options of mongodump; those of mongorestore; those of shardload restore. {at} is the dump. Words after |
# become standard output of mongodump and standard input of the other two.
FORMS = {
    "folder": ("-o {at}", "{at}", "{at}"),
    "folder, compressed": ("--gzip -o {at}", "--gzip {at}", "{at}"),
    "archive": ("--archive={at}", "--archive={at}", "{at}"),
    "archive, compressed": ("--gzip --archive={at}", "--gzip --archive={at}", "--archive {at}"),
    "archive in a pipe": ("| --archive", "| --archive", "| -"),
    "archive, one database": ("--archive={at}", "--archive={at} -d shop", "-d shop {at}"),
    "one database": ("-d shop -o {at}", "{at}", "{at}"),
    "its folder": ("-d shop -o {at}", "-d shop {at}/shop", "-d shop {at}/shop"),
    "another name": ("-d shop -o {at}", "-d new {at}/shop", "-d new {at}/shop"),
    "one collection": ("-d shop -c orders -o {at}", "{at}", "{at}"),
    "its file": ("-d shop -c orders -o {at}", "-d a -c b {at}/shop/orders.bson", "-d a -c b {at}/shop/orders.bson"),
    "its file, compressed": ("-d shop -c orders --gzip -o {at}", "-d a -c b --gzip {at}/shop/orders.bson.gz",
                             "-d a -c b {at}/shop/orders.bson.gz"),
    "a file alone": ("-d shop -o {at}", "{at}/shop/sorted.bson", "{at}/shop/sorted.bson"),
    "documents in a pipe": ("| -d shop -c orders -o -", "| -d a -c b -", "| -d a -c b -"),
    "its users": ("-d shop --dumpDbUsersAndRoles -o {at}", "-d shop --restoreDbUsersAndRoles {at}/shop",
                  "-d shop --restore-db-users-and-roles {at}/shop"),
    "without its users": ("-d shop --dumpDbUsersAndRoles -o {at}", "-d shop {at}/shop", "-d shop {at}/shop"),
    "its users, archive": ("-d shop --dumpDbUsersAndRoles --archive={at}",
                           "-d shop --restoreDbUsersAndRoles --archive={at}",
                           "-d shop --restore-db-users-and-roles {at}"),
    "a view": ("-d shop -c cheap -o {at}", "{at}", "{at}"),
}


def names(state_of):
    """A state with the users' names and data in place of their documents, which have salts."""
    return {key: value for key, value in state_of.items() if key != ("admin.system.users", "documents")}


class RealDumps(support.Case):
    @classmethod
    def setUpClass(cls):
        if not (REAL / "tools" / "bin" / "mongodump").exists():
            raise support.unittest.SkipTest("SHARDLOAD_REAL does not name a folder with tools/bin/mongodump")
        folder = support.tempfile.mkdtemp(prefix="shardload-real-")
        cls.addClassCleanup(support.shutil.rmtree, folder, ignore_errors=True)
        cls.folder, cls.clients = pathlib.Path(folder), {}

    def connect(self, name):
        """A client of these servers, which the tests share, with the content that is dumped."""
        if name not in self.clients:
            server = real_servers.start(name, self.folder)
            self.addClassCleanup(server.down)
            self.clients[name] = pymongo.MongoClient(server.uri)
            self.addClassCleanup(self.clients[name].close)
        client = self.clients[name]
        clear(client)
        fill(client, SERVERS[name][0], users=name != "own router")
        return client

    @staticmethod
    def uri(client):
        return "mongodb://{}:{}/".format(*client.address)

    def run_vendor(self, name, client, words, at, **more):
        words = words.format(at=at).split()
        if name == "mongorestore":      # without it, documents that violate their validator are lost
            words = [*words, "--bypassDocumentValidation"]
        return vendor(name, "--uri", self.uri(client), *(word for word in words if word != "|"), **more)

    def dump(self, client, words):
        """Returns the path of the dump."""
        at = self.scratch / f"dump-{next(self._counter)}"
        out = self.run_vendor("mongodump", client, words, at)
        if words.startswith("|"):
            at.write_bytes(out)
        return at

    def restore(self, client, words, at, code=0, message=()):
        work = self.scratch / f"work-{next(self._counter)}"
        given = [word for word in words.format(at=at).split() if word != "|"]
        stdin = at.read_bytes() if words.startswith("|") else b""
        return self.shardload("restore", "--uri", self.uri(client), "--work-dir", work, "--progress", "none", *given,
                              code=code, message=message, stdin=stdin)

    def assert_same(self, found, expected):
        self.assertEqual({key: value for key, value in found.items() if expected.get(key) != value},
                         {key: value for key, value in expected.items() if found.get(key) != value})

    def check_forms(self, name, forms=FORMS, of_vendor_too=()):
        client = self.connect(name)
        dumps = {words: self.dump(client, words) for words in {how[0] for how in forms.values()}}
        for form, (words, of_vendor, own) in forms.items():
            with self.subTest(form):
                at = dumps[words]
                clear(client)
                self.run_vendor("mongorestore", client, " ".join([of_vendor, *of_vendor_too]), at,
                                input=at.read_bytes() if of_vendor.startswith("|") else b"")
                expected = state(client)
                clear(client)
                self.restore(client, own, at)
                self.assert_same(state(client), expected)
                if not own.startswith("|"):
                    self.verify(client, own, at)

    def verify(self, client, words, at, code=0):
        *options, dump = words.replace("--archive ", "").format(at=at).split()
        return self.shardload("verify", "--uri", self.uri(client), "--content", "--work-dir",
                              self.scratch / f"work-{next(self._counter)}", *options, "--dump", dump, code=code)

    def test_each_form_is_restored_as_by_mongorestore_on_server_4_4(self):
        self.check_forms("4.4")

    def test_each_form_is_restored_as_by_mongorestore_on_server_5_0(self):
        self.check_forms("5.0")

    def test_each_form_is_restored_as_by_mongorestore_on_server_6_0(self):
        self.check_forms("6.0")

    def test_a_replica_set_and_a_sharded_cluster(self):
        """mongorestore refuses the database config of a cluster; shardload says that it leaves it out."""
        some = {form: FORMS[form] for form in ("folder", "archive in a pipe", "its users")}
        self.check_forms("replica set", some)
        self.check_forms("cluster", some, ["--nsExclude=config.*"])

    def test_a_cluster_behind_the_router_of_the_project(self):
        self.check_forms("own router", {form: FORMS[form] for form in ("folder", "archive")}, ["--nsExclude=config.*"])

    def test_users_that_exist_are_kept_or_with_drop_replaced(self):
        client = self.connect("6.0")
        whole, of_shop = self.dump(client, "-o {at}"), self.dump(client, "-d shop --dumpDbUsersAndRoles -o {at}")

        def change():
            fill_users(client)
            client.shop.command("updateUser", "reader", customData={"changed": True})
            client.shop.command("createUser", "other", pwd="x", roles=[])
            client.other.command("createUser", "other", pwd="x", roles=[])
            client.admin.command("dropUser", "backup")
        for drop in ("", "--drop "):
            for at, of_vendor, own in ((whole, "{at}", "{at}"),
                                       (of_shop, "--restoreDbUsersAndRoles -d shop {at}/shop",
                                        "--restore-db-users-and-roles -d shop {at}/shop")):
                with self.subTest(drop=drop, of=of_vendor):
                    clear(client)
                    change()
                    self.run_vendor("mongorestore", client, drop + of_vendor, at)
                    expected = state(client)
                    clear(client)
                    change()
                    self.restore(client, drop + own, at)
                    self.assert_same(names(state(client)), names(expected))
                    self.verify(client, own, at, code=0 if drop else support.EXIT_VERIFICATION)

    def test_a_restore_that_is_killed_while_it_restores_users_is_resumed(self):
        client = self.connect("6.0")
        at = self.dump(client, "-o {at}")
        expected = state(client)
        for folder, mark in (("admin.system.roles", "created"), ("admin.system.users", "merged"),
                             ("admin.system.users", "journal"), ("admin.system.users", "restored.json")):
            with self.subTest(folder=folder, mark=mark):
                clear(client)
                work = self.scratch / f"work-{next(self._counter)}"
                words = ["restore", "--uri", self.uri(client), "--drop", "--work-dir", work, "--progress", "none"]
                running = self.start("shardload", *words, at)
                self.wait_for(lambda: not running.running() or any(work.glob(f"{folder}-*/{mark}")), mark)
                running.kill()
                self.shardload(*words, "--resume", at)
                self.assert_same(state(client), expected)

    def test_indexes_of_old_servers_are_converted_as_by_mongorestore(self):
        """Without being asked: with --convertLegacyIndexes, mongorestore builds the same indexes."""
        client = self.connect("6.0")
        clear(client)
        old = [{"v": 1, "key": {"a": True}, "ns": "shop.t", "name": "a_true", "dropDups": True, "safe": None},
               {"v": 0, "key": {"b": 0, "c": -1.5}, "name": "b"}, {"v": 1, "key": {"e": "2d", "d": ""}, "name": "d"},
               {"v": 1, "key": {"f": bson.Decimal128("-0")}, "name": "f", "unique": 1, "background": True},
               {"v": 1, "key": {"g": {"x": 1}}, "name": "g_1"}, {"v": 1, "key": {"h": 1}, "name": "h"}]
        at = making.folder(self.scratch / "old", [making.Namespace(
            "shop", "t", [{"_id": 1}], options={"autoIndexId": False, "flags": 1}, indexes=old)])
        self.run_vendor("mongorestore", client, "--convertLegacyIndexes {at}", at)
        expected = state(client)
        clear(client)
        outcome = self.restore(client, "{at}", at)
        self.assert_same(state(client), expected)
        for message in ("option autoIndexId: false becomes true", "index a_true: values of its key",
                        "index a_true: unknown options left out (dropDups, safe)"):
            self.assertIn(message, outcome.err)
        self.verify(client, "{at}", at)

    def test_the_indexes_of_a_dump_without_metadata(self):
        """Before 3.0 they were documents of system.indexes."""
        client = self.connect("6.0")
        clear(client)
        at = making.folder(self.scratch / "old", [
            making.Namespace("shop", "t", [{"_id": 1}], metadata=False),
            making.Namespace("shop", "system.indexes", [
                {"v": 1, "key": {"_id": 1}, "ns": "shop.t", "name": "_id_"},
                {"v": 1, "key": {"a": 1, "b": -1}, "ns": "shop.t", "name": "a_1_b_-1", "unique": True},
                {"v": 1, "key": {"a": 1}, "ns": "shop.missing", "name": "a_1"}], metadata=False)])
        self.run_vendor("mongorestore", client, "{at}", at)
        expected = {key: value for key, value in state(client).items() if "missing" not in key[0]}
        clear(client)
        self.restore(client, "{at}", at)
        self.assertIn(("shop.t", "a_1_b_-1"), expected)
        self.assert_same(state(client), expected)

    def test_the_page_has_every_option_of_mongorestore(self):
        """Each row: the same option, ours, "not needed" or "not done" with the reason."""
        help_text = vendor("mongorestore", "--help").decode()
        theirs = set(re.findall(r"(?m)^ {2,8}(?:-\w, )?--(\w+)", help_text))
        help_text = self.shardload("restore", "--help", "all").out
        ours = set(re.findall(r"(?m)^ +(?:-\w, )?(--[\w-]+)", help_text)) | {"-j"}
        page = (support.TREE / "docs" / "from-mongorestore.md").read_text("utf-8")
        rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `--")]
        listed = {}
        for options, answer, *reason in rows:
            for option in re.findall(r"`--(\w+)`", options):
                self.assertNotIn(option, listed)
                listed[option] = answer
                known = {f"--{option}"} if answer == "same" else set(re.findall(r"`(-[\w-]+)`", answer))
                self.assertTrue(known and known <= ours or answer in ("not needed", "not done") and reason,
                                (option, answer))
        self.assertEqual(set(listed), theirs | {"batchSize"})      # which mongorestore accepts and does not list
