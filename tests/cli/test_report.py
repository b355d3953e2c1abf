# SPDX-License-Identifier: Apache-2.0
"""`shardload report` and --html: the page is well-formed and safe, it contains the figures of the
record, several runs are side by side, and files that are not records are refused."""
import html
import html.parser
import json
import random
import re
import stat

import record_maker
import support

VOID = {"meta", "br", "hr", "img", "input", "link"}
# SVG elements that the renderer closes in place.
EMPTY = {"path", "rect"}


class Page(html.parser.HTMLParser):
    """The elements of a page, and its text. Fails when tags are not balanced."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source = text
        self.open, self.problems, self.words, self.elements, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"never closed: {self.open}")
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in EMPTY:
            self.problems.append(f"<{tag}/> at {self.getpos()}")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        # Tooltips and the style sheet are not text of the page.
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data + " ")
        if data.strip() and self.open and self.open[-1] in ("svg", "g"):
            self.problems.append(f"text in a picture at {self.getpos()}: {data}")


class ReportCase(support.Case):
    def record(self, name, record):
        return self.file(f"{name}.json", json.dumps(record))

    def page(self, *words, code=support.EXIT_OK):
        path = self.scratch / "page.html"
        self.shardload("report", "--html", path, *words, code=code)
        return self.checked(path.read_text("utf-8"))

    def checked(self, text):
        """The page with this text, after the checks that every page must pass."""
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertTrue(page.source.startswith("<!DOCTYPE html>"))
        self.assertNotIn("script", page.elements)
        for tag, name, value in page.attributes:
            self.assertFalse(name in ("src", "href", "xlink:href", "action") or
                             name.startswith("on"), f"{tag} has {name}")
            if name in ("x", "y", "width", "height"):
                self.assertTrue(float(value) > -1e6, f"{tag}: {name}={value}")
            if name == "d":
                self.assertRegex(value, r"^M[MHVZhvz0-9., -]+$")
        for found in re.findall(r"url\(|@import|https?://", page.source):
            self.fail(f"the page refers to {found}")
        self.assertIn("default-src 'none'", page.source)
        self.assertIn("prefers-color-scheme:dark", page.source)
        self.assertIn("@media print", page.source)
        # Nothing is drawn to the left of the frame, or beyond its right edge.
        for tag, name, value in page.attributes:
            if tag == "rect" and name == "x":
                self.assertTrue(-1 <= float(value) <= 901, value)
        for left in re.findall(r'<rect class="f\d+" x="([0-9.]+)" y="[0-9.]+" width="10" height="10"/>', page.source):
            self.assertGreater(float(left), 752, "a legend is beside its plot")
        return page

    def assert_verdict(self, page, tone, words):
        """Checks the words and the colour of the verdict, the first framed sentence."""
        found = re.search(r'<p class="verdict ?(\w*)">([^<]*)<', page.source)
        self.assertEqual(found[1], tone, found[2])
        self.assertTrue(html.unescape(found[2]).startswith(words), found[2])

    def text(self, *words, **more):
        return self.shardload("report", *words, **more).out


class Kinds(ReportCase):
    """Every kind of record, with unusual values, as a page and as text."""

    def test_a_record_of_an_earlier_version(self):
        """Its keys have other names; the report is the same as of a record with today's names."""
        earlier = support.TREE / "tests" / "data" / "run-record-earlier.json"
        text = earlier.read_text("utf-8")
        for old, new in (("holds", "addsUp"), ("alreadyThere", "alreadyStored"), ("cut", "splittable"),
                         ("ofThoseByEarlierRuns", "earlierRuns"), ("placing", "distribution")):
            self.assertIn(f'"{old}"', text)
            text = text.replace(f'"{old}"', f'"{new}"')
        shown = self.text(earlier)
        self.assertIn("already stored", shown)
        self.assertEqual(shown, self.text(self.record(earlier.stem, json.loads(text))))

    def test_every_kind_is_drawn(self):
        for name, make in record_maker.ALL.items():
            with self.subTest(name):
                path = self.record(name, make())
                page = self.page(path)
                self.assertGreater(len(page.text), 300)
                if name != "nothing":
                    self.assertIn("svg", page.elements)
                for words in ([], ["--ascii"]):
                    lines = self.text(*words, path).splitlines()
                    self.assertGreater(len(lines), 15)
                    self.assertEqual([line for line in lines if re.match(r" \w", line)], [])     # captions begin at 0
                    self.assertEqual([title for before, title in zip(lines, lines[1:]) if before.strip() and
                                      title in ("Documents per second", "Bytes per second")], [])
                    if words:
                        self.assertTrue("\n".join(lines).isascii())

    def test_a_page_of_many_shards_and_points_stays_small(self):
        page = self.page(self.record("many", record_maker.load(10_000, 64, 3e6, 10_000)))
        self.assertLess(len(page.source), 600_000)
        self.assertIn("s62", page.text)

    def test_all_figures_of_a_load_appear(self):
        record = record_maker.load(60, 2, rejects=1234, code=1)
        accounting = record["accounting"]
        path = self.record("load", record)
        expected = [f"{accounting[key]:,}" for key in ("records", "inserted", "rejectedByParser")]
        expected += [f"{row['documents']:,}" for row in record["shards"]]
        expected += ["Loaded, with rejects", "62.9 ms", "343 ms",
                     "test_result_2013.txt.gz", "sharded cluster", "s0", "s1"]
        rate = accounting["inserted"] / 60
        expected.append(f"{int(rate + 0.5):,}")
        page, text = self.page(path).text, self.text(path)
        for figure in expected:
            self.assertIn(figure, page)
            self.assertIn(figure, text)
        for phase in record["phases"]:
            self.assertIn(phase["name"], page)
            self.assertIn(phase["name"], text)
            self.assertRegex(text, rf"(?m)^  {phase['name']} .* s$")          # its bar
            self.assertRegex(text, rf"(?m)^  {phase['name']} .* s +[\d.]+ %$")  # its row
        self.assertEqual(len(re.findall(r"(?m)^  total +1 min 16 s", text)), 2)           # of the bars and of the rows
        bars = {found[1]: found.span(2) for found in re.finditer(r"(?m)^  (\w+) +(\S+) .* s$", text)}
        bars = {name: (a - text.rindex("\n", 0, a), b - text.rindex("\n", 0, b)) for name, (a, b) in bars.items()}
        self.assertLess(abs(bars["load"][1] - bars["indexes"][0]), 2)
        self.assertLess(abs(bars["indexes"][1] - bars["verify"][0]), 2)
        for stage, share in (("reading", 2), ("unpacking", 1), ("parsing", 12), ("the server", 85)):
            self.assertRegex(text, rf"(?m)^  {stage} +\S+  mean {share}\.0 %$")
            self.assertRegex(text, rf"(?m)^  {stage} +\S* .*, {share}\.0 %$")

    def test_all_figures_of_queries_appear(self):
        plans = [{"shard": "s0", "examined": 600}, {"shard": "s1", "examined": 400}, {"shard": "s2"}, {"examined": 5}]
        alone = {"name": "makes", "examined": 1000, "timingsMs": [1, 2, 4], "minMs": 1, "medianMs": 2, "meanMs": 2.5,
                 "maxMs": 4, "documentsPerMsMean": 400, "documentsPerMsDeviation": 1.5, "answer": "ok",
                 "explain": {"plans": plans}}
        step = {"name": "r", "mode": "closed", "clients": 8, "operationsPerSecond": 1234, "succeeded": 5000,
                "failed": 7, "skipped": 0, "latencyMs": {"p50": 1, "p95": 2, "p99": 3, "p99_9": 4, "max": 9},
                "replicationLag": [{"member": "a:1", "maxSeconds": 1.5}, {"member": "b:1"}],
                "overTime": {"slotSeconds": 2, "succeeded": [10, 40], "maxMs": [1, 2], "meanMs": [1, 1]},
                "latencyCurve": [[0.5, 1], [0.99, 3]]}
        path = self.record("queries", {"program": "shardquery", "command": "run", "queries": [alone, step]})
        text = self.text(path)
        for row in (r"makes +█+ 2\.00 ms \(1\.00 ms to 4\.00 ms\)",
                    r"makes +1,000 +3 +1\.00 ms +2\.00 ms +2\.50 ms +4\.00 ms +400 +1\.5 +ok",
                    r"makes, s0 +█+ 600", r"makes, s1 +\S+ 400",
                    r"r, 8 clients +1,234 +1\.00 ms +2\.00 ms +3\.00 ms +4\.00 ms +9\.00 ms +7 +0",
                    r"r, 8 clients +█+ 1,234", r"r, 8 clients +█+ 2\.00 ms",
                    r"r, 8 clients, a:1 +█+ 1\.5 s", r"r, 8 clients, b:1 +-",
                    r"longest +\S+ +mean 1\.50 ms", r"mean +\S+ +mean 1\.00 ms",
                    r"50 % +█+ 1\.00 ms", r"99 % +█+ 3\.00 ms"):
            self.assertRegex(text, rf"(?m)^  {row}$")
        self.assertRegex(text, r"(?m)^ +20 │")              # operations per second in the second slot
        self.assertNotRegex(text, r"makes, (s2|\?)")        # without a number or a name
        self.assertIn("The figures of 1 of 2 measurements do not count: of 5007 operations, 7 failed",
                      self.page(path).text)
        for figures, verdict in (({"attempted": 9000, "failed": 7}, "7 operations failed."),
                                 ({"attempted": 1000, "failed": 0, "skipped": 980}, "0 failed and 980"),
                                 ({"attempted": 0, "failed": 0}, "no operation was measured"),
                                 ({"attempted": 10, "failed": 0}, "1 measurement, no failure.")):
            path = self.record("one", {"program": "shardquery", "command": "run", "queries": [{**step, **figures}]})
            self.assertIn(verdict, self.page(path).text)

    def test_a_page_of_many_bars_of_queries_stays_small(self):
        step = {"name": "r", "mode": "closed", "latencyCurve": [[0.5, 1]] * 20_000,
                "explain": {"plans": [{"shard": "s0", "examined": 1}] * 20_000},
                "replicationLag": [{"member": "a:1", "maxSeconds": 1}] * 20_000}
        page = self.page(self.record("queries", {"program": "shardquery", "command": "run", "queries": [step]}))
        self.assertLess(len(page.source), 600_000)
        self.assertEqual(page.text.count("The first 200 bars are shown"), 2)

    def test_outcomes_have_the_words_of_the_mode_and_stages_those_of_people(self):
        record = record_maker.load(60)
        record["accounting"].update(mode="delete", changed=77, inserted=0, alreadyStored=5)
        page = self.page(self.record("delete", record)).text
        self.assertRegex(page, r"= deleted 77 .*\+ not found 5 ")
        self.assertNotIn("inserted", page[page.index("Outcome of the records"):page.index("= deleted")])
        older = json.loads(json.dumps(record).replace('"server":', '"the server":'))
        self.assertIn('"the server":', json.dumps(older))
        for one in (record, older):
            self.assertIn("the server", self.page(self.record("stages", one)).text)

    def test_totals_that_do_not_add_up_are_an_error_on_the_page(self):
        record = record_maker.load(5)
        record["accounting"]["addsUp"] = False
        record["verification"]["ok"] = False
        path = self.record("load", record)
        for text in (self.page(path).text, " ".join(self.text(path).split())):
            self.assertIn("DO NOT ADD UP", text)
            self.assertIn("ARE WRONG", text)

    def test_tune_marks_what_it_recommends(self):
        record = record_maker.tune()
        chosen = record["settings"][record["recommended"]]
        page = self.page(self.record("tune", record))
        self.assertIn(f"Recommended: {chosen['threads']} threads, batches of "
                      f"{chosen['batchSize']:,} documents", page.text)
        marked = [value for tag, name, value in page.attributes if name == "class" and value == "heat marked"]
        self.assertEqual(len(marked), 2, "the best and the recommended one")
        self.assertEqual(page.source.count('class="empty"'), 4, "what was not tried")
        for name in ("none", "snappy", "zlib", "zstd"):
            self.assertIn(name, page.text)

    def test_tune_lists_the_fastest_settings_first(self):
        text = self.text(self.record("tune", record_maker.tune()))
        rates = re.findall(r"([0-9,]+)  \d+k to \d+k", text[text.index("The fastest"):])
        self.assertGreater(len(rates), 5)
        self.assertEqual(rates, sorted(rates, key=lambda rate: int(rate.replace(",", "")), reverse=True))

    def test_a_sweep_has_bars_and_rows(self):
        text = self.text(self.record("model", record_maker.ALL["model"]()))
        for row in (r"1 +█\S+ 1 h 00 min \(48 min 00 s to 1 h 30 min\)",
                    r"2\.5 +█+ 2 h 30 min \(2 h 00 min to 3 h 45 min\)",
                    r" +1  1 h 00 min  48 min 00 s to 1 h 30 min  routers-time",
                    r" +2\.5  2 h 30 min  2 h 00 min to 3 h 45 min   disk"):
            self.assertRegex(text, rf"(?m)^  {row}$")

    def test_tune_lists_what_it_leaves_out(self):
        record = record_maker.tune()
        one = record["settings"][0]
        record["settings"] = [{**one, "threads": n} for n in range(1, 31)]
        path = self.record("tune", record)
        for text in (self.page(path).text, self.text(path)):
            self.assertIn("6 settings are not in this picture", " ".join(text.split()))
        self.assertIn("90 % range of the true rate", self.page(path).text)
        record["settings"] *= 140
        self.assertIn("200 more settings than the 4000",
                      " ".join(self.text(self.record("tune", record)).split()))

    def test_a_drill_is_compared_with_its_objective(self):
        for met, words, tone in (("yes", "is met", "good"), ("no", "is NOT met", "bad"),
                                 ("unknown", "may or may not be met", "warning"),
                                 ("cannot be told", "may or may not be met", "warning")):
            record = record_maker.reload(met=met, code=5 if met == "no" else 0)
            path = self.record("reload", record)
            page = self.page(path)
            self.assert_verdict(page, tone, f"The recovery time objective of 4 h 00 min {words}: the reload with "
                                            "10.0 % of the data took 19 min 18 s. All data would take")
            self.assertIn('class="limit"', page.source)
            self.assertIn("objective: 4 h 00 min", self.text(path))
            self.assertIn("The load within the reload", page.text)
            self.assertNotIn("did not complete", page.text)

    def test_a_failed_drill_is_red_even_within_its_objective(self):
        make = record_maker.reload
        unended = ", so it does not show whether the recovery time objective of 4 h 00 min is met."
        right = ["ok"] * 4
        cases = [
            (make(code=2), "Stopped by wrong options or a file that could not be written: the reload "
                           f"with 10.0 % of the data did not complete{unended}"),
            (make(code=3), "Stopped by a source that could not be read or understood: the reload with "
                           f"10.0 % of the data did not complete{unended}"),
            (make(1.0, code=4), "Stopped because the cluster could not be reached or refused: the "
                                f"reload with all of the data did not complete{unended}"),
            (make(1.0, code=5, ended=False), "The counts are wrong, so do not trust the loaded data: "),
            (make(1.0, code=130), "Interrupted: the reload with all of the data did "
                                  f"not complete{unended}"),
            (make(1.0, code=130, objective=None), "Interrupted: the reload with all of the data did "
                                                  "not complete."),
            # The form of older versions.
            ({**make(1.0, code=130, ended=True), "ended": None}, "Interrupted: "),
            ({**make(1.0, code=0), "exitCode": None, "ended": None}, "Not ended: "),
            (make(1.0, code=5, answers=[*right[:3], "WRONG"]),
             "1 of 4 answers is WRONG. The recovery time objective of 4 h 00 min is met: the reload with all"),
            (make(1.0, code=5, answers=["WRONG", "WRONG", "not checked", "ok"], met="no"),
             "2 of 4 answers are WRONG. The recovery time objective of 4 h 00 min is NOT met: "),
            (make(1.0, code=4, ended=True, answers=["FAILED", "WRONG", *right[2:]]),
             "1 of 4 answers is WRONG. 1 of 4 queries FAILED. The recovery time objective of 4 h 00 min is met: "),
            (make(1.0, code=5, objective=None, answers=[*right[:3], "WRONG"]),
             "1 of 4 answers is WRONG. No recovery time objective was given: the reload with all of the data took"),
            (make(code=4, ended=True), "A query of an earlier step FAILED. The recovery time objective of 4 h 00 min"),
        ]
        for number, (record, words) in enumerate(cases):
            with self.subTest(number=number, words=words):
                path = self.record(f"reload-{number}", record)
                page = self.page(path)
                self.assert_verdict(page, "bad", words)
                self.assertNotIn("may or may not", page.text)
                self.assertIn("!! " + words[:40], " ".join(self.text(path).split()))
                if words.endswith(unended):
                    self.assertIn("Phases that the reload did not reach are missing", page.text)

    def test_every_exit_code_has_its_own_verdict(self):
        rows = re.findall(r"row\(\w+, (\d+),.*?(GOOD|WARNING|BAD),\s*\"([^\"]+)\"\)",
                          re.sub(r"\\\n\s*", " ", (support.TREE / "src/util/error.h").read_text("utf-8")))
        self.assertEqual([int(code) for code, *_ in rows], [0, 1, 2, 3, 4, 5, 6, 130])
        for code, tone, words in rows:
            with self.subTest(code=code):
                page = self.page(self.record(f"ended-{code}", record_maker.load(2, code=int(code))))
                self.assert_verdict(page, tone.lower(), f"{words}: ")

    def test_a_drill_with_rejects_is_yellow(self):
        page = self.page(self.record("rejects", record_maker.reload(1.0, code=1)))
        self.assert_verdict(page, "warning", "The recovery time objective of 4 h 00 min is met: ")
        self.assertIn("Records were rejected.", page.text)
        page = self.page(self.record("none", record_maker.reload(1.0, objective=None)))
        self.assert_verdict(page, "", "No recovery time objective was given: the reload with all of the data took")


class SideBySide(ReportCase):
    def test_loads_are_compared_with_the_first(self):
        first = record_maker.load(100, 2, threads="4", **{"work-dir": "a"})
        second = record_maker.load(50, 2, 800_000, threads="8", **{"work-dir": "b"})
        paths = [self.record("before", first), self.record("after", second)]
        rates = [record["accounting"]["inserted"] / record["phases"][3]["seconds"] for record in (first, second)]
        for text in (self.page(*paths).text, self.text(*paths)):
            for words in ("before", "after", f"{rates[1] / rates[0]:.2f}", "0.50", "Options that differ", "threads"):
                self.assertIn(words, text)
            differing = text.split("Options that differ")[1]
            self.assertNotIn("collection", differing)
            self.assertNotIn("work-dir", differing)

    def test_options_that_are_lists_or_in_some_only(self):
        first, second = record_maker.load(3), record_maker.load(3)
        paths = [self.record("a", first), self.record("b", second)]
        self.assertIn("All runs had the same options", self.page(*paths).text)
        second["options"]["index"] = first["options"]["index"] = ['{"v": 1}'] * 25
        self.assertIn("All runs had the same options",
                      self.page(self.record("a", first), self.record("b", second)).text)
        second["options"]["index"] = [*second["options"]["index"][:-1], '{"w": 1}']
        second["options"]["only-here"] = "yes"
        text = self.page(self.record("a", first), self.record("b", second)).text
        differing = text.split("Options that differ")[1].split("Settings")[0]
        for words in ("index", "only-here"):
            self.assertIn(words, differing)

    def test_drills_against_last_month(self):
        paths = [self.record(f"reload{n}", record_maker.reload(1.0, slower)) for n, slower in enumerate((1.0, 1.5))]
        page = self.page(*paths)
        self.assertIn("reload0", page.text)
        self.assertIn("1.50", page.text, "1.5 times the time to the first answer")
        self.assertIn("Queries, medians", page.text)
        # With a sample of the data, the prediction for all data counts.
        paths[1] = self.record("sampled", record_maker.reload(0.25))
        self.assertIn("sampled, predicted", self.page(*paths).text)

    def test_runs_that_failed_are_not_compared(self):
        good, slow, failed = (self.record(name, record_maker.load(60, rate=rate, code=code)) for name, rate, code in
                              (("good", 100_000, 0), ("slow", 25_000, 1), ("failed", 400_000, 4)))
        self.assertIn("slow loaded more slowly", self.page(good, slow).text)
        self.assertIn("failed is not compared: it ended with exit code 4.", self.page(good, failed).text)
        self.assertIn("good is not compared: the first run ended with exit code 4.", self.page(failed, good).text)
        self.assertNotIn("loaded faster", self.page(good, failed).text)
        again = record_maker.load(60, rate=400_000)
        again["accounting"].update(alreadyStored=again["accounting"]["inserted"], inserted=0)
        stored = self.record("stored", again)
        self.assertIn("stored is not compared: it found most of its documents stored", self.page(good, stored).text)
        self.assertRegex(self.page(stored).text, "documents in .*, of which [0-9,]+ were stored before. The totals")
        right, wrong, ended = (self.record(name, record_maker.reload(1.0, slower, answers=answers, code=code))
                               for name, slower, answers, code in (
                                   ("right", 1.0, None, 0), ("wrong", 1.5, ["ok", "WRONG", "FAILED", "ok"], 5),
                                   ("ended", 1.5, None, 4)))
        text = self.text(right, wrong)
        medians = {line.split()[0]: line.split()[1:] for line in text.split("Queries, medians")[1].splitlines()
                   if line.strip()}
        self.assertEqual([medians[name][-1] for name in record_maker.QUERIES], ["1.00", "-", "-", "1.00"])
        self.assertIn("wrong took 1.50 times as long", text)
        self.assertIn("ended is not compared: it ended with exit code 4.", self.text(right, ended))

    def test_kinds_may_be_mixed(self):
        page = self.page(*[self.record(name, make()) for name, make in
                           (("a", record_maker.load), ("b", record_maker.tune),
                            ("c", lambda: record_maker.load(9)))])
        self.assertIn("Load: 2 side by side", page.text)
        self.assertIn("Tuning: b", page.text)

    def test_more_runs_than_fit_side_by_side(self):
        paths = [self.record(f"run{n}", record_maker.load(3)) for n in range(15)]
        self.assertIn("Of 15 records the first 12 are shown", self.page(*paths).text)

    def test_runs_are_named_by_their_folders(self):
        for name in ("monday", "tuesday"):
            self.file(f"{name}/run.json", json.dumps(record_maker.load(2)))
        text = self.text("monday/run.json", "tuesday/run.json")
        self.assertEqual(self.text("monday", "tuesday/"), text)
        for name in ("monday", "tuesday"):
            self.assertRegex(text, rf"(?m)^{name}\n  sources ")     # above its phases


class Hostile(ReportCase):
    """Text that looks like markup, and files that are not records."""

    NASTY = "<script>alert(1)</script>\"'&<!--</style></svg>]]>\x1b[31m"

    def replaced(self, value, at=0):
        """The same record with every text replaced."""
        if isinstance(value, dict):
            if "$date" in value:
                return value
            kept = {"program", "command", "startedAt"} if at == 0 else set()
            return {(key if key in kept or not isinstance(item, (str, float)) else key):
                    item if key in kept else self.replaced(item, at + 1)
                    for key, item in value.items()}
        if isinstance(value, list):
            return [self.replaced(item, at + 1) for item in value]
        return self.NASTY if isinstance(value, str) else value

    def test_no_text_of_a_record_becomes_markup(self):
        for name, make in record_maker.ALL.items():
            with self.subTest(name):
                record = self.replaced(make())
                record["options"] = {self.NASTY: self.NASTY}
                page = self.page("--title", self.NASTY.replace("\x1b", ""), self.record("nasty", record))
                self.assertNotIn("<script", page.source)
                self.assertNotIn("\x1b", page.source)
                text = self.text(self.record("nasty", record))
                self.assertNotIn("\x1b", text)

    def test_no_file_name_becomes_markup(self):
        path = self.file("<b>&.json", json.dumps(record_maker.load(2)))
        self.assertIn("<b>&", self.page(path).text)

    def test_files_that_are_not_records_are_refused_by_name(self):
        whole = json.dumps(record_maker.load(3))
        query = {"program": "shardquery", "queries": []}
        cases = [("empty", "", "not a JSON document"),
                 ("cut", whole[:len(whole) // 2], "not a JSON document"),
                 ("other", "{}", "the field \"program\" is missing"),
                 ("list", "[1, 2]", "the field \"program\" is missing"),
                 ("query", json.dumps(query), "record of \"shardquery\""),
                 ("verify", json.dumps({**record_maker.head("shardload", "verify")}),
                  "\"shardload verify\""),
                 ("part", json.dumps(record_maker.head("shardload", "load")),
                  "\"phases\" is missing")]
        for name, content, words in cases:
            with self.subTest(name):
                path = self.file(f"{name}.json", content)
                outcome = self.shardload("report", path, code=support.EXIT_SOURCE, message=(f"{name}.json: ", words))
                self.assertEqual(outcome.out, "")

    def test_all_bad_files_are_reported_together(self):
        good = self.record("good", record_maker.load(2))
        bad = [self.file(f"bad{n}.json", "{}") for n in range(3)]
        outcome = self.shardload("report", bad[0], good, bad[1], bad[2], code=support.EXIT_SOURCE)
        for path in bad:
            self.assertIn(str(path), outcome.err)
        self.assertNotIn("good.json:", outcome.text)

    def test_figures_of_the_wrong_type_are_left_out(self):
        record = record_maker.load(5)
        record["accounting"] = dict.fromkeys(record["accounting"], "many")
        record["phases"] = [{"name": 7, "seconds": "long"}, 3, None, {}]
        record["series"] = [{"seconds": {"$numberDouble": "Infinity"}}, {"documents": -1}, []]
        record["exitCode"] = "zero"
        self.page(self.record("odd", record))

    def test_damaged_records_are_drawn_or_refused(self):
        chance = random.Random(20)
        makers = [lambda: record_maker.load(4, 3), lambda: record_maker.load(2, 9, points=2),
                  record_maker.tune, record_maker.plan, record_maker.model,
                  lambda: {**record_maker.reload(), "load": record_maker.load(3)}]
        drawn = 0
        for number in range(90):
            record = record_maker.damaged(makers[number % len(makers)](), (0.005, 0.03, 0.15)[number % 3], chance)
            with self.subTest(number=number):
                path = self.record("damaged", record)
                outcome = self.shardload("report", "--html", "-", path, code=None)
                self.assertIn(outcome.code, (support.EXIT_OK, support.EXIT_SOURCE), outcome.err)
                if outcome.code == support.EXIT_OK:
                    drawn += 1
                    self.checked(outcome.out)
                    self.text(path)
                else:
                    self.assertIn("damaged.json: ", outcome.err)
        self.assertGreater(drawn, 45)

    def test_usage(self):
        self.assertIn("name a record", self.shardload("report", code=support.EXIT_USAGE).err)
        self.shardload("report", "missing.json", code=support.EXIT_USAGE, message="missing.json")
        outcome = self.shardload("report", "--help")
        self.assertIn("--html", outcome.out)


class Files(ReportCase):
    """The file of the page, or standard output."""

    def test_the_page_is_private_and_replaces_a_file(self):
        record = self.record("load", record_maker.load(2))
        path = self.file("page.html", "old")
        path.chmod(0o644)
        self.page(record)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(sorted(item.name for item in self.scratch.iterdir()),
                         ["load.json", "page.html"], "nothing is left beside it")

    def test_links_and_folders_are_refused(self):
        record = self.record("load", record_maker.load(2))
        precious = self.file("precious", "mine")
        (self.scratch / "link.html").symlink_to(precious)
        (self.scratch / "folder.html").mkdir()
        for name in ("link.html", "folder.html", "nowhere/page.html"):
            self.shardload("report", "--html", name, record, code=support.EXIT_USAGE, message=name)
        self.assertEqual(precious.read_text(), "mine")

    def test_standard_output(self):
        record = self.record("load", record_maker.load(2))
        outcome = self.shardload("report", "--html", "-", "--title", "On Monday", record)
        self.assertIn("On Monday", self.checked(outcome.out).text)

    def test_text_follows_terminal_and_locale(self):
        record = self.record("load", record_maker.load(9))
        for columns in (40, 80, 132):
            environment = support.clean_environment(COLUMNS=str(columns))
            lines = self.text(record, environment=environment).splitlines()
            pictures = [line for line in lines if "\u2502" in line or "\u2588" in line]
            self.assertTrue(pictures)
            self.assertLessEqual(max(map(len, pictures)), columns)
        environment = {**support.clean_environment(), "LC_ALL": "C"}
        self.assertTrue(self.text(record, environment=environment).isascii())
        many = self.record("many", record_maker.load(9, shards=9))    # a heat map: a row for each shard
        text = self.text(many, environment=environment)
        self.assertEqual(re.findall(r"^  (s\d)     [-.:=+*#@ ]{9}$", text, re.M), [f"s{number}" for number in range(9)])


class Loads(ReportCase):
    """--html of a real load, and the report of its run.json."""

    def test_a_load_writes_its_page(self):
        (path,) = self.generate("A", 200_000, "--bad", 7)
        self.shardload("load", "--sink", f"bson:{self.scratch}/out.bson", "--work-dir", "work",
                       "--html", "page.html", "--progress", "none", path,
                       code=support.EXIT_REJECTS)
        page_path = self.scratch / "page.html"
        self.assertEqual(stat.S_IMODE(page_path.stat().st_mode), 0o600)
        page = self.checked(page_path.read_text("utf-8"))
        figures = support.run_record(self.scratch / "work")["accounting"]
        for key in ("records", "inserted", "rejectedByParser"):
            self.assertIn(f"{figures[key]:,}", page.text)
        again = self.page("work/run.json")
        self.assertIn(f"{figures['inserted']:,}", again.text)
        self.assertIn("work", again.text)

    def test_a_page_that_cannot_be_written_is_reported_before_the_load(self):
        path = self.file("tests.txt", "\n".join([support.HEADER, support.ROW.format(id=1)]))
        (self.scratch / "link.html").symlink_to(path)
        for name in ("link.html", "nowhere/page.html"):
            outcome = self.shardload("load", "--sink", "null", "--html", name, path,
                                     code=support.EXIT_USAGE, message=name)
            self.assertNotIn("= inserted", outcome.text)


class Plans(ReportCase):
    def test_what_a_plan_cannot_predict_is_at_the_top(self):
        record = record_maker.plan()
        page = self.page(self.record("plan", record))
        self.assertNotIn("whose time is unknown", page.text)
        record["predicted"]["phases"] += [{"name": name, "unknownBecause": "nobody did"}
                                          for name in ("verify", "queries")]
        for complete in (False, None):  # older plans have no "complete"
            if complete is not None:
                record["predicted"]["complete"] = complete
            else:
                del record["predicted"]["complete"]
            path = self.record("plan", record)
            page = self.page(path)
            self.assertIn('class="verdict warning">Predicted: 300,000,000 records; 14 min 00 s '
                          "(13 min 00 s to 17 min 00 s), WITHOUT verify, queries, whose time is "
                          "unknown.", page.source)
            for text in (page.text, self.text(path)):
                self.assertIn("total, without the unknown phases", text)


class CapacityModels(ReportCase):
    def test_a_capacity_model(self):
        path = self.scratch / "model.json"
        self.shardload("plan", "--model", "isd-hundred-shards", "--report", path)
        page = self.page(path)
        for words in ("Computed, not measured: load is 3 h 02 min", "Decided by: network-time.",
                      "index 4 min 36 s 5 min 00 s 0.92 predicted", "router-rate"):
            self.assertIn(words, page.text)
        self.assertIn("svg", page.elements)

    def test_every_part_of_a_capacity_model(self):
        path = self.record("model", record_maker.model())
        page = self.page(path)
        for text in (page.text, " ".join(self.text(path).split())):
            for words in ("load is 2 h 00 min (1 h 36 min to 3 h 00 min). Decided by: routers-time.",
                          "It has two machines.", "load by replicas"):
                self.assertIn(words, text)
        for words in ("as many as it should be", "2 h 30 min 0.80 fitted",
                      "load two shards 1 min 00 s 50 s 1.20 predicted", "2.5 2 h 30 min", "2 bytes/s"):
            self.assertIn(words, page.text)


def parts(*numbers, of=4, **more):
    return {f"part-{number}": record_maker.load(60, **{"part": f"{number}/{of}"}, **more) for number in numbers}


class Shared(ReportCase):
    """Loaders that share one load by --part or --only-shards: their records are one load on one page. What is
    missing, or counted twice, is in the first sentence."""

    def pages(self, records, code=support.EXIT_OK):
        paths = [self.record(name, record) for name, record in records.items()]
        text = self.shardload("report", *paths, code=code).out
        return self.page(*paths), " ".join(text.split())

    def documents(self, records):
        return sum(record["accounting"]["inserted"] for record in records.values())

    def test_four_parts_are_one_load(self):
        records = parts(1, 2, 3, 4)
        for number, record in enumerate(records.values()):
            record["startedAt"] = {"$date": f"2026-03-01T09:30:{10 * number:02}Z"}
        page, text = self.pages(records)
        self.assertIn("Load by 4 loaders", page.text)
        self.assertNotIn("side by side", page.text)
        for shown in (page.text, text):
            self.assertIn("Everything was loaded: 4 loaders stored", shown)
            self.assertIn("The totals of all loaders add up.", shown)
            self.assertIn("The counts of the ranges on the cluster are right.", shown)
            self.assertNotIn("No record for", shown)
            for name in records:
                self.assertIn(name, shown)
        inserted = self.documents(records)
        self.assertRegex(page.text, rf"= inserted {inserted:,}")
        # The last loader began 30 s after the first one, and all phases of one take 76.3 s.
        self.assertRegex(page.text, r"documents in 1 min 46 s at")

    def test_what_is_missing_given_twice_or_has_failed(self):
        def load(**options):
            return record_maker.load(60, **options)
        numbers = {name: load(part=name.replace("-", "/")) for name in ("01-2", "2-2")}
        two, shards = parts(1, 2, of=2), {name: load(**{"only-shards": name}) for name in ("s0", "s1")}
        wrong = {**two["part-1"]["accounting"], "addsUp": False}
        for records, shown, absent in (
                (parts(1, 3), ["Records of some loaders are missing", "No record for part 2/4, 4/4."], []),
                ({"one": load(part="2/4")}, ["This loader's share (2/4) was loaded: "], ["Everything was loaded"]),
                ({"one": load(**{"only-shards": "s0,s1"})}, ["This loader's share (s0,s1) was loaded: "],
                 ["Everything was loaded"]),
                # Parts are compared as numbers.
                (numbers, ["Everything was loaded: 2 loaders stored"], ["No record for"]),
                ({**numbers, "again": load(part="1/2")}, ["Several records belong to 1/2, so the sums below"], []),
                ({**two, "copy": two["part-2"]},
                 ["Several records belong to 2/2, so the sums below count some documents twice"], []),
                (shards, ["Everything was loaded: 2 loaders stored"], []),
                ({"s0": shards["s0"], "s0-again": shards["s0"]},
                 ["Several records belong to s0", "No record for shard s1."], []),
                ({**two, "part-2": {**two["part-2"], "exitCode": 4}}, ["A loader has failed"], []),
                ({**two, "part-2": {**two["part-2"], "exitCode": 130}},
                 ["A loader was interrupted, to be resumed"], []),
                ({**two, "part-2": {**two["part-2"], "exitCode": 5, "verification": {"ok": False}}},
                 ["THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG"], []),
                ({**two, "part-1": {**two["part-1"], "accounting": wrong}},
                 ["The totals of a loader DO NOT ADD UP"], [])):
            with self.subTest(shown[0], records=list(records)):
                page, text = self.pages(records)
                for words in shown:
                    self.assertIn(words, page.text)
                    self.assertIn(words, text)
                for words in absent:
                    self.assertNotIn(words, page.text + text)

    def test_documents_of_a_resumed_run_count_but_not_for_the_rate(self):
        records = parts(1, 2, of=2)
        plain, _ = self.pages(records)
        account = records["part-2"]["accounting"]
        account["earlierRuns"] = {"inserted": account["inserted"]}
        page, _ = self.pages(records)

        def rate(one):
            return one.text.split(" per second while")[0].rpartition("(")[2]

        self.assertNotEqual(rate(plain), rate(page))
        self.assertIn(f"= inserted {self.documents(records):,}", page.text)

    def test_loads_that_do_not_belong_together_are_side_by_side(self):
        for changes in ({"part": "2/3"}, {"part": None}, {"collection": "other"}, {"db": "other"}):
            records = parts(1, 2, of=2)
            records["part-2"]["options"].update(changes)
            page, _ = self.pages(records)
            self.assertIn("Load: 2 side by side", page.text, changes)
        records = parts(1, 2, of=2)
        records["part-1"]["sources"][0]["fingerprint"] = "a"
        records["part-2"]["sources"][0]["fingerprint"] = "b"
        self.assertIn("Load: 2 side by side", self.pages(records)[0].text)

    def test_hundreds_of_loaders_and_absurd_values(self):
        records = parts(*range(1, 217), of=9999)
        page, _ = self.pages(records)
        self.assertIn("216 loaders", page.text)
        self.assertIn("and 16 more", page.text)
        self.assertIn("and more.", page.text)
        broken = parts(1, 2, of=2)
        broken["part-1"].update(phases=[{"seconds": -1}, 3, {"name": 7}], startedAt=None, shards=[{}])
        broken["part-2"]["accounting"] = {"a.b": 1, "inserted": "x"}
        self.pages(broken)


class Words(ReportCase):
    """The text of a page: target and date in the title, the verdict of a comparison with its uncertainty, no
    percentile of too few samples, only relevant options, rejects by reason, only settings that were tried."""

    def title(self, page):
        return re.search("<title>(.*?)</title>", page.source, re.DOTALL)[1]

    def test_target_and_date_are_in_the_title(self):
        record = record_maker.load(5)
        record["options"].update(db="mot", collection="tests")
        record["startedAt"] = {"$date": "2026-03-04T05:06:07Z"}
        path = self.record("one", record)
        self.assertEqual(self.title(self.page(path)), "Load: mot.tests, 2026-03-04 05:06 - one")
        page = self.page(path, self.record("two", record))
        self.assertEqual(self.title(page), "Load: 2 records, mot.tests, until 2026-03-04 05:06")

    def test_the_verdict_of_a_comparison_has_an_uncertainty(self):
        paths = [self.record(name, record_maker.load(seconds)) for name, seconds in
                 (("first", 60), ("second", 60), ("short", 2))]
        page = self.page(paths[0], paths[1])
        self.assertRegex(page.text, r"second loaded .*rate of the first run \(95 %: [\d.]+ to [\d.]+\)")
        self.assertIn("does not differ significantly", page.text)
        self.assertRegex(self.text(paths[0], paths[1]), r"second loaded at a rate")
        self.assertIn("too short to estimate the uncertainty", self.page(paths[0], paths[2]).text)

    def test_a_faster_load_is_faster(self):
        slow, fast = record_maker.load(60), record_maker.load(60)
        for record, factor in ((slow, 1), (fast, 3)):
            for key in ("records", "inserted"):
                record["accounting"][key] *= factor
            for number, point in enumerate(record["series"]):
                point["documents"] = number * 100_000 * factor
        page = self.page(self.record("slow", slow), self.record("fast", fast))
        self.assertRegex(page.text, r"fast loaded faster: 3\.0\d times")

    def test_words_follow_the_mode(self):
        record = record_maker.load(5)
        totals = record["accounting"]
        totals.update(mode="delete", changed=totals["inserted"] - 12, alreadyStored=12, inserted=0)
        page = self.page(self.record("load", record))
        deleted = f"{totals['changed']:,}"
        for words in (f"Everything was deleted: {deleted} deleted, 12 not found in", "documents/s while deleting",
                      f"= deleted {deleted} ", "+ not found 12 ", "deleted or not found"):
            self.assertIn(words, page.text)
        for words in ("Everything was loaded", "already stored", "inserted"):
            self.assertNotIn(words, page.text)
        record["exitCode"] = 1
        self.assertIn("Deleted, with rejects", self.text(self.record("load", record)))
        totals.update(mode="upsert", inserted=5)
        page = self.page(self.record("load", record))
        for words in ("= inserted 5 ", f"+ modified {deleted} ", "+ unchanged 12 "):
            self.assertIn(words, page.text)

    def test_stages_have_the_same_words_with_every_key(self):
        record = record_maker.load(5)
        before = self.page(self.record("load", record)).source
        text = json.dumps(record).replace('"the server"', '"server"')
        self.assertEqual(self.page(self.record("load", json.loads(text))).source, before)

    def test_percentiles_need_samples(self):
        record = record_maker.load(5)
        for batches, shown, missing in ((3, [], ["half of the batches", "90 %", "99 %", "99.9 %"]),
                                        (50, ["half of the batches", "90 %"], ["99 %", "99.9 %"]),
                                        (5000, ["90 %", "99 %", "99.9 %"], [])):
            record["batchMilliseconds"]["batches"] = batches
            text = self.page(self.record("load", record)).text
            latencies = text[text.index("Latency of batches"):text.index("Totals")]
            for words in shown + ["the slowest"]:
                self.assertIn(f" {words} ", latencies)
            for words in missing:
                self.assertNotIn(f" {words} ", latencies)

    def test_the_settings_are_the_options_that_were_given(self):
        _, work = self.parse("--types", "text", "--html", "p.html", self.file("a.csv", "x,y\n1,2\n"))
        settings = self.page(work / "run.json").text.split("Settings")[1]
        for name in ("types", "sink"):
            self.assertIn(f" {name} ", settings)
        for name in ("skew", "missing", "threads", "html", "work-dir"):
            self.assertNotIn(f" {name} ", settings)

    def test_rejects_by_reason(self):
        path = self.file("year.txt", support.mot_text(range(1, 50)) + "x|y\n" * 3 + "x|y|z\n"
                         + support.mot_text([7]).splitlines()[1].replace("|49828|", "|abc|") + "\n")
        outcome, work = self.parse("--html", "p.html", path, code=support.EXIT_REJECTS)
        rejects = support.run_record(work)["rejects"]
        self.assertEqual([kind["count"] for kind in rejects["kinds"]], [4, 1])
        self.assertEqual(sum(kind["count"] for kind in rejects["kinds"]), 5)
        page = (self.scratch / "p.html").read_text("utf-8")
        for words in ("too few fields: N of N", "year.txt, line 51", "too few fields: 2 of 14",
                      "test_mileage", "year.txt, line 55"):
            self.assertIn(words, outcome.text)
            self.assertIn(words, page)

    def test_settings_that_were_not_tried_are_not_among_the_fastest(self):
        record = record_maker.tune()
        one = record["settings"][1]
        one.update(threads=77, rate=None, trials=[])
        text = self.page(self.record("tune", record)).text
        fastest = text[text.index("The fastest"):]
        self.assertNotIn(" 77 ", fastest)
