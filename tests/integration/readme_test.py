#!/usr/bin/env python3
"""Runs every command of README.md and of the pages in the docs folders
(client/docs, engine/docs, server/docs) against a server that README.md starts.

Each code block on these pages follows a mark, <!-- test: KIND -->:
  serve   starts the server
  run     a shell runs it to its end
  python  the Python of the virtual environment that a `run` block made
  cpp     was compiled into readme_example; runs
  ci      .ci/run runs it (too long for one test)
A text block (```text) after a block shows lines that its output must have.
README.md comes first, then the pages by path.

The commands run in a scratch folder that looks like the checkout. Only there
do wrappers replace programs: they add the server's free ports, put the pinned
packages in reach of pip without a network.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import eventually  # noqa: E402  after the path

BLOCK = re.compile(
    r"(?:<!-- test: (?P<kind>\w+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```"
    r"(?:\n+```text\n(?P<shown>.*?)```)?", re.DOTALL)
KINDS = {"serve", "run", "python", "cpp", "ci"}


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks():
    """Kind, text and expected lines of each block, page by page."""
    pages = ["README.md"] + sorted(str(path.relative_to(ROOT))
                                   for path in ROOT.glob("*/docs/*.md"))
    found = []
    for page in pages:
        for match in BLOCK.finditer(read(page)):
            if match["kind"] not in KINDS:
                sys.exit(f"{page}: a code block without a known mark "
                         f"<!-- test: ... -->:\n{match['text']}")
            found.append((match["kind"], match["text"], match["shown"] or ""))
    for kind in KINDS:
        if kind not in [block[0] for block in found]:
            sys.exit(f"{' '.join(pages)}: no block marked <!-- test: {kind} -->")
    return found


class Scratch:
    """A folder that looks like the checkout, and a server that runs in it."""

    def __init__(self, folder, programs, model):
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.server = self.port = self.http_port = None
        python = pathlib.Path(sys.executable)
        site = next(p for p in sys.path if p.endswith("site-packages"))
        self.environment = dict(
            os.environ, PYTHONPATH=site, PIP_NO_INDEX="1",
            PIP_NO_BUILD_ISOLATION="0", PIP_DISABLE_PIP_VERSION_CHECK="1",
            PATH=f"{self.folder}/path:{os.environ['PATH']}")
        # A copy: pip builds in it.
        shutil.copytree(ROOT / "client", self.folder / "client",
                        ignore=shutil.ignore_patterns("build", "*.egg-info"))
        for name in ("proto", "LICENSE"):
            (self.folder / name).symlink_to(ROOT / name)
        self._script("build/release/bin/encoderd",
                     f'exec {programs}/encoderd "$@" '
                     '--listen=127.0.0.1:0 --http_listen=127.0.0.1:0')
        self._script("deploy/fetch-model.sh", f"echo '{model}'")
        self._script("path/python3", f'exec {python} "$@"')
        self._script("path/grpcurl", f'exec {python.parent}/grpcurl "$@"')

    def _script(self, path, line):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        file.chmod(0o755)

    def ports(self, text):
        return text.replace(":8400", f":{self.port}").replace(
            ":8401", f":{self.http_port}")

    def serve(self, command):
        log = self.folder / "server.log"
        with log.open("w") as file:
            self.server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder,
                env=self.environment, stderr=file)

        def ready():
            said = log.read_text(encoding="utf-8")
            if self.server.poll() is not None:
                sys.exit(f"the server stopped: exit {self.server.returncode}\n"
                         f"{said}")
            if self.port is None:
                self._find_ports(said)
            return self.port is not None and self._ready()

        eventually(ready, "the server ready")

    def _find_ports(self, log):
        match = re.search(r"event=listening grpc=\S+:(\d+) http=\S+:(\d+)\n",
                          log)
        if not match:
            return
        self.port, self.http_port = match.groups()
        self.environment["README_TARGET"] = f"127.0.0.1:{self.port}"
        self._script("build/release/bin/encoderctl",
                     f'command=$1; shift; exec {self.programs}/encoderctl '
                     f'"$command" --target=127.0.0.1:{self.port} "$@"')

    def _ready(self):
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.http_port}/readyz", timeout=30):
                return True
        except OSError:
            return False

    def run(self, command, shown):
        print(f"$ {' '.join(command)[:2000]}", flush=True)
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=600,
            check=False)
        print(done.stdout[:2000], flush=True)
        if done.returncode != 0:
            sys.exit(f"failed with exit status {done.returncode}")
        for line in filter(None, map(str.strip, shown.splitlines())):
            if line not in done.stdout:
                sys.exit(f"the page shows a line that is not in the output: {line}")

    def stop(self):
        if self.server:
            self.server.terminate()
            if self.server.wait(timeout=60) != 0:
                sys.exit(f"TERM: exit status {self.server.returncode}")


def check_ci(text):
    ci = read(".ci/run")
    for line in text.splitlines():
        if line not in ci:
            sys.exit(f".ci/run does not run `{line}`")


def check_flags(page, encoderd):
    """The table of flags and --help name the same flags and defaults; --help
    says what each costs."""
    shown = subprocess.run([encoderd, "--help"], text=True, timeout=60,
                           stdout=subprocess.PIPE, check=False).stdout
    flags = dict(re.findall(r"^    --(\w+) \(.*?default: \"?(.*?)\"?;$", shown,
                            re.DOTALL | re.MULTILINE))
    table = dict(re.findall(r"^\| `--(\w+)` \| (.*?) ?\|", read(page),
                            re.MULTILINE))
    table.pop("flagfile")  # Abseil's own
    if not flags or flags != table:
        sys.exit(f"flags of --help: {flags}\nflags of {page}: {table}")
    told = re.findall(r"^    --(\w+) \((.*?)\);\s+default:", shown,
                      re.DOTALL | re.MULTILINE)
    silent = [name for name, text in told if not re.search(r"\bCost\b", text)]
    if len(told) != len(flags) or silent:
        sys.exit(f"--help explains {len(told)} of {len(flags)} flags and says "
                 f"no cost of: {silent}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True,
                        help="folder of encoderd, encoderctl, readme_example")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.programs).resolve()
    model = os.environ.get("ENCODERD_TEST_MODEL")
    if not model:
        sys.exit("ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh "
                 "fetches one, tests/run.sh sets it")
    check_flags("server/docs/flags.md", programs / "encoderd")
    found = blocks()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(folder, programs, model)
        try:
            for kind, text, shown in sorted(found, key=lambda b: b[0] != "serve"):
                if kind == "serve":
                    scratch.serve(text.strip())
                    continue
                text = scratch.ports(text)
                if kind == "run":
                    scratch.run(["bash", "-euo", "pipefail", "-c", text], shown)
                elif kind == "python":
                    scratch.run([".venv/bin/python", "-c", text], shown)
                elif kind == "cpp":
                    scratch.run([f"{programs}/readme_example"], shown)
                else:
                    check_ci(text)
        finally:
            scratch.stop()
    print("every command of the pages ran")


if __name__ == "__main__":
    main()
