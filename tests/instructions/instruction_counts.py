#!/usr/bin/env python3
"""Compares the instruction counts of hot paths with baseline.json.

    tests/instructions/instruction_counts.py --program build/dev/bin/hot_paths
    ... wordpiece request    some paths
    ... --update             writes the counts of these paths into the baseline

callgrind counts what hot_paths executes within CountedRun. What shared
libraries execute counts as part of the function that called them, so a copy
too many is named where it is made and not as memcpy.

Exit codes: 0, every count is within 3 % of the baseline; 1, one is not; 77,
the baseline is of another compiler, C library or CPU (ctest: skipped).
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import callgrind
from callgrind import Counts

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
SKIPPED = 77
# Either way. Counts repeat to 0.01 %; addresses, which differ between folders and
# builds, move them by up to 0.2 %.
TOLERANCE = 0.03
STORED = 0.002  # functions with at least this share of a path
NAMED = 5  # functions at most, in a failure
# No other variables: their size moves the stack. Bound at start, because looking
# up a symbol would count.
ENVIRONMENT = {"LC_ALL": "C", "LD_BIND_NOW": "1"}
PASSED_ON = ("TMPDIR", "VALGRIND_LIB", "LD_LIBRARY_PATH")


def growth(before, after):
    """Lines that name the functions whose counts changed most."""
    change = {name: after.functions.get(name, 0) -
              before.functions.get(name, 0)
              for name in {*before.functions, *after.functions}}
    direction = 1 if after.instructions > before.instructions else -1
    least = abs(after.instructions - before.instructions) / 20
    most = sorted((name for name in change
                   if direction * change[name] >= least),
                  key=lambda name: -direction * change[name])
    return [f"    {name}: {before.functions.get(name, 0):,} -> "
            f"{after.functions.get(name, 0):,}" for name in most[:NAMED]]


def compare(name, before, after):
    """A line for the path, and whether it is as before."""
    share = after.instructions / before.instructions - 1
    line = (f"{name}: {after.instructions:,} instructions, baseline "
            f"{before.instructions:,} ({100 * share:+.2f} %)")
    if abs(share) <= TOLERANCE:
        return [line], True
    advice = ("mend it, or say in the commit what it buys and"
              if share > 0 else "the path became cheaper:")
    return [line, f"  more than {100 * TOLERANCE:.0f} %: {advice} run "
            "instruction_counts.py with --update; what changed most:",
            *growth(before, after)], False


def other_environment(baseline, here):
    """What differs, in words."""
    return [f"{key} {here.get(key, 'unknown')}, not {value}"
            for key, value in baseline.items() if here.get(key) != value]


def check(baseline, counts, known):
    """The report on all paths, and whether each is as in the baseline."""
    report = [f"{name}: in the baseline but not in hot_paths; remove it with "
              "--update" for name in baseline if name not in known]
    good = not report
    for name, after in counts.items():
        if name not in baseline:
            report.append(f"{name}: not in the baseline; record it with "
                          "--update")
            good = False
            continue
        lines, as_before = compare(name, Counts(**baseline[name]), after)
        report += lines
        good = good and as_before
    return report, good


def run(command):
    environment = ENVIRONMENT | {name: os.environ[name] for name in PASSED_ON
                                 if name in os.environ}
    done = subprocess.run(command, env=environment, text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"instruction_counts.py: {' '.join(command)}: exit code "
                 f"{done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def count(valgrind, program, path):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "profile")
        run([valgrind, "--tool=callgrind", "--toggle-collect=CountedRun",
             "--dump-line=no", "--separate-recs=1",
             f"--callgrind-out-file={out}", program, path])
        counts = callgrind.read(out.read_text(), program)
    if counts.instructions == 0:
        sys.exit(f"instruction_counts.py: nothing was counted of {path}")
    return counts


def stored(counts):
    """What the baseline keeps."""
    functions = {name: of for name, of in sorted(
        counts.functions.items(), key=lambda entry: -entry[1])
        if of >= STORED * counts.instructions}
    return {"instructions": counts.instructions, "functions": functions}


def update(file, environment, counts, paths):
    old = json.loads(file.read_text()) if file.exists() else {}
    kept = old.get("paths", {}) if old.get("environment") == environment else {}
    new = kept | {name: stored(of) for name, of in counts.items()}
    file.write_text(json.dumps(
        {"environment": environment,
         "paths": {name: new[name] for name in paths if name in new}},
        indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH",
                        help="default: all of them")
    parser.add_argument("--program", required=True, help="hot_paths")
    parser.add_argument("--baseline", type=pathlib.Path, default=BASELINE)
    parser.add_argument("--update", action="store_true",
                        help="write the baseline")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    valgrind = shutil.which("valgrind")
    if not valgrind:
        sys.exit("instruction_counts.py: valgrind is not installed: "
                 "deploy/install-deps.sh --tests")
    known = run([program, "--list"]).split()
    unknown = sorted(set(options.paths) - set(known))
    if unknown:
        parser.error(f"no path {unknown[0]}; available: {', '.join(known)}")
    environment = json.loads(run([program, "--environment"]))
    environment["valgrind"] = run([valgrind, "--version"]).strip()
    if not options.update:
        baseline = json.loads(options.baseline.read_text())
        other = other_environment(baseline["environment"], environment)
        if other:
            print("skipped: the baseline was recorded in another environment; "
                  f"here: {'; '.join(other)}")
            sys.exit(SKIPPED)
    counts = {path: count(valgrind, program, path)
              for path in options.paths or known}
    if options.update:
        update(options.baseline, environment, counts, known)
        return
    report, good = check(baseline["paths"], counts, known)
    print("\n".join(report))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
