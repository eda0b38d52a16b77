#!/usr/bin/env python3
"""Model folders of random weights, the same bits everywhere.

    random_checkpoint.py NAME FOLDER      one of checkpoints.json
    random_checkpoint.py --list

checkpoints.json names the shapes, checkpoint_names.json each architecture's
names of tensors and keys of config.json. A value is drawn from splitmix64, seeded by
the model's seed and the tensor's name, as an integer of so few bits that it
fits the tensor's dtype without rounding: no library decides a bit of it.
random_checkpoint.cc writes the same bytes; the goldens hold their SHA-256.
Only Python's standard library is used.
"""

import argparse
import array
import json
import pathlib
import struct
import sys

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
# dtype: bits of a weight, bits of a LayerNorm's gain.
BITS = {"F32": (24, 16), "F16": (11, 8), "BF16": (8, 5)}
# Weights of a LayerNorm, in one architecture or another.
GAINS = ("LayerNorm.weight", "layer_norm.weight")
POOLING = {"mean_sqrt_len": "mean_sqrt_len_tokens"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def specs():
    path = pathlib.Path(__file__).with_name("checkpoints.json")
    return {spec["name"]: spec for spec in json.loads(path.read_text())}


def names(spec):
    """The names of the spec's architecture; a row may point to another's."""
    path = pathlib.Path(__file__).with_name("checkpoint_names.json")
    table = json.loads(path.read_text())
    row = table[model_type(spec)]
    return table[row] if isinstance(row, str) else row


def model_type(spec):
    return spec.get("model_type", "bert")


def name_hash(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def draws(seed, name, count, bits):
    """`count` signed integers of `bits` bits."""
    state = (name_hash(name) ^ (seed * STEP)) & MASK
    half, shift = 1 << (bits - 1), 64 - bits
    for _ in range(count):
        state = (state + STEP) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield ((z ^ (z >> 31)) >> shift) - half


def weight_scale(fan_in):
    """s of 2^-s: the outputs' variance is then from 1 to 4 times the inputs'."""
    s = 0
    while 3 * 4 ** (s + 1) <= fan_in:
        s += 1
    return s


def shapes(spec):
    """Pairs of tensor name (without prefix) and shape, in the file's order."""
    h, f, name = spec["hidden"], spec["inner"], names(spec)
    settings = spec.get("config", {})
    e = settings.get("embedding_size", h)
    rows = [(name["token"] + ".weight", [spec["vocab"], e]),
            (name["position"] + ".weight", [spec["positions"], e])]
    if spec["segments"]:
        rows.append((name["segment"] + ".weight", [spec["segments"], e]))

    def norm(module, size=h):
        rows.extend([(module + ".weight", [size]), (module + ".bias", [size])])

    def linear(module, out, inputs):
        rows.extend([(module + ".weight", [out, inputs]),
                     (module + ".bias", [out])])

    norm(name["embedding_norm"], e)
    if "projection" in name and (name["projects"] == "always" or e != h):
        linear(name["projection"], h, e)
    if "attention_bias" in name:
        rows.append((name["attention_bias"] + ".weight",
                     [settings["relative_attention_num_buckets"], spec["heads"]]))
    # Layers with weights of their own: all, or groups of some.
    inner = settings.get("inner_group_num", 1)
    for layer in range(settings.get("num_hidden_groups", spec["layers"]) * inner):
        at = name["layer"].replace("{layer}", str(layer))
        at = at.replace("{group}", str(layer // inner))
        at = at.replace("{inner}", str(layer % inner))
        for part in ("query", "key", "value"):
            linear(at + name[part], h, h)
        linear(at + name["attention_output"], h, h)
        norm(at + name["attention_norm"])
        linear(at + name["feed_forward_in"], f, h)
        linear(at + name["feed_forward_out"], h, f)
        norm(at + name["output_norm"])
    return rows


def values(spec, name, shape):
    """The tensor's values as exact Python floats."""
    weight_bits, gain_bits = BITS[spec["dtype"]]
    count = 1
    for extent in shape:
        count *= extent
    if name.endswith(GAINS):
        unit = 2.0 ** -(gain_bits - 1 + 3)
        return [1 + k * unit for k in draws(spec["seed"], name, count, gain_bits)]
    if len(shape) == 1:
        scale = 3
    elif name.startswith("embeddings."):
        scale = 0
    else:
        scale = weight_scale(shape[1])
    unit = 2.0 ** -(weight_bits - 1 + scale)
    return [k * unit for k in draws(spec["seed"], name, count, weight_bits)]


def tensor_bytes(dtype, numbers):
    if dtype == "F16":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    floats = array.array("f", numbers)
    if sys.byteorder == "big":
        floats.byteswap()
    data = floats.tobytes()
    if dtype == "BF16":
        halves = bytearray(len(numbers) * 2)
        halves[0::2], halves[1::2] = data[2::4], data[3::4]
        return bytes(halves)
    return data


def safetensors(dtype, tensors):
    entries, data = [], bytearray()
    for name, shape, content in tensors:
        end = len(data) + len(content)
        dims = ",".join(map(str, shape))
        entries.append(f'"{name}":{{"dtype":"{dtype}","shape":[{dims}],'
                       f'"data_offsets":[{len(data)},{end}]}}')
        data += content
    header = ("{" + ",".join(entries) + "}").encode()
    return struct.pack("<Q", len(header)) + header + bytes(data)


def config(spec):
    values = {"num_hidden_layers": spec["layers"], "hidden_size": spec["hidden"],
              "num_attention_heads": spec["heads"],
              "intermediate_size": spec["inner"], "vocab_size": spec["vocab"],
              "max_position_embeddings": spec["positions"],
              "type_vocab_size": spec["segments"], "hidden_act": spec["act"],
              "layer_norm_eps": spec["eps"]}
    # null: the architecture has no such key.
    keys = names(spec)["keys"]
    values = {keys.get(key, key): value for key, value in values.items()}
    values.pop(None, None)
    return {"model_type": model_type(spec), **values, **spec.get("config", {})}


def vocabulary(spec):
    words = (SPECIAL + list(CHARACTERS) + ["##" + c for c in CHARACTERS])
    words += [f"word{i}" for i in range(spec["vocab"] - len(words))]
    return words


def weight_files(spec):
    """Pairs of file name and content; the index of shards included."""
    prefix, shards = spec["prefix"], spec["shards"]
    tensors = [(prefix + name, shape,
                tensor_bytes(spec["dtype"], values(spec, name, shape)))
               for name, shape in shapes(spec)]
    if shards == 1:
        yield "model.safetensors", safetensors(spec["dtype"], tensors)
        return
    weight_map = {}
    for shard in range(shards):
        own = tensors[shard::shards]
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        weight_map.update({tensor: name for tensor, _, _ in own})
        yield name, safetensors(spec["dtype"], own)
    index = {"metadata": {}, "weight_map": weight_map}
    yield "model.safetensors.index.json", json.dumps(index).encode()


def write(spec, folder):
    """Writes the model folder, as sentence-transformers lays it out."""
    folder = pathlib.Path(folder)
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, content in weight_files(spec):
        (folder / name).write_bytes(content)

    def put(name, value):
        (folder / name).write_text(json.dumps(value))

    put("config.json", config(spec))
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * spec["normalize"]
    put("modules.json",
        [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}",
          "type": f"sentence_transformers.models.{kind}"}
         for i, kind in enumerate(kinds)])
    put("1_Pooling/config.json",
        {"embedding_dimension": spec["hidden"],
         "pooling_mode": POOLING.get(spec["pooling"], spec["pooling"])})
    (folder / "vocab.txt").write_text("\n".join(vocabulary(spec)) + "\n")
    put("tokenizer_config.json",
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("name", nargs="?")
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(specs()))
    elif arguments.folder is None:
        parser.error("want NAME and FOLDER, or --list")
    elif arguments.name not in specs():
        parser.error(f"no checkpoint {arguments.name}; there are: "
                     + ", ".join(specs()))
    else:
        write(specs()[arguments.name], arguments.folder)


if __name__ == "__main__":
    main()
