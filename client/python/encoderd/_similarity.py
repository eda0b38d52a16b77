"""Scores of pairs of vectors, as sentence-transformers has them: the greater,
the more alike; distances are negative."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable

import numpy as np

from encoderd._option_checks import a_kind
from encoderd._tensors import as_array, as_tensor
from encoderd.results import EmbedResult

# What to do with bytes whose products are no similarity.
_AS_FLOATS = ('unpack bits (np.unpackbits(bits, axis=-1, count=D) * 2.0 - 1), '
              'dequantize values by their scales or ranges, or use precision="float32"')
_SMALLEST_LENGTH = np.float32(1e-12)  # a vector of zeros is like no other


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: np.ndarray = vectors / np.maximum(lengths, _SMALLEST_LENGTH)
    return found


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found: np.ndarray = a @ b.T
    return found


def _rows(length: Callable[[np.ndarray], np.ndarray]
          ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Row by row, so that the differences of all pairs are never in memory
    together."""
    def score(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = np.empty((len(a), len(b)), np.float32)
        for i, row in enumerate(a):
            found[i] = -length(b - row)
        return found

    return score


def _manhattan(difference: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.abs(difference).sum(axis=1)
    return found


def _euclidean(difference: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.linalg.norm(difference, axis=1)
    return found


# [n, D] and [m, D] -> [n, m].
_ALL: Dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cosine": lambda a, b: _dot(_unit(a), _unit(b)),
    "dot": _dot,
    "euclidean": _rows(_euclidean),
    "manhattan": _rows(_manhattan),
}
# [n, D] and [n, D] -> [n].
_PAIRS: Dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cosine": lambda a, b: np.sum(_unit(a) * _unit(b), axis=1),
    "dot": lambda a, b: np.sum(a * b, axis=1),
    "euclidean": lambda a, b: -_euclidean(a - b),
    "manhattan": lambda a, b: -_manhattan(a - b),
}
NAMES = tuple(_ALL)


def check_name(name: Any) -> str:
    """Of a function; ValueError for an unknown one."""
    name = getattr(name, "value", name)  # of an enum
    if name not in NAMES:
        raise ValueError(f"similarity_fn_name is {name!r}; expected one of "
                         f"{', '.join(NAMES)}")
    return str(name)


def _holds_text(vectors: Any) -> bool:
    """Of a str, or of a list, an array or a column that begins with one."""
    if isinstance(vectors, str) or not isinstance(vectors, Iterable):
        return isinstance(vectors, str)
    return isinstance(next(iter(vectors), None), str)


def _holds_unsigned_bytes(vectors: Any) -> bool:
    """Of an array, a tensor, a column or a table, or a list of them."""
    types = getattr(vectors, "dtypes", None)  # of a table's columns
    if not isinstance(types, Iterable):
        types = [getattr(vectors, "dtype", "")]
    if any("uint8" in str(kind).lower() for kind in types):
        return True
    if isinstance(vectors, (list, tuple)):
        return any(_holds_unsigned_bytes(vector) for vector in vectors)
    return (getattr(vectors, "ndim", 0) == 1
            and getattr(vectors, "dtype", None) == object
            and any(_holds_unsigned_bytes(vector)
                    for vector in np.asarray(vectors)))


def _values(name: str, result: EmbedResult) -> np.ndarray:
    """float32 of bytes with their scales, as EmbedResult says them. TypeError
    for bytes without: bits, or places in ranges that the result does not
    have."""
    vectors, scales = result.vectors, result.scales
    if vectors.dtype not in (np.int8, np.uint8):
        return vectors
    if result.ok.any() and not scales.any():
        raise TypeError(
            f"{name} is an EmbedResult of {vectors.dtype} without scales; "
            f"{_AS_FLOATS}")
    middle = np.float32(-1 if vectors.dtype == np.int8 else 127)
    found: np.ndarray = (vectors - middle) * scales[:, np.newaxis]
    return found


def _matrix(name: str, vectors: Any) -> np.ndarray:
    if isinstance(vectors, EmbedResult):
        vectors = _values(name, vectors)
    if _holds_text(vectors):
        raise TypeError(f"{name} holds texts; pass encode(texts)")
    if _holds_unsigned_bytes(vectors):
        raise TypeError(f"{name} holds uint8, which is packed bits or values "
                        f"with an offset; {_AS_FLOATS}")
    try:
        found = as_array(vectors)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {a_kind(vectors)}; expected numbers of "
                        "shape [n, D] or [D]") from None
    if found.ndim not in (1, 2):
        raise ValueError(f"{name} is of shape {list(found.shape)}; expected "
                         "[n, D] or [D]")
    return np.atleast_2d(found)


def similarity(name: str, embeddings1: Any, embeddings2: Any,
               pairwise: bool) -> Any:
    """ModelMembers.similarity and similarity_pairwise say what they give."""
    a = _matrix("embeddings1", embeddings1)
    b = _matrix("embeddings2", embeddings2)
    fits = a.shape == b.shape if pairwise else a.shape[1] == b.shape[1]
    if not fits:
        raise ValueError(f"embeddings1 is of shape {list(a.shape)} and "
                         f"embeddings2 of {list(b.shape)}; expected as many "
                         f"{'rows and ' if pairwise else ''}columns in both")
    return as_tensor((_PAIRS if pairwise else _ALL)[name](a, b))
