# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Latency and bandwidth over message size, for the plot."""
import statistics

from .measure import Progress, Taken
from .peers import Ucx
from .rows import bandwidth, latency, raw_latency, raw_streams

LATENCY_SIZES = [64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
BANDWIDTH_SIZES = [64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]


def _latency(size):
    return {"raw TCP": raw_latency("send", size), "ib_send_lat": latency("send", size),
            "ib_write_lat": latency("write", size), "ib_read_lat (round trip)": latency("read", size),
            "UCX tag_lat": Ucx("tag_lat", size, 5000, "latency")}


def _bandwidth(size):
    return {"raw TCP": raw_streams("send", size)[0], "ib_send_bw": bandwidth("send", size),
            "ib_write_bw": bandwidth("write", size), "ib_read_bw": bandwidth("read", size),
            "UCX tag_bw": Ucx("tag_bw", size, 5000 if size < 256 << 10 else 500, "bandwidth")}


PANELS = {"latency": (_latency, LATENCY_SIZES), "bandwidth": (_bandwidth, BANDWIDTH_SIZES)}


def measure_curves(bench, runs, processors):
    """Panel -> name -> list of [size, median]; a source that has no value at a size has no point there."""
    curves = {}
    progress = Progress(runs * sum(len(sizes) for _, sizes in PANELS.values()))
    for panel, (sources, sizes) in PANELS.items():
        taken = {size: {name: Taken(source) for name, source in sources(size).items()} for size in sizes}
        for run in range(runs):
            for size, ones in taken.items():
                progress.next(f"plot, run {run + 1} of {runs}: {panel} {size} B")
                processors.begin()
                for one in ones.values():
                    progress.show(one.source.label)
                    one.take(bench, processors.stayed)
        names = list(taken[sizes[0]])
        curves[panel] = {name: [[size, statistics.median(taken[size][name].values)] for size in sizes
                                if taken[size][name].values] for name in names}
    progress.end()
    return {panel: {name: points for name, points in lines.items() if points} for panel, lines in curves.items()}
