# SPDX-License-Identifier: Apache-2.0
"""Writes of every kind to a replica set, by a thread, until it is stopped."""
import random
import threading

import pymongo

DOCUMENTS = 3000
FILLER = "x" * 3000     # makes a dump so large that it blocks when nothing reads it


def array_changes(draw):
    return draw.choice([
        {"$push": {"list": draw.randrange(100)}}, {"$pop": {"list": draw.choice((-1, 1))}},
        {"$pull": {"list": draw.randrange(100)}}, {"$push": {"list": {"$each": [1, 2, 3], "$slice": -5}}},
        {"$set": {f"list.{draw.randrange(8)}": draw.random()}},
        {"$push": {"rows": {"k": draw.randrange(9), "in": [1, {"x": 1}]}}},
        {"$set": {"rows.$[].k": draw.randrange(9)}}, {"$set": {"rows.0.in.1.x": draw.random()}},
        {"$unset": {"rows.1.k": ""}}, {"$set": {"list": [], "rows": []}}])


def changes(draw):
    """An update of a document."""
    name = f"f{draw.randrange(6)}"
    return draw.choice([
        {"$set": {name: draw.random(), "sub.a.b": draw.randrange(99)}}, {"$unset": {name: ""}},
        {"$inc": {"count": 1, "sub.n": 2}}, {"$rename": {name: f"f{draw.randrange(6, 9)}"}},
        {"$set": {"sub": {"a": {"b": 1, "c": [1, 2]}, "n": 1}}}, {"$set": {f"sub.{name}.{draw.randrange(3)}": 1}},
        {"$unset": {"sub.a": ""}}, {"$currentDate": {"when": True}}, {"$mul": {"count": 2}},
        [{"$set": {"twice": {"$multiply": ["$count", 2]}, "name.with": "dots"}}],
        [{"$replaceWith": {"_id": "$_id", "filler": "$filler", "count": 1}}],
    ] + [array_changes(draw)] * 5)


class Writer:
    """`series`: the server has time-series collections."""

    def __init__(self, client, database, series):
        self.client, self.name, self.series = client, database, series
        self.database = client[database]
        self.draw, self.round, self.failure = random.Random(database), 0, None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def prepare(self):
        """The collections that exist before the dump."""
        self.database.docs.insert_many([{"_id": n, "count": n, "filler": FILLER} for n in range(DOCUMENTS)])
        self.database.more.insert_many([{"_id": f"k{n}", "list": [n], "filler": FILLER} for n in range(DOCUMENTS)])
        self.database.unique.insert_many([{"_id": n, "u": n} for n in range(50)])
        self.database.unique.create_index("u", unique=True)
        self.database.docs.create_index([("count", 1)])
        self.database.create_collection("capped", capped=True, size=1 << 16, max=40)
        self.database.create_collection("collated", collation={"locale": "de", "strength": 2})
        self.database.create_collection("on_docs", viewOn="docs", pipeline=[])
        if self.series:
            self.database.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()
        if self.failure:
            raise self.failure

    def _run(self):
        try:
            while not self._stop.is_set():
                self.one_round(self.round)
                self.round += 1
        except pymongo.errors.PyMongoError as failure:
            self.failure = failure

    def one_round(self, number):
        self.documents(number)
        self.moves()
        if number % 3 == 0:
            self.transaction(number)
        if number % 5 == 0:
            self.collections(number)
            self.indexes(number)
        if self.series:
            self.measure(number)

    def documents(self, number):
        draw, database = self.draw, self.database
        for _ in range(40):
            collection, key = draw.choice([("docs", draw.randrange(DOCUMENTS + 500)),
                                           ("more", f"k{draw.randrange(DOCUMENTS + 500)}")])
            kind = draw.randrange(10)
            if kind == 0:
                database[collection].delete_one({"_id": key})
            elif kind == 1:
                database[collection].replace_one({"_id": key}, {"new": number, "filler": FILLER}, upsert=True)
            else:
                try:
                    database[collection].update_one({"_id": key}, changes(draw), upsert=kind == 2)
                except pymongo.errors.WriteError:
                    pass      # such as $push to a field that is no array
        database.capped.insert_one({"_id": number, "n": number})
        database.collated.replace_one({"_id": f"Key{number % 7}"}, {"v": number}, upsert=True)
        database.docs.update_many({"count": {"$lt": 20}}, {"$set": {"small": number}})

    def moves(self):
        """Moves values of a unique index from one document to another."""
        one, other = self.draw.sample(range(50), 2)
        unique = self.database.unique
        values = [unique.find_one({"_id": key})["u"] for key in (one, other)]
        for key, value in ((one, f"free {one}"), (other, values[0]), (one, values[1])):
            unique.update_one({"_id": key}, {"$set": {"u": value}})

    def transaction(self, number):
        with self.client.start_session() as session:
            session.start_transaction()
            self.database.docs.update_one({"_id": number % DOCUMENTS}, {"$set": {"in": number}}, session=session)
            self.database.more.insert_one({"_id": f"transaction {number}"}, session=session)
            self.database.more.delete_one({"_id": f"transaction {number - 9}"}, session=session)
            if number % 2:
                session.commit_transaction()
            else:
                session.abort_transaction()

    def collections(self, number):
        database, name = self.database, f"new{number % 4}"
        database.drop_collection(name)
        options = [{}, {"capped": True, "size": 8192}, {"collation": {"locale": "fr"}},
                   {"validator": {"n": {"$gte": 0}}}][number % 4]
        database.create_collection(name, **options)
        database[name].insert_many([{"_id": n, "n": n} for n in range(number % 20)] or [{"n": 1}])
        database.drop_collection(f"view{number % 3}")
        database.create_collection(f"view{number % 3}", viewOn=name, pipeline=[{"$match": {"n": number}}])
        database.command("collMod", "on_docs", viewOn="docs", pipeline=[{"$match": {"n": number}}])
        database.command("collMod", "more", validator={"filler": {"$ne": number}}, validationAction="warn")
        other = self.client[f"{self.name}_other"]
        other.x.insert_one({"n": number})
        if number % 3 == 0:
            self.client.drop_database(other)

    def indexes(self, number):
        docs, more = self.database.docs, self.database.more
        docs.create_index([(f"f{number % 3}", 1)], sparse=True)
        if "list" in more.index_information():
            more.drop_index("list")
        more.create_index([("list", 1)], name="list", expireAfterSeconds=10 ** 8)
        self.database.command("collMod", "more", index={"name": "list", "expireAfterSeconds": 10 ** 8 + number})
        if number % 2:
            docs.drop_index(f"f{number % 3}_1")

    def measure(self, number):
        self.database.series.insert_many([
            {"t": self.draw.choice(TIMES), "m": {"who": n % 3}, "v": number, f"f{n}": 1.5} for n in range(4)])


TIMES = [__import__("datetime").datetime(2024, 1, 1, hour) for hour in range(5)]
