# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Datagrams by rdma_cm, which the RoCE face has: service id resolution and multicast groups."""
import os
import re
import signal

from case_face import IWARP, ROCE
from case_face_cm import both_end
from harness import expect, wait_until
from registry import LO4, case

IP4 = ["lo4-root", "lo4-user", "ns-root"]
UDADDY_PORT = 7174  # always
GROUP = "239.18.17.16"


@case("datagram-ids", worlds=LO4, seconds=60, reduced=True)
def ids(world):
    """Events and their accounting by librdmacm, without queue pairs."""
    for part in ("resolve", "meet", "groups", "stand-in"):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-datagram-ids"), part, settings=ROCE)
        expect(tool.output.endswith("done\n"), part, tool)


@case("udaddy", worlds=[*IP4, "lo6-user"], seconds=90, serial=True, reduced=True)
def udaddy(world):
    for extra in ([], ["-c", "20", "-C", "20", "-S", "1000"], ["-P", "ipoib"]):
        server, client = both_end(world, (ROCE, ROCE), ["udaddy", "-b", world.server, *extra],
                                  ["udaddy", "-s", world.server, *extra], UDADDY_PORT)
        for tool in (server, client):
            expect("data transfers complete" in tool.output, f"udaddy {extra}", server, client)


@case("udaddy-in-vain", worlds=IP4, seconds=90, serial=True, reduced=True)
def in_vain(world):
    """Nobody listens; somebody does who takes connections; one dies before it answers."""
    def told(what, status, *servers, meanwhile=lambda client: None):
        client = world.start("client", "udaddy", "-s", world.server, settings=ROCE)
        meanwhile(client)
        world.finish(client, 20, None, *servers)
        expect(f"RDMA_CM_EVENT_UNREACHABLE, error: {status}" in client.output, f"{what}: udaddy is told something else",
               client, *servers)

    told("nobody listens", 1)

    server = world.start_server("rping", "-s", "-a", world.server, "-p", UDADDY_PORT, port=UDADDY_PORT, settings=IWARP)
    told("a server for connections", 1, server)
    expect(not server.ended(), "the server for connections has ended", server)
    server.destroy()

    server = world.start_server("udaddy", "-b", world.server, port=UDADDY_PORT, settings=ROCE)
    server.signal(signal.SIGSTOP)

    def kill(client):
        wait_until(lambda: client.ended() or any(state == "01" and remote == UDADDY_PORT
                                                 for state, _, remote in client.sockets()),
                   20 * world.slow, "udaddy asks", client)
        server.signal(signal.SIGKILL)

    told("the server died", 2, server, meanwhile=kill)


@case("mckey", worlds=IP4, seconds=90, reduced=True)
def mckey(world):
    """One member receives what another, and one that may only send, send to the group."""
    client = "10.91.0.2" if world.place == "ns" else world.server
    for extra in ([], ["-o"]):
        common = ["stdbuf", "-oL", "mckey", "-m", GROUP, "-C", "10"]
        receiver = world.start("server", *common, "-b", world.server, settings=ROCE)
        wait_until(lambda r=receiver: "joined" in r.output or r.ended(), 20 * world.slow, "joined", receiver)
        sender = world.start("client", *common, "-s", "-b", client, *extra, settings=ROCE)
        world.finish(sender, 30, 0, receiver)
        world.finish(receiver, 20, 0, sender)
        expect(re.search(r"joined dgid: (::ffff:239\.18\.17\.16|::ffff:ef12:1110) ", receiver.output),
               "the group's GID is not an IPv4-mapped one", receiver)
        expect("data transfers complete" in receiver.output, "not all was received", receiver)
