"""Comments and pages name only what exists.

A word that looks like a name of ours, or a file, must occur in the code or be
a file of the tree. Comments define nothing: what only they know is found.
"""

import fnmatch
import io
import re
import tokenize

# Names that others gave, and what they are.
ALLOWED = {
    "AddressSanitizer": "the compilers'", "ThreadSanitizer": "the compilers'",
    "OpenCL": "Khronos's", "OpenMP": "a standard", "omp.h": "OpenMP's",
    "RoBERTa": "a family of models", "ModernBERT": "a family of models",
    "ModernBertRotaryEmbedding": "transformers'", "TensorFlow": "a library",
    "ReLU": "an activation that no model here has", "KiB": "1024 bytes",
    "padding_idx": "torch's", "relative_position_bucket": "transformers'",
    "LangChain": "a package", "LlamaIndex": "a package",
    "too_many_pings": "a GOAWAY of gRPC's",
    "WithDefaultServiceConfig": "grpc-go's",
    "kubernetes_sd_configs": "Prometheus'", "PromQL": "Prometheus' language",
    "terminationGracePeriodSeconds": "Kubernetes'", "LimitNOFILE": "systemd's",
    "iter_rows": "polars'", "first.py": "the reader's",
    "truncate_sentence_embeddings": "sentence-transformers'",
    "lower_snake": "a way to write names",
    "histogram_quantile": "PromQL's",
    "experimental_allow_proto3_optional": "an option of old protocs",
    "xla/service/gpu/model/matmul_interpolator_data.h": "XLA's",
    "encoderd-bundle/tests/gpu.sh": "in what deploy/bundle.sh makes",
}

CXX = (".h", ".cc", ".cu", ".proto", ".c", ".java", ".go", ".rs", ".mjs",
       ".php")
HASH = (".sh", ".cmake", "CMakeLists.txt", ".rb", ".pl")
COMMENTED = CXX + HASH + (".py",)
PLAIN = (".h.in", ".json", ".toml", ".yml", ".service", "Dockerfile",
         ".clang-tidy")
DEFINES_NOTHING = ("tests/lint/code_names.py", "tests/lint/self_test.py",
                   "tests/lint/self_test_tree.py")

CXX_PARTS = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])'", re.DOTALL)
HASH_PARTS = re.compile(r"(?P<comment>(?<!\S)#[^\n]*)")
TICKED = re.compile(r"`([^`\n]+)`")
QUOTED = re.compile(r'"[^"\n]*"')  # an example
FILE = re.compile(r"[\w*./-]*[\w*]{2}"
                  r"\.(?:h|cc|cu|cuh|py|sh|cmake|proto|md)\b(?![\w/(])")
WORD = re.compile(r"[A-Za-z_]\w*")
# "MaxRows", "kMaxRows", "max_rows"; the name of "Load()" and "Model::Load".
OURS = re.compile(r"\b(k?[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]*)+|k[A-Z][a-z]\w+"
                  r"|[a-z][a-z0-9]+(?:_[a-z0-9]+)+_?"
                  r"|[A-Za-z]\w+(?=\(\))|[A-Z]\w+(?=::)|(?<=::)[A-Z]\w+)\b")
SINGLE = re.compile(r"[A-Za-z]\w*[a-z]\w*")  # alone between ticks


def _split(tree, path):
    """The code; and the comments, as pairs of line number and text."""
    text = tree.read(path)
    if path.endswith(".py"):
        return _split_python(text)
    parts = CXX_PARTS if path.endswith(CXX) else HASH_PARTS
    code, comments, end = [], [], 0
    for part in parts.finditer(text):
        if part.group("comment"):
            comments.append((text.count("\n", 0, part.start()) + 1, part[0]))
            code.append(text[end:part.start()])
            end = part.end()
    return " ".join(code + [text[end:]]), comments


def _split_python(text):
    """A string that is its own statement is a comment, too."""
    code, comments = [], []
    starts = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
                token.type == tokenize.STRING and before in starts):
            comments.append((token.start[0], token.string.strip("\"")))
        else:
            code.append(token.string)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return " ".join(code), comments


def _said(tree, path, comments):
    """Pairs of line number and text in which names are looked for."""
    if path.endswith(".md"):
        return [(number, ticked) for number, line in tree.lines(path)
                for ticked in TICKED.findall(line)]
    return [(first + i, QUOTED.sub(" ", line))
            for first, comment in comments
            for i, line in enumerate(comment.splitlines())]


def _names(path, text):
    names = OURS.findall(FILE.sub(" ", text))
    if path.endswith("README.md") and SINGLE.fullmatch(text):
        names.append(text)
    return names


def _exists(name, words):
    series = re.sub(r"_(?:bucket|count|sum)$", "", name)  # of a histogram
    return (name in words or series in words
            or (name.endswith("s") and name[:-1] in words))


def _is_file(name, files):
    name = name.lstrip("./")
    pattern = name.replace("NAME", "*")
    return name in files or ("*" in pattern
                             and bool(fnmatch.filter(files, pattern)))


def check(tree):
    words, files, comments = set(ALLOWED), set(ALLOWED), {}
    for path in tree.files:
        parts = path.split("/")
        files.update("/".join(parts[i:]) for i in range(len(parts)))
        words.update(WORD.findall(path))
        code = ""
        if path.endswith(COMMENTED):
            code, comments[path] = _split(tree, path)
        elif path.endswith(PLAIN):
            code = tree.read(path)
        if path not in DEFINES_NOTHING:
            words.update(WORD.findall(code))
            files.update(FILE.findall(code))
    found = []
    for path in tree.files:
        if not path.endswith(COMMENTED + (".md",)) or path == "CHANGELOG.md":
            continue
        for number, text in _said(tree, path, comments.get(path, ())):
            found += [f"{path}:{number}: names {name}, which is no file"
                      for name in FILE.findall(text)
                      if not _is_file(name, files)]
            found += [f"{path}:{number}: names {name}, which does not exist"
                      for name in _names(path, text)
                      if not _exists(name, words)]
    return found
