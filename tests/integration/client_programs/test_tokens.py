"""Tokens of both clients: every call carries one, and goes where it may."""

import asyncio
import contextlib
import hashlib

import encoderd
import grpc
import pytest
from conftest import PROGRAMS
from encoderd.v1 import encoder_pb2
from secure_service import (BOTH, GOOD, TOKEN, Tokens, awaited, starting,
                            stream_alone)


@pytest.fixture
def start(certificates):
    with starting(certificates) as begin:
        yield begin


# The methods of a client that need one call of the server's each.
CALLS = [("embed", "text 1"), ("token_states", "text 1"),
         ("tokenize", "text 1"), ("inspect_positions",), ("models",),
         ("model",), ("health",)]


def call_all(work, target, **options):
    """This server lacks most of them."""
    async def main():
        async with encoderd.AsyncClient(target, **options) as client:
            for method, *arguments in CALLS:
                with contextlib.suppress(encoderd.EncoderdError):
                    await getattr(client, method)(*arguments)

    if work is awaited:
        asyncio.run(main())
        return
    with encoderd.Client(target, **options) as client:
        for method, *arguments in CALLS:
            with contextlib.suppress(encoderd.EncoderdError):
                getattr(client, method)(*arguments)


@BOTH
@pytest.mark.parametrize("plain", [True, False])
def test_every_call_carries_the_token(start, certificates, work, plain):
    tokens = Tokens()
    target = start(plain=plain, interceptors=[tokens])
    options = {"token": TOKEN}
    if not plain:
        options["ca_file"] = certificates / "ca.pem"
    assert work(target, **options) == GOOD
    call_all(work, target, **options)
    service = encoder_pb2.DESCRIPTOR.services_by_name["Encoder"]
    assert {name for name, _ in tokens.seen} == {
        "Check", *(method.name for method in service.methods)}
    assert {given for _, given in tokens.seen} == {f"Bearer {TOKEN}"}


@BOTH
def test_a_token_that_is_missing_or_unknown_is_not_tried_again(
        start, work):
    tokens = Tokens()
    target = start(plain=True, interceptors=[tokens])
    for options, reason in (({}, "BEARER_TOKEN_MISSING"),
                            ({"token": "another"}, "BEARER_TOKEN_UNKNOWN")):
        tokens.seen.clear()
        with pytest.raises(encoderd.UnauthenticatedError) as caught:
            work(target, **options)
        assert caught.value.code is grpc.StatusCode.UNAUTHENTICATED
        assert caught.value.reason == reason
        assert "another" not in str(caught.value)
        assert len(tokens.seen) == 1
    with pytest.raises(encoderd.UnauthenticatedError):
        stream_alone(work, target)
    # grpc.aio may hide the first end behind a write that was too late.
    assert len(tokens.seen) == 2 or work is awaited


@BOTH
def test_a_token_on_loopback_goes_through_no_proxy(start, work, monkeypatch):
    proxy = start(plain=True)
    target = start(plain=True, interceptors=[Tokens()])
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("grpc_proxy", f"http://{proxy}")
    port = target.rpartition(":")[2]
    for host in ("localhost", "127.0.0.1"):
        assert work(f"{host}:{port}", token=TOKEN) == GOOD


def test_the_environments_token_is_for_servers_that_ask_for_one(
        certificates, tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"one {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    monkeypatch.setenv("ENCODERD_CA_FILE", str(certificates / "ca.pem"))
    tls = {"tls_certificate_file": certificates / "server.pem",
           "tls_key_file": certificates / "server.key"}
    asks = {"bearer_token_file": tokens}
    flagfile = tmp_path / "flags"
    flagfile.write_text(f"--bearer_token_file={tokens}\n")
    for flags, token in (({}, "a b"), (tls, "a b"), (asks, TOKEN),
                         ({**tls, **asks}, TOKEN),
                         ({"flagfile": flagfile}, TOKEN)):
        monkeypatch.setenv("ENCODERD_TOKEN", token)
        with encoderd.Server({"fake": "load_ms:0"}, **flags,
                             program=PROGRAMS / "encoderd_fake_server"
                             ) as server, server.client() as client:
            assert client.model().name == "fake"
            assert bool(client._methods.metadata) == (token == TOKEN)
            with server.client(token_file=None) as other:
                assert bool(other._methods.metadata) == (token == TOKEN)
