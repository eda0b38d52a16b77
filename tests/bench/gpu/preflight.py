"""Is everything here that the run needs? If not, which thing is missing.

Also finds the folders of libraries: they are added to what LD_LIBRARY_PATH
holds already, which is never replaced.
"""

import glob
import os
import re
import shutil
import site
import sys

from child import ChildFailed, last_words
from engine import engine
from plan import OutOfTime

# Where drivers and toolkits put libraries that ldconfig may not know.
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
                  "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                  "/usr/local/cuda/compat", "/usr/lib/wsl/lib")
CUBLAS = "libcublasLt.so."


def output_of(run, name, *command):
    """(exit code, what it said); (None, why) if it did not run or end. Not
    with the bundle's libraries: it is one of the machine's own programs."""
    said = []
    try:
        code, _ = run.call(name, command, 20, said.append,
                           run.worker_environment)
    except ChildFailed as failure:
        return None, str(failure)
    return code, "\n".join(said).strip() or last_words(run.log(name))


def cublas_folders():
    """Folders of cuBLAS: of Python's packages, then the toolkit's."""
    bases = [*site.getsitepackages(), *(p for p in sys.path if p)]
    found = [os.path.dirname(path) for base in dict.fromkeys(bases)
             for path in sorted(glob.glob(os.path.join(
                 base, "nvidia", "*", "lib", CUBLAS + "*")))]
    found += [os.path.dirname(path) for path in sorted(glob.glob(
        "/usr/local/cuda*/lib64/" + CUBLAS + "*"))]
    return list(dict.fromkeys(found))


def library_path(root, known, environment):
    """LD_LIBRARY_PATH: the bundle's own folder, what it held, then folders
    of cuBLAS and of a driver that ldconfig (`known`: its text) lacks."""
    folders = [str(root / "lib")]
    folders += [f for f in environment.get("LD_LIBRARY_PATH", "").split(":")
                if f]
    folders += cublas_folders()
    if "libcuda.so.1" not in known:
        folders += [f for f in DRIVER_FOLDERS
                    if os.path.exists(os.path.join(f, "libcuda.so.1"))]
    return ":".join(dict.fromkeys(folders))


def ask_cards(run):
    """Name, compute capability and driver of each card, from nvidia-smi."""
    program = shutil.which("nvidia-smi") or shutil.which(
        "/usr/local/nvidia/bin/nvidia-smi")
    if not program:
        return "nvidia-smi is not installed"
    code, said = output_of(
        run, "nvidia-smi", program, "--format=csv,noheader",
        "--query-gpu=name,compute_cap,driver_version,memory.total")
    run.report.fact("nvidia-smi", said or f"exit {code}, says nothing")
    if code != 0:
        return f"nvidia-smi: {said or f'exit {code}'}"
    cards = [line.split(", ") for line in said.splitlines()
             if re.search(r", \d+\.\d+, ", line)]
    if not cards:
        return f"nvidia-smi names no card: {said[:120]!r}"
    number = re.search(r":(\d+)", run.device)
    card = cards[min(int(number.group(1)) if number else 0, len(cards) - 1)]
    run.no_fp8 = ("" if card[1] == "9.0" else
                  f"fp8 products need compute capability 9.0, this card has "
                  f"{card[1]}")
    return ""


def not_found(run):
    """{program: libraries that ldd does not find}."""
    lacking = {}
    for path in sorted((run.root / "bin").glob("*")):
        try:
            _, said = run.call(f"ldd-{path.name}", ["ldd", path], 20)
        except ChildFailed as failure:
            run.report.fact("ldd", failure)
            continue
        lost = re.findall(r"(\S+) => not found", said)
        lost += re.findall(r"version `\S+' not found", said)
        if lost:
            lacking[path.name] = sorted(set(lost))
    return lacking


def open_engine(run, dtype):
    """One pass over four sequences; what went wrong, or ''."""
    ids = run.ids("preflight", [1, 2, 16, 128])
    opened = engine(run, "minilm", dtype)
    try:
        opened.feed(ids)
        opened.run()
    except (ChildFailed, OutOfTime) as failure:
        return f"engine_bench does not open {run.device} in {dtype}: {failure}"
    finally:
        opened.close()
    return ""


def preflight(run):
    """Raises with every finding when no engine opens, in no dtype."""
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    _, known = output_of(run, "ldconfig", ldconfig, "-p")
    run.environment["LD_LIBRARY_PATH"] = library_path(
        run.root, known, os.environ)
    run.report.fact("LD_LIBRARY_PATH", run.environment["LD_LIBRARY_PATH"])
    findings = []
    if run.on_card:
        findings.append(ask_cards(run))
        cuda = re.findall(r"libcuda\.so\.1 .*=> (\S+)", known)
        cuda += [f for f in run.environment["LD_LIBRARY_PATH"].split(":")
                 if os.path.exists(os.path.join(f, "libcuda.so.1"))]
        run.report.fact("libcuda", ", ".join(cuda) or "not found")
        if not cuda:
            findings.append("libcuda.so.1 is neither in ldconfig -p nor in "
                            "LD_LIBRARY_PATH: is a driver installed?")
        if CUBLAS not in known and not cublas_folders():
            findings.append(f"{CUBLAS}* is neither in ldconfig -p nor next to "
                            f"{sys.executable}'s packages")
    lacking = not_found(run)
    findings += [f"{program} lacks {', '.join(names)}"
                 for program, names in lacking.items()]
    dtypes = list(dict.fromkeys([run.dtype, "fp32"]))
    closed = []
    for dtype in dtypes:
        closed.append(open_engine(run, dtype))
        if not closed[-1]:
            break
    findings = [finding for finding in [*findings, *closed] if finding]
    run.report.fact("findings", "; ".join(findings) or "none")
    if closed[-1]:
        raise RuntimeError("; ".join(findings))
    return "; ".join([f"an engine opens in {dtype}", *findings])
