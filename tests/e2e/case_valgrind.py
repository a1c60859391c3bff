# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs below valgrind: they end, with nothing to report but what the suppressions name."""
import os
import re
import shutil

from harness import Skipped, expect
from registry import LO4, case

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "utils", "suppressions")
FAULT = 9   # exit status when valgrind reports something


def valgrind(*options):
    if not shutil.which("valgrind"):
        raise Skipped("needs valgrind")
    return ["valgrind", *options]


def memcheck(*options):
    with open(os.path.join(SUPPRESSIONS, "uiwarp.valgrind"), encoding="ascii"):
        pass
    return [*valgrind("-q"), f"--error-exitcode={FAULT}", f"--suppressions={SUPPRESSIONS}/uiwarp.valgrind", *options]


def run_both(world, port, server_command, client_command, settings=None):
    server = world.start("server", *server_command, settings=settings)
    world.server_ready(server, port)
    client = world.start("client", *client_command, settings=settings)
    world.finish(client, 90, 0, server)
    world.finish(server, 60, 0, client)
    return server, client


@case("valgrind-board", worlds=LO4, seconds=150)
def board(world):
    """Nothing undefined is read or sent, nothing is leaked; and the log says which engine runs."""
    port = world.port()
    program = [*memcheck("--leak-check=full"), os.path.join(world.bin, "uiwarp-board")]
    tools = run_both(world, port, [*program, "serve", world.server, port],
                     [*program, "write", world.server, port, "first", "last"], {"UIWARP_LOG": "info"})
    for tool in tools:
        expect("valgrind cannot run io_uring; using epoll" in tool.output, "it does not say which engine it takes", *tools)
    expect("2 lines, closed by 4711" in tools[0].output, "the server did not see the lines", *tools)


@case("valgrind-rping", worlds=LO4, seconds=150)
def rping(world):
    port = world.port()
    common = ["-a", world.server, "-p", port, "-C", 3, "-v", "-V"]
    tools = run_both(world, port, [*memcheck(), "rping", "-s", *common], [*memcheck(), "rping", "-c", *common])
    expect("rdma-ping-2" in tools[1].output, "not all pings came back", *tools)


@case("valgrind-rdma-server", worlds=["lo4-root", "lo4-user"], seconds=150)
def rdma_server(world):
    """It ends while the engine closes its connection: that is no leak."""
    port = world.port()
    program = memcheck("--leak-check=full")
    run_both(world, port, [*program, "rdma_server", "-p", port], [*program, "rdma_client", "-s", world.server, "-p", port],
             {"UIWARP_FACE": "roce"})


@case("valgrind-pingpong", worlds=LO4, seconds=150)
def pingpong(world):
    """Both ends spin, and valgrind lets one thread of each run at a time."""
    port = world.port()
    command = [*memcheck(), "ibv_rc_pingpong", "-d", world.device, "-g", 0, "-c", "-n", 20, "-p", port]
    run_both(world, port, command, [*command, world.server])


@case("valgrind-reachable", worlds=LO4, seconds=150)
def reachable(world):
    """What librdmacm's open device keeps in use at the end is found by pointers to its beginning: memcheck does
    not call it perhaps lost, whatever registers and stacks hold."""
    port = world.port()
    board = os.path.join(world.bin, "uiwarp-board")
    server, _ = run_both(world, port, [*valgrind("--leak-check=full", "--show-leak-kinds=all"), board, "serve",
                                       world.server, port], [board, "write", world.server, port, "first"])
    records = [record for record in re.split(r"==\d+== *\n", server.output) if "loss record" in record]
    engine = [record for record in records if "uiw::engine::Engine::" in record and "_dl_allocate_tls" not in record]
    expect(engine, "it shows nothing that the engine has in use", server)
    expect(all("still reachable" in record for record in engine), "what the engine uses is perhaps lost", server)


@case("valgrind-io-uring", worlds=LO4, seconds=60)
def io_uring(world):
    """Who insists on io_uring is told, and does not hang."""
    tool = world.run("client", *memcheck(), "ibv_devinfo", "-d", world.device, seconds=50, status=None,
                     settings={"UIWARP_ENGINE": "io_uring"})
    expect("valgrind cannot run io_uring" in tool.output and tool.process.returncode not in (0, FAULT),
           "it does not say what is wrong", tool)
