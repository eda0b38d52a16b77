"""Steps that measure the server over loopback, 64 inputs of ids a call."""

import json
import re
import time

from child import ChildFailed, last_words
from plan import STEPS_OF, Step

START = 120  # seconds until a model is served


def steps(run):
    return [Step(f"{name} served", "serve", 35 if name != "bert-large" else 45,
                 lambda n=name: served(run, n), name,
                 ("encoderd", "grpc_bench"))
            for name in STEPS_OF["serve"]]


def served(run, name):
    log = f"served-{name}"
    server = run.start(log, [
        run.program("encoderd"), f"--model={run.model_folder(name)}",
        f"--device={run.device}", f"--dtype={run.dtype}",
        f"--tuning_folder={run.tuning}", "--listen=127.0.0.1:0",
        "--http_listen="], answers=False)
    try:
        port = serving_port(run, server, run.log(log))
        told = [load(run, name, lengths, port) for lengths in ("128", "mix")]
        server.process.terminate()
        code = server.wait(run.clock.limit(30 * run.patience))
    finally:
        server.kill()
    failures = [text for text in told if not text.isdigit()]
    if code != 0:
        failures.append(f"the server left with {code}")
    if failures:
        raise RuntimeError("; ".join(failures))
    return f"tokens/s: {', '.join(told)}"


def load(run, name, lengths, port):
    """One row; tokens/s as text, or what went wrong."""
    run.report.doing(f"{lengths} over gRPC")
    row = {"model": name, "workload": lengths,
           "what": f"encoderd {run.dtype} over gRPC"}
    lines = []
    try:
        code, _ = run.call(f"grpc-{name}-{lengths}", [
            run.program("grpc_bench"), f"--target=127.0.0.1:{port}", "--ids",
            f"--lengths={lengths}",
            f"--in_flight={32 if run.on_card else 2}",
            f"--seconds={2 if run.quick else 6}"], 60, lines.append)
        row.update(json.loads(lines[0]))
        rate = row["tokens_per_s"]
        if code != 0 or row.get("errors") or not 0 < rate < float("inf"):
            raise ValueError(f"exit {code}: {' '.join(lines)[:300]}")
    except (ChildFailed, ValueError, LookupError, TypeError) as failure:
        row["note"] = f"{failure}; {' '.join(lines)[:200]}"
        run.report.row(**row)
        return f"{lengths}: {row['note']}"
    run.report.row(**row)
    return str(round(rate))


def serving_port(run, server, log):
    """The port, once the model is served."""
    until = time.monotonic() + run.clock.limit(START * run.patience)
    while server.process.poll() is None:
        text = log.read_text(errors="replace")
        found = re.search(r'grpc"?[=:]\s*"?127\.0\.0\.1:(\d+)', text)
        if found and re.search(r"\bserving\b", text):
            return int(found.group(1))
        if time.monotonic() > until:
            raise ChildFailed(f"the server does not serve: {last_words(log)}")
        time.sleep(0.05)
    raise ChildFailed(f"the server left with {server.process.returncode}: "
                      f"{last_words(log)}")
