# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rping: Send, Read and Write with every payload compared."""
import os

from harness import expect, wait_until
from registry import case

SIZES = [100, 1000, 4096, 16384, 65535]


def serve(world, port, *extra):
    return world.start_server("rping", "-s", "-a", world.server, "-p", port, *extra, port=port)


def connect(world, port, *extra):
    return world.start("client", "rping", "-c", "-a", world.server, "-p", port, *extra)


def compared(tool, count):
    return tool.output.count("ping data: ") == count and "mismatch" not in tool.output


@case("rping", seconds=30, reduced=True)
def default(world):
    port = world.port()
    server = serve(world, port, "-C", "10", "-v")
    client = connect(world, port, "-C", "10", "-v", "-V")
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect(client.output.count("ping data: rdma-ping-") == 10, "the client did not see 10 pings", client, server)
    expect(server.output.count("server ping data: rdma-ping-") == 10, "the server did not see 10 pings", client, server)


@case("rping-sizes", seconds=60, reduced=True)
def sizes(world):
    for size in SIZES:
        port = world.port()
        server = serve(world, port, "-S", size, "-C", "20")
        client = connect(world, port, "-S", size, "-C", "20", "-V", "-v")
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
        expect(compared(client, 20), f"20 pings of {size} octets were not all compared", client, server)


@case("rping-own-qp", seconds=30)
def own_qp(world):
    """-q: queue pairs created and modified by the program itself, not by librdmacm."""
    port = world.port()
    server = serve(world, port, "-C", "10", "-q")
    client = connect(world, port, "-C", "10", "-V", "-v", "-q")
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect(compared(client, 10), "10 pings were not all compared", client, server)


@case("rping-long", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=120, serial=True)
def long(world):
    port = world.port()
    server = serve(world, port, "-S", "4096", "-C", "20000")
    client = connect(world, port, "-S", "4096", "-C", "20000", "-V")
    world.finish(client, 90, 0, server)
    world.finish(server, 20, 0, client)


@case("rping-persistent", seconds=90, reduced=True)
def persistent(world):
    """One server: ten clients one after the other, then five at once."""
    port = world.port()
    server = serve(world, port, "-P")
    for i in range(10):
        client = connect(world, port, "-C", "10", "-V", "-v")
        world.finish(client, 20, 0, server)
        expect(compared(client, 10), f"client {i}: 10 pings were not all compared", client, server)
    descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))

    # rping's server takes a request from a variable that the next request overwrites, so clients
    # arrive one by one; the first are still at work when the last one comes.
    count = 500 if world.reduced else 3000
    clients = []
    for i in range(5):
        # Lines as they come, so that the first ping can be waited for.
        client = world.start("client", "stdbuf", "-oL", "rping", "-c", "-a", world.server, "-p", port,
                             "-C", count, "-V", "-v")
        clients.append(client)
        wait_until(lambda c=client: c.ended() or "ping data" in c.output, 20 * world.slow, f"client {i} pings")
    print(f"{sum(not c.ended() for c in clients)} of 5 clients at work at once")
    for client in clients:
        world.finish(client, 60, 0, server)
        expect(compared(client, count), f"{count} pings were not all compared", client, server)
    expect(not server.ended(), "the persistent server ended", server)
    wait_until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) <= descriptors, 10 * world.slow,
               f"the server is back to {descriptors} descriptors")


@case("rping-epoll", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=60, reduced=True)
def epoll(world):
    """The engine's other backend, at both ends."""
    settings = {"UIWARP_ENGINE": "epoll"}
    port = world.port()
    server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-S", "16384", "-C", "50", port=port,
                                settings=settings)
    client = world.start("client", "rping", "-c", "-a", world.server, "-p", port, "-S", "16384", "-C", "50", "-V",
                         "-v", settings=settings)
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect(compared(client, 50), "50 pings were not all compared", client, server)
