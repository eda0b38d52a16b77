"""Shapes of models, lengths of texts, and files of ids."""

import dataclasses
import pathlib

import numpy as np

# name: layers, hidden, heads, inner
SHAPES = {
    "minilm": (6, 384, 12, 1536),
    "e5-small": (12, 384, 12, 1536),
    "bert-base": (12, 768, 12, 3072),
    "bert-large": (24, 1024, 16, 4096),
}
VOCABULARY = 30522
POSITIONS = 512


@dataclasses.dataclass
class Ids:
    """Sequences of ids in a file, one a line."""
    path: pathlib.Path
    sequences: list

    @property
    def lengths(self):
        return [len(sequence) for sequence in self.sequences]


def write_ids(path, sequences):
    with open(path, "w", encoding="ascii") as file:
        for sequence in sequences:
            file.write(" ".join(map(str, sequence)) + "\n")
    return Ids(path, sequences)


def lengths_of(workload, tokens, seed=42):
    """Lengths of about `tokens` tokens in all.

    "16": all of that length. "normal": mean 256, deviation 64, 16 to 512.
    "mix": log-normal, median 24, sigma 1, 4 to 512. "passages": as MSMARCO's,
    log-normal, mean 80, 16 to 256.
    """
    chance = np.random.default_rng(seed)
    draws = {
        "normal": lambda n: chance.normal(256, 64, n).clip(16, 512),
        "mix": lambda n: chance.lognormal(np.log(24), 1, n).clip(4, 512),
        "passages": lambda n: chance.lognormal(
            np.log(80) - 0.45 ** 2 / 2, 0.45, n).clip(16, 256),
    }
    draw = draws.get(workload) or (lambda n: np.full(n, int(workload)))
    lengths = []
    total = 0
    while total < tokens:
        for length in draw(1024).astype(int).tolist():
            lengths.append(length)
            total += length
            if total >= tokens:
                break
    return lengths


def random_ids(lengths, vocabulary=VOCABULARY, seed=7):
    chance = np.random.default_rng(seed)
    flat = chance.integers(5, vocabulary, sum(lengths)).tolist()
    sequences = []
    at = 0
    for length in lengths:
        sequences.append(flat[at:at + length])
        at += length
    return sequences


def flops_of(name, lengths):
    """FLOPs of the products and the attention of one pass."""
    layers, h, _, f = SHAPES[name]
    return sum(layers * n * (2 * (4 * h * h + 2 * h * f) + 4 * n * h)
               for n in lengths)
