"""Model folders of a published shape with random weights, by transformers.

    python tests/bench/random_model.py modernbert-base FOLDER [LAYERS]

What a pass costs does not depend on the weights' values. They are drawn so that
every layer adds as much as it gets: a wrong one shows in the vectors.
"""

import pathlib
import sys

SHAPES = {"bert-base": {"model_type": "bert"}, "modernbert-base": {
    "model_type": "modernbert", "num_hidden_layers": 22, "hidden_size": 768,
    "num_attention_heads": 12, "intermediate_size": 1152, "vocab_size": 50368,
    "max_position_embeddings": 8192, "global_attn_every_n_layers": 3,
    "local_attention": 128, "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 160000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}}


def write(name, folder, layers=None):
    """Writes config.json and model.safetensors; the same for the same call."""
    import torch
    import transformers

    shape = dict(SHAPES[name])
    if layers is not None:
        shape["num_hidden_layers"] = layers
    config = transformers.AutoConfig.for_model(**shape)
    model = transformers.AutoModel.from_config(config)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter_name, values in model.named_parameters():
            if values.dim() == 2:  # norms stay 1
                table = "embeddings" in parameter_name
                values.normal_(0, 1 if table else values.shape[1] ** -0.5)
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2],
          int(sys.argv[3]) if len(sys.argv) > 3 else None)
