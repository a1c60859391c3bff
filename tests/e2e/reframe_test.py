#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tests of reframe.py, with the wire vectors as traffic."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True   # leave the source tree as it is

import pcap
import reframe

CLIENT, SERVER = (b"\x7f\x00\x00\x01", 40000), (b"\x7f\x00\x00\x01", 7174)


def vectors():
    with open(os.environ["UIWARP_TEST_VECTORS"], encoding="utf-8") as file:
        return {v["id"].partition("-")[0]: bytes.fromhex(v["hex"]) for v in json.load(file)["vectors"]}


class Reframe(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="uiwarp-reframe-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.source = os.path.join(self.folder, "in.pcap")
        self.target = os.path.join(self.folder, "out.pcap")
        v = vectors()
        self.request, self.reply = v["V01"], v["V02"]
        self.fpdus = [v[f] for f in ("V03", "V04", "V05a", "V05b", "V06", "V08", "V09", "V10a", "V10b")]

    def write(self, cuts, reorder=False, repeat=False, refused=False, addresses=(CLIENT, SERVER)):
        """The FPDUs as one stream from client to server, cut into segments of the given sizes in turn."""
        client, server = addresses
        writer = pcap.Writer(self.source)
        if refused:   # the first attempt
            writer.write(0, client, server, 99, 0, pcap.SYN)
            writer.write(0, server, client, 0, 100, pcap.RST | pcap.ACK)
        writer.write(1, client, server, 999, 0, pcap.SYN)
        writer.write(1, server, client, 4999, 1000, pcap.SYN | pcap.ACK)
        writer.write(1, client, server, 1000, 5000, pcap.ACK, self.request)
        writer.write(1, server, client, 5000, 1000 + len(self.request), pcap.ACK, self.reply)
        stream, at, segments = b"".join(self.fpdus), 0, []
        while at < len(stream):
            size = cuts[len(segments) % len(cuts)]
            segments.append((1000 + len(self.request) + at, stream[at:at + size]))
            at += size
        if reorder:
            segments[1], segments[2] = segments[2], segments[1]
        if repeat:
            segments.insert(3, segments[1])
        for sequence, payload in segments:
            writer.write(2, client, server, sequence, 5000 + len(self.reply), pcap.ACK, payload)
        end = 1000 + len(self.request) + len(stream)
        writer.write(3, client, server, end, 0, pcap.FIN | pcap.ACK)
        writer.write(3, server, client, 5000 + len(self.reply), 0, pcap.FIN | pcap.ACK)
        writer.close()

    def check(self):
        result = reframe.reframe(self.source, self.target)
        self.assertEqual((result.connections, result.finished, result.fpdus, result.leftover), (1, 1, len(self.fpdus), 0))
        payloads = [s.payload for s in pcap.read(self.target) if s.payload]
        self.assertEqual(payloads, [self.request, self.reply, *self.fpdus])

    def test_every_cut(self):
        for size in (1, 3, 7, 20, 33, 100, 150, 1000):
            self.write([size])
            self.check()

    def test_uneven_cuts(self):
        self.write([50, 1, 200, 13])
        self.check()

    def test_reordered_and_repeated(self):
        self.write([40], reorder=True, repeat=True)
        self.check()

    def test_a_refused_connection(self):
        self.write([40], refused=True)
        self.check()

    def test_ipv6(self):
        self.write([45], addresses=((b"\0" * 15 + b"\1", 40000), (b"\0" * 15 + b"\1", 7174)))
        self.check()

    def test_incomplete_frame_is_counted(self):
        self.fpdus.append(self.fpdus[0][:10])
        self.write([64])
        self.assertEqual(reframe.reframe(self.source, self.target).leftover, 10)

    def test_what_is_not_mpa_is_refused(self):
        self.request = b"GET / HTTP/1.1\r\n\r\n....."
        self.write([64])
        with self.assertRaises(reframe.Error):
            reframe.reframe(self.source, self.target)

    @unittest.skipUnless(shutil.which("tshark"), "needs tshark")
    def test_wireshark_sees_every_crc(self):
        self.write([50, 1, 200, 13])
        reframe.reframe(self.source, self.target)
        text = subprocess.run(["tshark", "-n", "-V", "-r", self.target], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual((text.count("Good CRC32"), text.count("Bad CRC32")), (len(self.fpdus), 0))


if __name__ == "__main__":
    unittest.main()
