"""Types that the signatures of both clients use, and names of methods."""

from __future__ import annotations

import types
from typing import (TYPE_CHECKING, Any, Callable, Iterable, Literal, Optional,
                    Type, TypeVar, Union)

from encoderd.inputs import Input, TokenIds

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

Single: TypeAlias = Union[str, TokenIds]  # gets one result, not a list
Inputs: TypeAlias = Union[Single, Iterable[Input]]
Precision: TypeAlias = Literal["float32", "float16", "int8", "uint8", "binary",
                               "ubinary"]
OutputValue: TypeAlias = Optional[Literal["sentence_embedding",
                                          "token_embeddings"]]
OnError: TypeAlias = Optional[Literal["fail_request", "per_input"]]
# "zero": the row of a bad input is 0.
OnErrorOfEncode: TypeAlias = Optional[Literal["fail_request", "per_input",
                                              "zero"]]
Truncate: TypeAlias = Optional[Literal["none", "start", "end"]]
Pooling: TypeAlias = Optional[Literal["cls", "mean", "max", "mean_sqrt_len",
                                      "weighted_mean", "last_token"]]
Span: TypeAlias = Optional[Literal["all", "without_special_tokens"]]

_T = TypeVar("_T")


def methods_of(name: str) -> Callable[[Type[_T]], Type[_T]]:
    """Of a base class: its functions are named as those of encoderd.`name`,
    which is the class that callers know, in Python's own TypeErrors."""
    def rename(base: Type[_T]) -> Type[_T]:
        for member in vars(base).values():
            if isinstance(member, types.FunctionType):
                member.__module__ = __package__
                member.__qualname__ = f"{name}.{member.__name__}"
        return base

    return rename


def one_of(inputs: Any, sentences: Any, pool: Any, method: str = "encode"
           ) -> Any:
    """What is to be embedded: `sentences` is an older name of `inputs`."""
    if pool is not None:
        raise ValueError("pool: there are no processes to share; the server "
                         "computes on all of its cores")
    if inputs is not None and sentences is not None:
        raise TypeError(f"{method}() takes inputs or sentences, its older "
                        "name, not both")
    return sentences if inputs is None else inputs
