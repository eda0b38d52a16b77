"""What Client.inspect_positions tells of a position table."""

from __future__ import annotations

import dataclasses
from typing import Dict, Optional

import grpc
import numpy as np

from encoderd.errors import make_error
from encoderd.v1 import encoder_pb2

_VERDICTS = {
    encoder_pb2.POSITION_VERDICT_UNSPECIFIED: "undecided",
    encoder_pb2.POSITION_VERDICT_TRAINED: "trained",
    encoder_pb2.POSITION_VERDICT_LOOKS_RANDOM: "looks_random",
    encoder_pb2.POSITION_VERDICT_PARTLY_TRAINED: "partly_trained",
}


@dataclasses.dataclass(frozen=True, eq=False)
class PositionReport:
    """n rows of the position table, from first_row on.

    model: whose table it is; position_scheme: "learned", "sinusoidal", ...
    table_rows: of the whole table.
    norms: float32 [n], Euclidean, one for each row.
    cosine: float32 [n, n], of all pairs of rows; None if not asked for.
    values: float32 [n, H], the rows; None if not asked for.
    profile: mean cosine of the rows that are 1, 2, 4, ... apart, by distance.
    verdict: "trained", "looks_random", "partly_trained" (trained before
        change_row, random from there on), or "undecided" (fewer than 9 rows).
    centered_profile: the same of centered rows: each at length 1, less the
        mean of these. What all rows share does not count in it.
    verdict_cosine: what the verdict rests on, the mean centered cosine of
        neighbors (before change_row); threshold: what it was compared with.
    change_row: the first row that looks random; None if not partly trained.
    """

    model: str
    position_scheme: str
    table_rows: int
    first_row: int
    norms: np.ndarray
    cosine: Optional[np.ndarray]
    values: Optional[np.ndarray]
    profile: Dict[int, float]
    verdict: str
    verdict_cosine: float
    threshold: float
    change_row: Optional[int]
    centered_profile: Dict[int, float]


def _matrix(packed: bytes, rows: int, columns: int) -> Optional[np.ndarray]:
    if not packed:
        return None
    if len(packed) != rows * columns * 4:
        raise make_error(grpc.StatusCode.INTERNAL,
                         f"the server returned {len(packed)} bytes for "
                         f"{rows} x {columns} values")
    values = np.frombuffer(packed, "<f4").astype(np.float32)
    return values.reshape(rows, columns)


def read_positions(answer: encoder_pb2.InspectPositionsResponse
                   ) -> PositionReport:
    rows = answer.row_count
    verdict = _VERDICTS.get(answer.verdict, "undecided")
    return PositionReport(
        model=answer.model, position_scheme=answer.position_scheme,
        table_rows=answer.table_rows, first_row=answer.first_row,
        norms=np.array(answer.norms, np.float32),
        cosine=_matrix(answer.cosine, rows, rows),
        values=_matrix(answer.values, rows, answer.columns),
        profile={entry.distance: entry.mean_cosine
                 for entry in answer.profile},
        verdict=verdict, verdict_cosine=answer.verdict_cosine,
        threshold=answer.threshold,
        change_row=(answer.change_row if verdict == "partly_trained"
                    else None),
        centered_profile={entry.distance: entry.mean_centered_cosine
                          for entry in answer.profile})
