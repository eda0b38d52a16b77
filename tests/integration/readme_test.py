#!/usr/bin/env python3
"""Runs every command of README.md and of the pages in the docs folders
(client/docs, engine/docs, server/docs), most against a server that README.md
starts.

Each code block on these pages follows a mark, <!-- test: KIND -->:
  serve   starts the server
  run     a shell runs it to its end
  server  its last command before the line AFTER_SERVER starts a server of this
          block; a shell runs what follows the line against it
  python  the Python of the virtual environment that a `run` block made
  cpp     was compiled into readme_example; runs
  ci      .ci/run runs it (too long for one test)
or <!-- not run: REASON -->. SERVER and FOLDER in a command stand for this host
and the model. A block that is indented instead is refused. A text block
(```text) after a block shows lines that its output must have.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import eventually  # noqa: E402  after the path

BLOCK = re.compile(
    r"(?:<!-- (?:test: (?P<kind>\w+)|not run: (?P<reason>[^\n]+)) -->\n)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)```"
    r"(?:\n+```text\n(?P<shown>.*?)```)?", re.DOTALL)
INDENTED = re.compile(r"\n\n    \S[^\n]*")
KINDS = {"serve", "run", "server", "python", "cpp", "ci"}
AFTER_SERVER = "# then, in another terminal:\n"


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks():
    """Kind, text and expected lines of each block, page by page."""
    pages = ["README.md"] + sorted(str(path.relative_to(ROOT))
                                   for path in ROOT.glob("*/docs/*.md"))
    found = []
    for page in pages:
        text = read(page)
        indented = INDENTED.search(BLOCK.sub("", text))
        if indented:
            sys.exit(f"{page}: an indented block has no mark "
                     f"<!-- test: ... -->:{indented[0]}")
        for match in BLOCK.finditer(text):
            if match["reason"]:
                continue
            if match["kind"] not in KINDS:
                sys.exit(f"{page}: a code block without a known mark "
                         f"<!-- test: ... -->:\n{match['text']}")
            found.append((match["kind"], match["text"], match["shown"] or ""))
    for kind in KINDS:
        if kind not in [block[0] for block in found]:
            sys.exit(f"{' '.join(pages)}: no block marked <!-- test: {kind} -->")
    return found


class Server:
    """A server that a page's command starts, on free ports."""

    def __init__(self, command, folder, environment):
        log = folder / "server.log"
        with log.open("w") as file:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=folder, env=environment,
                stderr=file)

        def serving():
            said = log.read_text(encoding="utf-8")
            if self._process.poll() is not None:
                sys.exit(f"the server stopped: exit {self._process.returncode}"
                         f"\n{said}")
            return re.search(r"event=listening grpc=\S+:(\d+) http=\S+:(\d+)\n"
                             r".*event=serving ", said, re.DOTALL)

        try:
            self.port, self.http_port = eventually(
                serving, "the server serving").groups()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        if self._process.wait(timeout=60) != 0:
            sys.exit(f"TERM: exit status {self._process.returncode}")

    def named_in(self, text):
        """The text with this server's ports."""
        return text.replace(":8400", f":{self.port}").replace(
            ":8401", f":{self.http_port}")


class Scratch:
    """A folder that looks like the checkout, and a server that runs in it."""

    def __init__(self, folder, programs, model):
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.model = model
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
        for name in ("build/release/bin/encoderd", "path/encoderd"):
            self._script(name, f'exec {programs}/encoderd "$@" '
                         '--listen=127.0.0.1:0 --http_listen=127.0.0.1:0')
        self._script("path/encoderctl", f'exec {programs}/encoderctl "$@"')
        self._script("deploy/fetch-model.sh", f"echo '{model}'")
        self._script("path/python3", f'exec {python} "$@"')
        self._script("path/grpcurl", f'exec {python.parent}/grpcurl "$@"')

    def _script(self, path, line):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        file.chmod(0o755)

    def serve(self, command):
        """The server of the blocks that start none, for `with`."""
        server = Server(command, self.folder, self.environment)
        self.environment["README_TARGET"] = f"127.0.0.1:{server.port}"
        self._script("build/release/bin/encoderctl",
                     f'command=$1; shift; exec {self.programs}/encoderctl '
                     f'"$command" --target=127.0.0.1:{server.port} "$@"')
        return server

    def shell(self, text, shown):
        if text.strip():
            self.run(["bash", "-euo", "pipefail", "-c", text], shown)

    def run_with_server(self, text, shown):
        """A block that starts a server, after commands that prepare it."""
        text = text.replace("SERVER", "localhost").replace("FOLDER", self.model)
        start, _, calls = text.replace("\\\n", " ").partition(AFTER_SERVER)
        prepare, _, command = start.strip().rpartition("\n")
        self.shell(prepare, "")
        with Server(command, self.folder, self.environment) as server:
            self.shell(server.named_in(calls), shown)

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
    serves = [text for kind, text, _ in found if kind == "serve"]
    if len(serves) != 1:
        sys.exit(f"{len(serves)} blocks are marked <!-- test: serve -->")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(folder, programs, model)
        with scratch.serve(serves[0].strip()) as server:
            for kind, text, shown in found:
                if kind == "run":
                    scratch.shell(server.named_in(text), shown)
                elif kind == "server":
                    scratch.run_with_server(text, shown)
                elif kind == "python":
                    scratch.run([".venv/bin/python", "-c",
                                 server.named_in(text)], shown)
                elif kind == "cpp":
                    scratch.run([f"{programs}/readme_example"], shown)
                elif kind == "ci":
                    check_ci(text)
    print("every command of the pages ran")


if __name__ == "__main__":
    main()
