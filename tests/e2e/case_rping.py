# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rping: Send, Read and Write with every payload compared."""
import os

from harness import expect, wait_until
from registry import case

SIZES = [100, 1000, 4096, 16384, 65535]


def serve(world, port, *extra, settings=None):
    return world.start_server("rping", "-s", "-a", world.server, "-p", port, *extra, port=port, settings=settings)


def connect(world, port, *extra, settings=None):
    return world.start("client", "rping", "-c", "-a", world.server, "-p", port, *extra, settings=settings)


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


@case("rping-closed-standard", worlds=["lo4-root", "lo4-user", "lo6-user"], seconds=60, reduced=True)
def closed_standard(world):
    """What rping writes to a descriptor that the shell has closed is nowhere: never in a connection of the stack's."""
    for closed in ("2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"):
        for engine in ("auto", "epoll"):
            settings = {"UIWARP_ENGINE": engine}
            port = world.port()
            bare = ["sh", "-c", f'exec "$@" {closed}', "sh", "rping", "-a", world.server, "-p", port, "-C", "10", "-V"]
            server = world.start_server(*bare, "-s", "-d", port=port, settings=settings)
            client = world.start("client", *bare, "-c", "-d", settings=settings)
            world.finish(client, 20, 0, server)
            world.finish(server, 20, 0, client)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def five_at_once(world, server, port):
    """Clients of a persistent server; how many were at work together, and how many engines it had then."""
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
    engines = engines_of(server)
    at_once = sum(not c.ended() for c in clients)
    print(f"{at_once} of 5 clients at work at once")
    for client in clients:
        world.finish(client, 60, 0, server)
        expect(compared(client, count), f"{count} pings were not all compared", client, server)
    expect(not server.ended(), "the persistent server ended", server)
    return at_once, engines


def engines_of(tool):
    """How many threads named uiwarp a process has."""
    folder = f"/proc/{tool.pid}/task"
    count = 0
    for thread in os.listdir(folder):
        try:
            with open(f"{folder}/{thread}/comm", encoding="ascii") as name:
                count += name.read().strip() == "uiwarp"
        except (FileNotFoundError, ProcessLookupError):  # it has ended, before open() or after
            pass
    return count


@case("rping-persistent", seconds=90, reduced=True)
def persistent(world):
    """One server: ten clients one after the other, then five at once."""
    port = world.port()
    # Another engine, which has descriptors, may begin at any client.
    server = serve(world, port, "-P", settings={"UIWARP_ENGINES": "1"})
    for i in range(10):
        client = connect(world, port, "-C", "10", "-V", "-v")
        world.finish(client, 20, 0, server)
        expect(compared(client, 10), f"client {i}: 10 pings were not all compared", client, server)
    before = descriptors(server)
    five_at_once(world, server, port)
    wait_until(lambda: descriptors(server) <= before, 10 * world.slow, f"the server is back to {before} descriptors")


@case("rping-engines", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=90, reduced=True)
def several_engines(world):
    """Each client has a completion queue of its own in the server, and so they spread over its three engines."""
    port = world.port()
    server = serve(world, port, "-P", settings={"UIWARP_ENGINES": "3"})
    at_once, engines = five_at_once(world, server, port)
    # Where clients are slow to start, few are at work together, and one engine may do for them.
    expect(engines == 3 or at_once < 3, f"the server had {engines} engines, not 3", server)
    before, running = descriptors(server), engines_of(server)
    five_at_once(world, server, port)
    # Engines stay, with their descriptors.
    wait_until(lambda: descriptors(server) <= before or engines_of(server) > running, 10 * world.slow,
               f"the server is back to {before} descriptors")


@case("rping-epoll", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=60, reduced=True)
def epoll(world):
    """The engine's other backend, at both ends."""
    settings = {"UIWARP_ENGINE": "epoll"}
    port = world.port()
    server = serve(world, port, "-S", "16384", "-C", "50", settings=settings)
    client = connect(world, port, "-S", "16384", "-C", "50", "-V", "-v", settings=settings)
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect(compared(client, 50), "50 pings were not all compared", client, server)
