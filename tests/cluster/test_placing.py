# SPDX-License-Identifier: Apache-2.0
"""Another program changes the same chunks while a load places its ranges: the load goes on if the
ranges end up on the right shards, and fails if the server keeps refusing a step."""

import proxy
import support
from support import bson


class Racing(proxy.Proxy):
    """Calls `first` with each command of one name before it is forwarded, as if another loader had
    been faster, and counts the commands that the server refuses."""

    def __init__(self, target, name, first):
        self.name, self.first, self.refused = name, first, 0
        super().__init__(target)

    def action_for(self, message):
        action = super().action_for(message)
        if proxy.command_of(message)[0] != self.name:
            return action
        self.first(proxy.body_of(message))
        return proxy.change_reply(self.count_refusal)

    def count_refusal(self, reply):
        self.refused += reply["ok"] != 1
        return reply


class Placing(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.paths = self.generate("B", 3000, "--files", 3, "--seed", 97)

    def load_racing(self, name, first):
        server = Racing(support.port_of(self.uri), name, first)
        _, work = self.load(*self.paths, through=server)
        return server, work

    def assert_placed(self, work):
        """All documents are stored, and each shard has some of them."""
        self.assert_accounting(work, inserted=3000)
        self.assertEqual(self.database.t.count_documents({}), 3000)
        shards = {shard["shard"]: shard["documents"]
                  for shard in support.run_record(work)["shards"]}
        self.assertEqual(sum(shards.values()), 3000)
        self.assertTrue(all(shards.values()), shards)

    def test_every_split_has_been_made_by_another_loader(self):
        server, work = self.load_racing(
            "split", lambda split: self.client.admin.command("split", split["split"],
                                                             middle=split["middle"]))
        self.assertGreater(server.refused, 2, "there was no race")
        self.assert_placed(work)

    def test_every_chunk_is_split_before_it_is_moved(self):
        done = set()

        def split(move):
            low, high = (bound["_id"] for bound in move["bounds"])
            if not isinstance(low, int) or not isinstance(high, int) or (low, high) in done or \
                    high - low < 1 << 38:
                return
            middle = low + (high - low) // 2
            done.update({(low, middle), (middle, high)})
            self.client.admin.command("split", move["moveChunk"], middle={
                "_id": bson.int64.Int64(middle)})
        server, work = self.load_racing("moveChunk", split)
        self.assertGreater(server.refused, 2, "there was no race")
        self.assert_placed(work)

    def test_a_split_that_is_always_refused_ends_the_load(self):
        server = Racing(support.port_of(self.uri), "spli?", lambda split: None)
        server.change_request = proxy.unknown_command("split")
        outcome, _ = self.load(*self.paths, through=server, code=support.EXIT_CLUSTER)
        self.assertIn("cannot prepare the ranges", outcome.err)
        self.assertIn("spli?", outcome.err)     # from the server's message
        self.assertTrue(1 < server.refused < 4, server.refused)
        self.assertEqual(self.balancer_mode(), "full")

    def test_a_new_collection_is_split_by_a_user_who_may_not_read_the_databases(self):
        """With the documented role, all documents were loaded onto one shard."""
        class Restricted(proxy.Proxy):
            def action_for(self, message):
                return proxy.error_reply(13, "not authorized on config") if (
                    b"databases" in message and proxy.command_of(message)[0] == "find") else super().action_for(message)
        server = Restricted(support.port_of(self.uri))
        self.addCleanup(server.close)
        rows = self.file("k.csv", "a,k\n" + "".join(f"{number},{number}\n" for number in range(3000)))
        self.assert_placed(self.load("--shard-key", '{"k": 1}', rows, through=server)[1])
