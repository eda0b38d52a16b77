"""Ids, segments and offsets equal Hugging Face `tokenizers` on every line."""

import json
import random
import shutil
import unicodedata

import pytest
import tokenizers
import tokenizer_adversary as adversary
import tokenizer_corpus as corpus
import tokenizer_reference as reference
from tokenizer_reference import compare

BASE = reference.model_folder()
# Categories of spaces, controls and format characters.
ENDS = ("Zs", "Zl", "Zp", "Cc", "Cf")


def set_normalizer(**switches):
    def change(spec):
        spec["normalizer"].update(switches)

    return change


def test_the_reference_is_the_version_that_we_promise_to_equal():
    assert tokenizers.__version__ == reference.PINNED


@pytest.fixture(scope="module")
def lines():
    return corpus.all_lines()


def test_real_text_in_many_scripts(lines):
    scripts = {corpus.script(line) for line in lines} - {None}
    print(f"{len(lines)} lines, scripts: {' '.join(sorted(scripts))}")
    assert len(lines) >= 100_000
    assert len(scripts) >= 10
    compare(BASE, lines, one_in=4)


def test_real_text_with_offsets(lines):
    compare(BASE, random.Random(1).sample(lines, 20_000), offsets=True)


def test_real_text_cased(lines, tmp_path):
    change = set_normalizer(lowercase=False, strip_accents=None)
    folder = reference.write_variant(BASE, tmp_path, change)
    compare(folder, random.Random(2).sample(lines, 20_000))


def test_pairs(lines):
    rng = random.Random(3)
    texts = rng.sample(lines, 10_000) + adversary.mixes(10_000, 3)
    rng.shuffle(texts)
    pairs = list(zip(texts[::2], texts[1::2]))
    compare(BASE, pairs, offsets=True)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("max_len", [3, 4, 5, 8, 9, 16, 33])
def test_truncation(lines, max_len, start):
    rng = random.Random(max_len)
    texts = rng.sample(lines, 600)
    pairs = list(zip(texts[::2], texts[1::2]))
    theirs = reference.load_reference(BASE)
    theirs.enable_truncation(
        max_len, strategy="longest_first", direction="left" if start else "right"
    )
    for items in (texts, pairs):
        ours = reference.run_ours(
            BASE, items, offsets=True, max_len=max_len, start=start
        )
        found = reference.differences(
            items, ours, reference.run_reference(theirs, items, offsets=True)
        )
        assert not found


SWITCHES = [
    {},
    {"clean_text": False},
    {"handle_chinese_chars": False},
    {"strip_accents": False},
    {"lowercase": False},
    {"lowercase": False, "strip_accents": True},
    {
        "clean_text": False,
        "handle_chinese_chars": False,
        "strip_accents": False,
        "lowercase": False,
    },
]


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_every_code_point(switches, tmp_path):
    def change(spec):
        spec["normalizer"].update(switches)
        # Every letter a word, so that a wrong mapping is not hidden by [UNK].
        vocab = spec["model"]["vocab"]
        for c in range(0xA0, 0x20000):
            if not 0xD800 <= c < 0xE000:
                for entry in (chr(c), "##" + chr(c)):
                    vocab.setdefault(entry, len(vocab))

    folder = reference.write_variant(BASE, tmp_path, change)
    compare(folder, adversary.code_points(), one_in=4)


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_mixes(switches, tmp_path):
    folder = reference.write_variant(BASE, tmp_path, set_normalizer(**switches))
    compare(folder, adversary.mixes(10_000, 4))
    compare(folder, adversary.mixes(10_000, 5), offsets=True)


def test_added_tokens_of_every_kind(tmp_path):
    def token(identity, content, **flags):
        base = dict.fromkeys(
            ["single_word", "lstrip", "rstrip", "normalized", "special"], False
        )
        return {"id": identity, "content": content, **base, **flags}

    def change(spec):
        first = len(spec["model"]["vocab"])
        kinds = [
            ("<left>", {"lstrip": True}),
            ("<right>", {"rstrip": True}),
            ("<both>", {"lstrip": True, "rstrip": True}),
            ("<word>", {"single_word": True}),
            ("<Norm>", {"normalized": True, "rstrip": True}),
            ("Éa", {"normalized": True, "single_word": True}),
            ("zz", {"normalized": True, "lstrip": True}),
            ("zzz", {"single_word": True}),
        ]
        for i, (content, flags) in enumerate(kinds):
            spec["added_tokens"].append(token(first + i, content, **flags))

    folder = reference.write_variant(BASE, tmp_path, change)
    compare(folder, adversary.mixes(20_000, 6, added=True))
    compare(folder, adversary.mixes(20_000, 7, added=True), offsets=True)


def test_added_tokens_with_two_entries(tmp_path):
    """The last entry counts."""
    flags = ["single_word", "lstrip", "rstrip", "normalized", "special"]
    items = ["the zz b", "zzb", "a ZZ b", "a  zz  b zz", "[MASK]", "x [mask] [MASK]y"]
    rng = random.Random(11)

    def change(spec):
        new = len(spec["model"]["vocab"])
        for identity, content in [(103, "[MASK]"), (new, "zz")] * 2:
            token = {flag: rng.random() < 0.5 for flag in flags}
            token.update(id=identity, content=content)
            spec["added_tokens"].append(token)

    for round in range(20):
        folder = reference.write_variant(BASE, tmp_path / str(round), change)
        compare(folder, items)
        compare(folder, items, offsets=True)


def test_word_characters_next_to_a_single_word_token(tmp_path):
    def change(spec):
        for entry in spec["added_tokens"]:
            entry["single_word"] = True

    folder = reference.write_variant(BASE, tmp_path, change)
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    lines = [
        "".join(f"{chr(c)}[SEP]{chr(c)} [SEP]{chr(c)} " for c in points[i : i + 32])
        for i in range(0, len(points), 32)
    ]
    compare(folder, lines)


def test_long_words():
    compare(BASE, adversary.long_words())


def test_short_words_and_another_prefix(lines, tmp_path):
    def change(spec):
        spec["model"]["max_input_chars_per_word"] = 7
        spec["model"]["unk_token"] = "the"
        vocab = spec["model"]["vocab"]
        spec["model"]["continuing_subword_prefix"] = "a"
        assert "a" in vocab

    folder = reference.write_variant(BASE, tmp_path, change)
    compare(folder, random.Random(8).sample(lines, 20_000), offsets=True)


def test_bert_processing(tmp_path):
    def change(spec):
        spec["post_processor"] = {
            "type": "BertProcessing",
            "sep": ["[SEP]", 102],
            "cls": ["[CLS]", 101],
        }

    folder = reference.write_variant(BASE, tmp_path, change)
    compare(folder, ["a text", ("a text", "and another"), ("", "")])


def test_vocabulary_without_tokenizer_json(lines, tmp_path):
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(BASE / name, tmp_path / name)
    items = random.Random(9).sample(lines, 20_000) + adversary.mixes(10_000, 9)
    ours = reference.run_ours(tmp_path, items)
    theirs = reference.run_reference(reference.load_reference(BASE), items)
    assert not reference.differences(items, ours, theirs)


def test_white_space_at_the_ends_of_vocabulary_lines(tmp_path):
    ends = [
        chr(c)
        for c in range(0x110000)
        if chr(c) != "\n" and unicodedata.category(chr(c)) in ENDS
    ]
    words = [f"x{i}" for i in range(len(ends))]
    lines = ["[UNK]", "[CLS]", "[SEP]", "", " "]
    lines += [word + end for word, end in zip(words, ends)]
    lines += ["y \t\r", "", " z", "", "x1", "##1", "y", "##1 ", "[CLS]"]
    file = tmp_path / "vocab.txt"
    file.write_bytes("\n".join(lines).encode())
    model = tokenizers.models.WordPiece.from_file(str(file), unk_token="[UNK]")
    theirs = tokenizers.Tokenizer(model)
    theirs.normalizer = tokenizers.normalizers.BertNormalizer()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    theirs.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", 2), ("[CLS]", len(lines) - 1)
    )
    items = words + ["y z", "y1 x11"]
    ours = reference.run_ours(tmp_path, items)
    assert not reference.differences(
        items, ours, reference.run_reference(theirs, items)
    )


def test_invalid_utf8_is_refused_at_the_byte_that_python_names():
    cases = adversary.invalid(10)
    results = reference.run_ours(BASE, [text for text, _ in cases])
    for (text, start), result in zip(cases, results):
        assert result.invalid_at == start, text


def test_a_difference_would_be_found(tmp_path):
    """The comparison can fail: another vocabulary gives other ids."""

    def change(spec):
        vocab = spec["model"]["vocab"]
        vocab["the"], vocab["and"] = vocab["and"], vocab["the"]

    folder = reference.write_variant(BASE, tmp_path, change)
    items = ["the book", "a book"]
    ours = reference.run_ours(folder, items)
    theirs = reference.run_reference(reference.load_reference(BASE), items)
    assert reference.differences(items, ours, theirs) == ["the book"]
    assert json.loads((folder / "tokenizer.json").read_text())
