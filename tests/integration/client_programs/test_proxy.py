"""Both clients and the HTTP proxy of the environment: this machine is dialed
without it, and an error of another one names it."""

import asyncio
import contextlib
import socket
import threading

import encoderd
import pytest
from encoderd._proxy import proxy_of

ELSEWHERE = "192.0.2.1:8400"  # of no machine (RFC 5737)


@pytest.fixture(autouse=True)
def no_proxy_from_outside(monkeypatch):
    for name in ("grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy",
                 "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def refusing_proxy():
    """Answers every connection with 403; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):  # closed
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def encode(kind, target):
    if kind is encoderd.Client:
        with encoderd.Client(target) as client:
            return client.encode("one")

    async def main():
        async with encoderd.AsyncClient(target) as client:
            return await client.encode("one")
    return asyncio.run(main())


KINDS = pytest.mark.parametrize("kind", [encoderd.Client,
                                         encoderd.AsyncClient])


@KINDS
@pytest.mark.parametrize("variable", ["grpc_proxy", "https_proxy",
                                      "http_proxy"])
def test_this_machine_is_dialed_without_a_proxy(kind, fake, gone, monkeypatch,
                                                variable):
    monkeypatch.setenv(variable, f"http://{gone}")
    port = fake.target.rpartition(":")[2]
    for target in (fake.target, f"localhost:{port}", f"dns:///{fake.target}"):
        assert encode(kind, target).shape == (6,)


@KINDS
def test_an_error_of_another_machine_names_the_proxy(kind, monkeypatch):
    with refusing_proxy() as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:secret@{proxy}")
        with pytest.raises(encoderd.UnavailableError) as caught:
            encode(kind, ELSEWHERE)
    assert str(caught.value) == (
        f"UNAVAILABLE: no connection to {ELSEWHERE}: the proxy answers with "
        "HTTP status 403; it was dialed through a proxy "
        f"(http_proxy=http://{proxy}); check the proxy, or bypass it: put the "
        "server's host into the variable no_proxy; or correct the target "
        "(target= or ENCODERD_TARGET)")


@pytest.mark.parametrize("variables, target, wanted", [
    ({}, "far:8400", ""),
    ({"http_proxy": "http://p:1"}, "far:8400", "http_proxy=http://p:1"),
    ({"http_proxy": "http://p:1", "grpc_proxy": "http://q:2/"}, "far:8400",
     "grpc_proxy=http://q:2"),
    ({"http_proxy": "http://p:1", "https_proxy": ""}, "far:8400", ""),
    ({"http_proxy": "http://user:secret@p:1"}, "dns:///far:8400",
     "http_proxy=http://p:1"),
    ({"http_proxy": "socks5://p:1"}, "far:8400", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "near, far"}, "far:8400", ""),
    ({"http_proxy": "http://p:1", "no_proxy": ".example"}, "far.example:8400",
     ""),
    ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "10.1.2.3:8400",
     ""),
    ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "11.1.2.3:8400",
     "http_proxy=http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "far", "no_grpc_proxy": "x"},
     "far:8400", "http_proxy=http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "far"},
     "dns://10.0.0.1/far:8400", ""),
    ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.1"},
     "dns://10.0.0.1/far:8400", "http_proxy=http://p:1"),
    ({"http_proxy": "http://p:1", "no_proxy": "::2"}, "ipv6:[::2]:1,[::3]:2",
     ""),
    ({"http_proxy": "http://p:1"}, "[::1]:8400", ""),
    ({"http_proxy": "http://p:1"}, "unix:/run/encoderd.sock", "")])
def test_a_proxy_is_found_as_grpc_finds_it(monkeypatch, variables, target,
                                           wanted):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(target) == wanted
