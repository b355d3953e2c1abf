# SPDX-License-Identifier: Apache-2.0
"""Random tables with hostile values in PostgreSQL and MariaDB, exported in each way that docs/from-sql.md names and
loaded without options, equal what a client reads from these servers, cell by cell."""
import datetime
import decimal
import json
import math
import os
import random
import re
import subprocess
import uuid
from typing import NamedTuple

import bson
import sql_servers
import support

TABLES = int(os.environ.get("SHARDLOAD_TABLES", "5"))       # of each server, 20 in a database
SEED = os.environ.get("SHARDLOAD_SEED", "1")
NO_VALUE = object()
WORDS = ["", "word", "a\tb", "back\\slash", "\\", "\\N", "\\n", "line\nend", "\n", "\r", "cr\r", "crlf\r\nend",
         "say \"hi\"", "\"", "\"\"", "'", "it''s;", "comma, semicolon; pipe|", "NULL", "null", "NA", "-", "t", "f",
         "NaN", " ", " x ", "ä€😀", "\\.", "\n\\.\n", "\\\\", "\\\t", "\\x41", "\\101", "0", "007", "1e5", "12,5",
         "{\"a\": 1}", "\v\f\b", "end\\", "-- x\n", "/* x", "$$", "\x1a\x7f", "\ufeff", "x" * 5000, "%\\%_\\_"]
NAMES = ["tab\tname", "back\\slash", "plain", "odd name", "quo\"ted", "it's", "back`tick", "comma,", "ünï", "(a)",
         "order", "x%y", "semi;", "-- no", "/*c*/", "#no", "a:b", "[x]", "{y}", "?", "null", "PRIMARY", "key", "Check"]
MOMENTS = ["9999-12-31 23:59:59", "0001-01-01 00:00:00", "1969-12-31 23:59:59.999", "2024-02-29 12:00:00"]


def moment(dice):
    return f"{dice.randrange(1900, 2100)}-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02} " \
           f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"


def fine(dice):
    return f"{moment(dice)}.{dice.randrange(10 ** 6):06}"


def digits(dice, most):
    return ("-" if dice.random() < 0.5 else "") + str(dice.randrange(10 ** dice.randrange(1, most + 1)))


def text(dice):
    return dice.choice(WORDS) + dice.choice(["", dice.choice(WORDS)])


def tree(dice):
    value = dice.choice([text(dice), dice.randrange(2 ** 40), 1e300, 0.5, True, None, [], {}, [[text(dice), {"": 1}]]])
    return json.dumps(dice.choice([value, {"a.b": value, dice.choice(["k", "$x", "ä"]): [None, value]}]),
                      ensure_ascii=dice.random() < 0.5)


def array(dice, element):
    elements = [element(dice).replace("\\", "\\\\").replace("\"", "\\\"") for _ in range(dice.randrange(4))]
    return "{" + ",".join("NULL" if dice.random() < 0.2 else f'"{one}"' for one in elements) + "}"


class Kind(NamedTuple):
    """`value`: a literal without quotes, of dice. `wild`: a text export does not show the type of these values."""
    type: str
    name: str
    value: object
    wild: bool = False


def same_in_both(numeric):
    return [Kind("smallint", "int", lambda dice: dice.randrange(-2 ** 15, 2 ** 15)),
            Kind("bigint", "int", lambda dice: dice.choice([-2 ** 63, 2 ** 63 - 1, 2 ** 53 + 1, 0, 2 ** 31])),
            Kind(f"{numeric}(28,12)", "decimal", lambda dice: decimal.Decimal(digits(dice, 28)).scaleb(-12)),
            Kind(f"{numeric}(38,0)", "decimal", lambda dice: digits(dice, 38), True),
            Kind("text", "text", text), Kind("varchar(9000)", "text", lambda dice: dice.choice(WORDS)),
            Kind("date", "date", lambda dice: moment(dice)[:10]),
            Kind("date", "date", lambda dice: dice.choice(MOMENTS)[:10]),
            Kind("time", "text", lambda dice: moment(dice)[11:]),
            Kind("uuid", "uuid", lambda dice: uuid.UUID(int=dice.randrange(2 ** 128), version=4))]


DOUBLES = ["0.5", "-1.25", "1e300", "5e-324", "1e-7", "0.1", "123456789.125", "-0.0", "3"]
POSTGRES = [*same_in_both("numeric"),
            Kind("double precision", "double", lambda dice: dice.choice([*DOUBLES, "NaN", "Infinity", "-Infinity"])),
            Kind("real", "double", lambda dice: dice.choice(["0.1", "-1e30", "16777216"])),
            Kind("numeric", "decimal", lambda dice: dice.choice(["NaN", "1e-20", digits(dice, 34), digits(dice, 60)]),
                 True),
            Kind("boolean", "bool", lambda dice: dice.choice("tf")),
            Kind("date", "date",
                 lambda dice: dice.choice(["infinity", "0044-03-15 BC", "12345-01-01", *MOMENTS]), True),
            Kind("timestamp(3)", "moment", moment), Kind("timestamptz(3)", "moment", moment),
            Kind("timestamp", "moment", lambda dice: dice.choice([
                "-infinity", "0044-03-15 01:02:03 BC", fine(dice), *MOMENTS]), True),
            Kind("json", "json", tree, True), Kind("jsonb", "json", tree),
            Kind("text[]", "array", lambda dice: array(dice, text), True),
            Kind("int[][]", "array", lambda dice: dice.choice(["{{1,2},{3,NULL}}", "{}", "{7}"]), True),
            Kind("bytea", "bytes", lambda dice: "\\x" + dice.randbytes(dice.randrange(40)).hex(), True),
            Kind("mood", "text", lambda dice: dice.choice(["a b", "it's", "\\", ""])),
            Kind("interval", "text", lambda dice: f"{dice.randrange(99)} days 01:02:03"),
            Kind("bit varying(20)", "text", lambda dice: f"{dice.randrange(2 ** 20):b}", True),
            Kind("inet", "text", lambda dice: f"10.0.{dice.randrange(256)}.1/24")]
MARIADB = [*same_in_both("decimal"),
           Kind("bigint unsigned", "int", lambda dice: dice.choice([2 ** 64 - 1, 2 ** 63, 5]), True),
           Kind("double", "double", lambda dice: dice.choice(DOUBLES)),
           Kind("tinyint(1)", "int", lambda dice: dice.randrange(2)),
           Kind("year", "int", lambda dice: dice.randrange(1901, 2156)),
           Kind("datetime", "moment", moment),
           Kind("datetime(3)", "moment", lambda dice: dice.choice(MOMENTS[1:])),
           Kind("datetime(6)", "moment", fine, True),
           Kind("longblob", "bytes", lambda dice: dice.randbytes(dice.randrange(40))),
           Kind("varbinary(50)", "bytes", lambda dice: text(dice).encode()[:50]),
           Kind("bit(12)", "bytes", lambda dice: dice.choice([b"\4A", b"\x0f\xff"])),
           Kind("json", "text", tree, True),
           Kind("enum('a b','it''s','')", "text", lambda dice: dice.choice(["a b", "it's", ""])),
           Kind("set('x','y z')", "text", lambda dice: dice.choice(["x", "x,y z"]))]


def number_of(table):
    """The name of the table's file, and so of its collection."""
    return re.match(r"t\d+", table.name)[0]


class Table:
    """A random table: the names and kinds of its columns, and SQL that makes it. `bare`: nothing ensures that an
    export as text shows its dialect and the types of its columns."""

    def __init__(self, number, dice, postgres):
        self.name = f"t{number}" + dice.choice(["", "", " odd", "Ünï", "'s", "_`\"", "-x"])
        self.postgres, self.bare, kinds = postgres, dice.random() < 0.2, POSTGRES if postgres else MARIADB
        chosen = dice.sample(kinds, dice.randrange(3, 12))
        names = dice.sample(NAMES if postgres else NAMES[2:], len(chosen))     # mysql -B does not escape names
        if postgres and dice.random() < 0.3:
            names[-1] = names[0].swapcase() if names[0].swapcase() not in names else names[-1]
        self.columns = {"id": Kind("int", "int", None), "note": Kind("text", "text", text), **dict(zip(names, chosen))}
        self.rows = [[row, *(None if row and dice.random() < 0.2 else kind.value(dice)
                             for kind in list(self.columns.values())[1:])] for row in range(30)]
        if self.bare:
            self.rows = [[row, dice.choice(["\\N", "NULL", None]), *rest] for row, _, *rest in self.rows]
            return
        self.rows[1][1], self.rows[2][1] = "", None
        for column, kind in enumerate(self.columns.values()):
            if kind.name == "text":         # no export as text is taken for a column of numbers
                self.rows[0][column] = "a word" if "char" in kind.type or kind.type == "text" else \
                    self.rows[0][column] or "a b"

    def quote(self, name):
        mark = "\"" if self.postgres else "`"
        return mark + name.replace(mark, mark * 2) + mark

    @staticmethod
    def literal(value):
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"

    def statements(self):
        columns = ", ".join(f"{self.quote(name)} {kind.type}" for name, kind in self.columns.items())
        yield f"CREATE TABLE {self.quote(self.name)} ({columns}, PRIMARY KEY (id));\n"
        for row in self.rows:
            yield f"INSERT INTO {self.quote(self.name)} VALUES ({', '.join(map(self.literal, row))});\n"

    def select(self, binary=True):
        names = [self.quote(name) for name, kind in self.columns.items() if binary or kind.name != "bytes"]
        return f"SELECT {', '.join(names)} FROM {self.quote(self.name)}"


class Cell(NamedTuple):
    text: object              # as a client shows it; bytes of MariaDB's binary columns; None: NULL
    json: object = None       # of arrays of PostgreSQL


def value_of(kind, cell):
    """The value of a cell with the type of CREATE TABLE."""
    shown = cell.text
    if kind.name == "int":
        return int(shown) if int(shown) < 2 ** 63 else shown
    if kind.name == "double":
        return float(shown)
    if kind.name == "decimal":
        return decimal.Decimal(shown) if len(shown.strip("-").replace(".", "").strip("0")) <= 34 else shown
    if kind.name == "bool":
        return shown in ("t", "true")
    if kind.name in ("date", "moment"):
        found = re.fullmatch(r"(\d{4}-\d\d-\d\d)( \d\d:\d\d:\d\d(\.\d\d?\d?0*)?)?(\+00)?", shown)
        whole = found and datetime.datetime.fromisoformat(found[1] + (found[2] or "")[:9])
        return whole + datetime.timedelta(milliseconds=int((found[3] or ".0").ljust(4, "0")[1:4])) if whole else shown
    if kind.name == "json":
        return json.loads(shown)
    if kind.name == "array":
        return cell.json
    if kind.name == "uuid":
        return uuid.UUID(shown)
    if kind.name == "bytes":
        return shown if isinstance(shown, bytes) else bytes.fromhex(shown[2:])
    return shown


def is_same(loaded, expected):
    if isinstance(loaded, bson.Decimal128):
        loaded = loaded.to_decimal()
    numbers = (int, float, decimal.Decimal)
    if isinstance(loaded, list) and isinstance(expected, list) and len(loaded) == len(expected):
        return all(map(is_same, loaded, expected))
    if isinstance(loaded, dict) and isinstance(expected, dict) and list(loaded) == list(expected):
        return all(is_same(loaded[key], expected[key]) for key in loaded)
    if isinstance(expected, bool) or not isinstance(expected, numbers):
        return type(loaded) is type(expected) and loaded == expected
    if not isinstance(loaded, numbers) or isinstance(loaded, bool):
        return False
    if isinstance(expected, decimal.Decimal) and isinstance(loaded, float):
        loaded = decimal.Decimal(repr(loaded))
    if isinstance(expected, float) and isinstance(loaded, decimal.Decimal):
        return False
    return loaded == expected or (math.isnan(loaded) and math.isnan(expected))


class Exports(support.ClusterCase, server="mongod"):
    def documents(self, *words):
        number = next(self._counter)
        file, work = self.scratch / f"dump-{number}.bson", self.scratch / f"work-{number}"
        self.shardload("load", "--sink", f"bson:{file}", "--work-dir", work, "-j", 2, *words)
        return [bson.decode(one) for one in support.bson_documents(file.read_bytes())]

    def server(self, kind):
        try:
            server = kind(self.scratch / kind.__name__.lower())
        except PermissionError:
            self.skipTest(f"{kind.__name__} cannot be started by this user")
        self.addCleanup(server.stop)
        if kind is sql_servers.MariaDB:
            self.wait_for(server.is_ready, "MariaDB", 60)
        return server

    @staticmethod
    def databases(postgres):
        """The tables of each database."""
        for first in range(0, TABLES, 20):
            yield [Table(number, random.Random(f"{SEED} {postgres} {number}"), postgres)
                   for number in range(first, min(first + 20, TABLES))]

    def check(self, export, tables, cells, source, typed, options=(), stdin=b""):
        """Loads one export of all tables. `typed`: with the names of the tables and the types of CREATE TABLE."""
        work = self.scratch / f"work-{next(self._counter)}"
        outcome = self.shardload("load", "--uri", self.uri, "-d", self.database_name, "--work-dir", work, "--progress",
                                 "none", "-j", 2, *options, source, code=None, stdin=stdin, limit=300)
        wrong = [] if outcome.code == 0 else [f"exit {outcome.code}: {outcome.text[-3000:]}"]
        options = bson.CodecOptions(uuid_representation=bson.binary.STANDARD,
                                    datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_AUTO)
        count = 0
        for table in tables:
            collection = self.database.get_collection(table.name if typed else number_of(table), codec_options=options)
            wrong += self.compare(table, cells[table.name], list(collection.find()), export, typed)
            count += len(table.columns) * len(table.rows)
        self.client.drop_database(self.database_name)
        print(f"# {export}: {len(tables)} tables, {count} cells, {len(wrong)} wrong", flush=True)
        self.problems += wrong

    @staticmethod
    def compare(table, rows, documents, export, typed):
        """The cells that differ, as texts."""
        columns = list(table.columns)
        header = typed or export in ("csv", "bare", "batch")
        if export in ("outfile", "batch"):
            columns = [name for name, kind in table.columns.items() if kind.name != "bytes"]
        keys = {name: name.replace("\t", " ") if header else f"column{n + 1}" for n, name in enumerate(columns)}
        wrong = []
        if len(documents) != len(rows):
            wrong.append(f"{export}, {table.name}: {len(documents)} documents instead of {len(rows)}")
        by_id = {int(document.get(keys["id"], -1)): document for document in documents}
        finer = {name for name, kind in table.columns.items() if typed and kind.name == "moment" and any(
            re.search(r"\.\d{3}\d*[1-9]", row[name].text or "") for row in rows)}  # than milliseconds: texts
        for number, row in enumerate(rows):
            for column, key in keys.items():
                kind, cell, loaded = table.columns[column], row[column], by_id.get(number, {}).get(key, NO_VALUE)
                if cell.text is None or (export == "batch" and cell.text == "NULL"):
                    good = loaded is NO_VALUE
                    expected = "no value"
                elif export == "bare":
                    expected = cell.text[0] if kind.name == "bool" else cell.text
                    good = loaded == expected
                else:
                    expected = cell.text if column in finer else value_of(kind, cell)
                    text_only = not typed and kind.name in ("json", "array", "uuid", "bytes")
                    good = (not text_only and is_same(loaded, expected)) or (
                        (text_only or (kind.wild and not typed)) and str(loaded) == cell.text)
                if not good:
                    wrong.append(f"{export}, {table.name}, row {number}, {column} {kind.type}: "
                                 f"{'no value' if loaded is NO_VALUE else repr(loaded)[:300]} instead of "
                                 f"{repr(expected)[:300]}")
        return wrong

    def finish(self):
        if self.problems:
            self.fail(f"{len(self.problems)} differences: " + "\n".join(self.problems[:40]))

    def test_postgres_and_its_exports(self):
        server, self.problems = self.server(sql_servers.Postgres), []
        for tables in self.databases(True):
            server.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public; "
                        "CREATE TYPE mood AS ENUM ('a b', 'it''s', '\\', '');\n"
                        + "".join("".join(table.statements()) for table in tables))
            cells = {table.name: self.read_postgres(server, table) for table in tables}
            shown, bare = ([table for table in tables if table.bare is wanted] for wanted in (False, True))
            for export, options, chosen in (("copy", "", shown), ("csv", "CSV HEADER", shown),
                                            ("bar", "DELIMITER '|'", shown), ("bare", "CSV HEADER", bare)):
                for table in chosen:
                    self.file(f"{export}/{number_of(table)}.txt", server.psql(
                        f"SET timezone = 'UTC'; COPY {table.quote(table.name)} TO STDOUT "
                        f"{'WITH ' if options else ''}{options};\n"))
                if chosen:
                    self.check(export, chosen, cells, self.scratch / export, False,
                               ("--dialect", "sql-csv", "--types", "text") if chosen is bare else ())
            self.check("pg_dump", tables, cells, self.file("shop.sql", server.export("pg_dump")), True)
            inserts = self.file("inserts.sql", server.export("pg_dump", "--inserts"))
            self.check("--inserts", tables, cells, inserts, True)
            archive = self.file("shop.dump", server.export("pg_dump", "-Fc"))
            self.check("pg_restore", tables, cells, "-", True, stdin=sql_servers.run(
                [sql_servers.tool("pg_restore"), "-f", "-", archive]))
        self.finish()

    def read_postgres(self, server, table):
        cells = ", ".join("json_build_array({0}::text, {1})".format(
            table.quote(name), f"to_json({table.quote(name)})" if kind.name == "array" else "NULL")
            for name, kind in table.columns.items())
        lines = server.psql(f"SET timezone = 'UTC'; SELECT json_build_array({cells}) FROM {table.quote(table.name)} "
                            "ORDER BY id;\n").decode("utf-8")
        return [dict(zip(table.columns, (Cell(*cell) for cell in json.loads(line)))) for line in lines.splitlines()]

    def test_mariadb_and_its_exports(self):
        server, self.problems = self.server(sql_servers.MariaDB), []
        for tables in self.databases(False):
            server.mysql("DROP DATABASE IF EXISTS d; CREATE DATABASE d CHARACTER SET utf8mb4; USE d; "
                         "SET sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES';\n"
                         + "".join("".join(table.statements()) for table in tables))
            cells = {table.name: self.read_mariadb(server, table) for table in tables}
            for folder in ("tab", "quoted", "outfile"):
                for old in (server.folder / folder).glob("*"):
                    old.unlink()
                (server.folder / folder).mkdir(exist_ok=True)
                (server.folder / folder).chmod(0o777)
            server.export(f"--tab={server.folder}/tab", "d")
            server.export(f"--tab={server.folder}/quoted", "--fields-terminated-by=,",
                          "--fields-optionally-enclosed-by=\"", "d")
            shown = [table for table in tables if not table.bare]
            for table in shown:
                file, select = f"{server.folder}/outfile/{number_of(table)}.txt", table.select(False)
                server.mysql(f"USE d; {select} INTO OUTFILE '{file}';\n")
                self.file(f"batch/{number_of(table)}.tsv", server.mysql(f"{select};\n", "-B", "d"))
            self.check("tab", tables, cells, server.folder / "tab", True)
            self.check("quoted", tables, cells, server.folder / "quoted", True,
                       options=("--delimiter", ",", "--quote", "\""))
            self.check("outfile", shown, cells, server.folder / "outfile", False)
            self.check("batch", shown, cells, self.scratch / "batch", False)
            self.check("mysqldump", tables, cells, self.file("shop.sql", server.export("d")), True)
            self.check("--hex-blob", tables, cells, self.file(
                "hex.sql", server.export("--hex-blob", "--skip-extended-insert", "--complete-insert", "d")), True)
        self.finish()

    def read_mariadb(self, server, table):
        cells = ", ".join(f"HEX({table.quote(name)})" if kind.name == "bytes" else
                          f"HEX(CAST({table.quote(name)} AS CHAR))" for name, kind in table.columns.items())
        lines = server.mysql(f"SELECT {cells} FROM d.{table.quote(table.name)} ORDER BY id;\n", "-B", "-N")
        return [{name: self.cell_of(kind, cell) for (name, kind), cell in zip(table.columns.items(), line.split("\t"))}
                for line in lines.decode("ascii").splitlines()]

    @staticmethod
    def cell_of(kind, digits):
        if digits == "NULL":
            return Cell(None)
        read = bytes.fromhex("0" * (len(digits) % 2) + digits)      # HEX() of a bit value is a number
        return Cell(read if kind.name == "bytes" else read.decode("utf-8"))

    # other programs

    def duckdb(self, *statements):
        """Runs statements; skips the test without the program or one of its extensions."""
        done = subprocess.run([sql_servers.tool("duckdb"), *(word for one in statements for word in ("-c", one))],
                              cwd=self.scratch, capture_output=True, text=True, check=False)
        if done.returncode and re.search("Extension|LOAD", done.stderr):
            self.skipTest(f"an extension of duckdb is not installed: {statements[0]}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def piped(self, path, kind):
        """Runs the command that the message about this file names. Returns the documents of the table t."""
        text = self.shardload("load", *self.target(), path, code=support.EXIT_SOURCE, message=kind).text
        command = re.search(r"pipe its? .*in: (.*) - *$", " ".join(text.split()) + " ", re.M)[1]
        load = f"{support.program('shardload')} load --progress none --work-dir w{path.suffix} --uri {self.uri}"
        command = command.replace("FILE", path.name).replace("-d DB", f"-d {self.database_name}").replace(
            "...", f"-d {self.database_name} -c t").replace("shardload load", load)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command + " -"], cwd=self.scratch, capture_output=True,
                              text=True, check=False, env=support.clean_environment())
        self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)
        return [{key: one.get(key) for key in "at"} for one in self.database.t.find().sort("a")]

    ROWS = "SELECT 1 AS a, 'x,\"y' || chr(10) || 'z' AS t UNION ALL SELECT 2, NULL ORDER BY 1"
    LOADED = [{"a": 1, "t": "x,\"y\nz"}, {"a": 2, "t": None}]

    def test_the_commands_for_parquet_and_spreadsheets(self):
        for name, kind, how in (("f.parquet", "a Parquet file", "(FORMAT parquet)"),
                                ("f.xlsx", "a spreadsheet", "(FORMAT xlsx, HEADER true)")):
            with self.subTest(kind):
                self.duckdb(*["LOAD excel"] * ("xlsx" in name), f"COPY ({self.ROWS}) TO '{name}' {how}")
                self.database.t.drop()
                self.assertEqual(self.piped(self.scratch / name, kind), self.LOADED)

    def test_the_command_for_avro(self):
        self.duckdb("LOAD avro")
        schema = (b'{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, '
                  b'{"name": "t", "type": ["null", "string"]}]}')
        head = b"Obj\1\2\x16avro.schema" + bytes([len(schema) % 64 * 2 | 128, len(schema) // 64]) + schema + b"\0"
        self.piped(self.file("f.avro", head + b"s" * 16 + b"\4\x14\2\2\x0cx,\"y\nz\4\0" + b"s" * 16), "an Avro file")
        self.assertEqual([one["t"] for one in self.database.t.find({"a": 1})], ["x,\"y\nz"])

    def test_the_command_for_sqlite(self):
        sql_servers.run([sql_servers.tool("sqlite3"), self.scratch / "f.db", "CREATE TABLE t (a int, t text);"
                         f"INSERT INTO t {self.ROWS.replace('chr', 'char')}"])
        self.assertEqual(self.piped(self.scratch / "f.db", "an SQLite database"), self.LOADED)

    def test_duckdb(self):
        self.duckdb(f"CREATE TABLE r AS {self.ROWS}; INSERT INTO r VALUES (3, '')", "COPY r TO 'f.csv' (HEADER)",
                    "COPY r TO 'f.tsv' (HEADER, DELIMITER '\t')")
        for name in ("f.csv", "f.tsv"):
            found = [(one["a"], one.get("t")) for one in self.documents(self.scratch / name)]
            self.assertEqual(found, [(1, "x,\"y\nz"), (2, None), (3, "")])

    def test_pandas(self):
        rows = {"a": [1, 2], "d": [0.5, 1e300], "t": ["x,\"y\nz", "ä"]}
        script = self.file("p.py", f"""import pandas
frame = pandas.DataFrame({{**{rows}, "at": pandas.to_datetime(["2024-01-31 10:00:00"] * 2)}})
frame.to_csv("p.csv", index=False)
frame.to_csv("p.tsv", index=False, sep="\\t")
""")
        done = subprocess.run([sql_servers.tool("python3"), script], cwd=self.scratch, capture_output=True, check=False)
        if b"ModuleNotFoundError" in done.stderr:
            self.skipTest("pandas is not installed")
        for name in ("p.csv", "p.tsv"):
            for number, one in enumerate(self.documents(self.scratch / name)):
                self.assertEqual({key: one[key] for key in "adt"}, {key: rows[key][number] for key in "adt"})
                self.assertEqual(one["at"], datetime.datetime(2024, 1, 31, 10))

    # texts of any program

    def test_line_ends_in_values_at_the_ends_of_blocks(self):
        """Blocks are cut in parallel, also after runs of escape characters."""
        values = [f"{number}" + "\\" * (number % 5) + "\n" * (number % 3) + "x" * (number * 7919 % 97)
                  for number in range(60000)]
        values[7] = "\\" * 1500000 + "\nend"
        escaped = [value.replace("\\", "\\\\").replace("\n", "\\\n") for value in values]
        path = self.file("blocks.txt", "".join(f"{number}\t{value}\t\\N\n" for number, value in enumerate(escaped)))
        for options in (("-j", 1), ("-j", 3)):
            documents = self.documents("--dialect", "mysql", *options, path)
            self.assertEqual({one["column1"]: one["column2"] for one in documents}, dict(enumerate(values)))

    def test_a_null_that_the_sample_does_not_show_is_a_reject(self):
        path = self.file("late.tsv", "a\tb\n" + "x\ty\n" * 40000 + "x\t\\N\n")
        outcome, work = self.parse("--header", "yes", path, code=support.EXIT_REJECTS)
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["40002"], outcome.text)
        self.assertIn("--dialect postgres", support.reject_rows(work)[0]["reason"])
        self.assertEqual(self.documents("--dialect", "csv", "--header", "yes", path)[-1]["b"], "\\N")
        self.assertNotIn("b", self.documents("--null", "\\N", "--header", "yes", path)[-1])

    def test_declared_types(self):
        path = self.file("t.json", '{"at": "2024-01-31T10:00:00.5Z", '
                         '"in": [{"key": "00112233-4455-6677-8899-aabbccddeeff"}], '
                         '"x": 0.12345678901234567890123}\n{"at": "never"}\n')
        outcome, work = self.parse("--types", "at=datetime,in.key=uuid", path, code=support.EXIT_REJECTS)
        self.assertEqual([row["column"] for row in support.reject_rows(work)], ["at"], outcome.text)
        self.assertEqual(support.run_record(work)["accounting"]["roundedNumbers"], 1)
        path = self.file("t.csv", "j,a,h,f\n\"{\"\"n\"\": [1]}\",\"{1,NULL,\"\"b c\"\"}\",\\x00ff,J\n5,{},,N\n")
        found = self.documents("--types", "j=json,a=array,h=hex,f=flag:J:N", path)
        self.assertEqual([{key: one.get(key) for key in "jahf"} for one in found],
                         [{"j": {"n": [1]}, "a": [1, None, "b c"], "h": b"\0\xff", "f": True},
                          {"j": 5, "a": [], "h": None, "f": False}])
        path = self.file("t.csv", 'j,n\n"{""$date"": 18446744073709551617}",1\n-9223372036854775808,3\n')
        _, work = self.parse("--types", "j=json", path, code=support.EXIT_REJECTS)
        self.assertEqual([row["line"] for row in support.reject_rows(work)], ["2"])
        path = self.file("u.csv", "j,n\n-9223372036854775808,3\n9223372036854775807,3\n")
        self.assertEqual([one["j"] for one in self.documents("--types", "j=json", path)], [-1 << 63, (1 << 63) - 1])
        self.shardload("load", "--types", "j=jsn", path, code=support.EXIT_USAGE, message="a type: text, int")
        self.shardload("inspect", "--types", "z=int", path, code=support.EXIT_SOURCE, message="names the column z")

    def test_escaped_line_feeds_do_not_hide_line_ends_of_windows(self):
        path = self.file("t.txt", b"1\ta\\\nb\t5\r\n2\tc\t6\r\n3\t\\N\t7\r\n")
        self.assertEqual([one["column3"] for one in self.documents(path)], [5, 6, 7])

    def test_files_of_one_table_share_a_dialect(self):
        self.file("d/1.txt", "1\tx\ty\n2\tz\tw\n")
        self.file("d/2.txt", "5\ta\\\\b\t\\N\n6\tq\tr\n")
        self.file("d/3.txt", "7\ta\\tb\tc\n")
        found = {one["column1"]: one.get("column2") for one in self.documents(self.scratch / "d")}
        self.assertEqual(found, {1: "x", 2: "z", 5: "a\\b", 6: "q", 7: "a\tb"})

    def test_a_copy_without_null_is_known_by_its_times_and_backslashes(self):
        rows = "1\t{}\t2024-01-01 08:00:00+00\t\n2\tx\t2024-01-02 08:00:00.25+00\tend\n"
        for shown, stored in (("C:\\\\temp", "C:\\temp"), ('{"a": "\\\\"b\\\\""}', '{"a": "\\"b\\""}'),
                              ("a\\tb\\\\x", "a\tb\\x"), ('{"p": "C:\\\\\\\\Users"}', '{"p": "C:\\\\Users"}'),
                              ("C:\\\\Users {\"", "C:\\Users {\"")):
            found = self.documents(self.file("copy.txt", rows.format(shown)))[0]
            self.assertEqual((found["column2"], found["column4"]), (stored, ""), shown)
        for first, shown in (("", "C:\\temp"), ("id\tpath\tat\tnote\n", "C:\\\\temp"), ("", "\\\\nas\\share")):
            found = self.documents(self.file("tabs.csv", first + rows.format(shown)))[0]
            self.assertEqual(found["path" if first else "column2"], shown)
        for missing in ("", "NULL"):    # in COPY it is \\N
            found = self.documents(self.file(
                "gaps.txt", f"1\t7\tC:\\\\t\t2024-01-01 08:00:00+00\n2\t{missing}\tx\t2024-01-02 08:00:00+00\n"))
            self.assertEqual([(one.get("column2"), one["column3"]) for one in found], [(7, "C:\\\\t"), (None, "x")])

    def test_blanks_around_quotes(self):
        path = self.file("b.csv", 'id, "name"\n1, "Doe, ""J""" \n2, "a\nb"\n3,"c" \n')
        self.assertEqual([one["name"] for one in self.documents(path)], ['Doe, "J"', "a\nb", "c"])
