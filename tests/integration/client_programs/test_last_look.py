"""Before embed_stream() gives up a server that is silent, it asks the health
service whether there is a connection."""

import asyncio
import sys
import threading

import encoderd
import grpc
import pytest
from either_client import KINDS, ask
from encoderd._stream_events import Ended
from encoderd.errors import from_status, make_error
from google.rpc import code_pb2
from python_service import serve
from stream_service import PATIENCE, Streams, answer, failure, refusal, texts
from test_stream_state import bulk_of

GONE = make_error(grpc.StatusCode.UNAVAILABLE, "no server is listening")
FULL = failure(code_pb2.RESOURCE_EXHAUSTED, "QUEUE_FULL", pause_ms=1)
LOST = failure(code_pb2.UNAVAILABLE)
LEAVES = failure(code_pb2.UNAVAILABLE, "DRAINING")


def silent(requests):
    for _ in requests:
        pass
    yield from ()


class SilentHealth:
    """seconds: that each call had left; asked: set by the first."""

    def __init__(self):
        self.seconds = []
        self.asked = threading.Event()

    def __call__(self, request, context):
        self.seconds.append(context.time_remaining())
        self.asked.set()
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()
        return b""


def wait_for_the_look(bulk, patience):
    """Without an answer; the seconds until then."""
    now = 0.0
    while bulk.look == 0:
        waited = bulk.wait(now)
        now += waited
        assert waited > 0 and now < patience
        bulk.handle(None, waited, now)
    return now


@pytest.mark.parametrize("patience, look", [(0.5, 0.25), (60.0, 1.0)])
def test_the_look_is_part_of_the_patience(patience, look):
    bulk = bulk_of(["text 0"], patience=patience)
    bulk.connected()
    assert len(list(bulk.requests(0.0))) == 1
    assert wait_for_the_look(bulk, patience) == patience - look
    assert bulk.look == look
    bulk.looked(None, look)
    assert bulk.out_of_patience
    assert isinstance(bulk.give_up(), encoderd.DeadlineExceededError)


def test_after_a_look_the_stream_has_the_rest_of_the_patience():
    bulk = bulk_of(["text 0", "text 1"], patience=0.5)
    bulk.connected()
    first, _ = bulk.requests(0.0)
    wait_for_the_look(bulk, 0.5)
    bulk.looked(GONE, 0.0)
    assert (bulk.look, bulk.wait(0.25)) == (0.0, 0.25)
    assert not bulk.out_of_patience
    # An answer says more than a look before it.
    bulk.handle(answer(first), 0.0, 0.25)
    bulk.handle(None, 0.5, 0.75)
    assert bulk.out_of_patience
    assert isinstance(bulk.give_up(), encoderd.DeadlineExceededError)


def test_a_stream_that_has_answered_needs_no_look():
    bulk = bulk_of(["text 0", "text 1"], patience=0.5)
    bulk.connected()
    first, _ = bulk.requests(0.0)
    bulk.handle(answer(first), 0.0, 0.0)
    bulk.handle(None, 0.25, 0.25)
    assert bulk.look == 0
    bulk.handle(Ended(from_status(LOST)), 0.0, 0.25)
    assert bulk.look == 0.25


@pytest.mark.parametrize("by_answer, status, kept", [
    (True, FULL, True), (False, FULL, True), (False, LEAVES, True),
    (False, LOST, False)])
def test_what_the_server_said_is_not_replaced(by_answer, status, kept):
    for look_first in (False, True):
        bulk = bulk_of(["text 0"], patience=0.5)
        bulk.connected()
        (request,) = bulk.requests(0.0)
        if look_first:
            wait_for_the_look(bulk, 0.5)
            bulk.looked(GONE, 0.0)
        bulk.handle(refusal(request, status) if by_answer
                    else Ended(from_status(status)), 0.0, 0.0)
        if not look_first:
            bulk.handle(None, 0.25, 0.25)
            assert (bulk.look == 0) == kept
            if not kept:
                bulk.looked(GONE, 0.0)
        assert (bulk.give_up() is not GONE) == kept


@KINDS
def test_the_health_service_is_asked_within_the_timeout(kind):
    health = SilentHealth()
    with serve(Streams(*[silent] * 60), health=health) as service:
        while not health.seconds:  # on a slow machine: the time was up
            with pytest.raises(encoderd.DeadlineExceededError):
                ask(kind, service.target, "embed_stream", texts(3),
                    settings={"timeout": 1.0})
    assert max(health.seconds) < 0.6


@pytest.mark.skipif(sys.version_info < (3, 11),
                    reason="asyncio tells it from a cancelled task since 3.11")
def test_closing_an_awaited_client_during_the_look_is_no_cancellation():
    async def main(service, health, timeout):
        client = encoderd.AsyncClient(service.target, timeout=timeout)

        async def read():
            return [found async for found in client.embed_stream(texts(3))]

        task = asyncio.ensure_future(read())
        asked = asyncio.ensure_future(
            asyncio.get_running_loop().run_in_executor(
                None, health.asked.wait, PATIENCE))
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        health.asked.set()
        await client.close()
        try:
            await task
        except encoderd.EncoderdError as error:
            return error

    # On a slow machine the time is up before the client is closed.
    for timeout in (1.0, 2.0, 4.0, 8.0, 16.0):
        health = SilentHealth()
        with serve(Streams(silent), health=health) as service:
            error = asyncio.run(main(service, health, timeout))
        if not isinstance(error, encoderd.DeadlineExceededError):
            break
    assert str(error) == "CANCELLED: the client was closed"
