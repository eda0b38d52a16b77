#!/usr/bin/env python3
"""Changes settings of model folders one by one, and compares what the server
makes of each with sentence-transformers: the same vectors of texts and pairs, or
a refusal.

    ENCODERD_TEST_MODEL="$(deploy/fetch-model.sh)" \\
        build/peers/bin/python tests/nightly/settings.py build/dev/bin

The folders are small and random, one per kind of tokenizer; settings are those
of config.json, tokenizer_config.json, sentence_bert_config.json and
config_sentence_transformers.json. Prints every change that is not "same", and
counts at the end; exits 1 where vectors differ without being in KNOWN, where
one of KNOWN does not differ any more, or where an unchanged folder is not the
same: its changes would show nothing. What sentence-transformers fails with
is counted, but no fault.
"""

import argparse
import collections
import copy
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import encoderd  # noqa: E402
import numpy as np  # noqa: E402
import sentence_transformers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from server_process import Server  # noqa: E402

DATA = ROOT / "tests" / "golden" / "data"
MOST = 2e-5  # of a value; both compute in fp32
GONE = "(removed)"
CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"
SENTENCE = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
TEXTS = [
    "Hello World, this is a Test of MIXED case.", "Hello",
    "Crème Brûlée à la carte, s'il vous plaît, ÉCOLE",
    "ΟΔΟΣ Straße naïve İstanbul 中文字符 テキスト", "  two  spaces   and\ttabs \n",
    "a [MASK] b <mask> c <s> </s> d [SEP] [CLS] e [PAD] <pad> <unk>",
    "don't won't I'm (brackets) x.y - z ! ?", "x" * 120, "word " * 90,
    "alpha beta gamma " * 400]
PAIRS = [("What is a Test?", "A test of MIXED case."), ("", "Hello"),
         ("word " * 30, "alpha beta " * 90)]

TOKEN = {"lstrip": False, "rstrip": False, "normalized": False,
         "single_word": False, "special": False}
CHANGES = {
    CONFIG: {
        "hidden_act": ["relu", "gelu_new", "silu", "gelu_fast", None,
                       GONE],
        "hidden_activation": ["relu", "silu", GONE],
        "activation_function": ["relu", "gelu", GONE],
        "layer_norm_eps": [1e-3, GONE], "norm_eps": [1e-3, GONE],
        "layer_norm_epsilon": [1e-3, GONE],
        "position_embedding_type": ["relative_key", "rotary", GONE],
        "is_decoder": [True], "is_encoder_decoder": [True],
        "add_cross_attention": [True], "is_causal": [True, None],
        "pruned_heads": [{"0": [1]}], "tie_word_embeddings": [False],
        "hidden_dropout_prob": [0.5], "attention_probs_dropout_prob": [0.5],
        "output_hidden_states": [True], "return_dict": [False],
        "pad_token_id": [0, 3, GONE], "architectures": [["BertForMaskedLM"]],
        "tokenizer_class": ["PreTrainedTokenizerFast"],
        "max_position_embeddings": [GONE], "num_hidden_layers": [1, 3],
        "num_attention_heads": [4, 1], "intermediate_size": [32],
        "embedding_size": [32, GONE], "inner_group_num": [2],
        "relative_attention_num_buckets": [16, GONE],
        "scale_attn_weights": [False, None], "reorder_and_upcast_attn": [True],
        "scale_attn_by_inverse_layer_idx": [True], "n_inner": [64, GONE],
        "global_attn_every_n_layers": [1, GONE], "local_attention": [8, GONE],
        "layer_types": [["sliding_attention", "full_attention"], GONE],
        "global_rope_theta": [500.0], "local_rope_theta": [300.0, None],
        "rope_parameters": [GONE],
        "rope_scaling": [{"rope_type": "linear", "factor": 2.0}, {},
                         {"rope_type": "default"}],
        "sliding_window": [4], "norm_bias": [True], "mlp_bias": [True],
        "attention_bias": [True], "vocab_size": [17],
        "auto_map": [{"AutoModel": "own.Model"}],
    },
    TOKENIZER: {
        "do_lower_case": [True, False, GONE],
        "strip_accents": [True, False, None, GONE],
        "tokenize_chinese_chars": [False, GONE],
        "add_prefix_space": [True, False, GONE],
        "model_max_length": [20, 10 ** 30, GONE],
        "tokenizer_class": ["PreTrainedTokenizerFast", "TokenizersBackend",
                            GONE],
        "cls_token": ["[MASK]", "</s>", GONE],
        "sep_token": ["[MASK]", "<s>", GONE],
        "unk_token": ["[PAD]", "<pad>", GONE], "mask_token": ["or", GONE],
        "padding_side": ["left"], "truncation_side": ["left"],
        "clean_up_tokenization_spaces": [True, False],
        "model_input_names": [["input_ids", "attention_mask"],
                              ["input_ids", "token_type_ids",
                               "attention_mask"]],
        "image_token": ["or"], "max_len": [10],
        "model_specific_special_tokens": [{"name": "or"}],
        "added_tokens_decoder": [
            {"9": dict(TOKEN, content="brackets")},
            {"103": dict(TOKEN, content="[MASK]", single_word=True)}],
        # Within words: to find it changes ids.
        "additional_special_tokens": [["or"]],
        "extra_special_tokens": [["or"], {"name": "or"}],
        "split_special_tokens": [True], "never_split": [["Hello"]],
        "do_basic_tokenize": [False], "trim_offsets": [False],
        "use_fast": [False], "max_length": [8], "keep_accents": [True],
    },
    "special_tokens_map.json": {"additional_special_tokens": [["or"]],
                                "image_token": [dict(TOKEN, content="or")]},
    # Of BERT's kind alone it is built again.
    "tokenizer.json": {"normalizer": [None]},
    "added_tokens.json": {"or": [5]},
    SENTENCE: {
        "max_seq_length": [10, 100, None, GONE], "do_lower_case": [True],
        "model_args": [{"attn_implementation": "eager"}],
        "tokenizer_args": [{"do_lower_case": False}, {"model_max_length": 9},
                           {"model_max_length": 90},
                           {"add_prefix_space": True}, {}],
        "config_kwargs": [{"hidden_act": "relu"}, {"num_hidden_layers": 1},
                          {"is_decoder": True}, {}],
        "processing_kwargs": [{"text": {"max_length": 7}}, {}],
        "query_length": [5], "document_length": [5],
        "transformer_task": ["feature-extraction", "fill-mask"],
    },
    PROMPTS: {
        "truncate_dim": [8, None], "similarity_fn_name": ["dot"],
        "prompts": [{"query": "Hello "}],
        "default_prompt_name": [None, "query"],
    },
}

# Differences that are meant: (file, key), or with the value as JSON; why, and
# the kinds of model where they do.
REBUILT = "only transformers 5 takes it over tokenizer.json"
SEGMENTS = "only transformers 5 leaves out a pair's segments"
EVERY = ("bert", "roberta", "xlm_roberta", "mpnet", "gpt2", "modernbert")
KNOWN = {
    (TOKENIZER, "cls_token"): (REBUILT, ("bert", "roberta", "mpnet")),
    (TOKENIZER, "sep_token"): (REBUILT, ("bert", "roberta", "mpnet")),
    (TOKENIZER, "unk_token"): (REBUILT, ("bert", "mpnet")),
    (TOKENIZER, "add_prefix_space", "false"): (REBUILT, ("xlm_roberta",)),
    (TOKENIZER, "model_max_length", "20"): (
        "the smallest limit is max_len", EVERY),
    (TOKENIZER, "truncation_side"): ("the caller chooses the side", EVERY),
    (TOKENIZER, "tokenizer_class", '"PreTrainedTokenizerFast"'): (
        SEGMENTS, ("bert",)),
    (TOKENIZER, "tokenizer_class", '"TokenizersBackend"'): (
        SEGMENTS, ("bert",)),
}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64}
ANGLES = {name + "_token": f"<{text}>" for name, text in
          (("unk", "unk"), ("bos", "s"), ("eos", "/s"), ("sep", "/s"),
           ("cls", "s"), ("pad", "pad"), ("mask", "mask"))}
BRACKETS = {name + "_token": f"[{name.upper()}]"
            for name in ("unk", "sep", "pad", "cls", "mask")}
LIKE_BERT = {"do_lower_case": True, "strip_accents": None,
             "tokenize_chinese_chars": True}
END = "<|endoftext|>"
# Name: the model, tokenizer_config.json.
MODELS = {
    "bert": (dict(SMALL, model_type="bert", max_position_embeddings=128),
             dict(BRACKETS, **LIKE_BERT, tokenizer_class="BertTokenizer",
                  model_max_length=512)),
    "roberta": (dict(SMALL, model_type="roberta", pad_token_id=1,
                     max_position_embeddings=130),
                dict(ANGLES, tokenizer_class="RobertaTokenizer",
                     add_prefix_space=False, model_max_length=128)),
    "xlm_roberta": (dict(SMALL, model_type="xlm-roberta", pad_token_id=1,
                         max_position_embeddings=130),
                    dict(ANGLES, tokenizer_class="XLMRobertaTokenizer",
                         model_max_length=128)),
    "mpnet": (dict(SMALL, model_type="mpnet", max_position_embeddings=130),
              dict(ANGLES, **LIKE_BERT, tokenizer_class="MPNetTokenizer",
                   unk_token="[UNK]", model_max_length=128)),
    "gpt2": (dict(model_type="gpt2", n_embd=32, n_layer=2, n_head=2,
                  n_positions=130),
             {"tokenizer_class": "GPT2Tokenizer", "unk_token": END,
              "bos_token": END, "eos_token": END, "pad_token": END,
              "add_prefix_space": False, "model_max_length": 128}),
    "modernbert": (dict(SMALL, model_type="modernbert", local_attention=16,
                        max_position_embeddings=256, pad_token_id=0,
                        global_attn_every_n_layers=2),
                   dict(BRACKETS, tokenizer_class="PreTrainedTokenizerFast",
                        model_max_length=256)),
}


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


def tokenizer_of(name, model):
    """tokenizer.json, with the steps that the class of today has."""
    if name == "bert":
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        tokenizer["truncation"] = tokenizer["padding"] = None
        return tokenizer
    tokenizer = json.loads((DATA / f"{name}_tokenizer.json").read_text())
    if name == "xlm_roberta":
        tokenizer["normalizer"] = None
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁",
             "prepend_scheme": "always", "split": True}]}
    return tokenizer


def write_base(name, folder, model):
    shape, config = MODELS[name]
    tokenizer = tokenizer_of(name, model)
    write(folder, "tokenizer.json", tokenizer)
    write(folder, TOKENIZER, config)
    vocabulary = tokenizer["model"]["vocab"]
    added = [t for t in tokenizer["added_tokens"] if t["id"] >= len(vocabulary)]
    torch.manual_seed(3)
    random = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(
        **shape, vocab_size=len(vocabulary) + len(added)))
    with torch.no_grad():
        for key, values in random.named_parameters():
            if values.dim() == 2:
                table = any(part in key for part in ("embedding", "wte", "wpe"))
                values.normal_(0, 1 if table else values.shape[1] ** -0.5)
    random.save_pretrained(folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"),
             ("2_Normalize", "Normalize")]
    write(folder, "modules.json", [
        {"idx": i, "name": str(i), "path": path,
         "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)])
    write(folder, "1_Pooling/config.json", {
        "word_embedding_dimension": random.config.hidden_size,
        "pooling_mode_mean_tokens": True})
    (folder / "2_Normalize").mkdir()
    write(folder, SENTENCE, {"max_seq_length": 64, "do_lower_case": False})


def by_sentence_transformers(folder):
    """The vectors, or what it fails with."""
    try:
        model = sentence_transformers.SentenceTransformer(
            str(folder), device="cpu", local_files_only=True).float()
        return np.concatenate([
            model.encode(inputs, batch_size=1, show_progress_bar=False)
            for inputs in (TEXTS, PAIRS)])
    except Exception as error:  # whatever a folder makes it raise
        return f"{type(error).__name__}: {error}"


def by_server(programs, folder):
    """The vectors, or why it does not start."""
    try:
        with Server(str(programs / "encoderd"), str(folder),
                    "--device=cpu") as server:
            with encoderd.Client(server.address) as client:
                return client.encode(TEXTS + PAIRS, truncate="end")
    except RuntimeError as error:
        reason = str(error).partition("message=")[2]
        if not reason:
            raise  # it ended without a word
        return reason.strip()


def compare(programs, folder):
    """What it comes to, and why."""
    wanted = by_sentence_transformers(folder)
    found = by_server(programs, folder)
    if isinstance(found, str):
        return "refused", found
    if isinstance(wanted, str):
        return "only served here", wanted
    if wanted.shape != found.shape:
        return "DIFFERENT", f"{found.shape}, not {wanted.shape}"
    largest = np.abs(wanted - found).max(axis=1)
    inputs = [int(i) for i in np.nonzero(largest > MOST)[0]]
    if not inputs:
        return "same", ""
    return "DIFFERENT", f"by {largest.max():.2g}, inputs {inputs}"


def changed(folder, base, name, key, value):
    """A copy of `base` in `folder`; None where nothing would be removed."""
    path = base / name
    members = json.loads(path.read_text()) if path.exists() else {}
    if value == GONE:
        if key not in members:
            return None
        del members[key]
    else:
        members[key] = value
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    write(folder, name, members)
    return folder


def changes():
    """Each change: a file, a key, its value."""
    for name, settings in CHANGES.items():
        for key, values in settings.items():
            for value in values:
                yield name, key, value


def known(kind, name, key, value):
    """The kind and the place in KNOWN, where vectors of this kind differ."""
    for place in ((name, key), (name, key, json.dumps(value))):
        if kind in KNOWN.get(place, ("", ()))[1]:
            return kind, place
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    options = parser.parse_args()
    model = pathlib.Path(os.environ["ENCODERD_TEST_MODEL"])
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    counts, differed = collections.Counter(), set()
    with tempfile.TemporaryDirectory() as place:
        work = pathlib.Path(place)

        def count(what, folder, meant=None, base=False):
            verdict, why = compare(options.programs, folder)
            if verdict == "DIFFERENT" and meant:
                differed.add(meant)
                verdict, why = "known", KNOWN[meant[1]][0]
            if base and verdict != "same":
                verdict, why = "BASE NOT SAME", f"{verdict}: {why}"
            counts[verdict] += 1
            if verdict != "same":
                print(f"{what}: {verdict}: {why[:160]}", flush=True)

        for kind in options.models:
            base = work / kind
            base.mkdir()
            write_base(kind, base, model)
            count(kind, base, base=True)
            for name, key, value in changes():
                folder = changed(work / "changed", base, name, key, value)
                if folder is not None:
                    count(f"{kind}, {name}, {key} {json.dumps(value)}", folder,
                          known(kind, name, key, value))
    stale = {(kind, place) for place, (_, kinds) in KNOWN.items()
             for kind in kinds if kind in options.models} - differed
    for kind, place in sorted(stale):
        print("known, and no longer different:", kind, *place)
    print("; ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    sys.exit(1 if counts["DIFFERENT"] or counts["BASE NOT SAME"] or stale
             else 0)


if __name__ == "__main__":
    main()
