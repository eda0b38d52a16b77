"""The parts of gpu.py: steps and their outcomes, and an engine to talk to."""

import os
import pathlib
import re
import subprocess
import tempfile
import time

import torch


class NotRun(Exception):
    """The step cannot run on this machine; the reason."""


def numbers(dtype):
    """Flags for a dtype; fp8 is what products multiply, beside bf16."""
    if dtype == "fp8":
        return ["--dtype=bf16", "--products=fp8"]
    return [f"--dtype={dtype}"]


class Engine:
    """engine_bench over a file of ids, obeying line by line."""

    def __init__(self, run, model, ids, dtype, threads=0, batch_tokens=0,
                 tuning="", device="", graphs=True):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".ids")
        for sequence in ids:
            self.file.write(" ".join(map(str, sequence)) + "\n")
        self.file.flush()
        self.width = None
        self.count = len(ids)
        self.process = subprocess.Popen(
            [run.program("engine_bench"), f"--model={model}",
             f"--device={device or run.device}", *numbers(dtype),
             f"--threads={threads}", f"--max_batch_tokens={batch_tokens}",
             f"--tuning_folder={tuning}", f"--ids={self.file.name}",
             f"--cuda_graphs={'true' if graphs else 'false'}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=run.environment)
        self._read("engine_bench did not start")

    def _read(self, failure):
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{failure}: exit {self.process.wait(30)}")
        return line

    def _say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._read(command)

    def run(self):
        return float(self._say("run"))

    def vectors(self):
        with tempfile.NamedTemporaryFile() as file:
            self._say(f"vectors {file.name}")
            data = bytearray(pathlib.Path(file.name).read_bytes())
        return torch.frombuffer(data, dtype=torch.float32).reshape(
            self.count, -1)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.file.close()


class Run:
    def __init__(self, options):
        self.root = pathlib.Path(options.root)
        self.device = options.device
        self.quick = options.quick
        self.model = options.model
        self.out = pathlib.Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.tuning = self.out / "tuning"
        self.on_card = options.device.startswith("cuda")
        self.dtypes = ["fp32", "fp16", "bf16"] if self.on_card else ["fp32"]
        self.no_fp8 = self._no_fp8()
        self.environment = dict(os.environ)
        self.environment["LD_LIBRARY_PATH"] = os.environ.get(
            "ENCODERD_LIBRARY_PATH", "")
        self.steps, self.rows = [], []

    def _no_fp8(self):
        """Why fp8 products cannot run here; empty: they can."""
        if not self.on_card:
            return "fp8 products need a card"
        number = re.search(r":(\d+)", self.device)
        major, minor = torch.cuda.get_device_capability(
            int(number.group(1)) if number else 0)
        if (major, minor) == (9, 0):
            return ""
        return ("fp8 products need compute capability 9.0, this card has "
                f"{major}.{minor}")

    def program(self, name):
        return str(self.root / "bin" / name)

    def step(self, name, function):
        started = time.monotonic()
        print(f"gpu.sh: {name} ...", flush=True)
        try:
            status, detail = "passed", function()
        except NotRun as reason:
            status, detail = "not run", str(reason)
        except Exception as failure:  # told, and the next step runs
            status, detail = "FAILED", f"{type(failure).__name__}: {failure}"
        seconds = time.monotonic() - started
        self.steps.append({"step": name, "status": status, "detail": detail,
                           "seconds": round(seconds, 1)})
        print(f"gpu.sh: {name}: {status} ({seconds:.0f} s): {detail}",
              flush=True)

    def call(self, name, command, timeout=240):
        with open(self.out / f"{name}.log", "w", encoding="utf-8") as log:
            code = subprocess.run(command, stdout=log, stderr=log, check=False,
                                  env=self.environment,
                                  timeout=timeout).returncode
        return code, (self.out / f"{name}.log").read_text(errors="replace")
