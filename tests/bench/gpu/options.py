"""The options of tests/gpu.sh: what each takes, and what is refused."""

import argparse
import pathlib
import re
import sys

import out_folder
import plan
from report import complain, say

DEADLINE = 540
OUT = "gpu-report"
EXPECTED_DEVICE = "expected cuda, cuda:N with N from 0 to 999, or cpu"
HELP = f"""\
usage: tests/gpu.sh [OPTION...]

Tests and measures encoderd on a machine with a GPU. Runs in an unpacked bundle
of deploy/bundle.sh; needs python3 with numpy, and torch with transformers for
references and peers.

What to run:
  --run=RUN          one of three runs, each made for under nine minutes:
                       a  correctness (goldens: vectors compared with
                          transformers in fp64), same bits, sanitizers
                       b  speed of MiniLM's shape and BERT-base's, and of
                          peers, op by op, each product alone, what the card
                          itself can do
                       c  speed of e5-small's shape and BERT-large's, op by
                          op, all models served over gRPC, latency
                     Default: all three, as far as the deadline allows
                     (--deadline=1800 for all of them).
                     Example: --run=a
  --only=LIST        groups of steps: {','.join(plan.GROUPS)}.
                     Default: all of the run. Example: --only=speed,latency
  --models=LIST      models: {','.join(plan.MODELS)}.
                     Default: all of the run. Steps that use no model run
                     all the same.
                     Example: --models=minilm,bert-base
  --steps=PATTERN    of these, the steps whose names have a match of this
                     regular expression. Runs of different steps may share a
                     card if nothing is timed, with more --patience and each
                     with another --out. Default: all.
                     Example: --steps='goldens of (d32|mpnet)'
  --device=DEVICE    cuda (the first card; step "several sessions": all),
                     cuda:N (card N alone) or cpu (what needs no card).
                     Default: cuda. Example: --device=cuda:1
  --model=FOLDER     a real model for the goldens: config.json, weights and
                     tokenizer as on the Hugging Face Hub. Default: the one
                     below models/ in the bundle. Example: --model=/data/e5

Time:
  --deadline=N       seconds for the whole run. A step whose estimate does not
                     fit into the rest is left out and named.
                     Default: {DEADLINE}. Example: --deadline=1200
  --patience=N       a factor for every time limit but the deadline.
                     Default: 1. Example: --patience=2
  --quick            small counts and two repeats, to see that everything runs;
                     its figures are rough.
                     Default: off. Example: --quick

Output:
  --out=FOLDER       folder of gpu.json, gpu.md and logs.tar.gz, replaced after
                     every row and valid whenever the run is killed; made if it
                     does not exist. One run at a time. FOLDER.scratch next to
                     it is removed at the end. Default: {OUT}.
                     Example: --out=report-a

To test this script:
  --tiny             random models of one layer and 200 words. Default: off.
                     Example: --tiny

  -h, --help         prints this.

Environment:
  ENCODERD_TEST_PYTHON   the Python to use. Default: python3.

Exit codes:
  0  everything that ran passed
  1  a step failed, or the run or the report ended early; the report and
     stdout say what and why
  2  nothing ran, and no report was written; stderr says why
"""


class Help(argparse.Action):
    def __call__(self, *_):
        say(HELP.rstrip())
        sys.exit(0)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        refuse(message)


def refuse(message):
    """Exit 2: nothing ran."""
    complain(f"{message}; --help tells each option")
    sys.exit(2)


def parser():
    found = Parser(prog="gpu.sh", add_help=False, allow_abbrev=False)
    found.add_argument("-h", "--help", nargs=0, action=Help)
    found.add_argument("--root", required=True)
    found.add_argument("--out", default=OUT)
    found.add_argument("--model")
    found.add_argument("--device", default="cuda")
    found.add_argument("--quick", action="store_true")
    found.add_argument("--deadline", type=float, default=DEADLINE)
    found.add_argument("--run")
    found.add_argument("--only")
    found.add_argument("--models")
    found.add_argument("--steps", default="")
    found.add_argument("--patience", type=float, default=1)
    found.add_argument("--tiny", action="store_true")
    found.add_argument("--worker", default=str(
        pathlib.Path(__file__).with_name("torch_worker.py")))
    return found


def options_of(arguments):
    """(options, a function of (group, model): is it asked for?)."""
    options = parser().parse_args(arguments)
    for name in ("deadline", "patience"):
        value = getattr(options, name)
        if not 0 < value < float("inf"):
            refuse(f"--{name}={value}: expected a number above 0")
    if not re.fullmatch("cpu|cuda(:(0|[1-9][0-9]{0,2}))?", options.device):
        refuse(f"--device={options.device}: {EXPECTED_DEVICE}")
    try:
        re.compile(options.steps)
    except re.error as failure:
        refuse(f"--steps={options.steps}: expected a regular expression: "
               f"{failure}")
    try:
        asked = plan.wanted(options.run, options.only, options.models)
        if options.model is not None:
            options.model = model_folder(options.model)
    except (ValueError, out_folder.Refused) as failure:
        refuse(str(failure))
    return options, asked


def model_folder(words):
    path = out_folder.path_of("--model", words)
    try:
        if (path / "config.json").is_file():
            return path
        lack = "has no config.json" if path.is_dir() else "no such folder"
    except OSError as failure:
        lack = failure.strerror
    raise ValueError(
        f"--model={words}: {lack}; expected a folder of config.json, weights "
        f"and tokenizer, or no --model for the bundle's own")
