"""The Python side of gpu.py: random models, their vectors, their speed.

Everything works on token ids, as sentence-transformers does once its tokenizer
is done: encoder, mean over the tokens, division by the norm.
"""

import json
import math
import os
import random
import time

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

# name: layers, hidden, heads, inner
SHAPES = {
    "minilm": (6, 384, 12, 1536),
    "bert-base": (12, 768, 12, 3072),
    "bert-large": (24, 1024, 16, 4096),
}


def config_of(name, **changes):
    layers, hidden, heads, inner = SHAPES[name]
    values = {"num_hidden_layers": layers, "hidden_size": hidden,
              "num_attention_heads": heads, "intermediate_size": inner,
              "vocab_size": 30522, **changes}
    return transformers.BertConfig(**values)


def mpnet_config():
    """As MPNet's smaller models: a bias by distance in attention."""
    layers, hidden, heads, inner = SHAPES["minilm"]
    return transformers.MPNetConfig(
        num_hidden_layers=layers, hidden_size=hidden,
        num_attention_heads=heads, intermediate_size=inner, vocab_size=30527,
        max_position_embeddings=514)


def write_model(config, folder, seed=1):
    """A random model in `folder`, with a vocabulary; the model, in float."""
    torch.manual_seed(seed)
    kind = (transformers.MPNetModel if config.model_type == "mpnet"
            else transformers.BertModel)
    model = kind(config, add_pooling_layer=False).eval()
    # Larger weights than training starts with, so that attention looks at some
    # tokens more than at others.
    for name, values in model.named_parameters():
        if values.dim() == 2 and "embeddings" not in name:
            torch.nn.init.normal_(values, 0, 1.5 / math.sqrt(values.shape[1]))
        elif name.endswith("bias") or "LayerNorm.weight" in name:
            values.data += 0.1 * torch.randn_like(values)
    model.save_pretrained(folder, safe_serialization=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"w{i}" for i in range(config.vocab_size - len(special))]
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    with open(os.path.join(folder, "tokenizer_config.json"), "w",
              encoding="utf-8") as file:
        json.dump({"tokenizer_class": "BertTokenizer", "do_lower_case": True,
                   "model_max_length": 512}, file)
    return model


def load_model(folder):
    return transformers.AutoModel.from_pretrained(folder).float().eval()


def lengths_of(workload, tokens, seed=42):
    """Lengths of about `tokens` tokens in all; W4 is "normal", W6 "mix"."""
    chance = random.Random(seed)
    lengths = []
    while sum(lengths) < tokens:
        if workload == "mix":
            n = chance.lognormvariate(math.log(24), 1.0)
            lengths.append(int(min(max(n, 4), 512)))
        elif workload == "normal":
            lengths.append(int(min(max(chance.gauss(256, 64), 16), 512)))
        else:
            lengths.append(int(workload))
    return lengths


def random_ids(lengths, vocabulary=30522, seed=7):
    chance = random.Random(seed)
    return [[chance.randrange(5, vocabulary) for _ in range(n)]
            for n in lengths]


def padded(batch):
    """(ids, mask), [sequences, longest] each, on the host."""
    longest = max(map(len, batch))
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    mask = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, sequence in enumerate(batch):
        ids[row, :len(sequence)] = torch.tensor(sequence)
        mask[row, :len(sequence)] = 1
    return ids, mask


def pooled(model, ids, mask, device):
    ids, mask = ids.to(device), mask.to(device)
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask.unsqueeze(-1).to(states.dtype)
    mean = (states * weights).sum(1) / weights.sum(1)
    return torch.nn.functional.normalize(mean.float(), dim=1)


@torch.inference_mode()
def vectors(model, ids):
    """[sequences, H] in float, one sequence at a time: no padding."""
    return torch.cat([pooled(model, *padded([sequence]), "cpu")
                      for sequence in ids])


class Baseline:
    """transformers on the card: sorted by length, padded batches."""

    def __init__(self, name, dtype, attention, compiled=False,
                 device="cuda", max_tokens=65536):
        self.device = device
        config = config_of(name)
        config._attn_implementation = attention
        model = transformers.BertModel(config, add_pooling_layer=False)
        self.model = model.to(device, dtype).eval()
        if compiled:
            self.model = torch.compile(self.model, dynamic=True)
        self.max_tokens = max_tokens

    def prepare(self, ids):
        """Sorts, cuts into batches and pads: not part of the timed run."""
        self.batches = [padded(batch) for batch in self._batches(ids)]

    def _batches(self, ids):
        batch = []
        for sequence in sorted(ids, key=len, reverse=True):
            if batch and len(batch[0]) * (len(batch) + 1) > self.max_tokens:
                yield batch
                batch = []
            batch.append(sequence)
        if batch:
            yield batch

    @torch.inference_mode()
    def run(self):
        """Seconds until every vector of the prepared ids is on the host."""
        start = time.perf_counter()
        results = [pooled(self.model, *batch, self.device)
                   for batch in self.batches]
        for result in results:
            result.cpu()
        return time.perf_counter() - start
