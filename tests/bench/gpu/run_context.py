"""What every step shares: programs, folders, limits, children, the report."""

import os
import pathlib
import shutil
import sys

import models
import workloads
from child import Children, Guard
from out_folder import remove_scratch
from plan import NotRun


class Run:
    """scratch: of out_folder.claim; removed when the run ends, however."""

    def __init__(self, options, report, clock, scratch):
        self.root = pathlib.Path(options.root).resolve()
        self.device = options.device
        self.quick = options.quick
        self.patience = options.patience
        self.steps = options.steps
        self.worker = options.worker
        self.tiny = options.tiny
        self.vocabulary = 200 if options.tiny else workloads.VOCABULARY
        self.on_card = options.device.startswith("cuda")
        self.dtypes = ["fp32", "fp16", "bf16"] if self.on_card else ["fp32"]
        self.dtype = "bf16" if self.on_card else "fp32"  # of measurements
        self.report = report
        self.clock = clock
        self.model = options.model or self._own_model()
        # Next to the report, not in it: what is left of a killed run is no
        # result. The same name each time, so that the next run clears it.
        self.scratch = scratch
        self.logs = self.scratch / "logs"
        self.tuning = self.scratch / "tuning"
        for folder in (self.logs, self.tuning, self.scratch / "ids"):
            folder.mkdir()
        report.logs = [self.logs, self.tuning]
        self.guard = Guard(lambda: remove_scratch(scratch))
        self.children = Children(self.guard, clock)
        # Of the bundle's programs: preflight adds library folders. PyTorch
        # keeps its own, which the bundle's libraries would replace.
        self.environment = dict(os.environ)
        self.worker_environment = dict(os.environ)
        self.ceilings = {}  # dtype: FLOP/s; "copy": bytes/s
        self.absent = set()  # packages that baselines would need
        self.no_fp8 = "fp8 products need a card"
        self._ids = {}

    def _own_model(self):
        """The bundle's own; None: it has none."""
        own = sorted((self.root / "models").glob("*/config.json"))
        return own[0].parent if own else None

    def program(self, name):
        return str(self.root / "bin" / name)

    def missing(self, name):
        return not os.access(self.program(name), os.X_OK)

    def log(self, name):
        return self.logs / ("".join(c if c.isalnum() or c in "-." else "-"
                                    for c in name) + ".log")

    def start(self, name, command, environment=None, answers=True):
        return self.children.start([str(word) for word in command],
                                   self.log(name),
                                   environment or self.environment, answers)

    def call(self, name, command, limit, each_line=None, environment=None):
        """(exit code, log) of a program that ends by itself."""
        code = self.children.call(
            [str(word) for word in command], self.log(name),
            environment or self.environment, limit * self.patience, each_line)
        return code, self.log(name).read_text(errors="replace")

    def worker_command(self, kind, *flags):
        """The half that may import torch."""
        return [sys.executable, self.worker, f"--kind={kind}", *flags]

    def model_folder(self, name, config=None):
        """A folder of random weights, written once in a run."""
        folder = self.scratch / "models" / name
        if not folder.exists():
            self.report.doing(f"writing random weights of {name}")
            unfinished = folder.with_name(name + ".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            config = dict(config or models.config_of(name))
            if self.tiny:
                config.update(num_hidden_layers=1, vocab_size=self.vocabulary)
            models.write_model(config, unfinished)
            unfinished.rename(folder)
        return str(folder)

    def ids(self, name, lengths):
        """Random ids, written once for each name."""
        if name not in self._ids:
            self._ids[name] = workloads.write_ids(
                self.scratch / "ids" / name,
                workloads.random_ids(lengths, self.vocabulary))
        return self._ids[name]

    def given_ids(self, name, sequences):
        return workloads.write_ids(self.scratch / "ids" / name, sequences)

    def need_fp8(self):
        if self.no_fp8:
            raise NotRun(self.no_fp8)

    def close(self):
        self.children.end()
        self.guard.close()
