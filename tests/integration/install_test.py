#!/usr/bin/env python3
"""Where `cmake --install` and CPack put the files of a configured build.

    install_test.py --build=build/dev
"""

import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = None  # set by main
ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = "etc/encoderd/encoderd.flags"


class InstallTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def install(self, prefix, *options, check=True, **variables):
        return subprocess.run(
            ["cmake", "--install", BUILD, "--prefix", prefix, *options],
            check=check, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, timeout=100, env={**os.environ, **variables})

    def files(self):
        return {str(file.relative_to(self.folder))
                for file in self.folder.rglob("*") if not file.is_dir()}

    def test_programs_come_with_completion_and_license(self):
        self.install(self.folder)
        self.assertEqual({
            "bin/encoderd", "bin/encoderctl", "share/doc/encoderd/LICENSE",
            "share/bash-completion/completions/encoderctl"}, self.files())
        self.assertIn("complete -", (
            self.folder / "share/bash-completion/completions/encoderctl"
            ).read_text())

    def test_the_service_is_installed_for_usr_alone(self):
        done = self.install(self.folder, "--component", "service", check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("is for /usr alone", done.stderr)
        self.assertEqual(set(), self.files())

    def test_settings_of_the_package_lie_in_etc(self):
        self.install("/usr", "--component", "service",
                     DESTDIR=str(self.folder))
        self.assertLess({FLAGS, "usr/lib/systemd/system/encoderd.service"},
                        self.files())

    def test_the_package_has_license_and_changelog(self):
        self.install("/usr", "--component", "service",
                     DESTDIR=str(self.folder))
        doc = self.folder / "usr/share/doc/encoderd"
        self.assertEqual({"copyright", "changelog.gz"},
                         {file.name for file in doc.iterdir()})
        packed = (doc / "changelog.gz").read_bytes()
        self.assertEqual((ROOT / "CHANGELOG.md").read_bytes(),
                         gzip.decompress(packed))
        self.assertEqual(bytes(5), packed[3:8], "its name, or a time, is in it")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    BUILD = options.build
    unittest.main(argv=sys.argv[:1] + rest)
