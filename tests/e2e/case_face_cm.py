# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma_cm by InfiniBand's rules, which the RoCE face has: with that face at both ends, and at one."""
from case_face import IWARP, ROCE
from case_perftest import exchange
from case_pyverbs import run_suite
from case_rping import compared
from harness import expect
from registry import DIAGONAL, LO4, case

# Of server and client.
FACES = [(ROCE, ROCE), (ROCE, IWARP), (IWARP, ROCE)]
WORLDS = ["lo4-root", "lo4-user", "lo6-user", "ns-root"]


def both_end(world, faces, server_command, client_command, port, status=0):
    """Runs the two to their ends, and returns them."""
    server = world.start_server(*server_command, port=port, settings=faces[0])
    client = world.start("client", *client_command, settings=faces[1])
    world.finish(client, 30, status, server)
    world.finish(server, 20, status, client)
    return server, client


@case("faces-rping", worlds=WORLDS, seconds=120, reduced=True)
def rping(world):
    """Also with -q: queue pairs that the program creates and moves itself."""
    for faces in FACES:
        for own in ([], ["-q"]):
            port = world.port()
            common = ["-a", world.server, "-p", port, "-C", "20", "-S", "4096", *own]
            server, client = both_end(world, faces, ["rping", "-s", *common], ["rping", "-c", "-V", "-v", *common], port)
            expect(compared(client, 20), f"{own}: 20 pings were not all compared", client, server)


@case("faces-rdma-cm", worlds=WORLDS, seconds=180, reduced=True)
def samples(world):
    """Many connections, their ids on other channels, synchronous ids, and the steps of a connection one by one."""
    for faces in FACES:
        for extra in (["-c", "20", "-C", "50", "-S", "10000"], ["-m", "-c", "5"]):
            port = world.port()
            common = ["-p", port, *extra]
            for tool in both_end(world, faces, ["ucmatose", "-b", world.server, *common],
                                 ["ucmatose", "-s", world.server, *common], port):
                expect("return status 0" in tool.output, f"ucmatose {extra}", tool)
        port = world.port()
        server, client = both_end(world, faces, ["rdma_server", "-s", world.server, "-p", port],
                                  ["rdma_client", "-s", world.server, "-p", port], port)
        expect("rdma_client: end 0" in client.output and "rdma_server: end 0" in server.output,
               "not both ended with 0", client, server)
        port = world.port()
        server = world.start_server("cmtime", "-b", world.server, "-p", port, "-c", "20", port=port, settings=faces[0])
        client = world.start("client", "cmtime", "-s", world.server, "-p", port, "-c", "20", settings=faces[1])
        world.finish(client, 40, 0, server)
        expect("error" not in client.output and not server.ended(), "cmtime", client, server)


@case("faces-nobody-listens", worlds=LO4, seconds=30, reduced=True)
def nobody_listens(world):
    """The reason is InfiniBand's: invalid service ID."""
    client = world.run("client", "rping", "-c", "-a", world.server, "-p", world.port(), "-C", "1", status=None,
                       settings=ROCE)
    expect("RDMA_CM_EVENT_REJECTED, error 8" in client.output, "rping is not told why", client)


@case("faces-rsockets", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=60)
def rsockets(world):
    """On InfiniBand rsockets tell of what they wrote by Writes with immediate. Both ends have to."""
    for test in ("rstream", "riostream"):
        port = world.port()
        common = [test, "-p", port, "-S", "65536", "-I", "20", "-C", "10", "-T", "v"]
        for tool in both_end(world, (ROCE, ROCE), common, [*common, "-s", world.server], port):
            expect("verification failed" not in tool.output and "custom " in tool.output, f"{test}: no result", tool)


@case("faces-perftest", worlds=DIAGONAL, seconds=240, serial=True, reduced=True)
def perftest(world):
    """ib_send_bw has a protocol of its own for each transport, and so needs the same one at both ends. Servers are late
    with their second listener as in perftest-acknowledged."""
    for tool in ("ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_atomic_lat"):
        for server, client in FACES[:1] if tool == "ib_send_bw" else FACES:
            exchange(world, tool, ["-n", "100"], 60, settings=client, server_settings=server, attempts=30)


@case("faces-pyverbs", worlds=LO4, seconds=120, serial=True)
def pyverbs(world):
    """With queue pairs of librdmacm, and of the program, which says itself that it is ready."""
    run_suite(world, [("test_rdmacm.CMTestCase", ["test_rdmacm_async_read", "test_rdmacm_async_reject_traffic",
                                                  "test_rdmacm_async_traffic",
                                                  "test_rdmacm_async_traffic_external_qp",
                                                  "test_rdmacm_async_write", "test_rdmacm_sync_traffic"])], ROCE)
