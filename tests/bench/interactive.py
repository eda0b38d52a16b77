"""How long a short text waits with bulk, and what it costs the bulk.

    python3 tests/bench/interactive.py --programs build/bench/bin \\
        --model "$(deploy/fetch-model.sh)" [--before OTHER/bin]

A server on loopback (two with --before, an older build's programs, asked in
turn in each round). One caller asks for texts of 10 tokens, --rate a second at
random times (0: one after the other), with none, 1, 4 and 16 callers that
each send 8 texts of 512 tokens per call, one call after the other; and once
these alone. Each caller is a process and has its own connection. What the bulk gets
is read from /metrics. Prints medians of the rounds with the extremes.
"""

import argparse
import contextlib
import functools
import pathlib
import re
import signal
import statistics
import time

from loads import Server, bench, finish, get, ratios, spread, start

SMALL = ["--words=8", "--batch_size=1"]  # and two special tokens
BULK = ["--words=510", "--batch_size=8", "--concurrency=1"]
CALLERS = (0, 1, 4, 16)


def tokens_computed(server):
    page = get(f"http://127.0.0.1:{server.http}/metrics")
    return sum(float(value) for value in re.findall(
        r"^encoderd_tokens_total\{[^}]*\} (\S+)$", page, re.MULTILINE))


def measure(programs, server, callers, rate, seconds):
    """(p50, p99 of the short text in ms or None, tokens/s of the bulk)."""
    bulk = [start(programs, server.address, "--duration=10m", *BULK)
            for _ in range(callers)]
    time.sleep(2)
    begun, before = time.monotonic(), tokens_computed(server)
    found = None
    if rate is not None:
        flags = [*SMALL, f"--rate={rate}" if rate else "--concurrency=1"]
        found = bench(programs, server.address, f"--duration={seconds}s",
                      *flags)
    else:
        time.sleep(seconds)
    computed = tokens_computed(server) - before - (found["tokens"] if found
                                                   else 0)
    bulk_rate = computed / (time.monotonic() - begun)
    for load in bulk:
        load.send_signal(signal.SIGINT)
    for load in bulk:
        finish(load)
    latency = found["latency_ms"] if found else {}
    return latency.get("p50"), latency.get("p99"), bulk_rate


def compare(options, servers, callers):
    beside = {build: [] for build in servers}
    alone = {build: [] for build in servers}
    for _ in range(options.repeats):
        for build, server in servers.items():
            ask = functools.partial(measure, options.programs, server,
                                    callers, seconds=options.seconds)
            beside[build].append(ask(rate=options.rate))
            if callers:
                alone[build].append(ask(rate=None)[2])
    for build in servers:
        p50, p99, rate = zip(*beside[build])
        row = [str(callers), build, spread(p50, ".1f"), spread(p99, ".1f")]
        if callers:
            share = statistics.median(ratios(rate, alone[build]))
            row += [spread(rate, ".0f"), spread(alone[build], ".0f"),
                    f"{share:.3f}"]
        else:
            row += ["", "", ""]
        print(f"| {' | '.join(row)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path,
                        help="folder of an older build's programs")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=8)
    options = parser.parse_args()
    builds = {"now": options.programs}
    if options.before:
        builds["before"] = options.before
    flags = ["--max_len=512", f"--dtype={options.dtype}"]
    print("| bulk callers | build | p50, ms | p99, ms | bulk, tokens/s | "
          "bulk alone, tokens/s | of it |")
    print("|---|---|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        servers = {build: stack.enter_context(
                       Server(programs / "encoderd", f"m={options.model}",
                              *flags))
                   for build, programs in builds.items()}
        for callers in CALLERS:
            compare(options, servers, callers)


if __name__ == "__main__":
    main()
