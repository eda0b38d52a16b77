"""A stream that is opened while its server leaves. gRPC opens one that the
server has not read again; while nobody listens, it must not stay silent."""

import asyncio
import socket
import struct
import threading

import encoderd
import pytest
from python_service import serve
from stream_service import PATIENCE, Streams, texts

SETTINGS, PING, GOAWAY, HEADERS, ACK = 4, 6, 7, 1, 1


def frame(kind, flags, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags, 0, 0, 0, 0]
                                                    ) + body


class Leaving:
    """Takes one connection. At its first call it closes its port and says that
    it has read no call."""

    def __init__(self):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.address = "127.0.0.1:%d" % self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        connection, _ = self._socket.accept()
        with connection, connection.makefile("rb") as frames:
            frames.read(24)  # HTTP/2's preface
            connection.sendall(frame(SETTINGS, 0))
            self._answer_until(HEADERS, connection, frames)
            self._socket.close()
            connection.sendall(frame(GOAWAY, 0, bytes(8))
                               + frame(PING, 0, bytes(8)))
            # The client has read that before the connection ends.
            self._answer_until(PING, connection, frames)

    @staticmethod
    def _answer_until(wanted, connection, frames):
        """wanted: the kind of a frame; of PING, the answer to one."""
        while True:
            head = frames.read(9)
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


def blocking(target, timeout):
    with encoderd.Client(target, timeout=timeout) as client:
        return list(client.embed_stream(texts(3)))


def awaited(target, timeout):
    async def main():
        async with encoderd.AsyncClient(target, timeout=timeout) as client:
            return [found async for found in client.embed_stream(texts(3))]
    return asyncio.run(main())


BOTH = pytest.mark.parametrize("work", [blocking, awaited])


@BOTH
def test_a_stream_that_a_leaving_server_did_not_read_resumes(work):
    leaving = Leaving()
    found = []
    reader = threading.Thread(
        target=lambda: found.extend(work(leaving.address, PATIENCE)))
    reader.start()
    leaving.wait()
    with serve(Streams(), address=leaving.address):
        reader.join()
    assert [int(each.vector[0]) for each in found] == [0, 1, 2]


@BOTH
def test_if_the_server_does_not_return_the_error_says_so(work):
    timeout, said = 1.0, ""
    while "listening" not in said and timeout < 60:  # on a slow machine: longer
        leaving = Leaving()
        with pytest.raises(encoderd.EncoderdError) as caught:
            work(leaving.address, timeout)
        leaving.wait()
        said = str(caught.value)
        timeout *= 2
    assert caught.type is encoderd.UnavailableError
    assert caught.value.message == (
        f"no server is listening at {leaving.address}")
