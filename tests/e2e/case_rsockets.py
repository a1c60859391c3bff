# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rsockets: sockets by librdmacm, and librspreload.so, which puts them under programs written for TCP."""
import glob
import os

from applications import expect_rdma, folder, need, random_file, same
from harness import Skipped, expect, wait_until
from registry import case

SIZE = 5 << 20
# librspreload.so 44 takes a socket for its own when it was made as SOCK_STREAM with no flag, accepted by
# accept() and not waited for by epoll: few programs do all of that. doc/applications.md has a list.
PLACES = ["/usr/lib/*/rsocket/librspreload.so", "/usr/lib64/rsocket/librspreload.so", "/usr/lib/rsocket/librspreload.so"]


def sockets_over_rdma():
    """The setting that puts rsockets under a program."""
    found = [path for place in PLACES for path in sorted(glob.glob(place))]
    if not found:
        raise Skipped("needs librspreload.so (package librdmacm1 or librdmacm)")
    return {"LD_PRELOAD": found[0]}


def stream(world, tool, *options):
    """Both ends print a row of numbers when all octets were the ones expected."""
    port = world.port()
    listen = ["-b", world.server] if world.place == "lo6" else []
    common = [tool, "-p", port, "-S", "65536", "-I", "20", "-C", "10", "-T", "v", *options]
    server = world.start_server(*common, *listen, port=port)
    client = world.start("client", *common, "-s", world.server)
    world.finish(client, 30, 0, server)
    world.finish(server, 20, 0, client)
    for end in (client, server):
        expect("verification failed" not in end.output, "wrong data", client, server)
        expect(any(line.startswith("custom ") for line in end.output.splitlines()), "no result", client, server)


@case("rstream", seconds=60, reduced=True)
def rstream(world):
    # Not -T async: there a client that sees the last octets and the end of the connection by one poll gives up.
    stream(world, "rstream")
    stream(world, "rstream", "-T", "blocking")
    stream(world, "rstream", "-T", "nonblocking")
    stream(world, "rstream", "-T", "resolve")


@case("riostream", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=60, serial=True)
def riostream(world):
    """Its ends watch the last octet of what the other writes, and compare what lies before it."""
    for size in (1000, 4096, 65536):
        # Each its own: a listener that a process left open may outlive it by a moment.
        port = world.port()
        common = ["riostream", "-p", port, "-S", size, "-I", "100", "-C", "1", "-T", "v"]
        server = world.start_server(*common, port=port)
        client = world.start("client", *common, "-s", world.server)
        world.finish(client, 30, 0, server)
        world.finish(server, 20, 0, client)
        for end in (client, server):
            expect("verification failed" not in end.output and "custom " in end.output, f"{size} octets", client, server)


@case("rcopy", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=40, reduced=True)
def rcopy(world):
    port = world.port()
    server = world.start_server("rcopy", "-p", port, port=port)
    with folder(world) as path:
        sent = random_file(os.path.join(path, "sent"), SIZE)
        received = os.path.join(path, "received")
        world.run("client", "rcopy", sent, f"{world.server}:{received}", "-p", port)
        expect(same(sent, received), "the file that arrived is another", server)


@case("rsockets-netcat", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=40)
def netcat(world):
    """A file between two programs that know nothing but TCP."""
    need("nc.traditional", "netcat-traditional")
    settings = sockets_over_rdma()
    port = world.port()
    with folder(world) as path:
        sent = random_file(os.path.join(path, "sent"), SIZE)
        received = os.path.join(path, "received")
        # For its input and output it needs a shell.
        server = world.start_server("sh", "-c", 'exec nc.traditional -l -p "$0" > "$1"', port, received, port=port,
                                    settings=settings)
        expect_rdma(server)
        world.run("client", "sh", "-c", 'exec nc.traditional -q 0 "$0" "$1" < "$2"', world.server, port, sent,
                  settings=settings)
        world.finish(server, 20)
        expect(same(sent, received), "the file that arrived is another", server)


@case("rsockets-curl", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=40)
def curl(world):
    need("curl", "curl")
    need("nc.traditional", "netcat-traditional")
    settings = sockets_over_rdma()
    port = world.port()
    with folder(world) as path:
        content = random_file(os.path.join(path, "content"), SIZE)
        answer, received = os.path.join(path, "answer"), os.path.join(path, "received")
        with open(answer, "wb") as file, open(content, "rb") as octets:
            file.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE + octets.read())
        server = world.start_server("sh", "-c", 'exec nc.traditional -l -p "$0" < "$1"', port, answer, port=port,
                                    settings=settings)
        expect_rdma(server)
        client = world.run("client", "curl", "-sS", "-o", received, f"http://{world.server}:{port}/", settings=settings)
        expect(same(content, received), "what came is not what was served", client, server)
        wait_until(lambda: server.output.startswith("GET / HTTP/1"), 10 * world.slow, "the server saw the request")


@case("rsockets-iperf", worlds=["lo4-root", "lo4-user", "ns-root"], seconds=40)
def iperf(world):
    need("iperf", "iperf")
    settings = sockets_over_rdma()
    port = world.port()
    server = world.start_server("iperf", "-s", "-P", "1", "-p", port, port=port, settings=settings)
    expect_rdma(server)
    client = world.run("client", "iperf", "-c", world.server, "-p", port, "-n", "64M", "-y", "C", settings=settings)
    # Comma-separated: time, addresses and ports, id, interval, octets, bits a second.
    fields = client.output.strip().splitlines()[-1].split(",") if client.output.strip() else []
    expect(len(fields) > 8 and fields[7] == str(64 << 20), "64 MiB were not sent", client, server)
