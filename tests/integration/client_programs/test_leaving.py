"""A stream that is opened while its server leaves. gRPC opens one that the
server has not read again; while nobody listens, it must not stay silent."""

import asyncio
import contextlib
import struct
import threading
from concurrent import futures

import encoderd
import grpc
import pytest
from either_client import KINDS, ask
from encoderd._connection_errors import Link
from encoderd._stream_asyncio import Stream
from python_service import bound, serve
from stream_service import PATIENCE, Streams, texts

SETTINGS, PING, GOAWAY, HEADERS, ACK = 4, 6, 7, 1, 1


def frame(kind, flags, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags, 0, 0, 0, 0]
                                                    ) + body


class Leaving:
    """Takes one connection. At its first call it listens no more and says that
    it has read no call. Until close() the system gives its port to nobody else
    who does not ask for it by its number."""

    def __init__(self):
        self._held = bound(0)
        port = self._held.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self._listener = bound(port)
        self._listener.settimeout(PATIENCE)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        with self._listener:
            connection, _ = self._listener.accept()
            connection.settimeout(PATIENCE)
            with connection, connection.makefile("rb") as frames:
                frames.read(24)  # HTTP/2's preface
                connection.sendall(frame(SETTINGS, 0))
                self._answer_until(HEADERS, connection, frames)
                self._listener.close()
                connection.sendall(frame(GOAWAY, 0, bytes(8))
                                   + frame(PING, 0, bytes(8)))
                # The client has read that before the connection ends.
                self._answer_until(PING, connection, frames)

    @staticmethod
    def _answer_until(wanted, connection, frames):
        """wanted: the kind of a frame; of PING, the answer to one. Also ends
        with the connection."""
        while True:
            head = frames.read(9)
            if len(head) < 9:
                return
            body = frames.read(int.from_bytes(head[:3], "big"))
            kind, is_answer = head[3], bool(head[4] & ACK)
            if kind == wanted and (kind != PING or is_answer):
                return
            if kind in (SETTINGS, PING) and not is_answer:
                connection.sendall(frame(kind, ACK,
                                         body if kind == PING else b""))

    def wait(self):
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def close(self):
        self._held.close()


@pytest.fixture
def leave():
    """Makes servers that leave."""
    with contextlib.ExitStack() as made:
        yield lambda: made.enter_context(contextlib.closing(Leaving()))


@KINDS
def test_a_stream_that_a_leaving_server_did_not_read_resumes(kind, leave):
    leaving = leave()
    with futures.ThreadPoolExecutor(1) as threads:
        found = threads.submit(ask, kind, leaving.address, "embed_stream",
                               texts(3), settings={"timeout": PATIENCE})
        leaving.wait()
        with serve(Streams(), address=leaving.address):
            numbers = [int(each.vector[0]) for each in found.result()]
    assert numbers == [0, 1, 2]


@KINDS
def test_if_the_server_does_not_return_the_error_says_so(kind, leave):
    timeout, said = 1.0, ""
    while "listening" not in said and timeout < 60:  # on a slow machine: longer
        leaving = leave()
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, leaving.address, "embed_stream", texts(3),
                settings={"timeout": timeout})
        leaving.wait()
        said = str(caught.value)
        timeout *= 2
    assert caught.type is encoderd.UnavailableError
    assert caught.value.message == (
        f"no server is listening at {leaving.address}")


class Over:
    """A method whose call is over when its reading begins, which waits without
    end in gRPC 1.85."""

    link = Link("there", False)

    def __call__(self, requests, wait_for_ready):
        return self

    def done(self):
        return True

    def cancel(self):
        return False

    async def code(self):
        return grpc.StatusCode.UNAVAILABLE

    async def details(self):
        return "gone"

    async def initial_metadata(self):
        return grpc.aio.Metadata()

    trailing_metadata = initial_metadata

    async def __aiter__(self):
        await asyncio.Event().wait()
        yield


def test_a_call_that_is_over_before_it_is_read_ends_its_stream():
    async def work():
        happened = asyncio.Event()
        stream = Stream(Over(), None, happened.set)
        await asyncio.wait_for(happened.wait(), PATIENCE)
        event = stream.take()
        await stream.close()
        return event

    assert asyncio.run(work()).error.code is grpc.StatusCode.UNAVAILABLE


def test_closing_ends_a_stream_that_waits_for_a_server(gone):
    async def work():
        client = encoderd.AsyncClient(gone)
        happened = asyncio.Event()
        stream = Stream(client._methods["EmbedStream"], None, happened.set)
        await asyncio.sleep(0.02)
        await client.close()
        await asyncio.wait_for(happened.wait(), PATIENCE)
        event = stream.take()
        await stream.close()
        return event

    assert asyncio.run(work()).error.message == "the client was closed"
