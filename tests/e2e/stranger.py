# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A queue pair's peer, or a stranger who says that he is, by what goes over the wire: MPA start-up frames whose private
data is laid out as in rendezvous/handshake_message.h, with proofs as in rendezvous/proof.h. Nothing here is uiwarp's code."""
import os
import socket
import struct

HELLO, CHALLENGE, PROOF, OPENING = 1, 2, 3, 4
RTR, RTS = 1, 2
FRAME_SIZE = 20 + 4 + 64
MASK = (1 << 64) - 1


def siphash(key, numbers):
    """SipHash-2-4 of 64-bit numbers, each little-endian."""
    v = [key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573]
    rotated = lambda value, by: (value << by | value >> (64 - by)) & MASK

    def half(a, b, c, d, first, second):
        v[a] = (v[a] + v[b]) & MASK
        v[c] = (v[c] + v[d]) & MASK
        v[b] = rotated(v[b], first) ^ v[a]
        v[d] = rotated(v[d], second) ^ v[c]
        v[a] = rotated(v[a], 32)

    def rounds(count):
        for _ in range(count):
            half(0, 1, 2, 3, 13, 16)
            half(2, 1, 0, 3, 17, 21)

    for block in [*numbers, len(numbers) * 8 << 56]:
        v[3] ^= block
        rounds(2)
        v[0] ^= block
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class PendingPeer:
    """Connects to the queue pair `to` as the queue pair `name`: each is (number, GID)."""

    def __init__(self, name, to, address):
        self.name, self.to, self.nonce = name, to, int.from_bytes(os.urandom(8), "big")
        self.commitment = None
        self.connection = socket.create_connection((address, to[0] >> 8), timeout=20)

    def close(self):
        self.connection.close()

    def say(self, word, value):
        data = struct.pack("!4sBBBxI16sI16sQQ", b"UIWM", 2, word, RTS, *self.name, *self.to, value, 0)
        enhanced = struct.pack("!HH", 0x8000 | 1, 0x8000 | 1)   # peer-to-peer, RTR by Write
        self.connection.sendall(struct.pack("!16sBBH", b"MPA ID Req Frame", 0x10, 2, 68) + enhanced + data)

    def hear(self):
        """(rejected, word, stage, value) of a Reply; None when hung up on."""
        octets = b""
        while len(octets) < FRAME_SIZE:
            try:
                more = self.connection.recv(FRAME_SIZE - len(octets))
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            octets += more
        key, flags, _, _ = struct.unpack_from("!16sBBH", octets)
        assert key == b"MPA ID Rep Frame", key
        key, version, word, stage, *rest = struct.unpack_from("!4sBBBxI16sI16sQQ", octets, 24)
        assert (key, version) == (b"UIWM", 2) and rest[:4] == [*self.to, *self.name], rest
        return bool(flags & 0x20), word, stage, tuple(rest[4:])

    def is_challenged(self):
        try:
            self.say(HELLO, self.nonce)
            heard = self.hear()
        except (BrokenPipeError, ConnectionResetError):
            heard = None
        if heard:
            rejected, word, self.stage, (self.commitment, _) = heard
            assert rejected and word == CHALLENGE, heard
        return heard is not None

    def hash(self, key, use, last):
        halves = struct.unpack("!QQQQ", self.name[1] + self.to[1])
        return siphash(key, [use << 16 | RTS << 8 | self.stage, *halves, self.name[0] << 32 | self.to[0], self.nonce, last])

    def is_taken(self, own_psn, peer_psn):
        """Gives the proof of these PSNs: the one that we send with, and the one that the queue pair does."""
        secret = own_psn << 24 | (peer_psn if self.stage == RTS else 0)
        try:
            self.say(PROOF, self.hash((secret, 0), 2, self.commitment))
            heard = self.hear()
        except (BrokenPipeError, ConnectionResetError):
            heard = None
        if heard:
            rejected, word, stage, opening = heard
            assert not rejected and word == OPENING and stage == self.stage, heard
            assert self.hash(opening, 1, secret) == self.commitment
        return heard is not None
