# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Memory that runs out, and memory that comes from the program's own malloc()."""
import os

from registry import LO4, case


def failing(world, how, engine="auto"):
    """uiwarp-failing says what went wrong; its status is 0 when nothing did."""
    world.run("client", os.path.join(world.bin, "uiwarp-failing"), how, seconds=200, settings={"UIWARP_ENGINE": engine})


@case("memory-own-malloc", worlds=LO4, seconds=60)   # not with sanitizers: they bring a malloc of their own
def own_malloc(world):
    """malloc() and free() are the program's, aligned_alloc() is not."""
    failing(world, "never")


@case("memory-one-fails", worlds=LO4, seconds=240)
def one_fails(world):
    """Each allocation fails once."""
    failing(world, "once")


@case("memory-one-fails-epoll", worlds=LO4, seconds=240)
def one_fails_epoll(world):
    failing(world, "once", "epoll")


@case("memory-all-fail", worlds=LO4, seconds=240)
def all_fail(world):
    """From each allocation on all fail."""
    failing(world, "ever")
