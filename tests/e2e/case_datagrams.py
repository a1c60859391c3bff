# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""UD queue pairs, which the RoCE face has: with stock tools, and on devices that are made and changed."""
import os
import re

from case_exchange import gid_index, pingpong
from case_face import ROCE
from case_perftest import exchange
from case_interfaces import Watched
from harness import expect
from registry import DIAGONAL, NAMES, case

# ::ffff:239.1.2.3, as perftest wants it.
IP4_GROUP = "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"
# Both ends compare what came with what the other sent.
PINGPONG = {"ud-pingpong": ["-c", "-n", "1000"], "ud-pingpong-events": ["-c", "-e", "-n", "1000"],
            "ud-pingpong-small": ["-c", "-s", "64", "-n", "1000"]}


def register(name, options):
    @case(f"roce-{name}", worlds=NAMES, seconds=120, reduced=True)
    def run(world):
        """By GIDs of both types."""
        for kind in (0, 1):
            pingpong(world, ["ibv_ud_pingpong", *options], [(2 * gid_index(world) + kind, ROCE)] * 2, 40)


for _name, _options in PINGPONG.items():
    register(_name, _options)


@case("roce-ud-perftest", worlds=DIAGONAL, seconds=200, serial=True, reduced=True)
def perftest(world):
    """A latency test hangs when one datagram is lost, and a bandwidth test when some are."""
    for index in ("0", "1"):
        few = ["-d", world.device, "-c", "UD", "-x", index]
        exchange(world, "ib_send_lat", [*few, "-s", "64", "-n", "1000"], 60, cm=False, settings=ROCE)
        exchange(world, "ib_send_bw", [*few, "-s", "1024", "-n", "2000"], 60, cm=False, settings=ROCE)
    exchange(world, "ib_send_lat", [*few, "-e", "-n", "200"], 60, cm=False, settings=ROCE)
    exchange(world, "ib_send_bw", [*few, "-q", "4", "-s", "1024", "-n", "500"], 60, cm=False, settings=ROCE)


@case("roce-multicast-perftest", worlds=["ns-root"], seconds=60, serial=True, reduced=True)
def multicast(world):
    """By a group of IPv4, and by the tool's own, whose scope is the interface: IP would keep it on the host."""
    for side, address in (("server", "fd91::1/64"), ("client", "fd91::2/64")):
        world.ip(side, "address", "add", address, "dev", "veth0", "nodad")
    shown = world.run("server", "ibv_devinfo", "-v", "-d", world.device, settings=ROCE)
    of_ip6 = re.findall(r"GID\[\s*(\d+)\]:\s*fd91:", shown.output)
    expect(len(of_ip6) == 2, "no GID of each type for fd91::1", shown)
    few = ["-d", world.device, "-c", "UD", "-g", "-s", "1024", "-n", "200"]
    for tool in ("ib_send_lat", "ib_send_bw"):
        exchange(world, tool, [*few, "-x", "1", "-M", IP4_GROUP], 30, cm=False, settings=ROCE)
        for index in of_ip6:
            exchange(world, tool, [*few, "-x", index], 30, cm=False, settings=ROCE)


@case("roce-multicast-interfaces", worlds=["ns-root", "ns-user"], seconds=60, reduced=True)
def multicast_interfaces(world):
    """A group at two interfaces of a host is two groups."""
    world.ip("server", "link", "add", "new0", "type", "veth", "peer", "name", "new1")
    for end in ("new1", "new0"):
        world.ip("server", "link", "set", end, "up")
    world.ip("server", "address", "add", "10.91.7.1/24", "dev", "new0")
    world.ip("server", "address", "add", "fd91:7::1/64", "dev", "new0", "nodad")
    world.ip("server", "address", "add", "fd91::1/64", "dev", "veth0", "nodad")
    for group, first, second in (("239.1.2.3", "10.91.0.1", "10.91.7.1"), ("ff0e::77:3", "fd91::1", "fd91:7::1"),
                                 ("ff02::77:3", "fd91::1", "fd91:7::1")):
        tool = world.run("server", os.path.join(world.bin, "uiwarp-datagrams"), "groups", group,
                         "uiw_veth0", first, "uiw_new0", second, settings=ROCE)
        expect(tool.output.endswith("done\n"), f"group {group}", tool)


@case("roce-ud-mtu", worlds=["ns-root", "ns-user"], seconds=60, reduced=True)
def mtu_changes(world):
    """Queue pairs send and receive what the port's MTU is now, not what it was when they were made."""
    tool = world.start("server", os.path.join(world.bin, "uiwarp-datagrams"), "mtu", world.device, world.server,
                       settings=ROCE)
    datagrams = Watched(world, tool)
    for mtu in (9000, 1500):
        datagrams.says("ready")
        world.ip("server", "link", "set", "veth0", "mtu", str(mtu))
    datagrams.says("done")
    world.finish(tool, 20)
