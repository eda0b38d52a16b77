"""What tests/gpu.sh runs: every check and measurement, one report.

A step that fails is told and the next one runs; a step that cannot run here,
or does not fit into the time left, says why. The whole plan needs no torch:
what does runs in children (torch_worker.py).
"""

import os
import signal
import sys

from options import options_of, refuse
from out_folder import Refused, claim, remove_scratch
from plan import Clock
from report import Report, complain, say

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ended(BaseException):
    """A signal asked for the end."""


def end_by_signal(number, _):
    ignore_signals()
    raise Ended(signal.Signals(number).name)


def ignore_signals():
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def prepare_streams():
    """Fills numbers 0 to 2: no later file may replace a stream that was
    closed. What a stream's encoding lacks becomes an escape."""
    while True:
        null = os.open(os.devnull, os.O_RDWR)
        if null > 2:
            os.close(null)
            break
    for stream in (sys.stdout, sys.stderr):
        if stream:
            stream.reconfigure(errors="backslashreplace")


def empty_report(options, arguments):
    """(report, scratch folder), both this run's alone; exit 2 where it cannot
    have them."""
    try:
        out, scratch = claim(options.out)
    except Refused as failure:
        refuse(failure)
    try:
        return Report(out, " ".join(arguments)), scratch
    except OSError as failure:
        remove_scratch(scratch)
        refuse(f"--out={options.out}: {failure}")


def main(arguments):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no report yet: just ends
    prepare_streams()
    options, asked = options_of(arguments)
    clock = Clock(options.deadline)
    report, scratch = empty_report(options, arguments)
    run = None
    ended = ""
    try:
        try:
            for number in ENDING:
                signal.signal(number, end_by_signal)
            # They need numpy, which --help and a refusal do without.
            from all_steps import go
            from run_context import Run
            run = Run(options, report, clock, scratch)
            go(run, asked)
        finally:
            ignore_signals()
    except Ended as reason:
        ended = f"by {reason}, in {report.content['running']}"
    except Refused as reason:  # what only all the steps' names can tell
        ended = f"before any step: {reason}"
    except Exception as failure:  # a fault of this script: told, too
        ended = f"by a fault of the script: {type(failure).__name__}: {failure}"
    if run:
        run.children.end()
    report.finish(ended)
    if run:
        run.close()
    remove_scratch(scratch)
    say(f"gpu.sh: {report.out}/gpu.json has {len(report.content['rows'])} "
        f"rows, {len(report.content['steps'])} steps"
        f"{'; ended ' + ended if ended else ''}")
    if report.unwritten:
        complain(f"the report is not complete: {report.unwritten}; every row "
                 f"stands on stdout")
    return 1 if ended or report.failed() or report.unwritten else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
