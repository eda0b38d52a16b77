"""What tests/gpu.sh runs: every check and measurement, one report.

Writes gpu.json and gpu.md. A step that fails is told and the next one runs; a
step that cannot run here says why.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers

import fp8_error
import gpu_torch
from gpu_latency import measure_latency
from gpu_run import Engine, NotRun, Run

# Gates: largest difference in fp32, least cosine in 16 bits.
FP32_DIFFERENCE = 1e-5
LEAST_COSINE = {"fp16": 0.999, "bf16": 0.999, "fp8": 0.99}
# FLOP/s of one H200, to quote shares of.
PEAK_TFLOPS = {"bf16": 790.0, "fp16": 790.0, "fp8": 1580.0}


def tests(run, name):
    if not run.on_card:
        raise NotRun("needs a card")
    code, log = run.call(name, [run.program(name)])
    if code == 77:
        raise NotRun(log.strip().splitlines()[-1])
    if code != 0:
        raise RuntimeError(f"exit {code}, see {name}.log")
    return re.findall(r"\[  PASSED  \] (.*)", log)[-1]


def sanitizer(run, tool):
    program = shutil.which("compute-sanitizer")
    if not run.on_card or not program:
        raise NotRun("needs a card and compute-sanitizer")
    small = ("*EveryHeadSize*:*InPlace*:*ThreeTables*:*ZeroVector*:"
             "*InAnyCompany*:*KeepsZeros*")
    found = []
    for name in ("gpu_attention_op_test", "gpu_row_op_test",
                 "gpu_fp8_op_test"):
        code, log = run.call(
            f"{tool}-{name}",
            [program, f"--tool={tool}", "--error-exitcode=9",
             run.program(name), f"--gtest_filter={small}"])
        if "not supported" in log and code != 0:
            raise NotRun("compute-sanitizer refuses this device")
        if code != 0:
            raise RuntimeError(f"exit {code}, see {tool}-{name}.log")
        found.append(re.findall(r"=+ (.*SUMMARY.*)", log)[-1])
    return "; ".join(found)


def goldens(run):
    """Random models of every head size and activation, and a bias in attention."""
    told = []
    count = 12 if run.quick else 1000
    cases = {
        "d32 gelu": gpu_torch.config_of("minilm", num_hidden_layers=6),
        "d64 gelu_new": gpu_torch.config_of(
            "bert-base", num_hidden_layers=2, hidden_act="gelu_new"),
        "d128 relu": gpu_torch.config_of(
            "minilm", num_attention_heads=3, hidden_act="relu"),
        "mpnet": gpu_torch.mpnet_config(),
    }
    with tempfile.TemporaryDirectory() as folder:
        models = {}
        for number, (name, config) in enumerate(cases.items()):
            path = os.path.join(folder, str(number))
            models[name] = (path, gpu_torch.write_model(config, path))
        if run.model:
            models["given"] = (run.model, gpu_torch.load_model(run.model))
        for name, (path, model) in models.items():
            lengths = gpu_torch.lengths_of("mix", count * 40)[:count]
            lengths[:4] = [1, 2, 511, 512]
            ids = gpu_torch.random_ids(lengths, model.config.vocab_size)
            want = gpu_torch.vectors(model, ids)
            for dtype in run.dtypes:
                told.append(compare(run, f"{name} {dtype}", path, ids, want,
                                    dtype))
    return "; ".join(told)


def fp8(run):
    """Cosines with products in fp8; bits in any company.

    Random weights double the error of 8 bits every two layers, so that their
    cosine is told, and only the given model's on texts is judged.
    """
    if run.no_fp8:
        raise NotRun(run.no_fp8)
    count = 12 if run.quick else 1000
    lengths = gpu_torch.lengths_of("mix", count * 40)[:count]
    lengths[:4] = [1, 2, 511, 512]
    ids = gpu_torch.random_ids(lengths)
    with tempfile.TemporaryDirectory() as folder:
        model = gpu_torch.write_model(gpu_torch.config_of("minilm"), folder)
        told = compare(run, "random fp8", folder, ids,
                       gpu_torch.vectors(model, ids), "fp8", judged=False)
    if not run.model:
        return told
    ids = fp8_error.ids_of(run.model, fp8_error.texts_of(count, 1))
    model = gpu_torch.load_model(run.model)
    return f"{told}; " + compare(run, "given fp8", run.model, ids,
                                 gpu_torch.vectors(model, ids), "fp8")


def compare(run, name, path, ids, want, dtype, judged=True):
    engine = Engine(run, path, ids, dtype)
    got = engine.vectors()
    engine.close()
    # The same in another order and in batches of another size: same bits.
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(1))
    engine = Engine(run, path, [ids[i] for i in order], dtype,
                    batch_tokens=1024)
    again = engine.vectors()
    engine.close()
    if not torch.equal(again.view(torch.int32),
                       got[order].contiguous().view(torch.int32)):
        raise RuntimeError(f"{name}: other bits in other company")
    difference = (got - want).abs().max().item()
    cosines = torch.nn.functional.cosine_similarity(
        got.double(), want.double())
    told = (f"{name}: max |d| {difference:.1e}, min cosine "
            f"{cosines.min().item():.6f}, mean {cosines.mean().item():.6f}")
    good = (difference <= FP32_DIFFERENCE if dtype == "fp32"
            else cosines.min().item() >= LEAST_COSINE[dtype])
    if judged and not good:
        raise RuntimeError(told)
    return told


def kept_algorithms(run):
    """Timed at the first start only; a file that is damaged is made anew."""
    ids = gpu_torch.random_ids([1, 16, 100, 512])
    dtype = run.dtypes[-1]
    folder = run.out / "tuning-check"
    shutil.rmtree(folder, ignore_errors=True)

    def start():
        engine = Engine(run, "minilm", ids, dtype, tuning=folder)
        vectors = engine.vectors()
        engine.close()
        files = list(folder.glob("*.tuning"))
        return vectors.view(torch.int32), {f: f.read_bytes() for f in files}

    vectors, files = start()
    if not run.on_card:
        if files:
            raise RuntimeError(f"the CPU wrote {files}")
        return "the CPU has none"
    if len(files) != 1:
        raise RuntimeError(f"{len(files)} files in {folder}")
    again, files_again = start()
    if files != files_again or not torch.equal(vectors, again):
        raise RuntimeError("another choice, or other bits, at the second start")
    path = next(iter(files))
    path.write_bytes(files[path][:-30])
    _, repaired = start()
    if not repaired[path].endswith(b"\n") or len(repaired) != 1:
        raise RuntimeError("a damaged file was not replaced")
    return f"{path.name}: {files[path].count(b' bias ')} with bias"


def several(run):
    """Sessions side by side, on every card there is: the bits of one alone."""
    cards = torch.cuda.device_count() if run.on_card else 0
    device = "cuda:all" if cards > 1 else run.device
    sessions = 2 * max(cards, 1)
    ids = gpu_torch.random_ids(gpu_torch.lengths_of("mix", 4000))
    dtype = run.dtypes[-1]
    found = []
    for threads, where in ((1, run.device), (sessions, device)):
        engine = Engine(run, "minilm", ids, dtype, threads=threads,
                        batch_tokens=512, device=where)
        found.append(engine.vectors().view(torch.int32))
        engine.close()
    if not torch.equal(*found):
        raise RuntimeError(f"other bits from {sessions} sessions on {device}")
    if run.on_card:
        code, log = run.call("no-such-card", [
            run.program("engine_bench"), f"--device=cuda:0,cuda:{cards}"])
        if code == 0 or f"cuda:{cards} is not there; {cards} dev" not in log:
            raise RuntimeError("a card that is not there, see no-such-card.log")
    return f"{sessions} sessions on {device}"


def median(times):
    return statistics.median(times), min(times), max(times)


def baselines(run):
    """(name, how to make it) of what is installed here."""
    if not run.on_card:
        return [("transformers sdpa fp32", torch.float32, "sdpa", False)]
    kinds = [("transformers sdpa bf16", torch.bfloat16, "sdpa", False),
             ("transformers sdpa fp16", torch.float16, "sdpa", False)]
    try:
        import flash_attn  # noqa: F401
        kinds.append(("transformers flash bf16", torch.bfloat16,
                      "flash_attention_2", False))
    except ImportError:
        pass
    if not run.quick:
        kinds.append(("torch.compile sdpa bf16", torch.bfloat16, "sdpa", True))
    return kinds


def speed(run, name):
    """Engine and baselines on the same ids, interleaved."""
    dtype = "bf16" if run.on_card else "fp32"
    tokens = 1 << (20 if run.on_card and not run.quick else 12)
    repeats = 2 if run.quick else 5
    others = {}
    for kind, precision, attention, compiled in baselines(run):
        if compiled and name != "bert-base":
            continue  # compiling takes a minute for each
        try:
            others[kind] = gpu_torch.Baseline(
                name, precision, attention, compiled,
                device="cuda" if run.on_card else "cpu",
                max_tokens=65536 if run.on_card else 2048)
        except Exception as failure:
            run.rows.append({"model": name, "what": kind,
                             "note": str(failure)[:200]})
    for workload in ("16", "128", "512", "normal", "mix"):
        lengths = gpu_torch.lengths_of(workload, tokens)
        ids = gpu_torch.random_ids(lengths)
        engine = Engine(run, name, ids, dtype)
        times = {f"encoderd {dtype}": []}
        runners = {f"encoderd {dtype}": engine.run}
        if run.on_card:
            timed = Engine(run, name, ids, dtype, tuning=run.tuning)
            times[f"encoderd {dtype}, timed algorithms"] = []
            runners[f"encoderd {dtype}, timed algorithms"] = timed.run
        if not run.no_fp8:
            eight = Engine(run, name, ids, "fp8", tuning=run.tuning)
            times["encoderd fp8, timed algorithms"] = []
            runners["encoderd fp8, timed algorithms"] = eight.run
        for kind, other in others.items():
            other.prepare(ids)
            other.run()  # warms up
            runners[kind] = other.run
            times[kind] = []
        for _ in range(repeats):
            for kind, runner in runners.items():
                times[kind].append(runner())
        engine.close()
        if run.on_card:
            timed.close()
        if not run.no_fp8:
            eight.close()
        layers, h, _, f = gpu_torch.SHAPES[name]
        flops = sum(layers * n * (2 * (4 * h * h + 2 * h * f) + 4 * n * h)
                    for n in lengths)
        for kind, seconds in times.items():
            middle, low, high = median(seconds)
            row = {"model": name, "workload": workload, "what": kind,
                   "tokens_per_second": round(sum(lengths) / middle),
                   "min": round(sum(lengths) / high),
                   "max": round(sum(lengths) / low)}
            if run.on_card:
                peak = PEAK_TFLOPS["fp8" if " fp8" in kind else dtype]
                row["share_of_peak"] = round(flops / middle / peak / 1e12, 3)
            run.rows.append(row)
    if run.no_fp8:
        run.rows.append({"model": name, "what": "encoderd fp8",
                         "note": f"not run: {run.no_fp8}"})
    for kind in [dtype] + ([] if run.no_fp8 else ["fp8"]):
        measure_latency(run, name, kind, repeats)
    return f"{len(others)} baselines beside it"


def served(run, name):
    """The server over loopback, 64 inputs of ids a call."""
    dtype = "bf16" if run.on_card else "fp32"
    with tempfile.TemporaryDirectory() as folder:
        gpu_torch.write_model(gpu_torch.config_of(name), folder)
        with open(run.out / f"served-{name}.log", "w+",
                  encoding="utf-8") as log:
            server = subprocess.Popen(
                [run.program("encoderd"), f"--model={folder}",
                 f"--device={run.device}", f"--dtype={dtype}",
                 f"--tuning_folder={run.tuning}",
                 "--listen=127.0.0.1:0", "--http_listen="],
                stdout=log, stderr=log, env=run.environment)
            try:
                port = serving_port(server, log.name)
                rates = []
                for lengths in ("128", "mix"):
                    bench = subprocess.run(
                        [run.program("grpc_bench"),
                         f"--target=127.0.0.1:{port}", "--ids",
                         f"--lengths={lengths}",
                         f"--in_flight={32 if run.on_card else 2}",
                         f"--seconds={3 if run.quick else 8}"],
                        capture_output=True, text=True, check=True,
                        env=run.environment, timeout=120)
                    told = json.loads(bench.stdout.splitlines()[-1])
                    run.rows.append({"model": name, "workload": lengths,
                                     "what": f"encoderd {dtype} over gRPC",
                                     **told})
                    rates.append(str(told.get("tokens_per_s")))
            finally:
                server.terminate()
                code = server.wait(60)
    if code != 0:
        raise RuntimeError(f"the server left with {code}")
    return f"tokens/s: {', '.join(rates)}"


def serving_port(server, log, timeout=180):
    """The port, once the model is served."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and server.poll() is None:
        text = pathlib.Path(log).read_text(errors="replace")
        found = re.search(r'grpc"?[=:]\s*"?127\.0\.0\.1:(\d+)', text)
        if found and re.search(r"\bserving\b", text):
            return int(found.group(1))
        time.sleep(0.1)
    raise RuntimeError(f"the server does not serve, see {log}")


def report(run, facts):
    failed = any(step["status"] == "FAILED" for step in run.steps)
    (run.out / "gpu.json").write_text(json.dumps(
        {"facts": facts, "steps": run.steps, "rows": run.rows}, indent=1))
    lines = ["| step | status | seconds | |", "|---|---|---|---|"]
    lines += [f"| {s['step']} | {s['status']} | {s['seconds']} | "
              f"{str(s['detail']).replace('|', ' ')} |" for s in run.steps]
    keys = list(dict.fromkeys(key for row in run.rows for key in row))
    lines += ["", "| " + " | ".join(keys) + " |", "|---" * len(keys) + "|"]
    lines += ["| " + " | ".join(str(row.get(key, "")) for key in keys) + " |"
              for row in run.rows]
    lines += ["", *(f"- {key}: {value}" for key, value in facts.items())]
    (run.out / "gpu.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", default="gpu-report")
    parser.add_argument("--model", default="")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    run = Run(parser.parse_args())
    facts = {"machine": platform.platform(), "python": sys.version.split()[0],
             "torch": torch.__version__,
             "transformers": transformers.__version__,
             "card": (torch.cuda.get_device_name(0)
                      if torch.cuda.is_available() else "none"),
             "bundle": (run.root / "VERSION").read_text().split("\n")[0]}
    models = ["minilm"] if run.quick else list(gpu_torch.SHAPES)
    for name in ("gpu_row_op_test", "gpu_attention_op_test",
                 "gpu_fp8_op_test", "gpu_whole_model_test"):
        run.step(name, lambda name=name: tests(run, name))
    run.step("goldens and batch invariance", lambda: goldens(run))
    run.step("fp8 products", lambda: fp8(run))
    run.step("kept algorithms", lambda: kept_algorithms(run))
    run.step("several sessions", lambda: several(run))
    for tool in ("memcheck", "racecheck"):
        run.step(tool, lambda tool=tool: sanitizer(run, tool))
    for name in models:
        run.step(f"speed of {name}", lambda name=name: speed(run, name))
    for name in models:
        run.step(f"{name} served", lambda name=name: served(run, name))
    sys.exit(report(run, facts))


if __name__ == "__main__":
    main()
