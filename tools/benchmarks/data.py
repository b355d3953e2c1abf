# SPDX-License-Identifier: Apache-2.0
"""Generates data from fixed seeds when a row first needs it, and keeps it for other rows."""
import os
import shutil
from typing import NamedTuple

from .process import Failure, run

MOT_ROW = 86         # bytes of a record, approximately
GZIP_SHARE = 0.45    # maximum share of compressed bytes


class Data(NamedTuple):
    path: str
    records: int
    bytes: int  # of text, uncompressed


class DataSets:
    def __init__(self, folder, bin_folder):
        self.folder = folder
        self.bin = bin_folder
        self.generated = {}

    def mot(self, records, dialect="B", gzip=False, clean=False):
        """`clean`: without the irregularities of real files, on which other loaders fail."""
        self.need_room(records * MOT_ROW * (GZIP_SHARE if gzip else 1))
        more = ["--gzip", "--gzip-level", "1"] if gzip else []
        more += ["--dirt", "none"] if clean else []
        return self._generated(f"mot-{dialect}{'-clean' * clean}-{records}.txt", records, gzip,
                               "--dialect", dialect, *more)

    def isd(self, records):
        return self._generated(f"isd-{records}.txt", records, False, "--format", "isd")

    def _generated(self, name, records, gzip, *options):
        path = self.folder / (name + (".gz" if gzip else ""))
        if path not in self.generated:
            run([self.bin / "shardload-datagen", "--rows", records, *options, path])
            self.generated[path] = Data(str(path), records,
                                   records * MOT_ROW if gzip else os.path.getsize(path))
        return self.generated[path]

    def dump(self, data):
        """A BSON file with the documents that a load of `data` stores, in the order of the text."""
        path = self.folder / (os.path.basename(data.path) + ".bson")
        if path not in self.generated:
            self.need_room(data.bytes * 6)
            run([self.bin / "shardload", "load", "--sink", f"bson:{path}", "--threads", 1,
                 "--progress", "none", "--work-dir", self.folder / "work-dump", data.path])
            shutil.rmtree(self.folder / "work-dump")
            self.generated[path] = str(path)
        return self.generated[path]

    def forget(self, data):
        """Deletes data that no other row uses."""
        for path in [path for path in self.generated if str(path).startswith(data.path)]:
            os.unlink(path)
            del self.generated[path]

    def need_room(self, needed):
        free = shutil.disk_usage(self.folder).free
        if free < needed * 1.1:
            raise Failure(f"{self.folder} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB "
                          "are needed: set TMPDIR to another folder, or use a smaller --scale")
