# SPDX-License-Identifier: Apache-2.0
"""The loader computes the shard of each document as the server does, for every kind of shard key.

The router forwards a bulk insert unchanged if all its documents belong to one shard, and splits it
otherwise. So the number of insert commands that arrive at the shards must be the number of batches
that the loader has sent.
"""
import datetime

import support
from support import bson

LOWEST, HIGHEST = (-1,), (127,)


def rank(value):
    """A sort key, by which Python orders values of a shard key as the server does."""
    if isinstance(value, bson.min_key.MinKey):
        return LOWEST
    if isinstance(value, bson.max_key.MaxKey):
        return HIGHEST
    if value is None:
        return (5,)
    if isinstance(value, str):
        return (15, value.encode("utf-8"))
    if isinstance(value, datetime.datetime):
        return (45, value)
    assert isinstance(value, (int, float)) and not isinstance(value, bool), value
    return (10, value)


CACHE_INSERTS = 6         # of two shards during a load of 40 batches or more


class Routing(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.shards = self.shard_clients()

    def insert_commands(self):
        """Shard -> number of insert commands that it has received."""
        return {name: client.admin.command("serverStatus")["metrics"]["commands"]["insert"]["total"]
                for name, client in self.shards.items()}

    def arrived_since(self, before):
        return {name: total - before[name] for name, total in self.insert_commands().items()}

    def assert_arrived(self, arrived, batches, registered=0):
        """The batches were not split. `registered`: inserts that register sources. A shard that
        refreshes its cached chunk map inserts into it, which is counted as well."""
        self.assertIn(sum(arrived.values()) - batches - registered, range(CACHE_INSERTS + 1), arrived)

    def assert_documents_are_where_the_map_says(self, key):
        """Each document is on the shard that owns it. Returns shard -> number of documents. A server that does not
        show the hash of a value only counts them."""
        if "hashed" in key.values() and not self.is_at_least("5.0"):
            return self.counts_by_shard()
        projection = {f"k{i}": {"$toHashedIndexKey": f"${field}"} if kind == "hashed" else
                  {"$ifNull": [f"${field}", None]} for i, (field, kind) in enumerate(key.items())}
        chunks = [([rank(value) for value in chunk["min"].values()],
                   [rank(value) for value in chunk["max"].values()], chunk["shard"])
                  for chunk in self.chunks()]
        held = {}
        for shard, client in self.shards.items():
            held[shard] = 0
            for document in client[self.database_name].t.aggregate([{"$project": projection}]):
                values = [rank(document[f"k{i}"]) for i in range(len(key))]
                owners = [owner for low, high, owner in chunks if low <= values < high]
                self.assertEqual(owners, [shard], document)
                held[shard] += 1
        return held

    def mot(self):
        """A small file, and a larger one."""
        (first,) = self.generate("B", 2000, "--seed", 41)
        (second,) = self.generate("B", 40000, "--seed", 42)
        return [first], [second]

    def isd(self):
        """A station, and four others."""
        first, *others = support.isd_samples(
            "010060-99999-2014", "010010-99999-1988", "722540-13904-2014", "722874-93134-2007.gz",
            "725300-94846-1983-jan-jun")
        return [first], others

    def assert_no_batch_is_split(self, key, sources, *more):
        """Loads two lists of sources, and counts the inserts of the second load, which need not
        create or shard the collection."""
        first, second = sources
        options = ["--shard-key", support.json.dumps(key), "-j", 2, "--batch-size", 500, *more]
        self.load(*options, *first)
        stored = self.database.t.count_documents({})
        before = self.insert_commands()
        _, work = self.load(*options, *second)
        arrived = self.arrived_since(before)
        self.assert_accounting(work, alreadyStored=0, rejectedByParser=0, rejectedByServer=0, retries=0)
        record = support.run_record(work)
        self.assertIs(record["verification"]["ok"], True)
        total, batches = record["accounting"]["inserted"], record["accounting"]["batches"]
        self.assert_arrived(arrived, batches, registered=1)
        held = self.assert_documents_are_where_the_map_says(key)
        self.assertEqual(sum(held.values()), stored + total)
        for shard, count in held.items():
            self.assertGreater(count, total / 20, f"{held}: too few documents on a shard")
            self.assertGreater(arrived[shard], 0)
        return batches

    def test_the_router_splits_an_insert_for_several_shards(self):
        """So the counts of the other tests are significant."""
        self.shard({"v": "hashed"})
        self.database.t.insert_many([{"v": i} for i in range(100)], ordered=False)
        before = self.insert_commands()
        self.database.t.insert_many([{"v": i} for i in range(100)], ordered=False)
        arrived = self.arrived_since(before)
        self.assertEqual(list(arrived.values()), [1] * len(self.shards), arrived)

    def test_a_hashed_number(self):
        batches = self.assert_no_batch_is_split({"v": "hashed"}, self.mot())
        # All batches are full, except the last one of each thread and shard.
        self.assertLessEqual(batches, 40000 / 500 + 2 * len(self.shards))

    def test_a_hashed_test_number(self):
        self.assert_no_batch_is_split({"t": "hashed"}, self.mot())

    def test_a_hashed_id(self):
        self.assert_no_batch_is_split({"_id": "hashed"}, self.mot())

    def test_small_batches_by_bytes(self):
        self.assert_no_batch_is_split({"v": "hashed"}, self.mot(), "--batch-bytes", "64KiB", "--batch-size", 5000)

    def scatter(self, key, bounds):
        """Shards the collection, splits it at the bounds, and moves the chunks to the shards in
        turn."""
        namespace = f"{self.database_name}.t"
        self.shard(key)
        for bound in bounds:
            self.client.admin.command("split", namespace, middle=bound)
        names = sorted(self.shards)
        for i, chunk in enumerate(self.chunks()):
            to = names[i % len(names)]
            if chunk["shard"] != to:
                self.client.admin.command("moveChunk", namespace, bounds=[chunk["min"], chunk["max"]], to=to)

    def test_ranges_of_two_fields(self):
        key = {"k": 1, "o": 1}
        self.scatter(key, [{"k": "FORD", "o": "FIESTA"}, {"k": "FORD", "o": "FOCUS"},
                           {"k": "N", "o": bson.min_key.MinKey()}])
        self.assert_no_batch_is_split(key, self.mot())

    def test_a_hash_within_ranges(self):
        key = {"k": 1, "v": "hashed"}
        self.scatter(key, [{"k": "FORD", "v": bson.int64.Int64(0)},
                           {"k": "FORD", "v": bson.int64.Int64(2 ** 62)},
                           {"k": "R", "v": bson.min_key.MinKey()}])
        self.assert_no_batch_is_split(key, self.mot())

    def test_the_key_of_an_existing_collection(self):
        """Without --shard-key, also for records that lack its fields, a second load and --resume."""
        rows = "".join(f"{n},{'' if n % 10 == 0 else f'm{n % 997:03}@example.org'},{n % 7}\n" for n in range(1, 12001))
        first = rows[:rows.index("\n", len(rows) // 2) + 1]
        second = rows[len(first):]
        csv = [self.file(f"{i}.csv", "n,email,land\n" + part) for i, part in enumerate((first, second))]
        own = [self.file(f"{i}.json", "".join(
            support.json.dumps({"_id": f"{a}", **({"email": b} if b else {}), "land": int(c)}) + "\n"
            for a, b, c in (line.split(",") for line in part.splitlines())))
            for i, part in enumerate((first, second))]
        lowest = bson.min_key.MinKey()
        for key, bounds in (({"email": 1}, [{"email": "m3"}, {"email": "m7"}]),
                            ({"land": 1, "email": "hashed"}, [{"land": 3, "email": lowest}]),
                            ({"email": "hashed"}, []), ({"_id": "hashed"}, [])):
            for sources in (csv, own) if key == {"email": 1} else (csv,):
                with self.subTest(key=key, source=sources[0].name):
                    self.client.drop_database(self.database_name)
                    self.scatter(key, bounds)
                    before = self.insert_commands()
                    _, work = self.load("--batch-size", 100, sources[0])
                    batches = support.run_record(work)["accounting"]["batches"]
                    self.assert_arrived(self.arrived_since(before), batches, registered=1)
                    work = self.scratch / f"w{next(self._counter)}"
                    words = "--batch-size", 50, sources[1], "--work-dir", work
                    running = self.start("shardload", "load", *self.target(), *words, "--rate-limit", "5000")
                    self.wait_for_documents(running, 7000)
                    running.interrupt()
                    self.shardload("load", *self.target(), *words, "--resume")
                    held = self.assert_documents_are_where_the_map_says(key)
                    self.assertEqual(sum(held.values()), 12000)
                    self.assertGreater(min(held.values()), 1000)
                    self.shardload("verify", *self.target(), "--content", *sources)

    def test_weather_by_hashed_station(self):
        self.assert_no_batch_is_split({"st": "hashed"}, self.isd())

    def test_weather_by_station_and_time(self):
        key = {"st": 1, "ts": 1}
        self.scatter(key, [{"st": "u010010", "ts": datetime.datetime(1988, 7, 1)},
                           {"st": "u722540", "ts": datetime.datetime(2014, 3, 1)},
                           {"st": "u722874", "ts": bson.min_key.MinKey()},
                           {"st": "u722874", "ts": datetime.datetime(2007, 5, 5, 5, 5)}])
        self.assert_no_batch_is_split(key, self.isd())

    def test_weather_by_a_field_within_a_field(self):
        self.assert_no_batch_is_split({"airTemperature.value": "hashed"}, self.isd())

    def test_a_hashed_sub_document_is_left_to_the_router(self):
        # The loader does not compute the hash of a document.
        first, second = self.isd()
        _, work = self.load("--shard-key", '{"position": "hashed"}', *first, *second)
        record = support.run_record(work)
        self.assertIs(record["verification"]["ok"], True)
        self.assertIs(record["accounting"]["addsUp"], True)
        held = self.assert_documents_are_where_the_map_says({"position": "hashed"})
        self.assertEqual(sum(held.values()), record["accounting"]["inserted"])
        self.assertGreater(min(held.values()), 1000)

    def test_ranges_of_id(self):
        path, total = self.file("year.txt", support.wide_text(7)), 7 * support.WIDE_ROWS
        self.load("--batch-size", 20, path)
        # The second load moves no chunks; a move causes inserts on the shards.
        before = self.insert_commands()
        _, work = self.load("--batch-size", 20, "--again", path)
        arrived = self.arrived_since(before)
        self.assert_accounting(work, inserted=0, alreadyStored=total)
        self.assert_arrived(arrived, support.run_record(work)["accounting"]["batches"])
        held = self.assert_documents_are_where_the_map_says({"_id": 1})
        self.assertGreater(min(held.values()), total / 3)

    def test_rejects_and_duplicates_are_counted_once(self):
        # With this shard key documents are copied from one buffer to another.
        (path,) = self.generate("G1", 20000, "--dirt", "heavy", "--bad", 25, "--seed", 45)
        options = ["--shard-key", '{"v": "hashed"}', "-j", 4, "--batch-size", 300]
        total = 20000 - 25
        _, work = self.load(*options, path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=total, alreadyStored=0, rejectedByParser=25, rejectedByServer=0)
        _, work = self.load(*options, "--again", path, code=support.EXIT_REJECTS)
        self.assert_accounting(work, inserted=0, alreadyStored=total, rejectedByParser=25, rejectedByServer=0)
        self.database.command("collMod", "t", validator={"m": {"$gte": 50000}})
        gone = self.database.t.delete_many({}).deleted_count
        self.assertEqual(gone, total)
        _, work = self.load(*options, "--again", path, code=support.EXIT_REJECTS)
        kept = self.database.t.count_documents({})
        self.assertGreater(kept, 1000)
        self.assert_accounting(work, inserted=kept, alreadyStored=0, rejectedByParser=25, rejectedByServer=total - kept)
        self.assertEqual(len(support.reject_rows(work)), 25 + total - kept)
