# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""libfabric's verbs provider, by its own tools and under Open MPI. It never uses loopback interfaces."""
import os

from applications import folder, need
from harness import expect, wait_until
from registry import case

WORLDS = ["ns-root", "ns-user"]
CONTROL_PORT = 47592   # fi_pingpong's own, for TCP; in a namespace nobody else has it
RDM = "verbs;ofi_rxm"


@case("fi-info", worlds=WORLDS, seconds=30)
def info(world):
    need("fi_info", "libfabric-bin")
    tool = world.run("server", "fi_info", "-p", "verbs")
    for line in (f"domain: {world.device}", "type: FI_EP_MSG", "protocol: FI_PROTO_IWARP", "type: FI_EP_RDM"):
        expect(line in tool.output, f"does not say '{line}'", tool)


def pingpong_pair(world, options):
    # Line by line, so that what an end has printed is known while it runs.
    common = ["stdbuf", "-oL", "fi_pingpong", "-c", "-I", "50", *options]
    server = world.start_server(*common, port=CONTROL_PORT)
    return server, world.start("client", *common, world.server)


def results(end):
    return [line for line in end.output.splitlines() if "=50" in line]


def pingpong(world, *options):
    server, client = pingpong_pair(world, options)
    world.finish(client, 40, 0, server)
    world.finish(server, 20, 0, client)
    for end in (client, server):
        expect(len(results(end)) == (1 if "-S" in options else 6), "results are missing", client, server)


@case("fi-pingpong", worlds=WORLDS, seconds=100, serial=True)
def message(world):
    """Both ends compare what comes (-c)."""
    need("fi_pingpong", "libfabric-bin")
    pingpong(world, "-p", "verbs", "-e", "msg")
    pingpong(world, "-p", "verbs", "-e", "msg", "-S", "4000001")


@case("fi-pingpong-rdm", worlds=WORLDS, seconds=100, serial=True)
def reliable_datagrams(world):
    """Both ends have all results; whether they end is not asked: when the other end's last message and the end of the
    connection come together, ofi_rxm 1.17 destroys the queue pair before it has polled that message, and waits for
    it. Either end may be the one."""
    need("fi_pingpong", "libfabric-bin")
    for options in ([], ["-m", "tagged"]):
        ends = pingpong_pair(world, ["-p", RDM, "-e", "rdm", *options])
        wait_until(lambda ends=ends: all(end.ended() or len(results(end)) == 6 for end in ends), 40 * world.slow,
                   "both ends have all results", *ends)
        for end in ends:
            expect(len(results(end)) == 6, "results are missing", *ends)
            expect(end.process.poll() in (None, 0), "an end failed", *ends)
        # Only now: the other end may fail when one is gone.
        for end in ends:
            end.destroy()


@case("openmpi", worlds=WORLDS, seconds=60, serial=True)
def openmpi(world):
    """NetPIPE compares what arrives. Two processes on one host, by way of the address that its device has."""
    need("mpirun", "openmpi-bin")
    need("NPopenmpi", "netpipe-openmpi")
    with folder(world) as path:
        # mpirun wants a place for its sockets, and for the unprivileged user a home.
        settings = {"HOME": path, "TMPDIR": path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        tool = world.run("server", "mpirun", "--oversubscribe", "-np", "2", "--mca", "pml", "cm", "--mca", "mtl", "ofi",
                         "--mca", "mtl_ofi_provider_include", RDM,
                         "NPopenmpi", "-i", "-l", "1", "-u", "300000", "-n", "3", "-o", os.path.join(path, "np.out"),
                         seconds=45, settings=settings)
        rows = [line for line in tool.output.splitlines() if " bytes " in line and " times --> " in line]
        expect(len(rows) > 30 and all(row.rstrip().endswith("Integrity check passed") for row in rows),
               "not every size passed its integrity check", tool)
