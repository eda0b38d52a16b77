"""Embeds a list over EmbedStream by blocking the calling thread."""

from __future__ import annotations

import atexit
import math
import os
import queue
import sys
import threading
import time
import weakref
from typing import Any, Callable, Generator, Iterable, Iterator, Optional

from encoderd._channel import check_process
from encoderd._connection_errors import Link
from encoderd._stream_events import Ended, Event, ended_by
from encoderd._stream_patience import why_gone
from encoderd._stream_state import LONGEST_PAUSE, Bulk
from encoderd.errors import client_closed
from encoderd.inputs import Input
from encoderd.results import Embedding

LAST_WAIT = 5.0  # seconds at exit for the threads of each stream


class Stream:
    """One call of EmbedStream that never blocks its owner, who sends and takes
    events; gRPC's thread sends, one more reads the answers. Both end with
    the call. There are as many events as requests at most, and the end."""

    def __init__(self, method: Any):
        self._process = os.getpid()
        self._requests: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._events: "queue.SimpleQueue[Event]" = queue.SimpleQueue()
        self._sends = threading.Event()  # _sender is set
        self._call = method(self._outgoing(),
                            # gRPC reopens a stream that a leaving server did
                            # not read; without this it would never end while
                            # nobody listens.
                            wait_for_ready=True)
        self._over = threading.Event()  # gRPC has no more events of the call
        if not self._call.add_callback(self._over.set):
            self._over.set()
        self._reader = threading.Thread(
            target=_read, name="encoderd-stream", daemon=True,
            args=(self._call, method.link, self._events))
        self._reader.start()
        _LIVE.add(self)

    def _outgoing(self) -> Iterator[Any]:
        """What gRPC's thread sends."""
        self._sender = threading.current_thread()
        self._sends.set()
        yield from iter(self._requests.get, None)

    def send(self, request: Any) -> None:
        self._requests.put(request)

    def take(self, seconds: float) -> Optional[Event]:
        """The next event; None if none comes for so long. RuntimeError in a
        forked process."""
        check_process(self._process)
        try:
            return self._events.get(
                timeout=None if math.isinf(seconds) else seconds)
        except queue.Empty:
            return None

    def finish(self, seconds: float) -> None:
        """Sends no more and waits for the server's end for so long."""
        self._requests.put(None)
        self.take(seconds)

    def close(self) -> None:
        """Cancels what is still in flight, unless it is a parent process's. Not
        while the interpreter ends: a thread that it stopped may hold a lock
        that cancel() waits for."""
        if os.getpid() != self._process or sys.is_finalizing():
            return
        self._requests.put(None)
        self._call.cancel()

    def join(self, seconds: float) -> None:
        """After close(), waits for so long until no thread takes the call's
        lock. Nothing in a forked process, which has no such threads."""
        if os.getpid() != self._process:
            return
        end = time.monotonic() + seconds

        def left() -> float:
            return max(0.0, end - time.monotonic())

        self._reader.join(left())
        self._over.wait(left())
        if self._sends.wait(left()):
            self._sender.join(left())


_LIVE: "weakref.WeakSet[Stream]" = weakref.WeakSet()
_AT_EXIT = threading.Event()  # no stream is opened again


@atexit.register
def _close_all() -> None:
    """While threads still run: of iterators that nobody read to their end.
    Later, gRPC takes the lock of each call once more to delete it, and would
    wait without end if a thread was stopped while it held the lock."""
    _AT_EXIT.set()
    streams = list(_LIVE)
    for stream in streams:
        stream.close()
    for stream in streams:
        stream.join(LAST_WAIT)


def _read(call: Any, link: Link, events: "queue.SimpleQueue[Event]"
          ) -> None:
    end = Ended(None)
    try:
        for response in call:
            events.put(response)
    except Exception as error:
        end = (Ended(client_closed()) if _AT_EXIT.is_set()
               else ended_by(error, link))
        if error is call:
            # Else the call holds itself and is deleted at exit; see _close_all.
            error.__traceback__ = None
    events.put(end)


def read(bulk: Bulk, values: Iterator[Input]) -> None:
    """At most one request's inputs."""
    while bulk.wants_input:
        try:
            value = next(values)
        except StopIteration:
            bulk.end()
        except Exception as error:
            bulk.end(error)
        else:
            if bulk.add(value):
                return


def run(bulk: Bulk, source: Iterable[Input], connect: Callable[[], Stream],
        health: Callable[[], Any]) -> Generator[Embedding, None, None]:
    """The results of the source's inputs, in order. connect: opens a stream;
    health: gives the method."""
    stream: Optional[Stream] = None
    values = iter(source)
    try:
        while True:
            read(bulk, values)
            yield from bulk.ready()
            if bulk.finished():
                break
            now = time.monotonic()
            if stream is None and bulk.may_connect(now):
                stream = connect()
                bulk.connected()
            event = None
            seconds = 0.0 if bulk.wants_input else bulk.wait(now)
            if stream is None:
                time.sleep(seconds)
            else:
                for request in bulk.requests(now):
                    stream.send(request)
                event = stream.take(seconds)
            then = time.monotonic()
            if isinstance(event, Ended) and stream is not None:
                stream.close()
                stream = None
            bulk.handle(event, then - now, then)
            if bulk.out_of_patience:
                raise bulk.give_up()
            if bulk.look > 0:
                bulk.looked(why_gone(health(), bulk.look),
                            time.monotonic() - then)
        if stream is not None:
            stream.finish(LONGEST_PAUSE)
    finally:
        if stream is not None:
            stream.close()
