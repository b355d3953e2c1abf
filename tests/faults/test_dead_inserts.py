# SPDX-License-Identifier: Apache-2.0
"""A server completes an insert whose client is gone: it must not reach the next load's collection.
Nor may a loader that still runs when its collection is dropped."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proxy  # noqa: E402
import support  # noqa: E402
from fault_case import ROUNDS  # noqa: E402
from ownership_case import (FAILPOINTS, REPLACED, OwnershipCase, Watching,  # noqa: E402
                            WithoutUuid)


class Stories:
    # Killed, and the next load at once

    def test_the_inserts_of_a_killed_loader_do_not_reach_the_next_collection(self):
        go_on, dead = self.killed_with_held_inserts()
        running = self.second(size=500)
        self.wait_for(lambda: not running.running() or self.held() - dead, "the next load's inserts")
        go_on()
        self.assert_only_the_second(running.wait())

    def test_the_same_file_with_other_names(self):
        go_on, dead = self.killed_with_held_inserts()
        running = self.second("--names", "long", source=self.source, size=500)
        self.wait_for(lambda: not running.running() or self.held() - dead, "the next load's inserts")
        go_on()
        outcome = running.wait()
        (expected,) = self.expected
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assert_accounting(self.second_work, inserted=len(expected.documents),
                               rejectedByServer=0)
        self.assertEqual(self.database.t.count_documents({}), len(expected.documents))
        self.assertEqual(self.database.t.count_documents({"test_id": {"$exists": False}}), 0)

    def test_killed_at_any_moment(self):
        large = self.file("large.txt", self.source.read_bytes() * 15)   # 45,000 rows
        for number in range(4 * ROUNDS):
            with self.subTest(number):
                self.first_work = self.scratch / f"first-{number}"
                self.second_work = self.scratch / f"second-{number}"
                running = self.first("--drop", threads=4, size=10000, source=large)
                self.wait_for(lambda: not running.running() or self.inserting(), "an insert")
                self.assertTrue(running.running(), running.text())
                running.signal(signal.SIGKILL)
                running.wait()
                self.assert_only_the_second(self.second().wait())

    def inserting(self):
        return any(client.admin.command("currentOp", ns=f"{self.database_name}.t",
                                        op="insert")["inprog"] for client in self.writable())

    # Dropped under a loader that runs

    def test_the_next_load_drops_the_collection_of_one_that_runs(self):
        running = self.halted()
        outcome = self.second().wait()   # the balancer stays off for the one that runs
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assert_content(self.other_expected)
        outcome = self.ended(running)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn(f"{self.database_name}.t (UUID ", outcome.err)
        self.assertIn(REPLACED, outcome.err)
        self.assertIn("the collection of this name is another one now, with UUID ", outcome.err)
        self.assertIn("No document of this load went into another collection", outcome.err)
        self.assertIn("without --resume and with another --work-dir", outcome.err)
        self.assertNotIn("with --resume --work-dir", outcome.err)
        self.assert_content(self.other_expected)
        self.work = self.first_work
        again = self.begin("--resume").wait()
        self.assertEqual(again.code, support.EXIT_CLUSTER, again.text)
        self.assertIn("dropped and created again since", again.err)
        self.assert_content(self.other_expected)

    def test_dropped_in_mid_load_without_verification(self):
        running = self.halted("--no-verify")
        self.database.t.drop()
        outcome = self.ended(running)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn(REPLACED, outcome.err)
        self.assertIn("no collection has this name now", outcome.err)
        self.assertNotIn("t", self.database.list_collection_names())

    # What is sent

    def test_every_batch_carries_the_uuid(self):
        server, uri = self.between(Watching)
        outcome = self.first("--route", "mongos", uri=uri).wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertGreater(server.batches, 10)
        self.assertEqual(server.by_uuid, server.batches)


class OldServers:
    """Servers that do not take the UUID: collections are known by their names only."""

    def test_the_next_load_waits_for_the_inserts_of_a_killed_one(self):
        server, uri = self.between(WithoutUuid)
        go_on, _ = self.killed_with_held_inserts(uri=uri)
        running = self.second(uri=uri)
        self.wait_for_word(running, "an insert is running on s")
        go_on()
        self.assert_only_the_second(running.wait())
        self.assertEqual(set(server.carried), {"find"}, "the field was sent to a server that refuses it")

    def test_it_does_not_wait_for_ever(self):
        _, uri = self.between(WithoutUuid)
        self.load(self.other, code=support.EXIT_REJECTS)
        go_on = self.hold()
        running = self.first(uri=uri)
        self.wait_for(self.held, "inserts that hang")
        running.signal(signal.SIGKILL)
        running.wait()
        outcome = self.second(uri=uri).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("stop the program that sends it", outcome.err)
        self.assertEqual(self.database.t.count_documents({}),
                         len(self.other_expected[0].documents), "dropped nevertheless")
        go_on()

    def test_who_may_not_see_operations_is_warned(self):
        _, uri = self.between(WithoutUuid, True)
        outcome = self.second(uri=uri).wait()
        self.assertIn("cannot tell whether inserts of another program", outcome.err)
        self.assert_only_the_second(outcome)

    def test_replaced_in_mid_load(self):
        for more in ([], ["--no-verify"]):
            with self.subTest(more):
                _, uri = self.between(WithoutUuid)
                self.client.drop_database(self.database_name)
                self.first_work = self.scratch / f"first-{len(more)}"
                running = self.halted("--drop", *more, uri=uri)
                self.database.t.drop()
                outcome = self.ended(running)
                self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
                self.assertIn(REPLACED, outcome.err)
                self.assertIn("may hold documents of this load", outcome.err)


class LoneServer(Stories, OldServers, OwnershipCase):
    shape = ("--standalone", FAILPOINTS)

    def primaries(self):
        return [self.servers.names()[0]]

    def test_renamed_and_back(self):
        running = self.halted()
        self.database.t.rename("u")
        outcome = self.ended(running)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("it is called u now", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.database.u.rename("t")
        self.work = self.first_work
        self.assert_nothing_lost(self.begin("--resume").wait(), again=None)


class ReplicaSet(Stories, OwnershipCase):
    shape = ("--shards", 0, "--replicas", 3, FAILPOINTS)

    def primaries(self):
        return [self.servers.primary_of("rs0", 3)]


class Cluster(Stories, OldServers, OwnershipCase):
    shape = ("--shards", 2, FAILPOINTS)
    members = ("s0-0", "s1-0")


class Direct(Stories, OwnershipCase):
    shape = ("--shards", 2, FAILPOINTS)
    members = ("s0-0", "s1-0")
    route = ("--route", "direct")

    def test_a_shard_with_another_collection_of_the_name(self):
        self.load("--route", "direct", self.other, code=support.EXIT_REJECTS)
        running = self.halted()
        # Of the two, the one that the router does not ask for the collection's UUID.
        home = self.client.config.databases.find_one({"_id": self.database_name})["primary"]
        shard = self.enterContext(self.servers.member({"s0": "s1-0", "s1": "s0-0"}[home]))
        shard[self.database_name].t.drop()
        shard[self.database_name].create_collection("t")
        outcome = self.ended(running)
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("one of the shards has lost it, or has another collection of this name",
                      outcome.err)
        self.work = self.second_work
        outcome = self.begin(source=self.source).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("one of the shards has lost it, or has another collection of this name",
                      outcome.err)

    def test_a_shard_with_another_collection_behind_the_last_batch(self):
        """With --no-verify no documents are counted: the shard must be asked."""
        large = self.file("large.txt", self.source.read_bytes() * 15)   # for both shards
        server, uri = self.between(proxy.Proxy)
        self.load("--route", "direct", self.other, code=support.EXIT_REJECTS)
        complete = 15 * len(self.expected[0].documents) + len(self.other_expected[0].documents)
        home = self.client.config.databases.find_one({"_id": self.database_name})["primary"]
        shard = self.enterContext(self.servers.member({"s0": "s1-0", "s1": "s0-0"}[home]))
        replaced = []

        def replace(message):
            if proxy.command_of(message)[0] == "listCollections" and not replaced and \
                    self.database.t.estimated_document_count() >= complete:
                shard[self.database_name].t.drop()
                shard[self.database_name].create_collection("t")
                replaced.append(True)
            return message
        server.change_request = replace
        outcome = self.first("--no-verify", uri=uri, source=large, size=2000).wait()
        self.assertEqual(replaced, [True])
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("it was dropped there, or created", outcome.err)


if __name__ == "__main__":
    import tap
    tap.main()
