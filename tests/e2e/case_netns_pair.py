# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`uiwarp netns-pair`: two hosts by one command."""
import errno
import os
import signal
import subprocess

from harness import Skipped, expect, wait_until
from registry import LO4, case

LISTEN = ("import socket, sys; s = socket.socket(); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(); "
          "c = s.accept()[0]; c.sendall(b'hello'); c.close(); sys.exit(int(sys.argv[3]))")
CONNECT = ("import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); print(s.recv(5)); "
           "sys.exit(int(sys.argv[3]))")
PORT = "7000"
PATIENT = ["--wait", "60", "--grace", "30"]   # where other programs keep the processors busy


def start(world, *words):
    if subprocess.run(world._user + ["unshare", "--user", "--net", "true"], check=False).returncode != 0:
        raise Skipped("needs to be allowed to make user and network namespaces")
    return world.start("client", os.path.join(world.bin, "uiwarp"), "netns-pair", *words, plain=True)


def run(world, *words, status):
    tool = start(world, *words)
    world.finish(tool, 40, status)
    return tool


def alive(mark):
    """Processes with this word in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(pid)
    return found


@case("netns-pair", worlds=LO4, reduced=True)
def pair(world):
    tool = run(world, *PATIENT, "--", "rping", "-s", "-a", "{server}", "-C", "3", "--",
               "rping", "-c", "-a", "{server}", "-I", "{client}", "-C", "3", "-v", status=0)
    expect(tool.output.count("ping data: rdma-ping-") >= 3, "the pings are missing", tool)
    tool = run(world, *PATIENT, "--mtu", "9000", "--", "ibv_rc_pingpong", "-g", "0", "-n", "100", "--",
               "ibv_rc_pingpong", "-g", "0", "-n", "100", "{server}", status=0)
    expect("GID ::ffff:10.0.0.1" in tool.output and "GID ::ffff:10.0.0.2" in tool.output, "not two hosts", tool)


@case("netns-pair-ends", worlds=LO4, seconds=120)
def ends(world):
    """The exit status is the client's, else the server's; nothing stays behind."""
    listen, connect = ["python3", "-c", LISTEN, "{server}", PORT], ["python3", "-c", CONNECT, "{server}", PORT]
    run(world, *PATIENT, "--", *listen, "0", "--", *connect, "0", status=0)
    run(world, *PATIENT, "--port", PORT, "--", *listen, "0", "--", *connect, "5", status=5)
    run(world, *PATIENT, "--", *listen, "6", "--", *connect, "0", status=6)
    tool = run(world, "--", "sh", "-c", "exit 7", "--", "echo", "started", status=7)
    expect("client was not started" in tool.output and "started\n" not in tool.output, "no word of it", tool)
    # A client that waits for a server that has failed.
    tool = run(world, "--wait", "0", "--grace", "0.5", "--", "sh", "-c", "sleep 1; exit 8", "--", "sleep", "1000", status=8)
    expect("server ended with status 8" in tool.output, "no word of it", tool)
    # A server that serves for ever, and one that has gone into the background.
    tool = run(world, "--wait", "0", "--grace", "0", "--", "sleep", "1000", "--", "true", status=0)
    expect("the server did not end within 0 s after the other one" in tool.output, "no word of its being stopped", tool)
    mark = f"mark-{os.getpid()}"
    run(world, *PATIENT, "--", "sh", "-c", f"setsid python3 -c \"$0\" 10.0.0.1 {PORT} 0 {mark} &", LISTEN, "--",
        *connect, "0", status=0)
    run(world, "--wait", "0", "--", "sh", "-c", f"setsid sh -c 'sleep 1000; : {mark}' {mark} &", "--", "true", status=0)
    expect(not alive(mark), "a process was left")


@case("netns-pair-options", worlds=LO4, seconds=60)
def options(world):
    """Those of run, for both; and who forgets where a program begins is told."""
    show = ["sh", "-c", "echo $0 $UIWARP_FACE $UIWARP_CHECK $UIWARP_SHAKE"]
    words = ["--wait", "0", "--as", "roce", "--check=hints=1", "--shake", "7"]
    tool = run(world, *words, "--", *show, "server", "--", *show, "client", status=0)
    for end in ("server", "client"):
        expect(f"{end} roce hints=1 7\n" in tool.output, f"not with the options at the {end}", tool)
    tool = run(world, "--wait", "0", "--check", "--", *show, "server", "--", *show, "client", status=0)
    expect("client on\n" in tool.output, "not with --check", tool)
    tool = run(world, "--as", "green", "--", "true", "--", "true", status=2)
    expect("iwarp|roce" in tool.output, "not what is allowed", tool)
    tool = run(world, "./server", "7000", status=2)
    expect("write -- before each program" in tool.output, "not what is missing", tool)


@case("netns-pair-stops", worlds=LO4, seconds=90)
def stops(world):
    mark = f"mark-{os.getpid()}"
    waits = ["sh", "-c", "trap '' TERM; sleep 1000 & wait; wait", mark]
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, 137)):
        tool = start(world, "--wait", "0", "--", *waits, "--", *waits)
        # The command itself has the word, too.
        wait_until(lambda: len(alive(mark)) >= 3, 20 * world.slow, "both run", tool)
        tool.signal(number)
        world.finish(tool, 20, status)
        wait_until(lambda: not alive(mark), 20 * world.slow, "both have ended", tool)


@case("netns-pair-forbidden", worlds=["lo4-user"])
def forbidden(world):
    """A user namespace whose own user may not make another one stands for a system that forbids it."""
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c",
              'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"', "sh"]
    tool = world.start("client", *inside, os.path.join(world.bin, "uiwarp"), "netns-pair", "--", "true", "--", "true",
                       plain=True)
    if not tool.ended():
        world.finish(tool, 20, None)
    if "unshare failed" in tool.output:
        raise Skipped("needs to be allowed to make user namespaces")
    expect(tool.process.returncode == 125 and "does not let you make user and network namespaces" in tool.output and
           "sysctl user.max_user_namespaces" in tool.output, "the message does not say what to do", tool)
    # The error of the call, not of a file that the look for the cure did not find.
    expect(f": {os.strerror(errno.ENOSPC)}. " in tool.output, "another reason", tool)
