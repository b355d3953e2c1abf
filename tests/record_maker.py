# SPDX-License-Identifier: Apache-2.0
"""Generates records of runs in the format of the programs (run.json, tune.json ...), for the tests of
`shardload report` and to look at the pictures of runs that would take too long.

    python3 record_maker.py FOLDER        writes one record of each kind, and unusual ones
"""
import json
import math
import pathlib
import sys

STAGES = ["reading", "unpacking", "parsing", "server"]
QUERIES = ["green-ness", "pass-rate-by-age", "makes", "worst-models"]
BEGUN = "2026-03-01T09:30:00Z"


def head(program, command, **more):
    return {"program": program, "version": "0.1.0", "command": command,
            "startedAt": {"$date": BEGUN},
            "client": {"host": "loader-1", "system": "Linux", "release": "6.1", "cores": 16},
            "options": {"db": "mot", "collection": "tests", "threads": "32", "drop": "false"},
            "server": {"version": "6.0.5", "deployment": "sharded cluster"}, **more}


def tail(code=0):
    return {"endedAt": {"$date": "2026-03-01T10:30:00Z"}, "exitCode": code}


def series(seconds, shards, rate, points):
    """The series of a load in `points` points: its rate oscillates, falls slowly, and differs by
    shard."""
    rows, done = [], [0] * shards
    spent = [0.0] * len(STAGES)
    for point in range(1, points + 1):
        now, step = seconds * point / points, seconds / points
        for shard in range(shards):
            swing = 1 + 0.3 * math.sin(now / seconds * 25 + shard) - 0.4 * now / seconds
            lag = 0.4 if shard == 7 and now > seconds / 2 else 1
            done[shard] += int(rate / shards * step * max(swing, 0) * lag)
        for stage, share in enumerate((0.02, 0.01, 0.12, 0.85)):
            spent[stage] += step * 32 * share
        rows.append({"seconds": round(now, 3), "documents": sum(done),
                     "textBytes": sum(done) * 86, "bsonBytes": sum(done) * 154,
                     "storedBytes": sum(done) * 15, "rejects": 0, "shardDocuments": list(done),
                     "workerSeconds": dict(zip(STAGES, spent))})
    return rows


def load(seconds=600, shards=2, rate=400_000, points=None, code=0, rejects=0, **options):
    names = [f"s{number}" for number in range(shards)]
    rows = series(seconds, shards, rate, points or max(int(seconds), 1)) if seconds else []
    done = rows[-1]["shardDocuments"] if rows else [0] * shards
    documents = sum(done)
    record = head("shardload", "load")
    record["options"].update(options)
    record.update({
        "verification": {"ok": True},
        "topology": [{"shard": name, "host": f"{name}/{name}:27018"} for name in names],
        "sources": [{"path": "test_result_2013.txt.gz", "storedBytes": 15 * documents,
                     "format": "mot", "number": 1, "documents": documents}],
        "accounting": {"records": documents + rejects, "inserted": documents, "alreadyStored": 0,
                       "rejectedByParser": rejects, "rejectedByServer": 0, "addsUp": True,
                       "textBytes": 86 * documents, "bsonBytes": 154 * documents,
                       "batches": documents // 10_000, "retries": 3},
        "workerSeconds": rows[-1]["workerSeconds"] if rows else dict.fromkeys(STAGES, 0.0),
        "batchMilliseconds": {"batches": documents // 10_000, "mean": 71.2, "p50": 62.9,
                              "p90": 120.5, "p99": 342.7, "p999": 1200.25, "max": 1804.5},
        "shards": [{"shard": name, "documents": count, "dataBytes": 154 * count,
                    "storageBytes": 60 * count, "indexBytes": 12 * count}
                   for name, count in zip(names, done)],
        **tail(code),
        "phases": [{"name": "sources", "seconds": 0.004}, {"name": "connect", "seconds": 0.05},
                   {"name": "prepare", "seconds": seconds * 0.01},
                   {"name": "load", "seconds": seconds * 1.0},
                   {"name": "indexes", "seconds": seconds * 0.2},
                   {"name": "balancer", "seconds": 0.02},
                   {"name": "verify", "seconds": seconds * 0.06}],
        "series": rows,
    })
    return record


def tune():
    settings = []
    for compressor in ("snappy", "zstd"):
        for clustered in (False, True):
            for threads in (2, 4, 8, 16, 32):
                for batch in (1000, 5000, 10_000, 50_000):
                    if threads == 32 and batch == 1000:
                        continue
                    rate = (90_000 * math.sqrt(threads) * (1.2 if clustered else 1) *
                            (0.9 if compressor == "zstd" else 1) * (1 - abs(batch - 10_000) / 2e5) *
                            (0.85 if threads == 32 else 1))
                    rates = [rate * 0.97, rate, rate * 1.05]
                    settings.append({
                        "threads": threads, "batchSize": batch, "compressor": compressor,
                        "clustered": clustered, "writeConcern": "majority", "route": "mongos",
                        "wireCompression": "none",
                        "trials": [{"documents": 10**6, "seconds": 10**6 / one, "rate": one}
                                   for one in rates],
                        "rate": rate, "low": rates[0], "high": rates[2],
                        "stopped": "" if rate > 2e5 else "slower than others by more than its spread"})
    best = max(range(len(settings)), key=lambda index: settings[index]["rate"])
    storage = [{"compressor": name, "documents": 10**6, "dataBytes": 154 * 10**6,
                "storageBytes": size * 10**6, "indexBytes": 10**7, "ratio": 154 / size, "rate": rate,
                "queries": [{"name": "makes", "medianMilliseconds": slow}]}
               for name, size, rate, slow in (("none", 154, 410_000, 480.0),
                                              ("snappy", 62, 400_000, 500.0),
                                              ("zlib", 41, 260_000, 640.0),
                                              ("zstd", 39, 340_000, 560.0))]
    return {**head("shardload", "tune"),
            "sample": {"share": 0.02, "records": 1_000_000, "textBytes": 86 * 10**6,
                       "bsonBytes": 154 * 10**6},
            "dimensions": {"threads": [2, 4, 8, 16, 32], "batchSize": [1000, 5000, 10_000, 50_000]},
            "settings": settings, "best": best, "recommended": best - 1, "trials": 3 * len(settings),
            "gridTrials": 5 * len(settings), "storage": storage, **tail()}


def drill_query(name, answer, documents, sampled):
    median = 812.25
    timings = [] if answer == "FAILED" else [median * 1.1, median, median] if sampled else [median]
    figures = {"minMs": median, "medianMs": median, "meanMs": median, "deviationMs": 0.0,
               "maxMs": median, "documentsPerMs": documents / median} if timings else {}
    return {"suite": "mot", "name": name, "database": "mot", "collection": "tests",
            "documents": documents, "pipeline": [{"$group": {"_id": "$k"}}], "options": {},
            "warmUp": 0, "repeat": len(timings), "timingsMs": timings, **figures, "answer": answer,
            "resultCount": 5 if timings else 0, "resultsComplete": True, "results": []}


def reload(share=0.1, slower=1.0, objective=14_400.0, code=0, met="yes", answers=None, ended=None):
    """The record of a drill whose phases take `slower` times the usual time. `answers`: of the four
    queries. `ended`: whether the drill completed; None: derived from the exit code."""
    sampled, ended = share < 1, code in (0, 1, 5) if ended is None else ended
    inner = load(900 * slower, 2, code=code if not ended else 0)
    documents = inner["accounting"]["inserted"]
    phases = [{"name": "start", "seconds": 0.31}, *inner["phases"],
              {"name": "other", "seconds": 0.4},
              {"name": "query", "seconds": 14 * slower if ended else 0.0}]
    grow = ("load", "indexes", "verify", "query")
    answers = answers or (["not checked"] if sampled else ["ok"]) * 4
    record = {**head("shardload", "reload"), "sample": share, "ended": ended}
    if objective:
        record["objectiveSeconds"] = objective
        if ended:
            record["objectiveMet"] = met
    record["phases"] = phases
    if sampled:
        whole = [{"name": phase["name"], "seconds": seconds, "low": seconds * 0.9,
                  "high": seconds * 1.1} for phase, seconds in
                 ((p, p["seconds"] / (share if p["name"] in grow else 1)) for p in phases)]
        total = sum(phase["seconds"] for phase in whole)
        record["steps"] = [{"share": share * part, "documents": int(documents * part),
                            "loadDeviation": 0.02, "phases": [
                                {**p, "seconds": p["seconds"] * (part if p["name"] in grow else 1)}
                                for p in phases]} for part in (1 / 16, 1 / 4, 1)]
        if ended:
            record["predicted"] = {
                "documents": documents / share, "phases": whole, "seconds": total,
                "low": total * 0.9, "high": total * 1.1,
                "queries": [{"name": name, "seconds": 8.0, "low": 7.0, "high": 9.0}
                            for name in QUERIES],
                "notes": ["the sample was loaded in 900 s"]}
    elif ended and "ok" in answers:
        record["firstCorrectQuerySeconds"] = sum(phase["seconds"] for phase in phases) + 0.02
    record["answersChecked"] = not sampled and ended
    record["queries"] = [drill_query(name, answer, documents, sampled)
                         for name, answer in zip(QUERIES, answers)] if ended else []
    return {**record, "accounting": inner["accounting"], "load": inner, **tail(code)}


def plan():
    return {**head("shardload", "plan"), "sources": [{"path": "a.txt"}],
            "estimate": {"records": 300_000_000, "textBytes": 86 * 3 * 10**8,
                         "bsonBytes": 154 * 3 * 10**8, "averageDocument": 154},
            "ranges": [{"minimum": 1 << 40, "maximum": 3 << 39, "shard": "s1"},
                       {"minimum": 3 << 39, "maximum": 2 << 40, "shard": "s0"}],
            "predicted": {"phases": [{"name": "load", "seconds": 750.0, "low": 700.0, "high": 900.0},
                                     {"name": "indexes", "seconds": 90.0, "low": 80.0,
                                      "high": 120.0}],
                          "seconds": 840.0, "low": 780.0, "high": 1020.0,
                          "from": "the run of 1 March"}, **tail()}


def model():
    def span(value):
        return {"value": value, "low": value * 0.8, "high": value * 1.5}
    return {**head("shardload", "plan"), "capacity": {
        "model": "mine", "title": "a model of mine", "about": "It has two machines.",
        "answer": "load",
        "inputs": [{"name": "documents", **span(1e9), "unit": "documents", "from": "fitted",
                    "note": "as many as it should be"},
                   {"name": "disk", "value": 2.0, "low": 2.0, "high": 2.0, "unit": "bytes/s",
                    "from": "given", "note": ""}],
        "results": [{"name": "routers-time", "formula": "documents / 5", "unit": "s", **span(3600.0),
                     "how": "computed", "note": "idle"},
                    {"name": "load", "formula": "max(routers-time, 7200)", "unit": "s",
                     **span(7200.0), "decidedBy": "routers-time", "published": 9000.0,
                     "quotient": 0.8, "how": "fitted", "note": ""}],
        "points": [{"result": "load", "unit": "s", "name": "two shards", **span(60.0),
                    "published": 50.0, "quotient": 1.2, "how": "predicted"}],
        "sweep": {"input": "replicas", "result": "load", "unit": "s", "rows": [
            {"input": value, "decidedBy": decided, **span(3600.0 * value)}
            for value, decided in ((1.0, "routers-time"), (2.5, "disk"))]}},
        **tail()}


# Values that none of the programs writes.
STRANGE = [0, -1, 1e18, 1e300, -1e300, 1e-300, 2**63 - 1, -2**63, {"$numberDouble": "NaN"},
           {"$numberDouble": "Infinity"}, "x", "\u00e9" * 50, "", None, True, [], {}, [[]], {"a": 1},
           {"$date": "1900-01-01T00:00:00Z"}, 4e12, 1e17, 256, "<b>" * 400]


def damaged(value, chance, random, kept=("program", "command")):
    """A copy in which some values are replaced by strange ones, keys removed and lists repeated.
    `chance`: probability of each damage. `kept`: keys at the top level that stay as they are."""
    if random.random() < chance and not kept:
        return random.choice(STRANGE)
    if isinstance(value, dict):
        if next(iter(value), "").startswith("$"):
            return value
        return {key: item if key in kept else damaged(item, chance, random, ())
                for key, item in value.items() if key in kept or random.random() >= chance}
    if isinstance(value, list):
        copy = [damaged(item, chance, random, ()) for item in value]
        return copy * random.randint(2, 20) if random.random() < chance else copy
    return value


ODD = {
    "many": lambda: load(10_000, 64, 3_000_000, 10_000),
    "long": lambda: load(200_000, 4, 300_000, 3600),
    "second": lambda: load(1, 2, 500_000, 1),
    "instant": lambda: load(0.02, 1, 500_000, 1),
    "nothing": lambda: load(0, 2, code=4),
    "rejects": lambda: load(300, 3, code=1, rejects=40_000),
    "interrupted": lambda: load(60, 12, code=130),
    "drill": lambda: reload(1.0),
    "drill-stopped": lambda: reload(code=3),
}
ALL = {"load": load, "tune": tune, "reload": reload, "plan": plan, "model": model, **ODD}


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ALL.items():
        (folder / f"{name}.json").write_text(json.dumps(make()), "utf-8")
    for number, slower in enumerate((1.0, 1.3, 0.9)):
        (folder / f"reload-{number}.json").write_text(json.dumps(reload(0.2, slower)), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
