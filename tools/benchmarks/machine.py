# SPDX-License-Identifier: Apache-2.0
"""What the figures were measured on, and whether anything else was going on there."""
import datetime
import os
import platform
import re
import sys
import time
from pathlib import Path

BUSY = 0.15  # load per core at the start from which figures are not to be believed
SMALL = 0.5  # scale below which they are not either


def first_match(path, pattern):
    try:
        found = re.search(pattern, Path(path).read_text("utf-8"), re.M)
    except OSError:
        return None
    return found.group(1).strip() if found else None


def cores():
    return len(os.sched_getaffinity(0))


def cpu_ticks():
    """(all, stolen by other guests of a shared machine) since the start of the machine."""
    try:
        fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]
    except OSError:
        return 0, 0
    ticks = list(map(int, fields))
    return sum(ticks), ticks[7] if len(ticks) > 7 else 0


def describe(build):
    memory = first_match("/proc/meminfo", r"^MemTotal:\s+(\d+) kB")
    kind = first_match(build / "CMakeCache.txt", r"^CMAKE_BUILD_TYPE:\w+=(.*)$")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cores": cores(),
        "processor": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or
        platform.processor(),
        "memoryBytes": int(memory) * 1024 if memory else None,
        "kernel": f"{platform.system()} {platform.release()}",
        "build": kind or "unknown",
        "loadAtStart": os.getloadavg()[0],
    }


def wait_for_rest(seconds):
    """Waits until what ran before (the build, for one) has left the load average, but not longer."""
    end = time.monotonic() + seconds
    said = False
    while os.getloadavg()[0] > BUSY * cores() and time.monotonic() < end:
        if not said:
            print(f"bench: waiting for the machine to come to rest, {seconds} s at most",
                  file=sys.stderr)
            said = True
        time.sleep(1)


def warnings(facts):
    found = []
    if facts["loadAtStart"] > BUSY * facts["cores"]:
        found.append(f"the machine was busy at the start (load {facts['loadAtStart']:.1f}): do not "
                     "quote these figures")
    if facts["build"] not in ("Release", "RelWithDebInfo"):
        found.append(f"the build is of the kind {facts['build']}: do not quote these figures")
    if facts.get("scale", 1) < SMALL:
        found.append(f"at a scale of {facts['scale']:g} starting and ending weighs more than the "
                     "work: do not quote these figures")
    if facts.get("stolenShare", 0) > 0.01:
        found.append(f"{facts['stolenShare'] * 100:.1f} % of the processor's time went to other "
                     "guests of this machine")
    return found
