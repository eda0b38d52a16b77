"""Generates the messages of the contract while the package is built.

encoder.proto, service_config.json, client_settings.json and LICENSE stand
elsewhere in the repository, once for all languages. A source distribution
carries copies, so that it builds on its own. Nothing generated is kept in the
source tree, but for an editable install.

ENCODERD_PROGRAMS names a folder with the programs encoderd and encoderctl: the
package then carries them and is a wheel of this platform (deploy/wheel.sh).
Without it the package is the client alone, for any platform.
"""

import contextlib
import os
import pathlib
import re
import shutil
import tempfile

import grpc_tools
from grpc_tools import protoc
from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTO = "encoderd/v1/encoder.proto"
# What PROTO imports; its Python is that of googleapis-common-protos.
IMPORTED = "google/rpc/status.proto"
# google/protobuf/*.proto come with protoc.
WELL_KNOWN = pathlib.Path(grpc_tools.__file__).parent / "_proto"
CONFIGS = ("service_config.json", "client_settings.json")
LICENSE = "LICENSE"
PROGRAMS = os.environ.get("ENCODERD_PROGRAMS")
NAMES = ("encoderd", "encoderctl")


def first_with(name, folders):
    for folder in folders:
        if (folder / name).is_file():
            return folder
    raise SystemExit(f"setup.py: {name} is in none of {folders}")


PROTO_ROOT = first_with(PROTO, [HERE / "proto", HERE.parent.parent / "proto"])
CONFIG_ROOT = first_with(CONFIGS[0], [HERE, HERE.parent])
# In a checkout, a LICENSE here is what a build that was killed left.
IS_SDIST = (HERE / "PKG-INFO").is_file()
LICENSE_ROOT = first_with(LICENSE, [HERE if IS_SDIST else HERE.parent.parent])


def generate(out):
    """encoderd/v1 and the files of CONFIGS, below `out`."""
    code = protoc.main([
        "protoc", f"-I{PROTO_ROOT}", f"-I{WELL_KNOWN}", f"--python_out={out}",
        f"--pyi_out={out}", f"--grpc_python_out={out}", PROTO])
    if code != 0:
        raise SystemExit(f"setup.py: protoc failed on {PROTO}")
    package = pathlib.Path(out, "encoderd")
    (package / "v1/__init__.py").write_text(
        '"""Messages and stubs of encoder.proto (generated)."""\n')
    for name in CONFIGS:
        shutil.copy(CONFIG_ROOT / name, package / name)


def requirements():
    """Generated code runs with its own or a later Protobuf and gRPC."""
    with tempfile.TemporaryDirectory() as out:
        generate(out)
        generated = pathlib.Path(out, "encoderd/v1")
        protobuf = re.search(r"Protobuf Python Version: ([\d.]+)",
                             (generated / "encoder_pb2.py").read_text())
        grpcio = re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'",
                           (generated / "encoder_pb2_grpc.py").read_text())
    return [
        f"grpcio>={grpcio.group(1) if grpcio else '1.62'}",
        f"protobuf>={protobuf.group(1) if protobuf else '4.25'}",
        "googleapis-common-protos>=1.60",
        "numpy>=1.21",
    ]


class BuildPy(build_py):
    def run(self):
        editable = getattr(self, "editable_mode", False)
        if not editable:
            # pip builds in the checkout: an earlier build left it there, with
            # modules that may have been renamed since.
            for package in self.packages:
                shutil.rmtree(pathlib.Path(self.build_lib, package),
                              ignore_errors=True)
        super().run()
        generate(HERE if editable else self.build_lib)
        if PROGRAMS and not editable:
            folder = pathlib.Path(self.build_lib, "encoderd_programs/bin")
            folder.mkdir(parents=True, exist_ok=True)
            for name in NAMES:  # with their mode
                shutil.copy(pathlib.Path(PROGRAMS, name), folder / name)


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in (PROTO, IMPORTED):
            target = pathlib.Path(base_dir, "proto", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROTO_ROOT / name, target)
        for name in CONFIGS:
            shutil.copy(CONFIG_ROOT / name, pathlib.Path(base_dir, name))


class WithPrograms(Distribution):
    def has_ext_modules(self):
        return True  # files of one platform


def programs():
    """What setup() is told of the programs: any Python 3 can start them."""
    if not PROGRAMS:
        return {"packages": ["encoderd"]}
    from setuptools.command.bdist_wheel import bdist_wheel

    class BdistWheel(bdist_wheel):
        def get_tag(self):
            return ("py3", "none", super().get_tag()[2])

    return {
        "packages": ["encoderd", "encoderd_programs"],
        "distclass": WithPrograms,
        "entry_points": {"console_scripts": [
            f"{name} = encoderd_programs:{name}" for name in NAMES]},
        "cmdclass": {"bdist_wheel": BdistWheel},
    }


@contextlib.contextmanager
def license_here():
    """Setuptools takes no license from outside of the package's folder."""
    if LICENSE_ROOT == HERE:
        yield
        return
    shutil.copy(LICENSE_ROOT / LICENSE, HERE)
    try:
        yield
    finally:
        (HERE / LICENSE).unlink(missing_ok=True)


arguments = programs()
arguments.setdefault("cmdclass", {}).update(build_py=BuildPy, sdist=Sdist)
with license_here():
    setup(install_requires=requirements(), **arguments)
