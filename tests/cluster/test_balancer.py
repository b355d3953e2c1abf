# SPDX-License-Identifier: Apache-2.0
"""The balancer is put back by the last load that is alive, wherever the others ran and however they
ended; and what happens when the server refuses to stop it or to start it."""
import datetime
import os
import signal
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "faults")]
import proxy  # noqa: E402
import support  # noqa: E402
from support import HEADER, ROW, bson  # noqa: E402

ROWS = 3000


class BalancerCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.state = self.client.shardload.balancer
        self.state.delete_many({})
        self.client.admin.command("balancerStart")
        self.addCleanup(self.client.admin.command, "balancerStart")
        self.addCleanup(self.state.delete_many, {})
        self.path = self.file("year.txt", HEADER + "\n" + "".join(
            ROW.format(id=n) + "\n" for n in range(1, ROWS + 1)))

    def now(self):
        """By the server's clock."""
        return self.client.admin.command("hello")["localTime"]

    def ago(self, seconds):
        return self.now() - datetime.timedelta(seconds=seconds)

    def hold(self, before="full", **fields):
        """An entry of another loader, which has stopped the balancer."""
        self.client.admin.command("balancerStop")
        holder = {"id": bson.ObjectId(), "host": "elsewhere", "hostId": "elsewhere-0123456789ab",
                  "pid": bson.int64.Int64(1), "start": bson.int64.Int64(7), "since": self.ago(600),
                  **fields}
        holder = {key: value for key, value in holder.items() if value is not None}
        self.state.update_one({"_id": "state"}, {"$set": {"before": before},
                                                 "$push": {"holders": holder}}, upsert=True)
        return holder["id"]

    def beat(self, holder):
        """Heartbeats of this holder, until the test ends."""
        over = threading.Event()

        def run():
            while not over.wait(0.3):
                self.state.update_one({"_id": "state", "holders.id": holder},
                                      {"$currentDate": {"holders.$.refreshed": True}})
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)

    def holders(self):
        return (self.state.find_one({"_id": "state"}) or {"holders": []})["holders"]

    def assert_put_back(self, mode="full"):
        self.assertEqual(self.balancer_mode(), mode)
        self.assertEqual(list(self.state.find({})), [])

    def slow(self, *words):
        """A load from a pipe that goes on until the pipe, which is returned, is closed."""
        read_end, write_end = os.pipe()
        feed = os.fdopen(write_end, "wb")
        self.addCleanup(feed.close)
        running = self.start("shardload", "load", *self.target(), "--work-dir", "slow",
                             "--progress", "none", *words, "-", stdin=read_end)
        os.close(read_end)
        feed.write(self.path.read_bytes())
        feed.flush()
        self.wait_for(lambda: not running.running() or
                      (self.holders() and self.balancer_mode() == "off"), "the balancer to stop")
        self.assertTrue(running.running(), running.text())
        return running, feed


class Holders(BalancerCase):
    def test_a_dead_loader_of_another_host_is_passed_over(self):
        for before in ("full", "off"):
            with self.subTest(before=before):
                self.database.t.drop()
                self.hold(before, refreshed=self.ago(125))
                outcome, _ = self.load("--again", self.path)
                self.assertIn("process 1 on elsewhere", outcome.err)
                self.assert_put_back(before)

    def test_one_that_has_just_died_is_waited_out(self):
        # Seen alive a moment ago: time alone tells that it is not.
        self.hold(refreshed=self.ago(105))
        outcome, _ = self.load(self.path)
        self.assert_put_back()
        self.assertIn("ended without restoring the balancer", outcome.err)

    def test_a_live_one_keeps_the_balancer_stopped(self):
        # Its process number is nobody's here, and its host has this host's name: a container.
        holder = self.hold(refreshed=self.now(), host=socket.gethostname(),
                           pid=bson.int64.Int64(2 ** 22 + 1))
        self.beat(holder)
        outcome, _ = self.load(self.path)
        self.assertIn("stays stopped for another load", outcome.err)
        self.assertEqual(self.balancer_mode(), "off")
        self.assertEqual([entry["id"] for entry in self.holders()], [holder])

    def test_a_process_of_another_host_with_a_number_that_lives_here(self):
        with open("/proc/self/stat", encoding="ascii") as stat:
            start = int(stat.read().rpartition(")")[2].split()[19])
        self.hold(refreshed=self.ago(125), host=socket.gethostname(),
                  pid=bson.int64.Int64(os.getpid()), start=bson.int64.Int64(start))
        self.load(self.path)
        self.assert_put_back()

    def test_entries_of_earlier_versions(self):
        self.hold(hostId=None, since=self.ago(3 * 86400))
        self.load(self.path)
        self.assert_put_back()
        self.hold(hostId=None, since=self.ago(300))     # it may be alive
        outcome, _ = self.load("--again", self.path)
        self.assertIn("stays stopped for another load", outcome.err)
        self.assertEqual(self.balancer_mode(), "off")

    def test_a_load_shows_that_it_is_alive(self):
        running, feed = self.slow()
        first = self.holders()[0]["refreshed"]
        self.wait_for(lambda: self.holders()[0]["refreshed"] > first, "a heartbeat")
        self.wait_for(lambda: self.state.find_one({"_id": "lock"}) is None, "the lock to be free")
        feed.close()
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())
        self.assert_put_back()

    def test_one_that_was_taken_for_dead_stops_it_again(self):
        running, feed = self.slow()
        self.state.delete_many({})
        self.client.admin.command("balancerStart")
        self.wait_for(lambda: self.holders() and self.balancer_mode() == "off",
                      "the balancer to be stopped again")
        self.wait_for(lambda: "took this one for dead" in running.text(), "the warning")
        feed.close()
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())
        self.assert_put_back()

    def test_a_load_that_is_resumed_knows_its_own_entry(self):
        path, _ = self.generate("B", 60000, "--seed", 31)
        words = ["load", *self.target(), "--work-dir", "work", "--progress", "none", "-j", 1,
                 "--batch-size", 50, *path]
        running = self.start("shardload", *words)
        self.wait_for(lambda: not running.running() or
                      self.database.t.estimated_document_count() > 200, "documents")
        running.signal(signal.SIGKILL)
        running.wait()
        (entry,) = self.holders()
        # As if it had run on another host, and had been alive a moment ago.
        self.state.update_one({"_id": "state"}, {"$set": {
            "holders.0.host": "elsewhere", "holders.0.hostId": "elsewhere-0123456789ab",
            "holders.0.refreshed": self.now() + datetime.timedelta(days=1)}})
        outcome = self.shardload(*words, "--resume", "--batch-size", 5000)
        self.assertNotIn("another load", outcome.err)
        self.assert_put_back()
        self.assertTrue(entry["id"])

    def test_plan_shows_the_holders(self):
        self.hold(refreshed=self.ago(600), host="first\x1b[31m")
        plan = self.scratch / "plan.json"
        words = ["plan", *self.target(), "--report", plan, self.path]
        outcome = self.shardload(*words)
        self.assertIn("the balancer is off", outcome.out)
        self.assertIn("it was on before loads stopped it", outcome.out)
        self.assertIn("it has ended, last heartbeat 60", outcome.out)
        self.assertIn("all of these loads have ended", outcome.out)
        self.assertNotIn("\x1b", outcome.out)
        self.beat(self.hold(refreshed=self.now(), host="second"))
        outcome = self.shardload(*words)
        self.assertRegex(outcome.out, r"process 1 on second \(it holds the balancer, last heartbeat "
                                      r"\d s ago\)")
        self.assertNotIn("all of these loads have ended", outcome.out)
        self.assertEqual(len(self.holders()), 2)


# Together longer than --timeout 1 and the 30 s for which a silent server is tried again.
BUSY_ANSWERS, BUSY_SECONDS = 4, 9


class BusyBalancer(proxy.Proxy):
    """A router whose first answers to balancerStop are late, and report a lock that is taken."""

    refused = 0

    def action_for(self, message):
        if proxy.command_of(message)[0] != "balancerStop" or self.refused == BUSY_ANSWERS:
            return super().action_for(message)
        self.refused += 1
        time.sleep(BUSY_SECONDS)
        return proxy.answer(lambda _: {"ok": 0.0, "code": 46, "codeName": "LockBusy",
                                       "errmsg": "timed out waiting for balancerStop"})


class Refusals(BalancerCase):
    """The server refuses an administrative command, and does nothing."""

    def through(self, name):
        port = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        server = proxy.Proxy(port)
        server.change_request = proxy.unknown_command(name)
        self.addCleanup(server.close)
        return server

    def load_through(self, server, *words, code):
        return self.shardload(
            "load", "--uri", f"mongodb://{support.HOST}:{server.port}/", "-d", self.database_name,
            "-c", "t", "--work-dir", "work", "--progress", "none", *words, self.path, code=code)

    def test_it_cannot_be_stopped(self):
        outcome = self.load_through(self.through("balancerStop"), code=support.EXIT_CLUSTER)
        self.assertIn("cannot stop the balancer", outcome.err)
        self.assertIn("balancerSto?", outcome.err)
        self.assertNotIn("t", self.database.list_collection_names())
        self.assert_put_back()

    def test_a_stop_that_takes_long_is_waited_for(self):
        """A server that answers "busy" is asked again, however long each of its answers takes."""
        port = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        server = BusyBalancer(port)
        self.addCleanup(server.close)
        self.load_through(server, "--timeout", 1, code=support.EXIT_OK)
        self.assertEqual(server.refused, BUSY_ANSWERS)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assert_put_back()

    def test_it_cannot_be_asked(self):
        outcome = self.load_through(self.through("balancerStatus"), code=support.EXIT_CLUSTER)
        self.assertIn("cannot stop the balancer", outcome.err)
        self.assert_put_back()

    def test_it_cannot_be_put_back(self):
        outcome = self.load_through(self.through("balancerStart"), code=support.EXIT_CLUSTER)
        self.assertIn("cannot restore the balancer (it was \"full\")", outcome.err)
        self.assertIn("sh.startBalancer()", outcome.err)
        self.assertEqual(self.balancer_mode(), "off")
        self.assertEqual(support.run_record(self.scratch / "work")["balancer"]["after"], "off")
        # The same load, completed, puts it back; so would any other one.
        self.shardload("load", *self.target(), "--work-dir", "work", "--progress", "none",
                       "--resume", self.path)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assert_put_back()

    def test_an_index_cannot_be_built(self):
        outcome = self.load_through(self.through("createIndexes"), "--index", '{"v": 1}',
                                    code=support.EXIT_CLUSTER)
        self.assertIn("cannot build index v_1", outcome.err)
        self.assertIn("--resume", outcome.err)
        self.assert_put_back()
        self.shardload("load", *self.target(), "--work-dir", "work", "--progress", "none",
                       "--resume", "--index", '{"v": 1}', self.path)
        self.assertIn("v_1", self.database.t.index_information())

    def test_the_collection_cannot_be_sharded(self):
        self.load_through(self.through("shardCollection"), code=support.EXIT_CLUSTER)
        self.assert_put_back()
        self.assertEqual(self.database.t.count_documents({}), 0)
        self.load(self.path)     # completes it: it is not left unsharded in silence
        namespace = f"{self.database_name}.t"
        self.assertIsNotNone(self.client.config.collections.find_one({"_id": namespace}))


if __name__ == "__main__":
    import tap
    tap.main()
