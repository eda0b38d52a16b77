"""The top level, the length of files and lines, a README in each folder, no weights."""

import fnmatch
import re

TOP_LEVEL = {
    "server", "proto", "engine", "client", "deploy", "tests",
    "CMakeLists.txt", "CMakePresets.json", "Dockerfile", "README.md",
    "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    ".clang-format", ".clang-tidy", ".gitignore", ".dockerignore", ".ci",
}
MAX_LINES = 400  # of one source file: more is two ideas
MAX_ROOT_CMAKE = 80
# Columns of Python: what callers read, as C++; the rest.
WIDTHS = {"client/": 80, "": 100}
SOURCES = (".h", ".cc", ".cu", ".py", ".sh", ".proto")
MAX_BYTES = 4 << 20  # of any file: goldens are small, weights are not
README_BELOW = ("engine", "server", "client", "proto", "tests", "deploy")
# Folders that mirror others, or hold what a README above describes.
README_ABOVE = ("proto/", "tests/unit/", "tests/fuzz/corpus", "deploy/")

# Columns of READMEs that name files; what a name is made of; the part of a
# name that matches any: NAME_kernel.h.
FILE_COLUMN = re.compile(r"(?:folder or )?files?|where")
FILE_NAME = re.compile(r"[\w*./-]+")
ANY_NAME = re.compile(r"[A-Z]{2,}")

PICKLE = re.compile(
    r"import (?:c?[pP]ickle|dill|cloudpickle|joblib)\b|\bfrom pickle\b"
    r"|\bpickle\.loads?\(|\btorch\.load\(|allow_pickle\s*=\s*True")
PICKLED = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def top_level(tree):
    return [f"{name}: not one of the fixed names of the top level"
            for name in sorted({f.split("/")[0] for f in tree.files})
            if name not in TOP_LEVEL]


def file_length(tree):
    found = []
    for path in tree.files:
        limit = MAX_ROOT_CMAKE if path == "CMakeLists.txt" else MAX_LINES
        if not path.endswith(SOURCES) and path != "CMakeLists.txt":
            continue
        lines = tree.read(path).count("\n")
        if lines > limit:
            found.append(f"{path}: {lines} lines, at most {limit}: is it two "
                         "ideas?")
    return found


def line_width(tree):
    """Of Python; clang-format does it for C++."""
    found = []
    for path in tree.files:
        if not path.endswith(".py"):
            continue
        limit = next(width for folder, width in WIDTHS.items()
                     if path.startswith(folder))
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if len(line) > limit:
                found.append(f"{path}:{number}: {len(line)} columns, at most "
                             f"{limit}")
    return found


def folder_readme(tree):
    """Every folder with sources says what lives there.

    Or the README of the folder above does, naming it: `folder/...`.
    """
    files = set(tree.files)

    def described(folder):
        if f"{folder}/README.md" in files:
            return True
        above, _, name = folder.rpartition("/")
        return (f"{above}/README.md" in files
                and f"`{name}/" in tree.read(f"{above}/README.md"))

    folders = {f.rsplit("/", 1)[0] for f in tree.files
               if f.endswith(SOURCES) and f.split("/")[0] in README_BELOW}
    return [f"{folder}: has no README.md" for folder in sorted(folders)
            if not described(folder) and not folder.startswith(README_ABOVE)]


def _named(lines):
    """The stems, as patterns, that a README with a table of files names.

    All words of the column of files, and all in backticks. Empty without such
    a table.
    """
    names = set()
    column = None
    has_table = False
    for number, line in enumerate(lines):
        for quoted in re.findall(r"`([^`]+)`", line):
            names.update(FILE_NAME.findall(quoted))
        if not line.startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if lines[number + 1:] and lines[number + 1].startswith("|--"):
            column = next((i for i, cell in enumerate(cells)
                           if FILE_COLUMN.fullmatch(cell)), None)
            has_table = has_table or column is not None
        elif column is not None and column < len(cells):
            names.update(FILE_NAME.findall(cells[column]))
    stems = {ANY_NAME.sub("*", name.rsplit("/", 1)[-1].split(".")[0])
             for name in names}
    return {s for s in stems if re.search("[a-z]", s)} if has_table else set()


def readme_files(tree):
    """A README with a table of files names every source of its folder.

    A stem is enough, and a test goes with what it tests: `NAME_test.py`.
    """
    sources = {}
    for path in tree.files:
        folder, _, name = path.rpartition("/")
        if name.endswith(SOURCES):
            stem = name.rsplit(".", 1)[0]
            sources.setdefault(folder, {}).setdefault(stem, name)
    found = []
    for folder, stems in sources.items():
        readme = f"{folder}/README.md"
        if readme not in tree.files:
            continue
        patterns = _named(tree.read(readme).splitlines())
        found += [f"{readme}: its table of files lacks {name}"
                  for stem, name in stems.items() if patterns
                  and not any(fnmatch.fnmatchcase(s, pattern)
                              for s in (stem, stem.removesuffix("_test"))
                              for pattern in patterns)]
    return found


def no_pickle(tree):
    """Pickle runs code when read: nothing here reads or holds one."""
    found = []
    for path in tree.files:
        if path.endswith(PICKLED):
            found.append(f"{path}: a pickle")
        if (tree.root / path).stat().st_size > MAX_BYTES:
            found.append(f"{path}: larger than {MAX_BYTES} bytes; weights and "
                         "generated files are not committed")
        if path.endswith(SOURCES) and not path.startswith("tests/lint/"):
            found += [f"{path}:{number}: reads a pickle"
                      for number, line in tree.lines(path)
                      if PICKLE.search(line)]
    return found
