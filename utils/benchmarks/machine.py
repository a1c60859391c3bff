# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the machine is, and whether somebody else uses it."""
import os
import platform
import subprocess
import time

BUSY = 0.15   # share of all processors; above it a measurement says little: both ends of a ping-pong spin


def describe(root):
    def first_line(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.readline().strip()
        except OSError:
            return "unknown"

    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
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
