#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""End-to-end tests: stock RDMA tools over the uiwarp device.

    run.py --bin build/bin CASE.WORLD    runs one test; status 0 passed, 1 failed, 77 skipped
    run.py --bin build/bin --list        one line per test: name, time limit in seconds, 1 when it runs alone, places that it
                                         takes, 1 when utils/check --quick runs it
"""
import argparse
import os
import signal
import sys

# Where ctest has a place for compiled files; the source tree stays as it is.
sys.dont_write_bytecode = sys.pycache_prefix is None

import case_alignment  # noqa: F401  (each registers its cases)
import case_board      # noqa: F401
import case_capture    # noqa: F401
import case_check      # noqa: F401
import case_cm         # noqa: F401
import case_cm_datagrams  # noqa: F401
import case_command    # noqa: F401
import case_dapl       # noqa: F401
import case_datagrams  # noqa: F401
import case_devices    # noqa: F401
import case_examples   # noqa: F401
import case_exchange   # noqa: F401
import case_face       # noqa: F401
import case_face_cm    # noqa: F401
import case_failures   # noqa: F401
import case_faults     # noqa: F401
import case_trace      # noqa: F401
import case_trace_pcap # noqa: F401
import case_interfaces # noqa: F401
import case_leak       # noqa: F401
import case_loading    # noqa: F401
import case_libfabric  # noqa: F401
import case_log       # noqa: F401
import case_memory    # noqa: F401
import case_mpi       # noqa: F401
import case_neighbour  # noqa: F401
import case_netns_pair  # noqa: F401
import case_netlink    # noqa: F401
import case_perftest   # noqa: F401
import case_pyverbs    # noqa: F401
import case_qemu       # noqa: F401
import case_rping      # noqa: F401
import case_rsockets   # noqa: F401
import case_sanitized # noqa: F401
import case_stat       # noqa: F401
import case_storage    # noqa: F401
import case_strangers  # noqa: F401
import case_system     # noqa: F401
import case_unreliable # noqa: F401
import case_valgrind  # noqa: F401
from harness import Failed, Skipped
from registry import CASES
from worlds import World

SKIPPED = 77
SLOWDOWN = 4.0   # what a sanitizer build is allowed to take longer


def out_of_time(_signal, _frame):
    raise Failed("the whole test ran out of time")


def tried(case, own, reduced):
    """The worlds in which ctest runs it; the others are for whoever names them. Where root could do what a user can it is done by
    the user, and by root for --quick."""
    if reduced:
        return [own] if case.reduced and own in case.worlds else []
    return [world for world in case.worlds
            if world.replace("root", "user") not in case.worlds or world.endswith("user") or (case.quick and world == own)]


def show(reduced):
    own = "lo4-root" if os.geteuid() == 0 else "lo4-user"
    for case in CASES.values():
        for world in tried(case, own, reduced):
            limit = int(case.seconds * (SLOWDOWN if reduced else 1)) + 30
            quick = case.quick and world == own
            print(f"{case.name}.{world} {limit} {int(case.serial)} {case.places} {int(quick)}")


def run(name, binaries, reduced):
    case_name, _, world_name = name.rpartition(".")
    case = CASES.get(case_name)
    if case is None or world_name not in case.worlds:
        print(f"no such test: {name}; --list names them", file=sys.stderr)
        return 2
    slow = SLOWDOWN if reduced else 1.0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.signal(signal.SIGTERM, out_of_time)
    signal.alarm(int(case.seconds * slow) + 10)   # before ctest's limit, so that we clean up ourselves
    world = None
    try:
        # Without root, what root would do as "user" is done as who we are; the root worlds are skipped.
        world = World(world_name, binaries, reduced, slow)
        case.function(world)
    except Skipped as reason:
        print(f"SKIPPED {name}: {reason}")
        return SKIPPED
    except Failed as failure:
        print(f"FAILED {name}: {failure}")
        return 1
    finally:
        signal.alarm(0)
        if world:
            world.close()
    print(f"passed {name}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="directory of the uiwarp command")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--reduced", action="store_true", help="the shorter set, with longer time limits")
    parser.add_argument("test", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        show(arguments.reduced)
        return 0
    if not arguments.test:
        parser.error("which test?")
    return run(arguments.test, os.path.abspath(arguments.bin), arguments.reduced)


if __name__ == "__main__":
    sys.exit(main())
