# SPDX-License-Identifier: Apache-2.0
"""Tables that other programs have exported, loaded without options, equal what a client of these programs
reads, cell by cell."""
import datetime
import decimal
import json
import math
import os
import random

import bson
import sql_servers
import support

ROUNDS = int(os.environ.get("SHARDLOAD_TABLES", "40"))
NO_VALUE = object()

# name: type in PostgreSQL, type in MariaDB
COLUMNS = {"id": ("int", "int"), "note": ("text", "text"), "word": ("text", "varchar(200)"),
           "count": ("bigint", "bigint"), "ratio": ("double precision", "double"),
           "price": ("numeric(30,12)", "decimal(30,12)"), "flag": ("boolean", "tinyint"),
           "day": ("date", "date"), "at": ("timestamp(3)", "datetime(3)"), "zoned": ("timestamptz(3)", "datetime(3)"),
           "fine": ("timestamp", "datetime(6)"), "tree": ("jsonb", "text"), "list": ("text[]", "text"),
           "key": ("uuid", "char(36)"), "bytes": ("bytea", "text")}

WORDS = ["", "word", "a\tb", "back\\slash", "\\", "\\N", "\\n", "line\nend", "\n", "\r", "cr\r", "crlf\r\nend",
         "say \"hi\"",
         "\"", "\"\"", "'", "comma, semicolon; pipe|", "NULL", "null", "NA", "-", "t", "f", "NaN", " ", " x ", "ä€😀",
         "\\.", "\\\\", "\\\t", "\\x41", "\\101", "0", "007", "1e5", "12,5", "{\"a\": 1}", "\v\f\b", "end\\"]


def literal(value):
    """A literal of SQL as both servers read it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


class Exports(support.Case):
    def documents(self, *words, **more):
        options = bson.codec_options.CodecOptions(tz_aware=True)
        number = next(self._counter)
        file, work = self.scratch / f"dump-{number}.bson", self.scratch / f"work-{number}"
        outcome = self.shardload("load", "--sink", f"bson:{file}", "--work-dir", work, "-j", 2, *words, code=None,
                                 **more)
        if outcome.code != 0:
            self.fail(f"{outcome.text}\n{support.reject_rows(work)[:3] if file.exists() else ''}")
        return [bson.decode(one, options) for one in support.bson_documents(file.read_bytes())]

    def folder_of(self, kind):
        try:
            server = kind(self.scratch / kind.__name__.lower())
        except PermissionError:
            self.skipTest(f"{kind.__name__} cannot be started by this user")
        self.addCleanup(server.stop)
        return server

    def postgres(self):
        return self.folder_of(sql_servers.Postgres)

    def mariadb(self):
        server = self.folder_of(sql_servers.MariaDB)
        self.wait_for(server.is_ready, "MariaDB", 60)
        return server

    # values

    @staticmethod
    def row(number, dice, postgres):
        """A row of hostile values. `dice`: None for a table whose every value is known."""
        pick = dice or random.Random(number)

        def maybe(value):
            return None if pick.random() < 0.2 else value
        doubles = [0.5, -1.25, 1e300, 1e-7, 0.1, 123456789.125, -0.0, 3.0]
        if postgres:
            doubles += ["NaN", "Infinity", "-Infinity"]
        moment = datetime.datetime(1970 + pick.randrange(130), 1 + pick.randrange(12), 1 + pick.randrange(28),
                                   pick.randrange(24), pick.randrange(60), pick.randrange(60))
        second, fine = moment.isoformat(" "), f"{moment.isoformat(' ')}.{pick.randrange(10 ** 6):06}"
        price = decimal.Decimal(pick.randrange(10 ** 30)).scaleb(-12) * (-1) ** pick.randrange(2)
        return {"id": number, "note": maybe(pick.choice(WORDS) + pick.choice(["", pick.choice(WORDS)])),
                "word": "a word" if number == 0 else maybe(pick.choice(WORDS)),
                "count": maybe(pick.randrange(-2 ** 63, 2 ** 63)),
                "ratio": maybe(pick.choice(doubles)) if number else 0.5,
                "price": price if number == 0 else maybe(price), "flag": maybe(pick.randrange(2) == 1),
                "day": maybe(moment.date().isoformat()),
                "at": maybe(second), "zoned": maybe(second), "fine": fine if number == 0 else maybe(fine),
                "tree": maybe(json.dumps({"text": pick.choice(WORDS), "n": [1, None]})),
                "list": maybe("{a,NULL,\"b \\\\ c\",\"\"}"), "key": maybe(f"{pick.randrange(16 ** 32):032x}"),
                "bytes": maybe("\\x" + pick.choice(WORDS).encode().hex())}

    def statements(self, name, rows, postgres):
        columns = ", ".join(f"{self.quote(column, postgres)} {types[not postgres]}"
                            for column, types in COLUMNS.items())
        yield f"CREATE TABLE {name} ({columns}){'' if postgres else ' CHARACTER SET utf8mb4'};\n"
        for row in rows:
            values = [f"'{value}'" if isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity")
                      else literal(value) for value in row.values()]
            yield f"INSERT INTO {name} VALUES ({', '.join(values)});\n"

    @staticmethod
    def quote(name, postgres):
        return f'"{name}"' if postgres else f"`{name}`"

    # comparison

    def value_of(self, column, shown):
        """The value of a cell that a client shows as this text."""
        if shown is None:
            return NO_VALUE
        kind = COLUMNS[column][0]
        if kind in ("int", "bigint"):
            return int(shown)
        if kind == "double precision":
            return float(shown)
        if kind.startswith("numeric"):
            return decimal.Decimal(shown)
        if kind == "boolean":
            return shown in ("true", "t", "1")
        if column in ("day", "at", "zoned"):
            moment = datetime.datetime.fromisoformat(shown.replace("Z", "+00:00"))
            return moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
        return shown

    @staticmethod
    def is_same(loaded, expected):
        if isinstance(expected, bool):
            return loaded is expected or loaded == int(expected)
        if isinstance(loaded, bson.Decimal128):
            loaded = loaded.to_decimal()
        if isinstance(expected, decimal.Decimal):
            if isinstance(loaded, float):
                loaded = decimal.Decimal(repr(loaded))
            return isinstance(loaded, (int, decimal.Decimal)) and loaded == expected
        if isinstance(expected, float):
            return isinstance(loaded, (int, float)) and not isinstance(loaded, bool) and (
                loaded == expected or (math.isnan(loaded) and math.isnan(expected)))
        kind = int if isinstance(expected, int) else type(expected)  # bson.Int64 is an int
        return isinstance(loaded, kind) and not isinstance(loaded, bool) and loaded == expected

    def compare(self, documents, expected, names=None):
        """The cells that differ, as texts. `names`: of the columns of a text without header."""
        wrong = []
        if len(documents) != len(expected):
            return [f"{len(documents)} records instead of {len(expected)}"]
        keys = {column: column if not names else f"column{index + 1}" for index, column in enumerate(COLUMNS)}
        by_id = {document.get(keys["id"]): document for document in documents}
        for row in expected:
            document = by_id.get(row["id"], {})
            for column, key in keys.items():
                value, loaded = row[column], document.get(key, NO_VALUE)
                if not (loaded is value is NO_VALUE or self.is_same(loaded, value)):
                    shown = "no value" if loaded is NO_VALUE else repr(loaded)
                    wrong.append(f"row {row['id']}, {column}: {shown} instead of "
                                 f"{'no value' if value is NO_VALUE else repr(value)}")
        return wrong

    def check(self, path, expected, names=False, options=()):
        wrong = self.compare(self.documents(*options, path), expected, names)
        if wrong:
            described = self.shardload("inspect", "--documents", 0, *options, path).out
            self.fail(f"{path.name}: {len(wrong)} cells differ: {wrong[:5]}\n{described}\n{path.read_bytes()[:1500]}")

    # PostgreSQL

    def read_postgres(self, server, table):
        columns = ", ".join(f"'{column}', \"{column}\"::text" for column in COLUMNS)
        lines = server.psql(f"SET timezone = 'UTC'; SELECT json_build_object({columns}) FROM {table};\n")
        return [{column: self.value_of(column, value) for column, value in json.loads(line).items()}
                for line in lines.decode("utf-8").splitlines()]

    def export_postgres(self, server, table):
        exports = {"copy.txt": "", "csv.csv": "CSV HEADER", "bar.txt": "DELIMITER '|'"}
        for name, options in exports.items():
            self.file(f"{table}-{name}", server.psql(
                f"SET timezone = 'UTC'; COPY {table} TO STDOUT {'WITH ' if options else ''}{options};\n"))
        return [(self.scratch / f"{table}-{name}", not options.startswith("CSV")) for name, options in exports.items()]

    def test_postgres(self):
        server = self.postgres()
        for number in range(max(1, ROUNDS // 2)):
            with self.subTest(table=number):
                rows = [self.row(i, random.Random(f"{number} {i}"), True) for i in range(30)]
                server.psql("".join(self.statements(f"t{number}", rows, True)))
                expected = self.read_postgres(server, f"t{number}")
                for path, unnamed in self.export_postgres(server, f"t{number}"):
                    self.check(path, expected, unnamed)

    # MariaDB

    def read_mariadb(self, server, table):
        columns = ", ".join(f"HEX(CAST(`{column}` AS CHAR))" for column in COLUMNS)
        lines = server.mysql(f"SELECT {columns} FROM d.{table};\n", "-B", "-N")
        rows = []
        for line in lines.decode("ascii").splitlines():
            cells = [None if cell == "NULL" else bytes.fromhex(cell).decode("utf-8") for cell in line.split("\t")]
            rows.append({column: self.value_of(column, cell) for column, cell in zip(COLUMNS, cells)})
        return rows

    def export_mariadb(self, server, table):
        folder = server.folder
        quoted = ("--fields-terminated-by=,", "--fields-optionally-enclosed-by=\"")
        for name, more in (("tab", ()), ("quoted", quoted)):
            (folder / name).mkdir(exist_ok=True)
            (folder / name).chmod(0o777)
            server.export(f"--tab={folder / name}", *more, "d", table)
        server.mysql(f"SELECT * FROM d.{table} INTO OUTFILE '{folder}/{table}.out';\n")
        batch = self.file(f"{table}-batch.txt", server.mysql(f"SELECT * FROM d.{table};\n", "-B"))
        return [(folder / "tab" / f"{table}.txt", True), (folder / "quoted" / f"{table}.txt", True),
                (folder / f"{table}.out", True), (batch, False)]

    def test_mariadb(self):
        server = self.mariadb()
        server.mysql("CREATE DATABASE d CHARACTER SET utf8mb4;\n")
        for number in range(max(1, ROUNDS // 2)):
            with self.subTest(table=number):
                rows = [self.row(i, random.Random(f"{number} {i}"), False) for i in range(30)]
                text = "".join(self.statements(f"t{number}", rows, False))
                server.mysql(f"SET sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'; USE d;\n{text}")
                expected = self.read_mariadb(server, f"t{number}")
                for path, unnamed in self.export_mariadb(server, f"t{number}"):
                    if not unnamed:  # mysql --batch writes the text NULL as it writes NULL
                        expected = [{column: NO_VALUE if value == "NULL" else value for column, value in row.items()}
                                    for row in expected]
                    self.check(path, expected, unnamed)

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
        self.shardload("load", "--types", "j=jsn", path, code=support.EXIT_USAGE, message="a type: text, int")
        self.shardload("inspect", "--types", "z=int", path, code=support.EXIT_SOURCE, message="names the column z")

    def test_files_of_one_table_share_a_dialect(self):
        self.file("d/1.txt", "1\tx\ty\n2\tz\tw\n")
        self.file("d/2.txt", "5\ta\\\\b\t\\N\n6\tq\tr\n")
        self.file("d/3.txt", "7\ta\\tb\tc\n")
        found = {one["column1"]: one.get("column2") for one in self.documents(self.scratch / "d")}
        self.assertEqual(found, {1: "x", 2: "z", 5: "a\\b", 6: "q", 7: "a\tb"})

    def test_blanks_around_quotes(self):
        path = self.file("b.csv", 'id, "name"\n1, "Doe, ""J""" \n2, "a\nb"\n3,"c" \n')
        self.assertEqual([one["name"] for one in self.documents(path)], ['Doe, "J"', "a\nb", "c"])
