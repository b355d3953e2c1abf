# SPDX-License-Identifier: Apache-2.0
"""Ranges are placed while somebody else changes the same chunks: that is not an error, as long as
the ranges end up where they should be; and it is one when the server refuses the same step again."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "faults")]
import proxy  # noqa: E402
import support  # noqa: E402
from support import bson  # noqa: E402


class Racing(proxy.Proxy):
    """Another loader, which is always a moment faster: before a command of that name goes on,
    `first` is called with it. Counts how many the server has refused."""

    def __init__(self, target, name, first):
        self.name, self.first = name, first
        self.asked, self.refused = set(), 0
        super().__init__(target)
        self.change = self.look

    def action_for(self, message):
        if proxy.command_of(message)[0] == self.name:
            self.asked.add(struct.unpack_from("<i", message, 4)[0])
            self.first(bson.decode(message[21:]))
        return super().action_for(message)

    def look(self, message):
        if struct.unpack_from("<i", message, 8)[0] in self.asked:
            self.refused += bson.decode(message[21:])["ok"] != 1
        return message


class Placing(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.paths, _ = self.generate("B", 3000, "--files", 3, "--seed", 97)

    def load_racing(self, name, first, code=support.EXIT_OK):
        port = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        server = Racing(port, name, first)
        self.addCleanup(server.close)
        work = self.scratch / "work"
        outcome = self.shardload(
            "load", "--uri", f"mongodb://{support.HOST}:{server.port}/", "-d", self.database_name,
            "-c", "t", "--work-dir", work, "--progress", "none", *self.paths, code=code)
        return server, outcome, work

    def assert_placed(self, work):
        """Every range is on the shard that the layout gives it, and holds its documents."""
        self.assert_accounting(work, inserted=3000)
        self.assertEqual(self.database.t.count_documents({}), 3000)
        shards = {shard["shard"]: shard["documents"]
                  for shard in support.run_record(work)["shards"]}
        self.assertEqual(sum(shards.values()), 3000)
        self.assertTrue(all(shards.values()), shards)

    def test_every_split_has_been_made_by_another_loader(self):
        server, _, work = self.load_racing(
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
        server, _, work = self.load_racing("moveChunk", split)
        self.assertGreater(server.refused, 2, "there was no race")
        self.assert_placed(work)

    def test_a_step_that_is_refused_for_good_is_an_error(self):
        port = int(self.uri.split("://")[1].split("/")[0].rpartition(":")[2])
        server = Racing(port, "spli?", lambda split: None)
        server.change_request = proxy.unknown_command("split")
        self.addCleanup(server.close)
        outcome = self.shardload(
            "load", "--uri", f"mongodb://{support.HOST}:{server.port}/", "-d", self.database_name,
            "-c", "t", "--work-dir", "work", "--progress", "none", *self.paths,
            code=support.EXIT_CLUSTER)
        self.assertIn("cannot prepare the ranges", outcome.err)
        self.assertIn("spli?", outcome.err)     # in the server's words
        self.assertTrue(1 < server.refused < 4, server.refused)
        self.assertEqual(self.balancer_mode(), "full")


if __name__ == "__main__":
    import tap
    tap.main()
