#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a server of ibv_rc_pingpong says over its socket, by somebody who names whatever queue pair he likes:

    false_peer.py PORT NUMBER GID
"""
import socket
import sys

SIZE = len("0000:000000:000000:" + 32 * "0") + 1   # with the zero at its end


def main():
    port, number, gid = int(sys.argv[1]), int(sys.argv[2], 0), socket.inet_pton(socket.AF_INET6, sys.argv[3])
    with socket.socket(socket.AF_INET6) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::", port))
        listener.listen()
        client = listener.accept()[0]
    with client:
        client.recv(SIZE, socket.MSG_WAITALL)
        client.sendall(f"0000:{number:06x}:000000:{gid.hex()}\0".encode())
        while client.recv(SIZE):   # until the client has gone
            pass


if __name__ == "__main__":
    main()
