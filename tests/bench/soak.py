"""Resident memory of a server under load for a while.

    python3 tests/bench/soak.py --bin build/bench/bin \\
        --model models/all-MiniLM-L6-v2 --minutes 10

Starts the server on loopback, keeps calls of 64 texts in flight with
grpc_bench, one length after the other, and reads VmRSS every two seconds.
Prints it by minute and exits with 3 when it passes --limit_mb, or when the
second half of the run is more than 2 % above the end of the first.

That it finds a leak: `--program encoderd_fake_server --model fake=hashing:1
--lengths 16`, whose device keeps a log of all that it computes.
"""

import argparse
import itertools
import pathlib
import signal
import statistics
import subprocess
import sys
import time

from compare_grpc import IN_FLIGHT, start_server

GREW = 3  # exit code


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the server has gone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path,
                        help="folder of the programs")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--program", default="encoderd")
    parser.add_argument("--lengths", nargs="+", choices=IN_FLIGHT,
                        default=list(IN_FLIGHT))
    parser.add_argument("--limit_mb", type=float, default=300)
    options = parser.parse_args()
    server, target = start_server(options, options.program)
    seen = []  # (seconds, MB)
    calls = 0
    start = time.monotonic()
    try:
        for lengths in itertools.cycle(options.lengths):
            if time.monotonic() - start > options.minutes * 60:
                break
            load = subprocess.Popen(
                [options.bin / "grpc_bench", f"--target={target}",
                 f"--lengths={lengths}",
                 f"--seconds={min(10, max(1, int(options.minutes * 10)))}",
                 f"--in_flight={IN_FLIGHT[lengths]}"],
                stdout=subprocess.DEVNULL)
            while load.poll() is None:
                seen.append((time.monotonic() - start, resident_mb(server.pid)))
                time.sleep(2)
            if load.returncode:
                sys.exit("soak: a call failed")
            calls += 1
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    for minute in range(int(seen[-1][0] // 60) + 1):
        values = [mb for at, mb in seen if minute <= at / 60 < minute + 1]
        print(f"minute {minute:3}: {statistics.median(values):7.1f} MB "
              f"(at most {max(values):.1f})")
    middle = seen[-1][0] / 2
    before = max(mb for at, mb in seen if at <= middle)
    after = max(mb for at, mb in seen if at > middle)
    print(f"{calls} runs of load; at most {max(before, after):.1f} MB; "
          f"second half {100 * (after / before - 1):+.2f} %")
    grew = after > options.limit_mb or after > 1.02 * before
    return GREW if grew else 0


if __name__ == "__main__":
    sys.exit(main())
