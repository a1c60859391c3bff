# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Latency and bandwidth over message size, for the plot."""
import statistics

from .measure import Taken, take_in_turns
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
    taken = {panel: {size: {name: Taken(source) for name, source in sources(size).items()} for size in sizes}
             for panel, (sources, sizes) in PANELS.items()}
    take_in_turns(bench, {f"plot, {panel} {size} B": ones for panel, by_size in taken.items()
                          for size, ones in by_size.items()}, runs, processors)
    curves = {panel: {name: [[size, statistics.median(ones[name].values)] for size, ones in by_size.items()
                             if ones[name].values] for name in next(iter(by_size.values()))}
              for panel, by_size in taken.items()}
    return {panel: {name: points for name, points in lines.items() if points} for panel, lines in curves.items()}
