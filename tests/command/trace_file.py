# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Writes files as `uiwarp run --trace` does (providers/uiwarp/trace/record.h)."""
import struct

CREATED, DESTROYED, STATE, CONNECTED, SEND, RECEIVE, COMPLETION, REFUSED, AWAITED, PEER_REFUSED, CM_EVENT = range(1, 12)
SIGNALED, HAS_RECEIVED, IN_VAIN = 1, 2, 16
WRITE, SENT, READ = 0, 2, 4   # ibv_wr_opcode
MAGIC = 0x3165636172747503
BEGAN = 1_790_000_000_000_000_000   # since 1970, nanoseconds


class Trace:
    """Of one process; times are nanoseconds from BEGAN on."""

    def __init__(self, program, pid):
        self.program, self.pid, self.records = program, pid, []
        self.completed = {}   # queue pair -> when its last send was

    def add(self, kind, time, queue_pair=1, *, opcode=0, status=0, flags=0, wr_id=0, size=0, vendor_err=0, error=0):
        self.records.append((time, struct.pack("=IBBBBQQIIQ", queue_pair, kind, opcode, status, flags, wr_id, size, vendor_err,
                                               error, 0)))

    def connect(self, time, queue_pair, local, peer):
        """Ends are (last octet of 10.0.0.0/24, port)."""
        addresses = b"".join(bytes(10) + b"\xff\xff\x0a\0\0" + bytes([host]) for host, _ in (local, peer))
        ports = struct.pack("=HHI", local[1], peer[1], 0)
        self.records.append((time, struct.pack("=IBBBB", queue_pair, CONNECTED, 0, 0, 0) + addresses + ports))

    def send(self, time, latency, queue_pair=1, *, status=0, vendor_err=0x46, **fields):
        """One that completes after `latency`, and not before the one posted before it."""
        fields.setdefault("opcode", SENT)
        self.add(SEND, time, queue_pair, flags=SIGNALED, **fields)
        self.completed[queue_pair] = max(time + latency, self.completed.get(queue_pair, 0))
        self.add(COMPLETION, self.completed[queue_pair], queue_pair, status=status, wr_id=fields.get("wr_id", 0),
                 vendor_err=vendor_err if status else 0)

    def receive(self, time, latency, queue_pair=1, *, wr_id=0, size=0, status=0):
        self.add(RECEIVE, time, queue_pair, flags=SIGNALED, wr_id=wr_id, size=size)
        self.add(COMPLETION, time + latency, queue_pair, flags=HAS_RECEIVED, wr_id=wr_id, size=size, status=status)

    def write(self, path):
        # As they came about; the sort is stable.
        self.records.sort(key=lambda record: record[0])
        header = struct.pack("=QQqqI52s40s", MAGIC, max(1, len(self.records)), 0, BEGAN, self.pid, self.program, b"boot")
        with open(path, "wb") as file:
            file.write(header.ljust(4096, b"\0"))
            for i, (time, rest) in enumerate(self.records, 1):
                file.write((struct.pack("=Qq", i, time) + rest).ljust(64, b"\0"))
            file.truncate(4096 + 64 * max(1, len(self.records)))
