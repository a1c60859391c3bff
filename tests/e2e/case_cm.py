# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connection management: many connections, synchronous ids, timing."""
import sys

from harness import expect, wait_until
from registry import LOOPBACK, case


@case("ucmatose", seconds=60, reduced=True)
def ucmatose(world):
    port = world.port()
    for extra in ([], ["-c", "20"], ["-c", "20", "-C", "50", "-S", "10000"]):
        server = world.start_server("ucmatose", "-b", world.server, "-p", port, *extra, port=port)
        client = world.start("client", "ucmatose", "-s", world.server, "-p", port, *extra)
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
        for tool in (client, server):
            expect("return status 0" in tool.output and "data transfers complete" in tool.output,
                   f"ucmatose {' '.join(extra)} did not complete", client, server)
        port = world.port()


@case("ucmatose-migrate", seconds=60)
def migrate(world):
    """-m: ids and their events move to another channel."""
    port = world.port()
    server = world.start_server("ucmatose", "-b", world.server, "-p", port, "-m", "-c", "5", port=port)
    client = world.start("client", "ucmatose", "-s", world.server, "-p", port, "-m", "-c", "5")
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)


@case("cmtime", seconds=60, reduced=True)
def cmtime(world):
    port = world.port()
    count = 20 if world.reduced else 100
    server = world.start_server("cmtime", "-b", world.server, "-p", port, "-c", count, port=port)
    client = world.start("client", "cmtime", "-s", world.server, "-p", port, "-c", count)
    world.finish(client, 40, 0, server)
    for step in ("resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy"):
        expect(any(line.startswith(step) for line in client.output.splitlines()), f"no time for '{step}'", client, server)
    expect("error" not in client.output, "cmtime reports an error", client, server)
    # Its server serves for ever: it must still be there, and is ended with the world.
    expect(not server.ended(), "the server ended", server)


@case("rdma-server-client", seconds=30, reduced=True)
def rdma_client(world):
    port = world.port()
    server = world.start_server("rdma_server", "-s", world.server, "-p", port, port=port)
    client = world.start("client", "rdma_client", "-s", world.server, "-p", port)
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect("rdma_client: end 0" in client.output and "rdma_server: end 0" in server.output,
           "not both ended with 0", client, server)


@case("rdma-cm-opens-nothing-else", worlds=LOOPBACK, seconds=60, reduced=True)
def opens_nothing(world):
    """While rping runs its server listens on its own port only, its client on none."""
    port = world.port()
    server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-P", port=port)
    client = world.start("client", "stdbuf", "-oL", "rping", "-c", "-a", world.server, "-p", port, "-v")
    wait_until(lambda: client.ended() or "ping data" in client.output, 20 * world.slow, "rping pings")
    expect(not client.ended(), "rping ended by itself", client, server)
    expect(server.listening() == {port}, f"the server listens on {server.listening()}", server)
    expect(client.listening() == set(), f"the client listens on {client.listening()}", client)


# Accepts, waits for the beginning of a Request and says this.
SPEAKER = """import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    with listener.accept()[0] as peer:
        peer.recv(1)
        peer.sendall(eval(sys.argv[2]))
        while peer.recv(100):
            pass
"""


@case("answer-that-is-not-mpa", worlds=["lo4-root", "lo4-user"], seconds=60, reduced=True)
def not_mpa(world):
    """rdma_cm is told at once that there is no connection, however much of a Reply it looks like."""
    for said in (b"HTTP/1.0 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"MPA ID Req Frame\0\1\0\0",
                 b"MPA ID Rep Frame\0\1\xff\xff"):
        port = world.port()
        speaker = world.start("server", sys.executable, "-c", SPEAKER, port, repr(said), plain=True)
        world.server_ready(speaker, port)
        client = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "1", seconds=15, status=None)
        expect(client.process.returncode not in (0, 139), f"{said}: rping reports success or crashes", client)
        expect("RDMA_CM_EVENT_CONNECT_ERROR, error -71" in client.output, f"{said}: rping is not told EPROTO", client)
        world.finish(speaker, 10, 0, client)


@case("no-route", worlds=["ns-root", "ns-user"], seconds=30)
def no_route(world):
    client = world.run("client", "rping", "-c", "-a", "203.0.113.1", "-p", world.port(), "-C", "1", status=None)
    expect(client.process.returncode != 0 and "RDMA_CM_EVENT_ADDR_ERROR, error -101" in client.output,
           "rping is not told ENETUNREACH", client)
