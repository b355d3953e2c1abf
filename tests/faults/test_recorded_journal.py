# SPDX-License-Identifier: Apache-2.0
"""A journal of this format version, recorded in tests/data/journal, is resumed; journals of other
versions are refused. To record it again, after a change of the format:
SHARDLOAD_RECORD_JOURNAL=1 tools/test test_recorded_journal"""
import os
import re

import fault_case
import resume_case
import support
import journal_reader
from journal_reader import RECORDING, VERSION, Journal

MODIFIED_NS = 1_500_000_000 * 10**9     # of the source, when the journal was recorded
BLOCKS = 3


def make_text():
    """Rows of 3 blocks; in each a repeated header, a blank line, a reject and a repaired row."""
    lines = resume_case.wide_text("recorded", BLOCKS).decode().split("\n")
    for start in range(40, len(lines), 90):
        lines[start:start] = [support.HEADER, ""]
        lines[start + 5] = lines[start + 5].replace("|FORD|", "|FORD|GT|")
        lines[start + 6] = lines[start + 6].replace("|49828|", "|49 828|")
    return "\n".join(lines).encode()


class RecordedJournal(resume_case.ResumeCase, server="mongod"):
    @classmethod
    def make_source(cls, folder):
        path = folder / "rows.txt"
        path.write_bytes(make_text())
        return path, [fault_case.expected_of(path)]

    def setUp(self):
        super().setUp()
        self.file("rows.txt", self.source.read_bytes())
        self.set_time()
        outcome = self.begin(source="rows.txt").wait()
        self.accounting = self.assert_nothing_lost(outcome)
        self.own = Journal(self.journal())
        if os.environ.get("SHARDLOAD_RECORD_JOURNAL"):
            self.record()
        self.recorded = Journal((RECORDING / "journal").read_bytes())

    def set_time(self):
        os.utime(self.scratch / "rows.txt", ns=(MODIFIED_NS, MODIFIED_NS))

    def record(self):
        (RECORDING / "journal").write_bytes(self.journal())
        rows = [journal_reader.FIELDS, *self.own.entries]
        (RECORDING / "entries.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), "utf-8")

    def resume_recorded(self, blocks):
        """Resumes from the recorded journal, cut in the entry after `blocks`. Its values that
        belong to one cluster and one run are replaced by those of the load in setUp."""
        documents = self.recorded.documents
        begun = {**documents["begun"], **{name: self.own.documents["begun"][name]
                                          for name in ("version", "holder", "options")}}
        target = {**documents["target"], **{name: self.own.documents["target"][name]
                                            for name in ("target", "numbers")}}
        journal = journal_reader.encode({"begun": begun, "target": target}, self.recorded.entries[:blocks + 1])
        (self.work / "journal").write_bytes(journal[:-50])
        return self.resume(source="rows.txt")

    def remove_documents_from(self, offset):
        missing = [key for key in map(support.key_of, self.stored())
                   if fault_case.Expected.offset_of(key & fault_case.POSITION) >= offset]
        self.database.t.delete_many({"_id": {"$in": missing}})
        return len(missing)

    def test_a_load_is_resumed_from_it(self):
        removed = self.remove_documents_from(self.recorded.entries[2].offset)
        self.assertGreater(removed, 0)
        outcome = self.resume_recorded(blocks=2)
        totals = self.assert_nothing_lost(outcome)
        recovered = totals.pop("earlierRuns")
        for name in set(totals) - {"batches", "bsonBytes", "loadSeconds"}:   # of this run alone
            self.assertEqual(totals[name], self.accounting[name], name)
        for name, field in (("records", "records"), ("inserted", "inserted"),
                            ("textBytes", "text_bytes"), ("rejectedByParser", "rejects")):
            self.assertEqual(recovered[name], sum(getattr(entry, field)
                                                  for entry in self.recorded.entries[:2]), name)
        self.assertEqual(Journal(self.journal()).entries, self.own.entries)

    def test_its_hashes_are_compared_with_the_text(self):
        path = self.scratch / "rows.txt"
        text = bytearray(path.read_bytes())
        at = self.recorded.entries[1].offset + 5000
        text[at] = ord("y") if text[at] == ord("x") else ord("x")
        path.write_bytes(text)
        self.set_time()
        self.resume_recorded(blocks=2).expect(
            support.EXIT_SOURCE,
            f"rows.txt: the text at byte {self.recorded.entries[1].offset} differs")

    def test_it_has_the_entries_of_a_load_of_today(self):
        self.assertEqual(self.recorded.entries, self.own.entries)
        self.assertEqual(list(self.recorded.documents), ["begun", "target", "finished"])
        for name in "target", "finished":
            self.assertEqual(list(self.recorded.documents[name]), list(self.own.documents[name]))
        for journal in self.recorded, self.own:
            (source,) = journal.documents["begun"]["sources"]
            self.assertEqual(source["identity"]["modified"], MODIFIED_NS)
            self.assertEqual(source["identity"]["size"], source["storedBytes"])
            self.assertEqual(list(source), ["path", "fingerprint", "storedBytes", "leftOut",
                                            "identity"])
            self.assertEqual(list(source["identity"]), ["device", "inode", "size", "modified", "changed"])
        self.assertEqual(*[[source[name] for name in ("path", "fingerprint", "storedBytes")]
                           for journal in (self.recorded, self.own)
                           for source in journal.documents["begun"]["sources"]])


class OtherOptions(support.Case):
    """An option that changes documents must have the same value in both runs. The options are
    compared before the loader connects, and before the sources."""

    CHANGING = (["--format", "mot"], ["--types", "text"], ["--header", "no"], ["--columns", "a,b"],
                ["--skip-lines", "1"], ["--ragged", "pad"], ["--names", "long"],
                ["--encoding", "latin-1"], ["--trim"], ["--delimiter", "|"], ["--quote", "none"],
                ["--escape", "backslash"], ["--quoted-lines", "yes"], ["--missing", "raw"],
                ["--include", "*.txt"], ["--id-field", "test_id"], ["--part", "1/2"],
                ["--only-shards", "s0"], ["--mode", "upsert", "--match-fields", "t"],
                ["--embed", "items={embed}", "--on", "test_id"], ["--schema", "{schema}"])

    def setUp(self):
        super().setUp()
        documents = Journal((RECORDING / "journal").read_bytes()).documents
        version = self.shardload("--version").out.split()[1]
        self.begun = {**documents["begun"], "version": version}
        self.source = self.file("rows.txt", support.mot_text([1]))
        columns = [f"  - {{name: {name}, type: text}}\n" for name in support.HEADER.split("|")]
        self.places = {"embed": self.file("items.csv", "test_id,n\n1,2\n"),
                       "schema": self.file("schema.yaml", "name: rows\ncolumns:\n" + "".join(columns))}

    def resume(self, options, *words, **expected):
        work = self.scratch / "work"
        work.mkdir(exist_ok=True)
        (work / "shardload.log").touch()
        begun = {**self.begun, "options": {"db": "d", "collection": "t", **options}}
        (work / "journal").write_bytes(journal_reader.encode({"begun": begun}, []))
        words = [word.format(**self.places) for word in words]
        source = self.source.parent if "--include" in words else self.source
        return self.shardload("load", "--uri", f"mongodb://{support.HOST}:{support.free_port()}/",
                              "-d", "d", "-c", "t", "--work-dir", work, "--progress", "none",
                              "--resume", *words, source, **expected)

    def test_an_option_that_was_or_is_not_given(self):
        for words in self.CHANGING:
            for name, value in zip(words[::2], words[1::2] or ["yes"]):
                shown = value.split("=")[0] if name == "--embed" else value
                if name != "--schema":    # the hash of its text is compared
                    with self.subTest(name, direction="is"):
                        self.resume({}, *words, code=support.EXIT_USAGE,
                                    message=f'{name} was not given and is "{shown}"')
                with self.subTest(name, direction="was"):
                    self.resume({name[2:]: shown}, code=support.EXIT_USAGE,
                                message=f'{name} was "{shown}" and is not given')

    def test_a_schema_is_compared_by_its_text(self):
        outcome = self.resume({}, "--schema", "{schema}", code=support.EXIT_USAGE)
        digest = re.search(r'--schema was not given and is "([0-9a-f]{32})"', outcome.err)[1]
        self.resume({"schema": digest}, "--schema", "{schema}", code=support.EXIT_SOURCE)
        self.places["schema"].write_text(self.places["schema"].read_text() + "# other\n")
        self.resume({"schema": digest}, "--schema", "{schema}", code=support.EXIT_USAGE,
                    message=f'--schema was "{digest}" and is "')

    def test_equal_values_and_options_without_effect_on_documents_are_accepted(self):
        """The next check, that of the sources, refuses these loads."""
        config = self.file("options.yaml", "names: long\n")
        for options, words in (({}, []), ({"trim": "yes"}, ["--trim"]), ({}, ["--names", "short"]),
                               ({"skip-lines": "2"}, ["--skip-lines", "2"]),
                               ({"names": "long"}, ["--config", str(config)]),
                               ({}, ["-j", "3", "--max-rejects", "5", "--again"])):
            with self.subTest(words=words):
                self.resume(options, *words, code=support.EXIT_SOURCE,
                            message="belongs to a different load: source 1 is")
        self.resume({}, "--config", str(config), code=support.EXIT_USAGE,
                    message='--names was not given and is "long"')

    def test_drop_that_the_first_run_did_not_have_or_had(self):
        """Before the drop: the documents of an earlier load would stay, or others would go."""
        self.resume({}, "--drop", code=support.EXIT_USAGE, message="--drop was not given")
        self.begun["drop"] = True
        self.resume({}, code=support.EXIT_USAGE, message='--drop was "yes" and is not given')
        self.resume({}, "--drop", code=support.EXIT_SOURCE, message="source 1 is")


class OtherVersions(support.Case):
    """The journal is read before the loader connects: these loads need no server."""

    def setUp(self):
        super().setUp()
        self.good = (RECORDING / "journal").read_bytes()
        self.first = journal_reader.format_record()
        self.assertTrue(self.good.startswith(self.first))
        self.source = self.file("rows.txt", support.mot_text([1]))

    def assert_refused(self, journal, *texts):
        work = self.scratch / "work"
        work.mkdir(exist_ok=True)
        (work / "shardload.log").touch()  # without it, the folder would be a user's
        (work / "journal").write_bytes(journal)
        for more in [], ["--resume"]:
            self.shardload("load", "--uri", f"mongodb://{support.HOST}:{support.free_port()}/",
                           "-d", "d", "-c", "t", "--work-dir", work, "--progress", "none", *more,
                           self.source, code=support.EXIT_USAGE,
                           message=(str(work / "journal"), "--work-dir", "--drop", *texts))
            self.assertEqual((work / "journal").read_bytes(), journal)
            self.assertFalse((work / "run.json").exists())

    def test_a_journal_of_another_version_is_refused(self):
        for version in VERSION + 1, 0xFFFFFFFF:
            self.assert_refused(
                journal_reader.format_record(version) + self.good[len(self.first):],
                f"is a journal of format version {version}, and this program reads version "
                f"{VERSION}", "complete the load with the version of the program that began it")

    def test_version_1_had_no_format_record(self):
        self.assert_refused(
            self.good[len(self.first):],
            f"is a journal of format version 1, and this program reads version {VERSION}")

    def test_a_file_that_is_no_journal_is_refused(self):
        for content in b"A text file that is no journal.\n", journal_reader.record(2, bytes(184)):
            self.assert_refused(content, "is not a journal", f"format version {VERSION}")
