"""Byte-level BPE: ids, segments and offsets equal Hugging Face `tokenizers`."""

import json
import random

import pytest
import tokenizer_adversary as adversary
import tokenizer_corpus as corpus
import tokenizer_models as models
import tokenizer_reference as reference
from tokenizer_reference import compare

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "''", "'S",
                "'l", "'r", "s'", "'lll", " 's", "\u2019s"]


def mixes(count, seed):
    """The adversary's mixes, with contractions and RoBERTa's tokens."""
    return adversary.mixes_with(
        CONTRACTIONS + models.ROBERTA_SPECIAL + adversary.SPACES, count, seed
    )


@pytest.fixture(scope="module")
def lines():
    return corpus.all_lines()


@pytest.fixture(scope="module")
def trained(lines):
    return models.roberta(random.Random(1).sample(lines, 30_000))


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory):
    return models.save(trained, tmp_path_factory.mktemp("roberta"))


def test_real_text_in_many_scripts(folder, lines):
    assert len(lines) >= 100_000
    assert len({corpus.script(line) for line in lines} - {None}) >= 10
    compare(folder, lines, one_in=4)


def test_real_text_with_offsets(folder, lines):
    compare(folder, random.Random(2).sample(lines, 20_000), offsets=True)


def test_every_code_point(folder):
    compare(folder, adversary.code_points(), one_in=4)


def test_every_code_point_next_to_a_space_and_a_sign(folder):
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [
        "".join(f" {c}!{c}1{c}{c}\n" for c in points[i : i + 32])
        for i in range(0, len(points), 32)
    ]
    compare(folder, texts)


def test_mixes(folder):
    compare(folder, mixes(20_000, 3))
    compare(folder, mixes(20_000, 4), offsets=True)


def test_pairs(folder, lines):
    texts = random.Random(5).sample(lines, 5_000) + mixes(5_000, 5)
    random.Random(5).shuffle(texts)
    compare(folder, list(zip(texts[::2], texts[1::2])), offsets=True)


@pytest.mark.parametrize("max_len", [4, 5, 9, 16, 33])
def test_truncation(folder, lines, max_len):
    texts = random.Random(max_len).sample(lines, 600)
    pairs = list(zip(texts[::2], texts[1::2]))
    for start in (False, True):
        theirs = reference.load_reference(folder)
        theirs.enable_truncation(
            max_len,
            strategy="longest_first",
            direction="left" if start else "right",
        )
        for items in (texts, pairs):
            ours = reference.run_ours(
                folder, items, True, max_len=max_len, start=start
            )
            wanted = reference.run_reference(theirs, items, True)
            assert not reference.differences(items, ours, wanted)


def test_long_words(folder):
    million = 1_000_000
    compare(
        folder,
        adversary.long_words()
        + ["'s" * (million // 2), "ab" * (million // 2), "\n" * million,
           " \n" * (million // 2), "e\u0301" * (million // 3)],
    )


def set_pre_tokenizer(**fields):
    def change(spec):
        spec["pre_tokenizer"].update(fields)
        prefix = spec["pre_tokenizer"]["add_prefix_space"]
        spec["post_processor"]["add_prefix_space"] = prefix

    return change


@pytest.mark.parametrize(
    "fields",
    [
        {"add_prefix_space": True},
        {"use_regex": False},
        {"add_prefix_space": True, "use_regex": False},
    ],
    ids=str,
)
def test_settings_of_the_pre_tokenizer(trained, lines, tmp_path, fields):
    folder = models.save(trained, tmp_path, set_pre_tokenizer(**fields))
    items = random.Random(6).sample(lines, 5_000) + mixes(10_000, 6)
    compare(folder, items)
    compare(folder, items, offsets=True)


def change_model(**fields):
    return lambda spec: spec["model"].update(fields)


def strings_for_merges(spec):
    spec["model"]["merges"] = [" ".join(m) for m in spec["model"]["merges"]]


def without_bytes(spec):
    """No entries for some bytes: text that has them lacks tokens."""
    vocab = spec["model"]["vocab"]
    gone = {"Ã", "Ļ", "q", "!"}
    merges = [m for m in spec["model"]["merges"] if not gone & set("".join(m))]
    kept = [e for e in vocab if len(e) != 1 or e not in gone]
    spec["model"]["merges"] = merges
    spec["model"]["vocab"] = {entry: i for i, entry in enumerate(kept)}


def without_bytes_but_unknown(fuse):
    def change(spec):
        without_bytes(spec)
        spec["model"]["unk_token"] = "<unk>"
        spec["model"]["fuse_unk"] = fuse

    return change


def repeated_merges(spec):
    merges = spec["model"]["merges"]
    spec["model"]["merges"] = merges + merges[::7]


@pytest.mark.parametrize(
    "change",
    [
        change_model(ignore_merges=True),
        change_model(unk_token="<unk>"),
        strings_for_merges,
        repeated_merges,
        without_bytes_but_unknown(False),
        without_bytes_but_unknown(True),
    ],
    ids=["ignore_merges", "unk", "strings", "repeated", "unknown", "fused"],
)
def test_settings_of_the_model(trained, lines, tmp_path, change):
    folder = models.save(trained, tmp_path, change)
    items = random.Random(7).sample(lines, 5_000) + mixes(10_000, 7)
    compare(folder, items)
    compare(folder, items, offsets=True)


def test_bytes_without_an_entry_give_no_token(trained, lines, tmp_path):
    folder = models.save(trained, tmp_path, without_bytes)
    compare(folder, random.Random(8).sample(lines, 5_000) + mixes(5_000, 8))


def template(spec):
    spec["post_processor"] = {
        "type": "Sequence",
        "processors": [
            {"type": "ByteLevel", "add_prefix_space": False,
             "trim_offsets": True, "use_regex": True},
            {"type": "TemplateProcessing",
             "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [{"Sequence": {"id": "B", "type_id": 1}},
                      {"SpecialToken": {"id": "<s>", "type_id": 1}},
                      {"Sequence": {"id": "A", "type_id": 0}}],
             "special_tokens": {
                 "<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
        ],
    }


def trim_alone(spec):
    spec["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True,
                              "trim_offsets": True, "use_regex": True}


def no_trim(spec):
    spec["post_processor"]["trim_offsets"] = False


@pytest.mark.parametrize("change", [template, trim_alone, no_trim])
def test_post_processors(trained, lines, tmp_path, change):
    folder = models.save(trained, tmp_path, change)
    texts = random.Random(9).sample(lines, 2_000) + mixes(4_000, 9)
    compare(folder, texts, offsets=True)
    compare(folder, list(zip(texts[::2], texts[1::2])), offsets=True)


def test_added_tokens_of_every_kind(trained, tmp_path):
    def change(spec):
        kinds = [
            ("<left>", {"lstrip": True}),
            ("<right>", {"rstrip": True}),
            ("<both>", {"lstrip": True, "rstrip": True, "normalized": True}),
            ("<word>", {"single_word": True}),
            ("<Norm>", {"normalized": True, "rstrip": True}),
            ("Éa", {"normalized": True, "single_word": True}),
            ("zz", {"normalized": True, "lstrip": True}),
            ("zzz", {"single_word": True}),
        ]
        base = dict.fromkeys(
            ["single_word", "lstrip", "rstrip", "normalized", "special"], False
        )
        first = len(spec["model"]["vocab"])
        for i, (content, flags) in enumerate(kinds):
            spec["added_tokens"].append(
                {"id": first + i, "content": content, **base, **flags}
            )

    folder = models.save(trained, tmp_path, change)
    compare(folder, mixes(20_000, 10))
    compare(folder, mixes(20_000, 11), offsets=True)


def test_vocabulary_and_merges_without_tokenizer_json(trained, lines, tmp_path):
    trained.model.save(str(tmp_path))
    assert (tmp_path / "merges.txt").is_file()
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "RobertaTokenizer", "mask_token": mask})
    )
    items = random.Random(12).sample(lines, 5_000) + mixes(5_000, 12)
    ours = reference.run_ours(tmp_path, items, offsets=True)
    theirs = reference.run_reference(trained, items, offsets=True)
    assert not reference.differences(items, ours, theirs)


def untyped(spec):
    """As GPT-2's file is: older than the model's "type"."""
    del spec["model"]["type"]


def added_within(spec):
    """Its added tokens are entries of the vocabulary too."""
    vocab = spec["model"]["vocab"]
    for token in spec["added_tokens"]:
        vocab.setdefault(token["content"], token["id"])


def normalized_mask(spec):
    """[MASK], which takes the spaces before it, looked for in normalized
    text, where the runs of spaces are."""
    for token in spec["added_tokens"]:
        if token["content"] == "[MASK]":
            token["normalized"] = True


PUBLISHED = {
    "gpt2": (models.gpt2, untyped),
    "modernbert": (models.modernbert, None),
    "modernbert_within": (models.modernbert, added_within),
    "modernbert_mask": (models.modernbert, normalized_mask),
}
# What each file looks for in text, alone and next to spaces.
LOOKED_FOR = {
    "gpt2": [models.GPT2_END, "<|endoftext|", " <|endoftext|> "],
    "modernbert": [
        "[MASK]", " [MASK]", "   [MASK] ", "\n\t[MASK]", "[CLS]", "[SEP]",
        "[PAD] ", "[unused0]", "[unused82]", "[unused83]", "|||IP_ADDRESS|||",
        "|||EMAIL_ADDRESS|||", "<|padding|>", "<|endoftext|>", "e\u0301",
        "\u0301", "\u1100\u1161", *(" " * n for n in range(1, 60)),
        *(" " * n + "\n" for n in range(1, 30)), "\u00a0  ", "  \u3000 ",
        " \t  ",
    ],
}


@pytest.fixture(scope="module", params=PUBLISHED)
def published(request, lines, tmp_path_factory):
    """A folder whose file has the structure of a published one, and mixes
    with what it looks for."""
    make, change = PUBLISHED[request.param]
    made = make(random.Random(13).sample(lines, 10_000), 2_000)
    folder = models.save(made, tmp_path_factory.mktemp(request.param), change)
    words = LOOKED_FOR[request.param.split("_")[0]]
    return folder, adversary.mixes_with(words * 2 + CONTRACTIONS, 8_000, 14)


def test_structure_of_published_files(published, lines):
    folder, mixed = published
    texts = random.Random(15).sample(lines, 8_000)
    compare(folder, texts + mixed)
    compare(folder, texts[:2_000] + mixed[:4_000], offsets=True)
    pairs = list(zip(texts[:1_000], mixed[-1_000:]))
    compare(folder, pairs, offsets=True)


def test_truncation_of_published_files(published, lines):
    folder, mixed = published
    texts = random.Random(16).sample(lines, 200) + mixed[:200]
    theirs = reference.load_reference(folder)
    for max_len in (5, 17):
        theirs.enable_truncation(max_len)
        ours = reference.run_ours(folder, texts, True, max_len=max_len)
        wanted = reference.run_reference(theirs, texts, True)
        assert not reference.differences(texts, ours, wanted)


@pytest.mark.parametrize("config", [
    {"tokenizer_class": "GPT2Tokenizer", "pad_token": models.GPT2_END},
    {"model_max_length": 1024},
    None,
], ids=["class", "length", "none"])
def test_gpt2_vocabulary_and_merges(lines, tmp_path, config):
    trained = models.gpt2(random.Random(17).sample(lines, 5_000), 1_000)
    trained.model.save(str(tmp_path))
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    texts = random.Random(18).sample(lines, 2_000) + adversary.mixes_with(
        LOOKED_FOR["gpt2"], 2_000, 19
    )
    ours = reference.run_ours(tmp_path, texts, offsets=True)
    theirs = reference.run_reference(trained, texts, offsets=True)
    assert not reference.differences(texts, ours, theirs)


def test_a_difference_would_be_found(trained, tmp_path):
    def change(spec):
        spec["model"]["merges"] = spec["model"]["merges"][::-1]

    folder = models.save(trained, tmp_path, change)
    items = ["installation of the system", "a"]
    ours = reference.run_ours(folder, items)
    theirs = reference.run_reference(trained, items)
    assert reference.differences(items, ours, theirs) == items[:1]
