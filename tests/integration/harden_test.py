#!/usr/bin/env python3
"""What ENCODERD_HARDEN does to programs, in a small project that includes
deploy/cmake/EncoderdHarden.cmake; then which presets have it."""

import json
import pathlib
import platform
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.24)
project(small LANGUAGES CXX)
set(CMAKE_BUILD_TYPE Release)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include({root}/deploy/cmake/EncoderdHarden.cmake)
add_executable(small main.cc)
"""
# strcpy: of a size that the compiler knows. strncpy: of one that it does not,
# which only level 3 checks.
PROGRAM = """#include <cstdlib>
#include <cstring>
int main(int count, char** words) {
  char name[8];
  strcpy(name, words[0]);
  char* copy = static_cast<char*>(malloc(count));
  strncpy(copy, words[0], count + 1);
  const int result = name[count] ? copy[0] : 1;
  free(copy);
  return result;
}
"""


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, text=True,
                          timeout=100, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


class HardenTest(unittest.TestCase):
    def build(self, *options):
        """What readelf says of the program's symbols and flags."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name)
        (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        (source / "main.cc").write_text(PROGRAM)
        run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build",
            *options)
        self.said = run("ninja", "-v", "-C", source / "build")
        self.notes = run("readelf", "--wide", "--notes",
                         source / "build/CMakeFiles/small.dir/main.cc.o")
        return run("readelf", "--wide", "--dyn-syms", "--dynamic",
                   "--program-headers", source / "build/small")

    def test_it_guards_the_stack_and_checks_calls(self):
        said = self.build("-DENCODERD_HARDEN=ON")
        for sign in ("__stack_chk_fail", "__strcpy_chk", "__strncpy_chk",
                     "BIND_NOW", "GNU_RELRO", "Flags: NOW PIE"):
            self.assertIn(sign, said)
        self.assertIn("-fstack-clash-protection", self.said)
        self.assertNotIn("warning", self.said)

    @unittest.skipUnless(platform.machine() == "x86_64", "it is x86's")
    def test_targets_of_indirect_jumps_are_marked(self):
        self.build("-DENCODERD_HARDEN=ON")
        self.assertIn("IBT, SHSTK", self.notes)

    def test_a_level_that_is_given_stays(self):
        said = self.build("-DENCODERD_HARDEN=ON",
                          "-DCMAKE_CXX_FLAGS=-D_FORTIFY_SOURCE=1")
        self.assertIn("__strcpy_chk", said)
        self.assertNotIn("FORTIFY_SOURCE=3", self.said)

    def test_it_is_off_unless_asked_for(self):
        self.build()
        self.assertNotIn("stack-protector", self.said)

    def test_what_is_shipped_has_it_and_what_measures_has_not(self):
        presets = {preset["name"]: preset for preset in json.loads(
            (ROOT / "CMakePresets.json").read_text())["configurePresets"]}

        def hardened(name):
            preset = presets[name]
            value = preset.get("cacheVariables", {}).get("ENCODERD_HARDEN")
            if value is None and "inherits" in preset:
                return hardened(preset["inherits"])
            return value == "ON"

        self.assertEqual({"release", "package"}, set(filter(hardened, presets)))


if __name__ == "__main__":
    unittest.main()
