"""C++ is formatted by .clang-format, with the one version that we pin.

Other versions break lines elsewhere; tests/requirements.txt installs this one.
"""

import os
import pathlib
import shutil
import subprocess

VERSION = "14."


def find():
    """The pinned clang-format, or None."""
    python = os.environ.get("ENCODERD_TEST_PYTHON", "")
    beside = str(pathlib.Path(python).parent / "clang-format") if python else ""
    for name in (beside, "clang-format-14", "clang-format"):
        program = shutil.which(name) if name else None
        if program:
            said = subprocess.run([program, "--version"], capture_output=True,
                                  text=True, check=False).stdout
            if f"version {VERSION}" in said:
                return program
    return None


def check(tree):
    program = find()
    if not program:
        return [f"no clang-format {VERSION}x found: tests/run.sh installs it"]
    if not tree.cxx():
        return []
    run = subprocess.run(
        [program, "--dry-run", "--Werror", *tree.cxx()],
        cwd=tree.root, capture_output=True, text=True, check=False)
    return [line for line in run.stderr.splitlines() if ": error:" in line]
