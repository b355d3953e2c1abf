# SPDX-License-Identifier: Apache-2.0
"""Both programs import the same text into a real server; their collections are compared. SHARDLOAD_REAL names a folder
with tools/bin/mongoimport and a server (real_servers.py); without it the tests are skipped.

A row of tests/data/from-mongoimport.tsv has tab-separated columns: the options of mongoimport after the kind of text
(+stored: the collection has STORED before; +stdin; +twice; +name=FILE), the options of load (`schema`: the columns of
the case), a reason, and texts with the escapes of Python. Without a reason both collections are equal. A reason is a
paragraph of docs/from-mongoimport.md; `!` before it: mongoimport stores more, or other values. A case
of {} is TYPE~TYPE IN THE SCHEMA~TEXT."""
import codecs
import collections
import concurrent.futures
import pathlib
import re
import subprocess

import bson
import pymongo

import real_servers
import support

STORED = [{"_id": 1, "k": 1, "v": "old", "w": 1}, {"_id": 2, "k": 2, "v": "old"}]
KINDS = {"csv": "--type csv", "tsv": "--type tsv", "json": "", "array": "--jsonArray"}
# Options of the page's table that the connection of each case needs, and those that other tests have.
ELSEWHERE = {"uri", "db", "collection", "file", "headerline", "ssl", "u", "bypassDocumentValidation"}
LINES = '{"k": 1, "v": "new"}\n{"k": 3, "v": "new"}\n'


def bytes_of(text):
    return codecs.escape_decode(text.encode())[0]


def cases():
    """(options of mongoimport, those of load, reason, text) of each case."""
    for row in (support.TREE / "tests" / "data" / "from-mongoimport.tsv").read_text("utf-8").splitlines():
        theirs, ours, reason, *texts = row.split("\t")
        for text in texts:
            given, declared, text = text.split("~") if "{}" in theirs else ("", "", text)
            yield theirs.replace("{}", given), re.sub("^schema", f"schema:{declared}", ours), reason, text


def is_made(value):
    """Is it an _id that one of the programs makes?"""
    return isinstance(value, int) and value >> 40 > 0 or \
        isinstance(value, bson.ObjectId) and not str(value).startswith("5f0a")


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
        cls.client = pymongo.MongoClient(server.uri, unicode_decode_error_handler="replace")
        cls.addClassCleanup(cls.client.close)

    def documents(self, name):
        """The documents, without _ids that the programs make, in any order."""
        return collections.Counter(
            repr([(key, type(value), repr(value)) for key, value in one.items() if key != "_id" or not is_made(value)])
            for one in self.client.shop[name].find())

    def theirs(self, name, path, words, **more):
        return subprocess.run([self.program, "--uri", self.uri, "-d", "shop", "-c", name, *words, *path],
                              capture_output=True, timeout=support.LIMIT, check=False, **more)

    def fill(self, marks, *names):
        for name in names:
            self.client.shop[name].drop()
            if "+stored" in marks:
                self.client.shop[name].insert_many(STORED)
                self.client.shop[name].create_index("k", unique=True)

    def run_both(self, number, theirs, ours, text):
        """Returns the documents of mongoimport and of load, the exit code of mongoimport, and the outcome of load."""
        kind, *words = re.findall(r"(?:\([^)]*\)|\S)+", theirs)
        marks = [word for word in words if word[0] == "+"]
        words = KINDS[kind].split() + [word for word in words if word[0] != "+"]
        for at, word in enumerate(words):
            if word.startswith("--fieldFile="):
                words[at] = f"--fieldFile={self.file(f'{number}/fields', bytes_of(word[12:]))}"
        if kind in ("csv", "tsv") and "-f" not in words and "--fieldFile" not in theirs:
            words.append("--headerline")
        name = next((mark[6:] for mark in marks if mark.startswith("+name=")), f"t.{kind}")
        path, data = [self.file(f"{number}/{name}", bytes_of(text))], bytes_of(text)
        typed = re.match(r"schema:(.*?)((?: --.*)?)$", ours)
        if typed:
            ours = f"--schema {path[0].parent / 's.yaml'}{typed[2]}"
            self.file(f"{number}/s.yaml", f"name: t\ndelimiter: {'tab' if kind == 'tsv' else 'comma'}\nheader: false\n"
                                          f"columns: [{{name: a, type: {typed[1]}}}, {{name: k}}]\n")
        self.fill(marks, f"t{number}", f"o{number}")
        more = {"input": data} if "+stdin" in marks else {"stdin": subprocess.DEVNULL}
        for time in range(1 + ("+twice" in marks)):
            done = self.theirs(f"t{number}", [] if "+stdin" in marks else path, words, **more)
            outcome = self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", f"o{number}", "--work-dir",
                                     self.scratch / f"{number}/work{time}", *ours.split(),
                                     *(["-"] if "+stdin" in marks else path), code=None,
                                     **({"stdin": data} if "+stdin" in marks else {}))
        return self.documents(f"t{number}"), self.documents(f"o{number}"), done.returncode, outcome

    def test_each_case(self):
        page = (support.TREE / "docs" / "from-mongoimport.md").read_text("utf-8")
        count = collections.Counter()
        self.client.drop_database("shop")
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [(case, pool.submit(self.run_both, number, case[0], case[1], case[3]))
                    for number, case in enumerate(cases())]
        for case, run in runs:
            theirs, ours, code, outcome = run.result()
            reason = case[2]
            with self.subTest(case):
                if reason in ("Refused", "!Stopping"):  # what is stored before the error depends on chance
                    self.assertNotEqual(code, 0)
                else:
                    self.assertEqual(theirs == ours, not reason, (theirs, ours, outcome.text))
                self.assertIn(f"**{reason.strip('!')}**" if reason else "", page)
                # Exit 0 means that each record is stored; an empty line is none.
                if ours.total() < theirs.total() and reason != "Lines":
                    self.assertNotEqual(outcome.code, support.EXIT_OK, outcome.text)
            count["worse" if reason.startswith("!") else "better" if reason else "equal"] += 1
        self.assertIn(f"{count.total()} cases: {count['equal']} collections are equal, {count['better']} ",
                      " ".join(page.split()))
        self.assertIn(f"the other {count['worse']} are", " ".join(page.split()))

    def test_each_option_of_the_page_is_in_a_case(self):
        rows = re.findall(r"^\| (`.*?) \|", (support.TREE / "docs" / "from-mongoimport.md").read_text("utf-8"), re.M)
        used = {word.strip("-") for case in cases() for word in re.findall(r"--?\w+", case[0])} | {"jsonArray"}
        for row in rows:
            options = set(re.findall(r"--?(\w+)", row))
            self.assertTrue(options & (used | ELSEWHERE), row)
        self.assertGreater(len(rows), 20)

    def test_options_that_are_not_supported(self):
        path = self.file("t.json", LINES)
        for option in ("--maintainInsertionOrder", "--bypassDocumentValidation"):
            self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", option, path,
                           code=support.EXIT_USAGE)

    def test_types_in_the_header(self):
        path = self.file("t.csv", "n.int32(),zip.string()\n5,01234\n6,04444\n")
        outcome = self.shardload("load", "--uri", self.uri, "-d", "shop", "-c", "ours", path, code=support.EXIT_SOURCE)
        self.assertIn("--columnsHaveTypes", outcome.err)
