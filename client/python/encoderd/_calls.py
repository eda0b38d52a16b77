"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Optional, Sequence, TypeVar, Union

import grpc

from encoderd._channel import pause, starting
from encoderd._jobs import Job, Many, One
from encoderd._window import Window
from encoderd.errors import EncoderdError
from encoderd.inputs import Part

T = TypeVar("T")


class Call:
    """One call, made again when the server asks for that."""

    def __init__(self, method: Any, request: Any, timeout: Optional[float]):
        self._method = method
        self._request = request
        self._end = time.monotonic() + (math.inf if timeout is None
                                        else timeout)
        self._attempts = 0
        self._send(timeout)

    def _send(self, timeout: Optional[float]) -> None:
        self._attempts += 1
        with starting():
            self._future = self._method.future(self._request, timeout=timeout)

    def result(self, places: Sequence[int] = ()) -> Any:
        """The answer; or an EncoderdError. places: of the request's inputs,
        in the caller's list."""
        while True:
            try:
                return self._future.result()
            except grpc.RpcError as error:
                remaining = self._end - time.monotonic()
                found, delay = pause(error, self._request, places,
                                     self._attempts, remaining)
                if delay < 0:
                    raise found from error
            time.sleep(delay)
            left = self._end - time.monotonic()
            self._send(None if math.isinf(left) else left)

    def cancel(self) -> None:
        self._future.cancel()


def run_many(many: Many, start: Callable[[Part], Any],
             max_in_flight: int) -> None:
    """Hands the answers over in order.

    start: begins the call of a part; gives what has result(places) and
        cancel().
    The first error in the list's order is raised; what is still in flight
    then is cancelled.
    """
    window = Window(many.parts, start, max_in_flight)
    try:
        while window.fill():
            part, call = window.first
            try:
                answer = call.result(part.places)
            except EncoderdError as error:
                if not many.refuse(part, error):
                    raise
                window.pop()
            else:
                window.pop()
                many.take(part, answer)
    finally:
        for call in window.calls():
            call.cancel()


def run_job(job: Job[T], methods: Any, timeout: Optional[float],
            max_in_flight: int) -> T:
    """The job's result."""

    def perform(wanted: Union[One, Many]) -> Any:
        method = methods[wanted.method]
        if isinstance(wanted, One):
            return Call(method, wanted.request, timeout).result()
        make = wanted.make
        run_many(wanted,
                 lambda part: Call(method, make(part.inputs), timeout),
                 max_in_flight)
        return None

    try:
        wanted = next(job)
        while True:
            try:
                answer = perform(wanted)
            except BaseException as error:
                wanted = job.throw(error)
            else:
                wanted = job.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
