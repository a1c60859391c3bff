# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What goes wrong: the other end dies or was never there. Every tool must end, none may hang."""
import os
import re
import signal
import socket
import subprocess

from case_exchange import gid_index
from case_face import ROCE
from case_perftest import lost_the_race
from harness import expect, wait_until
from registry import LO4, case

LO4_NS = LO4 + ["ns-root"]


def start_rping(world, port):
    """Server and client that ping until something ends them; returns when they do."""
    server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-P", "-S", "4096", port=port)
    client = world.start("client", "stdbuf", "-oL", "rping", "-c", "-a", world.server, "-p", port, "-v", "-S", "4096")
    wait_until(lambda: client.ended() or "ping data" in client.output, 20 * world.slow, "rping pings")
    expect(not client.ended(), "rping ended by itself", client, server)
    return server, client


@case("few-descriptors-said", worlds=["lo4-user"], seconds=60)
def few_descriptors_said(world):
    """A program that says no more than that it fails is told of the limit."""
    for limit in (5, 8, 10):
        tool = world.run("client", "sh", "-c", f"ulimit -n {limit}; exec rping -c -a 127.0.0.1 -C 1", status=None)
        expect("raise the limit of descriptors (ulimit -n)" in tool.output, f"nothing tells of the limit of {limit}", tool)


@case("few-descriptors", worlds=LO4, seconds=120, reduced=True)
def few_descriptors(world):
    """However few descriptors there are: nothing crashes or hangs, and what fails says so."""
    for engine in ("auto", "epoll"):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-few"), seconds=100, settings={"UIWARP_ENGINE": engine})
        expect("/proc" not in tool.output, "it speaks of something else", tool)


@case("ending-threads", worlds=LO4, seconds=60, reduced=True)
def ending_threads(world):
    """The process ends with the program's last thread: the stack's own do not keep it."""
    for who, says in (("alone", ""), ("main", "the worker ends\n"), ("worker", "the worker ends\n")):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-ending"), who, seconds=20)
        expect(tool.output == says + "exit handlers run\n", f"{who}: not the end that pthread_exit() promises", tool)


@case("cancelled-threads", worlds=["lo4-user"], seconds=100, reduced=True)
def cancelled_threads(world):
    """No verb is a cancellation point, and none leaves a lock behind with its thread."""
    for settings in (ROCE, {}):
        tool = world.run("client", os.path.join(world.bin, "uiwarp-cancelled"), world.device, seconds=40, settings=settings)
        expect(tool.output.endswith("done\n") and "inside" not in tool.output, "a verb was a cancellation point", tool)


@case("receiver-that-goes", worlds=LO4, seconds=120, reduced=True)
def receiver_that_goes(world):
    """Its peer's messages complete well, as it has received all of them, however it goes."""
    runs = 5 if world.slow > 1 else 20
    for way in ("destroy", "reset", "error", "exit", "quick_exit", "_exit"):
        world.run("client", os.path.join(world.bin, "uiwarp-going"), world.device, gid_index(world), way, runs,
                  seconds=60, settings=ROCE)


@case("region-that-goes", worlds=LO4, seconds=120, reduced=True)
def region_that_goes(world):
    """Nothing of its memory is sent when ibv_dereg_mr has returned, also of a queue pair that another thread destroys."""
    world.run("client", os.path.join(world.bin, "uiwarp-removed"), world.device, gid_index(world), 10, seconds=100, settings=ROCE)


@case("killed-rping-server", worlds=LO4_NS, seconds=60, reduced=True)
def rping_server(world):
    server, client = start_rping(world, world.port())
    server.signal(signal.SIGKILL)
    world.finish(client, 20, None, server)
    expect("DISCONNECT" in client.output or "failed" in client.output, "the client does not say why it ended", client)


@case("killed-rping-client", worlds=LO4_NS, seconds=60, reduced=True)
def rping_client(world):
    """A server that serves many must go on serving when one client is killed."""
    port = world.port()
    server, client = start_rping(world, port)
    client.signal(signal.SIGKILL)
    other = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "10", "-V", "-v", seconds=20)
    expect(other.output.count("ping data") == 10 and not server.ended(), "the next client was not served", other, server)


def received_packets(world):
    return int(subprocess.check_output(world.within("client") + ["cat", "/sys/class/net/veth0/statistics/rx_packets"]))


def cut(world, server, client):
    """Takes the link away while the two are busy."""
    wait_until(lambda: client.ended() or server.ended() or received_packets(world) > 1000, 60 * world.slow,
               "they are busy")
    expect(not client.ended() and not server.ended(), "ended by itself", client, server)
    world.ip("client", "link", "set", "veth0", "down")


@case("dead-link-by-number", worlds=["ns-root"], seconds=90, reduced=True)
def dead_link_by_number(world):
    """Whoever has sent what nobody acknowledges fails, within seconds by its time-out of 14 and 7 retries. The other
    may have nothing to send, and then waits for ever with adapters, too."""
    port = world.port()
    common = ["ibv_rc_pingpong", "-d", world.device, "-g", "0", "-p", port, "-n", "100000000"]
    server = world.start_server(*common, port=port)
    client = world.start("client", *common, world.server)
    cut(world, server, client)
    wait_until(lambda: client.ended() or server.ended(), 60 * world.slow, "one of the two ends")
    expect("Failed status" in (client if client.ended() else server).output, "it does not say why it ended", client,
           server)


@case("dead-link-rdma-cm", worlds=["ns-root"], seconds=90, reduced=True)
def dead_link_rdma_cm(world):
    """Both hear DISCONNECTED, however little they have to send."""
    port = world.port()
    settings = {"UIWARP_PEER_TIMEOUT_MS": "2000"}
    server = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-v", port=port, settings=settings)
    client = world.start("client", "rping", "-c", "-a", world.server, "-p", port, "-v", settings=settings)
    cut(world, server, client)
    for end in (client, server):
        world.finish(end, 60, None, server, client)
        expect("DISCONNECT" in end.output or "failed" in end.output, "it does not say why it ended", end)


@case("killed-server-leaves-its-port", worlds=LO4, seconds=60, reduced=True)
def server_port(world):
    """Who starts a server again at once must not hear that the address is in use."""
    port = world.port()
    for _ in range(5):
        server = world.start_server("rping", "-s", "-a", world.server, "-p", port, port=port)
        server.destroy()
        with socket.socket(socket.AF_INET) as next_one:
            next_one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            next_one.bind((world.server, port))  # raises an exception where somebody listens


def kill_perftest(world, tool, victim, attempts=5, cm=True):
    port = world.port()
    # ib_send_bw gives itself credits on iWARP. A client without any, whose sends were all taken by TCP,
    # has nothing outstanding that could fail and looks at nothing but its send CQ: it ends with -D.
    common = [tool, *(["-R"] if cm else ["-d", world.device]), "-F", "-p", port, "-D", "8", "-s", "4096"]
    server = world.start_server(*common, port=port)
    client = world.start("client", *common, world.server)
    wait_until(lambda: client.ended() or server.ended() or busy(client), 20 * world.slow, f"{tool} works")
    if lost_the_race(client) and attempts > 1:
        server.destroy()
        kill_perftest(world, tool, victim, attempts - 1)
        return
    expect(not client.ended() and not server.ended(), f"{tool} ended by itself", client, server)
    ends = {"server": server, "client": client}
    ends.pop(victim).signal(signal.SIGKILL)
    survivor, = ends.values()
    world.finish(survivor, 40, None, client, server)
    expect(survivor.process.returncode != 0 or "Failed" in survivor.output,
           f"{tool} reports success although its peer was killed", survivor)


def busy(tool):
    """Has it used half a second of CPU since it started, i.e. is it past set-up and measuring?"""
    try:
        with open(f"/proc/{tool.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]) > 50
    except OSError:
        return False


for _tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
    for _victim in ("server", "client"):
        def _run(world, tool=_tool, victim=_victim):
            kill_perftest(world, tool, victim)
        case(f"killed-{_tool.replace('_', '-')}-{_victim}", worlds=LO4_NS, seconds=110, places=2,
             reduced=_tool == "ib_write_bw")(_run)

    # Connected by number and GID. The other way round ib_send_bw would wait for ever, as on InfiniBand: nobody tells a
    # receiver that its peer has gone.
    def _run_by_number(world, tool=_tool):
        kill_perftest(world, tool, "server", cm=False)
    case(f"killed-{_tool.replace('_', '-')}-without-rdma-cm", worlds=LO4_NS, seconds=110, places=2)(_run_by_number)


@case("connection-refused", seconds=60, reduced=True)
def refused(world):
    port = world.port()
    client = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "1", seconds=15, status=None)
    expect(client.process.returncode != 0, "rping reports success", client)
    expect("RDMA_CM_EVENT_REJECTED, error -111" in client.output, "rping is not told ECONNREFUSED", client)
    client = world.run("client", "ucmatose", "-s", world.server, "-p", port, seconds=15, status=None)
    expect("RDMA_CM_EVENT_REJECTED, error: -111" in client.output, "ucmatose is not told ECONNREFUSED", client)
    client = world.run("client", "rdma_client", "-s", world.server, "-p", port, seconds=15, status=None)
    expect("rdma_connect: Connection refused" in client.output, "rdma_client is not told ECONNREFUSED", client)


@case("address-in-use", worlds=["lo4-root", "lo4-user", "lo6-user"], seconds=60, reduced=True)
def address_in_use(world):
    port = world.port()
    first = world.start_server("rping", "-s", "-a", world.server, "-p", port, "-P", port=port)
    second = world.run("server", "rping", "-s", "-a", world.server, "-p", port, seconds=15, status=None)
    expect(second.process.returncode != 0 and "Address already in use" in second.output,
           "the second server is not told that the port is taken", second)
    client = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "5", "-V", seconds=20)
    expect(not first.ended(), "the first server did not survive the second", first, client)
    # The same port space as TCP: a plain socket takes it away too.
    family = socket.AF_INET6 if ":" in world.server else socket.AF_INET
    with socket.socket(family) as plain:
        plain.bind((world.server, 0))
        plain.listen()
        third = world.run("server", "rping", "-s", "-a", world.server, "-p", plain.getsockname()[1], seconds=15,
                          status=None)
        expect("Address already in use" in third.output, "a port of plain TCP is not reported as taken", third)


@case("server-dies-before-accepting", worlds=LO4_NS, seconds=60, reduced=True)
def server_dies(world):
    """The client waits for a server that is stopped, then killed."""
    port = world.port()
    server = world.start_server("rping", "-s", "-a", world.server, "-p", port, port=port)
    server.signal(signal.SIGSTOP)
    client = world.start("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "1", "-d")
    wait_until(lambda: client.ended() or established(client, port), 20 * world.slow, "the client's TCP connection")
    expect(not client.ended(), "the client ended before the server answered", client)
    server.signal(signal.SIGKILL)
    world.finish(client, 20, None)
    expect(client.process.returncode != 0, "rping reports success", client)
    expect(re.search(r"RDMA_CM_EVENT_(REJECTED|CONNECT_ERROR|UNREACHABLE)", client.output) is not None,
           "rping is not told that the connection failed", client)


def established(tool, port):
    """Has its namespace a TCP connection to that port?"""
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{tool.pid}/net/{table}") as lines:
            for line in lines:
                fields = line.split()
                if fields[3] == "01" and fields[2].endswith(f":{port:04X}"):
                    return True
    return False


@case("no-answer-to-request", worlds=LO4, seconds=60)
def silent_peer(world):
    """A TCP server that accepts and never answers the MPA Request: UIWARP_REPLY_TIMEOUT_MS ends the wait."""
    with socket.socket() as silent:
        silent.bind((world.server, 0))
        silent.listen()
        port = silent.getsockname()[1]
        client = world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "1", seconds=25, status=None,
                           settings={"UIWARP_REPLY_TIMEOUT_MS": "1000"})
    expect(client.process.returncode != 0 and "RDMA_CM_EVENT_UNREACHABLE, error -110" in client.output,
           "rping is not told ETIMEDOUT", client)


@case("bad-setting", worlds=LO4, seconds=20, reduced=True)
def bad_setting(world):
    tool = world.run("client", "ibv_devinfo", seconds=15, status=None, settings={"UIWARP_CRC": "perhaps"})
    expect("UIWARP_CRC" in tool.output and "auto" in tool.output, "the message does not name variable and values", tool)
    expect(tool.process.returncode != 0, "the device opened in spite of a wrong setting", tool)
