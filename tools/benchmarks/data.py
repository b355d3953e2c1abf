# SPDX-License-Identifier: Apache-2.0
"""Generated data: made when it is first wanted, from fixed seeds, and kept for the other rows."""
import os
import shutil
from typing import NamedTuple

from .process import Failure, run

MOT_ROW = 86         # bytes of a record, about
GZIP_SHARE = 0.45    # of them when compressed, at most


class Data(NamedTuple):
    path: str
    records: int
    bytes: int  # of text, uncompressed


class DataSets:
    def __init__(self, folder, bin_folder):
        self.folder = folder
        self.bin = bin_folder
        self.made = {}

    def mot(self, records, dialect="B", gzip=False, clean=False):
        """`clean`: without the oddities of real files, for loaders that would stumble."""
        self.need_room(records * MOT_ROW * (GZIP_SHARE if gzip else 1))
        more = ["--gzip", "--gzip-level", "1"] if gzip else []
        more += ["--dirt", "none"] if clean else []
        return self._generated(f"mot-{dialect}{'-clean' * clean}-{records}.txt", records, gzip,
                               "--dialect", dialect, *more)

    def isd(self, records):
        return self._generated(f"isd-{records}.txt", records, False, "--format", "isd")

    def _generated(self, name, records, gzip, *options):
        path = self.folder / (name + (".gz" if gzip else ""))
        if path not in self.made:
            run([self.bin / "shardload-datagen", "--rows", records, *options, path])
            self.made[path] = Data(str(path), records,
                                   records * MOT_ROW if gzip else os.path.getsize(path))
        return self.made[path]

    def dump(self, data):
        """The documents that a load of `data` makes, in the order of the file, as BSON."""
        path = self.folder / (os.path.basename(data.path) + ".bson")
        if path not in self.made:
            self.need_room(data.bytes * 6)
            run([self.bin / "shardload", "load", "--sink", f"bson:{path}", "--threads", 1,
                 "--progress", "none", "--work-dir", self.folder / "work-dump", data.path])
            shutil.rmtree(self.folder / "work-dump")
            self.made[path] = str(path)
        return self.made[path]

    def forget(self, data):
        """Deletes what is large and not needed again."""
        for path in [path for path in self.made if str(path).startswith(data.path)]:
            os.unlink(path)
            del self.made[path]

    def need_room(self, wanted):
        free = shutil.disk_usage(self.folder).free
        if free < wanted * 1.1:
            raise Failure(f"{self.folder} has {free / 1e9:.1f} GB free, of {wanted / 1e9:.1f} GB "
                          "needed: set TMPDIR, or a smaller --scale")
