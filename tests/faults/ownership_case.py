# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests with two loaders at one collection: two sources, inserts that a failpoint
holds on the servers, and loads that are stopped with SIGSTOP.

Held inserts make the race happen every time: the first loader is killed while its inserts are held,
the collection is dropped and created again, and the inserts are released only when the next load is
about to send its own documents."""
import subprocess

import fault_case
import proxy
import support

FAILPOINTS = "--mongod-option=--setParameter=enableTestCommands=1"
NAMED_BY_UUID = "inserts that name their collection by its UUID"
HOLD_INSERTS = "hangDuringBatchInsert"
REPLACED = "was dropped, replaced, renamed or resharded during the load"


class WithoutUuid(proxy.Proxy):
    """A server that looks older than 6.0: it refuses the field `collectionUUID` as unknown.
    `with_uuid`: the names of the commands that were sent with the field. `hide_operations`: the user
    may not list operations in progress."""

    def __init__(self, target, hide_operations=False):
        self.with_uuid, self.hide_operations = [], hide_operations
        super().__init__(target)

    def action_for(self, message):
        action = super().action_for(message)
        name, _ = proxy.command_of(message)
        if name and b"\x05collectionUUID\0" in message:
            self.with_uuid.append(name)
            return proxy.error_reply(40415, "refused by the test")
        if self.hide_operations and b"$currentOp" in message:
            return proxy.error_reply(13, "refused by the test")
        return action


class CountingUuids(proxy.Proxy):
    """Counts the batches that name the UUID of their collection."""

    def __init__(self, target):
        self.by_uuid = 0
        super().__init__(target)

    def action_for(self, message):
        name, value = proxy.command_of(message)
        if name == "insert" and proxy.collection_of(value) == "t":
            self.by_uuid += b"\x05collectionUUID\0\x10\0\0\0\x04" in message
        return super().action_for(message)


class OwnershipCase(fault_case.FaultCase):
    route = ()                # options of each load
    members = ("s0-0",)       # the servers that take inserts, by their names in localcluster
    rows = 3000

    @classmethod
    def make_source(cls, folder):
        """Generates the sources of the first and of the second load (`other`)."""
        cls.other = folder / "other.txt"
        subprocess.run([support.program("shardload-datagen"), "--rows", "900", "--seed", "9",
                        "--dirt", "heavy", "--bad", "3", cls.other], check=True,
                       env=support.clean_environment())
        cls.other_expected = [fault_case.expected_of(cls.other)]
        return super().make_source(folder)

    def setUp(self):
        super().setUp()
        self.first_work, self.second_work = self.scratch / "first", self.scratch / "second"
        self.clients = None

    def words(self, *more, **where):
        return super().words(*self.route, *more, **where)

    def first(self, *more, **where):
        self.work = self.first_work
        return self.begin(*more, **where)

    def second(self, *more, source=None, **where):
        self.work = self.second_work
        return self.begin("--drop", *more, source=source or self.other, **where)

    def start_proxy(self, kind, *arguments):
        """Starts a proxy of this class in front of the server. Returns (proxy, its URI)."""
        server = kind(support.port_of(self.uri), *arguments)
        self.addCleanup(server.close)
        return server, self.proxy_uri(server)

    def assert_only_the_second(self, outcome):
        self.assert_nothing_lost(outcome, expected=self.other_expected)

    # Held inserts

    def primary_clients(self):
        """A client of each server that takes inserts; the same ones throughout the test."""
        if self.clients is None:
            self.clients = [self.enterContext(self.servers.member(name)) for name in self.primaries()]
        return self.clients

    def primaries(self):
        return self.members

    def hold_inserts(self, failpoint=HOLD_INSERTS):
        """From now on the servers hold inserts into the collection, or the writes of another
        failpoint. Returns a function that releases them."""
        clients = self.primary_clients()

        def switch(mode):
            for client in clients:
                client.admin.command("configureFailPoint", failpoint, mode=mode,
                                     data={"nss": f"{self.database_name}.t"})
        switch("alwaysOn")
        self.addCleanup(switch, "off")
        return lambda: switch("off")

    def held_inserts(self, failpoint=HOLD_INSERTS):
        """The inserts, or writes of another failpoint, that are held now, as a set of (server,
        operation)."""
        return {(number, entry["opid"])
                for number, client in enumerate(self.primary_clients())
                for entry in client.admin.command("currentOp", **{
                    "ns": f"{self.database_name}.t",
                    "$or": [{"failpointMsg": failpoint}, {"msg": failpoint}]})["inprog"]}   # msg: before 5.0

    def kill_loader_with_held_inserts(self, *more, **where):
        """Kills the first loader while the servers hold its inserts. Returns (a function that
        releases them, the held inserts)."""
        release = self.hold_inserts()
        running = self.first("--drop", *more, **{"threads": 4, "size": 500, **where})
        self.wait_for(self.held_inserts, "held inserts")
        running.kill()
        return release, self.held_inserts()

    # Stopped loads

    def stopped_load(self, *more, **where):
        """Starts the first load, and stops it with SIGSTOP after some of its documents are stored."""
        before = self.database.t.estimated_document_count()
        running = self.first("--rate-limit", 400, *more, **{"size": 20, **where})
        return self.stop_load(running, before + 100)
