#!/usr/bin/env python3
"""encoderd inside another CMake project, as client/docs/cpp.md tells users.

Configures such a project and asks the build tool what it would do; compiles
nothing.
"""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.24)
project(app LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 14)
enable_testing()
add_subdirectory({root} encoderd)
add_executable(app app.cc)
target_link_libraries(app PRIVATE encoderd_client)
"""


def run(*command):
    return subprocess.run(command, check=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


class SubprojectTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        source = pathlib.Path(folder.name)
        (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT),
                                               encoding="utf-8")
        (source / "app.cc").write_text(
            '#include "client/cpp/client.h"\nint main() {}\n',
            encoding="utf-8")
        cls.build = source / "build"
        cls.configured = run("cmake", "-G", "Ninja", "-S", source,
                             "-B", cls.build)

    def test_cuda_is_off_unless_asked_for(self):
        self.assertIn("CUDA engine: not built (ENCODERD_CUDA=OFF)",
                      self.configured)

    def test_adds_no_tests_to_the_project(self):
        self.assertIn("Total Tests: 0",
                      run("ctest", "--test-dir", self.build, "-N"))

    def test_the_project_gets_the_language_that_the_headers_need(self):
        steps = run("ninja", "-C", self.build, "-n", "-v").splitlines()
        app, = (step for step in steps if step.endswith("/app.cc"))
        self.assertNotIn("++14", app)  # 17 is the default of many compilers

    def test_installs_nothing(self):
        run("cmake", "--install", self.build, "--prefix", self.build / "out")
        self.assertEqual([], list(self.build.glob("out/*")))

    def test_builds_only_what_the_project_links(self):
        steps = run("ninja", "-C", self.build, "-n", "-v")
        self.assertIn("client/cpp/client.cc", steps)
        for not_linked in ("/engine/", "/server/", "/encoderctl/"):
            self.assertNotIn(f"{ROOT}{not_linked}", steps)

    def test_the_project_keeps_its_own_warnings(self):
        steps = run("ninja", "-C", self.build, "-n", "-v").splitlines()
        [app] = [step for step in steps if step.endswith("/app.cc")]
        [client] = [step for step in steps if step.endswith("/client.cc")]
        for flag in "-Wall", "-Wextra", "-Wno-unused-parameter":
            self.assertNotIn(flag, app)
            self.assertIn(flag, client)


if __name__ == "__main__":
    unittest.main()
