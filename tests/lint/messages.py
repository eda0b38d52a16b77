"""The tables of messages and the sources have the same messages.

A page says `<!-- messages: PATH... -->`: the tables after it list the messages
of the sources below these paths, one or more in the first column of a row, as
`text with <placeholders>`. Every text of a table must occur in these sources,
and every text of two words or more that they hand to one of the constructors
named below must be in a table. Numbers are placeholders, too.
"""

import ast
import re

MARK = re.compile(r"<!-- messages: (.+?) -->")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# What varies: in tables, in format strings of C++ and Python.
PART = re.compile(r"['\"]?<[^<>]*>['\"]?|\d+|\n|%[-+.\d]*[a-z]|\$\d|\{\w*\}")
MARKS = " \"':;,."
LEAST = 5  # letters of a text that is looked for
WORDS = re.compile(r"[A-Za-z]{2}.* .*[A-Za-z]{2}")

PIECES = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)\""
    r"|\"(?P<string>(?:\\.|[^\"\\\n])*)\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
# What makes a message of its arguments, and statements that are one. An
# INTERNAL error of the engine or the server is a defect, not a message.
MAKERS = re.compile(
    r"\b(?:absl::(?!Internal)\w+Error|Bad|BadLine|Refused?|Usage"
    r"|Keep|Invalid|Fail|FailTensor|Unexpected|CannotTell|NameFlag|Note"
    r"|CheckSideFile)\("
    r"|\berr\s*<<")
CLIENT_MAKERS = re.compile(MAKERS.pattern
                           + r"|\b(?:absl::InternalError|MakeError)\("
                           r"|constexpr absl::string_view k\w+ =")
PYTHON_MAKERS = {"make_error", "_error", "_misfit", "warning",
                 "exit", "_no_address", "check_iterable", "explain",
                 "_explain", "name_too_large", "name_slow_list"}

# A file and a part of its text, and why it is in no table.
NOT_LISTED = {
    ("engine/tokenizer/composed_tokenizer.cc", "bytes; a text has at most"):
        "the error of a request",
}


def _cxx(text):
    """The text, each literal replaced by its number in quotes, and the
    literals; those that follow one another are one."""
    found, kept, last = [], [], 0
    for piece in PIECES.finditer(text):
        between = text[last:piece.start()]
        last = piece.end()
        said = piece["raw"] if piece["mark"] is not None else piece["string"]
        if said is None:
            kept.append(between)
            if piece[0][0] == "'":
                kept.append("0")
            continue
        if piece["string"] is not None:
            said = re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), said)
        if not between.strip() and kept[-1:] == [f'"{len(found) - 1}"']:
            found[-1] += said
            continue
        kept += [between, f'"{len(found)}"']
        found.append(said)
    return "".join(kept) + text[last:], found


def _cxx_messages(path, text):
    """Literals among the arguments of a maker."""
    text, literals = _cxx(text)
    makers = CLIENT_MAKERS if path.startswith("client/") else MAKERS
    for maker in makers.finditer(text):
        depth, at = int(maker[0][-1] == "("), maker.end()
        while at < len(text) and (depth > 0 or maker[0][-1] != "("):
            if text[at] == ";":
                break
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        for index in re.findall(r'"(\d+)"', text[maker.end():at]):
            yield text.count("\n", 0, maker.start()) + 1, literals[int(index)]


def _strings(node):
    """Pairs of line and text, without docstrings."""
    nodes = list(ast.walk(node))
    documentation = {id(node.value) for node in nodes
                     if isinstance(node, ast.Expr)}
    return [(node.lineno, node.value) for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in documentation]


def _name(node):
    """Of a function that is called or defined."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    called = getattr(node, "func", None)
    return getattr(called, "id", getattr(called, "attr", ""))


def _python_messages(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and _name(node) == "_faults":
            # The first of each is a pattern of others' words.
            for said in (said for fault in node.args
                         for said in fault.elts[1:]):
                yield from _strings(said)
        elif isinstance(node, ast.Raise) or _name(node) in PYTHON_MAKERS:
            yield from _strings(node)


def _literals(path, text):
    if not path.endswith(".py"):
        return _cxx(text)[1]
    return [said for _, said in _strings(ast.parse(text))]


def _parts(text):
    return [part.strip(MARKS) for part in PART.split(text)]


class _Sources:
    """The literals, each between two bytes that no text has; those that begin
    with marks also without them, as a table has them after a placeholder."""

    def __init__(self, tree, prefixes):
        self.files = [f for f in tree.below(*prefixes)
                      if f.endswith((".cc", ".h", ".py"))]
        parts = {said for path in self.files
                 for literal in _literals(path, tree.read(path))
                 for part in PART.split(literal)
                 for said in (part, part.lstrip(MARKS))}
        self._all = "".join(f"\0{part}\1" for part in sorted(parts) if part)

    def has(self, text):
        """Whether it is in a literal, or made of several."""
        return text in self._all or self._made_of(text)

    def _made_of(self, text):
        return any(f"\0{text[:cut]}\1" in self._all
                   and ("\0" + text[cut:] in self._all
                        or self._made_of(text[cut:]))
                   for cut in range(1, len(text)))


def _tables(tree, page):
    """By prefixes: pairs of line and message."""
    tables, rows = {}, None
    for number, line in tree.lines(page):
        mark = MARK.search(line)
        if mark:
            rows = tables.setdefault(tuple(mark[1].split()), [])
        elif rows is not None and line.startswith("|"):
            cell = re.split(r"(?<!\\)\|", line)[1].replace("\\|", "|")
            rows += [(number, span[2].strip())
                     for span in SPAN.finditer(cell)]
    return tables


def _check(tree, page, prefixes, rows, unused):
    sources = _Sources(tree, prefixes)
    found, listed = [], "\0".join(
        part for _, message in rows for part in _parts(message))
    for number, message in rows:
        parts = [part for part in _parts(message) if len(part) >= LEAST]
        missing = [part for part in parts if not sources.has(part)]
        if missing or not parts:
            found.append(f"{page}:{number}: no source says '"
                         f"{missing[0] if missing else message}'")
    for path in sources.files:
        text = tree.read(path)
        for number, literal in (_python_messages(text) if path.endswith(".py")
                                else _cxx_messages(path, text)):
            for part in _parts(literal):
                if not WORDS.search(part) or part in listed:
                    continue
                unused.discard((path, part))
                if (path, part) not in NOT_LISTED:
                    found.append(f"{path}:{number}: '{part}' is in no table "
                                 f"of {page}")
    return list(dict.fromkeys(found))


def check(tree):
    found, pages, unused = [], 0, set(NOT_LISTED)
    for page in tree.below("", ends=".md"):
        for prefixes, rows in _tables(tree, page).items():
            pages += 1
            found += _check(tree, page, prefixes, rows, unused)
    if not pages:
        return ["no page lists the messages"]
    return found + [f"{path}: no longer says '{said}': take it out of "
                    "NOT_LISTED in tests/lint/messages.py"
                    for path, said in sorted(unused) if path in tree.files]
