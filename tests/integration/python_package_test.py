#!/usr/bin/env python3
"""What client/python builds into its wheel, from a copy of the sources and
without a network."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.PurePath("client/python")


class PythonPackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.checkout = self.folder / "checkout"
        for name in ("proto", PACKAGE / "encoderd"):
            shutil.copytree(ROOT / name, self.checkout / name)
        for name in ("client/service_config.json", PACKAGE / "setup.py",
                     PACKAGE / "pyproject.toml", PACKAGE / "README.md"):
            shutil.copy(ROOT / name, self.checkout / name)

    def wheel(self):
        """The wheel of what is in the checkout now, opened."""
        out = tempfile.mkdtemp(dir=self.folder)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index",
             "--no-deps", "--no-build-isolation",
             "--disable-pip-version-check", "--wheel-dir", out,
             self.checkout / PACKAGE], check=True, timeout=100)
        file, = pathlib.Path(out).iterdir()
        archive = zipfile.ZipFile(file)
        self.addCleanup(archive.close)
        return archive

    def test_a_module_that_is_gone_is_in_no_later_wheel(self):
        module = self.checkout / PACKAGE / "encoderd/chroma.py"
        self.assertIn("encoderd/chroma.py", self.wheel().namelist())
        module.unlink()
        self.assertNotIn("encoderd/chroma.py", self.wheel().namelist())


if __name__ == "__main__":
    unittest.main()
