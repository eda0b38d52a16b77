#!/usr/bin/env python3
"""Parts of tests/gpu.sh within the test's process: the clock, how a pass is
timed, what a row says of vectors, and the judge of the runs that are killed."""

import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import gpu_script_bundle
from gpu_script_bundle import ROOT

sys.path.insert(0, str(ROOT / "tests" / "bench" / "gpu"))
import correct  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import speed  # noqa: E402

SEQUENCES = [[1], [2, 3]]
RIGHT = np.eye(2, 4, dtype=np.float32)


class CorrectTest(unittest.TestCase):
    """compare() over what each test gives: vectors, and whether they have the
    same bits in another batch."""

    def compare(self, got, same, want=RIGHT, judge=True):
        """(step's status, verdict of the row, whether the run failed)."""
        given = {"vectors_of": got, "same_in_company": same}
        run = types.SimpleNamespace(on_card=True, patience=1)
        ids = types.SimpleNamespace(lengths=[1, 2], sequences=SEQUENCES)
        reference = types.SimpleNamespace(vectors=lambda: want)
        with tempfile.TemporaryDirectory() as place:
            run.report = report.Report(pathlib.Path(place), "")
            step = plan.Step("goldens", "correct", 1, lambda: correct.judged(
                [correct.compare(run, "m", "m", ids, reference, "fp32",
                                 judge=judge)]))
            with mock.patch.multiple(correct, **{
                    name: mock.Mock(**{"side_effect" if isinstance(
                        value, Exception) else "return_value": value})
                    for name, value in given.items()}), \
                    mock.patch("builtins.print"):
                plan.run_steps([step], run.report, plan.Clock(60), None)
            content = run.report.content
            return (content["steps"][0]["status"],
                    [row["verdict"] for row in content["rows"]],
                    run.report.failed())

    def test_rows_that_are_right_pass_and_others_fail(self):
        self.assertEqual(("passed", ["passed"], False),
                         self.compare(RIGHT, True))
        self.assertEqual(("FAILED", ["FAILED"], True),
                         self.compare(RIGHT, False))
        self.assertEqual(("FAILED", ["FAILED"], True),
                         self.compare(-RIGHT, True))
        self.assertEqual(("passed", ["told, not judged"], False),
                         self.compare(-RIGHT, True, judge=False))
        self.assertEqual(("passed", ["bits only"], False),
                         self.compare(RIGHT, True, want=None))

    def test_a_row_cut_off_is_written_with_what_was_found(self):
        over = plan.OutOfTime("the step's own time is over")
        self.assertEqual(("cut off", ["cut off"], False),
                         self.compare(over, True))
        self.assertEqual(("cut off", ["cut off"], False),
                         self.compare(RIGHT, over))
        self.assertEqual(("cut off", ["FAILED"], True),
                         self.compare(-RIGHT, over))
        self.assertEqual(("cut off", ["cut off"], False),
                         self.compare(-RIGHT, over, judge=False))

    def cut_off_step(self, function, first, lacks=()):
        """What a step raises whose second row is cut off."""
        run, over = mock.Mock(dtypes=["fp32", "fp16"]), plan.OutOfTime("over")
        reference = mock.Mock(why="".join(lacks))
        reference.lacks.return_value = list(lacks)
        with mock.patch.multiple(
                correct, folder_of=mock.Mock(), mixed_ids=mock.Mock(),
                ids_of_texts=mock.Mock(), compare=mock.Mock(
                    side_effect=[first, over]),
                Reference=mock.Mock(return_value=reference)), \
                self.assertRaises(Exception) as raised:
            function(run)
        return str(raised.exception)

    def test_a_step_that_is_cut_off_says_what_was_wrong_before(self):
        for function in (correct.fp8,
                         lambda run: correct.goldens(run, "m", None)):
            self.assertEqual("over", self.cut_off_step(function, "passed"))
            self.assertEqual("FAILED; cut off: over",
                             self.cut_off_step(function, "FAILED"))
            self.assertIn("passed; cut off: over; no reference",
                          self.cut_off_step(function, "passed",
                                            ["no reference"]))

    def test_other_bits_are_found_at_once(self):
        worker = mock.Mock()
        worker.vectors.return_value = -RIGHT
        worker.feed.side_effect = [None, plan.OutOfTime("over")]
        run, ids = mock.Mock(), types.SimpleNamespace(sequences=SEQUENCES)
        with mock.patch.object(correct, "engine", return_value=worker):
            self.assertFalse(
                correct.same_in_company(run, "m", ids, "fp32", RIGHT))


class KillsTest(unittest.TestCase):
    def faults(self, script):
        """What two kills find where tests/gpu.sh is `script`."""
        class Changed(gpu_script_bundle.Bundle):
            def __init__(self, folder):
                super().__init__(folder)
                path = self.root / "tests" / "gpu.sh"
                path.write_text(f"#!/bin/sh\n{script}\n")

        with mock.patch.object(gpu_script_bundle, "Bundle", Changed), \
                tempfile.TemporaryDirectory() as place:
            return gpu_script_bundle.kill_many(2, place, seed=1)["faults"]

    def test_a_script_that_only_refuses_is_a_fault(self):
        self.assertIn("exit 2, 0 rows", self.faults("exit 2")[0])

    def test_a_script_without_rows_is_a_fault(self):
        self.assertIn("exit 0, 0 rows", self.faults("exit 0")[0])

    def test_kills_that_leave_no_row_and_no_report_are_a_fault(self):
        # Only the run that nobody kills has a row.
        self.assertEqual(["2 kills left 0 reports and 0 rows"], self.faults(
            "[ -e \"$0.ran\" ] && exit 0; touch \"$0.ran\"; sleep 0.2\n"
            "echo 'gpu.sh: row written: 1 {}'"))


class SpeedTest(unittest.TestCase):
    def test_a_short_pass_is_timed_after_a_separate_one(self):
        class Contender:
            def __init__(self, seconds):
                self.seconds = iter(seconds)

            def run(self):
                return next(self.seconds)

        short, times = Contender([9, 0.1, 9, 0.2]), []
        for _ in range(2):
            speed.add_pass(short, times)
        self.assertEqual([0.1, 0.2], times)
        long, times = Contender([9, 2, 3]), []
        for _ in range(2):
            speed.add_pass(long, times)
        self.assertEqual([2, 3], times)


class PlanTest(unittest.TestCase):
    def test_the_clock_gives_what_is_left_and_never_more(self):
        now = [0.0]
        clock = plan.Clock(540, lambda: now[0])
        self.assertEqual(530, clock.left())
        clock.begin_step(100)
        self.assertEqual(60, clock.limit(60))
        now[0] = 70
        self.assertEqual(30, clock.limit(60))
        now[0] = 101
        with self.assertRaisesRegex(plan.OutOfTime, "own time"):
            clock.limit(60)
        clock.end_step()
        now[0] = 531
        with self.assertRaisesRegex(plan.OutOfTime, "deadline of 540 s"):
            clock.limit(1)


if __name__ == "__main__":
    unittest.main()
