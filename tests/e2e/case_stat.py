# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`uiwarp stat` and the counters of a port, while perftest runs and after it."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import expect, wait_until
from registry import LO4, case

SIZE = 65536


class Place:
    """A runtime folder of the test's own, so that nothing else is counted in it."""

    def __init__(self, world):
        self.world = world
        self.path = tempfile.mkdtemp(prefix="uiwarp-stat-")
        self.settings = {"UIWARP_RUNTIME_DIR": self.path}

    def __enter__(self):
        if self.world.name.endswith("user") and os.geteuid() == 0:
            os.chown(self.path, 65534, 65534)
        return self

    def __exit__(self, *ignored):
        shutil.rmtree(self.path, ignore_errors=True)

    def stat(self, *arguments, status=0):
        tool = self.world.start("server", os.path.join(self.world.bin, "uiwarp"), "stat", *arguments, plain=True,
                                settings=self.settings)
        self.world.finish(tool, 20, status)
        return tool

    def processes(self):
        """pid -> what is said of it, of those in this folder."""
        return {process["pid"]: process for process in json.loads(self.stat("--json").output)
                if process["program"] == "ib_write_bw"}

    def counter(self, name):
        tool = self.world.run("server", "cat", f"/sys/class/infiniband/{self.world.device}/ports/1/{name}",
                              settings=self.settings)
        expect(re.fullmatch(r"\d+\n", tool.output), f"{name} is not a number", tool)
        return int(tool.output)

    def start(self, *arguments):
        port = self.world.port()
        command = ["ib_write_bw", "-F", "-d", self.world.device, "-p", port, "-s", SIZE, *arguments]
        server = self.world.start_server(*command, port=port, settings=self.settings)
        return server, self.world.start("client", *command, self.world.server, settings=self.settings)


MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "stat.md")


def manual():
    """Section of doc/stat.md -> what stands in code type in the first column of its tables."""
    found, section = {}, None
    with open(MANUAL, encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = line[3:].strip()
            elif line.startswith("| `"):
                found.setdefault(section, []).extend(re.findall("`([^`]+)`", line.split("|")[1]))
    return found


def members(value):
    """All names of members of a JSON value."""
    if isinstance(value, list):
        return set().union(*map(members, value))
    return set(value).union(*map(members, value.values())) if isinstance(value, dict) else set()


def check_manual(place, seen, text, lines):
    """What is printed is what doc/stat.md explains."""
    said = manual()
    columns = text.splitlines()[0].split()
    expect(columns == said["Columns of `uiwarp stat`"], f"{columns}: not the columns of doc/stat.md")
    gauges = [name for name in said["Counters"] if name.startswith("uiwarp_")]
    counters = [name for name in said["Counters"] if not name.startswith("uiwarp_")]
    metrics = [f"uiwarp_{name}_total" for name in counters] + gauges
    printed = re.findall(r"^# TYPE (\S+) ", lines, re.M)
    expect(printed == metrics, f"{printed}: not the metrics of doc/stat.md")
    known = {"pid", "user", "program", *counters, *said["Members of `--json`"]}
    # Programs with a shared receive queue, or an end, are not at hand.
    expect(members(list(seen.values())) <= known and known - members(list(seen.values())) <= {"srq"},
           f"{members(list(seen.values())) ^ known}: not the members of doc/stat.md")
    tool = place.world.run("server", "ls", f"/sys/class/infiniband/{place.world.device}/ports/1/hw_counters", settings=place.settings)
    expect(sorted(tool.output.split()) == sorted(counters), "not the counters of doc/stat.md", tool)


@case("stat-running", worlds=LO4, seconds=60, reduced=True)
def running(world):
    """Two ends that are at work; then one that is killed, which is shown no more, and stays counted."""
    with Place(world) as place:
        server, client = place.start("-D", 30)

        def at_work():
            seen = place.processes()
            return client.pid in seen and server.pid in seen and any(
                pair["completed_sends"] > 1000 for pair in seen[client.pid]["queue_pairs"])

        wait_until(at_work, 20 * world.slow, "both ends are at work", client, server)
        first = then = place.processes()

        def goes_on():
            nonlocal then
            then = place.processes()
            return then[client.pid]["queue_pairs"][0]["completed_sends"] > \
                first[client.pid]["queue_pairs"][0]["completed_sends"]

        wait_until(goes_on, 20 * world.slow, "more is completed", client, server)
        sends, later, takes = (seen[pid]["queue_pairs"][0] for seen, pid in
                               ((first, client.pid), (then, client.pid), (then, server.pid)))
        expect(first[client.pid]["user"] == (65534 if world.name.endswith("user") and os.geteuid() == 0
                                             else os.geteuid()), f"{first}: another user")
        expect(sends["device"] == world.device and sends["type"] == "RC", f"{sends}: another device or type")
        # The end that only takes is left in RTR.
        expect((sends["state"], takes["state"]) == ("RTS", "RTR"), f"{sends}, {takes}: other states")
        expect(sends["local"] == takes["peer"] and sends["peer"] == takes["local"], f"{sends}, {takes}: not the two ends")
        # Counts are read one after the other, posts first, while the program goes on.
        expect(sends["sends_in_flight"] == max(0, sends["posted_sends"] - sends["completed_sends"]) <= 128,
               f"{sends}: perftest has 128 in flight at most")
        # What is complete has been sent, with headers that are a small part of it.
        expect(SIZE * sends["completed_sends"] < sends["bytes_sent"] < 1.02 * SIZE * later["posted_sends"],
               f"{sends}, {later}: other bytes than were posted")
        expect(takes["bytes_received"] > sends["bytes_sent"] - (64 << 20), f"{sends}, {takes}: not received")
        queue = next(queue for queue in first[client.pid]["completion_queues"] if queue["number"] == sends["send_cq"])
        expect(0 < queue["high_water"] <= queue["capacity"], f"{queue}: no high-water mark")

        text = place.stat(str(client.pid))
        expect(f"0x{sends['number']:06x}" in text.output and str(server.pid) not in text.output.split(),
               "not that process", text)
        lines = place.stat("--prometheus").output
        found = re.search(rf'^uiwarp_bytes_sent_total{{pid="{client.pid}",program="ib_write_bw",device="{world.device}"}} (\d+)$',
                          lines, re.M)
        expect(found and int(found[1]) >= later["bytes_sent"], f"not in Prometheus' format:\n{lines}")
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=lines, text=True, capture_output=True, check=False)
            expect(checked.returncode == 0, f"promtool: {checked.stdout}{checked.stderr}")

        check_manual(place, then, text.output, lines)

        # However many names the files have.
        for file in glob.glob(os.path.join(place.path, "uiwarp-*", "counters", "*")):
            for number in range(3):
                os.link(file, os.path.join(os.path.dirname(file), f"{os.stat(file).st_ino * 16 + number:016x}"))
        pids = [process["pid"] for process in json.loads(place.stat("--json").output)]
        expect(client.pid in pids and len(pids) == len(set(pids)), f"{pids}: one process twice")

        counted = place.counter("hw_counters/bytes_sent")
        client.signal(signal.SIGKILL)
        client.wait(10)
        expect(client.pid not in place.processes(), "a process that was killed is shown")
        gone = place.stat(str(client.pid), status=1)
        expect("no queue pair" in gone.output, "no word that there is nothing", gone)
        server.signal(signal.SIGKILL)
        server.wait(10)
        expect(place.counter("hw_counters/bytes_sent") >= counted, "what a killed process has sent is forgotten")


@case("stat-shared", worlds=["lo4-user"], seconds=60)
def shared(world):
    """Receives that are posted to a shared queue are counted there, and in the totals."""
    with Place(world) as place:
        port = world.port()
        common = ["ibv_srq_pingpong", "-d", world.device, "-g", "0", "-p", port, "-q", "4"]
        server = world.start_server(*common, "-n", 1000000, port=port, settings=place.settings)
        client = world.start("client", *common, "-n", 1000000, world.server, settings=place.settings)

        def seen():
            found = json.loads(place.stat("--json").output)
            return next((process for process in found if process["pid"] == client.pid), None)

        wait_until(lambda: seen() and seen()["shared_receive_queues"] and seen()["shared_receive_queues"][0]["posted_receives"] > 2000,
                   20 * world.slow, "receives are posted", client, server)
        process = seen()
        queue = process["shared_receive_queues"][0]
        expect(len(process["queue_pairs"]) == 4 and
               all(pair["srq"] == queue["number"] and pair["posted_receives"] == 0 for pair in process["queue_pairs"]),
               f"{process}: not the queue pairs of that queue")
        done = sum(pair["completed_receives"] for pair in process["queue_pairs"])
        # Counted one after the other while it goes on.
        expect(0 < queue["capacity"] and done > 0, f"{process}: nothing was received")
        text = place.stat(str(client.pid))
        expect(len(re.findall(rf"^0x\w+ .* srq {queue['number']} ", text.output, re.M)) == 4 and
               re.search(rf"^srq {queue['number']} ", text.output, re.M), "no line of the queue", text)
        for tool in (client, server):
            tool.signal(signal.SIGKILL)
            tool.wait(10)
        expect(place.counter("hw_counters/posted_receives") >= 2 * queue["posted_receives"] - 2000, "not in the totals")


@case("stat-totals", worlds=LO4, seconds=60)
def totals(world):
    """What one end has sent the other has received, to the byte, and it is what the program was to send."""
    with Place(world) as place:
        count = 0
        for iterations in (1000, 500):
            server, client = place.start("-n", iterations)
            world.finish(client, 30, 0, server)
            world.finish(server, 30, 0, client)
            count += iterations
            sent, received = place.counter("hw_counters/bytes_sent"), place.counter("hw_counters/bytes_received")
            expect(sent == received, f"{sent} bytes sent, {received} received")
            expect(SIZE * count < sent < 1.02 * SIZE * count, f"{sent} bytes for {count} times {SIZE}")
            for name in ("posted_sends", "completed_sends"):
                expect(place.counter(f"hw_counters/{name}") == count, f"{name} is not {count}")
            expect(place.counter("hw_counters/failed_sends") == 0, "a failed request")
            for name in ("port_xmit_data", "port_rcv_data"):
                expect(place.counter(f"counters/{name}") == sent // 4, f"{name} is not in units of 4 octets")
        if shutil.which("rdma"):
            port = f"{world.device}/1"
            tool = world.run("server", "rdma", "statistic", "show", "link", port, "-j", settings=place.settings)
            link = next(link for link in json.loads(tool.output) if link["ifname"] == world.device)
            for name in ("bytes_sent", "bytes_received", "posted_sends", "completed_sends", "failed_sends", "rnr_waits"):
                expect(link[name] == place.counter(f"hw_counters/{name}"), f"{name}: not that of /sys", tool)
        expect(not place.processes(), "processes that have ended are shown")
