# SPDX-License-Identifier: Apache-2.0
"""Rows against other loaders, by the wall time and CPU time of the processes."""
import json
import os
import shutil
import sys
from pathlib import Path

from . import machine
from .bench import BATCH_DOCUMENTS
from .figures import Skip, at_least
from .process import run
from .servers import COLLECTION, DATABASE, REAL

PYTHON_LOAD = Path(__file__).resolve().parent / "python_load.py"
CLUSTERED = {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}


def peer(bench, result, name, data, words, layout, clustered, targets, servers="mongod"):
    """The other loader (`name`) and ours run alternately, into the same kind of collection."""
    deployment = bench.servers.start(servers)
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


def mongoimport(servers, layout, targets):
    def row(bench, result):
        if not shutil.which("mongoimport"):
            raise Skip("mongoimport is not installed")
        if servers in REAL and "SHARDLOAD_REAL" not in os.environ:
            raise Skip("SHARDLOAD_REAL does not name real servers")
        data = bench.data.mot(bench.scaled(1_000_000), dialect="tab", clean=True)
        for workers in (1, 4):
            def words(deployment):
                return ["mongoimport", "--quiet", "--uri", deployment.uri, "--db", DATABASE,
                        "--collection", COLLECTION, "--type", "tsv", "--headerline", "--ignoreBlanks",
                        "--numInsertionWorkers", workers,  # pylint: disable=cell-var-from-loop
                        "--writeConcern", json.dumps(deployment.durable), "--file", data.path]
            peer(bench, result, f"mongoimport, {workers} worker{'s'[workers == 1:]}", data, words, layout, False,
                 targets, servers)
        result.note("tab-separated file, the same write concern" +
                    ("; mongoimport's collection is sharded by the hash of its ObjectIds" if layout else ""))
    return row


LARGE, SMALL = 4, 200         # collections of the two dumps for mongorestore
INDEX = {"v": 2, "key": {"v": 1}, "name": "v_1"}


def write_dump(folder, documents, collections):
    """A dump folder: each collection has these documents and one index."""
    database = folder / DATABASE
    database.mkdir(parents=True)
    for number in range(collections):
        (database / f"c{number}.bson").symlink_to(documents)
        (database / f"c{number}.metadata.json").write_text(json.dumps(
            {"indexes": [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, INDEX], "options": {},
             "uuid": f"{number:032x}", "collectionName": f"c{number}", "type": "collection"}))
    return folder


def restore_both(bench, result, name, deployment, dump, wall_target, cpu_target):
    """mongorestore and `shardload restore` alternately. All options of speed are those that help."""
    walls = result.compare(f"{name}: mongorestore, wall s", "shardload restore, wall s",
                           "times as fast, by wall time", wall_target)
    cpu = result.compare(f"{name}: mongorestore, CPU s", "shardload restore, CPU s", "times less client CPU",
                         cpu_target)
    for _ in bench.rounds(what=name):
        deployment.empty()
        theirs = run(["mongorestore", "--quiet", "--uri", deployment.uri, "--numInsertionWorkersPerCollection",
                      machine.cores(), "--writeConcern", json.dumps(deployment.durable), dump])
        found = deployment.client[DATABASE].command("dbStats")
        deployment.empty()
        work = bench.folder / "work-restore"
        ours = run([bench.bin / "shardload", "restore", "--progress", "none", "--work-dir", work, "--uri",
                    deployment.uri, dump])
        shutil.rmtree(work)
        now = deployment.client[DATABASE].command("dbStats")
        for key in ("collections", "objects", "indexes"):
            if now[key] != found[key]:
                result.note(f"{name}: {key}: mongorestore {found[key]:,}, shardload {now[key]:,}")
        walls.add(theirs.wall, ours.wall)
        cpu.add(theirs.cpu, ours.cpu)


def mongorestore(bench, result):
    if not shutil.which("mongorestore"):
        raise Skip("mongorestore is not installed")
    deployment = bench.servers.start("mongod")
    for name, collections, documents, wall, cpu in (
            ("few large", LARGE, 300_000, at_least(2.5), at_least(20.0)),
            ("many small", SMALL, 100, at_least(2.5), None)):
        source = bench.data.dump(bench.data.mot(documents if collections == SMALL else bench.scaled(documents)))
        dump = write_dump(bench.folder / f"dump-{collections}", source, collections)
        restore_both(bench, result, name, deployment, dump, wall, cpu)
    result.note(f"{LARGE} collections of {bench.scaled(300_000):,} MOT documents, {SMALL} of 100; one index each")


ROWS = [
    ("python-driver", "MOT into a mongod: Python driver, one process per core", python_driver),
    ("mongoimport", "MOT into a mongod: mongoimport", mongoimport("mongod", {}, (at_least(3.0), at_least(25.0)))),
    ("mongoimport-mongos", "MOT through a real mongos into two shards: mongoimport",
     mongoimport("mongos", {"kind": "hashed"}, (None, None))),
    ("mongorestore", "dumps of few large and of many small collections into a mongod: mongorestore", mongorestore),
]
