# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The uiwarp command itself."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from harness import Skipped, expect
from registry import LO4, case


def uiwarp(world, *arguments, status=0, settings=None, seconds=60):
    tool = world.start("client", os.path.join(world.bin, "uiwarp"), *arguments, settings=settings, plain=True)
    world.finish(tool, seconds, status)
    return tool


@case("command-doctor", worlds=LO4, reduced=True)
def doctor(world):
    tool = uiwarp(world, "doctor")
    expect("FAIL" not in tool.output and "loopback connection" in tool.output, "the doctor is not content", tool)
    tool = uiwarp(world, "doctor", "--json")
    found = json.loads(tool.output)
    expect(found["failures"] == 0 and all(check["result"] in ("ok", "warn") for check in found["checks"]) and
           any(check["what"].startswith("loopback connection") for check in found["checks"]), "not the same as JSON", tool)
    results = {check["name"]: check["result"] for check in found["checks"]}
    for name in ("kernel", "engine", "open_files", "locked_memory", "congestion_control", "libibverbs", "librdmacm", "preload",
                 "provider", "stack", "device_files", "settings", "face", "host_devices", "devices", "loopback"):
        expect(name in results, f"no check is called {name}", tool)
    expect(all(re.fullmatch("[a-z_]+", name) for name in results), "a name that scripts cannot ask for", tool)
    versions = found["versions"]
    expect((versions["kernel"], versions["architecture"]) == (os.uname().release, os.uname().machine), "another kernel", tool)
    for name in ("uiwarp", "libibverbs", "librdmacm", "rdma_core"):
        expect(re.fullmatch(r"\d+(\.\d+)+", versions[name]), f"no version of {name}", tool)
    expect(versions["libibverbs"].endswith("." + versions["rdma_core"]), "two versions of rdma-core", tool)


@case("command-doctor-epoll", worlds=LO4)
def doctor_epoll(world):
    tool = uiwarp(world, "doctor", settings={"UIWARP_ENGINE": "epoll"})
    expect("FAIL" not in tool.output and "engine: epoll" in tool.output, "the doctor is not content", tool)


@case("command-doctor-bad-setting", worlds=LO4)
def doctor_bad_setting(world):
    tool = uiwarp(world, "doctor", settings={"UIWARP_CRC": "perhaps"}, status=1)
    expect("UIWARP_CRC" in tool.output and "on" in tool.output, "the message does not name the allowed values", tool)
    tool = uiwarp(world, "devices", settings={"UIWARP_CRC": "perhaps"}, status=1)
    expect("cannot open: Invalid argument" in tool.output, "devices that cannot be opened are listed as if they could", tool)
    path = os.path.join(world.bin, "uiwarp")
    # Messages of the probe are on standard error.
    tool = world.start("client", "sh", "-c", '"$0" devices --json 2>/dev/null', path, plain=True, settings={"UIWARP_CRC": "perhaps"})
    world.finish(tool, 60, 1)
    lo = next(device for device in json.loads(tool.output)["devices"] if device["device"] == "uiw_lo")
    expect((lo["state"], lo["errno"], lo["why"]) == ("unopened", "EINVAL", "cannot open: Invalid argument"),
           "a script cannot tell why", tool)
    expect("active_mtu" not in lo and lo["mtu"] > 0, "an MTU that nobody asked for", tool)


@case("command-doctor-lo-down", worlds=LO4, seconds=30)
def doctor_lo_down(world):
    """A fresh network namespace: there is no device, and the command that helps is named."""
    fresh = ["unshare", "--net"] if world.name.endswith("root") else ["unshare", "--user", "--net"]
    if subprocess.run(world._user + [*fresh, "true"], check=False).returncode != 0:
        raise Skipped("needs to be allowed to make network namespaces")
    tool = world.run("client", *fresh, os.path.join(world.bin, "uiwarp"), "doctor", status=1)
    expect("warn  lo is down" in tool.output and "ip link set lo up" in tool.output, "it does not say what to do", tool)
    tool = world.run("client", *fresh, os.path.join(world.bin, "uiwarp"), "devices", status=1)
    expect("no device: lo (down: ip link set lo up)" in tool.output, "it does not say what to do", tool)


@case("command-doctor-name", worlds=["lo4-user"], seconds=60)
def doctor_name(world):
    """What the doctor tells to start can be started: from a build tree by its path."""
    path = os.environ["PATH"]
    for places, name in ((path, f"{world.bin}/uiwarp"), (f"{world.bin}:{path}", "uiwarp")):
        if name != "uiwarp" and shutil.which("uiwarp", path=places):
            continue  # it is installed
        tool = uiwarp(world, "doctor", settings={"PATH": places})
        expect(f"with: {name} run PROGRAM" in tool.output, "the command has another name", tool)


@case("command-devices", worlds=LO4, seconds=20, reduced=True)
def devices(world):
    tool = uiwarp(world, "devices")
    row = [line.split() for line in tool.output.splitlines() if line.startswith("uiw_lo ")]
    expect(len(row) == 1 and row[0][1] == "lo" and "127.0.0.1" in tool.output, "no row for uiw_lo", tool)
    tool = uiwarp(world, "devices", "--json")
    lo = next(device for device in json.loads(tool.output)["devices"] if device["device"] == "uiw_lo")
    expect((lo["interface"], lo["state"], lo["gids"][0]) == ("lo", "active", {"index": 0, "address": "127.0.0.1"}),
           "not the same as JSON", tool)
    with open("/sys/class/net/lo/mtu", encoding="ascii") as mtu:
        expect((lo["port"], lo["mtu"], lo["active_mtu"]) == (1, int(mtu.read()), 4096), "another port or MTU", tool)
    tool = uiwarp(world, "run", "ibv_devices", settings={"UIWARP_DEVICES": "loo"}, status=None)
    expect(tool.output.count("UIWARP_DEVICES='loo' leaves no device") == 1 and "lo" in tool.output,
           "no word that no interface is chosen", tool)


@case("command-missing-interface", worlds=["lo4-user"], seconds=60)
def missing_interface(world):
    """UIWARP_DEVICES names what is not there. Patterns, and what it leaves out, need not be there."""
    settings = {"UIWARP_DEVICES": "lo,eht0,uiw_eht1,eht*,!eht9"}
    tool = uiwarp(world, "doctor", settings=settings)
    for name in ("eht0", "uiw_eht1"):
        expect(f"warn  UIWARP_DEVICES names {name}, and there is no such interface" in tool.output, f"no word of {name}", tool)
    expect("eht*" not in tool.output and "eht9" not in tool.output, "a word of what need not be there", tool)
    checks = json.loads(uiwarp(world, "doctor", "--json", settings=settings).output)["checks"]
    expect([check["result"] for check in checks if check["name"] == "missing_interfaces"] == ["warn", "warn"],
           "a script is not told", tool)
    tool = uiwarp(world, "devices", settings=settings)
    expect("no device: eht0, uiw_eht1 (not there, though UIWARP_DEVICES names it)" in tool.output, "not listed", tool)
    without = json.loads(uiwarp(world, "devices", "--json", settings=settings).output)["without_device"]
    expect([one["interface"] for one in without if one["why"].startswith("not there")] == ["eht0", "uiw_eht1"],
           "not listed as JSON", tool)


@case("command-used-wrongly", worlds=["lo4-user"], seconds=30)
def used_wrongly(world):
    tool = uiwarp(world, "ib_write_bw", status=2)
    expect("'ib_write_bw' is not a command" in tool.output and "uiwarp run ib_write_bw" in tool.output,
           "the wrong word is not named", tool)
    for arguments, word in ((["devices", "--jsn"], "'--jsn' is not an option of devices"), ([], "which command"),
                            (["run", "--chekc", "true"], "--chekc"), (["run"], "which program"),
                            (["shake", "--rnus", "3", "--", "true"], "'--rnus' is not an option of shake"),
                            (["netns-pair", "--prt", "3", "--", "true", "--", "true"], "'--prt' is not an option of netns-pair"),
                            (["stat", "abc"], "uiwarp: stat: pid: 'abc' is not a whole number from 1 to 4194304."),
                            (["stat", "--watch", "often"], "uiwarp: stat: --watch: 'often' is not a number from 0.1 to 3600."),
                            (["faults", "failover"], "uiwarp: faults: pid: 'failover' is not a whole number from 1 to"),
                            (["faults", "--explain", ""], "uiwarp: faults: --explain: '' is not a file name"),
                            (["faults", "--list", "--json"], "uiwarp: faults: --json excludes --list."),
                            (["faults", "--explain", "failover", "--json"], "uiwarp: faults: --json excludes --explain."),
                            (["shake", "--runs", "0", "--", "true"], "uiwarp: shake: --runs: '0' is not a whole number from 1 to"),
                            (["shake", "--timeout", "nan", "--", "true"], "--timeout: 'nan' is not a number from 0.001 to 1000000."),
                            (["netns-pair", "--port", "70000", "--", "true", "--", "true"],
                             "uiwarp: netns-pair: --port: '70000' is not a whole number from 1 to 65535."),
                            (["netns-pair", "--mtu", "big", "--", "true", "--", "true"], "--mtu: 'big' is not a whole number from 1280"),
                            (["trace", "--html"], "uiwarp: trace: --html needs a value, FILE."),
                            (["run", "--as"], "uiwarp: --as needs a value, iwarp|roce."),
                            (["devices", "--json=abc"], "uiwarp: devices: --json: it takes no value, but got 'abc'.")):
        tool = uiwarp(world, *arguments, status=2)
        expect(word in tool.output, f"{arguments}: the message does not say what is wrong", tool)


@case("command-usage", worlds=["lo4-user"], seconds=30)
def usage(world):
    """Where programs stand in a command line, its help shows."""
    for name, programs in (("netns-pair", "-- SERVER ARGS... -- CLIENT ARGS..."), ("shake", "-- COMMAND ARGS...")):
        tool = uiwarp(world, name, "--help")
        expect(re.search(rf"^Usage: \S*uiwarp {name} \[OPTIONS\] {re.escape(programs)}$", tool.output, re.MULTILINE),
               "the usage does not show it", tool)
    tool = uiwarp(world, "netns-pair", status=2)
    expect("which server?" in tool.output and "Usage: uiwarp netns-pair [OPTIONS] -- SERVER" in tool.output, "no usage", tool)


@case("command-run", worlds=LO4, seconds=30)
def run(world):
    tool = uiwarp(world, "run", "sh", "-c", "exit 42", status=42)
    tool = uiwarp(world, "run", "no-such-program-here", status=127)
    expect("not found" in tool.output, "no word about what is wrong", tool)
    tool = uiwarp(world, "run", os.path.join(world.bin, "uiwarp-of-musl"), status=None)
    expect("is linked with musl" in tool.output, "no warning that it will see no device", tool)
    tool = uiwarp(world, "run", "/etc/passwd", status=126)
    expect("cannot be executed" in tool.output, "no word about what is wrong", tool)
    tool = uiwarp(world, "run", "--", "env", settings={"LD_PRELOAD": "libc.so.6", "IBV_DRIVERS": "siw"})
    lines = dict(line.split("=", 1) for line in tool.output.splitlines() if "=" in line)
    expect(lines["LD_PRELOAD"].endswith(":libc.so.6"), "LD_PRELOAD was not kept", tool)
    expect(lines["IBV_DRIVERS"].endswith(":siw"), "IBV_DRIVERS was not kept", tool)
    # A program that never touches RDMA: the environment of what it starts stays as it was.
    tool = uiwarp(world, "run", "sh", "-c", "cat /proc/self/maps")
    expect("libuiwarp-preload" in tool.output, "nothing was preloaded", tool)
    expect("libuiwarp.so" not in tool.output, "the stack was loaded into a program that needs no RDMA", tool)


def run_paths(folder):
    """Where the loader would look for the libraries that the programs and libraries in `folder` need: (file, place)."""
    for path in (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names):
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        dynamic = subprocess.run(["readelf", "-d", path], text=True, stdout=subprocess.PIPE, check=True).stdout
        for places in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            for place in places.split(":"):
                yield path, place


@case("command-installed", worlds=["lo4-root"], seconds=90)
def installed(world):
    """What `cmake --install` puts elsewhere works from there, also when moved, and does not lead back to the build."""
    if not shutil.which("cmake") or not shutil.which("readelf"):
        raise Skipped("needs cmake and readelf")
    build = os.path.dirname(world.bin)
    folder = tempfile.mkdtemp(prefix="uiwarp-installed-")
    try:
        first, moved = os.path.join(folder, "first"), os.path.join(folder, "moved")
        done = subprocess.run(["cmake", "--install", build, "--prefix", first], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(done.returncode == 0, f"cmake --install failed: {done.stdout}")
        os.rename(first, moved)
        for name in ["share/man/man1/uiwarp.1", "share/man/man7/uiwarp.7", "etc/libibverbs.d/uiwarp.driver",
                     "share/uiwarp/uiwarp.tsan", "share/uiwarp/uiwarp.valgrind", "share/bash-completion/completions/uiwarp",
                     "share/zsh/site-functions/_uiwarp", "share/doc/uiwarp/examples/systemd/uiwarp-rping.service",
                     "share/doc/uiwarp/README.md", "share/doc/uiwarp/doc/faults.md",
                     "share/doc/uiwarp/examples/shake/replicated_log.c", "share/doc/uiwarp/examples/misuse/misuse.h"]:
            expect(os.path.isfile(os.path.join(moved, name)), f"{name} was not installed: {done.stdout}")
        for path, place in run_paths(moved):
            # An empty place would be the folder that the program is started in.
            expect(place and not place.startswith(build), f"{path} looks for libraries in '{place}'")
        command = os.path.join(moved, "bin", "uiwarp")
        tool = world.start("client", command, "doctor", plain=True)
        world.finish(tool, 60, 0)
        expect(f"{moved}/lib" in tool.output, "it does not use the installed libraries", tool)
        # The first file makes it load the stack, the second shows what is loaded.
        tool = world.start("client", command, "run", "cat", "/sys/class/infiniband/uiw_lo/node_type", "/proc/self/maps",
                           plain=True)
        world.finish(tool, 20, 0)
        expect("4: RNIC" in tool.output and "/libuiwarp.so.0" in tool.output, "there is no device", tool)
        expect(build not in tool.output, "something of the build tree is loaded", tool)
    finally:
        shutil.rmtree(folder)


@case("command-explain-lines", worlds=["lo4-user"], seconds=60, quick=True)
def explain_lines(world):
    """Lines that programs print of an event, a status or a Terminate are understood; what nobody writes is not."""
    uiwarp = os.path.join(world.bin, "uiwarp")
    for line, status, word in (("RDMA_CM_EVENT_REJECTED, error -111", 0, "RDMA_CM_EVENT_REJECTED, status -111"),
                               ("RDMA_CM_EVENT_CONNECT_ERROR, error -71", 0, "is not an iWARP peer"),
                               ("status 12", 0, "IBV_WC_RETRY_EXC_ERR"), ("Terminate 0x1205", 0, "longer than the buffer"),
                               ("local protection error", 0, "IBV_WC_LOC_PROT_ERR"), ("error", 2, "there is nothing called 'error'"),
                               ("99999", 2, "there is nothing called '99999'")):
        tool = world.start("client", uiwarp, "explain", *line.split(), plain=True)
        world.finish(tool, 30, status)
        expect(word in " ".join(tool.output.split()), f"{line}: not said: {word}", tool)
