#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds dead references in the Markdown files of the tree: links to missing files or headings, and
paths in `code` of missing files. Reads local files only.

usage: links.py FOLDER
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^(```|~~~)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
FOLDERS = ("docs", "examples", "include", "models", "queries", "schemas", "src", "tests", "tools")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./*-]*$")


def prose_of(text):
    """The text with the lines of code blocks emptied, so that line numbers stay the same."""
    inside, lines = False, []
    for line in text.splitlines():
        fence = FENCE.match(line)
        inside ^= bool(fence)
        lines.append("" if inside or fence or line.startswith("    ") else line)
    return "\n".join(lines)


def anchors_of(text):
    """The anchors of the headings: GitHub's rule."""
    anchors, seen = set(), {}
    for title in re.findall(r"^#{1,6} +(.*?) *#*$", prose_of(text), re.M):
        title = LINK.sub(lambda link: link[0][1:link[0].index("]")], title)
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def problem_of_link(page, target):
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    file = (page.parent / name) if name else page
    if not file.exists():
        return f"the link {target} leads to a missing file"
    if anchor and anchor not in anchors_of(file.read_text("utf-8")):
        return f"the link {target} leads to a missing heading"
    return None


def problem_of_path(top, path):
    found = any(top.glob(path)) if "*" in path else (top / path).exists()
    return None if found else f"the file {path} does not exist"


def problems_of(top, page):
    text = prose_of(page.read_text("utf-8"))
    for pattern, check in ((LINK, lambda target: problem_of_link(page, target)),
                           (CODE, lambda code: PATH.match(code) and problem_of_path(top, code))):
        for match in pattern.finditer(text):
            problem = check(match[1])
            if problem:
                yield text.count("\n", 0, match.start()) + 1, problem


def main():
    top = pathlib.Path(sys.argv[1])
    pages = [*top.glob("*.md"), *(page for folder in FOLDERS for page in (top / folder).rglob("*.md"))]
    found = 0
    for page in sorted(pages):
        for line, problem in sorted(problems_of(top, page)):
            print(f"{page.relative_to(top)}:{line}: {problem}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
