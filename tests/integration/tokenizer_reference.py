"""Runs our tokenizer and Hugging Face's on the same texts and compares them."""

import array
import dataclasses
import json
import os
import pathlib
import random
import struct
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402
from tokenizer_adversary import WHOLE  # noqa: E402

PINNED = "0.23.3"  # the version whose ids are the promise


@dataclasses.dataclass
class Result:
    ids: list
    segments: list
    offsets: list = None  # [(begin, end)] in bytes
    special: list = None
    invalid_at: int = None  # byte offset of a refusal


def model_folder():
    folder = os.environ.get("ENCODERD_TEST_MODEL", "")
    if not pathlib.Path(folder, "tokenizer.json").is_file():
        sys.exit(
            "ENCODERD_TEST_MODEL must name the folder of all-MiniLM-L6-v2; "
            "deploy/fetch-model.sh fetches it and prints its path"
        )
    return pathlib.Path(folder)


def load_reference(folder):
    """The reference, without the truncation and padding that files carry."""
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    return reference


def write_variant(base, folder, change):
    """A tokenizer.json like that of `base`, after change(json)."""
    spec = json.loads((base / "tokenizer.json").read_text(encoding="utf-8"))
    change(spec)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(
        json.dumps(spec, ensure_ascii=False), encoding="utf-8"
    )
    return folder


def run_ours(folder, items, offsets=False, max_len=None, start=False):
    """items: text, bytes, or a pair of them. One Result each."""
    program = os.environ["ENCODERD_TEST_PROGRAMS"] + "/tokenize_lines"
    flags = 2 * offsets + (4 if max_len is not None else 0) + 8 * start
    parts = []
    for item in items:
        texts = item if isinstance(item, tuple) else (item,)
        texts = [t if isinstance(t, bytes) else t.encode() for t in texts]
        pair = len(texts) == 2
        second = texts[1] if pair else b""
        parts.append(
            struct.pack(
                "<4i", flags | pair, max_len or 0, len(texts[0]), len(second)
            )
        )
        parts += [texts[0], second]
    done = subprocess.run(
        [program, str(folder)], input=b"".join(parts), stdout=subprocess.PIPE
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with {done.returncode}")
    results = []
    numbers = memoryview(done.stdout)
    at = 0

    def take(count):
        nonlocal at
        values = array.array("i", numbers[at : at + 4 * count].tobytes())
        at += 4 * count
        return values.tolist()

    for _ in items:
        (count,) = take(1)
        if count < 0:
            results.append(Result([], [], invalid_at=take(1)[0]))
            continue
        result = Result(take(count), take(count))
        if offsets:
            flat = take(2 * count)
            result.offsets = list(zip(flat[::2], flat[1::2]))
            result.special = list(numbers[at : at + count])
            at += count
        results.append(result)
    if at != len(numbers):
        raise RuntimeError(f"{len(numbers) - at} bytes of results are left over")
    return results


def run_reference(reference, items, offsets=False):
    """The same from the reference; its offsets count characters."""
    encode = (
        reference.encode_batch if offsets else reference.encode_batch_fast
    )
    results = []
    for begin in range(0, len(items), 4096):
        chunk = items[begin : begin + 4096]
        for item, got in zip(chunk, encode(chunk)):
            result = Result(got.ids, got.type_ids)
            if offsets:
                result.offsets = in_bytes(item, got)
                result.special = got.special_tokens_mask
            results.append(result)
    return results


def in_bytes(item, encoding):
    texts = item if isinstance(item, tuple) else (item,)
    starts = []
    for text in texts:
        at, places = 0, [0]
        for char in text:
            at += len(char.encode())
            places.append(at)
        starts.append(places)
    offsets = []
    for (begin, end), sequence in zip(encoding.offsets, encoding.sequence_ids):
        places = starts[sequence or 0]
        offsets.append((places[begin], places[end]))
    return offsets


def compare(folder, items, offsets=False, one_in=10):
    """Both, of the tokenizer in a folder: an AssertionError if they differ.

    Of a long list one item in this many, drawn by a fixed seed, unless the
    environment (ENCODERD_TEST_CORPUS=whole) asks for each.
    """
    if not WHOLE and len(items) > 1000:
        items = random.Random(0).sample(items, len(items) // one_in)
    ours = run_ours(folder, items, offsets)
    theirs = run_reference(load_reference(folder), items, offsets)
    found = differences(items, ours, theirs)
    assert not found, f"{len(found)} of {len(items)} differ"


def differences(items, ours, theirs):
    """Descriptions of the items whose results differ, at most ten in full."""
    found = []
    for item, a, b in zip(items, ours, theirs):
        if a == b:
            continue
        found.append(item)
        if len(found) <= 10:
            print(
                f"DIFFERS {ascii(item)[:300]}\n  ours   {str(a)[:600]}\n"
                f"  theirs {str(b)[:600]}"
            )
    return found
