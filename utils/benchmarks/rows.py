# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What is measured, beside what, and how far from it uiwarp may be."""
from dataclasses import dataclass

from .peers import Iperf3, Libfabric, Sockperf, Ucx
from .sources import AVERAGE, RATE, TYPICAL, Cmtime, Idle, Perftest, Raw

KIB, MIB = 1 << 10, 1 << 20
FPDU = 86   # octets on the wire of a message of 64: what raw TCP has to move to be of the same shape
IDLE = 4000


@dataclass(frozen=True)
class Row:
    """`references`: alternatives, of which the best counts; none: `target` is a value, not a ratio. `bounds`:
    alternatives, too: what is left of the reference to whoever does as `bounded_by` says."""
    name: str
    ours: object
    references: tuple
    better: str          # "smaller" or "larger"
    target: float
    unit: str
    peers: tuple = ()
    quick: bool = False
    bounds: tuple = ()
    bounded_by: str = ""


FPDUS = "FPDUs over raw TCP, and nothing else"
SAME = "raw TCP, as many connections and directions"
MEMORY = "raw TCP, a target that looks at memory only"


def size_name(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def latency_iterations(size):
    return 20000 if size <= 4 * KIB else 5000


def latency(verb, size, options=(), settings=None):
    return Perftest(f"ib_{verb}_lat", size, latency_iterations(size), TYPICAL, options, settings or {})


def raw_latency(verb, size, options=()):
    """perftest halves the round trip of Send and Write, and prints that of Read and atomics whole."""
    shape = "read-latency" if verb in ("read", "atomic") else "latency"
    return Raw(shape, size, latency_iterations(size), options)


def bandwidth_iterations(size):
    return max(500, min(100000, 2 * 1024 * MIB // size))


def bandwidth(verb, size, options=(), settings=None, veth=False):
    return Perftest(f"ib_{verb}_bw", size, bandwidth_iterations(size), AVERAGE, options, settings or {}, veth)


def raw_streams(verb, size):
    count = bandwidth_iterations(size)
    if verb == "read":
        return (Raw("read-stream", size, count),)
    return tuple(Raw("stream", size, count, options) for options in ((), ("-b", "4"), ("-w", "spin")))


def fpdu_streams(size, payload, crc=True, veth=False):
    """`payload`: octets of it in each FPDU, as uiwarp makes them there."""
    options = ("-b", "4", "-f", str(payload), *(("-c",) if crc else ()))
    return tuple(Raw("fpdus", size, bandwidth_iterations(size), (*options, *wait), veth)
                 for wait in ((), ("-w", "spin")))


def several_streams(size, shape, *options):
    return tuple(Raw(shape, size, bandwidth_iterations(size), ("-b", "4", *options, *wait))
                 for wait in ((), ("-w", "spin")))


def latency_row(verb, size, target, peers=(), quick=False):
    # Another thread has to receive what a Write brings.
    bounds = (raw_latency(verb, size, ("-w", "memory")),) if verb == "write" else ()
    return Row(f"{verb} latency {size_name(size)}", latency(verb, size), (raw_latency(verb, size),), "smaller", target,
               "us", peers, quick, bounds, MEMORY)


def event_row(verb, peers=()):
    return Row(f"{verb} latency 64 B, events", latency(verb, 64, ("-e",)), (raw_latency(verb, 64, ("-w", "block")),),
               "smaller", 1.5, "us", peers, quick=verb == "send")


def ucx_latency(test, size):
    # UCX's target answers one-sided requests about once in a millisecond: few are enough.
    few = 500 if test in ("ucp_get", "ucp_fadd") else latency_iterations(size)
    return Ucx(test, size, few, "latency")


def two_sided_peers(size):
    # sockperf's messages end below 64 KiB.
    spinning = (Sockperf(size),) if size < 64 * KIB else ()
    return *spinning, ucx_latency("tag_lat", size), Libfabric(size, latency_iterations(size))


def latency_rows():
    yield latency_row("send", 64, 1.15, two_sided_peers(64), quick=True)
    yield latency_row("write", 64, 1.5, (ucx_latency("ucp_put_lat", 64),), quick=True)
    yield latency_row("read", 64, 1.4, (ucx_latency("ucp_get", 64),), quick=True)
    yield latency_row("atomic", 8, 1.4, (ucx_latency("ucp_fadd", 8),), quick=True)
    for size in (4 * KIB, 64 * KIB):
        yield latency_row("send", size, 1.3, two_sided_peers(size))
        yield latency_row("write", size, 1.3, (ucx_latency("ucp_put_lat", size),))
        yield latency_row("read", size, 1.3)
    yield event_row("send", (Sockperf(64, spin=False),))
    yield event_row("read")


def bandwidth_row(verb, size, target, name="", settings=None, peers=(), quick=False):
    return Row(f"{verb} bandwidth {size_name(size)}{name}", bandwidth(verb, size, settings=settings),
               raw_streams(verb, size), "larger", target, "MiB/s", peers, quick,
               fpdu_streams(size, 16384) if settings else fpdu_streams(size, 64754, crc=False), FPDUS)


def stream_peers(verb, size):
    tests = {"send": "tag_bw", "write": "ucp_put_bw"}
    if verb not in tests:
        return ()
    return Iperf3(size), Ucx(tests[verb], size, bandwidth_iterations(size) // 4, "bandwidth")


def bandwidth_rows():
    for size in (64 * KIB, MIB):
        for verb in ("send", "write", "read"):
            yield bandwidth_row(verb, size, 0.95, peers=stream_peers(verb, size), quick=size == MIB)
        for verb in ("send", "write", "read"):
            yield bandwidth_row(verb, size, 0.85, ", CRC", {"UIWARP_CRC": "on"})
    size = 64 * KIB
    for verb in ("send", "write", "read"):
        one = (bandwidth(verb, size),)
        for options, name, shape in ((("-b",), "both ways", ("both-ways",)),
                                     (("-q", "16"), "16 QPs", ("streams", "-q", "16"))):
            yield Row(f"{verb} bandwidth 64 KiB, {name}", bandwidth(verb, size, options), one, "larger", 1.0, "MiB/s",
                      bounds=several_streams(size, *shape), bounded_by=SAME)
    for verb in ("send", "write"):
        yield Row(f"{verb} bandwidth 1 MiB, veth", bandwidth(verb, MIB, veth=True),
                  (Raw("stream", MIB, bandwidth_iterations(MIB), veth=True),), "larger", 0.85, "MiB/s",
                  bounds=fpdu_streams(MIB, 11 * 1448 - 24, veth=True), bounded_by=FPDUS)


def beside_plain(name, settings):
    """What uiwarp does with these settings, beside what it does without."""
    size, count = 64 * KIB, 500000
    for verb in ("send", "write"):
        yield Row(f"{verb} latency 64 B, {name}", latency(verb, 64, settings=settings), (latency(verb, 64),),
                  "smaller", 1.1, "us")
        yield Row(f"{verb} bandwidth 64 KiB, {name}", bandwidth(verb, size, settings=settings),
                  (bandwidth(verb, size),), "larger", 0.9, "MiB/s")
        yield Row(f"{verb} rate 64 B, {name}", Perftest(f"ib_{verb}_bw", 64, count, RATE, settings=settings),
                  (Perftest(f"ib_{verb}_bw", 64, count, RATE),), "larger", 0.8, "M/s")


def face_rows():
    """Completions that mean arrival; the RoCE face, which has them; and its datagrams."""
    roce = {"UIWARP_FACE": "roce"}
    yield from beside_plain("acknowledged", {"UIWARP_COMPLETIONS": "acknowledged"})
    yield from beside_plain("RoCE", roce)
    yield Row("send latency 64 B, UD", latency("send", 64, ("-c", "UD"), roce),
              (Raw("datagrams", 64, latency_iterations(64)),), "smaller", 1.3, "us")


def rate_rows():
    count = 500000
    for verb, test in (("send", "tag_bw"), ("write", "ucp_put_bw")):
        yield Row(f"{verb} rate 64 B", Perftest(f"ib_{verb}_bw", 64, count, RATE), (Raw("rate", FPDU, count),),
                  "larger", 3.0, "M/s", (Ucx(test, 64, count, "rate"),), quick=verb == "write")
    for verb in ("send", "write"):
        yield Row(f"{verb} rate 64 B, post list of 64",
                  Perftest(f"ib_{verb}_bw", 64, 4 * count, RATE, ("--post_list=64",)),
                  (Raw("rate", FPDU, 8 * count, ("-b", "64")),), "larger", 0.5, "M/s", quick=verb == "write")


def connection_rows():
    yield Row(f"memory per idle connection of {IDLE}", Idle(IDLE, "memory"), (), "smaller", 8 * KIB, "octets",
              quick=True)
    yield Row(f"processor use of {IDLE} idle connections", Idle(IDLE, "cpu"), (), "smaller", 0.5, "%")
    yield Row(f"send latency 64 B beside {IDLE} idle", Idle(IDLE, "latency"), (Idle(0, "latency"),), "smaller",
              1.2, "us")
    yield Row("connections per second", Cmtime(1000), (Raw("connect", 32, 1000),), "larger", 0.5, "1/s",
              quick=True)


def all_rows():
    return [*latency_rows(), *bandwidth_rows(), *rate_rows(), *face_rows(), *connection_rows()]
