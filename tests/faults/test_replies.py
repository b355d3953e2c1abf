# SPDX-License-Identifier: Apache-2.0
"""Replies to inserts whose counts are inconsistent or whose errors concern the server, and what the
loader sends: the write concern of each insert, and a find before documents are sent again.

Whatever a server replies, a load ends with the right documents and figures, or stops and can be
resumed. An error of the server must never turn a good record into a reject; and a document that the
server refuses again when it is sent alone must never end a load."""
import collections
import copy
import signal

import fault_case
import proxy
import support
from support import bson, pymongo

SOME = None                   # the number of documents found already stored depends on timing
BATCH = 20


def with_n(n):
    """Changes the number of inserted documents; None: removes it."""
    def change(reply):
        reply.pop("n")
        return reply if n is None else {"n": n, **reply}
    return change


def refused(*errors, n):
    """Changes a reply to `n` inserted documents and these write errors."""
    return lambda reply: {**reply, "n": n, "writeErrors": list(errors)}


def error(index, code=121, errmsg="error of the proxy"):
    return {"index": index, "code": code, "errmsg": errmsg}


# Changes that make the reply to a batch inconsistent; the server has inserted all its documents.
INCONSISTENT = [
    with_n(0), with_n(BATCH - 1), with_n(BATCH + 1), with_n(None), with_n(-1), with_n(-BATCH),
    with_n(1 << 30), with_n("many"),
    refused(error(3), error(3), n=BATCH - 2), refused(error(BATCH), n=BATCH - 1),
    refused(error(-1), n=BATCH - 1), refused(error(1 << 30), n=BATCH - 1),
    refused({"index": 5, "errmsg": "no code"}, n=BATCH - 1), refused(error(5, code=0), n=BATCH - 1),
    refused(error(5), n=BATCH), refused({"code": 121, "errmsg": "no index"}, n=BATCH - 1),
    lambda reply: {**reply, "writeConcernError": {"code": 64, "errmsg": "waited in vain"}},
    lambda reply: {"ok": 0.0, "code": 121, "errmsg": "a document's code for a command"}]

# Codes of temporary errors of a server, and codes that the loader does not know.
TEMPORARY = [0, 2, 7, 8, 9, 14, 20, 22, 24, 28, 39, 56, 57, 84, 91, 112, 146, 189, 202, 289, 371,
             10107, 11001, 11601, 12582, 13435, 14031, 17280, 17419, 5894900, 999999]


class SmallBatches:
    """Loads of 80 batches."""

    rows = 80 * BATCH

    def words(self, *more, **where):
        return super().words(*more, **{"size": BATCH, **where})


class FailingFinds(proxy.Proxy):
    """The first time that a find in a registry is sent, it fails as if no primary were known."""
    failed = ()

    def action_for(self, message):
        action, (name, value) = super().action_for(message), proxy.command_of(message)
        find = name == "find" and b".sources" in value and str(proxy.body_of(message)["filter"])
        if not find or find in self.failed:
            return action
        self.failed += (find,)
        return proxy.error_reply(133, "no primary")


class Replies(SmallBatches):
    def load_with(self, actions):
        """Loads; each action is applied to one batch, every second batch from the third on."""
        for number, action in enumerate(actions):
            self.proxy.on_batch(3 + 2 * number, action)
        outcome = self.begin("--retry-timeout", 60).wait()
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        return outcome

    def test_batches_with_inconsistent_replies_are_sent_again(self):
        outcome = self.load_with([proxy.change_reply(change) for change in INCONSISTENT])
        figures = self.assert_nothing_lost(outcome, again=len(INCONSISTENT) * BATCH)
        self.assertEqual(figures["retries"], len(INCONSISTENT), figures)
        self.assertIn("does not add up", outcome.err)

    def test_batches_that_were_not_inserted_are_sent_again(self):
        changes = [change for change in INCONSISTENT if change({"n": 0, "ok": 1.0}).get("n") != BATCH]
        outcome = self.load_with([proxy.answer(change) for change in changes])
        figures = self.assert_nothing_lost(outcome, again=0)
        self.assertEqual(figures["retries"], len(changes), figures)

    def test_finds_in_the_registry_are_repeated(self):
        """One failure when all documents were stored ended the load with exit code 4."""
        server = FailingFinds(support.port_of(self.uri))
        self.addCleanup(server.close)
        self.assert_nothing_lost(self.begin(uri=self.proxy_uri(server)).wait(), again=0)
        self.assertGreater(len(server.failed), 2)

    def test_errors_of_the_server_reject_no_document(self):
        """As the write error of one document, and as those of all documents of a batch."""
        actions = [proxy.change_reply(refused(error(7, code), n=BATCH - 1)) for code in TEMPORARY]
        actions += [proxy.answer(refused(*(error(i, code) for i in range(BATCH)), n=0))
                    for code in TEMPORARY if code % 2]
        outcome = self.load_with(actions[:38])
        self.assert_nothing_lost(outcome, again=SOME)
        self.assertIn("error of the proxy", outcome.err)

    def test_inserts_that_fail_with_a_temporary_error_are_sent_again(self):
        outcome = self.load_with([
            proxy.answer(lambda _, code=code: {"ok": 0.0, "code": code, "errmsg": "later"})
            for code in TEMPORARY if code != 0])
        self.assert_nothing_lost(outcome, again=0)

    def test_duplicates_that_are_reported_as_errors_of_the_command(self):
        """As a mongos 4.4 replies to inserts into database admin. Each document of the batch is sent alone."""
        refusal = proxy.error_reply(11000, "E11000 duplicate key error collection: d.t index: _id_ dup key: { _id: 1 }")
        plain = self.proxy.action_for
        self.proxy.on_batch(3, refusal)
        self.proxy.action_for = lambda message: refusal if (
            proxy.command_of(message)[0] == "insert" and len(proxy.documents_of(message)) == 1) else plain(message)
        self.assert_nothing_lost(self.begin("--retry-timeout", 5).wait(), again=SOME)

    def test_duplicates_without_a_message_are_looked_up(self):
        """A real router leaves out the messages after the first MiB. Documents that are not stored were refused
        by another unique index."""
        unexplained = refused(*(error(i, 11000, "") for i in range(BATCH)), n=0)
        self.proxy.on_batch(3, proxy.change_reply(unexplained))
        self.assert_nothing_lost(self.begin("--retry-timeout", 5).wait(), again=BATCH)
        self.proxy.on_batch(3, proxy.answer(unexplained))
        self.begin("--drop", "--retry-timeout", 5).wait().expect(
            support.EXIT_REJECTS, "an error without a message (code 11000)")
        self.assert_accounting(self.work, rejectedByServer=BATCH, undelivered=0)
        mixed = refused(*(error(i, *((11000, ""), (121, "no"))[i % 2]) for i in range(BATCH)), n=0)
        self.proxy.on_batch(3, proxy.answer(mixed))
        self.begin("--drop", "--retry-timeout", 5).wait().expect(support.EXIT_REJECTS, "(code 121)", "(code 11000)")
        self.assert_accounting(self.work, rejectedByServer=BATCH, undelivered=0)

    def test_a_server_that_inserts_nothing_and_reports_no_error_ends_the_load(self):
        """Replies of `n: 0` without an error do not count as delivered, even with --no-verify."""
        self.proxy.always = proxy.answer(lambda reply: reply)
        outcome = self.begin("--no-verify", "--retry-timeout", 1).wait().expect(support.EXIT_CLUSTER)
        self.assertEqual(support.run_record(self.work)["accounting"]["inserted"], 0)
        self.assertIn("gave up", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.proxy.clear_faults()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=0)

    def test_an_error_that_lasts_longer_than_the_retry_limit_ends_the_load(self):
        self.proxy.on_batch(20, proxy.call(lambda: setattr(
            self.proxy, "always", proxy.answer(refused(
                *(error(i, 14031, "the disk is full") for i in range(BATCH)), n=0)))))
        self.begin("--retry-timeout", 1).wait().expect(
            support.EXIT_CLUSTER, "the disk is full (code 14031)", "at byte")
        self.assert_accounting(self.work, rejectedByServer=0)
        self.proxy.clear_faults()
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    # Documents that the server always refuses, with a code that the loader does not know

    def refuse_documents(self, step, code, whole, times=None):
        """Every `step`-th document is refused from now on, or so many times; `whole`: with its command.
        The server stores the other documents of the batch. Returns the positions of the documents that
        are still to be refused."""
        refused_ones = set(sorted(self.expected[0].documents)[step // 2::step])
        seen = collections.Counter()
        forward = self.proxy.action_for

        def action_for(message):
            action = forward(message)
            command, value = proxy.command_of(message)
            if command != "insert" or proxy.collection_of(value) != "t":
                return action
            ids = [document["_id"] for document in proxy.documents_of(message)]
            bad = [i for i, one in enumerate(ids) if one & fault_case.POSITION in refused_ones]
            if not bad:
                return action
            seen.update(ids[i] & fault_case.POSITION for i in bad)
            refused_ones.difference_update([one for one in seen if seen[one] == times])
            if whole:
                return proxy.answer(lambda _: {"ok": 0.0, "code": code, "errmsg": "odd"})

            def change(reply):
                self.database.t.delete_many({"_id": {"$in": [ids[i] for i in bad]}})
                return refused(*(error(i, code, "odd") for i in bad), n=reply["n"] - len(bad))(reply)
            return proxy.change_reply(change)
        self.proxy.action_for = action_for
        self.addCleanup(setattr, self.proxy, "action_for", forward)
        return refused_ones

    def assert_refused(self, outcome, positions, code):
        """These documents are rejects with the server's words, and all others are stored."""
        outcome.expect(support.EXIT_REJECTS)
        rest = copy.copy(self.expected[0])
        rest.documents = {at: raw for at, raw in rest.documents.items() if at not in positions}
        self.assert_content([rest])
        self.assert_accounting(self.work, records=rest.records + len(positions),
                               inserted=len(rest.documents), alreadyStored=0,
                               rejectedByServer=len(positions), undelivered=0)
        reasons = [row["reason"] for row in support.reject_rows(self.work)]
        self.assertEqual(sum(f"odd (code {code})" in reason for reason in reasons), len(positions))

    def test_documents_that_the_server_always_refuses_are_rejects(self):
        positions = self.refuse_documents(397, 999999, whole=False)
        self.assertGreater(len(positions), 3)
        self.assert_refused(self.begin("--retry-timeout", 20).wait(), positions, 999999)

    def test_a_temporary_condition_that_lasts_rejects_no_document(self):
        """A router reports 82 (NoProgressMade) for each document while chunks move. Repeated for a
        document that is sent alone, such a code still is not about the document."""
        for code in (70, 82, 107, 175, 215, 304, 12586, 12587):
            with self.subTest(code=code):
                left = self.refuse_documents(797, code, whole=False, times=3)
                outcome = self.begin("--retry-timeout", 20, "--drop").wait()
                self.assert_nothing_lost(outcome, again=SOME)
                self.assertEqual(left, set())
                self.assertIn(f"odd (code {code})", outcome.err)

    def test_documents_whose_command_the_server_always_refuses_are_rejects(self):
        """The loader finds them among the documents of their batch."""
        for code in (2, 999999):
            with self.subTest(code=code):
                positions = self.refuse_documents(797, code, whole=True)
                self.assert_refused(self.begin("--retry-timeout", 20, "--drop").wait(), positions, code)

    def test_a_server_that_refuses_every_document_reaches_the_limit_of_rejects(self):
        self.refuse_documents(1, 999999, whole=False)
        outcome = self.begin("--max-rejects", 50).wait().expect(support.EXIT_SOURCE)
        self.assertIn("more than --max-rejects 50 allows", outcome.err)
        self.assertEqual(self.database.t.count_documents({}), 0)

    def test_documents_that_a_router_cannot_send_to_a_shard_are_rejects(self):
        """A real router refuses the command. The code is always about a document, so no other document of the
        batch need be stored."""
        positions = self.refuse_documents(797, 61, whole=True)
        self.assert_refused(self.begin("--retry-timeout", 20).wait(), positions, 61)
        self.refuse_documents(1, 61, whole=True)
        self.begin("--drop", "--max-rejects", 50, "--retry-timeout", 20).wait().expect(
            support.EXIT_SOURCE, "more than --max-rejects 50 allows")
        self.assertEqual(self.database.t.count_documents({}), 0)

    def test_a_server_that_refuses_every_command_rejects_nothing(self):
        for number, code in enumerate((2, 999999)):
            self.refuse_documents(1, code, whole=True)
            self.begin("--retry-timeout", 1, *["--resume"][:number]).wait().expect(
                support.EXIT_CLUSTER, f"odd (code {code})", "--resume")
            self.assert_accounting(self.work, rejectedByServer=0)
        del self.proxy.action_for
        self.assert_nothing_lost(self.begin("--resume").wait(), again=0)

    def test_permanent_errors_end_the_load_without_a_retry(self):
        codes = support.reply_codes("FINAL")
        self.assertIn(13, codes)
        codes.remove(361)   # CollectionUUIDMismatch has another message (test_dead_inserts.py)
        for number, code in enumerate(codes):
            reply = [lambda _: {"ok": 0.0, "code": code, "errmsg": "never"},
                     refused(error(1, code, "never"), n=BATCH - 1)][number % 2]
            self.proxy.on_batch(4, proxy.answer(reply))
            outcome = self.begin(*["--resume"][:number]).wait().expect(support.EXIT_CLUSTER, "never", f"(code {code})")
            self.assertNotIn("trying again", outcome.text)
            self.assert_accounting(self.work, rejectedByServer=0)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)

    # What the loader sends

    def recorded(self, name):
        """The recorded commands of this name to the collection: (number of the message, body)."""
        commands = []
        for number, message in enumerate(self.proxy.recorded):
            command, value = proxy.command_of(message)
            if command == name and proxy.collection_of(value) == "t":
                commands.append((number, proxy.body_of(message)))
        return commands

    def check_concern(self, expected, *more):
        self.proxy.recorded = []
        self.begin(*more).wait().expect(support.EXIT_REJECTS)
        inserts = self.recorded("insert")
        self.assertGreater(len(inserts), 70)
        for _, body in inserts:
            self.assertEqual(body.get("writeConcern"), expected)

    def test_the_write_concern_of_each_insert(self):
        self.check_concern(self.concern)

    def test_the_write_concern_given_on_the_command_line(self):
        self.check_concern({"w": 1}, "--write-concern", 1)

    def test_before_a_batch_is_sent_again_its_documents_are_looked_up(self):
        self.proxy.recorded = []
        self.proxy.on_batch(5, proxy.cut_request(100))
        self.proxy.on_batch(9, proxy.cut_reply(0))
        self.proxy.on_batch(13, proxy.change_reply(with_n(0)))
        self.proxy.on_batch(17, proxy.answer(refused(error(3, 371), n=BATCH - 1)))
        outcome = self.begin().wait()
        self.assert_nothing_lost(outcome, again=2 * BATCH)
        self.assert_looked_up(4)

    def test_a_resumed_load_looks_up_documents_before_it_sends_them(self):
        self.proxy.on_batch(20, proxy.answer(lambda _: {"ok": 0.0, "code": 13, "errmsg": "no"}))
        self.assertEqual(self.begin().wait().code, support.EXIT_CLUSTER)
        self.proxy.recorded = []
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)
        finds = self.recorded("find")
        for number, _ in self.recorded("insert"):
            ids = self.ids_of(self.proxy.recorded[number])
            self.assertTrue(any(earlier < number and self.reads_any(body, ids)
                                for earlier, body in finds), f"no find before insert {number}")

    def test_a_resumed_load_rejects_a_record_whose_id_is_stored_as_another_numeric_type(self):
        self.proxy.on_batch(20, proxy.answer(lambda _: {"ok": 0.0, "code": 13, "errmsg": "no"}))
        self.assertEqual(self.begin().wait().code, support.EXIT_CLUSTER)
        taken = self.database.t.find_one(sort=[("_id", -1)])["_id"]
        self.database.t.delete_one({"_id": taken})
        self.database.t.insert_one({"_id": bson.decimal128.Decimal128(str(taken))})
        outcome = self.begin("--resume", "--retry-timeout", 5).wait().expect(support.EXIT_REJECTS)
        self.assert_accounting(self.work, rejectedByServer=1, undelivered=0)
        self.assertIn("another document has this _id", outcome.err)

    def ids_of(self, message):
        return {document["_id"] for document in proxy.documents_of(message)}

    @staticmethod
    def reads_any(body, ids):
        """Whether the find reads any of these documents."""
        condition = body.get("filter", {}).get("_id", {})
        return any(one in ids for one in condition.get("$in", [])) or any(
            condition["$gte"] <= one < condition["$lt"] for one in ids if "$gte" in condition)

    def assert_looked_up(self, expected):
        """`expected` inserts contain documents of an earlier insert, and a find for such documents
        lies between the two inserts."""
        last_insert, retries = {}, 0         # _id -> number of the last insert that contained it
        finds = self.recorded("find")
        for number, _ in self.recorded("insert"):
            ids = self.ids_of(self.proxy.recorded[number])
            repeated = ids & last_insert.keys()
            if repeated:
                retries += 1
                last = max(last_insert[one] for one in repeated)
                self.assertTrue(any(last < between < number and self.reads_any(body, repeated)
                                    for between, body in finds), f"no find before insert {number}")
            last_insert.update(dict.fromkeys(ids, number))
        self.assertEqual(retries, expected)


class LoneServer(Replies, fault_case.ProxyCase, server="mongod"):
    concern = {"w": 1, "j": True}


class Router(Replies, fault_case.ProxyCase):
    concern = {"w": "majority"}


class Crashes(SmallBatches, fault_case.ProxyCase, server="mongod"):
    """Replies that would crash the driver, or that it would take for others (docs/security.md lists them). The
    loader refuses them before the driver reads them. After a crash for another reason the load can be resumed."""

    hostile = [
        lambda reply: {"ok": 0.0, "code": 0, "errmsg": "an error without a code"},
        lambda reply: {**reply, "writeErrors": [{"index": 0, "code": 121, "errmsg": 5}]},
        lambda reply: {**reply, "writeConcernError": 5},
        lambda reply: {**reply, "errorLabels": 5},
        lambda reply: b"\xff\xff\0\0\0",      # a document longer than its message
        lambda reply: b"\xff\xff\xff\xff\0",
        lambda reply: b"\0\0\0\0\0" + b"\0" * 80,    # a document of no bytes
        lambda reply: {**reply, "writeErrors": [5]},
        lambda reply: bson.encode({**reply, "a": {"b": {}}})[:-7] + b"\1\1\1\0\0\0\0",
        lambda reply: {**reply, "ok": 0.0},
        refused(error(bson.int64.Int64(5)), n=BATCH - 1), refused(error(5.5), n=BATCH - 1),
    ]

    def test_replies_that_would_crash_the_driver_are_refused_and_the_batch_is_sent_again(self):
        for number, change in enumerate(self.hostile):
            self.proxy.on_batch(5 + 3 * number, proxy.change_reply(change))
        outcome = self.begin("--retry-timeout", 60).wait()
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        self.assert_nothing_lost(outcome, again=len(self.hostile) * BATCH)
        self.assertIn("a message of 127.0.0.1:", outcome.err)
        self.assertIn("is refused: ", outcome.err)

    def test_a_load_can_be_resumed_after_a_segmentation_fault(self):
        for number in (3, 20, 50):
            batch = self.proxy.on_batch(number, proxy.lose_reply())
            running = self.begin(*["--resume"][:number > 3])
            self.assertTrue(batch.arrived.wait(support.LIMIT), running.text())
            running.signal(signal.SIGSEGV)
            self.assertEqual(running.wait().code, -signal.SIGSEGV)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class Profiled(fault_case.FaultCase):
    """The loader connects to the members of a replica set without the proxy; their profiler records
    the inserts."""

    rows = 4000

    def profile(self, servers, *words):
        """Loads. Returns the write concern of each insert that these servers received."""
        clients = [pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000) for uri in servers]
        concerns = []
        try:
            for client in clients:
                client[self.database_name].command("profile", 2)
            self.begin(*words, size=250).wait().expect(support.EXIT_REJECTS)
            for client in clients:
                database = client[self.database_name]
                database.command("profile", 0)
                concerns += [entry["command"].get("writeConcern", {}) for entry in
                             database["system.profile"].find({"op": "insert", "ns": f"{self.database_name}.t"})]
        finally:
            for client in clients:
                client.close()
        self.assertGreater(len(concerns), 10)
        return concerns

    def assert_concerns(self, expected, servers, *words):
        for concern in self.profile(servers, *words):
            self.assertEqual(concern, expected)


class WritesBlocked:
    def load_with_writes_blocked(self, *words):
        """Starts a load, and makes the server refuse the writes of users during the load."""
        self.needs("6.0", "user write block mode")
        running = self.begin(*words, size=10)
        self.wait_for_documents(running, 500)
        self.block_writes(True)
        self.addCleanup(self.block_writes, False)
        self.wait_for_word(running, "User writes blocked (code 371)")
        return running

    def test_the_load_goes_on_when_writes_are_allowed_again(self):
        running = self.load_with_writes_blocked()
        self.block_writes(False)
        self.assert_nothing_lost(running.wait(), again=SOME)


class ReplicaSet(WritesBlocked, Profiled, server="replica"):
    def test_the_default_write_concern_is_majority(self):
        self.assert_concerns({"w": "majority"}, [self.uri])

    def test_a_write_concern_of_two_members(self):
        self.assert_concerns({"w": 2}, [self.uri], "--write-concern", 2)

    def block_writes(self, on):
        self.client.admin.command("setUserWriteBlockMode", **{"global": on})

    def test_the_load_ends_when_writes_are_blocked_for_longer_than_the_retry_limit(self):
        self.load_with_writes_blocked("--retry-timeout", 1).wait().expect(support.EXIT_CLUSTER, "--resume")
        self.assert_accounting(self.work, rejectedByServer=0)
        self.block_writes(False)
        self.assert_nothing_lost(self.begin("--resume").wait(), again=SOME)


class Direct(Profiled):
    def shards(self):
        return [f"mongodb://{shard['host'].partition('/')[2].split(',')[0]}/?directConnection=true"
                for shard in self.client.config.shards.find()]

    def test_the_default_write_concern_is_majority(self):
        self.assert_concerns({"w": "majority"}, self.shards(), "--route", "direct")

    def test_a_write_concern_of_one_member(self):
        self.assert_concerns({"w": 1}, self.shards(), "--route", "direct", "--write-concern", 1)


class BlockedCluster(WritesBlocked, fault_case.FaultCase):
    """The config servers block the writes of users on all shards."""

    shape = "--shards", 2
    rows = 4000

    def block_writes(self, on):
        with self.servers.member("cfg-0") as client:
            client.admin.command("_configsvrSetUserWriteBlockMode", 1, **{"global": on},
                                 writeConcern={"w": "majority"})
