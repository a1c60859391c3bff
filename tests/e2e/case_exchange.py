# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs that exchange queue pair numbers and GIDs over a socket of their own, without rdma_cm."""
import os
import re
import socket

from case_perftest import TOOLS, exchange
from harness import expect
from registry import DIAGONAL, NAMES, case

# Both ends compare what came with what the other sent.
PINGPONG = {
    "ibv-rc-pingpong": ["ibv_rc_pingpong", "-c"],
    "ibv-rc-pingpong-events": ["ibv_rc_pingpong", "-c", "-e"],
    "ibv-rc-pingpong-many": ["ibv_rc_pingpong", "-n", "100000", "-s", "64"],
    "ibv-rc-pingpong-large": ["ibv_rc_pingpong", "-c", "-s", "1048576", "-n", "100"],
    "ibv-srq-pingpong": ["ibv_srq_pingpong", "-c"],
    "ibv-srq-pingpong-events": ["ibv_srq_pingpong", "-c", "-e", "-q", "4"],
}


def gid_index(world):
    """The index of the GID that says the world's address: IPv4 ones come first."""
    return {"lo4": 0, "lo6": 1, "ns": 0}[world.place]


def again(world, *arguments, ports=None, face="roce"):
    settings = {"UIWARP_FACE": face, **({"UIWARP_PORTS": ports} if ports else {})}
    tool = world.run("client", os.path.join(world.bin, "uiwarp-again"), *arguments, settings=settings)
    expect(tool.output.endswith("done\n"), f"{ports}: not to its end", tool)
    return tool


@case("ports-again", worlds=["lo4-root", "lo4-user"], seconds=60, reduced=True)
def ports_again(world):
    """Connections in TIME_WAIT keep nobody from a port: another address of it was used meanwhile, another process comes."""
    for face, ipv6 in (("iwarp", 1), ("roce", 2)):
        again(world, world.device, 0, ipv6, 0, ipv6, face=face)
        port = world.port()
        for _ in range(3):
            again(world, world.device, 0, 0, ports=f"{port}-{port}", face=face)


@case("ports-for-datagrams", worlds=["lo4-root", "lo4-user"], seconds=60, reduced=True)
def ports_for_datagrams(world):
    """All of UIWARP_PORTS are tried, and what is everybody's for groups is not taken."""
    taken = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(12)]
    first = world.port()
    for i, one in enumerate(taken):
        one.bind(("0.0.0.0", first + i))
    again(world, "ud", world.device, 2, ports=f"{first}-{first + len(taken)}")
    for one in taken:
        one.close()
    group = 28513
    tool = again(world, "ud", world.device, 1, ports=f"{group}-{group + 1}")
    expect(f"port {group + 1}\n" in tool.output, "the port of groups is taken", tool)


def meeting_place(world):
    """Where the two exchange what they have to: the pingpong servers listen on IPv4 only."""
    return "127.0.0.1" if world.place == "lo6" else world.server


def pingpong(world, command, ends, seconds):
    """Runs one of libibverbs' pingpong programs. `ends`: index of the GID and settings of the server, of the client."""
    tool, *options = command
    port = world.port()
    (server_gid, server_settings), (client_gid, client_settings) = ends
    common = [tool, "-d", world.device, "-p", port, *options]
    server = world.start_server(*common, "-g", server_gid, port=port, settings=server_settings)
    client = world.start("client", *common, "-g", client_gid, meeting_place(world), settings=client_settings)
    world.finish(client, seconds, 0, server)
    world.finish(server, 20, 0, client)
    for end in (client, server):
        expect(end.output.count(" iters in ") == 1, f"{tool} printed no result", client, server)
        expect("invalid data" not in end.output, f"{tool} received wrong data", client, server)


def register(name, command, settings=None):
    many = "-n" in command

    @case(name, worlds=DIAGONAL if many else NAMES, seconds=120, serial=many, reduced=not many)
    def run(world):
        pingpong(world, command, [(gid_index(world), settings)] * 2, 90)


for _name, _command in PINGPONG.items():
    register(_name, _command)
register("ibv-rc-pingpong-markers", ["ibv_rc_pingpong", "-c"], {"UIWARP_MPA_MARKERS": "on"})


@case("perftest-without-rdma-cm", worlds=DIAGONAL, seconds=200, serial=True, reduced=True)
def perftest(world):
    """Every tool that connects by itself."""
    for tool in TOOLS:
        exchange(world, tool, ["-d", world.device, "-n", "1000", "-s", "4096"], 40, cm=False)
    exchange(world, "ib_write_bw", ["-d", world.device, "-q", "16", "-n", "500"], 40, cm=False)
    exchange(world, "ib_read_bw", ["-d", world.device, "-b", "-n", "500"], 40, cm=False)


@case("rc-pingpong-without-gid", worlds=["lo4-root", "lo4-user"], seconds=60)
def without_gid(world):
    """A LID means nothing on TCP: the message says what to do, and nothing hangs."""
    port = world.port()
    common = ["ibv_rc_pingpong", "-d", world.device, "-p", port]
    server = world.start_server(*common, port=port)
    client = world.start("client", *common, world.server)
    world.finish(client, 20, None, server)
    world.finish(server, 20, None, client)
    for end in (client, server):
        expect(end.process.returncode != 0, "ended with success", client, server)
    expect("ibv_rc_pingpong: -g 0" in client.output + server.output, "no hint how to do it", client, server)


@case("ipv6-gid-between-hosts", worlds=["ns-root", "ns-user"], seconds=90)
def ipv6_gid(world):
    """By a global IPv6 address and by a link-local one."""
    for side, address in (("server", "fd91::1/64"), ("client", "fd91::2/64")):
        world.ip(side, "address", "add", address, "dev", "veth0", "nodad")
    shown = world.run("server", "ibv_devinfo", "-v", "-d", "uiw_veth0")
    for prefix in ("fd91:", "fe80:"):
        found = re.search(rf"GID\[\s*(\d+)\]:\s*{prefix}", shown.output)
        expect(found, f"no GID {prefix}", shown)
        port = world.port()
        common = ["ibv_rc_pingpong", "-c", "-d", "uiw_veth0", "-g", found.group(1), "-p", port]
        server = world.start_server(*common, port=port)
        client = world.start("client", *common, world.server)
        world.finish(client, 30, 0, server)
        world.finish(server, 20, 0, client)
        for end in (client, server):
            expect(" iters in " in end.output and "invalid data" not in end.output, "no result", client, server)
            expect(len(re.findall(rf"GID {prefix}", end.output)) == 2, f"not between two {prefix}", client, server)
        for tool in ("ib_write_bw", "ib_send_lat"):
            exchange(world, tool, ["-d", "uiw_veth0", "-x", found.group(1), "-n", "200"], 30, cm=False)
