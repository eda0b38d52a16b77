#!/usr/bin/env python3
"""What client/python builds into its wheel, from a copy of the sources and
without a network."""

import ast
import email
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import zipfile

from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.PurePath("client/python")
CONFIGS = ("client_settings.json", "service_config.json")


def metadata(wheel):
    name, = (name for name in wheel.namelist()
             if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


class PythonPackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.checkout = self.folder / "checkout"
        for name in ("proto", PACKAGE / "encoderd"):
            shutil.copytree(ROOT / name, self.checkout / name)
        for name in ("LICENSE", *(f"client/{name}" for name in CONFIGS),
                     PACKAGE / "setup.py", PACKAGE / "pyproject.toml",
                     PACKAGE / "README.md"):
            shutil.copy(ROOT / name, self.checkout / name)

    def wheel(self, source=None):
        """The wheel of what is in the checkout now, or of `source`, opened."""
        out = tempfile.mkdtemp(dir=self.folder)
        self.said = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-index",
             "--no-deps", "--no-build-isolation",
             "--disable-pip-version-check", "--wheel-dir", out,
             source or self.checkout / PACKAGE], check=True, timeout=100,
            text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT).stdout
        file, = pathlib.Path(out).iterdir()
        archive = zipfile.ZipFile(file)
        self.addCleanup(archive.close)
        return archive

    def test_a_module_that_is_gone_is_in_no_later_wheel(self):
        module = self.checkout / PACKAGE / "encoderd/chroma.py"
        self.assertIn("encoderd/chroma.py", self.wheel().namelist())
        module.unlink()
        self.assertNotIn("encoderd/chroma.py", self.wheel().namelist())

    def test_it_has_what_all_clients_share(self):
        self.check_configs(self.wheel())

    def test_it_says_and_holds_its_license(self):
        self.check_license(self.wheel())
        self.assertNotIn("Deprecat", self.said)
        self.assertFalse((self.checkout / PACKAGE / "LICENSE").exists())

    def test_a_license_that_a_killed_build_left_is_replaced(self):
        left = self.checkout / PACKAGE / "LICENSE"
        left.write_text("an older license")
        self.check_license(self.wheel())
        self.assertFalse(left.exists())

    def test_a_source_distribution_builds_alone_and_has_the_license(self):
        out = self.folder / "sdist"
        subprocess.run(
            [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", out],
            cwd=self.checkout / PACKAGE, check=True, timeout=100)
        shutil.rmtree(self.checkout)
        file, = out.iterdir()
        with tarfile.open(file) as archive:
            archive.extractall(self.folder)
        source = self.folder / file.name.removesuffix(".tar.gz")
        self.assertTrue((source / "LICENSE").is_file())
        wheel = self.wheel(source)
        self.check_license(wheel)
        self.check_configs(wheel)

    def test_the_wheel_is_made_with_the_same_tools(self):
        listed = (ROOT / "deploy/package/wheel-tools.txt").read_text()
        asked = tomllib.loads((ROOT / PACKAGE / "pyproject.toml").read_text())
        for version in ("3.11", "3.13", "3.14"):
            environment = {"python_version": version}
            tools = [requirement for requirement in map(
                Requirement, asked["build-system"]["requires"])
                if requirement.name == "grpcio-tools"
                and requirement.marker.evaluate(environment)]
            self.assertEqual(1, len(tools), version)
            self.assertIn(tools[0].specifier, [
                requirement.specifier for requirement in map(
                    Requirement, re.findall(r"^[^#\n].*", listed, re.MULTILINE))
                if requirement.name == "grpcio-tools"
                and requirement.marker.evaluate(environment)])

    def test_every_source_is_read_by_the_grammar_of_python_3_9(self):
        sources = [*(ROOT / PACKAGE).rglob("*.py")]
        self.assertIn(ROOT / PACKAGE / "encoderd/client.py", sources)
        for source in sources:
            ast.parse(source.read_text(encoding="utf-8"), str(source),
                      feature_version=(3, 9))

    def test_it_asks_for_python_3_9_and_the_grpc_of_its_tools(self):
        said = metadata(self.wheel())
        self.assertEqual(">=3.9", said["Requires-Python"])
        needed = {one.name: one.specifier for one in map(
            Requirement, said.get_all("Requires-Dist")) if not one.marker}
        self.assertEqual({"grpcio", "protobuf", "googleapis-common-protos",
                          "numpy"}, set(needed))
        for name in ("grpcio", "protobuf"):
            self.assertIn(importlib.metadata.version(name), needed[name])

    def check_configs(self, wheel):
        for name in CONFIGS:
            self.assertEqual((ROOT / "client" / name).read_bytes(),
                             wheel.read(f"encoderd/{name}"))

    def check_license(self, wheel):
        name, = (name for name in wheel.namelist()
                 if name.endswith(".dist-info/licenses/LICENSE"))
        self.assertEqual((ROOT / "LICENSE").read_bytes(), wheel.read(name))
        said = metadata(wheel)
        self.assertEqual("Apache-2.0", said["License-Expression"])
        self.assertEqual(["LICENSE"], said.get_all("License-File"))


if __name__ == "__main__":
    unittest.main()
