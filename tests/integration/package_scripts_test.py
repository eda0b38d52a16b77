#!/usr/bin/env python3
"""deploy/wheel.sh and deploy/deb.sh, without a build: where the result goes.

They run in a copy of the sources; small scripts on PATH replace the programs
that they call. packages/ tests what they really build.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = "encoderd-7.0-py3-none-manylinux_2_35_x86_64.whl"
DEB = "encoderd_7.0_amd64.deb"
# The option that names the folder for the result, then what lands there.
WRITE = """
while [[ $# -gt 0 ]]; do
  case $1 in {option}) mkdir -p "$2"; echo new > "$2/{name}" ;; esac
  shift
done"""
KINDS = (("wheel.sh", WHEEL, "encoderd-6.0-py3-none-any.whl"),
         ("deb.sh", DEB, "encoderd_6.0_amd64.deb"))


class PackageScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.checkout = self.folder / "checkout"
        self.path = self.folder / "path"
        self.path.mkdir()
        for name in ("deploy", "proto", "client/python"):
            shutil.copytree(ROOT / name, self.checkout / name)
        for name in ("client_settings.json", "service_config.json"):
            shutil.copy(ROOT / "client" / name, self.checkout / "client")
        shutil.copy(ROOT / "LICENSE", self.checkout)
        (self.checkout / "build/package").mkdir(parents=True)
        (self.checkout / "build/package/CMakeCache.txt").touch()
        tools = self.checkout / "build/wheel-tools"
        (tools / "bin").mkdir(parents=True)
        shutil.copy(ROOT / "deploy/package/wheel-tools.txt", tools)
        self.stand_in(self.path / "cmake",
                      f'printf "%s\\n" "$@" >> {self.folder}/asked')
        for name in ("strip", "dpkg-shlibdeps"):
            self.stand_in(self.path / name, "")
        self.stand_in(self.path / "cpack",
                      WRITE.format(option="-B", name=DEB))
        self.stand_in(tools / "bin/auditwheel",
                      WRITE.format(option="--wheel-dir", name=WHEEL))
        # Options of CMake and pip, and the arguments of wheel_licenses.py.
        self.stand_in(tools / "bin/python",
                      f'printf "%s\\n" "$@" >> {self.folder}/asked' +
                      WRITE.format(option=f"--wheel-dir | */{WHEEL}",
                                   name=WHEEL))

    def stand_in(self, file, text):
        file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)

    def run_script(self, script, *arguments, umask=-1, **variables):
        done = subprocess.run(
            [self.checkout / "deploy" / script, *arguments], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60, cwd=self.folder, umask=umask,
            env=dict(os.environ, PATH=f"{self.path}:{os.environ['PATH']}",
                     GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1",
                     **variables))
        self.assertEqual(0, done.returncode, done.stderr)
        self.said = done.stderr
        return done.stdout

    def test_the_path_printed_is_absolute(self):
        for script, name, _ in KINDS:
            for arguments, folder in (
                    ([], self.checkout / "build" / script[:-3]),
                    (["out"], self.folder / "out"),
                    ([f"{self.folder}/a/b"], self.folder / "a/b")):
                with self.subTest(script=script, arguments=arguments):
                    said = self.run_script(script, *arguments)
                    self.assertEqual(f"{folder / name}\n", said)
                    self.assertEqual("new\n", (folder / name).read_text())

    def test_only_a_file_of_the_same_name_is_replaced(self):
        out = self.folder / "out"
        out.mkdir()
        for script, name, older in KINDS:
            (out / name).write_text("old\n")
            (out / older).write_text("older\n")
            self.run_script(script, "out")
        self.assertEqual({
            file: "new\n" if file in (WHEEL, DEB) else "older\n"
            for kind in KINDS for file in kind[1:]
        }, {file.name: file.read_text() for file in out.iterdir()})

    def test_the_folders_of_the_package_are_for_all(self):
        cpack = self.path / "cpack"
        self.stand_in(cpack, f"umask > {self.folder}/umask\n"
                      + cpack.read_text(encoding="utf-8"))
        self.run_script("deb.sh", umask=0o077)
        self.assertEqual("0022\n", (self.folder / "umask").read_text())

    def test_the_wheel_gets_the_licenses_of_what_is_compiled_in(self):
        self.run_script("wheel.sh")
        listed = (ROOT / "deploy/package/built-in.txt").read_text(
            encoding="utf-8").splitlines()
        packages = [line for line in listed if not line.startswith("#")]
        self.assertIn("libstb-dev", packages)
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual(
            [f"--built-in={package}" for package in packages],
            [line for line in asked if line.startswith("--built-in")])

    def revisions(self):
        """What pip, CMake and the list of packages were told since the last
        call."""
        asked = self.folder / "asked"
        found = [line.partition("EVISION=")[2] or line.partition("=")[2]
                 for line in asked.read_text().splitlines()
                 if "evision=" in line.lower()]
        asked.unlink()
        return found

    def git(self, folder):
        """Makes it a repository; its commit."""
        for command in (["init"], ["commit", "--allow-empty", "--message=x"],
                        ["rev-parse", "HEAD"]):
            said = subprocess.run(
                ["git", "-c", "init.defaultBranch=x", "-c", "user.name=x",
                 "-c", "user.email=x@example.com", *command], cwd=folder, check=True, text=True,
                stdout=subprocess.PIPE).stdout
        return said.strip()

    def test_the_commit_is_the_sources_own_or_the_one_that_is_given(self):
        self.git(self.folder)  # around the sources, and not theirs
        self.run_script("wheel.sh")
        self.assertEqual(["", "unknown"], self.revisions())
        commit = self.git(self.checkout)
        self.run_script("wheel.sh")
        self.assertEqual(["", commit], self.revisions())
        self.run_script("wheel.sh", ENCODERD_REVISION="abc")
        self.assertEqual(["abc", "abc"], self.revisions())

    def test_changes_that_no_commit_has_are_told(self):
        self.git(self.checkout)
        self.run_script("deb.sh")
        self.assertIn("uncommitted changes", self.said)
        (self.checkout / ".gitignore").write_text("*\n")
        self.run_script("deb.sh")
        self.assertNotIn("committed", self.said)

    def test_two_folders_are_refused(self):
        for script, _, _ in KINDS:
            done = subprocess.run(
                [self.checkout / "deploy" / script, "one", "two"], text=True,
                capture_output=True, check=False)
            self.assertEqual(
                (2, "", f"usage: deploy/{script} [OUT]\n"),
                (done.returncode, done.stdout, done.stderr))


if __name__ == "__main__":
    unittest.main()
