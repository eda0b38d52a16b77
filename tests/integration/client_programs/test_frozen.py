"""Both clients, when a connection goes silent without an end, as it does when
the server's machine or the network between vanishes; and when it takes long to
be made."""

import asyncio
import contextlib
import itertools
import socket
import threading
import time

import encoderd
import pytest
from conftest import encoderctl
from encoderd import _channel
from python_service import serve
from stream_service import PATIENCE, Streams, answer, texts

# Pings that a slow machine, too, answers in time. Should one be late, the
# clients only connect once more.
PING_MS = 300
PING_TIMEOUT_MS = 3000


class Service(Streams):
    """before_answer: called once, when the next call of Embed has come."""

    before_answer = None

    def Embed(self, request, context):
        act, self.before_answer = self.before_answer, None
        if act is not None:
            act()
        return answer(request)


class Proxy:
    """Passes bytes between its connections and `target`, until freeze(): the
    connections so far stay open and pass nothing; later ones work. Each begins
    to pass after `late` seconds."""

    def __init__(self, target, late=0.0):
        self._late = late
        host, _, port = target.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open = []  # sockets
        self._frozen = threading.Event()  # of the connections so far
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self):
        with self._lock:
            self._frozen.set()
            self._frozen = threading.Event()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            time.sleep(self._late)
            server = socket.create_connection(self._server)
            with self._lock:
                self.connections += 1
                self._open += [client, server]
                frozen = self._frozen
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(*ends, frozen),
                                 daemon=True).start()

    @staticmethod
    def _pass(source, sink, frozen):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if frozen.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        with self._lock:
            for end in (self._listener, *self._open):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


@pytest.fixture
def proxy(monkeypatch):
    monkeypatch.setattr(_channel, "PING_MS", PING_MS)
    monkeypatch.setattr(_channel, "PING_TIMEOUT_MS", PING_TIMEOUT_MS)
    # gRPC's servers accept few pings by default; encoderd one every 5 s.
    with serve(Service(), options=[
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 1),
            ("grpc.http2.max_ping_strikes", 0)]) as service:
        proxy = Proxy(service.target)
        proxy.service = service
        yield proxy
        proxy.close()


def encode(target, freeze):
    with encoderd.Client(target, timeout=PATIENCE) as client:
        client.encode(texts(1))
        freeze()
        return client.encode(texts(9), batch_size=2)[:, 0].tolist()


def encode_async(target, freeze):
    async def main():
        async with encoderd.AsyncClient(target, timeout=PATIENCE) as client:
            await client.encode(texts(1))
            freeze()
            return (await client.encode(texts(9), batch_size=2)
                    )[:, 0].tolist()
    return asyncio.run(main())


def stream(target, freeze):
    with encoderd.Client(target, timeout=PATIENCE) as client:
        found = client.embed_stream(texts(9), batch_size=2,
                                    requests_in_flight=2)
        first = [next(found)]
        freeze()
        return [int(result.vector[0])
                for result in itertools.chain(first, found)]


def stream_async(target, freeze):
    async def main():
        async with encoderd.AsyncClient(target, timeout=PATIENCE) as client:
            found = client.embed_stream(texts(9), batch_size=2,
                                        requests_in_flight=2)
            first = await found.__anext__()
            freeze()
            return [int(first.vector[0])] + [
                int(result.vector[0]) async for result in found]
    return asyncio.run(main())


@pytest.mark.parametrize("work", [encode, encode_async, stream, stream_async])
def test_calls_on_a_connection_that_went_silent_go_on_over_another(proxy,
                                                                   work):
    assert work(proxy.target, proxy.freeze) == list(range(9))
    assert proxy.connections > 1


def test_a_call_whose_answer_is_lost_is_made_again(proxy):
    with encoderd.Client(proxy.target, timeout=PATIENCE) as client:
        client.encode(texts(1))
        proxy.service.before_answer = proxy.freeze
        assert client.encode(texts(3))[:, 0].tolist() == [0, 1, 2]
    assert proxy.connections > 1


@pytest.mark.parametrize("call", [
    lambda target: encoderd.Client(target, timeout=PATIENCE).encode(["one"]),
    lambda target: encoderctl(target, "embed", "one").check_returncode()],
    ids=["python", "encoderctl"])
def test_a_connection_may_take_long_to_be_made(fake, call):
    """As TLS does over many round trips."""
    proxy = Proxy(fake.target, late=2)
    call(proxy.target)
    assert proxy.connections == 1
    proxy.close()


def test_pings_are_as_rare_as_encoderd_and_other_servers_accept():
    options = dict(_channel.channel_options("127.0.0.1:1", 1))
    # server/rpc/grpc_server.cc: one every 5 s.
    assert options["grpc.keepalive_time_ms"] >= 10_000
    assert options["grpc.keepalive_timeout_ms"] >= 10_000
    assert options["grpc.http2.ping_timeout_ms"] >= 10_000
    # Also of a call that sends and receives nothing for minutes.
    assert options["grpc.http2.max_pings_without_data"] == 0
    # An idle client leaves its server alone.
    assert not options.get("grpc.keepalive_permit_without_calls")
