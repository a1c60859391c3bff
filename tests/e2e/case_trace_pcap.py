# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`uiwarp trace --pcap`: tshark finds in it what the programs did, and what a real capture has."""
import json
import os
import shutil

import case_capture
import case_perftest
import pcap
from case_rping import connect, serve
from case_trace import Folder
from harness import Skipped, Tool, expect
from registry import case

TRACED = {"UIWARP_CRC": "on"}
REQUEST_FRAME, REPLY_FRAME = b"MPA ID Req Frame", b"MPA ID Rep Frame"
# What stands for a message, by RDMAP's opcode: RFC 5040 fig. 4, RFC 7306 fig. 2.
WRITE, READ, RESPONSE, SEND, SEND_SE, IMMEDIATE, IMMEDIATE_SE, ATOMIC, ATOMIC_RESPONSE = 0, 1, 2, 3, 5, 8, 9, 10, 11


class Capture(Folder):
    """A folder for traces with FPDUs, and the capture that is made of them."""

    def __init__(self, world):
        for program in ("tshark",):
            if not shutil.which(program):
                raise Skipped(f"needs {program}")
        super().__init__(world)

    def tracing(self, name):
        return {**TRACED, "UIWARP_TRACE": self.file(name) + ",fpdus"}

    def make(self, *traces):
        path = self.file(f"{len(traces)}.pcapng")
        self.show(*traces, "--pcap", path)
        return path

    def requests(self, *traces):
        """How many of each opcode were sent, by the trace."""
        counted = {}
        for request in json.loads(self.show(*traces, "--json").output)["requests"]:
            if request["opcode"] != "RECV" and request["status"] in ("SUCCESS", "unsignaled"):
                counted[request["opcode"]] = counted.get(request["opcode"], 0) + 1
        return counted


def tshark(*arguments):
    # Payload of Sends would be offered to these two, which take anything for theirs.
    tool = Tool(["tshark", "-n", "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", *arguments],
                dict(os.environ))
    try:
        expect(tool.wait(120) == 0, "tshark failed", tool)
        return tool.output
    finally:
        tool.destroy()
        tool.forget()


def rows(path, condition, *fields):
    """The fields of packets that fulfil a condition."""
    columns = [argument for field in fields for argument in ("-e", field)]
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    lines = tshark("-r", path, *options, "-Y", condition, "-T", "fields", *columns).splitlines()
    return [line.split("\t") for line in lines if line.count("\t") == len(fields) - 1]


def check(path):
    """Every segment that has octets is an MPA frame or one FPDU with a good CRC; returns how many messages of each
    opcode there are. Empty Writes and Reads are uiwarp's own."""
    text = tshark("-r", path, "-O", "iwarp_mpa,iwarp_ddp_rdmap")
    fields = rows(path, "tcp.len > 0", "iwarp_rdma.opcode", "iwarp_ddp.last_flag", "tcp.len", "iwarp_rdma.rdmardsz")
    fpdus = [row for row in fields if row[0]]
    for wrong in ("Malformed Packet", "Bad CRC32"):
        expect(wrong not in text, f"tshark: {wrong}\n{text[:3000]}")
    wrong = rows(path, "tcp.analysis.lost_segment or tcp.analysis.out_of_order or tcp.analysis.retransmission or "
                 "tcp.checksum.status == Bad or ip.checksum.status == Bad", "frame.number", "tcp.seq")
    expect(not wrong, f"tshark: not a stream of TCP: {wrong}")
    frames = text.count("Request frame header") + text.count("Reply frame header")
    expect(fpdus and text.count("Good CRC32") == len(fpdus) and len(fields) - len(fpdus) == frames,
           f"{len(fields)} segments, {frames} MPA frames, {len(fpdus)} FPDUs, {text.count('Good CRC32')} good CRCs")
    counted = {}
    for opcode, last, size, read in fpdus:
        opcode = int(opcode, 0)
        is_empty = (opcode in (WRITE, RESPONSE) and int(size) <= 20) or (opcode == READ and int(read) == 0)
        if last in ("1", "True") and not is_empty:
            counted[opcode] = counted.get(opcode, 0) + 1
    return counted


def known(frame):
    """Of a frame what a trace has of it."""
    if frame[:16] in (REQUEST_FRAME, REPLY_FRAME):
        return len(frame), frame[:24]
    tagged, control = frame[2] & 0x80, {1: 28, 8: 8, 9: 8, 10: 52, 11: 12}
    return len(frame), frame[:2 + (14 if tagged else 18 + control.get(frame[3] & 15, 0))]


def directions(path):
    """The frames of a capture of one connection, by who sent them."""
    frames = {}
    for segment in pcap.read(path):
        if segment.payload:
            frames.setdefault((segment.source, segment.target), []).append(known(bytes(segment.payload)))
    return frames


@case("trace-pcap-rping", worlds=["lo4-root", "lo6-root"], seconds=90)
def rping(world):
    """Either trace and both together give what dumpcap has seen, frame by frame."""
    port = world.port()
    with Capture(world) as folder:
        seen = case_capture.Capture(port)
        try:
            server = serve(world, port, "-C", "5", "-S", "20000", settings=folder.tracing("server"))
            client = connect(world, port, "-C", "5", "-S", "20000", settings=folder.tracing("client"))
            world.finish(client, 20, 0, server)
            world.finish(server, 20, 0, client)
            real = directions(seen.frames()[0])
        finally:
            seen.close()
        for traces in (folder.both(), folder.both()[:1], folder.both()[1:]):
            path = folder.make(*traces)
            counted = check(path)
            # Each ping: two Sends from either side; the server reads once and writes once.
            expect(counted == {SEND: 20, READ: 5, RESPONSE: 5, WRITE: 5}, f"{counted}: not what rping does")
            tshark("-r", path, "-F", "pcap", "-w", path + ".pcap")
            made = directions(path + ".pcap")
            expect(made == real, f"{made}\nis not what was captured:\n{real}")


@case("trace-pcap-perftest", worlds=["lo4-root"], seconds=120)
def perftest(world):
    for tool, opcodes in (("ib_write_bw", {"RDMA_WRITE": WRITE}), ("ib_read_bw", {"RDMA_READ": RESPONSE}),
                          ("ib_send_bw", {"SEND": SEND}), ("ib_atomic_bw", {"ATOMIC_FETCH_AND_ADD": ATOMIC_RESPONSE})):
        with Capture(world) as folder:
            # As it may run more than once: a file for each process.
            case_perftest.exchange(world, tool, ["-s", "70000", "-n", "50"], 30, settings=folder.tracing("%p"))
            traces = [folder.file(name) for name in os.listdir(folder.path)]
            counted, requests = check(folder.make(*traces)), folder.requests(*traces)
            for request, opcode in opcodes.items():
                expect(requests[request] >= 50 and counted[opcode] == requests[request], f"{tool}: {counted}, {requests}")


@case("trace-pcap-ends", worlds=["lo4-root"], seconds=90)
def ends(world):
    """What one end has sent the other has received, to the octet: placed directly, by parts, with markers, by pollers or
    either engine."""
    for tool, settings in (("ib_write_bw", {"UIWARP_CRC": "off"}), ("ib_send_bw", {"UIWARP_CRC": "off", "UIWARP_ENGINE": "epoll"}),
                           ("ib_read_bw", {"UIWARP_CRC": "off"}), ("ib_write_lat", {"UIWARP_MPA_MARKERS": "on"})):
        with Capture(world) as folder:
            case_perftest.exchange(world, tool, ["-s", "300000", "-n", "20"], 30,
                                   settings={**folder.tracing("%p"), **settings})
            made = []
            for trace in sorted(os.listdir(folder.path)):
                path = folder.make(folder.file(trace))
                tshark("-r", path, "-F", "pcap", "-w", path + ".pcap")
                made.append(directions(path + ".pcap"))
            # The last to connect has its traces at the end; a run that came too early left one.
            by_ends = {}
            for frames in made:
                for direction, sent in frames.items():
                    by_ends.setdefault(direction, []).append(sent)
            pairs = [sorted(both, key=len) for both in by_ends.values() if len(both) == 2]
            # An end that has closed takes no more of what the other one sends.
            expect(len(pairs) >= 2 and all(one == other[:len(one)] for one, other in pairs),
                   f"{tool}: the ends differ: {by_ends}"[:3000])
            expect(sum(len(one) for one, _ in pairs) > 20, f"{tool}: no FPDUs")


@case("trace-pcap-immediate", worlds=["lo4-root"], seconds=90)
def immediate(world):
    """Both ends in one process and one trace, connected by number, with the other engine and without CRC."""
    program = os.path.join(world.bin, "shake_replicated_log")
    if not os.path.exists(program):
        raise Skipped("needs the programs of tests/shake")
    for settings in ({}, {"UIWARP_CRC": "off", "UIWARP_ENGINE": "epoll"}):
        with Capture(world) as folder:
            world.run("server", program, "clean", settings={**folder.tracing("trace"), **settings})
            path = folder.make(folder.file("trace"))
            requests = folder.requests(folder.file("trace"))
            if "UIWARP_CRC" not in settings:
                counted = check(path)
                expect(counted[WRITE] == counted[IMMEDIATE] == requests["RDMA_WRITE_WITH_IMM"] > 0, f"{counted}, {requests}")
                continue
            immediates = len(rows(path, f"iwarp_rdma.opcode == {IMMEDIATE}", "frame.number", "tcp.len"))
            expect(immediates == requests["RDMA_WRITE_WITH_IMM"], f"{immediates} immediates, {requests}")


@case("trace-pcap-lost", worlds=["lo4-root"], seconds=60)
def lost(world):
    """The newest FPDUs of a connection whose beginning the ring has lost are there with their connection."""
    with Capture(world) as folder:
        settings = {**TRACED, "UIWARP_TRACE": folder.file("%p") + ",size=64K,fpdus"}
        case_perftest.exchange(world, "ib_write_lat", ["-s", "64", "-n", "1000"], 30, settings=settings)
        for trace in os.listdir(folder.path):
            shown = folder.show(folder.file(trace), "--json")
            if json.loads(shown.output)["processes"][0]["lost"] == 0:
                continue   # of a client that came too early
            path = folder.make(folder.file(trace))
            text = tshark("-r", path, "-O", "iwarp_mpa")
            expect(text.count("Good CRC32") > 300 and "Bad CRC32" not in text, f"too few FPDUs: {text[-2000:]}", shown)


@case("trace-pcap-nothing", worlds=["lo4-root"], seconds=60)
def nothing(world):
    """Without FPDUs in the trace it says how to have them."""
    with Folder(world) as folder:
        world.run("client", "ibv_devinfo", settings=folder.tracing("trace"))
        tool = world.start("server", os.path.join(world.bin, "uiwarp"), "trace", folder.file("trace"), "--pcap",
                           folder.file("out"), plain=True)
        world.finish(tool, 60, 2)
        expect("FILE,fpdus" in tool.output and not os.path.exists(folder.file("out")), "does not say what to do", tool)
