"""Scores of pairs of vectors, as sentence-transformers has them: the greater,
the more alike; distances are negative."""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy as np

from encoderd._tensors import as_tensor
from encoderd._vectors import read_vectors
from encoderd.results import EmbedResult

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


def _without_vector(vectors: np.ndarray) -> np.ndarray:
    """bool [n]: rows that are NaN throughout."""
    found: np.ndarray = np.isnan(vectors).all(axis=1)
    return found


def _check_same_model(one: Any, other: Any) -> None:
    """ValueError if both are results that say they are of different models."""
    found = [result.fingerprint for result in (one, other)
             if isinstance(result, EmbedResult) and result.fingerprint]
    if len(set(found)) > 1:
        raise ValueError(
            f"embeddings1 has the fingerprint {found[0]} and embeddings2 has "
            f"{found[1]}; vectors of different models or settings cannot be "
            "compared: embed both with the same server")


def similarity(name: str, embeddings1: Any, embeddings2: Any,
               pairwise: bool) -> Any:
    """ModelMembers.similarity and similarity_pairwise say what they give."""
    _check_same_model(embeddings1, embeddings2)
    a = read_vectors("embeddings1", embeddings1)
    b = read_vectors("embeddings2", embeddings2)
    if a.shape == (0, 0):  # an empty list has no vector of another length
        a = a.reshape(0, b.shape[1])
    if b.shape == (0, 0):
        b = b.reshape(0, a.shape[1])
    fits = a.shape == b.shape if pairwise else a.shape[1] == b.shape[1]
    if not fits:
        raise ValueError(f"embeddings1 is of shape {list(a.shape)} and "
                         f"embeddings2 of {list(b.shape)}; expected as many "
                         f"{'rows and ' if pairwise else ''}columns in both")
    found = (_PAIRS if pairwise else _ALL)[name](a, b)
    # NaN would come first in argmax() and topk().
    if pairwise:
        found[_without_vector(a) | _without_vector(b)] = -np.inf
    else:
        found[_without_vector(a)] = -np.inf
        found[:, _without_vector(b)] = -np.inf
    return as_tensor(found)
