"""What each method asks of the server and makes of the answers.

A job is a generator: it yields what is to be called (One, Many), is sent the
answer, and returns the method's result. It waits for nothing itself: Client
and AsyncClient run the same jobs, each in its own way.
"""

from __future__ import annotations

import dataclasses
from typing import (Any, Callable, Generator, Iterable, List, Optional,
                    Sequence, Tuple, TypeVar, Union)

import grpc
import numpy as np
from google.protobuf import wrappers_pb2

from encoderd._progress import make_progress
from encoderd.errors import make_error
from encoderd.inputs import Input, TokenIds, cut
from encoderd.results import (EmbedResult, Rows, TokenizedText, check_count,
                              read_states, read_tokens)
from encoderd.v1 import encoder_pb2

_HEALTH = {1: "SERVING", 2: "NOT_SERVING"}


@dataclasses.dataclass(frozen=True)
class One:
    """One call; the job is sent its answer."""

    method: str
    request: Any


@dataclasses.dataclass(frozen=True)
class Many:
    """The calls of one list, several in flight; the job is sent None."""

    method: str
    calls: Iterable[Tuple[int, List[Any]]]  # (index of the first, inputs)
    make: Callable[[List[Any]], Any]  # a request of these inputs
    take: Callable[[int, int, Any], None]  # (first, count, answer), in order


T = TypeVar("T")
Job = Generator[Union[One, Many], Any, T]


def enum_value(enum: Any, prefix: str, value: Optional[str]) -> Any:
    """"mean" -> POOLING_MEAN; None -> ..._UNSPECIFIED."""
    name = prefix + (value or "unspecified").upper()
    if name not in enum.keys():
        known = [k[len(prefix):].lower() for k in enum.keys()[1:]]
        raise ValueError(f"{prefix[:-1].lower()} is {value!r}; expected one of "
                         f"{', '.join(known)}")
    return enum.Value(name)


def as_list(values: Union[Input, Iterable[Input]]) -> Sequence[Input]:
    if isinstance(values, (str, TokenIds)):
        return [values]
    if isinstance(values, (list, tuple)):
        return values
    return list(values)


def get_model(name: str) -> One:
    return One("GetModel", encoder_pb2.GetModelRequest(model=name))


def embed(values: Sequence[Input], *, model: str, batch_size: int,
          precision: str = "float32", show_progress: bool = False,
          normalize: Optional[bool] = None, truncate: Optional[str] = None,
          dimensions: int = 0, pooling: Optional[str] = None,
          prompt_name: str = "", ranges: Optional[Any] = None
          ) -> Job[EmbedResult]:
    options = encoder_pb2.EmbedOptions(
        pooling=enum_value(encoder_pb2.Pooling, "POOLING_", pooling),
        normalize=normalize, dimensions=dimensions,
        truncate=enum_value(encoder_pb2.Truncate, "TRUNCATE_", truncate),
        encoding=enum_value(encoder_pb2.Encoding, "ENCODING_", precision),
        prompt_name=prompt_name, packed=True)
    if ranges is not None:
        low, high = np.asarray(ranges, np.float32)
        options.ranges.minimum.extend(low.tolist())
        options.ranges.maximum.extend(high.tolist())
    calls = cut(values, batch_size)
    rows = Rows(len(values), precision)
    progress = make_progress(len(values), show_progress)

    def take(first: int, count: int, answer: Any) -> None:
        rows.add(first, count, answer)
        progress.update(count)

    try:
        yield Many("Embed", calls,
                   lambda inputs: encoder_pb2.EmbedRequest(
                       model=model, inputs=inputs, options=options), take)
    finally:
        progress.close()
    width = 0
    if not values:
        width = dimensions or (yield get_model(model)).dimensions
    return rows.result(width)


def token_embeddings(values: Sequence[Input], *, model: str, batch_size: int,
                     layer: Optional[int] = None,
                     truncate: Optional[str] = None,
                     show_progress: bool = False) -> Job[List[np.ndarray]]:
    cutting = enum_value(encoder_pb2.Truncate, "TRUNCATE_", truncate)
    arrays: List[np.ndarray] = []
    progress = make_progress(len(values), show_progress)

    def take(_: int, count: int, answer: Any) -> None:
        check_count(len(answer.states), count)
        arrays.extend(read_states(states) for states in answer.states)
        progress.update(count)

    try:
        yield Many("Encode", cut(values, batch_size),
                   lambda inputs: encoder_pb2.EncodeRequest(
                       model=model, inputs=inputs, layer=layer,
                       truncate=cutting), take)
    finally:
        progress.close()
    return arrays


def tokenize(values: Sequence[Input], *, model: str, batch_size: int
             ) -> Job[List[TokenizedText]]:
    found: List[TokenizedText] = []

    def take(_: int, count: int, answer: Any) -> None:
        check_count(len(answer.inputs), count)
        found.extend(read_tokens(tokens) for tokens in answer.inputs)

    yield Many("Tokenize", cut(values, batch_size),
               lambda inputs: encoder_pb2.TokenizeRequest(
                   model=model, inputs=inputs), take)
    return found


def models() -> Job[List[encoder_pb2.Model]]:
    answer = yield One("ListModels", encoder_pb2.ListModelsRequest())
    return list(answer.models)


def model(name: str) -> Job[encoder_pb2.Model]:
    return (yield get_model(name))


def health(service: str) -> Job[str]:
    answer = yield One("Health", wrappers_pb2.StringValue(value=service))
    return _HEALTH.get(answer.value, "UNKNOWN")


def unknown_prompt(name: str, info: encoder_pb2.Model) -> Exception:
    available = ", ".join(sorted(info.prompts))
    return make_error(
        grpc.StatusCode.NOT_FOUND,
        f"no prompt {name!r}; this model has {available or 'none'}",
        "PROMPT_NOT_FOUND", metadata={"prompt": name, "available": available})
