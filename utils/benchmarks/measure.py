# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Taking every source of every row in turn, run by run, so that a slow phase of the machine meets all alike."""
import sys
from dataclasses import dataclass, field

from . import machine
from .processes import Missing, Problem

ATTEMPTS = 3   # of one measurement, while the host moves the processors about


@dataclass
class Taken:
    """What one source gave: a value for each run, or why there is none."""
    source: object
    values: list = field(default_factory=list)
    missing: str = ""
    problem: str = ""

    def take(self, bench, stayed):
        """False when the processors were moved meanwhile, again and again."""
        if self.missing or self.problem:
            return True   # it would fail again, perhaps after a minute
        try:
            for _ in range(ATTEMPTS):
                value, unmoved = self.source.take(bench), stayed()
                if unmoved:
                    break
            self.values.append(value)
            return unmoved
        except Missing as missing:
            self.missing = str(missing)
        except Problem as problem:
            self.problem = str(problem)
        except (ValueError, IndexError, KeyError) as error:
            self.problem = f"{self.source.label}: output not understood: {error}"
        return True


@dataclass
class Series:
    """
    A row and what its sources gave. Run by run: `busy`, how far others used the machine, and `moved`, whether the
    processors were not where they had been for other sources of this run.
    """
    row: object
    ours: Taken
    references: list
    peers: list
    bounds: list = field(default_factory=list)
    busy: list = field(default_factory=list)
    moved: list = field(default_factory=list)

    @classmethod
    def of(cls, row):
        return cls(row, Taken(row.ours), *([Taken(s) for s in sources]
                                           for sources in (row.references, row.peers, row.bounds)))

    def take(self, bench, processors, show):
        before = machine.busy_share()
        processors.begin()
        moved = False
        for taken in (self.ours, *self.references, *self.bounds, *self.peers):
            show(taken.source.label)
            moved |= not taken.take(bench, processors.stayed)
        self.busy.append(max(before, machine.busy_share()))
        self.moved.append(moved)


class Progress:
    """One line that is rewritten on a terminal; elsewhere one line a step."""

    def __init__(self, steps, stream=sys.stderr):
        self._steps, self._step, self._stream, self._label = steps, 0, stream, ""
        self._terminal = stream.isatty()

    def next(self, label):
        self._step, self._label = self._step + 1, label
        if not self._terminal:
            print(f"[{self._step}/{self._steps}] {label}", file=self._stream, flush=True)

    def show(self, detail):
        if self._terminal:
            line = f"[{self._step}/{self._steps}] {self._label}: {detail}"
            print(f"\r\033[K{line[:100]}", end="", file=self._stream, flush=True)

    def end(self):
        if self._terminal:
            print("\r\033[K", end="", file=self._stream, flush=True)


def measure(bench, rows, runs, processors):
    series = [Series.of(row) for row in rows]
    progress = Progress(runs * len(series))
    for run in range(runs):
        for one in series:
            progress.next(f"run {run + 1} of {runs}: {one.row.name}")
            one.take(bench, processors, progress.show)
    progress.end()
    return series


def take_in_turns(bench, groups, runs, processors):
    """Run by run every source of every group: title -> name -> Taken. What moved meanwhile is taken again, as ever."""
    progress = Progress(runs * len(groups))
    for run in range(runs):
        for title, ones in groups.items():
            progress.next(f"run {run + 1} of {runs}: {title}")
            processors.begin()
            for one in ones.values():
                progress.show(one.source.label)
                one.take(bench, processors.stayed)
    progress.end()
