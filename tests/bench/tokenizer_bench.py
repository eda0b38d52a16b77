#!/usr/bin/env python3
"""Our tokenizer, tokie and Hugging Face `tokenizers`, by script.

    ENCODERD_TEST_MODEL=... tokenizer_bench.py PROGRAMS [--kind albert]

PROGRAMS is the folder with tokenizer_speed and tokenize_lines. All run on one
core and take turns on the same texts; the table has medians with least and
most, in MB (10^6 bytes of UTF-8) per second of CPU time. A repeat encodes every text of the script
once; the first turn of each is not counted. The ids of all are compared with
those of `tokenizers`: if ours differ, the exit code is 1; a row says in how
many texts tokie's do. What is not installed is left out.

--kind takes a small tokenizer of that kind, trained on the same text
(tokenizer_models.py), instead of the model's own.
"""

import argparse
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "integration"))
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_models as models  # noqa: E402
import tokenizer_reference as reference  # noqa: E402

MAX_BYTES = 400_000  # of a script's text: what the reference does in a moment
MIN_BYTES = 15_000  # scripts with less are left out
TRAINING_LINES = 4_000


class Encoderd:
    """The program tokenizer_speed, which takes orders on descriptor 3."""

    name = "encoderd"

    def __init__(self, programs, folder, texts):
        read, self.write = os.pipe()

        def place():
            os.dup2(read, 3)

        self.folder, self.texts = folder, texts
        self.process = subprocess.Popen(
            [programs / "tokenizer_speed", folder],
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

    def ids(self):
        return [x.ids for x in reference.run_ours(self.folder, self.texts)]

    def seconds(self):
        os.write(self.write, b"go\n")
        return float(self.process.stdout.readline().split()[0])

    def close(self):
        os.close(self.write)
        self.process.wait()


class Peer:
    """One that runs in this process."""

    def __init__(self, _, folder, texts):
        self.texts = texts
        self.load(folder)

    def seconds(self):
        begin = time.process_time()
        self.encode()
        return time.process_time() - begin

    def close(self):
        pass


class Tokie(Peer):
    """Into one array of ids, its fastest call."""

    name = "tokie"

    def load(self, folder):
        import tokie

        self.tokenizer = tokie.Tokenizer.from_json(
            str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def encode(self):
        return self.tokenizer.encode_batch_flat(self.texts)

    def ids(self):
        flat, lengths = self.encode()
        ends = lengths.cumsum().tolist()
        flat = flat.tolist()
        return [flat[begin:end] for begin, end in zip([0, *ends], ends)]


class HuggingFace(Peer):
    name = "tokenizers"

    def load(self, folder):
        self.tokenizer = reference.load_reference(folder)

    def encode(self):
        return self.tokenizer.encode_batch_fast(self.texts)

    def ids(self):
        return [encoding.ids for encoding in self.encode()]


def engines(programs, folder, texts):
    """Those that are installed and read this tokenizer; the reference last."""
    found = []
    for kind in (Encoderd, Tokie, HuggingFace):
        try:
            found.append(kind(programs, folder, texts))
        except Exception as error:  # tokie has its own kind
            if kind is not Tokie:
                raise
            print(f"without tokie: {error}", file=sys.stderr)
    return found


def measure(programs, folder, texts, repeats):
    """{name: (MB/s of each repeat, texts with other ids)}."""
    total = sum(len(text.encode()) for text in texts)
    running = engines(programs, folder, texts)
    expected = running[-1].ids()
    results = {
        engine.name: ([], sum(a != b for a, b in zip(engine.ids(), expected)))
        for engine in running
    }
    for turn in range(repeats + 1):
        for engine in running:
            seconds = engine.seconds()
            if turn > 0:
                results[engine.name][0].append(total / seconds / 1e6)
    for engine in running:
        engine.close()
    return results


def chosen(texts):
    """Texts from all of them, at most MAX_BYTES or little more."""
    step = max(1, sum(len(text.encode()) for text in texts) // MAX_BYTES)
    return texts[::step]


def cell(rates, different, texts):
    text = f"{statistics.median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f})"
    if max(rates) < 20:
        text = (f"{statistics.median(rates):.1f} "
                f"({min(rates):.1f}-{max(rates):.1f})")
    return f"{text}, {different} of {texts} differ" if different else text


def tokenizer_folder(kind, scratch):
    if kind is None:
        return reference.model_folder()
    lines = random.Random(1).sample(corpus.all_lines(), TRAINING_LINES)
    return models.save(getattr(models, kind)(lines), pathlib.Path(scratch))


def machine():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown CPU"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--kind", help="albert, xlm_roberta, roberta, ...")
    parser.add_argument("--scripts", help="some of them: GREEK,CYRILLIC")
    options = parser.parse_args()
    os.environ["ENCODERD_TEST_PROGRAMS"] = str(options.programs)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wanted = options.scripts and options.scripts.split(",")
    ours_differ = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = tokenizer_folder(options.kind, scratch)
        print(machine())
        names = None
        for script, texts in sorted(corpus.by_script().items()):
            texts = chosen(texts)
            total = sum(len(text.encode()) for text in texts)
            if total < MIN_BYTES or (wanted and script not in wanted):
                continue
            results = measure(options.programs, folder, texts, options.repeats)
            if names is None:
                names = list(results)
                ratios = [f"/ {name}" for name in names[1:]]
                print("| script | kB |", " | ".join(names + ratios), "|")
                print("|---" * (2 + len(names) + len(ratios)) + "|")
            medians = {n: statistics.median(results[n][0]) for n in names}
            cells = [cell(*results[name], len(texts)) for name in names]
            cells += [f"{medians[names[0]] / medians[name]:.1f}"
                      for name in names[1:]]
            print(f"| {script} | {total // 1000} |", " | ".join(cells), "|",
                  flush=True)
            ours_differ = ours_differ or results[names[0]][1] > 0
        command = [options.programs / "tokenizer_speed", folder, "--load"]
        loads = [float(subprocess.check_output(command).split()[0])
                 for _ in range(options.repeats)]
    print(f"load: {1e3 * statistics.median(loads):.1f} ms of CPU time, "
          f"{1e3 * min(loads):.1f} to {1e3 * max(loads):.1f}")
    return 1 if ours_differ else 0


if __name__ == "__main__":
    sys.exit(main())
