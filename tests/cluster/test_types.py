# SPDX-License-Identifier: Apache-2.0
"""Inferred types on a cluster: a load that is resumed, and a verification, use the same types."""

import support


class Types(support.ClusterCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    def text(self):
        """Types int, double and date; values that do not fit begin after the sample."""
        row = "{},{}.5,2016-01-15," + "x" * 200 + "\n"
        rows = [row.format(i, i) for i in range(40000)]
        rows[35000:35010] = [f"{i},word,2016-01-15,y\n" for i in range(35000, 35010)]
        return ("n,x,day,note\n" + "".join(rows)).encode()

    def test_a_resumed_load_has_the_types_of_its_journal(self):
        path = self.zipped("t.csv.gz", self.text())
        work = self.scratch / "work"
        words = ["--format", "delimited", "--work-dir", work, "--progress", "none", "-j", 1, path]
        stopped = self.shardload("load", *self.target(), "--max-rejects", 3, *words, code=None)
        self.assertNotEqual(stopped.code, support.EXIT_OK)
        self.shardload("load", *self.target(), "--max-rejects", 3, "--resume", "--types", "text",
                       *words, code=support.EXIT_USAGE)
        self.shardload("load", *self.target(), "--resume", *words, code=support.EXIT_REJECTS)
        counts = [self.database.t.count_documents({key: {"$type": kind}})
                  for key, kind in (("n", "int"), ("x", "double"), ("day", "date"),
                                    ("note", "string"))]
        self.assertEqual(counts, [39990] * 4)
        self.shardload("verify", "--content", *self.target(), "--format", "delimited", path)
        self.shardload("verify", "--content", *self.target(), "--format", "delimited", "--types",
                       "text", path, code=support.EXIT_VERIFICATION)
