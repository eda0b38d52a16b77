#!/usr/bin/env python3
"""Our tokenizer against Hugging Face `tokenizers`, one thread each, by script.

    ENCODERD_TEST_MODEL=... tokenizer_bench.py PROGRAMS [--repeats 7] [--json]

PROGRAMS is the folder with tokenizer_speed, built as Release. The two take
turns on the same texts; the table has medians with least and most, in MB/s
(10^6 bytes of UTF-8). A repeat encodes every text of the script once; the first
turn of each is not counted.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "integration"))
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_reference as reference  # noqa: E402

MAX_BYTES = 400_000  # of a script's text: what the reference does in a moment
MIN_BYTES = 15_000  # scripts with less are left out


class Ours:
    def __init__(self, program, folder, texts):
        read, self.write = os.pipe()

        def place():  # the orders come on descriptor 3
            os.dup2(read, 3)

        self.process = subprocess.Popen(
            [program, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=place,
            pass_fds=(3, read),
        )
        os.close(read)
        for text in texts:
            data = text.encode()
            self.process.stdin.write(struct.pack("<I", len(data)) + data)
        self.process.stdin.close()

    def __call__(self):
        os.write(self.write, b"go\n")
        seconds, tokens = self.process.stdout.readline().split()
        return float(seconds), int(tokens)

    def close(self):
        os.close(self.write)
        self.process.wait()


def theirs(tokenizer, texts):
    begin = time.perf_counter()
    encodings = tokenizer.encode_batch_fast(texts)
    seconds = time.perf_counter() - begin
    return seconds, sum(len(e) for e in encodings)


def measure(program, folder, tokenizer, texts, repeats):
    ours = Ours(program, folder, texts)
    times = ([], [])
    for turn in range(repeats + 1):
        results = [ours(), theirs(tokenizer, texts)]
        assert results[0][1] == results[1][1], "the numbers of tokens differ"
        if turn > 0:
            for kept, (seconds, _) in zip(times, results):
                kept.append(seconds)
    ours.close()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    program = str(options.programs / "tokenizer_speed")
    folder = reference.model_folder()
    tokenizer = reference.load_reference(folder)
    rows = []
    for script, texts in sorted(corpus.by_script().items()):
        chosen, total = [], 0
        step = max(1, sum(len(t.encode()) for t in texts) // MAX_BYTES)
        for text in texts[::step]:
            chosen.append(text)
            total += len(text.encode())
        if total < MIN_BYTES:
            continue
        ours, other = measure(
            program, str(folder), tokenizer, chosen, options.repeats
        )
        speeds = [sorted(total / s / 1e6 for s in t) for t in (ours, other)]
        medians = [statistics.median(s) for s in speeds]
        rows.append((script, total, *speeds, medians[0] / medians[1]))
    loads = [
        float(subprocess.check_output([program, str(folder), "--load"]).split()[0])
        for _ in range(options.repeats)
    ]
    if options.json:
        print(json.dumps({"rows": rows, "load_seconds": loads}))
        return
    print(f"{'script':12} {'kB':>5}  {'ours MB/s':>22}  {'reference MB/s':>20}  ratio")
    for script, total, ours, other, ratio in rows:
        show = [f"{statistics.median(s):.1f} ({s[0]:.1f}-{s[-1]:.1f})" for s in (ours, other)]
        print(f"{script:12} {total // 1000:5}  {show[0]:>22}  {show[1]:>20}  {ratio:5.1f}")
    print(f"load: {1e3 * statistics.median(loads):.1f} ms, "
          f"{1e3 * min(loads):.1f} to {1e3 * max(loads):.1f}")


if __name__ == "__main__":
    main()
