# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Starting the tools that are measured, and leaving none behind."""
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LIMIT = 60   # seconds for one run of one tool


class Problem(Exception):
    """A measurement could not be made; the text says why."""


class Missing(Exception):
    """What a measurement needs is not on this machine; the text says what."""


def need(program, package):
    if not shutil.which(program):
        raise Missing(f"{program} is not installed (package {package})")


def last_lines(output):
    """The end of what a program printed, on one line and without colours."""
    plain = re.sub(r"\x1b?\[[0-9;]*m", "", output)
    return " | ".join([line.strip() for line in plain.splitlines() if line.strip()][-4:])[-600:]


def allow_descriptors(wanted):
    """Raises this process's limit, and so that of the tools, as far as it may; returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft if soft != resource.RLIM_INFINITY else wanted


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class Program:
    """
    A program in its own process group, its output in a file. Not in its own session: schedulers treat sessions as
    groups, and what wakes up in one may have to wait for the other.
    """

    def __init__(self, command, settings=None):
        self.name = os.path.basename(command[command.index("run") + 1] if "run" in command else command[0])
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._output,
                                         stderr=subprocess.STDOUT, env={**os.environ, **(settings or {})},
                                         preexec_fn=os.setpgrp)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._output.close()

    def output(self):
        return os.pread(self._output.fileno(), 1 << 20, 0).decode(errors="replace")

    def wait(self, seconds=LIMIT):
        """Its output; a Problem when it fails or does not end."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Problem(f"{self.name} did not end within {seconds} s") from None
        if status != 0:
            raise Problem(f"{self.name} failed with {status}: {last_lines(self.output())}")
        return self.output()

    def _listens(self, port):
        for table in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{self._process.pid}/net/{table}", encoding="ascii") as lines:
                    if any(f[1].endswith(f":{port:04X}") and f[3] == "0A" for f in map(str.split, lines)):
                        return True
            except OSError:
                pass
        return False

    def await_listening(self, port, seconds=20):
        deadline = time.monotonic() + seconds
        while not self._listens(port):
            if self._process.poll() is not None:
                raise Problem(f"{self.name} (server) ended: {last_lines(self.output())}")
            if time.monotonic() > deadline:
                raise Problem(f"{self.name} (server) does not listen")
            time.sleep(0.02)


def ask(server, client, port, settings=None, lasting=False):
    """Output of a client that runs against a server; `lasting`: the server serves for ever."""
    with Program(server, settings) as serving:
        serving.await_listening(port)
        with Program(client, settings) as asking:
            output = asking.wait()
        if not lasting:
            serving.wait(20)
        return output
