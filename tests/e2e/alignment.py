# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Where MPA frames and FPDUs lie in the TCP segments of a capture (RFC 5044 5.1)."""
import pcap
import reframe


class Stream:
    """One direction of a connection: where segments and frames begin, counted from its first octet."""

    def __init__(self):
        self._direction = reframe.Direction()
        self._begin = None
        self._end_of_frames = 0
        self.segments = []
        self.frames = []   # the start-up frame, then FPDUs

    def add(self, segment):
        if segment.flags & pcap.SYN:
            self._begin = (segment.sequence + 1) & 0xffffffff
        elif segment.payload and (segment.sequence - self._direction.next) & 0xffffffff < reframe.HALF:
            # Not what is repeated. The next one, or one that overtook others.
            self.segments.append((segment.sequence - self._begin) & 0xffffffff)
        self._direction.add(segment)
        for frame in self._direction.frames():
            self.frames.append(self._end_of_frames)
            self._end_of_frames += len(frame)

    def longest(self):
        """Octets of the longest frame that another one follows."""
        return max((after - before for before, after in zip(self.frames, self.frames[1:])), default=0)

    def astray(self):
        """Segments that begin inside a frame."""
        return sorted(set(self.segments) - set(self.frames))

    def sharing(self):
        """Frames that begin inside a segment, behind another frame or the end of one."""
        return sorted(set(self.frames) - set(self.segments))


def streams(path):
    """Both directions of every connection whose beginning is in the capture."""
    connections = []
    latest = {}
    for segment in pcap.read(path):
        ends = frozenset((segment.source, segment.target))
        if segment.flags & pcap.SYN and not segment.flags & pcap.ACK:
            latest[ends] = {segment.source: Stream(), segment.target: Stream()}
            connections.append(latest[ends])
        if ends in latest:
            latest[ends][segment.source].add(segment)
    return [stream for connection in connections for stream in connection.values()]
