"""Client.encode next to sentence-transformers' encode, interleaved in one run.

    build/peers/bin/pip install sentence-transformers ./client/python
    build/peers/bin/python tests/bench/encode_texts.py \\
        --programs build/bench/bin --model "$(deploy/fetch-model.sh)"

Both take the same texts, of the sentences of tests/golden, which are of some
sixty languages, and cut what is too long; server, client and PyTorch have the
same cores in turn. Prints a table: texts per second, medians of the rounds with
the extremes, and the median of the rounds' ratios; exit code 1 where a vector
differs by more than TOLERANCE.
"""

import argparse
import pathlib
import statistics
import sys
import time

import encoderd
import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from fp8_error import texts_of
from loads import Server, ratios, spread

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}  # of a value


def rate(encode, texts):
    """(texts per second, vectors)."""
    begun = time.perf_counter()
    vectors = encode(texts)
    return len(texts) / (time.perf_counter() - begun), np.asarray(
        vectors, dtype=np.float32)


def compare(options, texts, dtype):
    peer = SentenceTransformer(
        options.model, device="cpu",
        model_kwargs={"torch_dtype": DTYPES[dtype]})
    with Server(options.programs / "encoderd", f"m={options.model}",
                f"--dtype={dtype}") as server, \
            encoderd.Client(server.address) as client:
        def ours(texts):
            return client.encode(texts, truncate="end")

        def theirs(texts):
            return peer.encode(texts, normalize_embeddings=True)

        for encode in (ours, theirs):  # warms up
            encode(texts[:64])
        rates, rates_of_peer, worst = [], [], 0.0
        for _ in range(options.repeats):
            one, vectors = rate(ours, texts)
            other, vectors_of_peer = rate(theirs, texts)
            rates.append(one)
            rates_of_peer.append(other)
            worst = max(worst, float(np.abs(vectors - vectors_of_peer).max()))
    print(f"| {dtype} | {spread(rates)} | {spread(rates_of_peer)} | "
          f"{statistics.median(ratios(rates, rates_of_peer)):.2f} | "
          f"{worst:.1e} |", flush=True)
    return worst <= TOLERANCE[dtype]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", nargs="+", default=["fp32", "bf16"],
                        choices=DTYPES)
    parser.add_argument("--texts", type=int, default=2500)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    texts = texts_of(options.texts, 1)
    print("| | Client.encode, texts/s | sentence-transformers, texts/s | ratio "
          "| largest difference |\n|---|---|---|---|---|")
    agree = [compare(options, texts, dtype) for dtype in options.dtype]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
