"""What can be embedded, and how a list of it is cut into calls."""

from __future__ import annotations

import dataclasses
from typing import Iterator, List, Sequence, Tuple, Union

import grpc

from encoderd.errors import make_error
from encoderd.v1 import encoder_pb2

# A call is also closed once it carries this many bytes, so that it stays
# under the server's message limit.
BYTES_PER_CALL = 1 << 20


@dataclasses.dataclass(frozen=True)
class TokenIds:
    """Ids used as they are, special tokens included; nothing is added or cut.

    segment_ids: empty for all 0, else one for each id.
    position_ids: empty for 0, 1, 2, ..., else one for each id.
    """

    ids: Sequence[int]
    segment_ids: Sequence[int] = ()
    position_ids: Sequence[int] = ()


# A text; two texts that the model reads together; token ids.
Input = Union[str, Tuple[str, str], TokenIds]


def to_message(value: Input, index: int) -> encoder_pb2.Input:
    """TypeError for what is no Input, InvalidInputError for a text that has
    no UTF-8 form (lone surrogates)."""
    try:
        if isinstance(value, str):
            return encoder_pb2.Input(text=value)
        if isinstance(value, TokenIds):
            return encoder_pb2.Input(tokens=encoder_pb2.TokenIds(
                ids=value.ids, segment_ids=value.segment_ids,
                position_ids=value.position_ids))
        if (isinstance(value, (tuple, list)) and len(value) == 2
                and all(isinstance(text, str) for text in value)):
            return encoder_pb2.Input(pair=encoder_pb2.TextPair(
                first=value[0], second=value[1]))
    except UnicodeError as error:
        raise make_error(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"inputs[{index}] has no UTF-8 form: {error}", "INVALID_UTF8",
            metadata={"input_index": str(index)}) from error
    raise TypeError(f"inputs[{index}] is a {type(value).__name__}; expected "
                    "str, a pair of str, or TokenIds")


def cut(values: Sequence[Input], batch_size: int
        ) -> Iterator[Tuple[int, List[encoder_pb2.Input]]]:
    """(index of the first, inputs) of each call, at most batch_size each."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    first = 0
    size = 0
    call: List[encoder_pb2.Input] = []
    for index, value in enumerate(values):
        if len(call) == batch_size or size >= BYTES_PER_CALL:
            yield first, call
            first, size, call = index, 0, []
        call.append(to_message(value, index))
        size += call[-1].ByteSize()
    if call:
        yield first, call
