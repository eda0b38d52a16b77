#!/usr/bin/env python3
"""How many files a change touched, by room: what an addition costs.

    tests/bench/touched_files.py op=COMMIT "rpc=FIRST^..LAST" metric=A,B

NAME=COMMITS; COMMITS is a commit, a range, or several with commas between.
"""

import collections
import subprocess
import sys

ROOMS = ("engine", "server", "client", "proto", "deploy", "tests")


def files(commits):
    """Each once, however often the commits touched it; merges not counted."""
    found = set()
    for part in commits.split(","):
        revision = part if ".." in part else part + "^!"
        log = subprocess.run(["git", "log", "--no-merges", "--format=",
                              "--name-only", revision, "--"],
                             stdout=subprocess.PIPE, text=True)
        if log.returncode:
            sys.exit(1)  # git said why
        found.update(filter(None, log.stdout.split("\n")))
    return found


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all("=" in a for a in sys.argv[1:]):
        sys.exit(__doc__)
    print("change", "files", *ROOMS, "top", sep="\t")
    for name, commits in (a.split("=", 1) for a in sys.argv[1:]):
        touched = files(commits)
        rooms = collections.Counter(f.split("/")[0] for f in touched)
        inside = [rooms[room] for room in ROOMS]
        print(name, len(touched), *inside, len(touched) - sum(inside), sep="\t")
