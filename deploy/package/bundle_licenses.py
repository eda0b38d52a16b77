#!/usr/bin/env python3
"""Puts into a folder the licenses of the packages that libraries belong to.

    deploy/package/bundle_licenses.py [OPTION...] FOLDER LIBRARY...

deploy/bundle.sh runs it. LIBRARY: a file of an installed package of this
machine. FOLDER gets usr/share/doc/PACKAGE/copyright of each, and the common
licenses that these refer to.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "deploy/image"))
import packages  # noqa: E402  after the path
import root  # noqa: E402


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--built-in", action="append", default=[],
                        metavar="PACKAGE",
                        help="a package compiled into the programs")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("libraries", nargs="*", type=pathlib.Path,
                        metavar="LIBRARY")
    options = parser.parse_args()
    try:
        owners = packages.Owners()
        kept = {*owners.of(options.libraries),
                *(owners.named(name) for name in options.built_in)}
        for package in kept:
            root.keep_license(package, options.folder)
    except (OSError, ValueError) as error:
        sys.exit(f"bundle_licenses.py: {error}")
    print(f"bundle: licenses of {len(kept)} packages", file=sys.stderr)


if __name__ == "__main__":
    main()
