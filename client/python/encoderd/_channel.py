"""What both clients are connected with."""

from __future__ import annotations

import importlib.resources
from typing import Any, List, Sequence, Tuple

import grpc
from google.protobuf import wrappers_pb2

from encoderd.errors import EncoderdError, from_rpc_error
from encoderd.v1 import encoder_pb2_grpc


def channel_options(max_answer_bytes: int) -> List[Tuple[str, Any]]:
    config = (importlib.resources.files("encoderd")
              / "service_config.json").read_text(encoding="utf-8")
    return [
        ("grpc.service_config", config),
        ("grpc.enable_retries", 1),
        # A request longer than this is sent once and never again.
        ("grpc.per_rpc_retry_buffer_size", 16 << 20),
        # A server that was restarted is found again soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", 2000),
        ("grpc.max_receive_message_length", max_answer_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.primary_user_agent", "encoderd-python"),
    ]


class Methods:
    """The methods of a channel by name, grpc.health.v1's too."""

    def __init__(self, channel: Any):
        stub: Any = encoder_pb2_grpc.EncoderStub  # generated without types
        self._stub = stub(channel)
        self._health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            # The same on the wire as HealthCheckRequest and -Response.
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.Int32Value.FromString)

    def __getitem__(self, name: str) -> Any:
        return self._health if name == "Health" else getattr(self._stub, name)


def pause(error: grpc.RpcError, places: Sequence[int], remaining: float
          ) -> Tuple[EncoderdError, float]:
    """What an error says, and for how many seconds to wait before the call is
    made once more; negative: not at all.

    gRPC has made its attempts when this is asked. A server whose queue is full
    says when to come again (RetryInfo), and is taken at its word as long as
    `remaining` seconds allow.
    """
    found = from_rpc_error(error, places)
    delay = found.retry_delay
    if (found.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or delay is None
            or delay >= remaining):
        return found, -1.0
    return found, max(delay, 0.001)


def check_in_flight(calls: int) -> int:
    if calls < 1:
        raise ValueError(f"calls_in_flight is {calls}; it must be at least 1")
    return calls
