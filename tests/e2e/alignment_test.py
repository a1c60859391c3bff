#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tests of alignment.py, with the wire vectors as traffic."""
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True   # leave the source tree as it is

import alignment
import pcap

CLIENT, SERVER = (b"\x7f\x00\x00\x01", 40000), (b"\x7f\x00\x00\x01", 7174)


class Alignment(unittest.TestCase):
    def setUp(self):
        with open(os.environ["UIWARP_TEST_VECTORS"], encoding="utf-8") as file:
            vectors = {v["id"].partition("-")[0]: bytes.fromhex(v["hex"]) for v in json.load(file)["vectors"]}
        self.request = vectors["V01"]
        self.first, self.second = vectors["V03"], vectors["V06"]

    def stream(self, *payloads, sequences=()):
        """The client's direction, in which these follow the Request, then the first FPDU at these sequence numbers."""
        with tempfile.NamedTemporaryFile() as file:
            writer = pcap.Writer(file.name)
            writer.write(1, CLIENT, SERVER, 999, 0, pcap.SYN)
            at = 1000
            for payload in (self.request, *payloads):
                writer.write(2, CLIENT, SERVER, at, 0, pcap.ACK, payload)
                at += len(payload)
            for sequence in sequences:
                writer.write(3, CLIENT, SERVER, sequence, 0, pcap.ACK, self.first)
            writer.close()
            client, server = alignment.streams(file.name)
        self.assertEqual((server.segments, server.frames), ([], []))
        return client

    def test_each_frame_in_a_segment(self):
        stream = self.stream(self.first, self.second)
        begin = len(self.request)
        self.assertEqual(stream.segments, [0, begin, begin + len(self.first)])
        self.assertEqual((stream.frames, stream.astray(), stream.sharing()), (stream.segments, [], []))

    def test_a_segment_that_begins_inside_a_frame(self):
        stream = self.stream(self.first, self.second[:8], self.second[8:])
        self.assertEqual(stream.astray(), [len(self.request + self.first) + 8])
        self.assertEqual(stream.sharing(), [])

    def test_two_frames_in_a_segment(self):
        stream = self.stream(self.first + self.second)
        self.assertEqual(stream.astray(), [])
        self.assertEqual(stream.sharing(), [len(self.request + self.first)])

    def test_a_frame_that_begins_in_a_segment_and_ends_in_the_next(self):
        stream = self.stream(self.first + self.second[:8], self.second[8:])
        self.assertEqual(stream.sharing(), [len(self.request + self.first)])
        self.assertEqual(stream.astray(), [len(self.request + self.first) + 8])

    def test_repeated_octets_are_not_looked_at(self):
        stream = self.stream(self.first, sequences=[1000 + len(self.request), 1000 + len(self.request) + 4])
        self.assertEqual(stream.segments, [0, len(self.request)])
        self.assertEqual(stream.frames, stream.segments)

    def test_a_segment_that_overtook_another(self):
        begin = len(self.request)
        stream = self.stream(sequences=[1000 + begin + len(self.first), 1000 + begin])
        self.assertEqual(stream.segments, [0, begin + len(self.first), begin])
        self.assertEqual(stream.frames, sorted(stream.segments))


if __name__ == "__main__":
    unittest.main()
