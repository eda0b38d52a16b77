"""Steps that judge: op tests, goldens, the same bits in any batch, several
sessions, algorithms kept from start to start. A case that fails costs its own
row; the step fails at its end."""

import json
import pathlib
import re
import shutil

import numpy as np

import models
import vectors
import workloads
from child import ChildFailed
from engine import Obeying, engine
from plan import BitsOnly, NotRun, OutOfTime, Step

TESTS = ("gpu_row_op_test", "gpu_attention_op_test", "gpu_fp8_op_test",
         "gpu_cutlass_op_test", "gpu_whole_model_test",
         "gpu_full_batch_test")
SANITIZED = ("gpu_attention_op_test", "gpu_row_op_test", "gpu_fp8_op_test")
SMALL = ("*EveryHeadSize*:*InPlace*:*ThreeTables*:*ZeroVector*:"
         "*InAnyBatch*:*KeepsZeros*")


def steps(run):
    """What of this file a run has, the cheapest and most telling first."""
    found = [Step(name, "correct", 20, lambda n=name: op_tests(run, n),
                  needs=(name,), limit=120) for name in TESTS]
    cases = golden_models(run)
    found += [Step(f"goldens of {name}", "correct", 20,
                   lambda n=name, c=config: goldens(run, n, c),
                   needs=("engine_bench",), limit=150)
              for name, config in cases.items()]
    found += [Step("fp8 products", "correct", 30, lambda: fp8(run),
                   needs=("engine_bench",)),
              Step("kept algorithms", "correct", 25,
                   lambda: kept_algorithms(run), needs=("engine_bench",)),
              Step("several sessions", "correct", 10, lambda: several(run),
                   needs=("engine_bench",))]
    found += [Step(f"{tool} of {name}", "correct", 25,
                   lambda t=tool, n=name: sanitizer(run, t, n), needs=(name,))
              for tool in ("memcheck", "racecheck") for name in SANITIZED]
    return found


def op_tests(run, name):
    if not run.on_card:
        raise NotRun("needs a card")
    return gtest(run, name, [run.program(name)], 120)


def gtest(run, name, command, limit, lines=None):
    """The count of passed tests; the names of those that failed or hung."""
    lines = [] if lines is None else lines

    try:
        code, _ = run.call(name, command, limit, lines.append)
    except ChildFailed as failure:
        begun = [line for line in lines if "[ RUN      ]" in line]
        raise RuntimeError(f"{failure}, in "
                           f"{begun[-1].split()[-1] if begun else 'no test'}"
                           ) from failure
    if code == 77:
        raise NotRun(lines[-1] if lines else "skipped")
    failed = [line.split("]")[1].split("(")[0].strip() for line in lines
              if re.match(r"\[  FAILED  \] \S+\.\S+ \(", line)]
    if code != 0:
        raise RuntimeError(f"exit {code}, failed: {', '.join(failed[:20])}; "
                           f"see {run.log(name).name}")
    passed = [line for line in lines
              if re.match(r"\[  PASSED  \] [1-9]", line)]
    if not passed:
        if any(line.startswith("[  SKIPPED ] ") for line in lines):
            raise NotRun("every test was skipped, see "
                         f"{run.log(name).name}")
        raise RuntimeError("exit 0, but no test passed")
    return passed[-1].split("] ")[1]


def sanitizer(run, tool, name):
    program = shutil.which("compute-sanitizer") or shutil.which(
        "/usr/local/cuda/bin/compute-sanitizer")
    if not run.on_card or not program:
        raise NotRun("needs a card and compute-sanitizer")
    step, lines = f"{tool}-{name}", []
    try:
        gtest(run, step, [program, f"--tool={tool}", "--error-exitcode=9",
                          run.program(name), f"--gtest_filter={SMALL}"],
              75, lines)
    except RuntimeError:
        if any("not supported" in line for line in lines):
            raise NotRun("compute-sanitizer refuses this device") from None
        raise
    told = [line for line in lines if "SUMMARY" in line]
    if not told:
        raise RuntimeError("exit 0 without a summary")
    return told[-1].strip("= ")


def golden_models(run):
    """Random models of every head size and activation, a bias in attention,
    and the model that came along."""
    cases = {
        "d32 gelu": models.config_of("minilm"),
        "d64 gelu_new": models.config_of(
            "bert-base", num_hidden_layers=2, hidden_act="gelu_new"),
        "d128 relu": models.config_of(
            "minilm", num_attention_heads=3, hidden_act="relu"),
        "mpnet": models.mpnet_config(),
    }
    return {**({"given": None} if run.model else {}), **cases}


def folder_of(run, name, config):
    return (str(run.model) if config is None
            else run.model_folder(name.replace(" ", "-"), config))


def mixed_ids(run, folder):
    """Of every length, within the model's words."""
    count = 12 if run.quick else 1000
    most = longest(folder)
    lengths = workloads.lengths_of("mix", count * 40)[:count]
    lengths[:4] = [1, 2, most - 1, most]
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    return run.given_ids("golden", workloads.random_ids(
        [min(length, most) for length in lengths],
        min(config["vocab_size"], workloads.VOCABULARY)))


def longest(folder):
    """Tokens that the engine takes at most, of those that positions allow."""
    path = pathlib.Path(folder) / "sentence_bert_config.json"
    own = json.loads(path.read_text()) if path.is_file() else {}
    return min(own.get("max_seq_length") or workloads.POSITIONS,
               workloads.POSITIONS)


class Reference:
    """transformers' vectors in fp64. They are computed while others run."""

    def __init__(self, run, folder, ids):
        self.why = ""
        self._ids = ids
        self._vectors = None
        self._worker = Obeying(run, "reference", run.worker_command(
            "reference", f"--model={folder}", f"--device={run.device}"),
            run.worker_environment, 150)
        self._worker.start(ids)

    def vectors(self):
        """None: there are none, and `why`."""
        if self._worker:
            try:
                self._worker.feed(self._ids)
                self._vectors = self._worker.vectors()
            except ChildFailed as failure:
                self.why = str(failure)
            finally:
                self.close()
        return self._vectors

    def lacks(self, needed=True):
        """That there are none, where they are needed."""
        return [f"no reference: {self.why}"] if needed and self.why else []

    def close(self):
        if self._worker:
            self._worker.close()
        self._worker = None


def goldens(run, name, config):
    folder = folder_of(run, name, config)
    ids = mixed_ids(run, folder)
    reference = Reference(run, folder, ids)
    told = []
    try:
        for dtype in run.dtypes:
            told.append(compare(run, name, folder, ids, reference, dtype))
        reference.vectors()
    except OutOfTime as reason:
        judged([*told, f"cut off: {reason}"], reference.lacks(run.on_card))
        raise
    finally:
        reference.close()
    found = judged(told, reference.lacks(run.on_card))
    if reference.why:
        raise BitsOnly("; ".join([found, *reference.lacks()]))
    return found


def judged(told, lacks=()):
    """A detail; an error if any of it is one, or anything is lacking."""
    text = "; ".join([*told, *lacks])
    if lacks or "FAILED" in text:
        raise RuntimeError(text)
    return text


def compare(run, name, folder, ids, reference, dtype, judge=True):
    """One row: against the reference (where there is none, "bits only"), and
    the same bits in another order, in smaller batches, and alone. Where the
    time is over, the row has what was found before, and OutOfTime follows."""
    run.report.doing(f"{name} {dtype}")
    row = {"model": name, "dtype": dtype, "sequences": len(ids.lengths)}
    cut_off = None
    try:
        got = vectors_of(run, folder, ids, dtype)
        want = reference.vectors()
        if want is not None:
            figures = vectors.compare(got, want)
            row.update(figures)
            row["good"] = vectors.good(figures, dtype)
        row["same_bits"] = same_in_company(run, folder, ids, dtype, got)
        bad = not row["same_bits"]
    except OutOfTime as reason:
        cut_off, bad = reason, False
        row["note"] = str(reason)
    except Exception as failure:  # costs its own row
        row["note"] = str(failure)[:400]
        bad = True
    bad |= judge and not row.get("good", True)
    row["verdict"] = ("FAILED" if bad else "cut off" if cut_off
                      else "bits only" if "good" not in row
                      else "passed" if judge else "told, not judged")
    run.report.row(**row)
    if cut_off:
        raise cut_off
    cosine = row.get("min_cosine", "none")
    return (f"{dtype} {row['verdict']} (least cosine {cosine}, same bits "
            f"{row.get('same_bits', 'unknown')})")


def vectors_of(run, folder, ids, dtype, **flags):
    worker = engine(run, folder, dtype, **flags)
    try:
        worker.feed(ids)
        worker.run()
        return worker.vectors()
    finally:
        worker.close()


def same_in_company(run, folder, ids, dtype, got):
    """Shuffled, in batches of 1024 tokens; then a few alone."""
    order = np.random.default_rng(1).permutation(len(ids.sequences))
    shuffled = run.given_ids("shuffled", [ids.sequences[i] for i in order])
    worker = engine(run, folder, dtype, batch_tokens=1024)
    try:
        worker.feed(shuffled)
        if not vectors.same_bits(worker.vectors(), got[order]):
            return False
        for index in range(min(8, len(ids.sequences))):
            worker.feed(run.given_ids("alone", [ids.sequences[index]]))
            if not vectors.same_bits(worker.vectors(), got[index:index + 1]):
                return False
        return True
    finally:
        worker.close()


def fp8(run):
    """Cosines with products in fp8; bits in any batch.

    Random weights double the error of 8 bits every two layers, so that their
    cosine is told, and only the given model's on texts is judged.
    """
    run.need_fp8()
    folder = run.model_folder("d32-gelu", models.config_of("minilm"))
    ids = mixed_ids(run, folder)
    told, lacks = [], []

    def judge(name, folder, ids, **how):
        reference = Reference(run, folder, ids)
        try:
            told.append(compare(run, name, folder, ids, reference, "fp8",
                                **how))
            reference.vectors()
        finally:
            lacks.extend(reference.lacks())
            reference.close()

    try:
        judge("random", folder, ids, judge=False)
        if run.model:
            judge("given", str(run.model), ids_of_texts(run))
    except OutOfTime as reason:
        judged([*told, f"cut off: {reason}"], lacks)
        raise
    return judged(told, lacks)


def ids_of_texts(run):
    """The given model's tokens of texts."""
    sequences = []
    run.call("tokens", run.worker_command(
        "tokens", f"--model={run.model}",
        f"--texts={12 if run.quick else 1000}"), 60,
        lambda line: sequences.append(list(map(int, line.split()))),
        run.worker_environment)
    if not sequences:
        raise RuntimeError("no ids of texts, see tokens.log")
    return run.given_ids("texts", sequences)


def kept_algorithms(run):
    """Timed at the first start only, in a file for each library; one that is
    damaged is made again."""
    ids = run.ids("tuned", [1, 16, 100, 512])
    folder = run.scratch / "tuning-check"
    shutil.rmtree(folder, ignore_errors=True)

    def start():
        found = vectors_of(run, "minilm", ids, run.dtypes[-1], tuning=folder)
        return found, {f: f.read_bytes() for f in folder.glob("*.tuning")}

    first, files = start()
    if not run.on_card:
        if files:
            raise RuntimeError(f"the CPU wrote {files}")
        return "the CPU has none"
    if not files:
        raise RuntimeError(f"no file in {folder}")
    again, files_again = start()
    if files != files_again or not vectors.same_bits(first, again):
        raise RuntimeError("another choice, or other bits, at the second start")
    for path, content in files.items():
        path.write_bytes(content[:-30])
    _, repaired = start()
    if repaired.keys() != files.keys() or not all(
            content.endswith(b"\n") for content in repaired.values()):
        raise RuntimeError("a damaged file was not replaced")
    return ", ".join(f"{path.name}: {content.count(b' bias ')} with bias"
                     for path, content in files.items())


def several(run):
    """Sessions side by side, on the card named or, of "cuda", on every card
    that the engine sees: the bits of one alone."""
    cards = visible_cards(run) if run.on_card else 0
    everywhere = run.device == "cuda" and cards > 1
    device = "cuda:all" if everywhere else run.device
    sessions = 2 * cards if everywhere else 2
    ids = run.ids("several", workloads.lengths_of("mix", 4000))
    found = [vectors_of(run, "minilm", ids, run.dtypes[-1], threads=threads,
                        batch_tokens=512, device=where)
             for threads, where in ((1, run.device), (sessions, device))]
    if not vectors.same_bits(*found):
        raise RuntimeError(f"other bits from {sessions} sessions on {device}")
    return f"{sessions} sessions on {device}" + (
        f"; the engine sees {cards} cards" if run.on_card else "")


def visible_cards(run):
    """From the engine's refusal of a card that is not there: nvidia-smi also
    names cards that CUDA_VISIBLE_DEVICES hides."""
    code, log = run.call("no-such-card", [
        run.program("engine_bench"), "--device=cuda:99999"], 40)
    told = re.search(r"cuda:99999 does not exist; (\d+) devices", log)
    if code == 0 or not told:
        raise RuntimeError("cuda:99999 was not refused by the count of cards, "
                           "see no-such-card.log")
    return int(told.group(1))
