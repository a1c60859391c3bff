# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A system in which every program sees the devices (`uiwarp enable`)."""
import struct
import sys

from harness import expect
from registry import case
from system import System

ROOT = ["lo4-root"]
BARE = ["env", "-i"]   # nothing of the environment gets to the program


@case("system-enable", worlds=ROOT, seconds=90)
def enable(world):
    """Programs with an empty environment, and set-uid ones, which the loader keeps LD_PRELOAD from."""
    with System(world) as system:
        set_uid = f"{system.folder}/ibv_devices"
        system.run("sh", "-c", f'cp "$(command -v ibv_devices)" {set_uid} && chmod 4755 {set_uid}')
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        preloaded = [*as_nobody, "env", f"LD_PRELOAD={system.library}", set_uid]
        for program in ([*BARE, "ibv_devices"], preloaded):
            tool = system.run(*program, status=None)
            expect("uiw_lo" not in tool.output, "there is a device before there should be one", tool)
        in_vain = [*as_nobody, f"{system.own}/uiwarp/bin/uiwarp", "run", set_uid]
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
        expect("every program sees the devices" in system.uiwarp("doctor").output, "the doctor does not know")

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
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n{system.library}\n", system.preload_list())
        system.uiwarp("enable")   # once more changes nothing
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n{system.library}\n", system.preload_list())
        system.uiwarp("disable")
        expect(system.preload_list() == f"{others}libdl.so.2 libz.so.1 \n", system.preload_list())
        system.run("mount", "-o", "bind,ro", "/etc", "/etc")
        tool = system.uiwarp("enable", status=1)
        expect("cannot write /etc/ld.so.preload" in tool.output, "it does not say why", tool)


@case("system-enable-force", worlds=ROOT, seconds=60)
def force(world):
    """Where no interface is up, as when an image is built without a network."""
    with System(world) as system:
        alone = ["unshare", "--net", f"{system.own}/uiwarp/bin/uiwarp"]
        tool = system.run(*alone, "enable", status=1)
        expect("no device: lo (down" in tool.output and "uiwarp enable --force" in tool.output, "it does not say what to do",
               tool)
        system.run("test", "!", "-e", "/etc/ld.so.preload")
        system.run(*alone, "enable", "--force")
        tool = system.run(*BARE, "ibv_devices")
        expect("uiw_lo" in tool.output, "there is no device", tool)
        system.uiwarp("disable")
        tool = system.run(*BARE, "ibv_devices", status=None)
        expect("uiw_lo" not in tool.output, "there still is a device", tool)
        # What the loader cannot load is not enabled.
        system.run("sh", "-c", f"echo >{system.library}")
        system.run(*alone, "enable", "--force", status=1)
        system.run("test", "!", "-e", "/etc/ld.so.preload")
        system.run("test", "!", "-e", "/etc/libibverbs.d/uiwarp.driver")


@case("system-doctor", worlds=ROOT, seconds=90)
def doctor(world):
    """The doctor finds a wrong path and a wrong architecture; `enable` puts them right."""
    with System(world) as system:
        wrong = f"{system.own}/libuiwarp-preload.so"
        system.write_preload_list(wrong + "\n")
        tool = system.uiwarp("doctor", status=1)
        expect(f"FAIL  /etc/ld.so.preload names {wrong}" in tool.output and "cannot open" in tool.output
               and "uiwarp enable" in tool.output, "the doctor does not see that the file is missing", tool)
        # The fifth octet of an ELF file tells 64 bits from 32.
        system.run("sh", "-c", f'cp {system.library} {wrong} && printf "\\001" | dd of={wrong} bs=1 seek=4 conv=notrunc')
        tool = system.uiwarp("doctor", status=1)
        expect(f"FAIL  /etc/ld.so.preload names {wrong}" in tool.output and "ELFCLASS32" in tool.output,
               "the doctor does not see the wrong architecture", tool)
        system.run("chmod", "o-r", wrong)
        tool = system.uiwarp("doctor", status=1)
        expect(f"other users have no access to {wrong}" in tool.output, "the doctor does not see who cannot read it", tool)
        system.uiwarp("enable")
        tool = system.uiwarp("doctor")
        expect("every program sees the devices" in tool.output and "FAIL" not in tool.output, "it was not put right", tool)
        system.run("rm", "/etc/libibverbs.d/uiwarp.driver")
        tool = system.uiwarp("doctor", status=1)
        expect("FAIL  /etc/ld.so.preload" in tool.output, "the doctor does not see that libibverbs lacks the driver", tool)


NOBODY = 65534
NO_ID = 0xffffffff


@case("system-enable-trust", worlds=ROOT, seconds=120)
def trust(world):
    """Nothing that somebody else than root may change is put into every program: not the library, not what it loads,
    no folder above, no link on the way."""
    with System(world) as system:
        uiwarp = f"{system.own}/uiwarp"
        stack, provider = f"{uiwarp}/lib/libuiwarp.so.0", f"{uiwarp}/lib/libuiwarp-rdmav*.so"

        def refused(what, said, do, undo, mend=None):
            system.run("sh", "-c", do)
            tool = system.uiwarp("enable", status=125)
            expect(said in tool.output, f"{what}: not told '{said}'", tool)
            expect("/usr/local" in tool.output, f"{what}: not told where to install", tool)
            if mend:
                expect(mend in tool.output, f"{what}: not told '{mend}'", tool)
            system.run("test", "!", "-e", "/etc/ld.so.preload")
            system.run("test", "!", "-e", "/etc/libibverbs.d/uiwarp.driver")
            system.run("sh", "-c", undo)

        for name, path in (("the library", system.library), ("the stack", stack + ".*"), ("the provider", provider),
                           ("the folder", f"{uiwarp}/lib"), ("the folder above", uiwarp)):
            real = system.run("sh", "-c", f"realpath {path}").output.strip()
            refused(f"another user's {name}", f"(nobody) may change {real},", f"chown {NOBODY} {path}",
                    f"chown root {path}", f"chown root: {real}")
            refused(f"a group's {name}", f"group {NOBODY} ", f"chgrp {NOBODY} {path}; chmod g+w {path}",
                    f"chgrp root {path}; chmod g-w {path}", f"chmod go-w {real}")
            refused(f"everybody's {name}", f"every user may change {real},", f"chmod o+w {path}", f"chmod o-w {path}",
                    f"chmod go-w {real}")
        # The two commands that it says mend it.
        system.run("sh", "-c", f"chown {NOBODY} {uiwarp}; chmod 777 {uiwarp}")
        tool = system.uiwarp("enable", status=125)
        system.run("sh", "-c", tool.output.split("as root: ")[1])
        system.uiwarp("enable")
        system.uiwarp("disable")

        # A list of one more user shows in the group's bits of the mode.
        acl = struct.pack("<I" + "HHI" * 5, 2, *(1, 7, NO_ID), *(2, 7, NOBODY), *(4, 5, NO_ID), *(16, 7, NO_ID),
                          *(32, 5, NO_ID))  # u::rwx u:65534:rwx g::r-x m::rwx o::r-x
        attribute = f"{sys.executable} -c 'import os; os.{{}}xattr(\"{uiwarp}/lib\", \"system.posix_acl_access\"{{}})'"
        refused("a list's folder", "may change", attribute.format("set", f", {acl!r}".replace("'", '"')),
                f"{attribute.format('remove', '')}; chmod 755 {uiwarp}/lib")

        # The library is reached through a link of another user's folder, and is called by its own name or not.
        elsewhere = f"{system.folder}/elsewhere"
        refused("a link's folder", "every user may change /tmp" if system.folder.startswith("/tmp/") else "may change",
                f"mkdir {elsewhere}; chown {NOBODY} {elsewhere}; mv {system.library} {elsewhere}/real.so; "
                f"ln -s {elsewhere}/real.so {system.library}",
                f"rm {system.library}; mv {elsewhere}/real.so {system.library}")
        refused("a link of links", "may change", f"mv {system.library} {uiwarp}/real.so; "
                f"ln -s {uiwarp}/real.so {elsewhere}/link; ln -s ../../..{elsewhere}/link {system.library}",
                f"mv {uiwarp}/real.so {system.library}")
        # What the loader finds for the provider, whose search path begins beside it.
        verbs = f"{uiwarp}/lib/libibverbs.so.1"
        refused("what the provider needs", f"leads to {verbs}:",
                f"cp -L $(ldd {uiwarp}/bin/uiwarp-probe | grep -o '/.*libibverbs.so.1') {elsewhere}/ && "
                f"ln -s {elsewhere}/libibverbs.so.1 {verbs}", f"rm {verbs}")
        # A link that only root can replace is as good as the file.
        system.run("sh", "-c", f"mv {system.library} {uiwarp}/real.so; ln -s ../real.so {system.library}")
        system.uiwarp("enable")
        expect("FAIL" not in system.uiwarp("doctor").output, "the doctor is not content with a link of root's")
        # What becomes so later the doctor finds.
        system.run("chown", str(NOBODY), f"{uiwarp}/real.so")
        tool = system.uiwarp("doctor", status=1)
        expect(f"may change {uiwarp}/real.so" in tool.output and f"chown root: {uiwarp}/real.so" in tool.output,
               "the doctor does not see who may change the library", tool)


@case("system-enable-replaces", worlds=ROOT, seconds=60)
def replaces(world):
    """An entry that others may change is no reason to refuse the one that takes its place."""
    with System(world) as system:
        theirs = f"{system.folder}/libuiwarp-preload.so"
        system.run("sh", "-c", f"cp {system.library} {theirs}; chown {NOBODY} {theirs}")
        system.write_preload_list(theirs + "\n")
        tool = system.uiwarp("doctor", status=1)
        expect("FAIL" in tool.output and "may change" in tool.output, "the doctor does not see it", tool)
        system.uiwarp("enable")
        expect(system.preload_list() == system.library + "\n", system.preload_list())


@case("system-foreign-runtime-directory", worlds=ROOT, seconds=60)
def foreign_runtime_directory(world):
    """Root in the environment of another user (`su` without `-`) writes nothing in that user's directories, and one who
    takes root's name in /dev/shm has no more of it than one directory of root's beside."""
    with System(world) as system:
        theirs = f"{system.folder}/theirs"
        system.run("sh", "-c", f"mkdir -m 700 {theirs} && chown {NOBODY} {theirs} && "
                   "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mkdir /dev/shm/uiwarp-0 && "
                   f"chown {NOBODY} /dev/shm/uiwarp-0")
        for name, told in (("XDG_RUNTIME_DIR", False), ("UIWARP_RUNTIME_DIR", True)):
            for _ in range(2):
                tool = system.uiwarp("run", "ibv_devices", settings={name: theirs})
                expect("uiw_lo" in tool.output, f"{name} of another user: no device", tool)
                expect(("other users can change it" in tool.output) == told, f"{name}: not said what is wrong, or too much",
                       tool)
        expect(system.run("ls", "-A", theirs).output == "", "something lies in the other user's directory")
        expect(system.run("ls", "-A", "/dev/shm/uiwarp-0").output == "", "something lies in the squatted directory")
        left = system.run("ls", "-A", "/dev/shm").output.split()
        expect(len(left) == 2, f"each program leaves a directory: {left}")
