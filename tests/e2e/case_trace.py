# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`uiwarp run --trace` at both ends of stock programs, and what `uiwarp trace` shows of it."""
import json
import os
import shutil
import signal
import stat
import tempfile
import xml.etree.ElementTree

from case_faults import Rules
from case_rping import connect, serve
from harness import expect, wait_until
from registry import case


class Folder:
    """Where both ends write their traces."""

    def __init__(self, world):
        self.world = world

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="uiwarp-trace-")
        os.chmod(self.path, 0o777)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)

    def tracing(self, name):
        return {"UIWARP_TRACE": self.file(name)}

    def show(self, *arguments):
        tool = self.world.start("server", os.path.join(self.world.bin, "uiwarp"), "trace", *arguments, plain=True)
        self.world.finish(tool, 60, 0)
        return tool

    def both(self):
        return self.file("server"), self.file("client")


def check_json(seen, tool):
    """Both ends are there, and found each other; returns the queue pairs that are connected, by process."""
    expect(len(seen["processes"]) == 2 and all(process["lost"] == 0 for process in seen["processes"]),
           "not all of two processes is there", tool)
    connected = {pair["process"]: pair for pair in seen["queue_pairs"] if pair["local"] != "-"}
    expect(sorted(connected) == [0, 1], "not both ends are connected", tool)
    expect(connected[0]["local"] == connected[1]["peer"] and connected[1]["local"] == connected[0]["peer"] and
           seen["queue_pairs"][connected[0]["peer_queue_pair"]] == connected[1], "the ends are not those of one connection", tool)
    return connected


def check_perfetto(path, requests):
    """What the Trace Event Format demands of the events that are there."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    begun, named, spans = {}, set(), 0
    for event in events:
        expect(isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int),
               f"{event}: a field is missing or of another type")
        if event["ph"] == "M":
            expect(event["name"] == "process_name" and isinstance(event["args"]["name"], str), f"{event}: names nothing")
            named.add(event["pid"])
            continue
        expect(isinstance(event["ts"], (int, float)) and event["ts"] >= 0, f"{event}: no time")
        key = (event.get("cat"), event.get("id"), event["pid"], event["name"])
        if event["ph"] == "b":
            expect(key not in begun, f"{event}: begins twice")
            begun[key] = event["ts"]
        elif event["ph"] == "e":
            expect(begun.pop(key, float("inf")) <= event["ts"], f"{event}: ends before it begins")
            spans += 1
        else:
            expect(event["ph"] == "i" and event["s"] == "p", f"{event}: of a kind that is not written")
    expect(not begun and {event["pid"] for event in events} == named, "spans that do not end, or groups without a name")
    over = sum(1 for request in requests if request["status"] != "open")
    expect(spans == over, f"{spans} spans for {over} requests")


@case("trace-rping", worlds=["lo4-root"], seconds=60)
def rping(world):
    with Folder(world) as folder:
        port = world.port()
        server = serve(world, port, "-C", "10", settings=folder.tracing("server"))
        client = connect(world, port, "-C", "10", settings=folder.tracing("client"))
        world.finish(client, 20, 0, server)
        world.finish(server, 20, 0, client)
        shown = folder.show(*folder.both(), "--json")
        seen = json.loads(shown.output)
        check_json(seen, shown)
        done = [(request["process"], request["opcode"]) for request in seen["requests"] if request["status"] == "SUCCESS"]
        # Each ping: two Sends from either side; the server reads once and writes once.
        expect([done.count((1, "SEND")), done.count((0, "RDMA_READ")), done.count((0, "RDMA_WRITE"))] == [20, 10, 10],
               f"{done}: not what rping does", shown)
        what = [event["what"] for event in seen["events"] if event["process"] == 1]
        for event in ("rdma_cm ROUTE_RESOLVED", "rdma_cm ESTABLISHED", "state INIT", "destroyed"):
            expect(event in what, f"{what}: no {event}", shown)
        times = [request["posted_ns"] for request in seen["requests"]]
        expect(times == sorted(times), "not in the order of time", shown)

        text = folder.show(*folder.both())
        expect(text.output.count("RDMA_READ") == 11 and text.output.count(" lost\n") == 2, "not a line a request", text)
        folder.show(*folder.both(), "--perfetto", folder.file("events.json"))
        check_perfetto(folder.file("events.json"), seen["requests"])
        # tests/command compares all of the page; this is that of a real trace.
        folder.show(*folder.both(), "--html", folder.file("page.html"))
        page = xml.etree.ElementTree.parse(folder.file("page.html"))
        rows = page.findall(".//table[@id='percentiles']/tbody/tr")
        expect(len(rows) == len(seen["percentiles"]), "not the percentiles of the JSON")


@case("trace-perftest", worlds=["lo4-root"], seconds=60)
def perftest(world):
    """A program that posts and polls in turns: each of its RDMA Writes is there, at both ends."""
    with Folder(world) as folder:
        port = world.port()
        common = ["ib_write_lat", "-F", "-d", world.device, "-p", port, "-s", 64, "-n", 1000]
        server = world.start_server(*common, port=port, settings=folder.tracing("server"))
        client = world.start("client", *common, world.server, settings=folder.tracing("client"))
        world.finish(client, 30, 0, server)
        world.finish(server, 30, 0, client)
        shown = folder.show(*folder.both(), "--json")
        seen = json.loads(shown.output)
        check_json(seen, shown)
        for process in (0, 1):
            writes = [request for request in seen["requests"]
                      if request["process"] == process and request["opcode"] == "RDMA_WRITE" and request["bytes"] == 64]
            expect(len(writes) == 1000 and all(write["status"] == "SUCCESS" for write in writes),
                   f"{len(writes)} RDMA Writes, or one has not completed", shown)


@case("trace-faults", worlds=["lo4-root"], seconds=60)
def faults(world):
    """Which rule was carried out, and the events that the program has taken."""
    with Folder(world) as folder:
        with Rules("op=SEND status=RETRY_EXC_ERR\ndev=* at=30ms event=LID_CHANGE\n") as settings:
            watch = world.start("client", "stdbuf", "-oL", "ibv_asyncwatch", "-d", world.device,
                                settings={**settings, **folder.tracing("client")})
            wait_until(lambda: "LID_CHANGE (11)" in watch.output or watch.ended(), 20, "ibv_asyncwatch prints the event")
            watch.destroy()
        seen = json.loads(folder.show(folder.file("client"), "--json").output)
        what = [event["what"] for event in seen["events"]]
        expect("asynchronous event LID_CHANGE" in what, f"{what}: not the event", watch)
        expect(any(text.startswith("fault of line 2: ") for text in what), f"{what}: not the rule", watch)
        folder.show(folder.file("client"), "--perfetto", folder.file("events.json"))
        with open(folder.file("events.json"), encoding="utf-8") as file:
            expect("asynchronous event LID_CHANGE" in file.read(), "not in the timeline", watch)


@case("trace-killed", worlds=["lo4-root"], seconds=60)
def killed(world):
    """Of a process that is killed at work all is there; of a small file the newest part."""
    with Folder(world) as folder:
        port = world.port()
        common = ["ib_write_bw", "-F", "-d", world.device, "-p", port, "-s", 64, "-D", 30]
        server = world.start_server(*common, port=port, settings=folder.tracing("server"))
        client = world.start("client", *common, world.server, settings={"UIWARP_TRACE": folder.file("client") + ",size=64K"})

        def at_work():
            if not os.path.exists(folder.file("client")):
                return False
            return json.loads(folder.show(folder.file("client"), "--json").output)["processes"][0]["lost"] > 10000

        wait_until(at_work, 30 * world.slow, "more is recorded than there is room for", client, server)
        for tool in (client, server):
            tool.signal(signal.SIGKILL)
            tool.wait(10)
        shown = folder.show(folder.file("client"), "--json")
        seen = json.loads(shown.output)
        # 64 KiB have room for 960 records. perftest asks for one completion in a hundred.
        expect(len(seen["requests"]) > 800 and seen["processes"][0]["pid"] == client.pid, "little is left of the trace", shown)
        expect(any(request["status"] == "SUCCESS" for request in seen["requests"]), "no completion of them", shown)


@case("trace-place", worlds=["lo4-user"], seconds=60)
def place(world):
    """What is no trace stays as it is; processes that begin at once have a file each."""
    with Folder(world) as folder:
        with open(folder.file("notes"), "w", encoding="utf-8") as file:
            file.write("mine")
        os.chmod(folder.file("notes"), 0o666)
        os.mkfifo(folder.file("fifo"))
        for name in ("notes", "fifo"):
            tool = world.run("client", "ibv_devinfo", settings=folder.tracing(name), status=None)
            expect("what is there is no trace, and stays" in tool.output, f"{name}: not refused", tool)
        for name in ("notes", "fifo", "."):
            tool = world.start("client", os.path.join(world.bin, "uiwarp"), "run", f"--trace={folder.file(name)}", "ibv_devinfo",
                               plain=True)
            world.finish(tool, 60, 2)
            expect("is no trace, so it stays as it is" in tool.output, f"{name}: not refused by the command", tool)
        os.symlink("notes", folder.file("link"))
        gone = 'cd "$0" && mkdir gone && cd gone && rmdir ../gone && exec "$1" run --trace=x true'
        for command, word in (([os.path.join(world.bin, "uiwarp"), "run", f"--trace={folder.file('link')}", "true"], "is a link"),
                              ([os.path.join(world.bin, "uiwarp"), "run", "--trace=/bin/sh/x", "true"], "Not a directory"),
                              (["sh", "-c", gone, folder.path, os.path.join(world.bin, "uiwarp")], "the working directory is gone")):
            tool = world.start("client", *command, plain=True)
            world.finish(tool, 60, 2)
            expect(word in tool.output, f"not said: {word}", tool)
        with open(folder.file("notes"), encoding="utf-8") as file:
            expect(file.read() == "mine", "a file that is no trace was written to")
        expect(stat.S_ISFIFO(os.stat(folder.file("fifo")).st_mode), "a FIFO was replaced")
        several = "for i in 1 2 3 4; do ibv_devinfo >/dev/null & done; wait"
        world.run("client", "sh", "-c", several, settings={"UIWARP_TRACE": folder.file("several") + ",size=1M"})
        several = [name for name in os.listdir(folder.path) if name.startswith("several")]
        expect(1 <= len(several) <= 4, f"{several}: not a file for each that ran at once")
        for name in several:
            folder.show(folder.file(name))


@case("trace-of-no-command", worlds=["lo4-user"], seconds=60)
def of_no_command(world):
    """What the command starts to look at the devices is not traced: the file is the user's programs'. Doctor says where none can be."""
    uiwarp = os.path.join(world.bin, "uiwarp")
    with Folder(world) as folder:
        for word in ("devices", "doctor"):
            tool = world.start("client", uiwarp, word, settings=folder.tracing("mine"), plain=True)
            world.finish(tool, 60, 0)
        expect(os.listdir(folder.path) == [], f"{os.listdir(folder.path)}: a trace of uiwarp itself", tool)
        for settings, status, word in (({"UIWARP_TRACE": "/nowhere/x"}, 1, "no file can be made in /nowhere"),
                                       ({"UIWARP_LOG_FILE": "/nowhere/x"}, 0, "no file can be made in /nowhere"),
                                       ({"UIWARP_crc": "x"}, 0, "there is no setting UIWARP_crc")):
            tool = world.start("client", uiwarp, "doctor", settings=settings, plain=True)
            world.finish(tool, 60, status)
            expect(word in tool.output, f"not said: {word}", tool)
