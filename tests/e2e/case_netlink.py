# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NETLINK_RDMA: rdma(8) of iproute2, and the devices that libibverbs finds by it."""
import json
import re
import shutil

from case_devices import NS_AND_LO4
from case_face import IWARP, ROCE
from case_pyverbs import PYTHON, need_pyverbs
from harness import Skipped, expect
from registry import LO4, case

OBJECTS = ("pd", "cq", "qp", "cm_id", "mr", "ctx", "srq")


def need_rdma():
    if not shutil.which("rdma"):
        raise Skipped("needs rdma (package iproute2)")


def said(world, *arguments, settings=None):
    """What `rdma -j` says, as JSON has it."""
    tool = world.run("server", "rdma", *arguments, settings=settings)
    try:
        return json.loads(tool.output)
    except ValueError:
        expect(False, "not JSON", tool)


@case("rdma-dev", worlds=NS_AND_LO4, seconds=30, reduced=True)
def dev(world):
    """The devices that libibverbs finds, in the same order, as ibv_devinfo shows them."""
    need_rdma()
    for settings, kind, protocol in ((IWARP, "rnic", "iw"), ({**ROCE, "UIWARP_DEVICES": "all"}, "ca", "roce")):
        devinfo = world.run("server", "ibv_devinfo", settings=settings)
        names = re.findall(r"^hca_id:\t(\S+)", devinfo.output, re.M)
        expect(names[-1] == "uiw_lo" and world.device in names, "loopback is not the last", devinfo)
        guids = re.findall(r"node_guid:\s+(\S+)", devinfo.output)
        for arguments in (["dev", "-j"], ["dev", "show", "-j"]):
            rows = said(world, *arguments, settings=settings)
            expect([row["ifname"] for row in rows] == names, f"{rows}: other devices", devinfo)
            expect([row["node_guid"] for row in rows] == guids, f"{rows}: other GUIDs", devinfo)
            # Debian 12's does not show the protocol.
            expect(all((row["node_type"], row.get("protocol", protocol), row["fw"]) == (kind, protocol, "0.1.0") for row in rows),
                   f"{rows}: not what the face is", devinfo)
            expect(len({row["ifindex"] for row in rows}) == len(rows), f"{rows}: an index twice", devinfo)
        tool = world.run("server", "rdma", "dev", "show", world.device, settings=settings)
        expect(re.match(rf"\d+: {world.device}: node_type {kind} ", tool.output), "not one device", tool)


@case("rdma-link", worlds=NS_AND_LO4, seconds=30, reduced=True)
def link(world):
    need_rdma()
    rows = said(world, "link", "show", "-j")
    row = next(row for row in rows if row["ifname"] == world.device)
    interface = world.device.removeprefix("uiw_")
    expect((row["port"], row["state"], row["physical_state"], row["netdev"]) == (1, "ACTIVE", "LINK_UP", interface),
           f"{row}: not the port of {interface}")
    tool = world.run("server", "rdma", "link", "show", f"{world.device}/1")
    expect(f"link {world.device}/1 state ACTIVE physical_state LINK_UP netdev {interface}" in tool.output, "not the port", tool)
    if world.place == "ns":
        # Up, but without a carrier.
        world.ip("client", "link", "set", "veth0", "down")
        row = next(row for row in said(world, "link", "-j") if row["ifname"] == "uiw_veth0")
        expect((row["state"], row["physical_state"]) == ("DOWN", "DISABLED"), f"{row}: the link is down")


@case("rdma-rest", worlds=LO4, seconds=60)
def rest(world):
    """What is shown is true, what cannot be known or done is not claimed."""
    need_rdma()
    for arguments in (["resource", "-j"], ["resource", "show", "-j"], ["resource", "show", "uiw_lo", "-j"]):
        row = next(row for row in said(world, *arguments) if row["ifname"] == "uiw_lo")
        expect(all(row[name] == 0 for name in OBJECTS), f"{row}: rdma has no objects")
    for name in OBJECTS:
        for details in ([], ["-d"], ["-dd"]):
            tool = world.run("server", "rdma", *details, "resource", "show", name)
            expect(tool.output == "", "an object", tool)
    tool = world.run("server", "rdma", "system", "show")
    expect("netns exclusive copy-on-fork on" in tool.output, "not the system's settings", tool)
    tool = world.run("server", "rdma", "statistic", "show", "link", "uiw_lo/1")
    expect(tool.output.startswith("link uiw_lo/1 bytes_received "), "not a link with counters", tool)
    for arguments in (["statistic"], ["statistic", "mode"], ["statistic", "qp", "mode"], ["statistic", "qp", "show"],
                      ["statistic", "mr"], ["-d", "dev"], ["-d", "link"], ["-p", "-j", "dev"]):
        world.run("server", "rdma", *arguments)
    allowed = world.name.endswith("root")
    for arguments in (["dev", "set", "uiw_lo", "name", "other"], ["link", "add", "other", "type", "siw", "netdev", "lo"],
                      ["system", "set", "netns", "shared"], ["statistic", "qp", "set", "link", "uiw_lo/1", "auto", "type", "on"]):
        tool = world.run("server", "rdma", *arguments, status=None)
        error = "Operation not supported" if allowed else "Operation not permitted"
        expect(tool.process.returncode == 1 and error in tool.output, f"not '{error}'", tool)


COUNT_OWN_OBJECTS = """
import socket, struct, sys
from pyverbs.device import Context
GET, RES_GET = 1, 9
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
def ask(command, flags=0x301):
    netlink.send(struct.pack("=IHHII", 16, 5 << 10 | command, flags, 7, 0))
    return netlink.recv(16384)
assert b"uiw_lo\\0" in ask(GET)
assert b"cm_id\\0" in ask(RES_GET)
context = Context(name="uiw_lo")
assert b"cm_id\\0" not in ask(RES_GET)
context.close()
assert b"cm_id\\0" in ask(RES_GET)
"""


@case("netlink-of-a-program", worlds=LO4, seconds=30)
def program(world):
    """A program that asks by itself; how many objects it has is said only as long as that is none."""
    need_pyverbs()
    world.run("server", PYTHON, "-c", COUNT_OWN_OBJECTS)
