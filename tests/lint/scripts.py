"""Scripts start as they are, and shellcheck finds nothing in them."""

import os
import shutil
import subprocess


def _shebang(tree, path):
    with open(tree.root / path, "rb") as file:
        return file.read(64).split(b"\n")[0].decode("utf-8", "replace")


def executable(tree):
    """A first line with #! and the executable bit come together."""
    found = []
    for path in tree.files:
        shebang = _shebang(tree, path).startswith("#!")
        runs = os.access(tree.root / path, os.X_OK)
        if shebang and not runs:
            found.append(f"{path}: starts with #! but is not executable")
        if runs and not shebang:
            found.append(f"{path}: is executable but does not start with #!")
    return found


def shellcheck(tree):
    scripts = [path for path in tree.files
               if path.endswith(".sh") or "sh" in _shebang(tree, path)[-5:]
               and _shebang(tree, path).startswith("#!")]
    if not scripts:
        return []
    if not shutil.which("shellcheck"):
        return ["shellcheck is not installed: deploy/install-deps.sh --tests"]
    run = subprocess.run(
        ["shellcheck", "--external-sources", "--format=gcc", *scripts],
        cwd=tree.root, capture_output=True, text=True, check=False)
    return (run.stdout + run.stderr).splitlines() if run.returncode else []
