"""engine/README.md's list of the files of an op holds for the ops that are.

An item of the list begins with files, any of which may have the op: paths in
backticks joined by "or", NAME standing for the op's own name.
"""

import re

README = "engine/README.md"
STRUCTS = "engine/device/ops.h"
PASS = "engine/encoder_session.cc"
BEGIN = "<!-- list: op -->"
MOST = 8
ITEM = re.compile(r"\d+\. ((?:`[^`]+`(?: or )?)+)")
OP = re.compile(r"^struct (\w+Op) \{", re.MULTILINE)


def _items(tree):
    """Line and glob patterns of each item."""
    items = []
    inside = False
    for number, line in tree.lines(README):
        if line.strip() == BEGIN:
            inside = True
        elif inside and (match := ITEM.match(line)):
            items.append((number, re.findall(r"`([^`]+)`", match.group(1))))
        elif inside and items and not line.startswith(" "):
            break
    return items


def _matching(tree, pattern):
    folder = "" if pattern.startswith("tests/") else "engine/"
    parts = (re.escape(part) for part in (folder + pattern).split("NAME"))
    name = re.compile("[^/]*".join(parts))
    return [path for path in tree.files if name.fullmatch(path)]


def ops(tree):
    """Each op that a pass runs is in one file of every item."""
    missing = [path for path in (README, STRUCTS, PASS)
               if path not in tree.files]
    if missing:
        return [f"{path} is missing" for path in missing]
    items = _items(tree)
    found = []
    if not 0 < len(items) <= MOST:
        found.append(f"{README}: an op takes {len(items)} files after "
                     f"{BEGIN}; at least 1 and at most {MOST}")

    def text(path):
        return (tree.root / path).read_text(encoding="utf-8")

    session = text(PASS)
    names = [name for name in OP.findall(text(STRUCTS))
             if re.search(rf"\b{name}\b", session)]
    for number, patterns in items:
        texts = []
        for pattern in patterns:
            paths = _matching(tree, pattern)
            texts += map(text, paths)
            if not paths:
                found.append(f"{README}:{number}: there is no {pattern}")
        found += [f"{README}:{number}: {name} is in no {' or '.join(patterns)}"
                  for name in names
                  if not any(re.search(rf"\b{name}\b", t) for t in texts)]
    return found
