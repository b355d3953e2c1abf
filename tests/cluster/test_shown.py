# SPDX-License-Identifier: Apache-2.0
"""Hostile text from a server is escaped in all output, as text from files is: names of collections,
indexes and fields, names of sources in the registry, and the server's messages."""
import json

import proxy
import support
from shown import HOSTILE, QUOTED, ShownCase, quoted


class Shown(ShownCase, support.ClusterCase, server="mongod"):
    def words(self, *more, collection="t"):
        work = self.scratch / f"work-{next(self._counter)}"
        return ["load", *self.target(collection), "--work-dir", work, "--progress", "plain", *more]

    def source(self, name="f.csv", text="a,b\n1,2\n3,4\n"):
        return self.file(name, text)

    def test_names_of_collections_and_indexes(self):
        path = self.source()
        self.show(*self.words("--index", json.dumps({HOSTILE.replace("\x00", ""): 1}), path,
                              collection=HOSTILE), codes=(0,))
        self.show(*self.words(path, collection=HOSTILE), codes=(3,))  # loaded before
        for words in (["plan", *self.target(HOSTILE), path],
                      ["verify", *self.target(HOSTILE), "--content", path]):
            self.show(*words)
        self.database[HOSTILE].delete_one({})
        self.show("verify", *self.target(HOSTILE), "--content", "--work-dir", self.scratch / "v", path)

    def test_names_in_the_registry(self):
        path = self.source(HOSTILE + ".csv")
        self.show(*self.words(path), codes=(0,))
        self.show(*self.words(path), codes=(3,))
        self.database["t"].drop()
        self.show(*self.words(path), codes=(0,))
        self.show("verify", *self.target(), self.source(HOSTILE + "2.csv", "a,b\n9,9\n"))

    def test_rejects_of_the_server(self):
        self.database["t"].create_index("a", name=HOSTILE, unique=True)
        text = "a,b\n" + "x\x1b[2J\u202e,1\nx\x1b[2J\u202e,2\n"
        self.show(*self.words(self.source(text=text)), codes=(1,))
        self.database.create_collection("v", validator={HOSTILE: {"$exists": True}})
        self.show(*self.words(self.source(HOSTILE + ".csv"), collection="v"))

    def test_messages_of_the_server(self):
        for name in ("listCollections", "create", "insert", "find", "aggregate", "buildInfo"):
            with self.subTest(name):
                server = proxy.Refusing(support.port_of(self.uri), name, errmsg=HOSTILE)
                words = self.target(f"m{name}", server)
                self.show("load", *words, "--work-dir", self.scratch / f"m-{name}", "--index",
                          '{"a": 1}', "--retry-timeout", "1", self.source(), expect=False)
                suite = self.file("s.yaml", "name: s\nqueries:\n- name: q\n  pipeline: |\n    []\n")
                self.show("run", *words, suite, program="shardquery", expect=False)
        self.assertGreater(self.escaped, 3)

    def test_queries(self):
        self.database["t"].insert_many([{"_id": i, "k" + HOSTILE: HOSTILE} for i in range(3)])
        self.database["t"].create_index("k" + HOSTILE, name=HOSTILE)
        stages = quoted([{"$match": {"k" + HOSTILE: HOSTILE}}])
        name = "n\u009b7m\u202e\x7f"  # without a newline
        suite = self.file("s.yaml", f"name: s\nqueries:\n- name: {json.dumps(name)}\n  description: {QUOTED}\n"
                                    f"  pipeline: |\n    {stages}\n")
        answers = self.file("answers.json", json.dumps({"answers": {name: [{"x" + HOSTILE: 1}]}}))
        report = self.scratch / "q.json"
        for more in ([], ["--explain"], ["--answers", answers], ["--report", report]):
            self.show("run", *self.target(), *more, suite, program="shardquery")
        self.show("compare", report, report, program="shardquery")
        broken = self.file("b.yaml", f"name: b\nqueries:\n- name: b\n  pipeline: |\n    "
                                     f"[{{{quoted('$' + HOSTILE)}: 1}}]\n")
        self.show("run", *self.target(), broken, program="shardquery")


class Sharded(Shown, server="cluster"):
    def test_names_of_collections_and_indexes(self):
        self.show(*self.words("--shard-key", '{"_id": 1}', self.source(), collection=HOSTILE))

    def test_messages_of_the_server(self):
        self.skipTest("one server is enough")
