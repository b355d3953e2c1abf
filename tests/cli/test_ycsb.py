# SPDX-License-Identifier: Apache-2.0
"""Generated records (--format ycsb) without a server: their bytes are as documented with any number of
threads; inspect shows them; wrong options are refused."""
import itertools
import json

import support
import ycsb_maker
from ycsb_maker import Options

FORMAT = ["--format", "ycsb"]


class Generated(support.Case):
    # Bytes

    def test_every_byte_is_as_documented(self):
        for options, records in ((Options(), 4500),
                                 (Options(seed=(1 << 64) - 1, field_count=3, field_length=13,
                                          integer_count=1, skew=0.0), 700),
                                 (Options(seed=7, field_count=1, field_length=0, integer_count=2,
                                          skew=1.5), 700),
                                 (Options(field_count=0, skew=1.0), 700), (Options(field_count=0, skew=10.0), 700),
                                 (Options(field_count=0, integer_count=0), 10),
                                 (Options(field_count=12, field_length=1, integer_count=0), 10),
                                 (Options(field_count=1, field_length=4070, integer_count=0), 9),
                                 (Options(field_count=1, field_length=9001, integer_count=1), 300),
                                 (Options(document_size=4096), 9),
                                 (Options(document_size=4097), 9),
                                 (Options(document_size=154), 9),  # all fields are empty
                                 (Options(document_size=163, field_count=3), 9),
                                 (Options(document_size=147_000), 70)):
            with self.subTest(options):
                if options.document_size:
                    self.assertEqual(len(ycsb_maker.encoded(options, 0)), options.document_size)
                raw, work = self.dump(*FORMAT, "--records", records, *options.words())
                expected = {support.key_of(one): one for one in
                            (ycsb_maker.encoded(options, i) for i in range(records))}
                loaded = {support.key_of(one): one for one in raw}
                self.assertEqual(len(raw), records)
                self.assertEqual(loaded.keys(), expected.keys())
                for key, one in expected.items():
                    self.assertEqual(loaded[key], one, f"{support.readable(loaded[key])}\n" f"{support.readable(one)}")
                self.assert_accounting(work, records=records, inserted=records,
                                       rejectedByParser=0, textBytes=0,
                                       bsonBytes=sum(map(len, expected.values())))

    def test_documents_do_not_depend_on_threads_and_batches(self):
        one, _ = self.dump(*FORMAT, "--records", "30k", "-j", 1)
        self.assertEqual(len(one), 30000)
        two, _ = self.dump(*FORMAT, "--records", "30k", "-j", 2, "--batch-size", 77)
        self.assertEqual(sorted(one), sorted(two))

    def test_every_option_changes_the_records(self):
        usual, _ = self.dump(*FORMAT, "--records", 2)
        for name, value in (("--seed", 2), ("--skew", 0.5), ("--field-length", 99),
                            ("--document-size", 955),
                            ("--field-count", 7), ("--integer-count", 7)):
            with self.subTest(name):
                other, _ = self.dump(*FORMAT, "--records", 2, name, value)
                self.assertFalse(set(usual) & set(other))

    def test_a_large_document_is_a_batch_of_its_own(self):
        raw, _ = self.dump(*FORMAT, "--records", 3, "--field-count", 4, "--field-length", "3MiB",
                           "--batch-bytes", "64KiB")
        self.assertEqual(sorted(map(len, raw)), [4 * (3 << 20) + 4 * 9 + 8 * 8 + 18] * 3)

    def test_large_documents_are_spread_over_blocks(self):
        """A block has 16 MiB of documents at most, so threads and shards share few documents, and a
        load that is interrupted repeats little."""
        self.assertEqual(Options(document_size=16 << 20).step(), 1 << 20)
        self.assertEqual(Options(document_size=147_000).step(), 1 << 14)
        self.assertEqual(Options().step(), 256)
        raw, work = self.dump(*FORMAT, "--records", 5, "--document-size", "16MiB", "--field-count", 1)
        self.assert_accounting(work, inserted=5, bsonBytes=5 << 24)
        self.assertEqual({support.key_of(one) for one in raw},
                         {ycsb_maker.document_id(1, block << 20) for block in range(5)})

    # Records, progress and inspect

    def test_the_run_record_counts_records(self):
        _, work = self.dump(*FORMAT, "--records", "10k")
        record = support.run_record(work)
        (source,) = record["sources"]
        self.assertEqual(source["records"], 10000)
        self.assertEqual(source["documents"], 10000)
        self.assertNotIn("storedBytes", source)
        for point in record["series"]:
            self.assertEqual((point["textBytes"], point["storedBytes"]), (0, 0))

    def test_progress_is_by_records_and_bson(self):
        outcome, _ = self.parse(*FORMAT, "--records", "100k", "--progress", "json")
        output = outcome.err
        last = json.loads(outcome.out.splitlines()[-1])
        self.assertEqual(last["documents"], 100000)
        self.assertEqual(last["share"], 1)
        self.assertIn("bsonBytesPerSecond", last)
        self.assertNotIn("textBytesPerSecond", last)
        self.assertIn("100,000 generated records", output)
        self.assertIn("of BSON", output)
        self.assertNotIn("of text", output)

    def inspect(self, records, *more):
        return self.shardload("inspect", *FORMAT, "--records", records, *more).out

    def test_inspect_shows_the_first_documents(self):
        out = self.inspect("1M", "--documents", 2)
        shown = [support.bson.json_util.loads(line) for line in out.splitlines() if line.lstrip().startswith("{")]
        self.assertEqual(shown, [ycsb_maker.document(Options(), i) for i in (0, 1)])
        self.assertIn("records 0 to 999999 of seed 1", out)
        self.assertIn("954 bytes", out)
        self.assertIn("in all 1,000,000 documents, 954.0 MB of BSON", out)

    def test_more_records_than_one_source_can_hold_are_several_sources(self):
        out = self.inspect("5G", "--documents", 1)
        sources = [line for line in out.splitlines() if line.startswith("ycsb records")]
        self.assertEqual([line.split(" of seed")[0] for line in sources],
                         ["ycsb records 0 to 4294967295", "ycsb records 4294967296 to 4999999999"])
        shown = [support.bson.json_util.loads(line) for line in out.splitlines() if line.lstrip().startswith("{")]
        self.assertEqual(shown, [ycsb_maker.document(Options(), 0),
                                 ycsb_maker.document(Options(), 1 << 32, number=2, first=1 << 32)])
        self.assertIn("in all 4,294,967,296 documents", out)
        self.assertIn("in all 705,032,704 documents", out)

    def test_one_record_and_the_last_of_a_source(self):
        self.assertIn("in all 1 document,", self.inspect(1))
        self.assertEqual(self.inspect(1 << 32, "--documents", 0).count("in all"), 1)
        self.assertEqual(self.inspect((1 << 32) + 1, "--documents", 0).count("in all"), 2)

    def test_inspect_shows_the_size_of_documents(self):
        out = self.inspect(1000, "--document-size", "147KB", "--documents", 0)
        self.assertIn("records 0 to 999 of seed 1: 8 fields, 147000 bytes, 8 integers", out)
        self.assertIn("documents of 147000 bytes: 8 fields of 18355 random bytes (the last 18361)", out)
        self.assertIn("in all 1,000 documents, 147.0 MB of BSON", out)

    def test_sources_of_large_documents_have_fewer_records(self):
        out = self.inspect((1 << 20) + 3, "--document-size", "16MiB", "--documents", 0)
        self.assertIn("records 0 to 1048575 of", out)
        self.assertIn("records 1048576 to 1048578 of", out)
        self.assertIn("in all 3 documents", out)

    # Wrong options

    def refused(self, *words, contains):
        outcome = self.shardload(*words, code=support.EXIT_USAGE)
        for part in [contains] if isinstance(contains, str) else contains:
            self.assertIn(part, outcome.err)
        self.assertEqual([p.name for p in self.scratch.iterdir() if p.is_dir()], [])

    def test_wrong_options(self):
        path = self.file("a.csv", support.HEADER + "\n")
        for command in (["load", "--sink", "null"], ["inspect"]):
            with self.subTest(command[0]):
                self.refused(*command, *FORMAT, contains="needs --records")
                self.refused(*command, *FORMAT, "--records", 5, path, contains="leave out the sources")
                self.refused(*command, "--records", 5, contains=["--records is for --format ycsb",
                                                             "no source is given"])
                self.refused(*command, "--skew", 1, "--seed", 2, path,
                             contains=["--skew is for --format ycsb", "--seed is for --format ycsb"])
                self.refused(*command, *FORMAT, "--records", 0, "--field-count", 1000, "--skew", 11,
                             contains=["--records: \"0\"", "--field-count: \"1000\"", "--skew: \"11\""])
                self.refused(*command, *FORMAT, "--records", 5, "--field-length", "4MiB",
                             contains="a server accepts at most 16777216")
                self.refused(*command, *FORMAT, "--records", 5, "--document-size", "153",
                             contains=["documents of 153 bytes are too small", "take 154"])
                self.refused(*command, *FORMAT, "--records", 5, "--document-size", "1k",
                             "--field-count", 0, contains=["needs fields of random bytes"])
                self.refused(*command, *FORMAT, "--records", 5, "--document-size", "16777217",
                             contains="--document-size")
                self.refused(*command, *FORMAT, "--records", 5, "--document-size", "2k",
                             "--field-length", 9, contains="leave out --field-length")
                self.refused(*command, "--document-size", "2k", path, contains="--document-size is for --format ycsb")
                self.refused(*command, *FORMAT, "--records", "100T", "--document-size", "16MiB",
                             contains="one load generates at most 68719476736")
        for skew in ("", ".", "x", "-1", "1e0", "0x1", "nan", "0.12345678", "1 "):
            with self.subTest(skew):
                self.refused("inspect", *FORMAT, "--records", 5, "--skew", skew, contains="--skew")

    def test_auto_never_selects_ycsb(self):
        path = self.file("ycsb records 0 to 9", "whatever\n")
        outcome = self.shardload("inspect", path, code=support.EXIT_SOURCE)
        self.assertNotIn("ycsb:", outcome.text)


class TheMaker(support.Case):
    """The independent generator itself is right."""

    def test_random_words_are_those_of_the_published_generator(self):
        self.assertEqual([ycsb_maker.random_word(1234567, i) for i in range(3)],
                         [6457827717110365317, 3203168211198807973, 9817491932198370423])

    def test_the_zipf_table_gives_each_value_its_share(self):
        for skew in (0.0, 0.5, 0.99, 1.0, 1.5, 10.0):
            shares = [0] * ycsb_maker.VALUES
            for slot, (threshold, alias) in enumerate(ycsb_maker.table(skew)):
                shares[slot] += threshold
                shares[alias] += ycsb_maker.SLOT - threshold
            self.assertEqual(sum(shares), 1 << 64)
            for k, other in itertools.product((1, 9, 999), (0,)):
                self.assertAlmostEqual(shares[k] / shares[other], (k + 1) ** -skew, places=9)
