# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Where client and server of a test run: which address, which user, which network namespaces."""
import os
import shutil
import subprocess
import tempfile

from harness import Failed, Skipped, Tool, expect, free_port, wait_until

NOBODY = 65534
NAMES = ["lo4-root", "lo4-user", "lo6-root", "lo6-user", "ns-root", "ns-user"]


def _run(*arguments):
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"{' '.join(arguments)}: {result.stdout.strip()}")


class World:
    """`name` is lo4, lo6 or ns, a dash, and root or user."""

    def __init__(self, name, binaries, reduced=False, slow=1.0):
        place, user = name.split("-")
        self.name = name
        self.place = place
        self.reduced = reduced
        self.slow = slow
        self.server = {"lo4": "127.0.0.1", "lo6": "::1", "ns": "10.91.0.1"}[place]
        self.device = "uiw_veth0" if place == "ns" else "uiw_lo"
        self._tools = []
        self._namespaces = []
        self._copies = None
        self._user = []
        root = os.geteuid() == 0
        if user == "root" and not root:
            raise Skipped("needs root")
        if user == "user" and root:
            if not shutil.which("setpriv"):
                raise Skipped("needs setpriv (package util-linux) to become an unprivileged user")
            self._user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            binaries = self._reachable(binaries)
        self.bin = binaries
        # Any of them can be run under --shake, too.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("UIWARP_") or k == "UIWARP_SHAKE"}
        # The stock tools leave memory behind when they end; what uiwarp leaves, e2e.leak looks for.
        self.environment["ASAN_OPTIONS"] = self.environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        if place == "ns":
            self._make_namespaces()
        else:
            # The machine has other interfaces, beside which the RoCE face would leave lo out.
            self.environment["UIWARP_DEVICES"] = "all"

    def _reachable(self, binaries):
        """The unprivileged user must be able to execute it: if not, work on a copy that it can."""
        command = self._user + [os.path.join(binaries, "uiwarp"), "--version"]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return binaries
        self._copies = tempfile.mkdtemp(prefix="uiwarp-e2e-")
        os.chmod(self._copies, 0o755)
        for folder in ("bin", "lib"):
            shutil.copytree(os.path.join(os.path.dirname(binaries), folder), os.path.join(self._copies, folder),
                            symlinks=True, ignore=shutil.ignore_patterns("test_*", "*.a"))
        return os.path.join(self._copies, "bin")

    def _make_namespaces(self):
        if os.geteuid() != 0:
            raise Skipped("needs root to make network namespaces")
        if not shutil.which("ip"):
            raise Skipped("needs ip (package iproute2) to make network namespaces")
        left, right = (f"uiwe2e{os.getpid()}{side}" for side in "ab")
        for namespace in (left, right):
            result = subprocess.run(["ip", "netns", "add", namespace], stderr=subprocess.PIPE, text=True, check=False)
            if result.returncode != 0:
                self.close()
                raise Skipped(f"cannot make network namespaces here: {result.stderr.strip()}")
            self._namespaces.append(namespace)
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
        _run("ip", "-n", left, "link", "add", "veth0", "mtu", "1500", "type", "veth",
             "peer", "name", "veth0", "netns", right)
        for namespace, address in ((left, "10.91.0.1/24"), (right, "10.91.0.2/24")):
            _run("ip", "-n", namespace, "address", "add", address, "dev", "veth0")
            _run("ip", "-n", namespace, "link", "set", "veth0", "mtu", "1500", "up")

    def within(self, side):
        """What to start a command by so that it runs in the network of `side`."""
        return ["ip", "netns", "exec", self._namespaces[0 if side == "server" else 1]] if self._namespaces else []

    def ip(self, side, *arguments):
        """ip(8) in the network of `side`, which must not be the host's."""
        assert self._namespaces, "only where there are namespaces"
        _run("ip", "-n", self._namespaces[0 if side == "server" else 1], *arguments)

    def one_segment_at_a_time(self):
        """TCP gives the interfaces single segments, so that captures show them as they are on a wire."""
        for namespace in self._namespaces:
            _run("ip", "-n", namespace, "link", "set", "veth0", "gso_max_segs", "1")

    def start(self, side, *program, settings=None, plain=False):
        """Starts a program on `side` ("server" or "client"); `plain`: without `uiwarp run`."""
        command = self.within(side) + self._user
        if not plain:
            command += [os.path.join(self.bin, "uiwarp"), "run"]
        tool = Tool(command + list(program), {**self.environment, **(settings or {})})
        self._tools.append(tool)
        return tool

    def server_ready(self, tool, port):
        """Waits until the server listens."""
        wait_until(lambda: tool.ended() or tool.listens(port), 20 * self.slow,
                   f"{tool.described()} listens on port {port}")
        expect(not tool.ended(), f"the server ended before it listened on port {port}", tool)

    def start_server(self, *program, port, settings=None):
        tool = self.start("server", *program, settings=settings)
        self.server_ready(tool, port)
        return tool

    def run(self, side, *program, seconds=30, status=0, settings=None):
        """Runs a program to its end and expects that exit status (None: any)."""
        tool = self.start(side, *program, settings=settings)
        self.finish(tool, seconds, status)
        return tool

    def finish(self, tool, seconds, status=0, *others):
        try:
            got = tool.wait(seconds * self.slow)
        except Failed as failure:
            expect(False, str(failure), tool, *others)
        expect(status is None or got == status, f"{tool.described()}: exit status {got}, expected {status}",
               tool, *others)

    @staticmethod
    def port():
        return free_port()

    def close(self):
        for tool in self._tools:
            tool.destroy()
            tool.forget()
        for namespace in self._namespaces:
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        if self._copies:
            shutil.rmtree(self._copies, ignore_errors=True)
