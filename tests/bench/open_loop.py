"""Latency at shares of the most that the server answers, in an open loop.

    python3 tests/bench/open_loop.py --programs build/bench/bin \\
        --model "$(deploy/fetch-model.sh)" [--png latency.png]

A server on loopback. A closed loop finds the most calls per second of one text
of --words words; then calls are due at random times (Poisson) at 25 to 95 % of
it, and latencies count from when a call was due, so that a slow server is not
asked less. Quantiles come from --count calls for each share. Client and server
share the cores. --png draws them (needs matplotlib).
"""

import argparse
import pathlib

import loads
from loads import Server

SHARES = (0.25, 0.50, 0.70, 0.85, 0.95)
QUANTILES = ("p50", "p90", "p99", "p99.9")


def bench(options, address, *flags):
    return loads.bench(options.programs, address, "--batch_size=1",
                       f"--words={options.words}", *flags, warm_up="2s",
                       may_fail=True)


def draw(path, rows):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for quantile in QUANTILES:
        axes.plot([100 * share for share, _ in rows],
                  [found["latency_ms"][quantile] for _, found in rows],
                  marker="o", label=quantile)
    axes.set(xlabel="load, % of the most in a closed loop",
             ylabel="latency from when a call was due, ms", yscale="log",
             title="encoderd: one text per call, Poisson arrivals")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--words", type=int, default=14)
    parser.add_argument("--count", type=int, default=10000,
                        help="calls of each share")
    parser.add_argument("--png", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    with Server(options.programs / "encoderd", f"m={options.model}",
                f"--dtype={options.dtype}") as server:
        most = bench(options, server.address, "--concurrency=64",
                     "--duration=15s")["texts_per_s"]
        print(f"most: {most:.0f} calls per second, {options.words} words each")
        print(f"| load | calls/s | {' | '.join(QUANTILES)} (ms) | max | "
              "answered | failed or not begun |")
        print("|---|" + "---|" * (len(QUANTILES) + 4))
        for share in SHARES:
            found = bench(options, server.address,
                          f"--rate={round(share * most)}",
                          f"--count={options.count}", "--duration=10m")
            rows.append((share, found))
            latency = found["latency_ms"]
            cells = [f"{share:.0%}", f"{round(share * most)}",
                     *(f"{latency[quantile]:.1f}" for quantile in QUANTILES),
                     f"{latency['max']:.0f}", str(found["calls_answered"]),
                     str(found["calls_failed"] + found["calls_not_begun"])]
            print(f"| {' | '.join(cells)} |", flush=True)
    if options.png:
        draw(options.png, rows)


if __name__ == "__main__":
    main()
