"""The tree in which self_test.py plants violations: no check finds anything in
it, and it has a file for each check to look at."""

import json

import client_settings

REASONS = """enum ErrorReason {
  ERROR_REASON_UNSPECIFIED = 0;
  // NOT_FOUND. model; available.
  ERROR_REASON_MODEL_NOT_FOUND = 14;
}
"""
REASON_TABLE = """# Errors
<!-- table: reasons -->
| reason | code |
|---|---|
| `MODEL_NOT_FOUND` | NOT_FOUND |
"""
FLAG_TABLE = """<!-- table: flags -->
| flag | what |
|---|---|
| `--model` | a folder |
| `--flagfile` | a file |
"""
METRIC_TABLE = """<!-- table: metrics -->
| metric | what |
|---|---|
| `encoderd_tokens_total` | tokens |
"""
EVENTS = """# deploy
<!-- table: events -->
| event | what |
|---|---|
| `begin`, `on`, `off` | life |
"""
OP_FILES = """# engine
<!-- list: op -->
1. `device/ops.h`: its struct;
2. `device/cpu/NAME_kernel.h` or `encoder_session.cc`: its kernel.
"""
DOCKERFILE = """ARG VERSION=1.2.0
FROM debian:12 AS build
COPY engine \\
  /src/
FROM build
COPY --from=build /src /
"""
CHECKS = """| # | what | verdict |
|---|---|---|
| 1 | `ATest.Holds` | shown |
| 2 | it | partly: the rest |

Shown 1, partly 1, missing 0.
"""
FILES = """# cpu
| file | what it is |
|---|---|
| NAME_kernel.h, simd | dot |
"""
TOKENS = """const TokenHolder* TokenTable::Find(absl::string_view token) const {
  const std::string hash = Hash(token);
  const TokenHolder* found = nullptr;
  for (const auto& holder : holders_) {
    if (CRYPTO_memcmp(hash.data(), holder->hash_.data(), hash.size()) == 0) {
      found = holder.get();
    }
  }
  return found;
}
"""
MESSAGES = """# Messages
<!-- messages: client/cpp/c.cc client/python/c.py -->
| message | when | remedy |
|---|---|---|
| `no file "<path>": give one of at most 7 MiB`<br>`<path> is a folder` | a | b |
| `limit is <value>; it takes 1 or more \\| none` | a | b |
"""
CXX_MESSAGES = """Status C() {
  if (1 > 2) return Refused(path, " is a folder");
  return Refused("no file \\"", path,
                 "\\": give "
                 "one of at most ",
                 kMost, " MiB");
}
"""
PYTHON_MESSAGES = """def c(value):
    rule = f"1 or more | none"
    raise ValueError(f"limit is {value}; it takes " + rule)
"""
NIGHTLY = """# shellcheck shell=bash disable=SC2034
checks=(fuzz
  soak)
"""
FIGURES = {"texts_per_call": 7, "bytes_per_call": 3 << 20, "calls_in_flight": 2,
           "stream_calls_in_flight": 3, "retry_buffer_bytes": 5 << 20,
           "keepalive_time_ms": 8000}
SAID = "".join(words + "\n" for _, words in client_settings.sentences(FIGURES))
CLEAN = {
    client_settings.SETTINGS: json.dumps(FIGURES),
    "client/python/README.md": SAID,
    "CMakeLists.txt": "project(a VERSION 1.2.0)\nadd_subdirectory(engine)\n",
    "Dockerfile": DOCKERFILE,
    "README.md": "[a](server/docs/errors.md#errors)\n",
    "server/docs/errors.md": REASON_TABLE,
    "server/docs/flags.md": FLAG_TABLE,
    "server/docs/metrics.md": METRIC_TABLE,
    ".clang-format": "BasedOnStyle: Google\n",
    ".clang-tidy": "Checks: '-*,performance-for-range-copy'\n"
                   "WarningsAsErrors: '*'\nHeaderFilterRegex: '[.]cc$'\n",
    "engine/README.md": OP_FILES,
    "engine/device/README.md": "# device\n",
    "engine/device/ops.h": "struct AddOp {};\nstruct CutOp {};\n",
    "engine/device/cpu/README.md": FILES,
    "engine/device/cpu/simd.h": "int Simd();\n",
    "engine/device/cpu/add_kernel.h": "void Add(const AddOp& op);\n",
    "engine/encoder_session.cc": "void Run(AddOp op);\n",
    "engine/a.cc": "int A() { return 1; }\n",
    "proto/encoderd/v1/encoder.proto": REASONS,
    "deploy/README.md": EVENTS,
    "client/README.md": "`cpp/`, `python/`\n" + SAID,
    "client/cpp/c.cc": CXX_MESSAGES,
    "client/docs/messages.md": MESSAGES,
    "client/python/c.py": PYTHON_MESSAGES,
    "tests/README.md": "# tests\n",
    "tests/CHECKS.md": CHECKS,
    "tests/nightly.sh": NIGHTLY,
    "tests/nightly/README.md": "# nightly\n",
    "tests/nightly/server.sh": "# shellcheck shell=bash\n"
                               "check_fuzz() { a; }\n\ncheck_soak() { b; }\n",
    "tests/a_test.cc": "TEST(ATest, Holds) {}\n",
    "server/security/README.md": "# security\n",
    "server/security/token_table.cc": TOKENS,
    "server/README.md": "# server\n",
    "server/flags.cc": 'ABSL_FLAG(std::string, model, "", "a folder");\n',
    "server/rows.cc": "// \"max_rows\" of GetRows() in r*.cc; see server/flags.cc.\n"
                      "int GetRows() { return 1; }\n",
    "server/observe/README.md": "# observe\n",
    "server/run.cc": 'void Run(bool on) {\n  Log(LogLevel::kInfo, "begin");\n'
                     '  Log(on ? LogLevel::kInfo : LogLevel::kWarning, '
                     'on ? "on" : "off");\n}\n',
    "server/observe/m.cc": 'const char* k = "encoderd_tokens_total";\n',
}
