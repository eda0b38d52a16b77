#!/usr/bin/env python3
"""Ten thousand idle EmbedStreams: what they cost the server, and whether others
notice.

    idle_streams.py --programs=build/dev/bin [--streams=10000] [--hold=60]

Three waves over ten connections: all streams are opened, kept for --hold
seconds and reset. Meanwhile a caller of its own asks for its health, one call
after the other, and /metrics is read. The streams are written as frames of
HTTP/2, so that a client library's own limits are not what is measured. Needs
the Python client installed. Exits with 1 where a bound is missed."""

import argparse
import pathlib
import socket
import struct
import sys
import threading
import time

import grpc
from google.protobuf import wrappers_pb2

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server, eventually  # noqa: E402

CONNECTIONS = 10
WAVES = 3
STREAM_KB = 32  # of the server's resident memory, a stream
GROWTH = 0.05  # of the last wave over the second
HEALTH_MS = 50  # the 99th percentile
SCRAPE_MS = 20  # the median

HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 3, 4, 6, 7
ACK, END_HEADERS, CANCEL = 1, 4, 8


def frame(kind, flags, stream, body=b""):
    return (struct.pack(">I", len(body))[1:] + bytes((kind, flags))
            + struct.pack(">I", stream) + body)


def literal(text):
    return bytes((len(text),)) + text.encode()


# HPACK without a table: indexed names and values of RFC 7541, appendix A, and
# literals that are not indexed.
REQUEST = (b"\x83\x86\x04" + literal("/encoderd.v1.Encoder/EmbedStream")
           + b"\x01" + literal("localhost")
           + b"\x0f\x10" + literal("application/grpc")
           + b"\x00" + literal("te") + literal("trailers"))


class Connection:
    """Answers what keeps it alive, and reads all else away."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._lock = threading.Lock()
        self._next = 1
        self._open = []
        self.went_away = False
        self._send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _send(self, data):
        with self._lock:
            self._socket.sendall(data)

    def _read(self):
        stream = self._socket.makefile("rb")
        while len(head := stream.read(9)) == 9:
            body = stream.read(int.from_bytes(head[:3], "big"))
            kind, flags = head[3], head[4]
            if kind in (SETTINGS, PING) and not flags & ACK:
                self._send(frame(kind, ACK, 0, body if kind == PING else b""))
            self.went_away |= kind == GOAWAY
        self.went_away = True

    def open(self, count):
        self._open = range(self._next, self._next + 2 * count, 2)
        self._next += 2 * count
        self._send(b"".join(frame(HEADERS, END_HEADERS, stream, REQUEST)
                            for stream in self._open))

    def reset(self):
        cancel = struct.pack(">I", CANCEL)
        self._send(b"".join(frame(RST_STREAM, 0, stream, cancel)
                            for stream in self._open))

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()


def resident_kb(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith("VmRSS"))


def milliseconds(call):
    begun = time.monotonic()
    call()
    return 1000 * (time.monotonic() - begun)


def hold(server, health, seconds):
    """What other callers meet meanwhile: milliseconds of each call and scrape."""
    calls, scrapes = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        calls.append(milliseconds(
            lambda: health(wrappers_pb2.StringValue(), timeout=30)))
        if len(calls) % 20 == 0:
            scrapes.append(milliseconds(server.metrics))
        time.sleep(0.01)
    return calls, scrapes


def measure(programs, streams, seconds):
    """(resident KB: before, in each wave; ms of each call, of each scrape)"""
    each = streams // CONNECTIONS
    flags = (f"--max_streams={streams}",
             f"--max_streams_per_connection={each}",
             "--max_connection_memory_bytes=1073741824",
             "--max_connection_age=1h")
    calls, scrapes, memory = [], [], []
    with Server(programs / "encoderd_fake_server", "m=load_ms:0",
                *flags) as server, \
            grpc.insecure_channel(server.address) as channel:
        health = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            wrappers_pb2.StringValue.SerializeToString)
        health(wrappers_pb2.StringValue(), timeout=30)
        memory.append(resident_kb(server.process))
        connections = [Connection(server.grpc) for _ in range(CONNECTIONS)]
        for _ in range(WAVES):
            for connection in connections:
                connection.open(each)
            eventually(lambda: f"encoderd_streams {streams}\n"
                       in server.metrics(), f"{streams} streams")
            more = hold(server, health, seconds)
            calls += more[0]
            scrapes += more[1]
            if any(connection.went_away for connection in connections):
                raise RuntimeError(f"a connection was closed: {server.log()}")
            assert f"encoderd_streams {streams}\n" in server.metrics()
            memory.append(resident_kb(server.process))
            for connection in connections:
                connection.reset()
            eventually(lambda: "encoderd_streams 0\n" in server.metrics(),
                       "no streams")
        for connection in connections:
            connection.close()
        if code := server.stop():
            raise RuntimeError(f"exit {code}: {server.log()}")
    return memory, sorted(calls), sorted(scrapes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd_fake_server")
    parser.add_argument("--streams", type=int, default=10000)
    parser.add_argument("--hold", type=float, default=60, metavar="SECONDS")
    options = parser.parse_args()
    memory, calls, scrapes = measure(options.programs, options.streams,
                                     options.hold)
    figures = {
        "KB a stream": ((max(memory) - memory[0]) / options.streams, STREAM_KB),
        "growth of the last wave": (memory[-1] / memory[-2] - 1, GROWTH),
        "ms health p99": (calls[len(calls) * 99 // 100], HEALTH_MS),
        "ms scrape p50": (scrapes[len(scrapes) // 2], SCRAPE_MS),
    }
    missed = [name for name, (found, limit) in figures.items() if found > limit]
    print("; ".join(f"{found:.3g} {name} (at most {limit})"
                    for name, (found, limit) in figures.items()))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
