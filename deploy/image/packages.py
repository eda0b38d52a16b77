"""Which package a file comes from: Debian's database, and Python's for wheels."""

import dataclasses
import functools
import importlib.metadata
import pathlib
import re
import subprocess

QUERY = ("${Package}\t${Version}\t${Architecture}\t${source:Package}\t"
         "${source:Version}\n")


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    kind: str  # "deb", "pypi"
    name: str
    version: str
    architecture: str = ""
    source: str = ""  # name and version of Debian's source package
    wheels: str = dataclasses.field(default="", compare=False)

    def licenses(self):
        """The files that say who holds which rights."""
        if self.kind == "deb":
            file = pathlib.Path("/usr/share/doc", self.name, "copyright")
            return [file] if file.exists() else []
        files = _distribution(self.wheels, self.name).files or []
        return [pathlib.Path(file.locate()) for file in files
                if re.match(r"(licen[sc]e|copying|notice)", file.name, re.I)]


class Owners:
    """Answers for this machine. wheels: a site-packages folder, or None."""

    def __init__(self, wheels=None):
        self._wheels = str(wheels.resolve()) if wheels else ""
        self._of_wheel = {}
        for one in importlib.metadata.distributions(path=[self._wheels] *
                                                    bool(self._wheels)):
            for file in one.files or []:
                self._of_wheel[str(file.locate().resolve())] = (
                    one.metadata["Name"])

    def of(self, files):
        """The packages of these files, each once, by name."""
        names = {file: _names(file) for file in files}
        run = _dpkg("--search", *sorted(set().union(*names.values())))
        of_path = {}
        for line in run.stdout.splitlines():  # libc6:amd64, other: /lib/...
            package, _, path = line.rpartition(": ")
            of_path[path] = package.split(",")[0]
        found = set()
        for file in files:
            package = self._of_wheel.get(str(file.resolve())) or next(
                (of_path[name] for name in names[file] if name in of_path), None)
            if not package:
                raise ValueError(f"{file}: belongs to no installed package, so "
                                 "nothing says how it is licensed")
            found.add(package)
        return sorted(map(self.named, found))

    def named(self, name):
        """An installed package, Debian's or a wheel."""
        run = _dpkg("--show", f"--showformat={QUERY}", name)
        if run.returncode == 0:
            package, version, architecture, *source = (
                run.stdout.splitlines()[0].split("\t"))
            return Package("deb", package, version, architecture,
                           " ".join(source))
        if self._wheels:
            try:
                return Package("pypi", name,
                               _distribution(self._wheels, name).version,
                               wheels=self._wheels)
            except importlib.metadata.PackageNotFoundError:
                pass
        raise ValueError(f"{name}: no such package is installed")

    def write_status(self, packages, folder):
        """A file for each package of Debian's, where scanners look for them."""
        folder.mkdir(parents=True)
        for package in packages:
            if package.kind == "deb":
                run = _dpkg("--status", f"{package.name}:"
                            f"{package.architecture}".removesuffix(":all"))
                (folder / package.name).write_text(run.stdout, encoding="utf-8")


def _names(file):
    """What the database may call it: /lib may be a link to /usr/lib."""
    names = {file, file.resolve(), file.parent.resolve() / file.name}
    texts = {str(name) for name in names}
    return texts | {text.removeprefix("/usr") for text in texts}


@functools.lru_cache(maxsize=None)
def _distribution(wheels, name):
    # A "." in place of "-" and "_" is the same name.
    wanted = re.sub(r"[-_.]+", "-", name).lower()
    for one in importlib.metadata.distributions(path=[wheels]):
        if re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower() == wanted:
            return one
    raise importlib.metadata.PackageNotFoundError(name)


def _dpkg(*arguments):
    return subprocess.run(["dpkg-query", *arguments], capture_output=True,
                          text=True, check=False)
