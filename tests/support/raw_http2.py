"""A gRPC caller in bare HTTP/2 frames: thousands of calls that cost it nothing.
It reads only what it is told to wait for, and answers no ping: the server takes
it for dead within a minute, unless it sends something."""

import socket
import struct

DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6
GOAWAY, WINDOW_UPDATE, CONTINUATION = 7, 8, 9
ACK = 1
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4
CANCEL = 8


class RawHttp2:
    """A connection to loopback, until the end of `with`. window: the bytes that
    the peer may answer each call with; None: as HTTP/2 has it."""

    def __init__(self, port, window=None):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._frames = self._socket.makefile("rb")
        self._next = 1
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self._send(SETTINGS, 0, 0, b"" if window is None else
                   struct.pack(">HI", INITIAL_WINDOW_SIZE, window))

    def call(self, path):
        """Begins a call of "/package.Service/Method"; returns its stream."""
        return self._begin(path, END_HEADERS)

    def _begin(self, path, flags):
        stream = self._next
        self._next += 2
        block = b"".join(
            b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
            for name, value in (
                (b":method", b"POST"), (b":scheme", b"http"),
                (b":path", path.encode()), (b":authority", b"test"),
                (b"te", b"trailers"), (b"content-type", b"application/grpc")))
        self._send(HEADERS, flags, stream, block)
        return stream

    def reset(self, stream):
        self._send(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))

    def long_call(self, path, frames, size, end):
        """Begins a call whose headers go on for `frames` frames of `size`
        bytes; end: whether they end there."""
        stream = self._begin(path, 0)
        for i in range(frames):
            name = b"x-%d" % i
            value = b"x" * (size - len(name) - 6)
            # Lengths of 127 and more are a prefix and the rest in 7 bits each.
            rest = len(value) - 127
            last = end and i == frames - 1
            self._send(CONTINUATION, END_HEADERS * last, stream, b"\0" + bytes([len(name)])
                       + name + bytes([127, rest & 127 | 128, rest >> 7])
                       + value)

    def ignored(self, mebibytes):
        """This many MiB of empty frames of a type that means nothing."""
        frame = struct.pack(">I", 0)[1:] + bytes([99, 0]) + bytes(4)
        many = frame * ((1 << 20) // len(frame))
        for _ in range(mebibytes):
            self._socket.sendall(many)

    def send(self, stream, message):
        """A message. The peer's window is the caller's to mind."""
        self._send(DATA, 0, stream, struct.pack(">BI", 0, len(message)) + message)

    def widen(self, stream, size=1 << 10):
        """Lets the peer answer this call with that many bytes more."""
        self._send(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))

    def ping(self):
        """Whether the peer answers a ping; it may hang up instead."""
        try:
            self._send(PING, 0, 0, bytes(8))
            return self._wait_for(PING, ACK)
        except ConnectionError:
            return False

    def wait_for_headers(self):
        """Until an answer begins; whether one does before the connection's
        end."""
        return self._wait_for(HEADERS, END_HEADERS)

    def _wait_for(self, kind, flag):
        while True:
            header = self._frames.read(9)
            if len(header) < 9 or header[3] == GOAWAY:
                return False
            self._frames.read(int.from_bytes(header[:3], "big"))
            if header[3] == kind and header[4] & flag:
                return True

    def _send(self, kind, flags, stream, payload):
        self._socket.sendall(struct.pack(">I", len(payload))[1:]
                             + bytes([kind, flags])
                             + struct.pack(">I", stream) + payload)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._frames.close()
        self._socket.close()
