#!/usr/bin/env python3
"""deploy/round_weights.py: what it rounds, copies and refuses."""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RoundWeightsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, script, *arguments):
        return subprocess.run(
            [ROOT / "deploy" / script, *map(str, arguments)], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60)

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

    def test_weights_that_are_cut_or_longer_are_refused(self):
        model = self.write_weights("F32", struct.pack("<2I", 1, 1))
        file = model / "model.safetensors"
        whole = file.read_bytes()
        for data in (whole[:-4], whole[:-8], whole + b"x"):
            file.write_bytes(data)
            done = self.run_script("round_weights.py", model,
                                   self.folder / "new")
            self.assertEqual(
                (1, f"round_weights.py: {file} has {len(data)} bytes, expected "
                    f"{len(whole)}: download it again\n"),
                (done.returncode, done.stderr))
            self.assertFalse((self.folder / "new").exists())
        for size in (0, 7, 8, 20):
            file.write_bytes(whole[:size])
            done = self.run_script("round_weights.py", model,
                                   self.folder / "new")
            self.assertEqual(
                (1, f"round_weights.py: {file} has {size} bytes and ends in "
                    "its header: download it again\n"),
                (done.returncode, done.stderr))

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
