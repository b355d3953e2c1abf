# SPDX-License-Identifier: Apache-2.0
"""The vendor's tools and servers of several versions; content of each kind for dumps, and all that a server holds
afterwards. SHARDLOAD_REAL names a folder with VERSION/bin/mongod of three versions, 4.4/bin/mongos and tools/bin."""
import contextlib
import datetime
import hashlib
import os
import re
import subprocess

import bson
import pymongo

import servers
import support
from servers import REAL

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


def start(name, folder):
    """Starts these servers. Returns a servers.Servers."""
    version, options = SERVERS[name]
    return servers.Servers(folder / name, "--mongod", REAL / version / "bin" / "mongod", *options, *servers.SAVING)


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
    for name in ("admin", "shop", "other", "new", "a", "busy"):
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


def work_files(work):
    """The names of the files in a work directory, without those that a killed program was about to rename."""
    return {str(path.relative_to(work)) for path in work.rglob("*")
            if path.is_file() and not re.search(r"\.~[a-z0-9]{6}$", path.name)}


class RouterCase(support.ClusterCase):
    """Two shards of server 4.4 behind a real mongos."""

    @classmethod
    def setUpClass(cls):
        programs = REAL / "4.4" / "bin"
        if not (programs / "mongos").exists():
            raise support.unittest.SkipTest("SHARDLOAD_REAL does not name a folder with 4.4/bin/mongos")
        folder = support.tempfile.mkdtemp(prefix="shardload-real-")
        cls.addClassCleanup(support.shutil.rmtree, folder, ignore_errors=True)
        cls.cluster = servers.Servers(f"{folder}/cluster", "--shards", "2", "--mongod", programs / "mongod",
                                      "--mongos", programs / "mongos", *servers.SAVING)
        cls.addClassCleanup(cls.cluster.down)
        os.environ["SHARDLOAD_TEST_REAL_URI"] = cls.cluster.uri
        cls.variable = "SHARDLOAD_TEST_REAL_URI"
        super().setUpClass()
