# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Network interfaces that come, change and go while a program runs."""
import os
import signal

from harness import expect, wait_until
from registry import case

NS = ["ns-root", "ns-user"]
LATER = "10.91.7.{}"


class Watched:
    """A tool whose output is waited for, in order."""

    def __init__(self, world, tool):
        self.world = world
        self.tool = tool
        self._seen = 0

    def says(self, *texts):
        """A line that has all of these comes after those that were waited for before."""
        wait_until(lambda: self._look_for(texts) or self.tool.ended(), 20 * self.world.slow, f"it says {texts}",
                   self.tool)
        expect(self._look_for(texts), f"it ended without saying {texts}", self.tool)
        self._seen = self._look_for(texts)

    def _look_for(self, texts):
        """The number of the line behind the first such one; 0: there is none."""
        lines = self.tool.output.split("\n")[:-1]
        for number in range(self._seen, len(lines)):
            if all(text in lines[number] for text in texts):
                return number + 1
        return 0


def add_interface(world):
    """new0 with 10.91.7.1, its other end new1; no IPv6, whose addresses come when they like."""
    world.ip("server", "link", "add", "new0", "type", "veth", "peer", "name", "new1")
    for end in ("new1", "new0"):
        world.ip("server", "link", "set", end, "addrgenmode", "none")
    world.ip("server", "address", "add", LATER.format(1) + "/32", "dev", "new0")
    world.ip("server", "link", "set", "new1", "up")
    world.ip("server", "link", "set", "new0", "up")


@case("interface-follow", worlds=NS)
def interface_follow(world):
    tool = world.start("server", os.path.join(world.bin, "uiwarp-follow"), "uiw_new0", LATER.format(1))
    follow = Watched(world, tool)
    follow.says("waiting")
    add_interface(world)
    first, second = ("::ffff:" + LATER.format(n) for n in (1, 2))
    follow.says("found uiw_new0")
    follow.says("active,", first)

    world.ip("server", "link", "set", "new1", "down")   # the carrier goes
    follow.says("port error", "down", first)
    world.ip("server", "link", "set", "new1", "up")
    follow.says("port active", "active,", first)

    world.ip("server", "address", "add", LATER.format(2) + "/32", "dev", "new0")
    follow.says("GID table change", f"active, {first} {second} (2)")
    world.ip("server", "address", "del", LATER.format(1) + "/32", "dev", "new0")
    follow.says("GID table change", f"active, :: {second} (1)")

    world.ip("server", "link", "set", "new0", "down")
    follow.says("port error", "down,")
    world.ip("server", "link", "set", "new0", "name", "other0")   # the device keeps its name
    world.ip("server", "link", "set", "other0", "up")
    follow.says("port active", "active,", second)

    world.ip("server", "link", "del", "other0")
    follow.says("port error", "down,")
    follow.says("local catastrophic error", "down,")
    follow.says("RDMA_CM_EVENT_DEVICE_REMOVAL")
    follow.says("waiting again")
    add_interface(world)
    world.finish(tool, 20)
    guids = [line.split()[-1] for line in tool.output.splitlines() if line.startswith("found")]
    expect(len(set(guids)) == 2, "librdmacm could not tell the new device from the old one", tool)


@case("interface-asyncwatch", worlds=NS)
def interface_asyncwatch(world):
    tool = world.start("server", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "uiw_veth0")
    watch = Watched(world, tool)
    watch.says("async event FD")
    world.ip("client", "link", "set", "veth0", "down")
    watch.says("IBV_EVENT_PORT_ERR (10), port 1")
    info = world.run("server", "ibv_devinfo", "-d", "uiw_veth0")
    expect("PORT_DOWN (1)" in info.output, "ibv_devinfo does not say that there is no carrier", info)
    world.ip("client", "link", "set", "veth0", "up")
    watch.says("IBV_EVENT_PORT_ACTIVE (9), port 1")
    info = world.run("server", "ibv_devinfo", "-d", "uiw_veth0")
    expect("PORT_ACTIVE (4)" in info.output, "ibv_devinfo does not say that the carrier is back", info)
    world.ip("server", "address", "add", LATER.format(1) + "/32", "dev", "veth0")
    watch.says("IBV_EVENT_GID_CHANGE (18), port 1")
    world.ip("server", "link", "del", "veth0")
    watch.says("IBV_EVENT_DEVICE_FATAL (8)")
    tool.signal(signal.SIGTERM)
    world.finish(tool, 10, 128 + signal.SIGTERM)


@case("interface-late-address", worlds=NS)
def interface_late_address(world):
    """A server that listens on all addresses is reached by one that came later, and so binds a client."""
    port = world.port()
    server = world.start_server("rping", "-s", "-C", "3", "-p", str(port), port=port)
    world.ip("server", "address", "add", "10.91.0.77/24", "dev", "veth0")
    client = world.start("client", "rping", "-c", "-C", "3", "-a", "10.91.0.77", "-p", str(port))
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
