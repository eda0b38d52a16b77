#!/usr/bin/env python3
"""Copies a model folder with its float weights rounded to bf16.

    round_weights.py MODEL_FOLDER NEW_FOLDER

Rounds to nearest, ties to even, every F32 tensor of each *.safetensors;
refuses what is not finite, or would not be afterwards. Only Python's standard
library is used.
"""

import array
import json
import pathlib
import shutil
import struct
import sys

CHUNK = 1 << 20  # values
INFINITY = 0x7F80  # as bf16


def rounded(data, name):
    """The bytes of a tensor of F32 as BF16, both little-endian."""
    values = array.array("I", data)
    if sys.byteorder == "big":
        values.byteswap()
    out = array.array("H", [(v + 0x7FFF + (v >> 16 & 1)) >> 16 & 0xFFFF
                            for v in values])
    if any(v & 0x7F800000 == 0x7F800000 for v in values) or any(
            v & INFINITY == INFINITY for v in out):
        raise SystemExit(f"round_weights.py: {name} has a value that is not "
                         "finite in bf16")
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()


def convert(source, target):
    with open(source, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        start = 8 + size
        tensors = sorted((entry["data_offsets"][0], name)
                         for name, entry in header.items()
                         if name != "__metadata__")
        new, at = {}, 0
        if "__metadata__" in header:
            new["__metadata__"] = header["__metadata__"]
        for _, name in tensors:
            entry = header[name]
            begin, end = entry["data_offsets"]
            float32 = entry["dtype"] == "F32"
            length = (end - begin) // 2 if float32 else end - begin
            new[name] = {"dtype": "BF16" if float32 else entry["dtype"],
                         "shape": entry["shape"],
                         "data_offsets": [at, at + length]}
            at += length
        text = json.dumps(new).encode()
        text += b" " * (-len(text) % 8)
        with open(target, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for _, name in tensors:
                begin, end = header[name]["data_offsets"]
                file.seek(start + begin)
                for left in range(end - begin, 0, -4 * CHUNK):
                    data = file.read(min(left, 4 * CHUNK))
                    out.write(rounded(data, name)
                              if header[name]["dtype"] == "F32" else data)


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: round_weights.py MODEL_FOLDER NEW_FOLDER")
    source, target = map(pathlib.Path, sys.argv[1:])
    weights = sorted(source.glob("*.safetensors"))
    if not weights:
        raise SystemExit(f"round_weights.py: {source} has no *.safetensors")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(
        "*.safetensors", ".*", "*.bin", "*.onnx", "onnx", "openvino"))
    for path in weights:
        convert(path, target / path.name)


if __name__ == "__main__":
    main()
