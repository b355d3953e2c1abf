# SPDX-License-Identifier: Apache-2.0
"""A program: loads a MOT file through the Python driver, as a typical script would.

    python3 python_load.py URI DATABASE COLLECTION FILE PROCESSES BATCH WRITE-CONCERN

The file is divided among processes at line ends. Each process splits its lines with the csv module,
builds a dict per record with the same keys and types as the loader's documents, and inserts them in
unordered batches. The collection must exist.
"""
import csv
import datetime
import json
import multiprocessing
import os
import sys

import pymongo


def whole(text):
    return int(text) if text else None


def day(text):
    return datetime.datetime.fromisoformat(text) if text and text != "NULL" else None


def text_of(text):
    return text or None


# The columns of a published file: the loader's key, and the conversion to the loader's type.
COLUMNS = [("t", whole), ("v", whole), ("d", day), ("c", whole), ("y", text_of), ("r", text_of),
           ("m", whole), ("s", text_of), ("k", text_of), ("o", text_of), ("u", text_of),
           ("f", text_of), ("e", whole), ("i", day)]


def lines_between(path, begin, end):
    """The lines that start between these offsets, without the header."""
    with open(path, "rb") as file:
        file.seek(max(begin - 1, 0))
        file.readline()
        while file.tell() < end:
            line = file.readline()
            if not line:
                return
            yield line.decode("utf-8")


def documents(lines):
    for row in csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE):
        document = {}
        for (key, convert), text in zip(COLUMNS, row):
            value = convert(text)
            if value is not None:
                document[key] = value
        yield document


def load(uri, database, collection, path, begin, end, batch, concern):
    client = pymongo.MongoClient(uri)
    target = client[database].get_collection(
        collection, write_concern=pymongo.WriteConcern(**concern))
    waiting = []
    for document in documents(lines_between(path, begin, end)):
        waiting.append(document)
        if len(waiting) == batch:
            target.insert_many(waiting, ordered=False)
            waiting = []
    if waiting:
        target.insert_many(waiting, ordered=False)
    client.close()


def main():
    uri, database, collection, path = sys.argv[1:5]
    processes, batch, concern = int(sys.argv[5]), int(sys.argv[6]), json.loads(sys.argv[7])
    size = os.path.getsize(path)
    bounds = [size * i // processes for i in range(processes + 1)]
    children = [multiprocessing.Process(target=load, args=(uri, database, collection, path, begin,
                                                           end, batch, concern))
                for begin, end in zip(bounds, bounds[1:])]
    for child in children:
        child.start()
    for child in children:
        child.join()
    sys.exit(any(child.exitcode for child in children))


if __name__ == "__main__":
    main()
