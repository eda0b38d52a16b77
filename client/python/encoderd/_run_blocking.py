"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import threading
import time
from typing import Any, List, Optional, Sequence, TypeVar

import grpc

from encoderd._calls_in_flight import calls_of_job
from encoderd._channel import Retries
from encoderd._method_jobs import Job
from encoderd.errors import EncoderdError

T = TypeVar("T")


class Call:
    """One call, made again when the server asks for that. changed: set when an
    attempt has ended. places: of the request's inputs, in the caller's list."""

    def __init__(self, method: Any, request: Any, timeout: Optional[float],
                 changed: threading.Event, places: Sequence[int] = ()):
        self._method = method
        self._request = request
        self._changed = changed
        self._retries = Retries(method.link, request, places, timeout)
        self._send()

    def _send(self) -> None:
        self._due: Optional[float] = None  # once refused: when to send it again
        self._final: Optional[EncoderdError] = None  # or why not to
        self._ended = False  # it has an answer, or was cancelled
        self._future = self._method.future(self._request,
                                           timeout=self._retries.begin())
        self._future.add_done_callback(lambda _: self._changed.set())

    def result(self, in_flight: "Sequence[Call]") -> Any:
        """The answer; or an EncoderdError. in_flight: the calls of its job,
        itself included. Each of them that is refused is sent again after its
        own pause, whatever becomes of those before it."""
        while True:
            self._changed.clear()
            for call in in_flight:
                call._proceed()
            if self._final is not None:
                raise self._final
            if self._ended:
                return self._future.result()
            pauses = [call._due for call in in_flight if call._due is not None]
            self._changed.wait(max(0.0, min(pauses) - time.monotonic())
                               if pauses else None)

    def _proceed(self) -> None:
        """Notes how the attempt ended; begins the next one if it is time."""
        if self._ended or self._final is not None:
            return
        if self._due is None and self._future.done():
            self._look()
        if self._due is not None and self._due <= time.monotonic():
            self._send()

    def _look(self) -> None:
        error = (None if self._future.cancelled()
                 else self._future.exception())
        self._ended = error is None
        if error is not None:
            try:
                self._due = time.monotonic() + self._retries.pause(error)
            except EncoderdError as final:
                self._final = final

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self._future.cancel()
        self._due = None
        self._ended = True


def run_job(job: Job[T], methods: Any, timeout: Optional[float],
            max_in_flight: int) -> T:
    """The job's result."""

    in_flight: List[Call] = []
    changed = threading.Event()

    def start(method: str, request: Any, places: Sequence[int]) -> Call:
        call = Call(methods[method], request, timeout, changed, places)
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
