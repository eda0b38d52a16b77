"""A progress bar on standard error: tqdm's if installed, else one line."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO


class Line:
    """"\\r1200/5000 texts, 600/s", drawn at most five times per second."""

    def __init__(self, total: int, stream: TextIO):
        self._total = total
        self._stream = stream
        self._done = 0
        self._start = time.monotonic()
        self._drawn = 0.0

    def update(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._drawn >= 0.2 or self._done == self._total:
            self._drawn = now
            rate = self._done / max(now - self._start, 1e-3)
            self._stream.write(
                f"\r{self._done}/{self._total} texts, {rate:.0f}/s")
            self._stream.flush()

    def close(self) -> None:
        self._stream.write("\n")


class Silent:
    """No progress bar."""

    def update(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass


def make_progress(total: int, show: bool) -> Any:
    """Something with update(count) and close()."""
    if not show:
        return Silent()
    try:
        from tqdm import tqdm
    except ImportError:
        return Line(total, sys.stderr)
    return tqdm(total=total, unit=" texts", file=sys.stderr)
