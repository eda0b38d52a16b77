"""One list over EmbedStream: what to read, to send, to wait for, to hand over.

A window of requests is in flight at a time. Answers are matched by request_id
and handed over in the list's order. A stream that breaks (server restarted,
connection lost, DRAINING, reset by the server) is reopened, and only what was
not answered is sent again; so is, after a pause, what a full queue refused or
what expired in it. A request that is too large goes again in halves, or in
parts of as many inputs as the server says that it takes; of a single input the
error is its answer. The rules are those of EmbedBulk in
client/cpp/bulk.cc; more is done about large requests, since grpc.aio may hide
why a stream ended.

Nothing here waits or reads a clock or a source: its two callers do.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any, AsyncIterable, Deque, Dict, Iterator, List, Optional

import grpc

from encoderd._channel import LEAST_PAUSE, reopen_pause
from encoderd._client_settings import BYTES_PER_CALL
from encoderd._connection_errors import Link
from encoderd._method_jobs import embed_options
from encoderd._option_checks import a_kind, whole_number
from encoderd._stream_answers import Answers
from encoderd._stream_events import Ended, Event
from encoderd._stream_patience import Patience
from encoderd.errors import (TOO_LARGE, TOO_MANY, EncoderdError,
                             after_retries, explain, from_status,
                             is_too_large, make_error, name_too_large,
                             out_of_time)
from encoderd.inputs import (Cutter, Input, Part, TokenIds, check_iterable,
                             is_cursor, named_limit)
from encoderd.results import Embedding
from encoderd.v1 import encoder_pb2

FIRST_PAUSE = 0.1  # seconds, before a broken stream is reopened
LONGEST_PAUSE = 2.0
MOST_IN_FLIGHT = 64  # requests that the server reads ahead
SHARERS = "batch_size= or requests_in_flight="
MOST_BREAKS = 6  # INTERNAL ends that one large request may meet


@dataclasses.dataclass(eq=False)
class _Pending:
    """A request, from the source to its answer."""

    part: Part
    id: str
    sent: bool = False
    size: int = 0  # bytes, once it was sent
    breaks: int = 0  # INTERNAL ends, its own or where it was the largest
    alone: bool = False  # goes by a call of Embed
    not_before: float = 0.0  # seconds of the monotonic clock
    results: Optional[List[Embedding]] = None


def _worth_another_try(error: EncoderdError) -> bool:
    """A RESOURCE_EXHAUSTED with a reason is the server's own (QUEUE_FULL);
    gRPC's, without one, says that a message is too large. What expired in the
    queue was not computed, and may be once the server is less busy."""
    return (error.code is grpc.StatusCode.UNAVAILABLE
            or error.reason == "EXPIRED_IN_QUEUE"
            or (error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
                and bool(error.reason)))


class Bulk:
    """The state of one list; not thread-safe. now: of the monotonic clock.
    link: names the server in errors.
    patience: seconds of waiting without any answer, reconnecting included,
        after which it ends with the last error; None: no limit.
    keep_errors: an input's error is in its Embedding; else raised in turn.
    fingerprint: that all answers must have; "": that of the first.
    """

    def __init__(self, *, model: str, options: encoder_pb2.EmbedOptions,
                 precision: str, batch_size: int, requests_in_flight: int,
                 link: Link, patience: Optional[float], keep_errors: bool,
                 fingerprint: str):
        requests_in_flight = whole_number("requests_in_flight",
                                          requests_in_flight)
        if not 1 <= requests_in_flight <= MOST_IN_FLIGHT:
            raise ValueError(f"requests_in_flight is {requests_in_flight}; it "
                             f"must be from 1 to {MOST_IN_FLIGHT}")
        self._model = model
        self._options = options
        # A bad input costs itself only, so that those before it come first.
        self._options.on_error = encoder_pb2.ON_ERROR_PER_INPUT
        self._cutter = Cutter(batch_size, True, prompt_name=options.prompt_name)
        self._most = requests_in_flight
        self._link = link
        self._patience = Patience(patience)
        self._keep_errors = keep_errors
        self._window: Deque[_Pending] = collections.deque()  # in order
        self._cut: Deque[Part] = collections.deque()  # wait for the window
        self._unanswered: Dict[str, _Pending] = {}
        self._made = 0
        self._answers = Answers(precision, prompted=bool(options.prompt_name),
                                keep_errors=keep_errors,
                                fingerprint=fingerprint)
        self._ended = False
        self._late: Optional[BaseException] = None  # of the source
        self._trouble: Optional[EncoderdError] = None  # last that was not final
        self._answered = False  # by this stream
        self._connected = False
        self._connect_at = 0.0
        self._pause = FIRST_PAUSE

    # The source.

    @property
    def wants_input(self) -> bool:
        return (not self._ended and not self._cut
                and len(self._window) < self._most)

    def add(self, value: Input) -> bool:
        """Takes the source's next; whether that filled a request."""
        try:
            parts = self._cutter.add(value)
        except Exception as error:
            self.end(error)
            return True
        self._cut.extend(parts)
        self._fill()
        return bool(parts)

    def end(self, error: Optional[BaseException] = None) -> None:
        """The source has no more; `error` is raised after what came before."""
        self._ended = True
        self._late = error
        self.flush()

    @property
    def ended(self) -> bool:
        """Whether the source is asked no more."""
        return self._ended

    def flush(self) -> bool:
        """Makes a request of what does not fill one; whether there is any."""
        part = self._cutter.rest()
        if part is not None:
            self._cut.append(part)
            self._fill()
        return part is not None

    def _fill(self) -> None:
        while self._cut and len(self._window) < self._most:
            self._window.append(self._prepare(self._cut.popleft()))

    def _prepare(self, part: Part) -> _Pending:
        """Its request, under its own name."""
        pending = _Pending(part, str(self._made))
        self._made += 1
        if part.inputs:
            self._unanswered[pending.id] = pending
        else:
            pending.results = self._answers.without_answer(part)
        return pending

    # The caller.

    def ready(self) -> Iterator[Embedding]:
        """What can be handed over by now, in order."""
        while self._window and self._window[0].results is not None:
            for result in self._window.popleft().results or ():
                if result.error is not None and not self._keep_errors:
                    raise result.error
                yield result
            self._fill()

    def finished(self) -> bool:
        """Whether everything was handed over; raises what the source did."""
        if not self._ended or self._window:
            return False
        if self._late is not None:
            raise self._late
        return True

    # The stream.

    def may_connect(self, now: float) -> bool:
        return bool(self._unanswered) and now >= self._connect_at

    def connected(self) -> None:
        """A new stream: nothing was sent over it."""
        self._connected = True
        for pending in self._unanswered.values():
            pending.sent = False

    def requests(self, now: float) -> Iterator[encoder_pb2.EmbedRequest]:
        """Those to be sent by now."""
        for pending in self._window:
            if (pending.results is None and not pending.sent
                    and pending.not_before <= now):
                request = encoder_pb2.EmbedRequest(
                    model=self._model, inputs=pending.part.inputs,
                    options=self._options, request_id=pending.id)
                pending.sent = True
                pending.size = request.ByteSize()
                yield request

    def goes_alone(self, request: encoder_pb2.EmbedRequest) -> bool:
        """Whether a stream broke under this large request: Embed tells why,
        where grpc.aio hides a stream's end behind a late write."""
        pending = self._unanswered[request.request_id]
        pending.alone = pending.breaks > 0
        return pending.alone

    @property
    def asks(self) -> bool:
        """Whether the server owes an answer; else nobody waits for it."""
        return bool(self._unanswered)

    def wait(self, now: float) -> float:
        """Seconds to wait for the next event at most; perhaps infinite."""
        if not self.asks:
            return math.inf
        ends = [now + self._patience.wait]
        if not self._connected:
            ends.append(self._connect_at)
        else:
            ends += [pending.not_before for pending in
                     self._unanswered.values() if not pending.sent]
        return max(0.0, min(ends) - now)

    def handle(self, event: Optional[Event], waited: float, now: float) -> None:
        """What came after `waited` seconds in which the server was asked for
        something; None: nothing came."""
        self._patience.waited(waited)
        if isinstance(event, Ended):
            self._end_of_stream(event.error, now)
        elif event is not None:
            self._answer(event, now)

    @property
    def out_of_patience(self) -> bool:
        return self._patience.over

    @property
    def _may_be_gone(self) -> bool:
        """Whether no server has said why there is no answer."""
        return not self._answered and (self._trouble is None or (
            self._trouble.code is grpc.StatusCode.UNAVAILABLE
            and not self._trouble.reason))

    @property
    def look(self) -> float:
        """Seconds in which to find out now why there is no connection, if
        there is none; 0: not now."""
        return self._patience.look if self._may_be_gone else 0.0

    def looked(self, gone: Optional[EncoderdError], waited: float) -> None:
        """gone: what was found; it took `waited` seconds."""
        self._patience.looked(gone, waited)

    def give_up(self) -> EncoderdError:
        """Why it ends then."""
        trouble = self._trouble
        if self._may_be_gone:
            trouble = self._patience.gone or trouble
        if trouble is None:
            return out_of_time(self._link, self._patience.seconds, SHARERS)
        return after_retries(trouble, self._patience.seconds)

    def _answer(self, response: encoder_pb2.EmbedResponse, now: float) -> None:
        self._answered = True
        pending = self._unanswered.get(response.request_id)
        if pending is None:
            raise make_error(grpc.StatusCode.INTERNAL,
                             "the server answered request "
                             f"{response.request_id!r}, which is not in flight")
        if response.HasField("error"):
            error = from_status(response.error, pending.part.places)
            if is_too_large(error, pending.size):  # of a call of Embed
                error = name_too_large(error, pending.size,
                                       pending.part.places)
            if error.reason == TOO_LARGE or (
                    error.reason == TOO_MANY and len(pending.part.inputs) > 1):
                self._heard()
                self._split(pending, error)
                return
            broken = (pending.alone and not error.reason
                      and error.code is grpc.StatusCode.INTERNAL)
            if not _worth_another_try(error) and not broken:
                raise explain(error)
            self._trouble = error
            pending.sent = False
            pending.not_before = now + (
                FIRST_PAUSE if error.retry_delay is None
                else max(error.retry_delay, LEAST_PAUSE))
            if broken:
                self._blame(pending, error)
            return
        pending.results = self._answers.read(pending.part, response)
        del self._unanswered[pending.id]
        self._heard()

    def _heard(self) -> None:
        """The server does what it is asked for."""
        self._patience.heard()
        self._pause = FIRST_PAUSE
        self._trouble = None

    def _split(self, pending: _Pending, error: EncoderdError) -> None:
        """Sends a request that is too large again as smaller ones; of a single
        input the error is its answer."""
        del self._unanswered[pending.id]
        part = pending.part
        if len(part.inputs) == 1:
            if error.input_index is None:
                error.input_index = part.places[0]
            part.refuse(error)
            pending.results = self._answers.without_answer(part)
            return
        at = self._window.index(pending)
        del self._window[at]
        most = (len(part.inputs) + 1) // 2
        if error.reason == TOO_MANY:
            if 0 < named_limit(error) < len(part.inputs):
                most = named_limit(error)
            self._cut.extend(self._cutter.take_fewer(most))
        for place, smaller in enumerate(part.split(most), at):
            self._window.insert(place, self._prepare(smaller))
        self._fill()

    def _in_flight(self) -> List[_Pending]:
        return [each for each in self._unanswered.values() if each.sent]

    def _end_of_stream(self, error: Optional[Exception], now: float) -> None:
        self._connected = self._answered = False
        if error is None:
            error = make_error(grpc.StatusCode.UNAVAILABLE,
                               "the server ended the stream early")
        if not isinstance(error, EncoderdError):
            raise error
        for pending in self._in_flight():
            if is_too_large(error, pending.size):
                self._heard()
                self._split(pending, name_too_large(error, pending.size,
                                                    pending.part.places))
                return
        # INTERNAL is what gRPC makes of an interrupted connection, and
        # grpc.aio of an end that a write was too late for.
        if (not _worth_another_try(error)
                and error.code is not grpc.StatusCode.INTERNAL):
            raise explain(error)  # an answer may be too large, too
        self._trouble = error
        self._connect_at = now + reopen_pause(error, self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if error.code is grpc.StatusCode.INTERNAL:
            self._blame_the_largest(error)

    def _blame_the_largest(self, error: EncoderdError) -> None:
        """A large request that breaks one stream after the other is not sent
        until the timeout: if one is too large, the largest is."""
        largest = max((pending for pending in self._in_flight()
                       if not pending.alone),
                      key=lambda pending: pending.size, default=None)
        if largest is None or largest.size < BYTES_PER_CALL:
            return
        self._blame(largest, error)

    def _blame(self, pending: _Pending, error: EncoderdError) -> None:
        pending.breaks += 1
        if pending.breaks == MOST_BREAKS:
            self._split(pending, make_error(
                error.code, f"{MOST_BREAKS} calls failed while sending a "
                f"request of {pending.size} bytes, from "
                f"inputs[{pending.part.places[0]}] on: {error.message}"))


def make_bulk(inputs: Any, *, batch_size: int, requests_in_flight: int,
              precision: Optional[str], on_error: Optional[str],
              model: str, patience: Optional[float], link: Link,
              fingerprint: str = "", takes_async: bool = False,
              **options: Any) -> Bulk:
    """Client.embed_stream says what each argument means.

    takes_async: whether inputs may be an async iterable."""
    if isinstance(inputs, (str, TokenIds)):
        raise TypeError(f"inputs is {a_kind(inputs)}; embed_stream() takes "
                        "an iterable of inputs: [text]")
    if (not takes_async or not isinstance(inputs, AsyncIterable)
            or is_cursor(inputs)):
        check_iterable(inputs)
    return Bulk(
        model=model, options=embed_options(precision=precision,
                                           on_error=on_error, **options),
        precision=precision or "float32", batch_size=batch_size,
        requests_in_flight=requests_in_flight, link=link, patience=patience,
        keep_errors=on_error == "per_input", fingerprint=fingerprint)
