"""A bare Debian 12 in a folder, for tests of what is installed into one. Needs
root and debootstrap. Commands there have separate processes, mounts and /proc,
which end with them."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration/container"))
from images import BUILT_IN, CACHE, Failed, debootstrap, run  # noqa: E402  after the path

BASE = CACHE / "bookworm.tar"
MODEL = "/srv/all-MiniLM-L6-v2"
# Of this machine: how pip and apt reach their indexes.
KEPT = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT",
        "http_proxy", "https_proxy", "no_proxy",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
CERTIFICATES = "/pip.pem"  # not where ca-certificates has its own
BOOT = pathlib.Path(__file__).with_name("boot.sh")
# What readelf says of a program that lies at another address in each run, has
# no writable tables of functions, and guards its stack.
HARDENED = ("Flags: NOW PIE", "BIND_NOW", "GNU_RELRO", "__stack_chk_fail")


def built(script, folder, umask=-1):
    """What this script of deploy/ builds, in the folder."""
    return pathlib.Path(subprocess.run(
        [ROOT / "deploy" / script, folder], check=True, text=True, umask=umask,
        stdout=subprocess.PIPE).stdout.strip())


def not_hardened(program):
    """What of HARDENED the program lacks."""
    said = run("readelf", "--wide", "--dyn-syms", "--dynamic",
               "--program-headers", program).stdout
    return [sign for sign in HARDENED if sign not in said]


class CleanRoot:
    """A copy of it, removed by close(). seconds: what each timed step took."""

    def __init__(self):
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            raise Failed("a bare Debian needs root and debootstrap: "
                         "deploy/install-deps.sh --containers")
        _make_base()
        self._folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._folder.name, "root")
        self.path.mkdir()
        self.seconds = {}
        try:
            run("tar", "-C", self.path, "-xpf", BASE)
            if os.environ.get("PIP_CERT"):
                self.copy(os.environ["PIP_CERT"], CERTIFICATES)
        except BaseException:
            self.close()
            raise

    def close(self):
        self._folder.cleanup()

    def copy(self, source, to):
        """A file or folder of this machine to the absolute path `to` there."""
        inside = self.path / str(to).lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if pathlib.Path(source).is_dir() else shutil.copy)(
            source, inside)
        return inside

    def run(self, *command, **options):
        """A finished command there: Failed, with its output, unless it is 0."""
        environment = {name: os.environ[name] for name in KEPT
                       if name in os.environ}
        if os.environ.get("PIP_CERT"):
            environment["PIP_CERT"] = CERTIFICATES
        return run(
            "unshare", "--mount", "--pid", "--fork", "--kill-child",
            f"--mount-proc={self.path}/proc", "chroot", self.path, *command,
            env={**environment, "HOME": "/root", "LANG": "C.UTF-8",
                 "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                 "DEBIAN_FRONTEND": "noninteractive"}, **options)

    @contextlib.contextmanager
    def timed(self, step):
        start = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - start

    def timing(self):
        """One line: the whole, then each step."""
        steps = ", ".join(f"{step} {seconds:.0f}"
                          for step, seconds in self.seconds.items())
        return f"{sum(self.seconds.values()):.0f} s ({steps})"

    def boot(self, script, timeout=300):
        """What `script` (bash) says under a systemd that runs there, without a
        network; it is powered off afterwards."""
        file = self.path / "check.sh"
        file.write_text(f"#!/bin/bash\nexec > /check.log 2>&1\n{script}\n"
                        "systemctl poweroff --force\n")
        file.chmod(0o755)
        unit = self.path / "etc/systemd/system/check.service"
        unit.write_text("[Service]\nType=oneshot\nExecStart=/check.sh\n"
                        f"TimeoutStartSec={timeout}\n")
        done = subprocess.run([BOOT, self.path, "check.service"], text=True,
                              timeout=timeout + 60, check=False,
                              stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                              stdout=subprocess.PIPE)
        log = self.path / "check.log"
        if not log.exists():
            raise Failed(f"no systemd came up:\n{done.stdout[-4000:]}")
        return log.read_text(errors="replace")


def _make_base():
    if BASE.exists():
        return
    BASE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder, "base")
        debootstrap(base)
        new = BASE.with_suffix(".new")
        run("tar", "-C", base, "-cf", new, ".")
        new.rename(BASE)
