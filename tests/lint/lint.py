#!/usr/bin/env python3
"""Runs the named checks over the project; prints what breaks a rule.

    tests/lint/lint.py CHECK...            every check: lint.py --list
    tests/lint/lint.py --build DIR tidy    clang-tidy needs a configured build

Exit status 1 when anything was found.
"""

import argparse
import pathlib
import sys

import client_settings
import clocks
import code_names
import constant_time
import cxx_format
import cxx_tidy
import dockerfile
import docs
import includes
import layout
import messages
import ops
import reliability
import scripts
import unused_using
import versions
import words
from tree import Tree

CHECKS = {
    "includes": includes.check,
    "format": cxx_format.check,
    "names": code_names.check,
    "top_level": layout.top_level,
    "file_length": layout.file_length,
    "line_width": layout.line_width,
    "folder_readme": layout.folder_readme,
    "readme_files": layout.readme_files,
    "no_pickle": layout.no_pickle,
    "executable": scripts.executable,
    "shellcheck": scripts.shellcheck,
    "links": docs.links,
    "reasons": docs.reasons,
    "flags": docs.flags,
    "metrics": docs.metrics,
    "events": docs.events,
    "architectures": docs.architectures,
    "ops": ops.ops,
    "dockerfile": dockerfile.check,
    "versions": versions.check,
    "client_settings": client_settings.check,
    "checks": reliability.checks,
    "token_compare": constant_time.token_compare,
    "steady_time": clocks.steady_time,
    "unused_using": unused_using.check,
    "messages": messages.check,
    "words": words.check,
    "tidy": None,  # takes the build too
}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=root, help="the tree to look at")
    parser.add_argument("--build", default=root / "build/dev",
                        help="a configured build folder, for tidy")
    parser.add_argument("--list", action="store_true", help="names the checks")
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CHECKS))
        return 0
    unknown = sorted(set(arguments.checks) - set(CHECKS))
    if unknown or not arguments.checks:
        parser.error(f"no such check: {', '.join(unknown)}" if unknown
                     else "name a check; --list shows them")
    tree = Tree(arguments.root)
    found = []
    for name in arguments.checks:
        if name == "tidy":
            found += cxx_tidy.check(tree, arguments.build)
        else:
            found += CHECKS[name](tree)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
