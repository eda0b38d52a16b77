"""What a source takes into its namespace, it uses."""

import re

USING = re.compile(r"^ *using (?:::)?(?:\w+::)+(\w+);$")


def check(tree):
    """In clang-tidy's place, which says so of a source only if it is looked at
    alone."""
    found = []
    for path in tree.cxx():
        if not path.endswith((".cc", ".cu")):
            continue  # a header's names are for those that include it
        lines = [(number, line.split("//")[0])
                 for number, line in tree.lines(path)]
        for number, line in lines:
            taken = USING.match(line.rstrip())
            if taken and not any(
                    re.search(rf"\b{taken[1]}\b", other)
                    for at, other in lines if at != number):
                found.append(f"{path}:{number}: {taken[1]} is taken by using "
                             "and not used")
    return found
