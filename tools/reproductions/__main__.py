# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/reproduce."""
import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from benchmarks import machine
from benchmarks.process import (Failure, Interruption, remove_folder, with_signals_held,
                                without_folder)

from . import (compression, mot_microshards, pages, petabyte, secondary_reads, statistics_ways,
               weather)
from .experiment import Outcome
from .programs import DATABASE, Programs

EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT
               for module in (mot_microshards, petabyte, weather, statistics_ways,
                              secondary_reads, compression)}


def scale(text):
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def read_options(words):
    parser = argparse.ArgumentParser(
        prog="reproduce", description="Repeats published experiments with shardload and shardquery, "
        "and prints the published figures beside the measured ones. docs/reproduce.md explains the "
        "experiments.",
        epilog="Experiments: " + ", ".join(EXPERIMENTS) + ". Exit status: 0 all were measured; 1 one "
        "failed; 2 usage; 130 interrupted.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an experiment, or all")
    parser.add_argument("--scale", type=scale, default=1.0, metavar="N",
                        help="amount of data, relative to the default of 1, with which an experiment "
                        "takes at most five minutes on two cores")
    parser.add_argument("--uri", metavar="URI",
                        help="run on this cluster instead of servers on this machine; the database "
                        f"{DATABASE} is dropped before and afterwards")
    parser.add_argument("--keep", action="store_true", help="keep the data and the programs' records")
    parser.add_argument("--pages", metavar="FOLDER", type=Path, default=Path("reproduce"),
                        help="folder for the HTML pages (default: reproduce)")
    parser.add_argument("--markdown", metavar="FILE",
                        help="write docs/reproduce.md, and the figures into the .txt beside it")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--list", action="store_true", help="print the experiments and end")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        parser.error(f"no such experiment: {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    if not options.names and not options.list:
        parser.error("name an experiment, or all")
    options.selected = [one for name, one in EXPERIMENTS.items()
                        if name in options.names or "all" in options.names]
    for problem in without_folder(options.json, options.markdown):
        parser.error(problem)
    return options


def measure(experiment, programs):
    """Runs one experiment. Figures that were measured before a failure are kept."""
    outcome = Outcome(experiment)
    programs.doing = experiment.name
    programs.say("begins")
    begun = time.monotonic()
    try:
        experiment.run(programs, outcome)
    except Failure as failure:
        outcome.why = str(failure)
    except KeyboardInterrupt:
        outcome.why = "interrupted"
        raise
    except Exception as error:  # noqa: BLE001 (the other experiments still run)
        traceback.print_exc()
        outcome.why = f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        with_signals_held(programs.stop)
    outcome.seconds = time.monotonic() - begun
    programs.say(f"failed: {outcome.why}" if outcome.why else "done")
    return outcome


def write(path, content):
    Path(path).write_text(content, encoding="utf-8")
    print(f"reproduce: written: {path}", file=sys.stderr)


def main():
    options = read_options(sys.argv[1:])
    if options.list:
        for name, one in EXPERIMENTS.items():
            print(f"{name:<18} {one.title}")
        return 0
    build = Path(os.environ["SHARDLOAD_BUILD"]).resolve()
    Interruption.listen()
    options.pages.mkdir(parents=True, exist_ok=True)
    options.pages = options.pages.resolve()
    folder = Path(tempfile.mkdtemp(prefix="shardload-reproduce-"))
    programs = Programs(options, folder, build)
    if options.markdown and options.scale >= machine.SMALL:
        machine.wait_for_rest(180)
    facts = {**machine.describe(build), "scale": options.scale}
    facts["warnings"] = machine.warnings(facts)
    outcomes, interrupted = [], False
    try:
        for one in options.selected:
            outcomes.append(measure(one, programs))
            facts["server"] = programs.server
            write(options.pages / f"{one.name}.html", pages.page(facts, outcomes[-1]))
            print(pages.text(outcomes[-1]), flush=True)
            if not options.keep:
                for path in folder.iterdir():
                    remove_folder(path) if path.is_dir() else path.unlink()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if options.keep:
            print(f"reproduce: data and records are kept in {folder}", file=sys.stderr)
        else:
            with_signals_held(lambda: remove_folder(folder))
    if options.json:
        write(options.json, json.dumps({"machine": facts, "experiments": [
            outcome.as_json() for outcome in outcomes]}, indent=2) + "\n")
    if options.markdown and not interrupted:
        write(options.markdown, pages.markdown(outcomes))
        write(Path(options.markdown).with_suffix(".txt"), pages.figures(facts, outcomes))
    if interrupted:
        return 130
    return 1 if any(outcome.why for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
