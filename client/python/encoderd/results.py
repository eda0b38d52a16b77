"""What comes back, and how it is read from the answers."""

from __future__ import annotations

import dataclasses
from typing import (Any, Dict, List, Optional, SupportsIndex, Tuple, Union,
                    overload)

import grpc
import numpy as np

from encoderd._option_checks import text
from encoderd._tensors import as_tensor
from encoderd.errors import (EncoderdError, count_prompt, from_status,
                             make_error, without_windows)
from encoderd.inputs import Input, Part
from encoderd.v1 import encoder_pb2


@dataclasses.dataclass(frozen=True, eq=False)
class EmbedResult:
    """Embeddings of n inputs; row i belongs to input i.

    vectors: [n, D] (or [n, dimensions]) of the type of the precision; bits
        are int8 or uint8 [n, D / 8], rounded up, with eight dimensions in a
        byte. The row of an input in `errors` has no meaning: it is NaN, or 0
        for int8, uint8 and bits.
    token_counts: int64 [n], tokens of each input before any cut, special
        tokens and a prompt included.
    truncated: bool [n], whether the input was cut, as truncate= allows.
    scales: float32 [n], for int8 and uint8 without ranges the step of each
        vector: (byte + 1) * scale (uint8: (byte - 127) * scale) differs from
        the value by half a step at most. Otherwise 0.
    windows: int64 [n], how many windows were averaged; 0 if the input needed
        none, or windows= was not given.
    errors: by its place in the list, why an input has no vector; empty unless
        on_error="per_input".
    fingerprint: of the model that computed them; vectors of different
        fingerprints cannot be compared. "": the server did not say.
    """

    vectors: np.ndarray
    token_counts: np.ndarray
    truncated: np.ndarray
    scales: np.ndarray
    windows: np.ndarray
    errors: Dict[int, EncoderdError]
    fingerprint: str = ""

    @property
    def ok(self) -> np.ndarray:
        """bool [n], which rows are vectors: vectors[ok] omits the others."""
        found = np.ones(len(self.token_counts), bool)
        found[list(self.errors)] = False
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class Embedding:
    """The result of one input of embed_stream().

    index: its place in the source, from 0; input: the input itself.
    vector: [D] (or [dimensions]) of the type of the precision; bits as in
        EmbedResult; empty, float32 of shape [0], if there is an error.
    token_count: tokens before any cut, special tokens and a prompt included.
    truncated, windows, scale: as in EmbedResult.
    error: why there is no vector; None unless on_error="per_input".
    fingerprint: of the model that computed it; "": the server did not say, or
        there is an error.
    """

    index: int
    input: Input
    vector: np.ndarray = dataclasses.field(
        default_factory=lambda: np.empty(0, np.float32))
    token_count: int = 0
    truncated: bool = False
    windows: int = 0
    scale: float = 0.0
    error: Optional[EncoderdError] = None
    fingerprint: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class TokenStates:
    """The states of one input's tokens.

    states: float32 [tokens, H], a row for each token that span= selects; with
        before_norm as wide as the tables, which may differ from H.
    token_count: tokens of the input before any cut, special tokens included.
    truncated: whether the input was cut, as truncate= allows.
    error: why there are no states (they are [0, 0] then); None unless
        on_error="per_input".
    """

    states: np.ndarray
    token_count: int = 0
    truncated: bool = False
    error: Optional[EncoderdError] = None


@dataclasses.dataclass(frozen=True)
class TokenizedText:
    """Tokens of one input.

    ids, segment_ids, tokens: one for each token, special tokens included.
    offsets: (begin, end) of each token in the bytes of the UTF-8 text, not in
        its characters: text.encode()[begin:end].decode(). (0, 0) for special
        tokens. In a pair, the segment id says of which text.
    token_count: the number of tokens; fits: whether the model accepts it.
    """

    ids: List[int]
    segment_ids: List[int]
    tokens: List[str]
    offsets: List[Tuple[int, int]]
    token_count: int
    fits: bool


class TokenizedTexts(List[TokenizedText]):
    """The tokens of n texts: a list with a TokenizedText for each.

    By name it has the arrays of SentenceTransformer.tokenize, int64 [n, T],
    where T is the most tokens of one text: "input_ids" and "token_type_ids",
    padded with 0, and "attention_mask", 1 for each token. They are torch
    tensors where torch is installed, otherwise numpy arrays. Unlike there,
    texts are not cut to max_seq_length.
    """

    NAMES = ("input_ids", "token_type_ids", "attention_mask")

    @overload
    def __getitem__(self, key: SupportsIndex) -> TokenizedText: ...

    @overload
    def __getitem__(self, key: slice) -> List[TokenizedText]: ...

    @overload
    def __getitem__(self, key: str) -> Any: ...

    def __getitem__(self, key: Any) -> Any:
        """Of one place, of a slice, or an array by its name (KeyError for
        another name)."""
        return self._padded(key) if isinstance(key, str) else (
            super().__getitem__(key))

    def __contains__(self, value: object) -> bool:
        return value in self.NAMES or super().__contains__(value)

    def keys(self) -> Tuple[str, ...]:
        """The names of the arrays."""
        return self.NAMES

    def items(self) -> List[Tuple[str, Any]]:
        """Each name and its array."""
        return [(name, self[name]) for name in self.NAMES]

    def _padded(self, name: str) -> Any:
        if name not in self.NAMES:
            raise KeyError(name)
        longest = max((len(text.ids) for text in self), default=0)
        found = np.zeros((len(self), longest), np.int64)
        for row, text in zip(found, self):
            count = len(text.ids)
            if name == "input_ids":
                row[:count] = text.ids
            elif name == "token_type_ids":
                row[:count] = text.segment_ids
            else:
                row[:count] = 1
        return as_tensor(found)


def _misfit(message: str) -> Exception:
    return make_error(grpc.StatusCode.INTERNAL, message)


def check_count(answered: int, inputs: int) -> None:
    if answered != inputs:
        raise _misfit(f"the server returned {answered} results for {inputs} "
                      "inputs")


# How a value (or eight bits) of each precision travels.
_TYPES = {"float32": "<f4", "float16": "<f2", "int8": "i1", "uint8": "u1",
          "binary": "i1", "ubinary": "u1"}


class SameModel:
    """Whether all answers of one job come from the same model: a server that
    was restarted, or another replica, may serve another one.

    given: the caller's fingerprint, which that model must have; "": any.
    fingerprint: of the answers so far; "": not known.
    """

    def __init__(self, given: str = "") -> None:
        self._given = text("fingerprint", given)
        self.fingerprint = ""

    def check(self, answer: Union[encoder_pb2.EmbedResponse,
                                  encoder_pb2.EncodeResponse]) -> None:
        """An answer without a fingerprint, of an older server, passes."""
        found = answer.fingerprint
        if self.fingerprint and found and found != self.fingerprint:
            raise make_error(
                grpc.StatusCode.FAILED_PRECONDITION,
                "the server's model or its settings changed during the job: "
                f"the fingerprint is {found} and was {self.fingerprint}",
                remedy="the vectors before and after must not be mixed, so "
                "start the job again with one of them")
        if self._given and found and found != self._given:
            raise make_error(
                grpc.StatusCode.FAILED_PRECONDITION,
                "the server's model or its settings are not those of the given "
                f"fingerprint: the fingerprint is {found}, not {self._given}",
                remedy="the vectors of the two must not be mixed, so call a "
                "server that has the given one, or embed all texts again")
        self.fingerprint = self.fingerprint or found


class Rows:
    """Collects the rows of n inputs, call after call, in one matrix."""

    def __init__(self, count: int, precision: str = "float32",
                 fingerprint: str = ""):
        self._bits = precision.endswith("binary")
        self._type = np.dtype(_TYPES[precision])
        self._vectors: Optional[np.ndarray] = None
        self._filled = np.zeros(count, bool)
        self._token_counts = np.zeros(count, np.int64)
        self._truncated = np.zeros(count, bool)
        self._scales = np.zeros(count, np.float32)
        self._windows = np.zeros(count, np.int64)
        self._errors: Dict[int, EncoderdError] = {}
        self._model = SameModel(fingerprint)

    def refuse(self, errors: Dict[int, EncoderdError]) -> None:
        """Inputs, by their places, that have no vector."""
        self._errors.update(errors)

    def add(self, part: Part, response: encoder_pb2.EmbedResponse) -> None:
        self._model.check(response)
        check_count(len(response.embeddings), len(part.inputs))
        rows = []
        embeddings = []
        for place, embedding in zip(part.places, response.embeddings):
            if embedding.HasField("error"):
                self._errors[place] = from_status(embedding.error, part.places)
            else:
                rows.append(place)
                embeddings.append(embedding)
        if not rows:
            return
        packed = b"".join(e.packed for e in embeddings)
        size = self._type.itemsize
        columns = len(embeddings[0].packed) // size
        if self._vectors is None:
            self._vectors = self._matrix(columns)
        width = self._vectors.shape[1] * size
        if columns == 0 or any(len(e.packed) != width for e in embeddings):
            raise _misfit(f"the server returned {len(packed)} bytes of vectors "
                          f"for {len(rows)} inputs, not {len(rows) * width}")
        self._vectors[rows] = np.frombuffer(packed, self._type).reshape(
            len(rows), -1)
        self._filled[rows] = True
        self._token_counts[rows] = [e.token_count for e in embeddings]
        self._truncated[rows] = [e.truncated for e in embeddings]
        self._scales[rows] = [e.scale for e in embeddings]
        self._windows[rows] = [e.windows for e in embeddings]

    @property
    def without_width(self) -> bool:
        """Whether no vector came that would tell how many columns there are."""
        return self._vectors is None

    def result(self, dimensions: int) -> EmbedResult:
        """dimensions: of a vector, if none came. RuntimeError if an input has
        neither a vector nor an error: a fault of this package."""
        filled = self._filled.copy()
        filled[list(self._errors)] = True
        if not filled.all():
            raise RuntimeError(f"inputs[{filled.argmin()}] has neither a "
                               "vector nor an error; report it")
        vectors = self._vectors
        if vectors is None:
            vectors = self._matrix((dimensions + 7) // 8 if self._bits
                                   else dimensions)
        vectors[list(self._errors)] = (np.nan if self._type.kind == "f" else 0)
        return EmbedResult(vectors, self._token_counts, self._truncated,
                           self._scales, self._windows,
                           dict(sorted(self._errors.items())),
                           self._model.fingerprint)

    def _matrix(self, columns: int) -> np.ndarray:
        return np.empty((len(self._truncated), columns),
                        self._type.newbyteorder("="))


def read_embedding(index: int, value: Input, embedding: encoder_pb2.Embedding,
                   precision: str, width: int, fingerprint: str) -> Embedding:
    """width: bytes of the vectors of its list; fingerprint: of its answer."""
    packed = embedding.packed
    if width == 0 or len(packed) != width:
        raise _misfit(f"the server returned {len(packed)} bytes for a vector "
                      f"of {width}")
    wire = np.dtype(_TYPES[precision])
    return Embedding(
        index, value,  # a copy: one that can be written to
        np.frombuffer(packed, wire).astype(wire.newbyteorder("=")),
        embedding.token_count, embedding.truncated, embedding.windows,
        embedding.scale, fingerprint=fingerprint)


def read_states(states: encoder_pb2.TokenStates, part: Part) -> TokenStates:
    """Of one input of a part."""
    if states.HasField("error"):
        return no_states(without_windows(from_status(states.error,
                                                     part.places)))
    if len(states.packed) != states.rows * states.columns * 4:
        raise _misfit(f"the server returned {len(states.packed)} bytes for "
                      f"{states.rows} x {states.columns} states")
    values = np.frombuffer(states.packed, "<f4").astype(np.float32)
    return TokenStates(values.reshape(states.rows, states.columns),
                       states.token_count, states.truncated)


def no_states(error: EncoderdError) -> TokenStates:
    return TokenStates(np.empty((0, 0), np.float32),
                       error=count_prompt(error, False, kept=True))


def read_tokens(tokens: encoder_pb2.TokenizedInput) -> TokenizedText:
    return TokenizedText(
        list(tokens.ids), list(tokens.segment_ids), list(tokens.tokens),
        list(zip(tokens.begin_offsets, tokens.end_offsets)),
        tokens.token_count, tokens.fits)
