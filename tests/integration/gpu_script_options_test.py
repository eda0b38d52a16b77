#!/usr/bin/env python3
"""What tests/gpu.sh does with its options, its folders and its streams.

What it cannot use is refused by name before anything runs: exit 2, no report,
nothing deleted. No card, no torch, no build.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from gpu_script_bundle import ROW, BundleTest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench" / "gpu"))
import options  # noqa: E402
import out_folder  # noqa: E402
import plan  # noqa: E402

SHORT = ("--device=cpu", "--only=latency", "--models=minilm")


class RefusalTest(BundleTest):
    def refused(self, *arguments, **environment):
        """What stderr says; nothing was run or written."""
        done = subprocess.run(
            self.bundle.command(*arguments), stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=60,
            env=self.bundle.environment("", **environment))
        said = done.stderr.decode()
        self.assertEqual(2, done.returncode, said)
        self.assertEqual(b"", done.stdout)
        self.assertRegex(said, r"\Agpu\.sh: [^\n]*\n\Z")
        self.assertFalse((self.bundle.out / "gpu.json").is_file())
        return said


class OptionsTest(RefusalTest):
    def test_unknown_words_are_refused_with_the_words_known(self):
        groups, models = ", ".join(plan.GROUPS), ", ".join(plan.MODELS)
        device = options.EXPECTED_DEVICE
        for argument, known in {
                "--run=d": "a, b, c", "--run=": "a, b, c",
                "--only=fast": groups, "--only=": groups,
                "--only=speed,": groups, "--models=gpt": models,
                "--models=": models, "--device=gpu": device,
                "--device=": device, "--device=cuda:": device,
                "--device=cuda:-1": device, "--device=cuda:0,cuda:1": device,
                "--device=cuda:all": device, "--deadline=0": "above 0",
                "--deadline=nan": "above 0", "--patience=-1": "above 0",
                "--deadline=soon": "soon", "--fast": "--fast",
                "--model=": "expected a path"}.items():
            with self.subTest(argument):
                said = self.refused(argument)
                self.assertIn(argument.split("=")[0], said)
                self.assertIn(argument.partition("=")[2], said)
                self.assertIn(known, said)
                self.assertFalse(self.bundle.out.exists())

    def test_a_selection_that_leaves_nothing_is_refused(self):
        for arguments, told in {
                ("--run=a", "--only=speed"):
                    "--only=speed: leaves nothing of --run=a; its groups: "
                    "correct",
                ("--run=b", "--models=bert-large"):
                    "--models=bert-large: leaves nothing of --run=b in speed, "
                    "ops; its models: minilm, bert-base",
                ("--only=serve,latency", "--models=e5-small"):
                    "--models=e5-small: leaves nothing of all runs in serve, "
                    "latency; its models: minilm, bert-base, bert-large",
                }.items():
            self.assertIn(told, self.refused(*arguments))

    def test_an_invalid_pattern_is_refused(self):
        said = self.refused("--steps=goldens of (d32")
        self.assertIn("--steps=goldens of (d32: expected a regular expression",
                      said)

    def test_an_invalid_model_folder_is_refused(self):
        nowhere = self.bundle.folder / "nowhere"
        self.assertIn(f"--model={nowhere}: no such folder",
                      self.refused(f"--model={nowhere}"))
        nowhere.mkdir()
        self.assertIn(f"--model={nowhere}: has no config.json",
                      self.refused(f"--model={nowhere}"))
        name = 300 * "x"
        self.assertIn(f"--model={name}: File name too long",
                      self.refused(f"--model={name}"))

    def test_outside_a_bundle_it_names_the_script_that_makes_one(self):
        shutil.rmtree(self.bundle.root / "bin")
        for argument in ("--run=a", "--run=d"):
            self.assertIn("Run deploy/bundle.sh", self.refused(argument))

    def without_numpy(self):
        python = self.bundle.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        python.chmod(0o755)
        return {"ENCODERD_TEST_PYTHON": str(python)}

    def test_a_python_that_lacks_numpy_or_is_not_there_is_named(self):
        self.assertIn("/python needs numpy", self.refused(
            "--run=a", **self.without_numpy()))
        self.assertIn("no program 'no-python'", self.refused(
            "--run=a", ENCODERD_TEST_PYTHON="no-python"))

    def test_help_needs_no_bundle_and_tells_all_of_every_option(self):
        shutil.rmtree(self.bundle.root / "bin")
        helps = [subprocess.run(
            self.bundle.command(flag), capture_output=True, check=True,
            env=self.bundle.environment("")).stdout.decode()
            for flag in ("--help", "-h")]
        self.assertEqual(*helps)
        told = dict(re.findall(r"^  (--[a-z]+)\b(.*?)(?=^  -|^\S|\Z)", helps[0],
                               re.MULTILINE | re.DOTALL))
        flags = {action.option_strings[-1]
                 for action in options.parser()._actions}
        self.assertEqual(flags - {"--help", "--root", "--worker"}, set(told))
        for flag, text in told.items():
            self.assertIn("Default: ", text, flag)
            self.assertIn(f"Example: {flag}", text, flag)
        for code in range(3):
            self.assertRegex(helps[0], f"\n  {code}  [a-z]")
        self.assertLessEqual(max(map(len, helps[0].splitlines())), 80)


class FoldersTest(RefusalTest):
    def test_a_second_run_into_the_same_folder_is_refused(self):
        first = self.bundle.start("--device=cuda", "--only=correct",
                                  misdeeds="gpu_row_op_test:run:hang")
        for line in first.stdout:
            if b"gpu_row_op_test ..." in line:
                break
        second = self.bundle.start(*SHORT)
        said = second.communicate(timeout=60)[0].decode()
        self.assertEqual(2, second.returncode, said)
        self.assertIn(f"--out={self.bundle.out}: another run writes there "
                      f"(process {first.pid})", said)
        first.send_signal(signal.SIGTERM)
        said = first.communicate(timeout=60)[0].decode()
        self.assertEqual(1, first.returncode)
        self.assertNotIn("Traceback", said)
        report = self.bundle.report()
        self.assertIn("SIGTERM", report["ended"])
        self.assertIn("--only=correct", report["arguments"])
        self.assertTrue(self.run_script(*SHORT)["finished"])

    def test_a_scratch_folder_of_another_is_refused_and_kept(self):
        scratch = self.bundle.folder / "report.scratch"
        other = self.bundle.folder / "other"
        other.mkdir()
        (other / out_folder.MARKER).touch()
        for make in (scratch.mkdir, scratch.touch,
                     lambda: scratch.symlink_to(other),
                     lambda: (scratch / "logs").mkdir(parents=True)):
            make()
            said = self.refused(*SHORT)
            self.assertIn(f"{scratch} is not a scratch folder", said)
            self.assertTrue(scratch.exists())
            if scratch.is_dir() and not scratch.is_symlink():
                if os.listdir(scratch):
                    self.assertEqual(["logs"], os.listdir(scratch))
                    break
                scratch.rmdir()
            else:
                scratch.unlink()
        self.assertEqual([out_folder.MARKER], os.listdir(other))

    def test_the_scratch_folder_of_a_killed_run_is_cleared(self):
        scratch = self.bundle.folder / "report.scratch"
        (scratch / "logs").mkdir(parents=True)
        (scratch / "file").touch()
        (scratch / out_folder.MARKER).touch()
        self.assertIn("is the scratch folder of another run",
                      self.refused(f"--out={scratch}"))
        self.assertTrue(self.run_script(*SHORT)["finished"])

    def test_a_folder_that_cannot_hold_the_report_is_refused(self):
        file = self.bundle.folder / "file"
        file.touch()
        loop = self.bundle.folder / "loop"
        loop.symlink_to(loop)
        (self.bundle.out / "gpu.json").mkdir(parents=True)
        for out, why in {
                "/": "expected a folder below another",
                "": "expected a path", str(file): "is not a folder",
                f"{file}/x": "Not a directory", "/proc/x": "No such file",
                str(file.with_name(250 * "x")): "File name too long",
                str(file.with_name(300 * "x")): "File name too long",
                str(loop): "loop",
                "a\nb": "printable", b"\xff": "printable",
                str(self.bundle.out): "Is a directory"}.items():
            with self.subTest(out):
                flag = b"--out=" + os.fsencode(out)
                self.assertIn(why, self.refused(flag))
        self.assertEqual(b"", file.read_bytes())
        self.assertFalse((self.bundle.folder / "report.scratch").exists())

    def test_a_report_that_cannot_be_written_any_more_stands_on_stdout(self):
        script = self.bundle.start(*SHORT)
        said = b""
        moved = self.bundle.folder / "moved"
        for line in script.stdout:
            said += line
            if b"row written: 1 " in line:
                self.bundle.out.rename(moved)
                break
        said += script.communicate(timeout=60)[0]
        self.assertEqual(1, script.returncode, said)
        self.assertNotIn(b"Traceback", said)
        self.assertIn(b"row NOT written: 2 ", said)
        self.assertIn(b"the report is not complete: ", said)
        rows = json.loads((moved / "gpu.json").read_text())["rows"]
        self.assertEqual([json.loads(ROW.findall(said)[0][1])], rows)


class StreamsTest(BundleTest):
    def report_of(self, redirection="", *arguments, misdeeds="", code=0,
                  **environment):
        """The report, with stdout of `redirection`; stderr tells no fault."""
        script = subprocess.run(
            ["bash", "-c", f'"$@" {redirection}', "bash",
             *self.bundle.command(*SHORT, *arguments)],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=60, env=self.bundle.environment(misdeeds, **environment))
        self.assertEqual(code, script.returncode, script.stderr)
        self.assertEqual(b"", script.stderr)
        self.said = script.stdout
        self.assertEqual([], self.bundle.wait_for_nobody())
        report = self.bundle.report()
        self.assertTrue(report["finished"])
        self.assertEqual(2, len(report["rows"]))
        return report

    def test_a_stream_that_is_closed_or_full_loses_no_report(self):
        for redirection in (">&-", "> /dev/full", "<&- >&- 2>&-",
                            "> /dev/full 2>&1"):
            with self.subTest(redirection):
                self.report_of(redirection)

    def test_a_reader_that_leaves_loses_no_report(self):
        self.report_of("| head -n 1; exit ${PIPESTATUS[0]}")

    def test_what_stdout_cannot_encode_loses_no_report(self):
        report = self.report_of(
            "", misdeeds="engine_bench:run:garbage:--threads=1", code=1,
            PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        self.assertIn("\ufffd so it goes", report["rows"][0]["note"])
        self.assertRegex(self.said, rb"latency of minilm: FAILED .*"
                                    rb"\\ufffd so it goes")


class StepsTest(BundleTest):
    def ran(self, pattern, code):
        done = subprocess.run(
            self.bundle.command("--device=cpu", "--quick", "--only=latency",
                                f"--steps={pattern}"),
            capture_output=True, check=False, timeout=60,
            env=self.bundle.environment(""))
        self.assertEqual(code, done.returncode, done.stdout)
        report = self.bundle.report()
        return [step["step"] for step in report["steps"]], report.get("ended", "")

    def test_steps_of_matching_names_run_alone(self):
        self.assertEqual(
            (["preflight", "latency of minilm", "latency of bert-large"], ""),
            self.ran("minilm|large$", 0))

    def test_a_pattern_of_no_step_ends_the_run_and_tells_the_names(self):
        steps, ended = self.ran("fast", 1)
        self.assertEqual([], steps)
        self.assertIn("--steps=fast: matches none of latency of minilm, ",
                      ended)


class WantedTest(unittest.TestCase):
    def test_words_narrow_a_run_down(self):
        asked = plan.wanted("c", models="minilm")
        self.assertTrue(asked("speed", ""))
        self.assertFalse(asked("speed", "minilm"))
        self.assertTrue(asked("serve", "minilm"))
        self.assertFalse(asked("serve", "bert-large"))
        self.assertFalse(asked("correct", ""))


if __name__ == "__main__":
    unittest.main()
