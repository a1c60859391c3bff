#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""`uiwarp trace --html`: the page is well-formed, loads and runs nothing, says what `--json` says, and stays small."""
import html.parser
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True   # leave the source tree as it is

import trace_file
from trace_file import Trace

FLUSHED, REMOTE_ACCESS, RETRIES = 5, 10, 12   # ibv_wc_status
HOSTILE = b"</title><script>&\"'"


class Elements(html.parser.HTMLParser):
    """All elements and attributes, as a browser reads them."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def plain(element):
    return "".join(element.itertext())


def number(text):
    """Of a cell; microseconds become nanoseconds."""
    text = text.replace("\u202f", "")
    if "." in text:
        whole, part = text.split(".")
        return int(whole) * 1000 + int(part)
    return int(text, 0)


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.root = xml.etree.ElementTree.fromstring(self.text)

    def table(self, name):
        """The rows of a table, as lists of texts; without such a table none."""
        table = self.root.find(f".//table[@id='{name}']")
        return [[plain(cell) for cell in row] for row in table.iterfind("tbody/tr")] if table is not None else []

    def figures(self):
        return {plain(figure.find("dt")): plain(figure.find("dd"))
                for figure in self.root.find(".//dl[@class='figures']").iterfind("div")}

    def notes(self):
        return [plain(note).replace("\u202f", "") for note in self.root.iterfind(".//p[@class='note']")]


class TracePage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="uiwarp-page-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *arguments):
        return subprocess.run([os.environ["UIWARP_TEST_BINARY"], "trace", *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def page(self, *traces):
        """(page, what --json says) of them."""
        files = []
        for i, trace in enumerate(traces):
            files.append(self.path(str(i)))
            trace.write(files[-1])
        done = self.run_tool(*files, "--html", self.path("page.html"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        said = self.run_tool(*files, "--json")
        self.assertEqual(said.returncode, 0)
        return Page(self.path("page.html")), json.loads(said.stdout)

    def both_ends(self):
        """Two processes, one of which has a hostile name; of everything there is a little."""
        chance = random.Random(1)
        one, other = Trace(HOSTILE, 11), Trace(b"server", 12)
        one.connect(500, 1, (1, 4000), (2, 7174))
        other.connect(600, 9, (2, 7174), (1, 4000))
        for i in range(300):
            one.send(1000 + 1000 * i, chance.randrange(200, 900_000), opcode=(trace_file.SENT, trace_file.WRITE)[i % 2],
                     wr_id=2**63 + i, size=64 << i % 9)
            other.receive(900 + 1000 * i, chance.randrange(100, 2_000_000), 9, wr_id=i, size=64)
        one.send(400_000, 1234, 2, opcode=trace_file.READ, wr_id=7, size=4096)
        one.add(trace_file.SEND, 1_000_000, opcode=trace_file.SENT, wr_id=1, size=10)   # unsignaled
        one.send(1_000_100, 5000, wr_id=2, size=10, status=RETRIES)
        one.send(1_000_200, 5000, wr_id=3, size=10, status=FLUSHED)
        one.add(trace_file.SEND, 1_000_300, opcode=trace_file.SENT, flags=trace_file.SIGNALED, wr_id=4, size=10)   # open
        other.add(trace_file.AWAITED, 300_000, 9, size=150_250)
        other.add(trace_file.AWAITED, 310_000, 9, size=250_125, flags=trace_file.IN_VAIN)
        one.add(trace_file.REFUSED, 320_000, error=12)
        other.add(trace_file.PEER_REFUSED, 330_000, 9)
        one.add(trace_file.CM_EVENT, 100, 0, opcode=9)
        return one, other

    def test_nothing_is_loaded_and_nothing_runs_whatever_the_names_are(self):
        page, _ = self.page(*self.both_ends())
        elements = Elements(page.text).seen
        self.assertIn("</title><script>&\"'", plain(page.root.find(".//h1")))
        for tag, attributes in elements:
            self.assertNotIn(tag, ("script", "link", "img", "iframe", "object", "embed", "a", "image", "use"))
            for name in attributes:
                self.assertFalse(name.startswith("on") or name in ("href", "src", "xlink:href", "action"), (tag, name))
        self.assertNotIn("url(", page.text)
        self.assertNotIn("@import", page.text)
        # A browser and an XML parser read the same.
        self.assertEqual([tag for tag, _ in elements], [element.tag for element in page.root.iter()])

    def test_sums_are_those_of_the_json(self):
        page, said = self.page(*self.both_ends())
        status = [request["status"] for request in said["requests"]]
        failed = [one for one in status if one not in ("SUCCESS", "WR_FLUSH_ERR", "unsignaled", "open")]
        figures = page.figures()
        self.assertEqual({name: number(figures[name]) for name in
                          ("requests", "succeeded", "failed", "flushed", "unsignaled", "open at the end", "waited for a receive")},
                         {"requests": len(status), "succeeded": status.count("SUCCESS"), "failed": len(failed),
                          "flushed": status.count("WR_FLUSH_ERR"), "unsignaled": status.count("unsignaled"),
                          "open at the end": status.count("open"), "waited for a receive": 2})
        self.assertEqual((len(failed), status.count("unsignaled"), status.count("open")), (1, 1, 1))

    def test_percentiles_are_those_of_the_json(self):
        page, said = self.page(*self.both_ends())

        def end(queue_pair):
            pair = said["queue_pairs"][queue_pair]
            process = said["processes"][pair["process"]]
            return f"{process['pid']} {process['program']}", f"0x{pair['number']:06x}"

        expected = [[*end(row["queue_pair"]), row["opcode"], row["count"], row["bytes"], row["p50_ns"], row["p90_ns"],
                     row["p99_ns"], row["p99_9_ns"], row["max_ns"]] for row in said["percentiles"]]
        shown = [row[:3] + [number(cell) for cell in row[3:]] for row in page.table("percentiles")]
        self.assertEqual(sorted(shown), sorted(expected))
        self.assertEqual(len(expected), 4)

    def test_all_queue_pairs_of_a_process_are_one_row_more(self):
        trace = Trace(b"many", 1)
        latencies = []
        for i in range(100):
            latencies.append(1000 + 77 * i)
            trace.send(1000 * i, latencies[-1], 1 + i % 2, size=100)
        page, _ = self.page(trace)
        rows = {row[1]: row for row in page.table("percentiles")}
        self.assertEqual(set(rows), {"all", "0x000001", "0x000002"})
        self.assertEqual([number(rows["all"][i]) for i in (3, 4, 5, 9)], [100, 10_000, sorted(latencies)[49], max(latencies)])

    def test_requests_are_those_of_the_json(self):
        page, said = self.page(*self.both_ends())

        def row(request):
            process = said["processes"][request["process"]]
            return [request["posted_ns"], request["status"], request["opcode"], request["wr_id"], request["bytes"],
                    request["latency_ns"], request["vendor_err"] or "-",
                    f"0x{said['queue_pairs'][request['queue_pair']]['number']:06x}", f"{process['pid']} {process['program']}"]

        def shown(name):
            return [[number(cell) if i in (0, 3, 4, 5) or i == 6 and cell != "-" else cell for i, cell in enumerate(cells)]
                    for cells in page.table(name)]

        sends = [request for request in said["requests"] if request["status"] == "SUCCESS" and request["opcode"] != "RECV"]
        slowest = sorted(sends, key=lambda request: -request["latency_ns"])[:25]
        self.assertEqual(shown("slowest"), [row(request) for request in slowest])
        failed = [request for request in said["requests"] if request["status"] in ("RETRY_EXC_ERR", "WR_FLUSH_ERR")]
        self.assertEqual(shown("failed"), [row(request) for request in failed])
        self.assertEqual([cells[1] for cells in shown("failed")], ["RETRY_EXC_ERR", "WR_FLUSH_ERR"])

    def test_connections_and_events_are_those_of_the_json(self):
        page, said = self.page(*self.both_ends())
        ends = {row[1]: row for row in page.table("queue-pairs")}
        for i, pair in enumerate(said["queue_pairs"]):
            row = ends[f"0x{pair['number']:06x}"]
            self.assertEqual(row[3:5], [pair["local"], pair["peer"]])
            own = [request for request in said["requests"] if request["queue_pair"] == i]
            sends = [request for request in own if request["opcode"] != "RECV"]
            receives = [request for request in own if request["opcode"] == "RECV"]
            over = ("SUCCESS", "unsignaled")
            sums = [len(sends), sum(request["bytes"] for request in sends if request["status"] in over),
                    len(receives), sum(request["bytes"] for request in receives if request["status"] in over)]
            self.assertEqual([number(cell) for cell in row[6:10]], sums)
        self.assertEqual(ends["0x000001"][5], "0x000009 of 12 server")
        self.assertEqual([(number(row[3]), row[4]) for row in page.table("awaited")],
                         [(250_125, "the connection ended"), (150_250, "it was received")])
        other = [event for event in said["events"] if "waited" not in event["what"]]
        self.assertEqual([(number(row[0]), row[3]) for row in page.table("events")],
                         [(event["time_ns"], event["what"]) for event in other])

    def test_a_flush_alone_is_no_failure(self):
        trace = Trace(b"program", 1)
        trace.receive(0, 1000, status=FLUSHED)
        page, _ = self.page(trace)
        self.assertEqual((page.figures()["failed"], page.figures()["flushed"]), ("0", "1"))
        self.assertIn("Flushed requests", [plain(title) for title in page.root.iterfind(".//h2")])

    def explained(self, vendor_err):
        trace = Trace(b"program", 1)
        trace.send(0, 1000, status=RETRIES, vendor_err=vendor_err)
        page, _ = self.page(trace)
        words = page.root.find(".//dl[@class='words']")
        return [plain(word) for word in words.iterfind("dt")]

    def test_what_a_vendor_err_says_comes_before_the_status(self):
        self.assertEqual(self.explained(0x31), ["vendor_err 0x31 peer silent", "RETRY_EXC_ERR"])

    def test_of_what_a_rule_did_the_status_is_not_explained(self):
        self.assertEqual(self.explained(0x46), ["vendor_err 0x46 by a rule of --faults"])

    def test_a_histogram_counts_in_whole_requests(self):
        trace = Trace(b"program", 1)
        trace.send(0, 1000)
        page, _ = self.page(trace)
        plots = [figure for figure in page.root.iterfind(".//figure") if "1 completion" in plain(figure.find("figcaption"))]
        self.assertEqual([[plain(tick).strip() for tick in plot.iterfind("div/div[@class='y']/span")] for plot in plots], [["0", "1"]])

    def test_unsignaled_requests_are_said_to_have_no_latency(self):
        trace = Trace(b"program", 1)
        for i in range(4):
            trace.add(trace_file.SEND, i, opcode=trace_file.WRITE, size=10)
        trace.send(10, 1000, opcode=trace_file.WRITE, size=10)
        page, _ = self.page(trace)
        self.assertTrue(any("Unsignaled requests (4) have no completion" in note for note in page.notes()))
        self.assertTrue(any("5 requests, 4 of them unsignaled, 50 B" in plain(caption) for caption in page.root.iter("figcaption")))

    def test_an_empty_trace_says_so(self):
        page, _ = self.page(Trace(b"program", 1))
        self.assertIn("The trace holds no request and no event.", page.notes())
        self.assertEqual(page.table("programs"), [["1", "program", "0"]])

    def test_a_long_trace_makes_a_small_page_that_says_what_is_left_out(self):
        chance = random.Random(1)
        trace = Trace(b"long", 1)
        for i in range(1500):
            trace.add(trace_file.CREATED, 0, 1 + i, opcode=2)
        for i in range(60_000):
            trace.send(300 * i, int(chance.lognormvariate(9, 1)), 1 + i % 1500, opcode=chance.choice((0, 2, 4)), wr_id=i, size=4096,
                       status=REMOTE_ACCESS if i % 100 == 0 else 0)
            if i % 200 == 0:
                trace.add(trace_file.AWAITED, 300 * i, 1, size=i)
        page, said = self.page(trace)
        self.assertLess(len(page.text), 800_000)
        self.assertEqual([len(page.table(name)) for name in ("failed", "slowest", "awaited", "queue-pairs", "percentiles", "events")],
                         [25, 25, 25, 50, 50, 201])
        succeeded = sum(request["status"] == "SUCCESS" for request in said["requests"])
        self.assertEqual(succeeded, 59_400)
        for note in ("25 of 600 are shown, the first;", f"25 of {succeeded} are shown, the slowest;",
                     "25 of 300 are shown, the longest;", "50 of 1500 are shown, those with the most requests;"):
            self.assertTrue(any(said.startswith(note) for said in page.notes()), note)
        self.assertIn("1300 events are left out", page.table("events")[100][0].replace("\u202f", ""))

    def test_a_spoilt_trace_makes_a_page_too(self):
        chance = random.Random(1)
        for _ in range(10):
            trace = Trace(HOSTILE, 1)
            for _ in range(200):
                time = chance.choice((0, 1, 2**63 - 1, -2**63, chance.randrange(-2**63, 2**63)))
                trace.add(chance.randrange(12), time, chance.randrange(3), opcode=chance.randrange(256),
                          status=chance.choice((0, 0, chance.randrange(256))), flags=chance.randrange(4),
                          wr_id=chance.randrange(3), size=chance.randrange(2**64), error=chance.randrange(2**32))
            self.page(trace)

    def test_a_trace_that_is_named_twice_counts_once(self):
        trace, other = Trace(b"program", 1), Trace(b"program", 2)
        for of in trace, other:
            for i in range(10):
                of.send(1000 * i, 100)
        trace.write(self.path("trace"))
        other.write(self.path("other"))
        os.symlink("trace", self.path("symlink"))
        os.link(self.path("trace"), self.path("link"))
        shutil.copyfile(self.path("trace"), self.path("copy"))
        with open(self.path("earlier"), "wb") as file, open(self.path("trace"), "rb") as whole:
            file.write(whole.read(4096 + 10 * 64))
        alone = self.run_tool(self.path("trace"), self.path("other"), "--json")
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        for again in "trace", "symlink", "link", "copy", "earlier":
            for first, second in (again, "trace"), ("trace", again):
                both = self.run_tool(self.path(first), self.path("other"), self.path(second), "--json")
                self.assertEqual((both.returncode, both.stdout), (0, alone.stdout), (first, second))
                self.assertEqual(both.stderr, f"uiwarp: {self.path(first)} and {self.path(second)} are the same trace, which "
                                              "counts once\n")

    def test_what_cannot_be_written_is_said_and_a_trace_stays(self):
        Trace(b"program", 1).write(self.path("trace"))
        with open(self.path("trace"), "rb") as file:
            before = file.read()
        done = self.run_tool(self.path("trace"), "--html", self.path("trace"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("would be overwritten", done.stderr)
        with open(self.path("trace"), "rb") as file:
            self.assertEqual(file.read(), before)
        done = self.run_tool(self.path("trace"), "--html", self.path("none/page.html"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be written", done.stderr)


if __name__ == "__main__":
    unittest.main()
