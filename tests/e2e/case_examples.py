# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""doc/examples: the programs are built as a reader builds them, and run; the files are read by whom they are for."""
import contextlib
import ctypes.util
import json
import os
import shutil
import subprocess
import tempfile

from harness import Skipped, expect
from registry import case

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "doc", "examples")
PYTHON = "/usr/bin/python3"   # the one that Debian's modules are for


@contextlib.contextmanager
def built(name):
    if not shutil.which("cmake"):
        raise Skipped("needs cmake")
    with tempfile.TemporaryDirectory(prefix="uiwarp-example-") as folder:
        os.chmod(folder, 0o755)
        for command in (["cmake", "-S", os.path.join(EXAMPLES, name), "-B", folder, "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror"],
                        ["cmake", "--build", folder]):
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            expect(done.returncode == 0, f"{' '.join(command)}: {done.stdout}")
        yield folder


@case("examples-cm", worlds=["lo4-user", "lo6-user"], seconds=60)
def rdma_cm(world):
    with built("cm") as folder:
        greeting, port = f"{folder}/greeting", world.port()
        server = world.start_server(greeting, "serve", world.server, port, port=port)
        client = world.run("client", greeting, "greet", world.server, port, "Ada")
        world.finish(server, 20)
        expect("Hello, Ada!" in client.output, "no greeting", client, server)


@case("examples-numbers", worlds=["lo4-user", "ns-user"], seconds=60)
def numbers(world):
    with built("numbers") as folder:
        program, port = f"{folder}/numbers", world.port()
        server = world.start_server(program, world.device, 0, port, port=port)
        client = world.run("client", program, world.device, 0, port, world.server, "a text")
        world.finish(server, 20)
        expect("a text" in server.output, "the text is not there", server, client)


@case("examples-pyverbs", worlds=["lo4-user"], seconds=60)
def pyverbs(world):
    if subprocess.run([PYTHON, "-c", "import pyverbs.device"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped("needs pyverbs (package python3-pyverbs)")
    program, port = os.path.join(EXAMPLES, "pyverbs", "ping.py"), world.port()
    server = world.start_server(PYTHON, program, world.device, 0, port, port=port)
    client = world.run("client", PYTHON, program, world.device, 0, port, world.server, "a text")
    world.finish(server, 20)
    expect("a text" in server.output, "the text did not come", server, client)


@case("examples-seccomp", worlds=["lo4-user"], seconds=90)
def seccomp(world):
    """What the profile allows is enough, with io_uring and without, and nothing more was allowed."""
    if not ctypes.util.find_library("seccomp"):
        raise Skipped("needs libseccomp (package libseccomp2)")
    profile, under = os.path.join(EXAMPLES, "container", "seccomp.json"), os.path.join(HERE, "under_seccomp.py")
    for left_out in ("", ":but=io_uring"):
        confined = [PYTHON, under, profile + left_out]
        port = world.port()
        server = world.start_server(*confined, "rping", "-s", "-a", world.server, "-p", port, "-C", 10, port=port)
        client = world.run("client", *confined, "rping", "-c", "-a", world.server, "-p", port, "-C", 10, "-V")
        world.finish(server, 20)
        expect(("refuses io_uring" in client.output) == bool(left_out), "another engine than expected", client)
        server = world.start_server(*confined, "ibv_rc_pingpong", "-e", "-g", 0, "-p", port, port=port)
        world.run("client", *confined, "ibv_rc_pingpong", "-e", "-g", 0, "-p", port, world.server)
        world.finish(server, 20)
        doctor = world.start("client", *confined, os.path.join(world.bin, "uiwarp"), "doctor", plain=True)
        world.finish(doctor, 40, None)
        expect("loopback connection: 64 octets" in doctor.output, "not what was found, with this engine", doctor)
    tool = world.run("client", *confined, "unshare", "--user", "true", status=1)
    expect("unshare failed" in tool.output, "what the profile does not name is allowed", tool)


@case("examples-files", worlds=["lo4-user"], seconds=30)
def files(_):
    with open(os.path.join(EXAMPLES, "container", "seccomp.json")) as file:
        # runc becomes the container's user under the profile, unless no-new-privileges is set.
        missing = {"capset", "setgid", "setgroups", "setuid"} - set(json.load(file)["syscalls"][0]["names"])
        expect(not missing, f"runc cannot start a container without {missing}")
    try:
        import yaml
    except ImportError:
        raise Skipped("needs python3-yaml") from None
    documents = {}
    for name in ("compose", "kubernetes"):
        with open(os.path.join(EXAMPLES, "container", f"{name}.yaml")) as file:
            documents[name] = list(yaml.safe_load_all(file))
    expect(set(documents["compose"][0]["services"]) == {"server", "client"}, "other services")
    for document in documents["kubernetes"]:
        expect({"apiVersion", "kind", "metadata", "spec"} <= set(document), f"not an object of Kubernetes: {document}")
        if document["kind"] == "Service":
            continue
        pod = document["spec"].get("template", document)["spec"]
        for container in pod["containers"]:
            confined = container["securityContext"]
            expect(not confined["allowPrivilegeEscalation"] and confined["capabilities"]["drop"] == ["ALL"] and
                   pod["securityContext"]["runAsNonRoot"] and not pod.get("hostNetwork"), f"privilege: {document}")
    if not shutil.which("systemd-analyze"):
        return
    # The program need not be installed where it is looked for.
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, "uiwarp-rping.service")
        with open(os.path.join(EXAMPLES, "systemd", "uiwarp-rping.service")) as file, open(unit, "w") as copy:
            copy.write(file.read().replace("/usr/bin/uiwarp", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", unit], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        expect(done.returncode == 0 and "uiwarp-rping" not in done.stdout, f"systemd does not take it: {done.stdout}")
