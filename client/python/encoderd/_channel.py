"""What both clients are connected with."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import random
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import grpc
from google.protobuf import wrappers_pb2

from encoderd.errors import (EncoderdError, explain, from_rpc_error,
                             make_error)
from encoderd.inputs import BYTES_PER_CALL
from encoderd.v1 import encoder_pb2_grpc

# gRPC sends a longer request once: it would try one that is too large for the
# server again and again, not seeing that this is no full queue. Only a single
# input is as long. pause() knows better and has the other attempts made.
LONGEST_RETRIED = 2 * BYTES_PER_CALL
MOST_ATTEMPTS = 5  # as in service_config.json, and its backoff
FIRST_BACKOFF = 0.1  # seconds
LONGEST_BACKOFF = 2.0
Metadata = Tuple[Tuple[str, str], ...]
_BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


def channel_options(max_answer_bytes: int) -> List[Tuple[str, Any]]:
    config = (importlib.resources.files("encoderd")
              / "service_config.json").read_text(encoding="utf-8")
    return [
        ("grpc.service_config", config),
        ("grpc.enable_retries", 1),
        ("grpc.per_rpc_retry_buffer_size", LONGEST_RETRIED),
        # A server that was restarted is found again soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.max_receive_message_length", max_answer_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.primary_user_agent", "encoderd-python"),
    ]


class _Method:
    """A method of gRPC's, of either kind; each call carries the metadata.
    encrypted: whether they travel by TLS."""

    def __init__(self, method: Any, metadata: Metadata, encrypted: bool):
        self._method = method
        self._metadata = metadata
        self.encrypted = encrypted

    def __call__(self, request: Any, timeout: Optional[float] = None) -> Any:
        return self._method(request, timeout=timeout, metadata=self._metadata)

    def future(self, request: Any, timeout: Optional[float] = None) -> Any:
        return self._method.future(request, timeout=timeout,
                                   metadata=self._metadata)


class Methods:
    """The methods of a channel by name, grpc.health.v1's too. The only way to
    them, so that no call goes without the metadata, the token's."""

    def __init__(self, channel: Any, metadata: Metadata, encrypted: bool):
        self._process = os.getpid()
        self._metadata = metadata
        self._encrypted = encrypted
        stub: Any = encoder_pb2_grpc.EncoderStub  # generated without types
        self._stub = stub(channel)
        self._health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            # The same on the wire as HealthCheckRequest and -Response.
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.Int32Value.FromString)

    def __getitem__(self, name: str) -> Any:
        if os.getpid() != self._process:  # a call would wait for ever
            raise RuntimeError("this client was made before a fork, and its "
                               "connection is the other process's; make a "
                               "client in each process")
        return _Method(self._health if name == "Health"
                       else getattr(self._stub, name), self._metadata,
                       self._encrypted)


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Around the start of a call: that of a closed client is cancelled, as
    those are that were under way."""
    try:
        yield
    except (ValueError, grpc.aio.UsageError) as error:  # gRPC's, of a channel
        raise make_error(grpc.StatusCode.CANCELLED,
                         "the client was closed") from error


def pause(error: grpc.RpcError, encrypted: bool, request: Any,
          places: Sequence[int], attempts: int, remaining: float
          ) -> Tuple[EncoderdError, float]:
    """What an error says, and for how many seconds to wait before the call is
    made once more; negative: not at all.

    gRPC has made its attempts when this is asked, `attempts` times; of a long
    request there was one. A server whose queue is full says when to come
    again (RetryInfo), and is taken at its word as long as `remaining` seconds
    allow.
    """
    size = request.ByteSize()
    found = explain(from_rpc_error(error, encrypted, places), size, places)
    delay = found.retry_delay
    if found.code is grpc.StatusCode.RESOURCE_EXHAUSTED and delay is not None:
        # Spread, so that a crowd that was refused together does not come again
        # together.
        delay = max(delay, 0.001) * random.uniform(1, 1.5)
    elif (found.code in _BUSY and size > LONGEST_RETRIED
          and attempts < MOST_ATTEMPTS):
        backoff = min(FIRST_BACKOFF * 2 ** (attempts - 1), LONGEST_BACKOFF)
        delay = delay or backoff * random.uniform(0.8, 1.2)
    else:
        return found, -1.0
    return found, delay if delay < remaining else -1.0


def check_in_flight(calls: int) -> int:
    if calls < 1:
        raise ValueError(f"calls_in_flight is {calls}; it must be at least 1")
    return calls
