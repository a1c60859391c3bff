# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The table on the terminal, and the same as data."""
import statistics

from .verdict import against, best

WORDS = ("met", "missed", "noisy", "failed", "skipped")


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def heading(about):
    return (f"{about['processor']}, {about['cpus']} CPUs, Linux {about['kernel']}, {about['congestion_control']}, "
            f"load {about['load']}, commit {about['commit']}, {about['date']}")


def target_text(row):
    sign = "<=" if row.better == "smaller" else ">="
    return f"{sign} {row.target:g}x" if row.references else f"{sign} {row.target:g} {row.unit}"


def table(results, runs):
    """`results`: pairs of Series and Verdict."""
    width = max(len(series.row.name) for series, _ in results)
    print(f"{'':<{width}} {'uiwarp':>9} {'reference':>9} {'unit':<6} {'ratio':>7} {'target':<15} {'verdict':<8} beside")
    for series, verdict in results:
        row = series.row
        ratio = f"{verdict.ratio:.2f}x" if verdict.ratio is not None else "-"
        print(f"{row.name:<{width}} {number(verdict.ours):>9} {number(verdict.reference):>9} {row.unit:<6} {ratio:>7} "
              f"{target_text(row):<15} {verdict.word:<8} {verdict.beside}")
    print(f"Medians of {runs} runs that took turns; ratio: the median of the runs' ratios, uiwarp over reference.")


def remarks(results, processors):
    if processors.ever_moved():
        middle = statistics.median(processors.seen)
        print(f"The host moves the processors of this machine: to write 64 KiB that the other one has read took one of "
              f"them {min(processors.seen):.1f} to {max(processors.seen):.1f} us, mostly about {middle:.1f}.")
    for series, verdict in results:
        if verdict.why:
            print(f"{verdict.word}: {series.row.name}: {verdict.why}")
        for reference in series.references:
            if reference.problem:
                print(f"failed: {series.row.name}: {reference.source.label}: {reference.problem}")


def peers(results):
    """uiwarp beside other software; how many times better uiwarp is. Returns the words: ahead, behind, noisy."""
    rows, notes = [], []
    for series, verdict in results:
        for peer in series.peers:
            if peer.missing or peer.problem:
                word = "skipped" if peer.missing else "failed"
                notes.append(f"{word}: {series.row.name}: {peer.source.label}: {peer.missing or peer.problem}")
            elif verdict.ours:
                theirs, factor = against(series.row, verdict.ours, peer)
                word = "noisy" if verdict.word == "noisy" else "ahead" if factor > 1 else "behind"
                rows.append((series.row.name, peer.source.label, verdict.ours, theirs, series.row.unit, factor, word))
    if rows:
        width, wide = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
        print(f"\n{'peers':<{width}} {'':<{wide}} {'uiwarp':>9} {'peer':>9} {'unit':<6} {'better':>7}")
        for name, peer, mine, theirs, unit, factor, word in rows:
            print(f"{name:<{width}} {peer:<{wide}} {number(mine):>9} {number(theirs):>9} {unit:<6} "
                  f"{factor:>6.2f}x {word}")
    for note in dict.fromkeys(notes):
        print(note)
    return [row[-1] for row in rows]


def bounds(results):
    """What is left of the reference by what a row cannot do without: a table for each such thing."""
    tables = {}
    for series, verdict in results:
        bound = best(series.row, series.bounds)
        if verdict.reference and bound:
            tables.setdefault(series.row.bounded_by, []).append((series.row, verdict, statistics.median(bound.values)))
    for title, rows in tables.items():
        width = max(len(title), *(len(row.name) for row, _, _ in rows))
        print(f"\n{title:<{width}} {'uiwarp':>9} {'this':>9} {'unit':<6} {'of the reference':>16} {'uiwarp of it':>12}")
        for row, verdict, bound in rows:
            print(f"{row.name:<{width}} {number(verdict.ours):>9} {number(bound):>9} {row.unit:<6} "
                  f"{bound / verdict.reference:>15.2f}x {verdict.ours / bound:>11.2f}x")


def count(words, order):
    return ", ".join(f"{words.count(word)} {word}" for word in order if word in words)


def summary(results, beside_peers):
    words = [verdict.word for _, verdict in results]
    print(f"\n{count(words, WORDS)}")
    if beside_peers:
        print(f"peers: {count(beside_peers, ('ahead', 'behind', 'noisy'))}")
    if "noisy" in words:
        print("THE MACHINE WAS TOO NOISY to conclude on the rows marked noisy: run it again when nothing else runs.")


def data(about, runs, results, curves, processors):
    def taken(one):
        return {"label": one.source.label, "values": one.values, "missing": one.missing, "problem": one.problem}

    return {"machine": about, "runs": runs, "curves": curves, "processors_apart_us": processors.seen, "rows": [
        {"name": series.row.name, "unit": series.row.unit, "better": series.row.better, "target": series.row.target,
         "target_is_ratio": bool(series.row.references), "verdict": verdict.word, "why": verdict.why,
         "uiwarp_median": verdict.ours, "reference_median": verdict.reference, "beside": verdict.beside,
         "ratio": verdict.ratio, "reference_spread": verdict.spread, "busy": series.busy,
         "moved": series.moved, "uiwarp": taken(series.ours),
         "references": [taken(one) for one in series.references], "peers": [taken(one) for one in series.peers],
         "bounds": [taken(one) for one in series.bounds]}
        for series, verdict in results]}
