"""What comes back, and how it is read from the answers."""

from __future__ import annotations

import dataclasses
from typing import List, Optional, Tuple

import grpc
import numpy as np

from encoderd.errors import make_error
from encoderd.v1 import encoder_pb2


@dataclasses.dataclass(frozen=True)
class EmbedResult:
    """Embeddings of n inputs; row i belongs to input i.

    vectors: float32 [n, H] (or [n, dimensions]).
    token_counts: int64 [n], tokens of each input before any cut, special
        tokens included.
    truncated: bool [n], whether the input was cut, as asked for.
    """

    vectors: np.ndarray
    token_counts: np.ndarray
    truncated: np.ndarray


@dataclasses.dataclass(frozen=True)
class TokenizedText:
    """Tokens of one input.

    ids, segment_ids, tokens: one for each token, special tokens included.
    offsets: (begin, end) of each token in the bytes of the UTF-8 text; (0, 0)
        for special tokens; in a pair, of the text that the segment names.
    token_count: how many tokens; fits: whether the model takes that many.
    """

    ids: List[int]
    segment_ids: List[int]
    tokens: List[str]
    offsets: List[Tuple[int, int]]
    token_count: int
    fits: bool


def _misfit(message: str) -> Exception:
    return make_error(grpc.StatusCode.INTERNAL, message)


def check_count(answered: int, inputs: int) -> None:
    if answered != inputs:
        raise _misfit(f"the server answered {answered} results for {inputs} "
                      "inputs")


class Rows:
    """Collects the rows of n inputs, call after call, in one matrix."""

    def __init__(self, count: int):
        self._vectors: Optional[np.ndarray] = None
        self._token_counts = np.zeros(count, np.int64)
        self._truncated = np.zeros(count, bool)

    def add(self, first: int, inputs: int,
            response: encoder_pb2.EmbedResponse) -> None:
        embeddings = response.embeddings
        check_count(len(embeddings), inputs)
        packed = b"".join(e.packed for e in embeddings)
        columns = len(embeddings[0].packed) // 4
        if self._vectors is None:
            self._vectors = np.empty((len(self._truncated), columns),
                                     np.float32)
        expected = inputs * self._vectors.shape[1] * 4
        if columns == 0 or len(packed) != expected:
            raise _misfit(f"the server answered {len(packed)} bytes of "
                          f"vectors for {inputs} inputs, not {expected}")
        rows = slice(first, first + inputs)
        self._vectors[rows] = np.frombuffer(packed, "<f4").reshape(inputs, -1)
        self._token_counts[rows] = [e.token_count for e in embeddings]
        self._truncated[rows] = [e.truncated for e in embeddings]

    def result(self, columns_if_empty: int) -> EmbedResult:
        vectors = self._vectors
        if vectors is None:
            vectors = np.empty((0, columns_if_empty), np.float32)
        return EmbedResult(vectors, self._token_counts, self._truncated)


def read_states(states: encoder_pb2.TokenStates) -> np.ndarray:
    """float32 [n, H] of one input."""
    if len(states.packed) != states.rows * states.columns * 4:
        raise _misfit(f"the server answered {len(states.packed)} bytes for "
                      f"{states.rows} x {states.columns} states")
    values = np.frombuffer(states.packed, "<f4").astype(np.float32)
    return values.reshape(states.rows, states.columns)


def read_tokens(tokens: encoder_pb2.TokenizedInput) -> TokenizedText:
    return TokenizedText(
        list(tokens.ids), list(tokens.segment_ids), list(tokens.tokens),
        list(zip(tokens.begin_offsets, tokens.end_offsets)),
        tokens.token_count, tokens.fits)
