"""Options of the wrong type are TypeErrors that name option and type."""

from __future__ import annotations

import operator
import re
import traceback
from typing import Any, Optional, Sequence, TypeVar

_E = TypeVar("_E", bound=Exception)


def a_kind(value: object) -> str:
    """"a list", "an int", "None": how errors name what they were given."""
    if value is None or isinstance(value, bool):
        return str(value)
    name = type(value).__name__
    if name == "bytes":
        return name
    vowel = name[0] in "aeiouAEIO" or name == "ndarray"
    return f"{'an' if vowel else 'a'} {name}"


_MARK = "_of_argument"


def wrong_type(message: str) -> TypeError:
    """Of what a caller gave. Methods raise it without their own frames, which
    would tell the caller nothing; those of a fault in the package stay."""
    return _marked(TypeError(message))


def wrong_value(message: str) -> ValueError:
    """Likewise."""
    return _marked(ValueError(message))


def _marked(error: _E) -> _E:
    setattr(error, _MARK, True)
    return error


def is_of_argument(error: Exception) -> bool:
    """Whether it is of wrong_type or wrong_value, and passed no frames but the
    package's: one that a caller's generator raised shows where by its frames.
    To be asked where it is caught."""
    if not vars(error).get(_MARK, False):
        return False
    passed = error.__traceback__.tb_next if error.__traceback__ else None
    return all(frame.f_globals.get("__name__", "").partition(".")[0]
               == __package__ for frame, _ in traceback.walk_tb(passed))


def is_hub_name(value: str) -> bool:
    """Whether it may be the name of a model on the Hugging Face Hub."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*",
                        value) is not None


def whole_number(name: str, value: Any) -> int:
    """Of Python or numpy; a bool is none."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise wrong_type(f"{name} is {a_kind(value)}; expected a whole number")
    return operator.index(value)


def not_negative(name: str, value: Any) -> int:
    number = whole_number(name, value)
    if not 0 <= number < 2**32:
        raise wrong_value(f"{name} is {number}; expected 0 to {2**32 - 1}")
    return number


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(f"{name} is {a_kind(value)}; expected a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong_value(without_utf8(name, error)) from None
    return value


def without_utf8(name: str, error: UnicodeEncodeError) -> str:
    """What is wrong with a str that has a lone surrogate."""
    return (f"{name} has no UTF-8 form: its character {error.start} is "
            f"U+{ord(error.object[error.start]):04X}, half of a pair")


def check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raises TypeError for a value that is no str, and ValueError for a str
    that is not in `known`. None, which means the default, passes."""
    expected = f"expected one of {', '.join(known)}"
    if value is not None and not isinstance(value, str):
        raise wrong_type(f"{name} is {a_kind(value)}; {expected}")
    if value is not None and value not in known:
        raise wrong_value(f"{name} is {value!r}; {expected}")


def true_or_false(name: str, value: Any) -> Optional[bool]:
    """Of Python or numpy; None stays None."""
    if value is None or type(value).__name__ in ("bool", "bool_"):
        return None if value is None else bool(value)
    raise wrong_type(f"{name} is {a_kind(value)}; expected True or False")


def seconds(name: str, value: Any) -> Optional[float]:
    """A timeout; None: no limit, as is one of more than 30 years."""
    if value is None:
        return None
    if isinstance(value, (bool, str, bytes)) or not hasattr(value,
                                                            "__float__"):
        raise wrong_type(f"{name} is {a_kind(value)}; expected seconds, such "
                         "as 60.0")
    number = float(value)
    if not number > 0:  # nan, too
        raise wrong_value(f"{name} is {value}; expected seconds above 0")
    return None if number > 1e9 else number
