"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import math
import time
from typing import Any, Optional, Sequence, TypeVar

import grpc

from encoderd._calls_in_flight import calls_of_job
from encoderd._channel import pause, starting
from encoderd._method_jobs import Job

T = TypeVar("T")


class Call:
    """One call, made again when the server asks for that. places: of the
    request's inputs, in the caller's list."""

    def __init__(self, method: Any, request: Any, timeout: Optional[float],
                 places: Sequence[int] = ()):
        self._method = method
        self._request = request
        self._places = places
        self._end = time.monotonic() + (math.inf if timeout is None
                                        else timeout)
        self._attempts = 0
        self._send(timeout)

    def _send(self, timeout: Optional[float]) -> None:
        self._attempts += 1
        with starting():
            self._future = self._method.future(self._request, timeout=timeout)

    def result(self) -> Any:
        """The answer; or an EncoderdError."""
        while True:
            try:
                return self._future.result()
            except grpc.RpcError as error:
                remaining = self._end - time.monotonic()
                found, delay = pause(error, self._method.encrypted,
                                     self._request, self._places,
                                     self._attempts, remaining)
                if delay < 0:
                    raise found from error
            time.sleep(delay)
            left = self._end - time.monotonic()
            self._send(None if math.isinf(left) else left)

    def cancel(self) -> None:
        self._future.cancel()


def run_job(job: Job[T], methods: Any, timeout: Optional[float],
            max_in_flight: int) -> T:
    """The job's result."""

    def start(method: str, request: Any, places: Sequence[int]) -> Call:
        return Call(methods[method], request, timeout, places)

    calls = calls_of_job(job, start, max_in_flight)
    try:
        call = next(calls)
        while True:
            try:
                answer = call.result()
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
