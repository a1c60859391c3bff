#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""uiwarp on a host whose kernel has RDMA devices: beside siw, on the same interface of an emulated guest.

    neighbour.py --bin build/bin        status 0 passed, 1 failed, 77 skipped

What each UIWARP_MODE shows, and that both stacks work at once: siw's tools meet siw's, uiwarp's meet uiwarp's, and
they meet each other, all on the guest's one address.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True   # leave the source tree as it is

from guest import GUEST, Guest, Image, Missing, add_options, libraries_of

SKIPPED = 77
EXCLUSIVE = "UIWARP_MODE=exclusive uiwarp run "


class WithUiwarp:
    """The guest's files and uiwarp's. Linux unpacks archives that follow each other."""

    def __init__(self, image, binaries, folder):
        self.kernel = image.kernel
        self.initrd = folder / "initrd"
        root = folder / "root"
        library = pathlib.Path(binaries).parent / "lib"
        files = {f"opt/bin/{name}": pathlib.Path(binaries) / name for name in ("uiwarp", "uiwarp-probe")}
        files.update({f"opt/lib/{path.name}": path for path in library.glob("libuiwarp*.so*")})
        for tool in ("ibv_devices", "ibv_devinfo", "ls"):   # the guest's own ls is static
            if not shutil.which(tool):
                raise Missing(f"{tool} is missing: apt-get install ibverbs-utils")
            files[f"opt/bin/{tool}"] = pathlib.Path(shutil.which(tool))
        for path in list(files.values()):
            files.update({needed.lstrip("/"): needed for needed in libraries_of(path) if "/libuiwarp" not in needed})
        for target, source in files.items():
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / target)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with open(self.initrd, "wb") as out:
            out.write(image.initrd.read_bytes())
            out.flush()
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], input=names.encode(), cwd=root,
                           stdout=out, check=True)


class Checks:
    def __init__(self, guest):
        self.guest = guest
        self.failed = []

    def say(self, what, good, output=""):
        print(f"{'passed' if good else 'FAILED'} {what}" + ("" if good else f": {output.strip()}"), flush=True)
        if not good:
            self.failed.append(what)

    def shows(self, what, command, wanted, unwanted, status=0):
        got, output = self.guest.run("PATH=/opt/bin:$PATH; " + command)
        good = got == status and all(text in output for text in wanted) and not any(text in output for text in unwanted)
        self.say(what, good, f"status {got}\n{output}")

    def rping(self, what, port, server, client):
        """Both ends in the guest, each started by that prefix."""
        common = f"-C 10 -S 4000 -V -p {port} -a {GUEST}"
        _, output = self.guest.run(f"""PATH=/opt/bin:$PATH
            {server} timeout 60 rping -s {common} >/tmp/server.out 2>&1 & server=$!
            for i in 0 1 2 3 4 5 6 7 8 9; do
              grep -qi ':{port:04X} 00000000:0000 0A' /proc/net/tcp && break; sleep 1
            done
            {client} timeout 60 rping -c {common}; echo client $?
            wait $server; echo server $?; cat /tmp/server.out""", 90)
        self.say(what, "client 0\n" in output and "server 0\n" in output, output)


def check(guest):
    status, output = guest.run("rdma link add siw0 type siw netdev eth0 && rdma link")
    if status != 0:
        raise RuntimeError(f"siw cannot be set up in the guest: {output}")
    checks = Checks(guest)
    checks.shows("without uiwarp", "ibv_devices", ["siw0"], ["uiw_"])
    checks.shows("auto stays away", "uiwarp run ibv_devices", ["siw0"], ["uiw_"])
    checks.shows("auto opens the host's", "uiwarp run ibv_devinfo -d siw0", ["hca_id:\tsiw0", "PORT_ACTIVE"], [])
    checks.shows("exclusive shows uiwarp's", EXCLUSIVE + "ibv_devices", ["uiw_eth0", "uiw_lo"], ["siw0"])
    checks.shows("exclusive opens uiwarp's", EXCLUSIVE + "ibv_devinfo -d uiw_eth0", ["hca_id:\tuiw_eth0", "PORT_ACTIVE"], [])
    checks.shows("exclusive hides files", EXCLUSIVE + "ls /sys/class/infiniband /dev/infiniband", ["uiw_eth0"], ["siw0"])
    checks.shows("the doctor in auto", "uiwarp doctor", ["siw0", "UIWARP_MODE=exclusive"], [], status=1)
    checks.shows("the doctor in exclusive", "UIWARP_MODE=exclusive uiwarp doctor",
                 ["are hidden", "siw0", "loopback connection"], ["FAIL"])
    checks.rping("siw to siw, through auto", 18800, "uiwarp run", "uiwarp run")
    checks.rping("uiwarp to uiwarp", 18801, EXCLUSIVE, EXCLUSIVE)
    checks.rping("siw to uiwarp", 18802, EXCLUSIVE, "")
    checks.rping("uiwarp to siw", 18803, "", EXCLUSIVE)
    return checks.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    arguments = parser.parse_args()
    guest = None
    try:
        image = Image(arguments.cache)
        image.make()
        with tempfile.TemporaryDirectory() as folder:
            guest = Guest(WithUiwarp(image, os.path.abspath(arguments.bin), pathlib.Path(folder)), [], arguments.console)
            if not guest.boot():
                print("FAILED: the guest does not come up:\n" + guest.console.read_text(errors="replace")[-3000:])
                return 1
            return 1 if check(guest) else 0
    except Missing as reason:
        print(f"SKIPPED: {reason}")
        return SKIPPED
    finally:
        if guest:
            guest.close()


if __name__ == "__main__":
    sys.exit(main())
