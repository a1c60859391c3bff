# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the machine is, whether somebody else uses it, and whether its processors stay where they are."""
import os
import platform
import subprocess
import time

APART = 2.0   # times as long for memory to go from one processor to the other: then they were moved
BUSY = 0.15   # share of all processors; above it a measurement says little: both ends of a ping-pong spin


def describe(root):
    def first_line(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.readline().strip()
        except OSError:
            return "unknown"

    try:
        commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    except OSError:   # no git
        commit = ""
    return {"kernel": platform.release(), "processor": processor(), "cpus": len(os.sched_getaffinity(0)),
            "congestion_control": first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
            "load": first_line("/proc/loadavg").split()[0], "commit": commit or "unknown",
            "date": time.strftime("%Y-%m-%d", time.gmtime())}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return "unknown"


def _ticks():
    """All ticks of all processors, and those that somebody used or a hypervisor took."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    used = user + nice + system + irq + softirq + steal
    return used + idle + iowait, used


def busy_share(seconds=0.2):
    """How much of the processors is in use while we do nothing."""
    all_before, used_before = _ticks()
    time.sleep(seconds)
    all_after, used_after = _ticks()
    return (used_after - used_before) / max(1, all_after - all_before)


def alike(one, other):
    """Whether both times tell of the same place."""
    near, far = sorted((one, other))
    return far <= near * APART


class Processors:
    """
    Where the host has put the processors of a virtual machine: on one core, beside each other, or where they share no
    cache. It may move them at any time, and a stream between two of them is then a third as fast, or three times.

    `probe`: microseconds that tell how far apart they are (uiwarp-bench-cpus); None where that cannot be told.
    """

    def __init__(self, probe):
        self._probe, self._began, self.seen = probe, None, []

    def _look(self):
        value = self._probe()
        if value is not None:
            self.seen.append(value)
        return value

    def begin(self):
        """From here on they should stay."""
        self._began = self._look()

    def stayed(self):
        now = self._look()
        return self._began is None or now is None or alike(self._began, now)

    def ever_moved(self):
        return bool(self.seen) and not alike(min(self.seen), max(self.seen))


def probe_with(program):
    """What Processors looks with."""
    def probe():
        run = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return float(run.stdout) if run.returncode == 0 else None
    return probe
