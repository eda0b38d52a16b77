#!/usr/bin/env python3
"""tests/gpu.sh over programs that hang, die, lie or are not there.

What goes wrong costs its own row, the deadline holds, the report is valid at
any time and nothing is left running. No card, no torch, no build.
"""

import os
import random
import signal
import tarfile
import unittest

from gpu_script_bundle import BundleTest, killed_run

KILLS = 5


class GpuScriptTest(BundleTest):
    def test_everything_passes_where_every_program_behaves(self):
        report = self.run_script("--device=cuda")
        self.assertTrue(report["finished"])
        self.assertEqual({"passed"}, set(self.status(report).values()),
                         report["steps"])
        self.assertEqual([], report["left_out"])
        whats = {row.get("what") for row in report["rows"]}
        self.assertLessEqual(
            {"encoderd bf16", "encoderd fp8", "transformers sdpa bf16",
             "compile bf16", "onnx fp16",
             "sentence-transformers bf16, texts in",
             "encoderd bf16, no CUDA graphs", "encoderd bf16 over gRPC"}, whats)
        self.assertIn({"step": "shapes of bert-base", "shape": [1, 2, 3],
                       "us": 7.5}, report["rows"])
        speeds = [row for row in report["rows"]
                  if row["step"] == "speed of e5-small"]
        self.assertEqual({"passages"}, {row["workload"] for row in speeds})
        self.assertIn("share_of_ceiling", speeds[0])
        self.assertEqual([".lock", "gpu.json", "gpu.md", "logs.tar.gz"],
                         sorted(os.listdir(self.bundle.out)))
        with tarfile.open(self.bundle.out / "logs.tar.gz") as logs:
            self.assertIn("logs/nvidia-smi.log", logs.getnames())

    def test_each_short_run_has_its_own_steps(self):
        steps = {}
        for run in "abc":
            report = self.run_script("--device=cuda", f"--run={run}")
            steps[run] = set(self.status(report)) - {"preflight"}
        self.assertIn("racecheck of gpu_row_op_test", steps["a"])
        self.assertIn("ops of minilm", steps["b"])
        self.assertIn("ceilings", steps["b"] & steps["c"])
        self.assertIn("latency of bert-large", steps["c"])
        self.assertEqual({"ceilings"}, steps["b"] & steps["c"])
        self.assertFalse(steps["a"] & (steps["b"] | steps["c"]))

    def test_an_engine_that_fails_costs_its_own_row(self):
        def check(report):
            self.only_failed(report, "speed of e5-small")
            rows = {row["what"]: row for row in report["rows"]
                    if "what" in row}
            bad = rows.pop("encoderd fp8")
            self.assertIn("engine_bench" if what in ("hang", "die", "leave")
                          else "answered", bad["note"])
            self.assertNotIn("tokens_per_second", bad)
            self.assertEqual(4, len(rows))
            for row in rows.values():
                self.assertGreater(row.get("tokens_per_second", 0), 0)

        for what in ("hang", "die", "leave", "garbage", "negative", "nan"):
            with self.subTest(what):
                self.run_hurried(
                    check, "--device=cuda", "--only=speed", "--models=e5-small",
                    code=1, misdeeds=f"engine_bench:run:{what}:--products=fp8")

    def test_a_baseline_that_fails_fails_nothing_else(self):
        def check(report):
            rows = [row for row in report["rows"]
                    if row.get("what") == "transformers sdpa bf16"]
            self.assertEqual(2, len(rows))
            for row in rows:
                self.assertIn("note", row)

        for what in ("hang", "die", "leave", "garbage"):
            with self.subTest(what):
                self.run_hurried(
                    check, "--device=cuda", "--only=speed", "--models=minilm",
                    misdeeds=f"worker:start:{what}:--kind=sdpa")

    def test_vectors_that_are_no_numbers_or_depend_on_company_fail(self):
        for what in ("nan", "company"):
            with self.subTest(what):
                report = self.run_script(
                    "--device=cuda", "--only=correct", code=1,
                    misdeeds=f"engine_bench:vectors:{what}:--dtype=fp16")
                bad = [row for row in report["rows"]
                       if row["verdict"] == "FAILED"]
                self.assertEqual({"fp16"}, {row["dtype"] for row in bad})
                self.assertEqual({False}, {row["same_bits"] for row in bad})
                good = {row["dtype"] for row in report["rows"]
                        if row["verdict"] == "passed"}
                self.assertEqual({"fp32", "bf16"}, good)

    def test_a_row_that_failed_before_the_time_was_over_fails_the_run(self):
        # A deadline that leaves room to begin the step, on a slow machine too.
        for deadline in (10, 20, 40, 80):
            report = self.run_script(
                "--device=cuda", f"--deadline={deadline}", "--steps=^goldens of mpnet",
                "--patience=10", code=None,
                misdeeds="engine_bench:vectors:nan:--dtype=fp32 "
                         "engine_bench:vectors:hang:--dtype=fp16")
            if "goldens of mpnet" in self.status(report):
                break
        self.assertEqual(1, self.code, self.said)
        self.assertEqual("FAILED", self.status(report)["goldens of mpnet"])
        self.assertIn("cut off: the deadline", report["steps"][-1]["detail"])
        self.assertEqual(
            [("fp32", "FAILED"), ("fp16", "FAILED"), ("bf16", "cut off")],
            [(row["dtype"], row["verdict"]) for row in report["rows"]])

    def test_a_program_that_ran_no_test_does_not_pass(self):
        names = ("gpu_row_op_test", "memcheck of gpu_row_op_test")
        for what, status, code in (("none", "FAILED", 1), ("skip", "not run", 0)):
            with self.subTest(what):
                report = self.run_script(
                    "--device=cuda", "--steps=gpu_row_op_test", code=code,
                    misdeeds=f"gpu_row_op_test:run:{what}")
                for name in names:
                    self.assertEqual(status, self.status(report)[name],
                                     report["steps"])

    def test_without_a_reference_a_row_says_that_only_bits_were_compared(self):
        report = self.run_script("--device=cpu", "--only=correct",
                                 misdeeds="worker:start:die")
        self.assertEqual({"bits only"},
                         {row["verdict"] for row in report["rows"]})
        self.assertEqual([True], list({row["same_bits"]
                                       for row in report["rows"]}))
        self.assertEqual("bits only", self.status(report)["goldens of mpnet"])
        report = self.run_script("--device=cuda", "--only=correct", code=1,
                                 misdeeds="worker:start:die")
        self.assertEqual({"bits only"},
                         {row["verdict"] for row in report["rows"]})
        self.assertEqual("FAILED", self.status(report)["goldens of mpnet"])

    def test_several_sessions_take_the_card_named_or_all_the_engine_sees(self):
        for device, cards, smi, told in (
                ("cuda:1", 4, 4, "2 sessions on cuda:1; the engine sees 4"),
                ("cuda", 4, 1, "8 sessions on cuda:all; the engine sees 4")):
            with self.subTest(device=device, cards=cards):
                report = self.run_script(
                    f"--device={device}", "--only=correct",
                    FAKE_CARDS=str(cards), FAKE_CARDS_OF_SMI=str(smi))
                details = {step["step"]: step["detail"]
                           for step in report["steps"]}
                self.assertEqual(f"{told} cards", details["several sessions"])

    def test_a_test_that_hangs_is_named_and_its_group_ends(self):
        def check(report):
            self.only_failed(report, "gpu_row_op_test",
                             "memcheck of gpu_row_op_test",
                             "racecheck of gpu_row_op_test")
            detail = next(step["detail"] for step in report["steps"]
                          if step["step"] == "memcheck of gpu_row_op_test")
            self.assertIn("no answer within", detail)
            self.assertIn("in Op.MatchesTheFormula", detail)

        self.run_hurried(check, "--device=cuda", "--only=correct", code=1,
                         misdeeds="gpu_row_op_test:run:hang")

    def test_lines_that_are_no_rows_cost_nothing(self):
        report = self.run_script(
            "--device=cuda", "--only=ops", "--models=minilm",
            misdeeds="card_bench:shapes:garbage")
        shapes = [row for row in report["rows"]
                  if row["step"] == "shapes of minilm"]
        self.assertEqual(3, len(shapes))
        self.assertEqual("nan", shapes[1]["op"])

    def test_rows_before_a_program_dies_are_kept(self):
        def check(report):
            self.only_failed(report, "shapes of minilm", "ops of minilm")
            steps = [row["step"] for row in report["rows"]]
            self.assertEqual(1, steps.count("shapes of minilm"))
            self.assertEqual(1, steps.count("ops of minilm"))

        for what in ("die", "hang"):
            self.run_hurried(
                check, "--device=cuda", "--only=ops", "--models=minilm", code=1,
                misdeeds=f"card_bench:shapes:{what} engine_bench:ops:{what}")

    def test_a_server_or_a_client_that_fails_costs_its_own_rows(self):
        for program in ("encoderd", "grpc_bench"):
            for what in ("hang", "die", "leave", "garbage"):
                if (program, what) == ("encoderd", "garbage"):
                    continue  # says nothing that is read but its port
                with self.subTest(program=program, what=what):
                    self.run_hurried(
                        lambda report: self.only_failed(report, "minilm served"),
                        "--device=cuda", "--only=serve,latency",
                        "--models=minilm", code=1,
                        misdeeds=f"{program}:start:{what}")

    def test_missing_programs_are_left_out_by_name(self):
        for name in ("card_bench", "encoderd", "gpu_fp8_op_test"):
            (self.bundle.root / "bin" / name).unlink()
        report = self.run_script("--device=cuda", "--models=minilm")
        left = {entry["what"]: entry["why"] for entry in report["left_out"]}
        self.assertEqual({
            "ceilings": "the bundle has no card_bench",
            "shapes of minilm": "the bundle has no card_bench",
            "minilm served": "the bundle has no encoderd",
            "gpu_fp8_op_test": "the bundle has no gpu_fp8_op_test",
            "memcheck of gpu_fp8_op_test": "the bundle has no gpu_fp8_op_test",
            "racecheck of gpu_fp8_op_test":
                "the bundle has no gpu_fp8_op_test"}, left)

    def test_no_card_is_a_loud_end_with_its_cause(self):
        report = self.run_script("--device=cuda", code=1,
                                 misdeeds="engine_bench:start:die "
                                          "nvidia-smi:start:garbage")
        self.only_failed(report, "preflight")
        self.assertEqual("passed", self.status(report)["gpu_row_op_test"])
        detail = report["steps"][0]["detail"]
        self.assertIn("nvidia-smi names no card", detail)
        for dtype in ("bf16", "fp32"):
            self.assertIn(f"engine_bench does not open cuda in {dtype}", detail)
        self.assertIn({"what": "goldens of mpnet", "why": "preflight failed"},
                      report["left_out"])
        self.assertIn(detail, self.said)

    def test_a_dtype_that_does_not_open_leaves_the_others(self):
        report = self.run_script(
            "--device=cuda", "--only=correct", code=1,
            misdeeds="engine_bench:run:die:--dtype=bf16")
        self.assertEqual("passed", self.status(report)["preflight"])
        self.assertIn("does not open cuda in bf16", report["facts"]["findings"])
        good = {row["dtype"] for row in report["rows"]
                if row["verdict"] == "passed"}
        self.assertEqual({"fp32", "fp16"}, good)

    def test_a_silent_nvidia_smi_stops_nothing(self):
        self.run_hurried(
            lambda report: self.assertIn("no answer within",
                                         report["facts"]["findings"]),
            "--device=cuda", "--only=latency", "--models=minilm",
            misdeeds="nvidia-smi:start:hang")

    def test_library_folders_are_added_to_those_given(self):
        report = self.run_script("--device=cuda", "--only=serve",
                                 "--models=minilm",
                                 LD_LIBRARY_PATH="/given/one:/given/two")
        folders = report["facts"]["LD_LIBRARY_PATH"].split(":")
        self.assertEqual([str(self.bundle.root.resolve() / "lib"),
                          "/given/one", "/given/two"], folders[:3])

    def run_until_begun(self, step, deadlines, *arguments, **options):
        """The report of the first of these deadlines, in seconds, that leaves
        room to begin the step, on a slow machine too."""
        for self.deadline in deadlines:
            report = self.run_script(
                "--device=cuda", f"--deadline={self.deadline}", *arguments,
                code=None, **options)
            if step in self.status(report):
                break
        return report

    def test_the_deadline_holds_whatever_hangs(self):
        # The clock of PlanTest says by when; here it must end what hangs.
        report = self.run_until_begun(
            "gpu_row_op_test", (8, 16, 32, 64), "--patience=10",
            misdeeds="gpu_row_op_test:run:hang")
        self.assertEqual(1, self.code, self.said)
        self.only_failed(report, "gpu_row_op_test")
        self.assertIn("no answer within", report["steps"][-1]["detail"])
        self.assertTrue(report["left_out"])
        for entry in report["left_out"]:
            self.assertRegex(entry["why"], r"takes about \d+ s; \d+ s are left")

    def test_a_step_cut_off_by_the_deadline_keeps_its_rows(self):
        report = self.run_until_begun(
            "speed of e5-small", (10, 20, 40, 80), "--only=speed",
            "--models=e5-small", "--patience=10",
            misdeeds="engine_bench:run:hang:--products=fp8")
        self.only_failed(report, "speed of e5-small")
        rows = {row["what"]: row for row in report["rows"] if "what" in row}
        self.assertEqual(1, rows["encoderd bf16"]["repeats"])
        self.assertIn("no answer within", rows["encoderd fp8"]["note"])
        self.assertIn({"what": "e5-small: passages",
                       "why": f"the deadline of {self.deadline} s"},
                      report["left_out"])

    def test_term_ends_children_and_leaves_a_report(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            script = self.bundle.start(
                "--device=cuda", "--only=correct",
                misdeeds="engine_bench:run:hang:--dtype=fp16")
            for line in script.stdout:
                if b"row written: 1 " in line:  # the second will hang
                    break
            script.send_signal(number)
            script.communicate(timeout=30)
            self.assertEqual(1, script.returncode)
            report = self.bundle.report()
            self.assertIn(number.name, report["ended"])
            self.assertFalse(report["finished"])
            self.assertEqual(1, len(report["rows"]))
            self.assertEqual([], self.bundle.wait_for_nobody())

    def test_a_killed_script_leaves_every_row_it_announced(self):
        chance = random.Random(4)
        for _ in range(KILLS):
            first = chance.randint(1, 12)
            announced, lost = killed_run(self.bundle, chance.uniform(0, 0.5),
                                         after_rows=first)
            self.assertGreaterEqual(len(announced), first)
            self.assertEqual([], lost)
            self.assertEqual([], self.bundle.wait_for_nobody())

    def test_a_killed_script_takes_along_what_its_children_started(self):
        script = self.bundle.start(
            "--device=cuda", "--only=correct",
            misdeeds="gpu_attention_op_test:run:hang:--sanitized")
        for line in script.stdout:
            if b"memcheck of gpu_attention_op_test ..." in line:
                break
        while not any(b"--sanitized" in who for who in
                      self.bundle.left_over()):
            self.assertIsNone(script.poll())
        script.kill()
        script.communicate(timeout=30)
        self.assertEqual([], self.bundle.wait_for_nobody())
        self.assertFalse((self.bundle.folder / "report.scratch").exists())

    @unittest.skipUnless(
        os.access(os.environ.get("ENCODERD_TEST_ENGINE_BENCH", ""), os.X_OK),
        "ENCODERD_TEST_ENGINE_BENCH names no engine_bench; the preset bench "
        "builds one")
    def test_the_real_engine_runs_on_the_host(self):
        self.bundle.use_real(os.environ["ENCODERD_TEST_ENGINE_BENCH"],
                             "engine_bench")
        report = self.run_script("--device=cpu", "--only=correct,speed,latency",
                                 "--models=minilm,e5-small", code=1)
        # The stand-in for PyTorch gives vectors of another width.
        for row in report["rows"]:
            if "goldens" in row["step"]:
                self.assertIn("shape", row["note"])
        rates = [row["tokens_per_second"] for row in report["rows"]
                 if row.get("what") == "encoderd fp32" and "workload" in row
                 and "tokens_per_second" in row]
        self.assertEqual(3, len(rates))


if __name__ == "__main__":
    unittest.main()
