# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Migration of a virtual machine by QEMU, over rdma_cm: it has to be the same afterwards."""
import json
import os
import socket
import struct
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


def machines(world, path, name, pin_all, both, source_only=()):
    """The target, which waits at a port, and the source: tools, monitors, and the port as a migration takes it."""
    port = world.port()
    uri = f"rdma:{world.server}:{port}"
    tools, monitors = [], []
    for side, options in (("server", ["-incoming", uri]), ("client", source_only)):
        control = os.path.join(path, f"{side}-{name}")
        tools.append(world.start(side, QEMU, "-M", "pc", "-accel", "tcg", "-m", "64", "-display", "none", "-nodefaults",
                                 "-qmp", f"unix:{control},server=on,wait=off", *both, *options))
        wait_until(lambda: tools[-1].ended() or os.path.exists(control), 20 * world.slow, "QEMU runs")
        expect(not tools[-1].ended(), "QEMU does not start", tools[-1])
        monitors.append(Monitor(control, 20 * world.slow))
        monitors[-1]("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin_all}])
    world.server_ready(tools[0], port)
    return tools, monitors, uri


def completed(world, tools, monitors, deadline):
    """Waits until all is at the target."""
    target, source = monitors
    while (status := source("query-migrate").get("status")) not in ("completed", "failed"):
        expect(time.monotonic() < deadline, f"still {status}", *tools)
        time.sleep(0.05)
    expect(status == "completed", "the migration failed", *tools)
    wait_until(lambda: target("query-migrate").get("status") == "completed", 20 * world.slow, "the target has it all")


def quit_all(world, tools, monitors):
    """The end of both, and whether they used RDMA at all."""
    for monitor in monitors:
        monitor("quit")
    for tool in tools:
        world.finish(tool, 20)
        expect("RDMA" in tool.output, "QEMU does not say which RDMA device it opened", tool)


def migrate(world, path, pin_all):
    """Both machines are stopped: what one had the other has, octet by octet."""
    content = random_file(os.path.join(path, "content"), SIZE)
    tools, monitors, uri = machines(world, path, str(pin_all), pin_all, ["-S"],
                                    ["-device", f"loader,file={content},addr={START},force-raw=on"])
    monitors[1]("migrate", uri=uri)
    completed(world, tools, monitors, time.monotonic() + 60 * world.slow)
    for monitor, name in zip(monitors, ("target", "source")):
        monitor("pmemsave", val=0, size=64 << 20, filename=os.path.join(path, name))
    quit_all(world, tools, monitors)
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


# A guest that adds 1 to a word in each 64 octets of its memory from WORDS to WORDS_END, one after the other, for ever.
WORDS, WORDS_END, STEP = 2 << 20, 18 << 20, 64
ROUNDS = 8   # times that all of it is sent while it changes


def busy_guest(path):
    """As a multiboot kernel without ELF: its header says where it is loaded and where it begins."""
    load, header_size = 1 << 20, 32
    magic, has_addresses = 0x1BADB002, 0x10000
    code = (b"\xbf" + struct.pack("<I", WORDS)              # again: mov edi, WORDS
            + b"\xff\x07"                                   # next: inc dword [edi]
            + b"\x83\xc7" + struct.pack("<b", STEP)         # add edi, STEP
            + b"\x81\xff" + struct.pack("<I", WORDS_END)    # cmp edi, WORDS_END
            + b"\x72\xf3"                                   # jb next
            + b"\xeb\xec")                                  # jmp again
    end = load + header_size + len(code)
    header = struct.pack("<8I", magic, has_addresses, -(magic + has_addresses) & 0xFFFFFFFF, load, load, end, end,
                         load + header_size)
    with open(path, "wb") as file:
        file.write(header + code)
    os.chmod(path, 0o644)
    return path


def words(monitor, path, first=WORDS):
    """The guest's words from there on; all of them at one moment if it is stopped."""
    if os.path.exists(path):
        os.remove(path)
    monitor("pmemsave", val=first, size=WORDS_END - first, filename=path)
    with open(path, "rb") as memory:
        return memoryview(memory.read()).cast("I")[::STEP // 4].tolist()


@case("qemu-live-migration", worlds=["lo4-user", "ns-root"], seconds=180)
def live_migration(world):
    """Of a guest that writes to all of its memory while that is sent, over and over, and goes on at the target."""
    need(QEMU, "qemu-system-x86")
    with folder(world) as path:
        for pin_all in (False, True):
            kernel = busy_guest(os.path.join(path, "kernel"))
            tools, monitors, uri = machines(world, path, str(pin_all), pin_all, ["-kernel", kernel])
            target, source = monitors
            wait_until(lambda: words(source, os.path.join(path, "source"), WORDS_END - STEP) != [0], 20 * world.slow,
                       "the guest has begun to write")
            # It comes to an end by itself only where the guest has changed nothing since all was sent.
            source("migrate-set-parameters", **{"downtime-limit": 0, "max-bandwidth": 1 << 40})
            source("migrate", uri=uri)
            deadline = time.monotonic() + 60 * world.slow
            while (now := source("query-migrate")).get("ram", {}).get("dirty-sync-count", 0) < ROUNDS:
                expect(now.get("status") != "failed", "the migration failed", *tools)
                if now.get("status") == "completed":
                    break
                expect(time.monotonic() < deadline, "the migration does not get on", *tools)
                time.sleep(0.02)
            source("migrate-set-parameters", **{"downtime-limit": 60000})
            completed(world, tools, monitors, deadline)
            expect(source("query-status")["status"] == "postmigrate", "the source goes on", *tools)
            before = words(source, os.path.join(path, "source"))[0]
            # It goes on where it was; no word has been forgotten on the way.
            wait_until(lambda: words(target, os.path.join(path, "target"))[0] != before, 20 * world.slow,
                       "the guest goes on at the target")
            target("stop")
            after = words(target, os.path.join(path, "target"))
            done = sum(word == after[0] for word in after)
            expect(after == [after[0]] * done + [(after[0] - 1) & 0xFFFFFFFF] * (len(after) - done),
                   f"rdma-pin-all={pin_all}: the guest's memory is not of one moment", *tools)
            quit_all(world, tools, monitors)
