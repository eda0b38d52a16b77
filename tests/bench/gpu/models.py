"""Model folders of random weights, by numpy alone.

Weights are larger than training starts with, so that attention looks at some
tokens more than at others.
"""

import json
import pathlib

import numpy as np

from workloads import POSITIONS, SHAPES, VOCABULARY

_NAMES = {
    "bert": {"qkv": "attention.self.{}", "qkv_names": ("query", "key", "value"),
             "output": "attention.output.dense",
             "norm": "attention.output.LayerNorm"},
    "mpnet": {"qkv": "attention.attn.{}", "qkv_names": ("q", "k", "v"),
              "output": "attention.attn.o", "norm": "attention.LayerNorm"},
}


def config_of(name, **changes):
    layers, hidden, heads, inner = SHAPES[name]
    return {"model_type": "bert", "architectures": ["BertModel"],
            "num_hidden_layers": layers, "hidden_size": hidden,
            "num_attention_heads": heads, "intermediate_size": inner,
            "vocab_size": VOCABULARY, "type_vocab_size": 2,
            "max_position_embeddings": POSITIONS, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12, "pad_token_id": 0, **changes}


def mpnet_config():
    """As MPNet's smaller models: a bias by distance in attention."""
    config = config_of("minilm", model_type="mpnet",
                       architectures=["MPNetModel"], vocab_size=30527,
                       max_position_embeddings=514, layer_norm_eps=1e-5,
                       relative_attention_num_buckets=32, pad_token_id=1)
    del config["type_vocab_size"]
    return config


def tensors_of(config):
    """(name, shape) of every tensor."""
    h, f = config["hidden_size"], config["intermediate_size"]
    names = _NAMES[config["model_type"]]
    table = "embeddings.{}_embeddings.weight"
    yield table.format("word"), (config["vocab_size"], h)
    yield table.format("position"), (config["max_position_embeddings"], h)
    if "type_vocab_size" in config:
        yield table.format("token_type"), (config["type_vocab_size"], h)
    if config["model_type"] == "mpnet":
        yield ("encoder.relative_attention_bias.weight",
               (config["relative_attention_num_buckets"],
                config["num_attention_heads"]))

    def linear(module, out, inputs):
        return [(module + ".weight", (out, inputs)), (module + ".bias", (out,))]

    def norm(module):
        return [(module + ".weight", (h,)), (module + ".bias", (h,))]

    yield from norm("embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        for part in names["qkv_names"]:
            yield from linear(at + names["qkv"].format(part), h, h)
        yield from linear(at + names["output"], h, h)
        yield from norm(at + names["norm"])
        yield from linear(at + "intermediate.dense", f, h)
        yield from linear(at + "output.dense", h, f)
        yield from norm(at + "output.LayerNorm")


def random_tensor(chance, name, shape):
    if name.endswith("LayerNorm.weight"):
        return 1 + 0.1 * chance.standard_normal(shape, dtype=np.float32)
    values = chance.standard_normal(shape, dtype=np.float32)
    if len(shape) == 1:
        return 0.1 * values
    if "embeddings" in name:
        return 0.02 * values
    return 1.5 / np.sqrt(np.float32(shape[1])) * values


def write_model(config, folder, seed=1):
    """A model in float with a vocabulary of one word an id; its folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors_of(config):
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    chance = np.random.default_rng(seed)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in tensors_of(config):
            random_tensor(chance, name, shape).astype("<f4").tofile(file)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"w{i}" for i in
                       range(config["vocab_size"] - len(special))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True,
         "model_max_length": 512}))
    (folder / "config.json").write_text(json.dumps(config))
    return folder
