# SPDX-License-Identifier: Apache-2.0
"""Restores of several collections at the same time: their connections, log lines, progress, failures,
interruptions and resumption."""
import json

import support
from restore_case import INDEXES, VALIDATOR, Restoring, documents

NAMES = [f"c{number:02}" for number in range(12)]


class Standalone(Restoring, server="mongod"):
    def connections_made(self):
        return self.client.admin.command("serverStatus")["connections"]["totalCreated"]

    def dump_of(self, made, **more):
        return self.dump_folder(*(self.namespace(name, some, **more)
                                  for name, some in made.items()),
                                self.namespace("z", options={"viewOn": NAMES[0], "pipeline": []}))

    def test_all_collections_are_restored_over_few_connections(self):
        made = {name: documents(50, 100 * number) for number, name in enumerate(NAMES)}
        dump = self.dump_of(made, options=VALIDATOR, indexes=INDEXES[:1])
        used = []
        for at_once in (1, 5):
            before = self.connections_made()
            outcome, rows = self.restore(dump, "--drop", "-j", 2, "--collections-at-once", at_once)
            used.append(self.connections_made() - before)
            self.assertEqual(list(rows), [*NAMES, "z"])
            for name, some in made.items():
                self.check(name, [one for one in some])
                self.assertEqual(self.facts(name)[1], VALIDATOR)
            self.assertEqual(self.database.z.count_documents({}), 50)
            self.assertRegex(outcome.text, r"total +600 +600 +0 +0 +12 ")
        # Each thread of the restore needs some connections, and each collection needs none.
        self.assertLess(used[0], 2 * len(NAMES))
        self.assertLess(used[1], 8 * 5 + 2 * len(NAMES))

    def test_a_failure_stops_no_other_collection_and_is_named(self):
        made = {name: documents(300, 1000 * number) for number, name in enumerate(NAMES[:5])}
        dump = self.dump_of(made)
        self.database.command("create", "c01", viewOn="x", pipeline=[])
        other = [{**one, "s": "another"} for one in made["c03"][:7]]
        self.database.c03.insert_many(other)
        work = self.scratch / "work"
        outcome, rows = self.restore(dump, code=support.EXIT_CLUSTER, work=work)
        self.assertIn(f"{self.db}.c01 exists and is a view", outcome.err)
        self.assertEqual({name: row["exitCode"] for name, row in rows.items()},
                         {"c00": 0, "c01": support.EXIT_CLUSTER, "c02": 0,
                          "c03": support.EXIT_REJECTS, "c04": 0, "z": 0})
        self.assertRegex(outcome.text, r"\.c01 .*incomplete")
        # The lines of a load begin with the name of its collection.
        self.assertRegex(outcome.err, rf"warning: {self.db}\.c03: .*reject")
        self.assertIn(f"{self.db}.c03: ", (work / "shardload.log").read_text())
        self.database.drop_collection("c01")
        outcome, rows = self.restore(dump, "--resume", work=work, code=support.EXIT_REJECTS)
        for name in ("c00", "c01", "c02", "c04"):
            self.check(name, made[name])
        self.assertEqual(rows["c03"]["rejected"], 7)

    def begin(self, dump, *words, **more):
        return super().begin(dump, "--rate-limit", 3000, "--batch-size", 20, "-j", 1,
                             "--collections-at-once", 3, *words, **more)

    def count(self, name):
        return self.database[name].estimated_document_count()

    def test_killed_and_resumed(self):
        made = {name: documents(3000, 10 ** 5 * number) for number, name in enumerate(NAMES[:5])}
        dump = self.dump_of(made, options=VALIDATOR, indexes=INDEXES[:2])
        work = self.scratch / "work"
        resume = []
        for above in (100, 900):
            running = self.begin(dump, "--drop", *resume)
            self.wait_for(lambda: all(self.count(name) >= above for name in NAMES[:3]),
                          f"{above} documents in three collections")
            running.kill()
            resume = ["--resume"]
        self.clear_balancer()
        _, rows = self.restore(dump, "--drop", "--resume", work=work)
        for name, some in made.items():
            self.check(name, some)
            self.assertEqual(set(self.facts(name)[2]), {"_id_", "n_1__id_1", "ttl"})
            self.assertEqual(rows[name]["inserted"] + rows[name]["alreadyStored"], 3000)
        self.assertEqual(set(self.database.list_collection_names()) - {"system.views"}, {*made, "z"})

    def test_an_interrupt_ends_all_loads_and_begins_no_other(self):
        made = {name: documents(3000, 10 ** 5 * number) for number, name in enumerate(NAMES[:5])}
        dump = self.dump_of(made)
        work = self.scratch / "work"
        running = self.begin(dump, work=work)
        self.wait_for(lambda: all(self.count(name) >= 100 for name in NAMES[:3]), "documents in three collections")
        outcome = running.interrupt(f"--resume --work-dir {work}")
        for name in NAMES[:3]:
            self.assertRegex(outcome.text, rf"\.{name} .*incomplete")
        for name in (*NAMES[3:5], "z"):
            self.assertRegex(outcome.text, rf"\.{name} .*not begun")
        if self.is_sharded():
            self.assertEqual(self.balancer_mode(), "full")
        self.restore(dump, "--resume", work=work)
        for name, some in made.items():
            self.check(name, some)

    def test_progress_names_the_collection_and_the_rate_limit_is_that_of_all(self):
        made = {name: documents(2000, 10 ** 5 * number) for number, name in enumerate(NAMES[:3])}
        dump = self.dump_of(made)
        work = self.scratch / "work"
        outcome = self.begin(dump, progress="json").wait().expect(0)
        lines = [json.loads(line) for line in outcome.err.splitlines() if line.startswith("{")]
        for name in made:
            own = [line for line in lines if line["namespace"] == f"{self.db}.{name}"]
            self.assertEqual(own[-1]["documents"], 2000)
            self.assertIn("documentsPerSecond", own[-1])
        record = json.loads((work / "restore.json").read_text())
        # 6,000 documents at 3,000 per second, less the last batches
        self.assertGreater(max(row["seconds"] for row in record["namespaces"]), 1.8)

    def test_two_restores_of_one_dump_at_the_same_time(self):
        made = {name: documents(3000, 10 ** 5 * number) for number, name in enumerate(NAMES[:2])}
        dump = self.dump_of(made, indexes=INDEXES[:1])
        works = [self.scratch / f"two-{number}" for number in range(2)]
        running = [self.begin(dump, work=works[0])]
        self.wait_for(lambda: self.count("c00") > 50, "documents")
        running.append(self.begin(dump, work=works[1]))
        for one in running:
            one.wait().expect(0)
        for name, some in made.items():
            self.check(name, some)
            rows = [row for work in works for row in
                    json.loads((work / "restore.json").read_text())["namespaces"]
                    if row["namespace"].endswith(name)]
            self.assertEqual([(row["records"], row["rejected"]) for row in rows], [(3000, 0)] * 2)
            self.assertEqual(sum(row["inserted"] for row in rows), 3000)
        self.assertEqual(set(self.database.list_collection_names()) - {"system.views"}, {*made, "z"})


class Sharded(Standalone, server="cluster"):
    def test_ranged_keys_of_several_collections_are_split_and_distributed(self):
        made = {name: documents(2000, 10 ** 5 * number) for number, name in enumerate(NAMES[:4])}
        keys = self.file("keys.yaml", "".join(f"{self.db}.{name}: {{key: {{n: 1}}}}\n" for name in made))
        outcome, _ = self.restore(self.dump_of(made), "--shard-keys", keys)
        self.assertNotIn("warning", outcome.text)
        shards = {shard["_id"] for shard in self.client.config.shards.find()}
        for name, some in made.items():
            self.check(name, some)
            chunks = self.chunks(name)
            self.assertEqual(len(chunks), 8)
            self.assertEqual({chunk["shard"] for chunk in chunks}, shards)
