"""What both clients are made with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Type

import grpc

from encoderd._channel import (Methods, channel_options,
                               check_answer_bytes, check_in_flight)
from encoderd._client_settings import (CALLS_IN_FLIGHT, MAX_ANSWER_BYTES,
                                       TIMEOUT)
from encoderd._connection_errors import Link
from encoderd._option_checks import is_hub_name, seconds, text
from encoderd._proxy import proxy_of
from encoderd._security import Path, secure
from encoderd._signatures import methods_of
from encoderd._target import DEFAULT_TARGET, is_loopback, read_target


@methods_of("Client")  # of AsyncClient too
class ClientBase:
    """The arguments of Client and AsyncClient, and their connection."""

    _grpc: Any  # grpc, or grpc.aio
    _kind_of_methods: Type[Methods] = Methods

    def __init__(self, target: Optional[str] = None, *, model: str = "",
                 timeout: Optional[float] = TIMEOUT,
                 calls_in_flight: int = CALLS_IN_FLIGHT,
                 max_answer_bytes: int = MAX_ANSWER_BYTES,
                 credentials: Optional[grpc.ChannelCredentials] = None,
                 tls: Optional[bool] = None, ca_file: Optional[Path] = None,
                 certificate_file: Optional[Path] = None,
                 key_file: Optional[Path] = None, token: Optional[str] = None,
                 token_file: Optional[Path] = None,
                 server_name: Optional[str] = None):
        """Returns at once; the first call makes the connection.

        target: host, host:port (default port: 8400), or any other gRPC name
            (dns:, ipv4:, ipv6:, unix:, ...), without http://. None:
            ENCODERD_TARGET, or else localhost:8400.
        model: the model of all calls that name no other; empty: the server's
            default.
        timeout: seconds for one call, its retries and the loading of a model
            included; None: no limit. Each method takes its own; there, None
            means this one and math.inf no limit.
        calls_in_flight: calls of one list that are in flight together.
        max_answer_bytes: the largest answer to accept from one call; -1: no
            limit.
        credentials: gRPC's own object, instead of tls and the TLS files.

        For the following arguments, None means the environment variable
        (ENCODERD_TLS, ENCODERD_CA_FILE, ...), if it is set. Files are read and
        checked here.

        tls: True: encrypt. False: do not. None: encrypt if ENCODERD_TLS says
            so, or if one of the next three is given.
        ca_file: PEM file of the CAs to trust; none: those that the system
            trusts.
        certificate_file, key_file: the client's own (PEM), for a server that
            asks for them; give both or none.
        token: sent with every call, for a server that asks for one; visible
            ASCII. Without TLS it is sent only to this machine.
        token_file: its first line is the token; instead of token.
        server_name: the name to expect in the server's certificate, if the
            certificate does not contain the target's address.

        A wrong argument, variable or file raises a ValueError or TypeError
        that names it.
        """
        self._arguments: Dict[str, Any] = {
            "target": target, "model": model, "timeout": timeout,
            "calls_in_flight": calls_in_flight,
            "max_answer_bytes": max_answer_bytes, "credentials": credentials,
            "tls": tls, "ca_file": ca_file,
            "certificate_file": certificate_file, "key_file": key_file,
            "token": token, "token_file": token_file,
            "server_name": server_name}
        self._server: Any = None  # that Python started, to live as long
        self._model = text("model", model)
        self._timeout = seconds("timeout", timeout)
        self._calls_in_flight = check_in_flight(calls_in_flight)
        _check_is_no_model(target)
        address = read_target(target)
        security = secure(
            address, credentials=credentials, tls=tls, ca_file=ca_file,
            certificate_file=certificate_file, key_file=key_file, token=token,
            token_file=token_file, server_name=server_name)
        options = channel_options(
            address, check_answer_bytes(max_answer_bytes)) + security.options
        if is_loopback(address):  # a proxy is another machine
            options.append(("grpc.enable_http_proxy", 0))

        def connect() -> Any:
            if security.credentials is None:
                return self._grpc.insecure_channel(address, options)
            return self._grpc.secure_channel(address, security.credentials,
                                             options)

        self._methods = self._kind_of_methods(
            connect, security.metadata,
            Link(address, security.credentials is not None,
                 proxy_of(address)))

    if not TYPE_CHECKING:  # a type checker reports such names by itself
        def __setattr__(self, name: str, value: Any) -> None:
            """AttributeError for a name that would have no effect: an option,
            or an attribute that a client does not have. Subclasses may have
            their own."""
            kind = type(self)
            is_own = kind.__module__.partition(".")[0] == __package__
            if is_own and not name.startswith("_"):
                if name in self._arguments:
                    raise AttributeError(
                        f"{name} cannot be set on a client; pass it to the "
                        f"constructor: {kind.__name__}({name}=...)")
                if not hasattr(kind, name):
                    raise AttributeError(
                        f"{kind.__name__} has no attribute {name!r}; its "
                        "options are arguments of the constructor, such as "
                        f"{kind.__name__}(timeout=60)")
            super().__setattr__(name, value)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickled and copied as what it was made with, a token in the clear:
        the twin is another client of the same arguments, and reads the
        environment where it is made. TypeError where credentials were given."""
        if self._arguments["credentials"] is not None:
            raise TypeError("a client with credentials cannot be pickled; "
                            "make it with ca_file, certificate_file and "
                            "key_file instead")
        return _make, (type(self), self._arguments, self._settings())

    def __repr__(self) -> str:
        """With the address that is dialed, and nothing secret."""
        name = type(self).__name__
        model = f", model={self._model!r}" if self._model else ""
        return f"<encoderd.{name} of {self._methods.link.target}{model}>"

    def _settings(self) -> Dict[str, Any]:
        """Attributes that were set since; the twin has them, too."""
        return {}

    def _name(self, model: Optional[str]) -> str:
        return self._model if model is None else text("model", model)

    def _limit(self, timeout: Optional[float]) -> Optional[float]:
        """Seconds for a call; None: no limit. timeout: of a method; None: the
        client's."""
        return self._timeout if timeout is None else seconds("timeout",
                                                             timeout)


def _check_is_no_model(target: Any) -> None:
    """ValueError for a name of the Hub or a folder: what SentenceTransformer
    takes first."""
    if isinstance(target, str) and (
            is_hub_name(target)
            or ("/" in target and os.path.isdir(os.path.expanduser(target)))):
        raise ValueError(
            f"target is {target!r}: that looks like a model; pass the address "
            f"of its server, such as \"{DEFAULT_TARGET}\" (encoderd.Server "
            "starts one)")


def _make(kind: Type[ClientBase], arguments: Dict[str, Any],
          settings: Dict[str, Any]) -> ClientBase:
    client = kind(**arguments)
    for name, value in settings.items():
        setattr(client, name, value)
    return client
