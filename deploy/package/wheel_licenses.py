#!/usr/bin/env python3
"""Puts into a wheel the licenses of the libraries that auditwheel brought in,
and a list of their packages (SPDX).

    deploy/package/wheel_licenses.py [OPTION...] WHEEL OUT PROGRAM...

deploy/wheel.sh runs it. PROGRAM: those that the wheel carries, as they were
built, so that the loader of this machine says where their libraries came from.
Writes a new wheel into the folder OUT.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "deploy/image"))
import packages  # noqa: E402  after the path
import root  # noqa: E402
import sbom  # noqa: E402

# auditwheel adds some of the file's hash to the name of what it brings in.
BROUGHT_IN = re.compile(r"-[0-9a-f]{8}(?=\.so)")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--version", required=True, help="of encoderd")
    parser.add_argument("--revision", default="unknown",
                        help="commit of the sources")
    parser.add_argument("--built-in", action="append", default=[],
                        metavar="PACKAGE",
                        help="a package compiled into the programs")
    parser.add_argument("wheel", type=pathlib.Path, metavar="WHEEL")
    parser.add_argument("out", type=pathlib.Path, metavar="OUT")
    parser.add_argument("programs", nargs="+", type=pathlib.Path,
                        metavar="PROGRAM")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            add(options, pathlib.Path(folder))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"wheel_licenses.py: {error}")


def add(options, work):
    run("unpack", "--dest", work, options.wheel)
    unpacked, = work.iterdir()
    libraries = brought_in(unpacked / "encoderd.libs", options.programs)
    owners = packages.Owners()
    linked = owners.of(libraries)
    built_in = [owners.named(name) for name in options.built_in]
    licenses = unpacked / "encoderd_programs/licenses"
    for package in {*linked, *built_in}:
        root.keep_license(package, licenses)
    root.copy(ROOT / "LICENSE", licenses / "usr/share/doc/encoderd/LICENSE")
    sbom.write(unpacked / "encoderd_programs/sbom.spdx.json", options.version,
               options.revision, linked, built_in)
    options.out.mkdir(parents=True, exist_ok=True)
    run("pack", "--dest-dir", options.out, unpacked)
    print(f"wheel: {len(libraries)} libraries of {len(linked)} packages",
          file=sys.stderr)


def brought_in(folder, programs):
    """Where the files of the folder came from on this machine."""
    names = {BROUGHT_IN.sub("", file.name) for file in folder.iterdir()}
    # It takes the name at the end of the links: libgpr.so.29.0.0.
    found = [file for file in root.libraries(programs)
             if file.resolve().name in names]
    missing = names - {file.resolve().name for file in found}
    if missing:
        raise ValueError(f"{', '.join(sorted(missing))}: in the wheel, but "
                         "loaded by none of its programs here")
    return found


def run(*arguments):
    subprocess.run([sys.executable, "-m", "wheel", *map(str, arguments)],
                   check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
