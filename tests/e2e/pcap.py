# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Just enough of pcap files, IP and TCP to take a capture apart and put it together again."""
import socket
import struct

ETHERNET, RAW_IP = 1, 101
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Segment:
    """One TCP segment: `source` and `target` are (address octets, port)."""

    def __init__(self, time, source, target, sequence, flags, payload):
        self.time = time
        self.source = source
        self.target = target
        self.sequence = sequence
        self.flags = flags
        self.payload = payload


def _parse_tcp(time, source, target, tcp):
    source_port, target_port, sequence = struct.unpack("!HHI", tcp[:8])
    header = (tcp[12] >> 4) * 4
    return Segment(time, (source, source_port), (target, target_port), sequence, tcp[13], tcp[header:])


def _parse_ip(time, packet):
    if not packet:
        return None
    if packet[0] >> 4 == 4:
        total = struct.unpack("!H", packet[2:4])[0] or len(packet)   # 0: larger than the field can say
        if packet[9] != socket.IPPROTO_TCP:
            return None
        return _parse_tcp(time, packet[12:16], packet[16:20], packet[(packet[0] & 15) * 4:total])
    if packet[0] >> 4 == 6:
        size = struct.unpack("!H", packet[4:6])[0]
        end = 40 + size if size else len(packet)
        if packet[6] != socket.IPPROTO_TCP:
            return None
        return _parse_tcp(time, packet[8:24], packet[24:40], packet[40:end])
    return None


def read(path):
    """The TCP segments of a pcap file (little or big endian, microseconds or nanoseconds)."""
    with open(path, "rb") as file:
        data = file.read()
    orders = {b"\xd4\xc3\xb2\xa1": ("<", 1e-6), b"\xa1\xb2\xc3\xd4": (">", 1e-6),
              b"\x4d\x3c\xb2\xa1": ("<", 1e-9), b"\xa1\xb2\x3c\x4d": (">", 1e-9)}
    if data[:4] not in orders:
        raise ValueError(f"{path} is not a pcap file")
    order, unit = orders[data[:4]]
    link = struct.unpack(order + "I", data[20:24])[0] & 0xffff
    if link not in (ETHERNET, RAW_IP):
        raise ValueError(f"{path}: link type {link} is not known here")
    at, segments = 24, []
    while at + 16 <= len(data):
        seconds, fraction, size, original = struct.unpack(order + "IIII", data[at:at + 16])
        packet = data[at + 16:at + 16 + size]
        at += 16 + size
        if len(packet) < size:
            break   # the writer was stopped in the middle of a packet
        if size < original:
            raise ValueError(f"{path}: a packet was cut short by the capture")
        segment = _parse_ip(seconds + fraction * unit, packet[14:] if link == ETHERNET else packet)
        if segment:
            segments.append(segment)
    return segments


class Writer:
    """Writes TCP segments as raw IP packets."""

    def __init__(self, path):
        self._file = open(path, "wb")
        self._file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 18, RAW_IP))

    def write(self, time, source, target, sequence, acknowledged, flags, payload=b""):
        tcp = struct.pack("!HHIIBBHHH", source[1], target[1], sequence & 0xffffffff, acknowledged & 0xffffffff,
                          5 << 4, flags, 0xffff, 0, 0) + payload
        if len(source[0]) == 4:
            packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0)
            packet += source[0] + target[0] + tcp
        else:
            packet = struct.pack("!IHBB", 6 << 28, len(tcp), socket.IPPROTO_TCP, 64) + source[0] + target[0] + tcp
        seconds = int(time)
        self._file.write(struct.pack("<IIII", seconds, int((time - seconds) * 1e6), len(packet), len(packet)) + packet)

    def close(self):
        self._file.close()
