# SPDX-License-Identifier: Apache-2.0
"""The table of ISD groups is compared with the published widths. A width that is wrong by one byte
shifts all following fields of a record."""
import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

# A field: path, type, width; then a scale, a missing value or a unit.
FIELD = re.compile(r"\S+ [nsmcqfdt](\d+)")


def rows(path):
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


class Widths(unittest.TestCase):
    def test_every_group_is_as_wide_as_published(self):
        published = {(first, last): (int(width), int(fields))
                     for first, last, width, fields in rows(TOP / "tests/data/isd-widths.tsv")}
        ours = {}
        for first, last, _, fields in rows(TOP / "schemas/isd-groups.tsv"):
            found = [FIELD.match(field.strip()) for field in fields.split(",")]
            self.assertTrue(all(found), (first, fields))
            ours[first, last] = sum(int(one.group(1)) for one in found), len(found)
        self.assertEqual(ours, published)
        self.assertEqual(sum(fields for _, fields in ours.values()), 505)
