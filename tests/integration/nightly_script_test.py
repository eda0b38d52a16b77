#!/usr/bin/env python3
"""tests/nightly.sh where a check breaks: each has its row, and the others run."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from scripts_support import ROOT, ScriptCase


class NightlyScriptTest(ScriptCase):
    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "checkout"
        shutil.copytree(ROOT / "tests/nightly", self.checkout / "tests/nightly")
        shutil.copy(ROOT / "tests/nightly.sh", self.checkout / "tests")
        self.stand_in("cmake", "exit 0")

    def program(self, path, text):
        """A script in the checkout."""
        file = self.checkout / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
        return str(file)

    def change(self, text):
        """Adds to the checks; a later function of a name replaces the first."""
        part = self.checkout / "tests/nightly/packages.sh"
        part.write_text(part.read_text(encoding="utf-8") + text,
                        encoding="utf-8")

    def nightly(self, *checks, **environment):
        done = subprocess.run(
            [self.checkout / "tests/nightly.sh", *checks], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
            env={**os.environ, "ENCODERD_TEST_PYTHON": sys.executable,
                 "PATH": f"{self.folder}/path:{os.environ['PATH']}",
                 **environment})
        self.said = done.stderr
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        return done.returncode, [(row[0], row[-1]) for row in rows]

    def test_a_build_that_fails_fails_its_own_check(self):
        self.stand_in("cmake", "exit 1")
        self.assertEqual(
            (1, [("fuzz", "FAILED"), ("simulation", "FAILED")]),
            self.nightly("fuzz", "simulation"))

    def test_an_error_of_the_shell_ends_its_check_alone(self):
        self.change("""
check_fuzz() { local value=$((1 + )); verdict 0 "$value" true; }
check_clang() { verdict 0 0 true; }
""")
        self.assertEqual((1, [("fuzz", "FAILED"), ("clang", "passed")]),
                         self.nightly("fuzz", "clang"))

    def test_a_check_that_hangs_is_ended_and_the_others_run(self):
        self.change("""
check_fuzz() {
  (trap '' TERM; exec sleep 1000) & echo $! > sleeper
  wait
  verdict 0 0 true
}
check_clang() { verdict 0 0 true; }
""")
        sleeper = self.checkout / "sleeper"
        limit = 1
        while True:  # a loaded machine needs longer for the other check
            rows = self.nightly("fuzz", "clang",
                                ENCODERD_CHECK_LIMIT=str(limit))
            self.wait_for_end(sleeper)
            if rows == (1, [("fuzz", "FAILED"), ("clang", "passed")]):
                break
            self.assertLess(limit, 30, rows)
            limit *= 2

    def test_a_check_that_ends_badly_after_its_verdict_fails(self):
        self.change("""
check_fuzz() { verdict 0 0 true; exit 3; }
check_clang() { verdict 0 0 true; }
""")
        self.assertEqual((1, [("fuzz", "FAILED"), ("clang", "passed")]),
                         self.nightly("fuzz", "clang"))

    def test_what_a_check_leaves_behind_may_clean_up(self):
        self.program("child", "trap 'echo > cleaned; exit' TERM\n"
                              "echo > ready\nwhile :; do sleep 0.1; done")
        self.change("""
check_fuzz() {
  ./child & while [[ ! -e ready ]]; do sleep 0.1; done
  verdict 0 0 true
}
""")
        self.assertEqual((0, [("fuzz", "passed")]), self.nightly("fuzz"))
        self.assertTrue((self.checkout / "cleaned").exists())

    def wait_for_end(self, file):
        """Of the process whose number it has, if it has one."""
        number = file.read_text().strip() if file.exists() else ""
        until = time.monotonic() + 60
        while number and self.lives(number):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def lives(self, process):
        try:
            stat = pathlib.Path(f"/proc/{process}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    def test_the_table_comes_where_it_is_ended(self):
        self.change("""
check_fuzz() { verdict 0 0 true; }
check_clang() { sleep 1000 & echo $! > sleeper; wait; }
""")
        with subprocess.Popen(
                [self.checkout / "tests/nightly.sh", "fuzz", "clang"], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "ENCODERD_TEST_PYTHON": sys.executable}
        ) as script:
            sleeper = self.checkout / "sleeper"
            while not sleeper.exists() or not sleeper.read_text():
                self.assertIsNone(script.poll())
                time.sleep(0.05)
            script.send_signal(signal.SIGTERM)
            said = script.communicate(timeout=60)[0]
        self.assertEqual(143, script.returncode)
        self.assertEqual([["fuzz", "passed"]],
                         [[line.split()[0], line.split()[-1]]
                          for line in said.splitlines()[1:]])
        self.wait_for_end(sleeper)

    def test_without_an_environment_it_says_what_makes_one(self):
        self.assertEqual((2, []), self.nightly(
            "fuzz", ENCODERD_TEST_PYTHON=str(self.folder / "none")))
        self.assertIn("tests/run.sh creates it", self.said)

    def test_a_figure_of_two_lines_is_one_row(self):
        self.change("check_fuzz() { verdict 0 $'a\\tb\\nc' true; }\n")
        self.assertEqual((0, [("fuzz", "passed")]), self.nightly("fuzz"))

    def test_a_row_that_is_lost_or_repeated_fails(self):
        self.change("""
check_asan() { verdict 0 0 true; verdict 0 0 true; }
check_fuzz() { verdict 0 0 true; }
check_clang() { verdict 0 0 true; }
row() {
  [[ $check == clang ]] ||
    printf '%s\\t0\\t0\\tpassed\\n' "$check" >> "$work/table"
}
""")
        for checks, rows in ((("fuzz", "clang"), ["fuzz"]), (("clang",), []),
                             (("asan",), ["asan", "asan"])):
            with self.subTest(checks):
                self.assertEqual((1, [(row, "passed") for row in rows]),
                                 self.nightly(*checks))
                self.assertIn("lost or repeated", self.said)

    def rounds(self, *counts):
        """The verdict where the two programs pass as many tests."""
        for program, count in zip(("process", "queue"), counts):
            self.program(f"build/dev/bin/server_{program}_test",
                         f"echo '[  PASSED  ] {count}.'")
        return self.nightly("rounds")

    def test_rounds_need_the_tests_that_their_filters_name(self):
        self.assertEqual((0, [("rounds", "passed")]),
                         self.rounds("2 tests", "1 test"))
        for counts in (("0 tests", "0 tests"), ("2 tests", "0 tests"),
                       ("1 test", "1 test")):
            with self.subTest(counts):
                self.assertEqual((1, [("rounds", "FAILED")]),
                                 self.rounds(*counts))

    def test_the_real_engine_of_the_gpu_script_must_run(self):
        for said, code, verdict in (
                ("Ran 1 test in 9.1s\n\nOK", 0, "passed"),
                ("Ran 0 tests in 0.0s\n\nOK", 0, "FAILED"),
                ("Ran 1 test in 0.0s\n\nOK (skipped=1)", 0, "FAILED"),
                ("Ran 1 test in 9.1s\n\nOK", 1, "FAILED")):
            with self.subTest(said, code=code):
                python = self.program("python", f"echo '{said}'; exit {code}")
                self.assertEqual(
                    (int(verdict == "FAILED"), [("gpu_script_host", verdict)]),
                    self.nightly("gpu_script_host",
                                 ENCODERD_TEST_PYTHON=python))

    def test_integrations_need_a_clean_end(self):
        programs = "tests/integration/client_programs"
        self.program(f"{programs}/install.sh", "exit 0")
        for said, code, verdict in (
                ("9 passed in 3.21s", 0, "passed"),
                ("9 passed, 1 warning in 65.21s (0:01:05)", 0, "passed"),
                ("9 passed, 1 warning, 1 error in 3.21s", 1, "FAILED"),
                ("9 passed, 1 warning, 1 error in 3.21s", 0, "FAILED"),
                ("9 passed in 3.21s", 1, "FAILED"),
                ("9 passed, 1 skipped in 3.21s", 0, "FAILED"),
                ("0 passed in 0.01s", 0, "FAILED")):
            with self.subTest(said, code=code):
                self.program(f"{programs}/integrations.sh",
                             f"echo '{said}'; exit {code}")
                self.assertEqual(
                    (int(verdict == "FAILED"), [("integrations", verdict)]),
                    self.nightly("integrations", ENCODERD_TEST_MODEL="here"))


if __name__ == "__main__":
    unittest.main()
