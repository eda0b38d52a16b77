"""How long one text alone takes on a card, for gpu.py."""

import statistics

import torch

import gpu_torch
from gpu_run import Engine


def measure_latency(run, name, dtype, repeats):
    """One text alone, by CUDA graphs and without, interleaved: same bits."""
    for tokens in (16, 128):
        ids = gpu_torch.random_ids([tokens])
        kinds = {"": True}
        if run.on_card:
            kinds = {", CUDA graphs": True, ", no CUDA graphs": False}
        engines = {kind: Engine(run, name, ids, dtype, threads=1, graphs=graphs)
                   for kind, graphs in kinds.items()}
        times = {kind: [] for kind in engines}
        for engine in engines.values():
            for _ in range(3):  # the third pass is the first by a graph alone
                engine.run()
        for _ in range(100 * repeats):
            for kind, engine in engines.items():
                times[kind].append(engine.run())
        vectors = [engine.vectors().view(torch.int32)
                   for engine in engines.values()]
        for engine in engines.values():
            engine.close()
        if not all(torch.equal(vectors[0], other) for other in vectors):
            raise RuntimeError(f"{name}: other bits by a CUDA graph")
        for kind, seconds in times.items():
            run.rows.append(
                {"model": name, "workload": f"one text of {tokens} tokens",
                 "what": f"encoderd {dtype}{kind}",
                 "milliseconds": round(1e3 * statistics.median(seconds), 3),
                 "min_ms": round(1e3 * min(seconds), 3)})
