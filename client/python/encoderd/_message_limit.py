"""Requests above the limit of the server's messages are not sent once a
refusal has named it: gRPC would repeat each call, and end each stream."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from encoderd.errors import TOO_LARGE, EncoderdError, name_too_large
from encoderd.inputs import named_limit


class MessageLimit:
    """The largest request that a server takes, as far as its errors say."""

    def __init__(self) -> None:
        self._bytes = 0  # 0: not known

    def learn(self, error: EncoderdError) -> None:
        """error: of any request."""
        # The server's own error of this reason, of its queue, names a field.
        if (error.reason == TOO_LARGE and "request_bytes" in error.metadata
                and not error.violations):
            self._bytes = named_limit(error)

    def refusal(self, request: Any, places: Sequence[int]
                ) -> Optional[EncoderdError]:
        """What the server would say of a request that is too large, whose
        inputs are at `places`."""
        if not self._bytes:
            return None
        size = request.ByteSize()
        if size <= self._bytes:
            return None
        return name_too_large(size, places, str(self._bytes))
