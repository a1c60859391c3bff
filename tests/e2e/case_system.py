# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A system in which every program sees the devices (`uiwarp enable`): a mount namespace with an /etc of its own."""
import os
import shutil
import tempfile

from harness import Skipped, expect, wait_until
from registry import case

ROOT = ["lo4-root"]
BARE = ["env", "-i"]   # nothing of the environment gets to the program


class System:
    """`folder` is seen inside only; /etc inside is a copy."""

    def __init__(self, world):
        for program in ("unshare", "nsenter"):
            if not shutil.which(program):
                raise Skipped(f"needs {program} (package util-linux)")
        self._world = world
        self.folder = tempfile.mkdtemp(prefix="uiwarp-system-")
        self._holder = world.start("client", "unshare", "--mount", "--propagation", "private", "sh", "-c", f"""
            mount -t tmpfs -o mode=755 tmpfs {self.folder} && cp -a /etc {self.folder}/etc &&
            mount --bind {self.folder}/etc /etc && rm -f /etc/ld.so.preload /etc/libibverbs.d/uiwarp.driver &&
            echo made && exec sleep 1000""", plain=True)
        wait_until(lambda: self._holder.ended() or "made" in self._holder.output, 20, "a mount namespace is made")
        if self._holder.ended():
            self.close()
            raise Skipped(f"cannot make a mount namespace here: {self._holder.output.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._holder.destroy()
        os.rmdir(self.folder)

    def start(self, *program):
        return self._world.start("client", "nsenter", "--mount", f"--target={self._holder.pid}", "--", *program, plain=True)

    def run(self, *program, status=0, seconds=60):
        tool = self.start(*program)
        self._world.finish(tool, seconds, status)
        return tool

    def uiwarp(self, *arguments, status=0):
        return self.run(os.path.join(self._world.bin, "uiwarp"), *arguments, status=status)

    def preload_list(self):
        return self.run("cat", "/etc/ld.so.preload").output

    def write_preload_list(self, content):
        self.run("sh", "-c", 'printf "%s" "$1" >/etc/ld.so.preload', "sh", content)


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
