"""torch tensors, where torch is installed; nothing here needs it."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_tensors() -> Any:
    """Makes torch tensors of arrays and of dicts of them. ImportError where
    torch is not installed."""
    try:
        import torch
    except ImportError:
        raise ImportError("convert_to_tensor=True and convert_to_numpy=False "
                          "give torch tensors; torch is not installed: pip "
                          "install torch") from None

    def tensor(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: tensor(array) for name, array in value.items()}
        return torch.from_numpy(value)

    return tensor


def as_tensor(array: np.ndarray) -> Any:
    """The array as a torch tensor; itself where torch is not installed."""
    try:
        import torch
    except ImportError:
        return array
    return torch.from_numpy(array)


def _is_of_objects(column: Any) -> bool:
    """Of an array or a column of a table: whether it may hold vectors."""
    kind = getattr(column, "dtype", None)
    return kind is not None and not (isinstance(kind, np.dtype)
                                     and kind.kind in "biuf")


def as_array(vectors: Any) -> np.ndarray:
    """float32 of a torch tensor on any device, of an array, or of a list or a
    column of either."""
    if hasattr(vectors, "detach"):
        vectors = vectors.detach().cpu().float().numpy()
    elif isinstance(vectors, (list, tuple)):
        vectors = [as_array(vector) for vector in vectors]
    elif getattr(vectors, "ndim", 0) == 1 and _is_of_objects(vectors):
        vectors = [as_array(vector) for vector in np.asarray(vectors)]
    return np.asarray(vectors, np.float32)
