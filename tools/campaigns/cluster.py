# SPDX-License-Identifier: Apache-2.0
"""Loads into a real cluster while an administrator changes it and its programs fail.

Three shards behind two real routers, other owners' collections in the same database. During each load, and while
`shardload verify --content` runs after it, one kind of disturbance happens at random moments; loads are killed and
resumed as well. Then the documents must be those of the source, through the router and by _id; the exit status must
be right, the balancer as before the load, and the other collections unchanged."""
import collections
import contextlib
import itertools
import json
import random
import subprocess
import threading
from typing import NamedTuple

from .common import Failure, build_folder
from .kills import LIMIT, OWN_IDS, Campaign, Load, Run, make_source

SECONDS = 6.0                 # duration of a load that is not disturbed, by --rate-limit
SHARDS = 3
LAST = f"s{SHARDS - 1}"       # the shard that is removed and added
PATIENCE = 8                  # stops of a load after which it is not disturbed any more
KEPT = 500                    # documents that a load with --mode delete does not name
# Not to be resumed, but loaded again: the shards of --only-shards have changed; movePrimary has copied an unsharded
# collection, which has another UUID then.
NOT_RESUMED = ("the cluster now has other shards", "belongs to a different load")
TEST_COMMANDS = "--mongod-option=--setParameter=enableTestCommands=1"


class How(NamedTuple):
    """A kind of load. `source`: of kills.SOURCES. `words`: its options. `key`: of a collection that its owner has
    sharded in many chunks. `stored`: what it holds before: half (other versions of half of the documents), all."""
    source: str
    words: str = ""
    key: dict = None
    stored: str = ""


LOADS = {
    "insert": How("plain"),
    "direct": How("plain", "--route direct"),
    "shards": How("plain", "--only-shards {shards}"),
    "both": How("plain", "--only-shards {shards} --route direct"),
    "range": How("json", '--shard-key {{"n":1}}'),
    "presplit": How("json", key={"n": "hashed"}),
    "upsert": How("json", "--mode upsert", stored="half"),
    "delete": How("json", "--mode delete", key={"_id": "hashed"}, stored="all"),
    "one shard": How("json", "--shard-key none"),
}


# ---- what happens during a load: generators that do one thing after the other, and repair it when they end ----

class Admin:
    """An administrator of the cluster, who works on the collection of one load."""

    def __init__(self, load):
        self.load, self.draw = load, random.Random(f"{load.name}-admin")
        self.client, self.servers = load.client, load.campaign.servers["cluster"]
        self.run, self.namespace = self.client.admin.command, f"{load.name}.t"

    def chunks(self):
        return list(self.client.config.chunks.find({"ns": self.namespace}).sort("min"))

    def shards(self):
        return [one["_id"] for one in self.client.config.shards.find({"draining": {"$ne": True}})]

    def start_balancer(self):
        """The owner starts the balancer, which the load has stopped."""
        if self.load.balancer == "full":
            self.run("balancerStart")

    def move(self, chunk, to=None):
        to = to or self.draw.choice([name for name in self.shards() if name != chunk["shard"]])
        self.run("moveChunk", self.namespace, bounds=[chunk["min"], chunk["max"]], to=to)

    def move_one(self):
        if found := self.chunks():
            self.move(self.draw.choice(found))

    def moves(self):
        while True:
            if self.draw.random() < 0.2:
                self.start_balancer()
            self.move_one()
            yield

    def splits(self):
        while True:
            found = self.chunks()
            if found and self.draw.random() < 0.6:
                one = self.draw.choice(found)
                self.run("split", self.namespace, bounds=[one["min"], one["max"]])
            pairs = [pair for pair in itertools.pairwise(found) if pair[0]["shard"] == pair[1]["shard"]]
            if pairs and self.draw.random() < 0.5:
                first, second = self.draw.choice(pairs)
                self.run("mergeChunks", self.namespace, bounds=[first["min"], second["max"]])
            yield

    def move_primary(self):
        while True:
            entry = self.client.config.databases.find_one({"_id": self.load.name})
            if entry:
                self.run("movePrimary", entry["_id"],
                         to=self.draw.choice([name for name in self.shards() if name != entry["primary"]]))
            yield

    def zones(self):
        """Adds a zone over a range of chunks on one shard, and removes it."""
        while True:
            found = self.chunks()
            if found:
                shard, (low, high) = self.draw.choice(self.shards()), sorted(self.draw.choices(range(len(found)), k=2))
                bounds = {"min": found[low]["min"], "max": found[high]["max"]}
                self.run("addShardToZone", shard, zone="z")
                try:
                    self.run("updateZoneKeyRange", self.namespace, **bounds, zone="z")
                    self.start_balancer()
                    yield
                    self.run("updateZoneKeyRange", self.namespace, **bounds, zone=None)
                finally:
                    self.client.config.tags.delete_many({})
                    self.run("removeShardFromZone", shard, zone="z")
            yield

    def drain(self):
        """Removes a shard, and adds it again after the load."""
        try:
            while self.run("removeShard", LAST)["state"] != "completed":
                self.empty_one()
                yield
            while True:
                yield
        finally:
            with contextlib.suppress(Exception):     # it is removed already
                while self.run("removeShard", LAST)["state"] != "completed":
                    with contextlib.suppress(Exception):
                        self.empty_one()
            with self.member(f"{LAST}-0") as shard:
                for name in shard.list_database_names():
                    if name not in ("admin", "config", "local"):
                        shard.drop_database(name)
            self.run("addShard", f"{LAST}/127.0.0.1:{self.servers.port(f'{LAST}-0')}", name=LAST)

    def empty_one(self):
        """Moves something away from the shard that is removed."""
        for one in self.client.config.chunks.find({"shard": LAST}).limit(1):
            self.run("moveChunk", one["ns"], bounds=[one["min"], one["max"]], to=self.draw.choice(self.shards()))
            return
        for one in self.client.config.databases.find({"primary": LAST}).limit(1):
            self.run("movePrimary", one["_id"], to=self.draw.choice(self.shards()))

    def jumbo(self):
        """Marks chunks as too large to be moved, tries to move them, and clears the marks."""
        try:
            while True:
                found = self.chunks()
                if found:
                    self.client.config.chunks.update_one({"_id": self.draw.choice(found)["_id"]},
                                                         {"$set": {"jumbo": True}})
                    self.start_balancer()
                    yield
                    self.move_one()
                    for one in self.client.config.chunks.find({"ns": self.namespace, "jumbo": True}).limit(1):
                        self.run("clearJumboFlag", self.namespace, find=one["min"])
                yield
        finally:
            self.client.config.chunks.update_many({}, {"$unset": {"jumbo": ""}})

    def routers(self):
        return [name for name in self.servers.names() if name.startswith("router")]

    def restart(self, names):
        try:
            self.servers.kill(self.draw.choice(names))
            yield
        finally:
            self.servers.start_again()

    def router_restarts(self):
        for _ in range(3):
            yield from self.restart(self.routers())
            yield

    def router_gone(self):
        try:
            self.servers.kill(self.draw.choice(self.routers()))
            while True:
                yield
        finally:
            self.servers.start_again()

    def shard_restarts(self):
        for _ in range(2):
            yield from self.restart([f"s{n}-0" for n in range(SHARDS)])
            yield

    def config_restarts(self):
        for _ in range(2):
            yield from self.restart(["cfg-0"])
            self.move_one()
            yield

    @contextlib.contextmanager
    def member(self, name):
        import pymongo
        with pymongo.MongoClient("127.0.0.1", self.servers.port(name), directConnection=True,
                                 serverSelectionTimeoutMS=LIMIT * 1000) as client:
            yield client

    def step_down(self, name):
        with self.member(name) as client:
            client.admin.command("replSetStepDown", 2, force=True, secondaryCatchUpPeriodSecs=0)

    def shard_elections(self):
        for _ in range(3):
            self.step_down(f"s{self.draw.randrange(SHARDS)}-0")
            yield

    def config_elections(self):
        for _ in range(3):
            self.step_down("cfg-0")
            yield
            self.move_one()
            yield

    def aborted_moves(self):
        """Kills the donor or the recipient of a chunk whose documents are copied: orphans stay."""
        for _ in range(2):
            if found := self.chunks():
                chunk = self.draw.choice(found)
                to = self.draw.choice([name for name in self.shards() if name != chunk["shard"]])
                step = self.draw.choice(["moveChunkHangAtStep4", "moveChunkHangAtStep5"])
                with self.member(f"{chunk['shard']}-0") as donor:
                    donor.admin.command("configureFailPoint", step, mode="alwaysOn")
                mover = threading.Thread(target=self.try_move, args=[chunk, to])
                mover.start()
                yield
                try:
                    self.servers.kill(self.draw.choice([chunk["shard"], chunk["shard"], to]) + "-0")
                finally:
                    self.servers.start_again()
                    with self.member(f"{chunk['shard']}-0") as donor:
                        donor.admin.command("configureFailPoint", step, mode="off")
                    mover.join()
            yield

    def try_move(self, *words):
        with contextlib.suppress(Exception):
            self.move(*words)

    def kills(self):
        """Only the load itself is killed."""
        while True:
            yield

    def anything(self):
        """Each time another one of the others."""
        while True:
            act = self.draw.choice([self.moves, self.splits, self.move_primary, self.zones, self.jumbo,
                                    self.router_restarts, self.shard_elections, self.config_elections])()
            with contextlib.closing(act):
                for _ in itertools.islice(act, 2):
                    yield


FAULTS = {
    "moves": Admin.moves, "splits, merges": Admin.splits, "movePrimary": Admin.move_primary, "zones": Admin.zones,
    "shard removed": Admin.drain, "jumbo chunks": Admin.jumbo, "aborted moves": Admin.aborted_moves,
    "router restarts": Admin.router_restarts, "a router less": Admin.router_gone,
    "shard restarts": Admin.shard_restarts, "shard elections": Admin.shard_elections,
    "config restarts": Admin.config_restarts, "config elections": Admin.config_elections,
    "kills": Admin.kills, "anything": Admin.anything,
}


# ---- one load ----

class ClusterLoad(Load):
    """`kind` is the disturbance, `deployment` the kind of load."""

    seconds = 1.2 * SECONDS

    def __init__(self, campaign, number, fault, load):
        Run.__init__(self, campaign, number, fault, load)
        self.how = LOADS[load]
        self.source = campaign.sources[self.how.source]
        self.kills_each = 2 if fault == "kills" else self.draw.choice([0, 0, 1, 2])
        self.balancer = self.draw.choice(["full", "full", "off"])
        self.over, self.acts, self.refusals = threading.Event(), 0, collections.Counter()
        self.shared = "{shards}" in self.how.words
        self.stops = 0            # runs that ended with exit code 4
        self.part = 0             # of the loaders that share a load, the one that runs

    def command(self, verb):
        return [build_folder() / "bin" / "shardload", verb, "--uri", self.campaign.servers["cluster"].uri,
                "-d", self.name, "-c", "t", "--progress", "none", "-j", self.draw.randint(1, 3)]

    def words(self, resume):
        rate = self.source.documents / SECONDS * self.draw.uniform(0.8, 2)
        given = self.how.words.format(shards=("s0", f"s1,{LAST}")[self.part] if self.part < 2 else "").split()
        if self.part == 2:
            given = [*([] if self.shared else given), "--again"]
        return [*self.command("load"), "--work-dir", self.work,
                "--batch-size", self.draw.choice(self.source.batches), "--rate-limit", int(rate),
                "--retry-timeout", LIMIT, *(["--resume"] if resume else []), *given, *self.source.words]

    # What is in the database.

    def prepare(self):
        client, name = self.client, self.name
        client.shardload.balancer.delete_many({})
        client.admin.command("balancerStart" if self.balancer == "full" else "balancerStop")
        client.admin.command("enableSharding", name)
        for database in (name, f"{name}_other"):
            client[database].other.insert_many({"_id": n, "n": n} for n in range(300))
            client[database].other.create_index("n", unique=True)
        client.admin.command("shardCollection", f"{name}.theirs", key={"n": "hashed"}, numInitialChunks=6)
        client[name].theirs.insert_many({"_id": n, "n": n} for n in range(300))
        if self.how.key:
            client.admin.command("shardCollection", f"{name}.t", key=self.how.key, numInitialChunks=12)
        if self.how.stored == "half":
            client.admin.command("shardCollection", f"{name}.t", key={"_id": "hashed"}, numInitialChunks=6)
            client[name].t.insert_many({"_id": n, "old": n} for n in range(0, OWN_IDS, 2))
        elif self.how.stored == "all":
            client[name].t.insert_many({"_id": n, "old": n} for n in range(OWN_IDS + KEPT))

    def of_others(self):
        found = {}
        for database in (self.name, f"{self.name}_other"):
            for name in self.client[database].list_collection_names():
                if name not in ("t", "t.sources"):
                    collection = self.client[database][name]
                    found[database, name] = (sorted(one["_id"] for one in collection.find()),
                                             sorted(collection.index_information()))
        return found

    # The disturbance.

    def disturb(self):
        admin = Admin(self)
        while not self.over.wait(self.draw.uniform(0.1, 1.5)) and self.stops < PATIENCE:
            act = FAULTS[self.kind](admin)
            try:
                for _ in act:
                    self.acts += 1
                    if self.over.wait(self.draw.uniform(0.2, 1.2)) or self.stops >= PATIENCE:
                        break
                else:
                    break
            except Exception as error:  # noqa: BLE001 (an administrator's command that is refused)
                self.refusals[str(error)[:150]] += 1
            finally:
                act.close()

    def run_to_the_end(self):
        self.prepare()
        before = self.of_others()
        thread = threading.Thread(target=self.disturb, daemon=True)
        thread.start()
        try:
            problem = self.run_all_parts() or self.verify()
            mode = self.client.admin.command("balancerStatus")["mode"]
            marks = self.client.shardload.balancer.count_documents({})
        finally:
            self.over.set()
            thread.join()
            self.campaign.count_acts(self)
        if not problem and (mode != self.balancer or marks):
            problem = f"the balancer is {mode} instead of {self.balancer}, {marks} marks"
        return problem or self.compare_all(before)

    def run_all_parts(self):
        again = 0
        problem = super().run_to_the_end()
        while True:
            if problem and any(text in self.outputs[-1] for text in NOT_RESUMED):
                self.part, again = 2, again + 1
            elif problem or self.part > 0 or not self.shared:
                break
            else:
                self.part = 1
            self.work = self.folder / f"work-{self.part}-{again}"
            problem = super().run_to_the_end()
        return problem

    def may_stop(self):
        self.stops += 1
        self.campaign.count_stop(self)
        return not any(text in self.outputs[-1] for text in NOT_RESUMED)

    def compare(self):
        """The end of one run: its figures. The documents are compared at the end of all."""
        record = json.loads((self.work / "run.json").read_text("utf-8"))
        if not record["accounting"]["addsUp"]:
            return f"the accounting does not hold: {record['accounting']}"
        rejects = sum(len(rows) for one in self.source.expected for rows in one.rejects.values())
        found = sum(record["accounting"][name] for name in ("rejectedByParser", "rejectedByServer"))
        if found != rejects and not self.shared:
            return f"{found} rejects instead of {rejects}"
        return None

    def verify(self):
        """`verify --content` while the disturbance goes on; servers that restart may end it."""
        if self.how.stored == "all":
            return None
        words = [word for word in self.source.words if word not in ("--mode", "upsert")]
        for _ in range(20):
            done = subprocess.run(list(map(str, [*self.command("verify"), "--content", *words])), cwd=self.folder,
                                  capture_output=True, text=True, timeout=LIMIT, check=False)
            self.outputs.append(done.stdout + done.stderr)
            (self.folder / "verify").write_text(self.outputs[-1])
            if done.returncode != 4:
                break
            self.campaign.count_stop(self)
        return None if done.returncode in (0, 1) else f"verify: exit status {done.returncode}"

    def compare_all(self, before):
        after = self.of_others()
        if before != after:
            return f"collections of others: {before.keys() ^ after.keys() or 'changed'}"
        counted = self.client[self.name].t.count_documents({})
        if counted != len(self.stored()):
            return f"{counted} documents are counted, {len(self.stored())} found"
        if self.how.stored == "all":
            ids = sorted(document["_id"] for document in self.stored())
            return None if ids == list(range(OWN_IDS, OWN_IDS + KEPT)) else f"{len(ids)} documents instead of {KEPT}"
        return self.compare_documents()

    def clear(self):
        super().clear()
        self.client.drop_database(f"{self.name}_other")


class ClusterCampaign(Campaign):
    servers_of = dict.fromkeys(LOADS, "cluster")

    def __init__(self, options, running, folder):
        pairs = list(itertools.product(options.faults or FAULTS, options.loads or LOADS))
        draw = random.Random(options.seed)
        draw.shuffle(pairs)
        # All kinds of faults first, whatever the count.
        pairs.sort(key=lambda pair, seen=collections.Counter(): seen.update([pair[0]]) or seen[pair[0]])
        super().__init__(options, running, folder, [itertools.cycle(pairs)])
        self.acts, self.stops, self.refusals = (collections.Counter() for _ in range(3))
        self.sources = {kind: make_source(kind, folder / "sources" / kind)
                        for kind in sorted({one.source for one in LOADS.values()})}

    def enough(self):
        return sum(self.loads.values()) >= self.kills_to_do

    def make(self, *words):
        return ClusterLoad(self, *words)

    def count_acts(self, load):
        self.acts[load.kind] += load.acts
        self.refusals[load.kind] += sum(load.refusals.values())
        print(f"{load.kind}, {load.deployment}: {load.acts} acts, {load.runs} runs, {load.kills} kills; "
              f"{dict(load.refusals.most_common(3)) or ''}", flush=True)

    def count_stop(self, load):
        self.stops[load.kind] += 1
        line = next((line for line in load.outputs[-1].splitlines() if line.startswith("shardload: ")), "")
        print(f"    stopped, {load.kind}, {load.deployment}: {line[:300]}", flush=True)

    def table(self):
        lines = [f"{kind:20}{self.acts[kind]:6} acts, {self.refusals[kind]:4} refused; "
                 f"{self.stops[kind]:3} runs ended with exit code 4 and were resumed"
                 for kind in FAULTS if self.acts[kind]]
        return "\n".join([super().table(), *lines])


def start(folder):
    import real_servers
    from .common import servers
    programs = real_servers.REAL / "4.4" / "bin"
    if not (programs / "mongos").exists():
        raise Failure("SHARDLOAD_REAL must name a folder with 4.4/bin/mongod and 4.4/bin/mongos")
    return servers.Servers(folder, "--shards", SHARDS, "--routers", 2, "--mongod", programs / "mongod",
                           "--mongos", programs / "mongos", "--cache", "0.25", TEST_COMMANDS, *servers.SAVING)


def run(options, folder):
    options.faults, options.loads = options.sources, options.deployments
    campaign = ClusterCampaign(options, {"cluster": start(folder / "servers" / "cluster")}, folder)
    campaign.run(False)
    print(campaign.table())
    print(f"seed {options.seed}")
    return not campaign.failures
