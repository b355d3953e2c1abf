# SPDX-License-Identifier: Apache-2.0
"""Networks that break, stall and lose: each fault at a batch of its own, through a proxy.

The figures show what happened: a batch that broke off on its way was inserted when it was sent
again, and one that arrived without its answer is found to be there already. How many documents are
found to be there is therefore known exactly."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import proxy  # noqa: E402
import support  # noqa: E402
from fault_case import BATCH  # noqa: E402


class Wire(fault_case.ProxyCase):
    def assert_survived(self, running, retries, again=0):
        outcome = running.wait()
        self.assertEqual(self.proxy.unused(), [], f"a fault did not strike: {outcome.text}")
        figures = self.assert_nothing_lost(outcome, again)
        if retries is not None:
            self.assertEqual(figures["retries"], retries, figures)


class Faults:
    """The stories, for whatever stands behind the proxy."""

    def test_cut_in_the_middle_of_a_batch(self):
        for number, count in enumerate((0, 1, 16, 50, 1000, 5000)):
            self.proxy.on_batch(5 + 2 * number, proxy.cut_request(count))
        self.assert_survived(self.begin(), retries=6)

    def test_cut_in_the_middle_of_an_answer(self):
        for number, count in enumerate((0, 1, 15, 16, 20, 30)):
            self.proxy.on_batch(5 + 2 * number, proxy.cut_reply(count))
        self.assert_survived(self.begin(), retries=6, again=6 * BATCH)

    def test_the_batch_sent_again_is_cut_too(self):
        for number in range(5, 10):
            self.proxy.on_batch(number, proxy.cut_reply(4))
        self.assert_survived(self.begin(), retries=5, again=BATCH)

    def test_a_late_answer_is_waited_for(self):
        later = threading.Event()
        late = self.proxy.on_batch(10, proxy.delay_reply(later))
        running = self.begin()
        self.assertTrue(late.struck.wait(support.LIMIT), running.text())
        batches = self.proxy.batches
        self.wait_for(lambda: running.text().count('"seconds"') >= 2, "two progress lines")
        self.assertEqual(self.proxy.batches, batches, "nothing may be sent twice meanwhile")
        later.set()
        self.assert_survived(running, retries=0)

    def test_no_connections_for_a_while(self):
        shut = self.proxy.on_batch(10, proxy.cut_request(0, before=self.proxy.refuse))
        running = self.begin()
        self.assertTrue(shut.struck.wait(support.LIMIT), running.text())
        self.wait_for_word(running, "trying again")
        self.proxy.accept()
        self.assert_survived(running, retries=None)

    def test_a_lost_answer_is_not_waited_for_longer_than_told(self):
        self.proxy.on_batch(10, proxy.lose_reply())
        self.proxy.on_batch(20, proxy.lose_request())
        self.assert_survived(self.begin("--timeout", 2), retries=2, again=BATCH)


class Router(Faults, Wire):
    variable = "SHARDLOAD_TEST_URI"


class LoneServer(Faults, Wire):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"


if __name__ == "__main__":
    import tap
    tap.main()
