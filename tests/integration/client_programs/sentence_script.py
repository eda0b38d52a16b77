#!/usr/bin/env python3
"""One script for both: run(SentenceTransformer(folder)), run(Client(target)).

    sentence_script.py MODEL_FOLDER

writes sentence_transformers.json: what sentence-transformers gave, so that the
comparison needs it only when that file is made again
(pip install sentence-transformers==6.2.0).
"""

import base64
import json
import pathlib
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).with_name("sentence_transformers.json")
TEXTS = [
    "A man is eating food.", "Someone has a meal.",
    "A woman plays the violin.", "Straße, Käse, naïve café",
    "2 + 2 = 4!", "word " * 60,
]


def run(model):
    """Name -> array, or list of arrays, of every way to call encode()."""
    found = {
        "list": model.encode(TEXTS),
        "str": model.encode(TEXTS[0]),
        "batches": model.encode(TEXTS, batch_size=2, show_progress_bar=False),
        "positional": model.encode(TEXTS[:1], None, "query: "),
        "prompt": model.encode(TEXTS, prompt="query: "),
        "normalized": model.encode(TEXTS, normalize_embeddings=True),
        "cut": model.encode(TEXTS, truncate_dim=60),
        "cut normalized": model.encode(TEXTS, truncate_dim=60,
                                       normalize_embeddings=True),
        "none": model.encode(TEXTS[:2], output_value=None),
        "tokens": model.encode(TEXTS[:2], output_value="token_embeddings"),
        "tokens of str": model.encode(TEXTS[4],
                                      output_value="token_embeddings"),
        "device": model.encode(TEXTS[:1], device="cpu"),
        "sentences": model.encode(sentences=TEXTS[:1]),
    }
    for precision in ("float32", "int8", "uint8", "binary", "ubinary"):
        found[precision] = model.encode(TEXTS, precision=precision)
    found["binary str"] = model.encode(TEXTS[1], precision="binary")
    found["ubinary cut"] = model.encode(TEXTS, precision="ubinary",
                                        truncate_dim=60)
    found["uint8 cut"] = model.encode(TEXTS, precision="uint8",
                                      truncate_dim=60)
    nones = found.pop("none")
    for i, item in enumerate(nones):
        tokens = int(np.sum(as_array(item["attention_mask"])))
        for name in ("input_ids", "token_embeddings", "sentence_embedding"):
            value = as_array(item[name])
            if name != "sentence_embedding":
                value = value[:tokens]  # sentence-transformers pads
            found[f"none {i} {name}"] = value
    return {name: [as_array(v) for v in value] if isinstance(value, list)
            else as_array(value) for name, value in found.items()}


def as_array(value):
    """Token embeddings are torch tensors there, numpy arrays here."""
    return value if isinstance(value, np.ndarray) else value.cpu().numpy()


def pack(value):
    if isinstance(value, list):
        return [pack(v) for v in value]
    return {"dtype": str(value.dtype), "shape": value.shape,
            "base64": base64.b64encode(value.tobytes()).decode()}


def unpack(value):
    if isinstance(value, list):
        return [unpack(v) for v in value]
    return np.frombuffer(base64.b64decode(value["base64"]),
                         value["dtype"]).reshape(value["shape"])


def read_golden():
    """What run() gave; a name in place of a value: the same as that one's."""
    packed = json.loads(GOLDEN.read_text())
    return {name: unpack(packed[value] if isinstance(value, str) else value)
            for name, value in packed.items()}


def main():
    import sentence_transformers
    if sentence_transformers.__version__ != "6.2.0":
        sys.exit("wants sentence-transformers 6.2.0")
    model = sentence_transformers.SentenceTransformer(sys.argv[1],
                                                      device="cpu")
    packed = {}
    for name, value in run(model).items():
        value = pack(value)
        same = [other for other, known in packed.items() if known == value]
        packed[name] = same[0] if same else value
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}"
                       for name, value in packed.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
