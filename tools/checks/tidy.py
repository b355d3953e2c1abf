#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every file of compile_commands.json whose preprocessed text has changed since
clang-tidy found nothing in it. Prints the findings; exit status 1 if there are any.

usage: tidy.py CLANG_TIDY BUILD_FOLDER CACHE_FOLDER
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def preprocessed(entry):
    """The text that the compiler sees, with comments, because they may contain NOLINT."""
    words = shlex.split(entry["command"])
    if "ccache" in words[0]:
        del words[0]
    del words[words.index("-o"):words.index("-o") + 2]
    words.remove("-c")
    return subprocess.run([*words, "-E", "-P", "-C"], cwd=entry["directory"], check=True,
                          capture_output=True).stdout


def findings(entry, tidy, build, cache, version):
    """The findings in a file; None if the file has not changed since it had none."""
    digest = hashlib.sha256(version + preprocessed(entry)).hexdigest()
    marker = cache / digest
    if marker.exists():
        marker.touch()
        return None
    done = subprocess.run([tidy, "--quiet", "-p", build, entry["file"]],
                          capture_output=True, text=True, check=False)
    if done.returncode or re.search(r": (warning|error):", done.stdout):
        return done.stdout or done.stderr
    marker.touch()
    return ""


def main():
    tidy, (build, cache) = sys.argv[1], map(pathlib.Path, sys.argv[2:])
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True).stdout
    version += (TOP / ".clang-tidy").read_bytes()
    # Generated files are left out, except the versions of the parsers' loops: they include files of src/.
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text("utf-8"))
               if pathlib.Path(entry["file"]).is_relative_to(TOP)
               and ("_loop_" in entry["file"] or not pathlib.Path(entry["file"]).is_relative_to(build))]
    shown, results = set(), []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for text in pool.map(lambda entry: findings(entry, tidy, build, cache, version), entries):
            results.append(text)
            if text and text not in shown:      # the same findings in a header: once
                print(text, flush=True)
            shown.add(text)
    print(f"{results.count(None)} of {len(results)} files had not changed", file=sys.stderr)
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())
