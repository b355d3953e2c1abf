# SPDX-License-Identifier: Apache-2.0
"""Connections that are cut, stall, or lose a batch or a reply: a proxy makes each fault at a known
batch.

A batch that was cut on its way is inserted when it is sent again; a batch whose reply was lost is
found already stored. So the number of documents found already stored is known exactly."""
import threading

import fault_case
import proxy
import support
from fault_case import BATCH


class LoneServer(fault_case.ProxyCase, server="mongod"):
    """Tests for each kind of server behind the proxy."""

    def assert_survived(self, running, retries, again=0):
        outcome = running.wait()
        self.assertEqual(self.proxy.unused(), [], f"faults were not reached: {outcome.text}")
        figures = self.assert_nothing_lost(outcome, again)
        if retries is not None:
            self.assertEqual(figures["retries"], retries, figures)

    def test_a_connection_cut_within_a_batch(self):
        for number, count in enumerate((0, 1, 16, 50, 1000, 5000)):
            self.proxy.on_batch(5 + 2 * number, proxy.cut_request(count))
        self.assert_survived(self.begin(), retries=6)

    def test_a_connection_cut_within_a_reply(self):
        for number, count in enumerate((0, 1, 15, 16, 20, 30)):
            self.proxy.on_batch(5 + 2 * number, proxy.cut_reply(count))
        self.assert_survived(self.begin(), retries=6, again=6 * BATCH)

    def test_connections_cut_within_the_replies_to_five_attempts(self):
        for number in range(5, 10):
            self.proxy.on_batch(number, proxy.cut_reply(4))
        self.assert_survived(self.begin(), retries=5, again=BATCH)

    def test_a_late_reply_is_waited_for(self):
        release = threading.Event()
        late = self.proxy.on_batch(10, proxy.delay_reply(release))
        running = self.begin()
        self.assertTrue(late.arrived.wait(support.LIMIT), running.text())
        batches = self.proxy.batches
        self.wait_for(lambda: running.text().count('"seconds"') >= 2, "two progress lines")
        self.assertEqual(self.proxy.batches, batches, "a batch was sent again meanwhile")
        release.set()
        self.assert_survived(running, retries=0)

    def test_connections_refused_for_a_while(self):
        refused = self.proxy.on_batch(10, proxy.cut_request(0, before=self.proxy.refuse))
        running = self.begin()
        self.assertTrue(refused.arrived.wait(support.LIMIT), running.text())
        self.wait_for_word(running, "trying again")
        self.proxy.accept()
        self.assert_survived(running, retries=None)

    def test_a_lost_reply_is_waited_for_no_longer_than_the_timeout(self):
        self.proxy.on_batch(10, proxy.lose_reply())
        self.proxy.on_batch(20, proxy.lose_request())
        self.assert_survived(self.begin("--timeout", 2), retries=2, again=BATCH)


class Router(LoneServer, server="cluster"):
    pass
