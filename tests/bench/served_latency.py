"""Where the time of one text goes that is sent alone, over loopback.

    python3 tests/bench/served_latency.py --programs build/bench/bin \\
        --model "$(deploy/fetch-model.sh)"

`encoderctl bench` sends one call of one text at a time; client and server share
the cores. Each round takes the mean time of its calls, as the client sees them,
and the mean of the same calls' stages, from /metrics. Prints a table in
milliseconds: medians of the rounds with the extremes. "Way" is what no stage
has: client, gRPC and the network.
"""

import argparse
import pathlib
import re

from loads import Server, bench, get, spread

STAGES = ("compute", "tokenize", "queue", "batch", "reply")


def seconds_of(server):
    """{stage: its seconds so far}, and how many calls there were."""
    page = get(f"http://127.0.0.1:{server.http}/metrics")
    found = {}
    for stage in STAGES:
        for what in ("sum", "count"):
            value = re.search(
                rf"^encoderd_stage_duration_seconds_{what}\{{[^}}]*"
                rf'stage="{stage}"[^}}]*\}} (\S+)$', page, re.MULTILINE)
            found[stage, what] = float(value.group(1)) if value else 0.0
    return found


def one_round(options, server, tokens):
    """{part: mean milliseconds of a call}."""
    before = seconds_of(server)
    call = bench(options.programs, server.address, "--concurrency=1",
                 "--batch_size=1", f"--words={tokens - 2}",
                 f"--duration={options.seconds}s", warm_up="0")
    after = seconds_of(server)
    means = {stage: 1e3 * (after[stage, "sum"] - before[stage, "sum"])
             / (after[stage, "count"] - before[stage, "count"])
             for stage in STAGES}
    means["call"] = call["latency_ms"]["mean"]
    means["more"] = means["call"] - means["compute"]
    means["way"] = means["call"] - sum(means[stage] for stage in STAGES)
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 128, 512])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    columns = ("call", "compute", "more", "tokenize", "queue", "batch",
               "reply", "way")
    print(f"| tokens | {' | '.join(columns)} |\n|{'---|' * 9}")
    with Server(options.programs / "encoderd", f"m={options.model}",
                f"--dtype={options.dtype}",
                f"--max_len={max(options.tokens)}") as server:
        for tokens in options.tokens:
            one_round(options, server, tokens)  # warms up
            rounds = [one_round(options, server, tokens)
                      for _ in range(options.repeats)]
            cells = [spread([means[part] for means in rounds], ".3f")
                     for part in columns]
            print(f"| {tokens} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
