# SPDX-License-Identifier: Apache-2.0
"""What a disk holds after a power failure, computed from a record of operations (record_writes.c).

    tape = Tape(path_of_the_record, "/folder/that/was/recorded")
    tape.disk(cut, keep).write_to(another_folder)

`cut` is the number of operations that were done before the power failed. What the program had
synced by then is on the disk. Of the rest `keep` decides, an object with two methods: `name()` is
asked for each new, renamed or removed name whose folder was not synced, and `sectors(count)` for
each write, which it answers with a truth value per sector of 512 bytes. So a file may have any part
of what was written since it was synced, in any order, with zeros in the gaps, and a file whose
name was not synced may be missing, as POSIX allows."""
import os
import struct
from typing import NamedTuple

OPENED, FOLDER_MADE, RENAMED, REMOVED, WRITTEN, CUT, SYNC_BEGUN, SYNC_ENDED = range(1, 9)
RECORD = struct.Struct("<6Q")
SECTOR = 512


class Operation(NamedTuple):
    moment: int               # nanoseconds of the steady clock
    kind: int
    file: int                 # inode
    offset: int
    path: str
    data: bytes


class Nothing:
    """All that was not synced is lost."""

    def name(self):
        return False

    def sectors(self, count):
        return [False] * count


class Everything(Nothing):
    """The kernel had just written it all: the same as when only the process dies."""

    def name(self):
        return True

    def sectors(self, count):
        return [True] * count


class Names(Everything):
    """Names are on the disk, contents are not: files have their sizes of the last sync."""

    def sectors(self, count):
        return [False] * count


class Contents(Nothing):
    """Contents are on the disk, the names of new files are not."""

    def sectors(self, count):
        return [True] * count


class Some:
    """Whatever a generator of random numbers says."""

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

    def write_to(self, place):
        place.mkdir(exist_ok=True)
        for folder in sorted(self.folders):
            (place / folder).mkdir(mode=0o700)
        for path, content in self.files.items():
            (place / path).write_bytes(content)
            (place / path).chmod(0o600)


class Tape:
    def __init__(self, record, under):
        data, at, self.under = record.read_bytes(), 0, os.fspath(under)
        self.operations = []
        while at < len(data):
            moment, kind, file, offset, path, more = RECORD.unpack_from(data, at)
            at += RECORD.size
            name = data[at:at + path].decode()
            at += path
            self.operations.append(Operation(moment, kind, file, offset, self.inside(name),
                                             data[at:at + more]))
            at += more

    def inside(self, path):
        return os.path.relpath(path, self.under) if path else ""

    def __len__(self):
        return len(self.operations)

    def synced(self, cut):
        """(file or folder -> the operation up to which its contents or names are on the disk)."""
        found = {}
        for one in self.operations[:cut]:
            if one.kind == SYNC_ENDED:
                begun = self.operations[one.offset]
                what = begun.path or one.file
                found[what] = max(found.get(what, 0), one.offset)
        return found

    def disk(self, cut, keep):
        synced = self.synced(cut)
        names, folders, contents = {}, {"."}, {}      # path -> file; file -> its bytes
        live = {}                                     # the names as the program saw them
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
                to = self.inside(one.data.decode())
                live[to] = live.pop(one.path)
                if kept or keep.name():
                    names.pop(one.path, None)
                    names[to] = live[to]
            elif one.kind == REMOVED:
                live.pop(one.path, None)
                if kept or keep.name():
                    names.pop(one.path, None)
            elif one.kind in (WRITTEN, CUT):
                self.change(contents[one.file], one, number <= synced.get(one.file, -1), keep)
        there = {path: bytes(contents[file]) for path, file in names.items()
                 if self.has_folder(path, folders)}
        return Disk(frozenset(path for path in folders - {"."}
                              if self.has_folder(path, folders)), there)

    @staticmethod
    def has_folder(path, folders):
        while path := os.path.dirname(path):
            if path not in folders:
                return False
        return True

    @staticmethod
    def change(content, one, is_synced, keep):
        if one.kind == CUT:
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
