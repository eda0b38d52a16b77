"""What can be embedded, and how a list of it is cut into calls."""

from __future__ import annotations

import dataclasses
import itertools
import traceback
from typing import (Any, AsyncIterable, Dict, ItemsView, Iterable, Iterator,
                    List, Mapping, Optional, Sequence, Tuple, Union)

import grpc
import numpy as np

from encoderd._client_settings import BYTES_PER_CALL
from encoderd._option_checks import (a_kind, is_of_argument, whole_number,
                                     without_utf8, wrong_type, wrong_value)
from encoderd.errors import EncoderdError, make_error
from encoderd.v1 import encoder_pb2


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


_EXPECTED = "expected a str, a tuple of two str, or TokenIds"


def _ids_message(value: TokenIds, index: int) -> encoder_pb2.TokenIds:
    lists = {}
    for name in ("ids", "segment_ids", "position_ids"):
        where = f"inputs[{index}].{name}"
        given = getattr(value, name)
        try:
            # Of an array: Python's own numbers.
            lists[name] = (given.tolist() if isinstance(given, np.ndarray)
                           else list(given))
        except TypeError:
            raise wrong_type(f"{where} is {a_kind(given)}; expected a list of "
                             "whole numbers") from None
        for at, number in enumerate(lists[name]):
            number = whole_number(f"{where}[{at}]", number)
            if not 0 <= number < 2**32:
                raise wrong_value(f"{where}[{at}] is {number}; expected 0 to "
                                  f"{2**32 - 1}")
    return encoder_pb2.TokenIds(**lists)


def as_list(values: Union[Input, Iterable[Input]]) -> Sequence[Input]:
    """What a method was given, as a list that no caller changes during the
    call; a single text or TokenIds too, and scalars of pyarrow as the texts
    that they are. TypeError for what can only be a mistake, in any place:
    before the first call, so that the last of many does not cost all others."""
    if isinstance(values, (str, TokenIds)):
        return [values]
    listed: Sequence[Input]
    if isinstance(values, (list, tuple)):
        listed = list(values)
    else:
        check_iterable(values)
        if isinstance(values, np.ndarray):
            listed = values.tolist()
        elif hasattr(values, "to_pylist"):  # of pyarrow
            listed = values.to_pylist()
        else:
            listed = list(values)
    has_scalars = False
    for index, value in enumerate(listed):
        if not isinstance(value, (str, TokenIds)):
            _check_kind(value, index)
            has_scalars = has_scalars or _plain(value) is not value
    return [_plain(value) for value in listed] if has_scalars else listed


def hides_frames(error: Exception) -> bool:
    """Whether a method raises it without the package's frames: an EncoderdError
    unless it was raised by what as_list() iterated over, such as a caller's
    generator; any other error only for a wrong argument. To be asked where it
    is caught."""
    if not isinstance(error, EncoderdError):
        return is_of_argument(error)
    return all(frame.f_code is not as_list.__code__
               for frame, _ in traceback.walk_tb(error.__traceback__))


def _check_kind(value: Any, index: int) -> None:
    """Of what is no str or TokenIds: TypeError unless it is a pair of texts,
    or a scalar of pyarrow that is a text. A row of a table may be a kind of
    tuple, too, and is no pair."""
    is_pair = (type(value) is tuple and len(value) == 2
               and all(isinstance(text, str) for text in value))
    if not is_pair and not isinstance(_plain(value), str):
        raise wrong_type(_misfit(_plain(value), index))


def gets_no_prompt(value: object) -> bool:
    """A pair or token ids."""
    return ((type(value) is tuple and len(value) == 2)
            or isinstance(value, TokenIds))


def check_prompted(value: object, index: int) -> None:
    """ValueError if the input cannot take the prompt that the call asks for."""
    if gets_no_prompt(value):
        what = "token ids" if isinstance(value, TokenIds) else "a pair"
        raise wrong_value(f"inputs[{index}] is {what}; a prompt goes before "
                          "texts only")


def check_all_prompted(values: Sequence[Input]) -> None:
    """Likewise, for each input of a list."""
    for index, value in enumerate(values):
        check_prompted(value, index)


def check_iterable(values: object) -> None:
    """TypeError for what cannot be iterated over, or not for its texts."""
    hint = ""
    columns = _column_names(values)
    if isinstance(values, (bytes, bytearray, memoryview)):
        hint = "; decode() it first"
    elif type(values).__name__ == "LazyFrame":  # of polars
        hint = '; collect() it, and pass one column, such as df["text"]'
    elif columns is not None:
        hint = ('; pass one column, such as df["text"] (columns: '
                f'{", ".join(columns)})')
    elif type(values).__name__ == "MultiIndex":  # of pandas
        hint = ("; pass one level, such as index.get_level_values(0), or "
                "list(index) if each is a pair of texts")
    elif is_cursor(values) and isinstance(values, AsyncIterable):
        hint = "; pass one column, such as (row[0] async for row in cursor)"
    elif is_cursor(values):
        hint = ("; pass one column, such as [row[0] for row in cursor], or "
                "list(cursor) if each row is a pair of texts")
    elif isinstance(values, ItemsView):
        hint = "; pass values(), or list(items) if each is a pair of texts"
    elif isinstance(values, (set, frozenset)):
        hint = ", which has no order; pass a list"
    elif isinstance(values, np.ndarray):
        if values.dtype.names is not None:
            hint = (" of records; pass one field, such as "
                    f"array[{values.dtype.names[0]!r}]")
        elif values.ndim == 1:
            return
        elif values.ndim == 0:
            hint = ", a single value; pass array.item()"
        else:
            hint = (f" of shape {list(values.shape)}; expected [n] texts: "
                    "pass one column, such as array[:, 0], or tuples for "
                    "pairs: [(a, b) for a, b in array]")
    elif isinstance(values, AsyncIterable):
        hint = "; AsyncClient.embed_stream takes async iterables"
    elif not isinstance(values, Mapping) and isinstance(values, Iterable):
        return
    hint = hint or "; expected a text, or a list of texts"
    raise wrong_type(f"inputs is {a_kind(values)}{hint}")


def is_cursor(values: Any) -> bool:
    """Of a database (PEP 249)."""
    return (not _is_column(values) and hasattr(values, "fetchall")
            and hasattr(values, "description"))


def _is_column(values: Any) -> bool:
    """Of a table. The labels of a Series of pandas are attributes, too, and may
    be those that a table or a cursor is known by."""
    return getattr(values, "ndim", None) == 1


def _column_names(values: Any) -> Optional[List[str]]:
    """The first names of a table's columns; None of what is no table."""
    # A LazyFrame would compute them.
    if type(values).__name__ == "LazyFrame" or _is_column(values):
        return None
    names = getattr(values, "column_names", None)  # of pyarrow
    if names is None:
        names = getattr(values, "columns", None)  # of pandas, polars
    if not isinstance(names, Iterable):
        return None
    return [str(name) for name in itertools.islice(names, 8)]


def is_missing(value: Any) -> bool:
    """As tables mark it: None, nan, and NA and NaT of pandas."""
    return (value is None or type(value).__name__ in ("NAType", "NaTType")
            or (isinstance(value, (float, np.floating)) and value != value))


def _misfit(value: object, index: int) -> str:
    """What is wrong with a value that is no Input, and what to do."""
    where = f"inputs[{index}]"
    if is_missing(value):
        return (f"{where} is {value}, a missing value; {_EXPECTED}: drop or "
                "fill such rows first")
    if isinstance(value, (bytes, bytearray)):
        return f"{where} is {a_kind(value)}; decode() it first"
    if isinstance(value, np.void) or (isinstance(value, tuple)
                                      and type(value) is not tuple):
        return (f"{where} is {a_kind(value)}, a row of named values; pass one "
                "column, and a pair of texts as a plain tuple: (a, b)")
    if isinstance(value, (list, tuple)):
        count = f"{where} is a {type(value).__name__} of {len(value)}"
        if isinstance(value, list) and all(isinstance(text, str)
                                           for text in value):
            return (f"{count} texts; pass texts in one flat list, and a pair "
                    "of texts as a tuple")
        kinds = ", ".join(type(part).__name__ for part in value[:4])
        return f"{count} ({kinds}); {_EXPECTED}"
    return f"{where} is {a_kind(value)}; {_EXPECTED}"


def _plain(value: Any) -> Any:
    """The Python value of a scalar of pyarrow; anything else as it is."""
    return value.as_py() if hasattr(value, "as_py") else value


def to_message(value: Input, index: int) -> encoder_pb2.Input:
    """TypeError for what is no Input, ValueError for ids that are none,
    InvalidInputError for a text that has no UTF-8 form (lone surrogates)."""
    if not isinstance(value, (str, tuple, TokenIds)):
        value = _plain(value)
    try:
        if isinstance(value, str):
            return encoder_pb2.Input(text=value)
        if isinstance(value, TokenIds):
            return encoder_pb2.Input(tokens=_ids_message(value, index))
        _check_kind(value, index)
        return encoder_pb2.Input(pair=encoder_pb2.TextPair(
            first=value[0], second=value[1]))
    except UnicodeEncodeError as error:
        raise make_error(
            grpc.StatusCode.INVALID_ARGUMENT,
            without_utf8(f"inputs[{index}]", error),
            "INVALID_UTF8", metadata={"input_index": str(index)},
            remedy='replace it: text.encode("utf-8", "replace").decode()'
            ) from None


def named_limit(error: EncoderdError) -> int:
    """The limit that an error of the server names; 0: none."""
    limit = error.metadata.get("limit", "")
    return int(limit) if limit.isdecimal() else 0


@dataclasses.dataclass
class Part:
    """Consecutive inputs of a list, for one request.

    inputs: those that can be sent; places: of each, in the caller's list.
    errors: by place, why an input cannot be sent.
    """

    first: int
    values: List[Input] = dataclasses.field(default_factory=list)
    inputs: List[encoder_pb2.Input] = dataclasses.field(default_factory=list)
    places: List[int] = dataclasses.field(default_factory=list)
    errors: Dict[int, EncoderdError] = dataclasses.field(default_factory=dict)

    def split(self, most: int) -> List["Part"]:
        """Of a part with more than `most` inputs: each has at most that."""
        firsts = [self.first, *self.places[most::most]]
        ends = [*firsts[1:], self.first + len(self.values)]
        return [Part(first, self.values[first - self.first:end - self.first],
                     self.inputs[at:at + most], self.places[at:at + most],
                     {place: error for place, error in self.errors.items()
                      if first <= place < end})
                for at, first, end in zip(itertools.count(0, most), firsts,
                                          ends)]

    def refuse(self, error: EncoderdError) -> None:
        """Of a part with a single input: it is not sent any more."""
        self.errors[self.places.pop()] = error
        self.inputs.clear()


class Cutter:
    """Cuts a list that is seen one input at a time. A part is full once it has
    most_bytes, which one input may take it past; one of that size or more
    travels alone, so that a call that is too large names it. Two or more
    inputs thus have less than twice most_bytes.

    keep_errors: an input without UTF-8 form is put in Part.errors; else
        it is raised. TypeError and ValueError are raised in any case.
    first: the place of the first input.
    prompt_name: a prompt that was asked for; a pair is then a ValueError.
    """

    def __init__(self, batch_size: int, keep_errors: bool = False,
                 first: int = 0, prompt_name: str = "",
                 most_bytes: int = BYTES_PER_CALL):
        batch_size = whole_number("batch_size", batch_size)
        if batch_size < 1:
            raise wrong_value(
                f"batch_size is {batch_size}; it must be at least 1")
        self._batch_size = batch_size
        self._most_bytes = most_bytes
        self._keep_errors = keep_errors
        self._prompt_name = prompt_name
        self._part = Part(first)
        self._bytes = 0

    def take_fewer(self, batch_size: int) -> List[Part]:
        """For the inputs to come. The parts that are full by that, of what was
        added since the last one."""
        self._batch_size = min(self._batch_size, batch_size)
        if len(self._part.values) < self._batch_size:
            return []
        part = self.rest()
        return [] if part is None else part.split(self._batch_size)

    def add(self, value: Input) -> List[Part]:
        """The parts that are full with this input: at most that before it
        and its own."""
        place = self._part.first + len(self._part.values)
        full: List[Optional[Part]] = []
        try:
            message = to_message(value, place)
        except EncoderdError as error:
            if not self._keep_errors:
                raise
            self._part.errors[place] = error
        else:
            size = message.ByteSize()
            if self._prompt_name:
                check_prompted(value, place)
            if size >= self._most_bytes:
                full.append(self.rest())
            self._part.inputs.append(message)
            self._part.places.append(place)
            self._bytes += size
        self._part.values.append(value)
        if (len(self._part.values) >= self._batch_size
                or self._bytes >= self._most_bytes):
            full.append(self.rest())
        return [part for part in full if part is not None]

    def rest(self) -> Optional[Part]:
        """What was added since the last part, if anything was."""
        part = self._part
        if not part.values:
            return None
        self._part = Part(part.first + len(part.values))
        self._bytes = 0
        return part


def cut(values: Iterable[Input], batch_size: int, keep_errors: bool = False,
        first: int = 0, most_bytes: int = BYTES_PER_CALL) -> Iterator[Part]:
    """The parts of a list from place `first`: at most batch_size inputs in
    each, and as many bytes as a Cutter gives them."""
    cutter = Cutter(batch_size, keep_errors, first, most_bytes=most_bytes)
    for value in itertools.islice(values, first, None):
        try:
            parts = cutter.add(value)
        except Exception:
            # What is before it goes first: an error there is the first.
            before = cutter.rest()
            if before is not None:
                yield before
            raise
        yield from parts
    last = cutter.rest()
    if last is not None:
        yield last
