# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Starting tools, waiting for what they do, and leaving nothing behind."""
import os
import random
import signal
import socket
import subprocess
import tempfile
import time


# Of those that tests choose.
LOWEST_PORT = 16384


class Failed(Exception):
    """The test failed; the text says what was expected and what happened."""


class Skipped(Exception):
    """The test cannot run here; the text says what it would need."""


def wait_until(condition, seconds, what, *tools):
    """Polls `condition` until it is true; Failed, with the output of `tools`, when it is not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            expect(False, f"after {seconds:.0f} s still not: {what}", *tools)
        time.sleep(0.02)


def free_port():
    """A TCP port that nobody uses now on any address of this host, and that the kernel gives nobody who asks for any:
    connections and queue pairs would take it meanwhile, in a network namespace unseen from here."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as taken_from:
        lowest = int(taken_from.read().split()[0])
    while True:
        with socket.socket(socket.AF_INET6) as probe:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            try:
                probe.bind(("::", random.randrange(LOWEST_PORT, lowest) if lowest > LOWEST_PORT else 0))
            except OSError:
                continue
            return probe.getsockname()[1]


class Tool:
    """A program that runs in its own process group, its output in a file."""

    def __init__(self, arguments, environment):
        self.arguments = [str(argument) for argument in arguments]
        self._output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=self._output,
                                        stderr=subprocess.STDOUT, env=environment, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    @property
    def output(self):
        return os.pread(self._output.fileno(), 1 << 24, 0).decode(errors="replace")

    def ended(self):
        return self.process.poll() is not None

    def signal(self, number):
        if not self.ended():
            os.kill(self.pid, number)

    def destroy(self):
        """Kills the whole group; harmless when it has ended."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()

    def forget(self):
        """After destroy(): its output is not wanted any more."""
        self._output.close()

    def wait(self, seconds):
        """Exit status (128 + n when killed by signal n); Failed when it does not end in time."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.described()} did not end within {seconds:.0f} s") from None
        return status if status >= 0 else 128 - status

    def _sockets_around(self):
        """The TCP sockets of its network namespace: (state as in /proc/net/tcp, local port, remote port, inode). Not those in
        TIME_WAIT, of which other tests may have left tens of thousands."""
        for table in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{self.pid}/net/{table}") as lines:
                    next(lines)
                    rows = [line.split() for line in lines if " 06 " not in line]
            except OSError:
                continue
            for fields in rows:
                local, remote = (int(address.rpartition(":")[2], 16) for address in fields[1:3])
                yield fields[3], local, remote, fields[9]

    def listens(self, port):
        """Does a process of its network namespace listen on this TCP port?"""
        return any(state == "0A" and local == port for state, local, _, _ in self._sockets_around())

    def sockets(self):
        """The TCP sockets of this process: (state, local port, remote port), the state as in /proc/net/tcp."""
        own = set()
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                own.add(os.readlink(f"/proc/{self.pid}/fd/{name}"))
            except OSError:
                pass
        return [(state, local, remote) for state, local, remote, inode in self._sockets_around()
                if f"socket:[{inode}]" in own]

    def listening(self):
        """The TCP ports on which this process listens."""
        return {local for state, local, _ in self.sockets() if state == "0A"}

    def described(self):
        return " ".join(self.arguments[self.arguments.index("run") + 1:] if "run" in self.arguments
                        else self.arguments)


def expect(condition, what, *tools):
    """Failed with the output of `tools` when `condition` does not hold."""
    if condition:
        return
    text = what
    for tool in tools:
        text += f"\n--- {tool.described()} (status {tool.process.poll()}) printed:\n{tool.output.rstrip()[-6000:]}"
    raise Failed(text)
