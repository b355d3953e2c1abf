# SPDX-License-Identifier: Apache-2.0
"""Another program inserts a document among the _ids of a source while it is loaded: the load ends
with exit code 5."""

import fault_case
import proxy
import support
from support import bson


class Sharded(fault_case.ProxyCase):
    def test_a_document_after_the_last_id_of_the_source_is_found(self):
        def insert():
            first = self.database.t.find_one(sort=[("_id", 1)])["_id"]
            self.database.t.insert_one({"_id": bson.int64.Int64(first | (1 << 40) - 1)})
        self.proxy.on_batch(20, proxy.call(insert))
        outcome = self.begin().wait()
        self.assertEqual(self.proxy.unused(), [], outcome.text)
        self.assertEqual(outcome.code, support.EXIT_VERIFICATION, outcome.text)
        self.assertRegex(outcome.err, "1 (are|is|were) too many|too many")


class Standalone(Sharded):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"
