"""How long a stream without an answer is waited for, and the look at the server
before it is given up: streams wait while no server listens, a call of the
health service does not."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Optional

import grpc
from google.protobuf import wrappers_pb2

from encoderd._connection_errors import Link
from encoderd._run_asyncio import is_cancelled
from encoderd.errors import EncoderdError, client_closed, from_rpc_error

LONGEST_WAIT = 1.0  # a stopped process is charged twice this at most
LAST_LOOK = 1.0  # seconds of the patience, and half of it at most


class Patience:
    """Seconds without any answer, reconnecting included, out of those there
    are; None: any number. Reads no clock."""

    def __init__(self, seconds: Optional[float]):
        self.seconds = math.inf if seconds is None else seconds
        self._silent = 0.0  # since the last answer
        self._look = min(LAST_LOOK, self.seconds / 2)  # before the end
        self._looked = False
        self.gone: Optional[EncoderdError] = None  # what the look found

    def heard(self) -> None:
        self._silent = 0.0
        self._looked = False
        self.gone = None

    def waited(self, seconds: float) -> None:
        """For an answer. A much longer wait than was asked for is not the
        server's doing: the process was stopped, or the event loop blocked."""
        self._silent += min(seconds, 2 * LONGEST_WAIT)

    def looked(self, gone: Optional[EncoderdError], seconds: float) -> None:
        """gone: why there is no connection; None: there may be one. seconds:
        that it took."""
        self._looked = True
        self.gone = gone
        self.waited(seconds)

    @property
    def over(self) -> bool:
        return self._silent >= self.seconds

    @property
    def wait(self) -> float:
        """Seconds to wait at most, until the look or the end."""
        left = self.seconds - self._silent
        return min(LONGEST_WAIT,
                   left - self._look if left > self._look else left)

    @property
    def look(self) -> float:
        """Seconds that the look may take now; 0: this is not its time."""
        left = self.seconds - self._silent
        return left if not self._looked and 0 < left <= self._look else 0.0


def _only_gone(error: grpc.RpcError, link: Link) -> Optional[EncoderdError]:
    """The error, if it says that there is no connection."""
    found = from_rpc_error(error, link)
    return found if found.code is grpc.StatusCode.UNAVAILABLE else None


def why_gone(health: Any, seconds: float) -> Optional[EncoderdError]:
    """Why there is no connection; None: there may be one. health: the
    method, which is asked for so long."""
    try:
        health(wrappers_pb2.StringValue(), timeout=seconds)
    except grpc.RpcError as error:
        return _only_gone(error, health.link)
    return None


async def await_why_gone(health: Any, seconds: float
                         ) -> Optional[EncoderdError]:
    """The same for asyncio."""
    try:
        await health(wrappers_pb2.StringValue(), timeout=seconds)
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise client_closed() from None
    except grpc.RpcError as error:
        return _only_gone(error, health.link)
    return None
