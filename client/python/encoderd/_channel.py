"""What both clients are connected with."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.resources
import json
import math
import os
import random
import sys
import time
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import grpc
from google.protobuf import wrappers_pb2

from encoderd._client_settings import (INITIAL_RECONNECT_BACKOFF_MS,
                                       KEEPALIVE_TIME_MS,
                                       MAX_RECONNECT_BACKOFF_MS,
                                       MIN_DNS_INTERVAL_MS,
                                       MIN_RECONNECT_BACKOFF_MS,
                                       RETRY_BUFFER_BYTES)
from encoderd._connection_errors import Link
from encoderd.errors import (EncoderdError, after_retries, client_closed,
                             explain, from_rpc_error, out_of_time)
from encoderd._option_checks import whole_number
from encoderd._target import is_localhost
from encoderd.v1 import encoder_pb2_grpc

_CONFIG = (importlib.resources.files("encoderd")
           / "service_config.json").read_text(encoding="utf-8")
# With round_robin, any of the addresses of localhost may have the last word on
# why there is no connection, also one at which nothing listens. pick_first
# dials them in order, ::1 first: 127.0.0.1, where servers listen, has it (with
# gRPC 1.85 only in the first of several attempts).
_CONFIG_OF_LOCALHOST = json.dumps(
    {**json.loads(_CONFIG), "loadBalancingConfig": [{"pick_first": {}}]})
_POLICY = json.loads(_CONFIG)["methodConfig"][0]["retryPolicy"]
MOST_ATTEMPTS: int = _POLICY["maxAttempts"]
FIRST_BACKOFF = float(_POLICY["initialBackoff"].rstrip("s"))  # seconds
LONGEST_BACKOFF = float(_POLICY["maxBackoff"].rstrip("s"))
_MULTIPLIER: float = _POLICY["backoffMultiplier"]
_BUSY = [grpc.StatusCode[code] for code in _POLICY["retryableStatusCodes"]]
LOADING_PAUSE = 0.5  # where a server that loads names none
LEAST_PAUSE = 0.01  # whatever a server names
SPREAD = 1.5  # times as long at most, at random
# While a call runs, a connection on which nothing comes for PING_MS is pinged,
# and given up if that is not answered within PING_TIMEOUT_MS: a server whose
# machine vanished sends no end. encoderd accepts a ping every 5 s.
PING_MS = KEEPALIVE_TIME_MS
PING_TIMEOUT_MS = PING_MS // 2
_LONGEST_CLOSE = 2.0  # seconds
Metadata = Tuple[Tuple[str, str], ...]


def channel_options(target: str, max_answer_bytes: int
                    ) -> List[Tuple[str, Any]]:
    return [
        ("grpc.service_config",
         _CONFIG_OF_LOCALHOST if is_localhost(target) else _CONFIG),
        ("grpc.enable_retries", 1),
        # gRPC counts the metadata of the call, too.
        ("grpc.per_rpc_retry_buffer_size", RETRY_BUFFER_BYTES + (16 << 10)),
        ("grpc.initial_reconnect_backoff_ms", INITIAL_RECONNECT_BACKOFF_MS),
        ("grpc.min_reconnect_backoff_ms", MIN_RECONNECT_BACKOFF_MS),
        ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_BACKOFF_MS),
        ("grpc.dns_min_time_between_resolutions_ms", MIN_DNS_INTERVAL_MS),
        ("grpc.keepalive_time_ms", PING_MS),
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
        # Of the pings by which gRPC measures a connection; while one of them is
        # unanswered it sends no other.
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
        # Not only two pings, where a call takes minutes.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", max_answer_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.primary_user_agent", "encoderd-python"),
    ]


def check_process(maker: int) -> None:
    """RuntimeError in any process but `maker`, which made the connection: a
    call would wait forever for threads that a fork leaves behind."""
    if os.getpid() != maker:
        raise RuntimeError("this client was made before a fork, and its "
                           "connection belongs to the parent process; make a "
                           "client in each process")


class _Method:
    """A method of gRPC's, of either kind; each call carries the metadata.
    owner: its client's Methods."""

    def __init__(self, method: Any, owner: Methods):
        self._method = method
        self._owner = owner
        self.link = owner.link

    def __call__(self, request: Any, timeout: Optional[float] = None,
                 wait_for_ready: bool = False) -> Any:
        with self._owner.starting():
            return self._method(request, timeout=timeout,
                                metadata=self._owner.metadata,
                                # None: the service config decides.
                                wait_for_ready=wait_for_ready or None)

    def future(self, request: Any, timeout: Optional[float] = None) -> Any:
        with self._owner.starting():
            return self._method.future(request, timeout=timeout,
                                       metadata=self._owner.metadata)


class Methods:
    """The methods of a channel by name, grpc.health.v1's too. The only way to
    them, so that no call goes without the metadata, the token's.

    link: what the calls travel over.
    """

    def __init__(self, connect: Callable[[], Any], metadata: Metadata,
                 link: Link):
        """connect: makes the channel."""
        self._process = os.getpid()
        self._connect = connect
        self.metadata = metadata
        self.link = link
        self._closed = False
        self._channel: Any = None
        self._open()

    def _open(self) -> None:
        self._make_channel()

    def _make_channel(self) -> None:
        channel = self._channel = self._connect()
        stub: Any = encoder_pb2_grpc.EncoderStub  # generated without types
        self._stub = stub(channel)
        self._health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            # The same on the wire as HealthCheckRequest and -Response.
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.Int32Value.FromString)

    def check(self) -> None:
        """RuntimeError in a forked process."""
        check_process(self._process)

    def __getitem__(self, name: str) -> Any:
        self.check()
        return _Method(self._health if name == "Health"
                       else getattr(self._stub, name), self)

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Around the start of a call: that of a closed client is cancelled, as
        are those in flight. Other errors of gRPC's are raised as they are."""
        try:
            yield
        except (ValueError, grpc.aio.UsageError):  # of a closed channel, too
            if not self._closed:
                raise
            raise client_closed() from None

    def close(self) -> Any:
        """Of the channel. Nothing in a forked process, where it would wait as
        a call would, nor while the interpreter ends: it waits for the end of
        calls in flight, which a stopped thread would have to see."""
        self._closed = True
        if os.getpid() == self._process and not sys.is_finalizing():
            self._channel.close()


class LoopMethods(Methods):
    """Methods for asyncio. grpc.aio binds a channel to the event loop that it
    finds, so the channel is made by the first call, which runs in one."""

    def _open(self) -> None:
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def __getitem__(self, name: str) -> Any:
        if self._closed:
            raise client_closed()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._make_channel()
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError(
                "this client belongs to another event loop, that of its first "
                "call; make a client in each loop, such as inside the function "
                "that asyncio.run() runs")
        return super().__getitem__(name)

    async def close(self) -> None:
        """Of the channel. The loop may be closed next: gRPC's events of calls
        that this cancels come first, else another loop logs their errors."""
        self._closed = True
        if self._channel is not None and os.getpid() == self._process:
            await self._channel.close()
            await _pass_events()


async def _pass_events() -> None:
    """Waits until gRPC's events so far have reached their loops. They do in
    order, and this is the last."""
    async with grpc.aio.insecure_channel("localhost") as idle:
        last = asyncio.ensure_future(
            idle.wait_for_state_change(grpc.ChannelConnectivity.SHUTDOWN))
        await asyncio.wait({last}, timeout=_LONGEST_CLOSE)
        last.cancel()


class Retries:
    """The attempts of one call: what its errors say, and when to try again.

    timeout: seconds for all of it; None: no limit. places: of the request's
    inputs, in the caller's list.
    """

    def __init__(self, link: Link, request: Any, places: Sequence[int],
                 timeout: Optional[float]):
        self._link = link
        self._size = request.ByteSize()
        self._places = places
        self._timeout = math.inf if timeout is None else timeout
        self._end = time.monotonic() + self._timeout
        self._attempts = 0
        # The last error whose pause the server named: why time ran out.
        self._passing: Optional[EncoderdError] = None

    def begin(self) -> Optional[float]:
        """The seconds that the next attempt may take; None: no limit."""
        self._attempts += 1
        left = self._end - time.monotonic()
        return None if math.isinf(left) else left

    def pause(self, error: grpc.RpcError) -> float:
        """For how many seconds to wait before the next attempt. Raises what
        the error says if there is to be none.

        gRPC has made its attempts when this is asked; of a long request there
        was one. A server that loads its model, or whose queue is full, says
        when to come again (RetryInfo), and is taken at its word as long as the
        timeout allows.
        """
        found = explain(from_rpc_error(error, self._link, self._places),
                        self._size, self._places)
        delay = found.retry_delay
        spread = 1.0
        if found.reason == "LOADING":
            self._passing = found
            delay = delay or LOADING_PAUSE
            spread = SPREAD
        elif (found.code is grpc.StatusCode.RESOURCE_EXHAUSTED
              and delay is not None):
            # Not every refusal of the server has a pause of different length:
            # spread, so that calls refused together do not come together again.
            self._passing = found
            spread = SPREAD
        elif (found.code in _BUSY and self._size > RETRY_BUFFER_BYTES
              and self._attempts < MOST_ATTEMPTS):
            # gRPC retries none this long: done here at its pace. One that is
            # too large for the server was raised above.
            backoff = min(FIRST_BACKOFF * _MULTIPLIER ** (self._attempts - 1),
                          LONGEST_BACKOFF)
            delay = delay or backoff * random.uniform(0.8, 1.2)
        else:
            raise self._final(found) from None
        delay = max(delay, LEAST_PAUSE)
        left = self._end - time.monotonic()
        if delay >= left:
            raise self._final(found) from None
        # Half of what is left after it remains for the attempt.
        return random.uniform(delay, min(spread * delay, (delay + left) / 2))

    def _final(self, found: EncoderdError) -> EncoderdError:
        late = (found.code is grpc.StatusCode.DEADLINE_EXCEEDED
                and not found.reason)
        if late and self._passing is not None:
            found = self._passing  # why the time was not enough
        elif late and not math.isinf(self._timeout):
            return out_of_time(self._link, self._timeout)
        return after_retries(found, self._timeout)


def reopen_pause(error: EncoderdError, backoff: float) -> float:
    """Seconds until a stream that ended with it is opened again. Spread, so
    that streams that ended together do not come together again."""
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        backoff = max(backoff, error.retry_delay or 0.0)
    return backoff * random.uniform(1, SPREAD)


def check_in_flight(calls: int) -> int:
    calls = whole_number("calls_in_flight", calls)
    if calls < 1:
        raise ValueError(f"calls_in_flight is {calls}; it must be at least 1")
    return calls


def check_answer_bytes(limit: int) -> int:
    limit = whole_number("max_answer_bytes", limit)
    if limit != -1 and not 1 <= limit < 2**31:
        raise ValueError(f"max_answer_bytes is {limit}; expected 1 to "
                         f"{2**31 - 1}, or -1 for no limit")
    return limit
