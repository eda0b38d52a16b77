"""The whole plan over every part: preflight first, then what is asked for."""

import json
import platform
import re
import sys

import correct
import latency
import plan
import served
import speed
from child import ChildFailed
from out_folder import Refused
from preflight import preflight


def tell_facts(run):
    run.report.fact("machine", platform.platform())
    run.report.fact("python", sys.version.split()[0])
    version = run.root / "VERSION"
    run.report.fact("bundle", version.read_text(errors="replace").split("\n")[0]
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


def matching(steps, pattern):
    """Those whose names have a match; Refused where none has."""
    found = [step for step in steps if re.search(pattern, step.name)]
    if not found:
        raise Refused(f"--steps={pattern}: matches none of "
                      f"{', '.join(step.name for step in steps)}")
    return found


def go(run, asked):
    steps = matching(steps_of(run, asked), run.steps)
    first = plan.Step("preflight", "", 0, lambda: preflight(run),
                      limit=200)  # two starts on a cold card
    plan.run_steps([first], run.report, run.clock, run.missing, run.patience)
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
