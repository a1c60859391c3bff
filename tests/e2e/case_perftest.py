# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""perftest: the eight bandwidth and latency tools, connected by rdma_cm (-R)."""
import re
import signal
import subprocess

from harness import Skipped, expect
from registry import DIAGONAL, case

# The modes of a tool, as far as the stock tool has the option.
MODES = {
    "all": ["-a", "-n", "40"],
    "bidirectional": ["-b", "-n", "2000"],
    "four-qps": ["-q", "4", "-n", "2000"],
    "events": ["-e", "-n", "2000"],
    "srq": ["--use-srq", "-n", "2000"],
    "many": ["-n", "100000", "-s", "64"],
    "duration": ["-D", "3", "-f", "1", "-s", "4096"],
    "add": ["-A", "FETCH_AND_ADD", "-n", "2000"],
    "swap": ["-A", "CMP_AND_SWAP", "-n", "2000"],
}
TOOLS = {
    "ib_send_bw": ["all", "bidirectional", "four-qps", "events", "srq", "many", "duration"],
    "ib_send_lat": ["all", "events", "srq", "many", "duration"],
    "ib_write_bw": ["all", "bidirectional", "four-qps", "many", "duration"],
    "ib_write_lat": ["all", "many", "duration"],
    "ib_read_bw": ["all", "bidirectional", "four-qps", "events", "many", "duration"],
    "ib_read_lat": ["all", "events", "many", "duration"],
    "ib_atomic_bw": ["add", "swap", "bidirectional", "four-qps", "events", "many", "duration"],
    "ib_atomic_lat": ["add", "swap", "events", "many", "duration"],
}
REDUCED = {"all": ["-a", "-n", "10"], "four-qps": ["-q", "4", "-n", "200"], "events": ["-e", "-n", "200"],
           "srq": ["--use-srq", "-n", "200"], "bidirectional": ["-b", "-n", "200"],
           "add": ["-A", "FETCH_AND_ADD", "-n", "200"], "swap": ["-A", "CMP_AND_SWAP", "-n", "200"]}
# Of the modes: utils/check --quick runs these.
QUICK = ("four-qps", "events")
SIZES = [2 << i for i in range(23)]


def rows(tool):
    """The lines of numbers that a tool prints: lists of floats."""
    found = []
    # A result may lack its end of line, with what went wrong afterwards right behind it.
    for line in re.sub("(Failed to|uiwarp:)", r"\n\1", tool.output).splitlines():
        fields = line.split()
        if len(fields) >= 4:  # a latency tool with -D prints four: no minimum and maximum
            try:
                found.append([float(field) for field in fields])
            except ValueError:
                pass
    return found


def lost_the_race(client):
    """perftest -R connects twice. Between the two its server opens a new listener while its client already
    connects; a client that comes first is refused, and then crashes in its own clean-up, mostly before the line
    that says so is written."""
    if not client.ended() or client.process.returncode == 0:
        return False
    crashed = client.process.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV) and \
        "Failed to handle RDMA CM event" in client.output
    # ECONNREFUSED, or InfiniBand's reason for it.
    return crashed or any(f"Event: RDMA_CM_EVENT_REJECTED; error: {status}." in client.output for status in (-111, 8))


def lost_the_clock(client):
    """perftest measures how fast the processor counts before it begins. Where others keep that processor busy the
    samples do not agree, which it says, and all its results are 0."""
    return "Correlation coefficient" in client.output


def forgets_memory(tool):
    """Without -R, ib_send_bw before 23.07 does not deregister what it counts credits in (it does that on iWARP
    only), cannot deallocate its protection domain then, and ends with 1 when all is done."""
    return tool.output.count("Failed to deallocate PD") == 1 and tool.process.returncode == 1


def exchange(world, tool, arguments, seconds, family=(), port=None, settings=None, attempts=5, cm=True, side="client",
             server_settings=None):
    """Runs server and client, expects success on both ends, returns the client's rows."""
    port = port or world.port()
    if "atomic" in tool and "-s" in arguments:
        at = arguments.index("-s")  # always 8 octets: these tools have no such option
        arguments = arguments[:at] + arguments[at + 2:]
    common = [tool, *(["-R"] if cm else []), "-F", "-p", port, *family, *arguments]
    server = world.start_server(*common, port=port, settings=server_settings or settings)
    client = world.start(side, *common, world.server, settings=settings)
    world.finish(client, seconds, None, server)
    if (lost_the_race(client) or lost_the_clock(client)) and attempts > 1:
        print(f"{tool}: its client came too early, or did not know how fast its clock is; once more")
        server.destroy()
        return exchange(world, tool, arguments, seconds, family, port, settings, attempts - 1, cm, side,
                        server_settings)
    world.finish(server, 20, None, client)
    for end in (client, server):
        expect(end.process.returncode == 0 or (not cm and forgets_memory(end)),
               f"{tool} failed with {end.process.returncode}", client, server)
    result = rows(client)
    expect(result, f"{' '.join(map(str, common))} printed no result", client, server)
    for row in result:
        # Message rate, typical latency or (-D) transactions per second: a bandwidth of a few small messages may
        # round to 0.00.
        expect(row[min(4, len(row) - 1)] > 0, f"the result is not positive: {row}", client, server)
    return result, client, server


def register(tool, mode):
    # What ends by the clock takes no longer beside others; what ends by a count spins as long as others let it wait.
    @case(f"{tool.replace('_', '-')}-{mode}", worlds=DIAGONAL, seconds=150, serial=mode != "duration", places=2,
          reduced=mode in REDUCED, quick=mode in QUICK)
    def run(world):
        arguments = REDUCED[mode] if world.reduced else MODES[mode]
        result, client, server = exchange(world, tool, arguments, 120)
        sizes = [int(row[0]) for row in result]
        if mode == "all":
            expect(sizes == SIZES, f"not every size from 2 to 8388608 has a result: {sizes}", client, server)
        else:
            expect(len(sizes) == 1, f"one result expected: {result}", client, server)


for _tool, _modes in TOOLS.items():
    for _mode in _modes:
        register(_tool, _mode)


@case("perftest-vectors", worlds=DIAGONAL, seconds=120, serial=True, reduced=True)
def vectors(world):
    """Completion vectors, each of which is an engine: the queue pairs of the last one are served by another engine
    than the one that makes their connections, by rdma_cm or without."""
    settings = {"UIWARP_ENGINES": "3"}
    for tool in ("ib_send_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat"):
        for vector, cm in ((0, True), (2, True), (2, False)):
            exchange(world, tool, ["-e", "-X", vector, "-n", "200" if world.reduced else "2000"], 60, settings=settings,
                     cm=cm)


@case("perftest-acknowledged", worlds=DIAGONAL, seconds=240, serial=True, reduced=True)
def acknowledged(world):
    """Completions that mean arrival, at both ends, at one, and with several queue pairs. A server whose last Send has
    to be acknowledged is late with its second listener every other time. Few iterations: beside others that keep the
    processors busy some runs of a ping-pong take 30 ms for each (doc/lab/021)."""
    settings, often, few = {"UIWARP_COMPLETIONS": "acknowledged"}, 30, "100"
    for tool in TOOLS:
        exchange(world, tool, ["-n", few], 60, settings=settings, attempts=often)
    for arguments in (["-q", "4"], ["-b"], ["-e"], ["-s", "64", "-l", "10"]):
        exchange(world, "ib_send_bw", [*arguments, "-n", few], 60, settings=settings, attempts=often)
    for tool in ("ib_write_bw", "ib_send_lat"):
        exchange(world, tool, ["-n", few], 60, settings=settings, attempts=often,
                 server_settings={"UIWARP_COMPLETIONS": "sent"})
        exchange(world, tool, ["-n", few], 60, attempts=often, server_settings=settings)
        exchange(world, tool, ["-n", few], 60, settings=settings, cm=False)


@case("perftest-ipv6", worlds=["lo6-root", "lo6-user"], seconds=120, serial=True)
def ipv6(world):
    """Every tool over ::1, where the installed perftest can be told to use IPv6 at all."""
    usage = subprocess.run(["ib_write_bw", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False).stdout
    if "--ipv6-addr" not in usage:
        raise Skipped("the installed perftest has no --ipv6-addr: it resolves host names as IPv4 only")
    for tool in TOOLS:
        exchange(world, tool, ["-n", "1000", "-s", "4096"], 30, family=["--ipv6-addr"])
