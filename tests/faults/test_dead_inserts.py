# SPDX-License-Identifier: Apache-2.0
"""Inserts of a killed loader, and of a loader whose collection is dropped, do not store documents in
the collection of the next load."""

import proxy
import support
from fault_case import ROUNDS
from ownership_case import FAILPOINTS, NAMED_BY_UUID, REPLACED, CountingUuids, OwnershipCase, WithoutUuid


class AnyServer:
    # The loader is killed, and the next load starts at once

    def load_over_held_inserts(self, *words, **where):
        """Runs the second load while inserts of the killed first one are held; they are released
        when the second load inserts. Returns its outcome."""
        self.needs("6.0", NAMED_BY_UUID)
        release, held = self.kill_loader_with_held_inserts()
        running = self.second(*words, size=500, **where)
        self.wait_for(lambda: not running.running() or self.held_inserts() - held, "the next load's inserts")
        release()
        return running.wait()

    def test_inserts_of_a_killed_loader_do_not_reach_the_next_collection(self):
        self.assert_only_the_second(self.load_over_held_inserts())

    def test_inserts_of_a_killed_loader_do_not_reach_a_load_with_other_field_names(self):
        outcome = self.load_over_held_inserts("--names", "long", source=self.source)
        (expected,) = self.expected
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assert_accounting(self.second_work, inserted=len(expected.documents), rejectedByServer=0)
        self.assertEqual(self.database.t.count_documents({}), len(expected.documents))
        self.assertEqual(self.database.t.count_documents({"test_id": {"$exists": False}}), 0)

    def test_killed_at_random_times_no_insert_reaches_the_next_collection(self):
        large = self.file("large.txt", self.source.read_bytes() * 15)   # 45,000 rows
        for number in range(4 * ROUNDS):
            with self.subTest(number):
                self.first_work = self.scratch / f"first-{number}"
                self.second_work = self.scratch / f"second-{number}"
                running = self.first("--drop", threads=4, size=3000, source=large)
                self.wait_for(lambda: not running.running() or self.inserting(), "an insert")
                self.assertTrue(running.running(), running.text())
                running.kill()
                self.assert_only_the_second(self.second().wait())

    def inserting(self):
        return any(client.admin.command("currentOp", ns=f"{self.database_name}.t",
                                        op="insert")["inprog"] for client in self.primary_clients())

    # The collection is dropped while a loader runs

    def test_a_running_load_stops_when_the_next_load_drops_its_collection(self):
        self.needs("6.0", NAMED_BY_UUID)
        running = self.stopped_load()
        outcome = self.second().wait()   # the balancer stays off for the running load
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assert_content(self.other_expected)
        outcome = self.continue_load(running).expect(
            support.EXIT_CLUSTER, f"{self.database_name}.t (UUID ", REPLACED,
            "another collection has this name now, with UUID ",
            "No document of this load went into another collection",
            "without --resume and with another --work-dir")
        self.assertNotIn("with --resume --work-dir", outcome.text)
        self.assert_content(self.other_expected)
        self.work = self.first_work
        self.begin("--resume").wait().expect(support.EXIT_CLUSTER, "dropped and created again since")
        self.assert_content(self.other_expected)

    def test_a_dropped_collection_is_reported_without_verification(self):
        self.needs("6.0", NAMED_BY_UUID)
        running = self.stopped_load("--no-verify")
        self.database.t.drop()
        self.continue_load(running).expect(support.EXIT_CLUSTER, REPLACED, "there is no collection of this name now")
        self.assertNotIn("t", self.database.list_collection_names())

    def test_every_batch_names_the_uuid_of_the_collection(self):
        self.needs("6.0", NAMED_BY_UUID)
        server, uri = self.start_proxy(CountingUuids)
        self.first("--route", "mongos", uri=uri).wait().expect(support.EXIT_REJECTS)
        self.assertGreater(server.batches, 10)
        self.assertEqual(server.by_uuid, server.batches)


class OldServers:
    """Servers before 6.0, on which an insert names its collection by name only."""

    def test_the_next_load_waits_for_the_inserts_of_a_killed_loader(self):
        server, uri = self.start_proxy(WithoutUuid)
        release, _ = self.kill_loader_with_held_inserts(uri=uri)
        running = self.second(uri=uri)
        self.wait_for_word(running, "an insert is running on s")
        release()
        self.assert_only_the_second(running.wait())
        self.assertEqual(set(server.with_uuid), {"find"}, "the field was sent to a server that refuses it")

    def test_it_gives_up_waiting_for_an_insert_that_does_not_end(self):
        _, uri = self.start_proxy(WithoutUuid)
        self.load(self.other, code=support.EXIT_REJECTS)
        release = self.hold_inserts()
        running = self.first(uri=uri)
        self.wait_for(self.held_inserts, "held inserts")
        running.kill()
        self.second(uri=uri).wait().expect(support.EXIT_CLUSTER, "stop the program that sends it")
        self.assertEqual(self.database.t.count_documents({}),
                         len(self.other_expected[0].documents), "the collection was dropped")
        release()

    def test_a_user_who_may_not_list_operations_is_warned(self):
        _, uri = self.start_proxy(WithoutUuid, True)
        outcome = self.second(uri=uri).wait()
        self.assertIn("cannot check whether another program is writing to", outcome.err)
        self.assert_only_the_second(outcome)

    def test_a_collection_replaced_during_the_load_is_reported(self):
        for more in ([], ["--no-verify"]):
            with self.subTest(more):
                _, uri = self.start_proxy(WithoutUuid)
                self.client.drop_database(self.database_name)
                self.first_work = self.scratch / f"first-{len(more)}"
                running = self.stopped_load("--drop", *more, uri=uri)
                self.database.t.drop()
                self.continue_load(running).expect(support.EXIT_CLUSTER, REPLACED, "may hold documents of this load")


class LoneServer(AnyServer, OldServers, OwnershipCase):
    shape = ("--standalone", FAILPOINTS)

    def primaries(self):
        return [self.servers.names()[0]]

    def test_a_load_is_resumed_after_the_collection_was_renamed_and_renamed_back(self):
        self.needs("6.0", NAMED_BY_UUID)
        running = self.stopped_load()
        self.database.t.rename("u")
        self.continue_load(running).expect(support.EXIT_CLUSTER, "its name is u now", "--resume")
        self.database.u.rename("t")
        self.work = self.first_work
        self.assert_nothing_lost(self.begin("--resume").wait(), again=None)


class ReplicaSet(AnyServer, OwnershipCase):
    shape = ("--shards", 0, "--replicas", 3, FAILPOINTS)

    def primaries(self):
        return [self.servers.primary_of("rs0", 3)]


class Cluster(AnyServer, OldServers, OwnershipCase):
    shape = ("--shards", 2, FAILPOINTS)
    members = ("s0-0", "s1-0")


class Direct(AnyServer, OwnershipCase):
    shape = ("--shards", 2, FAILPOINTS)
    members = ("s0-0", "s1-0")
    route = ("--route", "direct")

    def other_shard(self):
        """A client of the shard that is not the database's primary shard. The router reads the UUID
        of the collection from the primary shard."""
        primary = self.client.config.databases.find_one({"_id": self.database_name})["primary"]
        return self.enterContext(self.servers.member({"s0": "s1-0", "s1": "s0-0"}[primary]))

    def test_a_collection_replaced_on_one_shard_is_reported(self):
        self.load("--route", "direct", self.other, code=support.EXIT_REJECTS)
        running = self.stopped_load()
        shard = self.other_shard()
        shard[self.database_name].t.drop()
        shard[self.database_name].create_collection("t")
        replaced = "one of the shards has lost the collection or has another" if self.is_at_least("6.0") else \
            "has another collection of this name"      # found by the name
        self.continue_load(running).expect(support.EXIT_CLUSTER, replaced)
        self.work = self.second_work
        self.begin(source=self.source).wait().expect(support.EXIT_CLUSTER, replaced)

    def test_a_collection_replaced_on_one_shard_after_the_last_batch_is_reported(self):
        """With --no-verify no documents are counted; the loader reads the UUID from each shard."""
        large = self.file("large.txt", support.wide_text(5))   # for both shards
        server, uri = self.start_proxy(proxy.Proxy)
        self.load("--route", "direct", self.other, code=support.EXIT_REJECTS)
        complete = 5 * support.WIDE_ROWS + len(self.other_expected[0].documents)
        shard = self.other_shard()
        replaced = []

        def replace(message):
            if proxy.command_of(message)[0] == "listCollections" and not replaced and \
                    self.database.t.estimated_document_count() >= complete:
                shard[self.database_name].t.drop()
                shard[self.database_name].create_collection("t")
                replaced.append(True)
            return message
        server.change_request = replace
        outcome = self.first("--no-verify", uri=uri, source=large, size=20).wait()
        self.assertEqual(replaced, [True])
        outcome.expect(support.EXIT_CLUSTER, "the collection was dropped there, or created")
