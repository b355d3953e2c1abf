# SPDX-License-Identifier: Apache-2.0
"""The machine of the loader loses power, at any moment: what had not been synced is lost, or is
there in part, and --resume completes the load all the same.

SIGKILL cannot show this, as the kernel still writes what a killed program has written. So one load
is recorded, with each of its writes, renames and syncs, and the moment of each batch and its reply.
From that the work directory and the collection are computed as they would be after a power failure
between any two operations. For every such moment the journal is held against the rest of the disk
and the collection; from a selection of them the load is resumed in earnest."""
import os
import pathlib
import random
import struct
import sys
import time
import zlib
from typing import NamedTuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case  # noqa: E402
import power_cut  # noqa: E402
import resume_case  # noqa: E402
import support  # noqa: E402
from support import bson  # noqa: E402

RESUMES = 24 * fault_case.ROUNDS
TEARS = 3 * fault_case.ROUNDS   # of each moment, besides the regular ones
DOCUMENTS_PER_SECOND = 300      # the load takes a few seconds, and the journal grows once a second
EVERY = 23                      # of so many rows one is rejected


def text_with_rejects(seed):
    lines = resume_case.wide_text(seed, resume_case.BLOCKS // 3).decode().split("\n")
    return "\n".join(line.replace("|49828|", "|49 828|") if number % EVERY == 7 else line
                     for number, line in enumerate(lines)).encode()


class Entry(NamedTuple):
    """A block in the journal (src/load/journal.h)."""
    source: int
    sequence: int
    offset: int
    member_start: int
    check: int
    text_bytes: int
    inserted: int
    already_there: int
    refused: int
    taken: int
    table_bytes: int
    raw_bytes: int


class Journal:
    """What a reader of the journal's format finds up to the first record that is not whole."""

    def __init__(self, data):
        self.documents, self.entries = {}, []
        at = 0
        while at + 12 <= len(data):
            length, kind, check = struct.unpack_from("<3I", data, at)
            payload = data[at + 12:at + 12 + length]
            if len(payload) < length or zlib.crc32(payload, zlib.crc32(data[at:at + 8])) != check:
                break
            if kind == 1:
                document = bson.decode(payload)
                self.documents.update({name: document for name in ("begun", "target", "finished")
                                       if name in document})
            else:
                self.entries.append(Entry(*struct.unpack_from("<12Q", payload)))
            at += 12 + length


class Batch:
    """An insert into the target: when it passed, and when its reply did."""

    def __init__(self, ids):
        self.sent, self.answered = time.monotonic_ns(), None
        self.ids = ids


class Traffic:
    """What passes a proxy, by the same clock as the record of writes."""

    def __init__(self, collection):
        self.collection = collection
        self.batches, self.waiting, self.first_change = [], {}, None

    def __call__(self, link, kind, message):
        number = struct.unpack_from("<i", message, 4 if kind == "request" else 8)[0]
        if kind == "reply":
            if (link, number) in self.waiting:
                self.waiting.pop((link, number)).answered = time.monotonic_ns()
            return
        name, value = resume_case.proxy.command_of(message)
        if name in ("create", "insert", "findAndModify", "update") and self.first_change is None:
            self.first_change = time.monotonic_ns()
        if name == "insert" and resume_case.proxy.collection_of(value) == self.collection:
            batch = self.waiting[link, number] = Batch(self.ids_of(message))
            self.batches.append(batch)

    @staticmethod
    def ids_of(message):
        """Of the documents in the message's sequences (section kind 1)."""
        ids, at, end = [], 20, len(message)
        while at < end and message[at] in (0, 1):
            size = struct.unpack_from("<i", message, at + 1)[0]
            if message[at] == 1:
                start = message.index(b"\0", at + 5) + 1
                ids += map(support.key_of, support.bson_documents(message[start:at + 1 + size]))
            at += 1 + size
        return ids


class PowerLoss(resume_case.ResumeCase):
    variable = "SHARDLOAD_TEST_STANDALONE_URI"

    @classmethod
    def make_source(cls, folder):
        return resume_case.several(folder, [text_with_rejects(seed) for seed in "abc"])

    def setUp(self):
        super().setUp()
        self.record_one_load()

    def record_one_load(self):
        library = pathlib.Path(os.environ["SHARDLOAD_BUILD"], "bin", "tests", "record_writes.so")
        if not library.exists():
            self.skipTest("record_writes.so has not been built")
        under, into = self.scratch / "disk", self.scratch / "record"
        under.mkdir()
        self.work = under / "work"
        self.traffic = self.proxy.observe = Traffic("t")
        self.early = None

        def remember():
            self.early = self.others()
        self.proxy.on_batch(1, resume_case.proxy.call(remember))
        running = self.start(
            "shardload", *self.words("--rate-limit", DOCUMENTS_PER_SECOND, threads=2),
            environment=support.clean_environment(
                LD_PRELOAD=str(library), RECORD_UNDER=str(under), RECORD_INTO=str(into),
                ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"))
        self.assert_nothing_lost(running.wait())
        self.proxy.observe = lambda *_: None
        self.late = self.others()
        self.tape = power_cut.Tape(into, under)
        self.final = self.tape.disk(len(self.tape), power_cut.Everything())
        for path, content in self.final.files.items():   # the record is complete
            self.assertEqual(content, (under / path).read_bytes(), path)
        self.assertEqual(len(self.final.files), sum(p.is_file() for p in under.rglob("*")))
        self.numbers = Journal(self.final.files["work/journal"]).documents["target"]["numbers"]
        self.blocks = {number: self.ids_by_offset(number) for number in self.numbers}

    def others(self):
        """The contents of the collections beside the target."""
        return {name: list(self.database[name].find())
                for name in self.database.list_collection_names() if name != "t"}

    def ids_by_offset(self, number):
        return sorted((fault_case.Expected.offset_of(key & fault_case.PLACE), key)
                      for batch in self.traffic.batches for key in batch.ids
                      if key >> 40 == number)

    def moment(self, cut):
        """The power fails as soon as operation `cut` - 1 is done."""
        return self.tape.operations[cut - 1].moment if cut else 0

    def keeps(self, draw):
        regular = [power_cut.Nothing, power_cut.Everything, power_cut.Names, power_cut.Contents]
        return [keep() for keep in regular] + [power_cut.Some(draw) for _ in range(TEARS)]

    # For each moment

    def test_the_journal_promises_only_what_is_there(self):
        draw = random.Random(1)
        self.assertGreater(sum(one.kind == power_cut.SYNC_ENDED for one in self.tape.operations), 8)
        broken = []
        for cut in range(len(self.tape) + 1):
            for keep in self.keeps(draw):
                try:
                    self.assert_promises(cut, self.tape.disk(cut, keep))
                except AssertionError as error:
                    broken.append(f"cut {cut} of {len(self.tape)}, {type(keep).__name__}: {error}")
        self.assertEqual(broken[:3], [], f"{len(broken)} moments")

    def assert_promises(self, cut, disk):
        now = self.moment(cut)
        journal = Journal(disk.files.get("work/journal", b""))
        if self.traffic.first_change < now:
            self.assertIn("begun", journal.documents, "the cluster was changed before")
        if self.traffic.batches[0].sent < now:
            self.assertIn("target", journal.documents, "documents were sent before")
        there = {key for batch in self.traffic.batches for key in batch.ids
                 if batch.answered and batch.answered < now}
        for entry in journal.entries:
            number = self.numbers[entry.source]
            missing = [key for offset, key in self.blocks[number] if key not in there and
                       entry.offset <= offset < entry.offset + entry.text_bytes]
            self.assertEqual(missing, [], f"not acknowledged, but in the journal: {entry}")
            self.assert_prefix(disk, "work/rejects.tsv", entry.table_bytes)
            raw = [path for path in self.final.files
                   if path.startswith(f"work/rejected/{entry.source + 1:06}-")]
            if entry.raw_bytes:
                self.assert_prefix(disk, raw[0], entry.raw_bytes)

    def assert_prefix(self, disk, path, length):
        self.assertEqual(disk.files.get(path, b"")[:length], self.final.files[path][:length],
                         f"{path} has other {length} bytes than the journal relies on")

    def test_all_is_on_the_disk_when_it_ends(self):
        disk = self.tape.disk(len(self.tape), power_cut.Nothing())
        for path, content in self.final.files.items():
            if not path.endswith("shardload.log"):
                self.assertEqual(disk.files.get(path), content, path)
        self.assertIn("finished", Journal(disk.files["work/journal"]).documents)

    # For some

    def test_resumed_loads_complete(self):
        draw = random.Random(2)
        syncs = [number for number, one in enumerate(self.tape.operations)
                 if one.kind in (power_cut.SYNC_BEGUN, power_cut.SYNC_ENDED, power_cut.RENAMED)]
        tried = []
        for attempt in range(RESUMES):
            cut = draw.choice(syncs) + draw.randint(0, 1) if attempt % 2 \
                else draw.randint(0, len(self.tape))
            keep = draw.choice(self.keeps(draw))
            disk = self.tape.disk(cut, keep)
            if disk in tried:
                continue
            tried.append(disk)
            with self.subTest(cut=cut, of=len(self.tape), keep=type(keep).__name__):
                self.resume_from(f"after-{attempt}", cut, disk, draw)
        self.assertGreater(len(tried), RESUMES // 2)

    def resume_from(self, name, cut, disk, draw):
        now = self.moment(cut)
        there = []
        for batch in self.traffic.batches:
            if batch.answered and batch.answered < now:
                there += batch.ids
            elif batch.sent < now:           # the server may have done any part of it
                there += [key for key in batch.ids if draw.random() < 0.5]
        self.database.t.delete_many({"_id": {"$nin": there}})
        registered = self.late if now > self.traffic.batches[-1].answered else self.early
        for other, documents in registered.items():
            self.database[other].delete_many({})
            self.database[other].insert_many(documents)
        place = self.scratch / name
        disk.write_to(place)
        self.work = place / "work"
        outcome = self.resume()
        if outcome.code == support.EXIT_USAGE:           # nothing to go on from: a new load
            self.assertLessEqual(now, self.traffic.first_change, outcome.text)
            self.assertRegex(outcome.err, "no journal|cannot use the work directory")
            outcome = self.begin().wait()
        self.assert_completed(outcome)


if __name__ == "__main__":
    import tap
    tap.main()
