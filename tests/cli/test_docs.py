# SPDX-License-Identifier: Apache-2.0
"""The documentation: commands have options that exist, messages are those of the source, and every page
is in README.md and in the navigation of mkdocs.yml."""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import support

DOCS = support.TREE / "docs"
PAGES = [support.TREE / "README.md", *sorted(DOCS.rglob("*.md"))]
# A word that begins with a hyphen; values in quotes are removed before.
OPTION = re.compile(r"(?<!\S)(--[A-Za-z][\w-]*|-[A-Za-z])(?=[\s=,)\]]|$)")

KIB, MIB = 1 << 10, 1 << 20
# A page, its words about a limit, the file and name of the constant, and the unit of the number in the words.
LIMITS = [
    ("security", "decompressed | at most {} bytes, one document", "cluster/internal.h", "SL_MESSAGE_MAX", 1),
    ("security", "at most {} levels of documents, arrays and scopes", "cluster/streams.c", "NESTING_MAX", 1),
    ("security", "`errorLabels`, at most {}, have", "cluster/streams.c", "LIST_MAX", 1),
    ("security", "a `setName` of at most {} bytes", "cluster/internal.h", "SL_SET_NAME_MAX", 1),
    ("security", "after {} silent ones, or as long", "cluster/streams.c", "SILENT_MAX", 1),
    ("security", "at most {} iterations", "cluster/streams.c", "ITERATIONS_MAX", 1),
    ("security", "a parameter's sample {} MiB", "query/query.h", "SL_RESULT_BYTES_MAX", MIB),
    ("security", "the registry) | at most {} MiB; 10,000 shards", "cluster/connection.h", "SL_CURSOR_KEPT_MAX", MIB),
    ("security", "the registry) | at most 256 MiB; {} shards", "cluster/topology.c", "SHARDS_MAX", 1),
    ("security", "{} entries of a list in the registry", "cluster/registry.c", "LIST_MOST", 1),
    ("security", "at most {} GiB: 8 million", "cluster/registry.c", "NAMESAKES_BYTES_MAX", 1 << 30),
    ("security", "in `shardload.balancer` | at most {}; one", "cluster/balancer.c", "HOLDERS_MOST", 1),
    ("security", "at most {} successive batches", "cluster/connection.h", "SL_CURSOR_EMPTY_MAX", 1),
    ("security", "a DNS name of at most {} bytes", "cluster/uri.c", "NAME_MAX_BYTES", 1),
    ("delimited", "a random sample of {} documents", "cluster/cluster.h", "SL_SAMPLE_DOCUMENTS", 1),
    ("hostile-input", "a record of more than {} MiB, such as", "source/source.h", "SL_RECORD_BYTES_MAX", MIB),
    ("hostile-input", "zstd data that needs more than {} MiB", "source/unpack.h", "SL_DECODER_MEMORY_MAX", MIB),
    ("hostile-input", "rejects are larger than {} MiB and four times", "ledger/rejects.c", "BYTES_BASE", MIB),
    ("hostile-input", "more than {} files is r", "source/source_set.h", "SL_PATH_SET_MOST", 1),
    ("hostile-input", "options, indexes and damage of more than {} MiB", "restore/dump.h", "SL_DUMP_KEPT_MAX", MIB),
    ("hostile-input", "have not ended, of more than {} MiB", "restore/oplog.c", "OPEN_BYTES_MAX", MIB),
    ("hostile-input", "a NUL byte, or of more than {} bytes", "bson/dump_archive.c", "NAME_BYTES_MAX", 1),
    ("hostile-input", "columns of more than {} MiB", "source/sql_text.h", "SL_SQL_DEFINITIONS_MAX", MIB),
    ("hostile-input", "dump of which more than {} TiB would", "load/tables.c", "UNPACKED_MAX", 1 << 40),
    ("hostile-input", "an SQL dump with more than {} tables", "source/sql_dump.c", "TABLES_MAX", 1),
    ("hostile-input", "documents of more than {} levels", "bson/bson_lookup.h", "SL_FILE_LEVELS", 1),
    ("hostile-input", "schema or configuration of more than {} MiB", "cli/options.c", "CONFIG_BYTES_MAX", MIB),
    ("hostile-input", "schema or configuration of more than {} MiB", "cli/load_setup.c", "SCHEMA_BYTES_MAX", MIB),
    ("hostile-input", "a report of more than {} queries", "query/compare.c", "QUERIES_MAX", 1),
    ("hostile-input", "YAML of more than {} levels", "util/yaml_reader.c", "DEPTH_MAX", 1),
    ("hostile-input", "levels, {} anchors", "util/yaml_reader.c", "ANCHORS_MAX", 1),
    ("hostile-input", "anchors, or {} keys and values", "util/yaml_reader.c", "NODES_MAX", 1),
    ("hostile-input", "aliases that stand for more than {} MiB", "util/yaml_reader.c", "ALIASED_MAX", MIB),
    ("delimited", "It contains the first {} KiB of each source", "format/format.h", "SL_SNIFF_BYTES", KIB),
    ("delimited", "evenly spread over all plain files, at least {} MiB", "job/types.c", "SAMPLE_BYTES", MIB),
    ("json", "at most {} levels", "bson/extjson.h", "SL_EXTJSON_DEPTH_MAX", 1),
    ("embed", "a key of more than {} bytes", "job/embed_store.h", "SL_JOIN_KEY_ROOM", 1),
]


def code_of(path):
    """The lines of the page's code blocks, fenced or indented, with continued lines joined."""
    inside, lines = False, []
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif inside or line.startswith("    "):
            lines.append(line.strip())
    return re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()


def commands_of(line):
    """The commands in a line: (program, command, options)."""
    line = re.sub(r"\s#\s.*", "", line.removeprefix("$ "))
    for part in re.split(r" \| | && | \|\| |; ", line):
        found = re.match(r"\s*(shardload|shardquery) +([a-z]\w*)(?=\s|$)(.*)", part)
        if found:
            words = re.sub(r"'[^']*'|\"[^\"]*\"", "x", re.split(r"\s{4,}", found[3].strip())[0])
            yield found[1], found[2], OPTION.findall(words)


@functools.cache
def help_of(program, command, which="all"):
    done = subprocess.run([support.program(program), command, "--help", *which.split()], capture_output=True,
                          text=True, check=False, timeout=support.LIMIT)
    rows = re.findall(r"^ +(?:(-\w), +)?(--[\w-]+)", done.stdout, re.M)
    return {option for row in rows for option in row} if done.returncode == 0 else None


class Docs(unittest.TestCase):
    def test_commands_have_options_that_exist(self):
        wrong, seen = [], 0
        for page in PAGES:
            for line in code_of(page):
                for program, command, options in commands_of(line):
                    known = help_of(program, command)
                    seen += 1
                    if known is None:
                        wrong.append(f"{page.name}: {program} has no command {command}: {line}")
                    else:
                        wrong += [f"{page.name}: {program} {command} has no {option}: {line}"
                                  for option in options if option not in known]
        self.assertGreater(seen, 100)
        self.assertEqual(wrong, [])

    def test_the_short_help_has_the_options_of_a_first_load(self):
        """Those of the first chapter of README.md: a reader looks them up with --help."""
        chapter = PAGES[0].read_text("utf-8").partition("\n## Install")[0]
        used = {(*one, option) for line in chapter.splitlines() if line.startswith("    ")
                for *one, options in commands_of(line.strip()) for option in options}
        self.assertGreater(len(used), 12)
        self.assertEqual([one for one in sorted(used) if one[2] not in help_of(*one[:2], which="")], [])

    def test_tests_that_pages_name_exist(self):
        """Files, and the names for tools/test in the tables of promises: cluster/test_drop:CASE."""
        seen, wrong = 0, []
        for page in [*PAGES, support.TREE / "SECURITY.md"]:
            text = page.read_text("utf-8")
            for name in re.findall(r"`tests/([\w/.]+\.(?:py|c))`", text):
                if not (support.TREE / "tests" / name).exists():
                    wrong.append(f"{page.name}: tests/{name}")
            for name, case in re.findall(r"`((?:cli|cluster|faults|unit)/test_\w+)(?::(\w+))?`", text):
                seen += 1
                files = [path for path in (support.TREE / "tests").glob(f"{name}.*")
                         if case in path.read_text("utf-8")]
                if not files:
                    wrong.append(f"{page.name}: {name}:{case}")
        self.assertGreater(seen, 40)
        self.assertEqual(wrong, [])

    def test_wrong_options_are_found(self):
        (found,) = commands_of("$ zcat x.gz | shardload load -d mot --no-such --index '{\"a\": -1}' -")
        self.assertEqual(found, ("shardload", "load", ["-d", "--no-such", "--index"]))
        self.assertNotIn("--no-such", help_of("shardload", "load"))

    def test_options_in_tables_exist(self):
        """The second column of the tables that compare options."""
        for page, command in (("from-mongoimport.md", "load"), ("from-mongorestore.md", "restore")):
            rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", (DOCS / page).read_text("utf-8"), re.M)
            options = {option for cell in rows for code in re.findall(r"`([^`]+)`", cell)
                       for option in OPTION.findall(code)}
            self.assertGreater(len(options), 15)
            self.assertEqual(options - help_of("shardload", command), set(), page)

    def test_messages_are_those_of_the_source(self):
        source = "".join(path.read_text("utf-8") for path in sorted((support.TREE / "src").rglob("*.c")))
        source = re.sub(r'"\s*\n\s*"', "", source).replace('\\"', '"')
        page = (DOCS / "troubleshooting.md").read_text("utf-8")
        messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
        self.assertGreater(len(messages), 40)
        self.assertEqual([message for message in messages if message not in source], [])

    def test_limits_are_those_of_the_source(self):
        wrong = []
        for page, words, file, name, unit in LIMITS:
            source = (support.TREE / "src" / file).read_text("utf-8")
            found = re.search(rf"^ *#define {name} +(.+?)(?: +/\*.*)?$", source, re.M)
            named = {other: int(number) for other, number in re.findall(r"#define (\w+) +(\d+)\b", source)}
            value = eval(re.sub(r"\([a-z]\w*_t\)|(?<=\d)u\b", "", found[1]), named)    # ((size_t)16 << 20)
            text = " ".join((DOCS / f"{page}.md").read_text("utf-8").split())
            if words.format(f"{value // unit:,}") not in text:
                wrong.append(f"docs/{page}.md: {words} ({name}: {value:,})")
        self.assertEqual(wrong, [])

    def test_the_roles_have_the_privileges_that_doctor_looks_for(self):
        """doctor reported all privileges as complete, and a load with the same user was refused."""
        source = (support.TREE / "src/doctor/checks.c").read_text("utf-8")
        roles = {"LOADING": "shardloadLoad", "PREPARING": "shardloadPrepare", "SHARDING": "shardloadSharded",
                 "BALANCER": "shardloadSharded"}
        names = {"TARGET": "tests", "REGISTRY": "tests.sources", "NULL": ""}
        looked_for = sorted((roles[purpose], database.strip('"').replace("TARGET", "mot"),
                             names.get(collection, collection.strip('"')), action)
                            for purpose, action, database, collection in re.findall(
                                r'\{FOR_(\w+), "(\w+)", ("\w+"|TARGET), ("\w+"|\w+)\}', source))
        documented = [json.loads(block) for block in re.findall(
            r"```json\n(.*?)```", (DOCS / "security.md").read_text("utf-8"), re.S)]
        self.assertEqual(looked_for, sorted(
            (role["createRole"], *privilege["resource"].values(), action) for role in documented
            if role["createRole"] in roles.values() for privilege in role["privileges"]
            for action in privilege["actions"]))

    def test_files_of_work_directories_are_on_the_page(self):
        header = (support.TREE / "src/util/private_file.h").read_text("utf-8")
        names, page = re.findall(r'#define SL_WORK_\w+ "(\w[^"]*)"', header), (DOCS / "security.md").read_text("utf-8")
        self.assertEqual([name for name in names if not re.search(f"`{name}/?`", page)], [])

    def test_the_readme_names_every_page(self):
        text = (support.TREE / "README.md").read_text("utf-8")
        pages = {f"docs/{path.name}" for path in DOCS.glob("*.md")} - {"docs/index.md"}
        self.assertEqual(pages - set(re.findall(r"docs/[\w-]+\.md", text)), set())

    def test_the_navigation_names_every_page_once(self):
        listed = re.findall(r": (\S+\.md)$", (support.TREE / "mkdocs.yml").read_text("utf-8"), re.M)
        self.assertEqual(sorted(listed), sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))

    def test_exit_codes_are_those_of_the_source(self):
        header = (support.TREE / "src/util/error.h").read_text("utf-8")
        codes = re.findall(r"\brow\(\w+, (\d+),", header)
        page = (DOCS / "exit-codes.md").read_text("utf-8")
        self.assertEqual(re.findall(r"^\| (\d+) \|", page, re.M), codes)
        shown = subprocess.run([support.program("shardload"), "--help"], capture_output=True, text=True,
                               check=True).stdout
        epilogue = " ".join(shown[shown.index("Exit codes:"):].split())
        self.assertEqual(re.findall(r"(?:: |; )(\d+) ", epilogue), codes)


class Site(support.Case):
    def test_mkdocs_builds_the_site(self):
        if not shutil.which("mkdocs"):
            self.skipTest("mkdocs is not installed")
        done = subprocess.run(["mkdocs", "build", "--quiet", "--config-file", support.TREE / "mkdocs.yml",
                               "--site-dir", self.scratch / "site"], capture_output=True, text=True,
                              check=False, timeout=support.LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(pathlib.Path(self.scratch / "site/start/index.html").exists())
