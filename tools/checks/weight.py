#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many lines and files the parts of the tree have, and fails if a part exceeds its limit.

weight.tsv beside this file has the limits. A limit is raised only by a commit of its own, whose message
names the capability that needs it; after a part has become smaller, its limit is lowered.
"""
import pathlib
import subprocess
import sys


def main():
    here = pathlib.Path(__file__).parent
    tree = here.parents[1]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=tree, stdout=subprocess.PIPE,
                            text=True, check=True).stdout.splitlines()
    files = [path for path in listed if (tree / path).is_file()]
    heavy = False
    for row in (here / "weight.tsv").read_text("utf-8").splitlines()[1:]:
        folders, lines_limit, files_limit = row.split("\t")
        chosen = [path for path in files if path.split("/")[0] in folders.split(" ")]
        lines = sum((tree / path).read_bytes().count(b"\n") for path in chosen)
        print(f"{folders}: {lines:,} of {int(lines_limit):,} lines, {len(chosen)} of {files_limit} files")
        heavy |= lines > int(lines_limit) or len(chosen) > int(files_limit)
    return heavy


if __name__ == "__main__":
    sys.exit(main())
