"""Replaces the programs that tests/gpu.sh runs: engine_bench, card_bench,
the tests on a card, compute-sanitizer, nvidia-smi, encoderd, grpc_bench and
the PyTorch worker, told apart by the name they are called by.

FAKE_MISDEEDS holds what goes wrong, "PROGRAM:WHEN:WHAT[:ARGUMENT]" each,
separated by spaces: WHEN is "start" or a word of the protocol, WHAT one of
hang, die, leave, garbage, nan, negative, company, none, skip; ARGUMENT must
be among the program's arguments. FAKE_CARDS is how many cards the engine sees (1),
FAKE_CARDS_OF_SMI how many nvidia-smi names (1).
"""

import array
import math
import os
import subprocess
import sys
import time

WIDTH = 8


def misdeed(program, when):
    for entry in os.environ.get("FAKE_MISDEEDS", "").split():
        name, moment, what, *argument = entry.split(":")
        if (name == program and moment == when
                and all(word in " ".join(sys.argv) for word in argument)):
            return what
    return ""


def go_wrong(what):
    """Hangs, dies or leaves; returns for the other misdeeds."""
    if what == "hang":
        while True:
            time.sleep(3600)
    if what == "die":
        os.abort()
    if what == "leave":
        sys.exit(0)


def say(line):
    print(line, flush=True)


def flag(name, default=""):
    for argument in sys.argv[1:]:
        if argument.startswith(f"--{name}="):
            return argument.partition("=")[2]
    return default


def read_ids(path):
    with open(path, encoding="ascii") as file:
        return [list(map(int, line.split())) for line in file]


def vector(ids, what):
    """A unit vector that depends on the ids alone, unless told to lie."""
    if what == "nan":
        return [math.nan] * WIDTH
    seed = sum((i + 1) * value for i, value in enumerate(ids)) % 9973
    values = [math.sin(seed + i) for i in range(WIDTH)]
    if what == "company" and flag("max_batch_tokens", "0") != "0":
        values[0] += 1e-6
    norm = math.sqrt(sum(value * value for value in values))
    return [value / norm for value in values]


def obey(program):
    """engine_bench's words, and the worker's."""
    go_wrong(misdeed(program, "start"))
    ids = read_ids(flag("ids"))
    say("garbage" if misdeed(program, "start") == "garbage" else "ready")
    for line in sys.stdin:
        word, _, path = line.strip().partition(" ")
        what = misdeed(program, word)
        go_wrong(what)
        if what == "garbage":
            sys.stdout.buffer.write(b"\x00\xff so it goes\n")
            sys.stdout.flush()
        elif word == "ids":
            ids = read_ids(path)
            say("ready")
        elif word == "run":
            say({"negative": "-0.5", "nan": "nan"}.get(what, "0.001"))
        elif word == "vectors":
            values = array.array("f")
            for sequence in ids:
                values.extend(vector(sequence, what))
            with open(path, "wb") as file:
                values.tofile(file)
            say("written")


def engine_bench():
    cards = int(os.environ.get("FAKE_CARDS", "1"))
    card = flag("device").partition("cuda:")[2]
    if card.isdigit() and int(card) >= cards:
        sys.exit(f"engine_bench: cuda:{card} does not exist; {cards} devices are "
                 f"visible")
    if flag("tuning_folder") and flag("device").startswith("cuda"):
        path = os.path.join(flag("tuning_folder"), "card.tuning")
        os.makedirs(flag("tuning_folder"), exist_ok=True)
        text = "a bias choice of algorithms, long enough to be damaged\n"
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    if "--ops" in sys.argv:
        rows("engine_bench", "ops", '{"op": "matmul", "microseconds": 12.5}')
    else:
        obey("engine_bench")


def rows(program, when, row):
    """Two rows, with the misdeed between them."""
    what = misdeed(program, when)
    say(row)
    if what == "garbage":
        say("[1, 2")
        say("not JSON at all \x07")
        say('{"op": NaN}')
    go_wrong(what)
    say(row)


def card_bench():
    if sys.argv[1] == "ceilings":
        rows("card_bench", "ceilings",
             '{"ceiling": "product", "dtype": "bf16", "tflops": 790.5}')
    else:
        rows("card_bench", "shapes", '{"shape": [1, 2, 3], "us": 7.5}')


def op_test(program):
    what = misdeed(program, "run")
    if what == "none":
        say("[  PASSED  ] 0 tests.")
        return
    say("[ RUN      ] Op.MatchesTheFormula")
    go_wrong(what)
    if what == "skip":
        say("[  SKIPPED ] Op.MatchesTheFormula (0 ms)")
        say("[  PASSED  ] 0 tests.")
        say("[  SKIPPED ] 1 test, listed below:")
        return
    say("[       OK ] Op.MatchesTheFormula (3 ms)")
    say("[  PASSED  ] 1 test.")


def compute_sanitizer():
    """Runs the program as its own child, as the real one does."""
    go_wrong(misdeed("compute-sanitizer", "start"))
    program = next(a for a in sys.argv[1:] if not a.startswith("--"))
    code = subprocess.run([program, "--sanitized"], check=False).returncode
    say("========= ERROR SUMMARY: 0 errors")
    sys.exit(code)


def nvidia_smi():
    what = misdeed("nvidia-smi", "start")
    go_wrong(what)
    for _ in range(int(os.environ.get("FAKE_CARDS_OF_SMI", "1"))):
        say("garbage" if what == "garbage" else
            "NVIDIA H200, 9.0, 580.159.03, 143771 MiB")


def encoderd():
    go_wrong(misdeed("encoderd", "start"))
    print('serving grpc=127.0.0.1:12345 "serving"', file=sys.stderr,
          flush=True)
    time.sleep(600)


def grpc_bench():
    go_wrong(misdeed("grpc_bench", "start"))
    if misdeed("grpc_bench", "start") == "garbage":
        say("{}")
    else:
        say('{"bench": "grpc", "errors": 0, "tokens_per_s": 1000}')


def worker():
    kind = flag("kind")
    if kind == "facts":
        say('{"torch": "none, a stand-in"}')
    elif kind == "tokens":
        say("5 6 7 8\n9 10 11")
    else:
        obey("worker")


def main():
    program = os.path.basename(sys.argv[0])
    if program.startswith("gpu_"):
        op_test(program)
    else:
        {"engine_bench": engine_bench, "card_bench": card_bench,
         "compute-sanitizer": compute_sanitizer, "nvidia-smi": nvidia_smi,
         "encoderd": encoderd, "grpc_bench": grpc_bench,
         "worker.py": worker}[program]()


if __name__ == "__main__":
    if os.path.basename(sys.argv[0]) == "encoderd":
        import signal
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    main()
