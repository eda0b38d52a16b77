"""Steps that measure one text alone, by CUDA graphs and without,
interleaved; both must give the same bits."""

import statistics

import vectors
from child import ChildFailed
from engine import engine
from plan import STEPS_OF, Step


def steps(run):
    return [Step(f"latency of {name}", "latency", 25,
                 lambda n=name: latency(run, n), name, ("engine_bench",))
            for name in STEPS_OF["latency"]]


def latency(run, name):
    failures = []
    for dtype in [run.dtype] + ([] if run.no_fp8 else ["fp8"]):
        kinds = {"": True}
        if run.on_card:
            kinds = {", CUDA graphs": True, ", no CUDA graphs": False}
        found = {f"encoderd {dtype}{kind}": engine(
            run, run.model_folder(name), dtype, threads=1, tuning=run.tuning,
            graphs=graphs)
            for kind, graphs in kinds.items()}
        try:
            for tokens in (16, 128):
                failures += measure(run, name, tokens, found)
        finally:
            for worker in found.values():
                worker.close()
    if failures:
        raise RuntimeError("; ".join(failures))
    return "same bits by graphs" if run.on_card else "no graphs here"


def measure(run, name, tokens, found):
    """A row for each engine; why those that failed did."""
    ids = run.ids(f"one-{tokens}", [tokens])
    repeats = (5 if not run.on_card else 50 if run.quick else 300)
    times = {what: [] for what in found}
    lost = {}

    def each(function):
        for what, worker in found.items():
            if what in lost:
                continue
            try:
                function(what, worker)
            except ChildFailed as failure:
                lost[what] = str(failure)

    run.report.doing(f"{tokens} tokens")
    each(lambda what, worker: worker.feed(ids))
    for _ in range(3):  # the third pass is the first by a graph alone
        each(lambda what, worker: worker.run())
    for _ in range(repeats):
        each(lambda what, worker: times[what].append(worker.run()))
    got = {}
    each(lambda what, worker: got.update({what: worker.vectors()}))
    first = next(iter(got.values()), None)
    for what, seconds in times.items():
        row = {"model": name, "workload": f"one text of {tokens} tokens",
               "what": what, "repeats": len(seconds)}
        if seconds:
            row.update({"milliseconds": round(
                            1e3 * statistics.median(seconds), 4),
                        "min_ms": round(1e3 * min(seconds), 4)})
        if what in got and not vectors.same_bits(first, got[what]):
            lost[what] = "other bits than by the other way, or no numbers"
        if what in lost:
            row["note"] = lost[what][:300]
        run.report.row(**row)
    return [f"{tokens} tokens, {what}: {why}" for what, why in lost.items()]
