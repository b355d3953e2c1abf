# SPDX-License-Identifier: Apache-2.0
"""A program: reads documents by their keys, on schedule, until its standard input ends.

    python3 point_reads.py URI DATABASE COLLECTION PER-SECOND THREADS

The URI says which members are read. Reads are due at fixed times, and so many threads take the next
one in turn: a read that is slow does not hold up those behind it, unless all threads wait. Even
then a latency counts from the time at which its read was due: else a server that stands still for a
second would be seen as a few slow reads, where every client of that second would have waited. At
the end it prints a line of JSON per read: when it was due, as time.time() counts, and the milliseconds
until its document was there.
"""
import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pymongo

KEYS = 5000


class Schedule:
    """When the next read is due. Any thread may ask."""

    def __init__(self, per_second):
        self.interval = 1 / per_second
        self.next = time.time()
        self.lock = threading.Lock()

    def draw(self):
        with self.lock:
            due, self.next = self.next, self.next + self.interval
            return due


def read(collection, keys, schedule, over):
    """What one thread does: [(when it was due, milliseconds)]."""
    reads = []
    while not over.is_set():
        due = schedule.draw()
        time.sleep(max(due - time.time(), 0))
        key = random.choice(keys)
        if collection.find_one({"_id": key}) is None:
            raise SystemExit(f"the document {key} is not there")
        reads.append((due, (time.time() - due) * 1e3))
    return reads


def main():
    uri, database, name, per_second, threads = sys.argv[1:]
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with pymongo.MongoClient(uri) as client, ThreadPoolExecutor(int(threads)) as pool:
        collection = client[database][name]
        keys = [each["_id"] for each in
                collection.aggregate([{"$sample": {"size": KEYS}}, {"$project": {"_id": 1}}])]
        # So that each thread finds a connection.
        list(pool.map(lambda key: collection.find_one({"_id": key}), keys[:4 * int(threads)]))
        print("reading", flush=True)
        schedule = Schedule(float(per_second))
        working = [pool.submit(read, collection, keys, schedule, over)
                   for _ in range(int(threads))]
        reads = sorted(each for future in working for each in future.result())
    for each in reads:
        print(json.dumps(each))


if __name__ == "__main__":
    main()
