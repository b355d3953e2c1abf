# SPDX-License-Identifier: Apache-2.0
"""Describes the machine, and detects other programs that used it during the measurements."""
import datetime
import os
import platform
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

BUSY = 0.15  # load average per core at the start above which a warning is printed
FOREIGN = 0.05  # share of the machine above which other programs cause a warning
SMALL = 0.5  # scale below which a warning is printed


def first_match(path, pattern):
    try:
        found = re.search(pattern, Path(path).read_text("utf-8"), re.M)
    except OSError:
        return None
    return found.group(1).strip() if found else None


def cores():
    return len(os.sched_getaffinity(0))


STATES = ("user", "system", "wait", "idle", "steal")
STATE_OF_FIELD = ("user", "user", "system", "idle", "wait", "system", "system", "steal")


def cpu_states():
    """Ticks of all processors together since the start of the machine, by STATES."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]
    found = dict.fromkeys(STATES, 0)
    for state, ticks in zip(STATE_OF_FIELD, map(int, fields)):
        found[state] += ticks
    return [found[state] for state in STATES]


def stolen_share(before):
    """The share of the processors' time that went to other guests of a virtual host since `before`,
    the result of cpu_states."""
    ticks = [b - a for a, b in zip(before, cpu_states())]
    return ticks[-1] / max(sum(ticks), 1)


class CpuWatch:
    """Samples the states of the processors ten times a second, so that the shares of any time span
    can be computed, such as one phase of a load."""

    INTERVAL = 0.1  # seconds

    def __enter__(self):
        self.samples = [(time.time(), cpu_states())]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        # In a shorter time there may be no tick at all.
        time.sleep(max(0.0, self.samples[0][0] + self.INTERVAL - time.time()))
        self.samples.append((time.time(), cpu_states()))

    def _sample(self):
        while not self.over.wait(self.INTERVAL):
            self.samples.append((time.time(), cpu_states()))

    def _at(self, moment):
        """The ticks at a time, interpolated between the two samples around it."""
        for (left, before), (right, after) in zip(self.samples, self.samples[1:]):
            if moment <= right:
                share = min(max((moment - left) / (right - left), 0.0), 1.0)
                return [a + share * (b - a) for a, b in zip(before, after)]
        return self.samples[-1][1]

    def busy(self):
        """(CPU seconds that all programs have used, CPU seconds available) since the start."""
        ticks = [b - a for a, b in zip(self.samples[0][1], self.samples[-1][1])]
        per_second = os.sysconf("SC_CLK_TCK")
        return sum(ticks[:2]) / per_second, sum(ticks) / per_second

    def shares(self, begin=None, end=None):
        """{state: share of the machine} between two times of time.time(), by default since the
        start. The sum is 1. There is no "steal" if no time was stolen."""
        first = self.samples[0][1] if begin is None else self._at(begin)
        last = self.samples[-1][1] if end is None else self._at(end)
        ticks = [max(b - a, 0.0) for a, b in zip(first, last)]
        total = sum(ticks)
        if total <= 0:
            return self.shares() if begin is not None or end is not None else None
        found = {state: count / total for state, count in zip(STATES, ticks)}
        if not found["steal"]:
            del found["steal"]
        return found


def memory_available():
    """Bytes of memory that programs can still allocate, or None."""
    found = first_match("/proc/meminfo", r"^MemAvailable:\s+(\d+) kB")
    return int(found) * 1024 if found else None


def seconds_of(action, repeats):
    """The median time of an action."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_rate():
    """Bytes of memory that one core copies per second. Parsers and servers are slower on a virtual
    machine whose memory is slower, even if its processor is the same."""
    size = 64 << 20
    source, copy = bytearray(size), memoryview(bytearray(size))

    def copy_all():
        copy[:] = source

    return size / seconds_of(copy_all, 9)


def sync_seconds():
    """The time after which a small write to a temporary file is on the disk."""
    with tempfile.TemporaryFile() as file:
        def write():
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())

        return seconds_of(write, 21)


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
        "copyBytesPerSecond": copy_rate(),
        "syncSeconds": sync_seconds(),
    }


def about(facts):
    """The machine, the versions and the size of the measurement, in one sentence."""
    optional = (("memoryBytes", lambda size: f"{size / 2 ** 30:.0f} GiB"),
                ("copyBytesPerSecond", lambda rate: f"memory copied at {rate / 1e9:.1f} GB/s"),
                ("syncSeconds", lambda time: f"a disk write synced in {time * 1e3:.2g} ms"),
                ("kernel", str), ("build", "build {}".format), ("server", "mongod {}".format),
                ("driver", "C driver {}".format),
                ("runs", lambda runs: f"{runs} round{'s' * (runs > 1)}"),
                ("scale", "scale {:g}".format))
    parts = [facts["date"], f"{facts['cores']} cores of {facts['processor']}"]
    parts += [show(facts[key]) for key, show in optional if facts.get(key)]
    return ", ".join(parts)


def wait_for_rest(seconds):
    """Waits up to `seconds` until the load average is low (a build may have raised it)."""
    end = time.monotonic() + seconds
    printed = False
    while os.getloadavg()[0] > BUSY * cores() and time.monotonic() < end:
        if not printed:
            print(f"waiting up to {seconds} s until the load average is low", file=sys.stderr)
            printed = True
        time.sleep(1)


def warnings(facts):
    found = []
    if facts["loadAtStart"] > BUSY * facts["cores"]:
        found.append(f"the machine was busy at the start (load {facts['loadAtStart']:.1f}): do not "
                     "quote these figures")
    if facts["build"] not in ("Release", "RelWithDebInfo"):
        found.append(f"the build type is {facts['build']}: do not quote these figures")
    if facts.get("scale", 1) < SMALL:
        found.append(f"at a scale of {facts['scale']:g} the programs take longer to start and end "
                     "than for the measured work: do not quote these figures")
    if facts.get("stolenShare", 0) > 0.01:
        found.append(f"{facts['stolenShare'] * 100:.1f} % of the processor's time went to other "
                     "guests of this machine")
    return found
