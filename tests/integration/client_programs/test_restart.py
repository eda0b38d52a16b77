"""A server that ends and comes again on its port in the middle of a stream."""

import asyncio
import threading

import encoderd
import pytest
from conftest import PROGRAMS
from server_process import PATIENCE, Server, eventually, free_port


def blocking(target, texts, found):
    with encoderd.Client(target, timeout=PATIENCE) as client:
        found.extend(client.embed_stream(texts, batch_size=4))


def awaited(target, texts, found):
    async def main():
        async with encoderd.AsyncClient(target, timeout=PATIENCE) as client:
            async for each in client.embed_stream(texts, batch_size=4):
                found.append(each)

    asyncio.run(main())


def start(port):
    return Server(PROGRAMS / "encoderd_fake_server", "fake=batch_us:5000",
                  grpc=port)


def restart_during(read, server):
    """The server that follows `server`, in the middle of a stream."""
    restarted = threading.Event()
    sent, found = [], []

    def texts():
        while not restarted.is_set():
            sent.append("text")
            yield "text"

    reader = threading.Thread(target=read, daemon=True,
                              args=(server.address, texts(), found))
    reader.start()
    try:
        eventually(lambda: found, "an answer")
        assert server.stop() == 0
        server = start(server.grpc)
        before = len(found)
        eventually(lambda: len(found) > before or not reader.is_alive(),
                   "an answer of the new server", PATIENCE / 2)
    finally:
        restarted.set()
    reader.join(PATIENCE)
    assert len(found) == len(sent)
    return server


# A stream is reopened at once, often while the old server closes its port. gRPC
# then reopens it elsewhere, and while nobody listens there, it must not stay
# silent until PATIENCE.
@pytest.mark.parametrize("read", [blocking, awaited])
def test_a_stream_outlives_restarts_of_its_server(read):
    server = start(free_port())
    try:
        for _ in range(3):
            server = restart_during(read, server)
    finally:
        if server.process.poll() is None:
            server.kill()
