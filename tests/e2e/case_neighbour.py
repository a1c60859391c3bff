# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Hosts that have RDMA devices of their own. tests/interop/neighbour.py does it with real ones."""
import os

from harness import expect
from registry import case
from system import System

ROOT = ["lo4-root"]
EXCLUSIVE = {"UIWARP_MODE": "exclusive"}
AUTO = {"UIWARP_MODE": "auto"}


@case("neighbour-auto", worlds=ROOT)
def auto(world):
    """uiwarp stays away, and says so where somebody asks."""
    with System(world) as system:
        system.add_foreign_device()
        for settings in (None, AUTO):
            tool = system.uiwarp("run", "ibv_devices", settings=settings)
            expect("rxe0" in tool.output and "uiw_" not in tool.output, "it does not stay away", tool)
            expect(("UIWARP_MODE=exclusive" in tool.output) == (settings is None),
                   "`uiwarp run` has to warn unless auto was asked for", tool)
        tool = system.uiwarp("run", "ls", "/sys/class/infiniband", "/dev/infiniband", settings={**AUTO, "UIWARP_LOG": "info"})
        expect("rxe0" in tool.output and "uverbs0" in tool.output and "uiw_" not in tool.output, "files are hidden", tool)
        expect("stays away" in tool.output, "UIWARP_LOG=info does not say it", tool)
        tool = system.uiwarp("doctor", status=1)
        failures = [line for line in tool.output.splitlines() if line.startswith("FAIL")]
        expect(len(failures) == 1 and failures[0].endswith(": rxe0") and "UIWARP_MODE=exclusive" in tool.output,
               "the doctor does not say it", tool)
        tool = system.uiwarp("enable", status=1)
        expect("nothing was changed" in tool.output and "rxe0" in tool.output, "`uiwarp enable` does not say it", tool)


@case("neighbour-exclusive", worlds=ROOT, seconds=90)
def exclusive(world):
    """Programs see uiwarp's devices and no others."""
    with System(world) as system:
        system.add_foreign_device()
        for program in (["ibv_devices"], ["ibv_devinfo"], ["ls", "/sys/class/infiniband", "/dev/infiniband"]):
            tool = system.uiwarp("run", *program, settings=EXCLUSIVE)
            expect("uiw_lo" in tool.output and "warning" not in tool.output, "there is no device", tool)
            expect("rxe0" not in tool.output and "uverbs0" not in tool.output, "the host's device is not hidden", tool)
        # Under `uiwarp run` the doctor itself has them hidden.
        for command in (["doctor"], ["run", os.path.join(world.bin, "uiwarp"), "doctor"]):
            tool = system.uiwarp(*command, settings=EXCLUSIVE)
            expect("are hidden (UIWARP_MODE=exclusive): rxe0" in tool.output, "the doctor does not say it", tool)
        port = world.port()
        run = [os.path.join(world.bin, "uiwarp"), "run", "rping", "-a", "127.0.0.1", "-p", port, "-C", 5, "-V"]
        server = system.start(*run, "-s", settings=EXCLUSIVE)
        world.server_ready(server, port)
        system.run(*run, "-c", settings=EXCLUSIVE)
        world.finish(server, 20)
