# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""libfabric's verbs provider, by its own tools. It never uses loopback interfaces."""
from applications import need
from case_face import ROCE
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
    # For a domain by name it binds to localhost first, which Linux allows where no device has that address.
    tool = world.run("server", "fi_info", "-p", "verbs", "-d", world.device, "-t", "FI_EP_MSG",
                     settings={"UIWARP_DEVICES": "!lo"})
    expect(f"domain: {world.device}" in tool.output, "not without the loopback device", tool)


def pingpong_pair(world, options, settings=None):
    # Line by line, so that what an end has printed is known while it runs.
    common = ["stdbuf", "-oL", "fi_pingpong", "-c", "-I", "50", *options]
    server = world.start_server(*common, port=CONTROL_PORT, settings=settings)
    return server, world.start("client", *common, world.server, settings=settings)


def results(end):
    return [line for line in end.output.splitlines() if "=50" in line]


def pingpong(world, *options, sizes=6, settings=None):
    server, client = pingpong_pair(world, options, settings)
    world.finish(client, 40, 0, server)
    world.finish(server, 20, 0, client)
    for end in (client, server):
        expect(len(results(end)) == (1 if "-S" in options else sizes), "results are missing", client, server)


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


@case("roce-fi-pingpong", worlds=["ns-user"], seconds=100, serial=True)
def with_datagrams(world):
    """Its endpoints for datagrams would take loopback devices, too: this face shows none beside others."""
    need("fi_pingpong", "libfabric-bin")
    pingpong(world, "-p", "verbs", "-e", "msg", settings={**ROCE, "UIWARP_DEVICES": "all"})
    pingpong(world, "-p", "verbs", "-e", "msg", settings=ROCE)
    pingpong(world, "-p", "verbs;ofi_rxd", "-e", "rdm", settings=ROCE)
    # Not the sizes that are larger than what one datagram takes.
    pingpong(world, "-p", "verbs", "-e", "dgram", sizes=3, settings=ROCE)
