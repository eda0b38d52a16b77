"""The rate over gRPC as a share of the engine's own, interleaved in one run.

    python3 tests/bench/compare_grpc.py --bin build/bench/bin \\
        --model models/all-MiniLM-L6-v2

Starts the server on loopback with max_len 512. Each round runs engine_bench
(ids, no server) and then grpc_bench (texts, 64 a call) at every length. Client
and server share the cores that the engine alone has for itself. Prints a
table: medians with the extremes, and the median of the rounds' ratios.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys

from loads import ratios, spread

# Calls in flight at each length: enough to keep the device busy, few enough
# that the last ones do not outlast the measurement.
IN_FLIGHT = {"16": 8, "128": 4, "512": 2, "mix": 8}


def rows(command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def start_server(options, program="encoderd"):
    server = subprocess.Popen(
        [options.bin / program, f"--model={options.model}", "--max_len=512",
         "--listen=127.0.0.1:0", "--http_listen=", f"--dtype={options.dtype}"],
        stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if "event=listening" in line:
            port = line.split("grpc=")[1].split()[0].rsplit(":", 1)[1]
        if "event=serving" in line:
            return server, f"127.0.0.1:{port}"
    sys.exit("compare_grpc: the server did not start")


def one_round(options, target):
    engine = rows([options.bin / "engine_bench", f"--model={options.model}",
                   f"--dtype={options.dtype}", "--repeats=1"])
    rates = {row["workload"]: [row["tokens_per_second"]] for row in engine}
    for lengths, in_flight in IN_FLIGHT.items():
        served = rows([options.bin / "grpc_bench", f"--target={target}",
                       f"--lengths={lengths}", f"--in_flight={in_flight}",
                       f"--seconds={options.seconds}"])
        rates[lengths].append(served[0]["tokens_per_s"])
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path,
                        help="folder of the programs")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5,
                        help="of each measurement over gRPC")
    options = parser.parse_args()
    server, target = start_server(options)
    try:
        rounds = [one_round(options, target) for _ in range(options.repeats)]
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    print("length   engine alone, tokens/s      over gRPC, tokens/s"
          "         share (spread)")
    for lengths in IN_FLIGHT:
        alone, served = zip(*(rates[lengths] for rates in rounds))
        print(f"{lengths:8} {spread(alone, '.0f'):28} "
              f"{spread(served, '.0f'):28} "
              f"{spread(ratios(served, alone), '.3f')}")


if __name__ == "__main__":
    main()
