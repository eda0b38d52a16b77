"""What a caller is told where gRPC itself failed: the address, the cause and
what to do. gRPC keeps the cause in its text alone, in the words of its
resolver, its TLS library or the operating system."""

from __future__ import annotations

import dataclasses
import re
from typing import List, Tuple

import grpc

_CORRECT = "correct the target (target= or ENCODERD_TARGET)"
_START = f"start encoderd there, or {_CORRECT}"
_GRPC_PORT = ("name encoderd's gRPC port (--listen, 8400 by default; 8401 is "
              "its HTTP port)")
BYPASS = ("check the proxy, or bypass it: put the server's host into the "
          "variable no_proxy")
_CERTIFICATE = ("set certificate_file and key_file to a pair that it "
                "trusts")


_NO_HOST = "the host name cannot be resolved"
# A name that was given without a port, such as "bge-small-en-v1.5": no label
# after the first begins with a letter, as those of domains do.
_MAYBE_MODEL = re.compile(r"([\w-]+(?:\.\d[\w-]*)*):8400")


@dataclasses.dataclass(frozen=True)
class Link:
    """What a client is connected with.

    target: the address that is dialed; encrypted: whether TLS is used.
    proxy: the variable of the proxy that it is dialed through, and its value;
        empty: none.
    """

    target: str
    encrypted: bool
    proxy: str = ""


_Fault = Tuple["re.Pattern[str]", str, str]  # words; "{at}" is the target


def _faults(*lines: Tuple[str, str, str]) -> List[_Fault]:
    return [(re.compile(words), cause, remedy)
            for words, cause, remedy in lines]


# The first that is found counts. tests/support/connection_errors.txt has the
# words as they are said: some libraries have capitals and '_' where others have
# blanks.
_TLS_FAULTS = _faults(
    ("certificate has expired",
     "the certificate of {at} has expired, or this machine's clock is wrong",
     "renew it on the server, or set the clock"),
    ("certificate is not yet valid",
     "the certificate of {at} is not valid yet, or this machine's clock is "
     "wrong", "set the clock"),
    ("(?i)certificate[_ ]verify[_ ]failed",
     "the certificate of {at} is not trusted",
     "set ca_file to the file of its CA"),
    ("Hostname Verification Check failed|is not in peer certificate",
     "the certificate of {at} is for another name",
     "connect by a name in the certificate, or set server_name to one"),
    ("(?i)wrong[_ ]version[_ ]number|packet[_ ]length[_ ]too[_ ]long",
     "{at} does not speak TLS",
     "check the port, or enable TLS on the server (--tls_certificate_file, "
     "--tls_key_file)"),
    (r"(?i)alert[_ ](?:[\w ]*certificate|unknown[_ ]ca|handshake[_ ]failure)",
     "{at} refuses this client's certificate, or requires one",
     _CERTIFICATE))

# In TLS 1.3 the client considers the handshake done before the server has
# checked its certificate. A refusal then arrives as a closed connection, or as
# an alert instead of data. The first words are those of round_robin and of
# pick_first.
_CLOSED = re.compile(r"(?:connections to all backends failing|"
                     r"failed to connect to all addresses).*(?:Socket closed|"
                     r"Endpoint closing|Endpoint read failed|"
                     r"Connection reset|Broken pipe|Unwrap failed)")

_HTTP_STATUS, = _faults(
    ("Received http2 header with status: (?P<status>[0-9]+)",
     "{at} answers with HTTP status {status} instead of gRPC",
     f"{_GRPC_PORT}, or look at the proxy between"))
_OTHER_FAULTS = _faults(
    ("HTTP proxy returned response code (?P<status>[0-9]+)",
     "no connection to {at}: the proxy answers with HTTP status {status}",
     _CORRECT),
    (r"http1\.x server|HTTP/1\.|\(HTTP status",
     "{at} speaks HTTP, not gRPC", _GRPC_PORT),
    ("Failed parsing HTTP/2", "{at} does not speak gRPC", _GRPC_PORT),
    ("Connection refused",
     "no server is listening at {at}", _START),
    ("No such file or directory",
     "no encoderd answers at {at}: no such socket", _START),
    ("Permission denied",
     "no encoderd answers at {at}: permission denied", _CORRECT),
    ("No route to host|Network is unreachable|Host is down",
     "no encoderd answers at {at}: the network has no route to it", _CORRECT),
    ("DNS|[Rr]esol(ution|ving)|C-ares|lookup|[Nn]ame or service not known",
     f"no encoderd answers at {{at}}: {_NO_HOST}",
     f"check its spelling, or {_CORRECT}"),
    ("(?<!ping )(?<!watchdog )[Tt]imed? ?out|FD [Ss]hutdown|[Dd]eadline",
     "no encoderd answers at {at}: the connection timed out",
     f"check that the port is reachable from here, or {_CORRECT}"),
    ("connections to all backends failing|failed to connect|"
     "[Ee]mpty address list",
     "no encoderd answers at {at}", _START),
    ("Socket closed|Connection reset|Broken pipe|GOAWAY|keepalive|recvmsg|"
     "ping timeout",
     "the connection to {at} was lost during the call",
     "repeat the call; if the server ended, its log says why"))


def _find(faults: List[_Fault], words: str, at: str) -> Tuple[str, str]:
    for pattern, cause, remedy in faults:
        match = pattern.search(words)
        if match:
            return cause.format(at=at, **match.groupdict()), remedy
    return words, ""


def explain_connection(code: grpc.StatusCode, words: str, link: Link
                       ) -> Tuple[str, str]:
    """What an error of gRPC's own means, and what to do; the words as they
    are, and "", where neither is known.

    code, words: of the error. A DEADLINE_EXCEEDED is explained where its
    timeout is known.
    """
    cause, remedy = _explain(code, words, link)
    if link.proxy and remedy and code is grpc.StatusCode.UNAVAILABLE:
        return (f"{cause}; it was dialed through a proxy ({link.proxy})",
                f"{BYPASS}; or {remedy}")
    return cause, remedy


def _explain(code: grpc.StatusCode, words: str, link: Link
             ) -> Tuple[str, str]:
    at = link.target
    if _HTTP_STATUS[0].search(words):
        return _find([_HTTP_STATUS], words, at)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (f"the server at {at} does not know this method: it is another "
                "gRPC server, or an older encoderd", _CORRECT)
    if code is not grpc.StatusCode.UNAVAILABLE:
        return words, ""
    found = _find(_TLS_FAULTS, words, at)
    if found[1]:
        return found
    if _CLOSED.search(words):
        if link.encrypted:
            return (f"{at} closed the connection at once",
                    f"if it requires a client certificate, {_CERTIFICATE}")
        return (f"{at} closed the connection at once",
                "if it expects TLS, set tls or ca_file; if it has reached its "
                "limit of connections from this host, close some; else "
                "correct the port")
    cause, remedy = _find(_OTHER_FAULTS, words, at)
    name = _MAYBE_MODEL.fullmatch(at)
    if name and cause.endswith(_NO_HOST):
        remedy += (f"; if {name[1]!r} is a model, pass it as model=, and the "
                   "address of its server as target")
    return cause, remedy
