# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""From the values of a row to a ratio and a word about it."""
import statistics
from dataclasses import dataclass

from .machine import BUSY

SPREAD = 0.25   # between the quartiles of the reference, over its median: beyond it the runs have to agree


@dataclass
class Verdict:
    """`word`: met, missed, noisy, failed or skipped."""
    word: str
    why: str = ""
    ours: float = None
    reference: float = None
    beside: str = ""
    ratio: float = None
    spread: float = 0.0


def better(row, one, other):
    return one < other if row.better == "smaller" else one > other


def best(row, references):
    """The alternative with the best median; None when there is none with values."""
    usable = [taken for taken in references if taken.values]
    choose = min if row.better == "smaller" else max
    return choose(usable, key=lambda taken: statistics.median(taken.values), default=None)


def spread(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / statistics.median(values) if statistics.median(values) else 0.0


def judge(series):
    row, ours = series.row, series.ours
    for taken in (ours, *series.references):
        if taken.missing:
            return Verdict("skipped", taken.missing)
    if ours.problem:
        return Verdict("failed", ours.problem)
    reference = best(row, series.references)
    disturbed = sum(share > BUSY for share in series.busy)
    busy = 2 * disturbed > len(series.busy)
    if row.references and reference is None:
        # Two spinning ends of raw TCP do not come to an end either where others take the processors.
        return Verdict("noisy" if busy else "failed", series.references[0].problem, ours=statistics.median(ours.values))
    if reference:
        compared = [mine / theirs for mine, theirs in zip(ours.values, reference.values)]
        verdict = Verdict("", ours=statistics.median(ours.values), reference=statistics.median(reference.values),
                          beside=reference.source.label, ratio=statistics.median(compared),
                          spread=spread(reference.values))
        middle = verdict.ratio
    else:
        compared = ours.values
        middle = statistics.median(compared)
        verdict = Verdict("", ours=middle, beside="a fixed value")
    fine = [value == row.target or better(row, value, row.target) for value in compared]
    verdict.word = "met" if middle == row.target or better(row, middle, row.target) else "missed"
    if reference and busy:
        verdict.word, verdict.why = "noisy", f"others used the machine in {disturbed} of {len(series.busy)} runs"
    elif reference and 2 * sum(series.moved) > len(series.moved):
        verdict.word = "noisy"
        verdict.why = f"the host moved the processors in {sum(series.moved)} of {len(series.moved)} runs"
    elif verdict.spread > SPREAD and any(fine) and not all(fine):
        verdict.word, verdict.why = "noisy", f"the reference varies by {verdict.spread:.0%}, and the runs disagree"
    return verdict


def against(row, mine, peer):
    """uiwarp beside a peer: how many times better, by the medians."""
    theirs = statistics.median(peer.values)
    return theirs, theirs / mine if row.better == "smaller" else mine / theirs
