# SPDX-License-Identifier: Apache-2.0
"""SQL dumps: each table becomes a collection, with the types of CREATE TABLE."""
import contextlib
import datetime
import gzip
import json
import os
import pathlib
import re
import signal
import time
import unittest
import uuid

import archive_making as making
import bson
import sql_servers
import support

MYSQL_ROWS = "CREATE TABLE `goods` (`id` int);\n\nINSERT INTO `goods` VALUES (1);\n"
POSTGRES = """--
-- PostgreSQL database dump
--

\\restrict word
SET client_encoding = 'UTF8';
CREATE FUNCTION public.f() RETURNS text LANGUAGE sql AS $_$ SELECT 'COPY public.no (a) FROM stdin;' $_$;
COMMENT ON FUNCTION public.f() IS 'it''s; "a" -- comment';
CREATE TABLE public.orders (
    id integer NOT NULL,
    key text DEFAULT 'a,b)'::text,
    price numeric(10,2),
    at timestamp without time zone,
    ok boolean,
    tags text[],
    tree jsonb,
    bytes bytea,
    unit uuid,
    CONSTRAINT c CHECK ((price > (0)::numeric))
);
CREATE TABLE public.empty (x integer);
CREATE TABLE sales."odd Name" (a double precision, "b c" date, PRIMARY KEY (a));

COPY public.orders (id, key, price, at, ok, tags, tree, bytes, unit) FROM stdin;
1\ta\\tb\\\\\t1.50\t2024-01-02 03:04:05.123\tt\t{a,NULL,"b c"}\t{"a": [1, 12345678901234567890123, null]}\t\\\\x00ff\
\t00112233-4455-6677-8899-aabbccddeeff
2\t\t\\N\t2024-01-02 03:04:05.123456\tf\t\\N\t\\N\t\\N\t\\N
\\.


COPY public.empty (x) FROM stdin;
\\.

COPY sales."odd Name" (a, "b c") FROM stdin;
NaN\t2024-02-29
1e+300\tinfinity
\\.

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);

--
-- PostgreSQL database dump complete
--

\\unrestrict word
"""

MARIADB = r"""/*M!999999\- enable the sandbox mode */
-- MariaDB dump 10.19  Distrib 10.11
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `goods`;
CREATE TABLE `goods` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT COMMENT 'x, (y',
  `key` varchar(20) DEFAULT 'it''s, (x)',
  `bytes` longblob DEFAULT NULL,
  `place` point DEFAULT NULL,
  `kind` enum('a','b)') DEFAULT NULL,
  `bits` bit(8) DEFAULT NULL,
  `at` datetime DEFAULT NULL,
  `twice` int(11) GENERATED ALWAYS AS (`id` * 2) VIRTUAL,
  PRIMARY KEY (`id`),
  KEY `k` (`key`)
) ENGINE=InnoDB;
LOCK TABLES `goods` WRITE;
/*!40000 ALTER TABLE `goods` DISABLE KEYS */;
INSERT INTO `goods` VALUES
(1,'a\'b\\c\n\"; -- x',_binary '\0a\'',0x0101,'b)',_binary '','2024-01-01 00:00:00'),
(2,NULL,'abc',NULL,'a',0x05,'0000-00-00 00:00:00');
INSERT INTO `goods` VALUES (18446744073709551615,'''%\%','',NULL,NULL,NULL,NULL);
/*!40000 ALTER TABLE `goods` ENABLE KEYS */;
UNLOCK TABLES;
CREATE TABLE `sqlite_other` (`a` int);
INSERT INTO `sqlite_other` VALUES (7);
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `p`() BEGIN INSERT INTO sqlite_other VALUES (1); SELECT 1; END ;;
DELIMITER ;
-- Dump completed on 2024-01-01
"""

SQLITE = r"""PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "my t" (id INTEGER PRIMARY KEY, name TEXT, r REAL, b BLOB, [odd col], ok boolean);
INSERT INTO "my t" VALUES(1,replace(replace('a''b\nc\d\r','\r',char(13)),'\n',char(10)),1.5,X'00ff41','x',1);
INSERT INTO "my t" VALUES(2,unistr('\u000a\\n'),-1e999,'cafe',5,0);
CREATE TABLE log(x);
INSERT INTO sqlite_sequence VALUES('log',1);
CREATE TRIGGER tr AFTER INSERT ON "my t" BEGIN
  INSERT INTO log VALUES (new.id); UPDATE log SET x = CASE WHEN x THEN 1 END; END;
COMMIT;
"""


def moment(*parts):
    return datetime.datetime(*parts)


class Dumps(support.ClusterCase, server="mongod"):
    def run_load(self, *words, code=support.EXIT_OK, work=None, **more):
        work = work or self.scratch / f"work-{next(self._counter)}"
        return self.shardload("load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work,
                              "--progress", "none", "-j", 2, *words, code=code, **more)

    def found(self, collection):
        """The documents by their position, without generated _ids."""
        documents = list(self.database[collection].find().sort("_id"))
        return [{key: value for key, value in one.items() if key != "_id"} for one in documents]

    def test_postgres(self):
        outcome = self.run_load(self.file("shop.sql", POSTGRES))
        self.assertEqual([name for name in self.collections() if not name.endswith(".sources")],
                         ["orders", "sales.odd Name"])
        first = {"id": 1, "key": "a\tb\\", "price": bson.Decimal128("1.50"), "at": "2024-01-02 03:04:05.123",
                 "ok": True, "tags": ["a", None, "b c"], "bytes": b"\0\xff",
                 "tree": {"a": [1, bson.Decimal128("12345678901234567890123"), None]},
                 "unit": bson.Binary.from_uuid(uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"))}
        second = {"id": 2, "key": "", "at": "2024-01-02 03:04:05.123456", "ok": False}
        self.assertEqual(self.found("orders"), [first, second])
        odd = self.found("sales.odd Name")
        self.assertNotEqual(odd[0].pop("a"), odd[0].get("a"))  # NaN
        self.assertEqual(odd, [{"b c": moment(2024, 2, 29)}, {"a": 1e300, "b c": "infinity"}])
        self.assertIn("2 tables with rows, 1 without", outcome.text)
        self.assertIn("the seconds of at have more digits, so it is loaded as text", outcome.text)
        out = self.shardload("inspect", self.scratch / "shop.sql").out
        self.assertRegex(out, r"  a table of an SQL dump: \d+ columns\n    id +int\n    key +text\n    price +decimal")
        self.assertNotRegex(out, "archive|dialect")
        self.assertIn("1 CREATE FUNCTION", outcome.text)

    def test_dates_and_text_in_one_column_are_reported(self):
        """A column with microseconds is text. Values that the sample does not show are counted."""
        for cut, sampled in ((".123456", False), (".123456", True), (".123000", True)):
            rows = [f"{i}\t2024-01-02 03:04:05" for i in range(3000)]
            rows.insert(0 if sampled else 3000, f"9999\t2024-01-02 03:04:05{cut}")
            rows.insert(1, "9998\tinfinity")
            path = self.file("t.sql", "CREATE TABLE t (id int, at timestamp);\nCOPY t (id, at) FROM stdin;\n" +
                             "\n".join(rows) + "\n\\.\n")
            work = self.scratch / f"late-{cut}-{sampled}"
            text = self.run_load(path, "--drop", work=work).text
            kept = support.run_record(work / "t")["accounting"].get("keptAsTextByColumn")
            whole = sampled and cut == ".123456"
            self.assertEqual("the seconds of at have more digits" in text, whole, text)
            self.assertEqual(kept, None if whole else [{"column": "at", "values": 2 - sampled}])
            self.assertEqual("kept as text in column at" in text, not whole, text)
            self.assertEqual({type(one["at"]) for one in self.found("t")},
                             {str} if whole else {str, datetime.datetime})

    def test_mariadb(self):
        self.run_load("--id-field", "primary-key", "--include", "goods", self.file("shop.sql", MARIADB))
        self.assertEqual(list(self.database.goods.find().sort("_id")), [
            {"_id": 1, "key": "a'b\\c\n\"; -- x", "bytes": b"\0a'", "place": "0101", "kind": "b)", "bits": b"",
             "at": moment(2024, 1, 1)},
            {"_id": 2, "bytes": b"abc", "kind": "a", "bits": b"\5", "at": "0000-00-00 00:00:00"},
            {"_id": "18446744073709551615", "key": "'%\\%", "bytes": b""}])
        self.assertNotIn("sqlite_other", self.collections())
        self.run_load(self.file("again.sql", MARIADB), "--drop")
        self.assertEqual(self.found("sqlite_other"), [{"a": 7}])

    def test_sqlite(self):
        self.run_load(self.file("shop.sql", SQLITE))
        self.assertEqual(self.found("my t"), [
            {"id": 1, "name": "a'b\nc\\d\r", "r": 1.5, "b": b"\0\xffA", "odd col": "x", "ok": True},
            {"id": 2, "name": "\n\\n", "r": float("-inf"), "b": "cafe", "odd col": "5", "ok": False}])

    def test_a_row_of_the_names_of_the_columns(self):
        """As .import of SQLite stores the header of a file."""
        self.run_load(self.sqlite("CREATE TABLE t(id INT, name TEXT, amount REAL);",
                                  "INSERT INTO t VALUES('id','name','amount');", "INSERT INTO t VALUES(1,'a',2.5);"))
        self.assertEqual(self.found("t"), [{"id": "id", "name": "name", "amount": "amount"},
                                           {"id": 1, "name": "a", "amount": 2.5}])

    def test_fractions_of_sqlite_have_no_digits_of_rounding(self):
        self.run_load(self.sqlite(
            "CREATE TABLE t(a DECIMAL(10,2), r REAL, x, n INT);",
            "INSERT INTO t VALUES(99.989999999999994882,0.10000000000000000555,"
            "-0.050000000000000002775,12345678901234567);",
            "INSERT INTO t VALUES( 9.9999999999999995472e-08,1.0000000000000000047e+300,10000000000000000.0,1);"))
        self.assertEqual(self.found("t"), [
            {"a": bson.Decimal128("99.99"), "r": 0.1, "x": "-0.05", "n": 12345678901234567},
            {"a": bson.Decimal128("1E-7"), "r": 1e300, "x": "10000000000000000.0", "n": 1}])

    def test_empty_text_in_typed_columns_of_sqlite(self):
        """'' in a column of numbers or dates, as web forms and .import store it, is the empty text, not NULL."""
        columns = {"a": "INTEGER", "d": "DATE", "r": "REAL", "n": "NUMERIC(9,2)", "f": "BOOLEAN", "bl": "BLOB",
                   "at": "TIMESTAMP", "j": "JSON", "u": "UUID", "s": "TEXT", "x": ""}
        create = "CREATE TABLE t(id INTEGER PRIMARY KEY, {});\n".format(
            ", ".join(" ".join(pair) for pair in columns.items()))
        rows = "".join(f"INSERT INTO t VALUES({n},{','.join([value] * len(columns))});\n"
                       for n, value in ((1, "''"), (2, "'v'"), (3, "NULL")))
        path = self.file("t.sql", f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n{create}{rows}COMMIT;\n")
        for words, null in (([], {}), (["--null-as", "null"], dict.fromkeys(columns))):
            self.run_load("--drop", "--again", *words, path)
            self.assertEqual(self.found("t"), [{"id": 1, **dict.fromkeys(columns, "")},
                                               {"id": 2, **dict.fromkeys(columns, "v")}, {"id": 3, **null}])

    def test_a_first_value_that_begins_as_bzip2_does(self):
        """The text was refused as bzip2-compressed; a compressed one is recognised before."""
        for text in ("BZh,x\nBZh91,2\nBZh92,3\n",
                     "CREATE TABLE t (a text, b int);\nINSERT INTO t VALUES ('BZh91',1);\n"):
            self.assertIn('"BZh91"', self.shardload("inspect", self.file("a.csv", text)).out)

    def test_sqlite_full_text_indexes(self):
        """SQLite writes the names of their tables and columns in single quotes."""
        path = self.scratch / "text.db"
        tool = sql_servers.tool("sqlite3")
        sql_servers.run([tool, path, "CREATE VIRTUAL TABLE five USING fts5(t); INSERT INTO five VALUES('a b');"
                         "CREATE VIRTUAL TABLE four USING fts4(t); INSERT INTO four VALUES('c d');"
                         "CREATE TABLE n (a INT); INSERT INTO n VALUES(7);"])
        self.run_load(self.file("text.sql", sql_servers.run([tool, path, ".dump"])))
        self.assertEqual(self.found("n"), [{"a": 7}])
        self.assertEqual(self.found("five_content"), [{"id": 1, "c0": "a b"}])
        self.assertEqual(self.found("four_content"), [{"docid": 1, "c0t": "c d"}])

    def test_tables_without_a_primary_key(self):
        path = self.file("keys.sql", "CREATE TABLE a (id INT PRIMARY KEY);\nINSERT INTO a VALUES (1);\n"
                         "CREATE TABLE b (n INT);\nINSERT INTO b VALUES (1);\nCREATE TABLE c (n INT);\n"
                         "INSERT INTO c VALUES (1);\n")
        outcome = self.run_load("--id-field", "primary-key", path, code=support.EXIT_USAGE,
                                message="no primary key, or none is known: b, c.")
        self.assertNotIn("--resume", outcome.text)
        self.assertEqual(self.collections(), [])

    def test_the_totals_of_updates(self):
        path = self.file("goods.sql", MARIADB)
        words = ["--mode", "upsert", "--id-field", "primary-key", "--include", "goods", path]
        for outcomes in ("3 +3 +0 +0 +0", "3 +0 +0 +3 +0"):
            outcome = self.run_load(*words)
            self.assertRegex(outcome.text, "collection +records +inserted +modified +unchanged +rejected")
            self.assertRegex(outcome.text, f"goods +{outcomes}")

    def test_one_collection(self):
        """With --collection, tables that differ are refused; one is selected, or equal ones are loaded."""
        path = self.file("shop.sql", POSTGRES)
        self.load(path, collection="x", code=support.EXIT_USAGE, message=("different columns", "--include"))
        self.assertEqual(self.collections(), [])
        packed = self.scratch / "shop.sql.gz"
        packed.write_bytes(gzip.compress(POSTGRES.encode()))
        self.load("--include", "orders", packed, collection="x")
        self.assertEqual([one["id"] for one in self.found("x")], [1, 2])
        self.shardload("verify", "--content", *self.target("x"), "--include", "orders", packed)
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "--include", "ord*", packed,
                       code=support.EXIT_SOURCE, message="has never been loaded")
        other = self.file("keys.sql", "CREATE TABLE a (x int PRIMARY KEY, y int);\nINSERT INTO a VALUES (1, 2);\n"
                          "CREATE TABLE b (x int, y int PRIMARY KEY);\nINSERT INTO b VALUES (1, 3);\n")
        self.load("--id-field", "primary-key", other, collection="x", code=support.EXIT_USAGE,
                  message="different columns or primary keys: a, b")
        text = self.shardload("inspect", path).text
        self.assertIn('"key" : "a\\tb\\\\"', text)
        self.assertIn('"b c" : "infinity"', text)

    def test_pipe(self):
        """A dump from a pipe: copied into the work directory for several collections, not for one."""
        self.run_load("--id-field", "primary-key", "--include", "orders", "-", stdin=POSTGRES.encode())
        self.assertEqual(self.database.orders.find_one({"_id": 2})["key"], "")
        self.load("--include", "orders", "-", collection="x", stdin=POSTGRES.encode())
        self.assertEqual(len(self.found("x")), 2)
        self.load("-", collection="y", stdin=POSTGRES.encode(), code=support.EXIT_SOURCE, message="other columns")
        self.run_load("-", stdin=b"a,b\n1,2\n", code=support.EXIT_USAGE, message="give --collection")
        self.run_load("-", "-c", "z", "--id-field", "primary-key", stdin=POSTGRES.encode(), code=support.EXIT_USAGE,
                      message="with --collection needs the dump in a file")
        self.run_load("-", "--html", self.scratch / "x", stdin=b"", code=support.EXIT_USAGE, message="--metrics-file")
        for word in "monday", "tuesday":        # each night, in the same work directory
            text = f"CREATE TABLE t (id int, b text);\nINSERT INTO t VALUES (1, '{word}');\n"
            self.run_load("--drop", "-", stdin=text.encode(), work=self.scratch / "nightly")
            self.assertEqual(self.database.t.find_one()["b"], word)
        self.run_load("--drop", "-", stdin=b"", work=self.scratch / "nightly", code=support.EXIT_USAGE)
        text = text.replace("tuesday", "friday")        # the copy of an unfinished start is not used
        self.run_load("--drop", "-", "--resume", stdin=text.encode(), work=self.scratch / "nightly")
        self.assertEqual(self.database.t.find_one()["b"], "friday")
        for sent, message in ((text.replace("friday", "sunday"), "the pipe has another dump"), (text, ""),
                              ("", "has the program that writes it failed"),
                              ("a,b\n1,2\n", "--resume needs the dump of the first run, or none")):
            self.run_load("--drop", "-", "--resume", stdin=sent.encode(), work=self.scratch / "nightly",
                          code=None if message else 0, message=message)
        self.run_load("--drop", "-", "--resume", work=self.scratch / "nightly",
                      through=("sh", "-c", 'exec "$@" </dev/null', "sh"))

    def test_a_refused_table_of_a_dump_is_found_before_another_one_is_dropped(self):
        """The first tables were dropped and loaded when the last one was refused, because a user had set it up."""
        path = self.file("d.sql", "".join(f"CREATE TABLE {name} (id int);\nINSERT INTO {name} VALUES (1);\n"
                                          for name in "abc"))
        self.database.a.insert_one({"_id": "kept"})
        self.database.create_collection("c", validator={"id": {"$ne": 9}})
        self.run_load("--drop", path, code=support.EXIT_USAGE, message=f"--drop would remove {self.database_name}.c")
        self.assertEqual([one["_id"] for one in self.database.a.find()], ["kept"])
        self.assertEqual(self.collections(), ["a", "c"])
        self.database.c.drop()
        self.run_load("--drop", path)

    def test_documents_of_a_table_that_has_no_rows_any_more_are_named(self):
        """Yesterday's rows of a table that is empty today stayed, with --drop, and nothing said so. A quote in the
        table's name ended it in the advised command, and the rest of the name was code."""
        name = "o');x('"
        tables = f"CREATE TABLE `{name}` (`id` int);\nCREATE TABLE `none` (`id` int);\n" + MYSQL_ROWS
        words = "load", "--uri", self.uri, "-d", self.database.name
        path = self.file("s.sql", tables + f"INSERT INTO `{name}` VALUES (1),(2);\n")
        self.shardload(*words, path)
        self.file("s.sql", tables)
        for more, named in ((["--drop", "--include", "g*"], 0), (["--drop"], 1), (["--again"], 0)):
            outcome = self.shardload(*words, *more, path)
            self.assertEqual(outcome.err.count(f"warning: the dump has no rows of the table {name}: the d"), named)
            self.assertEqual(outcome.err.count(r"getCollection('o\u0027);x(\u0027').drop()"), named)
        self.assertNotIn("table none", outcome.err)
        self.assertEqual(self.database[name].count_documents({}), 2)

    def test_a_dump_that_arrives_in_pieces(self):
        """A pipe, or a file that was compressed in pieces, is recognised by 64 KiB of text, not by its first piece."""
        for begin in (f"/* {'x' * 900} */\n", "-- x\n" * 300, "USE db;\n" + "SET a = 1;\n" * 100):
            text = (begin + MYSQL_ROWS).encode()
            packed = gzip.compress(text[:600]) + gzip.compress(text[600:])
            for words, stdin in (([self.file("a.sql.gz", packed)], b""), (["-"], packed), (["-"], text)):
                out = self.shardload("inspect", *words, stdin=stdin).out
                self.assertIn("a table of an SQL dump", out, begin)

    def test_a_dump_in_an_archive(self):
        """A dump that is the only file of a zip or tar is loaded as it is; --include selects its tables. Beside other
        files, a dump is not loaded, which is an error with the way to read it; nothing of it is stored as text."""
        only = [("x/._shop.sql", "a"), ("x/shop.sql", POSTGRES)]
        packed = making.tar([("shop.sql.gz", gzip.compress(POSTGRES.encode()))])
        archives = [making.zip_of(only), making.tar(only), gzip.compress(making.tar(only)), packed]
        self.run_load(self.file("plain.sql", POSTGRES))
        expected = [self.found(name) for name in ("orders", "sales.odd Name")]
        expected[1][0].pop("a")  # NaN
        for number, archive in enumerate(archives):
            path = self.file(f"shop{number}.zip", archive)
            for words, stdin in (([path], b""), (["-"], archive)):
                self.run_load("--drop", "--again", *words, stdin=stdin)
                found = [self.found(name) for name in ("orders", "sales.odd Name")]
                found[1][0].pop("a")
                self.assertEqual(found, expected)
            out = self.run_load("--drop", "--again", "--include", "orders", "-c", "x", path).text
            self.assertEqual(self.found("x"), expected[0], out)
        for rows in (POSTGRES, MARIADB, SQLITE, MYSQL_ROWS, "INSERT INTO t VALUES (1,2);\n" * 2):
            for one, two, message in ((rows, MYSQL_ROWS, "2: the archive has an SQL dump and this file"),
                                      (rows, "a,b\n1,2\n", "2: the archive has an SQL dump and this file"),
                                      ("a,b\n1,2\n", rows, "2: not loaded: this is an SQL dump beside other files")):
                path = self.file("two.zip", making.zip_of([("1", one), ("2", two)]))
                for words in ([], ["--include", "[12g]*"], ["-c", "y"]):
                    outcome = self.run_load("--drop", "--again", *words, path, code=support.EXIT_SOURCE)
                    if not words and rows[:6] != "INSERT":
                        self.assertIn(message, outcome.err)
        for name in self.collections():
            self.assertNotRegex(str(list(self.database[name].find())), "INSERT|CREATE|COPY")
        path = self.file("data.zip", making.zip_of([("a.sql", "CREATE TABLE t (a int);\n"), ("b.csv", "a,b\n1,2\n")]))
        self.run_load("-c", "z", path, code=support.EXIT_SOURCE, message="leave one of them out with --include")
        self.run_load("-c", "z", "--include", "*.csv", path)
        self.assertEqual(self.found("z"), [{"a": 1, "b": 2}])

    def test_a_copy_of_a_pipe_that_another_user_has_planted_is_refused(self):
        self.file("work/shardload.log", "an earlier load\n")
        if os.geteuid() == 0:
            os.chown(self.file("work/standard-input.sql", POSTGRES), support.NOBODY, support.NOBODY)
            self.run_load("--resume", "-", stdin=POSTGRES.encode(), work=self.scratch / "work", code=support.EXIT_USAGE,
                          message="standard-input.sql: it belongs to another user")
        self.assertEqual(self.collections(), [])

    def test_files_of_a_folder(self):
        self.file("d/people.csv", "name,age\nAnn,5\n")
        self.file("d/towns.json", '{"town": "Ulm"}\n')
        self.file("d/go@0020s.txt", "1\ta\\\tb\t\\0x\\\\\t2024-01-01 00:00:00\n\\N\t\\N\t\\N\t\\N\n")
        self.file("d/go@0020s.sql", "-- MariaDB dump 10\nCREATE TABLE `goods` (\n `id` int, `name` text, `b` blob,\n"
                                 " `at` datetime, PRIMARY KEY (`id`)) ENGINE=x;\n-- Dump completed\n")
        self.file("d/none.txt", "")     # a table without rows
        self.file("d/none.sql", "-- MariaDB dump 10\nCREATE TABLE `none` (`id` int) ENGINE=x;\n-- Dump completed\n")
        self.file("d/pipe.txt", "1\ta\n2\tb\n")
        os.mkfifo(self.scratch / "d" / "pipe.sql")
        self.run_load("--skip-other", self.scratch / "d")
        self.assertEqual(self.database.pipe.count_documents({}), 2)
        self.assertEqual(self.found("people"), [{"name": "Ann", "age": 5}])
        self.assertEqual(self.found("towns"), [{"town": "Ulm"}])
        self.assertEqual(self.found("goods"),
                         [{"id": 1, "name": "a\tb", "b": b"\0x\\", "at": moment(2024, 1, 1)}, {}])

    def test_other_files_of_a_folder(self):
        """Files that are no tables are refused before anything is loaded, or left out by --skip-other; their names do
        not conflict with those of tables."""
        for name, content in (("a.csv", "id,x\n1,2\n"), ("a.md", "This table\nhas ids.\n"), ("x.png", "\x89PNG\r\n"),
                              ("empty.csv", "")):
            self.file(f"d/{name}", content.encode("latin-1"))
        outcome = self.run_load(self.scratch / "d", code=support.EXIT_SOURCE, message="2 files or archive entries")
        self.assertIn("--skip-other", outcome.err)
        self.assertEqual(self.collections(), [])
        self.run_load("--skip-other", self.scratch / "d", message="not loaded: ")
        self.assertEqual(self.found("a"), [{"id": 1, "x": 2}])
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "--skip-other", self.scratch / "d")

    def test_a_dump_beside_files_that_include_leaves_out(self):
        """It was said to match no pattern, or to need one, which was given."""
        for entries in ([("README", "text\n"), ("d.sql", POSTGRES)], [("d.sql", POSTGRES), ("README", "text\n")]):
            for archive in (making.zip_of(entries), making.tar(entries)):
                path = self.file("d.zip", archive)
                self.run_load(path, code=support.EXIT_SOURCE, message="'*.sql'" if entries[0][0] == "d.sql" else "")
                self.run_load("--include", "*.sql", "--drop", "--again", path)
                self.assertEqual([len(self.found(name)) for name in ("orders", "sales.odd Name")], [2, 2])
                self.shardload("verify", "--content", "--uri", self.uri, "-d", self.database_name, "--include", "*.sql",
                               path)

    def test_sources_are_refused_before_the_collection_is_dropped(self):
        """Dumps of a folder, and several: only a single one was read first. Then the documents were gone."""
        first = "CREATE TABLE a (id int);\nINSERT INTO a VALUES (1);\n"
        other = "CREATE TABLE c (x text);\nINSERT INTO c VALUES ('x');\n"
        cut = f"-- MySQL dump 8\n{first.replace('(1)', ','.join(['(1)'] * 300000))}"
        self.run_load("-c", "t", self.file("kept.csv", "id,x\n8,9\n"))
        folder = self.scratch / "folder"
        folder.mkdir()
        for texts in ([first + other], [cut], [first, other]):
            paths = [self.file(f"folder/{number}.sql", text) for number, text in enumerate(texts)]
            for words in ([folder], paths):
                self.run_load("--drop", "--skip-other", "-c", "t", *words, code=None, message=": ")
                self.assertEqual(self.found("t"), [{"id": 8, "x": 9}])
        for text in (first.replace("id int", "id int, x int").replace("(1)", "(1,2)"), "id,x\n1,2\n"):
            self.file("folder/0.sql", "CREATE TABLE z (id int);\n")
            self.file("folder/1.sql", text)
            self.run_load("--drop", "--skip-other", "-c", "t", folder)
            self.assertEqual(self.found("t"), [{"id": 1, "x": 2}])

    def test_the_last_line_names_the_command_that_works(self):
        """The line of the load itself, with --skip-other; one without it, which fails again, followed as the last."""
        path = self.file("r.zip", making.zip_of([("a.csv", "id,x\n1,2\n"), ("b.json", '{"x": 1}\n')]))
        text = self.run_load(path, code=support.EXIT_SOURCE, message="with --skip-other --resume --work-dir").text
        self.assertEqual(text.count("--resume"), 1, text)

    def test_include_selects_entries_of_an_archive(self):
        """Without --collection, too: entries that the user has excluded were stored, with exit status 0."""
        entries = [("a.csv", "id,x\n1,2\n3,4\n"), ("b.csv", "id,x\n5,6\n")]
        path, other = self.file("r.zip", making.zip_of(entries)), self.file("plain.csv", "id,x\n7,8\n")
        self.run_load("--include", "a.csv", path, other)
        self.assertEqual([one["id"] for one in self.found("r")], [1, 3])
        self.assertEqual(self.found("plain"), [{"id": 7, "x": 8}])
        self.shardload("verify", "--uri", self.uri, "-d", self.database_name, "--content", "--include", "a.csv", path)
        mixed = self.file("notes.tgz", gzip.compress(making.tar([("read.txt", "no table\n"), *entries])))
        self.run_load(mixed, code=support.EXIT_SOURCE, message="--include")
        self.run_load("--drop", "--include", "b.csv", mixed)
        self.assertEqual(self.found("notes"), [{"id": 5, "x": 6}])
        only = self.file("only.sql", MYSQL_ROWS)  # all of it is its only table
        for words in ([], ["--again", "-c", "goods"]):
            self.run_load(*words, only)
        self.assertEqual(self.found("goods"), [{"id": 1}])

    def test_no_copy_of_a_refused_pipe_is_left(self):
        """The unpacked dump stayed in the work directory, and no message named it."""
        work, dump = self.scratch / "work", POSTGRES.replace("PRIMARY KEY (a)", "b int").encode()
        for words in ("--types", "text"), ("--include", "no*"), ("--id-field", "primary-key"):
            self.run_load(*words, "-", stdin=dump, work=work, code=None)
            self.assertFalse(work.exists(), words)

    def test_a_second_pipe_is_refused(self):
        """Of two dumps only the first was read: the work directory has room for the copy of one."""
        pipes = []
        for name in ("none", "goods"):
            pipes.append(self.scratch / name)
            os.mkfifo(pipes[-1])
        self.run_load(*pipes, self.file("plain.csv", "id\n1\n"), code=support.EXIT_USAGE, message="a second pipe")
        self.assertEqual(self.collections(), [])

    def test_the_status_of_a_table(self):
        path = self.file("t.sql", "CREATE TABLE a (x int);\nINSERT INTO a VALUES (1);\nCREATE TABLE b (x int);\n"
                                  "INSERT INTO b VALUES (1);\n")
        self.run_load(path, work="w")
        outcome = self.shardload("status", "w", code=support.EXIT_USAGE)
        (name,) = re.findall(r"load of several tables, .* such as (w/\S+)", outcome.err)
        self.assertIn(": finished", self.shardload("status", name).out)

    def test_verify_keeps_the_problems_of_each_table(self):
        """In a folder for each, as a load: the files of one table were overwritten by those of the next."""
        paths = [self.file(f"{name}.csv", "id,x\n1,1\n2,1\n") for name in "ab"]
        self.run_load("--id-field", "id", *paths)
        self.database.a.delete_one({"_id": 1})
        words = ("verify", "--uri", self.uri, "-d", self.database_name, "--content", "--id-field", "id", *paths)
        self.shardload(*words, "--work-dir", "v", code=support.EXIT_VERIFICATION)
        codes = [json.loads((self.scratch / "v" / name / "verify.json").read_text())["exitCode"] for name in "ab"]
        self.assertEqual(codes, [support.EXIT_VERIFICATION, support.EXIT_OK])
        self.assertEqual((self.scratch / "v/a/problems.tsv").read_text().count("\n"), 2)
        self.shardload(*words, "--report", "r.json", code=support.EXIT_USAGE, message="its verify.json")

    def test_a_changed_rate_limit_is_that_of_the_next_table(self):
        """A limit that was set while the first table was loaded ended with that table."""
        text, work = "id,x\n" + "1,2\n" * 300, self.scratch / "work"
        running = self.start("shardload", "load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work,
                             "--progress", "none", "-j", 1, "--batch-size", 10, "--rate-limit", 20,
                             self.file("a.csv", text), self.file("b.csv", text))
        self.wait_for(lambda: "a" in self.collections() and self.database.a.estimated_document_count() > 0, "a")
        self.shardload("status", "--rate-limit", 90000, work / "a")
        running.wait().expect(support.EXIT_OK)
        status = json.loads(self.shardload("status", "--json", work / "b").out)
        self.assertEqual(status["limit"]["documentsPerSecond"], 90000)

    def test_tables_that_were_loaded_before(self):
        """They are reported once, and no work directory is left."""
        path = self.file("shop.sql", MARIADB)
        self.assertIn("a table of an SQL dump: ", self.run_load(path).text)
        work = self.scratch / "again"
        text = self.run_load(path, code=support.EXIT_SOURCE, work=work).text
        self.assertEqual((text.count("has been loaded into"), work.exists()), (1, False), text)
        self.assertIn("2 of 2 tables have been loaded before", text)
        self.assertNotIn("dialect postgres", text)
        self.database.drop_collection("sqlite_other")
        self.database.drop_collection("other.sources")
        text = self.run_load(path, code=support.EXIT_SOURCE, work=work).text
        self.assertRegex(text, r"goods .* loaded before")
        self.assertEqual(self.found("sqlite_other"), [{"a": 7}])
        self.assertTrue(work.exists())

    def test_a_table_that_cannot_be_completed(self):
        """Rejects of a later table do not hide it."""
        first = "CREATE TABLE a (id int);\n" + "INSERT INTO a VALUES ('no number');\n" * 3000
        dump = self.file("d.sql", first + "CREATE TABLE b (id int);\nINSERT INTO b VALUES (1), ('x');\n")
        self.run_load("--max-rejects", 10000, dump, code=support.EXIT_RESOURCES, message="File too large",
                      through=["sh", "-c", 'ulimit -f 64; exec "$0" "$@"'])

    def test_same_name(self):
        self.file("d/a.csv", "x,y\n1,2\n")
        self.file("d/a.json", '{"x": 1}\n')
        self.run_load(self.scratch / "d", code=support.EXIT_USAGE, message="would both become the collection a")
        (self.scratch / "dump").mkdir()
        self.file("dump/a.metadata.json", '{"options": {}}')
        self.run_load(self.scratch / "dump", code=support.EXIT_SOURCE, message="shardload restore FOLDER")

    def test_scripts_written_by_hand(self):
        """They are never read as a table with commas."""
        for n, begin in enumerate(("SET NAMES utf8;\n", "BEGIN;\n", "-- my data\n\n", "START TRANSACTION;\n", "")):
            create = f"CREATE TABLE c{n} (id int, name text);\n"
            insert = f"insert into c{n} values (1,'a'),\n (2,'b');\n"
            insert += "COMMIT;\n" if begin.startswith(("BEGIN", "START")) else ""
            self.run_load(self.file("s.sql", begin + create + insert))
            self.assertEqual(self.found(f"c{n}"), [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], begin)
            self.run_load(self.file("bare.sql", begin + insert), code=support.EXIT_SOURCE, message="no CREATE TABLE")

    def test_beginnings(self):
        """Statements and comments with which scripts begin; tables that begin with such words."""
        for begin in ("SET standard_conforming_strings = on;", "SET search_path TO x;", "SET @a=1;", "USE db;",
                      "use `my db`;", "CREATE VIEW v AS SELECT 1;", "CREATE OR REPLACE VIEW v AS SELECT 1;", "# hi",
                      "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.s=1;", "DELIMITER ;;\nDELIMITER ;",
                      "CREATE INDEX i ON t (a, b);", "CREATE VIEW v AS SELECT a, b\nFROM t;",
                      "DELETE FROM x WHERE a=1;",
                      "TRUNCATE TABLE x;", "CREATE TABLE b LIKE assets;", "SET a=1;\nSTART REPLICA;",
                      "BEGIN;\nROLLBACK;",
                      "/*! */", "/*!40101 */", "/*!99999 it's off */;",
                      "DELIMITER //\n/*!40101 SET a=1 */ //\nDELIMITER ;",
                      "DROP VIEW a, b;", "DROP VIEW v; -- old, one", "TRUNCATE TABLE a, b;",
                      "DELETE FROM a WHERE x='a,b';", "CREATE VIEW v as select a || b, c from t;",
                      "Create View v\nas x;",
                      "CREATE TRIGGER r BEFORE INSERT ON a FOR EACH ROW SET NEW.a=1, NEW.b=2;",
                      "CREATE TEMPORARY TABLE z (a int); CREATE TABLE y (a int);", "DROP INDEX a;\tDROP INDEX b;",
                      "CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1;", "BEGIN;\nCOMMIT;", "begin work;\nCOMMIT;",
                      "START TRANSACTION READ WRITE;\r\nCOMMIT;", "/*!50100 SET x=1 */;", "UNLOCK TABLES;",
                      "/*M!999999\\- enable */", "\\connect x", "\\restrict abc", "ALTER DATABASE x SET y=1;",
                      "DROP VIEW IF EXISTS v;", "/* a\n b */\n\n-- c\n", "CREATE TEMP TABLE z (id int);"):
            path = self.file("script", f"{begin}\nCREATE TABLE t (id int);\nINSERT INTO t VALUES (1);\n")
            self.assertIn("a table of an SQL dump", self.shardload("inspect", path).out, begin)
        for begin in ("SET,x", "SET;x", "SET a=b;c", "USE;x", "USE date;x", "BEGIN;END", "begin,end", "DELIMITER,x",
                      "DELIMITER x,y", "# note\na,b", "-- x\na,b", "CREATE,DROP", "create time,x", "Drop type,x",
                      "Drop type x,y", "Comment on x,y", "Create event id;Create event time", "Drop type code;Price",
                      "create event id;x", "Create event id,note", "Delete from cart,Clicks", "Use case;",
                      "truncate table id;y", "drop index,x", "Replace into x;y", "update,x", "Update date,x",
                      "update set,x", "insert,x", "Insert size (bp),x", "insert date,values (EUR)", "rem,x",
                      "Rem sleep,x", "merge,x", "Merge into x,y", "Delete from x;y", "Exec time,x", "if,x",
                      "query,ms\nINSERT INTO t SELECT a;,1",
                      "ms,query\n1,INSERT INTO t VALUES (1);",
                      'n,script\n1,"\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2);\nUPDATE t SET a = 1;"'):
            row = "1;2\n" if ";" in begin else "1,2\n"
            out = self.shardload("inspect", self.file("table", f"{begin}\n{row * 2}")).out
            self.assertNotIn("SQL dump", out, begin)

    def test_scripts_that_are_not_dumps(self):
        """Statements of Oracle's SQL Developer, of SQL Server, and others that are no dump: refused with the line;
        they are never stored as a table of text."""
        for begin, row in (("REM INSERTING into T\nSET DEFINE OFF;\n", "Insert into T (ID,S) values ({0},'{0}');\n"),
                           ("", "INSERT [dbo].[t] ([id], [s]) VALUES ({0}, N'{0}')\n"),
                           ("", "insert t values ({0}, '{0}')\ngo\n"),
                           ("PROMPT t, u\n", "REPLACE INTO t VALUES ({0}, '{0}');\n"),
                           ("", "UPDATE t SET s = '{0}', u = 1;\n"), ("", "UPDATE dbo.t\nSET s = '{0}',\n u = 1;\n"),
                           ("", "MERGE INTO t USING u ON (t.id = {0}, 1) WHEN MATCHED THEN DELETE;\n"),
                           ("DECLARE @a int, @b int\n", "INSERT t (id, s) VALUES ({0}, '{0}');\n"),
                           ("@start.sql a,b\n", "delete from t where id in ({0}, 1);\n")):
            path = self.file("script.sql", begin + "".join(row.format(n) for n in range(5)))
            err = self.shardload("inspect", path, code=support.EXIT_SOURCE).err
            self.assertRegex(err, r"script\.sql, line [12]: |CREATE TABLE", begin + row)

    def test_dumps_with_a_byte_order_mark(self):
        """Also in UTF-16, as the shell of Windows writes the output of mysqldump, and packed."""
        for name, text in (("mysql", "-- MySQL dump 8\n" + MYSQL_ROWS + "-- Dump completed\n"),
                           ("script", "-- a\n\n" + MYSQL_ROWS), ("bare", MYSQL_ROWS), ("marked", "\ufeff" + MYSQL_ROWS),
                           ("heidi", "-- ----\n-- Host: é\n\n/*!40101 SET NAMES utf8 */;\n" + MYSQL_ROWS),
                           ("postgres", "--\n-- PostgreSQL database dump\n--\nCREATE TABLE goods (id int);\n"
                            "COPY goods (id) FROM stdin;\n1\n\\.\n-- PostgreSQL database dump complete\n")):
            for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be"):
                for line_end in ("\n", "\r\n"):
                    bytes_ = text.replace("\n", line_end).encode(encoding)
                    bytes_ = b"\xfe\xff" + bytes_ if encoding == "utf-16-be" else bytes_
                    with self.subTest(name=name, encoding=encoding, line_end=line_end):
                        self.run_load("--drop", "--again", self.file(f"{name}.sql", bytes_))
                        self.assertEqual(self.found("goods"), [{"id": 1}])
                        self.assertNotIn(name, self.collections())
            self.run_load("--drop", "--again", self.zipped(f"{name}.sql.gz", "\ufeff" + text))
            self.assertEqual(self.found("goods"), [{"id": 1}])

    def test_bad_input(self):
        """Dumps that are cut off or not understood: an error with the line, before anything is stored."""
        cases = [(POSTGRES[:POSTGRES.index("2\t\t")], "line 24: the rows of orders, which begin here, have no end"),
                 (POSTGRES[:POSTGRES.index("--\n-- PostgreSQL database dump complete")], "without the line"),
                 (POSTGRES[:300], "cut off"), (MARIADB[:900], "cut off"), (MARIADB[:-40], "begins with `DELI`"),
                 (SQLITE.replace("COMMIT;", ""), "without COMMIT"),
                 (MARIADB.replace("LOCK TABLES", "FROBNICATE"), "line 17: a statement that begins with `FROBNICATE`"),
                 (MARIADB.replace("VALUES (7)", "SELECT 7"), "INSERT without VALUES"),
                 (MYSQL_ROWS.replace("INSERT", "CREATE INDEX i ON x (y)\nINSERT"), "is within another statement"),
                 (MYSQL_ROWS + "/* x", "line 4: the comment that begins here has no end"),
                 ("SET client_encoding='UTF8';\nCREATE TABLE t (a int);\nINSERT INTO t VALUES (1);\n/* a /* b */\n"
                  "INSERT INTO t VALUES (2);\n", "line 4: the comment that begins here has no end"),
                 (MYSQL_ROWS.replace("(1)", "(1), /*M! (2), */ (3)"), "among rows that MySQL executes"),
                 (MARIADB.replace("VALUES (7)", "VALUES (rand())"), "not understood: rand"),
                 (POSTGRES.replace("CREATE TABLE public.orders", "CREATE TABLE public.order"), "no CREATE TABLE"),
                 (POSTGRES.replace("COPY public.empty (x) ", "COPY public.orders (id) "), "a second time"),
                 *((MYSQL_ROWS.replace("(1);", f"(1) {clause};"), "line 3: an INSERT statement that updates rows")
                   for clause in ("ON DUPLICATE KEY UPDATE id = 1", "AS new ON DUPLICATE KEY UPDATE id = new.id",
                                  "ON CONFLICT (id) DO UPDATE SET id = 2")),
                 *((MYSQL_ROWS + f"{again} `goods`;\n" + MYSQL_ROWS, "line 4: the table goods, whose rows are above")
                   for again in ("CREATE TABLE", "DROP TABLE IF EXISTS `x`,", "DELETE FROM", "TRUNCATE `x`,"))]
        for number, (text, message) in enumerate(cases):
            with self.subTest(message=message):
                self.run_load(self.file(f"{number}.sql", text), code=support.EXIT_SOURCE, message=message)
                self.assertEqual(self.collections(), [])
        before = "DROP TABLE IF EXISTS `goods`;\n" + MYSQL_ROWS.replace("INSERT", "TRUNCATE `goods`;\nINSERT")
        before = before.replace(");", ") ON CONFLICT DO NOTHING;")
        self.run_load(self.file("before.sql", before + "DROP TABLE `x`, `y`;\nDROP VIEW `goods`;\n"))
        self.assertEqual(self.found("goods"), [{"id": 1}])
        path = self.file("nul.sql", POSTGRES.replace("a\\tb", "a\0b").encode())
        self.run_load(path, code=support.EXIT_SOURCE, message="nul.sql")
        self.assertNotIn("orders", self.collections())
        path = self.file("latin.sql", POSTGRES.replace("a\\tb", "ä").encode("latin-1"))
        self.run_load("--drop", path, code=support.EXIT_REJECTS)
        self.assertEqual([one["id"] for one in self.found("orders")], [2])

    def test_statements_that_change_rows(self):
        """Whatever makes a database hold other rows than those of INSERT and COPY is an error with its line; so is
        INSERT in a statement without end."""
        rows = "CREATE TABLE t (id int, s text);\nINSERT INTO t VALUES (1,'a');\n"
        for text in ("CREATE TABLE u AS SELECT * FROM t;", "CREATE TABLE u (id int) ENGINE=InnoDB SELECT 1;",
                     "CREATE TABLE IF NOT EXISTS u AS\n(SELECT 1);", "RENAME TABLE t TO u;", "LOAD DATA INFILE 'x';",
                     "UPDATE t SET id = 3;",
                     "DELETE LOW_PRIORITY FROM t;", "DELETE x FROM t x;", "TRUNCATE x, ONLY t;", "ROLLBACK;",
                     "SELECT * INTO u FROM t;", "DO $$ BEGIN INSERT INTO t VALUES (4,'x'); END $$;",
                     "INSERT INTO t SELECT 1;", "INSERT INTO t SET id = 1;", "\\copy t from x", "\\i x.sql",
                     "/*!50000 INSERT INTO t VALUES (2,'b') */;", "/*M! REPLACE INTO t VALUES (2,'b') */;",
                     "CREATE INDEX i ON t (id);\nCREATE TABLE u AS SELECT 1;",
                     "ALTER TABLE t ADD KEY (id),RENAME TO u;",
                     *(f"ALTER TABLE t ADD INDEX i (id, s), {change};" for change in (
                         "RENAME TO u", "RENAME COLUMN s TO u", "DROP s", "DROP COLUMN s", "ADD z int", "ADD (z int)",
                         "DROP PARTITION p", "CHANGE s u text", "ALTER COLUMN s TYPE int", "ALTER s SET DATA TYPE int",
                         "EXCHANGE PARTITION p WITH TABLE u"))):
            line = 3 + (text.startswith("CREATE INDEX"))
            with self.subTest(text=text):
                self.run_load(self.file("t.sql", rows + text + "\n"), code=support.EXIT_SOURCE,
                              message=f"t.sql, line {line}: ")
        mysql = "-- MySQL dump 8\n" + rows.replace("INSERT", "ALTER TABLE t %s;\nINSERT") + "-- Dump completed\n"
        for change in ("DROP s", "MODIFY s int", "ADD KEY (id), MODIFY s int"):
            self.run_load(self.file("t.sql", mysql % change), code=support.EXIT_SOURCE,
                          message="line 3: ALTER TABLE changes the columns of the table t")
        self.run_load(self.file("t.sql", mysql.replace("'a')", "'a') /*!50000 ,(2,'b') */")), code=support.EXIT_SOURCE,
                      message="line 4: a comment among rows that MySQL executes")
        for text in (rows.replace("text);", "text)\nGO"), rows.replace("'a');", "'a')\nGO\n"),
                     "USE x\nGO\n;" + rows, "DROP VIEW v\n" + rows[rows.index("INSERT"):],
                     rows.replace(");\nI", ")\nI"), rows + "INSERT INTO t VALUES (2,'b') REPLACE INTO t VALUES (3);"):
            self.run_load(self.file("t.sql", "SET NAMES utf8;\n" + text), code=support.EXIT_SOURCE,
                          message="is within another statement")
        for text in ("SET @x=1; UPDATE t SET id=4;$$", "DROP TABLE IF EXISTS x; UPDATE t SET id=4;$$",
                     "ALTER TABLE t ADD KEY (id); DELETE FROM t;$$", "CREATE TABLE y (a int); DELETE FROM t;$$",
                     "INSERT INTO t VALUES (2,'b'); DELETE FROM t;$$"):
            script = self.file("t.sql", rows + "DELIMITER $$\n" + text + "\nDELIMITER ;\n")
            self.run_load(script, code=support.EXIT_SOURCE,
                          message="a statement follows on a semicolon, but statements end with $$ here")
        self.run_load(self.file("t.sql", "BEGIN;\n" + rows), code=support.EXIT_SOURCE, message="without COMMIT")
        self.assertEqual(self.collections(), [])
        harmless = "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (id), MODIFY s text, ALTER s SET DEFAULT 'x';\n" \
                   "ALTER TABLE t DROP INDEX i, RENAME KEY a TO b, ALTER COLUMN type DROP DEFAULT, ADD CHECK (s);" \
                   "GRANT SELECT,\nINSERT ON t TO x;\n" \
                   "CREATE RULE r AS ON INSERT TO v DO INSTEAD (INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2););"
        self.run_load(self.file("t.sql", rows + harmless))
        self.assertEqual(self.found("t"), [{"id": 1, "s": "a"}])
        rows = rows.replace("t VALUES (1,'a')", "t (id) VALUES (1)")
        path = self.file("t.sql", rows + "REPLACE INTO t (id) VALUES (1);\n")
        text = self.run_load("--drop", "--again", path).text
        self.assertIn("table t, from line 2 on, leave out columns", text)
        self.assertIn("a database keeps one for each key", text)
        self.run_load("--drop", "--again", "--include", "t", self.file("t.sql", rows + "CREATE TABLE u AS SELECT 1;\n"))

    def load_three(self, text):
        """Loads a dump whose tables a, b and c have the same rows; returns their contents."""
        self.run_load("--drop", "--again", self.file("three.sql", text))
        return [self.found(name) for name in "abc"]

    def test_quotes_within_triggers_of_mysql(self):
        """A backslash also escapes within double quotes; no table is taken for a part of a string."""
        trigger = "CREATE TRIGGER `%s_t` BEFORE INSERT ON `%s` FOR EACH ROW BEGIN\n" \
                  "  SET NEW.t = REPLACE(NEW.t, \"\\\"\", \"\");\n  SET NEW.id = 2--1; END"
        rows = "CREATE TABLE `%s` (`id` int, `t` text);\nINSERT INTO `%s` (`id`, `t`) VALUES\n(1, 'x'),\n(2, 'y');\n"
        for begin, end in (("-- phpMyAdmin SQL Dump\n\nSET NAMES utf8;\n", ""), ("START TRANSACTION;\n", "COMMIT;\n"),
                           ("-- MySQL dump 8\n", "-- Dump completed\n")):
            triggers = (f"DELIMITER $$\n{trigger}\n$$\nDELIMITER ;\n", f"DELIMITER $$\n{trigger}$$\nDELIMITER ;\n",
                        f"DELIMITER ;;\n{trigger} ;;\nDELIMITER ;\n",
                        "CREATE DEFINER=`a`@`b` VIEW `%s_v` AS SELECT \"\\\"\" FROM `%s`;\n")
            for after in triggers:
                parts = (rows + after, after + rows)
                for part in parts:
                    text = begin + "".join(part % (name, name, name, name) for name in "abc") + end
                    self.assertEqual(self.load_three(text), [[{"id": 1, "t": "x"}, {"id": 2, "t": "y"}]] * 3, text)

    def test_begin_and_end_as_names(self):
        """PostgreSQL does not quote `begin`, nor SQLite `new.end`: the tables after such a statement are read."""
        rows = "CREATE TABLE %s (id int, begin date);\nINSERT INTO %s VALUES (1,NULL);\n"
        for begin, between, end in (
                ("-- PostgreSQL database dump\n", "CREATE FUNCTION f(begin date, finish date) RETURNS int LANGUAGE sql "
                 "AS $$ select 1 $$;\nCREATE TRIGGER t AFTER UPDATE OF begin ON a EXECUTE FUNCTION g();\n"
                 "CREATE FUNCTION h() RETURNS int BEGIN ATOMIC\nSELECT begin, CASE WHEN true THEN 1 END FROM a;\n"
                 "SELECT a.begin FROM a;\nEND;\n", "-- PostgreSQL database dump complete\n"),
                ("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n"
                 "UPDATE a SET id = new.end;\nUPDATE a SET id = new.begin;\nEND;\n", "COMMIT;\n")):
            text = begin + "".join(rows.replace("%s", name) + between for name in "abc")
            self.assertEqual(self.load_three(text + end), [[{"id": 1}]] * 3)
            self.run_load(self.file("cut.sql", text), code=support.EXIT_SOURCE, message="cut off")

    def test_bits_of_mysql(self):
        rows = "CREATE TABLE `%s` (`id` int, `f` bit(12));\n" \
               "INSERT INTO `%s` (`id`, `f`) VALUES (1, b'10100101'), (2, b'1'), (3, b'000000000101');\n"
        self.assertEqual(self.load_three("-- phpMyAdmin SQL Dump\n\n" + "".join(rows % (name, name) for name in "abc")),
                         [[{"id": 1, "f": b"\xa5"}, {"id": 2, "f": b"\1"}, {"id": 3, "f": b"\0\5"}]] * 3)

    def test_vectors_of_mysql(self):
        """They are bytes, as VECTOR columns of MySQL and MariaDB are dumped with --hex-blob and without."""
        text = "-- MySQL dump 8\nCREATE TABLE t (`e` vector(1));\n" \
               "INSERT INTO t VALUES (_binary '\\0\\0\x7f?'),(0x00007F3F);\n-- Dump completed\n"
        self.run_load(self.file("t.sql", text))
        self.assertEqual(self.found("t"), [{"e": b"\0\0\x7f?"}] * 2)

    def test_a_warning_of_mysqldump_before_the_dump(self):
        """`mysqldump 2>&1` writes it there; it is passed over, and an error of mysqldump is not."""
        text = "mysqldump: [Warning] Using a password on the command line interface can be insecure.\n" \
               f"-- MySQL dump 8\n{MYSQL_ROWS}%s-- Dump completed\n"
        self.run_load(self.file("t.sql", text % ""))
        self.assertEqual(self.found("goods"), [{"id": 1}])
        self.run_load(self.file("t.sql", text % "mysqldump: Error 2013: Lost connection\n"), code=support.EXIT_SOURCE,
                      message="line 6: a statement that begins with `mysqldump`")

    def test_types_of_sqlite_and_of_sql_server(self):
        """NUM, which CREATE TABLE ... AS SELECT writes, and types in brackets are those that they name."""
        self.run_load(self.sqlite("CREATE TABLE t(a NUM, b NUMBER, c UNSIGNED BIG INT);",
                                  "INSERT INTO t VALUES(2.5,3,4);", "INSERT INTO t VALUES('x',NULL,5);"))
        self.assertEqual(self.found("t"), [{"a": bson.Decimal128("2.5"), "b": bson.Decimal128("3"), "c": 4},
                                           {"a": "x", "c": 5}])
        self.run_load(self.file("s.sql", "CREATE TABLE [dbo].[s]([Id] [int] NOT NULL, [N] [nvarchar](9), [x] [real]);\n"
                                         "INSERT INTO [dbo].[s] ([Id], [N], [x]) VALUES (1, N'01', 1.5);\n"))
        self.assertEqual(self.found("dbo.s"), [{"Id": 1, "N": "01", "x": 1.5}])

    def test_documents_and_arrays_in_another_encoding(self):
        """`--encoding` is also that of json and array columns, of dumps and of tables; they were rejects."""
        text = "-- PostgreSQL database dump\nCREATE TABLE t (v text, j jsonb, a text[]);\n" \
               "COPY t (v, j, a) FROM stdin;\nK\xf6ln\t{\"K\xf6\": [\"\xf6\\\\n\"]}\t{K\xf6ln,\"a \xf6\"}\n\\.\n" \
               "-- PostgreSQL database dump complete\n"
        self.run_load("--encoding", "latin1", self.file("t.sql", text.encode("latin-1")))
        self.assertEqual(self.found("t"), [{"v": "K\xf6ln", "j": {"K\xf6": ["\xf6\n"]}, "a": ["K\xf6ln", "a \xf6"]}])
        table = self.file("u.csv", 'n,j,a\n1,"{""\xf6"":""\xe9""}","[""\xf6""]"\n2,[],{\xf6}\n'.encode("iso-8859-2"))
        self.run_load("-c", "u", "--encoding", "iso-8859-2", "--types", "j=json,a=array:text", table)
        self.assertEqual(self.found("u"), [{"n": 1, "j": {"\xf6": "\xe9"}, "a": ["\xf6"]},
                                           {"n": 2, "j": [], "a": ["\xf6"]}])

    def test_mysql_without_a_header(self):
        """ENGINE shows it; no statement after a constraint without columns is passed over."""
        rows = "CREATE TABLE %s (id int, t text) ENGINE=InnoDB;\nALTER TABLE %s DROP PRIMARY KEY;\n" \
               "INSERT INTO %s VALUES (1,'a\\nb');\nINSERT INTO %s VALUES (2,'C:\\\\x');\n"
        self.assertEqual(self.load_three("".join(rows % (name, name, name, name) for name in "abc")),
                         [[{"id": 1, "t": "a\nb"}, {"id": 2, "t": "C:\\x"}]] * 3)

    def test_what_shows_mysql(self):
        """From the first table on; BEGIN TRANSACTION is not MySQL's, and backquotes are then those of SQLite."""
        rows = "CREATE TABLE %s (id int, t text);\nINSERT INTO %s (id, t) VALUES (1,'a\\n');\n"
        quoted = "CREATE TABLE `%s` (`id` int, `t` text, `f` bit(4), KEY `k` (`id`));\n" \
                 "INSERT INTO %s VALUES (1,'a\\n',NULL);\n"
        create = "CREATE TABLE %%s (id int %s, t text, f int, key k (id))%s;\n" \
                 "INSERT INTO %%s VALUES (1,'a\\n',NULL);\n"
        for begin, each in (("", quoted), ("", create % ("auto_increment", "")), ("# x\n", rows), ("USE x;\n", rows),
                            ("", create % ("", " ENGINE=InnoDB")), ("SET FOREIGN_KEY_CHECKS=0;\n", rows),
                            ("SET @x = 1;\n", rows), ("", "UNLOCK TABLES;\n" + rows)):
            with self.subTest(begin=begin, each=each):
                text = "SET NAMES utf8;\n" + begin + "".join(each % (name, name) for name in "abc")
                self.assertEqual(self.load_three(text), [[{"id": 1, "t": "a\n"}]] * 3)
        names = "".join(rows % (name, name) for name in "abc").replace("t text)", "t text, -- `x`\n\"'`\" int)")
        self.assertEqual(self.load_three(names), [[{"id": 1, "t": "a\\n"}]] * 3)
        quoted = "BEGIN TRANSACTION;\n%sCOMMIT;\n" % "".join(rows.replace("%s", f"`{name}`") for name in "abc")
        self.assertEqual(self.load_three(quoted), [[{"id": 1, "t": "a\\n"}]] * 3)

        comment = "".join(f"CREATE TABLE {name} (/* `x` */ id int, -- `y`\nt text);\n"
                          f"INSERT INTO {name} VALUES (1,'C:\\new');\n" for name in "abc")
        self.assertEqual(self.load_three(comment), [[{"id": 1, "t": "C:\\new"}]] * 3)
        for text in ("E'it\\'s'", "$$it's$$"):
            self.assertEqual(self.load_three(comment.replace("t text", f"t text DEFAULT {text}").replace("C:", "`C:")),
                             [[{"id": 1, "t": "`C:\\new"}]] * 3)

    def test_comments_within_triggers_that_mysql_executes(self):
        """As mysqldump writes them: the comment ends after the trigger, and not with the one in its body."""
        rows = "CREATE TABLE `%s` (`id` int, `t` text);\nINSERT INTO `%s` VALUES (1,'x');\n"
        trigger = "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER `r` " \
                  "AFTER INSERT ON `t` FOR EACH ROW BEGIN /* audit: it's */\n" \
                  "  INSERT INTO log VALUES ('*/'); -- no ' end\nEND */;;\nDELIMITER ;\n"
        self.assertEqual(self.load_three("-- MySQL dump 8\n" + "".join(
            rows.replace("%s", name) + trigger for name in "abc") + "-- Dump completed\n"), [[{"id": 1, "t": "x"}]] * 3)

    def test_other_terminators(self):
        """A statement ends at the terminator, and not at a semicolon."""
        rows = "CREATE TABLE %s (id int, t text) ENGINE=InnoDB;\nDELIMITER //\nINSERT INTO %s VALUES (1,';')//\n" \
               "ALTER TABLE %s ADD KEY (id)//\nINSERT INTO %s VALUES (2,'//')//\nDROP TABLE x//\n" \
               "INSERT INTO %s VALUES (3,'x')//\nDELIMITER ;\n"
        self.assertEqual(self.load_three("".join(rows.replace("%s", name) for name in "abc")),
                         [[{"id": 1, "t": ";"}, {"id": 2, "t": "//"}, {"id": 3, "t": "x"}]] * 3)

    def test_a_table_is_read_alone_as_after_the_others(self):
        """What shows the database, and the mode that a variable holds, are known to each table."""
        saved = "SET SQL_MODE='NO_BACKSLASH_ESCAPES';\nSET @OLD_SQL_MODE=@@SQL_MODE;\nSET SQL_MODE='';\n" + "".join(
            f"CREATE TABLE {name} (t text);\nINSERT INTO {name} VALUES ('x\\\\');\nSET SQL_MODE=@OLD_SQL_MODE;\n"
            f"INSERT INTO {name} VALUES ('a\\n');\nSET SQL_MODE='';\n" for name in "abc")
        self.assertEqual(self.load_three(saved), [[{"t": "x\\"}, {"t": "a\\n"}]] * 3)
        standard = "BEGIN TRANSACTION;\n" + "".join(
            f"CREATE TABLE {name} (t text);\nINSERT INTO {name} VALUES ('1');\n"
            f"INSERT INTO `{name}` VALUES ('a\\n');\n" for name in "abc") + "COMMIT;\n"
        self.assertEqual(self.load_three(standard), [[{"t": "1"}, {"t": "a\\n"}]] * 3)

    def test_modes_of_mysql(self):
        rows = "CREATE TABLE \"%s\" (\"id\" int, \"t\\\" text);\nINSERT INTO \"%s\" VALUES (1,'a\\');\n"
        trigger = "/*!50003 SET @saved_sql_mode = @@sql_mode */ ;\n/*!50003 SET sql_mode = 'X' */ ;\nDELIMITER ;;\n" \
                  "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.s = '\\';;' ;;\nDELIMITER ;\n" \
                  "/*!50003 SET sql_mode = @saved_sql_mode */ ;\n"
        for mode in ("SET SQL_MODE='ANSI_QUOTES,NO_BACKSLASH_ESCAPES';\n", "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, "
                     "SQL_MODE='ANSI,NO_BACKSLASH_ESCAPES' */;\n"):
            text = "-- MySQL dump 8\n" + mode + "".join(rows % (name, name) + trigger for name in "abc") + \
                "SET sql_mode = '';\nCOMMENT 'it\\'s';\n-- Dump completed\n"
            self.assertEqual(self.load_three(text), [[{"id": 1, "t\\": "a\\"}]] * 3)

    def test_comments_within_comments(self):
        """They end at the last end in PostgreSQL and at the first one in MySQL and SQLite."""
        rows = "".join(f"CREATE TABLE {name} (id int);\n/* x /* y */ INSERT INTO {name} VALUES (1); /* z */\n"
                       f"INSERT INTO {name} VALUES (2 /* /* */);\n" for name in "abc")
        for begin, end in (("-- MySQL dump 8\n", "-- Dump completed\n"), ("PRAGMA foreign_keys=OFF;\n", "")):
            self.assertEqual(self.load_three(begin + rows + end), [[{"id": 1}, {"id": 2}]] * 3)
        for begin in ("SET client_encoding = 'UTF8';\n", "\\connect x\n"):
            self.assertEqual(self.load_three(begin + rows.replace("z */", "z */ */").replace("*/)", "*/ */)")),
                             [[{"id": 2}]] * 3)
        self.run_load(self.file("t.sql", rows), code=support.EXIT_SOURCE, message="line 2: a comment within a comment")

    def test_escape_strings_of_postgres(self):
        """E'it\\'s' ends where PostgreSQL ends it, also in statements and rows that are passed over."""
        create = "".join(f"CREATE TABLE {name} (id int, t text);\n" for name in "abc")
        values = ["E'it\\'s'", "e'\\'; '", "E'it''s \\\\'", "'plain\\'"]
        found = ["it's", "'; ", "it's \\", "plain\\"]
        for last in range(4):
            rows = "".join(f"INSERT INTO {name} VALUES {','.join(f'({n},{values[n]})' for n in (0, 1, 2, 3, last))};\n"
                           "COMMENT ON TABLE x IS E'\\'';\nCOMMENT ON TABLE x IS e'a' -- it's\n '; \\'';\n"
                           "SELECT 1 AS e, 'x\\';\n" for name in "abc")
            self.assertEqual(self.load_three(create + rows),
                             [[{"id": n, "t": found[n]} for n in (0, 1, 2, 3, last)]] * 3)
            self.run_load("--drop", "--again", "--include", "c", self.scratch / "three.sql")
            self.assertEqual([one["t"] for one in self.found("c")], [*found, found[last]])

    def test_escapes_of_postgres(self):
        """In E'...', and in all strings after SET standard_conforming_strings = off."""
        rows = "CREATE TABLE %s (id int, t text);\nCOMMENT ON TABLE x IS E'\\'';\nINSERT INTO %s VALUES " \
               "(1, E'a\\_\\%%\\f\\x41\\x4\\101\\60\\Z\\'\\t\\n\\\\'), (2, E'\\\\x');\n"
        found = [{"id": 1, "t": "a_%\fA\x04A0Z'\t\n\\"}, {"id": 2, "t": "\\x"}]
        for begin, letter in (("SET standard_conforming_strings = off;\n", ""),
                              ("SET standard_conforming_strings TO 'off';\n", ""),
                              ("SET standard_conforming_strings = on;\n", "E"), ("", "E")):
            text = "SET client_encoding = 'UTF8';\n" + begin + "".join(rows % (name, name) for name in "abc")
            self.assertEqual(self.load_three(text.replace("E'", letter + "'")), [found] * 3)
        self.run_load(self.file("u.sql", "CREATE TABLE u (t text);\nINSERT INTO u VALUES (E'\\u0041');\n"),
                      code=support.EXIT_SOURCE, message="line 2: a value of the table u is not understood: \\u in")

    def test_brackets(self):
        """They quote names in dumps of SQLite, and are those of arrays in PostgreSQL."""
        rows = "CREATE TABLE %s (id int, t text, x text[] DEFAULT ARRAY[[']', 'b'], ['[', \"t\"]]);\n" \
               "INSERT INTO %s (id, t) VALUES (1, 'x'), (2, 'y');\n"
        for view in ("CREATE VIEW v AS SELECT ARRAY[a.t, '[x]'::text] FROM a;\n", "SELECT x[a, ']'];\n",
                     "CREATE INDEX i ON a USING gin ((ARRAY[t, '[x]'::text]));\n"):
            for parts in (rows + view, view + rows):
                text = "SET NAMES utf8;\n" + "".join(parts % (name, name) for name in "abc")
                self.assertEqual(self.load_three(text), [[{"id": 1, "t": "x"}, {"id": 2, "t": "y"}]] * 3, text)
        for begin in ("BEGIN TRANSACTION;\nCOMMIT;\n", "PRAGMA foreign_keys=OFF;\n", ""):
            rows = "CREATE TABLE [%s] ([id] int, \"t\" text, ['] text);\n" \
                   "INSERT INTO [%s] ([id], \"t\") VALUES (1, 'x');\nCREATE INDEX i ON [%s] (['], [;]);\n"
            text = begin + "".join(rows % (name, name, name) for name in "abc")
            self.assertEqual(self.load_three(text), [[{"id": 1, "t": "x"}]] * 3)

    def test_default_of_generated_columns(self):
        """As pg_dump --inserts writes them: no value. Of another column only the database knows it. In SQLite, such
        columns may have no type."""
        columns = "a int GENERATED ALWAYS AS (id) STORED, id int, b int GENERATED ALWAYS AS (id) STORED, " \
                  "c AS (id), t text, d GENERATED ALWAYS AS (id)"
        for names, rows in (("", "(DEFAULT,1,DEFAULT, default ,'x',DEFAULT),"
                             "(DEFAULT,2,DEFAULT,DEFAULT,_utf8'y',DEFAULT)"),
                            ("", "(1,'x'),(2,'y')"), ("(d, t, id)", "(DEFAULT,'x',1),(DEFAULT,'y',2)")):
            create = "".join(f"CREATE TABLE {name} ({columns});\n" for name in "abc")
            inserts = "".join(f"INSERT INTO {name} {names} VALUES {rows};\n" for name in "abc")
            self.assertEqual(self.load_three(create + inserts), [[{"id": 1, "t": "x"}, {"id": 2, "t": "y"}]] * 3)
        for names, row in (("", "(DEFAULT,1,DEFAULT,DEFAULT,DEFAULT,DEFAULT)"), ("(id, t)", "(1,DEFAULT)"),
                           ("", "(DEFAULT,DEFAULT,1,'x')"), ("(id)", "(DEFAULT)")):
            bad = create + f"INSERT INTO a {names} VALUES\n{row};\n"
            self.run_load("--drop", "--again", self.file("bad.sql", bad), code=support.EXIT_SOURCE,
                          message="line 5: DEFAULT is a value of the table a that only a database has")

    def test_inherited_columns_of_postgres(self):
        """They come before the table's own, in the order of the tables; a common one once, at the first place."""
        text = ("CREATE TABLE public.a (id int, t text);\nCREATE TABLE p (id int, z date);\n"
                "CREATE TABLE b (n int, z date)\nINHERITS (public.a, p);\n"
                "CREATE TABLE c (CONSTRAINT k CHECK ((id > 2)))\nINHERITS (b) WITH (fillfactor='70');\n"
                "INSERT INTO a VALUES (1, 'x');\nINSERT INTO b VALUES (2, 'y', '2024-01-02', 3);\n"
                "COPY public.c (n, t, id) FROM stdin;\n4\tz\t3\n\\.\n")
        found = self.load_three(text)
        found[1][0]["z"] = str(found[1][0]["z"])
        self.assertEqual(found, [[{"id": 1, "t": "x"}], [{"id": 2, "t": "y", "z": "2024-01-02 00:00:00", "n": 3}],
                                 [{"n": 4, "t": "z", "id": 3}]])

    def test_partitions_of_postgres(self):
        """Before version 12, pg_dump writes them without columns: they are those of the table that is divided."""
        rows = "COPY %s (id, t) FROM stdin;\n%s\tx\n\\.\n"
        text = "CREATE TABLE public.m (id integer, t text) PARTITION BY RANGE (id);\n" \
               "CREATE TABLE public.m1 PARTITION OF public.m\nFOR VALUES FROM (1) TO (2);\n" \
               "CREATE TABLE m2 PARTITION OF public.m DEFAULT;\n"
        self.run_load(self.file("t.sql", text + rows % ("m1", 1) + rows % ("m2", 2)))
        self.assertEqual([self.found(name) for name in ("m1", "m2")], [[{"id": 1, "t": "x"}], [{"id": 2, "t": "x"}]])
        self.run_load(self.file("u.sql", "CREATE TABLE m (id integer, t text);\n" + rows % ("m", 1) + rows % ("m", 2)),
                      code=support.EXIT_SOURCE, message="--load-via-partition-root")

    def test_lists_of_many_columns(self):
        """They are compared with the list before as a text, and name by name if they are longer."""
        for length, step, blanks in ((2, 1, ""), (60, -1, ""), (300, 1, ""), (300, 1, " " * 100)):
            names = [f"c{number:0>{length}}" for number in range(200)]
            listed = f",{blanks}".join(names[::step])
            values = ",".join(str(int(name[1:])) for name in names[::step])
            rows = "".join(f"INSERT INTO t ({listed}, id) VALUES ({values},{row});\n" for row in range(3))
            columns = "".join(f", {name} int" for name in names)
            self.run_load("--drop", "--again", self.file("wide.sql", f"CREATE TABLE t (id int{columns});\n{rows}"))
            self.assertEqual(self.found("t"), [{**{name: int(name[1:]) for name in names}, "id": row}
                                               for row in range(3)])

    def sqlite(self, *statements):
        return self.file("hostile.sql", "\n".join(("PRAGMA foreign_keys=OFF;", "BEGIN TRANSACTION;",
                                                   *statements, "COMMIT;\n")))

    def test_hostile_values(self):
        """Values and names that would be stored changed, or that need a stack or time without limit."""
        values = ["replace('abab','a',char(10))", "replace('" + "0" * 200010 + "','0',char(0))", "unistr('\\u0141')",
                  "replace('ab','ab',char(138))", "replace(" * 200000, "_a " * 200000]
        for value in values:
            with self.subTest(value=value[:30]):
                self.run_load(self.sqlite("CREATE TABLE t (v text);", f"INSERT INTO t VALUES({value});"),
                              code=support.EXIT_SOURCE, message="not understood")
        self.run_load(self.sqlite("DELIMITER " + "$" * 16), code=support.EXIT_SOURCE, message="more than 15 bytes")
        for name in ("a" * 401, "a\0b"):
            self.run_load(self.sqlite(f'CREATE TABLE t ("{name}" text);', "INSERT INTO t VALUES(1);"),
                          code=support.EXIT_SOURCE,
                          message="the table t has a name of more than 400 bytes, or with NUL")
        for name in (b"", b"a\xe4", b"\xed\xa0\x80"):
            dump = self.file("names.sql", b'CREATE TABLE x (a int);\nCREATE TABLE t (a int, "' + name + b'" int);\n'
                                          b"INSERT INTO t VALUES (1,2);\nINSERT INTO x VALUES (1);\n")
            self.run_load(dump, code=support.EXIT_SOURCE, message=("names.sql, line 2: column 2 of the table t has a "
                                                                   "name that is empty or not UTF-8", "--include"))
            self.run_load(dump, "--include", "x", "--drop")
        names = "\x01 \x7f \u0080 a\u0085b a\u2028 \u2029b \ufeff \ufffe \U0001f600".split(" ")
        self.run_load(self.file("t.sql", f"CREATE TABLE t ({','.join(f'`{name}` int' for name in names)});\n"
                                         f"INSERT INTO t VALUES ({','.join('1' for name in names)});\n"))
        self.assertEqual([list(one) for one in self.found("t")], [["column1", "column2", *names[2:]]])
        self.database.drop_collection("t")
        self.database.drop_collection("t.sources")
        self.database.drop_collection("x")
        self.database.drop_collection("x.sources")
        self.run_load(self.sqlite(*(f"CREATE TABLE t{number} (a);" for number in range(20001))),
                      code=support.EXIT_SOURCE, message="more than 20000 tables")
        rows = "".join(f"CREATE TABLE t{table} (a int);\nINSERT INTO t{table} VALUES (1);\n" for table in range(20000))
        parts = [b"-- MySQL dump 8\n", *[b"\n" * (1 << 23)] * 110, f"{rows}-- Dump completed\n".encode()]
        (self.scratch / "packed.sql.gz").write_bytes(b"".join(gzip.compress(part) for part in parts))
        self.run_load(self.scratch / "packed.sql.gz", code=support.EXIT_SOURCE, message="more than 16 TiB are unpacked")
        columns = ",".join(f"a{column:x<380}" for column in range(1000))
        inherits = f"INHERITS ({','.join(['t'] * 600)})"
        for statements in ((f"CREATE TABLE t{table} ({columns});" for table in range(600)),
                           (f"CREATE TABLE t ({columns});", f"CREATE TABLE u () {inherits};")):
            self.run_load(self.sqlite(*statements), code=support.EXIT_SOURCE,
                          message="the columns of all tables need more than 256 MiB")
        self.assertEqual(self.collections(), [])
        self.run_load(self.sqlite("CREATE TABLE t (v text);",
                                  "INSERT INTO t VALUES(unistr('" + "\\u0001" * 300000 + "'));"))
        self.assertEqual(self.found("t"), [{"v": "\x01" * 300000}])

    def test_text_after_a_json_value(self):
        """It stays text, and gives the document no other fields."""
        bad = '"x","role":"admin","name":"root","_id":1'
        self.run_load(self.sqlite("CREATE TABLE u(id INTEGER PRIMARY KEY, settings JSON, name TEXT);",
                                  """INSERT INTO u VALUES(1,'{"theme":"dark"}','Ann');""",
                                  f"INSERT INTO u VALUES(2,'{bad}','Bob');"))
        self.assertEqual(self.found("u"), [{"id": 1, "settings": {"theme": "dark"}, "name": "Ann"},
                                           {"id": 2, "settings": bad, "name": "Bob"}])

    def test_hostile_names_of_tables(self):
        """They become neither folders outside of the work directory, nor collections with a meaning of their own."""
        def rows(*names):
            return self.sqlite(*(f'CREATE TABLE "{name}" (v);\nINSERT INTO "{name}" VALUES(1);' for name in names))
        for name in ("system.views", "system.js", "t.sources", "$cmd", "a$b", "", "..", "a.", "n" * 200):
            self.run_load(rows(name), code=support.EXIT_USAGE, message="cannot become a collection of this name")
        work = self.scratch / "deep" / "work"
        work.parent.mkdir()
        self.run_load(rows("x", "x/../../outside", "é"), work=work)
        for _ in range(2):  # a table of the name of a work directory's own file
            self.run_load("--drop", "--again", rows("restore"), work=self.scratch / "nightly")
        self.assertEqual(sorted(self.collections()), ["restore", "restore.sources", "x", "x.sources", "x/../../outside",
                                                      "x/../../outside.sources", "é", "é.sources"])
        self.assertEqual(os.listdir(work.parent), ["work"])
        self.assertEqual(sorted(path.name for path in work.iterdir() if path.is_dir()),
                         ["%c3%a9", "x", "x%2f..%2f..%2foutside"])

    def test_every_cut(self):
        """No dump that is cut off anywhere within its statements is taken for a complete one."""
        for text in (MARIADB, SQLITE):
            for end in range(len(text) // 3, len(text) - 40, 97):
                path = self.file("cut.sql", text[:end])
                self.shardload("verify", "--uri", self.uri, "-d", self.database_name, path,
                               code=support.EXIT_SOURCE, message="")

    def test_dumps_one_after_another(self):
        """Each must have ended before the next one begins, or before the end: none whose tables end early is loaded."""
        mysql = "-- MySQL dump 8\nCREATE TABLE %s (id int);\nINSERT INTO %s VALUES (1);\n%s"
        postgres = mysql.replace("-- MySQL dump 8", "--\n-- PostgreSQL database dump\n--")
        sqlite = mysql.replace("-- MySQL dump 8", "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;")
        cluster = "--\n-- PostgreSQL database cluster dump\n--\n%s"
        ended = {mysql: "-- Dump completed\n", postgres: "-- PostgreSQL database dump complete\n", sqlite: "COMMIT;\n",
                 cluster: "-- PostgreSQL database cluster dump complete\n"}

        def parts(form, *ends):
            return "".join(form % (name, name, ended[form] if end else "\n") for name, end in zip("ab", ends))

        for form in (mysql, mysql.replace("MySQL", "MariaDB"), postgres, sqlite):
            ended[form] = ended.get(form, ended[mysql])
            for ends in ((False, True), (True, False)):
                self.run_load(self.file("two.sql", parts(form, *ends)), code=support.EXIT_SOURCE, message="is cut off")
            self.run_load("--drop", "--again", self.file("two.sql", parts(form, True, True)))
            self.assertEqual([self.found(name) for name in "ab"], [[{"id": 1}]] * 2)
        whole, line = parts(postgres, True, True), "-- Database \"zeta\" dump\n"
        for text in (whole + line, parts(postgres, True, False) + ended[cluster], whole + cluster % ended[cluster]):
            self.run_load(self.file("all.sql", cluster % text), code=support.EXIT_SOURCE, message="is cut off")
        self.run_load("--drop", "--again", self.file("all.sql", cluster % (whole + line + ended[cluster])))

    def test_large(self):
        """A COPY block and INSERT statements that are larger than a block, with rejects."""
        rows = [(number, "x" * (number * 7919 % 300)) for number in range(30000)]
        copy = "".join(f"{number}\t{text}\n" for number, text in rows)
        head = "--\n-- PostgreSQL database dump\n--\nCREATE TABLE public.t (id integer, s text);\n"
        text = f"{head}COPY public.t (id, s) FROM stdin;\n{copy}x\ty\n\\.\n-- PostgreSQL database dump complete\n"
        work = self.scratch / "copy"
        self.run_load(self.file("copy.sql", text), code=support.EXIT_REJECTS, work=work)
        self.assertTrue(sorted((one["id"], one["s"]) for one in self.found("t")) == rows)
        self.assertEqual([row["line"] for row in support.reject_rows(work / "t")], ["30001"])
        values = ",".join(f"({number},'{text}')" for number, text in rows)
        self.run_load("--drop", self.file("insert.sql", f"-- MySQL dump 8\nCREATE TABLE `t` (`id` int, `s` text);\n"
                                          f"INSERT INTO `t` VALUES {values};\n-- Dump completed\n"))
        self.assertTrue(sorted((one["id"], one["s"]) for one in self.found("t")) == rows)

    def test_a_long_row_that_is_cut_behind_a_backslash(self):
        """A row above 20 MiB is one reject. Whatever byte it is cut at, the next row is loaded: it was skipped, and not
        counted, if the byte was the backslash of a line end."""
        mib = 1 << 20
        for length in (20 * mib - 4, 20 * mib - 5):
            row = f"(1,'{'x' * length}\\n{'y' * mib}')"
            path = self.file("a.sql", f"CREATE TABLE `a` (`id` int, `s` longtext) ENGINE=InnoDB;\n"
                             f"INSERT INTO `a` VALUES {row},(2,'next'),(3,'last');\n")
            self.run_load("--drop", "--again", path, code=support.EXIT_REJECTS)
            self.assertEqual([one["id"] for one in self.found("a")], [2, 3])
        for length in range(17 * mib - 3, 17 * mib):  # the text that is packed is cut at 17 MiB
            path = self.zipped("b.txt.gz", "1\t" + "x" * (length - 2) + "\\\n" * 40000 + "x\ty\n2\tnext\n3\t\\N\n")
            self.load("--drop", "--again", "--columns", "id,s", "--dialect", "mysql", "--types", "text", path,
                      collection="b", code=support.EXIT_REJECTS)
            self.assertEqual([one["id"] for one in self.found("b")], ["2", "3"])

    def test_large_texts_of_sqlite(self):
        """Line ends that .dump writes with more bytes than they have: a text of 10 MB lost its end, with exit 0. Above
        20 MiB in the dump, a text of replace() is a reject."""
        lines = "1234\n" * 2000000
        self.run_load(self.sqlite("CREATE TABLE t (v text);",
                                  "INSERT INTO t VALUES(unistr('" + lines.replace("\n", "\\u000a") + "'));"))
        self.assertTrue(self.found("t") == [{"v": lines}])
        path = self.sqlite("CREATE TABLE t (v text, w text);", "INSERT INTO t VALUES(replace('" + "\\n" * 7200000 +
                           "','\\n',char(10)),'x'),('y',replace('a\\nb','\\n',char(10)));")
        self.run_load("--drop", path, code=support.EXIT_REJECTS, message="line 4 of the dump")
        self.assertEqual(self.found("t"), [{"v": "y", "w": "a\nb"}])

    def test_a_first_row_that_is_longer_than_64_kib(self):
        """A photo in the first row: the columns are those of CREATE TABLE, of --columns, or of a schema; a table
        was refused, as if its first row had fewer fields. Also as an entry of an archive."""
        photo = "AB" * 40000
        for text in (f"CREATE TABLE `a` (`id` int, `img` longblob, `s` varchar(9)) ENGINE=InnoDB;\n"
                     f"INSERT INTO `a` VALUES (1,0x{photo},'x'),(2,0x00,'y');\n",
                     f"CREATE TABLE a(img BLOB, id INTEGER, s TEXT);\nINSERT INTO a VALUES(X'{photo}',1,'x');\n"
                     "INSERT INTO a VALUES(X'00',2,'y');\n",
                     f"CREATE TABLE a (id integer, img bytea, s text);\nCOPY a (id, img, s) FROM stdin;\n"
                     f"1\t\\\\x{photo}\tx\n2\t\\\\x00\ty\n\\.\n"):
            self.run_load("--drop", "--again", self.file("a.sql", text))
            found = self.found("a")
            self.assertEqual([(one["id"], len(one["img"]), one["s"]) for one in found], [(1, 40000, "x"), (2, 1, "y")])
        rows = f"1\t{photo}\tx\n2\ty\tz\n"
        schema = self.file("e.yaml", "name: e\nheader: false\ncolumns: [{name: id}, {name: img}, {name: s}]\n")
        tar = self.file("e.tar", making.tar([("1.tsv", rows), ("2.tsv", rows)]))
        for words in (["--columns", "id,img,s"], ["--schema", schema]):
            self.load("--drop", "--again", *words, self.file("e.tsv", rows), tar, collection="e")
            self.assertEqual([one["s"] for one in self.found("e")], ["x", "z"] * 3)
        self.load("--columns", "id,img,s", self.file("e.csv", rows[2:].replace("\t", ",")), collection="f",
                  code=support.EXIT_SOURCE, message="64 KiB: give --delimiter")
        self.assertIn("after 64 KiB: give --columns", self.shardload("inspect", self.scratch / "e.tsv", code=None).out)

    def test_rejects_name_the_line_of_the_dump(self):
        copy = "--\n-- PostgreSQL database dump\n--\nCREATE TABLE public.a (x int);\nCREATE TABLE public.b (x int);\n"
        copy += "COPY public.a (x) FROM stdin;\n1\nz\n\\.\n\n\nCOPY public.b (x) FROM stdin;\nz\n2\nz\n\\.\n" \
                "-- PostgreSQL database dump complete\n"
        insert = "-- MySQL dump 8\nCREATE TABLE `a` (`x` int);\nINSERT INTO `a` VALUES (1),(2,3),\n(4),(5,\n6);\n\n" \
                 "INSERT INTO `a` VALUES (7,'a\n\nb');\nCREATE TABLE `b` (`x` text);\n" \
                 "INSERT INTO `b` VALUES ('y\n');\nINSERT INTO `b` VALUES (1,2);\n-- Dump completed\n"
        for name, text, lines in (("copy.sql", copy, (("8",), ("13", "15"))),
                                  ("insert.sql", insert, (("3", "4", "7"), ("13",)))):
            for path in (self.file(name, text), self.zipped(name + ".gz", text)):
                work = self.scratch / f"{path.name}-work"
                self.run_load(path, "--drop", "--again", work=work, code=support.EXIT_REJECTS)
                found = tuple(tuple(re.search(r"line (\d+) of the dump$", row["reason"])[1]
                                    for row in support.reject_rows(work / table)) for table in "ab")
                self.assertEqual(found, lines)

    def test_text_in_a_column_of_integers(self):
        """MySQL refuses it; SQLite stores it. An unsigned bigint may exceed 64 bits."""
        columns = "`id` bigint unsigned, `n` int(11), `big` bigint"
        for head, rejected, rows in (("-- MySQL dump 8\n", 2, [(1, 7)]),
                                     ("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", 0,
                                      [(1, 7), (2, "x"), (3, 1)])):
            text = head + f"CREATE TABLE `t` ({columns});\n" \
                "INSERT INTO `t` VALUES (1,'7',1),(2,'x',2),(3,1,'1x'),(18446744073709551615,1,1);\n"
            end = "COMMIT;\n" if "PRAGMA" in head else "-- Dump completed\n"
            self.run_load("--drop", "--again", self.file("t.sql", text + end),
                          code=support.EXIT_REJECTS if rejected else support.EXIT_OK)
            self.assertEqual([(one["id"], one["n"]) for one in self.found("t")],
                             [*rows, ("18446744073709551615", 1)])

    def begin_three_tables(self):
        """Starts a load of three tables; returns when the second one is being loaded: (process, path, work)."""
        tables = "".join(f"CREATE TABLE `t{table}` (`id` int, `s` text);\nINSERT INTO `t{table}` VALUES "
                         + ",".join(f"({number},'{'x' * 200}')" for number in range(20000)) + ";\n"
                         for table in range(3))
        path, work = self.file("shop.sql", f"-- MySQL dump 8\n{tables}-- Dump completed\n"), self.scratch / "work"
        running = self.start("shardload", "load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work,
                             "--progress", "none", "-j", 1, "--rate-limit", 20000, path)
        self.wait_for(lambda: (work / "t1" / "journal").exists() and self.database.t1.estimated_document_count() > 0,
                      "the second table")
        return running, path, work

    def test_resume(self):
        """Ctrl-C, then --resume over all tables."""
        running, path, work = self.begin_three_tables()
        running.interrupt(f"--resume --work-dir {work}")
        self.assertNotIn("t2", self.collections())
        self.run_load("--resume", path, work=work)
        self.assertEqual([self.database[f"t{table}"].count_documents({}) for table in range(3)], [20000] * 3)
        self.run_load("--resume", path, work=work)

    def test_an_interrupt_before_a_table_begins(self):
        """The tables before it are loaded, and the message names the command that loads the others."""
        ids = "id,x\n" + "".join(f"{key},1\n" for key in range(1000, 2000))
        records = self.file("records.csv", "id,v\n" + "".join(f"{key},2\n" for key in range(1000, 2000)) * 2000)
        first, second, work = self.file("first.csv", ids), self.file("second.csv", ids), self.scratch / "work"
        words = ("load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work, "--progress", "none",
                 "--embed", f"v={records}", "--on", "id", first, second)
        running = self.start("shardload", *words)
        self.wait_for(lambda: (work / "second" / "embed").exists(), "the second table")
        running.interrupt("interrupted before anything was loaded into second")
        self.assertIn(f"--resume --work-dir {work}", running.text())
        self.assertNotIn("second", self.collections())

    def test_resume_in_the_work_directory_of_an_earlier_load(self):
        """Its finished tables are not taken for those of the second load."""
        running, path, work = self.begin_three_tables()
        running.wait().expect(support.EXIT_OK)
        self.database.t2.update_many({}, {"$set": {"s": "changed"}})
        words = ("load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work, "--progress", "none", "-j", 1,
                 "--rate-limit", 20000, "--drop", path)
        running = self.start("shardload", *words)
        self.wait_for(lambda: self.database.t1.estimated_document_count() in range(1, 19000), "the second table")
        running.interrupt("--resume")
        self.shardload(*words, code=support.EXIT_USAGE,
                       message="holds the journal of a load that has not been completed")
        for other, message in (((), '--drop was "yes" and is "no"'), (("--drop", "--trim"), "--trim")):
            self.run_load(*other, "--resume", path, work=work, code=support.EXIT_USAGE, message=message)
        self.run_load("--drop", "--resume", path, work=work)
        self.assertEqual([self.database[f"t{table}"].count_documents({"s": {"$ne": "changed"}}) for table in range(3)],
                         [20000] * 3)

    def test_a_resumed_dump_that_lacks_a_table_which_was_begun(self):
        running, path, work = self.begin_three_tables()
        running.interrupt(f"--resume --work-dir {work}")
        path.write_text(path.read_text("utf-8").replace("`t1`", "`t3`"), "utf-8")
        self.run_load("--resume", path, work=work, code=support.EXIT_SOURCE,
                      message="1 of the 2 tables whose load began")
        self.assertEqual([name for name in self.collections() if name in ("t2", "t3")], [])

    def test_a_dump_that_is_replaced_between_its_tables(self):
        running, path, _ = self.begin_three_tables()
        path.write_text(path.read_text("utf-8").replace("x", "y"), "utf-8")
        running.wait().expect(support.EXIT_SOURCE, "was replaced or changed before the table t2 was loaded")
        self.assertNotIn("t2", self.collections())
        self.assertIn("--resume cannot complete this load", running.text())
        self.assertNotIn("with --resume", running.text())

    def test_a_file_that_grows_before_its_turn(self):
        """It is no dump: nothing of it has been read, so no message says that only --drop helps."""
        self.file("d/a.csv", "id,x\n" + "".join(f"{number},1\n" for number in range(20000)))
        grows, work = self.file("d/b.csv", "id,x\n1,1\n"), self.scratch / "work"
        running = self.start("shardload", "load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work,
                             "--progress", "none", "-j", 1, "--rate-limit", 4000, self.scratch / "d")
        self.wait_for(lambda: self.database.a.estimated_document_count() > 0, "the first file")
        grows.write_text("id,x\n1,1\n2,1\n", "utf-8")
        running.wait().expect(support.EXIT_OK)
        self.assertEqual([one["id"] for one in self.found("b")], [1, 2])

    def test_a_dump_that_is_replaced_while_its_tables_are_listed(self):
        """The offsets of its tables are those of the file that was opened; the new file has others."""
        def write(name, filler):
            tables = "".join(f"CREATE TABLE {table} (id int);\n" for table in "abc")
            rows = "".join(f"INSERT INTO {table} VALUES ({number});\n" for table in "bc" for number in range(1000))
            return self.file(name, f"{tables}INSERT INTO a VALUES (1);\n{filler * 4_000_000}{rows}")

        def position(running):
            """How far the program has read the file; 0: it has not opened it."""
            folder = pathlib.Path(f"/proc/{running.process.pid}")
            with contextlib.suppress(FileNotFoundError):
                for opened in (folder / "fd").iterdir():
                    if os.readlink(opened) == str(path):
                        return int(re.search(r"pos:\s*(\d+)", (folder / "fdinfo" / opened.name).read_text())[1])
            return 0
        for words in ((), ("--include", "[bc]")):
            path = write("shop.sql", "SELECT 1;\n")
            new = write("new.sql", "SELECT 1; \n")
            running = self.start("shardload", "load", "--uri", self.uri, "-d", self.database_name, "--work-dir",
                                 self.scratch / f"work-{next(self._counter)}", "--progress", "none", path, *words)
            end = time.monotonic() + 60
            while position(running) < 1 << 20 and time.monotonic() < end:
                pass  # the table b is 38 MiB away
            running.signal(signal.SIGSTOP)
            self.assertTrue(0 < position(running) < path.stat().st_size - 100_000)
            new.replace(path)
            running.signal(signal.SIGCONT)
            running.wait().expect(support.EXIT_SOURCE, "was replaced by another file")
            self.assertNotIn("with --resume", running.text())
            self.assertEqual(self.collections(), [])

    def test_types_that_would_have_no_effect_are_refused(self):
        path = self.file("shop.sql", POSTGRES)
        for types in ("text", "at=datetime"):
            self.run_load("--types", types, path, code=support.EXIT_USAGE, message="the types of CREATE TABLE")
        self.assertEqual(self.collections(), [])


if __name__ == "__main__":
    unittest.main()
