"""An engine_bench, or a baseline that obeys the same words, as a child.

The words, one a line: "run" is answered by seconds, "ids PATH" (other
sequences) by "ready", "vectors PATH" by "written".
"""

import math
import os

import numpy as np

from child import ChildFailed

# Seconds that an answer may take.
START, IDS, RUN, VECTORS = 90, 60, 40, 40


def numbers(dtype):
    """Flags for a dtype; fp8 is what products multiply, with bf16."""
    if dtype == "fp8":
        return ["--dtype=bf16", "--products=fp8"]
    return [f"--dtype={dtype}"]


class Obeying:
    """A child started with its first ids; started again after a failure.

    A child that failed twice is not started a third time: each start may cost
    a minute.
    """

    def __init__(self, run, what, command, environment, start_limit=START):
        self.run_of = run
        self.what = what
        self._command = command
        self._environment = environment
        self._start_limit = start_limit
        self._child = None
        self._failures = 0
        self._starting = None  # ids of a child that has not answered yet
        self.ids = None

    def _ask(self, words, limit):
        try:
            answer = self._child.ask(
                words, self.run_of.clock.limit(limit * self.run_of.patience))
            return answer
        except ChildFailed:
            self._lost()
            raise

    def _lost(self):
        self._failures += 1
        self.close(now=True)

    def _bad(self, words, answer):
        self._lost()
        raise ChildFailed(f"{self.what}: answered {answer[:80]!r} to "
                          f"'{words or 'start'}'; killed")

    def start(self, ids):
        """Starts the child with its first ids and waits for nothing, so that
        several start side by side."""
        if self._child is None and self._failures < 2:
            self._child = self.run_of.start(
                self.what, [*self._command, f"--ids={ids.path}"],
                self._environment)
            self._starting = ids

    def feed(self, ids):
        """Takes ids (workloads.Ids), starting the child if need be."""
        if self._failures >= 2:
            raise ChildFailed(f"{self.what}: not tried again after "
                              f"{self._failures} failures")
        self.start(ids)
        if self._starting is ids:
            words, limit = "", self._start_limit
        else:
            words, limit = f"ids {ids.path}", IDS
        self._starting = None
        answer = self._ask(words, limit)
        if answer != "ready":
            self._bad(words, answer)
        self.ids = ids

    def run(self):
        """Seconds of one pass."""
        self._needs_ids()
        answer = self._ask("run", RUN)
        try:
            seconds = float(answer)
        except ValueError:
            self._bad("run", answer)
        if not (math.isfinite(seconds) and seconds > 0):
            self._bad("run", answer)
        return seconds

    def vectors(self):
        """[sequences, H] in float32."""
        self._needs_ids()
        path = self.run_of.scratch / "vectors"
        answer = self._ask(f"vectors {path}", VECTORS)
        if answer != "written":
            self._bad("vectors", answer)
        try:
            values = np.fromfile(path, dtype=np.float32)
            os.unlink(path)
        except OSError:
            self._bad("vectors", "a file that is not there")
        count = len(self.ids.lengths)
        if not values.size or values.size % count:
            self._bad("vectors", f"{values.size} values for {count} sequences")
        return values.reshape(count, -1)

    def _needs_ids(self):
        if self._child is None:
            raise ChildFailed(f"{self.what}: not started")

    def close(self, now=False):
        """Lets the child leave by itself, unless `now`."""
        child, self._child = self._child, None
        if child is None:
            return
        if not now:
            try:
                child.process.stdin.close()
                child.process.wait(5)
            except Exception:  # it is killed below, whatever the matter is
                pass
        child.kill()


def engine(run, model, dtype, threads=0, batch_tokens=0, tuning="", device="",
           graphs=True):
    """engine_bench over a model of run.model_folder or a folder."""
    what = (f"engine {os.path.basename(model)} {dtype}"
            f"{' timed' if tuning else ''}")
    return Obeying(run, what, [
        run.program("engine_bench"), f"--model={model}",
        f"--device={device or run.device}", *numbers(dtype),
        f"--threads={threads}", f"--max_batch_tokens={batch_tokens}",
        f"--tuning_folder={tuning}",
        f"--cuda_graphs={'true' if graphs else 'false'}"], run.environment)
