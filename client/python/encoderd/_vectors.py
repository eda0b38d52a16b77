"""What similarity() takes for vectors -> float32 [n, D]."""

from __future__ import annotations

from typing import Any, Iterable, List

import numpy as np

from encoderd._option_checks import a_kind
from encoderd.inputs import is_missing
from encoderd.results import Embedding, EmbedResult

# What to do with bytes whose products are no similarity.
_UNPACK = "unpack bits (np.unpackbits(bits, axis=-1, count=D) * 2.0 - 1)"
_AS_FLOATS = (f"{_UNPACK}, dequantize values by their scales or ranges, or use "
              'precision="float32"')
_PLAIN = (bool, int, float, list, tuple, np.ndarray, np.generic)


def _values(name: str, result: EmbedResult) -> np.ndarray:
    """Bytes with scales become the floats that they stand for. TypeError for
    bytes without scales: bits, or levels of ranges that the result does not
    have."""
    vectors, scales = result.vectors, result.scales
    if vectors.dtype in (np.int8, np.uint8):
        if result.ok.any() and not scales.any():
            raise TypeError(
                f"{name} is an EmbedResult of {vectors.dtype} without scales; "
                f"{_AS_FLOATS}")
        middle = np.float32(-1 if vectors.dtype == np.int8 else 127)
        vectors = (vectors - middle) * scales[:, np.newaxis]
    found = vectors.astype(np.float32)
    found[~result.ok] = np.nan
    return found


def _types(given: Any) -> str:
    """Names of the types of an array's, a tensor's, a column's or a table's
    values, in lower case."""
    types = getattr(given, "dtypes", None)  # of a table of pandas or polars
    if types is None:
        types = getattr(getattr(given, "schema", None), "types", None)
    if isinstance(types, Iterable):
        return " ".join(map(str, types)).lower()
    kind = getattr(given, "dtype", None)
    if kind is None:
        kind = getattr(given, "type", "")  # of a column of pyarrow
    return str(kind).lower()


def _check_types(name: str, given: Any, types: str) -> None:
    """TypeError for masked values, complex numbers, and bytes that may be
    packed bits."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise TypeError(f"{name} has masked values; drop such rows first")
    if "complex" in types:
        raise TypeError(f"{name} holds complex numbers; expected real ones")
    if "uint8" in types:
        raise TypeError(f"{name} holds uint8, which is packed bits or values "
                        f"with an offset; {_AS_FLOATS}")
    may_be_int8 = isinstance(given, (list, tuple, np.ndarray)) or hasattr(
        given, "detach")
    if "int8" in types and not may_be_int8:
        raise TypeError(f"{name} is {a_kind(given)} of int8, which is packed "
                        f"bits or values; {_UNPACK}, or pass values as an "
                        "array: np.asarray(values)")


def _misfit(name: str, given: Any) -> TypeError:
    return TypeError(f"{name} is {a_kind(given)}; expected numbers of shape "
                     "[n, D] or [D]")


def _texts(name: str) -> TypeError:
    return TypeError(f"{name} holds texts; pass encode(texts)")


def _row(name: str, row: Any) -> np.ndarray:
    """Of a list or a column; name: with its place."""
    if is_missing(row):
        raise TypeError(f"{name} is {row}, a missing value; drop such rows "
                        "first")
    if isinstance(row, EmbedResult):
        raise TypeError(f"{name} is an EmbedResult; pass it alone, or "
                        "np.concatenate([r.vectors for r in results])")
    return _array(name, row)


def _of_rows(name: str, rows: List[Any]) -> np.ndarray:
    """Of a list or a column, whose rows may be of any kind."""
    if any(isinstance(row, str) for row in rows):
        raise _texts(name)
    if all(isinstance(row, _PLAIN)
           and not isinstance(row, np.ma.MaskedArray) for row in rows):
        try:
            found = np.asarray(rows)
        except ValueError:  # of several lengths: the loop says which
            found = np.empty(0, object)
        if found.dtype.kind in "biuf":
            _check_types(name, rows, str(found.dtype))
            return found
    parts: List[np.ndarray] = []
    for place, row in enumerate(rows):
        part = _row(f"{name}[{place}]", row)
        parts.append(part)
        if part.shape != parts[0].shape:
            raise ValueError(
                f"{name}[{place}] is of shape {list(part.shape)} and {name}[0] "
                f"of {list(parts[0].shape)}; expected rows of one length")
    return np.stack(parts)


def _array(name: str, given: Any) -> np.ndarray:
    """Of numbers, in the type that they have."""
    types = _types(given)
    _check_types(name, given, types)
    if hasattr(given, "detach"):  # a tensor of torch, on any device
        found: np.ndarray = given.detach().cpu().float().numpy()
        return found.astype(np.int8) if "int8" in types else found
    if isinstance(given, str):
        raise _texts(name)
    if isinstance(given, Embedding):
        raise TypeError(f"{name} is an Embedding; pass the vectors: "
                        "[found.vector for found in stream if not found.error]")
    array = given if isinstance(given, (list, tuple)) else np.asarray(given)
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        return array
    if not isinstance(array, np.ndarray) or array.ndim == 1:
        rows = [row.as_py() if hasattr(row, "as_py") else row for row in array]
        _check_types(name, given, " ".join(map(_types, rows)))
        return _of_rows(name, rows)
    if any(isinstance(value, str) for value in array.flat):
        raise _texts(name)
    try:
        if array.ndim > 0 and array.dtype.kind == "O":  # a table with gaps
            return array.astype(np.float32)
    except (TypeError, ValueError):
        pass
    raise _misfit(name, given)


def read_vectors(name: str, given: Any) -> np.ndarray:
    """float32 [n, D] of an EmbedResult, or of an array, a tensor, a list, a
    column or a table of numbers; [0, 0] of an empty list. The row of an input
    without a vector is NaN: as it came, of an EmbedResult, or where it is 0
    throughout and int8.

    name: of the argument. TypeError and ValueError say what else to pass.
    """
    if isinstance(given, EmbedResult):
        return _values(name, given)
    array = _array(name, given)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} is of shape {list(array.shape)}; expected "
                         "[n, D] or [D]")
    rows = np.empty((0, 0)) if array.shape == (0,) else np.atleast_2d(array)
    found = rows.astype(np.float32)
    if rows.dtype == np.int8:
        found[~found.any(axis=1)] = np.nan
    return found
