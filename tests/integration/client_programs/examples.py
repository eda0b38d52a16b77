"""Builds and runs client/examples by the commands that the READMEs give.

proto/README.md has one block under <!-- generate: LANGUAGE -->,
client/examples/README.md one under <!-- run: LANGUAGE -->, whose last line runs
the program. They run in a scratch copy, by bash. Where ENCODERD_TEST_CHROOT
names a root folder of Debian (debian13.sh makes one), they run in it.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHROOT = os.environ.get("ENCODERD_TEST_CHROOT")
ADDRESS = "localhost:8400"
# As root in separate namespaces, so that nothing stays mounted.
ENTER = ('mount -t proc proc "$0/proc" && exec chroot "$0" '
         'env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/bin:/bin '
         'bash -c "$1"')


def block(page, mark):
    """The code under <!-- mark --> of a page of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    match = re.search(rf"<!-- {mark} -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert match, f"{page}: no block under <!-- {mark} -->"
    return match[1]


def languages(page, kind):
    """Those that a page has a block for."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"<!-- {kind}: (\w+) -->", text)


class Scratch:
    """A folder with proto/ and client/examples, in which commands run."""

    def __init__(self):
        below = f"{CHROOT}/tmp" if CHROOT else None
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=below))
        shutil.copytree(ROOT / "proto", self.folder / "proto")
        shutil.copytree(ROOT / "client/examples",
                        self.folder / "client/examples",
                        ignore=shutil.ignore_patterns("target", "Cargo.lock"))

    def run(self, commands):
        inside = self.folder
        if CHROOT:
            inside = pathlib.Path("/", self.folder.relative_to(CHROOT))
        script = f"set -euo pipefail\ncd {shlex.quote(str(inside))}\n{commands}"
        command = ["bash", "-c", script]
        if CHROOT:
            command = ["unshare", "--mount", "--pid", "--fork", "--kill-child",
                       "bash", "-c", ENTER, CHROOT, script]
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(command, timeout=1500, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, PATH=path,
                                       LC_ALL="C.UTF-8"))

    def must_run(self, commands):
        done = self.run(commands)
        assert done.returncode == 0, (
            f"{commands}\n{done.stdout}{done.stderr}\nIf a program is missing: "
            "deploy/install-deps.sh --tests")

    def generate(self, language):
        self.must_run(block("proto/README.md", f"generate: {language}"))

    def close(self):
        shutil.rmtree(self.folder)


class Example:
    """The program of a language, generated and built."""

    def __init__(self, language):
        self.scratch = Scratch()
        try:
            self._build(language)
        except BaseException:
            self.close()
            raise

    def _build(self, language):
        if language in languages("proto/README.md", "generate"):
            self.scratch.generate(language)
        lines = block("client/examples/README.md",
                      f"run: {language}").splitlines()
        *build, self.start = lines
        assert ADDRESS in self.start, f"does not name {ADDRESS}: {self.start}"
        self.settings = "\n".join(
            line for line in build if re.match(r"export |\w+=", line))
        self.scratch.must_run("\n".join(build))

    def run(self, target):
        start = self.start.replace(ADDRESS, target)
        return self.scratch.run(f"{self.settings}\n{start}")

    def close(self):
        self.scratch.close()
