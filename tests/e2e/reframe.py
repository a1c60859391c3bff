#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rewrites a capture so that Wireshark 4.0 can follow it: one MPA frame or FPDU per TCP segment.

    reframe.py IN.pcap OUT.pcap

Wireshark loses an iWARP stream when a TCP segment ends inside its second or later FPDU, which is
what a fast sender produces. This puts every TCP connection that starts with an MPA Request together
again and writes each frame as a segment of its own. It does not look inside FPDUs beyond their length,
so CRCs and headers reach the dissector as they were sent. Markers are not supported.
"""
import struct
import sys

import pcap

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
HALF = 1 << 31


class Error(Exception):
    """The capture is not what this program can rewrite."""


class Direction:
    """One direction of a connection: segments in, stream octets in order out."""

    def __init__(self):
        self.next = None      # sequence number expected next
        self.waiting = {}     # sequence -> payload that came early
        self.stream = bytearray()
        self.started = False  # the start-up frame is through
        self.finished = False

    def add(self, segment):
        sequence, payload = segment.sequence, segment.payload
        if segment.flags & pcap.SYN:
            sequence = (sequence + 1) & 0xffffffff
            self.next = sequence
        if self.next is None and segment.flags & pcap.RST:
            self.finished = True   # refused
            return
        if self.next is None:
            raise Error("a connection whose beginning is not in the capture")
        if payload:
            self.waiting[sequence] = max(payload, self.waiting.get(sequence, b""), key=len)
        self._drain()
        if segment.flags & pcap.FIN:
            self.finished = True

    def _drain(self):
        progress = True
        while progress:
            progress = False
            for sequence in sorted(self.waiting, key=lambda s: (s - self.next) & 0xffffffff):
                behind = (self.next - sequence) & 0xffffffff
                payload = self.waiting[sequence]
                if behind >= HALF:
                    continue                      # still to come
                del self.waiting[sequence]
                fresh = payload[behind:]          # a retransmission repeats what we have
                if fresh:
                    self.stream += fresh
                    self.next = (self.next + len(fresh)) & 0xffffffff
                    progress = True

    def frames(self):
        """Takes whole frames off the front of the stream."""
        while True:
            size = self._frame_size()
            if size is None or size > len(self.stream):
                return
            yield bytes(self.stream[:size])
            del self.stream[:size]
            self.started = True

    def _frame_size(self):
        if not self.started:
            if len(self.stream) < 20:
                return None
            if self.stream[:16] not in (REQUEST, REPLY):
                raise Error("a connection that does not start with an MPA frame")
            if self.stream[16] & 0x80 and bytes(self.stream[:16]) == REPLY:
                raise Error("markers are in use")
            return 20 + struct.unpack("!H", self.stream[18:20])[0]
        if len(self.stream) < 2:
            return None
        size = 2 + struct.unpack("!H", self.stream[:2])[0]
        return size + -size % 4 + 4


class Connection:
    def __init__(self, writer, client, server):
        self.writer = writer
        self.ends = (client, server)
        self.directions = {client: Direction(), server: Direction()}
        self.sent = {client: 1, server: 1}   # sequence numbers in the new capture
        self.frames = 0
        self.mpa = False

    def add(self, segment):
        self.directions[segment.source].add(segment)
        if segment.flags & pcap.RST:
            for direction in self.directions.values():
                direction.finished = True
        for frame in self.directions[segment.source].frames():
            self._write(segment.time, segment.source, frame)

    def _write(self, time, source, frame):
        client, server = self.ends
        if not self.mpa:
            self.mpa = True
            self.writer.write(time, client, server, 0, 0, pcap.SYN)
            self.writer.write(time, server, client, 0, 1, pcap.SYN | pcap.ACK)
            self.writer.write(time, client, server, 1, 1, pcap.ACK)
        else:
            self.frames += frame[:16] not in (REQUEST, REPLY)
        target = server if source == client else client
        self.writer.write(time, source, target, self.sent[source], self.sent[target], pcap.ACK | pcap.PSH, frame)
        self.sent[source] += len(frame)

    def leftover(self):
        """Octets at the end of either direction that are no whole frame."""
        return sum(len(d.stream) + sum(map(len, d.waiting.values())) for d in self.directions.values())

    def finished(self):
        return all(d.finished for d in self.directions.values())


class Result:
    def __init__(self):
        self.connections = 0
        self.finished = 0
        self.fpdus = 0
        self.leftover = 0


def reframe(source, target):
    """Rewrites `source` into `target`; says how many connections and FPDUs there were."""
    connections = {}
    writer = pcap.Writer(target)
    try:
        for segment in pcap.read(source):
            key = frozenset((segment.source, segment.target))
            if segment.flags & pcap.SYN and not segment.flags & pcap.ACK:
                connections.setdefault(key, []).append(Connection(writer, segment.source, segment.target))
            if key in connections:
                connections[key][-1].add(segment)
    finally:
        writer.close()
    result = Result()
    for connection in (c for group in connections.values() for c in group if c.mpa):
        result.connections += 1
        result.finished += connection.finished()
        result.fpdus += connection.frames
        result.leftover += connection.leftover()
    return result


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        result = reframe(sys.argv[1], sys.argv[2])
    except (Error, ValueError, OSError) as problem:
        print(f"reframe.py: {problem}", file=sys.stderr)
        return 1
    print(f"{result.connections} connections, {result.fpdus} FPDUs, {result.leftover} octets left over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
