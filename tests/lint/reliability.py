"""tests/CHECKS.md: what it names exists, and every check has a verdict;
tests/nightly.sh runs each of its checks.

Between backticks stand tests (`Suite.Name`, `test_NAME`) and what is run
by name (`nightly.sh NAME`, `bounds.py NAME`, `lint.py NAME`).
"""

import re

PAGE = "tests/CHECKS.md"
NIGHTLY = "tests/nightly.sh"
RUN = re.compile(r"^checks=\(([^)]*)\)", re.MULTILINE)
TICKED = re.compile(r"`([^`\n]+)`")
CXX_TEST = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\)")
PYTHON_TEST = re.compile(r"^\s*def (test_\w+)\(", re.MULTILINE)
BOUND = re.compile(r"^@bound\(.*?\)\ndef (\w+)\(", re.MULTILINE | re.DOTALL)
PROGRAMS = {  # each with what gives a name to run it by
    "nightly.sh": ("tests/nightly", re.compile(r"^check_(\w+)\(\)", re.MULTILINE)),
    "bounds.py": ("tests/integration/bounds", BOUND),
    "lint.py": ("tests/lint/lint.py", re.compile(r'^    "(\w+)":', re.MULTILINE)),
}
ROW = re.compile(r"^\| (\d+) \|.*\| ([^|]*) \|$")
COUNTS = re.compile(r"^Shown (\d+), partly (\d+), missing (\d+)\.")
VERDICT = re.compile(r"shown|(?:partly|missing): \S")


def _tests(tree):
    names = set()
    for path in tree.below("tests/", ends=".cc"):
        names |= {f"{suite}.{name}"
                  for suite, name in CXX_TEST.findall(tree.read(path))}
    for path in tree.below("tests/", ends=".py"):
        names |= set(PYTHON_TEST.findall(tree.read(path)))
    return names


def _commands(tree):
    return {f"{program} {name}" for program, (where, gives) in PROGRAMS.items()
            for path in tree.below(where)
            for name in gives.findall(tree.read(path))}


def _named(line):
    """The tests and commands that a line names."""
    return [name for name in TICKED.findall(line)
            if re.fullmatch(r"\w+Test\.\w+|test_\w+", name)
            or name.split(" ")[0] in PROGRAMS]


def _nightly(tree):
    """Each function check_NAME of tests/nightly is in its array `checks`."""
    where, gives = PROGRAMS["nightly.sh"]
    have = {name for path in tree.below(where)
            for name in gives.findall(tree.read(path))}
    array = RUN.search(tree.read(NIGHTLY))
    run = set(array[1].split()) if array else set()
    return ([f"{NIGHTLY}: check_{name} is not in 'checks'"
             for name in sorted(have - run)]
            + [f"{NIGHTLY}: there is no check_{name}, but 'checks' names it"
               for name in sorted(run - have)])


def checks(tree):
    missing = [path for path in (PAGE, NIGHTLY) if path not in tree.files]
    if missing:
        return [f"{path} is missing" for path in missing]
    known = _tests(tree) | _commands(tree)
    found, verdicts, said = [], [], None
    for number, line in tree.lines(PAGE):
        named = _named(line)
        found += [f"{PAGE}:{number}: there is no {name}"
                  for name in named if name not in known]
        counts = COUNTS.match(line)
        if counts:
            said = list(map(int, counts.groups()))
        row = ROW.match(line)
        if not row:
            continue
        verdicts.append(row[2].split(":")[0])
        if int(row[1]) != len(verdicts):
            found.append(f"{PAGE}:{number}: row {row[1]}, not {len(verdicts)}")
        if not VERDICT.match(row[2]):
            found.append(f"{PAGE}:{number}: '{row[2]}' is neither shown, nor "
                         "partly or missing with what is missing")
        if verdicts[-1] == "shown" and not named:
            found.append(f"{PAGE}:{number}: shown, but by no test")
    have = [verdicts.count(one) for one in ("shown", "partly", "missing")]
    if said != have:
        found.append(f"{PAGE}: has {have} checks shown, partly shown and "
                     f"missing, but says {said}")
    return found + _nightly(tree)
