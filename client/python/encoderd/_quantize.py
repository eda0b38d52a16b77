"""int8 and uint8 with ranges that come from the list at hand."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from encoderd._option_checks import a_kind, wrong_type, wrong_value
from encoderd.errors import EncoderdError


def read_ranges(ranges: Any, dimensions: Optional[int] = None) -> np.ndarray:
    """The caller's, float32 [2, D]; ValueError for another shape, TypeError
    for what is no table of numbers.

    dimensions: D; None: any.
    """
    try:
        found = np.asarray(ranges, np.float32)
    except (TypeError, ValueError):
        raise wrong_type(f"ranges is {a_kind(ranges)}; expected numbers of "
                         "shape [2, D]") from None
    wanted = "D" if dimensions is None else dimensions
    if found.ndim != 2 or len(found) != 2 or (
            dimensions is not None and found.shape[1] != dimensions):
        raise wrong_value(f"ranges is of shape {list(found.shape)}; expected "
                          f"[2, {wanted}], the least and the largest value of "
                          "each dimension")
    return found


def check_ranges(ranges: Any, dimensions: Optional[int] = None) -> np.ndarray:
    """read_ranges, and ValueError for what the server would refuse: ranges
    that end where they begin, or are not finite."""
    found = read_ranges(ranges, dimensions)
    for end, dimension in np.argwhere(~np.isfinite(found))[:1]:
        raise wrong_value(f"ranges[{end}][{dimension}] is "
                          f"{found[end, dimension]:g}; it must be finite")
    low, high = found
    for dimension in np.flatnonzero(high <= low)[:1]:
        raise wrong_value(f"ranges[1][{dimension}] is {high[dimension]:g}; it "
                          f"must be above the minimum, {low[dimension]:g}")
    return found


def single_text(precision: str, why: str = "") -> ValueError:
    return wrong_value(
        f"precision={precision!r}: {why}ranges cannot be taken from a single "
        "text; give ranges=, the least and the largest value of each dimension "
        "over a representative list")


def single_vector(precision: str, count: int, first: EncoderdError
                  ) -> ValueError:
    """Of a list of `count` inputs, all of which but one have an error;
    first: the first of these."""
    return single_text(precision, f"only 1 of {count} inputs has a vector "
                       f"({first.message}), and ")


def calibrate(vectors: np.ndarray) -> np.ndarray:
    """The least and the largest value of each dimension, float32 [2, D]; of at
    least two vectors."""
    return np.stack([vectors.min(axis=0), vectors.max(axis=0)])


def quantize(vectors: np.ndarray, precision: str, ranges: Any) -> np.ndarray:
    """256 steps between the ends of each dimension's range; what lies outside
    becomes its end. [n, D] of int8 or uint8."""
    low, high = read_ranges(ranges, vectors.shape[1])
    steps = (high - low) / np.float32(255)
    steps[steps == 0] = 1  # a dimension that never changes
    levels: np.ndarray = np.clip(np.floor((vectors - low) / steps), 0, 255)
    if precision == "int8":
        return (levels - 128).astype(np.int8)
    return levels.astype(np.uint8)
