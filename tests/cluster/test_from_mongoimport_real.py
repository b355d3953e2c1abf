# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/from-mongoimport.md: both programs import the same file into a real server. SHARDLOAD_REAL names a
folder with tools/bin/mongoimport and a server (real_servers.py); without it the tests are skipped."""
import pathlib
import subprocess

import pymongo

import real_servers
import support

CSV = "n,zip,tags.0,tags.1,a.b\n5,x1,p,q,1\n-6,x2,r,s,2\n"
SHELL = ('{a: ISODate("2015-12-31T23:59:59.999Z"), \'b\': NumberLong(5), c: /x/i, '
         'd: ObjectId("5f0a00000000bcdeff000001")}\n')
LINES = '{"k": 1, "v": "new"}\n{"k": 3, "v": "new"}\n'
STORED = [{"_id": 1, "k": 1, "v": "old", "w": 1}, {"_id": 2, "k": 2, "v": "old"}]
BLANKS = "a,b\n1,\n,2\n3,4\n"

# The beginnings of rows of the table: the file, the options of mongoimport and of load.
ROWS = {
    "`--uri`, `--host`, `--port`": ("t.json", LINES, "", ""),
    "`-d`, `--db`; `-c`, `--collection`": ("t.json", LINES, "", ""),
    "`--ignoreBlanks`. Blanks": ("t.csv", "a,b\n1, x\n2, y z\n", "--type csv --headerline", "--trim"),
    "`--parseGrace stop`": ("t.csv", "a,b\n1,x\n", "--type csv --headerline --parseGrace stop", "--max-rejects 0"),
    "`--file FILE`": ("t.json", LINES, "", ""),
    "`--type csv` or `tsv`": ("t.tsv", "a\tb\n1\tx\n2\ty\n", "--type tsv --headerline", ""),
    "`--type json`, `--jsonArray`": ("t.json", '[{"a": 1},\n{"a": {"$numberLong": "2"}}]', "--jsonArray", ""),
    "`--legacy`": ("t.json", SHELL, "--legacy", ""),
    "`--headerline`": ("t.csv", "a,b\n1,x\n2,y\n", "--type csv --headerline", ""),
    "`-f`, `--fields a,b`": ("t.csv", "1,x\n2,y\n", "--type csv -f a,b", "--columns a,b --header no"),
    "`--ignoreBlanks`": ("t.csv", BLANKS, "--type csv --headerline --ignoreBlanks", ""),
    "`--useArrayIndexFields`": ("t.csv", CSV, "--type csv --headerline --useArrayIndexFields", ""),
    "`--drop`": ("t.json", LINES, "--drop", "--drop"),
    "`--mode insert`, `upsert`, `merge`, `delete`": (
        "t.json", LINES, "--mode merge --upsertFields k", "--mode merge --match-fields k"),
    "`--upsertFields a,b`": ("t.json", LINES, "--mode delete --upsertFields k", "--mode delete --match-fields k"),
    "`--numInsertionWorkers N`": ("t.json", LINES, "--numInsertionWorkers 2", "-j 2"),
    "`--writeConcern W`": ("t.json", LINES, "--writeConcern 1", "--write-concern 1"),
    "`--quiet`": ("t.json", LINES, "--quiet", "--quiet"),
    "`--verbose`": ("t.json", LINES, "--verbose", "--verbose"),
    "`--stopOnError`": ("t.json", '{"a": 1}\n', "--stopOnError", "--max-rejects 0"),
}
MATCHING = ("`--mode insert`", "`--upsertFields")


class FromMongoimport(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.program = real_servers.REAL / "tools" / "bin" / "mongoimport"
        if not cls.program.exists():
            raise support.unittest.SkipTest("SHARDLOAD_REAL does not name a folder with tools/bin/mongoimport")
        folder = support.tempfile.mkdtemp(prefix="shardload-import-")
        cls.addClassCleanup(support.shutil.rmtree, folder, ignore_errors=True)
        server = real_servers.start("6.0", pathlib.Path(folder))
        cls.addClassCleanup(server.down)
        cls.uri = server.uri
        cls.client = pymongo.MongoClient(server.uri)
        cls.addClassCleanup(cls.client.close)

    def documents(self, name):
        """The documents without their _ids, in any order."""
        return sorted(repr(sorted((key, repr(value)) for key, value in one.items() if key != "_id"))
                      for one in self.client.shop[name].find())

    def fill(self, matching):
        self.client.drop_database("shop")
        for name in ("theirs", "ours") if matching else ():
            self.client.shop[name].insert_many(STORED)
            self.client.shop[name].create_index("k", unique=True)

    def test_rows_of_the_page(self):
        page = (support.TREE / "docs" / "from-mongoimport.md").read_text("utf-8")
        for row, (name, text, theirs, ours) in ROWS.items():
            with self.subTest(row):
                self.assertIn(row, page)
                self.fill(row.startswith(MATCHING))
                path = self.file(name, text)
                done = subprocess.run([self.program, "--uri", self.uri, "-d", "shop", "-c", "theirs", *theirs.split(),
                                       str(path)], capture_output=True, text=True, timeout=support.LIMIT, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", "--work-dir",
                               self.scratch / f"work-{len(theirs)}-{abs(hash(row))}", *ours.split(), path)
                self.assertGreater(len(self.documents("ours")), 0)
                self.assertEqual(self.documents("ours"), self.documents("theirs"))

    def test_records_that_only_mongoimport_stores(self):
        for name, text, words in (("t.csv", "a,b\n1,x,9\n2,y\n", ["--type", "csv", "--headerline"]),
                                  ("t.json", '{"a": 1, "a": 2}\n{"a": 3}\n', [])):
            self.fill(False)
            path = self.file(name, text)
            subprocess.run([self.program, "--uri", self.uri, "-d", "shop", "-c", "theirs", *words, path], check=True,
                           capture_output=True, timeout=support.LIMIT)
            self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", "--work-dir",
                           self.scratch / f"rejects-{name}", path, code=support.EXIT_REJECTS)
            self.assertEqual([len(self.documents(one)) for one in ("theirs", "ours")], [2, 1])

    def test_options_that_are_not_supported(self):
        path = self.file("t.json", LINES)
        for option in ("--maintainInsertionOrder", "--bypassDocumentValidation"):
            self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", option, path,
                           code=support.EXIT_USAGE)

    def test_types_in_the_header(self):
        path = self.file("t.csv", "n.int32(),zip.string()\n5,01234\n6,04444\n")
        outcome = self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", path, code=support.EXIT_SOURCE)
        self.assertIn("--columnsHaveTypes", outcome.err)
