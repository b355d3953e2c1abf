# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/internals/architecture.md: layers, the files that use the driver, the map of files."""
import os
import pathlib
import re
import subprocess
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

JOB = {"util", "bson", "source", "format", "report", "cluster"}

# The layers (folders of src/) whose headers each layer may include, besides its own.
BELOW = {
    "util": set(),
    "bson": {"util"},
    "source": {"util", "bson"},
    "format": {"util", "bson"},
    "report": {"util", "bson"},
    "cluster": {"util", "bson"},
    "query": {"util", "bson", "report", "cluster"},
    "job": JOB,
    "doctor": JOB | {"job"},
    "send": JOB | {"job"},
    "ledger": JOB | {"job", "send"},
    "load": JOB | {"job", "send", "ledger"},
    "verify": JOB | {"job", "send", "ledger", "load"},
    "restore": JOB | {"job", "send", "ledger", "load", "verify"},
    "trial": JOB | {"job", "load", "query"},
    "cli": JOB | {"job", "doctor", "load", "verify", "restore", "query", "trial"},
    "library": JOB | {"job", "doctor", "load", "verify", "restore", "query", "trial", "cli"},
}

# The headers of each layer that other layers may include, as "layer/name.h".
INTERFACES = {
    "util": "clock context document_id embedded error estimate grow hash histogram interrupt load_counts log "
            "memory_stream name_index print private_file process read_file splitter text text_table "
            "write_modes yaml_reader",
    "bson": "bson_check bson_lookup bson_number bson_writer dump_archive extjson",
    "source": "source sql_dump",
    "format": "column_types convert declared delimited dialects encoding format head isd key_fields notation "
              "schema simd typing ycsb",
    "report": "json lookup report run_record",
    "cluster": "cluster connection member uri",
    "query": "generator query",
    "job": "decision document_sample embed embed_store inspect job load_config numbers preview sources types",
    "doctor": "doctor",
    "send": "duplicates rate_limit reply sink writer",
    "ledger": "journal ledger rejects unregistered work_directory",
    "load": "embedding load progress record run status tables",
    "verify": "verify",
    "restore": "restore",
    "trial": "capacity extrapolate forget plan reload search tune",
    "cli": "commands options query_session",
}

# The variables of the library that can be written, by source file and name, and why there is no
# other way. All other state belongs to a context or to an object.
GLOBALS = {
    ("context", "bound"): "the context that is bound to each thread",
    ("context", "c_locale"): "the locale of all threads, made once per process",
    ("context", "c_locale_made"): "likewise",
    ("connection", "driver_started"): "the driver is initialised once per process",
    ("streams", "refusal"): "why a thread refused a message; the driver's error cannot contain it",
    ("connection", "silent"): "no client waits for a host that another one found silent",
    ("compare", "values"): "scratch space of each thread, empty between calls",
    ("compare", "times"): "likewise",
    ("difference", "found"): "likewise",
    ("hash", "process_seed"): "of hashes that are not stored; drawn once per process", ("hash", "once"): "likewise",
    ("encoding", "known"): "tables of frequent encodings, made once", ("encoding", "known_once"): "likewise",
    ("secrets", "terminal"): "a signal handler restores the terminal's echo; programs only",
}

# The only files that open files by their names, and what they read. All outputs, and all files of work
# directories, are opened, created, renamed and removed by src/util/private_file.c, which follows no links
# of other users and checks owners and modes.
OPENING = {
    ("stream.c", "open"): "sources", ("block.c", "open"): "sources",
    ("source_set.c", "open"): "sources, and folders of them", ("source_set.c", "openat"): "likewise",
    ("sources.c", "fopen"): "sources",
    ("same_dump.c", "open"): "the files of a dump",
    ("read_file.c", "fopen"): "schemas, suites, configurations: files that a user names",
    ("preflight.c", "fopen"): "certificates", ("secrets.c", "open"): "the terminal; a password file",
    ("load_config.c", "openat"): "is a folder a work directory?",
    ("process.c", "fopen"): "/proc", ("context.c", "fopen"): "/dev/null", ("program.c", "open"): "/dev/null",
    ("query_compare.c", "freopen"): "/dev/null",
    # A resolved path has followed links of others: it may be shown or compared, never opened.
    ("options.c", "realpath"): "compared", ("dump.c", "realpath"): "a name for a database",
    **{(name, "realpath"): "shown" for name in ("load.c", "numbers.c", "status.c")},
}

# The only files that may include the driver's headers (those of libbson may be used anywhere).
DRIVER = re.compile(r"src/cluster/|src/send/(writer|reply)\.c|src/query/")


def sources():
    return sorted(p for folder in ("src", "tools", "tests")
                  for p in (TOP / folder).rglob("*") if p.suffix in (".c", ".h"))


class House(unittest.TestCase):
    def test_every_interface_exists(self):
        missing = [f"src/{layer}/{name}.h" for layer, names in INTERFACES.items()
                   for name in names.split() if not (TOP / "src" / layer / f"{name}.h").exists()]
        self.assertEqual(missing, [])

    def test_layers_include_interfaces_of_lower_layers_only(self):
        wrong = []
        for path in (TOP / "src").rglob("*.[ch]"):
            layer = path.relative_to(TOP / "src").parts[0]
            for line in path.read_text().splitlines():
                found = re.match(r'\s*#include "([^"]*)/(\w+)\.h"', line)
                if found and (found[1] not in BELOW[layer]
                              or found[2] not in INTERFACES[found[1]].split()):
                    wrong.append(f"{path.relative_to(TOP)}: {line.strip()}")
        self.assertEqual(wrong, [])

    def test_public_headers_include_public_headers_only(self):
        wrong = [f"{p.name}: {found}" for p in (TOP / "include/shardload").glob("*.h")
                 for found in re.findall(r"#include (\S+)", p.read_text())
                 if not re.fullmatch(r"<shardload/\w+\.h>|<stdio\.h>", found)]
        self.assertEqual(wrong, [])
        self.assertEqual({p.name for p in (TOP / "include").rglob("*.h")},
                         {"context.h", "error.h", "load.h", "plan.h", "query.h", "report.h",
                          "version.h"})

    def symbols(self, *options):
        """The symbols of the library, as nm prints them."""
        archive = pathlib.Path(os.environ.get("SHARDLOAD_BUILD", "")) / "src/libshardload.a"
        if not archive.exists():
            self.skipTest("libshardload.a has not been built")
        return subprocess.run(["nm", *options, str(archive)], capture_output=True, text=True,
                              check=True).stdout

    def test_the_names_of_the_library_have_its_prefix(self):
        lines = self.symbols("--extern-only", "--defined-only").splitlines()
        self.assertEqual({words[2] for words in map(str.split, lines) if len(words) == 3
                          and not re.match("sl_|shardload_|__asan|__odr|_?__gc", words[2])}, set())

    def test_the_library_has_no_other_globals(self):
        listed = self.symbols("--format=sysv")
        if "__asan_" in listed or "__tsan_" in listed or "__gcov_" in listed:
            self.skipTest("sanitizers and coverage add variables")
        writable = re.compile(r"\.(data|bss|tdata|tbss)(\.(?!rel\.ro)\S+)?|\*COM\*")
        found, member = set(), ""
        for line in listed.splitlines():
            begun = re.match(r"Symbols from \S*\[(\w+)\.c\.o\]", line)
            member = begun[1] if begun else member
            fields = [field.strip() for field in line.split("|")]
            if len(fields) == 7 and writable.fullmatch(fields[6]):
                found.add((member, fields[0].partition(".")[0]))
        self.assertEqual(found, set(GLOBALS))

    def test_the_library_never_ends_the_process(self):
        """After fork(), and where memory of an option table is wrong, a process may end."""
        calls = re.compile(r"\b(_?exit|abort|sigaction|signal|raise|sigwait|kill)\(")
        programs = {"program.c", "shardload.c", "shardquery.c", "query_compare.c"}
        used = {(p.name, found[1]) for p in (TOP / "src").rglob("*.c") if p.name not in programs
                for found in calls.finditer(re.sub(r"/\*.*?\*/", "", p.read_text(), flags=re.S))}
        self.assertEqual(used, {
            ("query_commands.c", "kill"),                          # the child of --during
            ("options.c", "abort"),                                # a name that is in no table
            ("process.c", "kill"),                                 # does a process exist?
            ("secrets.c", "sigaction"), ("secrets.c", "raise"),    # while a user types a password
        })

    def test_files_are_written_by_one_module(self):
        calls = re.compile(r"(?<![\w>.])(f?re?open|open(?:at)?(?:64)?|fopen|creat|mk\w*temps?|tmpfile|"
                           r"rename(?:at2?)?|(?:sym|un)?link(?:at)?|rmdir|mkdir(?:at)?|mkfifo(?:at)?|truncate|"
                           r"[fl]?chown(?:at)?|fchownat|f?chmod(?:at)?|realpath)\(")
        used = {(p.name, found[1]) for p in (TOP / "src").rglob("*.c") if p.name != "private_file.c"
                for found in calls.finditer(re.sub(r"/\*.*?\*/|\"[^\"\n]*\"", "", p.read_text(), flags=re.S))}
        self.assertEqual(used, set(OPENING))

    def test_options_that_a_message_advises_are_words_of_a_shell(self):
        """Their values may come from files, servers and other users."""
        advice = re.compile(r"(?:give|with|of the key:|Add it:|text:|cannot be restored \()[^\"]*"
                            r"--(?:work-dir|types|match-fields|ns-exclude) %s.{0,500}", re.S)
        found = [(p.name, match[0]) for p in (TOP / "src").rglob("*.c")
                 for match in advice.finditer(re.sub(r"\"\s*\"", "", p.read_text()))]
        self.assertGreaterEqual(len(found), 8)
        self.assertEqual([name for name, text in found if "sl_shell_word(" not in text], [])

    def test_names_in_commands_of_mongosh_are_strings_of_text_h(self):
        """A name with a quote would add to the command that a user pastes."""
        quoted = re.compile(r"getSiblingDB|getCollection\(|[({][$\w]*(: )?(\\\"|')%s|, to: '")
        self.assertEqual([p.name for p in (TOP / "src").rglob("*.c") if p.name != "text.c"
                          and quoted.search(re.sub(r"\"\s*\"", "", p.read_text()))], [])

    def test_no_stream_loses_text_without_an_error(self):
        using = {p.name for p in (TOP / "src").rglob("*.c") if " open_memstream(" in p.read_text()}
        self.assertEqual(using, set())

    def test_threads_have_a_context(self):
        starting = {p.name for p in (TOP / "src").rglob("*.c")
                    if "pthread_create(" in p.read_text()}
        self.assertEqual(starting, {"context.c"})

    def test_only_a_few_files_use_the_driver(self):
        users = [str(p.relative_to(TOP)) for p in sources()
                    if str(p.relative_to(TOP)).startswith("src/")
                    and "#include <mongoc/" in p.read_text()]
        self.assertEqual([p for p in users if not DRIVER.search(p)], [])

    def test_the_slack_behind_a_text_is_one_constant(self):
        """src/source allocates the bytes after a block that src/format reads."""
        self.assertEqual([f"{p.relative_to(TOP)}: {line}" for p in (TOP / "src").rglob("*.[ch]")
                          for line in p.read_text().splitlines()
                          if re.match(r"#define (SL_)?SLACK\b", line)],
                         ["src/util/text.h: #define SL_SLACK 64"])

    def test_no_check_reads_beyond_a_document_of_the_driver(self):
        """No readable bytes follow a bson_t: sl_bson_check_alone copies it."""
        wrong = [p.name for p in (TOP / "src").rglob("*.c")
                 if re.search(r"\bsl_bson_check(_next)?\([^;{]*bson_get_data", p.read_text())]
        self.assertEqual(wrong, [])

    def test_names_that_version_2_of_the_driver_has_removed_are_not_used(self):
        removed = re.compile(
            r"\b(bson_string_\w+|bson(_array)?_as_json|bson_(atomic|cmp|in_range)_\w+|bson_thrd_yield|"
            r"bson_oid_init_sequence|mongoc_(client|database|collection)_command"
            r"|mongoc_collection_(insert|update|remove|delete|save|find|count|stats|validate"
            r"|create_index|find_indexes|insert_bulk|create_bulk_operation))\b(?=[ (])")
        used = [f"{p.relative_to(TOP)}: {found[0]}" for p in sources()
                for found in removed.finditer(p.read_text())]
        self.assertEqual(used, [])

    def test_no_bson_t_is_copied_by_assignment(self):
        """A bson_t may point into itself, so a copy dangles when the original goes out of scope. Use
        bson_init_static, bson_copy_to or a pointer."""
        wrong = []
        for path in sources():
            text = path.read_text()
            declared = set(re.findall(r"\bbson_t (\**)(\w+)", text))
            for stars, name in declared:
                also_pointer = re.search(rf"\w \*{name}\b", text)
                if stars == "" and not also_pointer:
                    target = rf"(?:\bbson_t|[;{{}})]|\*/|\belse)\s+{name}"
                elif stars == "*" and ("**", name) not in declared:
                    target = rf"(?:[;{{}})]|\*/|\belse)\s+\*{name}"
                else:
                    continue
                copies = re.finditer(target + r" = (?!NULL|BSON_INITIALIZER)[*A-Za-z_][\w.>\[\]-]*;",
                                     text)
                wrong += [f"{path.relative_to(TOP)}: {' '.join(c[0].split())}" for c in copies]
        self.assertEqual(wrong, [])

    def test_each_type_has_a_name_of_its_own(self):
        names = [name for p in (TOP / "src").rglob("*.[ch]")
                 for name in re.findall(r"^\} (sl_\w+);$", p.read_text(), re.M)]
        self.assertEqual(sorted({name for name in names if names.count(name) > 1}), [])

    def test_types_with_a_bson_t_are_allocated_aligned(self):
        """malloc aligns to 16 bytes, a bson_t needs 128: sl_zeroed. Types: by value, also nested."""
        texts = {p: re.sub(r"/\*.*?\*/", "", p.read_text(), flags=re.S)
                 for p in (TOP / "src").rglob("*.[ch]")}
        bodies = [found for text in texts.values() for found in
                  re.findall(r"^(?:typedef )?struct (\w+) \{\n(.*?)^\}", text, re.M | re.S)]
        types, before = {"bson_t", "bson_iter_t"}, set()
        while types != before:
            before, value = types, rf"^\s*(?:{'|'.join(types)}) \w"
            types = types | {name for name, body in bodies if re.search(value, body, re.M)}
        of, pointers = "|".join(types), {}
        for kind, name in re.findall(r"(\w+) \*(\w+);", "".join(body for _, body in bodies)):
            pointers.setdefault(name, set()).add(kind)
        members = "|".join(name for name, kinds in pointers.items()
                           if kinds <= types - {"bson_t", "bson_iter_t"})
        wrong = re.compile(rf"\b(?:{of}) \*(\w+) = *\w*alloc0?\([^;]*sizeof \*\1\)|alloc0?\([^;]*sizeof"
                           rf"(?:\((?:{of})\)| \*[\w.>\[\]-]*(?:\.|->)(?:{members})\))")
        self.assertEqual([f"{p.relative_to(TOP)}: {found[0]}" for p, text in texts.items()
                          for found in wrong.finditer(text)], [])

    def test_text_is_printed_by_print_h(self):
        """print.h escapes inserted text. The files in `own` insert no foreign text or escape it."""
        own = {"print.c", "context.c", "json.c", "explain.c", "secrets.c", "options_help.c", "html.c",
               "query_commands.c", "typing.c", "sql_table.c", "yaml_reader.c"}
        raw = re.compile(r"(?<![\w.>])(?:v?f?printf|v?dprintf|puts|putchar|perror)\(")
        wrong = [f"{p.relative_to(TOP)}: {line.strip()}" for p in (TOP / "src").rglob("*.c")
                 if p.name not in own for line in p.read_text().splitlines() if raw.search(line)]
        self.assertEqual(wrong, [])

    def test_messages_name_existing_options(self):
        """Options are rows of tables with a name; messages and help texts name no other options. html.c
        has variables of style sheets."""
        others = {"completion", "config", "help", "man", "version",  # of every program
                  "long", "oplog", "out",                            # of zstd, mongodump, zip
                  "try", "try-"}                                     # all options --try-...
        texts = {p: re.sub(r"/\*.*?\*/|^#include.*$", "", p.read_text(), flags=re.S | re.M)
                 for p in (TOP / "src").rglob("*.[ch]") if p.name != "html.c"}
        names = {name for text in texts.values() for name in re.findall(r'\.name = "([\w-]+)"', text)}
        wrong = [f"{path.relative_to(TOP)}: --{word}" for path, text in texts.items()
                 for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", text))
                 for word in re.findall(r"(?<![\w-])--([A-Za-z][\w-]*)", string)
                 if word not in names | others]
        self.assertEqual(wrong, [])

    def test_names_in_a_work_directory_are_listed(self):
        path = TOP / "src/util/private_file.h"
        names, listed = path.read_text().split("#define SL_WORK_FILES")
        for macro, name in re.findall(r'#define (SL_WORK_\w+) "([^"]+)"', names):
            self.assertIn(macro, re.findall(r"\w+", listed))
            again = re.compile(rf'(s|")/{re.escape(name)}"|_of\(\w+, "{re.escape(name)}"')
            self.assertEqual([p.name for p in (TOP / "src").rglob("*.[ch]")
                              if p != path and again.search(p.read_text())], [])

    def test_the_map_shows_every_file(self):
        text = (TOP / "docs/internals/architecture.md").read_text()
        drawn = text[text.index("## The map"):text.index("## The path of a record")]
        names = set(re.findall(r"\b[a-z0-9_]+\.c\b", drawn))
        self.assertEqual(names, {p.name for p in (TOP / "src").rglob("*.c")})

    def test_comments_are_as_wide_as_code(self):
        # clang-format wraps code only (ReflowComments: false).
        self.assertEqual([f"{path.relative_to(TOP)}:{number}"
                          for folder in ("src", "include", "tests", "tools", "examples")
                          for path in sorted((TOP / folder).rglob("*.[ch]"))
                          for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
                          if re.match(r"\s*(/\*| \*)", line) and len(line) > 100], [])

    def test_no_file_is_longer_than_one_subject(self):
        for path in sorted((TOP / "src").rglob("*.[ch]")):
            with self.subTest(path.name):
                self.assertLessEqual(path.read_text("utf-8").count("\n"), 1500)

    def test_every_file_names_its_licence(self):
        files = [p for p in sources()] + list((TOP / "tests").rglob("*.py"))
        files += [p for p in (TOP / "tools").iterdir() if p.is_file()]
        bare = [str(p.relative_to(TOP)) for p in files
                if "SPDX-License-Identifier: Apache-2.0" not in p.read_text()[:300]]
        self.assertEqual(bare, [])
