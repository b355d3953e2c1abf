# SPDX-License-Identifier: Apache-2.0
"""--embed: each document has exactly the records of its key, in the order of their text; records
that are in no document are counted and written to a file; and what cannot be joined is refused
before anything is loaded."""
import gzip
import json
import os
import random
import re
import signal
import time
import zipfile
import zlib

import archive_making as making
import support
from support import bson

ORDERS = 5000


def tables(seed):
    """Orders and their items in random order: (orders.csv, items.csv, order -> its items)."""
    draw = random.Random(seed)
    keys = draw.sample(range(10 ** 6), ORDERS)
    owners = [key for key in keys for _ in range(draw.choice([0, 1, 1, 3, 12]))]
    draw.shuffle(owners)
    items, lines = {}, ["l_orderkey,l_part,l_quantity"]
    for number, key in enumerate(owners):
        lines.append(f"{key},part {number},{number % 50}")
        items.setdefault(key, []).append({"l_part": f"part {number}", "l_quantity": number % 50})
    orders = ["o_orderkey,o_customer"] + [f"{key},customer {key % 97}" for key in keys]
    return "\n".join(orders) + "\n", "\n".join(lines) + "\n", items


class Tables(support.Case):
    def assert_joined(self, orders, source, items, *words, code=support.EXIT_OK):
        """Loads the orders with the records of `source`, and compares the documents with `items`. Returns the
        work directory."""
        found, work = self.dump_decoded("--embed", f"items={source}", "--on", "o_orderkey=l_orderkey", *words,
                                        self.file("orders.csv", orders), code=code)
        self.assertEqual(len(found), ORDERS)
        for document in found:
            key = document.pop("o_orderkey")
            expected = {"o_customer": f"customer {key % 97}"}
            if key in items:
                expected["items"] = items[key]
            self.assertEqual(document, expected)
        return work

    def test_each_order_has_its_items(self):
        orders, lines, items = tables(1)
        for source, threads in ((self.file("items.csv", lines), 1), (self.zipped("items.csv.gz", lines), 4)):
            work = self.assert_joined(orders, source, items, "-j", threads)
            figures = support.run_record(work)["embed"]
            count = sum(map(len, items.values()))
            self.assertEqual([figures[name] for name in
                              ("records", "embedded", "keys", "documentsWith", "unmatched")],
                             [count, count, len(items), len(items), 0])
            self.assertFalse((work / "embed/unmatched.json").exists())

    def test_the_orders_may_come_from_a_pipe(self):
        """Their first bytes are looked at twice, and can be read only once."""
        orders, lines, items = tables(3)
        source = self.file("items.csv", lines)
        for name, text in (("short", orders[:2000]), ("long", orders), ("gz", orders)):
            with self.subTest(name=name):
                text = text[:text.rindex("\n") + 1].encode()
                outcome = self.shardload("load", "--sink", f"bson:{name}.bson", "--work-dir", name, "--embed",
                                         f"items={source}", "--on", "o_orderkey=l_orderkey", "-",
                                         stdin=gzip.compress(text) if name == "gz" else text, code=None)
                self.assertIn(outcome.code, (support.EXIT_OK, support.EXIT_REJECTS), outcome.err)
                found = bson.decode_all((self.scratch / f"{name}.bson").read_bytes())
                self.assertEqual([f"{d['o_orderkey']},{d['o_customer']}" for d in found],
                                 text.decode().splitlines()[1:])
                self.assertEqual([d.get("items") for d in found], [items.get(d["o_orderkey"]) for d in found])

    def test_records_in_no_document_are_written_to_a_file(self):
        orders, lines, items = tables(2)
        lines += "2000001,a,1\n2000002,b,2\n2000001,c,3\n,d,4\n"
        work = self.assert_joined(orders, self.file("items.csv", lines), items, code=support.EXIT_REJECTS)
        found = [json.loads(line) for line in (work / "embed/unmatched.json").open()]
        self.assertCountEqual(found, [
            {"o_orderkey": 2000001, "items": [{"l_part": "a", "l_quantity": 1},
                                              {"l_part": "c", "l_quantity": 3}]},
            {"o_orderkey": 2000002, "items": [{"l_part": "b", "l_quantity": 2}]},
            {"items": [{"l_part": "d", "l_quantity": 4}]}])
        figures = support.run_record(work)["embed"]
        self.assertEqual((figures["unmatched"], figures["withoutKey"]), (4, 1))
        # The file is a source like any other.
        again, _ = self.dump(work / "embed/unmatched.json")
        self.assertEqual(len(again), 3)

    def test_rejected_records_of_either_source_are_reported(self):
        orders, lines, items = tables(3)
        lines += "7,too,many,fields,9\n"
        work = self.assert_joined(orders, self.file("items.csv", lines), items, code=support.EXIT_REJECTS)
        self.assertEqual(support.run_record(work)["embed"]["rejected"], 1)
        (row,) = support.reject_rows(work / "embed/load")
        self.assertEqual(row["line"], str(sum(map(len, items.values())) + 2))

    def test_the_summary_names_the_table_of_each_reason(self):
        orders = self.file("orders.csv", "key,n\n" + "".join(f"{n},2\n" for n in range(20)) + "7,8,9\n")
        items = self.file("items.csv", "key,part\n" + "".join(f"{n},a\n" for n in range(20)) * 2 + "1,a,b\n")
        _, work = self.dump("--embed", f"items={items}", "--on", "key", orders, code=support.EXIT_REJECTS)
        log = (work / "shardload.log").read_text("utf-8")
        first, second = (re.search(rf"rejects of {re.escape(str(path))}{more} by reason.*\n.*\n.*", log)
                         for path, more in ((orders, ""), (items, r" \(--embed items\)")))
        self.assertIn("orders.csv, line 22", first[0])
        self.assertIn("items.csv, line 42", second[0])
        self.assertLess(first.start(), second.start())

    def test_a_document_that_becomes_too_large_is_rejected(self):
        big = "x" * (1 << 20)
        lines = "k,text\n" + "".join(f"{1 + i % 2},{big}\n" for i in range(22)) + \
            "".join(f"1,{big}\n" for _ in range(6))
        raw, work = self.dump("--embed", f"items={self.file('items.csv', lines)}", "--on", "k",
                              self.file("orders.csv", "k,v\n1,a\n2,b\n"),
                              code=support.EXIT_REJECTS)
        (document,) = map(bson.decode, raw)
        self.assertEqual((document["k"], len(document["items"])), (2, 11))
        (row,) = support.reject_rows(work)
        self.assertIn("with its 17 records of items the document is larger than 16 MiB", row["reason"])
        self.assertEqual((row["offset"], row["column"]), ("4", "items"))
        self.assert_accounting(work, records=2, inserted=1, rejectedByParser=1)
        orphans = [json.loads(line) for line in (work / "embed/unmatched.json").open()]
        self.assertEqual([(one["k"], len(one["items"])) for one in orphans], [(1, 1)] * 17)

    def test_a_repeated_load_reads_a_changed_table_again(self):
        """Also if only the ctime shows the change: the size and the time are those of the first load,
        and the fingerprint covers the first and last 64 KiB only."""
        orders = self.file("orders.csv", "k,v\n" + "".join(f"{n},a\n" for n in range(3000)))
        for name, pack in (("items.csv", self.file), ("items.csv.zip", self.packed)):
            times = None
            values = [random.Random(n).randbytes(60).hex() for n in range(3000)]
            for restore in (None, False, True):
                if restore is not None:
                    values[1500] = values[1500][::-1]
                path = pack(name, "k,w\n" + "".join(f"{n},{w}\n" for n, w in enumerate(values)))
                if restore:
                    os.utime(path, ns=times)
                times = path.stat().st_atime_ns, path.stat().st_mtime_ns
                documents, _ = self.dump_decoded("--work-dir", self.scratch / name[6:],
                                                 "--embed", f"items={path}", "--on", "k", orders)
                found = {one["k"]: one["items"] for one in documents}
                self.assertEqual(found, {n: [{"w": w}] for n, w in enumerate(values)})

    def test_a_repeated_load_with_other_options_reads_the_table_again(self):
        """With each option that changes the records or their keys; with the same options, the store is used."""
        orders = self.file("orders.csv", "a,b\n1,7\n2,8\n3,9\n")
        items = self.file("items.csv", b"a;c;text\n1;8; x \n1;9;\xff\n2;7;'y;z'\n8;3;v\n2;1\n")
        schema = self.file("text.yaml", "name: items\ndelimiter: ';'\nheader: true\ncolumns:\n"
                                        "  - {name: a, type: int}\n  - {name: c, type: text}\n  - {name: text}\n")
        first = {"--embed": f"items={items}", "--on": "a"}
        (self.scratch / "work").mkdir()
        for number, (name, value) in enumerate((
                ("--on", "b=c"), ("--on", "a=c"), ("--embed", f"list={items}"), ("--embed-schema", schema),
                ("--trim", None), ("--encoding", "latin-1"), ("--quote", "'"), ("--ragged", "pad"),
                ("--types", "text"))):
            with self.subTest(name):
                used, built = [], []
                for options in (first, first, {**first, name: value}):
                    words = [word for pair in options.items() for word in pair if word]
                    work = self.scratch / f"work/{number}"
                    documents, _ = self.dump_decoded(*words, "--work-dir", work, orders, code=None)
                    used.append(documents)
                    built.append((work / "embed/complete").stat().st_ctime_ns)
                fresh, _ = self.dump_decoded(*words, orders, code=None)
                self.assertEqual(used[0], used[1])
                self.assertEqual(built[0], built[1])
                self.assertEqual(used[2], fresh)
                self.assertNotEqual(used[2], used[0])
                self.assertNotEqual(built[2], built[1])

    def packed(self, name, content):
        """A zip archive that is not compressed, so its size does not depend on the text."""
        path = self.scratch / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("items.csv"), content)
        return path

    def test_a_table_that_is_changed_while_it_is_read_ends_the_load(self):
        """The load of the records has perhaps not opened it yet, but its types have been read."""
        orders = self.file("orders.csv", "k,v\n1,a\n")
        items = self.file("items.csv", "k,w\n" + "1,2345678901234567890\n" * 1500000)
        for attempt in range(20):  # until the program is stopped before it has read all records
            work = self.scratch / f"work-{attempt}"
            running = self.start("shardload", "load", "--sink", "null", "--work-dir", work, "-j", 1,
                                 "--embed", f"items={items}", "--on", "k", orders)
            while running.running() and "reading" not in running.text():
                time.sleep(0.001)
            running.signal(signal.SIGSTOP)
            if not (work / "embed/load/run.json").exists():
                break
            running.stop()
        with items.open("r+b") as file:
            file.seek(items.stat().st_size // 2)
            file.write(b"9")
        self.assertFalse((work / "embed/complete").exists())
        running.signal(signal.SIGCONT)
        outcome = running.wait().expect(support.EXIT_SOURCE)
        self.assertIn("while it was being read", outcome.err)
        self.assertFalse((work / "embed/complete").exists())

    def test_a_table_that_is_changed_after_it_was_read(self):
        items = self.file("items.csv", "k,w\n1,2\n")
        for change in ("", "2,3\n"):
            work = self.scratch / f"work{len(change)}"
            running, feed = self.start_with_pipe(
                "shardload", "load", "--sink", "null", "--work-dir", work, "--embed", f"items={items}",
                "--on", "k", "-", text=b"k,v\n" + b"1,abc\n" * 20000)
            self.wait_for((work / "embed/complete").exists, "the store")
            with items.open("a") as file:
                file.write(change)
            feed.close()
            outcome = running.wait().expect(support.EXIT_OK)
            self.assertEqual("items.csv has changed since its records were read" in outcome.err, change != "")

    def test_records_are_read_as_without_embed(self):
        """Prices such as 1.000 in entries that are not sampled became 1, as after a resume."""
        entries = [(f"{name}.csv", "id,price,a,b\n" + f"{name},1.15,x,y\n" * 9) for name in "abcd"]
        entries.append(("e.csv", "id;price;a;b;shop\ne;1.000;x;y;z\ne;2.001;x;y;z\n"))
        path = self.file("all.zip", making.zip_of(entries))
        alone, _ = self.dump_decoded(path)
        found, _ = self.dump_decoded("--embed", f"i={path}", "--on", "id",
                                     self.file("a.json", "".join(f'{{"id":"{n}"}}' for n in "eabcd")))
        self.assertEqual([one["price"] for one in found[0]["i"]], ["1.000", "2.001"])
        self.assertEqual([one["price"] for one in alone[-2:]], ["1.000", "2.001"])

    def test_a_source_without_records_embeds_nothing(self):
        raw, work = self.dump("--embed", f"i={self.file('items.csv', 'k,text' + chr(10))}", "--on",
                              "k", self.file("orders.csv", "k,v\n1,a\n2,b\n"))
        self.assertEqual([bson.decode(one).keys() for one in raw], [{"_id", "k", "v"}] * 2)
        self.assertEqual(support.run_record(work)["embed"]["records"], 0)

    def test_a_field_that_documents_have_already_is_a_reject(self):
        items = self.file("items.csv", "k,w\n1,2\n1,3\n")
        raw, work = self.dump("--embed", f"v={items}", "--on", "k", self.file("a.json", '{"k":1}\n{"k":2,"v":0}\n'),
                              code=support.EXIT_REJECTS)
        self.assertEqual([bson.decode(one)["v"] for one in raw], [[{"w": 2}, {"w": 3}]])
        (row,) = support.reject_rows(work)
        self.assertIn("already has a field v", row["reason"])


class OtherFormats(support.Case):
    def test_mot_tests_have_their_items(self):
        """By the names of the columns, whatever the keys of the documents are."""
        (path,) = self.generate("F", 300)
        rows = [line.split("|") for line in path.read_text("utf-8").splitlines()[1:]]
        lines = ["test_id|rfr_id|rfr_type_code|location_id|dangerous_mark"]
        lines += [f"{row[0]}|{31000 + i}|F|9|{'D' if i % 3 else ''}" for i, row in enumerate(rows)
                  for _ in range(i % 3)]
        items = self.file("test_item_2023.csv", "\n".join(lines) + "\n")
        for names, array in (("short", "x"), ("long", "items")):
            raw, work = self.dump("--names", names, "--embed", f"{array}={items}", "--on", "test_id", path)
            documents = {one["t" if names == "short" else "test_id"]: one for one in map(bson.decode, raw)}
            for i, row in enumerate(rows):
                found = documents[int(row[0])].get(array, [])
                self.assertEqual(len(found), i % 3)
                self.assertEqual(found[:1], [found[0]] * min(1, i % 3) if found else [])
                for item in found:
                    self.assertEqual(item["q" if names == "short" else "rfr_id"], 31000 + i)
                    self.assertNotIn("_id", item)
                    self.assertNotIn("test_id", item)
            self.assertEqual(support.run_record(work)["embed"]["unmatched"], 0)

    def test_json_by_paths_and_several_fields(self):
        """Numbers are equal whatever their types; an _id of a record stays, one that was made for
        it does not."""
        parents = [{"_id": f"p{i}", "a": i, "b": {"c": f"x{i % 3}"}} for i in range(50)]
        children = [{"p": float(i % 60), "q": f"x{i % 3}", "n": i} for i in range(200)]
        for i in range(0, 200, 2):
            children[i] = {"_id": 1000 + i, **children[i]}
        source = self.file("children.json", "\n".join(map(json.dumps, children)))
        raw, work = self.dump("--embed", f"list={source}", "--on", "a=p,b.c=q",
                              self.file("parents.json", json.dumps(parents)),
                              code=support.EXIT_REJECTS)
        for document in map(bson.decode, raw):
            expected = [{key: child[key] for key in ("_id", "n") if key in child}
                        for child in children
                        if child["p"] == document["a"] and child["q"] == document["b"]["c"]]
            self.assertEqual(document.get("list", []), expected)
        orphans = sum(child["p"] >= 50 for child in children)
        self.assertEqual(support.run_record(work)["embed"]["unmatched"], orphans)

    def test_decimals_join_numbers_of_other_types(self):
        """Each decimal with the double and the integer of its value, if there is one."""
        values = [("1.0", 1.0, 1), ("2.50", 2.5, None), ("3E+2", 300.0, 300), ("0", -0.0, 0),
                  ("9007199254740993", None, 9007199254740993), ("12345678901234567890123", None, None)]
        source = self.file("numbers.bson", b"".join(bson.encode({"k": bson.Decimal128(text)}) for text, *_ in values))
        for kind in range(3):
            records = [{"k": bson.Decimal128("0" + row[0]) if kind == 0 else row[kind], "n": n}
                       for n, row in enumerate(values) if row[kind] is not None]
            items = self.file(f"items-{kind}.bson", b"".join(map(bson.encode, records)))
            found, _ = self.dump_decoded("--embed", f"items={items}", "--on", "k", source)
            self.assertEqual([one.get("items") for one in found],
                             [[{"n": n}] if row[kind] is not None else None for n, row in enumerate(values)])

    def test_a_schema_for_each_source(self):
        """TPC-H's tables have no header."""
        orders = self.file("orders.tbl", "1|x|\n2|y|\n")
        items = self.file("lineitem.tbl", "1|\xe4|\n2|b|\n1|c|\n".encode("latin-1"))
        schemas = [self.file(f"{name}.yaml", f"name: {key}\n{more}delimiter: '|'\nheader: false\n"
                                             f"columns:\n  - name: {key}\n    type: int\n"
                                             f"  - name: text\n  - name: end\n")
                   for name, key, more in (("orders", "o", ""), ("items", "l", "encoding: cp1252\n"))]
        raw, _ = self.dump("--format", "delimited", "--schema", schemas[0], "--embed-schema",
                           schemas[1], "--embed", f"items={items}", "--on", "o=l", orders)
        self.assertEqual([bson.decode(one)["items"] for one in raw],
                         [[{"text": "\xe4"}, {"text": "c"}], [{"text": "b"}]])


class Refused(support.Case):
    def refused(self, *words, code=support.EXIT_USAGE):
        return self.shardload("load", "--sink", "bson:x.bson", "--work-dir", "work", *words, code=code).err

    def test_what_cannot_be_joined(self):
        orders = self.file("orders.csv", "o,v\n1,a\n2,b\n")
        items = self.file("items.csv", "l,w\n1,5\n2,6\n")
        texts = self.file("texts.csv", "l,w\nx1,5\nx2,6\n")
        for on, source, message in (
                ("z=l", items, "the first 2 records of orders.csv have no z; their fields are "
                               "_id, o, v"),
                ("o=z", items, "the first 2 records of items.csv have no z"),
                ("o=l", texts, "o is an integer, and l of texts.csv is text"),
                ("o=", items, "--on o=: give up to 8 fields"),
                (",", items, "--on ,: give up to 8 fields")):
            error = self.refused("--embed", f"i={source.name}", "--on", on, orders.name)
            self.assertIn(message, error)
        for words, message in (
                (["--embed", "i=items.csv"], "--embed needs --on"),
                (["--on", "o"], "--on and --embed-schema are for --embed"),
                (["--embed", "items.csv", "--on", "o"], "is not FIELD=FILE"),
                (["--embed", "$i=items.csv", "--on", "o"], "is not FIELD=FILE"),
                (["--embed", "a.b=items.csv", "--on", "o"], "is not FIELD=FILE"),
                (["--embed", "i=items.csv", "--on", "o=l", "--part", "1/2"], "--embed with --part")):
            self.assertIn(message, self.refused(*words, orders.name))
        self.assertIn("no such file", self.refused("--embed", "i=none.csv", "--on", "o", orders.name,
                                                   code=support.EXIT_SOURCE).lower())
        self.assertEqual(list(self.scratch.glob("*.bson")), [])

    def test_the_first_records_have_no_key(self):
        """A foreign key may be empty: 120 records without one do not hide the next."""
        orders = self.file("orders.csv", "o,v\n" + ",a\n" * 120 + "1,b\n")
        items = self.file("items.csv", "l,w\n" + ",5\n" * 120 + "1,6\n")
        raw, work = self.dump("--embed", f"i={items}", "--on", "o=l", orders, code=support.EXIT_REJECTS)
        documents = [bson.decode(one) for one in raw]
        self.assertEqual([one["i"] for one in documents if "i" in one], [[{"w": 6}]])
        self.assertEqual(len(documents), 121)
        self.assertEqual(support.run_record(work)["embed"]["unmatched"], 120)

    def test_a_column_that_becomes_the_id(self):
        items = self.file("items.csv", "l,w\n1,6\n")
        texts = {"orders.csv": "o,v\n1,a\n2,b\n", "quoted.csv": 'o,v\n1,"a"\n2,b\n',
                 "orders.json": '{"o":1,"v":"a"}\n{"o":2,"v":"b"}\n'}
        for name, text in texts.items():
            for ids, first in (("o", 1), ("o,v", {"o": 1, "v": "a"})):
                path = self.file(name, text)
                raw, _ = self.dump("--embed", f"i={items}", "--id-field", ids, "--on", "o=l", path)
                found = [bson.decode(one) for one in raw]
                self.assertEqual([(one["_id"], one["i"]) for one in found if "i" in one],
                                 [(first, [{"w": 6}])], (name, ids))
                if path.suffix == ".json":    # any record may have the field
                    continue
                self.assertRegex(self.refused("--embed", f"i={items}", "--id-field", ids, "--on", "x=l", path),
                                 "--on: .* (have no x|has no column of this name)")

    def test_an_id_that_was_the_position_in_another_load(self):
        """A record keeps its own _id, also one that an earlier load has made."""
        orders = self.file("orders.csv", "o,v\n1,a\n")
        ids = [bson.Int64((1 << 40) + number * 27) for number in range(3)]
        items = self.file("items.bson", b"".join(bson.encode({"_id": one, "l": 1}) for one in ids))
        raw, _ = self.dump("--embed", f"i={items}", "--on", "o=l", orders)
        self.assertEqual(bson.decode(raw[0])["i"], [{"_id": one} for one in ids])

    def test_a_forged_store_is_refused(self):
        """Its checksums are right, but a length, a number or an entry of its index is not."""
        words = ["load", "--sink", "null", "--work-dir", "w", "--embed",
                 f"i={self.file('i.csv', 'k,w' + chr(10) + '1,2' + chr(10))}", "--on", "k",
                 self.file("o.csv", "k,v\n1,a\n")]
        self.shardload(*words)
        facts = json.loads((self.scratch / "w/embed/complete").read_text())
        for name, at in (("groups", 8), ("groups", 16), ("groups", 19), ("groups", 20), ("groups", 23), ("index", 0),
                         ("index", 8)):
            path = self.scratch / "w/embed" / name
            good = path.read_bytes()
            forged = good[:at] + bytes([good[at] + 8]) + good[at + 1:]
            path.write_bytes(forged)
            (self.scratch / "w/embed/complete").write_text(json.dumps(
                {**facts, name + "Check": zlib.crc32(forged)}))
            outcome = self.shardload(*words, code=support.EXIT_USAGE)
            self.assertRegex(outcome.err, "its files are damaged|its index does not belong")
            path.write_bytes(good)
        for name, value in (("keys", 0), ("groupBytes", 0)):
            (self.scratch / "w/embed/complete").write_text(json.dumps({**facts, name: value}))
            self.assertIn("its numbers are wrong", self.shardload(*words, code=support.EXIT_USAGE).err)

    def test_a_forged_record_without_a_key_is_refused(self):
        """A length below that of its head was taken for 4 GiB, and one of the key led beyond the record."""
        self.file("i.csv", "k,w\n,2\n1,3\n")
        words = ["load", "--sink", "null", "--work-dir", "w", "--embed", "i=i.csv", "--on", "k",
                 self.file("o.csv", "k,v\n1,a\n")]
        self.assertIn("1 record of i.csv is in no document: see",
                      self.shardload(*words, code=support.EXIT_REJECTS).err)
        path = self.scratch / "w/embed/records/apart"
        good = path.read_bytes()
        for at, value in ((0, 8), (0, 23), (4, 0xFF), (24, 9)):
            path.write_bytes(good[:at] + bytes([value]) + good[at + 1:])
            self.assertIn("it is damaged", self.shardload(*words, code=support.EXIT_RESOURCES).err)

    def test_a_dump_of_two_tables_is_no_second_source(self):
        """The advice was an option that does not apply to the second source."""
        dump = self.file("d.sql", "CREATE TABLE a (k int);\nINSERT INTO a VALUES (1);\n"
                                  "CREATE TABLE b (k int, w int);\nINSERT INTO b VALUES (1, 2);\n")
        error = self.refused("--embed", f"i={dump}", "--on", "k", self.file("o.csv", "k,v\n1,a\n"),
                             code=support.EXIT_SOURCE)
        self.assertIn("export the table alone (mysqldump DATABASE TABLE", error)

    def test_damaged_records_to_embed_end_the_load(self):
        damaged = gzip.compress(b"k,v\n" + b"1,2\n" * 100000)[:-9]
        error = self.refused("--embed", f"i={self.file('items.csv.gz', damaged)}", "--on", "k",
                             self.file("orders.csv", "k,w\n1,a\n"), code=support.EXIT_SOURCE)
        self.assertIn("could not be read (see above)", error)
