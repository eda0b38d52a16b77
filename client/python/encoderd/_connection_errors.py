"""What gRPC's words mean where a connection could not be made, and which
option mends it. gRPC keeps the fault in its text alone, in the words of the
TLS library."""

from __future__ import annotations

import re

_UNTRUSTED = ("the server's certificate is not from an authority that this "
              "client trusts; see ca_file")
_LATE = ("the server's certificate has expired, or this machine's clock is "
         "wrong")
_EARLY = ("the server's certificate is not valid yet, or this machine's clock "
          "is wrong")
_MISNAMED = ("the server's certificate is not for the name in the target; see "
             "server_name")
_PLAIN = "the server speaks no TLS"
_MAYBE_TLS = ("the server closed the connection at once; perhaps it wants TLS: "
              "see tls and ca_file")
_MAYBE_CERTIFICATE = ("the server closed the connection at once; perhaps it "
                      "asks for a client's certificate that it trusts: see "
                      "certificate_file")

# The first that is found counts.
_FAULTS = [
    (re.compile(r"certificate has expired"), _LATE),
    (re.compile(r"certificate is not yet valid"), _EARLY),
    (re.compile(r"CERTIFICATE_VERIFY_FAILED"), _UNTRUSTED),
    (re.compile(r"Hostname Verification Check failed"
                r"|is not in peer certificate"), _MISNAMED),
    (re.compile(r"WRONG_VERSION_NUMBER"), _PLAIN),
    (re.compile(r"ALERT_(?:\w*CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)"),
     _MAYBE_CERTIFICATE),
]
# TLS 1.3 has a server look at the client's certificate when that takes the
# handshake for done: what follows is the end, or an alert in place of data.
# The first words are those of round_robin and of pick_first.
_CLOSED = re.compile(r"(?:connections to all backends failing|"
                     r"failed to connect to all addresses).*(?:Socket closed|"
                     r"Endpoint closing|Connection reset|Broken pipe|"
                     r"Unwrap failed)")


def explain_connection(words: str, encrypted: bool) -> str:
    """What an UNAVAILABLE of gRPC's own says; before it, what that means,
    where it can be known.

    encrypted: whether this client uses TLS.
    """
    for pattern, meaning in _FAULTS:
        if pattern.search(words):
            return f"{meaning} ({words})"
    if _CLOSED.search(words):
        return f"{_MAYBE_CERTIFICATE if encrypted else _MAYBE_TLS} ({words})"
    return words
