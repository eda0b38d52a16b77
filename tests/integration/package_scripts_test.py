#!/usr/bin/env python3
"""deploy/wheel.sh, deploy/deb.sh and deploy/bundle.sh, without a build: where
the result goes, and that only the sources decide its bytes.

They run in a copy of the sources; small scripts on PATH replace the programs
that they call. packages/ tests what they really build.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile
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
# A package of the files in the folder STAGED.
CPACK = """
set(CPACK_PACKAGE_NAME encoderd)
set(CPACK_PACKAGE_VERSION 7.0)
set(CPACK_PACKAGE_FILE_NAME encoderd)
set(CPACK_PACKAGE_DESCRIPTION "text")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "nobody")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_INSTALLED_DIRECTORIES "$ENV{STAGED};/")
"""
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
        # With CDPATH, as a shell may export it, cd prints where it goes.
        environment = dict(os.environ, CDPATH=".", GIT_CONFIG_NOSYSTEM="1",
                           GIT_CONFIG_GLOBAL=os.devnull,
                           PATH=f"{self.path}:{os.environ['PATH']}")
        environment.pop("SOURCE_DATE_EPOCH", None)
        done = subprocess.run(
            [f"checkout/deploy/{script}", *arguments], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60, cwd=self.folder, umask=umask,
            env={**environment, **variables})
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

    def test_the_tools_of_another_python_are_made_again(self):
        self.stand_in(self.checkout / "build/wheel-tools/bin/python", "exit 1")
        self.stand_in(self.path / "python3", f'echo "$@" > {self.folder}/made\n'
                                             "exit 1")
        with self.assertRaises(AssertionError):
            self.run_script("wheel.sh")
        self.assertEqual("-m venv build/wheel-tools\n",
                         (self.folder / "made").read_text())

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

    def git(self, folder, **variables):
        """Makes it a repository; its commit."""
        for command in (["init"], ["commit", "--allow-empty", "--message=x"],
                        ["rev-parse", "HEAD"]):
            said = subprocess.run(
                ["git", "-c", "init.defaultBranch=x", "-c", "user.name=x",
                 "-c", "user.email=x@example.com", *command], cwd=folder, check=True, text=True,
                env={**os.environ, **variables},
                stdout=subprocess.PIPE).stdout
        return said.strip()

    def test_the_commit_is_the_sources_own_or_the_one_that_is_given(self):
        # Around the sources, and not theirs.
        self.git(self.folder, GIT_COMMITTER_DATE="1600000000 +0000")
        self.run_script("wheel.sh")
        self.assertEqual(["", "unknown"], self.revisions())
        commit = self.git(self.checkout)
        self.run_script("wheel.sh")
        self.assertEqual(["", commit], self.revisions())
        # As a hook of the other one runs it.
        self.run_script("wheel.sh", GIT_DIR=str(self.folder / ".git"))
        self.assertEqual(["", commit], self.revisions())
        self.run_script("wheel.sh", ENCODERD_REVISION="abc")
        self.assertEqual(["abc", "abc"], self.revisions())

    def test_files_get_the_time_of_the_commit_or_the_one_that_is_given(self):
        told = f'echo "${{SOURCE_DATE_EPOCH-none}}" >> {self.folder}/times\n'
        tools = self.checkout / "build/wheel-tools/bin"
        for tool in (tools / "python", tools / "auditwheel",
                     self.path / "cpack"):
            self.stand_in(tool, told + tool.read_text(encoding="utf-8"))

        def times(script, **variables):
            self.run_script(script, **variables)
            times = (self.folder / "times").read_text().split()
            (self.folder / "times").unlink()
            return set(times)

        self.git(self.folder)  # around the sources, and not theirs
        for script in ("wheel.sh", "deb.sh"):
            self.assertEqual({"none"}, times(script))
            self.assertEqual({"none"}, times(script, SOURCE_DATE_EPOCH=""))
            self.assertEqual({"7"}, times(script, SOURCE_DATE_EPOCH="7"))
        self.git(self.checkout, GIT_COMMITTER_DATE="1600000000 +0200")
        for script in ("wheel.sh", "deb.sh"):
            self.assertEqual({"1600000000"}, times(script))
            self.assertEqual({"7"}, times(script, SOURCE_DATE_EPOCH="7"))

    def test_only_the_files_decide_the_bytes_of_the_package(self):
        (self.path / "cpack").unlink()  # the real one
        (self.checkout / "build/package/CPackConfig.cmake").write_text(CPACK)
        packed = []
        for names, time in ("abc", 1e9), ("cba", 1.1e9):
            staged = self.folder / f"staged-{names}"
            (staged / "usr/bin").mkdir(parents=True)
            for name in names:
                (staged / "usr/bin" / name).write_text(name)
                os.utime(staged / "usr/bin" / name, (time, time))
            file = pathlib.Path(self.run_script(
                "deb.sh", STAGED=str(staged),
                SOURCE_DATE_EPOCH="1600000000").strip())
            packed.append(file.read_bytes())
            listed = subprocess.run(
                ["dpkg-deb", "--contents", file], check=True, text=True,
                stdout=subprocess.PIPE, env=dict(os.environ, TZ="UTC")).stdout
            self.assertEqual({"2020-09-13 12:26"},
                             set(re.findall(r"\S+ \d\d:\d\d", listed)))
        self.assertEqual(*packed)

    def make_bundle(self, name, **options):
        """Of programs that are copies of ls."""
        file = self.folder / name
        self.run_script("bundle.sh", "--architecture=80", "--model=none", file,
                        **options)
        return file

    def test_only_the_files_decide_the_bytes_of_the_bundle(self):
        for name in ("tests/gpu.sh", "tests/bench/fp8_error.py",
                     "tests/golden/sentences.txt"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.checkout / name)
        shutil.copytree(ROOT / "tests/bench/gpu",
                        self.checkout / "tests/bench/gpu")
        cuda = self.folder / "cuda"
        built = self.checkout / "build/bundle"
        for folder in (cuda / "bin", built / "bin"):
            folder.mkdir(parents=True)
        (cuda / "EULA.txt").write_text("license")
        self.stand_in(cuda / "bin/nvcc", "echo release 13.0,")
        (built / "CMakeCache.txt").write_text(
            f"CMAKE_CUDA_COMPILER:FILEPATH={cuda}/bin/nvcc\n")
        script = (ROOT / "deploy/bundle.sh").read_text(encoding="utf-8")
        for program in re.search(r"(?s)\nprograms=\((.*?)\)", script)[1].split():
            shutil.copy("/bin/ls", built / "bin" / program)
        self.stand_in(self.path / "strip",
                      '[[ $1 == -o ]] || shift\ncp "$3" "$2"')

        self.git(self.checkout, GIT_COMMITTER_DATE="1600000000 +0200")
        first = self.make_bundle("one.tar.gz")
        self.assertIn("uncommitted changes", self.said)
        again = self.make_bundle("two.tar.gz", umask=0o077)
        self.assertTrue(first.read_bytes() == again.read_bytes())
        # As gzip writes it without a name and a time.
        self.assertEqual(bytes(5), first.read_bytes()[3:8])
        with tarfile.open(first) as archive:
            files = archive.getmembers()
        self.assertEqual(
            {(1600000000, 0, 0, "", "")},
            {(file.mtime, file.uid, file.gid, file.uname, file.gname)
             for file in files})
        self.assertEqual({0o755, 0o644}, {file.mode for file in files})
        names = [file.name.split("/") for file in files]
        self.assertEqual(sorted(names), names)

        (self.folder / "three.tar.gz").mkdir()
        with self.assertRaisesRegex(AssertionError, "three.tar.gz"):
            self.make_bundle("three.tar.gz")
        self.assertEqual([], os.listdir(self.folder / "three.tar.gz"))
        self.assertEqual([], list(self.folder.glob("*.partial")))

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
