"""The scripts of deploy/ without network, packages and builds: small scripts on
PATH replace the programs that they call (pip through python3, apt-get,
dpkg-query, sudo, id, cmake)."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ScriptCase(unittest.TestCase):
    """folder: for one test; small programs in its folder "path" come first."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "path").mkdir()

    def stand_in(self, name, text):
        file = self.folder / "path" / name
        file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)

    def run_script(self, script, *arguments, umask=-1):
        return subprocess.run(
            [ROOT / "deploy" / script, *map(str, arguments)], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=300, umask=umask, env=dict(os.environ, PIP_NO_INDEX="1",
                                 PATH=f"{self.folder}/path:{os.environ['PATH']}"))
