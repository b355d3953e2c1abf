# SPDX-License-Identifier: Apache-2.0
"""Strays: documents that another program inserts. A stray that appears during a load ends the load
with exit code 5, whatever its _id is. Documents stored before the load are left as they are."""
import signal

import fault_case
import proxy
import support
from support import bson

SOURCE_1 = 1 << 40            # the first _id of source 1
NOT_SOURCE_1 = {
    "ObjectId": lambda: bson.ObjectId(),
    "string": lambda: "stray",
    "null": lambda: None,
    "document": lambda: {"a": 1},
    "NaN": lambda: float("nan"),
    "minus infinity": lambda: float("-inf"),
    "int below": lambda: 7,
    "negative long": lambda: bson.Int64(-SOURCE_1),
    "double below": lambda: 0.5,
    "Decimal128 below": lambda: bson.Decimal128("1e3"),
    "long right after": lambda: bson.Int64(2 * SOURCE_1),
    "long above": lambda: bson.Int64(SOURCE_1 * 99),
    "Decimal128 above": lambda: bson.Decimal128("1e30"),
}
IN_SOURCE_1 = {
    "long": lambda: bson.Int64(SOURCE_1 + 1),
    "double": lambda: SOURCE_1 + 0.5,
    "Decimal128": lambda: bson.Decimal128(f"{SOURCE_1}.25"),
    "after the end": lambda: bson.Int64(2 * SOURCE_1 - 1),
}


class LoneServer(fault_case.ProxyCase, server="mongod"):
    rows = 1200

    def insert(self, *ids):
        self.database.t.insert_many([{"_id": one} for one in ids])

    def load_during(self, change, *more, **where):
        """Loads, and calls `change()` at the fourth batch. Returns the outcome."""
        outcome = self.load_with_fault(lambda _: change(), *more, batch=4, **where)
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        return outcome

    def load_with_strays(self, *ids, more=(), **where):
        return self.load_during(lambda: self.insert(*ids), *more, **where)

    def verification(self):
        return support.run_record(self.work)["verification"]

    def empty_database(self, name):
        """Prepares another load, with a work directory of this name."""
        self.work = self.scratch / f"work {name}"
        self.client.drop_database(self.database_name)

    # Strays that appear during the load

    def test_outside_of_all_sources(self):
        for name, make_id in NOT_SOURCE_1.items():
            with self.subTest(name):
                self.empty_database(name)
                self.load_with_strays(make_id()).expect(
                    support.EXIT_VERIFICATION,
                    "holds 1 document whose _id is no position in a registered source, and held 0 "
                    "when the load began; for example { \"_id\" : ", "--allow-other-writers")
                self.assertIs(self.verification()["ok"], False)
                self.assertEqual(self.source_states(), ["started"])

    def test_among_the_ids_of_the_load(self):
        for name, make_id in IN_SOURCE_1.items():
            for more in ([], ["--allow-other-writers"]):
                with self.subTest(name, more=more):
                    self.empty_database(name + "".join(more))
                    self.load_with_strays(make_id(), more=more).expect(
                        support.EXIT_VERIFICATION, "1 is too many")
                    self.assertEqual(self.source_states(), ["started"])

    def test_with_long_names_in_parts_and_loaded_again(self):
        large = self.file("large.txt", support.wide_text(4))
        for more in (["--names", "long"], ["--part", "1/2"], ["--again"]):
            with self.subTest(more):
                self.empty_database("".join(more).replace("/", " of "))
                self.load_with_strays("stray", more=more, source=large, size=20).expect(
                    support.EXIT_VERIFICATION, "whose _id is no position in a registered source")

    def test_the_last_part_finds_a_stray_among_the_ids(self):
        self.load("--part", "1/2", self.source, code=None)
        self.insert(SOURCE_1 + 0.5)
        self.begin("--part", "2/2").wait().expect(
            support.EXIT_VERIFICATION, "its 2 parts have loaded 1,193 documents, and 1,194 are stored")
        self.database.t.delete_one({"_id": SOURCE_1 + 0.5})
        self.assertEqual(self.begin("--part", "2/2", "--resume").wait().code, support.EXIT_REJECTS)
        self.assert_content()

    def test_with_other_writers_allowed_the_load_succeeds(self):
        self.load_with_strays("stray", bson.ObjectId(), more=["--allow-other-writers"]).expect(
            support.EXIT_REJECTS, "holds 2 documents whose _id is no position in a registered source",
            "(--allow-other-writers)")
        verification = self.verification()
        self.assertIs(verification["ok"], True)
        self.assertIs(verification["outside"]["allowed"], True)
        self.assertEqual(verification["outside"]["before"]["otherTypes"], 0)
        self.assertEqual(verification["outside"]["after"]["otherTypes"], 2)

    # Documents stored before the load

    def test_documents_stored_before_the_load_are_accepted(self):
        self.insert(*(make_id() for make_id in NOT_SOURCE_1.values()))
        self.begin("--shard-key", "none").wait().expect(support.EXIT_REJECTS)
        outside = self.verification()["outside"]
        self.assertEqual(outside["before"], {"numbers": 8, "otherTypes": 5, "sources": 1})
        self.assertEqual(outside["after"], outside["before"])

    def test_a_count_that_fails_is_not_0(self):
        forward = self.proxy.action_for

        def refuse_counts(message):
            if proxy.command_of(message)[0] == "aggregate" and b"\x01$gte\0" in message:
                return proxy.error_reply(13, "no count")
            return forward(message)
        self.proxy.action_for = refuse_counts
        self.begin("--shard-key", "none").wait().expect(support.EXIT_CLUSTER, "no count")
        self.assertEqual(self.proxy.batches, 0)

    def test_a_document_removed_during_the_load_is_noticed(self):
        for name in ("string", "ObjectId", "long above"):
            with self.subTest(name):
                self.empty_database(name)
                ids = {key: make_id() for key, make_id in NOT_SOURCE_1.items()}
                self.insert(*ids.values())
                outcome = self.load_during(
                    lambda: self.database.t.delete_one({"_id": ids[name]}), "--shard-key", "none")
                outcome.expect(support.EXIT_VERIFICATION,
                               "holds 12 documents whose _id is no position in a registered source, and held 13")

    def test_a_removed_and_an_inserted_document_of_another_type_are_noticed(self):
        self.insert("stray")

        def change():
            self.database.t.delete_one({"_id": "stray"})
            self.database.t.insert_one({"_id": 7})
        self.load_during(change, "--shard-key", "none").expect(support.EXIT_VERIFICATION)

    # Other loaders, and earlier runs

    def test_documents_of_other_loaders_are_accepted(self):
        other = self.file("other.txt", self.source.read_bytes()[:40000])
        for old in ([], ["old", bson.Int64(SOURCE_1 * 99)]):
            with self.subTest(old):
                self.empty_database(str(len(old)))
                if old:
                    self.insert(*old)
                self.load_during(
                    lambda: self.load("--shard-key", "none", other, code=None),
                    "--shard-key", "none").expect(support.EXIT_REJECTS)
                outside = self.verification()["outside"]
                self.assertEqual((outside["before"]["sources"], outside["after"]["sources"]), (1, 2))

    def test_a_loader_that_starts_while_strays_are_counted_is_accepted(self):
        """The source of the other loader was not in the registry when the filter was built."""
        other = self.file("other.txt", self.source.read_bytes()[:40000])
        counted = []

        def load_other(message):
            name, value = proxy.command_of(message)
            if name == "aggregate" and not counted and b"\x01$gte\0" in message and \
                    self.database.t.estimated_document_count() >= len(self.expected[0].documents):
                counted.append(proxy.collection_of(value))
                self.load("--shard-key", "none", other, code=None)
            return message
        self.proxy.change_request = load_other
        outcome = self.begin("--shard-key", "none").wait()
        self.assertEqual(counted, ["t"])
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(self.verification()["outside"]["after"]["sources"], 2)

    def test_a_stray_inserted_between_a_kill_and_the_resume_is_noticed(self):
        self.load_with_fault(lambda running: running.signal(signal.SIGKILL), batch=6)
        self.insert("stray")
        self.begin("--resume").wait().expect(support.EXIT_VERIFICATION)
        self.begin("--resume").wait().expect(support.EXIT_VERIFICATION)
        self.begin("--resume", "--allow-other-writers").wait().expect(support.EXIT_REJECTS)

    def test_without_verification_strays_are_not_counted(self):
        self.load_with_strays("stray", more=["--no-verify"]).expect(support.EXIT_REJECTS)
        self.assertNotIn("verification", support.run_record(self.work))


class Router(LoneServer, server="cluster"):
    pass


class Direct(fault_case.ProxyCase):
    """Batches do not pass the proxy; strays are inserted once the load has stored documents."""

    rows = 1200

    def test_strays_are_noticed_by_a_load_that_writes_to_the_shards(self):
        for stray in ("stray", SOURCE_1 + 0.5):
            with self.subTest(stray):
                self.client.drop_database(self.database_name)
                self.work = self.scratch / str(stray)
                running = self.begin("--route", "direct", "--rate-limit", 300, size=10)
                self.wait_for_documents(running, 50)
                self.database.t.insert_one({"_id": stray})
                running.wait().expect(support.EXIT_VERIFICATION)
