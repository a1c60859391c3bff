# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Nothing stays behind: descriptors and threads after devices and connections came and went."""
import os

from registry import LO4, case


@case("leak", worlds=LO4, seconds=90, reduced=True)
def leak(world):
    """uiwarp-leak says what it counted; its status is 0 when every cycle gave back what it took."""
    world.run("client", os.path.join(world.bin, "uiwarp-leak"), seconds=60)
