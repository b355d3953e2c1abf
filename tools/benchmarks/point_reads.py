# SPDX-License-Identifier: Apache-2.0
"""A program: reads documents by their keys at a fixed rate, until its standard input ends.

    python3 point_reads.py URI DATABASE COLLECTION PER-SECOND THREADS

The URI selects the members that are read. Reads are due at fixed times; each thread takes the next
one, so that a slow read delays others only if all threads wait. A latency counts from the time at
which the read was due: if the server stalls for a second, all reads of that second are slow, as they
would be for clients. At the end it prints one line of JSON per read: the time at which it was due, as
time.time() counts, and its latency in milliseconds.
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
    """The times at which reads are due; may be used by several threads."""

    def __init__(self, per_second):
        self.interval = 1 / per_second
        self.next = time.time()
        self.lock = threading.Lock()

    def draw(self):
        with self.lock:
            due, self.next = self.next, self.next + self.interval
            return due


def read(collection, keys, schedule, over):
    """Body of a thread. Returns [(time at which the read was due, milliseconds)]."""
    reads = []
    while not over.is_set():
        due = schedule.draw()
        time.sleep(max(due - time.time(), 0))
        key = random.choice(keys)
        if collection.find_one({"_id": key}) is None:
            raise SystemExit(f"found no document with the _id {key}")
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
        # Opens a connection for each thread.
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
