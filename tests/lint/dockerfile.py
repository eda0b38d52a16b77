"""The Dockerfile builds what the tree holds; the image itself is built by
tests/nightly.sh alone."""

import fnmatch
import re

NAME = "Dockerfile"
CMAKE = "CMakeLists.txt"
FOLDERS = re.compile(r"^\s*add_subdirectory\((\w+)", re.MULTILINE)


def _instructions(tree):
    """(line number, word, rest) of each, its continued lines joined."""
    found = []
    begun = None
    for number, line in tree.lines(NAME):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        text = line.strip().removesuffix("\\")
        begun = (begun[0], begun[1] + text) if begun else (number, text)
        if not line.rstrip().endswith("\\"):
            word, _, rest = begun[1].partition(" ")
            found.append((begun[0], word.upper(), rest.strip()))
            begun = None
    return found


def _left_out(tree, path):
    """Whether .dockerignore keeps the file from the build."""
    if ".dockerignore" not in tree.files:
        return False
    patterns = [line.strip().removeprefix("**/")
                for _, line in tree.lines(".dockerignore") if line.strip()]
    parts = path.split("/")
    return any(fnmatch.fnmatch("/".join(parts[:i]), pattern)
               or fnmatch.fnmatch(parts[i - 1], pattern)
               for pattern in patterns for i in range(1, len(parts) + 1))


def _copied(tree, rest):
    """Of a COPY: the stage it copies from or None, and its sources."""
    words = rest.split()
    stage = [word.removeprefix("--from=") for word in words
             if word.startswith("--from=")]
    return (stage[0] if stage else None,
            [word.rstrip("/") for word in words[:-1]
             if not word.startswith("--")])


def check(tree):
    """What it copies is there, its stages are named before they are used, and
    every folder that CMake builds is copied."""
    if NAME not in tree.files:
        return [f"{NAME} is missing"]
    found = []
    stages = {"scratch"}
    copied = set()
    for number, word, rest in _instructions(tree):
        if word == "FROM":
            base, _, stage = rest.partition(" AS ")
            if not re.search(r"[$:/]", base) and base not in stages:
                found.append(f"{NAME}:{number}: FROM {base}: no stage before "
                             "has this name")
            stages.add(stage)
        elif word == "COPY":
            stage, sources = _copied(tree, rest)
            if stage is not None:
                if stage not in stages:
                    found.append(f"{NAME}:{number}: COPY --from={stage}: no "
                                 "stage before has this name")
                continue
            for source in sources:
                files = [path for path in tree.files
                         if (path == source or path.startswith(source + "/"))
                         and not _left_out(tree, path)]
                if not files:
                    found.append(f"{NAME}:{number}: copies {source}, which does "
                                 "not exist or which .dockerignore leaves out")
                copied.add(source)
    return found + _against_cmake(tree, copied)


def _against_cmake(tree, copied):
    if CMAKE not in tree.files:
        return [f"{CMAKE} is missing"]
    cmake = tree.read(CMAKE)
    found = []
    for folder in sorted(set(FOLDERS.findall(cmake)) - {"tests"}):
        if folder not in copied:
            found.append(f"{NAME}: does not copy {folder}, which {CMAKE} builds")
    return found
