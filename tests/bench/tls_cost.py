"""What TLS and bearer tokens cost: rates and latencies with and without,
interleaved in one run.

    python3 tests/bench/tls_cost.py --programs build/bench/bin \\
        --model "$(deploy/fetch-model.sh)"

Two servers on loopback, one plain, one with TLS and a token; of both a real
model, and, where encoderd_fake_server is there, one that computes nothing, so
that what is measured is the way itself. Each round asks each in turn, by
`encoderctl bench`. Prints medians with the extremes, and the median of the
rounds' ratios (TLS over plain). Needs openssl.
"""

import argparse
import hashlib
import pathlib
import statistics
import subprocess
import tempfile

from loads import ROOT, Server, bench, ratios, spread

TOKEN = "a-token-of-the-benchmark"
# Name, server, flags of the load, the figure.
LOADS = [
    ("128 tokens x 16, 8 in flight", "encoderd",
     ["--words=126", "--batch_size=16", "--concurrency=8"], "tokens_per_s"),
    ("one text of 16 tokens, p50 ms", "encoderd",
     ["--words=14", "--batch_size=1", "--concurrency=1"], "p50"),
    ("nothing computed: calls of 1 text, 32 in flight", "encoderd_fake_server",
     ["--words=2", "--batch_size=1", "--concurrency=32"], "texts_per_s"),
    ("nothing computed: one call at a time, p50 ms", "encoderd_fake_server",
     ["--words=2", "--batch_size=1", "--concurrency=1"], "p50"),
]


def measure(options, address, flags, figure, variables):
    found = bench(options.programs, address, f"--duration={options.seconds}s",
                  *flags, warm_up="500ms", variables=variables)
    return found["latency_ms"]["p50"] if figure == "p50" else found[figure]


def compare(options, certificates, load):
    name, program, flags, figure = load
    model = (f"m={options.model}" if program == "encoderd"
             else "m=hidden_size:384,hashing:0")
    secure = [f"--tls_certificate_file={certificates}/server.pem",
              f"--tls_key_file={certificates}/server.key",
              f"--bearer_token_file={certificates}/tokens"]
    variables = {"ENCODERD_CA_FILE": f"{certificates}/ca.pem",
                 "ENCODERD_TOKEN": TOKEN}
    plain_figures, secure_figures = [], []
    with Server(options.programs / program, model) as plain, \
            Server(options.programs / program, model, *secure) as secured:
        for _ in range(options.repeats):
            plain_figures.append(
                measure(options, plain.address, flags, figure, {}))
            secure_figures.append(
                measure(options, secured.address, flags, figure, variables))
    ratio = statistics.median(ratios(secure_figures, plain_figures))
    print(f"| {name} | {spread(plain_figures)} | {spread(secure_figures)} | "
          f"{ratio:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "tests/support/make_certificates.sh", folder],
                       check=True)
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        (pathlib.Path(folder) / "tokens").write_text(f"bench {digest}\n")
        print("| load | plain | TLS and token | ratio |\n|---|---|---|---|")
        for load in LOADS:
            if (options.programs / load[1]).exists():
                compare(options, folder, load)


if __name__ == "__main__":
    main()
