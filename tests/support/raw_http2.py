"""A gRPC caller in bare HTTP/2 frames: thousands of calls that cost it nothing.
It reads nothing and answers no ping: the server takes it for dead within a
minute."""

import socket
import struct

DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4


class RawHttp2:
    """A connection to loopback, until the end of `with`. window: the bytes that
    the peer may answer each call with; None: as HTTP/2 has it."""

    def __init__(self, port, window=None):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._next = 1
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._send(SETTINGS, 0, 0, b"" if window is None else
                   struct.pack(">HI", INITIAL_WINDOW_SIZE, window))

    def call(self, path):
        """Begins a call of "/package.Service/Method"; returns its stream."""
        stream = self._next
        self._next += 2
        block = b"".join(
            b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
            for name, value in (
                (b":method", b"POST"), (b":scheme", b"http"),
                (b":path", path.encode()), (b":authority", b"test"),
                (b"te", b"trailers"), (b"content-type", b"application/grpc")))
        self._send(HEADERS, END_HEADERS, stream, block)
        return stream

    def send(self, stream, message):
        """A message. The peer's window is the caller's to mind."""
        self._send(DATA, 0, stream, struct.pack(">BI", 0, len(message)) + message)

    def _send(self, kind, flags, stream, payload):
        self._socket.sendall(struct.pack(">I", len(payload))[1:]
                             + bytes([kind, flags])
                             + struct.pack(">I", stream) + payload)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
