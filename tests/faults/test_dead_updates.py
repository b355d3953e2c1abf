# SPDX-License-Identifier: Apache-2.0
"""Updates, deletes and inserts of a killed loader do not change what the next load writes into the
same collection, which has the same UUID."""

from ownership_case import FAILPOINTS, HOLD_INSERTS, NAMED_BY_UUID, OwnershipCase, WithoutUuid

HOLD_UPDATES, HOLD_DELETES = "hangDuringBatchUpdate", "hangDuringBatchRemove"
ROWS = 200
KEYS = range(ROWS)     # of the documents that are stored before the loads


class DeadUpdates(OwnershipCase):
    @classmethod
    def make_source(cls, folder):
        return None, []     # each load has a table of its own

    def setUp(self):
        super().setUp()
        self.work = self.scratch / "base"
        self.load_rows("upsert", "base", KEYS).wait()
        self.assertEqual(self.values(), dict.fromkeys(KEYS, "base"))

    def table(self, value, keys):
        text = "\n".join(["k,v", *(f"{key},{value}" for key in keys), ""])
        return self.file(f"{value}.csv", text)

    def load_rows(self, mode, value, keys, *more, **where):
        return self.begin("--id-field", "k", "--mode", mode, *more, source=self.table(value, keys),
                          **where)

    def values(self):
        return {one["_id"]: one["v"] for one in self.database.t.find()}

    def kill(self, failpoint, mode, keys):
        """Kills a loader while the servers hold its writes. Returns (a function that releases them,
        the held writes)."""
        release = self.hold_inserts(failpoint)
        self.work = self.first_work
        running = self.load_rows(mode, "old", keys, threads=4)
        self.wait_for(lambda: not running.running() or self.held_inserts(failpoint), "held writes")
        self.assertTrue(running.running(), running.text())
        running.kill()
        return release, self.held_inserts(failpoint)

    def check(self, failpoint, dead_mode, mode, waits_for, keys=KEYS, resume=False):
        """A loader is killed while its writes are held, and the next load begins. The writes are
        released when the next load waits for them, or has written something itself."""
        release, held = self.kill(failpoint, dead_mode, keys)
        if resume:
            running = self.begin("--id-field", "k", "--mode", mode, "--resume", threads=4,
                                 source=self.scratch / "old.csv")
        else:
            self.work = self.second_work
            running = self.load_rows(mode, "new", keys[:50])
        self.wait_for(lambda: not running.running() or " is running on " in running.text() or
                      self.held_inserts(failpoint) - held, "the next load")
        wrote = self.held_inserts(failpoint) - held
        release()
        outcome = running.wait()
        self.assertFalse(wrote, "the next load did not wait")
        self.assertEqual(outcome.code, 0, outcome.text)
        self.assertIn(f"{waits_for} is running on ", outcome.err)
        self.assertIn("waiting for its end", outcome.err)
        return self.values()

    def test_the_next_load_waits_for_updates(self):
        for mode in ("upsert", "merge", "replace"):
            with self.subTest(mode):
                self.first_work = self.scratch / f"first-{mode}"
                self.second_work = self.scratch / f"second-{mode}"
                values = self.check(HOLD_UPDATES, mode, mode, "an update")
                self.assertEqual([values[key] for key in range(50)], ["new"] * 50)
                self.assertEqual(len(values), ROWS)

    def test_a_delete_waits_for_inserts(self):
        keys = range(ROWS, ROWS + 50)
        values = self.check(HOLD_INSERTS, "insert", "delete", "an insert", keys)
        self.assertEqual(values, dict.fromkeys(KEYS, "base"))

    def test_a_resumed_load_waits_for_updates(self):
        values = self.check(HOLD_UPDATES, "upsert", "upsert", "an update", resume=True)
        self.assertEqual(values, dict.fromkeys(KEYS, "old"))

    def test_an_insert_waits_for_updates_of_the_same_ids(self):
        """The dead loader's upserts would replace documents that were just inserted. Which of them
        were executed before it died is not known."""
        keys = range(ROWS, ROWS + 50)
        release, _ = self.kill(HOLD_UPDATES, "upsert", keys)
        self.work = self.second_work
        running = self.load_rows("insert", "new", keys)
        self.wait_for_word(running, "an update is running on ")
        release()
        outcome = running.wait()
        values = self.values()
        new = [key for key in keys if values[key] == "new"]
        self.assert_accounting(self.second_work, inserted=len(new), rejectedByServer=50 - len(new))
        self.assertEqual(outcome.code == 0, len(new) == 50, outcome.text)

    def test_an_insert_does_not_wait_for_inserts(self):
        """One of two inserts with the same _id is refused, whichever is the first."""
        self.needs("6.0", NAMED_BY_UUID)
        keys = range(ROWS, ROWS + 50)
        release, held = self.kill(HOLD_INSERTS, "insert", keys)
        self.work = self.second_work
        running = self.load_rows("insert", "new", range(1000, 1050), "--no-verify")
        self.wait_for(lambda: not running.running() or " is running on " in running.text() or
                      self.held_inserts() - held, "the next load's inserts")
        self.assertTrue(self.held_inserts() - held, running.text())
        release()
        self.assertEqual(running.wait().code, 0, running.text())


class LoneServer(DeadUpdates):
    shape = ("--standalone", FAILPOINTS)

    def primaries(self):
        return [self.servers.names()[0]]

    def test_the_next_load_waits_for_deletes(self):
        """Not on a cluster: the failpoint holds the deletes of every collection there, such as those
        that stop the balancer."""
        values = self.check(HOLD_DELETES, "delete", "upsert", "a delete")
        self.assertEqual([values.get(key) for key in range(50)], ["new"] * 50)

    def test_a_user_who_may_not_list_operations_is_warned(self):
        _, uri = self.start_proxy(WithoutUuid, True)
        self.work = self.second_work
        self.load_rows("upsert", "new", range(50), uri=uri).wait().expect(
            0, "cannot check whether another program is writing to")

    def test_it_goes_on_with_a_warning_beside_a_write_that_does_not_end(self):
        release, held = self.kill(HOLD_UPDATES, "upsert", KEYS)
        self.work = self.second_work
        running = self.load_rows("upsert", "new", range(1000, 1050))
        self.wait_for(lambda: not running.running() or self.held_inserts(HOLD_UPDATES) - held,
                      "the next load's updates")
        release()
        running.wait().expect(0, "another program is writing documents while this load runs")


class Cluster(DeadUpdates):
    shape = ("--shards", 2, FAILPOINTS)
    members = ("s0-0", "s1-0")


del DeadUpdates
