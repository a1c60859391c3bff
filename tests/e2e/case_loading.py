# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs that load libibverbs and librdmacm by dlopen(), and that fork and exec with devices open."""
import os

from registry import LO4, case


def loader(world, how):
    """uiwarp-loader says what does not work; its status is 0 when all does."""
    world.run("client", os.path.join(world.bin, "uiwarp-loader"), how, seconds=60)


@case("loading-local", worlds=LO4, reduced=True)
def local(world):
    loader(world, "local")


@case("loading-deepbind", worlds=LO4)   # not with sanitizers: they do not allow RTLD_DEEPBIND
def deepbind(world):
    loader(world, "deep")
