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
