#!/usr/bin/env python3
"""The server that was compiled for arm64, under qemu: texts become the vectors
of the reference, alone and in company.

    ENCODERD_TEST_MODEL=FOLDER tests/nightly/arm64/server.py BIN SYSROOT

BIN: the folder of encoderd and encoderctl; SYSROOT: what sysroot.sh made. Needs
qemu-aarch64, and the Python client on PYTHONPATH. Prints one line; exits with 1
where a promise is broken.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import encoderd
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server  # noqa: E402  after the path

GOLDEN = ROOT / "tests/golden"
# Emulation computes some hundred tokens per minute.
COUNT, MAX_TOKENS = 12, 24
TOLERANCE = 1e-5  # the project's promise: kFp32Vector


def goldens():
    """Short texts, and the reference's vectors of them."""
    data = (GOLDEN / "data/minilm.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])

    def tensor(name, dtype):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(data[8 + size + begin:8 + size + end],
                             dtype).reshape(header[name]["shape"])

    lengths = np.diff(tensor("cu_seqlens", "<i4"))
    vectors = tensor("pooled", "<f4")
    lines = (GOLDEN / "sentences.txt").read_text(encoding="utf-8").split("\n")
    texts, rows = [], []
    for index, parts in enumerate(json.loads(
            (GOLDEN / "texts.json").read_text(encoding="utf-8"))):
        if len(parts) == 1 and lengths[index] <= MAX_TOKENS:
            texts.append(" ".join(lines[line] for line in parts[0]))
            rows.append(index)
    step = len(rows) // COUNT  # over many languages
    return texts[::step][:COUNT], vectors[rows[::step][:COUNT]]


def emulated(program, sysroot, folder):
    """A program for this machine that runs one of arm64."""
    script = pathlib.Path(folder, program.name)
    script.write_text("#!/bin/sh\n"
                      f'exec qemu-aarch64 -L "{sysroot}" "{program}" "$@"\n',
                      encoding="utf-8")
    script.chmod(0o755)
    return script


def check(programs, sysroot, folder):
    texts, wanted = goldens()
    server = emulated(programs / "encoderd", sysroot, folder)
    encoderctl = emulated(programs / "encoderctl", sysroot, folder)
    with Server(server, os.environ["ENCODERD_TEST_MODEL"],
                "--threads=2") as served:
        log = served.log()
        with encoderd.Client(served.address, timeout=300) as client:
            together = client.encode(texts)
            alone = np.concatenate([client.encode([text]) for text in texts])
        similarity = subprocess.run(
            [encoderctl, "similarity", f"--target={served.address}", texts[0],
             texts[0]], capture_output=True, text=True, check=False)
        code = served.stop()
    difference = float(np.abs(together - wanted).max())
    print(f"{len(texts)} texts, max |d| {difference:.1e}")
    found = {
        "the device is not neon": ", neon)" not in log,
        f"beyond {TOLERANCE} of the reference": not difference <= TOLERANCE,
        "other bits alone": together.tobytes() != alone.tobytes(),
        f"encoderctl: {similarity}": similarity.returncode != 0,
        f"exit code {code}": code != 0,
    }
    for what in (what for what, is_so in found.items() if is_so):
        print(what, file=sys.stderr)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(check(pathlib.Path(sys.argv[1]).resolve(),
                       pathlib.Path(sys.argv[2]).resolve(), scratch))
