# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Where client and server of a measurement run: loopback, or two network namespaces with a veth pair."""
import os
import shutil
import subprocess

from .processes import Missing, Problem


class Loopback:
    address = "127.0.0.1"
    namespace = None   # the server's

    @staticmethod
    def server(command):
        return command

    client = server

    def close(self):
        pass


class Veth:
    """MTU 1500, the server in one namespace, the client in another; gone after close(). Both use reno: with bbr, which
    paces by time, a machine's timers are what is measured."""
    address = "10.92.0.1"

    def __init__(self):
        if os.geteuid() != 0:
            raise Missing("network namespaces need root")
        if not shutil.which("ip"):
            raise Missing("ip is not installed (package iproute2)")
        self._names = []
        left, right = (f"uiwbench{os.getpid()}{side}" for side in "ab")
        try:
            for name in (left, right):
                self._ip("netns", "add", name)
                self._names.append(name)
                self._ip("-n", name, "link", "set", "lo", "up")
                self._ip("netns", "exec", name, "sh", "-c",
                         "echo reno > /proc/sys/net/ipv4/tcp_congestion_control")
            self._ip("-n", left, "link", "add", "veth0", "mtu", "1500", "type", "veth", "peer", "name", "veth0",
                     "netns", right)
            for name, address in ((left, self.address), (right, "10.92.0.2")):
                self._ip("-n", name, "address", "add", address + "/24", "dev", "veth0")
                self._ip("-n", name, "link", "set", "veth0", "mtu", "1500", "up")
        except Problem as problem:
            self.close()
            raise Missing(f"network namespaces cannot be made here: {problem}") from None
        self.namespace = left

    @staticmethod
    def _ip(*arguments):
        result = subprocess.run(("ip",) + arguments, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Problem(result.stderr.strip())

    def server(self, command):
        return ["ip", "netns", "exec", self._names[0], *command]

    def client(self, command):
        return ["ip", "netns", "exec", self._names[1], *command]

    def close(self):
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        self._names = []
