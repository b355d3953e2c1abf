#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the executed share of the lines and branches of src/, by folder, from gcc's counts.

usage: coverage.py [--files] TREE BUILD_FOLDER
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys


def reports_of(counts):
    """What gcov reports on one file of counts: a list of source files with their lines."""
    done = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", counts.name],
                          cwd=counts.parent, capture_output=True, text=True, check=True)
    return [file for line in done.stdout.splitlines() if line for file in json.loads(line)["files"]]


def executed(source, build):
    """{path below `source`: ({line: executed}, {(line, index): executed})}. A header counts as
    executed where any of the sources that include it executes it."""
    files = collections.defaultdict(lambda: ({}, {}))
    counts = sorted((build / "src").rglob("*.gcda")) + sorted((build / "tests").rglob("*.gcda"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for report in pool.map(reports_of, counts):
            for file in report:
                path = pathlib.Path(os.path.normpath(file["file"]))
                if not path.is_relative_to(source):
                    continue
                lines, branches = files[path.relative_to(source)]
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
                    for index, branch in enumerate(line["branches"]):
                        key = number, index
                        branches[key] = branches.get(key, False) or branch["count"] > 0
    return files


def row(name, lines, branches):
    cells = []
    for values in (lines, branches):
        share = f"{100 * sum(values) / len(values):.1f} %" if values else "-"
        cells.append(f"{len(values):>8,} {share:>8}")
    return f"{name:<32} {cells[0]}   {cells[1]}"


def main():
    per_file = "--files" in sys.argv
    tree, build = (pathlib.Path(word).resolve() for word in sys.argv[-2:])
    files = executed(tree / "src", build)
    if not files:
        sys.exit("coverage.py: no counts; run tools/coverage without --no-tests")
    folders = collections.defaultdict(lambda: ([], []))
    print(f"{'':<32} {'lines':>8} {'executed':>8}   {'branches':>8} {'executed':>8}")
    for path, (lines, branches) in sorted(files.items()):
        for name in (f"src/{path.parent}", "all"):
            folders[name][0].extend(lines.values())
            folders[name][1].extend(branches.values())
        if per_file:
            print(row(str(path), lines.values(), branches.values()))
    for name in sorted(folders, key=lambda name: (name == "all", name)):
        print(row(name, *folders[name]))


if __name__ == "__main__":
    main()
