# SPDX-License-Identifier: Apache-2.0
"""A program: reads documents by their keys, one after the other, until its standard input ends.

    python3 point_reads.py URI DATABASE COLLECTION PER-SECOND

The URI says which members are read. Reads are due at fixed times, whether the one before has come
back or not, and a latency counts from the time at which its read was due: else a server that stands
still for a second would be seen as one slow read, where a thousand clients would have waited. After
all reads are begun in good time, or as late as the ones before made them, prints a line of JSON per
read: when it was due, as time.time() counts, and the milliseconds until its document was there.
"""
import json
import random
import sys
import threading
import time

import pymongo

KEYS = 5000


def main():
    uri, database, name, per_second = sys.argv[1:]
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with pymongo.MongoClient(uri) as client:
        collection = client[database][name]
        keys = [each["_id"] for each in
                collection.aggregate([{"$sample": {"size": KEYS}}, {"$project": {"_id": 1}}])]
        chosen = random.Random(1)
        collection.find_one({"_id": keys[0]})  # connects
        print("reading", flush=True)
        reads = []
        due = time.time()
        while not over.is_set():
            time.sleep(max(due - time.time(), 0))
            key = chosen.choice(keys)
            if collection.find_one({"_id": key}) is None:
                sys.exit(f"the document {key} is not there")
            reads.append((due, (time.time() - due) * 1e3))
            due += 1 / float(per_second)
    for read in reads:
        print(json.dumps(read))


if __name__ == "__main__":
    main()
