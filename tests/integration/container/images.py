"""Builds the image of the Dockerfile without an engine, and runs it: buildah,
podman, runc, and a base that debootstrap makes where nothing can be pulled.

All of it needs root. Images lie in a separate storage, below the user's
cache; the base and the compiler's cache stay there for the next time.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                     or pathlib.Path.home() / ".cache",
                     "encoderd/containers")
STORAGE = ["--root", str(CACHE / "storage"), "--runroot", str(CACHE / "run")]
PODMAN = ["podman", *STORAGE, "--runtime", "runc", "--cgroup-manager",
          "cgroupfs", "--events-backend", "none"]
BASE = "localhost/encoderd-base:bookworm"
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
APT = ("sources.list", "sources.list.d", "apt.conf.d")
# Packages compiled into the programs.
BUILT_IN = {line for line in (ROOT / "deploy/package/built-in.txt").read_text(
    encoding="utf-8").splitlines() if not line.startswith("#")}
TOOLS = ("buildah", "podman", "runc", "debootstrap")


class Failed(Exception):
    """A command that did not do what it should; holds the end of its output."""


def run(*command, timeout=600, check=True, **options):
    done = subprocess.run(list(map(str, command)), timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit code "
                     f"{done.returncode}\n{done.stdout[-4000:]}")
    return done


def podman(*arguments, **options):
    return run(*PODMAN, *arguments, **options)


def check_tools():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise Failed(f"not installed: {', '.join(missing)}; "
                     "deploy/install-deps.sh --containers")
    if os.geteuid() != 0:
        raise Failed("debootstrap and buildah's chroot need root")


def make_base():
    """Debian 12 as the Dockerfile's base, with this machine's settings of apt."""
    if podman("image", "exists", BASE, check=False).returncode == 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder, "base")
        debootstrap(base)
        archive = pathlib.Path(folder, "base.tar")
        run("tar", "-C", base, "-cf", archive, ".")
        podman("import", "--quiet", archive, BASE)


def debootstrap(base):
    """The smallest Debian 12 into a new folder; apt's settings as above."""
    run("debootstrap", "--variant=minbase", "bookworm", base)
    if run("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"
           ).stdout.strip() == "bookworm":
        for name in APT:
            _copy(pathlib.Path("/etc/apt", name), base / "etc/apt" / name)


def _copy(source, to):
    if to.is_dir():
        shutil.rmtree(to)
    else:
        to.unlink(missing_ok=True)
    if source.is_dir():
        shutil.copytree(source, to, symlinks=True)
    elif source.exists():
        shutil.copy(source, to)


def build(tag, *arguments, dockerfile="Dockerfile", context=ROOT, **options):
    """`docker build`, where nothing is pulled."""
    return run("buildah", *STORAGE, "bud", "--isolation", "chroot", "--format",
               "docker", "--pull-never", "-t", tag, *arguments, "-f", dockerfile,
               context, timeout=3600, **options)


def inspect(image):
    return json.loads(podman("image", "inspect", image).stdout)[0]


class Container:
    """A running one, unprivileged and read-only, until close()."""

    def __init__(self, image, *arguments, options=()):
        self.id = podman(
            "run", "--detach", "--network=host", *LIMITS, "--read-only",
            "--cap-drop=ALL", "--security-opt=no-new-privileges",
            "--stop-timeout=40", *options, image, *arguments
        ).stdout.split()[-1]

    def state(self):
        return json.loads(podman("inspect", self.id).stdout)[0]["State"]

    def log(self):
        return podman("logs", self.id).stdout

    def execute(self, *command, options=(), **more):
        return podman("exec", *options, self.id, *command, check=False, **more)

    def stop(self):
        """By TERM, as `docker stop` does; the exit code."""
        podman("stop", self.id)
        return self.state()["ExitCode"]

    def close(self):
        podman("rm", "--force", "--time=0", self.id)
