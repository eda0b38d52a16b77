"""Small tokenizers of other kinds than BERT's, trained on the corpus."""

import json

import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def roberta(lines, vocab_size=6000, add_prefix_space=False):
    """Byte-level BPE with RoBERTa's special tokens and template."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=add_prefix_space
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=ROBERTA_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    made.add_special_tokens(
        [tokenizers.AddedToken("<mask>", lstrip=True, normalized=False)]
    )
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=add_prefix_space
    )
    return made


def save(tokenizer, folder, change=None):
    """Writes tokenizer.json, after change(json)."""
    spec = json.loads(tokenizer.to_str())
    if change is not None:
        change(spec)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(
        json.dumps(spec, ensure_ascii=False), encoding="utf-8"
    )
    return folder
