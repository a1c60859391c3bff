# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""UIWARP_LOG=debug tells what happened, by time and process; UIWARP_LOG_FILE takes it."""
import glob
import os
import re
import shutil
import tempfile

from harness import expect
from registry import case

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z uiwarp\[(\d+)\] (error|warn|info|debug): (.+)")


def stages(text, tool):
    """(pid, message) of each line, which all have that form."""
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    expect(all(found), f"a line has another form in:\n{text}", tool)
    return [(int(match[1]), match[3]) for match in found]


def expect_in_order(patterns, messages, tool):
    rest = iter(messages)
    for pattern in patterns:
        expect(any(re.search(pattern, message) for message in rest), f"no '{pattern}', or not there, in:\n" +
               "\n".join(messages), tool)


@case("log", worlds=["lo4-user", "ns-root"], seconds=30, reduced=True)
def log(world):
    folder = tempfile.mkdtemp(prefix="uiwarp-log-")
    os.chmod(folder, 0o1777)
    try:
        settings = {"UIWARP_LOG": "debug", "UIWARP_LOG_FILE": f"{folder}/%p"}
        port = world.port()
        server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-C", 1, port=port, settings=settings)
        client = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", 1, settings=settings)
        world.finish(server, 20)
        expect("uiwarp[" not in client.output, "standard error has lines that the file is for", client)
        texts = {}
        for path in glob.glob(f"{folder}/*"):
            with open(path) as file:
                lines = stages(file.read(), client)
            expect({str(pid) for pid, _ in lines} == {os.path.basename(path)}, "a line of another process", client)
            messages = [message for _, message in lines]
            texts["server" if any("rdma_cm listens" in message for message in messages) else "client"] = messages
        opened = [rf"device {world.device}: interface \w+ \(index \d+\), port active, addresses .*", r"device \w+: opened"]
        connected = r"queue pair 0x\w+: connected, \S+ to \S+, MPA revision 2, CRC \w+, markers off"
        ended = [r"goes to ERR \(vendor_err 0x4[01], .*\)", r"connection to \S+ closed"]
        expect_in_order([*opened, rf"rdma_cm listens at \S+:{port}", r"connection from \S+ to \S+: TCP has accepted it",
                         "an MPA Request of revision 2 came", "created, RC", "the program accepts it, the MPA Reply is sent",
                         connected, *ended], texts["server"], server)
        expect_in_order([*opened, "created, RC", rf"connection to \S+:{port}: connecting", "an MPA Request of revision 2 is sent",
                         "the peer has accepted it", connected, "disconnecting", *ended], texts["client"], client)
    finally:
        shutil.rmtree(folder)


@case("log-failure", worlds=["lo4-user"], seconds=20)
def failure(world):
    tool = world.run("client", "rping", "-c", "-a", world.server, "-p", world.port(), "-C", 1, status=None,
                     settings={"UIWARP_LOG": "debug"})
    lines = [line for line in tool.output.splitlines() if " uiwarp[" in line]
    expect_in_order(["connecting", "refused, and tried again", "failed: Connection refused"],
                    [message for _, message in stages("\n".join(lines), tool)], tool)
