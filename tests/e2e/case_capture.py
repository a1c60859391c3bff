# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What is on the wire, as Wireshark sees it: MPA, DDP and RDMAP with good CRCs."""
import os
import re
import shutil
import signal
import tempfile

import case_perftest
import case_rping
from harness import Failed, Skipped, Tool, expect, wait_until
from registry import case
from reframe import reframe

CRC_ON = {"UIWARP_CRC": "on"}


class Capture:
    """dumpcap on one interface, one TCP port; `within`: what to start it by, in a network namespace."""

    def __init__(self, port, interface="lo", within=()):
        for program in ("dumpcap", "tshark"):
            if not shutil.which(program):
                raise Skipped(f"needs {program} (packages wireshark-common, tshark)")
        self.folder = tempfile.mkdtemp(prefix="uiwarp-capture-")
        os.chmod(self.folder, 0o777)   # dumpcap may give up root before it writes
        self.path = os.path.join(self.folder, "captured.pcap")
        self.tool = Tool([*within, "dumpcap", "-q", "-P", "-B", "64", "-i", interface, "-f", f"tcp port {port}", "-w",
                          self.path], dict(os.environ))
        wait_until(lambda: self.tool.ended() or "File:" in self.tool.output, 15, "dumpcap captures")
        if self.tool.ended():
            output = self.tool.output
            self.close()
            raise Skipped(f"dumpcap cannot capture here: {output.strip()}")

    def frames(self):
        """Ends the capture when every connection in it is complete; the rewritten file and its counts."""
        target = os.path.join(self.folder, "reframed.pcap")

        def complete():
            result = reframe(self.path, target)
            return result.connections > 0 and result.finished == result.connections
        wait_until(complete, 10, "both ends' FIN are in the capture")
        self.tool.signal(signal.SIGINT)
        self.tool.wait(10)
        dropped = re.search(r"dropped[^:]*: \d+/(\d+)", self.tool.output)
        if dropped and int(dropped[1]):
            raise Failed(f"dumpcap dropped packets: {self.tool.output}")
        return target, reframe(self.path, target)

    def close(self):
        self.tool.destroy()
        self.tool.forget()
        shutil.rmtree(self.folder, ignore_errors=True)


def dissect(path):
    # Send payloads would be offered to these two, which take anything for theirs.
    tool = Tool(["tshark", "-n", "-V", "-r", path, "--disable-protocol", "rpcordma", "--disable-protocol",
                 "smb_direct"], dict(os.environ))
    try:
        if tool.wait(120) != 0:
            raise Failed(f"tshark failed: {tool.output[-2000:]}")
        return tool.output
    finally:
        tool.destroy()
        tool.forget()


def check(capture, opcodes):
    path, counted = capture.frames()
    if counted.leftover:
        raise Failed(f"{counted.leftover} octets of the streams are no whole frame")
    text = dissect(path)
    good, bad = text.count("Good CRC32"), text.count("Bad CRC32")
    problems = []
    if bad:
        problems.append(f"{bad} FPDUs have a bad CRC")
    if good != counted.fpdus:
        problems.append(f"{counted.fpdus} FPDUs were sent, tshark found {good} with a good CRC")
    if "Malformed Packet" in text:
        problems.append("tshark calls a packet malformed")
    for needed in ("Request frame header", "Reply frame header", *opcodes):
        if needed not in text:
            problems.append(f"no '{needed}' in the capture")
    if problems:
        raise Failed("; ".join(problems) + "\n" + text[:3000])
    print(f"{counted.connections} connections, {counted.fpdus} FPDUs, every CRC good")


@case("capture-rping", worlds=["lo4-root", "lo6-root"], seconds=90)
def rping(world):
    port = world.port()
    capture = Capture(port)
    try:
        server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-C", "5", "-S", "20000", port=port,
                                    settings=CRC_ON)
        client = world.start("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "5", "-S", "20000", "-V",
                             "-v", settings=CRC_ON)
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
        expect(case_rping.compared(client, 5), "5 pings were not all compared", client, server)
        check(capture, ["Send (0x3)", "Read Request (0x1)", "Read Response (0x2)", "Write (0x0)"])
    finally:
        capture.close()


@case("capture-perftest", worlds=["lo4-root"], seconds=120, serial=True)
def perftest(world):
    for tool, opcode in (("ib_send_bw", "Send (0x3)"), ("ib_write_bw", "Write (0x0)"), ("ib_read_bw", "Read Response (0x2)")):
        port = world.port()
        capture = Capture(port)
        try:
            case_perftest.exchange(world, tool, ["-s", "8192", "-n", "100"], 30, port=port, settings=CRC_ON)
            check(capture, [opcode])
        finally:
            capture.close()
