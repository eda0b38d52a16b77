"""What the scripts share that load a server by `encoderctl bench`: the load as a
process, and figures as cells of a table."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server, get  # noqa: E402,F401  for the scripts


def start(programs, address, *flags, warm_up="1s", variables=None):
    """The load, running. `variables` are added to its environment."""
    return subprocess.Popen(
        [programs / "encoderctl", "bench", f"--target={address}",
         "--format=jsonl", "--progress=never", f"--warm_up={warm_up}", *flags],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, **(variables or {})})


def finish(load, may_fail=False):
    """Its figures. Failed calls end the script unless they may fail."""
    out = load.communicate(timeout=900)[0]
    name = pathlib.Path(sys.argv[0]).stem
    if not out:
        sys.exit(f"{name}: encoderctl gave no figures")
    found = json.loads(out)
    if found["calls_failed"] and not may_fail:
        sys.exit(f"{name}: calls failed: {found['failures']}")
    return found


def bench(programs, address, *flags, may_fail=False, **how):
    return finish(start(programs, address, *flags, **how), may_fail)


def spread(values, form=".5g"):
    """The median, with the extremes."""
    return (f"{statistics.median(values):{form}} "
            f"({min(values):{form}}-{max(values):{form}})")


def ratios(values, bases):
    """Of each round, one figure as a share of another."""
    return [value / base for value, base in zip(values, bases, strict=True)]
