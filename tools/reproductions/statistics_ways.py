# SPDX-License-Identifier: Apache-2.0
"""One statistic of a car's sensor log, computed by several methods (2015)."""
from .experiment import Experiment, Figure
from .programs import TOOLS, documents, load_rate

DOCUMENTS = 130_000
COPIES = 10
SCHEMA = TOOLS.parent / "schemas" / "obd.yaml"
SAMPLE = "obd/torque_23col_2014.csv"

# Documents per millisecond by the number of documents, as published: mean and standard deviation.
METHODS = ("mapReduce", "jsMode", "client-list", "client-accumulators", "stored", "stored-jsMode")
RATES = {
    1: ((0.08, 0.09), (0.3, 0.03), (1.2, 0.07), (1.5, 0.02), (0.2, 0.07), (0.2, 0.08)),
    10: ((0.7, 0.8), (1.8, 0.7), (8.3, 0.2), (13.9, 0.8), (1.9, 0.7), (1.5, 0.8)),
    100: ((6.8, 4.2), (14.0, 4.5), (31.5, 0.6), (42.5, 1.9), (16.9, 6.2), (18.1, 6.6)),
    1000: ((20.8, 3.5), (52.3, 10.2), (46.7, 2.5), (62.7, 0.5), (65.9, 29.5), (61.7, 30.8)),
    10_000: ((24.7, 0.7), (64.2, 6.6), (50.3, 0.6), (64.7, 0.1), (119.6, 10.5), (128.4, 23.3)),
    100_000: ((24.7, 0.7), (69.2, 1.5), (50.9, 0.7), (66.0, 0.5), (121.5, 5.0), (123.7, 6.2)),
    1_000_000: ((22.5, 0.2), (49.7, 4.3), (37.2, 0.8), (42.6, 1.5), (69.2, 1.8), (71.0, 2.2)),
}
# What exists no longer in servers of today is compared with the JavaScript that does.
HERE = {"mapReduce": "mapReduce", "jsMode": "accumulator", "client-list": "client-list",
        "client-accumulators": "client-accumulators"}


def figures():
    for count, row in RATES.items():
        for method, (mean, deviation) in zip(METHODS, row):
            if method in HERE:
                yield Figure(f"{method}-{count}", f"{method}, n = {count:,}, documents/ms", mean,
                             f"{mean} \u00b1 {deviation}")
    yield Figure("client-threads", "client with several threads, most documents, documents/ms", 122)
    yield Figure("pipeline", "relational database; here an aggregation, documents/ms", 1050)
    yield Figure("documents", "client, one field against complete documents", 10, "10 times as fast")


def data(programs, rows):
    """A log of `rows` rows: the real one, repeated, or a generated one."""
    real = programs.sample(SAMPLE)
    if not real:
        return programs.generate("sensors.csv", rows, "sensors")
    header, *lines = real[0].read_text("utf-8").splitlines(keepends=True)
    path = programs.folder / "sensors.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write(header)
        for begin in range(0, rows, len(lines)):
            file.writelines(lines[:rows - begin])
    return path


def run(programs, outcome):
    rows = programs.scaled(DOCUMENTS, 1000)
    log = data(programs, rows // COPIES)
    copies = programs.folder / "copies.csv"
    header, *lines = log.read_text("utf-8").splitlines(keepends=True)
    with open(copies, "w", encoding="utf-8") as file:
        file.write(header)
        for _ in range(COPIES):
            file.writelines(lines)
    with programs.cluster("--standalone") as uri:
        programs.say(f"loading {rows:,} rows")
        record = programs.load(uri, "obd", "--schema", SCHEMA, copies)
        count = documents(record)
        limits = [limit for limit in RATES if limit <= count]
        programs.say(f"seven methods over the first {', '.join(f'{n:,}' for n in limits)} documents")
        entries = programs.query(uri, "obd", "--limit", ",".join(map(str, limits)), "--repeat",
                                 10 if programs.scale > 1 else 5, "statistics")
    found = {(each["name"], each["limit"]): each for each in entries}
    rates = {key: each["documentsPerMsMean"] for key, each in found.items()
             if each["answer"] == "ok"}
    spreads = {key: f"\u00b1 {each['documentsPerMsDeviation']:.2f}" for key, each in found.items()
               if key in rates}
    for limit in limits:
        for method, name in HERE.items():
            if (name, limit) in rates:
                note = "" if name == method else f"; jsMode no longer exists; here: {name}"
                outcome.measure(f"{method}-{limit}", rates[name, limit],
                                spreads[name, limit] + note)
    most = limits[-1]
    for name in ("client-threads", "pipeline"):
        if (name, most) in rates:
            outcome.measure(name, rates[name, most], f"{most:,} documents")
    if ("client-documents", most) in rates:
        outcome.measure("documents", rates["client-accumulators", most] / rates["client-documents", most],
                        f"{most:,} documents")
    names = list(dict.fromkeys(each["name"] for each in entries))
    outcome.table("Documents per millisecond by method and number of documents",
                  ["documents", *names],
                  [[f"{limit:,}", *(rates.get((name, limit)) for name in names)] for limit in limits])
    outcome.note(f"{count:,} documents of {record['accounting']['bsonBytes'] / count:,.0f} bytes, loaded at "
                 f"{load_rate(record):,.0f} documents/s; all methods gave the same answer")


EXPERIMENT = Experiment(
    name="statistics",
    title="One statistic by several methods",
    published="""
In February 2015 (server 2.4), a car's sensor log was loaded: 1.3 million documents of about 1,400 bytes. Minimum,
maximum, sum and count of one field over the first 1 to 1,000,000 documents were computed by mapReduce, and in a client
that reads the field into a list or adds up its values while it reads. The mean and the standard deviation of the
documents per millisecond were published.
""",
    full="""
You need one server, and ten copies of a log of 130,000 rows with the columns of `schemas/obd.yaml`; or a generated
log, by `--scale 10`:

    shardload load -d cars -c obd --again --schema schemas/obd.yaml copy-1.csv copy-2.csv ... copy-10.csv
    shardquery run -d cars -c obd --limit 1,10,100,1000,10000,100000,1000000 --repeat 10 statistics
""",
    differs="""
- jsMode and stored functions no longer exist. jsMode is compared with an accumulator in JavaScript.
- The row of the relational database has the figure of an aggregation in the server.
""",
    figures=tuple(figures()),
    run=run)
