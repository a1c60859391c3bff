# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
Whether a run has two speeds: many short runs of small messages, the slowest and the fastest beside the median. Each
run is divided by one of raw TCP right after it: a host that gives a virtual machine other processors for a minute makes
all that runs in it slower by a factor of two or three, which is no speed of ours.
"""
import statistics

from .machine import BUSY
from .report import number
from .rows import KIB, Row, size_name
from .sources import AVERAGE, Perftest, Raw
from .verdict import Verdict

SIZE = 4 * KIB
VERBS = ("write", "send", "read")
QUEUE_PAIRS = (1, 4, 16)
RUNS = 20
MESSAGES = 256000    # of a run, over all queue pairs: 1 GB
SIGNALLED = 100      # perftest wants a completion for each hundredth message
LEAST = 0.5          # of the median ratio to raw TCP: a run below it has another speed, and so has one above 1 / LEAST


def title(verb, queue_pairs):
    return f"{verb} bandwidth {size_name(SIZE)}, {queue_pairs} QP" + "s" * (queue_pairs > 1)


def perftest(verb, queue_pairs):
    """
    perftest counts iterations by queue pair. Where these are no multiple of its messages for a completion, it counts
    more completed messages than there are, and with several queue pairs ends its polling early and hangs. Without -N it
    compares each message with each later one, for minutes.
    """
    return Perftest(f"ib_{verb}_bw", SIZE, MESSAGES // queue_pairs, AVERAGE, ("-N", "-q", str(queue_pairs)),
                    multiple=SIGNALLED)


def rows():
    raw = Raw("stream", SIZE, MESSAGES, ("-w", "spin"))
    return [Row(title(verb, count), perftest(verb, count), (raw,), "larger", LEAST, "MiB/s", quick=count == max(QUEUE_PAIRS))
            for verb in VERBS for count in QUEUE_PAIRS]


def judge(series):
    """
    The verdict's ratio is slowest over median. Where most runs are slow the median is, too: so a run that is as far above
    it shows another speed as well.
    """
    (raw,) = series.references
    for taken in (series.ours, raw):
        if taken.missing:
            return Verdict("skipped", taken.missing)
        if taken.problem:
            return Verdict("failed", taken.problem)
    values = [mine / theirs for mine, theirs in zip(series.ours.values, raw.values)]
    middle = statistics.median(values)
    verdict = Verdict("met", ours=statistics.median(series.ours.values), reference=statistics.median(raw.values),
                      ratio=min(values) / middle)
    disturbed = [share > BUSY or moved for share, moved in zip(series.busy, series.moved)]
    below = [run for run, value in enumerate(values) if value < LEAST * middle]
    above = [run for run, value in enumerate(values) if value * LEAST > middle]
    apart = [disturbed[run] for run in below + above]
    if apart:
        verdict.word = "missed"
        verdict.why = f"of {len(values)} runs {len(below)} below half of the median, {len(above)} above twice of it"
    if 2 * sum(disturbed) > len(disturbed) or apart and all(apart):
        verdict.word = "noisy"
        verdict.why = (f"others used the machine, or the host moved the processors, in {sum(disturbed)} of "
                       f"{len(disturbed)} runs" + (f"; {verdict.why}" if apart else ""))
    return verdict


def show(results):
    """`results`: pairs of Series and Verdict."""
    width = max(len(series.row.name) for series, _ in results)
    print(f"{'':<{width}} {'median':>9} {'slowest':>9} {'fastest':>9} {'unit':<6} {'raw TCP':>9} {'slowest/median':>14} "
          f"{'target':<8} verdict")
    for series, verdict in results:
        values = series.ours.values if verdict.ratio is not None else []
        low, high = (number(end(values, default=None)) for end in (min, max))
        ratio = f"{verdict.ratio:.2f}" if verdict.ratio is not None else "-"
        print(f"{series.row.name:<{width}} {number(verdict.ours):>9} {low:>9} {high:>9} {series.row.unit:<6} "
              f"{number(verdict.reference):>9} {ratio:>14} {f'>= {LEAST:g}':<8} {verdict.word}")


def data(results):
    return [{"name": series.row.name, "unit": series.row.unit, "verdict": verdict.word, "why": verdict.why,
             "median": verdict.ours, "slowest_over_median": verdict.ratio, "values": series.ours.values,
             "raw_tcp": series.references[0].values, "busy": series.busy, "moved": series.moved} for series, verdict in results]
