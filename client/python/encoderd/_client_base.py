"""What both clients are made with."""

from __future__ import annotations

from typing import Any, Optional

import grpc

from encoderd._channel import Methods, channel_options, check_in_flight
from encoderd._security import Path, secure

DEFAULT_TARGET = "localhost:8400"


class ClientBase:
    """The arguments of Client and AsyncClient, and their connection."""

    _grpc: Any  # grpc, or grpc.aio

    def __init__(self, target: str = DEFAULT_TARGET, *, model: str = "",
                 timeout: Optional[float] = 60.0, calls_in_flight: int = 8,
                 max_answer_bytes: int = 256 << 20,
                 credentials: Optional[grpc.ChannelCredentials] = None,
                 tls: Optional[bool] = None, ca_file: Optional[Path] = None,
                 certificate_file: Optional[Path] = None,
                 key_file: Optional[Path] = None, token: Optional[str] = None,
                 token_file: Optional[Path] = None,
                 server_name: Optional[str] = None):
        """Returns at once; the connection is made by the first call.

        target: host:port, or any other gRPC name.
        model: asked for where a method is not told another; empty: the
            server's default.
        timeout: seconds for one call, its retries included; None: no limit.
        calls_in_flight: calls of one list that are under way together.
        max_answer_bytes: the largest answer of one call that is accepted.
        credentials: gRPC's own, in place of tls and the files of TLS.

        Those below are None: as the environment variable says (ENCODERD_TLS,
        ENCODERD_CA_FILE, ...), if it is set. Files are read and checked here
        and now; what is wrong is a ValueError.

        tls: True: encrypt. None: where one of the next three is given, or
            ENCODERD_TLS says so. False: do not.
        ca_file: certificates (PEM) of those who may vouch for the server;
            none: those that the system trusts.
        certificate_file, key_file: the client's own (PEM), for a server that
            asks for them; both or none.
        token: sent with every call, for a server that asks for one; visible
            ASCII. Without TLS only to this machine.
        token_file: its first line is the token; in place of token.
        server_name: the name that the server's certificate must have, where
            target is an address that it does not have.
        """
        self._calls_in_flight = check_in_flight(calls_in_flight)
        security = secure(
            target, credentials=credentials, tls=tls, ca_file=ca_file,
            certificate_file=certificate_file, key_file=key_file, token=token,
            token_file=token_file, server_name=server_name)
        options = channel_options(max_answer_bytes) + security.options
        if security.credentials is None:
            self._channel = self._grpc.insecure_channel(target, options)
        else:
            self._channel = self._grpc.secure_channel(
                target, security.credentials, options)
        self._methods = Methods(self._channel, security.metadata,
                                security.credentials is not None)
        self._model = model
        self._timeout = timeout

    def _name(self, model: Optional[str]) -> str:
        return self._model if model is None else model
