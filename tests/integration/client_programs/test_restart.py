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


# The stream is opened again at once, often while the old server closes its
# port: such a stream gRPC opens again by itself, and where nobody listens then,
# it must not stay silent until PATIENCE.
@pytest.mark.parametrize("read", [blocking, awaited])
def test_a_stream_outlives_restarts_of_its_server(read):
    port = free_port()

    def start():
        return Server(PROGRAMS / "encoderd_fake_server", "fake=batch_us:5000",
                      grpc=port)

    server = start()
    for _ in range(3):
        restarted = threading.Event()
        sent, found = [], []

        def texts():
            while not restarted.is_set():
                sent.append("text")
                yield "text"

        reader = threading.Thread(
            target=read, args=(f"127.0.0.1:{port}", texts(), found))
        reader.start()
        eventually(lambda: found, "an answer")
        assert server.stop() == 0
        server = start()
        before = len(found)
        eventually(lambda: len(found) > before or not reader.is_alive(),
                   "an answer of the new server", PATIENCE / 2)
        restarted.set()
        reader.join()
        assert len(found) == len(sent)
    server.stop()
