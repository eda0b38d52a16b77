"""Unigram and its normalisers: ids, segments and offsets equal Hugging Face's."""

import json
import random

import pytest
import tokenizer_adversary as adversary
import tokenizer_charsmap as charsmap
import tokenizer_corpus as corpus
import tokenizer_models as models
import tokenizer_reference as reference
from tokenizer_reference import compare

KINDS = ["xlm_roberta", "camembert", "albert"]
EXTRA = ["▁", "▁▁", " ▁", "``", "''", "<s>", "<mask>", "<unk>", "[MASK]", "  ",
         "   ", "\r\n", "\n\n", "\u00a0\u0301", "\u00a0\u0897", "e\u0301",
         "x\u0301\u0316", "\u1100\u1161\u11a8", "\u0958\u0301", "\u095c\u094d\u0915",
         "\u1780\u17d2\u0958\u0301", "\u0915\u094d\u200c\u0958\u0301"]


def mixes(count, seed):
    return adversary.mixes_with(EXTRA, count, seed)


@pytest.fixture(scope="module")
def lines():
    return corpus.all_lines()


@pytest.fixture(scope="module")
def trained(lines):
    sample = random.Random(1).sample(lines, 4_000)
    return {kind: getattr(models, kind)(sample) for kind in KINDS}


@pytest.fixture(scope="module")
def folders(trained, tmp_path_factory):
    return {
        kind: models.save(made, tmp_path_factory.mktemp(kind))
        for kind, made in trained.items()
    }


def test_real_text_in_many_scripts(folders, lines):
    assert len(lines) >= 100_000
    assert len({corpus.script(line) for line in lines} - {None}) >= 10
    compare(folders["xlm_roberta"], lines)


@pytest.mark.parametrize("kind", KINDS)
def test_real_text_with_offsets(folders, lines, kind):
    texts = random.Random(2).sample(lines, 5_000)
    compare(folders[kind], texts, offsets=True)
    compare(folders[kind], texts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_code_point(folders, kind):
    compare(folders[kind], adversary.code_points())


@pytest.mark.parametrize("kind", KINDS)
def test_mixes(folders, kind):
    compare(folders[kind], mixes(5_000, 3))
    compare(folders[kind], mixes(5_000, 4), offsets=True)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs(folders, lines, kind):
    texts = random.Random(5).sample(lines, 2_000) + mixes(2_000, 5)
    random.Random(5).shuffle(texts)
    compare(folders[kind], list(zip(texts[::2], texts[1::2])), offsets=True)


@pytest.mark.parametrize("kind", KINDS)
def test_long_words(folders, kind):
    compare(folders[kind], adversary.long_words())


# One step of a normalizer, in a model whose tokens show every character: all
# characters that occur are unknown or entries, and offsets tell them apart.
def string(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def runs(pattern, content):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def precompiled(packed):
    return {"type": "Precompiled", "precompiled_charsmap": packed}


def bert(**switches):
    return {"type": "BertNormalizer", "clean_text": True, "lowercase": True,
            "handle_chinese_chars": True, "strip_accents": None, **switches}


def sequence(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


STEPS = {
    "none": None,
    "NFC": {"type": "NFC"},
    "NFD": {"type": "NFD"},
    "NFKC": {"type": "NFKC"},
    "NFKD": {"type": "NFKD"},
    "Lowercase": {"type": "Lowercase"},
    "StripAccents": {"type": "StripAccents"},
    "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "Prepend": {"type": "Prepend", "prepend": "▁ é"},
    "string": string("a", "äo"),
    "removal": string(" ", ""),
    "runs": runs(" {2,}", " "),
    "plus": runs("é+", "ee"),
    "nmt_nfkc": precompiled(charsmap.nmt_nfkc()),
    "odd": precompiled(charsmap.odd()),
    "bert": bert(),
    "several": sequence(
        {"type": "NFD"}, precompiled(charsmap.odd()), {"type": "NFKC"},
        string("s", ""), sequence({"type": "Lowercase"}, {"type": "NFKD"}),
        {"type": "StripAccents"},
        {"type": "Strip", "strip_left": False, "strip_right": True}),
}


@pytest.mark.parametrize("step", STEPS)
def test_normalizers(trained, lines, tmp_path, step):
    def change(spec):
        spec["normalizer"] = STEPS[step]
        spec["added_tokens"].append(
            {"id": len(spec["model"]["vocab"]) + 1, "content": "Éa",
             "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": True, "special": False})

    folder = models.save(trained["xlm_roberta"], tmp_path, change)
    compare(folder, mixes(2_000, 6), offsets=True)
    compare(folder, mixes(2_000, 7))
    compare(folder, random.Random(8).sample(lines, 1_000), offsets=True)
    compare(folder, adversary.code_points(per_line=64), offsets=True)


def metaspace(**fields):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
            "split": True, **fields}


def cuts(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


PRE_TOKENIZERS = {
    "none": None,
    "first": metaspace(prepend_scheme="first"),
    "never": metaspace(prepend_scheme="never"),
    "whole": metaspace(split=False),
    "whole_first": metaspace(split=False, prepend_scheme="first"),
    "mark": metaspace(replacement="_"),
    "old": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
    "Whitespace": {"type": "Whitespace"},
    "WhitespaceSplit": {"type": "WhitespaceSplit"},
    "bert": {"type": "BertPreTokenizer"},
    "several": cuts({"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"},
                    metaspace(prepend_scheme="first"), cuts(metaspace())),
}


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_pre_tokenizers(trained, lines, tmp_path, name):
    def change(spec):
        spec["pre_tokenizer"] = PRE_TOKENIZERS[name]

    folder = models.save(trained["albert"], tmp_path, change)
    texts = mixes(2_000, 9) + random.Random(9).sample(lines, 1_000)
    compare(folder, texts)
    compare(folder, texts, offsets=True)


def bytes_for_unknown(spec):
    vocab = spec["model"]["vocab"]
    vocab += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    spec["model"]["byte_fallback"] = True
    spec["added_tokens"] = [
        token for token in spec["added_tokens"] if token["content"] != "<mask>"]


def some_bytes_for_unknown(spec):
    bytes_for_unknown(spec)
    spec["model"]["vocab"] = spec["model"]["vocab"][:-40]


def equal_scores(spec):
    """Many ways to cut have the same sum."""
    for entry in spec["model"]["vocab"]:
        entry[1] = -1.0


def unknown_together(spec):
    """Entries whose characters are better unknown."""
    spec["model"]["vocab"] = [
        [entry, 100.0 + i % 3] for i, (entry, _)
        in enumerate(spec["model"]["vocab"]) if i < 5 or len(entry) > 1]
    spec["added_tokens"] = []


@pytest.mark.parametrize(
    "change",
    [bytes_for_unknown, some_bytes_for_unknown, equal_scores, unknown_together],
)
def test_settings_of_the_model(trained, lines, tmp_path, change):
    folder = models.save(trained["xlm_roberta"], tmp_path, change)
    texts = mixes(2_500, 10) + random.Random(10).sample(lines, 1_500)
    compare(folder, texts)
    compare(folder, texts, offsets=True)


def test_byte_pairs_after_a_normalizer(lines, tmp_path):
    made = models.roberta(lines[::50], vocab_size=1000)

    def change(spec):
        spec["normalizer"] = sequence({"type": "NFC"}, {"type": "Lowercase"})
        spec["pre_tokenizer"] = cuts({"type": "Whitespace"}, spec["pre_tokenizer"])

    folder = models.save(made, tmp_path, change)
    compare(folder, mixes(5_000, 11))
    compare(folder, mixes(5_000, 12), offsets=True)


def test_a_difference_would_be_found(trained, tmp_path):
    def change(spec):
        for entry in spec["model"]["vocab"]:
            entry[1] = -entry[1]

    folder = models.save(trained["xlm_roberta"], tmp_path, change)
    ours = reference.run_ours(folder, ["installation"])
    theirs = reference.run_reference(trained["xlm_roberta"], ["installation"])
    assert reference.differences(["installation"], ours, theirs)
    assert json.loads((folder / "tokenizer.json").read_text())
