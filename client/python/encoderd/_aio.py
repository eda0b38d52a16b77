"""Runs jobs without blocking: the same as _calls, for asyncio."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from typing import Any, Optional, Sequence, TypeVar

import grpc

from encoderd._channel import pause, starting
from encoderd._jobs import Job, Many, One
from encoderd._window import Window
from encoderd.errors import EncoderdError, make_error
from encoderd.inputs import Part

T = TypeVar("T")


def _is_cancelled() -> bool:
    """Whether the current task was cancelled, and not only its call. Nobody
    knows before Python 3.11."""
    task: Any = asyncio.current_task()
    return not hasattr(task, "cancelling") or task.cancelling() > 0


async def call(method: Any, request: Any, timeout: Optional[float],
               places: Sequence[int] = ()) -> Any:
    """The answer; made again when the server asks for that. places: of the
    request's inputs, in the caller's list."""
    end = time.monotonic() + (math.inf if timeout is None else timeout)
    for attempts in itertools.count(1):
        with starting():
            answer = method(request, timeout=timeout)
        try:
            return await answer
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise make_error(grpc.StatusCode.CANCELLED,
                             "the client was closed") from None
        except grpc.RpcError as error:
            found, delay = pause(error, request, places, attempts,
                                 end - time.monotonic())
            if delay < 0:
                raise found from error
        await asyncio.sleep(delay)
        timeout = None if timeout is None else end - time.monotonic()


async def run_many(many: Many, method: Any, timeout: Optional[float],
                   max_in_flight: int) -> None:
    """Hands the answers over in order. The first error in the list's order is
    raised; what is still in flight then is cancelled and waited for."""

    def start(part: Part) -> "asyncio.Future[Any]":
        return asyncio.ensure_future(call(method, many.make(part.inputs),
                                          timeout, part.places))

    window = Window(many.parts, start, max_in_flight)
    try:
        while window.fill():
            part, task = window.first
            try:
                answer = await task
            except EncoderdError as error:
                if not many.refuse(part, error):
                    raise
                window.pop()
            else:
                window.pop()
                many.take(part, answer)
    finally:
        for task in window.calls():
            task.cancel()
        await asyncio.gather(*window.calls(), return_exceptions=True)


async def run_job(job: Job[T], methods: Any, timeout: Optional[float],
                  max_in_flight: int) -> T:
    """The job's result."""
    try:
        wanted = next(job)
        while True:
            try:
                answer = None
                if isinstance(wanted, One):
                    answer = await call(methods[wanted.method],
                                        wanted.request, timeout)
                else:
                    await run_many(wanted, methods[wanted.method], timeout,
                                   max_in_flight)
            except BaseException as error:
                wanted = job.throw(error)
            else:
                wanted = job.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
