# SPDX-License-Identifier: Apache-2.0
"""Dumps by the vendor's mongodump, restored by both programs: the server then holds the same. SHARDLOAD_REAL names
a folder with VERSION/bin/mongod of three versions and tools/bin; the tests skip without it."""
import contextlib
import datetime
import hashlib
import os
import pathlib
import re
import subprocess

import bson
import pymongo

import dump_making as making
import servers
import support

REAL = pathlib.Path(os.environ.get("SHARDLOAD_REAL") or "/nowhere")
# Servers: the version, and options of tools/localcluster.
SERVERS = {
    "4.4": ("4.4", ["--standalone"]),
    "5.0": ("5.0", ["--standalone"]),
    "6.0": ("6.0", ["--standalone"]),
    "replica set": ("6.0", ["--shards", "0", "--replicas", "1"]),
    "cluster": ("4.4", ["--shards", "2", "--mongos", REAL / "4.4" / "bin" / "mongos"]),
    "own router": ("6.0", ["--shards", "2"]),
}
LONG = "a_name_that_is_longer_than_the_name_of_a_file_may_be/" * 4

OF_THE_SERVER = ("admin.system.version", "admin.system.keys", "admin.system.new_users", "shardload.balancer")

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


def vendor(name, *words, **more):
    done = subprocess.run([REAL / "tools" / "bin" / name, *words], capture_output=True, timeout=support.LIMIT,
                          check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{name} {words}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def fill_users(client):
    for database, users in (("admin", ("root", "backup")), ("shop", ("reader", "writer"))):
        client[database].command("createRole", f"{database} role", privileges=[], roles=[])
        for name in users:
            client[database].command("createUser", name, pwd="x", roles=[f"{database} role"],
                                     customData={"n": name}, mechanisms=["SCRAM-SHA-256"])


def names(state_of):
    """A state with the users' names and data in place of their documents, which have salts."""
    return {key: value for key, value in state_of.items() if key != ("admin.system.users", "documents")}


def fill(client, version, users=True):
    """Something of each kind that a server of this version stores."""
    shop = client.shop
    shop.orders.insert_many({"_id": n, "n": n, "s": f"text {n}", "when": datetime.datetime(2099, 1, 1)}
                            for n in range(500))
    shop.orders.create_index([("n", 1), ("_id", -1)], unique=True)
    shop.orders.create_index("when", expireAfterSeconds=10 ** 8, name="ttl")
    shop.orders.create_index([("s", "text")], weights={"s": 3})
    shop.orders.create_index("s", partialFilterExpression={"n": {"$gt": 5}, "s": {"$exists": True}})
    shop.command("collMod", "orders", validator={"n": {"$gte": 100}})
    shop.create_collection("log", capped=True, size=1 << 20, max=50)
    shop.log.insert_many({"n": n} for n in range(80))
    shop.create_collection("sorted", collation={"locale": "de", "strength": 2})
    shop.sorted.create_index("a", collation={"locale": "simple"})
    shop.sorted.insert_many({"a": a} for a in "äAb")
    shop.create_collection("cheap", viewOn="orders", pipeline=[{"$match": {"n": {"$lt": 3}}}])
    shop[LONG].insert_many({"_id": n} for n in range(5))
    shop[LONG].create_index("x")
    shop["odd/name %25 é"].insert_one({"_id": 1})
    shop.create_collection("empty")
    shop["system.js"].insert_one({"_id": "f", "value": bson.Code("function() { return 1; }")})
    if users:
        fill_users(client)
    client.admin.settings.insert_many({"_id": n} for n in range(3))
    client.other.t.insert_many({"n": n} for n in range(3))
    if version >= "5.0":
        shop.create_collection("series", timeseries={"timeField": "t", "metaField": "m"}, expireAfterSeconds=10 ** 9)
        shop.series.insert_many({"t": datetime.datetime(2099, 1, 1, n), "m": n % 3, "v": n} for n in range(20))
        shop.series.create_index([("m", 1), ("t", 1)])
    if version >= "6.0":
        shop.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
        shop.clustered.insert_many({"_id": n} for n in range(9))


def databases(client):
    return [name for name in client.list_database_names() if name not in ("config", "local")]


def clear(client):
    for name in databases(client):
        if name != "admin":
            client.drop_database(name)
    for name in ("admin", "shop", "other", "new", "a"):
        with contextlib.suppress(pymongo.errors.OperationFailure):      # the project's router knows no users
            client[name].command("dropAllUsersFromDatabase")
            client[name].command("dropAllRolesFromDatabase")
    for name in client.admin.list_collection_names():
        if not name.startswith("system."):
            client.admin.drop_collection(name)


def state(client):
    """{(namespace, "kind", "options", "documents" or the name of an index): value}"""
    raw = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    found = {}
    for name in databases(client):
        for one in client[name].list_collections():
            title = f"{name}.{one['name']}"
            if title in OF_THE_SERVER or one["name"] == "system.views":
                continue
            found[title, "kind"], found[title, "options"] = one["type"], one["options"]
            if one["type"] == "view":
                continue
            for index in client[name][one["name"]].list_indexes():
                found[title, index["name"]] = index.to_dict()
            if one["type"] == "collection":
                if title == "admin.system.users":
                    users = client[name][one["name"]].find()
                    found[title, "names"] = {one["_id"]: one.get("customData") for one in users}
                documents = sorted(bytes(each.raw) for each in client[name].get_collection(
                    one["name"], codec_options=raw).find())
                found[title, "documents"] = hashlib.md5(b"".join(documents)).digest()
    return found


class RealDumps(support.Case):
    @classmethod
    def setUpClass(cls):
        if not (REAL / "tools" / "bin" / "mongodump").exists():
            raise support.unittest.SkipTest("SHARDLOAD_REAL does not name a folder with tools/bin/mongodump")
        folder = support.tempfile.mkdtemp(prefix="shardload-real-")
        cls.addClassCleanup(support.shutil.rmtree, folder, ignore_errors=True)
        cls.folder = pathlib.Path(folder)

    def connect(self, name):
        """Starts these servers for the test. Returns a client."""
        version, options = SERVERS[name]
        server = servers.Servers(self.folder / name, "--mongod", REAL / version / "bin" / "mongod", *options,
                                 *servers.SAVING)
        self.addCleanup(server.down)
        client = pymongo.MongoClient(server.uri)
        self.addCleanup(client.close)
        fill(client, version, users=name != "own router")
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
        dumps = {form: self.dump(client, forms[form][0]) for form in forms}
        for form, (_, of_vendor, own) in forms.items():
            with self.subTest(form):
                clear(client)
                self.run_vendor("mongorestore", client, " ".join([of_vendor, *of_vendor_too]), dumps[form],
                                input=dumps[form].read_bytes() if of_vendor.startswith("|") else b"")
                expected = state(client)
                clear(client)
                self.restore(client, own, dumps[form])
                self.assert_same(state(client), expected)
                if not own.startswith("|"):
                    self.verify(client, own, dumps[form])

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
        for folder, mark in (("admin.system.roles", "created"), ("admin.system.users", "registry"),
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
