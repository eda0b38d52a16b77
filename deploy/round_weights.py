#!/usr/bin/env python3
"""Copies a model folder with its float weights rounded to bf16.

    round_weights.py MODEL_FOLDER NEW_FOLDER

Rounds to nearest, ties to even, every F32 tensor of each *.safetensors, those
of modules (2_Dense) too; refuses what is not finite, or would not be
afterwards. A SHA256SUMS is checked, and written for the new files. Only
Python's standard library is used.
"""

import array
import hashlib
import json
import os
import pathlib
import shutil
import struct
import sys

CHUNK = 1 << 20  # values
SUMS = "SHA256SUMS"
LEFT_OUT = (".*", "*.bin", "*.onnx", "onnx", "openvino", SUMS)
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
        have = os.path.getsize(source)
        start = 8 + int.from_bytes(file.read(8), "little")
        if have < start:
            raise SystemExit(f"round_weights.py: {source} has {have} bytes and "
                             "ends in its header: download it again")
        header = json.loads(file.read(start - 8))
        tensors = sorted((entry["data_offsets"][0], name)
                         for name, entry in header.items()
                         if name != "__metadata__")
        expected = start + max((header[name]["data_offsets"][1]
                                for _, name in tensors), default=0)
        if have != expected:
            raise SystemExit(f"round_weights.py: {source} has {have} bytes, "
                             f"expected {expected}: download it again")
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


def copy(source, target):
    """For copytree: a file, its weights rounded if it has any."""
    if source.endswith(".safetensors"):
        convert(source, target)
    else:
        shutil.copyfile(source, target)
    return target


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def sums_of(source, target):
    """The source's SHA256SUMS for the files that the target has."""
    lines = []
    for line in (source / SUMS).read_text().splitlines():
        if not line:
            continue
        digest, name = line[:64].lower(), line[66:]
        if not (source / name).is_file():
            raise SystemExit(f"round_weights.py: {source / SUMS} names "
                             f"'{name}', which is not there")
        if sha256_of(source / name) != digest:
            raise SystemExit(f"round_weights.py: {source / name} has another "
                             f"SHA-256 than {SUMS} says")
        if (target / name).is_file():
            lines.append(f"{sha256_of(target / name)}  {name}\n")
    return "".join(lines)


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: round_weights.py MODEL_FOLDER NEW_FOLDER")
    source, target = map(pathlib.Path, sys.argv[1:])
    if not any(source.glob("*.safetensors")):
        raise SystemExit(f"round_weights.py: {source} has no *.safetensors")
    if target.exists():
        raise SystemExit(f"round_weights.py: {target} exists")
    try:
        shutil.copytree(source, target, copy_function=copy,
                        ignore=shutil.ignore_patterns(*LEFT_OUT))
        if (source / SUMS).exists():
            sums = sums_of(source, target)
            if sums:  # a server refuses one that names nothing
                (target / SUMS).write_text(sums)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


if __name__ == "__main__":
    main()
