"""What tests/gpu.sh runs: every check and measurement, one report.

A step that fails is told and the next one runs; a step that cannot run here,
or does not fit into the time left, says why. The whole plan needs no torch:
what does runs in children (torch_worker.py).
"""

import argparse
import json
import pathlib
import platform
import signal
import sys

import correct
import latency
import plan
import served
import speed
from child import ChildFailed
from preflight import preflight
from report import Report
from run_context import Run


class Ended(BaseException):
    """A signal asked for the end."""


def end_by_signal(number, _):
    for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Ended(signal.Signals(number).name)


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="gpu.sh")
    parser.add_argument("--root", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", default="gpu-report")
    parser.add_argument("--model", default="")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--deadline", type=float, default=540)
    parser.add_argument("--run", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--patience", type=float, default=1,
                        help="a factor for every limit but the deadline")
    parser.add_argument("--tiny", action="store_true",
                        help="random models of one layer and 200 words")
    parser.add_argument("--worker", help=argparse.SUPPRESS, default=str(
        pathlib.Path(__file__).with_name("torch_worker.py")))
    options = parser.parse_args(arguments)
    for name in ("deadline", "patience"):
        value = getattr(options, name)
        if not 0 < value < float("inf"):
            parser.error(f"--{name}={value}: expected a number above 0")
    try:
        asked = plan.wanted(options.run, options.only, options.models)
    except ValueError as failure:
        parser.error(str(failure))
    return options, asked


def tell_facts(run):
    run.report.fact("machine", platform.platform())
    run.report.fact("python", sys.version.split()[0])
    version = run.root / "VERSION"
    run.report.fact("bundle", version.read_text().split("\n")[0]
                    if version.exists() else "unknown")
    run.report.fact("model", run.model or "random ones alone")
    run.report.fact("scratch", run.scratch)
    lines = []
    try:
        run.call("facts", run.worker_command("facts"), 60, lines.append,
                 run.worker_environment)
        for name, value in json.loads(lines[-1]).items():
            run.report.fact(name, value or "not installed")
            if value is None:
                run.absent.add(name)
    except (ChildFailed, plan.OutOfTime, ValueError, LookupError,
            AttributeError) as failure:
        run.report.fact("torch", f"none here: {failure}")


def steps_of(run, asked):
    """Asked-for steps; correctness first, the rest by group."""
    found = [step for part in (correct, speed, served, latency)
             for step in part.steps(run)]
    for step in found:
        step.estimate *= 0.2 if run.quick else 1
    return [step for step in found if asked(step.group, step.model)]


def go(run, asked):
    first = plan.Step("preflight", "", 0, lambda: preflight(run),
                      limit=200)  # two starts on a cold card
    plan.run_steps([first], run.report, run.clock, run.missing, run.patience)
    steps = steps_of(run, asked)
    # What needs no engine may tell why.
    if run.report.content["steps"][-1]["status"] != "passed":
        for step in steps:
            if {"engine_bench", "encoderd"} & set(step.needs):
                run.report.left_out(step.name, "preflight failed")
        steps = [step for step in steps
                 if not {"engine_bench", "encoderd"} & set(step.needs)]
    else:
        tell_facts(run)
    plan.run_steps(steps, run.report, run.clock, run.missing, run.patience)


def main(arguments):
    options, asked = options_of(arguments)
    report = Report(options.out, " ".join(arguments))
    run = None
    ended = ""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    try:
        run = Run(options, report, plan.Clock(options.deadline))
        go(run, asked)
    except Ended as reason:
        ended = f"by {reason}, in {report.content['running']}"
    except Exception as failure:  # a fault of this script: told, too
        ended = f"by a fault of the script: {type(failure).__name__}: {failure}"
    if run:
        run.children.end()
    report.finish(ended)
    if run:
        run.close()
    print(f"gpu.sh: {report.out}/gpu.json has {len(report.content['rows'])} "
          f"rows, {len(report.content['steps'])} steps"
          f"{'; ended ' + ended if ended else ''}", flush=True)
    return 1 if ended or report.failed() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
