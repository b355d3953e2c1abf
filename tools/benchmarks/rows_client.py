# SPDX-License-Identifier: Apache-2.0
"""Rows without a server: the cost of parsing and encoding."""
import json

from .figures import Skip, at_least, at_most, threads_of
from .process import Failure, floor, rate, run

BLOCK = 1 << 20  # bytes of text that a worker reads at a time
MANY_THREADS = 64
BATCH_BYTES = 16 << 20
MEMORY_FIXED = 64 << 20
HUGE, MEDIUM = 10_000_000_000, 500_000_000  # bytes of text
BATCH_MOST = 100_000  # documents in a batch that the server allows
MOT_TEXT = 86


class Rates:
    """Two lines of a row: GB/s of `what` ("text" or "BSON"), by wall time and by user CPU time."""

    def __init__(self, result, what, least, name=""):
        self.what = what
        self.wall, self.user = (result.line(f"{name}GB/s of {what}, by {time} time", at_least(least))
                                for time in ("wall", "user CPU"))

    def add(self, run):
        size = run.bson_bytes if self.what == "BSON" else run.text_bytes
        self.wall.add(rate(size, run.process.wall) / 1e9)
        self.user.add(rate(size, run.process.user) / 1e9)


def mot_parse(bench, result):
    data = bench.data.mot(bench.scaled(10_000_000))
    rates = Rates(result, "text", 1.0)
    documents = result.line("million docs/s, by wall time")
    for _ in bench.rounds():
        run = bench.parse(data.path)
        rates.add(run)
        documents.add(rate(run.documents, run.process.wall) / 1e6)


def isd_parse(bench, result):
    data = bench.data.isd(bench.scaled(2_000_000))
    rates = Rates(result, "BSON", 1.5)
    text = result.line("GB/s of text, by wall time")
    for _ in bench.rounds():
        run = bench.parse(data.path)
        rates.add(run)
        text.add(run.text_rate / 1e9)


def json_parse(bench, result):
    for kind in ("tweets", "flat"):
        data = bench.data.json(kind, bench.scaled(200_000_000))
        rates = Rates(result, "text", 0.8, f"{kind}: ")
        ratio = result.line(f"{kind}: against libbson, by user CPU time", at_least(5.0))
        for _ in bench.rounds(what=kind):
            one = bench.parse(data.path)
            other = run([bench.bin / "shardload-yardstick-json", data.path])
            if json.loads(other.output)["documents"] != one.documents:
                raise Failure("libbson and the loader read different numbers of documents")
            rates.add(one)
            ratio.add(other.user / one.process.user)
    result.note("tweets: nested documents of 1.5 KB, a third of their texts not ASCII; flat: ten "
                "short fields, 170 bytes. libbson: bson_new_from_json on each line")


def compared(bench, result, kind, name, left, right):
    """Rates of two runs of one round, and their ratio. `left`, `right`: words of the command."""
    wall = result.line(f"{name}: GB/s of text, by wall time")
    other = result.line(f"{kind}: GB/s of text, by wall time")
    ratio = result.line(f"{name} against {kind}, by user CPU time", at_least(0.8))
    for _ in bench.rounds(what=name):
        one, two = bench.parse(*left), bench.parse(*right)
        if one.documents != two.documents:
            raise Failure("the two runs read different numbers of documents")
        wall.add(one.text_rate / 1e9)
        other.add(two.text_rate / 1e9)
        ratio.add(rate(one.text_bytes, one.process.user) / rate(two.text_bytes, two.process.user))


def csv_types(bench, result):
    data = bench.data.csv("flights", bench.scaled(400_000_000))
    words = ["--format", "delimited", data.path]
    compared(bench, result, "all columns text", "inferred types", words,
             ["--types", "text", *words])
    result.note("eleven columns: two dates, five columns of numbers, four of text; the sample from "
                "which the types are inferred is part of the time")


def csv_quoted(bench, result):
    size = bench.scaled(400_000_000)
    quoted, plain = (["--format", "delimited", "--types", "text", bench.data.csv(kind, size).path]
                     for kind in ("quoted", "notes"))
    compared(bench, result, "no quotes", "quoted line ends", quoted, plain)
    result.note("the same seven columns; one field of each record is quoted and contains a line end, "
                "or has a blank there and no quotes")


def copy_text(bench, result):
    size = bench.scaled(400_000_000)
    for kind, form in (("flights", "copy"), ("notes", "copy"), ("flights", "pg_dump")):
        plain, export = (bench.data.sql(kind, size, form).path for form in ("tab", form))
        words = [] if form == "pg_dump" else ["--dialect", "postgres"]
        compared(bench, result, f"{kind} with tabs", f"{kind}, {form}", [*words, export], [plain])
    result.note("inferred types, but those of CREATE TABLE in the dump; flights: NULL in one record of 50; "
                "notes: an escaped line end in each record")


def insert_statements(bench, result):
    for kind in ("flights", "notes"):
        data = bench.data.sql(kind, bench.scaled(400_000_000), "mysqldump")
        lines = [result.line(f"{kind}: GB/s of the dump, by {time} time", at_least(0.4))
                 for time in ("wall", "user CPU")]
        for _ in bench.rounds(what=kind):
            process = bench.parse(data.path).process
            for line, seconds in zip(lines, (process.wall, process.user)):
                line.add(rate(data.bytes, seconds) / 1e9)
    result.note("statements of 2,000 rows, as mysqldump writes them")


def bson_parse(bench, result):
    for name, data in (("flat", bench.data.mot(bench.scaled(4_000_000))),
                       ("nested", bench.data.isd(bench.scaled(1_000_000)))):
        dump = bench.data.dump(data)
        rates = Rates(result, "BSON", 2.5, f"{name} documents, ")
        for _ in bench.rounds(what=name):
            rates.add(bench.parse("--format", "bson", dump))
    result.note("every document is validated completely; the dumps are MOT tests (flat) and ISD "
                "records (nested), as --sink bson:FILE writes them")


def ycsb_generate(bench, result):
    if not bench.has_format("ycsb"):
        raise Skip("this build has no --format ycsb")
    rates = Rates(result, "BSON", 2.0)
    for _ in bench.rounds():
        rates.add(bench.parse("--format", "ycsb", "--records", bench.scaled(2_000_000)))


def second_core(bench, result):
    for name, data in (("MOT", bench.data.mot(bench.scaled(10_000_000))),
                       ("ISD", bench.data.isd(bench.scaled(2_000_000)))):
        threads = result.line(f"{name}: two threads against one", at_least(1.9))
        processes = result.line(f"{name}: two processes against one")
        share = result.line(f"{name}: threads against processes")
        for _ in bench.rounds(what=name):
            one = bench.parse(data.path).process.wall
            two = bench.parse(data.path, threads=2).process.wall
            apart = bench.parse_twice(data.path)
            threads.add(one / two)
            processes.add(2 * one / apart)
            share.add(one / two / (2 * one / apart))
    result.note("two processes share only the machine: their common rate is the most that two "
                "threads can reach on it")


def many_threads(bench, result):
    small, large = (bench.data.mot(bench.scaled(rows)) for rows in (2_500_000, 10_000_000))
    counts = (1, MANY_THREADS)
    rates = {n: result.line(f"{threads_of(n)}, GB/s of text") for n in counts}
    waits = {n: result.line(f"{threads_of(n)}, waits per further block",
                            at_most(0.5) if n > 1 else None) for n in counts}
    cpu = result.line(f"CPU of {MANY_THREADS} threads against one, per further byte")
    for _ in bench.rounds():
        used = {}
        for threads in counts:
            few, many = (bench.parse(data.path, threads=threads) for data in (small, large))
            blocks = (many.text_bytes - few.text_bytes) / BLOCK
            rates[threads].add(many.text_rate / 1e9)
            waits[threads].add((many.process.switches - few.process.switches) / blocks)
            used[threads] = many.process.cpu - few.process.cpu
        cpu.add(used[MANY_THREADS] / used[1])
    result.note("waits are voluntary context switches of the process per block of one MiB (about "
                "12,000 documents), as the difference between a large and a small input, so that the "
                "start and end of the threads do not count; a contended lock would cause several per "
                "block")


def memory_limit(threads, batch_bytes):
    return (MEMORY_FIXED + threads * 2 * batch_bytes) / 2 ** 20


def memory(bench, result):
    cases = [(bench.threads, BATCH_BYTES), (2, 1 << 20)]
    lines = {}
    for where in ("null sink", "two shards"):
        for form in ("plain", "gzip"):
            for threads, batch in cases:
                lines[where, form, threads, batch] = result.line(
                    f"{where}, {form}, -j {threads}, {batch >> 20} MiB batches",
                    at_most(memory_limit(threads, batch)))
    sizes = {"null sink": bench.scaled(HUGE / MOT_TEXT),
             "two shards": bench.scaled(MEDIUM / MOT_TEXT)}
    for (where, form, threads, batch), line in lines.items():
        deployment = bench.servers.running
        if where == "two shards" and not deployment:
            deployment = bench.servers.start("cluster")
        bench.say(line.title)
        data = bench.data.mot(sizes[where], gzip=form == "gzip")
        words = ["--batch-size", BATCH_MOST, "--batch-bytes", batch]
        if deployment:
            run = bench.load(deployment, data, *words, threads=threads)
        else:
            run = bench.parse(*words, data.path, threads=threads)
        line.add(run.process.peak / 2 ** 20)
        if (threads, batch) == cases[-1]:
            bench.data.forget(data)
    result.note(f"MiB of peak resident memory, as the system counts it; values below "
                f"{floor() / 2 ** 20:.0f} cannot be measured. Text: "
                f"{sizes['null sink'] * MOT_TEXT / 1e9:.3g} GB for the null sink, "
                f"{sizes['two shards'] * MOT_TEXT / 1e9:.2g} GB for the shards. Limit: 64 MiB + "
                f"threads x 2 x batch bytes; batches end by bytes, not by documents")


ROWS = [
    ("mot-parse", "MOT text to BSON, one thread, null sink, all checks on", mot_parse),
    ("isd-parse", "ISD text to BSON, one thread, null sink, all checks on", isd_parse),
    ("json-parse", "JSON lines to BSON, one thread, null sink, all checks on", json_parse),
    ("csv-types", "CSV with inferred types, one thread, null sink", csv_types),
    ("csv-quoted", "CSV with quoted line ends, one thread, null sink", csv_quoted),
    ("copy-text", "COPY text against text with tabs, one thread, null sink", copy_text),
    ("insert-statements", "INSERT statements of a dump, one thread, null sink", insert_statements),
    ("bson-parse", "BSON files, fully validated, one thread, null sink", bson_parse),
    ("ycsb-generate", "generated records, one thread, null sink", ycsb_generate),
    ("second-core", "null sink, two threads against one", second_core),
    ("many-threads", f"null sink, lock contention with {MANY_THREADS} threads", many_threads),
    ("memory", "peak memory on large inputs, plain and compressed", memory),
]
