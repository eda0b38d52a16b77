#!/usr/bin/env python3
"""touched_files.py counts each file once, in its room."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("touched_files.py")


class TouchedFilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.git("init", "-q", "-b", "main")
        for names in (["README.md"], ["engine/a.h", "tests/a.cc"],
                      ["engine/a.h", "README.md"]):
            for name in names:
                file = pathlib.Path(self.root, name)
                file.parent.mkdir(exist_ok=True)
                with file.open("a") as out:
                    out.write("a\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", "a")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b",
                        *arguments], cwd=self.root, check=True,
                       env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})

    def counts(self, *arguments):
        run = subprocess.run([sys.executable, SCRIPT, *arguments],
                             cwd=self.root, capture_output=True, text=True)
        return run.returncode, [line.split("\t")
                                for line in run.stdout.splitlines()[1:]]

    def test_a_file_of_two_commits_counts_once(self):
        expected = ["op", "3", "1", "0", "0", "0", "0", "1", "1"]
        self.assertEqual((0, [expected]), self.counts("op=HEAD~2..HEAD"))
        self.assertEqual((0, [expected]), self.counts("op=HEAD~1,HEAD"))

    def test_one_commit_counts_alone(self):
        code, rows = self.counts("op=HEAD~1", "page=HEAD~2")
        self.assertEqual(0, code)
        self.assertEqual([["op", "2", "1"], ["page", "1", "0"]],
                         [row[:3] for row in rows])

    def test_an_unknown_commit_is_an_error(self):
        self.assertEqual((1, []), self.counts("op=no-such"))


if __name__ == "__main__":
    unittest.main()
