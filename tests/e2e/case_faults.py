# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Stock programs that meet a rule of `uiwarp run --faults`, and what they print then."""
import os
import re

from case_rping import connect, serve
from harness import expect, wait_until
from registry import case
from rules_file import RulesFile


class Rules(RulesFile):
    """The setting that names it."""

    def __enter__(self):
        return {"UIWARP_FAULTS": super().__enter__()}


def said_once(tool, line, *others):
    expect(tool.output.count(f"uiwarp: faults: {line}") == 1, f"not said once: {line}", tool, *others)


@case("faults-rping", worlds=["lo4-root"], seconds=60)
def rping(world):
    with Rules("op=SEND nth=3 status=RETRY_EXC_ERR\n") as settings:
        port = world.port()
        server = serve(world, port, "-C", "10")
        client = connect(world, port, "-C", "10", "-v", settings=settings)
        world.finish(client, 20, None, server)
        world.finish(server, 20, None, client)
    said_once(client, "line 1: queue pair", server)
    expect(client.output.count("ping data: ") == 1 and "cq completion failed status 12" in client.output,
           "the third Send of the client did not fail", client, server)
    expect("server DISCONNECT EVENT" in server.output, "the peer did not notice", client, server)


@case("faults-no-finding", worlds=["lo4-root"], seconds=120)
def no_finding(world):
    """What a rule does to a program that makes no mistake is no finding of --check."""
    for rule in ("op=RECV nth=3 status=LOC_LEN_ERR", "op=SEND nth=3 status=LOC_PROT_ERR", "cq=* nth=5 overrun"):
        with Rules(rule + "\n") as settings:
            port = world.port()
            server = serve(world, port, "-C", "10")
            client = connect(world, port, "-C", "10", settings={**settings, "UIWARP_CHECK": "on"})
            wait_until(client.ended, 20, "the client does not end", client, server)
            server.destroy()
        said_once(client, "line 1: ", server)
        expect("uiwarp check" not in client.output and client.process.returncode != 66, f"{rule}: a finding", client, server)


def write_under(world, rules):
    """ib_write_bw whose client meets the rules, and fails; client and server."""
    common = ["ib_write_bw", "-d", world.device, "-F", "-n", "500"]
    with Rules(rules) as settings:
        port = world.port()
        server = world.start_server(*common, "-p", port, port=port)
        client = world.start("client", *common, "-p", port, world.server, settings=settings)
        world.finish(client, 20, 1, server)
        server.destroy()
    return client, server


def pingpong_under(world, settings, *options, status=0, seconds=20):
    """ibv_rc_pingpong whose client has the settings and ends with the status; client and server."""
    port = world.port()
    common = ["ibv_rc_pingpong", "-d", world.device, "-g", "0", "-p", port, *options]
    server = world.start_server(*common, port=port)
    client = world.start("client", *common, world.server, settings=settings)
    world.finish(client, seconds, status, server)
    if status == 0:
        world.finish(server, 20, 0, client)
    else:
        server.destroy()
    return client, server


def connect_under(world, rules):
    """rping whose client meets a rule of connections and fails; client and server."""
    with Rules(rules) as settings:
        port = world.port()
        server = serve(world, port, "-C", "10")
        client = connect(world, port, "-C", "10", "-v", settings={**settings, "UIWARP_CONNECT_TIMEOUT_MS": "500"})
        world.finish(client, 20, None, server)
    said_once(client, "line 1: ", server)
    return client, server


@case("faults-connect", worlds=["lo4-root"], seconds=90)
def connections(world):
    """The events that rdma_connect(3) and rdma_get_cm_event(3) name."""
    for what, said, event in (("reject", "is rejected", "RDMA_CM_EVENT_REJECTED, error -111"),
                              ("timeout", "gets no answer", "RDMA_CM_EVENT_UNREACHABLE, error -110"),
                              ("unreachable", "finds no way to its peer", "RDMA_CM_EVENT_CONNECT_ERROR, error -113")):
        client, server = connect_under(world, f"connect nth=1 {what}\n")
        server.destroy()
        expect(said in client.output, f"{what} was not said", client)
        expect(event in client.output, f"{what}: the client did not get {event}", client)
    client, server = connect_under(world, "connect nth=1 reset after=64\n")
    world.finish(server, 20, None, client)
    expect(client.output.count("ping data: ") == 2 and "is reset" in client.output,
           "the connection was not reset after four Sends of 16 bytes", client, server)
    expect("client DISCONNECT EVENT" in client.output, "the client was not told", client, server)
    expect("server DISCONNECT EVENT" in server.output, "the server was not told", client, server)


@case("faults-accept", worlds=["lo4-root"], seconds=90)
def accept(world):
    """The server meets the rule, and the client gets what a peer's or a network's doing would bring."""
    for what, said, event in (("reject", "is rejected", "RDMA_CM_EVENT_REJECTED, error -111"),
                              ("timeout", "gets no answer", "RDMA_CM_EVENT_UNREACHABLE, error -110")):
        port = world.port()
        with Rules(f"accept port={port} nth=1 {what}\n") as settings:
            server = serve(world, port, "-C", "10", "-P", settings=settings)
            client = connect(world, port, "-C", "10", "-v", settings={"UIWARP_REPLY_TIMEOUT_MS": "500"})
            world.finish(client, 20, None, server)
            # The next one comes about.
            again = connect(world, port, "-C", "10", "-v")
            world.finish(again, 20, 0, server)
            server.destroy()
        said_once(server, "line 1: connection that is requested, number 1, " + said, client)
        expect(event in client.output, f"{what}: the client did not get {event}", client, server)
        expect(again.output.count("ping data: ") == 10, f"{what}: the next client was not served", again, server)
    with Rules("accept nth=1 reset after=500\n") as settings:
        port = world.port()
        server = serve(world, port, "-C", "10", settings=settings)
        client = connect(world, port, "-C", "10", "-v")
        world.finish(client, 20, None, server)
        world.finish(server, 20, None, client)
    expect("is reset" in server.output and 0 < client.output.count("ping data: ") < 10, "the connection was not reset", client, server)
    expect("client DISCONNECT EVENT" in client.output, "the client was not told", client, server)


@case("faults-cable", worlds=["lo4-root"], seconds=90)
def cable(world):
    """Who writes to a port that is down fails as if the cable were pulled, within seconds by its time-out of 14 and 7
    retries."""
    common = ["ib_write_bw", "-d", world.device, "-F", "-n", "5000000"]
    with Rules("dev=* at=2s port=down\n") as settings:
        port = world.port()
        server = world.start_server(*common, "-p", port, port=port, settings=settings)
        client = world.start("client", *common, "-p", port, world.server)
        world.finish(client, 60, 1, server)
        server.destroy()
    said_once(server, "line 1: device *: its port is down", client)
    expect("Failed status 12" in client.output, "the peer goes on", server, client)
    # And so does the end whose port it is, though it alone knows that.
    with Rules("dev=* at=2s port=down\n") as settings:
        port = world.port()
        server = world.start_server(*common, "-p", port, port=port)
        client = world.start("client", *common, "-p", port, world.server, settings=settings)
        world.finish(client, 60, 1, server)
        server.destroy()
    said_once(client, "line 1: device *: its port is down", server)
    # Whether the oldest request had left the queue pair by then, or is kept back by the rule.
    expect("Failed status 12" in client.output, "what is posted to a port that is down waits for good", client, server)
    # The end whose port is down gives up nothing of its own, and the peer's longer time-out finds it again.
    common = ["ib_write_bw", "-d", world.device, "-F", "-D", "6", "-f", "1", "-s", "4096"]
    with Rules("dev=* at=2s port=down for=3s\n") as settings:
        port = world.port()
        server = world.start_server(*common, "-u", "8", "-p", port, port=port,
                                    settings={**settings, "UIWARP_COMPLETIONS": "acknowledged"})
        client = world.start("client", *common, "-u", "18", "-p", port, world.server,
                             settings={"UIWARP_COMPLETIONS": "acknowledged"})
        world.finish(client, 60, 0, server)
        world.finish(server, 20, 0, client)
    said_once(server, "line 1: device *: its port is down", client)


@case("faults-device", worlds=["lo4-root"], seconds=60)
def device(world):
    """ibv_asyncwatch prints the events of a device; a ping-pong waits until its port is up again."""
    with Rules("dev=uiw_lo at=10ms port=down for=10ms\ndev=* at=30ms event=LID_CHANGE\ngid=shift at=40ms\n"
               "dev=uiw_lo at=50ms event=DEVICE_FATAL\n") as settings:
        watch = world.start("client", "stdbuf", "-oL", "ibv_asyncwatch", "-d", world.device, settings=settings)
        wait_until(lambda: "DEVICE_FATAL (8)" in watch.output or watch.ended(), 20, "ibv_asyncwatch prints the last event")
        watch.destroy()
    events = [int(number) for number in re.findall(r"event_type.*\((\d+)\)", watch.output)]
    expect(events == [10, 9, 11, 18, 8], f"other events: {events}", watch)
    with Rules(f"dev={world.device} at=1ms port=down for=300ms\n") as settings:
        client, server = pingpong_under(world, settings, "-n", "1000")
    said_once(client, f"line 1: device {world.device}: its port is down", server)
    # Who waits for an event gets it when the port is up, whether the queue was armed before or meanwhile.
    for at in ("3ms", "5ms", "8ms"):
        with Rules(f"dev={world.device} at={at} port=down for=100ms\n") as settings:
            pingpong_under(world, settings, "-n", "3000", "-e")


@case("faults-overrun", worlds=["lo4-root"], seconds=60)
def overrun(world):
    with Rules("cq=* nth=5 overrun\n") as settings:
        client, server = pingpong_under(world, settings, "-n", "100", status=1)
    said_once(client, "line 1: queue pair", server)
    expect("Failed status" in client.output, "its queue pair did not end", client, server)


@case("faults-shaken", worlds=["lo4-root"], seconds=90)
def shaken(world):
    """Completions that come late by a rule have their event under --shake, too."""
    with Rules("op=SEND every=20 delay=1ms..2ms\n") as settings:
        for seed in ("1", "2"):
            pingpong_under(world, {**settings, "UIWARP_SHAKE": seed}, "-n", "500", "-e", seconds=30)


@case("faults-peer", worlds=["lo4-root"], seconds=60)
def peer(world):
    with Rules(f"peer={world.server} rate=10Mbit delay=1ms..3ms\n") as settings:
        port = world.port()
        server = serve(world, port, "-C", "20")
        client = connect(world, port, "-C", "20", "-v", "-V", settings=settings)
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
    said_once(client, "line 1: queue pair", server)
    expect(client.output.count("ping data: ") == 20, "20 pings were not all compared", client, server)


@case("faults-ready-made", worlds=["lo4-root"], seconds=120)
def ready_made(world):
    """Each of utils/faults met by rping."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "utils", "faults")
    for name, options, rule, whole in (("flaky-link", ["-C", "2000"], "completes with IBV_WC_RETRY_EXC_ERR", False),
                                       ("failover", ["-C", "1000"], "is reset", False),
                                       ("slow-peer", ["-C", "20", "-V"], "leaves later", True),
                                       ("no-resources", ["-C", "10"], "fails with ENOMEM", False)):
        port = world.port()
        server = serve(world, port, *options)
        client = connect(world, port, "-v", *options,
                         settings={"UIWARP_FAULTS": os.path.join(folder, f"{name}.faults")})
        world.finish(client, 30, 0 if whole else None, server)
        server.destroy()
        expect(rule in client.output, f"{name}: no rule was met", client, server)
        count = int(options[1])
        expect((client.output.count("ping data: ") == count) == whole, f"{name}: not as many pings", client, server)


@case("faults-perftest", worlds=["lo4-root"], seconds=60)
def perftest(world):
    client, server = write_under(world, "op=WRITE nth=100 status=REM_ACCESS_ERR\n")
    expect("Failed status 10: wr_id 0" in client.output and "ccnt=99" in client.output,
           "the hundredth RDMA Write did not fail", client, server)
    client, server = write_under(world, "verb=reg_mr nth=1 errno=ENOMEM\n")
    said_once(client, "line 1: ibv_reg_mr(), number 1, fails with ENOMEM", server)
    expect("Couldn't allocate MR" in client.output, "the client got its memory region", client, server)


@case("faults-delay", worlds=["lo4-root"], seconds=60)
def delay(world):
    """A program that waits for events gets late completions, too."""
    with Rules("op=SEND every=2 delay=1ms..5ms\nop=RECV nth=5 delay=10ms\n") as settings:
        client, server = pingpong_under(world, {**settings, "UIWARP_CHECK": "on"}, "-n", "10", "-e")
    expect(client.output.count("has its completion handed out") == 6, "not six completions came late", client, server)
