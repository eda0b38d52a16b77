"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import time
from typing import Any, Optional, Sequence, TypeVar

import grpc

from encoderd._calls_in_flight import calls_of_job
from encoderd._channel import Retries, starting
from encoderd._method_jobs import Job

T = TypeVar("T")


class Call:
    """One call, made again when the server asks for that. places: of the
    request's inputs, in the caller's list."""

    def __init__(self, method: Any, request: Any, timeout: Optional[float],
                 places: Sequence[int] = ()):
        self._method = method
        self._request = request
        self._retries = Retries(method.link, request, places, timeout)
        self._send()

    def _send(self) -> None:
        with starting():
            self._future = self._method.future(self._request,
                                               timeout=self._retries.begin())

    def result(self) -> Any:
        """The answer; or an EncoderdError."""
        while True:
            try:
                return self._future.result()
            except grpc.RpcError as error:
                delay = self._retries.pause(error)
            time.sleep(delay)
            self._send()

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
