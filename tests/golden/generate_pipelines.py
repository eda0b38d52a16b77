#!/usr/bin/env python3
"""Makes data/pipelines.safetensors: vectors of sentence-transformers' own
pipelines, with modules after the pooling, over the texts of pipelines.json.

    tests/golden/generate_pipelines.py       (the packages of generate.py)

For each pipeline of pipelines.json, tensors under its name and a point:
    vectors [N,D]              encode() of each text alone
    I.linear.weight, ...       the weights of module I (2 is the first after the
                               pooling), drawn as random_checkpoint.py draws
The transformer's weights are those of tests/support/checkpoints.json.
"""

import json
import pathlib
import tempfile

import generate
import numpy
import random_checkpoint
import safetensors.numpy
import sentence_transformers
import torch

HERE = pathlib.Path(__file__).parent
CONFIG_KEYS = {"Dense": ["in_features", "out_features", "bias",
                         "activation_function"],
               "LayerNorm": ["dimension"], "Normalize": []}


def draw(name, shape, scale):
    count = int(numpy.prod(shape))
    values = [k * 2.0 ** -23 for k in
              random_checkpoint.draws(9, name, count, 24)]
    return (numpy.array(values).reshape(shape) * scale).astype(numpy.float32)


def weights(name, module):
    if module["type"] == "Dense":
        rows, columns = module["out_features"], module["in_features"]
        tensors = {"linear.weight": draw(name + ".w", [rows, columns], 0.25)}
        if module["bias"]:
            tensors["linear.bias"] = draw(name + ".b", [rows], 0.25)
        return tensors
    if module["type"] == "LayerNorm":
        size = [module["dimension"]]
        return {"norm.weight": 1 + draw(name + ".w", size, 0.25),
                "norm.bias": draw(name + ".b", size, 0.25)}
    return {}


def write(pipeline, folder):
    """The model folder; the weights of the modules by their names."""
    spec = dict(random_checkpoint.specs()[pipeline["checkpoint"]],
                pooling=pipeline["pooling"], normalize=False)
    random_checkpoint.write(spec, folder)
    modules = json.loads((folder / "modules.json").read_text())
    tensors = {}
    for number, module in enumerate(pipeline["modules"], len(modules)):
        kind = module["type"]
        path = folder / f"{number}_{kind}"
        modules.append({"idx": number, "name": str(number), "path": path.name,
                        "type": f"sentence_transformers.models.{kind}"})
        path.mkdir()
        (path / "config.json").write_text(json.dumps(
            {key: module[key] for key in CONFIG_KEYS[kind]}))
        own = weights(f"{pipeline['name']}.{number}", module)
        if own:
            safetensors.numpy.save_file(own, path / "model.safetensors")
        tensors.update({f"{number}.{key}": own[key] for key in own})
    (folder / "modules.json").write_text(json.dumps(modules))
    return tensors


def main():
    generate.check_versions()
    torch.set_num_threads(1)
    described = json.loads((HERE / "pipelines.json").read_text())
    golden = {}
    for pipeline in described["pipelines"]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tensors = write(pipeline, folder)
            model = sentence_transformers.SentenceTransformer(
                str(folder), device="cpu",
                model_kwargs={"dtype": torch.float32})
            tensors["vectors"] = numpy.stack(
                [model.encode(text) for text in described["texts"]])
        golden.update({f"{pipeline['name']}.{key}": value
                       for key, value in tensors.items()})
    path = HERE / "data" / "pipelines.safetensors"
    versions = ", ".join(f"{key} {value}"
                         for key, value in generate.PINNED.items())
    safetensors.numpy.save_file(golden, path, {"made": versions})
    path.chmod(0o644)
    print(f"{path.name}: {len(described['pipelines'])} pipelines, "
          f"{path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
