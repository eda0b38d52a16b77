"""Runs jobs without blocking: _run_blocking for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, Optional, Sequence, Set, TypeVar

import grpc

from encoderd._calls_in_flight import calls_of_job
from encoderd._channel import Retries
from encoderd._method_jobs import Job
from encoderd.errors import make_error

T = TypeVar("T")


def is_cancelled() -> bool:
    """Whether the current task was cancelled, and not only its call. Nobody
    knows before Python 3.11."""
    task: Any = asyncio.current_task()
    return not hasattr(task, "cancelling") or task.cancelling() > 0


async def call(method: Any, request: Any, timeout: Optional[float],
               places: Sequence[int] = ()) -> Any:
    """The answer; made again when the server asks for that. places: of the
    request's inputs, in the caller's list."""
    retries = Retries(method.link, request, places, timeout)
    while True:
        answer = method(request, timeout=retries.begin())
        try:
            return await answer
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise make_error(grpc.StatusCode.CANCELLED,
                             "the client was closed") from None
        except grpc.RpcError as error:
            delay = retries.pause(error)
        await asyncio.sleep(delay)


async def run_job(job: Job[T], methods: Any, timeout: Optional[float],
                  max_in_flight: int) -> T:
    """The job's result. Calls that an error leaves in flight are cancelled and
    waited for."""
    in_flight: "Set[asyncio.Future[Any]]" = set()

    def forget(task: "asyncio.Future[Any]") -> None:
        in_flight.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio logs those that nobody awaits

    def start(method: str, request: Any, places: Sequence[int]
              ) -> "asyncio.Future[Any]":
        task = asyncio.ensure_future(call(methods[method], request, timeout,
                                          places))
        in_flight.add(task)
        task.add_done_callback(forget)
        return task

    calls = calls_of_job(job, start, max_in_flight)
    try:
        task = next(calls)
        while True:
            try:
                answer = await task
            except BaseException as error:
                task = calls.throw(error)
            else:
                task = calls.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
    finally:
        await asyncio.gather(*in_flight, return_exceptions=True)
