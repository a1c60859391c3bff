# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connecting by number and GID when the peer does not come, or others come: everything ends, and says why."""
import contextlib
import itertools
import os
import re
import signal
import socket
import sys
import threading

import false_peer
from harness import expect, wait_until
from case_exchange import gid_index, meeting_place
from registry import LO4, case
from stranger import PendingPeer

LO4_6 = LO4 + ["lo6-user"]
NO_ANSWER = "transport retry counter exceeded"
GID = {"lo4": "::ffff:127.0.0.1", "lo6": "::1", "ns": "::ffff:10.91.0.1"}


def own_number(tool):
    """The number of the queue pair that ibv_rc_pingpong made."""
    return int(re.search(r"local address: .*QPN 0x(\w+)", tool.output).group(1), 16)


def pingpong(world, port, *options):
    return ["ibv_rc_pingpong", "-d", world.device, "-g", gid_index(world), "-p", port, *options]


def meet(world, number, gid, settings=None):
    """ibv_rc_pingpong, told by its server to meet that queue pair; returns it when it has ended."""
    port = world.port()
    liar = world.start("client", sys.executable, os.path.join(os.path.dirname(__file__), "false_peer.py"), port,
                       number, gid, plain=True)
    world.server_ready(liar, port)
    client = world.run("client", *pingpong(world, port), "127.0.0.1", seconds=20, status=None, settings=settings)
    world.finish(liar, 10, 0, client)
    expect(client.process.returncode == 1, f"ended with {client.process.returncode}", client)
    return client


@case("no-such-peer", worlds=LO4_6, seconds=60, reduced=True)
def no_such_peer(world):
    """A number that nobody has, once so that we would have to call it, once so that it would have to call us."""
    for number, said in (((2 << 8) + 3, "TCP port 2: nobody listens there"), (0xffffff, "did not connect to TCP port")):
        client = meet(world, number, GID[world.place])
        expect(NO_ANSWER in client.output, "not told that nobody answers", client)
        expect(f"its peer, queue pair 0x{number:06x} at " in client.output and said in client.output,
               f"the log does not say '{said}'", client)


@case("peer-that-cannot-be-met", worlds=LO4, seconds=60, reduced=True)
def cannot_be_met(world):
    """ibv_modify_qp refuses what can never work, and the log says what to do instead."""
    for gid, said in (("ff02::1", "not the address of a host"), ("::1", "GID indices of one kind"),
                      ("::ffff:203.0.113.77", "choose another device")):
        client = meet(world, 0xffffff, gid)
        expect("Failed to modify QP to RTR" in client.output and said in client.output, f"{gid}: no '{said}'", client)


@case("another-program-at-the-peers-port", worlds=LO4, seconds=60, reduced=True)
def another_program(world):
    """What listens there accepts and says nothing, or talks another protocol."""
    for speaks, said in ((None, "not in RTR"), (b"HTTP/1.0 400 Bad Request\r\n\r\n", "no uiwarp")):
        with socket.socket() as listener:
            listener.bind((world.server, 0))
            listener.listen()
            # Below the client's own port: he calls.
            port = listener.getsockname()[1]
            if speaks:
                pid = os.fork()
                if pid == 0:
                    while True:
                        listener.accept()[0].sendall(speaks)
            client = meet(world, port << 8, GID[world.place], {"UIWARP_PORTS": f"{port + 1}-65535"})
            if speaks:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            expect(NO_ANSWER in client.output and said in client.output, f"the log does not say '{said}'", client)


@case("firewall", worlds=["ns-root", "ns-user"], seconds=60)
def firewall(world):
    """No TCP answer ever comes: the server's host throws away what is for the client's."""
    world.ip("server", "route", "add", "blackhole", "10.91.0.2/32")
    client = meet(world, (2 << 8) + 3, GID["ns"])
    expect(NO_ANSWER in client.output, "not told that nobody answers", client)
    expect("a firewall drops TCP" in client.output, "the log does not name firewalls", client)
    # And by rdma_cm.
    client = world.run("client", "rping", "-c", "-a", world.server, "-p", world.port(), "-C", "1", seconds=25,
                       status=None, settings={"UIWARP_CONNECT_TIMEOUT_MS": "1000"})
    expect(client.process.returncode != 0 and "RDMA_CM_EVENT_UNREACHABLE, error -110" in client.output,
           "rping is not told ETIMEDOUT", client)


@case("ports-exhausted", worlds=LO4, seconds=60, reduced=True)
def ports_exhausted(world):
    """ibv_modify_qp fails, and the log says why; rdma_cm does not need those ports."""
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::", 0))
        settings = {"UIWARP_PORTS": "{0}-{0}".format(taken.getsockname()[1])}
        client = meet(world, 0xffffff, GID[world.place], settings)
        expect("Failed to modify QP to RTR" in client.output and "it has no TCP port: widen UIWARP_PORTS" in client.output,
               "not told which setting to widen", client)
        port = world.port()
        world.start_server("rping", "-s", "-a", world.server, "-p", port, "-P", port=port, settings=settings)
        world.run("client", "rping", "-c", "-a", world.server, "-p", port, "-C", "5", "-V", seconds=20,
                  settings=settings)


def descriptors(tool):
    return len(os.listdir(f"/proc/{tool.pid}/fd"))


def closed_without_a_word(stranger):
    stranger.settimeout(20)
    try:
        return stranger.recv(1) == b""
    except ConnectionResetError:
        return True


def start_and_stop(world, ours, settings):
    """A pingpong whose client is stopped when the two have met, and before it is done: server, client, iterations. With
    events, so that a processor is left for us, who are to see them together; with more messages where they were done
    before we had a turn."""
    for iterations in ("50000", "500000", "5000000"):
        port = world.port()
        command = pingpong(world, port, "-e", "-c", "-s", "64", "-n", iterations)
        server = world.start_server("stdbuf", "-oL", *command, port=port, settings=settings[0])
        client = world.start("client", *command, meeting_place(world), settings=settings[1])
        wait_until(lambda: client.ended() or established(client, ours), 20 * world.slow, "the two meet")
        client.signal(signal.SIGSTOP)
        if not client.ended() and not server.ended():
            return server, client, iterations
        client.destroy()
        server.destroy()
    return expect(False, "the client ends too soon", client, server)


@case("strangers-at-qpn-listener", worlds=LO4_6, seconds=100, reduced=True)
def strangers(world):
    """Others come to the port where a queue pair met its peer, one of them a queue pair that was given its name. They
    get nothing, do not use up what the process has, and the two go on."""
    # The least of the three waits and the others call.
    ours, peers, theirs = sorted(world.port() for _ in range(3))
    ports = [{"UIWARP_PORTS": f"{port}-{port}", "UIWARP_LOG": "info"} for port in (ours, peers, theirs)]
    server, client, iterations = start_and_stop(world, ours, ports)
    expect(server.listening() == {ours} and not client.listening(), "other ports are open", server, client)

    number = own_number(server)
    stranger = meet(world, number, GID[world.place], ports[2])
    expect(NO_ANSWER in stranger.output and "does not expect this queue pair" in stranger.output,
           "a stranger is not told that nobody expects it", stranger, server)
    expect(f"queue pair 0x{number:06x} refuses queue pair 0x{own_number(stranger):06x} at " in server.output,
           "the log does not tell of a stranger", server)

    before = descriptors(server)
    crowd = []
    try:
        for said in (b"GET / HTTP/1.0\r\n\r\n", b"MPA ID Req Frame\x00\x02\x00\x00", bytes(200)):
            crowd.append(socket.create_connection((world.server, ours)))
            crowd[-1].sendall(said)
            expect(closed_without_a_word(crowd[-1]), f"{said} gets an answer", server)
        # More who say nothing, or half of it, than are let in at a time.
        silent = [socket.create_connection((world.server, ours)) for _ in range(400)]
        crowd += silent
        for one in silent[::2]:
            with contextlib.suppress(ConnectionError):   # who has made room already
                one.send(b"MPA ID Req")
        expect(closed_without_a_word(silent[0]), "the oldest do not make room", server)
        # 256 pending peers and a few of its own; what the kernel has just accepted is closed a moment later.
        wait_until(lambda: descriptors(server) <= before + 300, 20 * world.slow, "the crowd costs 300 descriptors at most")
    finally:
        for one in crowd:
            one.close()
    client.signal(signal.SIGCONT)
    world.finish(client, 60, 0, server)
    world.finish(server, 20, 0, client)
    for end in (client, server):
        expect(f"{iterations} iters in" in end.output and "invalid data" not in end.output, "disturbed", client, server)


def name_of(said):
    """Number, PSN and GID as ibv_rc_pingpong sends them."""
    _, number, psn, gid = said.rstrip(b"\0").decode().split(":")
    return (int(number, 16), bytes.fromhex(gid)), int(psn, 16)


@case("stranger-takes-the-place-of-the-peer", worlds=LO4_6, seconds=100, reduced=True)
def impostor(world):
    """Others know the names of a queue pair and of its peer, and come before the peer, with him and after him. They do
    not know the PSNs: who does gets the queue pair."""
    port = world.port()
    server = world.start_server(*pingpong(world, port), port=port)
    gid = socket.inet_pton(socket.AF_INET6, GID[world.place])
    own_psn, peer = 0x5a5a5a, (0xffffff, gid)   # the greater name, which calls
    pending = []

    def comes():
        pending.append(PendingPeer(peer, name, world.server))
        return pending[-1]

    try:
        with socket.create_connection((meeting_place(world), port)) as meeting:
            meeting.sendall(f"0000:{peer[0]:06x}:{own_psn:06x}:{gid.hex()}\0".encode())
            name, psn = name_of(meeting.recv(false_peer.SIZE, socket.MSG_WAITALL))
            # In RTS now, and nobody there yet. None of the guesses is right.
            for wrong in ((own_psn ^ 1, psn), (own_psn, psn ^ 1), (psn, own_psn), (0, 0)):
                stranger = comes()
                expect(stranger.is_challenged(), "no challenge", server)
                expect(not stranger.is_taken(*wrong), "a stranger is taken for the peer", server)
            # One that was right for somebody else.
            first, second = comes(), comes()
            expect(first.is_challenged() and second.is_challenged(), "no challenge", server)
            second.nonce, second.commitment = first.nonce, first.commitment
            expect(not second.is_taken(own_psn, psn), "a recorded proof is taken", server)
            # Many who wait with their challenges, and more who say nothing.
            for _ in range(100):
                expect(comes().is_challenged(), "no challenge", server)
            for _ in range(200):
                comes()
            real, late = comes(), comes()
            expect(real.is_challenged() and late.is_challenged(), "no challenge", server)
            expect(real.is_taken(own_psn, psn), "the peer is not taken for himself", server)
            expect(not late.is_taken(own_psn, psn) and not comes().is_challenged(), "somebody comes after the peer", server)
        real.connection.setblocking(False)
        try:
            expect(real.connection.recv(1) == b"", "the server speaks first", server)
        except BlockingIOError:
            pass
        expect(server.output.count("does not know the PSNs") == 1, "the log does not tell of strangers, once", server)
    finally:
        for pending_peer in pending:
            pending_peer.close()
    server.signal(signal.SIGTERM)


@case("pingpong-among-strangers", worlds=LO4_6, seconds=120, serial=True)
def among_strangers(world):
    """Somebody who tries all names that the client may have, all the time, keeps nobody from meeting."""
    gid = socket.inet_pton(socket.AF_INET6, GID[world.place])
    taken = []

    def attack(ours, peers, done):
        for ends in itertools.cycle(range(1 << 16)):
            if done.is_set():
                return
            try:
                pending_peer = PendingPeer((peers << 8 | ends & 255, gid), (ours << 8 | ends >> 8, gid), world.server)
                pending_peer.connection.settimeout(0.01)   # whom the server does not expect yet hears nothing for seconds
                if pending_peer.is_challenged():
                    taken.append(pending_peer.is_taken(ends, ends))
                pending_peer.close()
            except (ConnectionError, TimeoutError):
                pass

    for _ in range(5):
        ours, peers = sorted(world.port() for _ in range(2))
        settings = [{"UIWARP_PORTS": f"{port}-{port}"} for port in (ours, peers)]
        port, done = world.port(), threading.Event()
        command = pingpong(world, port, "-c", "-s", "64", "-n", "1000")
        attacker = threading.Thread(target=attack, args=(ours, peers, done))
        attacker.start()
        try:
            server = world.start_server(*command, port=port, settings=settings[0])
            client = world.start("client", *command, meeting_place(world), settings=settings[1])
            world.finish(client, 20, 0, server)
            world.finish(server, 20, 0, client)
        finally:
            done.set()
            attacker.join()
        expect(not any(taken), "a stranger is taken for the peer", server)


def established(tool, port):
    """Has the process a TCP connection to that port?"""
    return any(state == "01" and remote == port for state, _, remote in tool.sockets())
