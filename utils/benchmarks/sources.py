# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Where numbers come from: the stock tools over uiwarp, and raw TCP of the same shape."""
import os
import signal
from dataclasses import dataclass, field

from .processes import Missing, Problem, Program, allow_descriptors, ask, free_port, last_lines, need

TYPICAL, AVERAGE, RATE = 4, 3, 4   # columns of perftest's results: t_typical; BW average; MsgRate
PERFTEST_ATTEMPTS = 5


@dataclass
class Bench:
    """What every source needs to know."""
    binaries: str
    scale: float            # share of the iterations that a source asks for
    loopback: object
    veth: object = None     # a Veth, or None:
    no_veth: str = ""       # why

    def iterations(self, wanted, multiple=64):
        """perftest's post list has to divide it."""
        return max(multiple, int(wanted * self.scale) // multiple * multiple)

    def place(self, veth):
        if veth and not self.veth:
            raise Missing(self.no_veth)
        return self.veth if veth else self.loopback

    def binary(self, name):
        return os.path.join(self.binaries, name)

    def under_uiwarp(self, *command):
        return [self.binary("uiwarp"), "run", *map(str, command)]


def words(settings, *parts):
    """A label: what is set and what runs."""
    return " ".join((*(f"{name}={value}" for name, value in settings.items()), *map(str, parts)))


def only_number(command, settings=None):
    """Of a program that prints nothing else."""
    with Program(command, settings) as program:
        return float(program.wait())


@dataclass(frozen=True)
class Perftest:
    """A stock tool of perftest, both ends over uiwarp."""
    tool: str
    size: int
    iterations: int
    column: int
    options: tuple = ()
    settings: dict = field(default_factory=dict)
    veth: bool = False
    multiple: int = 64   # of which the iterations are some

    @property
    def label(self):
        size = () if self.tool.startswith("ib_atomic") else ("-s", self.size)
        return words(self.settings, self.tool, *size, *self.options)

    def take(self, bench):
        need(self.tool, "perftest")
        for _ in range(PERFTEST_ATTEMPTS):
            try:
                return self._once(bench)
            except Problem as problem:
                if not refused(str(problem)):
                    raise
        raise Problem(f"{self.tool} was refused by its own server {PERFTEST_ATTEMPTS} times")

    def _once(self, bench):
        place, port = bench.place(self.veth), free_port()
        size = [] if self.tool.startswith("ib_atomic") else ["-s", self.size]
        command = bench.under_uiwarp(self.tool, "-R", "-F", "-p", port, *size,
                                     "-n", bench.iterations(self.iterations, self.multiple), *self.options)
        output = ask(place.server(command), place.client(command + [place.address]), port, self.settings)
        return column_of(output, self.size, self.column)


def refused(said):
    """perftest -R connects twice, and its client may come before its server listens again. It then crashes in its own
    clean-up, mostly before the line that says so is written."""
    crashed = f"failed with {-signal.SIGSEGV}:" in said and "Failed to handle RDMA CM event" in said
    return crashed or "RDMA_CM_EVENT_REJECTED; error: -111" in said


def column_of(output, size, column):
    """A column of the line of perftest's table for messages of `size`."""
    for line in output.splitlines():
        fields = line.split()
        if len(fields) > column and fields[0] == str(size):
            return float(fields[column])
    raise Problem(f"perftest printed no result: {last_lines(output)}")


@dataclass(frozen=True)
class Raw:
    """bin/uiwarp-bench-tcp."""
    shape: str
    size: int
    iterations: int
    options: tuple = ()
    veth: bool = False

    @property
    def label(self):
        return " ".join(("raw UDP" if self.shape == "datagrams" else "raw TCP", self.shape, str(self.size), *self.options))

    def command(self, bench, iterations):
        place = bench.place(self.veth)
        where = ["-a", place.address, *(["-n", place.namespace] if place.namespace else [])]
        return place.client([bench.binary("uiwarp-bench-tcp"), *self.options, *where, self.shape, str(self.size),
                             str(iterations)])

    def take(self, bench):
        return only_number(self.command(bench, bench.iterations(self.iterations)))


@dataclass(frozen=True)
class Cmtime:
    """Connections per second of rdmacm-utils' cmtime: all steps from the id to the connection."""
    connections: int
    STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect")

    @property
    def label(self):
        return f"cmtime -c {self.connections}"

    def take(self, bench):
        need("cmtime", "rdmacm-utils")
        place, port = bench.place(False), free_port()
        command = bench.under_uiwarp("cmtime", "-p", port, "-c", self.connections)
        output = ask(command + ["-b", place.address], command + ["-s", place.address], port, lasting=True)
        return 1e6 / self.microseconds(output)

    @classmethod
    def microseconds(cls, output):
        """Per connection: the last column, "us / conn"."""
        found = {}
        for line in output.splitlines():
            step, colon, numbers = line.partition(":")
            if colon and step.strip() in cls.STEPS:
                found[step.strip()] = float(numbers.split()[-1])
        if len(found) < len(cls.STEPS) or "error" in output:
            raise Problem(f"cmtime did not complete: {last_lines(output)}")
        return sum(found.values())


@dataclass(frozen=True)
class Idle:
    """bin/uiwarp-bench-idle: one busy connection among idle ones; `what` is one of the lines it prints."""
    connections: int
    what: str

    @property
    def label(self):
        return f"uiwarp-bench-idle {self.connections}"

    def take(self, bench):
        if allow_descriptors(self.connections + 100) < self.connections + 100:
            raise Missing(f"the limit of descriptors (ulimit -Hn) is too low for {self.connections} connections")
        command = bench.under_uiwarp(bench.binary("uiwarp-bench-idle"), self.connections, bench.iterations(20000))
        with Program(command) as program:
            output = program.wait()
        for line in output.splitlines():
            name, _, value = line.partition(" ")
            if name == self.what:
                return float(value)
        raise Problem(f"uiwarp-bench-idle printed no {self.what}: {output}")
