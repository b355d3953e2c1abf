# SPDX-License-Identifier: Apache-2.0
"""The loader's machine loses power at any time: unsynced data is lost in part or in full, and
--resume still completes the load.

SIGKILL does not test this, because the kernel still writes the data of a killed program to the disk.
So one load is recorded with each of its writes, renames and syncs, and with the times of each batch
and its reply. The work directory and the collection after a power failure between any two operations
are computed from the recording. For each such time the journal is compared with the other files and
the collection; for a random selection the load is resumed."""
import random
import re
import struct
import time

import fault_case
import power_cut
import proxy
import resume_case
import support
from journal_reader import Journal

RESUMES = 24 * fault_case.ROUNDS
RANDOM_DISKS = 3 * fault_case.ROUNDS   # for each time, besides the four regular ones
DOCUMENTS_PER_SECOND = 300      # the load takes a few seconds; the journal is written once a second
REJECTED = 23                   # one row in 23 is rejected


def text_with_rejects(seed):
    lines = resume_case.wide_text(seed, resume_case.BLOCKS // 3).decode().split("\n")
    return "\n".join(line.replace("|49828|", "|49 828|") if number % REJECTED == 7 else line
                     for number, line in enumerate(lines)).encode()


class Batch:
    """An insert into the target: the times at which the proxy forwarded it and its reply."""

    def __init__(self, ids):
        self.sent, self.answered = time.monotonic_ns(), None
        self.ids = ids


class Traffic:
    """Proxy.observe: the batches and the first change of the cluster, timed by the clock of the
    recording."""

    def __init__(self, collection):
        self.collection = collection
        self.batches, self.waiting, self.first_change = [], {}, None

    def __call__(self, link, kind, message):
        number = struct.unpack_from("<i", message, 4 if kind == "request" else 8)[0]
        if kind == "reply":
            if (link, number) in self.waiting:
                self.waiting.pop((link, number)).answered = time.monotonic_ns()
            return
        name, value = proxy.command_of(message)
        if name in ("create", "insert", "findAndModify", "update") and self.first_change is None:
            self.first_change = time.monotonic_ns()
        if name == "insert" and proxy.collection_of(value) == self.collection:
            batch = self.waiting[link, number] = Batch(self.ids_of(message))
            self.batches.append(batch)

    @staticmethod
    def ids_of(message):
        """The _ids of the documents in the message's sequences (sections of kind 1)."""
        ids, at, end = [], 20, len(message)
        while at < end and message[at] in (0, 1):
            size = struct.unpack_from("<i", message, at + 1)[0]
            if message[at] == 1:
                start = message.index(b"\0", at + 5) + 1
                ids += map(support.key_of, support.bson_documents(message[start:at + 1 + size]))
            at += 1 + size
        return ids


class PowerLoss(resume_case.ResumeCase, server="mongod"):
    @classmethod
    def make_source(cls, folder):
        return resume_case.several(folder, [text_with_rejects(seed) for seed in "abc"])

    def setUp(self):
        super().setUp()
        self.record_one_load()

    def record_one_load(self):
        disk, recording = self.scratch / "disk", self.scratch / "recording"
        disk.mkdir()
        self.work = disk / "work"
        self.traffic = self.proxy.observe = Traffic("t")
        self.registry_before = None          # the other collections before the first batch

        def read_registry():
            self.registry_before = self.read_other_collections()
        self.proxy.on_batch(1, proxy.call(read_registry))
        running = self.start(
            "shardload", *self.words("--rate-limit", DOCUMENTS_PER_SECOND, threads=2),
            environment=support.preloaded("record_writes", RECORD_UNDER=str(disk),
                                          RECORD_INTO=str(recording)))
        self.assert_nothing_lost(running.wait())
        self.proxy.observe = lambda *_: None
        self.registry_after = self.read_other_collections()
        self.recording = power_cut.Recording(recording, disk)
        self.final = self.recording.disk(len(self.recording), power_cut.KEEP_EVERYTHING)
        for path, content in self.final.files.items():   # the recording is complete
            self.assertEqual(content, (disk / path).read_bytes(), path)
        self.assertEqual(len(self.final.files), sum(p.is_file() for p in disk.rglob("*")))
        self.numbers = Journal(self.final.files["work/journal"]).documents["target"]["numbers"]
        self.sent_ids = {number: self.ids_by_offset(number) for number in self.numbers}

    def ids_by_offset(self, number):
        """(offset, _id) of each document of this source that was sent, in order."""
        return sorted((fault_case.Expected.offset_of(key & fault_case.POSITION), key)
                      for batch in self.traffic.batches for key in batch.ids
                      if key >> 40 == number)

    def time_of(self, cut):
        """The time of a power failure right after operation `cut` - 1."""
        return self.recording.operations[cut - 1].time if cut else 0

    def keeps(self, draw):
        return [*power_cut.KEEP_EACH,
                *(power_cut.KeepRandomly(draw) for _ in range(RANDOM_DISKS))]

    # After each operation

    def test_the_journal_lists_no_block_that_is_not_stored(self):
        draw = random.Random(1)
        operations = self.recording.operations
        self.assertGreater(sum(one.kind == power_cut.SYNC_ENDED for one in operations), 8)
        failures = []
        for cut in range(len(operations) + 1):
            for keep in self.keeps(draw):
                try:
                    self.assert_consistent(cut, self.recording.disk(cut, keep))
                except AssertionError as error:
                    failures.append(f"cut {cut} of {len(operations)}, {keep}: {error}")
        self.assertEqual(failures[:3], [], f"{len(failures)} failures")

    def assert_consistent(self, cut, disk):
        """The cluster and the other files hold what the journal relies on."""
        now = self.time_of(cut)
        journal = Journal(disk.files.get("work/journal", b""))
        if self.traffic.first_change < now:
            self.assertIn("begun", journal.documents, "the cluster was changed before")
        if self.traffic.batches[0].sent < now:
            self.assertIn("target", journal.documents, "documents were sent before")
        acknowledged = {key for batch in self.traffic.batches for key in batch.ids
                        if batch.answered and batch.answered < now}
        for entry in journal.entries:
            number = self.numbers[entry.source]
            missing = [key for offset, key in self.sent_ids[number] if key not in acknowledged and
                       entry.offset <= offset < entry.offset + entry.text_bytes]
            self.assertEqual(missing, [], f"not acknowledged, but in the journal: {entry}")
            self.assert_prefix(disk, "work/rejects.tsv", entry.table_bytes)
            raw = [path for path in self.final.files
                   if path.startswith(f"work/rejected/{entry.source + 1:06}-")]
            if entry.raw_bytes:
                self.assert_prefix(disk, raw[0], entry.raw_bytes)

    def assert_prefix(self, disk, path, length):
        self.assertEqual(disk.files.get(path, b"")[:length], self.final.files[path][:length],
                         f"the first {length} bytes of {path} differ, and the journal relies on them")

    def test_all_files_but_the_log_are_synced_when_the_load_ends(self):
        disk = self.recording.disk(len(self.recording), power_cut.KEEP_NOTHING)
        for path, content in self.final.files.items():
            if not path.endswith("shardload.log"):
                self.assertEqual(disk.files.get(path), content, path)
        self.assertIn("finished", Journal(disk.files["work/journal"]).documents)

    # After randomly drawn operations

    def test_resumed_loads_complete(self):
        draw = random.Random(2)
        operations = self.recording.operations
        syncs = [number for number, one in enumerate(operations)
                 if one.kind in (power_cut.SYNC_BEGUN, power_cut.SYNC_ENDED, power_cut.RENAMED)]
        tried = []
        for attempt in range(RESUMES):
            cut = draw.choice(syncs) + draw.randint(0, 1) if attempt % 2 \
                else draw.randint(0, len(operations))
            keep = draw.choice(self.keeps(draw))
            disk = self.recording.disk(cut, keep)
            if disk in tried:
                continue
            tried.append(disk)
            with self.subTest(cut=cut, of=len(operations), keep=keep):
                self.resume_from(f"after-{attempt}", cut, disk, draw)
        self.assertGreater(len(tried), RESUMES // 2)

    def resume_from(self, name, cut, disk, draw):
        now = self.time_of(cut)
        stored = []
        for batch in self.traffic.batches:
            if batch.answered and batch.answered < now:
                stored += batch.ids
            elif batch.sent < now:           # the server may have stored any part of it
                stored += [key for key in batch.ids if draw.random() < 0.5]
        self.database.t.delete_many({"_id": {"$nin": stored}})
        ended = now > self.traffic.batches[-1].answered
        for other, documents in (self.registry_after if ended else self.registry_before).items():
            self.database[other].delete_many({})
            self.database[other].insert_many(documents)
        folder = self.scratch / name
        disk.write_to(folder)
        self.work = folder / "work"
        outcome = self.resume()
        if outcome.code == support.EXIT_USAGE:           # no journal to resume from: a new load
            self.assertLessEqual(now, self.traffic.first_change, outcome.text)
            # Without its first sectors, the journal is damaged, or, also without the log, unknown.
            if re.search("its beginning is damaged|it is no work directory", outcome.err):
                self.work = folder / "another"
            else:
                self.assertRegex(outcome.err, "no journal|cannot use the work directory")
            outcome = self.begin().wait()
        self.assert_completed(outcome)
