#!/usr/bin/env python3
"""Prints why tests of GoogleTest were skipped, from ctest's log: a program
whose tests are all skipped passes, and ctest says nothing of it.

    skipped_tests.py build/dev/Testing/Temporary/LastTest.log
"""

import collections
import pathlib
import re
import sys

# The line of GTEST_SKIP, the lines of its message, and the test's end.
SKIPPED = re.compile(r"^\S*:\d+: Skipped\n(.*?)^\[  SKIPPED \] (\S+) \(",
                     re.MULTILINE | re.DOTALL)
# The same without a message or in another form.
ENDED = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)


def reasons(log):
    """Lines with a number of tests and why they were skipped, most first."""
    count = collections.Counter(
        " ".join(match[1].split()) or "no reason"
        for match in SKIPPED.finditer(log))
    others = len(ENDED.findall(log)) - count.total()
    if others > 0:
        count["no reason"] += others
    return [f"{number:5d}  {reason}" for reason, number in
            sorted(count.items(), key=lambda item: (-item[1], item[0]))]


def main():
    log = pathlib.Path(sys.argv[1])
    if not log.is_file():  # ctest ran nothing
        return
    lines = reasons(log.read_text(encoding="utf-8", errors="replace"))
    if lines:
        print("skipped, so not tested on this machine:", *lines, sep="\n")


if __name__ == "__main__":
    main()
