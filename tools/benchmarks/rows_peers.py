# SPDX-License-Identifier: Apache-2.0
"""Rows against other loaders, by the wall time and CPU time of the processes."""
import json
import shutil
import sys
from pathlib import Path

from . import machine
from .bench import BATCH_DOCUMENTS
from .figures import Skip, at_least
from .process import run
from .servers import COLLECTION, DATABASE

PYTHON_LOAD = Path(__file__).resolve().parent / "python_load.py"
CLUSTERED = {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}


def peer(bench, result, name, data, words, layout, clustered, targets):
    """The other loader (`name`) and ours run alternately, into the same kind of collection."""
    deployment = bench.servers.start("mongod")
    wall_target, cpu_target = targets
    walls = result.compare(f"{name}, wall s", "loader, wall s", "times as fast, by wall time",
                           wall_target)
    cpu = result.compare(f"{name}, CPU s per million", "loader, CPU s per million",
                         "times less client CPU", cpu_target)
    bench.load(deployment, data, clustered=clustered)
    for _ in bench.rounds():
        deployment.empty()
        deployment.lay_out((), **layout)
        theirs = run(words(deployment))
        documents = deployment.collection.estimated_document_count()
        ours = bench.load(deployment, data, clustered=clustered)
        if documents != ours.documents:
            result.note(f"{name} inserted {documents:,} documents, the loader {ours.documents:,}")
        walls.add(theirs.wall, ours.process.wall)
        cpu.add(theirs.cpu / documents * 1e6, ours.cpu_per_million)


def python_driver(bench, result):
    data = bench.data.mot(bench.scaled(1_000_000), clean=True)

    def words(deployment):
        return [sys.executable, PYTHON_LOAD, deployment.uri, DATABASE, COLLECTION, data.path,
                machine.cores(), BATCH_DOCUMENTS, json.dumps(deployment.durable)]

    peer(bench, result, "Python driver", data, words, CLUSTERED, True, (at_least(2.0), None))
    import pymongo
    result.note(f"PyMongo {pymongo.version}, C extension: {'yes' if pymongo.has_c() else 'no'}; "
                f"{machine.cores()} processes, insert_many with batches of 10,000, the same write "
                "concern, keys, types and kind of collection")


def mongoimport(bench, result):
    if not shutil.which("mongoimport"):
        raise Skip("mongoimport is not installed")
    data = bench.data.mot(bench.scaled(1_000_000), dialect="tab", clean=True)

    def words(deployment):
        return ["mongoimport", "--quiet", "--uri", deployment.uri, "--db", DATABASE,
                "--collection", COLLECTION, "--type", "tsv", "--headerline", "--ignoreBlanks",
                "--numInsertionWorkers", machine.cores(),
                "--writeConcern", json.dumps(deployment.durable), "--file", data.path]

    peer(bench, result, "mongoimport", data, words, {}, False, (at_least(3.0), at_least(25.0)))
    result.note("tab-separated file, one insertion worker per core, the same write concern")


def mongorestore(bench, result):
    if not shutil.which("mongorestore"):
        raise Skip("mongorestore is not installed")
    data = bench.data.mot(bench.scaled(1_000_000))
    dump = bench.data.dump(data)

    def words(deployment):
        return ["mongorestore", "--quiet", "--uri", deployment.uri, "--db", DATABASE,
                "--collection", COLLECTION, "--numInsertionWorkersPerCollection", machine.cores(),
                "--writeConcern", json.dumps(deployment.durable), dump]

    peer(bench, result, "mongorestore", data, words, {}, False, (None, None))
    result.note("mongorestore reads documents that are already BSON; the loader reads the text")


ROWS = [
    ("python-driver", "MOT into a mongod: Python driver, one process per core", python_driver),
    ("mongoimport", "MOT into a mongod: mongoimport", mongoimport),
    ("mongorestore", "MOT into a mongod: mongorestore, from a dump", mongorestore),
]
