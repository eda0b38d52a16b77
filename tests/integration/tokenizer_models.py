"""Small tokenizers of other kinds than BERT's, trained on the corpus."""

import base64
import json

import tokenizer_charsmap as charsmap
import tokenizers
from tokenizers import (
    AddedToken,
    Regex,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
GPT2_END = "<|endoftext|>"


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
        [AddedToken("<mask>", lstrip=True, normalized=False)]
    )
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=add_prefix_space
    )
    return made


def byte_level(lines, vocab_size, special):
    """Byte-level BPE with no template; `special` come first."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    return made


def gpt2(lines, vocab_size=6000):
    """Byte-level BPE as GPT-2's file has it: no template, and <|endoftext|>,
    the last entry, is the only token looked for."""
    made = byte_level(lines, vocab_size - 1, [])
    spec = json.loads(made.to_str())
    spec["model"]["continuing_subword_prefix"] = ""
    spec["model"]["end_of_word_suffix"] = ""
    spec["model"]["vocab"][GPT2_END] = len(spec["model"]["vocab"])
    spec["post_processor"] = {
        "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False
    }
    made = tokenizers.Tokenizer.from_str(json.dumps(spec))
    made.add_special_tokens([AddedToken(GPT2_END, normalized=False)])
    return made


def modernbert(lines, vocab_size=6000, unused=83):
    """Byte-level BPE as ModernBERT's file has it: NFC, added tokens of which
    most are looked for in normalized text (runs of 2 to 24 spaces among them),
    and BERT's five between the unused ones."""
    runs = [" " * n for n in range(24, 1, -1)]
    after = [*runs, "|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||"]
    special = ["<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    tail = [f"[unused{i}]" for i in range(unused)]
    first = ["|||IP_ADDRESS|||", "<|padding|>"]
    further = len(after) + len(special) + 1 + unused
    made = byte_level(lines, vocab_size - further, first)
    # Its normalizer came after its merges: they hold decomposed letters too.
    made.normalizer = normalizers.NFC()
    # What training called special is not all special in the file.
    spec = json.loads(made.to_str())
    spec["added_tokens"] = [
        {"id": i, "content": content, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": i == 0, "special": i == 1}
        for i, content in enumerate(first)
    ]
    made = tokenizers.Tokenizer.from_str(json.dumps(spec))
    made.add_tokens([AddedToken(t, normalized=True) for t in after])
    made.add_special_tokens([AddedToken(t, normalized=False) for t in special])
    made.add_special_tokens(
        [AddedToken("[MASK]", lstrip=True, normalized=False)]
    )
    made.add_tokens([AddedToken(t, normalized=True) for t in tail])
    cls, sep = (made.token_to_id(t) for t in ("[CLS]", "[SEP]"))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return made


def precompiled(packed):
    return normalizers.Precompiled(base64.b64decode(packed))


def unigram(lines, normalizer, pre_tokenizer, special, unk, vocab_size):
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size,
        special_tokens=special,
        unk_token=unk,
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    return made


def mpnet(lines, vocab_size=6000):
    """BERT's WordPiece between RoBERTa's tokens."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size - 1,  # <mask> comes after
        special_tokens=["<s>", "<pad>", "</s>", "[UNK]"],
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return made


def xlm_roberta(lines, vocab_size=6000, packed=None):
    """Unigram as XLM-RoBERTa's converter makes it; `packed`: another map of
    characters than nmt_nfkc's."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made = unigram(
        lines,
        normalizers.Sequence(
            [precompiled(packed or charsmap.nmt_nfkc()),
             normalizers.Replace(Regex(" {2,}"), " ")]
        ),
        pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
        special,
        "<unk>",
        vocab_size,
    )
    made.add_special_tokens(
        [AddedToken("<mask>", lstrip=True, normalized=False)]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return made


def camembert(lines, vocab_size=4000, packed=None):
    """The same with white space cut before, as newer versions write it."""
    made = unigram(
        lines,
        precompiled(packed or charsmap.nmt_nfkc()),
        pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(),
             pre_tokenizers.Metaspace(replacement="▁")]
        ),
        ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<s>", "</s>"],
        "<unk>",
        vocab_size,
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 4), ("</s>", 5)],
    )
    return made


def albert(lines, vocab_size=4000, packed=None):
    """Lower case without accents."""
    made = unigram(
        lines,
        normalizers.Sequence(
            [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'),
             normalizers.NFKD(), normalizers.StripAccents(),
             normalizers.Lowercase(), precompiled(packed or charsmap.nmt_nfkc()),
             normalizers.Replace(Regex(" {2,}"), " ")]
        ),
        pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first"),
        ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
        "<unk>",
        vocab_size,
    )
    made.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
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
