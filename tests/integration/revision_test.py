#!/usr/bin/env python3
"""The commit that a build says of itself, in a small project that includes
deploy/cmake/EncoderdRevision.cmake; then how much of this build knows it.

    revision_test.py --build=build/dev
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = None  # set by main
PROJECT = """cmake_minimum_required(VERSION 3.24)
project(small LANGUAGES NONE)
include({root}/deploy/cmake/EncoderdRevision.cmake)
encoderd_revision(revision)
message(STATUS "revision=${{revision}}.")
encoderd_commit_date(date)
message(STATUS "date=${{date}}.")
add_custom_target(nothing ALL)
"""


class RevisionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = pathlib.Path(folder.name) / "source"
        self.build = pathlib.Path(folder.name) / "build"
        self.source.mkdir()
        (self.source / "CMakeLists.txt").write_text(
            PROJECT.format(root=ROOT), encoding="utf-8")

    def run_program(self, *command):
        return subprocess.run(
            list(map(str, command)), check=True, text=True, timeout=60,
            cwd=self.source, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull,
                     GIT_CONFIG_NOSYSTEM="1")).stdout

    def git(self, *arguments):
        return self.run_program("git", "-c", "user.name=x", "-c",
                                "user.email=x@example.com", *arguments)

    def commit(self):
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD").strip()

    def configure(self, *arguments):
        return self.run_program("cmake", "-G", "Ninja", "-S", ".", "-B",
                                self.build, *arguments)

    def test_it_is_that_of_git_and_follows_each_commit(self):
        self.git("init", "--quiet")
        first = self.commit()
        self.assertIn(f"revision={first}.", self.configure())
        self.assertNotIn("revision=", self.run_program("ninja", "-C",
                                                       self.build))
        # Ninja compares times of files.
        second = self.commit()
        log = self.source / ".git/logs/HEAD"
        later = (self.build / "build.ninja").stat().st_mtime + 1
        os.utime(log, (later, later))
        self.assertIn(f"revision={second}.",
                      self.run_program("ninja", "-C", self.build))

    def test_the_sources_may_belong_to_another_user(self):
        self.git("init", "--quiet")
        commit = self.commit()
        # Git takes every folder for another user's.
        with mock.patch.dict(os.environ, GIT_TEST_ASSUME_DIFFERENT_OWNER="1"):
            with self.assertRaises(subprocess.CalledProcessError):
                self.git("status")
            self.assertIn(f"revision={commit}.", self.configure())

    def test_a_hook_of_another_repository_does_not_count(self):
        self.git("init", "--quiet")
        commit = self.commit()
        other = self.source / "other"
        self.git("init", "--quiet", other)
        with mock.patch.dict(os.environ, GIT_DIR=str(other / ".git")):
            self.assertIn(f"revision={commit}.", self.configure())

    def test_a_repository_that_git_cannot_read_is_told(self):
        (self.source / ".git").mkdir()
        said = self.configure()
        self.assertIn("git does not know the commit", said)
        self.assertIn("revision=unknown.", said)

    def test_what_the_builder_says_comes_first(self):
        self.git("init", "--quiet")
        self.commit()
        self.assertIn("revision=abc.",
                      self.configure("-DENCODERD_REVISION=abc"))

    def test_sources_without_git_say_unknown(self):
        self.assertIn("revision=unknown.", self.configure())

    def test_sources_without_git_do_not_take_another_repositorys(self):
        inner = self.source / "inner"
        inner.mkdir()
        (self.source / "CMakeLists.txt").rename(inner / "CMakeLists.txt")
        self.git("init", "--quiet")
        self.commit()
        self.assertIn("revision=unknown.", self.run_program(
            "cmake", "-G", "Ninja", "-S", inner, "-B", self.build))

    def test_the_date_is_that_of_the_commit_and_empty_without_git(self):
        self.assertIn("date=.", self.configure())
        self.git("init", "--quiet")
        self.commit()
        date = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], check=True, text=True,
            cwd=self.source, stdout=subprocess.PIPE).stdout
        utc = time.strftime("%Y%m%d%H%M%S", time.gmtime(int(date)))
        self.assertIn(f"date={utc}.", self.configure())

    def test_a_new_commit_compiles_one_file(self):
        commands = json.loads(
            (BUILD / "compile_commands.json").read_text(encoding="utf-8"))
        self.assertEqual(
            [pathlib.Path(entry["file"]).relative_to(ROOT).as_posix()
             for entry in commands if "ENCODERD_REVISION" in entry["command"]],
            ["server/main.cc"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    BUILD = options.build
    unittest.main(argv=sys.argv[:1] + rest)
