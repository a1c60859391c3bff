# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""UC queue pairs, which devices with the RoCE face have: stock tools that connect them by number and GID."""
from case_exchange import gid_index, pingpong
from case_face import IWARP, ROCE
from case_perftest import exchange
from harness import expect
from registry import DIAGONAL, LO4, NAMES, case

PINGPONG = {
    "uc-pingpong": ["-c"],
    "uc-pingpong-events": ["-c", "-e"],
    "uc-pingpong-large": ["-c", "-s", "1048576", "-n", "100"],
}
# A receiver that is too slow loses Sends, and ib_send_bw waits for them for a minute: so it posts as many receives as
# come.
TOOLS = {
    "ib_send_bw": ["-n", "500", "-r", "512"],
    "ib_send_lat": ["-n", "1000"],
    "ib_write_bw": ["-n", "1000"],
    "ib_write_lat": ["-n", "1000"],
}


def register(name, options):
    @case(f"roce-{name}", worlds=NAMES, seconds=100, reduced=True)
    def run(world):
        pingpong(world, ["ibv_uc_pingpong", *options], [(2 * gid_index(world) + 1, ROCE)] * 2, 60)


for _name, _options in PINGPONG.items():
    register(_name, _options)


@case("roce-perftest-uc", worlds=DIAGONAL, seconds=240, serial=True, reduced=True)
def perftest(world):
    """The tools with -R refuse UC themselves."""
    for tool, few in TOOLS.items():
        for more in (["-s", "64"], ["-s", "65536"]):
            exchange(world, tool, ["-d", world.device, "-c", "UC", *few, *more], 60, cm=False, settings=ROCE)
    exchange(world, "ib_write_bw", ["-d", world.device, "-c", "UC", "-q", "4", "-n", "500"], 60, cm=False, settings=ROCE)
    exchange(world, "ib_send_bw", ["-d", world.device, "-c", "UC", "-b", "-n", "200", "-r", "512"], 60, cm=False,
             settings=ROCE)


@case("iwarp-has-no-uc", worlds=LO4, seconds=40)
def refused(world):
    tool = world.run("client", "ibv_uc_pingpong", "-d", world.device, "-g", 0, settings=IWARP, status=1)
    expect("Couldn't create QP" in tool.output, "no word about the queue pair", tool)
