"""Our engine and its peers on the same ids, interleaved in one run.

    python tests/bench/compare_engines.py --bench build/bench/bin/engine_bench \\
        --model "$(deploy/fetch-model.sh)" --out result.jsonl

A workload is a length, of which there are many sequences; `mix`, a mix of
lengths; or `8x512`: 8 sequences of 512 tokens and no more, as one call would
bring them. One sequence is computed by all cores, by encoderd as by peers.
One pass over few sequences is soon over: each run of such a workload makes
passes for half a second and counts their median; `ms` is that of a pass.

For each workload every peer first tries its ways of working and batch sizes
and keeps the fastest. One whose vectors then differ from encoderd's by more
than AGREES is not timed, and named. The others run in turn, `repeats` times.
Peers get their sequences sorted by length and padded to the longest of a
batch; encoderd gets them as they come. tokens/s counts real tokens only. A run
during which other programs took more than 3 % of the cores is repeated, up to
20 times; the column `disturbed` counts runs that never found quiet. `ratio` is
encoderd's median rate in the same dtype over that of the row. Prints a table,
and writes one JSON object a row: losing rows too.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import instructions
import peers
import random_model
from workloads import batch_sizes, few, flops, padded, sequences

# Of two values of unit vectors: rounding in fp32, and in bf16.
AGREES = {"fp32": 1e-4, "bf16": 2e-2}
PASSES_SECONDS = 0.5


class Encoderd:
    """engine_bench as a child process that runs on command."""

    def __init__(self, options, hidden, dtype, ids_file, batch_tokens):
        self.name = f"encoderd {dtype}"
        self.hidden = hidden
        self.child = subprocess.Popen(
            [options.bench, f"--model={options.model}", f"--dtype={dtype}",
             f"--device={options.device}", f"--ids={ids_file}", f"--threads={options.cores}",
             f"--max_batch_tokens={batch_tokens}", f"--pooling={options.pooling}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.child.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{self.name} is not available here")

    def ask(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def seconds(self):
        return float(self.ask("run"))

    def peak(self):
        return float(self.ask("peak"))

    def vectors(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "vectors")
            self.ask(f"vectors {path}")
            return np.fromfile(path, np.float32).reshape(-1, self.hidden)

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def warm_seconds(run):
    """The least of the runs after the first, for a fifth of a second; or the
    first, if it is so long that warming up is no matter."""
    took = []
    while len(took) < 2 or sum(took) < 0.2:
        start = time.perf_counter()
        run()
        took.append(time.perf_counter() - start)
        if took[0] > 3:
            return took[0]
    return min(took[1:])


class Tuned:
    """A peer with its fastest way of working for one workload."""

    def __init__(self, peer, workload, ids):
        self.name = peer.name
        self.version = peer.version()
        self.order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        best = None
        for variant in peer.variants():
            for size in batch_sizes(workload):
                # The middle of the lengths, a quarter of the work.
                some = self.order[::4] if workload == "mix" else \
                    self.order[:max(size * 4, len(ids) // 4)]
                if peers.THREAD_A_CORE in variant and len(some) <= size:
                    continue  # a single batch is for one thread
                if "eager" in variant and max(map(len, ids)) > 4096:
                    continue  # its scores alone are gigabytes
                seconds = warm_seconds(peer.prepare(
                    padded(some, ids, size), variant)) / len(some)
                if best is None or seconds < best[0]:
                    best = (seconds, variant, size)
        _, variant, self.batch = best
        self.how = f"{variant}, batches of {self.batch}"
        self.run = peer.prepare(padded(self.order, ids, self.batch), variant)
        self.found = self.run()  # every shape seen once

    def seconds(self):
        start = time.perf_counter()
        self.found = self.run()
        return time.perf_counter() - start

    def vectors(self):
        ordered = np.empty_like(self.found)
        ordered[self.order] = self.found
        return ordered


def cpu_seconds_of_others(children):
    """Seconds of all cores that neither this process nor its children used."""
    tick = os.sysconf("SC_CLK_TCK")
    with open("/proc/stat", encoding="ascii") as file:
        # user nice system idle iowait irq softirq steal
        fields = [int(value) for value in file.readline().split()[1:9]]
    busy = sum(fields) - fields[3] - fields[4]
    for pid in (os.getpid(), *children):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            stat = file.read().rsplit(")", 1)[1].split()
        busy -= int(stat[11]) + int(stat[12])
    return busy / tick


def passes_of(engine, at_least):
    """Seconds of each pass; as many passes as take `at_least` seconds."""
    passes = [engine.seconds()]
    while sum(passes) < at_least:
        passes.append(engine.seconds())
    return passes


def quiet_seconds(engine, children, cores, at_least):
    """Median seconds of a pass, and whether other programs disturbed them."""
    for _ in range(20):
        before = cpu_seconds_of_others(children)
        passes = passes_of(engine, at_least)
        others = cpu_seconds_of_others(children) - before
        seconds = statistics.median(passes)
        if others <= 0.03 * sum(passes) * cores:
            return seconds, False
        time.sleep(1)
    return seconds, True


def dtype_of(engine):
    return engine.name.split()[-1]


def agreeing(tuned, ours):
    """The peers whose vectors are encoderd's; the others are named."""
    want = next(e for e in ours if dtype_of(e) == "fp32").vectors()
    kept = []
    for peer in tuned:
        difference = float(np.abs(peer.vectors() - want).max())
        agrees = difference <= AGREES[dtype_of(peer)]  # false for NaN
        print(f"{peer.name}: {peer.how}; largest difference from encoderd "
              f"{difference:.1e}{'' if agrees else ': left out'}",
              file=sys.stderr, flush=True)
        if agrees:
            kept.append(peer)
    return kept


def quality(got, want):
    cosine = (got * want).sum(1) / (np.linalg.norm(got, axis=1)
                                    * np.linalg.norm(want, axis=1))
    return {"cosine_min": float(cosine.min()),
            "cosine_mean": float(cosine.mean()),
            "max_difference": float(np.abs(got - want).max())}


def tuned_peers(available, workload, ids):
    tuned = []
    for peer in available:
        try:
            tuned.append(Tuned(peer, workload, ids))
        except Exception as error:  # too little memory, for one
            print(f"left out: {peer.name} {workload}: {error}",
                  file=sys.stderr)
    return tuned


def measure(engines, ours, options, at_least):
    """Seconds of a pass of each engine, how many runs were disturbed, and
    peaks by dtype."""
    children = [engine.child.pid for engine in ours]
    times = {engine.name: [] for engine in engines}
    disturbed = {engine.name: 0 for engine in engines}
    peaks = {dtype_of(engine): 0 for engine in ours}
    for _ in range(options.repeats):
        for engine in ours:
            dtype = dtype_of(engine)
            peaks[dtype] = max(peaks[dtype], engine.peak())
        for engine in engines:
            seconds, loud = quiet_seconds(
                engine, children, options.cores, at_least)
            times[engine.name].append(seconds)
            disturbed[engine.name] += loud
    return times, disturbed, peaks


def compare(workload, options, config, available):
    ids = sequences(workload, config)
    tokens = sum(map(len, ids))
    want = peers.torch_vectors(options.model, ids, pooling=options.pooling)
    rows = []
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
        file.writelines(" ".join(map(str, row)) + "\n" for row in ids)
        file.flush()
        ours = []
        # The server deals a few sequences out to all of its threads.
        batch_tokens = -(-few(workload) // options.cores) * len(ids[0])
        for dtype in ("fp32", "bf16"):
            try:
                ours.append(Encoderd(options, config["hidden_size"], dtype,
                                     file.name, batch_tokens))
            except RuntimeError as error:
                print(error, file=sys.stderr)
        tuned = tuned_peers(available, workload, ids)
        engines = ours + agreeing(tuned, ours)
        times, disturbed, peaks = measure(
            engines, ours, options, PASSES_SECONDS if few(workload) else 0)
        own = {dtype_of(engine): statistics.median(times[engine.name])
               for engine in ours}
        for engine in engines:
            dtype = dtype_of(engine)
            rate = [tokens / seconds for seconds in times[engine.name]]
            peak = peaks.get(dtype, float("inf"))
            share = (flops(config, ids, options.pooling) / tokens
                     * statistics.median(rate) / peak)
            rows.append({
                "model": options.name, "workload": workload,
                "pooling": options.pooling,
                "engine": engine.name,
                "version": getattr(engine, "version", options.version),
                "how": getattr(engine, "how", "packed"),
                "tokens_per_second": round(statistics.median(rate)),
                "min": round(min(rate)), "max": round(max(rate)),
                "milliseconds": round(
                    1e3 * statistics.median(times[engine.name]), 2),
                "ratio": round(
                    statistics.median(times[engine.name]) / own[dtype], 2)
                    if dtype in own else None,
                "share_of_peak": round(share, 3),
                "peak_gflops": round(peak / 1e9, 1),
                "disturbed": disturbed[engine.name],
                **quality(engine.vectors(), want)})
        for engine in ours:
            engine.close()
    return rows


def show(rows):
    print(f"{'workload':9}{'engine':18}{'tokens/s':>10}{'min':>8}{'max':>8}{'ms':>10}"
          f"{'ratio':>7}{'of peak':>9}{'disturbed':>10}{'cos min':>11}"
          f"{'cos mean':>11}{'max|d|':>10}  how")
    for row in rows:
        print(f"{row['workload']:9}{row['engine']:18}"
              f"{row['tokens_per_second']:10}{row['min']:8}{row['max']:8}"
              f"{row['milliseconds']:10.2f}{row['ratio'] or '':7}"
              f"{row['share_of_peak']:9.1%}{row['disturbed']:10}{row['cosine_min']:11.6f}"
              f"{row['cosine_mean']:11.6f}{row['max_difference']:10.1e}"
              f"  {row['how']}", flush=True)


def chosen_peers(names):
    """Of peers.PEERS those that `names` names, by class or by class and dtype,
    as "OpenVino,Torch fp32"."""
    names = [name.strip() for name in names.split(",")]
    known = {name for kind, dtype in peers.PEERS
             for name in (kind.__name__, f"{kind.__name__} {dtype}")}
    for name in names:
        if name not in known:
            sys.exit(f"--peers: no peer {name!r}; available: "
                     f"{', '.join(sorted(known))}")
    return [(kind, dtype) for kind, dtype in peers.PEERS
            if kind.__name__ in names or f"{kind.__name__} {dtype}" in names]


def opened_peers(options):
    available = []
    for kind, dtype in options.peers:
        try:
            available.append(
                kind(options.model, dtype, options.cores, options.pooling))
        except Exception as error:  # whatever an exporter may throw
            print(f"left out: {kind.__name__} {dtype}: {error}",
                  file=sys.stderr)
    return available


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="path of engine_bench")
    parser.add_argument("--model", required=True, help="model folder, or "
                        "random weights: " + ", ".join(random_model.SHAPES))
    parser.add_argument("--layers", type=int,
                        help="of random weights; default: the shape's own")
    parser.add_argument("--workloads", default="16,128,512,mix")
    parser.add_argument("--peers", default=",".join(
        dict.fromkeys(kind.__name__ for kind, _ in peers.PEERS)),
        help="those to compare with, all together in memory; \"Torch fp32\" "
        "names one dtype. PyTorch in fp32, which the columns of differences "
        "refer to, computes each sequence once in any case")
    parser.add_argument("--pooling", choices=["mean", "cls"], default="mean",
                        help="of all engines, whatever the model's own")
    parser.add_argument("--isa", choices=["avx2", "avx512_amx"],
                        help="avx2: hide newer instructions from all engines; "
                        "avx512_amx: let encoderd use AMX, as peers do")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int,
                        default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", help="file for the JSON rows, appended")
    options = parser.parse_args()
    options.peers = chosen_peers(options.peers)
    if options.isa == "avx2":
        instructions.hide_newer_than_avx2(options.bench)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"],
                            cwd=os.path.dirname(os.path.abspath(__file__)),
                            capture_output=True, text=True, check=False)
    options.version = commit.stdout.strip() or "unknown"
    options.name = os.path.basename(options.model.rstrip("/"))
    print(f"{platform.machine()}, {options.cores} cores", file=sys.stderr)
    options.device = f"cpu:{options.isa}" if options.isa else "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        if options.model in random_model.SHAPES:
            random_model.write(options.model, scratch, options.layers)
            options.model = scratch
        run(options)


def run(options):
    with open(os.path.join(options.model, "config.json"),
              encoding="utf-8") as file:
        config = json.load(file)
    available = opened_peers(options)
    for workload in options.workloads.split(","):
        rows = compare(workload, options, config, available)
        show(rows)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
