"""Embeds a list over EmbedStream without blocking: for asyncio."""

from __future__ import annotations

import asyncio
import collections
import math
import time
from typing import (Any, AsyncGenerator, AsyncIterable, AsyncIterator,
                    Callable, Deque, Iterable, Iterator, Optional, Set, Union)

import grpc

from encoderd._async_source import Feed
from encoderd._stream_blocking import read
from encoderd._stream_events import Ended, Event, ended_by
from encoderd._stream_patience import await_why_gone
from encoderd._stream_state import LONGEST_PAUSE, Bulk
from encoderd.errors import client_closed, to_status
from encoderd.inputs import Input
from encoderd.results import Embedding
from encoderd.v1 import encoder_pb2


class Stream:
    """As _stream_blocking.Stream; tasks of the loop send and read."""

    def __init__(self, method: Any, embed: Any, changed: Callable[[], None]):
        """method: EmbedStream; embed: Embed, for what goes alone; changed: is
        called after each event."""
        self._requests: "asyncio.Queue[Any]" = asyncio.Queue()
        self._events: Deque[Event] = collections.deque()
        self._changed = changed
        self._call = method(self._sent(), wait_for_ready=True)
        self._link = method.link
        self._reader = asyncio.ensure_future(self._read())
        self._embed = embed
        self._alone: "Set[asyncio.Future[None]]" = set()

    def send(self, request: Any) -> None:
        self._requests.put_nowait(request)

    def send_alone(self, request: Any) -> None:
        """By a separate call; the answer is an event as any other."""
        self._alone.add(asyncio.ensure_future(self._ask(request)))

    def take(self) -> Optional[Event]:
        """The next event; None if there is none yet."""
        return self._events.popleft() if self._events else None

    async def finish(self, seconds: float) -> None:
        """Sends no more and waits for the server's end for so long."""
        self._requests.put_nowait(None)
        await asyncio.wait({self._reader}, timeout=seconds)

    async def close(self) -> None:
        """Cancels what is still in flight and waits for its end."""
        self._requests.put_nowait(None)
        self._call.cancel()
        for task in self._alone:
            task.cancel()
        await asyncio.wait({self._reader, *self._alone}, timeout=LONGEST_PAUSE)

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
            event = encoder_pb2.EmbedResponse(
                request_id=request.request_id,
                error=to_status(error))
        except Exception as error:
            event = ended_by(error, self._link)
        self._add(event)

    async def _begin(self) -> None:
        """Waits for the server's first sign. gRPC reads without end a call that
        was over before it began to read, so its error is raised here."""
        call = self._call
        metadata = await call.initial_metadata()  # or the end
        if call.done() and await call.code() is not grpc.StatusCode.OK:
            raise grpc.aio.AioRpcError(
                await call.code(), metadata, await call.trailing_metadata(),
                await call.details())

    async def _read(self) -> None:
        end = Ended(None)
        try:
            await self._begin()
            async for response in self._call:
                self._add(response)
        except asyncio.CancelledError:  # by close(), or the client's
            end = Ended(client_closed())
        except Exception as error:
            end = ended_by(error, self._link)
        self._add(end)

    def _add(self, event: Event) -> None:
        self._events.append(event)
        self._changed()


async def _wait_for(changed: asyncio.Event, seconds: float) -> None:
    """For so long at most; other tasks go on in any case."""
    if seconds == 0:
        await asyncio.sleep(0)
        return
    task = asyncio.ensure_future(changed.wait())
    try:  # wait_for could miss that this task was cancelled
        await asyncio.wait({task},
                           timeout=None if math.isinf(seconds) else seconds)
    finally:
        task.cancel()


async def run(bulk: Bulk, source: Union[Iterable[Input], AsyncIterable[Input]],
              connect: Callable[[Callable[[], None]], Stream],
              health: Callable[[], Any]) -> AsyncGenerator[Embedding, None]:
    """The results of the source's inputs, in order. connect: given what a
    Stream calls after each event; health: gives the method."""
    changed = asyncio.Event()
    stream: Optional[Stream] = None
    feed: Optional[Feed] = None
    values: Optional[Iterator[Input]] = None
    if isinstance(source, AsyncIterable):
        feed = Feed(bulk, source, changed.set)
    else:
        values = iter(source)
    try:
        while True:
            changed.clear()
            if values is not None:
                read(bulk, values)
            for result in bulk.ready():
                yield result
            if feed is not None:
                feed.resume()
            if bulk.finished():
                break
            now = time.monotonic()
            if stream is None and bulk.may_connect(now):
                stream = connect(changed.set)
                bulk.connected()
            if stream is not None:
                for request in bulk.requests(now):
                    if bulk.goes_alone(request):
                        stream.send_alone(request)
                    else:
                        stream.send(request)
            asked = bulk.asks
            event = None if stream is None else stream.take()
            if event is None:
                await _wait_for(changed, 0.0 if values is not None
                                and bulk.wants_input else bulk.wait(now))
                event = None if stream is None else stream.take()
            then = time.monotonic()
            if isinstance(event, Ended) and stream is not None:
                await stream.close()
                stream = None
            bulk.handle(event, then - now if asked else 0.0, then)
            if bulk.out_of_patience:
                raise bulk.give_up()
            if bulk.look > 0:
                bulk.looked(await await_why_gone(health(), bulk.look),
                            time.monotonic() - then)
        if stream is not None:
            await stream.finish(LONGEST_PAUSE)
    finally:
        try:
            if stream is not None:
                await stream.close()
        finally:  # also where this is cancelled once more
            if feed is not None:
                await feed.close()
