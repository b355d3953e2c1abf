# SPDX-License-Identifier: Apache-2.0
"""A line end in a quoted field ends the load: documents already sent stay, the source is not
registered as loaded, and --resume and verify report the same line."""

import support

ROW = "10,20,30\n"
TEXT = "a,b,c\n" + ROW * 300000 + '1,"x\n7,8,9\ny",2\n' + ROW * 300000
FIXED = TEXT.replace("x\n7,8,9\ny", "x 7,8,9 y")
LINE = "line 300002, byte 2700006: a quoted field is still open"


class QuotedLineEnds(support.ClusterCase, server="mongod"):
    def test_load_resume_and_verify_report_the_line(self):
        path = self.file("q.csv", TEXT)
        _, work = self.load(path, "--types", "text", "-j", "2", code=support.EXIT_SOURCE, message=LINE)
        self.assertIn(LINE, (work / "shardload.log").read_text())
        self.assertEqual(self.source_states(), ["started"])
        self.shardload("load", *self.target(), "--types", "text", "--work-dir", work, "--resume", path,
                       code=support.EXIT_SOURCE, message=LINE)
        self.shardload("verify", *self.target(), "--types", "text", path, code=support.EXIT_SOURCE, message=LINE)
        outcome = self.shardload("plan", *self.target(), "--types", "text", path, code=None)
        self.assertNotIn("loaded before", outcome.text)
        self.load(self.file("q.csv", FIXED), "--drop")
        self.assertEqual(self.database["t"].count_documents({}), 600001)
