"""clang-tidy with the allow-list of .clang-tidy, over a compiled build.

Takes the commands from the build's compile_commands.json. Sources that include
gRPC take ten seconds each and hold little logic of that kind: left out here,
their headers are seen through the others.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess

FOLDERS = ("engine/", "server/pipeline/", "server/api/", "client/")


def check(tree, build):
    program = shutil.which("clang-tidy")
    if not program:
        return ["clang-tidy is not installed: deploy/install-deps.sh --tests"]
    database = pathlib.Path(build) / "compile_commands.json"
    if not database.exists():
        return [f"{database} is missing: configure the build first"]
    root = str(tree.root.resolve()) + "/"
    sources = sorted({entry["file"]
                      for entry in json.loads(database.read_text())
                      if entry["file"].startswith(root)
                      and entry["file"].endswith(".cc")
                      and entry["file"][len(root):].startswith(FOLDERS)})
    if not sources:
        return [f"{database} names no source of {', '.join(FOLDERS)}"]

    def tidy(source):
        run = subprocess.run(
            [program, "--quiet", "-p", str(build), source], cwd=tree.root,
            capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return []
        lines = [line.replace(root, "") for line in run.stdout.splitlines()
                 if ": error:" in line or ": warning:" in line]
        return lines or [f"{source}: clang-tidy failed: {run.stderr[-500:]}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return sorted({line for lines in pool.map(tidy, sources)
                       for line in lines})
