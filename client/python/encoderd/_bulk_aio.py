"""Embeds a list over EmbedStream without blocking: _bulk_calls for asyncio."""

from __future__ import annotations

import asyncio
import math
import time
from typing import (Any, AsyncGenerator, AsyncIterable, AsyncIterator,
                    Callable, Iterable, Optional, Set, Union)

import grpc

from encoderd._bulk import LONGEST_PAUSE, Bulk, Ended, Event, ended_by
from encoderd._bulk_calls import read
from encoderd._channel import starting
from encoderd.errors import make_error, to_status
from encoderd.inputs import Input
from encoderd.results import Embedding
from encoderd.v1 import encoder_pb2


class Stream:
    """As _bulk_calls.Stream; tasks of the loop send and read."""

    def __init__(self, method: Any, embed: Any):
        """method: EmbedStream; embed: Embed, for what goes alone."""
        self._requests: "asyncio.Queue[Any]" = asyncio.Queue()
        self._events: "asyncio.Queue[Event]" = asyncio.Queue()
        with starting():
            self._call = method(self._sent())
        self._reader = asyncio.ensure_future(self._read())
        self._embed = embed
        self._alone: "Set[asyncio.Future[None]]" = set()

    def send(self, request: Any) -> None:
        self._requests.put_nowait(request)

    def send_alone(self, request: Any) -> None:
        """By a call of its own; the answer is an event as any other."""
        self._alone.add(asyncio.ensure_future(self._ask(request)))

    async def take(self, seconds: float) -> Optional[Event]:
        """The next event; None if none comes for so long."""
        if seconds == 0:
            await asyncio.sleep(0)  # the tasks go on meanwhile
            return None if self._events.empty() else self._events.get_nowait()
        event = asyncio.ensure_future(self._events.get())
        try:  # wait_for could miss that this task was cancelled
            await asyncio.wait(
                {event}, timeout=None if math.isinf(seconds) else seconds)
            return event.result() if event.done() else None
        finally:
            event.cancel()

    async def finish(self, seconds: float) -> None:
        """Sends no more and waits for the server's end for so long."""
        self._requests.put_nowait(None)
        await self.take(seconds)

    def close(self) -> None:
        """Cancels what is still under way."""
        self._requests.put_nowait(None)
        self._call.cancel()
        for task in self._alone:
            task.cancel()

    async def _sent(self) -> AsyncIterator[Any]:
        while True:
            request = await self._requests.get()
            if request is None:
                return
            yield request

    async def _ask(self, request: Any) -> None:
        try:
            event: Event = await self._embed(request)
        except grpc.RpcError as error:
            event = encoder_pb2.EmbedResponse(request_id=request.request_id,
                                              error=to_status(error))
        except Exception as error:
            event = ended_by(error)
        self._events.put_nowait(event)

    async def _read(self) -> None:
        end = Ended(None)
        try:
            async for response in self._call:
                self._events.put_nowait(response)
        except asyncio.CancelledError:  # by close(), or the client's
            end = Ended(make_error(grpc.StatusCode.CANCELLED,
                                   "the client was closed"))
        except Exception as error:
            end = ended_by(error)
        self._events.put_nowait(end)


async def _read_async(bulk: Bulk, values: AsyncIterator[Input]) -> None:
    """At most one request's inputs."""
    while bulk.wants_input:
        try:
            value = await values.__anext__()
        except StopAsyncIteration:
            bulk.end()
        except Exception as error:
            bulk.end(error)
        else:
            if bulk.add(value):
                return


async def run(bulk: Bulk, source: Union[Iterable[Input], AsyncIterable[Input]],
              connect: Callable[[], Stream]
              ) -> AsyncGenerator[Embedding, None]:
    """The results of the source's inputs, in order."""
    stream: Optional[Stream] = None
    values = (source.__aiter__() if isinstance(source, AsyncIterable)
              else iter(source))
    try:
        while True:
            if isinstance(values, AsyncIterator):
                await _read_async(bulk, values)
            else:
                read(bulk, values)
            for result in bulk.ready():
                yield result
            if bulk.finished():
                break
            now = time.monotonic()
            if stream is None and bulk.may_connect(now):
                stream = connect()
                bulk.connected()
            event = None
            if stream is None:
                await asyncio.sleep(bulk.wait(now))
            else:
                for request in bulk.requests(now):
                    if bulk.goes_alone(request):
                        stream.send_alone(request)
                    else:
                        stream.send(request)
                event = await stream.take(bulk.wait(now))
            then = time.monotonic()
            if isinstance(event, Ended) and stream is not None:
                stream.close()
                stream = None
            bulk.handle(event, then - now, then)
        if stream is not None:
            await stream.finish(LONGEST_PAUSE)
    finally:
        if stream is not None:
            stream.close()
