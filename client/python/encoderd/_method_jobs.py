"""What each method asks of the server and makes of the answers.

A job is a generator: it yields what is to be called (One, Many), is sent the
answer, and returns the method's result. It waits for nothing itself: Client
and AsyncClient run the same jobs, each in its own way.
"""

from __future__ import annotations

import dataclasses
from typing import (Any, Callable, Dict, Generator, Iterable, Iterator, List,
                    Optional, Sequence, Set, TypeVar, Union, cast)

import grpc
import numpy as np
from google.protobuf import wrappers_pb2

from encoderd._client_settings import BYTES_PER_CALL
from encoderd._option_checks import (check_choice, not_negative, text,
                                     true_or_false)
from encoderd._progress import make_progress
from encoderd._quantize import check_ranges
from encoderd._signatures import Inputs
from encoderd.errors import (TOO_LARGE, TOO_MANY, EncoderdError, count_prompt,
                             make_error, with_remedy, without_windows)
from encoderd.inputs import (Input, Part, TokenIds, as_list,
                             check_all_prompted, cut, gets_no_prompt,
                             named_limit)
from encoderd.positions import PositionReport, read_positions
from encoderd.results import (EmbedResult, Rows, SameModel, TokenizedText,
                              TokenizedTexts, TokenStates, check_count,
                              no_states, read_states, read_tokens)
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
    parts: Iterable[Part]  # each with inputs
    make: Callable[[List[Any]], Any]  # a request of a part's inputs
    take: Callable[[Part, Any], None]  # the answer of a part, in order
    # An error in its place; whether it was taken and the others go on.
    refuse: Callable[[Part, EncoderdError], bool] = lambda *_: False


T = TypeVar("T")
L = TypeVar("L", bound=List[Any])
Job = Generator[Union[One, Many], Any, T]


def enum_value(enum: Any, prefix: str, option: str, value: Optional[str]
               ) -> Any:
    """"mean" -> POOLING_MEAN; None -> ..._UNSPECIFIED. option: its name, for
    errors."""
    known = [k[len(prefix):].lower() for k in enum.keys()[1:]]
    check_choice(option, value, known)
    return enum.Value(prefix + (value or "unspecified").upper())


def embed_options(*, precision: Optional[str] = None,
                  normalize: Optional[bool] = None,
                  truncate: Optional[str] = None, dimensions: int = 0,
                  pooling: Optional[str] = None, prompt_name: str = "",
                  ranges: Optional[Any] = None, windows: Optional[int] = None,
                  on_error: Optional[str] = None) -> encoder_pb2.EmbedOptions:
    """Client.embed says what each argument means."""
    options = encoder_pb2.EmbedOptions(
        pooling=enum_value(encoder_pb2.Pooling, "POOLING_", "pooling",
                           pooling),
        # None: unset, which older stubs do not know.
        normalize=cast(bool, true_or_false("normalize_embeddings", normalize)),
        dimensions=not_negative("dimensions", dimensions),
        truncate=enum_value(encoder_pb2.Truncate, "TRUNCATE_", "truncate",
                            truncate),
        encoding=enum_value(encoder_pb2.Encoding, "ENCODING_", "precision",
                            precision),
        prompt_name=text("prompt_name", prompt_name), packed=True,
        on_error=enum_value(encoder_pb2.OnError, "ON_ERROR_", "on_error",
                            on_error))
    if ranges is not None:
        low, high = check_ranges(ranges)
        options.ranges.minimum.extend(low.tolist())
        options.ranges.maximum.extend(high.tolist())
    if windows is not None:
        options.windows.overlap = not_negative("windows", windows)
        options.windows.SetInParent()  # an overlap of 0 asks for windows too
    return options


def get_model(name: str) -> One:
    return One("GetModel", encoder_pb2.GetModelRequest(model=name))


class _PerInput:
    """Keeps the error of an input at its place, if on_error asks for that.

    keep: takes a place and its error; it may come again with the same place.
    """

    def __init__(self, on_error: Optional[str], progress: Any,
                 keep: Callable[[int, EncoderdError], None]):
        self._wanted = on_error == "per_input"
        self._progress = progress
        self._keep = keep
        self._counted: Set[int] = set()

    def cut(self, values: Sequence[Input], size: int, most_bytes: int,
            first: int) -> Iterator[Part]:
        """The parts to send; keeps the errors of what cannot be sent."""
        for part in cut(values, size, self._wanted, first, most_bytes):
            for place, error in part.errors.items():
                self._take(place, error)
            if part.inputs:
                yield part

    def refuse(self, part: Part, error: EncoderdError) -> bool:
        """Many.refuse: of a single input, too large for a message."""
        if (not self._wanted or error.reason != TOO_LARGE
                or len(part.inputs) != 1):
            return False
        error.input_index = part.places[0]
        self._take(part.places[0], error)
        return True

    def _take(self, place: int, error: EncoderdError) -> None:
        self._keep(place, error)
        if place not in self._counted:
            self._counted.add(place)
            self._progress.update(1)


def _in_limit(many: Callable[[int, int, int], Many], batch_size: int,
              per_input: bool = False) -> Job[None]:
    """The calls of a list. If the server takes fewer inputs in a call
    (--max_inputs_per_request), what is not yet answered is cut again, to the
    limit that it names.

    many: the calls, by the most inputs and bytes of one (Cutter) and the place
        of their first input.
    per_input: so are inputs that are too large together for a message
        (--max_message_bytes), by their bytes, so that short texts still travel
        by batch_size; one that is too large alone costs only itself.
    """
    most_bytes = BYTES_PER_CALL
    answered = 0  # inputs that have an answer; all before the others
    failed = 0  # inputs of the call that raised

    def counted(calls: Many) -> Many:
        def take(part: Part, answer: Any) -> None:
            nonlocal answered
            calls.take(part, answer)
            answered = part.first + len(part.values)

        def refuse(part: Part, error: EncoderdError) -> bool:
            nonlocal answered, failed
            failed = len(part.inputs)
            if not calls.refuse(part, error):
                return False
            answered = part.first + len(part.values)
            return True

        return dataclasses.replace(calls, take=take, refuse=refuse)

    while True:
        try:
            yield counted(many(batch_size, most_bytes, answered))
            return
        except EncoderdError as error:
            limit = named_limit(error)
            if (per_input and failed > 1 and error.reason == TOO_LARGE
                    and "request_bytes" in error.metadata):
                # Two inputs or more then fit, except for what is around them;
                # if they do not, it is halved again.
                most_bytes = min(most_bytes, limit or most_bytes) // 2
            elif error.reason == TOO_MANY and 0 < limit < batch_size:
                batch_size = limit
            else:
                raise


def is_single(inputs: Any) -> bool:
    """Whether a method was given one input, and answers with one result."""
    return isinstance(inputs, (str, TokenIds))


def one_or_all(inputs: Inputs, job: Callable[..., Job[L]],
               **options: Any) -> Job[Union[Any, L]]:
    """The job's results of `inputs`; of a single one, its result alone."""
    found = yield from job(as_list(inputs), **options)
    return found[0] if is_single(inputs) else found


def embed(values: Sequence[Input], *, model: str, batch_size: int,
          precision: Optional[str] = None, show_progress: bool = False,
          on_error: Optional[str] = None, dimensions: int = 0,
          fingerprint: str = "", **rest: Any) -> Job[EmbedResult]:
    options = embed_options(precision=precision, on_error=on_error,
                            dimensions=dimensions, **rest)
    prompted = bool(options.prompt_name)
    if prompted and any(map(gets_no_prompt, values)):
        known = (yield get_model(model)).prompts
        if known.get(options.prompt_name):  # else it has no text
            check_all_prompted(values)
    rows = Rows(len(values), precision or "float32", fingerprint)
    progress = make_progress(len(values), show_progress)

    per_input = _PerInput(on_error, progress, lambda place, error:
                          rows.refuse({place: error}))

    def take(part: Part, answer: Any) -> None:
        rows.add(part, answer)
        progress.update(len(part.inputs))

    try:
        yield from _in_limit(lambda size, most_bytes, first: Many(
            "Embed",
            per_input.cut(values, size, most_bytes, first),
            lambda inputs: encoder_pb2.EmbedRequest(
                model=model, inputs=inputs, options=options),
            take, per_input.refuse), batch_size, on_error == "per_input")
    except EncoderdError as error:
        raise count_prompt(error, prompted)
    finally:
        progress.close()
    width = 0
    if rows.without_width:
        width = width_of("dimensions", dimensions,
                         (yield get_model(model)).dimensions)
    result = rows.result(width)
    for refused in result.errors.values():
        count_prompt(refused, prompted, kept=True)
    return result


def width_of(option: str, wanted: int, most: int) -> int:
    """Of a vector that is cut to `wanted` values; 0: all of `most`, which is
    what the model gives. InvalidInputError for more."""
    if wanted > most:
        raise make_error(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{option} is {wanted}; this model gives {most} dimensions: use 1 "
            f"to {most}", "INVALID_OPTION",
            metadata={"value": str(wanted), "limit": str(most)})
    return wanted or most


def token_states(values: Sequence[Input], *, model: str, batch_size: int,
                 layer: Optional[int] = None, truncate: Optional[str] = None,
                 span: Optional[str] = None, before_norm: bool = False,
                 on_error: Optional[str] = None, show_progress: bool = False
                 ) -> Job[List[TokenStates]]:
    blank = encoder_pb2.EncodeRequest(
        model=model,
        layer=None if layer is None else not_negative("layer", layer),
        before_norm=bool(true_or_false("before_norm", before_norm)),
        truncate=enum_value(encoder_pb2.Truncate, "TRUNCATE_", "truncate",
                            truncate),
        span=enum_value(encoder_pb2.TokenSpan, "TOKEN_SPAN_", "span", span),
        on_error=enum_value(encoder_pb2.OnError, "ON_ERROR_", "on_error",
                            on_error))
    found: Dict[int, TokenStates] = {}
    same = SameModel()
    progress = make_progress(len(values), show_progress)

    def make(inputs: List[Any]) -> encoder_pb2.EncodeRequest:
        request = encoder_pb2.EncodeRequest(inputs=inputs)
        request.MergeFrom(blank)
        return request

    def take(part: Part, answer: Any) -> None:
        same.check(answer)
        check_count(len(answer.states), len(part.inputs))
        for place, states in zip(part.places, answer.states):
            found[place] = read_states(states, part)
        progress.update(len(part.inputs))

    def keep(place: int, error: EncoderdError) -> None:
        found[place] = no_states(error)

    per_input = _PerInput(on_error, progress, keep)
    try:
        yield from _in_limit(
            lambda size, most_bytes, first: Many(
                "Encode", per_input.cut(values, size, most_bytes, first), make,
                take, per_input.refuse), batch_size, on_error == "per_input")
    except EncoderdError as error:
        if error.reason == TOO_LARGE and "reply_bytes" in error.metadata:
            error.remedy = "lower batch_size="
        raise without_windows(error)
    finally:
        progress.close()
    return [found[place] for place in range(len(values))]


def token_embeddings(values: Sequence[Input], **rest: Any
                     ) -> Job[List[np.ndarray]]:
    try:
        found = yield from token_states(values, **rest)
    except EncoderdError as error:
        raise with_remedy(error, EMPTY_INPUT="drop it, or call "
                          'token_states(on_error="per_input")')
    return [states.states for states in found]


def tokenize(values: Sequence[Input], *, model: str, batch_size: int
             ) -> Job[TokenizedTexts]:
    found: Dict[int, TokenizedText] = {}

    def take(part: Part, answer: Any) -> None:
        check_count(len(answer.inputs), len(part.inputs))
        for place, tokens in zip(part.places, answer.inputs):
            found[place] = read_tokens(tokens)

    try:
        yield from _in_limit(
            lambda size, _, first: Many(
                "Tokenize", cut(values, size, first=first),
                lambda inputs: encoder_pb2.TokenizeRequest(
                    model=model, inputs=inputs), take), batch_size)
    except EncoderdError as error:
        raise with_remedy(error, EMPTY_INPUT="drop it")
    return TokenizedTexts(found[place] for place in range(len(values)))


def inspect_positions(*, model: str, first_row: int, row_count: int,
                      cosine: bool, values: bool) -> Job[PositionReport]:
    answer = yield One("InspectPositions", encoder_pb2.InspectPositionsRequest(
        model=model, first_row=not_negative("first_row", first_row),
        row_count=not_negative("row_count", row_count),
        cosine=bool(true_or_false("cosine", cosine)),
        values=bool(true_or_false("values", values))))
    return read_positions(answer)


def models() -> Job[List[encoder_pb2.Model]]:
    answer = yield One("ListModels", encoder_pb2.ListModelsRequest())
    return list(answer.models)


def model(name: str) -> Job[encoder_pb2.Model]:
    found: encoder_pb2.Model = yield get_model(name)
    return found


def health(service: str) -> Job[str]:
    answer = yield One("Health", wrappers_pb2.StringValue(
        value=text("service", service)))
    return _HEALTH.get(answer.value, "UNKNOWN")


def unknown_prompt(name: str, info: encoder_pb2.Model) -> Exception:
    available = ", ".join(sorted(info.prompts))
    return make_error(
        grpc.StatusCode.NOT_FOUND,
        f"no prompt {name!r}; available: {available or 'none'}",
        "PROMPT_NOT_FOUND", metadata={"prompt": name, "available": available})
