# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs that only look at the device."""
import signal

from harness import expect, wait_until
from registry import LO4, NAMES, case

NS_AND_LO4 = [name for name in NAMES if not name.startswith("lo6")]


@case("ibv-devices", worlds=NS_AND_LO4, seconds=20, reduced=True)
def ibv_devices(world):
    tool = world.run("server", "ibv_devices")
    expect("uiw_lo" in tool.output, "uiw_lo is not in the list", tool)
    if world.place == "ns":
        expect("uiw_veth0" in tool.output, "uiw_veth0 is not in the list", tool)


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
