# SPDX-License-Identifier: Apache-2.0
"""`shardload restore` without a server: --dry-run, patterns, options, dumps that are not complete."""
import gzip
import pathlib
import re
import shutil

import dump_making as making
import support
from dump_making import Namespace


class RestoreCase(support.Case):
    def folder(self, *namespaces, zipped=False):
        return making.folder(self.scratch / f"dump-{next(self._counter)}", namespaces, zipped)

    def plan(self, dump, *words, code=0):
        return self.shardload("restore", "--dry-run", *words, dump, code=code)

    def rows(self, dump, *words):
        """{namespace: the words of its row}"""
        lines = self.plan(dump, *words).out.splitlines()[1:-1]
        return {line.split()[0]: line.split()[1:] for line in lines}


class ManyNames(RestoreCase):
    def test_thousands_of_names(self):
        """Also where some are joined or left out after they were found."""
        names = [Namespace("shop", f"c{number}", [{"_id": 1}] if number % 3 else None,
                           options={"timeseries": {"timeField": "t"}} if number % 7 == 1 else None)
                 for number in range(3000)]
        names += [Namespace("shop", f"system.buckets.b{number}", [{"_id": 1}], metadata=False) for number in range(300)]
        expected = {f"shop.c{number}": "time series" if number % 7 == 1 else "collection"
                    for number in range(3000) if number % 3}
        dump = self.folder(*names)
        lines = self.plan(dump, "--skip-other").out.splitlines()[1:-1]
        self.assertEqual({line.split()[0]: "time series" if " time series " in line else "collection"
                          for line in lines if line.startswith("shop.")}, expected)
        outcome = self.plan(dump, "--skip-other", "--ns-from", "shop.c2$n$", "--ns-to", "shop.c1$n$",
                            code=support.EXIT_USAGE)
        self.assertIn("would both become shop.c1", outcome.err)
        archive = self.file("archive", making.archive([one for one in names if one.data is not None and
                                                       one.has_metadata]))
        lines = self.plan(archive).out.splitlines()[1:-1]
        self.assertEqual({line.split()[0] for line in lines if line.startswith("shop.")}, set(expected))


class Folders(RestoreCase):
    def test_a_dry_run_lists_the_namespaces(self):
        dump = self.folder(
            Namespace("shop", "orders", [{"_id": 1}], options={"validator": {"a": 1}},
                      indexes=[{"v": 2, "key": {"a": 1}, "name": "a_1"}]),
            Namespace("shop", "log", [], options={"capped": True, "size": 4096, "max": 9}),
            Namespace("shop", "a_view", options={"viewOn": "orders", "pipeline": []}),
            Namespace("shop", "ts", [{"_id": 1}], options={"timeseries": {"timeField": "t"}}),
            Namespace("admin", "system.users", [{"_id": 1}]),
            Namespace("admin", "settings", [{"_id": 1}]),
            Namespace("config", "chunks", [{"_id": 1}]),
            Namespace("shop", "$admin.system.roles", [{"_id": 1}]))
        outcome = self.plan(dump)
        self.assertRegex(outcome.out, r"shop\.orders +collection +14 B +1 +validator\n")
        self.assertRegex(outcome.out, r"shop\.log +collection +0 B +0 +capped\n")
        self.assertRegex(outcome.out, r"shop\.ts +time series +14 B +0 +timeseries\n"
                                      r"shop\.a_view +view +- +0 +viewOn\n"
                                      r"admin\.system\.users +users +14 B +0\n6 of 6 namespaces")
        self.assertRegex(outcome.out, r"admin\.settings +collection +14 B")
        for name in ("chunks.bson", "system.roles.bson"):
            self.assertRegex(outcome.err, rf"not restored: \S*{name}: ")

    def test_patterns(self):
        names = ("shop.orders", "shop.orders.old", "shop.o*", "test.orders", "test.x_1_y")
        dump = self.folder(*(Namespace(*name.split(".", 1), [{"_id": 1}]) for name in names))
        for words, chosen in (
                (["--ns-include", "shop.*"], names[:3]),
                (["--ns-include", "shop.orders"], names[:1]),
                (["--ns-include", "*.orders"], (names[0], names[3])),
                (["--ns-include", r"*.o\*"], (names[2],)),
                (["--ns-include", "*o*o*s"], (names[0],)),
                (["--ns-exclude", "shop.*"], names[3:]),
                (["--ns-include", "shop.*", "--ns-exclude", "*old", "--ns-exclude", "*\\*"], names[:1]),
                (["--ns-include", "shop.orders", "--ns-include", "test.o*"], (names[0], names[3]))):
            with self.subTest(words):
                self.assertEqual(set(self.rows(dump, *words)), set(chosen))
        for words, name, new in (
                (["--ns-from", "shop.*", "--ns-to", "new.*"], names[1], "new.orders.old"),
                (["--ns-from", "*.*", "--ns-to", "*.a_*"], names[0], "shop.a_orders"),
                (["--ns-from", "test.$a$_$b$_$c$", "--ns-to", "$b$.$c$.$a$"], names[4], "1.y.x"),
                (["--ns-from", "$db$.x*", "--ns-to", "$db$2.z*"], names[4], "test2.z_1_y"),
                (["--ns-from", r"shop.o\*", "--ns-to", "shop.star"], names[2], "shop.star"),
                (["--ns-from", "none.*", "--ns-to", "x.*", "--ns-from", "*.orders", "--ns-to",
                  "z.*"], names[3], "z.test")):
            with self.subTest(words):
                words += ["--ns-include", name.replace("*", "\\*")]
                self.assertEqual(self.rows(dump, *words)[name][4:6], ["becomes", new])

    def test_patterns_that_match_nothing_are_named(self):
        dump = self.folder(Namespace("shop", "orders", [{"_id": 1}]), Namespace("shop", "log", [{"_id": 1}]))
        outcome = self.plan(dump, "--ns-include", "shop.orders", "--ns-include", "shop.logs",
                            "--ns-exclude", "*.x", "--ns-from", "a.$b$", "--ns-to", "b.$b$",
                            "--ns-from", "shop.$b$", "--ns-to", "b.$b$")
        self.assertEqual(re.findall(r"warning: (--\S+ \S+): no namespace", outcome.err),
                         ["--ns-include shop.logs", "--ns-exclude *.x", "--ns-from a.$b$"])
        for option in ("--ns-include", "--ns-exclude"):
            outcome = self.plan(dump, option, "*" * 17, code=support.EXIT_USAGE)
            self.assertIn("at most 16 *", outcome.err)
            self.plan(dump, "--ns-include", "*" * 16 + r"\*" * 9, "--ns-include", "*")

    def test_wrong_options(self):
        dump = self.folder(Namespace("a", "x", [{"_id": 1}]), Namespace("b", "x", [{"_id": 1}]))
        for words, message in (
                (["--ns-from", "a.*"], "each --ns-from needs its --ns-to"),
                (["--ns-from", "a.*", "--ns-to", "b"], "same number"),
                (["--ns-from", "a.$x$", "--ns-to", "b.$y$"], r"\$x\$ must be in both"),
                (["--ns-from", "$x$.$x$", "--ns-to", "b.$x$"], "may occur once"),
                (["--ns-from", "*.*", "--ns-to", "*.*.*"], "same number"),
                (["--ns-from", "*.x", "--ns-to", "*"], "not of the form DATABASE.COLLECTION"),
                (["--ns-from", "a.*", "--ns-to", "config.*"], "a.x would become config.x: the metadata"),
                (["--ns-from", "a.*", "--ns-to", "admin.system.*"], "a collection of the server itself"),
                (["--ns-from", "a.*", "--ns-to", "admin.*"], None),
                (["--ns-from", "a.*", "--ns-to", f"{'n' * 250}.*xxxxx"], "longer than the 255"),
                (["--ns-from", "*.x", "--ns-to", "same.x*", "--ns-exclude", "x"], None),
                (["--ns-from", "a.$n$", "--ns-to", "b.$n$"], "would both become b.x"),
                (["--resume"], "--resume needs --work-dir"),
                ([dump], "restore takes one dump")):
            with self.subTest(words):
                outcome = self.plan(dump, *words, code=support.EXIT_USAGE if message else 0)
                if message:
                    self.assertRegex(outcome.err, message)
        self.assertIn("no dump is given", self.shardload("restore", code=support.EXIT_USAGE).err)

    def test_shard_keys(self):
        dump = self.folder(
            Namespace("a", "x", [{"_id": 1}]), Namespace("a", "y", [{"_id": 1}]),
            Namespace("a", "cap", [], options={"capped": True, "size": 4096}),
            Namespace("a", "v", options={"viewOn": "x", "pipeline": []}),
            Namespace("a", "t", [{"_id": 1}], options={"timeseries": {"timeField": "t"}}))

        def plan(text, *words, code=support.EXIT_USAGE):
            return self.plan(dump, "--shard-keys", self.file("keys.yaml", text), *words, code=code)
        outcome = plan("a.x: {key: {n: 1, _id: hashed}}\nb.y: {unique: true, key: {m.n: 1}}\n",
                       "--ns-from", "a.y", "--ns-to", "b.y", code=0)
        self.assertRegex(outcome.out, r'a\.x .* sharded by \{ "n" : 1, "_id" : "hashed" \}\n')
        self.assertRegex(outcome.out, r'a\.y .* sharded by \{ "m.n" : 1 \}, unique\n')
        for text, message in (
                ("a.x: {key: {n: 2}}", r"keys\.yaml:1:13: a field of a key must be 1 or"),
                ("\na.x: {key: {n: hashed, m: hashed}}", r"keys\.yaml:2:24: a field of a key must"),
                ("a.x: {key: {n: 1, n: 1}}", '"n" is given twice'),
                ("a.x: {key: {}}", "a mapping as the key, such as .* found an empty one"),
                ("a.x: {key: n}", 'a mapping as the key, such as .* found "n"'),
                ("a.x: {}", "the key is missing"), ("a.x: n", r"expected \{key: "),
                ("a.x: {key: {n: 1}, unique: maybe}", "expected one key, and unique"),
                ("a.x: {key: {n: hashed}, unique: true}", "a hashed key cannot be unique"),
                ("a.x: {key: {n: 1}, chunks: 3}", "expected one key, and unique"),
                ("a.x: {key: {n: 1}}\na.x: {key: {n: 1}}", '"a.x" is given twice'),
                ("x: {key: {n: 1}}", "expected DATABASE.COLLECTION"),
                ("- a", "expected a mapping"), ("", "expected a mapping"), ("a: [", "keys.yaml:"),
                ("a.z: {key: {n: 1}}", "a.z is not restored"),
                ("a.v: {key: {n: 1}}", "a.v is a view"),
                ("a.cap: {key: {n: 1}}", "a.cap is a capped collection")):
            with self.subTest(text):
                self.assertRegex(plan(text).err, message)
        plan("a.x: {key: {n: 1}}", "--ns-exclude", "a.x")
        outcome = self.plan(dump, "--shard-keys", self.scratch / "none", code=support.EXIT_USAGE)
        self.assertIn("No such file", outcome.err)

    def test_nothing_to_restore(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.assertIn("nothing to restore", self.plan(empty, code=support.EXIT_SOURCE).err)
        dump = self.folder(Namespace("a", "x", [{"_id": 1}]))
        outcome = self.plan(dump, "--ns-include", "b.*", code=support.EXIT_SOURCE)
        self.assertIn("nothing is left to restore", outcome.err)
        outcome = self.plan(dump / "a", code=support.EXIT_SOURCE)
        self.assertIn("a is the folder of one database: give the name of the database with --db, or name the parent "
                      "folder", outcome.err)
        self.assertIn("No such file", self.plan(dump / "b", code=support.EXIT_SOURCE).err)

    def test_one_database_and_one_collection(self):
        """Of a dump, by its own folder, by a file, whose metadata are beside it, and in standard input."""
        dump = self.folder(*(Namespace("a", name, [{"_id": 1}], indexes=[{"v": 2, "key": {"b": 1}, "name": "b"}])
                             for name in ("x", "y/z")), Namespace("b", "x", [{"_id": 1}]))
        row = ["collection", "14", "B", "1"]
        for words, names in (
                ([dump, "-d", "a"], ["a.x", "a.y/z"]),
                ([dump, "-d", "a", "-c", "x"], ["a.x"]),
                ([dump / "a", "-d", "new"], ["new.x", "new.y/z"]),
                ([dump / "a", "-d", "new", "-c", "x"], ["new.x"]),
                ([dump / "a" / "y%2Fz.bson"], ["a.y/z"]),
                ([dump / "a" / "x.bson", "-d", "new", "-c", "z"], ["new.z"])):
            with self.subTest(words):
                self.assertEqual(self.rows(*words), {name: row for name in names})
        outcome = self.shardload("restore", "--dry-run", "-d", "a", "-c", "x", "-",
                                 stdin=(dump / "a" / "x.bson").read_bytes())
        self.assertRegex(outcome.out, r"a\.x +collection .*\n1 of 1 namespaces")
        keys = self.file("keys.yaml", "c.x: {key: {a: 1}}\n")
        for words, code, message in ((["-c", "x"], support.EXIT_USAGE, "--collection needs --db"),
                                     (["-d", "c"], support.EXIT_SOURCE, "no namespace matches --db"),
                                     (["-d", "c", "--shard-keys", keys], support.EXIT_SOURCE,
                                      "no namespace matches --db")):
            self.assertIn(message, self.plan(dump, *words, code=code).err)

    def test_parts_that_would_be_missed_end_in_exit_3(self):
        dump = self.folder(
            Namespace("a", "x", [{"_id": 1}]), Namespace("a", "no_data", None),
            Namespace("a", "ts", [{"_id": 1}], kind="timeseries", metadata=False))
        (dump / "oplog.bson").write_bytes(b"")
        (dump / "a" / "notes.txt").write_text("x")
        (dump / "a" / "folder").mkdir()
        (dump / "a" / ".hidden").write_text("x")
        (dump / "prelude.json").write_text("{}")
        (dump / "a" / "prelude.json").write_text("{}")      # of mongodump --db
        outcome = self.plan(dump, code=support.EXIT_SOURCE)
        for text in ("no_data.metadata.json: metadata of a collection whose documents",
                     "system.buckets.ts.bson: buckets of a time-series collection without metadata",
                     "oplog.bson: the writes during the dump", "notes.txt: ", "folder: no file",
                     "5 parts of the dump are not restored"):
            self.assertIn(text, outcome.err)
        self.assertIn("1 of 1 namespaces", outcome.out)
        self.plan(dump, "--skip-other")

    def test_metadata(self):
        def with_metadata(text, zipped=False):
            dump = self.folder(Namespace("a", "x", [{"_id": 1}], metadata=False))
            (dump / "a" / "x.metadata.json").write_text(text)
            return dump
        for text, shown in (
                ('{}', ""), ('{"options":{},"indexes":[]}', ""), (' {"indexes":[] }\n', ""),
                ('{"options":{"create":"x","flags":1,"temp":true,"autoIndexId":true}}', ""),
                ('{"options":{"capped":true,"size":{"$numberLong":"4096"}}}', "capped"),
                ('{"options":{"collation":{"locale":"de"}}}', "collation")):
            with self.subTest(text):
                self.assertEqual(self.rows(with_metadata(text))["a.x"][4:], shown.split())
        for text, message in (
                ("", "metadata must be one JSON object"), ("[]", "must be one JSON object"),
                ('{"options":{}} {}', "text follows the object"),
                ('{"options":{"a":}}', r"x\.metadata\.json, byte 16: "),
                ('{"options":[]}', '"options" is not an object'),
                (r'{"collectionName":"a\u0000b"}', '"collectionName" is not a text without NUL bytes'),
                ('{"indexes":{}}', '"indexes" is not an array'),
                ('{"indexes":[1]}', "index 0 is not an object"),
                ('{"indexes":[%s]}' % ",".join(['{"key":{"a":0},"name":"a"}'] * 1001),
                 r"x\.metadata\.json: a collection has more than 1000 indexes"),
                ('{"indexes":[{"key":{"a":1}}]}', "index 0 has no key or no name")):
            with self.subTest(text):
                outcome = self.plan(with_metadata(text), code=support.EXIT_SOURCE)
                self.assertRegex(outcome.err, message)
        outcome = self.plan(with_metadata(
            '{"options":{"autoIndexId":false},"indexes":[{"key":{"a":true},"name":"a"},{"key":{"a":1},"name":"b"},'
            '{"key":{"b":0},"name":"c","dropDups":true,"ns":"a.x","v":1},{"key":{"_id":true},"name":"_id_"}]}'))
        self.assertIn("a.x: converted for current servers: option autoIndexId: false becomes true; servers since 4.0 "
                      "need the index of _id; "
                      "index a: left out, because another index has its key after the conversion; "
                      "index c: values of its key that servers refuse now become 1; "
                      "index c: unknown options left out (dropDups)", outcome.err)
        self.assertRegex(outcome.out, r"a\.x +collection +14 B +2\n")
        long = '{"collectionName":"the true name","options":{}}'
        self.assertEqual(set(self.plan(with_metadata(long)).out.splitlines()[1].split()[:3]),
                         {"a.the", "true", "name"})

    def test_two_files_of_one_collection(self):
        dump = self.folder(Namespace("a", "x", [{"_id": 1}]))
        (dump / "a" / "x.bson.gz").write_bytes(gzip.compress(b""))
        self.assertIn("belong to the same collection", self.plan(dump, code=support.EXIT_SOURCE).err)

    def test_names_of_files_are_unescaped(self):
        names = ["a/b", "50%", "ü", "a b", "x.y"]
        dump = self.folder(*(Namespace("a", name, [{"_id": 1}], metadata=False) for name in names))
        lines = self.plan(dump).out.splitlines()[1:-1]
        self.assertEqual({line[2:].partition("  ")[0] for line in lines}, set(names))
        dump = self.folder(Namespace("x%64b", "c", [{"_id": 1}]), Namespace("xdb", "d", []))
        self.assertEqual(set(self.rows(dump)), {"x%64b.c", "xdb.d"})

    def test_an_empty_compressed_file_is_truncated(self):
        dump = self.folder(Namespace("a", "x", [{"_id": 1}], metadata=False), Namespace("a", "y", [{"_id": 1}]))
        (dump / "a" / "y.bson").unlink()
        (dump / "a" / "y.bson.gz").write_bytes(b"")
        outcome = self.plan(dump, code=support.EXIT_SOURCE)
        self.assertIn("y.bson.gz: an empty file", outcome.err)
        self.assertIn("1 of 1 namespaces", outcome.out)


class Archives(RestoreCase):
    def archive(self, *namespaces, name="dump.archive"):
        return self.file(name, making.archive(namespaces))

    def test_a_dry_run_of_an_archive(self):
        namespaces = (Namespace("shop", "orders", [{"_id": n} for n in range(10)],
                                options={"validator": {"a": 1}}),
                      Namespace("shop", "v", options={"viewOn": "orders", "pipeline": []}),
                      Namespace("admin", "system.version", [{"_id": 1}]))
        data = making.archive(namespaces)
        for source, words, stdin in ((self.file("a", data), [], b""),
                                     (self.zipped("a.gz", data), ["--gzip"], b""), ("-", [], data)):
            outcome = self.shardload("restore", "--dry-run", *words, source, stdin=stdin)
            self.assertRegex(outcome.out, r"shop\.orders +collection +140 B +0 +validator\n"
                                          r"shop\.v +view .*\n2 of 2 namespaces")
            self.assertIn("not restored: admin.system.version: ", outcome.err)
        outcome = self.shardload("restore", "--dry-run", "--archive", self.scratch / "a")
        self.assertIn("2 of 2 namespaces", outcome.out)

    def test_files_that_are_no_archive(self):
        for data, message in (
                (b"\5\0\0\0\0", "this is not an archive of mongodump"),
                (b"", "truncated"), (making.MAGIC, "truncated"),
                (making.archive([Namespace("a", "x", [{"_id": 1}])])[:200], "truncated")):
            outcome = self.plan(self.file("a", data), code=support.EXIT_SOURCE)
            self.assertIn(message, outcome.err)

    def test_load_names_the_command_for_archives(self):
        path = self.archive(Namespace("a", "x", [{"_id": 1}]))
        self.shardload("inspect", path, code=support.EXIT_SOURCE, message="shardload restore")

    def test_a_packed_folder_is_unpacked_first(self):
        """A dump in a tar or zip: `load` mixes no collections; the commands that restore it are named."""
        dump = self.folder(*(Namespace("a", name, [{"_id": 1}]) for name in "xy"))
        for kind, unpack in (("zip", "unzip -d dump "), ("gztar", "mkdir dump && tar -xf ")):
            path = shutil.make_archive(dump, kind, self.scratch, dump.name)
            for command in (("restore", "--dry-run"), ("load", "--sink", "null", "--skip-other")):
                self.shardload(*command, path, code=support.EXIT_SOURCE, message=(
                    unpack + path, f" && shardload restore dump/{dump.name}\n"))
            self.parse("--include", "x.bson", path)
        self.parse("--skip-other", "-", stdin=pathlib.Path(path).read_bytes(), code=support.EXIT_SOURCE)
