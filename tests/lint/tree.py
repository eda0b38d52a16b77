"""The files of the project: what git tracks or would track."""

import os
import pathlib
import subprocess

SKIPPED = {".git", ".cache", "__pycache__"}
CXX = (".h", ".cc", ".cu")


class Tree:
    """The files below `root`; paths are strings relative to it, with '/'."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(self._git_files() or self._walk())

    def _git_files(self):
        if not (self.root / ".git").exists():
            return []
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            capture_output=True, check=True).stdout.decode()
        return [f for f in listed.split("\0")
                if f and (self.root / f).is_file()]

    def _walk(self):
        found = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders
                          if f not in SKIPPED and not f.startswith("build")]
            found += [os.path.relpath(os.path.join(folder, f), self.root)
                      for f in files]
        return found

    def below(self, *folders, ends=""):
        return [f for f in self.files
                if f.startswith(folders) and f.endswith(ends)]

    def cxx(self):
        return [f for f in self.files if f.endswith(CXX)]

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path):
        """Pairs of line number (from 1) and text."""
        return enumerate(self.read(path).splitlines(), start=1)
