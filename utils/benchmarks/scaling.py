# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What several processors bring: two processes with a connection for each of 1, 2, 4, 8 threads, all at work at once."""
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field

from .measure import Taken, take_in_turns
from .processes import Program
from .report import number
from .rows import KIB, bandwidth_iterations
from .sources import Raw, only_number, words

CPUS = 4   # with fewer the two ends of one connection use all of them
SIZE = 64 * KIB
VERBS = ("send", "write", "read")
THREADS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Threads:
    """bin/uiwarp-bench-threads: MiB per second of all connections of two processes."""
    verb: str
    threads: int
    settings: dict = field(default_factory=dict)

    @property
    def label(self):
        return words(self.settings, "uiwarp-bench-threads", self.threads, self.verb, SIZE)

    def take(self, bench):
        return only_number(bench.under_uiwarp(bench.binary("uiwarp-bench-threads"), self.threads, self.verb, SIZE,
                                              messages(bench, self.threads)), self.settings)


@dataclass(frozen=True)
class AtOnce:
    """So many raw TCP streams at once, each between two processes; what they move together."""
    raw: Raw
    streams: int

    @property
    def label(self):
        return f"{self.streams} x {self.raw.label}"

    def take(self, bench):
        count = messages(bench, self.streams)
        with ExitStack() as running:
            programs = [running.enter_context(Program(self.raw.command(bench, count))) for _ in range(self.streams)]
            return sum(float(program.wait()) for program in programs)


def messages(bench, connections):
    """On each connection: fewer than one alone would have, more than its share, as all go at once."""
    return bench.iterations(2 * bandwidth_iterations(SIZE) // min(connections, 4))


def sources(verb, threads):
    """Column -> source."""
    shape = "read-stream" if verb == "read" else "stream"
    return {"uiwarp": Threads(verb, threads), "one engine": Threads(verb, threads, {"UIWARP_ENGINES": "1"}),
            "raw TCP": AtOnce(Raw(shape, SIZE, 0), threads)}


def title(verb, threads):
    return f"{verb} bandwidth, {threads} thread" + "s" * (threads > 1)


def measure_scaling(bench, runs, cpus, processors):
    """Verb and threads -> column -> Taken; in turns."""
    counts = [threads for threads in THREADS if 2 * threads <= max(cpus, 2)]   # each has two ends
    taken = {(verb, threads): {name: Taken(source) for name, source in sources(verb, threads).items()}
             for verb in VERBS for threads in counts}
    take_in_turns(bench, {title(*case): ones for case, ones in taken.items()}, runs, processors)
    return taken


def show(taken):
    """The medians, and how many times what one thread moves."""
    print(f"\n{'64 KiB, one process each end, MiB/s':<36} {'uiwarp':>9} {'of one':>7} {'one engine':>10} {'raw TCP':>9} "
          f"{'of raw TCP':>10}")

    def middle(one):
        return statistics.median(one.values) if one.values else None

    for (verb, threads), ones in taken.items():
        ours, single, raw = (middle(ones[name]) for name in ("uiwarp", "one engine", "raw TCP"))
        first = middle(taken[verb, 1]["uiwarp"])
        of_one = f"{ours / first:.1f}x" if ours and first else "-"
        of_raw = f"{ours / raw:.2f}x" if ours and raw else "-"
        print(f"{title(verb, threads):<36} {number(ours):>9} {of_one:>7} {number(single):>10} "
              f"{number(raw):>9} {of_raw:>10}")
        for one in ones.values():
            if one.problem:
                print(f"failed: {one.source.label}: {one.problem}")


def data(taken):
    return [{"verb": verb, "threads": threads, "mib_per_second": {name: one.values for name, one in ones.items()}}
            for (verb, threads), ones in taken.items()]
