# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The programs that utils/bench measures with: every shape ends and gives a number.

    programs_test.py BIN Programs|Namespaces
"""
import os
import subprocess
import sys
import unittest

from benchmarks.places import Loopback, Veth
from benchmarks.processes import Missing
from benchmarks.scaling import AtOnce, Threads
from benchmarks.sources import Bench, Idle, Perftest, Raw

# Few iterations: on a busy machine each message of two spinning ends takes milliseconds.
BENCH = Bench(os.path.abspath(sys.argv.pop(1)), 0.001, Loopback())


class Programs(unittest.TestCase):
    def test_raw_shapes(self):
        for shape in ("latency", "read-latency", "stream", "streams", "both-ways", "fpdus", "read-stream", "rate",
                      "connect"):
            for options in ((), ("-w", "block"), ("-w", "spin"), ("-b", "3")):
                with self.subTest(shape=shape, options=options):
                    self.assertGreater(Raw(shape, 1000, 128, options).take(BENCH), 0)

    def test_a_target_that_looks_at_memory(self):
        for size in (1, 64, 300000):
            with self.subTest(size=size):
                self.assertGreater(Raw("latency", size, 128, ("-w", "memory")).take(BENCH), 0)

    def test_several_at_once(self):
        for verb in ("send", "write", "read"):
            for threads, settings in ((1, {}), (3, {}), (3, {"UIWARP_ENGINES": "2"})):
                with self.subTest(verb=verb, threads=threads, settings=settings):
                    self.assertGreater(Threads(verb, threads, settings).take(BENCH), 0)
        self.assertGreater(AtOnce(Raw("stream", 65536, 128), 3).take(BENCH), 0)

    def test_a_message_larger_than_the_socket_holds_in_copies(self):
        self.assertGreater(Raw("stream", (4 << 20) + 1, 64, ("-b", "17")).take(BENCH), 0)

    def test_more_streams_than_messages(self):
        for count in (1, 5, 128):
            with self.subTest(messages=count):
                for shape in ("streams", "both-ways"):
                    self.assertGreater(Raw(shape, 65536, count, ("-q", "5", "-b", "3")).take(BENCH), 0)

    def test_fpdus_of_all_sizes(self):
        """The server looks whether all payload came to its place."""
        for payload in ("1", "1424", "4095", "4096", "65000"):
            for options in ((), ("-c",)):
                for size in (3, 70001) if payload != "1" else (3,):
                    with self.subTest(payload=payload, options=options, size=size):
                        self.assertGreater(Raw("fpdus", size, 64, ("-f", payload, "-b", "5", *options)).take(BENCH), 0)

    def test_datagrams(self):
        self.assertGreater(Raw("datagrams", 64, 1000).take(BENCH), 0)

    def test_wrong_arguments(self):
        for arguments in (["latency"], ["-b", "0", "rate", "64", "1"], ["-q", "0", "streams", "64", "1"],
                          ["shape", "64", "1"], ["rate", "64x", "1"],
                          ["-w", "sleep", "rate", "64", "1"], ["-a", "nowhere", "rate", "64", "1"],
                          ["-w", "memory", "stream", "64", "1"], ["-f", "65001", "fpdus", "64", "1"]):
            result = subprocess.run([BENCH.binary("uiwarp-bench-tcp"), *arguments], stderr=subprocess.DEVNULL,
                                    timeout=20, check=False)
            self.assertEqual(result.returncode, 2, arguments)
        for arguments in (["0", "send", "64", "1"], ["65", "send", "64", "1"], ["1", "verb", "64", "1"],
                          ["1", "send", "0", "1"], ["1", "send", "64", "0"], ["1", "send", "64"]):
            result = subprocess.run([BENCH.binary("uiwarp-bench-threads"), *arguments], stderr=subprocess.DEVNULL,
                                    timeout=20, check=False)
            self.assertEqual(result.returncode, 2, arguments)

    def test_idle_connections(self):
        for what, least in (("latency", 0.1), ("memory", 100), ("cpu", 0)):
            self.assertGreaterEqual(Idle(200, what).take(BENCH), least)


class Namespaces(unittest.TestCase):
    def test_raw_and_perftest(self):
        try:
            BENCH.veth = Veth()
            self.addCleanup(BENCH.veth.close)
            self.assertGreater(Raw("stream", 65536, 128, veth=True).take(BENCH), 0)
            self.assertGreater(Perftest("ib_write_bw", 65536, 128, 3, veth=True).take(BENCH), 0)
        except Missing as missing:
            self.skipTest(str(missing))


def main():
    result = unittest.main(exit=False).result
    return 77 if result.wasSuccessful() and result.skipped else not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
