"""Both clients, when the name of a server stands for another address from now
on, as it does when Kubernetes replaces all pods of a service."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

import encoderd
import grpc
import pytest
from either_client import KINDS
from python_service import Model, serve
from stream_service import PATIENCE

# gRPC itself looks a name up at most once in so long, in seconds.
GRPC_INTERVAL = 30


class NameServer:
    """Says that every name stands for `address`."""

    def __init__(self, address):
        self.address = address
        self.lookups = []  # by time.monotonic()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            query, sender = self._socket.recvfrom(2048)
            if not query:  # close()
                return
            end = query.index(0, 12) + 5  # of the question: name, type, class
            a_record = query[end - 4:end - 2] == b"\0\1"
            answer = (query[:2] + b"\x85\x80"
                      + struct.pack(">4H", 1, a_record, 0, 0) + query[12:end])
            if a_record:
                self.lookups.append(time.monotonic())
                answer += (b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, 1, 4)
                           + socket.inet_aton(self.address))
            self._socket.sendto(answer, sender)

    def close(self):
        self._socket.sendto(b"", self._socket.getsockname())


@pytest.fixture
def names():
    server = NameServer("127.0.0.1")
    yield server
    server.close()


@contextlib.contextmanager
def asking(kind, target):
    """A function that asks once, and whether it was answered."""
    with contextlib.ExitStack() as stack:
        if kind is encoderd.Client:
            client = stack.enter_context(encoderd.Client(target))
            encode = client.encode
        else:
            run = stack.enter_context(asyncio.Runner()).run
            client = encoderd.AsyncClient(target)
            stack.callback(lambda: run(client.close()))

            def encode(text):
                return run(client.encode(text))

        def ask():
            try:
                encode("text")
            except encoderd.EncoderdError as error:
                assert error.code == grpc.StatusCode.UNAVAILABLE, error
                return False
            return True
        yield ask


def seconds_between_lookups(kind, names):
    """Of a client whose server moves between the two."""
    names.address = "127.0.0.1"
    names.lookups.clear()
    with contextlib.ExitStack() as stack:
        with serve(Model()) as first:
            port = first.target.rpartition(":")[2]
            ask = stack.enter_context(asking(
                kind, f"dns://{names.target}/moved.example:{port}"))
            assert ask()
            names.address = "127.0.0.2"
            before = len(names.lookups)
        stack.enter_context(serve(Model(), address=f"127.0.0.2:{port}"))
        give_up = time.monotonic() + PATIENCE
        while not ask():
            assert time.monotonic() < give_up
    return names.lookups[before] - names.lookups[before - 1]


@KINDS
def test_a_server_that_moved_is_found_before_grpc_would_look(kind, names):
    # Again where this machine stood still for so long.
    assert any(seconds_between_lookups(kind, names) < GRPC_INTERVAL / 2
               for _ in range(3))
