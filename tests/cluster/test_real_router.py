# SPDX-License-Identifier: Apache-2.0
"""A sharded cluster of server 4.4 behind a real mongos. SHARDLOAD_REAL names a folder with 4.4/bin/mongod and
4.4/bin/mongos; the tests skip without it."""
import json

import real_servers
import support


class RealRouter(real_servers.RouterCase):
    def test_a_load_is_complete_and_equal(self):
        path = self.file("year.txt", support.mot_text(range(1, 3001)))
        _, work = self.load(path)
        self.assert_accounting(work, inserted=3000)
        self.assertEqual(self.database.t.count_documents({}), 3000)
        self.shardload("verify", *self.target(), "--content", path)
        shards = {chunk["shard"] for chunk in self.client.config.chunks.find(
            {"ns": f"{self.database_name}.t"})}
        self.assertEqual(len(shards), 2)

    def test_documents_that_this_server_refuses_are_rejects(self):
        """Until server 5.0 a key of a stored document may not begin with $: code 2, for one document."""
        lines = [json.dumps({"_id": number, **({"$set": 1} if number % 50 == 0 else {"n": number})})
                 for number in range(1, 201)]
        path = self.file("keys.json", "\n".join(lines) + "\n")
        for route in ("mongos", "direct"):
            with self.subTest(route=route):
                self.database.drop_collection("t")
                self.database.drop_collection("t.sources")
                _, work = self.load("--route", route, path, code=support.EXIT_REJECTS)
                self.assert_accounting(work, inserted=196, rejectedByServer=4)
                rows = support.reject_rows(work)
                self.assertEqual(len(rows), 4)
                for row in rows:
                    self.assertIn("$set", row["reason"])
                self.assertEqual(self.database.t.count_documents({}), 196)

    def test_documents_whose_shard_the_router_cannot_find_are_rejects(self):
        """The router refuses the command, of which they are the only documents."""
        admin = self.client.admin
        admin.command("enableSharding", self.database_name)
        for name, key in (("hashed", {"v": "hashed"}), ("range", {"v": 1})):
            admin.command("shardCollection", f"{self.database_name}.{name}", key=key)
            for count, code in ((3, support.EXIT_REJECTS), (0, support.EXIT_SOURCE)):
                with self.subTest(key=key, count=count):
                    lines = [{"_id": f"{count} {n}", "v": n} for n in range(count)] + [{"_id": count, "v": [1]}]
                    path = self.file(f"{name}{count}.json", "".join(json.dumps(one) + "\n" for one in lines))
                    _, work = self.load("--shard-key", json.dumps(key), "--retry-timeout", 20, path,
                                        collection=name, code=code)
                    self.assert_accounting(work, inserted=count, rejectedByServer=1)
                    (row,) = support.reject_rows(work)
                    self.assertIn("(code 61)", row["reason"])

    def test_a_shard_of_the_cluster_is_not_loaded(self):
        path = self.file("year.txt", support.mot_text(range(1, 30)))
        shard = f"mongodb://{support.HOST}:{self.cluster.port('s0-0')}/"
        self.shardload("load", "--uri", shard, "-d", self.database_name, "-c", "t", "--work-dir",
                       self.scratch / "work", path, code=support.EXIT_USAGE, message="router")
        self.assertEqual(self.database.list_collection_names(), [])
