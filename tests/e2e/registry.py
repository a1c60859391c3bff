# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Which tests there are. A case is a function of a World; it runs in each of its worlds."""
from worlds import NAMES

CASES = {}
LOOPBACK = [name for name in NAMES if name.startswith("lo")]
LO4 = ["lo4-root", "lo4-user"]
# For what takes long, and can fail by who runs it or where, but hardly by both at once.
DIAGONAL = ["lo4-root", "ns-user"]


class Case:
    def __init__(self, name, function, worlds, seconds, serial, reduced, quick, places):
        self.name = name
        self.function = function
        self.worlds = worlds
        self.seconds = seconds
        self.serial = serial      # loads the machine: nothing beside it
        self.reduced = reduced    # part of the set that sanitizer builds run
        self.quick = quick        # part of what utils/check --quick runs, in the world of whoever runs it
        self.places = places      # of those that utils/check has: two for each processor


def case(name, worlds=None, seconds=60, serial=False, reduced=False, quick=None, places=1):
    """Registers a case; `seconds` bounds one run of it in a plain build. Of the reduced set those are quick that need not
    run alone, unless `quick` says otherwise."""
    def register(function):
        assert name not in CASES, name
        CASES[name] = Case(name, function, worlds if worlds is not None else NAMES, seconds, serial, reduced,
                           reduced and not serial if quick is None else quick, places)
        return function
    return register
