"""Which lines that report an error did the tests run?

    cmake --preset coverage && cmake --build build/coverage
    ctest --test-dir build/coverage -LE 'lint|golden'
    python3 tests/coverage/error_lines.py --build build/coverage [--least 90]

Reads what a build with --coverage counted (gcov's JSON), finds the lines of
the product that return or catch an error, and prints for each folder how many
there are, how many ran and the share, then each that did not. A source that no
test program contains counts as not run. A line counts as run only if all of it
did: `if (!ok) return error;` needs an error. Exits with 1 below --least percent
in all.

A line reports an error if it returns a call of a function that makes nothing
else but errors (absl's, one whose name ends in Error or whose every return
makes one), the status of
something that is not ok, or begins the body of a catch.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOMS = ("server", "engine", "client/cpp")
LEFT_OUT = ("engine/device/cuda/",)  # needs a card
DEFINITION = re.compile(
    r"^( *)(?:static |inline )*(?:absl|grpc)::Status (?:\w+::)?(\w+)"
    r"\([^;{]*\)(?: const)? \{$", re.MULTILINE)
RETURN = re.compile(r"\breturn\s+([^;]*);", re.DOTALL)
ABSL_ERROR = re.compile(r"absl::\w+Error\(|(?:absl|grpc)::Status\(")
NOT_OK = re.compile(r"if \(!(\w+)(?:->|\.)?ok\(\)\) return (?:\*?\1|.*status\(\))")


def is_error(expression, makers):
    if ABSL_ERROR.match(expression):
        return True
    call = re.match(r"(?:\w+::)*(\w+)\(", expression)
    return call is not None and call.group(1) in makers


def find_makers(texts):
    """Names of the functions that return nothing but errors."""
    bodies = {}
    for text in texts:
        for match in DEFINITION.finditer(text):
            indent, name = match.groups()
            end = text.find(f"\n{indent}}}", match.end())
            bodies.setdefault(name, []).append(text[match.end():end])
    makers = {name for name in bodies if name.endswith("Error")}
    while True:
        found = {
            name for name, of_name in bodies.items()
            if all(returns and all(is_error(one, makers) for one in returns)
                   for returns in map(RETURN.findall, of_name))}
        if found <= makers:
            return makers
        makers |= found


def error_lines(text, makers):
    """Numbers, from 1, of the lines of a source that report an error."""
    lines = text.splitlines()
    numbers = set()
    for number, line in enumerate(lines, 1):
        returned = re.search(r"\breturn\s+(.*)", line)
        expression = returned.group(1) if returned else ""
        if returned and (is_error(expression, makers)
                         or re.fullmatch(r".*\.status\(\);", expression)
                         or NOT_OK.search(line)):
            numbers.add(number)
        elif re.search(r"\bcatch \(", line) and number < len(lines):
            numbers.add(number + 1)
    return numbers


def counts_of(data, build):
    """[(path, line, ran)] of one object's counters."""
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", data], cwd=build,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    rows = []
    for document in done.stdout.splitlines():
        for file in json.loads(document)["files"]:
            for line in file["lines"]:
                ran = line["count"] > 0 and not line["unexecuted_block"]
                rows.append((file["file"], line["line_number"], ran))
    return rows


def read_counts(build, root):
    """{path: {line: ran}} of the product's sources, paths from the root.

    An object has notes (.gcno) once it is compiled, and counters (.gcda) only
    once a program with it ran: without them, gcov counts no line as run.
    """
    objects = [path for room in ROOMS
               for path in sorted((build / room).rglob("*.gcno"))]
    if not any(path.with_suffix(".gcda").exists() for path in objects):
        sys.exit(f"error_lines: no counters below {build}: build with the "
                 "preset coverage, then run its tests")
    counts = {}
    with ThreadPoolExecutor() as pool:
        for rows in pool.map(lambda path: counts_of(path, build), objects):
            for name, line, ran in rows:
                path = pathlib.Path(name)
                if not path.is_absolute():
                    path = build / path
                path = path.resolve()
                if path.is_relative_to(root):
                    of_file = counts.setdefault(
                        path.relative_to(root).as_posix(), {})
                    of_file[line] = of_file.get(line, False) or ran
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--least", type=float, default=90, metavar="PERCENT")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    sources = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for room in ROOMS for end in ("*.cc", "*.h")
        for path in sorted((root / room).rglob(end))}
    makers = find_makers(sources.values())
    counts = read_counts(options.build.resolve(), root)

    folders, missed = {}, []
    for path, text in sources.items():
        if path.startswith(LEFT_OUT):
            continue
        for number in sorted(error_lines(text, makers)):
            ran = counts.get(path, {}).get(number)
            if ran is None:
                continue  # no code
            total = folders.setdefault(str(pathlib.Path(path).parent), [0, 0])
            total[0] += 1
            total[1] += ran
            if not ran:
                line = text.splitlines()[number - 1].strip()
                missed.append(f"{path}:{number}: {line}")
    print(*missed, sep="\n")
    for folder, (lines, ran) in sorted(folders.items()):
        print(f"{folder:28} {lines:5} lines {ran:5} ran {100 * ran / lines:6.1f} %")
    lines = sum(total[0] for total in folders.values())
    ran = sum(total[1] for total in folders.values())
    share = 100 * ran / lines
    print(f"{ran} of {lines} lines that report an error ran: {share:.1f} %")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
