"""Pages name only what exists: files, error reasons, flags, metrics, events of
the log, architectures."""

import json
import re

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")


def _prose(tree, path):
    """Lines outside code blocks."""
    inside = False
    for number, line in tree.lines(path):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def links(tree):
    """A link to a file of the project leads to one."""
    found = []
    for path in (f for f in tree.files if f.endswith(".md")):
        for number, line in _prose(tree, path):
            for target in LINK.findall(line):
                target = target.split("#")[0]
                if not target or "://" in target or target.startswith("mailto"):
                    continue
                if not ((tree.root / path).parent / target).exists():
                    found.append(f"{path}:{number}: links to {target}, which "
                                 "does not exist")
    return found


def _table(tree, name, page="README.md"):
    """First column's names in the table after <!-- table: name -->."""
    names = {}
    inside = False
    for number, line in tree.lines(page):
        if line.strip() == f"<!-- table: {name} -->":
            inside = True
        elif inside and line.startswith("|"):
            for found in re.findall(r"`(?:--)?([A-Za-z0-9_-]+)`",
                                    line.split("|")[1]):
                names[found] = line
        elif inside and names:
            break
    return names


def _compare(what, documented, real, page="README.md"):
    return ([f"{page}: {what} `{name}` is not in the table"
             for name in sorted(real - documented)]
            + [f"{page}: {what} `{name}` does not exist"
               for name in sorted(documented - real)])


def reasons(tree):
    """Reasons and codes are those of ErrorReason in the proto file."""
    codes = {}
    code = None
    inside = False
    for _, line in tree.lines("proto/encoderd/v1/encoder.proto"):
        inside = inside or line.startswith("enum ErrorReason")
        if not inside:
            continue
        if line.startswith("}"):
            break
        said = re.match(r"\s*(?:\w+ = \d+;\s*)?// ([A-Z_]{6,})\.", line)
        if said:
            code = said.group(1)
        name = re.match(r"\s*ERROR_REASON_(\w+) = \d+;", line)
        if name and name.group(1) != "UNSPECIFIED":
            codes[name.group(1)] = code
    table = _table(tree, "reasons")
    found = _compare("reason", set(table), set(codes))
    found += [f"README.md: reason `{name}` has code {codes[name]}"
              for name in sorted(set(table) & set(codes))
              if not re.search(rf"\b{codes[name]}\b", table[name])]
    return found


def flags(tree):
    """Flags are those that the server defines."""
    real = set()
    for path in tree.below("server/", ends=".cc"):
        real |= set(re.findall(r"ABSL_FLAG\(\s*[\w:<>]+,\s*(\w+),",
                               tree.read(path)))
    return _compare("flag", set(_table(tree, "flags")), real | {"flagfile"})


def metrics(tree):
    """Metrics are those of server/observe."""
    real = set()
    for path in tree.below("server/observe/", ends=".cc"):
        real |= set(re.findall(r'"((?:encoderd|process)_[a-z0-9_]+)"',
                               tree.read(path)))
    return _compare("metric", set(_table(tree, "metrics")), real)


def events(tree):
    """Events of the log are those that the server writes."""
    page = "deploy/README.md"
    if page not in tree.files:
        return []
    real = set()
    for path in tree.below("server/", ends=".cc"):
        for said in re.findall(r'\bLog\([^"();]*"(\w+)"(?:\s*:\s*"(\w+)")?',
                               tree.read(path)):
            real |= set(filter(None, said))
    return _compare("event", set(_table(tree, "events", page)), real, page)


def architectures(tree):
    """Architectures are those of engine/checkpoint/architectures.json."""
    real = set()
    for path in tree.below("engine/", ends="/architectures.json"):
        real |= set(json.loads(tree.read(path)))
    return _compare("architecture", set(_table(tree, "architectures")), real)
