# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A system in which every program sees the devices (`uiwarp enable`)."""
import os

from harness import expect
from registry import case
from system import System

ROOT = ["lo4-root"]
BARE = ["env", "-i"]   # nothing of the environment gets to the program


def library(world):
    return os.path.join(os.path.dirname(world.bin), "lib", "libuiwarp-preload.so")


@case("system-enable", worlds=ROOT, seconds=90)
def enable(world):
    """Programs with an empty environment, and set-uid ones, which the loader keeps LD_PRELOAD from."""
    with System(world) as system:
        set_uid = f"{system.folder}/ibv_devices"
        system.run("sh", "-c", f'cp "$(command -v ibv_devices)" {set_uid} && chmod 4755 {set_uid}')
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        preloaded = [*as_nobody, "env", f"LD_PRELOAD={library(world)}", set_uid]
        for program in ([*BARE, "ibv_devices"], preloaded):
            tool = system.run(*program, status=None)
            expect("uiw_lo" not in tool.output, "there is a device before there should be one", tool)
        in_vain = [*as_nobody, os.path.join(world.bin, "uiwarp"), "run", set_uid]
        tool = system.run(*in_vain, status=None)
        expect("uiwarp enable" in tool.output, "`uiwarp run` does not say what would help", tool)

        tool = system.uiwarp("enable")
        expect("/etc/ld.so.preload" in tool.output, "it does not say what it did", tool)
        for program in ([*BARE, "ibv_devices"], [*as_nobody, *BARE, "ibv_devices"], [*as_nobody, *BARE, set_uid]):
            tool = system.run(*program)
            expect("uiw_lo" in tool.output, "there is no device", tool)
        tool = system.run(*in_vain)
        expect("warning" not in tool.output, "`uiwarp run` still warns", tool)
        tool = system.run(*BARE, "cat", "/proc/self/maps")
        expect("libuiwarp-preload.so" in tool.output, "nothing was preloaded", tool)
        expect("libuiwarp.so" not in tool.output, "the stack was loaded into a program that needs no RDMA", tool)
        expect("seen by every program" in system.uiwarp("doctor").output, "the doctor does not know")

        port = world.port()
        server = system.start(*BARE, "rping", "-s", "-a", "127.0.0.1", "-p", port, "-C", 5)
        world.server_ready(server, port)
        system.run(*BARE, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", 5, "-V")
        world.finish(server, 20)

        system.uiwarp("disable")
        tool = system.run(*BARE, "ibv_devices", status=None)
        expect("uiw_lo" not in tool.output, "there still is a device", tool)
        system.run("test", "!", "-e", "/etc/ld.so.preload")
        system.run("test", "!", "-e", "/etc/libibverbs.d/uiwarp.driver")
        expect("nothing" in system.uiwarp("disable").output, "it does not say that there was nothing to do")


@case("system-enable-keeps", worlds=ROOT, seconds=60)
def keeps(world):
    """What else the list names stays, and what cannot be written is said."""
    others = "libm.so.6 # not ours: libuiwarp-preload.so\n"   # of two comments ld.so may overlook one
    with System(world) as system:
        system.write_preload_list(others + "libdl.so.2:/gone/libuiwarp-preload.so libz.so.1")
        system.uiwarp("enable")
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n{library(world)}\n", system.preload_list())
        system.uiwarp("enable")   # once more changes nothing
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n{library(world)}\n", system.preload_list())
        system.uiwarp("disable")
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n", system.preload_list())
        system.run("mount", "-o", "bind,ro", "/etc", "/etc")
        tool = system.uiwarp("enable", status=1)
        expect("cannot write /etc/ld.so.preload" in tool.output, "it does not say why", tool)


@case("system-doctor", worlds=ROOT, seconds=90)
def doctor(world):
    """The doctor finds a wrong path and a wrong architecture; `enable` puts them right."""
    with System(world) as system:
        wrong = f"{system.folder}/libuiwarp-preload.so"
        system.write_preload_list(wrong + "\n")
        tool = system.uiwarp("doctor", status=1)
        expect(f"FAIL  /etc/ld.so.preload names {wrong}" in tool.output and "cannot open" in tool.output
               and "uiwarp enable" in tool.output, "the doctor does not see that the file is missing", tool)
        # The fifth octet of an ELF file tells 64 bits from 32.
        system.run("sh", "-c", f'cp {library(world)} {wrong} && printf "\\001" | dd of={wrong} bs=1 seek=4 conv=notrunc')
        tool = system.uiwarp("doctor", status=1)
        expect(f"FAIL  /etc/ld.so.preload names {wrong}" in tool.output and "ELFCLASS32" in tool.output,
               "the doctor does not see the wrong architecture", tool)
        system.run("chmod", "o-r", wrong)
        tool = system.uiwarp("doctor", status=1)
        expect(f"other users may not get at {wrong}" in tool.output, "the doctor does not see who cannot read it", tool)
        system.uiwarp("enable")
        tool = system.uiwarp("doctor")
        expect("seen by every program" in tool.output and "FAIL" not in tool.output, "it was not put right", tool)
        system.run("rm", "/etc/libibverbs.d/uiwarp.driver")
        tool = system.uiwarp("doctor", status=1)
        expect("FAIL  /etc/ld.so.preload" in tool.output, "the doctor does not see that libibverbs lacks the driver", tool)
