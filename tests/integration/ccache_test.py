#!/usr/bin/env python3
"""Whether a build uses ccache, in a small project that includes
deploy/cmake/EncoderdCcache.cmake; small scripts replace ccache."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.24)
project(small LANGUAGES CXX)
include({root}/deploy/cmake/EncoderdCcache.cmake)
message(STATUS "launcher=${{CMAKE_CXX_COMPILER_LAUNCHER}}.")
"""
# What ccache does where its folder cannot be created.
FAILS = "echo 'ccache: error: Failed to create directory' >&2; exit 1"
WORKS = '[ "$1" = --get-config ] && echo "$CCACHE_SLOPPINESS" && exit; "$@"'


class CcacheTest(unittest.TestCase):
    def configure(self, script, *options, **variables):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name)
        (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        self.ccache = source / "bin/ccache"
        self.ccache.parent.mkdir()
        self.ccache.write_text(f"#!/bin/sh\n{script}\n")
        self.ccache.chmod(0o755)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CCACHE_", "CMAKE_"))}
        return subprocess.run(
            ["cmake", "-G", "Ninja", "-S", source, "-B", source / "build",
             *options], check=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, **variables,
                 "PATH": f"{self.ccache.parent}:{environment['PATH']}"}).stdout

    def test_it_is_used_where_it_works(self):
        said = self.configure(WORKS)
        self.assertRegex(said, "launcher=.*;-E;env;CCACHE_SLOPPINESS="
                         f"pch_defines,time_macros;{self.ccache}\\.")

    def test_it_is_not_used_where_it_fails(self):
        said = self.configure(FAILS)
        self.assertIn("ccache: not used, since it fails: ccache: error: Failed "
                      "to create directory", said)
        self.assertIn("launcher=.", said)

    def test_it_is_not_used_where_the_builder_says_so(self):
        self.assertIn("launcher=.",
                      self.configure(WORKS, "-DENCODERD_CCACHE=OFF"))

    def test_a_sloppiness_that_is_set_stays(self):
        said = self.configure(WORKS, CCACHE_SLOPPINESS="locale")
        self.assertIn(f"launcher={self.ccache}.", said)


if __name__ == "__main__":
    unittest.main()
