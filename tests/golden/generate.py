#!/usr/bin/env python3
"""Makes the goldens in data/ and texts.json: outputs of the reference
implementation, Hugging Face transformers in fp32 on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 tokenizers==0.23.3 \\
        sentence-transformers==6.2.0 safetensors==0.8.0 numpy==2.4.6
    tests/golden/generate.py --model FOLDER      (all-MiniLM-L6-v2)
    tests/golden/generate.py --only NAME...      (random checkpoints alone)

A golden is a safetensors file of
    token_ids, segment_ids [T], cu_seqlens [B+1]   the inputs, end to end
    pooled [B,H]                                   the pipeline's vectors
    state_layers [N], state_sequences [K], states  the token states [n,H] of
        layers state_layers of the sequences state_sequences, in this order
and in its metadata, under "made", the versions and the SHA-256 of the weights. Each sequence
is computed alone, so that no padding touches it.
"""

import argparse
import functools
import hashlib
import json
import pathlib
import sys
import tempfile

import numpy
import safetensors.numpy
import safetensors.torch
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers.sentence_transformer.modules import Pooling

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE.parent / "integration"))
import random_checkpoint  # noqa: E402
import tokenizer_charsmap  # noqa: E402
import tokenizer_models  # noqa: E402

PINNED = {"torch": "2.15.0", "transformers": "5.23.0", "tokenizers": "0.23.3",
          "sentence_transformers": "6.2.0", "safetensors": "0.8.0",
          "numpy": "2.4.6"}
SINGLES = 480
PAIRS = 100
ROBERTA_FAMILY = ("roberta", "xlm-roberta", "camembert")
# Random checkpoints that get a separate tokenizer, and what trains it.
TOKENIZERS = {
    "roberta": tokenizer_models.roberta, "mpnet": tokenizer_models.mpnet,
    "gpt2": tokenizer_models.gpt2,
    "modernbert": functools.partial(tokenizer_models.modernbert, unused=3),
    **{name: functools.partial(getattr(tokenizer_models, name),
                               packed=tokenizer_charsmap.nmt_nfkc(0x180))
       for name in ("xlm_roberta", "camembert", "albert")}}

BYTE_LEVEL = ("roberta", "gpt2", "modernbert")


def check_versions():
    for name, wanted in PINNED.items():
        found = sys.modules[name].__version__.split("+")[0]
        if found != wanted:
            sys.exit(f"{name} is {found}; the goldens are made with {wanted}")


def integers(seed, count, below):
    return [(k + (1 << 31)) % below
            for k in random_checkpoint.draws(seed, "golden", count, 32)]


def make_texts(tokenizer, sentences):
    """Lists of line numbers: [first] or [first, second]. Every sentence alone,
    then ever longer joins of them up to 512 tokens, then pairs."""

    def length(*texts):
        parts = [" ".join(sentences[i] for i in text) for text in texts]
        return len(tokenizer.encode(*parts).ids)

    texts = [[[i]] for i in range(len(sentences))] + [[[]]]
    picks = iter(integers(1, 100000, len(sentences)))

    def grown(budget, *before):
        """Sentences until the next one would pass the budget."""
        text = [next(picks)]
        while length(*before, text + [follower := next(picks)]) <= budget:
            text.append(follower)
        return text

    for i in range(SINGLES - len(texts)):
        budget = 16 + (512 - 16) * i * i // (SINGLES * SINGLES)
        text = grown(budget)
        if length(text) <= 512:
            texts.append([text])
    for i in range(PAIRS):
        first = grown(8 + 2 * i)
        second = grown(min(512, 24 + 5 * i), first)
        if length(first, second) <= 512:
            texts.append([first, second])
    # Words until exactly the longest inputs: 255, 256, 257, 511, 512 tokens.
    the = sentences.index("the")
    for wanted in (255, 256, 257, 511, 512):
        texts.append([[the] * (wanted - 2)])
    return texts


def position_offset(spec):
    """Rows of the position table that are for padding alone."""
    if random_checkpoint.model_type(spec) in ROBERTA_FAMILY:
        return spec["config"]["pad_token_id"] + 1
    if random_checkpoint.model_type(spec) == "mpnet":
        return 2  # whatever pad_token_id says
    return 0


def window_edges(spec):
    """Lengths at which a window of local attention ends, or whose last token
    the first one sees no more."""
    window = spec.get("config", {}).get("local_attention")
    if window is None:
        return []
    return [edge + d for edge in (window // 2, window) for d in (-1, 0, 1, 2)]


def random_sequences(spec):
    """Lengths 1 to the table's rows for tokens, each length's neighbors
    included."""
    rows = spec["positions"] - position_offset(spec)
    lengths = sorted({1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64,
                      65, 127, 128, 129, 255, 256, 257, rows - 1, rows,
                      *window_edges(spec)})
    lengths = [n for n in lengths if n <= rows]
    lengths += [1 + n * n // rows for n in integers(2, 60, rows)]
    ids = iter(integers(3, sum(lengths), spec["vocab"]))
    segments = iter(integers(4, len(lengths), max(spec["segments"], 1)))
    sequences = []
    for n in lengths:
        last = next(segments)
        sequences.append(([next(ids) for _ in range(n)],
                          [0] * (n // 2) + [last] * (n - n // 2)))
    return sequences


def run(model, sequences, pooling, normalize, state_sequences, state_layers):
    pooled, states = [], []
    for number, (ids, segments) in enumerate(sequences):
        with torch.no_grad():
            # Some architectures know no segments.
            more = ({"token_type_ids": torch.tensor([segments])}
                    if hasattr(getattr(model, "embeddings", None),
                               "token_type_embeddings")
                    else {})
            out = model(input_ids=torch.tensor([ids]), **more,
                        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                        output_hidden_states=True)
            features = {"token_embeddings": out.last_hidden_state,
                        "attention_mask": torch.ones(1, len(ids),
                                                     dtype=torch.long)}
            vector = pooling(features)["sentence_embedding"][0]
            if normalize:
                vector = torch.nn.functional.normalize(vector, dim=0)
        pooled.append(vector.numpy())
        if number in state_sequences:
            states += [out.hidden_states[layer][0].numpy()
                       for layer in state_layers]
    return numpy.stack(pooled), numpy.concatenate(states)


def save(name, sequences, pooled, state_sequences, state_layers, states,
         weights):
    lengths = [len(ids) for ids, _ in sequences]
    tensors = {
        "token_ids": numpy.concatenate([ids for ids, _ in sequences]),
        "segment_ids": numpy.concatenate([s for _, s in sequences]),
        "cu_seqlens": numpy.cumsum([0] + lengths),
        "state_layers": numpy.array(state_layers),
        "state_sequences": numpy.array(state_sequences),
    }
    tensors = {key: value.astype(numpy.int32) for key, value in tensors.items()}
    tensors["segment_ids"] = tensors["segment_ids"].astype(numpy.uint8)
    tensors["pooled"] = pooled.astype(numpy.float32)
    tensors["states"] = states.astype(numpy.float32)
    path = HERE / "data" / f"{name}.safetensors"
    # One entry: several would be written in an order that changes.
    versions = ", ".join(f"{key} {value}" for key, value in PINNED.items())
    safetensors.numpy.save_file(
        tensors, path, {"made": f"{versions}; weights_sha256 {weights}"})
    path.chmod(0o644)
    print(f"{path.name}: {len(sequences)} sequences of {min(lengths)} to "
          f"{max(lengths)} tokens, {sum(lengths)} in all, "
          f"{path.stat().st_size} bytes")


def minilm(folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    sentences = (HERE / "sentences.txt").read_text().split("\n")[:-1]
    texts = make_texts(tokenizer, sentences)
    lines = ",\n".join(json.dumps(text) for text in texts)
    (HERE / "texts.json").write_text(f"[\n{lines}\n]\n")
    encodings = [tokenizer.encode(*(" ".join(sentences[i] for i in part)
                                    for part in text)) for text in texts]
    sequences = [(e.ids, e.type_ids) for e in encodings]
    # Besides the texts: ids alone, of one token and of the whole table.
    sequences += [([101], [0]), ([2003], [1]), ([i * 59 for i in range(512)],
                                                [0] * 200 + [1] * 312)]
    model = transformers.BertModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    pooling = Pooling(384, "mean")
    short = [i for i, (ids, _) in enumerate(sequences) if len(ids) <= 20]
    state_sequences = sorted({*short[::len(short) // 8], len(sequences) - 3})
    state_layers = [0, 1, 3, 6]
    pooled, states = run(model, sequences, pooling, True, state_sequences,
                         state_layers)
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes())
    save("minilm", sequences, pooled, state_sequences, state_layers, states,
         weights.hexdigest())


def weights_digest(folder):
    """As the server gives it: of one file, or of the shards' digests."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest()
               for path in sorted(folder.glob("*.safetensors"))]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def load_random(spec):
    """The transformers model of a spec, and its weights' digest."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        random_checkpoint.write(spec, folder)
        state = {}
        for path in sorted(folder.glob("*.safetensors")):
            state.update(safetensors.torch.load_file(path))
        state = {key.removeprefix(spec["prefix"]): value.float()
                 for key, value in state.items()}
        config = transformers.AutoConfig.for_model(
            **random_checkpoint.config(spec))
        if spec["segments"] == 0 and hasattr(config, "type_vocab_size"):
            # The same sums: one segment whose row is zero.
            config.type_vocab_size = 1
            state["embeddings.token_type_embeddings.weight"] = torch.zeros(
                1, spec["hidden"])
        model = transformers.AutoModel.from_config(
            config, attn_implementation="eager").eval()
        missing, unexpected = model.load_state_dict(state, strict=False)
        # The pooler is outside the encoder: nothing here looks at it.
        missing = [key for key in missing if not key.startswith("pooler.")]
        assert not unexpected and all("_ids" in key for key in missing), missing
        return model, weights_digest(folder)


def pooling_of(spec):
    mode = random_checkpoint.POOLING.get(spec["pooling"], spec["pooling"])
    return Pooling(spec["hidden"], mode)


def random_model(spec):
    model, digest = load_random(spec)
    pooling = pooling_of(spec)
    sequences = random_sequences(spec)
    state_sequences = [0, 4, 9, 11]
    if window_edges(spec):
        wanted = (1, *window_edges(spec)[1:4], window_edges(spec)[-1])
        lengths = [len(ids) for ids, _ in sequences]
        state_sequences = [lengths.index(n) for n in wanted]
    # ALBERT runs a whole group of layers for each of its num_hidden_layers.
    steps = spec["layers"] * spec.get("config", {}).get("inner_group_num", 1)
    state_layers = list(range(steps + 1))
    pooled, states = run(model, sequences, pooling, spec["normalize"],
                         state_sequences, state_layers)
    save(spec["name"], sequences, pooled, state_sequences, state_layers, states,
         digest)


def text_model(spec):
    """A random checkpoint with its own tokenizer: NAME_text has the
    sentences that fit the position table, in their order. Byte-level BPE is
    trained on all of them, the others on the ASCII ones, whose letters fit a
    small vocabulary: they meet unknown letters too."""
    sentences = (HERE / "sentences.txt").read_text().split("\n")[:-1]
    known = [line for line in sentences
             if line.isascii() or spec["name"] in BYTE_LEVEL]
    tokenizer = TOKENIZERS[spec["name"]](known, vocab_size=spec["vocab"])
    assert tokenizer.get_vocab_size() <= spec["vocab"]
    (HERE / "data" / f"{spec['name']}_tokenizer.json").write_text(
        tokenizer.to_str() + "\n")
    encodings = tokenizer.encode_batch(sentences)
    rows = spec["positions"] - position_offset(spec)
    sequences = [(e.ids, e.type_ids) for e in encodings if len(e.ids) <= rows]
    model, digest = load_random(spec)
    pooled, states = run(model, sequences, pooling_of(spec), spec["normalize"],
                         [0], [0])
    save(f"{spec['name']}_text", sequences, pooled, [0], [0], states, digest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path,
                        help="all-MiniLM-L6-v2; without it, minilm stays")
    parser.add_argument("--only", nargs="*", metavar="NAME",
                        help="these random checkpoints and no others")
    arguments = parser.parse_args()
    check_versions()
    torch.set_num_threads(1)
    (HERE / "data").mkdir(exist_ok=True)
    if arguments.model is not None:
        minilm(arguments.model)
    for name, spec in random_checkpoint.specs().items():
        if arguments.only is None or name in arguments.only:
            random_model(spec)
            if name in TOKENIZERS:
                text_model(spec)


if __name__ == "__main__":
    main()
