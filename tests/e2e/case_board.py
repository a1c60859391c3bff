# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""board.c: atomics and Write with immediate by a program of ours, over stock libibverbs and librdmacm."""
import os

from harness import expect
from registry import case


@case("board", seconds=30, reduced=True)
def board(world):
    port = world.port()
    program = os.path.join(world.bin, "uiwarp-board")
    lines = ["first", "", "x" * 79, "last"]
    server = world.start_server(program, "serve", world.server, port, port=port)
    client = world.start("client", program, "write", world.server, port, *lines)
    world.finish(client, 20, 0, server)
    world.finish(server, 20, 0, client)
    expect(client.output.splitlines() == [f"wrote line {i}" for i in range(4)] + ["closed, found 0", "too late, found 4711"],
           "the client's words did not have the values that atomics leave", client, server)
    expect(server.output.splitlines() == [f"line {i}, {len(text)} octets: {text}" for i, text in enumerate(lines)] +
           ["4 lines, closed by 4711"], "the server did not see the lines with their immediate data", client, server)
