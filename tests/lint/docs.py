"""Pages name only what exists: files and their headings, error reasons, flags,
metrics, events of the log, architectures."""

import json
import posixpath
import re

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")
HEADING = re.compile(r"^#+ (.*)")
# Where the table of each kind is.
PAGES = {
    "reasons": "server/docs/errors.md",
    "flags": "server/docs/flags.md",
    "metrics": "server/docs/metrics.md",
    "events": "deploy/README.md",
    "architectures": "engine/docs/models.md",
}


def _prose(tree, path):
    """Lines outside code blocks."""
    inside = False
    for number, line in tree.lines(path):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def _anchors(tree, path):
    """The anchors that a forge gives the headings of a page."""
    headings = (HEADING.match(line) for _, line in _prose(tree, path))
    return {re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            for heading in headings if heading}


def links(tree):
    """A link to a file of the project leads to one; its anchor to a heading."""
    pages = [f for f in tree.files if f.endswith(".md")]
    anchors = {page: _anchors(tree, page) for page in pages}
    found = []
    for path in pages:
        for number, line in _prose(tree, path):
            for target in LINK.findall(line):
                if "://" in target or target.startswith("mailto"):
                    continue
                name, _, anchor = target.partition("#")
                file = posixpath.normpath(
                    posixpath.join(posixpath.dirname(path), name))
                page = file if name else path
                if not (tree.root / page).exists() or (
                        anchor and anchor not in anchors.get(page, ())):
                    found.append(f"{path}:{number}: links to {target}, which "
                                 "does not exist")
    return found


def _table(tree, name):
    """First column's names in the table after <!-- table: name -->."""
    names = {}
    inside = False
    if PAGES[name] not in tree.files:
        return names
    for _, line in tree.lines(PAGES[name]):
        if line.strip() == f"<!-- table: {name} -->":
            inside = True
        elif inside and line.startswith("|"):
            for found in re.findall(r"`(?:--)?([A-Za-z0-9_-]+)`",
                                    line.split("|")[1]):
                names[found] = line
        elif inside and names:
            break
    return names


def _compare(table, documented, real):
    page, what = PAGES[table], table.rstrip("s")
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
    found = _compare("reasons", set(table), set(codes))
    found += [f"{PAGES['reasons']}: reason `{name}` has code {codes[name]}"
              for name in sorted(set(table) & set(codes))
              if not re.search(rf"\b{codes[name]}\b", table[name])]
    return found


def flags(tree):
    """Flags are those that the server defines."""
    real = set()
    for path in tree.below("server/", ends=".cc"):
        real |= set(re.findall(r"ABSL_FLAG\(\s*[\w:<>]+,\s*(\w+),",
                               tree.read(path)))
    return _compare("flags", set(_table(tree, "flags")), real | {"flagfile"})


def metrics(tree):
    """Metrics are those of server/observe."""
    real = set()
    for path in tree.below("server/observe/", ends=".cc"):
        real |= set(re.findall(r'"((?:encoderd|process)_[a-z0-9_]+)"',
                               tree.read(path)))
    return _compare("metrics", set(_table(tree, "metrics")), real)


def events(tree):
    """Events of the log are those that the server writes."""
    real = set()
    for path in tree.below("server/", ends=".cc"):
        for said in re.findall(r'\bLog\((?:[^"();]|\([^"()]*\))*"(\w+)"'
                               r'(?:\s*:\s*"(\w+)")?', tree.read(path)):
            real |= set(filter(None, said))
    return _compare("events", set(_table(tree, "events")), real)


def architectures(tree):
    """Architectures are those of engine/checkpoint/architectures.json."""
    real = set()
    for path in tree.below("engine/", ends="/architectures.json"):
        real |= set(json.loads(tree.read(path)))
    return _compare("architectures", set(_table(tree, "architectures")), real)
