"""What the engines compute in compare_engines.py: the sequences of a workload,
padded batches of them, and how much there is to compute."""

import numpy as np

BATCHES = {"16": [8, 16, 32, 64], "128": [1, 2, 4, 8, 16],
           "512": [1, 2, 4], "mix": [4, 8, 16, 32]}
TOKENS = {"16": 16384, "128": 16384, "512": 16384, "mix": 40960}


def few(workload):
    """Sequences of a workload "8x512"; else 0."""
    return int(workload.split("x")[0]) if "x" in workload[1:-1] else 0


def batch_sizes(workload):
    if not few(workload):
        return BATCHES[workload]
    return [size for size in (1, 2, 4, 8, 16, 32) if size <= few(workload)]


def lengths(workload):
    if few(workload):
        return [int(workload.split("x")[1])] * few(workload)
    if workload != "mix":
        return [int(workload)] * (TOKENS[workload] // int(workload))
    random = np.random.default_rng(42)
    drawn = []
    while sum(drawn) < TOKENS["mix"]:
        drawn.append(int(np.clip(random.lognormal(np.log(24), 1.0), 4, 512)))
    return drawn


def sequences(workload, config):
    """Random ids between [CLS] and [SEP]."""
    random = np.random.default_rng(7)
    first, last = config.get("cls_token_id", 101), config.get("sep_token_id", 102)
    return [[first,
             *random.integers(1000, config["vocab_size"], n - 2).tolist(),
             last] for n in lengths(workload)]


def padded(order, ids, size):
    batches = []
    for first in range(0, len(order), size):
        rows = [ids[i] for i in order[first:first + size]]
        width = max(map(len, rows))
        batches.append((
            np.array([row + [0] * (width - len(row)) for row in rows]),
            np.array([[1] * len(row) + [0] * (width - len(row))
                      for row in rows])))
    return batches


def sides(config, n):
    """How far attention sees to each side in each layer, at most n - 1."""
    layers = config["num_hidden_layers"]
    if config["model_type"] != "modernbert":
        return layers * [n - 1]
    kinds = config.get("layer_types") or [
        "sliding_attention" if layer % config["global_attn_every_n_layers"]
        else "full_attention" for layer in range(layers)]
    return [min(config["local_attention"] // 2, n - 1)
            if kind == "sliding_attention" else n - 1 for kind in kinds]


def pairs_within(n, side):
    """Queries and keys that see each other, of a layer that sees so far."""
    return n + 2 * n * side - side * (side + 1)


def pairs(config, n):
    """The same of all layers together."""
    return sum(pairs_within(n, side) for side in sides(config, n))


def flops(config, ids, pooling="mean"):
    """What has to be computed: no padding, no key out of a window; for "cls"
    of the last layer keys and values, and the first row of all else."""
    h, f = config["hidden_size"], config["intermediate_size"]
    inner = 3 if config["model_type"] == "modernbert" else 2  # a gate
    row, keys = 2 * (4 * h * h + inner * h * f), 2 * 2 * h * h

    def of(n):
        every = config["num_hidden_layers"] * n * row + 4 * h * pairs(config, n)
        if pooling != "cls":
            return every
        side = sides(config, n)[-1]
        last = pairs_within(n, side)
        return (every - (n - 1) * (row - keys)
                - 4 * h * (last - (side + 1)))

    return sum(of(len(sequence)) for sequence in ids)
