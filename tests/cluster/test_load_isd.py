# SPDX-License-Identifier: Apache-2.0
"""ISD files in a sharded cluster with the usual shard keys: the stored documents, their shards, and
the answers of published queries for such data."""
import datetime
import json

import answers
import isd_reader
import support

KEYS = ['{"_id": 1}', '{"st": "hashed"}', '{"st": 1, "ts": 1}']
SEVERAL_STATIONS = ["1901.gz", "quoted-records-a.txt", "011490-99999-1986.gz",
                    "066600-99999-2010-first50", "hadoop-book-sample-1949-1950.txt"]


def sample(name):
    return support.sample("isd", name)


class Weather(support.ClusterCase):
    def sources(self, collection="t"):
        """The numbers of the sources, from the _ids of the documents."""
        return sorted({support.key_of(raw) >> 40 for raw in self.stored(collection)})

    def read_all(self, names, numbers):
        return [document for name, number in zip(names, numbers)
                for document in isd_reader.read(sample(name), number=number).documents]

    # The shards of the documents

    def assert_on_their_shards(self, collection="t"):
        """The documents of each chunk are on the shard that owns it, and on no other shard. Returns
        shard -> number of documents."""
        chunks, key = self.chunks(collection), self.shard_key(collection)
        index = list(key.items())
        clients = self.shard_clients()
        counts = dict.fromkeys(clients, 0)
        stored = 0
        for name, client in clients.items():
            held = client[self.database_name][collection]
            count = held.count_documents({})
            for chunk in chunks:
                found = held.count_documents({}, hint=index) if not chunk["min"] else len(list(
                    held.find({}, dict.fromkeys(key, 1)).hint(index)
                    .min(list(chunk["min"].items())).max(list(chunk["max"].items()))))
                if chunk["shard"] == name:
                    counts[name] += found
                else:
                    self.assertEqual(found, 0, f"{chunk} has {found} documents on {name}")
            self.assertEqual(count, counts[name], f"{name} holds documents of no chunk of its own")
            stored += count
        self.assertEqual(stored, self.database[collection].count_documents({}))
        return counts

    def test_with_every_key_each_document_is_on_its_shard(self):
        expected = None
        for number, key in enumerate(KEYS):
            with self.subTest(key):
                collection = f"c{number}"
                _, work = self.load("-j", 2, "--batch-size", 700, "--shard-key", key,
                                    *support.isd_samples(*SEVERAL_STATIONS), collection=collection)
                numbers = self.sources(collection)
                self.assertEqual(len(numbers), len(SEVERAL_STATIONS))
                expected = self.read_all(SEVERAL_STATIONS, numbers)
                self.assert_documents(self.stored(collection), expected, key)
                self.assert_accounting(work, records=len(expected), inserted=len(expected), rejectedByServer=0)
                self.assertEqual(self.shard_key(collection), support.json.loads(key))
                counts = self.assert_on_their_shards(collection)
                self.assertEqual(sum(counts.values()), len(expected))
                self.assertIs(support.run_record(work)["verification"]["ok"], True)

    def test_stations_spread_by_their_hash(self):
        # The hash of a value is always the same: these 200 names are known to spread.
        line = sample("066600-99999-2010-first50").read_bytes().splitlines()[0]
        path = self.file("stations.txt", b"".join(
            line[:4] + b"%06d" % (10000 + 37 * n) + line[10:] + b"\n" for n in range(200)))
        self.load("--format", "isd", "--shard-key", '{"st": "hashed"}', path)
        counts = self.assert_on_their_shards()
        self.assertEqual(sum(counts.values()), 200)
        self.assertGreater(min(counts.values()), 60)

    def test_a_station_is_on_one_shard(self):
        self.load("--shard-key", '{"st": "hashed"}', "--batch-size", 100, sample("1901.gz"))
        station = {"st": "u029070"}
        held = [client[self.database_name].t.count_documents(station) for client in self.shard_clients().values()]
        self.assertEqual(sorted(held), [0, 1095])
        self.assertEqual(self.database.t.count_documents(station), 1095)

    # Queries

    def test_the_index_by_time_and_station(self):
        self.load("--shard-key", '{"st": "hashed"}', "--index", '{"ts": 1, "st": 1}', sample("1901.gz"))
        keys = [list(index["key"].items()) for index in self.database.t.list_indexes()]
        self.assertIn([("ts", 1), ("st", 1)], keys)
        for client in self.shard_clients().values():
            held = client[self.database_name].t
            if held.count_documents({}) > 0:
                self.assertIn("ts_1_st_1", held.index_information())

    def test_published_queries_have_the_right_answers(self):
        """Queries from the documentation of MongoDB's public weather sample."""
        name = "722874-93134-2007.gz"
        self.load("--shard-key", '{"st": "hashed"}', "--index", '{"ts": 1, "st": 1}',
                  "--index", '{"position": "2dsphere"}', sample(name), sample("1901.gz"))
        documents = self.read_all([name, "1901.gz"], [1, 2])
        data = self.database.t

        moment = datetime.datetime(2007, 7, 4, 20, 47)
        matching = [document for document in documents if document["st"] == "u722874" and document["ts"] == moment]
        self.assertEqual(data.count_documents({"st": "u722874", "ts": moment}), len(matching))

        warm = {"airTemperature.value": {"$gt": 30}, "airTemperature.quality": "1"}
        self.assertEqual(data.count_documents(warm), sum(
            document.get("airTemperature", {}).get("value", -99) > 30 and
            document["airTemperature"]["quality"] == "1" for document in documents))

        extremes = {entry["_id"]: entry for entry in data.aggregate([
            {"$match": {"airTemperature.value": {"$lt": 999}}},
            {"$group": {"_id": "$st", "low": {"$min": "$airTemperature.value"},
                        "high": {"$max": "$airTemperature.value"}, "count": {"$sum": 1}}}])}
        by_station = {}
        for document in documents:
            if "value" in document.get("airTemperature", {}):
                by_station.setdefault(document["st"], []).append(document["airTemperature"]["value"])
        self.assertEqual(
            {st: (entry["low"], entry["high"], entry["count"]) for st, entry in extremes.items()},
            {st: (min(values), max(values), len(values)) for st, values in by_station.items()})

        near = data.count_documents({"position": {"$geoWithin": {"$centerSphere": [[-118.3, 34.0], 100 / 6378.1]}}})
        self.assertEqual(near, sum(document["st"] == "u722874" for document in documents))

        layered = {"sections": "GD1", "skyCoverSummationState.coverage.value": "4"}
        self.assertEqual(data.count_documents(layered), sum(
            any(layer.get("coverage", {}).get("value") == "4"
                for layer in document.get("skyCoverSummationState", []))
            for document in documents))

        rain = list(data.aggregate([
            {"$match": {"st": "u722874"}}, {"$unwind": "$liquidPrecipitation"},
            {"$match": {"liquidPrecipitation.period": 1}},
            {"$group": {"_id": {"$month": "$ts"},
                        "wettest": {"$max": "$liquidPrecipitation.depth"}}},
            {"$sort": {"_id": 1}}]))
        wettest = {}
        for document in documents:
            for entry in document.get("liquidPrecipitation", []):
                if document["st"] == "u722874" and entry.get("period") == 1:
                    month = document["ts"].month
                    wettest[month] = max(wettest.get(month, 0), entry.get("depth", 0))
        self.assertEqual({entry["_id"]: entry["wettest"] or 0 for entry in rain}, wettest)

    def test_the_queries_of_the_suite_give_the_answers_of_the_independent_reader(self):
        path = self.scratch / "weather"
        self.run_program("shardload-datagen", "--format", "isd", "--rows", "30k", "--stations", "600",
                         path).expect(support.EXIT_OK)
        self.load("--index", '{"ts": 1, "st": 1}', "--index", '{"position": "2dsphere"}', path)
        found = answers.of("isd", [path])
        self.assertEqual([name for name, answer in found["answers"].items() if not answer], [])
        self.assertEqual(len(found["answers"]["monthly-means"]), 500)
        outcome = self.run_program("shardquery", "run", *self.target(), "--repeat", 1, "--answers",
                                   self.file("answers.json", json.dumps(found)), "isd")
        if not self.is_at_least("5.0"):
            outcome.expect(support.EXIT_CLUSTER, "temperature-swing: Unrecognized expression '$dateTrunc'")
            self.assertEqual(outcome.out.count("  ok\n"), len(found["answers"]) - 1)
            return
        outcome.expect(support.EXIT_OK)

    def test_both_formats_of_one_station_agree(self):
        lite = sample("isd-lite/029070-99999-1901.gz")
        self.load(sample("1901.gz"))
        self.load(lite, collection="lite")
        whole = {(entry["st"], entry["ts"]): entry for entry in self.database.t.find()}
        hours = list(self.database.lite.find())
        self.assertEqual(len(hours), 1095)
        for hour in hours:
            self.assertEqual(hour.get("airTemperature", {}).get("value"),
                             whole[hour["st"], hour["ts"]].get("airTemperature", {}).get("value"))

    def test_a_table_and_packed_records_in_one_collection(self):
        table = sample("global-hourly-csv/00702699999-2017.csv.gz")
        self.load("--shard-key", '{"st": "hashed"}', "--index", '{"position": "2dsphere"}', table,
                  sample("066600-99999-2010-first50"))
        self.assertEqual(self.database.t.count_documents({"st": "u007026"}), 6843)
        self.assertEqual(self.database.t.count_documents({"position": {"$geoWithin": {
            "$centerSphere": [[8.567, 47.383], 0.01]}}}), 50)
        self.assert_on_their_shards()

    def test_the_same_station_year_twice_is_refused(self):
        path = sample("011490-99999-1986.gz")
        self.load("--shard-key", '{"st": "hashed"}', path)
        before = sorted(self.stored())
        self.load("--shard-key", '{"st": "hashed"}', path, code=support.EXIT_SOURCE)
        _, work = self.load("--shard-key", '{"st": "hashed"}', "--again", path)
        self.assertEqual(sorted(self.stored()), before)
        self.assert_accounting(work, records=1328, inserted=0, alreadyStored=1328)
