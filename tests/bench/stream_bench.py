"""Bulk over EmbedStream: its rate compared with unary calls, and memory.

    python3 tests/bench/stream_bench.py --bin build/bench/bin \\
        [--model models/all-MiniLM-L6-v2] [--texts 1000000] [--stall 60]

Starts the server on loopback: with a fake engine that computes nothing, or with
--model. First come --rounds interleaved rounds of each way to send short
texts, unary and streamed; then --texts texts over --streams streams, with
--stall with one more stream that stops reading for this many seconds. Every
answer is matched to its request by grpc_bench. Prints rates, the ratio of the
best ways, and VmRSS at the start, the middle and the end. Exits with 1 when an
answer is missing or wrong, or when the largest VmRSS of the second half is
more than 2 % (and 4 MB) above that of the first.
"""

import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

from compare_grpc import start_server
from loads import spread
from soak import resident_mb

# name: what grpc_bench is told. Calls in flight are the best of 1 to 256.
WAYS = {
    "unary, 1 text per call": ["--texts=1", "--in_flight=64"],
    "unary, 64 texts per call": ["--texts=64", "--in_flight=8"],
    "unary, 256 texts per call": ["--texts=256", "--in_flight=4"],
    "stream, 1 text a request": ["--texts=1", "--stream=1"],
    "stream, 64 texts a request": ["--texts=64", "--stream=1"],
    "stream, 256 texts a request": ["--texts=256", "--stream=1"],
}
FAKE = "fake=hidden_size:384,max_len:512,hashing:0"


def bench(options, target, arguments):
    """Rows of one run; ends the program when one of its answers was wrong."""
    done = subprocess.run(
        [options.bin / "grpc_bench", f"--target={target}",
         f"--lengths={options.length}", *arguments],
        stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"stream_bench: {' '.join(arguments)}: {done.stdout}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(options, target):
    rates = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way, arguments in WAYS.items():
            seconds = f"--seconds={options.seconds}"
            row = bench(options, target, [*arguments, seconds])[0]
            rates[way].append(row["texts_per_s"])
    print(f"texts/s of {options.length} tokens, {options.rounds} rounds")
    for way, values in rates.items():
        print(f"{way:28} {spread(values, '.0f')}")

    def best(kind, turn):
        return max(rates[way][turn] for way in WAYS if way.startswith(kind))

    ratios = [best("stream", turn) / best("unary", turn)
              for turn in range(options.rounds)]
    print(f"best stream / best unary: {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f}-{max(ratios):.3f})", flush=True)


def bulk(options, target, pid):
    command = [options.bin / "grpc_bench", f"--target={target}",
               f"--lengths={options.length}", f"--stream={options.streams}",
               "--texts=64", f"--total={options.texts}"]
    if options.stall:
        command.append(f"--stall={options.stall}")
    seen = []
    load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while load.poll() is None:
        seen.append(resident_mb(pid))
        time.sleep(0.25)
    print(load.communicate()[0], end="")
    middle = len(seen) // 2
    before, after = max(seen[:middle + 1]), max(seen[middle:])
    print(f"VmRSS, MB: start {seen[0]:.1f}, middle {seen[middle]:.1f}, "
          f"end {seen[-1]:.1f}; at most {before:.1f} in the first half, "
          f"{after:.1f} in the second")
    return load.returncode or after > max(1.02 * before, before + 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path,
                        help="folder of the programs")
    parser.add_argument("--model", help="model folder; none: the fake engine")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--length", default="16", help="tokens of a text")
    parser.add_argument("--texts", type=int, default=1000000)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--stall", type=int, default=0, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3,
                        help="of each run of a round")
    options = parser.parse_args()
    program = "encoderd" if options.model else "encoderd_fake_server"
    options.model = options.model or FAKE
    server, target = start_server(options, program)
    try:
        if options.rounds:
            compare(options, target)
        return bulk(options, target, server.pid) if options.texts else 0
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
