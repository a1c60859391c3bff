# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What several processors bring: two processes with a connection for each of 1, 2, 4, 8 threads, all at work at once."""
import statistics
from contextlib import ExitStack
from dataclasses import dataclass

from .measure import Progress, Taken
from .processes import Program
from .report import number
from .rows import KIB, bandwidth_iterations
from .sources import Raw

CPUS = 4   # with fewer the two ends of one connection use all of them
SIZE = 64 * KIB
VERBS = ("send", "write", "read")
THREADS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Threads:
    """bin/uiwarp-bench-threads: MiB per second of all connections of two processes."""
    verb: str
    threads: int
    settings: tuple = ()

    @property
    def label(self):
        settings = [f"{name}={value}" for name, value in self.settings]
        return " ".join((*settings, "uiwarp-bench-threads", str(self.threads), self.verb, str(SIZE)))

    def take(self, bench):
        command = bench.under_uiwarp(bench.binary("uiwarp-bench-threads"), self.threads, self.verb, SIZE,
                                     messages(bench, self.threads))
        with Program(command, dict(self.settings)) as program:
            return float(program.wait())


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
    return {"uiwarp": Threads(verb, threads), "one engine": Threads(verb, threads, (("UIWARP_ENGINES", "1"),)),
            "raw TCP": AtOnce(Raw(shape, SIZE, 0), threads)}


def measure_scaling(bench, runs, cpus):
    """Verb and threads -> column -> Taken; in turns."""
    counts = [threads for threads in THREADS if 2 * threads <= max(cpus, 2)]   # each has two ends
    taken = {(verb, threads): {name: Taken(source) for name, source in sources(verb, threads).items()}
             for verb in VERBS for threads in counts}
    progress = Progress(runs * len(taken))
    for run in range(runs):
        for (verb, threads), ones in taken.items():
            progress.next(f"run {run + 1} of {runs}: {verb} bandwidth, {threads} threads")
            for one in ones.values():
                progress.show(one.source.label)
                one.take(bench, lambda: True)
    progress.end()
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
        print(f"{f'{verb} bandwidth, {threads} thread' + 's' * (threads > 1):<36} {number(ours):>9} {of_one:>7} {number(single):>10} "
              f"{number(raw):>9} {of_raw:>10}")
        for one in ones.values():
            if one.problem:
                print(f"failed: {one.source.label}: {one.problem}")


def data(taken):
    return [{"verb": verb, "threads": threads, "mib_per_second": {name: one.values for name, one in ones.items()}}
            for (verb, threads), ones in taken.items()]
