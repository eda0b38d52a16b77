"""Two sets of vectors compared: the gates are here."""

import numpy as np

# Gates: largest difference in fp32, least cosine in 16 bits.
FP32_DIFFERENCE = 1e-5
LEAST_COSINE = {"fp16": 0.999, "bf16": 0.999, "fp8": 0.99}


def same_bits(one, other):
    """False for a NaN on either side: a result is a number."""
    return (one.shape == other.shape and bool(np.isfinite(one).all())
            and np.array_equal(one.view(np.int32), other.view(np.int32)))


def compare(got, want):
    """Figures of a row."""
    if got.shape != want.shape:
        raise ValueError(f"vectors of shape {got.shape}, not {want.shape}")
    got, want = got.astype(np.float64), want.astype(np.float64)
    norms = np.linalg.norm(got, axis=1) * np.linalg.norm(want, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = (got * want).sum(axis=1) / norms
    return {"max_difference": float(np.abs(got - want).max()),
            "min_cosine": float(cosines.min()),
            "mean_cosine": float(cosines.mean())}


def good(figures, dtype):
    """NaN is never good."""
    if dtype == "fp32":
        return figures["max_difference"] <= FP32_DIFFERENCE
    return figures["min_cosine"] >= LEAST_COSINE[dtype]
