"""A bundle of stand-ins around the real tests/gpu.sh, and runs of it."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKES = pathlib.Path(__file__).with_name("gpu_script_fakes.py")
TESTS = ("gpu_row_op_test", "gpu_attention_op_test", "gpu_fp8_op_test",
         "gpu_cutlass_op_test", "gpu_whole_model_test",
         "gpu_full_batch_test")
PROGRAMS = ("engine_bench", "card_bench", "encoderd", "grpc_bench", *TESTS)
ROW = re.compile(rb"^gpu\.sh: row written: (\d+) (\{.*\})$", re.MULTILINE)


class Bundle:
    """folder/bundle as deploy/bundle.sh packs it; folder/path for PATH."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "bundle"
        self.out = self.folder / "report"
        (self.root / "tests/bench").mkdir(parents=True)
        shutil.copy(ROOT / "tests/gpu.sh", self.root / "tests/gpu.sh")
        shutil.copytree(ROOT / "tests/bench/gpu", self.root / "tests/bench/gpu",
                        ignore=shutil.ignore_patterns("__pycache__"))
        for name in PROGRAMS:
            self.stand_in(self.root / "bin" / name)
        for name in ("nvidia-smi", "compute-sanitizer"):
            self.stand_in(self.folder / "path" / name)
        self.worker = self.folder / "worker.py"
        self.stand_in(self.worker)

    @staticmethod
    def stand_in(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable} -S\n{FAKES.read_text()}")
        path.chmod(0o755)

    def use_real(self, program, name):
        (self.root / "bin" / name).unlink()
        (self.root / "bin" / name).symlink_to(program)

    def command(self, *arguments):
        """A later --out stands for the first."""
        return [self.root / "tests/gpu.sh", f"--out={self.out}", "--quick",
                "--tiny", f"--worker={self.worker}", *arguments]

    def start(self, *arguments, misdeeds="", **environment):
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=self.environment(
                misdeeds, **environment))

    def environment(self, misdeeds, **more):
        return {**os.environ, "ENCODERD_TEST_PYTHON": sys.executable,
                "FAKE_MISDEEDS": misdeeds, "GPU_SCRIPT_MARK": str(self.folder),
                "PATH": f"{self.folder}/path:{os.environ['PATH']}", **more}

    def report(self):
        """gpu.json, by a parser that takes only what JSON allows."""
        def refuse(word):
            raise ValueError(f"{word} is no JSON")
        return json.loads((self.out / "gpu.json").read_text(),
                          parse_constant=refuse)

    def left_over(self):
        """Processes of this bundle that live, by the mark they inherited."""
        mark = f"GPU_SCRIPT_MARK={self.folder}".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
        return found

    def wait_for_nobody(self, seconds=10):
        until = time.monotonic() + seconds
        while self.left_over() and time.monotonic() < until:
            time.sleep(0.02)
        return self.left_over()


class BundleTest(unittest.TestCase):
    """A bundle for each test, and runs that must leave nothing behind."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = Bundle(folder.name)

    def run_script(self, *arguments, misdeeds="", code=0, **environment):
        """The report; by then nothing runs any more and no scratch is left."""
        script = self.bundle.start(*arguments, misdeeds=misdeeds, **environment)
        said = script.communicate(timeout=200)[0].decode(errors="replace")
        if code is not None:
            self.assertEqual(code, script.returncode, said)
        self.said, self.code = said, script.returncode
        self.assertEqual([], self.bundle.wait_for_nobody())
        self.assertFalse((self.bundle.folder / "report.scratch").exists())
        return self.bundle.report()

    def run_hurried(self, check, *arguments, code=0, **options):
        """check(report) of a run with short limits. Where it fails, a busy
        machine may have cut off what behaves: again with longer limits, up to
        the script's own."""
        for patience in (0.06, 0.25, 1):
            report = self.run_script(*arguments, f"--patience={patience}",
                                     code=None, **options)
            try:
                self.assertEqual(code, self.code, self.said)
                check(report)
                return
            except AssertionError:
                if patience == 1:
                    raise

    @staticmethod
    def status(report):
        return {step["step"]: step["status"] for step in report["steps"]}

    def only_failed(self, report, *names):
        failed = [name for name, status in self.status(report).items()
                  if status == "FAILED"]
        self.assertEqual(sorted(names), sorted(failed), report["steps"])


def killed_run(bundle, seconds, after_rows=0):
    """Kills the script `seconds` after it announced `after_rows` rows; returns
    what it announced, and what of that its report lost."""
    shutil.rmtree(bundle.out, ignore_errors=True)
    script = bundle.start("--device=cuda")
    said = b""
    while len(ROW.findall(said)) < after_rows:
        line = script.stdout.readline()
        if not line:
            break  # it ended first
        said += line
    time.sleep(seconds)
    script.kill()
    said += script.communicate(timeout=60)[0]
    announced = [(int(n), json.loads(row)) for n, row in ROW.findall(said)]
    if not (bundle.out / "gpu.json").exists():
        # Killed before the script wrote its first, empty report.
        return announced, announced
    rows = bundle.report()["rows"]
    return announced, [row for number, row in announced
                       if rows[number - 1:number] != [row]]


def kill_many(count, folder, seed=None):
    """Kills as many runs at random times; a word on each that lost a row, or
    on what made the kills show nothing."""
    bundle = Bundle(folder)
    chance = random.Random(seed)
    faults, told, reports = [], 0, 0
    try:
        whole = duration(bundle)
    except RuntimeError as failure:
        return {"kills": 0, "reports": 0, "rows": 0, "faults": [str(failure)]}
    for _ in range(count):
        seconds = chance.uniform(0.1, whole)
        try:
            announced, lost = killed_run(bundle, seconds)
        except ValueError as failure:
            faults.append(f"after {seconds:.2f} s: {failure}")
            continue
        told += len(announced)
        reports += (bundle.out / "gpu.json").exists()
        faults += [f"after {seconds:.2f} s: lost {row}" for row in lost]
        left = bundle.wait_for_nobody()
        faults += [f"after {seconds:.2f} s: still runs {who}" for who in left]
    if not told or not reports:
        faults.append(f"{count} kills left {reports} reports and {told} rows")
    return {"kills": count, "reports": reports, "rows": told,
            "faults": faults}


def duration(bundle):
    """Seconds of a run that nobody kills; RuntimeError where it fails."""
    started = time.monotonic()
    script = bundle.start("--device=cuda")
    said = script.communicate(timeout=300)[0]
    if script.returncode != 0 or not ROW.search(said):
        raise RuntimeError(
            f"a run that nobody kills: exit {script.returncode}, "
            f"{len(ROW.findall(said))} rows; it ends in "
            f"{said.decode(errors='replace')[-200:]!r}")
    return time.monotonic() - started


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        result = kill_many(int(sys.argv[1]), place)
    print(json.dumps(result))
    sys.exit(1 if result["faults"] else 0)
