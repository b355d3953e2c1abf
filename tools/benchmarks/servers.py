# SPDX-License-Identifier: Apache-2.0
"""Starts one deployment at a time with tools/localcluster."""
import json
import os
import re
import shutil
import time
from pathlib import Path

from .process import Failure, run

LOCALCLUSTER = Path(__file__).resolve().parent.parent / "localcluster"
DATABASE, COLLECTION = "bench", "documents"
TOO_EARLY = 5841000  # error code of fsync: the server has no stable checkpoint yet
PATIENCE = 60        # seconds

# Kinds of deployments, and the options of tools/localcluster.
KINDS = {
    "mongod": ["--standalone"],
    "replica": ["--shards", "0", "--replicas", "3"],
    "replica1": ["--shards", "0", "--replicas", "1"],
    "replica2": ["--shards", "0", "--replicas", "2"],
    "cluster1": ["--shards", "1"],
    "cluster": ["--shards", "2"],
    "cluster3": ["--shards", "3"],
    "cluster4": ["--shards", "4"],
    "mongos": ["--shards", "2"],
    "mongos2": ["--shards", "2", "--routers", "2"],
}
REAL = "mongos", "mongos2"  # with the programs of SHARDLOAD_REAL
NAMES = {"mongod": "mongod", "replica": "replica set of three", "cluster1": "one shard",
         "cluster": "two shards", "cluster4": "four shards", "mongos": "a real mongos, two shards",
         "mongos2": "two real mongos, two shards"}


class Deployment:
    """Running servers, and a client for work between measurements."""

    def __init__(self, kind, folder, more=()):
        import pymongo
        self.kind = kind
        self.folder = folder
        if kind in REAL:
            bin_folder = Path(os.environ["SHARDLOAD_REAL"]) / "4.4/bin"
            more = ["--mongod", bin_folder / "mongod", "--mongos", bin_folder / "mongos", *more]
        run([LOCALCLUSTER, "up", "--dir", folder, *KINDS[kind], *more])
        state = json.loads((folder / "cluster.json").read_text("utf-8"))
        self.uri = state["uri"]
        self.client = pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=20000)
        self.sharded = kind.startswith("cluster") or kind in REAL
        self.clustered = kind not in REAL  # server 5.3 has clustered collections
        self.version = self.client.server_info()["version"]
        # Servers that store documents, for commands that a router does not forward.
        self.processes = state["processes"]
        self.data_servers = [process for process in self.processes
                        if process["role"] == "server" and not process["name"].startswith("cfg")]
        self.members = [pymongo.MongoClient("127.0.0.1", process["port"], directConnection=True)
                        for process in self.data_servers]
        if self.sharded:
            self.client.admin.command("balancerStop")

    def close(self):
        for client in [self.client, *self.members]:
            client.close()
        run([LOCALCLUSTER, "down", "--dir", self.folder])

    @property
    def plain_uri(self):
        """URI of the hosts that accept writes, for programs that do not support replica sets."""
        if self.kind == "replica":
            return f"mongodb://{self.client.admin.command('hello')['primary']}/"
        return re.match(r"mongodb://[^/?]+", self.uri).group() + "/"

    @property
    def durable(self):
        """The write concern that the loader uses for `majority` on this deployment."""
        return {"w": 1, "j": True} if self.kind == "mongod" else {"w": "majority"}

    @property
    def collection(self):
        return self.client[DATABASE][COLLECTION]

    def empty(self, database=DATABASE):
        """Drops the database and makes the servers write their caches to their files."""
        self.client.drop_database(database)
        self.write_out()

    def write_out(self):
        """Makes all servers write their caches to their files."""
        for member in self.members:
            write_out(member)

    def expect(self, documents, database=DATABASE):
        found = self.client[database][COLLECTION].estimated_document_count()
        if found != documents:
            raise Failure(f"the {self.kind} stores {found} documents, not {documents}")

    # Disk space, memory and CPU time.

    def stored(self):
        """(documents, bytes of data, bytes of data files, bytes of index files), by $collStats."""
        found = [0, 0, 0, 0]
        for member in self.members:
            for entry in member[DATABASE][COLLECTION].aggregate(
                    [{"$collStats": {"storageStats": {}}}]):
                stats = entry["storageStats"]
                figures = (stats["count"], stats["size"], stats["storageSize"],
                           stats["totalIndexSize"])
                found = [a + b for a, b in zip(found, figures)]
        return found

    def file_bytes(self):
        """Bytes on the disk of (all files, journals) of the data directories."""
        total = journal = 0
        for process in self.data_servers:
            for path in (self.folder / process["name"]).rglob("*"):
                try:
                    size = path.lstat().st_blocks * 512
                except FileNotFoundError:  # the server has just deleted it
                    continue
                total += size
                journal += size if path.parent.name == "journal" else 0
        return total, journal

    def peak_memory(self):
        """The sum of the peak memories of the servers that store documents, in bytes."""
        return sum(int(re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process['pid']}/status")
                                 .read_text("utf-8"), re.M).group(1)) * 1024
                   for process in self.data_servers)

    def cpu_seconds(self):
        """CPU time of all servers since their start, with config servers and router."""
        ticks = 0
        for process in self.processes:
            fields = Path(f"/proc/{process['pid']}/stat").read_text("utf-8").rpartition(")")[2]
            ticks += sum(map(int, fields.split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def smallest_id(self):
        return next(iter(self.collection.find({}, {"_id": 1}).sort("_id", 1).limit(1)))["_id"]

    # The loader's layout, for loads by other programs.

    def layout(self):
        """[(lower bound, upper bound, shard)] of the collection's ranges, ascending."""
        if not self.sharded:
            return []
        config = self.client.config
        entry = config.collections.find_one({"_id": f"{DATABASE}.{COLLECTION}"})
        mine = [{"uuid": entry["uuid"]}, {"ns": f"{DATABASE}.{COLLECTION}"}]  # since 5.0, before it
        chunks = config.chunks.find({"$or": mine}).sort("min", 1)
        return [(chunk["min"], chunk["max"], chunk["shard"]) for chunk in chunks]

    def lay_out(self, layout, kind=1, **options):
        """Creates the empty collection, shards it, and splits and moves its chunks as in `layout`."""
        name = f"{DATABASE}.{COLLECTION}"
        self.client[DATABASE].create_collection(COLLECTION, **options)
        if not self.sharded:
            return
        admin = self.client.admin
        admin.command("enableSharding", DATABASE)
        admin.command("shardCollection", name, key={"_id": kind})
        for lower, _, _ in layout[1:]:
            admin.command("split", name, middle=lower)
        for (lower, upper, shard), (_, _, placed) in zip(layout, self.layout()):
            if placed != shard:
                admin.command("moveChunk", name, bounds=[lower, upper], to=shard)


def write_out(member):
    """Makes a server write its caches to disk. A new member of a replica set cannot do that until it
    has a stable checkpoint."""
    import pymongo
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            member.admin.command("fsync")
            return
        except pymongo.errors.OperationFailure as error:
            if error.code != TOO_EARLY or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


class Servers:
    """Starts a deployment after stopping the previous one."""

    def __init__(self, folder):
        self.folder = folder / "servers"
        self.running = None
        self.version = None

    def start(self, kind, *more):
        """Starts a new deployment. `more`: options for tools/localcluster, which override those of
        `kind`."""
        self.stop()
        self.running = Deployment(kind, self.folder, more)
        self.version = self.running.version
        return self.running

    def stop(self):
        if self.running:
            running, self.running = self.running, None
            running.close()
        elif self.folder.exists():  # the start was interrupted
            run([LOCALCLUSTER, "down", "--dir", self.folder], allowed=(0, 1))
            shutil.rmtree(self.folder, ignore_errors=True)
