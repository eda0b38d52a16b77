#!/usr/bin/env python3
"""Plants one violation for every rule and sees that its check finds it.

A check that finds nothing in a clean tree and the planted line in the other
one can fail; each rule that is added gets its case here.
"""

import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import client_settings
import cxx_tidy
import includes
import lint
import messages
import words
from self_test_tree import (CHECKS, CLEAN, CXX_MESSAGES, DOCKERFILE, EVENTS,
                            FILES, FLAG_TABLE, MESSAGES, METRIC_TABLE,
                            NIGHTLY, OP_FILES, PYTHON_MESSAGES, REASON_TABLE,
                            TOKENS)
from tree import Tree

# A check, and a file that it looks at: without it, it says so.
REMOVED = [
    ("client_settings", client_settings.SETTINGS),
    ("ops", "engine/README.md"),
    ("ops", "engine/device/ops.h"),
    ("ops", "engine/encoder_session.cc"),
    ("dockerfile", "Dockerfile"),
    ("dockerfile", "CMakeLists.txt"),
    ("checks", "tests/CHECKS.md"),
    ("checks", "tests/nightly.sh"),
    ("token_compare", "server/security/token_table.cc"),
]

# check, planted file, its text, what the check must say
PLANTED = [
    ("includes", "engine/b.cc", "#include <grpcpp/grpcpp.h>\n", "b.cc:1"),
    ("includes", "engine/b.cc", '#include "encoderd/v1/encoder.pb.h"\n', "b.cc"),
    ("includes", "engine/b.cc", "#include <google/protobuf/message.h>\n", "b.cc"),
    ("includes", "engine/b.cc", "#include <prometheus/counter.h>\n", "b.cc"),
    ("includes", "engine/b.cc", '#include "absl/flags/flag.h"\n', "b.cc"),
    ("includes", "engine/b.cc", '#  include "server/config.h"\n', "b.cc"),
    ("includes", "engine/b.cc", '#include "client/cpp/client.h"\n', "b.cc"),
    ("includes", "engine/io/b.cc", '#include "engine/base/a.h"\n', "ground floor"),
    ("includes", "engine/base/b.cc", '#include "engine/device/d.h"\n', "io alone"),
    ("includes", "engine/device/b.cc", '#include "engine/checkpoint/c.h"\n',
     "no model folder"),
    ("includes", "engine/checkpoint/b.cc", '#include "engine/device/device.h"\n',
     "knows none"),
    ("includes", "engine/tokenizer/b.cc", '#include "engine/checkpoint/c.h"\n',
     "next to checkpoint"),
    ("includes", "engine/b.cc", '#include "engine/device/cpu/ops.h"\n', "seam"),
    ("includes", "engine/b.cc", '#include "engine/device/cuda/ops.h"\n', "seam"),
    ("includes", "engine/b.cu", "#include <cuda_fp16.h>\n", "CUDA"),
    ("includes", "engine/device/cpu/b.cc", "#include <cublasLt.h>\n", "CUDA"),
    ("includes", "engine/b.cu", "#include <cute/tensor.hpp>\n", "CUTLASS"),
    ("includes", "engine/b.cc", "#include <nlohmann/json.hpp>\n", "engine/io"),
    ("includes", "engine/b.cc", "#include <unicode/uchar.h>\n", "ICU"),
    ("includes", "client/cpp/b.cc", "#include <stb/stb_image_write.h>\n", "one place"),
    ("includes", "server/pipeline/b.cc", "#include <grpcpp/status.h>\n", "b.cc"),
    ("includes", "server/pipeline/b.cc", '#include "server/rpc/s.h"\n', "b.cc"),
    ("includes", "server/api/b.cc", '#include "encoderd/v1/encoder.pb.h"\n', "the API"),
    ("includes", "server/api/b.cc", '#include "server/observe/http.h"\n', "protocols"),
    ("includes", "server/net/b.cc", '#include "server/base/log.h"\n', "below"),
    ("includes", "server/base/b.cc", '#include "server/net/n.h"\n', "ground floor"),
    ("includes", "server/security/b.cc", '#include "server/rpc/s.h"\n', "secrets"),
    ("includes", "server/trace/b.cc", '#include "server/observe/m.h"\n', "spans"),
    ("includes", "server/observe/b.cc", '#include "server/rpc/s.h"\n', "metrics"),
    ("includes", "server/rpc/b.cc", '#include "server/config.h"\n', "no flags"),
    ("includes", "server/b.cc", '#include "engine/checkpoint/checkpoint_reader.h"\n', "b.cc"),
    ("includes", "server/b.cc", '#include "client/cpp/client.h"\n', "b.cc"),
    ("includes", "client/cpp/b.cc", '#include "engine/model.h"\n', "b.cc"),
    ("includes", "client/cpp/b.cc", '#include "server/config.h"\n', "b.cc"),
    ("format", "engine/b.cc", "int  B( ) {return 1;}\n", "b.cc:1"),
    ("names", "engine/b.cc", "int B();  // see KernelsFor\n", "b.cc:1: names KernelsFor"),
    ("names", "engine/b.h", "/* a\n * kMaxRows */\n", "b.h:2: names kMaxRows"),
    ("names", "engine/b.h", "// max_rows\n", "names max_rows"),
    ("names", "engine/b.h", "// Tell() first\n", "names Tell"),
    ("names", "engine/b.h", "// of A::Load\n", "names Load"),
    ("names", "engine/b.h", "// see engine/io/ab.cc\n", "io/ab.cc, which is no"),
    ("names", "engine/CMakeLists.txt", "# as c_test.cc does\n", "names c_test.cc"),
    ("names", "tests/b.py", "def b():\n    \"\"\"See no_such.\"\"\"\n", "b.py:2"),
    ("names", "engine/README.md", "`gone` is the door\n", "names gone"),
    ("names", "server/README.md", "| `gone_*.cc` | it |\n", "gone_*.cc, which is no"),
    ("top_level", "docs/a.txt", "a\n", "docs"),
    ("file_length", "engine/b.cc", "// a\n" * 401, "401 lines"),
    ("file_length", "CMakeLists.txt", "# a\n" * 81, "81 lines"),
    ("line_width", "client/b.py", "\n" + "#" * 81, "b.py:2: 81 columns, at most 80"),
    ("line_width", "tests/b.py", "#" * 101, "b.py:1: 101 columns, at most 100"),
    ("folder_readme", "engine/io/b.cc", "int b;\n", "engine/io"),
    ("readme_files", "engine/device/cpu/dot.h", "int b;\n",
     "cpu/README.md: its table of files lacks dot.h"),
    ("readme_files", "engine/device/cpu/README.md", FILES.replace("NAME", "b"),
     "lacks add_kernel.h"),
    ("no_pickle", "client/python/a.py", "import pickle\n", "a.py:1"),
    ("no_pickle", "client/python/a.py", "torch.load(f)\n", "a.py:1"),
    ("no_pickle", "tests/a.pt", "a", "a.pt"),
    ("no_pickle", "tests/a.safetensors", "a" * (5 << 20), "larger than"),
    ("executable", "deploy/a.sh", "#!/bin/sh\n", "not executable"),
    ("shellcheck", "deploy/a.sh", "#!/bin/sh\nrm $1/*\n", "SC2086"),
    ("links", "engine/README.md", "[a](b.md)\n", "b.md"),
    ("links", "README.md", "[a](server/docs/errors.md#error)\n", "md#error,"),
    ("links", "engine/README.md", "# b\n[a](#c)\n", "#c"),
    ("reasons", "server/docs/errors.md",
     REASON_TABLE.replace("MODEL_NOT", "NOT"), "NOT_FOUND"),
    ("reasons", "server/docs/errors.md",
     REASON_TABLE.replace("| NOT_FOUND", "| OK"), "code"),
    ("flags", "server/docs/flags.md", FLAG_TABLE.replace("--model", "--mode"),
     "`mode`"),
    ("flags", "server/flags.cc", "ABSL_FLAG(int32_t, a, 1, \"\");\n", "`a`"),
    ("architectures", "engine/checkpoint/architectures.json", '{"gpt-2": {}}\n',
     "`gpt-2`"),
    ("metrics", "server/docs/metrics.md",
     METRIC_TABLE.replace("tokens_total", "to"), "_to`"),
    ("events", "deploy/README.md", EVENTS.replace("`begin`, ", ""),
     "`begin` is not in"),
    ("events", "deploy/README.md", EVENTS.replace("`begin`", "`began`"),
     "`began` does not exist"),
    ("events", "server/run.cc", 'Log(LevelOf(x), "new");\n', "`new` is not in"),
    ("ops", "engine/README.md", "# engine\n", "takes 0 files"),
    ("ops", "engine/README.md",
     OP_FILES + "".join(f"{i}. `device/ops.h`\n" for i in range(3, 10)),
     "takes 9 files"),
    ("ops", "engine/README.md", OP_FILES.replace("NAME_", "no_"),
     "README.md:4: there is no device/cpu/no_kernel.h"),
    ("ops", "engine/README.md", OP_FILES.replace(" or `encoder_session.cc`", "")
     + "3. `a.cc`: what a pass runs.\n", "README.md:5: AddOp is in no a.cc"),
    ("dockerfile", "Dockerfile", DOCKERFILE.replace("/src/", "gone /src/"),
     "Dockerfile:3: copies gone"),
    ("dockerfile", ".dockerignore", "engine\n", "copies engine"),
    ("dockerfile", "Dockerfile", DOCKERFILE.replace("FROM build", "FROM built"),
     "Dockerfile:5: FROM built"),
    ("dockerfile", "Dockerfile", DOCKERFILE.replace("=build", "=built"),
     "Dockerfile:6: COPY --from=built"),
    ("dockerfile", "CMakeLists.txt", "add_subdirectory(server)\n",
     "does not copy server"),
    ("versions", "Dockerfile", DOCKERFILE.replace("1.2.0", "1.1.0"),
     "says version 1.1.0, but CMakeLists.txt 1.2.0"),
    ("versions", "client/python/pyproject.toml", 'version = "1.2"\n', "version 1.2,"),
    ("versions", "client/python/encoderd/__init__.py", "", "version none"),
    ("versions", "deploy/kubernetes/overlays/a/kustomization.yml",
     "images:\n  - newTag: 1.2.0\n    newTag: 1.3.0\n", "1.3.0"),
    ("versions", "CMakeLists.txt", "project(a)\n", "no version"),
    ("client_settings", client_settings.SETTINGS, "{}", "has no texts_per_call"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("Holds", "Falls"),
     "CHECKS.md:3: there is no ATest.Falls"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("2 | it", "2 | `test_b`"),
     "CHECKS.md:4: there is no test_b"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("it", "`nightly.sh b`"),
     "there is no nightly.sh b"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("`", ""), "but by no test"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("partly: the rest", "partly"),
     "'partly' is neither"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("| 2 |", "| 3 |"), "row 3, not 2"),
    ("checks", "tests/CHECKS.md", CHECKS.replace("Shown 1", "Shown 2"),
     "says [2, 1, 0]"),
    ("checks", "tests/nightly.sh", NIGHTLY.replace(" soak", ""),
     "check_soak is not in 'checks'"),
    ("checks", "tests/nightly.sh", NIGHTLY.replace(" soak", " soak rain"),
     "there is no check_rain"),
    ("checks", "tests/nightly.sh", "", "check_fuzz is not in 'checks'"),
    ("token_compare", "server/security/token_table.cc",
     TOKENS.replace("CRYPTO_memcmp", "memcmp"), "no loop with CRYPTO_memcmp"),
    ("token_compare", "server/security/token_table.cc",
     TOKENS.replace("found = holder.get();", "return holder.get();"), "'return'"),
    ("token_compare", "server/security/token_table.cc",
     TOKENS.replace("if (C", "if (hash == holder->hash_ || C"), "'=='"),
    ("token_compare", "server/security/token_table.cc",
     TOKENS.replace("  for (", "  if (hash == last_) return nullptr;\n  for ("),
     "outside of its loop"),
    ("steady_time", "server/b.cc", "auto t = absl::Now();\n", "b.cc:1"),
    ("steady_time", "client/cpp/b.cc", "mu_.AwaitWithTimeout(c, t);\n", "b.cc:1"),
    ("steady_time", "engine/b.cc", "int t = time(nullptr);\n", "b.cc:1"),
    ("steady_time", "engine/b.cc", "clock_gettime(CLOCK_REALTIME, &t);\n", "b.cc:1"),
    ("steady_time", "server/b.cc", "condition.wait_until(lock, t);\n", "b.cc:1"),
    ("steady_time", "server/b.cc", "std::this_thread::sleep_until(t);\n", "b.cc:1"),
    ("steady_time", "tests/unit/b.cc",
     "F(absl::ToChronoTime(absl::Now() + t));\nauto t = absl::Now();\n", "b.cc:2"),
    ("steady_time", "server/b.cc", "F(absl::ToChronoTime(absl::Now()));\n", "b.cc:1"),
    ("steady_time", "server/base/log.cc", "F(absl::Now());\nF(absl::Now());\n",
     "log.cc: reads the wall clock 2 times, and 1 is allowed"),
    ("steady_time", "server/base/log.cc", "int b;\n", "0 times, and 1"),
    ("unused_using", "server/b.cc", "using a::B;\nint BB();\n", "b.cc:1: B is taken"),
    ("messages", "client/docs/messages.md", "# Messages\n", "no page"),
    ("messages", "client/docs/messages.md", MESSAGES.replace("one of", "two of"),
     "messages.md:5: no source says 'give two of at most'"),
    ("messages", "client/docs/messages.md", MESSAGES.replace("more", "less"),
     "messages.md:6: no source says 'or less | none'"),
    ("messages", "client/docs/messages.md", MESSAGES + "| `<a> is <b>` | a | b |\n",
     "messages.md:7: no source says"),
    ("messages", "client/docs/messages.md",
     MESSAGES.replace("<br>`<path> is a folder`", ""),
     "c.cc:2: 'is a folder' is in no table of client/docs/messages.md"),
    ("messages", "client/cpp/c.cc", CXX_MESSAGES.replace("1 > 2", "Bad(a, \"not so\")"),
     "c.cc:2: 'not so' is in no table"),
    ("messages", "client/python/c.py",
     PYTHON_MESSAGES + "    raise make_error(\"no \"\n    \"way\")\n",
     "c.py:4: 'no way' is in no table"),
    ("words", "README.md", "`anew`\n\nIt is gone\non with.\n", "README.md:3: 'gone on"),
    ("words", "server/docs/b.cc", "int b;  // one\n// stands\n// there\n", "b.cc:2"),
    ("words", "server/docs/b.cc", 'auto b = "a "\n"beside " "b";\n', "b.cc:2"),
    ("words", "server/docs/b.py", 'b = 1\nprint(f"{b} anew")\n', "b.py:2"),
    ("words", "server/docs/b.sh", "# as\n# ever\n", "b.sh:1"),
    ("words", "server/docs/b.cc", "int b;\nint CallUnderWay();\n", "b.cc:2"),
    ("words", "server/docs/b.py", "def b_goes_on():\n    pass\n", "b.py:1"),
    ("words", "client/cpp/b.h", "// anew\n", "b.h:1"),
    ("words", "deploy/b.service", "# as ever\n[Unit]\n", "b.service:1"),
    ("words", "deploy/b.flags", "\n# as ever\n", "b.flags:2"),
]


def write(root, path, text):
    file = pathlib.Path(root) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in CLEAN.items():
            write(self.root, path, text)

    def test_finds_nothing_in_a_clean_tree(self):
        for name, check in lint.CHECKS.items():
            if check:
                with self.subTest(name):
                    self.assertEqual([], check(Tree(self.root)))

    def test_finds_what_is_planted(self):
        for name, path, text, expected in PLANTED:
            with self.subTest(name, path=path, text=text[:60]):
                write(self.root, path, text)
                found = lint.CHECKS[name](Tree(self.root))
                self.assertTrue(any(expected in f for f in found), found)
                os.remove(f"{self.root}/{path}")
                if path in CLEAN:
                    write(self.root, path, CLEAN[path])

    def test_finds_that_what_it_looks_at_is_missing(self):
        for name, path in REMOVED:
            with self.subTest(name, path=path):
                os.remove(f"{self.root}/{path}")
                self.assertIn(f"{path} is missing",
                              lint.CHECKS[name](Tree(self.root)))
                write(self.root, path, CLEAN[path])

    def test_finds_an_executable_without_a_first_line(self):
        os.chmod(f"{self.root}/engine/a.cc", 0o755)
        self.assertTrue(lint.CHECKS["executable"](Tree(self.root)))

    def test_words_that_are_allowed_must_occur(self):
        allowed = ("README.md", "anew")
        with mock.patch.dict(words.ALLOWED, {allowed: "a quotation"}):
            self.assertTrue(words.check(Tree(self.root)))
            write(self.root, "README.md", "anew\n")
            self.assertEqual([], words.check(Tree(self.root)))
        self.assertTrue(words.check(Tree(self.root)))

    def test_messages_that_are_not_listed_must_occur(self):
        unlisted = ("client/cpp/c.cc", "is a folder")
        with mock.patch.dict(messages.NOT_LISTED, {unlisted: "a defect"}):
            self.assertTrue(messages.check(Tree(self.root)))
            write(self.root, "client/docs/messages.md",
                  MESSAGES.replace("<br>`<path> is a folder`", ""))
            self.assertEqual([], messages.check(Tree(self.root)))

    def test_every_check_has_a_planted_violation(self):
        self.assertEqual(set(lint.CHECKS) - {"tidy"},
                         {case[0] for case in PLANTED})

    def test_every_include_rule_has_a_planted_violation(self):
        said = "\n".join(
            line for name, path, text, _ in PLANTED if name == "includes"
            for line in self._includes(path, text))
        for rule in includes.RULES + includes.OWNERS:
            self.assertIn(rule[-1], said)

    def _includes(self, path, text):
        write(self.root, path, text)
        found = includes.check(Tree(self.root))
        os.remove(f"{self.root}/{path}")
        return found

    def test_tidy_finds_a_copy_in_a_loop(self):
        text = ("#include <string>\n#include <vector>\n"
                "static int Sum(const std::vector<std::string>& all) {\n"
                "  int n = 0;\n  for (const auto s : all) n += s.size();\n"
                "  return n;\n}\n"
                "int B() { return Sum({}); }\n")
        write(self.root, "engine/b.cc", text)
        self.assertEqual([], self._tidy("engine/a.cc"))
        for sources in (["b"], ["a", "b"], ["b", "c"], ["a", "b", "c"]):
            write(self.root, "engine/c.cc", "static int Sum = 1;\n")  # a clash
            found = self._tidy(*(f"engine/{name}.cc" for name in sources))
            self.assertEqual(["engine/b.cc:5"],
                             [":".join(f.split(":")[:2]) for f in found], found)

    def _tidy(self, *paths):
        root = str(pathlib.Path(self.root).resolve())
        write(self.root, "compile_commands.json", json.dumps(
            [{"directory": root, "file": f"{root}/{path}",
              "command": f"c++ -std=c++20 -o {path}.o -c {root}/{path}"}
             for path in paths]))
        return cxx_tidy.check(Tree(self.root), self.root)


if __name__ == "__main__":
    unittest.main()
