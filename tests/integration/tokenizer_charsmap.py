"""A character map as sentencepiece precompiles it, made from rules.

The format: u32 bytes of the trie; the trie, a double array of u32 units; the
texts, each ended by NUL. See engine/tokenizer/unigram/chars_map.h.
"""

import base64
import functools
import struct
import unicodedata

HAS_VALUE = 1 << 8
VALUE = 1 << 31


def double_array(values):
    """{key bytes: value} -> units."""
    root = {}
    for key, value in values.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[-1] = value
    units, free, bases = {0: 0}, 1, set()

    def find_base(labels):
        nonlocal free
        while free in units:
            free += 1
        place = free
        while True:
            base = place ^ labels[0]
            if base not in bases and all(base ^ x not in units for x in labels):
                return base
            place += 1

    nodes = [(0, root)]
    while nodes:
        place, node = nodes.pop()
        labels = sorted(max(x, 0) for x in node)
        base = find_base(labels)
        bases.add(base)
        offset = place ^ base
        assert offset < 1 << 21
        units[place] = units[place] | offset << 10 | HAS_VALUE * (-1 in node)
        for label in node:
            if label == -1:
                units[base] = VALUE | node[-1]
            else:
                units[base ^ label] = label
        nodes += [(base ^ x, child) for x, child in node.items() if x != -1]
    return [units.get(i, 0) for i in range(max(units) + 256)]


def pack(rules):
    """{str: str} -> base64."""
    texts, places, values = bytearray(), {}, {}
    for key, text in rules.items():
        if text not in places:
            places[text] = len(texts)
            texts += text.encode() + b"\0"
        values[key.encode()] = places[text]
    units = double_array(values)
    trie = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(
        struct.pack("<I", len(trie)) + trie + bytes(texts)
    ).decode()


@functools.lru_cache(maxsize=None)
def nmt_nfkc(end=0x30000):
    """As sentencepiece's rule of that name: NFKC of each character and of what
    composes from two, controls removed, every white space a space. `end`: the
    first code point that stays as it is."""
    rules = {}
    for code in range(1, end):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        normal = unicodedata.normalize("NFKC", c)
        if normal != c:
            rules[c] = normal
        parts = unicodedata.normalize("NFD", c)
        if len(parts) > 1 and unicodedata.normalize("NFC", parts) == c:
            rules[parts] = c
    for code in [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]:
        rules[chr(code)] = ""
    for code in [0x9, 0xA, 0xC, 0xD, 0x1680, 0x200B, 0x200E, 0x200F, 0x2028,
                 0x2029, 0x2581, 0xFEFF, 0xFFFD, 0x85, 0xA0, 0x3000]:
        rules[chr(code)] = " "
    rules["\r\n"] = " "
    return pack(rules)


@functools.lru_cache(maxsize=None)
def odd():
    """Rules that no model has: letters by themselves (so that their marks are
    lost with them), removals, one to many, many to one."""
    rules = {chr(c): chr(c + 32) for c in range(65, 91)}
    rules |= {"\u00a0": "  ", "é": "", "e\u0301": "e", "\u0301": "´", "ß": "ss",
              "中": "zhong", "中文": "zw", "\u0915\u094d": "k", "😀": "smile",
              "\U0001f1e9\U0001f1ea": "DE", "가": "ga", "x\u0301\u0316": "X",
              "-": "", "  ": " ", "\u0301\u0301": "!", "1\ufe0f\u20e3": "one"}
    return pack(rules)
