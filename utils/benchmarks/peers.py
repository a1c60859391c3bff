# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Other software that moves octets between two processes, measured when it is installed."""
import json
import re
from dataclasses import dataclass

from .processes import Problem, ask, free_port, last_lines, need


def found(pattern, output, tool):
    match = re.search(pattern, output, re.MULTILINE)
    if not match:
        raise Problem(f"{tool} printed no result: {last_lines(output)}")
    return float(match.group(1))


@dataclass(frozen=True)
class Iperf3:
    """A TCP stream, with reno as uiwarp chooses on loopback. MiB per second."""
    size: int
    label = "iperf3"

    def take(self, bench):
        need("iperf3", "iperf3")
        port = free_port()
        client = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-l", str(self.size), "-t", "1", "-C", "reno", "-J"]
        output = ask(["iperf3", "-s", "-1", "-p", str(port)], client, port)
        return json.loads(output)["end"]["sum_received"]["bits_per_second"] / 8 / (1 << 20)


@dataclass(frozen=True)
class Sockperf:
    """TCP ping-pong; spinning on non-blocking sockets, or blocking. Median microseconds one way."""
    size: int
    spin: bool = True

    @property
    def label(self):
        return "sockperf" + (" --nonblocked" if self.spin else "")

    def take(self, bench):
        need("sockperf", "sockperf")
        port = free_port()
        common = ["--tcp", "-i", "127.0.0.1", "-p", str(port)] + (["--nonblocked"] if self.spin else [])
        output = ask(["sockperf", "sr", *common],
                     ["sockperf", "pp", *common, "-m", str(self.size), "-t", "1"], port, lasting=True)
        return found(r"percentile 50\.000 = +([0-9.]+)", output, "sockperf")


@dataclass(frozen=True)
class Ucx:
    """ucx_perftest over its tcp transport, on the interface lo. `column`: one of COLUMNS."""
    test: str
    size: int
    iterations: int
    column: str
    COLUMNS = {"latency": 1, "bandwidth": 5, "rate": 7}   # median us; overall MiB/s; overall messages/s
    SETTINGS = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}

    @property
    def label(self):
        return f"UCX {self.test}"

    def take(self, bench):
        need("ucx_perftest", "ucx-utils")
        port = free_port()
        server = ["ucx_perftest", "-p", str(port)]
        # -f: only the final line; -w: round trips before the clock starts, which do not scale by themselves
        client = server + ["-f", "-t", self.test, "-s", str(self.size), "-n", str(bench.iterations(self.iterations)),
                           "-w", "200", "127.0.0.1"]
        return self.value(ask(server, client, port, self.SETTINGS), self.column)

    @classmethod
    def value(cls, output, column):
        """Of the last line of numbers: iterations, then latency (3), bandwidth (2), rate (2)."""
        lines = [line.split() for line in output.splitlines() if re.fullmatch(r"[ 0-9.]+", line) and line.strip()]
        if not lines or len(lines[-1]) != 8:
            raise Problem(f"ucx_perftest printed no result: {last_lines(output)}")
        value = float(lines[-1][cls.COLUMNS[column]])
        return value / 1e6 if column == "rate" else value


@dataclass(frozen=True)
class Libfabric:
    """fi_pingpong over libfabric's tcp provider, connected endpoints. Average microseconds one way."""
    size: int
    iterations: int
    label = "libfabric msg"

    def take(self, bench):
        need("fi_pingpong", "libfabric-bin")
        port = free_port()
        count = str(bench.iterations(self.iterations))
        common = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-I", count, "-S", str(self.size)]
        output = ask(common + ["-B", str(port)], common + ["-P", str(port), "127.0.0.1"], port)
        for line in output.splitlines():
            fields = line.split()
            if len(fields) == 8 and fields[0] != "bytes":
                return float(fields[6])
        raise Problem(f"fi_pingpong printed no result: {last_lines(output)}")
