# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What utils/bench makes of the tools' output, and which verdicts it comes to."""
import contextlib
import io
import unittest
import unittest.mock
import xml.etree.ElementTree
from dataclasses import dataclass

from benchmarks import curves, report, scaling, speeds
from benchmarks.machine import Processors
from benchmarks.measure import Series, Taken, measure
from benchmarks.peers import Ucx
from benchmarks.places import Loopback
from benchmarks.plot import svg
from benchmarks.processes import Missing, Problem
from benchmarks.rows import Row, all_rows
from benchmarks.sources import Bench, Cmtime, Perftest, column_of
from benchmarks.verdict import against, judge

PERFTEST = """---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]
 64      20000          3.01           51.77        3.20               3.27             0.40            4.10
"""
CMTIME = """step              total ms     max ms     min us  us / conn
create id    :        0.56       0.04       0.00       1.12
resolve addr :        7.76       4.19      26.00      15.52
resolve route:        0.94       0.49     437.00       1.89
create qp    :        1.57       0.07       1.00       3.14
connect      :       79.14      76.50     103.00     158.28
disconnect   :       42.73       5.17      19.00      85.47
destroy      :        0.41       0.06       0.00       0.82
"""
UCX = """|     Test     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
                        5000     15.157   141.256   142.256      442.46     443.46        7079        7080
"""


@dataclass
class Fake:
    """A source that gives these values, one a run; an exception among them is raised."""
    values: list
    label: str = "fake"
    taken: int = 0

    def take(self, _):
        self.taken += 1
        value = self.values[self.taken - 1]
        if isinstance(value, Exception):
            raise value
        return value


def series(ours, *references, better="smaller", target=1.5, busy=0.0, moved=False, peers=()):
    row = Row("row", Fake(ours), tuple(Fake(r) for r in references), better, target, "us", tuple(peers))
    one = Series(row, Taken(row.ours, ours), [Taken(s, s.values) for s in row.references], [Taken(p) for p in peers])
    one.busy, one.moved = [busy] * len(ours), [moved] * len(ours)
    return one


class Output(unittest.TestCase):
    def test_perftest(self):
        self.assertEqual(column_of(PERFTEST, 64, 4), 3.20)
        with self.assertRaises(Problem):
            column_of(PERFTEST, 128, 4)

    def test_cmtime_counts_the_steps_until_the_connection_stands(self):
        self.assertAlmostEqual(Cmtime.microseconds(CMTIME), 1.12 + 15.52 + 1.89 + 3.14 + 158.28)
        with self.assertRaises(Problem):
            Cmtime.microseconds(CMTIME.replace("connect      :", "gave up      :"))

    def test_ucx(self):
        self.assertEqual(Ucx.value(UCX, "latency"), 15.157)
        self.assertEqual(Ucx.value(UCX, "bandwidth"), 443.46)
        self.assertEqual(Ucx.value(UCX, "rate"), 0.00708)
        with self.assertRaises(Problem):
            Ucx.value("error", "rate")


class Verdicts(unittest.TestCase):
    def test_the_ratio_is_of_values_of_the_same_run(self):
        verdict = judge(series([3.0, 30.0, 3.0], [2.5, 25.0, 2.5]))
        self.assertEqual(verdict.word, "met")
        self.assertAlmostEqual(verdict.ratio, 1.2)

    def test_missed(self):
        self.assertEqual(judge(series([6.0] * 3, [3.0] * 3)).word, "missed")
        self.assertEqual(judge(series([6.0] * 3, [8.0] * 3, better="larger", target=0.95)).word, "missed")
        self.assertEqual(judge(series([8.0] * 3, [8.0] * 3, better="larger", target=0.95)).word, "met")

    def test_the_target_itself_is_enough(self):
        self.assertEqual(judge(series([3.0] * 3, [2.0] * 3, target=1.5)).word, "met")
        self.assertEqual(judge(series([2.0] * 3, [2.0] * 3, better="larger", target=1.0)).word, "met")

    def test_the_best_alternative_counts(self):
        verdict = judge(series([9.0] * 3, [7.0] * 3, [10.0] * 3, better="larger", target=0.95))
        self.assertAlmostEqual(verdict.ratio, 0.9)
        self.assertEqual(verdict.word, "missed")

    def test_noisy_when_the_reference_varies_and_the_runs_disagree(self):
        self.assertEqual(judge(series([3.0] * 5, [1.0, 3.0, 1.0, 3.0, 3.0])).word, "noisy")
        self.assertEqual(judge(series([9.0] * 5, [1.0, 3.0, 1.0, 3.0, 3.0])).word, "missed")

    def test_noisy_when_others_use_the_machine(self):
        self.assertEqual(judge(series([3.0] * 3, [3.0] * 3, busy=0.5)).word, "noisy")

    def test_noisy_when_the_processors_are_moved(self):
        self.assertEqual(judge(series([3.0] * 3, [3.0] * 3, moved=True)).word, "noisy")

    def test_a_reference_that_fails_on_a_busy_machine_is_noise(self):
        for busy, word in ((0.5, "noisy"), (0.0, "failed")):
            one = series([3.0] * 3, [], busy=busy)
            one.references[0].problem = "did not end"
            self.assertEqual(judge(one).word, word)

    def test_a_fixed_target(self):
        verdict = judge(series([9000.0] * 3, target=8192))
        self.assertEqual((verdict.word, verdict.ratio), ("missed", None))

    def test_peers_by_what_is_better(self):
        row = series([1.0], [1.0]).row
        self.assertEqual(against(row, 2.0, Taken(None, [6.0])), (6.0, 3.0))


class Measuring(unittest.TestCase):
    def take(self, ours, reference, peers=(), runs=0, apart=()):
        """`apart`: what is seen of the processors, look by look; nothing after the last."""
        row = Row("row", Fake(ours), (Fake(reference),), "smaller", 1.5, "us", tuple(peers))
        self.processors = Processors(lambda looks=iter(apart): next(looks, None))
        with contextlib.redirect_stderr(io.StringIO()):
            return measure(None, [row], runs or len(ours), self.processors)[0]

    def test_every_run_takes_every_source(self):
        taken = self.take([1.0, 2.0], [3.0, 4.0])
        self.assertEqual((taken.ours.values, taken.references[0].values), ([1.0, 2.0], [3.0, 4.0]))

    def test_what_was_taken_while_the_processors_moved_is_taken_again(self):
        taken = self.take([1.0, 2.0], [3.0, 4.0], runs=1, apart=[8.0, 35.0, 9.0, 1.0, 7.0])
        self.assertEqual((taken.ours.values, taken.references[0].values, taken.moved), ([2.0], [4.0], [False]))

    def test_processors_that_do_not_come_back(self):
        taken = self.take([1.0, 2.0, 3.0], [4.0], runs=1, apart=[8.0, 35.0, 35.0, 35.0, 8.0])
        self.assertEqual((taken.ours.values, taken.references[0].values, taken.moved), ([3.0], [4.0], [True]))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.remarks([(taken, judge(taken))], self.processors)
        self.assertIn("8.0 to 35.0 us", said.getvalue())

    def test_processors_that_cannot_be_seen_have_stayed(self):
        self.assertEqual(self.take([1.0, 2.0], [3.0, 4.0]).moved, [False, False])

    def test_what_fails_is_not_tried_again(self):
        taken = self.take([1.0, Problem("hangs"), 2.0], [1.0, 1.0, 1.0])
        self.assertEqual(taken.row.ours.taken, 2)
        self.assertEqual(judge(taken).word, "failed")

    def test_what_is_missing_is_skipped_and_said(self):
        taken = self.take([Missing("ib_x is not installed")], [1.0], [Fake([Missing("no peer here")])])
        results = [(taken, judge(taken))]
        self.assertEqual(results[0][1].word, "skipped")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.table(results, 1)
            report.remarks(results, self.processors)
            report.peers(results)
        self.assertIn("skipped: row: ib_x is not installed", said.getvalue())
        self.assertIn("no peer here", said.getvalue())

    def test_what_the_format_leaves(self):
        row = Row("row", Fake([60.0]), (Fake([100.0]),), "larger", 0.85, "MiB/s", bounds=(Fake([70.0]), Fake([80.0])),
                  bounded_by="the format")
        with contextlib.redirect_stderr(io.StringIO()):
            taken = measure(None, [row], 1, Processors(lambda: None))[0]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            report.bounds([(taken, judge(taken))])
        self.assertRegex(said.getvalue(), r"(?m)^the format .*\nrow +60.00 +80.00 MiB/s +0.80x +0.75x$")

    def test_what_several_threads_bring(self):
        fakes = {1: {"uiwarp": Fake([1000.0]), "one engine": Fake([900.0]), "raw TCP": Fake([2000.0])},
                 2: {"uiwarp": Fake([1500.0]), "one engine": Fake([Problem("hangs")]), "raw TCP": Fake([3000.0])}}
        with unittest.mock.patch.object(scaling, "sources", lambda verb, threads: fakes[threads]), \
                unittest.mock.patch.object(scaling, "VERBS", ("send",)), contextlib.redirect_stderr(io.StringIO()):
            taken = scaling.measure_scaling(None, 1, 5, Processors(lambda: None))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            scaling.show(taken)
        self.assertRegex(said.getvalue(), r"(?m)^send bandwidth, 1 thread +1000 +1.0x +900.00 +2000 +0.50x$")
        self.assertRegex(said.getvalue(), r"(?m)^send bandwidth, 2 threads +1500 +1.5x +- +3000 +0.50x$")
        self.assertIn("failed: fake: hangs", said.getvalue())
        self.assertEqual(scaling.data(taken)[1]["mib_per_second"]["uiwarp"], [1500.0])


class Rows(unittest.TestCase):
    def test_names_differ(self):
        names = [row.name for row in (*all_rows(), *speeds.rows())]
        self.assertEqual(len(names), len(set(names)))

    def test_a_post_list_divides_the_iterations(self):
        self.assertEqual(Bench("bin", 0.25, Loopback()).iterations(1000), 192)
        self.assertEqual(Bench("bin", 0.001, Loopback()).iterations(1000), 64)

    def test_a_row_without_its_place_is_skipped(self):
        bench = Bench("bin", 1.0, Loopback(), no_veth="needs root")
        with self.assertRaisesRegex(Missing, "needs root"):
            bench.place(veth=True)

    def test_label_is_what_runs(self):
        self.assertEqual(Perftest("ib_send_bw", 64, 1, 3, ("-b",), {"UIWARP_CRC": "on"}).label,
                         "UIWARP_CRC=on ib_send_bw -s 64 -b")


class Speeds(unittest.TestCase):
    def judged(self, values, raw=None, **how):
        one = series(values, raw or [1.0] * len(values), better="larger", target=speeds.LEAST, **how)
        return one, speeds.judge(one)

    def test_slowest_over_median(self):
        _, verdict = self.judged([6.0, 5.0, 3.0, 7.0, 6.0])
        self.assertEqual((verdict.word, verdict.ours, verdict.ratio, verdict.why), ("met", 6.0, 0.5, ""))

    def test_one_slow_run_is_another_speed(self):
        _, verdict = self.judged([6000.0] * 19 + [2900.0])
        self.assertEqual(verdict.word, "missed")
        self.assertAlmostEqual(verdict.ratio, 2900 / 6000)
        self.assertIn("of 20 runs 1 below half of the median, 0 above", verdict.why)

    def test_a_host_that_slows_raw_tcp_too_has_made_no_other_speed(self):
        _, verdict = self.judged([6000.0] * 19 + [2000.0], [4000.0] * 19 + [1500.0])
        self.assertEqual((verdict.word, verdict.ours, verdict.reference), ("met", 6000.0, 4000.0))
        _, verdict = self.judged([6000.0] * 20, [4000.0] * 19 + [1500.0])
        self.assertIn("0 below half of the median, 1 above", verdict.why)

    def test_so_is_a_fast_one_where_most_are_slow(self):
        _, verdict = self.judged([600.0] * 11 + [6000.0] * 9)
        self.assertEqual((verdict.word, verdict.ratio), ("missed", 1.0))
        self.assertIn("9 above twice", verdict.why)

    def test_what_was_disturbed_says_nothing(self):
        one, verdict = self.judged([6.0] * 4 + [1.0])
        self.assertEqual(verdict.word, "missed")
        one.moved[4] = True
        self.assertEqual(speeds.judge(one).word, "noisy")
        self.assertEqual(self.judged([6.0] * 5, busy=0.5)[1].word, "noisy")

    def test_no_values(self):
        for problem, word in ((Problem("hangs"), "failed"), (Missing("not here"), "skipped")):
            with contextlib.redirect_stderr(io.StringIO()):
                taken = measure(None, [Row("row", Fake([problem]), (Fake([1.0]),), "larger", speeds.LEAST, "MiB/s")], 1,
                                Processors(lambda: None))[0]
            verdict = speeds.judge(taken)
            self.assertEqual((verdict.word, verdict.why), (word, str(problem)))
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                speeds.show([(taken, verdict)])
            self.assertRegex(said.getvalue(), rf"(?m)^row +- +- +- MiB/s +- +- >= 0.5 +{word}$")

    def test_table_and_data(self):
        results = [self.judged([6000.0, 5000.0, 1000.0])]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            speeds.show(results)
        self.assertRegex(said.getvalue(), r"(?m)^row +5000 +1000 +6000 us +1.00 +0.20 >= 0.5 +missed$")
        self.assertEqual(speeds.data(results)[0]["slowest_over_median"], 0.2)

    def test_a_run_moves_as_much_over_any_number_of_queue_pairs(self):
        rows = speeds.rows()
        self.assertEqual(len(rows), 9)
        for row in rows:
            self.assertEqual(row.ours.iterations * int(row.ours.options[-1]), speeds.MESSAGES)

    def test_perftest_hangs_unless_its_completions_divide_the_messages(self):
        for scale in (1.0, 0.25, 0.001):
            for row in speeds.rows():
                iterations = Bench("bin", scale, Loopback()).iterations(row.ours.iterations, row.ours.multiple)
                self.assertEqual(iterations % 100, 0)


class Refused(Perftest):
    """Each attempt fails as the next of `bench` says; then there is a result."""

    def _once(self, bench):
        if bench:
            raise Problem(bench.pop(0))
        return 1.0


@unittest.mock.patch("benchmarks.sources.need")
class Attempts(unittest.TestCase):
    """perftest -R may be refused by its own server, and mostly crashes before it has written so."""
    SAID = "ib_x failed with 1: Event: RDMA_CM_EVENT_REJECTED; error: -111."
    CRASHED = "ib_x failed with -11: Failed to handle RDMA CM event. | ERRNO: No such file or directory."

    def test_who_is_refused_tries_again(self, _):
        self.assertEqual(Refused("ib_x", 64, 1, 3).take([self.SAID, self.CRASHED]), 1.0)

    def test_not_for_ever(self, _):
        with self.assertRaisesRegex(Problem, "refused"):
            Refused("ib_x", 64, 1, 3).take([self.CRASHED] * 5)

    def test_nothing_else_is_tried_again(self, _):
        with self.assertRaisesRegex(Problem, "no device"):
            Refused("ib_x", 64, 1, 3).take(["no device"])


class Plot(unittest.TestCase):
    def test_curves_are_medians_of_what_could_be_taken(self):
        def sources(size):
            return {"a": Fake([float(size), 9.0 * size, 2.0 * size]), "b": Fake([Missing("no b")] * 3)}

        with unittest.mock.patch.object(curves, "PANELS", {"latency": (sources, [64, 512])}), \
                contextlib.redirect_stderr(io.StringIO()):
            taken = curves.measure_curves(None, 3, Processors(lambda: 8.0))
        self.assertEqual(taken, {"latency": {"a": [[64, 128.0], [512, 1024.0]]}})

    def test_every_point_is_drawn(self):
        curves = {"latency": {"a": [[64, 3.0], [4096, 5.0]], "b & c": [[64, 4.0]]},
                  "bandwidth": {"a": [[64, 100.0], [1 << 20, 9000.0]]}}
        drawing = xml.etree.ElementTree.fromstring(svg(curves, "machine <1>"))
        circles = [e for e in drawing.iter() if e.tag.endswith("circle")]
        self.assertEqual(len(circles), 5)
        places = [float(circle.get("cy")) for circle in circles]
        self.assertLess(places[1], places[0])   # 5 us lies above 3 us


if __name__ == "__main__":
    unittest.main()
