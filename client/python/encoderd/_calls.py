"""Runs jobs by blocking the calling thread."""

from __future__ import annotations

import collections
import math
import time
from typing import (Any, Callable, Deque, Iterator, List, Optional, Tuple,
                    TypeVar)

import grpc

from encoderd._channel import pause
from encoderd._jobs import Job, Many, One

T = TypeVar("T")


class Call:
    """One call, made again when the server asks for that."""

    def __init__(self, method: Any, request: Any, timeout: Optional[float]):
        self._method = method
        self._request = request
        self._end = time.monotonic() + (math.inf if timeout is None
                                        else timeout)
        self._future = method.future(request, timeout=timeout)

    def result(self, first: int = 0) -> Any:
        """The answer; an EncoderdError whose inputs count from `first`."""
        while True:
            try:
                return self._future.result()
            except grpc.RpcError as error:
                remaining = self._end - time.monotonic()
                found, delay = pause(error, first, remaining)
                if delay < 0:
                    raise found from error
            time.sleep(delay)
            left = self._end - time.monotonic()
            self._future = self._method.future(
                self._request, timeout=None if math.isinf(left) else left)

    def cancel(self) -> None:
        self._future.cancel()


def run_calls(many: Many, start: Callable[[Any], Any],
              max_in_flight: int) -> Iterator[Tuple[int, int, Any]]:
    """Yields (index of the first input, inputs, answer) of each call, in order.

    start: begins a call; gives what has result(first) and cancel().
    The first error in the list's order is raised; what is still in flight
    then, or when the caller stops early, is cancelled.
    """
    window: Deque[Tuple[int, int, Any]] = collections.deque()
    remaining = iter(many.calls)
    late: List[BaseException] = []  # of `calls`: raised after what came before
    try:
        while True:
            while len(window) < max_in_flight and not late:
                try:
                    first, inputs = next(remaining)
                except StopIteration:
                    break
                except Exception as error:
                    late.append(error)
                    break
                window.append((first, len(inputs), start(many.make(inputs))))
            if not window:
                break
            first, count, call = window.popleft()
            yield first, count, call.result(first)
        if late:
            raise late[0]
    finally:
        for _, _, call in window:
            call.cancel()


def run_job(job: Job[T], methods: Any, timeout: Optional[float],
            max_in_flight: int) -> T:
    """The job's result."""

    def start(name: str, request: Any) -> Call:
        return Call(methods[name], request, timeout)

    def perform(wanted: Any) -> Any:
        if isinstance(wanted, One):
            return start(wanted.method, wanted.request).result()
        for first, count, answer in run_calls(
                wanted, lambda request: start(wanted.method, request),
                max_in_flight):
            wanted.take(first, count, answer)
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
        return end.value
