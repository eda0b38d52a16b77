"""clang-tidy with the allow-list of .clang-tidy, over a compiled build.

Takes the commands from the build's compile_commands.json. Most of the time
goes to headers, so sources with the same flags are looked at together, as one
unit that includes them, or as two where some of them clash.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

FOLDERS = ("engine/", "server/", "client/")
TOGETHER = 12
# Clang has another name for what it refuses to compile.
NOT_COMPILED = "[clang-diagnostic-error]"


def check(tree, build):
    program = shutil.which("clang-tidy")
    if not program:
        return ["clang-tidy is not installed: deploy/install-deps.sh --tests"]
    database = pathlib.Path(build) / "compile_commands.json"
    if not database.exists():
        return [f"{database} is missing: configure the build first"]
    root = str(tree.root.resolve()) + "/"
    groups = _groups(json.loads(database.read_text()), root)
    if not groups:
        return [f"{database} names no source of {', '.join(FOLDERS)}"]

    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def tidy(number, sources, flags):
            if len(sources) == 1:
                return run(sources[0], flags, sources)
            unit = pathlib.Path(folder) / f"unit{number}.cc"
            unit.write_text("".join(f'#include "{source}"\n'
                                    for source in sources))
            lines = run(unit, flags, sources)
            if not any(NOT_COMPILED in line for line in lines):
                return lines
            half = len(sources) // 2
            return [line for part in (sources[:half], sources[half:])
                    for line in tidy(number, part, flags)]

        def run(file, flags, sources):
            done = subprocess.run(
                [program, "--quiet", f"--config-file={root}.clang-tidy",
                 str(file), "--", *flags],
                cwd=build, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return []
            lines = [line.replace(root, "")
                     for line in done.stdout.splitlines()
                     if ": error:" in line or ": warning:" in line]
            return lines or [f"{' '.join(sources)}: clang-tidy failed: "
                             f"{done.stderr[-500:]}"]

        jobs = [pool.submit(tidy, number, sources, flags)
                for number, (sources, flags) in enumerate(groups)]
        return sorted({line for job in jobs for line in job.result()})


def _groups(entries, root):
    """Pairs of some sources and the flags that all of them compile with."""
    alike = collections.defaultdict(list)
    for entry in entries:
        source = entry["file"]
        if (source.startswith(root) and source.endswith(".cc")
                and source[len(root):].startswith(FOLDERS)):
            alike[_flags(entry)].append(source)
    groups = []
    for flags, sources in alike.items():
        sources.sort()
        groups += [(sources[first:first + TOGETHER], flags)
                   for first in range(0, len(sources), TOGETHER)]
    return sorted(groups, key=lambda group: -len(group[0]))


def _flags(entry):
    """What of a command says how its source compiles: no files, no compiler."""
    words = shlex.split(entry["command"])
    first = next(number for number, word in enumerate(words)
                 if word.startswith("-"))
    flags = []
    words = iter(words[first:])
    for word in words:
        if word == "-o":
            next(words)
        elif word not in ("-c", entry["file"]):
            flags.append(word)
    return tuple(flags)
