# SPDX-License-Identifier: Apache-2.0
"""What tests of restores have in common."""
import datetime
import json

import dump_making as making
import support
from support import bson

VALIDATOR = {"validator": {"n": {"$gte": 100}}, "validationLevel": "strict", "validationAction": "error"}
INDEXES = [
    {"v": 2, "key": {"n": 1, "_id": 1}, "name": "n_1__id_1", "unique": True},
    {"v": 2, "key": {"when": 1}, "name": "ttl", "expireAfterSeconds": 10 ** 8},
    {"v": 2, "key": {"s": -1}, "name": "partial", "partialFilterExpression": {"n": {"$gt": 5}}},
    {"v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": "words", "weights": {"s": 2},
     "default_language": "english", "language_override": "language", "textIndexVersion": 3},
    {"v": 2, "key": {"g": "2dsphere"}, "name": "g", "2dsphereIndexVersion": 3, "sparse": True},
]
SERIES = {"timeseries": {"timeField": "t", "metaField": "m", "granularity": "seconds", "bucketMaxSpanSeconds": 3600}}


def documents(count, first=0):
    return [{"_id": bson.ObjectId(f"{n:024x}"), "n": n, "s": f"text {n}" + "x" * (n % 40),
             "when": datetime.datetime(2099, 1, 1)} for n in range(first, first + count)]


class Restoring(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.db = self.database_name

    def namespace(self, collection, *more, **options):
        return making.Namespace(self.db, collection, *more, **options)

    def dump_folder(self, *namespaces, zipped=False):
        return making.folder(self.scratch / f"dump-{next(self._counter)}", namespaces, zipped)

    def restore(self, dump, *words, code=0, work=None, **more):
        """Returns the outcome and the outcomes by namespace."""
        work = work or self.scratch / f"work-{next(self._counter)}"
        outcome = self.shardload("restore", "--uri", self.uri, "--work-dir", work, "--progress",
                                 "none", *words, dump, code=code, **more)
        record = work / "restore.json"
        rows = json.loads(record.read_text())["namespaces"] if record.exists() else []
        return outcome, {row["namespace"].partition(".")[2]: row for row in rows}

    def begin(self, dump, *words, work="work", progress="none", **more):
        """Starts a restore."""
        return self.start("shardload", "restore", "--uri", self.uri, "--work-dir", work,
                          "--progress", progress, *words, dump, **more)

    def facts(self, collection):
        """type, options and indexes by name."""
        (found,) = self.database.list_collections(filter={"name": collection})
        indexes = [] if found["type"] == "view" else self.database[collection].list_indexes()
        return found["type"], found["options"], {one["name"]: dict(one) for one in indexes}

    def check(self, collection, made):
        self.check_stored(made, collection)

    def buckets(self):
        """Documents of a time-series collection as it is dumped."""
        self.needs("5.0", "time-series collections")
        self.database.create_collection("made", timeseries={"timeField": "t", "metaField": "m"})
        self.database.made.insert_many([{"t": datetime.datetime(2024, 1, 1, n % 24), "m": n % 5,
                                         "v": n} for n in range(200)])
        made = [bytes(raw) for raw in self.stored("system.buckets.made")]
        self.database.drop_collection("made")
        return made
