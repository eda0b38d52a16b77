"""What a start of the server costs: time until it serves, and memory.

    python3 tests/bench/start_cost.py --write=base-f32 --weights=F32
    python3 tests/bench/start_cost.py --programs build/bench/bin \\
        [--before OTHER/bin] --model base-f32 --dtype fp32 bf16 [--load]

--write makes a model folder of BERT-base's shape: its weights are a block of
values, repeated, since neither time nor memory depends on them.

A server on loopback is started and ended --rounds times for each build, model
and dtype, in turn; the first round, which fills the page cache, does not count.
Prints medians with the extremes: seconds from the start of the process to the
log's `event=serving`, the part of them that the log calls load_ms, resident
memory then and its peak until then, and with --load after two seconds of
`encoderctl bench`. `anonymous` is the process's own memory without what it
maps of programs and libraries.
"""

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import time

from loads import ROOT, bench, spread

sys.path.insert(0, str(ROOT / "tests/support"))
import random_checkpoint  # noqa: E402

BASE = {"name": "base", "seed": 1, "dtype": "F32", "prefix": "", "shards": 1,
        "layers": 12, "hidden": 768, "heads": 12, "inner": 3072,
        "vocab": 30522, "positions": 512, "segments": 2, "act": "gelu",
        "eps": 1e-12, "pooling": "mean", "normalize": True}
BLOCK = 4001  # a prime, so that rows differ
COLUMNS = ("serving_s", "load_s", "peak_mb", "resident_mb", "anonymous_mb",
           "loaded_mb", "loaded_anonymous_mb")


def write(folder, dtype):
    """A folder that only its weights' values tell from a real one."""
    spec = {**BASE, "dtype": dtype}
    block = random_checkpoint.values(spec, "qkv", "block", [1, BLOCK], 768)

    def values(_spec, role, name, shape, _fan_in):
        if role.endswith("_norm") and name.endswith(".weight"):
            return [1.0] * shape[0]
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        return list(itertools.islice(itertools.cycle(block), count))

    random_checkpoint.write(spec, folder, values)


def memory_mb(pid):
    """VmHWM, VmRSS, RssAnon of /proc, in MB of 10^6 bytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) * 1024 / 1e6
            for key in ("VmHWM", "VmRSS", "RssAnon")]


def start_once(programs, model, dtype, load):
    """One figure for each of COLUMNS; None where there is none."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [programs / "encoderd", f"--model=m={model}", f"--dtype={dtype}",
         "--device=cpu", "--listen=127.0.0.1:0", "--http_listen="],
        stderr=subprocess.PIPE, text=True)
    try:
        address = None
        for line in process.stderr:
            if "event=listening" in line:
                address = re.search(r"grpc=(\S+)", line)[1]
            if "event=serving" in line:
                break
        else:
            sys.exit("start_cost: the server ended")
        serving = time.monotonic() - begun
        load_ms = int(re.search(r"load_ms=(\d+)", line)[1])
        figures = [serving, load_ms / 1000, *memory_mb(process.pid)]
        if load:
            bench(programs, address, "--duration=2s", "--words=60",
                  "--batch_size=16", "--concurrency=8")
            figures += memory_mb(process.pid)[1:]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("--weights", default="F32",
                        choices=sorted(random_checkpoint.BITS))
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--model", nargs="+", default=[])
    parser.add_argument("--dtype", nargs="+", default=["fp32"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load", action="store_true")
    options = parser.parse_args()
    if options.write:
        write(options.write, options.weights)
        return
    if not options.programs or not options.model:
        parser.error("want --write, or --programs and --model")
    builds = [path for path in (options.before, options.programs) if path]
    kinds = list(itertools.product(options.model, options.dtype, builds))
    found = {kind: [] for kind in kinds}
    for round_number in range(options.rounds + 1):
        for model, dtype, programs in kinds:
            figures = start_once(programs, model, dtype, options.load)
            if round_number:
                found[model, dtype, programs].append(figures)
    for (model, dtype, programs), rounds in found.items():
        print(json.dumps({
            "model": pathlib.Path(model).name, "dtype": dtype,
            "build": "before" if programs == options.before else "now",
            **{column: spread(values, ".4g") for column, values
               in zip(COLUMNS, zip(*rounds, strict=True), strict=False)}}))


if __name__ == "__main__":
    main()
