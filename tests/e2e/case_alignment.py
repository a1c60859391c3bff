# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""TCP segments on the wire begin with an FPDU (RFC 5044 5.1), while TCP is not behind with sending; FPDUs of several
segments come between two uiwarps that want them, and nowhere else."""
import alignment
import case_perftest
from case_capture import CRC_ON, Capture
from harness import Failed
from registry import case

# One message at a time. The sizes: within one FPDU, exactly several of them, some and a rest.
EXCHANGES = [
    ("ib_send_lat", 64), ("ib_send_lat", 1424), ("ib_send_lat", 4 * 1424), ("ib_send_lat", 12000),
    ("ib_write_lat", 64), ("ib_write_lat", 12000), ("ib_read_lat", 64), ("ib_read_lat", 12000),
]


SHORT = {**CRC_ON, "UIWARP_LONG_FPDUS": "off"}


@case("alignment", worlds=["ns-root"], seconds=180, serial=True)
def aligned(world):
    world.one_segment_at_a_time()
    for tool, size in EXCHANGES:
        check(f"{tool} -s {size}", captured(world, tool, size, SHORT, SHORT))


@case("long-fpdus", worlds=["ns-root"], seconds=120, serial=True)
def several_segments(world):
    world.one_segment_at_a_time()
    for tool in ("ib_write_lat", "ib_send_lat", "ib_read_lat"):
        for client, server, wanted in ((CRC_ON, CRC_ON, True), (SHORT, CRC_ON, False), (CRC_ON, SHORT, False)):
            streams = captured(world, tool, 65536, client, server)
            longest = max(stream.longest() for stream in streams)
            # 11 segments of 1448 octets are what fits into 16 KiB.
            expected = 11 * 1448 if wanted else 1448
            print(f"{tool}: FPDUs of at most {longest} octets")
            if longest != expected:
                raise Failed(f"{tool}: the longest FPDU has {longest} octets, not {expected}")


def captured(world, tool, size, settings, server_settings):
    port = world.port()
    capture = Capture(port, world.device.removeprefix("uiw_"), world.within("server"))
    try:
        case_perftest.exchange(world, tool, ["-s", size, "-n", "100"], 30, port=port, settings=settings,
                               server_settings=server_settings)
        capture.frames()
        return alignment.streams(capture.path)
    finally:
        capture.close()


def check(what, streams):
    segments = sum(len(stream.segments) for stream in streams)
    if segments < 200:
        raise Failed(f"{what}: only {segments} segments to look at")
    for stream in streams:
        if stream.astray():
            raise Failed(f"{what}: segments begin inside an FPDU, at {stream.astray()[:10]}")
    # A short message may find one before it that TCP has still to send: what the tools say to begin and to end.
    sharing = sum(len(stream.sharing()) for stream in streams)
    print(f"{what}: {segments} segments, {sharing} FPDUs in the segment of another")
