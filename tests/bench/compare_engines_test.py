#!/usr/bin/env python3
"""What compare_engines.py asks of the engines, and what it counts."""

import contextlib
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import compare_engines
import instructions
import peers
import workloads

BERT = {"model_type": "bert", "num_hidden_layers": 3, "hidden_size": 4,
        "intermediate_size": 5, "vocab_size": 2000}
MODERN = {"model_type": "modernbert", "num_hidden_layers": 4, "hidden_size": 4,
          "intermediate_size": 5, "vocab_size": 2000, "local_attention": 6,
          "global_attn_every_n_layers": 3, "cls_token_id": 7,
          "sep_token_id": 8}


class CompareEnginesTest(unittest.TestCase):
    def test_a_workload_of_a_few_sequences_has_just_those(self):
        self.assertEqual(workloads.lengths("8x128"), [128] * 8)
        self.assertEqual(workloads.batch_sizes("8x128"), [1, 2, 4, 8])
        self.assertEqual(workloads.batch_sizes("1x8192"), [1])
        self.assertEqual(workloads.lengths("512"), [512] * 32)

    def test_sequences_stand_between_the_models_own_special_tokens(self):
        for config, ends in (BERT, (101, 102)), (MODERN, (7, 8)):
            for row in workloads.sequences("8x16", config):
                self.assertEqual(len(row), 16)
                self.assertEqual((row[0], row[-1]), ends)

    def test_pairs_are_those_within_the_window(self):
        for n in 1, 2, 3, 4, 7, 50:
            near = sum(abs(i - j) <= 3 for i in range(n) for j in range(n))
            self.assertEqual(workloads.pairs(MODERN, n),
                             2 * n * n + 2 * near)
            self.assertEqual(workloads.pairs(BERT, n), 3 * n * n)
        kinds = ["sliding_attention"] * 3 + ["full_attention"]
        self.assertEqual(
            workloads.pairs({**MODERN, "layer_types": kinds}, 4),
            3 * 16 + 16)

    def test_peers_are_named_by_class_or_with_a_dtype(self):
        def names(chosen):
            return [(kind.__name__, dtype) for kind, dtype
                    in compare_engines.chosen_peers(chosen)]
        self.assertEqual(names("Torch,OnnxRuntime"),
                         [("OnnxRuntime", "fp32"), ("Torch", "fp32"),
                          ("Torch", "bf16")])
        self.assertEqual(names("OpenVino fp32, Torch fp32"),
                         [("OpenVino", "fp32"), ("Torch", "fp32")])
        with self.assertRaisesRegex(SystemExit, "no peer 'Toch'; available: .*"
                                    "Torch bf16"):
            compare_engines.chosen_peers("OpenVino,Toch")

    def test_sequences_alone_are_not_padded_and_keep_their_order(self):
        def model(ids, mask):
            return ids[:, :1] * mask.sum()

        # PyTorch itself is no requirement of the tests.
        torch = types.SimpleNamespace(
            tensor=np.array, ones=lambda *shape, dtype: np.ones(shape, dtype),
            int64=np.int64, inference_mode=contextlib.nullcontext)
        with mock.patch.dict(sys.modules, torch=torch), \
                mock.patch.object(peers, "torch_model", return_value=model):
            vectors = peers.torch_vectors("folder", [[5, 5, 5], [2], [3, 3]])
        self.assertEqual(vectors.tolist(), [[15], [2], [6]])

    def test_short_passes_are_many_and_a_long_one_is_enough(self):
        class Engine:
            @staticmethod
            def seconds():
                return 0.125

        self.assertEqual(
            compare_engines.passes_of(Engine, 0.5), [0.125] * 4)
        self.assertEqual(compare_engines.passes_of(Engine, 0), [0.125])

    def test_a_gate_is_a_third_product(self):
        attention = 4 * 4 * workloads.pairs(MODERN, 1)
        self.assertEqual(workloads.flops(MODERN, [[1]]) - attention,
                         4 * 2 * (4 * 16 + 3 * 20))

    def test_the_first_row_of_the_last_layer_is_enough_for_cls(self):
        window = {"num_hidden_layers": 1, "layer_types": ["sliding_attention"]}
        for config, inner, most_keys in (
                ({**BERT, "num_hidden_layers": 1}, 2, 99),
                ({**MODERN, **window}, 3, 4)):
            h, f = config["hidden_size"], config["intermediate_size"]
            for n in (1, 2, 9):
                # Keys and values; query, output and feed-forward; attention.
                self.assertEqual(
                    workloads.flops(config, [[1] * n], "cls"),
                    n * 4 * h * h + 2 * (2 * h * h + inner * h * f)
                    + 4 * h * min(n, most_keys))

    def start_again(self, faults, built, preloaded=""):
        """What hide_newer_than_avx2 starts, or the error; None: nothing."""
        with tempfile.TemporaryDirectory() as folder:
            hider = os.path.join(folder, "libhide_isa.so")
            if built:
                with open(hider, "w", encoding="utf-8"):
                    pass
            preloaded = preloaded.replace("HIDER", hider)
            with mock.patch.object(instructions, "cpuid_faults",
                                   return_value=faults), \
                    mock.patch.dict(os.environ, LD_PRELOAD=preloaded), \
                    mock.patch("os.execv") as execv:
                try:
                    instructions.hide_newer_than_avx2(
                        os.path.join(folder, "engine_bench"))
                except SystemExit as error:
                    return str(error)
                if not execv.called:
                    return None
                self.assertEqual(execv.call_args.args,
                                 (sys.executable, sys.orig_argv))
                return os.environ["LD_PRELOAD"].replace(hider, "HIDER")

    def test_avx2_starts_again_with_newer_instructions_hidden(self):
        self.assertIsNone(self.start_again(True, False))
        self.assertEqual(self.start_again(False, True), "HIDER")
        self.assertEqual(self.start_again(False, True, "/lib/other.so"),
                         "HIDER:/lib/other.so")
        self.assertIn("has no effect",
                      self.start_again(False, True, "HIDER"))
        self.assertIn("build hide_isa", self.start_again(False, False))


if __name__ == "__main__":
    sys.exit(unittest.main())
