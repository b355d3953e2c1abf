# SPDX-License-Identifier: Apache-2.0
"""Answers to inserts that do not add up, or that are about the server and not about a document, and
what the loader sends: the write concern of each insert, and a look before anything is sent again.

A load must end with the right documents and the right figures whatever a server answers, or stop
and be resumable. A condition of the server must never turn a good record into a reject."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from fault_case import BATCH  # noqa: E402
from support import bson, pymongo  # noqa: E402

SOME = None


def codes_of(verdict):
    """The codes with this verdict in the loader's table."""
    text = (support.TREE / "src" / "load" / "reply.c").read_text("utf-8")
    return [int(code) for code in re.findall(r"\{(\d+), SL_REPLY_" + verdict + r"\}", text)]


def with_n(n):
    """Changes the number of inserted documents; None: leaves it out."""
    def change(reply):
        reply.pop("n")
        return reply if n is None else {"n": n, **reply}
    return change


def refused(*errors, n):
    """The answer names these write errors."""
    return lambda reply: {**reply, "n": n, "writeErrors": list(errors)}


def error(index, code=121, words="said the proxy"):
    return {"index": index, "code": code, "errmsg": words}


# What a server may answer once although it has inserted all documents of a batch.
LIES = [with_n(0), with_n(BATCH - 1), with_n(BATCH + 1), with_n(None), with_n(-1), with_n(-BATCH),
        with_n(1 << 30), with_n("many"),
        refused(error(3), error(3), n=BATCH - 2), refused(error(BATCH), n=BATCH - 1),
        refused(error(-1), n=BATCH - 1), refused(error(1 << 30), n=BATCH - 1),
        refused({"index": 5, "errmsg": "no code"}, n=BATCH - 1), refused(error(5, code=0), n=BATCH - 1),
        refused(error(5), n=BATCH), refused({"code": 121, "errmsg": "no index"}, n=BATCH - 1),
        lambda reply: {**reply, "writeConcernError": {"code": 64, "errmsg": "waited in vain"}},
        lambda reply: {"ok": 0.0, "code": 121, "errmsg": "a document's code for a command"}]

# Conditions of a server, and codes that nothing is known of.
PASSING = [0, 2, 7, 8, 9, 14, 20, 22, 24, 28, 39, 56, 57, 84, 91, 112, 146, 189, 202, 289, 371,
           10107, 11001, 11601, 12582, 13435, 14031, 17280, 17419, 5894900, 999999]


class Replies:
    def strike(self, actions, code=None):
        """One batch in two meets one of the actions each."""
        for number, action in enumerate(actions):
            self.proxy.on_batch(3 + 2 * number, action)
        return self.begin("--retry-timeout", 60, size=BATCH).wait()

    def test_answers_that_do_not_add_up(self):
        outcome = self.strike([proxy.change_reply(lie) for lie in LIES])
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        figures = self.assert_nothing_lost(outcome, again=len(LIES) * BATCH)
        self.assertEqual(figures["retries"], len(LIES), figures)
        self.assertIn("does not add up", outcome.err)

    def test_answers_for_batches_that_were_not_inserted(self):
        swallowed = [lie for lie in LIES if lie({"n": 0, "ok": 1.0}).get("n") != BATCH]
        outcome = self.strike([proxy.answer(lie) for lie in swallowed])
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        figures = self.assert_nothing_lost(outcome, again=0)
        self.assertEqual(figures["retries"], len(swallowed), figures)

    def test_errors_that_are_not_about_a_document_reject_none(self):
        """For one document, for all of them, and for the command."""
        strikes = [proxy.change_reply(refused(error(7, code), n=BATCH - 1)) for code in PASSING]
        strikes += [proxy.answer(refused(*(error(i, code) for i in range(BATCH)), n=0))
                    for code in PASSING if code % 2]
        outcome = self.strike(strikes[:38])
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        self.assert_nothing_lost(outcome, again=SOME)
        self.assertIn("said the proxy", outcome.err)

    def test_commands_that_fail_for_a_passing_reason(self):
        strikes = [proxy.answer(lambda _, code=code: {"ok": 0.0, "code": code, "errmsg": "later"})
                   for code in PASSING if code not in (0, 2, 9, 14)]
        outcome = self.strike(strikes)
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        self.assert_nothing_lost(outcome, again=0)

    def test_nothing_is_inserted_and_nothing_says_so(self):
        """An answer of `n: 0` without an error is not believed, with or without the end count."""
        self.proxy.always = proxy.answer(lambda reply: reply)
        outcome = self.begin("--no-verify", "--retry-timeout", 1).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertEqual(support.run_record(self.work)["accounting"]["inserted"], 0)
        self.assertIn("gave up", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.proxy.forget()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=0)

    def test_a_condition_that_lasts_longer_than_the_retry_limit(self):
        self.proxy.on_batch(20, proxy.call(lambda: setattr(
            self.proxy, "always", proxy.answer(refused(
                *(error(i, 14031, "the disk is full") for i in range(BATCH)), n=0)))))
        outcome = self.begin("--retry-timeout", 1).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("the disk is full (code 14031)", outcome.err)
        self.assertIn("at byte", outcome.err)
        self.assert_accounting(self.work, rejectedByServer=0)
        self.proxy.forget()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_errors_that_no_waiting_helps_stop_the_load_at_once(self):
        codes = codes_of("FINAL")
        self.assertIn(13, codes)
        codes.remove(361)   # another collection: it has words of its own (test_dead_inserts.py)
        for number, code in enumerate(codes):
            reply = [lambda _: {"ok": 0.0, "code": code, "errmsg": "never"},
                     refused(error(1, code, "never"), n=BATCH - 1)][number % 2]
            self.proxy.on_batch(4, proxy.answer(reply))
            outcome = self.begin(*["--resume"][:number]).wait()
            self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
            self.assertIn("never", outcome.err)
            self.assertIn(f"(code {code})", outcome.err)
            self.assertNotIn("trying again", outcome.err)
            self.assert_accounting(self.work, rejectedByServer=0)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    # What is sent

    def sent(self, name):
        """The commands of this name to the collection, in order: (place among all, body)."""
        found = []
        for place, message in enumerate(self.proxy.seen):
            command, value = proxy.command_of(message)
            if command == name and proxy.collection_of(value) == "t":
                found.append((place, proxy.body_of(message)))
        return found

    def check_concern(self, expected, *more):
        self.proxy.seen = []
        outcome = self.begin(*more).wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        inserts = self.sent("insert")
        self.assertGreater(len(inserts), 70)
        for _, body in inserts:
            self.assertEqual(body.get("writeConcern"), expected)

    def test_the_write_concern_of_each_insert(self):
        self.check_concern(self.concern)

    def test_a_write_concern_of_ones_own(self):
        self.check_concern({"w": 1}, "--write-concern", 1)

    def test_what_is_sent_again_is_looked_for_first(self):
        self.proxy.seen = []
        self.proxy.on_batch(5, proxy.cut_request(100))
        self.proxy.on_batch(9, proxy.cut_reply(0))
        self.proxy.on_batch(13, proxy.change_reply(with_n(0)))
        self.proxy.on_batch(17, proxy.answer(refused(error(3, 371), n=BATCH - 1)))
        outcome = self.begin().wait()
        self.assert_nothing_lost(outcome, again=2 * BATCH)
        self.assert_looked_for(4)

    def test_a_resumed_load_looks_before_it_sends(self):
        self.proxy.on_batch(20, proxy.answer(lambda _: {"ok": 0.0, "code": 13, "errmsg": "no"}))
        self.assertEqual(self.begin().wait().code, support.EXIT_CLUSTER)
        self.proxy.seen = []
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)
        inserts, finds = self.sent("insert"), self.sent("find")
        for place, _ in inserts:
            ids = self.ids_of(self.proxy.seen[place])
            self.assertTrue(any(found < place and self.asks_for(body, ids)
                                for found, body in finds), f"no look before insert {place}")

    def test_another_numeric_type_in_the_way_of_a_resumed_load(self):
        self.proxy.on_batch(20, proxy.answer(lambda _: {"ok": 0.0, "code": 13, "errmsg": "no"}))
        self.assertEqual(self.begin().wait().code, support.EXIT_CLUSTER)
        taken = self.database.t.find_one(sort=[("_id", -1)])["_id"]
        self.database.t.delete_one({"_id": taken})
        self.database.t.insert_one({"_id": bson.decimal128.Decimal128(str(taken))})
        outcome = self.begin("--resume", "--retry-timeout", 5).wait()
        self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
        self.assert_accounting(self.work, rejectedByServer=1, undelivered=0)
        self.assertIn("another document has this _id", outcome.err)

    def ids_of(self, message):
        return {document["_id"] for document in proxy.documents_of(message)}

    @staticmethod
    def asks_for(body, ids):
        """Does a find ask for some of these documents?"""
        wanted = body.get("filter", {}).get("_id", {})
        return any(one in ids for one in wanted.get("$in", [])) or any(
            wanted["$gte"] <= one < wanted["$lt"] for one in ids if "$gte" in wanted)

    def assert_looked_for(self, times):
        """Between two inserts that have documents in common there is a find for these."""
        before, again = {}, 0
        finds = self.sent("find")
        for place, _ in self.sent("insert"):
            ids = self.ids_of(self.proxy.seen[place])
            twice = ids & before.keys()
            if twice:
                again += 1
                last = max(before[one] for one in twice)
                self.assertTrue(any(last < found < place and self.asks_for(body, twice)
                                    for found, body in finds), f"no look before insert {place}")
            before.update(dict.fromkeys(ids, place))
        self.assertEqual(again, times)


class LoneServer(Replies, fault_case.ProxyCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"
    concern = {"w": 1, "j": True}


class Router(Replies, fault_case.ProxyCase):
    variable = "SHARDLOAD_TEST_URI"
    concern = {"w": "majority"}


class Crashes(fault_case.ProxyCase):
    """Answers that end the driver, and with it the process: docs/security.md lists the kinds. The
    work directory is resumable whichever answer it was."""

    variable = "SHARDLOAD_TEST_STANDALONE_URI"
    hostile = [
        lambda reply: {"ok": 0.0, "code": 0, "errmsg": "an error without a code"},
        lambda reply: {**reply, "writeErrors": [{"index": 0, "code": 121, "errmsg": 5}]},
        lambda reply: {**reply, "writeConcernError": 5},
        lambda reply: {**reply, "errorLabels": 5},
        lambda reply: b"\xff\xff\0\0\0",      # a document longer than its message
        lambda reply: b"\xff\xff\xff\xff\0",
    ]

    def test_each_hostile_answer_leaves_a_load_that_can_be_resumed(self):
        """Another version of the driver may survive an answer; the load may then end well, or stop."""
        deaths, resume = 0, []
        for number, answer in enumerate(self.hostile):
            self.proxy.on_batch(5 + number, proxy.change_reply(answer))
            outcome = self.begin("--retry-timeout", 5, *resume).wait()
            deaths += outcome.code < 0
            if outcome.code >= 0:
                self.assertIn(outcome.code, (support.EXIT_REJECTS, support.EXIT_CLUSTER),
                              outcome.text)
            self.proxy.forget()
            resume = ["--resume"]
        print(f"# {deaths} of {len(self.hostile)} answers ended the process")
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    def test_a_process_that_dies_of_a_fault_of_its_own(self):
        for number in (3, 20, 50):
            struck = self.proxy.on_batch(number, proxy.lose_reply())
            running = self.begin(*["--resume"][:number > 3])
            self.assertTrue(struck.struck.wait(support.LIMIT), running.text())
            running.signal(signal.SIGSEGV)
            self.assertEqual(running.wait().code, -signal.SIGSEGV)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class Profiled(fault_case.FaultCase):
    """Where the loader speaks to the members of a set directly, their profiler shows what came."""

    def profile(self, servers, *words):
        """Loads; returns the write concerns of all inserts, as these servers were sent them."""
        clients = [pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000) for uri in servers]
        concerns = []
        try:
            for client in clients:
                client[self.database_name].command("profile", 2)
            outcome = self.begin(*words, size=500).wait()
            self.assertEqual(outcome.code, support.EXIT_REJECTS, outcome.text)
            for client in clients:
                database = client[self.database_name]
                database.command("profile", 0)
                concerns += [entry["command"].get("writeConcern", {}) for entry in
                             database["system.profile"].find(
                                 {"op": "insert", "ns": f"{self.database_name}.t"})]
        finally:
            for client in clients:
                client.close()
        self.assertGreater(len(concerns), 10)
        return concerns

    def assert_concerns(self, expected, servers, *words):
        for concern in self.profile(servers, *words):
            self.assertEqual(concern, expected)


class ReplicaSet(Profiled):
    variable = "SHARDLOAD_TEST_REPLICA_URI"

    def test_majority(self):
        self.assert_concerns({"w": "majority"}, [self.uri])

    def test_a_number_of_members(self):
        self.assert_concerns({"w": 2}, [self.uri], "--write-concern", 2)

    def block_writes(self, on):
        self.client.admin.command("setUserWriteBlockMode", **{"global": on})

    def blocked(self, *words):
        """Begins a load, and blocks the writes of users in the middle of it."""
        running = self.begin(*words, size=10)
        self.wait_for_documents(running, 500)
        self.block_writes(True)
        self.addCleanup(self.block_writes, False)
        self.wait_for_word(running, "User writes blocked (code 371)")
        return running

    def test_writes_are_blocked_for_a_while(self):
        running = self.blocked()
        self.block_writes(False)
        self.assert_nothing_lost(running.wait(), again=SOME)

    def test_writes_are_blocked_for_longer_than_is_tried_again(self):
        outcome = self.blocked("--retry-timeout", 1).wait()
        self.assertEqual(outcome.code, support.EXIT_CLUSTER, outcome.text)
        self.assertIn("--resume", outcome.err)
        self.assert_accounting(self.work, rejectedByServer=0)
        self.block_writes(False)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class Direct(Profiled):
    def shards(self):
        return [f"mongodb://{shard['host'].partition('/')[2].split(',')[0]}/?directConnection=true"
                for shard in self.client.config.shards.find()]

    def test_majority(self):
        self.assert_concerns({"w": "majority"}, self.shards(), "--route", "direct")

    def test_a_number_of_members(self):
        self.assert_concerns({"w": 1}, self.shards(), "--route", "direct", "--write-concern", 1)


class BlockedCluster(fault_case.FaultCase):
    """The config servers block the writes of users on all shards."""

    shape = "--shards", 2

    def block_writes(self, on):
        with self.servers.member("cfg-0") as client:
            client.admin.command("_configsvrSetUserWriteBlockMode", 1, **{"global": on},
                                 writeConcern={"w": "majority"})

    def test_writes_are_blocked_in_the_middle(self):
        running = self.begin(size=10)
        self.wait_for_documents(running, 500)
        self.block_writes(True)
        try:
            self.wait_for_word(running, "User writes blocked (code 371)")
        finally:
            self.block_writes(False)
        self.assert_nothing_lost(running.wait(), again=SOME)


if __name__ == "__main__":
    import tap
    tap.main()
