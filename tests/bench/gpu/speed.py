"""Steps that measure the engine and its peers, interleaved on the same
ids, and what the card itself can do. A contender that fails costs its rows."""

import json
import statistics

import workloads
from child import ChildFailed
from engine import Obeying, engine
from plan import MODELS, NotRun, OutOfTime, Step

# Tokens of one pass; estimates of a whole step in seconds on an H100.
# Of the large model whole numbers of full batches: 16896 tokens for each of
# two Sessions on 132 multiprocessors.
TOKENS = {"minilm": 1 << 19, "e5-small": 1 << 19, "bert-base": 1 << 18,
          "bert-large": 4 * 33792}
ESTIMATE = {"minilm": 65, "e5-small": 40, "bert-base": 70, "bert-large": 120}
LONG = 4  # seconds of one contender's passes, after which three are enough
SETTLED = 0.5  # seconds of a pass whose beginning no longer tells
WORKLOADS = ("128", "mix", "512", "16", "normal")  # the most telling first


def steps(run):
    """The card's ceilings first: shares are quoted of them."""
    found = [Step("ceilings", "speed", 15, lambda: ceilings(run),
                  needs=("card_bench",))]
    for name in MODELS:
        small = name == "e5-small"
        found.append(Step(
            f"speed of {name}", "speed", ESTIMATE[name],
            lambda n=name: speed(run, n), name, ("engine_bench",)))
        if not small:
            found.append(Step(
                f"ops of {name}", "ops", 25,
                lambda n=name: lines_of(run, f"ops of {n}", [
                    run.program("engine_bench"), "--ops", *device_of(run),
                    f"--model={n}", "--repeats=3",
                    f"--tokens={4096 if run.quick else 33792}"]),
                name, ("engine_bench",)))
            found.append(Step(
                f"shapes of {name}", "ops", 40,
                lambda n=name: lines_of(run, f"shapes of {n}", [
                    run.program("card_bench"), "shapes", *device_of(run),
                    f"--model={n}"]), name, ("card_bench",)))
    for name in ("bert-base", "minilm"):
        found.append(Step(
            f"rare peers of {name}", "speed", 90,
            lambda n=name: speed(run, n, rare=True), name,
            ("engine_bench",)))
    return found


def device_of(run):
    return [f"--device={run.device}", f"--dtype={run.dtype}"]


def lines_of(run, name, command, limit=90, keep=None):
    """Each JSON object that the program prints is a row, as it is."""
    rows, others = [], []

    def take(line):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
            run.report.row(**{**row, "step": name})
            if keep:
                keep(row)
        elif line:
            others.append(line)

    if not run.on_card and command[0] == run.program("card_bench"):
        raise NotRun("needs a card")
    code, log = run.call(name, command, limit, take)
    if code != 0:
        raise RuntimeError(f"exit {code} after {len(rows)} rows: "
                           f"{log.strip().splitlines()[-1][:300]}")
    errors = [row["error"] for row in rows if row.get("error")]
    if errors:
        raise RuntimeError(f"{len(errors)} rows are errors, the first: "
                           f"{errors[0]}"[:300])
    if not rows:
        raise RuntimeError(f"no row; said {' '.join(others)[:200]!r}")
    return f"{len(rows)} rows" + (
        f", {len(others)} lines that are none" if others else "")


def ceilings(run):
    def keep(row):
        dtype = row.get("dtype", run.dtype)
        for key, value in row.items():
            if isinstance(value, (int, float)) and value > 0:
                if key == "tflops":
                    run.ceilings[dtype] = max(
                        run.ceilings.get(dtype, 0), value * 1e12)
    told = lines_of(run, "ceilings", [
        run.program("card_bench"), "ceilings", *device_of(run)], 45, keep)
    return f"{told}; {run.ceilings or 'no tflops among them'}"


def baseline(run, name, kind, dtype):
    return Obeying(run, f"{kind} {dtype} {name}", run.worker_command(
        kind, f"--model={run.model_folder(name)}", f"--dtype={dtype}",
        f"--device={run.device}", f"--scratch={run.scratch}"),
        run.worker_environment, 150)


def contenders(run, name, rare):
    """{what: an engine or one that obeys like it}, ours first."""
    folder = run.model_folder(name)
    dtype = run.dtype
    found = {f"encoderd {dtype}": engine(run, folder, dtype,
                                         tuning=run.tuning)}
    if rare:
        for kind in ("compile", "onnx"):
            precision = "fp16" if kind == "onnx" else "bf16"
            found[f"{kind} {precision}"] = baseline(run, name, kind, precision)
        return installed(run, name, found)
    if not run.no_fp8:
        found["encoderd fp8"] = engine(run, folder, "fp8", tuning=run.tuning)
    if not run.on_card:
        found["transformers sdpa fp32"] = baseline(run, name, "sdpa", "fp32")
        return found
    found["transformers sdpa bf16"] = baseline(run, name, "sdpa", "bf16")
    found["transformers flash bf16"] = baseline(run, name, "flash", "bf16")
    found["sentence-transformers bf16, texts in"] = baseline(
        run, name, "sentence", "bf16")
    return installed(run, name, found)


def installed(run, name, found):
    """Less those whose package is known to be absent."""
    needs = {"transformers flash": "flash_attn", "onnx": "onnxruntime",
             "sentence-": "sentence_transformers"}
    for what in list(found):
        for start, package in needs.items():
            if what.startswith(start) and package in run.absent:
                run.report.left_out(f"{what} of {name}",
                                    f"{package} is not installed")
                del found[what]
    return found


def workloads_of(run, name, rare):
    if name == "e5-small":
        return ("passages",)
    if rare or run.quick:
        return ("128", "mix")
    return WORKLOADS if name == "minilm" else (*WORKLOADS, "passages")


def speed(run, name, rare=False):
    """Rows for each workload; what fails is noted in its own row."""
    if rare and not run.on_card:
        raise NotRun("needs a card")
    found = contenders(run, name, rare)
    left = list(workloads_of(run, name, rare))
    failures = []
    try:
        while left:
            measure(run, name, left[0], found, failures)
            left.pop(0)
    except OutOfTime as reason:
        run.report.left_out(f"{name}: {', '.join(left)}", reason)
        if not failures:
            raise
    finally:
        for contender in found.values():
            contender.close()
    if failures:
        raise RuntimeError("; ".join(failures))
    return f"{len(found)} contenders"


def measure(run, name, workload, found, failures):
    """One row a contender, of what was measured when time is over, too;
    adds to `failures` why those of ours failed."""
    tokens = TOKENS[name] if run.on_card and not run.quick else 1 << 12
    lengths = workloads.lengths_of(workload, tokens)
    ids = run.ids(f"{workload}-{tokens}", lengths)
    times = {what: [] for what in found}
    lost = {}

    def attempt(what, call):
        try:
            call()
        except ChildFailed as failure:
            lost[what] = str(failure)

    def feed(names):
        for what in names:
            run.report.doing(f"{workload}: {what}")
            attempt(what, lambda: found[what].feed(ids))

    ours = [what for what in found if what.startswith("encoderd")]
    others = [what for what in found if what not in ours]
    try:
        feed(ours)  # each times algorithms as it starts: with the card alone
        for what in others:
            found[what].start(ids)
        feed(others)
        for _ in range(2 if run.quick else 5):
            for what in found:
                if what in lost or (len(times[what]) >= 3
                                    and sum(times[what]) > LONG):
                    continue
                attempt(what, lambda: add_pass(found[what], times[what]))
    finally:
        failures += [f"{workload}, {what}: {why}" for what, why in lost.items()
                     if what.startswith("encoderd")]
        for what in found:
            if times[what] or what in lost:
                run.report.row(model=name, workload=workload, what=what,
                               **figures(run, name, what, lengths,
                                         times[what], lost.get(what)))


def add_pass(contender, times):
    """Adds the seconds of a pass. A short one follows an untimed one of the
    same contender: a card is up to 4 % faster after another's rest than after
    work."""
    if not times or times[-1] < SETTLED:
        contender.run()
    times.append(contender.run())


def figures(run, name, what, lengths, times, lost):
    row = {"note": lost[:300]} if lost else {}
    if not times:
        return row
    middle, total = statistics.median(times), sum(lengths)
    row.update({"tokens_per_second": round(total / middle),
                "min": round(total / max(times)),
                "max": round(total / min(times)),
                "passages_per_second": round(len(lengths) / middle),
                "repeats": len(times)})
    flops = workloads.flops_of(name, lengths) / middle
    row["tflops"] = round(flops / 1e12, 3)
    dtype = "fp8" if " fp8" in what else run.dtype
    if run.ceilings.get(dtype):
        row["share_of_ceiling"] = round(flops / run.ceilings[dtype], 3)
    return row
