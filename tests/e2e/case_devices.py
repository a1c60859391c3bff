# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Which devices there are, and which of them a program gets."""
import os
import shutil
import signal

from case_perftest import exchange
from harness import Skipped, expect, wait_until
from registry import LO4, NAMES, case

NS_AND_LO4 = [name for name in NAMES if not name.startswith("lo6")]


@case("ibv-devices", worlds=NS_AND_LO4, seconds=20, reduced=True)
def ibv_devices(world):
    tool = world.run("server", "ibv_devices")
    expect("uiw_lo" in tool.output, "uiw_lo is not in the list", tool)
    if world.place == "ns":
        expect("uiw_veth0" in tool.output, "uiw_veth0 is not in the list", tool)
    names = [line.split()[0] for line in tool.output.splitlines() if line.strip().startswith("uiw_")]
    expect(names[-1] == "uiw_lo", "programs that take the first device get loopback", tool)


@case("ibv-devinfo", worlds=NS_AND_LO4, seconds=20, reduced=True)
def ibv_devinfo(world):
    tool = world.run("server", "ibv_devinfo", "-v")
    for text in ("hca_id:\tuiw_lo", "iWARP (1)", "PORT_ACTIVE (4)", "Ethernet"):
        expect(text in tool.output, f"'{text}' is not in what ibv_devinfo -v says", tool)
    guids = [line.split()[1] for line in tool.output.splitlines() if "node_guid" in line]
    expect(len(set(guids)) == len(guids), "two devices have the same GUID", tool)
    expect("0000:0000:0000:0000" not in guids, "a GUID is zero", tool)
    again = world.run("server", "ibv_devinfo", "-v")
    expect(guids == [line.split()[1] for line in again.output.splitlines() if "node_guid" in line],
           "the GUIDs changed from one process to the next", tool, again)


@case("ibv-asyncwatch", worlds=LO4, seconds=20, reduced=True)
def ibv_asyncwatch(world):
    tool = world.start("server", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "uiw_lo")
    wait_until(lambda: tool.ended() or "async event FD" in tool.output, 10 * world.slow, "ibv_asyncwatch waits for events")
    expect(not tool.ended(), "ibv_asyncwatch ended by itself", tool)
    tool.signal(signal.SIGTERM)
    world.finish(tool, 10, 128 + signal.SIGTERM)


@case("each-device", worlds=["ns-root", "ns-user"], seconds=60)
def each_device(world):
    """-d chooses: ibv_devinfo shows that one only, perftest and ibv_rc_pingpong go through it."""
    for device in ("uiw_lo", "uiw_veth0"):
        tool = world.run("server", "ibv_devinfo", "-d", device)
        expect(tool.output.count("hca_id:") == 1 and f"hca_id:\t{device}" in tool.output, f"not {device} alone", tool)
    wrong = world.run("server", "ibv_devinfo", "-d", "uiw_none", status=None)
    expect(wrong.process.returncode != 0 and "wasn't found" in wrong.output, "a device that is not there", wrong)
    for device, number in (("uiw_lo", "127:00:00:01"), ("uiw_veth0", "10:91:00:01")):
        # Both ends on one host, which has both devices.
        _, client, server = exchange(world, "ib_write_bw", ["-d", device, "-n", "100"], 30, cm=False, side="server")
        for end in (client, server):
            expect(f"Device         : {device}" in end.output and f"{number}\n" in end.output,
                   f"not through {device}", client, server)


def where(world, side, address, port, status=0):
    return world.run(side, os.path.join(world.bin, "uiwarp-where"), "connect", address, port, seconds=20, status=status)


@case("device-of-an-address", worlds=["ns-root", "ns-user"], seconds=60)
def device_of_an_address(world):
    """Who binds to the address of one device is reached there only; who binds to none, everywhere, by IPv4 and IPv6.
    Ids have the device through which they are connected."""
    for side, address in (("server", "fd91::1/64"), ("client", "fd91::2/64")):
        world.ip(side, "address", "add", address, "dev", "veth0", "nodad")
    port = world.port()
    one = world.start_server(os.path.join(world.bin, "uiwarp-where"), "listen", "10.91.0.1", port, 2, port=port)
    for address in ("127.0.0.1", "fd91::1"):
        refused = where(world, "server", address, port, status=1)
        expect("rdma_connect: errno 111" in refused.output, f"not refused at {address}", refused, one)
    for side, device in (("client", "uiw_veth0"), ("server", "uiw_veth0")):
        client = where(world, side, "10.91.0.1", port)
        expect(client.output == f"calls from {device}\n", f"the {side} does not call from {device}", client, one)
    world.finish(one, 20)
    expect(one.output == "listens on uiw_veth0\n" + 2 * "accepts on uiw_veth0\n", "not on uiw_veth0", one)

    port = world.port()
    places = (("server", "127.0.0.1", "uiw_lo"), ("server", "::1", "uiw_lo"), ("client", "10.91.0.1", "uiw_veth0"),
              ("client", "fd91::1", "uiw_veth0"), ("server", "fd91::1", "uiw_veth0"))
    every = world.start_server(os.path.join(world.bin, "uiwarp-where"), "listen", "::", port, len(places), port=port)
    for side, address, device in places:
        client = where(world, side, address, port)
        expect(client.output == f"calls from {device}\n", f"not from {device} to {address}", client, every)
    world.finish(every, 20)
    expect(every.output == "listens on none\n" + "".join(f"accepts on {device}\n" for _, _, device in places),
           "not accepted on the devices that were called", every)


@case("no-device-of-loopback", worlds=["lo4-root", "lo4-user"], seconds=20)
def no_device_of_loopback(world):
    """As on Linux an id may be bound to localhost without a port where no device has that address; but nobody would
    reach it there, so it cannot listen."""
    listener = world.run("server", os.path.join(world.bin, "uiwarp-where"), "listen", "127.0.0.1", "0", "1", status=1,
                         settings={"UIWARP_DEVICES": "!lo"})
    expect(listener.output.startswith("listens on none\n") and listener.output.endswith("rdma_listen: errno 19\n")
           and "UIWARP_DEVICES" in listener.output,
           "not refused when it listens", listener)


NOT_IWARP = {
    "ibv_uc_pingpong": (["-d", "uiw_lo", "-g", "0", "127.0.0.1"], "Couldn't create QP"),
    "ibv_ud_pingpong": (["-d", "uiw_lo", "-g", "0", "127.0.0.1"], "Couldn't create QP"),
    "ibv_xsrq_pingpong": (["-d", "uiw_lo", "-g", "0", "127.0.0.1"], "Couldn't Open the XRC Domain 95"),
    "mckey": (["-m", "239.1.1.1", "-b", "127.0.0.1"], "unable to create QP: Operation not supported"),
    "udaddy": (["-s", "127.0.0.1"], "unable to create QP: Operation not supported"),
    "udpong": (["-s", "127.0.0.1"], "Operation not supported"),
}


@case("not-for-iwarp", worlds=LO4, seconds=60, reduced=True)
def not_for_iwarp(world):
    """What iWARP does not have is refused at once, with the right error."""
    for program, (arguments, said) in NOT_IWARP.items():
        tool = world.run("client", program, *arguments, seconds=15, status=None)
        expect(tool.process.returncode not in (0, 139) and said in tool.output, f"not '{said}'", tool)


@case("ibstatus", worlds=LO4, seconds=30)
def ibstatus(world):
    """A script that goes into the directory of the devices and looks around there."""
    if not shutil.which("ibstatus"):
        raise Skipped("needs ibstatus (package infiniband-diags)")
    for arguments in ([], ["uiw_lo"], ["uiw_lo:1"]):
        tool = world.run("client", "ibstatus", *arguments)
        for said in ("Infiniband device 'uiw_lo' port 1 status:", "0000:0000:0000:0000:0000:ffff:7f00:0001", "4: ACTIVE"):
            expect(said in tool.output, f"'{said}' is not there", tool)
