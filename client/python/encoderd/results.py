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

    vectors: [n, H] (or [n, dimensions]) of the precision asked for; of bits,
        eight dimensions in a byte: [n, H / 8], rounded up.
    token_counts: int64 [n], tokens of each input before any cut, special
        tokens included.
    truncated: bool [n], whether the input was cut, as asked for.
    scales: float32 [n], the step of each vector of int8 or uint8 without
        ranges: (byte + 1) x scale (uint8: byte - 127) is half a step from the
        value at most; else 0.
    """

    vectors: np.ndarray
    token_counts: np.ndarray
    truncated: np.ndarray
    scales: np.ndarray


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


# How a value (or eight bits) of each precision travels.
_TYPES = {"float32": "<f4", "float16": "<f2", "int8": "i1", "uint8": "u1",
          "binary": "i1", "ubinary": "u1"}


class Rows:
    """Collects the rows of n inputs, call after call, in one matrix."""

    def __init__(self, count: int, precision: str = "float32"):
        self._bits = precision.endswith("binary")
        self._type = np.dtype(_TYPES[precision])
        self._vectors: Optional[np.ndarray] = None
        self._token_counts = np.zeros(count, np.int64)
        self._truncated = np.zeros(count, bool)
        self._scales = np.zeros(count, np.float32)

    def add(self, first: int, inputs: int,
            response: encoder_pb2.EmbedResponse) -> None:
        embeddings = response.embeddings
        check_count(len(embeddings), inputs)
        packed = b"".join(e.packed for e in embeddings)
        size = self._type.itemsize
        columns = len(embeddings[0].packed) // size
        if self._vectors is None:
            self._vectors = np.empty((len(self._truncated), columns),
                                     self._type.newbyteorder("="))
        width = self._vectors.shape[1] * size
        if columns == 0 or any(len(e.packed) != width for e in embeddings):
            raise _misfit(f"the server answered {len(packed)} bytes of "
                          f"vectors for {inputs} inputs, not {inputs * width}")
        rows = slice(first, first + inputs)
        self._vectors[rows] = np.frombuffer(packed, self._type).reshape(
            inputs, -1)
        self._token_counts[rows] = [e.token_count for e in embeddings]
        self._truncated[rows] = [e.truncated for e in embeddings]
        self._scales[rows] = [e.scale for e in embeddings]

    def result(self, dimensions_if_empty: int) -> EmbedResult:
        vectors = self._vectors
        if vectors is None:
            columns = dimensions_if_empty
            if self._bits:
                columns = (columns + 7) // 8
            vectors = np.empty((0, columns), self._type.newbyteorder("="))
        return EmbedResult(vectors, self._token_counts, self._truncated,
                           self._scales)


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
