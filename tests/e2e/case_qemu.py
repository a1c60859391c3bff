# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Migration of a virtual machine by QEMU, over rdma_cm: it has to be the same afterwards."""
import json
import os
import socket
import time

from applications import folder, need, random_file, same
from harness import Failed, expect, wait_until
from registry import case

QEMU = "qemu-system-x86_64"
START, SIZE = 1 << 20, 24 << 20   # of the memory that is filled, and compared


class Monitor:
    """QEMU's control socket (QMP)."""

    def __init__(self, path, seconds):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        # The path is there before QEMU listens on it.
        wait_until(lambda: self._socket.connect_ex(path) == 0, seconds, f"QEMU listens on {path}")
        self._lines = self._socket.makefile("rw")
        self._lines.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while True:
            answer = json.loads(self._lines.readline())
            if "error" in answer:
                raise Failed(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


def migrate(world, path, pin_all):
    """Both machines are stopped: what one had the other has, octet by octet."""
    port = world.port()
    tools, monitors = [], []
    content = random_file(os.path.join(path, "content"), SIZE)
    for side, options in (("server", ["-incoming", f"rdma:{world.server}:{port}"]),
                          ("client", ["-device", f"loader,file={content},addr={START},force-raw=on"])):
        control = os.path.join(path, f"{side}-{pin_all}")
        tools.append(world.start(side, QEMU, "-M", "pc", "-accel", "tcg", "-m", "64", "-display", "none", "-nodefaults",
                                 "-S", "-qmp", f"unix:{control},server=on,wait=off", *options))
        wait_until(lambda: tools[-1].ended() or os.path.exists(control), 20 * world.slow, "QEMU runs")
        expect(not tools[-1].ended(), "QEMU does not start", tools[-1])
        monitors.append(Monitor(control, 20 * world.slow))
        monitors[-1]("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin_all}])
    target, source = monitors
    world.server_ready(tools[0], port)
    source("migrate", uri=f"rdma:{world.server}:{port}")
    deadline = time.monotonic() + 60 * world.slow
    while (status := source("query-migrate").get("status")) not in ("completed", "failed"):
        expect(time.monotonic() < deadline, f"still {status}", *tools)
        time.sleep(0.05)
    expect(status == "completed", "the migration failed", *tools)
    wait_until(lambda: target("query-migrate").get("status") == "completed", 20 * world.slow, "the target has it all")
    for monitor, name in ((target, "target"), (source, "source")):
        monitor("pmemsave", val=0, size=64 << 20, filename=os.path.join(path, name))
        monitor("quit")
    for tool in tools:
        world.finish(tool, 20)
        expect("RDMA" in tool.output, "QEMU does not say which RDMA device it opened", tool)
    return os.path.join(path, "target"), os.path.join(path, "source"), content


@case("qemu-migration", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=120)
def migration(world):
    """Page by page registered when it is needed, then all at once."""
    need(QEMU, "qemu-system-x86")
    with folder(world) as path:
        for pin_all in (False, True):
            target, source, content = migrate(world, path, pin_all)
            expect(same(target, source), f"rdma-pin-all={pin_all}: the machine's memory is not what it was")
            with open(target, "rb") as memory, open(content, "rb") as expected:
                memory.seek(START)
                expect(memory.read(SIZE) == expected.read(), "the memory had not been filled")
