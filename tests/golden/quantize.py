#!/usr/bin/env python3
"""Makes data/quantized.json: vectors as sentence-transformers'
quantize_embeddings packs them, and as numpy rounds them to half floats.

    pip install sentence-transformers==6.2.0 numpy==2.4.6
    tests/golden/quantize.py

A list of cases, each of
    values             float32 [n,D] little-endian, in hex
    columns            D
    minimum, maximum   float32 [D], in hex: the ranges of int8 and uint8
    int8, uint8, binary, ubinary, float16     what comes of each, in hex
    own_int8, own_uint8    the same of every vector with the range -m to m, m
                           being its largest absolute value
"""

import json
import pathlib
import sys

import numpy
import sentence_transformers
from sentence_transformers.util.quantization import quantize_embeddings

PINNED = {"sentence_transformers": "6.2.0", "numpy": "2.4.6"}
HERE = pathlib.Path(__file__).parent


def hexed(array, dtype):
    return numpy.ascontiguousarray(array).astype(dtype).tobytes().hex()


def own_ranges(row):
    largest = numpy.abs(row).max()
    return numpy.stack([numpy.full_like(row, -largest),
                        numpy.full_like(row, largest)])


def make_case(values, ranges):
    values = values.astype(numpy.float32)
    ranges = ranges.astype(numpy.float32)
    case = {"columns": values.shape[1], "values": hexed(values, "<f4"),
            "minimum": hexed(ranges[0], "<f4"),
            "maximum": hexed(ranges[1], "<f4"),
            "float16": hexed(values.astype(numpy.float16), "<f2")}
    for precision in ("int8", "uint8", "binary", "ubinary"):
        packed = quantize_embeddings(values, precision, ranges=ranges)
        case[precision] = hexed(packed, packed.dtype)
        if precision.endswith("int8"):
            case["own_" + precision] = "".join(
                hexed(quantize_embeddings(row[None], precision,
                                          ranges=own_ranges(row)),
                      packed.dtype) for row in values)
    return case


def sentence_like(rows, columns, seed):
    """Unit vectors, with ranges that some of their values leave."""
    values = numpy.random.default_rng(seed).normal(size=(rows, columns))
    values /= numpy.linalg.norm(values, axis=1, keepdims=True)
    ranges = numpy.stack([values.min(0), values.max(0)]) * 0.9
    return make_case(values, ranges)


def corners():
    """Zeros of both signs, ties, ends of ranges, denormals, and values far
    outside every range."""
    tiny = numpy.float32(1e-45)
    row = [0.0, -0.0, tiny, -tiny, 1e-38, -1e-38, 1.0, -1.0, 0.5, -0.5, 1e30,
           -1e30, 65504.0, -65504.0, 65519.996, 2.0**-24, 2.0**-25,
           3 * 2.0**-25, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 0.1]
    row = numpy.array(row, numpy.float32)
    half = numpy.where(numpy.abs(row) < 65520, row, 1.0)
    values = numpy.stack([half, -half, numpy.zeros_like(row), -0.0 * row,
                          numpy.full_like(row, tiny)])
    ranges = numpy.stack([numpy.full_like(row, -1), numpy.full_like(row, 1)])
    ranges[:, 1] = [0, tiny]  # a step that is no float any more
    ranges[:, 2] = [-1e-38, 1e-38]
    ranges[:, 9] = [-1e30, 1e30]
    return make_case(values, ranges)


def ties():
    """Every boundary between two bytes, as close as floats come to it."""
    low, high = numpy.float32(-0.3), numpy.float32(0.7)
    step = (high - low) / numpy.float32(255)
    at = low + numpy.arange(256, dtype=numpy.float32) * step
    values = numpy.stack([numpy.nextafter(at, numpy.float32(-9)), at,
                          numpy.nextafter(at, numpy.float32(9))])
    return make_case(values, numpy.stack([numpy.full_like(at, low),
                                          numpy.full_like(at, high)]))


def main():
    for name, wanted in PINNED.items():
        found = sys.modules[name].__version__
        if found != wanted:
            sys.exit(f"{name} is {found}; the goldens are made with {wanted}")
    cases = [corners(), ties(), sentence_like(5, 13, 1),
             sentence_like(3, 384, 2), sentence_like(4, 1, 3)]
    with open(HERE / "data" / "quantized.json", "w") as file:
        json.dump(cases, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
