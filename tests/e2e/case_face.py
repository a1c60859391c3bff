# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The RoCE face: what programs see with it, and that both faces understand each other."""
import os
import re
import shutil

from case_command import uiwarp
from case_devices import NS_AND_LO4
from case_exchange import gid_index, pingpong
from case_perftest import exchange
from case_pyverbs import PYTHON, need_pyverbs
from case_rping import compared
from harness import Skipped, expect, wait_until
from registry import DIAGONAL, LO4, NAMES, case

IWARP, ROCE = {"UIWARP_FACE": "iwarp"}, {"UIWARP_FACE": "roce"}
NODE_TYPE = "/sys/class/infiniband/uiw_lo/node_type"


def number(tool, name):
    """What ibv_devinfo -v says of the first device that has it."""
    found = re.search(rf"^\s*{name}:\s+(\w+)", tool.output, re.M)
    expect(found, f"ibv_devinfo says no {name}", tool)
    return int(found.group(1), 0)


@case("roce-devinfo", worlds=NS_AND_LO4, seconds=20, reduced=True)
def devinfo(world):
    tool = uiwarp(world, "run", "--as", "roce", "ibv_devinfo", "-v", "-d", world.device)
    for text in (f"hca_id:\t{world.device}", "InfiniBand (0)", "PORT_ACTIVE (4)", "Ethernet"):
        expect(text in tool.output, f"'{text}' is not in what ibv_devinfo -v says", tool)
    expect(number(tool, "port_cap_flags") == 0x04010000, "not a port whose GIDs are addresses", tool)
    expect(number(tool, "max_ah") > 0, "no address handles", tool)
    gids = re.findall(r"GID\[\s*(\d+)\]:\s*(\S+), RoCE (v[12])", tool.output)
    expect([int(index) for index, _, _ in gids] == list(range(number(tool, "gid_tbl_len"))), "not every GID", tool)
    expect([kind for _, _, kind in gids] == ["v1", "v2"] * (len(gids) // 2), "not both types, one by one", tool)
    expect("ffff:" in gids[0][1] and gids[1][1].startswith("::ffff:"), "the IPv4 address does not come first", tool)
    plain = world.run("server", "ibv_devinfo", "-v", "-d", world.device)
    expect("iWARP (1)" in plain.output and number(plain, "max_ah") == 0, "without --as it is no RNIC", plain)


@case("roce-without-loopback", worlds=["ns-root", "ns-user"], seconds=120, reduced=True)
def without_loopback(world):
    """No adapter is on lo: its device is there only when no other one is up, and 127.0.0.1 is the first one's."""
    def devices(settings):
        tool = world.run("server", "ibv_devices", settings=settings)
        return re.findall(r"^\s+(uiw_\w+)", tool.output, re.M)

    both, every = ["uiw_veth0", "uiw_lo"], {"UIWARP_DEVICES": "all"}
    for settings, wanted in ((IWARP, both), (ROCE, both[:1]), ({**ROCE, **every}, both),
                             ({**ROCE, "UIWARP_DEVICES": "lo,veth*"}, both), ({**ROCE, "UIWARP_DEVICES": "lo"}, both[1:])):
        expect(devices(settings) == wanted, f"{settings}: not {wanted} but {devices(settings)}")
    for arguments in ([], ["--json"]):
        tool = uiwarp(world, "devices", *arguments, settings=ROCE)
        expect("left out by the RoCE face" in tool.output, "not a word of lo", tool)

    for address in ("127.0.0.1", "::1"):
        for own in ([], ["-q"]):
            port = world.port()
            common = ["-a", address, "-p", port, "-C", "10", *own]
            server = world.start_server("rping", "-s", *common, port=port, settings=ROCE)
            client = world.start("server", "rping", "-c", "-V", "-v", *common, settings=ROCE)
            world.finish(client, 30, 0, server)
            world.finish(server, 20, 0, client)
            expect(compared(client, 10), f"rping -a {address} {own}", client, server)
    for address in ("127.0.0.1", "127.0.0.5"):
        server = world.start_server("udaddy", "-b", address, port=7174, settings=ROCE)
        client = world.start("server", "udaddy", "-s", address, settings=ROCE)
        world.finish(client, 30, 0, server)
        world.finish(server, 20, 0, client)
        expect("data transfers complete" in client.output, f"udaddy -s {address}", client, server)

    world.ip("server", "link", "set", "veth0", "down")
    expect(devices(ROCE)[-1:] == ["uiw_lo"], "no device of lo, though no other one is up")
    # With an address and without a carrier it has a device, which comes first and is down.
    world.ip("server", "link", "set", "veth0", "up")
    world.ip("client", "link", "set", "veth0", "down")
    wait_until(lambda: devices(ROCE) == both, 10 * world.slow, "the cable is pulled")
    port, where = world.port(), os.path.join(world.bin, "uiwarp-where")
    server = world.start_server(where, "listen", "127.0.0.1", port, 1, port=port, settings=ROCE)
    client = world.start("server", where, "connect", "127.0.0.1", port, settings=ROCE)
    world.finish(client, 20, 0, server)
    expect(client.output == "calls from uiw_lo\n", "127.0.0.1 is another device's, though lo's is shown", client)


@case("roce-ibstat", worlds=LO4, seconds=20)
def ibstat(world):
    if not shutil.which("ibstat"):
        raise Skipped("needs ibstat (package infiniband-diags)")
    tool = world.run("client", "ibstat", "uiw_lo", settings=ROCE)
    for said in ("CA type: uiwarp", "State: Active", "Physical state: LinkUp", "Link layer: Ethernet"):
        expect(said in tool.output, f"'{said}' is not there", tool)
    tool = world.run("client", "ibstat", "-l", settings=ROCE)
    expect("uiw_lo" in tool.output.split(), "uiw_lo is not in the list", tool)
    tool = world.run("client", "ibstat", "-p", settings=ROCE)
    expect(re.match(r"(0x[0-9a-f]{16}\n)+$", tool.output), "not a list of port GUIDs", tool)
    tool = world.run("client", "ibstatus", settings=ROCE)
    expect("Infiniband device 'uiw_lo' port 1 status:" in tool.output and "4: ACTIVE" in tool.output, "no status", tool)


@case("no-management-datagrams", worlds=LO4, seconds=60)
def no_management_datagrams(world):
    """What sends management datagrams is told at once that there is no device for it."""
    tools = [name for name in ("ibaddr", "iblinkinfo", "ibhosts", "perfquery", "sminfo", "saquery") if shutil.which(name)]
    if not tools:
        raise Skipped("needs iblinkinfo and others (package infiniband-diags)")
    for settings in (IWARP, ROCE):
        for name in tools:
            tool = world.run("client", name, seconds=10, status=None, settings=settings)
            expect(tool.process.returncode > 0 and tool.output, "did not end with an error", tool)


@case("roce-run", worlds=LO4, seconds=30)
def run(world):
    """--as sets the face, whatever the environment says; a wrong one is an error that says what is allowed."""
    show = ("sh", "-c", f"echo $UIWARP_FACE; cat {NODE_TYPE}")
    for options, said in ((["--as", "roce"], "roce\n1: CA\n"), (["--as=roce"], "roce\n1: CA\n"),
                          (["--as=iwarp"], "iwarp\n4: RNIC\n"), (["--as", "iwarp", "--"], "iwarp\n4: RNIC\n"),
                          (["--as", "iwarp", "--as", "roce"], "roce\n1: CA\n")):
        for before in (IWARP, ROCE):
            tool = uiwarp(world, "run", *options, *show, settings=before)
            expect(tool.output == said, f"{options} did not give {said}", tool)
    for options in (["--as", "infiniband"], ["--as="], ["--as"]):
        tool = uiwarp(world, "run", *options, *(show if options[-1] != "--as" else ()), status=2)
        expect("iwarp|roce" in tool.output, "the message does not say which faces there are", tool)
    tool = uiwarp(world, "run", "--as", "roce", status=2)
    expect("which program?" in tool.output, "no word of the program that is missing", tool)
    tool = world.run("client", "ibv_devinfo", settings={"UIWARP_FACE": "infiniband"}, status=None)
    expect("iwarp|roce" in tool.output, "the message does not say which faces there are", tool)


@case("roce-command", worlds=LO4, seconds=40)
def command(world):
    for settings, kind, said in ((IWARP, "iWARP", "face: iwarp"), (ROCE, "RoCE", "face: roce")):
        tool = uiwarp(world, "doctor", settings=settings)
        expect(said in tool.output, f"the doctor does not say '{said}'", tool)
        tool = uiwarp(world, "devices", settings=settings)
        row = next(line.split() for line in tool.output.splitlines() if line.startswith("uiw_lo "))
        expect(row[2] == kind, f"uiw_lo is not shown as {kind}", tool)
        for index, kinds in ((0, "RoCE v1"), (1, "RoCE v2")):
            shown = re.search(rf"uiw_lo .*\n(?:  GID.*\n)*?  GID {index} +127\.0\.0\.1  {kinds}\n", tool.output)
            expect((shown is not None) == (kind == "RoCE"), f"GID {index}", tool)


@case("roce-beside-iwarp", worlds=LO4, seconds=40)
def beside(world):
    """Processes of one user with different faces: each goes on seeing its own."""
    times = 30
    read = ("sh", "-c", f"for i in $(seq {times}); do cat {NODE_TYPE}; done")
    tools = [(world.start("client", *read, settings=face), said)
             for face, said in ((IWARP, "4: RNIC\n"), (ROCE, "1: CA\n")) * 2]
    for tool, said in tools:
        world.finish(tool, 30)
        expect(tool.output == times * said, f"not always {said}", tool)


@case("roce-rc-pingpong", worlds=NAMES, seconds=120, reduced=True)
def rc_pingpong(world):
    """By GIDs of both types, and with an end that has the other face."""
    iwarp, first, second = (gid_index(world), IWARP), (2 * gid_index(world), ROCE), (2 * gid_index(world) + 1, ROCE)
    for ends in ((first, first), (second, second), (second, iwarp), (iwarp, first)):
        pingpong(world, ["ibv_rc_pingpong", "-c", "-n", "200"], ends, 25)


@case("roce-perftest", worlds=DIAGONAL, seconds=200, serial=True, reduced=True)
def perftest(world):
    """Without rdma_cm: with the GID that a tool chooses by itself, and with each of both types; and with an end that
    has the other face."""
    few = ["-d", world.device, "-n", "100"]
    for index in ([], ["-x", "0"], ["-x", "1"]):
        for tool in ("ib_write_bw", "ib_send_lat"):
            exchange(world, tool, few + index, 30, cm=False, settings=ROCE)
    _, client, server = exchange(world, "ib_send_bw", few, 30, cm=False, settings=ROCE)
    for end in (client, server):
        expect(end.process.returncode == 0, "not 0", client, server)
    for ours, theirs in ((IWARP, ROCE), (ROCE, IWARP)):
        exchange(world, "ib_write_bw", [*few, "-x", "0"], 30, cm=False, settings=ours, server_settings=theirs)


@case("roce-ucx-transport", worlds=DIAGONAL, seconds=120, serial=True)
def ucx_transport(world):
    """UCX's RC transport alone, which wants no iWARP device: active messages, Writes, Reads and atomics."""
    for test in (["-t", "am_lat"], ["-t", "put_lat"], ["-t", "put_bw", "-s", "65536", "-D", "zcopy"],
                 ["-t", "get", "-s", "4096", "-D", "zcopy"], ["-t", "add_mr", "-s", "8"], ["-t", "fadd", "-s", "8"],
                 ["-t", "cswap", "-s", "8"]):
        ucx_perftest(world, ["-d", f"{world.device}:1", "-x", "rc_verbs", *test], ROCE)


@case("roce-ucx", worlds=DIAGONAL, seconds=240, serial=True, reduced=True)
def ucx(world):
    """UCX as programs use it, with no setting of its own, and by each kind of queue pair. Between hosts it takes the
    loopback devices of both for one network, and has to leave them out since they are slow: large messages would wait."""
    for transports in (None, "ud", "rc"):
        settings = {**ROCE, **({"UCX_TLS": transports} if transports else {})}
        for test in (["-t", "tag_lat"], ["-t", "tag_bw", "-s", "65536"], ["-t", "tag_lat", "-s", "1000000"],
                     ["-t", "ucp_put_lat"], ["-t", "ucp_get"], ["-t", "ucp_fadd", "-s", "8"]):
            # A megabyte has its time where other programs keep the processors busy, too.
            ucx_perftest(world, test, settings, 100 if "1000000" in test else 500)


def ucx_perftest(world, arguments, settings, count=500):
    if not shutil.which("ucx_perftest"):
        raise Skipped("needs ucx_perftest (package ucx-utils)")
    port = world.port()
    common = ["ucx_perftest", "-p", port, "-n", count, *arguments]
    server = world.start_server(*common, port=port, settings=settings)
    client = world.start("client", *common, world.server, settings=settings)
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect("ERROR" not in client.output + server.output and re.search(rf"^Final: +{count} ", client.output, re.M),
           f"{arguments}: no result", client, server)


MAKE_HANDLES = """
import ipaddress
import sys
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
context = Context(name=sys.argv[1])
pd = PD(context)
for gid in sys.argv[2:]:
    to = GlobalRoute(dgid=GID(ipaddress.ip_address(gid).exploded), sgid_index=1)
    try:
        AH(pd, attr=AHAttr(gr=to, is_global=1, port_num=1))
        print(gid, "made")
    except PyverbsRDMAError as error:
        print(gid, "errno", error.error_code)
"""


@case("roce-address-handles", worlds=["ns-root", "ns-user"], seconds=40)
def address_handles(world):
    """Where there is a route, and where there is none."""
    need_pyverbs()
    there, group, nowhere = "::ffff:10.91.0.1", "::ffff:239.1.2.3", "::ffff:203.0.113.77"
    tool = world.run("client", PYTHON, "-B", "-c", MAKE_HANDLES, "uiw_veth0", there, group, nowhere, settings=ROCE)
    for said in (f"{there} made", f"{group} made", f"{nowhere} errno 101"):
        expect(said in tool.output, f"not '{said}'", tool)
    expect("no route" in tool.output, "no word about the route", tool)
