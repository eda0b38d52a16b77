#!/usr/bin/env python3
"""Model folders of random weights, the same bits everywhere.

    random_checkpoint.py NAME FOLDER      one of checkpoints.json
    random_checkpoint.py --list

checkpoints.json names the shapes, engine/checkpoint/architectures.json each
architecture's tensors and keys of config.json. A value is drawn from splitmix64, seeded by
the model's seed and the tensor's name, as an integer of so few bits that it
fits the tensor's dtype without rounding: no library decides a bit of it.
random_checkpoint.cc writes the same bytes; the goldens hold their SHA-256.
Only Python's standard library is used.
"""

import argparse
import array
import functools
import json
import math
import pathlib
import struct
import sys

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
# dtype: bits of a weight, bits of a LayerNorm's gain.
BITS = {"F32": (24, 16), "F16": (11, 8), "BF16": (8, 5)}
TABLES = ("token", "position", "segment")
ARCHITECTURES = (pathlib.Path(__file__).parents[2] / "engine" / "checkpoint"
                 / "architectures.json")
POOLING = {"mean_sqrt_len": "mean_sqrt_len_tokens"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def specs():
    path = pathlib.Path(__file__).with_name("checkpoints.json")
    return {spec["name"]: spec for spec in json.loads(path.read_text())}


def merged(base, patch):
    """JSON Merge Patch: members of `patch` replace, null removes."""
    whole = dict(base)
    for key, value in patch.items():
        if value is None:
            whole.pop(key, None)
        elif isinstance(value, dict):
            whole[key] = merged(whole.get(key, {}), value)
        else:
            whole[key] = value
    return whole


@functools.cache
def architecture(name):
    """The entry of architectures.json with what it takes over."""
    entry = json.loads(ARCHITECTURES.read_text())[name]
    return merged(architecture(entry["like"]), entry) if "like" in entry else entry


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


def sizes(spec):
    """The size letters of architectures.json."""
    entry = architecture(model_type(spec))
    settings, keys = spec.get("config", {}), entry["keys"]
    h = spec["hidden"]
    e = settings.get("embedding_size", h) if "embedding_size" in keys else h
    projects = "embedding_size" in keys and (
        e != h or entry.get("always_projects", False))
    return {"V": spec["vocab"], "P": spec["positions"], "S": spec["segments"],
            "E": e, "X": e if projects else 0, "H": h, "F": spec["inner"],
            "A": spec["heads"],
            "R": settings.get(keys.get("attention_bias_rows"), 0)}


def tensors(spec):
    """Role, name (without prefix), shape and fan-in, in the file's order."""
    entry, size = architecture(model_type(spec)), sizes(spec)
    settings = spec.get("config", {})
    inner = settings.get("inner_group_num", 1)
    # Layers with their own weights: all, or groups of some.
    layers = settings.get("num_hidden_groups", spec["layers"]) * inner

    def module(layer, role, name, shape, *flags):
        extents = [size[part[-1]] * int(part[:-1] or 1)
                   for part in shape.split(",")]
        if 0 in extents or (layer == 0 and "not first" in flags):
            return
        if name.startswith("."):
            name = (entry["layer"] + name).format(
                layer=layer, group=layer // inner, inner=layer % inner)
        stored = extents[::-1] if "transposed" in flags else extents
        yield role, name + ".weight", stored, extents[-1]
        if any(flag == "bias" or settings.get(flag) for flag in flags):
            yield role, name + ".bias", extents[:1], 0

    in_layer = [row for row in entry["tensors"] if row[1].startswith(".")]
    for row in entry["tensors"]:
        if row not in in_layer:
            yield from module(0, *row)
        elif row is in_layer[0]:
            for layer in range(layers):
                for part in in_layer:
                    yield from module(layer, *part)


def values(spec, role, name, shape, fan_in):
    """The tensor's values as exact Python floats."""
    weight_bits, gain_bits = BITS[spec["dtype"]]
    count = math.prod(shape)
    if role.endswith("_norm") and name.endswith(".weight"):
        unit = 2.0 ** -(gain_bits - 1 + 3)
        return [1 + k * unit for k in draws(spec["seed"], name, count, gain_bits)]
    if len(shape) == 1:
        scale = 3
    elif role in TABLES:
        scale = 0
    else:
        scale = weight_scale(fan_in)
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


def safetensors(dtype, contents):
    entries, data = [], bytearray()
    for name, shape, content in contents:
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
    keys = architecture(model_type(spec))["keys"]
    values = {keys[key]: value for key, value in values.items() if key in keys}
    return {"model_type": model_type(spec), **values, **spec.get("config", {})}


def vocabulary(spec):
    words = (SPECIAL + list(CHARACTERS) + ["##" + c for c in CHARACTERS])
    words += [f"word{i}" for i in range(spec["vocab"] - len(words))]
    return words


def weight_files(spec, draw=values):
    """Pairs of file name and content; the index of shards included."""
    prefix, shards = spec["prefix"], spec["shards"]
    contents = [
        (prefix + name, shape,
         tensor_bytes(spec["dtype"], draw(spec, role, name, shape, fan_in)))
        for role, name, shape, fan_in in tensors(spec)]
    if shards == 1:
        yield "model.safetensors", safetensors(spec["dtype"], contents)
        return
    weight_map = {}
    for shard in range(shards):
        own = contents[shard::shards]
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        weight_map.update({tensor: name for tensor, _, _ in own})
        yield name, safetensors(spec["dtype"], own)
    index = {"metadata": {}, "weight_map": weight_map}
    yield "model.safetensors.index.json", json.dumps(index).encode()


def write(spec, folder, draw=values):
    """Writes the model folder, as sentence-transformers lays it out."""
    folder = pathlib.Path(folder)
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, content in weight_files(spec, draw):
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
    tokenizer = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    if model_type(spec) == "gpt2":  # which would add tokens for segments
        tokenizer["model_input_names"] = ["input_ids", "attention_mask"]
    put("tokenizer_config.json", tokenizer)


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
