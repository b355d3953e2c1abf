# SPDX-License-Identifier: Apache-2.0
"""Two loads at once in one process, through the library, into a cluster (two_loads.c)."""

import support

ROWS = (30000, 40000)


class TwoLoads(support.ClusterCase):
    def files(self):
        for number, rows in enumerate(ROWS, 1):
            yield self.file(f"f{number}.csv", "name,padding\n" + "".join(
                f"file {number} row {row},{'x' * 150}\n" for row in range(rows)))

    def run_both(self, *words):
        """Returns [(code, message)] of both loads."""
        outcome = self.run_program("two_loads", *words, self.uri, self.database_name, self.scratch,
                                   *self.files()).expect(0)
        self.assertEqual(outcome.err, "")  # the library prints nothing
        lines = outcome.out.splitlines()
        self.assertEqual(len(lines), 2, outcome.out)
        return [(int(line.partition(" ")[0]), line.partition(" ")[2]) for line in lines]

    def log_of(self, number):
        return (self.scratch / f"l{number}").read_text("utf-8")

    def assert_complete(self, number):
        rows = ROWS[number - 1]
        collection = self.database[f"t{number}"]
        self.assertEqual(collection.count_documents({}), rows)
        self.assertEqual(collection.count_documents({"name": {"$regex": f"^file {number} "}}), rows)
        support.Case.assert_accounting(self, self.scratch / f"w{number}", records=rows)

    def test_each_load_has_its_documents_its_log_and_its_progress(self):
        self.clear_balancer()
        self.assertEqual(self.run_both(), [(0, ""), (0, "")])
        for number in (1, 2):
            self.assert_complete(number)
            log = self.log_of(number)
            self.assertIn(f"{self.database_name}.t{number}: ", log)
            self.assertNotIn(f".t{3 - number}: ", log)
            self.assertRegex(log, r'progress \{.*"documents" : ' + str(ROWS[number - 1]))
            self.assertNotIn(f".t{3 - number}: ",
                             (self.scratch / f"w{number}/shardload.log").read_text("utf-8"))
        if self.is_sharded():
            self.assertEqual(self.client.admin.command("balancerStatus")["mode"], "full")

    def test_one_of_them_is_stopped_and_resumed(self):
        self.clear_balancer()
        (code, message), second = self.run_both("--stop-first")
        self.assertEqual((code, message), (support.EXIT_INTERRUPTED, "interrupted"))
        self.assertEqual(second, (0, ""))
        self.assert_complete(2)
        self.assertLess(self.database.t1.count_documents({}), ROWS[0])
        self.assertIn("--resume --work-dir", self.log_of(1))
        if self.is_sharded():
            self.assertEqual(self.client.admin.command("balancerStatus")["mode"], "full")
        self.shardload("load", *self.target("t1"), "--resume", "--work-dir", self.scratch / "w1",
                       self.scratch / "f1.csv")
        self.assert_complete(1)
