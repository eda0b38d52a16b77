"""Reads an async iterable into a Bulk while other work continues."""

from __future__ import annotations

import asyncio
from typing import AsyncIterable, Callable, Optional

from encoderd._stream_state import Bulk
from encoderd.inputs import Input

# Seconds that a request waits for its source's next input before it goes as
# it is: little against a person's patience, much against a source that is
# merely slow.
QUIET = 0.05


class Feed:
    """Reads as far as the bulk has room, in one task for the whole source.

    What the source leaves unfinished for QUIET to 2 QUIET seconds becomes a
    separate request.

    changed: called after there is a new request, or the source ended.
    """

    def __init__(self, bulk: Bulk, source: AsyncIterable[Input],
                 changed: Callable[[], None]):
        self._bulk = bulk
        self._changed = changed
        self._room = asyncio.Event()
        self._count = 0
        self._timer: Optional[asyncio.TimerHandle] = None
        self._task = asyncio.ensure_future(self._read(source))

    def resume(self) -> None:
        """To be called when there may be room again."""
        self._room.set()

    async def close(self) -> None:
        """Cancels the reading and waits for its end."""
        if self._timer is not None:
            self._timer.cancel()
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _read(self, source: AsyncIterable[Input]) -> None:
        try:
            async for value in source:
                self._count += 1
                if self._bulk.add(value):
                    self._changed()
                elif self._timer is None:
                    self._watch()
                while not self._bulk.wants_input:
                    if self._bulk.ended:  # by what is no input
                        return
                    self._room.clear()
                    await self._room.wait()
        except (Exception, asyncio.CancelledError) as error:
            self._bulk.end(error)  # raised when its turn has come
        else:
            self._bulk.end()
        self._changed()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(QUIET, self._look, self._count)

    def _look(self, count: int) -> None:
        """The loop runs what is ready before a timer: so a source that has
        more is never taken for a quiet one, however late this is."""
        self._timer = None
        if self._bulk.ended:
            return
        if self._count != count or not self._bulk.wants_input:
            self._watch()
        elif self._bulk.flush():
            self._changed()
