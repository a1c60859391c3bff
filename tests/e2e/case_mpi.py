# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Open MPI by libfabric, with the iWARP face, and by UCX, with the RoCE face. NetPIPE compares what arrives."""
import os

from applications import folder, need
from case_face import ROCE
from case_libfabric import RDM, WORLDS
from harness import expect
from registry import DIAGONAL, case

BY_LIBFABRIC = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", RDM]
BY_UCX = ["--mca", "pml", "ucx"]
# What mpirun starts its daemon on another host by: HOST COMMAND. The other host has another name, or Open MPI and UCX
# take it for this one.
AGENT = """#!/bin/sh
shift
exec %s unshare --uts sh -c "hostname uiwarp-e2e-peer; $*"
"""


def netpipe(world, arguments, settings=None, between_hosts=False):
    """Two processes, on the server's host or on both. On another host `uiwarp run` stands before the program."""
    need("mpirun", "openmpi-bin")
    need("NPopenmpi", "netpipe-openmpi")
    with folder(world) as path:
        # mpirun wants a place for its sockets, and for the unprivileged user a home.
        own = {"HOME": path, "TMPDIR": path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        program = ["NPopenmpi", "-i", "-l", "1", "-u", "300000", "-n", "3", "-o", os.path.join(path, "np.out")]
        command = ["mpirun", "--oversubscribe", "-np", "2", *arguments]
        if between_hosts:
            agent = os.path.join(path, "agent")
            with open(agent, "w") as file:
                file.write(AGENT % " ".join(world.within("client")))
            os.chmod(agent, 0o755)
            command += ["--host", f"{world.server},10.91.0.2", "--mca", "plm_rsh_agent", agent]
            program = [os.path.join(world.bin, "uiwarp"), "run", *program]
        tool = world.start("server", *command, *program, settings={**own, **(settings or {})}, plain=between_hosts)
        world.finish(tool, 45)
        # What uiwarp says may stand within a row.
        rows, passed = tool.output.count(" times --> "), tool.output.count("Integrity check passed")
        expect(rows > 30 and passed == rows, "not every size passed its integrity check", tool)


@case("openmpi", worlds=WORLDS, seconds=60, serial=True)
def by_libfabric(world):
    """Two processes on one host, by way of the address that its device has."""
    netpipe(world, BY_LIBFABRIC)


@case("roce-openmpi", worlds=DIAGONAL, seconds=120, serial=True, reduced=True)
def by_ucx(world):
    """By RC and by UD queue pairs alone: on one host UCX would take shared memory."""
    for transports in ("rc,self", "ud,self"):
        netpipe(world, BY_UCX, {**ROCE, "UCX_TLS": transports})


@case("roce-openmpi-between-hosts", worlds=["ns-root"], seconds=60, serial=True)
def by_ucx_between_hosts(world):
    """With no setting of UCX."""
    netpipe(world, BY_UCX, ROCE, between_hosts=True)
