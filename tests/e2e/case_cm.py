# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connection management: many connections, synchronous ids, timing."""
from harness import expect
from registry import case


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
