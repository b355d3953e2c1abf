# SPDX-License-Identifier: Apache-2.0
"""Drills on samples, each followed by the full reload that it predicts. Counts how many of the full
reloads took a time within the predicted range of 95 %."""
import json
import random
import shutil
import subprocess

from .common import Failure, build_folder, servers

SHARES = (5, 10, 20, 40)      # percent
LIMIT = 3600                  # seconds that one run may take


def generate(folder, rows, seed):
    path = folder / "mot.txt"
    subprocess.run([build_folder() / "bin" / "shardload-datagen", "--rows", str(rows), "--seed",
                    str(seed), path], check=True)
    return path


def reload(folder, uri, source, *words):
    """One drill. Returns its record."""
    work = folder / "drill"
    shutil.rmtree(work, ignore_errors=True)
    done = subprocess.run(
        [build_folder() / "bin" / "shardload", "reload", "--progress", "none", "--work-dir", work,
         "--uri", uri, "-d", "drills", "-c", "t", "--suite", "mot", "--index", '{"v": 1}',
         *map(str, words), source], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        timeout=LIMIT, check=False)
    if done.returncode not in (0, 1):
        raise Failure(f"a drill ended with exit status {done.returncode}: {done.stderr[-2000:]}")
    return json.loads((work / "reload.json").read_text("utf-8"))


def load_seconds(phases):
    return next(phase for phase in phases if phase["name"] == "load")


def run_drills(options, folder, uri):
    """Prints a line for each pair of drill and full reload. Returns how many were inside."""
    draw = random.Random(options.seed)
    source = generate(folder, options.rows, options.seed)
    # Not counted: the servers allocate the memory for all data, and extend their files.
    reload(folder, uri, source, "--drop")
    inside = load_inside = 0
    print(f"{'sample':>6} {'runs vary by':>12} {'predicted':>10} {'range of 95 %':>19} "
          f"{'measured':>10} {'quotient':>8}")
    for number in range(1, options.count + 1):
        share = draw.choice(SHARES)
        predicted = reload(folder, uri, source, "--sample", f"{share}%")["predicted"]
        whole = reload(folder, uri, source, "--drop")
        measured = sum(phase["seconds"] for phase in whole["phases"])
        load, took = load_seconds(predicted["phases"]), load_seconds(whole["phases"])["seconds"]
        within = predicted["low"] <= measured <= predicted["high"]
        inside += within
        load_inside += load["low"] <= took <= load["high"]
        print(f"{share:>4} % {100 * predicted['runVariation']:>10.1f} % {predicted['seconds']:>8.1f} s "
              f"{predicted['low']:>7.1f} .. {predicted['high']:>6.1f} s {measured:>8.1f} s "
              f"{predicted['seconds'] / measured:>8.2f}  {'inside' if within else 'OUTSIDE'}; "
              f"{inside} of {number}", flush=True)
    print(f"{inside} of {options.count} full reloads took a time within the predicted range; of "
          f"their loads alone, {load_inside}")
    return inside


def run(options, folder):
    """True when at least 90 % of the full reloads were inside."""
    running = servers.Servers(folder / "servers" / "mongod", *servers.DEPLOYMENTS["mongod"][1],
                              "--cache", "0.5")
    inside = run_drills(options, folder, running.uri)
    print(f"{options.rows} records, seed {options.seed}")
    return inside >= 0.9 * options.count
