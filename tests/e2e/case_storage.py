# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""fio's rdma engine and qperf, which both connect by rdma_cm."""
import re

from applications import need
from harness import expect
from registry import case

IPV4 = ["lo4-root", "lo4-user", "ns-root"]
ATTEMPTS = 20
VERIFY = "--verify=crc32c"
THREAD = "--thread"   # a process for the job would leave our process group, and outlive a failed test
NO_FILE = "--verify_state_save=0"   # else fio leaves one where it was started
QPERF = ["rc_bw", "rc_lat", "rc_rdma_write_bw", "rc_rdma_read_lat", "ver_rc_compare_swap", "ver_rc_fetch_add"]


def fio(world, verb, *options):
    port = world.port()
    common = ["fio", THREAD, "--name=job", "--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=4m", "--iodepth=8", *options]
    server = world.start_server(*common, "--rw=read", port=port)
    client = world.start("client", *common, "--rw=write", f"--hostname={world.server}", f"--verb={verb}", "--do_verify=0")
    world.finish(client, 30, None, server)
    world.finish(server, 20, None, client)
    return client, server


@case("fio", worlds=IPV4, seconds=120)
def engine(world):
    """Write, Read and Send. What is sent the receiver verifies; of the others fio has no way to."""
    need("fio", "fio")
    for verb in ("write", "read", "send"):
        client, server = fio(world, verb, *([VERIFY, NO_FILE] if verb == "send" else []))
        for end in (client, server):
            expect(end.process.returncode == 0 and " err= 0:" in end.output, f"{verb} failed", client, server)
        expect("io=4096KiB" in client.output, f"{verb}: not 4 MiB", client, server)


@case("fio-verifies", worlds=["lo4-root", "lo4-user"], seconds=60)
def verifies(world):
    """What the case above relies on: wrong data end the receiver with an error."""
    need("fio", "fio")
    port = world.port()
    common = ["fio", THREAD, "--name=job", "--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=1m", "--iodepth=1"]
    server = world.start_server(*common, "--rw=read", VERIFY, NO_FILE, port=port)
    client = world.start("client", *common, "--rw=write", f"--hostname={world.server}", "--verb=send")
    world.finish(server, 40, 1, client)


@case("qperf", worlds=["lo4-user", "ns-root"], seconds=100)
def qperf(world):
    """The ver_ tests compare each value that an atomic brought. All at once, as each takes two seconds."""
    need("qperf", "qperf")
    servers = {}
    for test in QPERF:
        port = world.port()
        servers[test] = world.start_server("qperf", "-lp", port, port=port), port

    def start(test):
        return world.start("client", "qperf", "-lp", servers[test][1], world.server, "-cm", "1", "-t", "1", "-m", "4K", test)

    clients = {test: start(test) for test in QPERF}
    for test, client in clients.items():
        for _ in range(ATTEMPTS):
            world.finish(client, 30, None, servers[test][0])
            # qperf 0.4.11 tells its client the port before it listens there: who comes too early is rejected.
            if "Event rejected" not in client.output:
                break
            client = start(test)
        expect(client.process.returncode == 0 and re.search(r"(bw|latency|msg_rate) +=", client.output),
               f"{test} brought no result", client, servers[test][0])
