"""How far fp32 vectors are from exact ones: encoderd's and PyTorch's compared
with PyTorch in fp64, on the same ids.

    build/peers/bin/python tests/bench/exactness.py \\
        --bench build/bench/bin/engine_bench --model "$(deploy/fetch-model.sh)"

Prints for each instruction set of this CPU, and for PyTorch, the mean and the
largest difference of a value, and the mean distance of a vector. The texts are
those of tests/golden/sentences.txt, alone and several after one another.
"""

import argparse
import collections
import tempfile

import numpy as np

import peers
from compare_engines import Encoderd
from fp8_error import ids_of, texts_of

DEVICES = ("cpu:portable", "cpu:avx2", "cpu:avx512")
SEED = 7
Options = collections.namedtuple("Options", "bench model cores device pooling")


def by_encoderd(options, ids, hidden):
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
        file.writelines(" ".join(map(str, row)) + "\n" for row in ids)
        file.flush()
        engine = Encoderd(options, hidden, "fp32", file.name, 0)
        try:
            return engine.vectors().astype(np.float64)
        finally:
            engine.close()


def show(name, vectors, exact):
    difference = np.abs(vectors - exact)
    distance = np.linalg.norm(vectors - exact, axis=1)
    print(f"{name:14}{difference.mean():12.2e}{difference.max():12.2e}"
          f"{distance.mean():12.2e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="path of engine_bench")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--texts", type=int, default=500)
    options = parser.parse_args()
    ids = ids_of(options.model, texts_of(options.texts, SEED))
    exact = peers.torch_vectors(options.model, ids, "float64")
    print(f"{len(ids)} texts, {sum(map(len, ids))} tokens\n"
          f"{'':14}{'mean |d|':>12}{'max |d|':>12}{'distance':>12}")
    show("PyTorch fp32", peers.torch_vectors(options.model, ids, "float32"), exact)
    for device in DEVICES:
        try:
            vectors = by_encoderd(
                Options(options.bench, options.model, 1, device, "mean"),
                ids,
                exact.shape[1])
        except RuntimeError as error:  # this CPU lacks the instructions
            print(f"{device}: {error}")
            continue
        show(device, vectors, exact)


if __name__ == "__main__":
    main()
