"""What comes of a stream: answers, and its end."""

from __future__ import annotations

import dataclasses
from typing import Optional, Union

import grpc

from encoderd._connection_errors import Link
from encoderd.errors import client_closed, from_rpc_error, make_error
from encoderd.v1 import encoder_pb2


@dataclasses.dataclass(frozen=True)
class Ended:
    """A stream's last event."""
    error: Optional[Exception]  # None: OK; no EncoderdError: raised as it is


def ended_by(error: Exception, link: Link) -> Ended:
    """The end that an exception of the call makes; raises nothing."""
    if not isinstance(error, grpc.RpcError):
        return Ended(error)
    try:
        found = from_rpc_error(error, link)
    except Exception as unreadable:
        return Ended(unreadable)
    # This side cancels a stream only where it reads it no more, or where the
    # client was closed.
    if (found.code is grpc.StatusCode.CANCELLED and not found.reason
            and found.message != client_closed().message):
        found = make_error(grpc.StatusCode.UNAVAILABLE,
                           f"the server at {link.target} reset the stream",
                           metadata={"grpc_message": found.message},
                           remedy="its log may say why")
    return Ended(found)


Event = Union[encoder_pb2.EmbedResponse, Ended]
