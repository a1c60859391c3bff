# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs built with sanitizers run by `uiwarp run` and after `uiwarp enable`, whether they use RDMA or not."""
import os

from harness import expect
from registry import LO4, case
from sanitized import Programs
from system import System

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "utils", "suppressions")
LINES = ["line 0, 5 octets: first", "line 1, 4 octets: last", "2 lines, closed by 4711"]


def try_overrun(programs, sanitizer, run):
    """Without RDMA: it runs as ever, and the sanitizer still sees what it is there for."""
    overrun = programs.build("overrun")
    tool = run(*overrun, "8")
    expect(tool.output == "cleared 8 of 8, the first is 0\n", "it did not run as without uiwarp", tool)
    if sanitizer != "address":
        return
    tool = run(*overrun, "9", status=1)
    expect("heap-buffer-overflow" in tool.output, "the sanitizer does not see a fault of the program's", tool)
    own = programs.build("overrun", "-DOWN_OPTIONS", name="own-options")
    tool = run(*own, "8")
    expect(tool.output == "cleared 8 of 8, the first is 0\n", "it does not run with options of its own", tool)


def board_of(programs, compiler, sanitizer):
    # gcc's programs take the suppressions from libuiwarp-preload.so; clang's have that question's answer in themselves.
    settings = {"ASAN_OPTIONS": "detect_leaks=1"}
    if (compiler, sanitizer) == ("clang", "thread"):
        settings["TSAN_OPTIONS"] = f"suppressions={SUPPRESSIONS}/uiwarp.tsan"
    return programs.build("board", "-libverbs", "-lrdmacm"), settings


def try_board(world, start, board, settings):
    """Atomics and Writes with immediate between two processes, and not a word of the sanitizer's."""
    port = world.port()
    server = start(*board, "serve", world.server, port, settings=settings)
    world.server_ready(server, port)
    client = start(*board, "write", world.server, port, "first", "last", settings=settings)
    world.finish(client, 30, 0, server)
    world.finish(server, 30, 0, client)
    said = [line for line in server.output.splitlines() if "Symbolizer" not in line]
    expect(said == LINES, "the server's words are not the board's alone", server, client)


def register(compiler, sanitizer):
    @case(f"sanitized-{compiler}-{sanitizer}-run", worlds=LO4, seconds=90)
    def run(world):
        with Programs(compiler, sanitizer) as programs:
            try_overrun(programs, sanitizer, lambda *program, **how: world.run("client", *program, **how))
            board, settings = board_of(programs, compiler, sanitizer)
            for engine in ("auto", "epoll"):
                try_board(world, lambda *program, **how: world.start("client", *program, **how), board,
                          {**settings, "UIWARP_ENGINE": engine})

    @case(f"sanitized-{compiler}-{sanitizer}-enable", worlds=["lo4-root"], seconds=90)
    def enable(world):
        with Programs(compiler, sanitizer) as programs, System(world) as system:
            system.uiwarp("enable")
            try_overrun(programs, sanitizer, system.run)
            try_board(world, system.start, *board_of(programs, compiler, sanitizer))


for _compiler in ("gcc", "clang"):
    for _sanitizer in ("address", "thread", "undefined"):
        register(_compiler, _sanitizer)
