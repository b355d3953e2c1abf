# SPDX-License-Identifier: Apache-2.0
"""Archives: their entries are loaded as if they had been unpacked."""
import gzip
import io
import json
import lzma
import tarfile
import warnings

import archive_making as making
import support
from support import HEADER

ROW = "{0}|22|2015-11-20|4|NT|P|49828|UB|TOYOTA|YARIS|SILVER|PE|998|2005-10-17"


class Archives(support.Case):
    def documents(self, path, *words, **more):
        found, work = self.dump_decoded(*words, path, **more)
        return sorted(found, key=lambda document: (document.get("t", 0), document.get("st", ""),
                                                   json.dumps(document, default=str))), work

    def zip(self, name, entries):
        return self.file(name, making.zip_of(entries))

    def test_entries_of_a_zip_may_have_different_dialects(self):
        turned = HEADER.split("|")[::-1]
        rows = [ROW.format(n) for n in (1, 2)] + [ROW.format("x")]
        january = "\n".join([HEADER, *rows])  # no final newline
        february = "\n".join([",".join(turned)] + [",".join(ROW.format(n).split("|")[::-1]) for n in (3, 4)]) + "\n"
        path = self.zip("year.zip", [("2015/january.csv", january),
                                     ("__MACOSX/january.csv", "rubbish"),
                                     ("2015/readme.txt", "Read me. This is no data.\n"),
                                     ("2015/february.csv", february)])
        for threads in (1, 4):
            with self.subTest(threads):
                self.documents(path, "-j", threads, code=support.EXIT_SOURCE)
                found, work = self.documents(path, "-j", threads, "--skip-other", code=support.EXIT_REJECTS)
                self.assertEqual([document["t"] for document in found], [1, 2, 3, 4])
                self.assertEqual({document["o"] for document in found}, {"YARIS"})
                (reject,) = support.reject_rows(work)
                self.assertTrue(reject["source"].endswith("year.zip: 2015/january.csv"), reject)
                self.assertEqual((reject["line"], reject["column"]), ("4", "test_id"))
                self.assertIn("readme.txt", (work / "shardload.log").read_text())

    def test_a_byte_order_mark_or_blank_lines_before_the_header_of_an_entry(self):
        table = "a,b\n1,2\n"
        for head in ("\ufeff", "\n", "\n \n", "\ufeff\n"):
            path = self.zip("a.zip", [(name, before + table) for name, before in (
                ("1.csv", ""), ("2.csv", head), ("3.csv", head))])
            found, _ = self.documents(path)
            self.assertEqual(found, [{"a": 1, "b": 2}] * 3, repr(head))

    def test_an_entry_that_begins_with_blanks_before_the_end_of_a_mib(self):
        # Its first block holds nothing but these.
        for name, first, head, body in (
                ("json", '{"a":"%s"}\n', "\ufeff", '[{"a":1},{"a":\n2}]'),
                ("json", '{"a":"%s"}\n', "\n", '{"a":1}\n{"a":2}\n'),
                ("csv", "a,b\n1,%s\n", "\n", "a,b\n1,2\n3,4\n")):
            for before in (1, 2):
                text = first % ("x" * ((1 << 20) - before - len(first) + 2))
                path = self.zip("a.zip", [(f"1.{name}", text), (f"2.{name}", head + body)])
                found, _ = self.documents(path)
                self.assertEqual(len(found), 3, (head, body, before))

    def test_a_damaged_file_in_a_folder_ends_the_load_with_skip_other_too(self):
        folder = self.file("year/good.txt", f"{HEADER}\n{ROW.format(1)}\n").parent
        self.file("year/readme.pdf", b"%PDF-1.4 no data")
        found, _ = self.documents("--skip-other", folder)
        self.assertEqual([document["t"] for document in found], [1])
        rows = "\n".join(ROW.format(n * 7919) for n in range(5000))
        self.file("year/cut.gz", gzip.compress(f"{HEADER}\n{rows}\n".encode())[:3000])
        outcome, _ = self.parse("--skip-other", folder, code=support.EXIT_SOURCE)
        self.assertIn("cut.gz", outcome.text)
        self.assertIn("truncated", outcome.text)

    def test_a_tar_of_gzip_files_gives_the_documents_of_its_files(self):
        folder = support.mot_sample(".").parent / "isd"
        files = [folder / name for name in ("011490-99999-1986.gz", "024130-99999-2016.gz")]
        path = self.file("1986.tar", making.tar([(file.name, file.read_bytes()) for file in files]))
        separate = []
        for file in files:
            separate += self.documents(file)[0]
        separate.sort(key=lambda document: (document["st"], json.dumps(document, default=str)))
        archived, _ = self.documents(path, "-j", 4)
        self.assertEqual(len(archived), 1328 + 2601)
        self.assertEqual(archived, separate)

    def test_isd_lite_takes_the_station_from_the_name_of_the_entry(self):
        name = "029070-99999-1901.gz"
        text = gzip.decompress((support.mot_sample(".").parent / "isd/isd-lite" / name).read_bytes())
        path = self.zipped("lite.tar.gz", making.tar([
            (f"1901/{station}-99999-1901", text) for station in ("029070", "123456")]))
        found, _ = self.documents(path)
        stations = [document["st"] for document in found]
        self.assertEqual(stations.count("u029070"), 1095)
        self.assertEqual(stations.count("u123456"), 1095)


class Repeated(support.Case):
    """`tar -r` appends newer versions of files, and a zip may hold one path twice. Unpacking keeps the last
    version."""
    OLD, NEW, OTHER = ({"a": number, "b": 7} for number in (1, 2, 3))

    @staticmethod
    def entries(*named):
        return [(name, f"a,b\n{document['a']},7\n") for name, document in named]

    def archives(self, entries):
        tar = making.tar(entries)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own: a name is repeated
            packed = making.zip_of(entries)
        return [self.file("a.zip", packed), self.file("a.tar", tar), self.zipped("a.tar.gz", tar)]

    def refused(self, path, name, **more):
        outcome, _ = self.parse(path if "stdin" not in more else "-", code=support.EXIT_SOURCE, **more)
        self.assertRegex(outcome.err, f"{name}: the (zip|tar) archive holds this entry twice")
        self.assertIn("unpack the archive", outcome.err)
        self.assertNotIn("--resume", outcome.text)

    def test_an_archive_with_two_versions_of_a_file_is_refused(self):
        for again in ("d/a.csv", "./d/a.csv", "/d//a.csv", "d/./a.csv"):
            entries = self.entries(("d/a.csv", self.OLD), ("b.csv", self.OTHER), (again, self.NEW))
            for path in self.archives(entries):
                with self.subTest(path.name, again=again):
                    self.refused(path, again)
                    self.refused(path, again, stdin=path.read_bytes())

    def test_equal_names_in_different_folders_and_files_that_are_not_read(self):
        entries = self.entries(("a.csv", self.OLD), ("d/a.csv", self.OLD), ("A.csv", self.OLD),
                               (".a.csv", self.NEW), (".a.csv", self.NEW))
        for path in self.archives(entries):
            self.assertEqual(self.dump_decoded(path)[0], [self.OLD] * 3)
        for path in self.archives(self.entries(("a.csv", self.OLD), ("b.txt", self.NEW), ("b.txt", self.NEW))):
            self.assertEqual(self.dump_decoded("--include", "*.csv", path)[0], [self.OLD])

    def test_a_damaged_file_that_is_left_out(self):
        path = self.file("a.tar", making.tar([("a.gz", b"\x1f\x8b\x08\0garbage"), ("b.csv", "x\n1\n2\n")]))
        self.assertEqual(len(self.dump("--include", "*.csv", path)[0]), 2)

    def test_a_link_in_place_of_a_file(self):
        def archive(*links):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w") as tar:
                for name, text in self.entries(("a.csv", self.OLD), ("b.csv", self.OTHER)):
                    info = tarfile.TarInfo(name)
                    info.size = len(text)
                    tar.addfile(info, io.BytesIO(text.encode()))
                for name, kind, target in links:
                    info = tarfile.TarInfo(name)
                    info.type, info.linkname = kind, target
                    tar.addfile(info)
            return self.file("a.tar", out.getvalue())

        self.refused(archive(("a.csv", tarfile.LNKTYPE, "b.csv")), "a.csv")
        self.refused(archive(("a.csv", tarfile.SYMTYPE, "b.csv")), "a.csv")
        # `tar c a.csv a.csv` adds a link of the file to itself.
        path = archive(("a.csv", tarfile.LNKTYPE, "a.csv"), ("c.csv", tarfile.LNKTYPE, "a.csv"))
        self.assertCountEqual(self.dump_decoded(path)[0], [self.OLD, self.OTHER])


class Dictionaries(support.Case):
    """The header of LZMA and xz data may demand a dictionary of 4 GiB. A file of some kilobytes would fill it."""
    ROWS = 75 << 19
    TEXT = b"a,b\n" + b"1,2\n" * ROWS  # 150 MiB
    LZMA, XZ, END_MARKER = 14, 95, 2

    def xz(self, dictionary):
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": dictionary, "preset": 1}]
        return lzma.compress(self.TEXT, lzma.FORMAT_XZ, filters=filters)

    def test_the_memory_for_entries_of_a_zip_is_limited(self):
        huge = {"lzma": making.zip_of_one("a.csv", self.TEXT, making.zip_lzma(self.TEXT, 0xFFFFFFFF), self.LZMA,
                                          self.END_MARKER),
                "xz": making.zip_of_one("a.csv", self.TEXT, self.xz(1 << 30), self.XZ)}
        for name, data in huge.items():
            path = self.file(f"{name}.zip", data)
            for words, more in (([path], {}), (["-"], {"stdin": data})):
                outcome, _ = self.parse(*words, code=support.EXIT_SOURCE, **more)
                self.assertRegex(outcome.err, r"a.csv: unpacking this entry takes [0-9.]+ GB of memory, more than "
                                 "256 MiB(?s:.*)unpack the archive first")
            self.assertLess(self.peak(path, code=support.EXIT_SOURCE)[0], 64 << 20)

    def test_entries_with_the_dictionary_of_xz_9_are_loaded(self):
        usual = {"lzma": making.zip_of_one("a.csv", self.TEXT, making.zip_lzma(self.TEXT, 64 << 20), self.LZMA,
                                           self.END_MARKER),
                 "xz": making.zip_of_one("a.csv", self.TEXT, self.xz(64 << 20), self.XZ)}
        for name, data in usual.items():
            _, work = self.parse(self.file(f"{name}.zip", data))
            self.assert_accounting(work, inserted=self.ROWS)

    def test_lzma_data_without_an_end_marker_and_damaged_data(self):
        text = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n % 101) for n in range(2000))
        for end_marker, flags in ((True, self.END_MARKER), (False, 0)):
            data = making.zip_of_one("a.csv", text, making.zip_lzma(text, 1 << 16, end_marker), self.LZMA, flags)
            found, _ = self.dump_decoded("-j", 1, self.file("a.zip", data))
            self.assertEqual(len(found), 2000)
            for at in (39, 60, 400, 1200):  # the properties, the data
                changed = bytearray(data)
                changed[at] ^= 0xA5
                outcome, _ = self.parse(self.file("a.zip", bytes(changed)), code=support.EXIT_SOURCE)
                self.assertRegex(outcome.err, "fetch the file again|unpack the archive first", at)
