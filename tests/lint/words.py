"""Pages, comments, messages and names use the field's words, in American
spelling.

Looks at pages without their code, at comments, at string literals, and at the
identifiers of C++ and Python, which it splits into words. A line break counts
as a space.
"""

import io
import itertools
import re
import tokenize

# What this check does not cover.
NOT_COVERED = ("LICENSE",)

# What not to write, as a regular expression, and what to write instead.
WORDS = [
    (r"(?:go|goes|going|gone|went) on with", "resume, continue"),
    (r"anew", "again"),
    (r"of (?:its|their|his|her|our|your|one's) own", "its own X; separate"),
    (r"beside", "next to, with, besides, in addition to"),
    (r"so many", "a number; this many"),
    (r"(?:it|that|which) is none", "has no; is not one"),
    (r"under way", "in flight, in progress, running"),
    (r"as (?:it|they) stands?", "unchanged; as written"),
    (r"what stands|stands? (?:in|at|there|here|before|beside|behind|under)",
     "is, precedes, follows"),
    (r"(?:broke|breaks?|broken|breaking) off", "interrupted"),
    (r"in vain", "wasted"),
    (r"in (?:its|the) midst", "in the middle"),
    (r"in (?:any|its|every|good) company", "with others; in any batch"),
    (r"on and on", "say it once"),
    (r"to be had", "available"),
    (r"(?:texts?|tokens|calls|lines|rows|times|once|requests|bytes|threads) an? "
     r"(?:second|minute|line|row|token|word|call|vector|value|batch|core"
     r"|card|text|connection|stream)", "per"),
    (r"whither|thereof|whereof|thereby|hither", "say it plainly"),
    (r"heed(?:s|ed|ing)?", "respect, honor, notice"),
    (r"as ever", "as before"),
    (r"for ever", "forever"),
]
# In names, too.
PHRASES = len(WORDS)
WORDS += [
    # British spelling.
    (r"\w*(?:colour|neighbour|behaviour|honour|favour|centre)\w*", "-or, -er"),
    (r"\w*(?:token|normal|optim|serial|quant|initial|recogn|summar|organ"
     r"|synchron|minim|maxim|general|special|vector|parallel|categor|real)"
     r"is(?:e[drs]?|ing|ations?)", "-ize"),
    (r"licences?|licenced", "license"),
    (r"grey|artefacts?|catalogue|labelled|modelling|whilst|amongst",
     "gray, artifact, catalog, labeled, modeling, while, among"),
]

# Sentences may have the last one.
NAME_WORDS = WORDS[:PHRASES] + [("goes on", "continues")]
# Names that are right.
ALLOWED_NAMES = {"stand in"}  # a stand-in
NAMES_NOT_COVERED = ("client/", "tests/lint/self_test")

# Where such a word is right: (file, the words found) and why.
ALLOWED = {
    ("tests/integration/container/container_test.py", "beside"): "a variable",
    ("tests/unit/client/encoderctl_parts_test.cc", "tokenise"): "a typo to find",
}

CXX = (".h", ".cc", ".cu", ".proto")
OTHERS = (".sh", ".cmake", "CMakeLists.txt", ".yml", "Dockerfile", ".in",
          ".service", ".flags")
PARTS = re.compile(
    r"//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/"
    r'|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"'
    r'|"(?P<string>(?:\\.|[^"\\\n])*)"' r"|'(?:\\.|[^'\\\n])'", re.DOTALL)
CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]+`|\]\([^)\s]*\)",
                  re.DOTALL | re.MULTILINE)
NAME = re.compile(r"[A-Za-z]\w*")
PART_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
HASH = re.compile(r"^[ \t]*#+", re.MULTILINE)
NEVER = re.compile(r"tests/lint/(?:words|self_test)\.py")


def _cxx(text):
    """Comments and strings; those that follow one another are one text."""
    end, kind, found = 0, None, []
    for part in PARTS.finditer(text):
        said = part[part.lastgroup] if part.lastgroup else None
        if part.lastgroup == "mark":
            said = part["raw"]
        if said is None:
            continue
        between = text[end:part.start()]
        if found and kind == part.lastgroup and not between.strip():
            found[-1][1] += "\n" * between.count("\n") + said
        else:
            found.append([text.count("\n", 0, part.start()) + 1, said])
        end, kind = part.end(), part.lastgroup
    return found


def _python(text):
    found, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name not in ("STRING", "COMMENT", "FSTRING_MIDDLE"):
            continue
        said = token.string.strip("#\"'") if name != "FSTRING_MIDDLE" \
            else token.string
        if found and token.start[0] == last + 1:
            found[-1][1] += "\n" + said
        else:
            found.append([token.start[0], said])
        last = token.end[0]
    return found


def _names(tree, path):
    """As _texts, of the identifiers of several words, whether each begins with
    a capital letter or follows an underscore."""
    if (not path.endswith(CXX + (".py",))
            or path.startswith(NAMES_NOT_COVERED)):
        return []
    text, found = tree.read(path), []
    for name in NAME.finditer(text):
        words = PART_OF_NAME.findall(name[0])
        if len(words) > 1:
            found.append((text.count("\n", 0, name.start()) + 1,
                          " ".join(words)))
    return found


def _texts(tree, path):
    """Pairs of first line and text."""
    if not path.endswith(CXX + OTHERS + (".py", ".md")):
        return []
    text = tree.read(path)
    if path.endswith(CXX):
        return _cxx(text)
    if path.endswith(".py"):
        return _python(text)
    if path.endswith(".md"):
        return [(1, CODE.sub(lambda m: "\n" * m[0].count("\n"), text))]
    return [(1, HASH.sub("", text))]


def _compiled(list_of_words):
    return [(re.compile(rf"\b(?:{words})\b".replace(" ", r"\s+"),
                        re.IGNORECASE), instead)
            for words, instead in list_of_words]


RULES = _compiled(WORDS)
NAME_RULES = _compiled(NAME_WORDS)


def check(tree):
    found, used = [], set()
    for path in tree.files:
        if path.startswith(NOT_COVERED) or NEVER.fullmatch(path):
            continue
        for rules, texts in ((RULES, _texts(tree, path)),
                             (NAME_RULES, _names(tree, path))):
            for (rule, instead), (first, text) in itertools.product(rules,
                                                                    texts):
                for match in rule.finditer(text):
                    said = " ".join(match[0].lower().split())
                    if rules is NAME_RULES and said in ALLOWED_NAMES:
                        continue
                    if (path, said) in ALLOWED:
                        used.add((path, said))
                        continue
                    line = first + text.count("\n", 0, match.start())
                    found.append(f"{path}:{line}: '{said}': write {instead}")
    return found + [f"{path}: no longer says '{said}': take it out of ALLOWED "
                    "in tests/lint/words.py"
                    for path, said in sorted(set(ALLOWED) - used)
                    if path in tree.files]
