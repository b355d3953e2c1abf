# SPDX-License-Identifier: Apache-2.0
"""What the tests of other loaders and other programs at the same collection share: two sources,
inserts that a failpoint holds back on the servers, and loads that are stopped in the middle.

A held insert makes the race certain: its client is killed, the collection is dropped and created
again, and only when the next load is about to send its own documents, the server goes on with it."""
import os
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from support import bson  # noqa: E402

FAILPOINTS = "--mongod-option=--setParameter=enableTestCommands=1"
HELD = "hangDuringBatchInsert"
REPLACED = "was dropped, replaced, renamed or resharded during the load"


class WithoutUuid(proxy.Proxy):
    """The server seems to be older than 6.0: it knows no field `collectionUUID`. `carried` are the
    names of the commands that have it nevertheless; with `unseen` operations in
    progress may not be looked at."""

    def __init__(self, target, unseen=False):
        self.asked, self.carried, self.unseen = {}, [], unseen
        super().__init__(target)
        self.change = self.deny

    def action_for(self, message):
        name, _ = proxy.command_of(message)
        if name and b"\x05collectionUUID\0" in message:
            self.carried.append(name)
            self.note(message, 40415)
        elif self.unseen and b"$currentOp" in message:
            self.note(message, 13)
        return super().action_for(message)

    def note(self, message, code):
        self.asked[struct.unpack_from("<i", message, 4)[0]] = code

    def deny(self, message):
        code = self.asked.pop(struct.unpack_from("<i", message, 8)[0], None)
        if code is None:
            return message
        answer = bson.encode({"ok": 0.0, "code": code, "errmsg": "refused by the test"})
        return struct.pack("<i", 21 + len(answer)) + message[4:21] + answer


class Watching(proxy.Proxy):
    """Counts the batches, and those that carry the UUID of their collection."""

    def __init__(self, target):
        self.by_uuid = 0
        super().__init__(target)

    def action_for(self, message):
        name, value = proxy.command_of(message)
        if name == "insert" and proxy.collection_of(value) == "t":
            self.by_uuid += b"\x05collectionUUID\0\x10\0\0\0\x04" in message
        return super().action_for(message)


class OwnershipCase(fault_case.FaultCase):
    route = ()                # more words of each load
    members = ("s0-0",)       # whose primaries take inserts: by the names of localcluster
    rows = 3000

    @classmethod
    def make_source(cls, folder):
        """The first load's source, and expectations of both."""
        cls.other = folder / "other.txt"
        subprocess.run([support.program("shardload-datagen"), "--rows", "900", "--seed", "9",
                        "--dirt", "heavy", "--bad", "3", cls.other], check=True,
                       env=support.clean_environment())
        cls.other_expected = [fault_case.expected_of(cls.other)]
        return super().make_source(folder)

    def setUp(self):
        super().setUp()
        self.first_work, self.second_work = self.scratch / "first", self.scratch / "second"
        self.addCleanup(self.clear_balancer)

    def clear_balancer(self):
        self.client.shardload.balancer.delete_many({})
        if self.client.admin.command("hello").get("msg") == "isdbgrid":
            self.client.admin.command("balancerStart")

    def words(self, *more, **where):
        return super().words(*self.route, *more, **where)

    def first(self, *more, **where):
        self.work = self.first_work
        return self.begin(*more, **where)

    def second(self, *more, source=None, **where):
        self.work = self.second_work
        return self.begin("--drop", *more, source=source or self.other, **where)

    def between(self, made, *more):
        """A proxy of that kind in front of the server. Returns (it, its URI)."""
        host, _, query = self.uri.split("://")[1].partition("/")
        server = made(int(host.split(",")[0].rpartition(":")[2]), *more)
        self.addCleanup(server.close)
        return server, f"mongodb://{support.HOST}:{server.port}/"

    def assert_only_the_second(self, outcome):
        self.assert_nothing_lost(outcome, expected=self.other_expected)

    # Inserts that are held back

    def writable(self):
        """A client of each server that takes inserts."""
        return [self.enterContext(self.servers.member(name)) for name in self.primaries()]

    def primaries(self):
        return self.members

    def hold(self):
        """From now on inserts into the collection hang on the servers. Returns how to let them go."""
        clients = self.writable()

        def switch(mode):
            for client in clients:
                client.admin.command("configureFailPoint", HELD, mode=mode,
                                     data={"nss": f"{self.database_name}.t"})
        switch("alwaysOn")
        self.addCleanup(switch, "off")
        return lambda: switch("off")

    def held(self):
        """The inserts that hang now, each as (server, operation)."""
        return {(number, entry["opid"])
                for number, client in enumerate(self.writable())
                for entry in client.admin.command("currentOp", failpointMsg=HELD)["inprog"]}

    def killed_with_held_inserts(self, *more, **where):
        """A loader was killed; its inserts hang on the servers. Returns (how to let them go, they)."""
        go_on = self.hold()
        running = self.first("--drop", *more, **{"threads": 4, "size": 500, **where})
        self.wait_for(self.held, "inserts that hang")
        running.signal(signal.SIGKILL)
        running.wait()
        return go_on, self.held()

    # Loads that are stopped

    def halted(self, *more, **where):
        """The first load, stopped when some of its documents are there, and many are not."""
        before = self.database.t.estimated_document_count()
        running = self.first("--rate-limit", 400, *more, **{"size": 20, **where})
        self.wait_for_documents(running, before + 100)
        running.signal(signal.SIGSTOP)
        self.addCleanup(running.signal, signal.SIGCONT)
        return running

    def ended(self, running):
        running.signal(signal.SIGCONT)
        return running.wait()
