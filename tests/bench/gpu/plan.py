"""Steps, what is asked for, and what fits into the time that is left.

Knows no card and no process: what decides here is tested with a clock of the
test's own.
"""

import dataclasses
import time
import typing

GROUPS = ("correct", "speed", "ops", "serve", "latency")
MODELS = ("minilm", "e5-small", "bert-base", "bert-large")
# name: (group, models) pairs; three runs of under nine minutes each.
RUNS = {
    "a": [("correct", MODELS)],
    "b": [("speed", ("minilm", "bert-base")), ("ops", ("minilm", "bert-base"))],
    "c": [("speed", ("e5-small", "bert-large")), ("ops", ("bert-large",)),
          ("serve", ("minilm", "bert-base", "bert-large")),
          ("latency", ("minilm", "bert-base", "bert-large"))],
}
# Models that a group has steps of; "": steps of none.
STEPS_OF = {
    "correct": ("",),
    "speed": ("", *MODELS),
    "ops": ("minilm", "bert-base", "bert-large"),
    "serve": ("minilm", "bert-base", "bert-large"),
    "latency": ("minilm", "bert-base", "bert-large"),
}
ALL = [(group, MODELS) for group in GROUPS]
PATIENCE = 3  # a step may take this many times its estimate


class NotRun(Exception):
    """The step cannot run here; the reason."""


class BitsOnly(Exception):
    """Bits agreed, but there was nothing to judge values by; the reason."""


class OutOfTime(Exception):
    """The step's time or the whole run's is over."""


@dataclasses.dataclass
class Step:
    """function() returns a detail or raises; estimate: seconds on one card.

    model: "" where the step is not of one model. needs: programs in bin/.
    """
    name: str
    group: str
    estimate: float
    function: typing.Callable[[], str]
    model: str = ""
    needs: tuple = ()
    limit: float = 0  # at least this many seconds, if that is more


class Clock:
    """The run's deadline and the current step's."""

    def __init__(self, seconds, now=time.monotonic):
        self._now = now
        self.seconds = seconds
        # The end is for the report.
        self._end = now() + seconds - min(10, seconds / 20)
        self._step_end = self._end

    def left(self):
        return self._end - self._now()

    def begin_step(self, seconds):
        self._step_end = min(self._end, self._now() + seconds)

    def end_step(self):
        self._step_end = self._end

    def limit(self, seconds):
        """The part of `seconds` that is still left; OutOfTime when none is."""
        left = self._step_end - self._now()
        if left <= 0:
            raise OutOfTime(
                f"the deadline of {self.seconds:g} s"
                if self._end <= self._now() else "the step's own time is over")
        return min(seconds, left)


def wanted(run=None, only=None, models=None):
    """A function of (group, model): is it asked for? None: all.

    only and models narrow the run down; a step of no model is always among
    its group. ValueError: unknown words, or words that leave nothing.
    """
    if run is not None and run not in RUNS:
        raise ValueError(f"--run={run}: expected one of {', '.join(RUNS)}")
    groups = parse("only", only, GROUPS)
    named = parse("models", models, MODELS)
    pairs = [(group, model)
             for group, among in (RUNS[run] if run else ALL)
             for model in STEPS_OF[group] if not model or model in among]
    of_groups = [pair for pair in pairs if pair[0] in groups]
    what = f"--run={run}" if run else "all runs"
    if not of_groups:
        raise ValueError(f"--only={only}: leaves nothing of {what}; its "
                         f"groups: {once(group for group, _ in pairs)}")
    there = [model for _, model in of_groups if model]
    if there and not set(there) & set(named):
        raise ValueError(
            f"--models={models}: leaves nothing of {what} in "
            f"{once(group for group, _ in of_groups)}; its models: "
            f"{once(there)}")
    chosen = {(group, model) for group, model in of_groups
              if not model or model in named}
    return lambda group, model: (group, model) in chosen


def once(words):
    return ", ".join(dict.fromkeys(words))


def parse(flag, words, known):
    found = known if words is None else tuple(words.split(","))
    for word in found:
        if word not in known:
            raise ValueError(f"--{flag}={words}: '{word}' is unknown; expected "
                             f"some of {', '.join(known)}")
    return found


def run_steps(steps, report, clock, missing, patience=1.0):
    """Every step that fits, in order; what it raises is told, and the next
    one runs. missing(program) is true for what bin/ lacks."""
    for step in steps:
        lacks = [name for name in step.needs if missing(name)]
        if lacks:
            report.left_out(step.name, f"the bundle has no {', '.join(lacks)}")
            continue
        if step.estimate > clock.left():
            report.left_out(step.name, f"takes about {step.estimate:.0f} s; "
                                       f"{max(clock.left(), 0):.0f} s are left")
            continue
        started = time.monotonic()
        report.begin(step.name)
        clock.begin_step(max(20, PATIENCE * step.estimate, step.limit)
                         * max(patience, 1))
        try:
            status, detail = "passed", step.function()
        except NotRun as reason:
            status, detail = "not run", reason
        except BitsOnly as reason:
            status, detail = "bits only", reason
        except OutOfTime as reason:
            status, detail = "cut off", reason
        except Exception as failure:  # told, and the next step runs
            status, detail = "FAILED", f"{type(failure).__name__}: {failure}"
        clock.end_step()
        report.end(step.name, status, detail, time.monotonic() - started)
