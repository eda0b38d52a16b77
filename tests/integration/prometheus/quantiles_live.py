#!/usr/bin/env python3
"""p50, p90 and p99 that Prometheus computes, compared with those that callers
measured, in four loads, overload among them.

    quantiles_live.py --programs=build/dev/bin --model="$(deploy/fetch-model.sh)"

Both see the same calls, so no figure depends on how fast the machine is. Ends
with 1 where one is more than 10 % off."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from processes import Prometheus, Server

MOST_OFF = 0.1  # what an operator may be told wrongly
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
# Flags of the server, flags of encoderctl bench.
LOADS = {
    "one caller": ([], ["--concurrency=1", "--batch_size=8"]),
    "four callers": ([], ["--concurrency=4", "--batch_size=2"]),
    "saturated": ([], ["--concurrency=32", "--batch_size=1"]),
    "overload": (["--max_queue_tokens=384"],
                 ["--concurrency=64", "--batch_size=1"]),
}


def texts():
    """Mostly short ones, some long: what searches and passages are like."""
    chance = random.Random(7)
    for _ in range(2000):
        words = min(150, max(2, int(chance.lognormvariate(3, 0.8))))
        yield " ".join(chance.choice(("a", "man", "is", "eating", "food"))
                       for _ in range(words))


def bench(options, server, flags):
    """What encoderctl measured, and when it ended."""
    done = subprocess.run(
        [options.programs / "encoderctl", "bench",
         f"--target=127.0.0.1:{server.grpc}", f"--input={options.texts}",
         "--warm_up=5s", f"--duration={options.seconds}s", "--format=jsonl",
         "--progress=never", *flags],
        stdout=subprocess.PIPE, text=True, check=False,
        timeout=options.seconds + 120)
    if done.returncode > 1 or not done.stdout:  # 1: some calls failed
        sys.exit(f"encoderctl bench: exit {done.returncode}")
    return json.loads(done.stdout), time.time()


def measure(options, name):
    """Rows (load, quantile, callers' ms, Prometheus' ms) and faults."""
    of_server, of_bench = LOADS[name]
    with tempfile.TemporaryDirectory() as folder, \
            Server(options.programs / "encoderd", options.model,
                   *of_server) as server, \
            Prometheus(folder, [server.http], "500ms") as prometheus:
        seen, end = bench(options, server, of_bench)
        time.sleep(1)  # the last scrape of the window
        window = f"{round(1000 * seen['measured_s'])}ms"
        rows = []
        for quantile, share in QUANTILES.items():
            seconds = prometheus.value(
                f"histogram_quantile({share}, sum by (le) (increase("
                "encoderd_request_duration_seconds_bucket"
                f'{{method="Embed", outcome="ok"}}[{window}])))', at=end)
            rows.append((name, quantile, seen["latency_ms"][quantile],
                         1000 * seconds))
        refused = seen["calls_failed"]
        print(f"{name}: {seen['calls_answered']} calls answered, {refused} "
              f"failed {seen['failures']}, {seen['tokens_per_s']:.0f} tokens/s",
              flush=True)
    faults = []
    if seen["sample_too_small"]:
        faults.append(f"{name}: {seen['calls_answered']} calls are too few; "
                      "--seconds gives more")
    if (refused > 0) != (name == "overload"):
        faults.append(f"{name}: {refused} calls failed")
    return rows, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd and encoderctl")
    parser.add_argument("--model", required=True, help="a model's folder")
    parser.add_argument("loads", nargs="*", help=", ".join(LOADS))
    parser.add_argument("--seconds", type=int, default=40, help="of each load")
    options = parser.parse_args()
    worst, faults = 0, []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        options.texts = file.name
        file.write("\n".join(texts()) + "\n")
        file.flush()
        for name in options.loads or LOADS:
            rows, wrong = measure(options, name)
            faults += wrong
            for load, quantile, callers, told in rows:
                off = told / callers - 1
                worst = max(worst, abs(off))
                print(f"  {load:12} {quantile}  callers {callers:8.2f} ms  "
                      f"Prometheus {told:8.2f} ms  {100 * off:+5.1f} %",
                      flush=True)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(options.loads or LOADS)} loads, at most {100 * worst:.1f} % off, "
          f"{len(faults)} faults")
    return 1 if faults or worst > MOST_OFF else 0


if __name__ == "__main__":
    sys.exit(main())
