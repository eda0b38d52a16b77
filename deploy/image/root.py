#!/usr/bin/env python3
"""Makes the whole file system of an image without a distribution: programs, the
libraries that they load, the CAs that the system trusts, the licenses of all
that, and a list of it (SPDX).

    deploy/image/root.py [OPTION...] ROOT PROGRAM...

The Dockerfile runs it in its build stages, on Debian or Ubuntu. It ends by
starting each program in ROOT, and fails where a library is missing.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

import packages
import sbom

COMMON_LICENSES = pathlib.Path("/usr/share/common-licenses")
# Where gRPC and OpenSSL look; of the package ca-certificates.
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
SBOM = "usr/share/doc/encoderd/sbom.spdx.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--version", required=True, help="of encoderd")
    parser.add_argument("--revision", default="unknown",
                        help="commit of the sources")
    parser.add_argument("--built-in", action="append", default=[],
                        metavar="PACKAGE",
                        help="a package compiled into the programs: headers, "
                        "static libraries")
    parser.add_argument("--library", action="append", default=[],
                        type=pathlib.Path, metavar="FILE",
                        help="one that programs load by name once they run")
    parser.add_argument("--wheels", type=pathlib.Path, metavar="FOLDER",
                        help="site-packages whose packages count, too")
    parser.add_argument("--license", action="append", default=[],
                        type=pathlib.Path, metavar="FILE",
                        help="another license to keep, besides LICENSE")
    parser.add_argument("root", type=pathlib.Path, metavar="ROOT",
                        help="a folder that does not exist yet")
    parser.add_argument("programs", nargs="+", type=pathlib.Path,
                        metavar="PROGRAM")
    options = parser.parse_args()
    try:
        build(options)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"root.py: {error}")


def build(options):
    root = options.root
    root.mkdir(parents=True)
    owners = packages.Owners(options.wheels)
    for folder in ("/lib", "/lib64"):  # links into /usr, as in the system's own
        if pathlib.Path(folder).is_symlink():
            (root / folder[1:]).symlink_to(pathlib.Path(folder).readlink())
    for program in options.programs:
        copy(program, root / "usr/local/bin" / program.name, mode=0o755)
    files = libraries([*options.programs, *options.library])
    for file in [*files, *options.library]:
        copy(file, root / where(file)[1:], mode=0o755)
    linked = owners.of([*files, *options.library])
    built_in = [owners.named(name) for name in options.built_in]
    contained = [trust(owners, root)]
    for package in {*linked, *built_in, *contained}:
        keep_license(package, root)
    for file in [pathlib.Path("LICENSE"), *options.license]:
        copy(file, root / "usr/share/doc/encoderd" / file.name)
    copy(pathlib.Path("/etc/os-release"), root / "etc/os-release")
    sbom.write(root / SBOM, options.version, options.revision, linked, built_in,
               contained)
    owners.write_status([*linked, *contained], root / "var/lib/dpkg/status.d")
    for program in options.programs:
        subprocess.run(["chroot", root, f"/usr/local/bin/{program.name}",
                        "--version"], check=True, stdout=subprocess.DEVNULL)
    print(f"root.py: {len(files) + len(options.library)} libraries of "
          f"{len(linked)} packages, {size(root) / 1e6:.1f} MB", file=sys.stderr)


def libraries(files):
    """What the loader would load for these files, the loader among it."""
    found = set()
    for file in files:
        run = subprocess.run(["ldd", file], check=True, capture_output=True,
                             text=True)
        if "not found" in run.stdout:
            raise ValueError(f"{file}: a library is missing:\n{run.stdout}")
        found |= set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", run.stdout,
                                re.MULTILINE))
    return sorted(map(pathlib.Path, found))


def where(file):
    """The path in the image: its folder without links, its name as asked for.

    What is not below /usr/lib would not be found without a cache of the loader.
    """
    folder = file.parent.resolve()
    if folder.parts[:2] == ("/", "usr") and folder.parts[2:3] in (
            ("lib",), ("lib64",)):
        return str(folder / file.name)
    return f"/usr/lib/{file.name}"


def copy(file, to, mode=0o644):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    to.chmod(mode)


def trust(owners, root):
    """Copies the CAs that this system trusts; returns their package."""
    package = owners.named("ca-certificates")
    copy(AUTHORITIES, root / str(AUTHORITIES)[1:])
    return package


def keep_license(package, root):
    """Its copyright file, and the common licenses that the file refers to."""
    texts = package.licenses()
    if not texts:
        raise ValueError(f"{package.name}: no copyright file is installed")
    for file in texts:
        copy(file, root / "usr/share/doc" / package.name / file.name)
        text = file.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", text):
            if (COMMON_LICENSES / name).exists():
                copy(COMMON_LICENSES / name,
                     root / str(COMMON_LICENSES)[1:] / name)


def size(root):
    return sum(file.lstat().st_size for file in root.rglob("*"))


if __name__ == "__main__":
    main()
