# SPDX-License-Identifier: Apache-2.0
"""The last running load restarts the balancer, on whichever hosts the other loads ran and however
they ended; and a load fails if the server refuses to stop or to start the balancer."""
import datetime
import os
import socket
import threading
import time

import proxy
import support
from support import bson

ROWS = 3000


class BalancerCase(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.state = self.client.shardload.balancer
        self.clear_balancer()
        self.addCleanup(self.clear_balancer)
        self.path = self.file("year.txt", support.mot_text(range(1, ROWS + 1)))

    def now(self):
        """The server's time."""
        return support.hello(self.client)["localTime"]

    def ago(self, seconds):
        return self.now() - datetime.timedelta(seconds=seconds)

    def add_holder(self, before="full", **fields):
        """Stops the balancer, and adds the entry of another loader. Returns its id."""
        self.client.admin.command("balancerStop")
        holder = {"id": bson.ObjectId(), "host": "elsewhere", "hostId": "elsewhere-0123456789ab",
                  "pid": bson.int64.Int64(1), "start": bson.int64.Int64(7), "since": self.ago(600),
                  **fields}
        holder = {key: value for key, value in holder.items() if value is not None}
        self.state.update_one({"_id": "state"}, {"$set": {"before": before}, "$push": {"holders": holder}}, upsert=True)
        return holder["id"]

    def keep_alive(self, holder):
        """Refreshes the entry of this holder until the test ends."""
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

    def assert_restored(self, mode="full"):
        self.assertEqual(self.balancer_mode(), mode)
        self.assertEqual(list(self.state.find({})), [])

    def load_from_open_pipe(self, *words):
        """Starts a load that runs until its pipe is closed. Returns (Running, the pipe)."""
        running, feed = self.start_with_pipe("shardload", *self.load_words("slow", *words, "-"),
                                             text=self.path.read_bytes())
        self.wait_for(lambda: not running.running() or
                      (self.holders() and self.balancer_mode() == "off"), "the balancer to stop")
        self.assertTrue(running.running(), running.text())
        return running, feed


class Holders(BalancerCase):
    def test_the_entry_of_an_ended_loader_on_another_host_is_ignored(self):
        """Also one whose heartbeat is in the future. A few of many are named."""
        for before, seconds in (("full", 125), ("off", 125), ("full", -10**10)):
            with self.subTest(before=before, seconds=seconds):
                self.database.t.drop()
                for _ in range(5):
                    self.add_holder(before, refreshed=self.ago(seconds))
                outcome, _ = self.load("--again", self.path, message="the same applies to 2 more loads")
                self.assertEqual(outcome.err.count("process 1 on elsewhere"), 3)
                self.assert_restored(before)

    def test_a_loader_that_stops_refreshing_its_entry_is_waited_for_and_then_ignored(self):
        self.add_holder(refreshed=self.ago(105))
        outcome, _ = self.load(self.path)
        self.assert_restored()
        self.assertIn("ended without restoring the balancer", outcome.err)

    def test_a_running_loader_keeps_the_balancer_stopped(self):
        # As from a container with this host's name: no process here has the entry's number.
        holder = self.add_holder(refreshed=self.now(), host=socket.gethostname(), pid=bson.int64.Int64(2 ** 22 + 1))
        self.keep_alive(holder)
        forged = [{"id": bson.ObjectId(), "host": "x", "refreshed": self.now()} for _ in range(1200)]
        self.state.update_one({"_id": "state"}, {"$push": {"holders": {"$each": forged}}})  # 1,000 are kept
        self.load(self.path, message="stays stopped for another load")
        self.assertEqual(self.balancer_mode(), "off")
        self.assertEqual([entry["id"] for entry in self.holders()], [holder, *(each["id"] for each in forged[:999])])

    def test_an_ended_loader_of_another_host_is_not_confused_with_a_local_process(self):
        with open("/proc/self/stat", encoding="ascii") as stat:
            start = int(stat.read().rpartition(")")[2].split()[19])
        self.add_holder(refreshed=self.ago(125), host=socket.gethostname(),
                        pid=bson.int64.Int64(os.getpid()), start=bson.int64.Int64(start))
        self.load(self.path)
        self.assert_restored()

    def test_entries_of_earlier_versions_without_refreshes(self):
        self.add_holder(hostId=None, since=self.ago(3 * 86400))
        self.load(self.path)
        self.assert_restored()
        self.add_holder(hostId=None, since=self.ago(300))     # it may still be running
        self.load("--again", self.path, message="stays stopped for another load")
        self.assertEqual(self.balancer_mode(), "off")

    def test_a_running_load_refreshes_its_entry(self):
        running, feed = self.load_from_open_pipe()
        first = self.holders()[0]["refreshed"]
        self.wait_for(lambda: self.holders()[0]["refreshed"] > first, "a heartbeat")
        self.wait_for(lambda: self.state.find_one({"_id": "lock"}) is None, "the lock to be free")
        feed.close()
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())
        self.assert_restored()

    def test_a_running_load_whose_entry_was_removed_stops_the_balancer_again(self):
        running, feed = self.load_from_open_pipe()
        self.state.delete_many({})
        self.client.admin.command("balancerStart")
        self.wait_for(lambda: self.holders() and self.balancer_mode() == "off", "the balancer to be stopped again")
        self.wait_for(lambda: "another load has restored the balancer" in running.text(), "the warning")
        feed.close()
        self.assertEqual(running.wait().code, support.EXIT_OK, running.text())
        self.assert_restored()

    def test_a_resumed_load_does_not_wait_for_its_own_entry(self):
        path = self.generate("B", 60000, "--seed", 31)
        words = self.load_words("work", "-j", 1, "--batch-size", 50, *path)
        running = self.start("shardload", *words)
        self.wait_for_documents(running, 200)
        running.kill()
        self.assertEqual(len(self.holders()), 1)
        # As if the first run had been on another host, and were still refreshing its entry.
        self.state.update_one({"_id": "state"}, {"$set": {
            "holders.0.host": "elsewhere", "holders.0.hostId": "elsewhere-0123456789ab",
            "holders.0.refreshed": self.now() + datetime.timedelta(days=1)}})
        outcome = self.shardload(*words, "--resume", "--batch-size", 5000)
        self.assertNotIn("another load", outcome.text)
        self.assert_restored()

    def test_ctrl_c_ends_the_wait_for_the_lock(self):
        """It did not, for two minutes."""
        holder = {"id": bson.ObjectId(), "host": "elsewhere", "pid": bson.int64.Int64(1)}
        self.state.insert_one({"_id": "lock", "holder": holder})
        running = self.start("shardload", *self.load_words("work", self.path))
        self.wait_for(lambda: "now" in self.state.find_one({"_id": "lock"}), "the load to ask for the lock")
        running.interrupt("interrupted while another load held the lock of the balancer")
        self.assertEqual(self.state.find_one({"_id": "lock"})["holder"], holder)

    def test_plan_shows_the_loaders_that_have_stopped_the_balancer(self):
        self.add_holder(refreshed=self.ago(600), host="first\x1b[31m")
        plan = self.scratch / "plan.json"
        words = ["plan", *self.target(), "--report", plan, self.path]
        outcome = self.shardload(*words)
        self.assertIn("the balancer is off", outcome.out)
        self.assertIn("it was on before loads stopped it", outcome.out)
        self.assertRegex(outcome.out, r"it has ended, last heartbeat 6\d\d")
        self.assertIn("all of these loads have ended", outcome.out)
        self.assertNotIn("\x1b", outcome.out)
        self.keep_alive(self.add_holder(refreshed=self.now(), host="second"))
        outcome = self.shardload(*words)
        self.assertRegex(outcome.out, r"process 1 on second \(it holds the balancer, last heartbeat "
                                      r"\d+ s ago\)")
        self.assertNotIn("all of these loads have ended", outcome.out)
        self.assertEqual(len(self.holders()), 2)


# 31.75 s with the pauses between them: longer than --timeout 1 and the 30 s of retries for a server
# that does not reply.
BUSY_REPLIES, BUSY_SECONDS = 4, 7.5


class BusyBalancer(proxy.Proxy):
    """A router whose first replies to balancerStop are late, and report that the lock is busy."""

    refused = 0

    def action_for(self, message):
        if proxy.command_of(message)[0] != "balancerStop" or self.refused == BUSY_REPLIES:
            return super().action_for(message)
        self.refused += 1
        time.sleep(BUSY_SECONDS)
        return proxy.answer(lambda _: {"ok": 0.0, "code": 46, "codeName": "LockBusy",
                                       "errmsg": "timed out waiting for balancerStop"})


class Refusals(BalancerCase):
    """The server refuses an administrative command."""

    def load_refused(self, command, *words, **more):
        """Loads through a server that refuses this command. Returns (outcome, work directory)."""
        server = proxy.Proxy(support.port_of(self.uri))
        server.change_request = proxy.unknown_command(command)
        return self.load(*words, self.path, through=server, **{"code": support.EXIT_CLUSTER, **more})

    def resume(self, work, *words):
        self.shardload(*self.load_words(work, "--resume", *words, self.path))

    def test_a_balancer_that_may_not_be_stopped_is_a_warning(self):
        for command, said in (("balancerStop", "balancerSto?"), ("balancerStatus", "balancerStatu?")):
            with self.subTest(command):
                self.load_refused(command, "--drop", "--again", code=support.EXIT_OK,
                                  message=("the balancer is not stopped: ", said))
                self.assertEqual(self.database.t.count_documents({}), ROWS)
                self.assert_restored()

    def test_a_load_that_may_not_stop_the_balancer_leaves_it_to_the_next_one(self):
        """A load was killed that had stopped the balancer."""
        self.client.admin.command("balancerStop")
        self.add_holder(refreshed=self.ago(600))
        self.load_refused("balancerStop", code=support.EXIT_OK, message="the balancer is not stopped: ")
        self.assertEqual(self.balancer_mode(), "off")
        self.assertEqual(self.state.find_one({"_id": "state"})["before"], "full")
        self.load("--again", self.path)
        self.assert_restored()

    def test_a_server_that_is_slow_to_stop_the_balancer_is_waited_for(self):
        server = BusyBalancer(support.port_of(self.uri))
        self.load("--timeout", 1, self.path, through=server)
        self.assertEqual(server.refused, BUSY_REPLIES)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assert_restored()

    def test_a_balancer_that_cannot_be_restarted_fails_the_load_until_it_is_resumed(self):
        _, work = self.load_refused("balancerStart", message=(
            "cannot restore the balancer (it was \"full\")", "sh.startBalancer()"))
        self.assertEqual(self.balancer_mode(), "off")
        self.assertEqual(support.run_record(work)["balancer"]["after"], "off")
        self.resume(work)
        self.assertEqual(self.database.t.count_documents({}), ROWS)
        self.assert_restored()

    def test_an_index_that_cannot_be_built_fails_the_load_until_it_is_resumed(self):
        _, work = self.load_refused("createIndexes", "--index", '{"v": 1}',
                                    message=("cannot build index v_1", "--resume"))
        self.assert_restored()
        self.resume(work, "--index", '{"v": 1}')
        self.assertIn("v_1", self.database.t.index_information())

    def test_a_collection_that_could_not_be_sharded_is_sharded_by_the_next_load(self):
        self.load_refused("shardCollection")
        self.assert_restored()
        self.assertEqual(self.database.t.count_documents({}), 0)
        self.load(self.path)
        self.assertIsNotNone(self.shard_key())
