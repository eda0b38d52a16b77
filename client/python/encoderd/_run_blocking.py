"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import time
from typing import Any, List, Optional, Sequence, TypeVar

import grpc

from encoderd._calls_in_flight import calls_of_job
from encoderd._channel import Retries, starting
from encoderd._method_jobs import Job
from encoderd.errors import EncoderdError

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
        self._due: Optional[float] = None  # once refused: when to send it again
        self._final: Optional[EncoderdError] = None  # or why not to
        with starting():
            self._future = self._method.future(self._request,
                                               timeout=self._retries.begin())

    def result(self, in_flight: "Sequence[Call]") -> Any:
        """The answer; or an EncoderdError. in_flight: the calls of its job,
        itself included. Their pauses run at the same time: if each paused in
        turn, the last would run out of time."""
        while True:
            try:
                return self._future.result()
            except grpc.RpcError:
                pass
            for call in in_flight:
                call._look_for_refusal()
            if self._final is not None:
                raise self._final
            assert self._due is not None
            time.sleep(max(0.0, self._due - time.monotonic()))
            for call in in_flight:
                if call._due is not None and call._due <= time.monotonic():
                    call._send()

    def _look_for_refusal(self) -> None:
        if self._due is not None or self._final is not None:
            return
        if self._future.cancelled() or not self._future.done():
            return
        error = self._future.exception()
        if error is None:
            return
        try:
            self._due = time.monotonic() + self._retries.pause(error)
        except EncoderdError as final:
            self._final = final

    def cancel(self) -> None:
        self._future.cancel()


def run_job(job: Job[T], methods: Any, timeout: Optional[float],
            max_in_flight: int) -> T:
    """The job's result."""

    in_flight: List[Call] = []

    def start(method: str, request: Any, places: Sequence[int]) -> Call:
        call = Call(methods[method], request, timeout, places)
        in_flight.append(call)
        return call

    calls = calls_of_job(job, start, max_in_flight)
    try:
        call = next(calls)
        while True:
            try:
                answer = call.result(in_flight)
            except BaseException as error:
                in_flight.remove(call)
                call = calls.throw(error)
            else:
                in_flight.remove(call)
                call = calls.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
