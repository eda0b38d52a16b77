"""What gRPC says of a connection that failed, put plainly."""

import pathlib

import grpc
import pytest
from encoderd._connection_errors import Link, explain_connection

# This client's words for the faults of connection_errors.txt.
NOBODY = "no encoderd answers at there"
FAULTS = {
    "refused": "no server is listening at there",
    "http": "there speaks HTTP, not gRPC",
    "no_grpc": "there does not speak gRPC",
    "http_status": "there answers with HTTP status 404 instead of gRPC",
    "no_name": f"{NOBODY}: the host name cannot be resolved",
    "silent": f"{NOBODY}: the connection timed out",
    "timed_out": f"{NOBODY}: the connection timed out",
    "unreachable": f"{NOBODY}: the network has no route to it",
    "no_socket": f"{NOBODY}: no such socket",
    "no_permission": f"{NOBODY}: permission denied",
    "unknown": NOBODY,
    "not_trusted": "the certificate of there is not trusted",
    "expired": "the certificate of there has expired, or this machine's clock "
               "is wrong",
    "not_yet_valid": "the certificate of there is not valid yet, or this "
                     "machine's clock is wrong",
    "other_name": "the certificate of there is for another name",
    "no_authorities": NOBODY,
    "own_certificate": "there refuses this client's certificate, or requires "
                       "one",
    "no_tls": "there does not speak TLS",
    "no_alpn": NOBODY,
    "ended_handshake": NOBODY,
    "closed": "there closed the connection at once"}


def connection_errors():
    """(words, whether encrypted, fault) of the table of the C++ test, too."""
    table = (pathlib.Path(__file__).parents[2] / "support"
             / "connection_errors.txt")
    beginnings = []
    for line in table.read_text().splitlines():
        words, *entry = line.split(" | ")
        if not line or line.startswith("#"):
            continue
        if not entry:
            beginnings.append(words.removesuffix("..."))
            continue
        clients, fault = entry
        for encrypted in (False, True):
            if clients in ("any", "tls" if encrypted else "plain"):
                for beginning in beginnings if words[:4] == "... " else [""]:
                    yield (beginning + words.removeprefix("... "), encrypted,
                           fault)


@pytest.mark.parametrize("words, encrypted, fault", list(connection_errors()))
def test_the_fault_of_grpcs_words_is_found_as_by_the_cpp_client(
        words, encrypted, fault):
    message, remedy = explain_connection(grpc.StatusCode.UNAVAILABLE, words,
                                         Link("there", encrypted))
    assert message == FAULTS[fault] and remedy


def test_every_fault_is_in_the_table():
    assert {fault for _, _, fault in connection_errors()} == set(FAULTS)


@pytest.mark.parametrize("words, wanted", [
    ("Received http2 header with status: 502",
     "there answers with HTTP status 502 instead of gRPC"),
    ("Socket closed", "the connection to there was lost during the call"),
    ("Stream removed (ping timeout)",
     "the connection to there was lost during the call"),
    ("keepalive watchdog timeout",
     "the connection to there was lost during the call"),
    ("failed to connect to all addresses", "no encoderd answers at there")])
def test_what_grpc_says_is_put_plainly(words, wanted):
    message, remedy = explain_connection(grpc.StatusCode.UNAVAILABLE, words,
                                         Link("there", False))
    assert message == wanted and remedy


def test_words_without_a_known_meaning_stay_as_they_are():
    for encrypted in (False, True):
        for code, words in ((grpc.StatusCode.UNAVAILABLE, "strange"),
                            (grpc.StatusCode.INTERNAL, "Socket closed")):
            assert explain_connection(code, words, Link("there", encrypted)
                                      ) == (words, "")
