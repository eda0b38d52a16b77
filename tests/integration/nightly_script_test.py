#!/usr/bin/env python3
"""tests/nightly.sh where a check breaks: each has its row, and the others run."""

import os
import shutil
import subprocess
import unittest

from scripts_support import ROOT, ScriptCase


class NightlyScriptTest(ScriptCase):
    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "checkout"
        shutil.copytree(ROOT / "tests/nightly", self.checkout / "tests/nightly")
        shutil.copy(ROOT / "tests/nightly.sh", self.checkout / "tests")

    def nightly(self, *checks):
        done = subprocess.run(
            [self.checkout / "tests/nightly.sh", *checks], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
            env=dict(os.environ, PATH=f"{self.folder}/path:{os.environ['PATH']}"))
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        return done.returncode, [(row[0], row[-1]) for row in rows]

    def test_a_build_that_fails_fails_its_own_check(self):
        self.stand_in("cmake", "exit 1")
        self.assertEqual(
            (1, [("fuzz", "FAILED"), ("simulation", "FAILED")]),
            self.nightly("fuzz", "simulation"))

    def test_an_error_of_the_shell_ends_its_check_alone(self):
        part = self.checkout / "tests/nightly/builds.sh"
        part.write_text(part.read_text(encoding="utf-8") + """
check_fuzz() { local value=$((1 + )); verdict 0 "$value" true; }
check_clang() { verdict 0 0 true; }
""", encoding="utf-8")
        self.assertEqual((1, [("fuzz", "FAILED"), ("clang", "passed")]),
                         self.nightly("fuzz", "clang"))


if __name__ == "__main__":
    unittest.main()
