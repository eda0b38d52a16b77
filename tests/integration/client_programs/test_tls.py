"""TLS of both clients, against servers in this process: who is trusted, and
what is said where a handshake fails."""

import contextlib
import os
import ssl

import encoderd
import grpc
import pytest
from secure_service import (BOTH, GOOD, TOKEN, Tokens, health, openssl_server,
                            starting, stream_alone)

# After "the certificate of HOST:PORT", or HOST:PORT.
ANOTHER_AUTHORITY = "is not trusted; set ca_file to the file of its CA"
ANOTHER_NAME = ("is for another name; connect by a name in the certificate, or "
                "set server_name to one")
NO_TLS = ("does not speak TLS; check the port, or enable TLS on the server "
          "(--tls_certificate_file, --tls_key_file)")
MAYBE_TLS = ("closed the connection at once; if it expects TLS, set tls or "
             "ca_file; if it has reached its limit of connections from this "
             "host, close some; else correct the port")
NO_CERTIFICATE = ("closed the connection at once; if it requires a client "
                  "certificate, set certificate_file and key_file to a pair "
                  "that it trusts")
REFUSED = ("refuses this client's certificate, or requires one; set "
           "certificate_file and key_file to a pair that it trusts")


@pytest.fixture
def start(certificates):
    with starting(certificates) as begin:
        yield begin


def failure(work, target, call=health, **options):
    """What an UNAVAILABLE says after the address; nobody waits for the
    timeout, and nothing of gRPC's is chained to it."""
    with pytest.raises(encoderd.UnavailableError) as caught:
        call(work, target, timeout=3600, **options)
    error = caught.value
    assert error.reason == ""
    assert error.__cause__ is None and error.__suppress_context__
    assert error.metadata["grpc_message"] not in str(error)
    prefix, address, words = str(error).partition(f"{target} ")
    assert address and prefix in ("UNAVAILABLE: ",
                                  "UNAVAILABLE: the certificate of ")
    return words


@BOTH
def test_tls_with_the_servers_authority(start, certificates, work):
    assert work(start(), ca_file=certificates / "ca.pem") == GOOD


@BOTH
def test_the_systems_authorities_are_asked_where_none_are_named(
        start, certificates, work, monkeypatch):
    monkeypatch.delenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", raising=False)
    target = start()
    assert failure(work, target, tls=True) == ANOTHER_AUTHORITY
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    assert work(target, tls=True) == GOOD


@BOTH
def test_credentials_of_grpc_still_work(start, certificates, work):
    credentials = grpc.ssl_channel_credentials(
        (certificates / "ca.pem").read_bytes())
    assert work(start(), credentials=credentials) == GOOD


@BOTH
def test_a_client_shows_its_certificate_to_a_server_that_asks(
        start, certificates, work):
    target = start(clients_of="ca")
    ca = certificates / "ca.pem"
    assert work(target, ca_file=ca,
                certificate_file=certificates / "client.pem",
                key_file=certificates / "client.key") == GOOD
    assert failure(work, target, ca_file=ca) == NO_CERTIFICATE
    assert failure(work, target, ca_file=ca,
                   certificate_file=certificates / "foreign_client.pem",
                   key_file=certificates / "foreign_client.key"
                   ) == NO_CERTIFICATE


@BOTH
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2,
                                     ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", [None, "foreign_client", "expired_client"])
def test_a_certificate_that_the_server_does_not_take_is_told_of(
        certificates, work, version, name):
    options = {"ca_file": certificates / "ca.pem"}
    if name:
        options.update(certificate_file=certificates / f"{name}.pem",
                       key_file=certificates / f"{name}.key")
    with openssl_server(certificates, version) as target:
        assert failure(work, target, **options) == (
            REFUSED if version is ssl.TLSVersion.TLSv1_2 else NO_CERTIFICATE)


@BOTH
def test_a_server_of_another_authority_is_refused(start, certificates, work):
    def embed(work, target, **options):  # gRPC makes five attempts at it
        work(target, **options)

    for call in (health, embed):
        message = failure(work, start(), call,
                          ca_file=certificates / "foreign_ca.pem")
        assert message == ANOTHER_AUTHORITY


@BOTH
def test_a_server_of_another_authority_at_localhost_is_refused(
        start, certificates, work):
    port = start().rpartition(":")[2]  # of 127.0.0.1: not of ::1
    assert failure(work, f"localhost:{port}", health,
                   ca_file=certificates / "foreign_ca.pem"
                   ) == ANOTHER_AUTHORITY


@BOTH
@pytest.mark.parametrize("name, fault", [("expired", "has expired"),
                                         ("future", "is not valid yet")])
def test_a_certificate_out_of_its_time_is_refused(
        start, certificates, work, name, fault):
    assert failure(work, start(name=name),
                   ca_file=certificates / "ca.pem").startswith(
        f"{fault}, or this machine's clock is wrong; ")


@BOTH
def test_a_server_of_another_name_is_refused(start, certificates, work):
    target = start()
    ca = certificates / "ca.pem"
    assert failure(work, target, ca_file=ca,
                   server_name="encoder.example") == ANOTHER_NAME
    assert work(target, ca_file=ca, server_name="localhost") == GOOD


@BOTH
def test_a_server_without_tls_is_named_as_that(start, certificates, work):
    assert failure(work, start(plain=True),
                   ca_file=certificates / "ca.pem") == NO_TLS


@BOTH
def test_a_plain_client_is_told_that_the_server_may_want_tls(start, work):
    assert failure(work, start()) == MAYBE_TLS


@BOTH
def test_a_stream_tells_of_the_handshake_when_its_patience_ends(
        start, certificates, work):
    target = start()
    # More time, until a slow machine gets to a first attempt's end.
    for timeout in (1, 2, 4, 8, 16, 32):
        with pytest.raises(encoderd.EncoderdError) as caught:
            stream_alone(work, target, timeout=timeout,
                         ca_file=certificates / "foreign_ca.pem")
        if caught.value.code is grpc.StatusCode.UNAVAILABLE:
            assert str(caught.value).endswith(ANOTHER_AUTHORITY)
            return
    pytest.fail(f"no handshake in {timeout} s")


@BOTH
def test_the_environment_gives_what_no_option_does(
        start, certificates, work, tmp_path, monkeypatch):
    target = start(clients_of="ca", interceptors=[Tokens()])
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    for name, value in (("CA_FILE", certificates / "ca.pem"),
                        ("CERTIFICATE_FILE", certificates / "client.pem"),
                        ("KEY_FILE", certificates / "client.key"),
                        ("TOKEN_FILE", path), ("SERVER_NAME", "localhost")):
        monkeypatch.setenv(f"ENCODERD_{name}", str(value))
    assert work(target) == GOOD
    monkeypatch.setenv("ENCODERD_SERVER_NAME", "encoder.example")
    assert failure(work, target) == ANOTHER_NAME
    assert work(target, server_name="localhost") == GOOD


@BOTH
def test_files_may_be_pipes(start, certificates, work):
    target = start(clients_of="ca")
    with contextlib.ExitStack() as ends:
        def piped(name):
            reader, writer = os.pipe()
            ends.callback(os.close, reader)
            with open(writer, "wb") as file:
                file.write((certificates / name).read_bytes())
            return f"/dev/fd/{reader}"

        assert work(target, ca_file=piped("ca.pem"),
                    certificate_file=piped("client.pem"),
                    key_file=piped("client.key")) == GOOD
