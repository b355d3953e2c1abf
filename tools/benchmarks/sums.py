# SPDX-License-Identifier: Apache-2.0
"""A program: computes tests and miles of each fuel type over all MOT tests, by one of four methods.

    python3 sums.py URI DATABASE COLLECTION pipeline|map-reduce|documents|projection

`documents` reads all documents and adds in the client, `projection` reads only the two fields. Prints
JSON: the seconds it took, and the answer, which is the same by all methods.
"""
import json
import sys
import time

import pymongo

MAP = "function () { emit(this.f || '', {tests: 1, miles: this.m || 0}); }"
REDUCE = """
function (key, values) {
    var sum = {tests: 0, miles: 0};
    values.forEach(function (value) { sum.tests += value.tests; sum.miles += value.miles; });
    return sum;
}
"""
PIPELINE = [{"$group": {"_id": {"$ifNull": ["$f", ""]}, "tests": {"$sum": 1},
                        "miles": {"$sum": "$m"}}}]


def pipeline(database, name):
    return {each["_id"]: (each["tests"], each["miles"])
            for each in database[name].aggregate(PIPELINE)}


def map_reduce(database, name):
    done = database.command({"mapReduce": name, "map": MAP, "reduce": REDUCE,
                             "out": {"inline": 1}})
    return {each["_id"]: (each["value"]["tests"], each["value"]["miles"])
            for each in done["results"]}


def summed_by_client(cursor):
    sums = {}
    for document in cursor:
        tests, miles = sums.get(document.get("f", ""), (0, 0))
        sums[document.get("f", "")] = (tests + 1, miles + document.get("m", 0))
    return sums


def documents(database, name):
    return summed_by_client(database[name].find())


def projection(database, name):
    return summed_by_client(database[name].find({}, {"_id": 0, "f": 1, "m": 1}))


METHODS = {"pipeline": pipeline, "map-reduce": map_reduce, "documents": documents,
        "projection": projection}


def main():
    uri, database, collection, method = sys.argv[1:]
    with pymongo.MongoClient(uri) as client:
        client.admin.command("ping")  # connects, so that connecting is not measured
        begun = time.monotonic()
        found = METHODS[method](client[database], collection)
        seconds = time.monotonic() - begun
    print(json.dumps({"seconds": seconds, "answer": {
        key: [int(tests), int(miles)] for key, (tests, miles) in sorted(found.items())}}))


if __name__ == "__main__":
    main()
