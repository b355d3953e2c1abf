# SPDX-License-Identifier: Apache-2.0
"""Records that are too large for a server are rejects with a reason, and the largest documents that a
server accepts are stored, through the router and on every shard."""
import os

import support

MIB = 1 << 20
DOCUMENT_MAX = 16 * MIB


class LargeRecordsAlone(support.ClusterCase, server="mongod"):
    def content(self, *sizes):
        lines = [b"name|text"]
        for number, size in enumerate(sizes):
            name = f"r{number}|".encode()
            lines.append(name + b"z" * (size - len(name)))
        return b"\n".join(lines) + b"\n"

    def check(self, *words):
        largest = DOCUMENT_MAX - 256
        sizes = [50, largest, largest, DOCUMENT_MAX - 10, largest, 50, 40 * MIB, largest, 50]
        path = self.file("large.txt", self.content(*sizes))
        _, work = self.load("--format", "delimited", *words, path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=9, inserted=7, rejectedByParser=2)
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["5", "8"])
        for row in support.reject_rows(work):
            self.assertIn("too large for a document (16 MiB)", row["reason"])
        lengths = sorted(len(raw) for raw in self.stored())
        self.assertEqual(len(lengths), 7)
        self.assertGreater(lengths[3], largest)
        self.assertLessEqual(lengths[-1], DOCUMENT_MAX)

    def test_around_the_limit(self):
        self.check("-j", 2)


class LargeRecords(LargeRecordsAlone, server="cluster"):
    def test_around_the_limit_by_a_hashed_key(self):
        """With this key documents are parsed into a buffer and copied to their shard's batch."""
        self.check("-j", 2, "--shard-key", '{"name": "hashed"}')


class RefusedByTheServer(support.ClusterCase):
    def test_a_document_that_fails_validation_is_a_reject_with_its_code(self):
        self.database.create_collection("t", validator={"name": {"$ne": "b\tb"}})
        path = self.file("rule.txt", "name,text\na,1\n\"b\tb\",\"2\x1b[31m\"\nc,3\n")
        outcome, work = self.load("--format", "delimited", "--shard-key", "none", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, records=3, inserted=2, rejectedByServer=1)
        (row,) = support.reject_rows(work)
        self.assertIn("code 121", row["reason"])
        self.assertIn("\\t", row["record"])
        self.assertNotIn("\x1b", outcome.text + (work / "rejects.tsv").read_text("utf-8"))


class PlantedFiles(support.ClusterCase):
    def plant(self, path, victim, owner_may_differ):
        """Puts a link, a pipe, and a file of another user at the path, one after the other."""
        def foreign(name):
            name.write_text("")
            os.chown(name, support.NOBODY, support.NOBODY)
        plants = [lambda name: name.symlink_to(victim), lambda name: os.link(victim, name), os.mkfifo]
        for plant in plants + [foreign] * owner_may_differ:
            plant(path)
            with self.subTest(plant):
                yield
            self.assertEqual(victim.read_text(), "precious")
            path.unlink()

    def test_planted_files_are_not_written(self):
        """journal of a load and of its --resume, problems.tsv of a verification."""
        victim = self.file("victim", "precious")
        path = self.file("good.csv", "name,text\na,1\n")
        self.load("--format", "delimited", path)
        work = self.scratch / "w"
        work.mkdir()
        (work / "shardload.log").touch()  # it is a work directory
        for name, command, *words in (("journal", "load"), ("journal", "load", "--resume"),
                                      ("problems.tsv", "verify")):
            for _ in self.plant(work / name, victim, os.geteuid() == 0):
                self.shardload(command, *self.target(), "--format", "delimited", "--work-dir", work, *words,
                               path, code=support.EXIT_USAGE, limit=30, message=f"w/{name}")


class Registry(support.ClusterCase, server="mongod"):
    """Whoever may write it can change what a load reads there."""

    def test_its_text_is_a_word_of_a_shell_and_its_lists_are_short(self):
        self.load(self.file("a.csv", "id,name\n1,a\n"))
        other = self.file("b.csv", "id,name\n2,b\n")
        counter = self.database["t.sources"].update_one
        counter({"_id": "counter"}, {"$set": {"ids": [{"from": "id; touch x #"}]}})
        self.load(other, code=support.EXIT_SOURCE, message="Give --id-field 'id; touch x #'. ")
        known = {"column": "id", "type": "int"}
        for field, values in (("types", [[known] * 10001, {"0": known}, "id", None, [{}], [1], [known, {"column": ""}],
                                         [{"column": "id", "type": 1}]]), ("ids", [{}, 1, [""], [{"from": 1}]])):
            for value in values:
                with self.subTest(field=field, value=str(value)[:60]):
                    counter({"_id": "counter"}, {"$set": {"ids": [{"from": ""}], "types": [known], field: value}})
                    outcome, _ = self.load(other, code=support.EXIT_CLUSTER, message=(
                        f'the field {field} of the document "counter" is not a list of at most 10000 entries that a '
                        "load has written", "Remove the field"))
                    self.assertNotIn("other columns than earlier loads", outcome.text)
        counter({"_id": "counter"}, {"$set": {"ids": [{"from": ""}], "types": [known]}})
        self.load(other, message="")

    def test_its_numbers_are_those_that_a_load_writes(self):
        path = self.file("a.csv", "id,name\n1,a\n")
        self.load(path)
        registry = self.database["t.sources"]
        (source,) = registry.find({"number": 1})
        fields = ("documents", "matched", "foreign", "rejected", "layout.shards", "layout.pieces",
                  "layout.leading")
        cases = [(source["_id"], field, value) for field in fields for value in (-1, "x", [], 1e300)]
        cases += [(source["_id"], "number", value) for value in (-1, float("nan"), 1e300)]
        cases += [(source["_id"], "layout", 5), ("counter", "last", -1), ("counter", "last", float("inf"))]
        for identity, field, value in cases:
            with self.subTest(field=field, value=value):
                registry.update_one({"_id": identity}, {"$set": {field: value}})
                words = [path, "--again"] if identity != "counter" else [self.file("b.csv", "id,name\n2,b\n")]
                self.load(*words, code=support.EXIT_CLUSTER, message=(
                    f'registry {self.database_name}.t.sources: the field {field} of the document "{identity}" has a '
                    "value that no load writes", "--drop"))
                registry.replace_one({"_id": source["_id"]}, source)
                registry.update_one({"_id": "counter"}, {"$set": {"last": 1}})
        for field, value in (("parts", {"2": {"1": -1}}), ("parts", {"2": {"1": "x"}}), ("options", "x")):
            registry.update_one({"_id": source["_id"]}, {"$set": {"state": "started", field: value}})
            self.load("--part", "1/2", path, code=support.EXIT_CLUSTER, message=f"the field {field} of the document")
            registry.replace_one({"_id": source["_id"]}, source)


class RejectsThatCannotBeWritten(support.ClusterCase, server="mongod"):
    def test_exit_code_2_is_not_given_after_documents_were_stored(self):
        """A file in place of the folder `rejected/` is found with the first reject, after three blocks."""
        rows = "".join(f"{number},{'x' * 100}\n" for number in range(30000))
        path = self.file("late.csv", "name,text\n" + rows + "1,2,3\n")
        work = self.scratch / "w"
        work.mkdir()
        (work / "shardload.log").touch()  # it is a work directory
        (work / "rejected").touch()
        words = ["load", *self.target(), "--format", "delimited", "-j", 1, "--work-dir", work, path]
        self.shardload(*words, code=support.EXIT_RESOURCES, message=("w/rejected", "--resume"))
        self.assertGreater(self.database.t.count_documents({}), 0)
        self.assertEqual(support.run_record(work)["exitCode"], support.EXIT_RESOURCES)
        status = support.json.loads((work / "status.json").read_text())
        self.assertEqual(status["exitCode"], support.EXIT_RESOURCES)
        (work / "rejected").unlink()
        self.shardload(*words, "--resume", code=support.EXIT_REJECTS)
        self.assertEqual(self.database.t.count_documents({}), 30000)
        self.assertEqual(len(support.reject_rows(work)), 1)

    def test_a_refusal_before_the_first_document_is_exit_code_2(self):
        path = self.file("good.csv", "name,text\na,1\n")
        self.load("--batch-size", 200000, path, code=support.EXIT_USAGE, message="--batch-size")
        self.assertEqual(self.database.list_collection_names(), [])

    def test_a_load_that_the_size_of_its_rejects_ended_can_be_resumed(self):
        path = self.zipped("bomb.csv.gz", b"a,b\n" + b"1,2\n" * 30000 + (b"x" * 1000 + b"\n") * 70000 + b"3,4\n")
        words = ["load", *self.target(), "--format", "delimited", "--header", "yes", "--work-dir", "w", path]
        self.shardload(*words, code=support.EXIT_SOURCE, message=("the rejects are larger", "--resume"))
        self.shardload(*words, "--resume", "--max-rejects", "unlimited", code=support.EXIT_REJECTS)
        self.assertEqual(self.database.t.count_documents({}), 30001)
        rows = support.reject_rows(self.scratch / "w")
        self.assertEqual([int(row["line"]) for row in rows], list(range(30002, 100002)))
