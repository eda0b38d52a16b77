"""Options that the environment may give."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Optional

from encoderd._option_checks import a_kind

_BOOLS = {"1": True, "true": True, "yes": True,
          "0": False, "false": False, "no": False}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A value, and who gave it. False where there is none.

    name: the option or the environment variable, for errors.
    is_option: whether it was given as an option.
    """

    name: str
    value: str = dataclasses.field(repr=False)  # perhaps a token
    is_option: bool

    def __bool__(self) -> bool:
        return bool(self.value)


def read_setting(option: str, given: Any, use_environment: bool = True
                 ) -> Setting:
    """The option if it is given (a str or a path), else its variable."""
    if given is not None:
        value = os.fspath(given) if isinstance(given, os.PathLike) else given
        if not isinstance(value, str):
            raise TypeError(f"{option} is {a_kind(given)}; expected a str")
        return Setting(option, value, True)
    variable = f"ENCODERD_{option.upper()}"
    value = os.environ.get(variable, "") if use_environment else ""
    return Setting(variable, value, False)


def read_bool(variable: str) -> Optional[bool]:
    """What a variable says; None if it is not set."""
    text = os.environ.get(variable, "")
    if text and text.lower() not in _BOOLS:
        raise ValueError(f"{variable} is {text!r}; expected 1 or 0, true or "
                         "false, yes or no")
    return _BOOLS.get(text.lower())
