# SPDX-License-Identifier: Apache-2.0
"""Computes the contents of a disk after a power failure from a recording by record_writes.c.

    recording = Recording(path, "/folder/that/was/recorded")
    recording.disk(cut, keep).write_to(another_folder)

`cut` is the number of operations before the power failure. Data synced by then is on the disk. The
object `keep` decides about unsynced data: `name()` returns whether a new, renamed or removed name in
an unsynced folder is on the disk, and `sectors(count)` returns a truth value for each of the `count`
sectors of 512 bytes of a write. So a file may have any part of the data written since its last sync,
with zeros in the gaps, and a file whose name was not synced may be missing, as POSIX allows."""
import os
import struct
from typing import NamedTuple

OPENED, FOLDER_MADE, RENAMED, REMOVED, WRITTEN, TRUNCATED, SYNC_BEGUN, SYNC_ENDED = range(1, 9)
RECORD = struct.Struct("<6Q")
SECTOR = 512


class Operation(NamedTuple):
    time: int                 # nanoseconds of the monotonic clock
    kind: int
    file: int                 # inode
    offset: int
    path: str
    data: bytes


class Keep(NamedTuple):
    """All or nothing of the unsynced names and of the unsynced contents is on the disk."""
    names: bool
    contents: bool

    def name(self):
        return self.names

    def sectors(self, count):
        return [self.contents] * count


KEEP_NOTHING = Keep(names=False, contents=False)
KEEP_EVERYTHING = Keep(names=True, contents=True)      # as after a crash of the process alone
KEEP_EACH = [KEEP_NOTHING, KEEP_EVERYTHING, Keep(True, False), Keep(False, True)]


class KeepRandomly:
    """Names and sectors that a random number generator draws."""

    def __init__(self, draw):
        self.draw = draw
        self.share = draw.choice([0.2, 0.5, 0.9])

    def name(self):
        return self.draw.random() < 0.7

    def sectors(self, count):
        return [self.draw.random() < self.share for _ in range(count)]


class Disk(NamedTuple):
    folders: frozenset
    files: dict               # path -> contents

    def write_to(self, root):
        root.mkdir(exist_ok=True)
        for folder in sorted(self.folders):
            (root / folder).mkdir(mode=0o700)
        for path, content in self.files.items():
            (root / path).write_bytes(content)
            (root / path).chmod(0o600)


class Recording:
    def __init__(self, file, root):
        data, at, self.root = file.read_bytes(), 0, os.fspath(root)
        self.operations = []
        while at < len(data):
            time, kind, inode, offset, path_bytes, data_bytes = RECORD.unpack_from(data, at)
            at += RECORD.size
            path = data[at:at + path_bytes].decode()
            at += path_bytes
            self.operations.append(Operation(time, kind, inode, offset, self.relative(path),
                                             data[at:at + data_bytes]))
            at += data_bytes

    def relative(self, path):
        return os.path.relpath(path, self.root) if path else ""

    def __len__(self):
        return len(self.operations)

    def synced(self, cut):
        """Inode of a file, or path of a folder -> number of the operation that began its last
        completed sync. Its earlier operations are on the disk."""
        synced = {}
        for operation in self.operations[:cut]:
            if operation.kind == SYNC_ENDED:
                begun = self.operations[operation.offset]
                key = begun.path or operation.file
                synced[key] = max(synced.get(key, 0), operation.offset)
        return synced

    def disk(self, cut, keep):
        synced = self.synced(cut)
        names, folders, contents = {}, {"."}, {}      # path -> inode; inode -> its bytes
        live = {}                                     # path -> inode, as the program sees them
        for number, one in enumerate(self.operations[:cut]):
            folder = os.path.dirname(one.path) or "."
            kept = number <= synced.get(folder, -1)
            if one.kind == OPENED and one.path not in live:
                live[one.path] = one.file
                contents[one.file] = bytearray()
                if kept or keep.name():
                    names[one.path] = one.file
            elif one.kind == FOLDER_MADE:
                if kept or keep.name():
                    folders.add(one.path)
            elif one.kind == RENAMED:
                to = self.relative(one.data.decode())
                live[to] = live.pop(one.path)
                if kept or keep.name():
                    names.pop(one.path, None)
                    names[to] = live[to]
            elif one.kind == REMOVED:
                live.pop(one.path, None)
                if kept or keep.name():
                    names.pop(one.path, None)
            elif one.kind in (WRITTEN, TRUNCATED):
                self.change(contents[one.file], one, number <= synced.get(one.file, -1), keep)
        files = {path: bytes(contents[file]) for path, file in names.items()
                 if self.has_folder(path, folders)}
        return Disk(frozenset(path for path in folders - {"."}
                              if self.has_folder(path, folders)), files)

    @staticmethod
    def has_folder(path, folders):
        while path := os.path.dirname(path):
            if path not in folders:
                return False
        return True

    @staticmethod
    def change(content, one, is_synced, keep):
        if one.kind == TRUNCATED:
            if is_synced or keep.sectors(1)[0]:
                del content[one.offset:]
            return
        end = one.offset + len(one.data)
        first, last = one.offset // SECTOR, (end - 1) // SECTOR
        sectors = [True] * (last - first + 1) if is_synced else keep.sectors(last - first + 1)
        for sector, kept in enumerate(sectors, first):
            begin, stop = max(one.offset, sector * SECTOR), min(end, (sector + 1) * SECTOR)
            if kept:
                content.extend(bytes(max(stop - len(content), 0)))
                content[begin:stop] = one.data[begin - one.offset:stop - one.offset]
