# SPDX-License-Identifier: Apache-2.0
"""Documents that no load has brought: one that appears in the collection while a load goes on ends
that load with exit code 5, wherever its _id lies. What was there before stays, and does no harm."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from support import bson  # noqa: E402

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
    "long right behind": lambda: bson.Int64(2 * SOURCE_1),
    "long above": lambda: bson.Int64(SOURCE_1 * 99),
    "Decimal128 above": lambda: bson.Decimal128("1e30"),
}
IN_SOURCE_1 = {
    "long": lambda: bson.Int64(SOURCE_1 + 1),
    "double": lambda: SOURCE_1 + 0.5,
    "Decimal128": lambda: bson.Decimal128(f"{SOURCE_1}.25"),
    "behind the end": lambda: bson.Int64(2 * SOURCE_1 - 1),
}


class Strays:
    rows = 1200

    def clients_insert(self, *ids):
        def insert():
            self.database.t.insert_many([{"_id": one} for one in ids])
        return insert

    def struck(self, strike, *more, batch=4, **where):
        """A load during which that is done. Returns its outcome."""
        self.proxy.on_batch(batch, proxy.call(strike))
        outcome = self.begin(*more, **where).wait()
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        return outcome

    def verification(self):
        return support.run_record(self.work)["verification"]

    def anew(self, name):
        """Another load into an empty database."""
        self.work = self.scratch / f"work {name}"
        self.client.drop_database(self.database_name)

    # One document too many

    def test_outside_of_all_sources(self):
        for name, made in NOT_SOURCE_1.items():
            with self.subTest(name):
                self.anew(name)
                outcome = self.struck(self.clients_insert(made()))
                self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
                self.assertIn("holds 1 documents of no registered source, and held 0 "
                              "when the load began; for example { \"_id\" : ", outcome.err)
                self.assertIn("--allow-other-writers", outcome.err)
                self.assertIs(self.verification()["ok"], False)
                self.assert_registry("started")

    def test_among_the_ids_of_the_load(self):
        for name, made in IN_SOURCE_1.items():
            for more in ([], ["--allow-other-writers"]):
                with self.subTest(name, more=more):
                    self.anew(name + "".join(more))
                    outcome = self.struck(self.clients_insert(made()), *more)
                    self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
                    self.assertIn("1 are too many", outcome.err)
                    self.assert_registry("started")

    def assert_registry(self, state):
        states = [entry["state"] for entry in self.database["t.sources"].find({"number": 1})]
        self.assertEqual(states, [state])

    def test_in_long_names_and_in_parts(self):
        large = self.file("large.txt", self.source.read_bytes() * 30)   # of several blocks
        for more in (["--names", "long"], ["--part", "1/2"], ["--again"]):
            with self.subTest(more):
                self.anew("".join(more).replace("/", " of "))
                outcome = self.struck(self.clients_insert("stray"), *more, source=large, size=2000)
                self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
                self.assertIn("of no registered source", outcome.err)

    def test_the_last_part_finds_what_is_too_many_among_the_ids(self):
        self.load("--part", "1/2", self.source, code=None)
        self.clients_insert(SOURCE_1 + 0.5)()
        outcome = self.begin("--part", "2/2").wait()
        self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
        self.assertIn("its 2 parts have loaded 1193 documents, and 1194 are stored", outcome.err)
        self.database.t.delete_one({"_id": SOURCE_1 + 0.5})
        self.assertEqual(self.begin("--part", "2/2", "--resume").wait().code, support.EXIT_REJECTS)
        self.assert_content()

    def test_where_other_writers_are_allowed(self):
        outcome = self.struck(self.clients_insert("stray", bson.ObjectId()), "--allow-other-writers")
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertIn("holds 2 documents of no registered source", outcome.err)
        self.assertIn("(--allow-other-writers)", outcome.err)
        found = self.verification()
        self.assertEqual((found["ok"], found["outside"]["allowed"]), (True, True))
        self.assertEqual(found["outside"]["before"]["otherTypes"], 0)
        self.assertEqual(found["outside"]["after"]["otherTypes"], 2)

    # What was there before

    def old(self):
        return [made() for made in NOT_SOURCE_1.values()]

    def test_what_was_there_before_stays(self):
        self.clients_insert(*self.old())()
        outcome = self.begin("--shard-key", "none").wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        found = self.verification()["outside"]
        self.assertEqual(found["before"], {"numbers": 8, "otherTypes": 5, "sources": 1})
        self.assertEqual(found["after"], found["before"])

    def test_what_was_there_before_is_removed(self):
        for name in ("string", "ObjectId", "long above"):
            with self.subTest(name):
                self.anew(name)
                ids = dict(zip(NOT_SOURCE_1, self.old()))
                self.clients_insert(*ids.values())()
                outcome = self.struck(lambda: self.database.t.delete_one({"_id": ids[name]}),
                                      "--shard-key", "none")
                self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
                self.assertIn("holds 12 documents of no registered source, and held 13",
                              outcome.err)

    def test_one_comes_and_one_of_another_type_goes(self):
        self.clients_insert("stray")()

        def change():
            self.database.t.delete_one({"_id": "stray"})
            self.database.t.insert_one({"_id": 7})
        outcome = self.struck(change, "--shard-key", "none")
        self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)

    # Other loaders, and earlier runs

    def test_other_loaders_are_no_strangers(self):
        other = self.file("other.txt", self.source.read_bytes()[:40000])
        for old in ([], ["old", bson.Int64(SOURCE_1 * 99)]):
            with self.subTest(old):
                self.anew(str(len(old)))
                if old:
                    self.clients_insert(*old)()
                outcome = self.struck(lambda: self.load("--shard-key", "none", other, code=None),
                                      "--shard-key", "none")
                self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
                found = self.verification()["outside"]
                self.assertEqual((found["before"]["sources"], found["after"]["sources"]), (1, 2))

    def test_another_loader_that_begins_while_documents_are_counted(self):
        """Its source is not yet among those that the gaps were made of."""
        other = self.file("other.txt", self.source.read_bytes()[:40000])
        begun = []

        def begin_other(message):
            name, value = proxy.command_of(message)
            if name == "aggregate" and not begun and b"\x01$gte\0" in message and \
                    self.database.t.estimated_document_count() >= len(self.expected[0].documents):
                begun.append(proxy.collection_of(value))
                self.load("--shard-key", "none", other, code=None)
            return message
        self.proxy.change_request = begin_other
        outcome = self.begin("--shard-key", "none").wait()
        self.assertEqual(begun, ["t"])
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertEqual(self.verification()["outside"]["after"]["sources"], 2)

    def test_a_stray_between_two_runs(self):
        def stop():
            running.signal(signal.SIGKILL)
            running.wait()
        self.proxy.on_batch(6, proxy.call(lambda: stop()))
        running = self.begin()
        running.wait()
        self.clients_insert("stray")()
        outcome = self.begin("--resume").wait()
        self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
        again = self.begin("--resume").wait()
        self.assertEqual(again.code, support.EXIT_VERIFICATION, again.text)
        allowed = self.begin("--resume", "--allow-other-writers").wait()
        self.assertEqual(allowed.code, support.EXIT_REJECTS, allowed.text)

    def test_nothing_is_counted_without_verification(self):
        outcome = self.struck(self.clients_insert("stray"), "--no-verify")
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assertNotIn("verification", support.run_record(self.work))


class LoneServer(Strays, fault_case.ProxyCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"


class Router(Strays, fault_case.ProxyCase):
    variable = "SHARDLOAD_TEST_URI"


class Direct(fault_case.ProxyCase):
    """Batches do not pass the proxy here: the stray comes when the load counts at its end."""

    variable = "SHARDLOAD_TEST_URI"
    rows = 1200

    def test_straight_into_a_shard_and_through_the_router(self):
        for stray in ("stray", SOURCE_1 + 0.5):
            with self.subTest(stray):
                self.client.drop_database(self.database_name)
                self.work = self.scratch / str(stray)
                running = self.begin("--route", "direct", "--rate-limit", 300, size=10)
                self.wait_for_documents(running, 50)
                self.database.t.insert_one({"_id": stray})
                outcome = running.wait()
                self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)


if __name__ == "__main__":
    import tap
    tap.main()
