# SPDX-License-Identifier: Apache-2.0
"""Kills and resumes restores of dumps that the vendor's mongodump makes, in each of its forms.

A restore is killed (SIGKILL) once or twice at random times between its start and its end, and resumed until it ends.
Then all that the servers hold must be identical to the end of a restore that was not killed: namespaces, documents byte
by byte, options, indexes, users and roles, the state of the balancer; and the same files must be in the work
directory. A temporary collection that is left is a difference."""
import itertools
import json
import random
import shutil
import time
from typing import NamedTuple

from .common import Failure, build_folder
from .kills import Campaign, Run

DEPLOYMENTS = ["6.0", "replica set", "cluster"]       # of tests/real_servers.py
KEYS = {"shop.large": "{key: {n: 1}}", "shop.orders": "{key: {n: 1}}", "other.t": "{key: {_id: hashed}}"}
LARGE = 20000                 # documents of a collection, so that its load takes some time


class Kind(NamedTuple):
    """`dump`: options of mongodump, in which {at} is the dump; after |, to standard output. `restore`: options of
    shardload. `before`: what the servers have before the restore. `only`: the deployment."""
    dump: str
    restore: str
    before: str = ""
    only: str = ""


KINDS = {
    "folder": Kind("-o {at}", "{at}"),
    "gzip folder": Kind("--gzip -o {at}", "{at}"),
    "archive": Kind("--archive={at}", "{at}"),
    "gzip archive": Kind("--gzip --archive={at}", "{at}"),
    "pipe": Kind("| --archive", "| -"),
    "database": Kind("-d shop -o {at}", "-d new {at}/shop"),
    "file": Kind("-d shop -c large -o {at}", "-d a -c b {at}/shop/large.bson"),
    "its users": Kind("-d shop --dumpDbUsersAndRoles -o {at}", "-d shop --restore-db-users-and-roles {at}/shop"),
    "drop": Kind("-o {at}", "--drop {at}", "other"),
    "drop, archive": Kind("--archive={at}", "--drop {at}", "other"),
    "drop users": Kind("-d shop --dumpDbUsersAndRoles --archive={at}",
                       "-d shop --drop --restore-db-users-and-roles {at}", "other"),
    "existing": Kind("-o {at}", "{at}", "part"),
    "oplog": Kind("--oplog -o {at}", "--oplog-replay {at}", only="replica set"),
    "oplog, archive": Kind("--oplog --gzip --archive={at}", "--oplog-replay {at}", only="replica set"),
    "oplog, drop": Kind("--oplog --archive={at}", "--drop --oplog-replay {at}", "other", only="replica set"),
    "sharded": Kind("-o {at}", "--shard-keys {keys} {at}", only="cluster"),
    "into sharded": Kind("--archive={at}", "{at}", "sharded", only="cluster"),
}


class Content:
    """The content of a deployment that is dumped; what it holds before a restore; all that it holds."""

    def __init__(self, name, client):
        import real_servers
        self.name, self.client, self.real = name, client, real_servers
        self.raw = real_servers.bson.CodecOptions(document_class=real_servers.bson.raw_bson.RawBSONDocument)
        self.documents = []

    def fill(self):
        self.real.fill(self.client, self.real.SERVERS[self.name][0])
        shop = self.client.shop
        shop.large.insert_many({"_id": n, "n": n * 7919 % LARGE, "s": "x" * (n % 200)} for n in range(LARGE))
        shop.large.create_index("n")
        shop.unique.insert_many({"_id": n, "u": n} for n in range(3000))
        shop.unique.create_index("u", unique=True)
        self.documents = list(shop.get_collection("large", codec_options=self.raw).find())

    def prepare(self, before):
        """Makes what is on the servers before a restore."""
        self.clear()
        shop = self.client.shop
        if before == "other":
            self.real.fill_users(self.client)
            self.client.other.command("createUser", "more", pwd="x", roles=[])
            shop.command("createUser", "more", pwd="x", roles=[])
            shop.large.insert_many({"_id": -n, "n": n} for n in range(50))
            shop.create_collection("unique", capped=True, size=4096)
            shop.create_collection("log")
            shop.cheap.insert_one({"_id": 1})
            shop.kept.insert_one({"_id": 1})
        elif before == "part":
            shop.get_collection("large", codec_options=self.raw).insert_many(self.documents[::3])
            shop.large.create_index("s")
        elif before == "sharded":
            self.client.admin.command("enableSharding", "shop")
            self.client.admin.command("shardCollection", "shop.large", key={"_id": 1})
            self.client.admin.command("split", "shop.large", middle={"_id": LARGE // 2})
            shop.large.insert_one({"_id": -1})

    def state(self):
        found = self.real.state(self.client)
        found["balancer", "settings"] = [
            {key: one.get(key) for key in ("_id", "stopped", "mode")} for one in self.client.config.settings.find()]
        found["balancer", "marks"] = self.client.shardload.balancer.count_documents({})
        return found

    def clear(self):
        self.real.clear(self.client)


class Restore(Run):
    """A restore of one kind of dump."""

    def __init__(self, campaign, number, kind, deployment):
        super().__init__(campaign, number, kind, deployment)
        self.how, self.content = KINDS[kind], campaign.contents[deployment]
        self.at = campaign.dumps[deployment, self.how.dump]
        self.pipe = self.at if self.how.restore.startswith("|") else None
        self.kills_each = self.draw.choice([1, 1, 2])

    def words(self, resume):
        given = self.how.restore.format(at=self.at, keys=self.campaign.keys).lstrip("| ").split()
        return [build_folder() / "bin" / "shardload", "restore", "--uri", self.campaign.servers[self.deployment].uri,
                "--work-dir", self.work, "--progress", "none", "-j", self.draw.randint(1, 3),
                "--batch-size", self.draw.choice([50, 300, 1000]), "--collections-at-once", self.draw.randint(1, 4),
                *(["--resume"] if resume else []), *given]

    def progress(self):
        return sum(1 for _ in self.work.rglob("*"))

    def run_to_the_end(self):
        key = self.kind, self.deployment
        if key not in self.campaign.expected:
            whole = Whole(self.campaign, f"whole-{self.deployment}-{self.kind}", *key)
            problem = whole.run_to_the_end()
            if problem:
                return f"without a kill: {problem}"
            self.campaign.expected[key] = whole.last_seconds, whole.result()
            shutil.rmtree(whole.folder)
        self.seconds = self.campaign.expected[key][0]
        return self.run_prepared()

    def run_prepared(self):
        self.content.prepare(self.how.before)
        return super().run_to_the_end()

    def one_run(self, resume, kill):
        begun = time.monotonic()
        code = super().one_run(resume, kill)
        self.last_seconds = time.monotonic() - begun
        return code

    def result(self):
        """All that the servers hold, the names of the files in the work directory, and the outcomes."""
        found = self.content.state()
        if self.how.before == "other":         # their passwords have new salts each time
            del found["admin.system.users", "documents"]
        record = json.loads((self.work / "restore.json").read_text("utf-8"))
        found.update({("outcome", row["namespace"]): (row["exitCode"], row["indexes"]) for row in record["namespaces"]})
        # Only files, no folders: whether a small collection has a folder depends on a resume.
        found.update({("file", name): True for name in self.content.real.work_files(self.work) if "/" not in name})
        return found

    def compare(self):
        expected, found = self.campaign.expected[self.kind, self.deployment][1], self.result()
        differ = [key for key in sorted(expected.keys() | found.keys()) if expected.get(key) != found.get(key)]
        return "; ".join(f"{key}: {str(found.get(key))[:400]} instead of {str(expected.get(key))[:400]}"
                         for key in differ[:5]) or None

    def clear(self):
        self.content.clear()


class Whole(Restore):
    """A restore that is not killed."""

    def run_to_the_end(self):
        self.kills_each = 0
        return self.run_prepared()

    def compare(self):
        return None


class Restores(Campaign):
    servers_of = {name: name for name in DEPLOYMENTS}
    kills_servers = False

    def __init__(self, options, running, folder):
        draw = random.Random(options.seed)
        lanes = []
        for name in running:
            kinds = [kind for kind in options.sources or KINDS if KINDS[kind].only in ("", name)]
            draw.shuffle(kinds)
            lanes.append(itertools.cycle([(kind, name) for kind in kinds]))
        super().__init__(options, running, folder, lanes)
        self.expected = {}        # (kind, deployment): seconds and result of a restore that is not killed
        self.contents = {name: Content(name, client) for name, client in self.clients.items()}
        self.keys = folder / "keys.yaml"
        self.keys.write_text("".join(f"{name}: {key}\n" for name, key in KEYS.items()))
        self.dumps = {}           # (deployment, options of mongodump): path
        for name in running:
            self.dump_all(name, sorted({how.dump for how in KINDS.values() if how.only in ("", name)}))

    def dump_all(self, name, forms):
        import busy_writer

        class Writer(busy_writer.Writer):
            def one_round(self, number):
                super().one_round(number)
                self.database.command("createUser", f"user {number}", pwd="x", roles=[])
                if number >= 3:
                    self.database.command("dropUser", f"user {number - 3}")
        content = self.contents[name]
        content.clear()
        content.fill()
        writer = Writer(self.clients[name], "busy", True) if name == "replica set" else None
        if writer:
            writer.prepare()
            writer.start()
        for number, words in enumerate(forms):
            at = self.folder / f"{name}-{number}".replace(" ", "-")
            out = content.real.vendor("mongodump", "--uri", self.servers[name].uri,
                                      *words.format(at=at).lstrip("| ").split())
            if words.startswith("|"):
                at.write_bytes(out)
            self.dumps[name, words] = at
        if writer:
            writer.stop()

    def make(self, *words):
        return Restore(self, *words)


def run(options, folder):
    import real_servers
    if not (real_servers.REAL / "tools" / "bin" / "mongodump").exists():
        raise Failure("SHARDLOAD_REAL must name a folder with the servers and tools of tests/real_servers.py")
    campaign = Restores(options, {name: real_servers.start(name, folder / "servers")
                                  for name in options.deployments or DEPLOYMENTS}, folder)
    campaign.run(False)
    print(campaign.table())
    print(f"seed {options.seed}")
    return not campaign.failures
