"""Runs jobs without blocking: the same as _calls, for asyncio."""

from __future__ import annotations

import asyncio
import collections
import math
import time
from typing import Any, Deque, List, Optional, Tuple, TypeVar

import grpc

from encoderd._channel import pause
from encoderd._jobs import Job, Many, One

T = TypeVar("T")


async def call(method: Any, request: Any, timeout: Optional[float],
               first: int = 0) -> Any:
    """The answer; made again when the server asks for that. An EncoderdError
    whose inputs count from `first`."""
    end = time.monotonic() + (math.inf if timeout is None else timeout)
    while True:
        try:
            return await method(request, timeout=timeout)
        except grpc.RpcError as error:
            found, delay = pause(error, first, end - time.monotonic())
            if delay < 0:
                raise found from error
        await asyncio.sleep(delay)
        timeout = None if timeout is None else end - time.monotonic()


async def run_many(many: Many, method: Any, timeout: Optional[float],
                   max_in_flight: int) -> None:
    """Hands the answers over in order. The first error in the list's order is
    raised; what is still in flight then is cancelled and waited for."""
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
                window.append((first, len(inputs), asyncio.ensure_future(
                    call(method, many.make(inputs), timeout, first))))
            if not window:
                break
            first, count, task = window[0]
            answer = await task
            window.popleft()
            many.take(first, count, answer)
        if late:
            raise late[0]
    finally:
        for _, _, task in window:
            task.cancel()
        await asyncio.gather(*(task for _, _, task in window),
                             return_exceptions=True)


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
        return end.value
