"""Made-up text that tokenizers get wrong: every code point, and random mixes."""

import os
import random

WHOLE = os.environ.get("ENCODERD_TEST_CORPUS") == "whole"

SPECIALS = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[sep]", "[SEP", "SEP]"]
ADDED = ["<left>", "<right>", "<both>", "<word>", "<Norm>", "<norm>", "<NÖRM>",
         "Éa", "e\u0301a", "zz", "zzz", " gap"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "\u2028",
          "\u0085", "\x0b", "\x1c", "\u200b", "\ufeff"]
MARKS = ["\u0300", "\u0301", "\u0316", "\u0323", "\u0327", "\u0345", "\u05b0",
         "\u064b", "\u093c", "\u094d", "\u0e38", "\u0f71", "\u1cd0", "\u20d0",
         "\u302e", "\u302f", "\u3099", "\u1734", "\u0859", "\u07fd", "\u08d4",
         "\U0001d165", "\U0001d16e", "\U00016ff0", "\u0344", "\u0f73"]
LETTERS = ["a", "B", "é", "É", "İ", "ı", "ß", "ẞ", "ſ", "K", "Å", "Σ", "ς", "ǅ",
           "Ⓐ", "Ⅷ", "Ж", "й", "א", "ش", "ﻻ", "क", "क़", "ৎ", "ก", "ำ", "ကို", "ក្ក",
           "가", "각", "힣", "ᄀ", "ᅡ", "ᆨ", "あ", "が", "ガ", "ｶﾞ", "中", "文", "豈",
           "\u2f81", "\U00020000", "\U0002f800", "\U0002b820", "\U0002b91f",
           "𝔸", "𐐀", "Ꭰ", "ꭰ", "\u1c89", "\ua7cb", "\U00010d50", "ﬁ", "…", "½"]
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + [
    "–", "“", "”", "、", "。", "؟", "।", "€", "©", "≠", "≮", "\u037e", "\u1fef",
    "\u166d", "\u2e43", "\U000111c9"]
ODD = ["\x00", "\x01", "\x7f", "\u00ad", "\u200c", "\u200d", "\ufffd", "\ufffe",
       "\uffff", "\ue000", "\uf8ff", "\U000f0000", "\U0010ffff", "\u0378",
       "\u08e2", "\U000e0001", "\U000e0067", "\U0001f3fb", "\ufe0f", "\u20e3"]
EMOJI = ["😀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "1️⃣", "🇩🇪", "🏴\U000e0067\U000e0062\U000e007f"]
WORDS = ["unaffable", "tokenization", "Hello", "WORLD", "x" * 99, "y" * 100,
         "z" * 101, "antidisestablishmentarianism", "e\u0301" * 100]


def code_points(per_line=32):
    """Lines that show every code point alone and between two letters.

    Of the planes that Unicode leaves empty or to private use (4 to 13, 15 and
    16) one in 61, unless the environment (ENCODERD_TEST_CORPUS=whole) asks for
    each."""
    points = [c for c in range(0x110000)
              if not 0xD800 <= c < 0xE000
              and (WHOLE or c < 0x40000 or c >> 16 == 14 or c % 61 == 0)]
    return [
        "".join(f"a{chr(c)}b {chr(c)} " for c in points[i : i + per_line])
        for i in range(0, len(points), per_line)
    ]


def mixes(count, seed, added=False):
    """Random strings of all of the above; the same for the same seed."""
    rng = random.Random(seed)
    pools = [SPECIALS, SPACES, MARKS, LETTERS, SIGNS, ODD, EMOJI, WORDS]
    if added:
        pools += [ADDED, ADDED, SPACES]

    def part():
        if rng.random() < 0.05:
            while True:
                c = rng.randrange(rng.choice([0x300, 0x3000, 0x20000, 0x110000]))
                if not 0xD800 <= c < 0xE000:
                    return chr(c)
        return rng.choice(rng.choice(pools))

    return [
        "".join(part() for _ in range(rng.randrange(1, 24)))
        for _ in range(count)
    ]


def mixes_with(extra, count, seed):
    """Mixes with the added tokens' words, and three of `extra` in each."""
    rng = random.Random(seed)
    made = []
    for text in mixes(count, seed, added=True):
        at = rng.randrange(len(text) + 1)
        made.append(text[:at] + "".join(rng.choices(extra, k=3)) + text[at:])
    return made


def long_words():
    """Words of up to a million bytes, and texts of nothing else."""
    million = 1_000_000
    return [
        "a" * million, "ab" * (million // 2) + " end", "é" * (million // 2),
        "\u0301" * (million // 2), "a" + "\u0301\u0316" * (million // 4),
        "\U0001d165" * (million // 4), "가" * (million // 3),
        "中" * (million // 3), "." * million, " " * million, "\x00" * million,
        "[" * million, "[SEP]" * (million // 5), "[SEP" * (million // 4),
        "x" * 100, "x" * 101, "é" * 100, "é" * 101, "각" * 33, "각" * 34,
        ("x" * 100 + " ") * 1000, "\u302e\u302f" * (million // 8),
    ]


def invalid(seed):
    """Bytes that are not UTF-8, and where Python's decoder says they end."""
    rng = random.Random(seed)
    found = []
    while len(found) < 5000:
        good = "".join(rng.choice(LETTERS + EMOJI) for _ in range(8)).encode()
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(bad))
            if rng.random() < 0.5:
                bad[at] = rng.randrange(256)
            else:
                del bad[at]
        try:
            bytes(bad).decode()
        except UnicodeDecodeError as error:
            found.append((bytes(bad), error.start))
    return found
