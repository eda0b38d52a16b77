"""The server's names of a request's options -> those of the arguments."""

from __future__ import annotations

import re

_ARGUMENTS = {"encoding": "precision", "normalize": "normalize_embeddings",
              "windows.overlap": "windows", "ranges.minimum": "ranges[0]",
              "ranges.maximum": "ranges[1]"}
_FIELD = re.compile(r"\boptions\.((?:windows\.overlap|ranges\.m(?:in|ax)imum)"
                    r"|\w+)( are\b)?")
_VALUE = re.compile(r"\b(TRUNCATE|ENCODING|POOLING)_(\w+)")
_PREFIXES = {"TRUNCATE": "truncate", "ENCODING": "precision",
             "POOLING": "pooling"}


def name_arguments(message: str) -> str:
    """"options.windows are set together with TRUNCATE_END" -> "windows is set
    together with truncate="end""."""
    def argument(found: "re.Match[str]") -> str:
        return (_ARGUMENTS.get(found[1], found[1])
                + (" is" if found[2] else ""))

    return _VALUE.sub(lambda found: f'{_PREFIXES[found[1]]}='
                      f'"{found[2].lower()}"', _FIELD.sub(argument, message))
